"""Tests of several classes whose rows are not independent, and of groups of equal width."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calframe
from calframe._kernels._vectors import Vectors
from calframe._testing._luck import Luck
from tests._inference import CLASSES, class_table

TOY = Path(__file__).parent / "data" / "seed_toy30.csv"
TOY_CLASSES = {1: "p1", 2: "p2", 3: "p3"}
MANY = 999


def found_in(data: pl.DataFrame, **arguments: Any) -> dict[str, Any]:
    asked = {"label": "y", "score": CLASSES, "n_resamples": MANY, **arguments}
    (row,) = calframe.test(data, **asked).table.to_dicts()
    return row


def near(first: float, second: float, draws: int = MANY) -> bool:
    """Return whether two p-values from that many draws each may be of one law."""
    pooled = min(max((first + second) / 2.0, 2.0 / draws), 0.5)
    return abs(first - second) < 4.0 * math.sqrt(2.0 * pooled * (1.0 - pooled) / draws)


# ---------------------------------------------------------------- copies
COPIED: dict[str, dict[str, Any]] = {
    "classwise_ece": {"statistic": "classwise_ece", "bins": 5},
    "confidence_ece": {"statistic": "confidence_ece", "bins": 5},
    "brier": {"statistic": "brier"},
    "groups": {"method": "hosmer_lemeshow", "bins": 5},
    "groups of equal width": {"method": "hosmer_lemeshow", "bins": 5, "strategy": "uniform"},
}


@pytest.mark.parametrize("arguments", COPIED.values(), ids=COPIED)
def test_twenty_copies_of_each_row_keep_the_p_value(arguments: dict[str, Any]) -> None:
    data = class_table(60, seed=4).with_columns(c=pl.int_range(60))
    alone = found_in(data, **arguments)
    copies = pl.concat([data] * 20).sample(fraction=1.0, shuffle=True, seed=1)
    together = found_in(copies, cluster="c", **arguments)
    assert (together["law"], together["n"]) == ("resampled", 1200)
    assert near(alone["pvalue"], together["pvalue"]), (alone["pvalue"], together["pvalue"])
    assert found_in(copies, **arguments)["pvalue"] < together["pvalue"] / 2.0  # what clusters are for


def test_the_survey_keeps_its_p_value() -> None:
    # Silva Filho et al. (2023): 0.0110 and, with ties, 0.0122, by 10,000 draws
    data = pl.read_csv(TOY).with_columns(c=pl.int_range(30))
    label = "y" if "y" in data.columns else "label"
    found = found_in(
        pl.concat([data] * 20), label=label, score=TOY_CLASSES, cluster="c", bins=5, closed="right", n_resamples=4_000
    )
    assert found["statistic"] == pytest.approx(0.1785185185, abs=1e-9)
    assert abs(found["pvalue"] - 0.0122) < 4.0 * math.sqrt(0.0122 * (1 / 4_000 + 1 / 10_000))


def test_whole_vectors_of_one_score_take_clusters_beside_other_tests() -> None:
    data = class_table(80, seed=2).select(y=pl.col("y").clip(upper_bound=1), p=1.0 - pl.col("p0"))
    copies = pl.concat([data.with_columns(c=pl.int_range(80))] * 20)
    asked: dict[str, Any] = {"label": "y", "score": "p", "statistic": "confidence_ece", "n_resamples": MANY}
    methods = ["gap", "resampling", "spiegelhalter"]
    found = calframe.test(copies, method=methods, cluster="c", **asked).table
    assert found["method"].to_list() == methods
    expected = calframe.test(data, method=methods, **asked).table
    assert all(near(*pair) for pair in zip(found["pvalue"], expected["pvalue"], strict=True))


def test_a_row_without_a_cluster_is_one_of_its_own() -> None:
    data = class_table(200, seed=5).with_columns(c=pl.lit(None, dtype=pl.Int64))
    assert found_in(data, cluster="c")["pvalue"] == found_in(data)["pvalue"]  # nothing is shared: the same draws


def test_counts_of_rows_in_clusters_are_rows() -> None:
    data = class_table(60, seed=6).with_columns(c=pl.int_range(60) // 2)
    counted = found_in(data, cluster="c", weight="k", weight_kind="frequency")
    rows = data.select(pl.all().repeat_by("k").explode())
    assert counted["statistic"] == pytest.approx(found_in(rows, cluster="c")["statistic"], rel=1e-12)
    assert near(counted["pvalue"], found_in(rows, cluster="c")["pvalue"])


# ---------------------------------------------------------------- what is shared
def vectors(scores: np.ndarray, label: np.ndarray, cluster: np.ndarray | None) -> Vectors:
    one = np.ones(len(label))
    return Vectors(starts=np.array([0]), scores=scores, label=label, weight=one, squared=one, cluster=cluster)


def test_each_row_keeps_the_chances_of_its_scores() -> None:
    scores = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.2, 0.5, 0.3], [0.0, 0.25, 0.75]])
    label = np.array([1, 0, 1, 2])
    for cluster in (None, np.array([0, 0, 0, -1])):
        luck, rng, many = Luck.of(vectors(scores, label, cluster)), np.random.default_rng(3), 20_000
        drawn = np.array([luck.classes(rng) for _ in range(many)])
        shares = np.stack([(drawn == j).mean(axis=0) for j in range(3)], axis=1)
        assert np.abs(shares - scores).max() < 4.0 * math.sqrt(0.25 / many)


def test_the_share_is_that_of_the_definition() -> None:
    # all ordered pairs by hand: residuals, and classes that one number decides
    rng = np.random.default_rng(7)
    scores = rng.dirichlet(np.ones(3), 9)
    label, cluster = np.array([0, 0, 1, 2, 2, 2, 1, 0, 1]), np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    ends = scores.cumsum(axis=1)
    off = np.eye(3)[label] - scores
    sums = np.zeros(4)
    for i in range(9):
        for j in range(9):
            if i != j and cluster[i] == cluster[j]:
                edges = [np.concatenate([[0.0], ends[k]]) for k in (i, j)]
                low = np.maximum(edges[0][:-1], edges[1][:-1])
                overlap = np.maximum(np.minimum(edges[0][1:], edges[1][1:]) - low, 0.0).sum()
                sums += (
                    off[i] @ off[j],
                    off[i] @ off[i],
                    scores[i] @ (1.0 - scores[i]),
                    overlap - scores[i] @ scores[j],
                )
    expected = sums[0] / sums[1] * (sums[2] / sums[3])
    assert 0.0 < expected < 1.0
    found = Luck.of(vectors(scores, label, cluster)).together
    assert found is not None
    assert found[0] ** 2 == pytest.approx(expected, rel=1e-12)


def test_clusters_are_not_taken_for_evidence() -> None:
    # 200 tables of 30 clusters of 8 rows of like scores, two of which share one number with chance 0.6
    rng, found, tables = np.random.default_rng(9), [], 200
    rows = 240
    scores = np.repeat(rng.dirichlet(np.ones(3), 30 * tables), 8, axis=0)
    scores = 0.9 * scores + 0.1 * rng.dirichlet(np.ones(3), rows * tables)
    cluster = np.repeat(np.arange(30 * tables), 8)
    shared = rng.random(30 * tables)[cluster]
    point = np.where(rng.random(rows * tables) < math.sqrt(0.6), shared, rng.random(rows * tables))
    label = (scores.cumsum(axis=1) > point[:, None]).argmax(axis=1)
    data = pl.DataFrame({"y": label, **{f"p{i}": scores[:, i] for i in range(3)}, "c": cluster})
    data = data.with_columns(g=pl.int_range(rows * tables) // rows)
    for options in ({"cluster": "c"}, {}):
        table = calframe.test(
            data,
            label="y",
            score=CLASSES,
            by="g",
            statistic="confidence_ece",
            bins=5,
            correction="none",
            n_resamples=99,
            **options,
        ).table
        found.append(float((table["pvalue"] <= 0.05).mean()))
    assert found[0] <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / tables)
    assert found[1] > 0.15


# ---------------------------------------------------------------- groups of equal width
def test_groups_of_equal_width_are_those_of_the_score_of_the_first_class() -> None:
    data = class_table(300, seed=8)
    found = found_in(data, method="hosmer_lemeshow", strategy="uniform", bins=4, df="internal")
    scores = data.select("p0", "p1", "p2").to_numpy()
    group = np.maximum(np.ceil((1.0 - scores[:, 0]) * 4).astype(int) - 1, 0)  # closed on the right
    chi2 = 0.0
    for k in np.unique(group):
        here = group == k
        expected = scores[here].sum(axis=0)
        observed = np.bincount(data["y"].to_numpy()[here], minlength=3)
        chi2 += float(((observed - expected) ** 2 / expected).sum())
    assert found["statistic"] == pytest.approx(chi2, rel=1e-12)
    assert found["df"] == 2 * (len(np.unique(group)) - 2)
    assert found["pvalue"] == pytest.approx(stats.chi2.sf(chi2, found["df"]), rel=1e-9)


def test_small_expected_counts_are_said_of_the_result() -> None:
    data = pl.read_csv(TOY)
    label = "y" if "y" in data.columns else "label"
    found = calframe.test(data, label=label, score=TOY_CLASSES, method="hosmer_lemeshow", df="internal", bins=5)
    assert found.notes == ("hosmer_lemeshow: small expected counts in 1 of 1 tests, whose chi-square law is rough",)
    assert "small expected counts" in repr(found)
    assert not calframe.test(class_table(4_000), label="y", score=CLASSES, method="hosmer_lemeshow").notes
