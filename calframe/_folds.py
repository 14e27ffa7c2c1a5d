"""Folds: which rows a map is fitted on, and which it then calibrates; no map calibrates a row that it has seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._errors import ArgumentError, ColumnNotFoundError, EmptyTableError, SegmentError
from calframe._options import is_whole, seed_of
from calframe._typing import Bools, Ints

_MOST_FOLDS = 1000  # each is a fit of its own
_TEXT = (nw.String, nw.Categorical, nw.Enum, nw.Boolean)  # their order need not be that of time


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """How rows are split.

    Attributes
    ----------
    folds : int or str
        The number of folds, or a column that names the fold of each row.
    group : str or None
        A column whose rows stay together.
    time : str or None
        A column by which rows are ordered: a map is fitted on earlier folds only.
    seed : int
        Of random folds.
    """

    folds: int | str
    group: str | None
    time: str | None
    seed: int

    @classmethod
    def from_arguments(cls, folds: Any, *, group: Any, time: Any, rng: Any) -> Folds:
        """Check the arguments and gather them."""
        given = {name: value for name, value in (("group", group), ("time", time)) if value is not None}
        for name, value in given.items():
            if not isinstance(value, str):
                msg = f"{name}= takes the name of one column; got {value!r}."
                raise ArgumentError(msg)
        if isinstance(folds, str):
            if given:
                listed = " and ".join(f"{name}={value!r}" for name, value in given.items())
                msg = f"folds={folds!r} names the fold of each row already; leave {listed} out."
                raise ArgumentError(msg)
        elif not is_whole(folds) or not 2 <= folds <= _MOST_FOLDS:
            msg = f"folds must be a whole number from 2 to {_MOST_FOLDS}, or the name of a fold column; got {folds!r}."
            raise ArgumentError(msg)
        if len(given) > 1:
            msg = (
                "group= and time= are two ways to split rows; pass one of them, or a fold column of your own as folds=."
            )
            raise ArgumentError(msg)
        return cls(folds=folds if isinstance(folds, str) else int(folds), group=group, time=time, seed=seed_of(rng))

    def check_columns(self, schema: Mapping[str, Any]) -> None:
        """Raise unless a table has the columns that the split reads, in a type that it can use."""
        named = {"folds": self.folds, "group": self.group, "time": self.time}
        for role, name in named.items():
            if isinstance(name, str) and name not in schema:
                raise ColumnNotFoundError.from_name(name, role=role, available=list(schema))
        if self.time is not None and isinstance(schema[self.time], _TEXT):
            msg = (
                f"time column {self.time!r} has type {schema[self.time]}, whose order need not be that of time; turn "
                "it into dates or numbers."
            )
            raise SegmentError(msg)

    def split(self, frame: nw.DataFrame[Any]) -> Iterator[tuple[Bools, Bools]]:
        """Give, fold after fold, the rows to fit on and those to calibrate; the first by time has none to fit on."""
        fold = self.assigned(frame)
        for one in range(int(fold.max()) + 1):
            yield (fold < one if self.time is not None else fold != one), fold == one

    def groups(self, frame: nw.DataFrame[Any]) -> Ints | None:
        """Return the group of each row, from 0; None where rows have none."""
        return None if self.group is None else _codes(frame, self.group, role="group", fewest=1)

    def assigned(self, frame: nw.DataFrame[Any]) -> Ints:
        """Return the fold of each row, from 0; every fold has rows."""
        self.check_columns(frame.schema)
        if not len(frame):
            raise EmptyTableError.from_table()
        if isinstance(self.folds, str):
            return _codes(frame, self.folds, role="fold", fewest=2)
        if self.time is not None:
            return _in_blocks(_codes(frame, self.time, role="time", fewest=2), self.folds)
        rng = np.random.default_rng(self.seed)
        if self.group is not None:
            return _together(_codes(frame, self.group, role="group", fewest=self.folds), self.folds, rng)
        if len(frame) < self.folds:
            rows = f"{len(frame)} row{'s' if len(frame) > 1 else ''}"
            msg = f"folds={self.folds} needs {self.folds} rows or more; the table has {rows}."
            raise ArgumentError(msg)
        return rng.permutation(len(frame)) % self.folds


def _codes(frame: nw.DataFrame[Any], name: str, *, role: str, fewest: int) -> Ints:
    """Return the place of each value of a column in their order."""
    column = frame.get_column(name)
    absent = column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
    missing = int(absent.sum())
    if missing:
        msg = f"{role} column {name!r} is null in {missing:,} row{'s' if missing > 1 else ''}; every row must have one."
        raise SegmentError(msg)
    values = column.to_list()
    try:
        levels = sorted(set(values))
    except TypeError as error:
        msg = f"{role} column {name!r} mixes values that have no common order ({error}); turn it into text."
        raise SegmentError(msg) from error
    if len(levels) < fewest:
        has = f"{len(levels)} value{'s' if len(levels) != 1 else ''}"
        msg = f"{role} column {name!r} has {has}; {fewest} or more are needed."
        raise SegmentError(msg)
    places = {value: place for place, value in enumerate(levels)}
    return np.array([places[value] for value in values], dtype=np.int64)


def _in_blocks(order: Ints, folds: int) -> Ints:
    """Return blocks of about equally many rows in order, those of one time together."""
    rows = np.bincount(order)
    middle = np.cumsum(rows) - rows / 2.0
    block = np.floor(folds * middle / rows.sum()).astype(np.int64)
    _, block = np.unique(block, return_inverse=True)
    found: Ints = block[order]
    return found


def _together(group: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """Return folds of about equally many rows: the largest group first, each to the smallest fold so far."""
    rows = np.bincount(group)
    shuffled = rng.permutation(len(rows))
    fold, filled = np.zeros(len(rows), dtype=np.int64), np.zeros(folds)
    for one in shuffled[np.argsort(-rows[shuffled], kind="stable")]:
        fold[one] = int(np.argmin(filled))
        filled[fold[one]] += rows[one]
    return fold[group]
