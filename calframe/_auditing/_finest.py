"""What an audit reads: the finest crossings of all segment columns, or each column by itself where nothing crosses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calframe._auditing._bands import Banded
from calframe._auditing._crossings import Crossings, Levels, crossed, read_levels, side_by_side
from calframe._binning import Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import empty_categories, warn_empty_categories
from calframe._kernels._binned import spread
from calframe._reading import cluster_ranks
from calframe._registry import Cells
from calframe._typing import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finest:
    """Sums of the finest crossings.

    Attributes
    ----------
    cells : Cells
        Sums per crossing and score cell.
    bin : ndarray of int64
        The score cell of each.
    n, n_missing, n_invalid, n_zero : ndarray of int64
        Row counts of each crossing.
    once : ndarray of bool
        Crossings that hold each row once: all of them, or those of the first column where each was read by itself.
    cluster : ndarray of int64
        Where clusters of rows are told apart, so are crossings: the cluster of each, -1 for rows without one.
    """

    cells: Cells
    bin: Ints
    n: Ints
    n_missing: Ints
    n_invalid: Ints
    n_zero: Ints
    once: Bools
    cluster: Ints

    @classmethod
    def of(cls, read: Sequence[Groups], *, clustered: bool) -> Self:
        """Put what was read side by side."""
        before = np.cumsum([0, *(len(groups.bin) for groups in read)])
        names = read[0].cells.sums
        return cls(
            cells=Cells(
                starts=np.concatenate(
                    [groups.cells.starts + first for groups, first in zip(read, before, strict=False)]
                ),
                sums={name: np.concatenate([groups.cells.sums[name] for groups in read]) for name in names},
            ),
            bin=np.concatenate([groups.bin for groups in read]),
            n=np.concatenate([groups.n for groups in read]),
            n_missing=np.concatenate([groups.n_missing for groups in read]),
            n_invalid=np.concatenate([groups.n_invalid for groups in read]),
            n_zero=np.concatenate([groups.n_zero for groups in read]),
            once=np.repeat(np.arange(len(read)) == 0, [len(groups) for groups in read]),
            cluster=_clusters(read) if clustered else np.zeros(0, dtype=np.int64),
        )

    def crossing(self) -> Ints:
        """Return the crossing of each score cell."""
        return spread(np.arange(len(self.n)), self.cells.starts, len(self.bin))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Read:
    """Sums, what the segments are, and declared categories without rows."""

    finest: Finest
    levels: tuple[Levels, ...]
    crossings: Crossings
    empty: Mapping[str, list[str]]


def read_finest(
    cut: Banded,
    terms: Sequence[str],
    *,
    bins: Bins | None,
    depth: int,
    joint: bool,
    most: int,
    engine: Any,
) -> Read:
    """Run the aggregates of an audit.

    Parameters
    ----------
    cut : Banded
        The opened table, numeric columns cut into bands.
    terms : sequence of str
        Sums of rows wanted.
    bins : Bins or None
        Score cells, where cumulative errors are looked for.
    depth, most : int
        Most columns crossed, and most segments.
    joint : bool
        Whether crossings are needed: otherwise each column is read by itself, at the cost of its own values only.
    engine : object
        Passed to polars.
    """
    table = cut.table
    tables = [table] if joint else [replace(table, keys=(key,)) for key in table.keys]
    apart = () if table.cluster is None else (table.cluster,)
    read: list[Groups] = []
    levels: list[Levels] = []
    empty: dict[str, list[str]] = {}
    for one in tables:
        split = replace(one, keys=(*one.keys, *apart))
        cells = split.collect(cells_plan(split, terms, bins=bins), engine=engine)
        groups = read_groups(split, cells, terms)
        found, few = read_levels(one, groups, cut.names)
        warn_empty_categories(one, few)
        empty |= {key.name: empty_categories(one, few, key) for key in one.keys}
        read.append(groups)
        levels += found
    crossings = crossed(levels, depth=depth, most=most) if joint else side_by_side(levels, most=most)
    return Read(
        finest=Finest.of(read, clustered=bool(apart)),
        levels=tuple(levels),
        crossings=crossings,
        empty={name: values for name, values in empty.items() if values},
    )


def _clusters(read: Sequence[Groups]) -> Ints:
    """Return the cluster of each crossing, counted from 0 in each reading by itself."""
    keys = (groups.keys.select("_cf_cluster").to_polars()["_cf_cluster"] for groups in read)
    return np.concatenate([cluster_ranks(column) - 1 for column in keys])
