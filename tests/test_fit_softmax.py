"""Temperature, vector and matrix scaling of probability vectors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import sklearn.calibration
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from calframe._fitting._fitted import Outcome
from calframe._fitting._log_scores import apply_softmax, apply_temperature, log_scores, smooth_shares
from calframe._fitting._multinomial import normal_form
from calframe._fitting._softmax import (
    RIDGE,
    SoftmaxMaps,
    TooFewRowsError,
    matrix,
    n_parameters,
    scarce,
    temperature,
    vector,
)
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats
from tests._regressions import glm
from tests._softmax_maps import alone, calibrated, least, losses, shuffled, simulated, steepness, twice
from tests._vector_rows import Row, drawn_rows, vectors_of, vectors_of_rows

Fit = Callable[..., SoftmaxMaps]
FITS = [vector, matrix]


def cooled(vectors: Vectors, t: float, *, smooth: float = 0.0) -> float:
    return losses(vectors, np.eye(vectors.classes) / t, np.zeros(vectors.classes), smooth=smooth)


def mean_loss(vectors: Vectors, fit: SoftmaxMaps, *, smooth: float = 0.0) -> float:
    return losses(vectors, fit.slopes[0], fit.intercepts[0], smooth=smooth)


def same_maps(found: SoftmaxMaps, expected: SoftmaxMaps, *, atol: float = 1e-9) -> None:
    assert found.outcome.tolist() == expected.outcome.tolist()
    np.testing.assert_allclose(found.slopes, expected.slopes, rtol=0, atol=atol)
    np.testing.assert_allclose(found.intercepts, expected.intercepts, rtol=0, atol=atol)


# ------------------------------------------------------------------ temperature
def test_closed_forms() -> None:
    # half of the rows at (.8, .1, .1) are of the first class: (1/8)^(1/T) = 1/2
    three = vectors_of([[0.8, 0.1, 0.1]] * 4, [0, 0, 1, 2])
    assert temperature(three).values[0, 0] == pytest.approx(3.0, rel=1e-14)
    np.testing.assert_allclose(apply_temperature(three.scores, np.array([3.0]), np.zeros(4, int))[0], [0.5, 0.25, 0.25])
    # at .9 and .1 three of four are right: T = ln 9 / ln 3
    two = vectors_of([[0.1, 0.9], [0.1, 0.9], [0.9, 0.1], [0.9, 0.1]], [1, 0, 1, 0], weight=[3, 1, 1, 3])
    assert temperature(two).values[0, 0] == pytest.approx(2.0, rel=1e-14)
    np.testing.assert_allclose(apply_temperature(two.scores[:1], np.array([2.0]), np.zeros(1, int)), [[0.25, 0.75]])


@pytest.mark.parametrize("smoothing", [False, 0.1])
def test_temperature_of_least_loss(smoothing: float) -> None:
    vectors = simulated(1, classes=4)
    found = minimize_scalar(lambda u: cooled(vectors, math.exp(u), smooth=float(smoothing)), tol=1e-12)
    fit = temperature(vectors, smoothing=smoothing)
    assert fit.values[0, 0] == pytest.approx(math.exp(found.x), rel=1e-6)
    assert cooled(vectors, fit.values[0, 0], smooth=float(smoothing)) <= found.fun + 1e-15
    step = 1e-3 * fit.values[0, 0]  # the information is minus the second derivative of the log likelihood
    around = [cooled(vectors, fit.values[0, 0] + d, smooth=float(smoothing)) for d in (-step, 0.0, step)]
    expected = (around[0] - 2.0 * around[1] + around[2]) / step**2 * vectors.weight.sum()
    assert fit.information[0, 0, 0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.skipif(not hasattr(sklearn.calibration, "_TemperatureScaling"), reason="this scikit-learn has none")
def test_temperature_of_scikit_learn() -> None:
    vectors = simulated(2, classes=5)
    peer = sklearn.calibration._TemperatureScaling().fit(vectors.scores, vectors.label, vectors.weight)
    assert temperature(vectors).values[0, 0] == pytest.approx(1.0 / peer.beta_, rel=1e-6)


def test_two_classes_are_a_logistic_regression_of_statsmodels() -> None:
    vectors = simulated(3, classes=2)
    z = np.log(vectors.scores[:, 1]) - np.log(vectors.scores[:, 0])
    peer = glm(vectors.label.astype(float), z, weight=vectors.weight)
    assert temperature(vectors).values[0, 0] == pytest.approx(1.0 / peer.params[0], rel=1e-9)


def test_outcomes_of_a_temperature() -> None:
    certain, unsure = [0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3]
    scores = [certain, certain, certain, unsure, unsure, unsure, certain, [0.4, 0.4, 0.2], certain]
    label = [0, 2, 2, 0, 1, 2, 0, 1, 0]
    fit = temperature(vectors_of(scores, label, segment=[0, 0, 0, 1, 1, 1, 2, 2, 2]))
    assert fit.outcome.tolist() == [Outcome.BOUND, Outcome.ONE_SCORE, Outcome.SEPARABLE]
    np.testing.assert_array_equal(fit.values[0], [1000.0, np.nan, np.nan])
    np.testing.assert_array_equal(np.isnan(fit.information[0, 0]), [False, True, True])
    smoothed = temperature(vectors_of(scores, label, segment=[0, 0, 0, 1, 1, 1, 2, 2, 2]), smoothing=0.1)
    assert smoothed.outcome.tolist() == [Outcome.BOUND, Outcome.ONE_SCORE, Outcome.FINE]


def test_targets_of_platt() -> None:
    # six positives and four negatives: 7/8 and 1/6, as 1 - e/2 and e/2
    share = smooth_shares(vectors_of([[0.5, 0.5]] * 10, [1] * 6 + [0] * 4), smoothing=True)
    np.testing.assert_allclose(share, [0.25] * 6 + [1 / 3] * 4)
    weighted = vectors_of([[0.5, 0.5]] * 3, [1, 0, 1], weight=[2, 4, 4])
    np.testing.assert_allclose(smooth_shares(weighted, smoothing=True), [0.25, 1 / 3, 0.25])


@settings(max_examples=60, deadline=None)
@given(rows=drawn_rows(most=20))
def test_properties_of_temperatures(rows: list[Row]) -> None:
    vectors = vectors_of_rows(rows)
    fit = temperature(vectors)
    np.testing.assert_allclose(temperature(twice(vectors)).values, fit.values, rtol=1e-9)
    np.testing.assert_allclose(temperature(shuffled(vectors, [2, 0, 1])).values, fit.values, rtol=1e-9)
    for number in range(len(vectors)):
        part = alone(vectors, number)
        by_itself = temperature(part)
        np.testing.assert_allclose(by_itself.values[0], fit.values[0, number], rtol=1e-9)
        assert by_itself.outcome[0] == fit.outcome[number]
        t = fit.values[0, number]
        if np.isfinite(t):
            assert t > 0.0
            assert cooled(part, t) <= cooled(part, 1.0) + 1e-14
        if fit.outcome[number] == Outcome.FINE:
            assert steepness(lambda u, part=part: cooled(part, 1.0 / u[0]), np.array([1.0 / t]), step=1e-4 / t) < 1e-6


def test_many_segments_at_once_are_each_alone() -> None:
    vectors = simulated(4, rows=3000, segments=60)
    fit = temperature(vectors)
    each = [temperature(alone(vectors, number)).values[0, 0] for number in range(60)]
    np.testing.assert_allclose(fit.values[0], each, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1.0, 1e6, 1e150])
def test_temperature_knows_no_unit(scale: float) -> None:
    z = np.log(simulated(5).scores)
    label = simulated(5).label
    plain = temperature(vectors_of(z, label), is_logit=True).values[0, 0]
    found = temperature(vectors_of(z * scale, label, weight=np.full(len(z), scale)), is_logit=True).values[0, 0]
    assert found == pytest.approx(plain * scale, rel=1e-9)


def test_refitting_a_temperature_changes_nothing() -> None:
    vectors = simulated(6)
    once = apply_temperature(vectors.scores, temperature(vectors).values[0], vectors.segment)
    again = temperature(vectors_of(once, vectors.label, weight=vectors.weight))
    assert again.values[0, 0] == pytest.approx(1.0, abs=1e-12)


# ------------------------------------------------------------------ vector and matrix
def test_vector_of_least_loss() -> None:
    vectors = simulated(7)
    found = least(lambda u: losses(vectors, np.diag(u[:3]), u[3:]), np.r_[np.ones(3), np.zeros(3)])
    fit = vector(vectors)
    np.testing.assert_allclose(np.diag(fit.slopes[0]), found.x[:3], atol=1e-6)
    np.testing.assert_allclose(fit.intercepts[0], found.x[3:] - found.x[3:].mean(), atol=1e-6)
    assert mean_loss(vectors, fit) <= found.fun + 1e-14
    assert fit.converged.all()
    assert np.count_nonzero(fit.slopes[0]) == 3


def test_matrix_of_scikit_learn() -> None:
    vectors = simulated(8, rows=800, classes=4)
    z = np.log(vectors.scores)
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(z, vectors.label, vectors.weight)
    expected = normal_form(np.column_stack([peer.coef_, peer.intercept_]))
    fit = matrix(vectors)
    np.testing.assert_allclose(np.column_stack([fit.slopes[0], fit.intercepts[0]]), expected, atol=1e-4)
    assert mean_loss(vectors, fit) <= losses(vectors, peer.coef_, peer.intercept_) + 1e-15
    assert (
        steepness(lambda u: losses(vectors, u[:16].reshape(4, 4), u[16:]), np.r_[fit.slopes.ravel(), fit.intercepts[0]])
        < 1e-7
    )


def test_two_classes_have_the_beta_map_of_statsmodels() -> None:
    vectors = simulated(9, classes=2)
    ln_p = np.log(vectors.scores)
    peer = glm(vectors.label.astype(float), ln_p[:, 1], -ln_p[:, 0], np.ones(len(ln_p)), weight=vectors.weight)
    for fit in (vector(vectors), matrix(vectors)):
        np.testing.assert_allclose(np.diag(fit.slopes[0])[::-1], peer.params[:2], atol=1e-9)
        np.testing.assert_allclose(fit.intercepts[0], np.array([-0.5, 0.5]) * peer.params[2], atol=1e-9)


@pytest.mark.parametrize("fit", FITS)
def test_what_is_calibrated_stays(fit: Fit) -> None:
    vectors = calibrated(1)
    found = fit(vectors)
    np.testing.assert_allclose(found.slopes[0], np.eye(3), atol=1e-10)
    np.testing.assert_allclose(found.intercepts[0], 0.0, atol=1e-10)
    assert temperature(vectors).values[0, 0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("options", [{}, {"ridge": 0.01}, {"smoothing": 0.2}, {"smoothing": True}])
def test_maps_of_weighted_rows_in_any_order(fit: Fit, options: dict[str, float]) -> None:
    vectors = simulated(10, rows=600, segments=3)
    found = fit(vectors, **options)
    same_maps(fit(twice(vectors), **options), found)
    for number in range(3):
        one = fit(alone(vectors, number), **options)
        np.testing.assert_allclose(one.slopes[0], found.slopes[number], atol=1e-9)
    order = np.array([2, 0, 1])
    turned = fit(shuffled(vectors, order), **options)
    np.testing.assert_allclose(turned.slopes, found.slopes[:, order][:, :, order], atol=1e-9)
    np.testing.assert_allclose(turned.intercepts, found.intercepts[:, order], atol=1e-9)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_ridge_of_least_objective(fit: Fit, ridge: float) -> None:
    vectors = simulated(11)

    def objective(u: Floats) -> float:
        slopes = np.diag(u[:3]) if fit is vector else u[:9].reshape(3, 3)
        theta = normal_form(np.column_stack([slopes, u[-3:]]))
        if fit is vector:
            theta[:, :3] = slopes
        return losses(vectors, slopes, u[-3:]) + ridge * float(((theta - np.eye(3, 4)) ** 2).sum())

    found = fit(vectors, ridge=ridge)
    slopes = np.diag(found.slopes[0]) if fit is vector else found.slopes[0].ravel()
    assert steepness(objective, np.r_[slopes, found.intercepts[0]]) < 1e-7
    assert found.outcome.tolist() == [Outcome.FINE]


@pytest.mark.parametrize("fit", FITS)
def test_smoothed_targets_of_least_loss(fit: Fit) -> None:
    vectors = simulated(12)
    share = smooth_shares(vectors, smoothing=True)
    found = fit(vectors, smoothing=True)

    def objective(u: Floats) -> float:
        slopes = np.diag(u[:3]) if fit is vector else u[:9].reshape(3, 3)
        return losses(vectors, slopes, u[-3:], smooth=share)

    slopes = np.diag(found.slopes[0]) if fit is vector else found.slopes[0].ravel()
    assert steepness(objective, np.r_[slopes, found.intercepts[0]]) < 1e-7


@pytest.mark.parametrize("fit", FITS)
def test_refitting_never_loses(fit: Fit) -> None:
    vectors = simulated(13)
    before = losses(vectors, np.eye(3), np.zeros(3))
    once = fit(vectors)
    scores = apply_softmax(vectors.scores, once.slopes, once.intercepts, vectors.segment)
    again = vectors_of(scores, vectors.label, weight=vectors.weight)
    assert mean_loss(again, fit(again)) <= mean_loss(vectors, once) <= before


def separated(vectors: Vectors, *, diagonal: bool) -> bool:
    """Tell by linear programming whether some direction never loses and somewhere gains (Albert and Anderson)."""
    classes, x = (
        vectors.classes,
        np.column_stack([np.log(np.maximum(vectors.scores, 1e-12)), np.ones(len(vectors.label))]),
    )
    rows = []
    for z, own in zip(x, vectors.label, strict=True):
        for other in set(range(classes)) - {int(own)}:
            apart = np.zeros((classes, classes + 1))
            apart[own], apart[other] = z, -z
            if diagonal:
                apart[:, :-1] *= np.eye(classes)
            rows.append(apart.ravel())
    gains = np.array(rows)
    found = linprog(-gains.sum(axis=0), A_ub=-gains, b_ub=np.zeros(len(gains)), bounds=(-1.0, 1.0))
    return bool(-found.fun > 1e-7)


@pytest.mark.parametrize("fit", FITS)
def test_separable_rows_are_those_of_a_linear_program(fit: Fit) -> None:
    seen = set()
    for seed in range(40):
        vectors = simulated(seed, rows=8 + seed, classes=3)
        found = fit(vectors)
        open_end = separated(vectors, diagonal=fit is vector)
        seen.add(open_end)
        assert (found.outcome[0] != Outcome.FINE) == open_end, seed
        assert np.isfinite(found.slopes).all()
        assert found.converged.all()
    assert seen == {False, True}


@pytest.mark.parametrize("fit", FITS)
def test_rows_that_leave_a_map_open_get_a_small_ridge(fit: Fit) -> None:
    part = simulated(14, rows=90)
    lone = vectors_of(part.scores[:30], np.zeros(30, int))
    unseen = vectors_of(part.scores[:30], part.label[:30] % 2)
    flat = vectors_of([[0.8, 0.1, 0.1]] * 9, [0, 0, 0, 0, 1, 1, 2, 2, 2])
    for vectors, outcome in ((lone, Outcome.ONE_CLASS), (unseen, Outcome.SEPARABLE), (flat, Outcome.ONE_SCORE)):
        found = fit(vectors)
        assert found.outcome.tolist() == [outcome]
        same = fit(vectors, ridge=RIDGE)
        np.testing.assert_allclose(found.slopes, same.slopes, atol=1e-8)
        assert mean_loss(vectors, found) <= losses(vectors, np.eye(3), np.zeros(3))
    # one score vector: its rates, as nearly as the ridge lets them
    found = fit(flat)
    p = apply_softmax(flat.scores[:1], found.slopes, found.intercepts, np.zeros(1, int))
    np.testing.assert_allclose(p[0], np.array([4, 2, 3]) / 9, atol=1e-4)


def test_the_small_ridge_is_small_for_scores_of_a_small_range() -> None:
    # two classes always have the same score, which leaves the matrix open
    rng = np.random.default_rng(18)
    first = 1 / 3 + 0.002 * rng.standard_normal(600)
    scores = np.column_stack([first, (1 - first) / 2, (1 - first) / 2])
    chance = np.column_stack([1 / (1 + np.exp(-600 * (first - 1 / 3))), np.zeros((600, 2))])
    chance[:, 1:] = (1 - chance[:, :1]) / 2
    label = (chance.cumsum(axis=1) > rng.random((600, 1))).argmax(axis=1)
    vectors = vectors_of(scores, label)
    full = matrix(vectors)
    assert full.outcome.tolist() == [Outcome.ONE_SCORE]

    def loss(theta: Floats) -> float:  # one slope, and a constant for the first class: such maps are matrices, too
        return losses(vectors, theta[0] * np.eye(3), np.array([theta[1], 0.0, 0.0]))

    best = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12})
    assert best.x[0] > 100.0
    assert mean_loss(vectors, full) <= best.fun + 1e-5


def test_scores_of_0_and_1_that_are_right_have_no_maximum() -> None:
    sure = vectors_of(np.eye(3)[[0, 1, 2, 0, 1, 2, 0, 1, 2]], [0, 1, 2, 0, 1, 2, 0, 1, 2])
    assert vector(sure).outcome.tolist() == [Outcome.SEPARABLE]
    assert matrix(sure).outcome.tolist() == [Outcome.ONE_SCORE]  # three distinct rows are too few, too
    logits = vectors_of(np.random.default_rng(1).normal(0, 1e5, (30, 3)), np.zeros(30))
    logits = vectors_of(logits.scores, logits.scores.argmax(axis=1))
    for fit in FITS:
        found = fit(logits, is_logit=True)
        assert found.outcome.tolist() == [Outcome.SEPARABLE]
        assert np.isfinite(found.slopes).all()


@pytest.mark.parametrize("fit", FITS)
def test_sure_scores_and_weights_of_any_size_do_not_stop_the_iteration(fit: Fit) -> None:
    rng = np.random.default_rng(1)
    for _ in range(15):
        scores = rng.dirichlet(np.full(4, 0.05), 60)
        label = (scores.cumsum(axis=1) > rng.random((60, 1)) * 0.999).argmax(axis=1)
        vectors = vectors_of(scores, label, weight=np.exp(rng.normal(0.0, 6.0, 60)))
        found = fit(vectors)
        assert found.converged.all()
        assert np.isfinite(found.slopes).all()
        assert mean_loss(vectors, found) <= losses(vectors, np.eye(4), np.zeros(4))


def test_more_parameters_than_rows_are_refused() -> None:
    assert [n_parameters(kind, 10) for kind in ("temperature", "vector", "matrix")] == [1, 19, 99]
    vectors = simulated(15, rows=16, segments=2)
    few = vectors_of(vectors.scores[:15], vectors.label[:15], segment=vectors.segment[:15])
    assert scarce(few, "matrix").tolist() == [False, True]
    assert not scarce(few, "vector").any()
    with pytest.raises(TooFewRowsError, match="matrix scaling of 3 classes has 8 parameters, and segment 1 has 7 rows"):
        matrix(few)
    assert matrix(few, ridge=0.1).converged.all()


@pytest.mark.parametrize("fit", FITS)
def test_logits_and_their_softmax_are_the_same(fit: Fit) -> None:
    vectors = simulated(16)
    shift = np.random.default_rng(0).normal(0, 50, (len(vectors.label), 1))
    logits = vectors_of(np.log(vectors.scores) + shift, vectors.label, weight=vectors.weight)
    same_maps(fit(logits, is_logit=True), fit(vectors))
    np.testing.assert_allclose(temperature(logits, is_logit=True).values, temperature(vectors).values, rtol=1e-9)


# ------------------------------------------------------------------ log scores and application
def test_log_scores_of_logits() -> None:
    logits = np.array([[1e4, 0.0, -1e4], [3.0, 3.0, 3.0], [np.inf, 0.0, np.inf], [-np.inf, -np.inf, -np.inf]])
    expected = [
        [0.0, -1e4, -2e4],
        [-math.log(3)] * 3,
        [-math.log(2), math.log(1e-12), -math.log(2)],
        [-math.log(3)] * 3,
    ]
    np.testing.assert_allclose(log_scores(logits, is_logit=True).T, expected, rtol=1e-14)
    far = log_scores(np.array([[0.0, -50.0, -np.inf]]), is_logit=True)[:, 0]
    assert far[2] == far[1] == -50.0  # not above a finite one


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), segments=st.integers(1, 4), classes=st.integers(2, 5))
def test_application_row_by_row(seed: int, segments: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.full(classes, 0.1), 50)
    segment = rng.integers(0, segments, 50)
    slopes, intercepts = rng.normal(0, 2, (segments, classes, classes)), rng.normal(0, 2, (segments, classes))
    found = apply_softmax(scores, slopes, intercepts, segment)
    for row, p, g in zip(scores, found, segment, strict=True):
        expected = softmax(slopes[g] @ np.log(np.maximum(row, 1e-12)) + intercepts[g])
        np.testing.assert_allclose(p, expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-15 * classes)
    t = np.exp(rng.normal(size=segments))
    plain = np.exp(log_softmax(np.log(np.maximum(scores, 1e-12)) / t[segment][:, None], axis=1))
    np.testing.assert_allclose(apply_temperature(scores, t, segment), plain, rtol=1e-12, atol=1e-300)


def test_application_in_blocks_is_that_of_the_whole() -> None:
    vectors = simulated(17, rows=150_000, segments=2)
    fit = vector(vectors)
    whole = apply_softmax(vectors.scores, fit.slopes, fit.intercepts, vectors.segment)
    some = np.array([0, 43_689, 43_690, 74_999, 75_000, 149_999])
    parts = apply_softmax(vectors.scores[some], fit.slopes, fit.intercepts, vectors.segment[some])
    np.testing.assert_allclose(whole[some], parts, rtol=1e-13)
    assert whole.flags.f_contiguous
