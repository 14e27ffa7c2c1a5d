"""What chance alone shows: the law of a cell's positives when the scores are right.

If every score is right, the positives of a cell are a sum of independent Bernoulli draws with mean
``mu = sum s`` and variance ``v = sum s (1 - s)``. That sum is Binomial where the scores of the cell are equal; in
general the Binomial with the same mean and variance stands for it: ``p' = 1 - v / mu``, ``m = mu / p'`` rounded,
``K ~ Binomial(m, mu / m)``. The plain Binomial(n, mu / n) is too wide in wide cells.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from calframe._kernels import _special as special
from calframe._typing import Floats

_ROUNDING = 1e-9  # what sums of scores are off by, relatively, with room to spare
_ULPS = 1e-12  # sums of scores and quotients of them are off by less
_LEAST_CHANCE = 1e-300  # stands for 0, which nothing is divided by


def matched_binomial(mean: Floats, variance: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Return the size and success probability of the Binomial matched to a cell.

    Parameters
    ----------
    mean, variance : ndarray
        Mean and variance of the number of positives; the mean at most half of `most`, or match the negatives.
    most : ndarray
        The largest possible number of positives, the rows of the cell.

    Returns
    -------
    size, chance : ndarray
        Whole numbers, and probabilities whose product with the size is the mean. A cell whose mean is 0 has size 0
        and chance 0.

    Examples
    --------
    Ten rows with score 0.3 are Binomial(10, 0.3):

    >>> size, chance = matched_binomial(np.array([3.0]), np.array([2.1]), np.array([10.0]))
    >>> float(size[0]), round(float(chance[0]), 12)
    (10.0, 0.3)
    """
    some = mean > 0
    safe = np.where(some, mean, 1.0)
    chance = np.clip(1.0 - variance / safe, _LEAST_CHANCE, 1.0)
    least = np.ceil(safe * (1.0 - _ROUNDING))
    size = np.clip(np.floor(safe / chance + 0.5 + _ROUNDING), least, np.maximum(np.rint(most), least))
    return np.where(some, size, 0.0), np.where(some, np.minimum(safe / size, 1.0), 0.0)


def mean_absolute_deviation(size: Floats, chance: Floats) -> Floats:
    """Return ``E|K - E K|`` of ``K ~ Binomial(size, chance)``, by De Moivre's closed form.

    With ``k = floor(size * chance)`` it is ``2 (k + 1) C(size, k + 1) chance^(k + 1) (1 - chance)^(size - k)``.

    References
    ----------
    Diaconis, P. and Zabell, S. (1991). Closed form summation for classical distributions: variations on a theme
    of De Moivre. Statistical Science 6, 284-302. https://doi.org/10.1214/ss/1177011699

    Examples
    --------
    One toss of a fair coin is always half a head off its mean:

    >>> float(mean_absolute_deviation(np.array([1.0]), np.array([0.5])).round(12)[0])
    0.5
    """
    k = np.minimum(np.floor(size * chance), size)
    inner = np.where(k < size, k, 0.0)
    log = (
        special.gammaln(size + 1.0)
        - special.gammaln(inner + 1.0)
        - special.gammaln(np.maximum(size - inner, 1.0))
        + special.xlogy(inner + 1.0, chance)
        + special.xlog1py(size - inner, -chance)
    )
    return np.where((k < size) & (size > 0), 2.0 * np.exp(log), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLaw:
    """The law of a cell's weighted positives when the scores are right: ``centre + step * (K - E K)``, K Binomial.

    Attributes
    ----------
    size, chance : ndarray
        The Binomial, matched to the rarer of positives and negatives.
    centre : ndarray
        Mean of the weighted positives.
    step : ndarray
        Weight of one positive; negative where K counts negatives.
    stretch : ndarray
        By how much the spread of K must be stretched where the Binomial cannot have the variance exactly.
    """

    size: Floats
    chance: Floats
    centre: Floats
    step: Floats
    stretch: Floats

    def part(self, begin: int, end: int) -> Self:
        """Return the law of the cells from `begin` up to, not including, `end`."""
        return type(self)(**{field.name: getattr(self, field.name)[begin:end] for field in fields(self)})


def cell_law(weight: Floats, mean: Floats, variance: Floats, squared_variance: Floats) -> CellLaw:
    """Return the law of the weighted positives of cells.

    Parameters
    ----------
    weight, mean : ndarray
        Sums of the weight ``w`` and of ``w s``.
    variance, squared_variance : ndarray
        Sums of ``w s (1 - s)`` and of ``w^2 s (1 - s)``. Weighted positives are taken as the ratio c of these sums
        times a number of positives with mean ``mean / c`` and variance ``squared_variance / c^2``. That is exact for
        equal scores and weights, and off where one weight outweighs the rest of its cell.
    """
    scale = np.ones_like(weight)
    np.divide(squared_variance, variance, out=scale, where=variance > 0)
    scale = np.where(np.abs(scale - 1.0) < _ROUNDING, 1.0, scale)  # numbers of rows stay whole
    most, hits, spread = weight / scale, mean / scale, squared_variance / scale**2
    misses = np.maximum(most - hits, 0.0)
    rarer = np.minimum(hits, misses)
    size, chance = matched_binomial(rarer, spread, most)
    reached = size * chance * (1.0 - chance)
    stretch = np.zeros_like(weight)
    np.divide(spread, reached, out=stretch, where=reached > 0)
    stretch = np.where(np.abs(stretch - 1.0) < _ROUNDING, 1.0, np.sqrt(stretch))
    step = np.where(misses < hits, -scale, scale)
    return CellLaw(size=size, chance=chance, centre=mean, step=step, stretch=stretch)


def chance_gap(weight: Floats, mean: Floats, variance: Floats, squared_variance: Floats) -> Floats:
    """Return the expected distance between a cell's weighted positives and their mean; arguments as in `cell_law`."""
    law = cell_law(weight, mean, variance, squared_variance)
    return np.abs(law.step) * law.stretch * mean_absolute_deviation(law.size, law.chance)


def central_part(
    weight: Floats, mean: Floats, variance: Floats, squared_variance: Floats, *, level: float
) -> tuple[Floats, Floats]:
    """Return the smallest and largest rate of a cell that right scores would show; arguments as in `cell_law`.

    Each end leaves at most ``(1 - level) / 2`` outside, so that the part between holds at least `level`.
    """
    law = cell_law(weight, mean, variance, squared_variance)
    tail = (1.0 - level) / 2.0
    ends = [_quantile(share, law.size, law.chance) for share in (tail, 1.0 - tail)]
    rates = [(law.centre + law.step * (end - law.size * law.chance)) / weight for end in ends]
    low, high = np.minimum(*rates) - _ULPS, np.maximum(*rates) + _ULPS  # a rate on the very end lies inside
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _quantile(share: float, size: Floats, chance: Floats) -> Floats:
    """Return the smallest k with P(K <= k) >= share."""
    guess = np.ceil(special.bdtrik(share, size, chance))
    guess = np.where(np.isnan(guess), np.where(chance >= 1.0, size, 0.0), guess)
    below = np.maximum(guess - 1.0, 0.0)
    lower = (guess > 0) & (special.bdtr(below, size.astype(np.int64), chance) >= share)
    return np.clip(np.where(lower, below, guess), 0.0, size)
