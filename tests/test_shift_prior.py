"""Scores moved to another class prior, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import duckdb
import polars as pl
import pytest

import calframe
from calframe import ArgumentError, CalframeError, ColumnClashError, ColumnNotFoundError, LabelError, ScoreError
from tests._tables import Maker, approx, rows

SCORES = [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)]


def shifted(table: Any, **arguments: Any) -> dict[str, list[Any]]:
    out = calframe.shift_prior(table, **{"score": "p", **arguments})
    return rows(out.pl() if isinstance(out, duckdb.DuckDBPyRelation) else out)


def by_odds(score: Fraction, *, base: Fraction, prior: Fraction) -> Fraction:
    """Move the odds of a score by the factor between those of two priors."""
    odds = score / (1 - score) * (prior / (1 - prior)) / (base / (1 - base))
    return odds / (1 + odds)


@pytest.mark.parametrize(("base", "prior"), [("1/2", "1/10"), ("1/10", "1/2"), ("3/7", "3/7"), ("1/1000", "999/1000")])
def test_odds_move_by_one_factor(make: Maker, base: str, prior: str) -> None:
    old, new = Fraction(base), Fraction(prior)
    expected = [float(by_odds(score, base=old, prior=new)) for score in SCORES]
    found = shifted(make({"p": [float(score) for score in SCORES]}), base=float(old), prior=float(new))
    assert found["p_shifted"] == approx(expected, rel=1e-13)


def test_the_rate_in_the_table_is_the_base(make: Maker) -> None:
    table = {"y": [1, 0, 0, 0, None], "p": [0.2, 0.6, 0.4, 0.9, 0.5], "w": [3.0, 1.0, 1.0, 1.0, 9.0]}
    plain = shifted(make(table), label="y", prior=0.5)
    assert plain["p_shifted"] == shifted(make(table), base=0.25, prior=0.5)["p_shifted"]
    weighted = shifted(make(table), label="y", weight="w", prior=0.1)  # 3 of 6
    assert weighted["p_shifted"] == shifted(make(table), base=0.5, prior=0.1)["p_shifted"]
    named = shifted(make(table), label="y", positive=0, prior=0.5)  # the other value: 3 of 4
    assert named["p_shifted"] == shifted(make(table), base=0.75, prior=0.5)["p_shifted"]


def test_certain_and_missing_scores_stay(make: Maker) -> None:
    found = shifted(make({"p": [0.0, 1.0, None, 0.5]}), base=0.5, prior=0.01)["p_shifted"]
    assert found[0] == pytest.approx(0.0, abs=1e-290)
    assert found[1:] == [1.0, None, approx(0.01)]


def test_two_shifts_are_one_and_back_is_none(make: Maker) -> None:
    table = {"p": [float(score) for score in SCORES]}
    once = shifted(make(table), base=0.5, prior=0.03)["p_shifted"]
    first = {"p": shifted(make(table), base=0.5, prior=0.8)["p_shifted"]}
    assert shifted(make(first), base=0.8, prior=0.03)["p_shifted"] == approx(once)
    assert shifted(make({"p": once}), base=0.03, prior=0.5)["p_shifted"] == approx(table["p"])


def test_logits_move_by_a_constant(make: Maker) -> None:
    found = shifted(make({"p": [0.0, 3.0, -30.0, 30.0]}), link="logit", base=0.5, prior=0.1)["p_shifted"]
    expected = [1 / (1 + math.exp(-(logit - math.log(9)))) for logit in (0.0, 3.0, -30.0, 30.0)]
    assert found == approx(expected)


@pytest.mark.parametrize("threshold", [0.5, 0.2])
def test_a_new_prior_moves_the_threshold(threshold: float) -> None:
    base, prior = Fraction(1, 2), Fraction(1, 10)
    factor = (prior / (1 - prior)) / (base / (1 - base))
    cut = threshold / (threshold + float(factor) * (1 - threshold))
    table = pl.DataFrame({"p": [cut - 1e-9, cut + 1e-9]})
    found = calframe.shift_prior(table, score="p", base=float(base), prior=float(prior))["p_shifted"]
    assert (found > threshold).to_list() == [False, True]
    if threshold == 0.5:  # r / (r + r'), with odds of 1 and 1/9
        assert cut == approx(float(Fraction(1) / (1 + Fraction(1, 9))))


PRIOR = {"a": 0.5, "b": 0.25, "c": 0.25}
BASE = {"a": 0.25, "b": 0.25, "c": 0.5}
# weights 2, 1 and 1/2: 4, 3 and 2.5 parts of 9.5
VECTOR = {"p_shifted_a": [8 / 19], "p_shifted_b": [6 / 19], "p_shifted_c": [5 / 19]}


def test_several_classes(make: Maker) -> None:
    score = {"a": "a", "b": "b", "c": "c"}
    found = shifted(make({"a": [0.2], "b": [0.3], "c": [0.5]}), score=score, prior=PRIOR, base=BASE)
    assert {name: found[name] for name in VECTOR} == {name: approx(value) for name, value in VECTOR.items()}


def test_the_shares_in_the_table_are_the_base() -> None:
    table = pl.DataFrame({"y": ["a", "b", "c", "c"], "a": [0.2] * 4, "b": [0.3] * 4, "c": [0.5] * 4})
    found = shifted(table, score={"a": "a", "b": "b", "c": "c"}, prior=PRIOR, label="y")
    assert {name: found[name][:1] for name in VECTOR} == {name: approx(value) for name, value in VECTOR.items()}


def test_a_column_of_vectors() -> None:
    found = shifted(pl.DataFrame({"p": [[0.2, 0.3, 0.5]]}), classes=["a", "b", "c"], prior=PRIOR, base=BASE)
    assert {name: found[name] for name in VECTOR} == {name: approx(value) for name, value in VECTOR.items()}


def test_two_classes_have_one_column_more() -> None:
    table = pl.DataFrame({"no": [0.5], "yes": [0.5]})
    for prior, base in ((0.1, 0.5), ({"n": 0.9, "y": 0.1}, {"n": 0.5, "y": 0.5})):
        found = shifted(table, score={"n": "no", "y": "yes"}, prior=prior, base=base)
        assert found["p_shifted"] == approx([0.1])


def test_lazy_tables_stay_lazy() -> None:
    out = calframe.shift_prior(pl.LazyFrame({"p": [0.5]}), score="p", base=0.5, prior=0.1)
    assert isinstance(out, pl.LazyFrame)
    assert out.collect_schema() == {"p": pl.Float64, "p_shifted": pl.Float64}


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"prior": 0}, ArgumentError, "prior must be a rate between 0 and 1, for example 0.1; got 0"),
        ({"prior": 10}, ArgumentError, "got 10"),
        ({"prior": True}, ArgumentError, "got True"),
        ({"prior": "a"}, ArgumentError, "got 'a'"),
        ({"base": 1.0}, ArgumentError, "base must be a rate"),
        ({"base": None}, ArgumentError, "takes base=, the rate where scores are right now, or label="),
        ({"label": "y"}, ArgumentError, "takes base="),
        ({"weight": "y"}, ArgumentError, "weight= are for the rate in the table, and base= is given"),
        ({"base": None, "label": "one"}, LabelError, "'one' has no row of some class"),
        ({"base": None, "label": "none"}, LabelError, "'none' has no row of some class"),
        ({"score": ["p", "y"]}, ArgumentError, "the scores of one model; score= names 2"),
        ({"score": "q"}, ColumnNotFoundError, "no column 'q'"),
        ({"name": "y"}, ColumnClashError, "has a column 'y' already"),
        ({"score": "big"}, ScoreError, "must lie in .0, 1.: column 'big'"),
    ],
)
def test_what_cannot_be_shifted(arguments: dict[str, Any], error: type[CalframeError], match: str) -> None:
    types = {"none": pl.Int64}
    columns = {"p": [0.2, 0.4], "y": [0, 1], "one": [1, 1], "none": [None, None], "big": [0.5, 1.5]}
    with pytest.raises(error, match=match):
        shifted(pl.DataFrame(columns, schema_overrides=types), **{"base": 0.5, "prior": 0.1, **arguments})


@pytest.mark.parametrize(
    ("prior", "match"),
    [
        (0.5, r"prior must give each of the classes \['a', 'b', 'c'\] its share; got 0.5"),
        ({"a": 0.5, "b": 0.5}, "prior must give each of the classes"),
        ({"a": 0.5, "b": 0.5, "c": 0.0}, "the shares of prior must be above 0 and add up to 1"),
        ({"a": 0.5, "b": 0.5, "c": 0.5}, "add up to 1"),
    ],
)
def test_shares_that_are_none(prior: Any, match: str) -> None:
    table = pl.DataFrame({"a": [0.2], "b": [0.3], "c": [0.5]})
    with pytest.raises(ArgumentError, match=match):
        shifted(table, score={"a": "a", "b": "b", "c": "c"}, prior=prior, base=BASE)
