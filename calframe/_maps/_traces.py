"""What a map makes of scores that nobody gave it: along a grid, in each of its segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from calframe._maps._applying import applied, new_columns
from calframe._maps._forms import Linear, OneVersusRest, Pair, Points, Softmax
from calframe._maps._map import CalibrationMap
from calframe._maps._values import expit
from calframe._typing import Floats, Ints

POOLED = -1  # the place of the pooled map among the segments
_NAME = "_cf_traced"  # of the columns that the map adds
_MOST_NUMBERS = 2**21  # worked out at once
_BESIDE = 1e-9  # so far beside a step its other side is looked at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traced:
    """What a map makes of scores.

    Attributes
    ----------
    value : ndarray of shape (n, n_classes)
        For one score a row its calibrated probability. For several classes: in column k that of class k, before it
        the largest, the others being equal.
    low, high : ndarray of shape (n,), optional
        The ends of its interval, where the map gives one.
    """

    value: Floats
    low: Floats | None = None
    high: Floats | None = None

    def parted(self, sizes: Sequence[int]) -> list[Self]:
        """Return the parts of so many scores each."""
        at = np.cumsum(sizes)[:-1]
        value = np.split(self.value, at)
        low, high = ([None] * len(sizes) if end is None else np.split(end, at) for end in (self.low, self.high))
        return [type(self)(value=v, low=a, high=b) for v, a, b in zip(value, low, high, strict=True)]


def several(the_map: CalibrationMap) -> bool:
    """Tell whether a map makes a probability for each of several classes."""
    return isinstance(the_map.form, Softmax | OneVersusRest)


def traced(the_map: CalibrationMap, place: Ints, at: Floats) -> Traced:
    """Return what a map makes of probabilities in segments, which are given by their places; `POOLED` has none."""
    width = len(the_map.classes) ** 2 if several(the_map) else 1
    size = max(1, _MOST_NUMBERS // width)
    starts = range(0, max(len(at), 1), size)
    parts = [_traced(the_map, place[start : start + size], at[start : start + size]) for start in starts]
    ends = [
        None if parts[0][name] is None else np.concatenate([part[name] for part in parts]) for name in ("low", "high")
    ]
    return Traced(value=np.concatenate([part["value"] for part in parts]), low=ends[0], high=ends[1])


def ends_of(the_map: CalibrationMap, place: Ints) -> tuple[Floats, Floats]:
    """Return the lowest and the highest score of segments; of several classes the largest of a row.

    They are NaN in segments without rows, and the ends of what is possible where the map does not know them.
    """
    least = 1.0 / len(the_map.classes) if several(the_map) else 0.0
    if isinstance(the_map.form, OneVersusRest):
        return np.full(len(place), least), np.ones(len(place))
    low = np.append(the_map.segments.low, least if the_map.low is None else the_map.low)[place]
    high = np.append(the_map.segments.high, 1.0 if the_map.high is None else the_map.high)[place]
    return np.maximum(low, least), high


def corners_of(the_map: CalibrationMap, place: int) -> Floats:
    """Return the scores between which the curve of a segment is smooth, each with its neighbours on either side."""
    curve = 0 if place == POOLED else int(the_map.segments.curve[place])
    found = np.unique(_corners(the_map.form, curve))
    return np.unique(np.concatenate([found - _BESIDE, found, found + _BESIDE]).clip(0.0, 1.0))


def _corners(form: Any, curve: int) -> Floats:
    if isinstance(form, Points):
        x = form.only(np.array([curve])).x
        return expit(x) if form.scale == "logit" else x
    if isinstance(form, Pair):
        return np.concatenate([_corners(form.low, curve), _corners(form.high, curve)])
    if isinstance(form, Linear) and form.base is not None:
        return _corners(form.base, 0)
    return np.zeros(0)


def _traced(the_map: CalibrationMap, place: Ints, at: Floats) -> dict[str, Any]:
    classes = len(the_map.classes)
    each = classes if several(the_map) else 1
    rows = _keys(the_map, np.repeat(place, each)) | _scores(the_map, at)
    names = new_columns(the_map, _NAME)
    found = applied(pl.DataFrame(rows), the_map, name=_NAME).select(names).to_numpy()
    if each == 1:
        value, *ends = found.T
        return {"value": value[:, None]} | dict(zip(("low", "high"), ends or (None, None), strict=True))
    own = found.reshape(len(at), each, each)
    return {"value": np.diagonal(own, axis1=1, axis2=2), "low": None, "high": None}


def _keys(the_map: CalibrationMap, place: Ints) -> dict[str, pl.Series]:
    """Return the segment columns of rows; those of the pooled map are null."""
    after = pl.Series(place + 1)
    keys = {key.name: key.alias("") for key in the_map.segments.keys}  # a name may be a pattern to polars
    return {name: pl.concat([pl.Series([None], dtype=key.dtype), key]).gather(after) for name, key in keys.items()}


def _scores(the_map: CalibrationMap, at: Floats) -> dict[str, Any]:
    """Return the score columns that say these probabilities."""
    names, classes = the_map.scores, len(the_map.classes)
    if several(the_map):
        rest = (1.0 - at) / (classes - 1)
        own = np.eye(classes, dtype=bool)[None]
        shares = np.where(own, at[:, None, None], rest[:, None, None]).reshape(-1, classes)
    else:
        shares = np.column_stack([1.0 - at, at])[:, -max(classes, 1) :]
    if the_map.link == "logit":
        with np.errstate(divide="ignore"):
            shares = np.log(shares) if classes else np.log(shares) - np.log1p(-shares)
    if the_map.vector:
        return {names[0]: pl.Series(shares.tolist(), dtype=pl.List(pl.Float64))}
    return dict(zip(names, shares.T, strict=True))
