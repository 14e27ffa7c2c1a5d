"""Days that a text or a number names, and the periods in which there is no row."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

from calframe._options import is_whole
from calframe._periods import Every, periods_of

_MONTHS: dict[Every, int] = {"1mo": 1, "1q": 3, "1y": 12}
_END = 12 * (dt.date.max.year + 1)  # months of the years there are
_NAMES = tuple(label[:3] for label in periods_of([2000_01_01 + 100 * i for i in range(12)], every="1mo").labels)
_NAMED = re.compile(r"(?:(?P<word>[A-Z][a-z]{2}) |Q(?P<quarter>[1-4]) )?(?P<year>\d{4})(?:-(?P<month>\d{2}))?")


def next_start(start: dt.date, every: Every) -> dt.date:
    """Return the first day of the period after one; the latest date there is where that lies beyond it.

    Examples
    --------
    >>> next_start(dt.date(2013, 12, 1), "1mo").isoformat(), next_start(dt.date(2024, 2, 26), "1w").isoformat()
    ('2014-01-01', '2024-03-04')
    """
    if every not in _MONTHS:
        step = dt.timedelta(days=7 if every == "1w" else 1)
        return start + min(step, dt.date.max - start)
    month = start.year * 12 + start.month - 1 + _MONTHS[every]
    if month >= _END:
        return dt.date.max
    return start.replace(year=month // 12, month=month % 12 + 1)


def empty_periods(starts: Sequence[dt.date], every: Every) -> list[dt.date]:
    """Return the first days of the periods between the first and the last of `starts` that are not among them."""
    found, known = [], set(starts)
    start = starts[0] if starts else None
    while start is not None and start < starts[-1]:
        start = next_start(start, every)
        if start not in known:
            found.append(start)
    return found


def start_of(day: dt.date, every: Every) -> dt.date:
    """Return the first day of the period of a day."""
    return periods_of([day.year * 10_000 + day.month * 100 + day.day], every=every).starts[0]


def days_named(one: Any) -> tuple[dt.date, dt.date] | None:
    """Return the first and the last day of what a date, a number or a text names; None where it names nothing.

    Examples
    --------
    >>> [day.isoformat() for day in days_named("2013-09")], [day.isoformat() for day in days_named(2013)]
    (['2013-09-01', '2013-09-30'], ['2013-01-01', '2013-12-31'])
    """
    if isinstance(one, dt.date):
        day = one.date() if isinstance(one, dt.datetime) else one
        return day, day
    text = str(one) if is_whole(one) else one
    if not isinstance(text, str):
        return None
    try:
        return _span(text) or (dt.date.fromisoformat(text),) * 2
    except ValueError:
        return None


def _span(text: str) -> tuple[dt.date, dt.date] | None:
    """Read a year, a quarter or a month: 2013, Q3 2013, Sep 2013, 2013-09."""
    named = _NAMED.fullmatch(text)
    if named is None or (named["month"] and (named["word"] or named["quarter"])):
        return None
    every: Every = "1y"
    month = 1
    if named["word"]:
        every, month = "1mo", _NAMES.index(named["word"]) + 1
    elif named["quarter"]:
        every, month = "1q", 3 * int(named["quarter"]) - 2
    elif named["month"]:
        every, month = "1mo", int(named["month"])
    first = dt.date(int(named["year"]), month, 1)
    after = next_start(first, every)
    return first, after if after == dt.date.max else after - dt.timedelta(days=1)
