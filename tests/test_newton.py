"""The Newton iteration of many logistic regressions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from calframe._kernels._newton import Regression, maximum_likelihood, solved
from tests._regressions import glm


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), start=st.tuples(st.floats(-3, 3), st.floats(-9, 9)))
def test_every_start_leads_to_the_maximum(seed: int, start: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    x, positive, negative = rng.normal(0, 3, 30), rng.random(30), rng.random(30)
    regression = Regression(starts=np.array([0]), positive=positive, negative=negative, features=(x, None))
    theta, information = maximum_likelihood(regression, start=np.array(start)[:, None])
    p = expit(theta[0] * x + theta[1])
    residual, design = positive - (positive + negative) * p, np.column_stack([x, np.ones(30)])
    np.testing.assert_allclose(residual @ design, 0.0, atol=1e-12 * 30)
    v = (positive + negative) * p * (1 - p)
    expected = design.T @ (design * v[:, None])
    np.testing.assert_allclose(information[..., 0], expected, atol=1e-6 * expected.max())


def test_several_features_and_an_offset_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    segment, count = np.sort(rng.integers(0, 5, 900)), 900
    s, offset = rng.beta(2, 2, count), rng.normal(size=count)
    y = (rng.random(count) < expit(0.8 * np.log(s) + offset)).astype(float)
    features = (np.log(s), -np.log1p(-s), None)  # those of the beta map
    starts = np.searchsorted(segment, np.arange(5))
    regression = Regression(starts=starts, positive=y, negative=1 - y, features=features, offset=offset)
    theta, information = maximum_likelihood(regression)
    for g in range(5):
        here = segment == g
        peer = glm(y[here], np.log(s[here]), -np.log1p(-s[here]), np.ones(here.sum()), offset=offset[here])
        np.testing.assert_allclose(theta[:, g], peer.params, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.linalg.inv(information[..., g]), peer.cov_params(), rtol=1e-6)


def test_one_feature_without_a_constant() -> None:
    # temperature: .8 of logit ln 4 and .2 of -ln 4 fit at 1; half of the rows wrong fit at 0
    z = math.log(4)
    regression = Regression(
        starts=np.array([0, 2]),
        positive=np.array([2.0, 8.0, 5.0, 5.0]),
        negative=np.array([8.0, 2.0, 5.0, 5.0]),
        features=(np.array([-z, z, -z, z]),),
    )
    np.testing.assert_allclose(maximum_likelihood(regression)[0], [[1.0, 0.0]], atol=1e-14)


def test_a_start_is_left_alone_and_nothing_is_fitted_to_nothing() -> None:
    start = np.array([[5.0]])
    regression = Regression(starts=np.array([0]), positive=np.ones(1), negative=np.ones(1), features=(None,))
    assert maximum_likelihood(regression, start=start)[0][0, 0] == pytest.approx(0.0, abs=1e-15)
    assert start.tolist() == [[5.0]]
    theta, information = maximum_likelihood(regression.only(np.array([False])))
    assert (theta.shape, information.shape) == ((1, 0), (1, 1, 0))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_systems_of_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    half = rng.normal(size=(40, size, size + 2))
    matrix, right = half @ half.transpose(0, 2, 1), rng.normal(size=(40, size))
    found = solved(matrix.transpose(1, 2, 0), right.T)
    np.testing.assert_allclose(found.T, np.linalg.solve(matrix, right[..., None])[..., 0], rtol=1e-7)
    singular = np.array([[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0 + 1e-15]]])  # exactly, and to rounding
    assert np.isnan(solved(singular, np.ones((2, 2)))).all()
