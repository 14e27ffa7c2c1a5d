"""An audit as text in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._audit import Audit
from calframe._cli._cells import NULL, name_text, number_text
from calframe._cli._grid import Column, cut, grid
from calframe._cli._notes import left_out, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._results import to_polars
from calframe._verdicts import WORDS
from calframe._words._lines import printable
from calframe._words._numbers import interval, points

_SEGMENT_CELLS = 28  # room of a segment's name
_SHOWN = 30  # segments, worst first
_STATES = {"action needed": "▲", "watch": "△", "undecided": "○", "within tolerance": "●"}


def audit_view(found: Audit) -> str:
    """Lay out an audit: the verdict, the worst segments, the largest differences.

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
    return "\n".join([wrapped(head), _segments(found) + "\n" + _meaning(found)])


def _segments(found: Audit) -> str:
    table = to_polars(found.table)
    shown = [*table.head(_SHOWN).iter_rows(named=True)]
    level = f"{100 * (1 - found.convention['alpha']):g}% widened"
    text = grid(
        [
            Column(
                head="segment", cells=tuple(cut(name_text(row["segment"]), _SEGMENT_CELLS) for row in shown), key=True
            ),
            Column(
                head="gap", cells=tuple(_if_judged(row, points(row["gap"], unit=False)) for row in shown), right=True
            ),
            Column(head=level, cells=tuple(map(_interval, shown)), right=True),
            Column(head="rows", cells=tuple(number_text(row["n"]) for row in shown), right=True),
            Column(head="verdict", cells=tuple(" ".join(WORDS[row["verdict"]]) for row in shown)),
        ],
        width=width(),
        style=takes_style(),
    )
    more = table.height - len(shown)
    return text + (f"and {more:,} more, further down that order\n" if more else "")


def _interval(row: Mapping[str, Any]) -> str:
    return _if_judged(row, interval(row["simultaneous_low"], row["simultaneous_high"]))


def _if_judged(row: Mapping[str, Any], text: str) -> str:
    """Hide the gap of too few rows: printed, it would be read all the same."""
    return NULL if row["verdict"] == "few" else text


def _meaning(found: Audit) -> str:
    tolerance = points(found.convention["tolerance"], sign=False)
    text = (
        f"gap: mean score minus observed rate, in percentage points; tolerance {tolerance}; the widened intervals hold "
        "together over all segments."
    )
    differences = to_polars(found.disparities).filter((pl.col("measure") == "gap") & pl.col("value").is_not_null())
    lines = [_difference(row) for row in differences.iter_rows(named=True)]
    return "".join(map(wrapped, [*lines, text + left_out(pl.DataFrame([_counts(found)]))]))


def _difference(row: Mapping[str, Any]) -> str:
    names = [cut(name_text(row[end]), _SEGMENT_CELLS) for end in ("highest", "lowest")]
    value, *ends = (points(row[name], sign=False, unit=name == "value") for name in ("value", "low", "high"))
    known = "" if row["low"] is None else f" ({' to '.join(ends)})"
    column = cut(name_text(row["column"]), _SEGMENT_CELLS)
    return f"Largest difference of gaps by {column}: {value}{known}, between {names[0]} and {names[1]}."


def _counts(found: Audit) -> dict[str, int]:
    return {name: found.overall.get(name) or 0 for name in ("n_missing", "n_invalid")}
