"""What the numbers of a report say, worked out from its intervals alone, for checking its words against them."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
NUMBER = r"(\d+(?:\.\d+)?)"


def verdict(row: Row, *, tolerance: float, alpha: float) -> str:
    low, high = row["simultaneous_low"], row["simultaneous_high"]
    if row["pvalue"] is None:
        return "few"
    if low > tolerance:
        return "over"
    if high < -tolerance:
        return "under"
    if -tolerance <= low and high <= tolerance:
        return "within"
    return "lean" if row["pvalue_adjusted"] < alpha else "unsure"


def verdicts(numbers: dict[str, Any]) -> list[str]:
    limits = {"tolerance": numbers["tolerance"], "alpha": numbers["alpha"]}
    return [verdict(row, **limits) for row in numbers["segments"]]


def overall(numbers: dict[str, Any]) -> str:
    return verdict(numbers["overall"], tolerance=numbers["tolerance"], alpha=numbers["alpha"])


def is_size(text: str, gap: float) -> bool:
    """Tell whether a text is the size of a gap in points: whole, or with one decimal below 2."""
    off = abs(float(text) - 100 * abs(gap))
    return off <= (0.0500001 if "." in text else 0.5000001)


def named(name: str, numbers: dict[str, Any]) -> Row:
    [row] = [row for row in numbers["segments"] if f"{row['column']} {row['segment']}" == name]
    return row


def high(row_or_gap: float) -> str:
    return "high" if row_or_gap > 0 else "low"
