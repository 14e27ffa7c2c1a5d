"""Structured vector and matrix scaling: temperature first, then a map near the identity, held there by few rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calframe._fitting._fitted import Outcome, Parameters
from calframe._fitting._log_scores import apply_softmax, apply_temperature
from calframe._fitting._multinomial import Penalty, Rows, identity
from calframe._fitting._softmax import SoftmaxMaps, Solution, fitted, solved, temperature
from calframe._kernels._logistic import FLOOR
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats, Ints

_HOTTEST = float(np.exp(16.0))  # the temperature, and its inverse, that the published search stops at
_LEAST = float(np.finfo(np.float64).tiny)  # mixtures with the uniform distribution need no floor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StructuredMaps:
    """The map ``softmax(W ln q + b)`` of each segment, with ``q = (1 - u) softmax(z / T) + u / K``.

    Attributes
    ----------
    temperature : ndarray of shape (n_segments,)
        T.
    uniform : ndarray of shape (n_segments,)
        u, ``1 / (n + 1)`` with the weight n of the segment.
    maps : SoftmaxMaps
        W and b, in the form given there. All are FINE: the penalties hold each map near the identity.
    """

    temperature: Floats
    uniform: Floats
    maps: SoftmaxMaps


def structured(
    vectors: Vectors,
    *,
    kind: Literal["vector", "matrix"] = "matrix",
    intercept: float = 1.0,
    diagonal: float = 1.0,
    off_diagonal: float = 1.0,
    class_power: float = 1.0,
    row_power: float = 1.0,
    is_logit: bool = False,
    floor: float = FLOOR,
) -> StructuredMaps:
    """Fit structured vector scaling (SVS) or structured matrix scaling (SMS) in each segment.

    First the temperature T by maximum likelihood, ``1 / T`` in ``[e^-16, e^16]``, and the mixture with the uniform
    distribution ``q = (1 - 1 / (n + 1)) softmax(z / T) + 1 / ((n + 1) K)``. Then, on ``x = ln q``, the minimum of

    - vector: ``mean CE(softmax((1 + v) * x + b)) + K^rho / n^tau (intercept |b|^2 + diagonal |v|^2)``,
    - matrix: ``mean CE(softmax(x + V x + b)) + K^rho / n^tau (intercept |b|^2 + diagonal sum_i V_ii^2)
      + (K (K - 1))^rho / n^tau off_diagonal sum_{i != j} V_ij^2``,

    with n the weight of the segment: weight 2 is the row twice, and the scale of the weights matters. The more rows,
    the weaker the penalties. The defaults are the published ones, and those of probmetrics.

    Parameters
    ----------
    vectors : Vectors
        Rows, with probabilities or logits.
    kind : {"vector", "matrix"}
        Which map.
    intercept, diagonal, off_diagonal : float
        Strengths of the penalties, positive; a vector has no use for the last.
    class_power, row_power : float
        rho and tau.
    is_logit, floor
        As in `calframe._fitting._softmax.temperature`.

    References
    ----------
    Berta, E., Holzmüller, D., Jordan, M. I. and Bach, F. (2025). Structured matrix scaling for multi-class
    calibration. https://doi.org/10.48550/arXiv.2511.03685

    Examples
    --------
    Few rows leave the map near the temperature:

    >>> rows = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.8, 0.1, 0.1]] * 4, order="F"),
    ...     label=np.array([0, 0, 1, 2]),
    ...     weight=np.ones(4),
    ...     squared=np.ones(4),
    ... )
    >>> fit = structured(rows)
    >>> fit.temperature.round(9), fit.uniform
    (array([3.]), array([0.2]))
    >>> apply_structured(rows.scores[:1], fit, np.array([0])).round(2)
    array([[0.48, 0.26, 0.26]])
    """
    found = temperature(vectors, is_logit=is_logit, floor=floor)
    weight = vectors.total(vectors.weight)
    heat, uniform = _published(found), 1.0 / (weight + 1.0)
    mixed = _mixed(vectors.scores, heat, uniform, vectors.segment, is_logit=is_logit, floor=floor)
    units = np.array([vectors.classes, vectors.classes * (vectors.classes - 1)]) ** class_power
    terms = (intercept * units[0], diagonal * units[0], off_diagonal * units[1])
    centre = identity(vectors.classes, diagonal=kind == "vector")
    strength = _strength(kind, vectors.classes, terms)

    def solve(number: int, rows: Rows, start: Floats) -> Solution:
        penalty = Penalty(strength=strength / weight[number] ** row_power, centre=centre)
        return solved(rows, penalty, start, strict=bool(strength.all()), gauge=_all)

    maps = fitted(
        replace(vectors, scores=mixed),
        solve,
        diagonal=kind == "vector",
        is_logit=False,
        floor=_LEAST,
        smoothing=False,
    )
    return StructuredMaps(temperature=heat, uniform=uniform, maps=maps)


def apply_structured(
    scores: Floats, fit: StructuredMaps, segment: Ints, *, is_logit: bool = False, floor: float = FLOOR
) -> Floats:
    """Return the calibrated probabilities of each row, by the map of its segment.

    Arguments and result as in `calframe._fitting._log_scores.apply_softmax`.
    """
    mixed = _mixed(scores, fit.temperature, fit.uniform, segment, is_logit=is_logit, floor=floor)
    return apply_softmax(mixed, fit.maps.slopes, fit.maps.intercepts, segment, floor=_LEAST)


def _published(found: Parameters) -> Floats:
    """Return the temperatures, and the ends of the published search where there is none."""
    ends = {Outcome.SEPARABLE: 1.0 / _HOTTEST, Outcome.BOUND: _HOTTEST, Outcome.ONE_SCORE: 1.0}
    heat: Floats = found.values[0].copy()
    for outcome, end in ends.items():
        heat[found.outcome == outcome] = end
    np.clip(heat, 1.0 / _HOTTEST, _HOTTEST, out=heat)
    return heat


def _mixed(scores: Floats, heat: Floats, uniform: Floats, segment: Ints, *, is_logit: bool, floor: float) -> Floats:
    """Return ``(1 - u) softmax(z / T) + u / K``."""
    out = apply_temperature(scores, heat, segment, is_logit=is_logit, floor=floor)
    share = uniform[segment][:, None]
    out *= 1.0 - share
    out += share / out.shape[1]
    return out


def _strength(kind: str, classes: int, terms: tuple[float, float, float]) -> Floats:
    """Return the strengths of the penalties on the intercepts, the diagonal and the rest, by coefficient."""
    intercept, diagonal, rest = terms
    if kind == "vector":
        return np.tile([diagonal, intercept], (classes, 1))
    out = np.full((classes, classes + 1), rest)
    np.fill_diagonal(out, diagonal)
    out[:, -1] = intercept
    return out


def _all(theta: Floats) -> Floats:
    """Return all coefficients: the penalties tell equal maps apart."""
    return theta
