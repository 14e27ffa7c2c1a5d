"""The verb `metrics`: one tidy row per segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import (
    Column,
    closed_frame,
    count_columns,
    count_types,
    polars_schema,
    warn_empty_categories,
)
from calframe._errors import warn
from calframe._kernels._intervals import rate_interval
from calframe._metrics_builtin import chosen_metrics, effective_rows, rate, reserved_names
from calframe._options import check_clip, check_interval, check_level, check_strategy
from calframe._registry import Cells, Metric
from calframe._roles import Roles, WeightKind
from calframe._table import Table, open_table
from calframe._typing import Closed, Floats, Invalid, Link, Names, RateInterval, Strategy


def metrics(
    data: Any,
    *,
    label: str,
    score: Names,
    by: Names | None = None,
    weight: str | None = None,
    metrics: Names | None = None,
    bins: int | Sequence[float] = 15,
    strategy: Strategy = "uniform",
    closed: Closed = "left",
    confidence_level: float | None = None,
    interval: RateInterval | None = None,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    clip: float | None = None,
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Any:
    """Measure how well scores agree with outcomes, one row per segment.

    Answers "how far off are the scores, here and there, and how far off would right ones look by chance?". The table
    is reduced by one aggregate that runs on its own engine; only segments x bins sums reach Python.

    Parameters
    ----------
    data : table
        A pandas or polars DataFrame, a polars LazyFrame, a pyarrow Table, or a table that narwhals opens lazily
        (DuckDB, PySpark, Dask, Ibis); one row per prediction. It is never changed.
    label : str
        Column of the outcome: bool, 0/1, -1/+1, or any two values with `positive`.
    score : str or list of str
        Column of the probability of the positive class; a list compares several models.
    by : str or list of str, optional
        Segment columns. By default the whole table is one segment. Missing values are a segment of their own, last.
    weight : str, optional
        Column of row weights, 0 or more. Weight 2 is the row twice, weight 0 is no row.
    metrics : str or list of str, optional
        Names of metrics (see Notes), or ``"all"``. Default: rate, mean_score, gap, brier, log_loss, ece, ece_expected.
    bins : int or list of float, default 15
        Number of bins of equal width on [0, 1], or their edges; scores outside given edges are an error.
    strategy : {"uniform"}, default "uniform"
        How a number of bins is placed.
    closed : {"left", "right"}, default "left"
        The side of a bin that belongs to it. ``"left"``: [0, 1/M), ..., the last bin closed on both sides.
        Edges are k / M exactly; for a float32 column they are first rounded to float32.
    confidence_level : float, optional
        Level in (0, 1) of intervals ``<metric>_low`` and ``<metric>_high`` beside each metric, null where none is
        known. Rate: see `interval`. Gap and ratio mirror the Wilson interval of the rate, with the scores held fixed.
        Brier: normal interval with added rows of either class. With weights, at (sum w)^2 / sum w^2 rows.
    interval : {"wilson", "clopper_pearson", "jeffreys"}, optional
        Interval of the rate; Wilson by default.
    positive : object, optional
        The label value that counts as positive.
    link : {"probability", "logit"}, default "probability"
        What the score columns hold. From logits the log loss is exact where the probability rounds to 0 or 1.
    invalid : {"raise", "drop"}, default "raise"
        Scores outside [0, 1] and negative or infinite weights are an error, or left out and counted in ``n_invalid``.
    clip : float, optional
        Keep scores this far from 0 and 1 in log_loss. By default nothing is clipped: the log loss is infinite where
        it is infinite, with one warning.
    weight_kind : {"importance", "frequency"}, default "importance"
        What weights mean in intervals and chance levels: variances use the sum of squared weights, or weight 2 is
        two independent rows (whole numbers only).
    engine : optional
        Engine that polars collects an eager polars frame with.

    Returns
    -------
    table
        In the library of `data` (polars for remote engines; a LazyFrame for a LazyFrame, with nothing read before
        its ``collect()``). Sorted by key, columns:

        the keys
            As in `data`; categories as text, whole-valued floats as Int64.
        model : str
            With several scores, the score column.
        n, n_missing : int64
            Rows used, and rows without label, score or weight. Rows of weight 0 are in neither, but in the note.
        n_invalid : int64
            With ``invalid="drop"``, rows left out.
        weight_sum : float64
            With `weight`, the weight of the rows used.
        the metrics : float64
            In the order asked; null where undefined.
        note : str
            What is missing or undefined, and why; null where there is nothing to say.

    Raises
    ------
    CalframeError
        ColumnNotFoundError, ColumnClashError, LabelError, ScoreError, WeightError, SegmentError, EmptyTableError or
        ArgumentError. Each names the column, the value seen and what to do. For a polars LazyFrame, those that need
        values come at ``collect()``.

    Notes
    -----
    ============  ===========  ============  ==================================================================
    metric        range        better        what it is
    ============  ===========  ============  ==================================================================
    rate          0 to 1                     observed rate of positives
    mean_score    0 to 1                     mean score
    gap           -1 to 1      0             mean score minus rate
    ratio         0 to inf     1             mean score divided by rate
    accuracy      0 to 1       higher        share of rows on the right side of 0.5; 0.5 predicts positive
    brier         0 to 1       lower         mean of (score - label)^2
    brier_skill   -inf to 1    higher        1 - brier / (rate (1 - rate))
    log_loss      0 to inf     lower         mean of -ln(probability of what happened), in nats
    ece           0 to 1       lower         sum over bins of weight share times absolute gap
    mce           0 to 1       lower         largest absolute gap of a bin
    rmsce         0 to 1       lower         root of the weighted mean square gap over bins
    ace           0 to 1       lower         mean absolute gap over non-empty bins
    ece_expected  0 to 1                     the ece that right scores would show by chance, in closed form
    sharpness     0 to 0.25                  variance of the scores
    ============  ===========  ============  ==================================================================

    The ece of right scores is not 0 but `ece_expected`, which shrinks with the number of rows: read them together.
    In a bin the positives of right scores follow a Binomial matched to their mean and variance, exact where its
    scores are equal; its mean absolute deviation has De Moivre's closed form.

    References
    ----------
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78, 1-3.
    https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

    Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
    binning. AAAI 29, 2901-2907. https://doi.org/10.1609/aaai.v29i1.9602

    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> flights = pl.DataFrame({"carrier": ["AA", "AA", "UA", "UA"], "late": [1, 0, 1, 0], "p": [0.8, 0.4, 0.5, 0.5]})
    >>> calframe.metrics(flights, label="late", score="p", by="carrier", metrics=["rate", "gap", "brier"])
    shape: (2, 7)
    ┌─────────┬─────┬───────────┬──────┬─────┬───────┬──────┐
    │ carrier ┆ n   ┆ n_missing ┆ rate ┆ gap ┆ brier ┆ note │
    │ ---     ┆ --- ┆ ---       ┆ ---  ┆ --- ┆ ---   ┆ ---  │
    │ str     ┆ i64 ┆ i64       ┆ f64  ┆ f64 ┆ f64   ┆ str  │
    ╞═════════╪═════╪═══════════╪══════╪═════╪═══════╪══════╡
    │ AA      ┆ 2   ┆ 0         ┆ 0.5  ┆ 0.1 ┆ 0.1   ┆ null │
    │ UA      ┆ 2   ┆ 0         ┆ 0.5  ┆ 0.0 ┆ 0.25  ┆ null │
    └─────────┴─────┴───────────┴──────┴─────┴───────┴──────┘
    """
    asked = chosen_metrics(metrics)
    check_strategy(strategy)
    check_level(confidence_level)
    check_interval(interval, confidence_level)
    check_clip(clip)
    roles = Roles.from_arguments(
        label=label,
        score=score,
        by=by,
        weight=weight,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
    )
    binned = Bins.from_argument(bins, closed=closed)
    used_bins = binned if any(metric.binned for metric in asked) else None
    table = open_table(data, roles, reserved=reserved_names(), bins=used_bins)
    terms = _terms(asked, intervals=confidence_level is not None)

    def finish(cells: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        groups = read_groups(table, cells, terms)
        warn_empty_categories(table, groups)
        values = _values(groups, asked, confidence_level, interval)
        _warn_infinite(groups, terms)
        note: Column = notes(groups, asked, confidence_level)
        return closed_frame(table, groups, {**count_columns(table, groups), **values, "note": note})

    plan = cells_plan(table, terms, bins=used_bins, clip=clip)
    return table.summarise(plan, finish, schema=lambda: _schema(table, asked, confidence_level), engine=engine)


def notes(groups: Groups, asked: Sequence[Metric], level: float | None) -> list[str | None]:
    """Say per segment what is missing or undefined; None where there is nothing to say."""
    parts: list[list[str]] = [[] for _ in range(len(groups))]
    empty = groups.n == 0
    for i in np.flatnonzero(empty):
        parts[i].append("no usable rows")
    for i in np.flatnonzero(groups.n_zero > 0):
        parts[i].append(f"{groups.n_zero[i]} row{'s' if groups.n_zero[i] > 1 else ''} of weight 0 left out")
    for metric in asked:
        if metric.undefined:
            for i in np.flatnonzero(np.isnan(metric.value(groups.cells)) & ~empty):
                parts[i].append(f"{metric.name}: {metric.undefined}")
    without = [metric.name for metric in asked if level is not None and metric.interval is None]
    if without:
        for part in parts:
            part.append(f"no interval for {', '.join(without)}")
    return ["; ".join(part) or None for part in parts]


def _terms(asked: Sequence[Metric], *, intervals: bool) -> tuple[str, ...]:
    terms: dict[str, None] = {}
    for metric in asked:
        terms |= dict.fromkeys(metric.terms)
        if intervals and metric.interval is not None:
            terms |= dict.fromkeys(metric.interval_terms)
    return tuple(terms)


def _values(
    groups: Groups, asked: Sequence[Metric], level: float | None, interval: RateInterval | None
) -> dict[str, Column]:
    values: dict[str, Column] = {}
    for metric in asked:
        values[metric.name] = metric.value(groups.cells)
        if level is not None:
            low, high = _ends(metric, groups.cells, level, interval)
            values |= {f"{metric.name}_low": low, f"{metric.name}_high": high}
    return values


def _ends(metric: Metric, cells: Cells, level: float, interval: RateInterval | None) -> tuple[Floats, Floats]:
    if metric.name == "rate" and interval is not None:
        return rate_interval(rate(cells), effective_rows(cells), level=level, method=interval)
    if metric.interval is None:
        unknown = np.full(len(cells.starts), np.nan)
        return unknown, unknown
    return metric.interval(cells, level)


def _warn_infinite(groups: Groups, terms: Sequence[str]) -> None:
    if "impossible" not in terms:
        return
    rows = int(groups.cells.sums["impossible"].sum())
    if rows:
        plural = "s give" if rows > 1 else " gives"
        warn(
            f"log_loss is infinite: {rows} row{plural} probability 0 to what happened. "
            "Pass clip= (for example clip=1e-15) for a finite value."
        )


def _schema(table: Table, asked: Sequence[Metric], level: float | None) -> dict[str, Any]:
    columns = count_types(table)
    for metric in asked:
        names = [metric.name] if level is None else [metric.name, f"{metric.name}_low", f"{metric.name}_high"]
        columns |= dict.fromkeys(names, float)
    return dict(polars_schema(table, columns | {"note": str}))
