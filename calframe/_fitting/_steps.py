"""Maps that are curves through points: isotonic regression and histograms of all segments, and how they are read."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from calframe._fitting._fitted import Knots
from calframe._kernels._binned import last_cells, run_starts, segment_sum, sizes_of, starts_of
from calframe._kernels._equal_mass import automatic_count
from calframe._kernels._isotonic import Blocks, blocks
from calframe._kernels._logistic import status_of
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Closed, Floats, Ints

Interpolation: TypeAlias = Literal["linear", "step"]

ROWS = 2**16  # read at a time: their temporaries stay in the cache
_FAR = np.finfo(np.float64).max / 2.0  # no difference of two such numbers overflows


def isotonic(
    tally: Tally, *, interpolation: Interpolation = "linear", centred: bool = False, epsilon: float | None = None
) -> Knots:
    """Fit the rate as a non-decreasing function of the score, by weighted least squares, in every segment.

    The fit is constant on blocks of neighbouring scores, and any proper loss has the same. What holds between blocks
    is a choice; below the first score and above the last one the map is constant.

    Parameters
    ----------
    tally : Tally
        Distinct scores, probabilities or logits; the curve is in the score as it is.
    interpolation : {"linear", "step"}
        ``"linear"``: the first and the last score of each block have its rate, and a straight line joins neighbours,
        as in scikit-learn. ``"step"``: the rate of a block holds from its first score on, up to the next block, as
        in R's ``isoreg``.
    centred : bool
        With linear interpolation: each block is one point, its rate at its mean score by weight, so that the map
        rises strictly from the first point to the last. Blocks of rate 0 and of rate 1 keep both ends: the rate
        cannot go further there. The map is constant outside the points.
    epsilon : float, optional
        Clip the rates to ``[epsilon, 1 - epsilon]``: a rate of 0 or 1 makes the log loss of one surprise infinite.

    Returns
    -------
    Knots
        Every segment has some, whatever its outcome says of its classes and scores.

    References
    ----------
    Zadrozny, B. and Elkan, C. (2002). Transforming classifier scores into accurate multiclass probability estimates.
    KDD 2002, 694-699. https://doi.org/10.1145/775047.775151

    Oron, A. P. and Flournoy, N. (2017). Centered isotonic regression: point and interval estimation for dose-response
    studies. Statistics in Biopharmaceutical Research 9(3), 258-267. https://doi.org/10.1080/19466315.2017.1286256

    Examples
    --------
    The rates 0, 1, 1/2 at three scores are out of order once:

    >>> score, rows, positive = np.array([0.1, 0.4, 0.6]), np.array([2.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0])
    >>> tally = Tally.of_counts(np.array([0]), score, rows, positive)
    >>> fit = isotonic(tally)
    >>> fit.x, fit.y.round(3)
    (array([0.1, 0.4, 0.6]), array([0.   , 0.667, 0.667]))
    >>> isotonic(tally, centred=True).x.round(3)
    array([0.1  , 0.533])
    """
    return joined(
        [
            _isotonic_part(part, interpolation=interpolation, centred=centred, epsilon=epsilon)
            for _, part in tally.chunks()
        ]
    )


def _isotonic_part(tally: Tally, *, interpolation: Interpolation, centred: bool, epsilon: float | None) -> Knots:
    fit, least = blocks(tally), epsilon or 0.0
    rate = np.clip(fit.value, least, 1.0 - least)
    return block_knots(tally, fit, rate, interpolation=interpolation, centred=centred)


def block_knots(tally: Tally, fit: Blocks, rate: Floats, *, interpolation: Interpolation, centred: bool) -> Knots:
    """Return the curve through blocks, each with the rate given; how they are joined is said in `isotonic`."""
    outcome = outcome_of(tally)
    if interpolation == "step":
        return Knots(starts=fit.starts, x=fit.low_score, y=rate, outcome=outcome)
    two = fit.last_cell > fit.first_cell
    left = fit.low_score
    if centred:
        two &= (fit.value <= 0.0) | (fit.value >= 1.0)
        left = np.where(two, left, _centres(tally, fit))
    number = 1 + two
    x = np.repeat(left, number)
    x[np.cumsum(number)[two] - 1] = fit.high_score[two]
    return Knots(starts=starts_of(number)[fit.starts], x=x, y=np.repeat(rate, number), outcome=outcome)


def _centres(tally: Tally, fit: Blocks) -> Floats:
    """Return the mean score of each block, from its first score on: of neighbouring floats no mean leaves them."""
    share = tally.weight / fit.spread(fit.weight)
    low = np.clip(fit.low_score, -_FAR, _FAR)
    beyond = np.clip(tally.score, -_FAR, _FAR) - fit.spread(low)
    centre: Floats = np.clip(low + segment_sum(share * beyond, fit.first_cell), fit.low_score, fit.high_score)
    return centre


def histogram(tally: Tally, *, edges: Floats, closed: Closed = "left", smoothing: float = 0.0) -> Knots:
    """Give each score the rate of its bin, in every segment, between edges that are the same for all.

    The rate of a bin is ``(K + s) / (N + 2 s)``, with N its weight, K the weight of the positives and s the smoothing:
    0 for the mean label of the bin, 1 for Laplace's rule. A bin without rows keeps the score as it is, whatever the
    smoothing: nothing is known there. (Peers give the middle of the bin, 0, or 1/2.) Nothing makes these rates rise
    with the score.

    Parameters
    ----------
    tally : Tally
        Scores that are probabilities, all within the edges.
    edges : ndarray of shape (n_bins + 1,)
        Ascending, as `Bins` has them; rounded to float32 where the scores are.
    closed : {"left", "right"}
        The side that belongs to the bin; the outermost bins are closed on both sides.
    smoothing : float
        Rows added to either class of a bin.

    Returns
    -------
    Knots
        For linear interpolation; each inner edge stands twice, and is read on the side that `closed` says.

    References
    ----------
    Zadrozny, B. and Elkan, C. (2001). Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers. ICML 2001, 609-616.

    Examples
    --------
    >>> score, rows, positive = np.array([0.1, 0.2, 0.9]), np.array([2.0, 2.0, 1.0]), np.array([1.0, 0.0, 1.0])
    >>> tally = Tally.of_counts(np.array([0]), score, rows, positive)
    >>> fit = histogram(tally, edges=np.array([0.0, 0.25, 0.75, 1.0]))
    >>> evaluate(fit, np.zeros(4, dtype=np.int64), np.array([0.05, 0.25, 0.5, 0.75]))
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    count = len(edges) - 1
    bins = np.searchsorted(edges[1:-1], tally.score, side="right" if closed == "left" else "left")
    first = run_starts(bins, tally.starts)
    ends = np.tile(np.column_stack([edges[:-1], edges[1:]]), (len(tally), 1))
    values = ends.copy()
    values[tally.segment[first] * count + bins[first]] = _rates(tally, first, smoothing)[:, None]
    starts = np.arange(len(tally)) * (2 * count)
    return Knots(starts=starts, x=ends.ravel(), y=values.ravel(), outcome=outcome_of(tally))


def quantile_histogram(tally: Tally, *, count: int | None, closed: Closed = "left", smoothing: float = 0.0) -> Knots:
    """Give each score the rate of its bin, in every segment, with bins of about equal weight and equal scores whole.

    Bins are those of `quantile_bins`, and rates those of `histogram`. A border lies midway between the last score of
    one bin and the first of the next; the outermost bins go on without end.

    Parameters
    ----------
    tally : Tally
        Distinct scores, probabilities or logits.
    count : int or None
        How many bins; None takes `automatic_count`. There are fewer where a score is heavy.
    closed : {"left", "right"}
        The bin that a score on a border belongs to.
    smoothing : float
        Rows added to either class of a bin.

    Returns
    -------
    Knots
        For linear interpolation, as those of `histogram`; the first and the last are the lowest and highest score.

    Examples
    --------
    >>> score, rows, positive = np.array([0.1, 0.5, 0.9]), np.array([1.0, 4.0, 1.0]), np.array([0.0, 2.0, 1.0])
    >>> fit = quantile_histogram(Tally.of_counts(np.array([0]), score, rows, positive), count=3)
    >>> fit.x, fit.y
    (array([0.1, 0.3, 0.3, 0.7, 0.7, 0.9]), array([0. , 0. , 0.5, 0.5, 1. , 1. ]))
    """
    total = tally.total(tally.weight)
    counts = automatic_count(total) if count is None else np.full(len(tally), count)
    first = run_starts(quantile_bins(tally.weight, tally.starts, counts), tally.starts)
    starts = np.searchsorted(first, tally.starts)
    ends = np.column_stack([tally.score[first], tally.score[last_cells(first, len(tally.score))]])
    inner = np.delete(np.arange(len(first)), starts)  # bins with another before them in their segment
    ends[inner, 0] = ends[inner - 1, 1] = _midway(ends[inner - 1, 1], ends[inner, 0], closed)
    rate = np.repeat(_rates(tally, first, smoothing), 2)
    return Knots(starts=2 * starts, x=ends.ravel(), y=rate, outcome=outcome_of(tally))


def _midway(low: Floats, high: Floats, closed: Closed) -> Floats:
    """Return numbers between that leave either end on its side, also where there is none between."""
    middle = np.clip(low, -_FAR, _FAR) / 2.0 + np.clip(high, -_FAR, _FAR) / 2.0
    return np.where(middle > low, middle, high) if closed == "left" else np.where(middle < high, middle, low)


def _rates(tally: Tally, first: Ints, smoothing: float) -> Floats:
    """Return the rates of runs of cells."""
    weight, positive = segment_sum(tally.weight, first), segment_sum(tally.positive, first)
    return np.minimum((positive + smoothing) / (weight + 2.0 * smoothing), 1.0)


def evaluate(
    knots: Knots,
    segment: Ints,
    x: Floats,
    interpolation: Interpolation = "linear",
    *,
    closed: Closed = "left",
) -> Floats:
    """Read curves at points of any segments: exact at the knots, monotone between them, constant outside.

    Parameters
    ----------
    knots : Knots
        The curves.
    segment : ndarray of int64, shape (n,)
        The segment of each point.
    x : ndarray of shape (n,)
        The points; NaN gives NaN.
    interpolation : {"linear", "step"}
        A straight line between neighbouring knots, or the value of the last knot at or before the point (of the
        first knot before that).
    closed : {"left", "right"}
        Where two knots have the same x: ``"left"`` takes the value of the second there, the limit from the right,
        and ``"right"`` that of the first. With steps, ``"right"`` takes the last knot before the point.

    Examples
    --------
    >>> score, rows, positive = np.array([0.2, 0.4, 0.3]), np.ones(3), np.array([0.0, 1.0, 1.0])
    >>> fit = isotonic(Tally.of_counts(np.array([0, 2]), score, rows, positive))
    >>> evaluate(fit, np.array([0, 0, 0, 1]), np.array([0.0, 0.25, 0.5, 0.25])).round(12)
    array([0.  , 0.25, 1.  , 1.  ])
    """
    out = np.empty(len(x))
    sizes = sizes_of(knots.starts, len(knots.x))
    for begin in range(0, len(x), ROWS):
        cut = slice(begin, begin + ROWS)
        at, first, size = x[cut], knots.starts[segment[cut]], sizes[segment[cut]]
        passed = count_below(knots.x, first, size, at, equal=closed == "left")
        left = first + np.maximum(passed - 1, 0)
        right = left if interpolation == "step" else first + np.minimum(passed, size - 1)
        out[cut] = _between(knots, left, right, at)
    return out


def _between(knots: Knots, left: Ints, right: Ints, x: Floats) -> Floats:
    """Return what the line from one knot to another has at a point: no slope is taken, which could overflow."""
    begin, end, at = (np.clip(values, -_FAR, _FAR) for values in (knots.x[left], knots.x[right], x))
    gap = end - begin
    share = np.divide(at - begin, gap, out=np.zeros_like(at), where=gap > 0.0)
    low, high = knots.y[left], knots.y[right]
    value = np.clip(low + share * (high - low), np.minimum(low, high), np.maximum(low, high))
    value[share >= 1.0] = high[share >= 1.0]
    value[np.isnan(x)] = np.nan
    return value


def count_below(values: Floats, first: Ints, sizes: Ints, query: Floats, *, equal: bool) -> Ints:
    """Return how many entries of an ascending range lie below a query, each query with its own range.

    It is `numpy.searchsorted` in many ranges of one array at once, by bisection in step. No range is empty; with
    `equal` entries that equal the query count, too.

    Examples
    --------
    >>> values = np.array([0.1, 0.5, 0.9, 0.3, 0.4])
    >>> count_below(values, np.array([0, 3]), np.array([3, 2]), np.array([0.5, 0.5]), equal=True)
    array([2, 2])
    """
    at, left = first.copy(), sizes.copy()
    for _ in range(int(sizes.max(initial=1) - 1).bit_length()):
        half = left >> 1
        at += half * _is_below(values[at + half], query, equal=equal)
        left -= half
    count: Ints = at - first + _is_below(values[at], query, equal=equal)
    return count


def _is_below(values: Floats, query: Floats, *, equal: bool) -> Bools:
    return values <= query if equal else values < query


def outcome_of(tally: Tally) -> Ints:
    """Return what the classes and scores of each segment are like: such maps exist whatever they are."""
    return status_of(tally.score, tally.positive, tally.negative, tally.starts)


def joined(parts: list[Knots]) -> Knots:
    """Put the curves of chunks of segments together."""
    shifts = starts_of(np.array([len(part.x) for part in parts]))
    return Knots(
        starts=np.concatenate([part.starts + shift for part, shift in zip(parts, shifts, strict=True)]),
        x=np.concatenate([part.x for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        outcome=np.concatenate([part.outcome for part in parts]),
    )
