"""A chart as a file: SVG, PNG, or a page that holds all it needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from calframe._cli._output import put
from calframe._report._escape import script_json

_MENU = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}  # the editor is a web page
_SHARP = 2.0  # pixels of a picture per pixel of the chart


class _ScriptEncoder(json.JSONEncoder):
    """Writes JSON that cannot end the script element it stands in, whatever the segments are called."""

    def encode(self, o: Any) -> str:
        """Return the JSON text with `<`, `>` and `&` as codes."""
        return str(script_json(o))


def write_chart(chart: Any, path: Path) -> None:
    """Write a chart to a file, whole or not at all; nothing is loaded from the network, then or later.

    Parameters
    ----------
    chart : altair.TopLevelMixin
        What `Curve.plot` gives.
    path
        A path with one of `CHART_SUFFIXES`.
    """
    form = path.suffix.lower().removeprefix(".")
    more: dict[str, dict[str, Any]] = {
        "png": {"scale_factor": _SHARP},
        "html": {"inline": True, "embed_options": _MENU, "json_kwds": {"cls": _ScriptEncoder}},
    }
    put(path, lambda part: chart.save(part, format=form, **more.get(form, {})))
