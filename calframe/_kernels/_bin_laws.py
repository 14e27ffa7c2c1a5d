"""Laws of binned errors: three cumulants of what rows drawn with given rates would show.

In a bin with centre ``m``, rate ``q`` and ``N`` rows the difference of observed rate and centre is ``x + e``, with
``x = q - m`` and ``e`` of variance ``v = q (1 - q) / N``. Sums over bins of ``|x + e|`` and of ``(x + e)^2`` have
cumulants that are sums over bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calframe._kernels import _special as special
from calframe._kernels._binned import T, segment_sum
from calframe._typing import Bools, Floats, Ints

_SMALL = 10.0  # bins that expect fewer of either class are taken as Binomial where the normal law is not exact
_TINY = 1e-300  # stands for 0, which nothing is divided by
_FAR = 40.0  # standard deviations beyond which a normal law has no density
_ROOT = np.sqrt(2.0 / np.pi)


class Law(NamedTuple):
    """Mean, variance and third cumulant of an error that would be seen, and the error itself, per segment."""

    mean: Floats
    variance: Floats
    third: Floats
    value: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bins:
    """Bins with weight, segment after segment.

    Attributes
    ----------
    starts, sizes : ndarray of int64, shape (n_segments,)
        The first bin of each segment, and how many it has.
    share : ndarray
        What each bin counts; adds up to 1 in a segment.
    rate, centre : ndarray
        The rate seen, and what it is compared with.
    rows : ndarray
        Effective rows ``(sum w)^2 / sum w^2`` of each bin.
    total : ndarray of shape (n_segments,)
        Effective rows of the segment, of which the shares are a sample; infinite where the shares are fixed.
    up : ndarray of bool, optional
        Which rates move up where they leave their centre; by default each goes the way that is farther.
    """

    starts: Ints
    sizes: Ints
    share: Floats
    rate: Floats
    centre: Floats
    rows: Floats
    total: Floats
    up: Bools | None = None

    def sum(self, values: Floats) -> Floats:
        """Return the sum over the bins of each segment."""
        return segment_sum(values, self.starts)

    def spread(self, values: NDArray[T]) -> NDArray[T]:
        """Return the value of a bin's segment for each bin."""
        return np.repeat(values, self.sizes)

    def part(self, first: int, last: int) -> Self:
        """Return the segments from `first` up to, not including, `last`."""
        begin = int(self.starts[first])
        cut = slice(begin, begin + int(self.sizes[first:last].sum()))
        return type(self)(
            starts=self.starts[first:last] - begin,
            sizes=self.sizes[first:last],
            share=self.share[cut],
            rate=self.rate[cut],
            centre=self.centre[cut],
            rows=self.rows[cut],
            total=self.total[first:last],
            up=None if self.up is None else self.up[cut],
        )


def folded_law(bins: Bins, rate: Floats) -> Law:
    """Return the law of ``sum_b share_b |x_b + e_b|``, with normal `e`, or Binomial where a bin is small.

    References
    ----------
    Leone, F. C., Nelson, L. S. and Nottingham, R. B. (1961). The folded normal distribution. Technometrics 3,
    543-550. https://doi.org/10.1080/00401706.1961.10489974

    Examples
    --------
    A single row with score 0.8 and a rate as high is 0.2 off four times of five, else 0.8:

    >>> one = np.array([1.0])
    >>> first = np.array([0])
    >>> bins = Bins(starts=first, sizes=first + 1, share=one, rate=one, centre=0.8 * one, rows=one, total=one)
    >>> law = folded_law(bins, np.array([0.8]))
    >>> law.mean.round(6), law.variance.round(6), law.value
    (array([0.32]), array([0.0576]), array([0.]))
    """
    off = np.abs(rate - bins.centre)
    variance = rate * (1.0 - rate) / bins.rows
    first, third = _folded_normal(off, np.sqrt(variance))
    small = np.flatnonzero(bins.rows * np.minimum(bins.centre, 1.0 - bins.centre) < _SMALL)
    if len(small):
        first[small], third[small] = _folded_binomial(bins.rows[small], rate[small], bins.centre[small])
    second = off * off + variance
    value = bins.sum(bins.share * off)
    return Law(
        mean=bins.sum(bins.share * first),
        variance=bins.sum(bins.share**2 * np.maximum(second - first * first, 0.0)) + _of_shares(bins, off, value),
        third=bins.sum(bins.share**3 * (third - 3.0 * first * second + 2.0 * first**3)),
        value=value,
    )


def square_law(bins: Bins, rate: Floats) -> Law:
    """Return the law of ``sum_b share_b (x_b + e_b)^2``, with the exact cumulants of Binomial `e`.

    Examples
    --------
    Two rows of rate 1/2 have rate 0, 1/2 or 1, so the square is 1/4 or 0, each with chance 1/2:

    >>> one, half = np.array([1.0]), np.array([0.5])
    >>> first = np.array([0])
    >>> bins = Bins(starts=first, sizes=first + 1, share=one, rate=one, centre=half, rows=2 * one, total=one)
    >>> square_law(bins, half)[:3]
    (array([0.125]), array([0.015625]), array([0.]))
    """
    off = rate - bins.centre
    m2, m3, m4, m5, m6 = _central_moments(rate, bins.rows)
    value = bins.sum(bins.share * off * off)
    variance = m4 - m2 * m2 + 4.0 * off * (m3 + off * m2)
    third = (
        m6
        - 3.0 * m4 * m2
        + 2.0 * m2**3
        + 6.0 * off * (m5 - 2.0 * m2 * m3)
        + 12.0 * off**2 * (m4 - m2 * m2)
        + 8.0 * off**3 * m3
    )
    return Law(
        mean=value + bins.sum(bins.share * m2),
        variance=bins.sum(bins.share**2 * variance) + _of_shares(bins, off * off, value),
        third=bins.sum(bins.share**3 * third),
        value=value,
    )


def spread_law(bins: Bins, rate: Floats) -> Law:
    """Return the law of ``sum_b share_b (rate_b - mean)^2`` with the mean over the bins of the same drawn rates.

    It is a quadratic form in independent errors. Its mean and variance are exact for Binomial errors, the third
    cumulant is that for normal errors.

    Examples
    --------
    Two equal halves of one row each, of rate 1/2: rates differ with chance 1/2, and then the spread is 1/4:

    >>> ones = np.ones(2)
    >>> bins = Bins(
    ...     starts=np.array([0]), sizes=np.array([2]), share=ones / 2, rate=ones / 2, centre=ones / 2, rows=ones,
    ...     total=np.array([2.0]),
    ... )  # fmt: skip
    >>> spread_law(bins, ones / 2)[:2]
    (array([0.125]), array([0.015625]))
    """
    share, own = bins.share, 1.0 - bins.share
    off = rate - bins.spread(bins.sum(share * rate))
    m2, m3, m4, _, _ = _central_moments(rate, bins.rows)
    value = bins.sum(share * off * off)
    mixed, mixed_square = bins.sum(share**2 * m2), bins.sum(share**3 * m2**2)
    normal = 2.0 * (bins.sum(share**2 * m2**2) - 2.0 * mixed_square + mixed**2) + 4.0 * bins.sum(
        (share * off) ** 2 * m2
    )
    excess = bins.sum((share * own) ** 2 * (m4 - 3.0 * m2**2) + 4.0 * share**2 * own * off * m3)
    cubes = bins.sum(share**3 * m2**3 * (1.0 - 3.0 * share)) + 3.0 * mixed_square * mixed - mixed**3
    tilted = bins.sum(share**3 * (m2 * off) ** 2) - bins.sum(share**2 * m2 * off) ** 2
    return Law(
        mean=value + bins.sum(share * m2) - mixed,
        variance=np.maximum(normal + excess, 0.0) + _of_shares(bins, off * off, value),
        third=8.0 * cubes + 24.0 * tilted,
        value=value,
    )


def _of_shares(bins: Bins, values: Floats, mean: Floats) -> Floats:
    """Return the variance that comes of sampling the shares: that of the bin values, over the rows."""
    return np.maximum(bins.sum(bins.share * values * values) - mean * mean, 0.0) / bins.total


def _central_moments(rate: Floats, rows: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the second to sixth central moments of a rate observed on `rows` rows, from the Binomial's cumulants."""
    single = rate * (1.0 - rate)
    tilt = 1.0 - 2.0 * rate
    m2 = single / rows
    c3 = m2 * tilt / rows
    c4 = m2 * (1.0 - 6.0 * single) / rows**2
    c5 = m2 * tilt * (1.0 - 12.0 * single) / rows**3
    c6 = m2 * (1.0 - 30.0 * single + 120.0 * single**2) / rows**4
    m6 = c6 + 15.0 * c4 * m2 + 10.0 * c3**2 + 15.0 * m2**3
    return m2, c3, c4 + 3.0 * m2**2, c5 + 10.0 * c3 * m2, m6


def _folded_normal(off: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """Return the first and third absolute moments of a normal law with mean `off` and standard deviation `sd`."""
    scaled = off / np.maximum(sd, _TINY)
    density = _ROOT * sd * np.exp(-0.5 * np.minimum(scaled, _FAR) ** 2)
    inside = 1.0 - 2.0 * special.ndtr(-scaled)
    square, variance = off * off, sd * sd
    return density + off * inside, (square + 2.0 * variance) * density + off * (square + 3.0 * variance) * inside


def _folded_binomial(rows: Floats, rate: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Return the first and third absolute moments of a Binomial rate less the centre.

    The size is whole, and the spread of the rate is stretched to that of `rows` rows where those are not.
    """
    size = np.maximum(np.rint(rows), 1.0)
    stretch = np.sqrt(size / rows)
    first, third = _absolute_moments(size, rate, size * (rate - (rate - centre) / stretch))
    unit = stretch / size
    return unit * first, unit**3 * third


def _absolute_moments(size: Floats, chance: Floats, point: Floats) -> tuple[Floats, Floats]:
    """Return ``E|K - point|`` and ``E|K - point|^3`` of ``K ~ Binomial(size, chance)``.

    Both are moments over all K plus twice those over ``K <= point``, and the partial moments telescope, because
    ``(j - mean) P(j) = h(j - 1) - h(j)`` with ``h(j) = (size - j) chance P(j)``.
    """
    mean = size * chance
    variance = mean * (1.0 - chance)
    last = np.clip(np.floor(point), 0.0, size)
    some = point >= 0.0
    log = special.gammaln(size + 1.0) - special.gammaln(last + 1.0) - special.gammaln(size - last + 1.0)
    log += special.xlogy(last, chance) + special.xlog1py(size - last, -chance)
    below = np.where(last >= size, 1.0, special.betainc(np.maximum(size - last, _TINY), last + 1.0, 1.0 - chance))
    below = np.where(some, below, 0.0)
    edge = np.where(some, (size - last) * chance * np.exp(log), 0.0)
    part2 = variance * below - (1.0 - chance + last - mean) * edge
    part3 = (1.0 - chance) * (2.0 * part2 - (2.0 * mean - 1.0) * edge - mean * below) - (last - mean) ** 2 * edge
    off = point - mean
    first = -off + 2.0 * (off * below + edge)
    lower = off**3 * below + 3.0 * off**2 * edge + 3.0 * off * part2 - part3
    return first, variance * (1.0 - 2.0 * chance) - 3.0 * off * variance - off**3 + 2.0 * lower
