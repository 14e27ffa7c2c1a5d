"""Numeric segment columns of many values, cut into bands before anything is summed up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from calframe._columns import Key
from calframe._errors import SegmentError
from calframe._table import Table

FEW_VALUES = 10  # up to which each value of a numeric column is a segment of its own
_DIGITS = (6, 9, 12, 17)  # significant digits of an edge, the fewest that keep all apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """An opened table whose numeric segment columns of many values hold the number of a band.

    Attributes
    ----------
    table : Table
        The table.
    names : mapping of str to tuple of str
        The names of the bands, by column.
    """

    table: Table
    names: Mapping[str, tuple[str, ...]]


def banded(table: Table, *, bands: int | None, most: int, engine: Any) -> Banded:
    """Cut numeric segment columns into bands of about equal numbers of rows.

    A numeric column of more than ten distinct values is cut at its quantiles. An edge is the smallest value at or above
    the quantile and above the smallest value of all; it belongs to the band above it, so that equal values stay
    together and no band is empty. Up to ten values stay as they are; of floats with a fraction each is a band.

    Parameters
    ----------
    table : Table
        The opened table.
    bands : int or None
        Bands wanted; None to leave each value as it is.
    most : int
        Most distinct values of a column that is not cut.
    engine : object
        Passed to polars.
    """
    if bands is None:
        return Banded(table=table, names={})
    looks = [_Look.of(table, key) for key in table.keys]
    columns = [column for look in looks for column in look.columns(bands)]
    if not columns:
        return Banded(table=table, names={})
    found = table.collect(table.raw.select(*columns), engine=engine).row(0)
    seen = dict(zip([f"{look.key.alias}_{name}" for look in looks for name in look.names(bands)], found, strict=True))
    for look in looks:
        look.check(seen, most)
    chosen = {look.key.name: look for look in looks if look.is_cut(seen)}
    cuts = _cuts(table, chosen, seen, bands, engine=engine)
    return Banded(table=_with_bands(table, chosen, cuts), names={name: cut.names for name, cut in cuts.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What is asked of a segment column, under its private name.

    Attributes
    ----------
    key : Key
        The column.
    numeric : bool
        Whether it holds numbers (or codes of numbers).
    levels : ndarray or None
        Of a pandas column the values behind the codes.
    """

    key: Key
    numeric: bool
    levels: Any

    @classmethod
    def of(cls, table: Table, key: Key) -> _Look:
        """Tell what a column holds."""
        if table.levels is not None and key.name in table.levels:
            levels = table.levels[key.name]
            numeric = pd.api.types.is_numeric_dtype(levels.dtype) and not pd.api.types.is_bool_dtype(levels.dtype)
            return cls(key=key, numeric=numeric, levels=levels.to_numpy() if numeric else None)
        dtype = table.raw.collect_schema()[key.alias]
        return cls(key=key, numeric=dtype.is_numeric(), levels=None)

    @property
    def number(self) -> nw.Expr:
        """The column as Float64."""
        return nw.col(self.key.alias).cast(nw.Float64)

    @property
    def fractional(self) -> nw.Expr:
        """Whether a value is no whole number; null where it is missing."""
        return self.number != self.number.floor()

    def names(self, bands: int) -> list[str]:
        """Return what is asked of the column."""
        if not self.numeric:
            return ["unique"]
        return ["unique", "missing", "low", "high", "broken", *(f"q{i}" for i in range(1, bands))]

    def columns(self, bands: int) -> list[nw.Expr]:
        """Return the aggregates that answer it."""
        asked = [nw.col(self.key.alias).n_unique()]
        if self.numeric:
            number = self.number
            broken = nw.when(self.fractional).then(1.0).otherwise(0.0)
            missing = nw.when(nw.col(self.key.alias).is_null()).then(1.0).otherwise(0.0)
            asked += [missing.sum(), number.min(), number.max(), broken.sum()]
            asked += [number.quantile(i / bands, interpolation="linear") for i in range(1, bands)]
        return [one.alias(f"{self.key.alias}_{name}") for one, name in zip(asked, self.names(bands), strict=True)]

    def check(self, seen: Mapping[str, Any], most: int) -> None:
        """Raise if a column that is not cut has too many values."""
        values = seen[f"{self.key.alias}_unique"] or 0
        if not self.numeric and values > most:
            msg = (
                f"segment column {self.key.name!r} has {values:,} distinct values, more than max_segments={most:,}. Is "
                "it an identifier? Put its values into fewer groups first, or raise max_segments=."
            )
            raise SegmentError(msg)

    def is_cut(self, seen: Mapping[str, Any]) -> bool:
        """Tell whether the column becomes bands: many values, or values with a fraction."""
        if not self.numeric or seen[f"{self.key.alias}_low"] is None:
            return False
        values = seen[f"{self.key.alias}_unique"] - (seen[f"{self.key.alias}_missing"] > 0)
        return bool(values > FEW_VALUES or seen[f"{self.key.alias}_broken"] > 0)

    def snapped(self, seen: Mapping[str, Any], bands: int) -> list[nw.Expr]:
        """Return the aggregates that find the edges: values of the column."""
        number, low = self.number, seen[f"{self.key.alias}_low"]
        ends = [seen[f"{self.key.alias}_q{i}"] for i in range(1, bands)]
        ends = [float(end) - 1e-9 * abs(float(end)) for end in ends]  # engines interpolate with different rounding
        found = [nw.when((number >= end) & (number > low)).then(number).min() for end in ends]
        return [one.alias(f"{self.key.alias}_e{i}") for i, one in enumerate(found)]

    def few(self, seen: Mapping[str, Any]) -> bool:
        """Tell whether each value is a band of its own."""
        return bool(seen[f"{self.key.alias}_unique"] - (seen[f"{self.key.alias}_missing"] > 0) <= FEW_VALUES)

    def value(self, number: float) -> Any:
        """Return the value behind a number, which may be a code."""
        return number if self.levels is None else self.levels[int(number)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """Where a column is cut: the lower ends of all bands but the first, and the names of the bands."""

    inner: list[float]
    names: tuple[str, ...]


def _cuts(
    table: Table, looks: Mapping[str, _Look], seen: Mapping[str, Any], bands: int, *, engine: Any
) -> dict[str, _Cut]:
    """Return where each column is cut: at values of its own."""
    many = {name: look for name, look in looks.items() if not look.few(seen)}
    asked = [one for look in many.values() for one in look.snapped(seen, bands)]
    found = iter(table.collect(table.raw.select(*asked), engine=engine).row(0) if asked else ())
    cuts: dict[str, _Cut] = {}
    for name, look in looks.items():
        if name in many:
            inner = sorted({float(edge) for _ in range(1, bands) if (edge := next(found)) is not None})
            ends = [seen[f"{look.key.alias}_low"], *inner, seen[f"{look.key.alias}_high"]]
            cuts[name] = _Cut(inner=inner, names=_band_names(_texts([look.value(end) for end in ends])))
        else:
            values = table.collect(table.raw.select(look.number.alias("_cf_value")).unique(), engine=engine)
            known = sorted(float(value) for value in values.get_column("_cf_value").to_list() if value is not None)
            cuts[name] = _Cut(inner=known[1:], names=tuple(_texts([look.value(value) for value in known])))
    return cuts


def _with_bands(table: Table, looks: Mapping[str, _Look], cuts: Mapping[str, _Cut]) -> Table:
    """Put the number of its band in the place of each value."""
    if not cuts:
        return table
    columns = []
    for name, cut in cuts.items():
        number = looks[name].number
        passed = [nw.when(number >= edge).then(1).otherwise(0) for edge in cut.inner]
        band = nw.sum_horizontal(*passed) if passed else nw.lit(0)
        columns.append(nw.when(~number.is_null()).then(band).cast(nw.Int32).alias(looks[name].key.alias))
    keys = tuple(Key(name=key.name, alias=key.alias) if key.name in cuts else key for key in table.keys)
    return replace(table, raw=table.raw.with_columns(*columns), keys=keys)


def _band_names(ends: list[str]) -> tuple[str, ...]:
    """Return the names of bands from the texts of all their ends.

    Examples
    --------
    >>> _band_names(["18", "35", "60"])
    ('[18, 35)', '[35, 60]')
    """
    *inner, last = pairwise(ends)
    return (*(f"[{low}, {high})" for low, high in inner), f"[{last[0]}, {last[1]}]")


def _texts(values: list[Any]) -> list[str]:
    """Return numbers as text, with as many digits as keep them apart."""
    texts: list[str] = []
    for digits in _DIGITS:
        texts = [
            str(value) if isinstance(value, int | np.integer) else f"{float(value):.{digits}g}" for value in values
        ]
        if len(set(texts)) == len(set(values)):
            break
    return texts
