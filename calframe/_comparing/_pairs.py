"""The rows that two models share: read from a table on any engine, in segment order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._cells import Groups, cells_plan, read_groups
from calframe._classes import class_column
from calframe._columns import Key, exact_column
from calframe._comparing._models import Models
from calframe._errors import ScoreError
from calframe._kernels._binned import starts_of
from calframe._reading import cluster_ranks, segment_codes
from calframe._registry import Term
from calframe._rows import clean_rows
from calframe._source import opened
from calframe._table import Table, open_table
from calframe._testing._paired import Units
from calframe._typing import Bools, Floats, Ints

_ROW = "_cf_row"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """The rows of a table where the scores of both models are there.

    Attributes
    ----------
    table : Table
        The table, in memory, of the first model.
    turned : ndarray of bool
        Whether the second model of the table stands first here, of each present segment. Which one does only the values
        decide, so that models that change places get the same draws.
    narrow : (bool, bool)
        Whether the scores of each model, as they stand here, are float32.
    groups : Groups
        The segments.
    n, n_missing, n_invalid, n_zero : ndarray of int64
        Per segment: the common rows, rows where something is missing, rows left out as invalid, rows of weight 0.
    weight_sum : ndarray of float64
        The weight of the common rows.
    present : ndarray of int64
        The segments that have common rows; what follows has these alone, renumbered.
    units : Units
        What is independent among the common rows.
    label : ndarray of float64
        Their labels; of several classes the place of the one that happened.
    clean : polars.DataFrame
        The common rows under private names, those of the first model before those of the second.
    """

    table: Table
    turned: Bools
    narrow: tuple[bool, bool]
    groups: Groups
    n: Ints
    n_missing: Ints
    n_invalid: Ints
    n_zero: Ints
    weight_sum: Floats
    present: Ints
    units: Units
    label: Floats
    clean: pl.DataFrame

    @classmethod
    def of_table(cls, data: Any, models: Models, **how: Any) -> Self:
        """Read the common rows of a table; `how` is for `open_table`.

        Within a segment rows stand in an order that only their values decide, so that draws do not depend on that of
        the table.
        """
        for roles in models.stated:  # what is wrong with its columns is said of the table as it was given
            open_table(data, roles, view=models.view, **how)
        data = _in_memory(data, {name: role for roles in models.roles for name, role in roles.columns().items()})
        tables = [open_table(data, roles, view=models.view, **how) for roles in models.roles]
        found = [table.collect(clean_rows(table)[0]) for table in tables]  # an unpivot would not keep the order of rows
        groups = [_groups(table, rows, name) for table, rows, name in zip(tables, found, models.names, strict=True)]
        rows = pl.concat([each.to_polars() for each in found])
        table, segments = tables[0], len(groups[0])
        codes = segment_codes(rows[: len(rows) // 2], table, groups[0])
        kinds = _kinds(rows)
        used = np.flatnonzero(kinds == 0)
        narrow = (tables[0].narrow[0], tables[1].narrow[0])
        order, turned = _order(rows, used, codes, table, narrow=narrow)
        used = used[order]
        present, segment = np.unique(codes[used], return_inverse=True)
        sides = turned * (len(rows) // 2), ~turned * (len(rows) // 2)
        clean = rows[np.concatenate([used + side for side in sides])]
        weight = clean["_cf_w"].to_numpy()[: len(used)] if table.weighted else np.ones(len(used))
        counts = [np.bincount(codes[kinds == kind], minlength=segments) for kind in range(4)]
        return cls(
            table=table,
            turned=turned[starts_of(np.bincount(segment))],
            narrow=(max(narrow), min(narrow)),
            groups=groups[0],
            n=counts[0],
            n_missing=counts[1],
            n_invalid=counts[2],
            n_zero=counts[3],
            weight_sum=np.bincount(codes[used], weight, segments).astype(np.float64),
            present=present,
            units=Units.of_rows(
                segment,
                weight,
                cluster=None if table.cluster is None else _clusters(clean["_cf_cluster"][: len(used)]),
                counts_rows=table.roles.weight_kind == "frequency",
            ),
            label=clean["_cf_y"].to_numpy()[: len(used)],
            clean=clean,
        )

    @property
    def score(self) -> tuple[Floats, Floats]:
        """The probabilities of both models."""
        return _halves(self.clean, "_cf_p")

    @property
    def logit(self) -> tuple[Floats, Floats]:
        """Their logits where the columns hold such, else the probabilities."""
        return _halves(self.clean, "_cf_z" if self.table.has_logits else "_cf_p")

    @property
    def vectors(self) -> tuple[Floats, Floats]:
        """The probabilities of all classes by both models, one line a class."""
        if self.table.view == "vectors":
            first, second = zip(*(_halves(self.clean, name) for name in _class_names(self.table)), strict=True)
            return np.stack(first), np.stack(second)
        one, other = self.score  # the positive class, then the other one: the first wins ties, so 0.5 says positive
        return np.stack([one, 1.0 - one]), np.stack([other, 1.0 - other])

    @property
    def happened(self) -> Ints:
        """The place of the class that happened among those of `vectors`."""
        return (self.label if self.table.view == "vectors" else 1.0 - self.label).astype(np.int64)

    @property
    def surprise(self) -> tuple[Floats, Floats] | None:
        """The log loss of each row of several classes by both models, where it was taken from logits."""
        return _halves(self.clean, "_cf_loss") if "_cf_loss" in self.clean.columns else None

    @property
    def squared(self) -> Floats:
        """The weight of each row as variances sum it."""
        weight = self.units.weight
        return weight if self.table.roles.weight_kind == "frequency" else weight * weight

    def impossible(self) -> tuple[int, int]:
        """Return how many rows give what happened the probability 0, by the first and by the second model."""
        if self.table.has_logits and self.surprise is None:  # of a logit no probability is 0
            return 0, 0
        if self.surprise is not None:
            first, second = (np.isinf(loss) for loss in self.surprise)
        else:
            first, second = (scores[self.happened, np.arange(len(self.label))] <= 0.0 for scores in self.vectors)
        turned = self.turned[self.units.segment]
        return int(np.where(turned, second, first).sum()), int(np.where(turned, first, second).sum())

    def terms(self, names: Sequence[str], own: Mapping[str, Term], *, clip: float | None) -> dict[str, Floats]:
        """Return row terms, those of the first model before those of the second; ``n`` and ``w`` are among them."""
        rows = self.clean.with_columns(pl.int_range(pl.len()).cast(pl.Float64).alias(_ROW))
        each = replace(self.table, keys=(Key(name=_ROW, alias=_ROW),), levels=None)
        plan = cells_plan(each, names, bins=None, clip=clip, own=own, rows=nw.from_native(rows.lazy()))
        return dict(read_groups(each, each.collect(plan), names).cells.sums)

    def only(self, keep: Bools) -> Self:
        """Return the rows of some of the present segments, to measure and to draw from."""
        if keep.all():
            return self
        rows = keep[self.units.segment]
        return replace(
            self,
            present=self.present[keep],
            turned=self.turned[keep],
            units=self.units.only(keep),
            label=self.label[rows],
            clean=self.clean.filter(np.tile(rows, 2)),
        )

    def scatter(self, values: Floats) -> Floats:
        """Return values of the segments with rows at their places among all segments; NaN elsewhere."""
        out = np.full(len(self.n), np.nan)
        out[self.present] = values
        return out


def _groups(table: Table, rows: nw.DataFrame[Any], model: str) -> Groups:
    """Return the segments of the rows of a model, or say what is wrong with its scores."""
    try:
        return read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows.lazy())), ())
    except ScoreError as error:
        if table.classes is None:  # then its column is named already
            raise
        msg = f"model {model!r}: {error}"
        raise ScoreError(msg) from error


def _in_memory(data: Any, columns: Mapping[str, str]) -> Any:
    """Return the columns used of a table, in memory: a lazy or remote one is fetched into polars."""
    frame = opened(data)
    if isinstance(frame, nw.DataFrame):
        return data
    if isinstance(data, pl.LazyFrame):
        return data.select(map(exact_column, columns)).collect()
    return frame.select(*columns).collect("polars").to_native()


def _order(
    rows: pl.DataFrame, used: Ints, codes: Ints, table: Table, *, narrow: tuple[bool, bool]
) -> tuple[Ints, Bools]:
    """Return the order of rows by segment, scores, label, weight and cluster, and of which the second model goes first.

    It goes first in a segment whose rows so come before those in the order with the first model ahead, column by
    column; where one model alone is float32, that one does.
    """
    half, raw = len(rows) // 2, ["_cf_z" if table.has_logits else "_cf_p"]
    if table.view == "vectors":
        raw = [name for name in rows.columns if name == "_cf_loss" or name in _class_names(table)]
    scores = [rows[name].to_numpy() for name in raw]
    first, second = ([score[some] for score in scores] for some in (used, used + half))
    rest = [rows[name].to_numpy()[used] for name in ("_cf_y", "_cf_w") if name in rows.columns]
    if table.cluster is not None:
        rest.append(cluster_ranks(rows["_cf_cluster"])[used])
    ways = [codes[used], *first, *second, *rest], [codes[used], *second, *first, *rest]
    orders: list[Ints] = [np.lexsort(values[::-1]) for values in ways]
    straight, turned = ([values[order] for values in way] for way, order in zip(ways, orders, strict=True))
    second_first = _before(turned, straight) if narrow[0] == narrow[1] else np.full(len(used), narrow[1])
    return np.where(second_first, orders[1], orders[0]), second_first


def _before(one: Sequence[Any], other: Sequence[Any]) -> Bools:
    """Return for each row whether its segment comes first in one list of columns; the segments are the first column."""
    segment = one[0]
    side = np.zeros(int(segment.max(initial=0)) + 1, dtype=np.int64)
    for a, b in zip(one[1:], other[1:], strict=True):
        places = np.flatnonzero(a != b)
        found, first = np.unique(segment[places], return_index=True)
        ahead = np.where(a[places[first]] < b[places[first]], 1, -1)
        side[found] = np.where(side[found] == 0, ahead, side[found])
    return np.asarray(side[segment] == 1)


def _class_names(table: Table) -> list[str]:
    return [class_column(i) for i in range(len(table.roles.classes))]


def _clusters(clusters: pl.Series) -> Ints:
    """Return the cluster of each row: one for each value, and one for each row where there is none."""
    ranks = cluster_ranks(clusters)
    return np.where(ranks == 0, ranks.max(initial=0) + 1 + np.arange(len(ranks)), ranks)


def _kinds(rows: pl.DataFrame) -> Ints:
    """Return what each row is: 0 common, 1 missing something, 2 invalid, 3 of weight 0."""
    used = _both(rows, "_cf_n")
    zero = _both(rows, "_cf_zero")
    invalid = _both(rows, "_cf_invalid")
    missing = np.any(~(used | zero | invalid), axis=0)
    kinds: Ints = np.select([zero[0], missing, invalid.any(axis=0)], [3, 1, 2], 0).astype(np.int64)
    return kinds


def _both(rows: pl.DataFrame, name: str) -> Bools:
    """Return a mark of the rows of both models, one line a model."""
    if name not in rows.columns:
        return np.zeros((2, len(rows) // 2), dtype=bool)
    marked: Bools = (rows[name].fill_null(0.0).to_numpy() == 1.0).reshape(2, -1)
    return marked


def _halves(rows: pl.DataFrame, name: str) -> tuple[Floats, Floats]:
    values = rows[name].to_numpy()
    return values[: len(values) // 2], values[len(values) // 2 :]
