"""Smooth curves through scores that nearly coincide: against exact arithmetic, and the last digit of a weight."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from calframe._kernels._ici import loess_direct, lowess
from calframe._kernels._loess import loess
from calframe._typing import Floats
from tests._tallied import tally_of_columns

SMOOTHERS = {"loess": loess, "loess_direct": loess_direct, "lowess": lowess}


def exact_fit(x: list[float], y: Floats, weight: Floats, at: float) -> float:
    """The local quadratic at a point in exact arithmetic: the normal equations, by Cramer's rule."""
    far = [abs(Fraction(score) - Fraction(at)) for score in x]
    near = sorted(range(len(x)), key=far.__getitem__)
    mass = np.cumsum(weight[near])
    radius = far[near[int(np.argmax(mass >= 0.75 * mass[-1] - 1e-9))]]
    kernel = [max(1 - (d / radius) ** 3, Fraction(0)) ** 3 * Fraction(w) for d, w in zip(far, weight, strict=True)]
    t = [Fraction(score) - Fraction(at) for score in x]
    moment = [sum(k * d**power for k, d in zip(kernel, t, strict=True)) for power in range(5)]
    product = [sum(k * d**p * Fraction(v) for k, d, v in zip(kernel, t, y, strict=True)) for p in range(3)]
    rows = [[moment[i], moment[i + 1], moment[i + 2]] for i in range(3)]
    first = [[product[i], *rows[i][1:]] for i in range(3)]
    return float(determinant(first) / determinant(rows))


def determinant(m: list[list[Any]]) -> Any:
    rest = [m[1][(i + 1) % 3] * m[2][(i + 2) % 3] - m[1][(i + 2) % 3] * m[2][(i + 1) % 3] for i in range(3)]
    return sum(a * b for a, b in zip(m[0], rest, strict=True))


CLOSE = [0.0, 1e-13, 0.3, 0.3 + 2e-13, 0.5, 0.5 + 1e-12, 0.7, 0.9]  # from any of the pairs the others lie far away


@pytest.mark.parametrize("seed", range(6))
def test_scores_that_nearly_coincide(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rate, weight = rng.random(len(CLOSE)), rng.uniform(0.1, 2.0, len(CLOSE))
    expected = [exact_fit(CLOSE, rate, weight, at) for at in CLOSE]
    np.testing.assert_allclose(
        loess_direct(tally_of_columns(np.array(CLOSE), rate, weight)), expected, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("seed", range(6))
def test_the_last_digit_of_a_weight_does_not_matter(smoother: Any, seed: int) -> None:
    # a weight that is split over copies of its row is added up in other steps: 0.1 + 0.1 + 0.1 is not 0.3
    rng = np.random.default_rng(seed)
    rate, weight = rng.random(len(CLOSE)), rng.uniform(0.1, 2.0, len(CLOSE))
    found = SMOOTHERS[smoother](tally_of_columns(np.array(CLOSE), rate, weight))
    moved = SMOOTHERS[smoother](
        tally_of_columns(np.array(CLOSE), rate, np.nextafter(weight, rng.choice([0.0, 9.0], len(CLOSE))))
    )
    np.testing.assert_allclose(moved, found, rtol=1e-9, atol=1e-9)
