"""The numbers: worked by hand, by peers, by published tables and by slow definitions, the same from every library."""

from __future__ import annotations

import math
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import calframe
from calframe._errors import ArgumentError
from tests._definitions import EXACT, defined, edges_of
from tests._tables import Maker, approx, column, measure, rows, types, value

# Four rows whose scores are sums of powers of two, bins of a quarter: bin 1 holds .25, bin 2 holds .5, bin 3 both .75.
QUARTERS = {"y": [1, 0, 1, 0], "p": [0.75, 0.25, 0.5, 0.75]}
BY_HAND = {
    "rate": 2 / 4,
    "mean_score": 2.25 / 4,
    "gap": 0.0625,  # 0.5625 - 0.5
    "ratio": 1.125,  # 0.5625 / 0.5
    "accuracy": 3 / 4,  # only the last row is wrong: 0.5 predicts 1
    "brier": 0.9375 / 4,  # (1/16 + 1/16 + 4/16 + 9/16) / 4
    "brier_skill": 0.0625,  # 1 - 0.234375 / 0.25
    "log_loss": (2 * math.log(4 / 3) + 3 * math.log(2)) / 4,
    "ece": 1.25 / 4,  # |.25 - 0| + |.5 - 1| + |1.5 - 1|
    "mce": 0.5,  # bin 2
    "rmsce": math.sqrt(0.4375 / 4),  # (1/16 + 4/16 + 2 * 1/16) / 4
    "ace": 1 / 3,  # (.25 + .5 + .25) / 3
    "ece_expected": 1.4375 / 4,  # 2 * 1/4 * 3/4 = .375; 2 * 1/2 * 1/2 = .5; (1 * 1.5 + 6 * .5 + 9 * .5) / 16 = .5625
    "sharpness": 1.4375 / 4 - 0.5625**2,
    "ece_debiased": 0.0,  # only bin 3 has two rows: 2 (1/16 - 1/4), below 0
    "reliability": 0.4375 / 4,
    "resolution": 0.5 / 4,  # (0 - 1/2)^2 + (1 - 1/2)^2 + 2 * 0
    "uncertainty": 1 / 4,
    "within_bin": 0.0,  # each bin has one score
    "reliability_corrected": 0.4375 / 4 - 0.125,  # less 2 * 1/4 / 1 of bin 3, by 4 rows
    "resolution_corrected": 0.125 - 0.125 + 1 / 12,
    "uncertainty_corrected": 1 / 3,
    "auc": 2.5 / 4,  # .75 beats .25 and ties with .75, .5 beats .25
    "ece_sweep": 0.75 / 4,  # two bins, both with rate 1/2: 2 |.375 - .5| + 2 |.75 - .5|; three would be out of order
    "ecce_r": 0.125,  # running sums -1/16, 1/16, -1/16
    "ecce_mad": 0.0625,
    "calibration_loss": 0.4375 / 4,
    "refinement_loss": 2 / 16,
    "calibration_loss_log": (2 * math.log(4 / 3) + math.log(2)) / 4,
    "refinement_loss_log": math.log(2) / 2,
    "mcb": 0.9375 / 4 - 1 / 6,  # isotonic: 0, then 2/3 for the other three, (3 * 2/9) / 4 = 1/6
    "dsc": 1 / 4 - 1 / 6,
    "unc": 1 / 4,
    "mcb_log": (2 * math.log(4 / 3) + 3 * math.log(2) - 3 * math.log(3) + 2 * math.log(2)) / 4,
    "dsc_log": math.log(2) - (3 * math.log(3) - 2 * math.log(2)) / 4,
    "unc_log": math.log(2),
    "aurc": (3 * 1 / 3 + 1 / 4) / 4,  # three of confidence .75, one of them wrong, then .5
    "eaurc": (3 * 1 / 3 + 1 / 4) / 4 - 1 / 16,
    "confidence_ece": (0.25 + 0.5) / 4,  # 3 |.75 - 2/3| + |.5 - 1|
    "confidence_mce": 0.5,
    "classwise_ece": 1.25 / 4,  # that of the other class mirrors it
    "classwise_mce": 0.5,
    "toplabel_ece": 1.25 / 4,  # says 1: |.5 - 1| + |1.5 - 1|; says 0: |.75 - 1|
    "full_ece": 2.5 / 4,
    "skce": (0.25 / math.e**2 - 0.75 / math.e - 0.375) / 6,  # distances 0, .5, .5, .5, 1, 1 over their median .5
}
FITTED = ("smece", "ici", "e50", "e90", "emax", "slope", "intercept", "citl", "slope_se", "intercept_se", "citl_se")


@pytest.mark.parametrize("closed", ["left", "right"])
def test_every_metric_of_a_table_worked_by_hand(make: Maker, closed: str) -> None:
    found = rows(measure(make, QUARTERS, metrics="all", bins=4, closed=closed))
    fitted = {name: found.pop(name)[0] for name in FITTED}  # against peers in other files
    assert found == {"n": [4], "n_missing": [0], **{name: [approx(x)] for name, x in BY_HAND.items()}, "note": [None]}
    assert all(math.isfinite(value) for value in fitted.values())


def test_weights_enter_every_metric(make: Maker) -> None:
    # Weights 3 and 1 at scores 3/4 (label 1) and 1/4 (label 0), bins of a half.
    table = {"y": [1, 0], "p": [0.75, 0.25], "w": [3.0, 1.0]}
    by_hand = {
        "weight_sum": 4.0,
        "rate": 3 / 4,
        "mean_score": 2.5 / 4,
        "gap": -0.125,
        "ratio": 2.5 / 3,
        "accuracy": 1.0,
        "brier": 1 / 16,
        "brier_skill": 1 - (1 / 16) / (3 / 16),
        "log_loss": math.log(4 / 3),
        "ece": 0.25,  # (3 * .25 + 1 * .25) / 4
        "mce": 0.25,
        "rmsce": 0.25,
        "ace": 0.25,
        "ece_expected": (3 * 0.375 + 0.375) / 4,  # one Bernoulli row a bin, 2 p (1 - p), times its weight
        "sharpness": (3 * 9 / 16 + 1 / 16) / 4 - (2.5 / 4) ** 2,
    }
    found = rows(measure(make, table, metrics="all", bins=2, weight="w"))
    assert {name: found[name] for name in by_hand} == {name: [approx(x)] for name, x in by_hand.items()}


def test_the_usual_metrics(make: Maker) -> None:
    found = rows(measure(make, QUARTERS))
    usual = ["rate", "mean_score", "gap", "brier", "log_loss", "ece", "ece_expected"]
    assert list(found) == ["n", "n_missing", *usual, "note"]


def peer_table() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    score = np.concatenate([rng.beta(1.0, 3.0, 400), np.arange(17) / 16])
    return {"y": (rng.random(417) < score**1.3).astype(int), "p": score, "w": rng.uniform(0.1, 4.0, 417)}


@pytest.mark.parametrize("weight", [None, "w"])
def test_brier_and_log_loss_of_scikit_learn(make: Maker, weight: str | None) -> None:
    table = peer_table()
    clip = 2.0**-52  # scikit-learn clips float64 scores at their epsilon
    weights = None if weight is None else table[weight]
    found = measure(make, table, metrics=["brier", "log_loss"], clip=clip, weight=weight)
    assert column(found, "brier") == approx([brier_score_loss(table["y"], table["p"], sample_weight=weights)])
    assert column(found, "log_loss") == approx([log_loss(table["y"], table["p"], sample_weight=weights)])


@pytest.mark.parametrize("bins", [2, 4, 16, 64])
def test_binned_errors_of_scikit_learn(make: Maker, bins: int) -> None:
    # scikit-learn's bins are right-closed; its linspace edges are exact for powers of two
    table = peer_table()
    rate, mean = calibration_curve(table["y"], table["p"], n_bins=bins)
    inner = np.linspace(0, 1, bins + 1)[1:-1]
    counts = np.bincount(np.searchsorted(inner, table["p"]), minlength=bins)
    gaps = np.abs(rate - mean)
    found = measure(make, table, metrics=["ece", "mce", "ace", "rmsce"], bins=bins, closed="right")
    share = counts[counts > 0] / counts.sum()
    assert column(found, "ece") == approx([float(share @ gaps)])
    assert column(found, "mce") == approx([float(gaps.max())])
    assert column(found, "ace") == approx([float(gaps.mean())])
    assert column(found, "rmsce") == approx([float(np.sqrt(share @ gaps**2))])


def golden_table() -> dict[str, list[Any]]:
    i = range(240)
    score = [((37 * k) % 101) / 100 for k in i]
    label = [int(((53 * k + 11) % 97) / 97 < 0.9 * p**1.4 + 0.05) for k, p in zip(i, score, strict=True)]
    return {"y": label, "p": score, "w": [1 + 0.5 * (k % 3) for k in i], "g": ["abc"[(k // 7) % 3] for k in i]}


# What pycalib, uncertainty-calibration, pbear, calibre, netcal and model-diagnostics print for that table where their
# bins are the same as ours, and exact rational arithmetic where they are not; ten digits.
GOLDEN = [
    ("mean_score", {}, [0.4988333333]),
    ("rate", {}, [0.4208333333]),
    ("brier", {}, [0.1627458333]),
    ("log_loss", {}, [0.4853978350]),
    ("brier", {"weight": "w"}, [0.1641226389]),
    ("ece", {"bins": 10, "closed": "right"}, [0.0971666667]),
    ("ece", {"bins": 10, "closed": "right", "weight": "w"}, [0.0970138889]),
    ("ece", {"bins": 10, "closed": "right", "by": "g"}, [0.0921428571, 0.1200000000, 0.1187012987]),
    ("ece", {"bins": 15, "closed": "right"}, [0.1136666667]),
    ("ece", {"bins": 40, "closed": "right"}, [0.1120833333]),
    ("mce", {"bins": 10, "closed": "right"}, [0.2652173913]),
    ("ece", {"bins": 10}, [0.1008333333]),
    ("ece", {"bins": 15}, [0.1103333333]),
    ("ece", {}, [0.1103333333]),
    ("ece", {"bins": 40}, [0.1211666667]),
    ("mce", {"bins": 10}, [0.2086956522]),
    ("ace", {"bins": 10}, [0.1019863434]),
    ("rmsce", {"bins": 10}, [0.1189886584]),
]


@pytest.mark.parametrize(("metric", "arguments", "expected"), GOLDEN)
def test_published_numbers(make: Maker, metric: str, arguments: dict[str, Any], expected: list[float]) -> None:
    found = column(measure(make, golden_table(), metrics=metric, **arguments), metric)
    assert found == pytest.approx(expected, abs=5.1e-11)


def messy_table() -> dict[str, Any]:
    """Return 600 rows with every kind of gap: nulls and NaN in label, both scores, weight and a key."""
    rng = np.random.default_rng(5)

    def pick(values: list[Any], chances: list[float]) -> list[Any]:
        return [values[i] for i in rng.choice(len(values), 600, p=chances)]

    score = [round(float(p), 2) for p in rng.beta(0.8, 1.5, 600)]  # two decimals: many scores on edges
    rough = rng.random(600).astype(np.float32)
    rough[::17], rough[5::31] = np.nan, np.float32(0.3)
    return {
        "y": pick([0, 1, None], [0.55, 0.4, 0.05]),
        "a": [
            p * gap if gap else gap for p, gap in zip(score, pick([1, None, math.nan], [0.9, 0.05, 0.05]), strict=True)
        ],
        "b": rough,
        "w": pick([0.0, 0.3, 1.0, 2.5, None], [0.1, 0.3, 0.3, 0.25, 0.05]),
        "g": pick(["north", "south", "nan", None], [0.4, 0.3, 0.2, 0.1]),
        "h": pick([3, 20], [0.5, 0.5]),
    }


def test_the_messy_table_is_messy() -> None:
    table = messy_table()
    assert sum(x is None for x in table["a"]) > 10
    assert sum(x is not None and math.isnan(x) for x in table["a"]) > 10
    assert sum(x in {0.1, 0.2, 0.3, 0.6, 0.7} for x in table["a"]) > 20


@pytest.mark.parametrize(("closed", "weight"), [("left", "w"), ("right", "w"), ("left", None)])
def test_a_messy_table_against_the_definitions(make: Maker, closed: str, weight: str | None) -> None:
    table = messy_table()
    arguments: dict[str, Any] = {"metrics": EXACT, "bins": 10, "closed": closed, "weight": weight, "clip": 1e-6}
    found = rows(calframe.metrics(make(table), label="y", score=["b", "a"], by=["g", "h"], **arguments))
    if weight is None:
        table["w"] = [1.0] * 600
    order = [(g, h, m) for g in ("nan", "north", "south", None) for h in (3, 20) for m in ("b", "a")]
    assert list(zip(found["g"], found["h"], found["model"], strict=True)) == order
    for i, (g, h, model) in enumerate(order):
        used = complete_rows(table, g, h, model)
        assert found["n"][i] == len(used)
        assert found.get("weight_sum", found["n"])[i] == approx(math.fsum(weight for _, _, weight in used))
        edges = edges_of(10, single=model == "b")
        want = [defined(name, used, edges=edges, closed=closed, clip=1e-6) for name in EXACT]
        assert [found[name][i] for name in EXACT] == approx(want)


def complete_rows(table: dict[str, Any], g: str | None, h: int, model: str) -> list[tuple[int, float, float]]:
    """Return label, score and weight of the rows of one segment that have all three and a positive weight."""
    columns = zip(table["y"], table[model], table["w"], table["g"], table["h"], strict=True)
    mine = [(y, s, w) for y, s, w, *key in columns if key == [g, h] and None not in (y, s, w)]
    return [(y, float(s), w) for y, s, w in mine if not math.isnan(s) and w > 0]


@pytest.mark.filterwarnings("ignore:.* infinite:calframe._errors.CalframeWarning")
@pytest.mark.parametrize("weight_kind", ["importance", "frequency"])
def test_every_library_gives_the_same_table(make: Maker, weight_kind: str) -> None:
    table = messy_table()
    if weight_kind == "frequency":
        table["w"] = [None if w is None else math.ceil(w) for w in table["w"]]
    arguments: dict[str, Any] = {"label": "y", "score": ["a", "b"], "by": ["h", "g"], "weight": "w"}
    arguments |= {"metrics": "all", "confidence_level": 0.9, "clip": 1e-9, "weight_kind": weight_kind}
    polars = rows(calframe.metrics(Maker("polars")(table), **arguments))
    found = rows(calframe.metrics(make(table), **arguments))
    assert list(found) == list(polars)
    # an end for smece solves for a bandwidth, to nine digits; sums differ in their last digits between libraries
    digits = {"smece_low": 1e-9, "smece_high": 1e-9}
    expected = {name: [approx(x, rel=digits.get(name, 1e-12)) for x in values] for name, values in polars.items()}
    assert found == expected


def test_a_result_is_a_table_of_the_same_library(make: Maker) -> None:
    found = calframe.metrics(make(messy_table()), label="y", score="b", by=["g", "h"])
    assert type(found) is make.result
    if isinstance(found, pd.DataFrame):
        assert found.index.equals(pd.RangeIndex(len(found)))
    assert [type(each) for each in types(found).values()] == [nw.String, nw.Int64, nw.Int64, nw.Int64] + [
        nw.Float64
    ] * 7 + [nw.String]


def test_a_lazy_result_knows_its_schema() -> None:
    plan = calframe.metrics(
        pl.LazyFrame(messy_table()),
        label="y",
        score=["a", "b"],
        by=["g", "h"],
        weight="w",
        invalid="drop",
        confidence_level=0.95,
        clip=1e-6,
    )
    assert plan.collect_schema() == plan.collect().schema


@pytest.mark.parametrize(
    "step",
    [
        lambda table: table.head(1),
        lambda table: table.tail(1),
        lambda table: table.slice(1, 2),
        lambda table: table.select("ece"),
        lambda table: table.filter(pl.col("n") > 60),
        lambda table: table.filter(pl.col("g") == "north"),
        lambda table: table.select(pl.len()),
    ],
    ids=["head", "tail", "slice", "select", "filter by value", "filter by key", "len"],
)
def test_what_follows_in_a_lazy_plan_does_not_change_the_numbers(step: Any) -> None:
    # polars before 2 pushes such steps below a Python step of the plan unless told not to
    table = pl.DataFrame(messy_table())
    arguments: dict[str, Any] = {"label": "y", "score": "b", "by": ["g", "h"], "metrics": ["rate", "ece"]}
    lazy = step(calframe.metrics(table.lazy(), **arguments)).collect()
    eager = step(calframe.metrics(table, **arguments))
    assert rows(lazy) == {name: [approx(x) for x in values] for name, values in rows(eager).items()}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_engines_agree(engine: str) -> None:
    arguments: dict[str, Any] = {"label": "y", "score": "b", "by": ["g", "h"], "metrics": "all"}
    table = pl.DataFrame(messy_table())
    expected = {name: [approx(x) for x in each] for name, each in rows(calframe.metrics(table, **arguments)).items()}
    assert rows(calframe.metrics(table, engine=engine, **arguments)) == expected
    assert rows(calframe.metrics(table.lazy(), **arguments).collect(engine=engine)) == expected


def test_one_metric_by_name(make: Maker) -> None:
    assert list(rows(measure(make, QUARTERS, metrics="brier"))) == ["n", "n_missing", "brier", "note"]


def test_metrics_come_in_the_order_asked_each_with_its_interval(make: Maker) -> None:
    found = rows(measure(make, QUARTERS, metrics=("gap", "rate"), confidence_level=0.9))
    ends = ["gap", "gap_low", "gap_high", "rate", "rate_low", "rate_high"]
    assert list(found) == ["n", "n_missing", *ends, "note"]


def test_several_models_stand_side_by_side_in_the_order_given(make: Maker) -> None:
    # z is right about the first row only, a about both; m is missing once
    table = {"y": [1, 0], "z": [1.0, 1.0], "a": [1.0, 0.0], "m": [0.5, None]}
    found = rows(calframe.metrics(make(table), label="y", score=["z", "a", "m"], metrics="brier"))
    assert found == {
        "model": ["z", "a", "m"],
        "n": [2, 2, 1],
        "n_missing": [0, 0, 1],
        "brier": [0.5, 0.0, 0.25],
        "note": [None] * 3,
    }


def test_a_list_of_one_score_has_a_model_column(make: Maker) -> None:
    assert column(measure(make, QUARTERS, score=["p"], metrics="rate"), "model") == ["p"]


def test_a_score_column_may_be_called_model(make: Maker) -> None:
    found = rows(calframe.metrics(make({"y": [1], "model": [0.25]}), label="y", score=["model"], metrics="gap"))
    assert (found["model"], found["gap"]) == (["model"], [-0.75])


def test_one_row(make: Maker) -> None:
    found = rows(measure(make, {"y": [0], "p": [0.75]}, metrics="all"))
    said = dict(part.split(": ", maxsplit=1) for part in found["note"][0].split("; "))
    assert {name for name, values in found.items() if values == [None]} == said.keys()
    assert (said["ratio"], said["brier_skill"], said["auc"]) == ("no positives", "only one class", "only one class")
    assert {"slope", "citl", "skce", "uncertainty_corrected"} < said.keys()
    assert (found["brier"], found["gap"], found["sharpness"]) == ([0.5625], [0.75], [0.0])


@pytest.mark.parametrize(("label", "ratio"), [(1, 0.25), (0, None)])
def test_one_class_leaves_only_what_it_defines(make: Maker, label: int, ratio: float | None) -> None:
    table = {"y": [label] * 3, "p": [0.25] * 3}
    assert value(make, table, "ratio") == ratio
    assert value(make, table, "brier_skill") is None


def test_metrics_stay_in_their_range_at_the_ends(make: Maker) -> None:
    # the largest scores below 1 and the smallest above 0: both rows wrong by all but nothing
    found = rows(measure(make, {"y": [1, 0], "p": [5e-324, 1 - 2**-53]}, metrics=["brier", "ece", "sharpness"]))
    assert (found["brier"], found["ece"], found["sharpness"]) == ([approx(1.0)], [approx(1.0)], [approx(0.25)])
    assert max(found["brier"] + found["ece"]) <= 1.0
    assert found["sharpness"][0] <= 0.25


def test_small_integers_do_not_overflow(make: Maker) -> None:
    # 200 * 200 wraps in a byte, and so does the sum of 300 ones
    table = {"y": np.ones(300, "int8"), "p": np.ones(300, "int8"), "w": np.full(300, 200, "uint8")}
    found = rows(measure(make, table, weight="w", metrics=["rate", "brier"], confidence_level=0.9))
    assert (found["weight_sum"], found["rate"], found["brier"]) == ([60_000.0], [1.0], [0.0])
    # Wilson at rate 1 and (sum w)^2 / sum w^2 = 300 rows: n / (n + z^2)
    assert found["rate_low"] == approx([300 / (300 + 1.6448536269514722**2)])


def test_sums_in_single_precision_are_not_taken(make: Maker) -> None:
    table = {"y": np.zeros(1001, "float32"), "p": np.full(1001, 0.25, "float32")}
    table["w"] = np.array([1e8] + [1.0] * 1000, "float32")
    assert column(measure(make, table, weight="w", metrics="mean_score"), "weight_sum") == [1e8 + 1000]


@pytest.mark.parametrize(
    ("metrics", "match"),
    [
        ("brierr", r"metrics='brierr' is not known\. Did you mean 'brier'\? It must be one of 'accuracy', .*"),
        ("brier_score", r"Did you mean 'brier'\?"),
        ("roc_auc", r"Did you mean 'auc'\?"),
        ("roc", r"Did you mean 'auc'\?"),
        ("nll", r"Did you mean 'log_loss'\?"),
        ("MSE", r"Did you mean 'brier'\?"),
        ("calib", r"Did you mean 'calibration_loss'\?"),
        ("gap, ece", r"metrics='gap, ece' is not known\. Did you mean metrics=\['gap', 'ece'\]\?"),
        ("nonsense", r"metrics must be one of .*; got 'nonsense'"),
        (["brier", None], r"metrics must be one of .*; got None"),
        (["brier", "brier"], r"metrics= names 'brier' twice"),
        ([], r"metrics is an empty list"),
        (3, r"metrics"),
    ],
)
def test_metrics_that_are_not(metrics: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        calframe.metrics(pl.DataFrame(QUARTERS), label="y", score="p", metrics=metrics)
