"""Reliability diagrams of one curve that is a line: isotonic steps, or a smooth curve."""

from __future__ import annotations

from typing import Final

import altair as alt
import polars as pl

from calframe._charts._axes import gap_domain
from calframe._charts._data import Columns, inline, tidy
from calframe._charts._diagram import SAID, Frame, square, stacked, strip, strip_y
from calframe._charts._marks import band, described, state_colour
from calframe._charts._reliability import COLUMNS
from calframe._charts._theme import Drawing, token

_COLUMNS: Final[Columns] = {**COLUMNS, "lower": pl.Float64, "upper": pl.Float64}
_RIBBON: Final = 0.22  # opacity
_REACH: Final = 0.02  # of the axis: how far beyond its ends a curve is spoken of


def reliability_line(
    table: pl.DataFrame,
    histogram: pl.DataFrame | None,
    *,
    steps: bool,
    width: int,
    limit: float = 1.0,
    said: str = SAID,
) -> Drawing:
    """Draw a reliability diagram of one line over a strip of its gaps.

    The line has the colour of its state, and so has the ribbon of its interval around it. The words of a point show
    wherever the pointer is above or below it.

    Parameters
    ----------
    table : polars.DataFrame
        Two rows or more, each a point of the curve: the columns of `reliability`, and `lower` and `upper`, between
        which it is spoken of.
    histogram : polars.DataFrame or None
        As of `reliability`.
    steps : bool
        Whether each row is a step from `lower` to `upper`; else the line runs through the points at `mean_score`.
    width, limit, said
        As of `reliability`.

    Returns
    -------
    altair.VConcatChart
        The parts above each other on one axis of scores.
    """
    frame = Frame.from_width(width, limit=limit, said=said)
    points = tidy(table, _COLUMNS).drop_nulls(["mean_score", "rate"]).sort("mean_score")
    line = _stretches(corners(points, steps=steps))
    gaps = _strip(points, line, frame, lowest=histogram is None)
    return stacked(_square(points, line, frame), gaps, histogram, frame)


def corners(points: pl.DataFrame, *, steps: bool) -> pl.DataFrame:
    """Return the points that lines run through, at `at`: both ends of each step, or the mean scores."""
    if not steps:
        return points.with_columns(at="mean_score")
    ends = [points.with_columns(at=end) for end in ("lower", "upper")]
    return pl.concat(ends).sort("at", maintain_order=True)


def _stretches(line: pl.DataFrame) -> pl.DataFrame:
    """Part a line where its state changes; a stretch reaches to the first point of the next, so that none is torn."""
    numbered = line.with_columns(stretch=pl.col("state").rle_id())
    joints = numbered.with_columns(pl.col("state", "stretch").shift()).filter(pl.col("stretch") != numbered["stretch"])
    return pl.concat([numbered, joints]).sort("stretch", maintain_order=True)


def _square(points: pl.DataFrame, line: pl.DataFrame, frame: Frame) -> alt.LayerChart:
    ends = ("rate", "rate_low", "rate_high", "band_low", "band_high")
    line = line.with_columns(pl.col("at", *ends).clip(0.0, frame.limit))
    inside = points.with_columns(pl.col("lower", "upper", "mean_score", *ends).clip(0.0, frame.limit))
    shade = band(
        inside,
        frame.x("mean_score"),
        frame.y("band_low"),
        at="mean_score",
        low="band_low",
        high="band_high",
    )
    marks = [_ribbon(line, frame), _line(line, frame), *_dots(inside, frame), _spots(inside, frame)]
    return square(marks, frame, below=[shade])


def _ribbon(line: pl.DataFrame, frame: Frame) -> alt.Chart:
    rows = line.drop_nulls(["rate_low", "rate_high"])
    mark = alt.Chart(inline(rows, "stretch", "at", "rate_low", "rate_high", "state")).mark_area(
        opacity=_RIBBON, aria=False
    )
    ribbon: alt.Chart = mark.encode(
        x=frame.x("at"),
        y=frame.y("rate_low"),
        y2=alt.Y2("rate_high:Q"),
        color=state_colour("state"),
        detail=alt.Detail("stretch:N"),
    )
    return ribbon


def _line(line: pl.DataFrame, frame: Frame) -> alt.Chart:
    mark = alt.Chart(inline(line, "stretch", "at", "rate", "state")).mark_line(
        strokeWidth=2.5 if frame.wide else 2, strokeCap="round", aria=False
    )
    drawn: alt.Chart = mark.encode(
        x=frame.x("at"), y=frame.y("rate"), color=state_colour("state"), detail=alt.Detail("stretch:N")
    )
    return drawn


def _dots(points: pl.DataFrame, frame: Frame) -> list[alt.Chart]:
    """Return a dot for each step at a single score, which has no length."""
    single = points.filter(pl.col("lower") == pl.col("upper"))
    if single.is_empty():
        return []
    mark = alt.Chart(inline(single, "lower", "rate", "state")).mark_point(filled=True, size=44, opacity=1, aria=False)
    return [mark.encode(x=frame.x("lower"), y=frame.y("rate"), color=state_colour("state"))]


def _spots(points: pl.DataFrame, frame: Frame) -> alt.Chart:
    """Return what the pointer and a screen reader find: one unseen column a point, half-way to the next ones."""
    before, after = (pl.col("upper").shift() + pl.col("lower")) / 2, (pl.col("upper") + pl.col("lower").shift(-1)) / 2
    reach = _REACH * frame.limit
    columns = points.with_columns(
        start=before.fill_null(pl.col("lower") - reach).clip(0.0, frame.limit),
        end=after.fill_null(pl.col("upper") + reach).clip(0.0, frame.limit),
    )
    mark = alt.Chart(inline(columns, "start", "end", "description")).mark_rect(opacity=0, color=token("card"))
    spots: alt.Chart = mark.encode(x=frame.x("start"), x2=alt.X2("end:Q"), **described())
    return spots


def _strip(points: pl.DataFrame, line: pl.DataFrame, frame: Frame, *, lowest: bool) -> alt.LayerChart:
    """Return the gaps along the scores: within a step they grow with the score."""
    line = line.with_columns(gap_pp=100 * (pl.col("at") - pl.col("rate"))).filter(pl.col("at") <= frame.limit)
    points = points.filter(pl.col("mean_score") <= frame.limit).with_columns(
        strip_low=100 * (pl.col("mean_score") - pl.col("band_high")),
        strip_high=100 * (pl.col("mean_score") - pl.col("band_low")),
    )
    domain = gap_domain(line["gap_pp"], pl.concat([points["strip_low"], points["strip_high"]]), tolerance=0.0)
    clipped = points.with_columns(pl.col("strip_low", "strip_high").clip(*domain))
    mark = alt.Chart(inline(line, "stretch", "at", "gap_pp", "state")).mark_line(strokeWidth=2, aria=False)
    gaps = mark.encode(
        x=frame.x("at", lowest=lowest),
        y=strip_y("gap_pp", domain),
        color=state_colour("state"),
        detail=alt.Detail("stretch:N"),
    )
    shade = band(
        clipped,
        frame.x("mean_score", lowest=lowest),
        strip_y("strip_low", domain),
        at="mean_score",
        low="strip_low",
        high="strip_high",
    )
    return strip([gaps], frame, below=[shade])
