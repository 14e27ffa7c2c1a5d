"""Several classes: what they may look like, in every library, and what is measured by each notion of calibration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calframe
from calframe._measures import CLASS_METRICS
from tests import _vector_definitions as defined
from tests._class_tables import (
    CLASSES,
    HALF_VECTORS,
    HALVES,
    HALVES_FOUND,
    SCORE,
    VECTOR_KINDS,
    found,
    same,
    with_vectors,
)
from tests._definitions import bin_of, edges_of
from tests._drawn import some_tables
from tests._tables import Maker, approx, arrow, rows

POLARS = Maker("polars")


# ---------------------------------------------------------------- what a table of classes may look like
def test_every_metric_of_a_table_worked_by_hand(make: Maker) -> None:
    data = make(HALVES)
    result = calframe.metrics(data, label="y", score=SCORE, metrics="all", bins=4)
    values = rows(result)
    assert list(values) == ["n", "n_missing", *HALVES_FOUND, "note"]
    assert [name for name, metric in CLASS_METRICS.items() if not metric.posterior] == list(HALVES_FOUND)
    assert (values["n"], values["n_missing"], values["note"]) == ([4], [0], [None])
    same(values, {name: [value] for name, value in HALVES_FOUND.items()})
    assert isinstance(result, pl.LazyFrame if make.lazy else make.result)


def test_the_usual_metrics(make: Maker) -> None:
    usual = ("accuracy", "brier", "log_loss", "confidence_ece", "classwise_ece")
    values = found(make(HALVES), bins=4)
    assert list(values) == ["n", "n_missing", *usual, "note"]
    same(values, {name: [HALVES_FOUND[name]] for name in usual})


@pytest.mark.parametrize("kind", VECTOR_KINDS)
def test_one_column_of_vectors(make: Maker, kind: str) -> None:
    data = with_vectors(make, {"y": HALVES["y"]}, HALF_VECTORS, kind=kind)
    values = found(data, score="v", classes=list(CLASSES), metrics="all", bins=4)
    assert (values["n"], values["note"]) == ([4], [None])
    same(values, {name: [value] for name, value in HALVES_FOUND.items()})


@pytest.mark.parametrize("kind", VECTOR_KINDS)
def test_vectors_that_are_missing(make: Maker, kind: str) -> None:
    data = with_vectors(
        make, {"y": ["a", "b", "c", None]}, [HALF_VECTORS[0], None, [0.5, None, 0.5], HALF_VECTORS[2]], kind=kind
    )
    values = found(data, score="v", classes=list(CLASSES), metrics=["accuracy", "log_loss"])
    assert (values["n"], values["n_missing"], values["accuracy"]) == ([1], [3], [1.0])
    assert values["log_loss"] == approx([math.log(2)])


def test_fields_of_a_struct_are_found_by_name(make: Maker) -> None:
    # the classes in another order than the fields, and a field that is no class
    vectors = [[*vector, 9.0] for vector in HALF_VECTORS]
    data = with_vectors(make, {"y": HALVES["y"]}, vectors, kind="struct", names=["a", "b", "c", "total"])
    same(found(data, score="v", classes=["c", "a", "b"], metrics=["log_loss"]), {"log_loss": [5 / 4 * math.log(2)]})


def test_fields_of_a_struct_for_numbers(make: Maker) -> None:
    data = with_vectors(make, {"y": [1, 2, 3, 1]}, HALF_VECTORS, kind="struct", names=["1", "2", "3"])
    same(found(data, score="v", classes=[1, 2, 3], metrics="brier"), {"brier": [0.5]})


@pytest.mark.parametrize(
    "column",
    [
        [tuple(vector) for vector in HALF_VECTORS],
        [np.array(vector, dtype=np.float32) for vector in HALF_VECTORS],
        arrow(HALF_VECTORS, pa.list_(pa.float64())),
        arrow(HALF_VECTORS, pa.large_list(pa.float32())),
        arrow(HALF_VECTORS, pa.list_(pa.float64(), 3)),
        arrow(
            [dict(zip("abc", vector, strict=True)) for vector in HALF_VECTORS],
            pa.struct([(name, pa.float64()) for name in "cab"]),
        ),
    ],
    ids=["tuples", "float32 arrays", "Arrow lists", "large Arrow lists", "Arrow arrays", "Arrow structs"],
)
def test_vectors_of_pandas(column: Any) -> None:
    frame = pd.DataFrame({"y": HALVES["y"], "v": column})
    same(found(frame, score="v", classes=np.array(CLASSES), metrics=["brier"]), {"brier": [0.5]})


LABELS = {
    "text": (["a", "b", "c", "a"], ("a", "b", "c")),
    "numbers": ([1, 2, 3, 1], (1, 2, 3)),
    "signed": ([-1, 0, 1, -1], (-1, 0, 1)),
    "NumPy keys": ([1, 2, 3, 1], tuple(np.arange(1, 4))),
    "floats": ([0.5, 1.5, 2.5, 0.5], (0.5, 1.5, 2.5)),
    "whole floats": ([1.0, 2.0, 3.0, 1.0], (1, 2, 3)),
    "one class is nowhere": (["a", "b", "b", "a"], ("a", "b", "z")),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind(make: Maker, kind: str) -> None:
    labels, classes = LABELS[kind]
    score = dict(zip(classes, SCORE.values(), strict=True))
    values = found(make({**HALVES, "y": labels}), score=score, metrics=["accuracy", "log_loss"])
    right = 3 if kind != "one class is nowhere" else 2  # the third row said z
    assert values["accuracy"] == [right / 4]
    assert values["log_loss"] == approx([(8 - right) / 4 * math.log(2)])


@pytest.mark.parametrize(
    "labels",
    [
        pd.Categorical(["a", "b", "c", "a"]),
        pd.Categorical(["a", "b", "c", "a"], categories=["c", "z", "a", "b"], ordered=True),
        arrow(["a", "b", "c", "a"], pa.dictionary(pa.int8(), pa.string())),
        np.array(["a", "b", "c", "a"], dtype=object),
        pl.Series(["a", "b", "c", "a"], dtype=pl.Categorical),
        pl.Series(["a", "b", "c", "a"], dtype=pl.Enum(["c", "a", "b"])),
    ],
    ids=["categories", "ordered categories", "Arrow dictionary", "objects", "Categorical", "Enum"],
)
def test_labels_that_are_categories(labels: Any) -> None:
    library: Any = pl if isinstance(labels, pl.Series) else pd
    data = library.DataFrame({**HALVES, "y": labels})
    same(found(data, metrics="accuracy"), {"accuracy": [0.75]})


def test_labels_that_are_bool(make: Maker) -> None:
    table = {"y": [True, False, None, True], "no": [0.25, 0.75, 0.5, 0.5], "yes": [0.75, 0.25, 0.5, 0.5]}
    values = found(make(table), score={False: "no", True: "yes"}, metrics=["rate", "brier"])
    assert (values["n"], values["n_missing"]) == ([3], [1])
    same(values, {"rate": [2 / 3], "brier": [0.375 / 3]})


# ---------------------------------------------------------------- the order of the classes
def test_the_order_of_a_mapping_names_columns_but_moves_no_number(make: Maker) -> None:
    # https://github.com/cleanlab/cleanlab/issues/991: matched by place in the alphabet the loss would be 2.3026
    table = {"y": ["a", "b", "c"], "pc": [0.1, 0.2, 0.7], "pa": [0.8, 0.1, 0.2], "pb": [0.1, 0.7, 0.1]}
    loss = [-(math.log(0.8) + 2 * math.log(0.7)) / 3]
    for order in ("abc", "cab", "bca"):
        values = found(make(table), score={name: f"p{name}" for name in order}, metrics=["log_loss", "classwise_ece"])
        # per class |.8 - 1|, .1 and .2; .1, |.7 - 1| and .1; .1, .2 and |.7 - 1|: each score alone or calibrated so
        same(values, {"log_loss": loss})
        classes = found(make(table), score={name: f"p{name}" for name in order}, metrics="rate", notion="classwise")
        assert classes["class"] == list(order)


def test_the_first_class_wins_a_tie(make: Maker) -> None:
    table = {"y": ["a", "b"], "pa": [0.5, 0.5], "pb": [0.5, 0.5], "pc": [0.0, 0.0]}
    for first, sure in (("abc", "a"), ("bac", "b"), ("cba", "b")):
        score = {name: f"p{name}" for name in first}
        values = found(make(table), score=score, metrics=["accuracy", "toplabel_ece", "confidence_ece"])
        assert values["accuracy"] == [0.5]
        assert values["confidence_ece"] == [0.0]
        alone = found(make({**table, "g": ["a", "b"]}), score=score, by="g", metrics="accuracy")
        assert alone["accuracy"] == [float(label == sure) for label in "ab"]


# ---------------------------------------------------------------- segments, gaps, weights
def test_a_segment_may_lack_a_class(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/4033
    table = {
        "g": ["s1", "s1", "s1", "s2", "s2"],
        "y": ["a", "b", "c", "a", "b"],
        "pa": [0.6, 0.2, 0.1, 0.5, 0.1],
        "pb": [0.3, 0.7, 0.3, 0.3, 0.8],
        "pc": [0.1, 0.1, 0.6, 0.2, 0.1],
    }
    values = found(make(table), by="g", metrics=["log_loss", "brier"])
    same(values, {"g": ["s1", "s2"], "brier": [0.22, 0.22]})
    same(values, {"log_loss": [0.459442063824, 0.458145365937]}, rel=1e-11)
    classes = found(make(table), by="g", notion="classwise", metrics=["rate", "gap"])
    assert (classes["g"], classes["class"]) == (["s1"] * 3 + ["s2"] * 3, ["a", "b", "c"] * 2)
    same(classes, {"rate": [1 / 3] * 3 + [0.5, 0.5, 0.0]})
    assert classes["gap"][5] == approx(0.15)


@pytest.mark.parametrize("gap", [None, math.nan], ids=["null", "NaN"])
@pytest.mark.parametrize("gone", ["y", "pb", "w"])
def test_a_row_that_misses_anything_is_counted_and_not_used(make: Maker, gone: str, gap: Any) -> None:
    if gone == "y" and gap is not None:
        gap = None  # text has no NaN
    table = {**HALVES, "w": [1.0, 2.0, 1.0, 1.0]}
    table[gone] = [gap if i == 3 else value for i, value in enumerate(table[gone])]
    values = found(make(table), weight="w", metrics=["accuracy", "brier", "confidence_ece"])
    assert (values["n"], values["n_missing"], values["weight_sum"]) == ([3], [1], [4.0])
    same(values, {"accuracy": [1.0], "brier": [0.375], "confidence_ece": [0.5]})
    classes = found(make(table), weight="w", metrics="rate", notion="classwise")
    assert (classes["n"], classes["n_missing"], classes["rate"]) == ([3] * 3, [1] * 3, [0.25, 0.5, 0.25])


def test_a_label_of_nulls_alone(make: Maker) -> None:
    values = found(make({**HALVES, "y": [None] * 4}), metrics="brier")
    assert (values["n"], values["n_missing"], values["brier"]) == ([0], [4], [None])


TENTHS = st.lists(st.integers(0, 10), min_size=2, max_size=2).map(sorted)
VECTORS = TENTHS.map(lambda at: tuple(int(part) / 10 for part in np.diff([0, *at, 10])))
ROWS = st.lists(st.tuples(st.integers(0, 2), VECTORS, st.sampled_from([1.0, 2.0, 0.5])), min_size=1, max_size=15)


def columns_of(table: list[Any]) -> dict[str, list[Any]]:
    label, vector, weight = zip(*table, strict=True)
    return {"y": [CLASSES[c] for c in label], "w": list(weight)} | {
        column: [scores[c] for scores in vector] for c, column in enumerate(SCORE.values())
    }


@pytest.mark.filterwarnings("ignore:.* infinite:calframe._errors.CalframeWarning")
@some_tables
@given(ROWS)
def test_any_weighted_table_by_its_definitions(table: list[Any]) -> None:
    def tenth(score: float) -> int:
        return bin_of(score, edges_of(10), closed="left")

    confidence, parts = defined.confidence_rows(table), defined.by_equal_vector(table)
    expected = {
        "accuracy": defined.accuracy(table),
        "brier": defined.brier(table),
        "confidence_ece": defined.binary_ece(confidence, tenth),
        "confidence_mce": defined.binary_mce(confidence, tenth),
        "classwise_ece": sum(defined.classwise(table, tenth, defined.binary_ece)) / 3,
        "classwise_mce": max(defined.classwise(table, tenth, defined.binary_mce)),
        "toplabel_ece": defined.toplabel_ece(table, tenth),
        "full_ece": defined.full_ece(table, tenth),
        "calibration_loss": parts["calibration"],
        "refinement_loss": parts["refinement"],
        "calibration_loss_log": parts["calibration_log"],
        "refinement_loss_log": parts["refinement_log"],
    }
    values = found(POLARS(columns_of(table)), weight="w", bins=10, metrics=list(expected))
    same(values, {name: [float(value)] for name, value in expected.items()}, rel=1e-9)
