"""Rows to cells to groups: one lazy aggregate on any engine, then small local arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import Bins
from calframe._errors import EmptyTableError
from calframe._faults import check_faults
from calframe._kernels._binned import segment_sum
from calframe._registry import Cells, Row, Term
from calframe._rows import clean_rows, row_names
from calframe._table import Table
from calframe._terms import TERMS
from calframe._typing import Bools, Floats, Ints

_BIN = "_cf_bin"
_UNWEIGHTED = {
    "w2": "_cf_n",
    "wy": "_cf_y",
    "wp": "_cf_p",
    "w2_variance": "_cf_t_variance",
    "w2_square": "_cf_t_square",
    "w2_score": "_cf_p",
}
_ALWAYS_SUMMED = {"_cf_n", "_cf_y", "_cf_w", "_cf_zero", "_cf_invalid", "_cf_fault", "_cf_positive"}  # counts, checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The cells of a table, sorted by segment (and model) and bin, checked.

    Attributes
    ----------
    keys : narwhals.DataFrame
        One row a segment, under private names, in the library the cells came in.
    cells : Cells
        Sums per cell, with ``n`` and ``w`` always among them.
    bin : ndarray of int64
        The bin of each cell.
    n, n_missing, n_invalid, n_zero : ndarray of int64
        Per segment: rows used, rows with something missing, rows left out as invalid, rows of weight 0.
    """

    keys: nw.DataFrame[Any]
    cells: Cells
    bin: Ints
    n: Ints
    n_missing: Ints
    n_invalid: Ints
    n_zero: Ints

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.n)


def cells_plan(
    table: Table,
    terms: Sequence[str],
    *,
    bins: Bins | None,
    clip: float | None = None,
    own: Mapping[str, Term] | None = None,
    rows: nw.LazyFrame[Any] | None = None,
) -> nw.LazyFrame[Any]:
    """Return the lazy aggregate: one row per segment, model and bin, with the sums of `terms`.

    Every aggregate is elementary (sum, count, min, max) on a column made beforehand, so that each engine runs it
    natively.

    Parameters
    ----------
    table : Table
        The opened table.
    terms : sequence of str
        Names of row terms.
    bins : Bins or None
        The bins; None for one cell a segment.
    clip : float, optional
        How far from 0 and 1 scores stay in the log loss.
    own : mapping of str to callable, optional
        Terms that do not ship with the package.
    rows : narwhals.LazyFrame, optional
        The clean rows, where they have been read already.
    """
    rows, names = clean_rows(table) if rows is None else (rows, row_names(table))
    prepared = {} if bins is None else {_BIN: bins.index(nw.col("_cf_p"), narrow=table.narrow_score())}
    if own or any(term.startswith(("surprise", "impossible", "gain_log")) for term in terms):
        prepared["_cf_chance"] = _chance(clip, of_logits=_of_logits(table, clip))
    rows = rows.with_columns(**prepared) if prepared else rows
    row = _row(table, clip)
    known = {**TERMS, **(own or {})}
    columns = {_summed(term, table): known[term](row) for term in terms}
    columns = {alias: term for alias, term in columns.items() if alias not in names}
    if columns:
        rows = rows.with_columns(**columns)
    wanted = _ALWAYS_SUMMED | {_summed(term, table) for term in terms}
    sums = [nw.col("_cf_n").count().alias("_cf_len")]
    sums += [nw.col(name).sum() for name in (*names, *columns) if name in wanted]
    if "_cf_other" in names:
        sums += [
            nw.col("_cf_other").min().alias("_cf_other_min"),
            nw.col("_cf_other").max().alias("_cf_other_max"),
        ]
    keys = [*table.group_columns, *([] if bins is None else [_BIN])]
    # without keys plain sums are several times faster than those of one group
    cells = rows.group_by(*keys).agg(*sums) if keys else rows.select(*sums).filter(nw.col("_cf_len") > 0)
    return cells if bins is not None else cells.with_columns(nw.lit(0, nw.Int32).alias(_BIN))


def read_groups(table: Table, cells: nw.DataFrame[Any], terms: Sequence[str]) -> Groups:
    """Sort the cells, find the segments, and raise if any row was an error."""
    if len(cells) == 0:
        raise EmptyTableError.from_table()
    check_faults(table, cells)
    cells = cells.sort(*table.group_columns, _BIN, nulls_last=True)
    starts = _starts(cells, table.group_columns)
    numbers = _numbers(cells, {"_cf_len", _BIN, *_ALWAYS_SUMMED, *(_summed(term, table) for term in terms)})
    sums = {"n": numbers["_cf_n"], "w": numbers["_cf_w" if table.weighted else "_cf_n"]}
    sums |= {term: numbers[_summed(term, table)] for term in terms}
    counted = {
        name: numbers.get(name, np.zeros(len(cells))) for name in ("_cf_len", "_cf_n", "_cf_invalid", "_cf_zero")
    }
    rows, n, invalid, zero = (np.rint(segment_sum(values, starts)).astype(np.int64) for values in counted.values())
    return Groups(
        keys=cells.select(*table.group_columns)[starts.tolist()] if table.group_columns else cells[:1],
        cells=Cells(starts=starts, sums=sums),
        bin=numbers[_BIN].astype(np.int64),
        n=n,
        n_missing=rows - n - invalid - zero,
        n_invalid=invalid,
        n_zero=zero,
    )


def _summed(term: str, table: Table) -> str:
    """Return the column whose sum is a term; without weights some are the same, and are summed once."""
    if not table.weighted:
        return _UNWEIGHTED.get(term, f"_cf_t_{term}")
    return f"_cf_t_{term}"


def _of_logits(table: Table, clip: float | None) -> bool:
    """Return whether the log loss comes from logits; clipping is done to probabilities."""
    return table.has_logits and clip is None


def _chance(clip: float | None, *, of_logits: bool) -> nw.Expr:
    """Return the probability given to what happened."""
    score = nw.col("_cf_p")
    if clip is not None:
        score = nw.when(nw.col("_cf_n") == 1.0).then(score.clip(clip, 1.0 - clip)).otherwise(0.0)
    rest = 1.0 - score
    if of_logits:  # p = 1 / (1 + exp(-z)) and 1 - p = exp(-z) p, which is not rounded to 0
        logit = nw.col("_cf_z")
        rest = nw.when(logit > 0.0).then((logit.abs() * -1.0).exp() * score).otherwise(rest)
    return nw.when(nw.col("_cf_y") == 1.0).then(score).otherwise(rest)


def _row(table: Table, clip: float | None) -> Row:
    chance = nw.col("_cf_chance")
    if _of_logits(table, clip):
        possible, surprise = _logit_surprise()
    else:
        possible = chance > 0.0
        surprise = nw.when(possible).then(chance).otherwise(1.0).log() * -1.0
    return Row(
        used=nw.col("_cf_n"),
        score=nw.col("_cf_p"),
        label=nw.col("_cf_y"),
        chance=chance,
        possible=possible,
        surprise=surprise,
        weight=nw.col("_cf_w") if table.weighted else None,
        frequency=table.roles.weight_kind == "frequency",
        posterior=nw.col("_cf_q") if table.roles.posterior else None,
    )


def _logit_surprise() -> tuple[nw.Expr, nw.Expr]:
    """Return where the log loss is finite, and the log loss from the logit itself.

    It is finite where the probability has long rounded to 0 or 1.
    """
    logit = nw.col("_cf_z")
    against = nw.when(nw.col("_cf_y") == 1.0).then(logit * -1.0).otherwise(logit)
    possible = against < float("inf")
    finite = nw.when(possible).then(against).otherwise(0.0)
    loss = ((finite.abs() * -1.0).exp() + 1.0).log() + nw.when(finite > 0.0).then(finite).otherwise(0.0)
    return possible, loss * nw.col("_cf_n")


def _starts(cells: nw.DataFrame[Any], keys: Sequence[str]) -> Ints:
    """Return where a new segment begins in sorted cells."""
    new = np.zeros(len(cells), dtype=np.bool_)
    new[0] = True
    for name in keys:
        new[1:] |= changes(cells.get_column(name))
    return np.flatnonzero(new).astype(np.int64)


def changes(column: nw.Series[Any]) -> Bools:
    """Return whether each value of a sorted column differs from the one before it; two nulls do not.

    Compared by the library itself: as Python objects, times would lose their nanoseconds.
    """
    if column.implementation.is_polars():
        return np.asarray(np.diff(column.to_native().rle_id().to_numpy()) != 0, dtype=np.bool_)
    missing = np.asarray(column.is_null().to_numpy(), dtype=np.bool_)
    differs = np.asarray((column != column.shift(1)).fill_null(value=False).to_numpy(), dtype=np.bool_)
    return np.asarray((missing[1:] != missing[:-1]) | (differs[1:] & ~missing[1:]), dtype=np.bool_)


def _numbers(cells: nw.DataFrame[Any], names: set[str]) -> dict[str, Floats]:
    """Return the columns that are there as float64 arrays."""
    there = [name for name in cells.columns if name in names]
    numbers = cells.select(nw.col(*there).cast(nw.Float64))
    return {name: np.asarray(numbers.get_column(name).to_numpy(), dtype=np.float64) for name in there}
