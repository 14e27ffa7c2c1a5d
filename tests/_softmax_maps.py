"""Rows for maps of probability vectors, and their losses written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from calframe._kernels._vectors import Vectors
from calframe._typing import Floats
from tests._vector_rows import vectors_of

FLOOR = 1e-12


def simulated(seed: int, *, rows: int = 400, classes: int = 3, segments: int = 1) -> Vectors:
    """Rows of weights 1, 2 and 3 that a matrix map would mend, other ones in each segment."""
    rng = np.random.default_rng(seed)
    segment = np.sort(np.arange(rows) % segments)
    z = rng.normal(0.0, 1.5, (rows, classes))
    turn = np.eye(classes) * 0.6 + rng.normal(0.0, 0.1, (segments, classes, classes))
    truth = softmax(
        np.einsum("rij,rj->ri", turn[segment], z) + rng.normal(0, 0.3, (segments, classes))[segment], axis=1
    )
    label = (truth.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    return vectors_of(softmax(z, axis=1), label, weight=rng.integers(1, 4, rows), segment=segment)


def calibrated(seed: int, *, vectors: int = 30, classes: int = 3) -> Vectors:
    """Rows in which each score vector comes true to the last digit: a row a class, its weight the score."""
    scores = np.random.default_rng(seed).dirichlet(np.ones(classes), vectors)
    label = np.tile(np.arange(classes), vectors)
    return vectors_of(np.repeat(scores, classes, axis=0), label, weight=scores.ravel())


def losses(vectors: Vectors, slopes: Floats, intercepts: Floats, *, smooth: ArrayLike = 0.0) -> float:
    """Return the mean loss of ``softmax(W ln p + b)`` in the rows of one segment."""
    predictor = np.log(np.maximum(vectors.scores, FLOOR)) @ slopes.T + intercepts
    lost = -log_softmax(predictor, axis=1)
    smooth = np.broadcast_to(smooth, len(lost))
    own = lost[np.arange(len(lost)), vectors.label]
    return float(np.average((1.0 - smooth) * own + smooth * lost.mean(axis=1), weights=vectors.weight))


def least(objective: Callable[[Floats], float], start: Floats) -> Any:
    """Minimise by a quasi-Newton method, with differences for the gradient."""
    return minimize(objective, start, method="BFGS", options={"gtol": 1e-8, "maxiter": 2000})


def steepness(objective: Callable[[Floats], float], at: Floats, *, step: float = 1e-4) -> float:
    """Return the largest central difference of an objective along a coefficient."""
    units = np.eye(at.size) * step
    return max(abs(objective(at + unit) - objective(at - unit)) / (2.0 * step) for unit in units)


def twice(vectors: Vectors) -> Vectors:
    """Return each row as often as its weight says."""
    rows = np.repeat(np.arange(len(vectors.label)), vectors.weight.astype(int))
    return vectors_of(vectors.scores[rows], vectors.label[rows], segment=vectors.segment[rows])


def shuffled(vectors: Vectors, order: ArrayLike) -> Vectors:
    """Return the classes in another order."""
    order = np.asarray(order)
    return vectors_of(
        vectors.scores[:, order], np.argsort(order)[vectors.label], weight=vectors.weight, segment=vectors.segment
    )


def alone(vectors: Vectors, number: int) -> Vectors:
    """Return one segment by itself."""
    return vectors.part(number, number + 1)
