"""Decisions at a threshold: what they cost, what they are worth, and what better scores would save."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from calframe._kernels._binned import effective_rows, run_starts, segment_sum
from calframe._kernels._cluster_sums import ClusterSums, ends_left
from calframe._kernels._intervals import loss_interval
from calframe._kernels._isotonic import blocks
from calframe._kernels._paired_interval import paired_interval
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats

_LARGEST_POWER = 1023  # of two: 2^1024 is no number


class Costs(NamedTuple):
    """What acting costs where the truth is negative, and not acting where it is positive; not both 0."""

    fp: float
    fn: float

    @property
    def threshold(self) -> float:
        """The score from which acting is expected to cost no more than not acting, ``fp / (fp + fn)``.

        A right score p makes acting cost ``(1 - p) fp`` and not acting ``p fn``.

        References
        ----------
        Elkan, C. (2001). The foundations of cost-sensitive learning. IJCAI 17, 973-978.

        Examples
        --------
        >>> Costs(1.0, 4.0).threshold
        0.2
        """
        _, costs = self.parted()
        return costs.fp / (costs.fp + costs.fn)

    def parted(self) -> tuple[float, Costs]:
        """Return a power of two and the costs in its units, at most 1: their squares and sums are numbers.

        Examples
        --------
        >>> Costs(1.0, 4.0).parted()
        (8.0, Costs(fp=0.125, fn=0.5))
        """
        _, power = math.frexp(max(self))
        power = min(power, _LARGEST_POWER)
        return math.ldexp(1.0, power), Costs(math.ldexp(self.fp, -power), math.ldexp(self.fn, -power))

    def of(self, false_positive: Floats, false_negative: Floats) -> Floats:
        """Return what so many wrong decisions cost."""
        return self.fp * false_positive + self.fn * false_negative


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Acted:
    """Whom a rule acts on: those with a score of at least a threshold. Arrays of shape (n_segments, n_thresholds).

    Attributes
    ----------
    tp, fp, fn, tn : ndarray of float64
        Weight of the positives and negatives acted on, and of the positives and negatives left alone.
    squared_fp, squared_fn, squared : ndarray of float64
        Sums of squared weights of the two kinds of wrong decisions, and of all rows.
    rows : ndarray of float64
        Rows acted on.
    """

    tp: Floats
    fp: Floats
    fn: Floats
    tn: Floats
    squared_fp: Floats
    squared_fn: Floats
    squared: Floats
    rows: Floats

    @classmethod
    def at(cls, tally: Tally, thresholds: Floats) -> Self:
        """Count a tally of scores at thresholds in ascending order.

        Examples
        --------
        >>> tally = Tally.of_counts(np.array([0]), np.array([0.2, 0.6]), np.array([5.0, 3.0]), np.array([1.0, 2.0]))
        >>> found = Acted.at(tally, np.array([0.0, 0.6, 0.7]))
        >>> found.tp, found.fn
        (array([[3., 2., 0.]]), array([[0., 1., 3.]]))
        """
        place = np.searchsorted(thresholds, tally.score, side="right")  # so many thresholds are reached
        first = run_starts(place, tally.starts)
        at = tally.segment[first], place[first]
        shape = len(tally), len(thresholds) + 1

        def parted(values: Floats) -> tuple[Floats, Floats]:
            held = np.zeros(shape)
            held[at] = segment_sum(values, first)
            above = np.cumsum(held[:, :0:-1], axis=1)[:, ::-1]
            return above, np.cumsum(held[:, :-1], axis=1)

        tp, fn = parted(tally.positive)
        fp, tn = parted(tally.negative)
        squared_fp, _ = parted(tally.squared_negative)
        _, squared_fn = parted(tally.squared_positive)
        return cls(
            tp=tp,
            fp=fp,
            fn=fn,
            tn=tn,
            squared_fp=squared_fp,
            squared_fn=squared_fn,
            squared=np.broadcast_to(tally.total(tally.squared)[:, None], tp.shape),
            rows=parted(tally.rows)[0],
        )

    def only(self, place: int) -> Self:
        """Return one of the thresholds alone: arrays of shape (n_segments,)."""
        return type(self)(**{field.name: getattr(self, field.name)[:, place] for field in fields(self)})

    @property
    def weight(self) -> Floats:
        """The weight of all rows."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def rate(self) -> Floats:
        """The rate of positives."""
        return (self.tp + self.fn) / self.weight

    @property
    def share(self) -> Floats:
        """The share of the weight that is acted on."""
        return (self.tp + self.fp) / self.weight


def expected_cost(
    acted: Acted, costs: Costs, *, level: float, clusters: ClusterSums | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return the mean cost of a row, ``(FP fp + FN fn) / n``, and the ends of its interval.

    The interval is Wilson's, carried over to costs of several sizes: see `loss_interval`. Its wrong prediction is the
    dearest one that the rule can make of these rows.

    Parameters
    ----------
    acted : Acted
        Whom the rule acts on.
    costs : Costs
        The costs.
    level : float
        Confidence level.
    clusters : ClusterSums, optional
        What clusters of rows share of the costs.

    Examples
    --------
    Two of ten acted on in vain at a cost of 1, one missed at a cost of 3:

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.9]), np.array([5.0, 5.0]), np.array([1.0, 3.0]))
    >>> cost, low, high = expected_cost(Acted.at(tally, np.array([0.5])), Costs(1.0, 3.0), level=0.95)
    >>> cost, low.round(3), high.round(3)
    (array([[0.5]]), array([[0.153]]), array([[1.37]]))
    """
    weight = acted.weight
    mean = costs.of(acted.fp, acted.fn) / weight
    second = (costs.fp**2 * acted.fp + costs.fn**2 * acted.fn) / weight
    dearest = np.maximum(
        np.where(acted.tp + acted.fp > 0.0, costs.fp, 0.0), np.where(acted.fn + acted.tn > 0.0, costs.fn, 0.0)
    )
    rows = effective_rows(weight, acted.squared)
    interval = partial(loss_interval, mean, second, right=np.zeros_like(mean), wrong=dearest)
    low, high = ends_left(interval, rows, clusters, level=level)
    return mean, low, np.minimum(high, np.maximum(dearest, mean))


class Saved(NamedTuple):
    """What a rule saves a row against the cheaper of acting on all and on none, and the ends of its interval."""

    saved: Floats
    low: Floats
    high: Floats


def saved_by_acting(
    acted: Acted, costs: Costs, *, level: float, clusters: tuple[ClusterSums, ClusterSums] | None = None
) -> Saved:
    """Return what a rule saves a row against the cheaper of acting on all and on none.

    A row that is left alone costs as much less than acting on it as a false positive does, if it is negative, and more
    by a false negative, if it is positive; a row that is acted on makes the same differences, the other way round, to
    acting on none. Each mean has the interval of paired differences, see `paired_interval`.

    Which of both is cheaper is read off the same rows, so the interval is about the smaller of two unknown savings. It
    is above a number only if both are, so the smaller of the two lower ends errs no more often than one of them. It is
    below a number if one of them is, which may be either, so the upper ends have half of the error each.

    Parameters
    ----------
    acted : Acted
        Whom the rule acts on, at one threshold.
    costs : Costs
        The costs.
    level : float
        Confidence level.
    clusters : tuple of ClusterSums, optional
        What clusters of rows share of the differences to acting on all, and to acting on none: see `savings`.

    Examples
    --------
    Acting on five of ten, one of them in vain at a cost of 1, and one missed at a cost of 3: 4, on all 5, on none 15.

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.9]), np.array([5.0, 5.0]), np.array([1.0, 4.0]))
    >>> found = saved_by_acting(Acted.at(tally, np.array([0.5])).only(0), Costs(1.0, 3.0), level=0.9)
    >>> [end.round(3).tolist() for end in found]
    [[0.1], [-0.895], [0.565]]
    """
    weight = acted.weight
    rows = effective_rows(weight, acted.squared)
    found, lows, highs = [], [], []
    sides = ((acted.tn, acted.fn, costs.fp, _missed(costs)), (acted.tp, acted.fp, costs.fn, costs.fp))
    for place, (won, lost, gain, loss) in enumerate(sides):
        interval = partial(paired_interval, won / weight, lost / weight, gain=gain, loss=loss)
        shared = None if clusters is None else clusters[place]
        found.append(gain * (won / weight) - loss * (lost / weight))
        lows.append(ends_left(interval, rows, shared, level=level)[0])
        highs.append(ends_left(interval, rows, shared, level=(1.0 + level) / 2.0)[1])
    return Saved(np.minimum(*found), np.minimum(*lows), np.minimum(*highs))


def savings(label: Floats, costs: Costs) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return what rows cost less than if all, and than if none are acted on: each if acted on, and if left alone."""
    negative, nothing = 1.0 - label, np.zeros_like(label)
    over_all = nothing, costs.fp * negative - _missed(costs) * label
    return over_all, (costs.fn * label - costs.fp * negative, nothing)


def _missed(costs: Costs) -> float:
    """Return what a positive that is left alone costs; from a threshold of 0 on nobody is."""
    return costs.fn if costs.fp > 0.0 else 0.0


def net_benefit(acted: Acted, thresholds: Floats) -> Floats:
    """Return the net benefit of acting from each threshold t on, ``TP / n - FP / n * t / (1 - t)``.

    It counts true positives per row, less the false ones at what a threshold says they are worth. Acting on none has 0;
    at a threshold of 1 a false positive makes it -inf.

    Parameters
    ----------
    acted : Acted
        Whom each rule acts on.
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds, in [0, 1].

    References
    ----------
    Vickers, A. J. and Elkin, E. B. (2006). Decision curve analysis: a novel method for evaluating prediction models.
    Medical Decision Making 26, 565-574. https://doi.org/10.1177/0272989X06295361

    Examples
    --------
    Three of ten are acted on rightly and one in vain, which at 0.2 counts a quarter:

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.1, 0.9]), np.array([6.0, 4.0]), np.array([0.0, 3.0]))
    >>> at = np.array([0.2])
    >>> net_benefit(Acted.at(tally, at), at)
    array([[0.275]])
    """
    return _benefit(acted.tp, acted.fp, acted.weight, thresholds)


def net_benefit_of_all(acted: Acted, thresholds: Floats) -> Floats:
    """Return the net benefit of acting on everyone, as of `net_benefit`."""
    return _benefit(acted.tp + acted.fn, acted.fp + acted.tn, acted.weight, thresholds)


def _benefit(tp: Floats, fp: Floats, weight: Floats, thresholds: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        harm = np.where(fp > 0.0, fp * (thresholds / (1.0 - thresholds)), 0.0)
    return (tp - harm) / weight


class Hindsight(NamedTuple):
    """The best threshold of each segment on the rows seen (NaN where acting on none is best), and its mean cost."""

    threshold: Floats
    cost: Floats


def best_in_hindsight(tally: Tally, costs: Costs) -> Hindsight:
    """Return the threshold that would have cost least on these very rows, and what it would have cost.

    It acts where the isotonic fit of the rate is at least the cost-derived threshold: pooling adjacent violators
    minimises every cost of this kind over all non-decreasing rules at once. So this is also the cost of acting at the
    cost-derived threshold on isotonic recalibrated scores. Equal scores stay together; of thresholds of the same cost
    it is the lowest.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    costs : Costs
        The costs.

    References
    ----------
    Brümmer, N. and du Preez, J. (2013). The PAV algorithm optimizes binary proper scoring rules.
    https://doi.org/10.48550/arXiv.1304.2331

    Examples
    --------
    At equal costs it pays to act from 0.7 on, where two of three are positive; 0.4 has one of three.

    >>> score, positive = np.array([0.2, 0.4, 0.7]), np.array([0.0, 1.0, 2.0])
    >>> best_in_hindsight(Tally.of_counts(np.array([0]), score, np.full(3, 3.0), positive), Costs(1.0, 1.0))
    Hindsight(threshold=array([0.7]), cost=array([0.22222222]))
    """
    fit = blocks(tally)
    act = _pays(fit.positive, fit.weight - fit.positive, costs)
    cost = fit.total(_cheapest(fit.positive, fit.weight - fit.positive, costs)) / fit.total(fit.weight)
    reached = np.where(act, fit.low_score, np.inf)
    lowest = np.minimum.reduceat(reached, fit.starts)
    return Hindsight(threshold=np.where(np.isfinite(lowest), lowest, np.nan), cost=cost)


def regret_by_score(tally: Tally, costs: Costs, threshold: float) -> Floats:
    """Return how much cheaper the best decision at each distinct score would have been, per row.

    The sum over scores of the cost of what the threshold decides there less that of the cheaper decision, on these very
    rows. It has no curve to fit and no bins: where equal scores have many rows, it is what scores that equal their
    rates would save. Where each score has a row of its own it is the whole cost, for hindsight makes no error then.

    Parameters
    ----------
    tally : Tally
        Distinct scores.
    costs : Costs
        The costs.
    threshold : float
        Scores of at least this are acted on.

    Examples
    --------
    At 0.3 four of ten are positive: at equal costs leaving them alone is right, at 0.5 acting is wrong by 2 of 20.

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.3, 0.5]), np.full(2, 10.0), np.array([4.0, 4.0]))
    >>> regret_by_score(tally, Costs(1.0, 1.0), 0.5)
    array([0.1])
    """
    acting, waiting = costs.fp * tally.negative, costs.fn * tally.positive
    decided = np.where(tally.score >= threshold, acting, waiting)
    return tally.total(decided - np.minimum(acting, waiting)) / tally.total(tally.weight)


def _pays(positive: Floats, negative: Floats, costs: Costs) -> Bools:
    """Tell where acting costs no more than not acting."""
    pays: Bools = costs.fp * np.maximum(negative, 0.0) <= costs.fn * positive
    return pays


def _cheapest(positive: Floats, negative: Floats, costs: Costs) -> Floats:
    return np.minimum(costs.fp * np.maximum(negative, 0.0), costs.fn * positive)
