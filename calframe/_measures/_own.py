"""Metrics that users add: a mean over rows, or any function of sums over rows."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, get_args

import narwhals.stable.v2 as nw
import numpy as np

from calframe._errors import ArgumentError
from calframe._kernels import _intervals
from calframe._kernels._binned import effective_rows, ratio
from calframe._kernels._delta import slopes, squared_parts
from calframe._registry import Cells, Metric, Row, Term
from calframe._terms import products
from calframe._typing import Direction, Floats

_OWN: dict[str, Metric] = {}
_ONE_ROW = 1.0 + 1e-9  # effective rows, to rounding


def own_metrics() -> Mapping[str, Metric]:
    """Return the metrics that were registered, by name."""
    return MappingProxyType(_OWN)


def add_metric(metric: Metric, *, taken: Mapping[str, Metric], replace: bool) -> None:
    """Add a metric, unless its name is taken."""
    name = metric.name
    if name in taken:
        msg = f"{name!r} is the name of a metric that ships with calframe; choose another one."
        raise ArgumentError(msg)
    if name in _OWN and not replace:
        msg = f"a metric {name!r} has been registered already; pass replace=True to put this one in its place."
        raise ArgumentError(msg)
    _OWN[name] = metric


def mean_metric(name: str, row: Term, **about: Any) -> Metric:
    """Return the metric that is the weighted mean of a value of each row."""
    return sums_metric(name, {"value": row}, lambda sums: ratio(sums["value"], sums["weight"]), **about)


def sums_metric(
    name: str, terms: Mapping[str, Term], value: Callable[[Mapping[str, Floats]], Floats], **about: Any
) -> Metric:
    """Return the metric that is a function of weighted sums over the rows of a segment."""
    _check_name(name)
    _check_direction(about.get("direction", "none"))
    own = {f"{name}:{term}": partial(_weighted, row) for term, row in terms.items()}
    names = ["w", *own]
    squares = products(names, own)
    short = {f"{name}:{term}": term for term in terms}

    def finished(sums: Mapping[str, Floats]) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = value({short.get(term, "weight"): total for term, total in sums.items()})
        return np.where(sums["w"] > 0, np.asarray(found, dtype=np.float64), np.nan)

    return Metric(
        name=name,
        reads="sums",
        terms=tuple(own),
        value=lambda cells: finished({term: cells.total(term) for term in names}),
        interval=partial(_delta_interval, finished, names, (about["low"], about["high"])),
        interval_terms=tuple(squares),
        own_terms={**own, **squares},
        undefined=about.pop("undefined", "") or "not defined here",
        **about,
    )


def _weighted(value: Term, row: Row) -> Any:
    """Return a value times the weight: 0 on a row that is not used, whatever the value says of it."""
    found = value(row).cast(nw.Float64).fill_null(math.nan)
    return nw.when(row.used == 1.0).then(row.times(found)).otherwise(0.0)


def _delta_interval(
    value: Callable[[Mapping[str, Floats]], Floats],
    names: list[str],
    bounds: tuple[float, float],
    cells: Cells,
    level: float,
) -> tuple[Floats, Floats]:
    """Return the normal interval of a function of sums, its variance by the delta method; NaN for a single row.

    With ``g`` the gradient at the sums and ``x_i`` what row i adds to them, the variance is ``sum_i (g . x_i)^2`` times
    ``n / (n - 1)``: a function that does not change when all weights are doubled needs no centring.
    """
    sums = {name: cells.total(name) for name in names}
    at = value(sums)
    at = np.where(np.isfinite(at), at, np.nan)
    slope = slopes(value, sums, names)
    variance = squared_parts(slope, {product: cells.total(product) for product in products(names, {})})
    rows = effective_rows(sums["w"], cells.total("w*w"))
    several = rows > _ONE_ROW
    variance = np.where(several, variance * rows / np.where(several, rows - 1.0, 1.0), np.nan)
    with np.errstate(invalid="ignore"):
        half = _intervals.normal_quantile(level) * np.sqrt(np.maximum(variance, 0.0))
    return np.maximum(at - half, np.minimum(bounds[0], at)), np.minimum(at + half, np.maximum(bounds[1], at))


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        msg = f"name must be a name as of a column or variable, such as 'absolute_error'; got {name!r}."
        raise ArgumentError(msg)


def _check_direction(direction: Any) -> None:
    if direction not in get_args(Direction):
        raise ArgumentError.from_choice("direction", direction, get_args(Direction))
