"""All rows over time: the gap of each period, and since when it has been off, if it has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from calframe._drifting._days import Days, judge_sums
from calframe._drifting._spans import empty_periods
from calframe._kernels._corrections import adjusted
from calframe._periods import Every, Periods
from calframe._testing._rates import ScoreSums, change_pvalue
from calframe._testing._summed import reaches
from calframe._typing import Bools, Floats, Ints
from calframe._verdicts import CLEAR, MIN_ROWS, Judged, Rules
from calframe._words._numbers import plural, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """An unbroken run of periods to the end whose gap is clearly beyond the tolerance.

    Attributes
    ----------
    model : str or None
        The score column, where there are several.
    label : str
        The period it begins with.
    before, during : float
        Gap before it and in it. Rows of the unjudged periods just before it are in neither.
    moved, judged : int
        Of the segments with rows enough on both sides, how many moved the same way by an adjusted p-value of alpha at
        most, which allows for the choice of the period; 0 of 0 without segments.
    unjudged : int
        Periods with too few rows to be judged between the last judged one before it and its first: it may have begun in
        any of them.
    """

    model: str | None
    label: str
    before: float
    during: float
    moved: int
    judged: int
    unjudged: int = 0

    @property
    def when(self) -> str:
        """The period it begins with, or that it may have begun earlier."""
        return f"{self.label} or earlier" if self.unjudged else self.label

    def sentence(self) -> str:
        """Return the sentence about it."""
        scores = "scores" if self.model is None else f"scores of {self.model!r}"
        way = "high" if self.during > 0 else "low"
        text = (
            f"Since {self.when} {scores} run {points(self.during, sign=False)} too {way} on average "
            f"({points(self.before)} before)"
        )
        if self.unjudged:
            text += f"; {self.doubt()}"
        if self.judged:
            text += f"; {self.moved} of {plural(self.judged, 'segment')} moved that way"
        return text

    def doubt(self) -> str:
        """Say why it may have begun earlier: how many periods before it could not be judged, and are in no average."""
        if self.unjudged == 1:
            return f"the period before {self.label} has too few rows to be judged and is in neither average"
        which = f"the {self.unjudged:,} periods before {self.label}"
        return f"{which} have too few rows to be judged and are in neither average"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course:
    """Gaps of one model over time.

    Attributes
    ----------
    model : str or None
        The score column, where there are several.
    every : str
        Length of a period.
    zone : str or None
        Time zone of the days; None for plain wall time.
    table : polars.DataFrame
        One row a period: ``period`` (its first day), ``label``, ``n``, ``rate``, ``mean_score``, ``gap`` with both
        intervals, ``state`` ("over", "under" or "in"), ``verdict``.
    undated : int
        Rows used elsewhere but without a date.
    since : Since or None
        The run to the end, if there is one.
    n_empty : int
        Periods between the first and the last in which there is no row.
    """

    model: str | None
    every: Every
    zone: str | None
    table: pl.DataFrame
    undated: int
    since: Since | None
    n_empty: int = 0

    @property
    def comparisons(self) -> int:
        """Periods with rows enough to be judged."""
        return int((self.table["verdict"] != "few").sum())


def courses(days: Days, rules: Rules) -> list[Course]:
    """Judge the periods of each model over all segments, and find its run to the end."""
    found, empty = [], len(empty_periods(days.periods.starts, days.periods.every))
    for number, model in enumerate(days.models):
        mine = days.model == number
        index = np.where(mine, days.periods.index, -1)
        sums = days.added(index, np.zeros(len(days.periods.starts), dtype=np.int64), rules)
        judged = judge_sums(sums, rules)
        found.append(
            Course(
                model=model,
                every=days.periods.every,
                zone=days.zone,
                table=_table(days.periods, sums, judged),
                undated=round(days.sums.n[mine & (index < 0)].sum()),
                since=_since(days, index, judged, model, rules),
                n_empty=empty,
            )
        )
    return found


def _table(periods: Periods, sums: ScoreSums, judged: Judged) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "period": pl.Series(periods.starts, dtype=pl.Date),
            "label": pl.Series(periods.labels, dtype=pl.String),
            "n": np.rint(sums.n).astype(np.int64),
            "rate": sums.rate,
            "mean_score": sums.mean_score,
            "gap": judged.gap,
            "gap_low": judged.low,
            "gap_high": judged.high,
            "simultaneous_low": judged.sim_low,
            "simultaneous_high": judged.sim_high,
            "state": pl.Series(states(judged.judged, judged.sim_low, judged.sim_high), dtype=pl.String),
            "verdict": pl.Series(judged.verdict, dtype=pl.String),
        }
    )
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def states(known: Bools, low: Floats, high: Floats) -> list[str]:
    """Return how each period stands: marked only where it is judged and its widened interval leaves out zero."""
    over, under = known & (low > 0), known & (high < 0)
    return ["over" if a else "under" if b else "in" for a, b in zip(over, under, strict=True)]


def _since(days: Days, index: Ints, judged: Judged, model: str | None, rules: Rules) -> Since | None:
    """Return the run of marked periods to the end, if it is one way and, taken together, beyond the tolerance."""
    ends = _run_to_the_end(days.periods, judged)
    if ends is None:
        return None
    last, first = ends
    part = np.where(index > last, np.where(index < first, -1, 1), np.where(index < 0, -1, 0))
    strict = replace(rules, alpha=rules.alpha / judged.comparisons)
    sums = days.added(part, np.zeros(2, dtype=np.int64), strict)
    sides = judge_sums(sums, strict)
    if sides.verdict[1] not in CLEAR or not _changed(sides, sums, strict):
        return None
    up, splits = bool(sides.gap[1] > sides.gap[0]), judged.comparisons - 1
    moved, known = _moved(days, part, rules, splits=splits, up=up)
    return Since(
        model=model,
        label=days.periods.labels[first],
        before=float(sides.gap[0]),
        during=float(sides.gap[1]),
        moved=moved,
        judged=known,
        unjudged=first - last - 1,
    )


def _run_to_the_end(periods: Periods, judged: Judged) -> tuple[int, int] | None:
    """Return the last judged period before an unbroken run of marked ones, all one way, to the end, and its first.

    Periods with too few rows to be judged, such as one that has just begun, neither end a run nor make one; a long time
    without rows ends it. None where there is no run, or where it takes in every period that was judged.
    """
    known = np.flatnonzero(judged.judged)
    marked = states(judged.judged, judged.sim_low, judged.sim_high)
    state = [marked[i] for i in known]
    if not state or state[-1] == "in":
        return None
    place = len(state) - 1
    while place > 0 and state[place - 1] == state[-1] and periods.near(int(known[place - 1]), int(known[place])):
        place -= 1
    return (int(known[place - 1]), int(known[place])) if place > 0 else None


def _changed(sides: Judged, sums: ScoreSums, rules: Rules) -> bool:
    """Tell whether the gap moved away from zero: a gap that was always there did not begin with the run.

    The change must be real (the test of `drift` that two gaps are the same), and either the gap before was no clear one
    or the change itself is beyond the tolerance.
    """
    if not sides.judged.all():
        return False
    change = float(sides.gap[1] - sides.gap[0])
    real = bool(change_pvalue(sums.at(np.array([1])), sums.at(np.array([0])))[0][0] <= rules.alpha)
    away = change * float(sides.gap[1]) > 0
    return real and away and (sides.verdict[0] not in CLEAR or abs(change) > rules.tolerance)


def _moved(days: Days, part: Ints, rules: Rules, *, splits: int, up: bool) -> tuple[int, int]:
    """Count the segments whose gap clearly moved the same way, of those with rows enough on both sides.

    Where the run begins was found on the same rows. So p-values count as often as there are periods it could have
    begun with (Bonferroni), before they are adjusted over segments.
    """
    if not days.segmented:
        return 0, 0
    segment = days.series // len(days.models)
    count = int(segment.max()) + 1
    family = np.zeros(2 * count, dtype=np.int64)
    both = days.added(np.where(part < 0, -1, 2 * segment + part), family, replace(rules, alpha=rules.alpha / splits))
    known = np.flatnonzero(reaches(both.rows, MIN_ROWS).reshape(count, 2).all(axis=1))
    before, after = (both.at(2 * known + side) for side in (0, 1))
    pvalue = adjusted(np.minimum(splits * change_pvalue(after, before)[0], 1.0), rules.correction)
    moved = (pvalue <= rules.alpha) & ((after.gap > before.gap) == up)
    return int(moved.sum()), len(known)
