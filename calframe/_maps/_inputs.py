"""What a map reads of a table: its score and segment columns, checked, as polars columns and as an array."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl

from calframe._classes import sum_tolerance
from calframe._columns import part_types
from calframe._errors import (
    ArgumentError,
    ColumnClashError,
    ColumnNotFoundError,
    ScoreError,
    SegmentError,
    counted,
    outside_unit,
)
from calframe._fitting._log_scores import softmax
from calframe._maps._map import CalibrationMap
from calframe._pandas import coded, is_sortable, pandas_ready
from calframe._results import to_polars
from calframe._roles import Roles
from calframe._table import LARGEST_LOGIT
from calframe._typing import Floats

_KINDS = {
    nw.String: "text",
    nw.Categorical: "text",
    nw.Enum: "text",
    nw.Boolean: "bool",
    nw.Date: "a date",
    nw.Time: "a time",
}
_GIVE = "Give the map scores of the model that it was fitted on."


def used_columns(the_map: CalibrationMap) -> dict[str, str]:
    """Return the columns that a map reads, each with its role."""
    return dict.fromkeys(the_map.by, "by") | dict.fromkeys(the_map.scores, "score")


def check_names(the_map: CalibrationMap, names: Sequence[str], available: Sequence[Any]) -> None:
    """Raise unless the table has the columns that a map reads, and those that it adds are new, and differ."""
    for column, role in used_columns(the_map).items():
        if column not in available:
            use = f"which the map takes as {'a segment' if role == 'by' else 'its score'}"
            raise ColumnNotFoundError.from_name(column, role=role, available=available, use=use)
    for i, name in enumerate(names):
        if name in available:
            raise ColumnClashError.from_existing(name)
        if name in names[:i]:
            msg = f"two classes of the map make a column {name!r}; they read the same as text, so fit with other names."
            raise ColumnClashError(msg)


def check_expression(score: Any) -> None:
    """Raise unless scores are a polars expression, or None."""
    if score is not None and not isinstance(score, pl.Expr):
        msg = f"score= takes a polars expression, such as pl.col('p'); got {score!r}."
        raise ArgumentError(msg)


def check_types(the_map: CalibrationMap, schema: Mapping[str, Any], *, blank: Collection[str] = ()) -> None:
    """Raise unless columns, by their narwhals types, hold what the map was fitted on; `blank` ones are left alone."""
    for name in the_map.scores:
        if name not in blank:
            _check_score(the_map, name, schema[name])
    for key in the_map.segments.keys:
        wanted = _kind(nw.from_native(key, series_only=True).dtype)
        found = schema[key.name]
        if wanted != _kind(found) and key.name not in blank:
            msg = (
                f"segment column {key.name!r} has type {found}, and the map was fitted on {wanted} ({key.dtype}); cast "
                "it, or no segment would be found."
            )
            raise SegmentError(msg)


def pandas_rows(data: pd.DataFrame, the_map: CalibrationMap) -> pl.DataFrame:
    """Return the columns that a map reads of a pandas frame, each segment column through its few distinct values."""
    scores, keys = list(the_map.scores), list(the_map.by)
    roles = Roles(
        label=scores[0],
        scores=the_map.scores,
        several=False,
        classes=(),
        vector=the_map.vector,
        posterior=(),
        by=the_map.by,
        weight=None,
        time=None,
        time_zone=None,
        positive=None,
        link=the_map.link,
        invalid="raise",
        weight_kind="importance",
    )
    values, codes = {name: name for name in scores}, {name: f"_cf_code{i}" for i, name in enumerate(keys)}
    ready = pandas_ready(data, roles)
    check_types(the_map, nw.from_native(ready).schema, blank=_unknown(ready, the_map))
    frame, levels = coded(ready, roles, values=values, codes=codes)
    rows = frame.collect()
    return pl.DataFrame({name: rows.get_column(name) for name in scores}).with_columns(
        _level_values(levels[name]).gather(rows.get_column(codes[name])).alias(name) for name in keys
    )


def score_matrix(the_map: CalibrationMap, rows: pl.DataFrame) -> Floats:
    """Return the scores of rows, a column for each score column or class; missing ones are NaN."""
    columns = [rows.get_column(name) for name in the_map.scores]
    if the_map.vector:
        columns = _parts(columns[0], the_map)
    if len(columns) == 1 and columns[0].dtype == pl.Float64:
        return columns[0].to_numpy()[:, None]
    out = np.empty((len(columns), rows.height))
    for values, column in zip(out, columns, strict=True):
        values[:] = column.cast(pl.Float64).to_numpy()
    return out.T


def check_scores(the_map: CalibrationMap, scores: Floats, schema: Mapping[str, Any]) -> None:
    """Raise unless scores are what the map was fitted on: probabilities, or logits that can be worked with."""
    if the_map.link == "logit":
        if scores.shape[1] > 1:
            _check_logits(the_map, scores)
        return
    low, high = np.fmin.reduce(scores, axis=0, initial=0.0), np.fmax.reduce(scores, axis=0, initial=1.0)
    for place in np.flatnonzero((low < 0.0) | (high > 1.0)):
        column = scores[:, place]
        raise ScoreError(_outside(_name(the_map, int(place)), column, int(((column < 0.0) | (column > 1.0)).sum())))
    if scores.shape[1] > 1:
        _check_sums(the_map, scores, tolerance_of(the_map, schema))


def tolerance_of(the_map: CalibrationMap, schema: Mapping[str, Any]) -> float:
    """Return how far from 1 the probabilities of a row may add up."""
    parts = [part for name in the_map.scores for part in part_types(schema[name], the_map.classes)]
    return sum_tolerance([*(schema[name] for name in the_map.scores), *parts], classes=len(the_map.classes))


def shares_of(the_map: CalibrationMap, scores: Floats) -> Floats:
    """Return the probabilities of several classes."""
    return softmax(scores.T.copy()).T if the_map.link == "logit" else scores


def _unknown(ready: pd.DataFrame, the_map: CalibrationMap) -> list[str]:
    """Return the columns of a pandas frame whose types tell nothing: objects that can be sorted, vectors, nulls."""
    vectors = the_map.scores if the_map.vector else ()
    keys = [name for name in the_map.by if is_sortable(ready[name]) or ready[name].isna().all()]
    return [*vectors, *keys]


def _level_values(levels: pd.Series[Any]) -> pl.Series:
    if len(levels) == 0:
        return pl.Series([None])
    return to_polars(pd.DataFrame({"key": levels}))["key"]


def _kind(dtype: Any) -> str:
    if dtype.is_numeric():
        return "numbers"
    if isinstance(dtype, nw.Datetime):
        return "times without a zone" if dtype.time_zone is None else "times with a zone"
    return next((kind for made, kind in _KINDS.items() if isinstance(dtype, made)), str(dtype))


def _check_score(the_map: CalibrationMap, name: str, dtype: Any) -> None:
    parts = [dtype]
    if the_map.vector:
        if isinstance(dtype, nw.Struct):
            fields = [field.name for field in dtype.fields]
            missing = [str(one) for one in the_map.classes if str(one) not in fields]
            if missing:
                listed = ", ".join(map(repr, fields))
                msg = (
                    f"score column {name!r} is a struct without a field {missing[0]!r} (one a class); it has {listed}."
                )
                raise ScoreError(msg)
        parts = part_types(dtype, the_map.classes)
    if not parts or not all(part.is_numeric() or isinstance(part, nw.Boolean) for part in parts):
        wanted = f"vectors of {len(the_map.classes)} numbers, one a class" if the_map.vector else "numbers"
        msg = f"score column {name!r} has type {dtype}, and the map was fitted on {wanted}. {_GIVE}"
        raise ScoreError(msg)


def _parts(column: pl.Series, the_map: CalibrationMap) -> list[pl.Series]:
    """Return the parts of a column of vectors."""
    classes = the_map.classes
    if isinstance(column.dtype, pl.Null):
        return [column] * len(classes)
    if isinstance(column.dtype, pl.Struct):
        return [column.struct.field(str(one)) for one in classes]
    vectors = column.cast(pl.List(pl.Float64))
    wrong = int((vectors.list.len() != len(classes)).sum())
    if wrong:
        msg = f"score column {column.name!r} has {counted(wrong)} without {len(classes)} numbers, one a class. {_GIVE}"
        raise ScoreError(msg)
    return [vectors.list.get(i) for i in range(len(classes))]


def _check_logits(the_map: CalibrationMap, scores: Floats) -> None:
    extreme = ((np.abs(scores) > LARGEST_LOGIT) & ~np.isneginf(scores)).any(axis=1) | np.isneginf(scores).all(axis=1)
    if extreme.any():
        msg = (
            f"the logits of a row must lie within ±{LARGEST_LOGIT:g} or be -inf, but not all -inf; {_names(the_map)} "
            f"has {counted(int(extreme.sum()))} where they do not. {_GIVE}"
        )
        raise ScoreError(msg)


def _outside(name: str, column: Floats, wrong: int) -> str:
    said = outside_unit(name, wrong, *(f"{end:g}" for end in (np.fmin.reduce(column), np.fmax.reduce(column))))
    return f"{said} The map was fitted on probabilities: give it those of the same model."


def _check_sums(the_map: CalibrationMap, scores: Floats, tolerance: float) -> None:
    total = scores.sum(axis=1)
    wrong = total[np.abs(total - 1.0) > tolerance]
    if len(wrong):
        msg = (
            f"the probabilities of a row must add up to 1 within {tolerance:.2g}; {_names(the_map)} has "
            f"{counted(len(wrong))} where they do not, from {wrong.min():.7g} to {wrong.max():.7g}. {_GIVE}"
        )
        raise ScoreError(msg)


def _names(the_map: CalibrationMap) -> str:
    return "score " + ", ".join(map(repr, the_map.scores))


def _name(the_map: CalibrationMap, place: int) -> str:
    return the_map.scores[0 if the_map.vector else place]
