"""A column of statements read, each distinct text once."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import polars as pl

from calframe._answers._frames import series_of
from calframe._answers._statements import Read


def read_column(series: pl.Series, reads: Callable[[str], Read], top: float) -> pl.DataFrame:
    """Return what the statements of a column say, in columns `value` and `how`.

    Parameters
    ----------
    series : polars.Series
        Texts or numbers.
    reads : callable
        What reads a text.
    top : float
        What full confidence is in a column of numbers.
    """
    if series.dtype == pl.Object:
        series = series_of(pd.Series(series.to_list(), dtype=object))
    if series.dtype.is_numeric():
        return _numbers(series.cast(pl.Float64).fill_nan(None) / top)
    texts = pl.DataFrame({"text": series.cast(pl.String)})
    distinct = texts.unique()
    each = [Read(None, "missing") if text is None else reads(text) for text in distinct.to_series().to_list()]
    said = pl.DataFrame(each, schema={"value": pl.Float64, "how": pl.String}, orient="row")
    known = said.with_columns(distinct.to_series())
    return texts.join(known, on="text", how="left", nulls_equal=True, maintain_order="left").select("value", "how")


def shares_among(series: pl.Series, found: pl.DataFrame, reads: Callable[[str], Read], top: float) -> pl.Series:
    """Return the numbers of less than 1 without a unit that stand beside larger ones, in a column said to go to `top`.

    Parameters
    ----------
    series : polars.Series
        Texts or numbers.
    found : polars.DataFrame
        What they say on the scale to `top`.
    reads : callable
        What reads a text whose numbers go to 1.
    top : float
        What full confidence is said to be.
    """
    value, is_number = found.get_column("value"), found.get_column("how") != "words"
    if not ((value > 1.0 / top) & is_number).any():
        return series.clear()
    is_small = value.is_between(0.0, 1.0 / top, closed="none").fill_null(value=False)
    small = series.filter(is_small)
    alone = read_column(small, reads, 1.0)
    return small.filter((alone.get_column("how") == "decimal") & (alone.get_column("value") > value.filter(is_small)))


def _numbers(values: pl.Series) -> pl.DataFrame:
    inside = values.is_between(0.0, 1.0)
    value = pl.when(pl.lit(inside)).then(pl.lit(values))
    how = pl.when(pl.lit(values.is_null())).then(pl.lit("missing")).when(pl.lit(inside)).then(pl.lit("decimal"))
    return pl.select(value=value, how=how.otherwise(pl.lit("out of range")))
