"""The chart of a map: which lines it has, and the points that they run through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from calframe._charts import COLOURS, Drawing, map_lines, names_of, standalone, upper_end
from calframe._maps._map import CalibrationMap
from calframe._maps._traces import POOLED, Traced, corners_of, ends_of, several, traced
from calframe._typing import Floats, Ints

_MOST_GREY = 60
_FINE, _COARSE = 200, 40  # even steps of the axis, of coloured and of grey lines
_CELLS = 200  # of the axis, in each of which a line has two bends at most
_NEAR_ENDS = np.array([1e-4, 3e-4, 1e-3, 2e-3])  # shares of the axis, where lines may be steep
_SPOKEN = 10  # even steps of the fitted range
_SAME = 1e-9  # classes that differ by less have one line
_POOLED_NAME = "pooled map"
_ONE = ("score, as a probability (dotted: beyond those of the fit)", "calibrated probability")
_LARGEST = ("largest probability before, the others being equal", "that of the same class after")
_MEANS = (_LARGEST[0], f"{_LARGEST[1]}, mean over classes")


class _Line(NamedTuple):
    """A line: the keys it is called by, and its points."""

    keys: Sequence[Any]
    points: pl.DataFrame


def plotted(the_map: CalibrationMap, *, width: int) -> Drawing:
    """Draw a map in plain colours, to be shown or saved by itself."""
    ranked = _ranked(the_map)
    if several(the_map) and not len(ranked):
        limit, lines, noun, most, titles = 1.0, _class_lines(the_map), "classes", "most changed", _LARGEST
    else:
        chosen = np.sort(ranked[: len(COLOURS) + _MOST_GREY])
        limit = 1.0 if several(the_map) else _limit(the_map, chosen)
        lines, noun, most = _segment_lines(the_map, chosen, ranked, limit), "segments", "largest"
        titles = _MEANS if several(the_map) else _ONE
    count = len(ranked) or len(lines)
    legend = f"{len(COLOURS)} {most} of {count:,} {noun} in colour" if count > len(COLOURS) else None
    if legend and count > len(lines):
        legend += f", {_MOST_GREY} in grey"
    whole, short = names_of([line.keys for line in lines])
    named = [
        line.points.with_columns(curve=pl.lit(label), name=pl.lit(name if len(lines) > 1 else ""))
        for line, name, label in zip(lines, whole, short, strict=True)
    ]
    drawing = map_lines(pl.concat(named), width=width, before=titles[0], after=titles[1], limit=limit, legend=legend)
    found: Drawing = standalone(drawing)
    return found


def _ranked(the_map: CalibrationMap) -> Ints:
    """Return the segments that have a map of their own, those of most rows first."""
    own = np.flatnonzero(the_map.segments.curve)
    found: Ints = own[np.argsort(-the_map.segments.n[own], kind="stable")]
    return found


def _limit(the_map: CalibrationMap, chosen: Ints) -> float:
    """Return the upper end of both axes, which the fitted scores and what becomes of them need."""
    place = np.append(POOLED, chosen)
    low, high = ends_of(the_map, place)
    at = np.linspace(low, high, _COARSE + 1)
    made = traced(the_map, np.tile(place, len(at)), at.ravel())
    return upper_end(max(float(high.max()), float(made.value.max())))


def _segment_lines(the_map: CalibrationMap, chosen: Ints, ranked: Ints, limit: float) -> list[_Line]:
    """Return the line of the pooled map, and those of segments."""
    coloured = set(ranked[: len(COLOURS)].tolist())
    steps = [_FINE, *(_FINE if place in coloured else _COARSE for place in chosen.tolist())]
    names = [(_POOLED_NAME,), *([key[place] for key in the_map.segments.keys] for place in chosen.tolist())]
    found = _points(the_map, np.append(POOLED, chosen), limit, steps=steps)
    return [_Line(keys, points) for keys, (points, _) in zip(names, found, strict=True)]


def _class_lines(the_map: CalibrationMap) -> list[_Line]:
    """Return a line for each class, or one for all where they do not differ."""
    ((points, value),) = _points(the_map, np.array([POOLED]), 1.0, steps=[_FINE])
    if float(np.ptp(value, axis=1).max()) < _SAME:
        return [_Line((_POOLED_NAME,), points)]
    change = np.abs(value - points["at"].to_numpy()[:, None]).max(axis=0)
    return [
        _Line((name,), points.with_columns(value=own, weight=pl.lit(size), pooled=pl.lit(value=False)))
        for name, own, size in zip(the_map.classes, value.T, change.tolist(), strict=True)
    ]


def _points(
    the_map: CalibrationMap, places: Ints, limit: float, *, steps: Sequence[int]
) -> list[tuple[pl.DataFrame, Floats]]:
    """Return the points of the lines of segments, each with what becomes of every class there."""
    ends = list(zip(*(end.tolist() for end in ends_of(the_map, places)), strict=True))
    spoken = [np.linspace(low, high, _SPOKEN + 1) for low, high in ends]
    at = [
        np.unique(np.concatenate([_scores(the_map, place, each, many, limit), said]))
        for place, each, many, said in zip(places.tolist(), ends, steps, spoken, strict=True)
    ]
    sizes = [len(scores) for scores in at]
    made = traced(the_map, np.repeat(places, sizes), np.concatenate(at)).parted(sizes)
    weights = np.append(the_map.segments.n, the_map.n)[places].tolist()
    rows = zip(places.tolist(), weights, ends, at, spoken, made, strict=True)
    return [
        _line(scores, said, own, weight=float(weight), pooled=place == POOLED, lower=low, upper=high)
        for place, weight, (low, high), scores, said, own in rows
    ]


def _line(at: Floats, spoken: Floats, made: Traced, **constants: Any) -> tuple[pl.DataFrame, Floats]:
    """Return the points of one line, without those within a level stretch."""
    columns = {"at": at, "value": made.value.mean(axis=1), "spoken": np.isin(at, spoken)}
    ends = {"value_low": made.low, "value_high": made.high}
    frame = pl.DataFrame(columns | ends, schema_overrides=dict.fromkeys(ends, pl.Float64))
    values = [*made.value.T, *(end for end in ends.values() if end is not None)]
    level = np.all([value[1:] == value[:-1] for value in values], axis=0)
    needed = np.isin(at, [*spoken, at[0], at[-1]])
    needed[1:-1] |= ~(level[1:] & level[:-1])
    kept = frame.filter(pl.Series(needed))
    return kept.with_columns(pl.lit(each).alias(name) for name, each in constants.items()), made.value[needed]


def _scores(the_map: CalibrationMap, place: int, ends: tuple[float, float], steps: int, limit: float) -> Floats:
    """Return the scores that a line is drawn through: even ones, and where it bends, in each cell the first and last.

    A step has both of its ends, so that it is drawn upright.
    """
    least = 1.0 / len(the_map.classes) if several(the_map) else 0.0
    corners = corners_of(the_map, place)
    cell = np.floor(corners * _CELLS / limit)
    outer = np.ones(len(corners), dtype=bool)
    outer[1:-1] = (cell[1:-1] != cell[:-2]) | (cell[1:-1] != cell[2:])
    near = limit * _NEAR_ENDS
    even = np.linspace(least, limit, steps + 1)
    found = np.concatenate([even, near, limit - near, ends, corners[outer]])
    return found[(found >= least) & (found <= max(limit, ends[1]))]
