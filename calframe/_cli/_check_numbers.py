"""What the rules of a gate find: values with intervals, segment by segment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import polars as pl

from calframe._audit import audit
from calframe._cli._check_rules import ALL_ROWS, Finding, Rule
from calframe._drift import drift
from calframe._kernels._intervals import sidak_level
from calframe._metrics import metrics
from calframe._typing import VerdictName

CHANGE, CHANGE_LOW, CHANGE_HIGH = "_cf_change", "_cf_change_low", "_cf_change_high"

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
        If no row can be used, or no period comes after the reference.
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
            findings += _of_drift(rule, request)
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
    rows = [
        _named(row, None if row["columns"] == _ONE else row["columns"]) for row in found.table.iter_rows(named=True)
    ]
    return rows, {name: found.overall[name] for name in ("n", "n_missing", "n_invalid")}


def _of_gap(rule: Rule, row: Mapping[str, Any]) -> Finding:
    ends = (row["simultaneous_low"], row["simultaneous_high"])
    return _finding(rule, row, row["gap"], *ends, verdict=row["verdict"])


def _named(row: Mapping[str, Any], column: str | None) -> dict[str, Any]:
    """Return a row of a result with the column, the value and the name of its segment."""
    value = None if column is None else row[column]
    name = ALL_ROWS if column is None else f"{column}={'(missing)' if value is None else value}"
    return {**row, "column": column, "value": value, "segment": name}


def _finding(
    rule: Rule,
    row: Mapping[str, Any],
    observed: float | None,
    low: float | None,
    high: float | None,
    *,
    verdict: VerdictName,
    period: str | None = None,
) -> Finding:
    """Return a finding; of too few rows only their number is told."""
    known = verdict != "few"
    return Finding(
        rule=rule,
        segment=row["segment"],
        column=row["column"],
        value=row["value"],
        period=period,
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


def _of_drift(rule: Rule, request: Request) -> Iterator[Finding]:
    """Judge how far gaps have moved from those of the reference, in each later period."""
    alpha = 1.0 - sidak_level(1.0 - request.alpha, 1 + len(request.by))
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
        moved = changes(found.table, found.parts, keys=[column] if column else [], counted=counted)
        compared += moved.height
        for row in moved.iter_rows(named=True):
            values = [row[name] for name in (CHANGE, CHANGE_LOW, CHANGE_HIGH)]
            named, verdict = _named(row, column), _moved(rule, row, alpha)
            yield _finding(rule, named, *values, verdict=verdict, period=row["period"].isoformat())
    if not compared:
        msg = f"no period comes after the reference ({found.reference}), so --max-drift cannot be checked."
        raise click.ClickException(msg)


def changes(table: pl.DataFrame, parts: pl.DataFrame, *, keys: Sequence[str], counted: str) -> pl.DataFrame:
    """Return how far the gap of each period has moved from that of the reference, with intervals.

    The gap of the reference is the mean of those of its periods by their rows. The interval of a difference of
    independent values follows from the intervals of each (Zou, Huang and Zhang 2009, Computational Statistics & Data
    Analysis 53, 1080-1085, https://doi.org/10.1016/j.csda.2008.09.033): it holds over all periods together, as those
    do.

    Parameters
    ----------
    table, parts
        As `drift` gives them; periods with a row in `parts` are those that are compared.
    keys
        The segment columns.
    counted
        The column of rows, or of their weights.

    Returns
    -------
    polars.DataFrame
        The compared rows of `table` with the columns `CHANGE`, `CHANGE_LOW` and `CHANGE_HIGH`.
    """
    join: dict[str, Any] = {"on": [*keys, "period"], "nulls_equal": True}
    seen = parts.select(*keys, "period").unique()
    share = pl.col(counted) / (pl.col(counted).sum().over(keys) if keys else pl.col(counted).sum())
    gap, low, high = (pl.col(name) for name in ("gap", "simultaneous_low", "simultaneous_high"))
    sums = [
        (share * gap).alias("_cf_base"),
        ((share * (gap - low)) ** 2).alias("_cf_below"),
        ((share * (high - gap)) ** 2).alias("_cf_above"),
    ]
    base = table.join(seen, how="anti", **join).filter(pl.col("n") > 0).select(*keys, *sums)
    compared, change = table.join(seen, how="semi", **join), gap - pl.col("_cf_base")
    if keys:
        both = compared.join(base.group_by(keys).agg(pl.all().sum()), on=list(keys), how="left", nulls_equal=True)
    else:
        both = compared.join(base.sum(), how="cross")
    return both.with_columns(
        change.alias(CHANGE),
        (change - ((gap - low) ** 2 + pl.col("_cf_above")).sqrt()).alias(CHANGE_LOW),
        (change + ((high - gap) ** 2 + pl.col("_cf_below")).sqrt()).alias(CHANGE_HIGH),
    )


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
    leans = row["pvalue_adjusted"] is not None and row["pvalue_adjusted"] < alpha
    return ("leans_over" if row[CHANGE] > 0 else "leans_under") if leans else "unsure"
