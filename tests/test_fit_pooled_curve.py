"""The pooled isotonic curve, and partial pooling on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from calframe._fitting._pooled_curve import curve_feature, pooled_curve, pooled_isotonic
from calframe._kernels._isotonic import blocks
from calframe._kernels._logistic import logit
from calframe._kernels._tally import Tally
from calframe._typing import Floats
from tests._regressions import one, tally_of


# ---------------------------------------------------------------- the pooled curve
def test_the_curve_by_hand() -> None:
    # blocks 1 of 3 at scores .2 and .4, 2 of 3 at .6, 2 of 2 at .9; halves are added
    tally = one([0.2, 0.2, 0.4, 0.6, 0.6, 0.6, 0.9, 0.9], [0, 1, 0, 0, 1, 1, 1, 1])
    curve = pooled_curve(tally)
    np.testing.assert_allclose(np.exp(curve.y), [1.5 / 2.5, 2.5 / 1.5, 2.5 / 0.5], rtol=1e-12)
    centre = expit((2 * logit(np.array([0.2]))[0] + logit(np.array([0.4]))[0]) / 3)
    np.testing.assert_allclose(curve.x, [centre, 0.6, 0.9], rtol=1e-12)
    middle = expit((logit(np.array([0.6])) + logit(np.array([0.9]))) / 2)
    expected = [curve.y[0], curve.y[0], (curve.y[1] + curve.y[2]) / 2, curve.y[2]]
    found = curve_feature(curve, np.array([0.0, centre, middle[0], 1.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_halves_do_not_turn_the_order_round() -> None:
    # rates 0 of 1 and 1 of 1000: with halves 1/4 would come before 1.5/1001, so both are one block of 1.5/1002
    rows, positive = np.array([1.0, 1000.0, 10.0]), np.array([0.0, 1.0, 9.0])
    curve = pooled_curve(Tally.of_counts(np.array([0]), np.array([0.1, 0.2, 0.5]), rows, positive))
    np.testing.assert_allclose(np.exp(curve.y), [1.5 / 1000.5, 9.5 / 1.5], rtol=1e-12)


def test_scores_of_one_logit_are_one_point() -> None:
    # both are below the floor: 0 of 3 and 2 of 3 together are 2 of 6; 9 of 9 at one half
    rows, positive = np.array([3.0, 3.0, 9.0]), np.array([0.0, 2.0, 9.0])
    curve = pooled_curve(Tally.of_counts(np.array([0]), np.array([1e-17, 2e-17, 0.5]), rows, positive))
    np.testing.assert_allclose(curve.y, [np.log(2.5 / 4.5), np.log(9.5 / 0.5)], atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(
        st.tuples(
            st.one_of(st.sampled_from([0.0, 1e-17, 2e-17, 1.0, 1 - 2**-53]), st.floats(0, 1)),
            st.integers(0, 2),
            st.integers(0, 9),
            st.integers(0, 9),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_the_curve_is_finite_and_rises(cells: Any) -> None:
    rows = [(g, s, y < k) for s, g, k, m in cells for y in range(k + m)] or [(0, 0.5, True)]
    segment, score, label = (np.array(v, float) for v in zip(*rows, strict=True))
    curve = pooled_curve(tally_of(segment, score, label))
    assert np.isfinite(curve.y).all()
    assert (np.diff(curve.y) > 0).all()
    assert (np.diff(curve.x) > 0).all()
    grid = np.unique(np.append(np.linspace(0, 1, 501), curve.x))
    feature = curve_feature(curve, grid)
    assert (np.diff(feature) >= 0).all()
    assert np.isfinite(feature).all()
    shuffled = pooled_curve(one(score, label))  # segments do not matter
    np.testing.assert_allclose(shuffled.y, curve.y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shuffled.x, curve.x, rtol=1e-12, atol=1e-12)


def test_logits_have_the_curve_of_their_scores() -> None:
    rng = np.random.default_rng(0)
    score = rng.random(200)
    tally = one(score, rng.random(200) < score)
    there, here = pooled_curve(replace(tally, score=logit(tally.score)), is_logit=True), pooled_curve(tally)
    np.testing.assert_allclose(there.y, here.y, rtol=1e-12)
    np.testing.assert_allclose(there.x, logit(here.x), rtol=1e-9)
    found = curve_feature(there, np.array([-np.inf, 0.3, np.inf]), is_logit=True)
    np.testing.assert_allclose(found, curve_feature(here, expit(np.array([-np.inf, 0.3, np.inf]))), rtol=1e-9)


def test_a_curve_of_one_point_leaves_the_intercepts() -> None:
    tally = tally_of([0, 0, 0, 1, 1, 1, 1], [0.2, 0.2, 0.7, 0.2, 0.2, 0.7, 0.7], [1, 1, 0, 0, 1, 0, 0])
    curve, fit = pooled_isotonic(tally)
    assert len(curve.x) == 1
    assert (fit.values[0] == 1).all()
    assert np.isfinite(fit.values).all()


def bent(z: Floats) -> Floats:
    return np.asarray(1.6 * np.tanh(1.2 * z) + 0.2 * z)


@pytest.mark.parametrize(("rows", "seed"), [((20, 60), 0), ((20, 60), 1), ((20, 500), 2), ((20, 500), 3)])
def test_the_bent_curve_is_better_than_each_curve_alone_or_one_for_all(rows: tuple[int, int], seed: int) -> None:
    # truth theta_0 h(z) + theta_1 with a bent h, by segment; expected Brier score on new rows, less that of the truth
    rng = np.random.default_rng(seed)
    theta = np.array([[0.9], [-0.1]]) + np.array([[0.3], [0.5]]) * rng.normal(size=(2, 150))
    sizes = rng.integers(rows[0], rows[1] + 1, 150)
    g = np.repeat(np.arange(150), sizes)
    score = rng.beta(2, 3, len(g))
    tally = tally_of(g, score, rng.random(len(g)) < expit(theta[0, g] * bent(logit(score)) + theta[1, g]))
    curve, fit = pooled_isotonic(tally)
    new = rng.beta(2, 3, 300)
    right = expit(theta[0][:, None] * bent(logit(new)) + theta[1][:, None])
    feature = curve_feature(curve, new)
    ours = expit(fit.values[0][:, None] * feature + fit.values[1][:, None])
    for_all = np.broadcast_to(expit(feature), right.shape)
    own = blocks(tally)
    apart = [
        np.interp(new, tally.score[own.first_cell[a:b]], own.value[a:b])
        for a, b in zip(own.starts, np.append(own.starts[1:], len(own.value)), strict=True)
    ]
    error = [((p - right) ** 2).mean() for p in (ours, for_all, np.array(apart))]
    assert error[0] < 0.7 * min(error[1:])
