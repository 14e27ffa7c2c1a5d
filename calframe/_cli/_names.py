"""What segments are called: one name a value, cut to the room there is, never two the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import polars as pl

from calframe._cli._cells import name_text
from calframe._cli._grid import Column
from calframe._closing import unique_names
from calframe._words._lines import distinct
from calframe._words._numbers import plural


def names_of(values: Iterable[Hashable]) -> list[str]:
    """Return the values of a key column as names on one line.

    Parameters
    ----------
    values
        Any number of them, in any order; None is a missing one.

    Returns
    -------
    list of str
        Equal values have equal names, and no others do.

    Examples
    --------
    >>> names_of(["a", None, "", "(missing)", None])
    ['a', '(missing) 2', '(empty)', '(missing)', '(missing) 2']
    """
    each = dict.fromkeys(values := list(values))
    names = unique_names([None if value is None else str(value) for value in each])
    found = dict(zip(each, map(name_text, names), strict=True))
    return [found[value] for value in values]


def short_names(values: Iterable[Hashable], room: int) -> list[str]:
    """Return the names of values in so many columns at most."""
    return distinct(names_of(values), room)


def row_names(table: pl.DataFrame, keys: Sequence[str], *, room: int) -> list[str]:
    """Return the values of the key columns of each row, with commas between, each in so many columns at most."""
    columns = [short_names(table[key], room) for key in keys]
    return [", ".join(names) for names in zip(*columns, strict=True)] if keys else [""] * table.height


def name_column(name: str, values: Iterable[Hashable], *, shown: int | None = None) -> Column:
    """Return a key column of a terminal table, with the first so many rows of all; None shows them all."""
    names = tuple(names_of(values))
    return Column(head=name and name_text(name), cells=names[:shown], key=True, among=names[len(names[:shown]) :])


def series(table: pl.DataFrame, keys: Sequence[str], *, room: int) -> list[tuple[str, pl.DataFrame]]:
    """Return the parts of a table that differ in a key, each with a line that says which, and how many rows it has.

    Parameters
    ----------
    table
        A result with a column `n`.
    keys
        Its key columns; without any there is one part.
    room
        Columns that each name may take.
    """
    parts = table.partition_by(keys, maintain_order=True) if keys and table.height else [table]
    firsts = pl.concat([part.head(1) for part in parts])
    heads = short_names(keys, room)
    named = [
        [f"{head} {name}" for name in short_names(firsts[key], room)] for head, key in zip(heads, keys, strict=True)
    ]
    about = zip(*named, strict=True) if keys and table.height else [()] * len(parts)
    return [
        (", ".join([*names, plural(int(part["n"].sum()), "row")]) + "\n", part)
        for names, part in zip(about, parts, strict=True)
    ]
