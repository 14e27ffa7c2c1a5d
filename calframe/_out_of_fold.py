"""Tables calibrated fold by fold, by maps that have not seen the row: what `cross_fit` and `validate` share."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._errors import ArgumentError, EmptyTableError
from calframe._fit import fit
from calframe._folds import Folds
from calframe._maps._applying import new_columns
from calframe._metrics import metrics
from calframe._roles import Roles
from calframe._rows import wrong_vector
from calframe._source import opened
from calframe._table import Table, extreme_logit, open_table
from calframe._typing import Bools, Floats

_FREE = "_cf_out_of_fold"


def checked_roles(verb: str, data: Any, arguments: Mapping[str, Any]) -> Roles:
    """Return what the columns are by the arguments of a fit; what `fit` does not take raises as if `verb` said so."""
    try:
        inspect.signature(fit).bind(data, **arguments)
    except TypeError as error:
        msg = f"{verb}() {error}"
        raise TypeError(msg) from None
    return _roles(arguments)


def roles_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a fit that say what the columns of the table are."""
    return {name: value for name, value in arguments.items() if name in _ROLES}


_ROLES = inspect.signature(fit).parameters.keys() & inspect.signature(Roles.from_arguments).parameters.keys()


def _roles(arguments: Mapping[str, Any]) -> Roles:
    return Roles.from_arguments(**roles_of(arguments))


def in_memory(verb: str, data: Any) -> nw.DataFrame[Any]:
    """Return a table that is in memory as narwhals opens it, or raise."""
    frame = opened(data)
    if not isinstance(frame, nw.DataFrame):
        msg = (
            f"{verb}() needs the rows in memory or a polars LazyFrame; got {type(data).__name__}. Collect it first, "
            "for example relation.pl() of DuckDB."
        )
        raise ArgumentError(msg)
    return frame


def added_columns(roles: Roles, arguments: Mapping[str, Any], name: str) -> list[str]:
    """Return the columns that calibrating out of fold adds."""
    if roles.multiclass:
        return [f"{name}_{one}" for one in roles.classes]
    return [name, f"{name}_low", f"{name}_high"] if arguments["method"] == "venn_abers" else [name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldedTable:
    """A table in memory that has been checked, and how its rows are split.

    Attributes
    ----------
    frame : narwhals.DataFrame
        The table, with 1 and 0 in the place of named labels: a fold may have none of the positive value.
    roles : dict of str to object
        The arguments of a fit that say what its columns are, `by` aside.
    usable : ndarray of bool
        The rows whose scores a map can be applied to.
    folds : list of (ndarray of bool, ndarray of bool)
        The rows to fit on and those to calibrate, fold after fold.
    """

    frame: nw.DataFrame[Any]
    roles: Mapping[str, Any]
    usable: Bools
    folds: list[tuple[Bools, Bools]]


def folded_table(frame: nw.DataFrame[Any], plan: Folds, arguments: Mapping[str, Any]) -> FoldedTable:
    """Check a table in memory and split its rows."""
    folds = list(plan.split(frame))
    table = opened_table(frame.to_native(), _roles(arguments))
    roles = {**roles_of(arguments), "by": None}
    _check_values(frame.to_native(), roles)
    if table.label.mode == "values":
        frame, roles = _with_binary_label(frame, table), {**roles, "positive": None}
    del roles["by"]
    return FoldedTable(frame=frame, roles=roles, usable=_usable(table), folds=folds)


def _check_values(data: Any, roles: Mapping[str, Any]) -> None:
    """Raise if labels, scores or weights are wrong.

    A fit would, too, but of a part of the rows: here errors count all rows, not those of a fold. Any metric will do.
    """
    metrics(data, metrics="accuracy", **roles)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutOfFold:
    """Calibrated scores of maps that have not seen the row.

    Attributes
    ----------
    columns : list of ndarray
        What maps give, as `new_columns` names it; NaN where there is no map or no score.
    without : int
        Rows for which no map could be fitted.
    maps, pooled : int
        The maps, and those of them that are the same for all segments.
    """

    columns: list[Floats]
    without: int
    maps: int
    pooled: int


def out_of_fold(table: FoldedTable, arguments: Mapping[str, Any]) -> OutOfFold:
    """Calibrate a table fold by fold."""
    arguments = {**arguments, **table.roles}
    roles = _roles(arguments)
    used = list(roles.columns())
    columns = [np.full(len(table.frame), np.nan) for _ in added_columns(roles, arguments, _FREE)]
    without, poolings = 0, []
    for fitted_on, calibrated in table.folds:
        rows = np.flatnonzero(calibrated & table.usable)
        try:
            the_map = fit(table.frame[np.flatnonzero(fitted_on), used].to_native(), **arguments)
        except EmptyTableError:  # there are earlier or other folds, but no label in them, say
            without += len(rows)
            continue
        poolings.append(the_map.pooling)
        out = opened(the_map.apply(table.frame[rows, used].to_native(), name=_FREE))
        for values, name in zip(
            columns, new_columns(the_map, _FREE), strict=False
        ):  # where a map of all rows stands in, it has no interval
            values[rows] = out.get_column(name).cast(nw.Float64).to_numpy()
    if without == table.usable.sum():
        msg = "no fold leaves a row to fit a map on; see whether label, score or weight are missing in all rows."
        raise EmptyTableError(msg)
    return OutOfFold(columns=columns, without=without, maps=len(poolings), pooled=poolings.count("complete"))


def opened_table(data: Any, roles: Roles) -> Table:
    """Check the columns that a fit would read."""
    return open_table(data, roles, view="vectors" if roles.classes else "score")


def usable_rows(frame: nw.DataFrame[Any], roles: Roles) -> Bools:
    """Return the rows whose scores a map can be applied to: with ``invalid="drop"`` the others stay without."""
    return _usable(opened_table(frame.to_native(), roles))


def _usable(table: Table) -> Bools:
    if table.roles.invalid == "raise":
        return np.ones(len(opened(table.native)), dtype=bool)
    share = nw.col("_cf_share")
    if table.classes is not None:
        wrong = wrong_vector(table)
    else:
        wrong = (share < 0.0) | (share > 1.0)
        wrong = wrong | extreme_logit(nw.col("_cf_score")) if table.roles.link == "logit" else wrong
    found = table.collect(table.raw.select(wrong.fill_null(value=False).alias("_cf_wrong")))
    usable: Bools = ~found.get_column("_cf_wrong").to_numpy().astype(bool)
    return usable


def _with_binary_label(frame: nw.DataFrame[Any], table: Table) -> nw.DataFrame[Any]:
    """Put 1 and 0 in the place of named labels, and NaN where there is none."""
    label = nw.col("_cf_label")
    number = nw.when(table.label.is_positive(label)).then(1.0).otherwise(0.0)
    known = nw.when(table.label.present(label)).then(number).otherwise(float("nan"))
    values = table.collect(table.raw.select(known.alias("_cf_known"))).get_column("_cf_known").to_numpy()
    name = str(table.roles.label)
    return frame.with_columns(nw.new_series(name, values, nw.Float64, backend=frame.implementation))
