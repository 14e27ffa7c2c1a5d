"""Findings made by hand: a test says what the numbers are, and the rules must find the words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from calframe._drifting._course import Course, Since
from calframe._report._findings import Findings
from calframe._report._gather import gather
from calframe._roles import Roles
from calframe._segments import ChanceError, Grouping


def numbers(
    verdict: str = "within",
    *,
    name: str = "All rows",
    gap: float | None = 0.0,
    rate: float = 0.3,
    n: int = 10_000,
    n_missing: int = 0,
    half: float = 0.01,
    wide: float = 0.02,
    adjusted: float | None = 0.5,
    needed: float | None = None,
    ece: float | None = 0.012,
    along: float | None = 0.5,
) -> dict[str, Any]:
    """Return the numbers of one segment; `half` and `wide` are the half-widths of its two intervals.

    `along` is the p-value of its cumulative error, after the search.
    """
    there = gap is not None
    size = gap or 0.0
    return {
        "segment": name,
        "n": n,
        "n_missing": n_missing,
        "n_invalid": 0,
        "weight_sum": float(n),
        "positives": round(rate * n, 6),
        "rate": rate if there else None,
        "mean_score": rate + size if there else None,
        "gap": gap,
        "gap_low": size - half if there else None,
        "gap_high": size + half if there else None,
        "simultaneous_low": size - wide if there else None,
        "simultaneous_high": size + wide if there else None,
        "pvalue": adjusted,
        "pvalue_adjusted": adjusted,
        "verdict": verdict,
        "net": n * size if there else None,
        "rows_needed": needed,
        "brier": 0.2 if there else None,
        "log_loss": 0.6 if there else None,
        "ece": ece,
        "ece_expected": 0.01 if there else None,
        "ecce": 1.5 if there else None,
        "ecce_pvalue_adjusted": along if there else None,
    }


def bins(segment: str, *, out: int, of: int) -> list[dict[str, Any]]:
    """Return a curve of `of` bins, `out` of them outside the band and 5 points too high."""
    rows = []
    for i in range(of):
        score = (i + 0.5) / of
        gap = 0.05 if i < out else 0.0
        rows.append(
            {
                "segment": segment,
                "n": 200,
                "mean_score": score,
                "rate": score - gap,
                "gap": gap,
                "rate_low": score - gap - 0.02,
                "rate_high": score - gap + 0.02,
                "band_low": score - 0.03,
                "band_high": score + 0.03,
                "state": "over" if i < out else "in",
            }
        )
    return rows


def cell(segment: str, scores: str, gap: float, *, clear: bool = False, n: int = 500) -> dict[str, Any]:
    """Return one cell of a heatmap; under 50 rows it shows no number."""
    return {"segment": segment, "range": scores, "n": n, "gap": gap, "shown": n >= 50, "clear": clear and n >= 50}


_CURVE = {"segment": pl.String, "n": pl.Int64} | dict.fromkeys(
    ("mean_score", "rate", "gap", "rate_low", "rate_high", "band_low", "band_high"), pl.Float64
)
_HEAT = {"segment": pl.String, "range": pl.String, "n": pl.Int64, "gap": pl.Float64, "shown": pl.Boolean}
_SEGMENT = {name: pl.Float64 for name, value in numbers(needed=1.0).items() if isinstance(value, float)}


def grouping(
    column: str,
    *segments: dict[str, Any],
    curves: Sequence[dict[str, Any]] = (),
    heat: Sequence[dict[str, Any]] = (),
    empty: tuple[str, ...] = (),
) -> Grouping:
    """Return a grouping; its segments stand in the order given, which must be worst first."""
    return Grouping(
        column=column,
        segments=pl.DataFrame(list(segments), schema_overrides=_SEGMENT),
        curves=pl.DataFrame(list(curves), schema={**_CURVE, "state": pl.String}),
        ranges=tuple(dict.fromkeys(one["range"] for one in heat)),
        heat=pl.DataFrame(list(heat), schema={**_HEAT, "clear": pl.Boolean}),
        empty=empty,
    )


def course(
    *periods: tuple[str, float, str], since: Since | None = None, undated: int = 0, few: tuple[str, ...] = ()
) -> Course:
    """Return a course of (label, gap, state), 1,000 rows a period; those that are `few` have 60 and are not judged."""
    table = pl.DataFrame(
        [
            {
                "period": f"{1950 + i // 12}-{i % 12 + 1:02}-01",
                "label": label,
                "n": 60 if label in few else 1000,
                "rate": 0.3,
                "mean_score": 0.3 + gap,
                "gap": gap,
                "gap_low": gap - 0.02,
                "gap_high": gap + 0.02,
                "simultaneous_low": gap - 0.03,
                "simultaneous_high": gap + 0.03,
                "state": state,
                "verdict": "few" if label in few else "unsure" if state == "in" else state,
            }
            for i, (label, gap, state) in enumerate(periods)
        ]
    )
    return Course(model=None, every="1mo", zone=None, table=table, undated=undated, since=since)


def run(label: str, *, before: float, during: float, moved: int = 0, judged: int = 0, unjudged: int = 0) -> Since:
    """Return a run of periods to the end."""
    return Since(model=None, label=label, before=before, during=during, moved=moved, judged=judged, unjudged=unjudged)


def findings(
    *groupings: Grouping,
    overall: dict[str, Any] | None = None,
    course: Course | None = None,
    weight: str | None = None,
    missing: int = 0,
    tolerance: float = 0.03,
    alpha: float = 0.05,
    chance: tuple[float, float, float] = (0.008, 0.011, 0.014),
    limit: float = 1.0,
) -> Findings:
    """Return findings over groupings; by default all rows together are within tolerance.

    `chance` is the ECE of right scores: its mean, its 95th and its 99.9th percentile.
    """
    whole = overall or numbers()
    compared = sum((one.segments["n"] >= 100).sum() for one in groupings)
    curve = pl.DataFrame(bins("All rows", out=0, of=15)).drop("segment")
    return Findings(
        title="Scores of p",
        roles=Roles.from_arguments(
            label="y",
            score="p",
            by=[one.column for one in groupings] or None,
            weight=weight,
            time=None if course is None else "day",
        ),
        tolerance=tolerance,
        alpha=alpha,
        overall=whole,
        chance=ChanceError(mean=chance[0], high=chance[1], pvalue=0.0005 if (whole["ece"] or 0.0) > chance[2] else 0.2),
        curve=curve,
        histogram=pl.DataFrame({"lower": [0.0, 0.5], "upper": [0.5, 1.0], "n": [whole["n"], 0]}),
        limit=limit,
        groupings=groupings,
        comparisons=compared,
        course=course,
        counts={
            "rows": whole["n"] + missing,
            "used": whole["n"],
            "missing": missing,
            "invalid": 0,
            "zero_weight": 0,
        },
        fingerprint="0123456789abcdef",
    )


def gathered(data: Any, *, tolerance: float = 0.03, alpha: float = 0.05, every: Any = None, **roles: Any) -> Findings:
    """Return what the package finds in a table, without drawing anything."""
    chosen = Roles.from_arguments(**{"label": "y", "score": "p", **roles})
    return gather(data, chosen, every=every, tolerance=tolerance, alpha=alpha, title="Scores of p", engine=None)


def drawn(
    rng: np.random.Generator, score: np.ndarray, *, off: Any = 0.0, segments: int = 0, periods: int = 0
) -> pl.DataFrame:
    """Return rows whose labels are drawn at the score less `off`, with segments and months dealt out evenly."""
    n = len(score)
    columns: dict[str, Any] = {"p": score, "y": (rng.random(n) < score - off).astype(np.int64)}
    if segments:
        columns["group"] = [f"g{i % segments}" for i in range(n)]
    if periods:
        columns["day"] = [dt.date(2024 + i % periods // 12, 1 + i % periods % 12, 15) for i in range(n)]
    return pl.DataFrame(columns)
