"""Tables that other people's users reported as bugs, each with the value worked out by hand, on every library."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calframe
from calframe._errors import (
    ArgumentError,
    CalframeWarning,
    ColumnClashError,
    LabelError,
    WeightError,
)
from tests._tables import Maker, approx, measure, refuses, rows, value


def by_segment(make: Maker, table: dict[str, Any], key: Any = "g", **arguments: Any) -> dict[Any, dict[str, Any]]:
    """Return the results of each segment by its key."""
    found = rows(measure(make, table, by=key, **arguments))
    keys = found[key] if isinstance(key, str) else list(zip(*(found[name] for name in key), strict=True))
    values = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    return dict(zip(keys, values, strict=True))


def bins_of(make: Maker, table: dict[str, Any], **arguments: Any) -> dict[str, list[Any]]:
    """Return the table of bins."""
    return rows(calframe.curve(make(table), label="y", score="p", **arguments).table)


# ---------------------------------------------------------------- bins
def test_scores_of_exactly_zero_and_one_have_a_bin(make: Maker) -> None:
    # https://github.com/Lightning-AI/torchmetrics/issues/1646: |0 - 1/2| on half of the rows, nothing on the others
    table = {"y": [1, 0, 1, 1], "p": [0.0, 0.0, 1.0, 1.0]}
    for closed in ("left", "right"):
        assert value(make, table, "ece", bins=5, closed=closed) == 0.25
        found = bins_of(make, table, bins=5, closed=closed)
        assert (found["bin"], found["n"]) == ([0, 4], [2, 2])


@pytest.mark.parametrize(("closed", "counts"), [("left", [10] * 10), ("right", [11, *[10] * 8, 9])])
def test_each_hundredth_is_in_the_bin_that_its_digits_name(make: Maker, closed: str, counts: list[int]) -> None:
    # https://github.com/numpy/numpy/issues/20610: edges from linspace put .3, .6 and .7 into the bins beside
    found = bins_of(make, {"y": [0] * 100, "p": [k / 100 for k in range(100)]}, bins=10, closed=closed)
    assert (found["bin"], found["n"]) == (list(range(10)), counts)


def test_an_error_can_be_followed_by_hand(make: Maker) -> None:
    # https://github.com/Lightning-AI/torchmetrics/issues/1907: in halves .25 below (3 rows) and .85 above (1 row)
    table = {"y": [1, 0, 0, 1], "p": [0.15, 0.15, 0.45, 0.85]}
    assert value(make, table, "ece", bins=2) == approx(0.1)  # (|.75 - 1| + |.85 - 1|) / 4
    assert value(make, table, "ece", bins=3) == approx(0.325)  # (|.3 - 1| + |.45 - 0| + |.85 - 1|) / 4
    halves, thirds = bins_of(make, table, bins=2), bins_of(make, table, bins=3)
    assert (halves["n"], thirds["n"]) == ([3, 1], [2, 1, 1])
    assert halves["mean_score"] == approx([0.25, 0.85])
    assert halves["rate"] == approx([1 / 3, 1.0])
    assert (halves["lower"], halves["upper"]) == ([0.0, 0.5], [0.5, 1.0])


def test_the_error_of_a_plain_column_is_of_its_positive_class(make: Maker) -> None:
    # https://github.com/EFS-OpenSource/calibration-framework/issues/25: 3/4 |.12 - 1/3| + 1/4 |.88 - 1|
    assert value(make, {"y": [0, 0, 1, 1], "p": [0.12, 0.12, 0.12, 0.88]}, "ece", bins=10) == approx(0.19)


# ---------------------------------------------------------------- labels
def test_one_row_of_one_class_has_a_brier_score(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/6980
    found = rows(measure(make, {"y": [0], "p": [0.7]}, metrics="brier"))
    assert (found["n"], found["brier"]) == ([1], [approx(0.49)])


def test_labels_are_named_not_handed_over(make: Maker) -> None:
    # https://github.com/markus93/NN_calibration/issues/17: labels of another split have the same length
    labels = pd.Series([1, 0, 1], index=[5, 6, 7])
    match = "label= takes the name of a column .* rows are never matched by position"
    refuses(make, {"y": [1, 0, 1], "p": [0.9, 0.2, 0.7]}, ArgumentError, match, reads=False, label=labels)


def test_a_positive_label_with_a_typo_is_no_negative_table(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/pull/9562: all negative, the brier score would be .4467
    table = {"y": ["yes", "no", "yes"], "p": [0.9, 0.2, 0.7]}
    match = r"positive='Yes' does not occur in label column 'y', which holds 'no', 'yes'"
    refuses(make, table, LabelError, match, reads=True, positive="Yes")
    assert value(make, table, "brier", positive="yes") == approx(0.14 / 3)  # .01 + .04 + .09


def test_minus_one_and_one_are_classes_not_numbers(make: Maker) -> None:
    # https://github.com/huggingface/evaluate/issues/784: (.04 + .09 + .16 + .16) / 4; with -1 as a number .9125
    found = rows(measure(make, {"y": [-1, 1, 1, -1], "p": [0.2, 0.7, 0.6, 0.4]}, metrics=["brier", "rate"]))
    assert (found["brier"], found["rate"]) == ([approx(0.1125)], [0.5])


# ---------------------------------------------------------------- log loss
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_log_loss_of_a_zero_is_infinite_or_clipped_as_told(make: Maker, dtype: str) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/17399: the clip there depends on the width of the floats
    table = {"y": np.array([1, 0]), "p": np.array([0.0, 0.25], dtype)}
    with pytest.warns(CalframeWarning, match="1 row gives probability 0 to what happened"):
        assert value(make, table, "log_loss") == math.inf
    assert value(make, table, "log_loss", clip=2.0**-52) == approx((52 * math.log(2) - math.log(0.75)) / 2)


# ---------------------------------------------------------------- weights
def test_weights_enter_curve_and_error(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/11352
    table = {"y": [0, 1, 1, 0], "p": [0.12, 0.18, 0.62, 0.68], "w": [1, 3, 2, 2]}
    repeated = {name: np.repeat(table[name], table["w"]) for name in ("y", "p")}
    for each, weight in ((table, "w"), (repeated, None)):
        assert value(make, each, "brier", bins=2, weight=weight) == approx(0.40565)
        assert value(make, each, "ece", bins=2, weight=weight) == approx(0.3675)  # (4 * .585 + 4 * .15) / 8
        found = bins_of(make, each, bins=2, weight=weight)
        assert found["mean_score"] == approx([0.165, 0.65])  # (.12 + .54) / 4, (1.24 + 1.36) / 4
        assert found["rate"] == [0.75, 0.5]
    assert bins_of(make, table, bins=2, weight="w")["weight_sum"] == [4.0, 4.0]


def test_a_segment_without_weight_is_unknown_and_a_negative_weight_is_an_error(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/pull/8663
    table = {"g": ["a", "a", "b", "b"], "y": [1, 0, 1, 0], "p": [0.8, 0.4, 0.7, 0.1], "w": [1.0, 1.0, 0.0, 0.0]}
    found = by_segment(make, table, weight="w", metrics="brier")
    assert found["a"]["brier"] == approx(0.1)  # (.04 + .16) / 2
    assert (found["b"]["brier"], found["b"]["n"], found["b"]["weight_sum"]) == (None, 0, 0.0)
    match = "weight column 'w' has 1 row with a negative weight, the lowest -1"
    refuses(make, {**table, "w": [-1.0, 1.0, 0.0, 0.0]}, WeightError, match, reads=True, weight="w", by="g")


# ---------------------------------------------------------------- segments
def test_the_word_nan_is_not_a_missing_segment(make: Maker) -> None:
    # https://github.com/fairlearn/fairlearn/pull/1698
    table = {"g": ["nan", None, "a", "a"], "y": [1, 0, 1, 0], "p": [0.7, 0.2, 0.9, 0.1]}
    found = by_segment(make, table, metrics="rate")
    assert {key: each["n"] for key, each in found.items()} == {"a": 2, "nan": 1, None: 1}


CATEGORIES = {
    "pandas": lambda values, declared: pd.DataFrame({"g": pd.Categorical(values, categories=declared)}),
    "polars": lambda values, declared: pl.DataFrame({"g": pl.Series(values, dtype=pl.Enum(declared))}),
}


def with_columns(frame: Any, **columns: list[Any]) -> Any:
    if isinstance(frame, pd.DataFrame):
        return frame.assign(**columns)
    return frame.with_columns(pl.Series(name, values) for name, values in columns.items())


@pytest.mark.parametrize("library", CATEGORIES)
def test_missing_categories_are_a_segment(library: str) -> None:
    # https://github.com/pandas-dev/pandas/issues/36327
    keys = CATEGORIES[library](["a", "a", "b", None], ["a", "b"])
    found = rows(
        calframe.metrics(with_columns(keys, y=[1, 0, 1, 0], p=[0.7, 0.2, 0.9, 0.1]), label="y", score="p", by="g")
    )
    assert dict(zip(found["g"], found["n"], strict=True)) == {"a": 2, "b": 1, None: 1}


@pytest.mark.parametrize("library", CATEGORIES)
def test_an_empty_category_is_named_not_invented(library: str) -> None:
    # https://github.com/JobCollins/fairness_pipeline_dev_toolkit/issues/29
    frame = with_columns(CATEGORIES[library](["a", "a", "b"], ["a", "b", "z"]), y=[1, 0, 1], p=[0.7, 0.2, 0.9])
    with pytest.warns(CalframeWarning, match="'g' declares categories that no row has: 'z'"):
        found = rows(calframe.metrics(frame, label="y", score="p", by="g", metrics="brier"))
    assert (found["g"], found["brier"]) == (["a", "b"], approx([0.065, 0.01]))  # (.09 + .04) / 2, .01


def test_a_segment_column_called_n_is_refused(make: Maker) -> None:
    # https://github.com/fairlearn/fairlearn/pull/1679
    table = {"n": ["x", "x", "y"], "y": [1, 0, 1], "p": [0.7, 0.2, 0.9]}
    refuses(make, table, ColumnClashError, "segment column 'n' has the name of a result column", reads=False, by="n")


def test_two_segment_columns_are_pairs(make: Maker) -> None:
    # https://github.com/fairlearn/fairlearn/pull/763: joined as text two of these pairs are one, others are cut off
    long = "a" * 60
    table = {"g": ["a_b", "a", long, long], "h": ["c", "b_c", "x", "y"], "y": [1, 0, 1, 0], "p": [0.7, 0.2, 0.9, 0.1]}
    found = by_segment(make, table, key=["g", "h"], metrics="rate")
    pairs = {("a", "b_c"): 1, ("a_b", "c"): 1, (long, "x"): 1, (long, "y"): 1}
    assert {key: each["n"] for key, each in found.items()} == pairs


def test_segments_that_cancel_are_seen_apart(make: Maker) -> None:
    # https://github.com/NannyML/The-Little-Book-of-ML-Metrics/issues/88: 10 of 20 positive, but 7 of 10 and 3 of 10
    table = {"g": ["a"] * 10 + ["b"] * 10, "y": [1] * 7 + [0] * 3 + [1] * 3 + [0] * 7, "p": [0.5] * 20}
    assert value(make, table, "ece", bins=10) == 0.0
    found = by_segment(make, table, bins=10, metrics=["ece", "gap"])
    assert [found[key]["ece"] for key in "ab"] == approx([0.2, 0.2])
    assert [found[key]["gap"] for key in "ab"] == approx([-0.2, 0.2])


# ---------------------------------------------------------------- missing values
@pytest.mark.parametrize("gap", [None, math.nan], ids=["null", "NaN"])
def test_a_missing_score_is_in_no_bin(make: Maker, gap: Any) -> None:
    # https://github.com/pola-rs/polars/issues/21494: NaN is above every number there, and in the last bin
    table = {"y": [0, 1, 1], "p": [0.2, gap, 0.8]}
    found = rows(measure(make, table, metrics=["brier", "ece"], bins=2))
    assert (found["brier"], found["ece"], found["n"], found["n_missing"]) == (approx([0.04]), approx([0.2]), [2], [1])
    assert bins_of(make, table, bins=2)["n"] == [1, 1]


def test_a_segment_of_missing_scores_is_unknown_and_no_panic(make: Maker) -> None:
    # https://github.com/pola-rs/polars/issues/11291
    table = {"g": ["a", "a", "b", "b"], "p": [None, None, 0.3, 0.7], "y": [1, 0, 0, 1]}
    found = by_segment(make, table, metrics=["brier", "ece"], bins=2)
    assert [found["a"][name] for name in ("n", "n_missing", "brier", "ece")] == [0, 2, None, None]
    assert [found["b"][name] for name in ("n", "n_missing", "brier", "ece")] == [2, 0, approx(0.09), approx(0.3)]


# ---------------------------------------------------------------- types
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_small_integer_labels_do_not_overflow(make: Maker, dtype: str) -> None:
    # https://github.com/pola-rs/polars/issues/8570: 200 ones do not fit into a byte with a sign
    table = {"y": np.repeat([1, 0], [200, 100]).astype(dtype), "p": np.full(300, 0.5)}
    found = rows(measure(make, table, metrics=["rate", "brier", "ece"], bins=2, closed="right"))
    assert (found["rate"], found["brier"], found["ece"]) == (approx([2 / 3]), [0.25], approx([1 / 6]))


@pytest.mark.parametrize("half", [499, 500, 5000])
def test_boolean_labels_of_few_rows_and_many(make: Maker, half: int) -> None:
    # https://github.com/pola-rs/polars/issues/15610: from 1,000 rows on another way of grouping was taken
    found = by_segment(make, {"g": ["a"] * 2 * half, "y": [True, False] * half, "p": [0.5] * 2 * half})["a"]
    assert [found[name] for name in ("n", "rate", "brier")] == [2 * half, 0.5, 0.25]


def test_a_missing_label_does_not_end_the_run(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/25073; (.01 + .04 + .09) / 3
    for labels in ([1, 0, None, 1], [True, False, None, True], [1.0, 0.0, None, 1.0]):
        found = rows(measure(make, {"y": labels, "p": [0.9, 0.2, 0.5, 0.7]}, metrics="brier"))
        assert (found["brier"], found["n"], found["n_missing"]) == (approx([0.14 / 3]), [3], [1])


def test_decimal_scores_are_not_rounded_to_their_scale(make: Maker) -> None:
    # https://github.com/pola-rs/polars/pull/21306: (.25 + .5) / 2 at two decimals is .38
    table = {"g": ["a", "a"], "y": [0, 1], "p": [Decimal("0.25"), Decimal("0.50")]}
    found = by_segment(make, table, metrics=["mean_score", "brier"])["a"]
    assert (found["mean_score"], found["brier"]) == (0.375, 0.15625)


# ---------------------------------------------------------------- pandas and the namespace
def test_labels_of_the_index_play_no_part() -> None:
    # https://github.com/pandas-dev/pandas/issues/8849; (.01 + .16 + .16 + .01) / 4
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "p": [0.1, 0.6, 0.4, 0.9]}, index=[0, 0, 1, 0])
    assert frame.calib.metrics(label="y", score="p", metrics="brier")["brier"].tolist() == approx([0.085])
    assert frame.index.tolist() == [0, 0, 1, 0]


def test_the_namespace_sees_later_edits() -> None:
    # https://github.com/pandas-dev/pandas/pull/18827: what the namespace keeps from its first use goes stale
    frame = pd.DataFrame({"y": [1, 0], "p": [0.9, 0.2]})
    namespace = frame.calib
    assert namespace.metrics(label="y", score="p", metrics="brier")["brier"].tolist() == approx([0.025])
    frame.loc[0, "p"] = 0.5
    for again in (namespace, frame.calib):
        assert again.metrics(label="y", score="p", metrics="brier")["brier"].tolist() == approx([0.145])
