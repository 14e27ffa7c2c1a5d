"""Results as terminal tables."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from calframe._cli._cells import NULL, name_text, number_text
from calframe._cli._grid import Column, cut, grid
from calframe._cli._terminal import takes_style, width
from calframe._report._sentences import headline as pill
from calframe._report._text import printable
from calframe._report._words import interval, points
from calframe._results import to_polars
from calframe._verb_report import Report
from calframe._verdicts import WORDS

_PAGE_CELLS = 80  # what a report's text keeps within
_NAME_CELLS = 24  # room of a segment's name in a table of metrics,
_SEGMENT_CELLS = 20  # and in a report, beside its verdict
_SHOWN_SEGMENTS = 20  # of each grouping, worst first
_SHOWN_IF_ANY = ("n_missing", "n_invalid")  # counts that are mostly 0
_FOLDED_FROM = 9  # longer headings break at an underscore
_LISTED = 5  # segments named beside a note


def metrics_view(table: pl.DataFrame, *, keys: Sequence[str]) -> str:
    """Lay out a table of metrics: rounded, keys to the left, notes underneath.

    Parameters
    ----------
    table
        What `metrics` gives.
    keys
        Its key columns, `model` included.

    Returns
    -------
    str
        The text with a line break at its end. Counts of left-out rows show where any is not 0.
    """
    zero = {name for name in _SHOWN_IF_ANY if name in table.columns and table[name].sum() == 0}
    values = [name for name in table.columns if name not in {*keys, *zero, "note"}]
    columns = [_name_column(name, table[name].to_list()) for name in keys]
    columns += [Column(head=_folded(name), cells=tuple(map(number_text, table[name])), right=True) for name in values]
    return grid(columns, width=width(), style=takes_style()) + _notes(table, keys)


def _name_column(name: str, values: Sequence[object]) -> Column:
    head, *cells = (cut(name_text(value), _NAME_CELLS) for value in (name, *values))
    return Column(head=head, cells=tuple(cells), key=True)


def _folded(name: str) -> str:
    if len(name) < _FOLDED_FROM or "_" not in name:
        return name
    first, last = name.rsplit("_", 1)
    return f"{first}_\n{last}"


def _notes(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say each note once, with the segments it is about."""
    about: dict[str, list[str]] = {}
    for row in table.filter(pl.col("note").is_not_null()).iter_rows(named=True):
        for note in row["note"].split("; "):
            about.setdefault(note, []).append(", ".join(cut(name_text(row[key]), _NAME_CELLS) for key in keys))
    lines = [f"{_listed(segments, of=table.height)}{note}\n" for note, segments in about.items()]
    return "".join(["\n", *lines]) if lines else ""


def _listed(segments: Sequence[str], *, of: int) -> str:
    if len(segments) == of:
        return "all segments: " if of > 1 else ""
    more = len(segments) - _LISTED
    return "; ".join(segments[:_LISTED]) + (f" and {more:,} more" if more > 0 else "") + ": "


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
