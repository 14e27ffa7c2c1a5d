"""The course over time: gaps per period, and since when they have been off, if they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._cells import Groups, cells_plan, changes, read_groups
from calframe._kernels._binned import effective_rows, ratio
from calframe._kernels._intervals import normal_quantile
from calframe._periods import Every, Periods, periods_of
from calframe._roles import Roles
from calframe._table import open_table
from calframe._typing import Floats, Ints
from calframe._verdicts import CLEAR, MIN_ROWS, SHOWN_ROWS, Judged, judge

_TERMS = ("wp", "wy", "w2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """An unbroken run of periods to the end whose gap is clearly beyond the tolerance.

    Attributes
    ----------
    label : str
        The period it begins with.
    before, during : float
        Gap before it and in it.
    moved, judged : int
        Of the segments with rows enough on both sides, how many clearly moved the same way; 0 of 0 without segments.
    """

    label: str
    before: float
    during: float
    moved: int
    judged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Gaps over time.

    Attributes
    ----------
    every : str
        Length of a period.
    zone : str or None
        Time zone of the days, None for plain wall time.
    table : polars.DataFrame
        One row a period: ``period``, ``label``, ``n``, ``rate``, ``mean_score``, ``gap`` with both intervals,
        ``state`` ("over", "under" or "in"), ``verdict``.
    comparisons : int
        Periods with rows enough to be judged.
    undated : int
        Rows used elsewhere but without a date.
    since : Since or None
        The run to the end, if there is one.
    """

    every: Every
    zone: str | None
    table: pl.DataFrame
    comparisons: int
    undated: int
    since: Since | None


def read_course(
    data: Any, roles: Roles, *, every: Every | None, tolerance: float, alpha: float, engine: Any
) -> Course | None:
    """Run the aggregate by local day (and segment) and judge the periods; None where no row has a date."""
    table = open_table(data, roles, by_day=True)
    groups = read_groups(table, table.collect(cells_plan(table, _TERMS, bins=None), engine=engine), _TERMS)
    days = _days(groups)
    periods = periods_of(days, every=every)
    if not periods.starts:
        return None
    judged = _judge(groups, periods, tolerance=tolerance, alpha=alpha)
    return Course(
        every=periods.every,
        zone=roles.time_zone or _zone(data, str(roles.time)),
        table=_course_table(groups, periods, judged),
        comparisons=judged.comparisons,
        undated=int(groups.n[periods.index < 0].sum()),
        since=_since(groups, periods, judged, tolerance=tolerance, alpha=alpha),
    )


def _zone(data: Any, column: str) -> str | None:
    """Return the time zone that a column's type carries, if any."""
    return getattr(nw.from_native(data).collect_schema()[column], "time_zone", None)


def _days(groups: Groups) -> list[int | None]:
    column = groups.keys.get_column("_cf_day")
    missing = column.is_null().to_list()
    return [None if gone else int(day) for day, gone in zip(column.to_list(), missing, strict=True)]


def _totals(groups: Groups, index: Ints, count: int) -> dict[str, Floats]:
    """Sum the terms of segments by an index; -1 belongs nowhere."""
    known = index >= 0
    names = ("n", "w", *_TERMS)
    return {name: _binned_sum(index[known], groups.cells.total(name)[known], count) for name in names}


def _binned_sum(index: Ints, values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(index, weights=values, minlength=count), dtype=np.float64)


def _judge(groups: Groups, periods: Periods, *, tolerance: float, alpha: float) -> Judged:
    return _judge_sums(_totals(groups, periods.index, len(periods.starts)), tolerance=tolerance, alpha=alpha)


def _judge_sums(sums: dict[str, Floats], *, tolerance: float, alpha: float) -> Judged:
    return judge(
        rate=ratio(sums["wy"], sums["w"]),
        score=ratio(sums["wp"], sums["w"]),
        n=effective_rows(sums["w"], sums["w2"]),
        rows=sums["n"],
        tolerance=tolerance,
        alpha=alpha,
        min_events=0.0,  # a period in which nothing, or everything, happens is news
    )


def _course_table(groups: Groups, periods: Periods, judged: Judged) -> pl.DataFrame:
    sums = _totals(groups, periods.index, len(periods.starts))
    frame = pl.DataFrame(
        {
            "period": [start.isoformat() for start in periods.starts],
            "label": periods.labels,
            "n": np.rint(sums["n"]).astype(np.int64),
            "rate": ratio(sums["wy"], sums["w"]),
            "mean_score": ratio(sums["wp"], sums["w"]),
            "gap": judged.gap,
            "gap_low": judged.low,
            "gap_high": judged.high,
            "simultaneous_low": judged.sim_low,
            "simultaneous_high": judged.sim_high,
            "state": _states(judged),
            "verdict": list(judged.verdict),
        }
    )
    return frame.with_columns(pl.when(pl.col("n") >= SHOWN_ROWS).then(pl.col(pl.Float64).fill_nan(None)))


def _states(judged: Judged) -> list[str]:
    """Return how each period stands: marked only where its widened interval leaves out zero."""
    over, under = judged.judged & (judged.sim_low > 0), judged.judged & (judged.sim_high < 0)
    return ["over" if a else "under" if b else "in" for a, b in zip(over, under, strict=True)]


def _since(groups: Groups, periods: Periods, judged: Judged, *, tolerance: float, alpha: float) -> Since | None:
    """Return the run of marked periods to the end, if it is one way and, taken together, beyond the tolerance."""
    first = _run_to_the_end(periods, judged)
    if first is None:
        return None
    part = np.where(periods.index < 0, -1, (periods.index >= first).astype(np.int64))
    totals, level = _totals(groups, part, 2), alpha / judged.comparisons
    sides = _judge_sums(totals, tolerance=tolerance, alpha=level)
    if sides.verdict[1] not in CLEAR or not _changed(sides, totals, tolerance=tolerance, alpha=level):
        return None
    moved, known = _moved(groups, part, up=bool(sides.gap[1] > sides.gap[0]), alpha=alpha)
    return Since(
        label=periods.labels[first], before=float(sides.gap[0]), during=float(sides.gap[1]), moved=moved, judged=known
    )


def _run_to_the_end(periods: Periods, judged: Judged) -> int | None:
    """Return the first period of an unbroken run of marked periods, all one way, that reaches the end.

    Periods with too few rows to be judged, such as one that has just begun, neither end a run nor make one; a long time
    without rows ends it. None where there is no run, or where it takes in every period that was judged.
    """
    known = np.flatnonzero(judged.judged)
    states = [_states(judged)[i] for i in known]
    if not states or states[-1] == "in":
        return None
    place = len(states) - 1
    while place > 0 and states[place - 1] == states[-1] and periods.near(int(known[place - 1]), int(known[place])):
        place -= 1
    return int(known[place]) if place > 0 else None


def _changed(sides: Judged, totals: dict[str, Floats], *, tolerance: float, alpha: float) -> bool:
    """Tell whether the gap moved away from zero: a gap that was always there did not begin with the run.

    The change must be real (two-sided z-test of two rates), and either the gap before was no clear one or the change
    itself is beyond the tolerance.
    """
    if not sides.judged.all():
        return False
    rate, n = ratio(totals["wy"], totals["w"]), effective_rows(totals["w"], totals["w2"])
    change = float(sides.gap[1] - sides.gap[0])
    spread = float(np.sqrt((rate * (1.0 - rate) / n).sum()))
    real = abs(change) > normal_quantile(1.0 - alpha) * spread
    away = change * float(sides.gap[1]) > 0
    return real and away and (sides.verdict[0] not in CLEAR or abs(change) > tolerance)


def _moved(groups: Groups, part: Ints, *, up: bool, alpha: float) -> tuple[int, int]:
    """Count the segments whose gap clearly moved the same way, of those with rows enough on both sides."""
    others = [name for name in groups.keys.columns if name != "_cf_day"]
    if not others:
        return 0, 0
    segment = _segment_of(groups, others[0])
    count = int(segment.max()) + 1
    sums = _totals(groups, np.where(part < 0, -1, 2 * segment + part), 2 * count)
    sums = {name: values.reshape(count, 2) for name, values in sums.items()}
    rate, n = ratio(sums["wy"], sums["w"]), effective_rows(sums["w"], sums["w2"])
    gap = ratio(sums["wp"] - sums["wy"], sums["w"])
    enough = (sums["n"] >= MIN_ROWS).all(axis=1)
    spread = np.sqrt((rate * (1.0 - rate) / n).sum(axis=1))
    change = (gap[:, 1] - gap[:, 0]) * (1.0 if up else -1.0)
    return int((change[enough] > normal_quantile(1.0 - alpha) * spread[enough]).sum()), int(enough.sum())


def _segment_of(groups: Groups, name: str) -> Ints:
    """Return a number per segment; groups come sorted by it, so that it changes where the segment does."""
    return np.cumsum(np.append(False, changes(groups.keys.get_column(name)))).astype(np.int64)
