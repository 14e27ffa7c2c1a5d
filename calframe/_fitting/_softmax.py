"""Maps of probability vectors, ``P = softmax(W z + b)`` with ``z = ln p``: temperature, vector and matrix scaling.

The temperatures of all segments are found in one iteration. The other maps are fitted one segment after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np

from calframe._fitting._cooling import coolest, cooling_of
from calframe._fitting._fitted import Outcome, Parameters
from calframe._fitting._log_scores import features_of, smooth_shares
from calframe._fitting._multinomial import Gauge, Penalty, Rows, identity, minimised, normal_form, projected, told_apart
from calframe._kernels._logistic import FLOOR
from calframe._kernels._vectors import Vectors
from calframe._typing import Bools, Floats, Ints

Kind: TypeAlias = Literal["temperature", "vector", "matrix"]

RIDGE = 1e-6  # towards the identity, beside the mean loss, where rows alone leave the map open; see `tiny_ridge`
FLATTEST = 1000.0  # the temperature that stands for an infinite one
_STEEPEST = 64.0  # where 1 / T begins at most, on log scores of range 1


class TooFewRowsError(ValueError):
    """Segments with fewer rows than a map without a penalty has parameters."""

    @classmethod
    def from_sizes(cls, kind: Kind, classes: int, sizes: Ints) -> Self:
        """Say how many rows the smallest segment has, and how many it needs."""
        need, number = n_parameters(kind, classes), int(np.argmin(sizes))
        return cls(
            f"{kind} scaling of {classes} classes has {need} parameters, and segment {number} has {sizes[number]} "
            "rows; fit fewer parameters, pool segments, or give a penalty."
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SoftmaxMaps:
    """The map ``softmax(W z + b)`` of each segment.

    Of the equal ones, b and the off-diagonal of each column of W have sum 0: so the identity is ``W = I, b = 0``, and
    a temperature ``W = I / T``.

    Attributes
    ----------
    slopes : ndarray of shape (n_segments, n_classes, n_classes)
        W, from the log scores in columns to the classes in rows.
    intercepts : ndarray of shape (n_segments, n_classes)
        b.
    outcome : ndarray of int64, shape (n_segments,)
        FINE. Else rows alone leave the map open, and it is that of `RIDGE`: ONE_CLASS; SEPARABLE (also if some class
        never happened, and where the maximum is so far out that rounding hides it); ONE_SCORE, too few distinct rows,
        or collinear ones.
    converged : ndarray of bool, shape (n_segments,)
        Whether the iteration ended at the minimum.
    """

    slopes: Floats
    intercepts: Floats
    outcome: Ints
    converged: Bools


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """The coefficients of one segment, and how they were found."""

    theta: Floats
    outcome: Outcome
    converged: bool


def n_parameters(kind: Kind, classes: int) -> int:
    """Return the number of parameters of a map, those counted once that make the same map.

    Examples
    --------
    >>> [n_parameters(kind, 3) for kind in ("temperature", "vector", "matrix")]
    [1, 5, 8]
    """
    return {"temperature": 1, "vector": 2 * classes - 1, "matrix": classes**2 - 1}[kind]


def scarce(vectors: Vectors, kind: Kind) -> Bools:
    """Return which segments have fewer rows than the map has parameters; without a penalty those are refused."""
    return vectors.sizes < n_parameters(kind, vectors.classes)


def refuse_scarce(vectors: Vectors, kind: Kind) -> None:
    """Raise `TooFewRowsError` if some segment is `scarce`."""
    if scarce(vectors, kind).any():
        raise TooFewRowsError.from_sizes(kind, vectors.classes, vectors.sizes)


def temperature(
    vectors: Vectors, *, is_logit: bool = False, floor: float = FLOOR, smoothing: bool | float = False
) -> Parameters:
    """Fit ``softmax(z / T)`` with T > 0 in each segment, by maximum likelihood.

    The loss is convex in 1 / T, so the fit is never worse than T = 1 on its own rows.

    Parameters
    ----------
    vectors : Vectors
        Rows, with probabilities or logits.
    is_logit : bool
        Whether the scores are logits; see `calframe._fitting._log_scores.log_scores`.
    floor : float
        Smallest probability whose logarithm is taken.
    smoothing : bool or float
        Smoothed targets; see `calframe._fitting._log_scores.smooth_shares`.

    Returns
    -------
    calframe._fitting._fitted.Parameters
        T, and the information on it. BOUND, and T = 1000, where the loss falls all the way to ``1 / T = 0``. SEPARABLE,
        without a value, where each row gives no class more than the one that happened; ONE_SCORE where it gives all
        classes the same.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599

    Examples
    --------
    Half of the rows are of the first class, so ``(1/8)^(1/T) = 1/2``.

    >>> rows = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.8, 0.1, 0.1]] * 4, order="F"),
    ...     label=np.array([0, 0, 1, 2]),
    ...     weight=np.ones(4),
    ...     squared=np.ones(4),
    ... )
    >>> temperature(rows).values.round(9)
    array([[3.]])
    """
    cooling, unit = cooling_of(vectors, smooth_shares(vectors, smoothing=smoothing), is_logit=is_logit, floor=floor)
    outcome = cooling.outcome()
    known = np.isin(outcome, (Outcome.FINE, Outcome.BOUND))
    inverse, slope, curvature = np.full((3, len(unit)), np.nan)
    fine, bound = outcome == Outcome.FINE, outcome == Outcome.BOUND
    inverse[bound] = unit[bound] / FLATTEST
    slope[bound], curvature[bound] = cooling.only(bound).derivatives(inverse[bound])
    start = np.clip(unit[fine], 1.0, _STEEPEST)  # for scores as they are that is T = 1
    inverse[fine], slope[fine], curvature[fine] = coolest(cooling.only(fine), start)
    information = (inverse**4 * curvature + 2.0 * inverse**3 * slope) / unit**2  # minus the curvature along T
    value = np.where(known, unit / inverse, np.nan)
    return Parameters(values=value[None], outcome=outcome, information=information[None, None])


def vector(
    vectors: Vectors,
    *,
    is_logit: bool = False,
    floor: float = FLOOR,
    smoothing: bool | float = False,
    ridge: float = 0.0,
) -> SoftmaxMaps:
    """Fit ``softmax(w * z + b)``, a slope and a constant for each class, in each segment.

    Parameters
    ----------
    vectors, is_logit, floor, smoothing
        As in `temperature`.
    ridge : float
        Adds ``ridge (sum (w - 1)^2 + sum b^2)`` to the mean loss; 0 is maximum likelihood.

    Returns
    -------
    SoftmaxMaps
        With diagonal W.

    Raises
    ------
    TooFewRowsError
        If there are more parameters than rows in some segment, and no ridge.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599

    Examples
    --------
    Each of the two score vectors comes true: the map is the identity.

    >>> rows = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.75, 0.25]] * 4 + [[0.2, 0.8]] * 5 + [[0.5, 0.5]] * 2, order="F"),
    ...     label=np.array([0, 0, 0, 1, 0, 1, 1, 1, 1, 0, 1]),
    ...     weight=np.ones(11),
    ...     squared=np.ones(11),
    ... )
    >>> fit = vector(rows)
    >>> np.abs(fit.slopes - np.eye(2)).max() < 1e-9, np.abs(fit.intercepts).max() < 1e-9
    (np.True_, np.True_)
    """
    return _scaled(vectors, "vector", ridge, is_logit=is_logit, floor=floor, smoothing=smoothing)


def matrix(
    vectors: Vectors,
    *,
    is_logit: bool = False,
    floor: float = FLOOR,
    smoothing: bool | float = False,
    ridge: float = 0.0,
) -> SoftmaxMaps:
    """Fit ``softmax(W z + b)`` with a full matrix W in each segment.

    Without a ridge it is the Dirichlet map, and multinomial logistic regression on the log scores. Arguments,
    result and errors as in `vector`; the ridge adds ``ridge (sum (W - I)^2 + sum b^2)``, of the form of W and b that
    `SoftmaxMaps` has.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599
    """
    return _scaled(vectors, "matrix", ridge, is_logit=is_logit, floor=floor, smoothing=smoothing)


def fitted(
    vectors: Vectors,
    solve: Callable[[int, Rows, Floats], Solution],
    *,
    diagonal: bool,
    is_logit: bool,
    floor: float,
    smoothing: bool | float,
) -> SoftmaxMaps:
    """Solve one segment after the other, beginning at its temperature.

    Parameters
    ----------
    vectors, is_logit, floor, smoothing
        As in `temperature`.
    solve : callable
        From the number of a segment, its rows, and the coefficients to begin at, to the solution.
    diagonal : bool
        Whether a class has a slope of its own log score only.
    """
    cooled = temperature(vectors, is_logit=is_logit, floor=floor, smoothing=smoothing).values[0]
    features = features_of(vectors.scores, is_logit=is_logit, floor=floor)
    smooth = smooth_shares(vectors, smoothing=smoothing)
    found = []
    for number, (slope, begin, size) in enumerate(zip(1.0 / cooled, vectors.starts, vectors.sizes, strict=True)):
        cut = slice(begin, begin + size)
        weight = vectors.weight[cut] / vectors.weight[cut].max()
        rows = Rows(
            features=features[:, cut],
            label=vectors.label[cut],
            share=weight / weight.sum(),
            smooth=smooth[cut],
            diagonal=diagonal,
        )
        start = identity(vectors.classes, diagonal=diagonal)
        found.append(solve(number, rows, start if np.isnan(slope) else slope * start))
    return gathered(found)


def solved(rows: Rows, penalty: Penalty, start: Floats, *, strict: bool, gauge: Gauge = projected) -> Solution:
    """Minimise the mean loss and a penalty; where that leaves the map open, with `RIDGE` more.

    Parameters
    ----------
    rows, penalty, start, gauge
        As in `calframe._fitting._multinomial.minimised`; the start need not be of the gauge.
    strict : bool
        Whether the penalty alone makes the minimum finite and unique.
    """
    outcome = Outcome.FINE if strict else _openness(rows, penalty)
    if outcome == Outcome.FINE:
        found = minimised(rows, penalty, gauge(start), gauge)
        if found.converged or strict:
            return Solution(theta=found.theta, outcome=outcome, converged=found.converged)
        outcome = Outcome.SEPARABLE
    tiny = tiny_ridge(rows, gauge)
    found = minimised(rows, penalty.plus(tiny), tiny.centre, gauge)
    return Solution(theta=found.theta, outcome=outcome, converged=found.converged)


def tiny_ridge(rows: Rows, gauge: Gauge = projected) -> Penalty:
    """Return `RIDGE` towards the identity, for slopes times the variance of their log score where that is below 1.

    So it is tiny beside what log scores of a small range need as well.
    """
    centre = gauge(identity(rows.classes, diagonal=rows.diagonal))
    scores = rows.features[:-1]
    variance = (scores - (scores @ rows.share)[:, None]) ** 2 @ rows.share
    slopes = np.where(variance > 0.0, np.clip(variance, RIDGE, 1.0), 1.0)
    strength = np.full(centre.shape, RIDGE)
    strength[:, :-1] *= slopes[:, None] if rows.diagonal else slopes
    return Penalty(strength=strength, centre=centre)


def gathered(found: list[Solution]) -> SoftmaxMaps:
    """Return the solutions of all segments, in normal form."""
    theta = np.array([normal_form(each.theta) for each in found])
    slopes = theta[:, :, :-1]
    if slopes.shape[2] == 1 < slopes.shape[1]:
        slopes = slopes * np.eye(slopes.shape[1])
    return SoftmaxMaps(
        slopes=slopes,
        intercepts=theta[:, :, -1],
        outcome=np.array([each.outcome for each in found], dtype=np.int64),
        converged=np.array([each.converged for each in found]),
    )


def _scaled(
    vectors: Vectors, kind: Kind, ridge: float, *, is_logit: bool, floor: float, smoothing: bool | float
) -> SoftmaxMaps:
    if ridge == 0.0:
        refuse_scarce(vectors, kind)
    centre = identity(vectors.classes, diagonal=kind == "vector")
    penalty = Penalty(strength=np.full(centre.shape, ridge), centre=centre)
    return fitted(
        vectors,
        lambda _, rows, start: solved(rows, penalty, start, strict=ridge > 0.0),
        diagonal=kind == "vector",
        is_logit=is_logit,
        floor=floor,
        smoothing=smoothing,
    )


def _openness(rows: Rows, penalty: Penalty) -> Outcome:
    """Return why rows cannot have one finite minimum, as far as that is seen without an iteration."""
    seen = np.bincount(rows.label, minlength=rows.classes) > 0
    free = not penalty.strength.any()
    if not rows.smooth.any() and seen.sum() == 1:
        return Outcome.ONE_CLASS
    if not told_apart(replace(rows, diagonal=rows.diagonal or bool(penalty.strength[:, :-1].any()))):
        return Outcome.ONE_SCORE
    return Outcome.SEPARABLE if free and not rows.smooth.any() and not seen.all() else Outcome.FINE
