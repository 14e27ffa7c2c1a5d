"""Abstaining: the risk among the most confident predictions."""

from __future__ import annotations

import numpy as np

from calframe._kernels._binned import power_of_two, ratio, run_starts, running_sum, segment_sum
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats

_HALF = 0.5  # from here on the positive class is predicted
_NARROW = 2**16  # segments that a 16-bit key tells apart
_SHIFT = 16  # terms added one by one; beyond, the series below is exact to rounding
_BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)  # of x^-2, x^-4, ... in ln x - 1 / (2 x) - digamma(x)


def confidence_tally(tally: Tally, *, is_logit: bool = False) -> Tally:
    """Return the tally of confidences: how sure the prediction is, and in place of positives how often it is right.

    A score s predicts the positive class from 0.5 on; the confidence is ``max(s, 1 - s)``, in floating point, so that
    0.3 and 0.7 are one confidence. A logit z predicts it from 0 on, with the confidence ``|z|``.

    Parameters
    ----------
    tally : Tally
        Scores of the positive class, in [0, 1] or logits.
    is_logit : bool
        Whether they are logits.

    Examples
    --------
    >>> rows, positive = np.array([2.0, 1.0, 3.0]), np.array([0.0, 1.0, 2.0])
    >>> found = confidence_tally(Tally.of_counts(np.array([0]), np.array([0.3, 0.5, 0.7]), rows, positive))
    >>> found.score, found.rows, found.positive
    (array([0.5, 0.7]), array([1., 5.]), array([1., 4.]))
    """
    segment, (confidence, yes) = tally.segment, confidences(tally.score, is_logit=is_logit)
    order = np.argsort(confidence)
    key = segment.astype(np.uint16) if len(tally) <= _NARROW else segment
    order = order[np.argsort(key[order], kind="stable")]  # a radix sort where the key is narrow
    confidence = confidence[order]
    cells = run_starts(confidence, tally.starts)
    right = np.where(yes, tally.positive, tally.negative)
    squared_right = np.where(yes, tally.squared_positive, tally.squared_negative)
    return Tally(
        starts=np.searchsorted(cells, tally.starts),
        score=confidence[cells],
        rows=segment_sum(tally.rows[order], cells),
        weight=segment_sum(tally.weight[order], cells),
        positive=segment_sum(right[order], cells),
        squared=segment_sum(tally.squared[order], cells),
        squared_positive=segment_sum(squared_right[order], cells),
    )


def confidences(score: Floats, *, is_logit: bool = False) -> tuple[Floats, Bools]:
    """Return how sure the prediction of each score is, and whether it is the positive class; see `confidence_tally`."""
    yes: Bools = score >= (0.0 if is_logit else _HALF)
    return np.abs(score) if is_logit else np.where(yes, score, 1.0 - score), yes


def aurc(tally: Tally) -> Floats:
    """Return the area under the risk-coverage curve: the mean risk of the k most confident rows, over all k.

    ``(1 / n) sum_k (errors among the k most confident) / k``, expected over all orders of equal confidences. With A
    rows and E errors before a cell of w rows, of which the share r is wrong, the cell adds
    ``w r + (E - r A) (1 / (A + 1) + ... + 1 / (A + w))``. The sum is a difference of digamma functions,
    ``digamma(A + w + 1) - digamma(A + 1)``, which also serves weights that are no whole numbers.

    Weights count rows: weight 2 is the row twice, and a common factor changes the value as so many copies of all rows
    would. Importance weights, whose scale means nothing, should have a mean of 1.

    Parameters
    ----------
    tally : Tally
        Confidences, with the weight of right predictions as `positive`, as `confidence_tally` gives it.

    Returns
    -------
    ndarray of shape (n_segments,)
        In [0, 1]; lower is better, 0 is without error.

    References
    ----------
    Geifman, Y., Uziel, G. and El-Yaniv, R. (2019). Bias-reduced uncertainty estimation for deep neural classifiers.
    ICLR 2019. https://doi.org/10.48550/arXiv.1805.08206

    Examples
    --------
    Right, wrong, right from the most confident down: (0 + 1/2 + 1/3) / 3.

    >>> rows, right = np.ones(3), np.array([1.0, 0.0, 1.0])
    >>> aurc(Tally.of_counts(np.array([0]), np.array([0.6, 0.7, 0.9]), rows, right)).round(6)
    array([0.277778])
    """
    wrong = tally.negative
    share = wrong / tally.weight
    before, errors = _more_confident(tally, tally.weight), _more_confident(tally, wrong)
    risk = wrong + (errors - share * before) * _harmonic(before, tally.weight)
    return np.clip(ratio(tally.total(risk), tally.total(tally.weight)), 0.0, 1.0)


def excess_aurc(tally: Tally) -> Floats:
    """Return `aurc` less that of a perfect ranking of the same predictions, which puts every error last.

    Perfect ranking has ``(1 / n) sum_{k > R} (k - R) / k`` with R the number of right predictions. 0 is perfect.
    Weights count rows, as in `aurc`.

    Parameters
    ----------
    tally : Tally
        Confidences, as in `aurc`.

    References
    ----------
    Geifman, Y., Uziel, G. and El-Yaniv, R. (2019). Bias-reduced uncertainty estimation for deep neural classifiers.
    ICLR 2019. https://doi.org/10.48550/arXiv.1805.08206

    Examples
    --------
    Right, wrong, right against right, right, wrong: (1/2 + 1/3 - 1/3) / 3.

    >>> rows, right = np.ones(3), np.array([1.0, 0.0, 1.0])
    >>> excess_aurc(Tally.of_counts(np.array([0]), np.array([0.6, 0.7, 0.9]), rows, right)).round(6)
    array([0.166667])
    """
    right = tally.total(tally.positive)
    wrong = tally.total(tally.negative)
    least = wrong - right * _harmonic(right, wrong)
    return np.maximum(aurc(tally) - ratio(least, tally.total(tally.weight)), 0.0)  # rounding may leave -1e-16


def _more_confident(tally: Tally, values: Floats) -> Floats:
    """Return the sum over the cells of a segment with higher confidence."""
    total = tally.total(values)
    unit = power_of_two(tally.total(tally.weight))
    running = running_sum(values / tally.spread(unit), tally.starts)
    return np.maximum(tally.spread(total / unit) - running, 0.0) * tally.spread(unit)


def _harmonic(before: Floats, count: Floats) -> Floats:
    """Return ``1 / (before + 1) + ... + 1 / (before + count)``, continued to all numbers by the digamma function.

    The difference of two large digammas would lose what they share; here every term is a difference already.
    """
    low = before + 1.0
    extra = np.zeros_like(low)
    near = low <= _SHIFT
    start, step = low[near], count[near]
    for i in range(_SHIFT):
        extra[near] += step / ((start + i) * (start + step + i))
    low = np.where(near, low + _SHIFT, low)
    return extra + _digamma_step(low, count)


def _digamma_step(x: Floats, step: Floats) -> Floats:
    """Return ``digamma(x + step) - digamma(x)`` for x above 16, by the asymptotic series, term by term."""
    a, b = 1.0 / x, 1.0 / (x + step)
    apart = a * b * step  # a - b
    found = np.log1p(step * a) + apart / 2.0
    a2, b2 = a * a, b * b
    quotient, powers = a + b, np.ones_like(a)  # (a^2m - b^2m) / (a - b), and b^2 to the m - 1
    for coefficient in _BERNOULLI:
        found += coefficient * apart * quotient
        powers = powers * b2
        quotient = a2 * quotient + powers * (a + b)
    return found
