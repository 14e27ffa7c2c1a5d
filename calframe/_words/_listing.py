"""The segments and models of a result as lines of text, and its rows counted once."""

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


def counted_once(models: Sequence[str] | None, *counts: Iterable[Any]) -> tuple[int, ...]:
    """Return the sums of counts over segments; of several models those of the one with the largest first count.

    Examples
    --------
    >>> counted_once(["p", "q", "p", "q"], [3, 3, 4, 5], [1, 1, 1, 0])
    (8, 1)
    """
    if models is None:
        return tuple(sum(int(one) for one in column) for column in counts)
    found = {model: counted_once(None, *_of_model(models, model, counts)) for model in dict.fromkeys(models)}
    return max(found.values(), key=lambda sums: sums[0], default=(0,) * len(counts))


def _of_model(models: Sequence[str], model: str, counts: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return [[one for name, one in zip(models, column, strict=True) if name == model] for column in counts]
