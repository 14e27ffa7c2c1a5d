"""Squared kernel calibration error: a measure of multiclass calibration without bins.

``h_ij = exp(-|p_i - p_j|_1 / b) (e_i - p_i) . (e_j - p_j)``, where `e` is 1 at the class that happened, else 0. This is
the kernel ``exp(-|p - p'|_1 / b) 1[y = y']`` with the expectation over labels drawn from `p` taken off, for the product
is ``1[y_i = y_j] - p_i[y_j] - p_j[y_i] + p_i . p_j``. Its mean over pairs of different rows is 0 in expectation exactly
where the scores are calibrated, and may come out negative.

References
----------
Widmann, D., Lindsten, F. and Zachariah, D. (2019). Calibration tests in multi-class classification: a unifying
framework. NeurIPS 2019. https://doi.org/10.48550/arXiv.1910.11385
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calframe._kernels._binned import ratio, segment_max, segment_sum, starts_of
from calframe._kernels._vectors import Vectors
from calframe._typing import Bools, Floats, Ints

ALL_PAIRS = 2_000  # rows of a segment up to which every pair counts; above, those within blocks
_MEDIAN_ROWS = 1_000  # of a larger segment, whose distances give the bandwidth
_SEED = 0
_BLOCK = 2**18  # pairs that are worked on at a time
_TIE = 1e-11  # how near to half the total a running sum of weights must come to be half


def skce_with_error(vectors: Vectors, *, bandwidth: float | None = None, block: int = 2) -> tuple[Floats, Floats]:
    """Return the squared kernel calibration error per segment, NaN where there is no pair, and its standard error.

    Up to 2,000 rows it is the unbiased estimator, the mean of `h` over all pairs of different rows; the order of rows
    does not matter. Above, it is the block estimator, the mean of the unbiased estimators of blocks of `block` rows,
    taken in turn in the order ``numpy.random.default_rng(0).permutation(n)``; what is left of the last block counts
    nowhere. It is unbiased too. It depends on the order of rows, but a sorted table does no harm.

    The standard error is NaN where every pair counts: that mean is not asymptotically normal where the scores are
    calibrated. Blocks are independent, so their mean is, with the error
    ``sqrt(B / (B - 1) sum_b u_b^2 (v_b - value)^2) / sum_b u_b`` over `B` blocks with the values `v_b` and the weights
    ``u_b = sum_{i != j} w_i w_j`` of their pairs; without weights the standard deviation over ``sqrt(B)``.

    Parameters
    ----------
    vectors : Vectors
        Rows.
    bandwidth : float, optional
        The bandwidth `b`. By default the median distance between different rows of the segment (above 2,000 rows,
        between the first 1,000 in the order above), and 1 where that is 0.
    block : int
        Rows of a block, 2 to 1,000. Time grows with it, and the standard error falls with ``sqrt(block - 1)``.

    Notes
    -----
    Whole weights count rows: a row of weight `w` stands for `w` rows, and two of them are a pair. That gives
    ``(sum_ij w_i w_j h_ij - sum_i w_i h_ii) / (W^2 - W)`` over ordered pairs with ``W = sum w``, and a median in which
    `w` rows make ``w (w - 1) / 2`` distances of 0. Where a weight of the segment is not whole, they are importance
    weights, whose scale means nothing: ``sum_{i != j} w_i w_j h_ij / sum_{i != j} w_i w_j``, and the median of the
    distances with weights ``w_i w_j``. So whole weights that are importances should be given a mean of 1: times 10,
    each row meets nine copies of itself. The block estimator weighs a pair by ``w_i w_j`` in either case, and only its
    bandwidth counts copies.

    With two classes and ``bandwidth=2 * b`` it is that of the binary ``h = 2 exp(-|p - p'| / b) (y - p) (y' - p')``.

    Examples
    --------
    The one pair: ``exp(-0.4 / 0.4) ((0.1, -0.1) . (-0.7, 0.7)) = -0.14 / e``.

    >>> table = Vectors(
    ...     starts=np.array([0]),
    ...     scores=np.array([[0.9, 0.1], [0.7, 0.3]], order="F"),
    ...     label=np.array([0, 1]),
    ...     weight=np.ones(2),
    ...     squared=np.ones(2),
    ... )
    >>> value, error = skce_with_error(table)
    >>> value.round(12), error
    (array([-0.05150312]), array([nan]))
    """
    value, error = np.full(len(vectors), np.nan), np.full(len(vectors), np.nan)
    for segments, rows in _stacks(vectors):
        value[segments] = _all_pairs(vectors, rows, bandwidth)
    large = np.flatnonzero(vectors.sizes > ALL_PAIRS)
    if len(large):
        value[large], error[large] = _mean_of_blocks(vectors, large, bandwidth, block)
    return value, error


def _stacks(vectors: Vectors) -> Iterator[tuple[Ints, Ints]]:
    """Give segments of one size together, with their rows (segment by row), as many as fill a block."""
    sizes = vectors.sizes
    small = np.flatnonzero(sizes <= ALL_PAIRS)
    small = small[np.argsort(sizes[small], kind="stable")]
    for same in np.split(small, np.flatnonzero(np.diff(sizes[small])) + 1):
        if len(same):
            size = int(sizes[same[0]])
            many = max(_BLOCK // (size * max(size, vectors.classes)), 1)
            for first in range(0, len(same), many):
                segments = same[first : first + many]
                yield segments, vectors.starts[segments][:, None] + np.arange(size)


def _all_pairs(vectors: Vectors, rows: Ints, bandwidth: float | None) -> Floats:
    weight = vectors.weight[rows]
    total = weight.sum(axis=1, keepdims=True)
    copies = np.where(_counts(weight), (weight - 1.0) / total, 0.0)
    width = None if bandwidth is None else np.full(len(rows), bandwidth)
    return ratio(*_pair_sums(vectors, rows, weight / total, copies, width))


def _pair_sums(
    vectors: Vectors, rows: Ints, share: Floats, copies: Floats, width: Floats | None
) -> tuple[Floats, Floats]:
    """Return the weighted sum of `h` over ordered pairs of different rows (segment by row), and that of the weights.

    Parameters
    ----------
    vectors, rows
        Rows, those of a segment or block together.
    share : ndarray
        Weights of the rows. A pair weighs their product.
    copies : ndarray
        The weight that a row meets in its own copies.
    width : ndarray or None
        The bandwidths; None for the medians.
    """
    scores = vectors.scores.T[:, rows]
    distance = _distances(scores)
    residual = np.moveaxis(-scores, 0, -1)
    stack, place = np.indices(rows.shape)
    residual[stack, place, vectors.label[rows]] += 1.0
    others = share @ (1.0 - np.eye(share.shape[1]))  # summed, not 1 - share: one row may hold nearly all the weight
    bandwidth = _widths(distance, vectors.weight[rows]) if width is None else width
    pairs = _kernel_sum(distance, bandwidth, residual, share)
    pairs += (share * copies * (residual**2).sum(axis=2)).sum(axis=1)
    return pairs, (share * (others + copies)).sum(axis=1)


def _counts(weight: Floats) -> Bools:
    """Return whether all weights of a segment are whole numbers, and so count rows."""
    whole: Bools = (weight == np.floor(weight)).all(axis=1, keepdims=True)
    return whole


def _distances(scores: Floats) -> Floats:
    """Return the distances ``|p_i - p_j|_1`` of scores (class, segment, row); below the diagonal blocks they are 0."""
    _, stack, size = scores.shape
    out = np.zeros((stack, size, size))
    for cut, rest in _blocks(stack, size):
        step = np.empty((stack, cut.stop - cut.start, size - cut.start))
        for column in scores:
            np.subtract(column[:, cut, None], column[:, None, rest], out=step)
            out[:, cut, rest] += np.abs(step, out=step)
    return out


def _kernel_sum(distance: Floats, width: Floats, residual: Floats, share: Floats) -> Floats:
    """Return ``sum_{i != j} share_i share_j h_ij`` of each segment, a block of rows against itself and those after."""
    total = np.zeros(len(share))
    for cut, rest in _blocks(*share.shape):
        with np.errstate(over="ignore"):
            kernel = distance[:, cut, rest] / -width[:, None, None]
        kernel = np.exp(kernel, out=kernel)
        kernel *= residual[:, cut] @ residual[:, rest].transpose(0, 2, 1)
        itself = np.arange(cut.stop - cut.start)
        kernel[:, itself, itself] = 0.0
        second = share[:, rest].copy()
        second[:, len(itself) :] *= 2.0
        total += (share[:, cut] * (kernel @ second[:, :, None])[:, :, 0]).sum(axis=1)
    return total


def _blocks(stack: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Give blocks of rows, and with each the rows from its first on."""
    many = max(_BLOCK // (stack * size), 1)
    for first in range(0, size, many):
        yield slice(first, min(first + many, size)), slice(first, size)


def _widths(distance: Floats, weight: Floats) -> Floats:
    """Return the median distance of different rows, and 1 where that is 0."""
    later = np.tri(weight.shape[1], k=-1, dtype=np.bool_).T
    if not later.any():  # one row: its copies, if any, are at distance 0
        return np.ones(len(weight))
    between = distance[:, later]
    equal = (weight == weight[:, :1]).all(axis=1) & ((weight[:, 0] == 1.0) | ~_counts(weight)[:, 0])
    median = np.empty(len(weight))
    if equal.any():
        median[equal] = np.median(between[equal], axis=1)
    if not equal.all():
        median[~equal] = _weighted_median(between[~equal], weight[~equal], later)
    return np.where(median > 0.0, median, 1.0)


def _weighted_median(between: Floats, weight: Floats, later: Bools) -> Floats:
    """Return the median of distances with weights ``w_i w_j``; of two middle ones the mean."""
    order = np.argsort(between, axis=1)
    between = np.take_along_axis(between, order, axis=1)
    running = np.take_along_axis((weight[:, :, None] * weight[:, None, :])[:, later], order, axis=1)
    copies = np.where(_counts(weight), weight * (weight - 1.0) / 2.0, 0.0).sum(axis=1, keepdims=True)
    running = np.cumsum(running, axis=1) + copies
    half = running[:, -1:] / 2.0
    at_least = half * (1.0 - _TIE)
    above = half * (1.0 + _TIE)
    low = _at(between, running >= at_least, copies >= at_least)
    high = _at(between, running > above, copies > above)
    return (low + high) / 2.0


def _at(between: Floats, reached: Bools, by_copies: Bools) -> Floats:
    """Return the first distance at which the running weight has reached its mark; 0 where copies of rows reach it."""
    found = np.take_along_axis(between, reached.argmax(axis=1)[:, None], axis=1)
    return np.where(by_copies, 0.0, found)[:, 0]


def _mean_of_blocks(vectors: Vectors, segments: Ints, bandwidth: float | None, block: int) -> tuple[Floats, Floats]:
    """Return the block estimator and its standard error of segments with many rows."""
    sizes = vectors.sizes[segments]
    # A loop over segments, each of which has many rows: the orders are drawn one by one.
    orders = [np.random.default_rng(_SEED).permutation(size) for size in sizes]
    orders = [order + start for order, start in zip(orders, vectors.starts[segments], strict=True)]
    counts = sizes // block
    rows = np.concatenate([order[: len(order) // block * block].reshape(-1, block) for order in orders])
    width = _sampled_widths(vectors, orders) if bandwidth is None else np.full(len(segments), bandwidth)
    width = np.repeat(width, counts)
    heaviest = segment_max(vectors.weight, vectors.starts)[segments]
    share = vectors.weight[rows] / np.repeat(heaviest, counts)[:, None]
    above, below = np.empty(len(rows)), np.empty(len(rows))
    many = max(_BLOCK // (block * max(block, vectors.classes)), 1)
    for first in range(0, len(rows), many):
        cut = slice(first, first + many)
        above[cut], below[cut] = _pair_sums(vectors, rows[cut], share[cut], np.zeros_like(share[cut]), width[cut])
    starts = starts_of(counts)
    total = segment_sum(below, starts)
    mean = segment_sum(above, starts) / total
    spread = segment_sum((above - below * np.repeat(mean, counts)) ** 2, starts)
    return mean, np.sqrt(spread * (counts / (counts - 1.0))) / total


def _sampled_widths(vectors: Vectors, orders: list[Ints]) -> Floats:
    width = np.empty(len(orders))
    for number, order in enumerate(orders):  # segments of many rows again
        rows = order[None, :_MEDIAN_ROWS]
        width[number] = _widths(_distances(vectors.scores.T[:, rows]), vectors.weight[rows])[0]
    return width
