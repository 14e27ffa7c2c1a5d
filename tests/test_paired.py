"""The arithmetic of paired comparisons: variances of units, exchanges, gathered rows, intervals of differences."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from calframe._testing import _gathered
from calframe._testing._gathered import Columns, gathered
from calframe._testing._paired import (
    Estimate,
    Exceedances,
    Units,
    correlation_of,
    difference_of_intervals,
    exchanged,
    paired,
    resampled,
)
from calframe._typing import Floats, Ints


def of_one_segment(values: Floats, *, cluster: Ints | None = None) -> tuple[Units, Floats, Floats]:
    units = Units.of_rows(np.zeros(len(values), dtype=np.int64), np.ones(len(values)), cluster=cluster)
    mean = units.mean(values)
    return units, mean, (values - mean[0]) / len(values)


def test_clusters_have_the_variance_of_their_sums() -> None:
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(30), 4)  # of equal size: the effective number is 30
    values = rng.normal(size=120) + rng.normal(size=30)[cluster] + 0.3
    units, mean, parts = of_one_segment(values, cluster=cluster)
    found = paired(units, mean, parts, level=0.95)
    # statsmodels: the mean as a regression on a constant, with the covariance of clusters
    expected = sm.OLS(values, np.ones(120)).fit(cov_type="cluster", cov_kwds={"groups": cluster}, use_t=True)
    assert found.error[0] == pytest.approx(expected.bse[0], rel=1e-12)
    assert found.pvalue[0] == pytest.approx(2.0 * stats.t(29).sf(abs(mean[0]) / expected.bse[0]), rel=1e-10)


def test_a_single_unit_has_no_interval() -> None:
    units, mean, parts = of_one_segment(np.array([0.5, 0.7]), cluster=np.zeros(2, dtype=np.int64))
    found = paired(units, mean, parts, level=0.95)
    assert mean[0] == pytest.approx(0.6)
    assert np.isnan([found.low[0], found.high[0], found.pvalue[0]]).all()


def test_effective_units_are_those_of_kish() -> None:
    # weights 1, 3 and 4, 4 in two segments: 16 / 10 and 64 / 32
    units = Units.of_rows(np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 4.0, 4.0]))
    assert units.effective().tolist() == pytest.approx([1.6, 2.0])
    # sums of 1, 1 and 2: (1 + 1 + 4)^2 / (1 + 1 + 16) = 2, and the second segment has one that differs
    units = Units.of_rows(np.array([0, 0, 0, 1, 1]), np.ones(5))
    assert units.telling(np.array([1.0, -1.0, 2.0, 0.0, 1e-200])).tolist() == pytest.approx([2.0, 1.0])


def test_exchanges_go_both_ways_alike_and_resamples_keep_the_number_of_units() -> None:
    units = Units.of_rows(np.repeat([0, 1], [3, 5]), np.ones(8))
    shares = np.vstack(list(exchanged(units, 4_000, np.random.default_rng(1), wide=1_000_000)))
    assert shares.shape == (4_000, 8)
    assert set(np.unique(shares)) == {0.0, 1.0}
    assert shares.mean(axis=0) == pytest.approx(np.full(8, 0.5), abs=4 * 0.5 / 4_000**0.5)
    times = np.vstack(list(resampled(units, 500, np.random.default_rng(1), wide=0)))
    assert set(times[:, :3].sum(axis=1)) == {3.0}
    assert set(times[:, 3:].sum(axis=1)) == {5.0}


def test_units_of_several_copies_exchange_a_share_of_them() -> None:
    units = Units.of_rows(np.array([0, 0]), np.array([1.0, 10.0]), counts_rows=True)
    shares = np.vstack(list(exchanged(units, 5_000, np.random.default_rng(2), wide=0)))
    # a Binomial share of 10 has the variance 1/40
    assert shares[:, 1].var() == pytest.approx(1 / 40, rel=0.1)
    assert set(np.unique(shares[:, 0])) == {0.0, 1.0}


def test_a_pvalue_counts_what_was_seen_and_draws_without_a_value() -> None:
    count = Exceedances(np.array([2.0, -1.0, np.nan, 0.0]))
    count.add(np.array([[2.0, 0.5, 0.0, 0.0], [-3.0, np.nan, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]))
    assert count.pvalue[[0, 1, 3]].tolist() == [3 / 4, 3 / 4, 1.0]
    assert np.isnan(count.pvalue[2])


def test_the_interval_of_a_difference_knows_the_correlation() -> None:
    half = np.array([3.0]), np.array([4.0])
    first = Estimate(value=np.array([1.0]), low=1.0 - half[0], high=1.0 + half[0])
    second = Estimate(value=np.array([2.0]), low=2.0 - half[1], high=2.0 + half[1])
    for correlation in (-1.0, 0.0, 0.5, 1.0):
        low, high = difference_of_intervals(first, second, np.array([correlation]))
        width = np.sqrt(9.0 + 16.0 - 2.0 * correlation * 12.0)  # of normal estimates, exactly
        assert [low[0], high[0]] == pytest.approx([1.0 - width, 1.0 + width])


def test_a_distance_from_the_bound_is_added_in_full() -> None:
    first = Estimate(value=np.array([0.3]), low=np.array([0.0]), high=np.array([0.4]))
    second = Estimate(value=np.array([0.9]), low=np.array([0.6]), high=np.array([1.0]))
    low, high = difference_of_intervals(first, second, np.array([0.9]), bound=0.0)
    # upper end 1.0 - 0.0; to the lower one 0.3 and 0.1 away, taken as independent
    assert [low[0], high[0]] == pytest.approx([0.6 - np.hypot(0.3, 0.1), 1.0])
    low, high = difference_of_intervals(second, first, np.array([0.9]), bound=0.0)
    assert [low[0], high[0]] == pytest.approx([-1.0, -0.6 + np.hypot(0.3, 0.1)])


def test_the_correlation_of_draws_is_that_of_numpy() -> None:
    draws = np.random.default_rng(3).normal(size=(2, 50, 2))
    expected = [np.corrcoef(draws[0, :, i], draws[1, :, i])[0, 1] for i in (0, 1)]
    assert correlation_of((draws[0], draws[1])).tolist() == pytest.approx(expected)
    assert correlation_of((draws[0], np.ones((50, 2)))).tolist() == [0.0, 0.0]


def two_cells(rows: int, *, cells: int, seed: int) -> tuple[Units, tuple[Ints, Ints], dict[int, tuple[Floats, Floats]]]:
    rng = np.random.default_rng(seed)
    units = Units.of_rows(np.zeros(rows, dtype=np.int64), np.ones(rows))
    cell = rng.integers(0, cells, rows), rng.integers(0, cells, rows)
    label = (rng.random(rows) < 0.3).astype(float)
    return units, cell, {0: (np.ones(rows), np.ones(rows)), 1: (rng.random(rows), rng.random(rows)), 2: (label, label)}


def covariance(columns: Columns, first: int, second: int) -> Floats:
    """Return the sum over all random columns of the products of what they move, by cell."""
    moved = []
    for name in (first, second):
        a, b = (matrix.toarray() for matrix in columns.matrices[name])
        difference = b - a
        if columns.normal is not None:  # the column that is always there does not vary
            difference = np.delete(difference, difference.shape[1] - columns.normal - 1, axis=1)
        moved.append(difference)
    found: Floats = moved[0] @ moved[1].T
    return found


def test_gathered_rows_keep_every_total_and_every_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    # theory: an exchange of row u moves x_u with probability one half, so that sums have the covariance sum x x' / 4
    monkeypatch.setattr(_gathered, "_MANY", 100)
    units, cell, terms = two_cells(3_000, cells=5, seed=4)
    each, found = Columns.of_rows(units, cell, 5, terms), gathered(units, cell, 5, terms)
    assert found.normal is not None
    assert found.normal < 200
    for name in terms:
        assert found.totals[name][0] == pytest.approx(each.totals[name][0])
        assert found.totals[name][1] == pytest.approx(each.totals[name][1])
    for first, second in product(terms, terms):
        assert covariance(found, first, second) == pytest.approx(covariance(each, first, second), abs=1e-8)


def test_gathered_draws_are_centred_where_those_of_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gathered, "_MANY", 100)
    units, cell, terms = two_cells(2_500, cells=5, seed=5)
    found = gathered(units, cell, 5, terms)
    for drawn, middle in (
        (found.exchanged(3_000, np.random.default_rng(6)), lambda a, b: ((a + b) / 2.0, (a + b) / 2.0)),
        (found.resampled(3_000, np.random.default_rng(6)), lambda a, b: (a, b)),
    ):
        chunks = list(drawn)
        for name in terms:
            for side, expected in enumerate(middle(*found.totals[name])):
                values = np.vstack([chunk[name][side] for chunk in chunks])
                error = values.std(axis=0) / 3_000**0.5
                assert (np.abs(values.mean(axis=0) - expected[0]) < 4.5 * error).all()


def test_rows_in_clusters_and_few_rows_are_not_gathered() -> None:
    units, cell, terms = two_cells(3_000, cells=3, seed=7)
    assert gathered(units, cell, 3, terms).normal is None
    units, cell, terms = two_cells(21_000, cells=3, seed=7)
    assert gathered(units, cell, 3, terms).normal is not None
    clustered = Units.of_rows(units.segment, units.weight, cluster=np.arange(21_000) // 2)
    assert gathered(clustered, cell, 3, terms).normal is None
