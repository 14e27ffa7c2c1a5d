"""The verb `compare`: two models on the same rows."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

import calframe
from calframe import ArgumentError, CalframeWarning, ColumnClashError, ColumnNotFoundError, LabelError, ScoreError
from calframe._compare import Comparison, compare
from calframe._measures import METRICS
from tests._tables import Maker, approx, rows, types

PAIRS = ("brier", "log_loss", "auc", "ece")
COMPARED = [name for name, metric in METRICS.items() if not metric.posterior]


def drawn(n: int, *, seed: int = 0, positives: float = 0.0, alike: bool = False) -> pl.DataFrame:
    """Return rows with two scores: each knows half of what there is to know, or the second less than the first."""
    rng = np.random.default_rng(seed)
    z1, z2, noise = rng.normal(size=(3, n))
    label = rng.random(n) < 1.0 / (1.0 + np.exp(-(positives + z1 + z2)))
    second = z2 if alike else 0.6 * z1 + 0.8 * noise
    return pl.DataFrame(
        {
            "y": label.astype(np.int64),
            "a": 1.0 / (1.0 + np.exp(-positives - z1)),
            "b": 1.0 / (1.0 + np.exp(-positives - second)),
            "w": rng.integers(1, 5, n),
            "g": rng.choice(["u", "v"], n),
        }
    )


def one(data: Any, metric: str = "brier", **arguments: Any) -> dict[str, Any]:
    """Return the row of one metric of a whole table."""
    table = compare(data, label="y", score=["a", "b"], metrics=metric, **arguments).table
    (row,) = table.iter_rows(named=True)
    return dict(row)


# --- what stands in the table ---------------------------------------------------------------------------------------


def test_every_library_gives_the_same_table_in_its_own_kind(make: Maker) -> None:
    columns = {
        "y": [1, 0, 1, 0, None, 1, 1, 0],
        "a": [0.8, 0.4, 0.6, 0.1, 0.5, None, 0.9, 0.2],
        "b": [0.7, 0.1, 0.9, 0.2, 0.5, 0.5, None, 0.3],
        "g": ["u", "u", "v", "v", "u", "u", None, None],
    }
    found = compare(make(columns), label="y", score=["a", "b"], by="g", metrics=["brier", "accuracy"])
    expected = pl.DataFrame if make.lazy else make.result
    assert isinstance(found.table, expected)
    table = rows(found.table)
    assert table["g"] == ["u", "u", "v", "v", None, None]
    assert table["metric"] == ["brier", "accuracy"] * 3
    assert table["n"] == [2, 2, 2, 2, 1, 1]
    assert table["n_missing"] == [2, 2, 0, 0, 1, 1]
    # by hand: (.04 + .16) / 2, (.16 + .01) / 2, .04; and (.09 + .01) / 2, (.01 + .04) / 2, .09
    assert table["first"][::2] == pytest.approx([0.10, 0.085, 0.04])
    assert table["second"][::2] == pytest.approx([0.05, 0.025, 0.09])
    assert table["difference"][::2] == pytest.approx([-0.05, -0.06, 0.05])
    assert table["low"][4] is None
    assert table["note"][4] == "no interval for brier: it needs more rows"
    kinds = types(found.table)
    assert [str(kinds[name]) for name in ("n", "n_missing", "difference")] == ["Int64", "Int64", "Float64"]


def test_columns_are_in_the_order_stated() -> None:
    table = drawn(60)
    found = compare(table, label="y", score=["a", "b"], by="g", weight="w", metrics="brier", invalid="drop")
    assert found.table.columns == [
        *("g", "metric", "n", "n_missing", "n_invalid", "weight_sum", "first", "second", "difference", "low", "high"),
        *("pvalue", "pvalue_adjusted", "better", "law", "note"),
    ]


@pytest.mark.parametrize("metric", COMPARED)
def test_values_are_those_of_metrics_on_the_common_rows(metric: str) -> None:
    table = drawn(300, seed=4).with_columns(
        a=pl.when(pl.int_range(pl.len()) % 7 != 0).then("a"), b=pl.when(pl.int_range(pl.len()) % 5 != 0).then("b")
    )
    common = table.drop_nulls(["a", "b"])
    arguments: dict[str, Any] = {"by": "g", "weight": "w", "metrics": metric, "bins": 7}
    found = compare(table, label="y", score=["a", "b"], n_resamples=20, **arguments).table
    for column, score in (("first", "a"), ("second", "b")):
        expected = calframe.metrics(common, label="y", score=score, **arguments)
        assert found[column].to_list() == pytest.approx(expected[metric].to_list(), rel=1e-9, abs=1e-12)
        assert found["n"].to_list() == expected["n"].to_list()
    assert found["n_missing"].sum() == len(table) - len(common)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_are_those_asked_for(strategy: Any) -> None:
    table = drawn(400, seed=5)
    arguments: dict[str, Any] = {"bins": 8, "strategy": strategy, "closed": "right"}
    found = one(table, "ece", n_resamples=50, **arguments)
    expected = [calframe.metrics(table, label="y", score=name, metrics="ece", **arguments)["ece"][0] for name in "ab"]
    assert [found["first"], found["second"]] == pytest.approx(expected, rel=1e-12)


def test_float32_scores_meet_the_edges_that_a_person_sees() -> None:
    table = pl.DataFrame({"y": [0, 1, 0, 1] * 5, "a": [0.3, 0.3, 0.7, 0.7] * 5, "b": [0.3, 0.3, 0.7, 0.7] * 5})
    narrow = table.with_columns(pl.col("b").cast(pl.Float32))
    found = one(narrow, "ece", bins=10, n_resamples=20)
    assert found["second"] == pytest.approx(found["first"], abs=1e-7)


def test_logits_are_probabilities_seen_otherwise() -> None:
    table = drawn(200, seed=6)
    logits = table.with_columns(pl.col("a", "b").log() - (1.0 - pl.col("a", "b")).log())
    for metric in (*PAIRS, "mcb"):
        before = one(table, metric, n_resamples=50)
        after = one(logits, metric, link="logit", n_resamples=50)
        for name in ("first", "second", "low", "high", "pvalue"):
            assert after[name] == approx(before[name], rel=1e-9)


def test_rows_that_are_invalid_or_of_weight_0_are_counted() -> None:
    table = pl.DataFrame({"y": [0, 1, 0, 1], "a": [0.1, 0.9, 1.5, 0.5], "b": [0.2, 0.8, 0.1, 0.5], "w": [1, 2, 1, 0]})
    with pytest.raises(ScoreError, match=r"column 'a'.* 1\.5"):
        one(table)
    found = one(table, invalid="drop", weight="w")
    assert (found["n"], found["n_missing"], found["n_invalid"], found["weight_sum"]) == (2, 0, 1, 3.0)
    assert "1 row of weight 0 left out" in found["note"]


# --- means of rows --------------------------------------------------------------------------------------------------


def test_a_mean_is_compared_by_students_paired_test() -> None:
    table = drawn(120, seed=1)
    label, first, second = (table[name].to_numpy() for name in ("y", "a", "b"))
    expected = stats.ttest_rel((second - label) ** 2, (first - label) ** 2)  # scipy
    ends = expected.confidence_interval(0.9)
    found = one(table, confidence_level=0.9)
    assert found["law"] == "t"
    assert found["pvalue"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert [found["low"], found["high"]] == pytest.approx([ends.low, ends.high], rel=1e-9)


def test_weights_that_count_rows_are_repeated_rows() -> None:
    table = drawn(80, seed=2)
    repeated = table.select(pl.all().repeat_by("w").explode())
    for metric in ("brier", "ratio", "brier_skill"):
        counted = one(table, metric, weight="w", weight_kind="frequency")
        plain = one(repeated, metric)
        for name in ("first", "second", "low", "high", "pvalue"):
            assert counted[name] == pytest.approx(plain[name], rel=1e-6)


def test_only_the_ratios_of_weights_matter() -> None:
    table = drawn(90, seed=3).with_columns(v=pl.col("w") * 7.5)
    for metric in ("brier", "auc", "ece"):
        whole, scaled = (one(table, metric, weight=name, n_resamples=60) for name in ("w", "v"))
        for name in ("first", "second", "low", "high", "pvalue"):
            assert scaled[name] == pytest.approx(whole[name], rel=1e-9)


def test_the_slopes_of_a_ratio_are_those_of_calculus() -> None:
    # ratio_b - ratio_a = (sum b - sum a) / sum y; its delta method by hand, with the factor n / (n - 1)
    table = drawn(150, seed=8)
    label, first, second = (table[name].to_numpy() for name in ("y", "a", "b"))
    total, n = label.sum(), len(label)
    difference = (second.sum() - first.sum()) / total
    error = math.sqrt((((second - first) - difference * label) ** 2).sum() * n / (n - 1)) / total
    found = one(table, "ratio")
    assert found["difference"] == pytest.approx(difference, rel=1e-12)
    assert found["high"] - found["low"] == pytest.approx(2.0 * stats.t(n - 1).ppf(0.975) * error, rel=1e-7)


def test_a_metric_of_ones_own_is_compared_as_the_mean_it_is() -> None:
    about: dict[str, Any] = {"summary": "mean distance", "direction": "lower", "low": 0, "high": 1}
    calframe.register_metric("absolute", row=lambda row: (row.score - row.label).abs(), **about)
    table = drawn(100, seed=9)
    label, first, second = (table[name].to_numpy() for name in ("y", "a", "b"))
    expected = stats.ttest_rel(np.abs(second - label), np.abs(first - label))  # scipy
    assert one(table, "absolute")["pvalue"] == pytest.approx(expected.pvalue, rel=1e-9)


def test_few_rows_that_disagree_are_exchanged_as_in_the_exact_test_of_mcnemar() -> None:
    # 7 rows that only the second model gets right, 1 that only the first does, 60 on which they agree
    label = [1] * 68
    first = [0.2] * 7 + [0.8] + [0.9] * 60
    second = [0.8] * 7 + [0.2] + [0.9] * 60
    found = one(pl.DataFrame({"y": label, "a": first, "b": second}), "accuracy", n_resamples=20_000)
    exact = mcnemar([[60, 1], [7, 0]], exact=True).pvalue  # statsmodels: 18 / 256
    assert exact == pytest.approx(float(Fraction(18, 256)))
    assert found["law"] == "exchange"
    assert found["pvalue"] == pytest.approx(exact, abs=4.0 * math.sqrt(exact * (1.0 - exact) / 20_000))


def test_rows_that_all_agree_do_not_show_that_all_do() -> None:
    found = one(pl.DataFrame({"y": [0, 1] * 30, "a": [0.1, 0.9] * 30, "b": [0.2, 0.8] * 30}), "accuracy")
    # Agresti and Min (2005): with two rows added, one half each way, z sqrt(1 / 62) / sqrt(62)
    half = stats.norm.ppf(0.975) / 62
    assert [found["low"], found["high"]] == pytest.approx([-half, half], rel=1e-12)
    assert found["pvalue"] == 1.0


def test_differences_that_are_all_the_same_have_no_t() -> None:
    table = pl.DataFrame({"y": [0, 1] * 20, "a": [1.0, 0.0] * 20, "b": [0.0, 1.0] * 20})
    found = one(table, "brier", n_resamples=99)
    assert (found["difference"], found["law"], found["pvalue"]) == (-1.0, "exchange", 0.01)  # of 2^40 ways, 2


def test_intervals_end_where_no_difference_can_be() -> None:
    table = pl.DataFrame({"y": [0, 1], "a": [0.1, 0.9], "b": [0.4, 0.5]})
    found = one(table, "mean_score")  # Student's with one degree of freedom reaches 12.7 standard errors of 0.35
    assert (found["low"], found["high"]) == (-1.0, 1.0)


def test_an_infinite_loss_says_nothing_of_the_difference() -> None:
    table = drawn(60, seed=10).with_columns(
        b=pl.when(pl.int_range(pl.len()) == 0).then(1.0 - pl.col("y")).otherwise("b")
    )
    with pytest.warns(CalframeWarning, match=r"^log_loss is infinite: 1 row of model 'b' gives probability 0 .*clip="):
        found = one(table, "log_loss")
    assert (found["second"], found["difference"]) == (math.inf, math.inf)
    assert (found["low"], found["high"], found["pvalue"], found["better"], found["law"]) == (None,) * 5
    assert "clip=" in found["note"]
    assert one(table, "log_loss", clip=1e-6)["pvalue"] is not None


def test_the_warning_of_infinite_losses_counts_the_rows_of_each_model() -> None:
    table = pl.DataFrame({"y": [1, 0, 1, 1], "a": [0.0, 0.5, 0.5, 0.5], "b": [0.0, 1.0, 0.3, 0.7], "g": [*"uvvv"]})
    of_both = "1 row of model 'a' and 2 rows of model 'b' give probability 0"
    for score in (["a", "b"], ["b", "a"]):
        names = of_both if score[0] == "a" else "2 rows of model 'b' and 1 row of model 'a' give probability 0"
        with pytest.warns(CalframeWarning, match=f"log_loss is infinite: {names}") as caught:
            found = compare(table, label="y", score=score, by="g", metrics=["brier", "log_loss"])
        assert len(caught) == 1
        assert "(clip= makes it finite)" in " ".join(repr(found).split())
    with pytest.warns(CalframeWarning, match=f"^mcb_log is infinite: {of_both}"):
        found = compare(table, label="y", score=["a", "b"], metrics="mcb_log", n_resamples=20)
    assert found.notes == ()  # clip= does not apply to it


# --- clusters -------------------------------------------------------------------------------------------------------


def test_intervals_as_wide_as_if_all_rows_of_a_cluster_were_alike_say_so() -> None:
    table = drawn(120, seed=33).with_columns(c=pl.int_range(pl.len()) // 3)
    asked: dict[str, Any] = {"label": "y", "score": ["a", "b"], "metrics": ["brier", "ece", "slope", "mce"]}
    found = compare(table, **asked, cluster="c", n_resamples=20)
    assert found.notes[0] == "ece, slope: intervals are as wide as if all rows of a cluster were alike"
    assert "as if all rows of a cluster were alike" in " ".join(repr(found).split())
    assert found.notes[0] in found._repr_html_()
    assert not any("alike" in note for note in compare(table, **asked, n_resamples=20).notes)


@pytest.mark.parametrize("metric", [*PAIRS, "accuracy", "gap", "ratio", "smece", "mcb", "slope"])
def test_copies_in_clusters_say_as_much_as_one(metric: str) -> None:
    table = drawn(70, seed=12).with_row_index("id")
    copies = pl.concat([table] * 20)
    alone, many = one(table, metric, n_resamples=200), one(copies, metric, cluster="id", n_resamples=200)
    for name in ("first", "second", "pvalue"):
        assert many[name] == pytest.approx(alone[name], rel=1e-7)
    if metric not in {"smece", "slope", "mcb"}:  # the law of these intervals has more to go by than sums of weights
        assert [many["low"], many["high"]] == pytest.approx([alone["low"], alone["high"]], rel=1e-6, abs=2e-3)


def test_clusters_may_be_of_any_type_and_rows_without_one_are_alone(make: Maker) -> None:
    data = make({"y": [0, 1, 0, 1], "a": [0.1, 0.9, 0.3, 0.6], "b": [0.2, 0.7, 0.4, 0.5], "c": ["p", "p", None, "q"]})
    table = rows(compare(data, label="y", score=["a", "b"], metrics="brier", cluster="c").table)
    assert (table["n"], table["n_missing"]) == ([4], [0])
    named = pl.DataFrame({"y": [0, 1, 0, 1], "a": [0.1, 0.9, 0.3, 0.6], "b": [0.2, 0.7, 0.4, 0.5], "c": list("ppxq")})
    alone = compare(named, label="y", score=["a", "b"], metrics="brier", cluster="c").table
    assert [table[name][0] for name in ("low", "pvalue")] == pytest.approx(
        [alone[name][0] for name in ("low", "pvalue")]
    )
    with pytest.raises(ColumnNotFoundError, match=r"no column 'd' for cluster="):
        compare(data, label="y", score=["a", "b"], metrics="brier", cluster="d")


# --- which model is better ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["brier", "log_loss", "accuracy", "auc", "brier_skill", "resolution"])
def test_the_clearly_better_model_is_named(metric: str) -> None:
    table = drawn(2_000, seed=13)
    assert one(table, metric, n_resamples=200)["better"] == "a"
    turned = compare(table, label="y", score=["b", "a"], metrics=metric, n_resamples=200).table
    assert turned["better"].to_list() == ["a"]
    assert turned["difference"][0] == pytest.approx(-one(table, metric, n_resamples=200)["difference"], rel=1e-12)


def test_a_gap_is_better_near_0_and_not_just_smaller() -> None:
    rng = np.random.default_rng(14)
    score = rng.uniform(0.3, 0.7, 3_000)
    label = (rng.random(3_000) < score).astype(int)
    table = pl.DataFrame({"y": label, "a": score + 0.02, "b": score + 0.2, "c": score - 0.2, "d": score + 0.19})
    better = {
        pair: compare(table, label="y", score=list(pair), metrics="gap").table["better"][0]
        for pair in ("ab", "ba", "ac", "ca", "bc", "bd")
    }
    assert better == {"ab": "a", "ba": "a", "ac": "a", "ca": "a", "bc": None, "bd": "d"}


def test_a_measure_without_a_direction_has_no_better_model() -> None:
    found = one(drawn(2_000, seed=13).with_columns(b=pl.col("a") / 2), "sharpness")
    assert found["pvalue"] < 1e-6
    assert found["better"] is None


def test_identical_models_do_not_differ() -> None:
    table = drawn(60, seed=15).with_columns(b="a")
    found = compare(table, label="y", score=["a", "b"], metrics=COMPARED, n_resamples=30).table
    known = found.filter(pl.col("first").is_not_null())
    assert set(known["difference"]) == {0.0}
    assert set(known["pvalue"]) == {1.0}
    assert found["better"].null_count() == len(found)


def test_pvalues_are_adjusted_over_all_segments_and_metrics() -> None:
    table = drawn(400, seed=16)
    arguments: dict[str, Any] = {"label": "y", "score": ["a", "b"], "by": "g", "metrics": ["brier", "auc"]}
    plain = compare(table, **arguments, correction="none").table
    assert plain["pvalue"].to_list() == plain["pvalue_adjusted"].to_list()
    expected = stats.false_discovery_control(plain["pvalue"].to_numpy())  # scipy
    found = compare(table, **arguments, correction="benjamini_hochberg").table
    assert found["pvalue_adjusted"].to_list() == pytest.approx(expected.tolist(), rel=1e-12)
    bonferroni = compare(table, **arguments, correction="bonferroni").table
    assert bonferroni["pvalue_adjusted"].to_list() == pytest.approx([min(4.0 * p, 1.0) for p in plain["pvalue"]])


def test_small_segments_are_exchanged_as_if_they_were_alone() -> None:
    large, small = drawn(2_000, seed=22).with_columns(g=pl.lit("large")), drawn(24, seed=23)
    for metric in ("brier", "auc"):
        alone = one(small, metric)
        table = pl.concat([small.with_columns(g=pl.lit("small")), large])
        found = compare(table, label="y", score=["a", "b"], by="g", metrics=metric, correction="none").table
        assert found["law"].to_list()[1] == alone["law"] == "exchange"
        assert found["law"].to_list()[0] != "exchange"
        assert found["pvalue"][1] == alone["pvalue"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, None]), st.integers(0, 10), st.integers(0, 10), st.sampled_from(["u", "v", None])
        ),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from(["by chance", "clearly"]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_called_better_is_better(drawn_rows: list[tuple[Any, int, int, Any]], differ: str) -> None:
    label, first, second, segment = zip(*drawn_rows, strict=True)
    table = pl.DataFrame(
        {
            "y": label,
            "a": [score / 10 if differ == "by chance" else 0.5 for score in first],
            "b": [
                score / 10 if differ == "by chance" else 0.1 + 0.8 * (y or 0)
                for score, y in zip(second, label, strict=True)
            ],
            "g": segment,
        },
        schema={"y": pl.Int64, "a": pl.Float64, "b": pl.Float64, "g": pl.String},
    )
    names = ["brier", "accuracy", "gap", "ratio", "auc", "ece", "mcb", "sharpness"]
    found = compare(table, label="y", score=["a", "b"], by="g", metrics=names, n_resamples=99, alpha=0.2)
    ideal = {"zero": 0.0, "one": 1.0}
    for row in found.table.iter_rows(named=True):
        direction = METRICS[row["metric"]].direction
        if row["better"] is None:
            continue
        assert row["pvalue"] <= row["pvalue_adjusted"] <= 0.2
        assert row["low"] > 0 or row["high"] < 0
        values = {"a": row["first"], "b": row["second"]}
        if direction in ideal:
            values = {name: -abs(value - ideal[direction]) for name, value in values.items()}
        sign = -1.0 if direction == "lower" else 1.0
        assert row["better"] == max(values, key=lambda name: sign * values[name])
        assert direction != "none"


# --- what cannot be said --------------------------------------------------------------------------------------------


def test_segments_of_one_class_or_no_row_never_stop_the_run() -> None:
    table = pl.DataFrame(
        {
            "y": [1, 1, 1, 0, 1, None],
            "a": [0.6, 0.7, 0.8, 0.2, 0.9, 0.5],
            "b": [0.5, 0.8, 0.7, 0.3, 0.6, 0.5],
            "g": ["ones", "ones", "ones", "both", "both", "none"],
        }
    )
    asked = {"by": "g", "metrics": COMPARED, "n_resamples": 20, "correction": "none"}
    found = compare(table, label="y", score=["a", "b"], **asked).table
    auc = found.filter(metric="auc")
    assert auc["g"].to_list() == ["both", "none", "ones"]
    assert auc["pvalue"].is_null().to_list() == [False, True, True]
    assert auc["note"].to_list() == [
        "no interval for auc: it needs 5 rows of either class",
        "no usable rows",
        "auc: only one class",
    ]
    none = found.filter(g="none")
    assert none["n"].sum() == 0
    for name in ("first", "second", "difference", "low", "high", "pvalue", "pvalue_adjusted", "better", "law"):
        assert none[name].null_count() == len(none)
    assert not found.select(pl.col(pl.Float64).is_nan().any()).row(0).count(True)


def test_a_table_without_common_rows_has_a_table_of_nulls() -> None:
    table = pl.DataFrame({"y": [0, 1], "a": [0.5, None], "b": [None, 0.5]})
    found = one(table)
    assert (found["n"], found["n_missing"], found["first"], found["note"]) == (0, 2, None, "no usable rows")


def test_a_measure_without_an_honest_interval_says_so() -> None:
    found = one(drawn(300, seed=17), "mce", n_resamples=50)
    assert (found["low"], found["high"], found["better"]) == (None, None, None)
    assert found["note"] == "no interval for mce: none is known to be honest"
    assert 0.0 < found["pvalue"] <= 1.0


# --- chance ---------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_result_and_another_one_another() -> None:
    table = drawn(150, seed=18)
    found = [one(table, "ece", rng=seed, n_resamples=200) for seed in (1, 1, 2, 3)]
    assert found[0] == found[1]
    assert found[0]["pvalue"] != found[3]["pvalue"]
    table = table.sample(fraction=1.0, shuffle=True, seed=3)  # nor does the order of rows matter
    assert one(table, "ece", rng=1, n_resamples=200)["pvalue"] == found[0]["pvalue"]
    assert found[0]["pvalue"] == pytest.approx(found[2]["pvalue"], abs=0.15)


@pytest.mark.parametrize("metric", ["auc", "ece", "smece", "slope", "ecce_r", "mce", "confidence_ece"])
@pytest.mark.parametrize("units", [{}, {"weight": "w"}, {"cluster": "c", "by": "g"}, {"weight": "w", "cluster": "c"}])
def test_swapped_models_mirror_each_other(metric: str, units: dict[str, Any]) -> None:
    # an exchange that turns the difference into -difference is as likely under either order of the models
    table = drawn(120, seed=31).with_columns(c=pl.int_range(pl.len()) // 3)
    found, turned = (
        compare(table, label="y", score=score, metrics=metric, n_resamples=60, **units).table
        for score in (["a", "b"], ["b", "a"])
    )
    assert turned["pvalue"].to_list() == found["pvalue"].to_list()
    for name, other, sign in (("first", "second", 1), ("low", "high", -1), ("high", "low", -1)):
        mirrored = (sign * turned[other]).cast(pl.Float64).fill_null(9.0).to_list()
        assert mirrored == pytest.approx(found[name].fill_null(9.0).to_list(), rel=0.0, abs=1e-12)
    assert turned["better"].to_list() == found["better"].to_list()


def test_swapped_models_mirror_each_other_where_sums_are_drawn_and_one_is_float32() -> None:
    table = drawn(21_000, seed=32).with_columns(pl.col("b").cast(pl.Float32))
    found, turned = (
        compare(table, label="y", score=score, metrics="ece", n_resamples=60).table.row(0, named=True)
        for score in (["a", "b"], ["b", "a"])
    )
    assert turned["pvalue"] == found["pvalue"]
    assert [-turned["high"], -turned["low"]] == pytest.approx([found["low"], found["high"]], abs=1e-12)


def test_the_order_of_rows_does_not_matter() -> None:
    table = drawn(150, seed=19)
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=3)
    for metric in ("brier", "auc"):
        before, after = one(table, metric), one(shuffled, metric)
        for name in ("first", "second", "low", "high", "pvalue"):
            assert after[name] == pytest.approx(before[name], rel=1e-9)


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"score": "a"}, ArgumentError, r"list of two columns.*got 1: 'a'"),
        ({"score": ["a", "b", "w"]}, ArgumentError, r"got 3: .*call once for each pair"),
        ({"score": {"no": "a", "yes": "b"}}, ArgumentError, r"got a mapping"),
        ({"score": ["a", "a"]}, ArgumentError, r"'a' twice"),
        ({"score": ["a", "zz"]}, ColumnNotFoundError, r"no column 'zz' for score="),
        ({"metrics": "briar"}, ArgumentError, r"Did you mean 'brier'"),
        ({"metrics": "epistemic_loss"}, ArgumentError, r"needs the true probabilities"),
        ({"correction": "sidak"}, ArgumentError, r"correction"),
        ({"alpha": 5}, ArgumentError, r"alpha must lie between 1e-09 and 0.5, for example 0\.05; got 5"),
        ({"confidence_level": 95}, ArgumentError, r"confidence_level must lie between 0 and 1"),
        ({"n_resamples": 3}, ArgumentError, r"n_resamples must be a whole number from 20"),
        ({"label": "w"}, LabelError, r"'w'"),
        ({"by": "law"}, ColumnClashError, r"'law' has the name of a result column"),
    ],
)
def test_wrong_input_gets_one_clear_error(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    table = drawn(20).with_columns(law=pl.lit("x"))
    with pytest.raises(error, match=match):
        compare(table, **{"label": "y", "score": ["a", "b"], **arguments})


# --- the result object ----------------------------------------------------------------------------------------------


def test_the_result_is_json_ready_and_fits_80_columns() -> None:
    table = drawn(200, seed=20).rename({"a": "a_model_with_quite_a_long_name", "b": "another_model_with_a_long_name"})
    scores = ["a_model_with_quite_a_long_name", "another_model_with_a_long_name"]
    found = compare(table, label="y", score=scores, by="g", n_resamples=50)
    assert isinstance(found, Comparison)
    said = found.to_dict()
    assert (said["schema_version"], said["kind"], said["first"], said["second"]) == (1, "comparison", *scores)
    assert len(json.loads(json.dumps(said, allow_nan=False))["table"]) == 8
    assert max(map(len, repr(found).splitlines())) <= 80
    assert "<table>" in found._repr_html_()
    assert found.metrics == PAIRS


def test_all_metrics_but_the_slow_one_can_be_asked_for_at_once() -> None:
    found = compare(drawn(60, seed=21), label="y", score=["a", "b"], metrics="all", n_resamples=20)
    assert found.table["metric"].to_list() == [name for name in COMPARED if name != "skce"]


# --- independent values ---------------------------------------------------------------------------------------------


def entries(folder: Path, metric: str) -> list[dict[str, Any]]:
    lines = (folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines if '"pair|' in line]
    assert {entry["metric"] for entry in found} == {"delong_test", "brier_score_contrast", "paired_t_brier"}
    return [entry for entry in found if entry["metric"] == metric]


def reference_row(folder: Path, entry: dict[str, Any], metric: str) -> dict[str, Any]:
    table = pl.read_parquet(folder / "data" / f"{entry['table']}.parquet")
    score = entry["score"].split(" vs ")
    found = compare(table, label=entry["label"], score=score, metrics=metric, correction="none")
    return dict(found.table.row(0, named=True))


def test_reference_values_of_r(reference_folder: Path) -> None:
    # R 4.2.2, t.test(paired = TRUE) of first minus second: t, degrees of freedom, p, mean difference
    found = entries(reference_folder, "paired_t_brier")
    assert len(found) == 3
    for entry in found:
        t, freedom, pvalue, difference = entry["value"]
        row = reference_row(reference_folder, entry, "brier")
        error = (row["high"] - row["low"]) / 2.0 / stats.t(freedom).ppf(0.975)
        assert row["law"] == "t"
        assert row["n"] - 1 == freedom
        assert [-row["difference"], -row["difference"] / error] == pytest.approx([difference, t], rel=1e-9)
        assert row["pvalue"] == pytest.approx(pvalue, rel=1e-7)  # of 4e-15, t to 1e-11


def test_reference_values_of_riskregression(reference_folder: Path) -> None:
    # riskRegression 2022.11.28, Score(): Brier scores and 1 - brier / null, then the contrast with its standard error.
    # Its interval and p-value take the normal law of that t, ours Student's: the same estimate and standard error.
    found = entries(reference_folder, "brier_score_contrast")
    assert len(found) == 3
    for entry in found:
        first, _, _, _, skill, second, _, _, _, second_skill, difference, error, low, high, pvalue = entry["value"]
        row = reference_row(reference_folder, entry, "brier")
        assert [row["first"], row["second"]] == pytest.approx([first, second], rel=1e-9)
        assert row["difference"] == pytest.approx(difference, rel=1e-9)
        ours = (row["high"] - row["low"]) / 2.0 / stats.t(row["n"] - 1).ppf(0.975)
        assert ours == pytest.approx(error, rel=1e-9)
        z = stats.norm.ppf(0.975)
        assert [row["difference"] - z * ours, row["difference"] + z * ours] == pytest.approx([low, high], rel=1e-8)
        assert 2.0 * stats.norm.sf(abs(row["difference"]) / ours) == pytest.approx(pvalue, rel=1e-7)
        skills = reference_row(reference_folder, entry, "brier_skill")
        assert [skills["first"], skills["second"]] == pytest.approx([skill, second_skill], rel=1e-9)


# --- the chart ------------------------------------------------------------------------------------------------------


def test_the_chart_of_differences() -> None:
    table = drawn(400, seed=22).with_columns(g=pl.col("g").cast(pl.String) + "</script>")
    found = compare(table, label="y", score=["a", "b"], by="g", metrics=["brier", "mce"], n_resamples=50)
    spec = found.plot().to_dict()
    assert [panel["layer"][-2]["encoding"]["text"]["value"] for panel in spec["vconcat"]] == [
        "brier (lower is better)",
        "mce (lower is better)",
    ]
    (name,) = (part["data"]["name"] for part in spec["vconcat"][0]["layer"] if part["mark"]["type"] == "point")
    dots = spec["datasets"][name]
    expected = found.table.filter(metric="brier")["difference"].to_list()
    assert [dot["difference"] for dot in dots] == pytest.approx(expected, rel=1e-5)
    assert "</script>" not in json.dumps(spec)
    with pytest.raises(ArgumentError, match="width must be a number of pixels"):
        found.plot(width=3)
    with pytest.raises(ArgumentError, match=r"most must be a whole number of 1 or more; got 2\.5"):
        found.plot(most=2.5)
