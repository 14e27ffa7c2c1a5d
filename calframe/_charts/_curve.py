"""The chart of a curve table: one curve as a reliability diagram, several over each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any, Final

import polars as pl
from polars import selectors as cs

from calframe._charts._overlay import overlay
from calframe._charts._reliability import reliability
from calframe._charts._theme import standalone

_MISSING: Final = "(missing)"
_SMALL: Final = 0.5  # below it the axes end near the largest value, not at 100 %


def reliability_curves(table: pl.DataFrame, *, keys: Sequence[str], width: int) -> Any:
    """Draw a table of reliability curves in plain colours, to be shown or saved by itself.

    Parameters
    ----------
    table : polars.DataFrame
        One row per curve and bin: the key columns, `lower`, `upper`, `n`, `mean_score`, `rate`, `rate_low`,
        `rate_high`, `band_low`, `band_high`, `gap`.
    keys : sequence of str
        The columns that tell the curves apart; where they tell only one, it is drawn with its band, gaps and rows.
    width : int
        Total width in pixels.

    Returns
    -------
    altair.VConcatChart or altair.LayerChart
        See `reliability` and `overlay`.
    """
    others = [name for name in table.columns if name not in keys]
    named = table.select(cs.by_name(*others)).with_columns(_curve_names(table, keys))
    bins = named.with_columns(state=_state(), description=_words())
    limit = _limit(bins)
    if bins["curve"].n_unique() > 1:
        return standalone(overlay(bins, width=width, limit=limit))
    return standalone(reliability(bins, bins, width=width, limit=limit))


def _curve_names(table: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """Return the curve of each row as text; two that read the same are told apart by a number."""
    rows = table.select(cs.by_name(*keys)).rows() if keys else [()] * table.height
    names: dict[tuple[Any, ...], str] = {}
    for row in dict.fromkeys(rows):
        name = unique = " · ".join(_MISSING if value is None else str(value) for value in row)
        number = 1
        while unique in names.values():
            number += 1
            unique = f"{name} ({number})"
        names[row] = unique
    return pl.Series("curve", [names[row] for row in rows], dtype=pl.String)


def _state() -> pl.Expr:
    """Tell whether the rate lies in the band of a calibrated model, or the scores say too much or too little."""
    return (
        pl.when(pl.col("rate") < pl.col("band_low"))
        .then(pl.lit("over"))
        .when(pl.col("rate") > pl.col("band_high"))
        .then(pl.lit("under"))
        .otherwise(pl.lit("in"))
    )


def _words() -> pl.Expr:
    """Return what a mark says of its bin."""
    said, happened = (pl.format("{}%", (pl.col(name) * 100).round(1)) for name in ("mean_score", "rate"))
    name = pl.when(pl.col("curve") == "").then(pl.lit("")).otherwise(pl.col("curve") + ": ")
    rows = pl.col("n").map_batches(_thousands, return_dtype=pl.String)
    return pl.format("{}said {}, happened {} of {} rows", name, said, happened, rows)


def _thousands(counts: pl.Series) -> pl.Series:
    return pl.Series([f"{count:,}" for count in counts], dtype=pl.String)


def _limit(bins: pl.DataFrame) -> float:
    """Return a round upper end for both axes: 1, or less where all scores and rates are small."""
    top = max((value for name in ("mean_score", "rate") for value in bins[name].drop_nulls()), default=1.0)
    if top > _SMALL or top <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(top)) / 2
    return round(ceil(top * 1.02 / unit) * unit, 10)
