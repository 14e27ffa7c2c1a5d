"""Risk and coverage: every order of ties, exact arithmetic, and reference values."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from calframe._kernels._selective import _harmonic, aurc, confidence_tally, excess_aurc
from calframe._kernels._tally import Tally
from tests._tallied import Row, reference_entries, rows_of, tallied, tally_of_columns, twice

SCORES = [0.0, 1e-17, 0.1, 0.3, 0.4, 0.5, 0.5 - 2**-54, 0.6, 0.7, 0.9, 1.0]
ROW = st.tuples(st.sampled_from(SCORES), st.integers(0, 1), st.sampled_from([1.0, 2.0, 5.0]))
ROWS = st.lists(ROW, min_size=1, max_size=14)
SEGMENTS = st.lists(ROWS, min_size=1, max_size=4)
properties = settings(max_examples=60, derandomize=True, deadline=None)


def confident(rows: Sequence[Row]) -> list[Row]:
    """Rows of scores as rows of confidences, with 1 for a right prediction."""
    return [(max(s, 1 - s), int((s >= 0.5) == bool(y)), w) for s, y, w in rows]


def risk_area(order: Sequence[Row]) -> Fraction:
    """Mean over k of the risk among the first k rows."""
    wrong = list(itertools.accumulate(1 - right for _, right, _ in order))
    return sum(Fraction(errors, k) for k, errors in enumerate(wrong, 1)) / len(order)


def expected_area(rows: Sequence[Row]) -> Fraction:
    """The same for confidences in any order, each row as often as its weight says, expected over ties."""
    table = twice(rows)
    before, errors, area = 0, Fraction(0), Fraction(0)
    for level in sorted({c for c, _, _ in table}, reverse=True):
        here = [right for c, right, _ in table if c == level]
        share = 1 - Fraction(sum(here), len(here))
        area += sum((errors + j * share) / (before + j) for j in range(1, len(here) + 1))
        before, errors = before + len(here), errors + len(here) * share
    return area / len(table)


def all_orders(rows: Sequence[Row]) -> Fraction:
    """The mean over every order of the rows whose confidences do not rise."""
    valid = [
        risk_area(order)
        for order in itertools.permutations(rows)
        if all(first[0] >= second[0] for first, second in itertools.pairwise(order))
    ]
    return sum(valid) / len(valid)


# ---------------------------------------------------------------- confidences
@properties
@given(SEGMENTS)
def test_confidences_are_counted_as_the_rows_give_them(segments: list[list[Row]]) -> None:
    found = confidence_tally(tallied(*segments))
    expected = tallied(*map(confident, segments))
    for name in ("starts", "score", "rows", "weight", "positive", "squared", "squared_positive"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_confidences_of_very_many_segments() -> None:
    # more than a 16-bit number can tell apart
    n = 70_000
    tally = Tally.of_counts(np.arange(n) * 2, np.tile([0.2, 0.7], n), np.ones(2 * n), np.tile([0.0, 0.0], n))
    found = confidence_tally(tally)
    assert found.starts.tolist() == tally.starts.tolist()
    np.testing.assert_array_equal(found.score.reshape(n, 2), [[0.7, 0.8]] * n)
    np.testing.assert_array_equal(found.positive.reshape(n, 2), [[0, 1]] * n)


# ---------------------------------------------------------------- the area
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.5, 0.8, 1.0]), st.integers(0, 1), st.just(1.0)), min_size=1, max_size=6))
def test_area_is_the_mean_over_all_orders_of_ties(rows: list[Row]) -> None:
    assert aurc(tallied(rows))[0] == pytest.approx(float(all_orders(rows)), rel=1e-13, abs=1e-16)
    perfect = sorted(rows, key=lambda row: -row[1])
    excess = all_orders(rows) - risk_area(perfect)
    assert excess_aurc(tallied(rows))[0] == pytest.approx(float(excess), rel=1e-12, abs=1e-15)


@properties
@given(SEGMENTS)
def test_area_of_weighted_rows_is_that_of_repeated_rows(segments: list[list[Row]]) -> None:
    tables = [confident(rows) for rows in segments]
    expected = [float(expected_area(rows)) for rows in tables]
    tally = tallied(*tables)
    np.testing.assert_allclose(aurc(tally), expected, rtol=1e-13, atol=1e-16)
    least = [float(risk_area(sorted(twice(rows), key=lambda row: -row[1]))) for rows in tables]
    np.testing.assert_allclose(excess_aurc(tally), np.subtract(expected, least), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(aurc(tally), [aurc(tallied(rows))[0] for rows in tables])
    np.testing.assert_allclose(aurc(tallied(*map(twice, tables))), expected, rtol=1e-13, atol=1e-16)


def test_area_of_a_large_table_is_exact() -> None:
    rng = np.random.default_rng(4)
    n = 3000
    score = rng.random(n).round(2)
    right = (rng.random(n) < 0.5 + score / 2).astype(int)
    rows = rows_of(score, right)
    assert aurc(tallied(rows))[0] == pytest.approx(float(expected_area(rows)), rel=1e-14)


def test_area_of_many_distinct_confidences() -> None:
    # a million rows in turn right and wrong from the top: risks are (k // 2) / k, summed without rounding
    n = 1_000_000
    tally = Tally.of_counts(np.array([0]), np.arange(n) / n, np.ones(n), np.tile([0.0, 1.0], n // 2))
    expected = math.fsum((k // 2) / k for k in range(1, n + 1)) / n
    assert aurc(tally)[0] == pytest.approx(expected, rel=1e-13)
    least = math.fsum((k - n // 2) / k for k in range(n // 2 + 1, n + 1)) / n
    assert excess_aurc(tally)[0] == pytest.approx(expected - least, rel=1e-13)


def test_fractions_of_rows_are_the_digamma_form() -> None:
    # by scipy's digamma: two cells, confidence 0.9 with weight 1.5 (0.3 wrong), 0.6 with 2.25 (all wrong)
    tally = tallied([(0.9, 1, 1.2), (0.9, 0, 0.3), (0.6, 0, 2.25)])
    below = 2.25 + (0.3 - 1.5) * (special.digamma(4.75) - special.digamma(2.5))
    assert aurc(tally)[0] == pytest.approx((0.3 + below) / 3.75, rel=1e-13)
    least = 2.55 - 1.2 * (special.digamma(4.75) - special.digamma(2.2))
    assert excess_aurc(tally)[0] == pytest.approx((0.3 + below - least) / 3.75, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_a_segment_of_another_scale_leaves_no_rounding(scale: float) -> None:
    rows = confident(rows_of([0.1, 0.2, 0.6, 0.6, 0.9, 0.95], [1, 0, 1, 0, 0, 1]))
    heavy = [(c, right, w * scale) for c, right, w in rows]
    found = aurc(tallied(heavy, rows))
    assert found[1] == pytest.approx(aurc(tallied(rows))[0], rel=1e-13)
    assert 0 < found[0] < 1


@pytest.mark.parametrize(("right", "area"), [([1, 1, 1], 0.0), ([0, 0, 0], 1.0), ([1], 0.0), ([0], 1.0)])
def test_all_right_or_all_wrong(right: list[int], area: float) -> None:
    tally = tallied(rows_of(np.linspace(0.5, 1, len(right)), right))
    assert (aurc(tally)[0], excess_aurc(tally)[0]) == (pytest.approx(area, abs=1e-15), pytest.approx(0.0, abs=1e-15))


def test_perfect_ranking_has_no_excess() -> None:
    tally = tallied(rows_of(np.linspace(0.5, 1, 50), np.arange(50) >= 20))
    assert excess_aurc(tally)[0] == pytest.approx(0.0, abs=1e-15)


# ---------------------------------------------------------------- sums of reciprocals
@pytest.mark.parametrize("before", [0, 1, 14, 15, 16, 17, 1000, 10**7, 10**12])
@pytest.mark.parametrize("count", [1, 2, 17, 1000])
def test_sums_of_reciprocals_keep_their_digits(before: int, count: int) -> None:
    exact = math.fsum(float(Fraction(1, before + j)) for j in range(1, count + 1))
    found = _harmonic(np.array([float(before)]), np.array([float(count)]))
    np.testing.assert_allclose(found, [exact], rtol=2e-15)


@properties
@given(st.floats(0, 1e9), st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_sums_of_reciprocals_add_up(before: float, first: float, second: float) -> None:
    whole = _harmonic(np.array([before]), np.array([first + second]))
    split = _harmonic(np.array([before]), np.array([first])) + _harmonic(np.array([before + first]), np.array([second]))
    np.testing.assert_allclose(split, whole, rtol=1e-11)
    one = _harmonic(np.array([before]), np.array([first + 1.0])) - _harmonic(np.array([before]), np.array([first]))
    np.testing.assert_allclose(one, 1 / (before + first + 1), rtol=1e-7, atol=1e-13)


# ---------------------------------------------------------------- reference values
def test_area_of_the_reference(reference_folder: Path) -> None:
    entries = list(reference_entries(reference_folder, "bin", "aurc"))  # exact arithmetic, over all orders of ties
    assert len(entries) >= 25
    for entry, columns in entries:
        found = aurc(confidence_tally(tally_of_columns(*columns)))
        assert found[0] == pytest.approx(entry["value"][1], rel=1e-12, abs=1e-12), entry["id"]


@pytest.mark.parametrize(("table", "prefix"), [("probably_species", "p_"), ("wine", "rf_"), ("cifar10_vgg16", "p_")])
def test_area_of_several_classes(reference_folder: Path, table: str, prefix: str) -> None:
    lines = (reference_folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    entry = next(json.loads(line) for line in lines if f'"multi|{table}:{prefix}*|aurc|definition"' in line)
    frame = pd.read_parquet(reference_folder / "data" / f"{table}.parquet")
    columns = [name for name in frame if name.startswith(prefix)]
    scores = frame[columns].to_numpy()
    predicted = np.array([name.removeprefix(prefix) for name in columns])[scores.argmax(axis=1)]
    right = (predicted == frame["y"].astype(str)).to_numpy(dtype=np.float64)
    found = aurc(tally_of_columns(scores.max(axis=1), right, np.ones(len(frame))))
    assert found[0] == pytest.approx(entry["value"][1], rel=1e-12)
