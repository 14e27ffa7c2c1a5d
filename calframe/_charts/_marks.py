"""Parts that several charts draw: state colours, words at a fixed place, the diagonal, a described mark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import altair as alt
import polars as pl

from calframe._charts._data import inline, single
from calframe._charts._theme import token

Align: TypeAlias = Literal["left", "right"]
Strength: TypeAlias = Literal[400, 700]  # of letters
Part: TypeAlias = alt.Chart | alt.LayerChart

# A place in pixels; `alt.value` has Altair look for the class among all there are, which takes milliseconds each time.
x_pixel: Final[Any] = alt.XValue
y_pixel: Final[Any] = alt.YValue

# What a state or verdict is drawn in; a lean has the colour of its side, and an open mark.
_STATE_TOKENS: Final = {
    "over": "over",
    "under": "under",
    "in": "ok",
    "within": "ok",
    "leans_over": "over",
    "leans_under": "under",
    "unsure": "none",
    "few": "none",
}
_OPEN_STATES: Final = frozenset({"leans_over", "leans_under", "unsure", "few"})


def layered(parts: Sequence[Part], *, width: float, height: float) -> alt.LayerChart:
    """Draw parts over each other, the first one lowest."""
    return alt.LayerChart(layer=[_light(part) for part in parts], width=width, height=height)


def state_colour(field: str) -> alt.Color:
    """Colour a mark by its state or verdict."""
    return alt.Color(f"{field}:N", scale=_state_scale(frozenset()), legend=None)


def state_stroke(field: str) -> alt.Stroke:
    """Colour the outline of a mark by its state or verdict."""
    return alt.Stroke(f"{field}:N", scale=_state_scale(frozenset()), legend=None)


def state_fill(field: str) -> alt.Fill:
    """Fill a mark by its verdict: open where the verdict is not firm."""
    return alt.Fill(f"{field}:N", scale=_state_scale(_OPEN_STATES), legend=None)


def shape_by(field: str, shapes: dict[str, str]) -> alt.Shape:
    """Shape a mark by a field of our own."""
    scale = alt.Scale(domain=list(shapes), range=list(shapes.values()))
    return alt.Shape(f"{field}:N", scale=scale, legend=None)


def described() -> dict[str, Any]:
    """Return the encodings that give a mark its words: for a screen reader, and under the pointer."""
    return {"description": alt.Description("description:N"), "tooltip": alt.Tooltip("description:N")}


def words(
    text: str, *, x: float, y: float, align: Align, colour: str, size: float = 12, on_line: bool = False
) -> alt.Chart:
    """Write words of ours at a place in pixels, above it or (with `on_line`) centred on it."""
    mark = alt.Chart(single()).mark_text(
        align=align,
        baseline="middle" if on_line else "bottom",
        fontSize=size,
        color=token(colour),
        aria=False,
    )
    written: alt.Chart = mark.encode(x=x_pixel(x), y=y_pixel(y), text=alt.TextValue(text))
    return written


def diagonal(x: alt.X, y: alt.Y, *, limit: float) -> alt.Chart:
    """Draw the line on which what was said happened; `x` and `y` encode the field `at`."""
    ends = alt.InlineData(values=[{"at": 0.0}, {"at": limit}])
    mark = alt.Chart(ends).mark_line(color=token("faint"), strokeDash=[4, 4], strokeWidth=1, aria=False)
    line: alt.Chart = mark.encode(x=x, y=y)
    return line


def band(table: pl.DataFrame, x: alt.X, y: alt.Y, *, at: str, low: str, high: str) -> alt.Chart:
    """Shade from `low` to `high` along `at`: an area, or a thick stroke where a single row spans no area."""
    rows = table.drop_nulls([low, high])
    base = alt.Chart(inline(rows, at, low, high))
    if rows.height > 1:
        mark = base.mark_area(color=token("band"), aria=False)
    else:
        mark = base.mark_rule(color=token("band"), strokeWidth=10, aria=False)
    shade: alt.Chart = mark.encode(x=x, y=y, y2=alt.Y2(f"{high}:Q"))
    return shade


def _state_scale(opened: frozenset[str]) -> alt.Scale:
    colours = [token("card" if name in opened else colour) for name, colour in _STATE_TOKENS.items()]
    return alt.Scale(domain=list(_STATE_TOKENS), range=colours)


def _light(part: Part) -> Part:
    """Hold the mark and the channels of a part as plain dictionaries.

    Altair copies every part of a drawing many times, and its objects carry all that they might hold and do not.
    """
    if isinstance(part, alt.LayerChart):
        return part
    light: alt.Chart = part.copy(deep=False)
    light.mark = part.mark.to_dict(validate=False)
    written = part.encoding.to_dict(validate=False, context={})
    light.encoding = alt.FacetedEncoding(**written)
    return light
