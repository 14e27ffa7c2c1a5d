"""An audit as text in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._audit import Audit
from calframe._auditing._view import if_judged
from calframe._cli._cells import pvalue_text
from calframe._cli._grid import Column, grid
from calframe._cli._judged_view import and_more, judged_table
from calframe._cli._names import name_column, short_names
from calframe._cli._notes import left_out, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._results import to_polars
from calframe._words._lines import distinct, printable
from calframe._words._listing import in_clusters
from calframe._words._numbers import interval, points

_SENTENCE_CELLS = 48  # room of a segment's name in a sentence
_COMPARED = ("gap_to_reference", "gap_to_reference_low", "gap_to_reference_high", "pvalue_to_reference_adjusted")
_SHOWN = 30  # segments, worst first
_STATES = {"action needed": "▲", "watch": "△", "undecided": "○", "within tolerance": "●"}


def audit_view(found: Audit) -> str:
    """Lay out an audit: the verdict, the worst segments, what they are compared with, the largest differences.

    Parameters
    ----------
    found
        What `audit` gives.

    Returns
    -------
    str
        The text with a line break at its end, within 80 columns.
    """
    head = f"{_STATES[found.verdict]} {found.verdict.capitalize()}: {printable(found.headline)}"
    table = to_polars(found.table)
    segments = judged_table(table, head="segment", alpha=found.convention["alpha"], most=_SHOWN, unit=False)
    compared = [_compared(table, found)] if found.convention["reference"] else []
    return "\n".join([wrapped(head), segments, *compared, _meaning(found)])


def _compared(table: pl.DataFrame, found: Audit) -> str:
    """Return how far the gap of each segment is from that of the reference group."""
    shown = [*table.head(_SHOWN).iter_rows(named=True)]
    gaps, low, high, pvalues = ([row[name] for row in shown] for name in _COMPARED)
    texts = {
        "difference": [points(gap, unit=False) for gap in gaps],
        f"{100 * (1 - found.convention['alpha']):g}% interval": map(interval, low, high),
        "adj. p": map(pvalue_text, pvalues),
    }
    columns = [name_column("segment", table["segment"], shown=len(shown))]
    columns += [
        Column(head=head, cells=tuple(map(if_judged, shown, cells)), right=True) for head, cells in texts.items()
    ]
    named = " & ".join(f"{column}={value}" for column, value in found.convention["reference"].items())
    adjusted = "not adjusted" if found.convention["correction"] == "none" else "adjusted"
    text = (
        f"Compared with {distinct([named], _SENTENCE_CELLS)[0]}: the gap of a segment minus that of the rows of this "
        "group that are not its own, in percentage points; each interval is of its segment by itself, p is "
        f"{adjusted} over all of them. The verdicts above stay against the label."
    )
    return wrapped(text) + grid(columns, width=width(), style=takes_style()) + and_more(table.height - len(shown))


def _meaning(found: Audit) -> str:
    tolerance = points(found.convention["tolerance"], sign=False)
    text = (
        f"gap: mean score minus observed rate, in percentage points; tolerance {tolerance}; the widened intervals hold "
        "together over all segments; worst first: by verdict, then rows times gap."
    )
    text = printable(" ".join([text, *in_clusters(found.convention, judged=True)]))
    differences = to_polars(found.disparities).filter((pl.col("measure") == "gap") & pl.col("value").is_not_null())
    lines = [_difference(row) for row in differences.iter_rows(named=True)]
    return "".join(map(wrapped, [*lines, text + left_out(pl.DataFrame([_counts(found)]))]))


def _difference(row: Mapping[str, Any]) -> str:
    names = short_names([row["highest"], row["lowest"]], _SENTENCE_CELLS)
    value, *ends = (points(row[name], sign=False, unit=name == "value") for name in ("value", "low", "high"))
    known = "" if row["low"] is None else f" ({' to '.join(ends)})"
    [column] = short_names([row["column"]], _SENTENCE_CELLS)
    return f"Largest difference of gaps by {column}: {value}{known}, between {names[0]} and {names[1]}."


def _counts(found: Audit) -> dict[str, int]:
    return {name: found.overall.get(name) or 0 for name in ("n_missing", "n_invalid")}
