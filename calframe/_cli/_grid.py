"""Tables of text that fit the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from calframe._cli._terminal import NO_EDGE, PAGE
from calframe._words._lines import distinct

_GAP = 2  # blanks between columns
_LEAST_NAME = 24  # room of a name beside columns that take the whole line


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a terminal table.

    Attributes
    ----------
    head : str
        Its heading.
    cells : tuple of str
        Its values as text; names of rows are cut where the table is laid out, so that they stay distinct.
    right : bool
        Whether it stands to the right, as numbers do.
    key : bool
        Whether it names the row, and so returns in every block of a table that is wider than the terminal.
    tied : bool
        Whether it stays in the block of the column before it.
    among : tuple of str
        Further names that those of the rows must stay distinct from, such as those of rows that are not shown.
    """

    head: str
    cells: tuple[str, ...]
    right: bool = False
    key: bool = False
    tied: bool = False
    among: tuple[str, ...] = ()


def cut(text: str, cells: int) -> str:
    """Cut a long name to a number of terminal cells, the last of them `…`.

    Parameters
    ----------
    text
        The name.
    cells
        The room it has; wide letters take two.

    Returns
    -------
    str
        The name itself where it fits.

    Examples
    --------
    >>> cut("a very long name", 8), cut("short", 8)
    ('a very…', 'short')
    """
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip(" ") + "…"


def grid(columns: Sequence[Column], *, width: int, style: bool = False) -> str:
    """Lay columns out as a table, in as many blocks as the width asks for.

    Parameters
    ----------
    columns
        At least one; all of one length.
    width
        Terminal cells in a line.
    style
        Whether headings stand out, by escape codes.

    Returns
    -------
    str
        The table with a line break at its end; blocks stand under each other, each with the key columns.
    """
    return "\n".join(_drawn(block, style=style) for block in _blocks(with_room(columns, width=width), width))


def with_room(columns: Sequence[Column], *, width: int) -> list[Column]:
    """Cut the names of rows to what the other columns leave of a line: of the page, where the terminal has no edge.

    Parameters
    ----------
    columns
        As for `grid`.
    width
        Terminal cells in a line.

    Returns
    -------
    list of Column
        The columns, those of names within their share of that room, and none below a least width.
    """
    keys = {place: column for place, column in enumerate(columns) if column.key}
    room = (PAGE if width == NO_EDGE else width) - _size([one for one in columns if not one.key]) - _GAP * len(keys)
    room += _GAP  # there is none behind the last column
    found = list(columns)
    for left, (place, column) in zip(range(len(keys), 0, -1), sorted(keys.items(), key=_need), strict=True):
        share = min(_cells(column), max(room // left, _LEAST_NAME))
        cells = distinct([*column.cells, *column.among], share)[: len(column.cells)]
        head = "\n".join(distinct([line], share)[0] for line in column.head.split("\n"))
        found[place] = replace(column, head=head, cells=tuple(cells))
        room -= share
    return found


def _need(placed: tuple[int, Column]) -> int:
    return _cells(placed[1])


def span(columns: Sequence[Column]) -> int:
    """Return the cells in a line of a table that is not cut into blocks."""
    return _size(columns) - _GAP


def _blocks(columns: Sequence[Column], width: int) -> list[list[Column]]:
    keys = [column for column in columns if column.key]
    blocks, room = [keys.copy()], width - _size(keys)
    for part in _parts(column for column in columns if not column.key):
        if _size(part) - _GAP > room and len(blocks[-1]) > len(keys):
            blocks.append(keys.copy())
            room = width - _size(keys)
        blocks[-1].extend(part)
        room -= _size(part)
    return blocks


def _parts(columns: Iterable[Column]) -> list[list[Column]]:
    """Return the columns that stay together."""
    parts: list[list[Column]] = []
    for column in columns:
        if column.tied and parts:
            parts[-1].append(column)
        else:
            parts.append([column])
    return parts


def _size(columns: Sequence[Column]) -> int:
    return sum(_cells(column) + _GAP for column in columns)


def _cells(column: Column) -> int:
    return max(map(cell_len, (*column.head.split("\n"), *column.cells)))


def _drawn(columns: Sequence[Column], *, style: bool) -> str:
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(
            Text(column.head), justify="right" if column.right else "left", vertical="bottom", no_wrap=True
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    out = io.StringIO()
    Console(file=out, width=NO_EDGE, force_terminal=style, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
