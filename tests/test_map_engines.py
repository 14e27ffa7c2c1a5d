"""A map gives one and the same column in every library; expected values are worked out by definition, row by row."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import calframe
from tests._fitted_maps import (
    BINARY,
    CLASSES,
    SEGMENTS,
    SEVERAL,
    binary_map,
    by_definition,
    class_map,
    collected,
    fresh,
)
from tests._map_examples import logistic, map_of
from tests._tables import Maker, approx, rows

PLACES = [("probability", by) for by in SEGMENTS] + [("logit", SEGMENTS[-1])]


def check(make: Maker, found: calframe.CalibrationMap, table: dict[str, list[Any]]) -> None:
    """Assert that a map adds what its definition says, at the end, and changes nothing else."""
    data = make(table)
    out = calframe.apply(data, found, name="new")
    assert type(out) is type(data)
    columns, before = collected(out), collected(data)
    added = [name for name in columns if name not in before]
    assert list(columns) == [*before, *added]
    assert {name: columns[name] for name in before} == before
    assert [columns[name] for name in added] == approx(by_definition(found, table))


@pytest.mark.parametrize(("link", "by"), PLACES, ids=["whole", "g", "g and h", "logits"])
@pytest.mark.parametrize("case", BINARY)
def test_a_binary_map_is_what_its_definition_says(make: Maker, case: str, link: str, by: tuple[str, ...]) -> None:
    check(make, binary_map(case, by, link), fresh(several=False, link=link))


@pytest.mark.parametrize(("link", "by"), PLACES, ids=["whole", "g", "g and h", "logits"])
@pytest.mark.parametrize("case", SEVERAL)
def test_a_map_of_classes_is_what_its_definition_says(make: Maker, case: str, link: str, by: tuple[str, ...]) -> None:
    check(make, class_map(case, by, link), fresh(several=True, link=link))


def test_values_by_hand(make: Maker) -> None:
    # odds p / (1 - p) to the slope, times e^intercept: 0.8 has odds 4, so 4^2 / 17 and 4 e^0 / 5; 0.5 has 1
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0), (0.5, 0.0)), segments={"a": (1, 0.0, 1.0), "b": (2, 0.0, 1.0)})
    out = calframe.apply(make({"g": ["a", "b", "c", None, "a"], "p": [0.8, 0.8, 0.8, 0.8, 0.5]}), found)
    assert collected(out)["p_calibrated"] == approx([16 / 17, 2 / 3, 0.8, 0.8, 0.5])


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("several", [False, True])
def test_a_lazy_table_is_read_by_either_engine(engine: Any, *, several: bool) -> None:
    found = class_map("matrix", ("g",)) if several else binary_map("isotonic", ("g",))
    table = fresh(several=several)
    plan = calframe.apply(pl.LazyFrame(table, strict=False), found)
    assert plan.collect(engine=engine).equals(calframe.apply(pl.DataFrame(table, strict=False), found))


def test_a_lazy_table_is_not_read_before_it_is_collected() -> None:
    read = []
    table = pl.LazyFrame({"p": [0.25]}).map_batches(lambda frame: read.append(1) or frame)
    plan = calframe.apply(table, binary_map("platt", ()))
    assert not read
    plan.collect()
    assert read


def test_a_lazy_plan_that_does_not_need_the_column_does_not_make_it() -> None:
    found = map_of(logistic((1.0, 0.0)))
    table = pl.LazyFrame({"p": [0.5, 7.0], "id": [1, 2]})  # the second score would be an error
    assert calframe.apply(table, found).select("id").collect()["id"].to_list() == [1, 2]


def test_a_lazy_plan_may_go_on() -> None:
    table = fresh(several=False)
    found = binary_map("beta", ("g",))
    whole = calframe.apply(pl.DataFrame(table, strict=False), found)
    plan = (
        calframe.apply(pl.LazyFrame(table, strict=False), found).filter(pl.col("row") % 2 == 1).select("p_calibrated")
    )
    assert plan.collect().equals(whole.filter(pl.col("row") % 2 == 1).select("p_calibrated"))


def test_a_relation_is_not_run_before_its_result_is_asked_for() -> None:
    relation = duckdb.connect().sql("SELECT CASE WHEN error('read') IS NULL THEN 0.5 ELSE 0.5 END::DOUBLE AS p")
    out = calframe.apply(relation, binary_map("platt", ()))
    assert isinstance(out, duckdb.DuckDBPyRelation)
    with pytest.raises(duckdb.InvalidInputException, match="read"):
        out.fetchall()


@pytest.mark.parametrize("kind", ["numpy", "nullable", "pyarrow"])
def test_the_index_of_pandas_stays(kind: str) -> None:
    make = Maker({"numpy": "pandas", "nullable": "pandas[nullable]", "pyarrow": "pandas[pyarrow]"}[kind])
    frame = make(fresh(several=False))
    frame.index = pd.Index([7, 7, 3, *range(9)], name="id")
    out = calframe.apply(frame, binary_map("platt", ("g", "h")))
    assert out.index.equals(frame.index)
    assert out.index.name == "id"
    pd.testing.assert_frame_equal(out[frame.columns.tolist()], frame)


def test_the_input_is_left_as_it_is(make: Maker) -> None:
    table = fresh(several=False)
    data = make(table)
    before = collected(data)
    calframe.apply(data, binary_map("platt", ("g",)))
    assert collected(data) == before
    assert "p_calibrated" not in before


def test_a_table_without_rows(make: Maker) -> None:
    if make.library == "pandas[nullable]":
        data = pd.DataFrame({"g": pd.array([], dtype="string"), "p": pd.array([], dtype="Float64")})
    else:
        data = make({"g": np.array([], dtype="str"), "p": np.array([], dtype=float)})
    for case in BINARY:
        columns = collected(calframe.apply(data, binary_map(case, ("g",))))
        assert columns["p_calibrated"] == []


def test_a_table_of_one_row(make: Maker) -> None:
    for case in BINARY:
        found = binary_map(case, ("g",))
        table = {"row": [0], "g": ["ams"], "p": [0.4]}
        columns = collected(calframe.apply(make(table), found))
        assert columns["p_calibrated"] == approx(by_definition(found, table)[0])


def test_a_table_of_missing_scores(make: Maker) -> None:
    table = {"g": ["ams", None], "p": np.array([np.nan, np.nan])}
    for case in BINARY:
        assert collected(calframe.apply(make(table), binary_map(case, ("g",))))["p_calibrated"] == [None, None]


def test_narrow_scores_are_read_as_they_are(make: Maker) -> None:
    # 0.1 as float32 is 0.100000001490116...; its odds go through a slope of 1
    found = map_of(logistic((1.0, 0.0)))
    columns = collected(calframe.apply(make({"p": np.array([0.1, 0.75], dtype=np.float32)}), found))
    assert columns["p_calibrated"] == approx([float(np.float32(0.1)), 0.75])


def test_scores_of_zeros_and_ones_may_be_whole_numbers_or_bools(make: Maker) -> None:
    found = map_of(logistic((1.0, 0.0)))
    for column in ([0, 1], [False, True]):
        columns = collected(calframe.apply(make({"p": column}), found))
        assert columns["p_calibrated"] == approx([1e-12, 1.0], rel=1e-11)


def test_three_hundred_thousand_rows_keep_their_order_in_duckdb() -> None:
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"g": rng.choice(["ams", "ber", "x"], 300_000), "p": rng.uniform(size=300_000)})
    table = table.with_row_index("row")
    relation = duckdb.connect().from_arrow(table.to_arrow())
    for case in ("platt", "isotonic"):
        found = binary_map(case, ("g",))
        out = calframe.apply(relation, found).pl()
        assert out["row"].to_list() == list(range(300_000))
        expected = calframe.apply(table, found)["p_calibrated"].to_numpy()
        np.testing.assert_allclose(out["p_calibrated"].to_numpy(), expected, rtol=0, atol=1e-12)


def test_many_classes_take_no_more_than_their_number() -> None:
    # an expression of each class from all others grows with the cube of their number and was not to be run
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(60), 400)
    names = [f"p{i}" for i in range(60)]
    table = pl.DataFrame(shares, schema=names).with_columns(y=pl.Series(rng.integers(0, 60, 400)))
    found = calframe.fit(table, label="y", score=dict(zip(range(60), names, strict=True)), method="temperature")
    (heat,) = found.form.temperature
    cooled = shares ** (1 / heat)
    out = calframe.apply(table.lazy(), found).select(pl.col("^p_calibrated_.*$")).collect().to_numpy()
    np.testing.assert_allclose(out, cooled / cooled.sum(axis=1, keepdims=True), rtol=1e-11)


def test_a_table_of_two_classes_has_the_column_of_the_second(make: Maker) -> None:
    table = {"no": [0.8, 0.4, 0.7, 0.1], "yes": [0.2, 0.6, 0.3, 0.9], "y": ["no", "yes", "no", "yes"]}
    found = calframe.fit(pl.DataFrame(table), label="y", score={"no": "no", "yes": "yes"}, method="identity")
    assert collected(calframe.apply(make(table), found))["p_calibrated"] == table["yes"]


def test_the_expression_is_that_of_apply() -> None:
    table = pl.DataFrame(fresh(several=False), strict=False)
    for case in BINARY:
        found = binary_map(case, ("g", "h"))
        assert table.select(found.to_expr()).to_series().equals(calframe.apply(table, found)["p_calibrated"])


def test_names_of_new_columns() -> None:
    table = pl.DataFrame(fresh(several=True), strict=False)
    out = calframe.apply(table, class_map("vector", ()), name="^new.*$")
    assert out.columns[-3:] == [f"^new.*$_{name}" for name in CLASSES]
    out = calframe.apply(pl.LazyFrame(fresh(several=False), strict=False), binary_map("venn_abers", ()), name="*")
    assert list(rows(out))[-3:] == ["*", "*_low", "*_high"]
