"""Judged segments as a terminal table, worst first."""

from __future__ import annotations

import polars as pl

from calframe._auditing._view import if_judged
from calframe._cli._cells import number_text
from calframe._cli._grid import Column, grid
from calframe._cli._names import name_column
from calframe._cli._notes import wrapped
from calframe._cli._terminal import takes_style, width
from calframe._verdicts import WORDS, lean_note
from calframe._words._numbers import interval, points


def judged_table(table: pl.DataFrame, *, head: str, alpha: float, most: int, unit: bool) -> str:
    """Lay out segments with their gaps and verdicts.

    Parameters
    ----------
    table
        As a report or an audit gives it, worst first.
    head
        What stands over the names.
    alpha
        Error rate over all segments.
    most
        Segments that are shown.
    unit
        Whether gaps have their unit.

    Returns
    -------
    str
        The table, and how many more segments there are, with a line break at its end. The gap of too few rows is
        hidden: printed, it would be read all the same.
    """
    shown = [*table.head(most).iter_rows(named=True)]
    columns = [
        name_column(head, table["segment"], shown=len(shown)),
        Column(head="gap", cells=tuple(if_judged(row, points(row["gap"], unit=unit)) for row in shown), right=True),
        Column(
            head=f"{100 * (1 - alpha):g}% widened",
            cells=tuple(if_judged(row, interval(row["simultaneous_low"], row["simultaneous_high"])) for row in shown),
            right=True,
        ),
        Column(head="rows", cells=tuple(number_text(row["n"]) for row in shown), right=True),
        Column(head="verdict", cells=tuple(" ".join(WORDS[row["verdict"]]) for row in shown)),
    ]
    lean = lean_note((row["verdict"] for row in shown), alpha)
    said = "" if lean is None else wrapped(lean)
    return grid(columns, width=width(), style=takes_style()) + and_more(table.height - len(shown)) + said


def and_more(count: int) -> str:
    """Say how many rows of a table are not shown."""
    return f"and {count:,} more, further down that order\n" if count else ""
