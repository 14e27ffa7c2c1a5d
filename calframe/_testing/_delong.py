"""The difference of two areas under the ROC curve on the same rows, by DeLong's placement values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels._binned import added, run_starts, starts_of
from calframe._kernels._ranked import share_below
from calframe._testing._paired import Units, student
from calframe._typing import Bools, Floats

_ONE = 1.0 + 1e-9  # effective number of a single unit, with room for rounding
FEW_OF_CLASS = 20.0  # fewer effective units of a class leave the difference of areas far from normal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AreaDifference:
    """Areas under two ROC curves, and their difference, per segment.

    Attributes
    ----------
    first, second : ndarray
        The areas; NaN with one class.
    error : ndarray
        The standard error of second minus first; NaN with a single unit of a class.
    fewest : ndarray
        The effective number of units of the rarer class.
    low, high, pvalue : ndarray
        Normal interval of the difference, and the two-sided p-value that it is 0; Student's with ``fewest - 1`` degrees
        of freedom where a class has few units.
    """

    first: Floats
    second: Floats
    error: Floats
    fewest: Floats
    low: Floats
    high: Floats
    pvalue: Floats


def area_difference(units: Units, scores: tuple[Floats, Floats], label: Floats, *, level: float) -> AreaDifference:
    """Compare the areas under the ROC curves of two scores of the same rows.

    With the placement value ``V_i`` of a row, the share of the other class that it outranks (ties half), the area A is
    the mean placement of either class, and the variance of a difference of areas the sum over units u of
    ``(sum_{i in u} g_i)^2`` with ``g_i = w_i ((V_i - A)_second - (V_i - A)_first) / W_c * sqrt(m_c / (m_c - 1))``; W_c
    and m_c are the weight and the effective units of the class of the row. Of rows without weights this is DeLong's
    estimate; of clusters, Obuchowski's. Placements come from ranks, in the time of a sort.

    Parameters
    ----------
    units : Units
        Rows in segment order.
    scores : (ndarray, ndarray)
        The scores of the first and of the second model; any numbers.
    label : ndarray of float64
        0 or 1.
    level : float
        Confidence level of the interval.

    References
    ----------
    DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas under two or more correlated
    receiver operating characteristic curves. Biometrics 44, 837-845. https://doi.org/10.2307/2531595

    Sun, X. and Xu, W. (2014). Fast implementation of DeLong's algorithm for comparing the areas under correlated
    receiver operating characteristic curves. IEEE Signal Processing Letters 21, 1389-1393.
    https://doi.org/10.1109/LSP.2014.2337313

    Obuchowski, N. A. (1997). Nonparametric analysis of clustered ROC curve data. Biometrics 53, 567-578.
    https://doi.org/10.2307/2533958

    Examples
    --------
    >>> units = Units.of_rows(np.zeros(6, dtype=np.int64), np.ones(6))
    >>> label, first = np.array([0.0, 0, 0, 1, 1, 1]), np.array([0.1, 0.2, 0.6, 0.4, 0.7, 0.8])
    >>> found = area_difference(units, (first, np.arange(6.0)), label, level=0.95)
    >>> found.first.round(4), found.second, found.error.round(4)
    (array([0.8889]), array([1.]), array([0.1571]))
    """
    positive = label == 1.0
    placed = [_placements(units, score, positive) for score in scores]
    both = np.where(_total(units, ~positive) > 0.0, _total(units, positive), np.nan)
    areas = [units.total(units.weight * value * positive) / both for value in placed]
    off = [value - area[units.segment] for value, area in zip(placed, areas, strict=True)]
    each = np.zeros(len(label))
    sizes = []
    for chosen in (positive, ~positive):
        rows = units.effective(chosen)
        several = np.where(rows > _ONE, rows, np.nan)
        scale = np.sqrt(several / (several - 1.0)) / _total(units, chosen)
        each += chosen * units.weight * (off[1] - off[0]) * scale[units.segment]
        sizes.append(np.nan_to_num(rows))
    fewest = np.minimum(*sizes)
    error = np.sqrt(units.squares(each))
    freedom = np.where(fewest < FEW_OF_CLASS, np.where(fewest > _ONE, fewest - 1.0, np.nan), np.inf)
    low, high, pvalue = student(areas[1] - areas[0], error, freedom, level=level)
    return AreaDifference(
        first=areas[0], second=areas[1], error=error, fewest=fewest, low=low, high=high, pvalue=pvalue
    )


def area_parts(units: Units, score: Floats, label: Floats) -> tuple[Floats, Floats]:
    """Return what each row adds to the area under the ROC curve, and its weight as a share of that of its class.

    Parameters
    ----------
    units : Units
        The rows.
    score : ndarray
        Any numbers.
    label : ndarray of float64
        0 or 1.

    Examples
    --------
    The area is 3/4: the upper positive outranks both negatives, the lower one of them.

    >>> units = Units.of_rows(np.zeros(4, dtype=np.int64), np.ones(4))
    >>> area_parts(units, np.arange(4.0), np.array([0.0, 1.0, 0.0, 1.0]))
    (array([ 0.125, -0.125, -0.125,  0.125]), array([0.5, 0.5, 0.5, 0.5]))
    """
    positive = label == 1.0
    classes = [_total(units, chosen)[units.segment] for chosen in (positive, ~positive)]
    share = units.weight / np.where(positive, *classes)
    placed = _placements(units, score, positive)
    return share * (placed - units.total(share * placed * positive)[units.segment]), share


def _total(units: Units, chosen: Bools) -> Floats:
    """Return the weight of some rows of each segment; NaN where there are none."""
    found = units.total(units.weight * chosen)
    return np.where(found > 0.0, found, np.nan)


def _placements(units: Units, score: Floats, positive: Bools) -> Floats:
    """Return the share of the other class that each row outranks: below a positive, above a negative."""
    order = np.lexsort((score, units.segment))
    first = run_starts(score[order], starts_of(np.bincount(units.segment)))
    cell = np.empty(len(score), dtype=np.int64)
    cell[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(score))))
    starts = starts_of(np.bincount(units.segment[order][first]))
    below = []
    for chosen in (~positive, positive):
        weight = added(cell, units.weight * chosen, len(first))
        below.append(share_below(weight, starts)[cell])
    return np.where(positive, below[0], 1.0 - below[1])
