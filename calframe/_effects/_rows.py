"""Design effects of what is a sum over rows once the scores of a segment are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._cells import Groups
from calframe._effects._sums import widened
from calframe._kernels._binned import added
from calframe._kernels._building import tallies
from calframe._kernels._clusters import Pairs, few_clusters
from calframe._kernels._line_parts import line_parts
from calframe._kernels._logistic import citl_fit, cox_fit, logit
from calframe._reading import cluster_ranks, segment_codes, squared_weights, used_rows
from calframe._registry import Metric, Options, Scored
from calframe._table import Table
from calframe._testing._delong import area_parts
from calframe._testing._paired import Units
from calframe._typing import Floats, Ints

BY_SCORE = frozenset({"auc", "slope", "intercept", "citl"})
_MEANS = frozenset({"accuracy", "brier", "log_loss", "epistemic_loss", "epistemic_loss_log"})  # of whole vectors


def score_effects(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, names: Sequence[str], options: Options, tail: float
) -> dict[str, Floats]:
    """Return the effects of what is a sum over rows once all scores of a segment are known."""
    raw = "_cf_z" if table.has_logits else "_cf_p"
    used = used_rows(table, rows, [*table.group_columns, "_cf_cluster", *dict.fromkeys(("_cf_p", raw)), "_cf_y"])
    present, segment = np.unique(segment_codes(used, table, groups), return_inverse=True)
    found = {name: np.full(len(groups), np.inf) for name in names}
    if not len(present):
        return found
    of = Rows.of_table(table, used, segment, len(present))
    made: dict[str, Floats] = {}
    if "auc" in names:
        made["auc"] = of.area(used[raw].to_numpy(), tail)
    lines = [name for name in names if name != "auc"]
    if lines:
        made |= of.lines(used["_cf_p"].to_numpy(), lines, options.floor, tail)
    for name, effect in made.items():
        found[name][present] = effect
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The rows of segments that have some.

    Attributes
    ----------
    segment, cluster : ndarray of int64
        The segment and the cluster of each row; cluster 0 is none.
    segments : int
        The number of segments.
    label, weight, squared : ndarray of float64
        The label, 0 or 1, the weight, and its square as variances need it.
    counts_rows : bool
        Whether weights are numbers of rows.
    """

    segment: Ints
    segments: int
    cluster: Ints
    label: Floats
    weight: Floats
    squared: Floats
    counts_rows: bool

    @classmethod
    def of_table(cls, table: Table, used: pl.DataFrame, segment: Ints, segments: int) -> Self:
        """Take what rows that are used hold, under their private names."""
        weight = used["_cf_w"].to_numpy() if table.weighted else np.ones(len(used))
        return cls(
            segment=segment,
            segments=segments,
            cluster=cluster_ranks(used["_cf_cluster"]),
            label=used["_cf_y"].to_numpy(),
            weight=weight,
            squared=squared_weights(table, weight),
            counts_rows=table.roles.counts_rows,
        )

    def pairs(self) -> tuple[Pairs, Ints]:
        """Return the clusters of the segments, and that of each row."""
        return Pairs.of_rows(
            self.segment,
            self.cluster,
            self.weight,
            self.squared,
            units=self.segments,
            counts_rows=self.counts_rows,
        )

    def effect(self, pairs: Pairs, of_row: Ints, parts: Floats, scale: Floats) -> Floats:
        """Return the design effect of an estimate from what each row adds to it."""
        parts = np.nan_to_num(parts, posinf=0.0, neginf=0.0)
        single = parts**2 * (self.squared / self.weight**2)
        total, squares = (added(of_row, values, len(pairs.unit)) for values in (parts, single))
        return pairs.effect(total, squares, scale)

    def total(self, values: Floats) -> Floats:
        """Return the sum of each segment."""
        return added(self.segment, values, self.segments)

    def area(self, score: Floats, tail: float) -> Floats:
        """Return the effect of the area under the ROC curve, its clusters those of the class with fewer."""
        pairs, of_row = self.pairs()
        parts, size = area_parts(Units.of_rows(self.segment, self.weight), score, self.label)
        effective = []
        for chosen in (self.label, 1.0 - self.label):
            sums = (added(of_row, chosen * values, len(pairs.unit)) for values in (self.weight, self.squared))
            effective.append(pairs.effective(*sums))
        scale = self.total(size**2 * (self.squared / self.weight**2))
        return self.effect(pairs, of_row, parts, scale) * few_clusters(np.minimum(*effective), tail)

    def lines(self, score: Floats, names: Sequence[str], floor: float, tail: float) -> dict[str, Floats]:
        """Return the effects of logistic regressions on the logit of the score."""
        pairs, of_row = self.pairs()
        few, z = few_clusters(pairs.effective(), tail), logit(score, floor)
        fits = {name: np.full(self.segments, np.nan) for name in ("slope", "intercept", "citl")}
        of = partial(tallies, self.segment, score, self.label, segments=self.segments)
        for segments, tally in of(weight=self.weight, squared=self.squared):
            line = cox_fit(tally, floor=floor)
            fits["slope"][segments], fits["intercept"][segments] = line.slope, line.intercept
            fits["citl"][segments] = citl_fit(tally, floor=floor).citl
        each = {name: of_segment[self.segment] for name, of_segment in fits.items()}
        parts = line_parts(z, self.label, self.weight, each, self.segment, self.segments)
        nothing = np.zeros(self.segments)
        return {name: self.effect(pairs, of_row, parts[name], nothing) * few for name in names}


def of_vectors(metric: Metric) -> bool:
    """Tell whether a metric is a mean over whole score vectors that has an interval."""
    return metric.reads == "vectors" and metric.name in _MEANS and metric.interval is not None


def vector_effects(sample: Scored, metrics: Sequence[Metric], *, level: float, counts_rows: bool) -> dict[str, Floats]:
    """Return the effects of means over whole score vectors, of the segments of a sample."""
    vectors = sample.vectors
    assert vectors.cluster is not None  # noqa: S101  for the type checker: nobody asks otherwise
    rows = Rows(
        segment=vectors.segment,
        segments=len(vectors),
        cluster=np.maximum(vectors.cluster, 0),
        label=vectors.label.astype(np.float64),
        weight=vectors.weight,
        squared=vectors.squared,
        counts_rows=counts_rows,
    )
    pairs, of_row = rows.pairs()
    few = few_clusters(pairs.effective(), (1.0 - level) / 2.0)
    lone = np.maximum.reduceat(vectors.label, vectors.starts) == np.minimum.reduceat(vectors.label, vectors.starts)
    single = replace(sample, vectors=replace(vectors, starts=np.arange(len(vectors.label))))
    share, found = vectors.weight / rows.total(vectors.weight)[vectors.segment], {}
    for metric in metrics:
        if not of_vectors(metric):
            continue
        with np.errstate(invalid="ignore"):
            values = metric.value(single)
            parts = share * (values - vectors.mean(values)[vectors.segment])
        size = rows.total((share * np.nan_to_num(values, posinf=0.0)) ** 2 * (vectors.squared / vectors.weight**2))
        found[metric.name] = widened(rows.effect(pairs, of_row, parts, size), pairs, few, lone)
    return found
