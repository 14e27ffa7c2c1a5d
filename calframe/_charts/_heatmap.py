"""Heatmap: the gap of each segment in each range of scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import Names
from calframe._charts._data import Columns, inline, text_width, texts, tidy
from calframe._charts._marks import described, layered, words
from calframe._charts._theme import Drawing, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "segment": pl.String,
    "range": pl.String,
    "gap": pl.Float64,
    "clear": pl.Boolean,
    "shown": pl.Boolean,
    "description": pl.String,
}
# Steps change between whole percentage points, so that equal printed numbers have equal colours. The first steps of
# which the last one is beyond three quarters of the gaps are taken, so that not all cells have the strongest colour.
_EDGES: Final = ((1.5, 3.5, 6.5), (2.5, 6.5, 13.5), (4.5, 13.5, 26.5))
_MOST_OF: Final = 0.75
_STEPS: Final = tuple(f"d{step}" for step in range(7))
_HIDDEN: Final = "hidden"
_FAINT: Final = 0.38  # strength of a cell whose own interval does not exclude zero
_MANY: Final = 20
_LEAST_CELL: Final = 26  # pixels; room for three signs
_LEAST_CELL_WIDE: Final = 38
_LARGEST_CELL: Final = 112
_SWATCH: Final = 36  # pixels; room for "≤ −27"


class _Frame(NamedTuple):
    """The names of the segments, sizes of one cell in pixels, and how many ranges stand beside each other."""

    names: Names
    cell: float
    row: int
    across: int
    turned: bool
    wide: bool

    def x(self, ranges: Sequence[str], title: str | None) -> alt.X:
        """Return the axis of the score ranges of one block."""
        axis = alt.Axis(
            title=title,
            labelAngle=-90 if self.turned else 0,
            labelBaseline="middle" if self.turned else "top",
            labelFontSize=12 if self.wide else 11.5,
            labelLimit=90 if self.turned else self.cell,
            labelOverlap=False,
        )
        return alt.X("range:N", scale=alt.Scale(domain=list(ranges)), axis=axis)

    def y(self) -> alt.Y:
        """Return the axis of the segments."""
        return self.names.y("segment")


def heatmap(table: pl.DataFrame, *, segments: Sequence[str], ranges: Sequence[str], width: int) -> Drawing:
    """Draw the gap of each segment and score range as a coloured number in percentage points.

    Parameters
    ----------
    table : polars.DataFrame
        One row per cell: `segment`, `range`, `gap` (a fraction or null), `clear` (the cell's own interval excludes
        zero: full colour), `shown` (enough rows; otherwise a dot stands in the cell), `description`.
    segments, ranges : sequence of str
        The rows and columns in the order of display; cells of others are left out.
    width : int
        Total width in pixels. Where the ranges do not fit beside each other, they go on in a further block.

    Returns
    -------
    altair.VConcatChart
        A key of the colours, and one or more blocks of cells.
    """
    across = texts(ranges)
    frame = _frame(texts(segments), across, width)
    cells = frame.names.shown(tidy(table, _COLUMNS))
    edges = _edges(cells)
    cells = _painted(cells, edges)
    starts = range(0, len(across), frame.across)
    blocks = [_block(cells, across[start : start + frame.across], frame, last=start == starts[-1]) for start in starts]
    return themed(alt.vconcat(_key(frame, edges), *blocks, spacing=10))


def _frame(segments: list[str], ranges: Sequence[str], width: int) -> _Frame:
    wide = is_wide(width)
    least, most = (84, 204) if wide else (64, 104)
    names = Names.beside(segments, least=least, most=most)
    space = inner(width) - names.extent
    fitting = max(1, int(space // (_LEAST_CELL_WIDE if wide else _LEAST_CELL)))
    blocks = max(1, ceil(len(ranges) / fitting))
    across = max(1, ceil(len(ranges) / blocks))
    cell = min(space / across, _LARGEST_CELL)
    row = (34 if wide else 30) if len(segments) <= _MANY else 26
    return _Frame(names, cell, row, across, text_width(ranges) > cell, wide)


def _edges(cells: pl.DataFrame) -> tuple[float, ...]:
    """Return where the colours of gaps above zero change, in percentage points."""
    large = 100 * (cells.filter("shown")["gap"].abs().quantile(_MOST_OF) or 0.0)
    return next((edges for edges in _EDGES if large <= edges[-1] + 0.5), _EDGES[-1])


def _painted(cells: pl.DataFrame, edges: tuple[float, ...]) -> pl.DataFrame:
    """Add the words, the colour step and the strength of each cell."""
    number = (pl.col("gap") * 100).round(0)
    seen = pl.col("shown").fill_null(value=False) & pl.col("gap").is_not_null()
    strong = pl.col("clear").fill_null(value=False) & seen
    step = pl.sum_horizontal(
        (number > edge).cast(pl.Int8) for side in (edges, [-edge for edge in edges]) for edge in side
    )
    sign = pl.when(number > 0).then(pl.lit("+")).when(number < 0).then(pl.lit("−")).otherwise(pl.lit(""))
    digits = number.abs().cast(pl.Int64, strict=False).cast(pl.String)
    painted = cells.with_columns(
        step=pl.when(seen).then(pl.format("d{}", step)).otherwise(pl.lit(_HIDDEN)),
        text=pl.when(seen).then(sign + digits).otherwise(pl.lit("·")),
        strength=pl.when(strong | ~seen).then(1.0).otherwise(_FAINT),
        strong=strong,
    )
    deep = pl.col("step").is_in([_STEPS[0], _STEPS[-1]]) & pl.col("strong")
    return painted.with_columns(ink=pl.when(deep).then(pl.lit("on")).otherwise(pl.lit("off")))


def _block(cells: pl.DataFrame, ranges: Sequence[str], frame: _Frame, *, last: bool) -> alt.LayerChart:
    x, y = frame.x(ranges, "said (predicted probability)" if last else None), frame.y()
    inside = cells.filter(pl.col("range").is_in(ranges))
    colours = alt.Scale(domain=[*_STEPS, _HIDDEN], range=[*(token(step) for step in _STEPS), "transparent"])
    rects = alt.Chart(inline(inside, "segment", "range", "step", "strength", "description")).mark_rect(
        stroke=token("card"), strokeWidth=2, cornerRadius=4
    )
    parts = [
        rects.encode(
            x=x,
            y=y,
            color=alt.Color("step:N", scale=colours, legend=None),
            opacity=alt.Opacity("strength:Q", scale=None),
            **described(),
        ),
        *(_numbers(inside, x, y, strong=strong, wide=frame.wide) for strong in (True, False)),
    ]
    block = layered(parts, width=frame.cell * len(ranges), height=frame.row * len(frame.names.texts))
    independent: alt.LayerChart = block.resolve_scale(color="independent")
    return independent


def _numbers(cells: pl.DataFrame, x: alt.X, y: alt.Y, *, strong: bool, wide: bool) -> alt.Chart:
    """Return the numbers of the clear or of the other cells: the weight of a font cannot be encoded."""
    data = inline(cells.filter(pl.col("strong") == strong), "segment", "range", "text", "ink")
    mark = alt.Chart(data).mark_text(fontSize=13 if wide else 11, fontWeight=700 if strong else 400, aria=False)
    ink = alt.Scale(domain=["on", "off"], range=[token("dt0"), token("dt1" if strong else "ok")])
    numbers: alt.Chart = mark.encode(
        x=x, y=y, text=alt.Text("text:N"), color=alt.Color("ink:N", scale=ink, legend=None)
    )
    return numbers


def _key(frame: _Frame, edges: tuple[float, ...]) -> alt.LayerChart:
    """Return the seven colours in a row, from "too little" to "too much", each with the gap at which it begins."""
    plot, band = frame.cell * frame.across, _SWATCH * len(_STEPS)
    left = max(-frame.names.extent, min(0, plot - band))
    right = left + band
    colours = alt.Scale(domain=list(_STEPS), range=[token(step) for step in _STEPS])
    x = alt.X("step:N", scale=alt.Scale(domain=list(_STEPS), range=[left, right], padding=0), axis=None)
    first, second, last = (f"{edge + 0.5:.0f}" for edge in edges)
    begins = (f"≤ −{last}", f"−{second}", f"−{first}", "0", f"+{first}", f"+{second}", f"≥ +{last}")
    outer = {_STEPS[0], _STEPS[-1]}
    data = alt.InlineData(
        values=[
            {"step": step, "text": text, "ink": "on" if step in outer else "off"}
            for step, text in zip(_STEPS, begins, strict=True)
        ]
    )
    swatches = alt.Chart(data).mark_rect(stroke=token("card"), strokeWidth=2, cornerRadius=3, aria=False)
    numbers = alt.Chart(data).mark_text(fontSize=11, aria=False)
    ink = alt.Scale(domain=["on", "off"], range=[token("dt0"), token("dt1")])
    parts = [
        swatches.encode(x=x, color=alt.Color("step:N", scale=colours, legend=None)),
        numbers.encode(x=x, text=alt.Text("text:N"), color=alt.Color("ink:N", scale=ink, legend=None)),
        words("says too little", x=left, y=-3, align="left", colour="under"),
        words("says too much", x=right, y=-3, align="right", colour="over"),
    ]
    key: alt.LayerChart = layered(parts, width=plot, height=18).resolve_scale(color="independent")
    return key
