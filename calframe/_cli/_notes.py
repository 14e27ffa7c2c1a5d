"""What is to be said underneath a table: notes, and rows that were left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from calframe._cli._names import row_names
from calframe._cli._terminal import PAGE, width
from calframe._cli._words import as_options
from calframe._words._lines import wrapped as lines_of

LONG_LINE = 120  # cells; a longer line is turned around, if that helps
_NAME_CELLS = 32  # room of a segment's name
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
    notes = table["note"].to_list()
    if "metric" in keys:  # it is named in front
        notes = [
            note and note.replace(f" for {name}", "").replace(f"{name}: ", "")
            for note, name in zip(notes, table["metric"], strict=True)
        ]
    lines = [_listed(names, of=table.height) + as_options(note) for note, names in said(table, keys, notes).items()]
    return "".join(["\n", *(wrapped(line, min(width(), LONG_LINE)) for line in lines)]) if lines else ""


def said(table: pl.DataFrame, keys: Sequence[str], notes: Iterable[str | None]) -> Mapping[str, list[str]]:
    """Return each note with the names of the rows it is about.

    Parameters
    ----------
    table, keys
        As for `note_lines`.
    notes
        The note of each row; several stand in one with semicolons between.
    """
    about: dict[str, list[str]] = {}
    for name, note in zip(row_names(table, keys, room=_NAME_CELLS), notes, strict=True):
        for part in note.split("; ") if note else ():
            about.setdefault(part, []).append(name)
    return about


def names_listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _LISTED
    return "; ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


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
    counts = counted({name: int(table[name].sum()) for name in _LEFT_OUT if name in table.columns})
    return f" Rows left out: {counts}." if counts else ""


def counted(counts: Mapping[str, int]) -> str:
    """Say how many rows were left out by why, such as "2 with something missing"; nothing where none was."""
    return ", ".join(f"{count:,} {_LEFT_OUT[name]}" for name, count in counts.items() if count)


def wrapped(text: str, edge: int = PAGE) -> str:
    """Return a paragraph within so many columns, with a line break at its end."""
    return "\n".join(lines_of(text, edge)) + "\n"


def _listed(segments: Sequence[str], *, of: int) -> str:
    if len(segments) == of:
        return "all segments: " if of > 1 else ""
    return f"{names_listed(segments)}: "
