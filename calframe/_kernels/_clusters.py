"""Rows in clusters that share their luck: by how much more a sum over them scatters than one over single rows.

The variance of a sum is that of the totals of clusters (Liang and Zeger, 1986), each made up for what it takes off the
whole, as where clusters are left out one at a time (the jackknife: Efron and Tibshirani, 1993, chapter 11). What it is
more than that of independent rows, the design effect, divides the effective rows of an interval (Korn and Graubard,
1998). With few clusters the variance itself is uncertain, which the quantile of Student's t in the place of the normal
one allows for; clusters of unequal size count as Kish's effective number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import added
from calframe._typing import Bools, Floats, Ints

_ONE = 1.0 + 1e-9  # effective number of a single cluster, with room for rounding
TINY = 1e-300  # a quotient of nothing and nothing is 0
LEAST_LEFT = 1e-9  # of the whole without the only cluster
_NO_VARIANCE = 1e-12  # what rounding leaves of the variance of equal values, in the squares that it is made of


def few_clusters(count: Floats, tail: float | Floats) -> Floats:
    """Return the squared ratio of the quantiles of Student's t and of the normal law; infinite for one cluster.

    Examples
    --------
    >>> few_clusters(np.array([1.0, 11.0, 1e6]), 0.025).round(3)
    array([  inf, 1.292, 1.   ])
    """
    several = count > _ONE
    freedom = np.where(several, np.maximum(count - 1.0, 0.1), 1.0)
    ratio = special.stdtrit(freedom, 1.0 - tail) / special.ndtri(1.0 - tail)
    return np.where(several, ratio**2, np.inf)


def less_part(part: Floats | float, whole: Floats | float) -> Floats:
    """Return what is left of the whole without a part, as a share."""
    left: Floats = np.maximum(1.0 - part / np.maximum(whole, TINY), LEAST_LEFT)
    return left


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """The clusters of units, such as segments or bins: a pair is a unit and a cluster in it.

    Attributes
    ----------
    unit : ndarray of int64, shape (n_pairs,)
        The unit of each pair.
    units : int
        The number of units.
    alone : ndarray of bool, shape (n_pairs,)
        Pairs of a unit and its rows without a cluster, each of which is one of its own.
    rows, weight, squared : ndarray of float64, shape (n_pairs,)
        The number of independent rows if there were no clusters, their weight, and the sum of squared weights as
        variances need them.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. https://doi.org/10.1093/biomet/73.1.13

    Efron, B. and Tibshirani, R. J. (1993). An introduction to the bootstrap. Chapman & Hall.

    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201.

    Kish, L. (1965). Survey Sampling. Wiley.
    """

    unit: Ints
    units: int
    alone: Bools
    rows: Floats
    weight: Floats
    squared: Floats

    @classmethod
    def of_rows(
        cls, unit: Ints, cluster: Ints, weight: Floats, squared: Floats, *, units: int, counts_rows: bool
    ) -> tuple[Self, Ints]:
        """Return the pairs of single rows, and the pair of each row; cluster 0 is none."""
        width = int(cluster.max(initial=0)) + 1
        found, of_row = np.unique(unit * width + cluster, return_inverse=True)
        count = weight if counts_rows else np.ones(len(weight))
        rows, total, squares = (added(of_row, values, len(found)) for values in (count, weight, squared))
        pairs = cls(
            unit=found // width, units=units, alone=found % width == 0, rows=rows, weight=total, squared=squares
        )
        return pairs, of_row

    def total(self, values: Floats) -> Floats:
        """Return the sum of each unit."""
        return added(self.unit, values, self.units)

    @property
    def number(self) -> Floats:
        """The number of clusters of each unit."""
        return self.total(np.where(self.alone, self.rows, 1.0))

    def effective(self, weight: Floats | None = None, squared: Floats | None = None) -> Floats:
        """Return Kish's effective number of clusters of each unit, ``(sum w)^2 / sum w_c^2``; of some rows' weights."""
        weight, squared = self.weight if weight is None else weight, self.squared if squared is None else squared
        squares = self.total(np.where(self.alone, squared, weight**2))
        return self.total(weight) ** 2 / np.maximum(squares, TINY)

    def alike(self) -> Floats:
        """Return the design effect of a mean if all rows of a cluster were alike."""
        squares = self.total(np.where(self.alone, self.squared, self.weight**2))
        return np.maximum(squares / np.maximum(self.total(self.squared), TINY), 1.0)

    def effect(self, parts: Floats, squares: Floats, scale: Floats) -> Floats:
        """Return the design effect of an estimate, at least 1; infinite for a single cluster.

        Parameters
        ----------
        parts : ndarray of shape (n_pairs,)
            What the rows of each pair add to the estimate; those of a unit add up to 0.
        squares : ndarray of shape (n_pairs,)
            The sum of squares of what its single rows add.
        scale : ndarray of shape (n_units,)
            The size of the terms that `squares` is a difference of. Where rounding is all that is left of them, nothing
            varies, nothing is known of what clusters share, and it may be all.

        Examples
        --------
        Four rows of 1, 1, -1 and -1, in two clusters of equal ones, and each in one of its own: left out, one of two
        takes half of the whole with it, one of four a quarter.

        >>> values, ones = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
        >>> for cluster in (np.array([1, 1, 2, 2]), np.arange(1, 5)):
        ...     unit = np.zeros(4, dtype=np.int64)
        ...     pairs, place = Pairs.of_rows(unit, cluster, ones, ones, units=1, counts_rows=False)
        ...     sums = np.bincount(place, values), np.bincount(place, values**2)
        ...     print(pairs.effect(*sums, np.ones(1)).round(4))
        [4.]
        [1.3333]
        """
        taken = np.where(self.alone, self.squared / self.weight, self.weight)
        left = less_part(taken, self.total(self.weight)[self.unit])
        number, single = self.number, self.total(squares)
        several = number > 1.0
        clustered = self.total(np.where(self.alone, squares, parts**2) / left**2)
        clustered *= np.where(several, 1.0 - 1.0 / np.maximum(number, 1.0), 1.0)
        varies = single > _NO_VARIANCE * scale
        found = np.where(varies, np.maximum(clustered / np.where(varies, single, 1.0), 1.0), self.alike())
        return np.where(several, found, np.inf)
