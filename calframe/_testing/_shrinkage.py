"""Empirical Bayes: gaps of many segments, each drawn towards the mean as far as chance explains its distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import segment_sum, spread
from calframe._typing import Floats, Ints

_HALVINGS = 60  # of the spread between segments, in [0, 1]: down to the spacing of numbers
_WIDEST = 1.0  # variance; gaps lie in [-1, 1], so that theirs is no larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunken:
    """Gaps of segments after shrinking.

    Attributes
    ----------
    mean, deviation : ndarray of shape (n_segments,)
        Posterior mean and standard deviation of the true gap; NaN without rows.
    spread : ndarray of shape (n_families,)
        Estimated standard deviation of the true gaps of a family of segments.
    """

    mean: Floats
    deviation: Floats
    spread: Floats


def sampling_variance(score: Floats, gap: float, rows: Floats) -> Floats:
    """Return the variance of the observed rate of segments that have the gap `gap`.

    It is ``q (1 - q) / n`` with ``q = score - gap``, and so does not depend on what was observed: a segment
    without positives is not taken as known for certain. The chance q is kept half a row away from 0 and 1.
    """
    some = np.maximum(rows, 1.0)
    chance = np.clip(score - gap, 0.5 / some, 1.0 - 0.5 / some)
    return chance * (1.0 - chance) / some


def shrunken(gap: Floats, variance: Floats, starts: Ints, centre: float) -> Shrunken:
    """Return the posterior gaps of families of segments under ``true gap ~ N(centre, tau^2)``.

    For a family of k segments tau^2 solves ``sum (gap - centre)^2 / (variance + tau^2) = k - 1``, and is 0 where the
    gaps differ less than chance makes them (Paule and Mandel; no distribution is assumed for it). Then the posterior
    mean is ``centre + B (gap - centre)`` with ``B = tau^2 / (tau^2 + variance)``, and the posterior variance
    ``B variance``. The centre and tau are taken as known.

    Parameters
    ----------
    gap, variance : ndarray of shape (n_segments,)
        Observed gaps, family after family, and their sampling variances; a gap of NaN does not count.
    starts : ndarray of shape (n_families,)
        The first segment of each family.
    centre : float
        The gap that segments are drawn towards.

    References
    ----------
    Paule, R. C. and Mandel, J. (1982). Consensus values and weighting factors. Journal of Research of the National
    Bureau of Standards 87, 377-385. https://doi.org/10.6028/jres.087.022

    Efron, B. and Morris, C. (1975). Data analysis using Stein's estimator and its generalizations. Journal of the
    American Statistical Association 70, 311-319. https://doi.org/10.1080/01621459.1975.10479864

    Examples
    --------
    Two gaps of 0.1 either side of 0, each with variance 0.01: the equation is 0.02 / (0.01 + tau^2) = 1.

    >>> found = shrunken(np.array([0.1, -0.1]), np.array([0.01, 0.01]), np.array([0]), 0.0)
    >>> found.mean.round(6), found.spread.round(6)
    (array([ 0.05, -0.05]), array([0.1]))
    """
    known = ~np.isnan(gap)
    off = np.where(known, (gap - centre) ** 2, 0.0)
    wanted = segment_sum(known.astype(np.float64), starts) - 1.0
    low, high = np.zeros(len(starts)), np.full(len(starts), _WIDEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        total = segment_sum(off / (variance + spread(middle, starts, len(gap))), starts)
        low, high = np.where(total > wanted, middle, low), np.where(total > wanted, high, middle)
    alike = segment_sum(off / variance, starts) <= np.maximum(wanted, 0.0)
    between = np.where(alike | (wanted < 1.0), 0.0, high)
    kept = spread(between, starts, len(gap))
    kept = kept / (kept + variance)
    return Shrunken(
        mean=np.where(known, centre + kept * (gap - centre), np.nan),
        deviation=np.where(known, np.sqrt(kept * variance), np.nan),
        spread=np.sqrt(between),
    )
