"""Few lines told apart by colour over each other, many in a small panel each; and what the pointer finds on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS
from calframe._charts._data import fitted_names, inline
from calframe._charts._marks import described
from calframe._charts._overlay import COLOURS, LARGEST_SIDE, SPOT, STROKES, names_beside
from calframe._charts._theme import Drawing, inner, is_wide, themed, token

MOST_TOGETHER: Final = 5  # more lines over each other are a tangle
MOST_PANELS: Final = 12
MOST_BANDS: Final = 3  # of more lines the bands would hide each other
_BAND: Final = 0.16  # opacity
_GAP: Final = 26  # pixels between panels
_HEIGHT: Final = 0.7  # of the width
_HEADING: Final = 12.5  # size of the name of a panel


class NamedLines(NamedTuple):
    """The lines of one plot, the legend (None for one line), the size of the plot in pixels, and which axes it labels.

    Attributes
    ----------
    named : list of str
        The lines, each in a colour of its own.
    legend : altair.Legend or None
        Their legend.
    side : float
        Width of the plot; its height is 0.7 of that.
    is_small : bool
        Whether it is one of several panels, without titles of axes.
    left, bottom : bool
        Whether it has the labels of the axes.
    """

    named: list[str]
    legend: alt.Legend | None
    side: float
    is_small: bool = False
    left: bool = True
    bottom: bool = True

    @classmethod
    def of_points(cls, points: pl.DataFrame, *, width: int) -> NamedLines:
        """Give each line a colour; `points` has `curve` (text)."""
        curves = points["curve"].unique(maintain_order=True).to_list()
        legend = names_beside(None, wide=is_wide(width), **STROKES) if len(curves) > 1 else None
        return cls(curves, legend, min(inner(width) - LABELS - 4, LARGEST_SIDE))

    @property
    def height(self) -> float:
        """The height of the plot."""
        return _HEIGHT * self.side

    @property
    def has_bands(self) -> bool:
        """Whether there is room for intervals."""
        return len(self.named) <= MOST_BANDS

    def colour(self) -> alt.Color:
        """Return the colours of the lines, and the legend."""
        colours = [token(name) for name in COLOURS[: len(self.named)]]
        return alt.Color("curve:N", scale=alt.Scale(domain=self.named, range=colours), legend=self.legend)

    def lines(self, points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        """Return the lines through points at `at` and `value`."""
        mark = alt.Chart(inline(points, "curve", "at", "value")).mark_line(strokeWidth=2.25, aria=False, clip=True)
        found = [mark.encode(x=x, y=y, color=self.colour(), detail=alt.Detail("curve:N"))]
        lone = points.filter(pl.len().over("curve") == 1)
        if not lone.is_empty():  # no line runs through a single point
            dots = alt.Chart(inline(lone, "curve", "at", "value")).mark_point(
                filled=True, size=60, opacity=1, aria=False
            )
            found.append(dots.encode(x=x, y=y, color=self.colour()))
        return found

    def bands(self, points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        """Return the bands from `low` to `high` of few lines; `y` encodes `low`."""
        rows = points.drop_nulls(["low", "high"])
        if not self.has_bands or rows.is_empty():
            return []
        mark = alt.Chart(inline(rows, "curve", "at", "low", "high")).mark_area(opacity=_BAND, aria=False, clip=True)
        ends = {"y": y, "y2": alt.Y2("high:Q")}
        return [mark.encode(x=x, **ends, color=self.colour(), detail=alt.Detail("curve:N"))]

    def spots(self, points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        """Return what the pointer and a screen reader find: one unseen dot for each point that has words."""
        rows = points.drop_nulls("description")
        if rows.is_empty():
            return []
        mark = alt.Chart(inline(rows, "at", "value", "description")).mark_point(
            filled=True, size=SPOT, opacity=0, color=token("ghost"), clip=True
        )
        return [mark.encode(x=x, y=y, **described())]


def plotted(
    points: pl.DataFrame, draw: Callable[[pl.DataFrame, NamedLines], alt.LayerChart], *, width: int
) -> tuple[Drawing, str]:
    """Return up to five curves in one plot, or those of most rows in a panel each, and how many are shown.

    Parameters
    ----------
    points : polars.DataFrame
        `curve` (its name, as short as a legend needs), `rows`, and what `draw` needs.
    draw : callable
        From the points of a plot and its lines to the plot.
    width : int
        Total width in pixels.
    """
    curves = points.group_by("curve", maintain_order=True).agg(pl.col("rows").max())
    if curves.height <= MOST_TOGETHER:
        return themed(draw(points, NamedLines.of_points(points, width=width))), ""
    place = pl.col("rows").rank("ordinal", descending=True)  # of equal ones the first in the table
    named = curves.filter(place <= MOST_PANELS)["curve"].to_list()
    columns = 4 if is_wide(width) else 2
    side = (inner(width) - LABELS - (columns - 1) * _GAP) / columns
    drawn = []
    for i, (name, title) in enumerate(zip(named, fitted_names(named, side, size=_HEADING), strict=True)):
        at = {"left": i % columns == 0, "bottom": i + columns >= len(named)}
        panel = draw(points.filter(pl.col("curve") == name), NamedLines([name], None, side, is_small=True, **at))
        heading = alt.TitleParams(title, anchor="start", fontSize=_HEADING, fontWeight=600, color=token("ink"))
        drawn.append(panel.properties(title=heading))
    spacing = alt.RowColnumber(row=18, column=_GAP)
    shown = f" The {len(named)} curves of most rows, of {len(curves):,}." if len(curves) > len(named) else ""
    panels = alt.concat(*drawn, columns=columns, spacing=spacing).resolve_scale(color="independent")
    return themed(panels), shown
