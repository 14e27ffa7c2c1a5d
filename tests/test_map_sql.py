"""Maps as SQL: DuckDB and SQLite run the statement, whose columns are those of the map's definition, row by row."""

from __future__ import annotations

import decimal
import math
import re
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
import sqlglot
from sqlglot import exp

import calframe
from calframe._errors import ArgumentError
from calframe._maps._forms import Points
from tests._fitted_maps import BINARY, SEGMENTS, SEVERAL, binary_map, by_definition, class_map, fresh
from tests._map_examples import logistic, map_of, through
from tests._sql_engines import HOSTILE, Engine, lite, run, run_lite
from tests._tables import approx, rows

PLACES = [("probability", by) for by in SEGMENTS] + [("logit", SEGMENTS[-1])]


ENGINES = pytest.mark.parametrize("engine", [run, run_lite], ids=["duckdb", "sqlite"])


def check(engine: Engine, found: calframe.CalibrationMap, table: dict[str, list[Any]]) -> None:
    columns = engine(found, table, name="new")
    added = [name for name in columns if name not in table]
    assert list(columns) == [*table, *added]
    assert [columns[name] for name in added] == approx(by_definition(found, table))
    applied = rows(calframe.apply(pl.DataFrame(table, strict=False), found, name="new"))
    assert [columns[name] for name in added] == approx([applied[name] for name in added])


@pytest.mark.parametrize(("link", "by"), PLACES, ids=["whole", "g", "g and h", "logits"])
@pytest.mark.parametrize("case", BINARY)
@ENGINES
def test_sql_of_a_binary_map(engine: Engine, case: str, link: str, by: tuple[str, ...]) -> None:
    check(engine, binary_map(case, by, link), fresh(several=False, link=link))


@pytest.mark.parametrize(("link", "by"), PLACES, ids=["whole", "g", "g and h", "logits"])
@pytest.mark.parametrize("case", SEVERAL)
@ENGINES
def test_sql_of_a_map_of_classes(engine: Engine, case: str, link: str, by: tuple[str, ...]) -> None:
    check(engine, class_map(case, by, link), fresh(several=True, link=link))


@ENGINES
def test_every_digit_is_kept(engine: Engine) -> None:
    # values that fewer digits, or a decimal number, would change: the sums of thirds, the next number, the smallest
    odd = [0.1, 1 / 3, 2 / 3, math.nextafter(0.7, 1), 0.1 + 0.2, 5e-324, 1 - 2**-53, 2.2250738585072014e-308]
    x = np.arange(len(odd)) / 8
    steps = Points(
        starts=np.zeros(1, dtype=np.int64), x=np.repeat(x, 2), y=np.repeat(odd, 2), side="right"
    )  # constant between a point and itself
    out = engine(map_of(steps, method="isotonic"), {"row": list(range(len(x))), "p": x.tolist()})
    assert out["p_calibrated"] == odd


@ENGINES
def test_coefficients_of_every_size(engine: Engine) -> None:
    # expit(s z) with odds to the power s; the intercept of 1e-17 is not lost, nor is that of -700
    for slope, intercept in ((1e-17, 0.0), (1.0, 1e-17), (1.0, -700.0), (0.0, 40.0), (1e10, 0.0)):
        found = map_of(logistic((slope, intercept)))
        out = engine(found, {"row": [0, 1, 2], "p": [0.25, 0.5, 0.75]})["p_calibrated"]
        want = [1 / (1 + math.exp(-min(max(slope * z + intercept, -700), 700))) for z in (-math.log(3), 0, math.log(3))]
        assert out == pytest.approx(want, rel=1e-13)


def test_a_statement_is_one_select_that_keeps_every_column() -> None:
    for found in (binary_map("venn_abers", ("g", "h")), class_map("structured", ("g",))):
        (statement,) = sqlglot.parse(found.to_sql("duckdb"), dialect="duckdb")
        assert isinstance(statement, exp.Select)
        star, *others = statement.expressions
        assert isinstance(star.this, exp.Star)
        assert len(others) == 3


def test_sqlite_finds_the_pieces_of_many_segments_by_their_keys() -> None:
    # 40,000 rows of the small table; from 32,768 at once SQLite would go through all of them for each row
    x = np.tile([0.0, 0.5, 1.0], 10_000)
    form = Points(starts=np.arange(10_000) * 3, x=x, y=np.repeat(np.arange(10_000) / 10_000, 3))
    found = map_of(form, segments={i: (i, 0.0, 1.0) for i in range(1, 10_000)}, method="isotonic")
    table = {"row": list(range(10_000)), "g": list(range(10_000)), "p": [0.3] * 10_000}
    assert run_lite(found, table)["p_calibrated"] == approx([i / 10_000 for i in range(10_000)])
    plan = lite(table).execute(f"EXPLAIN QUERY PLAN {found.to_sql('sqlite')}").fetchall()
    assert any(re.match(r"SEARCH _cf_piece1 USING AUTOMATIC .*INDEX", line[-1]) for line in plan)


def test_other_dialects_say_the_same() -> None:
    # the statements for Postgres, which raise nothing, are translated and run by DuckDB
    for case in BINARY:
        found, table = binary_map(case, ("g", "h")), fresh(several=False)
        connection = duckdb.connect()
        connection.register("t", pl.DataFrame(table, strict=False).to_arrow())
        (text,) = sqlglot.transpile(found.to_sql("postgres"), read="postgres", write="duckdb")
        out = rows(connection.sql(text).pl().sort("row"))
        assert out["p_calibrated"] == approx(by_definition(found, table)[0])


@pytest.mark.parametrize("link", ["probability", "logit"])
def test_elsewhere_what_is_no_score_gives_null(link: Any) -> None:
    found = map_of(logistic((1.0, 0.0)), link=link)
    scores = [None, math.nan, *([-0.1, 1.5, -math.inf, math.inf] if link == "probability" else [])]
    known = [0.5] if link == "probability" else [0.0, -math.inf, math.inf]
    table = pl.DataFrame({"row": range(len(scores) + len(known)), "p": [*scores, *known]}, strict=False)
    connection = duckdb.connect()
    connection.register("t", table.to_arrow())
    (text,) = sqlglot.transpile(found.to_sql("postgres"), read="postgres", write="duckdb")
    out = rows(connection.sql(text).pl().sort("row"))["p_calibrated"]
    assert out == [*[None] * len(scores), *([0.5] if link == "probability" else approx([0.5, 0.0, 1.0]))]


def test_duckdb_names_the_column_of_a_wrong_score() -> None:
    table = {"row": [0, 1], "g": ["ams", "ber"], "p": [0.5, 1.25]}
    with pytest.raises(duckdb.Error, match=r"scores must lie in \[0, 1\]: column 'p' has one outside: 1\.25"):
        run(binary_map("platt", ("g",)), table)


def test_duckdb_tells_rows_that_do_not_add_up_to_1() -> None:
    table = {"row": [0], "p_a": [0.5], "p_b": [0.25], "p_c": [0.125]}
    with pytest.raises(
        duckdb.Error, match=r"must add up to 1; score 'p_a', 'p_b', 'p_c' has a row that adds up to 0\.875"
    ):
        run(class_map("vector", ()), table)


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_keys_cannot_inject(text: str) -> None:
    known = pl.DataFrame({text: [text] * 4 + ["b"] * 4, "p": [0.5] * 8, "y": [0, 0, 0, 1, 1, 1, 1, 0]})
    known = known.with_columns(pl.col("p").alias(f"p{text}"))
    found = calframe.fit(known, label="y", score=f"p{text}", by=text, method="histogram", bins=1, pooling="none")
    connection = duckdb.connect()
    connection.sql("CREATE TABLE secret AS SELECT 42 AS answer")
    connection.register("t", known.with_row_index("row").to_arrow())
    out = connection.sql(found.to_sql(name=f"new{text}")).pl().sort("row")
    assert out[f"new{text}"].to_list() == approx([0.25] * 4 + [0.75] * 4)
    assert connection.sql("SELECT answer FROM secret").fetchall() == [(42,)]


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_keys_cannot_inject_in_sqlite(text: str) -> None:
    known = pl.DataFrame({text: [text] * 4 + ["b"] * 4, "p": [0.5] * 8, "y": [0, 0, 0, 1, 1, 1, 1, 0]})
    found = calframe.fit(known, label="y", score="p", by=text, method="histogram", bins=1, pooling="none")
    out = run_lite(found, {"row": list(range(8)), **known.to_dict(as_series=False)}, name=f"new{text}")
    assert out[f"new{text}"] == approx([0.25] * 4 + [0.75] * 4)


@pytest.mark.parametrize("table", ["", "f(1)"])
def test_what_is_no_name_of_a_table_is_refused(table: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"table={table!r} is no name of a table in duckdb")):
        binary_map("platt", ()).to_sql(table=table)


@pytest.mark.parametrize(
    "table",
    ["t; DROP TABLE secret", '"t" AS x', '"t"; DROP TABLE t', "(SELECT 1)", "t WHERE 1 = 1"],
)
def test_an_odd_name_of_a_table_is_one_name(table: str) -> None:
    connection = duckdb.connect()
    quoted = table.replace('"', '""')
    connection.sql(f'CREATE TABLE "{quoted}" AS SELECT 0.5::DOUBLE AS p')
    found = map_of(through((0.0, 0.25), (1.0, 0.75)), method="isotonic")
    assert connection.sql(found.to_sql(table=table)).fetchall() == [(0.5, 0.5)]


@pytest.mark.parametrize("table", ["t", "main.t", '"t"', 'memory.main."t"', '"odd; name"', '"main"."odd; name"'])
def test_names_of_tables_may_have_parts(table: str) -> None:
    connection = duckdb.connect()
    name = '"odd; name"' if "odd" in table else "t"
    connection.sql(f"CREATE TABLE {name} AS SELECT 0.5::DOUBLE AS p")
    found = map_of(through((0.0, 0.25), (1.0, 0.75)), method="isotonic")
    assert connection.sql(found.to_sql(table=table)).fetchall() == [(0.5, 0.5)]


def test_a_score_of_vectors_is_refused() -> None:
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"p": rng.dirichlet([1, 2, 3], 60).tolist(), "y": rng.integers(0, 3, 60)})
    found = calframe.fit(table, label="y", score="p", classes=[0, 1, 2], method="vector")
    with pytest.raises(ArgumentError, match="score 'p' holds vectors, which SQL has no common way to read"):
        found.to_sql()


def test_scores_of_other_types_are_read_as_doubles() -> None:
    found = map_of(logistic((2.0, 0.0)))
    for column, p in (([decimal.Decimal("0.10")], 0.1), ([1], 1.0), ([True], 1.0)):
        (out,) = run(found, {"row": [0], "p": column})["p_calibrated"]
        odds = max(p, 1e-12) / max(1 - p, 1e-12)
        assert out == pytest.approx(odds**2 / (1 + odds**2), rel=1e-12)


def many_segments() -> tuple[calframe.CalibrationMap, dict[str, list[Any]], list[float]]:
    """Return an isotonic map of 20,000 segments, each of nine pieces, a table, and what comes of it."""
    number = np.arange(20_001)
    x = np.tile(np.arange(8) / 7, 20_001)
    y = (x * (number.repeat(8) + 1) / 20_001).round(12)
    form = Points(starts=number * 8, x=x, y=y)
    found = map_of(form, segments={i: (i, 0.0, 1.0) for i in range(1, 20_001)}, method="isotonic")
    keys = list(range(1, 20_001))
    return found, {"row": keys, "g": keys, "p": [1.0] * 20_000}, [round((i + 1) / 20_001, 12) for i in keys]


def test_twenty_thousand_isotonic_segments() -> None:
    found, table, want = many_segments()
    assert run(found, table)["p_calibrated"] == want
    relation = duckdb.connect().from_arrow(pl.DataFrame(table).to_arrow())
    assert rows(calframe.apply(relation, found).pl())["p_calibrated"] == want


@pytest.mark.parametrize("setting", ["enable_external_access", "python_enable_replacements"])
def test_a_connection_may_read_nothing_of_python(setting: str) -> None:
    # then the small tables, else handed over, are written into the query
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 'a' AS g, 0.75::DOUBLE AS p UNION ALL SELECT 'b', 0.75")
    connection.execute(f"SET {setting} = false")
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0)), segments={"a": (1, 0.0, 1.0)})
    assert calframe.apply(connection.table("t"), found).fetchall() == [
        ("a", 0.75, approx(0.9)),
        ("b", 0.75, approx(0.75)),
    ]


def test_small_tables_live_as_long_as_what_reads_them() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 'a' AS g, 0.75::DOUBLE AS p")
    out = []
    for slope in (2.0, 3.0):  # under the same names
        found = map_of(logistic((1.0, 0.0), (slope, 0.0)), segments={"a": (1, 0.0, 1.0)})
        out.append(calframe.apply(connection.table("t"), found).project("p_calibrated"))
        del found
    out[0].create_view("v")
    assert connection.sql("SELECT * FROM v").fetchall() == [(approx(0.9),)]
    assert [each.fetchall() for each in out] == [[(approx(0.9),)], [(approx(27 / 28),)]]
    twice = calframe.apply(out[1], replace(map_of(logistic((2.0, 0.0))), scores=("p_calibrated",)), name="again")
    assert twice.fetchall() == [(approx(27 / 28), approx(729 / 730))]


def test_a_map_of_twenty_thousand_segments_is_written() -> None:
    number = np.arange(20_000)
    keys = {int(i): (1 + int(i) % 2, 0.0, 1.0) for i in number}
    found = map_of(logistic((1.0, 0.0), (2.0, 0.0), (3.0, 0.0)), segments=keys)
    out = run(found, {"row": number.tolist(), "g": number.tolist(), "p": [0.75] * 20_000})
    assert out["p_calibrated"] == approx([9 / 10, 27 / 28] * 10_000)
