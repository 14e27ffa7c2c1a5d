"""Partial pooling: the modes, the prior, the bounds, and the segments that have no fit of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

import calframe
from calframe._fitting._bounds import within
from calframe._fitting._fitted import Outcome
from calframe._fitting._pooling import Pooled, pooled
from calframe._kernels._newton import Prior, Regression, maximum_likelihood
from calframe._typing import Floats
from tests._pooling import SLOPE, simulated


def design(regression: Regression) -> Floats:
    return np.column_stack([np.ones(len(regression.positive)) if x is None else x for x in regression.features])


def pieces(regression: Regression) -> list[tuple[Floats, Floats, Floats]]:
    """Return features, positives and negatives of each segment."""
    x, cuts = design(regression), regression.starts[1:]
    parts = zip(*(np.split(v, cuts) for v in (x, regression.positive, regression.negative)), strict=True)
    return [(x, yes, no) for x, yes, no in parts]


def minus_log_posterior(theta: Floats, x: Floats, yes: Floats, no: Floats, prior: Prior | None) -> float:
    odds = x @ theta
    loss = (yes * np.logaddexp(0.0, -odds) + no * np.logaddexp(0.0, odds)).sum()
    gap = 0.0 if prior is None else (theta - prior.mean) @ prior.precision @ (theta - prior.mean)
    return float(loss + gap / 2.0)


def gradient(theta: Floats, x: Floats, yes: Floats, no: Floats, prior: Prior | None) -> Floats:
    odds = x @ theta
    slope = x.T @ (no * expit(odds) - yes * expit(-odds))
    return slope if prior is None else slope + prior.precision @ (theta - prior.mean)


def prior_of(fit: Pooled) -> Prior:
    return Prior(mean=fit.mean, precision=np.linalg.inv(fit.spread))


# ---------------------------------------------------------------- the modes
def test_the_mode_with_a_prior_by_hand() -> None:
    # 3 of 4 and prior N(0, 1 / tau): tau theta = 3 - 4 expit(theta); at tau = 1 / ln 3, theta = ln 2: 3 - 8/3 = 1/3
    counts = Regression(starts=np.array([0]), positive=np.array([3.0]), negative=np.array([1.0]), features=(None,))
    prior = Prior(mean=np.zeros(1), precision=np.array([[1 / 3 / np.log(2)]]))
    theta, information = maximum_likelihood(counts, prior=prior)
    assert theta[0, 0] == pytest.approx(np.log(2), abs=1e-14)
    assert information[0, 0, 0] == pytest.approx(4 * 2 / 9, rel=1e-9)  # without the prior


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 3), wide=st.floats(1e-2, 1e2))
def test_modes_are_those_of_scipy(seed: int, size: int, wide: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(12, size))
    yes, no = rng.integers(0, 4, 12).astype(float), rng.integers(0, 2, 12).astype(float)  # often separable
    half = rng.normal(size=(size, size)) * wide
    prior = Prior(mean=rng.normal(size=size), precision=np.linalg.inv(half @ half.T + 0.1 * np.eye(size)))
    starts = np.array([0, 1, 5])
    regression = Regression(starts=starts, positive=yes, negative=no, features=tuple(x.T))
    theta, _ = maximum_likelihood(regression, prior=prior)
    for g, (here, k, m) in enumerate(pieces(regression)):
        found = minimize(minus_log_posterior, prior.mean, (here, k, m, prior), method="BFGS", jac=gradient)
        assert minus_log_posterior(theta[:, g], here, k, m, prior) <= found.fun + 1e-12 * (1 + found.fun)
        np.testing.assert_allclose(gradient(theta[:, g], here, k, m, prior), 0.0, atol=1e-9 * (1 + wide))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 3), known=st.booleans())
def test_modes_within_bounds_satisfy_the_conditions_of_the_optimum(*, seed: int, size: int, known: bool) -> None:
    # Karush, Kuhn and Tucker: gradient 0 where free, leading outside where at the bound. Both functions are concave
    rng = np.random.default_rng(seed)
    count = 20
    common = rng.normal(size=count)
    x = [common * rng.normal() + 0.3 * rng.normal(size=count) for _ in range(size)]
    yes, no = rng.random(count) + 0.01, rng.random(count) + 0.01
    half = rng.normal(size=(size + 1, size + 1))
    prior = Prior(mean=rng.normal(size=size + 1), precision=half @ half.T + 0.01 * np.eye(size + 1)) if known else None
    lower = np.append(rng.choice([0.0, -0.3, 0.5], size=size), -np.inf)
    regression = Regression(starts=np.array([0, 10]), positive=yes, negative=no, features=(*x, None))
    free, _ = maximum_likelihood(regression, prior=prior)
    theta = within(regression, free, lower, prior)
    for g, (here, k, m) in enumerate(pieces(regression)):
        slope = gradient(theta[:, g], here, k, m, prior)
        at_bound = theta[:, g] == lower
        assert (theta[:, g] >= lower).all()
        np.testing.assert_allclose(slope[~at_bound], 0.0, atol=1e-9)
        assert (slope[at_bound] >= -1e-9).all()


def test_bounds_that_are_not_violated_change_nothing() -> None:
    regression, _ = simulated(0, 20, (100, 200), (0.1, 0.3))
    free, bounded = pooled(regression), pooled(regression, lower=SLOPE)
    np.testing.assert_array_equal(free.values, bounded.values)
    assert set(bounded.outcome.tolist()) == {Outcome.FINE}


# ---------------------------------------------------------------- the prior
def summaries(regression: Regression, fit: Pooled) -> tuple[Floats, Floats, Floats]:
    """Return H, b = H theta + P (theta - mu), and V of each segment, from their definitions."""
    precision, info, linear, spread = np.linalg.inv(fit.spread), [], [], []
    for g, (x, yes, no) in enumerate(pieces(regression)):
        theta = fit.values[:, g]
        p = expit(x @ theta)
        info.append(x.T @ (x * ((yes + no) * p * (1 - p))[:, None]))
        linear.append(info[-1] @ theta + precision @ (theta - fit.mean))
        spread.append(np.linalg.inv(info[-1] + precision))
    return np.array(info), np.array(linear), np.array(spread)


@pytest.mark.parametrize(("rows", "spread"), [((20, 60), (0.4, 0.6)), ((100, 300), (0.2, 0.4)), ((5, 9), (1.0, 1.0))])
def test_the_prior_solves_the_equations_of_em(rows: tuple[int, int], spread: Any) -> None:
    regression, _ = simulated(1, 60, rows, spread)
    fit = pooled(regression)
    _, linear, variance = summaries(regression, fit)
    mean = np.einsum("sij,sj->si", variance, linear + np.linalg.inv(fit.spread) @ fit.mean)
    np.testing.assert_allclose(mean, fit.values.T, rtol=1e-8, atol=1e-8)  # the mode is the mean, to second order
    gap = mean - fit.mean
    np.testing.assert_allclose(gap.mean(axis=0), 0.0, atol=1e-4 * np.sqrt(fit.spread.max()))
    second = (gap[:, :, None] * gap[:, None, :] + variance).mean(axis=0)
    np.testing.assert_allclose(second, fit.spread, rtol=0, atol=1e-4 * fit.spread.max())
    assert 3 <= fit.rounds <= 20


def test_the_prior_has_the_largest_marginal_likelihood() -> None:
    # theta-hat ~ N(mu, Sigma + H^-1) for the summaries of each segment, maximised by scipy over mu and a root of Sigma
    regression, _ = simulated(2, 40, (80, 150), (0.3, 0.5))
    fit = pooled(regression)
    info, linear, _ = summaries(regression, fit)
    estimate = np.linalg.solve(info, linear[..., None])[..., 0]

    def loss(unknown: Floats) -> float:
        root = np.array([[unknown[2], 0.0], [unknown[3], unknown[4]]])
        total = root @ root.T + np.linalg.inv(info)
        gap = estimate - unknown[:2]
        return float(
            (np.linalg.slogdet(total)[1] + (gap * np.linalg.solve(total, gap[..., None])[..., 0]).sum(1)).sum()
        )

    best = minimize(loss, [0.5, 0.0, 0.5, 0.0, 0.5], method="BFGS", options={"gtol": 1e-6}).x
    root = np.array([[best[2], 0.0], [best[3], best[4]]])
    np.testing.assert_allclose(fit.mean, best[:2], atol=1e-4)
    np.testing.assert_allclose(fit.spread, root @ root.T, atol=1e-4)


def test_a_segment_depends_on_others_through_the_prior_alone() -> None:
    regression, _ = simulated(3, 30, (10, 80), (0.3, 0.5))
    fit = pooled(regression, lower=SLOPE)
    for g in range(30):
        alone = regression.only(np.arange(30) == g)
        free, _ = maximum_likelihood(alone, prior=prior_of(fit))
        mode = within(alone, free, SLOPE, prior_of(fit))
        np.testing.assert_allclose(fit.values[:, g], mode[:, 0], rtol=1e-9, atol=1e-9)


def test_the_order_of_segments_does_not_matter() -> None:
    regression, _ = simulated(4, 30, (10, 80), (0.3, 0.5))
    order = np.random.default_rng(0).permutation(30)
    parts = pieces(regression)
    x, yes, no = (np.concatenate([parts[g][i] for g in order]) for i in range(3))
    sizes = regression.sizes[order]
    shuffled = Regression(starts=np.cumsum(sizes) - sizes, positive=yes, negative=no, features=(x[:, 0], None))
    here, there = pooled(regression), pooled(shuffled)
    np.testing.assert_allclose(there.values, here.values[:, order], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.covariance, here.covariance[..., order], rtol=1e-9, atol=1e-9)


def test_features_may_be_written_in_any_combination() -> None:
    # slope z + intercept = a (3 z - 12) + c: a = slope / 3, c = intercept + 4 slope
    regression, _ = simulated(5, 40, (20, 60), (0.3, 0.5))
    z = regression.features[0]
    assert z is not None
    here, there = pooled(regression), pooled(replace(regression, features=(3.0 * z - 12.0, None)))
    change = np.array([[1 / 3, 0.0], [4.0, 1.0]])
    np.testing.assert_allclose(there.values, change @ here.values, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(there.mean, change @ here.mean, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(there.spread, change @ here.spread @ change.T, rtol=1e-8, atol=1e-8)


def test_weight_two_is_the_row_twice() -> None:
    regression, _ = simulated(6, 15, (10, 40), (0.3, 0.5))
    heavy = replace(regression, positive=2 * regression.positive, negative=2 * regression.negative)
    parts = pieces(regression)
    x, yes, no = (np.concatenate([np.repeat(part[i], 2, axis=0) for part in parts]) for i in range(3))
    twice = Regression(starts=2 * regression.starts, positive=yes, negative=no, features=(x[:, 0], None))
    for name in ("values", "covariance", "mean", "spread"):
        found, expected = (getattr(pooled(r), name) for r in (heavy, twice))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


# ---------------------------------------------------------------- segments without a fit of their own
def test_every_segment_has_a_finite_fit() -> None:
    regression, _ = simulated(7, 40, (1, 12), (0.3, 0.5))
    yes, no = regression.positive.copy(), regression.negative.copy()
    first = regression.sizes[:3].sum()
    yes[:first], no[:first] = 1.0, 0.0  # three of one class
    fit = pooled(replace(regression, positive=yes, negative=no), lower=SLOPE)
    assert np.isfinite(fit.values).all()
    assert np.isfinite(fit.covariance).all()
    assert (fit.standard_deviation > 0).all()
    assert (fit.values[0] >= 0).all()


@pytest.mark.parametrize("rows", [5.0, 1e3, 1e6])
def test_segments_of_pure_classes_stay_finite(rows: float) -> None:
    yes = np.where(np.arange(40) % 2 == 0, rows, 0.0)
    fit = pooled(Regression(starts=np.arange(40), positive=yes, negative=rows - yes, features=(None,)))
    np.testing.assert_allclose(fit.values[0, ::2], -fit.values[0, 1::2], rtol=1e-6)  # both classes are alike
    assert (fit.values[0, ::2] > 2).all()
    assert np.isfinite(fit.values).all()


@pytest.mark.parametrize(
    ("x", "yes", "no", "outcome"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], [1, 1, 0, 0], Outcome.SEPARABLE),
        ([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0], [0, 0, 1, 1], Outcome.SEPARABLE),
        ([0.1, 0.2, 0.3, 0.4], [1, 1, 1, 1], [0, 0, 0, 0], Outcome.ONE_CLASS),
        ([0.2, 0.2, 0.2, 0.2], [0, 1, 0, 1], [1, 0, 1, 0], Outcome.ONE_SCORE),
    ],
)
def test_all_rows_together_may_have_no_fit(x: Any, yes: Any, no: Any, outcome: Outcome) -> None:
    arrays = (np.array(v, float) for v in (x, yes, no))
    feature, positive, negative = arrays
    regression = Regression(starts=np.array([0, 2]), positive=positive, negative=negative, features=(feature, None))
    fit = pooled(regression)
    assert fit.outcome.tolist() == [outcome, outcome]
    assert np.isnan(fit.values).all()
    assert np.isnan(fit.complete).all()


def test_a_falling_map_is_at_its_bound_in_all_segments() -> None:
    # the slope is -.7 everywhere: with 0 in its place only the intercepts are pooled
    regression, _ = simulated(8, 50, (30, 50), (0.0, 0.5), mean=np.array([-0.7, 0.0]))
    fit = pooled(regression, lower=SLOPE)
    intercepts = pooled(replace(regression, features=(None,)))
    assert set(fit.outcome.tolist()) == {Outcome.BOUND}
    assert (fit.values[0] == 0).all()
    np.testing.assert_allclose(fit.values[1], intercepts.values[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fit.complete, [0.0, intercepts.complete[0]], rtol=1e-9, atol=1e-9)
    assert fit.no_spread.tolist() == [True, False]


def test_temperature_and_beta_have_bounds_too() -> None:
    regression, _ = simulated(9, 40, (100, 200), (0.6, 0.3), mean=np.array([0.8, 0.0]))
    z = regression.features[0]
    assert z is not None
    scaled = pooled(replace(regression, features=(z,)), lower=np.zeros(1))
    beta = replace(regression, features=(-np.logaddexp(0, -z), np.logaddexp(0, z), None))  # ln p and -ln(1 - p)
    lower = np.array([0.0, 0.0, -np.inf])
    bent = pooled(beta, lower=lower)
    for fit in (scaled, bent):
        assert {Outcome.FINE, Outcome.BOUND} >= set(fit.outcome.tolist())
        assert np.isfinite(fit.covariance).all()
    assert (scaled.values >= 0).all()
    assert (bent.values[:2] >= 0).all()
    assert (bent.outcome == Outcome.BOUND).any()
    for g, (x, yes, no) in enumerate(pieces(beta)):
        slope = gradient(bent.values[:, g], x, yes, no, prior_of(bent))
        at_bound = bent.values[:, g] == lower
        np.testing.assert_allclose(slope[~at_bound], 0.0, atol=1e-7)
        assert (slope[at_bound] >= -1e-7).all()


# ---------------------------------------------------------------- weights of very different sizes
def unevenly(seed: int, scale: float, kind: str, *, by_segment: bool) -> tuple[Regression, Floats]:
    """Return 8 segments of true probabilities whose weights are 1e-scale to 1e+scale."""
    rng = np.random.default_rng(seed)
    g = np.sort(np.append(np.arange(8), rng.integers(0, 8, 392)))
    p = rng.uniform(size=400)
    yes = rng.uniform(size=400) < p
    weight = 10.0 ** (rng.uniform(-scale, scale, 8)[g] if by_segment else rng.uniform(-scale, scale, 400))
    features, lower = {
        "platt": ((np.log(p) - np.log1p(-p), None), SLOPE),
        "temperature": ((np.log(p) - np.log1p(-p),), np.array([1e-3])),
        "beta": ((np.log(p), -np.log1p(-p), None), np.array([0.0, 0.0, -np.inf])),
    }[kind]
    starts = np.searchsorted(g, np.arange(8))
    return Regression(starts=starts, positive=weight * yes, negative=weight * ~yes, features=features), lower


@pytest.mark.parametrize("kind", ["platt", "temperature", "beta"])
@pytest.mark.parametrize("scale", [3.0, 10.0, 30.0, 60.0, 99.0])
@pytest.mark.parametrize("by_segment", [False, True])
def test_uneven_weights_give_finite_values_or_none_at_all(*, kind: str, scale: float, by_segment: bool) -> None:
    lost = 0
    for seed in range(12):
        regression, lower = unevenly(seed, scale, kind, by_segment=by_segment)
        fit = pooled(regression, lower=lower)
        if set(fit.outcome.tolist()) == {Outcome.SEPARABLE}:  # the heaviest rows separate the classes
            lost += 1
            continue
        for part in (fit.values, fit.standard_deviation, fit.mean, fit.spread, fit.complete):
            assert np.isfinite(part).all()
        assert (fit.values >= lower[:, None]).all()
    assert lost <= (4 if scale > 40.0 and not by_segment else 0)


@pytest.mark.parametrize("weight", [1e15, 1e50, 1e100])
def test_a_segment_with_all_the_weight_has_its_own_fit_and_the_others_follow(weight: float) -> None:
    # to all others the one sharp estimate is all that is known of the prior's mean, and nothing tells a spread
    regression, _ = simulated(3, 12, (60, 90), (0.3, 0.5))
    heavy = np.where(np.repeat(np.arange(12), regression.sizes) == 4, weight, 1.0 / weight)
    fit = pooled(replace(regression, positive=heavy * regression.positive, negative=heavy * regression.negative))
    own, _ = maximum_likelihood(regression.only(np.arange(12) == 4))
    np.testing.assert_allclose(fit.values[:, 4], own[:, 0], rtol=1e-6)
    np.testing.assert_allclose(fit.values, np.repeat(own, 12, axis=1), atol=1e-3)


def test_segments_that_are_known_exactly_keep_their_own_fits() -> None:
    regression, _ = simulated(4, 12, (60, 90), (0.3, 0.5))
    many = replace(regression, positive=1e40 * regression.positive, negative=1e40 * regression.negative)
    fit, own = pooled(many), maximum_likelihood(regression)[0]
    np.testing.assert_allclose(fit.values, own, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fit.mean, own.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(fit.spread, np.cov(own, bias=True), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("method", ["platt", "beta", "temperature", "isotonic", "histogram"])
@pytest.mark.parametrize("scale", [3, 20, 99])
def test_maps_of_uneven_weights_are_finite(method: str, scale: int) -> None:
    for seed in range(8, 12):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=400)
        yes, segment = (rng.uniform(size=400) < p).astype(int), rng.integers(0, 8, 400)
        table = pl.DataFrame({"y": yes, "p": p, "g": segment, "w": 10.0 ** rng.uniform(-scale, scale, 400)})
        found = calframe.fit(table, label="y", score="p", by="g", weight="w", method=method)
        assert (
            found.table.filter(~pl.col("note").fill_null("").str.contains("takes the pooled"))["value"]
            .is_finite()
            .all()
        )
        calibrated = found.apply(table)["p_calibrated"]
        assert calibrated.null_count() == 0
        assert calibrated.is_between(0.0, 1.0).all()
