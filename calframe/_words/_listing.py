"""The segments and models of a result as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from calframe._words._lines import columns, distinct, fitted
from calframe._words._numbers import count, rows

WIDTH = 80
SHOWN = 12  # lines that a printed result has room for


def key_name(keys: Iterable[Any]) -> str:
    """Return the name of a curve by its keys.

    Examples
    --------
    >>> key_name(["West", None, "p_gbm"])
    'West · (missing) · p_gbm'
    """
    return " · ".join("(missing)" if key is None else str(key) for key in keys)


def listing(names: Sequence[str], texts: Sequence[str], *, total: int, place: str, width: int) -> list[str]:
    """Return one line for each name with its text, and one that says how many more there are.

    Parameters
    ----------
    names, texts : sequence of str
        What is shown.
    total : int
        How many there are.
    place : str
        Where the rest is found.
    width : int
        Columns that names may take.

    Examples
    --------
    >>> listing(["West", "North"], ["0.1", "0.2"], total=3, place=".table", width=20)
    ['  West   0.1', '  North  0.2', '  and 1 more in .table']
    """
    short = distinct(names, width)
    room = max((columns(name) for name in short), default=0)
    lines = [fitted(f"  {fitted(name, room)}  {text}", WIDTH).rstrip() for name, text in zip(short, texts, strict=True)]
    return lines + [f"  and {count(total - len(lines))} more in {place}"] * (total > len(lines))


def size(n: int, scores: Collection[str]) -> str:
    """Return the rows of a table, and the number of models where there are several.

    Examples
    --------
    >>> size(1200, ["p"]), size(60, ["p", "q"])
    ('1,200 rows', '60 rows, 2 models')
    """
    return rows(n) + (f", {len(scores)} models" if len(scores) > 1 else "")
