"""Forest plot: one line per segment, its gap with two intervals against the tolerance zone."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import Domain, Names, gap_axis, gap_domain
from calframe._charts._data import Columns, inline, single, tidy
from calframe._charts._marks import (
    Align,
    Part,
    described,
    layered,
    shape_by,
    state_colour,
    state_fill,
    state_stroke,
    words,
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
_LEAST_ENDS: Final = 250  # pixels that the two labels of the ends need side by side


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
    _Column("text_verdict", "verdict", 146, "left", bold=True),
)
_GUTTER: Final = 17


class _Frame(NamedTuple):
    """Where things are: the names of the segments, the range of the axis, and sizes in pixels."""

    names: Names
    domain: Domain
    plot: int
    total: int
    row: int
    wide: bool

    @property
    def zero(self) -> float:
        """Pixels from the left of the plot to a gap of zero."""
        low, high = self.domain
        return _EDGE - (self.plot - 2 * _EDGE) * low / (high - low)

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

    def y(self, *, at: float = 0.5) -> alt.Y:
        """Return the axis of segments; `at` is the place within a row, from 0 (top) to 1."""
        return self.names.y("segment", at=at)


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
        Total width in pixels. The columns of text are drawn only where there is room for them.

    Returns
    -------
    altair.LayerChart
        Intervals beyond the axis are cut and end in an arrowhead; a segment without a gap gets a dash.
    """
    rows = tidy(table, _COLUMNS).with_columns(pl.col("gap", *_INTERVALS) * 100)
    zone = tolerance * 100
    frame = _frame(rows, zone, width)
    rows = _placed(rows, frame.domain)
    parts: list[Part] = [
        *_zone(zone),
        *_lines(rows, frame),
        *_intervals(rows, frame),
        _dots(rows, frame),
        *_ends(frame),
        *(_texts(rows, frame) if frame.wide else [_without_gap(rows, frame)]),
    ]
    return themed(layered(parts, width=frame.total, height=frame.row * max(rows.height, 1)))


def _frame(rows: pl.DataFrame, zone: float, width: int) -> _Frame:
    wide = is_wide(width)
    least, most = (84, 204) if wide else (72, 124)
    names = Names.from_texts(rows["segment"].to_list(), least=least, most=most)
    total = inner(width) - names.extent
    taken = sum(column.width + _GUTTER for column in _TEXTS) if wide else 2 * PADDING
    row = 34 if rows.height <= _MANY else 28
    return _Frame(names, _domain(rows, zone), total - taken, total, row, wide)


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
    return [below.encode(y=frame.y(at=1), color=colour), top.encode(y=alt.value(0), color=colour)]


def _intervals(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the thin and the thick line of each segment, and arrowheads where the thin one is cut."""
    y, colour = frame.y(), state_colour("verdict")
    alone, together = rows.drop_nulls(["low", "high"]), rows.drop_nulls(["sim_low", "sim_high"])
    thin = alt.Chart(inline(together, "segment", "verdict", "sim_low_at", "sim_high_at"))
    thick = alt.Chart(inline(alone, "segment", "verdict", "low_at", "high_at"))
    heads = alt.Chart(inline(_cut(together, frame.domain), "segment", "verdict", "at", "shape"))
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
    """Return a row for each end of an interval that lies beyond the axis."""
    low, high = domain
    return pl.concat(
        [
            rows.filter(pl.col("sim_low") < low).with_columns(at=pl.lit(low), shape=pl.lit("left")),
            rows.filter(pl.col("sim_high") > high).with_columns(at=pl.lit(high), shape=pl.lit("right")),
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
    """Return the words at both ends of the axis; where the plot is small the left ones begin over the names."""
    left = min(0, frame.plot - _LEAST_ENDS)
    return [
        words("← says too little", x=left, y=_HEAD, align="left", colour="under"),
        words("says too much →", x=frame.plot, y=_HEAD, align="right", colour="over"),
    ]


def _without_gap(rows: pl.DataFrame, frame: _Frame) -> alt.Chart:
    """Return the verdict beside the dash of a segment that has no gap, where no column says it."""
    rightwards = frame.zero < frame.plot / 2
    mark = alt.Chart(inline(rows.filter(pl.col("shape") == "dash"), "segment", "text_verdict")).mark_text(
        x=frame.zero + 12 if rightwards else frame.zero - 12,
        align="left" if rightwards else "right",
        limit=max(frame.zero, frame.plot - frame.zero) - 12,
        fontSize=12,
        color=token("none"),
        aria=False,
    )
    beside: alt.Chart = mark.encode(y=frame.y(), text=alt.Text("text_verdict:N"))
    return beside


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
            fontWeight=600 if column.bold else 400,
            limit=column.width,
            aria=False,
        )
        colour = state_colour("verdict") if column.bold else alt.ColorValue(token("ink"))
        parts += [
            words(column.head, x=at, y=_HEAD, align=column.align, colour="muted"),
            body.encode(y=frame.y(), text=alt.Text(f"{column.field}:N"), color=colour),
        ]
    return parts
