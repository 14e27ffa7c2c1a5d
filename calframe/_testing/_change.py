"""What a change of gap and Brier score is made of: other scores, another class prior, and the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import ratio
from calframe._kernels._logistic import citl_fit, logit
from calframe._kernels._tally import Tally
from calframe._testing._distances import bin_sums, bin_weights
from calframe._typing import Floats, Ints

_NOTHING = 1e-9  # a rest below it is that of the search for the shift of the odds


class Parts(NamedTuple):
    """A measure of reference and sample, and the parts of its change; one value a sample.

    ``current - reference = score_mix + class_prior + rest``.
    """

    reference: Floats
    current: Floats
    score_mix: Floats
    class_prior: Floats
    rest: Floats


class Curves(NamedTuple):
    """The calibration curves of references: their mean score and rate in each bin, arrays of references by bins."""

    mean: Floats
    rate: Floats

    @classmethod
    def of_tally(cls, tally: Tally, bins: Ints, count: int) -> Curves:
        """Take a reference's curve over bins; a bin without rows has the mean score and rate of all of them."""
        weight = bin_weights(tally, bins, count)
        score = bin_sums(tally, tally.weight * tally.score, bins, count)
        label = bin_sums(tally, tally.positive, bins, count)
        total = weight.sum(axis=1)[:, None]
        empty = weight == 0.0
        mean = np.where(empty, score.sum(axis=1)[:, None] / total, ratio(score, weight))
        rate = np.where(empty, label.sum(axis=1)[:, None] / total, ratio(label, weight))
        return cls(mean=np.clip(mean, 0.0, 1.0), rate=np.clip(rate, 0.0, 1.0))

    def at(self, score: Floats, reference: Ints, bins: Ints) -> Floats:
        """Return the curve at scores: within a bin they are scaled towards 0 or 1 so that their mean is the rate.

        With mean score m and rate r of the bin it is ``s r / m`` where ``r <= m``, else ``1 - (1 - s)(1 - r) / (1 -
        m)``: between 0 and 1, rising, and the score itself where the bin is right.
        """
        mean, rate = self.mean[reference, bins], self.rate[reference, bins]
        down = ratio(rate, np.where(mean > 0.0, mean, 1.0))
        up = ratio(1.0 - rate, np.where(mean < 1.0, 1.0 - mean, 1.0))
        return np.clip(np.where(rate <= mean, score * down, 1.0 - (1.0 - score) * up), 0.0, 1.0)


def change_parts(
    current: Tally, current_bins: Ints, reference: Tally, reference_bins: Ints, of: Ints, count: int
) -> tuple[Parts, Parts]:
    """Return the parts of the change of gap and Brier score of each sample against its reference.

    Let c be the curve of the reference (`Curves.at`), M the mean score, R the rate, and for any curve q the expected
    measures on some scores be ``G(q) = M - mean q`` and ``B(q) = mean(s^2 + q (1 - 2 s))``. With 0 for the
    reference's scores and 1 for the sample's:

    - score mix: ``G1(c) - G0(c)`` and ``B1(c) - B0(c)``, other scores under the same curve;
    - class prior: ``G1(p) - G1(c)`` and ``B1(p) - B1(c)``, with p the curve moved by odds, ``logit p = logit c + b``,
      until its mean over the sample's scores is the rate of the sample; a rate of 0 or 1 makes it 0 or 1;
    - rest: what remains of the change, which is another shape of the curve.

    G0(c) is the gap of the reference itself, as c has its rate in every bin. As p has the rate of the sample, nothing
    remains of a change of the gap (what the search for b leaves open counts as class prior); what remains of a change
    of the Brier score is no common shift. If scores and labels of each class are as they were and only the share of the
    classes is another one, b is the change of its log odds, and nothing remains in either.

    Parameters
    ----------
    current, reference : Tally
        Samples and references.
    current_bins, reference_bins : ndarray of int64
        The bin of each of their cells, 0 to ``count - 1``.
    of : ndarray of int64
        The reference of each sample.
    count : int
        Number of bins.

    References
    ----------
    Saerens, M., Latinne, P. and Decaestecker, C. (2002). Adjusting the outputs of a classifier to new a priori
    probabilities. Neural Computation 14, 21-41. https://doi.org/10.1162/089976602753284446
    """
    curves = Curves.of_tally(reference, reference_bins, count)
    before = curves.at(reference.score, reference.segment, reference_bins)
    after = curves.at(current.score, current.spread(of), current_bins)
    moved = _by_odds(current, after)
    gap = _parts(
        (_gap(reference)[of], _mean(reference, reference.score - before)[of]),
        [_mean(current, current.score - curve) for curve in (after, moved)],
        _gap(current),
    )
    brier = _parts(
        (_brier(reference)[of], _brier_of(reference, before)[of]),
        [_brier_of(current, curve) for curve in (after, moved)],
        _brier(current),
    )
    return gap, brier


def _parts(reference: tuple[Floats, Floats], steps: list[Floats], current: Floats) -> Parts:
    seen, of_curve = reference
    mixed, moved = steps
    mix, prior = mixed - of_curve, moved - mixed
    rest = (current - seen) - (mix + prior)
    nothing = np.abs(rest) < _NOTHING
    prior, rest = np.where(nothing, prior + rest, prior), np.where(nothing, 0.0, rest)
    return Parts(reference=seen, current=current, score_mix=mix, class_prior=prior, rest=rest)


def _by_odds(tally: Tally, curve: Floats) -> Floats:
    """Return a curve moved by odds so that its mean is the rate."""
    rate = tally.spread(_rate(tally))
    shift = tally.spread(np.nan_to_num(citl_fit(replace(tally, score=curve)).citl))
    moved = special.expit(logit(curve) + shift)
    return np.where(rate <= 0.0, 0.0, np.where(rate >= 1.0, 1.0, moved))


def _mean(tally: Tally, values: Floats) -> Floats:
    return tally.total(tally.weight * values) / tally.total(tally.weight)


def _rate(tally: Tally) -> Floats:
    return tally.total(tally.positive) / tally.total(tally.weight)


def _gap(tally: Tally) -> Floats:
    return _mean(tally, tally.score) - _rate(tally)


def _brier(tally: Tally) -> Floats:
    square = tally.weight * tally.score**2 + tally.positive * (1.0 - 2.0 * tally.score)
    return tally.total(square) / tally.total(tally.weight)


def _brier_of(tally: Tally, curve: Floats) -> Floats:
    return _mean(tally, tally.score**2 + curve * (1.0 - 2.0 * tally.score))
