"""Right scores raise no alarm, over 100 seeds and several shapes; wrong ones do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from calframe._report._findings import Findings
from tests._findings import drawn, gathered

SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "beta(2, 5)": lambda rng, n: rng.beta(2.0, 5.0, n),
    "u-shaped": lambda rng, n: rng.beta(0.5, 0.5, n),
    "rare": lambda rng, n: rng.beta(1.0, 20.0, n),
}
SEEDS = 100


def _most(chance: float) -> int:
    """Return how often an event of this chance happens at most in SEEDS runs, 999 times of 1,000."""
    return int(stats.binom.ppf(0.999, SEEDS, chance))


@cache
def _calibrated(shape: str) -> list[Findings]:
    found = []
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, len(shape)])
        table = drawn(rng, SHAPES[shape](rng, 3600), segments=7, periods=12)
        found.append(gathered(table, by="group", time="day"))
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_right_scores_show_no_clear_gap(shape: str) -> None:
    clear = [
        found.with_verdict("over", "under") or found.overall["verdict"] in {"over", "under"}
        for found in _calibrated(shape)
    ]
    assert sum(map(bool, clear)) <= _most(0.01)


@pytest.mark.parametrize("shape", SHAPES)
def test_right_scores_seldom_lean(shape: str) -> None:
    leaning = [
        any(row["pvalue_adjusted"] is not None and row["pvalue_adjusted"] < 0.05 for row in map(_row, found.segments()))
        for found in _calibrated(shape)
    ]
    assert sum(leaning) <= _most(0.05)


def _row(segment: Any) -> dict[str, Any]:
    return segment.row


@pytest.mark.parametrize("shape", SHAPES)
def test_right_scores_never_run_off(shape: str) -> None:
    assert all(found.course is not None and found.course.since is None for found in _calibrated(shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_right_scores_seldom_mark_a_period(shape: str) -> None:
    marked = [set(found.course.table["state"]) != {"in"} for found in _calibrated(shape) if found.course]
    assert sum(marked) <= _most(0.05)


@pytest.mark.parametrize("shape", SHAPES)
def test_right_scores_have_no_crooked_curve(shape: str) -> None:
    assert not any(found.curve_off for found in _calibrated(shape))


@pytest.mark.parametrize("shape", [*SHAPES, "equal"])
def test_right_scores_stay_under_the_ece_named_in_19_of_20_cases(shape: str) -> None:
    if shape == "equal":  # one bin: the distance of a Binomial from its mean
        n, score = 2000, 0.3
        found = gathered(pl.DataFrame({"y": [1] * 600 + [0] * 1400, "p": [score] * n}))
        k = np.arange(n + 1)
        under = stats.binom.pmf(k, n, score)[np.abs(k - n * score) / n <= found.chance.high].sum()
        assert under >= 0.945
        return
    under = [found.overall["ece"] <= found.chance.high for found in _calibrated(shape)]
    assert SEEDS - sum(under) <= _most(0.05)


# Wrong ones do


def test_a_gap_of_8_points_in_one_of_two_segments_is_found() -> None:
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        off = np.where(np.arange(7000) % 2 == 0, 0.08, 0.0)
        found = gathered(drawn(rng, rng.uniform(0.2, 0.7, 7000), off=off, segments=2), by="group")
        assert [segment.row["segment"] for segment in found.with_verdict("over", "under")] in (["g0"], [])
        hits += bool(found.with_verdict("over"))
    assert hits == 20


def test_a_crooked_curve_under_a_right_mean_is_found() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        score = rng.uniform(0.1, 0.9, 5000)
        found = gathered(drawn(rng, score, off=0.5 * (score - 0.5)))
        assert abs(found.overall["gap"]) < 0.03
        assert found.state == "action needed"
