"""Intervals hold the true value about as often as they say: the committed simulation, and a small one now.

The committed results are those of ``python tests/simulations/coverage.py``.
"""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest

from tests.simulations._true_values import TRUE_VALUES, measured
from tests.simulations._worlds import SCORES, TRUTHS, WORLDS, World, population
from tests.simulations.coverage import SIZES, Line, all_metrics, read, simulate

LINES = read()
METRICS = all_metrics()
REPLICATES = 400
LEAST, LEAST_ON_AVERAGE = 0.85, 0.88  # of intervals at nominal 90 %


def test_every_metric_world_and_size_was_simulated() -> None:
    found = [(line.metric, line.scores, line.truth, line.n) for line in LINES]
    expected = {(m, w.scores, w.truth, n) for m in METRICS for w in WORLDS for n in SIZES}
    assert set(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_the_committed_coverage_is_what_it_should_be(metric: str) -> None:
    lines = [line for line in LINES if line.metric == metric]
    assert min(line.coverage for line in lines) >= LEAST
    assert fmean(line.coverage for line in lines) >= LEAST_ON_AVERAGE
    assert all(np.isfinite(line.median_width) for line in lines)


def test_few_samples_are_without_an_interval() -> None:
    # a rate of 1.06 % leaves 200 rows without a positive 11.8 % of the time: no ratio, no skill, no rank
    without = {line.metric for line in LINES if line.share_without > 0}
    assert without <= {"ratio", "brier_skill", "resolution", "resolution_corrected", "auc"}
    assert max(line.share_without for line in LINES) == pytest.approx((1 - 0.0106422) ** 200, abs=0.03)


def test_the_intervals_of_larger_samples_are_shorter() -> None:
    width = {(line.metric, line.scores, line.truth, line.n): line.median_width for line in LINES}
    for (metric, scores, truth, n), now in width.items():
        if n > SIZES[0] and metric != "ace":  # more rows fall into more bins, each of which counts the same
            assert now < width[metric, scores, truth, n // 10]


@pytest.mark.parametrize(
    ("scores", "truth", "n"),
    [("beta", "shifted", 200), ("rare", "calibrated", 200), ("ties", "steep", 200), ("rare", "steep", 2_000)],
)
def test_a_new_simulation_agrees(scores, truth, n: int) -> None:
    committed = {line.metric: line for line in LINES if (line.scores, line.truth, line.n) == (scores, truth, n)}
    replicates = REPLICATES if n == SIZES[0] else REPLICATES // 4
    for line in simulate(World(scores, truth), n, replicates=replicates, seed=99):
        before = committed[line.metric]
        assert line.true_value == pytest.approx(before.true_value, rel=0.05, abs=1e-6)
        assert abs(line.coverage - before.coverage) < 4 * standard_error(before, replicates) + 1e-9, line.metric
        assert line.median_width == pytest.approx(before.median_width, rel=0.25)


def standard_error(before: Line, replicates: int) -> float:
    """Return that of the difference of a new and a committed coverage; none is surer than one miss in its samples."""
    chance = min(max(before.coverage, 1 / replicates), 1 - 1 / replicates)
    return float(np.hypot(np.sqrt(chance * (1 - chance) / replicates), before.standard_error))


# ---------------------------------------------------------------- the true values
@pytest.mark.parametrize("scores", SCORES)
def test_calibrated_scores_have_no_error(scores) -> None:
    world = population(World(scores, "calibrated"))
    for metric in ("gap", "ece", "rmsce", "reliability"):
        assert TRUE_VALUES[metric](world) == pytest.approx(0, abs=1e-12)


def test_moments_of_a_beta_law() -> None:
    # beta(2, 3): mean 2/5, variance 1/25; beta(1, 49): mean 1/50, variance 49 / (50^2 * 51)
    for scores, mean, variance in (("beta", 0.4, 0.04), ("rare", 0.02, 49 / 127_500)):
        world = population(World(scores, "calibrated"))
        assert TRUE_VALUES["rate"](world) == pytest.approx(mean)
        assert TRUE_VALUES["sharpness"](world) == pytest.approx(variance)
        assert TRUE_VALUES["brier"](world) == pytest.approx(mean - mean**2 - variance)


@pytest.mark.parametrize(
    "metric", ["rate", "brier", "brier_skill", "log_loss", "accuracy", "ece", "rmsce", "sharpness"]
)
@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("scores", SCORES)
def test_formulas_agree_with_what_is_measured_in_the_population(scores, truth, metric: str) -> None:
    world = population(World(scores, truth))
    assert TRUE_VALUES[metric](world) == pytest.approx(measured(metric)(world), rel=1e-9, abs=1e-12)


def test_samples_are_drawn_from_the_population() -> None:
    rng = np.random.default_rng(3)
    for world in WORLDS:
        score, label = world.draw(100_000, rng)
        table = population(world)
        for name, seen in (("mean_score", score), ("rate", label), ("brier", (score - label) ** 2)):
            assert seen.mean() == pytest.approx(TRUE_VALUES[name](table), abs=4.5 * seen.std() / np.sqrt(100_000))
