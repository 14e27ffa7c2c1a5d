"""The integrated calibration index and its family: how far scores lie from a smooth curve of the observed rate."""

from __future__ import annotations

import numpy as np

from calframe._kernels._binned import changes, last_cells, segment_count, segment_max, segment_sum, spread
from calframe._kernels._local_fits import LEAST_RADIUS, local_fits, members, tricube
from calframe._kernels._loess import loess
from calframe._kernels._neighbours import SLACK, Neighbours, first_where, masses
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints, Smoother

_DIRECT = 2**13  # most scores of a segment that each get a fit of their own
_LOWESS_SPAN = 2.0 / 3.0  # R's defaults of lowess: the share of the rows in a neighbourhood,
_LOWESS_DELTA = 0.01  # and the share of the range that is bridged by a straight line
_LOWESS_SLACK = 1e-7  # lowess adds it to span times rows before it rounds down
_LOWESS_LEAST = 2.0  # rows
_FLAT, _CUT = 0.001, 0.999  # of the radius: the kernel is 1 up to here, and 0 from here
_LEAST_SPREAD = 0.001  # of the range: a neighbourhood that is narrower has no slope


def ici(tally: Tally, smoother: Smoother) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the integrated calibration index, its median, its 90 % quantile and its maximum, per segment.

    With a smooth curve c of the label on the score and ``d_i = |p_i - c(p_i)|`` over rows: ici is the mean of d, e50
    and e90 are its quantiles, emax is its largest value.

    Quantiles are R's (type 7): with n rows, interpolated at ``(n - 1) q`` among the sorted ones counted from 0, a
    weight of 2 being the row twice. Where weights of a segment are not all whole, it is the limit of that for ever
    more copies of all rows: the first value up to which there is the share q of the weight, and where exactly q is
    reached, ``q low + (1 - q) high`` of the values on either side.

    Parameters
    ----------
    tally : Tally
        Any number of segments.
    smoother : {"loess", "loess_direct", "lowess"}
        R's default loess, the same without interpolation, or R's lowess with no robustness iterations.

    Returns
    -------
    ici, e50, e90, emax : ndarray of shape (n_segments,)
        Lower is better, 0 is perfect; never NaN: a segment with one score is smoothed to its rate.

    References
    ----------
    Austin, P. C., Steyerberg, E. W. (2019). The Integrated Calibration Index (ICI) and related metrics for quantifying
    the calibration of logistic regression models. https://doi.org/10.1002/sim.8281

    Examples
    --------
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.25, 0.75]), np.array([4.0, 4.0]), np.array([2.0, 3.0]))
    >>> np.round(np.ravel(ici(tally, "loess")), 6)
    array([0.125, 0.125, 0.25 , 0.25 ])
    """
    smooth = {"loess": loess, "loess_direct": loess_direct, "lowess": lowess}[smoother]
    parts = [_summary(part, np.abs(part.score - smooth(part))) for _, part in tally.chunks()]
    mean, middle, high, largest = (np.concatenate(values) for values in zip(*parts, strict=True))
    return mean, middle, high, largest


def _summary(tally: Tally, gap: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, median, 90 % quantile and maximum of a value of each cell, over rows."""
    near = Neighbours.of(tally)
    order = np.lexsort((gap, tally.segment))
    gap = gap[order]
    end = masses(tally, tally.running(near.share[order]), near.whole, near.total)
    mean = tally.total(near.share[order] * gap)
    return mean, _quantile(near, gap, end, 0.5), _quantile(near, gap, end, 0.9), segment_max(gap, tally.starts)


def _quantile(near: Neighbours, gap: Floats, end: Floats, q: float) -> Floats:
    """Return a quantile of sorted values whose running masses are `end`."""
    tally = near.tally
    position = (near.total - 1.0) * q
    before = np.floor(position)
    low = _reached(tally, end, np.where(near.whole, before + 0.5, q - SLACK))
    high = _reached(tally, end, np.where(near.whole, before + 1.5, q + SLACK))
    part = np.where(near.whole, position - before, 1.0 - q)
    return gap[low] + part * (gap[high] - gap[low])


def _reached(tally: Tally, end: Floats, mass: Floats) -> Ints:
    """Return the first cell of each segment at which a running mass is reached, the last where it never is."""
    passed = segment_count(end < tally.spread(mass), tally.starts)
    return tally.starts + np.minimum(passed, tally.sizes - 1)


def loess_direct(tally: Tally) -> Floats:
    """Return the local quadratic fit at each score itself, R's ``loess(label ~ score, surface = "direct")``.

    Its cost grows with the square of the number of different scores. Where a segment has more than 8192 of them, those
    in the same of 4096 bins of equal weight and the same of 4096 bins of equal width are first merged at their mean
    score, and straight lines join the fits there.

    Parameters
    ----------
    tally : Tally
        Scores of any range; many segments at once, a chunk of them.

    Returns
    -------
    ndarray of shape (n_cells,)
        The curve at each score. It is not kept within [0, 1].

    References
    ----------
    Cleveland, W. S., Devlin, S. J. (1988). Locally weighted regression: an approach to regression analysis by local
    fitting. https://doi.org/10.1080/01621459.1988.10478639

    Examples
    --------
    >>> squares = np.array([0.0, 1.0, 4.0, 9.0, 16.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.full(5, 16.0), squares)
    >>> np.round(16 * loess_direct(tally), 3) + 0.0
    array([ 0.,  1.,  4.,  9., 16.])
    """
    groups, group = _merged(tally)
    value, _ = local_fits(Neighbours.of(groups), groups.segment, groups.score)
    first = tally.spread(groups.starts)
    last = tally.spread(last_cells(groups.starts, len(groups.score)))
    left = np.maximum(np.minimum(group - (tally.score < groups.score[group]), last - 1), first)
    return _line(tally.score, groups.score, value, left, np.minimum(left + 1, last))


def _line(at: Floats, score: Floats, value: Floats, left: Ints, right: Ints) -> Floats:
    """Interpolate linearly between two points each; they may be the same."""
    width = score[right] - score[left]
    part = (at - score[left]) / np.where(width > 0, width, 1.0)
    line: Floats = (1.0 - part) * value[left] + part * value[right]
    return line


def _merged(tally: Tally) -> tuple[Tally, Ints]:
    """Merge the scores of segments that have too many of them, and return the group of each."""
    half = _DIRECT // 2
    weights = quantile_bins(tally.weight, tally.starts, np.full(len(tally), half))
    lowest, range_ = tally.score[tally.starts], _ranges(tally)
    widths = np.floor(half * (tally.score - tally.spread(lowest)) / tally.spread(np.where(range_ > 0, range_, 1.0)))
    new = changes(weights) | changes(widths) | tally.spread(tally.sizes <= _DIRECT)
    new[tally.starts] = True
    return tally.merged(np.flatnonzero(new)), np.cumsum(new) - 1


def _ranges(tally: Tally) -> Floats:
    """Return how far the scores of each segment reach."""
    return tally.score[last_cells(tally.starts, len(tally.score))] - tally.score[tally.starts]


def lowess(tally: Tally, *, span: float = _LOWESS_SPAN, delta: float | None = None) -> Floats:
    """Return Cleveland's lowess at each score, without robustness iterations: R's ``lowess(score, label, iter = 0)``.

    Local lines over the nearest ``floor(span n)`` rows (at least 2) with the tricube kernel, at scores about `delta`
    apart; between those the curve is straight. What counts as a row is as for `loess`.

    Parameters
    ----------
    tally : Tally
        Scores of any range; many segments at once, a chunk of them.
    span : float
        The share of the rows in a neighbourhood, in (0, 1].
    delta : float, optional
        How far apart fits may be, on the scale of the scores; by default a hundredth of each segment's range.

    Returns
    -------
    ndarray of shape (n_cells,)
        The curve at each score. It is not kept within [0, 1].

    References
    ----------
    Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots.
    https://doi.org/10.1080/01621459.1979.10481038

    Examples
    --------
    >>> positive = np.array([0.0, 1.0, 1.0, 3.0, 2.0, 2.0, 3.0, 4.0, 3.0])
    >>> tally = Tally.of_counts(np.array([0]), np.arange(1, 10) / 10, np.full(9, 4.0), positive)
    >>> np.round(lowess(tally), 2)
    array([0.01, 0.2 , 0.38, 0.48, 0.56, 0.64, 0.72, 0.81, 0.89])
    """
    near = Neighbours.of(tally)
    ranges = _ranges(tally)
    marks = _marks(near, _LOWESS_DELTA * ranges if delta is None else np.full(len(tally), delta))
    own = tally.segment[marks]
    value = _lines(near, own, tally.score[marks], near.mass(span, slack=_LOWESS_SLACK, least=_LOWESS_LEAST), ranges)
    cells = np.arange(len(tally.score))
    right = np.searchsorted(marks, cells)
    return _line(tally.score, tally.score[marks], value, right - (marks[right] != cells), right)


def _marks(near: Neighbours, delta: Floats) -> Ints:
    """Return the cells that get a fit: the first, then each time the last within `delta`, or else the next one."""
    score = near.tally.score
    now, stop = near.tally.starts, near.stops
    found = [now]
    while np.any(more := now < stop - 1):
        now, stop, delta = now[more], stop[more], delta[more]
        now = np.maximum(_first_above(score, now + 1, stop, score[now] + delta) - 1, now + 1)
        found.append(now)
    return np.sort(np.concatenate(found))


def _first_above(score: Floats, low: Ints, high: Ints, limit: Floats) -> Ints:
    """Return the first cell from `low` up to `high` whose score is above a limit; else `high`."""
    return first_where(low, high, lambda cell: score[cell] > limit)


def _lines(near: Neighbours, segment: Ints, at: Floats, mass: Floats, ranges: Floats) -> Floats:
    """Return the local line of lowess at each point, the local mean where the scores around it are not spread out."""
    first, last, radius = near.around(segment, at, mass)
    least = _LEAST_SPREAD * ranges[segment]
    value = np.empty(len(at))
    for part, cells, begins in members(first, last):
        away = near.tally.score[cells] - spread(at[part], begins, len(cells))
        far, limit = np.abs(away), spread(radius[part], begins, len(cells))
        kernel = np.where(far <= _CUT * limit, tricube(far / np.maximum(limit, LEAST_RADIUS)), 0.0)
        kernel[far <= _FLAT * limit] = 1.0
        kernel *= near.share[cells]
        kernel /= spread(segment_sum(kernel, begins), begins, len(cells))
        label = near.tally.positive[cells] / near.tally.weight[cells]
        centre = segment_sum(kernel * away, begins)
        away -= spread(centre, begins, len(cells))
        variance = segment_sum(kernel * away * away, begins)
        steep = np.sqrt(variance) > least[part]
        slope = segment_sum(kernel * away * label, begins) / np.where(steep, variance, np.inf)
        value[part] = segment_sum(kernel * label, begins) - centre * slope
    return value
