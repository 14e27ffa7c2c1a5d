"""The kernel-smoothed reliability curve, with the bandwidth of the smooth calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import run_starts
from calframe._kernels._smooth import smooth_error
from calframe._kernels._tally import Tally
from calframe._typing import Floats, Ints

_FINE = 2**13  # cells of [0, 1] that stand in for more distinct scores: far narrower than any bandwidth
_REACH = 8.0  # bandwidths beyond which a Gaussian is nil


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMeans:
    """Weighted sums around each point, the weight of a row times the kernel.

    Attributes
    ----------
    weight : ndarray of shape (n_points,)
        Sum of ``w K``.
    rate, score : ndarray
        Weighted means of label and score.
    squared, squared_variance : ndarray
        Sums of ``w^2 K^2`` and of ``w^2 K^2 s (1 - s)``.
    """

    weight: Floats
    rate: Floats
    score: Floats
    squared: Floats
    squared_variance: Floats


def kernel_means(tally: Tally, segment: Ints, at: Floats) -> KernelMeans:
    """Return what each segment looks like around points, through the Gaussian that smECE smooths it with.

    The kernel is ``sum_k exp(-(t - s_k)^2 / (2 sigma^2))`` over the mirror images s_k of a score at 0 and 1, with the
    bandwidth of `smooth_error`. Points at which nothing is near have weight 0 and NaN means.

    Parameters
    ----------
    tally : Tally
        Scores in [0, 1].
    segment : ndarray of int64, shape (n_points,)
        The segment of each point, ascending.
    at : ndarray of shape (n_points,)
        The points, in [0, 1].

    Examples
    --------
    >>> one = np.array([1.0])
    >>> tally = Tally.of_counts(np.array([0]), np.array([0.5]), one * 4, one)
    >>> means = kernel_means(tally, np.array([0]), np.array([0.5]))
    >>> float(means.rate[0]), float(means.score[0])
    (0.25, 0.5)
    """
    _, bandwidth = smooth_error(tally)
    found = np.zeros((5, len(at)))
    bounds = np.searchsorted(segment, np.arange(len(tally) + 1))
    for i in range(len(tally)):  # a matrix of points by scores each
        here = slice(bounds[i], bounds[i + 1])
        found[:, here] = _sums(_thinned(tally.part(i, i + 1)), at[here], float(bandwidth[i]))
    with np.errstate(invalid="ignore", divide="ignore"):
        rate, score = found[1] / found[0], found[2] / found[0]
    return KernelMeans(weight=found[0], rate=rate, score=score, squared=found[3], squared_variance=found[4])


def _sums(tally: Tally, at: Floats, bandwidth: float) -> Floats:
    """Return the five sums at each point."""
    score, weight, squared = tally.score, tally.weight, tally.squared
    images = range(-int(np.ceil(_REACH * bandwidth / 2.0)), int(np.ceil(_REACH * bandwidth / 2.0)) + 1)
    kernel = np.zeros((len(at), len(score)))
    for k in images:
        for image in (2.0 * k + score, 2.0 * k - score):
            away = (at[:, None] - image[None, :]) / bandwidth
            kernel += np.exp(away * away * -0.5)
    square = kernel * kernel
    sums = [kernel @ values for values in (weight, tally.positive, weight * score)]
    return np.stack([*sums, square @ squared, square @ (squared * score * (1.0 - score))])


def _thinned(tally: Tally) -> Tally:
    """Return the tally of one segment, neighbours joined where there are many."""
    if len(tally.score) <= _FINE:
        return tally
    cell = np.minimum((tally.score * _FINE).astype(np.int64), _FINE - 1)
    return tally.merged(run_starts(cell, tally.starts))
