"""Dates in result tables: written as text while tables are made, then read by the library of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from calframe._results import to_polars


def as_dates(frame: nw.DataFrame[Any], name: str) -> nw.DataFrame[Any]:
    """Return a frame with a column of ISO dates as dates; as datetimes of pandas, which has no others."""
    if frame.implementation.is_pandas_like():
        return frame.with_columns(nw.col(name).str.to_datetime(format="%Y-%m-%d"))
    return frame.with_columns(nw.col(name).str.to_date(format="%Y-%m-%d"))


def plain(table: Any, name: str) -> pl.DataFrame:
    """Return a result table as polars, with dates in a column whatever library it is of."""
    frame = to_polars(table)
    return frame.with_columns(pl.col(name).cast(pl.Date))


def by_series(table: pl.DataFrame, keys: Sequence[str]) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    """Return the keys and the rows of each series, in their order; the whole table where there are no keys."""
    if not keys or not table.height:
        return [((), table)]
    numbered = {f"key{i}": table.get_column(name) for i, name in enumerate(keys)}  # a name may be a pattern to polars
    places = pl.DataFrame({**numbered, "place": pl.int_range(table.height, eager=True)})
    found = places.group_by(*numbered, maintain_order=True).agg("place")
    return [(row[:-1], table[row[-1]]) for row in found.iter_rows()]
