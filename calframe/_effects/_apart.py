"""Sums of a table cluster by cluster, from an aggregate or from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._kernels._binned import spread
from calframe._kernels._clusters import Pairs
from calframe._reading import cluster_ranks, segment_codes
from calframe._registry import Term
from calframe._table import Table
from calframe._typing import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Apart:
    """Sums of a table, cluster by cluster.

    Attributes
    ----------
    segment, bin : ndarray of int64
        The segment and the bin of each cell.
    alone : ndarray of bool
        Cells of rows without a cluster.
    sums : mapping of str to ndarray
        Their sums, ``n``, ``w`` and ``w2`` among them.
    counts_rows : bool
        Whether weights are numbers of rows.
    """

    segment: Ints
    bin: Ints
    alone: Bools
    sums: Mapping[str, Floats]
    counts_rows: bool

    def pairs(self, unit: Ints, units: int) -> Pairs:
        """Return the clusters of units, such as segments, from the unit of each cell."""
        rows = self.sums["w" if self.counts_rows else "n"]
        return Pairs(
            unit=unit, units=units, alone=self.alone, rows=rows, weight=self.sums["w"], squared=self.sums["w2"]
        )


def read_apart(
    table: Table,
    groups: Groups,
    terms: Sequence[str],
    *,
    own: Mapping[str, Term],
    rows: nw.LazyFrame[Any],
    bins: Bins | None = None,
    clip: float | None = None,
) -> Apart:
    """Run an aggregate as `cells_plan` does, with the cluster as one more key."""
    assert table.cluster is not None  # noqa: S101  for the type checker: nobody asks otherwise
    split, wanted = replace(table, keys=(*table.keys, table.cluster)), tuple(dict.fromkeys(("w2", *terms)))
    plan = cells_plan(split, wanted, bins=bins, clip=clip, own=own, rows=rows)
    read = read_groups(split, table.collect(plan), wanted)
    keys = read.keys.select(*split.group_columns).to_polars()
    cells, starts = len(read.bin), read.cells.starts
    used = read.cells.sums["n"] > 0
    return Apart(
        segment=spread(np.asarray(segment_codes(keys, table, groups)), starts, cells)[used],
        bin=read.bin[used],
        alone=spread(cluster_ranks(keys["_cf_cluster"]) == 0, starts, cells)[used],
        sums={name: values[used] for name, values in read.cells.sums.items()},
        counts_rows=table.roles.counts_rows,
    )
