"""What binning adds to an error by chance, taken off again; and the Brier score taken apart over bins.

An observed rate on ``n_b`` rows strays from the true one, and its square adds ``rate (1 - rate) / (n_b - 1)`` to
squared gaps on average. Rows are counted as ``n_b = weight^2 / squared``. With `squared` the weight itself this is the
weight: weight 2 is the row twice, as in every metric. Importance weights count for rows only if they are scaled so:
multiplied by ``sum w / sum w^2`` they sum to the effective number of rows. With `squared` the sum of squared weights,
``n_b`` is the effective number of rows of the bin at any scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import ratio, segment_sum, sizes_of
from calframe._typing import Floats, Ints

_TWO_ROWS = 2.0 - 1e-9  # sums of weights are off by less


def debiased_error(weight: Floats, score_sum: Floats, label_sum: Floats, squared: Floats, starts: Ints) -> Floats:
    """Return the root mean square calibration error, debiased, per segment.

    ``sqrt(max(sum_b w_b / w (gap_b^2 - rate_b (1 - rate_b) / (n_b - 1)), 0))``; bins of fewer than two rows
    contribute 0, so that 0 also stands where no bin has two rows.

    Parameters
    ----------
    weight, score_sum, label_sum : ndarray of shape (n_cells,)
        Sums of the weight, of weight times score and of weight times label in each bin.
    squared : ndarray of shape (n_cells,)
        `weight` where weights are counts of rows, the sum of squared weights where they express importance.
    starts : ndarray of shape (n_segments,)
        The first cell of each segment.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS 2019.
    https://doi.org/10.48550/arXiv.1909.10155

    Examples
    --------
    Ten rows at 0.5 of which eight are positive: 0.3^2 less 0.8 0.2 / 9.

    >>> ten = np.array([10.0])
    >>> debiased_error(ten, np.array([5.0]), np.array([8.0]), ten, np.array([0])).round(6)
    array([0.268742])
    """
    gap = np.nan_to_num(ratio(score_sum - label_sum, weight))
    counted = np.where(_rows(weight, squared) >= _TWO_ROWS, weight, 0.0)
    squares = segment_sum(counted * gap**2 - weight * _chance(weight, label_sum, squared), starts)
    return np.sqrt(np.maximum(ratio(squares, segment_sum(weight, starts)), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Murphy:
    """The parts of the Brier score per segment: ``reliability - resolution + uncertainty + within_bin``.

    Attributes
    ----------
    reliability : ndarray
        Mean square gap of the bins; lower is better, 0 is perfect.
    resolution : ndarray
        Mean square distance of the bins' rates from the overall rate; higher is better.
    uncertainty : ndarray
        Variance of the label.
    within_bin : ndarray
        What bins hide: the variance of the scores within bins less twice their covariance with the label.
    """

    reliability: Floats
    resolution: Floats
    uncertainty: Floats
    within_bin: Floats


def murphy(weight: Floats, score_sum: Floats, label_sum: Floats, square_loss: Floats, starts: Ints) -> Murphy:
    """Return Murphy's decomposition of the Brier score over bins, with the part within bins, so that it adds up.

    Parameters
    ----------
    weight, score_sum, label_sum : ndarray of shape (n_cells,)
        Sums of the weight, of weight times score and of weight times label in each bin.
    square_loss : ndarray of shape (n_segments,)
        Sum of weight times ``(score - label)^2`` of each segment.
    starts : ndarray of shape (n_segments,)
        The first cell of each segment.

    References
    ----------
    Murphy, A. H. (1973). A new vector partition of the probability score. Journal of Applied Meteorology 12,
    595-600. https://doi.org/10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2

    Stephenson, D. B., Coelho, C. A. S. and Jolliffe, I. T. (2008). Two extra components in the Brier score
    decomposition. Weather and Forecasting 23, 752-757. https://doi.org/10.1175/2007WAF2006116.1

    Examples
    --------
    >>> weight, score, label = np.array([2.0, 2.0]), np.array([0.4, 1.6]), np.array([0.0, 1.0])
    >>> parts = murphy(weight, score, label, np.array([0.76]), np.array([0]))
    >>> [float(each[0].round(6)) for each in (parts.reliability, parts.resolution, parts.uncertainty)]
    [0.065, 0.0625, 0.1875]
    """
    total = segment_sum(weight, starts)
    rate = ratio(segment_sum(label_sum, starts), total)
    sizes = sizes_of(starts, len(weight))
    gap = np.nan_to_num(ratio(score_sum - label_sum, weight))
    apart = np.nan_to_num(ratio(label_sum, weight) - np.repeat(rate, sizes))
    reliability = ratio(segment_sum(weight * gap**2, starts), total)
    resolution = ratio(segment_sum(weight * apart**2, starts), total)
    uncertainty = rate * (1.0 - rate)
    return Murphy(
        reliability=reliability,
        resolution=resolution,
        uncertainty=uncertainty,
        within_bin=ratio(square_loss, total) - (reliability - resolution + uncertainty),
    )


def murphy_corrected(
    weight: Floats, score_sum: Floats, label_sum: Floats, squared: Floats, square_loss: Floats, starts: Ints
) -> Murphy:
    """Return the decomposition with most of the bias of small bins taken off; it adds up to the same Brier score.

    With ``c = sum_b w_b / w rate_b (1 - rate_b) / (n_b - 1)`` over bins of two rows or more, and
    ``u = rate (1 - rate) / (n - 1)``: reliability less c, resolution less c plus u, uncertainty plus u. Nothing is cut
    off at 0, so single values may be negative; NaN where the segment has fewer than two rows.

    Parameters
    ----------
    weight, score_sum, label_sum, squared : ndarray of shape (n_cells,)
        As in `debiased_error`.
    square_loss : ndarray of shape (n_segments,)
        Sum of weight times ``(score - label)^2`` of each segment.
    starts : ndarray of shape (n_segments,)
        The first cell of each segment.

    References
    ----------
    Bröcker, J. (2012). Estimating reliability and resolution of probability forecasts through decomposition of the
    empirical score. Climate Dynamics 39, 655-667. https://doi.org/10.1007/s00382-011-1191-1

    Ferro, C. A. T. and Fricker, T. E. (2012). A bias-corrected decomposition of the Brier score. Quarterly Journal of
    the Royal Meteorological Society 138, 1954-1960. https://doi.org/10.1002/qj.1924

    Examples
    --------
    >>> ten = np.array([10.0])
    >>> parts = murphy_corrected(ten, np.array([5.0]), np.array([8.0]), ten, np.array([2.5]), np.array([0]))
    >>> [float(each[0].round(6)) for each in (parts.reliability, parts.resolution, parts.uncertainty)]
    [0.072222, 0.0, 0.177778]
    """
    plain = murphy(weight, score_sum, label_sum, square_loss, starts)
    total = segment_sum(weight, starts)
    rows = _rows(total, segment_sum(squared, starts))
    many = np.where(rows >= _TWO_ROWS, rows, np.nan)
    bins = ratio(segment_sum(weight * _chance(weight, label_sum, squared), starts), total)
    bins = np.where(np.isnan(many), np.nan, bins)
    whole = plain.uncertainty / (many - 1.0)
    return Murphy(
        reliability=plain.reliability - bins,
        resolution=plain.resolution - bins + whole,
        uncertainty=plain.uncertainty + whole,
        within_bin=plain.within_bin,
    )


def _rows(weight: Floats, squared: Floats) -> Floats:
    """Return the (effective) rows of each bin; 0 without weight."""
    return np.nan_to_num(ratio(weight, squared)) * weight


def _chance(weight: Floats, label_sum: Floats, squared: Floats) -> Floats:
    """Return what chance adds to the squared gap of each bin; 0 where it has fewer than two rows."""
    rows = _rows(weight, squared)
    rate = ratio(label_sum, weight)
    found = np.zeros_like(rows)
    np.divide(rate * (1.0 - rate), rows - 1.0, out=found, where=rows >= _TWO_ROWS)
    return found
