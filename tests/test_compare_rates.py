"""Comparisons find nothing where there is nothing, and intervals hold the truth: a committed simulation, and a new one.

The committed results are those of ``tests/simulations/compare.py``.
"""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest

from tests.simulations.compare import (
    ALPHA,
    EQUAL,
    UNEQUAL,
    WORLDS,
    Line,
    read,
    simulate,
    true_values,
)

LINES = read()
SIZE = [line for line in LINES if line.kind == "size"]
COVERAGE = [line for line in LINES if line.kind == "coverage"]
LEAST, LEAST_ON_AVERAGE = 0.83, 0.88  # of intervals at nominal 90 %, Monte Carlo errors aside


def error(share: float, samples: float) -> float:
    """Return the Monte Carlo standard error of a share."""
    return math.sqrt(share * (1.0 - share) / samples)


def samples_of(line: Line) -> float:
    """Return how many samples a line is of, from the standard error that it states."""
    return line.share * (1.0 - line.share) / line.standard_error**2 if line.standard_error else math.inf


def test_the_usual_metrics_were_simulated_in_every_world_and_size() -> None:
    assert {"balanced", "rare", "tied", "weighted"} <= set(EQUAL)
    for metric in ("brier", "log_loss", "accuracy", "gap", "auc", "ece"):
        found = {(line.world, line.n) for line in SIZE if line.metric == metric}
        assert found >= {(world, n) for world in EQUAL for n in (50, 200, 2_000)}
        found = {(line.world, line.n) for line in COVERAGE if line.metric == metric}
        assert found >= {(world, n) for world in UNEQUAL for n in (200, 2_000)}


def test_the_population_has_the_values_of_its_integrals() -> None:
    # by quadrature over what the models know, z1 and z2 both standard normal
    world = WORLDS["second steep"]
    node, weight = np.polynomial.hermite_e.hermegauss(120)
    weight = weight / weight.sum()
    found = true_values(world, ["brier", "log_loss", "gap", "auc", "slope"])
    chance = world.chance(node)
    for side, score in enumerate(world.scores(node, node)):
        brier = weight @ (chance * (1.0 - score) ** 2 + (1.0 - chance) * score**2)
        log_loss = -weight @ (chance * np.log(score) + (1.0 - chance) * np.log1p(-score))
        assert found["brier"][side] == pytest.approx(brier, rel=1e-4)
        assert found["log_loss"][side] == pytest.approx(log_loss, rel=1e-4)
        assert found["gap"][side] == pytest.approx(weight @ (score - chance), abs=1e-5)
    assert found["auc"][0] == pytest.approx(found["auc"][1], rel=1e-9)  # both know as much
    assert found["slope"] == pytest.approx((1.0, 0.5), rel=1e-4)  # a calibrated score, and one of twice its logit


@pytest.mark.parametrize("metric", sorted({line.metric for line in SIZE}))
def test_equal_models_differ_as_rarely_as_stated(metric: str) -> None:
    # of so many lines some exceed two Monte Carlo errors by chance: three for each, and two for their mean
    lines = [line for line in SIZE if line.metric == metric]
    errors = [error(ALPHA, samples_of(line)) for line in lines]
    for line, one in zip(lines, errors, strict=True):
        assert line.share <= ALPHA + 3.0 * one
    assert fmean(line.share for line in lines) <= ALPHA + 2.0 * math.hypot(*errors) / len(lines)


@pytest.mark.parametrize("metric", sorted({line.metric for line in COVERAGE}))
def test_intervals_hold_the_true_difference(metric: str) -> None:
    lines = [line for line in COVERAGE if line.metric == metric and not math.isnan(line.share)]
    for line in lines:
        assert line.share >= LEAST - 2.0 * line.standard_error
    assert fmean(line.share for line in lines) >= LEAST_ON_AVERAGE


@pytest.mark.parametrize(("world", "n"), [("balanced", 50), ("rare", 50), ("tied", 200)])
def test_a_new_simulation_finds_nothing_where_there_is_nothing(world: str, n: int) -> None:
    for line in simulate("size", world, n, replicates=150, seed=77, metrics=["brier", "accuracy", "ece"]):
        assert line.share <= ALPHA + 3.0 * error(ALPHA, 150)


@pytest.mark.parametrize("world", ["second shifted", "same, shifted", "calibrated"])
def test_a_new_simulation_holds_the_truth(world: str) -> None:
    for line in simulate("coverage", world, 200, replicates=150, seed=78, metrics=["brier", "auc", "ece", "ratio"]):
        assert line.share >= LEAST - 3.0 * error(LEAST, 150)


def test_a_difference_that_is_there_is_found() -> None:
    # a Brier score 0.012 and an ece 0.10 worse, 2,000 rows; the interval of ece leaves out 0 nearly always
    found = {
        line.metric: line
        for line in simulate(
            "size", "second steep", 2_000, replicates=20, seed=79, metrics=["brier", "log_loss", "ece"]
        )
    }
    assert found["ece"].share == 1.0
    assert found["log_loss"].share >= 0.7
