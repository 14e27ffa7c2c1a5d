"""Metrics of one's own: means and functions of sums, with everything that shipped ones have."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from scipy import stats

import calframe
from calframe._errors import ArgumentError, ColumnClashError
from calframe._measures import METRICS, _own
from tests._class_tables import SCORE, found, same
from tests._tables import Maker, approx, column, measure, refuses, rows

POLARS = Maker("polars")
EXAMPLES = Path(__file__).parent.parent / "examples"
TABLE: dict[str, Any] = {
    "g": ["a", "b", "a", "b", "a"],
    "y": [1, 0, 0, 1, 1],
    "p": [0.75, 0.5, 0.25, 0.875, 0.5],
    "q": [1.0, 0.5, 0.0, 0.5, 0.25],
    "w": [1.0, 2.0, 3.0, 2.0, 1.0],
}


def absolute_error(**about: Any) -> None:
    """Register the mean absolute error."""
    calframe.register_metric(
        "absolute_error", lambda row: (row.score - row.label).abs(), summary="mean absolute error", **about
    )


def precision(**about: Any) -> None:
    """Register the share of positives among the rows that a threshold of one half lets through."""

    def taken(row: Any) -> Any:
        return nw.when(row.score >= 0.5).then(1.0).otherwise(0.0)

    calframe.register_metric(
        "precision",
        terms={"taken": taken, "right": lambda row: taken(row) * row.label},
        value=lambda sums: sums["right"] / sums["taken"],
        summary="share of positives above one half",
        undefined="nothing above one half",
        **about,
    )


# ---------------------------------------------------------------- values
def test_a_mean_of_rows(make: Maker) -> None:
    absolute_error(low=0, high=1, direction="lower")
    # a: (.25 + .25 + .5) / 3, b: (.5 + .125) / 2
    result = calframe.metrics(make(TABLE), label="y", score="p", by="g", metrics=["brier", "absolute_error"])
    values = rows(result)
    assert list(values) == ["g", "n", "n_missing", "brier", "absolute_error", "note"]
    assert values["absolute_error"] == approx([1 / 3, 0.3125])
    assert isinstance(result, pl.LazyFrame if make.lazy else make.result)


def test_a_function_of_sums(make: Maker) -> None:
    precision()
    # .75, .5, .875 and .5 are taken: 3 of 4; in a 2 of 2, in b 1 of 2
    assert column(measure(make, TABLE, metrics="precision"), "precision") == [0.75]
    assert column(measure(make, TABLE, metrics="precision", by="g"), "precision") == [1.0, 0.5]


@pytest.mark.parametrize("kind", ["importance", "frequency"])
def test_weights_count_rows(make: Maker, kind: Any) -> None:
    absolute_error()
    precision()
    values = rows(measure(make, TABLE, metrics=["absolute_error", "precision"], weight="w", weight_kind=kind))
    # errors .25, .5, .25, .125, .5 at weights 1, 2, 3, 2, 1; of weight 6 above one half 4 is positive
    assert (values["absolute_error"], values["precision"]) == (approx([2.75 / 9]), approx([4 / 6]))


def test_several_models(make: Maker) -> None:
    absolute_error()
    values = found(make(TABLE), score=["p", "q"], metrics="absolute_error")
    same(values, {"model": ["p", "q"], "absolute_error": [1.625 / 5, (0 + 0.5 + 0 + 0.5 + 0.75) / 5]})


def test_logits_are_probabilities_to_it(make: Maker) -> None:
    absolute_error()
    calframe.register_metric("chance", lambda row: row.chance, summary="probability of what happened")
    table = {"y": [1, 0], "p": [math.log(3), 0.0]}  # 3/4 and 1/2
    values = found(make(table), score="p", link="logit", metrics=["absolute_error", "chance"])
    same(values, {"absolute_error": [0.375], "chance": [0.625]})


def test_each_class_and_the_largest_score(make: Maker) -> None:
    absolute_error()
    table = {"y": ["a", "c"], "pa": [0.5, 0.25], "pb": [0.25, 0.5], "pc": [0.25, 0.25]}
    values = found(make(table), notion="classwise", metrics="absolute_error")
    same(values, {"class": ["a", "b", "c"], "absolute_error": [0.375, 0.375, 0.5]})
    same(found(make(table), notion="confidence", metrics="absolute_error"), {"absolute_error": [0.5]})
    match = r"metric 'absolute_error' is about one column of scores\. For each class .*notion='classwise'"
    refuses(make, table, ArgumentError, match, reads=False, score=SCORE, metrics="absolute_error")


def test_beside_bins_and_distinct_scores(make: Maker) -> None:
    absolute_error()
    names = ["absolute_error", "ece", "auc", "confidence_ece"]
    for arguments in ({"bins": 4}, {"bins": 2, "strategy": "quantile"}):
        values = rows(measure(make, TABLE, metrics=names, **arguments))
        alone = rows(measure(make, TABLE, metrics=names[1:], **arguments))
        same(values, {"absolute_error": [0.325], **{name: alone[name] for name in names[1:]}})


def test_all_has_it_last() -> None:
    absolute_error()
    plain = [name for name, metric in METRICS.items() if not metric.posterior]
    assert measure(POLARS, TABLE, metrics="all").columns == ["n", "n_missing", *plain, "absolute_error", "note"]


# ---------------------------------------------------------------- rows that are not used, values that are none
def test_rows_that_are_not_used_do_not_count_whatever_the_function_says_of_them(make: Maker) -> None:
    # ln 0 is what it says of an empty row
    calframe.register_metric("log_score", lambda row: row.score.log(), summary="mean log of the score")
    table = {"y": [1, None, 0, 1], "p": [0.5, 0.5, None, 0.25], "w": [1.0, 1.0, 1.0, 0.0]}
    assert column(measure(make, table, metrics="log_score", weight="w"), "log_score") == approx([math.log(0.5)])


@pytest.mark.parametrize("what", ["null", "NaN"])
def test_a_row_without_a_value_leaves_its_segment_without_one(make: Maker, what: str) -> None:
    def half(row: Any) -> Any:
        chosen = nw.when(row.score > 0.5).then(row.label)
        return chosen if what == "null" else chosen.otherwise(float("nan"))

    calframe.register_metric("half", half, summary="labels above one half", undefined="scores of one half or less")
    values = rows(measure(make, {**TABLE, "p": [0.75, 0.5, 0.625, 0.875, 1.0]}, by="g", metrics="half"))
    assert (values["half"], values["note"]) == ([approx(2 / 3), None], [None, "half: scores of one half or less"])


def test_truth_values_are_numbers(make: Maker) -> None:
    calframe.register_metric("sure", lambda row: row.score > 0.5, summary="share of scores above one half")
    assert column(measure(make, TABLE, metrics="sure"), "sure") == [0.4]


def test_what_is_undefined_is_null_and_the_note_says_why(make: Maker) -> None:
    precision()
    values = rows(measure(make, {**TABLE, "p": [0.75, 0.25, 0.25, 0.0, 0.25]}, by="g", metrics="precision"))
    assert (values["precision"], values["note"]) == ([1.0, None], [None, "precision: nothing above one half"])
    values = rows(measure(make, {"y": [1], "p": [None]}, metrics="precision", confidence_level=0.9))
    assert (values["precision"], values["precision_low"], values["note"]) == ([None], [None], ["no usable rows"])


def test_an_infinite_value_is_no_impossible_row(make: Maker) -> None:
    # the warning that a log loss is infinite is about something else
    def value(sums: Any) -> Any:
        return np.where(sums["s"] > 0, math.inf, 0.0)

    calframe.register_metric("endless", terms={"s": lambda row: row.score}, value=value, summary="infinity")
    assert column(measure(make, TABLE, metrics=["endless", "log_loss"]), "endless") == [math.inf]


# ---------------------------------------------------------------- intervals
def test_the_interval_of_a_mean_is_the_textbook_one(make: Maker) -> None:
    absolute_error()
    values = rows(measure(make, TABLE, metrics="absolute_error", confidence_level=0.9))
    errors = np.array([0.25, 0.5, 0.25, 0.125, 0.5])
    half = stats.norm.ppf(0.95) * stats.sem(errors)  # scipy
    ends = [values[f"absolute_error_{end}"][0] for end in ("low", "high")]
    assert ends == approx([float(errors.mean() - half), float(errors.mean() + half)], rel=1e-7)


def test_the_interval_of_a_weighted_mean(make: Maker) -> None:
    absolute_error()
    arguments: dict[str, Any] = {"metrics": "absolute_error", "confidence_level": 0.9, "weight": "w"}
    errors, weight = np.array([0.25, 0.5, 0.25, 0.125, 0.5]), np.array(TABLE["w"])
    mean, n = np.average(errors, weights=weight), weight.sum() ** 2 / (weight**2).sum()
    variance = (weight**2 * (errors - mean) ** 2).sum() / weight.sum() ** 2 * n / (n - 1)
    half = stats.norm.ppf(0.95) * math.sqrt(variance)
    values = rows(measure(make, TABLE, **arguments))
    ends = [values[f"absolute_error_{end}"][0] for end in ("low", "high")]
    assert ends == approx([float(mean - half), float(mean + half)], rel=1e-7)
    repeated = np.repeat(errors, weight.astype(int))
    half = stats.norm.ppf(0.95) * stats.sem(repeated)
    values = rows(measure(make, TABLE, weight_kind="frequency", **arguments))
    ends = [values[f"absolute_error_{end}"][0] for end in ("low", "high")]
    assert ends == approx([float(mean - half), float(mean + half)], rel=1e-7)


def test_the_interval_of_a_ratio_is_that_of_the_rows_it_is_about(make: Maker) -> None:
    # the delta method of right / taken over all n rows: p (1 - p) / taken, times n / (n - 1)
    precision(low=0, high=1)
    values = rows(measure(make, TABLE, metrics="precision", confidence_level=0.5))
    half = stats.norm.ppf(0.75) * math.sqrt(0.75 * 0.25 / 4 * 5 / 4)
    assert values["precision_low"] == approx([0.75 - half], rel=1e-6)
    assert values["precision_high"] == approx([0.75 + half], rel=1e-6)


def test_intervals_are_cut_to_the_range(make: Maker) -> None:
    absolute_error(low=0.25, high=0.375)
    values = rows(measure(make, TABLE, metrics="absolute_error", confidence_level=0.99))
    assert (values["absolute_error_low"], values["absolute_error_high"]) == ([0.25], [0.375])


def test_one_row_has_no_interval(make: Maker) -> None:
    absolute_error()
    values = rows(measure(make, {"y": [1], "p": [0.75]}, metrics="absolute_error", confidence_level=0.9))
    assert (values["absolute_error"], values["absolute_error_low"]) == ([0.25], [None])


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    # a score s is uniform and right: E|s - y| = 2 E s (1 - s) = 1/3; among scores above 1/2 the rate is 3/4
    absolute_error()
    precision()
    rng = np.random.default_rng(12)
    n, segments = 200, 1500
    score = rng.random(n * segments)
    table = {"g": np.repeat(np.arange(segments), n), "y": (rng.random(n * segments) < score).astype(int), "p": score}
    values = measure(POLARS, table, by="g", metrics=["absolute_error", "precision"], confidence_level=0.9)
    for name, truth in (("absolute_error", 1 / 3), ("precision", 3 / 4)):
        held = ((values[f"{name}_low"] <= truth) & (truth <= values[f"{name}_high"])).mean()
        assert abs(held - 0.9) < 0.03  # four standard errors of 1,500 segments


# ---------------------------------------------------------------- names
@pytest.mark.parametrize("taken", ["ece", "brier", "full_ece", "confidence_ece"])
def test_shipped_metrics_keep_their_names(taken: str) -> None:
    for replace in (False, True):
        with pytest.raises(ArgumentError, match=f"'{taken}' is the name of a metric that ships with calframe"):
            calframe.register_metric(taken, lambda row: row.score, summary="x", replace=replace)


@pytest.mark.parametrize("taken", ["n", "n_missing", "note", "model", "class", "weight_sum", "gap_low", "all"])
def test_other_columns_keep_their_names(taken: str) -> None:
    with pytest.raises(ArgumentError, match=f"'{taken}' has a meaning of its own in results"):
        calframe.register_metric(taken, lambda row: row.score, summary="x")


def test_the_ends_of_one_metric_are_no_other_metric() -> None:
    absolute_error()
    with pytest.raises(ArgumentError, match="'absolute_error_low' has a meaning of its own"):
        calframe.register_metric("absolute_error_low", lambda row: row.score, summary="x")
    calframe.register_metric("mean_low", lambda row: row.score, summary="x")
    with pytest.raises(ArgumentError, match="'mean' has a meaning of its own"):
        calframe.register_metric("mean", lambda row: row.score, summary="x")


@pytest.mark.parametrize(
    ("name", "taken"),
    [("N", "n"), ("Rate", "rate"), ("Gap_Low", "gap_low"), ("ALL", "all"), ("Absolute_error", "absolute_error")],
)
def test_a_name_is_not_told_from_another_by_case_alone(name: str, taken: str) -> None:
    absolute_error()
    with pytest.raises(ArgumentError, match=f"'{name}' would make a name that differs from '{taken}' only by case"):
        calframe.register_metric(name, lambda row: row.score, summary="x")


@pytest.mark.parametrize("name", ["", "two words", "a-b", "class", "1st", 7, None, ["a"]])
def test_names_that_are_none(name: Any) -> None:
    with pytest.raises(ArgumentError, match=r"(name must be a name as of a column|has a meaning of its own)"):
        calframe.register_metric(name, lambda row: row.score, summary="x")


def test_a_name_is_taken_until_it_is_replaced(make: Maker) -> None:
    absolute_error()
    with pytest.raises(ArgumentError, match="'absolute_error' has been registered already; pass replace=True"):
        absolute_error()
    calframe.register_metric("absolute_error", lambda row: row.score * 0.0 + 7.0, summary="seven", replace=True)
    assert column(measure(make, TABLE, metrics="absolute_error"), "absolute_error") == approx([7.0])


def test_a_plan_keeps_the_metric_it_was_made_with() -> None:
    absolute_error()
    plan = calframe.metrics(pl.LazyFrame(TABLE), label="y", score="p", metrics="absolute_error")
    calframe.register_metric("absolute_error", lambda row: row.score * 0.0 + 7.0, summary="seven", replace=True)
    assert column(plan, "absolute_error") == approx([0.325])


def test_its_name_is_no_segment_any_more(make: Maker) -> None:
    table = {**TABLE, "absolute_error": TABLE["g"]}
    assert column(measure(make, table, by="absolute_error", metrics="rate"), "absolute_error") == ["a", "b"]
    absolute_error()
    match = "segment column 'absolute_error' has the name of a result column"
    refuses(make, table, ColumnClashError, match, reads=False, by="absolute_error", metrics="rate")


def test_a_metric_that_nobody_registered() -> None:
    absolute_error()
    with pytest.raises(ArgumentError, match=r"'absolute_eror' is not known\. Did you mean 'absolute_error'\?"):
        measure(POLARS, TABLE, metrics="absolute_eror")


# ---------------------------------------------------------------- functions that are none
def score_of(row: Any) -> Any:
    return row.score


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, r"give either row, .* or terms and value together"),
    ({"row": score_of, "terms": {"s": score_of}, "value": lambda sums: sums["s"]}, r"give either row"),
    ({"terms": {"s": score_of}}, r"give either row"),
    ({"terms": {}, "value": lambda sums: sums["weight"]}, r"give either row"),
    ({"value": lambda sums: sums["weight"]}, r"give either row"),
    ({"row": 0.5}, r"'row' must be a function of a row, such as lambda row: .*got 0\.5"),
    ({"row": lambda row: 0.5}, r"'row' must give an expression made of row\.score, .*got float"),  # noqa: ARG005
    ({"row": lambda row: nw.col("p")}, r"'row' cannot be computed \(.*\); it is given row\.score, row\.label and row"),  # noqa: ARG005
    ({"row": lambda row: abs(row.score - row.label)}, r"'row' cannot be computed \(TypeError: .*such as \.abs\(\)"),
    (
        {"row": lambda row: row.carrier},
        r"AttributeError: .*'carrier'\); it is given row\.score, row\.label and row\.ch",
    ),
    (
        {"row": lambda row: max(row.score, row.label)},
        r"'row' cannot be computed \(TypeError: .*not abs\(\.\.\.\) or if",
    ),
    (
        {"terms": {"s": score_of}, "value": lambda sums: sums["t"]},
        r"\(KeyError: 't'\); .* the sums 'weight', 's', which",
    ),
    ({"terms": {"s": score_of}, "value": lambda sums: sums.s}, r"'value' cannot .*\(AttributeError: .*as in sums\['we"),
    ({"row": lambda row: row.score.mean()}, r"'row' must say of each row what it says of that row alone"),
    ({"row": lambda row: row.score.rank()}, r"'row' must say of each row what it says of that row alone"),
    ({"row": lambda row: row.score.shift(1)}, r"'row' must say of each row what it says of that row alone"),
    ({"terms": [score_of], "value": lambda sums: sums["s"]}, r"terms must be a dict of functions by name"),
    ({"terms": {"s": score_of}, "value": "s"}, r"terms must be a dict .*, and value a function; got .* and 's'"),
    ({"terms": {"s": "score"}, "value": lambda sums: sums["s"]}, r"'s' must be a function of a row.*got 'score'"),
    ({"terms": {"weight": score_of}, "value": lambda sums: sums["weight"]}, r"a term cannot be called 'weight'"),
    ({"terms": {"s": score_of}, "value": lambda sums: sums["s"][:2]}, r"value must give an array of one number a"),
    ({"terms": {"s": score_of}, "value": lambda sums: 0.5}, r"of one number a segment; of 5 segments it made 0\.5\."),  # noqa: ARG005
    ({"row": lambda row: row.score.cast(nw.String)}, r"'row' must give a number or a truth value .* of type String"),
    ({"terms": {"s": score_of}, "value": lambda sums: "much"}, r"value must give an array of one number a"),  # noqa: ARG005
    ({"terms": {"s": score_of}, "value": lambda sums: sums["s"]}, r"value must not change when all weights are doubl"),
    ({"row": score_of, "low": 1, "high": 0}, r"low and high must be numbers, low below high; got 1 and 0"),
    ({"row": score_of, "low": "0"}, r"low and high must be numbers, low below high; got '0'"),
    ({"row": score_of, "high": math.nan}, r"low and high must be numbers, low below high"),
    ({"row": score_of, "direction": "down"}, r"direction must be one of .*got 'down'"),
]


@pytest.mark.parametrize(("arguments", "match"), WRONG)
def test_functions_that_are_not(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        calframe.register_metric("mine", summary="x", **arguments)
    assert not _own.own_metrics()


def test_what_a_function_raises_is_the_cause() -> None:
    with pytest.raises(ArgumentError, match="ZeroDivisionError") as caught:
        calframe.register_metric("mine", lambda row: row.score * (1 / 0), summary="x")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# ---------------------------------------------------------------- the example
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "own_metric.py"))
    assert "cost_low" in capsys.readouterr().out
    # what it prints, by hand: threshold 1/6, 5 for a miss, 1 for an alarm without cause
    flights = calframe.demo_table()
    alarm, late = flights["p_gbm"].to_numpy() >= 1 / 6, flights["y"].to_numpy() == 1
    cost = np.where(alarm & ~late, 1.0, 0.0) + np.where(~alarm & late, 5.0, 0.0)
    values = calframe.metrics(flights, label="y", score="p_gbm", metrics="cost")
    assert values["cost"].to_list() == approx([float(cost.mean())])
