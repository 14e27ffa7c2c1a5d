"""A comparison of two models as a terminal table."""

from __future__ import annotations

from calframe._cli._cells import NULL, name_text, number_text, pvalue_text, range_text
from calframe._cli._grid import Column, cut, grid
from calframe._cli._notes import left_out, note_lines, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._compare import Comparison
from calframe._results import to_polars

_NAME_CELLS = 16  # room of a segment's, and of a model's name
_SENTENCE_CELLS = 32  # room of a model's name in a sentence


def compare_view(found: Comparison) -> str:
    """Lay out a comparison: rounded, one line a segment and metric.

    Parameters
    ----------
    found
        What `compare` gives.

    Returns
    -------
    str
        The text with a line break at its end, notes underneath.
    """
    table = to_polars(found.table)
    columns = [_names(name, table[name].to_list()) for name in (*found.by, "metric")]
    ends = zip(table["low"], table["high"], strict=True)
    columns += [
        Column(head="difference", cells=tuple(map(number_text, table["difference"])), right=True),
        Column(head="interval", cells=tuple(range_text(*pair) for pair in ends), right=True, tied=True),
        Column(head="adj. p", cells=tuple(map(pvalue_text, table["pvalue_adjusted"])), right=True),
        Column(head="better", cells=tuple(map(_better, table["better"], table["pvalue"]))),
    ]
    text = grid(columns, width=width(), style=takes_style())
    return text + note_lines(table, [*found.by, "metric"]) + "\n" + _meaning(found)


def _names(name: str, values: list[object]) -> Column:
    head, *cells = (cut(name_text(value), _NAME_CELLS) for value in (name, *values))
    return Column(head=head, cells=tuple(cells), key=True)


def _better(name: str | None, pvalue: float | None) -> str:
    if name is None:
        return NULL if pvalue is None else "not clear"
    return cut(name_text(name), _NAME_CELLS)


def _meaning(found: Comparison) -> str:
    first, second = (cut(name_text(name), _SENTENCE_CELLS) for name in (found.first, found.second))
    table = to_polars(found.table)
    one = table.filter(table["metric"] == found.metrics[0])
    rows = int(one["n"].sum())
    text = (
        f"difference: {second} minus {first}, on {rows:,} row{'' if rows == 1 else 's'} that have both; intervals of "
        f"{100 * found.confidence_level:g}% each by itself. better: p adjusted ({found.correction}) at most "
        f"{found.alpha:g}, and an interval without 0."
    )
    return wrapped(text + left_out(one))
