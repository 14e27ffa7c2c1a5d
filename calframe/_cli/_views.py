"""A report as text in the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._cli._cells import NULL, name_text, number_text
from calframe._cli._grid import Column, cut, grid
from calframe._cli._terminal import takes_style, width
from calframe._report._sentences import headline as pill
from calframe._results import to_polars
from calframe._verb_report import Report
from calframe._verdicts import WORDS
from calframe._words._lines import printable
from calframe._words._numbers import interval, points

_PAGE_CELLS = 80  # what a report's text keeps within
_SEGMENT_CELLS = 20  # room of a segment's name, beside its verdict
_SHOWN_SEGMENTS = 20  # of each grouping, worst first


def headline(report: Report) -> str:
    """Return the verdict of a report as one line: symbol, word, sentence.

    Parameters
    ----------
    report
        What `report` gives.

    Returns
    -------
    str
        The line, without a line break.
    """
    card = pill(report.findings)
    return f"{card.symbol} {card.word}: {printable(card.lead)}"


def report_view(report: Report, *, tolerance: float, alpha: float) -> str:
    """Lay out a report: the verdict, then each grouping with its segments, worst first.

    Parameters
    ----------
    report
        What `report` gives.
    tolerance, alpha
        As they were given to it, for the line that says what the columns mean.

    Returns
    -------
    str
        The text with a line break at its end, within 80 columns.
    """
    table = to_polars(report.table)
    groupings = table.partition_by("column", maintain_order=True)
    judged = table.filter((pl.col("column") != "") & (pl.col("verdict") != "few")).height
    together = f"; the intervals hold together over {judged:,} judged segments" if judged > 1 else ""
    meaning = f"gap: mean score minus observed rate; tolerance {points(tolerance, sign=False)}{together}."
    parts = [_wrapped(headline(report)), *(_grouping(rows, alpha=alpha) for rows in groupings), _wrapped(meaning)]
    return "\n".join(parts)


def _grouping(rows: pl.DataFrame, *, alpha: float) -> str:
    shown = [*rows.head(_SHOWN_SEGMENTS).iter_rows(named=True)]
    names = [cut(name_text(name), _SEGMENT_CELLS) for name in (rows["column"][0], *(row["segment"] for row in shown))]
    text = grid(
        [
            Column(head=names[0] if rows["column"][0] else "", cells=tuple(names[1:]), key=True),
            Column(head="gap", cells=tuple(_if_judged(row, points(row["gap"])) for row in shown), right=True),
            Column(head=f"{100 * (1 - alpha):g}% widened", cells=tuple(map(_interval, shown)), right=True),
            Column(head="rows", cells=tuple(number_text(row["n"]) for row in shown), right=True),
            Column(head="verdict", cells=tuple(" ".join(WORDS[row["verdict"]]) for row in shown)),
        ],
        width=width(),
        style=takes_style(),
    )
    more = rows.height - len(shown)
    return text + (f"and {more:,} more, further down that order\n" if more else "")


def _interval(row: Mapping[str, Any]) -> str:
    return _if_judged(row, interval(row["simultaneous_low"], row["simultaneous_high"]))


def _if_judged(row: Mapping[str, Any], text: str) -> str:
    """Hide the gap of too few rows: printed, it would be read all the same."""
    return NULL if row["verdict"] == "few" else text


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _PAGE_CELLS) + "\n"
