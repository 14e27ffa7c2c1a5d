"""The segments of a map: their keys as typed columns, and which curve a row takes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl

from calframe._columns import WHOLE_NUMBERS
from calframe._kernels._lookup import Lookup
from calframe._maps._json import (
    Reader,
    chosen,
    each,
    floats,
    integer,
    number,
    optional,
    required,
    text,
    truth,
    whole,
    wholes,
)
from calframe._typing import Ints

_PHYSICAL = (pl.Date, pl.Datetime, pl.Time)
_HELD: Mapping[str, Any] = {  # the types that keys have, and those in which files hold them
    "String": pl.String,
    "Int64": pl.Int64,
    "UInt64": pl.UInt64,
    "Int128": pl.Int128,
    "UInt128": pl.UInt128,
    "Float64": pl.Float64,
    "Boolean": pl.Boolean,
    "Decimal": pl.String,
    "Date": pl.Int32,
    "Datetime": pl.Int64,
    "Time": pl.Int64,
}
_VALUES: Mapping[Any, Reader] = {pl.String: text, pl.Boolean: truth, pl.Float64: number}
_A_DAY = {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_EPOCH = dt.date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH


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

    @property
    def numbers(self) -> Ints:
        """The numbers of the segments, from 1."""
        return np.arange(1, len(self) + 1)

    def finder(self, values: Ints | None = None) -> Finder:
        """Return what finds a value of each row's segment: its curve, or one of `values`; 0 where it is no segment."""
        values = self.curve if values is None else values
        own = np.flatnonzero(values)
        place, steps = np.zeros(len(own), dtype=np.int64), []
        for key in self.keys if len(own) else ():
            mine = key.alias("").gather(own.tolist())  # its name may be a pattern to polars
            level = mine.unique().sort()
            number = _Numbers.of(level)
            place = place * (len(level) + 1) + number.ranks(mine)
            found = Lookup.of(np.unique(place))
            steps.append(_Step(name=key.name, number=number, width=len(level) + 1, pairs=found))
            place = found(place)
        if steps:
            steps[-1] = replace(steps[-1], pairs=steps[-1].pairs.to(values[own][np.argsort(place)]))
            steps[0] = steps[0].joined()
        return Finder(steps=tuple(steps))

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
    def from_record(cls, record: Any, field: str = "segments") -> Self:
        """Return the segments of a record that `to_record` made; `field` is what errors call it."""
        parts = {name: read(required(record, name, field), f"{field}.{name}") for name, read in _READERS.items()}
        return cls(**parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finder:
    """Finds a value of the segment of each row, segment column by segment column.

    Attributes
    ----------
    steps : tuple of _Step
        One for each segment column; none where there are no segments.
    """

    steps: tuple[_Step, ...]

    def codes(self, rows: pl.DataFrame) -> Ints:
        """Return the value of each row; 0 where its segment is none of those known."""
        return self.over(rows)(slice(None))

    def over(self, rows: pl.DataFrame) -> Callable[[slice], Ints]:
        """Return what gives the values of some of the rows."""
        columns = [step.number.readable(rows.get_column(step.name).alias("")) for step in self.steps]
        nothing = np.zeros(rows.height, dtype=np.int64)

        def found(part: slice) -> Ints:
            place = nothing[part]
            for step, (values, lookup) in zip(self.steps, columns, strict=True):
                rank = values[part] if lookup is None else lookup(values[part])
                if step is not self.steps[0]:
                    place = step.pairs(place * step.width + rank)
                else:
                    place = rank if lookup is not None else step.pairs(rank)
            return place

        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Step:
    """A segment column: its values by number, and the pairs that occur of a place by the columns before and a value."""

    name: str
    number: _Numbers
    width: int
    pairs: Lookup

    def joined(self) -> Self:
        """Return the step with whole numbers looked up for what their pairs stand for, which is one lookup less."""
        whole = self.number.whole
        if whole is None:
            return self
        return replace(self, number=replace(self.number, whole=whole.to(self.pairs(whole.found))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Numbers:
    """The distinct values of a segment column, ascending; their numbers count from 1.

    Attributes
    ----------
    level : polars.Series
        The values.
    whole : Lookup or None
        How they are looked up where they are whole numbers.
    """

    level: pl.Series
    whole: Lookup | None

    @classmethod
    def of(cls, level: pl.Series) -> Self:
        """Return the numbers of distinct values, ascending."""
        return cls(level=level, whole=Lookup.of(level.to_numpy()) if level.dtype == pl.Int64 else None)

    def ranks(self, column: pl.Series) -> Ints:
        """Return the number of each value of a column; 0 where it is none of them."""
        values, lookup = self.readable(column)
        return values if lookup is None else lookup(values)

    def readable(self, column: pl.Series) -> tuple[Ints, Lookup | None]:
        """Return the values of a column as an array with what looks their numbers up, or the numbers themselves."""
        if self.whole is not None and column.dtype in WHOLE_NUMBERS and not column.null_count():
            return column.to_numpy(), self.whole
        return _ranks(column, self.level), None


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
    there = level.cast(column.dtype, strict=False)  # the levels are few, and rows are not rounded on the way
    kept = (there.cast(level.dtype, strict=False) == level).fill_null(value=False)
    if not kept.any():
        return np.zeros(len(column), dtype=np.int64)
    rank = pl.Series(np.arange(1, len(level) + 1)).filter(kept)
    found = column.replace_strict(there.filter(kept), rank, default=0, return_dtype=pl.Int64)
    ranks: Ints = found.fill_null(0).to_numpy()
    return ranks


def _known(values: Any) -> list[float | None]:
    """Return numbers as JSON holds them: null where a segment has none."""
    return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124  NaN


def _key_record(key: pl.Series) -> dict[str, Any]:
    dtype = key.dtype
    record: dict[str, Any] = {"name": key.name, "type": str(dtype.base_type())}
    if isinstance(dtype, pl.Datetime):
        record |= {"unit": dtype.time_unit, "zone": dtype.time_zone}
    if isinstance(dtype, pl.Decimal):
        return record | {"scale": dtype.scale, "values": [str(value) for value in key.to_list()]}
    values = key.to_physical() if isinstance(dtype, _PHYSICAL) else key
    return record | {"values": values.to_list()}


def _key_of(record: Any, field: str) -> pl.Series:
    name, kind = text(required(record, "name", field), f"{field}.name"), required(record, "type", field)
    held = _HELD[chosen(kind, f"{field}.type", tuple(_HELD))]
    values = each(_VALUES.get(held, integer))(required(record, "values", field), f"{field}.values")
    dtype: Any = getattr(pl, kind)
    if kind == "Decimal":
        dtype = pl.Decimal(38, whole(required(record, "scale", field), f"{field}.scale"))
    if kind == "Datetime":
        unit: Any = chosen(required(record, "unit", field), f"{field}.unit", tuple(_A_DAY))
        dtype = pl.Datetime(unit, optional(text)(required(record, "zone", field), f"{field}.zone"))
    if kind in ("Date", "Datetime"):
        day = _A_DAY[dtype.time_unit] if kind == "Datetime" else 1
        if not all(_FIRST_DAY * day <= value < (_LAST_DAY + 1) * day for value in values):
            msg = f"{field}.values has a day outside the years 1 to 9999"
            raise ValueError(msg)
    try:
        return pl.Series(name, values, held).cast(dtype)
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        msg = f"{field}.values must be of the type {kind} ({str(error).splitlines()[0]})"
        raise ValueError(msg) from error


def key_text(value: Any) -> str:
    """Return a key as text, dates in ISO form."""
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


_READERS: Mapping[str, Reader] = {
    "keys": each(_key_of),
    "curve": wholes,
    "n": wholes,
    "low": floats,
    "high": floats,
    "note": each(optional(text)),
}
