"""The user's table, opened: used columns found, checked by type, and under private names from here on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl

from calframe._columns import check_columns, check_types
from calframe._errors import ArgumentError, CalframeError, SegmentError
from calframe._roles import Roles

_SUPPORTED = (
    "a pandas or polars DataFrame, a polars LazyFrame, a pyarrow Table, or a table that narwhals opens lazily (DuckDB, "
    "PySpark, Dask, Ibis)"
)
_SORTABLE_OBJECTS = {"date", "time", "decimal"}  # Python objects of one kind, which pandas groups and sorts


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An opened table.

    Attributes
    ----------
    frame : narwhals.LazyFrame
        The table with the used columns under private names.
    aliases : mapping of str to str
        The private name of each used column. Engines read some names as patterns, so the user's are never asked for.
    types : mapping of str to narwhals dtype
        The type of each used column; a column of nulls alone has that of its role.
    recast : frozenset of str
        Columns that must be cast to that type first: those of nulls alone, and text in layouts that cannot be sorted.
    """

    frame: nw.LazyFrame[Any]
    aliases: Mapping[str, str]
    types: Mapping[str, Any]
    recast: frozenset[str]

    def column(self, name: str) -> nw.Expr:
        """Return a used column."""
        found = nw.col(self.aliases[name])
        return found.cast(self.types[name]) if name in self.recast else found

    def number(self, name: str) -> nw.Expr:
        """Return a used column as Float64."""
        found = self.column(name)
        return (found.cast(nw.Int8) if isinstance(self.types[name], nw.Boolean) else found).cast(nw.Float64)


def open_source(data: Any, roles: Roles, *, reserved: Iterable[str]) -> Source:
    """Open a table and find the columns of the roles, or raise."""
    frame = opened(data).lazy()
    check_columns(frame, roles, reserved)
    sortable: set[str] = set()
    if nw.dependencies.is_pandas_dataframe(data):
        data = _pandas_ready(data, roles)
        sortable = {name for name in data.columns if _is_sortable(data[name])}
        frame = opened(data).lazy()
    schema = frame.collect_schema()
    aliases = _private_names(list(roles.columns()), schema.names())
    blank = {name for name in aliases if _is_blank(schema[name], frame, name)}
    types = {name: _type_of(name, schema[name], roles, blank=name in blank) for name in aliases}
    check_types(types, roles, sortable=sortable)
    arrow_text = {name for name in aliases if isinstance(types[name], nw.String) and frame.implementation.is_pyarrow()}
    return Source(frame=_renamed(frame, aliases), aliases=aliases, types=types, recast=frozenset(blank | arrow_text))


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


def _pandas_ready(data: pd.DataFrame, roles: Roles) -> pd.DataFrame:
    """Return the used columns of a pandas frame, object columns in a proper type, categories as text."""
    numbers = {roles.label, *roles.scores, roles.weight}
    used = data[list(roles.columns())]
    proper = {name: _proper(used[name], number=name in numbers) for name in used.columns}
    if roles.time is not None and _is_sortable(proper[roles.time]):
        proper[roles.time] = pd.to_datetime(proper[roles.time])
    return used.assign(**proper)


def _proper(column: pd.Series[Any], *, number: bool) -> pd.Series[Any]:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _text_categories(column)
    if column.dtype != object:
        return column
    if column.isna().all():
        return column.astype("float64" if number else "str")
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if number and kind == "decimal":
        return column.where(column.notna()).astype("float64")
    if kind in _SORTABLE_OBJECTS:
        return column.where(column.notna(), None)
    return column.convert_dtypes()


def _text_categories(column: pd.Series[Any]) -> pd.Series[Any]:
    texts = [str(category) for category in column.cat.categories]
    if len(set(texts)) < len(texts):
        msg = f"column {str(column.name)!r} has categories that read the same as text, such as 1 and '1'; rename them."
        raise SegmentError(msg)
    return column.cat.rename_categories(texts)


def _is_sortable(column: pd.Series[Any]) -> bool:
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in _SORTABLE_OBJECTS


def _is_blank(dtype: Any, frame: nw.LazyFrame[Any], name: str) -> bool:
    """Tell whether a column is of the null type, which narwhals does not tell from other types it does not know."""
    if not isinstance(dtype, nw.Unknown):
        return False
    native = frame.to_native()
    if isinstance(native, pl.LazyFrame):
        return native.collect_schema()[name] == pl.Null
    if isinstance(native, pd.DataFrame):
        return str(native.dtypes[name]).startswith("null")
    if nw.dependencies.is_pyarrow_table(native):
        return str(native.schema.field(name).type) == "null"
    types = dict(zip(native.columns, getattr(native, "types", ()), strict=False))
    return str(types.get(name)).strip('"').upper() == "NULL"


def _type_of(name: str, dtype: Any, roles: Roles, *, blank: bool) -> Any:
    if not blank:
        return dtype
    return nw.Float64() if name in {roles.label, *roles.scores, roles.weight} else nw.String()
