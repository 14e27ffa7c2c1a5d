"""The swept calibration error, against exact arithmetic over every number of bins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calframe._kernels._sweep import sweep_error
from calframe._kernels._tally import Tally
from tests._tallied import Row, rows_of, tallied, twice

SCORES = [0.0, 1e-17, 0.05, 0.2, 0.21, 0.3, 0.5, 0.6, 0.61, 0.7, 0.95, 1.0]
ROW = st.tuples(st.sampled_from(SCORES), st.integers(0, 1), st.sampled_from([1.0, 1.0, 2.0, 3.0]))
ROWS = st.lists(ROW, min_size=1, max_size=30)
DISTINCT = st.lists(st.integers(0, 1), min_size=1, max_size=40).map(
    lambda labels: rows_of(np.arange(len(labels)) / len(labels), labels)
)
SEGMENTS = st.lists(ROWS | DISTINCT, min_size=1, max_size=4)
properties = settings(max_examples=80, derandomize=True, deadline=None)

Bins = list[tuple[Fraction, Fraction, Fraction]]  # weight, sum of scores, sum of labels


def in_bins(rows: Sequence[Row], count: int) -> Bins:
    """Cut at floor(count * (weight below + half the tied weight) / total), and drop empty bins."""
    total = sum(Fraction(w) for _, _, w in rows)
    bins: dict[int, list[Row]] = {}
    for score in sorted({s for s, _, _ in rows}):
        below = sum(Fraction(w) for s, _, w in rows if s < score)
        tied = [row for row in rows if row[0] == score]
        middle = below + sum(Fraction(w) for _, _, w in tied) / 2
        bins.setdefault(min(int(count * middle / total), count - 1), []).extend(tied)
    return [
        (
            sum(Fraction(w) for _, _, w in each),
            sum(Fraction(w) * Fraction(s) for s, _, w in each),
            sum(Fraction(w) * y for _, y, w in each),
        )
        for each in bins.values()
    ]


def swept(rows: Sequence[Row]) -> tuple[float, int]:
    """The error and the number of bins, trying 1, 2, ... up to the number of distinct scores."""
    best = in_bins(rows, 1)
    for count in range(2, len({s for s, _, _ in rows}) + 1):
        bins = in_bins(rows, count)
        rates = [label / weight for weight, _, label in bins]
        if any(before > after for before, after in itertools.pairwise(rates)):
            break
        best = bins
    gaps = sum(abs(score - label) for _, score, label in best)
    return float(gaps / sum(weight for weight, _, _ in best)), len(best)


@properties
@given(SEGMENTS)
def test_sweep_by_its_definition(segments: list[list[Row]]) -> None:
    found = sweep_error(tallied(*segments))
    error, bins = zip(*map(swept, segments), strict=True)
    assert found.bins.tolist() == list(bins)
    np.testing.assert_allclose(found.error, error, rtol=1e-12, atol=1e-15)
    repeated = sweep_error(tallied(*map(twice, segments)))
    assert repeated.bins.tolist() == list(bins)
    np.testing.assert_allclose(repeated.error, error, rtol=1e-12, atol=1e-15)


@properties
@given(ROWS, st.sampled_from([0.1, 1 / 3, 1e-100, 1e100]))
def test_the_unit_of_weights_is_no_matter(rows: list[Row], unit: float) -> None:
    found = sweep_error(tallied([(s, y, w * unit) for s, y, w in rows], rows))
    assert found.bins[0] == found.bins[1]
    assert found.error[0] == pytest.approx(found.error[1], rel=1e-12, abs=1e-15)


def test_equal_rates_in_any_weights_are_in_order() -> None:
    # a third of each cell is positive; 3 times the middles .15, 1.35, 2.85 of 3.3 are in bins 0, 1, 2
    cells = [(0.1, 0.1, 0.2), (0.5, 0.7, 1.4), (0.9, 0.3, 0.6)]
    for unit in (1.0, 0.1, 1 / 3, 1e100):
        rows = [(s, y, w * unit) for s, ones, zeros in cells for y, w in ((1, ones), (0, zeros))]
        assert sweep_error(tallied(rows)).bins.tolist() == [3]


def test_bins_on_both_sides_of_an_empty_one_are_compared() -> None:
    # four bins of 1, 8, 12 and 1 rows: middles .5, 5, 15, 21.5 times 4/22 are in bins 0, 0, 2, 3, rates 1/9, 1/12, 1
    rows = rows_of([0.0, 0.1, 0.1, 0.2, 0.2, 0.3], [0, 1, 0, 1, 0, 1], [1, 1, 7, 1, 11, 1])
    found = sweep_error(tallied(rows))
    # three bins: 0, 0, 2, 2, rates 1/9, 2/13
    assert found.bins.tolist() == [2]
    assert found.error[0] == pytest.approx((abs(0.8 - 1) + abs(2.7 - 2)) / 22)


def test_no_more_bins_than_distinct_scores_are_tried() -> None:
    # six bins are in order, too, and are four; but the scores are five: the middles 6, 13.5, 16.5, 18.5, 25 times 5/31
    # are in bins 0, 2, 2, 2, 4, rates 0, 4/7, 3/4
    score, label = [0.0, 0.1, 0.1, 0.2, 0.3, 0.4, 0.4], [0, 1, 0, 1, 0, 1, 0]
    found = sweep_error(tallied(rows_of(score, label, [12, 1, 2, 3, 1, 9, 3])))
    assert found.bins.tolist() == [3]
    assert found.error[0] == pytest.approx((abs(1.2 - 4) + abs(4.8 - 9)) / 31)


def golden() -> list[Row]:
    """240 rows by a formula, whose values peers gave."""
    score = [(37 * i) % 101 / 100 for i in range(240)]
    noise = [((53 * i + 11) % 97) / 97 for i in range(240)]
    return rows_of(score, [u < 0.9 * p**1.4 + 0.05 for p, u in zip(score, noise, strict=True)])


def test_sweep_of_a_known_table() -> None:
    # calibre cuts after the value that completes a share j / b, and stops at 5 bins with 0.078; here the middle of
    # tied rows decides, six bins are still in order, and exact arithmetic gives 19.18 / 240
    found = sweep_error(tallied(golden()))
    assert found.bins.tolist() == [6]
    assert found.error[0] == pytest.approx(19.18 / 240, rel=1e-12)
    assert swept(golden()) == (pytest.approx(19.18 / 240, rel=1e-12), 6)


@pytest.mark.parametrize("n", [1, 2, 3, 200])
def test_separated_classes_have_a_bin_a_score(n: int) -> None:
    score = (np.arange(2 * n) + 0.5) / (2 * n)
    found = sweep_error(tallied(rows_of(score, score > 0.5)))
    # every bin is one row: the mean of |score - label| is 1/4
    assert found.bins.tolist() == [2 * n]
    assert found.error[0] == pytest.approx(0.25, rel=1e-12)


def test_a_lone_exchange_among_many_separated_rows() -> None:
    # rates are in order until bins are as small as rows 498 (positive) to 501 (negative) of 1000
    label = np.arange(1000) >= 500
    label[[498, 501]] = label[[501, 498]]
    rows = rows_of((np.arange(1000) + 0.5) / 1000, label)
    count = next(b for b in range(2, 1001) if not _ordered_ranks(label, b)) - 1
    found = sweep_error(tallied(rows))
    assert count > 100
    assert found.bins.tolist() == [count]


def _ordered_ranks(label: np.ndarray, count: int) -> bool:
    """Whether bins floor(count (2 i + 1) / (2 n)) of sorted, distinct rows have non-decreasing rates, in integers."""
    n = len(label)
    bins = count * (2 * np.arange(n) + 1) // (2 * n)
    sizes, ones = np.bincount(bins), np.bincount(bins, label).astype(int)
    return bool((ones[:-1] * sizes[1:] <= ones[1:] * sizes[:-1]).all())


def test_chunks_of_segments_are_as_the_whole() -> None:
    rng = np.random.default_rng(3)
    score = np.sort(rng.random((300, 40)), axis=1).ravel()
    positive = (rng.random(12_000) < score**1.5).astype(float)
    tally = Tally.of_counts(np.arange(300) * 40, score, np.ones(12_000), positive)
    whole = sweep_error(tally)
    parts = [sweep_error(part) for _, part in tally.chunks(500)]
    assert len(parts) > 10
    assert np.concatenate([part.bins for part in parts]).tolist() == whole.bins.tolist()
    np.testing.assert_allclose(np.concatenate([part.error for part in parts]), whole.error, rtol=1e-13)
