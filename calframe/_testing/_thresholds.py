"""Abstaining: what the rows from each confidence up say, and thresholds that hold for rows not seen yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import changes, effective_rows, power_of_two, ranges, running_sum
from calframe._kernels._cluster_sums import ClusterSums
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

_ROUNDING = 1e-9  # 0.14 of 50 points are 7, whatever floating point says
_EQUAL_WEIGHTS = 1e-9  # relative: what rounding leaves between weights that are the same


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answered:
    """What is answered from each distinct confidence up; the most confident cell of a segment stands first.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first cell of each segment.
    confidence : ndarray of float64, shape (n_cells,)
        Distinct confidences, descending within a segment.
    rows, weight, right, squared : ndarray of float64
        Sums over the cell and all more confident ones: rows, weight, weight of right predictions, squared weights.
    """

    starts: Ints
    confidence: Floats
    rows: Floats
    weight: Floats
    right: Floats
    squared: Floats

    @classmethod
    def of_tally(cls, tally: Tally) -> Self:
        """Add up a tally of confidences, whose positives are right predictions, from the most confident cell down.

        Examples
        --------
        >>> tally = Tally.of_counts(np.array([0]), np.array([0.6, 0.9]), np.array([3.0, 2.0]), np.array([1.0, 2.0]))
        >>> found = Answered.of_tally(tally)
        >>> found.confidence, found.rows, found.right
        (array([0.9, 0.6]), array([2., 5.]), array([2., 3.]))
        """
        ends = tally.starts + tally.sizes
        order = np.repeat(tally.starts + ends - 1, tally.sizes) - np.arange(len(tally.score))
        sums = tally.sums(lambda values: _running(tally, values[order]))
        return cls(
            starts=tally.starts,
            confidence=tally.score[order],
            rows=sums["rows"],
            weight=sums["weight"],
            right=np.minimum(sums["positive"], sums["weight"]),
            squared=sums["squared"],
        )

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.starts)

    @property
    def stops(self) -> Ints:
        """The cell after the last one of each segment."""
        return np.append(self.starts[1:], len(self.confidence))

    @property
    def segment(self) -> Ints:
        """The segment of each cell."""
        return np.repeat(np.arange(len(self)), self.stops - self.starts)

    @property
    def coverage(self) -> Floats:
        """The share of the weight that is answered."""
        return self.weight / self.weight[self.stops - 1][self.segment]

    @property
    def accuracy(self) -> Floats:
        """The share of it that is right."""
        return self.right / self.weight

    @property
    def effective(self) -> Floats:
        """The rows answered, or as many equally weighted ones as would tell as much."""
        return effective_rows(self.weight, self.squared)

    def spoken(self, points: int) -> Ints:
        """Return cells at about evenly spaced coverage, the first and the last of each segment among them.

        A segment of so many cells or fewer keeps them all. Otherwise of the cells whose coverage, times `points`,
        rounds up to the same number, the last one is kept.
        """
        segment = self.segment
        step = np.ceil(self.coverage * points - _ROUNDING)
        first = changes(segment)
        last = np.append(first[1:], True)
        ends_step = np.append(changes(step)[1:], True)
        few = (self.stops - self.starts <= points)[segment]
        return np.flatnonzero(few | first | last | ends_step)

    def counted(self, *, frequency: bool) -> tuple[Floats, Floats, Bools]:
        """Return numbers of independent rows and of right ones, and in which segments they are known.

        They are where rows count the same: without weights, with weights that are counts, and with equal weights.
        """
        if frequency:
            return self.weight, self.right, np.ones(len(self), dtype=np.bool_)
        last = self.stops - 1
        rows, weight, squared = self.rows[last], self.weight[last], self.squared[last]
        known = rows * squared - weight * weight <= _EQUAL_WEIGHTS * weight * weight
        one = (weight / rows)[self.segment]
        return self.rows, np.rint(self.right / one), known


def _running(tally: Tally, values: Floats) -> Floats:
    unit = tally.spread(power_of_two(tally.total(values)))
    return running_sum(values / unit, tally.starts) * unit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Thresholds:
    """The thresholds chosen for a target accuracy, one a segment.

    Attributes
    ----------
    cell : ndarray of int64
        The least confident cell that is answered; -1 where no threshold is shown to hold.
    low : ndarray of float64
        The one-sided lower bound of Clopper and Pearson for the accuracy from that cell up, at the error that its
        test was allowed: the target or more. NaN without a threshold.
    starts : ndarray of int64
        Number of places at which the search began; 0 where not even a segment without an error would do.
    """

    cell: Ints
    low: Floats
    starts: Ints


def certified(
    answered: Answered,
    rows: Floats,
    right: Floats,
    *,
    target: float,
    level: float,
    clusters: ClusterSums | None = None,
) -> Thresholds:
    """Return the lowest threshold from which up the accuracy is shown to be at least `target`.

    Each threshold has an exact binomial test of the hypothesis that the accuracy from it up is below the target, with
    p-value ``P(Binomial(rows, target) >= right)``. They are tested from the most confident down, as a fixed sequence
    with fallback: the error allowed, ``alpha = 1 - level``, is parted equally over J starting places, at the n, n/2,
    n/4, ... most confident rows (those few rows aside that could show nothing). A test is allowed what its place brings
    plus what the test before it was allowed, if that one rejected; if not, this is lost until the next starting place.
    The lowest threshold that is rejected is chosen. The chance that any true hypothesis is rejected, and so that the
    accuracy from the chosen threshold up is below the target, is at most alpha. That is exact where rows of equal
    confidence are no more often right than those above them, since then the rows above the first threshold that
    fails are a plain sample; where they are, it holds but for how the sample's confidences happened to fall.

    Of rows in clusters as many count as `least_favourable` leaves, and the tail is that of the beta distribution, which
    is the binomial one of whole numbers (Korn and Graubard, 1998). Starting places are looked for where so many rows
    that are all right, with their clusters counted as single rows, are rejected.

    Parameters
    ----------
    answered : Answered
        The cells, which tie rows of equal confidence together.
    rows, right : ndarray of float64, shape (n_cells,)
        Whole numbers of independent rows, and of right ones, from each cell up.
    target : float
        The accuracy wanted, between 0 and 1.
    level : float
        The confidence level.
    clusters : ClusterSums, optional
        What clusters of rows share, in each cell.

    References
    ----------
    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data. Survey Methodology 24, 193-201.

    Angelopoulos, A. N., Bates, S., Candès, E. J., Jordan, M. I. and Lei, L. (2021). Learn then test: calibrating
    predictive algorithms to achieve risk control. https://doi.org/10.48550/arXiv.2110.01052

    Wiens, B. L. (2003). A fixed sequence Bonferroni procedure for testing multiple endpoints. Pharmaceutical
    Statistics 2, 211-215. https://doi.org/10.1002/pst.64

    Examples
    --------
    Fifty right of fifty show 90 percent, ``0.9^50 = 0.005``; with 30 right of the next fifty the whole does not.

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.6, 0.9]), np.array([50.0, 50.0]), np.array([30.0, 50.0]))
    >>> found = Answered.of_tally(tally)
    >>> chosen = certified(found, found.rows, found.right, target=0.9, level=0.95)
    >>> found.confidence[chosen.cell], chosen.low.round(3)
    (array([0.9]), array([0.929]))
    """
    alpha = 1.0 - level
    total = rows[answered.stops - 1]
    starts = _starting_places(answered, rows, clusters, target, alpha)
    effect = 1.0 if clusters is None else least_favourable(clusters, answered.accuracy, target)
    tested, hits = rows / effect, right / effect
    share = alpha / np.maximum(starts, 1)
    cell, spent = np.full(len(answered), -1), np.zeros(len(answered))
    allowed = np.zeros(len(answered))
    for place in range(int(starts.max(initial=0)) - 1, -1, -1):
        active = place < starts
        allowed = np.where(active, allowed + share, 0.0)
        first = _reached(answered, rows, np.ceil(total / 2.0**place))
        after = answered.stops if place == 0 else _reached(answered, rows, np.ceil(total / 2.0 ** (place - 1)))
        stop = np.where(active, after, first)
        failed = _first_failure(tested, hits, first, stop, allowed, target=target)
        passed = failed > first
        cell, spent = np.where(passed, failed - 1, cell), np.where(passed, allowed, spent)
        allowed = np.where(failed == stop, allowed, 0.0)
    chosen = cell >= 0
    at = np.where(chosen, cell, 0)
    low = special.betaincinv(np.maximum(hits[at], 0.5), tested[at] - hits[at] + 1.0, np.where(chosen, spent, 0.5))
    return Thresholds(cell=cell, low=np.where(chosen, low, np.nan), starts=starts)


def least_favourable(clusters: ClusterSums, accuracy: Floats, target: float) -> Floats:
    """Return the design effect under the law at which it is hardest to tell that the accuracy is below a target.

    Rows that have all been right so far, or nearly so, do not show how their clusters scatter: a cluster that is wholly
    wrong may be rare, and still be what takes the accuracy below the target. So the hypothesis is that of the clusters
    seen, of which the share ``1 - t / a`` is wholly wrong, which takes the accuracy a seen down to the target t. The
    sum of squares of totals is ``(t / a) sum (R_c - t n_c)^2 + (1 - t / a) sum (t n_c)^2`` then, with R_c of n_c rows
    of a cluster right, and ``t (1 - t) sum n_c`` for independent rows. At an accuracy of t that is the design effect of
    the rows seen; without an error it counts a cluster as a row; and of clusters of copies it is the number of copies.

    Examples
    --------
    Forty rows in ten clusters of four: all right, four wrong in one cluster, and four wrong in four clusters.

    >>> from calframe._kernels._cluster_sums import Events
    >>> cluster, rows, cell = np.repeat(np.arange(10), 4), np.arange(40), np.zeros(40, dtype=np.int64)
    >>> for wrong in ([], [0, 1, 2, 3], [0, 4, 8, 12]):
    ...     events = Events.of_rows(1.0 - np.isin(rows, wrong))
    ...     found = ClusterSums.running(cluster, None, cell, events, np.array([0]), 1)
    ...     print(least_favourable(found, np.array([1 - len(wrong) / 40]), 0.8).round(3))
    [4.]
    [4.]
    [2.333]
    """
    above = accuracy > target
    kept = target / np.where(above, accuracy, 1.0)
    scatter = kept * clusters.clusters.about(target) + (1.0 - kept) * target**2 * clusters.clusters.weight
    alone = np.where(clusters.rows.weight > 0.0, clusters.rows.weight, np.inf) * target * (1.0 - target)
    return np.where(above, np.maximum(scatter / alone, 1.0), clusters.most)


def rows_needed(target: float, level: float) -> int:
    """Return how many rows, all of them right, show an accuracy of at least `target`.

    Examples
    --------
    >>> rows_needed(0.9, 0.95)  # 0.9^28 = 0.052, 0.9^29 = 0.047
    29
    """
    return int(np.ceil(np.log(1.0 - level) / np.log(target)))


def _starting_places(
    answered: Answered, rows: Floats, clusters: ClusterSums | None, target: float, alpha: float
) -> Ints:
    """Return how often a segment can be halved so that rows that are all right are still rejected."""
    total = rows[answered.stops - 1]
    alike = None if clusters is None else clusters.most
    places = np.zeros(len(total), dtype=np.int64)
    for place in range(int(np.log2(max(total.max(initial=1.0), 1.0))) + 1):
        rank = np.ceil(total / 2.0**place)
        count = rank if alike is None else np.ceil(rank / alike[_reached(answered, rows, rank)])
        able = count * np.log(target) <= np.log(alpha / (place + 1))
        places += able & (places == place)
    return places


def _reached(answered: Answered, rows: Floats, rank: Floats) -> Ints:
    """Return the first cell of each segment from which up there are so many rows."""
    short = np.add.reduceat(rows < rank[answered.segment], answered.starts, dtype=np.int64)
    return answered.starts + short


def _first_failure(rows: Floats, right: Floats, first: Ints, stop: Ints, allowed: Floats, *, target: float) -> Ints:
    """Return the first cell from `first` on whose test does not reject, or `stop`."""
    sizes = stop - first
    cells, owner = ranges(first, sizes), np.repeat(np.arange(len(first)), sizes)
    bad = ~_rejects(rows[cells], right[cells], allowed[owner], target=target)
    cells, owner = cells[bad], owner[bad]
    failed = stop.copy()
    if len(cells):
        new = changes(owner)
        failed[owner[new]] = cells[new]
    return failed


def _rejects(rows: Floats, right: Floats, allowed: Floats, *, target: float) -> Bools:
    """Tell where ``P(Binomial(rows, target) >= right)`` is at most what is allowed.

    Most cells need no exact tail: it is at most Chernoff's bound, and at least 1/2 up to the median, which is not
    below the mean rounded down.
    """
    rate = right / rows
    divergence = special.rel_entr(rate, target) + special.rel_entr(1.0 - rate, 1.0 - target)
    rejected: Bools = (rate > target) & (rows * divergence >= -np.log(allowed))
    close = ~rejected & ((right > np.floor(rows * target)) | (allowed >= 0.5)) & (right > 0)
    hits, misses = right[close], rows[close] - right[close]
    rejected[close] = special.betainc(hits, misses + 1.0, target) <= allowed[close]
    return rejected
