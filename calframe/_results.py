"""What result objects share: plain records for JSON, a small HTML table, and a frame in the user's library."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl

SCHEMA_VERSION = 1
_SHOWN_ROWS = 20


def json_ready(value: Any) -> Any:
    """Return a value that JSON can hold: NaN as null, infinities and dates as text.

    Examples
    --------
    >>> json_ready({"a": float("nan"), "b": [float("inf"), 1]})
    {'a': None, 'b': ['Infinity', 1]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def rounded(value: Any) -> Any:
    """Return JSON-ready data with floats of ten digits: the last ones of a sum, or p-value, change with the order.

    Examples
    --------
    >>> rounded({"a": [0.1 + 0.2, 1]})
    {'a': [0.3, 1]}
    """
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def to_polars(table: Any) -> pl.DataFrame:
    """Return a small result table as polars, column by column (no pyarrow needed)."""
    if isinstance(table, pl.DataFrame):
        return table
    frame = nw.from_native(table, eager_only=True)
    columns = {}
    for name in frame.columns:
        column = frame.get_column(name)
        missing = column.is_null().to_list()
        values = [None if gone else value for value, gone in zip(column.to_list(), missing, strict=True)]
        columns[name] = pl.Series(name, values, dtype=_type(column.dtype, any_known=not all(missing)), strict=False)
    return pl.DataFrame(columns)


def _type(dtype: Any, *, any_known: bool) -> Any:
    """Return the polars type of a column; None where its values tell it."""
    if dtype.is_float():
        return pl.Float64
    kinds = {nw.Boolean: pl.Boolean, nw.Int64: pl.Int64, nw.String: pl.String, nw.Date: pl.Date}
    return None if any_known else kinds.get(type(dtype))


def like(table: pl.DataFrame, native: Any) -> Any:
    """Return a polars table in the library of an eager `native` table; remote and lazy tables give polars."""
    frame = nw.from_native(native)
    if not isinstance(frame, nw.DataFrame) or frame.implementation.is_polars():
        return table
    columns = {name: table.get_column(name).to_list() for name in table.columns}
    schema = nw.from_native(table).schema
    gaps = {}
    if frame.implementation.is_pandas():  # NumPy has no whole numbers or bools that are missing
        kinds = {name: kind for name, dtype in schema.items() if (kind := _nullable(dtype)) is not None}
        gaps = {name: pd.array(columns[name], dtype=kind) for name, kind in kinds.items() if None in columns[name]}
    columns = {name: values for name, values in columns.items() if name not in gaps}
    rest = {name: dtype for name, dtype in schema.items() if name not in gaps}
    found = nw.from_dict(columns, rest, backend=frame.implementation).to_native()
    return found.assign(**gaps)[table.columns] if gaps else found


def flagged(table: Any, name: str, values: Sequence[bool | None], *, before: str) -> Any:
    """Return an eager table with a column of bools, null where it is None, before another column."""
    frame = nw.from_native(table, eager_only=True)
    if frame.implementation.is_pandas():
        flags = pd.array(list(values), dtype="boolean" if None in values else "bool")
        found = frame.to_native().assign(**{name: flags})
    else:
        found = frame.with_columns(
            nw.new_series(name, list(values), nw.Boolean, backend=frame.implementation)
        ).to_native()
    order = [column for column in frame.columns if column != before]
    place = frame.columns.index(before)
    order[place:place] = [name, before]
    return nw.from_native(found, eager_only=True)[order].to_native()


def _nullable(dtype: Any) -> Any:
    """Return the name of the nullable pandas type of whole numbers and bools; None for others."""
    if isinstance(dtype, nw.Boolean):
        return "boolean"
    return type(dtype).__name__ if dtype.is_integer() else None


def records(table: Any) -> list[dict[str, Any]]:
    """Return a result table as JSON-ready records."""
    frame = to_polars(table)
    columns = [_ready(frame.get_column(name)) for name in frame.columns]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _ready(column: pl.Series) -> list[Any]:
    """Return the values of a column as JSON-ready ones."""
    values = column.to_list()
    if column.dtype.is_integer() or column.dtype in (pl.String, pl.Boolean):
        return values
    return [value if type(value) is float and math.isfinite(value) else json_ready(value) for value in values]


def html_table(table: Any, *, caption: str) -> str:
    """Return the first rows of a table as an HTML fragment; every text is escaped."""
    from html import escape  # noqa: PLC0415  its table of entities is long

    frame = to_polars(table)
    head = "".join(f"<th>{escape(name)}</th>" for name in frame.columns)
    shown = frame.head(_SHOWN_ROWS).iter_rows()
    body = "".join(f"<tr>{''.join(f'<td>{escape(_short(value))}</td>' for value in row)}</tr>" for row in shown)
    more = len(frame) - _SHOWN_ROWS
    foot = f"<p>{more:,} more row{'' if more == 1 else 's'} in <code>.table</code></p>" if more > 0 else ""
    head = f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>{foot}"


def _short(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def counted_once(models: Sequence[str] | None, *counts: Iterable[Any]) -> tuple[int, ...]:
    """Return the sums of counts over segments; of several models those of the one with the largest first count.

    Examples
    --------
    >>> counted_once(["p", "q", "p", "q"], [3, 3, 4, 5], [1, 1, 1, 0])
    (8, 1)
    """
    if models is None:
        return tuple(sum(int(one) for one in column) for column in counts)
    found = {model: counted_once(None, *_of_model(models, model, counts)) for model in dict.fromkeys(models)}
    return max(found.values(), key=lambda sums: sums[0], default=(0,) * len(counts))


def _of_model(models: Sequence[str], model: str, counts: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return [[one for name, one in zip(models, column, strict=True) if name == model] for column in counts]
