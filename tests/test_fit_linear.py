"""Platt, temperature and beta maps of many segments: closed forms, optimality, outcomes and invariances."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import expit, log_expit, logit

from calframe._fitting._beta import beta
from calframe._fitting._fitted import Outcome, Parameters
from calframe._fitting._linear import features_of, platt, smoothed, temperature
from calframe._kernels._tally import Tally
from tests._linear_maps import MAPS, counts, logits, rows_of, slices, tiny_rows
from tests._regressions import one, tally_of

FINE, SEPARABLE, ONE_CLASS, ONE_SCORE, BOUND = map(Outcome, range(5))


EACH = pytest.mark.parametrize("kind", MAPS)
SMOOTHING = pytest.mark.parametrize("smoothing", [False, True, 0.1])


def same(found: Parameters, expected: Parameters, *, rtol: float = 1e-9) -> None:
    assert found.outcome.tolist() == expected.outcome.tolist()
    np.testing.assert_allclose(found.values, expected.values, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.information, expected.information, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------- closed forms
def test_temperatures_of_two_and_three() -> None:
    # 3 of 4 where 9 of 10 are said, and mirrored: T = ln 9 / ln 3
    assert temperature(counts([0.1, 0.9], [4, 4], [1, 3])).values[0, 0] == pytest.approx(2.0, abs=1e-12)
    # 2 of 3 where 8 of 9 are said: T = ln 8 / ln 2, from one score alone
    assert temperature(counts([8 / 9], [3], [2])).values[0, 0] == pytest.approx(3.0, abs=1e-12)


def test_a_temperature_of_one_class() -> None:
    # 3 positives at 3/4 and 1 at 1/4: (1/3) ^ (1/T) is their ratio, so T = 1
    fit = temperature(counts([0.25, 0.75], [1, 3], [1, 3]))
    assert fit.outcome.tolist() == [FINE]
    assert fit.values[0, 0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("far", [1.0, 1e5, 1e200])
def test_targets_of_platt(far: float) -> None:
    # 6 positives at one score and 4 negatives at another have the targets 7/8 and 1/6, which two parameters reach
    slope, intercept = platt(counts([0.0, far], [4, 6], [0, 6]), on="score", smoothing=True).values[:, 0]
    assert expit([intercept, intercept + slope * far]) == pytest.approx([1 / 6, 7 / 8], abs=1e-12)


def test_two_rows_of_smoothed_targets() -> None:
    # one of each class: the targets are 1/3 and 2/3
    slope, intercept = platt(one([0.1, 0.9], [0, 1]), smoothing=True).values[:, 0]
    assert expit([intercept - slope * math.log(9), intercept + slope * math.log(9)]) == pytest.approx([1 / 3, 2 / 3])
    assert temperature(one([0.1, 0.9], [0, 1])).outcome.tolist() == [SEPARABLE]
    # a third of the way from T = infinity: ln 9 / ln 2
    assert temperature(one([0.1, 0.9], [0, 1]), smoothing=True).values[0, 0] == pytest.approx(math.log(9) / math.log(2))


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_calibrated_scores_are_left_as_they_are(parameters: Any) -> None:
    fit = beta(counts([0.25, 0.5, 0.75], [4, 4, 4], [1, 2, 3]), parameters=parameters)
    assert fit.values[:, 0] == pytest.approx([1.0, 1.0, 0.0], abs=1e-12)
    assert fit.outcome.tolist() == [FINE]


@pytest.mark.parametrize("kind", ["platt", "abm", "am"])
def test_reversed_scores_get_the_rate(kind: str) -> None:
    fit = MAPS[kind].fit(one([0.9, 0.8, 0.7, 0.6, 0.3, 0.2, 0.1], [0, 0, 0, 1, 0, 1, 1]))
    assert fit.values[:-1, 0].tolist() == [0.0] * (len(fit.values) - 1)
    assert fit.values[-1, 0] == pytest.approx(math.log(3 / 4), abs=1e-12)  # 3 of 7
    assert fit.outcome.tolist() == [BOUND]


def test_reversed_scores_without_a_constant() -> None:
    tally = one([0.9, 0.8, 0.7, 0.6, 0.3, 0.2, 0.1], [0, 0, 0, 1, 0, 1, 1])
    assert beta(tally, parameters="ab").values[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert temperature(tally).values[0, 0] == 1000.0
    assert temperature(tally).outcome.tolist() == [BOUND]


def test_one_coefficient_of_beta_at_its_bound() -> None:
    # at 1/2, 3/4, 7/8 the rates 1/2, 4/5, 16/17 are (1 - p) ^ -2 / 4 in odds: a = 0, b = 2, c = -2 ln 2
    weight, positive = np.array([2.0, 5.0, 17.0]), np.array([1.0, 4.0, 16.0])
    exact = beta(counts([0.5, 0.75, 0.875], weight, positive)).values[:, 0]
    assert exact == pytest.approx([0.0, 2.0, -2 * math.log(2)], abs=1e-11)
    # with a rate of 3/4 in the middle they are more convex still, so that a would be negative
    fit = beta(counts([0.5, 0.75, 0.875], [2, 4, 17], [1, 3, 16]))
    assert fit.outcome.tolist() == [BOUND]
    assert fit.values[0, 0] == 0.0


def test_one_coefficient_at_its_bound_where_a_half_is_kept() -> None:
    # odds (2 p)^2 / (2 (1 - p)): 1/6 at 1/4 and 9/2 at 3/4, and whatever there is at 1/2; a = 2, b = 1, c = ln 2
    fit = beta(counts([0.25, 0.5, 0.75], [7, 10, 11], [1, 1, 9]), parameters="ab")
    assert fit.values[:, 0] == pytest.approx([2.0, 1.0, math.log(2)], abs=1e-11)
    assert fit.outcome.tolist() == [FINE]
    # odds (2 p)^2: 1/4 and 9/4; a = 2, b = 0, c = 2 ln 2
    exact = beta(counts([0.25, 0.75], [5, 13], [1, 9]), parameters="ab").values[:, 0]
    assert exact == pytest.approx([2.0, 0.0, 2 * math.log(2)], abs=1e-11)
    # odds (2 p)^2 2 (1 - p): 3/8 and 9/8, with b = -1
    fit = beta(counts([0.25, 0.75], [11, 17], [3, 9]), parameters="ab")
    assert fit.outcome.tolist() == [BOUND]
    assert fit.values[1, 0] == 0.0
    assert fit.values[2, 0] == pytest.approx(fit.values[0, 0] * math.log(2), rel=1e-12)


def test_a_score_beside_a_half_leaves_a_and_b_equal() -> None:
    # 3 of 4 at 4/5, whose logit is ln 4
    fit = beta(counts([0.5, 0.8], [4, 4], [1, 3]), parameters="ab")
    slope = math.log(3) / math.log(4)
    assert fit.values[:, 0] == pytest.approx([slope, slope, 0.0], abs=1e-12)


def test_two_scores_leave_a_and_b_equal() -> None:
    # the slope from logit 0.4 to logit 0.6 over ln 4, for both
    fit = beta(counts([0.5, 0.8], [10, 10], [4, 6]))
    slope = 2 * math.log(1.5) / math.log(4)
    assert fit.values[:, 0] == pytest.approx([slope, slope, -math.log(1.5)], abs=1e-11)
    assert fit.outcome.tolist() == [FINE]


@pytest.mark.parametrize("kind", ["platt", "raw", "am", "abm"])
def test_two_scores_are_mapped_to_their_targets(kind: str) -> None:
    tally = counts([0.3, 0.6], [10, 20], [4, 11])
    odds = MAPS[kind].design(tally) @ MAPS[kind].coefficients(MAPS[kind].fit(tally, smoothing=0.2).values[:, 0])
    assert expit(odds) == pytest.approx([0.8 * 0.4 + 0.1, 0.8 * 0.55 + 0.1], abs=1e-12)


# ---------------------------------------------------------------- features and targets
def test_features_of_probabilities_and_of_their_logits() -> None:
    score = np.array([0.1, 0.5, 0.9])
    for found, expected in zip(
        features_of(counts(logit(score), [1] * 3, [1] * 3), is_logit=True),
        (np.log(score), np.log(1 - score), logit(score)),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)
    ends = features_of(counts([0.0, 1e-3, 1.0], [1] * 3, [1] * 3), floor=1e-2)
    np.testing.assert_allclose(ends.ln_p, np.log([1e-2, 1e-2, 1.0]))
    np.testing.assert_allclose(ends.ln_rest, np.log([1.0, 0.999, 1e-2]))
    far = features_of(counts([-800.0, 800.0], [1, 1], [0, 1]), is_logit=True)  # no floor
    assert (far.ln_p[0], far.ln_rest[1]) == (-800.0, -800.0)


def test_infinite_logits_stay_the_outermost() -> None:
    tally = tally_of([0, 0, 0, 1, 1, 1], [-math.inf, 1.0, math.inf, -math.inf, 50.0, math.inf], [0, 1, 0, 1, 0, 1])
    z = features_of(tally, is_logit=True, floor=1e-6).z
    assert z == pytest.approx([-6 * math.log(10), 1.0, 6 * math.log(10), -50.0, 50.0, 50.0])
    assert np.isfinite(platt(tally, is_logit=True).values).all()


@EACH
def test_logits_and_probabilities_have_the_same_map(kind: str) -> None:
    if kind == "raw":
        return
    segment, score, label, weight = rows_of(4)
    score = np.clip(score, 0.001, 0.999)
    tally = tally_of(segment, score, label, weight)
    same(MAPS[kind].fit(replace(tally, score=logit(tally.score)), is_logit=True), MAPS[kind].fit(tally), rtol=1e-8)


@pytest.mark.parametrize(("smoothing", "high", "low"), [(False, 1, 0), (True, 7 / 8, 1 / 6), (0.5, 3 / 4, 1 / 4)])
def test_targets(smoothing: Any, high: float, low: float) -> None:
    tally = one([0.2] * 5 + [0.7] * 5, [1, 1, 0, 0, 0, 1, 1, 1, 1, 0])  # 6 positives, 4 negatives
    positive, negative = smoothed(tally, smoothing=smoothing)
    assert positive == pytest.approx([2 * high + 3 * low, 4 * high + low])
    assert positive + negative == pytest.approx([5, 5])


def test_what_sums_of_weights_leave_by_rounding_is_no_negative() -> None:
    total = 0.1 + 0.2 + 0.3  # 0.6000000000000001
    assert total > 0.6
    tally = counts([0.2, 0.7], [total, 1.0], [0.6, 0.0])
    assert smoothed(tally, smoothing=False)[1].tolist() == [0.0, 1.0]
    assert platt(replace(tally, weight=np.array([total, 1.0]), positive=np.array([0.6, 1.0]))).outcome == ONE_CLASS


# ---------------------------------------------------------------- outcomes
@pytest.mark.parametrize(
    ("label", "platt_s", "temperature_s", "abm", "ab"),
    [
        ([0, 0, 1, 1], SEPARABLE, SEPARABLE, SEPARABLE, SEPARABLE),
        ([0, 1, 1, 1], SEPARABLE, FINE, SEPARABLE, BOUND),  # from 0.2 on all; scipy: (-0.28, 3.51) without bounds
        ([1, 1, 0, 0], BOUND, BOUND, BOUND, BOUND),
        ([1, 0, 1, 0], BOUND, BOUND, BOUND, BOUND),
        # statsmodels: (a, b) = (3.16, -3.39) without bounds; scipy: (1.17, -0.39) with 1/2 kept
        ([0, 1, 0, 1], FINE, FINE, BOUND, BOUND),
        ([1, 1, 1, 1], ONE_CLASS, BOUND, ONE_CLASS, ONE_CLASS),  # the rate at 0.1, 0.3 weighs against 0.6, 0.7
    ],
)
def test_outcomes_of_four_rows(label: list[int], platt_s: int, temperature_s: int, abm: int, ab: int) -> None:
    tally = one([0.1, 0.3, 0.6, 0.7], label)
    fits = [platt(tally), temperature(tally), beta(tally), beta(tally, parameters="ab")]
    assert [int(fit.outcome[0]) for fit in fits] == [platt_s, temperature_s, abm, ab]
    assert all(np.isfinite(fit.values).all() == (fit.outcome[0] in (FINE, BOUND)) for fit in fits)


def test_a_score_of_a_half_says_nothing_of_the_temperature() -> None:
    tally = tally_of([0, 0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5, 0.8], [1, 0, 1, 0, 1])
    assert temperature(tally).outcome.tolist() == [ONE_SCORE, SEPARABLE]
    assert platt(tally).outcome.tolist() == [ONE_SCORE, SEPARABLE]
    assert beta(tally, parameters="ab").outcome.tolist() == [ONE_SCORE, SEPARABLE]


@pytest.mark.parametrize("is_logit", [False, True])
def test_a_map_that_keeps_a_half_has_a_threshold_there(*, is_logit: bool) -> None:
    # whatever lies at 1/2, and next to it the least that the numbers can tell
    middle, step = (0.0, 2.0**-50) if is_logit else (0.5, 2.0**-53)
    score = np.array([-1.0, 0.0, 0.0, 1.0]) * (1.0 if is_logit else 0.3) + middle
    score = np.concatenate([score, [middle - step, middle + step]])
    outcomes = {}
    for low in (0, 1):
        for high in (0, 1):
            fit = beta(one(score, [0, 0, 1, 1, low, high]), parameters="ab", is_logit=is_logit)
            outcomes[low, high] = int(fit.outcome[0]) == SEPARABLE
    assert outcomes == {(0, 1): True, (0, 0): False, (1, 0): False, (1, 1): False}


def test_scores_that_differ_in_one_logarithm_only() -> None:
    # 1 - p is 1 for the first two: -b ln(1 - p) says nothing there, and the better of the third the larger b is
    tally = one([1e-19, 1e-18, 0.5], [1, 0, 1])
    outcomes = {kind: MAPS[kind].fit(tally, floor=1e-30).outcome[0] for kind in ("abm", "ab", "am", "platt")}
    # without a constant both lie below 1/2, the positive further: a = b = 0
    assert outcomes == {"abm": SEPARABLE, "ab": BOUND, "am": FINE, "platt": FINE}
    # 1 - p is floored for the last two
    tally = one([0.5, 1 - 1e-7, 1 - 1e-8], [0, 1, 0])
    assert [int(beta(tally, parameters=free, floor=1e-6).outcome[0]) for free in ("abm", "am")] == [SEPARABLE, FINE]
    # 1 - p is 1 for all: a and b cannot be told apart
    tally = one([1e-20, 1e-19, 1e-18, 1e-17], [0, 1, 0, 1])
    fit, line = beta(tally, floor=1e-30), platt(tally, floor=1e-30)
    assert fit.outcome.tolist() == [FINE]
    assert fit.values[:, 0] == pytest.approx(line.values[[0, 0, 1], 0])


@EACH
@SMOOTHING
def test_outcomes_by_linear_programming(kind: str, smoothing: Any) -> None:
    # separable: some map of the kind is nowhere wrong, and right somewhere (Albert and Anderson)
    tally = tally_of(*tiny_rows(1))
    fit, design = MAPS[kind].fit(tally, smoothing=smoothing), MAPS[kind].design(tally)
    labels, targets = (np.array(smoothed(tally, smoothing=s)) for s in (False, smoothing))
    bounds = [(0 if bounded else -1, 1) for bounded in MAPS[kind].bounded]
    seen = set()
    for g, cut in enumerate(slices(tally)):
        x, (yes, no) = design[cut], targets[:, cut] > 0
        wrong = np.concatenate([-x[yes], x[no]])
        endless = linprog(wrong.sum(axis=0), A_ub=wrong, b_ub=np.zeros(len(wrong)), bounds=bounds).fun < -1e-7
        known = FINE if not endless else SEPARABLE
        if kind == "temperature":
            expected = ONE_SCORE if (x == 0).all() else known
        else:
            lone = labels[:, cut].sum(axis=1).min() == 0
            expected = ONE_CLASS if lone else ONE_SCORE if len(x) == 1 else known
        assert expected == (FINE if fit.outcome[g] == BOUND else fit.outcome[g]), (tally.score[cut], labels[:, cut])
        assert np.isnan(fit.values[:, g]).all() == (expected != FINE)
        seen.add(int(fit.outcome[g]))
    assert {FINE, BOUND, ONE_SCORE} <= seen
    assert (SEPARABLE in seen) == (smoothing is False)


# ---------------------------------------------------------------- optimality
@EACH
@SMOOTHING
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_direction_leads_up(kind: str, smoothing: Any, seed: int) -> None:
    # the conditions of Karush, Kuhn and Tucker, which are sufficient: the likelihood is concave
    tally = tally_of(*(tiny_rows(seed) if seed % 2 else rows_of(seed)))
    fit, design = MAPS[kind].fit(tally, smoothing=smoothing), MAPS[kind].design(tally)
    positive, negative = smoothed(tally, smoothing=smoothing)
    for g, cut in enumerate(slices(tally)):
        if fit.outcome[g] not in (FINE, BOUND):
            continue
        theta, x = MAPS[kind].coefficients(fit.values[:, g]), design[cut]
        if kind == "temperature" and fit.outcome[g] == BOUND:
            theta = np.zeros(1)
        terms = (positive[cut] * expit(-x @ theta) - negative[cut] * expit(x @ theta))[:, None] * x
        slack = 1e-10 * np.abs(x * (positive + negative)[cut, None]).sum(axis=0)
        held = np.array(MAPS[kind].bounded) & (theta == 0)
        assert (theta[np.array(MAPS[kind].bounded)] >= 0).all()
        assert held.any() == (fit.outcome[g] == BOUND)
        assert (terms.sum(axis=0) <= slack).all()
        assert (terms.sum(axis=0)[~held] >= -slack[~held]).all()


def test_the_information_is_the_curvature() -> None:
    tally = tally_of(*rows_of(2))
    positive, negative = smoothed(tally, smoothing=False)
    fit = temperature(tally)
    assert {FINE, BOUND} <= set(fit.outcome.tolist())
    for g, cut in enumerate(slices(tally)):
        z, t = logits(tally)[cut], fit.values[0, g]
        step = 1e-3 * t
        at = [(positive[cut] @ log_expit(z / s) + negative[cut] @ log_expit(-z / s)) for s in (t - step, t, t + step)]
        if fit.outcome[g] in (FINE, BOUND):
            assert fit.information[0, 0, g] == pytest.approx((2 * at[1] - at[0] - at[2]) / step**2, rel=1e-4)
    for parameters in ("abm", "am", "ab"):
        fit = beta(tally, parameters=parameters)
        for g, cut in enumerate(slices(tally)):
            x = MAPS["abm"].design(tally)[cut]
            p = expit(x @ fit.values[:, g])
            expected = x.T @ (x * (tally.weight[cut] * p * (1 - p))[:, None])
            np.testing.assert_allclose(fit.information[..., g], expected, rtol=1e-8, atol=1e-8)


# ---------------------------------------------------------------- invariances
@EACH
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_weight_of_two_is_the_row_twice(kind: str, seed: int) -> None:
    segment, score, label, weight = rows_of(seed)
    whole = np.ceil(weight).astype(int)
    once = MAPS[kind].fit(tally_of(segment, score, label, whole), smoothing=True)
    same(once, MAPS[kind].fit(tally_of(*(np.repeat(v, whole) for v in (segment, score, label))), smoothing=True))


@EACH
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_scale_of_weights_does_not_matter(kind: str, scale: float) -> None:
    segment, score, label, weight = rows_of(6)
    one_scale, other = (MAPS[kind].fit(tally_of(segment, score, label, w)) for w in (weight, scale * weight))
    same(replace(other, information=other.information / scale), one_scale)


@EACH
@SMOOTHING
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_segments_are_alone(kind: str, smoothing: Any, seed: int) -> None:
    tally = tally_of(*rows_of(seed))
    whole = MAPS[kind].fit(tally, smoothing=smoothing)
    for g in range(len(tally)):
        single = Parameters(
            values=whole.values[:, [g]], outcome=whole.outcome[[g]], information=whole.information[..., [g]]
        )
        same(MAPS[kind].fit(tally.part(g, g + 1), smoothing=smoothing), single)


@EACH
def test_segments_of_several_chunks(kind: str) -> None:
    rng = np.random.default_rng(0)
    segment = np.repeat([0, 1, 2], [150_000, 40, 100_000])
    score = rng.random(len(segment))
    tally = tally_of(segment, score, rng.random(len(segment)) < score**2)
    whole = MAPS[kind].fit(tally)
    for g in range(3):
        np.testing.assert_allclose(MAPS[kind].fit(tally.part(g, g + 1)).values[:, 0], whole.values[:, g], rtol=1e-9)


@EACH
def test_nothing_is_fitted_to_nothing(kind: str) -> None:
    fit = MAPS[kind].fit(Tally.of_counts(np.array([], dtype=np.int64), *np.zeros((3, 0))))
    assert (fit.values.shape[1:], fit.outcome.shape, fit.information.shape[2:]) == ((0,), (0,), (0,))


@pytest.mark.parametrize("kind", ["platt", "temperature", "am", "abm"])
def test_the_map_of_its_own_output_is_the_identity(kind: str) -> None:
    tally = tally_of(*rows_of(7))
    fit = MAPS[kind].fit(tally)
    good = np.flatnonzero(fit.outcome == FINE)
    for g in good:
        part = tally.part(int(g), int(g) + 1)
        odds = MAPS[kind].design(part) @ MAPS[kind].coefficients(fit.values[:, g])
        again = platt(replace(part, score=odds), is_logit=True).values[:, 0]
        if kind == "temperature":
            again[0] = 1 / temperature(replace(part, score=odds), is_logit=True).values[0, 0]
            again[1] = 0.0
        assert again == pytest.approx([1.0, 0.0], abs=1e-9)
    assert len(good) >= 3


@EACH
def test_scores_far_and_near_stay_finite(kind: str) -> None:
    # neighbours 1e-17 apart, scores of exactly 0 and 1, and rows of almost no weight at the ends
    near = tally_of(
        np.repeat([0, 1, 2], 6),
        [0.0, 1e-17, 2e-17, 1e-13, 0.5, 1.0, 0.5, 0.5 + 2**-53, 0.5 + 2**-52, 0.6, 0.7, 1.0, *np.linspace(0, 1, 6)],
        [0, 1, 0, 1, 0, 1] * 3,
        [1e-30, 1, 1, 1, 1, 1e-30] * 3,
    )
    fit = MAPS[kind].fit(near)
    assert set(fit.outcome.tolist()) <= {FINE, BOUND}
    assert np.isfinite(fit.values).all()
