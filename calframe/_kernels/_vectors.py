"""Probability vectors: rows with one score a class, and the measures that need no bins.

Rows stand segment after segment. Where a loop runs over the classes, a step holds a few numbers a row, whatever the
number of classes; columns that are contiguous (Fortran order) make it fast, and no matrix is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from calframe._kernels._binned import chunk_bounds, segment_sum, sizes_of, spread, starts_of
from calframe._kernels._building import by_segment, tally_of_rows
from calframe._kernels._tally import CHUNK, Tally
from calframe._typing import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vectors:
    """Rows with a score for each class, sorted by segment; every segment has at least one row.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first row of each segment.
    scores : ndarray of float64, shape (n_rows, n_classes)
        Probabilities; each row sums to 1, to rounding.
    label : ndarray of int64, shape (n_rows,)
        The position of the class that happened.
    weight : ndarray of float64
        Positive weights.
    squared : ndarray of float64
        What variances sum: the squared weights, or the weights where they are counts of rows.
    cluster : ndarray of int64, optional
        Rows of a segment with the same number may share their luck; a row with one below 0 is on its own.
    """

    starts: Ints
    scores: Floats
    label: Ints
    weight: Floats
    squared: Floats
    cluster: Ints | None = None

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.starts)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.scores.shape[1])

    @property
    def sizes(self) -> Ints:
        """The number of rows of each segment."""
        return sizes_of(self.starts, len(self.label))

    @property
    def segment(self) -> Ints:
        """The segment of each row, counted from 0."""
        return spread(np.arange(len(self.starts)), self.starts, len(self.label))

    def total(self, values: Floats) -> Floats:
        """Return the sum of row values over each segment, pairwise."""
        return segment_sum(values, self.starts)

    def mean(self, values: Floats) -> Floats:
        """Return the weighted mean of row values over each segment."""
        return self.total(self.weight * values) / self.total(self.weight)

    @property
    def weighted(self) -> bool:
        """Whether some row counts otherwise than once, in sums or in variances."""
        return bool(np.any(self.weight != 1.0) or np.any(self.squared != 1.0))

    def rows_by_class(self) -> Iterator[Ints]:
        """Give, class after class, the rows in which it happened."""
        order = by_segment(self.label, self.classes)
        bounds = np.searchsorted(self.label[order], np.arange(self.classes + 1))
        for first, last in pairwise(bounds.tolist()):
            yield order[first:last]

    def columns(self) -> Iterator[tuple[Floats, Bools]]:
        """Give the scores of each class in turn, with the rows in which it happened."""
        for number in range(self.classes):
            yield self.scores[:, number], self.label == number

    def happened(self) -> Floats:
        """Return the score that each row gave to what happened."""
        found: Floats = self.scores[np.arange(len(self.label)), self.label]
        return found

    def part(self, first: int, last: int) -> Self:
        """Return the rows of the segments from `first` up to, not including, `last`, as views."""
        begin = int(self.starts[first])
        end = int(self.starts[last]) if last < len(self.starts) else len(self.label)
        cut = slice(begin, end)
        return type(self)(
            starts=self.starts[first:last] - begin,
            scores=self.scores[cut],
            label=self.label[cut],
            weight=self.weight[cut],
            squared=self.squared[cut],
            cluster=None if self.cluster is None else self.cluster[cut],
        )

    def only(self, keep: Bools) -> Self:
        """Return the rows of some of the segments."""
        if keep.all():
            return self
        rows, sizes = np.flatnonzero(spread(keep, self.starts, len(self.label))), self.sizes[keep]
        return type(self)(
            starts=starts_of(sizes),
            scores=np.asfortranarray(self.scores[rows]),
            label=self.label[rows],
            weight=self.weight[rows],
            squared=self.squared[rows],
            cluster=None if self.cluster is None else self.cluster[rows],
        )

    def chunks(self, rows: int = CHUNK) -> Iterator[tuple[int, Self]]:
        """Give whole segments of together about `rows` rows, each with the number of its first segment."""
        for first, last in chunk_bounds(self.starts, len(self.label), rows):
            yield first, self.part(first, last)


def top_label(vectors: Vectors) -> tuple[Floats, Ints, Floats]:
    """Return the largest score of each row, its class (of equal ones the first), and whether it happened, 0 or 1.

    Examples
    --------
    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.4, 0.4, 0.2], [0.1, 0.2, 0.7]], order="F"),
    ...     label=np.array([1, 2]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> top_label(table)
    (array([0.4, 0.7]), array([0, 2]), array([0., 1.]))
    """
    confidence = vectors.scores[:, 0].copy()
    predicted = np.zeros(len(confidence), dtype=np.int64)
    for number in range(1, vectors.classes):
        column = vectors.scores[:, number]
        higher = column > confidence
        np.copyto(confidence, column, where=higher)
        predicted[higher] = number
    return confidence, predicted, (predicted == vectors.label).astype(np.float64)


def accuracy(vectors: Vectors) -> Floats:
    """Return the share of rows whose top class happened, per segment; of equal scores the first class is the top."""
    return vectors.mean(top_label(vectors)[2])


def brier(vectors: Vectors) -> Floats:
    """Return the Brier score ``mean sum_c (s_c - 1[y = c])^2``, summed over classes, per segment.

    With two classes it is twice the score of the binary form.

    References
    ----------
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78, 1-3.
    https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

    Examples
    --------
    The first row is 0.3 away from a certain one in each class, the second is certain and wrong:

    >>> table = Vectors(
    ...     starts=np.array([0, 1]),
    ...     scores=np.array([[0.7, 0.3], [0.0, 1.0]], order="F"),
    ...     label=np.array([0, 0]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> brier(table).round(12)
    array([0.18, 2.  ])
    """
    return vectors.mean(square_loss(vectors))


def square_loss(vectors: Vectors) -> Floats:
    """Return the squared distance of scores and outcome of each row, summed over the classes."""
    loss = np.zeros(len(vectors.label))
    for score, happened in vectors.columns():
        gap = score - happened
        gap *= gap
        loss += gap
    return loss


def log_loss(vectors: Vectors, *, clip: float | None = None) -> Floats:
    """Return the log loss ``mean -ln s_y`` per segment; arguments as in `surprise`.

    References
    ----------
    Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14, 107-114.
    https://doi.org/10.1111/j.2517-6161.1952.tb00104.x

    Examples
    --------
    >>> table = Vectors(
    ...     starts=np.array([0, 1]),
    ...     scores=np.array([[0.5, 0.5], [0.0, 1.0]], order="F"),
    ...     label=np.array([0, 0]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> log_loss(table)
    array([0.69314718,        inf])
    """
    return vectors.mean(surprise(vectors, clip=clip))


def surprise(vectors: Vectors, *, clip: float | None = None) -> Floats:
    """Return the log loss ``-ln s_y`` of each row, infinite where it gave what happened the probability 0.

    Parameters
    ----------
    vectors : Vectors
        Rows.
    clip : float, optional
        Move scores into ``[clip, 1 - clip]`` first, without making rows sum to 1 again, as scikit-learn does.
    """
    chance = vectors.happened()
    if clip is not None:
        chance = np.clip(chance, clip, 1.0 - clip)
    with np.errstate(divide="ignore"):
        return -np.log(chance) + 0.0


def irreducible_loss(vectors: Vectors, posterior: Floats) -> Floats:
    """Return the Brier score of the true probabilities, ``mean sum_c (q_c - 1[y = c])^2``: what no model can avoid.

    Parameters
    ----------
    vectors : Vectors
        Rows.
    posterior : ndarray of float64, shape (n_rows, n_classes)
        The true class probabilities of each row, known in simulations.

    References
    ----------
    Kull, M. and Flach, P. (2015). Novel decompositions of proper scoring rules for classification. ECML PKDD 2015.
    https://doi.org/10.1007/978-3-319-23528-8_5
    """
    return brier(replace(vectors, scores=posterior))


def epistemic_loss(vectors: Vectors, posterior: Floats) -> Floats:
    """Return `brier` less `irreducible_loss`: what knowing the true probabilities would save, per segment.

    It estimates ``mean sum_c (s_c - q_c)^2`` without bias, and may come out negative in a small sample.

    Examples
    --------
    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.9, 0.1], [0.9, 0.1]], order="F"),
    ...     label=np.array([0, 1]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> epistemic_loss(table, np.full((2, 2), 0.5)).round(12)
    array([0.32])
    """
    return brier(vectors) - irreducible_loss(vectors, posterior)


def irreducible_loss_log(vectors: Vectors, posterior: Floats) -> Floats:
    """Return the log loss of the true probabilities, ``mean -ln q_y``, per segment; see `irreducible_loss`."""
    return log_loss(replace(vectors, scores=posterior))


def confidence_tally(vectors: Vectors) -> Tally:
    """Return the tally of (largest score, was it right), one segment each."""
    confidence, _, right = top_label(vectors)
    return _tally(vectors, vectors.segment, confidence, right, copies=1)


def class_tally(vectors: Vectors, classes: Sequence[int]) -> Tally:
    """Return the tally of (score of a class, did it happen) for the classes named, class after class.

    Segment ``i * len(vectors) + g`` of the tally is class ``classes[i]`` of segment `g`. It holds all their rows at
    once: name a few classes at a time where memory matters.

    Examples
    --------
    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], order="F"),
    ...     label=np.array([0, 2]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> tally = class_tally(table, [0, 2])
    >>> tally.starts, tally.score, tally.positive
    (array([0, 2]), array([0.1, 0.5, 0.2, 0.7]), array([0., 1., 0., 1.]))
    """
    segment = vectors.segment
    codes = np.concatenate([segment + i * len(vectors) for i in range(len(classes))])
    score = np.concatenate([vectors.scores[:, number] for number in classes])
    happened = np.concatenate([(vectors.label == number).astype(np.float64) for number in classes])
    return _tally(vectors, codes, score, happened, copies=len(classes))


def _tally(vectors: Vectors, codes: Ints, score: Floats, label: Floats, *, copies: int) -> Tally:
    segments = copies * len(vectors)
    if not vectors.weighted:  # plain rows take the faster road
        return tally_of_rows(codes, score, label, segments=segments)[0]
    weight, squared = np.tile(vectors.weight, copies), np.tile(vectors.squared, copies)
    return tally_of_rows(codes, score, label, segments=segments, weight=weight, squared=squared)[0]
