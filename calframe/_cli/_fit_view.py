"""A calibration map as a few lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from calframe._cli._cells import name_text
from calframe._cli._grid import cut
from calframe._maps._map import CalibrationMap

_PAGE_CELLS = 80  # what the text keeps within
_NAME_CELLS = 24  # room of a segment's name
_LISTED = 5  # segments named beside a note
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
    scores = ", ".join(cut(name_text(name), _NAME_CELLS) for name in found.scores)
    rows = f"{found.n:,} row{'' if found.n == 1 else 's'}"
    lines = [f"{found.method} map of {scores}, fitted to {rows}{_left_out(found)}.", _segments(found, by)]
    lines.extend(f"Note: {note}." for note in found.notes)
    lines.extend(_notes(found))
    return "".join(textwrap.fill(line, _PAGE_CELLS, break_on_hyphens=False) + "\n" for line in lines)


def _left_out(found: CalibrationMap) -> str:
    counts = ((found.n_missing, "with something missing"), (found.n_invalid, "out of range"))
    left_out = ", ".join(f"{count:,} {why}" for count, why in counts if count)
    return f" (left out: {left_out})" if left_out else ""


def _segments(found: CalibrationMap, by: Sequence[str]) -> str:
    if not by:
        return "One map for all rows, without segments."
    names = " and ".join(cut(name_text(name), _NAME_CELLS) for name in by)
    if found.pooling == "complete":
        return f"One map for all rows, whatever their {names} (pooling: complete)."
    many, pooled = len(found.segments), int((found.segments.curve == 0).sum())
    text = f"{many:,} segment{'' if many == 1 else 's'} by {names}, {_POOLING[found.pooling]}"
    takes = "takes" if pooled == 1 else "take"
    return text + (f"; {pooled:,} of them {takes} the pooled map." if pooled else ".")


def _notes(found: CalibrationMap) -> list[str]:
    """Say each note once, with the segments it is about."""
    about: dict[str, list[str]] = {}
    names = zip(*(key.to_list() for key in found.segments.keys), strict=True)
    for segment, note in zip(names, found.segments.note, strict=True):
        if note is not None:
            about.setdefault(note, []).append(", ".join(cut(name_text(value), _NAME_CELLS) for value in segment))
    return [f"{_listed(segments)} – {note}." for note, segments in about.items()]


def _listed(segments: Sequence[str]) -> str:
    more = len(segments) - _LISTED
    return "; ".join(segments[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
