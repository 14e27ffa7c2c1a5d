"""What is wrong with a table of classes is said at the call, or by a lazy table when it is collected."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calframe
from calframe._errors import (
    ArgumentError,
    ColumnClashError,
    ColumnNotFoundError,
    EmptyTableError,
    LabelError,
    ScoreError,
    WeightError,
)
from tests._class_tables import CLASSES, HALF_VECTORS, HALVES, SCORE, VECTOR_KINDS, found, with_vectors
from tests._tables import Maker, approx, objects, refuses

POLARS = Maker("polars")


def wrong(make: Maker, table: Any, error: type[Exception], match: str, *, reads: bool, **arguments: Any) -> None:
    """Assert that ``metrics`` refuses a table of classes."""
    refuses(make, table, error, match, reads=reads, **{"score": SCORE, **arguments})


def place(make: Maker, row: int) -> str:
    """Return how the worst row is named where rows have an order."""
    return "" if make.library == "duckdb" else rf", worst in row {row} \(counted from 0\)"


# ---------------------------------------------------------------- vectors that are no probabilities
RULE = r"the probabilities of a row must lie in \[0, 1\] and add up to 1 within 1e-6; "
DROP = r"Correct or rescale those rows, or pass invalid='drop' to leave them out and count them\."


def test_rows_that_do_not_add_up(make: Maker) -> None:
    table = {**HALVES, "pa": [0.5, 0.25, 0.25, 0.35], "pb": [0.25, 0.5, 0.15, 0.25], "pc": [0.25, 0.25, 0.2, 0.5]}
    shown = rf"2 rows do not{place(make, 2)}: \{{'a': 0\.25, 'b': 0\.15, 'c': 0\.2\}} adds up to 0\.6\. {DROP}"
    for notion in (None, "classwise", "confidence"):
        wrong(make, table, ScoreError, RULE + shown, reads=True, notion=notion)


@pytest.mark.parametrize(("off", "fits"), [(9e-7, True), (-9e-7, True), (1.2e-6, False), (-1.2e-6, False)])
def test_rounding_is_allowed_and_nothing_else(make: Maker, off: float, fits: bool) -> None:  # noqa: FBT001
    table = {**HALVES, "pa": [0.5, 0.25, 0.25, 0.25 + off]}
    if fits:
        assert found(make(table), metrics="accuracy")["accuracy"] == [0.75]
    else:
        match = rf"{RULE}1 row does not{place(make, 3)}: .* adds up to {1 + off:.7g}\."
        wrong(make, table, ScoreError, match.replace("+", r"\+"), reads=True)


def test_percent(make: Maker) -> None:
    table = {name: values if name == "y" else [100 * p for p in values] for name, values in HALVES.items()}
    shown = rf"{RULE}4 rows do not.*: \{{'a': \d+, 'b': \d+, 'c': \d+\}} adds up to 100\. Percent\? Divide by 100\."
    wrong(make, table, ScoreError, shown, reads=True)


def test_logits(make: Maker) -> None:
    table = {**HALVES, "pa": [1.0, -2.0, 3.0, 0.0], "pb": [0.25, 0.5, -0.75, 1.5], "pc": [0.25, 0.25, 0.5, 0.5]}
    shown = rf"4 rows do not{place(make, 1)}: \{{'a': -2, 'b': 0\.5, 'c': 0\.25\}} adds up to -1\.25\. "
    wrong(make, table, ScoreError, RULE + shown + r"Logits\? Pass link='logit'\.", reads=True)


@pytest.mark.parametrize("below", [-0.2, -1e-9])
def test_a_negative_part_of_a_vector_that_adds_up(make: Maker, below: float) -> None:
    table = {**HALVES, "pa": [0.75 - below, 0.25, 0.25, 0.25], "pb": [below, 0.5, 0.25, 0.25]}
    wrong(make, table, ScoreError, rf"{RULE}1 row does not{place(make, 0)}: .*'b': {below:g}.*{DROP}", reads=True)


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_infinite_parts(make: Maker, bad: float) -> None:
    table = {**HALVES, "pb": [bad, 0.5, 0.25, 0.25]}
    wrong(make, table, ScoreError, rf"{RULE}1 row does not{place(make, 0)}: .*'b': {bad}", reads=True)


@pytest.mark.parametrize("logits", [(math.inf, 0.0, 1.0), (-math.inf, -math.inf, -math.inf), (1.0, 0.0, -1e60)])
def test_infinite_logits_that_leave_no_probabilities(make: Maker, logits: tuple[float, ...]) -> None:
    vectors = [(1.0, 0.0, 0.0), (0.0, 1.0, -math.inf), logits]
    table = {"y": ["a", "b", "c"], **dict(zip(SCORE.values(), map(list, zip(*vectors, strict=True)), strict=True))}
    match = (
        r"logits of a row must be 3 numbers, one a class, within ±1e\+50 or -inf, but not all -inf; "
        r"score 'pa', 'pb', 'pc' has 1 row where they are not\..*invalid='drop'"
    )
    wrong(make, table, ScoreError, match, reads=True, link="logit")
    values = found(make(table), link="logit", invalid="drop", metrics="accuracy")
    assert (values["n"], values["n_missing"], values["n_invalid"], values["accuracy"]) == ([2], [0], [1], [1.0])


def test_many_classes_are_shown_in_part() -> None:
    names = [f"c{i}" for i in range(12)]
    data = pl.DataFrame({"y": ["c0"], "v": [[0.5] + [0.0] * 10 + [0.25]]})
    with pytest.raises(ScoreError, match=r"1 row does not.*'c1': 0.*, …\} adds up to 0\.75") as caught:
        calframe.metrics(data, label="y", score="v", classes=names)
    assert str(caught.value).count("'c") == 5


@pytest.mark.parametrize(
    ("vector", "shown"),
    [
        ([0.0, 0.01, 0.0, 0.3, 0.0, 0.02, 0.6, 0.0], "'c6': 0.6, 'c3': 0.3, 'c5': 0.02, 'c1': 0.01, 'c0': 0, …"),
        ([0.25, 0.2, 0.15, 0.2, 0.15, 0.1, -0.05, 0.0], "'c6': -0.05, 'c0': 0.25, 'c1': 0.2, 'c3': 0.2, 'c2': 0.15, …"),
        ([0.1, 0.2, 0.0], "'c0': 0.1, 'c1': 0.2, 'c2': 0"),
    ],
    ids=["largest", "outside first", "few in their order"],
)
def test_of_many_classes_the_telling_ones_are_shown(vector: list[float], shown: str) -> None:
    data = pl.DataFrame({"y": ["c0"], "v": [vector]})
    with pytest.raises(ScoreError, match=re.escape(f"{{{shown}}} adds up to")):
        calframe.metrics(data, label="y", score="v", classes=[f"c{i}" for i in range(len(vector))])


@pytest.mark.parametrize("kind", ["list", "struct"])
def test_vectors_are_checked_too(make: Maker, kind: str) -> None:
    data = with_vectors(make, {"y": HALVES["y"]}, [*HALF_VECTORS[:3], [0.5, 0.5, 0.5]], kind=kind)
    match = rf"{RULE}1 row does not{place(make, 3)}: \{{'a': 0\.5, 'b': 0\.5, 'c': 0\.5\}} adds up to 1\.5"
    wrong(make, data, ScoreError, match, reads=True, score="v", classes=CLASSES)


def test_a_bad_row_of_weight_zero_is_no_row(make: Maker) -> None:
    table = {**HALVES, "y": ["a", "b", "c", "z"], "pa": [0.5, 0.25, 0.25, 9.0], "w": [1.0, 1.0, 1.0, 0.0]}
    values = found(make(table), weight="w", metrics="accuracy")
    assert (values["n"], values["accuracy"], values["note"]) == ([3], [1.0], ["1 row of weight 0 left out"])


def test_invalid_rows_can_be_left_out_and_are_counted(make: Maker) -> None:
    table = {
        "y": ["a", "b", "c", None, "a"],
        "pa": [0.5, 0.25, 0.75, 0.75, 0.5],
        "pb": [0.25, 0.5, 0.25, 0.75, 0.25],
        "pc": [0.25, 0.25, 0.5, 0.75, math.nan],
        "w": [1.0, 1.0, 1.0, 1.0, 1.0],
    }
    values = found(make(table), invalid="drop", metrics="accuracy", weight="w")
    assert (values["n"], values["n_missing"], values["n_invalid"], values["accuracy"]) == ([2], [2], [1], [1.0])
    table["w"] = [1.0, -1.0, 1.0, 1.0, 1.0]
    values = found(make(table), invalid="drop", metrics="accuracy", weight="w", notion="confidence")
    assert (values["n"], values["n_missing"], values["n_invalid"]) == ([1], [2], [2])
    wrong(make, table, WeightError, "1 row with a negative weight", reads=True, weight="w")


# ---------------------------------------------------------------- columns of vectors
def lists_of(make: Maker, vectors: list[Any]) -> Any:
    return with_vectors(make, {"y": HALVES["y"]}, vectors, kind="list")


@pytest.mark.parametrize("odd", [[0.5, 0.5], [], [0.25, 0.25, 0.25, 0.25]], ids=["two", "none", "four"])
def test_vectors_of_another_length(make: Maker, odd: list[float]) -> None:
    vectors = [*HALF_VECTORS[:3], odd]
    if make.library in ("pandas", "pandas[nullable]"):
        data = make({"y": HALVES["y"]}).assign(v=objects(*vectors))
    elif make.library.startswith("polars"):
        data = make({"y": HALVES["y"], "v": vectors})
    else:
        data = make({"y": HALVES["y"], "v": [list(map(float, vector)) for vector in vectors]})
    match = r"score 'v' has 1 row without 3 numbers, one a class\. Correct those rows, or pass invalid='drop'"
    wrong(make, data, ScoreError, match, reads=True, score="v", classes=CLASSES)
    values = found(data, score="v", classes=CLASSES, invalid="drop", metrics="accuracy")
    assert (values["n"], values["n_invalid"], values["accuracy"]) == ([3], [1], [1.0])


def test_a_struct_without_a_class(make: Maker) -> None:
    data = with_vectors(make, {"y": HALVES["y"]}, HALF_VECTORS, kind="struct")
    match = r"score column 'v' is a struct without a field 'd' \(one a class\); it has 'a', 'b', 'c'\."
    wrong(make, data, ScoreError, match, reads=False, score="v", classes=["a", "b", "d"])


@pytest.mark.parametrize("kind", VECTOR_KINDS)
def test_vectors_without_classes(make: Maker, kind: str) -> None:
    data = with_vectors(make, {"y": [1, 0, 1, 0]}, HALF_VECTORS, kind=kind)
    match = r"score column 'v' (holds mixed Python objects|.*; metrics and curve take vectors of .* with classes=)"
    wrong(make, data, ScoreError, match, reads=False, score="v")


@pytest.mark.parametrize("column", ["pa", "y"])
def test_classes_of_a_column_that_holds_no_vectors(make: Maker, column: str) -> None:
    table = {**HALVES, "z": HALVES["y"]}
    match = r"score column '\w+' (has type|holds).*with classes= it is a list, array or struct of one number a class\."
    wrong(make, table, ScoreError, match, reads=False, score={"y": "z"}.get(column, column), classes=CLASSES)


def test_vectors_of_text() -> None:
    data = pl.DataFrame({"y": ["a"], "v": [["x", "y", "z"]]})
    with pytest.raises(ScoreError, match=r"'v' has type List\(String\); with classes= it is a list, array or struct"):
        calframe.metrics(data, label="y", score="v", classes=CLASSES)


def test_mixed_objects_are_no_vectors() -> None:
    for column in (objects([0.5, 0.5, 0.0], {"a": 1.0}), objects(0.5, [0.5])):
        frame = pd.DataFrame({"y": ["a", "b"], "v": column})
        with pytest.raises(ScoreError, match=r"score column 'v' holds mixed Python objects; .*with classes= "):
            calframe.metrics(frame, label="y", score="v", classes=CLASSES)


# ---------------------------------------------------------------- labels
def test_a_label_that_is_no_class(make: Maker) -> None:
    match = r"label column 'y' holds 'd', 'z', which is none of the classes 'a', 'b', 'c'; name every class"
    for arguments in ({}, {"notion": "classwise"}, {"notion": "confidence"}, {"invalid": "drop"}):
        wrong(make, {**HALVES, "y": ["a", "z", "d", "z"]}, LabelError, match, reads=True, **arguments)


def test_a_number_that_is_no_class(make: Maker) -> None:
    match = r"label column 'y' holds 4, 9, which is none of the classes 1, 2, 3; name every class"
    score = dict(zip((1, 2, 3), SCORE.values(), strict=True))
    wrong(make, {**HALVES, "y": [1, 9, 4, 4]}, LabelError, match, reads=True, score=score)


def test_many_labels_that_are_no_class() -> None:
    data = POLARS({"y": [f"x{i}" for i in range(9)], "pa": [0.5] * 9, "pb": [0.5] * 9})
    with pytest.raises(LabelError, match=r"label column 'y' holds ('x\d', ){5}…, which is none of the classes"):
        calframe.metrics(data, label="y", score={"a": "pa", "b": "pb"})


def test_a_label_that_is_no_class_beside_a_missing_score(make: Maker) -> None:
    # what a label means does not depend on the scores beside it
    table = {**HALVES, "y": ["a", "b", "c", "z"], "pa": [0.5, 0.25, 0.25, None]}
    wrong(make, table, LabelError, "holds 'z', which is none of the classes", reads=True)


@pytest.mark.parametrize(
    ("labels", "classes", "match"),
    [
        ([1, 2, 3, 1], ("1", "2", "3"), r"label column 'y' holds numbers, but class '1' is not; name each class by"),
        (["1", "2", "3", "1"], (1, 2, 3), r"label column 'y' holds text, but class 1 is not; name each class by"),
        ([True, False, True, True], ("no", "yes", "x"), r"label column 'y' holds numbers, but class 'no' is not"),
        ([1, 2, 3, 1], (1, 2, None), r"label column 'y' holds numbers, but class None is not"),
    ],
)
def test_labels_of_another_type_than_the_classes(make: Maker, labels: Any, classes: Any, match: str) -> None:
    score = dict(zip(classes, SCORE.values(), strict=True))
    wrong(make, {**HALVES, "y": labels}, LabelError, match, reads=False, score=score)


def test_dates_are_no_labels(make: Maker) -> None:
    table = {**HALVES, "y": [dt.date(2026, 1, 1)] * 4}
    wrong(make, table, LabelError, r"label column 'y' (has type Date|holds mixed Python objects)", reads=False)


# ---------------------------------------------------------------- arguments
VECTOR = {"score": "v", "classes": CLASSES}
ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"score": {"a": "pa"}}, r"score= names 1 class; there are two or more"),
    ({"score": {}}, r"score= names 0 class(es)?; there are two or more"),
    ({"score": {"a": "pa", "b": "pa"}}, r"score= gives two classes one column \(\['pa', 'pa'\]\)"),
    ({"score": {"a": "pa", "b": 1}}, r"score= takes the name of a column \(a str\); got int"),
    ({"score": [SCORE]}, r"score= takes one mapping of classes; for several models of several classes call once for"),
    ({"classes": CLASSES}, r"classes= goes with one column of vectors; a mapping of score= names its classes already"),
    ({"score": ["pa", "pb"], "classes": CLASSES}, r"classes= is the list of classes of one score column .*got score="),
    ({**VECTOR, "classes": "abc"}, r"classes= is the list of classes .*classes='abc'"),
    ({**VECTOR, "classes": {"a", "b"}}, r"classes= is the list of classes .*in their order"),
    ({**VECTOR, "classes": ["a"]}, r"names 1 class; there are two or more"),
    ({**VECTOR, "classes": ["a", "b", "a"]}, r"the classes \['a', 'b', 'a'\] hold one value twice"),
    ({"positive": "a"}, r"positive='a' is for one column of probabilities; of two classes the second is the positive"),
    ({**VECTOR, "positive": "a"}, r"positive='a' is for one column of probabilities"),
    ({"notion": "all"}, r"notion must be one of 'classwise', 'confidence'; got 'all'"),
    ({"notion": "top"}, r"notion='top' is not known\. Did you mean 'confidence'\? It must be one of 'classwise'"),
    ({"metrics": "slope"}, r"metric 'slope' is about one column of scores\..*notion='classwise'.*notion='confidence'"),
    ({"metrics": ["brier", "ece"]}, r"metric 'ece' is about one column of scores\. For each class against the rest"),
    ({"metrics": "confidence_ec"}, r"metrics='confidence_ec' is not known\. Did you mean 'confidence_ece'\?"),
    ({"metrics": ["brier", "brier"]}, r"metrics= names 'brier' twice"),
    ({"metrics": "irreducible_loss"}, r"metric 'irreducible_loss' needs the true probabilities: pass posterior="),
    ({"posterior": "qa"}, r"posterior= must name 3 columns, one a class; got \['qa'\]"),
    ({"posterior": ["qa", "qb"]}, r"posterior= must name 3 columns, one a class; got \['qa', 'qb'\]"),
    ({"posterior": {"a": "qa", "b": "qb"}}, r"posterior= names the classes \['a', 'b'\], score= \['a', 'b', 'c'\]"),
    ({"posterior": {"a": "qa", "b": "qb", "d": "qc"}}, r"posterior= names the classes \['a', 'b', 'd'\]"),
    ({"posterior": {"a": "qa", "b": "qb", "c": 3}}, r"posterior= takes the name of a column \(a str\); got int"),
]


@pytest.mark.parametrize(("arguments", "match"), ARGUMENTS)
def test_arguments_that_are_not(arguments: dict[str, Any], match: str) -> None:
    table = {**HALVES, "v": HALF_VECTORS, "qa": [0.5] * 4, "qb": [0.25] * 4, "qc": [0.25] * 4}
    with pytest.raises(ArgumentError, match=match):
        calframe.metrics(POLARS(table), **{"label": "y", "score": SCORE, **arguments})


def test_arguments_of_a_binary_table_that_are_not(make: Maker) -> None:
    table = {"y": [1, 0], "p": [0.5, 0.25], "q": [0.5, 1.5]}
    match = r"notion='classwise' is for scores of several classes: give score= as a mapping"
    wrong(make, table, ArgumentError, match, reads=False, score="p", notion="classwise")
    wrong(make, table, ArgumentError, "posterior= must name 1 column", reads=False, score="p", posterior=["q", "p"])
    match = r"posterior column 'q' must lie in \[0, 1\]; 1 row outside, such as 1\.5\..*invalid='drop'"
    wrong(make, table, ScoreError, match, reads=True, score="p", posterior="q")
    values = found(make(table), score="p", posterior="q", invalid="drop", metrics="rate")
    assert (values["n"], values["n_invalid"]) == ([1], [1])


def test_two_classes_that_are_one_value(make: Maker) -> None:
    # True is 1, and 1.0 is 1: a mapping holds them as one key already, a list does not
    data = with_vectors(make, {"y": [1, 0, 1, 0]}, HALF_VECTORS, kind="list")
    match = r"the classes \[1, 0, True\] hold one value twice"
    wrong(make, data, ArgumentError, match, reads=False, score="v", classes=[1, 0, True])


def test_true_probabilities_that_do_not_add_up(make: Maker) -> None:
    table = {**HALVES, "qa": [0.5] * 4, "qb": [0.25] * 4, "qc": [0.25, 0.25, 0.75, 0.25]}
    match = (
        r"the true probabilities of a row must lie in \[0, 1\] and add up to 1 within 1e-6; 1 row does not"
        rf"{place(make, 2)}: \{{'a': 0\.5, 'b': 0\.25, 'c': 0\.75\}} adds up to 1\.5\. {DROP}"
    )
    wrong(make, table, ScoreError, match, reads=True, posterior=["qa", "qb", "qc"])


# ---------------------------------------------------------------- columns
def test_a_missing_column(make: Maker) -> None:
    wrong(make, HALVES, ColumnNotFoundError, "no column 'pd' for score=", reads=False, score={**SCORE, "d": "pd"})
    wrong(make, HALVES, ColumnNotFoundError, "no column 'q' for posterior=", reads=False, posterior=["pa", "pb", "q"])


def test_a_score_column_that_is_another_role(make: Maker) -> None:
    score = {"a": "pa", "b": "pb", "c": "y"}
    wrong(make, HALVES, ArgumentError, r"score='y' is also the label column", reads=False, score=score)


def test_scores_that_are_no_numbers(make: Maker) -> None:
    table = {**HALVES, "pb": list("wxyz")}
    wrong(make, table, ScoreError, r"score column 'pb' has type String", reads=False)


@pytest.mark.parametrize("taken", ["class", "confidence_ece", "accuracy_low"])
def test_a_segment_column_named_like_a_result_column(make: Maker, taken: str) -> None:
    match = rf"segment column '{taken}' has the name of a result column; rename it"
    wrong(make, {**HALVES, taken: list("uvuv")}, ColumnClashError, match, reads=False, by=taken)


def test_a_table_without_rows(make: Maker) -> None:
    table = {"y": np.array([], "int64"), **{name: np.array([], "float64") for name in SCORE.values()}}
    score = dict(zip((1, 2, 3), SCORE.values(), strict=True))
    for notion in (None, "classwise", "confidence"):
        wrong(make, table, EmptyTableError, "the table has no rows", reads=True, score=score, notion=notion)


# ---------------------------------------------------------------- bins
@pytest.mark.parametrize("edges", [[0.0, 0.5], [0.25, 0.5, 1.0]])
@pytest.mark.parametrize("notion", ["classwise", "confidence", None])
def test_edges_that_do_not_cover_the_scores_of_some_class(make: Maker, notion: Any, edges: list[float]) -> None:
    name = "confidence_ece" if notion is None else "ece"
    match = rf"bins as edges must reach from 0 to 1 where scores are .*; got {edges[0]:g} to {edges[-1]:g}\."
    wrong(make, HALVES, ArgumentError, match, reads=False, notion=notion, metrics=name, bins=edges)


def test_edges_that_do_not_cover_the_confidences_of_a_plain_column(make: Maker) -> None:
    table = {"y": [1, 0], "p": [0.75, 0.5]}
    for arguments in ({"notion": "confidence", "metrics": "ece"}, {"metrics": "confidence_ece"}):
        match = r"bins as edges must reach from 0 to 1"
        wrong(make, table, ArgumentError, match, reads=False, score="p", bins=[0.5, 1.0], **arguments)
    assert found(make(table), score="p", metrics="ece", bins=[0.5, 1.0])["ece"] == [0.125]


# ---------------------------------------------------------------- sums of numbers that are held less finely
def of_type(columns: dict[str, Any], dtype: str) -> dict[str, Any]:
    return {name: np.array(values, dtype) if name.startswith("p") else values for name, values in columns.items()}


@pytest.mark.parametrize("library", ["pandas", "pandas[pyarrow]", "polars", "polars[lazy]", "pyarrow"])
def test_half_precision_adds_up_as_nearly_as_it_can(library: str) -> None:
    # the halves nearest to .1, .2 and .7 add up to 1.0001220703125; three steps of 2^-10 are 0.0029
    make, table = Maker(library), {"y": ["a", "b", "c"], "pa": [0.1] * 3, "pb": [0.2] * 3, "pc": [0.7] * 3}
    if library.startswith("polars") and not hasattr(pl, "Float16"):
        pytest.skip("this polars has no half precision")
    assert found(make(of_type(table, "float16")), metrics="accuracy")["accuracy"] == [approx(1 / 3)]
    wrong(make, of_type(table, "float64") | {"pc": np.full(3, 0.70012)}, ScoreError, "within 1e-6; 3 r", reads=True)
    wrong(make, of_type(table | {"pc": [0.704] * 3}, "float16"), ScoreError, r"within 0\.0029; 3 r", reads=True)


@pytest.mark.parametrize("kind", [pl.List, lambda inner: pl.Array(inner, 20)], ids=["list", "array"])
@pytest.mark.parametrize(("inner", "fits"), [(pl.Float32, True), (pl.Float64, False)])
def test_single_precision_of_many_classes(kind: Any, inner: Any, fits: bool) -> None:  # noqa: FBT001
    # off by 2e-6: within twenty steps of 2^-23, which are 2.4e-6, but not within 1e-6
    vector = pl.Series("v", [[0.05] * 19 + [0.050002]] * 2, dtype=kind(inner))
    plan: dict[str, Any] = {"label": "y", "score": "v", "classes": list(range(20)), "metrics": "accuracy"}
    if fits:
        assert calframe.metrics(pl.DataFrame({"y": [19, 0], "v": vector}), **plan)["accuracy"].to_list() == [0.5]
    else:
        with pytest.raises(ScoreError, match="within 1e-6; 2 rows do not"):
            calframe.metrics(pl.DataFrame({"y": [19, 0], "v": vector}), **plan)


def test_true_probabilities_have_a_precision_of_their_own() -> None:
    table = {"y": ["a", "b"], "pa": [0.1] * 2, "pb": [0.2] * 2, "pc": [0.7] * 2}
    true = {f"t{name}": [value] * 2 for name, value in (("a", 0.1), ("b", 0.2), ("c", 0.70012))}
    match = "the true probabilities of a row must .* within 1e-6; 2 rows do not"
    wrong(
        Maker("pandas"), of_type(table, "float16") | true, ScoreError, match, reads=True, posterior=["ta", "tb", "tc"]
    )
