"""A comparison of two models as a terminal table."""

from __future__ import annotations

from collections.abc import Iterable

from calframe._cli._cells import NULL, name_text, number_text, pvalue_text, range_text
from calframe._cli._grid import Column, grid
from calframe._cli._names import name_column
from calframe._cli._notes import left_out, note_lines, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._cli._words import as_options
from calframe._compare import Comparison
from calframe._results import to_polars
from calframe._words._lines import distinct, printable
from calframe._words._listing import in_clusters

_NAME_CELLS = 16  # room of a segment's, and of a model's name
_SENTENCE_CELLS = 32  # room of a model's name in a sentence
_GOOD = {"lower": "lower", "higher": "higher", "zero": "0", "one": "1"}


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
    columns = [name_column(name, table[name]) for name in (*found.by, "metric")]
    ends = zip(table["low"], table["high"], strict=True)
    first, second = _models(found, _NAME_CELLS)
    good = [_GOOD.get(found.convention["direction"][name], NULL) for name in table["metric"]]
    columns += [
        Column(head="good", cells=tuple(good)),
        Column(head=first, cells=tuple(map(number_text, table["first"])), right=True),
        Column(head=second, cells=tuple(map(number_text, table["second"])), right=True),
        Column(head="difference", cells=tuple(map(number_text, table["difference"])), right=True),
        Column(head="interval", cells=tuple(range_text(*pair) for pair in ends), right=True, tied=True),
        Column(head="adj. p", cells=tuple(map(pvalue_text, table["pvalue_adjusted"])), right=True),
        Column(head="better", cells=_better(found, table["better"], table["pvalue"])),
    ]
    text = grid(columns, width=width(), style=takes_style())
    notes = [note for note in found.notes if not table["note"].str.contains(note, literal=True).any()]  # of all rows
    said = note_lines(table, [*found.by, "metric"]) + "".join(wrapped(as_options(note)) for note in notes)
    return text + said + "\n" + _meaning(found)


def _models(found: Comparison, cells: int) -> list[str]:
    """Return the names of both models, cut so that they differ."""
    return distinct([name_text(name) for name in (found.first, found.second)], cells)


def _better(found: Comparison, names: Iterable[str | None], pvalues: Iterable[float | None]) -> tuple[str, ...]:
    short = dict(zip((found.first, found.second), _models(found, _NAME_CELLS), strict=True))
    return tuple(
        short[name] if name is not None else NULL if pvalue is None else "not clear"
        for name, pvalue in zip(names, pvalues, strict=True)
    )


def _meaning(found: Comparison) -> str:
    first, second = _models(found, _SENTENCE_CELLS)
    level, correction, alpha = (found.convention[name] for name in ("confidence_level", "correction", "alpha"))
    table = to_polars(found.table)
    one = table.filter(table["metric"] == found.metrics[0])
    rows = int(one["n"].sum())
    text = (
        f"difference: {second} minus {first}, on {rows:,} row{'' if rows == 1 else 's'} that have both; intervals of "
        f"{100 * level:g}% each by itself. good: which values are. better: p adjusted ({correction}) at most "
        f"{alpha:g}, and an interval without 0."
    )
    text = " ".join([text, *map(printable, in_clusters(found.convention))])
    return wrapped(text + left_out(one))
