"""The forest plot of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._auditing._words import percent, points
from calframe._charts import forest, standalone
from calframe._verdicts import WORDS

_ALL_SHOWN = 20  # up to this many segments all are drawn, above it only those not within tolerance


def forest_chart(table: pl.DataFrame, *, tolerance: float, width: int, most: int) -> Any:
    """Draw the worst segments of an audit, in the order of its table."""
    shown = table if table.height <= _ALL_SHOWN else table.filter(pl.col("verdict") != "within")
    shown = (shown if shown.height else table).head(most)
    rows = list(shown.iter_rows(named=True))
    few = [row["verdict"] == "few" for row in rows]
    drawn = shown.select(
        pl.Series("segment", _unique(shown["segment"].to_list()), dtype=pl.String),
        "gap",
        pl.col("gap_low").alias("low"),
        pl.col("gap_high").alias("high"),
        pl.col("simultaneous_low").alias("sim_low"),
        pl.col("simultaneous_high").alias("sim_high"),
        "verdict",
        pl.Series("text_gap", ["–" if small else points(row["gap"]) for row, small in zip(rows, few, strict=True)]),
        pl.Series("text_rate", [f"{percent(row['mean_score'])} → {percent(row['rate'])}" for row in rows]),
        pl.Series("text_n", [f"{row['n']:,}" for row in rows]),
        pl.Series("text_verdict", [" ".join(WORDS[row["verdict"]]) for row in rows]),
        pl.Series("description", [_description(row) for row in rows]),
    )
    return standalone(forest(drawn, tolerance=tolerance, width=width))


def _unique(names: list[str]) -> list[str]:
    """Return names of which no two are the same: text of users may hold what joins columns."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    counts = dict.fromkeys(seen, 0)
    out = []
    for name in names:
        counts[name] += 1
        out.append(name if seen[name] == 1 else f"{name} ({counts[name]})")
    return out


def _description(row: Mapping[str, Any]) -> str:
    said, happened = percent(row["mean_score"]), percent(row["rate"])
    ends = points(row["gap_low"]), points(row["gap_high"])
    return (
        f"{row['segment']}: said {said}, happened {happened}, gap {points(row['gap'])} points ({ends[0]} to "
        f"{ends[1]}), {row['n']:,} rows. {WORDS[row['verdict']][1]}."
    )
