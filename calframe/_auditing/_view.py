"""The segments of an audit in words, as a printed result and a notebook show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._verdicts import WORDS, lean_note
from calframe._words._numbers import count, interval, points, pvalue

_COMPARED = {"rest": "gap to the rest", "reference": "gap to the reference"}


def segments_view(table: pl.DataFrame, *, alpha: float) -> pl.DataFrame:
    """Return the rows of an audit's table as text, in its order; of too few rows no gap is told."""
    other = "reference" if "gap_to_reference" in table.columns else "rest"
    level = f"{100 * (1 - alpha):g}%"
    return pl.DataFrame(
        [
            {
                "segment": row["segment"],
                "gap": gap_text(row),
                f"{level} over all": if_judged(row, interval(row["simultaneous_low"], row["simultaneous_high"])),
                _COMPARED[other]: if_judged(row, points(row[f"gap_to_{other}"], unit=False)),
                "adj. p": pvalue(row[f"pvalue_to_{other}_adjusted"]),
                "rows": count(row["n"]),
                "verdict": " ".join(WORDS[row["verdict"]]),
            }
            for row in table.iter_rows(named=True)
        ]
    )


def what_columns_are(table: pl.DataFrame, convention: Mapping[str, Any]) -> list[str]:
    """Say of which test the p-values of that view are, how they are adjusted, and what a lean is."""
    other = "reference" if "gap_to_reference" in table.columns else "rest"
    correction = convention["correction"]
    how = "not adjusted" if correction == "none" else f"adjusted over all segments ({correction})"
    lean = lean_note(table["verdict"], convention["alpha"])
    return [f"adj. p: of the gap to the {other}, {how}.", *([] if lean is None else [f"{lean}."])]


def gap_text(row: Mapping[str, Any]) -> str:
    """Return a gap in percentage points; nothing where there are too few rows."""
    return if_judged(row, points(row["gap"], unit=False))


def if_judged(row: Mapping[str, Any], text: str) -> str:
    """Return what is said of a segment, nothing of one with too few rows."""
    return "–" if row["verdict"] == "few" else text
