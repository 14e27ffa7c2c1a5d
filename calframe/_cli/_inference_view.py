"""Tests of right scores as a terminal table."""

from __future__ import annotations

import polars as pl

from calframe._cli._cells import NULL, number_text, pvalue_text
from calframe._cli._grid import Column, grid
from calframe._cli._names import name_column
from calframe._cli._notes import left_out, note_lines, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._inference import TestResult
from calframe._results import to_polars
from calframe._words._lines import printable
from calframe._words._listing import in_clusters

_WORDS = {True: "rejected", False: "not rejected", None: NULL}
_TEST = "_cf_test"
_ONLY = "calibrated"  # the hypothesis of all tests but one
_DRAWN = "resampling"  # the method of any statistic


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
    several, statistic = pl.col("hypothesis") != _ONLY, pl.lit(found.convention["statistic"])
    of_what = pl.when(several).then("hypothesis").when(pl.col("method") == _DRAWN).then(statistic)
    table = table.with_columns(pl.concat_str("method", pl.lit(": ") + of_what, ignore_nulls=True).alias(_TEST))
    columns = [*(name_column(name, table[name]) for name in keys), name_column("test", table[_TEST])]
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


def _meaning(found: TestResult, table: pl.DataFrame) -> str:
    correction, alpha = (found.convention[name] for name in ("correction", "alpha"))
    text = (
        f"rejected: right scores would hardly show this (p adjusted by {correction} is at most {alpha:g}). "
        "Not rejected is no proof that they are right."
    )
    if correction == "none":
        text = text.replace("p adjusted by none", "p")
    text = printable(" ".join([text, *in_clusters(found.convention)]))
    keys = [name for name in (*found.by, "model") if name in table.columns]
    return wrapped(text + left_out(table.unique(subset=keys) if keys else table.head(1)))
