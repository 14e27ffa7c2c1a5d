"""Notions of calibration of several classes: each class alone, and the largest score; logits; true probabilities."""

from __future__ import annotations

import math
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from scipy.special import log_expit, log_softmax, softmax

import calframe
from calframe._errors import CalframeWarning
from calframe._measures import METRICS
from tests._class_tables import CLASSES, HALF_VECTORS, HALVES, SCORE, VECTOR_KINDS, found, same, with_vectors
from tests._definitions import EXACT, defined, edges_of
from tests._tables import Maker, approx, rows, types

POLARS = Maker("polars")
PLAIN = [name for name, metric in METRICS.items() if not metric.posterior]  # what a binary table without them has


def drawn(n: int, *, seed: int) -> dict[str, Any]:
    """Return rows of tenths, none of them 0, with segments and weights."""
    rng = np.random.default_rng(seed)
    parts = (1 + rng.multinomial(7, [0.4, 0.3, 0.3], size=n)) / 10
    columns = dict(zip(SCORE.values(), parts.T.tolist(), strict=True))
    return {
        "y": [CLASSES[c] for c in rng.integers(0, 3, n)],
        "g": [["u", "v"][k] for k in rng.integers(0, 2, n)],
        "w": rng.choice([1.0, 2.0, 3.0], n).tolist(),
        **columns,
    }


TABLE = drawn(60, seed=4)


def each_class(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the binary table of each class against the rest."""
    return {
        name: {"y": [int(label == name) for label in table["y"]], "p": table[column], "g": table["g"], "w": table["w"]}
        for name, column in SCORE.items()
    }


def of_the_largest(table: dict[str, Any]) -> dict[str, Any]:
    """Return the binary table of the largest score and whether its class, the first of equal ones, happened."""
    vectors = list(zip(*(table[column] for column in SCORE.values()), strict=True))
    says = [CLASSES[vector.index(max(vector))] for vector in vectors]
    right = [int(said == label) for said, label in zip(says, table["y"], strict=True)]
    return {"y": right, "p": [max(vector) for vector in vectors], "g": table["g"], "w": table["w"]}


def binary(table: dict[str, Any], **arguments: Any) -> dict[str, list[Any]]:
    return found(POLARS(table), score="p", **arguments)


# ---------------------------------------------------------------- each class against the rest
def test_each_class_is_a_binary_table(make: Maker) -> None:
    values = found(make(TABLE), notion="classwise", metrics=list(EXACT), bins=5)
    assert values["class"] == list(CLASSES)
    for i, table in enumerate(each_class(TABLE).values()):
        alone = list(zip(table["y"], table["p"], [1.0] * 60, strict=True))
        expected = {name: defined(name, alone, edges=edges_of(5)) for name in EXACT}
        assert {name: values[name][i] for name in EXACT} == {name: approx(value) for name, value in expected.items()}


@pytest.mark.parametrize(
    "arguments",
    [
        {"bins": 5},
        {"bins": 5, "by": "g", "weight": "w"},
        {"bins": 4, "strategy": "quantile", "by": "g"},
        {"bins": "auto", "closed": "right"},
        {"confidence_level": 0.9},
    ],
    ids=["plain", "segments and weights", "quantiles", "automatic", "intervals"],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "polars[lazy]", "pyarrow", "duckdb"])
def test_every_binary_metric_is_there_for_each_class(library: str, arguments: dict[str, Any]) -> None:
    values = found(Maker(library)(TABLE), notion="classwise", metrics="all", **arguments)
    assert set(PLAIN) <= set(values)
    for name, table in each_class(TABLE).items():
        alone = binary(table, metrics="all", **arguments)
        places = [i for i, each in enumerate(values["class"]) if each == name]
        same({column: [each[i] for i in places] for column, each in values.items()}, alone, rel=1e-9)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [(["a", "b", "c", "a"], nw.String), ([1, 2, 3, 1], nw.Int64), ([3.0, 2.0, 1.0, 3.0], nw.Int64)],
    ids=["text", "numbers", "whole floats"],
)
def test_the_class_keeps_its_type(make: Maker, labels: list[Any], kind: Any) -> None:
    score = dict(zip([int(v) if kind == nw.Int64 else v for v in labels[:3]], SCORE.values(), strict=True))
    plan = calframe.metrics(make({**HALVES, "y": labels}), label="y", score=score, notion="classwise", metrics="rate")
    assert types(plan)["class"] == kind
    if isinstance(plan, pl.LazyFrame):
        assert plan.collect_schema() == plan.collect().schema
    values = rows(plan)
    assert (values["class"], values["rate"]) == (list(score), [0.5, 0.25, 0.25])


@pytest.mark.parametrize("kind", VECTOR_KINDS)
def test_each_class_of_a_column_of_vectors(make: Maker, kind: str) -> None:
    data = with_vectors(make, {"y": HALVES["y"]}, HALF_VECTORS, kind=kind)
    values = found(data, score="v", classes=list(CLASSES), notion="classwise", metrics=["mean_score", "ece"], bins=4)
    same(values, {"class": list("abc"), "mean_score": [0.3125, 0.3125, 0.375], "ece": [3 / 16, 5 / 16, 1 / 8]})


# ---------------------------------------------------------------- the largest score
def test_confidence_is_a_binary_table(make: Maker) -> None:
    values = found(make(TABLE), notion="confidence", metrics=list(EXACT), bins=5)
    table = of_the_largest(TABLE)
    alone = list(zip(table["y"], table["p"], [1.0] * 60, strict=True))
    same(values, {name: [defined(name, alone, edges=edges_of(5))] for name in EXACT})


@pytest.mark.parametrize("library", ["pandas", "polars", "polars[lazy]", "pyarrow", "duckdb"])
def test_every_binary_metric_is_there_for_the_confidence(library: str) -> None:
    arguments: dict[str, Any] = {"by": "g", "weight": "w", "bins": 5, "metrics": "all", "confidence_level": 0.9}
    values = found(Maker(library)(TABLE), notion="confidence", **arguments)
    assert set(PLAIN) <= set(values)
    same(values, binary(of_the_largest(TABLE), **arguments), rel=1e-9)


def test_confidence_of_a_plain_column(make: Maker) -> None:
    # https://github.com/EFS-OpenSource/calibration-framework/issues/25: .88 everywhere, three of four right
    table = {"y": [0, 0, 1, 1], "p": [0.12, 0.12, 0.12, 0.88]}
    values = found(make(table), score="p", notion="confidence", metrics=["ece", "rate", "mean_score"], bins=10)
    same(values, {"ece": [0.13], "rate": [0.75], "mean_score": [0.88]})
    plain = found(make(table), score="p", metrics=["ece", "confidence_ece", "accuracy"], bins=10)
    same(plain, {"ece": [0.19], "confidence_ece": [0.13], "accuracy": [0.75]})


def test_one_half_says_positive(make: Maker) -> None:
    values = found(make({"y": [1, 1, 0, 0], "p": [0.5] * 4}), score="p", notion="confidence", metrics=["rate", "gap"])
    assert (values["rate"], values["gap"]) == ([0.5], [0.0])
    values = found(make({"y": [1, 0, 0, 0], "p": [0.5] * 4}), score="p", notion="confidence", metrics=["rate", "gap"])
    assert (values["rate"], values["gap"]) == ([0.25], [0.25])


def test_confidence_of_several_models(make: Maker) -> None:
    table = {"y": [1, 0, 0], "p": [0.25, 0.75, 0.25], "q": [1.0, 0.0, 0.0]}
    values = found(make(table), score=["p", "q"], notion="confidence", metrics=["rate", "mean_score"])
    same(values, {"model": ["p", "q"], "rate": [1 / 3, 1.0], "mean_score": [0.75, 1.0]})


# ---------------------------------------------------------------- two classes
@pytest.mark.parametrize("library", ["pandas", "polars", "polars[lazy]", "pyarrow", "duckdb"])
@pytest.mark.parametrize("link", ["probability", "logit"])
def test_two_classes_are_a_binary_table_of_the_second(library: str, link: Any) -> None:
    rng = np.random.default_rng(2)
    score = rng.integers(0, 21, 40) / 20
    second = (rng.random(40) < score).tolist()
    named = {"y": ["yes" if each else "no" for each in second], "g": (["u", "v"] * 20), "w": [1.0, 2.0] * 20}
    plain = {**named, "y": [int(each) for each in second], "p": score.tolist()}
    table = {**named, "p_no": (1 - score).tolist(), "p_yes": score.tolist()}
    arguments: dict[str, Any] = {"by": "g", "weight": "w", "bins": 5, "metrics": "all", "link": link}
    if link == "logit":  # of which only the difference counts
        plain["p"] = (4 * score - 1.93).tolist()
        table |= {"p_no": (0.93 - score).tolist(), "p_yes": (3 * score - 1).tolist()}
    values = found(Maker(library)(table), score={"no": "p_no", "yes": "p_yes"}, **arguments)
    assert set(PLAIN) <= set(values)
    same(values, binary(plain, **arguments), rel=1e-9)


def test_one_half_of_two_classes_says_the_second(make: Maker) -> None:
    # as of a plain column of its scores
    table = {"y": ["yes", "yes", "no"], "p_no": [0.5, 0.5, 0.75], "p_yes": [0.5, 0.5, 0.25]}
    score = {"no": "p_no", "yes": "p_yes"}
    names = ["accuracy", "confidence_ece"]
    same(found(make(table), score=score, metrics=names, bins=4), {"accuracy": [1.0], "confidence_ece": [1.25 / 3]})
    values = found(make(table), score=score, notion="confidence", metrics=["rate", "ece"], bins=4)
    same(values, {"rate": [1.0], "ece": [1.25 / 3]})


def test_a_class_that_never_happened(make: Maker) -> None:
    # https://github.com/p-lambda/verified_calibration/issues/2: (.07 + .18) / 2
    table = {"y": ["x", "x"], "px": [0.93, 0.82], "py": [0.07, 0.18]}
    values = found(make(table), score={"x": "px", "y": "py"}, metrics="confidence_ece", bins=10)
    same(values, {"confidence_ece": [0.125]})


# ---------------------------------------------------------------- logits
LOGITS = {"y": ["a", "b", "c"], "pa": [2.0, -1.0, 0.5], "pb": [0.0, 3.0, 0.5], "pc": [-1.5, 0.25, 0.5]}


def test_logits_become_probabilities_by_softmax(make: Maker) -> None:
    logits = np.array([LOGITS[column] for column in SCORE.values()]).T
    happened = np.eye(3)
    values = found(make(LOGITS), link="logit", metrics=["brier", "log_loss", "accuracy"])
    same(values, {"brier": [((softmax(logits, axis=1) - happened) ** 2).sum(axis=1).mean()]})
    same(values, {"log_loss": [-np.mean(np.diag(log_softmax(logits, axis=1)))], "accuracy": [2 / 3]})
    classes = found(make(LOGITS), link="logit", notion="classwise", metrics="mean_score")
    same(classes, {"mean_score": softmax(logits, axis=1).mean(axis=0).tolist()})


@pytest.mark.parametrize("shift", [-1e3, 1e3])
def test_large_logits_do_not_overflow(make: Maker, shift: float) -> None:
    table = {name: LOGITS[name] if name == "y" else [x + shift for x in LOGITS[name]] for name in LOGITS}
    logits = np.array([table[column] for column in SCORE.values()]).T
    values = found(make(table), link="logit", metrics="log_loss")
    same(values, {"log_loss": [-np.mean(np.diag(log_softmax(logits, axis=1)))]}, rel=1e-9)


def test_the_loss_of_logits_is_exact_where_probabilities_are_rounded(make: Maker) -> None:
    table = {"y": ["a", "b", "c"], "pa": [-800.0, 0.0, 0.0], "pb": [0.0, 900.0, 0.0], "pc": [0.0, 0.0, 0.0]}
    logits = np.array([table[column] for column in SCORE.values()]).T
    expected = -np.mean(np.diag(log_softmax(logits, axis=1)))  # about 267; exp(-800) is 0
    same(found(make(table), link="logit", metrics="log_loss"), {"log_loss": [expected]})


def test_two_logits_are_one(make: Maker) -> None:
    table = {"y": ["a", "b"], "pa": [3.0, -800.0], "pb": [1.0, 0.0]}
    values = found(make(table), score={"a": "pa", "b": "pb"}, link="logit", metrics=["log_loss", "auc"])
    expected = -(log_expit(2.0) + log_expit(800.0)) / 2
    same(values, {"log_loss": [expected], "auc": [1.0]})


def test_a_ruled_out_class_is_a_logit_of_minus_infinity(make: Maker) -> None:
    table = {"y": ["a", "b"], "pa": [0.0, 0.0], "pb": [0.0, 0.0], "pc": [-math.inf, -math.inf]}
    values = found(make(table), link="logit", metrics="log_loss")
    same(values, {"n": [2], "log_loss": [math.log(2)]})


# ---------------------------------------------------------------- posteriors
LOSSES = ["irreducible_loss", "epistemic_loss", "irreducible_loss_log", "epistemic_loss_log"]
TRUE = {"a": "qa", "b": "qb", "c": "qc"}
KNOWN = {**HALVES, "qa": [1.0, 0.25, 0.0, 0.5], "qb": [0.0, 0.5, 0.5, 0.25], "qc": [0.0, 0.25, 0.5, 0.25]}
# Distances of q and what happened: 0, .0625 + .25 + .0625, .25 + .25, .25 + .0625 + .0625; chances 1, 1/2, 1/2, 1/2
IRREDUCIBLE = (0.0 + 0.375 + 0.5 + 0.375) / 4


@pytest.mark.parametrize("posterior", [TRUE, {"c": "qc", "a": "qa", "b": "qb"}, ["qa", "qb", "qc"]])
def test_true_probabilities_of_several_classes(make: Maker, posterior: Any) -> None:
    values = found(make(KNOWN), posterior=posterior, metrics=LOSSES)
    same(values, {"irreducible_loss": [IRREDUCIBLE], "epistemic_loss": [0.5 - IRREDUCIBLE]})
    same(values, {"irreducible_loss_log": [0.75 * math.log(2)], "epistemic_loss_log": [0.5 * math.log(2)]})


def test_true_probabilities_come_with_all_only_where_they_are_given(make: Maker) -> None:
    assert not set(LOSSES) & set(found(make(KNOWN), metrics="all"))
    assert set(LOSSES) <= set(found(make(KNOWN), posterior=TRUE, metrics="all"))


def test_true_probabilities_of_each_class(make: Maker) -> None:
    values = found(make(KNOWN), posterior=TRUE, notion="classwise", metrics=["irreducible_loss", "epistemic_loss"])
    # (0, 1/16, 0, 1/4) / 4 for a, (0, 1/4, 1/4, 1/16) / 4 for b, (0, 1/16, 1/4, 1/16) / 4 for c
    expected = [5 / 64, 9 / 64, 6 / 64]
    # Brier scores (1/4 + 1/16 + 1/16 + 9/16) / 4, (1/16 + 1/4 + 1/16 + 1/16) / 4, (1/16 + 1/16 + 1/4 + 1/4) / 4
    brier = [15 / 64, 7 / 64, 10 / 64]
    same(values, {"irreducible_loss": expected})
    same(values, {"epistemic_loss": [b - e for b, e in zip(brier, expected, strict=True)]})


def test_true_probabilities_of_the_largest_score(make: Maker) -> None:
    # the rows say a, b, c and c, whose true chances are 1, 1/2, 1/2 and 1/4; the last is wrong
    values = found(make(KNOWN), posterior=TRUE, notion="confidence", metrics=["irreducible_loss", "epistemic_loss"])
    irreducible = (0 + 1 / 4 + 1 / 4 + 1 / 16) / 4
    same(values, {"irreducible_loss": [irreducible], "epistemic_loss": [1 / 4 - irreducible]})


def test_true_probabilities_of_a_prediction(make: Maker) -> None:
    # both rows say negative, with true chances 3/4 and 1/2; the second is wrong
    table = {"y": [0, 1], "p": [0.25, 0.25], "q": [0.25, 0.5]}
    values = found(make(table), score="p", posterior="q", notion="confidence", metrics=["irreducible_loss"])
    same(values, {"irreducible_loss": [(1 / 16 + 1 / 4) / 2]})


def test_true_probabilities_of_one_column(make: Maker) -> None:
    table = {"y": [1, 0, 1, 0], "p": [0.75, 0.25, 0.5, 0.5], "q": [1.0, 0.5, 0.5, 0.0]}
    values = found(make(table), score="p", posterior="q", metrics=LOSSES)
    # (0 + 1/4 + 1/4 + 0) / 4 and (1/16 + 1/16 + 1/4 + 1/4) / 4; chances 1, 1/2, 1/2, 1 against 3/4, 3/4, 1/2, 1/2
    same(values, {"irreducible_loss": [1 / 8], "epistemic_loss": [5 / 32 - 1 / 8]})
    same(values, {"irreducible_loss_log": [math.log(2) / 2], "epistemic_loss_log": [-math.log(0.75) / 2]})


def test_true_probabilities_of_the_second_of_two_classes(make: Maker) -> None:
    table = {"y": ["b", "a"], "pa": [0.25, 0.75], "pb": [0.75, 0.25], "qa": [0.0, 0.5], "qb": [1.0, 0.5]}
    score, posterior = {"a": "pa", "b": "pb"}, {"a": "qa", "b": "qb"}
    values = found(make(table), score=score, posterior=posterior, metrics="irreducible_loss")
    same(values, {"irreducible_loss": [1 / 8]})


def test_a_truth_that_rules_out_what_happened(make: Maker) -> None:
    table = {**KNOWN, "qa": [0.0, 0.25, 0.0, 0.5], "qb": [1.0, 0.5, 0.5, 0.25]}
    values = found(make(table), posterior=TRUE, metrics=["irreducible_loss_log", "epistemic_loss_log"])
    assert (values["irreducible_loss_log"], values["epistemic_loss_log"]) == ([math.inf], [None])
    assert values["note"] == ["epistemic_loss_log: the true probabilities rule out what happened"]


@pytest.mark.parametrize("gap", [None, math.nan], ids=["null", "NaN"])
def test_a_missing_true_probability_is_a_missing_row(make: Maker, gap: Any) -> None:
    values = found(make({**KNOWN, "qb": [0.0, 0.5, 0.5, gap]}), posterior=TRUE, metrics="irreducible_loss")
    assert (values["n"], values["n_missing"]) == ([3], [1])
    same(values, {"irreducible_loss": [(0.375 + 0.5) / 3]})


def test_an_infinite_loss_is_said_once(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/17399
    table = {"y": ["a", "b"], "pa": [0.0, 0.5], "pb": [1.0, 0.25], "pc": [0.0, 0.25]}
    with pytest.warns(CalframeWarning, match="1 row gives probability 0 to what happened") as caught:
        assert found(make(table), metrics="log_loss")["log_loss"] == [math.inf]
    assert len(caught) == 1
    clipped = found(make(table), metrics="log_loss", clip=2.0**-52)
    same(clipped, {"log_loss": [(52 * math.log(2) + math.log(4)) / 2]})
