"""The segments and models of a result as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from calframe._words._lines import columns, distinct, fitted
from calframe._words._numbers import count, rows, short

WIDTH = 80
SHOWN = 12  # lines that a printed result has room for
_NAMED = 6  # columns that a title has room for


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


def key_columns(by: Iterable[str], columns: Collection[str]) -> list[str]:
    """Return the columns that tell the rows of a result table apart; only a table of several models has theirs.

    Examples
    --------
    >>> key_columns(["region"], ["region", "model", "n"]), key_columns([], ["n", "note"])
    (['region', 'model'], [])
    """
    return [*by, *(["model"] if "model" in columns else [])]


def size(n: int, scores: Collection[str], keys: Collection[str]) -> str:
    """Return the rows of a table, and the number of models where there are several.

    Several score columns may be the classes of one model: models are told apart by a key of their own.

    Examples
    --------
    >>> size(1200, ["p"], []), size(60, ["p", "q"], ["model"]), size(60, ["p_cat", "p_dog"], ["region"])
    ('1,200 rows', '60 rows, 2 models', '60 rows')
    """
    return rows(n) + (f", {len(scores)} models" if "model" in keys and len(scores) > 1 else "")


def scored_by(scores: Sequence[str], keys: Collection[str]) -> str:
    """Return the score columns as a title has room for them: one model, several, or the classes of one.

    Examples
    --------
    >>> scored_by(["p", "q"], ["model"]), scored_by(["p_cat", "p_dog"], [])
    ('p, q', 'the classes p_cat, p_dog')
    """
    shown = ", ".join(scores[:_NAMED]) + (f" and {count(len(scores) - _NAMED)} more" if len(scores) > _NAMED else "")
    return shown if "model" in keys or len(scores) == 1 else f"the classes {shown}"


def in_clusters(convention: Mapping[str, Any], *, judged: bool = False) -> list[str]:
    """Say which rows are not taken as independent, if any are.

    Parameters
    ----------
    convention : mapping
        How columns were read, with the column ``cluster`` if there is one.
    judged : bool, default False
        Whether there are verdicts, some of which may be that rows are too few.

    Examples
    --------
    >>> in_clusters({"cluster": "person"})
    ["Rows of one 'person' are not taken as independent."]
    """
    column = convention.get("cluster")
    if column is None:
        return []
    few = "; where rows are too few, it may be clusters that are" if judged else ""
    return [f"Rows of one {short(column)!r} are not taken as independent{few}."]
