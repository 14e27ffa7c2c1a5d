"""The spline in log-odds: its optimum, its penalty, its rows left out, and its shape."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import expit

import calframe
from calframe._fitting import _spline
from calframe._fitting._fitted import Outcome
from calframe._fitting._spline import SplineKnots, spline, spline_at
from calframe._kernels._logistic import cox_fit, logit
from calframe._kernels._tally import Tally
from calframe._typing import Floats
from tests._regressions import one, tally_of
from tests._tallied import reference_entries


def rows(seed: int, count: int, truth: Any = lambda z: 1.5 * np.tanh(z)) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 3, count)
    return score, (rng.random(count) < expit(truth(logit(score)))).astype(float)


def at(fit: SplineKnots, score: Any, segment: int = 0) -> Floats:
    z = logit(np.asarray(score, float))
    return spline_at(fit, z, np.full(len(z), segment))


# ---------------------------------------------------------------- by hand
def test_two_scores_have_their_rates() -> None:
    # a natural spline on two knots is a straight line, which fits two rates exactly: log-odds -ln 3 and ln 3
    tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.9]), np.array([8.0, 8.0]), np.array([2.0, 6.0]))
    fit = spline(tally)
    np.testing.assert_allclose(fit.y, [-math.log(3), math.log(3)], atol=1e-12)
    np.testing.assert_allclose(fit.x, [-math.log(9), math.log(9)], rtol=1e-14)
    assert fit.outcome.tolist() == [Outcome.FINE]
    np.testing.assert_allclose(at(fit, [0.5, 1 / 82]), [0.0, -2 * math.log(3)], atol=1e-12)  # 81 = 9^2: twice as far


def test_falling_rates_become_the_overall_rate() -> None:
    # 6 of 8, then 2 of 8: the best non-decreasing curve is constant at 1/2
    tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.9]), np.array([8.0, 8.0]), np.array([6.0, 2.0]))
    fit = spline(tally)
    np.testing.assert_allclose(fit.y, 0.0, atol=1e-12)
    assert fit.outcome.tolist() == [Outcome.BOUND]


def test_segments_without_a_fit_say_why() -> None:
    tally = tally_of([0, 0, 1, 1, 2, 2, 3, 3], [0.1, 0.4, 0.2, 0.3, 0.5, 0.5, 0.6, 0.9], [0, 1, 1, 1, 0, 1, 1, 0])
    fit = spline(tally)
    expected = [Outcome.SEPARABLE, Outcome.ONE_CLASS, Outcome.ONE_SCORE, Outcome.SEPARABLE]
    assert fit.outcome.tolist() == expected
    assert fit.starts.tolist() == [0, 1, 2, 3]
    assert np.isnan(fit.y).all()
    assert np.isnan(at(fit, [0.2, 0.9], 1)).all()
    # by hand: no segment with two scores is separable with smoothed targets
    again = spline(tally, smoothing=True)
    assert np.isfinite(again.y[again.starts[[0, 3]]]).all()


# ---------------------------------------------------------------- the definition
def natural(fit: SplineKnots) -> CubicSpline:
    return CubicSpline(fit.x, fit.y, bc_type="natural")


@pytest.mark.parametrize("seed", range(3))
def test_the_curve_is_the_natural_spline_of_scipy(seed: int) -> None:
    fit = spline(one(*rows(seed, 400)))
    peer = natural(fit)
    z = np.linspace(fit.x[0], fit.x[-1], 999)
    np.testing.assert_allclose(spline_at(fit, z, np.zeros(999, int)), peer(z), atol=1e-8)
    np.testing.assert_allclose(fit.curvature, peer(fit.x, 2), atol=1e-6 * (1 + np.abs(fit.curvature).max()))
    far = np.array([fit.x[0] - 3.0, fit.x[-1] + 2.0])
    slopes = peer(fit.x[[0, -1]], 1)
    line = fit.y[[0, -1]] + slopes * (far - fit.x[[0, -1]])
    np.testing.assert_allclose(spline_at(fit, far, np.zeros(2, int)), line, atol=1e-6)


def penalised(fit: SplineKnots, score: Floats, label: Floats) -> Any:
    """Return the function of the knot values that is minimised, from scipy's splines and a numerical integral."""
    z = logit(score)
    scale = z.std() ** 3 * fit.strength[0]

    def loss(values: Floats) -> float:
        curve = CubicSpline(fit.x, values, bc_type="natural")
        bent = sum(quad(lambda t: curve(t, 2) ** 2, a, b)[0] for a, b in zip(fit.x[:-1], fit.x[1:], strict=True))
        return float(np.logaddexp(0.0, np.where(label > 0, -1.0, 1.0) * curve(z)).mean() + scale * bent / 2.0)

    return loss


def test_no_curve_has_a_larger_penalised_likelihood() -> None:
    score, label = rows(4, 120)
    fit = spline(one(score, label), knots=6)
    assert fit.outcome.tolist() == [Outcome.FINE]
    loss = penalised(fit, score, label)
    found = minimize(loss, fit.y + 0.1, method="BFGS")
    assert loss(fit.y) <= found.fun + 1e-12
    gradient = [(loss(fit.y + h) - loss(fit.y - h)) / 2e-4 for h in 1e-4 * np.eye(len(fit.x))]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)  # the function is convex, so this is its minimum


def test_under_the_constraint_no_slope_that_is_allowed_gains() -> None:
    # where d_j = 0 the gradient may only lead outside, elsewhere it is 0
    score, label = rows(1, 300, lambda z: 2.0 * np.abs(z) - 1.0)
    tally = one(score, label)
    fit = spline(tally)
    assert fit.outcome.tolist() == [Outcome.BOUND]
    z = logit(tally.score)
    basis = _spline._basis((z - fit.x[0]) / z.std(), (fit.x - fit.x[0]) / z.std())
    theta = np.linalg.lstsq(basis.value, fit.y, rcond=None)[0]
    p = expit(basis.cells @ theta)
    gradient = basis.cells.T @ (tally.positive - p) / len(z) - fit.strength[0] * basis.penalty @ theta
    free = np.append(True, theta[1:] > 1e-8)
    np.testing.assert_allclose(gradient[free], 0.0, atol=1e-7)
    assert (gradient[~free] <= 1e-7).all()
    assert (~free).any()


@pytest.mark.parametrize("seed", range(3))
def test_rows_left_out_as_if_fitted_without_them(seed: int) -> None:
    count = 100
    score, label = rows(seed, count)
    order = np.argsort(score)
    z, y = logit(score[order]), label[order]
    share = np.full(count, 1 / count)
    segment = _spline._Segment(z, share * y, share * (1 - y), share)
    knots = _spline._knots(z, share, 12, 0.01)
    basis = _spline._basis((z - z[0]) / z.std(), (knots - z[0]) / z.std())
    theta, side = np.zeros(len(knots)), np.where(y > 0, -1.0, 1.0)
    approximate, exact, freedoms = [], [], []
    for strength in _spline._STRENGTHS[4:-4:2].tolist():
        theta = _spline._fitted(segment, basis, strength, theta)
        inside, loss, freedom = _spline._losses(segment, basis, strength, theta)
        without = [
            _spline._fitted(segment._replace(yes=kept * y, no=kept * (1 - y)), basis, strength, theta)
            for kept in share * (1 - np.eye(count))
        ]
        odds = (basis.cells * np.array(without)).sum(axis=1)
        exact.append(np.logaddexp(0.0, side * odds).mean())
        approximate.append(loss)
        freedoms.append(freedom)
        assert inside == pytest.approx(np.logaddexp(0.0, side * (basis.cells @ theta)).mean(), rel=1e-12)
        cost = exact[-1] - inside
        if freedom < 6:  # what one Newton step ignores is of relative order freedom / rows
            assert loss == pytest.approx(exact[-1], abs=cost * 4 * freedom / count)
    assert exact[int(np.argmin(approximate))] <= min(exact) + 0.001  # nearly the same choice is made
    assert (np.diff(freedoms) > 0).all()
    assert 2.0 <= freedoms[0] <= freedoms[-1] <= len(knots)


# ---------------------------------------------------------------- what it should find
def test_a_straight_truth_is_the_maximum_likelihood_line() -> None:
    tally = one(*rows(11, 3000, lambda z: 0.6 * z + 0.3))
    fit, line = spline(tally), cox_fit(tally)
    assert fit.strength[0] == 1e3
    assert fit.freedom[0] == pytest.approx(2.0, abs=1e-3)
    z = np.linspace(-3, 3, 31)
    found = spline_at(fit, z, np.zeros(31, int))
    np.testing.assert_allclose(found, line.slope[0] * z + line.intercept[0], atol=1e-3)


def test_a_bent_truth_is_found_better_than_by_a_line() -> None:
    gain = []
    z = logit(np.random.default_rng(0).beta(2, 3, 5000))
    chance = expit(1.5 * np.tanh(z))
    for seed in range(10):
        tally = one(*rows(seed, 1000))
        fit, line = spline(tally), cox_fit(tally)
        curve = spline_at(fit, z, np.zeros(len(z), int))
        straight = line.slope[0] * z + line.intercept[0]
        loss = [np.mean(np.logaddexp(0.0, odds) - chance * odds) for odds in (curve, straight)]
        gain.append(loss[1] - loss[0])
    assert min(gain) > 0.0


def test_reference_tables_are_judged_as_by_the_peer(reference_folder: Path) -> None:
    # splinecalib: unconstrained, on random knots; so only the losses on the other half are comparable
    count = 0
    for entry, (score, label, _) in reference_entries(reference_folder, "cal", "spline"):
        fit = spline(one(score[::2], label[::2]))
        chance, y = expit(at(fit, score[1::2])), label[1::2]
        brier = np.mean((chance - y) ** 2)
        log_loss = -np.mean(np.log(np.where(y > 0, chance, 1 - chance)))
        assert brier <= entry["value"]["holdout_brier"] + 0.001
        assert log_loss <= entry["value"]["holdout_logloss"] + 0.004
        count += 1
    assert count >= 4


# ---------------------------------------------------------------- properties
CELLS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 1.0, 1e-17, 0.5, 0.5 + 1e-16]), st.floats(0, 1)),
        st.integers(0, 20),
        st.integers(0, 20),
    ),
    min_size=1,
    max_size=25,
)


def counted(cells: list[Any]) -> Tally:
    score = [s for s, k, m in cells for _ in range(k + m)] or [0.5]
    label = [float(y < k) for _, k, m in cells for y in range(k + m)] or [1.0]
    return one(score, label)


@settings(max_examples=60, deadline=None)
@given(cells=CELLS)
def test_no_curve_decreases_and_all_are_finite(cells: list[Any]) -> None:
    fit = spline(counted(cells))
    if fit.outcome[0] not in (Outcome.FINE, Outcome.BOUND):
        assert np.isnan(fit.y).all()
        return
    z = np.unique(np.concatenate([np.linspace(-40, 40, 4001), fit.x, np.nextafter(fit.x, 99), fit.x - 1e-9]))
    found = spline_at(fit, z, np.zeros(len(z), int))
    assert np.isfinite(found).all()
    assert (np.diff(found) >= -1e-12 * (1 + np.abs(found[1:]))).all()
    assert (np.diff(fit.x) > 0).all()
    assert len(fit.x) <= 30


def segments(seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    segment = rng.integers(0, 6, 500)
    score = np.round(rng.beta(1.5, 2, 500), 2)
    label = (rng.random(500) < expit(1.5 * np.tanh(logit(score, 0.01)) + 0.3 * segment)).astype(float)
    return segment, score, label, rng.integers(1, 4, 500).astype(float)


def close(found: SplineKnots, expected: SplineKnots) -> None:
    assert found.outcome.tolist() == expected.outcome.tolist()
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.strength, expected.strength, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_weight_two_is_the_row_twice_and_scale_does_not_matter(seed: int) -> None:
    segment, score, label, weight = segments(seed)
    often = [np.repeat(v, weight.astype(int)) for v in (segment, score, label)]
    close(spline(tally_of(segment, score, label, weight, frequency=True)), spline(tally_of(*often)))
    for factor in (1e-100, 3.0, 1e100):
        scaled = tally_of(segment, score, label, weight * factor)
        close(spline(scaled), spline(tally_of(segment, score, label, weight)))


@pytest.mark.parametrize("seed", range(2))
def test_several_segments_at_once_are_each_alone(seed: int) -> None:
    segment, score, label, weight = segments(seed)
    tally = tally_of(segment, score, label, weight)
    together = spline(tally)
    alone = [spline(tally.part(g, g + 1)) for g in range(len(tally))]
    np.testing.assert_array_equal(together.y, np.concatenate([fit.y for fit in alone]))
    z, numbers = np.tile(np.linspace(-5, 5, 50), 6), np.repeat(np.arange(6), 50)
    apart = [spline_at(fit, np.linspace(-5, 5, 50), np.zeros(50, int)) for fit in alone]
    np.testing.assert_allclose(spline_at(together, z, numbers), np.concatenate(apart), rtol=1e-14)


def test_logits_are_the_scores_they_belong_to() -> None:
    score, label = rows(3, 300)
    tally = one(score, label)
    close(spline(replace(tally, score=logit(tally.score)), is_logit=True), spline(tally))


def test_merging_many_scores_changes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = one(*rows(5, 6000))
    merged, line = spline(tally), cox_fit(tally)
    monkeypatch.setattr(_spline, "_CELLS", 10**6)
    whole = spline(tally)
    z = np.linspace(-4, 4, 81)
    found, expected = (spline_at(fit, z, np.zeros(81, int)) for fit in (merged, whole))
    error = np.sqrt(line.intercept_variance + 2 * z * line.covariance + z**2 * line.slope_variance)
    assert (np.abs(found - expected) < 0.01 * error).all()  # of the straight line's, which is smaller than its own


@pytest.mark.parametrize("reach", [1.8, 2.9])
def test_a_merged_score_stays_between_the_first_and_the_last(reach: float) -> None:
    score = expit(np.linspace(-reach, reach, 5000))  # here weight * z / weight of the first is 1e-16 below z
    fit = spline(one(score, np.arange(5000) % 2 == 0))  # labels that take turns: half of each, at any score
    np.testing.assert_allclose(spline_at(fit, np.array([-reach, 0.0, reach]), np.zeros(3, int)), 0.0, atol=0.01)


def test_weights_beyond_rounding_have_a_curve_or_none() -> None:
    rng = np.random.default_rng(0)
    segment, score = np.repeat(np.arange(30), 20), rng.random(600)
    tally = tally_of(segment, score, rng.random(600) < 0.5, 10.0 ** rng.uniform(-90, 90, 600))
    fit = spline(tally)
    known = np.isin(fit.outcome, [Outcome.FINE, Outcome.BOUND])
    assert np.isfinite(fit.y[np.repeat(known, np.diff(np.append(fit.starts, len(fit.x))))]).all()
    assert set(fit.outcome[~known].tolist()) <= {Outcome.SEPARABLE}


def test_weight_two_is_the_row_twice_whatever_weights_are() -> None:
    rng = np.random.default_rng(11)
    table = pl.DataFrame({"p": rng.uniform(size=60), "y": rng.integers(0, 2, 60), "w": np.full(60, 2.0)})
    heavy = calframe.fit(table, label="y", score="p", method="spline", weight="w").apply(table)["p_calibrated"]
    twice = calframe.fit(pl.concat([table, table]), label="y", score="p", method="spline").apply(table)["p_calibrated"]
    np.testing.assert_allclose(heavy.to_numpy(), twice.to_numpy(), rtol=0, atol=1e-12)
