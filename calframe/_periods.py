"""Local days rolled up to periods: days, weeks, months, quarters or years."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

import numpy as np

from calframe._errors import ArgumentError
from calframe._options import check_choice
from calframe._typing import Ints

Every: TypeAlias = Literal["1d", "1w", "1mo", "1q", "1y"]

PERIOD_WORDS: dict[Every, str] = {"1d": "day", "1w": "week", "1mo": "month", "1q": "quarter", "1y": "year"}

_SHORT_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONGEST_DAYS: dict[Every, int] = {"1d": 1, "1w": 7, "1mo": 31, "1q": 92, "1y": 366}
_NEAR = 3
_FEWEST = 6  # periods that make a course over time; coarser units are tried first


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """Periods in order of time.

    Attributes
    ----------
    every : {"1d", "1w", "1mo", "1q", "1y"}
        Their length.
    starts : tuple of datetime.date
        The first day of each.
    labels : tuple of str
        How each is called, such as "Jul 2013".
    index : ndarray of int64
        The period of each day given; -1 for a day that is missing.
    """

    every: Every
    starts: tuple[dt.date, ...]
    labels: tuple[str, ...]
    index: Ints

    def near(self, earlier: int, later: int) -> bool:
        """Tell whether two periods lie close enough for a run to go on between them."""
        return near(self.every, self.starts[earlier], self.starts[later])


def near(every: Every, earlier: dt.date, later: dt.date) -> bool:
    """Tell whether periods that begin on these days lie close enough for a run to go on: at most three lengths apart.

    Examples
    --------
    >>> near("1mo", dt.date(2026, 1, 1), dt.date(2026, 4, 1)), near("1mo", dt.date(2026, 1, 1), dt.date(2026, 5, 1))
    (True, False)
    """
    return later - earlier <= _NEAR * dt.timedelta(days=_LONGEST_DAYS[every])


def longer(every: Every) -> Every | None:
    """Return the next longer length of a period; None for years.

    Examples
    --------
    >>> longer("1mo"), longer("1y")
    ('1q', None)
    """
    known: tuple[Every, ...] = get_args(Every)
    return dict(pairwise(known)).get(every)


def periods_of(days: Sequence[int | None], *, every: Every | None = None) -> Periods:
    """Roll local days up to periods.

    Parameters
    ----------
    days : sequence of int or None
        Days as numbers such as 20130701.
    every : {"1d", "1w", "1mo", "1q", "1y"}, optional
        Length of a period; weeks begin on Monday. By default the longest that gives at least six periods.

    Examples
    --------
    >>> periods_of([20130701, 20130715, 20130801], every="1mo").labels
    ('Jul 2013', 'Aug 2013')
    """
    dates = [None if day is None else dt.date(day // 10_000, day // 100 % 100, day % 100) for day in days]
    chosen = every or _longest(sorted({date for date in dates if date is not None}))
    starts = sorted({_start(date, chosen) for date in dates if date is not None})
    place = {start: i for i, start in enumerate(starts)}
    index = [-1 if date is None else place[_start(date, chosen)] for date in dates]
    return Periods(
        every=chosen,
        starts=tuple(starts),
        labels=tuple(_label(start, chosen) for start in starts),
        index=np.array(index, dtype=np.int64),
    )


def check_every(every: str | None, time: str | None) -> None:
    """Raise unless a length of periods is known, and there is a time column to cut."""
    if every is None:
        return
    check_choice("every", every, get_args(Every))
    if time is None:
        msg = f"every={every!r} needs time=, the column that it cuts into periods."
        raise ArgumentError(msg)


def _longest(dates: Sequence[dt.date]) -> Every:
    for every in reversed(get_args(Every)):
        if len({_start(date, every) for date in dates}) >= _FEWEST:
            found: Every = every
            return found
    return "1d"


def _start(day: dt.date, every: Every) -> dt.date:
    if every == "1d":
        return day
    if every == "1w":
        return day - dt.timedelta(days=day.weekday())
    if every == "1mo":
        return day.replace(day=1)
    if every == "1q":
        return day.replace(month=day.month - (day.month - 1) % 3, day=1)
    return day.replace(month=1, day=1)


def _label(start: dt.date, every: Every) -> str:
    if every == "1mo":
        return f"{_SHORT_NAMES[start.month - 1]} {start.year}"
    if every == "1q":
        return f"Q{(start.month + 2) // 3} {start.year}"
    return str(start.year) if every == "1y" else start.isoformat()
