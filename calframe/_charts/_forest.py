"""Forest plot: one line per segment, its gap with two intervals against the tolerance zone."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import Domain, Names, gap_axis, gap_domain
from calframe._charts._data import Columns, inline, single, text_width, tidy
from calframe._charts._marks import (
    Align,
    Part,
    Strength,
    described,
    layered,
    shape_by,
    state_colour,
    state_fill,
    state_stroke,
    words,
    y_pixel,
)
from calframe._charts._theme import PADDING, Drawing, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "segment": pl.String,
    "gap": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "sim_low": pl.Float64,
    "sim_high": pl.Float64,
    "verdict": pl.String,
    "text_gap": pl.String,
    "text_rate": pl.String,
    "text_n": pl.String,
    "text_verdict": pl.String,
    "description": pl.String,
}
_INTERVALS: Final = ("low", "high", "sim_low", "sim_high")
_SHAPES: Final = {"dot": "circle", "left": "triangle-left", "right": "triangle-right", "dash": "stroke"}
_TEXT_SIZE: Final = 13
_MANY: Final = 20  # rows; above it they stand closer
_EDGE: Final = 7  # pixels that an arrowhead needs
_HEAD: Final = -9  # pixels; where the words above the rows stand
_TALL: Final = 46  # pixels of a row whose name stands above its marks
_NAME_AT, _GROUND, _MARKS_AT = 0.28, 0.5, 0.74  # places within such a row; down to the second there is no zone
_END, _LONG_END = 66, 108  # pixels at the end of such a row: for a gap and a sign, or for "– Too few rows"
_SIGN: Final = 16  # pixels of the sign
_AWAY: Final = 12  # pixels between texts of one line


class _Column(NamedTuple):
    """A column of text at the right of the plot."""

    field: str
    head: str
    width: int
    align: Align
    bold: bool


_TEXTS: Final = (
    _Column("text_gap", "gap", 46, "right", bold=True),
    _Column("text_rate", "said → happened", 116, "right", bold=False),
    _Column("text_n", "rows", 62, "right", bold=False),
    _Column("sign", "verdict", 14, "left", bold=True),
    _Column("word", "", 121, "left", bold=True),
)
_GUTTER: Final = 17
_NO_GAP: Final = "–"
_BOLD: Final = 700


class _Frame(NamedTuple):
    """Where things are: the names of the segments, the range of the axis, and sizes in pixels."""

    names: Names
    domain: Domain
    plot: int
    total: int
    row: int
    wide: bool

    def x(self, field: str) -> alt.X:
        """Return the axis of gaps: it ends where the columns of text begin."""
        axis = gap_axis(
            title="gap: said − happened, percentage points" if self.wide else "gap: said − happened, pp",
            titleX=self.plot / 2,
            tickCount=max(3, self.plot // 60),
            labelBound=2 * PADDING,
            grid=True,
        )
        edges = [_EDGE, self.plot - _EDGE]
        scale = alt.Scale(domain=list(self.domain), range=edges, nice=False, zero=False)
        return alt.X(f"{field}:Q", scale=scale, axis=axis)

    def y(self, *, at: float | None = None) -> alt.Y:
        """Return the axis of segments; `at` is the place within a row, from 0 (top) to 1, or that of the marks."""
        marks = 0.5 if self.wide else _MARKS_AT
        return self.names.y("segment", at=marks if at is None else at)


def forest(table: pl.DataFrame, *, tolerance: float, width: int) -> Drawing:
    """Draw the gap of each segment, in the order of the table.

    Parameters
    ----------
    table : polars.DataFrame
        One row per segment: `segment` (unique text), `gap`, `low`, `high` (interval of this segment alone), `sim_low`,
        `sim_high` (interval for all segments at once), all fractions or null; `verdict`; the texts of the columns
        `text_gap`, `text_rate`, `text_n`, `text_verdict`; `description`, the words of the mark.
    tolerance : float
        Half-width of the tolerance zone, a fraction.
    width : int
        Total width in pixels. Where there is no room for columns of text, a line above the marks of each segment has
        its name, its rows, its gap and the sign of its verdict.

    Returns
    -------
    altair.LayerChart
        Intervals beyond the axis are cut and end in an arrowhead; a segment without a gap gets a dash.
    """
    sign = pl.col("text_verdict").str.head(1)
    rows = tidy(table, _COLUMNS).with_columns(
        pl.col("gap", *_INTERVALS) * 100, sign=sign, word=pl.col("text_verdict").str.slice(2)
    )
    zone = tolerance * 100
    frame = _frame(rows, zone, width)
    rows = _placed(frame.names.shown(rows), frame.domain)
    parts: list[Part] = [
        *_zone(zone),
        *(_texts(rows, frame) if frame.wide else _heads(rows, frame)),
        *_lines(rows, frame),
        *_intervals(rows, frame),
        _dots(rows, frame),
        *_ends(frame),
    ]
    return themed(layered(parts, width=frame.total, height=frame.row * max(rows.height, 1)))


def _frame(rows: pl.DataFrame, zone: float, width: int) -> _Frame:
    names, domain = rows["segment"].to_list(), _domain(rows, zone)
    if not is_wide(width):
        total = inner(width)
        room = total - _end(rows) - text_width(rows["text_n"].to_list()) - 2 * _AWAY
        above = Names.above(names, room=room)
        return _Frame(above, domain, total - 2 * PADDING, total, _TALL, wide=False)
    beside = Names.beside(names, least=84, most=204)
    total = inner(width) - beside.extent
    taken = sum(column.width + _GUTTER for column in _TEXTS)
    row = 34 if rows.height <= _MANY else 28
    return _Frame(beside, domain, total - taken, total, row, wide=True)


def _domain(rows: pl.DataFrame, zone: float) -> Domain:
    """Return the range of the axis: what the judged segments need, or all of them where none is judged."""
    judged = rows.filter(pl.col("verdict") != "few")
    if judged["gap"].is_null().all():
        judged = rows
    return gap_domain(judged["gap"], pl.concat([judged[name] for name in _INTERVALS]), tolerance=zone)


def _placed(rows: pl.DataFrame, domain: Domain) -> pl.DataFrame:
    """Add where each mark is drawn, and what it looks like there."""
    low, high = domain
    gap = pl.col("gap")
    shape = (
        pl.when(gap.is_null())
        .then(pl.lit("dash"))
        .when(gap < low)
        .then(pl.lit("left"))
        .when(gap > high)
        .then(pl.lit("right"))
        .otherwise(pl.lit("dot"))
    )
    return rows.with_columns(
        gap.clip(low, high).fill_null(0.0).alias("at"),
        shape.alias("shape"),
        *(pl.col(name).clip(low, high).alias(f"{name}_at") for name in _INTERVALS),
    )


def _zone(zone: float) -> list[alt.Chart]:
    band = alt.Chart(single()).mark_rect(color=token("tol"), aria=False)
    zero = alt.Chart(single()).mark_rule(color=token("faint"), aria=False)
    return [
        band.encode(x=alt.XDatum(-zone, type="quantitative"), x2=alt.X2Datum(zone)),
        zero.encode(x=alt.XDatum(0, type="quantitative")),
    ]


def _lines(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return a hairline above and below each row, from the names to the last column."""
    across: dict[str, Any] = {"x": -frame.names.extent, "x2": frame.total, "aria": False}
    colour = alt.ColorValue(token("rule"))
    below = alt.Chart(inline(rows, "segment")).mark_rule(**across)
    top = alt.Chart(single()).mark_rule(**across)
    return [below.encode(y=frame.y(at=1), color=colour), top.encode(y=y_pixel(0), color=colour)]


def _intervals(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the thin and the thick line of each segment, and arrowheads where one is cut."""
    y, colour = frame.y(), state_colour("verdict")
    alone, together = rows.drop_nulls(["low", "high"]), rows.drop_nulls(["sim_low", "sim_high"])
    thin = alt.Chart(inline(together, "segment", "verdict", "sim_low_at", "sim_high_at"))
    thick = alt.Chart(inline(alone, "segment", "verdict", "low_at", "high_at"))
    heads = alt.Chart(inline(_cut(rows, frame.domain), "segment", "verdict", "at", "shape"))
    return [
        thin.mark_rule(strokeWidth=1.5, aria=False).encode(
            x=frame.x("sim_low_at"), x2=alt.X2("sim_high_at:Q"), y=y, color=colour
        ),
        thick.mark_rule(strokeWidth=5, opacity=0.45, aria=False).encode(
            x=frame.x("low_at"), x2=alt.X2("high_at:Q"), y=y, color=colour
        ),
        heads.mark_point(filled=True, size=34, opacity=1, aria=False).encode(
            x=frame.x("at"), y=y, color=colour, shape=shape_by("shape", _SHAPES)
        ),
    ]


def _cut(rows: pl.DataFrame, domain: Domain) -> pl.DataFrame:
    """Return a row for each end of a segment's intervals, the wider one if it has both, that lies beyond the axis."""
    low, high = domain
    least, most = pl.min_horizontal("low", "sim_low"), pl.max_horizontal("high", "sim_high")
    return pl.concat(
        [
            rows.filter(least < low).with_columns(at=pl.lit(low), shape=pl.lit("left")),
            rows.filter(most > high).with_columns(at=pl.lit(high), shape=pl.lit("right")),
        ]
    )


def _dots(rows: pl.DataFrame, frame: _Frame) -> alt.Chart:
    mark = alt.Chart(inline(rows, "segment", "verdict", "at", "shape", "description")).mark_point(
        size=95, opacity=1, strokeWidth=2
    )
    dots: alt.Chart = mark.encode(
        x=frame.x("at"),
        y=frame.y(),
        shape=shape_by("shape", _SHAPES),
        stroke=state_stroke("verdict"),
        fill=state_fill("verdict"),
        **described(),
    )
    return dots


def _ends(frame: _Frame) -> list[alt.Chart]:
    """Return the words at both ends of the axis."""
    return [
        words("← says too little", x=0, y=_HEAD, align="left", colour="under"),
        words("says too much →", x=frame.plot, y=_HEAD, align="right", colour="over"),
    ]


def _end(rows: pl.DataFrame) -> int:
    """Return the pixels that the end of a row needs where names stand above the marks."""
    return _LONG_END if rows["text_gap"].eq(_NO_GAP).any() else _END


def _heads(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the line above the marks of each segment: its name, its rows, its gap and the sign of its verdict."""
    none, edge = pl.col("text_gap") == _NO_GAP, frame.plot
    rows = rows.with_columns(
        sign=pl.when(none).then("text_verdict").otherwise("sign"),
        text_gap=pl.when(none).then(pl.lit("")).otherwise("text_gap"),
    )
    ground = alt.Chart(inline(rows, "segment")).mark_rect(x=0, x2=frame.total, color=token("card"), aria=False)
    ink, muted, colour = alt.ColorValue(token("ink")), alt.ColorValue(token("muted")), state_colour("verdict")
    parts: list[tuple[str, float, Align, Strength, alt.Color | alt.ColorValue]] = [
        ("segment", 0, "left", 400, ink),
        ("text_n", edge - _end(rows) - _AWAY, "right", 400, muted),
        ("text_gap", edge - _SIGN, "right", _BOLD, colour),
        ("sign", edge, "right", 400, colour),
    ]
    data = inline(rows, "segment", "verdict", "text_n", "text_gap", "sign")
    texts = [
        alt.Chart(data)
        .mark_text(x=at, align=align, fontSize=_TEXT_SIZE, fontWeight=weight, aria=False)
        .encode(y=frame.y(at=_NAME_AT), text=alt.Text(f"{field}:N"), color=paint)
        for field, at, align, weight, paint in parts
    ]
    return [ground.encode(y=frame.y(at=0), y2=alt.Y2("segment:N", bandPosition=_GROUND)), *texts]


def _texts(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the columns of text: a head and a body each, at fixed places right of the plot."""
    parts, edge = [], frame.plot
    for column in _TEXTS:
        start, edge = edge + _GUTTER, edge + _GUTTER + column.width
        at = edge if column.align == "right" else start
        body = alt.Chart(inline(rows, "segment", "verdict", column.field)).mark_text(
            x=at,
            align=column.align,
            fontSize=_TEXT_SIZE,
            fontWeight=_BOLD if column.bold else 400,
            limit=column.width,
            aria=False,
        )
        colour = state_colour("verdict") if column.bold else alt.ColorValue(token("ink"))
        parts += [
            words(column.head, x=at, y=_HEAD, align=column.align, colour="muted"),
            body.encode(y=frame.y(), text=alt.Text(f"{column.field}:N"), color=colour),
        ]
    return parts
