"""The chart of a calibration map: probabilities after it against those before."""

from __future__ import annotations

from math import ceil, log10
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS, rate_y, score_x
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._marks import described, diagonal, layered
from calframe._charts._overlay import COLOURS, DASHES, LARGEST_SIDE, SPOT, STROKES, names_beside
from calframe._charts._theme import Drawing, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "curve": pl.String,
    "name": pl.String,
    "weight": pl.Float64,
    "pooled": pl.Boolean,
    "at": pl.Float64,
    "value": pl.Float64,
    "value_low": pl.Float64,
    "value_high": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "spoken": pl.Boolean,
}
_FAINT: Final = 0.45  # opacity of a line beyond the scores that it was fitted on
_BAND: Final = 0.16  # opacity
_MOST_BANDS: Final = 3  # of more lines the bands would hide each other


class _Frame(NamedTuple):
    """The side of the square in pixels, the upper end and titles of the axes, and the lines with a colour."""

    side: int
    limit: float
    before: str
    after: str
    tokens: dict[str, str]
    legend: alt.Legend | None

    def x(self, field: str = "at") -> alt.X:
        """Return the axis of probabilities before."""
        return score_x(field, limit=self.limit, title=self.before)

    def y(self, field: str = "value") -> alt.Y:
        """Return the axis of probabilities after."""
        return rate_y(field, limit=self.limit, title=self.after)

    def colour(self) -> alt.Color:
        """Return the colours of the named lines, and the legend."""
        colours = [token(name) for name in self.tokens.values()]
        return alt.Color("curve:N", scale=alt.Scale(domain=list(self.tokens), range=colours), legend=self.legend)

    def dash(self) -> alt.StrokeDash:
        """Return the dashes of the named lines: they part colours that are near to each other."""
        dashes = [DASHES[COLOURS.index(name)] if name in COLOURS else DASHES[0] for name in self.tokens.values()]
        return alt.StrokeDash("curve:N", scale=alt.Scale(domain=list(self.tokens), range=dashes), legend=self.legend)


def map_lines(
    table: pl.DataFrame, *, width: int, before: str, after: str, limit: float = 1.0, legend: str | None = None
) -> Drawing:
    """Draw what maps make of probabilities, as lines over the diagonal.

    The pooled map is drawn in ink, the eight other lines of most weight have a colour, and further ones are thin and
    grey. Beyond the scores that a map was fitted on its line is faint and dotted.

    Parameters
    ----------
    table : polars.DataFrame
        One row per line and point, in order: `curve` (unique text for the legend), `name` (unique, whole), `weight`,
        `pooled` (whether it is the line of the pooled map), `at`, `value`, `value_low`, `value_high` (ends of an
        interval, or null), `lower` and `upper` (ends of the fitted scores), `spoken` (whether there are words for the
        point).
    width : int
        Total width in pixels. The legend is at the right, or below where there is no room.
    before, after : str
        Titles of the axes.
    limit : float, default 1.0
        Upper end of both axes.
    legend : str, optional
        Title of the legend.

    Returns
    -------
    altair.LayerChart
        Lines over a dashed diagonal.
    """
    points = tidy(table, _COLUMNS).drop_nulls(["curve", "at", "value"])
    points = points.with_columns(pl.col("at", "value", "value_low", "value_high").clip(0.0, limit))
    frame = _frame(points, width, limit, (before, after), legend)
    has_colour = pl.col("curve").is_in(list(frame.tokens))
    coloured, grey = points.filter(has_colour), points.filter(~has_colour)
    inside, beyond = coloured.filter(_inside()), _beyond(coloured)
    parts = [
        *_bands(inside, frame),
        diagonal(frame.x("at"), frame.y("at"), limit=limit),
        *_grey(grey.filter(_inside()), frame),
        *_faint(beyond, frame),
        *_lines(inside, frame),
        *_lone(inside, frame),
        _spots(coloured.filter("spoken"), frame),
    ]
    return themed(layered(parts, width=frame.side, height=frame.side))


def _frame(points: pl.DataFrame, width: int, limit: float, titles: tuple[str, str], legend: str | None) -> _Frame:
    lines = points.group_by("curve", maintain_order=True).agg(pl.col("weight", "pooled").first())
    place = pl.col("weight").rank("ordinal", descending=True)  # of equal ones the first in the table
    named = lines.filter(~pl.col("pooled")).filter(place <= len(COLOURS))["curve"].to_list()
    tokens = dict.fromkeys(lines.filter("pooled")["curve"], "ink") | dict(zip(named, COLOURS, strict=False))
    box = names_beside(legend, wide=is_wide(width), **STROKES)
    side = min(inner(width) - LABELS - 4, LARGEST_SIDE)
    return _Frame(side, limit, *titles, tokens, box if len(lines) > 1 else None)


def _inside() -> pl.Expr:
    return pl.col("at").is_between("lower", "upper")


def _beyond(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points outside the fitted scores, those at its ends included: each side is a stretch."""
    sides = (pl.col("at") <= pl.col("lower"), pl.col("at") >= pl.col("upper"))
    return pl.concat([points.filter(side).with_columns(stretch=pl.lit(i)) for i, side in enumerate(sides)])


def _bands(points: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the intervals as bands: of few lines those of each, of more that of the pooled map."""
    rows = points.drop_nulls(["value_low", "value_high"])
    if len(frame.tokens) > _MOST_BANDS:
        rows = rows.filter("pooled")
    if rows.is_empty():
        return []
    mark = alt.Chart(inline(rows, "curve", "at", "value_low", "value_high")).mark_area(opacity=_BAND, aria=False)
    return [
        mark.encode(
            x=frame.x(),
            y=frame.y("value_low"),
            y2=alt.Y2("value_high:Q"),
            color=frame.colour(),
            detail=alt.Detail("curve:N"),
        )
    ]


def _grey(points: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the lines without a colour, which say their names alone."""
    if points.is_empty():
        return []
    mark = alt.Chart(inline(points, "name", "at", "value")).mark_line(color=token("ghost"), strokeWidth=1)
    words = {"description": alt.Description("name:N"), "tooltip": alt.Tooltip("name:N")}
    return [mark.encode(x=frame.x(), y=frame.y(), detail=alt.Detail("name:N"), **words)]


def _faint(points: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    if points.is_empty():
        return []
    mark = alt.Chart(inline(points, "curve", "stretch", "at", "value")).mark_line(
        strokeWidth=1.5, strokeDash=[2, 3], opacity=_FAINT, aria=False
    )
    detail = alt.Detail(["curve:N", "stretch:N"])
    return [mark.encode(x=frame.x(), y=frame.y(), color=frame.colour(), detail=detail)]


def _lines(points: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the lines with a colour, that of the pooled map on top."""
    found = []
    for rows, stroke in ((points.filter(~pl.col("pooled")), 2.0), (points.filter("pooled"), 2.75)):
        if not rows.is_empty():
            mark = alt.Chart(inline(rows, "curve", "at", "value")).mark_line(strokeWidth=stroke, aria=False)
            shown = {"color": frame.colour(), "strokeDash": frame.dash(), "detail": alt.Detail("curve:N")}
            found.append(mark.encode(x=frame.x(), y=frame.y(), **shown))
    return found


def _lone(points: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return a dot for each line that was fitted on a single score."""
    single = points.filter(pl.col("lower") == pl.col("upper")).unique("curve", maintain_order=True)
    if single.is_empty():
        return []
    mark = alt.Chart(inline(single, "curve", "at", "value")).mark_point(filled=True, size=60, opacity=1, aria=False)
    return [mark.encode(x=frame.x(), y=frame.y(), color=frame.colour())]


def _spots(points: pl.DataFrame, frame: _Frame) -> alt.Chart:
    """Return what the pointer and a screen reader find: one unseen dot a point."""
    rows = points.with_columns(description=_words(frame.limit))
    mark = alt.Chart(inline(rows, "at", "value", "description")).mark_point(
        filled=True, size=SPOT, opacity=0, color=token("ghost")
    )
    spots: alt.Chart = mark.encode(x=frame.x(), y=frame.y(), **described())
    return spots


def _words(limit: float) -> pl.Expr:
    """Return what becomes of a score, with as many decimals as small ones need."""
    digits = 1 + ceil(-log10(limit))
    columns = ("at", "value", "value_low", "value_high")
    at, value, low, high = (pl.format("{}%", (pl.col(name) * 100).round(digits)) for name in columns)
    name = pl.when(pl.col("name") == "").then(pl.lit("")).otherwise(pl.col("name") + ": ")
    interval = pl.when(pl.col("value_low").is_null()).then(pl.lit("")).otherwise(pl.format(" ({} to {})", low, high))
    return pl.format("{}{} becomes {}{}", name, at, value, interval)
