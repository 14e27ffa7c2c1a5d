"""Results as terminal tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from calframe._cli._cells import name_text, number_text
from calframe._cli._grid import Column, cut, grid
from calframe._cli._terminal import takes_style, width

_NAME_CELLS = 24  # room of a segment's name
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


def headline(result: Any) -> str:
    return str(result)


def report_view(result: Any) -> str:
    return str(result)
