"""One clear error for what cannot be worked with: the column, the value seen, the way out; from every library."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

import calframe
from calframe._errors import (
    ArgumentError,
    CalframeError,
    ColumnClashError,
    ColumnNotFoundError,
    EmptyTableError,
    LabelError,
    ScoreError,
    SegmentError,
    WeightError,
)
from tests._tables import Maker, refuses

TABLE = {"y": [1, 0, 1, 0], "p": [0.9, 0.2, 0.6, 0.4], "w": [1.0, 2.0, 3.0, 4.0], "region": ["n", "s", "n", "s"]}
POLARS = Maker("polars")

SCORES = [
    ([90.0, 20.0, 60.0, 40.0], r"\[0, 1\]: column 'p' runs from 20 to 90, with 4 rows outside\. It looks like"),
    ([0.0, 1.0, 60.0, 100.0], r"runs from 0 to 100, with 2 rows outside\. It looks like percent: divide by 100"),
    ([-2.0, 3.0, 1.0, 0.0], r"runs from -2 to 3, with 2 rows outside\. It looks like logits: pass link='logit'"),
    ([-2.0, 0.5, 0.5, 0.0], r"column 'p' runs from -2 to 0\.5, with 1 row outside\. It looks like logits"),
    ([0.5, math.inf, 0.5, 0.5], r"column 'p' runs from 0\.5 to inf, with 1 row outside\..*invalid='drop'"),
    ([0.5, -math.inf, 0.5, 0.5], r"column 'p' runs from -inf to 0\.5, with 1 row outside\..*invalid='drop'"),
    ([1e6, 0.5, 0.5, 0.5], r"column 'p' runs from 0\.5 to 1e\+06, with 1 row outside\..*invalid='drop'"),
    ([2, 0, 1, 1], r"column 'p' runs from 0 to 2, with 1 row outside"),
    ([None, math.nan, 1.5, 0.5], r"column 'p' runs from 0\.5 to 1\.5, with 1 row outside"),
]


@pytest.mark.parametrize(("scores", "match"), SCORES)
def test_scores_outside_their_range(make: Maker, scores: list[Any], match: str) -> None:
    refuses(make, {**TABLE, "p": scores}, ScoreError, match, reads=True)


def test_a_score_just_outside_is_shown_as_it_is(make: Maker) -> None:
    # rounding to six digits would print "from 0.2 to 1" and call that percent
    scores = [0.5, 0.2, 1.0000000002, 0.5]
    refuses(make, {**TABLE, "p": scores}, ScoreError, r"from 0\.2 to 1\.0000000002, with 1 row outside", reads=True)
    with pytest.raises(ScoreError) as caught:
        calframe.metrics(POLARS({**TABLE, "p": scores}), label="y", score="p")
    assert "percent" not in str(caught.value)


def test_the_model_that_is_outside_is_named(make: Maker) -> None:
    table = {**TABLE, "q": [0.1, 0.2, 1.5, 0.4]}
    refuses(make, table, ScoreError, r"'q' runs from 0\.1 to 1\.5, with 1 row outside", reads=True, score=["p", "q"])


def test_one_bad_row_among_segments_is_found(make: Maker) -> None:
    refuses(make, {**TABLE, "p": [0.5, 0.5, 1.5, 0.5]}, ScoreError, r"1 row outside", reads=True, by="region")


@pytest.mark.parametrize(
    ("scores", "kind"),
    [(["0.1", "0.2", "0.3", "0.4"], "String"), ([dt.datetime(2026, 1, 1)] * 4, "Datetime")],  # noqa: DTZ001
)
def test_scores_that_are_no_numbers(make: Maker, scores: list[Any], kind: str) -> None:
    match = rf"score column 'p' has type {kind}.*; scores are numbers between 0 and 1\. Cast it"
    refuses(make, {**TABLE, "p": scores}, ScoreError, match, reads=False)


LABELS = [
    ([0, 1, 2, 1], None, r"label column 'y' has 3 values \(0, 1, 2\); a binary label has two"),
    ([0.0, 1.0, 0.5, 1.0], None, r"label column 'y' has 3 values \(0, 0\.5, 1\)"),
    ([0.0, 1.0, math.inf, 1.0], None, r"label column 'y' has 3 values \(0, 1, inf\)"),
    ([0, 1, -1, 1], None, r"label column 'y' has 3 values \(-1, 0, 1\)"),
    (["a", "b", "c", "a"], None, r"label column 'y' has 3 values \('a', 'b', 'c'\)"),
    (["a", "b", "c", "a"], "a", r"label column 'y' has 3 values \('a', 'b', 'c'\)"),
    ([3, 1, 2, 1], 1, r"label column 'y' has 3 values \(1, 2, 3\)"),
    ([1, 2, 1, 2], None, r"label column 'y' holds 1, 2, .* nor -1/\+1; say which value is positive, .*positive=2"),
    ([0, 2, 0, 2], None, r"label column 'y' holds 0, 2, .*say which value is positive"),
    ([0, -1, 0, -1], None, r"label column 'y' holds -1, 0, .*say which value is positive"),
    ([2, 2, 2, 2], None, r"label column 'y' holds 2, .*say which value is positive"),
    (["yes", "no", "yes", "no"], None, r"label column 'y' holds 'no', 'yes', .*positive='yes'"),
    (["1", "0", "1", "0"], None, r"label column 'y' holds '0', '1', .*positive='1'"),
    # https://github.com/scikit-learn/scikit-learn/pull/9562
    (["yes", "no", "yes", "no"], "Yes", r"positive='Yes' does not occur in label column 'y', which holds 'no', 'yes'"),
    (["no", "no", "no", "no"], "yes", r"positive='yes' does not occur in label column 'y', which holds 'no'"),
    (["yes", "no", "yes", "no"], 1, r"positive=1 does not occur in label column 'y', which holds text: 'no', 'yes'"),
    ([1, 2, 1, 2], np.float32(2.5), r"positive=2\.5 does not occur in label column 'y', which holds 1, 2; give one"),
    ([1, 2, 1, 2], 3, r"positive=3 does not occur in label column 'y', which holds 1, 2"),
    ([1, 1, 1, 1], 2, r"positive=2 does not occur in label column 'y', which holds 1"),
    ([0, 0, 0, 0], 2, r"positive=2 does not occur in label column 'y', which holds 0"),
]


@pytest.mark.parametrize(("labels", "positive", "match"), LABELS)
def test_labels_that_are_not_binary(make: Maker, labels: list[Any], positive: Any, match: str) -> None:
    refuses(make, {**TABLE, "y": labels}, LabelError, match, reads=True, positive=positive)


def test_nan_is_no_positive_value(make: Maker) -> None:
    match = r"positive=nan does not occur in label column 'y'"
    refuses(make, {**TABLE, "y": [1, 2, 1, 2]}, LabelError, match, reads=False, positive=math.nan)


def test_third_values_are_found_across_segments_and_models(make: Maker) -> None:
    # each segment alone has two values
    table = {"y": ["a", "b", "a", "c"], "p": [0.5] * 4, "q": [0.5] * 4, "g": [1, 1, 2, 2]}
    refuses(make, table, LabelError, "3 values", reads=True, by="g", score=["p", "q"], positive="a")
    table["y"] = [0, 1, 0, -1]
    refuses(make, table, LabelError, "3 values", reads=True, by="g")


@pytest.mark.parametrize(
    ("labels", "positive", "match"),
    [
        (
            [True, False, True, True],
            "yes",
            r"label column 'y' is boolean, so positive= must be True or False; got 'yes'",
        ),
        ([1, 0, 1, 1], "yes", r"positive='yes' does not occur in label column 'y', which holds numbers"),
        ([dt.datetime(2026, 1, 1)] * 4, None, r"label column 'y' has type Datetime.*; a label is bool"),  # noqa: DTZ001
    ],
)
def test_labels_whose_type_is_enough(make: Maker, labels: list[Any], positive: Any, match: str) -> None:
    refuses(make, {**TABLE, "y": labels}, LabelError, match, reads=False, positive=positive)


WEIGHTS = [
    (
        [-1.0, 1.0, -3.0, 1.0],
        {},
        r"weight column 'w' has 2 rows with a negative weight, the lowest -3;.*invalid='drop'",
    ),
    ([-math.inf, 1.0, 1.0, 1.0], {}, r"weight column 'w' has 1 row with a negative weight, the lowest -inf"),
    (
        [1e-140, 1.0, 1.0, 0.0],
        {},
        r"weights other than 0 must lie between 1e-100 and 1e\+100; column 'w' has 1 row outside, from 1e-140",
    ),
    ([1e101, 1e200, 1.0, 1.0], {}, r"column 'w' has 2 rows outside, from 1e\+101 to 1e\+200\. .*invalid='drop'"),
    ([math.inf, 1.0, 1.0, 1.0], {}, r"weight column 'w' has 1 row with an infinite weight; .*invalid='drop'"),
    (
        [1.0, 1.5, 2.0, 1.0],
        {"weight_kind": "frequency"},
        r"weight column 'w' has 1 row whose weight is no whole number, such as 1\.5.*weight_kind='importance'",
    ),
]


@pytest.mark.parametrize(("weights", "arguments", "match"), WEIGHTS)
def test_weights_that_are_not(make: Maker, weights: list[float], arguments: dict[str, str], match: str) -> None:
    refuses(make, {**TABLE, "w": weights}, WeightError, match, reads=True, weight="w", **arguments)


def test_weights_that_are_no_numbers(make: Maker) -> None:
    match = r"weight column 'region' has type String; weights are numbers of 0 or more\. Cast it"
    refuses(make, TABLE, WeightError, match, reads=False, weight="region")


MISSING = [
    ({"label": "Y"}, r"no column 'Y' for label=\. Did you mean 'y'\?.*could be the label: 'y'"),
    ({"score": "q"}, r"no column 'q' for score=; the table has 'y', 'p', 'w', 'region'.*could be the score: 'p'"),
    ({"score": ["p", "q"]}, r"no column 'q' for score="),
    ({"by": "regoin"}, r"no column 'regoin' for by=\. Did you mean 'region'\?"),
    ({"by": ["region", "q"]}, r"no column 'q' for by=.*: 'region'"),
    ({"weight": "v"}, r"no column 'v' for weight="),
    ({"by": "region, w"}, r"no column 'region, w' for by=\. Did you mean by=\['region', 'w'\]\?"),
    ({"score": "p,w"}, r"no column 'p,w' for score=\. Did you mean score=\['p', 'w'\]\?"),
    ({"by": "region,q"}, r"no column 'region,q' for by=.*'region'"),
]


@pytest.mark.parametrize(("arguments", "match"), MISSING)
def test_a_missing_column(make: Maker, arguments: dict[str, Any], match: str) -> None:
    refuses(make, TABLE, ColumnNotFoundError, match, reads=False, **arguments)


@pytest.mark.parametrize(
    "library", ["pandas", "pandas[nullable]", "pandas[pyarrow]", "polars", "polars[lazy]", "pyarrow"]
)
def test_names_that_differ_by_case_only(library: str) -> None:  # DuckDB has no such tables
    table = {**TABLE, "P": TABLE["region"], "Y": TABLE["y"]}
    match = r"columns 'p' and 'P' differ only by case, and some engines mix them up; rename"
    refuses(Maker(library), table, ColumnClashError, match, reads=False, by="P")
    assert calframe.metrics(Maker(library)(table), label="y", score="p") is not None  # unused ones do not count


@pytest.mark.parametrize("by", [None, "g"])
def test_a_table_without_rows(make: Maker, by: str | None) -> None:
    table = {"y": np.array([], "int64"), "p": np.array([], "float64"), "g": np.array([], "int64")}
    refuses(make, table, EmptyTableError, r"the table has no rows.*check the filter", reads=True, by=by)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"label": 0}, r"label= takes the name of a column \(a str\); got int"),
        ({"label": pd.Series([1, 0])}, r"label= takes the name of a column .*rows are never matched by position"),
        ({"score": pd.Series([0.5, 0.5])}, r"score= takes the name of a column .* got Series"),
        ({"score": np.array([0.5])}, r"score= takes the name of a column .* got ndarray"),
        ({"score": None}, r"score= takes the name of a column .* got NoneType"),
        ({"score": []}, r"score= is an empty list"),
        ({"score": ["p", "p"]}, r"score= names column 'p' twice"),
        ({"score": {0: "p", 1: "p"}}, r"score= gives two classes one column"),
        ({"score": {1: "p"}}, r"score= names 1 class; there are two or more"),
        ({"score": "y"}, r"score='y' is also the label column; name two different"),
        ({"score": "w", "weight": "w"}, r"score='w' is also the weight column; name two different"),
        ({"weight": "y"}, r"weight='y' is also the label column; name two different"),
        ({"weight": ["w"]}, r"weight= takes the name of a column .* got list"),
        ({"strategy": "random"}, r"strategy must be one of 'quantile', 'uniform'; got 'random'"),
        (
            {"strategy": "equal"},
            r"strategy='equal' is not known\. Did you mean 'uniform'\? It must be one of 'quantile'",
        ),
        ({"strategy": "adaptive"}, r"strategy='adaptive' is not known\. Did you mean 'quantile'\?"),
        ({"closed": "both"}, r"closed must be one of 'left', 'right'; got 'both'"),
        ({"link": "log"}, r"link='log' is not known\. Did you mean 'logit'\? It must be one of 'logit', 'probability'"),
        ({"invalid": "keep"}, r"invalid must be one of 'drop', 'raise'; got 'keep'"),
        ({"weight_kind": "x"}, r"weight_kind must be one of 'frequency', 'importance'; got 'x'"),
        ({"interval": "wald"}, r"interval must be one of 'clopper_pearson', 'jeffreys', 'wilson'; got 'wald'"),
        ({"interval": "wilson"}, r"interval='wilson' needs confidence_level=, for example 0\.95"),
        ({"confidence_level": 95}, r"confidence_level must lie between 0 and 1.*got 95\. For 95 percent pass 0\.95"),
        ({"confidence_level": 0.0}, r"confidence_level must lie between 0 and 1.*got 0\.0"),
        ({"confidence_level": 1.0}, r"confidence_level must lie between 0 and 1.*got 1\.0"),
        ({"confidence_level": math.nan}, r"confidence_level must lie between 0 and 1.*got nan"),
        ({"confidence_level": "high"}, r"confidence_level must lie between 0 and 1.*got 'high'"),
        ({"clip": 0.5}, r"clip must lie between 2e-16 and 0\.5.*got 0\.5"),
        ({"clip": 0}, r"clip must lie between 2e-16 and 0\.5.*got 0"),
        ({"clip": 1e-17}, r"clip must lie between 2e-16 and 0\.5.*got 1e-17"),  # 1 - 1e-17 is 1
        ({"clip": "tiny"}, r"clip must lie between 2e-16 and 0\.5.*got 'tiny'"),
    ],
)
def test_arguments_that_are_not(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        calframe.metrics(POLARS(TABLE), **{"label": "y", "score": "p", **arguments})


@pytest.mark.parametrize("data", [None, [1, 2], TABLE, np.zeros((2, 2)), pd.Series([1]), pl.Series([1])])
def test_data_that_is_no_table(data: Any) -> None:
    match = rf"data must be a pandas or polars DataFrame, .*; got {type(data).__name__}\."
    with pytest.raises(ArgumentError, match=match):
        calframe.metrics(data, label="y", score="p")


@pytest.mark.parametrize("error", [ColumnNotFoundError, LabelError, ScoreError, WeightError, EmptyTableError])
def test_every_error_is_a_value_error_too(error: type[Exception]) -> None:
    assert issubclass(error, CalframeError)
    assert issubclass(error, ValueError)


# ---------------------------------------------------------------- the input stays as it is
def test_the_input_is_never_changed(make: Maker) -> None:
    table = {**TABLE, "p": [0.9, None, 0.6, math.nan], "g": [2, None, 1, 2], "t": ["a", None, "b", "a"]}
    data, same = make(table), make(table)
    calframe.metrics(data, label="y", score=["p"], by=["g", "t"] if make.library != "pandas" else "t", weight="w")
    with pytest.raises(ArgumentError, match="twice"):
        calframe.metrics(data, label="y", score="p", by=["t", "t"])
    if isinstance(data, pd.DataFrame):
        assert_frame_equal(data, same)
    elif isinstance(data, duckdb.DuckDBPyRelation):
        assert str(data.fetchall()) == str(same.fetchall())
    elif isinstance(data, pa.Table):
        assert data.schema == same.schema
        assert str(data.to_pydict()) == str(same.to_pydict())
    else:
        assert data.lazy().collect().equals(same.lazy().collect())


def test_a_pandas_frame_keeps_its_objects_and_categories() -> None:
    def fresh() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "y": np.array([True, None, False], dtype=object),
                "p": np.array([0.5, pd.NA, 0.25], dtype=object),
                "g": pd.Categorical([1, None, 1], categories=[1]),
            },
            index=pd.MultiIndex.from_tuples([(0, 1), (0, 1), (1, 0)], names=["a", "b"]),
        )

    data = fresh()
    calframe.metrics(data, label="y", score="p", by="g")
    assert_frame_equal(data, fresh())


# ---------------------------------------------------------------- shapes that only pandas and Arrow have
@pytest.mark.parametrize(
    "index",
    [[0, 0, 1, 0], pd.MultiIndex.from_tuples([(0, 1), (0, 1), (1, 1), (1, 2)]), pd.Index(list("yppy"), name="y")],
    ids=["duplicates", "levels", "named like a column"],
)
def test_the_index_plays_no_part(index: Any) -> None:
    # https://github.com/pandas-dev/pandas/issues/8849; (.01 + .04 + .16 + .16) / 4
    found = calframe.metrics(pd.DataFrame(TABLE).set_axis(index), label="y", score="p", by="region", metrics="brier")
    assert found["brier"].tolist() == pytest.approx([0.085, 0.1])
    assert found.index.equals(pd.RangeIndex(2))


def test_columns_without_text_names_stand_beside() -> None:
    frame = pd.DataFrame(TABLE).assign(a=1, b=2).rename(columns={"a": 7, "b": None})
    assert calframe.metrics(frame, label="y", score="p")["n"].tolist() == [4]


@pytest.mark.parametrize("used", ["p", "z"])
@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_two_columns_of_one_name(library: str, used: str) -> None:
    names = ["y", "p", used, "z"]
    if library == "pandas":
        frame: Any = pd.DataFrame([[1, 0.5, 0.5, 1]], columns=names)
    else:
        frame = pa.table([[1], [0.5], [0.5], [1]], names=names)
    with pytest.raises(CalframeError, match=rf"two columns of one name(.|\n)*{used}(.|\n)*rename one"):
        calframe.metrics(frame, label="y", score="p")


def test_columns_of_several_levels() -> None:
    frame = pd.DataFrame({("a", "y"): [1, 0], ("a", "p"): [0.5, 0.5]})
    with pytest.raises(CalframeError, match=r"column"):
        calframe.metrics(frame, label="y", score="p")


@pytest.mark.parametrize("scores", [[0.5, "0.5", None, 0.5], [0.5, "high", None, 0.5]])
def test_numbers_among_text_are_not_guessed(scores: list[Any]) -> None:
    frame = pd.DataFrame(TABLE).assign(p=np.array(scores, dtype=object))
    with pytest.raises(ScoreError, match=r"score column 'p'.*Cast it"):
        calframe.metrics(frame, label="y", score="p")


@pytest.mark.parametrize(
    ("column", "error", "match"),
    [
        ("p", ScoreError, r"score column 'p' holds mixed Python objects; scores are .*\. Cast it to a float\."),
        ("w", WeightError, r"weight column 'w' holds mixed Python objects; weights are .*\. Cast it to a float\."),
        ("g", SegmentError, r"segment column 'g' holds mixed Python objects; a segment is .*\. Cast it first\."),
    ],
)
def test_mixed_objects_are_nothing_else(column: str, error: type[Exception], match: str) -> None:
    frame = pd.DataFrame({**TABLE, "w": 1.0, "g": "a"}).assign(
        **{column: np.array([0.5, "0", None, [1]], dtype=object)}
    )
    with pytest.raises(error, match=f"^{match}$"):
        calframe.metrics(frame, label="y", score="p", weight="w", by="g")


def test_mixed_objects_are_no_label() -> None:
    frame = pd.DataFrame(TABLE).assign(y=np.array([1, "0", None, [1]], dtype=object))
    with pytest.raises(LabelError, match=r"label column 'y' holds mixed Python objects; a label is .*\. Cast it"):
        calframe.metrics(frame, label="y", score="p")


# ---------------------------------------------------------------- types that are none of ours, by their own names
ODD = {
    "sparse": (pd.arrays.SparseArray([1, 0, 1, 0]), r"Sparse\[int64, 0\]"),
    "period": (pd.period_range("2026-01", periods=4, freq="M"), r"period\[M\]"),
    "interval": (pd.interval_range(0, 4), r"interval\[int64, right\]"),
    "complex": (np.array([0.5j] * 4), "complex128"),
}
ROLES = [
    ({"label": "v"}, LabelError, "label column 'v' has type {}; a label is bool, 0/1, -1/"),
    (
        {"score": "v"},
        ScoreError,
        "score column 'v' has type {}; scores are numbers between 0 and 1. Cast it",
    ),
    ({"weight": "v"}, WeightError, "weight column 'v' has type {}; weights are numbers of 0 or more. Cast it to a fl"),
    ({"by": "v"}, SegmentError, "segment column 'v' holds values of type {}; a segment is text, a whole number"),
    ({"posterior": "v"}, ScoreError, "posterior column 'v' has type {}; true probabilities are numbers between 0"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), ROLES, ids=[str(*arguments) for arguments, _, _ in ROLES])
@pytest.mark.parametrize("kind", ODD)
def test_columns_that_only_pandas_has(kind: str, arguments: dict[str, str], error: Any, text: str) -> None:
    values, named = ODD[kind]
    with pytest.raises(error, match=re.escape(text).replace(r"\{\}", named)):
        calframe.metrics(pd.DataFrame(TABLE).assign(v=values), **{"label": "y", "score": "p", **arguments})


def test_a_period_holds_no_vectors() -> None:
    frame = pd.DataFrame(TABLE).assign(v=ODD["period"][0])
    with pytest.raises(ScoreError, match=r"score column 'v' has type period\[M\]; with classes= it is a list, array"):
        calframe.metrics(frame, label="y", score="v", classes=[0, 1])


def test_true_probabilities_of_text(make: Maker) -> None:
    match = r"posterior column 'region' has type String; true probabilities are numbers between 0 and 1\. Cast it"
    refuses(make, TABLE, ScoreError, match, reads=False, posterior="region")


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("map(['a'], [y])", r"(?i:map)\((String|VARCHAR), (Int64|BIGINT)\)"),  # narwhals or DuckDB names it
        ("y::bit", "BIT"),
        ("uuid()", "UUID"),
        ("union_value(number := y)", r"UNION\(number BIGINT\)"),
        ("to_days(y::integer)", r"Duration\(time_unit='us'\)"),
    ],
)
def test_segments_that_duckdb_has_and_we_have_not(made: str, named: str) -> None:
    table = Maker("duckdb")(TABLE).project(f"y, p, {made} AS g")
    with pytest.raises(SegmentError, match=rf"segment column 'g' holds values of type {named}; a segment is text"):
        calframe.metrics(table, label="y", score="p", by="g")


def test_maps_of_arrow_are_no_segments() -> None:
    maps = pa.array([[("a", 1)]] * 4, type=pa.map_(pa.string(), pa.int64()))
    with pytest.raises(SegmentError, match=r"column 'g' holds values of type [Mm]ap[(<][Ss]tring, [Ii]nt64[)>]; a seg"):
        calframe.metrics(pa.table({**TABLE, "g": maps}), label="y", score="p", by="g")


# ---------------------------------------------------------------- a plan that is broken before it comes to us
@pytest.mark.parametrize("verb", [calframe.metrics, calframe.curve, calframe.report])
def test_a_broken_plan_is_refused_by_polars(verb: Any) -> None:
    plan = pl.LazyFrame(TABLE).with_columns(z=pl.col("nope") + 1)
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="nope"):
        verb(plan, label="y", score="p")


@pytest.mark.parametrize("verb", [calframe.curve, calframe.report])
def test_a_plan_that_fails_on_its_values_is_refused_by_polars(verb: Any) -> None:
    plan = pl.LazyFrame(TABLE).with_columns(pl.col("region").cast(pl.Int64))
    with pytest.raises(pl.exceptions.InvalidOperationError, match="conversion from `str` to `i64` failed"):
        verb(plan, label="y", score="p", by="region")


@pytest.mark.parametrize("value", ["x", 1, None])
def test_ecce_is_a_flag(value: Any) -> None:
    table = pl.DataFrame({"y": [0, 1], "p": [0.2, 0.8], "g": ["a", "b"]})
    with pytest.raises(calframe.ArgumentError, match="ecce must be True or False; got"):
        calframe.audit(table, label="y", score="p", by="g", ecce=value)


def test_a_broken_cluster_is_not_called_a_segment() -> None:
    table = pl.DataFrame({"y": [0, 1], "p": [0.2, 0.8], "g": ["a", "b"], "c": [1.5, 2.0]})
    with pytest.raises(calframe.CalframeError, match=r"cluster column 'c' is a float .* Cast it to Int64"):
        calframe.audit(table, label="y", score="p", by="g", cluster="c")


def test_a_zone_may_be_given_as_an_object() -> None:
    times = pl.datetime_range(dt.date(2024, 1, 1), dt.date(2024, 3, 1), "12h", eager=True)
    table = pl.DataFrame({"t": times}).with_columns(y=pl.int_range(pl.len()) % 2, p=0.5)
    named, given = (
        calframe.drift(table, label="y", score="p", time="t", every="1mo", time_zone=zone)
        for zone in ("Europe/Paris", ZoneInfo("Europe/Paris"))
    )
    assert given.to_dict() == named.to_dict()
