"""Timeline: the gap of each period, and how many rows each has."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from textwrap import wrap
from typing import Final, Literal, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS, Domain, gap_domain, gap_y, rows_y
from calframe._charts._data import Columns, inline, text_width, tidy
from calframe._charts._marks import Strength, described, layered, state_colour, x_pixel, y_pixel
from calframe._charts._theme import Drawing, inner, is_wide, themed, token

_COLUMNS: Final[Columns] = {
    "period": pl.String,
    "label": pl.String,
    "gap": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Float64,
    "state": pl.String,
    "tag": pl.String,
    "description": pl.String,
    "wide_low": pl.Float64,
    "wide_high": pl.Float64,
    "reference": pl.Boolean,
    "alarm": pl.String,
}
_OPTIONAL: Final = ("wide_low", "wide_high", "reference", "alarm")
_LARGEST_LABEL: Final = 110
_LARGEST_BAR: Final = 26
_FLAT: Final = 150  # height of the gaps where there are several panels
_BARS: Final = 44  # height of the row counts
_HEADING: Final = 15  # size of a panel's title, and the height of a line of its note
_NOTE_SIZE: Final = 12
_TAG_ROOM: Final = 0.09  # of the axis, above and below, for a line of words: of marked periods, and of an alarm
_SIGN: Final = 0.9  # of the size of letters: what a sign and the space behind it take


class _Frame(NamedTuple):
    """The periods in order, the range of the gaps, and pixels: of the plot, of one period, of the widest label."""

    periods: list[str]
    domain: Domain
    plot: float
    step: float
    label: float
    wide: bool
    flat: bool = False

    @property
    def height(self) -> int:
        """The height of the plot of gaps."""
        return _FLAT if self.flat else 240 if self.wide else 190

    def x(self) -> alt.X:
        """Return the axis of periods, without labels: they are drawn as text."""
        return alt.X("period:N", scale=alt.Scale(domain=self.periods), axis=None)

    def y(self, field: str) -> alt.Y:
        """Return the axis of gaps."""
        return gap_y(field, domain=self.domain, ticks=5)


class Panel(NamedTuple):
    """One of several timelines: its title, a note on how to read it (or nothing), and its table."""

    title: str
    note: str
    table: pl.DataFrame


def timeline(table: pl.DataFrame, *, tolerance: float, width: int) -> Drawing:
    """Draw the gap of each period over a row of bars for the number of rows.

    Parameters
    ----------
    table : polars.DataFrame
        One row per period, in order: `period` (unique text), `label` (text on the axis), `gap`, `low`, `high`
        (fractions or null), `n`, `state` (colour), `tag` (a sign, a space and words, or empty), `description`. Where
        there is no gap, the line is broken. May be left out: `wide_low` and `wide_high` (a thin line behind the
        interval), `reference` (whether its bar is dark), `alarm` (words at a dashed line, or null).
    tolerance : float
        Half-width of the tolerance zone, a fraction.
    width : int
        Total width in pixels. Labels and tags that would meet are left out, the latest ones last.

    Returns
    -------
    altair.VConcatChart
        Gaps above, row counts below, on one axis of periods.
    """
    return themed(_drawing(table, tolerance, width))


def timelines(panels: Sequence[tuple[str, str, pl.DataFrame]], *, tolerance: float, width: int) -> Drawing:
    """Draw timelines below each other, each under its title and note.

    Parameters
    ----------
    panels : sequence of (str, str, polars.DataFrame)
        Title, note and table (as in `timeline`) of each.
    tolerance, width
        As in `timeline`.
    """
    made = [Panel(*panel) for panel in panels]
    flat = len(made) > 1
    parts: list[alt.LayerChart | alt.VConcatChart] = []
    for panel in made:
        parts += [_heading(panel, width), _drawing(panel.table, tolerance, width, flat=flat)]
    return themed(alt.vconcat(*parts, spacing=14))


def _heading(panel: Panel, width: int) -> alt.LayerChart:
    """Write title and note; as values, in lines as wide as the drawing."""
    room = int(inner(width) / (0.5 * _NOTE_SIZE))
    lines = [panel.title, *wrap(panel.note, room)]
    rows = tidy(
        pl.DataFrame({"line": lines, "at": [i * (_HEADING + 3) for i in range(len(lines))]}),
        {"line": pl.String, "at": pl.Float64},
    )
    parts = []
    for part, size, colour in ((rows.head(1), _HEADING, "ink"), (rows[1:], _NOTE_SIZE, "muted")):
        mark = alt.Chart(inline(part, "line", "at")).mark_text(
            align="left", baseline="top", fontSize=size, color=token(colour), aria=False
        )
        y = alt.Y("at:Q", scale=None, axis=None)
        parts.append(mark.encode(x=x_pixel(-LABELS), y=y, text=alt.Text("line:N")))
    return layered(parts, width=inner(width) - LABELS, height=len(lines) * (_HEADING + 3) + 6)


def _drawing(table: pl.DataFrame, tolerance: float, width: int, *, flat: bool = False) -> alt.VConcatChart:
    missing = [pl.lit(None, dtype=_COLUMNS[name]).alias(name) for name in _OPTIONAL if name not in table.columns]
    percentages = pl.col("gap", "low", "high", "wide_low", "wide_high") * 100
    rows = tidy(table.with_columns(missing), _COLUMNS).with_columns(percentages)
    rows = rows.with_row_index("place").with_columns(marked=pl.col("tag").fill_null("") != "")
    zone = tolerance * 100
    ends = pl.concat([rows[name] for name in ("low", "high", "wide_low", "wide_high")])
    low, high = gap_domain(rows["gap"], ends, tolerance=zone)
    rows = rows.with_columns(pl.col("low", "high", "wide_low", "wide_high").clip(low, high))
    frame = _frame(rows, (low, high), width)._replace(flat=flat)
    drawing: alt.VConcatChart = alt.vconcat(_gaps(rows, zone, frame), _bars(rows, frame), spacing=12)
    return drawing


def _frame(rows: pl.DataFrame, reach: Domain, width: int) -> _Frame:
    """Leave room above and below for tags and alarms, and at the right for half a label beyond the last period."""
    low, high = reach
    tags = rows.filter("marked")["gap"]
    room = _TAG_ROOM * (high - low)
    above = int((tags >= 0).any()) + int(rows["alarm"].is_not_null().any())
    domain = (low - room if (tags < 0).any() else low, high + above * room)
    label = min(text_width(rows["label"].drop_nulls().to_list()), _LARGEST_LABEL)
    space = inner(width) - LABELS
    count = max(rows.height, 1)
    plot = space - max(0.0, label / 2 - space / count / 2)
    return _Frame(rows["period"].to_list(), domain, plot, plot / count, label, is_wide(width))


def _gaps(rows: pl.DataFrame, zone: float, frame: _Frame) -> alt.LayerChart:
    x, y, colour = frame.x(), frame.y("gap"), state_colour("state")
    size, halo = (90, 1.5) if frame.step >= 16 else (40, 1.0) if frame.step >= 8 else (22, 0.75)
    line = alt.Chart(inline(rows, "period", "gap")).mark_line(color=token("ghost"), strokeWidth=2, aria=False)
    dots = alt.Chart(inline(rows.drop_nulls("gap"), "period", "gap", "state", "description")).mark_point(
        filled=True, size=size, opacity=1, strokeWidth=halo
    )
    parts = [
        *_zone(zone, frame),
        line.encode(x=x, y=y),
        *_spans(rows, frame),
        dots.encode(x=x, y=y, color=colour, stroke=alt.StrokeValue(token("card")), **described()),
        *_tags(rows, frame),
        *_alarms(rows, frame),
    ]
    return layered(parts, width=frame.plot, height=frame.height)


def _spans(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the intervals: the wide one, if there is one, as a thin line behind a thick one."""
    wide = rows["wide_low"].is_not_null().any()
    thick = 3.5 if wide else 2.0
    spans = [("wide_low", "wide_high", 1.0)] if wide else []
    drawn = []
    for low, high, stroke in [*spans, ("low", "high", thick)]:
        mark = alt.Chart(inline(rows.drop_nulls([low, high]), "period", low, high, "state")).mark_rule(
            strokeWidth=stroke if frame.step >= 8 else 0.6 * stroke, aria=False
        )
        drawn.append(mark.encode(x=frame.x(), y=frame.y(low), y2=alt.Y2(f"{high}:Q"), color=state_colour("state")))
    return drawn


def _alarms(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return a dashed line through the period of an alarm, and its words at the top, on the side with more room."""
    marked = rows.drop_nulls("alarm")
    if not marked.height:
        return []
    place = int(marked["place"][0])
    left = 2 * place < rows.height
    room = frame.step * (max(place, rows.height - 1 - place) + 0.5) - 5
    line = alt.Chart(inline(marked, "period")).mark_rule(color=token("muted"), strokeDash=[4, 3], aria=False)
    mark = alt.Chart(inline(marked, "period", "alarm")).mark_text(
        align="left" if left else "right",
        dx=5 if left else -5,
        baseline="top",
        fontSize=11,
        limit=room,
        color=token("muted"),
    )
    return [line.encode(x=frame.x()), mark.encode(x=frame.x(), y=y_pixel(0), text=alt.Text("alarm:N"))]


def _zone(zone: float, frame: _Frame) -> list[alt.Chart]:
    edges = alt.InlineData(values=[{"from": -zone, "to": zone, "zero": 0}])
    band = alt.Chart(edges).mark_rect(color=token("tol"), aria=False)
    zero = alt.Chart(edges).mark_rule(color=token("faint"), aria=False)
    return [band.encode(y=frame.y("from"), y2=alt.Y2("to:Q")), zero.encode(y=frame.y("zero"))]


def _tags(rows: pl.DataFrame, frame: _Frame) -> list[alt.Chart]:
    """Return the words at marked periods, clear of the intervals near them: above for a gap upwards, else below."""
    marked = rows.filter("marked").drop_nulls("gap")
    size = 12.5 if frame.wide else 11.5
    apart = (text_width(marked["tag"].to_list(), size=size) + 4) / frame.step
    near = 2 * int(apart / 2) + 1  # periods that the words stand over
    edges = rows.with_columns(
        top=pl.coalesce("high", "gap").rolling_max(near, center=True, min_samples=1),
        foot=pl.coalesce("low", "gap").rolling_min(near, center=True, min_samples=1),
    )
    clear = marked.filter(pl.col("place") + 0.5 >= apart / 2)["place"].to_list()  # not over the labels of the axis
    kept = edges.filter(pl.col("place").is_in(_spread(clear, apart)))
    kept = kept.with_columns(sign=pl.col("tag").str.head(1), tag=pl.col("tag").str.slice(2))
    return [
        *_tag(kept.filter(pl.col("gap") >= 0), "top", frame, size, shift=-7),
        *_tag(kept.filter(pl.col("gap") < 0), "foot", frame, size, shift=7),
    ]


def _tag(rows: pl.DataFrame, edge: str, frame: _Frame, size: float, *, shift: int) -> list[alt.Chart]:
    """Return the signs and the words behind them: one by one, for not every font has the signs."""
    data, side = inline(rows, "period", edge, "sign", "tag", "state"), 0.5 * _SIGN * size
    before = side - 0.5 * text_width(rows["tag"].to_list(), size=size)
    drawn = []
    parts: tuple[tuple[str, float, Literal["right", "center"], Strength], ...] = (
        ("sign", before, "right", 400),
        ("tag", side, "center", 700),
    )
    for field, dx, align, weight in parts:
        mark = alt.Chart(data).mark_text(
            dx=dx,
            dy=shift,
            align=align,
            baseline="bottom" if shift < 0 else "top",
            fontWeight=weight,
            fontSize=size,
            aria=False,
        )
        text = alt.Text(f"{field}:N")
        drawn.append(mark.encode(x=frame.x(), y=frame.y(edge), text=text, color=state_colour("state")))
    return drawn


def _spread(places: list[int], apart: float) -> list[int]:
    """Choose places from the last one backwards so that each is at least so many periods from the next."""
    kept: list[int] = []
    for place in reversed(places):
        if not kept or kept[-1] - place >= apart:
            kept.append(place)
    return kept


def _bars(rows: pl.DataFrame, frame: _Frame) -> alt.LayerChart:
    """Return the row counts with the labels of the periods below; a period without a gap is described here."""
    every = max(1, ceil((frame.label + 10) / frame.step))
    labelled = rows.filter((rows.height - 1 - pl.col("place").cast(pl.Int64)) % every == 0)
    labels = alt.Chart(inline(labelled, "period", "label")).mark_text(
        y=_BARS + 8, baseline="top", fontSize=12, limit=_LARGEST_LABEL, color=token("muted"), aria=False
    )
    speaks, dark = pl.col("gap").is_null(), pl.col("reference").fill_null(value=False)
    parted = rows.with_columns(speaks=speaks, dark=dark).partition_by("speaks", "dark", maintain_order=True)
    parts = [
        *(_bar(part, frame) for part in parted),
        labels.encode(x=frame.x(), text=alt.Text("label:N")),
    ]
    return layered(parts, width=frame.plot, height=_BARS)


def _bar(rows: pl.DataFrame, frame: _Frame) -> alt.Chart:
    speaks, dark = bool(rows["speaks"][0]), bool(rows["dark"][0])
    columns = ("period", "n", "description") if speaks else ("period", "n")
    mark = alt.Chart(inline(rows, *columns)).mark_bar(
        color=token("faint" if dark else "ghost"), size=min(_LARGEST_BAR, 0.68 * frame.step), aria=speaks
    )
    bar: alt.Chart = mark.encode(x=frame.x(), y=rows_y("n"), **(described() if speaks else {}))
    return bar
