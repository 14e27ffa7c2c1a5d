"""What is missing is counted and used nowhere; what is invalid is an error, or counted too."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calframe
from calframe._errors import LabelError
from tests._tables import Maker, approx, column, measure, refuses, rows

GAPS = [None, math.nan]


@pytest.mark.parametrize("gap", GAPS, ids=["null", "NaN"])
def test_a_missing_score(make: Maker, gap: Any) -> None:
    # https://github.com/pola-rs/polars/issues/21494; two rows left, each .2 off and alone in its half
    table = {"y": [0, 1, 1], "p": [0.2, gap, 0.8]}
    found = rows(measure(make, table, metrics=["brier", "ece"], bins=2))
    assert found == {"n": [2], "n_missing": [1], "brier": [approx(0.04)], "ece": [approx(0.2)], "note": [None]}


@pytest.mark.parametrize("gap", GAPS, ids=["null", "NaN"])
def test_a_missing_label(make: Maker, gap: Any) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/25073; (.01 + .04 + .09) / 3
    table = {"y": [1, 0, gap, 1], "p": [0.9, 0.2, 0.5, 0.7]}
    found = rows(measure(make, table, metrics="brier"))
    assert found == {"n": [3], "n_missing": [1], "brier": [approx(0.14 / 3)], "note": [None]}


@pytest.mark.parametrize("gap", GAPS, ids=["null", "NaN"])
def test_a_missing_weight(make: Maker, gap: Any) -> None:
    table = {"y": [1, 0, 1], "p": [0.5, 0.5, 0.0], "w": [1.0, 3.0, gap]}
    found = rows(measure(make, table, metrics="rate", weight="w"))
    assert found == {"n": [2], "n_missing": [1], "weight_sum": [4.0], "rate": [0.25], "note": [None]}


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ([True, None, False, True], None),
        ([1, None, -1, 1], None),
        (["yes", None, "no", "yes"], "yes"),
        ([2, None, 1, 2], 2),
    ],
    ids=["bool", "signs", "text", "named numbers"],
)
def test_a_missing_label_of_every_kind(make: Maker, labels: list[Any], positive: Any) -> None:
    found = rows(measure(make, {"y": labels, "p": [0.5] * 4}, metrics="rate", positive=positive))
    assert (found["n"], found["n_missing"], found["rate"]) == ([3], [1], [approx(2 / 3)])


def test_the_word_nan_is_a_label_like_any_other(make: Maker) -> None:
    found = rows(measure(make, {"y": ["nan", None, "no"], "p": [0.5] * 3}, metrics="rate", positive="nan"))
    assert (found["n"], found["n_missing"], found["rate"]) == ([2], [1], [0.5])


def test_a_row_that_misses_everything_is_one_row(make: Maker) -> None:
    table = {"y": [None, 1], "p": [math.nan, 0.5], "w": [None, 1.0]}
    found = rows(measure(make, table, metrics="rate", weight="w"))
    assert (found["n"], found["n_missing"]) == ([1], [1])


def test_a_segment_with_nothing_left_keeps_its_row(make: Maker) -> None:
    # https://github.com/pola-rs/polars/issues/11291
    table = {"g": ["a", "a", "b", "b"], "p": [None, math.nan, 0.3, 0.7], "y": [1, 0, 0, 1]}
    found = rows(measure(make, table, by="g", metrics=["brier", "ece"], bins=2, confidence_level=0.9))
    assert (found["g"], found["n"], found["n_missing"]) == (["a", "b"], [0, 2], [2, 0])
    assert found["brier"] == [None, approx(0.09)]
    assert found["ece"] == [None, approx(0.3)]
    assert found["brier_low"][0] is None
    assert found["note"] == ["no usable rows", None]


def test_every_metric_of_nothing_is_null(make: Maker) -> None:
    found = rows(measure(make, {"y": [1, 0], "p": [math.nan, math.nan]}, metrics="all"))
    assert {name: values for name, values in found.items() if values != [None]} == {
        "n": [0],
        "n_missing": [2],
        "note": ["no usable rows"],
    }


@pytest.mark.parametrize("gone", ["y", "p", "w"])
def test_a_column_of_nulls_alone(make: Maker, gone: str) -> None:
    # such a column has a type of its own in Arrow, polars and DuckDB
    table = {"y": [1, 0], "p": [0.5, 0.5], "w": [1.0, 1.0], gone: [None, None]}
    found = rows(measure(make, table, metrics="rate", weight="w"))
    assert (found["n"], found["n_missing"], found["rate"]) == ([0], [2], [None])


def test_each_model_misses_its_own_rows(make: Maker) -> None:
    table = {"y": [1, 0, None], "a": [0.5, None, 0.5], "b": [0.5, 0.25, 0.5], "g": ["x", "y", "y"]}
    found = rows(calframe.metrics(make(table), label="y", score=["a", "b"], by="g", metrics="mean_score"))
    assert (found["g"], found["model"]) == (["x", "x", "y", "y"], ["a", "b", "a", "b"])
    assert (found["n"], found["n_missing"]) == ([1, 1, 0, 1], [0, 0, 2, 1])
    assert found["mean_score"] == [0.5, 0.5, None, 0.25]


def test_weight_zero_is_no_row_and_is_noted(make: Maker) -> None:
    table = {"y": [1, 0, 1, None], "p": [1.0, 0.25, 0.75, 0.5], "w": [0, 1, 1, 0], "g": ["a", "b", "b", "b"]}
    found = rows(measure(make, table, by="g", weight="w", metrics=["rate", "mean_score"]))
    assert (found["n"], found["n_missing"], found["weight_sum"]) == ([0, 2], [0, 0], [0.0, 2.0])
    assert (found["rate"], found["mean_score"]) == ([None, 0.5], [None, 0.5])
    assert found["note"] == ["no usable rows; 1 row of weight 0 left out", "1 row of weight 0 left out"]


@pytest.mark.parametrize("score", [1.7, -3.0, math.inf])
def test_a_bad_score_of_weight_zero_is_no_row_either(make: Maker, score: float) -> None:
    table = {"y": [1, 0], "p": [score, 0.25], "w": [0.0, 1.0]}
    assert column(measure(make, table, weight="w", metrics="mean_score"), "mean_score") == [0.25]


@pytest.mark.parametrize(("labels", "positive"), [([2, 0, 1], None), (["c", "a", "b"], "a"), ([3, 1, 2], 1)])
def test_a_third_label_is_an_error_even_where_the_score_is_missing(make: Maker, labels: Any, positive: Any) -> None:
    # what a label means does not depend on the scores beside it, but weight 0 is no row
    table = {"y": labels, "p": [None, 0.5, 0.5]}
    refuses(make, table, LabelError, r"label column 'y' has 3 values", reads=True, positive=positive)
    table = {"y": labels, "p": [0.5] * 3, "w": [0.0, 1.0, 1.0]}
    assert column(measure(make, table, metrics="rate", weight="w", positive=positive), "rate") == [0.5]


@pytest.mark.parametrize(("labels", "positive"), [(["yes", "no", "no"], "yes"), ([2, 1, 1], 2)])
def test_a_positive_label_that_is_on_no_used_row_still_occurs(make: Maker, labels: Any, positive: Any) -> None:
    # saying that it does not occur in the column would be false
    found = rows(measure(make, {"y": labels, "p": [None, 0.5, 0.5]}, metrics="rate", positive=positive))
    assert (found["n"], found["n_missing"], found["rate"]) == ([2], [1], [0.0])


def test_invalid_rows_can_be_left_out_and_are_counted(make: Maker) -> None:
    table = {
        "y": [1, 0, 1, 0, 1, None, 1],
        "p": [0.5, 1.2, -0.1, math.inf, 0.5, 1.7, None],
        "w": [1, 1, 1, 1, -1, 1, 1],
    }
    found = rows(measure(make, table, weight="w", metrics="rate", invalid="drop"))
    # a row without label or score is missing, whatever else is wrong with it
    assert found == {
        "n": [1],
        "n_missing": [2],
        "n_invalid": [4],
        "weight_sum": [1.0],
        "rate": [1.0],
        "note": [None],
    }


def test_infinite_weights_can_be_left_out(make: Maker) -> None:
    table = {"y": [1, 0, 1], "p": [0.5] * 3, "w": [math.inf, -math.inf, 2.0]}
    found = rows(measure(make, table, weight="w", metrics="rate", invalid="drop"))
    assert (found["n"], found["n_invalid"], found["weight_sum"]) == ([1], [2], [2.0])


def test_minus_zero_is_a_score_of_zero(make: Maker) -> None:
    found = rows(measure(make, {"y": [0, 1], "p": [-0.0, 1.0]}, metrics=["brier", "ece", "mean_score"]))
    assert (found["brier"], found["ece"], found["mean_score"]) == ([0.0], [0.0], [0.5])


# ---------------------------------------------------------------- types that one library has
@pytest.mark.parametrize(
    "scores",
    [
        pd.array([0.25, None, 0.75], dtype="Float64"),
        np.array([0.25, pd.NA, 0.75], dtype=object),
        np.array([0.25, None, 0.75], dtype=object),
        np.array([Decimal("0.25"), None, Decimal("0.75")], dtype=object),
        pd.array([0.25, None, 0.75], dtype="double[pyarrow]"),
        pd.array(pa.array([0.25, math.nan, 0.75]), dtype="double[pyarrow]"),
        pd.array([0.25, 0.0, 0.75], dtype="Float64") / pd.array([1.0, 0.0, 1.0], dtype="Float64"),
    ],
    ids=["Float64", "NA", "None", "Decimal", "arrow null", "arrow NaN", "Float64 that holds NaN"],
)
def test_gaps_of_pandas(scores: Any) -> None:
    found = rows(calframe.metrics(pd.DataFrame({"y": [1, 0, 1], "p": scores}), label="y", score="p"))
    assert (found["n"], found["n_missing"], found["mean_score"]) == ([2], [1], [0.5])


@pytest.mark.parametrize("kind", ["Int64", "boolean", "Float64", "int64[pyarrow]", "bool[pyarrow]", "object"])
def test_labels_with_gaps_in_pandas(kind: str) -> None:
    labels = pd.Series([True, False, None, True], dtype=object).astype(kind)
    found = rows(calframe.metrics(pd.DataFrame({"y": labels, "p": [0.5] * 4}), label="y", score="p"))
    assert (found["n"], found["n_missing"], found["rate"]) == ([3], [1], [approx(2 / 3)])


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int128, pl.Boolean, pl.Float32, pl.Decimal(3, 0)])
@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
def test_labels_with_gaps_in_polars(kind: Any, lazy: bool) -> None:  # noqa: FBT001
    frame = pl.DataFrame({"y": [1, 0, None, 1], "p": [0.5] * 4}).with_columns(pl.col("y").cast(kind))
    found = rows(calframe.metrics(frame.lazy() if lazy else frame, label="y", score="p"))
    assert (found["n"], found["n_missing"], found["rate"]) == ([3], [1], [approx(2 / 3)])


@pytest.mark.parametrize("library", ["pandas[pyarrow]", "polars", "polars[lazy]", "pyarrow", "duckdb"])
def test_decimal_scores_are_not_rounded(library: str) -> None:
    # https://github.com/pola-rs/polars/pull/21306: (.25 + .5) / 2 at two decimals would be .38
    table = {"y": [0, 1], "p": [Decimal("0.25"), Decimal("0.50")]}
    found = rows(measure(Maker(library), table, metrics=["mean_score", "brier"]))
    assert (found["mean_score"], found["brier"]) == ([0.375], [0.15625])


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("library", ["pandas", "polars", "polars[lazy]", "pyarrow"])
def test_floats_of_every_width(library: str, kind: str) -> None:
    table = {"y": [0, 1], "p": np.array([0.25, 0.5], kind)}
    assert column(measure(Maker(library), table, metrics="brier"), "brier") == [0.15625]
