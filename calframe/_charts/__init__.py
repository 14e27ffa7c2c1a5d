"""Charts: tidy tables of aggregates in, Altair charts out.

A function here reads fixed column names, works out nothing but positions on the page, and never sees a row of
the user's table. The user's text enters as values only: no field name, title or expression is made from it.
Every colour is a CSS variable, so that one drawing serves light, dark and print; `resolved` puts plain colours in
their place where there is no page around the drawing.
"""

from calframe._charts._axes import upper_end
from calframe._charts._curve import reliability_curves
from calframe._charts._forest import forest
from calframe._charts._heatmap import heatmap
from calframe._charts._lines import reliability_line
from calframe._charts._map_lines import map_lines
from calframe._charts._multiples import multiples
from calframe._charts._names import names_of
from calframe._charts._overlay import COLOURS, overlay, overlay_lines
from calframe._charts._reliability import reliability
from calframe._charts._theme import DARK, LIGHT, NARROW, WIDE, Drawing, resolved, specification, standalone, themed
from calframe._charts._timeline import timeline, timelines

__all__ = [
    "COLOURS",
    "DARK",
    "LIGHT",
    "NARROW",
    "WIDE",
    "Drawing",
    "forest",
    "heatmap",
    "map_lines",
    "multiples",
    "names_of",
    "overlay",
    "overlay_lines",
    "reliability",
    "reliability_curves",
    "reliability_line",
    "resolved",
    "specification",
    "standalone",
    "themed",
    "timeline",
    "timelines",
    "upper_end",
]
