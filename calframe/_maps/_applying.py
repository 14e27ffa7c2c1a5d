"""Maps applied to tables, on whatever engine they are: the table comes back with the calibrated column added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl

from calframe._columns import exact_column
from calframe._errors import ArgumentError
from calframe._maps._forms import OneVersusRest, Pair, Softmax
from calframe._maps._inputs import (
    check_expression,
    check_names,
    check_scores,
    check_types,
    pandas_rows,
    score_matrix,
    shares_of,
    used_columns,
)
from calframe._maps._map import CalibrationMap
from calframe._maps._segments import Finder
from calframe._maps._values import Scores, of_curve, of_each_class, of_softmax
from calframe._source import opened
from calframe._typing import Floats, Ints

_NUMBERS = 2**17  # scores worked on at once: few calls, whose temporaries stay in the cache
_MADE = "_cf_made"


def applied(data: Any, the_map: CalibrationMap, *, name: str) -> Any:
    """Return a table with what the map makes of its scores."""
    frame = opened(data)
    names = new_columns(the_map, name)
    check_names(the_map, names, frame.collect_schema().names())
    if frame.implementation.is_duckdb():
        from calframe._maps._duckdb import applied_to_relation  # noqa: PLC0415  the SQL generator loads only for it

        return applied_to_relation(data, frame.collect_schema(), the_map, name=name)
    if isinstance(data, pl.LazyFrame):
        check_types(the_map, frame.collect_schema(), blank=_blank(data.collect_schema()))
        columns = column(the_map, name=name)
        if len(names) == 1:  # a plan that does not need the column leaves it out
            return data.with_columns(columns)
        return data.with_columns(columns.alias(_MADE)).unnest(_MADE)
    if not (isinstance(data, pl.DataFrame | pd.DataFrame) or nw.dependencies.is_pyarrow_table(data)):
        msg = (
            "a map is applied to a pandas or polars DataFrame, a polars LazyFrame, a pyarrow Table or a DuckDB "
            f"relation; got {type(data).__name__}. For other engines .to_sql(dialect) writes the query."
        )
        raise ArgumentError(msg)
    rows, narrow = polars_rows(data, the_map)
    return _beside(data, Batches.of(the_map).made(rows, name=name, narrow=narrow))


def new_columns(the_map: CalibrationMap, name: str) -> list[str]:
    """Return the names of the columns that a map adds."""
    if not isinstance(name, str) or not name:
        msg = f"name= takes the name of the new column; got {name!r}."
        raise ArgumentError(msg)
    if isinstance(the_map.form, Softmax | OneVersusRest):
        return [f"{name}_{one}" for one in the_map.classes]
    return [name, f"{name}_low", f"{name}_high"] if isinstance(the_map.form, Pair) else [name]


def column(the_map: CalibrationMap, *, name: str, score: pl.Expr | None = None) -> pl.Expr:
    """Return what a map adds as an expression: a column or a struct. `score` is read in place of its own."""
    check_expression(score)
    used = _used(the_map) if score is None else [*map(exact_column, the_map.by), score.alias(the_map.scores[0])]
    batches, names = Batches.of(the_map), new_columns(the_map, name)

    def values(columns: Sequence[pl.Series]) -> pl.Series:
        found = batches.made(pl.DataFrame(columns), name=name)
        return found.to_series() if len(names) == 1 else found.to_struct()

    several = pl.Struct(dict.fromkeys(names, pl.Float64()))
    made = pl.map_batches(used, values, return_dtype=several if len(names) > 1 else pl.Float64(), is_elementwise=True)
    return made.alias(name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batches:
    """What a map makes of rows that come in batches, whose types are looked at once.

    Attributes
    ----------
    map : CalibrationMap
        The map.
    finder : Finder
        What finds the curves of rows.
    seen : dict
        The types of columns that were checked, in polars and in narwhals.
    """

    map: CalibrationMap
    finder: Finder
    seen: dict[tuple[pl.DataType, ...], Mapping[str, Any]]

    @classmethod
    def of(cls, the_map: CalibrationMap) -> Self:
        """Return what makes the columns that a map adds."""
        return cls(map=the_map, finder=the_map.segments.finder(), seen={})

    def scores(self, rows: pl.DataFrame, *, narrow: Mapping[str, Any] | None = None) -> Floats:
        """Return the scores of rows, checked, as `score_matrix` does; `narrow` has the types they had before."""
        types = tuple(rows.dtypes)
        if types not in self.seen:
            schema = nw.from_native(rows).schema
            check_types(self.map, schema, blank=_blank(rows.schema))
            self.seen[types] = schema
        scores = score_matrix(self.map, rows)
        check_scores(self.map, scores, narrow or self.seen[types])
        return scores

    def made(self, rows: pl.DataFrame, *, name: str, narrow: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """Return the columns that the map adds to rows, which have the columns that it reads.

        Parameters
        ----------
        rows : polars.DataFrame
            The columns that it reads.
        name : str
            The name of the new column, or what the names of several begin with.
        narrow : mapping of str to narwhals dtype, optional
            The types that scores had before they came into these rows.
        """
        scores, code = self.scores(rows, narrow=narrow), self.finder.over(rows)
        names = new_columns(self.map, name)
        many = max(_NUMBERS // max(scores.shape[1], len(names)), 1)
        blocks = [slice(begin, begin + many) for begin in range(0, rows.height, many)]
        if len(blocks) > 1:
            out: Any = np.empty((len(names), rows.height))

            def fill(here: slice) -> None:
                out[:, here] = _calibrated(self.map, scores[here], code(here))

            with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
                list(pool.map(fill, blocks))
        else:  # polars hands over parts of plans, on threads of its own
            out = _calibrated(self.map, scores, code(slice(None)))
        return pl.DataFrame([_series(new, values) for new, values in zip(names, out, strict=True)])


def _series(name: str, values: Floats) -> pl.Series:
    """Return a column of values, NaN as null; looking for one first is cheaper than asking for that always."""
    return pl.Series(name, values, nan_to_null=bool(len(values) and np.isnan(values.min())))


def _calibrated(the_map: CalibrationMap, scores: Floats, code: Ints) -> Any:
    """Return the values of the new columns, one after the other."""
    form, floor, is_logit = the_map.form, the_map.floor, the_map.link == "logit"
    if isinstance(form, Softmax):
        return of_softmax(form, shares_of(the_map, scores), code, floor).T
    if isinstance(form, OneVersusRest):
        return of_each_class(form, shares_of(the_map, scores), code, floor).T
    return of_curve(form, Scores(values=one_score(the_map, scores), is_logit=is_logit, floor=floor, code=code))


def one_score(the_map: CalibrationMap, scores: Floats) -> Floats:
    """Return the score of the positive class; of two logits their difference. NaN where one of two is missing."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    if the_map.link == "logit":
        return np.asarray(scores[:, 1] - scores[:, 0])
    return np.where(np.isnan(scores[:, 0]), np.nan, scores[:, 1])


def polars_rows(data: Any, the_map: CalibrationMap) -> tuple[pl.DataFrame, Mapping[str, Any]]:
    """Return the columns that a map reads of a table of any kind, and the types that scores had in it.

    A lazy table is collected.
    """
    frame = opened(data)
    narrow = {name: dtype for name, dtype in frame.collect_schema().items() if name in the_map.scores}
    if isinstance(data, pd.DataFrame):
        return pandas_rows(data, the_map), narrow
    if isinstance(data, pl.DataFrame | pl.LazyFrame):
        return data.lazy().select(_used(the_map)).collect(engine="streaming"), narrow
    arrow = frame.select(*used_columns(the_map)).lazy().collect(backend="pyarrow").to_native()
    return pl.DataFrame(pl.from_arrow(arrow)), narrow


def _beside(data: Any, found: pl.DataFrame) -> Any:
    """Return a table in memory with new columns."""
    if isinstance(data, pl.DataFrame):
        return data.with_columns(found.get_columns())
    if isinstance(data, pd.DataFrame):
        return data.assign(**{new: found.get_column(new).to_numpy() for new in found.columns})
    for new in found.columns:
        data = data.append_column(new, found.get_column(new).to_arrow())
    return data


def _blank(schema: Mapping[str, Any]) -> list[str]:
    return [name for name, dtype in schema.items() if isinstance(dtype, pl.Null)]


def _used(the_map: CalibrationMap) -> list[pl.Expr]:
    return [exact_column(name) for name in used_columns(the_map)]
