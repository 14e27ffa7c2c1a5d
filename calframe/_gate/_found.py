"""What the rules of a gate find: values with intervals, segment by segment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from calframe._audit import audit
from calframe._drift import drift
from calframe._effects._metrics import allows_for_clusters
from calframe._errors import ArgumentError, EmptyTableError
from calframe._gate._rules import ALL_ROWS, Finding, Rule
from calframe._kernels._intervals import sidak_level
from calframe._measures import known_metrics
from calframe._metrics import metrics
from calframe._typing import VerdictName
from calframe._verdicts import verdict_of

_CHANGE = ("gap_change", "gap_change_simultaneous_low", "gap_change_simultaneous_high")
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
    clip : float or None
        How far from 0 and 1 scores stay in the log loss.
    timing : mapping
        Arguments about time.
    """

    table: pl.LazyFrame
    by: Sequence[str]
    alpha: float
    roles: Mapping[str, Any]
    binning: Mapping[str, Any]
    drawing: Mapping[str, Any]
    clip: float | None
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
    EmptyTableError
        If no row can be used.
    ArgumentError
        If no period lies outside the reference.
    """
    _check_clusters(rules, request)
    tolerance = next((rule.limit for rule in rules if rule.kind == "gap"), _ANY_TOLERANCE)
    rows, counts = _judged(request, tolerance)
    if not counts["n"]:
        msg = "no row has a label and a score that can be used, so nothing can be checked."
        raise EmptyTableError(msg)
    findings: list[Finding] = []
    for rule in rules:
        if rule.kind == "gap":
            findings += [_of_gap(rule, row) for row in rows]
        elif rule.kind == "drift":
            findings += _of_drift(rule, rows, request)
    findings += _of_metrics([rule for rule in rules if rule.kind in {"max", "min"}], rows, request)
    return Found(findings=findings, **counts)


def _check_clusters(rules: Sequence[Rule], request: Request) -> None:
    """Refuse limits of metrics whose intervals take rows as independent where they are not: none would ever break."""
    if request.roles.get("cluster") is None:
        return
    known = known_metrics(several_classes=False)
    limited = [rule for rule in rules if rule.kind in {"max", "min"}]
    lost = [rule.name for rule in limited if not allows_for_clusters(known[rule.metric])]
    if lost:
        able = [name for name, metric in known.items() if allows_for_clusters(metric) and not metric.posterior]
        msg = (
            f"{', '.join(lost)} cannot be checked where rows are in clusters: the interval takes rows as independent. "
            f"Limit one of {', '.join(able)}, or leave the clusters out."
        )
        raise ArgumentError(msg)


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
        clip=request.clip,
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
        moved = found.table.filter(pl.col("gap_change").is_not_null())
        labels = found.labels()
        compared += moved.height
        for row in moved.iter_rows(named=True):
            value = None if column is None else row[column]
            place = {**row, "column": column, "value": value, "segment": names[column, value]}
            period = {"period": row["period"].isoformat(), "called": labels[row["period"]]}
            yield _finding(rule, place, *(row[name] for name in _CHANGE), verdict=_moved(rule, row, alpha), **period)
    if not compared:
        msg = f"no period lies outside the reference ({found.reference}), so max_drift= cannot be checked."
        raise ArgumentError(msg)


def _moved(rule: Rule, row: Mapping[str, Any], alpha: float) -> VerdictName:
    if row["verdict"] == "few":
        return "few"
    names = (*_CHANGE, "gap_change_pvalue_adjusted")
    values = (math.nan if row[name] is None else row[name] for name in names)
    return verdict_of(*values, tolerance=rule.limit, alpha=alpha)
