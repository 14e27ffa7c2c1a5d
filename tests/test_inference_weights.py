"""Labels drawn for weighted rows: exact where they are few, and weights that are all the same say nothing."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest

import calframe
from tests._inference import one

RARE = pl.DataFrame({"y": [1] * 2 + [0] * 38, "p": np.resize([0.005, 0.035], 40)})


def test_equal_weights_say_nothing() -> None:
    plain = one(RARE)["pvalue"]
    for weight in (0.1, 1 / 40, 2.0, 3.7, 10.0):  # of which 0.1 and 1/40 have no exact sums
        assert one(RARE.with_columns(w=pl.lit(weight)), weight="w")["pvalue"] == plain
    # exact: all rows lie in one bin, whose error is |K - 0.8| / 40; at least 1.2 is two positives or more
    law = np.ones(1)
    for score in RARE["p"]:
        law = np.convolve(law, [1.0 - score, score])
    exact = 1.0 - law[:2].sum()
    assert plain == pytest.approx(exact, abs=4.0 * math.sqrt(exact * (1.0 - exact) / 1000))


@pytest.mark.parametrize("statistic", ["ece", "mce", "ecce_r", "brier"])
def test_few_rows_of_unequal_weight_are_drawn_one_by_one(statistic: str) -> None:
    # exact: all outcomes of eight rows, each with the chance that the scores give it
    score = np.array([0.1, 0.1, 0.3, 0.3, 0.55, 0.55, 0.9, 0.9])
    weight = np.array([1.0, 2.0, 1.0, 5.0, 2.0, 2.0, 1.0, 3.0])
    table = pl.DataFrame({"p": score, "w": weight})
    outcomes = np.array(list(itertools.product([0, 1], repeat=8)))
    chance = np.where(outcomes == 1, score, 1.0 - score).prod(axis=1)
    every = pl.concat(
        [table.with_columns(y=pl.Series(labels), run=pl.lit(i)) for i, labels in enumerate(outcomes.tolist())]
    )
    values = calframe.metrics(every, label="y", score="p", weight="w", by="run", metrics=[statistic], bins=5)
    value = values.sort("run")[statistic].to_numpy()
    seen = int(np.flatnonzero((outcomes == [1, 0, 0, 1, 0, 1, 1, 0]).all(axis=1))[0])
    up, down = (chance[np.abs(value - value[seen]) < 1e-12].sum() + chance[side].sum() for side in _sides(value, seen))
    sides = 2 if statistic == "brier" else 1
    share = up if sides == 1 else min(up, down)
    found = one(
        table.with_columns(y=pl.Series(outcomes[seen])),
        weight="w",
        statistic=statistic,
        bins=5,
        n_resamples=4000,
    )
    error = math.sqrt(share * (1.0 - share) / 4000)
    assert found["pvalue"] == pytest.approx(min(1.0, sides * share), abs=sides * (4.0 * error + 1 / 4000))


def _sides(value: np.ndarray, seen: int) -> tuple[np.ndarray, np.ndarray]:
    return value > value[seen] + 1e-12, value < value[seen] - 1e-12


@pytest.mark.parametrize(("scores", "weights"), [([0.005, 0.035], [1.0, 2.0]), ([0.1, 0.3, 0.7], [1.0, 5.0])])
def test_weighted_tables_of_forty_rows_are_rejected_in_five_percent_at_most(
    scores: list[float], weights: list[float]
) -> None:
    rng, runs, n = np.random.default_rng(1), 1500, 40
    score, weight = rng.choice(scores, runs * n), rng.choice(weights, runs * n)
    label = (rng.random(runs * n) < score).astype(np.int64)
    table = pl.DataFrame({"y": label, "p": score, "w": weight, "run": np.repeat(np.arange(runs), n)})
    found = calframe.test(table, label="y", score="p", weight="w", by="run", correction="none", n_resamples=199).table
    assert found["reject"].mean() <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / runs)


def test_many_small_groups_are_rejected_in_five_percent_of_families_at_most() -> None:
    # Hosmer and Lemeshow's test, 64 segments of 60 rows: by its law alone 11 % of families reject something
    rng, families = np.random.default_rng(999), 150
    hits = 0
    for _ in range(families):
        score = rng.choice([0.05, 0.2, 0.35, 0.5, 0.7, 0.9], 3840)
        label = (rng.random(3840) < score).astype(np.int64)
        table = pl.DataFrame({"y": label, "p": score, "g": np.arange(3840) % 64})
        hits += bool(calframe.test(table, label="y", score="p", by="g", method="hosmer_lemeshow").table["reject"].any())
    assert hits / families <= 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / families)


@pytest.mark.parametrize(
    "idle", [{"statistic": "brier"}, {"kernel_law": "block"}, {"df": "internal"}, {"alternative": "less"}]
)
def test_options_that_no_method_reads_are_refused(idle: dict[str, str]) -> None:
    [(name, value)] = idle.items()
    with pytest.raises(calframe.ArgumentError, match=f"{name}={value!r} is read by method="):
        one(RARE, method=["gap", "ecce"], **idle)
