"""A report as text, for a terminal or a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from calframe._verdicts import WORDS
from calframe._words._lines import fitted, printable, wrapped
from calframe._words._listing import in_clusters
from calframe._words._numbers import points

_WIDTH = 80
_NAME_WIDTH = 32
_SHOWN_SEGMENTS = 20


def report_text(table: pl.DataFrame, *, verdict: str, headline: str, roles: Mapping[str, Any]) -> str:
    """Return verdict, sentence and segments, worst first, within 80 columns.

    Parameters
    ----------
    table : polars.DataFrame
        The segments, with ``column``, ``segment``, ``gap``, ``n`` and ``verdict``; the whole table has no column.
    verdict, headline : str
        The verdict and its sentence.
    roles : mapping
        How columns were read.
    """
    lines = [f"<Report: {verdict}>", *wrapped(printable(headline), _WIDTH)]
    segments = table.filter(pl.col("column") != "")
    for row in segments.head(_SHOWN_SEGMENTS).iter_rows(named=True):
        gap = "–" if row["verdict"] == "few" else points(row["gap"])
        name = fitted(f"{row['column']} {row['segment']}", _NAME_WIDTH)
        lines.append(f"  {name} {gap:>9} {row['n']:>12,}  {' '.join(WORDS[row['verdict']])}")
    if segments.height > _SHOWN_SEGMENTS:
        lines.append(f"  and {segments.height - _SHOWN_SEGMENTS:,} more in .table")
    lines += [line for said in in_clusters(roles, judged=True) for line in wrapped(said, _WIDTH)]
    return "\n".join([*lines, ".show(), .save(path), .to_dict(), .table"])
