"""From a table to a report: gather the numbers, then find the words and the charts for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from calframe._course import read_course
from calframe._periods import Every
from calframe._report import _figures as figures
from calframe._report import _method as how
from calframe._report import _sentences as sentences
from calframe._report._findings import Findings
from calframe._report._page import Page, Section
from calframe._report._words import percent, rows, short
from calframe._report._words import tolerance as tolerance_text
from calframe._results import SCHEMA_VERSION, json_ready
from calframe._roles import Roles
from calframe._segments import (
    Part,
    chance_ece,
    curve_table,
    fingerprint,
    grouping,
    histogram,
    judge_parts,
    read_part,
    score_limit,
    whole,
)
from calframe._typing import Json
from calframe._version import __version__

_BARS = 25


def gather(
    data: Any, roles: Roles, *, every: Every | None, tolerance: float, alpha: float, title: str, engine: Any
) -> Findings:
    """Read the table, one aggregate per grouping and one over time, and put the findings together."""
    parts = [read_part(data, replace(roles, by=(column,)), engine=engine) for column in roles.by]
    overall = whole(parts[0]) if parts else read_part(data, roles, engine=engine)
    judged = judge_parts(parts, tolerance=tolerance, alpha=alpha) if parts else []
    groupings = tuple(
        grouping(part, found, overall, column=column, alpha=alpha)
        for part, found, column in zip(parts, judged, roles.by, strict=True)
    )
    [alone] = judge_parts([overall], tolerance=tolerance, alpha=alpha)
    course = None
    if roles.time is not None:
        course = read_course(
            data, replace(roles, by=roles.by[:1]), every=every, tolerance=tolerance, alpha=alpha, engine=engine
        )
    limit = score_limit(overall)
    chance, chance_spread = chance_ece(overall)
    return Findings(
        title=title,
        roles=roles,
        tolerance=tolerance,
        alpha=alpha,
        overall=grouping(overall, alone, overall, column="", alpha=alpha).segments.row(0, named=True),
        chance=chance,
        chance_spread=chance_spread,
        curve=curve_table(overall, None, level=1.0 - alpha).drop("segment"),
        histogram=histogram(overall, bars=_BARS, limit=limit),
        limit=limit,
        groupings=groupings,
        comparisons=sum(found.comparisons for found in judged),
        course=course,
        counts=_counts(overall),
        fingerprint=fingerprint(parts or [overall]),
    )


def page(findings: Findings, *, arguments: dict[str, object]) -> Page:
    """Return the page: headline, tiles, what to do, sections, method."""
    return Page(
        title=findings.title,
        meta=_meta(findings),
        headline=sentences.headline(findings),
        tiles=sentences.tiles(findings),
        actions=sentences.actions(findings),
        sections=_sections(findings),
        method=how.method(findings),
        call=how.call(arguments),
        provenance=how.provenance(findings),
        version=__version__,
        result=result(findings),
    )


def result(findings: Findings) -> Json:
    """Return the findings as JSON-ready data."""
    roles = findings.roles
    course = findings.course
    found: Json = json_ready(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": "report",
            "title": findings.title,
            "verdict": findings.state,
            "headline": sentences.headline(findings).lead,
            "actions": [{"what": action.what, "why": action.why} for action in sentences.actions(findings)],
            "columns": {
                "label": roles.label,
                "score": roles.scores[0],
                "by": list(roles.by),
                "weight": roles.weight,
                "time": roles.time,
            },
            "tolerance": findings.tolerance,
            "alpha": findings.alpha,
            "comparisons": findings.comparisons,
            "counts": findings.counts,
            "overall": {**findings.overall, "ece_expected": findings.chance, "ece_expected_high": findings.chance_high},
            "segments": [{"column": segment.column, **segment.row} for segment in findings.segments()],
            "periods": None if course is None else course.table.to_dicts(),
            "every": None if course is None else course.every,
            "since": None if course is None or course.since is None else course.since.label,
            "fingerprint": findings.fingerprint,
            "version": __version__,
        }
    )
    return found


def segment_frame(findings: Findings) -> pl.DataFrame:
    """Return the segments of all groupings as one table, the whole table first."""
    rows_ = [{"column": "", **findings.overall}, *({"column": s.column, **s.row} for s in findings.segments())]
    return pl.DataFrame(rows_, infer_schema_length=None)


def _sections(findings: Findings) -> tuple[Section, ...]:
    where = [
        figure(findings, one, number=i)
        for i, one in enumerate(findings.groupings)
        for figure in (figures.forest_figure, figures.heat_figure)
    ]
    sure = [
        figures.reliability_figure(findings),
        *(figures.panels_figure(findings, one, number=i) for i, one in enumerate(findings.groupings)),
    ]
    time = [figures.course_figure(findings, findings.course)] if findings.course is not None else []
    named = (
        ("where", "Where the scores are off", "Where", where),
        ("sure", "How sure is that", "How sure", sure),
        ("time", "Over time", "Over time", time),
    )
    return tuple(
        Section(id=id_, name=name, link=link, figures=tuple(found)) for id_, name, link, found in named if found
    )


def _meta(findings: Findings) -> str:
    parts = [f"{rows(findings.counts['used'])} used"]
    missing = findings.counts["missing"]
    if missing:
        parts.append(f"{rows(missing)} with something missing ({percent(missing / findings.counts['rows'])})")
    parts += [f"{one.segments.height:,} segments of {short(one.column)}" for one in findings.groupings]
    if findings.course is not None:
        labels = findings.course.table["label"]
        parts.append(f"{labels[0]} to {labels[-1]}" if len(labels) > 1 else str(labels[0]))
    roles = findings.roles
    parts.append(f"score column {short(roles.scores[0])}, label column {short(roles.label)}")
    if roles.weight is not None:
        parts.append(f"weighted by {short(roles.weight)}")
    parts.append(f"tolerance {tolerance_text(findings.tolerance)}")
    return " · ".join(parts)


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
