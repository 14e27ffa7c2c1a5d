"""Tests of right scores as a terminal table."""

from __future__ import annotations

import polars as pl

from calframe._cli._cells import NULL, name_text, number_text, pvalue_text
from calframe._cli._grid import Column, cut, grid
from calframe._cli._notes import left_out, note_lines, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._inference import TestResult
from calframe._results import to_polars

_NAME_CELLS = 16  # room of a segment's name
_WORDS = {True: "rejected", False: "not rejected", None: NULL}
_TEST = "_cf_test"
_ONLY = "calibrated"  # the hypothesis of all tests but one


def test_view(found: TestResult) -> str:
    """Lay out tests: rounded, one line each.

    Parameters
    ----------
    found
        What `test` gives.

    Returns
    -------
    str
        The text with a line break at its end, notes underneath.
    """
    table = to_polars(found.table)
    keys = [name for name in (*found.by, "model") if name in table.columns]
    both = pl.format("{}: {}", "method", "hypothesis")  # where a method has several hypotheses
    table = table.with_columns(pl.when(pl.col("hypothesis") == _ONLY).then("method").otherwise(both).alias(_TEST))
    columns = [*(_names(name, table[name]) for name in keys), _names("test", table[_TEST])]
    columns += [
        Column(head="rows", cells=tuple(map(number_text, table["n"])), right=True),
        Column(head="statistic", cells=tuple(map(number_text, table["statistic"])), right=True),
        Column(head="p", cells=tuple(map(pvalue_text, table["pvalue"])), right=True),
        Column(head="adj. p", cells=tuple(map(pvalue_text, table["pvalue_adjusted"])), right=True),
        Column(head="verdict", cells=tuple(_WORDS[value] for value in table["reject"])),
        Column(head="law", cells=tuple(value or NULL for value in table["law"])),
    ]
    text = grid(columns, width=width(), style=takes_style())
    return (
        text + note_lines(table, [*keys, *([_TEST] if len(found.methods) > 1 else [])]) + "\n" + _meaning(found, table)
    )


test_view.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's


def _names(name: str, values: pl.Series) -> Column:
    head, *cells = (cut(name_text(value), _NAME_CELLS) for value in (name, *values))
    return Column(head=head, cells=tuple(cells), key=True)


def _meaning(found: TestResult, table: pl.DataFrame) -> str:
    text = (
        f"rejected: right scores would hardly show this (p adjusted by {found.correction} is at most {found.alpha:g}). "
        "Not rejected is no proof that they are right."
    )
    if found.correction == "none":
        text = text.replace("p adjusted by none", "p")
    keys = [name for name in (*found.by, "model") if name in table.columns]
    return wrapped(text + left_out(table.unique(subset=keys) if keys else table.head(1)))
