"""A prediction table to what fits read: distinct scores or score vectors of every segment, and how these are called."""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import closed_frame
from calframe._errors import EmptyTableError, counted
from calframe._kernels._binned import last_cells
from calframe._kernels._building import as_one
from calframe._kernels._tally import Tally
from calframe._kernels._vectors import Vectors
from calframe._maps._segments import stored
from calframe._reading import polars_sort, read_matrix, read_rows, read_tallies
from calframe._results import to_polars
from calframe._table import Table
from calframe._typing import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Named:
    """The segments of a table without a missing key, in order.

    Attributes
    ----------
    keys : tuple of polars.Series
        Their keys, as a map keeps them; none where there are no segment columns.
    n : ndarray of int64
        Their rows.
    place : ndarray of int64
        Their place among what was read, which has the segments with rows only; -1 where a segment has none.
    low, high : ndarray
        Their lowest and highest score, of several classes the largest of a row; NaN without rows.
    """

    keys: tuple[pl.Series, ...]
    n: Ints
    place: Ints
    low: Floats
    high: Floats

    @property
    def read(self) -> Ints:
        """The places of those that have rows."""
        return self.place[self.place >= 0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """The distinct scores of a table, those of one class.

    Attributes
    ----------
    named : Named
        The segments that maps are fitted to.
    tally : Tally
        The distinct scores, as probabilities, of all segments that have rows.
    logits : Tally
        The same by the logits behind them; where scores are probabilities, that tally itself.
    whole : Tally
        The distinct scores of all rows together, as probabilities.
    """

    named: Named
    tally: Tally
    logits: Tally
    whole: Tally


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The score vectors of a table.

    Attributes
    ----------
    named : Named
        The segments that maps are fitted to.
    vectors : Vectors
        The vectors of all segments that have rows, as probabilities.
    is_logit : bool
        Whether they were logits.
    """

    named: Named
    vectors: Vectors
    is_logit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows used, rows left out, the ends of the scores used, and a checksum, whatever the order of rows.

    Attributes
    ----------
    n, n_missing, n_invalid, n_zero : int
        Rows; those of weight 0 are left out, too.
    mean_weight : float
        The mean weight of the rows used.
    low, high : float or None
        The lowest and highest score, of vectors the largest of a row; None where each class was read by itself.
    mark : str
        The checksum of scores and labels.
    """

    n: int
    n_missing: int
    n_invalid: int
    n_zero: int
    mean_weight: float
    low: float | None
    high: float | None
    mark: str

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the rows left out."""
        return (f"{counted(self.n_zero)} of weight 0 left out",) if self.n_zero else ()


def read_scores(table: Table, *, engine: Any) -> tuple[Counts, tuple[Scores, ...]]:
    """Read the distinct scores of a table: of the one score a row, or those of each class in turn."""
    rows = read_rows(table, engine=engine)
    groups = _read_groups(table, rows)
    segments, tally = _tally(table, rows, groups, by_logit=False)
    logits = _tally(table, rows, groups, by_logit=True)[1] if table.has_logits else tally
    several = table.view == "classwise"
    owner = _classes_of(groups) if several else np.zeros(len(groups), dtype=np.int64)
    found = []
    for one in range(int(owner.max()) + 1):
        mine, there = owner == one, owner[segments] == one
        own = tally.only(there)
        ends = own.score[own.starts], own.score[last_cells(own.starts, len(own.score))]
        named = _named(table, groups, mine, segments[there], ends)
        found.append(
            Scores(
                named=named,
                tally=own,
                logits=own if logits is tally else logits.only(there),
                whole=as_one(own, sort=polars_sort),
            )
        )
    counts = _counts(groups, owner == 0, *((each.whole.score, each.whole.positive) for each in found))
    return replace(counts, low=None, high=None) if several else counts, tuple(found)


def read_vectors(table: Table, *, engine: Any) -> tuple[Counts, Rows]:
    """Read the score vectors of a table of several classes."""
    rows = read_rows(table, engine=engine)
    groups = _read_groups(table, rows)
    matrix = read_matrix(table, rows, groups)
    vectors = matrix.vectors
    largest = vectors.scores.max(axis=1)
    ends = np.minimum.reduceat(largest, vectors.starts), np.maximum.reduceat(largest, vectors.starts)
    every = np.ones(len(groups), dtype=bool)
    named = _named(table, groups, every, matrix.segments, ends)
    happened = vectors.happened()
    return _counts(groups, every, (np.sort(largest), np.sort(happened))), Rows(
        named=named, vectors=vectors, is_logit=table.roles.link == "logit"
    )


def _read_groups(table: Table, rows: nw.LazyFrame[Any]) -> Groups:
    """Read the segments of a table, or raise if none of its rows can be used."""
    groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
    if not groups.n.any():
        msg = (
            "no row of the table can be used to fit a map: the label, score or weight is missing, the weight is 0, or "
            "invalid='drop' left the row out."
        )
        raise EmptyTableError(msg)
    return groups


def _named(table: Table, groups: Groups, mine: Bools, segments: Ints, ends: tuple[Floats, Floats]) -> Named:
    keys = _keys(table, groups)
    whole = mine.copy() if keys else np.zeros_like(mine)
    for key in keys:
        whole &= key.alias("").is_not_null().to_numpy()  # its name may be a pattern to polars
    place = np.full(len(groups), -1, dtype=np.int64)
    place[segments] = np.arange(len(segments))
    chosen = np.flatnonzero(whole)
    at = place[chosen]
    low, high = (np.append(end, np.nan)[at] for end in ends)
    return Named(keys=tuple(_only(key, chosen) for key in keys), n=groups.n[chosen], place=at, low=low, high=high)


def _only(key: pl.Series, chosen: Ints) -> pl.Series:
    """Return some of the values of a key."""
    return key.alias("").gather(chosen.tolist()).alias(key.name)


def _keys(table: Table, groups: Groups) -> tuple[pl.Series, ...]:
    """Return the keys of the segments under the user's names."""
    if not table.keys:
        return ()
    closed = to_polars(closed_frame(table, groups, {"n": groups.n}).to_native())
    return tuple(stored(closed.get_column(key.name)) for key in table.keys)


def _classes_of(groups: Groups) -> Ints:
    """Return the class of each segment of a table that was read class by class."""
    return np.array(groups.keys.get_column("_cf_class").to_list(), dtype=np.int64)


def _counts(groups: Groups, once: Bools, *content: tuple[Floats, Floats]) -> Counts:
    """Return the counts of a table, and what is to be said of its scores, which ascend, and what happened there."""
    mark, score = 0, content[0][0]
    for values in itertools.chain.from_iterable(content):
        mark = zlib.crc32(np.ascontiguousarray(values).tobytes(), mark)
    return Counts(
        n=int(groups.n[once].sum()),
        n_missing=int(groups.n_missing[once].sum()),
        n_invalid=int(groups.n_invalid[once].sum()),
        n_zero=int(groups.n_zero[once].sum()),
        mean_weight=float(groups.cells.sums["w"][once].sum() / groups.n[once].sum()),
        low=float(score[0]),
        high=float(score[-1]),
        mark=f"{mark:08x}",
    )


def _tally(table: Table, rows: nw.LazyFrame[Any], groups: Groups, *, by_logit: bool) -> tuple[Ints, Tally]:
    parts = list(read_tallies(table, rows, groups, by_logit=by_logit))
    return np.concatenate([segments for segments, _ in parts]), Tally.joined([tally for _, tally in parts])
