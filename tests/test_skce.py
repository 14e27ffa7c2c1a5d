"""The squared kernel calibration error against its definition, pair by pair."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats
from scipy.spatial.distance import pdist

from calframe._kernels._skce import ALL_PAIRS, skce_with_error
from calframe._kernels._vectors import Vectors
from tests._vector_definitions import distance, pair_value
from tests._vector_definitions import skce as by_definition
from tests._vector_rows import Row, drawn_rows, golden_binary, vectors_of, vectors_of_rows


def close(found: Any, expected: Any, *, rtol: float = 1e-10, atol: float = 1e-13) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def skce(vectors: Vectors, *, bandwidth: float | None = None) -> np.ndarray:
    return skce_with_error(vectors, bandwidth=bandwidth)[0]


def drawn(n: int, classes: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return scores, and labels drawn from them, so that they are calibrated."""
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), n)
    return scores, (rng.random((n, 1)) > np.cumsum(scores[:, :-1], axis=1)).sum(axis=1)


def with_matrices(scores: np.ndarray, label: np.ndarray) -> float:
    """Return the mean of h over all pairs from the four terms of the paper, each a matrix; distances by SciPy."""
    away, every = pdist(scores, "cityblock"), np.triu_indices(len(label), 1)
    crossed = scores[:, label]
    inner = (label[:, None] == label) - crossed - crossed.T + scores @ scores.T
    return float(np.mean(np.exp(-away / np.median(away)) * inner[every]))


# ---------------------------------------------------------------- all pairs
@settings(max_examples=100, deadline=None)
@given(rows=drawn_rows())
def test_all_pairs_by_the_definition_with_weights_that_count_rows(rows: list[Row]) -> None:
    vectors = vectors_of_rows(rows)
    for bandwidth in (None, 0.7):
        found = skce(vectors, bandwidth=bandwidth)
        for place, segment in enumerate(sorted({row[0] for row in rows})):
            copies = [(y, p) for its, p, y, w in rows if its == segment for _ in range(int(w))]
            close(found[place], by_definition(copies, bandwidth) if len(copies) > 1 else math.nan)


@settings(max_examples=40, deadline=None)
@given(rows=drawn_rows(least=2))
def test_the_order_of_rows_does_not_matter(rows: list[Row]) -> None:
    close(skce(vectors_of_rows(rows)), skce(vectors_of_rows(rows[::-1])))


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("n", [600, ALL_PAIRS])  # more than one block of rows
def test_all_pairs_of_many_rows(n: int, classes: int) -> None:
    scores, label = drawn(n, classes, seed=n + classes)
    value, error = skce_with_error(vectors_of(scores, label))
    close(value, [with_matrices(scores, label)], rtol=1e-8)
    assert np.isnan(error).all()


def test_the_binary_form_with_twice_the_bandwidth() -> None:
    # the reference values of 2 exp(-|p - p'|) (y - p)(y' - p'): over pairs of different rows, and over all n² pairs
    score, label = golden_binary()
    scores = np.column_stack([1 - score, score])
    close(skce(vectors_of(scores, label), bandwidth=2.0), [0.0078659308], rtol=0, atol=5e-11)
    # of 2^40 copies of each row, next to no pair is a row with itself
    many = vectors_of(scores, label, weight=np.full(240, 2.0**40))
    close(skce(many, bandwidth=2.0), [0.0091893714], rtol=0, atol=5e-11)


def test_weights_that_are_not_whole_weigh_pairs_of_different_rows() -> None:
    scores = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]]
    label, weight = [0, 2, 2, 1], [0.5, 1.0, 1.5, 2.0]
    rows = list(zip(label, scores, weight, strict=True))
    # quarters are whole numbers of copies of each distance
    away = [
        distance(one[1], other[1]) for one, other in combinations(rows, 2) for _ in range(int(4 * one[2] * other[2]))
    ]
    pairs = [(one[2] * other[2], pair_value(one[:2], other[:2], median(away))) for one, other in combinations(rows, 2)]
    expected = sum(w * h for w, h in pairs) / sum(w for w, _ in pairs)
    for scale in (1.0, 1e-100, 0.3):
        close(skce(vectors_of(scores, label, weight=np.array(weight) * scale)), [expected])


@pytest.mark.parametrize("scale", [0.1, 0.09, 0.54, 0.08, 0.79, 1.1e-100])  # the sums round either way
def test_two_middle_distances_are_seen_whatever_weights_round_to(scale: float) -> None:
    # of weights 1, 1, 1, 3 the two nearest pairs (.1) weigh 3 + 3, the other four (.2 and on) 1 + 1 + 1 + 3
    scores = [[p, 1 - p] for p in (0.5, 0.6, 0.9, 0.55)]
    vectors = vectors_of(scores, [0, 1, 0, 1], weight=np.array([1, 1, 1, 3]) * scale)
    close(skce(vectors), skce(vectors, bandwidth=0.15))


@pytest.mark.parametrize("weight", [2, 3])
def test_one_whole_weight_for_all_is_as_many_copies(weight: int) -> None:
    scores, label = drawn(6, 3, seed=weight)
    copies = list(zip(label, scores, strict=True)) * weight
    close(skce(vectors_of(scores, label, weight=np.full(6, float(weight)))), [by_definition(copies)])


@pytest.mark.parametrize("weight", [0.3, 2.5, 1e-100])
def test_one_weight_for_all_that_is_not_whole_is_none(weight: float) -> None:
    for n in (4, 5, 30):  # an even number of pairs, and an odd one
        scores, label = drawn(n, 3, seed=n)
        close(skce(vectors_of(scores, label, weight=np.full(n, weight))), skce(vectors_of(scores, label)))


def test_a_row_with_nearly_all_the_weight_leaves_a_value() -> None:
    # the one pair of different rows, whatever its share of the weight
    scores, label = [[0.9, 0.1], [0.7, 0.3]], [0, 1]
    for weight in ([1.5, 1.5], [1e-50, 1e50 / 3], [1e12 + 0.5, 0.5]):
        close(skce(vectors_of(scores, label, weight=weight), bandwidth=0.4), [-0.14 / math.e])


def test_segments_of_many_sizes_are_each_as_alone() -> None:
    sizes = np.array([1, 2, 300, 2, 40, 2100, 7, 300, 2001])
    segment = np.repeat(np.arange(len(sizes)), sizes)
    scores, label = drawn(len(segment), 4, seed=1)
    weight = np.where(segment % 2, 1.0, np.random.default_rng(1).random(len(segment)))
    together = skce_with_error(vectors_of(scores, label, weight=weight, segment=segment))
    for number in range(len(sizes)):
        own = segment == number
        alone = skce_with_error(vectors_of(scores[own], label[own], weight=weight[own]))
        for found, expected in zip(together, alone, strict=True):
            close(found[number], expected[0], atol=0)


# ---------------------------------------------------------------- edges of the domain
def test_one_row_is_no_pair_unless_it_counts_twice() -> None:
    # two copies of (.25, .75), class 0: (.75, -.75) . (.75, -.75)
    scores, label = np.tile([0.25, 0.75], (3, 1)), [0, 0, 0]
    found = skce(vectors_of(scores, label, weight=[1.0, 2.0, 2.5], segment=[0, 1, 2]))
    close(found, [math.nan, 1.125, math.nan])


def test_a_median_of_zero_makes_the_bandwidth_one() -> None:
    # three equal rows and one apart: of the six distances three are 0 and three 0.4, their median 0.2
    scores, label = [[0.5, 0.5]] * 3 + [[0.7, 0.3]], [0, 1, 0, 0]
    rows = list(zip(label, scores, strict=True))
    close(skce(vectors_of(scores, label)), [by_definition(rows, 0.2)])
    # four equal rows and one apart: six of ten are 0
    close(skce(vectors_of([[0.5, 0.5], *scores], [1, *label])), [by_definition([(1, [0.5, 0.5]), *rows], 1.0)])


def test_certain_and_right_is_no_error_and_certain_and_wrong_is_a_large_one() -> None:
    # wrong: residuals (1, -1) and (-1, 1); within a class h = 2, between them -2 exp(-2 / 2)
    scores = np.repeat(np.eye(2), 2, axis=0)
    close(skce(vectors_of(scores, [0, 0, 1, 1])), [0.0])
    close(skce(vectors_of(scores, [1, 1, 0, 0])), [(2 * 2 - 4 * 2 / math.e) / 6])


def test_scores_a_hair_apart_give_a_tiny_bandwidth() -> None:
    # the distance is 1e-17, as is its median: h = (.5, -.5) . (.5, -.5) / e
    scores = [[1.0, 0.0], [1.0, 1e-17]]
    close(skce(vectors_of(scores, [1, 1])), [2.0 / math.e])
    close(skce(vectors_of(np.eye(2), [1, 1]), bandwidth=1e-320), [0.0])


# ---------------------------------------------------------------- blocks
def blocks_in_order(n: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of rows that the docstring states, and its whole blocks."""
    order = np.random.default_rng(0).permutation(n)
    return order, order[: n // block * block].reshape(-1, block)


@pytest.mark.parametrize(("n", "block"), [(ALL_PAIRS + 1, 2), (2500, 2), (2500, 30)])
def test_blocks_by_the_definition(n: int, block: int) -> None:
    scores, label = drawn(n, 3, seed=n)
    order, blocks = blocks_in_order(n, block)
    width = float(np.median(pdist(scores[order[:1000]], "cityblock")))
    rows = list(zip(label.tolist(), scores.tolist(), strict=True))
    values = [by_definition([rows[i] for i in part], width) for part in blocks]
    value, error = skce_with_error(vectors_of(scores, label), block=block)
    close(value, [np.mean(values)], rtol=1e-9)
    close(error, [np.std(values, ddof=1) / math.sqrt(len(values))], rtol=1e-9)


def test_blocks_weigh_pairs_by_the_product_of_weights() -> None:
    n = 2100
    scores, label = drawn(n, 3, seed=3)
    weight = np.random.default_rng(3).random(n) + 0.1
    pairs = blocks_in_order(n, 2)[1]
    products = weight[pairs].prod(axis=1)
    values = [pair_value((label[i], scores[i]), (label[j], scores[j]), 0.8) for i, j in pairs]
    mean = np.average(values, weights=products)
    variance = np.sum((products * (values - mean)) ** 2) / np.sum(products) ** 2 * (1050 / 1049)
    for scale in (1.0, 1e-100, 1e100):
        value, error = skce_with_error(vectors_of(scores, label, weight=weight * scale), bandwidth=0.8)
        close([value[0], error[0]], [mean, math.sqrt(variance)], rtol=1e-9)


def test_larger_blocks_have_smaller_errors() -> None:
    # where scores are calibrated, the variance over n / m blocks of m rows is that of a pair over n (m - 1) / 2
    vectors = vectors_of(*drawn(60_000, 3, seed=5))
    errors = [skce_with_error(vectors, bandwidth=1.0, block=block)[1][0] for block in (2, 50)]
    assert errors[0] / errors[1] == pytest.approx(7, rel=0.15)


def test_a_table_sorted_by_outcome_does_not_fool_the_blocks() -> None:
    # neighbours of a sorted table have the same label; pairs in the drawn order do not know
    scores, label = drawn(6000, 2, seed=4)
    order = np.argsort(label, kind="stable")
    value, error = skce_with_error(vectors_of(scores[order], label[order]), bandwidth=0.5)
    assert abs(value[0]) < 4 * error[0]


# ---------------------------------------------------------------- what theory says
def test_calibrated_scores_have_mean_zero() -> None:
    scores, label = drawn(30 * 1500, 3, seed=6)
    found = skce(vectors_of(scores, label, segment=np.repeat(np.arange(1500), 30)))
    assert abs(found.mean()) < 4 * found.std() / math.sqrt(1500)
    assert (found < 0).mean() > 0.3  # unbiased, so not clipped


def test_the_normal_interval_of_blocks_covers() -> None:
    scores, label = drawn(2002 * 300, 3, seed=8)
    vectors = vectors_of(scores, label, segment=np.repeat(np.arange(300), 2002))
    value, error = skce_with_error(vectors, bandwidth=0.5)
    covered = int(np.sum(np.abs(value) <= stats.norm.ppf(0.95) * error))
    assert stats.binomtest(covered, 300, 0.9).pvalue > 0.001


def test_scores_that_are_wrong_stand_out() -> None:
    scores, label = drawn(3000, 3, seed=9)
    sharper = scores**3 / (scores**3).sum(axis=1, keepdims=True)
    value, error = skce_with_error(vectors_of(sharper, label), block=50)
    assert value[0] > stats.norm.ppf(0.9995) * error[0]
    assert skce(vectors_of(sharper[:500], label[:500]))[0] > 10 * abs(skce(vectors_of(scores[:500], label[:500]))[0])


@pytest.mark.parametrize(("n", "classes", "megabytes"), [(ALL_PAIRS, 20, 130), (40_000, 20, 60)])
def test_memory_is_bounded(n: int, classes: int, megabytes: int) -> None:
    vectors = vectors_of(*drawn(n, classes, seed=n))
    tracemalloc.start()
    skce(vectors)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < megabytes * 2**20
