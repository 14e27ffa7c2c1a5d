"""Dialects of SQL: what each writes in its own way, and what it cannot."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import polars as pl
import pytest
import sqlglot
from sqlglot import exp

import calframe
from calframe._errors import ArgumentError, ColumnClashError
from calframe._maps._dialects import DIALECTS, Writer
from tests._fitted_maps import BINARY, SEVERAL, binary_map, class_map
from tests._map_examples import logistic, map_of
from tests._sql_engines import HOSTILE, parsed, run_lite
from tests._tables import approx

WITHOUT_LATERAL = ("clickhouse", "redshift")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_be_read_back(dialect: str) -> None:
    found = [binary_map(case, by) for case in BINARY for by in ((), ("g",)) if case != "venn_abers"]
    if dialect not in WITHOUT_LATERAL:
        found += [binary_map("venn_abers", ("g",)), *(class_map(case, ()) for case in SEVERAL)]
    for each in found:
        statement = parsed(each.to_sql(dialect, name="new"), dialect)
        assert statement.expressions[1].alias.startswith("new")


@pytest.mark.parametrize("dialect", WITHOUT_LATERAL)
def test_what_needs_lateral_is_refused_where_there_is_none(dialect: str) -> None:
    for found in (binary_map("venn_abers", ()), class_map("temperature", ("g",))):
        said = f"dialect='{dialect}' has no LATERAL subqueries, which a map of method '{found.method}' needs; use"
        with pytest.raises(ArgumentError, match=re.escape(said)) as caught:
            found.to_sql(dialect)
        assert str(caught.value).endswith(
            ": athena, bigquery, databricks, duckdb, mysql, oracle, postgres, presto, snowflake, spark, sqlite, trino, "
            "tsql."
        )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_name_but_that_of_the_table_is_quoted(dialect: str) -> None:
    # unquoted ones are folded to capitals by some, may not begin with _ in Oracle, and may be words of the language
    text = binary_map("isotonic", ("g",)).to_sql(dialect, table="flights")
    others = {"flights", "DUAL", "_values"}  # the last is what sqlglot calls VALUES without a name
    names = [name for name in parsed(text, dialect).find_all(exp.Identifier) if name.name not in others]
    assert {"_cf_t", "_cf_segment", "p", "g", "curve", "p_calibrated"} <= {name.name for name in names}
    assert all(name.quoted for name in names)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_small_tables_are_those_of_the_dialect(dialect: str) -> None:
    text = map_of(logistic((1.0, 0.0), (2.0, 0.0)), segments={"a": (1, 0.0, 1.0), "b": (0, 0.0, 1.0)}).to_sql(dialect)
    forms = {
        "bigquery": "UNNEST([STRUCT(0 AS `curve`, CAST(1.0e0 AS FLOAT64) AS `v0`, CAST(0.0e0 AS FLOAT64) AS `v1`), ",
        "clickhouse": ' AS "v1" UNION ALL SELECT 1, 2.0e0, 0.0e0) AS "_cf_curve1" ON ',
        "duckdb": '(SELECT UNNEST([\'a\']) AS "k0", UNNEST(CAST(\'[1]\' AS BIGINT[])) AS "curve") AS "_cf_segment" ON ',
        "mysql": " AS `v1` UNION ALL SELECT 1, 2.0e0, 0.0e0) AS `_cf_curve1` ON ",
        "oracle": ' AS "v1" FROM DUAL UNION ALL SELECT 1, 2.0e0d, 0.0e0d FROM DUAL) "_cf_curve1" ON ',
        "redshift": '(SELECT CAST(\'a\' AS VARCHAR(65535)) AS "k0", 1 AS "curve") AS "_cf_segment" ON ',
        "sqlite": '(WITH "_cf_segment"("k0", "curve") AS (VALUES (\'a\', 1)) SELECT * FROM "_cf_segment") AS ',
        "databricks": "(VALUES ('a', 1)) AS `_cf_segment`(`k0`, `curve`) ON ",
        "spark": "(VALUES ('a', 1)) AS `_cf_segment`(`k0`, `curve`) ON ",
        "tsql": "(VALUES (N'a', 1)) AS [_cf_segment]([k0], [curve]) ON ",
    }
    assert forms.get(dialect, '(VALUES (\'a\', 1)) AS "_cf_segment"("k0", "curve") ON ') in text


def test_numbers_of_oracle_are_binary_doubles() -> None:
    # its decimals end at 1e126, and EXP(700) and the outer pieces lie beyond
    text = binary_map("isotonic", ("g",)).to_sql("oracle")
    assert re.findall(r"-?\d[\d.]*e[-+]?\d+(?!\d)(?!d)", text) == []
    assert "-1e+300d" in text
    assert "DOUBLE PRECISION" not in text
    assert " AS _cf" not in text
    assert ' AS "_cf' not in text
    assert "FROM DUAL UNION ALL SELECT" in text


def test_numbers_of_snowflake_are_cast_each() -> None:
    # without it they are decimals, and those of a column must have one scale
    text = map_of(logistic((1.0, 0.25), (1e-17, 1e17)), segments={"a": (1, 0.0, 1.0)}).to_sql("snowflake")
    assert "(1, CAST(1e-17 AS DOUBLE), CAST(1e+17 AS DOUBLE))) AS" in text


def test_texts_are_compared_by_bytes_where_equal_texts_may_differ() -> None:
    # 'A' = 'a' in MySQL and SQL Server: the row of one would be that of both
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0)), segments={"a": (1, 0.0, 1.0)})
    assert "AND CAST(CONVERT(`_cf_t`.`g` USING utf8mb4) AS BINARY) = CAST(CONVERT(" in found.to_sql("mysql")
    text = found.to_sql("tsql")
    assert "AND CAST(CAST([_cf_t].[g] AS NVARCHAR(4000)) AS VARBINARY(8000)) = CAST(CAST(" in text
    assert "VALUES (N'a', 1)" in text
    numbers = map_of(logistic((1.0, 0.0), (2.0, 0.0)), segments={1: (1, 0.0, 1.0)})
    assert "BINARY" not in numbers.to_sql("mysql") + numbers.to_sql("tsql")


KEYS: dict[str, list[Any]] = {
    "case": ["a", "A"],
    "accents": ["é", "e"],
    "bools": [True, False],
    "whole numbers": [7, -3],
    "dates": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    "times": [dt.datetime(2024, 1, 1, 2, 3, 4), dt.datetime(2024, 1, 1)],  # noqa: DTZ001
    "times of day": [dt.time(1, 2, 3), dt.time(2)],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_sqlite(kind: str) -> None:
    # odds 3 to the power 2 and 3; dates and times are texts there
    first, second = KEYS[kind]
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0), (3.0, 0.0)), segments={first: (1, 0.0, 1.0), second: (2, 0.0, 1.0)})
    written = [value if isinstance(value, str | int) else str(value) for value in (first, second)]
    out = run_lite(found, {"row": [0, 1, 2], "g": [*written, None], "p": [0.75] * 3})
    assert out["p_calibrated"] == approx([0.9, 27 / 28, 0.75])


@pytest.mark.parametrize("dialect", ["clickhouse", "databricks", "oracle", "spark"])
def test_a_time_of_day_is_refused_where_there_is_no_such_type(dialect: str) -> None:
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0)), segments={dt.time(1): (1, 0.0, 1.0)})
    with pytest.raises(ArgumentError, match=f"a key of type time cannot be written in SQL for {dialect}; cast"):
        found.to_sql(dialect)


def test_keys_where_there_are_no_bools() -> None:
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0)), segments={True: (1, 0.0, 1.0)})
    assert "VALUES (1, 1)" in found.to_sql("tsql")
    assert 'SELECT 1 AS "k0", 1 AS "curve" FROM DUAL' in found.to_sql("oracle")


def test_what_sqlglot_cannot_write_is_an_error() -> None:
    statement = sqlglot.parse_one("SELECT * FROM (VALUES (1)) AS t(a)")
    said = "sqlglot cannot write this map in sqlite: Named columns are not supported in table alias"
    with pytest.raises(ArgumentError, match=said):
        Writer("sqlite").sql(statement)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_literals_in_every_dialect(text: str, dialect: str) -> None:
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0)), segments={text: (1, 0.0, 1.0)})
    statement = parsed(found.to_sql(dialect, name=f"new{text}"), dialect)
    literals = [literal for literal in statement.find_all(exp.Literal, exp.National) if not literal.is_number]
    assert text in {literal.name for literal in literals}
    assert statement.expressions[1].alias == f"new{text}"


@pytest.mark.parametrize("dialect", ["duckbd", "", "dax", "druid", "prql", "solr", "tableau", "Postgres", None])
def test_other_dialects_are_refused(dialect: Any) -> None:
    said = f"dialect={dialect!r} is none that maps are written in; those are {', '.join(DIALECTS)}."
    with pytest.raises(ArgumentError, match=f"^{re.escape(said)}$"):
        binary_map("platt", ()).to_sql(dialect)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_new_column_does_not_clash_with_what_the_map_reads(dialect: str) -> None:
    found = binary_map("platt", ("g",))
    for name in ("p", "g"):
        with pytest.raises(ColumnClashError, match=f"the table has a column '{name}' already; pass another name="):
            found.to_sql(dialect, name=name)
        said = f"columns '{name}' and '{name.upper()}' differ only by case"
        with pytest.raises(ColumnClashError, match=said):
            found.to_sql(dialect, name=name.upper())
    with pytest.raises(ColumnClashError, match="the table has a column 'p_a' already"):
        class_map("vector", ()).to_sql(dialect, name="p")
    table = pl.DataFrame({"p_low": [0.1, 0.4, 0.6, 0.9] * 5, "y": [0, 0, 1, 1] * 5})
    interval = calframe.fit(table, label="y", score="p_low", method="venn_abers")
    with pytest.raises(ColumnClashError, match="columns 'p_low' and 'P_low' differ only by case"):
        interval.to_sql(dialect, name="P")


def test_new_columns_do_not_clash_with_each_other() -> None:
    table = pl.DataFrame({"p": [0.5, 0.25, 0.25], "q": [0.25, 0.5, 0.25], "r": [0.25, 0.25, 0.5], "y": ["a", "A", "b"]})
    found = calframe.fit(table, label="y", score={"a": "p", "A": "q", "b": "r"}, method="identity")
    with pytest.raises(ColumnClashError, match="columns 'new_a' and 'new_A' differ only by case"):
        found.to_sql(name="new")
