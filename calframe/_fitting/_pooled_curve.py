"""The pooled curve as a feature: partial pooling for isotonic regression and histograms.

Curves of many points cannot be shrunk point by point and stay sensible. So the shape comes from all rows together, and
each segment bends it by a slope and an intercept in log-odds, which are pooled partially.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calframe._fitting._bounds import within, without
from calframe._fitting._fitted import Knots
from calframe._fitting._linear import smoothed
from calframe._fitting._pooling import Pooled, pooled, with_known
from calframe._fitting._steps import Interpolation, block_knots
from calframe._kernels._binned import changes, segment_sum
from calframe._kernels._isotonic import Blocks, blocks
from calframe._kernels._logistic import FLOOR, Status, logit, status_of
from calframe._kernels._newton import Regression, maximum_likelihood
from calframe._kernels._tally import Tally
from calframe._typing import Closed, Floats, Ints

_ADDED = 0.5  # positives and negatives added to each block, so that its log-odds are finite
_ONE = np.zeros(1, dtype=np.int64)
_LEAST = np.array([0.0, -np.inf])  # of slope and intercept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PooledCurve:
    """The curve of a method for all rows, with rates that neither fall nor reach 0 or 1.

    Attributes
    ----------
    knots : Knots
        The curve, of rates.
    weight, plain, rate : ndarray of shape (n_blocks,)
        Of each block, or each bin that has rows: its weight, its rate in the method itself, and that of the curve.
    """

    knots: Knots
    weight: Floats
    plain: Floats
    rate: Floats


def isotonic_curve(whole: Tally, *, interpolation: Interpolation = "linear", centred: bool = False) -> PooledCurve:
    """Return the isotonic regression of all rows with rates between 0 and 1.

    A block with weight N and positives K has the rate ``(K + 1/2) / (N + 1)``. Neighbouring blocks whose rates do not
    rise for the halves are pooled, by isotonic regression of these rates with weights N + 1.

    Parameters
    ----------
    whole : Tally
        Distinct scores of all rows, whatever their segment.
    interpolation, centred
        How blocks are joined; see `isotonic`.

    Examples
    --------
    No positive of three at score 0.2, two of two at score 0.8:

    >>> rows, positive = np.array([3.0, 2.0]), np.array([0.0, 2.0])
    >>> curve = isotonic_curve(Tally.of_counts(np.array([0]), np.array([0.2, 0.8]), rows, positive))
    >>> curve.knots.x, curve.knots.y.round(6)
    (array([0.2, 0.8]), array([0.125   , 0.833333]))
    """
    fit = blocks(whole)
    risen = _risen(fit.weight, fit.positive, _ADDED)
    fit = _together(fit, risen)
    knots = block_knots(whole, fit, risen.value, interpolation=interpolation, centred=centred)
    return PooledCurve(knots=knots, weight=fit.weight, plain=fit.value, rate=risen.value)


def histogram_curve(whole: Tally, knots: Knots, *, closed: Closed = "left", smoothing: float = 0.0) -> PooledCurve:
    """Return the histogram of all rows with rates between 0 and 1 that never fall.

    A bin with weight N and positives K has the rate ``(K + s) / (N + 2 s)``, with s the smoothing or, without any,
    1/2. Neighbouring bins whose rates fall are pooled, by isotonic regression of these rates with weights N + 2 s. A
    bin without rows keeps the score, as far as it lies between the rates of the bins beside; beyond the outermost bins
    with rows the curve is constant.

    Parameters
    ----------
    whole : Tally
        Distinct scores of all rows, whatever their segment.
    knots : Knots
        The histogram of this tally with this smoothing, two knots a bin; from `histogram` or `quantile_histogram`.
    closed : {"left", "right"}
        The side that belongs to a bin.
    smoothing : float
        Rows added to either class of a bin.

    Examples
    --------
    With the halves the rates of the first bins are 3/4 and 1/4, which are pooled. Between the second and the last,
    scores are kept from 1/2 to 0.55, the rate of the last.

    >>> from calframe._fitting._steps import histogram
    >>> score, rows, positive = np.array([0.1, 0.3, 0.9]), np.full(3, 3.0), np.array([2.5, 0.5, 1.7])
    >>> tally = Tally.of_counts(np.array([0]), score, rows, positive)
    >>> curve = histogram_curve(tally, histogram(tally, edges=np.array([0.0, 0.2, 0.4, 0.8, 1.0])))
    >>> curve.knots.x, curve.knots.y
    (array([0.  , 0.2 , 0.4 , 0.5 , 0.55, 0.8 , 1.  ]), array([0.5 , 0.5 , 0.5 , 0.5 , 0.55, 0.55, 0.55]))
    """
    bins = _bins(knots, whole.score, closed)
    first = np.flatnonzero(changes(bins))
    weight, positive = segment_sum(whole.weight, first), segment_sum(whole.positive, first)
    risen = _risen(weight, positive, smoothing or _ADDED)
    rate, low = risen.spread(risen.value), 2 * bins[first]
    x, y = _steps(knots.x[low], knots.x[low + 1], rate)
    found = Knots(starts=_ONE, x=x, y=y, outcome=knots.outcome)
    return PooledCurve(knots=found, weight=weight, plain=knots.y[low], rate=rate)


def with_rows_added(tally: Tally, whole: Tally, knots: Knots, *, closed: Closed, smoothing: float) -> Tally:
    """Return the segments with the rows that smoothing adds to each bin, of which every row has an equal share.

    Together they have then what the smoothed histogram of all rows has: ``N + 2 s`` rows in a bin, and ``K + s``
    positives. The tally returned is one for `bent` alone.

    Parameters
    ----------
    tally : Tally
        Segments.
    whole, knots, closed, smoothing
        As `histogram_curve` takes them.

    Examples
    --------
    A row of either class in each bin, for a segment that has half of the rows in the first, and all in the second:

    >>> from calframe._fitting._steps import histogram
    >>> whole = Tally.of_counts(np.array([0]), np.array([0.2, 0.8]), np.array([4.0, 5.0]), np.array([1.0, 5.0]))
    >>> part = Tally.of_counts(np.array([0]), np.array([0.2, 0.8]), np.array([2.0, 5.0]), np.array([0.0, 5.0]))
    >>> knots = histogram(whole, edges=np.array([0.0, 0.5, 1.0]), smoothing=1.0)
    >>> more = with_rows_added(part, whole, knots, closed="left", smoothing=1.0)
    >>> more.weight, more.positive
    (array([3., 7.]), array([0.5, 6. ]))
    """
    weight = np.bincount(_bins(knots, whole.score, closed), weights=whole.weight)
    share = smoothing * tally.weight / weight[_bins(knots, tally.score, closed)]
    return replace(tally, weight=tally.weight + 2.0 * share, positive=tally.positive + share)


def nearest(curve: PooledCurve, *, floor: float = FLOOR) -> Floats:
    """Return the slope and intercept with which the curve is nearest to the method itself.

    Of all that neither fall, those of the least Kullback-Leibler divergence from the rates of the method, over the
    weights of its blocks or bins: for isotonic, and for a histogram without smoothing, those of largest likelihood for
    all rows. They are 1 and 0 where the curve has the rates of the method, or no other finite ones are best.

    Parameters
    ----------
    curve : PooledCurve
        The curve.
    floor : float
        How far from 0 a rate stays in a logarithm.

    Examples
    --------
    Rates of 1/8 and 7/8 for 1/4 and 3/4: in log-odds those are ln 3 / ln 7 times these.

    >>> rates = {"plain": np.array([0.25, 0.75]), "rate": np.array([0.125, 0.875])}
    >>> knots = Knots(starts=np.array([0]), x=np.array([0.2, 0.8]), y=rates["rate"], outcome=np.array([0]))
    >>> found = nearest(PooledCurve(knots=knots, weight=np.array([4.0, 4.0]), **rates))
    >>> (found * np.log(7) / np.log(3)).round(9) + 0.0
    array([1., 0.])
    """
    feature = logit(curve.rate, floor)
    positive, negative = curve.weight * curve.plain, curve.weight * (1.0 - curve.plain)
    regression = Regression(starts=_ONE, positive=positive, negative=negative, features=(feature, None))
    status = status_of(feature, positive, negative, _ONE)[0]
    if status == Status.ONE_SCORE:
        return np.append(1.0, maximum_likelihood(without(regression, 0, 1.0))[0])
    if status != Status.FINE:
        return np.array([1.0, 0.0])
    found = within(regression, maximum_likelihood(regression)[0], _LEAST, None)[:, 0]
    return found if np.isfinite(found).all() else np.array([1.0, 0.0])


def bent(tally: Tally, feature: Floats) -> Pooled:
    """Return slope and intercept of each segment on the log-odds of a curve, partially pooled.

    ``P = expit(slope_g c(score) + intercept_g)`` with c the log-odds of the curve and ``slope_g >= 0``; see `pooled`. A
    curve that is the same at all scores leaves the intercepts alone, and slope 1.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    feature : ndarray of shape (n_cells,)
        The log-odds of the curve there.

    Examples
    --------
    Six segments with the rates 1/4 and 3/4: the slope undoes the halves that the curve adds.

    >>> rows, positive = np.full(12, 8.0), np.tile([2.0, 6.0], 6)
    >>> tally = Tally.of_counts(np.arange(0, 12, 2), np.tile([0.3, 0.6], 6), rows, positive)
    >>> feature = np.tile(np.log([12.5 / 36.5, 36.5 / 12.5]), 6)
    >>> fit = bent(tally, feature)
    >>> (1 / (1 + np.exp(-(fit.values[0] * feature[1] + fit.values[1])))).round(6)
    array([0.75, 0.75, 0.75, 0.75, 0.75, 0.75])
    """
    positive, negative = smoothed(tally, smoothing=False)
    regression = Regression(starts=tally.starts, positive=positive, negative=negative, features=(feature, None))
    if feature.min() < feature.max():
        return pooled(regression, lower=_LEAST)
    return with_known(pooled(without(regression, 0, 1.0)), 0, 1.0)


def _bins(knots: Knots, score: Floats, closed: Closed) -> Ints:
    """Return the bins of scores, of a histogram of one segment."""
    found: Ints = np.searchsorted(knots.x[2::2], score, side="right" if closed == "left" else "left")
    return found


def _risen(weight: Floats, positive: Floats, added: float) -> Blocks:
    """Return the isotonic regression of smoothed rates on their order."""
    order = np.arange(len(weight), dtype=np.float64)
    return blocks(Tally.of_counts(_ONE, order, weight + 2.0 * added, positive + added))


def _together(fit: Blocks, groups: Blocks) -> Blocks:
    """Return blocks of blocks."""
    first, last = groups.first_cell, groups.last_cell
    rows, weight, positive = (segment_sum(values, first) for values in (fit.rows, fit.weight, fit.positive))
    return Blocks(
        starts=_ONE,
        first_cell=fit.first_cell[first],
        last_cell=fit.last_cell[last],
        low_score=fit.low_score[first],
        high_score=fit.high_score[last],
        rows=rows,
        weight=weight,
        positive=positive,
        value=positive / weight,
    )


def _steps(low: Floats, high: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Return the points of bins with rows, and between them those of the score, no lower nor higher than their rates.

    Two points at one x are a step; no point stands twice.
    """
    begin, end, before, after = high[:-1], low[1:], rate[:-1], rate[1:]
    turns = (np.clip(each, begin, end) for each in (before, after))
    x = np.column_stack([low[:-1], begin, begin, *turns, end])
    y = np.column_stack([before, before, np.clip(x[:, 2:], before[:, None], after[:, None])])
    there = np.ones(x.shape, dtype=bool)
    there[:, 2:] = (begin < end)[:, None]
    x, y = np.append(x[there], [low[-1], high[-1]]), np.append(y[there], [rate[-1], rate[-1]])
    new = changes(x) | changes(y)
    return x[new], y[new]
