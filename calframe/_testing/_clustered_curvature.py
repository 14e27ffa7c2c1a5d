"""Score tests of the calibration line, and of curvature beyond it, where rows share the luck of their clusters.

As in `_curvature`, but with the covariance that the sums of directions have if two rows of a cluster share their luck
with the chance that `Clustered` estimates; with U the sums and V their covariance ``U' V^-1 U`` is nearly chi-square.
Where the law is doubtful, labels are drawn cluster by cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import segment_max, segment_sum, sizes_of
from calframe._kernels._logistic import CoxFit, Status, cox_fit, logit
from calframe._kernels._tally import Tally
from calframe._testing._clusters import Clustered, clustered_pvalues
from calframe._testing._curvature import (
    FAR,
    FEW_EVENTS,
    MOST_REFITS,
    bends,
    blank,
    chances,
    coarse_runs,
    orthogonal,
    refitted,
    squares_over_spread,
)
from calframe._testing._draws import Drawing
from calframe._testing._found import Found
from calframe._typing import Bools, Floats

_NOTHING = 1e-9  # of the product of two variances: their directions are one


def clustered_line_test(rows: Clustered, drawing: Drawing, *, floor: float) -> Found:
    """Test intercept 0 and slope 1 together; as `line_test`."""

    def along(part: Tally) -> list[Floats]:
        return orthogonal(part, part.score, [np.ones_like(part.score), logit(part.score, floor)])

    def statistic(drawn: Tally) -> Floats:
        return squares_over_spread(drawn, drawn.score, along(drawn))[0]

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        part = rows.only(where)
        return clustered_pvalues(part, statistic, statistic(part.tally), side="greater", drawing=drawing)

    found, doubtful = _law(rows, rows.tally.score, along(rows.tally))
    return found.settled(doubtful, redraw, floor=drawing.least("greater"))


def clustered_curve_test(rows: Clustered, fit: CoxFit, drawing: Drawing, *, floor: float) -> Found:
    """Test whether the fitted calibration line leaves curvature; as `curve_test`."""
    fine = fit.status == Status.FINE
    drawing = replace(drawing, further=min(drawing.further, MOST_REFITS))
    found = blank(len(fine))
    if not fine.any():
        return found
    some = rows.only(fine)
    line = chances(rows.tally, fit, floor=floor)[rows.tally.spread(fine)]
    law, doubtful = _law(_with_chances(some, line), line, bends(some.tally, line, floor))

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        return _refits(some.only(where), drawing, floor)

    law = law.settled(doubtful, redraw, floor=drawing.least("greater"))
    found.put(fine, law)
    return found


def _refits(rows: Clustered, drawing: Drawing, floor: float) -> tuple[Floats, Floats]:
    """Return p-values by drawing labels from lines, which are then fitted anew; 1 where there is no line."""
    first = coarse_runs(rows.tally)
    rows = replace(rows, tally=rows.tally.merged(first), cells=rows.cells[first])
    line = chances(rows.tally, cox_fit(rows.tally, floor=floor), floor=floor)
    keep = rows.tally.total(np.isnan(line).astype(np.float64)) == 0.0
    pvalue, error = np.ones(len(keep)), np.full(len(keep), np.nan)
    if keep.any():
        kept = _with_chances(rows.only(keep), line[rows.tally.spread(keep)])

        def statistic(drawn: Tally) -> Floats:
            return refitted(drawn, floor)

        drawn = clustered_pvalues(kept, statistic, statistic(kept.tally), side="greater", drawing=drawing)
        pvalue[keep], error[keep] = np.where(np.isnan(drawn[0]), 1.0, drawn[0]), drawn[1]
    return pvalue, error


def _with_chances(rows: Clustered, chance: Floats) -> Clustered:
    """Return rows whose labels have other chances than their scores, with what their clusters share of the luck."""
    rows = replace(rows, score=_of_rows(rows, chance))
    return replace(rows, share=rows.shared())


def _of_rows(rows: Clustered, values: Floats) -> Floats:
    """Return the value of its cell for each row."""
    return np.repeat(values, sizes_of(rows.cells, len(rows.score)))


def _law(rows: Clustered, chance: Floats, along: Sequence[Floats]) -> tuple[Found, Bools]:
    """Return what the chi-square law says of two directions, and where it is doubtful."""
    tally = rows.tally
    times = [_of_rows(rows, x) * rows.weight for x in along]
    first, second = (_variance(rows, one) for one in times)
    both = (_variance(rows, times[0] + times[1]) - _variance(rows, times[0] - times[1])) / 4.0
    sums = [tally.total(x * (tally.positive - tally.weight * chance)) for x in along]
    there = np.asarray([first > 0.0, second > 0.0])
    variance = np.where(there, [first, second], 1.0)
    both = np.where(there.all(axis=0), both, 0.0)
    rest = np.maximum(variance[0] * variance[1] - both**2, _NOTHING * variance[0] * variance[1])
    off = np.where(there, sums, 0.0)
    square = off[0] ** 2 * variance[1] - 2.0 * off[0] * off[1] * both + off[1] ** 2 * variance[0]
    df = there.sum(axis=0).astype(np.float64)
    statistic = np.where(df > 0.0, square / rest, np.nan)
    pvalue = np.where(df > 0.0, special.gammaincc(np.maximum(df, 1.0) / 2.0, statistic / 2.0), np.nan)
    found = replace(Found.of_law(statistic, pvalue, "chi2"), df=np.where(df > 0.0, df, np.nan))
    far = sum(_reach(rows, one) / size for one, size in zip(times, variance, strict=True))
    return found, np.asarray(_rare(rows, chance) | (far > FAR**2))


def _variance(rows: Clustered, times: Floats) -> Floats:
    """Return the variance of ``sum t (y - c)``, with clusters that share their luck."""
    alone = segment_sum(rows.sums(times * times * rows.score * (1.0 - rows.score)), rows.first)
    return alone + rows.share * rows.of_one_luck(times)


def _reach(rows: Clustered, times: Floats) -> Floats:
    """Return the square of what one cluster may move a sum by."""
    moves = np.where(rows.score * (1.0 - rows.score) > 0.0, np.abs(times), 0.0)
    return segment_max(rows.sums(moves), rows.first) ** 2


def _rare(rows: Clustered, chance: Floats) -> Bools:
    """Return where few rows of an outcome are expected, as many as the scatter of their number is worth."""
    tally = rows.tally
    whole = _variance(rows, rows.weight)
    alone = segment_sum(rows.sums(rows.weight * rows.score * (1.0 - rows.score)), rows.first)
    size = np.where(whole > 0.0, alone / np.where(whole > 0.0, whole, 1.0), 0.0)  # rows to a unit of weight
    expected = tally.total(tally.weight * chance)
    return np.asarray(np.minimum(expected, tally.total(tally.weight) - expected) * size < FEW_EVENTS)
