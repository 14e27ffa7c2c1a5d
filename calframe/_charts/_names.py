"""How lines are called: whole where there is room, and as short as a legend needs; counts in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import polars as pl
from polars import selectors as cs

from calframe._charts._data import fitted_names

_MISSING: Final = "(missing)"
_ROOM: Final = 190  # pixels of a name in a legend, less than the legend has: in the reader's font it may be wider


def curve_names(table: pl.DataFrame, keys: Sequence[str]) -> tuple[pl.Series, pl.Series]:
    """Return the curve of each row as text: whole for its words, and as short as a legend needs."""
    rows = table.select(cs.by_name(*keys)).rows() if keys else [()] * table.height
    curves = list(dict.fromkeys(rows))
    found = (dict(zip(curves, texts, strict=True)) for texts in names_of(curves))
    whole, short = (pl.Series([text[row] for row in rows], dtype=pl.String) for text in found)
    return whole, short


def names_of(curves: Sequence[Sequence[Any]]) -> tuple[list[str], list[str]]:
    """Return the names of curves, each given by its keys: whole, and as short as a legend needs."""
    names = told_apart([" · ".join(_MISSING if value is None else str(value) for value in keys) for keys in curves])
    return names, fitted_names(names, _ROOM)


def told_apart(texts: Sequence[str]) -> list[str]:
    """Tell texts that read the same apart by a number."""
    found: dict[str, None] = {}
    for text in texts:
        unique, number = text, 1
        while unique in found:
            number += 1
            unique = f"{text} ({number})"
        found[unique] = None
    return list(found)


def thousands(counts: pl.Series) -> pl.Series:
    """Return counts as text."""
    return pl.Series([f"{count:,}" for count in counts], dtype=pl.String)
