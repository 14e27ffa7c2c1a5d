"""Curves as small tables of pieces, one of which a score lies in."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from calframe._kernels._binned import last_cells
from calframe._maps._forms import Points, Spline
from calframe._typing import Bools, Floats, Ints

Columns: TypeAlias = dict[str, Any]

END = 1e300  # no score lies beyond


def pieces_of_points(points: Points) -> Columns:
    """Return pieces of ``y + rise (at - x) / width``, those of one curve after those of another."""
    x, y = points.x, points.y
    curve, inner, last = _inner(points)
    inner &= np.diff(x, append=np.inf) > 0.0
    after = np.minimum(np.arange(len(x)) + 1, len(x) - 1)
    flat = {"x": 0.0, "width": 1.0, "rise": 0.0}
    between = {"high": x[after], "x": x, "width": x[after] - x, "y": y, "rise": y[after] - y}
    return _joined(
        {"curve": curve, "low": -END, "high": x, "y": y} | flat,
        {"curve": curve, "low": x} | between,
        {"curve": curve, "low": x, "high": END, "y": y} | flat,
        names=("curve", "low", "high", "x", "width", "y", "rise"),
        rows=(points.starts, np.flatnonzero(inner), last),
    )


def pieces_of_spline(spline: Spline) -> Columns:
    """Return pieces of ``c0 + c1 (at - x) + c2 (at - x)^2 + c3 (at - x)^3``, one curve after the other."""
    x, y, bend = spline.x, spline.y, spline.bend
    curve, inner, last = _inner(spline)
    after = np.minimum(np.arange(len(x)) + 1, len(x) - 1)
    width = np.where(inner, x[after] - x, 1.0)
    slope = (y[after] - y) / width - width * (2.0 * bend + bend[after]) / 6.0
    end = slope + width * (bend + bend[after]) / 2.0
    first = {"curve": curve, "low": -END, "high": x, "x": x, "c0": y, "c1": slope, "c2": 0.0, "c3": 0.0}
    between = {"low": x, "high": x[after], "c2": bend / 2.0, "c3": (bend[after] - bend) / (6.0 * width)}
    outer = {"low": x, "high": END, "c1": end[last - 1].repeat(spline.sizes)}
    return _joined(
        first, first | between, first | outer, names=tuple(first), rows=(spline.starts, np.flatnonzero(inner), last)
    )


def _inner(flat: Points | Spline) -> tuple[Ints, Bools, Ints]:
    """Return the curve of each point, whether another follows there, and the last one of each curve."""
    last = last_cells(flat.starts, len(flat.x))
    inner = np.ones(len(flat.x), dtype=bool)
    inner[last] = False
    return np.repeat(np.arange(len(flat)), flat.sizes), inner, last


def _joined(*parts: Columns, names: tuple[str, ...], rows: tuple[Ints, ...]) -> Columns:
    """Return some rows of each part, in the order of the points that they belong to."""
    place = np.concatenate(rows)
    order = np.lexsort((np.repeat(np.arange(len(rows)), [len(row) for row in rows]), place))
    return {
        name: np.concatenate([_at(part[name], row) for part, row in zip(parts, rows, strict=True)])[order]
        for name in names
    }


def _at(values: Floats | float, rows: Ints) -> Any:
    return np.full(len(rows), values) if isinstance(values, float) else values[rows]
