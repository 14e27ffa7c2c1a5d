"""The course over time as a chart takes it: every period has a place, also one without rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from itertools import repeat

import polars as pl

from calframe._drifting._spans import empty_periods, next_start
from calframe._periods import Every, periods_of
from calframe._typing import VerdictName
from calframe._verdicts import CLEAR, LEANS, WORDS
from calframe._words._numbers import interval, points, rows
from calframe._words._numbers import tolerance as zone

_MOST_PLACES = 400  # on the axis; with more, a stretch without rows has one place
_ENDS = {
    "gap_low": "low",
    "gap_high": "high",
    "simultaneous_low": "wide_low",
    "simultaneous_high": "wide_high",
}


def course_rows(
    course: pl.DataFrame, *, every: Every, reference: Collection[str] = (), alarm: tuple[str, str] | None = None
) -> pl.DataFrame:
    """Return a course as the timeline takes it.

    Parameters
    ----------
    course : polars.DataFrame
        One row a period: ``period``, ``label``, ``n``, ``gap`` with both intervals, ``state`` (which gives the colour)
        and ``verdict`` (which gives the sign).
    every : str
        Length of a period.
    reference : collection of str
        Labels of the periods that others are compared with.
    alarm : tuple of two str, optional
        The label of the period in which the monitor sounded, and words about it.
    """
    frame = _laid_out(course.with_columns(pl.col("period").cast(pl.String)), every).rename(_ENDS)
    tags = [_tag(verdict, gap) for verdict, gap in frame.select("verdict", "gap").iter_rows()]
    texts = [_description(*row) for row in frame.select("label", "n", "gap", "low", "high").iter_rows()]
    mark, words = alarm or ("", "")
    return frame.select(
        *("period", "label", "gap", *_ENDS.values(), "n", "state"),
        pl.Series("tag", tags, dtype=pl.String),
        pl.Series("description", texts, dtype=pl.String),
        pl.col("label").is_in(list(reference)).alias("reference"),
        pl.when(pl.col("label") == mark).then(pl.lit(words, dtype=pl.String)).alias("alarm"),
    )


def _laid_out(course: pl.DataFrame, every: Every) -> pl.DataFrame:
    """Return a course with the periods in which there is no row, in their places."""
    starts = [dt.date.fromisoformat(text) for text in course["period"]]
    empty = empty_periods(starts, every)
    if len(starts) + len(empty) > _MOST_PLACES:
        known = set(empty)
        empty = [day for day in map(next_start, starts, repeat(every)) if day in known]
    if not empty:
        return course
    labels = periods_of([day.year * 10_000 + day.month * 100 + day.day for day in empty], every=every).labels
    gone = pl.DataFrame({"period": [day.isoformat() for day in empty], "label": labels, "n": 0, "state": "in"})
    gone = gone.with_columns(verdict=pl.lit("few"))
    return pl.concat([course, gone.cast({"n": course.schema["n"]})], how="diagonal").sort("period")


def empty_words(count: int) -> str:
    """Say how many periods have no rows; nothing where none is missing.

    Examples
    --------
    >>> empty_words(1), empty_words(10), empty_words(0)
    ('1 period has no rows.', '10 periods have no rows.', '')
    """
    if not count:
        return ""
    return "1 period has no rows." if count == 1 else f"{count:,} periods have no rows."


def marks_words(*, level: str, judged: int, over: str, tolerance: float) -> str:
    """Explain the marks of the timeline.

    Parameters
    ----------
    level : str
        Confidence level of the intervals, such as "95%".
    judged : int
        Periods with rows enough.
    over : str
        What the simultaneous intervals hold over together.
    tolerance : float
        Half-width of the zone.

    Examples
    --------
    >>> marks_words(level="95%", judged=0, over="", tolerance=0.03)[:60]
    'Thick line: 95% interval; thin line: the same, widened. No p'
    """
    wide = f"Thick line: {level} interval; thin line: the same, widened"
    end = f"Grey zone: the {zone(tolerance)} tolerance."
    if not judged:
        return f"{wide}. No period has rows enough to be judged, so that none is marked. {end}"
    return (
        f"{wide} for {over}. Orange (too high) or blue (too low): the thin line of a judged period leaves out 0, also "
        f"where the gap is within tolerance. Where there is room, a full triangle: clearly off, the thin line lies "
        f"wholly beyond the grey zone; an open one: leaning, it reaches out of the zone, and by its adjusted p-value "
        f"the gap is not 0. {end}"
    )


def _tag(verdict: VerdictName, gap: float | None) -> str:
    """Return the sign of a verdict and the gap, where the verdict is that there is one."""
    return f"{WORDS[verdict][0]} {points(gap, unit=False)}" if verdict in CLEAR | LEANS else ""


def _description(label: str, n: int, gap: float | None, low: float | None, high: float | None) -> str:
    if gap is None:
        return f"{label}: {rows(n) if n else 'no rows'}"
    return f"{label}: {points(gap)}, {interval(low, high)}, {rows(n)}"
