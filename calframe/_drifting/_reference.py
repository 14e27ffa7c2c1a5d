"""What periods are compared with: some periods, those just before, or another table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calframe._drifting._spans import days_named, start_of
from calframe._errors import ArgumentError
from calframe._options import check_whole
from calframe._periods import Periods
from calframe._source import opened
from calframe._typing import Bools

Kind: TypeAlias = Literal["periods", "rolling", "table"]

_FIRST, _ROLLING = "first", "rolling"
_WINDOW = 3  # periods behind a rolling reference


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """The reference.

    Attributes
    ----------
    kind : {"periods", "rolling", "table"}
        What it is.
    periods : ndarray of bool
        Which periods belong to it; none where it is not periods.
    window : int
        How many periods before a period are its reference, where that is rolling.
    words : str
        How it is called.
    labels : tuple of str
        The labels of its periods.
    """

    kind: Kind
    periods: Bools
    window: int
    words: str
    labels: tuple[str, ...] = ()

    @classmethod
    def from_argument(cls, reference: Any, periods: Periods, *, window: int) -> Reference:
        """Read the ``reference=`` argument."""
        count = len(periods.starts)
        none = np.zeros(count, dtype=np.bool_)
        if is_table(reference):
            return cls(kind="table", periods=none, window=0, words="the reference table")
        if isinstance(reference, str) and reference == _ROLLING:
            words = "the period before" if window == 1 else f"the {window} periods before"
            return cls(kind="rolling", periods=none, window=window, words=words)
        if reference is None:
            chosen = np.arange(count) < max((count + 2) // 3, 1)
        elif isinstance(reference, str) and reference == _FIRST:
            chosen = np.arange(count) < 1
        else:
            chosen = _chosen(reference, periods)
        labels = tuple(label for label, mine in zip(periods.labels, chosen, strict=True) if mine)
        return cls(kind="periods", periods=chosen, window=0, words=_words(labels), labels=labels)


def is_table(reference: Any) -> bool:
    """Tell whether ``reference=`` is a table: anything that names no periods."""
    return reference is not None and not isinstance(reference, str | dt.date | tuple | list | int | np.integer)


def check_reference(reference: Any, time: str | None, window: Any) -> int:
    """Return the number of periods behind a rolling reference; raise unless arguments fit each other.

    There must be a time column, or a second table that takes its place, and a `window` only where it is used.
    """
    if time is None and not is_table(reference):
        msg = "drift needs time=, the column of dates or datetimes, unless reference= is a second table."
        raise ArgumentError(msg)
    if is_table(reference):
        try:
            opened(reference)
        except ArgumentError as error:
            msg = (
                "reference= takes a period's label, a date, a pair of dates, 'first', 'rolling' or a second table; got "
                f"{reference!r}."
            )
            raise ArgumentError(msg) from error
    if window is None:
        return _WINDOW
    check_whole("window", window, 1)
    if not (isinstance(reference, str) and reference == _ROLLING):
        msg = f"window={window} is the number of periods behind reference='rolling'; leave it out, or ask for that."
        raise ArgumentError(msg)
    return int(window)


def _chosen(reference: Any, periods: Periods) -> Bools:
    """Return the periods that a label, a date, a month, a quarter or a year names, or those from one to another."""
    pair = isinstance(reference, tuple | list)
    ends = list(reference) if pair else [reference]
    spans = [_days(one, periods) for one in ends]
    if len(spans) != 1 + pair or None in spans:
        raise _unknown(reference, periods)
    (first, _), (_, last) = (span for span in (spans[0], spans[-1]) if span is not None)
    start = start_of(first, periods.every)
    chosen = np.array([start <= one <= last for one in periods.starts], dtype=np.bool_)
    if not chosen.any():
        raise _unknown(reference, periods)
    return chosen


def _days(one: Any, periods: Periods) -> tuple[dt.date, dt.date] | None:
    if isinstance(one, str) and one in periods.labels:
        start = periods.starts[periods.labels.index(one)]
        return start, start
    return days_named(one)


def _unknown(reference: Any, periods: Periods) -> ArgumentError:
    ends: Sequence[str] = (periods.labels[0], periods.labels[-1]) if periods.labels else ("none", "none")
    return ArgumentError(
        f"reference= names no period of the table; got {reference!r}. Give a period's label, a date in it, a month "
        f"(2013-09), a year, a pair of them, 'first', 'rolling' or a second table; periods run from {ends[0]!r} to "
        f"{ends[1]!r}."
    )


def _words(labels: Sequence[str]) -> str:
    if not labels:
        return "no period"
    return labels[0] if len(labels) == 1 else f"{labels[0]} to {labels[-1]}"
