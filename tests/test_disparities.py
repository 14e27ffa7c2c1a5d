"""Largest differences between segments: bounds against SciPy, and whether intervals hold the true value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from calframe._audit import audit
from calframe._testing._disparities import largest_gap_difference, range_quantile, smallest_ratio
from tests._tables import approx, rows
from tests.simulations.audit import disparity_coverage


@pytest.mark.parametrize(("count", "level"), [(2, 0.5), (3, 0.95), (8, 0.975), (40, 0.975), (1000, 0.95)])
def test_range_quantiles_are_those_of_the_studentized_range(count: int, level: float) -> None:
    assert range_quantile(count, level) == pytest.approx(stats.studentized_range.ppf(level, count, 1e6), rel=2e-4)


def bounds(k: float, n: float, tail: float) -> tuple[float, float]:
    """Return Clopper and Pearson's bounds of a rate, each wrong with chance `tail`."""
    low = stats.beta.ppf(tail, k, n - k + 1) if k > 0 else 0.0
    high = stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0
    return low, high


def test_bounds_of_two_segments_by_hand() -> None:
    # Gaps 0.1 and -0.1. The upper end is that of one pair, 0.025 to each side; the lower end that of |difference|,
    # which is too large in 0.025 of cases: 0.0125 to each side.
    found = largest_gap_difference(np.array([0.3, 0.5]), np.array([0.4, 0.4]), np.array([1000.0, 500.0]), level=0.95)
    (_, _), (low_a, high_a), (low_b, high_b) = (0, 0), bounds(300, 1000, 0.025), bounds(250, 500, 0.025)
    high = 0.2 + math.hypot(0.3 - low_a, high_b - 0.5)
    tail = stats.norm.sf(stats.norm.ppf(1 - 0.0125))
    (low_a, high_a), (low_b, high_b) = bounds(300, 1000, tail), bounds(250, 500, tail)
    low = 0.2 - math.hypot(high_a - 0.3, 0.5 - low_b)
    assert [found.value, found.low, found.high] == pytest.approx([0.2, low, high], abs=1e-5)
    assert (found.top, found.bottom) == (0, 1)


def test_a_ratio_is_the_difference_of_logarithms() -> None:
    rate, rows_ = np.array([0.3, 0.3, 0.15]), np.array([500.0, 800.0, 2000.0])
    score = np.array([0.3, 0.25, 0.15])
    found = smallest_ratio(rate, score, rows_, level=0.95)
    assert found.value == pytest.approx(1 / 1.2)  # ratios 1, 1.2 and 1
    assert found.low < found.value < found.high <= 1.0
    doubled = smallest_ratio(rate, score * 2, rows_, level=0.95)
    assert [doubled.value, doubled.low, doubled.high] == approx([found.value, found.low, found.high], rel=1e-9)


def test_a_rate_of_zero_has_a_ratio_of_zero() -> None:
    rate, score = np.array([0.0, 0.1, 0.0]), np.array([0.01, 0.1, 0.02])
    found = smallest_ratio(rate, score, np.full(3, 300.0), level=0.95)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == 1.0  # three positives were expected in the first segment, six in the third
    many = smallest_ratio(rate, score, np.full(3, 30_000.0), level=0.95)
    assert many.high < 0.02
    none = smallest_ratio(rate * 0, score, np.full(3, 300.0), level=0.95)
    assert math.isnan(none.value)


@pytest.mark.parametrize("work", [largest_gap_difference, smallest_ratio])
def test_one_segment_has_no_difference(work: Any) -> None:
    found = work(np.array([0.3]), np.array([0.4]), np.array([1000.0]), level=0.95)
    assert math.isnan(found.value)
    assert found.top == -1


@pytest.mark.parametrize("kind", ["equal", "one off", "spread"])
@pytest.mark.parametrize(("segments", "n", "rate"), [(2, 200, 0.1), (8, 50, 0.02), (8, 2000, 0.5), (40, 200, 0.1)])
def test_intervals_hold_the_true_largest_difference(segments: int, n: int, rate: float, kind: str) -> None:
    replicates = 300
    for line in disparity_coverage(segments, n, rate, kind, replicates=replicates, seed=1):
        assert line.share >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / replicates), line


def test_the_observed_difference_of_equal_segments_is_not_zero_but_its_lower_end_is() -> None:
    # What peers report: the plain largest difference of forty segments that are all right.
    rng = np.random.default_rng(0)
    score, n = np.full(40, 0.2), np.full(40, 200.0)
    found = [largest_gap_difference(rng.binomial(200, 0.2, 40) / 200, score, n, level=0.95) for _ in range(100)]
    assert np.mean([each.value for each in found]) > 0.1
    assert np.mean([each.low == 0.0 for each in found]) >= 0.95


def test_disparities_of_an_audit_are_those_of_its_segments() -> None:
    sizes = {"a": (400, 100, 0.3), "b": (500, 200, 0.35), "c": (90, 80, 0.1), None: (300, 90, 0.3)}
    parts = [pl.DataFrame({"g": [g] * n, "y": [1] * k + [0] * (n - k), "p": [p] * n}) for g, (n, k, p) in sizes.items()]
    data = pl.concat(parts, how="vertical_relaxed")
    found = rows(audit(data, label="y", score="p", by="g", n_resamples=20).disparities)
    rate, score, n = np.array([100 / 400, 200 / 500, 0.3]), np.array([0.3, 0.35, 0.3]), np.array([400.0, 500.0, 300.0])
    for place, work in enumerate((largest_gap_difference, smallest_ratio)):
        wanted = work(rate, score, n, level=0.95)
        assert [found[name][place] for name in ("value", "low", "high")] == approx(
            [wanted.value, wanted.low, wanted.high], rel=1e-9
        )
    assert found["measure"] == ["gap", "ratio"]
    assert (found["highest"], found["lowest"]) == (["g=a", "g=b"], ["g=b", "g=a"])
    assert (found["n_segments"], found["n_left_out"]) == ([3, 3], [1, 1])


def test_a_column_with_one_large_segment_says_so() -> None:
    data = pl.DataFrame({"g": ["a"] * 200 + ["b"] * 9, "y": [0, 1] * 104 + [0], "p": [0.5] * 209})
    found = rows(audit(data, label="y", score="p", by="g", n_resamples=20).disparities)
    assert found["value"] == [None, None]
    assert found["note"] == ["fewer than two segments have rows enough"] * 2
