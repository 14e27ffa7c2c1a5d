"""The forest plot of an audit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._charts import forest, standalone
from calframe._charts._captions import forest_marks
from calframe._charts._names import told_apart
from calframe._verdicts import WORDS
from calframe._words._lines import columns
from calframe._words._numbers import count, interval, percent, plural, points, rows

_ALL_SHOWN = 20  # up to this many segments all are drawn, above it only those not within tolerance
_LONG = 26  # columns; of longer names only the values are told, where they tell the segments apart


def forest_chart(table: pl.DataFrame, *, tolerance: float, level: str, width: int, most: int) -> Any:
    """Draw the worst segments of an audit, in the order of its table, and say what is not drawn."""
    drawn = forest_rows(table, level=level, most=most)
    comparisons = table["pvalue_adjusted"].count()
    parts = [forest_marks(level=level, comparisons=comparisons, zone=tolerance), _left_out(table, drawn)]
    if "gap_to_reference" in table.columns:
        parts.append("Gaps are those of each segment by itself; .table sets them beside the reference group.")
    caption = " ".join(part for part in parts if part)
    return standalone(forest(drawn, tolerance=tolerance, width=width), caption=caption, width=width)


def _left_out(table: pl.DataFrame, drawn: pl.DataFrame) -> str:
    """Say how many segments are not drawn, and which of them are within tolerance."""
    left = table.height - drawn.height
    if not left:
        return ""
    within, shown = (one.filter(pl.col("verdict") == "within").height for one in (table, drawn))
    of_these = f", {count(within - shown)} of them within tolerance," if within > shown else ""
    return f"{plural(left, 'more segment')}{of_these} {'is' if left == 1 else 'are'} in .table."


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
        pl.Series("segment", _names(shown), dtype=pl.String),
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


def _names(shown: pl.DataFrame) -> list[str]:
    """Return the names of segments, of which no two are the same: text of users may hold what joins columns."""
    names = shown["segment"].to_list()
    if "columns" in shown.columns and max(map(columns, names), default=0) > _LONG:
        values = [_values(name, of) for name, of in zip(names, shown["columns"], strict=True)]
        names = [value if values.count(value) == 1 else name for value, name in zip(values, names, strict=True)]
    return told_apart(names)


def _values(name: str, of: str) -> str:
    """Return "West & 25–45" of "region=West & age=25–45", columns "region & age"."""
    for column in of.split(" & "):
        name = re.sub(rf"(^| & ){re.escape(column)}=", r"\1", name, count=1)
    return name
