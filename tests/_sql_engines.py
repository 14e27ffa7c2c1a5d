"""Statements of maps, run by DuckDB and SQLite, or read by sqlglot; and names that would change a statement."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import sqlglot
from sqlglot import exp

import calframe
from calframe._maps._dialects import Writer
from tests._tables import rows

Engine = Callable[..., dict[str, list[Any]]]

HOSTILE = [
    "'; DROP TABLE secret; --",
    "'' OR 1=1 --",
    '"; DROP TABLE secret; --',
    "\\'; DROP TABLE secret; --",
    "\\",
    "*/ DROP TABLE secret /*",
    "$$; DROP TABLE secret; $$",
    "{{ secret }}",
    "\n; DROP TABLE secret;\n",
    "`; DROP TABLE secret; `",
    "]; DROP TABLE secret; [",
]


def run(found: calframe.CalibrationMap, table: dict[str, list[Any]], **arguments: Any) -> dict[str, list[Any]]:
    """Return what the statement gives, in the order of the column row."""
    connection = duckdb.connect()
    connection.register("t", pl.DataFrame(table, strict=False).to_arrow())
    return rows(connection.sql(found.to_sql(**arguments)).pl().sort("row"))


def lite(table: dict[str, list[Any]]) -> sqlite3.Connection:
    """Return a connection of SQLite with a table t, and with the functions that some builds lack."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT LN(1.0), EXP(0.0)")
    except sqlite3.OperationalError:
        for name, function in (("LN", math.log), ("EXP", math.exp)):
            connection.create_function(name, 1, lambda x, function=function: None if x is None else function(x))
    names = ", ".join(Writer("sqlite").name(name) for name in table)
    connection.execute(f"CREATE TABLE t ({names})")
    marks = ", ".join("?" * len(table))
    connection.executemany(f"INSERT INTO t VALUES ({marks})", zip(*table.values(), strict=True))  # noqa: S608
    return connection


def run_lite(found: calframe.CalibrationMap, table: dict[str, list[Any]], **arguments: Any) -> dict[str, list[Any]]:
    """Return what the statement gives in SQLite, in the order of the column row."""
    out = lite(table).execute(found.to_sql("sqlite", **arguments))
    names = [name for name, *_ in out.description]
    values = sorted(out.fetchall(), key=lambda row: row[names.index("row")])
    return {name: list(column) for name, column in zip(names, zip(*values, strict=True), strict=True)}


def parsed(text: str, dialect: str) -> exp.Expression:
    """Return the one statement of a text, without the d of Oracle's doubles, which sqlglot cannot read."""
    (statement,) = sqlglot.parse(re.sub(r"(?<=\d)d\b", "", text) if dialect == "oracle" else text, dialect=dialect)
    assert isinstance(statement, exp.Select)
    return statement
