"""Beta maps with one parameter less: their standard errors, and partial pooling of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import calframe
from calframe._fitting._fitted import Outcome
from calframe._fitting._pooling import pooled
from calframe._kernels._newton import Regression
from tests._regressions import glm

LN_2 = np.log(2)


def table_of(seed: int, *, segments: int = 1, rows: int = 400) -> pl.DataFrame:
    """Make rows of segments that are mapped by a near 1.4, b near 0.6 and c = (a - b) ln 2."""
    rng = np.random.default_rng(seed)
    g = np.repeat(np.arange(segments), rows)
    p = np.round(rng.beta(1.2, 1.5, len(g)), 3).clip(0.001, 0.999)
    a, b = np.array([[1.4], [0.6]]) + 0.2 * rng.normal(size=(2, segments))
    odds = a[g] * np.log(2 * p) - b[g] * np.log(2 * (1 - p))
    return pl.DataFrame({"g": g, "p": p, "y": rng.random(len(g)) < expit(odds)})


def parameters(table: pl.DataFrame, **arguments: Any) -> pl.DataFrame:
    found: pl.DataFrame = calframe.fit(table, label="y", score="p", method="beta", **arguments).table
    return found


def segments_of(table: pl.DataFrame, column: str) -> Any:
    own = table.filter(pl.col("g").is_not_null())
    return np.array([own.filter(parameter=name).sort("g")[column].to_list() for name in "abc"])


def test_standard_errors_with_a_half_kept() -> None:
    table = table_of(0)
    p, y = table["p"].to_numpy(), table["y"].to_numpy().astype(float)
    peer = glm(y, np.log(2 * p), -np.log(2 * (1 - p)))  # statsmodels
    found, step = parameters(table, parameters="ab"), np.array([LN_2, -LN_2])
    assert found["value"].to_list() == pytest.approx([*peer.params, step @ peer.params], rel=1e-8)
    covariance = np.asarray(peer.cov_params())
    variance = [*np.diag(covariance), step @ covariance @ step]
    assert found["sd"].to_list() == pytest.approx(np.sqrt(variance), rel=1e-6)


def test_standard_errors_with_one_slope() -> None:
    table = table_of(1)
    p, y = table["p"].to_numpy(), table["y"].to_numpy().astype(float)
    peer = glm(y, np.log(p / (1 - p)), np.ones_like(p))  # statsmodels
    found = parameters(table, parameters="am")
    assert found["value"].to_list() == pytest.approx(peer.params[[0, 0, 1]], rel=1e-8)
    assert found["sd"].to_list() == pytest.approx(peer.bse[[0, 0, 1]], rel=1e-6)


def test_pooling_with_a_half_kept() -> None:
    # the prior is the same in any linear combinations of features: pooled in (a + b) / 2 and (a - b) / 2, without
    # bounds, c is twice the second times ln 2, and so is its standard deviation
    table = table_of(2, segments=12)
    by = (
        table.group_by("g", "p", maintain_order=True).agg(pl.col("y").sum().cast(pl.Float64), n=pl.len()).sort("g", "p")
    )
    p, y = by["p"].to_numpy(), by["y"].to_numpy()
    log, log_rest = np.log(2 * p), -np.log(2 * (1 - p))
    regression = Regression(
        starts=np.flatnonzero(np.append(True, np.diff(by["g"].to_numpy()) != 0)),
        positive=y,
        negative=by["n"].to_numpy() - y,
        features=(log + log_rest, log - log_rest),
    )
    half = pooled(regression)
    expected = np.array([half.values.sum(axis=0), half.values[0] - half.values[1], 2 * LN_2 * half.values[1]])
    found = parameters(table, parameters="ab", by="g", pooling="partial")
    values, spread = segments_of(found, "value"), segments_of(found, "sd")
    assert (half.outcome == Outcome.FINE).all()
    assert (expected[:2] > 0).all()  # no bound is reached
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(spread[2], 2 * LN_2 * half.standard_deviation[1], rtol=1e-5)
    assert np.ptp(values[2]) > 0.01  # the segments differ


@pytest.mark.parametrize("pooling", ["none", "partial", "complete"])
@pytest.mark.parametrize("smoothing", [False, True])
def test_a_half_stays_a_half(*, pooling: Any, smoothing: bool) -> None:
    table = table_of(3, segments=8, rows=60)
    arguments: dict[str, Any] = {"by": "g", "pooling": pooling, "target_smoothing": smoothing}
    found = calframe.fit(table, label="y", score="p", method="beta", parameters="ab", **arguments)
    at = pl.DataFrame({"g": list(range(9)), "p": [0.5] * 9})
    assert found.apply(at)["p_calibrated"].to_list() == pytest.approx([0.5] * 9, abs=1e-14)
    free = calframe.fit(table, label="y", score="p", method="beta", **arguments)
    assert np.abs(free.apply(at)["p_calibrated"].to_numpy() - 0.5).max() > 1e-3


def test_a_bound_in_all_segments_is_that_of_complete_pooling() -> None:
    # labels that fall as scores rise: a = b = c = 0 everywhere
    table = table_of(4, segments=6).with_columns(~pl.col("y"))
    found = parameters(table, parameters="ab", by="g", pooling="partial")
    assert (segments_of(found, "value") == 0).all()
