"""Columns of a table of any library as polars columns, and new ones put beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs

from calframe._errors import ArgumentError, ColumnClashError, ColumnNotFoundError, ScoreError

Make: TypeAlias = Callable[[pl.DataFrame], pl.DataFrame]
_MADE = "_cf_made"


def check_columns(available: Sequence[Any], used: Mapping[Any, str], new: Sequence[Any]) -> None:
    """Raise unless the used columns, each with its role, are there and the new ones are not."""
    for name, role in used.items():
        if not isinstance(name, str):
            msg = f"{role}= takes the name of a column; got {name!r}."
            raise ArgumentError(msg)
        if name not in available:
            raise ColumnNotFoundError.from_name(name, role=role, available=available)
    for place, name in enumerate(new):
        if not isinstance(name, str) or not name:
            msg = f"name= takes the name of the new column; got {name!r}."
            raise ArgumentError(msg)
        if name in available:
            raise ColumnClashError.from_existing(name)
        if name in new[:place]:
            msg = f"two of the new columns would be called {name!r}; pass another name=, or rename the option."
            raise ColumnClashError(msg)


def with_made(data: Any, used: Sequence[str], make: Make, schema: Mapping[str, Any]) -> Any:
    """Return a table with the columns that a function makes of some of its columns, lazily where it is lazy.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, polars LazyFrame or pyarrow Table.
    used : sequence of str
        The columns that the function takes, as a polars DataFrame.
    make : callable
        The function; it takes all rows at once, so that what it warns of is counted over the whole table.
    schema : mapping of str to polars dtype
        The columns that it makes.
    """
    columns = [cs.by_name(name).as_expr() for name in used]
    if isinstance(data, pl.LazyFrame):
        types = data.collect_schema()
        make(pl.DataFrame(schema={name: types[name] for name in used}))  # refuses wrong types before rows are read
        made = pl.map_batches(
            columns, lambda series: make(pl.DataFrame(series)).to_struct(), return_dtype=pl.Struct(dict(schema))
        )
        return data.with_columns(made.alias(_MADE)).unnest(_MADE)
    if isinstance(data, pl.DataFrame):
        return data.with_columns(make(data.select(columns)).get_columns())
    if isinstance(data, pd.DataFrame):
        found = make(pl.DataFrame({name: series_of(data[name]) for name in used}))
        return data.assign(**{column.name: _pandas_values(column) for column in found.get_columns()})
    if nw.dependencies.is_pyarrow_table(data):
        for column in make(pl.DataFrame({name: pl.from_arrow(data[name]) for name in used})).get_columns():
            data = data.append_column(column.name, column.to_arrow())
        return data
    msg = (
        "answers are read from a pandas or polars DataFrame, a polars LazyFrame or a pyarrow Table; got "
        f"{type(data).__name__}. Convert it first: a DuckDB relation with .pl(), a Dask frame with .compute()."
    )
    raise ArgumentError(msg)


def texts_in(series: pl.Series, role: str) -> pl.Series:
    """Return a column as text, or raise where it holds lists or the like."""
    if series.dtype.is_nested() or series.dtype == pl.Object:
        msg = f"{role} takes a column of texts, one a row; column {series.name!r} has type {series.dtype}."
        raise ScoreError(msg)
    return series.cast(pl.String)


def series_of(column: Any) -> pl.Series:
    """Return a pandas column as polars holds it: arrays are lists, other objects that are not missing are text."""
    if isinstance(column.dtype, pd.ArrowDtype):
        return pl.Series(pl.from_arrow(column.array.__arrow_array__()))
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu":
        return pl.Series(column.to_numpy())
    values = [None if _is_missing(value) else value for value in column.tolist()]
    if values and all(map(_is_plain, values)):
        return pl.Series(values)
    values = [_plain(value, column.name) for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {dict}:
        return pl.DataFrame([value or {} for value in values], infer_schema_length=None).to_struct()
    if len(kinds) > 1:
        values = [value if value is None or isinstance(value, str) else str(value) for value in values]
    return pl.Series(values, dtype=None if kinds else pl.Null, strict=False)


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)  # noqa: PLR0124


def _is_plain(value: Any) -> bool:
    """Tell whether a cell is an array of numbers, which polars takes as it is."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim == 1


def _plain(value: Any, name: Any) -> Any:
    """Return a cell as polars takes it: arrays and tuples as lists, with None for what is missing in them."""
    if isinstance(value, np.ndarray) and value.ndim != 1:
        msg = f"column {name!r} has an array of {value.ndim} dimensions in a cell; each must be one list."
        raise ScoreError(msg)
    if isinstance(value, np.ndarray | list | tuple):
        items = value.tolist() if isinstance(value, np.ndarray) else value
        return [None if _is_missing(item) else item for item in items]
    return value.item() if isinstance(value, np.generic) else value


def _pandas_values(column: pl.Series) -> Any:
    return column.to_numpy() if column.dtype == pl.Float64 else np.array(column.to_list(), dtype=object)
