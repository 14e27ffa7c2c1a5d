"""Overlay: several reliability curves in one diagram."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS, rate_y, score_x
from calframe._charts._captions import SHORT_LINE, SPARSE
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._diagram import SAID
from calframe._charts._lines import corners
from calframe._charts._marks import Part, described, diagonal, layered
from calframe._charts._theme import Drawing, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "curve": pl.String,
    "n": pl.Int64,
    "weight": pl.Float64,
    "mean_score": pl.Float64,
    "rate": pl.Float64,
    "rate_low": pl.Float64,
    "rate_high": pl.Float64,
    "description": pl.String,
}
_LINES: Final[Columns] = {
    "curve": pl.String,
    "n": pl.Int64,
    "weight": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "mean_score": pl.Float64,
    "rate": pl.Float64,
    "rate_low": pl.Float64,
    "rate_high": pl.Float64,
    "description": pl.String,
}
COLOURS: Final = tuple(f"c{index}" for index in range(8))
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
DASHES: Final = ([1, 0],) * 4 + ([7, 3],) * 4  # the last four colours are near to the first four
_DOTS: Final = {"symbolSize": 80, "symbolStrokeWidth": 0}
STROKES: Final = {"symbolType": "stroke", "symbolSize": 225, "symbolStrokeWidth": 2.5}
LARGEST_SIDE: Final = 430
SPOT: Final = 120  # square pixels of what the pointer finds
MOST_RIBBONS: Final = 5  # curves; of more the intervals would hide each other
_RIBBON: Final = 0.14  # opacity
_FAINT: Final = 0.35


class _Frame(NamedTuple):
    """The side of the square in pixels, the upper end and title of the axes, and the curves with a colour."""

    side: int
    limit: float
    said: str
    named: list[str]
    legend: alt.Legend

    def x(self, field: str) -> alt.X:
        """Return the axis of scores."""
        return score_x(field, limit=self.limit, title=self.said)

    def y(self, field: str) -> alt.Y:
        """Return the axis of observed rates."""
        return rate_y(field, limit=self.limit)

    def colour(self) -> alt.Color:
        """Return the colours of the named curves, and the legend."""
        colours = [token(name) for name in COLOURS[: len(self.named)]]
        return alt.Color("curve:N", scale=alt.Scale(domain=self.named, range=colours), legend=self.legend)

    def shape(self) -> alt.Shape:
        """Return the shapes of the named curves: they repeat what the colours say."""
        shapes = list(_SHAPES[: len(self.named)])
        return alt.Shape("curve:N", scale=alt.Scale(domain=self.named, range=shapes), legend=self.legend)

    def dash(self) -> alt.StrokeDash:
        """Return the dashes of the named curves: they part colours that are near to each other."""
        dashes = list(DASHES[: len(self.named)])
        return alt.StrokeDash("curve:N", scale=alt.Scale(domain=self.named, range=dashes), legend=self.legend)


def overlay(table: pl.DataFrame, *, width: int, limit: float = 1.0, said: str = SAID) -> Drawing:
    """Draw several binned reliability curves over each other.

    The eight curves of most weight have a colour and a shape each; further ones are thin grey lines, and the legend
    says how many they are. Bins of few rows are faint.

    Parameters
    ----------
    table : polars.DataFrame
        One row per curve and bin: `curve` (text; the order of first appearance is kept), `n`, `weight`, `mean_score`,
        `rate`, `rate_low`, `rate_high`, `description`.
    width : int
        Total width in pixels. The legend is at the right, or below where there is no room.
    limit : float, default 1.0
        Upper end of both axes.
    said : str
        Title of the axis of scores.

    Returns
    -------
    altair.LayerChart
        Lines, dots and intervals over a dashed diagonal.
    """
    bins = tidy(table, _COLUMNS).drop_nulls(["curve", "mean_score", "rate"])
    bins = bins.with_columns(pl.col("mean_score", "rate", "rate_low", "rate_high").clip(0.0, limit))
    frame = _frame(bins, width, limit, said, symbols=True)
    named, rest = _parted(bins, frame)
    return _drawn([*_rest(rest, frame), *_named(named, frame)], frame)


def overlay_lines(table: pl.DataFrame, *, steps: bool, width: int, limit: float = 1.0, said: str = SAID) -> Drawing:
    """Draw several isotonic or smooth reliability curves over each other, as lines alone.

    The eight curves of most weight have a colour each, and words under the pointer; further ones are thin grey lines,
    of which the pointer finds the names. Up to five curves have ribbons of their intervals. A curve of fewer than 100
    rows is thin and faint.

    Parameters
    ----------
    table : polars.DataFrame
        One row per curve and step or point: `curve`, `n`, `weight`, `lower`, `upper`, `mean_score`, `rate`, `rate_low`,
        `rate_high`, `description`.
    steps : bool
        Whether each row is a step from `lower` to `upper`; else lines run through the points at `mean_score`.
    width, limit, said
        As of `overlay`.

    Returns
    -------
    altair.LayerChart
        Lines over a dashed diagonal.
    """
    points = tidy(table, _LINES).drop_nulls(["curve", "mean_score", "rate"])
    ends = ("lower", "upper", "mean_score", "rate", "rate_low", "rate_high")
    few = pl.col("n").sum().over("curve") < SHORT_LINE
    points = points.with_columns(pl.col(ends).clip(0.0, limit), strength=pl.when(few).then(_FAINT).otherwise(1.0))
    frame = _frame(points, width, limit, said, symbols=False)
    coloured, others = (corners(part, steps=steps) for part in _parted(points, frame))
    grey = alt.ColorValue(token("ghost"))
    rest = _lines(others, width=1.25, speaks=True).encode(color=grey)
    lines = [
        _lines(coloured.filter(pl.col("strength") == strength), width=width, speaks=False).encode(
            color=frame.colour(), strokeDash=frame.dash(), opacity=alt.OpacityValue(strength)
        )
        for strength, width in ((1.0, 2.25), (_FAINT, 1.0))
    ]
    marks = [part.encode(x=frame.x("at"), y=frame.y("rate"), detail=alt.Detail("curve:N")) for part in (rest, *lines)]
    marks = [*_ribbons(coloured, frame), *marks]
    dots = [*_lone(others, grey, frame), *_lone(coloured, frame.colour(), frame)]
    return _drawn([*marks, *dots, _spots(_parted(points, frame)[0], frame)], frame)


def _ribbons(line: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the intervals around a few lines."""
    rows = line.drop_nulls(["rate_low", "rate_high"])
    if len(frame.named) > MOST_RIBBONS or rows.is_empty():
        return []
    mark = alt.Chart(inline(rows, "curve", "at", "rate_low", "rate_high")).mark_area(opacity=_RIBBON, aria=False)
    ends = {"y": frame.y("rate_low"), "y2": alt.Y2("rate_high:Q")}
    return [mark.encode(x=frame.x("at"), **ends, color=frame.colour(), detail=alt.Detail("curve:N"))]


def _parted(rows: pl.DataFrame, frame: _Frame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of the curves that have a colour, and the rest."""
    return rows.filter(pl.col("curve").is_in(frame.named)), rows.filter(~pl.col("curve").is_in(frame.named))


def _drawn(marks: list[Part], frame: _Frame) -> Drawing:
    line = diagonal(frame.x("at"), frame.y("at"), limit=frame.limit)
    return themed(layered([line, *marks], width=frame.side, height=frame.side))


def _lines(line: pl.DataFrame, *, width: float, speaks: bool) -> alt.Chart:
    """Return lines, which say at most which curve they are: one mark has words for all of its points."""
    lines: alt.Chart = alt.Chart(inline(line, "curve", "at", "rate")).mark_line(strokeWidth=width, aria=speaks)
    return lines.encode(description=alt.Description("curve:N"), tooltip=alt.Tooltip("curve:N")) if speaks else lines


def _lone(line: pl.DataFrame, colour: alt.Color | alt.ColorValue, frame: _Frame) -> list[alt.Chart]:
    """Return a dot for each curve of a single score, through which no line runs."""
    single = line.filter(pl.col("at").n_unique().over("curve") == 1).unique("curve", maintain_order=True)
    if single.is_empty():
        return []
    mark = alt.Chart(inline(single, "curve", "at", "rate")).mark_point(filled=True, size=60, opacity=1, aria=False)
    return [mark.encode(x=frame.x("at"), y=frame.y("rate"), color=colour)]


def _spots(points: pl.DataFrame, frame: _Frame) -> alt.Chart:
    """Return what the pointer and a screen reader find: one unseen dot a point."""
    mark = alt.Chart(inline(points, "mean_score", "rate", "description")).mark_point(
        filled=True, size=SPOT, opacity=0, color=token("ghost")
    )
    spots: alt.Chart = mark.encode(x=frame.x("mean_score"), y=frame.y("rate"), **described())
    return spots


def _frame(rows: pl.DataFrame, width: int, limit: float, said: str, *, symbols: bool) -> _Frame:
    curves = rows.group_by("curve", maintain_order=True).agg(pl.col("weight").sum())
    place = pl.col("weight").rank("ordinal", descending=True)  # of equal ones the first in the table
    named = curves.filter(place <= len(COLOURS))["curve"].to_list()
    wide = is_wide(width)
    side = min(inner(width) - LABELS - 4, LARGEST_SIDE)
    beyond = len(curves) - len(COLOURS)
    title = f"Largest {len(COLOURS)} of {len(curves)} curves in colour" if beyond > 0 else None
    legend = names_beside(title, wide=wide, **(_DOTS if symbols else STROKES))
    return _Frame(side, limit, said, named, legend)


def names_beside(title: str | None, *, wide: bool, **symbols: Any) -> alt.Legend:
    """Return the legend of named lines: at the right, or below where there is no room."""
    return alt.Legend(
        title=title,
        orient="right" if wide else "bottom",
        columns=1,
        offset=28 if wide else 8,
        labelLimit=340 if wide else 220,
        titleLimit=360 if wide else 300,
        rowPadding=5,
        symbolOpacity=1,
        **symbols,
    )


def _rest(rest: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the curves without a colour: grey lines, and dots that still carry their words."""
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
    named = named.with_columns(strength=pl.when(pl.col("n") < SPARSE).then(_FAINT).otherwise(1.0))
    strength = alt.Opacity("strength:Q", scale=None, legend=None)
    spans = named.drop_nulls(["rate_low", "rate_high"])
    intervals = alt.Chart(inline(spans, "curve", "mean_score", "rate_low", "rate_high", "strength")).mark_rule(
        strokeWidth=1.25, strokeOpacity=0.5, aria=False
    )
    lines = alt.Chart(inline(named, "curve", "mean_score", "rate")).mark_line(strokeWidth=2, aria=False)
    dots = alt.Chart(inline(named, "curve", "mean_score", "rate", "strength", "description")).mark_point(
        filled=True, size=60, strokeWidth=1
    )
    shown = {"shape": frame.shape(), "stroke": alt.StrokeValue(token("card")), "opacity": strength}
    return [
        intervals.encode(x=x, y=frame.y("rate_low"), y2=alt.Y2("rate_high:Q"), color=colour, opacity=strength),
        lines.encode(x=x, y=y, color=colour),
        dots.encode(x=x, y=y, color=colour, **shown, **described()),
    ]
