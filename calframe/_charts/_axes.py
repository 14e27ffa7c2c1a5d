"""Axes in the project's units: gaps in percentage points, shares in per cent, counts of rows."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Any, Final, NamedTuple

import altair as alt
import polars as pl

from calframe._charts._data import fitted_names, text_width
from calframe._charts._theme import token

# The sign is ours: Vega would write "+0" for zero. ".6~r" is six significant figures, no exponent, no idle zeros.
_SIGNED: Final = "datum.value === 0 ? '0' : (datum.value > 0 ? '+' : '\u2212') + format(abs(datum.value), '.6~r')"
_SHORT: Final = "datum.value === 0 ? '0' : format(datum.value, '~s')"  # "0k" otherwise
_REACH_OF_DOTS: Final = 2.5  # an interval may run this many times as far as the farthest dot
_REACH_OF_ENDS: Final = 2.0  # and this many times as far as the middle one of all intervals' ends
_ROOM_AROUND_TOLERANCE: Final = 1.25
_MARGIN: Final = 0.06
_SMALL: Final = 0.5  # below it an axis of probabilities ends near the largest of them, not at 100 %
_LEAST_SPAN: Final = 0.02  # percentage points

_NAME_SIZE: Final = 13
_NAME_GAP: Final = 10  # pixels between a name and the plot
_NAME_MARGIN: Final = 6
_SMALL_NAME_SIZE: Final = 12  # of a name in two lines
_NAME_LINE: Final = 13  # pixels from one line to the next
_IN_LINES: Final = r"split(datum.label, '\n')"
_ABOUT_THE_MIDDLE: Final[dict[str, Any]] = {  # one line on it, or one above and one below
    "condition": {"test": r"indexof(datum.value, '\n') > 0", "value": "bottom"},
    "value": "middle",
}
# Names are cut where the drawing is made, and shown in the reader's font, which may be this much wider.
CUT: Final = 0.86
LABELS: Final = 46  # pixels of the labels left of a plot; fixed, so that plots above each other line up

Domain = tuple[float, float]


class Names(NamedTuple):
    """The names of the rows, in order, whole and as shown, with the room left of the plot and the size of letters."""

    whole: list[str]
    texts: list[str]
    extent: int
    size: int

    @classmethod
    def beside(cls, names: list[str], *, least: int, most: int) -> Names:
        """Stand left of the plot on as many pixels as the longest name needs, within bounds, or in two lines."""
        needed = text_width(names, size=_NAME_SIZE) + _NAME_GAP + _NAME_MARGIN
        if needed <= most:
            return cls(names, names, int(max(needed, least)), _NAME_SIZE)
        room, size = CUT * (most - _NAME_GAP), _SMALL_NAME_SIZE
        cut = fitted_names(names, 2 * room - 2 * size, size=size)
        return cls(names, [_in_two(name, room) for name in cut], most, size)

    @classmethod
    def above(cls, names: list[str], *, room: float) -> Names:
        """Stand above the marks, each in a line of so many pixels."""
        return cls(names, fitted_names(names, CUT * room, size=_NAME_SIZE), 0, _NAME_SIZE)

    def shown(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of these names, called as they are shown; the names are in `segment`."""
        known = rows.filter(pl.col("segment").is_in(self.whole))
        return known.with_columns(pl.col("segment").replace_strict(self.whole, self.texts, return_dtype=pl.String))

    def y(self, field: str, *, at: float = 0.5) -> alt.Y:
        """Return the axis of names; `at` is the place within a row, from 0 (top) to 1."""
        axis = alt.Axis(
            title=None,
            labelExpr=_IN_LINES,
            labelFontSize=self.size,
            labelLineHeight=_NAME_LINE,
            labelBaseline=_ABOUT_THE_MIDDLE,
            labelColor=token("ink"),
            labelLimit=0,
            labelOverlap=False,
            minExtent=self.extent,
            maxExtent=self.extent,
        )
        scale = alt.Scale(domain=self.texts)
        return alt.Y(f"{field}:N", scale=scale, axis=axis if self.extent else None, bandPosition=at)


def _in_two(name: str, room: float) -> str:
    """Break a name into two lines of so many pixels, between words if it can be."""
    fits = [at for at in range(1, len(name) + 1) if text_width([name[:at]], size=_SMALL_NAME_SIZE) <= room]
    if fits[-1] == len(name):
        return name
    rest = (at for at in reversed(fits) if text_width([name[at:]], size=_SMALL_NAME_SIZE) <= room)
    at = next((at for at in rest if name[at] == " "), fits[-1])
    return f"{name[:at]}\n{name[at:].lstrip()}"


def score_x(field: str, *, limit: float, title: str | None = None, labels: bool = True) -> alt.X:
    """Return the axis of predicted probabilities, from 0 to a limit."""
    axis = share_axis(title=title, labels=labels, tickCount=5)
    return alt.X(f"{field}:Q", scale=fixed((0.0, limit)), axis=axis)


def upper_end(largest: float) -> float:
    """Return a round upper end for an axis of probabilities: 1, or less where all are small."""
    if largest > _SMALL or largest <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(largest)) / 2
    return round(ceil(largest * 1.02 / unit) * unit, 10)


def rate_y(field: str, *, limit: float, title: str = "happened (observed rate)") -> alt.Y:
    """Return the axis of observed rates, from 0 to a limit."""
    axis = share_axis(tickCount=5, **_left_labels(title))
    return alt.Y(f"{field}:Q", scale=fixed((0.0, limit)), axis=axis)


def gap_y(field: str, *, domain: Domain, ticks: int) -> alt.Y:
    """Return an upright axis of gaps in percentage points."""
    axis = gap_axis(tickCount=ticks, **_left_labels("gap: said − happened, pp"))
    return alt.Y(f"{field}:Q", scale=fixed(domain), axis=axis)


def rows_y(field: str) -> alt.Y:
    """Return an upright axis of row counts, shortened (2k, 1.5M)."""
    axis = alt.Axis(labelExpr=_SHORT, tickMinStep=1, tickCount=2, grid=False, **_left_labels("rows"))
    return alt.Y(f"{field}:Q", scale=alt.Scale(zero=True), axis=axis)


def gap_axis(**options: Any) -> alt.Axis:
    """Return an axis in percentage points: a sign on each number, none on zero."""
    return alt.Axis(labelExpr=_SIGNED, **options)


def share_axis(**options: Any) -> alt.Axis:
    """Return an axis in per cent, with as many decimals as its steps need."""
    return alt.Axis(format="~%", **options)


def fixed(domain: Domain) -> alt.Scale:
    """Return a scale that runs exactly from one number to the other."""
    return alt.Scale(domain=list(domain), nice=False, zero=False)


def gap_domain(gaps: pl.Series, ends: pl.Series, *, tolerance: float) -> Domain:
    """Return the range of a gap axis, all in percentage points.

    Every dot lies inside, and a little more than the tolerance zone. Intervals do too, unless one runs far beyond
    what the others need: it is cut there, so that a single tiny group does not flatten all the rest.
    """
    dots, stops = gaps.drop_nulls().to_list(), ends.drop_nulls().abs()
    core = max([abs(dot) for dot in dots] + [_ROOM_AROUND_TOLERANCE * tolerance])
    middle = stops.median()
    cap = max(_REACH_OF_DOTS * core, _REACH_OF_ENDS * (middle if isinstance(middle, float) else 0.0))
    room = _ROOM_AROUND_TOLERANCE * tolerance
    inside = [*dots, *ends.drop_nulls().clip(-cap, cap).to_list(), -room, room]
    return _padded(min(inside), max(inside))


def _padded(low: float, high: float) -> Domain:
    if high - low < _LEAST_SPAN:
        middle = (low + high) / 2
        low, high = middle - _LEAST_SPAN / 2, middle + _LEAST_SPAN / 2
    margin = _MARGIN * (high - low)
    return round(low - margin, 6), round(high + margin, 6)


def _left_labels(title: str) -> dict[str, Any]:
    """Return options of an upright axis: fixed room for labels, and the title level above it."""
    return {
        "minExtent": LABELS,
        "maxExtent": LABELS,
        "title": title,
        "titleAngle": 0,
        "titleAlign": "left",
        "titleBaseline": "bottom",
        "titleX": -LABELS,
        "titleY": -10,
    }
