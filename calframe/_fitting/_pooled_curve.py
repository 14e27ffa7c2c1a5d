"""The pooled isotonic curve as a feature: partial pooling for isotonic regression and histograms.

Curves of many points cannot be shrunk point by point and stay sensible. So the shape comes from all rows together, and
each segment bends it by a slope and an intercept in log-odds, which are pooled partially.
"""

from __future__ import annotations

import numpy as np

from calframe._fitting._bounds import without
from calframe._fitting._fitted import Knots, Outcome
from calframe._fitting._linear import features_of, smoothed
from calframe._fitting._pooling import Pooled, pooled, with_known
from calframe._kernels import _special as special
from calframe._kernels._binned import segment_sum
from calframe._kernels._building import as_one
from calframe._kernels._isotonic import blocks
from calframe._kernels._logistic import FLOOR, logit
from calframe._kernels._newton import Regression
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats

_ADDED = 0.5  # positives and negatives added to each block, so that its log-odds are finite


def pooled_curve(tally: Tally, *, is_logit: bool = False, floor: float = FLOOR) -> Knots:
    """Return the isotonic regression of all rows, whatever their segment, as a curve in log-odds.

    Each block of the fit, with weight N and positives K, is a point: its mean logit, and the log-odds of
    ``(K + 1/2) / (N + 1)``. Neighbouring blocks whose log-odds do not rise for the halves are pooled, too, so the
    curve rises strictly. It is finite even if all rows are of one class.

    Parameters
    ----------
    tally : Tally
        Distinct scores of all segments.
    is_logit : bool
        Whether the scores are logits.
    floor : float
        Of probabilities in logarithms; see `features_of`.

    Returns
    -------
    Knots
        One curve. x are scores, those of the mean logits, or logits where the tally has logits; y are log-odds. Read
        it with `curve_feature`.

    Examples
    --------
    No positive of three at score 0.2, two of two at score 0.8, in two segments:

    >>> score, rows = np.array([0.2, 0.8, 0.2]), np.array([2.0, 2.0, 1.0])
    >>> tally = Tally.of_counts(np.array([0, 2]), score, rows, positive=np.array([0.0, 2.0, 0.0]))
    >>> curve = pooled_curve(tally)
    >>> curve.x.round(6), np.exp(curve.y).round(6)
    (array([0.2, 0.8]), array([0.142857, 5.      ]))
    """
    together = as_one(tally)
    fit = blocks(together)
    z = features_of(together, is_logit=is_logit, floor=floor).z
    weight, positive, low, high = fit.weight, fit.positive, fit.low_score, fit.high_score
    sums = segment_sum(together.weight * z, fit.first_cell)
    while not (keep := _rises(sums / weight) & _rises(_log_odds(weight, positive))).all():
        first = np.flatnonzero(keep)
        weight, positive, sums = (segment_sum(v, first) for v in (weight, positive, sums))
        low, high = low[first], high[np.append(first[1:], len(high)) - 1]
    centre = sums / weight if is_logit else special.expit(sums / weight)
    return Knots(
        starts=np.array([0]),
        x=np.clip(centre, low, high),
        y=_log_odds(weight, positive),
        outcome=np.array([Outcome.FINE], dtype=np.int64),
    )


def curve_feature(curve: Knots, score: Floats, *, is_logit: bool = False, floor: float = FLOOR) -> Floats:
    """Return the log-odds of the curve at some scores: linear in the logit between its points, constant outside.

    Parameters
    ----------
    curve : Knots
        From `pooled_curve`.
    score : ndarray
        Scores, or logits if the curve is one of logits.
    is_logit : bool
        Whether they are logits.
    floor : float
        The floor that the curve was made with.

    Examples
    --------
    >>> line = Knots(starts=np.array([0]), x=np.array([0.2, 0.8]), y=np.array([-2.0, 2.0]), outcome=np.array([0]))
    >>> curve_feature(line, np.array([0.0, 0.2, 0.6, 1.0])).round(4)
    array([-2.   , -2.   ,  0.585,  2.   ])
    """
    if is_logit:
        return np.interp(score, curve.x, curve.y)
    return np.interp(logit(score, floor), logit(curve.x, floor), curve.y)


def pooled_isotonic(tally: Tally, *, is_logit: bool = False, floor: float = FLOOR) -> tuple[Knots, Pooled]:
    """Return the pooled isotonic curve, and slope and intercept of each segment on its log-odds, partially pooled.

    ``P = expit(slope_g c(score) + intercept_g)`` with c the curve and ``slope_g >= 0``; see `pooled`. A segment without
    spread from the others has slope 1 and intercept 0 or nearly so. A curve of a single point leaves the intercepts
    alone, and slope 1.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    is_logit : bool
        Whether the scores are logits.
    floor : float
        Of probabilities in logarithms; see `features_of`.

    Examples
    --------
    Six segments with the rates 1/4 and 3/4: the slope undoes the halves that the curve adds.

    >>> score, rows, positive = np.tile([0.3, 0.6], 6), np.full(12, 8.0), np.tile([2.0, 6.0], 6)
    >>> curve, fit = pooled_isotonic(Tally.of_counts(np.arange(0, 12, 2), score, rows, positive))
    >>> rate = 1 / (1 + np.exp(-(fit.values[0] * curve.y[1] + fit.values[1])))
    >>> rate.round(6)
    array([0.75, 0.75, 0.75, 0.75, 0.75, 0.75])
    """
    curve = pooled_curve(tally, is_logit=is_logit, floor=floor)
    x = curve_feature(curve, tally.score, is_logit=is_logit, floor=floor)
    positive, negative = smoothed(tally, smoothing=False)
    regression = Regression(starts=tally.starts, positive=positive, negative=negative, features=(x, None))
    if len(curve.x) > 1:
        return curve, pooled(regression, lower=np.array([0.0, -np.inf]))
    return curve, with_known(pooled(without(regression, 0, 1.0)), 0, 1.0)


def _log_odds(weight: Floats, positive: Floats) -> Floats:
    return np.log(positive + _ADDED) - np.log(np.maximum(weight - positive, 0.0) + _ADDED)


def _rises(values: Floats) -> Bools:
    """Tell which values are larger than the one before; the first counts as such."""
    return np.append(True, values[1:] > values[:-1])
