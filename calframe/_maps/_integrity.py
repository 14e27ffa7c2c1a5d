"""Whether the parts of a map that was read from a file belong together; what they say wrongly is a ValueError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np

from calframe._maps._forms import Feature, Form, Linear, OneVersusRest, Pair, Points, Softmax, Spline
from calframe._maps._segments import Segments
from calframe._typing import Bools, Floats, Ints


def check_parts(form: Form, segments: Segments, classes: int) -> None:
    """Raise unless a form is whole, is one of so many classes, and has the curves that segments take."""
    if isinstance(form, OneVersusRest):
        _require(len(form.classes) == classes > 2, f"it is for {classes} classes and has {len(form.classes)} parts")
        for curve in form.classes:
            _check_form(curve)
            _require(len(curve) == len(form), "its classes have unequal numbers of curves")
    else:
        _check_form(form)
        known = form.weight.shape[1] if isinstance(form, Softmax) else 2
        _require(known == (classes or 2), f"it is for {classes} classes and its form for {known}")
    _require(len(form) > 0, "it has no curve")
    _check_segments(segments, len(form))


def _check_segments(segments: Segments, curves: int) -> None:
    sizes = {len(segments), *(len(part) for part in (*segments.keys, segments.n, segments.low, segments.high))}
    _require(sizes == {len(segments.note)}, "its segments have columns of unequal lengths")
    _require(all(key.null_count() == 0 for key in segments.keys), "a segment has no key")
    taken = segments.curve
    _require(bool(((taken >= 0) & (taken < curves)).all()), f"a segment takes a curve that is none of the {curves}")


def _check_form(form: Any) -> None:
    _CHECKS[type(form)](form)


def _check_points(points: Points) -> None:
    _check_flat(points.starts, points.x, (points.y,), fewest=1)
    later = np.diff(points.x)[~_ends(points.starts, len(points.x))]
    _require(bool((later >= 0.0).all()), "its points are not ascending")


def _check_spline(spline: Spline) -> None:
    _check_flat(spline.starts, spline.x, (spline.y, spline.bend), fewest=2)
    later = np.diff(spline.x)[~_ends(spline.starts, len(spline.x))]
    _require(bool((later > 0.0).all()), "its knots are not ascending")


def _check_linear(curve: Linear) -> None:
    shape = (len(curve.names), curve.values.shape[-1])
    _require(set(curve.features) <= set(get_args(Feature)), f"it has an unknown feature among {curve.features}")
    _require(len(curve.features) == len(curve.names), "its features and parameters differ in number")
    _require(curve.values.shape == shape and curve.errors.shape == shape, "its parameters are not a full table")
    _require(bool(np.isfinite(curve.values).all()), "it has a parameter that is no number")
    _require(("curve" in curve.features) == (curve.base is not None), "its feature 'curve' is not given")
    if curve.base is not None:
        _check_points(curve.base)
        _require(len(curve.base) == 1, "its feature 'curve' is more than one")


def _check_pair(pair: Pair) -> None:
    for side in (pair.low, pair.high):
        _check_points(side)
    _require(len(pair.low) == len(pair.high), "the ends of its intervals have unequal numbers of curves")


def _check_softmax(softmax: Softmax) -> None:
    maps, classes = len(softmax), softmax.shift.shape[-1]
    _require(softmax.weight.shape == (maps, classes, classes), "its matrices are not square")
    _require(softmax.shift.shape == (maps, classes), "its matrices and intercepts differ in number")
    _require((softmax.cooling is None) == (softmax.uniform is None), "a part of it is missing")
    for part in (softmax.weight, softmax.shift, softmax.temperature, softmax.cooling, softmax.uniform):
        if part is not None:
            _require(len(part) == maps and bool(np.isfinite(part).all()), "it has a parameter that is no number")


_CHECKS: Mapping[type[Any], Callable[[Any], None]] = {
    Points: _check_points,
    Linear: _check_linear,
    Spline: _check_spline,
    Pair: _check_pair,
    Softmax: _check_softmax,
}


def _check_flat(starts: Ints, x: Floats, others: tuple[Floats, ...], *, fewest: int) -> None:
    _require(all(part.ndim == 1 and part.shape == x.shape for part in (x, *others)), "its points are not all there")
    sizes = np.diff(np.append(starts, len(x)))
    _require(len(starts) > 0 and starts[0] == 0 and bool((sizes >= fewest).all()), "its curves do not begin in order")
    _require(all(bool(np.isfinite(part).all()) for part in (x, *others)), "it has a point that is no number")


def _ends(starts: Ints, points: int) -> Bools:
    """Return which steps from one point to the next lead from one curve to another."""
    found = np.zeros(max(points - 1, 0), dtype=bool)
    found[starts[1:] - 1] = True
    return found


def _require(condition: bool, text: str) -> None:  # noqa: FBT001  a condition and what its failure means
    if not condition:
        raise ValueError(text)
