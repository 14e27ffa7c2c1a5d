"""Polars expressions on missing and invalid rows: used nowhere, or seen in the result."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from calframe import CalframeError
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
)

ROWS = FLIGHTS.with_columns(pl.col("y").cast(pl.Float64), w=pl.lit(1.0))


@pytest.fixture(params=WHOLE)
def whole(request: pytest.FixtureRequest) -> Way:
    return WHOLE[request.param]


@pytest.fixture(params=SEGMENTS)
def segments(request: pytest.FixtureRequest) -> Way:
    return SEGMENTS[request.param]


def with_row(**row: Any) -> pl.DataFrame:
    """Return the rows with one more in segment a, as wrong as a row can be unless told otherwise."""
    return pl.concat([ROWS, pl.DataFrame([{"g": "a", "y": 1.0, "p": 0.0, "w": 1.0, **row}], schema=ROWS.schema)])


@pytest.mark.parametrize("gap", [None, NAN], ids=["null", "NaN"])
@pytest.mark.parametrize("column", ["y", "p", "w"])
def test_a_row_with_a_hole_is_used_nowhere(segments: Way, column: str, gap: Any) -> None:
    check(segments(with_row(**{column: gap}), measures(weight="w", bins=2)), BY_HAND)


def test_a_row_of_weight_0_is_used_nowhere(segments: Way) -> None:
    check(segments(with_row(w=0.0), measures(weight="w", bins=2)), BY_HAND)


@pytest.mark.parametrize(
    "table",
    [
        {"y": [], "p": [], "w": []},
        {"y": [None, 1], "p": [0.5, None], "w": [1, 1]},
        {"y": [1, 0], "p": [NAN, NAN], "w": [1, 1]},
        {"y": [1, 0], "p": [0.5, 0.5], "w": [0, None]},
        {"y": [None, None], "p": [0.5, 0.5], "w": [1, 1]},
        {"y": [1, 0], "p": [None, None], "w": [1, 1]},
        {"y": [1, 0], "p": [0.5, 0.5], "w": [None, None]},
    ],
    ids=["no rows", "holes", "NaN", "no weight", "no label", "no score", "null weights"],
)
def test_without_usable_rows_there_is_no_result(whole: Way, table: dict[str, list[Any]]) -> None:
    check(whole(pl.DataFrame(table), measures(weight="w")), {name: [None] for name in MEASURES})


def test_an_empty_table_has_no_segments(segments: Way) -> None:
    check(segments(FLIGHTS.clear(), measures()), {name: [] for name in MEASURES})


@pytest.mark.parametrize(
    ("column", "value", "match"),
    [
        ("p", 1.5, "scores must lie in"),
        ("p", -1e-9, "scores must lie in"),
        ("p", INF, "scores must lie in"),
        ("p", -INF, "scores must lie in"),
        ("y", 2.0, "label column"),
        ("y", 0.5, "label column"),
        ("y", -2.0, "label column"),
        ("y", INF, "label column"),
        ("y", -1.0, "label column"),  # with a 0 in the segment
        ("w", -1.0, "negative weight"),
        ("w", INF, "infinite weight"),
        ("w", 1e-200, "weights other than 0 must lie between"),
        ("w", 1e200, "weights other than 0 must lie between"),
    ],
)
def test_where_metrics_refuses_the_segment_is_nan(segments: Way, column: str, value: float, match: str) -> None:
    table = with_row(**{column: value})
    with pytest.raises(CalframeError, match=match):
        by_metrics(table, by="g", weight="w")
    wanted = {name: [NAN, values[1]] for name, values in BY_HAND.items()}
    check(segments(table, measures(weight="w", bins=2)), wanted)


def test_where_a_score_is_outside_given_edges_the_segment_is_nan(segments: Way) -> None:
    edges = [0.45, 0.6, 1.0]
    with pytest.raises(CalframeError, match="outside the bin edges"):
        by_metrics(ROWS, by="g", only=["ece", "mce"], bins=edges)
    wanted = {**BY_HAND, "ece": [NAN, 0.0], "mce": [NAN, 0.0]}  # the others have no edges
    check(segments(ROWS, measures(bins=edges)), wanted)


@pytest.mark.parametrize(
    "row",
    [
        {"p": 7.0, "y": None},
        {"p": 7.0, "w": None},
        {"p": 7.0, "w": 0.0},
        {"w": -1.0, "p": None},
        {"y": 7.0, "w": 0.0},
        {"y": 7.0, "w": None},
        {"y": -1.0, "p": None},
    ],
    ids=str,
)
def test_what_is_not_used_need_not_be_valid(segments: Way, row: dict[str, Any]) -> None:
    table = with_row(**row)
    check(by_metrics(table, by="g", weight="w", bins=2), BY_HAND)
    check(segments(table, measures(weight="w", bins=2)), BY_HAND)


def test_a_wrong_label_shows_even_where_the_score_is_missing(segments: Way) -> None:
    table = with_row(y=2.0, p=None)
    with pytest.raises(CalframeError, match="label column"):
        by_metrics(table, by="g")
    check(segments(table, measures(bins=2)), {name: [NAN, values[1]] for name, values in BY_HAND.items()})


def test_segments_may_write_their_labels_in_two_ways(segments: Way) -> None:
    # 0/1 in one, -1/+1 in the other: each is clear by itself
    table = ROWS.with_columns(y=pl.when((pl.col("g") == "b") & (pl.col("y") == 0)).then(-1.0).otherwise("y"))
    check(segments(table, measures(bins=2)), BY_HAND)
