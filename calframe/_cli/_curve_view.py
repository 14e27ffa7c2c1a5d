"""A reliability curve as terminal tables, one a curve."""

from __future__ import annotations

import polars as pl

from calframe._cli._cells import number_text
from calframe._cli._grid import Column, grid
from calframe._cli._names import series
from calframe._cli._notes import left_out, wrapped
from calframe._cli._terminal import takes_style, width
from calframe._curve import Curve
from calframe._results import to_polars

_NAME_CELLS = 24  # room of a segment's name


def curve_view(curve: Curve) -> str:
    """Lay out a curve: rounded, one table for each segment, model and class.

    Parameters
    ----------
    curve
        What `curve` gives.

    Returns
    -------
    str
        The text with a line break at its end, within 80 columns.
    """
    table = to_polars(curve.table)
    keys = [name for name in (*curve.by, "model", "class") if name in table.columns]
    parts = series(table, keys, room=_NAME_CELLS)
    return "\n".join([*(head + _points(part, curve) for head, part in parts), _meaning(curve)])


def _points(part: pl.DataFrame, curve: Curve) -> str:
    level = f"{100 * curve.confidence_level:g}%"
    columns = [
        Column(head="scores", cells=_ranges(part, "lower", "upper"), key=True),
        Column(head="rows", cells=_numbers(part, "n"), right=True),
        Column(head="mean\nscore", cells=_numbers(part, "mean_score"), right=True),
        Column(head="rate", cells=_numbers(part, "rate"), right=True),
        Column(head=f"{level}\ninterval", cells=_ranges(part, "rate_low", "rate_high"), right=True),
        Column(head="gap", cells=_numbers(part, "gap"), right=True),
        Column(head="right scores\nwould show", cells=_ranges(part, "band_low", "band_high"), right=True),
        Column(head="", cells=_marks(part), tied=True),
    ]
    return grid(columns, width=width(), style=takes_style())


def _numbers(part: pl.DataFrame, name: str) -> tuple[str, ...]:
    return tuple(map(number_text, part[name]))


def _ranges(part: pl.DataFrame, low: str, high: str) -> tuple[str, ...]:
    """Return two numbers as a range, one number where they are equal."""
    pairs = zip(_numbers(part, low), _numbers(part, high), strict=True)
    return tuple(first if first == last else f"{first}–{last}" for first, last in pairs)


def _marks(part: pl.DataFrame) -> tuple[str, ...]:
    """Return a sign for each rate outside the range of right scores."""
    over, under = pl.col("rate") < pl.col("band_low"), pl.col("rate") > pl.col("band_high")
    sign = pl.when(over).then(pl.lit("▲")).when(under).then(pl.lit("▼")).otherwise(pl.lit(""))
    return tuple(part.select(sign=sign)["sign"])


def _meaning(curve: Curve) -> str:
    text = (
        "gap: mean score minus rate. ▲ the scores say too much, ▼ too little: the rate lies outside the range that "
        "right scores would show, each line by itself."
    )
    return wrapped(text + left_out(pl.DataFrame({"n_missing": [curve.n_missing], "n_invalid": [curve.n_invalid]})))
