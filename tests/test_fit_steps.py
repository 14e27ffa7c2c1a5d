"""Isotonic maps, histograms, and how curves are read: against exact fits, scikit-learn, R's definition and hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from calframe._binning import BinChoice
from calframe._fitting._fitted import Knots, Outcome
from calframe._fitting._steps import Interpolation, count_below, evaluate, histogram, isotonic, quantile_histogram
from calframe._kernels._tally import Tally
from calframe._typing import Closed, Floats
from tests._exact_fits import Cell, max_min, pooled, tally_of
from tests._tallied import reference_entries, rows_of, tallied, twice

FEW = settings(max_examples=60, deadline=None)
SCORES = st.one_of(
    st.sampled_from([0.0, 5e-324, 1e-323, 0.25, 0.5, 1.0]),
    st.floats(0, 1),
    st.integers(1, 40).map(lambda i: i * 1e-17),
)
COUNTS = st.tuples(st.integers(1, 6), st.integers(0, 6)).map(lambda pair: (float(pair[0]), float(min(pair))))
FORMS: tuple[Interpolation, ...] = ("linear", "step")
FITS: dict[str, Callable[[Tally], Knots]] = {
    "linear": isotonic,
    "step": lambda tally: isotonic(tally, interpolation="step"),
    "centred": lambda tally: isotonic(tally, centred=True),
    "uniform": lambda tally: histogram(tally, edges=np.arange(16) / 15),
    "quantile": lambda tally: quantile_histogram(tally, count=4),
}


@st.composite
def tables(draw: st.DrawFn, least: int = 1) -> list[Cell]:
    scores = draw(st.lists(SCORES, min_size=least, max_size=14, unique_by=lambda s: s + 0.0))
    return [(s + 0.0, *draw(COUNTS)) for s in sorted(scores)]


def read(knots: Knots, x: Sequence[float] | Floats, segment: int = 0, **options: Any) -> Floats:
    return evaluate(knots, np.full(len(x), segment), np.asarray(x, dtype=float), **options)


def between(cells: Sequence[Cell]) -> Floats:
    """Scores, points between them and points beyond them."""
    score = np.array([cell[0] for cell in cells])
    return np.unique(np.concatenate([score, score[:-1] + np.diff(score) / 2, [-1.0, 2.0], np.nextafter(score, 2)]))


# ---------------------------------------------------------------- isotonic, strict
@FEW
@given(tables())
def test_both_forms_have_the_exact_fit_at_every_score(cells: list[Cell]) -> None:
    tally, expected = tally_of(cells), [float(v) for v in max_min(cells)]
    score = [cell[0] for cell in cells]
    for interpolation in FORMS:
        found = read(isotonic(tally, interpolation=interpolation), score, interpolation=interpolation)
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@FEW
@given(tables())
def test_knots_are_the_ends_of_blocks(cells: list[Cell]) -> None:
    exact = pooled(cells)
    ends = [(cells[i][0], k / w) for first, last, w, k in exact for i in sorted({first, last})]
    linear, step = (FITS[name](tally_of(cells)) for name in FORMS)
    assert linear.x.tolist() == [x for x, _ in ends]
    np.testing.assert_allclose(linear.y, [float(y) for _, y in ends], rtol=1e-15)
    assert step.x.tolist() == [cells[first][0] for first, *_ in exact]


@FEW
@given(tables())
def test_maps_rise_and_stay_within_the_rates(cells: list[Cell]) -> None:
    tally, x = tally_of(cells), between(cells)
    for name, interpolation in zip(("linear", "step", "centred"), (*FORMS, FORMS[0]), strict=True):
        fit = FITS[name](tally)
        value = read(fit, x, interpolation=interpolation)
        assert (np.diff(value) >= 0).all()
        assert (value[0], value[-1]) == (fit.y[0], fit.y[-1])
        np.testing.assert_array_equal(read(fit, fit.x, interpolation=interpolation), fit.y)


def test_a_step_holds_from_the_first_score_of_its_block_on() -> None:
    # rates 0 | 1, 1/2 pooled to 2/3: the step is at 0.4, not at 0.2 or between
    fit = isotonic(tally_of([(0.2, 2, 0), (0.4, 1, 1), (0.6, 2, 1)]), interpolation="step")
    found = read(fit, [0.1, 0.2, np.nextafter(0.4, 0), 0.4, 0.9], interpolation="step")
    assert found.tolist() == pytest.approx([0, 0, 0, 2 / 3, 2 / 3], abs=1e-15)


@pytest.mark.parametrize("n", [1, 7, 300])
def test_scikit_learn_draws_the_same_line(n: int) -> None:
    rng = np.random.default_rng(n)
    score = rng.integers(0, 2 * n, n) / (2 * n)
    label, weight = (rng.random(n) < score).astype(int), rng.integers(1, 4, n).astype(float)
    fit = isotonic(tallied(rows_of(score.tolist(), label.tolist(), weight.tolist())))
    peer = IsotonicRegression(out_of_bounds="clip").fit(score, label, sample_weight=weight)
    grid = np.linspace(-0.1, 1.1, 500)
    np.testing.assert_allclose(read(fit, grid), peer.predict(grid), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(fit.x, peer.X_thresholds_)


@pytest.mark.parametrize("centred", [False, True])
def test_rates_are_clipped_on_request(*, centred: bool) -> None:
    fit = isotonic(tally_of([(0.2, 5, 0), (0.4, 4, 1), (0.6, 2, 2)]), epsilon=0.01, centred=centred)
    assert read(fit, [0.0, 0.4, 1.0]).tolist() == [0.01, 0.25, 0.99]


@FEW
@given(tables())
def test_refitting_its_own_values_changes_nothing(cells: list[Cell]) -> None:
    # rates replaced by the fit: calibrated data
    fitted = [float(v) for v in max_min(cells)]
    again = isotonic(tally_of([(s, w, min(w * v, w)) for (s, w, _), v in zip(cells, fitted, strict=True)]))
    np.testing.assert_allclose(read(again, [s for s, _, _ in cells]), fitted, rtol=0, atol=1e-15)


# ---------------------------------------------------------------- isotonic, centred
def centred_by_definition(cells: Sequence[Cell]) -> list[tuple[Fraction, Fraction]]:
    """Pool neighbours that do not rise, score and rate alike; equal rates of 0 or of 1 may stand. R: cir::cirPAVA."""
    x, w, y = ([Fraction(v) for v in column] for column in zip(*((s, w, k) for s, w, k in cells), strict=True))
    y = [k / weight for k, weight in zip(y, w, strict=True)]
    while True:
        falls = [i for i in range(len(y) - 1) if y[i + 1] < y[i] or (y[i + 1] == y[i] and y[i] not in (0, 1))]
        if not falls:
            return list(zip(x, y, strict=True))
        i = falls[0]
        whole = w[i] + w[i + 1]
        for values in (x, y):
            values[i : i + 2] = [(values[i] * w[i] + values[i + 1] * w[i + 1]) / whole]
        w[i : i + 2] = [whole]


def line_by_definition(points: Sequence[tuple[Fraction, Fraction]], at: float) -> float:
    x = Fraction(at)
    if x <= points[0][0]:
        return float(points[0][1])
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            return float(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
    return float(points[-1][1])


@FEW
@given(st.lists(st.tuples(st.integers(0, 40), COUNTS), min_size=1, max_size=12, unique_by=lambda c: c[0]))
def test_centred_is_its_definition(drawn: list[tuple[int, tuple[float, float]]]) -> None:
    cells = [(s / 64, *counts) for s, counts in sorted(drawn)]
    points, fit = centred_by_definition(cells), isotonic(tally_of(cells), centred=True)
    grid = np.linspace(-0.05, 0.7, 61)
    np.testing.assert_allclose(read(fit, grid), [line_by_definition(points, x) for x in grid], rtol=0, atol=1e-13)


def test_centred_on_the_example_of_its_authors() -> None:
    # R: cir, cirExamples.r: rates 1/7, 1/8, 1/2, 1/4, 4/17 at doses 1 to 5. By hand: 1/7 and 1/8 pool to 4/31 at
    # (7 + 48) / 31, the others to 17/49 at (60 + 48 + 85) / 49
    cells = list(zip([1.0, 2, 3, 4, 5], [7.0, 24, 20, 12, 17], [1.0, 3, 10, 3, 4], strict=True))
    fit = isotonic(tally_of(cells), centred=True)
    np.testing.assert_allclose(fit.x, [55 / 31, 193 / 49], rtol=1e-15)
    np.testing.assert_allclose(fit.y, [4 / 31, 17 / 49], rtol=1e-15)


def test_centred_keeps_both_ends_of_certain_blocks_and_one_point_of_others() -> None:
    cells = [(0.1, 2, 0), (0.2, 3, 0), (0.4, 1, 1), (0.5, 3, 1), (0.8, 1, 1), (0.9, 4, 4)]
    fit = isotonic(tally_of(cells), centred=True)
    np.testing.assert_allclose(fit.x, [0.1, 0.2, (0.4 + 1.5) / 4, 0.8, 0.9], rtol=1e-15)
    assert fit.y.tolist() == [0, 0, 0.5, 1, 1]


# ---------------------------------------------------------------- segments, weights, trouble
@FEW
@given(st.lists(tables(), min_size=1, max_size=6))
def test_a_segment_is_fitted_as_if_alone(segments: list[list[Cell]]) -> None:
    tally = tally_of(*segments)
    for name, fit in FITS.items():
        together = fit(tally)
        for g, cells in enumerate(segments):
            alone = fit(tally_of(cells))
            np.testing.assert_array_equal(read(together, between(cells), g), read(alone, between(cells)), err_msg=name)
            assert together.outcome[g] == alone.outcome[0]


def test_segments_of_several_chunks() -> None:
    rng = np.random.default_rng(8)
    score, label = np.sort(rng.random((3, 60_000))), rng.integers(0, 2, (3, 60_000)).astype(float)
    segments = [list(zip(s.tolist(), np.ones(60_000), y, strict=True)) for s, y in zip(score, label, strict=True)]
    together = isotonic(tally_of(*segments))
    for g, cells in enumerate(segments):
        alone = isotonic(tally_of(cells))
        np.testing.assert_array_equal(read(together, score[g], g), read(alone, score[g]))


@FEW
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=20))
def test_weight_two_is_the_row_twice(drawn: list[tuple[int, int, int]]) -> None:
    rows = [(s / 20, y, float(w)) for s, y, w in drawn]
    one, other = tallied(rows), tallied(twice(rows))
    smoothed = quantile_histogram(one, count=3, smoothing=1.0), quantile_histogram(other, count=3, smoothing=1.0)
    for mine, theirs in (*((fit(one), fit(other)) for fit in FITS.values()), smoothed):
        np.testing.assert_array_equal(mine.x, theirs.x)
        np.testing.assert_array_equal(mine.y, theirs.y)


@pytest.mark.parametrize("scale", [2.0**-900, 1 / 3, 1e100])
def test_without_smoothing_the_scale_of_weights_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(5)
    cells = [(s, w, w * k) for s, w, k in zip(np.sort(rng.random(50)), rng.random(50), rng.random(50), strict=True)]
    scaled = [(s, w * scale, k * scale) for s, w, k in cells]
    for fit in FITS.values():
        np.testing.assert_allclose(fit(tally_of(scaled)).x, fit(tally_of(cells)).x, rtol=1e-13)
        np.testing.assert_allclose(fit(tally_of(scaled)).y, fit(tally_of(cells)).y, rtol=1e-13)


def test_maps_exist_whatever_the_classes_and_scores_are() -> None:
    segments = [[(0.3, 2, 1)], [(0.1, 1, 0), (0.7, 2, 0)], [(0.1, 1, 0), (0.7, 1, 1)], [(0.1, 2, 1), (0.7, 3, 2)]]
    fit = isotonic(tally_of(*segments))
    assert fit.outcome.tolist() == [Outcome.ONE_SCORE, Outcome.ONE_CLASS, Outcome.SEPARABLE, Outcome.FINE]
    found = evaluate(fit, np.array([0, 1, 2, 2]), np.array([0.9, 0.5, 0.1, 0.7]))
    assert found.tolist() == [0.5, 0.0, 0.0, 1.0]


def test_scores_without_weight_at_the_ends() -> None:
    # only the rows at 0.1 and 0.4 have weight
    fit = isotonic(tallied(rows_of([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], [1, 0, 0, 1])))
    assert read(fit, [0.1, 0.4]).tolist() == [0.0, 1.0]
    assert (np.diff(read(fit, np.linspace(0, 1, 101))) >= 0).all()


def test_scores_beyond_those_of_the_fit_keep_its_ends() -> None:
    fit = isotonic(tallied(rows_of([0.2, 0.4, 0.6], [0, 1, 1])))
    assert read(fit, [0.2, 0.4, 0.6, 0.05, 0.99]).tolist() == [0, 1, 1, 0, 1]


def test_a_surprise_costs_what_epsilon_says() -> None:
    tally = tallied(rows_of([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1]))
    assert read(isotonic(tally), [0.2]) == 0.0
    assert -np.log(read(isotonic(tally, epsilon=1e-6), [0.2])) == pytest.approx(13.815510558, abs=1e-9)  # -ln 1e-6


# ---------------------------------------------------------------- reading curves
def curve(x: Sequence[float], y: Sequence[float]) -> Knots:
    return Knots(starts=np.array([0]), x=np.array(x), y=np.array(y), outcome=np.array([0]))


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-17, 1.0, 1e307])
def test_lines_over_gaps_of_any_width(unit: float) -> None:
    # a slope 1 / 5e-324 would be infinite, a gap of 1.6e308 less 0 too wide to square
    knots = curve([-8 * unit, 0.0, 8 * unit], [0.0, 0.5, 1.0])
    steps: Floats = np.arange(-8.0, 9.0)
    np.testing.assert_allclose(read(knots, steps * unit), (steps + 8) / 16, rtol=0, atol=1e-15)
    assert read(knots, [-np.inf, np.inf]).tolist() == [0.0, 1.0]


def test_infinite_knots_and_points() -> None:
    # halfway between the infinities is every finite point; beside one knot that is finite its value is
    assert read(curve([-np.inf, np.inf], [0.0, 1.0]), [-np.inf, 3.0, np.inf]).tolist() == [0.0, 0.5, 1.0]
    assert read(curve([-np.inf, 1.0], [0.0, 1.0]), [-np.inf, 0.0, 1.0]).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["linear", "step", "centred", "quantile"])
def test_infinite_logits(name: str) -> None:
    tally = tally_of([(-np.inf, 4, 1), (0.0, 4, 2), (np.inf, 4, 3)])
    found = read(FITS[name](tally), [-np.inf, 0.0, np.inf], interpolation="step" if name == "step" else "linear")
    assert found.tolist() == [0.25, 0.5, 0.75]


def test_a_missing_point_stays_missing() -> None:
    for interpolation in FORMS:
        found = read(curve([0.0, 1.0], [0.25, 0.75]), [0.0, np.nan], interpolation=interpolation)
        np.testing.assert_array_equal(found, [0.25, np.nan])


def test_a_knot_that_stands_twice_is_read_on_either_side() -> None:
    knots = curve([0.0, 0.5, 0.5, 1.0], [0.1, 0.3, 0.2, 0.9])
    assert read(knots, [0.0, 0.5, 1.0]).tolist() == [0.1, 0.2, 0.9]
    assert read(knots, [0.0, 0.5, 1.0], closed="right").tolist() == [0.1, 0.3, 0.9]
    np.testing.assert_allclose(read(knots, [0.25, 0.75]), [0.2, 0.55], rtol=1e-15)


def test_many_curves_are_read_at_once_as_numpy_reads_each() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 70, 300)
    starts = np.cumsum(sizes) - sizes
    x = np.concatenate([np.sort(rng.random(n)) for n in sizes])
    knots = Knots(starts=starts, x=x, y=rng.random(len(x)), outcome=np.zeros(300, dtype=np.int64))
    segment, at = rng.integers(0, 300, 150_000), rng.random(150_000) * 1.2 - 0.1
    found = evaluate(knots, segment, at)
    for g in range(300):
        mine, own = segment == g, slice(starts[g], starts[g] + sizes[g])
        np.testing.assert_allclose(found[mine], np.interp(at[mine], x[own], knots.y[own]), rtol=0, atol=1e-12)


@FEW
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=20).map(sorted), min_size=1, max_size=5))
def test_counts_below_are_those_of_searchsorted(lists: list[list[int]]) -> None:
    sizes = np.array([len(each) for each in lists])
    first, values = np.cumsum(sizes) - sizes, np.concatenate([np.array(each, dtype=float) for each in lists])
    for query in range(-1, 11):
        at = np.full(len(lists), float(query))
        found = [count_below(values, first, sizes, at, equal=equal).tolist() for equal in (True, False)]
        assert found[0] == [int(np.searchsorted(each, query, side="right")) for each in lists]
        assert found[1] == [int(np.searchsorted(each, query, side="left")) for each in lists]


# ---------------------------------------------------------------- histograms
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("bins", [1, 10, 15, (0.0, 0.2, 0.25, 0.7, 1.0)])
def test_each_score_has_the_mean_label_of_its_bin(bins: Any, closed: Closed) -> None:
    chosen = BinChoice.from_arguments(bins, strategy="uniform", closed=closed).fixed
    assert chosen is not None
    rng, edges = np.random.default_rng(2), np.array(chosen.edges)  # scores on edges and beside them, too
    near = np.concatenate(
        [edges, np.nextafter(edges, 2)[:-1], np.nextafter(edges, -1)[1:], rng.integers(0, 101, 200) / 100]
    )
    score = np.concatenate([near, near])
    label = (rng.random(len(score)) < score).astype(int)
    where = chosen.find(score, narrow=False)
    rate = np.array([label[where == b].mean() if (where == b).any() else np.nan for b in range(chosen.count)])
    fit = histogram(tallied(rows_of(score.tolist(), label.tolist())), edges=edges, closed=closed)
    np.testing.assert_allclose(read(fit, score, closed=closed), rate[where], rtol=1e-15)


def test_smoothing_adds_rows_of_either_class() -> None:
    # 1 of 4 in the lower bin: (1 + s) / (4 + 2 s); 1 of 1 in the upper
    tally = tally_of([(0.1, 3, 1), (0.2, 1, 0), (0.9, 1, 1)])
    for smoothing, expected in ((0.0, (1 / 4, 1.0)), (1.0, (2 / 6, 2 / 3)), (0.5, (1.5 / 5, 1.5 / 2))):
        for fit in (
            histogram(tally, edges=np.array([0.0, 0.5, 1.0]), smoothing=smoothing),
            quantile_histogram(tally_of([(0.15, 4, 1), (0.9, 1, 1)]), count=2, smoothing=smoothing),
        ):
            np.testing.assert_allclose(read(fit, [0.0, 1.0]), expected, rtol=1e-15)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_an_empty_bin_keeps_the_score(closed: Closed, smoothing: float) -> None:
    fit = histogram(tally_of([(0.5, 4, 1)]), edges=np.array([0.0, 0.25, 0.75, 1.0]), closed=closed, smoothing=smoothing)
    x = np.array([0.0, 0.1, 0.2, 0.8, 0.93, 1.0])
    np.testing.assert_allclose(read(fit, x, closed=closed), x, rtol=1e-15)
    on_edges = read(fit, [0.25, 0.75], closed=closed)
    middle = (1 + smoothing) / (4 + 2 * smoothing)
    assert on_edges.tolist() == ([middle, 0.75] if closed == "left" else [0.25, middle])


def test_rows_split_by_bins_of_equal_weight() -> None:
    # twelve rows in three bins of four: rates 0, 1/2, 1; borders midway
    score, label = np.arange(12) / 12, [0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1]
    fit = quantile_histogram(tallied(rows_of(score.tolist(), label)), count=3)
    assert read(fit, score).tolist() == [0.0] * 4 + [0.5] * 4 + [1.0] * 4
    assert read(fit, [-1.0, 3.4 / 12, 3.6 / 12, 7.6 / 12, 2.0]).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]


def test_equal_scores_stay_in_one_bin() -> None:
    # four of six rows at 0.5, two of them positive
    tied = tallied(rows_of([0.1, 0.5, 0.5, 0.5, 0.5, 0.9], [0, 1, 0, 0, 1, 1]))
    assert read(quantile_histogram(tied, count=3), [0.1, 0.5, 0.9]).tolist() == [0.0, 0.5, 1.0]
    constant = quantile_histogram(tallied(rows_of([0.4] * 10, [1] * 3 + [0] * 7), rows_of([0.6], [1])), count=5)
    assert read(constant, [0.0, 0.4, 1.0]).tolist() == [0.3, 0.3, 0.3]
    assert read(constant, [0.0, 0.6, 1.0], segment=1).tolist() == [1.0, 1.0, 1.0]
    zeros = tallied(rows_of([0.0] * 6 + [0.1, 0.3, 0.6, 0.9], [0, 0, 0, 0, 0, 1, 0, 1, 1, 1]))
    assert read(quantile_histogram(zeros, count=5), [0.0])[0] == pytest.approx(1 / 6, abs=1e-15)


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("start", [0.0, 0.1, 1e-17])
def test_a_border_between_neighbouring_floats_parts_them(start: float, closed: Closed) -> None:
    score = [start]
    for _ in range(5):
        score.append(float(np.nextafter(score[-1], 1)))
    fit = quantile_histogram(tally_of([(s, 1.0, float(i % 2)) for i, s in enumerate(score)]), count=6, closed=closed)
    assert read(fit, score, closed=closed).tolist() == [0, 1, 0, 1, 0, 1]


def test_the_number_of_bins_can_follow_the_rows() -> None:
    # the cube root of 27 is 3, of 8 is 2
    segments = [[(i / n, 1.0, float(2 * i >= n)) for i in range(n)] for n in (27, 8)]
    fit = quantile_histogram(tally_of(*segments), count=None)
    assert np.diff([*fit.starts, len(fit.x)]).tolist() == [6, 4]


# ---------------------------------------------------------------- values of peers
def test_reference_values(reference_folder: Path) -> None:
    checked = 0
    for metric in ("isotonic", "mcgrad_IsotonicRegression"):
        for entry, (score, label, _) in reference_entries(reference_folder, "cal", metric):
            fitted = slice(None) if "each row twice" in entry["table"] else slice(None, None, 2)
            fit = isotonic(tallied(rows_of(score[fitted].tolist(), label[fitted].astype(int).tolist())))
            found = read(fit, entry["args"]["grid"])
            np.testing.assert_allclose(found, entry["value"]["grid"], rtol=0, atol=1e-12, err_msg=entry["id"])
            if (first := entry["value"].get("fit_first20")) is not None:
                np.testing.assert_allclose(read(fit, score[fitted][:20]), first, rtol=0, atol=1e-12)
            checked += 1
    assert checked >= 30
