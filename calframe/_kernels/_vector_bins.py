"""Calibration errors of probability vectors over score bins: confidence, classwise, top-label.

Each notion turns vectors into tables of binary rows (score, did it happen), and a table into sums over its bins. The
bins are found by a function that is handed in: scores to bin numbers, 0 to ``n_bins - 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calframe._kernels._binned import expected_error, largest_error, segment_sum
from calframe._kernels._vectors import Vectors, top_label
from calframe._typing import Floats, Ints

Find: TypeAlias = Callable[[Floats], Ints]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinnedSums:
    """Sums over the bins of each segment, ``segment * n_bins + bin``; bins without rows hold zeros.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first bin of each segment.
    rows : ndarray of float64, shape (n_segments * n_bins,)
        Number of rows.
    weight, score, label : ndarray of float64
        Sums of the weight, of weight times score and of weight times label.
    variance : ndarray of float64
        Sum of ``w s (1 - s)``.
    squared, squared_variance : ndarray of float64
        Sums of the squared weights ``w2`` and of ``w2 s (1 - s)``.
    """

    starts: Ints
    rows: Floats
    weight: Floats
    score: Floats
    label: Floats
    variance: Floats
    squared: Floats
    squared_variance: Floats

    def gaps(self) -> Floats:
        """Return the absolute gaps ``|sum w (s - y)|`` of the bins, added up over each segment."""
        return segment_sum(np.abs(self.score - self.label), self.starts)

    def expected_error(self) -> Floats:
        """Return the expected calibration error of each segment; NaN for one without rows."""
        return expected_error(self.weight, self.score, self.label, self.starts)

    def largest_error(self) -> Floats:
        """Return the maximum calibration error of each segment; NaN for one without rows."""
        return largest_error(self.weight, self.score, self.label, self.starts)


def binned_sums(
    segment: Ints,
    score: Floats,
    label: Floats,
    weight: Floats,
    squared: Floats,
    bins: Ints,
    n_segments: int,
    n_bins: int,
) -> BinnedSums:
    """Sum rows over the bins of each segment.

    Parameters
    ----------
    segment, bins : ndarray of int64
        The segment and the bin of each row, both counted from 0.
    score, label, weight, squared : ndarray of float64
        The rows.
    n_segments, n_bins : int
        The size of the table.

    Examples
    --------
    >>> rows = (np.array([0, 0, 1]), np.array([0.1, 0.3, 0.75]), np.array([0.0, 1.0, 1.0]))
    >>> sums = binned_sums(*rows, np.ones(3), np.ones(3), np.array([0, 0, 1]), 2, 2)
    >>> sums.rows, sums.label
    (array([2., 0., 0., 1.]), array([1., 0., 0., 1.]))
    """
    cell, cells = segment * n_bins + bins, n_segments * n_bins

    def add(values: Floats) -> Floats:
        return np.asarray(np.bincount(cell, weights=values, minlength=cells), dtype=np.float64)

    variance = score * (1.0 - score)
    return BinnedSums(
        starts=np.arange(n_segments, dtype=np.int64) * n_bins,
        rows=np.bincount(cell, minlength=cells).astype(np.float64),
        weight=add(weight),
        score=add(weight * score),
        label=add(weight * label),
        variance=add(weight * variance),
        squared=add(squared),
        squared_variance=add(squared * variance),
    )


def confidence_table(vectors: Vectors, find: Find, n_bins: int) -> BinnedSums:
    """Return the sums of (largest score, was it right) over the bins of each segment."""
    confidence, _, right = top_label(vectors)
    return _table(vectors, np.arange(len(confidence)), confidence, right, find, n_bins)


def class_tables(vectors: Vectors, find: Find, n_bins: int) -> Iterator[BinnedSums]:
    """Give, class after class, the sums of (its score, did it happen) over the bins of each segment."""
    segment = vectors.segment
    for score, happened in vectors.columns():
        label = happened.astype(np.float64)
        rows = (segment, score, label, vectors.weight, vectors.squared)
        yield binned_sums(*rows, find(score), len(vectors), n_bins)


def toplabel_tables(vectors: Vectors, find: Find, n_bins: int) -> Iterator[BinnedSums]:
    """Give, class after class, the sums of (largest score, was it right) over the rows that predict that class."""
    confidence, predicted, right = top_label(vectors)
    for number in range(vectors.classes):
        rows = np.flatnonzero(predicted == number)
        yield _table(vectors, rows, confidence[rows], right[rows], find, n_bins)


def confidence_ece(vectors: Vectors, find: Find, n_bins: int) -> Floats:
    """Return the expected calibration error of the largest score, ``sum_b w_b |conf_b - acc_b| / sum_b w_b``.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks. ICML 2017.
    https://doi.org/10.48550/arXiv.1706.04599

    Examples
    --------
    One bin: mean confidence 0.8, and one of two rows is right.

    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.9, 0.1], [0.7, 0.3]], order="F"),
    ...     label=np.array([0, 1]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> confidence_ece(table, lambda score: np.zeros(len(score), dtype=np.int64), 1).round(12)
    array([0.3])
    """
    return confidence_table(vectors, find, n_bins).expected_error()


def confidence_mce(vectors: Vectors, find: Find, n_bins: int) -> Floats:
    """Return the largest gap of a bin between mean largest score and accuracy, per segment."""
    return confidence_table(vectors, find, n_bins).largest_error()


def classwise_ece(vectors: Vectors, find: Find, n_bins: int) -> Floats:
    """Return the mean over the classes of the expected calibration error of each class against the rest.

    References
    ----------
    Kull, M. et al. (2019). Beyond temperature scaling: obtaining well-calibrated multiclass probabilities with
    Dirichlet calibration. NeurIPS 2019. https://doi.org/10.48550/arXiv.1910.12656
    """
    errors = np.zeros(len(vectors))
    for table in class_tables(vectors, find, n_bins):
        errors += table.expected_error()
    return errors / vectors.classes


def classwise_mce(vectors: Vectors, find: Find, n_bins: int) -> Floats:
    """Return the largest gap of a bin over all classes, each against the rest, per segment.

    References
    ----------
    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7
    """
    worst = np.zeros(len(vectors))
    for table in class_tables(vectors, find, n_bins):
        np.maximum(worst, table.largest_error(), out=worst)
    return worst


def toplabel_ece(vectors: Vectors, find: Find, n_bins: int) -> Floats:
    """Return the expected calibration error of the largest score within each predicted class.

    ``sum_c (W_c / W) ECE_c`` over the classes that are predicted: rows that predict different classes share no bin, so
    that errors of opposite sign do not cancel between them. It is never below `confidence_ece`.

    References
    ----------
    Gupta, C. and Ramdas, A. (2022). Top-label calibration and multiclass-to-binary reductions. ICLR 2022.
    https://openreview.net/forum?id=WqoBaaPHS-
    """
    gaps = np.zeros(len(vectors))
    for table in toplabel_tables(vectors, find, n_bins):
        gaps += table.gaps()
    return gaps / vectors.total(vectors.weight)


def _table(vectors: Vectors, rows: Ints, score: Floats, label: Floats, find: Find, n_bins: int) -> BinnedSums:
    segment, weight, squared = vectors.segment[rows], vectors.weight[rows], vectors.squared[rows]
    return binned_sums(segment, score, label, weight, squared, find(score), len(vectors), n_bins)
