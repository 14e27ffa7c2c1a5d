"""Partial pooling of the temperature of several classes, and what the maps say of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax
from scipy.stats import norm

import calframe
from calframe._fitting._fitted import Outcome
from calframe._fitting._pooled_temperature import pooled_temperature
from calframe._fitting._pooling import Pooled, pooled
from calframe._fitting._softmax import temperature
from calframe._kernels._newton import Regression
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats

CLASSES = {name: name for name in "abc"}


def simulated(
    seed: int, segments: int, rows: tuple[int, int], spread: float, *, mean: float = 0.7, classes: int = 3
) -> tuple[Vectors, Floats]:
    """Return rows of segments whose 1 / T is normal, and these."""
    rng = np.random.default_rng(seed)
    b = mean + spread * rng.normal(size=segments)
    sizes = rng.integers(rows[0], rows[1] + 1, segments)
    z = 1.5 * rng.normal(size=(sizes.sum(), classes))
    chances = softmax(np.repeat(b, sizes)[:, None] * z, axis=1).cumsum(axis=1)
    label = (chances < rng.random(len(z))[:, None]).sum(axis=1).clip(0, classes - 1)
    return of_rows(sizes, softmax(z, axis=1), label, np.ones(len(z))), b


def of_rows(sizes: Any, scores: Floats, label: Any, weight: Floats) -> Vectors:
    starts = np.cumsum(sizes) - sizes
    return Vectors(starts=starts, scores=np.asfortranarray(scores), label=label, weight=weight, squared=weight**2)


def pieces(vectors: Vectors) -> list[tuple[Floats, Any, Floats]]:
    """Return log scores, labels and weights of each segment."""
    parts = (np.log(vectors.scores), vectors.label, vectors.weight)
    return list(zip(*(np.split(part, vectors.starts[1:]) for part in parts), strict=True))


def log_likelihood(b: float, z: Floats, label: Any, weight: Floats) -> float:
    return float((weight * log_softmax(b * z, axis=1)[np.arange(len(z)), label]).sum())


def information(b: float, z: Floats, weight: Floats) -> float:
    """Return ``sum w Var z``."""
    p = softmax(b * z, axis=1)
    return float((weight * ((p * z**2).sum(axis=1) - (p * z).sum(axis=1) ** 2)).sum())


# ---------------------------------------------------------------- the fit
@pytest.mark.parametrize(("rows", "spread"), [((5, 12), 0.3), ((50, 90), 0.3), ((20, 40), 0.0), ((10, 40), 1.5)])
def test_two_classes_are_the_logit_as_one_feature(rows: tuple[int, int], spread: float) -> None:
    # softmax(b z) of two classes is expit(b (z1 - z0))
    vectors, _ = simulated(0, 40, rows, spread, classes=2)
    z, yes = np.log(vectors.scores[:, 1] / vectors.scores[:, 0]), vectors.label.astype(float)
    binary = Regression(starts=vectors.starts, positive=yes, negative=1.0 - yes, features=(z,))
    here, there = pooled_temperature(vectors), pooled(binary, lower=np.array([1e-3]))
    for name in ("values", "covariance", "mean", "spread", "detectable", "complete"):
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-8, atol=1e-9)
    assert here.outcome.tolist() == there.outcome.tolist()


@pytest.mark.parametrize("classes", [3, 7])
def test_values_are_the_modes(classes: int) -> None:
    vectors, _ = simulated(1, 25, (1, 30), 0.4, classes=classes)
    fit = pooled_temperature(vectors)
    for found, piece in zip(fit.values[0], pieces(vectors), strict=True):

        def loss(b: float, piece: Any = piece) -> float:
            return -log_likelihood(b, *piece) + float((b - fit.mean[0]) ** 2 / fit.spread[0, 0] / 2)

        best = minimize_scalar(loss, bounds=(1e-3, 10.0), method="bounded", options={"xatol": 1e-10})
        assert found == pytest.approx(best.x, abs=1e-6)


def test_the_prior_has_the_largest_marginal_likelihood() -> None:
    # the second-order expansion of each log likelihood at the mode is that of b ~ N(estimate, 1 / H)
    vectors, _ = simulated(2, 40, (30, 80), 0.3)
    fit = pooled_temperature(vectors)
    b, parts = fit.values[0], pieces(vectors)
    known = np.array([information(value, z, weight) for value, (z, _, weight) in zip(b, parts, strict=True)])
    estimate = b + (b - fit.mean[0]) / fit.spread[0, 0] / known  # the log likelihood has this slope at the mode

    def loss(unknown: Floats) -> float:
        return -float(norm.logpdf(estimate, unknown[0], np.sqrt(np.exp(unknown[1]) + 1.0 / known)).sum())

    best = minimize(loss, [1.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    np.testing.assert_allclose([fit.mean[0], fit.spread[0, 0]], [best[0], np.exp(best[1])], rtol=1e-4)
    # V + V P C P V, C = 1 / sum H V P
    inner = 1.0 / (known + 1.0 / fit.spread[0, 0])
    shares = inner / fit.spread[0, 0]
    np.testing.assert_allclose(fit.covariance[0, 0], inner + shares**2 / (known * shares).sum(), rtol=1e-8)


def test_weight_two_is_the_row_twice() -> None:
    vectors, _ = simulated(3, 12, (5, 30), 0.4)
    twice = of_rows(
        2 * vectors.sizes, *(np.repeat(v, 2, axis=0) for v in (vectors.scores, vectors.label, vectors.weight))
    )
    heavy = replace(vectors, weight=2.0 * vectors.weight)
    for name in ("values", "covariance", "mean", "spread"):
        found, expected = (getattr(pooled_temperature(v), name) for v in (heavy, twice))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_logits_are_read_as_their_probabilities() -> None:
    vectors, _ = simulated(4, 12, (5, 30), 0.4)
    logits = replace(vectors, scores=np.log(vectors.scores) + 5.0)
    found = pooled_temperature(logits, is_logit=True).values
    np.testing.assert_allclose(found, pooled_temperature(vectors).values, rtol=1e-8)


def test_a_rising_temperature_is_held_at_its_most_in_all_segments() -> None:
    vectors, _ = simulated(5, 30, (30, 60), 0.0, mean=-0.6)
    fit = pooled_temperature(vectors)
    assert set(fit.outcome.tolist()) == {Outcome.BOUND}
    np.testing.assert_array_equal(fit.values, 1e-3)
    np.testing.assert_array_equal(fit.complete, 1e-3)


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ([0.6, 0.3, 0.1], Outcome.SEPARABLE),
        ([0.2, 0.5, 0.3], Outcome.SEPARABLE),  # what happens has the least
        ([1 / 3, 1 / 3, 1 / 3], Outcome.ONE_SCORE),
    ],
)
def test_all_rows_together_may_have_no_fit(scores: list[float], outcome: Outcome) -> None:
    zeros = np.zeros(12, np.int64)
    fit = pooled_temperature(of_rows(np.full(6, 2), np.array([scores] * 12), zeros, np.ones(12)))
    assert fit.outcome.tolist() == [outcome] * 6
    assert np.isnan(fit.values).all()


# ---------------------------------------------------------------- what pooling is for
def weight_of_own_rows(fit: Pooled) -> float:
    """Return the share of the prior variance that a segment's rows take away, on average."""
    return 1.0 - float(fit.covariance.mean() / fit.spread[0, 0])


def test_it_tends_to_none_with_many_rows_and_to_complete_with_few() -> None:
    gaps, shares = [], []
    for rows in (3, 30, 300, 3000, 12_000):
        vectors, _ = simulated(1, 60, (rows, rows), 0.3)
        fit = pooled_temperature(vectors)
        shares.append(weight_of_own_rows(fit))
        if rows >= 30:
            gaps.append(float(np.abs(fit.values[0] - 1.0 / temperature(vectors).values[0]).max()))
        else:
            assert np.ptp(fit.values) < 0.2 * np.ptp(simulated(1, 60, (3, 3), 0.3)[1])
    assert (np.diff(shares) > 0).all()
    assert shares[0] < 0.3
    assert shares[-1] > 0.95
    assert (np.diff(gaps) < 0).all()
    assert gaps[-1] < 0.01


def test_twice_the_spread_is_less_shrinkage() -> None:
    shares = [weight_of_own_rows(pooled_temperature(simulated(2, 150, (20, 20), s)[0])) for s in (0.15, 0.3, 0.6)]
    assert (np.diff(shares) > 0.1).all()


def table_of(vectors: Vectors) -> pl.DataFrame:
    columns = {name: vectors.scores[:, k] for k, name in enumerate(CLASSES)}
    rows = {"y": np.array(list(CLASSES))[vectors.label], "g": vectors.segment, "w": vectors.weight}
    return pl.DataFrame(rows | columns)


@pytest.mark.parametrize("seed", range(3))
def test_small_segments_gain_out_of_fold_over_both(seed: int) -> None:
    table = table_of(simulated(seed, 250, (10, 30), 0.35)[0])
    loss = {}
    for pooling in ("none", "partial", "complete"):
        found = calframe.cross_fit(
            table, label="y", score=CLASSES, by="g", method="temperature", pooling=pooling, folds=4, rng=seed
        )
        each = found.select(
            pl.coalesce(pl.when(pl.col("y") == name).then(f"p_calibrated_{name}") for name in CLASSES).log()
        )
        loss[pooling] = -float(each.to_series().mean())
    assert loss["partial"] < min(loss["none"], loss["complete"]) - 1e-3


def test_posterior_intervals_cover() -> None:
    # 8 x 200 intervals: a Monte Carlo error of .0055
    inside = []
    for seed in range(8):
        vectors, b = simulated(seed, 200, (40, 120), 0.3, mean=1.2)
        fit = pooled_temperature(vectors)
        inside.append(np.abs(fit.values[0] - b) <= 1.959964 * fit.standard_deviation[0])
    assert np.mean(inside) == pytest.approx(0.95, abs=0.0175)


@pytest.mark.parametrize("scale", [3.0, 20.0, 60.0, 99.0])
def test_uneven_weights_give_finite_temperatures(scale: float) -> None:
    for seed in range(10):
        vectors, _ = simulated(seed, 8, (3, 40), 0.4)
        weight = 10.0 ** np.random.default_rng(seed).uniform(-scale, scale, len(vectors.label))
        fit = pooled_temperature(replace(vectors, weight=weight))
        for part in (fit.values, fit.standard_deviation, fit.mean, fit.spread):
            assert np.isfinite(part).all()
        assert (fit.values >= 1e-3).all()


# ---------------------------------------------------------------- the map
def test_partial_pooling_is_the_default_and_stands_in_the_table(tmp_path: Path) -> None:
    vectors, _ = simulated(0, 12, (10, 40), 0.3)
    table = table_of(vectors)
    found = calframe.fit(table, label="y", score=CLASSES, by="g", method="temperature")
    fit = pooled_temperature(vectors)
    assert found.pooling == "partial"
    own = found.table.filter(pl.col("g").is_not_null())
    np.testing.assert_allclose(own["value"], 1.0 / fit.values[0], rtol=1e-12)
    np.testing.assert_allclose(own["sd"], fit.standard_deviation[0] / fit.values[0] ** 2, rtol=1e-12)
    loaded = calframe.load_map(found.save(tmp_path / "map.json"))
    assert loaded.to_dict() == found.to_dict()
    assert loaded.table.equals(found.table)
    expected = softmax(np.log(vectors.scores) * fit.values[0][vectors.segment][:, None], axis=1)
    got = loaded.apply(table).select(f"p_calibrated_{name}" for name in CLASSES).to_numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_the_standard_error_is_that_of_the_curvature() -> None:
    vectors, _ = simulated(1, 6, (60, 90), 0.2)
    found = calframe.fit(table_of(vectors), label="y", score=CLASSES, by="g", method="temperature", pooling="none")
    rows = found.table.filter(pl.col("g").is_not_null())
    for t, sd, piece in zip(rows["value"], rows["sd"], pieces(vectors), strict=True):
        low, here, high = (log_likelihood(1.0 / each, *piece) for each in (t - 1e-3, t, t + 1e-3))
        assert sd == pytest.approx((-(low - 2.0 * here + high) / 1e-6) ** -0.5, rel=1e-4)


def test_fewer_than_five_segments_are_pooled_completely() -> None:
    table = table_of(simulated(1, 4, (20, 30), 0.2)[0])
    found = calframe.fit(table, label="y", score=CLASSES, by="g", method="temperature")
    assert found.pooling == "complete"
    assert "partial pooling needs 5 segments or more; 4 segments have rows" in found.notes[0]


@pytest.mark.parametrize("method", ["vector", "matrix", "dirichlet", "structured"])
def test_other_maps_of_several_classes_do_not_pool(method: str) -> None:
    table = table_of(simulated(1, 6, (30, 40), 0.2)[0])
    with pytest.raises(calframe.CalframeError, match=f"method='{method}' has no partial pooling.*take 'temperature'"):
        calframe.fit(table, label="y", score=CLASSES, by="g", method=method, pooling="partial")
    assert calframe.fit(table, label="y", score=CLASSES, by="g", method=method).pooling == "none"


def test_a_structured_map_is_all_in_its_table() -> None:
    # P = softmax(W ln q + b), q = (1 - u) softmax(ln p / T) + u / K
    vectors, _ = simulated(2, 1, (300, 300), 0.0)
    table = table_of(vectors)
    found = calframe.fit(table, label="y", score=CLASSES, method="structured")
    value = dict(found.table.select("parameter", "value").iter_rows())
    cooled = softmax(np.log(vectors.scores) / value["temperature"], axis=1)
    q = (1.0 - value["uniform"]) * cooled + value["uniform"] / 3
    slopes = np.array([[value[f"W[{i}, {j}]"] for j in CLASSES] for i in CLASSES])
    expected = softmax(np.log(q) @ slopes.T + np.array([value[f"b[{i}]"] for i in CLASSES]), axis=1)
    got = found.apply(table).select(f"p_calibrated_{name}" for name in CLASSES).to_numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_one_segment_with_all_the_weight_has_its_own_temperature() -> None:
    # its likelihood is so sharp that no prior moves it, and there is nothing to tell a spread from
    vectors, _ = simulated(3, 10, (40, 60), 0.3)
    heavy = np.where(vectors.segment == 4, 1e50, 1e-50)
    fit = pooled_temperature(replace(vectors, weight=heavy))
    own = 1.0 / temperature(vectors).values[0][4]
    np.testing.assert_allclose(fit.values[0], own, rtol=1e-3)
    assert fit.values[0][4] == pytest.approx(own, rel=1e-6)
