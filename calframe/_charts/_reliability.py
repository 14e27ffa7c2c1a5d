"""Reliability diagram: what was said against what happened, the gap enlarged, and where the rows are."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS, Domain, gap_domain, gap_y, rate_y, rows_y, score_x
from calframe._charts._data import Columns, inline, single, tidy
from calframe._charts._marks import band, described, diagonal, layered, shape_by, state_colour, words
from calframe._charts._theme import Drawing, inner, themed, token

_COLUMNS: Final[Columns] = {
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
_HISTOGRAM: Final[Columns] = {"lower": pl.Float64, "upper": pl.Float64, "n": pl.Float64}
_SHAPES: Final = {"dot": "circle", "up": "triangle-up", "right": "triangle-right"}
_LARGEST_SIDE: Final = 430
_NARROW_SIDE: Final = 320
_RIGHT: Final = 4


class _Frame(NamedTuple):
    """The side of the square in pixels, the upper end of both axes, and whether the drawing is a wide one."""

    side: int
    limit: float
    wide: bool

    def x(self, field: str) -> alt.X:
        """Return the axis of scores without labels: they stand below the lowest part."""
        return score_x(field, limit=self.limit, labels=False)

    def y(self, field: str) -> alt.Y:
        """Return the axis of observed rates."""
        return rate_y(field, limit=self.limit)


def reliability(table: pl.DataFrame, histogram: pl.DataFrame, *, width: int, limit: float = 1.0) -> Drawing:
    """Draw a reliability diagram over a strip of gaps over a histogram of the scores.

    Parameters
    ----------
    table : polars.DataFrame
        One row per bin: `mean_score`, `rate`, `rate_low`, `rate_high`, `band_low`, `band_high` (where the rate of a
        calibrated model would lie), `gap`, all fractions or null; `state` ("in", "over" or "under" the band);
        `description`.
    histogram : polars.DataFrame
        `lower`, `upper` and `n`, the number of rows in between.
    width : int
        Total width in pixels; the square is at most 430 wide.
    limit : float, default 1.0
        Upper end of both axes, for scores that are all small. A bin beyond it is drawn at the edge as a triangle.

    Returns
    -------
    altair.VConcatChart
        The three parts above each other on one axis of scores.
    """
    side = min(inner(width) - LABELS - _RIGHT, _LARGEST_SIDE)
    frame = _Frame(side, limit, wide=side > _NARROW_SIDE)
    bins = _placed(tidy(table, _COLUMNS), limit)
    parts = (_square(bins, frame), _strip(bins, frame), _counts(tidy(histogram, _HISTOGRAM), frame))
    return themed(alt.vconcat(*parts, spacing=12))


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


def _square(bins: pl.DataFrame, frame: _Frame) -> alt.LayerChart:
    x, colour = frame.x("mean_score_at"), state_colour("state")
    spans = bins.drop_nulls(["rate_low", "rate_high"])
    intervals = alt.Chart(inline(spans, "mean_score_at", "rate_low_at", "rate_high_at", "state")).mark_rule(
        strokeWidth=1.5, aria=False
    )
    dots = alt.Chart(inline(bins, "mean_score_at", "rate_at", "state", "shape", "description")).mark_point(
        filled=True, size=68 if frame.wide else 44, opacity=1, strokeWidth=1
    )
    parts = [
        band(bins, x, frame.y("band_low_at"), at="mean_score_at", low="band_low_at", high="band_high_at"),
        diagonal(frame.x("at"), frame.y("at"), limit=frame.limit),
        *_sides(frame),
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
    return layered(parts, width=frame.side, height=frame.side)


def _sides(frame: _Frame) -> list[alt.Chart]:
    """Name the two triangles at either side of the diagonal."""
    edge, size = (14, 12.5) if frame.wide else (9, 11.5)
    low = frame.side - edge
    return [
        words(
            "▲ happens more often than said", x=edge, y=edge + 4, align="left", colour="under", size=size, on_line=True
        ),
        words(
            "happens less often than said ▼", x=low, y=low - 4, align="right", colour="over", size=size, on_line=True
        ),
    ]


def _strip(bins: pl.DataFrame, frame: _Frame) -> alt.LayerChart:
    """Return the gaps alone: an axis from 0 to 100 % hides an error of three points."""
    bins = bins.filter(pl.col("mean_score") <= frame.limit)
    ends = pl.concat([bins["strip_low"], bins["strip_high"]])
    domain = gap_domain(bins["gap_pp"], ends, tolerance=0.0)
    x, y, colour = frame.x("mean_score_at"), _strip_y("gap_pp", domain), state_colour("state")
    clipped = bins.with_columns(pl.col("strip_low", "strip_high").clip(*domain))
    gaps = alt.Chart(inline(bins.drop_nulls("gap_pp"), "mean_score_at", "gap_pp", "state"))
    zero = alt.Chart(single()).mark_rule(color=token("faint"), strokeDash=[4, 4], aria=False)
    stems = gaps.mark_rule(strokeWidth=2.5, aria=False)
    heads = gaps.mark_point(filled=True, size=36, opacity=1, aria=False)
    parts = [
        band(clipped, x, _strip_y("strip_low", domain), at="mean_score_at", low="strip_low", high="strip_high"),
        zero.encode(y=alt.YDatum(0, type="quantitative")),
        stems.encode(x=x, y=y, y2=alt.Y2Datum(0), color=colour),
        heads.encode(x=x, y=y, color=colour),
    ]
    return layered(parts, width=frame.side, height=104)


def _strip_y(field: str, domain: Domain) -> alt.Y:
    return gap_y(field, domain=domain, ticks=4)


def _counts(histogram: pl.DataFrame, frame: _Frame) -> alt.Chart:
    bars = histogram.filter(pl.col("lower") < frame.limit).with_columns(pl.col("upper").clip(0.0, frame.limit))
    mark = alt.Chart(inline(bars, "lower", "upper", "n")).mark_bar(color=token("ghost"), binSpacing=1, aria=False)
    x = score_x("lower", limit=frame.limit, title="said (predicted probability)").bin("binned")
    chart: alt.Chart = mark.encode(x=x, x2=alt.X2("upper:Q"), y=rows_y("n")).properties(width=frame.side, height=56)
    return chart
