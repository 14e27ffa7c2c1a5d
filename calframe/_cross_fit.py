"""The verb `cross_fit`: calibrated scores from maps that have not seen the row."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl

from calframe._errors import ArgumentError, ColumnClashError, warn
from calframe._folds import Folds
from calframe._out_of_fold import added_columns, checked_roles, folded_table, in_memory, opened_table, out_of_fold
from calframe._source import opened
from calframe._typing import Names


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

    Where the model itself was trained once for each fold, without it, new rows have one score from each of these
    models. Fit one map a fold, on the scores of the model that has not seen it, and take the mean of what the maps make
    of the models' scores: see the second example. It is what scikit-learn's ``CalibratedClassifierCV`` does by default,
    where ``method="sigmoid"`` is platt with ``target_smoothing=True``, on logits by ``link="logit"``.

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

    Two new rows, scored by each of three models, and the mean of their calibrated scores:

    >>> flights = flights.with_columns(fold=pl.int_range(pl.len()) % 3)
    >>> maps = calframe.fit(flights, label="y", score="p", method="platt", by="fold", pooling="none")
    >>> new = pl.DataFrame({"row": [0, 0, 0, 1, 1, 1], "fold": [0, 1, 2] * 2, "p": [0.1, 0.2, 0.1, 0.4, 0.5, 0.6]})
    >>> maps.apply(new).group_by("row", maintain_order=True).agg(pl.col("p_calibrated").mean().round(3))
    shape: (2, 2)
    ┌─────┬──────────────┐
    │ row ┆ p_calibrated │
    │ --- ┆ ---          │
    │ i64 ┆ f64          │
    ╞═════╪══════════════╡
    │ 0   ┆ 0.253        │
    │ 1   ┆ 0.398        │
    └─────┴──────────────┘
    """
    plan = Folds.from_arguments(folds, group=group, time=time, rng=rng)
    arguments = {"label": label, "score": score, "method": method, "by": by, **options}
    roles = checked_roles("cross_fit", data, arguments)
    _check_name(name)
    names = added_columns(roles, arguments, name)
    if isinstance(data, pl.LazyFrame):
        plan.check_columns(opened(data).collect_schema())
        opened_table(data, roles)
        schema: dict[str, Any] = dict(data.collect_schema())
        _check_new(names, schema)
        return data.map_batches(
            lambda frame: _crossed(frame, plan, arguments, names),
            schema=schema | dict.fromkeys(names, pl.Float64()),
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
        )
    _check_new(names, in_memory("cross_fit", data).columns)
    return _crossed(data, plan, arguments, names)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        msg = f"name= takes the name of the new column; got {name!r}."
        raise ArgumentError(msg)


def _check_new(names: list[str], available: Collection[str]) -> None:
    for name in names:
        if name in available:
            raise ColumnClashError.from_existing(name)


def _crossed(data: Any, plan: Folds, arguments: Mapping[str, Any], names: list[str]) -> Any:
    frame = in_memory("cross_fit", data)
    found = out_of_fold(folded_table(frame, plan, arguments), arguments)
    if found.without:
        others = "earlier" if plan.time is not None else "other"
        has = "1 row has" if found.without == 1 else f"{found.without:,} rows have"
        warn(f"{has} no calibrated score, because there are no rows of {others} folds to fit a map on.")
    columns = dict(zip(names, found.columns, strict=True))
    if isinstance(data, pd.DataFrame):
        return data.assign(**columns)
    series = [nw.new_series(name, values, nw.Float64, backend=frame.implementation) for name, values in columns.items()]
    known = [nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name) for name in names]
    return frame.with_columns(*series).with_columns(*known).to_native()
