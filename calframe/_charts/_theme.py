"""Colours, type and configuration that every chart shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeVar

import altair as alt

from calframe._typing import Json, Spec
from calframe._words._lines import wrapped

Drawing: TypeAlias = alt.LayerChart | alt.VConcatChart | alt.ConcatChart
Palette: TypeAlias = Mapping[str, str]
_Chart = TypeVar("_Chart", alt.LayerChart, alt.VConcatChart, alt.ConcatChart)

WIDE: Final = 952
NARROW: Final = 326
PADDING: Final = 4
_STROKE: Final = 2
_CAPTION_SIZE: Final = 12
_CAPTION_EM: Final = 0.54  # width of a letter, on the generous side
FONT: Final = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

LIGHT: Final[Palette] = {
    "ink": "#1b1f24",
    "muted": "#59636e",
    "faint": "#8b949e",
    "rule": "#dfe3e8",
    "card": "#ffffff",
    "bg": "#f6f7f9",
    "band": "#e2e8ef",
    "tol": "#eef1f4",
    "ghost": "#c3cad2",
    "over": "#b8480a",
    "under": "#0b63ad",
    "ok": "#3f4852",
    "none": "#68717b",
    "d0": "#2271b3",
    "d1": "#6fa8d6",
    "d2": "#c6ddef",
    "d3": "#f1f2f3",
    "d4": "#f8d6bb",
    "d5": "#ee9a60",
    "d6": "#c2520f",
    "dt0": "#ffffff",
    "dt1": "#1b1f24",
    "c0": "#0b63ad",
    "c1": "#c2520f",
    "c2": "#09a372",
    "c3": "#68290c",
    "c4": "#3c16ef",
    "c5": "#378da2",
    "c6": "#2f75f9",
    "c7": "#174446",
}
DARK: Final[Palette] = {
    "ink": "#e8ebee",
    "muted": "#a5afb9",
    "faint": "#77818c",
    "rule": "#30363d",
    "card": "#1a1e23",
    "bg": "#111417",
    "band": "#2d3640",
    "tol": "#20262c",
    "ghost": "#525c67",
    "over": "#ff9f61",
    "under": "#6cb8ff",
    "ok": "#c5ced7",
    "none": "#929da8",
    "d0": "#58aef5",
    "d1": "#296a9f",
    "d2": "#213f57",
    "d3": "#262c32",
    "d4": "#55361f",
    "d5": "#96561f",
    "d6": "#f7914a",
    "dt0": "#0d1116",
    "dt1": "#e8ebee",
    "c0": "#58aef5",
    "c1": "#ff9f61",
    "c2": "#aef1be",
    "c3": "#a96757",
    "c4": "#2f6ffa",
    "c5": "#8af2fd",
    "c6": "#98648b",
    "c7": "#fee120",
}

_VERBATIM: Final = frozenset({"datasets", "data", "domain"})  # parts of a specification that hold the user's text

# What holds several parts, by the part of a specification that they are.
_MANY: Final = {"layer": alt.LayerChart, "vconcat": alt.VConcatChart, "concat": alt.ConcatChart}

_JOINER: Final = "\u2060"  # seen by no reader


def token(name: str) -> str:
    """Return the CSS variable of a colour token."""
    return f"var(--cf-{name})"


def inner(width: int) -> int:
    """Return the pixels inside the padding; a stroke along the edge sticks out by half its own width."""
    return width - 2 * PADDING - _STROKE


def is_wide(width: int) -> bool:
    """Tell whether there is room for columns of text beside a plot."""
    return width > (WIDE + NARROW) / 2


def themed(chart: _Chart) -> _Chart:
    """Give one chart its configuration; nothing global is changed."""
    configured: _Chart = chart.configure(
        background="transparent",
        font=FONT,
        padding=PADDING,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=token("muted"),
            titleColor=token("muted"),
            gridColor=token("rule"),
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=8,
            labelPadding=6,
            ticks=False,
            domain=False,
        ),
        legend=alt.LegendConfig(
            labelColor=token("ink"),
            titleColor=token("muted"),
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
        ),
    )
    return configured


def specification(chart: Drawing, *, validate: bool = True) -> Json:
    """Return the specification of a chart with its own configuration alone, whatever theme is enabled globally.

    With `validate` it is held to the schema of Vega-Lite, which takes as long as all the rest.
    """
    out: Json = {**chart.to_dict(validate=validate), "config": chart.config.to_dict(validate=validate)}
    out.pop("usermeta", None)
    return out


def resolved(spec: Spec, palette: Palette) -> Json:
    """Return a specification with every CSS variable replaced by its colour in a palette.

    PNG and PDF writers, and a notebook outside the report, know no CSS variables. The user's text is left alone.
    """
    colours = {token(name): colour for name, colour in palette.items()}
    out = {name: _replaced(part, name, colours) for name, part in spec.items()}
    out["config"] = {**out.get("config", {}), "background": palette["card"]}
    return out


def standalone(chart: Drawing, *, palette: Palette = LIGHT, caption: str = "", width: int = WIDE) -> Any:
    """Return a chart with plain colours, to be shown or saved outside a report, with what its marks mean above it.

    Altair writes the specification into a script as it is, where the text ``</script>`` would end it, so text that a
    page could take for a tag is broken up by a character that takes no room.
    """
    captioned = _title(caption, width) | specification(chart, validate=False)
    return _rebuilt(_without_tags(resolved(captioned, palette)))


def _rebuilt(spec: Spec) -> Any:
    """Return the chart of a specification of ours.

    `Chart.from_dict` would try every class there is on every part, for seconds where a chart has many panels.
    """
    parts = dict(spec)
    if "config" in parts:
        parts["config"] = alt.Config(**parts["config"])
    for name, kind in _MANY.items():
        if name in parts:
            return kind(**parts | {name: [_rebuilt(part) for part in parts[name]]})
    return alt.Chart(**parts | {"encoding": alt.FacetedEncoding(**parts["encoding"])})


def _title(caption: str, width: int) -> Json:
    """Return a caption in lines of a width in pixels, flush with the left of the drawing."""
    if not caption:
        return {}
    style = {
        "fontSize": _CAPTION_SIZE,
        "fontWeight": "normal",
        "lineHeight": _CAPTION_SIZE + 4,
        "color": token("muted"),
    }
    lines = wrapped(caption, int(inner(width) / (_CAPTION_EM * _CAPTION_SIZE)))
    return {"title": {"text": lines, "anchor": "start", "frame": "bounds", "offset": 14, **style}}


def _without_tags(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_tags(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_without_tags(value) for value in part]
    return part.replace("</", f"<{_JOINER}/").replace("<!", f"<{_JOINER}!") if isinstance(part, str) else part


def _replaced(part: Any, name: str, colours: Mapping[str, str]) -> Any:
    if name in _VERBATIM:
        return part
    if isinstance(part, dict):
        return {key: _replaced(value, key, colours) for key, value in part.items()}
    if isinstance(part, list):
        return [_replaced(value, "", colours) for value in part]
    return colours.get(part, part) if isinstance(part, str) else part
