"""Maps applied to DuckDB relations, by a query that DuckDB runs when its result is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl
from sqlglot import exp

from calframe._maps._applying import new_columns
from calframe._maps._dialects import Writer
from calframe._maps._inputs import check_types, tolerance_of
from calframe._maps._map import CalibrationMap
from calframe._maps._pieces import Columns
from calframe._maps._sql import Query, check_clashes, column_of, error_of

_TABLE, _NUMBERED, _ROW = "_cf_rows", "_cf_numbered", "_cf_row"


def applied_to_relation(data: Any, schema: Mapping[str, Any], the_map: CalibrationMap, *, name: str) -> Any:
    """Return a relation with the new columns; its rows keep their order, which joins do not."""
    blank = [column for column, kind in zip(data.columns, data.types, strict=True) if "NULL" in str(kind)]
    check_types(the_map, schema, blank=blank)
    check_clashes(new_columns(the_map, name), list(schema))
    tables: dict[str, Columns] = {}
    query = _query(the_map, schema, name=name, tables=tables)
    arrow = {alias: pl.DataFrame(columns).to_arrow() for alias, columns in tables.items()}
    try:
        return FunctionType(_asked.__code__, arrow)(data, _TABLE, query)
    except nw.dependencies.get_duckdb().CatalogException:  # of a connection that reads no tables of Python's
        return _asked(data, _TABLE, _query(the_map, schema, name=name, tables=None))


def _asked(data: Any, called: str, query: str) -> Any:
    """Return the relation of a query, which finds small tables among the globals: DuckDB keeps those it has read."""
    return data.query(called, query)  # its globals may be the small tables alone, so it uses no name of this module


def _query(the_map: CalibrationMap, schema: Mapping[str, Any], *, name: str, tables: dict[str, Columns] | None) -> str:
    writer = Writer("duckdb")
    query = Query(the_map=the_map, writer=writer, tolerance=tolerance_of(the_map, schema), tables=tables)
    found = query.statement(_NUMBERED, _scores(the_map, schema), name=name)
    kept = ", ".join(map(writer.name, (*schema, *new_columns(the_map, name))))
    numbered = f"SELECT *, ROW_NUMBER() OVER () AS {_ROW} FROM {_TABLE}"  # noqa: S608  names are quoted by the writer
    return f"WITH {_NUMBERED} AS ({numbered}) SELECT {kept} FROM ({found}) AS _cf_out ORDER BY {_ROW}"  # noqa: S608


def _scores(the_map: CalibrationMap, schema: Mapping[str, Any]) -> list[Any]:
    if not the_map.vector:
        return [column_of(name) for name in the_map.scores]
    (name,), classes = the_map.scores, the_map.classes
    if isinstance(schema[name], nw.Struct):
        fields = [exp.Literal.string(str(one)) for one in classes]
        return [_call("struct_extract", column_of(name), field) for field in fields]
    vector = exp.cast(column_of(name), "double[]")
    size = _call("len", vector)
    text = f"score column {name!r} has a row without {len(classes)} numbers, one a class, but with "
    wrong = exp.NEQ(this=size, expression=exp.Literal.number(len(classes)))
    parts = [_call("list_extract", vector, exp.Literal.number(i + 1)) for i in range(len(classes))]
    return [exp.case().when(wrong, error_of(text, size)).else_(part) for part in parts]


def _call(function: str, *arguments: Any) -> Any:
    return exp.Anonymous(this=function, expressions=list(arguments))
