"""Structured vector and matrix scaling."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calframe._fitting._softmax import matrix, temperature, vector
from calframe._fitting._structured import StructuredMaps, apply_structured, structured
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats
from tests._softmax_maps import alone, least, losses, shuffled, simulated, twice
from tests._vector_rows import vectors_of

Kind = Literal["vector", "matrix"]
KINDS: list[Kind] = ["vector", "matrix"]


def mixed(vectors: Vectors, t: float) -> Floats:
    n = vectors.weight.sum()
    return (1 - 1 / (n + 1)) * softmax(np.log(vectors.scores) / t, axis=1) + 1 / ((n + 1) * vectors.classes)


def calibrated_by(vectors: Vectors, fit: StructuredMaps) -> Floats:
    return apply_structured(vectors.scores, fit, vectors.segment)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rho", "tau", "strengths"), [(1.0, 1.0, (1.0, 1.0, 1.0)), (0.5, 0.8, (3.0, 0.2, 0.01))])
def test_least_published_objective(kind: Kind, rho: float, tau: float, strengths: tuple[float, float, float]) -> None:
    vectors = simulated(1, rows=150)
    k, n = 3, vectors.weight.sum()
    t = temperature(vectors).values[0, 0]
    x = np.log(mixed(vectors, t))

    def predictor(u: Floats) -> Floats:
        return x * (1 + u[:k]) + u[k:] if kind == "vector" else x + x @ u[k:].reshape(k, k).T + u[:k]

    def objective(u: Floats) -> float:
        lost = -log_softmax(predictor(u), axis=1)[np.arange(len(x)), vectors.label]
        loss = np.average(lost, weights=vectors.weight)
        if kind == "vector":
            return float(loss + k**rho / n**tau * (strengths[0] * u[k:] @ u[k:] + strengths[1] * u[:k] @ u[:k]))
        v = u[k:].reshape(k, k)
        own = np.diag(v) @ np.diag(v)
        loss += k**rho / n**tau * (strengths[0] * u[:k] @ u[:k] + strengths[1] * own)
        return float(loss + (k * (k - 1)) ** rho / n**tau * strengths[2] * ((v**2).sum() - own))

    found = least(objective, np.zeros(2 * k if kind == "vector" else k + k * k))
    fit = structured(
        vectors,
        kind=kind,
        class_power=rho,
        row_power=tau,
        intercept=strengths[0],
        diagonal=strengths[1],
        off_diagonal=strengths[2],
    )
    np.testing.assert_allclose(calibrated_by(vectors, fit), softmax(predictor(found.x), axis=1), atol=1e-7)
    assert fit.temperature[0] == t
    assert fit.uniform[0] == 1 / (n + 1)
    assert fit.maps.converged.all()


def test_maps_of_probmetrics() -> None:
    # probmetrics 1.3.0, get_calibrator("svs") and ("sms"), fitted on these four rows
    vectors = vectors_of([[0.8, 0.1, 0.1]] * 4, [0, 0, 1, 2])
    svs = [0.4776407, 0.2611797, 0.2611797]
    sms = [0.4822525, 0.2588738, 0.2588738]
    for kind, expected in zip(KINDS, (svs, sms), strict=True):
        found = calibrated_by(vectors, structured(vectors, kind=kind))
        np.testing.assert_allclose(found[0], expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weighted_rows_in_any_order(kind: Kind) -> None:
    vectors = simulated(2, rows=300, classes=4, segments=3)
    fit = structured(vectors, kind=kind)
    p = calibrated_by(vectors, fit)
    double = twice(vectors)
    again = structured(double, kind=kind)
    np.testing.assert_allclose(again.maps.slopes, fit.maps.slopes, atol=1e-9)
    order = np.array([3, 0, 2, 1])
    turned = shuffled(vectors, order)
    np.testing.assert_allclose(calibrated_by(turned, structured(turned, kind=kind)), p[:, order], atol=1e-9)
    for number in range(3):
        part = alone(vectors, number)
        here = vectors.segment == number
        np.testing.assert_allclose(calibrated_by(part, structured(part, kind=kind)), p[here], atol=1e-9)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_penalties_hold_the_map_and_weaken_with_the_rows(kind: Kind) -> None:
    vectors = simulated(3, rows=200)
    fit = structured(vectors, kind=kind, intercept=1e7, diagonal=1e7, off_diagonal=1e7)
    np.testing.assert_allclose(fit.maps.slopes[0], np.eye(3), atol=1e-5)
    np.testing.assert_allclose(calibrated_by(vectors, fit), mixed(vectors, fit.temperature[0]), atol=1e-5)
    gaps = []
    for repeats in (100, 1000, 10_000):  # the same table, more often: the penalties fall as 1 / n
        many = vectors_of(vectors.scores, vectors.label, weight=vectors.weight * repeats)
        fit = structured(many, kind=kind)
        start = vectors_of(mixed(many, fit.temperature[0]), many.label, weight=many.weight)
        free = vector(start) if kind == "vector" else matrix(start)
        gaps.append(np.abs(fit.maps.slopes[0] - free.slopes[0]).max())
        p = vectors_of(calibrated_by(many, fit), many.label, weight=many.weight)
        assert losses(p, np.eye(3), np.zeros(3)) <= losses(start, np.eye(3), np.zeros(3))
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]


@pytest.mark.parametrize("kind", KINDS)
def test_the_ends_of_the_temperature_are_the_published_ones(kind: Kind) -> None:
    certain = [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]
    scores = [*certain, *certain, *[[1 / 3] * 3] * 3]
    vectors = vectors_of(scores, [0, 1, 2, 2, 0, 1, 0, 1, 2], segment=[0] * 3 + [1] * 3 + [2] * 3)
    fit = structured(vectors, kind=kind)
    np.testing.assert_allclose(fit.temperature, [math.exp(-16), math.exp(16), 1.0])
    p = calibrated_by(vectors, fit)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p[3:], 1 / 3, atol=1e-5)
    assert p[:3].max(axis=1).min() > 0.7


def test_logits_and_their_softmax_are_the_same() -> None:
    vectors = simulated(4)
    logits = vectors_of(np.log(vectors.scores) + 7.0, vectors.label, weight=vectors.weight)
    fit, expected = structured(logits, is_logit=True), structured(vectors)
    np.testing.assert_allclose(fit.maps.slopes, expected.maps.slopes, atol=1e-9)
    p = apply_structured(logits.scores, fit, logits.segment, is_logit=True)
    np.testing.assert_allclose(p, calibrated_by(vectors, expected), atol=1e-9)
