"""Isotonic regression of the rate on the score, and the CORP parts of a loss that it defines.

The fit is constant on blocks of neighbouring scores. Only the borders of the blocks come from an iteration; their
values are ratios of plain sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import last_cells, segment_sum, spread
from calframe._kernels._losses import brier_excess, chances_of, log_excess
from calframe._kernels._tally import Tally
from calframe._typing import Bools, Floats, Ints

_TOGETHER = 256  # segments in one regression: 4^255 times a weight of 1e100 is far from overflow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blocks:
    """The blocks of an isotonic fit, ascending, segment after segment.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_segments,)
        The first block of each segment.
    first_cell, last_cell : ndarray of int64, shape (n_blocks,)
        The first and last cell of each block in the tally.
    low_score, high_score : ndarray of float64
        The scores of these cells.
    rows, weight, positive : ndarray of float64
        Sums over the cells of each block.
    value : ndarray of float64
        The fitted rate, ``positive / weight``: strictly increasing within a segment.
    """

    starts: Ints
    first_cell: Ints
    last_cell: Ints
    low_score: Floats
    high_score: Floats
    rows: Floats
    weight: Floats
    positive: Floats
    value: Floats

    def total(self, values: Floats) -> Floats:
        """Return the sum of block values over each segment."""
        return segment_sum(values, self.starts)

    def spread(self, values: Floats) -> Floats:
        """Return the value of a cell's block for each cell of the tally."""
        return np.repeat(values, self.last_cell - self.first_cell + 1)


def blocks(tally: Tally) -> Blocks:
    """Fit the rate as a non-decreasing function of the score by weighted least squares, each segment alone.

    The same fit is optimal for every proper loss. Neighbouring scores whose rates do not increase are pooled until
    all do (pool adjacent violators). Rates that differ by rounding alone, relative to 1, may be pooled: no value
    moves by more than that.

    Parameters
    ----------
    tally : Tally
        Distinct scores; only their order matters.

    References
    ----------
    Busing, F. M. T. A. (2022). Monotone regression: a simple and fast O(n) PAVA implementation. Journal of
    Statistical Software, Code Snippets 102(1), 1-25. https://doi.org/10.18637/jss.v102.c01

    Examples
    --------
    The rates 0, 1, 0.5, 1 are out of order once:

    >>> score, rows = np.array([0.1, 0.4, 0.7, 0.9]), np.array([2.0, 1.0, 2.0, 1.0])
    >>> tally = Tally.of_counts(np.array([0]), score, rows, positive=np.array([0.0, 1.0, 1.0, 1.0]))
    >>> fit = blocks(tally)
    >>> fit.value.round(4), fit.low_score, fit.high_score
    (array([0.    , 0.6667, 1.    ]), array([0.1, 0.4, 0.9]), array([0.1, 0.7, 0.9]))
    """
    first = _pooled(tally)
    opens = np.zeros(len(first), dtype=np.bool_)
    opens[np.searchsorted(first, tally.starts)] = True
    weight, positive = segment_sum(tally.weight, first), segment_sum(tally.positive, first)
    while not (keep := opens | _rises(positive / weight)).all():
        kept = np.flatnonzero(keep)
        first, opens = first[kept], opens[kept]
        weight, positive = segment_sum(weight, kept), segment_sum(positive, kept)
    last = last_cells(first, len(tally.score))
    return Blocks(
        starts=np.flatnonzero(opens),
        first_cell=first,
        last_cell=last,
        low_score=tally.score[first],
        high_score=tally.score[last],
        rows=segment_sum(tally.rows, first),
        weight=weight,
        positive=positive,
        value=positive / weight,
    )


def _pooled(tally: Tally) -> Ints:
    """Return the first cells of the blocks, but that rounding may leave equal neighbours apart.

    Several segments go into one regression, the rates of segment g as ``4^g (1 + rate)``: no segment reaches the
    next, and a power of two changes no digit, so a segment is pooled the same wherever it stands.
    """
    from scipy.optimize import isotonic_regression  # noqa: PLC0415  importing the package must not load SciPy

    factor = np.ldexp(1.0, 2 * (np.arange(len(tally)) % _TOGETHER))
    height = (1.0 + tally.positive / tally.weight) * tally.spread(factor)
    found = []
    for begin, end in pairwise(np.append(tally.starts[::_TOGETHER], len(height)).tolist()):
        fit = isotonic_regression(height[begin:end], weights=tally.weight[begin:end])
        found.append(fit.blocks[:-1] + begin)
    return np.concatenate(found)


def _rises(value: Floats) -> Bools:
    """Tell which blocks lie above the one before; the first does."""
    return np.append(True, value[1:] > value[:-1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorpParts:
    """The CORP parts of a mean loss, ``loss = mcb - dsc + unc``, one value a segment; all are at least 0.

    Attributes
    ----------
    mcb : ndarray of shape (n_segments,)
        Miscalibration: what the best non-decreasing map of the scores would save; 0 is perfect, lower is better.
        Infinite where the loss is.
    dsc : ndarray of shape (n_segments,)
        Discrimination: what the mapped scores save over the overall rate; higher is better.
    unc : ndarray of shape (n_segments,)
        Uncertainty: the loss of the overall rate.
    """

    mcb: Floats
    dsc: Floats
    unc: Floats


def corp(tally: Tally, *, fit: Blocks | None = None, is_logit: bool = False) -> CorpParts:
    """Split the Brier score by isotonic regression, without bins.

    With ``v`` the isotonic fit and ``r`` the overall rate, mcb is the mean loss of the scores less that of v, dsc
    that of r less that of v, and unc that of r, ``r (1 - r)``. No difference of losses is taken:
    ``dsc = sum w (v - r)^2 / sum w``, and mcb is summed from terms that vanish where a score equals its fit.

    Parameters
    ----------
    tally : Tally
        Distinct scores, in [0, 1] or logits.
    fit : Blocks, optional
        The isotonic fit of this tally, where it is known already.
    is_logit : bool
        Whether they are logits.

    References
    ----------
    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic
    classifiers. PNAS 118(8), e2016191118. https://doi.org/10.1073/pnas.2016191118

    Examples
    --------
    >>> score, positive = np.array([0.25, 0.5, 0.75]), np.array([1.0, 3.0, 7.0])
    >>> tally = Tally.of_counts(np.array([0]), score, np.array([4.0, 6.0, 10.0]), positive)
    >>> parts = corp(tally)
    >>> [float(part[0].round(6)) for part in (parts.mcb, parts.dsc, parts.unc)]
    [0.00125, 0.03, 0.2475]
    """
    fit = blocks(tally) if fit is None else fit
    total, rate, rest = _rates(tally, fit)
    value, (score, *_) = fit.spread(fit.value), chances_of(tally, is_logit=is_logit)
    excess = tally.total(brier_excess(tally.weight, tally.positive, value, score))
    variance = fit.total(fit.weight * (fit.value - spread(rate, fit.starts, len(fit.value))) ** 2)
    return CorpParts(mcb=np.maximum(excess / total, 0.0), dsc=variance / total, unc=rate * rest)


def corp_log(tally: Tally, *, fit: Blocks | None = None, is_logit: bool = False) -> CorpParts:
    """Split the log loss as `corp` does the Brier score, by the same fit.

    dsc is the mean of ``KL(v || r)`` and unc the entropy ``H(r)``. Of logits the log loss comes from these.

    Examples
    --------
    A rate of one half that the score does not know:

    >>> tally = Tally.of_counts(np.array([0]), np.array([0.25]), np.array([2.0]), np.array([1.0]))
    >>> parts = corp_log(tally)  # ln(2) - H(1/4, 3/4) of these outcomes, with opposite sign: ln(2 / sqrt(3))
    >>> [float(part[0].round(4)) for part in (parts.mcb, parts.dsc, parts.unc)]
    [0.1438, 0.0, 0.6931]
    """
    fit = blocks(tally) if fit is None else fit
    total, rate, rest = _rates(tally, fit)
    value, (score, other, logit) = fit.spread(fit.value), chances_of(tally, is_logit=is_logit)
    excess = tally.total(log_excess(tally.positive, tally.negative, value, score, other, logit))
    overall, without = (spread(values, fit.starts, len(fit.value)) for values in (rate, rest))
    divergence = fit.total(log_excess(fit.positive, fit.weight - fit.positive, fit.value, overall, without))
    return CorpParts(
        mcb=np.maximum(excess / total, 0.0),
        dsc=np.maximum(divergence / total, 0.0),
        unc=special.entr(rate) + special.entr(rest),
    )


def _rates(tally: Tally, fit: Blocks) -> tuple[Floats, Floats, Floats]:
    """Return the weight of each segment, its overall rate, and 1 less that."""
    total = fit.total(fit.weight)
    return total, fit.total(fit.positive) / total, tally.total(tally.negative) / total
