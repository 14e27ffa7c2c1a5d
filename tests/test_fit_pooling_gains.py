"""What partial pooling gains over no and over complete pooling, and what its intervals say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from calframe._fitting._pooling import Pooled, pooled
from calframe._kernels._logistic import logit
from calframe._kernels._newton import Prior, Regression, maximum_likelihood
from calframe._typing import Floats
from tests._pooling import MEAN, counted, simulated


# ---------------------------------------------------------------- what pooling is for
def excess(theta: Floats, truth: Floats) -> tuple[float, float]:
    """Return expected log loss and Brier score on new rows of the same segments, less those of the truth."""
    z = logit(np.random.default_rng(99).beta(2, 3, 300))[:, None]
    odds, right = theta[0] * z + theta[1], truth[0] * z + truth[1]
    p, q = expit(odds), expit(right)
    log = np.logaddexp(0.0, odds) - q * odds - np.logaddexp(0.0, right) + q * right
    return float(log.mean()), float(((p - q) ** 2).mean())


def alone(regression: Regression) -> Floats:
    """Return each segment's own fit, and the identity where it has none."""
    theta, _ = maximum_likelihood(regression)
    lost = np.isnan(theta).any(axis=0) | (np.abs(theta) > 15).any(axis=0)
    theta[:, lost] = np.array([[1.0], [0.0]])
    return theta


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("spread", "rows"),
    [((0.1, 0.2), (20, 500)), ((0.3, 0.5), (20, 500)), ((0.3, 0.5), (20, 60)), ((0.6, 1.0), (20, 500))],
)
def test_many_small_segments_gain_over_both(spread: Any, rows: tuple[int, int], seed: int) -> None:
    regression, truth = simulated(seed, 400, rows, spread)
    fit = pooled(regression)
    complete = np.repeat(fit.complete[:, None], 400, axis=1)
    oracle = Prior(mean=MEAN, precision=np.diag(1.0 / np.square(spread)))
    known, _ = maximum_likelihood(regression, prior=oracle)
    ours, none, one_map, best = (
        np.array(excess(theta, truth)) for theta in (fit.values, alone(regression), complete, known)
    )
    assert (ours < 0.9 * none).all()
    assert (ours < 0.9 * one_map).all()
    assert (ours < 1.05 * best + 1e-4).all()  # as good as with the true prior


@pytest.mark.parametrize("seed", range(5))
def test_without_any_spread_it_is_complete_pooling(seed: int) -> None:
    regression, truth = simulated(seed, 400, (20, 500), (0.0, 0.0))
    fit = pooled(regression)
    complete = np.repeat(fit.complete[:, None], 400, axis=1)
    ours, none, one_map = (np.array(excess(theta, truth)) for theta in (fit.values, alone(regression), complete))
    assert (ours < one_map + 0.05 * none).all()
    apart = np.sqrt(((fit.values - complete) ** 2).mean(axis=1))
    assert (apart[fit.no_spread] < fit.detectable[fit.no_spread]).all()  # posterior modes spread less than the prior


def weight_of_own_rows(fit: Pooled) -> Floats:
    """Return the share of the prior variance that a segment's rows take away, on average."""
    given = np.einsum("jjs->js", fit.covariance).mean(axis=1)
    return np.asarray(1.0 - given / np.diag(fit.spread))


def test_it_tends_to_none_with_many_rows_and_to_complete_with_few() -> None:
    gaps, weights = [], []
    for rows in (4, 40, 400, 4000, 400_000):
        regression, _ = counted(1, 200, rows, (0.3, 0.5))
        fit = pooled(regression)
        weights.append(weight_of_own_rows(fit))
        if rows >= 400:
            gaps.append(float(np.abs(fit.values - maximum_likelihood(regression)[0]).max()))
    assert (np.diff(weights, axis=0) > 0).all()
    assert (weights[0] < 0.3).all()
    assert (weights[-1] > 0.99).all()
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.005


def test_twice_the_spread_is_half_the_shrinkage_or_less() -> None:
    own = []
    for factor in (1, 2, 4):
        regression, _ = counted(2, 300, 60, (0.15 * factor, 0.25 * factor))
        own.append(weight_of_own_rows(pooled(regression)))
    assert (np.diff(own, axis=0) > 0.1).all()


def test_posterior_intervals_cover() -> None:
    # 2400 intervals of each coefficient: a Monte Carlo error of .0045, so .015 is three of them
    found = {}
    for rows in ((20, 60), (80, 400)):
        inside = []
        for seed in range(4):
            regression, truth = simulated(seed, 600, rows, (0.3, 0.5))
            fit = pooled(regression)
            inside.append((np.abs(fit.values - truth) <= 1.959964 * fit.standard_deviation).mean(axis=1))
        found[rows] = np.mean(inside, axis=0)
    np.testing.assert_allclose(found[80, 400], 0.95, atol=0.015)
    assert found[20, 60].min() > 0.91  # with few rows the second-order expansion finds too small a spread


def test_posterior_intervals_cover_where_all_segments_are_the_same() -> None:
    # all segments of a table are right or wrong together, so tables are counted: 150, a Monte Carlo error of .018
    inside = []
    for seed in range(150):
        regression, truth = counted(seed, 12, 80, (0.0, 0.0))
        fit = pooled(regression)
        inside.append((np.abs(fit.values - truth) <= 1.959964 * fit.standard_deviation).mean(axis=1))
    np.testing.assert_allclose(np.mean(inside, axis=0), 0.95, atol=0.055)


def test_spread_is_called_detectable_seldom_where_there_is_none() -> None:
    found = [pooled(counted(seed, 40, 100, (0.0, 0.0))[0]).no_spread for seed in range(100)]
    assert np.mean(found, axis=0).min() >= 0.88  # .95, and three Monte Carlo errors of .022
    found = [pooled(counted(seed, 40, 100, (0.5, 0.8))[0]).no_spread for seed in range(20)]
    assert not np.any(found)
