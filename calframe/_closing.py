"""Results back in the user's library: keys under their own names and types, NaN as null, counts as Int64."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl

from calframe._cells import Groups
from calframe._columns import Key
from calframe._errors import counted, warn
from calframe._pandas import Levels, taken
from calframe._table import Table, model_alias
from calframe._typing import Floats, Ints

Column: TypeAlias = Floats | Ints | list[str | None]

_POLARS_TYPES = {float: pl.Float64(), int: pl.Int64(), str: pl.String()}


def closed_frame(
    table: Table, groups: Groups, columns: Mapping[str, Column], *, segment: Ints | None = None
) -> nw.DataFrame[Any]:
    """Return keys and columns as a frame in the library of the cells.

    Parameters
    ----------
    table : Table
        The opened table, for the user's names and types.
    groups : Groups
        The segments.
    columns : mapping of str to column
        The columns beside the keys, one value a row.
    segment : ndarray of int64, optional
        The segment of each row; by default there is one row a segment, in order.
    """
    keys = groups.keys if segment is None else groups.keys[segment.tolist()]
    keys = nw.maybe_reset_index(keys)
    backend: Any = keys.implementation if table.levels is None else "pandas"
    named = [_closed_key(table, keys, key) for key in table.keys]
    if table.roles.several:
        named.append(nw.new_series("model", model_names(table, keys), nw.String, backend=backend))
    if table.view == "classwise":
        named.append(_class_column(table, keys, backend))
    types = {name: _dtype(values) for name, values in columns.items()}
    made = nw.from_dict(dict(columns), types, backend=backend)
    numbers = [nw.col(name) for name, dtype in types.items() if dtype == nw.Float64]
    made = made.with_columns(nw.when(~number.is_nan()).then(number) for number in numbers)
    return made.select(*named, *columns)


def polars_schema(table: Table, columns: Mapping[str, type]) -> dict[str, pl.DataType]:
    """Return the schema that `closed_frame` gives on a polars LazyFrame, without reading a row."""
    native = table.native.collect_schema()
    schema: dict[str, pl.DataType] = {}
    for key in table.keys:
        text = key.categorical or native[key.name] == pl.Null
        schema[key.name] = pl.Int64() if key.whole else pl.String() if text else native[key.name]
    if table.roles.several:
        schema["model"] = pl.String()
    if table.view == "classwise":
        schema["class"] = _POLARS_TYPES[_class_type(table)]
    return schema | {name: _POLARS_TYPES[kind] for name, kind in columns.items()}


def _class_column(table: Table, keys: nw.DataFrame[Any], backend: Any) -> nw.Series[Any]:
    """Return the class of each row under the user's name for it."""
    found = class_values(table, keys.get_column("_cf_class").to_list())
    return nw.new_series("class", found, _dtype(found), backend=backend)


def class_values(table: Table, places: Iterable[int]) -> Column:
    """Return classes by their places under the user's names for them, as text or whole numbers."""
    names = () if table.classes is None else table.classes.names
    found = [names[int(place)] for place in places]
    return np.asarray(found, dtype=np.int64) if _class_type(table) is int else [str(name) for name in found]


def _class_type(table: Table) -> type:
    names = () if table.classes is None else table.classes.names
    whole = [
        isinstance(name, int | float | np.number) and not isinstance(name, bool) and name == int(name) for name in names
    ]
    return int if all(whole) else str


def model_names(table: Table, keys: nw.DataFrame[Any]) -> list[str]:
    """Return the model of each row of private `keys`, under the user's name."""
    names = {model_alias(i): name for i, name in enumerate(table.roles.scores)}
    return [names[alias] for alias in keys.get_column("_cf_model").to_list()]


def count_columns(table: Table, groups: Groups) -> dict[str, Column]:
    """Return the counts that stand before the values: n, n_missing, n_invalid?, weight_sum?."""
    columns: dict[str, Column] = {"n": groups.n, "n_missing": groups.n_missing}
    if table.roles.invalid == "drop":
        columns["n_invalid"] = groups.n_invalid
    if table.weighted:
        columns["weight_sum"] = groups.cells.total("w")
    return columns


def count_types(table: Table) -> dict[str, type]:
    """Return the types of `count_columns`."""
    types: dict[str, type] = {"n": int, "n_missing": int}
    if table.roles.invalid == "drop":
        types["n_invalid"] = int
    if table.weighted:
        types["weight_sum"] = float
    return types


def warn_empty_categories(table: Table, groups: Groups) -> None:
    """Name categories that a segment column declares but no row has."""
    for key in table.keys:
        empty = empty_categories(table, groups, key)
        if empty:
            listed = ", ".join(map(repr, empty))
            warn(
                f"segment column {key.name!r} declares categories that no row has: {listed}; they get no row in the "
                "result."
            )


def warn_infinite(metrics: Sequence[str], impossible: Mapping[str | None, int]) -> None:
    """Say once which losses are infinite, and how many rows give what happened the probability 0.

    Parameters
    ----------
    metrics : sequence of str
        The losses that are infinite; nothing is said where none is.
    impossible : mapping of str to int
        Those rows by model, None for the only one.
    """
    if not metrics:
        return
    told = {name: rows for name, rows in impossible.items() if rows}
    rows = [counted(rows) + ("" if name is None else f" of model {name!r}") for name, rows in told.items()]
    give = "gives" if list(told.values()) == [1] else "give"
    cause = f"{' and '.join(rows) or 'some rows'} {give} probability 0 to what happened."
    if "log_loss" not in metrics:
        warn(f"{', '.join(metrics)} {'is' if len(metrics) == 1 else 'are'} infinite: {cause}")
        return
    others = [name for name in metrics if name != "log_loss"]
    too = f" {', '.join(others)} {'is' if len(others) == 1 else 'are'}, too." if others else ""
    warn(f"log_loss is infinite: {cause} Pass clip= (for example clip=1e-15) for a finite value.{too}")


def empty_categories(table: Table, groups: Groups, key: Key) -> list[str]:
    """Return the declared categories of a key that do not occur, in declared order."""
    if not key.categorical:
        return []
    seen = set(_closed_key(table, groups.keys, key).to_list())
    declared = declared_categories(table, key) or _dictionary(table, key)
    return [category for category in declared if category not in seen]


def declared_categories(table: Table, key: Key) -> list[str]:
    """Return the categories that a column's type declares, in their order; none where the type declares none."""
    frame = nw.from_native(table.native)
    dtype = frame.collect_schema()[key.name]
    if isinstance(dtype, nw.Enum):
        return [str(category) for category in getattr(dtype, "categories", ())]
    if nw.dependencies.is_pandas_dataframe(table.native):
        declared = getattr(table.native[key.name].dtype, "categories", None)
        return [] if declared is None else [str(category) for category in declared]
    return []


def _dictionary(table: Table, key: Key) -> list[str]:
    """Return the values in the dictionary of an Arrow column, whose order says nothing; none of other columns."""
    frame = nw.from_native(table.native)
    if not isinstance(frame, nw.DataFrame) or frame.implementation.is_polars():
        return []
    column = frame.get_column(key.name).to_arrow()
    chunks = getattr(column, "chunks", [column])
    values = [value for chunk in chunks for value in chunk.dictionary.to_pylist()]
    return [str(value) for value in dict.fromkeys(values) if value is not None]


def _closed_key(table: Table, keys: nw.DataFrame[Any], key: Key) -> nw.Series[Any]:
    """Return a key column under its own name and type."""
    return _typed_key(table, keys, key).alias(key.name)


def _typed_key(table: Table, keys: nw.DataFrame[Any], key: Key) -> nw.Series[Any]:
    """Return a key column of its own type under its private name: work on a polars column named `^x$` goes astray."""
    column = keys.get_column(key.alias)
    if table.levels is not None:
        closed: nw.Series[Any] = nw.from_native(_pandas_key(table.levels, column, key), series_only=True)
        return closed
    if key.categorical:
        column = column.cast(nw.String)
    return column.cast(nw.Int64) if key.whole else column


def _pandas_key(levels: Mapping[str, Levels], column: nw.Series[Any], key: Key) -> Any:
    if key.whole:
        return pd.Series([None if value is None else int(value) for value in column.to_list()], dtype="Int64")
    return taken(levels[key.name], column.to_list())


def _dtype(values: Column) -> Any:
    if isinstance(values, list):
        return nw.String
    return nw.Int64 if values.dtype == np.int64 else nw.Float64


def keys_as_text(table: Table, groups: Groups, key: Key) -> Iterable[str | None]:
    """Return one key as text, None where it is missing, in segment order."""
    column = _typed_key(table, groups.keys, key)
    missing = column.is_null().to_list()
    return [None if gone else str(value) for value, gone in zip(column.to_list(), missing, strict=True)]


def unique_names(values: Sequence[str | None]) -> tuple[str, ...]:
    """Return one text a value: "(missing)" for a null, "(empty)" for an empty text, never two the same.

    Examples
    --------
    >>> unique_names(["a", "", None, "(missing)"])
    ('a', '(empty)', '(missing) 2', '(missing)')
    """
    taken = {value for value in values if value}
    names = []
    for value in values:
        name = unique = "(missing)" if value is None else value or "(empty)"
        number = 1
        while not value and unique in taken:
            number += 1
            unique = f"{name} {number}"
        names.append(unique)
        taken.add(unique)
    return tuple(names)
