"""Maps of the golden table of 240 rows, as the packages fit them whose names are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize

import calframe
from tests.test_golden import TABLE

GRID = pl.DataFrame({"p": [0.0, 0.105, 0.5, 0.87, 1.0]})


def values(**arguments: Any) -> list[float]:
    return calframe.fit(TABLE, label="y", score="p", **arguments).table["value"].to_list()


def test_venn_abers_as_the_package_of_that_name() -> None:
    # venn-abers 1.5.4, which fits scikit-learn's isotonic regression twice for each score
    found = calframe.fit(TABLE, label="y", score="p", method="venn_abers").apply(GRID)
    merged = [0.01449275, 0.02380952, 0.42253521, 0.77551020, 0.94736842]
    assert found["p_calibrated"].to_list() == pytest.approx(merged, abs=5e-9)
    assert found["p_calibrated_low"][2] == pytest.approx(0.41428571, abs=5e-9)
    assert found["p_calibrated_high"][2] == pytest.approx(0.42857143, abs=5e-9)


def test_platt_and_temperature_as_scikit_learn() -> None:
    # its sigmoid is 1 / (1 + exp(a p + b)), so signs are turned, and its temperature is the inverse; both lbfgs
    slope, intercept = values(method="platt", on="score", target_smoothing=True)
    assert [-slope, -intercept] == pytest.approx([-5.4442733, 3.2122201], rel=1e-6)
    assert 1 / values(method="temperature")[0] == pytest.approx(1.0446072, rel=1e-6)


def test_beta_as_betacal() -> None:
    # betacal gives a, b and the midpoint m with a ln m - b ln(1 - m) + c = 0, off the maximum by the tolerance of lbfgs
    a, b, c = values(method="beta")
    m = optimize.brentq(lambda m: a * np.log(m) - b * np.log1p(-m) + c, 1e-9, 1 - 1e-9)
    assert [a, b, m] == pytest.approx([2.0360851, 0.4314336, 0.5680905], rel=1e-3)
    a, b, c = values(method="beta", parameters="am")
    assert [a, b, 1 / (1 + np.exp(c / a))] == pytest.approx([1.0933797, 1.0933797, 0.6122134], rel=1e-3)
    a, b, c = values(method="beta", parameters="ab", floor=np.finfo(float).eps)  # its clip: the table has a 0 and a 1
    assert [a, b] == pytest.approx([2.3811273, 0.1247441], rel=1e-3)
    assert c == pytest.approx((a - b) * np.log(2), rel=1e-12)
