"""Reliability diagram: what was said against what happened, the gap enlarged, and where the rows are."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from calframe._charts._axes import gap_domain
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._diagram import SAID, Frame, square, stacked, strip, strip_y
from calframe._charts._marks import band, described, shape_by, state_colour
from calframe._charts._theme import Drawing, token

COLUMNS: Final[Columns] = {
    "mean_score": pl.Float64,
    "rate": pl.Float64,
    "rate_low": pl.Float64,
    "rate_high": pl.Float64,
    "band_low": pl.Float64,
    "band_high": pl.Float64,
    "gap": pl.Float64,
    "state": pl.String,
    "description": pl.String,
}
_SHAPES: Final = {"dot": "circle", "up": "triangle-up", "right": "triangle-right"}


def reliability(
    table: pl.DataFrame, histogram: pl.DataFrame | None, *, width: int, limit: float = 1.0, said: str = SAID
) -> Drawing:
    """Draw a reliability diagram over a strip of gaps over a histogram of the scores.

    Parameters
    ----------
    table : polars.DataFrame
        One row per bin: `mean_score`, `rate`, `rate_low`, `rate_high`, `band_low`, `band_high` (where the rate of a
        calibrated model would lie), `gap`, all fractions or null; `state` ("in", "over" or "under" the band);
        `description`.
    histogram : polars.DataFrame or None
        `lower`, `upper` and `n`, the number of rows in between; None for no histogram.
    width : int
        Total width in pixels; the square is at most 430 wide.
    limit : float, default 1.0
        Upper end of both axes, for scores that are all small. A bin beyond it is drawn at the edge as a triangle.
    said : str
        Title of the axis of scores.

    Returns
    -------
    altair.VConcatChart
        The parts above each other on one axis of scores.
    """
    frame = Frame.from_width(width, limit=limit, said=said)
    bins = _placed(tidy(table, COLUMNS), limit)
    return stacked(_square(bins, frame), _strip(bins, frame, lowest=histogram is None), histogram, frame)


def _placed(bins: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Add where each mark is drawn: inside the axes, with a shape that tells of a bin beyond them."""
    shape = (
        pl.when(pl.col("rate") > limit)
        .then(pl.lit("up"))
        .when(pl.col("mean_score") > limit)
        .then(pl.lit("right"))
        .otherwise(pl.lit("dot"))
    )
    inside = [
        pl.col(name).clip(0.0, limit).alias(f"{name}_at")
        for name in ("mean_score", "rate", "rate_low", "rate_high", "band_low", "band_high")
    ]
    return (
        bins.drop_nulls(["mean_score", "rate"])
        .sort("mean_score")
        .with_columns(
            *inside,
            shape=shape,
            gap_pp=pl.col("gap") * 100,
            strip_low=(pl.col("mean_score") - pl.col("band_high")) * 100,
            strip_high=(pl.col("mean_score") - pl.col("band_low")) * 100,
        )
    )


def _square(bins: pl.DataFrame, frame: Frame) -> alt.LayerChart:
    x, colour = frame.x("mean_score_at"), state_colour("state")
    spans = bins.drop_nulls(["rate_low", "rate_high"])
    intervals = alt.Chart(inline(spans, "mean_score_at", "rate_low_at", "rate_high_at", "state")).mark_rule(
        strokeWidth=1.5, aria=False
    )
    dots = alt.Chart(inline(bins, "mean_score_at", "rate_at", "state", "shape", "description")).mark_point(
        filled=True, size=68 if frame.wide else 44, opacity=1, strokeWidth=1
    )
    marks = [
        intervals.encode(x=x, y=frame.y("rate_low_at"), y2=alt.Y2("rate_high_at:Q"), color=colour),
        dots.encode(
            x=x,
            y=frame.y("rate_at"),
            shape=shape_by("shape", _SHAPES),
            color=colour,
            stroke=alt.StrokeValue(token("card")),
            **described(),
        ),
    ]
    shade = band(bins, x, frame.y("band_low_at"), at="mean_score_at", low="band_low_at", high="band_high_at")
    return square(marks, frame, below=[shade])


def _strip(bins: pl.DataFrame, frame: Frame, *, lowest: bool) -> alt.LayerChart:
    """Return the gaps alone: an axis from 0 to 100 % hides an error of three points."""
    bins = bins.filter(pl.col("mean_score") <= frame.limit)
    ends = pl.concat([bins["strip_low"], bins["strip_high"]])
    domain = gap_domain(bins["gap_pp"], ends, tolerance=0.0)
    x, y, colour = frame.x("mean_score_at", lowest=lowest), strip_y("gap_pp", domain), state_colour("state")
    clipped = bins.with_columns(pl.col("strip_low", "strip_high").clip(*domain))
    gaps = alt.Chart(inline(bins.drop_nulls("gap_pp"), "mean_score_at", "gap_pp", "state"))
    stems = gaps.mark_rule(strokeWidth=2.5, aria=False)
    heads = gaps.mark_point(filled=True, size=36, opacity=1, aria=False)
    marks = [
        stems.encode(x=x, y=y, y2=alt.Y2Datum(0), color=colour),
        heads.encode(x=x, y=y, color=colour),
    ]
    shade = band(clipped, x, strip_y("strip_low", domain), at="mean_score_at", low="strip_low", high="strip_high")
    return strip(marks, frame, below=[shade])
