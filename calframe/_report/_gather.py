"""From a table to findings: one aggregate per grouping and one over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from calframe._drifting._course import Course, courses
from calframe._drifting._days import read_days
from calframe._extras import check_extras, extra_metrics
from calframe._periods import Every
from calframe._registry import Metric
from calframe._report._findings import Findings
from calframe._roles import Roles
from calframe._segments import (
    Grouping,
    Part,
    audited_segments,
    chance_error,
    curve_table,
    fingerprint,
    grouping,
    histogram,
    judged_whole,
    read_part,
    score_limit,
    summed_whole,
    whole,
)
from calframe._testing._scatter import HUGE
from calframe._verdicts import SHOWN_ROWS, Rules


def gather(
    data: Any,
    roles: Roles,
    *,
    every: Every | None,
    tolerance: float,
    alpha: float,
    title: str,
    engine: Any,
    extras: Sequence[Metric] = (),
) -> Findings:
    """Read the table, one aggregate per grouping and one over time, and put the findings together."""
    parts = [read_part(data, replace(roles, by=(column,)), engine=engine) for column in roles.by]
    overall = whole(parts[0]) if parts else read_part(data, roles, engine=engine)
    rows, audit = (
        audited_segments(parts, data, roles, tolerance=tolerance, alpha=alpha, engine=engine) if parts else ([], None)
    )
    sums = summed_whole(overall, audit, data, roles, alpha=alpha, engine=engine)
    if sums.effect is not None:
        overall = overall.clustered(sums.effect)
        effects = [own["design_effect"].fill_null(HUGE).to_numpy() for own in rows]
        parts = [part.clustered(effect) for part, effect in zip(parts, effects, strict=True)]
    groupings = tuple(
        grouping(part, own, overall, column=column, alpha=alpha)
        for part, own, column in zip(parts, rows, roles.by, strict=True)
    )
    alone = judged_whole(sums, tolerance=tolerance, alpha=alpha)
    if rows:  # what an audit says of segments only, such as how they differ from the rest, is null for the whole
        alone = pl.concat([rows[0].head(0), alone], how="diagonal")
    whole_row = grouping(overall, alone, overall, column="", alpha=alpha)
    check_extras(extras, ["column", *whole_row.segments.columns])
    if extras:
        level = 1.0 - alpha
        groupings = tuple(
            _with_extras(
                found, extra_metrics(data, replace(roles, by=(found.column,)), extras, level=level, engine=engine)
            )
            for found in groupings
        )
        whole_row = _with_extras(
            whole_row, extra_metrics(data, replace(roles, by=()), extras, level=level, engine=engine)
        )
    curve = curve_table(overall, overall.n > 0, level=1.0 - alpha).drop("segment")
    limit = score_limit(overall, curve)
    return Findings(
        title=title,
        roles=roles,
        tolerance=tolerance,
        alpha=alpha,
        overall=whole_row.segments.row(0, named=True),
        chance=chance_error(overall),
        curve=curve,
        histogram=histogram(overall, limit=limit),
        limit=limit,
        groupings=groupings,
        comparisons=0 if audit is None else audit.convention["n_comparisons"],
        course=_course(data, roles, every=every, tolerance=tolerance, alpha=alpha, engine=engine),
        counts=_counts(overall),
        fingerprint=fingerprint(parts or [overall]),
        extras=tuple(metric.name for metric in extras),
    )


def _course(
    data: Any, roles: Roles, *, every: Every | None, tolerance: float, alpha: float, engine: Any
) -> Course | None:
    """Return the course over time; None where no row has a date. Of periods with hardly a row only that is told."""
    if roles.time is None:
        return None
    days = read_days(data, replace(roles, by=roles.by[:1]), every=every, engine=engine)
    if not days.periods.starts:
        return None
    [course] = courses(days, Rules(tolerance=tolerance, alpha=alpha))
    told = pl.when(pl.col("n") >= SHOWN_ROWS).then(pl.col(pl.Float64))
    return replace(course, table=course.table.with_columns(told, pl.col("period").cast(pl.String)))


def _with_extras(found: Grouping, extras: pl.DataFrame) -> Grouping:
    """Return a grouping whose segments have further metrics; what they have already are the same numbers."""
    new = [name for name in extras.columns if name not in found.segments.columns]
    joined = found.segments.join(extras.select("segment", *new), on="segment", how="left", maintain_order="left")
    return replace(found, segments=joined)


def _counts(overall: Part) -> dict[str, int]:
    used, missing, invalid, zero = (
        int(c[0]) for c in (overall.n, overall.n_missing, overall.n_invalid, overall.n_zero)
    )
    return {
        "rows": used + missing + invalid + zero,
        "used": used,
        "missing": missing,
        "invalid": invalid,
        "zero_weight": zero,
    }
