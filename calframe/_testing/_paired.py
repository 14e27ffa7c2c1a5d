"""Two models on the same rows: paired means, exchanged and resampled rows, intervals of differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import effective_rows, ratio, starts_of
from calframe._typing import Bools, Floats, Ints

FEW_UNITS = 20.0  # fewer effective units that differ leave the mean of their differences far from normal
FEW_ALIKE = 50.0  # the same where all differences are of one size, so that their sum has few values
_CHUNK = 4_000_000  # numbers drawn at a time
_ONE = 1.0 + 1e-9  # effective number of a single unit, with room for rounding
_ROUNDING = 1e-9  # of a difference: by so much sums in another order may differ, relatively


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """The rows of some segments, and what of them is independent: the rows, or clusters of them.

    Attributes
    ----------
    segment : ndarray of int64, shape (n_rows,)
        The segment of each row, ascending; every segment has rows.
    weight : ndarray of float64, shape (n_rows,)
        The weight of each row.
    of_row : ndarray of int64, shape (n_rows,)
        The unit of each row.
    starts : ndarray of int64, shape (n_segments,)
        The first unit of each segment.
    copies : ndarray of float64, shape (n_units,)
        How many independent units of the same values each of them stands for: its weight where weights count rows.
    """

    segment: Ints
    weight: Floats
    of_row: Ints
    starts: Ints
    copies: Floats

    @classmethod
    def of_rows(cls, segment: Ints, weight: Floats, *, cluster: Ints | None = None, counts_rows: bool = False) -> Self:
        """Find the units of rows in segment order; rows of one cluster in one segment are one unit.

        Units stand in the order of their first rows.
        """
        segments = int(segment.max(initial=-1)) + 1
        if cluster is None:
            of_row, of_unit = np.arange(len(segment)), segment
            copies = weight if counts_rows else np.ones(len(segment))
        else:
            clusters = int(cluster.max(initial=0)) + 1
            key = segment * clusters + cluster
            found, first, number = np.unique(key, return_index=True, return_inverse=True)
            place = np.argsort(first)
            of_row = np.argsort(place)[number]
            of_unit, copies = found[place] // clusters, np.ones(len(found))
        starts = starts_of(np.bincount(of_unit, minlength=segments))
        return cls(segment=segment, weight=weight, of_row=of_row, starts=starts, copies=copies)

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len(self.starts)

    @property
    def sizes(self) -> Ints:
        """The number of units of each segment."""
        return np.diff(np.append(self.starts, len(self.copies)))

    def only(self, keep: Bools) -> Self:
        """Return the rows and units of some of the segments, which are renumbered."""
        rows, kept = keep[self.segment], np.repeat(keep, self.sizes)
        return type(self)(
            segment=(np.cumsum(keep) - 1)[self.segment[rows]],
            weight=self.weight[rows],
            of_row=(np.cumsum(kept) - 1)[self.of_row[rows]],
            starts=starts_of(self.sizes[keep]),
            copies=self.copies[kept],
        )

    def total(self, values: Floats) -> Floats:
        """Return the sum of row values over each segment."""
        return np.bincount(self.segment, values, self.segments).astype(np.float64)

    def mean(self, values: Floats) -> Floats:
        """Return the weighted mean of each segment."""
        return ratio(self.total(self.weight * values), self.total(self.weight))

    def sums(self, values: Floats) -> Floats:
        """Return the sum of row values over each unit."""
        return np.bincount(self.of_row, values, len(self.copies)).astype(np.float64)

    def squares(self, values: Floats) -> Floats:
        """Return the sum over the units of each segment of their squared sums."""
        return np.add.reduceat(self.sums(values) ** 2 / self.copies, self.starts)

    def effective(self, chosen: Bools | None = None) -> Floats:
        """Return Kish's effective number of units: so many of equal weight would tell as much.

        References
        ----------
        Kish, L. (1965). Survey Sampling. Wiley.
        """
        weight = self.weight if chosen is None else self.weight * chosen
        return effective_rows(self.total(weight), self.squares(weight))

    def telling(self, values: Floats) -> Floats:
        """Return the effective number of units that carry the sum of row values: ``(sum u^2)^2 / sum u^4``."""
        each = self.sums(values) / self.copies
        size = np.maximum.reduceat(np.abs(each), self.starts)
        each = each / np.repeat(np.where(size > 0, size, 1.0), self.sizes)  # or fourth powers of small ones are 0
        second, fourth = (np.add.reduceat(self.copies * each**power, self.starts) for power in (2, 4))
        return np.nan_to_num(ratio(second**2, fourth))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paired:
    """A difference that is a sum over rows, per segment.

    Attributes
    ----------
    value, error, rows : ndarray
        The difference, its standard error, and the effective number of units behind it.
    low, high : ndarray
        Student's interval; NaN with a single unit.
    pvalue : ndarray
        Of Student's two-sided test that there is none; NaN with a single unit and where nothing varies.
    """

    value: Floats
    error: Floats
    rows: Floats
    low: Floats
    high: Floats
    pvalue: Floats


def paired(units: Units, value: Floats, parts: Floats, *, level: float) -> Paired:
    """Return a difference with its interval, by Student's t.

    Its variance is that of the sums of units, ``sum_u (sum_{i in u} h_i)^2 * n / (n - 1)`` with ``h_i`` the part of row
    i, ``w_i (d_i - d) / sum w`` of a mean, and ``n`` the effective number of units; ``n - 1`` are the degrees of
    freedom.

    Parameters
    ----------
    units : Units
        The rows.
    value : ndarray of shape (n_segments,)
        The difference.
    parts : ndarray of shape (n_rows,)
        What rows add to it; those of a segment add up to 0.
    level : float
        Confidence level in (0, 1).

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. https://doi.org/10.1093/biomet/73.1.13

    Examples
    --------
    Differences 1, 2, 3, 4: mean 2.5, standard error sqrt(5 / 3 / 4), and t = 3.873 with 3 degrees of freedom.

    >>> units = Units.of_rows(np.zeros(4, dtype=np.int64), np.ones(4))
    >>> found = paired(units, np.array([2.5]), (np.array([1.0, 2.0, 3.0, 4.0]) - 2.5) / 4, level=0.95)
    >>> found.error.round(4), found.pvalue.round(4)
    (array([0.6455]), array([0.0305]))
    """
    rows = units.effective()
    several = np.where(rows > _ONE, rows, np.nan)
    error = np.sqrt(units.squares(parts) * several / (several - 1.0))
    low, high, pvalue = student(value, error, several - 1.0, level=level)
    return Paired(value=value, error=error, rows=rows, low=low, high=high, pvalue=pvalue)


def student(value: Floats, error: Floats, freedom: Floats, *, level: float) -> tuple[Floats, Floats, Floats]:
    """Return Student's interval of an estimate, and the p-value that it is 0; infinite freedom is the normal law."""
    with np.errstate(divide="ignore", invalid="ignore"):
        half = _student_quantile(freedom, 0.5 + level / 2.0) * error
        size = -np.abs(value) / error
        tail = np.where(np.isinf(freedom), special.ndtr(size), special.stdtr(freedom, size))
    return value - half, value + half, np.minimum(2.0 * tail, 1.0)


def _student_quantile(freedom: Floats, share: float) -> Floats:
    found: Floats = np.where(np.isinf(freedom), special.ndtri(share), special.stdtrit(freedom, share))
    return found


def matched_interval(found: Paired, *, level: float) -> tuple[Floats, Floats]:
    """Return the interval of a mean of differences that are -1, 0 or 1, with a row of half each way added twice.

    That many rows that agree do not show that all do: Wald's interval would have no width then.

    References
    ----------
    Agresti, A. and Min, Y. (2005). Simple improved confidence intervals for comparing matched proportions. Statistics
    in Medicine 24, 729-740. https://doi.org/10.1002/sim.1781

    Examples
    --------
    Fifty rows that all agree:

    >>> units = Units.of_rows(np.zeros(50, dtype=np.int64), np.ones(50))
    >>> low, high = matched_interval(paired(units, np.zeros(1), np.zeros(50), level=0.95), level=0.95)
    >>> low.round(4), high.round(4)
    (array([-0.0377]), array([0.0377]))
    """
    rows, mean = found.rows, found.value
    second = found.error**2 * (rows - 1.0) + mean**2
    many = rows + 2.0
    centre, square = mean * rows / many, (second * rows + 1.0) / many
    half = special.ndtri(0.5 + level / 2.0) * np.sqrt((square - centre**2) / many)
    return np.maximum(centre - half, -1.0), np.minimum(centre + half, 1.0)


def exchanged(units: Units, resamples: int, rng: np.random.Generator, *, wide: int) -> Iterator[Floats]:
    """Give, in chunks of rows, the share of each unit whose two scores change places in each resample.

    Where the models are exchangeable each unit is as likely to have its scores the other way round, whatever else it
    holds; so an exchange leaves the law of any difference of them as it is.

    Parameters
    ----------
    units : Units
        The units.
    resamples : int
        How many draws.
    rng : numpy.random.Generator
        Where they come from.
    wide : int
        How many numbers there will be of each draw, which bounds the chunk.

    References
    ----------
    Fisher, R. A. (1935). The Design of Experiments. Oliver and Boyd.
    """
    single = bool((units.copies == 1.0).all())
    for count in chunks(resamples, max(wide, len(units.copies))):
        shape = (count, len(units.copies))
        if single:
            yield rng.integers(0, 2, shape, dtype=np.int8).astype(np.float64, order="F")  # it is read by columns
        else:
            yield rng.binomial(units.copies.astype(np.int64), 0.5, shape) / units.copies


def resampled(units: Units, resamples: int, rng: np.random.Generator, *, wide: int) -> Iterator[Floats]:
    """Give, in chunks of rows, how often each unit is drawn with replacement from those of its segment.

    Units that stand for several copies are drawn by Poisson numbers, their total not held; a segment of which
    none is drawn stays as it is.
    """
    single = bool((units.copies == 1.0).all())
    first, sizes = np.repeat(units.starts, units.sizes), np.repeat(units.sizes, units.sizes)
    many = len(units.copies)
    for count in chunks(resamples, max(wide, many)):
        if single:
            drawn = first + (rng.random((count, many)) * sizes).astype(np.int64)
            places = drawn + many * np.arange(count)[:, None]
            yield np.bincount(places.ravel(), minlength=count * many).reshape(count, many).astype(np.float64, order="F")
        else:
            times = rng.poisson(units.copies, (count, many)) / units.copies
            none = np.repeat(np.add.reduceat(times, units.starts, axis=1) == 0.0, units.sizes, axis=1)
            yield np.where(none, 1.0, times)


def chunks(resamples: int, wide: int) -> Iterator[int]:
    """Give how many resamples to draw at a time, each of so many numbers."""
    most = max(1, _CHUNK // max(wide, 1))
    for first in range(0, resamples, most):
        yield min(most, resamples - first)


class Exceedances:
    """How often draws were at least as far from 0 as what was seen; a draw without a value counts as one of them."""

    def __init__(self, seen: Floats) -> None:
        """Start the count for one value a segment."""
        self._seen = seen
        self._least = np.abs(seen) * (1.0 - _ROUNDING)
        self._count = np.zeros(len(seen))
        self._draws = 0

    def add(self, drawn: Floats) -> None:
        """Count draws, one row a draw."""
        self._count += (~(np.abs(drawn) < self._least)).sum(axis=0)
        self._draws += len(drawn)

    @property
    def pvalue(self) -> Floats:
        """The p-value of each segment, (1 + exceedances) / (1 + draws); NaN where nothing was seen."""
        found: Floats = np.where(np.isnan(self._seen), np.nan, (1.0 + self._count) / (1.0 + self._draws))
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate:
    """An estimate and its interval, one a segment."""

    value: Floats
    low: Floats
    high: Floats

    def negative(self) -> Self:
        """Return the same of the opposite number."""
        return type(self)(value=-self.value, low=-self.high, high=-self.low)


def difference_of_intervals(
    first: Estimate, second: Estimate, correlation: Floats, *, bound: float = -np.inf
) -> tuple[Floats, Floats]:
    """Return the interval of second minus first from the intervals of each.

    The variance near either limit is recovered from the distance of the estimate to that limit:
    ``L = d - sqrt((t2 - l2)^2 + (u1 - t1)^2 - 2 r (t2 - l2) (u1 - t1))``, and U alike. So intervals that are not
    symmetric, those of errors that are never negative among them, keep their shape.

    Where an interval reaches the bound of what can be, the estimate is noise above it: that distance does not even out
    with that of the other, and is added in full (``r = -1``); nor does a positive correlation say anything there.

    Parameters
    ----------
    first, second : Estimate
        What is subtracted, and what from.
    correlation : ndarray
        Of the two estimates, r.
    bound : float
        The least value there can be.

    References
    ----------
    Zou, G. Y. (2007). Toward using confidence intervals to compare correlations. Psychological Methods 12, 399-413.
    https://doi.org/10.1037/1082-989X.12.4.399

    Examples
    --------
    Independent estimates with normal intervals: half widths 3 and 4 give 5.

    >>> first = Estimate(value=np.array([0.0]), low=np.array([-3.0]), high=np.array([3.0]))
    >>> second = Estimate(value=np.array([10.0]), low=np.array([6.0]), high=np.array([14.0]))
    >>> difference_of_intervals(first, second, np.array([0.0]))
    (array([5.]), array([15.]))
    """
    difference = second.value - first.value
    at_bound = [np.isfinite(bound) & (each.low <= bound) for each in (first, second)]
    correlation = np.where(at_bound[0] | at_bound[1], np.minimum(correlation, 0.0), correlation)
    for_low, for_high = (np.where(one, -1.0, correlation) for one in (at_bound[1], at_bound[0]))
    low = _reach(second.value - second.low, first.high - first.value, for_low)
    high = _reach(second.high - second.value, first.value - first.low, for_high)
    return difference - low, difference + high


def _reach(one: Floats, other: Floats, correlation: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.sqrt(np.maximum(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))


def correlation_of(draws: tuple[Floats, Floats]) -> Floats:
    """Return the correlation of two values over draws, one row a draw; 0 where either does not vary."""
    there = ~(np.isnan(draws[0]) | np.isnan(draws[1]))
    count = np.maximum(there.sum(axis=0), 1)
    off = []
    for values in draws:
        known = np.where(there, values, 0.0)
        off.append(np.where(there, known - known.sum(axis=0) / count, 0.0))
    products = (off[0] * off[1]).sum(axis=0)
    sizes = np.sqrt((off[0] ** 2).sum(axis=0) * (off[1] ** 2).sum(axis=0))
    return np.clip(np.nan_to_num(ratio(products, sizes)), -1.0, 1.0)
