"""The table behind `diagnose`: the numbers of each segment, its pattern, and one sentence that says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import Column, closed_frame, count_columns
from calframe._errors import counted
from calframe._kernels._logistic import Status
from calframe._reading import by_width, read_rows, read_tallies
from calframe._table import Table
from calframe._testing._draws import Drawing
from calframe._testing._patterns import Rules, adjust, enough, maps, measured, patterns, reversed_order, within
from calframe._typing import Floats

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


def diagnose_table(table: Table, rules: Rules, drawing: Drawing, *, engine: Any) -> tuple[Groups, Any]:
    """Return the segments of an opened table, and the table of what is said of them, in the user's library."""
    rows = read_rows(table, engine=engine)
    groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
    values: dict[str, Floats] = {}
    for narrow, some in by_width(table, rows):
        for segments, tally in read_tallies(table, some, groups):
            for name, found in measured(tally, rules, drawing, narrow=narrow).items():
                values.setdefault(name, np.full(len(groups), np.nan))[segments] = found
    if not values:
        values = {name: np.full(len(groups), np.nan) for name in _needed()}
    values = values | adjust(values, rules)
    confidence = table.view == "confidence"
    named = patterns(values, rules)
    fitting = maps(values, named, rules, confidence=confidence, several=table.roles.multiclass)
    said: list[str | None] = [
        _sentence(i, str(named[i]), int(groups.n[i]), values, rules, confidence=confidence) for i in range(len(groups))
    ]
    columns: dict[str, Column] = {
        **count_columns(table, groups),
        "pattern": list(named),
        "map": list(fitting),
        **{name: _column(name, values[name]) for name in _SHOWN},
        "sentence": said,
        "note": _notes(groups, values, rules),
    }
    return groups, closed_frame(table, groups, columns).to_native()


def _needed() -> set[str]:
    tests = {f"{kind}_{name}" for kind in ("pvalue", "least") for name in ("line", "curve", "extreme")}
    shown = {name for name in _SHOWN if not name.endswith("_adjusted")}
    return shown | tests | {"rows", "status", "slope_side", "line_crosses"}


def _column(name: str, values: Floats) -> Column:
    """Return counts as whole numbers, where every segment has rows."""
    return np.rint(np.nan_to_num(values)).astype(np.int64) if name in _COUNTS else values


def _sentence(i: int, pattern: str, n: int, values: Mapping[str, Floats], rules: Rules, *, confidence: bool) -> str:
    """Say what is the matter with a segment: its size, interval and rows."""
    if n == 0:
        return "No usable rows."
    v = {name: float(column[i]) for name, column in values.items()}
    if not enough(values, rules)[i]:
        return (
            f"Can't tell yet from {counted(n)}: {rules.min_rows:g} are needed, and of each outcome "
            f"{rules.min_events:g}."
        )
    happen = "are right" if confidence else "come true"
    words = _Words(v=v, rows=counted(n), happen=happen, rules=rules, inside=bool(within(values, rules)[i]))
    return _SENTENCES[pattern](words)


class _Words:
    """The numbers of one segment, and words that all its sentences share."""

    def __init__(self, *, v: dict[str, float], rows: str, happen: str, rules: Rules, inside: bool) -> None:
        self.v, self.rows, self.happen, self.rules, self.inside = v, rows, happen, rules, inside

    @property
    def tolerance(self) -> str:
        return _points(self.rules.tolerance)

    @property
    def means(self) -> str:
        """Say mean score and rate."""
        score, rate = _percent(self.v["mean_score"]), _percent(self.v["rate"])
        return f"Scores average {score}, and {rate} of {self.rows} {self.happen}"

    def span(self, name: str, write: Callable[[float], str], *, sign: float = 1.0) -> str:
        """Write a number and its interval, turned around where `sign` is -1."""
        value, low, high = (sign * self.v[f"{name}{end}"] for end in ("", "_low", "_high"))
        low, high = sorted((low, high))
        return f"{write(value)} ({_number(low, write)} to {_number(high, write)})"

    def part(self, side: str) -> str:
        """Say of a fifth of the rows by how much its scores are off."""
        start, stop, n = self.v[f"{side}_from"], self.v[f"{side}_to"], int(self.v[f"{side}_n"])
        return f"scores {_range(start, stop)} ({counted(n)})"

    def slope(self) -> str:
        """Say what is known of the slope."""
        if self.v["status"] == Status.SEPARABLE:
            return "scores separate the outcomes, so the slope is without bound"
        return f"slope {self.span('slope', _plain)} in log-odds, where 1 is right"


def _none(w: _Words) -> str:
    tail = f"within {w.tolerance}" if w.inside else f"so a gap of {w.tolerance} is not ruled out"
    return f"No pattern found in {w.rows}: mean score less rate is {w.span('gap', _points)}, {tail}."


def _within(w: _Words) -> str:
    return f"Within {w.tolerance} in {w.rows}: mean score less rate is {w.span('gap', _points)}."


def _too_much(w: _Words) -> str:
    return f"{w.means}: says too much by {w.span('gap', _points)}."


def _too_little(w: _Words) -> str:
    return f"{w.means}: says too little by {w.span('gap', _points, sign=-1.0)}."


def _over_confident(w: _Words) -> str:
    return f"Scores lie too far apart in {w.rows}: {w.slope()}."


def _under_confident(w: _Words) -> str:
    return f"Scores lie too close together in {w.rows}: {w.slope()}."


def _crossing(w: _Words) -> str:
    over, under = w.span("over_gap", _points), w.span("under_gap", _points, sign=-1.0)
    much = f"{w.part('over')} say too much by {over}"
    little = f"{w.part('under')} too little by {under}"
    if w.v["over_gap"] <= 0.0 or w.v["under_gap"] >= 0.0:
        left = f"it leaves {_points(w.v['beyond_line'])} in a fifth of them"
        return f"No line in log-odds fits {w.rows}, {left}; mean score less rate is {w.span('gap', _points)}."
    return f"{much[0].upper()}{much[1:]}, {little}."


def _collapse(w: _Words) -> str:
    share, rate = _percent(w.v["band_share"]), _percent(w.v["band_rate"])
    where = _range(w.v["band_low"], w.v["band_high"])
    return f"{share} of {w.rows} have scores {where}, and {rate} of these {w.happen}; gap {w.span('gap', _points)}."


def _extreme(w: _Words) -> str:
    share, error = _percent(w.v["extreme_share"]), w.span("extreme_error", _percent)
    edge = w.rules.extreme
    return (
        f"{share} of {w.rows} have scores up to {edge:g} or from {1.0 - edge:g} on; {error} of these are wrong, where "
        f"the scores say {_percent(w.v['extreme_expected'])}."
    )


def _undecided(w: _Words) -> str:
    line = "" if np.isnan(w.v["slope"]) else f", and slope {w.span('slope', _plain)}"
    return f"Can't tell yet what is off in {w.rows}: mean score less rate is {w.span('gap', _points)}{line}."


_SENTENCES: Mapping[str, Callable[[_Words], str]] = {
    "none found": _none,
    "within tolerance": _within,
    "says too much": _too_much,
    "says too little": _too_little,
    "over-confident": _over_confident,
    "under-confident": _under_confident,
    "crossing": _crossing,
    "collapse": _collapse,
    "extreme": _extreme,
    "not decided": _undecided,
}


def _number(value: float, write: Callable[[float], str]) -> str:
    """Write the end of an interval, its unit left out."""
    return write(value).removesuffix(" points").removesuffix(" %")


def _points(value: float) -> str:
    return f"{_signed(100.0 * value, 1)} points"


def _percent(value: float) -> str:
    return f"{_signed(100.0 * value, 1)} %"


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


def _notes(groups: Groups, values: Mapping[str, Floats], rules: Rules) -> list[str | None]:
    """Say per segment what is missing or undefined; None where there is nothing to say."""
    some, status = groups.n > 0, values["status"]
    marks = {
        "no usable rows": ~some,
        "only one outcome: no line can be fitted": some & (status == Status.ONE_CLASS),
        "one distinct score: no line can be fitted": some & (status == Status.ONE_SCORE),
        "scores separate the outcomes: no line can be fitted": some & (status == Status.SEPARABLE),
        "higher scores come true less often: no map that keeps their order repairs that": some & reversed_order(values),
        "scores of 0 and 1 only: no line can be tested": enough(values, rules) & np.isnan(values["pvalue_line"]),
    }
    said = [[text for text, where in marks.items() if where[i]] for i in range(len(groups))]
    for i in np.flatnonzero(groups.n_zero > 0):
        said[i].append(f"{counted(int(groups.n_zero[i]))} of weight 0 left out")
    return ["; ".join(parts) or None for parts in said]
