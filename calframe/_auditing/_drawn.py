"""The forest plot of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from calframe._charts import forest, standalone
from calframe._verdicts import WORDS
from calframe._words._numbers import count, interval, percent, points, rows

_ALL_SHOWN = 20  # up to this many segments all are drawn, above it only those not within tolerance


def forest_chart(table: pl.DataFrame, *, tolerance: float, level: str, width: int, most: int) -> Any:
    """Draw the worst segments of an audit, in the order of its table."""
    return standalone(forest(forest_rows(table, level=level, most=most), tolerance=tolerance, width=width))


def forest_rows(table: pl.DataFrame, *, level: str, most: int) -> pl.DataFrame:
    """Return the worst segments as a forest plot wants them, with their numbers in words.

    Parameters
    ----------
    table : polars.DataFrame
        The segments, worst first, with the columns of an audit.
    level : str
        Confidence level of single intervals, such as "95%".
    most : int
        Most segments drawn. Above twenty, those within tolerance are left out.
    """
    shown = table if table.height <= _ALL_SHOWN else table.filter(pl.col("verdict") != "within")
    shown = (shown if shown.height else table).head(most)
    described = [_described(row, level) for row in shown.iter_rows(named=True)]
    return shown.select(
        pl.Series("segment", _unique(shown["segment"].to_list()), dtype=pl.String),
        "gap",
        pl.col("gap_low").alias("low"),
        pl.col("gap_high").alias("high"),
        pl.col("simultaneous_low").alias("sim_low"),
        pl.col("simultaneous_high").alias("sim_high"),
        "verdict",
        *(pl.Series(name, [row[name] for row in described], dtype=pl.String) for name in _TEXTS),
    )


_TEXTS = ("text_gap", "text_rate", "text_n", "text_verdict", "description")


def _described(row: Mapping[str, Any], level: str) -> dict[str, str]:
    said, happened = percent(row["mean_score"]), percent(row["rate"])
    verdict = WORDS[row["verdict"]]
    description = f"{row['segment']}: no usable rows."
    if row["n"]:
        description = (
            f"{row['segment']}: said {said}, happened {happened}, gap {points(row['gap'])} ({level} interval "
            f"{interval(row['gap_low'], row['gap_high'])}), {rows(row['n'])}. {verdict[1]}."
        )
    return {
        "text_gap": "–" if row["verdict"] == "few" else points(row["gap"], unit=False),
        "text_rate": f"{said} → {happened}",
        "text_n": count(row["n"]),
        "text_verdict": " ".join(verdict),
        "description": description,
    }


def _unique(names: Sequence[str]) -> list[str]:
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
