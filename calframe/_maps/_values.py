"""What forms make of scores, worked out on arrays by the functions that the fits themselves use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from calframe._fitting import _spline, _steps
from calframe._fitting._fitted import Knots
from calframe._fitting._log_scores import apply_softmax, apply_temperature
from calframe._fitting._softmax import SoftmaxMaps
from calframe._fitting._structured import StructuredMaps, apply_structured
from calframe._kernels import _special as special
from calframe._kernels._logistic import logit
from calframe._maps._forms import Curve, Feature, Linear, OneVersusRest, Points, Softmax, Spline
from calframe._typing import Floats, Ints

FURTHEST = 1e50  # stands for an infinite logit, which no slope of 0 may turn into no number
_ZERO = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Scores of one class; NaN is a missing one, and stays one.

    Attributes
    ----------
    values : ndarray
        Probabilities, or logits.
    is_logit : bool
        Whether they are logits.
    floor : float
        How far from 0 a probability stays in a logarithm.
    code : ndarray of int64
        The number of the curve of each row.
    """

    values: Floats
    is_logit: bool
    floor: float
    code: Ints

    @property
    def share(self) -> Floats:
        """The scores as probabilities."""
        return expit(self.values) if self.is_logit else self.values

    def on(self, points: Points) -> Floats:
        """Return the scores on the scale of points."""
        return self.feature("score") if points.scale == "logit" else self.share

    def feature(self, name: Feature) -> Floats:
        """Return a feature of the scores themselves."""
        if self.is_logit:
            return _of_logit(name, self.values.clip(-FURTHEST, FURTHEST))
        if name == "score":
            return self.values
        if name == "logit":
            return logit(self.values, self.floor)
        found: Floats = np.log(np.maximum(self.values if name == "log" else 1.0 - self.values, self.floor))
        return found if name == "log" else -found


def of_curve(curve: Curve, scores: Scores) -> list[Floats]:
    """Return the probabilities that a binary map gives; after them the ends of their intervals if it has such."""
    if isinstance(curve, Points):
        return [through_points(curve, scores.on(curve), scores.code)]
    if isinstance(curve, Linear):
        return [_of_linear(curve, scores)]
    if isinstance(curve, Spline):
        return [expit(_through_spline(curve, scores.feature("logit"), scores.code))]
    low, high = (through_points(side, scores.on(side), scores.code) for side in (curve.low, curve.high))
    return [high / (1.0 - low + high), low, high]


def of_softmax(softmax: Softmax, shares: Floats, code: Ints, floor: float) -> Floats:
    """Return the probabilities that a map makes of vectors, one a row."""
    if softmax.is_identity:
        return np.where(np.isnan(shares).any(axis=1, keepdims=True), np.nan, shares)
    if softmax.temperature is not None:
        return apply_temperature(shares, softmax.temperature, code, floor=floor)
    if softmax.cooling is not None and softmax.uniform is not None:
        maps = SoftmaxMaps(
            slopes=softmax.weight, intercepts=softmax.shift, outcome=_ZERO, converged=np.ones(1, dtype=bool)
        )
        structured = StructuredMaps(temperature=softmax.cooling, uniform=softmax.uniform, maps=maps)
        return apply_structured(shares, structured, code, floor=floor)
    return apply_softmax(shares, softmax.weight, softmax.shift, code, floor=floor)


def of_each_class(maps: OneVersusRest, shares: Floats, code: Ints, floor: float) -> Floats:
    """Return the probabilities of a binary map for each class, divided by their sum."""
    parts = np.column_stack(
        [
            of_curve(curve, Scores(values=share, is_logit=False, floor=floor, code=code))[0]
            for curve, share in zip(maps.classes, shares.T, strict=True)
        ]
    )
    total = parts.sum(axis=1, keepdims=True)
    even = np.full_like(parts, 1.0 / parts.shape[1])
    found: Floats = np.divide(parts, total, out=even, where=total != 0.0)
    return found


def through_points(points: Points, at: Floats, code: Ints) -> Floats:
    """Return the values of curves at scores."""
    knots = Knots(starts=points.starts, x=points.x, y=points.y, outcome=_ZERO)
    return _steps.evaluate(knots, code, at, closed="left" if points.side == "right" else "right")


def expit(z: Floats, *, out: Floats | None = None) -> Floats:
    """Return ``1 / (1 + exp(-z))``, in an array that is there already if one is given."""
    found: Floats = np.negative(z, out=out)
    with np.errstate(over="ignore"):  # 1 / inf is the 0 that is meant
        np.exp(found, out=found)
    found += 1.0
    return np.divide(1.0, found, out=found)  # in half the time of `reciprocal`


def _of_logit(name: Feature, z: Floats) -> Floats:
    """Return ``ln p``, ``-ln(1 - p)`` or the logit itself, none of them rounded where p is."""
    if name in ("logit", "score"):
        return z
    found: Floats = special.log_expit(z) if name == "log" else -special.log_expit(-z)
    return found


def _of_linear(curve: Linear, scores: Scores) -> Floats:
    if not curve.features:
        return scores.share
    odds = reduce(
        lambda total, term: np.add(total, term, out=total),
        (_term(curve, name, c, scores) for name, c in zip(curve.features, curve.coefficients(), strict=True)),
    )
    found = expit(odds, out=odds)
    return found.clip(curve.epsilon, 1.0 - curve.epsilon, out=found) if curve.epsilon else found


def _term(curve: Linear, name: Feature, coefficient: Floats, scores: Scores) -> Floats:
    """Return a coefficient times its feature, in an array of its own."""
    term = coefficient.take(scores.code)
    if name == "curve" and curve.base is not None:
        rate = through_points(curve.base, scores.on(curve.base), np.zeros_like(scores.code))
        term *= logit(rate, scores.floor)
    elif name != "one":
        term *= scores.feature(name)
    return term


def _through_spline(spline: Spline, z: Floats, code: Ints) -> Floats:
    nothing = np.zeros(0)
    knots = _spline.SplineKnots(
        starts=spline.starts,
        x=spline.x,
        y=spline.y,
        curvature=spline.bend,
        outcome=_ZERO,
        strength=nothing,
        freedom=nothing,
    )
    return _spline.spline_at(knots, z, code)
