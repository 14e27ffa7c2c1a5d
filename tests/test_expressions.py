"""Measures as polars expressions: the numbers of `calframe.metrics` wherever polars takes an aggregate."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calframe import ArgumentError
from tests._definitions import defined, edges_of
from tests._expressions import (
    BY_HAND,
    FLIGHTS,
    INF,
    MEASURES,
    NAN,
    SEGMENTS,
    WHOLE,
    Way,
    by_metrics,
    check,
    measures,
    same,
)

SCORE = pl.col("p").calib


@pytest.fixture(params=WHOLE)
def whole(request: pytest.FixtureRequest) -> Way:
    return WHOLE[request.param]


@pytest.fixture(params=SEGMENTS)
def segments(request: pytest.FixtureRequest) -> Way:
    return SEGMENTS[request.param]


@pytest.fixture(scope="module")
def messy() -> pl.DataFrame:
    """Scores with holes of every kind, in segments of one row, of none that is usable, and around 1,000 rows."""
    n = 4000
    rng = np.random.default_rng(7)
    score, weight, row = rng.integers(0, 101, n) / 100, rng.integers(0, 5, n) / 2, pl.int_range(n)
    segment = ["a"] * 1700 + ["b"] * 999 + ["c"] * 1000 + ["one"] + ["none"] * 3 + [None] * (n - 3703)
    table = pl.DataFrame({"g": segment, "y": (rng.random(n) < score).astype(int), "p": score, "w": weight})
    lost, alone = pl.col("g") == "none", pl.col("g") == "one"
    return table.with_columns(
        y=pl.when(row % 97 != 3).then("y"),
        p=pl.when((row % 97 == 8) | lost).then(NAN).when(row % 97 != 5).then("p"),
        w=pl.when(alone).then(2.0).when(row % 97 == 21).then(NAN).when(row % 97 != 13).then("w"),
    ).sample(fraction=1.0, shuffle=True, seed=1)


# The same numbers everywhere


def test_segments_worked_by_hand(segments: Way) -> None:
    check(segments(FLIGHTS, measures(bins=2)), BY_HAND)


def test_weights_worked_by_hand(whole: Way) -> None:
    # gaps -.2, -.5 and .4 with weights 1, 2 and 3, the first two in one bin
    table = FLIGHTS.with_columns(w=pl.Series([1, 2, 3, 0]))
    wanted = {
        "brier": [(0.04 + 2 * 0.25 + 3 * 0.16) / 6],
        "log_loss": [-(math.log(0.8) + 2 * math.log(0.5) + 3 * math.log(0.6)) / 6],
        "gap": [0.0],
        "ece": [(1.2 + 1.2) / 6],
        "mce": [0.4],
    }
    check(whole(table, measures(weight="w", bins=2)), wanted)


@pytest.mark.parametrize("weight", [None, "w"])
def test_a_whole_table_as_in_metrics(whole: Way, messy: pl.DataFrame, weight: str | None) -> None:
    check(whole(messy, measures(weight=weight, clip=1e-6)), by_metrics(messy, weight=weight, clip=1e-6))


@pytest.mark.parametrize("weight", [None, "w"])
def test_segments_as_in_metrics(segments: Way, messy: pl.DataFrame, weight: str | None) -> None:
    wanted = by_metrics(messy, by="g", weight=weight, clip=1e-6)
    assert [values.count(None) for values in wanted.values()] == [1] * 5  # the segment with no usable row
    check(segments(messy, measures(weight=weight, clip=1e-6)), wanted)


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("bins", [1, 10, 15, [0.0, 0.07, 0.3, 0.7, 1.0]], ids=["one", "10", "15", "edges"])
def test_bins_as_in_metrics(messy: pl.DataFrame, bins: Any, closed: str, dtype: Any) -> None:
    table = messy.with_columns(pl.col("p").cast(dtype))  # hundredths, of which many are edges
    wanted = by_metrics(table, by="g", weight="w", bins=bins, closed=closed, clip=1e-6)
    for way in ("group_by", "streaming group_by", "over"):
        check(SEGMENTS[way](table, measures(weight="w", bins=bins, closed=closed, clip=1e-6)), wanted)


TABLES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 100).map(lambda k: k / 100), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=40)
@given(TABLES, st.sampled_from([1, 2, 10, 15]), st.sampled_from(["left", "right"]))
def test_measures_are_their_definitions(table: list[tuple[int, float, float]], count: int, closed: str) -> None:
    frame = pl.DataFrame(table, schema=["y", "p", "w"], orient="row")
    wanted = {name: [defined(name, table, edges=edges_of(count), closed=closed)] for name in MEASURES}
    check(WHOLE["select"](frame, measures(weight="w", bins=count, closed=closed)), wanted)


@pytest.mark.parametrize("rows", [998, 1000, 1002, 5000])
def test_a_segment_of_booleans_on_both_sides_of_a_thousand_rows(segments: Way, rows: int) -> None:
    # https://github.com/pola-rs/polars/issues/15610: the mean of a boolean in a group was null from 1,000 rows on
    table = pl.DataFrame({"g": ["a"] * rows, "y": [True, False] * (rows // 2), "p": [0.5] * rows})
    wanted = {"brier": [0.25], "log_loss": [math.log(2)], "gap": [0.0], "ece": [0.0], "mce": [0.0]}
    check(segments(table, measures()), wanted)


def test_windows_of_time() -> None:
    table = pl.DataFrame({"t": [date(2026, 1, day) for day in (1, 2, 3)], "y": [1, 0, 1], "p": [0.5, 0.25, None]})
    # gaps -.5 and .25, and none on the third day
    moving = table.rolling("t", period="2d").agg(SCORE.gap("y"), ece=SCORE.ece("y"))
    assert moving["p"].to_list() == [-0.5, -0.125, 0.25]
    assert moving["ece"].to_list() == [0.5, 0.375, 0.25]
    fixed = table.group_by_dynamic("t", every="2d", start_by="datapoint").agg(SCORE.mce("y"))
    assert fixed["p"].to_list() == [0.5, None]


def test_a_measure_is_part_of_a_larger_expression() -> None:
    assert FLIGHTS.filter(SCORE.gap("y").over("g") > 0.05)["g"].unique().to_list() == ["a"]
    assert FLIGHTS.select(1.0 - 4.0 * SCORE.brier("y")).item() == pytest.approx(1 - 4 * 0.175, rel=1e-12)


# Log loss


def test_log_loss_is_infinite_where_it_is(segments: Way) -> None:
    table = pl.DataFrame({"g": ["a", "a", "b", "b"], "y": [1, 1, 1, 0], "p": [0.0, 0.5, 1.0, 0.0]})
    asked = {"free": SCORE.log_loss("y"), "held": SCORE.log_loss("y", clip=0.1)}
    check(segments(table, asked), {"free": [INF, 0.0], "held": [-math.log(0.1 * 0.5) / 2, -math.log(0.9)]})


@pytest.mark.parametrize("clip", [0, 0.5, -1e-9, "small", True])
def test_a_clip_that_is_none_is_refused(clip: Any) -> None:
    with pytest.raises(ArgumentError, match="clip must lie between"):
        SCORE.log_loss("y", clip=clip)


# Labels, weights and scores of every kind


@pytest.mark.parametrize(
    "labels",
    [
        [True, False, True, None],
        [1, 0, 1, None],
        [1, -1, 1, None],
        [1.0, 0.0, 1.0, NAN],
        [1.0, -1.0, 1.0, None],
        pl.Series([1, 0, 1, None], dtype=pl.UInt8),
        pl.Series([1, -1, 1, None], dtype=pl.Int8),
        pl.Series([1, 0, 1, None], dtype=pl.Float32),
        [Decimal(1), Decimal(0), Decimal(1), None],
    ],
    ids=["bool", "0/1", "-1/+1", "floats", "signed floats", "UInt8", "Int8", "Float32", "Decimal"],
)
def test_labels_of_every_kind(whole: Way, labels: Any) -> None:
    # gaps -.5, .25, -.25, each in a bin of its own
    wanted = {
        "brier": [0.125],
        "log_loss": [-math.log(0.5 * 0.75 * 0.75) / 3],
        "gap": [-1 / 6],
        "ece": [1 / 3],
        "mce": [0.5],
    }
    check(whole(pl.DataFrame({"y": labels, "p": [0.5, 0.25, 0.75, 0.0]}), measures()), wanted)


def test_label_and_weight_are_names_or_expressions(segments: Way) -> None:
    table = FLIGHTS.with_columns(w=pl.Series([1.0, 2.0, 3.0, 4.0]), late=pl.Series(["yes", "yes", "no", "no"]))
    named = segments(table, measures(weight="w"))
    check(segments(table, measures(pl.col("late") == "yes", weight=pl.col("w") * 5)), named)


@pytest.mark.parametrize("dtype", [pl.Boolean, pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(4, 2)])
def test_scores_and_weights_of_every_number_type(whole: Way, dtype: Any) -> None:
    table = pl.DataFrame({"y": [1, 0, 1, 0], "p": [1, 0, 0, 0], "w": [1, 1, 0, 1]})
    table = table.with_columns(pl.col("p", "w").cast(dtype))
    # the third row alone is wrong, in a bin with two others, and has weight 0
    wanted = {"brier": [0.25], "log_loss": [INF], "gap": [-0.25], "ece": [0.25], "mce": [1 / 3]}
    check(whole(table, measures()), wanted)
    check(whole(table, measures(weight="w")), {name: [0.0] for name in MEASURES})


@pytest.mark.parametrize("name", ["*", "^y$", "^.*$", "", " ", "a b", "a.b", 'a"b', "a'b", "Y", "ŷ", "y_", "p"])
def test_a_name_is_taken_as_it_is(segments: Way, name: str) -> None:
    columns = {"g": FLIGHTS["g"], "score": FLIGHTS["p"], "y_other": [7] * 4}
    labelled = pl.DataFrame({**columns, name: FLIGHTS["y"]})
    check(segments(labelled, measures(name, score=pl.col("score"), bins=2)), BY_HAND)
    weighted = pl.DataFrame({**columns, "late": FLIGHTS["y"], name: [2.0] * 4})
    check(segments(weighted, measures("late", score=pl.col("score"), weight=name, bins=2)), BY_HAND)


@pytest.mark.parametrize("name", MEASURES)
def test_several_scores_give_a_column_each(name: str) -> None:
    table = FLIGHTS.select("y", "p", q=1.0 - pl.col("p"))
    alone = table.select(measures()[name], measures(score=pl.col("q"))[name])
    assert alone.columns == ["p", "q"]
    for scores in (pl.col("p", "q"), pl.col("^[pq]$"), cs.by_name("p", "q"), cs.float()):
        assert table.select(measures(score=scores)[name]).equals(alone)


def test_a_number_is_a_score(segments: Way) -> None:
    # gaps -.25 and .75 in each segment, in one bin
    found = segments(FLIGHTS, measures(score=pl.lit(0.75)))
    wanted = {"brier": 0.3125, "log_loss": -math.log(0.75 * 0.25) / 2, "gap": 0.25, "ece": 0.25, "mce": 0.25}
    check(found, {name: [value] * 2 for name, value in wanted.items()})


def test_text_and_unknown_columns_are_refused_by_polars() -> None:
    table = pl.LazyFrame({"y": ["1", "0"], "p": ["0.5", "0.5"], "q": [0.5, 0.5]})
    for expression in (SCORE.gap("q"), SCORE.bin(), SCORE.logit(), pl.col("q").calib.gap("y")):
        with pytest.raises(pl.exceptions.InvalidOperationError, match="str"):
            table.select(expression).collect()
    for name in ("nope", "^nope.*$"):
        with pytest.raises(pl.exceptions.ColumnNotFoundError, match="nope"):
            table.select(pl.col("q").calib.gap(name)).collect()


# Arguments


def test_arguments_are_named() -> None:
    for name in MEASURES:
        with pytest.raises(TypeError, match="takes 2 positional arguments"):
            getattr(SCORE, name)("y", 15)
        with pytest.raises(TypeError, match="'label'"):
            getattr(SCORE, name)()


@pytest.mark.parametrize("given", [None, 1, ["y"], pl.Series([1, 0]), b"y"])
def test_what_is_no_column_is_refused(given: Any) -> None:
    for name in MEASURES:
        with pytest.raises(ArgumentError, match=f"label= takes .* got {type(given).__name__}"):
            getattr(SCORE, name)(given)
    if given is not None:
        with pytest.raises(ArgumentError, match=f"weight= takes .* got {type(given).__name__}"):
            measures(weight=given)


def test_what_only_tables_have_is_said_where_it_is_asked_for() -> None:
    match = r"no expression gives 'auc': .*\.calib has brier, log_loss, gap, ece, mce, .*calframe\.metrics\(.*'auc'\)"
    with pytest.raises(AttributeError, match=match):
        SCORE.auc("y")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        SCORE.nothing("y")
    for ask in (lambda: SCORE.ece("y", bins="auto"), lambda: SCORE.mce("y", bins="auto"), lambda: SCORE.bin("auto")):
        with pytest.raises(ArgumentError, match=r"bins='auto' is not for expressions.*calframe\.metrics takes it"):
            ask()


def test_null_is_not_nan_in_these_tests() -> None:
    assert same([None, NAN, 1.0], [None, NAN, 1.0])
    assert not same([None], [NAN])
    assert not same([NAN], [None])
    assert not same([1.0], [1.0 + 1e-9])
