"""How far a table lies within what a map was fitted on: every count by hand."""

import math
from typing import Any

import polars as pl
import pytest

import calframe
from calframe._errors import ColumnNotFoundError, ScoreError
from tests._fitted_maps import collected
from tests._tables import Maker, rows

COUNTS = ["n", "n_missing", "n_below", "n_above"]
# Segment a was fitted on scores from 0.3 to 0.7, b on scores from 0.1 to 0.5
TAUGHT = {
    "g": ["a"] * 4 + ["b"] * 4,
    "p": [0.3, 0.4, 0.6, 0.7, 0.1, 0.2, 0.4, 0.5],
    "y": [0, 1, 0, 1, 0, 1, 0, 1],
}
NEW: dict[str, list[Any]] = {
    "g": ["a", "a", "a", "b", "b", "c", "c", None],
    "p": [0.3, 0.7, 0.71, 0.05, None, 0.05, 0.9, 0.9],
}


def counts(table: Any) -> list[tuple[int, ...]]:
    found = rows(table)
    return [tuple(map(int, one)) for one in zip(*(found[name] for name in COUNTS), strict=True)]


def test_each_segment_has_its_own_range(make: Maker) -> None:
    found = calframe.fit(pl.DataFrame(TAUGHT), label="y", score="p", by="g", method="isotonic", pooling="none")
    table = found.reach(make(NEW))
    assert list(rows(table)["g"])[:3] == ["a", "b", "c"]
    # all rows together run from 0.1 to 0.7
    assert counts(table) == [(3, 0, 0, 1), (2, 1, 1, 0), (2, 0, 1, 1), (1, 0, 0, 1)]
    note = "no segment of the map: takes the pooled map"
    assert [text == note for text in rows(table)["note"]] == [False, False, True, True]


def test_the_case_of_constant_extrapolation(make: Maker) -> None:
    # https://github.com/scikit-learn/scikit-learn/issues/23134
    found = calframe.fit(make({"y": [0, 1, 1], "p": [0.2, 0.4, 0.6]}), label="y", score="p", method="isotonic")
    table = {"y": [0, 1, 1, None, None], "p": [0.2, 0.4, 0.6, 0.05, 0.99]}
    ((n, missing, below, above),) = counts(found.reach(make(table)))
    assert (n, missing, below + above) == (5, 0, 2)
    applied = collected(calframe.apply(make(table), found))["p_calibrated"]
    assert [float(value) for value in applied] == [0.0, 1.0, 1.0, 0.0, 1.0]


def test_a_segment_without_a_map_of_its_own_has_the_range_of_all() -> None:
    taught = pl.DataFrame(TAUGHT).with_columns(y=pl.when(pl.col("g") == "b").then(1).otherwise("y"))
    found = calframe.fit(taught, label="y", score="p", by="g", method="platt", pooling="none")
    assert counts(found.reach(pl.DataFrame({"g": ["b", "b", "a"], "p": [0.6, 0.8, 0.6]}))) == [
        (1, 0, 0, 0),
        (2, 0, 0, 1),
    ]


def test_logits_are_counted_by_the_probabilities_they_stand_for() -> None:
    taught = pl.DataFrame({"y": [0, 1, 0, 1], "z": [-1.0, -0.5, 0.5, 1.0]})
    found = calframe.fit(taught, label="y", score="z", method="platt", link="logit")
    new = pl.DataFrame({"z": [-math.inf, -1.0, 0.0, 1.0, 1.5, math.nan]})
    assert counts(found.reach(new)) == [(6, 1, 1, 1)]


def test_of_several_classes_the_largest_probability_counts() -> None:
    # the largest of a row was 0.5 to 0.7 in the fit
    taught = pl.DataFrame(
        {"y": list("abcabc"), "a": [0.5, 0.2, 0.3] * 2, "b": [0.3, 0.7, 0.1] * 2, "c": [0.2, 0.1, 0.6] * 2}
    )
    score = {name: name for name in "abc"}
    new = pl.DataFrame({"a": [0.4, 0.6, 0.8, None], "b": [0.3, 0.2, 0.1, 0.5], "c": [0.3, 0.2, 0.1, 0.5]})
    whole = calframe.fit(taught, label="y", score=score, method="temperature")
    assert counts(whole.reach(new)) == [(4, 1, 1, 1)]
    each = calframe.fit(taught, label="y", score=score, method="ovr_histogram")
    assert counts(each.reach(new)) == [(4, 1, 0, 0)]  # not known


def test_an_empty_table_has_no_segments() -> None:
    found = calframe.fit(pl.DataFrame(TAUGHT), label="y", score="p", by="g", method="isotonic", pooling="none")
    assert counts(found.reach(pl.DataFrame(NEW).clear())) == []
    alone = calframe.fit(pl.DataFrame(TAUGHT), label="y", score="p")
    assert counts(alone.reach(pl.DataFrame(NEW).clear())) == [(0, 0, 0, 0)]


def test_what_the_map_cannot_take_is_an_error() -> None:
    found = calframe.fit(pl.DataFrame(TAUGHT), label="y", score="p")
    with pytest.raises(ScoreError, match="1 row outside"):
        found.reach(pl.DataFrame({"p": [0.2, 1.5]}))
    with pytest.raises(ColumnNotFoundError, match="'p'"):
        found.reach(pl.DataFrame({"q": [0.2]}))
