"""What the rules of a gate find: values with intervals, segment by segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import polars as pl

from calframe._audit import audit
from calframe._cli._check_rules import ALL_ROWS, Finding, Rule
from calframe._columns import exact_column
from calframe._drift import drift
from calframe._kernels._intervals import sidak_level
from calframe._metrics import metrics
from calframe._typing import VerdictName

CHANGE, CHANGE_LOW, CHANGE_HIGH = "gap_change", "_cf_change_low", "_cf_change_high"
CHANGE_PVALUE = "gap_change_pvalue_adjusted"

_ONE = "_cf_all"  # a segment column of one value, for a table without segments
_ANY_TOLERANCE = 0.5  # where no rule is about the gap
_MANY = 100_000_000  # segments that are an identifier fail on memory first


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The table and how to read it.

    Attributes
    ----------
    table : polars.LazyFrame
        The table; segment columns hold text.
    by : sequence of str
        Segment columns, each of which makes segments of its own.
    alpha : float
        Chance of any false alarm, for each rule over all segments.
    roles : mapping
        Arguments that all functions take.
    binning : mapping
        Arguments about bins.
    drawing : mapping
        Arguments about resamples.
    timing : mapping
        Arguments about time.
    """

    table: pl.LazyFrame
    by: Sequence[str]
    alpha: float
    roles: Mapping[str, Any]
    binning: Mapping[str, Any]
    drawing: Mapping[str, Any]
    timing: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Findings of all rules, and the rows behind them."""

    findings: list[Finding]
    n: int
    n_missing: int
    n_invalid: int


def found_by(rules: Sequence[Rule], request: Request) -> Found:
    """Judge every rule in every segment.

    Parameters
    ----------
    rules
        At least one.
    request
        The table.

    Returns
    -------
    Found
        All rows are a segment of their own, beside the segments of each column.

    Raises
    ------
    click.ClickException
        If no row can be used, or no period lies outside the reference.
    """
    tolerance = next((rule.limit for rule in rules if rule.kind == "gap"), _ANY_TOLERANCE)
    rows, counts = _judged(request, tolerance)
    if not counts["n"]:
        msg = "no row has a label and a score that can be used, so nothing can be checked."
        raise click.ClickException(msg)
    findings: list[Finding] = []
    for rule in rules:
        if rule.kind == "gap":
            findings += [_of_gap(rule, row) for row in rows]
        elif rule.kind == "drift":
            findings += _of_drift(rule, rows, request)
    findings += _of_metrics([rule for rule in rules if rule.kind in {"max", "min"}], rows, request)
    return Found(findings=findings, **counts)


def _judged(request: Request, tolerance: float) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return all rows and the segments of each column, judged together by their gaps; and how many rows there are."""
    found = audit(
        request.table.with_columns(pl.lit("").alias(_ONE)),
        by=[_ONE, *request.by],
        depth=1,
        tolerance=tolerance,
        alpha=request.alpha,
        max_segments=_MANY,
        ecce=False,
        **request.roles,
    )
    rows = [_placed(row) for row in found.table.iter_rows(named=True)]
    return rows, {name: found.overall[name] for name in ("n", "n_missing", "n_invalid")}


def _of_gap(rule: Rule, row: Mapping[str, Any]) -> Finding:
    ends = (row["simultaneous_low"], row["simultaneous_high"])
    return _finding(rule, row, row["gap"], *ends, verdict=row["verdict"])


def _placed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of an audit with the column and the value of its segment."""
    column = row["columns"]
    if column == _ONE:
        return {**row, "column": None, "value": None, "segment": ALL_ROWS}
    return {**row, "column": column, "value": row[column]}


def _finding(
    rule: Rule,
    row: Mapping[str, Any],
    observed: float | None,
    low: float | None,
    high: float | None,
    *,
    verdict: VerdictName,
    period: str | None = None,
    called: str | None = None,
) -> Finding:
    """Return a finding; of too few rows only their number is told."""
    known = verdict != "few"
    return Finding(
        rule=rule,
        segment=row["segment"],
        column=row["column"],
        value=row["value"],
        period=period,
        called=called,
        n=row["n"],
        n_missing=row["n_missing"],
        observed=observed if known else None,
        low=low if known else None,
        high=high if known else None,
        verdict=verdict,
    )


def _of_metrics(rules: Sequence[Rule], rows: Sequence[Mapping[str, Any]], request: Request) -> Iterator[Finding]:
    """Judge limits of metrics by intervals that hold together over all segments with rows enough."""
    judged = sum(row["simultaneous_low"] is not None for row in rows)  # labels have no say in how many these are
    if not rules:
        return
    level = sidak_level(1.0 - request.alpha, max(judged, 1))
    values = {key: found for column in (None, *request.by) for key, found in _measured(rules, column, level, request)}
    for rule in rules:
        for row in rows:
            found = values[row["column"], row["value"]]
            ends = (found[f"{rule.metric}_low"], found[f"{rule.metric}_high"])
            verdict = "few" if row["verdict"] == "few" else rule.verdict(*ends)
            yield _finding(rule, row, found[rule.metric], *ends, verdict=verdict)


def _measured(
    rules: Sequence[Rule], column: str | None, level: float, request: Request
) -> Iterator[tuple[tuple[str | None, str | None], dict[str, Any]]]:
    """Return the metrics of each segment of a column, by column and value."""
    plan: pl.LazyFrame = metrics(
        request.table,
        by=column,
        metrics=list(dict.fromkeys(rule.metric for rule in rules)),
        confidence_level=level,
        **request.roles,
        **request.binning,
        **request.drawing,
    )
    for row in plan.collect().iter_rows(named=True):
        yield (column, None if column is None else row[column]), row


def _of_drift(rule: Rule, rows: Sequence[Mapping[str, Any]], request: Request) -> Iterator[Finding]:
    """Judge how far gaps have moved from those of the reference, in each period outside it."""
    alpha = 1.0 - sidak_level(1.0 - request.alpha, 1 + len(request.by))
    names = {(row["column"], row["value"]): row["segment"] for row in rows}
    compared = 0
    for column in (None, *request.by):
        found = drift(
            request.table,
            by=column,
            tolerance=rule.limit,
            alpha=alpha,
            **request.timing,
            **request.roles,
            **request.binning,
        )
        counted = "n" if request.roles["weight"] is None else "weight_sum"
        moved = changes(found.table, keys=[column] if column else [], counted=counted)
        labels = found.labels()
        compared += moved.height
        for row in moved.iter_rows(named=True):
            value = None if column is None else row[column]
            place = {**row, "column": column, "value": value, "segment": names[column, value]}
            period = {"period": row["period"].isoformat(), "called": labels[row["period"]]}
            values = [row[name] for name in (CHANGE, CHANGE_LOW, CHANGE_HIGH)]
            yield _finding(rule, place, *values, verdict=_moved(rule, row, alpha), **period)
    if not compared:
        msg = f"no period lies outside the reference ({found.reference}), so --max-drift cannot be checked."
        raise click.ClickException(msg)


def changes(table: pl.DataFrame, *, keys: Sequence[str], counted: str) -> pl.DataFrame:
    """Return the periods that `drift` compares with the reference, with intervals of the change of their gaps.

    Whether a gap has changed at all is said by the p-value of `drift`; how far it may have is not. The interval of a
    difference of independent values follows from the intervals of each (Zou, Huang and Zhang 2009, Computational
    Statistics & Data Analysis 53, 1080-1085, https://doi.org/10.1016/j.csda.2008.09.033): it holds over all periods
    together, as those do. That of the reference follows likewise from those of its periods, by their rows.

    Parameters
    ----------
    table
        As `drift` gives it.
    keys
        The segment columns.
    counted
        The column of rows, or of their weights.

    Returns
    -------
    polars.DataFrame
        The compared rows of `table` with the columns `CHANGE_LOW` and `CHANGE_HIGH` beside `CHANGE`.
    """
    gap, low, high, change = (pl.col(name) for name in ("gap", "simultaneous_low", "simultaneous_high", CHANGE))
    weight = pl.when(change.is_null() & (pl.col("n") > 0)).then(pl.col(counted))  # of the periods of the reference
    series = [exact_column(name) for name in keys]

    def total(values: pl.Expr) -> pl.Expr:
        return values.sum().over(series) if series else values.sum()

    share = weight / total(weight)
    below, above = total((share * (gap - low)) ** 2), total((share * (high - gap)) ** 2)
    found = table.with_columns(
        (change - ((gap - low) ** 2 + above).sqrt()).alias(CHANGE_LOW),
        (change + ((high - gap) ** 2 + below).sqrt()).alias(CHANGE_HIGH),
    )
    return found.filter(change.is_not_null())


def _moved(rule: Rule, row: Mapping[str, Any], alpha: float) -> VerdictName:
    low, high = row[CHANGE_LOW], row[CHANGE_HIGH]
    if row["verdict"] == "few":
        return "few"
    if low is None or high is None:
        return "unsure"
    if low > rule.limit or high < -rule.limit:
        return "over" if low > rule.limit else "under"
    if -rule.limit <= low and high <= rule.limit:
        return "within"
    leans = row[CHANGE_PVALUE] is not None and row[CHANGE_PVALUE] < alpha
    return ("leans_over" if row[CHANGE] > 0 else "leans_under") if leans else "unsure"
