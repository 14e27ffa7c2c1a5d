"""Dialects of SQL: how each writes numbers, keys, small tables, and expressions that are used more than once."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import sqlglot
from sqlglot import exp

from calframe._errors import ArgumentError
from calframe._maps._pieces import Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ways:
    """How a dialect writes what dialects write differently.

    Attributes
    ----------
    rows : {"values", "unnest", "with", "selects", "structs"}
        A small table: VALUES with named columns; a list for each column; VALUES in a WITH, as SQLite names no columns
        of them otherwise; one SELECT a row; an array of structs.
    aside : {"lateral", "apply", "structs", "nested"}, optional
        A row of expressions under names: LATERAL, CROSS APPLY, an array of one struct, or a subquery around what uses
        them. None where there is nothing of the kind.
    alias : str
        What stands between a table and its alias.
    dual : str
        What ends a SELECT that reads no table.
    double : str, optional
        Each number of a small table, and each that is cast to a double. None where a cast of the first number of a
        column makes doubles of all.
    to_double : str, optional
        The function that makes a double of an expression, where a cast makes something else.
    first_text : str
        The first text of a column, which says how long the others may be.
    text_bytes : str, optional
        The bytes of a text, where equal texts may differ in case, accents or blanks at the end; equal bytes do not.
    is_national : bool
        Whether texts need an N in front to hold every letter.
    has_booleans : bool
        Whether there are booleans; elsewhere 1 and 0 stand for them.
    timestamp : str, optional
        A date with a time of day, where sqlglot would write something else.
    time : {"cast", "text"}, optional
        A time of day: a text that is cast, or one that is not. None where there is no type for it.
    functions : Mapping of str to str
        The names of functions that are called differently.
    """

    rows: Literal["values", "unnest", "with", "selects", "structs"] = "values"
    aside: Literal["lateral", "apply", "structs", "nested"] | None = "lateral"
    alias: str = " AS "
    dual: str = ""
    double: str | None = None
    to_double: str | None = None
    first_text: str = "{}"
    text_bytes: str | None = None
    is_national: bool = False
    has_booleans: bool = True
    timestamp: str | None = None
    time: Literal["cast", "text"] | None = "cast"
    functions: Mapping[str, str] = field(default_factory=dict)


_WAYS = {
    "athena": _Ways(),
    "bigquery": _Ways(rows="structs", aside="structs"),
    "clickhouse": _Ways(rows="selects", aside=None, time=None),
    "databricks": _Ways(time=None),
    "duckdb": _Ways(rows="unnest"),
    "mysql": _Ways(rows="selects", text_bytes="CAST(CONVERT({} USING utf8mb4) AS BINARY)"),
    "oracle": _Ways(
        rows="selects",
        alias=" ",
        dual=" FROM DUAL",
        double="{}d",  # its decimals end at 1e126
        to_double="TO_BINARY_DOUBLE",
        has_booleans=False,
        timestamp="TIMESTAMP '{}'",
        time=None,
    ),
    "postgres": _Ways(),
    "presto": _Ways(),
    "redshift": _Ways(rows="selects", aside=None, first_text="CAST({} AS VARCHAR(65535))"),
    "snowflake": _Ways(double="CAST({} AS DOUBLE)"),  # which else takes them for decimals, all of one scale
    "spark": _Ways(time=None),
    "sqlite": _Ways(rows="with", aside="nested", time="text", functions={"GREATEST": "MAX", "LEAST": "MIN"}),
    "trino": _Ways(),
    "tsql": _Ways(
        aside="apply",
        text_bytes="CAST(CAST({} AS NVARCHAR(4000)) AS VARBINARY(8000))",
        is_national=True,
        has_booleans=False,
    ),
}
DIALECTS = tuple(_WAYS)

_PART = 10_000  # rows of SQLite that are written at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a statement reads beside the table; `inside` if it is a subquery around what uses it."""

    text: str
    inside: bool = False


class Writer:
    """Writes expressions and small tables in a dialect.

    Parameters
    ----------
    dialect : str
        One of `DIALECTS`.
    """

    def __init__(self, dialect: str) -> None:
        if dialect not in _WAYS:
            msg = f"dialect={dialect!r} is none that maps are written in; those are {', '.join(DIALECTS)}."
            raise ArgumentError(msg)
        self.dialect = dialect
        self._ways = _WAYS[dialect]
        made = sqlglot.Dialect.get_or_raise(dialect)
        self._generator = made.generator(unsupported_level=sqlglot.ErrorLevel.RAISE)

    @property
    def sets_aside(self) -> bool:
        """Whether expressions can be named side by side; SQLite nests them, and its parser takes few levels."""
        return self._ways.aside not in (None, "nested")

    def sql(self, expression: Any) -> str:
        """Return an expression as text."""
        try:
            return self._generator.generate(expression.transform(self._own), copy=False)
        except sqlglot.errors.UnsupportedError as error:
            msg = f"sqlglot cannot write this map in {self.dialect}: {error}."
            raise ArgumentError(msg) from error

    def name(self, name: str) -> str:
        """Return a name in quotes."""
        return self.sql(exp.to_identifier(name, quoted=True))

    def named(self, text: str, name: str) -> str:
        """Return a table or subquery under a name."""
        return f"{text}{self._ways.alias}{self.name(name)}"

    def statement(self, table: str, sources: Sequence[Source], columns: Sequence[tuple[Any, str]]) -> str:
        """Return the statement that adds columns, expressions with names, to a table, given with its alias."""
        sources = list(sources)
        outer = list(itertools.takewhile(lambda source: not source.inside, sources))
        inner = sources[len(outer) :]
        read = " ".join([table, *(source.text for source in outer)])
        added = [f"{self._around(self.sql(column), inner)} AS {self.name(name)}" for column, name in columns]
        whole = self.sql(exp.Column(this=exp.Star(), table=exp.to_identifier(ROWS, quoted=True)))
        return f"SELECT {', '.join([whole, *added])} FROM {read}"  # noqa: S608  names are quoted

    def joined(self, alias: str, columns: Columns, conditions: Sequence[str]) -> Source:
        """Return the join of a small table, as it is read where the conditions hold."""
        return self.join(self._table(alias, columns), conditions)

    def join(self, table: str, conditions: Sequence[str]) -> Source:
        """Return the join of a table that is there, with its alias."""
        return Source(text=f"LEFT JOIN {table} ON {' AND '.join(conditions)}")

    def aside(self, alias: str, values: Sequence[Any], *, why: str) -> Source:
        """Return a row of expressions, v0 and so on; `why` names what needs it."""
        ways = self._ways.aside
        if ways is None:
            others = ", ".join(name for name, known in _WAYS.items() if known.aside)
            msg = (
                f"dialect={self.dialect!r} has no LATERAL subqueries, which {why} needs; use .apply(data), or one of "
                f"the dialects that have: {others}."
            )
            raise ArgumentError(msg)
        row = ", ".join(f"{self.sql(value)} AS {self.name(f'v{i}')}" for i, value in enumerate(values))
        if ways == "structs":
            return Source(text=f"CROSS JOIN UNNEST([STRUCT({row})]) AS {self.name(alias)}")
        table = self.named(f"(SELECT {row}{self._ways.dual})", alias)
        if ways == "nested":
            return Source(text=table, inside=True)
        return Source(text=f"{'CROSS APPLY' if ways == 'apply' else 'CROSS JOIN LATERAL'} {table}")

    def equal(self, column: exp.Column, key: exp.Column, *, text: bool) -> str:
        """Return the condition that a column of the table equals a key."""
        left, right = self.sql(column), self.sql(key)
        same = f"{left} = {right}"
        form = self._ways.text_bytes if text else None
        return f"{same} AND {form.format(left)} = {form.format(right)}" if form else same

    def literal(self, value: Any) -> str:
        """Return a key."""
        if isinstance(value, bool) and not self._ways.has_booleans:
            return str(int(value))
        if isinstance(value, float):
            return digits(value)
        if isinstance(value, dt.time):
            return self._time(value)
        if isinstance(value, dt.datetime) and self._ways.timestamp:
            return self._ways.timestamp.format(value.isoformat(sep=" "))
        if isinstance(value, str) and self._ways.is_national:
            return self.sql(exp.National(this=value))
        if isinstance(value, bool | int | str | dt.date | decimal.Decimal):
            return self.sql(exp.convert(value))
        raise self._no_key(value)

    # ------------------------------------------------------------ parts
    def _own(self, node: Any) -> Any:
        """Return a part of an expression as the dialect has it where sqlglot would write something else."""
        if isinstance(node, exp.Anonymous):
            node.set("this", self._ways.functions.get(node.this, node.this))
        if isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DOUBLE:
            if self._ways.double and isinstance(node.this, exp.Literal):
                return exp.Var(this=self._ways.double.format(node.this.this))
            if self._ways.to_double:
                return exp.Anonymous(this=self._ways.to_double, expressions=[node.this])
        return node

    def _around(self, column: str, inner: Sequence[Source]) -> str:
        """Return a column within the subqueries that name what it uses."""
        reads: list[str] = []
        for source in reversed(inner):
            reads.insert(0, source.text)
            if source.inside:
                column, reads = f"(SELECT {column} FROM {' '.join(reads)})", []  # noqa: S608  names are quoted
        return column

    def _table(self, alias: str, columns: Columns) -> str:
        """Return a small table with its alias."""
        names = [self.name(name) for name in columns]
        if self._ways.rows == "unnest":
            lists = [self._list(values) for values in columns.values()]
            row = ", ".join(f"UNNEST({values}) AS {name}" for values, name in zip(lists, names, strict=True))
            return self.named(f"(SELECT {row})", alias)
        rows = list(zip(*map(self._cells, columns.values()), strict=True))
        first = ", ".join(f"{cell} AS {name}" for cell, name in zip(rows[0], names, strict=True))
        if self._ways.rows == "structs":
            return f"UNNEST([{', '.join([f'STRUCT({first})', *map(_tuple, rows[1:])])}]) AS {self.name(alias)}"
        if self._ways.rows == "selects":
            lines = [first, *map(", ".join, rows[1:])]
            return self.named(f"({' UNION ALL '.join(f'SELECT {line}{self._ways.dual}' for line in lines)})", alias)
        listed = ", ".join(names)
        if self._ways.rows == "with":
            own = self.name(alias)
            text = f"(WITH {own}({listed}) AS ({_in_parts(rows)}) SELECT * FROM {own})"  # noqa: S608  names are quoted
            return self.named(text, alias)
        return f"{self.named(f'({_values(rows)})', alias)}({listed})"

    def _cells(self, values: Any) -> list[str]:
        """Return a column of a small table, whose first row says of which type it is."""
        if not isinstance(values, np.ndarray):
            cells = [self.literal(value) for value in values]
            if isinstance(values[0], str):
                cells[0] = self._ways.first_text.format(cells[0])
            return cells
        if values.dtype == np.int64:
            return list(map(str, values.tolist()))
        cells = list(map(digits, values.tolist()))
        if self._ways.double:
            return list(map(self._ways.double.format, cells))
        return [self.sql(number(values[0])), *cells[1:]]

    def _list(self, values: Any) -> str:
        """Return a column of a small table as a list of DuckDB; a text is read far faster than an expression each."""
        if not isinstance(values, np.ndarray):
            return f"[{', '.join(map(self.literal, values))}]"
        return f"CAST('{values.tolist()}' AS {'BIGINT' if values.dtype == np.int64 else 'DOUBLE'}[])"

    def _time(self, value: dt.time) -> str:
        if not self._ways.time:
            raise self._no_key(value)
        text = exp.Literal.string(value.isoformat())
        return self.sql(text if self._ways.time == "text" else exp.cast(text, "time"))

    def _no_key(self, value: Any) -> ArgumentError:
        return ArgumentError(
            f"a key of type {type(value).__name__} cannot be written in SQL for {self.dialect}; cast the segment "
            "column to text or numbers, and fit again."
        )


ROWS = "_cf_t"  # the table


def number(value: float) -> Any:
    """Return a number that is a double."""
    double = exp.DataType(this=exp.DataType.Type.DOUBLE)  # the name of the type would be parsed for each number
    return exp.Cast(this=exp.Literal(this=digits(value), is_string=False), to=double)


def digits(value: float) -> str:
    """Return a number with every digit: with an exponent it is a double, never a decimal."""
    text = f"{float(value)!r}"
    return text if "e" in text else f"{text}e0"


def _values(rows: Sequence[Sequence[str]]) -> str:
    return f"VALUES {', '.join(map(_tuple, rows))}"


def _in_parts(rows: Sequence[Sequence[str]]) -> str:
    """Return VALUES of SQLite, which takes more than 32,767 rows at once for few and would index none of them."""
    parts = [_values(rows[i : i + _PART]) for i in range(0, len(rows), _PART)]
    if len(parts) == 1:
        return parts[0]
    return " UNION ALL ".join(f"SELECT * FROM ({part})" for part in parts)  # noqa: S608  cells are literals


def _tuple(cells: Sequence[str]) -> str:
    return f"({', '.join(cells)})"
