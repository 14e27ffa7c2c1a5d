"""Score bins inside a polars expression, whose type is not known there: edges are met in the type of the score."""

from __future__ import annotations

from collections.abc import Callable
from operator import add

import polars as pl

from calframe._binning import Bins

_NO_BINARY_FRACTION = 0.1  # Float32 rounds it to another number than Float64, and so tells its type


def own_number(column: pl.Expr) -> pl.Expr:
    """Return a column as Float32 where it is that, else as Float64; text and dates are refused by polars."""
    number = column + 0.0
    return number + pl.lit(0.0, pl.Float32)  # half precision ends here: its edges would be rounded once more


def is_probability(own: pl.Expr, bins: Bins | None) -> pl.Expr:
    """Return which scores lie in [0, 1] and in the bins."""
    allowed = own.is_between(0.0, 1.0)
    if bins is None:
        return allowed
    first, last = bins.edges[0], bins.edges[-1]  # compared one by one: is_between does not always round them
    return allowed & (own >= first) & (own <= last)


def inside(own: pl.Expr, bins: Bins) -> list[pl.Expr]:
    """Return for each bin which scores lie in it, found by comparison alone."""
    passed = _passed(own, bins)
    starts, ends = [pl.lit(value=True), *passed], [*passed, pl.lit(value=False)]
    return [start & ~end for start, end in zip(starts, ends, strict=True)]


def index(own: pl.Expr, bins: Bins) -> pl.Expr:
    """Return the bin of each score as Int32, the same as `Bins.index`.

    Parameters
    ----------
    own : polars.Expr
        Scores inside the edges, in their own type; null elsewhere.
    bins : Bins
        The bins.
    """
    found = _by_arithmetic(own, bins) if bins.uniform else _by_comparison(own, bins)
    return pl.when(own.is_not_null()).then(found)


def combined(terms: list[pl.Expr], join: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> pl.Expr:
    """Join terms two by two, as a flat tree; ``pl.sum_horizontal`` would mix the columns of ``pl.col("a", "b")``."""
    while len(terms) > 1:
        last = terms[len(terms) // 2 * 2 :]
        terms = [join(one, other) for one, other in zip(terms[::2], terms[1::2], strict=False)] + last
    return terms[0]


def _passed(own: pl.Expr, bins: Bins) -> list[pl.Expr]:
    """Return for each inner edge which scores lie beyond it; a literal takes the type of the column beside it."""
    return [own >= edge if bins.closed == "left" else own > edge for edge in bins.edges[1:-1]]


def _by_comparison(own: pl.Expr, bins: Bins) -> pl.Expr:
    passed = [beyond.cast(pl.Int32) for beyond in _passed(own, bins)]
    return combined([(own * 0.0).cast(pl.Int32), *passed], add)


def _by_arithmetic(own: pl.Expr, bins: Bins) -> pl.Expr:
    """Find the bin by a product, which may round across an edge; one comparison with the edges found mends it."""
    score = own.cast(pl.Float64)
    guess = (score * bins.count).floor() if bins.closed == "left" else (score * bins.count).ceil() - 1.0
    count = score * 0.0 + bins.count  # a column: polars divides by a literal through its reciprocal
    lower, upper = (_in_type_of(own, edge) for edge in (guess / count, (guess + 1.0) / count))
    low = score < lower if bins.closed == "left" else score <= lower
    high = score >= upper if bins.closed == "left" else score > upper
    return (guess + high.cast(pl.Int8) - low.cast(pl.Int8)).clip(0, bins.count - 1).cast(pl.Int32)


def _in_type_of(own: pl.Expr, edge: pl.Expr) -> pl.Expr:
    """Return an edge as the type of the score rounds it."""
    is_narrow = (own * 0.0 + _NO_BINARY_FRACTION).cast(pl.Float64) != _NO_BINARY_FRACTION
    return pl.when(is_narrow).then(edge.cast(pl.Float32).cast(pl.Float64)).otherwise(edge)
