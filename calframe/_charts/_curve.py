"""The chart of a curve table: one curve as a reliability diagram, several over each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10
from typing import Any, Final

import polars as pl
from polars import selectors as cs

from calframe._charts._axes import upper_end
from calframe._charts._captions import curve_marks, joined, line_marks, lines_marks, overlay_marks
from calframe._charts._diagram import SAID
from calframe._charts._lines import reliability_line
from calframe._charts._names import curve_names, thousands
from calframe._charts._overlay import MOST_RIBBONS, overlay, overlay_lines
from calframe._charts._reliability import reliability
from calframe._charts._theme import standalone
from calframe._typing import Notion
from calframe._words._numbers import MINUS

_CONFIDENCE: Final = "said (confidence)"
_NOUN: Final = pl.when(pl.col("n") == 1).then(pl.lit(" row")).otherwise(pl.lit(" rows"))


def reliability_curves(
    table: pl.DataFrame,
    *,
    keys: Sequence[str],
    width: int,
    method: str = "binned",
    notion: Notion | None = None,
    edges: bool = True,
    level: str | None = None,
) -> Any:
    """Draw a table of reliability curves in plain colours, to be shown or saved by itself.

    Parameters
    ----------
    table : polars.DataFrame
        One row per curve and bin, step or point: the key columns, `lower`, `upper`, `n`, perhaps `weight_sum`,
        `mean_score`, `rate`, `rate_low`, `rate_high`, `band_low`, `band_high`, `gap`.
    keys : sequence of str
        The columns that tell the curves apart; where they tell only one, it is drawn with its intervals, band and
        gaps.
    width : int
        Total width in pixels.
    method : {"binned", "isotonic", "kernel", "loess"}
        How the curves were made: bins are dots, isotonic steps and smooth curves are lines.
    notion : {"confidence", "classwise"}, optional
        Of which scores they are.
    edges : bool, default True
        Whether bins lie between edges that are known beforehand. Only then is one curve drawn over a histogram: steps
        and bins of equal weight have widths of their own, and bars on them would mislead.
    level : str, optional
        Confidence level of intervals and band, such as "95%", for the caption.

    Returns
    -------
    altair.VConcatChart or altair.LayerChart
        See `reliability`, `reliability_line`, `overlay` and `overlay_lines`.
    """
    steps = method == "isotonic"
    others = [name for name in table.columns if name not in keys]
    names, labels = curve_names(table, keys)
    named = table.select(cs.by_name(*others)).with_columns(name=names, curve=labels)
    limit = _limit(named, steps=steps)
    weight = pl.col("weight_sum" if "weight_sum" in table.columns else "n")
    points = named.with_columns(weight=weight, state=_state(), description=_words(method, limit))
    said = _CONFIDENCE if notion == "confidence" else SAID
    place: dict[str, Any] = {"width": width, "limit": limit, "said": said}
    if points["curve"].n_unique() > 1:
        if method == "binned":
            return standalone(overlay(points, **place), caption=joined(overlay_marks(level)), width=width)
        many = points["curve"].n_unique() > MOST_RIBBONS
        marks = joined(lines_marks(level, ribbons=not many))
        return standalone(overlay_lines(points, steps=steps, **place), caption=marks, width=width)
    histogram = points if edges and not steps else None
    if method == "binned" or points.height <= 1:
        return standalone(reliability(points, histogram, **place), caption=joined(curve_marks(level)), width=width)
    line = reliability_line(points, histogram, steps=steps, **place)
    return standalone(line, caption=joined(line_marks(level)), width=width)


def _state() -> pl.Expr:
    """Tell whether the rate lies in the band of a calibrated model, or the scores say too much or too little."""
    return (
        pl.when(pl.col("rate") < pl.col("band_low"))
        .then(pl.lit("over"))
        .when(pl.col("rate") > pl.col("band_high"))
        .then(pl.lit("under"))
        .otherwise(pl.lit("in"))
    )


def _words(method: str, limit: float) -> pl.Expr:
    """Return what a mark says of its bin, step or point, with as many decimals as small scores need."""
    digits = 1 + ceil(-log10(limit))
    columns = ("mean_score", "rate", "lower", "upper")
    said, happened, lower, upper = (pl.format("{}%", (pl.col(name) * 100).round(digits)) for name in columns)
    rows = pl.format("{}{}", pl.col("n").map_batches(thousands, return_dtype=pl.String), _NOUN)
    low, high = (pl.format("{}%", (pl.col(name) * 100).round(digits)) for name in ("rate_low", "rate_high"))
    size = (pl.col("gap") * 100).round(digits)
    sign = pl.when(size > 0).then(pl.lit("+")).when(size < 0).then(pl.lit(MINUS)).otherwise(pl.lit(""))
    gap = pl.format(", gap {}{} pp", sign, size.abs())
    interval = pl.format(" (interval {} to {})", low, high)
    more = pl.concat_str(interval.fill_null(""), gap.fill_null(""))
    if method == "binned":
        words = pl.format("said {}, happened {} of {}{}", said, happened, rows, more)
    elif method == "isotonic":
        range_ = pl.when(lower == upper).then(lower).otherwise(pl.format("{} to {}", lower, upper))
        words = pl.format("said {}, happened {} of {}{}", range_, happened, rows, interval.fill_null(""))
    else:
        words = pl.format("said {}, happens {} by the curve{}; {} here", said, happened, more, rows)
    name = pl.when(pl.col("name") == "").then(pl.lit("")).otherwise(pl.col("name") + ": ")
    return pl.format("{}{}", name, words)


def _limit(points: pl.DataFrame, *, steps: bool) -> float:
    """Return the upper end of both axes."""
    names = ("upper", "rate") if steps else ("mean_score", "rate")
    return upper_end(max((value for name in names for value in points[name].drop_nulls()), default=1.0))
