"""The kernels against statsmodels, and by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint, proportions_ztest

from calframe._kernels._binned import average_error, largest_error, ratio, segment_sum
from calframe._kernels._corrections import adjusted
from calframe._kernels._intervals import (
    largest_gap,
    loss_interval,
    normal_quantile,
    rate_interval,
    score_test,
    sidak_level,
)
from calframe._kernels._ranked import quantile_bins
from tests._tables import approx

Loss: TypeAlias = Callable[[Any], Any]

LEVELS = [0.5, 0.9, 0.95, 0.999]


# ---------------------------------------------------------------- several comparisons
@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_holm_of_statsmodels(count: int) -> None:
    rng = np.random.default_rng(count)
    for scale in (1.0, 0.05):
        # two decimals among the draws: ties, zeros and ones
        pvalues = np.where(rng.random(count) < 0.5, rng.random(count), rng.integers(0, 101, count) / 100) * scale
        np.testing.assert_allclose(adjusted(pvalues, "holm"), multipletests(pvalues, method="holm")[1], rtol=1e-12)


def test_holm_leaves_unknown_pvalues_out() -> None:
    # three known ones, so the smallest is tripled: .03, .08 (twice .04), .08 (.05 may not fall below)
    found = adjusted(np.array([math.nan, 0.04, 0.01, math.nan, 0.05]), "holm")
    np.testing.assert_allclose(found, [math.nan, 0.08, 0.03, math.nan, 0.08], rtol=1e-15)


@pytest.mark.parametrize("pvalues", [[], [math.nan], [math.nan] * 3])
def test_holm_of_nothing_known(pvalues: list[float]) -> None:
    np.testing.assert_array_equal(adjusted(np.array(pvalues), "holm"), pvalues)


def test_holm_leaves_its_input_alone() -> None:
    pvalues = np.array([0.04, 0.01])
    adjusted(pvalues, "holm")
    assert pvalues.tolist() == [0.04, 0.01]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("comparisons", [1, 2, 7, 1000])
def test_sidak_level_of_statsmodels(level: float, comparisons: int) -> None:
    _, _, each, _ = multipletests([0.5] * comparisons, alpha=1 - level, method="sidak")
    assert sidak_level(level, comparisons) == approx(1 - each)
    assert sidak_level(level, comparisons) ** comparisons == approx(level)  # all hold together, if independent


def test_no_comparison_is_one_comparison() -> None:
    assert sidak_level(0.95, 0) == 0.95


# ---------------------------------------------------------------- rates
@pytest.mark.parametrize("level", LEVELS)
def test_normal_quantile_of_scipy(level: float) -> None:
    assert normal_quantile(level) == approx(stats.norm.ppf(1 - (1 - level) / 2))


PEERS = {"wilson": "wilson", "clopper_pearson": "beta", "jeffreys": "jeffreys"}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("n", [1.0, 2.0, 7.5, 30.0, 1000.0])
def test_rate_interval_of_statsmodels(method: Any, n: float, level: float) -> None:
    hits = np.linspace(0, n, 16)  # both ends too; effective rows need not be whole
    low, high = rate_interval(hits / n, np.full(16, n), level=level, method=method)
    their_low, their_high = proportion_confint(hits, np.full(16, n), alpha=1 - level, method=PEERS[method])
    np.testing.assert_allclose(low, np.nan_to_num(their_low, nan=0.0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(high, np.nan_to_num(their_high, nan=1.0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", PEERS)
def test_a_rate_is_inside_its_interval_and_all_are_in_range(method: Any) -> None:
    for n in (1.0, 3.0, 50.0, 1e9):
        rate = np.linspace(0, 1, 101)
        low, high = rate_interval(rate, np.full(101, n), level=0.9, method=method)
        inside = (low <= rate) & (rate <= high)
        if method == "jeffreys":  # with so few rows the prior pulls it away from 0 and 1
            inside[[0, -1]] = True
        assert inside.all()
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (low < high).all()


@pytest.mark.parametrize("method", PEERS)
def test_no_rows_have_no_interval(method: Any) -> None:
    rate, n = np.array([math.nan, math.nan, 0.5]), np.array([0.0, math.nan, 10.0])
    low, high = rate_interval(rate, n, level=0.9, method=method)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, False]


@pytest.mark.parametrize("n", [1, 20, 500])
@pytest.mark.parametrize("expected", [0.01, 0.3, 0.5, 0.98])
def test_score_test_of_statsmodels(n: int, expected: float) -> None:
    for hits in {0, n // 3, n}:
        _, pvalue = proportions_ztest(hits, n, expected, prop_var=expected)
        found = score_test(np.array([hits / n]), np.array([expected]), np.array([float(n)]))
        assert found[0] == pytest.approx(pvalue, rel=1e-9, abs=1e-300)


def test_score_test_at_certain_scores() -> None:
    # a score of 0 or 1 that is right is no evidence, one that is wrong once is refuted
    found = score_test(np.array([0.0, 1.0, 0.1, 0.9]), np.array([0.0, 1.0, 0.0, 1.0]), np.full(4, 10.0))
    assert found.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_score_test_without_rows_is_unknown() -> None:
    assert np.isnan(score_test(np.array([math.nan]), np.array([math.nan]), np.array([0.0]))).all()


@pytest.mark.parametrize("level", LEVELS)
def test_wilson_holds_what_the_score_test_does_not_reject(level: float) -> None:
    for n, hits in ((4, 0), (9, 3), (120, 119)):
        expected = np.linspace(0.001, 0.999, 999)
        rate, rows = np.full(999, hits / n), np.full(999, float(n))
        low, high = rate_interval(rate[:1], rows[:1], level=level)
        kept = score_test(rate, expected, rows) >= 1 - level
        assert kept.tolist() == ((low <= expected) & (expected <= high)).tolist()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("score", [0.0, 0.02, 0.1, 0.4, 0.8, 1.0])
@pytest.mark.parametrize("loss", [np.square, lambda distance: -np.log1p(-np.minimum(distance, 1 - 1e-9))])
def test_the_loss_of_equal_scores_has_wilsons_interval(loss: Loss, score: float, level: float) -> None:
    # without a positive the loss is loss(s), with one loss(1 - s): the mean is a straight line of the rate
    n, hits = 50, np.arange(51.0)
    miss, hit = loss(score), loss(1 - score)
    ends = np.array([proportion_confint(count, n, alpha=1 - level, method="wilson") for count in hits]).T
    mean, second = miss + hits / n * (hit - miss), miss**2 + hits / n * (hit**2 - miss**2)
    right, wrong = np.full(51, min(miss, hit)), np.full(51, max(miss, hit))
    found = loss_interval(mean, second, np.full(51, float(n)), right=right, wrong=wrong, level=level)
    np.testing.assert_allclose(np.sort(miss + (hit - miss) * ends, axis=0), found, rtol=1e-9, atol=1e-12)


def test_the_interval_of_a_loss_holds_it_and_grows_with_the_level() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 10, 100):
        score = rng.beta(0.2, 0.2, (200, n))
        loss = (score - (rng.random((200, n)) < rng.random((200, 1)))) ** 2
        mean, second = loss.mean(axis=1), (loss**2).mean(axis=1)
        doubt = np.minimum(score, 1 - score).mean(axis=1)
        low, high = mean, mean
        for level in (0.01, 0.5, 0.9, 0.99, 0.9999):
            rows, ends = np.full(200, float(n)), {"right": doubt**2, "wrong": (1 - doubt) ** 2}
            lower, higher = loss_interval(mean, second, rows, **ends, level=level)
            assert (lower >= 0).all()
            assert (lower <= low).all()
            assert (high <= higher).all()
            assert (higher <= 1).all()
            low, high = lower, higher


def test_the_interval_of_a_loss_of_many_rows_is_the_normal_one() -> None:
    rng = np.random.default_rng(4)
    loss = rng.gamma(2.0, 0.2, 100_000)
    ones = np.ones(1)
    low, high = loss_interval(
        loss.mean() * ones, (loss**2).mean() * ones, len(loss) * ones, right=0 * ones, wrong=2 * ones, level=0.9
    )
    half = stats.norm.ppf(0.95) * loss.std() / np.sqrt(len(loss))
    assert [low[0], high[0]] == pytest.approx([loss.mean() - half, loss.mean() + half], rel=1e-4)


def test_a_loss_may_be_infinite() -> None:
    mean, second = np.array([np.inf, 0.0, 0.4, np.nan]), np.array([np.inf, 0.0, 0.3, np.nan])
    right, wrong = np.array([0.5, 0.0, 0.2, 0.2]), np.array([0.9, np.inf, 2.0, 2.0])
    low, high = loss_interval(mean, second, np.full(4, 50.0), right=right, wrong=wrong, level=0.9)
    assert low[:2].tolist() == [np.inf, 0.0]  # it is infinite; and so far every certain score was right
    assert high[:2].tolist() == [np.inf, np.inf]
    assert 0.2 < low[2] < 0.4 < high[2] < 1
    assert np.isnan([low[3], high[3]]).all()


def test_the_largest_gap_is_that_to_the_farther_end_of_wilsons_interval() -> None:
    for hits, score in ((0, 0.001), (0, 0.4), (7, 0.2), (60, 0.9)):
        ends = np.array(proportion_confint(hits, 60, alpha=0.05, method="wilson"))
        found = largest_gap(np.array([score]), np.array([hits / 60]), np.array([60.0]), level=0.95)
        assert found[0] == pytest.approx(np.abs(ends - score).max(), rel=1e-12)


# ---------------------------------------------------------------- bins of about equal weight
BINS_BY_HAND = [
    # cells in score order, bins wanted, bin of each cell: floor(M (before + half) / total)
    ([1.0], 5, [2]),  # 5 * .5
    ([10.0], 1, [0]),
    ([1, 1, 1, 1], 2, [0, 0, 1, 1]),
    ([1, 1, 1, 1, 1, 1, 1], 3, [0, 0, 1, 1, 1, 2, 2]),  # 3 * (i + .5) / 7 = .21 .64 1.07 1.5 1.93 2.36 2.79
    ([1, 4, 1], 3, [0, 1, 2]),  # the tied block of four stays whole: .25, 1.5, 2.75
    ([6, 1, 1, 1, 1], 5, [1, 3, 3, 4, 4]),  # 1.5, 3.25, 3.75, 4.25, 4.75
    ([0.5, 0.0, 0.5], 2, [0, 1, 1]),  # .5, 1, 1.5
    ([0, 0], 3, [0, 0]),  # a segment without usable rows
]


@pytest.mark.parametrize(("weight", "count", "expected"), BINS_BY_HAND)
def test_quantile_bins_by_hand(weight: list[float], count: int, expected: list[int]) -> None:
    found = quantile_bins(np.array(weight, float), np.array([0]), np.array([count]))
    assert found.tolist() == expected


def test_quantile_bins_of_several_segments_are_each_their_own() -> None:
    cases = BINS_BY_HAND * 3
    starts = np.cumsum([0] + [len(weight) for weight, _, _ in cases[:-1]])
    weights = np.concatenate([np.array(weight, float) for weight, _, _ in cases])
    found = quantile_bins(weights, starts, np.array([count for _, count, _ in cases]))
    assert found.tolist() == [each for _, _, expected in cases for each in expected]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(1, 12))
def test_quantile_bins_ascend_whatever_the_unit_of_weights(weights: list[int], count: int) -> None:
    weight, start, many = np.array(weights, float), np.array([0]), np.array([count])
    found = quantile_bins(weight, start, many)
    assert (np.diff(found) >= 0).all()
    assert found.min() >= 0
    assert found.max() < count
    assert quantile_bins(4 * weight, start, many).tolist() == found.tolist()
    if set(weights) == {1}:  # without ties no bin is larger than another by more than one row
        sizes = np.bincount(found, minlength=count)
        assert np.ptp(sizes) <= 1


# ---------------------------------------------------------------- sums over cells
def test_sums_do_not_drift() -> None:
    # a running sum of a million tenths is off by 1e-6
    found = segment_sum(np.full(1_000_003, 0.1), np.array([0, 3]))
    assert found.tolist() == approx([0.3, math.fsum([0.1] * 1_000_000)], rel=1e-14)


def test_nothing_divided_by_nothing_is_unknown() -> None:
    np.testing.assert_array_equal(ratio(np.array([1.0, 0.0]), np.array([0.0, 2.0])), [math.nan, 0.0])


def test_cells_without_weight_count_in_no_error() -> None:
    # two cells of segment one are empty; segment two has no weight at all
    weight, starts = np.array([2.0, 0.0, 0.0, 0.0]), np.array([0, 3])
    score, label = np.array([1.0, 0.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(average_error(weight, score, label, starts), [0.5, math.nan])
    np.testing.assert_array_equal(largest_error(weight, score, label, starts), [0.5, math.nan])
