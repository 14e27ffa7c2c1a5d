"""Small multiples: a little reliability diagram for each segment, with all rows behind it."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import CUT, fixed, share_axis
from calframe._charts._data import Columns, fitted_names, inline, tidy
from calframe._charts._marks import Strength, band, described, diagonal, layered, state_colour, x_pixel
from calframe._charts._theme import Drawing, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "panel": pl.String,
    "mean_score": pl.Float64,
    "rate": pl.Float64,
    "rate_low": pl.Float64,
    "rate_high": pl.Float64,
    "band_low": pl.Float64,
    "band_high": pl.Float64,
    "state": pl.String,
    "description": pl.String,
}
_OVERALL: Final[Columns] = {"mean_score": pl.Float64, "rate": pl.Float64}
_PANELS: Final[Columns] = dict.fromkeys(("panel", "head", "size", "sign", "tag", "verdict"), pl.String)
_SIGN: Final = 17  # pixels
_LABELS: Final = 36
_TITLE: Final = 18
_HEADING: Final = 12.5  # size of letters


class _Frame(NamedTuple):
    """The side of one square in pixels, how many stand in a row, and the upper end of the axes."""

    side: int
    columns: int
    limit: float

    @property
    def ticks(self) -> list[float]:
        """The three labelled places of each axis."""
        return [0.0, self.limit / 2, self.limit]


class _Panel(NamedTuple):
    """One panel: which axes it labels, within the frame of all."""

    frame: _Frame
    left: bool
    bottom: bool

    def x(self, field: str) -> alt.X:
        """Return the axis of scores, labelled in the lowest panel of a column."""
        axis = share_axis(title="said" if self.bottom else None, labels=self.bottom, values=self.frame.ticks)
        return alt.X(f"{field}:Q", scale=fixed((0.0, self.frame.limit)), axis=axis)

    def y(self, field: str) -> alt.Y:
        """Return the axis of observed rates, labelled in the first panel of a row."""
        extent = _LABELS if self.left else 0
        axis = share_axis(
            title="happened" if self.left else None,
            titlePadding=2,
            labels=self.left,
            values=self.frame.ticks,
            minExtent=extent,
            maxExtent=extent,
        )
        return alt.Y(f"{field}:Q", scale=fixed((0.0, self.frame.limit)), axis=axis)


def multiples(
    table: pl.DataFrame, overall: pl.DataFrame, panels: pl.DataFrame, *, width: int, limit: float = 1.0
) -> Drawing:
    """Draw one small reliability diagram per panel.

    Parameters
    ----------
    table : polars.DataFrame
        One row per panel and bin: `panel`, `mean_score`, `rate`, `rate_low`, `rate_high`, `band_low`, `band_high`,
        `state`, `description`. A panel may have no rows.
    overall : polars.DataFrame
        `mean_score` and `rate` of all rows together: the grey line in every panel.
    panels : polars.DataFrame
        One row per panel in the order of display, at most 12: `panel`, `head` (its title, cut where there is no room),
        `size` (the line below it), `sign` and `tag` (the line below that), `verdict` (their colour).
    width : int
        Total width in pixels: four panels beside each other, or two.
    limit : float, default 1.0
        Upper end of all axes.

    Returns
    -------
    altair.ConcatChart
        The panels row by row.
    """
    heads = tidy(panels, _PANELS)
    bins = _placed(tidy(table, _COLUMNS), limit)
    ghost = tidy(overall, _OVERALL).drop_nulls().sort("mean_score")
    ghost = ghost.filter((pl.col("mean_score") <= limit) & (pl.col("rate") <= limit))
    gap = 22 if is_wide(width) else 16
    frame = _frame(width, gap, limit)
    heads = heads.with_columns(
        head=pl.Series(fitted_names(heads["head"].to_list(), CUT * frame.side, size=_HEADING), dtype=pl.String)
    )
    drawn = [
        _draw(bins.filter(pl.col("panel") == name), ghost, heads[index], _panel(frame, index, heads.height))
        for index, name in enumerate(heads["panel"])
    ]
    return themed(alt.concat(*drawn, columns=frame.columns, spacing=alt.RowColnumber(row=16, column=gap)))


def _frame(width: int, gap: int, limit: float) -> _Frame:
    columns = 4 if is_wide(width) else 2
    space = inner(width) - _LABELS - _TITLE - (columns - 1) * gap
    return _Frame(space // columns, columns, limit)


def _panel(frame: _Frame, index: int, count: int) -> _Panel:
    return _Panel(frame, left=index % frame.columns == 0, bottom=index + frame.columns >= count)


def _placed(bins: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Keep what can be drawn inside the axes."""
    return (
        bins.drop_nulls(["mean_score", "rate"])
        .sort("mean_score")
        .with_columns(pl.col("mean_score", "rate", "rate_low", "rate_high", "band_low", "band_high").clip(0.0, limit))
    )


def _draw(bins: pl.DataFrame, ghost: pl.DataFrame, head: pl.DataFrame, panel: _Panel) -> alt.LayerChart:
    x, y, colour = panel.x("mean_score"), panel.y("rate"), state_colour("state")
    spans = bins.drop_nulls(["rate_low", "rate_high"])
    overall = alt.Chart(inline(ghost, "mean_score", "rate")).mark_line(
        color=token("ghost"), strokeWidth=1.5, aria=False
    )
    intervals = alt.Chart(inline(spans, "mean_score", "rate_low", "rate_high", "state")).mark_rule(
        strokeWidth=1.25, aria=False
    )
    dots = alt.Chart(inline(bins, "mean_score", "rate", "state", "description")).mark_point(
        filled=True, size=30, opacity=1
    )
    parts = [
        band(bins, x, panel.y("band_low"), at="mean_score", low="band_low", high="band_high"),
        diagonal(panel.x("at"), panel.y("at"), limit=panel.frame.limit),
        overall.encode(x=x, y=y),
        intervals.encode(x=x, y=panel.y("rate_low"), y2=alt.Y2("rate_high:Q"), color=colour),
        dots.encode(x=x, y=y, color=colour, **described()),
        *_heading(head),
    ]
    return layered(parts, width=panel.frame.side, height=panel.frame.side)


def _heading(head: pl.DataFrame) -> list[alt.Chart]:
    """Return title, size and tag as three lines above the panel, where no dot can meet them."""
    ink, muted, colour = alt.ColorValue(token("ink")), alt.ColorValue(token("muted")), state_colour("verdict")
    lines: tuple[tuple[str, int, int, Strength, alt.Color | alt.ColorValue], ...] = (
        ("head", 0, -40, 700, ink),
        ("size", 0, -23, 400, muted),
        ("sign", 0, -7, 400, colour),
        ("tag", _SIGN, -7, 700, colour),
    )
    data = inline(head, "head", "size", "sign", "tag", "verdict")
    return [
        alt.Chart(data)
        .mark_text(y=y, align="left", baseline="bottom", fontSize=_HEADING, fontWeight=weight, aria=False)
        .encode(x=x_pixel(x), text=alt.Text(f"{field}:N"), color=paint)
        for field, x, y, weight, paint in lines
    ]
