"""Answering where a model is confident: curves by their definition, and thresholds that hold for new rows."""

from __future__ import annotations

import csv
import json
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.metrics import accuracy_score
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe import ArgumentError, ColumnClashError, EmptyTableError, ScoreError
from calframe._compare import compare
from calframe._selective import Selective, selective
from tests._tables import Maker, approx, rows, types
from tests.simulations.thresholds import LEVEL, RESULTS, SIZES, TARGETS, WORLDS, simulate

POLARS = Maker("polars")
CURVE = ["threshold", "coverage", "n", "accuracy", "risk", "accuracy_low", "accuracy_high"]
SUMMARY = ["n", "n_missing", "accuracy", "aurc", "eaurc"]
SUMMARY += ["confident_share", "confident_errors", "confident_error_rate", "note"]
CHOSEN = ["target_accuracy", "threshold", "coverage", "n", "accuracy", "accuracy_low", "note"]


def found(columns: Any, make: Maker = POLARS, **arguments: Any) -> Selective:
    return selective(make(columns), **{"label": "y", "score": "p", **arguments})


def drawn(n: int = 600, *, seed: int = 0) -> dict[str, Any]:
    """Return rows with ties, two models, weights and segments."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(n) < 0.4, rng.integers(0, 17, n) / 16, rng.random(n))
    return {
        "y": (rng.random(n) < score).astype(int).tolist(),
        "p": score.tolist(),
        "q": (np.floor(rng.random(n) * 64) / 64).tolist(),  # one less such a number is exact
        "w": rng.choice([0.5, 1.0, 2.5], n).tolist(),
        "k": rng.choice([1, 2, 3], n).tolist(),
        "g": rng.choice(["a", "b", "c"], n).tolist(),
    }


# By hand: confidences .9, .9, .7, .6 of predictions that are right, right, right, wrong

HAND = {"y": [0, 1, 0, 1], "p": [0.1, 0.9, 0.3, 0.4]}


def test_four_rows_by_hand(make: Maker) -> None:
    result = found(HAND, make, confident_at=0.7)
    table, summary = rows(result.table), rows(result.summary)
    assert list(table) == CURVE
    assert table["threshold"] == [0.9, 0.7, 0.6]
    assert table["coverage"] == [0.5, 0.75, 1.0]
    assert table["n"] == [2, 3, 4]
    assert table["accuracy"] == [1.0, 1.0, 0.75]
    assert table["risk"] == [0.0, 0.0, 0.25]
    # Wilson, statsmodels
    ends = [proportion_confint(k, n, method="wilson") for k, n in ((2, 2), (3, 3), (3, 4))]
    assert table["accuracy_low"] == approx([end[0] for end in ends])
    assert table["accuracy_high"] == approx([end[1] for end in ends])
    assert list(summary) == SUMMARY
    # one error at the very end: aurc = 1/4 * 1/4, the best there can be
    expected = [[4], [0], [0.75], [1 / 16], [0.0], [0.75], [0.0], [0.0], [None]]
    assert list(summary.values()) == approx(expected)
    assert rows(result.targets) == {name: [] for name in CHOSEN}


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ({}, []),
        ({"by": "g"}, ["g"]),
        ({"score": ["q", "p"]}, ["model"]),
        ({"score": ["p", "q"], "by": ["k", "g"]}, ["k", "g", "model"]),
    ],
)
def test_columns_come_in_order_and_keep_their_types(make: Maker, arguments: dict[str, Any], keys: list[str]) -> None:
    result = found(drawn(80), make, target_accuracy=[0.5, 0.9], **arguments)
    for frame, names in ((result.table, CURVE), (result.summary, SUMMARY), (result.targets, CHOSEN)):
        assert isinstance(frame, pl.DataFrame if make.lazy else make.result)
        kinds = types(frame)
        assert list(kinds) == [*keys, *names]
        whole = {"n", "n_missing"} & set(names)
        assert {kinds[name] for name in whole} == {nw.Int64}
        assert {kinds[name] for name in set(names) - whole - {"note"}} == {nw.Float64}
        assert kinds["note"] == nw.String if "note" in names else True
    weighted = found(drawn(80), make, weight="w", **arguments)
    assert list(types(weighted.table)) == [*keys, *CURVE[:3], "weight_sum", *CURVE[3:]]
    assert list(types(weighted.summary)) == [*keys, *SUMMARY[:2], "weight_sum", *SUMMARY[2:]]


# Against the definition, row by row


def by_definition(columns: dict[str, Any], score: str, keep: Any, weight: Any) -> list[tuple[float, ...]]:
    """Return threshold, coverage, n, weight, accuracy, effective rows from each distinct confidence up."""
    p, y = np.array(columns[score])[keep], np.array(columns["y"])[keep]
    w = np.ones(len(p)) if weight is None else np.array(columns[weight])[keep]
    confidence, right = np.maximum(p, 1 - p), (p >= 0.5) == (y == 1)
    lines = []
    for threshold in sorted(set(confidence.tolist()), reverse=True):
        there = confidence >= threshold
        mass = w[there].sum()
        lines.append(
            (
                threshold,
                mass / w.sum(),
                there.sum(),
                mass,
                w[there & right].sum() / mass,
                mass**2 / (w[there] ** 2).sum(),
            )
        )
    return lines


@pytest.mark.parametrize("weight", [None, "w"])
def test_curves_by_their_definition(make: Maker, weight: str | None) -> None:
    columns = drawn()
    result = rows(found(columns, make, score=["p", "q"], by="g", weight=weight, points=10_000).table)
    place = 0
    for segment in ("a", "b", "c"):
        for model in ("p", "q"):
            for line in by_definition(columns, model, np.array(columns["g"]) == segment, weight):
                threshold, coverage, n, mass, accuracy, effective = line
                row = {name: values[place] for name, values in result.items()}
                assert (row["g"], row["model"], row["threshold"], row["n"]) == (segment, model, threshold, n)
                assert row["coverage"] == approx(coverage)
                assert row.get("weight_sum", mass) == approx(mass)
                assert row["accuracy"] == approx(accuracy)
                assert row["risk"] == approx(1 - accuracy)
                low, high = proportion_confint(accuracy * effective, effective, method="wilson")
                assert row["accuracy_low"] == pytest.approx(low, rel=1e-9)
                assert row["accuracy_high"] == pytest.approx(high, rel=1e-9)
                place += 1
    assert place == len(result["n"])


@pytest.mark.parametrize("interval", ["wilson", "clopper_pearson", "jeffreys"])
def test_the_interval_that_was_asked_for(interval: Any) -> None:
    result = rows(found(HAND, interval=interval, confidence_level=0.8).table)
    names = {"wilson": "wilson", "clopper_pearson": "beta", "jeffreys": "jeffreys"}
    low, high = proportion_confint(3, 4, alpha=0.2, method=names[interval])  # statsmodels
    assert [result["accuracy_low"][-1], result["accuracy_high"][-1]] == approx([low, high])


def test_the_order_of_rows_does_not_matter() -> None:
    frame = pl.DataFrame(drawn())
    arguments: dict[str, Any] = {"label": "y", "score": "p", "by": "g", "weight": "w", "target_accuracy": 0.7}
    one, other = (selective(each, **arguments) for each in (frame, frame.sample(fraction=1.0, shuffle=True, seed=1)))
    for name in ("table", "summary", "targets"):
        first, second = getattr(one, name), getattr(other, name)
        assert rows(first) == {key: approx(values) for key, values in rows(second).items()}


def test_weight_2_is_the_row_twice() -> None:
    frame = pl.DataFrame(drawn())
    twice = frame.select(pl.all().repeat_by("k")).explode(pl.all(), empty_as_null=True)
    weighted = found(frame.to_dict(as_series=False), weight="k", weight_kind="frequency", target_accuracy=[0.6, 0.8])
    plain = selective(twice, label="y", score="p", target_accuracy=[0.6, 0.8])
    names = ["threshold", "coverage", "accuracy", "accuracy_low"]
    for table in ("table", "targets"):
        one, other = rows(getattr(weighted, table)), rows(getattr(plain, table))
        assert {name: one[name] for name in names} == {name: approx(other[name]) for name in names}
    assert rows(weighted.summary)["aurc"] == approx(rows(plain.summary)["aurc"])


@pytest.mark.parametrize(("unit", "said"), [(1 / 500, True), (7.0, True), (1.5, False), (1.0, False)])
def test_importance_weights_with_a_mean_far_from_1_are_said_to_count_rows(unit: float, *, said: bool) -> None:
    # the contract has weight 2 as the row twice in every metric, so that the scale of weights is not taken out
    frame = pl.DataFrame(drawn()).with_columns(unit=pl.lit(unit))
    asked: dict[str, Any] = {"label": "y", "score": "p", "weight": "unit"}
    expected = "weights count rows in aurc, eaurc: give importance weights a mean of 1"
    summary = selective(frame, **asked).summary
    assert (expected in (summary["note"][0] or "")) == said
    measured = calframe.metrics(frame, metrics=["brier", "aurc", "eaurc"], **asked)
    assert (measured["note"][0] == expected) == said
    compared = compare(frame, **{**asked, "score": ["p", "q"]}, metrics=["brier", "aurc"], n_resamples=20).table
    assert ["count rows in aurc:" in (note or "") for note in compared["note"]] == [False, said]
    if unit == 7.0:  # these may as well count rows
        asked["weight_kind"] = "frequency"
        assert selective(frame, **asked).summary["note"][0] is None
        assert calframe.metrics(frame, metrics=["aurc"], **asked)["note"][0] is None


# Summary


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("link", ["probability", "logit"])
def test_aurc_is_that_of_metrics(make: Maker, link: Any, weight: str | None) -> None:
    columns = drawn()
    if link == "logit":
        columns["p"] = (8 * np.array(columns["p"]) - 4).tolist()
        columns["q"] = (80 * np.array(columns["q"]) - 40).tolist()  # of which many round to 0 and 1
    arguments: dict[str, Any] = {"score": ["p", "q"], "by": "g", "weight": weight, "link": link}
    names = ["aurc", "eaurc", "accuracy"]
    measured = calframe.metrics(POLARS(columns), label="y", metrics=names, **arguments)
    summary = rows(found(columns, make, **arguments).summary)
    assert {name: summary[name] for name in names} == {name: approx(rows(measured)[name]) for name in names}


def of_classes(n: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    scores = rng.dirichlet([1.0, 1.0, 1.0], n)
    scores = np.where(rng.random((n, 1)) < 0.3, [[0.5, 0.25, 0.25]], scores)
    label = (scores.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 2)
    columns = {f"p{i}": scores[:, i] for i in range(3)}
    return pl.DataFrame({"y": np.array(["cat", "dog", "eel"])[label], **columns, "v": scores.tolist()})


@pytest.mark.parametrize("score", [{"cat": "p0", "dog": "p1", "eel": "p2"}, "v"])
def test_several_classes_predict_the_one_of_the_largest_score(score: Any) -> None:
    frame = of_classes()
    classes = ["cat", "dog", "eel"]
    given: dict[str, Any] = {"score": score, **({"classes": classes} if score == "v" else {})}
    result = selective(frame, label="y", points=10_000, **given)
    summary = rows(result.summary)
    scores = frame.select("p0", "p1", "p2").to_numpy()
    predicted = np.array(classes)[scores.argmax(axis=1)]
    assert summary["accuracy"] == [approx(accuracy_score(frame["y"], predicted))]  # scikit-learn
    measured = rows(calframe.metrics(frame, label="y", metrics=["aurc", "eaurc"], **given))
    assert {name: summary[name] for name in ("aurc", "eaurc")} == {
        name: approx(measured[name]) for name in ("aurc", "eaurc")
    }
    confidence = scores.max(axis=1)
    assert result.table["threshold"].to_list() == sorted(set(confidence.tolist()), reverse=True)
    for threshold, n, accuracy in result.table.select("threshold", "n", "accuracy").iter_rows():
        there = confidence >= threshold
        assert n == there.sum()
        assert accuracy == approx(accuracy_score(frame["y"].to_numpy()[there], predicted[there]))


def test_two_classes_are_a_binary_table_of_the_second() -> None:
    columns = drawn()
    columns["r"] = [1 - p for p in columns["p"]]
    two = found(columns, score={0: "r", 1: "p"}, target_accuracy=0.6)
    assert two.table.equals(found(columns).table)
    assert two.targets.equals(found(columns, target_accuracy=0.6).targets)


def test_confident_errors(make: Maker) -> None:
    # confident are .95 (right), .05 (wrong), .9 (wrong), .1 (right); .89 is not
    columns = {"y": [1, 1, 0, 0, 0], "p": [0.95, 0.05, 0.9, 0.1, 0.89]}
    summary = rows(found(columns, make).summary)
    assert summary["confident_share"] == approx([4 / 5])
    assert summary["confident_errors"] == approx([2 / 5])
    assert summary["confident_error_rate"] == approx([2 / 4])
    assert rows(found(columns, make, confident_at=0.99).summary)["confident_error_rate"] == [None]
    note = rows(found(columns, make, confident_at=0.99).summary)["note"]
    assert note == ["confident_error_rate: no row is as confident as 0.99"]


def test_confident_rows_of_float32_are_those_that_a_person_expects() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 1], "p": [0.9, 0.1, 0.7, 0.3]}, schema_overrides={"p": pl.Float32})
    for level, share in ((0.9, 0.5), (0.7, 1.0)):
        assert selective(frame, label="y", score="p", confident_at=level).summary["confident_share"].item() == share


def test_weighted_confident_errors() -> None:
    columns = {"y": [1, 0, 1], "p": [0.95, 0.95, 0.6], "w": [1.0, 2.0, 5.0]}
    summary = rows(found(columns, weight="w").summary)
    assert summary["confident_share"] == approx([3 / 8])
    assert summary["confident_errors"] == approx([2 / 8])
    assert summary["confident_error_rate"] == approx([2 / 3])


def test_an_answers_own_confidence_is_not_turned_round(make: Maker) -> None:
    # .9 right, .6 wrong, .2 wrong: answering from .6 on is right once of twice
    columns = {"y": [True, False, False], "p": [0.9, 0.6, 0.2]}
    table = rows(found(columns, make, notion="correctness").table)
    assert table["threshold"] == [0.9, 0.6, 0.2]
    assert table["accuracy"] == approx([1.0, 1 / 2, 1 / 3])
    assert rows(found(columns, make, notion="correctness").summary)["accuracy"] == approx([1 / 3])
    # risks 0, 1/2, 2/3, by the definition of the area
    assert rows(found(columns, make, notion="correctness").summary)["aurc"] == approx([7 / 18])


def test_logits_give_thresholds_as_probabilities() -> None:
    columns = {"y": [1, 0, 1], "p": [2.0, -2.0, 0.5]}
    table = rows(found(columns, link="logit").table)
    assert table["threshold"] == approx(special.expit([2.0, 0.5]).tolist())
    assert table["n"] == [2, 3]
    own = rows(found(columns, link="logit", notion="correctness").table)
    assert own["threshold"] == approx(special.expit([2.0, 0.5, -2.0]).tolist())


# Thinning


def test_long_curves_are_thinned_at_even_coverage_and_keep_their_ends() -> None:
    rng = np.random.default_rng(0)
    columns = {"y": rng.integers(0, 2, 5000).tolist(), "p": rng.random(5000).tolist()}
    whole = found(columns, points=100_000).table
    thin = found(columns, points=50).table
    assert len(whole) > 4900
    assert 50 <= len(thin) <= 52
    assert thin.join(whole, on=whole.columns, how="semi").equals(thin)
    assert thin[0].equals(whole[0])
    assert thin[-1].equals(whole[-1])
    assert thin["coverage"].diff().drop_nulls().max() <= 1 / 50 + 1e-12
    assert found(columns, points=2).table["coverage"].to_list()[-2:] == [0.5, 1.0]


def test_short_curves_are_whole_beside_long_ones() -> None:
    rng = np.random.default_rng(0)
    columns = {
        "y": rng.integers(0, 2, 510).tolist(),
        "p": [*rng.random(500).tolist(), *([0.6] * 7), 0.7, 0.8, 0.9],
        "g": [*(["long"] * 500), *(["short"] * 10)],
    }
    table = found(columns, by="g", points=5).table
    assert table.filter(g="short")["threshold"].to_list() == [0.9, 0.8, 0.7, 0.6]
    assert 5 <= len(table.filter(g="long")) <= 7


# Thresholds for a target accuracy


def procedure(confidence: Any, right: Any, target: float, level: float) -> tuple[float, float] | None:
    """Return the threshold of a fixed sequence with fallback and the error its test was allowed, one by one.

    Independent of the library: plain loops and SciPy's binomial distribution.
    """
    n, alpha = len(confidence), 1 - level
    starts = 0
    while 2**starts <= n and target ** int(np.ceil(n / 2**starts)) <= alpha / (starts + 1):
        starts += 1
    ranks = [int(np.ceil(n / 2**j)) for j in range(starts)]
    carried, chosen, before = 0.0, None, 0
    for threshold in sorted(set(confidence.tolist()), reverse=True):
        there = confidence >= threshold
        m, hits = int(there.sum()), int(right[there].sum())
        carried += sum(alpha / starts for rank in ranks if before < rank <= m)
        before = m
        if carried and stats.binom.sf(hits - 1, m, target) <= carried:
            chosen = (threshold, carried)
        else:
            carried = 0.0
    return chosen


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("target", [0.5, 0.8, 0.9])
def test_thresholds_by_the_procedure(target: float, level: float) -> None:
    rng = np.random.default_rng(7)
    tables = []
    for number, n in enumerate(rng.integers(1, 700, 60).tolist()):
        p = rng.random(n) if number % 2 else rng.integers(0, 9, n) / 8
        right = rng.random(n) < np.maximum(p, rng.choice([0.5, 0.9, 0.97]))
        tables.append(pl.DataFrame({"p": p, "y": right, "g": number}))
    result = selective(
        pl.concat(tables),
        label="y",
        score="p",
        by="g",
        notion="correctness",
        target_accuracy=target,
        confidence_level=level,
    ).targets
    held = 0
    for table, row in zip(tables, result.iter_rows(named=True), strict=True):
        confidence, right = table["p"].to_numpy(), table["y"].to_numpy()
        expected = procedure(confidence, right, target, level)
        if expected is None:
            assert (row["threshold"], row["coverage"], row["accuracy"], row["n"]) == (None, None, None, 0)
            assert row["note"] is not None
            continue
        threshold, spent = expected
        there = confidence >= threshold
        assert row["threshold"] == threshold
        assert (row["n"], row["note"]) == (there.sum(), None)
        assert row["coverage"] == approx(there.mean())
        assert row["accuracy"] == approx(right[there].mean())
        hits, m = int(right[there].sum()), int(there.sum())
        low = stats.binomtest(hits, m, alternative="greater").proportion_ci(1 - spent).low  # Clopper and Pearson
        assert row["accuracy_low"] == pytest.approx(low, rel=1e-9)
        assert row["accuracy_low"] >= target - 1e-12
        held += 1
    assert held >= 5


def test_a_threshold_by_hand(make: Maker) -> None:
    # 0.9^100 and 0.9^50 are below 0.05 / 2, 0.9^25 = 0.07 is not: two starting places, 50 and 100 rows.
    # All 50 right: 0.9^50 = 0.0052 <= 0.025. 80 of 100: P(Bin(100, 0.9) >= 80) > 0.99 > 0.05
    columns = {"y": [1] * 80 + [0] * 20, "p": [0.95] * 50 + [0.6] * 50}
    result = rows(found(columns, make, target_accuracy=[0.9, 0.75]).targets)
    assert result["target_accuracy"] == [0.9, 0.75]
    assert result["threshold"][0] == 0.95
    assert result["coverage"][0] == 0.5
    assert result["n"][0] == 50
    # all 50 right at an error of 0.025: 0.025^(1/50)
    assert result["accuracy_low"][0] == approx(0.025 ** (1 / 50))
    # 0.75: P(Bin(100, 0.75) >= 80) = 0.149, so not the whole, either
    assert stats.binom.sf(79, 100, 0.75) > 0.05
    assert result["threshold"][1] == 0.95


@pytest.mark.parametrize(("n", "held"), [(28, False), (29, True)])
def test_too_few_rows_are_said_to_be(n: int, held: bool) -> None:  # noqa: FBT001
    columns = {"y": [1] * n, "p": [0.9] * n}
    row = found(columns, target_accuracy=0.9).targets.to_dicts()[0]
    # 0.9^28 = 0.0523, 0.9^29 = 0.0471
    assert (row["threshold"] is not None) is held
    few = "too few rows: it takes 29 rows, all of them right, to show an accuracy of 0.9"
    assert row["note"] == (None if held else few)


def test_no_threshold_holds() -> None:
    row = found({"y": [0, 1] * 100, "p": [0.9] * 200}, target_accuracy=0.9).targets.to_dicts()[0]
    assert (row["threshold"], row["n"], row["note"]) == (None, 0, "no threshold is shown to have an accuracy of 0.9")


def test_importance_weights_that_differ_get_no_threshold(make: Maker) -> None:
    columns = {"y": [1] * 100, "p": [0.9] * 100, "w": [1.0, 2.0] * 50, "v": [0.3] * 100}
    row = {
        name: values[0] for name, values in rows(found(columns, make, weight="w", target_accuracy=0.9).targets).items()
    }
    assert row["threshold"] is None
    assert row["note"] == "no test of a threshold with importance weights that differ"
    # equal ones are rows that count the same
    equal = rows(found(columns, make, weight="v", target_accuracy=0.9).targets)
    assert equal == {
        name: approx(values) for name, values in rows(found(columns, make, target_accuracy=0.9).targets).items()
    }


def test_targets_come_in_the_order_asked_for_each_segment() -> None:
    result = found(drawn(), by="g", score=["p", "q"], target_accuracy=[0.9, 0.6]).targets
    keys = [(g, model, target) for g in "abc" for model in ("p", "q") for target in (0.9, 0.6)]
    assert result.select("g", "model", "target_accuracy").rows() == keys


def test_a_segment_is_judged_as_if_it_were_alone() -> None:
    frame = pl.DataFrame(drawn())
    together = selective(frame, label="y", score="p", by="g", target_accuracy=0.7)
    for segment in ("a", "b", "c"):
        alone = selective(frame.filter(g=segment), label="y", score="p", by="g", target_accuracy=0.7)
        for name in ("table", "summary", "targets"):
            assert getattr(together, name).filter(g=segment).equals(getattr(alone, name))


# The guarantee: how often the true accuracy from the chosen threshold up is below the target


@pytest.mark.parametrize("n", SIZES[:2])
@pytest.mark.parametrize(
    "name", ["calibrated", "just below 0.9", "cliff", "confidently wrong", "one score", "two scores"]
)
def test_thresholds_hold_for_new_rows(name: str, n: int) -> None:
    replicates = 400
    for outcome in simulate(WORLDS[name], n, replicates=replicates, seed=11).values():
        share = outcome["failed"].mean()
        assert share <= 1 - LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / replicates)


def test_what_looks_best_does_not_hold_for_new_rows() -> None:
    outcome = simulate(WORLDS["calibrated"], 500, replicates=200, seed=11)[0.9]
    assert outcome["naive_failed"].mean() > 0.3
    assert outcome["held"].mean() > 0.3  # and what holds is found often enough to be of use


def test_the_full_simulation_holds() -> None:
    with RESULTS.open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert {(line["world"], int(line["n"]), float(line["target"])) for line in lines} == {
        (world, n, target) for world in WORLDS for n in SIZES for target in TARGETS
    }
    for line in lines:
        assert float(line["failures"]) <= 1 - LEVEL + 2 * float(line["standard_error"]), line
    naive = [float(line["naive_failures"]) for line in lines if line["world"] == "calibrated"]
    assert min(naive) > 0.4


@pytest.mark.parametrize("name", list(WORLDS))
def test_true_accuracies_of_the_worlds(name: str) -> None:
    rng = np.random.default_rng(0)
    confidence, right = WORLDS[name].draw(400_000, rng)
    for threshold in (0.6, 0.75, 0.9):
        there = confidence >= threshold
        if there.any():
            error = 4 * 0.5 / np.sqrt(there.sum())
            assert WORLDS[name].accuracy(np.array([threshold]))[0] == pytest.approx(right[there].mean(), abs=error)


# Rows that are missing, left out or alone


def test_missing_rows_are_counted_and_null_segments_are_a_segment(make: Maker) -> None:
    columns = {
        "y": [1, None, 0, 1, 0, None],
        "p": [0.9, 0.8, None, 0.7, 0.4, 0.5],
        "g": ["a", "a", "a", None, None, "z"],
    }
    result = found(columns, make, by="g", target_accuracy=0.9)
    summary = rows(result.summary)
    assert summary["g"] == ["a", "z", None]
    assert summary["n"] == [1, 0, 2]
    assert summary["n_missing"] == [2, 1, 0]
    assert summary["accuracy"] == [1.0, None, 1.0]
    assert summary["note"][1] == "no usable rows"
    assert (result.n, result.n_missing, result.n_invalid) == (3, 3, 0)
    assert rows(result.table)["g"] == ["a", None, None]
    assert rows(result.targets)["note"][1] == "no usable rows"


def test_invalid_and_weightless_rows() -> None:
    columns = {"y": [1, 1, 0], "p": [0.9, 1.5, 0.2], "w": [1.0, 1.0, 0.0]}
    with pytest.raises(ScoreError, match=r"scores must lie in \[0, 1\]: column 'p'"):
        found(columns)
    result = found(columns, invalid="drop", weight="w")
    row = result.summary.to_dicts()[0]
    assert (row["n"], row["n_missing"], row["n_invalid"], row["weight_sum"]) == (1, 0, 1, 1.0)
    assert row["note"] == "1 row of weight 0 left out"
    assert result.n_invalid == 1


def test_a_table_without_usable_rows(make: Maker) -> None:
    columns = {"y": np.array([np.nan, np.nan]), "p": np.array([0.5, 0.6])}
    result = found(columns, make, target_accuracy=0.9)
    assert rows(result.table) == {name: [] for name in CURVE}
    assert rows(result.summary)["n"] == [0]
    assert rows(result.targets)["threshold"] == [None]
    assert result.plot() is not None


def test_labels_by_name() -> None:
    named = {"y": ["no", "yes", "no", "yes"], "p": HAND["p"]}
    assert found(named, positive="yes").table.equals(found(HAND).table)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, None]),
            st.sampled_from([0.0, 0.2, 0.43, 0.5, 0.57, 1.0, None]),
            st.sampled_from([0.0, 0.1, 3.0]),
            st.sampled_from(["a", "b", None]),
        ),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([None, "w"]),
    st.integers(2, 5),
)
@settings(deadline=None)  # a busy machine is no fault
def test_what_holds_for_every_table(values: list[Any], weight: str | None, points: int) -> None:
    frame = pl.DataFrame(values, schema={"y": pl.Int64, "p": pl.Float64, "w": pl.Float64, "g": pl.String}, orient="row")
    arguments: dict[str, Any] = {"label": "y", "score": "p", "by": "g", "weight": weight}
    result = selective(frame, points=points, target_accuracy=[0.3, 0.9], **arguments)
    for row in result.table.iter_rows(named=True):
        assert 0 < row["coverage"] <= 1
        assert 0 <= row["accuracy_low"] <= row["accuracy"] + 1e-12
        assert row["accuracy"] - 1e-12 <= row["accuracy_high"] <= 1
        assert row["accuracy"] + row["risk"] == approx(1.0)
    present = result.summary.filter(pl.col("n") > 0)
    last = result.table.group_by("g", maintain_order=True).last()
    assert last["coverage"].to_list() == [approx(1.0)] * len(present)
    assert last["n"].to_list() == present["n"].to_list()
    assert last["accuracy"].to_list() == approx(present["accuracy"].to_list())
    for row in result.targets.iter_rows(named=True):
        assert (row["threshold"] is None) == (row["note"] is not None)
        if row["threshold"] is not None:
            assert row["target_accuracy"] - 1e-12 <= row["accuracy_low"] <= row["accuracy"]
    json.dumps(result.to_dict(), allow_nan=False)


# Errors


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"target_accuracy": 95}, r"target_accuracy must lie between 0 and 1, .* got 95\. For 95 percent pass 0\.95\."),
        ({"target_accuracy": 1.0}, r"target_accuracy must lie between 0 and 1"),
        ({"target_accuracy": 0}, r"got 0\."),
        ({"target_accuracy": [0.9, "x"]}, r"got 'x'\."),
        ({"target_accuracy": float("nan")}, r"got nan\."),
        ({"target_accuracy": True}, r"got True\."),
        ({"target_accuracy": "0.9"}, r"got '0\.9'\."),
        ({"target_accuracy": [0.9, 0.9]}, r"target_accuracy has 0\.9 twice"),
        ({"confidence_level": 95}, r"confidence_level must lie between 0 and 1"),
        ({"confidence_level": None}, r"confidence_level must lie between 0 and 1"),
        ({"confident_at": 1.2}, r"confident_at must lie in \[0, 1\], for example 0\.9; got 1\.2\."),
        ({"confident_at": "high"}, r"confident_at must lie in \[0, 1\]"),
        ({"points": 1}, r"points must be a whole number from 2 to 100,000; got 1\."),
        ({"points": 2.5}, r"points must be a whole number"),
        ({"points": True}, r"points must be a whole number"),
        ({"notion": "classwise"}, r"notion must be one of 'confidence', 'correctness'; got 'classwise'\."),
        ({"interval": "normal"}, r"interval must be one of"),
        ({"score": {0: "p", 1: "q"}, "notion": "correctness"}, r"notion='correctness' reads one column"),
        ({"engine": "fast"}, r"engine must be one of"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        found(drawn(20), **arguments)


def test_segments_named_like_a_column_of_the_result() -> None:
    for name in ("threshold", "coverage", "target_accuracy", "confident_errors", "note"):
        with pytest.raises(ColumnClashError, match=f"segment column '{name}' has the name of a result column"):
            found({**HAND, name: ["a"] * 4}, by=name)


def test_an_empty_table() -> None:
    with pytest.raises(EmptyTableError, match="the table has no rows"):
        selective(pl.DataFrame({"y": [], "p": []}, schema={"y": pl.Int64, "p": pl.Float64}), label="y", score="p")


# The result object


def test_to_dict_is_json() -> None:
    result = found(drawn(), by="g", score=["p", "q"], target_accuracy=[0.7, 0.99])
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (data["schema_version"], data["kind"]) == (1, "selective")
    assert (data["label"], data["scores"], data["by"], data["n"]) == ("y", ["p", "q"], ["g"], 600)  # the table once
    assert data["convention"]["target_accuracy"] == [0.7, 0.99]
    assert {name: data["convention"][name] for name in ("notion", "confidence_level", "confident_at", "interval")} == {
        "notion": "confidence",
        "confidence_level": 0.95,
        "confident_at": 0.9,
        "interval": "wilson",
    }
    assert [len(data[name]) for name in ("table", "summary", "targets")] == [len(result.table), 6, 12]


def test_a_printed_result_says_what_a_target_asks_for() -> None:
    columns = {"y": [1] * 80 + [0] * 20, "p": [0.95] * 50 + [0.6] * 50}
    assert repr(found(columns, target_accuracy=[0.9, 0.99])).splitlines() == [
        "<Selective: 1 curve from 100 rows; .table, .summary, .targets, .plot()>",
        "  at 95%, for independent rows like these:",
        "  accuracy 0.9: from confidence 0.95 up, 50.0% of rows",
        "  accuracy 0.99: too few rows: it takes 299 rows, all of them right, to show an",
        "  accuracy of 0.99",
    ]
    right = {"y": [*[1] * 100, *[1, 0] * 25], "p": [0.9] * 100 + [0.89083] * 50, "g": ["a"] * 100 + ["b"] * 50}
    assert repr(found(right, by="g", target_accuracy=0.8)).splitlines()[2:] == [
        "  accuracy 0.8: a threshold holds in 1 of 2 curves",
        "  b  no threshold is shown to hold",
        "  a  from confidence 0.9 up, 100.0% of rows",
    ]
    # 125 of 150 are right; four figures of the threshold, rounded up
    assert "from confidence 0.8909 up" in repr(found(right, target_accuracy=0.6))


def test_a_printed_result_without_targets_says_what_answering_less_buys() -> None:
    columns = {"y": [1] * 80 + [0] * 20, "p": [0.95] * 50 + [0.6] * 50, "q": [0.7] * 100}
    result = found(columns, score=["p", "q"])
    assert repr(result).splitlines() == [
        "<Selective: 2 curves from 100 rows, 2 models; .table, .summary, .targets, .plot()>",
        "  accuracy of the most confident       25%     50%     75%    100%       AURC",
        "  q                                  80.0%   80.0%   80.0%   80.0%        0.2",  # ties: the rate of errors
        f"  p                                 100.0%  100.0%   80.0%   80.0%{result.summary['aurc'][0]:>11.4g}",
    ]
    assert "accuracy_low" not in result._repr_html_()
    assert "accuracy_low" in found(columns, target_accuracy=0.6)._repr_html_()


def test_models_are_counted_and_classes_are_not() -> None:
    frame = of_classes().with_columns(g=pl.Series(["a", "b", "c"] * 100))
    frame = frame.with_columns(two=pl.Series(["no", "yes"] * 150), q=1 - pl.col("p0"))
    shapes: list[tuple[str, Any, str, str]] = [
        ("two", "p0", "", "p0"),
        ("two", ["p0"], "", "p0"),
        ("two", ["p0", "q"], ", 2 models", "p0, q"),
        ("two", {"no": "q", "yes": "p0"}, "", "the classes q, p0"),
        ("y", {"cat": "p0", "dog": "p1", "eel": "p2"}, "", "the classes p0, p1, p2"),
    ]
    for label, score, models, named in shapes:
        positive = "yes" if label == "two" and not isinstance(score, dict) else None
        for by in (None, "g"):
            for target in (None, [0.2, 0.99]):
                result = selective(
                    frame, label=label, score=score, by=by, target_accuracy=target, positive=positive, points=5
                )
                curves = (3 if by else 1) * (2 if models else 1)
                head = f"<Selective: {curves} curve{'s' * (curves > 1)} from 300 rows{models}; "
                assert repr(result).startswith(head)
                assert f"<caption>Answering by the confidence of {named}</caption>" in result._repr_html_()
                assert len(result.to_dict()["summary"]) == curves
    assert result.plot().to_dict()


def test_a_threshold_is_said_to_be_shown_for_independent_rows() -> None:
    result = found(drawn(), target_accuracy=0.6)
    assert "shown to hold at 95% for independent rows like these" in result._repr_html_()
    assert "for independent rows like these" in " ".join(result.plot().to_dict()["title"]["text"])


def test_targets_may_be_any_numbers_and_names_any_text() -> None:
    columns = {**drawn(100), "^.*$": ["a", "b"] * 50}
    for target in (np.array(0.6), np.array([0.6]), pl.Series([0.6]), pd.Series([0.6])):
        assert found(columns, target_accuracy=target).target_accuracy == (0.6,)
    result = found(columns, by="^.*$")
    assert [line.split()[0] for line in repr(result).splitlines()[2:]] in (["a", "b"], ["b", "a"])


def test_printed_lines_fit() -> None:
    columns = drawn(400)
    columns["id"] = list(range(400))
    texts = [found(columns, target_accuracy=[0.123456789, 0.9]), found(columns, by="id", target_accuracy=0.9)]
    assert all(len(line) <= 80 for result in texts for line in repr(result).splitlines())


def test_html_is_escaped() -> None:
    assert "<script>" not in found({**HAND, "g": ["<script>"] * 4}, by="g")._repr_html_()


# The chart


def data_of(chart: Any, kind: str) -> list[dict[str, Any]]:
    """Return the rows behind the marks of a kind."""
    spec = chart.to_dict()
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]
    return [row for layer in layers for row in _rows_of(spec, layer)]


def _rows_of(spec: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    data = layer["data"]
    return spec["datasets"][data["name"]] if "name" in data else data["values"]


def test_the_chart_shows_the_curve_and_the_thresholds() -> None:
    columns = {"y": [1] * 80 + [0] * 20, "p": [0.95] * 50 + [0.6] * 50}
    chart = found(columns, target_accuracy=[0.9, 0.99]).plot()
    assert [(row["at"], row["value"]) for row in data_of(chart, "line")] == [(0.5, 1.0), (1.0, 0.8)]
    assert [row["target"] for row in data_of(chart, "rule")] == [0.9, 0.99]
    assert [row["words"] for row in data_of(chart, "text")] == ["90%", "99%", "from 0.95"]
    said = [row["description"] for row in data_of(chart, "point")]
    assert said == [
        "from confidence 0.95 up: answers 50.0% (50 rows), 100.0% right (92.9% to 100.0%)",
        "from confidence 0.6 up: answers 100.0% (100 rows), 80.0% right (71.1% to 86.7%)",
        "for an accuracy of 90.0%: from confidence 0.95 up, answers 50.0%",
    ]


HOSTILE = "</script><script>alert(1)</script><!-- \x00 {7*7} var(--cf-ink)"


@pytest.mark.parametrize("groups", [1, 3, 12])
def test_charts_are_drawn(groups: int) -> None:
    columns = drawn(240)
    columns["g"] = [f"{HOSTILE}{i % groups}" for i in range(240)]
    chart = found(columns, by="g", target_accuracy=0.6).plot(width=900)
    text = json.dumps(chart.to_dict(), allow_nan=False)
    assert "</script" not in text
    svg = vl_convert.vegalite_to_svg(text, vl_version="6.4")
    assert "var(--cf-" not in svg.replace("var(--cf-ink)", "")


def test_many_curves_have_a_panel_each() -> None:
    rng = np.random.default_rng(0)
    columns = {"y": rng.integers(0, 2, 700).tolist(), "p": rng.random(700).tolist(), "g": [i % 70 for i in range(700)]}
    chart = found(columns, by="g").plot().to_dict()
    assert [panel["title"]["text"] for panel in chart["concat"]] == [str(i) for i in range(12)]
    assert "The 12 curves of most rows, of 70." in " ".join(chart["title"]["text"])


def test_the_axis_holds_the_interval_and_not_the_first_row() -> None:
    # the most confident of 200 rows is wrong, all others right: the curve begins at 49 of 50
    columns = {"y": [0] + [1] * 199, "p": [0.99 - 0.002 * i for i in range(200)]}
    chart = found(columns).plot().to_dict()
    low, _ = next(layer["encoding"]["y"]["scale"]["domain"] for layer in chart["layer"])
    wilson, _ = proportion_confint(49, 50, method="wilson")
    assert wilson - 0.1 <= low <= wilson
    assert "from 50 rows on" in " ".join(chart["title"]["text"])


def test_a_curve_of_a_single_score_is_a_dot() -> None:
    chart = found({"y": [1, 0, 1], "p": [0.8] * 3}).plot()
    dots = [row for row in data_of(chart, "point") if "description" not in row]
    assert [(row["at"], row["value"]) for row in dots] == [(1.0, approx(2 / 3, rel=1e-5))]


def test_a_chart_too_narrow() -> None:
    with pytest.raises(ArgumentError, match="width must be a number of pixels"):
        found(HAND).plot(width=3)
