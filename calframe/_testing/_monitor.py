"""An anytime-valid monitor of calibration: bets against the scores, whose wealth may be looked at whenever one likes.

If scores are right, a label is 1 with the probability s that its score says, whatever went before. A bet on another
probability q multiplies its stake by ``q / s`` if the label is 1 and by ``(1 - q) / (1 - s)`` if it is 0: by 1 on
average. A mean over bets, the e-value, is then a wealth that nobody can expect to gain, and by Ville's inequality the
chance that it ever reaches ``1 / alpha`` is at most alpha, however often it is looked at.

Half of the stake is spread over bets on all scores (shifts and slopes of the logit), half over bins of the score, each
with bets on a shift within it. All are fixed beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calframe._kernels._binned import segment_max, segment_sum, sizes_of
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

# Shifts of the logit; pairs of u and d for bets on the logit (1 + u) z + d; edges of the bins, denser near 0 and 1.
SHIFTS = (-1.6, -0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8, 1.6)
SLOPES = (
    *((-0.5, 0.0), (-0.3, 0.0), (-0.3, -0.3), (-0.3, 0.3), (-0.15, 0.0)),
    *((0.2, 0.0), (0.4, 0.0), (0.4, -0.3), (0.4, 0.3), (0.8, 0.0)),
)
EDGES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
RUN_LENGTH = 10_000.0  # batches between false alarms of the e-detector, on average at least
_ROUNDING = 1e-9  # what sums of weights are off by, relatively
_PADDED = 2_000_000  # steps of time worked on at a time, those that fill up shorter segments included


class Wealth(NamedTuple):
    """The wealth of the bets after each batch.

    Attributes
    ----------
    log_e_value : ndarray
        Natural logarithm of the e-value, infinite once a label was impossible by its score.
    log_detector : ndarray
        That of the e-detector, which begins anew with every batch: ``R_t = (1 + R_{t-1}) L_t`` for each bet, L_t being
        what the batch multiplies its stake by. Without a change it takes at least c batches on average to reach c.
    """

    log_e_value: Floats
    log_detector: Floats


def wealth(batches: Tally, starts: Ints, *, scale: float = 1.0, clip: float | None = None) -> Wealth:
    """Return the wealth after each batch of rows.

    Parameters
    ----------
    batches : Tally
        Its segments are the batches of each segment, in order of time, segment after segment.
    starts : ndarray of int64, shape (n_segments,)
        The first batch of each segment.
    scale : float, default 1
        What weights are multiplied by. A factor raised to a power of at most 1 still gains nothing on average
        (Jensen), so that importance weights keep the guarantee if the largest becomes 1, and it is known beforehand.
    clip : float, optional
        How far from 0 and 1 the scores are kept that bets are made against. Where that moves a score, the factor of a
        bet is divided by what it is on average by the score itself, if that is more than 1: it still gains nothing.

    References
    ----------
    Ville, J. (1939). Étude critique de la notion de collectif. Gauthier-Villars.
    Ramdas, A., Grünwald, P., Vovk, V. and Shafer, G. (2023). Game-theoretic statistics and safe anytime-valid
    inference. Statistical Science 38, 576-601. https://doi.org/10.1214/23-STS894
    Shin, J., Ramdas, A. and Rinaldo, A. (2024). E-detectors: a nonparametric framework for sequential change detection.
    The New England Journal of Statistics in Data Science 2, 229-260. https://doi.org/10.51387/23-NEJSDS51

    Examples
    --------
    One row a batch, score 0.5 and label 1 each time: bets on more positives gain.

    >>> four = Tally.of_counts(np.arange(4), np.full(4, 0.5), np.ones(4), np.ones(4))
    >>> wealth(four, np.array([0])).log_e_value.round(3)
    array([0.   , 0.04 , 0.114, 0.228])
    """
    sizes = sizes_of(starts, len(batches))
    out = Wealth(np.full(len(batches), -np.inf), np.full(len(batches), -np.inf))
    if not len(batches):
        return out
    blocks = list(_blocks(starts, sizes))
    score = batches.score if clip is None else np.clip(batches.score, clip, 1.0 - clip)
    for stake, factors in _bets(batches, score, scale):
        for place in blocks:
            _add_bet(out, stake, factors, place)
    for log in out:
        log[refuted(batches, starts, clip=clip)] = np.inf
    return out


def refuted(batches: Tally, starts: Ints, *, clip: float | None = None) -> Bools:
    """Tell after which batches of a segment a label has been seen that its score said could not be.

    Examples
    --------
    >>> two = Tally.of_counts(np.arange(2), np.array([0.0, 0.5]), np.ones(2), np.array([1.0, 0.0]))
    >>> refuted(two, np.array([0])).tolist(), refuted(two, np.array([0]), clip=1e-6).tolist()
    ([True, True], [False, False])
    """
    score = batches.score if clip is None else np.clip(batches.score, clip, 1.0 - clip)
    wrong = np.where(score <= 0.0, batches.positive, 0.0)
    wrong = np.where(score >= 1.0, batches.negative, wrong)
    broken = np.cumsum(segment_max(wrong / batches.weight, batches.starts) > _ROUNDING)
    found: Bools = broken > np.repeat(np.append(0, broken)[starts], sizes_of(starts, len(batches)))
    return found


def running_max(values: Floats, starts: Ints) -> Floats:
    """Return the largest value of its segment up to each one.

    Examples
    --------
    >>> running_max(np.array([2.0, 1.0, 0.0, 3.0]), np.array([0, 2]))
    array([2., 2., 0., 3.])
    """
    out = np.empty_like(values)
    for place in _blocks(starts, sizes_of(starts, len(values))):
        inside = place >= 0
        out[place[inside]] = np.maximum.accumulate(np.where(inside, values[place], -np.inf), axis=1)[inside]
    return out


def _add_bet(out: Wealth, stake: float, factors: Floats, place: Ints) -> None:
    """Add the wealth of one bet to segments of about the same length."""
    inside = place >= 0
    steps = np.where(inside, factors[place], 0.0)
    run = np.cumsum(steps, axis=1)
    begun = np.logaddexp.accumulate(steps - run, axis=1)  # the sum over all beginnings of what came before them
    here = place[inside]
    for log, found in zip(out, (run, run + begun), strict=True):
        log[here] = np.logaddexp(log[here], found[inside] + np.log(stake))


def _blocks(starts: Ints, sizes: Ints) -> Iterator[Ints]:
    """Give segments of about the same length together: the places of their batches, one row each, filled up by -1."""
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    first = 0
    while first < len(order):
        last = int(np.searchsorted(ordered, 2 * ordered[first], side="right"))
        last = max(min(last, first + _PADDED // int(ordered[last - 1])), first + 1)
        these = order[first:last]
        step = np.arange(int(sizes[these].max()))
        yield np.where(step < sizes[these, None], starts[these, None] + step, -1)
        first = last


def _bets(batches: Tally, score: Floats, scale: float) -> Iterator[tuple[float, Floats]]:
    """Give the stake of each bet against `score`, and the logarithm of what each batch multiplies it by."""
    inside, moved = (score > 0.0) & (score < 1.0), score != batches.score
    bins = np.searchsorted(EDGES, score, side="right")
    score = np.where(inside, score, 0.5)
    positive, negative = (np.where(inside, rows * scale, 0.0) for rows in (batches.positive, batches.negative))
    rows = positive + negative
    stake = 0.5 / (len(SHIFTS) + len(SLOPES))
    filled = np.flatnonzero(np.bincount(bins, minlength=len(EDGES) + 1))
    in_bin = 0.5 / (len(EDGES) + 1)
    for shift in SHIFTS:
        growth = np.log1p(score * np.expm1(shift))
        gained = positive * shift - rows * (growth + _gain(batches.score, shift - growth, -growth, moved))
        yield stake, segment_sum(gained, batches.starts)
        for number in filled:
            yield in_bin / len(SHIFTS), segment_sum(np.where(bins == number, gained, 0.0), batches.starts)
    if len(filled) <= len(EDGES):
        yield in_bin * (len(EDGES) + 1 - len(filled)), np.zeros(len(batches))
    logit = np.log(score) - np.log1p(-score)
    for slope, shift in SLOPES:
        bet = (1.0 + slope) * logit + shift
        hit, miss = -np.logaddexp(0.0, -bet) - np.log(score), -np.logaddexp(0.0, bet) - np.log1p(-score)
        gained = positive * hit + negative * miss - rows * _gain(batches.score, hit, miss, moved)
        yield stake, segment_sum(gained, batches.starts)


def _gain(chance: Floats, hit: Floats, miss: Floats, moved: Bools) -> Floats:
    """Return the logarithm of what bets on `moved` scores gain on average; 0 where they lose, or are fair."""
    out = np.zeros_like(chance)
    if moved.any():
        chance, hit, miss = chance[moved], hit[moved], miss[moved]
        out[moved] = np.maximum(np.log(chance * np.exp(hit) + (1.0 - chance) * np.exp(miss)), 0.0)
    return out
