"""The pooled curves of isotonic regression and histograms, and partial pooling on them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from calframe._fitting._pooled_curve import PooledCurve, bent, histogram_curve, isotonic_curve, nearest
from calframe._fitting._steps import evaluate, histogram, isotonic, quantile_histogram
from calframe._kernels._building import as_one
from calframe._kernels._logistic import logit
from calframe._kernels._tally import Tally
from calframe._typing import Floats
from tests._exact_fits import max_min, pooled
from tests._regressions import tally_of

ZERO = np.array([0])


def counts(score: Any, rows: Any, positive: Any) -> Tally:
    return Tally.of_counts(ZERO, *(np.array(each, dtype=float) for each in (score, rows, positive)))


def at(curve: PooledCurve, score: Any, *, closed: Any = "left") -> Floats:
    score = np.asarray(score, dtype=float)
    return evaluate(curve.knots, np.zeros(len(score), dtype=np.int64), score, closed=closed)


# ---------------------------------------------------------------- isotonic
FOUR = counts([0.2, 0.4, 0.6, 0.9], [2, 1, 3, 2], [1, 0, 2, 2])  # blocks: 1 of 3 at .2 and .4, 2 of 3, 2 of 2


def test_blocks_are_flat_by_hand() -> None:
    curve = isotonic_curve(FOUR)
    assert curve.knots.x.tolist() == [0.2, 0.4, 0.6, 0.9]
    np.testing.assert_allclose(curve.knots.y, [1.5 / 4, 1.5 / 4, 2.5 / 4, 2.5 / 3], rtol=1e-15)
    assert curve.weight.tolist() == [3, 3, 2]
    np.testing.assert_allclose(curve.plain, [1 / 3, 2 / 3, 1], rtol=1e-15)
    np.testing.assert_allclose(curve.rate, [1.5 / 4, 2.5 / 4, 2.5 / 3], rtol=1e-15)


def test_steps_and_centres_by_hand() -> None:
    steps = isotonic_curve(FOUR, interpolation="step").knots
    assert steps.x.tolist() == [0.2, 0.6, 0.9]
    np.testing.assert_allclose(steps.y, [1.5 / 4, 2.5 / 4, 2.5 / 3], rtol=1e-15)
    centred = isotonic_curve(FOUR, centred=True).knots
    np.testing.assert_allclose(centred.x, [0.8 / 3, 0.6, 0.9], rtol=1e-15)
    np.testing.assert_array_equal(centred.y, steps.y)
    none = counts(
        [0.2, 0.4, 0.6], [2, 1, 3], [0, 0, 2]
    )  # a rate of 0 cannot go further: both ends stay, as in isotonic
    assert isotonic_curve(none, centred=True).knots.x.tolist() == [0.2, 0.4, 0.6]


def test_halves_do_not_turn_the_order_round() -> None:
    # rates 0 of 1 and 1 of 1000: with halves 1/4 would come before 1.5/1001, so both together are 2 of 1003
    curve = isotonic_curve(counts([0.1, 0.2, 0.5], [1, 1000, 10], [0, 1, 9]))
    np.testing.assert_allclose(curve.rate, [2 / 1003, 9.5 / 11], rtol=1e-12)
    np.testing.assert_allclose(curve.plain, [1 / 1001, 0.9], rtol=1e-12)
    assert curve.knots.x.tolist() == [0.1, 0.2, 0.5]


cells = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 1e-17, 2e-17, 1.0, 1 - 2**-53]), st.floats(0, 1)),
        st.integers(1, 9),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=25,
    unique_by=lambda cell: cell[0],
)


def tallied(table: Any) -> Tally:
    score, rows, positive = zip(*sorted(table), strict=True)
    return counts(score, rows, [min(k, n) for k, n in zip(positive, rows, strict=True)])


@settings(max_examples=80, deadline=None)
@given(table=cells)
def test_rates_by_definition(table: Any) -> None:
    # pool adjacent violators in rational arithmetic, halves, and once more by the closed form
    whole = tallied(table)
    exact = pooled(list(zip(whole.score.tolist(), whole.weight.tolist(), whole.positive.tolist(), strict=True)))
    risen = max_min([(float(i), n + 1, k + Fraction(1, 2)) for i, (_, _, n, k) in enumerate(exact)])  # type: ignore[misc]
    score = np.concatenate([whole.score[[first, last]] for first, last, _, _ in exact])
    np.testing.assert_allclose(at(isotonic_curve(whole), score), np.repeat(np.array(risen, float), 2), rtol=1e-12)


@settings(max_examples=80, deadline=None)
@given(table=cells, count=st.integers(1, 12), laplace=st.sampled_from([0.0, 0.1, 3.0]), right=st.booleans())
def test_every_curve_rises_between_0_and_1(table: Any, count: int, laplace: float, right: bool) -> None:  # noqa: FBT001
    whole, closed = tallied(table), "right" if right else "left"
    edges = np.arange(count + 1) / count
    fixed = histogram(whole, edges=edges, closed=closed, smoothing=laplace)  # type: ignore[arg-type]
    curves = [
        isotonic_curve(whole),
        isotonic_curve(whole, centred=True),
        histogram_curve(whole, fixed, closed=closed, smoothing=laplace),  # type: ignore[arg-type]
        histogram_curve(whole, quantile_histogram(whole, count=count, smoothing=laplace), smoothing=laplace),
    ]
    grid = np.unique(np.concatenate([np.linspace(0, 1, 501), edges, whole.score]))
    for curve in curves:
        assert (np.diff(curve.knots.x) >= 0).all()
        rate = at(curve, grid, closed=closed)
        assert (np.diff(rate) >= 0).all()
        assert 0 < rate.min() <= rate.max() < 1
        assert np.isfinite(nearest(curve)).all()
        assert nearest(curve)[0] >= 0


# ---------------------------------------------------------------- histogram
def test_bins_that_rise_have_their_rates() -> None:
    whole = counts([0.1, 0.3, 0.6, 0.9], [4, 2, 3, 9], [1, 1, 2, 8])
    plain = histogram(whole, edges=np.array([0, 0.5, 1]))
    curve = histogram_curve(whole, plain)
    assert curve.knots.x.tolist() == [0, 0.5, 0.5, 1]
    np.testing.assert_allclose(curve.knots.y, np.repeat([2.5 / 7, 10.5 / 13], 2), rtol=1e-15)
    np.testing.assert_allclose(curve.plain, [2 / 6, 10 / 12], rtol=1e-15)
    given_rows = histogram(whole, edges=np.array([0, 0.5, 1]), smoothing=2.0)
    curve = histogram_curve(whole, given_rows, smoothing=2.0)
    np.testing.assert_array_equal(curve.knots.y, given_rows.y)  # Laplace's rows as the method has them
    np.testing.assert_allclose(nearest(curve), [1, 0], atol=1e-9)


def test_bins_that_fall_are_pooled_with_their_halves() -> None:
    # 3.5/5, 1.5/9 and 2.5/4: the first two are 5/14
    whole = counts([0.1, 0.3, 0.9], [4, 8, 3], [3, 1, 2])
    curve = histogram_curve(whole, histogram(whole, edges=np.array([0, 0.2, 0.5, 1])))
    np.testing.assert_allclose(curve.rate, [5 / 14, 5 / 14, 2.5 / 4], rtol=1e-15)
    np.testing.assert_allclose(curve.plain, [3 / 4, 1 / 8, 2 / 3], rtol=1e-15)


@pytest.mark.parametrize("closed", ["left", "right"])
def test_a_border_belongs_to_one_bin(closed: Any) -> None:
    whole = counts([0.2, 0.5, 0.9], [4, 4, 4], [1, 2, 3])
    curve = histogram_curve(whole, histogram(whole, edges=np.array([0, 0.5, 1]), closed=closed), closed=closed)
    low, high = (1.5 / 5, 5.5 / 9) if closed == "left" else (3.5 / 9, 3.5 / 5)
    beside = [0.2, 0.5 - 1e-9, 0.5, 0.5 + 1e-9]
    np.testing.assert_allclose(at(curve, beside, closed=closed), [low, low, high if closed == "left" else low, high])


def test_empty_bins_keep_the_score_within_their_neighbours() -> None:
    # 1.5/6 = .25 up to .2 and 3.5/5 = .7 from .8 on; the bins between keep scores of .25 to .7, the outer ones nothing
    whole = counts([0.15, 0.85], [5, 4], [1, 3])
    curve = histogram_curve(whole, histogram(whole, edges=np.arange(11) / 10))
    score = [0.0, 0.15, 0.2, 0.24, 0.3, 0.5, 0.69, 0.75, 0.8, 0.9, 1.0]
    expected = [0.25, 0.25, 0.25, 0.25, 0.3, 0.5, 0.69, 0.7, 0.7, 0.7, 0.7]
    np.testing.assert_allclose(at(curve, score), expected, rtol=1e-15)
    far = counts([0.15, 0.85], [6, 6], [4, 5])  # 4.5/7 and 5.5/7: both above the scores between .2 and .6
    score, expected = [0.3, 0.6, 0.7, 0.79], [4.5 / 7, 4.5 / 7, 0.7, 5.5 / 7]
    curve = histogram_curve(far, histogram(far, edges=np.arange(11) / 10))
    np.testing.assert_allclose(at(curve, score), expected, rtol=1e-15)


def test_quantile_bins_by_hand() -> None:
    whole = counts([0.1, 0.2, 0.6, 0.8], [2, 2, 2, 2], [0, 1, 1, 2])
    curve = histogram_curve(whole, quantile_histogram(whole, count=2))
    np.testing.assert_allclose(curve.knots.x, [0.1, 0.4, 0.4, 0.8], rtol=1e-15)  # midway
    np.testing.assert_allclose(curve.knots.y, np.repeat([1.5 / 5, 3.5 / 5], 2), rtol=1e-15)


# ---------------------------------------------------------------- slope and intercept of all rows
def test_two_rates_are_reached_exactly() -> None:
    # two blocks, two parameters: logit 1/4 = a + b logit(2.5/9), logit 7/10 = a + b logit(7.5/11)
    curve = isotonic_curve(counts([0.2, 0.8], [8, 10], [2, 7]))
    slope, intercept = nearest(curve)
    np.testing.assert_allclose(expit(slope * logit(curve.rate) + intercept), [1 / 4, 7 / 10], rtol=1e-9)


def test_one_block_has_slope_1() -> None:
    np.testing.assert_allclose(nearest(isotonic_curve(counts([0.2, 0.8], [4, 4], [3, 1]))), [1, 0], atol=1e-12)
    curve = isotonic_curve(counts([0.2, 0.8], [4, 4], [3, 3]))  # equal rates are a block: 6 of 8, with halves 6.5 of 9
    np.testing.assert_allclose(nearest(curve), [1, np.log(3) - np.log(6.5 / 2.5)], rtol=1e-9)


def test_rates_of_0_and_1_alone_leave_the_curve_as_it_is() -> None:
    assert nearest(isotonic_curve(counts([0.2, 0.8], [4, 4], [0, 4]))).tolist() == [1, 0]


def test_a_curve_of_one_value_leaves_the_intercepts() -> None:
    tally = tally_of([0, 0, 0, 1, 1, 1, 1], [0.2, 0.2, 0.7, 0.2, 0.2, 0.7, 0.7], [1, 1, 0, 0, 1, 0, 0])
    curve = isotonic_curve(as_one(tally))
    assert len(curve.rate) == 1
    fit = bent(tally, logit(at(curve, tally.score)))
    assert (fit.values[0] == 1).all()
    assert np.isfinite(fit.values).all()


# ---------------------------------------------------------------- what it is for
def bend(z: Floats) -> Floats:
    return np.asarray(1.6 * np.tanh(1.2 * z) + 0.2 * z)


@pytest.mark.parametrize("kind", ["isotonic", "isotonic, centred", "histogram"])
@pytest.mark.parametrize(("rows", "seed"), [((20, 60), 0), ((20, 60), 1), ((20, 500), 2), ((20, 500), 3)])
def test_the_bent_curve_is_better_than_each_alone_or_one_for_all(kind: str, rows: tuple[int, int], seed: int) -> None:
    # truth theta_0 h(z) + theta_1 with a bent h, by segment; expected losses on new rows, less those of the truth
    rng = np.random.default_rng(seed)
    theta = np.array([[0.9], [-0.1]]) + np.array([[0.3], [0.5]]) * rng.normal(size=(2, 150))
    sizes = rng.integers(rows[0], rows[1] + 1, 150)
    g = np.repeat(np.arange(150), sizes)
    score = rng.beta(2, 3, len(g))
    tally = tally_of(g, score, rng.random(len(g)) < expit(theta[0, g] * bend(logit(score)) + theta[1, g]))
    whole, edges, centred = as_one(tally), np.arange(16) / 15, kind.endswith("centred")
    if kind == "histogram":
        curve = histogram_curve(whole, histogram(whole, edges=edges))
        own, all_rows = histogram(tally, edges=edges), histogram(whole, edges=edges)
    else:
        curve = isotonic_curve(whole, centred=centred)
        own, all_rows = isotonic(tally, centred=centred), isotonic(whole, centred=centred)
    fit = bent(tally, logit(at(curve, tally.score)))
    new = rng.beta(2, 3, 300)
    right = expit(theta[0][:, None] * bend(logit(new)) + theta[1][:, None])
    ours = expit(fit.values[0][:, None] * logit(at(curve, new)) + fit.values[1][:, None])
    for_all = np.broadcast_to(evaluate(all_rows, np.zeros(300, dtype=np.int64), new), right.shape)
    apart = evaluate(own, np.repeat(np.arange(150), 300), np.tile(new, 150)).reshape(right.shape)
    for loss in (brier, log_loss):
        error = [loss(p, right) - loss(right, right) for p in (ours, for_all, apart)]
        assert error[0] < 0.7 * min(error[1:])


def brier(p: Floats, right: Floats) -> float:
    return float((right * (1 - p) ** 2 + (1 - right) * p**2).mean())


def log_loss(p: Floats, right: Floats) -> float:
    with np.errstate(divide="ignore"):
        return float(-(right * np.log(p) + (1 - right) * np.log(1 - p)).mean())


def test_weights_are_rows() -> None:
    rng = np.random.default_rng(5)
    g, score, label, weight = (
        rng.integers(0, 6, 300),
        rng.random(300).round(1),
        rng.random(300),
        rng.integers(1, 4, 300),
    )
    label = (label < score).astype(float)
    once, many = tally_of(g, score, label, weight), tally_of(*(np.repeat(v, weight) for v in (g, score, label)))
    for kind in ({}, {"centred": True}):
        curves = [isotonic_curve(as_one(tally), **kind) for tally in (once, many)]  # type: ignore[arg-type]
        np.testing.assert_allclose(curves[0].knots.y, curves[1].knots.y, rtol=1e-12)
        np.testing.assert_allclose(curves[0].knots.x, curves[1].knots.x, rtol=1e-12)
        fits = [
            bent(tally, logit(at(curve, tally.score))).values for tally, curve in zip((once, many), curves, strict=True)
        ]
        np.testing.assert_allclose(fits[0], fits[1], rtol=1e-8)
