"""Intervals of means and variances: against scipy, statsmodels and searches over the same hypotheses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.proportion import proportion_confint

from calframe._kernels._moments import (
    brier_skill_interval,
    entropy_interval,
    fourth_about_mean,
    mean_interval,
    uncertainty_interval,
    variance_interval,
)

COUNTS = [(0, 12), (1, 30), (5, 12), (20, 40), (39, 40), (150, 400)]


def one(value: float) -> np.ndarray:
    return np.array([float(value)])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_a_mean_has_the_interval_of_scipy(level: float) -> None:
    score = np.array([0.2, 0.35, 0.5, 0.4, 0.45, 0.3])
    theirs = stats.ttest_1samp(score, 0.0).confidence_interval(level)
    found = mean_interval(one(score.mean()), one(score.var()), one(6), level=level)
    assert np.concatenate(found) == pytest.approx([theirs.low, theirs.high])


def test_a_mean_stays_in_range_and_needs_two_rows() -> None:
    low, high = mean_interval(np.array([0.05, 0.95, 0.5]), np.full(3, 0.1), np.array([4.0, 4.0, 1.0]), level=0.99)
    assert (low[0], high[1]) == (0.0, 1.0)
    assert np.isnan([low[2], high[2]]).all()


def test_a_variance_of_normal_kurtosis_is_nearly_chi_squared() -> None:
    n, level = 5_000, 0.9
    low, high = variance_interval(one(0.01), one(3 * 0.01**2), one(n), level=level)
    chi = stats.chi2(n - 1).ppf([0.95, 0.05])
    assert [low[0], high[0]] == pytest.approx(0.01 * n / chi, rel=3e-4)


def test_the_bias_of_the_kurtosis_is_that_of_gamma_samples() -> None:
    # Gamma of shape 4: kurtosis 4.5. The freedom 2 n / (kurtosis - 1) is read off the ends of the interval.
    n, excess = 400, 1.5
    sample = np.random.default_rng(1).gamma(4.0, 1.0, (20_000, n))
    centred = sample - sample.mean(axis=1, keepdims=True)
    kurtosis = (centred**4).mean(axis=1) / (centred**2).mean(axis=1) ** 2
    bias = 3 + excess - kurtosis.mean()
    low, high = variance_interval(one(1e-4), one(4.5e-8), one(n), level=0.9)
    ratio = high[0] / low[0]
    freedom = optimize.brentq(lambda f: stats.chi2(f).ppf(0.95) / stats.chi2(f).ppf(0.05) - ratio, 10, 1e5)
    added = 2 * n / freedom + 1 - (3 + excess)
    assert added == pytest.approx(bias, rel=0.15)


def test_a_variance_of_equal_scores_and_of_one_row() -> None:
    low, high = variance_interval(np.zeros(2), np.zeros(2), np.array([10.0, 1.0]), level=0.9)
    assert (low[0], high[0]) == (0.0, 0.0)
    assert np.isnan([low[1], high[1]]).all()


def test_a_variance_stays_below_a_quarter() -> None:
    low, high = variance_interval(one(0.25), one(1 / 16), one(8), level=0.9)
    assert 0 < low[0] < 0.25
    assert high[0] == 0.25


def test_the_fourth_moment_about_the_mean() -> None:
    score = np.array([0.1, 0.2, 0.2, 0.9])
    about_half = [one(((score - 0.5) ** k).mean()) for k in (1, 2, 3, 4)]
    assert fourth_about_mean(*about_half)[0] == pytest.approx(stats.moment(score, 4))


@pytest.mark.parametrize(("hits", "rows"), COUNTS)
@pytest.mark.parametrize(
    ("interval", "function"),
    [(uncertainty_interval, lambda r: r * (1 - r)), (entropy_interval, lambda r: stats.entropy([r, 1 - r]))],
)
def test_functions_of_the_rate_take_all_values_over_wilson(interval, function, hits: int, rows: int) -> None:
    grid = np.linspace(*proportion_confint(hits, rows, alpha=0.1, method="wilson"), 20_001)
    values = function(grid)
    low, high = interval(one(hits / rows), one(rows), level=0.9)
    assert (low[0], high[0]) == pytest.approx((values.min(), values.max()), abs=1e-7)


def skill_by_search(score: np.ndarray, label: np.ndarray, level: float) -> tuple[float, float]:
    """Return the same interval for rows, with scipy's intervals and a search over the rate."""
    z2 = stats.norm.ppf((1 + level) / 2) ** 2 / 2
    parts = {}
    for kind in (1, 0):
        square = (score - label)[label == kind] ** 2
        n, guess = len(square), (kind - score.mean()) ** 2
        spread = (square.var() * n + z2 * (guess - square.mean()) ** 2) / (n + z2)
        half = stats.t(n - 1).ppf((1 + level) / 2) * np.sqrt(spread / (n - 1)) if n > 1 else 1.0
        parts[kind] = square.mean(), max(square.mean() - half, 0), min(square.mean() + half, 1)
    rate = label.mean()
    grid = np.linspace(*proportion_confint(label.sum(), len(label), alpha=1 - level, method="wilson"), 100_001)
    quotient = parts[1][0] / (1 - grid) + parts[0][0] / grid
    found = parts[1][0] / (1 - rate) + parts[0][0] / rate
    down = [(parts[1][0] - parts[1][1]) / (1 - rate), (parts[0][0] - parts[0][1]) / rate, found - quotient.min()]
    up = [(parts[1][2] - parts[1][0]) / (1 - rate), (parts[0][2] - parts[0][0]) / rate, quotient.max() - found]
    return 1 - found - np.linalg.norm(up), min(1 - found + np.linalg.norm(down), 1.0)


def skill(score: np.ndarray, label: np.ndarray, level: float) -> tuple[float, float]:
    """Return the interval of the kernel for rows."""
    square = (score - label) ** 2
    both = [
        tuple(one((square[label == kind] ** k).mean()) if (label == kind).any() else one(np.nan) for k in (1, 2))
        for kind in (1, 0)
    ]
    low, high = brier_skill_interval(
        one(label.mean()), one(score.mean()), both[0], both[1], one(len(label)), level=level
    )
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize(("rows", "positives"), [(60, 1), (60, 3), (200, 80), (40, 39)])
def test_the_skill_interval_by_search(rows: int, positives: int, level: float) -> None:
    rng = np.random.default_rng(rows + positives)
    score = rng.beta(2, 3, rows)
    label = np.zeros(rows)
    label[rng.choice(rows, positives, replace=False)] = 1.0
    assert skill(score, label, level) == pytest.approx(skill_by_search(score, label, level), rel=1e-6)


def test_the_skill_of_perfect_scores_and_of_one_class() -> None:
    label = np.array([0.0, 1.0] * 10)
    low, high = skill(label, label, 0.9)
    assert 0 < low < high == 1.0
    assert np.isnan(skill(np.full(5, 0.3), np.zeros(5), 0.9)).all()
    assert np.isnan(skill(np.full(5, 0.3), np.ones(5), 0.9)).all()
