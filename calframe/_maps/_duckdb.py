"""Maps applied to DuckDB relations, by a query that DuckDB runs when its result is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
from sqlglot import exp

from calframe._errors import ColumnClashError
from calframe._maps._applying import new_columns
from calframe._maps._inputs import check_types, tolerance_of
from calframe._maps._map import CalibrationMap
from calframe._maps._sql import column_of, error_of, statement

_TABLE, _NUMBERED, _ROW = "_cf_rows", "_cf_numbered", "_cf_row"


def applied_to_relation(data: Any, schema: Mapping[str, Any], the_map: CalibrationMap, *, name: str) -> Any:
    """Return a relation with the new columns; its rows keep their order, which joins do not."""
    blank = [column for column, kind in zip(data.columns, data.types, strict=True) if "NULL" in str(kind)]
    check_types(the_map, schema, blank=blank)
    names = new_columns(the_map, name)
    for new in names:
        same = [known for known in schema if known.casefold() == new.casefold()]
        if same:
            raise ColumnClashError.from_case([same[0], new])
    found = statement(
        the_map, exp.to_table(_NUMBERED), _scores(the_map, schema), name=name, tolerance=tolerance_of(the_map, schema)
    )
    rows = exp.alias_(exp.Window(this=exp.RowNumber()), _ROW)
    numbered = exp.select(exp.Star(), rows).from_(_TABLE)
    kept = [exp.column(column, quoted=True) for column in (*schema, *names)]
    query = (
        exp.select(*kept)
        .from_(found.subquery("_cf_out", copy=False), copy=False)
        .order_by(exp.column(_ROW), copy=False)
    )
    query = query.with_(_NUMBERED, as_=numbered, copy=False)
    return data.query(_TABLE, query.sql(dialect="duckdb", copy=False))


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
