"""The table behind `diagnose`: the numbers of each segment, its pattern, and one sentence that says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import Column, closed_frame, count_columns
from calframe._errors import counted
from calframe._kernels._logistic import Status
from calframe._notes import Notes, at_ends, of_ends
from calframe._reading import by_width, read_clustered, read_rows
from calframe._table import Table
from calframe._testing._draws import Drawing
from calframe._testing._found import draws_needed, too_few_draws
from calframe._testing._pattern_clusters import FEW_EXTREME
from calframe._testing._pattern_numbers import measured
from calframe._testing._patterns import (
    TESTS,
    Rules,
    adjust,
    enough,
    level_off,
    maps,
    patterns,
    reversed_order,
    within,
)
from calframe._typing import Floats
from calframe._words._numbers import interval, percent, points, pvalue, tolerance

_INTERVALS = ("gap", "slope", "intercept", "citl")
_COUNTS = ("n_scores", "extreme_n", "over_n", "under_n")
_SHOWN = (
    "rate",
    "mean_score",
    *(f"{name}{end}" for name in _INTERVALS for end in ("", "_low", "_high")),
    *(f"{side}_{what}" for side in ("over", "under") for what in ("from", "to", "n", "gap", "gap_low", "gap_high")),
    "beyond_line",
    "n_scores",
    "band_low",
    "band_high",
    "band_share",
    "band_rate",
    "extreme_n",
    "extreme_share",
    "extreme_expected",
    "extreme_error",
    "extreme_error_low",
    "extreme_error_high",
    *(f"pvalue_{name}{kind}" for name in ("line", "curve", "extreme") for kind in ("", "_adjusted")),
)
DIAGNOSE_COLUMNS = frozenset({"pattern", "map", "sentence", *_SHOWN})
REVERSED = "higher scores come true less often: no map that keeps their order repairs that"


def diagnose_table(
    table: Table, rules: Rules, draws: int, seed: int, *, engine: Any
) -> tuple[Groups, Any, tuple[str, ...]]:
    """Return the segments, the table of what is said of each, in the user's library, and what is said of all."""
    rows = read_rows(table, engine=engine)
    groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
    drawing = _drawing(len(groups), rules, draws, seed)
    values: dict[str, Floats] = {}
    for narrow, some in by_width(table, rows):
        for segments, tally, clusters in read_clustered(table, some, groups):
            for name, found in measured(tally, rules, drawing, narrow=narrow, clusters=clusters).items():
                values.setdefault(name, np.full(len(groups), np.nan))[segments] = found
    if not values:
        values = {name: np.full(len(groups), np.nan) for name in _needed()}
    values = values | adjust(values, rules)
    confidence, clustered = table.view == "confidence", table.cluster is not None
    named = patterns(values, rules)
    fitting = maps(values, named, rules, confidence=confidence, several=table.roles.multiclass)
    said: list[str | None] = [
        _sentence(i, str(named[i]), int(groups.n[i]), values, rules, confidence=confidence, clustered=clustered)
        for i in range(len(groups))
    ]
    columns: dict[str, Column] = {
        **count_columns(table, groups),
        "pattern": list(named),
        "map": list(fitting),
        **{name: _column(name, values[name]) for name in _SHOWN},
        "sentence": said,
        "note": _notes(groups, values, rules, _too_few(groups, rules, drawing)),
    }
    ends = of_ends(np.nan_to_num(values["at_ends"]), rules.floor)
    return groups, closed_frame(table, groups, columns).to_native(), () if ends is None else (ends,)


def _drawing(segments: int, rules: Rules, draws: int, seed: int) -> Drawing:
    """Return how labels are drawn: as often as asked for, or as often as the number of tests asks for."""
    further = draws_needed(len(TESTS) * segments, rules.correction, rules.alpha)
    return Drawing(n_resamples=draws, rng=np.random.default_rng(seed), further=further)


def _too_few(groups: Groups, rules: Rules, drawing: Drawing) -> str:
    return too_few_draws(drawing.n_resamples, len(TESTS) * len(groups), rules.correction, rules.alpha)


def _needed() -> set[str]:
    tests = {f"{kind}_{name}" for kind in ("pvalue", "least", "floor") for name in ("line", "curve", "extreme")}
    shown = {name for name in _SHOWN if not name.endswith("_adjusted")}
    return shown | tests | {"rows", "at_ends", "status", "slope_side", "line_crosses", "few_clusters"}


def _column(name: str, values: Floats) -> Column:
    """Return counts as whole numbers, where every segment has rows."""
    return np.rint(np.nan_to_num(values)).astype(np.int64) if name in _COUNTS else values


def _sentence(
    i: int, pattern: str, n: int, values: Mapping[str, Floats], rules: Rules, *, confidence: bool, clustered: bool
) -> str:
    """Say what is the matter with a segment: its size, interval and rows."""
    if n == 0:
        return "No usable rows."
    v = {name: float(column[i]) for name, column in values.items()}
    if not enough(values, rules)[i]:
        worth = f", worth {v['rows']:,.0f} independent ones" if clustered else ""
        return (
            f"Can't tell yet from {counted(n)}{worth}: {rules.min_rows:g} are needed, and of each outcome "
            f"{rules.min_events:g}."
        )
    happen = "are right" if confidence else "come true"
    inside, level, turned = (
        bool(where[i]) for where in (within(values, rules.tolerance), level_off(values), reversed_order(values))
    )
    words = _Words(v=v, rows=counted(n), happen=happen, rules=rules, inside=inside, level=level)
    is_turned = turned and v["pvalue_line_adjusted"] <= rules.alpha
    return _turned(words, pattern) if is_turned else _SENTENCES[pattern](words)


class _Words:
    """The numbers of one segment, and words that all its sentences share."""

    def __init__(self, *, v: dict[str, float], rows: str, happen: str, rules: Rules, inside: bool, level: bool) -> None:
        self.v, self.rows, self.happen, self.rules, self.inside, self.level = v, rows, happen, rules, inside, level

    @property
    def tolerance(self) -> str:
        return tolerance(self.rules.tolerance)

    @property
    def is_clear(self) -> bool:
        """Whether the interval of the gap lies wholly beyond the tolerance."""
        return self.v["gap_low"] > self.rules.tolerance or self.v["gap_high"] < -self.rules.tolerance

    @property
    def gap(self) -> str:
        """Say the gap with its sign."""
        low, high = self.v["gap_low"], self.v["gap_high"]
        return f"mean score less rate is {points(self.v['gap'])} ({interval(low, high)})"

    @property
    def gap_too(self) -> str:
        """Say the gap besides where its interval leaves out 0."""
        return f"; {self.gap}" if self.level else ""

    @property
    def off(self) -> str:
        """Say mean score and rate, and by how much the scores say too much or too little."""
        score, rate = percent(self.v["mean_score"]), percent(self.v["rate"])
        side, sign = ("much", 1.0) if self.v["gap"] > 0.0 else ("little", -1.0)
        means = f"Scores average {score}, and {rate} of {self.rows} {self.happen}"
        return f"{means}: says too {side} by {self.size('gap', sign)}"

    def size(self, name: str, sign: float = 1.0) -> str:
        """Say a gap that is surely of one sign, without it."""
        low, high = sorted(sign * self.v[f"{name}{end}"] for end in ("_low", "_high"))
        least, most = (points(end, sign=False, unit=False) for end in (low, high))
        return f"{points(sign * self.v[name], sign=False)} ({least} to {most})"

    def part(self, side: str) -> str:
        """Say of a fifth of the rows by how much its scores are off."""
        start, stop, n = self.v[f"{side}_from"], self.v[f"{side}_to"], int(self.v[f"{side}_n"])
        return f"scores {_range(start, stop)} ({counted(n)})"

    def slope(self) -> str:
        """Say what is known of the slope."""
        if self.v["status"] == Status.SEPARABLE:
            return "scores separate the outcomes, so the slope is without bound"
        return f"{self.slope_alone()} in log-odds, where 1 is right"

    def slope_alone(self) -> str:
        """Say the slope with its interval."""
        value, low, high = (_plain(self.v[f"slope{end}"]) for end in ("", "_low", "_high"))
        return f"slope {value} ({low} to {high})"


def _none(w: _Words) -> str:
    tail = f"within {w.tolerance}" if w.inside else f"so a gap of {w.tolerance} is not ruled out"
    return f"No pattern found in {w.rows}: {w.gap}, {tail}.{_by_itself(w)}"


def _by_itself(w: _Words) -> str:
    """Say that an interval leaves out 0 although no test finds anything, and why."""
    plain, adjusted = w.v["pvalue_line"], w.v["pvalue_line_adjusted"]
    if not w.level or np.isnan(adjusted):
        return ""
    why = "once all tests are counted" if plain <= w.rules.alpha else "by the test of level and slope"
    return f" By itself that is likely off, but it is not found {why}: adjusted p {pvalue(adjusted)}."


def _turned(w: _Words, pattern: str) -> str:
    """Say before all else that higher scores come true less often, for no other pattern matters as much."""
    head = f"Higher scores {w.happen} less often (reversed), which no map that keeps their order repairs"
    if pattern not in ("over-confident", "says too much", "says too little"):
        return f"{head}. {_SENTENCES[pattern](w)}"
    return f"{head}: {w.slope()}. {w.off}." if w.is_clear else f"{head}, in {w.rows}: {w.slope()}{w.gap_too}."


def _within(w: _Words) -> str:
    return f"Within {w.tolerance} in {w.rows}: {w.gap}."


def _shifted(w: _Words) -> str:
    if w.v["slope_low"] > 1.0:
        return f"{w.off}; they also lie too close together, {w.slope()}."
    return f"{w.off}; they also lie too far apart, {w.slope()}." if w.v["slope_high"] < 1.0 else f"{w.off}."


def _tilted(w: _Words) -> str:
    apart = "too far apart" if w.v["slope_side"] < 0.0 else "too close together"
    if w.is_clear:
        return f"{w.off}; they also lie {apart}, {w.slope()}."
    return f"Scores lie {apart} in {w.rows}: {w.slope()}{w.gap_too}."


def _crossing(w: _Words) -> str:
    parts = (
        f"{w.part('over')} say too much by {w.size('over_gap')}, "
        f"{w.part('under')} too little by {w.size('under_gap', -1.0)}"
    )
    return _beside_gap(w, parts)


def _collapse(w: _Words) -> str:
    share, rate = percent(w.v["band_share"]), percent(w.v["band_rate"])
    where = _range(w.v["band_low"], w.v["band_high"])
    return f"{share} of {w.rows} have scores {where}, and {rate} of these {w.happen}; {w.gap}."


def _extreme(w: _Words) -> str:
    low, high = (percent(w.v[f"extreme_error_{end}"]).removesuffix("%") for end in ("low", "high"))
    edge = w.rules.extreme
    return _beside_gap(
        w,
        f"{percent(w.v['extreme_share'])} of {w.rows} have scores up to {edge:g} or from {1.0 - edge:g} on; "
        f"{percent(w.v['extreme_error'])} ({low} to {high}) of these are wrong, where the scores say "
        f"{percent(w.v['extreme_expected'])}",
    )


def _undecided(w: _Words) -> str:
    line = "" if np.isnan(w.v["slope"]) else f", and {w.slope_alone()}"
    return f"Can't tell yet what is off in {w.rows}: {w.gap}{line}."


def _beside_gap(w: _Words, said: str) -> str:
    """Say the gap before something else where it is clear, behind it where its interval leaves out 0."""
    if w.is_clear:
        return f"{w.off}; {said}."
    return f"{said[0].upper()}{said[1:]}{w.gap_too}."


_SENTENCES: Mapping[str, Callable[[_Words], str]] = {
    "none found": _none,
    "within tolerance": _within,
    "says too much": _shifted,
    "says too little": _shifted,
    "over-confident": _tilted,
    "under-confident": _tilted,
    "crossing": _crossing,
    "collapse": _collapse,
    "extreme": _extreme,
    "not decided": _undecided,
}


def _plain(value: float) -> str:
    return _signed(value, 2)


def _signed(value: float, digits: int) -> str:
    text = f"{abs(value):,.{digits}f}"
    return f"\N{MINUS SIGN}{text}" if value < 0.0 and float(text.replace(",", "")) > 0.0 else text


def _range(low: float, high: float) -> str:
    first, last = _score(low), _score(high)
    return f"of {first}" if first == last else f"from {first} to {last}"


def _score(value: float) -> str:
    """Write a score with the digits that tell it from 0 and 1."""
    return f"{value:.3g}" if value < 0.5 else f"{1.0 - float(f'{1.0 - value:.3g}'):.10g}"


def _notes(groups: Groups, values: Mapping[str, Floats], rules: Rules, too_few: str) -> list[str | None]:
    """Say per segment what is missing or undefined; None where there is nothing to say."""
    some, status = groups.n > 0, values["status"]
    marks = {
        "only one outcome: no line can be fitted": some & (status == Status.ONE_CLASS),
        "one distinct score: no line can be fitted": some & (status == Status.ONE_SCORE),
        "scores separate the outcomes: no line can be fitted": some & (status == Status.SEPARABLE),
        REVERSED: some & reversed_order(values),
        too_few: values["beyond_reach"] > 0.0,
        FEW_EXTREME: values["few_clusters"] > 0.0,
        "scores of 0 and 1 only: no line can be tested": enough(values, rules) & np.isnan(values["pvalue_line"]),
    }
    made = Notes.of_counts(groups.n, groups.n_zero)
    for text, where in marks.items():
        made.add(text, where)
    made.add_each(at_ends(int(rows), rules.floor) if rows > 0.0 else None for rows in values["at_ends"])
    return made.lines()
