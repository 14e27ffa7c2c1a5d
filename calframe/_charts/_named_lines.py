"""Lines that are told apart by name: their colours, dashes and legend, and what the pointer finds on them."""

from __future__ import annotations

from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS
from calframe._charts._data import inline
from calframe._charts._marks import described
from calframe._charts._overlay import COLOURS, DASHES, LARGEST_SIDE, SPOT, STROKES, names_beside
from calframe._charts._theme import inner, is_wide, token

MOST_BANDS: Final = 3  # of more lines the bands would hide each other
_BAND: Final = 0.16  # opacity
_MOST_GREY: Final = 60  # lines without a colour
_GREY_POINTS: Final = 40  # about so many of each


class NamedLines(NamedTuple):
    """The lines with a colour and those without, the legend (None for one line), and the side of the plot in pixels."""

    named: list[str]
    grey: list[str]
    legend: alt.Legend | None
    side: int

    @classmethod
    def of_points(cls, points: pl.DataFrame, *, width: int) -> NamedLines:
        """Give the eight lines of most rows a colour, and leave 60 more; `points` has `curve` (text) and `rows`."""
        curves = points.group_by("curve", maintain_order=True).agg(pl.col("rows").max())
        place = pl.col("rows").rank("ordinal", descending=True)  # of equal ones the first in the table
        named, grey = (
            curves.filter(place.is_between(first, last))["curve"].to_list()
            for first, last in ((1, len(COLOURS)), (len(COLOURS) + 1, len(COLOURS) + _MOST_GREY))
        )
        title = f"Largest {len(COLOURS)} of {len(curves):,} curves in colour" if grey else None
        if len(curves) > len(named) + len(grey):
            title = f"{title}, {_MOST_GREY} in grey"
        legend = names_beside(title, wide=is_wide(width), **STROKES) if len(curves) > 1 else None
        return cls(named, grey, legend, min(inner(width) - LABELS - 4, LARGEST_SIDE))

    def colour(self) -> alt.Color:
        """Return the colours of the named lines, and the legend."""
        colours = [token(name) for name in COLOURS[: len(self.named)]]
        return alt.Color("curve:N", scale=alt.Scale(domain=self.named, range=colours), legend=self.legend)

    def dash(self) -> alt.StrokeDash:
        """Return the dashes of the named lines: they part colours that are near to each other."""
        dashes = list(DASHES[: len(self.named)])
        return alt.StrokeDash("curve:N", scale=alt.Scale(domain=self.named, range=dashes), legend=self.legend)

    def parted(self, points: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the points of the lines that have a colour, and about so many as grey lines need."""
        coloured, rest = (points.filter(pl.col("curve").is_in(names)) for names in (self.named, self.grey))
        size, place = pl.len().over("curve"), pl.int_range(pl.len()).over("curve")
        step = (size / _GREY_POINTS).ceil().cast(pl.Int64)
        return coloured, rest.filter((place % step == 0) | (place == size - 1))

    def lines(self, points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        """Return the lines through points at `at` and `value`; those without a colour say their names alone."""
        coloured, rest = self.parted(points)
        found = []
        if not rest.is_empty():
            mark = alt.Chart(inline(rest, "name", "at", "value")).mark_line(
                color=token("ghost"), strokeWidth=1.25, clip=True
            )
            words = {"description": alt.Description("name:N"), "tooltip": alt.Tooltip("name:N")}
            found.append(mark.encode(x=x, y=y, detail=alt.Detail("name:N"), **words))
        mark = alt.Chart(inline(coloured, "curve", "at", "value")).mark_line(strokeWidth=2.25, aria=False, clip=True)
        found.append(mark.encode(x=x, y=y, color=self.colour(), strokeDash=self.dash(), detail=alt.Detail("curve:N")))
        lone = coloured.filter(pl.len().over("curve") == 1)
        if not lone.is_empty():  # no line runs through a single point
            dots = alt.Chart(inline(lone, "curve", "at", "value")).mark_point(
                filled=True, size=60, opacity=1, aria=False
            )
            found.append(dots.encode(x=x, y=y, color=self.colour()))
        return found

    def bands(self, points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        """Return the bands from `low` to `high` of few lines; `y` encodes `low`."""
        rows = points.drop_nulls(["low", "high"])
        if len(self.named) > MOST_BANDS or rows.is_empty():
            return []
        mark = alt.Chart(inline(rows, "curve", "at", "low", "high")).mark_area(opacity=_BAND, aria=False, clip=True)
        ends = {"y": y, "y2": alt.Y2("high:Q")}
        return [mark.encode(x=x, **ends, color=self.colour(), detail=alt.Detail("curve:N"))]

    def spots(self, points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        """Return what the pointer and a screen reader find: one unseen dot for each point that has words."""
        rows = self.parted(points)[0].drop_nulls("description")
        if rows.is_empty():
            return []
        mark = alt.Chart(inline(rows, "at", "value", "description")).mark_point(
            filled=True, size=SPOT, opacity=0, color=token("ghost"), clip=True
        )
        return [mark.encode(x=x, y=y, **described())]
