"""Proper losses as sums of parts that are never negative: a divergence of the scores, and an entropy of the rates.

The difference of two mean losses loses its digits where the scores are nearly right, so each part is summed from its
own small terms instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._tally import Tally
from calframe._typing import Floats

_LEAST_CHANGE = -1.0 + 2.0**-53  # a rate that vanishes against its score has (almost) no labels to weigh a logarithm
_LEAST_SHARE = 2.0**-53  # what rounding has made 0 of, where there is weight
_NEAR_ZERO = 1e-290  # 1 divided by anything below might overflow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreParts:
    """The parts of the Brier score and of the log loss by equal score, one value a segment; all are at least 0.

    Attributes
    ----------
    calibration_loss, refinement_loss : ndarray of shape (n_segments,)
        The Brier score is their sum.
    calibration_loss_log, refinement_loss_log : ndarray of shape (n_segments,)
        The log loss is their sum. The calibration loss is infinite where the log loss is: where a score of exactly
        0 or 1, or an infinite logit, contradicts a label.
    """

    calibration_loss: Floats
    refinement_loss: Floats
    calibration_loss_log: Floats
    refinement_loss_log: Floats


def loss_parts_by_score(tally: Tally, *, is_logit: bool = False) -> ScoreParts:
    """Split the Brier score and the log loss by the rate at each distinct score.

    With ``r_s`` the rate of the rows with score s, ``calibration_loss = sum w (s - r_s)^2 / sum w`` and
    ``refinement_loss = sum w r_s (1 - r_s) / sum w``; for the log loss the mean Kullback-Leibler divergence
    ``KL(r_s || s)`` and the mean entropy ``H(r_s)``. Where every row has a score of its own, nothing is left to
    refinement: this split needs tied scores, that of `corp` does not.

    Parameters
    ----------
    tally : Tally
        Distinct scores, in [0, 1] or logits.
    is_logit : bool
        Whether they are logits; the log loss then comes from these.

    References
    ----------
    DeGroot, M. H. and Fienberg, S. E. (1983). The comparison and evaluation of forecasters. The Statistician 32,
    12-22. https://doi.org/10.2307/2987588

    Examples
    --------
    Of four rows with score 0.5 three are positive, so the Brier score is 0.25:

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.5]), np.array([4.0]), np.array([3.0]))
    >>> parts = loss_parts_by_score(tally)
    >>> parts.calibration_loss, parts.refinement_loss
    (array([0.0625]), array([0.1875]))
    """
    total = tally.total(tally.weight)
    misses = tally.negative
    rate = tally.positive / tally.weight
    disorder = special.entr(rate) + special.entr(misses / tally.weight)
    score, rest, logit = chances_of(tally, is_logit=is_logit)
    divergence = log_excess(tally.positive, misses, rate, score, rest, logit)
    return ScoreParts(
        calibration_loss=tally.total(tally.weight * (score - rate) ** 2) / total,
        refinement_loss=tally.total(rate * misses) / total,
        calibration_loss_log=np.maximum(tally.total(divergence) / total, 0.0),
        refinement_loss_log=tally.total(tally.weight * disorder) / total,
    )


def chances_of(tally: Tally, *, is_logit: bool) -> tuple[Floats, Floats, Floats | None]:
    """Return the scores of a tally as probabilities, 1 minus these, and the logits behind them, where it holds such.

    Examples
    --------
    >>> score, rest, _ = chances_of(Tally.of_counts(np.array([0]), *np.array([[40.0], [1], [1]])), is_logit=True)
    >>> score, rest
    (array([1.]), array([4.24835426e-18]))
    """
    if is_logit:
        return special.expit(tally.score), special.expit(-tally.score), tally.score
    return tally.score, 1.0 - tally.score, None


def brier_excess(weight: Floats, positive: Floats, rate: Floats, score: Floats) -> Floats:
    """Return ``sum (s - y)^2 - sum (r - y)^2`` over the rows of each cell, as ``(s - r)(w (s + r) - 2 k)``.

    It is exactly 0 where rate and score are equal, and its rounding error shrinks with their distance.
    """
    return (score - rate) * (weight * (score + rate) - 2.0 * positive)


def log_excess(
    positive: Floats, negative: Floats, rate: Floats, score: Floats, rest: Floats, logit: Floats | None = None
) -> Floats:
    """Return how much larger the log loss of the scores is than that of the rates, summed over each cell.

    It is ``k ln(r / s) + (w - k) ln((1 - r) / (1 - s))``, each logarithm taken of 1 plus the relative change; infinite
    where a score of 0 has positives or a score of 1 negatives, and never NaN. Of logits those are the infinite ones.

    Parameters
    ----------
    positive, negative : ndarray
        The weight of positives and of negatives in each cell.
    rate : ndarray
        The rate to compare with; 0 only where there are no positives, 1 (but for rounding) where no negatives.
    score, rest : ndarray
        The score and 1 minus the score.
    logit : ndarray, optional
        The logit of the score, where that is what is known: it tells how near to 0 or 1 a score is that rounds to it.
    """
    change = rate - score
    if logit is not None:
        np.copyto(change, rest - (1.0 - rate), where=(score > 0.5) & (rate > 0.5))
    gain = _weighed_growth(positive, score, change, logit)
    np.negative(change, out=change)
    gain += _weighed_growth(negative, rest, change, None if logit is None else -logit)
    return gain


def _weighed_growth(weight: Floats, base: Floats, change: Floats, logit: Floats | None) -> Floats:
    """Return ``w ln((base + change) / base)``; 0 without weight, else infinite where the base is 0."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        growth = change / base
        np.maximum(growth, _LEAST_CHANGE, out=growth)
        np.log1p(growth, out=growth)
        growth *= weight
    near = np.flatnonzero(base < _NEAR_ZERO)
    with np.errstate(divide="ignore"):
        logs = np.log(base[near]) if logit is None else special.log_expit(logit[near])
    growth[near] = _weighed_growth_near_zero(weight[near], base[near] + change[near], logs)
    return growth


def _weighed_growth_near_zero(weight: Floats, share: Floats, logs: Floats) -> Floats:
    """Return the same where the base is 0, or so small that the ratio may overflow, from its logarithm."""
    growth = np.zeros_like(logs)
    some = weight > 0
    share = np.where(share > 0, share, _LEAST_SHARE)
    growth[some] = weight[some] * (np.log(share[some]) - logs[some])
    return growth
