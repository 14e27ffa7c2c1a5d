"""Calibration intercept and slope, and calibration-in-the-large, and the segments that have none."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog
from scipy.special import expit

from calframe._kernels._logistic import Status, citl_fit, cox_fit, cox_interval, logit, status_of
from calframe._kernels._tally import Tally
from tests._regressions import glm, one, rows_of, same, tally_of
from tests._tallied import reference_entries

FINE, SEPARABLE, ONE_CLASS, ONE_SCORE = (int(status) for status in Status)


# ---------------------------------------------------------------- by hand
def test_cox_by_hand() -> None:
    # .4 positive at logit 0 and .6 at logit ln 4: intercept logit .4, slope (logit .6 - logit .4) / ln 4;
    # at slope 1: expit(a) + expit(a + ln 4) = 1 for a = -ln 2
    tally = one([0.5] * 10 + [0.8] * 10, [1] * 4 + [0] * 6 + [1] * 6 + [0] * 4)
    fit, large = cox_fit(tally), citl_fit(tally)
    assert fit.intercept[0] == pytest.approx(math.log(2 / 3), abs=1e-14)
    assert fit.slope[0] == pytest.approx(math.log(9 / 4) / math.log(4), abs=1e-14)
    assert large.citl[0] == pytest.approx(-math.log(2), abs=1e-14)
    assert large.variance[0] == pytest.approx(1 / (20 * (1 / 3) * (2 / 3)), rel=1e-12)


@given(
    scores=st.lists(st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-9, 1 - 1e-9)), min_size=2, max_size=2),
    rows=st.lists(st.integers(2, 10**6), min_size=2, max_size=2),
    shares=st.lists(st.floats(0, 1), min_size=2, max_size=2),
)
def test_two_scores_are_fitted_exactly(scores: list[float], rows: list[int], shares: list[float]) -> None:
    # two scores and two coefficients: the fit is the two observed logits, each of variance 1 / (n r (1 - r))
    low, high = sorted(scores)
    z = logit(np.array([low, high]))
    if z[1] - z[0] < 1e-6:
        return
    n = np.array(rows, float)
    k = 1 + np.floor(np.array(shares) * (n - 2))
    fit = cox_fit(Tally.of_counts(np.array([0]), np.array([low, high]), n, k))
    seen, spread, width = np.log(k / (n - k)), n / (k * (n - k)), z[1] - z[0]
    slope = (seen[1] - seen[0]) / width
    scale = 1.0 + np.abs(z).max() / width
    np.testing.assert_allclose(fit.slope[0], slope, rtol=1e-9, atol=1e-10 / width)
    np.testing.assert_allclose(fit.intercept[0], seen[0] - slope * z[0], rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(fit.slope_variance[0], spread.sum() / width**2, rtol=1e-6)
    variance = (z[1] ** 2 * spread[0] + z[0] ** 2 * spread[1]) / width**2
    np.testing.assert_allclose(fit.intercept_variance[0], variance, rtol=1e-6, atol=1e-9 * scale**2 * spread.max())
    shared = -(z[1] * spread[0] + z[0] * spread[1]) / width**2
    np.testing.assert_allclose(fit.covariance[0], shared, rtol=1e-6, atol=1e-6 * spread.max() / width * scale)


@pytest.mark.parametrize(
    ("floor", "slope", "intercept"),
    [(1e-6, 1.0933342916, -0.4988511064), (1e-7, 1.0933337597, -0.4988509994)],  # R: glm; calzone
)
def test_the_floor_is_the_clip_of_the_peers(floor: float, slope: float, intercept: float) -> None:
    i = np.arange(240)
    p, u = (37 * i % 101) / 100, ((53 * i + 11) % 97) / 97
    tally = one(p, u < 0.9 * p**1.4 + 0.05)
    fit = cox_fit(tally, floor=floor)
    assert (fit.slope[0], fit.intercept[0]) == pytest.approx((slope, intercept), abs=1e-9)
    if floor == 1e-6:
        assert citl_fit(tally, floor=floor).citl[0] == pytest.approx(-0.4766472, abs=1e-7)  # R: glm with an offset


def test_logit_has_a_floor_at_both_ends() -> None:
    found = logit(np.array([0.0, 1e-17, 0.2, 1.0]), 1e-12)
    np.testing.assert_allclose(found, [math.log(1e-12), math.log(1e-12), math.log(0.25), -math.log(1e-12)], rtol=1e-15)


# ---------------------------------------------------------------- peers
@pytest.mark.parametrize("seed", range(4))
def test_unweighted_fits_of_statsmodels(seed: int) -> None:
    segment, score, label = rows_of(seed)
    tally = tally_of(segment, score, label)
    fit, large = cox_fit(tally), citl_fit(tally)
    assert set(fit.status) == {FINE}
    for g in range(len(tally)):
        z, y = logit(score[segment == g]), label[segment == g]
        peer = glm(y, np.ones_like(z), z)
        assert [fit.intercept[g], fit.slope[g]] == pytest.approx(peer.params, abs=1e-9)
        found = [[fit.intercept_variance[g], fit.covariance[g]], [fit.covariance[g], fit.slope_variance[g]]]
        np.testing.assert_allclose(found, peer.cov_params(), rtol=1e-6, atol=1e-9)
        if np.abs(z).max() < 20:  # from its start the peer cannot fit an offset of a certain score
            peer = glm(y, np.ones_like(z), offset=z)
            assert large.citl[g] == pytest.approx(peer.params[0], abs=1e-9)
            assert large.variance[g] == pytest.approx(peer.cov_params()[0, 0], rel=1e-6)


def test_importance_weights_have_the_larger_of_two_sandwiches() -> None:
    larger = []
    for seed, heavy in ((0, 1.0), (1, 4.0), (2, 0.3)):  # heavier or lighter positives
        segment, score, label = rows_of(seed)
        weight = np.random.default_rng(seed).lognormal(0, 0.5, len(score)) * np.where(label > 0, heavy, 1.0)
        fit = cox_fit(tally_of(segment, score, label, weight))
        for g in range(len(fit.slope)):
            z, y, w = (v[segment == g] for v in (logit(score), label, weight))
            peer = glm(y, np.ones_like(z), z, weight=w, robust=True)
            assert [fit.intercept[g], fit.slope[g]] == pytest.approx(peer.params, abs=1e-9)
            # where the model is right a label has the variance p (1 - p), which stands for (y - p)^2
            x, p = np.column_stack([np.ones_like(z), z]), peer.predict()
            bread = np.linalg.inv(x.T @ (x * (w * p * (1 - p))[:, None]))
            model = bread @ (x.T @ (x * (w**2 * p * (1 - p))[:, None])) @ bread
            expected = np.maximum(np.diag(peer.cov_params()), np.diag(model))
            np.testing.assert_allclose([fit.intercept_variance[g], fit.slope_variance[g]], expected, rtol=1e-6)
            assert fit.covariance[g] == pytest.approx(peer.cov_params()[0, 1], rel=1e-5, abs=1e-8)
            larger.append(expected[1] > 1.001 * model[1, 1])
    assert any(larger)
    assert not all(larger)


@pytest.mark.parametrize("weight", [1.0, 2.0, 0.1, 1e-100])
def test_equal_importance_weights_are_no_weights(weight: float) -> None:
    segment, score, label = rows_of(2)
    same(
        cox_fit(tally_of(segment, score, label, np.full(len(label), weight))), cox_fit(tally_of(segment, score, label))
    )
    same(
        citl_fit(tally_of(segment, score, label, np.full(len(label), weight))),
        citl_fit(tally_of(segment, score, label)),
    )


def test_importance_weights_of_calibration_in_the_large() -> None:
    segment, score, label = rows_of(1)
    score = np.clip(score, 0.05, 0.95)
    weight = np.random.default_rng(1).lognormal(0, 0.5, len(score)) * np.where(label > 0, 4.0, 1.0)
    fit = citl_fit(tally_of(segment, score, label, weight))
    for g in range(len(fit.citl)):
        z, y, w = (v[segment == g] for v in (logit(score), label, weight))
        peer = glm(y, np.ones_like(z), offset=z, weight=w, robust=True)
        p = peer.predict(offset=z)
        model = (w**2 * p * (1 - p)).sum() / (w * p * (1 - p)).sum() ** 2
        assert fit.citl[g] == pytest.approx(peer.params[0], abs=1e-9)
        assert fit.variance[g] == pytest.approx(max(peer.cov_params()[0, 0], model), rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "metric", "least"),
    [("bin", "cox", 30), ("bin", "cox_glm", 12), ("wgt", "cox", 2), ("bin", "calibration_in_the_large", 12)],
)
def test_reference_values(reference_folder: Path, kind: str, metric: str, least: int) -> None:
    compared = 0
    for entry, rows in reference_entries(reference_folder, kind, metric):
        clip = entry["args"].get("epsilon")
        tally = one(*rows, frequency=True)
        fit, large = (fit(tally, **({"floor": clip} if clip else {})) for fit in (cox_fit, citl_fit))
        if fit.status[0] != FINE:
            yes, no = (rows[0][rows[1] == label] for label in (1, 0))
            overlap = len(yes) and len(no) and yes.min() < no.max() and no.min() < yes.max()
            assert not overlap, entry["id"]
            continue
        found = [fit.intercept[0], fit.slope[0], *np.sqrt([fit.intercept_variance[0], fit.slope_variance[0]])]
        if metric == "calibration_in_the_large":
            found = [large.citl[0], math.sqrt(large.variance[0])]
        expected = entry["value"][:2][::-1] if clip else entry["value"][: len(found)]  # calzone: slope first
        assert found[: len(expected)] == pytest.approx(expected, rel=1e-6, abs=1e-6), entry["id"]
        compared += 1
    assert compared >= least


# ---------------------------------------------------------------- no finite fit
@pytest.mark.parametrize(
    ("score", "label", "cox", "large"),
    [
        ([0.3], [1], ONE_CLASS, ONE_CLASS),
        ([0.3, 0.6], [0, 0], ONE_CLASS, ONE_CLASS),
        ([0.3, 0.3], [0, 1], ONE_SCORE, FINE),
        ([0.0, 1e-17, 1e-15], [0, 1, 0], ONE_SCORE, FINE),  # all at the floor
        ([0.2, 0.4], [0, 1], SEPARABLE, FINE),
        ([0.2, 0.4], [1, 0], SEPARABLE, FINE),
        ([0.2, 0.4, 0.4, 0.6], [0, 0, 1, 1], SEPARABLE, FINE),  # both at the score between
        ([0.2, 0.4, 0.4], [0, 0, 1], SEPARABLE, FINE),
        ([0.2, 0.4, 0.4, 0.6, 0.6], [0, 0, 1, 0, 1], FINE, FINE),
        ([0.2, 0.4, 0.6], [0, 1, 0], FINE, FINE),
        ([0.0, 0.0, 1.0, 1.0], [0, 1, 0, 1], FINE, FINE),
        ([0.5, 0.5 + 2**-53, 0.5 + 2**-52], [0, 1, 0], FINE, FINE),
    ],
)
def test_status(score: list[float], label: list[int], cox: int, large: int) -> None:
    fit, offset = cox_fit(one(score, label)), citl_fit(one(score, label))
    assert (fit.status[0], offset.status[0]) == (cox, large)
    for name in ("slope", "intercept", "slope_variance", "intercept_variance", "covariance"):
        assert math.isfinite(getattr(fit, name)[0]) == (cox == FINE), name
    assert math.isfinite(offset.citl[0]) == math.isfinite(offset.variance[0]) == (large == FINE)


def test_a_score_in_the_middle_that_separates_one_side_only_is_fine() -> None:
    # negatives at .2 and .6, positives at .4: no line, but the mean logit of both may lie anywhere
    assert cox_fit(one([0.2, 0.6, 0.4, 0.4], [0, 0, 1, 1])).status[0] == FINE


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=9))
def test_separable_is_what_linear_programming_finds(rows: list[tuple[int, bool]]) -> None:
    x, y = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    values = np.unique(x)
    positive, negative = ([float(((x == v) & (y == c)).sum()) for v in values] for c in (True, False))
    found = status_of(values, np.array(positive), np.array(negative), np.array([0]))[0]
    # Albert and Anderson: no finite fit iff some (a, b) has a + b x >= 0 at positives, <= 0 at negatives, not all 0
    side = np.where(y, 1.0, -1.0)[:, None] * np.column_stack([np.ones_like(x), x])
    best = linprog(-side.sum(axis=0), A_ub=-side, b_ub=np.zeros(len(x)), bounds=[(-1, 1)] * 2).fun
    if len(values) > 1:  # else the two coefficients cannot be told apart
        assert (found == FINE) == (best > -1e-9)
    assert (found == ONE_CLASS) == (y.all() or not y.any())


def test_what_sums_of_weights_leave_by_rounding_is_no_row() -> None:
    # .1 + .1 + .1 > .3: two engines, one cell of positives
    weight, positive = np.array([0.1 + 0.1 + 0.1, 1.0]), np.array([0.3, 1.0])
    tally = Tally(
        starts=np.array([0]),
        score=np.array([0.4, 0.6]),
        rows=np.array([3.0, 1.0]),
        weight=weight,
        positive=positive,
        squared=weight,
        squared_positive=positive,
    )
    assert cox_fit(tally).status[0] == citl_fit(tally).status[0] == ONE_CLASS


@pytest.mark.parametrize("weight", [1e-3, 1e-6, 1e-9])
def test_nearly_separable_is_fitted(weight: float) -> None:
    # a light row of either class crosses over; the rows are symmetric about .5, so the intercept is 0
    score, label = [0.3, 0.39, 0.4, 0.6, 0.61, 0.7], [0, 1, 0, 1, 0, 1]
    fit = cox_fit(one(score, label, [1.0, weight, 1.0, 1.0, weight, 1.0], frequency=True))
    assert fit.status[0] == FINE
    assert fit.intercept[0] == pytest.approx(0.0, abs=1e-9)
    far, crossed, near = (math.log(s / (1 - s)) for s in (0.7, 0.61, 0.6))

    def gradient(slope: float) -> float:
        right = far * expit(-slope * far) + near * expit(-slope * near)
        return float(right - weight * crossed * expit(slope * crossed)) / weight

    assert fit.slope[0] == pytest.approx(brentq(gradient, 0, 400, xtol=1e-13, rtol=1e-14), rel=1e-9)


@pytest.mark.parametrize(("missed", "false"), [(97, 97), (150, 100), (100, 101), (1, 400)])
def test_hard_decisions_have_a_calibration_in_the_large(missed: int, false: int) -> None:
    # n scores of 0 and m of 1: at odds u = exp(citl) and h = 1e12, n u / (u + h) + m u h / (u h + 1) = positives
    n, m = 2567, 3072
    tally = one([0] * n + [1] * m, [1] * missed + [0] * (n - missed) + [0] * false + [1] * (m - false))
    with localcontext() as context:
        context.prec = 90
        positives, h = Decimal(missed + m - false), Decimal(10) ** 12
        a, b, c = (n + m - positives) * h, n - positives + (m - positives) * h * h, -positives * h
        expected = float(((-b + (b * b - 4 * a * c).sqrt()) / (2 * a)).ln())
    fit = citl_fit(tally)
    # where the errors balance the gradient is flat to 1e-12, and rounding leaves four digits
    assert fit.citl[0] == pytest.approx(expected, abs=1e-4 if missed == false else 1e-9)
    assert math.isfinite(fit.variance[0])


def test_weights_beyond_rounding_are_called_separable() -> None:
    rng = np.random.default_rng(0)
    segment, score = np.repeat(np.arange(200), 20), rng.random(4000)
    weight = 10.0 ** rng.uniform(-90, 90, 4000)
    tally = tally_of(segment, score, rng.random(4000) < 0.5, weight)
    fit, large = cox_fit(tally), citl_fit(tally)
    assert set(fit.status) == {FINE, SEPARABLE}
    assert np.array_equal(np.isnan(fit.slope), fit.status != FINE)
    assert np.isfinite(large.citl).all()
    for low, high in cox_interval(fit, level=0.9).values():
        assert (low <= high).all()
