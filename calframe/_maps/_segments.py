"""The segments of a map: their keys as typed columns, and which curve a row takes."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from calframe._typing import Ints

_MOST_PLACES = 2**20  # numbers that are looked up in a table of all of them
_FAR = 2**62
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
_PHYSICAL = (pl.Date, pl.Datetime, pl.Time, pl.Duration)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segments:
    """Segments of a map, one value each.

    Attributes
    ----------
    keys : tuple of polars.Series
        The columns that tell them apart, under the user's names; a segment with a null key is not among them.
    curve : ndarray of int64
        The number of the curve that the segment takes; 0 is the pooled one.
    n : ndarray of int64
        Rows it was fitted on.
    low, high : ndarray
        The lowest and highest score there.
    note : tuple of (str or None)
        What is to be said of its fit.
    """

    keys: tuple[pl.Series, ...]
    curve: Ints
    n: Ints
    low: Any
    high: Any
    note: tuple[str | None, ...]

    @classmethod
    def none(cls) -> Self:
        """Return no segments: every row takes the pooled curve."""
        nothing = np.zeros(0)
        whole = nothing.astype(np.int64)
        return cls(keys=(), curve=whole, n=whole, low=nothing, high=nothing, note=())

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.curve)

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(key.name for key in self.keys)

    def finder(self) -> Finder:
        """Return what finds the curve of each row of a table."""
        own = np.flatnonzero(self.curve)
        curves, place = self.curve[own], np.zeros(len(own), dtype=np.int64)
        steps = []
        for key in self.keys if len(own) else ():
            mine = key.alias("").gather(own.tolist())  # its name may be a pattern to polars
            level = mine.unique().sort()
            place = place * (len(level) + 1) + _ranks(mine, level)
            steps.append((key.name, level, np.unique(place)))
            place = _looked_up(place, steps[-1][2])
        taken = np.zeros(len(own) + 1, dtype=np.int64)
        taken[place] = curves
        return Finder(steps=tuple(steps), curve=taken)

    def to_record(self) -> dict[str, Any]:
        """Return the segments as JSON-ready data."""
        return {
            "keys": [_key_record(key) for key in self.keys],
            "curve": self.curve.tolist(),
            "n": self.n.tolist(),
            "low": _known(self.low),
            "high": _known(self.high),
            "note": list(self.note),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Return the segments of a record that `to_record` made."""
        return cls(
            keys=tuple(_key_of(key) for key in record["keys"]),
            curve=np.array(record["curve"], dtype=np.int64),
            n=np.array(record["n"], dtype=np.int64),
            low=np.array(record["low"], dtype=np.float64),
            high=np.array(record["high"], dtype=np.float64),
            note=tuple(record["note"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finder:
    """Finds the curves of rows, column by column.

    Attributes
    ----------
    steps : tuple of (str, polars.Series, ndarray of int64)
        A segment column, its values, and the pairs that occur: of a place by the columns before and a value.
    curve : ndarray of int64
        The curve of each place by all columns; place 0 was not seen.
    """

    steps: tuple[tuple[str, pl.Series, Ints], ...]
    curve: Ints

    def codes(self, rows: pl.DataFrame) -> Ints:
        """Return the curve of each row."""
        place = np.zeros(rows.height, dtype=np.int64)
        for name, level, pairs in self.steps:
            place = _looked_up(place * (len(level) + 1) + _ranks(rows.get_column(name).alias(""), level), pairs)
        codes: Ints = self.curve[place]
        return codes


def stored(key: pl.Series) -> pl.Series:
    """Return a key column in the type in which a map keeps it: text for categories, Int64 for whole numbers."""
    if isinstance(key.dtype, pl.Categorical | pl.Enum):
        return key.cast(pl.String)
    if key.dtype.is_integer():
        short = key.cast(pl.Int64, strict=False)
        return short if short.null_count() == key.null_count() else key
    return key.cast(pl.Float64) if key.dtype.is_float() else key


def _ranks(column: pl.Series, level: pl.Series) -> Ints:
    """Return the place of each value of a column among levels, from 1; 0 where it is none of them."""
    if isinstance(column.dtype, pl.Null):
        return np.zeros(len(column), dtype=np.int64)
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if column.dtype in _WHOLE and level.dtype == pl.Int64 and not column.null_count():
        return _looked_up(column.cast(pl.Int64).to_numpy(), level.to_numpy())
    there = level.cast(column.dtype, strict=False)  # the levels are few, and rows are not rounded on the way
    kept = (there.cast(level.dtype, strict=False) == level).fill_null(value=False)
    if not kept.any():
        return np.zeros(len(column), dtype=np.int64)
    rank = pl.Series(np.arange(1, len(level) + 1)).filter(kept)
    found = column.replace_strict(there.filter(kept), rank, default=0, return_dtype=pl.Int64)
    ranks: Ints = found.fill_null(0).to_numpy()
    return ranks


def _looked_up(values: Ints, known: Ints) -> Ints:
    """Return the place of each value among those known, ascending, from 1; 0 where it is none of them."""
    low, high = int(known[0]) - 1, int(known[-1]) + 1
    if high - low < _MOST_PLACES and -_FAR < low < high < _FAR:
        table = np.zeros(high - low + 1, dtype=np.int64)
        table[known - low] = np.arange(1, len(known) + 1)
        found: Ints = table[np.clip(values, low, high) - low]
        return found
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at + 1, 0)


def _known(values: Any) -> list[float | None]:
    """Return numbers as JSON holds them: null where a segment has none."""
    return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124  NaN


def _key_record(key: pl.Series) -> dict[str, Any]:
    dtype = key.dtype
    record: dict[str, Any] = {"name": key.name, "type": str(dtype.base_type())}
    if isinstance(dtype, pl.Datetime | pl.Duration):
        record["unit"] = dtype.time_unit
    if isinstance(dtype, pl.Datetime):
        record["zone"] = dtype.time_zone
    if isinstance(dtype, pl.Decimal):
        return record | {"scale": dtype.scale, "values": [str(value) for value in key.to_list()]}
    values = key.to_physical() if isinstance(dtype, _PHYSICAL) else key
    return record | {"values": values.to_list()}


def _key_of(record: dict[str, Any]) -> pl.Series:
    kind, name, values = record["type"], record["name"], record["values"]
    dtype: Any = getattr(pl, kind)
    if kind == "Decimal":
        return pl.Series(name, values, pl.String).cast(pl.Decimal(38, record["scale"]))
    if kind == "Datetime":
        dtype = pl.Datetime(record["unit"], record["zone"])
    if kind == "Duration":
        dtype = pl.Duration(record["unit"])
    physical = pl.Int32 if kind == "Date" else pl.Int64
    made = pl.Series(name, values, physical if kind in {"Date", "Datetime", "Time", "Duration"} else dtype)
    return made.cast(dtype)


def key_text(value: Any) -> str:
    """Return a key as text, dates in ISO form."""
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
