"""Multicalibration: the cumulative errors of many overlapping segments, and what chance makes the largest of them.

Segments are unions of *crossings*, which do not overlap; a *cell* is one crossing and one score bin. A *family* is a
set of segments that share no row, such as the values of one column: each crossing lies in one segment of a family at
most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import added, run_starts, running_sum
from calframe._kernels._corrections import adjusted
from calframe._kernels._null import cell_law
from calframe._kernels._ranked import ecce_range_pvalue
from calframe._testing._draws import lots
from calframe._testing._largest import ROUNDING, pvalue_of_largest
from calframe._testing._tails import upper_tail
from calframe._typing import Bools, Floats, Ints

SearchLaw: TypeAlias = Literal["resampling", "bound"]

MOST_DRAWS = 20_000_000  # labels of cells drawn in all, a few seconds; above it the stated bound stands in
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchCells:
    """Sums over the rows of each cell, cells in any order.

    Attributes
    ----------
    crossing, bin : ndarray of int64, shape (n_cells,)
        The crossing and the score bin of each cell.
    weight, label, score : ndarray
        Sums of w, of w y and of w s.
    variance, squared_variance : ndarray
        Sums of ``w s (1 - s)`` and of ``w^2 s (1 - s)``.
    """

    crossing: Ints
    bin: Ints
    weight: Floats
    label: Floats
    score: Floats
    variance: Floats
    squared_variance: Floats

    @property
    def skew(self) -> Floats:
        """Third central moment of the weighted positives of right scores, taken at the mean score of each cell."""
        some = self.weight > 0
        mean = np.divide(self.score, self.weight, out=np.full_like(self.score, 0.5), where=some)
        step = np.divide(self.squared_variance, self.variance, out=np.ones_like(self.score), where=self.variance > 0)
        moment: Floats = step * self.squared_variance * (1.0 - 2.0 * mean)
        return moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Cumulative errors of all segments, family after family.

    Attributes
    ----------
    error : ndarray of shape (n_segments,)
        Range of the cumulative differences of label and score along the scores, in units of its sigma; infinite where
        a certain score is wrong and no other score is uncertain, NaN without rows.
    pvalue : ndarray
        Of each segment by itself; NaN where it is not judged.
    pvalue_adjusted : ndarray
        The chance that calibrated scores show this error, or a larger one, in any of the segments judged.
    law : {"resampling", "bound"}
        Where the p-values come from.
    """

    error: Floats
    pvalue: Floats
    pvalue_adjusted: Floats
    law: SearchLaw


def search(
    cells: SearchCells, families: Sequence[Ints], judged: Bools, *, n_resamples: int, rng: np.random.Generator
) -> Search:
    """Return the cumulative error of each segment, and p-values that account for the search over all of them.

    Parameters
    ----------
    cells : SearchCells
        The cells.
    families : sequence of ndarray of int64, each of shape (n_crossings,)
        Per family the segment of each crossing, counted on over all families; -1 for a crossing that is in none.
    judged : ndarray of bool, shape (n_segments,)
        The segments looked at, by a rule that knows no label.
    n_resamples : int
        Draws of all labels.
    rng : numpy.random.Generator
        Their source.

    Notes
    -----
    The error of a segment is ``(max C - min C) / sigma``, with ``C_k`` the sum of ``w (y - s)`` up to score bin k,
    ``C_0 = 0``, and ``sigma^2 = sum w^2 s (1 - s)``: Kuiper's form of the cumulative differences, on the bins. Fine
    bins lose little of it and nothing of its validity, for the law is that of the same bins.

    *Resampling*: the labels of all cells are drawn at once from the scores themselves, one Binomial matched to mean and
    variance a cell, and added up to all segments, so that overlapping segments share their labels. A p-value is
    ``(1 + #{T* >= T}) / (1 + n_resamples)``; the adjusted one compares with the largest error of any segment in a draw
    (the single-step method of Westfall and Young).

    *Bound*: where that takes more than 20 million draws, the p-value is that of the range of Brownian motion, with its
    upper tail multiplied by what the skewness of few events adds to it (a Poisson law with the same first three
    moments), and the adjusted one is Holm's, which holds whatever the overlap. It errs to the safe side, by a factor
    of two or so where there are tens of events or of score bins.

    References
    ----------
    Westfall, P. H. and Young, S. S. (1993). Resampling-Based Multiple Testing. Wiley.

    Arrieta-Ibarra, I., Gujral, P., Tannen, J., Tygert, M. and Xu, C. (2022). Metrics of calibration for probabilistic
    predictions. Journal of Machine Learning Research 23(351). https://doi.org/10.48550/arXiv.2205.09680

    Hébert-Johnson, Ú., Kim, M. P., Reingold, O. and Rothblum, G. N. (2018). Multicalibration: calibration for the
    (computationally-identifiable) masses. ICML, PMLR 80, 1939-1948. https://proceedings.mlr.press/v80/hebert-johnson18a

    Examples
    --------
    One segment of 400 rows with score 0.5 and 240 positives: the sum of differences is 40, its sigma 10.

    >>> one, zero = np.array([400.0]), np.array([0])
    >>> cells = SearchCells(
    ...     crossing=zero,
    ...     bin=zero,
    ...     weight=one,
    ...     label=one * 0.6,
    ...     score=one / 2,
    ...     variance=one / 4,
    ...     squared_variance=one / 4,
    ... )
    >>> found = search(cells, [zero], np.array([True]), n_resamples=99, rng=np.random.default_rng(0))
    >>> found.error, found.pvalue
    (array([4.]), array([0.01]))
    """
    draws = len(cells.bin) * n_resamples * max(1, len(families) // 4)
    if 0 < draws <= MOST_DRAWS:
        return resampled_search(cells, families, judged, n_resamples=n_resamples, rng=rng)
    return search_bound(cells, families, judged)


def resampled_search(
    cells: SearchCells, families: Sequence[Ints], judged: Bools, *, n_resamples: int, rng: np.random.Generator
) -> Search:
    """Return the search with resampled p-values, whatever it takes; see `search`."""
    found = _errors(cells, families)
    looked = judged & ~np.isnan(found.error)
    own, together = _resampled(cells, families, found, looked, n_resamples=n_resamples, rng=rng)
    return Search(error=found.error, pvalue=own, pvalue_adjusted=together, law="resampling")


def search_bound(cells: SearchCells, families: Sequence[Ints], judged: Bools) -> Search:
    """Return the search with the p-values of a closed law, and Holm's bound for all of them; see `search`."""
    found = _errors(cells, families)
    looked = judged & ~np.isnan(found.error)
    own = np.where(looked, range_pvalue(found.error, found.sigma, found.moment), np.nan)
    return Search(error=found.error, pvalue=own, pvalue_adjusted=adjusted(own, "holm"), law="bound")


def range_pvalue(error: Floats, sigma: Floats, moment: Floats) -> Floats:
    """Return the chance of a range this large: Brownian motion's, with a tail that allows for the skewness of sums.

    Half of the tail is that of excursions to the side where the rarer outcome takes them. It is multiplied by how much
    more likely than a normal number a Poisson one is, scaled to the same variance and third moment, to lie so far out.

    Parameters
    ----------
    error, sigma : ndarray
        Range in units of its sigma, and that sigma.
    moment : ndarray
        Third central moment of the last sum.

    Examples
    --------
    Many rows, and ten expected positives among many rows:

    >>> error, sigma = np.array([4.0, 4.0]), np.array([1000.0, 10.0**0.5])
    >>> range_pvalue(error, sigma, np.array([0.0, 10.0])).round(5)
    array([0.00025, 0.00173])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.abs(moment) / sigma**3
        more = upper_tail(error, skewness) / np.maximum(special.ndtr(-error), _SMALLEST)
    pvalue: Floats = np.minimum(ecce_range_pvalue(error) * (1.0 + np.maximum(more, 1.0)) / 2.0, 1.0)
    return pvalue


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    """Cumulative errors of all segments in units of sigma, that sigma, and the third moment of the last sum."""

    error: Floats
    sigma: Floats
    moment: Floats


def _errors(cells: SearchCells, families: Sequence[Ints]) -> _Errors:
    used, place = np.unique(cells.bin, return_inverse=True)
    skew, difference, parts = cells.skew, cells.label - cells.score, []
    for segment in families:
        of_cell = segment[cells.crossing]
        kept = np.flatnonzero(of_cell >= 0)
        first = int(segment[segment >= 0].min())
        where, count = of_cell[kept] - first, int(segment.max()) - first + 1
        steps = _table(where * len(used) + place[kept], difference[kept], count, len(used))
        sigma = np.sqrt(added(where, cells.squared_variance[kept], count))
        error = np.where(added(where, cells.weight[kept], count) > 0, _in_sigma(steps, sigma), np.nan)
        parts.append((error, sigma, added(where, skew[kept], count)))
    error, sigma, moment = (np.concatenate(values) for values in zip(*parts, strict=True))
    return _Errors(error=error, sigma=sigma, moment=moment)


def _table(place: Ints, values: Floats, rows: int, columns: int) -> Floats:
    return added(place, values, rows * columns).reshape(rows, columns)


def _in_sigma(steps: Floats, sigma: Floats) -> Floats:
    """Return the range of running sums in units of sigma; without any variance it is 0 or infinite."""
    if not steps.shape[1]:
        return np.zeros(len(steps))
    size = _range(steps)
    certain = np.where(size > ROUNDING * np.maximum(np.abs(steps).max(axis=1), 1.0), np.inf, 0.0)
    return np.where(sigma > 0, size / np.where(sigma > 0, sigma, 1.0), certain)


def _range(steps: Floats) -> Floats:
    path = np.cumsum(steps, axis=1)
    found: Floats = np.maximum(path.max(axis=1), 0.0) - np.minimum(path.min(axis=1), 0.0)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Order:
    """The cells of one family in the order of segment and score: where sums of a bin, and of a segment, begin."""

    cells: Ints
    sums: Ints
    starts: Ints
    segments: Ints

    @classmethod
    def of(cls, segment: Ints, cells: SearchCells) -> _Order:
        of_cell = segment[cells.crossing]
        order = np.lexsort((cells.bin, of_cell))
        order = order[np.searchsorted(of_cell[order], 0) :]  # cells that are in no segment come first
        starts = np.flatnonzero(np.diff(of_cell[order], prepend=-1))
        sums = run_starts(cells.bin[order], starts)
        return cls(cells=order, sums=sums, starts=np.searchsorted(sums, starts), segments=of_cell[order][starts])

    def ranges(self, differences: Floats) -> Floats:
        """Return the range of each segment in each draw; draws in rows."""
        steps = np.add.reduceat(differences[:, self.cells], self.sums, axis=1)
        draws, width = steps.shape
        starts = (np.arange(draws)[:, None] * width + self.starts).ravel()
        path = running_sum(steps.ravel(), starts)
        top, bottom = np.maximum.reduceat(path, starts), np.minimum.reduceat(path, starts)
        return (np.maximum(top, 0.0) - np.minimum(bottom, 0.0)).reshape(draws, -1)


def _resampled(
    cells: SearchCells,
    families: Sequence[Ints],
    found: _Errors,
    looked: Bools,
    *,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return the p-value of each segment by itself, and that of the largest error of all."""
    orders = [_Order.of(segment, cells) for segment in families]
    error, unit = found.error, np.where(found.sigma > 0, found.sigma, np.inf)
    reached, largest = np.zeros(len(error)), np.zeros(n_resamples)
    limit = error - ROUNDING
    done = 0
    for differences in _draws(cells, n_resamples, rng):
        rows = slice(done, done + len(differences))
        for order in orders:
            scaled = order.ranges(differences) / unit[order.segments]
            reached[order.segments] += (scaled >= limit[order.segments]).sum(axis=0)
            seen = np.where(looked[order.segments], scaled, 0.0)
            largest[rows] = np.maximum(largest[rows], seen.max(axis=1, initial=0.0))
        done += len(differences)
    certain = np.isinf(error)
    own = np.where(certain, 0.0, (1.0 + reached) / (1.0 + n_resamples))
    together = np.where(certain, 0.0, pvalue_of_largest(error, largest))
    return np.where(looked, own, np.nan), np.where(looked, together, np.nan)


def _draws(cells: SearchCells, count: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Give draws of the differences of all cells when the scores are right, some at a time."""
    law = cell_law(cells.weight, cells.score, cells.variance, cells.squared_variance)
    size, spread = law.size.astype(np.int64), law.step * law.stretch
    for many in lots(len(size), count):
        yield (rng.binomial(size, law.chance, size=(many, len(size))) - law.size * law.chance) * spread
