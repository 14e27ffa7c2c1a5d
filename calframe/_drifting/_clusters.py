"""Rows that are not independent: the clusters of the groups of a table, and of the scores in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._cells import Groups, cells_plan, read_groups
from calframe._kernels._binned import ranges
from calframe._kernels._tally import Tally
from calframe._reading import cluster_ranks, read_tallies, segment_codes
from calframe._table import Table
from calframe._testing._rates import ScoreSums
from calframe._testing._scatter import CLUSTER_TERMS, ClusterCells, Samples
from calframe._testing._shares import ClusterParts
from calframe._typing import Floats, Ints

_TERMS = ("w2", "wy", "wp", *CLUSTER_TERMS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clusters:
    """The rows of groups by cluster.

    Attributes
    ----------
    tally : Tally
        The scores of each part: rows of one group and one cluster.
    cells : ClusterCells
        What the parts add up to, and the group and the cluster of each.
    """

    tally: Tally
    cells: ClusterCells

    def betting(self, group: Ints, series: Ints, *, counts: bool) -> tuple[Tally, Ints, Floats]:
        """Return what a monitor may bet on: parts whose rows count as one together, their groups, how many clusters.

        Rows of a cluster share their luck, so that only what it does in its first batch is news: later rows of a series
        are left out. There their factors are raised to powers that add up to 1 at most, which gains nothing on average
        however they depend on each other (the inequality of the arithmetic and the geometric mean).

        Parameters
        ----------
        group : ndarray of int64
            The groups that are batches.
        series : ndarray of int64
            The series of each group; groups of a series are in order of time.
        counts : bool
            Whether weights are numbers of rows.
        """
        dated, known = np.isin(self.cells.group, group), self.cells.cluster >= 0
        code = series[self.cells.group] * (int(self.cells.cluster.max(initial=0)) + 1) + self.cells.cluster
        first = np.ones(len(self.cells.group), dtype=np.bool_)
        inside = np.flatnonzero(dated & known)
        inside = inside[np.argsort(self.cells.group[inside], kind="stable")]
        first[inside] = False
        first[inside[np.unique(code[inside], return_index=True)[1]]] = True
        tally, group = self.tally.only(first & dated), self.cells.group[first & dated]
        rows, known = tally.total(tally.weight if counts else tally.rows), known[first & dated]
        share = tally.spread(1.0 / np.where(known, rows, 1.0))
        bets = replace(tally, weight=tally.weight * share, positive=tally.positive * share)
        return bets, group, np.where(known, 1.0, rows)

    def parts(self, source: Ints, sample: Ints, of_group: Ints) -> ClusterParts:
        """Return the rows of samples.

        Parameters
        ----------
        source, sample : ndarray of int64
            Pairs of a source, such as a period, and a sample that it is in; a source may be in several.
        of_group : ndarray of int64
            The source of each group; -1 for none.
        """
        own = of_group[self.cells.group]
        order = np.argsort(own, kind="stable")
        first, last = (np.searchsorted(own[order], source, side=side) for side in ("left", "right"))
        return ClusterParts(
            tally=self.tally,
            cells=self.cells,
            part=order[ranges(first, last - first)],
            sample=np.repeat(sample, last - first),
        )


def summed_clusters(table: Table, groups: Groups | None = None, *, engine: Any) -> ClusterCells:
    """Sum a table up by group, all rows where there are none, and cluster where it is."""
    split = _split(table)
    fine = read_groups(split, split.collect(cells_plan(split, _TERMS, bins=None), engine=engine), _TERMS)
    return ClusterCells.of_terms(*_places(fine, table, fine if groups is None else groups), fine.cells.total)


def read_clusters(table: Table, rows: nw.LazyFrame[Any], groups: Groups) -> Clusters:
    """Read the scores of a table by group and cluster."""
    split = _split(table)
    fine = read_groups(split, split.collect(cells_plan(split, (), bins=None, rows=rows)), ())
    group, cluster = _places(fine, table, groups)
    found: Iterator[tuple[Ints, Tally]] = read_tallies(split, rows, fine)
    present, tallies = zip(*found, strict=True)
    parts = np.concatenate(present)
    tally = Tally.joined(tallies)
    return Clusters(tally=tally, cells=ClusterCells.of_tally(group[parts], cluster[parts], tally))


def clustered(sums: ScoreSums, parts: ClusterParts | None, tail: float | Floats) -> ScoreSums:
    """Return the sums of samples with the effective rows that clusters leave, for intervals with so much in a tail."""
    if parts is None:
        return sums
    return sums.clustered(Samples.of(parts.cells, parts.part, parts.sample, len(sums.n)).scatter(sums.gap), tail)


def _split(table: Table) -> Table:
    """Return the table with its clusters among the keys."""
    return replace(table, keys=(*table.keys, *filter(None, [table.cluster])))


def _places(fine: Groups, table: Table, groups: Groups) -> tuple[Ints, Ints]:
    """Return the group and the cluster of each part."""
    keys = fine.keys.to_polars()
    return np.asarray(segment_codes(keys, table, groups)), cluster_ranks(keys["_cf_cluster"]) - 1
