"""What reliability diagrams of one curve share: the square, the gaps, the histogram, one axis of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._axes import LABELS, Domain, gap_y, rate_y, rows_y, score_x
from calframe._charts._data import Columns, inline, single, tidy
from calframe._charts._marks import Part, diagonal, layered, words
from calframe._charts._theme import Drawing, inner, themed, token

SAID: Final = "said (predicted probability)"
HISTOGRAM: Final[Columns] = {"lower": pl.Float64, "upper": pl.Float64, "n": pl.Float64}
_LARGEST_SIDE: Final = 430
_NARROW_SIDE: Final = 320
_RIGHT: Final = 4
_STRIP: Final = 104  # heights in pixels
_COUNTS: Final = 56
_NARROW_BAR: Final = 8  # pixels; narrower bars stand close together


class Frame(NamedTuple):
    """The side of the square in pixels, the upper end of both axes, whether there is room, and the title of scores."""

    side: int
    limit: float
    wide: bool
    said: str

    @classmethod
    def from_width(cls, width: int, *, limit: float, said: str) -> Frame:
        """Fit a square into a total width; it is at most 430 pixels wide."""
        side = min(inner(width) - LABELS - _RIGHT, _LARGEST_SIDE)
        return cls(side, limit, wide=side > _NARROW_SIDE, said=said)

    def x(self, field: str, *, lowest: bool = False) -> alt.X:
        """Return the axis of scores; it has its labels and title in the lowest part."""
        return score_x(field, limit=self.limit, title=self.said if lowest else None, labels=lowest)

    def y(self, field: str) -> alt.Y:
        """Return the axis of observed rates."""
        return rate_y(field, limit=self.limit)


def square(marks: Sequence[Part], frame: Frame, *, below: Sequence[Part]) -> alt.LayerChart:
    """Draw marks over what lies below them, the diagonal, and the names of its two sides."""
    line = diagonal(frame.x("at"), frame.y("at"), limit=frame.limit)
    return layered([*below, line, *_sides(frame), *marks], width=frame.side, height=frame.side)


def _sides(frame: Frame) -> list[alt.Chart]:
    edge, size = (14, 12.5) if frame.wide else (9, 11.5)
    low = frame.side - edge
    return [
        words(
            "▲ happens more often than said", x=edge, y=edge + 4, align="left", colour="under", size=size, on_line=True
        ),
        words(
            "happens less often than said ▼", x=low, y=low - 4, align="right", colour="over", size=size, on_line=True
        ),
    ]


def strip(marks: Sequence[Part], frame: Frame, *, below: Sequence[Part]) -> alt.LayerChart:
    """Draw gaps over what lies below them and the line of no gap."""
    zero = alt.Chart(single()).mark_rule(color=token("faint"), strokeDash=[4, 4], aria=False)
    line = zero.encode(y=alt.YDatum(0, type="quantitative"))
    return layered([*below, line, *marks], width=frame.side, height=_STRIP)


def strip_y(field: str, domain: Domain) -> alt.Y:
    """Return the axis of the strip."""
    return gap_y(field, domain=domain, ticks=4)


def stacked(above: alt.LayerChart, gaps: alt.LayerChart, histogram: pl.DataFrame | None, frame: Frame) -> Drawing:
    """Set the parts above each other; without a histogram the strip of gaps is the lowest."""
    counts = [] if histogram is None else [_counts(tidy(histogram, HISTOGRAM), frame)]
    return themed(alt.vconcat(above, gaps, *counts, spacing=12))


def _counts(histogram: pl.DataFrame, frame: Frame) -> alt.Chart:
    bars = histogram.filter(pl.col("lower") < frame.limit).with_columns(pl.col("upper").clip(0.0, frame.limit))
    widths = frame.side / frame.limit * (bars["upper"] - bars["lower"])
    narrow = (widths.quantile(0.5) or 0.0) < _NARROW_BAR
    mark = alt.Chart(inline(bars, "lower", "upper", "n")).mark_bar(
        color=token("ghost"), binSpacing=0 if narrow else 1, aria=False
    )
    x = frame.x("lower", lowest=True).bin("binned")
    chart: alt.Chart = mark.encode(x=x, x2=alt.X2("upper:Q"), y=rows_y("n")).properties(
        width=frame.side, height=_COUNTS
    )
    return chart
