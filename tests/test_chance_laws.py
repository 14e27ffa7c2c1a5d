"""The law of what chance alone shows, against the laws that scipy.stats and plain convolution spell out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calframe._kernels._null import (
    cell_law,
    central_part,
    chance_gap,
    matched_binomial,
    mean_absolute_deviation,
)
from tests._definitions import chance_gap as exact_gap
from tests._tables import approx

LEVELS = [0.5, 0.9, 0.95, 0.999]
SIZES = [1, 2, 3, 10, 40, 200]
CHANCES = [0.0, 1e-9, 1e-3, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 0.999, 1.0]


def exact_law(scores: Any) -> np.ndarray:
    """Return the law of the number of positives among rows whose scores are right."""
    law = np.ones(1)
    for score in scores:
        law = np.convolve(law, [1.0 - score, score])
    return law


def cell(scores: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the four sums of one cell that the kernels read."""
    s = np.asarray(scores, float)
    w = np.ones(len(s)) if weights is None else np.asarray(weights, float)
    v = s * (1 - s)
    return np.array([w.sum()]), np.array([(w * s).sum()]), np.array([(w * v).sum()]), np.array([(w * w * v).sum()])


# ---------------------------------------------------------------- a cell of right scores
@pytest.mark.parametrize("n", [*SIZES, 5000])
def test_mean_absolute_deviation_by_enumeration(n: int) -> None:
    k = np.arange(n + 1)
    for chance in [*CHANCES, 1 / 3, 1 / n, 1 - 1 / n]:
        exact = math.fsum(stats.binom.pmf(k, n, chance) * np.abs(k - n * chance))
        found = mean_absolute_deviation(np.array([float(n)]), np.array([chance]))
        assert found[0] == pytest.approx(exact, rel=1e-9, abs=1e-15)


def test_no_tosses_deviate_from_nothing() -> None:
    assert mean_absolute_deviation(np.zeros(2), np.array([0.0, 0.5])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n", SIZES)
def test_equal_scores_match_their_own_binomial(n: int) -> None:
    for chance in (1e-9, 1e-3, 0.1, 1 / 3, 0.5):
        mean = math.fsum([chance] * n)
        found = matched_binomial(np.array([mean]), np.array([mean * (1 - chance)]), np.array([float(n)]))
        assert [float(each[0]) for each in found] == [n, approx(chance)]


def test_an_empty_cell_and_certain_scores() -> None:
    size, chance = matched_binomial(np.array([0.0, 3.0]), np.zeros(2), np.array([5.0, 6.0]))
    assert (size.tolist(), chance.tolist()) == ([0.0, 3.0], [0.0, 1.0])  # three positives for certain


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
def test_a_matched_binomial_has_the_mean_and_a_whole_size(thousandths: list[int]) -> None:
    weight, mean, variance, _ = cell(np.array(thousandths) / 1000)
    mean = np.minimum(mean, weight - mean)  # the rarer of positives and negatives
    size, chance = matched_binomial(mean, variance, weight)
    assert size[0] == np.rint(size[0])
    assert 0 <= chance[0] <= 1
    assert size[0] * chance[0] == approx(float(mean[0]))
    assert math.ceil(mean[0] - 1e-9) <= size[0] <= weight[0]


# Rows of a cell, range of their scores, and the total variation between the matched and the exact law, at most.
SPREAD = [(10, 0.0, 0.067, 1e-3), (66, 0.2, 0.27, 1e-3), (66, 0.01, 0.9, 3e-2), (1000, 0.2, 0.9, 4e-3)]


@pytest.mark.parametrize(("n", "low", "high", "most"), SPREAD)
def test_the_law_of_a_cell_is_close_to_the_exact_one(n: int, low: float, high: float, most: float) -> None:
    for scores in (np.linspace(low, high, n), 1 - np.linspace(low, high, n)):
        law = cell_law(*cell(scores))
        k = np.arange(n + 1)
        counted = k if law.step[0] > 0 else n - k  # positives or negatives
        matched = stats.binom.pmf(counted, law.size[0], law.chance[0])
        assert np.abs(matched - exact_law(scores)).sum() / 2 < most


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 9)), min_size=1, max_size=30))
def test_the_law_of_a_cell_has_its_mean_and_variance(rows: list[tuple[int, int]]) -> None:
    scores, weights = np.array(rows).T
    sums = cell(scores / 100, weights)
    law = cell_law(*sums)
    variance = (law.step * law.stretch) ** 2 * law.size * law.chance * (1 - law.chance)
    assert law.centre[0] == sums[1][0]
    if law.size[0] > 1 or law.chance[0] < 1:  # else all is certain, or too little is left to have a variance
        assert variance[0] == pytest.approx(sums[3][0], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("scores", [[0.3] * 4, [0.8] * 5, [0.02] * 30])
def test_equal_scores_and_weights_have_an_exact_law(scores: list[float]) -> None:
    law = cell_law(*cell(scores, [2.5] * len(scores)))
    chance = min(scores[0], 1 - scores[0])
    assert (law.size[0], law.chance[0]) == (len(scores), approx(chance))
    assert (law.step[0], law.stretch[0]) == (approx(2.5 if scores[0] < 0.5 else -2.5), 1.0)


@pytest.mark.parametrize("scores", [[0.3] * 4, [0.8] * 50, [0.1, 0.12, 0.11, 0.13], [0.97, 0.98, 0.99] * 9])
def test_the_mean_of_a_gap_by_enumeration(scores: list[float]) -> None:
    assert chance_gap(*cell(scores))[0] == pytest.approx(exact_gap(scores), rel=2e-3)


# ---------------------------------------------------------------- the central part of a cell
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", SIZES)
def test_the_central_part_leaves_no_more_than_its_tails(n: int, level: float) -> None:
    tail, slack = (1 - level) / 2, 1e-12
    for chance in CHANCES:
        low, high = central_part(*cell([chance] * n), level=level)
        first, last = round(low[0] * n), round(high[0] * n)
        assert [low[0] * n, high[0] * n] == pytest.approx([first, last], abs=1e-8)  # a whole number of positives
        law = stats.binom.pmf(np.arange(n + 1), n, chance)
        below, above = law[:first].sum(), law[last + 1 :].sum()
        assert max(below, above) <= tail + slack
        assert min(below + law[first], above + law[last]) >= tail - slack  # and is no wider than it must be


def test_the_central_part_of_large_cells_of_scipy() -> None:
    n = 2_000_000.0
    for chance in (1e-6, 0.01, 0.5, 0.9):
        weight = np.array([n])
        variance = weight * chance * (1 - chance)
        found = central_part(weight, weight * chance, variance, variance, level=0.95)
        ends = stats.binom.ppf([0.025, 0.975], n, chance)
        assert [round(each[0] * n) for each in found] == ends.tolist()


# Rows of a cell, range of their scores, and how far the matched law may be from the exact one in its tails.
TAILS = [(n, *ends, 0.002) for n in (3, 5, 10, 66, 300) for ends in ((0, 0.067), (0.2, 0.27), (0.93, 1))]
TAILS += [(n, 0.01, 0.9, 0.02) for n in (10, 66, 300)]  # fewer rows, so wide apart, have a law that no Binomial is near


@pytest.mark.parametrize(("n", "low", "high", "off"), TAILS)
def test_the_central_part_of_unequal_scores_holds_its_level(n: int, low: float, high: float, off: float) -> None:
    rng = np.random.default_rng(n)
    for scores in rng.uniform(low, high, (20, n)):
        law = exact_law(scores)
        for level in LEVELS:
            ends = [float(end[0]) for end in central_part(*cell(scores), level=level)]
            rates = np.arange(n + 1) / n
            assert law[(rates >= ends[0]) & (rates <= ends[1])].sum() > level - off


def test_a_rate_on_the_very_end_of_the_central_part_lies_inside() -> None:
    # no positive among five rows of about 3 in 100: by far the likeliest outcome
    low, high = central_part(*cell([0.01, 0.02, 0.03, 0.04, 0.05]), level=0.95)
    assert low[0] <= 0.0
    assert high[0] >= 1 / 5 > high[0] - 1e-9  # one positive has chance .14, two .008


def test_equal_weights_do_not_move_the_central_part() -> None:
    scores = [0.1, 0.12, 0.14, 0.3] * 5
    plain = central_part(*cell(scores), level=0.9)
    weighted = central_part(*cell(scores, [0.3] * 20), level=0.9)
    np.testing.assert_allclose(weighted, plain, rtol=1e-12, atol=1e-11)


def test_hits_and_misses_have_mirrored_central_parts() -> None:
    scores = np.array([0.0625, 0.125, 0.25, 0.3125] * 6)
    low, high = central_part(*cell(scores), level=0.9)
    mirrored = central_part(*cell(1 - scores), level=0.9)
    np.testing.assert_allclose([1 - high, 1 - low], mirrored, rtol=1e-12, atol=1e-11)


def test_certain_scores_have_one_central_rate() -> None:
    for scores, rate in (([0.0, 0.0], 0.0), ([1.0, 1.0, 1.0], 1.0), ([0.0, 1.0, 1.0, 1.0], 0.75)):
        ends = [float(end[0]) for end in central_part(*cell(scores), level=0.9)]
        assert ends == pytest.approx([rate, rate], abs=1e-11)
        assert ends[0] <= rate <= ends[1]
