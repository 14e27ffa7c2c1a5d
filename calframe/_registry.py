"""A metric is data: its name, range and direction, the sums it reads, and the arithmetic that finishes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import narwhals.stable.v2 as nw

from calframe._kernels._binned import segment_sum
from calframe._typing import Direction, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Sums of row terms in each cell (segment x bin), in segment order.

    Attributes
    ----------
    starts : ndarray of int64
        The first cell of each segment.
    sums : mapping of str to ndarray
        The sums of each term, one value a cell.
    """

    starts: Ints
    sums: Mapping[str, Floats]

    def total(self, term: str) -> Floats:
        """Return the sum of a term over each segment."""
        return segment_sum(self.sums[term], self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The private columns of a row, as expressions that term builders combine.

    Attributes
    ----------
    used : narwhals.Expr
        1 for a row that is used, else 0.
    score, label : narwhals.Expr
        Probability and 0/1 label; both 0 for a row that is not used.
    chance, surprise : narwhals.Expr
        Probability given to what happened, and the log loss of the row where it is finite (else 0).
    weight : narwhals.Expr or None
        Row weight; None where every row counts once.
    frequency : bool
        Whether weight 2 is the row twice in variances too.
    """

    used: nw.Expr
    score: nw.Expr
    label: nw.Expr
    chance: nw.Expr
    surprise: nw.Expr
    weight: nw.Expr | None
    frequency: bool

    def times(self, value: nw.Expr) -> nw.Expr:
        """Return a value times the row's weight."""
        return value if self.weight is None else self.weight * value

    def squared(self, value: nw.Expr) -> nw.Expr:
        """Return a value times the square of the weight, as variances need it."""
        if self.weight is None:
            return value
        return self.weight * value if self.frequency else self.weight * self.weight * value


def _right_side(row: Row) -> nw.Expr:
    return (row.score >= 0.5) == (row.label == 1.0)


Term: TypeAlias = Callable[[Row], nw.Expr]

TERMS: Mapping[str, Term] = {
    "w2": lambda row: row.squared(row.score * 0.0 + 1.0),
    "wy": lambda row: row.times(row.label),
    "wp": lambda row: row.times(row.score),
    "square": lambda row: row.times((row.score - row.label) * (row.score - row.label)),
    "w2_square": lambda row: row.squared((row.score - row.label) * (row.score - row.label)),
    "fourth": lambda row: row.times((row.score - row.label) ** 4),
    "variance": lambda row: row.times(row.score * (1.0 - row.score)),
    "w2_variance": lambda row: row.squared(row.score * (1.0 - row.score)),
    "centred": lambda row: row.times((row.score - 0.5) * row.used),
    "centred_square": lambda row: row.times((row.score - 0.5) * (row.score - 0.5) * row.used),
    "right": lambda row: row.times(nw.when(_right_side(row)).then(row.used).otherwise(0.0)),
    "surprise": lambda row: row.times(row.surprise),
    "impossible": lambda row: nw.when(row.chance <= 0.0).then(1.0).otherwise(0.0),
}
"""Row terms by name; each is 0 on a row that is not used. ``n`` (used rows) and ``w`` (weight) are always there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name : str
        Its name, and that of its column.
    summary : str
        What it measures, in one line.
    low, high : float
        The range of its values.
    direction : {"lower", "higher", "zero", "one", "none"}
        Which values are better.
    terms : tuple of str
        The row terms whose sums it reads, besides ``n`` and ``w``.
    value : callable
        Cells to one value a segment; NaN where undefined.
    binned : bool
        Whether it depends on the bins.
    undefined : str
        Why it can be undefined where there are rows.
    interval : callable, optional
        Cells and confidence level to the ends of an interval; None where none is known.
    interval_terms : tuple of str
        What the interval reads besides.
    """

    name: str
    summary: str
    low: float
    high: float
    direction: Direction
    terms: tuple[str, ...]
    value: Callable[[Cells], Floats]
    binned: bool = False
    undefined: str = ""
    interval: Callable[[Cells, float], tuple[Floats, Floats]] | None = None
    interval_terms: tuple[str, ...] = ()
