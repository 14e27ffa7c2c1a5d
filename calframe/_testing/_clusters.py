"""Rows that are not independent: labels drawn cluster by cluster, and the variance of sums over clusters.

Two rows of a cluster share the luck of their labels with a chance rho: then both labels come from one uniform draw u,
each positive where u lies below its score. So each row alone keeps the chance that its score says, copies of a row have
rho = 1, and independent rows 0. rho is estimated from the residuals of the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calframe._kernels import _special as special
from calframe._kernels._binned import running_sum, segment_max, segment_sum, sizes_of, spread, starts_of
from calframe._kernels._tally import Tally
from calframe._testing._draws import Drawing, Drawn, Side, Statistic, lots, repeated, staged
from calframe._testing._found import FEW_ROWS, Found
from calframe._testing._sums import CERTAIN, Factor
from calframe._typing import Bools, Floats, Ints

_LOT = 1_000_000  # rows drawn at once
_FAR = 0.2  # what one cluster may move a sum by, in standard deviations, for the normal law
FEW_CLUSTERS = f"fewer than {FEW_ROWS} clusters: the p-value is that of a law for many, and decides nothing"
FEWEST = 5  # clusters from which what they share is told well enough for drawn labels to decide
TOO_FEW_CLUSTERS = f"fewer than {FEWEST} clusters: too few to tell what they share, so that the p-value decides nothing"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clustered:
    """Rows in clusters, sorted by segment and score.

    Attributes
    ----------
    tally : Tally
        Their distinct scores.
    cells : ndarray of int64
        The first row of each cell of the tally.
    score, label, weight : ndarray
        The rows.
    cluster : ndarray of int64
        The cluster of each row, counted from 0 over all segments; a cluster lies in one segment.
    first : ndarray of int64
        The first cluster of each segment.
    share : ndarray
        Per segment, the chance rho that two rows of a cluster share their luck.
    """

    tally: Tally
    cells: Ints
    score: Floats
    label: Floats
    weight: Floats
    cluster: Ints
    first: Ints
    share: Floats

    @classmethod
    def of(
        cls, segment: Ints, cluster: Ints, score: Floats, label: Floats, weight: Floats, *, counts: bool
    ) -> Clustered:
        """Sort rows, and estimate what their clusters share.

        Parameters
        ----------
        segment : ndarray of int64
            The segment of each row, counted from 0; none is without rows.
        cluster : ndarray of int64
            The cluster of each row, below 0 if it is one of its own; rows of different segments are never in one.
        score, label, weight : ndarray
            The rows.
        counts : bool
            Whether weights are numbers of rows.
        """
        if counts:
            each = np.repeat(np.arange(len(score)), weight.astype(np.int64))
            segment, score, label, weight = segment[each], score[each], label[each], np.ones(len(each))
            cluster = np.where(cluster[each] < 0, -1 - np.arange(len(each)), cluster[each])
        order = np.lexsort((label, weight, np.maximum(cluster, -1), score, segment))  # whatever that of the table
        segment, cluster = segment[order], cluster[order]
        cluster = np.where(cluster < 0, -1 - np.arange(len(cluster)), cluster)  # each row a cluster of its own
        score, label, weight = score[order], label[order], weight[order]
        new = np.ones(len(score), dtype=np.bool_)
        new[1:] = (np.diff(segment) != 0) | (np.diff(score) != 0)
        cells = np.flatnonzero(new)
        tally = _tally(segment, cells, score, label, weight, counts=counts)
        pairs, number = np.unique(np.column_stack([segment, cluster]), axis=0, return_inverse=True)
        place: Ints = np.asarray(number, dtype=np.int64).ravel()
        first = np.searchsorted(pairs[:, 0], np.arange(len(tally)))
        found = cls(
            tally=tally,
            cells=cells,
            score=score,
            label=label,
            weight=weight,
            cluster=place,
            first=first,
            share=np.zeros(len(tally)),
        )
        return replace(found, share=found.shared())

    def only(self, keep: Bools) -> Clustered:
        """Return the rows of some of the segments."""
        if keep.all():
            return self
        cells = self.tally.spread(keep)
        sizes = sizes_of(self.cells, len(self.score))
        rows = np.repeat(cells, sizes)
        return Clustered(
            tally=self.tally.only(keep),
            cells=starts_of(sizes[cells]),
            score=self.score[rows],
            label=self.label[rows],
            weight=self.weight[rows],
            cluster=np.unique(self.cluster[rows], return_inverse=True)[1],
            first=starts_of(self.clusters()[keep]),
            share=self.share[keep],
        )

    def clusters(self) -> Ints:
        """Return the number of clusters of each segment."""
        return np.diff(np.append(self.first, self.cluster.max() + 1))

    def told(self, found: Found) -> Found:
        """Return what drawn labels say, which decides nothing with hardly a cluster.

        What a cluster shares is estimated from the very residuals that are tested: with one cluster 25 of 100 tables of
        right scores were rejected at 5 %, with two or three 5 to 14, with five or more at most 7 (400 tables, error 1).
        """
        few = (self.clusters() < FEWEST) & ~np.isnan(found.pvalue)
        return found.undecided(few, TOO_FEW_CLUSTERS)

    def sums(self, values: Floats) -> Floats:
        """Return the sum of row values over each cluster."""
        return np.bincount(self.cluster, weights=values).astype(np.float64)

    def of_pairs(self, left: Floats, right: Floats) -> Floats:
        """Return the sum of ``left_i right_j`` over ordered pairs of different rows of a cluster, by segment."""
        both = self.sums(left) * self.sums(right) - self.sums(left * right)
        return segment_sum(both, self.first)

    def of_one_luck(self, times: Floats) -> Floats:
        """Return ``sum t_i t_j (min(s_i, s_j) - s_i s_j)`` over the same pairs: the covariances if one draw decides."""
        order = np.lexsort((self.score, self.cluster))  # these scores may be chances that fall where scores rise
        starts = np.searchsorted(self.cluster[order], np.arange(int(self.cluster.max(initial=-1)) + 1))
        least, each = (times * self.score)[order], times[order]
        after = spread(self.sums(times), starts, len(order)) - running_sum(each, starts)
        lower = segment_sum(segment_sum(2.0 * least * after, starts), self.first)
        return lower - self.of_pairs(times * self.score, times * self.score)

    def shared(self) -> Floats:
        """Return the share of luck, from the residuals of pairs of rows: 1 for copies, 0 on average for others.

        The mean product of residuals in units of the mean of their squares, over that of labels that come from one
        draw; between 0 and 1.
        """
        off, chance = self.label - self.score, self.score * (1.0 - self.score)
        one = np.ones_like(off)
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = self.of_pairs(off, off) / self.of_pairs(off * off, one)
            scale = self.of_pairs(chance, one) / self.of_one_luck(one)
        return np.clip(np.nan_to_num(alike * scale, nan=0.0, posinf=0.0), 0.0, 1.0)

    def inflation(self, factor: Factor) -> tuple[Floats, Floats]:
        """Return by how much clusters make a sum vary more, and the farthest that one of them moves it.

        The variance of ``sum w c(s) (y - s)`` over that of independent rows, and the largest sum of ``w |c|`` of a
        cluster in its standard deviations.
        """
        chance = self.score * (1.0 - self.score)
        times = self.weight * np.where(chance > 0.0, factor(self.score), 0.0)
        alone = segment_sum(self.sums(times * times * chance), self.first)
        whole = alone + self.share * self.of_one_luck(times)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = segment_max(self.sums(np.abs(times)), self.first) / np.sqrt(whole)
            return np.maximum(whole / alone, 1e-300), far

    def drawn(self, statistic: Statistic, drawing: Drawing) -> Drawn:
        """Give a statistic of all segments under labels drawn cluster by cluster; as `drawn_statistics`."""
        rows, many = len(self.score), int(self.cluster.max(initial=-1)) + 1
        together = np.sqrt(self.share)[self.tally.segment.repeat(sizes_of(self.cells, rows))]
        for lot in lots(rows, drawing.n_resamples, most=_LOT):
            luck = drawing.rng.random((lot, many))[:, self.cluster]
            if together.any():
                alone = drawing.rng.random((lot, rows)) >= together
                luck = np.where(alone, drawing.rng.random((lot, rows)), luck)
            hits = np.add.reduceat((luck < self.score) * self.weight, self.cells, axis=1)
            found = statistic(repeated(self.tally, lot, hits.ravel()))
            yield slice(None), found.reshape(*found.shape[:-1], lot, len(self.tally))
            if drawing.done is not None:
                drawing.done(lot / drawing.n_resamples)


def clustered(rows: Clustered, statistic: Statistic, *, side: Side, drawing: Drawing) -> Found:
    """Return what drawing labels cluster by cluster says of a statistic."""
    seen = statistic(rows.tally)
    pvalue, error = clustered_pvalues(rows, statistic, seen, side=side, drawing=drawing)
    found = Found.of_draws(seen, pvalue, error, floor=drawing.least(side))
    return rows.told(found)


def clustered_pvalues(
    rows: Clustered, statistic: Statistic, seen: Floats, *, side: Side, drawing: Drawing
) -> tuple[Floats, Floats]:
    """Return p-values by drawing labels cluster by cluster, and their standard errors; as `resampled`."""
    return staged(seen, lambda where, how: rows.only(where).drawn(statistic, how), side=side, drawing=drawing)


def clustered_sum(rows: Clustered, factor: Factor, ratio: Statistic, drawing: Drawing) -> Found:
    """Test a sum over rows whose clusters share their luck, two-sided, by the normal law or by drawing.

    Parameters
    ----------
    rows : Clustered
        The rows.
    factor : callable
        What a label is times, from its score.
    ratio : callable
        From a tally to the sum in standard deviations of independent rows.
    drawing : Drawing
        How labels are drawn.
    """
    inflation, far = rows.inflation(factor)
    seen = ratio(rows.tally)
    z = seen / np.sqrt(inflation)
    found = Found.of_law(z, 2.0 * special.ndtr(-np.abs(z)), "normal").noted(np.isnan(z), CERTAIN)
    found = found.of_many(rows.clusters().astype(np.float64), FEW_CLUSTERS)

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        return clustered_pvalues(rows.only(where), ratio, seen[where], side="two-sided", drawing=drawing)

    return found.settled(np.asarray(far > _FAR), redraw, floor=drawing.least("two-sided"))


def _tally(segment: Ints, cells: Ints, score: Floats, label: Floats, weight: Floats, *, counts: bool) -> Tally:
    squared = weight if counts else weight * weight
    total, positive = segment_sum(weight, cells), segment_sum(weight * label, cells)
    same = counts or bool(np.all(weight == 1.0))
    return Tally(
        starts=np.searchsorted(segment[cells], np.arange(segment.max(initial=-1) + 1)),
        score=score[cells],
        rows=segment_sum(np.ones_like(weight), cells),
        weight=total,
        positive=positive,
        squared=total if same else segment_sum(squared, cells),
        squared_positive=positive if same else segment_sum(squared * label, cells),
    )
