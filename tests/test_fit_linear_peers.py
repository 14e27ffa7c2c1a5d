"""Platt, temperature and beta maps against statsmodels, scikit-learn, SciPy and recorded values."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.linear_model import LogisticRegression

from calframe._fitting._beta import beta
from calframe._fitting._fitted import Outcome
from calframe._fitting._linear import platt, smoothed
from tests._linear_maps import MAPS, logits, losses, reference_maps, rows_of, slices
from tests._regressions import glm, one, tally_of

FINE, BOUND = Outcome.FINE, Outcome.BOUND


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("smoothing", [False, True, 0.1])
def test_losses_of_a_bounded_optimiser(kind: str, smoothing: Any) -> None:
    tally = tally_of(*rows_of(8))
    fit, design = MAPS[kind].fit(tally, smoothing=smoothing), MAPS[kind].design(tally)
    found, targets = (
        losses(kind, tally, MAPS[kind].theta(fit), smoothing=smoothing),
        np.array(smoothed(tally, smoothing=smoothing)),
    )
    bounds = [(0, None) if bounded else (None, None) for bounded in MAPS[kind].bounded]
    compared = 0
    for g, cut in enumerate(slices(tally)):
        if fit.outcome[g] not in (FINE, BOUND) or fit.values[0, g] == 1000:
            continue
        x, (yes, no) = design[cut], targets[:, cut]
        best = minimize(  # scipy
            lambda theta, x=x, yes=yes, no=no: -yes @ log_expit(x @ theta) - no @ log_expit(-x @ theta),
            np.ones(x.shape[1]),
            jac=lambda theta, x=x, yes=yes, no=no: x.T @ (no * expit(x @ theta) - yes * expit(-x @ theta)),
            method="L-BFGS-B",
            bounds=bounds,
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 2000},
        )
        assert found[g] == pytest.approx(best.fun, rel=1e-9)
        compared += 1
    assert compared >= 8


def test_lines_of_statsmodels() -> None:
    segment, score, label, weight = rows_of(3)
    tally = tally_of(segment, score, label, weight)
    fit = platt(tally)
    fine = np.flatnonzero(fit.outcome == FINE)
    for g in fine:
        here = segment == np.unique(segment)[g]
        z = logits(replace(tally, score=score[here]))
        peer = glm(label[here], z, np.ones_like(z), weight=weight[here])
        np.testing.assert_allclose(fit.values[:, g], peer.params, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(np.linalg.inv(fit.information[..., g]), peer.cov_params(), rtol=1e-6)
    assert len(fine) >= 6


def test_no_loss_of_scikit_learn_is_lower() -> None:
    segment, score, label, _ = rows_of(5)
    score = np.clip(score, 1e-3, 1 - 1e-3)
    tally = tally_of(segment, score, label)
    fit = platt(tally)
    found = losses("platt", tally, fit.values)
    for g in np.flatnonzero(fit.outcome == FINE):
        here = segment == np.unique(segment)[g]
        z = logit(score[here])[:, None]
        odds = LogisticRegression(C=np.inf).fit(z, label[here]).decision_function(z)
        peer = -log_expit(np.where(label[here] > 0, odds, -odds)).sum()
        assert found[g] <= peer + 1e-9
        assert found[g] == pytest.approx(peer, rel=1e-4)


FOUND = {  # the coefficients that a peer gave
    ("logistic_mle_logit", "statsmodels"): ("platt", lambda v: [v["slope"], v["intercept"]]),
    ("logistic_mle_raw", "statsmodels"): ("raw", lambda v: [v["slope"], v["intercept"]]),
    ("temperature", "statsmodels"): ("temperature", lambda v: [v["beta"]]),
    ("temperature", "scikit-learn"): ("temperature", lambda v: [v["beta"]]),
    ("beta_abm_mle", "statsmodels"): ("abm", lambda v: [v["a"], v["b"], v["c"]]),
    ("platt_logit", "scikit-learn"): ("platt", lambda v: [-v["a"], -v["b"]]),
    ("platt_raw", "scikit-learn"): ("raw", lambda v: [-v["a"], -v["b"]]),
    ("beta_abm", "betacal"): ("abm", lambda v: [*v["map"][:2], level(*v["map"])]),
    ("beta_am", "betacal"): ("am", lambda v: [v["map"][0], level(*v["map"])]),
}


def test_reference_values_with_a_half_kept(reference_folder: Path) -> None:
    # betacal keeps negative coefficients of "ab"; its clip is the floor here, and lbfgs ends within 1e-3 of the maximum
    kept = []
    for entry, score, label in reference_maps(reference_folder, "beta_ab", "betacal"):
        tally = one(score, label)
        fit = beta(tally, parameters="ab", floor=np.finfo(float).eps)
        outcome, peer = Outcome(int(fit.outcome[0])), np.array(entry["value"]["map"])
        known = {"tiny:perfect": Outcome.SEPARABLE, "tiny:const_base": Outcome.ONE_SCORE}
        expected = BOUND if peer.min() < 0 else FINE
        assert outcome == known.get(entry["table"].split(" (")[0], expected)
        assert peer[2] == 0.5
        if outcome != FINE:
            continue
        a, b, c = fit.values[:, 0]
        assert c == pytest.approx((a - b) * math.log(2), abs=1e-12)
        log, log_rest = (np.log(np.maximum(s, np.finfo(float).eps)) for s in (score, 1 - score))
        found, rival = (  # ln 2p and -ln 2(1 - p), as betacal has them
            -log_expit((2 * label - 1) * (v[0] * (log + math.log(2)) - v[1] * (log_rest + math.log(2)))).sum()
            for v in ((a, b), peer)
        )
        assert found <= rival * (1 + 1e-12)
        assert found == pytest.approx(rival, rel=1e-6)
        grid = np.clip(np.array(entry["args"]["grid"]), np.finfo(float).eps, 1 - np.finfo(float).eps)
        np.testing.assert_allclose(
            expit(a * np.log(grid) - b * np.log(1 - grid) + c), np.array(entry["value"]["grid"], float), atol=1e-3
        )
        kept.append(entry["id"])
    assert len(kept) == 9


def level(a: float, b: float, m: float) -> float:
    """Return the c of a beta map that is 1/2 at m."""
    return b * math.log(1 - m) - a * math.log(m)


@pytest.mark.parametrize(("metric", "source"), FOUND)
def test_reference_values(reference_folder: Path, metric: str, source: str) -> None:
    kind, coefficients = FOUND[metric, source]
    compared = 0
    for entry, score, label in reference_maps(reference_folder, metric, source):
        tally, smoothing = one(score, label), metric.startswith("platt")
        fit = MAPS[kind].fit(tally, smoothing=smoothing)
        if fit.outcome[0] not in (FINE, BOUND):  # where a peer's iteration stopped says nothing
            assert entry["table"].startswith(("tiny:perfect", "tiny:const"))
            continue
        theta, peer = MAPS[kind].theta(fit), np.array(coefficients(entry["value"]))[:, None]
        found, rival = (losses(kind, tally, v, smoothing=smoothing)[0] for v in (theta, peer))
        assert found <= rival * (1 + 1e-12)
        if source == "statsmodels":  # the others end early; its 1 - p at 1 is 1e-12, rounded
            grid = np.array(entry["args"]["grid"])
            inside = (grid > 0) & (grid < 1)
            odds = MAPS[kind].design(replace(tally, score=grid[inside])) @ theta[:, 0]
            np.testing.assert_allclose(expit(odds), np.array(entry["value"]["grid"], dtype=float)[inside], atol=1e-6)
        compared += 1
    assert compared >= 8
