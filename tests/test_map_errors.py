"""What a map cannot be applied to: one clear error in every library, and null where a score is missing."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import calframe
from calframe._errors import (
    ArgumentError,
    CalframeError,
    ColumnClashError,
    ColumnNotFoundError,
    ScoreError,
    SegmentError,
)
from tests._fitted_maps import BINARY, CLASSES, SEVERAL, binary_map, class_map, collected, fresh
from tests._map_examples import logistic, map_of, softmax
from tests._tables import Maker, approx, objects

KINDS = ("list", "array", "struct")


def refuses(make: Maker, columns: Any, found: Any, error: type[Exception], match: str, *, reads: bool = True) -> None:
    """Assert that a map is not applied: at the call, or where the values of a lazy table are read."""
    data = make(columns) if isinstance(columns, dict) else columns
    if reads and make.library == "duckdb":  # DuckDB raises errors of its own, with the same words
        relation = calframe.apply(data, found)
        with pytest.raises(duckdb.Error, match=match):
            relation.fetchall()
    elif reads and make.lazy:
        plan = calframe.apply(data, found)
        with pytest.raises(error, match=match):
            plan.collect()
    else:
        with pytest.raises(error, match=match):
            calframe.apply(data, found)


# ------------------------------------------------------------------ scores
@pytest.mark.parametrize("wrong", [-0.25, 1.5, -math.inf, math.inf, 50.0])
def test_scores_are_probabilities(make: Maker, wrong: float) -> None:
    for case in BINARY:
        columns = {"g": ["ams", "ber", None], "p": [0.5, wrong, None]}
        said = r"scores must lie in \[0, 1\]: column 'p' (runs from .*, with 1 row outside|has one outside: )"
        refuses(make, columns, binary_map(case, ("g",)), ScoreError, said)


def test_the_error_counts_rows_and_names_the_ends() -> None:
    table = pl.DataFrame({"p": [0.5, -2.0, 3.0, 0.25, None, float("nan")]})
    said = r"'p' runs from -2 to 3, with 2 rows outside\. The map was fitted on probabilities: give it those of"
    with pytest.raises(ScoreError, match=said):
        calframe.apply(table, binary_map("platt", ()))


def test_the_error_of_an_expression_is_the_same() -> None:
    with pytest.raises(ScoreError, match="column 'p' runs from 0 to 7, with 1 row outside"):
        pl.DataFrame({"p": [0.0, 7.0]}).select(binary_map("platt", ()).to_expr())


def test_rows_of_classes_are_probabilities(make: Maker) -> None:
    for case in ("identity", "matrix", "ovr_isotonic"):
        columns = {"p_a": [0.5, 1.25], "p_b": [0.25, -0.25], "p_c": [0.25, 0.0]}
        refuses(make, columns, class_map(case, ()), ScoreError, r"\[0, 1\]: column 'p_a' (runs|has one outside)")


def test_rows_of_classes_add_up_to_1(make: Maker) -> None:
    for case in ("identity", "matrix", "ovr_isotonic"):
        columns = {"p_a": [0.5, 0.5], "p_b": [0.25, 0.25], "p_c": [0.25, 0.125]}
        said = r"must add up to 1.* 'p_b', 'p_c' has (1 row where they do not, from|a row that adds up to) 0\.875"
        refuses(make, columns, class_map(case, ()), ScoreError, said)


def test_sums_may_be_off_by_what_a_narrow_type_rounds() -> None:
    # three numbers of 11 bits are each off by 2 ** -12 at most
    found = map_of(softmax(np.eye(3).tolist(), [0.0] * 3))
    table = pd.DataFrame({f"p_{name}": np.array([1 / 3], dtype=np.float16) for name in CLASSES})
    out = calframe.apply(table, found)
    assert out["p_calibrated_a"].tolist() == approx([float(np.float16(1 / 3))])
    assert abs(3 * float(np.float16(1 / 3)) - 1) > 1e-6


@pytest.mark.parametrize(
    "vector", [(math.inf, 0.0, 0.0), (1e60, 0.0, 0.0), (-1e60, 0.0, 0.0), (-math.inf, -math.inf, -math.inf)]
)
def test_logits_of_classes_can_be_worked_with(vector: tuple[float, ...]) -> None:
    table = pl.DataFrame({f"z_{name}": [0.5, value] for name, value in zip(CLASSES, vector, strict=True)})
    for case in SEVERAL:
        with pytest.raises(ScoreError, match=r"logits of a row must lie within ±1e\+50 or be -inf.* has 1 row where"):
            calframe.apply(table, class_map(case, (), "logit"))


def test_an_infinite_logit_is_certain(make: Maker) -> None:
    found = map_of(logistic((2.0, 1.0)), link="logit")
    columns = collected(calframe.apply(make({"p": [-math.inf, math.inf, 1e300, -0.5]}), found))
    assert columns["p_calibrated"] == approx([0.0, 1.0, 1.0, 0.5])  # 2 (-0.5) + 1 = 0


def test_a_class_may_be_impossible(make: Maker) -> None:
    # a logit of minus infinity is a probability of 0; the others have odds 1 : e
    columns = {"p_a": [0.0], "p_b": [1.0], "p_c": [-math.inf]}
    found = map_of(softmax(np.eye(3).tolist(), [0.0] * 3), link="logit")
    out = collected(calframe.apply(make(columns), found))
    want = [1 / (1 + math.e), math.e / (1 + math.e), 0.0]
    assert [out[f"p_calibrated_{name}"][0] for name in CLASSES] == approx(want)


@pytest.mark.parametrize("column", [["0.5", "0.25"], [[0.5], [0.25]]], ids=["text", "lists"])
def test_scores_are_numbers(make: Maker, column: list[Any]) -> None:
    said = "score column 'p' has type .*, and the map was fitted on numbers. Give the map scores of the model"
    data = pd.DataFrame({"p": column}) if make.library == "pandas[nullable]" else make({"p": column})
    refuses(make, data, binary_map("platt", ()), ScoreError, said, reads=False)


def test_dates_are_no_scores() -> None:
    for table in (pl.DataFrame({"p": [dt.date(2024, 1, 1)]}), pd.DataFrame({"p": [pd.Timestamp("2024-01-01")]})):
        with pytest.raises(ScoreError, match="score column 'p' has type "):
            calframe.apply(table, binary_map("platt", ()))


# ------------------------------------------------------------------ missing scores
@pytest.mark.parametrize("case", BINARY)
def test_a_missing_score_gives_null(make: Maker, case: str) -> None:
    for link in ("probability", "logit"):
        table = fresh(several=False, link=link)
        (score,) = (name for name in table if name in "pz")
        missing = [value is None or math.isnan(value) for value in table[score]]
        columns = collected(calframe.apply(make(table), binary_map(case, ("g", "h"), link)))
        for name in [name for name in columns if name not in table]:
            assert [value is None for value in columns[name]] == missing


@pytest.mark.parametrize("case", SEVERAL)
def test_a_missing_score_of_one_class_gives_nulls(make: Maker, case: str) -> None:
    table = fresh(several=True)
    missing = [
        any(v is None or math.isnan(v) for v in row) for row in zip(*(table[f"p_{c}"] for c in CLASSES), strict=True)
    ]
    columns = collected(calframe.apply(make(table), class_map(case, ("g",))))
    for name in CLASSES:
        assert [value is None for value in columns[f"p_calibrated_{name}"]] == missing


def test_missing_is_null_and_not_nan() -> None:
    table = pl.DataFrame({"p": [float("nan"), None, 0.5]})
    for out in (
        calframe.apply(table, binary_map("isotonic", ())),
        calframe.apply(table.lazy(), binary_map("beta", ())).collect(),
    ):
        assert out["p_calibrated"].null_count() == 2
        assert not out["p_calibrated"].is_nan().any()
    arrow = calframe.apply(table.to_arrow(), binary_map("platt", ()))
    assert arrow.column("p_calibrated").null_count == 2


# ------------------------------------------------------------------ columns
def test_a_missing_column_is_named(make: Maker) -> None:
    found = binary_map("platt", ("g",))
    said = "no column 'p', which the map takes as its score; the table has 'g'"
    refuses(make, {"g": ["a"]}, found, ColumnNotFoundError, said, reads=False)
    said = "no column 'g', which the map takes as a segment; the table has 'p'"
    refuses(make, {"p": [0.5]}, found, ColumnNotFoundError, said, reads=False)
    refuses(make, {"P": [0.5], "g": ["a"]}, found, ColumnNotFoundError, "as its score. Did you mean 'P'", reads=False)


def test_a_column_of_the_new_name_is_kept(make: Maker) -> None:
    columns = {"p": [0.5], "p_calibrated": ["mine"], "p_calibrated_low": [1]}
    said = r"has a column 'p_calibrated' already; pass another name="
    refuses(make, columns, binary_map("platt", ()), ColumnClashError, said, reads=False)
    del columns["p_calibrated"]
    said = r"has a column 'p_calibrated_low' already"
    refuses(make, columns, binary_map("venn_abers", ()), ColumnClashError, said, reads=False)
    shares = {f"p_{name}": [1 / 3] for name in CLASSES}
    said = r"has a column 'p_calibrated_b' already"
    refuses(make, shares | {"p_calibrated_b": [0]}, class_map("vector", ()), ColumnClashError, said, reads=False)


def test_the_score_is_not_overwritten(make: Maker) -> None:
    with pytest.raises(ColumnClashError, match="has a column 'p' already"):
        calframe.apply(make({"p": [0.5]}), binary_map("platt", ()), name="p")


def test_duckdb_tells_names_apart_by_more_than_case() -> None:
    relation = duckdb.connect().sql("SELECT 0.5::DOUBLE AS p, 1 AS P_Calibrated")
    with pytest.raises(ColumnClashError, match="'P_Calibrated' and 'p_calibrated' differ only by case"):
        calframe.apply(relation, binary_map("platt", ()))


@pytest.mark.parametrize(
    "keys", [[1, 2], [True, False], [dt.date(2024, 1, 1), dt.date(2024, 1, 2)], [1.5, 2.5]], ids=range(4)
)
def test_keys_of_another_type_are_refused(make: Maker, keys: list[Any]) -> None:
    column = objects(*keys) if isinstance(keys[0], dt.date) and make.library == "pandas" else keys
    said = r"segment column 'g' has type .*, and the map was fitted on text \(String\); cast it, or no segment"
    refuses(make, {"g": column, "p": [0.5, 0.5]}, binary_map("platt", ("g",)), SegmentError, said, reads=False)


KEYS = {
    "text": ["a", "b"],
    "numbers": [1, 2],
    "bool": [True, False],
    "a date": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    "times without a zone": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)],  # noqa: DTZ001
    "times with a zone": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)],
    "a time": [dt.time(1), dt.time(2)],
}


@pytest.mark.parametrize("library", ["polars", "polars[lazy]", "pyarrow", "duckdb"])
@pytest.mark.parametrize("known", KEYS)
@pytest.mark.parametrize("other", KEYS)
def test_no_two_types_of_keys_are_mixed(known: str, other: str, library: str) -> None:
    if known == other:
        return
    table = pl.DataFrame({"k": KEYS[known] * 4, "p": [0.5] * 8, "y": [0, 1] * 2 + [1, 0, 1, 1]})
    found = calframe.fit(table, label="y", score="p", by="k", method="histogram", bins=1, pooling="none")
    make = Maker(library)
    said = rf"segment column 'k' has type .*, and the map was fitted on {known} \("
    refuses(make, {"k": KEYS[other], "p": [0.5, 0.5]}, found, SegmentError, said, reads=False)


@pytest.mark.parametrize("keys", [[["a"], ["b"]], [{"a": 1}, {"a": 2}], [1, "a"], [object(), object()]])
def test_keys_of_pandas_that_are_none_are_refused(keys: list[Any]) -> None:
    with pytest.raises(SegmentError, match=r"segment column 'g' has type Object, and the map was fitted on text"):
        calframe.apply(pd.DataFrame({"g": objects(*keys), "p": 0.5}), binary_map("platt", ("g",)))


# ------------------------------------------------------------------ vectors
def vectors(kind: str, rows: list[Any]) -> pl.Series:
    if kind == "struct":
        dtype: Any = pl.Struct(dict.fromkeys(CLASSES, pl.Float64))
        return pl.Series([None if row is None else dict(zip(CLASSES, row, strict=False)) for row in rows], dtype=dtype)
    return pl.Series(rows, dtype=pl.List(pl.Float64) if kind == "list" else pl.Array(pl.Float64, 3))


def vector_table(library: str, kind: str, rows: list[Any]) -> Any:
    frame = pl.DataFrame({"p": vectors(kind, rows), "row": range(len(rows))})
    return {
        "polars": lambda: frame,
        "polars[lazy]": frame.lazy,
        "pyarrow": frame.to_arrow,
        "duckdb": lambda: duckdb.connect().from_arrow(frame.to_arrow()),
        "pandas[pyarrow]": lambda: frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
        "pandas": lambda: pd.DataFrame({"p": objects(*frame["p"].to_list()), "row": range(len(rows))}),
        "pandas[nullable]": lambda: pd.DataFrame({"p": objects(*frame["p"].to_list()), "row": range(len(rows))}),
    }[library]()


def vector_map(method: str = "matrix") -> calframe.CalibrationMap:
    rng = np.random.default_rng(8)
    shares = rng.dirichlet([2, 1, 1], 200)
    y = [CLASSES[rng.choice(3, p=share)] for share in shares]
    table = pl.DataFrame({"p": vectors("struct", shares.tolist()), "y": y})
    return calframe.fit(table, label="y", score="p", classes=list(CLASSES), method=method)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_read_in_every_library(make: Maker, kind: str) -> None:
    shares = [[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], None, [None, 0.5, 0.5], [0.2, 0.3, 0.5]]
    found = vector_map()
    spread = {f"p_{name}": [None if row is None else row[i] for row in shares] for i, name in enumerate(CLASSES)}
    columns = map_of(found.form)  # the same map, of a column for each class
    want = collected(calframe.apply(pl.DataFrame(spread), columns))
    data = vector_table(make.library, kind, shares)
    out = calframe.apply(data, found)
    assert type(out) is type(data)
    given = collected(out)
    for name in CLASSES:
        assert given[f"p_calibrated_{name}"] == approx(want[f"p_calibrated_{name}"])


@pytest.mark.parametrize("row", [[0.5, 0.5], [0.25] * 4, []], ids=["short", "long", "empty"])
def test_a_vector_has_a_number_for_each_class(make: Maker, row: list[float]) -> None:
    data = vector_table(make.library, "list", [[0.5, 0.25, 0.25], row])
    said = r"score column 'p' has (1 row|a row) without 3 numbers, one a class"
    refuses(make, data, vector_map(), ScoreError, said)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_probabilities(make: Maker, kind: str) -> None:
    data = vector_table(make.library, kind, [[0.5, 0.25, 0.25], [1.25, 0.0, -0.25]])
    refuses(make, data, vector_map(), ScoreError, r"\[0, 1\]: column 'p' (runs from|has one outside)")
    data = vector_table(make.library, kind, [[0.5, 0.25, 0.25], [0.5, 0.5, 0.5]])
    refuses(make, data, vector_map(), ScoreError, r"must add up to 1.*'p' has (1 row where|a row that adds up to 1\.5)")


def test_a_struct_has_a_field_for_each_class(make: Maker) -> None:
    frame = pl.DataFrame({"p": [{"a": 0.5, "b": 0.5}]})
    data = {
        "polars": lambda: frame,
        "polars[lazy]": frame.lazy,
        "pyarrow": frame.to_arrow,
        "duckdb": lambda: duckdb.connect().from_arrow(frame.to_arrow()),
        "pandas[pyarrow]": lambda: frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
    }.get(make.library, lambda: pd.DataFrame({"p": objects({"a": 0.5, "b": 0.5})}))()
    said = r"score column 'p' is a struct without a field 'c' \(one a class\); it has 'a', 'b'"
    refuses(make, data, vector_map(), ScoreError, said, reads=False)


def test_a_number_is_no_vector(make: Maker) -> None:
    said = "score column 'p' has type .*, and the map was fitted on vectors of 3 numbers, one a class"
    refuses(make, {"p": [0.5, 0.25]}, vector_map(), ScoreError, said, reads=False)


def test_vectors_of_text_are_refused() -> None:
    table = pl.DataFrame({"p": [["a", "b", "c"]]})
    with pytest.raises(ScoreError, match=r"column 'p' has type .*, and the map was fitted on vectors of 3 numbers"):
        calframe.apply(table, vector_map())


# ------------------------------------------------------------------ arguments
@pytest.mark.parametrize(
    "wrong", [None, "map.json", {"schema": "calframe.calibration_map"}, 1.0, calframe.CalibrationMap]
)
def test_a_map_is_a_map(wrong: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"map= takes a CalibrationMap, from calframe\.fit or calframe\.load_map; got"
    ):
        calframe.apply(pl.DataFrame({"p": [0.5]}), wrong)


@pytest.mark.parametrize("wrong", [None, [0.5], {"p": [0.5]}, np.array([0.5]), "table.csv"], ids=range(5))
def test_a_table_is_a_table(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="data must be a pandas or polars DataFrame"):
        calframe.apply(wrong, binary_map("platt", ()))


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame([[0.5, 0.25]], columns=["p", "p"])
    with pytest.raises(CalframeError, match="the table has two columns of one name"):
        calframe.apply(frame, binary_map("platt", ()))


def test_several_levels_of_names_are_refused() -> None:
    frame = pd.DataFrame([[0.5]], columns=pd.MultiIndex.from_tuples([("model", "p")]))
    with pytest.raises(CalframeError, match="the pandas frame has several levels of column names; flatten them"):
        calframe.apply(frame, binary_map("platt", ()))


@pytest.mark.parametrize("name", [None, 7, ""])
def test_the_new_name_is_text(name: Any) -> None:
    with pytest.raises(ArgumentError, match="name= takes the name of the new column; got"):
        calframe.apply(pl.DataFrame({"p": [0.5]}), binary_map("platt", ()), name=name)


def test_a_map_of_classes_is_no_single_expression() -> None:
    with pytest.raises(ArgumentError, match=r"a map of 3 classes has no single column; use \.apply\(data\)"):
        class_map("vector", ()).to_expr()


@pytest.mark.parametrize("score", ["p", 0.5, pl.Series([0.5])])
def test_the_score_of_an_expression_is_one(score: Any) -> None:
    with pytest.raises(ArgumentError, match=r"score= takes a polars expression, such as pl\.col\('p'\); got"):
        binary_map("platt", ()).to_expr(score=score)


@pytest.mark.parametrize("width", ["x", None, 0, -1, 1e9, math.nan, True])
def test_a_chart_has_a_width(width: Any) -> None:
    with pytest.raises(ArgumentError, match="width must be a number of pixels from 200 to 4,000; got"):
        binary_map("platt", ()).plot(width=width)


def test_an_expression_of_text_is_refused() -> None:
    table = pl.LazyFrame({"g": ["0.5"]})
    with pytest.raises(ScoreError, match="has type String, and the map was fitted on numbers"):
        table.select(pl.col("g").calib.apply(binary_map("platt", ()))).collect()


def test_new_columns_differ() -> None:
    found = replace(map_of(softmax(np.eye(3), np.zeros(3))), classes=(1, "1", "b"))
    table = pl.DataFrame({"p_a": [0.2], "p_b": [0.3], "p_c": [0.5]})
    with pytest.raises(ColumnClashError, match="two classes of the map make a column 'p_calibrated_1'"):
        calframe.apply(table, found)
