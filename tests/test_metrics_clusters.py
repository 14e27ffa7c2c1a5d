"""Intervals of metrics of rows in clusters: by hand, against statsmodels and copies, and how often they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import calframe
from tests._tables import Maker, approx, rows
from tests.test_laziness import Counted

SUMS = ["rate", "mean_score", "gap", "ratio", "accuracy", "brier", "brier_skill", "log_loss", "sharpness"]
ALL = [*SUMS, "auc", "slope", "intercept", "citl", "unc", "unc_log", "uncertainty"]
ROLES: dict[str, Any] = {"label": "y", "score": "p"}
ENDS = ("_low", "_high")


def drawn(n: int = 400, *, clusters: int = 60, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    score, cluster = rng.beta(2.0, 2.0, n), rng.integers(0, clusters, n)
    logit = np.log(score / (1.0 - score)) + rng.normal(0.0, 1.0, clusters)[cluster]
    return pl.DataFrame(
        {
            "g": [(None, "a", "b")[i] for i in rng.integers(0, 3, n)],
            "c": [f"k{i}" for i in cluster],
            "p": score,
            "q": rng.beta(2.0, 2.0, n),
            "y": (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64),
            "w": rng.integers(1, 4, n),
        }
    )


def measured(data: Any, *, level: float = 0.9, cluster: str | None = "c", **arguments: Any) -> dict[str, list[Any]]:
    asked = {**ROLES, "metrics": ALL, **arguments}
    return rows(calframe.metrics(data, confidence_level=level, cluster=cluster, **asked))


def small(tail: float, clusters: float) -> float:
    """Return (t / z)^2, by which few clusters divide the effective rows."""
    return float((stats.t.isf(tail, clusters - 1.0) / stats.norm.isf(tail)) ** 2)


def wilson(rate: float, n: float) -> list[float]:
    return [float(end) for end in proportion_confint(rate * n, n, alpha=0.1, method="wilson")]


def ends(found: dict[str, list[Any]], metric: str) -> list[float]:
    return [found[f"{metric}{end}"][0] for end in ENDS]


# by hand and against peers


def test_the_rate_has_the_variance_of_statsmodels() -> None:
    # Of clusters of one size the jackknife is the sandwich over clusters times G / (G - 1), as statsmodels has it
    rng = np.random.default_rng(1)
    y = (np.repeat(rng.random(40) < 0.4, 10) ^ (rng.random(400) < 0.2)).astype(float)
    data = drawn(400).with_columns(c=pl.int_range(400) // 10, y=y)
    peer = sm.OLS(y, np.ones(400)).fit(cov_type="cluster", cov_kwds={"groups": data["c"].to_numpy()})
    n = y.mean() * (1.0 - y.mean()) / peer.bse[0] ** 2 / small(0.05, 40)
    found = measured(data, metrics="rate")
    assert ends(found, "rate") == approx(wilson(float(y.mean()), n), rel=1e-8)
    assert n < 100  # of 400 rows


@pytest.mark.parametrize("metric", ["rate", "gap", "accuracy"])
def test_the_design_effect_is_that_of_clusters_left_out_one_at_a_time(metric: str) -> None:
    data = drawn(300, seed=2)
    y, p = data["y"].to_numpy(), data["p"].to_numpy()
    values = {"rate": y * 1.0, "gap": p - y, "accuracy": ((p >= 0.5) == y) * 1.0}[metric]
    of = [(data["c"] == name).to_numpy() for name in data["c"].unique()]
    left = np.array([values[~each].mean() for each in of]) - values.mean()
    jackknife = (len(of) - 1) / len(of) * (left**2).sum()
    effect = max(jackknife / (values.var() / 300), 1.0)
    n = 300 / effect / small(0.05, 1.0 / sum(each.mean() ** 2 for each in of))
    expected = wilson(y.mean() if metric == "gap" else values.mean(), n)
    if metric == "gap":
        expected = [p.mean() - expected[1], p.mean() - expected[0]]
    found = measured(data, metrics=metric)
    assert (effect > 1.05) == (metric != "accuracy")
    assert ends(found, metric) == approx(expected, rel=1e-8)


def test_the_area_has_the_variance_of_obuchowski() -> None:
    # Placement values row by row; both of her sums over clusters, here with what a cluster takes off the whole
    data = drawn(300, clusters=30, seed=2).with_columns(pl.col("c").str.slice(1).cast(pl.Int64))
    y, p, c = data["y"].to_numpy(), data["p"].to_numpy(), data["c"].to_numpy()
    yes, no = p[y == 1], p[y == 0]
    placed = np.where(y == 1, [(no < s).mean() for s in p], [(yes > s).mean() for s in p])
    area = placed[y == 1].mean()
    part = (placed - area) / np.where(y == 1, len(yes), len(no))
    left = 1.0 - np.bincount(c) / 300
    effect = ((np.bincount(c, part) / left) ** 2).sum() * 29 / 30 / (part**2).sum()
    assert effect > 1.05
    kish = [len(each) ** 2 / (np.bincount(each) ** 2).sum() for each in (c[y == 1], c[y == 0])]
    effect *= small(0.05, min(kish))
    m = np.array([len(yes), len(no)]) / effect
    square = np.array([(part[y == 1] ** 2).sum(), (part[y == 0] ** 2).sum()]) * effect
    half = stats.norm.isf(0.05) * np.sqrt((square * m / (m - 1.0)).sum())
    found = measured(data, metrics="auc")
    assert ends(found, "auc") == approx([area - half, area + half], rel=1e-9)


@pytest.mark.parametrize("metric", ["slope", "intercept"])
def test_the_line_has_the_sandwich_over_clusters_of_statsmodels(metric: str) -> None:
    data = drawn(600, seed=4).with_columns(c=pl.int_range(600) // 10)
    shift = np.repeat(np.random.default_rng(4).normal(0.0, 1.5, 60), 10)
    z = np.log(data["p"].to_numpy() / (1.0 - data["p"].to_numpy()))
    y = (np.random.default_rng(5).random(600) < 1.0 / (1.0 + np.exp(-z - shift))).astype(int)
    model, place = sm.Logit(y, sm.add_constant(z)), ["intercept", "slope"].index(metric)
    usual, single = (model.fit(disp=0, cov_type=kind).bse[place] for kind in ("nonrobust", "HC0"))
    peer = model.fit(disp=0, cov_type="cluster", cov_kwds={"groups": data["c"].to_numpy()})
    clustered = peer.bse[place] * np.sqrt(598 / 599)  # which statsmodels raises by (n - 1) / (n - 2)
    effect = max(1.0, clustered**2 / single**2) * small(0.05, 60)
    half = stats.norm.isf(0.05) * max(usual, single) * np.sqrt(effect)
    found = measured(data.with_columns(y=y), metrics=metric)
    centre = peer.params[place]
    assert ends(found, metric) == approx([centre - half, centre + half], rel=1e-6)


def test_where_one_outcome_is_all_there_is_all_rows_of_a_cluster_may_be_alike() -> None:
    data = drawn(400).with_columns(c=pl.int_range(400) % 20, y=pl.lit(0))
    found = measured(data, metrics=["rate", "gap"])
    high = wilson(0.0, 20 / small(0.05, 20))[1]
    mean = data["p"].mean()
    assert found["rate_high"] == approx([high], rel=1e-9)
    assert found["gap_low"] == approx([mean - high], rel=1e-9)


# copies, single rows, segments, weights


@pytest.mark.parametrize("weight", [None, "w"])
def test_copies_of_every_row_change_nothing(weight: str | None) -> None:
    once = drawn().with_columns(c=pl.int_range(400))
    one, many = (measured(data, by="g", weight=weight) for data in (once, pl.concat([once] * 20)))
    for name in (f"{metric}{end}" for metric in ALL for end in ENDS):
        assert many[name] == approx(one[name], rel=1e-7), name


def test_of_copies_one_is_left_but_for_few_clusters() -> None:
    # 20 copies of 400 rows are (G - 1) / (t / z)^2 = 399 / 1.003 rows: G / (G - 1) is the jackknife's
    data = drawn().with_columns(c=pl.int_range(400))
    found = measured(pl.concat([data] * 20), metrics="rate")
    expected = wilson(float(data["y"].to_numpy().mean()), 399 / small(0.05, 400))
    assert ends(found, "rate") == approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", [name for name in ALL if name not in {"slope", "intercept", "citl"}])
def test_single_rows_as_clusters_have_nearly_the_usual_intervals(metric: str) -> None:
    # The effective rows differ by G / (G - 1) and (t / z)^2, together 1.0036 of 1,000 rows: widths by some 0.2 percent
    data = drawn(1000).with_columns(c=pl.int_range(1000))
    found, usual = measured(data, metrics=metric), measured(data, metrics=metric, cluster=None)
    width, plain = (each[f"{metric}_high"][0] - each[f"{metric}_low"][0] for each in (found, usual))
    assert width == pytest.approx(plain, rel=0.005)
    assert width > plain


def test_values_do_not_depend_on_clusters() -> None:
    data, asked = drawn(), [*ALL, "ece", "smece", "ecce_r"]
    found, usual = (measured(data, by="g", cluster=each, metrics=asked) for each in ("c", None))
    assert [found[name] for name in asked] == [usual[name] for name in asked]


def test_numbers_of_rows_are_rows() -> None:
    data = drawn(300).with_columns(c=pl.when(pl.col("c") > "k2").then("c"))  # without a cluster each counts by itself
    each = data.select(pl.all().repeat_by("w")).explode(pl.all(), empty_as_null=False)
    counted = measured(data, by="g", weight="w", weight_kind="frequency")
    single = measured(each, by="g")
    for name in (f"{metric}{end}" for metric in ALL for end in ENDS):
        assert counted[name] == approx(single[name], rel=1e-7), name


def test_a_cluster_counts_within_each_segment() -> None:
    data = drawn(seed=3)
    found = measured(data, by="g")
    for place, segment in enumerate(["a", "b", None]):
        alone = measured(data.filter(pl.col("g").eq_missing(segment)))
        for name in (f"{metric}{end}" for metric in ALL for end in ENDS):
            assert alone[name] == approx([found[name][place]], rel=1e-8), name


def test_models_and_classes_go_each_by_itself() -> None:
    data = drawn()
    both = measured(data, score=["p", "q"], metrics=SUMS)
    for place, score in enumerate(["p", "q"]):
        alone = measured(data, score=score, metrics=SUMS)
        assert [both[f"{name}_low"][place] for name in SUMS] == approx([alone[f"{name}_low"][0] for name in SUMS])
    classes = data.with_columns(r=1.0 - pl.col("p"), s=1 - pl.col("y"))
    split = measured(classes, score={0: "r", 1: "p"}, notion="classwise", metrics=SUMS)
    for place, roles in enumerate([{"label": "s", "score": "r"}, ROLES]):
        alone = measured(classes, metrics=SUMS, **roles)
        assert [split[f"{name}_low"][place] for name in SUMS] == approx(
            [alone[f"{name}_low"][0] for name in SUMS], rel=1e-9
        )


def test_several_classes_go_by_clusters() -> None:
    rng = np.random.default_rng(6)
    scores = rng.dirichlet([1.0, 1.0, 1.0], 300)
    once = pl.DataFrame({f"p{i}": scores[:, i] for i in range(3)}).with_columns(
        y=pl.Series([rng.choice(3, p=each) for each in scores]), c=pl.int_range(300)
    )
    score = {i: f"p{i}" for i in range(3)}
    found = measured(pl.concat([once] * 20), score=score, metrics=["accuracy", "brier", "log_loss", "classwise_ece"])
    right = float((scores.argmax(axis=1) == once["y"].to_numpy()).mean())
    expected = wilson(right, 299 / small(0.05, 300))
    assert ends(found, "accuracy") == approx(expected, rel=1e-9)
    loss = ((scores - np.eye(3)[once["y"].to_numpy()]) ** 2).sum(axis=1)
    error = loss.std() * np.sqrt(small(0.05, 300) / 299) * stats.norm.isf(0.05)
    width = found["brier_high"][0] - found["brier_low"][0]
    assert width == pytest.approx(2.0 * error, rel=0.02)  # the usual normal interval, but for rows added at its ends
    assert found["note"] == ["no interval for classwise_ece: rows are in clusters"]


def test_metrics_of_ones_own_go_by_clusters() -> None:
    calframe.register_metric("off", lambda row: (row.score - row.label).abs(), summary="mean distance", low=0, high=1)
    data = drawn(400).with_columns(c=pl.int_range(400) // 8)
    values = np.abs(data["p"].to_numpy() - data["y"].to_numpy())
    totals = np.bincount(data["c"].to_numpy(), values - values.mean()) / 400
    effect = max((totals**2).sum() * 50 / 49 / (values.var() / 400), 1.0) * small(0.05, 50)
    half = stats.norm.isf(0.05) * np.sqrt(effect * values.var() / (400 - effect))  # n / (n - 1) of n = 400 / effect
    found = measured(data, metrics="off")
    assert ends(found, "off") == approx([values.mean() - half, values.mean() + half], rel=1e-8)


# how often they hold the truth


def test_intervals_hold_the_truth_where_rows_share_their_luck() -> None:
    # 200 tables of 40 clusters of 10, the truth from 400,000 rows; bound: three standard errors of a share of 200
    rng, tables = np.random.default_rng(7), 200

    def table(clusters: int, each: int) -> pl.DataFrame:
        cluster = np.repeat(np.arange(clusters), each)
        own, shared = rng.normal(0.0, 1.0, (2, clusters))
        z = own[cluster] * 0.7 + rng.normal(0.0, 0.7, len(cluster))
        chance = 1.0 / (1.0 + np.exp(-z - shared[cluster]))
        return pl.DataFrame({"c": cluster, "p": 1.0 / (1.0 + np.exp(-z)), "y": (rng.random(len(z)) < chance) * 1})

    asked = [*SUMS, "auc", "citl"]
    truth = measured(table(80_000, 5), metrics=asked, cluster=None)
    data = table(40 * tables, 10).with_columns(r=pl.int_range(400 * tables) // 400)
    share = {}
    for cluster in ("c", None):
        found = measured(data, by="r", metrics=asked, cluster=cluster)
        for name in asked:
            low, high = (np.array(found[f"{name}{end}"]) for end in ENDS)
            share[name, cluster] = ((low <= truth[name][0]) & (truth[name][0] <= high)).mean()
    assert min(share[name, "c"] for name in asked) >= 0.9 - 3.0 * np.sqrt(0.9 * 0.1 / tables)
    shaken = ["rate", "mean_score", "gap", "sharpness", "citl"]  # most, by what clusters share
    assert max(share[name, None] for name in shaken) < 0.9 - 3.0 * np.sqrt(0.9 * 0.1 / tables)


# engines


def test_every_library_gives_the_same(make: Maker) -> None:
    data = drawn(200).with_columns(c=pl.when(pl.col("c") > "k3").then("c"))  # a row without a cluster is one of its own
    named = data.with_columns(c=pl.coalesce("c", pl.format("row {}", pl.int_range(200))))
    found = measured(make(data.to_dict(as_series=False)), by="g", score=["p", "q"], metrics=[*ALL, "ece"])
    expected = measured(named, by="g", score=["p", "q"], metrics=[*ALL, "ece"])
    assert data["c"].null_count() > 50
    assert {name: found[name] for name in expected} == {name: approx(expected[name], rel=1e-8) for name in expected}


def test_a_lazy_table_is_read_once_and_not_before_it_is_collected() -> None:
    source = Counted(drawn())
    plan = calframe.metrics(source.lazy, **ROLES, by="g", cluster="c", confidence_level=0.9, metrics=ALL)
    assert source.reads == 0
    assert plan.collect_schema().names() == plan.collect().columns
    assert source.reads == 1


def test_a_method_of_frames_takes_clusters() -> None:
    data = drawn()
    found = data.calib.metrics(**ROLES, cluster="c", confidence_level=0.9, metrics="rate")  # type: ignore[attr-defined]
    assert found.equals(calframe.metrics(data, **ROLES, cluster="c", confidence_level=0.9, metrics="rate"))


# notes and errors


def test_notes_say_which_intervals_clusters_leave_out() -> None:
    found = measured(drawn(), metrics=["rate", "ece", "rmsce", "within_bin"])
    assert found["note"] == ["no interval for within_bin; no interval for ece, rmsce: rows are in clusters"]
    assert found["ece_low"] == found["ece_high"] == [None]


def test_one_cluster_has_no_interval() -> None:
    found = measured(drawn().with_columns(c=pl.lit(1)), metrics=["rate", "auc"])
    assert found["rate_low"] == found["auc_high"] == [None]
    need = "it needs more clusters"
    assert found["note"] == [f"no interval for rate: {need}; no interval for auc: {need}"]


def test_segments_without_rows_have_nothing() -> None:
    data = drawn(40).with_columns(y=pl.when(pl.col("g") == "a").then("y"))
    found = measured(data, by="g")
    assert found["note"][1:] == ["no usable rows"] * 2
    assert {found[f"{name}_low"][1] for name in ALL} == {None}
    assert measured(data.with_columns(y=pl.lit(None, pl.Int64)))["note"] == ["no usable rows"]


def test_clusters_without_a_level_are_an_error() -> None:
    with pytest.raises(calframe.ArgumentError, match="cluster='c' needs confidence_level="):
        calframe.metrics(drawn(), **ROLES, cluster="c")


def test_a_cluster_column_that_is_not_there_is_named() -> None:
    with pytest.raises(calframe.ColumnNotFoundError, match="'who'"):
        measured(drawn(), cluster="who")
