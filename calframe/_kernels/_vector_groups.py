"""Measures over groups of whole probability vectors: equal vectors, or vectors in the same cell of the simplex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._binned import changes, segment_sum, spread
from calframe._kernels._vector_bins import Find
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorGroups:
    """Rows of equal vectors, and how often each class happened among them.

    Groups stand in the order of segments. A cell is a class that happened in a group; cells stand group after group.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first group of each segment.
    row : ndarray of int64, shape (n_groups,)
        A row that holds the vector of the group.
    weight : ndarray of float64, shape (n_groups,)
        The weight of the group.
    group, label : ndarray of int64, shape (n_cells,)
        The group and the class of each cell.
    happened : ndarray of float64, shape (n_cells,)
        The weight of the class in the group.
    order : ndarray of int64, shape (n_rows,)
        The rows, cell after cell.
    first : ndarray of int64, shape (n_cells,)
        Where the rows of each cell begin in that order.
    """

    starts: Ints
    row: Ints
    weight: Floats
    group: Ints
    label: Ints
    happened: Floats
    order: Ints
    first: Ints

    def total(self, values: Floats) -> Floats:
        """Return the sum of values of groups over each segment."""
        return segment_sum(values, self.starts)

    def mean_of_cells(self, values: Floats) -> Floats:
        """Return the sum of values of cells over each segment, over its weight."""
        first = np.searchsorted(self.group, self.starts)
        return segment_sum(values, first) / self.total(self.weight)


def equal_vectors(vectors: Vectors) -> VectorGroups:
    """Group the rows of each segment by equal score vectors, exactly; 0.0 and -0.0 are equal.

    Examples
    --------
    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]], order="F"),
    ...     label=np.array([0, 1, 1]),
    ...     weight=np.ones(3),
    ...     squared=np.ones(3),
    ... )
    >>> groups = equal_vectors(table)
    >>> groups.weight, groups.group, groups.label
    (array([2., 1.]), array([0, 0, 1]), array([0, 1, 1]))
    """
    leader = _leaders(vectors, lambda column: column)
    order = np.lexsort((vectors.label, leader))
    leader, label = leader[order], vectors.label[order]
    cells = np.flatnonzero(changes(leader) | changes(label))
    happened = segment_sum(vectors.weight[order], cells)
    leader, label = leader[cells], label[cells]
    new = changes(leader)
    groups = np.flatnonzero(new)
    return VectorGroups(
        starts=np.searchsorted(leader[groups], vectors.starts),
        row=leader[groups],
        weight=segment_sum(happened, groups),
        group=np.cumsum(new) - 1,
        label=label,
        happened=happened,
        order=order,
        first=cells,
    )


def calibration_loss(vectors: Vectors, groups: VectorGroups | None = None) -> Floats:
    """Return ``mean sum_c (s_c - f_c)^2``, with `f` the class frequencies among rows of the same score vector.

    With `refinement_loss` it adds up to the Brier score.

    Parameters
    ----------
    vectors : Vectors
        Rows.
    groups : VectorGroups, optional
        What `equal_vectors` returns for them, where it is at hand.

    References
    ----------
    Silva Filho, T. et al. (2023). Classifier calibration: a survey on how to assess and improve predicted class
    probabilities. Machine Learning 112, 3211-3260. https://doi.org/10.1007/s10994-023-06336-7

    DeGroot, M. H. and Fienberg, S. E. (1983). The comparison and evaluation of forecasters. Journal of the Royal
    Statistical Society D 32, 12-22. https://doi.org/10.2307/2987588

    Examples
    --------
    Two rows of (0.5, 0.5), both of the first class: the frequencies are (1, 0).

    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.full((2, 2), 0.5),
    ...     label=np.array([0, 0]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> calibration_loss(table), refinement_loss(table)
    (array([0.5]), array([0.]))
    """
    found = equal_vectors(vectors) if groups is None else groups
    loss = np.zeros(len(found.weight))
    order = np.argsort(found.label, kind="stable")
    ends = np.cumsum(np.bincount(found.label, minlength=vectors.classes))
    share = found.happened / found.weight[found.group]
    for number in range(vectors.classes):
        cells = order[(ends[number - 1] if number else 0) : ends[number]]
        gap = vectors.scores[found.row, number]
        gap[found.group[cells]] -= share[cells]
        gap *= gap
        loss += gap
    return found.total(found.weight * loss) / found.total(found.weight)


def refinement_loss(vectors: Vectors, groups: VectorGroups | None = None) -> Floats:
    """Return ``mean sum_c f_c (1 - f_c)``: the Brier score left when scores are replaced by frequencies `f`.

    See `calibration_loss`.
    """
    found = equal_vectors(vectors) if groups is None else groups
    weight = found.weight[found.group]
    return found.mean_of_cells(found.happened * ((weight - found.happened) / weight))


def calibration_loss_log(
    vectors: Vectors, groups: VectorGroups | None = None, *, surprise: Floats | None = None
) -> Floats:
    """Return ``mean sum_c f_c ln(f_c / s_c)``, with `f` the class frequencies among rows of the same score vector.

    With `refinement_loss_log` it adds up to the log loss, and is infinite where that is. See `calibration_loss`.

    Parameters
    ----------
    vectors : Vectors
        Rows.
    groups : VectorGroups, optional
        What `equal_vectors` returns for them, where it is at hand.
    surprise : ndarray of shape (n_rows,), optional
        The log loss of each row, where it is known better than its score: from logits.
    """
    found = equal_vectors(vectors) if groups is None else groups
    share = found.happened / found.weight[found.group]
    if surprise is None:
        with np.errstate(divide="ignore"):
            loss = -np.log(vectors.scores[found.row[found.group], found.label])
    else:
        loss = segment_sum((vectors.weight * surprise)[found.order], found.first) / found.happened
    return found.mean_of_cells(found.happened * (np.log(share) + loss))


def refinement_loss_log(vectors: Vectors, groups: VectorGroups | None = None) -> Floats:
    """Return ``mean -sum_c f_c ln f_c``: the log loss left when scores are replaced by frequencies `f`.

    See `calibration_loss`.
    """
    found = equal_vectors(vectors) if groups is None else groups
    return found.mean_of_cells(found.happened * np.log(found.weight[found.group] / found.happened))


def full_ece(vectors: Vectors, find: Find) -> Floats:
    """Return the expected calibration error over cells of the simplex, ``sum_b (W_b / W) sum_c |s_bc - y_bc|``.

    A cell holds the rows whose scores lie in the same bin in every class; `s_b` and `y_b` are its mean score vector
    and class frequencies. It is the sum over the classes, as PyCalib has it: with two classes twice the binary error.

    Parameters
    ----------
    vectors : Vectors
        Rows.
    find : callable
        Scores to bin numbers. Only the cells that hold rows are formed, so their number need not be known.

    References
    ----------
    Vaicenavicius, J. et al. (2019). Evaluating model calibration in classification. AISTATS 2019.
    https://doi.org/10.48550/arXiv.1902.06977

    Examples
    --------
    One cell: mean scores (0.8, 0.2), frequencies (0.5, 0.5).

    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.9, 0.1], [0.7, 0.3]], order="F"),
    ...     label=np.array([0, 1]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> full_ece(table, lambda score: np.zeros(len(score), dtype=np.int64)).round(12)
    array([0.6])
    """
    leader = _leaders(vectors, find)
    order = np.argsort(leader, kind="stable")
    cells = np.flatnonzero(changes(leader[order]))
    error = np.zeros(len(cells))
    for score, happened in vectors.columns():
        gap = vectors.weight * (score - happened)
        error += np.abs(segment_sum(gap[order], cells))
    first = np.searchsorted(leader[order[cells]], vectors.starts)
    return segment_sum(error, first) / vectors.total(vectors.weight)


def _leaders(vectors: Vectors, mark: Callable[[Floats], NDArray[Any]]) -> Ints:
    """Return the first row of the segment whose marks equal those of the row in every class, for each row.

    Only the groups that a class tears are sorted again, so that most classes cost one comparison.
    """
    leader = spread(vectors.starts, vectors.starts, len(vectors.label))
    for number in range(vectors.classes):
        marks = mark(vectors.scores[:, number])
        other = marks != marks[leader]
        if other.any():
            torn = np.zeros(len(leader), dtype=np.bool_)
            torn[leader[other]] = True
            _divide(leader, marks, np.flatnonzero(torn[leader]))
    return leader


def _divide(leader: Ints, marks: NDArray[Any], rows: Ints) -> None:
    """Divide the groups of the rows named by their marks, in place."""
    rank = marks[rows]
    if rank.dtype.kind == "f":
        rank = np.unique(rank, return_inverse=True)[1]
    key = leader[rows] * (int(rank.max()) + 1) + rank
    order = np.argsort(key)
    members = rows[order]
    first = np.flatnonzero(changes(key[order]))
    leader[members] = spread(np.minimum.reduceat(members, first), first, len(rows))
