"""A report as text in the terminal."""

from __future__ import annotations

import polars as pl

from calframe._cli._judged_view import judged_table
from calframe._cli._notes import wrapped
from calframe._report._sentences import headline as pill
from calframe._results import to_polars
from calframe._verb_report import Report
from calframe._words._lines import printable
from calframe._words._listing import in_clusters
from calframe._words._numbers import points

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
    meaning = " ".join([meaning, *map(printable, in_clusters(report.findings.roles.convention(), judged=True))])
    tables = [
        judged_table(rows, head=rows["column"][0], alpha=alpha, most=_SHOWN_SEGMENTS, unit=True) for rows in groupings
    ]
    return "\n".join([wrapped(headline(report)), *tables, wrapped(meaning)])
