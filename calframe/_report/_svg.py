"""A chart as SVG inside the page, or as a PNG file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import altair as alt
import vl_convert as vlc
from markupsafe import Markup, escape

from calframe._charts._theme import resolved
from calframe._report._escape import strict_json
from calframe._typing import Json

_TAG = re.compile(r"<[^<>]+>")  # the writer escapes < and > in text and attributes, so a tag is all there is
_ATTRIBUTE = re.compile(r' ([\w:-]+)="([^"]*)"')
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")
_ID = re.compile(r'<[^<>]* id="([^"]+)"')
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_LONG_DECIMALS = re.compile(r"(\.\d{2})\d+")  # a hundredth of a pixel is not seen
_SCHEMA = re.compile(r"/vega-lite/v(\d+\.\d+)")

_GEOMETRY = frozenset({"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "viewBox"})
# Namespaces mean nothing inside HTML, a link would leave the page, classes would catch a notebook's own style,
# and the font is the page's.
_DROPPED = frozenset({"xmlns", "xmlns:xlink", "version", "href", "xlink:href", "class", "font-family"})


def to_svg(chart: alt.TopLevelMixin, *, uid: str, label: str) -> Markup:
    """Draw a chart as an SVG element that stands directly in an HTML page.

    CSS variables of the chart pass through, so one drawing serves light, dark and print. The element takes
    the keyboard's focus, and each mark keeps its ``aria-label``.

    Parameters
    ----------
    chart
        Any Altair chart; its data must be in it, since nothing is fetched.
    uid
        What the ids inside the drawing start with; unique in the page, where all drawings share one space of ids.
    label
        What a screen reader says for the whole drawing: the finding.

    Returns
    -------
    Markup
        The ``<svg>`` element, without namespace and without any address.

    Raises
    ------
    RuntimeError
        If the installed vl-convert cannot draw the Vega-Lite version the installed Altair writes.
    """
    spec = _spec(chart)
    drawing = _drawn(strict_json(spec), version=_version(spec))
    ids = {old: f"{uid}-{position}" for position, old in enumerate(dict.fromkeys(_ID.findall(drawing)))}
    drawing = _TAG.sub(lambda tag: _tidy_tag(tag[0], ids=ids), drawing)
    opening = f'<svg role="graphics-document" tabindex="0" aria-label="{escape(label)}"'
    return Markup(drawing.replace("<svg", opening, 1))  # noqa: S704  written by vl-convert, which escapes text


def _drawn(spec: str, *, version: str) -> str:
    """Draw a specification; emoji are two units to Vega, and are written as codes where it cuts a name inside one."""
    try:
        return vlc.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[])
    except ValueError:
        if not _TWO_UNITS.search(spec):
            raise
        coded = _TWO_UNITS.sub(lambda found: f"<{ord(found[0]):X}>", spec)
        return vlc.vegalite_to_svg(coded, vl_version=version, allowed_base_urls=[])


def to_png(chart: alt.TopLevelMixin, path: Path, *, palette: Mapping[str, str], scale: float = 2.0) -> None:
    """Draw a chart into a PNG file, on an opaque ground.

    Parameters
    ----------
    chart
        Any Altair chart; its data must be in it, since nothing is fetched.
    path
        The file to write.
    palette
        Colour by token name, put in place of ``var(--cf-name)``: a picture knows no CSS variables.
        ``card`` is the ground.
    scale
        Pixels of the picture per pixel of the chart; 2 is sharp on a slide.

    Raises
    ------
    RuntimeError
        If the installed vl-convert cannot draw the Vega-Lite version the installed Altair writes.
    """
    spec = resolved(_spec(chart), palette)
    picture = vlc.vegalite_to_png(strict_json(spec), vl_version=_version(spec), scale=scale, allowed_base_urls=[])
    path.write_bytes(picture)


def _spec(chart: alt.TopLevelMixin) -> Json:
    """Write the chart as it was made: the user's theme and data settings are set aside, then come back."""
    with alt.theme.enable("default"), alt.data_transformers.enable("default", max_rows=None):
        return chart.to_dict(validate=False)  # our charts; their tests hold them to the schema, which takes long


def _version(spec: Json) -> str:
    found = _SCHEMA.search(spec["$schema"])
    known = vlc.get_vegalite_versions()
    if found is None or found[1] not in known:
        message = (
            f"expected a chart in one of the Vega-Lite versions vl-convert draws ({', '.join(known)}), "
            f"got {spec['$schema']!r} from Altair {alt.__version__}. Install a newer vl-convert-python."
        )
        raise RuntimeError(message)
    return found[1]


def _tidy_tag(tag: str, *, ids: Mapping[str, str]) -> str:
    if tag.endswith("/>") and ' display="none"' in tag:
        return ""

    def tidy(attribute: re.Match[str]) -> str:
        name, value = attribute.groups()
        if name in _DROPPED or (name, value) == ("opacity", "1"):
            return ""
        if name == "id":
            value = ids[value]
        elif name in _GEOMETRY:
            value = _LONG_DECIMALS.sub(r"\1", value)
        elif not name.startswith("aria-"):
            value = _REFERENCE.sub(lambda found: f"url(#{ids.get(found[1], found[1])})", value)
        return f' {name}="{value}"'

    return _ATTRIBUTE.sub(tidy, tag)
