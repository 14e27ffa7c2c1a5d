"""Tests of rows that are not independent, and of rows with weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import calframe
from calframe import ArgumentError
from tests._inference import CLASSES, class_table, drawn, one

MANY = 999
OF_CLUSTERS = ("resampling", "spiegelhalter", "hosmer_lemeshow", "ecce", "ks", "cox", "gap", "corp")
OF_WEIGHTS = ("resampling", "spiegelhalter", "ecce", "ks", "gap", "corp")


def pvalues(data: pl.DataFrame, **arguments: Any) -> list[float]:
    """Return the p-values of all hypotheses."""
    return calframe.test(data, **{"label": "y", "score": "p", **arguments}).table["pvalue"].to_list()


def near(first: float, second: float) -> bool:
    """Return whether two p-values from that many draws each may be of one law."""
    pooled = min(max((first + second) / 2.0, 2.0 / MANY), 0.5)
    return abs(first - second) < 4.0 * math.sqrt(2.0 * pooled * (1.0 - pooled) / MANY)


def numbered(data: pl.DataFrame) -> pl.DataFrame:
    return data.with_columns(c=pl.int_range(len(data)))


# --- clusters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", OF_CLUSTERS)
def test_twenty_copies_of_each_row_keep_the_p_value(method: str) -> None:
    data = numbered(drawn(150, seed=2, power=1.3))
    copies = pl.concat([data] * 20)
    alone = pvalues(data, method=method, n_resamples=MANY)
    together = pvalues(copies, method=method, n_resamples=MANY, cluster="c")
    assert max(pvalues(copies, method=method, n_resamples=MANY)) < min(together) / 2.0  # what clusters are for
    if method == "gap":  # rows of one copy are independent: a normal law on both sides
        assert together == pytest.approx(alone, rel=1e-9)
    else:
        assert all(near(one, other) for one, other in zip(alone, together, strict=True)), (alone, together)


def test_twenty_copies_of_many_rows_keep_the_normal_law() -> None:
    data = numbered(drawn(600, seed=2, power=1.1))
    copies = pl.concat([data] * 20)
    for method in ("spiegelhalter", "gap"):
        alone, together = one(data, method=method), one(copies, method=method, cluster="c")
        assert together["law"] == alone["law"] == "normal"
        assert together["pvalue"] == pytest.approx(alone["pvalue"], rel=1e-9)
        assert together["statistic"] == pytest.approx(alone["statistic"], rel=1e-9)
    for statistic in ("brier", "log_loss", "gap"):
        alone, together = one(data, statistic=statistic), one(copies, statistic=statistic, cluster="c")
        assert together["pvalue"] == pytest.approx(alone["pvalue"], rel=1e-9)
        assert together["statistic"] == pytest.approx(alone["statistic"], rel=1e-9)


@pytest.mark.parametrize("method", OF_CLUSTERS)
def test_clusters_of_one_row_are_none(method: str) -> None:
    data = numbered(drawn(200, seed=1, power=1.2))
    without = pvalues(data, method=method, n_resamples=MANY)
    within = pvalues(data, method=method, n_resamples=MANY, cluster="c")
    assert all(near(one, other) for one, other in zip(without, within, strict=True)), (without, within)


@pytest.mark.parametrize("kind", [pl.String, pl.Int8, pl.Categorical])
def test_a_cluster_is_told_by_any_kind_of_value(kind: Any) -> None:
    data = drawn(120, seed=3).with_columns(c=pl.int_range(120) // 4)
    other = data.with_columns(c=pl.col("c").cast(pl.String).cast(kind))
    first, second = (one(each, method="gap", cluster="c") for each in (data, other))
    assert first["statistic"] == pytest.approx(second["statistic"], rel=1e-12)
    assert first["statistic"] != one(data, method="gap")["statistic"]
    drawn_both = [one(each, method="ecce", cluster="c", n_resamples=MANY)["pvalue"] for each in (data, other)]
    assert near(*drawn_both), drawn_both


def test_a_null_cluster_is_one_of_its_own() -> None:
    data = drawn(120, seed=3).with_columns(c=pl.int_range(120) // 4)
    none = data.with_columns(c=pl.lit(None, dtype=pl.Int64))
    for statistic in ("brier", "gap"):
        assert one(none, statistic=statistic, cluster="c")["pvalue"] == one(data, statistic=statistic)["pvalue"]
    some = data.with_columns(c=pl.when(pl.col("c") > 14).then(None).otherwise(pl.col("c")))
    named = data.with_columns(c=pl.when(pl.col("c") > 14).then(1000 + pl.int_range(120)).otherwise(pl.col("c")))
    for method in ("spiegelhalter", "gap"):
        assert one(some, method=method, cluster="c")["statistic"] == one(named, method=method, cluster="c")["statistic"]


def test_rows_of_one_cluster_in_two_segments_are_two_clusters() -> None:
    data = drawn(240, seed=4).with_columns(c=pl.int_range(240) // 4, g=pl.int_range(240) % 2)
    apart = data.with_columns(c=pl.col("c") * 2 + pl.col("g"))
    for method in ("gap", "ecce"):
        assert pvalues(data, by="g", cluster="c", method=method) == pvalues(apart, by="g", cluster="c", method=method)


def copula(runs: int, clusters: int, share: float) -> pl.DataFrame:
    """Return right scores whose labels share a normal effect within clusters of 2 to 20 rows, as do the scores."""
    rng = np.random.default_rng([clusters, int(100 * share)])
    size = rng.integers(2, 21, runs * clusters)
    cluster = np.repeat(np.arange(runs * clusters), size)
    n = len(cluster)

    def effect(part: float) -> np.ndarray:
        return math.sqrt(part) * rng.normal(size=runs * clusters)[cluster] + math.sqrt(1.0 - part) * rng.normal(size=n)

    score = stats.norm.cdf(0.8 * effect(0.6))
    label = (stats.norm.cdf(effect(share)) < score).astype(np.int64)
    return pl.DataFrame({"run": cluster // clusters, "c": cluster, "p": score, "y": label})


@pytest.mark.parametrize(("clusters", "share"), [(40, 0.5), (100, 0.5), (60, 0.8)])
def test_clusters_are_not_taken_for_evidence(clusters: int, share: float) -> None:
    runs = 150
    data = copula(runs, clusters, share)
    most = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / runs)
    arguments = {"by": "run", "correction": "none", "n_resamples": 99}
    for method in ("spiegelhalter", "gap", "ecce", "ks", "resampling"):
        within = np.mean(np.array(pvalues(data, method=method, cluster="c", **arguments)) <= 0.05)
        without = np.mean(np.array(pvalues(data, method=method, **arguments)) <= 0.05)
        assert within <= most, (method, within)
        assert without > 2.0 * most - 0.05, (method, without)


def test_few_clusters_decide_nothing_by_a_law_for_many() -> None:
    data = drawn(100, seed=1).with_columns(c=pl.int_range(100) // 5)
    found = one(data, method="gap", cluster="c")
    assert (found["n"], found["reject"]) == (100, None)
    assert "fewer than 25 clusters" in found["note"]
    assert one(data, cluster="c", n_resamples=99)["reject"] is not None


@pytest.mark.parametrize("method", ["resampling", "ecce", "corp", "hosmer_lemeshow"])
def test_hardly_a_cluster_decides_nothing(method: str) -> None:
    # what they share is read off the residuals that are tested: of one cluster a quarter of right tables was rejected
    data = drawn(400, seed=1).with_columns(c=pl.int_range(400) // 100)
    found = one(data, method=method, cluster="c", n_resamples=99)
    assert found["reject"] is None
    assert "fewer than 5 clusters" in found["note"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"method": "kernel", "kernel_law": "block"}, "kernel_law='block' is for independent rows"),
        ({"correction": "max"}, "correction='max' draws segments as independent"),
    ],
)
def test_what_takes_no_clusters(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        one(numbered(drawn(50)), cluster="c", **arguments)


# --- weights ---------------------------------------------------------------------------------------------------------


def repeated(data: pl.DataFrame) -> pl.DataFrame:
    return data.select(pl.all().repeat_by("k")).explode(pl.all())


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("method", OF_CLUSTERS)
@pytest.mark.parametrize("n", [14, 80])  # 14 rows that count more than 24
def test_a_frequency_is_the_row_as_often(method: str, n: int, *, clustered: bool) -> None:
    data = drawn(n, seed=2, power=1.3, digits=2).with_columns(c=pl.int_range(n) % 30)
    cluster = {"cluster": "c"} if clustered else {}
    arguments = {"label": "y", "score": "p", "method": method, "n_resamples": 99, **cluster}
    found = calframe.test(data, weight="k", weight_kind="frequency", **arguments).table
    expected = calframe.test(repeated(data), **arguments).table
    for name in ("statistic", "df", "pvalue", "pvalue_adjusted", "n_groups"):
        assert found[name].fill_null(-1.0).to_list() == pytest.approx(expected[name].fill_null(-1.0).to_list()), name
    assert found["law"].to_list() == expected["law"].to_list()
    assert found["reject"].to_list() == expected["reject"].to_list()


@pytest.mark.parametrize("statistic", ["mce", "brier", "log_loss", "auc", "slope", "smece", "ici", "resolution", "mcb"])
def test_a_frequency_is_the_row_as_often_in_any_statistic(statistic: str) -> None:
    data = drawn(80, seed=2, digits=2)
    found = one(data, statistic=statistic, weight="k", weight_kind="frequency", n_resamples=99)
    expected = one(repeated(data), statistic=statistic, n_resamples=99)
    assert found["statistic"] == pytest.approx(expected["statistic"], rel=1e-9)
    assert found["pvalue"] == pytest.approx(expected["pvalue"], rel=1e-9)


def test_a_frequency_is_the_row_as_often_of_several_classes() -> None:
    data = class_table(80, seed=2)
    arguments = {"score": CLASSES, "method": "hosmer_lemeshow"}
    found = one(data, weight="k", weight_kind="frequency", **arguments)
    expected = one(repeated(data), **arguments)
    assert found["statistic"] == pytest.approx(expected["statistic"], rel=1e-12)
    assert found["pvalue"] == pytest.approx(expected["pvalue"], rel=1e-12)
    assert found["n_groups"] == expected["n_groups"]
    drawn_both = [
        one(each, score=CLASSES, n_resamples=MANY, **more)["pvalue"]
        for each, more in ((data, {"weight": "k", "weight_kind": "frequency"}), (repeated(data), {}))
    ]
    assert near(*drawn_both), drawn_both


@pytest.mark.parametrize("method", OF_WEIGHTS)
@pytest.mark.parametrize("factor", [1024.0, 1e-6])
def test_the_scale_of_importance_weights_says_nothing(method: str, factor: float) -> None:
    data = drawn(120, seed=5, power=1.2)
    other = data.with_columns(pl.col("w") * factor)
    found, expected = (one(each, method=method, weight="w", n_resamples=199) for each in (other, data))
    assert found["pvalue"] == pytest.approx(expected["pvalue"], rel=1e-9)
    assert found["statistic"] == pytest.approx(expected["statistic"], rel=1e-9)


@pytest.mark.parametrize(
    ("method", "match"),
    [
        ("hosmer_lemeshow", "takes no importance weights: its law is that of counts of rows.*weight_kind='frequency'"),
        ("cox", "takes no importance weights: likelihood ratios are those of counts of rows"),
        ("kernel", "method='kernel' takes no weights: it takes pairs of rows"),
    ],
)
def test_what_takes_no_weights(method: str, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        one(drawn(50), method=["gap", method], weight="w")


@pytest.mark.parametrize("kind", ["importance", "frequency"])
@pytest.mark.parametrize("method", OF_WEIGHTS)
def test_a_row_of_weight_zero_is_no_row(method: str, kind: str) -> None:
    data = drawn(80, seed=6, digits=2)
    without = data.filter(pl.col("k") > 0)
    found, expected = (
        one(each, method=method, weight="k", weight_kind=kind, n_resamples=99) for each in (data, without)
    )
    assert len(without) < 80
    for name in ("n", "weight_sum", "statistic", "pvalue", "pvalue_adjusted", "reject"):
        assert found[name] == pytest.approx(expected[name], rel=1e-12), name
