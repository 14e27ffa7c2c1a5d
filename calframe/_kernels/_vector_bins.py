"""Calibration errors of probability vectors over score bins: confidence, classwise, top-label.

Each notion turns vectors into tables of binary rows (score, did it happen), and a table into sums over its bins. The
bins are found by a function that is handed in: scores to bin numbers, 0 to ``n_bins - 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from calframe._kernels._binned import cell_gaps, segment_max, segment_sum
from calframe._kernels._inversion import absolute_error_interval
from calframe._kernels._vectors import Vectors, top_label
from calframe._typing import Floats, Ints

Find: TypeAlias = Callable[[Floats], Ints]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinSums:
    """The bins of one table that have rows, segment after segment.

    Attributes
    ----------
    segment : ndarray of int64
        The segment of each bin.
    weight, score, label, squared : ndarray of float64
        Sums of the weight, of weight times score, of weight times label, and of the squared weights.
    """

    segment: Ints
    weight: Floats
    score: Floats
    label: Floats
    squared: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NotionBins:
    """The bins of all tables of a notion, segment after segment.

    Attributes
    ----------
    starts : ndarray of int64
        The first bin of each segment.
    sums : BinSums
        The bins.
    share : ndarray of float64
        What the absolute gap of each bin counts in the error of its segment.
    """

    starts: Ints
    sums: BinSums
    share: Floats

    @classmethod
    def of_tables(cls, tables: Iterable[BinSums], total: Floats) -> Self:
        """Join tables in which the weights of each segment are together `total`."""
        found = list(tables)
        joined = {name: np.concatenate([getattr(table, name) for table in found]) for name in BinSums.__slots__}
        order = np.argsort(joined["segment"], kind="stable")
        sums = BinSums(**{name: values[order] for name, values in joined.items()})
        starts = np.searchsorted(sums.segment, np.arange(len(total)))
        return cls(starts=starts, sums=sums, share=sums.weight / total[sums.segment])

    def error(self) -> Floats:
        """Return the expected calibration error of each segment."""
        return segment_sum(self.share * self._gaps(), self.starts)

    def largest(self) -> Floats:
        """Return the largest absolute gap of each segment."""
        return segment_max(self._gaps(), self.starts)

    def interval(self, *, level: float) -> tuple[Floats, Floats]:
        """Return the interval of the expected calibration error."""
        sums = self.sums
        parts = (sums.weight, sums.score, sums.label, sums.squared, self.starts)
        return absolute_error_interval(*parts, level=level, shares=self.share)

    def _gaps(self) -> Floats:
        return cell_gaps(self.sums.weight, self.sums.score, self.sums.label)


def confidence_table(vectors: Vectors, find: Find, n_bins: int) -> BinSums:
    """Return the bins of (largest score, was it right).

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599

    Examples
    --------
    One bin: mean confidence 0.8, and one of two rows is right.

    >>> vectors = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.9, 0.1], [0.7, 0.3]], order="F"),
    ...     label=np.array([0, 1]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> table = confidence_table(vectors, lambda score: np.zeros(len(score), dtype=np.int64), 1)
    >>> table.score, table.label
    (array([1.6]), array([1.]))
    >>> NotionBins.of_tables([table], vectors.total(vectors.weight)).error().round(12)
    array([0.3])
    """
    confidence, _, right = top_label(vectors)
    return _Summing.of(vectors, n_bins).table(confidence, np.flatnonzero(right), find(confidence))


def class_tables(vectors: Vectors, find: Find, n_bins: int) -> Iterator[BinSums]:
    """Give, class after class, the bins of (its score, did it happen).

    References
    ----------
    Kull, M. et al. (2019). Beyond temperature scaling: obtaining well-calibrated multiclass probabilities with
    Dirichlet calibration. NeurIPS 2019. https://doi.org/10.48550/arXiv.1910.12656
    """
    summing = _Summing.of(vectors, n_bins)
    for number, happened in enumerate(vectors.rows_by_class()):
        score = vectors.scores[:, number]
        yield summing.table(score, happened, find(score))


def toplabel_tables(vectors: Vectors, find: Find, n_bins: int) -> Iterator[BinSums]:
    """Give, class after class, the bins of (largest score, was it right) of the rows that predict that class.

    Rows that predict different classes share no bin, so that errors of opposite sign do not cancel between them.

    References
    ----------
    Gupta, C. and Ramdas, A. (2022). Top-label calibration and multiclass-to-binary reductions. ICLR 2022.
    https://openreview.net/forum?id=WqoBaaPHS-
    """
    confidence, predicted, right = top_label(vectors)
    summing = _Summing.of(vectors, n_bins)
    for number in range(vectors.classes):
        rows = np.flatnonzero(predicted == number)
        score = confidence[rows]
        yield summing.table(score, np.flatnonzero(right[rows]), find(score), rows)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Summing:
    """What the tables of some vectors share: where the bins of each row's segment begin, and weights, if any."""

    first: Ints
    weight: Floats | None
    squared: Floats
    n_bins: int
    cells: int

    @classmethod
    def of(cls, vectors: Vectors, n_bins: int) -> Self:
        return cls(
            first=vectors.segment * n_bins,
            weight=vectors.weight if vectors.weighted else None,
            squared=vectors.squared,
            n_bins=n_bins,
            cells=len(vectors) * n_bins,
        )

    def table(self, score: Floats, happened: Ints, bins: Ints, rows: Ints | slice = slice(None)) -> BinSums:
        """Return the bins of some rows, which have these scores; `happened` counts among them."""
        cell = bins + self.first[rows]
        if self.weight is None:
            total = squared = self._added(cell)
            moment, label = self._added(cell, score), self._added(cell[happened])
        else:
            weight = self.weight[rows]
            total, squared = self._added(cell, weight), self._added(cell, self.squared[rows])
            moment, label = self._added(cell, weight * score), self._added(cell[happened], weight[happened])
        filled = np.flatnonzero(total)
        return BinSums(
            segment=filled // self.n_bins,
            weight=total[filled],
            score=moment[filled],
            label=label[filled],
            squared=squared[filled],
        )

    def _added(self, cell: Ints, values: Floats | None = None) -> Floats:
        return np.bincount(cell, weights=values, minlength=self.cells).astype(np.float64)
