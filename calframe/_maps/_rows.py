"""A map as a tidy table: one row per segment and parameter or knot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from calframe._columns import exact_column
from calframe._maps._forms import Curve, Form, Linear, OneVersusRest, Pair, Points, Softmax, Spline
from calframe._maps._segments import Segments

RESERVED = frozenset(
    {"n", "class", "parameter", "x", "value", "sd", "note", "largest_change", "summary"}
    | {"n_missing", "n_below", "n_above"}  # of `reach`
)
_COLUMNS = {
    "_cf_curve": pl.Int64,
    "class": pl.String,
    "parameter": pl.String,
    "x": pl.Float64,
    "value": pl.Float64,
    "sd": pl.Float64,
}


def map_table(form: Form, segments: Segments, classes: Sequence[Any], *, n: int, note: str | None) -> pl.DataFrame:
    """Return the rows of a map, those of the pooled one first."""
    curves = _rows_of(form, classes).with_columns(pl.col("x", "value", "sd").fill_nan(None))
    if not isinstance(form, OneVersusRest):
        curves = curves.drop("class")
    pooled = {key.name: pl.Series(key.name, [None], dtype=key.dtype) for key in segments.keys}
    own = {key.name: key for key in segments.keys}
    rows = {
        "n": pl.Series([n, *segments.n.tolist()], dtype=pl.Int64),
        "_cf_curve": pl.Series([0, *segments.curve.tolist()], dtype=pl.Int64),
        "note": pl.Series([note, *segments.note], dtype=pl.String),
    }
    keys = {name: pl.concat([pooled[name], own[name]]) for name in own}
    found = pl.DataFrame(keys | rows).with_row_index("_cf_row")
    fallen = (pl.col("_cf_curve") == 0) & (
        pl.col("_cf_row") > 0
    )  # those take the pooled map, and have no rows of their own
    found = found.with_columns(_cf_curve=pl.when(~fallen).then(pl.col("_cf_curve")))
    joined = found.join(curves, on="_cf_curve", how="left", maintain_order="left_right")
    return joined.select(
        *map(exact_column, keys), "n", *(name for name in curves.columns if name != "_cf_curve"), "note"
    )


def _rows_of(form: Form, classes: Sequence[Any]) -> pl.DataFrame:
    if isinstance(form, OneVersusRest):
        parts = [
            _curve_rows(curve).with_columns(pl.lit(str(name)).alias("class"))
            for name, curve in zip(classes, form.classes, strict=True)
        ]
        return pl.concat(parts).select(*_COLUMNS)
    return _softmax_rows(form, classes) if isinstance(form, Softmax) else _curve_rows(form)


def _curve_rows(curve: Curve) -> pl.DataFrame:
    if isinstance(curve, Linear):
        return _linear_rows(curve)
    if isinstance(curve, Pair):
        return pl.concat([_knot_rows(curve.low, "low knot"), _knot_rows(curve.high, "high knot")])
    return _knot_rows(curve, "knot")


def _linear_rows(curve: Linear) -> pl.DataFrame:
    many, names = len(curve), curve.names or ("identity",)
    size = len(names)
    nothing = np.full(many * size, np.nan)
    rows = _frame(
        _cf_curve=np.repeat(np.arange(many), size),
        parameter=list(names) * many,
        x=nothing,
        value=curve.values.T.ravel() if curve.names else nothing,
        sd=curve.errors.T.ravel() if curve.names else nothing,
    )
    return rows if curve.base is None else pl.concat([rows, _knot_rows(curve.base, "knot")])


def _knot_rows(curve: Points | Spline, name: str) -> pl.DataFrame:
    if isinstance(curve, Spline) or curve.scale == "logit":
        name = f"logit {name}"
    return _frame(
        _cf_curve=np.repeat(np.arange(len(curve)), curve.sizes),
        parameter=[name] * len(curve.x),
        x=curve.x,
        value=curve.y,
        sd=np.full(len(curve.x), np.nan),
    )


def _softmax_rows(softmax: Softmax, classes: Sequence[Any]) -> pl.DataFrame:
    many = len(softmax)
    if softmax.temperature is not None:
        names, values = ["temperature"], softmax.temperature[:, None]
    else:
        names = [f"W[{i}, {j}]" for i in classes for j in classes] + [f"b[{i}]" for i in classes]
        values = np.hstack([softmax.weight.reshape(many, -1), softmax.shift])
    if softmax.cooling is not None and softmax.uniform is not None:
        names = ["temperature", "uniform", *names]
        values = np.hstack([softmax.cooling[:, None], softmax.uniform[:, None], values])
    nothing = np.full(values.size, np.nan)
    errors = nothing if softmax.errors is None else softmax.errors
    curve = np.repeat(np.arange(many), len(names))
    return _frame(_cf_curve=curve, parameter=names * many, x=nothing, value=values.ravel(), sd=errors)


def _frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame(columns | {"class": [None] * len(columns["parameter"])}, schema_overrides=_COLUMNS).select(
        *_COLUMNS
    )
