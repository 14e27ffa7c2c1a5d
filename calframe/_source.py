"""The user's table, opened: used columns found, checked by type, and under private names from here on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl

from calframe._columns import check_columns, check_types
from calframe._errors import ArgumentError, CalframeError
from calframe._pandas import Levels, coded, is_sortable, pandas_ready, vector_values
from calframe._roles import Roles

_LARGEST_WHOLE = 2**53  # up to which floats tell whole numbers apart
_SUPPORTED = (
    "a pandas or polars DataFrame, a polars LazyFrame, a pyarrow Table, or a table that narwhals opens lazily (DuckDB, "
    "PySpark, Dask, Ibis)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An opened table.

    Attributes
    ----------
    frame : narwhals.LazyFrame
        The table with the used columns under private names; of a pandas table a polars frame of values and codes.
    aliases : mapping of str to str
        The private name of each used column. Engines read some names as patterns, so the user's are never asked for.
    types : mapping of str to narwhals dtype
        The type of each used column in the user's table; a column of nulls alone has that of its role.
    recast : frozenset of str
        Columns that must be cast to that type first: those of nulls alone, and text in layouts that cannot be sorted.
    by_text : frozenset of str
        Columns of numbers that become floats by way of text: pyarrow's own cast errs in the last digit of decimals, and
        refuses integers that floats do not tell apart.
    codes : mapping of str to str
        The private names of columns of codes, which stand for the segment columns of a pandas table.
    levels : mapping of str to pandas.Series, or None
        The values behind the codes; None where the table is not of pandas.
    """

    frame: nw.LazyFrame[Any]
    aliases: Mapping[str, str]
    types: Mapping[str, Any]
    recast: frozenset[str] = frozenset()
    by_text: frozenset[str] = frozenset()
    codes: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Levels] | None = None

    @property
    def is_pandas(self) -> bool:
        """Whether the user's table is one of pandas."""
        return self.levels is not None

    def column(self, name: str) -> nw.Expr:
        """Return a used column."""
        found = nw.col(self.aliases[name])
        return found.cast(self.types[name]) if name in self.recast else found

    def value(self, name: str) -> nw.Expr:
        """Return a used column that is read for its values, of a type that can be cast to Float64 without an error."""
        found = self.column(name)
        return found.cast(nw.String).cast(nw.Float64) if name in self.by_text else found

    def key(self, name: str) -> nw.Expr:
        """Return a segment column, or its codes."""
        return nw.col(self.codes[name]) if name in self.codes else self.column(name)

    def vector(self, name: str, classes: Sequence[Any]) -> tuple[list[nw.Expr], nw.Expr]:
        """Return the parts of a column of vectors as Float64, and which of its vectors have another length.

        The fields of a struct are found by the names of the classes, the elements of a list or array by their order.
        """
        dtype, column = self.types[name], self.column(name)
        if isinstance(dtype, nw.Struct):
            return [column.struct.field(str(named)).cast(nw.Float64) for named in classes], nw.lit(value=False)
        column = column.cast(nw.List(nw.Float64))
        odd = ~column.is_null() & ~(column.list.len() == len(classes))
        whole = nw.when(~odd).then(column)
        return [whole.list.get(i) for i in range(len(classes))], odd

    def number(self, name: str) -> nw.Expr:
        """Return a used column as Float64."""
        found = self.value(name)
        return (found.cast(nw.Int8) if isinstance(self.types[name], nw.Boolean) else found).cast(nw.Float64)


def open_source(data: Any, roles: Roles, *, reserved: Iterable[str]) -> Source:
    """Open a table and find the columns of the roles, or raise."""
    if isinstance(data, pl.LazyFrame):
        data.collect_schema()  # a plan that cannot run is refused by polars, in its own words
    frame = opened(data).lazy()
    check_columns(frame, roles, reserved)
    if nw.dependencies.is_pandas_dataframe(data):
        return _pandas_source(pandas_ready(data, roles), roles)
    aliases = _private_names(list(roles.columns()), frame.collect_schema().names())
    types, blank, unknown = _types(frame, roles)
    check_types(types, roles, unknown=unknown)
    arrow_text = {name for name in aliases if isinstance(types[name], nw.String) and frame.implementation.is_pyarrow()}
    return Source(
        frame=_renamed(frame, aliases),
        aliases=aliases,
        types=types,
        recast=frozenset(blank | arrow_text),
        by_text=_by_text(frame, types) if frame.implementation.is_pyarrow() else frozenset(),
    )


def _by_text(frame: nw.LazyFrame[Any], types: Mapping[str, Any]) -> frozenset[str]:
    """Return the columns of a pyarrow table whose numbers pyarrow cannot make floats of, or not the nearest ones."""
    found = {name for name, dtype in types.items() if isinstance(dtype, nw.Decimal)}
    for name in (name for name, dtype in types.items() if dtype.is_integer()):
        column = nw.col(name)
        ends = frame.select(low=column.min(), high=column.max()).collect().row(0)
        if any(end is not None and abs(end) > _LARGEST_WHOLE for end in ends):
            found.add(name)
    return frozenset(found)


def _pandas_source(data: pd.DataFrame, roles: Roles) -> Source:
    types, _, unknown = _types(opened(data).lazy(), roles)
    zoned = {name: dtype for name, dtype in data.dtypes.items() if isinstance(dtype, pd.DatetimeTZDtype)}
    types |= {str(name): nw.Datetime(dtype.unit, str(dtype.tz)) for name, dtype in zoned.items()}
    if roles.vector:
        types[roles.scores[0]] = nw.from_native(vector_values(data[roles.scores[0]]), series_only=True).dtype
    check_types(types, roles, unknown=unknown, sortable={name for name in data.columns if is_sortable(data[name])})
    floats = {name for name in roles.keyed if types[name].is_float()}  # must be whole, which codes would not show
    valued = {roles.label, *roles.scores, *roles.posterior, roles.weight, roles.time, *floats}
    aliases = {name: f"_cf_in{i}" for i, name in enumerate(roles.columns()) if name in valued}
    codes = {name: f"_cf_code{i}" for i, name in enumerate(roles.keyed) if name not in floats}
    frame, levels = coded(data, roles, values=aliases, codes=codes)
    return Source(frame=opened(frame), aliases=aliases, types=types, codes=codes, levels=levels)


def _types(frame: nw.LazyFrame[Any], roles: Roles) -> tuple[dict[str, Any], set[str], dict[str, str]]:
    """Return the types of the used columns, which of them hold nulls alone, and the names of types unknown here."""
    schema = frame.collect_schema()
    unknown = {name: _native_type(frame, name) for name in roles.columns() if isinstance(schema[name], nw.Unknown)}
    blank = {name for name, dtype in unknown.items() if dtype.upper().startswith("NULL")}
    types = {name: _type_of(name, schema[name], roles, blank=name in blank) for name in roles.columns()}
    return types, blank, unknown


def _private_names(used: list[str], available: list[str]) -> dict[str, str]:
    """Return a private name for each used column, none of which the table has."""
    prefix = "_cf_in"
    while any(str(name).startswith(prefix) for name in available):
        prefix = f"_{prefix}"
    return {name: f"{prefix}{i}" for i, name in enumerate(used)}


def _renamed(frame: nw.LazyFrame[Any], aliases: Mapping[str, str]) -> nw.LazyFrame[Any]:
    if not frame.implementation.is_duckdb():
        return frame.rename(dict(aliases))
    quoted = {name.replace('"', '""'): alias for name, alias in aliases.items()}  # DuckDB expands a column named *
    native: Any = frame.to_native()
    renamed: nw.LazyFrame[Any] = opened(
        native.project(", ".join(f'"{name}" AS {alias}' for name, alias in quoted.items()))
    )
    return renamed


def opened(data: Any) -> Any:
    """Return a table as narwhals opens it, or say which tables there are."""
    if nw.dependencies.is_pandas_dataframe(data) and isinstance(data.columns, pd.MultiIndex):
        msg = (
            "the pandas frame has several levels of column names; flatten them, for example with "
            "df.columns.map('_'.join)."
        )
        raise CalframeError(msg)
    try:
        return nw.from_native(data)
    except TypeError as error:
        msg = f"data must be {_SUPPORTED}; got {type(data).__name__}."
        raise ArgumentError(msg) from error
    except nw.exceptions.DuplicateError as error:
        msg = f"the table has two columns of one name ({error}); rename one of them."
        raise CalframeError(msg) from error


def is_eager(data: Any) -> bool:
    """Tell whether a table is in memory."""
    return isinstance(opened(data), nw.DataFrame)


def _native_type(frame: nw.LazyFrame[Any], name: str) -> str:
    """Return what the table's own library calls the type of a column."""
    native = frame.to_native()
    if isinstance(native, pl.LazyFrame):
        return str(native.collect_schema()[name])
    if isinstance(native, pd.DataFrame):
        return str(native.dtypes[name])
    if nw.dependencies.is_pyarrow_table(native):
        return str(native.schema.field(name).type)
    types = dict(zip(native.columns, getattr(native, "types", ()), strict=False))
    return str(types.get(name, "unknown")).strip('"')


def _type_of(name: str, dtype: Any, roles: Roles, *, blank: bool) -> Any:
    if not blank:
        return dtype
    if roles.vector and name in roles.scores:
        return nw.List(nw.Float64())
    if name == roles.label and any(isinstance(named, str) for named in roles.classes):
        return nw.String()
    return nw.Float64() if name in {roles.label, *roles.scores, *roles.posterior, roles.weight} else nw.String()
