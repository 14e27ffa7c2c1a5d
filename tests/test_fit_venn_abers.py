"""Venn-Abers maps: against their definition, one isotonic fit for every score and label that could be added."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from calframe._fitting._fitted import Outcome
from calframe._fitting._venn_abers import VennAbers, evaluate_venn_abers, venn_abers
from calframe._kernels._tally import CHUNK
from calframe._typing import Floats
from tests._exact_fits import Cell, max_min, tally_of
from tests._tallied import Row, reference_entries, rows_of, tallied, twice

SOME = settings(max_examples=80, deadline=None)
SCORES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1), st.integers(1, 40).map(lambda i: i * 1e-17))
COUNTS = st.tuples(st.integers(1, 6), st.integers(0, 6)).map(lambda pair: (float(pair[0]), float(min(pair))))
WEIGHTS = st.tuples(st.floats(1e-3, 1e3), st.sampled_from([0.0, 0.2, 0.5, 1.0])).map(lambda p: (p[0], p[0] * p[1]))


@st.composite
def tables(draw: st.DrawFn, counts: st.SearchStrategy[tuple[float, float]] = COUNTS) -> list[Cell]:
    scores = draw(st.lists(SCORES, min_size=1, max_size=25, unique_by=lambda s: s + 0.0))
    return [(s + 0.0, *draw(counts)) for s in sorted(scores)]


def added(cells: Sequence[Cell], at: float, label: int) -> tuple[list[Cell], int]:
    """Return the cells with one more row, and its place."""
    table = {score: (weight, positive) for score, weight, positive in cells}
    weight, positive = table.get(at, (0.0, 0.0))
    table[at] = (weight + 1, positive + label)
    scores = sorted(table)
    return [(score, *table[score]) for score in scores], scores.index(at)


def by_definition(cells: Sequence[Cell], at: float, label: int) -> float:
    """Return the isotonic fit with one more row, at that row."""
    table, place = added(cells, at, label)
    weight, positive = (np.array([cell[i] for cell in table]) for i in (1, 2))
    return float(isotonic_regression(positive / weight, weights=weight).x[place])


def between(cells: Sequence[Cell]) -> Floats:
    score = np.array([cell[0] for cell in cells])
    return np.unique(np.concatenate([score, score[:-1] + np.diff(score) / 2, [-1.0, 2.0]]))


def read(fit: VennAbers, x: Sequence[float] | Floats, segment: int = 0) -> tuple[Floats, Floats, Floats]:
    return evaluate_venn_abers(fit, np.full(len(x), segment), np.asarray(x, dtype=float))


def check(fit: VennAbers, cells: Sequence[Cell], segment: int = 0, *, atol: float = 1e-12) -> None:
    x = between(cells)
    low, high, merged = read(fit, x, segment)
    np.testing.assert_allclose(low, [by_definition(cells, float(s), 0) for s in x], rtol=0, atol=atol)
    np.testing.assert_allclose(high, [by_definition(cells, float(s), 1) for s in x], rtol=0, atol=atol)
    np.testing.assert_allclose(merged, high / (1 - low + high), rtol=1e-15)
    for values in (low, high, merged):
        assert (np.diff(values) >= 0).all()
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()


# ---------------------------------------------------------------- the definition
@SOME
@given(st.lists(st.one_of(tables(), tables(WEIGHTS)), min_size=1, max_size=4))
def test_each_segment_has_its_definition(segments: list[list[Cell]]) -> None:
    fit = venn_abers(tally_of(*segments))
    for g, cells in enumerate(segments):
        check(fit, cells, g)


@SOME
@given(tables())
def test_values_are_the_closed_form_in_rational_arithmetic(cells: list[Cell]) -> None:
    x = between(cells)
    low, high, _ = read(venn_abers(tally_of(cells)), x)
    for values, label in ((low, 0), (high, 1)):
        exact = [max_min(table)[place] for table, place in (added(cells, float(s), label) for s in x)]
        np.testing.assert_allclose(values, [float(v) for v in exact], rtol=1e-15, atol=0)


@pytest.mark.parametrize("kind", ["calibrated", "noise", "reversed", "alternating", "weights of all sizes"])
def test_longer_tables(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    n = 250
    score, weight = np.sort(rng.random(n)), np.ones(n)
    chance = {"calibrated": score, "noise": np.full(n, 0.3), "reversed": 1 - score}.get(kind, score)
    positive = (rng.random(n) < chance).astype(float)
    if kind == "alternating":  # one block whose mean many cells reach
        positive = (np.arange(n) % 2 == 0).astype(float)
    if kind == "weights of all sizes":
        weight = 10.0 ** rng.uniform(-3, 3, n)
    cells = list(zip(score.tolist(), weight.tolist(), (positive * weight).tolist(), strict=True))
    check(venn_abers(tally_of(cells)), cells)


def test_two_rows_by_hand() -> None:
    # negative at 0.2, positive at 0.6. With (s, 0): 0 up to 0.6, there 1/2, beyond it pooled with the positive: 1/2.
    # With (s, 1): pooled with the negative up to 0.2: 1/2, beyond it 1.
    low, high, merged = read(venn_abers(tally_of([(0.2, 1, 0), (0.6, 1, 1)])), [0.1, 0.2, 0.3, 0.6, 0.7])
    assert low.tolist() == [0, 0, 0, 0.5, 0.5]
    assert high.tolist() == [0.5, 0.5, 1, 1, 1]
    np.testing.assert_allclose(merged, [1 / 3, 1 / 3, 1 / 2, 2 / 3, 2 / 3], rtol=1e-15)


@pytest.mark.parametrize("positive", [0.0, 1.0])
def test_one_class_shows_how_little_is_known(positive: float) -> None:
    # n rows of one class: the row of the other class is pooled with all that stand in its way
    n = 20_000
    fit = venn_abers(tally_of([(i / n, 1.0, positive) for i in range(n)]))
    low, high, _ = read(fit, np.arange(n) / n)
    i = np.arange(1, n + 1)
    np.testing.assert_allclose(low, i / (i + 1) if positive else np.zeros(n), rtol=1e-15)
    np.testing.assert_allclose(high, np.ones(n) if positive else 1 / (n - i + 2), rtol=1e-13)
    assert fit.low.outcome.tolist() == fit.high.outcome.tolist() == [Outcome.ONE_CLASS]


def test_one_score() -> None:
    # 3 of 5 at 0.4: (3 + label) / 6 there; a lone row elsewhere stands alone on its side, or is pooled with all
    low, high, _ = read(venn_abers(tally_of([(0.4, 5, 3)])), [0.3, 0.4, 0.5])
    np.testing.assert_allclose(low, [0, 3 / 6, 3 / 6], rtol=1e-15)
    np.testing.assert_allclose(high, [4 / 6, 4 / 6, 1], rtol=1e-15)


# ---------------------------------------------------------------- segments, weights, trouble
@SOME
@given(st.lists(tables(), min_size=2, max_size=6))
def test_a_segment_is_fitted_as_if_alone(segments: list[list[Cell]]) -> None:
    together = venn_abers(tally_of(*segments))
    for g, cells in enumerate(segments):
        alone = venn_abers(tally_of(cells))
        for one, other in zip(read(together, between(cells), g), read(alone, between(cells)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_segments_of_several_chunks() -> None:
    rng = np.random.default_rng(4)
    n = CHUNK // 2 + 1
    segments = []
    for _ in range(3):
        score = np.sort(rng.random(n))
        segments.append(list(zip(score.tolist(), np.ones(n), (rng.random(n) < score).astype(float), strict=True)))
    together = venn_abers(tally_of(*segments))
    for g, cells in enumerate(segments):
        x = rng.random(1_000)
        np.testing.assert_array_equal(read(together, x, g), read(venn_abers(tally_of(cells)), x))
    some = rng.choice(n, 4, replace=False)
    low, high, _ = read(together, [segments[1][i][0] for i in some], 1)
    for i, of_zero, of_one in zip(some, low, high, strict=True):
        assert of_zero == pytest.approx(by_definition(segments[1], segments[1][i][0], 0), abs=1e-12)
        assert of_one == pytest.approx(by_definition(segments[1], segments[1][i][0], 1), abs=1e-12)


@SOME
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=20))
def test_weight_two_is_the_row_twice(drawn: list[tuple[int, int, int]]) -> None:
    rows: list[Row] = [(s / 20, y, float(w)) for s, y, w in drawn]
    x = np.arange(-1, 42) / 40
    np.testing.assert_array_equal(read(venn_abers(tallied(rows)), x), read(venn_abers(tallied(twice(rows))), x))


@SOME
@given(tables())
def test_labels_and_scores_reversed_give_the_mirror_image(cells: list[Cell]) -> None:
    mirrored = [(-s, w, w - k) for s, w, k in reversed(cells)]
    low, high, merged = read(venn_abers(tally_of(cells)), between(cells))
    found = read(venn_abers(tally_of(mirrored)), -between(cells))
    for one, other in zip(found, (1 - high, 1 - low, 1 - merged), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-12, 1e12, 1e150])
def test_weights_of_any_size_stay_finite(scale: float) -> None:
    rng = np.random.default_rng(6)
    cells = [
        (i / 30, w * scale, w * scale * k) for i, (w, k) in enumerate(zip(rng.random(30), rng.random(30), strict=True))
    ]
    low, high, merged = read(venn_abers(tally_of(cells)), between(cells))
    for values in (low, high, merged):
        assert np.isfinite(values).all()
        assert (np.diff(values) >= 0).all()
    if scale < 1e-6:  # the row outweighs all others
        np.testing.assert_allclose(low, 0, atol=1e-9)
        np.testing.assert_allclose(high, 1, atol=1e-9)
    if scale > 1e6:  # it weighs nothing: the isotonic fit
        fit = [float(v) for v in max_min([(s, float(Fraction(w)), k) for s, w, k in cells])]
        for values in read(venn_abers(tally_of(cells)), [cell[0] for cell in cells]):
            np.testing.assert_allclose(values, fit, rtol=0, atol=1e-9)


def test_rounding_never_makes_values_fall() -> None:
    # one weight and rates that repeat: many pools have the same value, computed from other sums
    rng = np.random.default_rng(0)
    cells = [
        [(i / 50, w, w * k) for i, k in enumerate(rng.choice([0, 0.1, 0.3, 0.5, 1], 50))] for w in [0.1, 0.3] * 1_000
    ]
    fit = venn_abers(tally_of(*cells))
    for knots in (fit.low, fit.high):
        rises = np.diff(knots.y) > 0
        rises[knots.starts[1:] - 1] = True
        assert rises.all()


def test_doubling_all_rows_brings_the_two_closer() -> None:
    cells = [(0.1, 5, 1), (0.3, 4, 1), (0.6, 5, 3), (0.8, 6, 5)]
    twofold = [(s, 2 * w, 2 * k) for s, w, k in cells]
    x = [0.1, 0.3, 0.6, 0.8]
    (low, high, _), (low2, high2, _) = (read(venn_abers(tally_of(each)), x) for each in (cells, twofold))
    assert (high2 - low2 < high - low).all()


def test_a_missing_point_stays_missing() -> None:
    found = read(venn_abers(tally_of([(0.2, 1, 0), (0.6, 1, 1)])), [np.nan, 0.2])
    for values in found:
        np.testing.assert_array_equal(np.isnan(values), [True, False])


# ---------------------------------------------------------------- values of peers
def test_printed_values_of_venn_abers() -> None:
    i = np.arange(240)
    p, u = (37 * i) % 101 / 100, (53 * i + 11) % 97 / 97
    fit = venn_abers(tallied(rows_of(p.tolist(), (u < 0.9 * p**1.4 + 0.05).astype(int).tolist())))
    low, high, merged = read(fit, [0.0, 0.105, 0.5, 0.87, 1.0])
    printed = [0.01449275, 0.02380952, 0.42253521, 0.77551020, 0.94736842]
    np.testing.assert_allclose(merged, printed, rtol=0, atol=6e-9)
    assert (low[2], high[2]) == pytest.approx((0.41428571, 0.42857143), abs=6e-9)


def test_reference_values(reference_folder: Path) -> None:
    checked = 0
    for entry, (score, label, _) in reference_entries(reference_folder, "cal", "venn_abers"):
        fitted = slice(None) if "each row twice" in entry["table"] else slice(None, None, 2)
        fit = venn_abers(tallied(rows_of(score[fitted].tolist(), label[fitted].astype(int).tolist())))
        for name, values in zip(("p0", "p1", "grid"), read(fit, entry["args"]["grid"]), strict=True):
            np.testing.assert_allclose(values, entry["value"][name], rtol=0, atol=1e-12, err_msg=entry["id"])
        checked += 1
    assert checked >= 15
