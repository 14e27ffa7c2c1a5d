"""Ranking and cumulative differences: exact arithmetic from the definitions, enumeration, and reference values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from sklearn.metrics import roc_auc_score

from calframe._kernels._binned import running_sum
from calframe._kernels._ranked import (
    auc,
    auc_interval,
    ecce,
    ecce_mad_pvalue,
    ecce_range_pvalue,
    quantile_bins,
)
from tests._tallied import Row, reference_entries, rows_of, tallied, tally_of_columns, twice

# scores with ties, ends, and neighbours 1e-17 apart
SCORES = [0.0, 1e-17, 2e-17, 0.1, 0.3, 0.5, 0.5 + 2**-53, 0.7, 0.9, 1.0]
ROW = st.tuples(st.sampled_from(SCORES), st.integers(0, 1), st.sampled_from([1.0, 2.0, 3.0]))
ROWS = st.lists(ROW, min_size=1, max_size=14)
SEGMENTS = st.lists(ROWS, min_size=1, max_size=4)
properties = settings(max_examples=60, derandomize=True, deadline=None)


# ---------------------------------------------------------------- definitions
def auc_defined(rows: Sequence[Row]) -> Fraction | None:
    pairs = [
        (Fraction(v) * Fraction(w), 1 if s > t else Fraction(1, 2) if s == t else 0)
        for s, y, v in rows
        for t, z, w in rows
        if y > z
    ]
    total = sum(weight for weight, _ in pairs)
    return sum(weight * won for weight, won in pairs) / total if pairs else None


def delong_defined(rows: Sequence[Row]) -> Fraction | None:
    """Variance of the AUC: over rows and their placements, with the sums of squared weights."""
    variance, area = Fraction(0), auc_defined(rows)
    for own, other in ((1, 0), (0, 1)):
        mine = [(s, Fraction(w)) for s, y, w in rows if y == own]
        theirs = [(s, Fraction(w)) for s, y, w in rows if y == other]
        if not mine or not theirs:
            return None
        total, square = sum(w for _, w in mine), sum(w * w for _, w in mine)
        if total**2 == square:  # one row
            return None
        placed = [(_placement(s, own, theirs), w) for s, w in mine]
        effective = total**2 / square
        spread = sum(w * w * (value - area) ** 2 for value, w in placed) / total**2
        variance += spread * effective / (effective - 1)
    return variance


def _placement(score: float, own: int, theirs: list[tuple[float, Fraction]]) -> Fraction:
    """Share of the other class that a row is ranked right against, ties half."""
    won = sum(w for t, w in theirs if (t < score if own else t > score))
    return (won + sum(w for t, w in theirs if t == score) / 2) / sum(w for _, w in theirs)


def ecce_defined(rows: Sequence[Row]) -> tuple[float, float, float]:
    total = sum(Fraction(w) for _, _, w in rows)
    path = [Fraction(0)]
    for score in sorted({s for s, _, _ in rows}):
        step = sum(Fraction(w) * (y - Fraction(s)) for s, y, w in rows if s == score)
        path.append(path[-1] + step / total)
    variance = sum(Fraction(w) ** 2 * Fraction(s) * (1 - Fraction(s)) for s, _, w in rows)
    return float(max(path) - min(path)), float(max(map(abs, path))), math.sqrt(variance) / float(total)


# ---------------------------------------------------------------- AUC
@properties
@given(SEGMENTS)
def test_auc_is_the_share_of_pairs_in_order(segments: list[list[Row]]) -> None:
    expected = [math.nan if (value := auc_defined(rows)) is None else float(value) for rows in segments]
    found = auc(tallied(*segments))
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    single = [auc(tallied(rows))[0] for rows in segments]
    np.testing.assert_array_equal(found, single)
    repeated = auc(tallied(*map(twice, segments)))
    np.testing.assert_allclose(found, repeated, rtol=1e-14, atol=1e-15)


def test_auc_of_any_numbers() -> None:
    rng = np.random.default_rng(1)
    score, label = rng.normal(size=500).round(1) * 1e8, rng.integers(0, 2, 500)
    weight = rng.exponential(size=500)
    found = auc(tallied(rows_of(score, label, weight)))
    assert found[0] == pytest.approx(roc_auc_score(label, score, sample_weight=weight), rel=1e-12)  # scikit-learn


@pytest.mark.parametrize("scale", [1e-100, 1 / 3, 1e100])
def test_segments_of_other_scales_leave_no_rounding(scale: float) -> None:
    rng = np.random.default_rng(2)
    tables = [rows_of(rng.random(30).round(1), rng.integers(0, 2, 30), rng.exponential(size=30)) for _ in range(3)]
    mixed = [tables[0], [(s, y, w * scale) for s, y, w in tables[1]], tables[2]]
    for kernel in (auc, lambda tally: auc_interval(tally, level=0.9)[0], lambda tally: ecce(tally).range):
        np.testing.assert_allclose(kernel(tallied(*mixed)), kernel(tallied(*tables)), rtol=1e-12)
        np.testing.assert_allclose(kernel(tallied(*mixed)), [kernel(tallied(each))[0] for each in mixed], rtol=1e-13)


def test_rounding_does_not_pile_up_over_segments() -> None:
    # twenty thousand segments of five random values, each against its own sums
    values = np.random.default_rng(5).random((20_000, 5))
    found = running_sum(values.ravel(), np.arange(20_000) * 5).reshape(values.shape)
    np.testing.assert_allclose(found, np.cumsum(values, axis=1), rtol=0, atol=3e-15)


@pytest.mark.parametrize("kind", ["bin", "wgt"])
def test_auc_of_the_reference(reference_folder: Path, kind: str) -> None:
    entries = list(reference_entries(reference_folder, kind, "auc"))
    assert len(entries) >= {"bin": 50, "wgt": 2}[kind]
    for entry, columns in entries:
        value = math.nan if entry["value"] is None else entry["value"]
        np.testing.assert_allclose(auc(tally_of_columns(*columns)), [value], rtol=1e-12, err_msg=entry["id"])


# ---------------------------------------------------------------- intervals of AUC
def few(rows: list[Row]) -> bool:
    """Return whether a class is too small for DeLong's interval."""
    weights = [[weight for _, label, weight in rows if label == one] for one in (0, 1)]
    effective = [sum(some) ** 2 / sum(weight**2 for weight in some) if some else 0.0 for some in weights]
    return min(effective) < 4 or (min(effective) < 10 and min(effective) < 0.05 * sum(effective))


@settings(properties, max_examples=30)
@given(SEGMENTS, st.sampled_from([0.5, 0.95]))
def test_interval_has_delongs_variance(segments: list[list[Row]], level: float) -> None:
    low, high = auc_interval(tallied(*segments), level=level)
    assert ((low <= high) | np.isnan(low)).all()
    for rows, ends in zip(segments, zip(low, high, strict=True), strict=True):
        area, variance = auc_defined(rows), delong_defined(rows)
        if area is None:
            assert np.isnan(ends).all()
        elif variance is not None and variance > 0 and not few(rows):
            half = stats.norm.ppf((1 + level) / 2) * math.sqrt(variance)
            expected = max(float(area) - half, 0.0), min(float(area) + half, 1.0)
            assert ends == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_interval_of_the_reference(reference_folder: Path) -> None:
    entries = list(reference_entries(reference_folder, "bin", "auc_delong"))  # pROC
    assert len(entries) >= 27
    for entry, columns in entries:
        tally = tally_of_columns(*columns)
        low, high = auc_interval(tally, level=0.95)
        found = [low[0], auc(tally)[0], high[0]]
        np.testing.assert_allclose(found, entry["value"], rtol=1e-9, atol=1e-9, err_msg=entry["id"])


def test_counts_as_weights_are_rows_in_intervals() -> None:
    rows = rows_of([0.1, 0.4, 0.4, 0.6, 0.9], [0, 1, 0, 0, 1], [3, 2, 1, 2, 4])
    found = auc_interval(tallied(rows, counts=True), level=0.9)
    np.testing.assert_allclose(found, auc_interval(tallied(twice(rows)), level=0.9), rtol=1e-13)
    # as importance weights they say less
    assert auc_interval(tallied(rows), level=0.9)[0] < found[0]


@pytest.mark.parametrize("positives", [1, 2, 5, 40])
@pytest.mark.parametrize("negatives", [1, 3, 100])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_separated_classes_leave_room(positives: int, negatives: int, level: float) -> None:
    # k of k right, Clopper and Pearson: 1 down to (alpha / 2)^(1 / k)
    k = min(positives, negatives)
    edge = stats.beta.ppf((1 - level) / 2, k, 1)
    score = np.arange(positives + negatives) / 1000
    label = np.arange(positives + negatives) >= negatives
    low, high = auc_interval(tallied(rows_of(score, label), rows_of(score, 1 - label)), level=level)
    np.testing.assert_allclose(low, [edge, 0.0], rtol=1e-12)
    np.testing.assert_allclose(high, [1.0, 1.0 - edge], rtol=1e-12)


def test_separated_classes_of_odd_weights_leave_room() -> None:
    weight = [0.1, 0.7, 0.3, 0.7, 0.1, 0.3]
    low, high = auc_interval(tallied(rows_of(np.arange(6), [0, 0, 0, 1, 1, 1], weight)), level=0.95)
    effective = 1.1**2 / (0.01 + 0.49 + 0.09)
    assert low[0] == pytest.approx(0.025 ** (1 / effective), rel=1e-12)
    assert high[0] == 1.0


def test_tables_whose_width_is_0_as_in_proc() -> None:
    hard = rows_of([0, 0, 1, 1, 1], [0, 0, 1, 1, 1])
    wrong = rows_of([0, 0, 1, 1, 1], [1, 1, 0, 0, 0])
    constant = rows_of([0.3] * 5, [0, 0, 1, 1, 1])
    low, high = auc_interval(tallied(hard, wrong, constant), level=0.95)
    assert (low.tolist(), high.tolist()) == ([1.0, 0.0, 0.5], [1.0, 0.0, 0.5])


def test_one_row_of_a_class_says_little() -> None:
    # one positive above three of four negatives: relative entropy from 3/4 equal to log(2 / .05)
    def beyond(a: float) -> float:
        return 0.75 * math.log(0.75 / a) + 0.25 * math.log(0.25 / (1 - a)) - math.log(40)

    found = auc_interval(tallied(rows_of([1, 2, 3, 3.5, 5], [0, 0, 0, 1, 0])), level=0.95)
    expected = brentq(beyond, 1e-9, 0.75, xtol=1e-15), brentq(beyond, 0.75, 1 - 1e-12, xtol=1e-15)
    np.testing.assert_allclose([each[0] for each in found], expected, rtol=1e-9)


@pytest.mark.parametrize("ones", [(0.5, 0.3, 0.2), (0.02, 0.01, 0.97), (0.9, 0.1, 0.0)])
@pytest.mark.parametrize("zeros", [(0.2, 0.3, 0.5), (0.0, 1.0, 0.0), (0.97, 0.02, 0.01)])
@pytest.mark.parametrize("counts", [(1, 1), (1, 5), (3, 1)])
def test_one_row_of_a_class_is_covered(
    ones: tuple[float, ...], zeros: tuple[float, ...], counts: tuple[int, int]
) -> None:
    # every sample of three scores, with its chance
    true = sum(p * q * (1 if i > j else 0.5 * (i == j)) for i, p in enumerate(ones) for j, q in enumerate(zeros))
    samples, chance = [], []
    for drawn in itertools.product(range(3), repeat=sum(counts)):
        labels = [1] * counts[0] + [0] * counts[1]
        samples.append(rows_of(drawn, labels))
        chance.append(math.prod((ones if y else zeros)[s] for s, y in zip(drawn, labels, strict=True)))
    low, high = auc_interval(tallied(*samples), level=0.95)
    assert math.fsum(chance) == pytest.approx(1.0)
    assert np.array(chance) @ ((low <= true) & (true <= high)) >= 0.95


@pytest.mark.parametrize("true", [0.2, 0.5, 0.9, 0.99])
def test_the_bound_for_separated_classes_holds_where_it_is_tight(true: float) -> None:
    # a positive is above all negatives with chance `true`, else below all: all above has chance true^k
    for k in (1, 2, 5, 20):
        score = np.arange(k + 30) + 0.5
        low, _ = auc_interval(tallied(rows_of(score, score > 30)), level=0.95)
        assert true >= low[0] or true**k <= 0.025 * (1 + 1e-9)


# ---------------------------------------------------------------- cumulative differences
@properties
@given(SEGMENTS)
def test_ecce_by_its_definition(segments: list[list[Row]]) -> None:
    found = ecce(tallied(*segments))
    triples = np.array([ecce_defined(rows) for rows in segments]).T
    np.testing.assert_allclose([found.range, found.largest, found.sigma], triples, rtol=1e-13, atol=1e-16)
    repeated = ecce(tallied(*map(twice, segments)))
    np.testing.assert_allclose([found.range, found.largest], [repeated.range, repeated.largest], rtol=1e-13, atol=1e-16)
    counted = ecce(tallied(*segments, counts=True))
    np.testing.assert_allclose(counted.sigma, repeated.sigma, rtol=1e-13)


def test_ecce_without_surprise_is_0() -> None:
    found = ecce(tallied(rows_of([0, 0, 1], [0, 0, 1])))
    assert [str(float(each[0])) for each in (found.range, found.largest, found.sigma)] == ["0.0"] * 3


def test_ecce_of_the_reference(reference_folder: Path) -> None:
    entries = list(reference_entries(reference_folder, "bin", "ecce_tiegrouped"))
    assert len(entries) >= 25
    for entry, columns in entries:
        found = ecce(tally_of_columns(*columns))
        value = [found.largest, found.range, found.sigma]
        if found.sigma[0] > 0:
            ratios = [found.largest / found.sigma, found.range / found.sigma]
            value += [*ratios, ecce_mad_pvalue(ratios[0]), ecce_range_pvalue(ratios[1])]
        expected = [each for each in entry["value"] if each is not None]
        np.testing.assert_allclose(np.ravel(value), expected, rtol=1e-9, atol=1e-15, err_msg=entry["id"])


def test_weighted_ecce_of_the_reference(reference_folder: Path) -> None:
    entries = list(reference_entries(reference_folder, "wgt", "ecce_tiegrouped"))
    assert len(entries) >= 2
    for entry, columns in entries:
        found = ecce(tally_of_columns(*columns))
        np.testing.assert_allclose([found.range[0], found.sigma[0]], entry["value"][:2], rtol=1e-9, err_msg=entry["id"])


# ---------------------------------------------------------------- their laws
def range_law(x: float) -> float:
    """P(range < x), Feller's series for small x."""
    squares = [((k + 0.5) * math.pi) ** 2 for k in range(200)]
    return math.fsum((8 / x**2 + 2 / u) * math.exp(-2 * u / x**2) for u in squares)


def largest_law(x: float) -> float:
    roots = [(k + 0.5) * math.pi for k in range(200)]
    return math.fsum(2 * (-1) ** k / u * math.exp(-(u**2) / (2 * x**2)) for k, u in enumerate(roots))


@pytest.mark.parametrize(("pvalue", "law"), [(ecce_range_pvalue, range_law), (ecce_mad_pvalue, largest_law)])
def test_pvalues_are_the_laws_of_brownian_motion(pvalue, law) -> None:
    x = np.linspace(0.05, 4.0, 159)
    np.testing.assert_allclose(pvalue(x), [1 - law(each) for each in x], rtol=0, atol=5e-15)
    assert (np.diff(pvalue(np.linspace(0, 40, 4001))) <= 0).all()


def test_pvalues_at_known_points() -> None:
    assert ecce_range_pvalue(np.array([2.49767216]))[0] == pytest.approx(0.05, rel=1e-7)  # mcgrad
    # reflection principle: far out only the first passage counts, 8 Q(x) and 4 Q(x)
    far = np.array([12.0, 20.0, 30.0])
    upper = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in far])
    np.testing.assert_allclose(ecce_range_pvalue(far), 8 * upper, rtol=1e-12)
    np.testing.assert_allclose(ecce_mad_pvalue(far), 4 * upper, rtol=1e-12)
    ends = np.array([0.0, 1e-300, math.inf, math.nan])
    for pvalue in (ecce_range_pvalue, ecce_mad_pvalue):
        np.testing.assert_array_equal(pvalue(ends), [1.0, 1.0, 0.0, math.nan])


# ---------------------------------------------------------------- bins of equal weight
@properties
@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 120))
def test_quantile_bins_are_exact_in_any_unit_of_weights(weights: list[int], count: int) -> None:
    total, before, expected = sum(weights), 0, []
    for weight in weights:
        expected.append(min(count * (2 * before + weight) // (2 * total), count - 1))
        before += weight
    for unit in (1.0, 0.1, 1 / 3, 1e-100, 1e100):
        found = quantile_bins(np.array(weights) * unit, np.array([0]), np.array([count]))
        assert found.tolist() == expected


def test_quantile_bins_of_segments_of_other_scales() -> None:
    weight = np.array([1e100, 2e100, 1.0, 1.0, 1e-100, 3e-100])
    found = quantile_bins(weight, np.array([0, 2, 4]), np.array([4, 4, 4]))
    assert found.tolist() == [0, 2, 1, 3, 0, 2]  # 4 times 1/6, 2/3; 1/4, 3/4; 1/8, 5/8
