"""Design effects of the rates and gaps of score bins, between known edges or of rows that are told their bin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import Bins
from calframe._cells import Groups
from calframe._effects._apart import read_apart
from calframe._effects._rows import Rows
from calframe._effects._sums import widths
from calframe._kernels._binned import added
from calframe._measures import METRICS
from calframe._reading import segment_codes, used_rows
from calframe._registry import Options
from calframe._table import Table
from calframe._terms import products
from calframe._typing import Floats, Ints

_NAMES = ("w", "wp", "wy")
_ASKED = (METRICS["rate"], METRICS["gap"])


def effects_in_cells(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, filled: Ints, bins: Bins, *, level: float
) -> dict[str, Floats]:
    """Return the effects on the rate and the gap of each bin with rows, by an aggregate.

    Parameters
    ----------
    table : Table
        The opened table.
    rows : narwhals.LazyFrame
        Its clean rows.
    groups : Groups
        Its cells, one for each segment and bin.
    filled : ndarray of int64
        Those with rows.
    bins : Bins
        The bins.
    level : float
        Confidence level of intervals, for few clusters.
    """
    own = products(_NAMES, {})
    apart = read_apart(table, groups, ("wp", "wy", *own), own=own, bins=bins, rows=rows)
    segment = np.searchsorted(groups.cells.starts, filled, side="right") - 1
    unit = np.searchsorted(segment * bins.count + groups.bin[filled], apart.segment * bins.count + apart.bin)
    return widths(_ASKED, apart.pairs(unit, len(filled)), apart.sums, Options(), (1.0 - level) / 2.0)


def effects_in_rows(
    table: Table,
    rows: nw.LazyFrame[Any],
    groups: Groups,
    bin_of: Callable[[Ints, Floats], Ints],
    bins: int,
    *,
    level: float,
) -> dict[str, Floats]:
    """Return the same of so many bins from the rows; `bin_of` finds the bin by segment and score, over all segments."""
    used = used_rows(table, rows, [*table.group_columns, "_cf_cluster", "_cf_p", "_cf_y"])
    score = used["_cf_p"].to_numpy()
    of = Rows.of_table(table, used, bin_of(segment_codes(used, table, groups), score), bins)
    pairs, of_row = of.pairs()
    terms = {"w": of.weight, "wp": of.weight * score, "wy": of.weight * of.label}
    once = of.squared / of.weight**2
    terms |= {name: terms[a] * terms[b] * once for name in products(_NAMES, {}) for a, b in [name.split("*")]}
    sums = {name: added(of_row, each, len(pairs.unit)) for name, each in terms.items()}
    return widths(_ASKED, pairs, sums, Options(), (1.0 - level) / 2.0)
