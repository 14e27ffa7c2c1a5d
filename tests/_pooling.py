"""Rows of segments whose coefficients are drawn from one normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from calframe._kernels._logistic import logit
from calframe._kernels._newton import Regression
from calframe._typing import Floats

SLOPE = np.array([0.0, -np.inf])
MEAN = np.array([0.8, -0.2])


def simulated(
    seed: int, segments: int, rows: tuple[int, int], spread: Any, *, mean: Floats = MEAN
) -> tuple[Regression, Floats]:
    """Return rows of segments whose slopes and intercepts are normal, and these."""
    rng = np.random.default_rng(seed)
    theta = mean[:, None] + np.asarray(spread, float)[:, None] * rng.normal(size=(2, segments))
    sizes = rng.integers(rows[0], rows[1] + 1, segments)
    g = np.repeat(np.arange(segments), sizes)
    z = logit(rng.beta(2, 3, len(g)))
    y = (rng.random(len(g)) < expit(theta[0, g] * z + theta[1, g])).astype(float)
    return Regression(starts=np.cumsum(sizes) - sizes, positive=y, negative=1 - y, features=(z, None)), theta


def counted(seed: int, segments: int, rows: int, spread: Any) -> tuple[Regression, Floats]:
    """Return as `simulated`, with any number of rows at eight scores."""
    rng = np.random.default_rng(seed)
    theta = MEAN[:, None] + np.asarray(spread, float)[:, None] * rng.normal(size=(2, segments))
    z, g = np.tile(np.linspace(-2.5, 1.5, 8), segments), np.repeat(np.arange(segments), 8)
    n = rng.multinomial(rows, np.full(8, 1 / 8), segments).ravel()
    k = rng.binomial(n, expit(theta[0, g] * z + theta[1, g])).astype(float)
    return Regression(starts=np.arange(0, 8 * segments, 8), positive=k, negative=n - k, features=(z, None)), theta
