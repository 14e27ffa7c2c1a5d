"""Overlay: several reliability curves in one diagram."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS, rate_y, score_x
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._marks import Part, described, diagonal, layered
from calframe._charts._theme import Drawing, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "curve": pl.String,
    "mean_score": pl.Float64,
    "rate": pl.Float64,
    "rate_low": pl.Float64,
    "rate_high": pl.Float64,
    "description": pl.String,
}
_COLOURS: Final = tuple(f"c{index}" for index in range(8))
_SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)
_LARGEST_SIDE: Final = 430


class _Frame(NamedTuple):
    """The side of the square in pixels, the upper end of the axes, and the curves that have a colour of their own."""

    side: int
    limit: float
    named: list[str]
    legend: alt.Legend

    def x(self, field: str) -> alt.X:
        """Return the axis of scores."""
        return score_x(field, limit=self.limit, title="said (predicted probability)")

    def y(self, field: str) -> alt.Y:
        """Return the axis of observed rates."""
        return rate_y(field, limit=self.limit)

    def colour(self) -> alt.Color:
        """Return the colours of the named curves, and the legend."""
        colours = [token(name) for name in _COLOURS[: len(self.named)]]
        return alt.Color("curve:N", scale=alt.Scale(domain=self.named, range=colours), legend=self.legend)

    def shape(self) -> alt.Shape:
        """Return the shapes of the named curves: they repeat what the colours say."""
        shapes = list(_SHAPES[: len(self.named)])
        return alt.Shape("curve:N", scale=alt.Scale(domain=self.named, range=shapes), legend=self.legend)


def overlay(table: pl.DataFrame, *, width: int, limit: float = 1.0) -> Drawing:
    """Draw several reliability curves over each other.

    The first eight curves have a colour and a shape each; further ones are thin grey lines, and the legend says how
    many they are.

    Parameters
    ----------
    table : polars.DataFrame
        One row per curve and bin: `curve` (text; the order of first appearance is kept), `mean_score`, `rate`,
        `rate_low`, `rate_high`, `description`.
    width : int
        Total width in pixels. The legend is at the right, or below where there is no room.
    limit : float, default 1.0
        Upper end of both axes.

    Returns
    -------
    altair.LayerChart
        Lines, dots and intervals over a dashed diagonal.
    """
    bins = tidy(table, _COLUMNS).drop_nulls(["curve", "mean_score", "rate"])
    bins = bins.with_columns(pl.col("mean_score", "rate", "rate_low", "rate_high").clip(0.0, limit))
    curves = bins["curve"].unique(maintain_order=True).to_list()
    frame = _frame(curves, width, limit)
    named = bins.filter(pl.col("curve").is_in(frame.named))
    rest = bins.filter(~pl.col("curve").is_in(frame.named))
    parts: list[Part] = [
        diagonal(frame.x("at"), frame.y("at"), limit=limit),
        *_rest(rest, frame),
        *_named(named, frame),
    ]
    return themed(layered(parts, width=frame.side, height=frame.side))


def _frame(curves: list[str], width: int, limit: float) -> _Frame:
    wide = is_wide(width)
    side = min(inner(width) - LABELS - 4, _LARGEST_SIDE)
    beyond = len(curves) - len(_COLOURS)
    legend = alt.Legend(
        title=f"{len(_COLOURS)} of {len(curves)} curves; the others in grey" if beyond > 0 else None,
        orient="right" if wide else "bottom",
        columns=1,
        offset=28 if wide else 8,
        labelLimit=340 if wide else 220,
        symbolSize=80,
        symbolOpacity=1,
        symbolStrokeWidth=0,
        rowPadding=5,
    )
    return _Frame(side, limit, curves[: len(_COLOURS)], legend)


def _rest(rest: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the curves beyond the eighth: grey lines, and dots that still carry their words."""
    lines = alt.Chart(inline(rest, "curve", "mean_score", "rate")).mark_line(
        color=token("ghost"), strokeWidth=1.25, aria=False
    )
    dots = alt.Chart(inline(rest, "mean_score", "rate", "description")).mark_point(
        filled=True, size=22, opacity=1, color=token("ghost")
    )
    x, y = frame.x("mean_score"), frame.y("rate")
    return [lines.encode(x=x, y=y, detail=alt.Detail("curve:N")), dots.encode(x=x, y=y, **described())]


def _named(named: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    x, y, colour = frame.x("mean_score"), frame.y("rate"), frame.colour()
    spans = named.drop_nulls(["rate_low", "rate_high"])
    intervals = alt.Chart(inline(spans, "curve", "mean_score", "rate_low", "rate_high")).mark_rule(
        strokeWidth=1.25, opacity=0.5, aria=False
    )
    lines = alt.Chart(inline(named, "curve", "mean_score", "rate")).mark_line(strokeWidth=2, aria=False)
    dots = alt.Chart(inline(named, "curve", "mean_score", "rate", "description")).mark_point(
        filled=True, size=60, opacity=1, strokeWidth=1
    )
    return [
        intervals.encode(x=x, y=frame.y("rate_low"), y2=alt.Y2("rate_high:Q"), color=colour),
        lines.encode(x=x, y=y, color=colour),
        dots.encode(x=x, y=y, color=colour, shape=frame.shape(), stroke=alt.StrokeValue(token("card")), **described()),
    ]
