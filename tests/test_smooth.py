"""The smooth calibration error: against its definition as a sum, exact cases and relplot; its interval by theory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from calframe._kernels._kernel_curve import KernelMeans, kernel_means
from calframe._kernels._smooth import (
    GRIDS,
    mean_absolute,
    residual_grid,
    smooth_error,
    smooth_error_of_sums,
)
from calframe._kernels._smooth_interval import _counts, smooth_error_interval
from calframe._kernels._tally import Tally
from calframe._typing import Floats
from tests._tallied import Row, reference_entries, rows_of, tallied, tally_of_columns, twice

EXACT = 1e-5  # how far from the definition a value may be
LEAST = 1e-3  # the least bandwidth


# ---------------------------------------------------------------- the definition
def kernel(at: Floats, score: Floats, sigma: float) -> Floats:
    """The Gaussian reflected at 0 and 1: a sum over mirror images, points by scores."""
    far = int(np.ceil(4.5 * sigma + 0.5))
    images = [2.0 * k + sign * score for k in range(-far, far + 1) for sign in (1.0, -1.0)]
    away = np.stack([(at[:, None] - image) / sigma for image in images])
    return np.exp(away * away / -2.0).sum(axis=0) / (sigma * np.sqrt(2.0 * np.pi))


def size_at(rows: Sequence[Row], sigma: float) -> float:
    """Smoothed error at one bandwidth: the sum over rows at each of many points, integrated by the trapezoid rule."""
    score, label, weight = np.array(rows, dtype=np.float64).T
    edges = np.linspace(0.0, 1.0, int(max(80 / sigma, 2_000)) + 1)
    residual = weight * (label - score) / weight.sum()
    return float(np.trapezoid(np.abs(kernel(edges, score, sigma) @ residual), edges))


def one(rows: Sequence[Row]) -> tuple[float, float]:
    error, bandwidth = smooth_error(tallied(rows))
    return float(error[0]), float(bandwidth[0])


def drawn(n: int, seed: int, *, digits: int = 9, weights: bool = False) -> list[Row]:
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(1.2, 1.5, n), digits)
    label = (rng.random(n) < score**1.3).astype(int)
    return rows_of(score.tolist(), label.tolist(), rng.lognormal(size=n).tolist() if weights else None)


@pytest.mark.parametrize("digits", [1, 2, 9])
@pytest.mark.parametrize("n", [2, 3, 7, 20, 60, 400])
def test_the_error_is_that_of_the_definition(n: int, digits: int) -> None:
    # the smoothed error never grows with the bandwidth, so it can equal the bandwidth only once
    for seed in range(3):
        rows = drawn(n, seed, digits=digits, weights=seed == 1)
        error, bandwidth = one(rows)
        # twice, because a bandwidth that is too large shows too small a size as well
        assert size_at(rows, bandwidth) == pytest.approx(error, abs=2 * EXACT)
        assert error == pytest.approx(bandwidth) if bandwidth > LEAST else error <= LEAST


def test_the_smoothed_error_never_grows_with_the_bandwidth() -> None:
    sizes = [size_at(drawn(30, 3), sigma) for sigma in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)]
    assert (np.diff(sizes) < 1e-9).all()


SMALL = {
    "one row": ([0.3], [1], (0.7, 0.7)),  # one residual, .7, keeps its size at every bandwidth
    "one class": ([0.1, 0.2, 0.3, 0.4], [0, 0, 0, 0], (0.25, 0.25)),  # all residuals negative: their mean
    "certain and right": ([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1], (0.0, LEAST)),
    "certain and wrong": ([0.0, 0.0], [1, 1], (1.0, 1.0)),
    "a tie that is right": ([0.5, 0.5], [0, 1], (0.0, LEAST)),
    "all scores 0": ([0.0] * 4, [0, 0, 0, 1], (0.25, 0.25)),
    "all scores 1": ([1.0] * 4, [1, 1, 1, 0], (0.25, 0.25)),  # in full: relplot counts half of it
}


@pytest.mark.parametrize("case", SMALL)
def test_small_tables_by_hand(case: str) -> None:
    score, label, expected = SMALL[case]
    assert one(rows_of(score, label)) == pytest.approx(expected, abs=1e-12)


def test_a_pair_of_opposite_certainties_by_hand() -> None:
    # residuals 1/2 at 0 and -1/2 at 1, reflected: half the difference of two theta functions, positive up to 1/2; the
    # integral is sum_k (-1)^k (4 / (pi (2k+1))) exp(-(pi (2k+1) sigma)^2 / 2), half of it the share of each side
    def above(sigma: float) -> float:
        odd = 2 * np.arange(60) + 1
        terms = (-1.0) ** np.arange(60) * 4 / (np.pi * odd) * np.exp(-((np.pi * odd * sigma) ** 2) / 2)
        return float(terms.sum()) - sigma

    sigma = optimize.brentq(above, 0.01, 1.0)
    assert one(rows_of([0.0, 1.0], [1, 0])) == pytest.approx((sigma, sigma), abs=1e-6)


@pytest.mark.parametrize("shift", [1e-17, 2.3e-16, 1e-9])
def test_scores_that_nearly_tie_count_as_tied(shift: float) -> None:
    apart, tied = rows_of([0.4, 0.4 + shift, shift], [1, 0, 0]), rows_of([0.4, 0.4, 0.0], [1, 0, 0])
    assert one(apart) == pytest.approx(one(tied), abs=1e-8)


@pytest.mark.parametrize("n", [3_000, 200_000])
def test_large_tables_agree_with_a_grid_of_65536_cells(n: int) -> None:
    # so fine that its cells are points; both kinds of beginning, and a bandwidth that needs the finest grid
    rng = np.random.default_rng(n)
    score = rng.beta(2.0, 3.0, n)
    label = (rng.random(n) < score).astype(np.float64)
    grid = residual_grid(np.zeros(n, dtype=np.int64), score, (label - score) / n, 1, cells=2**16)
    found = smooth_error(tally_of_columns(score, label, np.ones(n)))
    assert np.concatenate(found) == pytest.approx(np.concatenate(smooth_error_of_sums(grid)), abs=2e-6)
    assert found[1][0] * GRIDS[1] < 25


@pytest.mark.parametrize(("each", "grid"), [(30, 1), (20_000, 2)])
def test_many_rows_on_few_scores_are_done_again_on_a_finer_grid(each: int, grid: int) -> None:
    # 400 scores begin on the coarsest grid; calibrated labels in such numbers have bandwidths of few of its cells
    score = 0.3 + 0.001 * np.arange(400)
    positive = np.random.default_rng(each).binomial(each, score).astype(np.float64)
    error, bandwidth = smooth_error(Tally.of_counts(np.array([0]), score, np.full(400, float(each)), positive))
    residual = (positive - each * score) / (400 * each)
    fine = smooth_error_of_sums(residual_grid(np.zeros(400, dtype=np.int64), score, residual, 1, cells=2**16))
    assert 8 / GRIDS[grid] <= bandwidth[0] < 8 / GRIDS[grid - 1]
    assert np.concatenate([error, bandwidth]) == pytest.approx(np.concatenate(fine), abs=EXACT)


def test_raw_rows_need_no_tally() -> None:
    segments = [drawn(n, n) for n in (5, 40, 300)]
    score, label, _ = np.array([row for rows in segments for row in rows]).T
    sizes = [len(rows) for rows in segments]
    segment, shuffled = np.repeat(np.arange(3), sizes), np.random.default_rng(0).permutation(sum(sizes))
    residual = (label - score) / np.repeat(sizes, sizes)
    grid = residual_grid(segment[shuffled], score[shuffled], residual[shuffled], 3, cells=8192)
    assert np.concatenate(smooth_error_of_sums(grid)) == pytest.approx(
        np.concatenate(smooth_error(tallied(*segments))), abs=EXACT
    )


def test_a_grid_keeps_sums_and_means() -> None:
    # splitting linearly keeps the mean score, too, but for the outer half cells (here .01 and 1.0)
    grid = residual_grid(np.array([0, 0, 1]), np.array([0.37, 0.61, 0.41]), np.array([2.0, -1.0, 3.0]), 2, cells=16)
    centres = (np.arange(16) + 0.5) / 16
    assert grid.sum(axis=1) == pytest.approx([1.0, 3.0])
    assert grid @ centres == pytest.approx([2 * 0.37 - 0.61, 3 * 0.41])
    ends = residual_grid(np.zeros(2, dtype=np.int64), np.array([0.01, 1.0]), np.array([1.0, 2.0]), 1, cells=16)
    assert (ends[0, 0], ends[0, -1], ends.sum()) == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("shift", [0.0, 0.13, 0.5, 0.77])
def test_the_absolute_value_of_a_wave_is_integrated_through_its_zeros(shift: float) -> None:
    # |cos(2 pi (3 t - shift))| over whole periods has mean 2 / pi; the plain mean of 24 points is up to 2e-2 off
    points = (np.arange(24) + 0.5) / 24
    wave = np.cos(2 * np.pi * (3 * points - shift))
    inner = mean_absolute(np.stack([wave, wave - wave]))
    assert inner == pytest.approx([2 / np.pi, 0.0], abs=3e-3)


# ---------------------------------------------------------------- other sources
def test_every_exact_value_of_the_reference(reference_folder: Path) -> None:
    entries = list(reference_entries(reference_folder, "bin", "smece_exact"))
    assert len(entries) >= 29
    for entry, columns in entries:
        found = np.concatenate(smooth_error(tally_of_columns(*columns)))
        assert found == pytest.approx(entry["value"], abs=EXACT), entry["id"]


def test_relplot_where_its_kernel_is_whole(reference_folder: Path) -> None:
    # not where it halves mass near 0 and 1 or cuts its kernel at 1/2; its bandwidths are multiples of 1/1024
    compared = 0
    for entry, columns in reference_entries(reference_folder, "bin", "smece"):
        score = columns[0]
        if score.min() < 1e-3 or score.max() > 1 - 1e-3 or entry["value"][1] > 0.15:
            continue
        error, _ = smooth_error(tally_of_columns(*columns))
        assert error[0] == pytest.approx(entry["value"][0], abs=1e-3), entry["id"]
        compared += 1
    assert compared >= 12


# ---------------------------------------------------------------- properties
ROW = st.tuples(
    st.one_of(st.sampled_from([0.0, 1.0, 0.5, 0.25, 1e-17]), st.floats(0.0, 1.0)),
    st.integers(0, 1),
    st.integers(1, 4).map(float),
)
ROWS = st.lists(ROW, min_size=1, max_size=12)


def both(*segments: Sequence[Row], **options: Any) -> Floats:
    return np.stack(smooth_error(tallied(*segments, **options)))


@given(ROWS, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_rows_and_doubled_weights_change_nothing(rows: list[Row], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    expected = both(rows)
    assert both(shuffled) == pytest.approx(expected, abs=1e-9)
    assert both(twice(rows)) == pytest.approx(expected, abs=1e-9)
    for unit in (3.0, 1e-100, 1e100):
        assert both([(s, y, w * unit) for s, y, w in rows]) == pytest.approx(expected, abs=1e-9)


@given(st.lists(ROWS, min_size=2, max_size=5))
@settings(max_examples=40, deadline=None)
def test_segments_do_not_matter_to_each_other(segments: list[list[Row]]) -> None:
    together = both(*segments)
    alone = np.concatenate([both(rows) for rows in segments], axis=1)
    assert together == pytest.approx(alone, abs=1e-9)


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_the_mirror_image_has_the_same_error_and_bounds_hold(rows: list[Row]) -> None:
    error, bandwidth = one(rows)
    mirrored = one([(1.0 - s, 1 - y, w) for s, y, w in rows])
    assert mirrored == pytest.approx((error, bandwidth), abs=EXACT)
    weight = sum(w for _, _, w in rows)
    gap = abs(sum(w * (y - s) for s, y, w in rows)) / weight
    assert gap - 1e-9 <= error <= sum(w * abs(y - s) for s, y, w in rows) / weight + 1e-9
    assert error == pytest.approx(bandwidth) if bandwidth > LEAST else error <= LEAST + 1e-12


def test_chunks_and_grids_of_many_segments_are_those_of_each() -> None:
    sizes = [1, 3, 90, 600, 1500, 2, 700, 31_000, 5]  # both limits between grids, and some that must be done again
    rng = np.random.default_rng(4)
    segments = [(rng.beta(2, 3, n), rng.random(n)) for n in sizes]
    tallies = [tally_of_columns(s, (u < s).astype(np.float64), np.ones(len(s))) for s, u in segments]
    starts = np.cumsum([0] + [len(t.score) for t in tallies[:-1]])
    names = ("score", "rows", "weight", "positive", "squared", "squared_positive")
    whole = Tally(starts=starts, **{name: np.concatenate([getattr(t, name) for t in tallies]) for name in names})
    together = np.stack(smooth_error(whole))
    alone = np.concatenate([np.stack(smooth_error(t)) for t in tallies], axis=1)
    parts = [np.stack(smooth_error(part)) for _, part in whole.chunks(1000)]
    assert together == pytest.approx(alone, abs=1e-9)
    assert np.concatenate(parts, axis=1) == pytest.approx(alone, abs=1e-9)


# ---------------------------------------------------------------- the curve
def height(sigma: float) -> float:
    """The density at the middle of a Gaussian: `kernel` has it, the kernel of the curve is 1 there."""
    return 1.0 / (sigma * math.sqrt(2.0 * math.pi))


def means_by_definition(rows: Sequence[Row], at: Floats, sigma: float) -> KernelMeans:
    score, label, weight = np.array(rows, dtype=np.float64).T
    each = kernel(at, score, sigma) / height(sigma) * weight
    total, squares = each.sum(axis=1), each * each
    return KernelMeans(
        weight=total,
        rate=each @ label / total,
        score=each @ score / total,
        squared=squares.sum(axis=1),
        squared_variance=squares @ (score * (1 - score)),
    )


def test_the_curve_is_a_ratio_of_kernel_sums() -> None:
    segments = [drawn(30, 1, weights=True), drawn(4, 2, digits=1), drawn(900, 3, digits=2, weights=True)]
    at, tally = np.array([0.0, 0.03, 0.31, 0.5, 0.86, 1.0]), tallied(*segments)
    found = kernel_means(tally, np.repeat(np.arange(3), len(at)), np.tile(at, 3))
    for i, sigma in enumerate(smooth_error(tally)[1]):
        expected = asdict(means_by_definition(segments[i], at, sigma))
        for name, values in asdict(found).items():
            assert values[i * len(at) : (i + 1) * len(at)] == pytest.approx(expected[name], rel=1e-9), name


def test_the_curve_of_many_scores_joins_the_nearest() -> None:
    rows, at = drawn(20_000, 6, weights=True), np.array([0.0, 0.2, 0.51, 0.9])
    tally = tallied(rows)
    assert len(tally.score) > 2**13
    sigma = float(smooth_error(tally)[1][0])
    found, expected = kernel_means(tally, np.zeros(4, dtype=np.int64), at), means_by_definition(rows, at, sigma)
    # a score is moved to the mean of its cell, by 2^-13 at most, so that only the second order of the kernel is left
    exact = (2**-13 / sigma) ** 2
    assert found.rate == pytest.approx(expected.rate, abs=exact)
    assert found.score == pytest.approx(expected.score, abs=exact)
    assert found.weight == pytest.approx(expected.weight, rel=exact)


def test_there_is_no_rate_far_from_every_score() -> None:
    # one of five is positive at .2, so the bandwidth is the least one, and .5 is 300 of it away
    tally = tallied(rows_of([0.2] * 5, [1, 0, 0, 0, 0]))
    means = kernel_means(tally, np.zeros(2, dtype=np.int64), np.array([0.2, 0.5]))
    assert means.rate == pytest.approx([0.2, np.nan], nan_ok=True)
    assert means.weight.tolist() == [5.0, 0.0]


def test_the_density_adds_up_to_one() -> None:
    at, tally = (np.arange(2000) + 0.5) / 2000, tallied(drawn(25, 5))
    density = kernel_means(tally, np.zeros(2000, dtype=np.int64), at).weight * height(float(smooth_error(tally)[1][0]))
    assert density.mean() / 25 == pytest.approx(1.0, abs=1e-9)


# ---------------------------------------------------------------- the interval
@cache
def calibrated(n: int, segments: int, shift: float) -> Tally:
    rng = np.random.default_rng([n, segments])
    score = rng.beta(2.0, 3.0, (segments, n))
    label = (rng.random((segments, n)) < np.minimum(score + shift, 1.0)).astype(int)
    return tallied(*(rows_of(s.tolist(), y.tolist()) for s, y in zip(score, label, strict=True)))


@pytest.mark.parametrize(("shift", "truth"), [(0.0, 0.0), (0.15, 0.1494)])
def test_intervals_of_nine_tenths_hold_the_true_error_that_often(shift: float, truth: float) -> None:
    # scores beta(2, 3), a shift of .15 cut at 1: all residuals positive, so the truth is their mean,
    # E min(.15, 1 - s) = .15 - E (s - .85)+ = .1494 by stats.beta(2, 3).expect
    assert stats.beta(2, 3).expect(lambda s: np.minimum(shift, 1 - s)) == pytest.approx(truth, abs=1e-3)
    low, high = smooth_error_interval(calibrated(150, 120, shift), level=0.9, n_resamples=300)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.85  # 120 samples: .9 less two standard errors
    assert np.mean(high - low) < 0.2


def test_one_score_has_nearly_the_interval_of_a_proportion() -> None:
    # all at .3, 45 of 100 positive: smECE is |rate - .3|, whatever the bandwidth; Wilson inverts the score test
    low, high = smooth_error_interval(tallied(rows_of([0.3] * 100, [1] * 45 + [0] * 55)), level=0.9, n_resamples=1000)
    z = stats.norm.ppf(0.95)
    centre, half = (0.45 + z * z / 200) / (1 + z * z / 100), z / (1 + z * z / 100)
    half *= np.sqrt(0.45 * 0.55 / 100 + z * z / 40_000)
    assert [low[0], high[0]] == pytest.approx([centre - half - 0.3, centre + half - 0.3], abs=0.012)


def test_a_certain_forecast_that_held_four_times_may_still_be_wrong() -> None:
    # four rows of score 1, all positive: at a rate of 1 - q, (1 - q)^4 = .05 at q = .527 (the rule of three, exactly)
    low, high = smooth_error_interval(tallied(rows_of([1.0] * 4, [1] * 4)), level=0.9, n_resamples=1000)
    assert low[0] == 0.0
    assert high[0] == pytest.approx(1 - 0.05**0.25, abs=0.03)


def test_a_certain_forecast_that_failed_is_no_calibrated_one() -> None:
    # score 1 and one failure in a hundred: impossible if calibrated; Clopper-Pearson has [.0005, .0466]
    low, high = smooth_error_interval(tallied(rows_of([1.0] * 100, [0] + [1] * 99)), level=0.9, n_resamples=1000)
    assert 0.0 < low[0] < 0.002
    assert high[0] == pytest.approx(0.0466, abs=0.005)


def test_a_sample_that_is_too_good_claims_no_more_than_the_median_one() -> None:
    # 30 of 100 at .3 is exact; half of calibrated samples are off by .031 or more, and .1 is not excluded by that
    low, high = smooth_error_interval(tallied(rows_of([0.3] * 100, [1] * 30 + [0] * 70)), level=0.9)
    assert low[0] == 0.0
    assert 0.08 < high[0] < 0.13


def interval(tally: Tally, **options: Any) -> Floats:
    return np.stack(smooth_error_interval(tally, level=0.9, n_resamples=100, **options))


def test_the_interval_of_a_segment_does_not_depend_on_the_others() -> None:
    segments = [drawn(n, n, weights=n == 70) for n in (1, 4, 70, 200)]
    together = interval(tallied(*segments))
    alone = np.concatenate([interval(tallied(rows)) for rows in segments], axis=1)
    assert together == pytest.approx(alone, abs=1e-9)
    assert interval(tallied(*segments[::-1]))[:, ::-1] == pytest.approx(alone, abs=1e-9)
    assert np.abs(interval(tallied(*segments), seed=1) - together).max() > 1e-6


def test_the_interval_knows_no_unit_of_weight_and_counts_rows_of_frequency_weights() -> None:
    rows = [(s, y, float(1 + i % 3)) for i, (s, y, _) in enumerate(drawn(80, 7))]
    expected = interval(tallied(rows))
    for unit in (3.0, 1e-100, 1e100):
        assert interval(tallied([(s, y, w * unit) for s, y, w in rows])) == pytest.approx(expected, abs=1e-9)
    counted = interval(tallied(rows, counts=True))
    assert counted == pytest.approx(interval(tallied(twice(rows))), abs=1e-9)
    assert counted[1, 0] - counted[0, 0] < expected[1, 0] - expected[0, 0]  # more rows than weighted ones say


def test_a_higher_level_is_wider() -> None:
    tally = tallied(drawn(300, 3))
    ends = np.array([smooth_error_interval(tally, level=level, n_resamples=400) for level in (0.5, 0.8, 0.98)])[:, :, 0]
    assert (np.diff(ends[:, 0]) <= 0).all()
    assert (np.diff(ends[:, 1]) > 0).all()


@given(ROWS)
@settings(max_examples=30, deadline=None)
def test_every_small_table_has_an_interval(rows: list[Row]) -> None:
    low, high = interval(tallied(rows))[:, 0]
    assert 0.0 <= low <= high <= 1.0


def test_binomial_quantiles_of_scipy() -> None:
    rng = np.random.default_rng(0)
    size = np.sort(rng.integers(1, 90, 60)).astype(np.float64)
    chance, z = np.minimum(rng.random(60) * 3 / size, 0.97), rng.standard_normal((60, 50))
    expected = stats.binom.ppf(stats.norm.cdf(z), size[:, None], chance[:, None])
    np.testing.assert_array_equal(_counts(size, chance, z), expected)


def test_the_tally_is_left_alone() -> None:
    tally = tallied(drawn(30, 2))
    before = replace(tally, **{name: getattr(tally, name).copy() for name in ("score", "weight", "positive")})
    smooth_error(tally)
    interval(tally)
    assert all(np.array_equal(getattr(tally, name), getattr(before, name)) for name in ("score", "weight", "positive"))
