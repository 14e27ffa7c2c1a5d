"""A calibration map as a few lines of text."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from calframe._cli._names import short_names
from calframe._cli._notes import counted, names_listed, said, wrapped
from calframe._cli._words import as_options
from calframe._maps._map import CalibrationMap

_NAME_CELLS = 48  # room of a column's name in a sentence
_POOLING = {
    "none": "each fitted by itself (pooling: none)",
    "partial": "the small ones shrunk towards the pooled map (pooling: partial)",
}


def fit_view(found: CalibrationMap, *, by: Sequence[str]) -> str:
    """Say what was fitted: method, rows, segments, pooling, and what is to be said of them.

    Parameters
    ----------
    found
        What `fit` gives.
    by
        The segment columns that were asked for.

    Returns
    -------
    str
        The text with a line break at its end, within 80 columns.
    """
    scores = ", ".join(short_names(found.scores, _NAME_CELLS))
    rows = f"{found.n:,} row{'' if found.n == 1 else 's'}"
    without = counted({"n_missing": found.n_missing, "n_invalid": found.n_invalid})
    without = f" (left out: {without})" if without else ""
    lines = [f"{found.method} map of {scores}, fitted to {rows}{without}.", _segments(found, by)]
    lines.extend(f"Note: {as_options(note)}." for note in found.notes)
    lines.extend(_notes(found))
    return "".join(map(wrapped, lines))


def _segments(found: CalibrationMap, by: Sequence[str]) -> str:
    if not by:
        return "One map for all rows, without segments."
    names = " and ".join(short_names(by, _NAME_CELLS))
    if found.pooling == "complete":
        return f"One map for all rows, whatever their {names} (pooling: complete)."
    many, pooled = len(found.segments), int((found.segments.curve == 0).sum())
    text = f"{many:,} segment{'' if many == 1 else 's'} by {names}, {_POOLING[found.pooling]}"
    takes = "takes" if pooled == 1 else "take"
    return text + (f"; {pooled:,} of them {takes} the pooled map." if pooled else ".")


def _notes(found: CalibrationMap) -> list[str]:
    """Say each note once, with the segments it is about."""
    table = pl.DataFrame(found.segments.keys)
    about = said(table, table.columns, found.segments.note)
    return [f"{names_listed(segments)} – {as_options(note)}." for note, segments in about.items()]
