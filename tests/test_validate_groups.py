"""Rows that are not independent: `validate` with groups, against an independent computation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calframe
from tests._tables import approx, rows
from tests.test_validate import CLASSES, drawn, only, validated


def clustered(gain: Any, weight: Any, group: Any, *, comparisons: int, level: float = 0.95) -> list[float]:
    """Return the weighted mean of differences and its interval by sums of groups, from the definition."""
    mean, total, groups = np.average(gain, weights=weight), weight.sum(), np.unique(group)
    sums = [(weight * (gain - mean))[group == one].sum() for one in groups]
    sizes = np.array([weight[group == one].sum() for one in groups])
    variance = len(groups) / (len(groups) - 1) * sum(one**2 for one in sums) / total**2
    freedom = total**2 / (sizes**2).sum() - 1
    half = stats.t.ppf(0.5 + level ** (1 / comparisons) / 2, freedom) * math.sqrt(variance)
    return [mean, mean - half, mean + half]


def grouped(groups: int = 30, *, seed: int = 0, power: float = 2.0, rows: int = 12) -> pl.DataFrame:
    """Draw rows that share their score and what happened, but for one in four."""
    rng = np.random.default_rng(seed)
    of_row = np.repeat(np.arange(groups), rng.integers(2, rows, groups))
    shared, alone = rng.uniform(0.05, 0.95, (groups, 2)), rng.uniform(0.05, 0.95, (len(of_row), 2))
    score, chance = np.where(rng.random(len(of_row))[:, None] < 0.25, alone, shared[of_row]).T
    columns = {"y": (chance < score**power).astype(int), "p": score, "who": [f"x{i}" for i in of_row]}
    return pl.DataFrame(columns | {"w": rng.uniform(0.5, 2.0, len(of_row)), "k": rng.integers(0, 3, len(of_row))})


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("loss", ["brier", "log_loss"])
def test_groups_are_taken_as_independent_not_rows(loss: str, weight: str | None) -> None:
    data = grouped().with_columns(g=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("a")).otherwise(pl.lit("b")))
    table = validated(data, methods=["platt"], by="g", group="who", loss=loss, weight=weight).table
    out = calframe.cross_fit(data, label="y", score="p", method="platt", by="g", group="who", weight=weight)
    y, p, q, who = (out[name].to_numpy() for name in ("y", "p", "p_calibrated", "who"))
    w = np.ones(len(y)) if weight is None else data["w"].to_numpy()

    def losses(score: Any) -> Any:
        return (score - y) ** 2 if loss == "brier" else -np.log(np.where(y == 1, score, 1.0 - score))

    gain = losses(p) - losses(q)
    judged = table.filter(pl.col("g").is_not_null() & ~pl.col("verdict").str.starts_with("too few")).height
    for segment, comparisons in ((None, 1), ("a", judged), ("b", judged)):
        mine = np.ones(len(y), dtype=bool) if segment is None else (data["g"] == segment).to_numpy()
        expected = clustered(gain[mine], w[mine], who[mine], comparisons=comparisons)
        row = table.filter(pl.col("g").eq_missing(pl.lit(segment))).to_dicts()[0]
        assert [row["improvement"], row["improvement_low"], row["improvement_high"]] == approx(expected, rel=1e-9)


def test_a_row_twice_in_its_group_is_a_row_of_weight_two() -> None:
    data = grouped()
    twice = pl.concat([data.filter(pl.col("k") >= one) for one in (1, 2)])
    the_map = calframe.fit(drawn(), label="y", score="p", method="platt")  # folds of more rows would be others
    weighted, doubled = (
        rows(validated(table, methods=[the_map], group="who", **more).table)
        for table, more in ((data, {"weight": "k"}), (twice, {}))
    )
    for name in ("improvement", "improvement_low", "improvement_high"):
        assert weighted[name] == approx(doubled[name], rel=1e-9)
    assert weighted["verdict"] == doubled["verdict"]


def test_several_classes_in_groups() -> None:
    rng = np.random.default_rng(4)
    shares = rng.dirichlet([1.0, 1.0, 1.0], 40)
    place = np.array([rng.choice(3, p=row**2 / (row**2).sum()) for row in shares])
    each = np.repeat(np.arange(40), 6)
    columns = {"y": ["abc"[place[i]] for i in each], "who": each}
    data = pl.DataFrame(columns | {name: shares[each, i] for i, name in enumerate("abc")})
    found = validated(data, score=CLASSES, methods=["temperature"], group="who")
    out = calframe.cross_fit(data, label="y", score=CLASSES, method="temperature", group="who")
    after, happened = (
        out.select("p_calibrated_a", "p_calibrated_b", "p_calibrated_c").to_numpy(),
        np.eye(3)[place[each]],
    )
    gain = ((shares[each] - happened) ** 2).sum(axis=1) - ((after - happened) ** 2).sum(axis=1)
    got = [only(found, f"improvement{end}")[0] for end in ("", "_low", "_high")]
    assert got == approx(clustered(gain, np.ones(240), each, comparisons=1), rel=1e-9)


def test_groups_of_one_row_are_rows() -> None:
    # the sums are the rows then, and the variance of the mean is the usual one; only Student's t is not the normal law
    data = drawn(400).with_columns(i=pl.int_range(pl.len()))
    found = validated(data, methods=["platt"], group="i")
    out = calframe.cross_fit(data, label="y", score="p", method="platt", group="i")
    gain = ((out["p"] - out["y"]) ** 2 - (out["p_calibrated"] - out["y"]) ** 2).to_numpy()
    low, high = stats.t.interval(0.95, 399, loc=gain.mean(), scale=gain.std(ddof=1) / 20.0)
    assert [only(found, f"improvement_{end}")[0] for end in ("low", "high")] == approx([low, high], rel=1e-9)


def test_calibrated_scores_of_groups_need_no_map() -> None:
    # 40 tables of 40 groups of 20 equal rows, calibrated: as independent rows 1 in 9 of such tables had a map called
    # better. At the promised 1 in 40 a count above 4 of 40 has a chance of 0.3 %; seeds are fixed.
    better = 0
    for seed in range(40):
        rng = np.random.default_rng([1, seed])
        score = rng.uniform(0.05, 0.95, 40)
        label = (rng.random(40) < score).astype(int)
        table = {"y": np.repeat(label, 20), "p": np.repeat(score, 20), "who": np.repeat(np.arange(40), 20)}
        better += validated(pl.DataFrame(table), group="who").best is not None
    assert better <= 4


def test_few_groups_have_no_verdict() -> None:
    data = drawn(400).with_columns(i=pl.int_range(pl.len()))

    def verdict(group: Any, **arguments: Any) -> Any:
        found = validated(data.with_columns(who=group), **{"methods": ["platt"], "group": "who", **arguments})
        return only(found, "verdict")

    assert verdict(pl.col("i") % 9) == ["too few groups"]
    assert verdict(pl.col("i") % 10) != ["too few groups"]
    # 100 groups, but one has half of the rows: like (1)^2 / (1/2^2 + 99 (1/198)^2) = 3.96 equal ones
    assert verdict(pl.when(pl.col("i") < 200).then(0).otherwise(1 + pl.col("i") % 99)) == ["too few groups"]
    # 30 groups, all positives in 9 of them
    assert verdict(pl.when(pl.col("y") == 1).then(pl.col("i") % 9).otherwise(pl.col("i") % 30)) == ["too few groups"]
    few = validated(
        data.with_columns(who=pl.col("i") % 30, s=pl.col("i") % 30 < 8), methods="platt", by="s", group="who"
    )
    assert only(few, "verdict", scope="segment")[1] == "too few groups"
    assert only(few, "verdict", scope="segment")[0] != "too few groups"
