"""What is to be said underneath a table: notes, and rows that were left out."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import polars as pl

from calframe._cli._cells import name_text
from calframe._cli._grid import cut
from calframe._cli._terminal import width

LONG_LINE = 120  # cells; a longer line is turned around, if that helps
_PAGE_CELLS = 80  # what sentences keep within
_NAME_CELLS = 24  # room of a segment's name
_LISTED = 5  # segments named beside a note
_LEFT_OUT = {"n_missing": "with something missing", "n_invalid": "out of range"}


def note_lines(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Say each note once, with the segments it is about.

    Parameters
    ----------
    table
        A result with a column `note`.
    keys
        The columns that name its rows.

    Returns
    -------
    str
        An empty line and the notes, each with a line break at its end; nothing where there is no note.
    """
    about: dict[str, list[str]] = {}
    for row in table.filter(pl.col("note").is_not_null()).iter_rows(named=True):
        for note in row["note"].split("; "):
            about.setdefault(note, []).append(", ".join(cut(name_text(row[key]), _NAME_CELLS) for key in keys))
    lines = [_listed(segments, of=table.height) + note for note, segments in about.items()]
    edge = min(width(), LONG_LINE)
    return "".join(["\n", *(textwrap.fill(line, edge) + "\n" for line in lines)]) if lines else ""


def left_out(table: pl.DataFrame) -> str:
    """Say how many rows were left out, and why.

    Parameters
    ----------
    table
        A result in which each row of the input counts once.

    Returns
    -------
    str
        A sentence behind a blank; nothing where no row was left out.
    """
    counts = {name: int(table[name].sum()) for name in _LEFT_OUT if name in table.columns}
    said = ", ".join(f"{count:,} {_LEFT_OUT[name]}" for name, count in counts.items() if count)
    return f" Rows left out: {said}." if said else ""


def wrapped(text: str) -> str:
    """Return a paragraph within 80 columns, with a line break at its end."""
    return textwrap.fill(text, _PAGE_CELLS, break_on_hyphens=False) + "\n"


def _listed(segments: Sequence[str], *, of: int) -> str:
    if len(segments) == of:
        return "all segments: " if of > 1 else ""
    more = len(segments) - _LISTED
    return "; ".join(segments[:_LISTED]) + (f" and {more:,} more" if more > 0 else "") + ": "
