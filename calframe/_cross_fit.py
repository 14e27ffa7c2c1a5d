"""The verb `cross_fit`: calibrated scores from maps that have not seen the row."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl

from calframe._errors import ArgumentError, ColumnClashError, EmptyTableError, warn
from calframe._fit import fit
from calframe._folds import Folds
from calframe._maps._applying import new_columns
from calframe._metrics import metrics
from calframe._roles import Roles
from calframe._rows import wrong_vector
from calframe._source import opened
from calframe._table import Table, extreme_logit, open_table
from calframe._typing import Bools, Floats, Names


def cross_fit(
    data: Any,
    *,
    label: str,
    score: str | Mapping[Any, str],
    method: str = "beta",
    by: Names | None = None,
    folds: int | str = 5,
    group: str | None = None,
    time: str | None = None,
    rng: int | np.random.Generator | None = 0,
    name: str = "p_calibrated",
    **options: Any,
) -> Any:
    """Return a table with calibrated scores, each from a map fitted on other rows.

    Every number of calibration that is judged on the rows a map was fitted on is too good. Here rows are split into
    folds, and each fold is calibrated by a map of the others; all of the fit, pooling included, is done anew.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, a pyarrow Table, or a polars LazyFrame, which stays lazy.
    label, score, method, by
        As in `calframe.fit`.
    folds : int or str, default 5
        The number of folds, or the column that names the fold of each row.
    group : str, optional
        A column whose rows stay together in one fold: rows of the same person, say.
    time : str, optional
        A column of dates or numbers by which rows are ordered into folds, equal times together; each is then calibrated
        by a map of the earlier ones. The first fold has none, and null.
    rng : int, Generator or None, default 0
        The seed of random folds.
    name : str, default "p_calibrated"
        The column to add, as in `calframe.apply`.
    **options
        Further arguments of `calframe.fit`, such as ``pooling``, ``weight`` or ``parameters``.

    Returns
    -------
    table
        Of the same kind, rows in the same order.

    Notes
    -----
    Rows without a label are calibrated, too; without a score, or with one that ``invalid="drop"`` leaves out, they get
    null. A fold for which no other (by time, no earlier) row can be fitted on gets null, and a warning counts its rows.
    For new rows use the map of all rows, ``calframe.fit(data, ...)``.

    Raises
    ------
    CalframeError
        If columns, labels, scores, folds or arguments are not what they must be; of a LazyFrame what needs values comes
        when it is collected.

    References
    ----------
    Platt, J. (1999). Probabilistic outputs for support vector machines and comparisons to regularized likelihood
    methods. Advances in Large Margin Classifiers, 61-74.

    Examples
    --------
    Scores that were squared by mistake, put right by maps that have not seen the row:

    >>> import calframe
    >>> import polars as pl
    >>> flights = calframe.demo_table().with_columns(p=pl.col("p_gbm") ** 2)
    >>> found = calframe.cross_fit(flights, label="y", score="p", method="isotonic")
    >>> gaps = calframe.metrics(found, label="y", score=["p", "p_calibrated"], metrics="gap")
    >>> gaps.select("model", gap=pl.col("gap").round(3))
    shape: (2, 2)
    ┌──────────────┬────────┐
    │ model        ┆ gap    │
    │ ---          ┆ ---    │
    │ str          ┆ f64    │
    ╞══════════════╪════════╡
    │ p            ┆ -0.085 │
    │ p_calibrated ┆ 0.0    │
    └──────────────┴────────┘
    """
    plan = Folds.from_arguments(folds, group=group, time=time, rng=rng)
    arguments = {"label": label, "score": score, "method": method, "by": by, **options}
    inspect.signature(fit).bind(data, **arguments)
    names = _new_columns(arguments, name)
    if isinstance(data, pl.LazyFrame):
        plan.check_columns(opened(data).collect_schema())
        _opened(data, arguments)
        schema: dict[str, Any] = dict(data.collect_schema())
        _check_new(names, schema)
        return data.map_batches(
            lambda frame: _crossed(frame, plan, arguments, names),
            schema=schema | dict.fromkeys(names, pl.Float64()),
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
        )
    _check_new(names, in_memory(data).columns)
    return _crossed(data, plan, arguments, names)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutOfFold:
    """Calibrated scores of maps that have not seen the row.

    Attributes
    ----------
    columns : list of ndarray
        What maps give, as `new_columns` names it; NaN where there is no map or no score.
    without : int
        Rows for which no map could be fitted.
    """

    columns: list[Floats]
    without: int


def out_of_fold(data: Any, plan: Folds, arguments: Mapping[str, Any]) -> OutOfFold:
    """Calibrate a table in memory fold by fold."""
    frame = in_memory(data)
    folds = list(plan.split(frame))
    table = _opened(data, arguments)
    metrics(data, metrics="accuracy", **{**roles_of(arguments), "by": None})  # errors then count all rows, not a fold's
    usable = _usable(table)
    if table.label.mode == "values":  # a fold may have none of the positive value: 0 and 1 need no other
        frame, arguments = _with_binary_label(frame, table), {**arguments, "positive": None}
    columns = [np.full(len(frame), np.nan) for _ in _new_columns(arguments, _FREE)]
    without = 0
    for fitted_on, calibrated in folds:
        rows = calibrated & usable
        try:
            the_map = fit(frame.filter(fitted_on.tolist()).to_native(), **arguments)
        except EmptyTableError:  # there are earlier or other folds, but no label in them, say
            without += int(rows.sum())
            continue
        out = opened(the_map.apply(frame.filter(rows.tolist()).to_native(), name=_FREE))
        for values, name in zip(columns, new_columns(the_map, _FREE), strict=False):  # a stand-in has no interval
            values[rows] = out.get_column(name).cast(nw.Float64).to_numpy()
    if without == usable.sum():
        msg = "no fold leaves a row to fit a map on; see whether label, score or weight are missing in all rows."
        raise EmptyTableError(msg)
    return OutOfFold(columns=columns, without=without)


_FREE = "_cf_out_of_fold"


def in_memory(data: Any) -> nw.DataFrame[Any]:
    """Return a table that is in memory as narwhals opens it, or raise."""
    frame = opened(data)
    if not isinstance(frame, nw.DataFrame):
        msg = (
            f"cross-fitting needs the rows in memory or a polars LazyFrame; got {type(data).__name__}. Collect it "
            "first, for example relation.pl() of DuckDB."
        )
        raise ArgumentError(msg)
    return frame


def _crossed(data: Any, plan: Folds, arguments: Mapping[str, Any], names: list[str]) -> Any:
    found = out_of_fold(data, plan, arguments)
    if found.without:
        others = "earlier" if plan.time is not None else "other"
        has = "1 row has" if found.without == 1 else f"{found.without:,} rows have"
        warn(f"{has} no calibrated score, because there are no rows of {others} folds to fit a map on.")
    columns = dict(zip(names, found.columns, strict=True))
    if isinstance(data, pd.DataFrame):
        return data.assign(**columns)
    frame = opened(data)
    series = [nw.new_series(name, values, nw.Float64, backend=frame.implementation) for name, values in columns.items()]
    known = [nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name) for name in names]
    return frame.with_columns(*series).with_columns(*known).to_native()


def roles_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a fit that say what the columns of the table are."""
    return {name: value for name, value in arguments.items() if name in _ROLES}


_ROLES = inspect.signature(fit).parameters.keys() & inspect.signature(Roles.from_arguments).parameters.keys()


def _opened(data: Any, arguments: Mapping[str, Any]) -> Table:
    """Check the columns that a fit would read."""
    roles = Roles.from_arguments(**roles_of(arguments))
    return open_table(data, roles, view="vectors" if roles.classes else "score")


def usable_rows(data: Any, arguments: Mapping[str, Any]) -> Bools:
    """Return the rows whose scores a map can be applied to: with ``invalid="drop"`` the others stay without."""
    return _usable(_opened(in_memory(data).to_native(), arguments))


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


def _new_columns(arguments: Mapping[str, Any], name: Any) -> list[str]:
    """Return the columns that cross-fitting adds."""
    if not isinstance(name, str) or not name:
        msg = f"name= takes the name of the new column; got {name!r}."
        raise ArgumentError(msg)
    score = arguments["score"]
    classes = list(score) if isinstance(score, Mapping) else list(arguments.get("classes") or ())
    if len(classes) > 2:
        return [f"{name}_{one}" for one in classes]
    return [name, f"{name}_low", f"{name}_high"] if arguments["method"] == "venn_abers" else [name]


def _check_new(names: list[str], available: Collection[str]) -> None:
    for name in names:
        if name in available:
            raise ColumnClashError.from_existing(name)
