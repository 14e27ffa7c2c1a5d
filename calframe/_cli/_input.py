"""The table behind a command: its files opened, its columns typed for their roles."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from calframe._cli._files import open_table
from calframe._cli._text import Part, typed, with_time


def open_input(
    sources: Sequence[str],
    *,
    label: str,
    scores: Sequence[str],
    by: Sequence[str],
    weight: str | None,
    time: str | None = None,
) -> pl.LazyFrame:
    """Open files as a lazy table whose columns have the types of their roles.

    Parameters
    ----------
    sources
        Paths or globs, or `-` for CSV on standard input.
    label, scores, by, weight, time
        The columns by role.

    Returns
    -------
    polars.LazyFrame
        The table; only the columns that are used will be read.

    Raises
    ------
    click.ClickException
        If the files cannot be opened, or a score, weight or time holds text that is none.
    """
    numbers = [*scores, *([] if weight is None else [weight])]
    parts: dict[str, Part] = {}
    parts |= dict.fromkeys(by, "by")
    parts[label] = "label"
    parts |= dict.fromkeys(numbers, "number")
    if time is None:
        return _opened(sources, parts)
    parts.pop(time, None)
    return with_time(_opened(sources, parts, also=[time]), time)


def _opened(sources: Sequence[str], parts: dict[str, Part], also: Sequence[str] = ()) -> pl.LazyFrame:
    table, is_text = open_table(sources, as_text=[*parts, *also])
    return typed(table, parts) if is_text else table
