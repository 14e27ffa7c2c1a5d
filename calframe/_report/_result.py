"""Findings as data: JSON, and a table of the segments."""

from __future__ import annotations

import polars as pl

from calframe._report._actions import actions
from calframe._report._findings import Findings
from calframe._report._sentences import lead
from calframe._results import SCHEMA_VERSION, json_ready, rounded
from calframe._segments import ECE_BINS
from calframe._typing import Json
from calframe._version import __version__


def result(findings: Findings) -> Json:
    """Return the findings as JSON-ready data."""
    roles = findings.roles
    course = findings.course
    found: Json = rounded(
        json_ready(
            {
                "schema_version": SCHEMA_VERSION,
                "kind": "report",
                "title": findings.title,
                "verdict": findings.state,
                "headline": lead(findings),
                "actions": [{"what": action.what, "why": action.why} for action in actions(findings)],
                "columns": {
                    "label": roles.label,
                    "score": roles.scores[0],
                    "by": list(roles.by),
                    "weight": roles.weight,
                    "time": roles.time,
                },
                "convention": {**roles.convention(), "ece_bins": ECE_BINS, "closed": "left", "interval": "wilson"},
                "tolerance": findings.tolerance,
                "alpha": findings.alpha,
                "comparisons": findings.comparisons,
                "counts": findings.counts,
                "overall": {
                    **findings.overall,
                    "ece_expected_high": findings.chance.high,
                    "ece_pvalue": findings.chance.pvalue,
                },
                "segments": [{"column": segment.column, **segment.row} for segment in findings.segments()],
                "periods": None if course is None else course.table.to_dicts(),
                "periods_without_rows": None if course is None else course.n_empty,
                "every": None if course is None else course.every,
                "since": None if course is None or course.since is None else course.since.label,
                "since_unjudged": None if course is None or course.since is None else course.since.unjudged,
                "fingerprint": findings.fingerprint,
                "version": __version__,
            }
        )
    )
    return found


def segment_frame(findings: Findings) -> pl.DataFrame:
    """Return the segments of all groupings as one table, the whole table first."""
    rows_ = [{"column": "", **findings.overall}, *({"column": s.column, **s.row} for s in findings.segments())]
    types = {"column": pl.String(), **(findings.groupings[0].segments.schema if findings.groupings else {})}
    frame = pl.DataFrame(rows_, infer_schema_length=None, schema_overrides=types)
    return frame.with_columns(pl.col(pl.Null).cast(pl.Float64))  # numbers that no segment has
