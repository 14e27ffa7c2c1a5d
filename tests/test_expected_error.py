"""What right scores show by chance: exact where it can be, as close as stated elsewhere, the same in any row order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests._definitions import bin_of, chance_gap, chance_gap_of_equal, edges_of
from tests._tables import LIBRARIES, Maker, approx, measure, rows, value

POLARS = Maker("polars")


def expected(make: Maker, scores: Any, *, weights: Any = None, **arguments: Any) -> float:
    """Return ece_expected of scores; labels do not matter."""
    table = {"y": np.zeros(len(scores), int), "p": scores} | ({} if weights is None else {"w": weights})
    more = {} if weights is None else {"weight": "w"}
    return value(make, table, "ece_expected", **more, **arguments)


@pytest.mark.parametrize("score", [1e-12, 1e-6, 0.01, 0.1, 0.25, 0.3, 1 / 3, 0.5, 0.7, 0.9, 0.99])
def test_equal_scores_are_exact(score: float) -> None:
    for n in (1, 2, 3, 5, 10, 50, 200, 1000):
        found = expected(POLARS, np.full(n, score), bins=1)
        assert found == pytest.approx(chance_gap_of_equal(score, n) / n, rel=1e-9)


def test_equal_scores_within_each_bin_are_exact(make: Maker) -> None:
    # 7 rows of .05, 4 of .35 and 9 of .95 in ten bins
    scores = [0.05] * 7 + [0.35] * 4 + [0.95] * 9
    exact = chance_gap_of_equal(0.05, 7) + chance_gap_of_equal(0.35, 4) + chance_gap_of_equal(0.95, 9)
    assert expected(make, scores, bins=10) == pytest.approx(exact / 20, rel=1e-12)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_certain_scores_show_nothing(make: Maker, score: float) -> None:
    assert expected(make, [score] * 5, bins=10) == 0.0


def test_certain_scores_of_both_kinds_show_nothing(make: Maker) -> None:
    assert expected(make, [1.0, 0.0, 0.0, 1.0], bins=1) == 0.0
    assert expected(make, [1.0, 0.0, 0.0, 1.0], bins=15, weights=[1.0, 2.0, 3.0, 0.5]) == 0.0


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_certain_scores_add_nothing_to_their_bin(certain: float) -> None:
    # the positives of 50 certain rows are known: what varies are the other five, Binomial(5, .3)
    found = expected(POLARS, [certain] * 50 + [0.3] * 5, bins=1)
    assert found == pytest.approx(chance_gap_of_equal(0.3, 5) / 55, rel=1e-9)


# Rows of a bin, range of their scores, relative error of E|K - mu| on average over such bins and at worst.
SPREAD = [
    (10, 0.0, 0.067, 3e-4, 1e-3),
    (66, 0.2, 0.27, 1e-3, 2e-3),
    (1000, 0.2, 0.9, 1e-4, 1e-3),
    (66, 0.01, 0.9, 9e-3, 2e-2),
]


@pytest.mark.parametrize(("n", "low", "high", "typical", "worst"), SPREAD)
def test_unequal_scores_are_close_to_the_poisson_binomial(
    n: int, low: float, high: float, typical: float, worst: float
) -> None:
    rng = np.random.default_rng(n)
    off = []
    for _ in range(20):
        scores = rng.uniform(low, high, n)
        off.append(expected(POLARS, scores, bins=1) * n / chance_gap(scores) - 1)
    assert abs(np.mean(off)) < typical
    assert max(map(abs, off)) < worst


def test_a_whole_table_is_close_to_the_poisson_binomial(make: Maker) -> None:
    scores = np.random.default_rng(3).beta(1, 3, 300)
    edges = edges_of(15)
    bins = np.array([bin_of(score, edges, closed="left") for score in scores])
    exact = sum(chance_gap(scores[bins == b]) for b in range(15)) / 300
    assert expected(make, scores) == pytest.approx(exact, rel=1.5e-3)


def test_row_order_does_not_matter() -> None:
    # (sum p)^2 / sum p^2 = 14^2 / 56 = 3.5 for these hundredths: the size of the matched Binomial is a tie
    scores = [0.06, 0.03, 0.03, 0.01, 0.01]
    rng = np.random.default_rng(0)
    found = {expected(POLARS, rng.permutation(scores), bins=1) for _ in range(40)}
    assert max(found) == approx(min(found))


@pytest.mark.parametrize("library", LIBRARIES)
def test_ties_of_the_matched_size_are_the_same_in_every_library(library: str) -> None:
    scores = [0.01, 0.06, 0.03, 0.01, 0.03]
    assert expected(Maker(library), scores, bins=1) == approx(expected(POLARS, scores, bins=1))


def chance_gap_of_weights(scores: Any, weights: Any) -> float:
    """Return E|sum w (K - p)| for whole weights, by convolution on the lattice of possible sums."""
    law = np.ones(1)
    for score, weight in zip(scores, weights, strict=True):
        longer = np.zeros(len(law) + weight)
        longer[: len(law)] += (1 - score) * law
        longer[weight:] += score * law
        law = longer
    return float(law @ np.abs(np.arange(len(law)) - scores @ weights))


def test_whole_weights_are_close_to_the_exact_law() -> None:
    rng = np.random.default_rng(8)
    off = []
    for _ in range(10):
        scores, weights = rng.uniform(0.2, 0.4, 400), rng.integers(1, 11, 400)
        found = expected(POLARS, scores, weights=weights, bins=1)
        off.append(found * weights.sum() / chance_gap_of_weights(scores, weights) - 1)
    assert max(map(abs, off)) < 7e-3


@pytest.mark.parametrize("low", [0.0, 0.5, 0.95, 0.99])
def test_whole_weights_on_few_rows_with_any_scores(low: float) -> None:
    # a bin of twenty rows, effectively about fourteen: within a tenth of the exact law, near 1 as near 0
    rng = np.random.default_rng(10)
    for _ in range(10):
        scores, weights = rng.uniform(low, min(low + 0.05, 1.0), 20), rng.integers(1, 11, 20)
        exact = chance_gap_of_weights(scores, weights) / weights.sum()
        assert expected(POLARS, scores, weights=weights, bins=1) == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("weights", [None, [1.0, 2.5, 3.0, 0.5]], ids=["plain", "weighted"])
def test_hits_and_misses_are_alike(make: Maker, weights: Any) -> None:
    # the misses of right scores p are the hits of right scores 1 - p, as far from their mean
    scores = np.array([0.90625, 0.9375, 0.96875, 0.984375])
    assert expected(make, scores, weights=weights, bins=1) == approx(
        expected(make, 1 - scores, weights=weights, bins=1)
    )


def test_weights_of_any_size_are_close_to_simulated_rows() -> None:
    rng = np.random.default_rng(9)
    scores, weights = rng.uniform(0.2, 0.4, 1000), rng.lognormal(0.0, 1.0, 1000)
    draws = 4000
    gaps = np.abs((rng.random((draws, 1000)) < scores) @ weights - scores @ weights) / weights.sum()
    error = gaps.std() / np.sqrt(draws)
    found = expected(POLARS, scores, weights=weights, bins=1)
    assert abs(found - gaps.mean()) < 3 * error + 0.01 * gaps.mean()


def test_the_unit_of_weights_does_not_matter(make: Maker) -> None:
    scores, weights = [0.1, 0.12, 0.3, 0.9], np.array([1.0, 2.5, 3.0, 0.5])
    assert expected(make, scores, weights=8 * weights) == approx(expected(make, scores, weights=weights))


def test_equal_weights_are_no_weights(make: Maker) -> None:
    scores = [0.1, 0.12, 0.3, 0.9]
    assert expected(make, scores, weights=[3.0] * 4) == approx(expected(make, scores))


def test_frequencies_are_rows_repeated(make: Maker) -> None:
    scores, counts = np.array([0.1, 0.12, 0.3, 0.9]), np.array([4, 1, 3, 2])
    found = expected(make, scores, weights=counts, weight_kind="frequency")
    assert found == approx(expected(make, np.repeat(scores, counts)))
    assert found < expected(make, scores, weights=counts)  # independent rows vary less than one row taken four times


def test_more_rows_show_less(make: Maker) -> None:
    table = {"g": np.repeat([1, 2, 3], [10, 100, 1000]), "y": np.zeros(1110, int), "p": np.full(1110, 0.3)}
    found = rows(measure(make, table, by="g", metrics="ece_expected"))["ece_expected"]
    assert all(few > 3 * many for few, many in pairwise(found))
    # E|K - mu| of a large Binomial is sqrt(2 / pi) standard deviations
    assert found[2] == pytest.approx(np.sqrt(2 / np.pi * 0.21 / 1000), rel=1e-3)
