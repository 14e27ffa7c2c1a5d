"""Rows in clusters: by how much each metric scatters more than over independent rows, and samples as wide as that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._kernels._binned import sizes_of, spread
from calframe._kernels._building import tallies
from calframe._kernels._clusters import Pairs, few_clusters
from calframe._kernels._delta import slopes, squared_parts
from calframe._kernels._line_parts import line_parts
from calframe._kernels._logistic import citl_fit, cox_fit, logit
from calframe._measures import METRICS
from calframe._reading import cluster_ranks, segment_codes, squared_weights, used_rows
from calframe._registry import Cells, Metric, Options, Sample, Scored, Tallied, Term
from calframe._table import Table
from calframe._terms import products
from calframe._testing._delong import area_parts
from calframe._testing._paired import Units
from calframe._typing import Bools, Floats, Ints

_BY_RATE = frozenset({"uncertainty", "uncertainty_corrected", "unc", "unc_log"})  # functions of the rate alone
_BY_SCORE = frozenset({"auc", "slope", "intercept", "citl"})
_MEANS = frozenset({"accuracy", "brier", "log_loss", "epistemic_loss", "epistemic_loss_log"})  # of whole vectors
_OF_SCORES = frozenset({"mean_score", "sharpness"})  # alone: their intervals do not ask which outcomes were seen
_ROUNDING = 1e-12  # of a sum of weights, relatively


def clusterable(metric: Metric) -> bool:
    """Tell whether the interval of a metric can allow for clusters."""
    if metric.reads == "vectors":
        return metric.name in _MEANS
    return metric.reads == "sums" or metric.name in _BY_RATE | _BY_SCORE


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
    bins: Bins | None = None,
    clip: float | None = None,
    rows: nw.LazyFrame[Any] | None = None,
    engine: Any = None,
) -> Apart:
    """Run an aggregate as `cells_plan` does, with the cluster as one more key."""
    assert table.cluster is not None  # noqa: S101  for the type checker: nobody asks otherwise
    split, wanted = replace(table, keys=(*table.keys, table.cluster)), tuple(dict.fromkeys(("w2", *terms)))
    plan = cells_plan(split, wanted, bins=bins, clip=clip, own=own, rows=rows)
    read = read_groups(split, table.collect(plan, engine=engine), wanted)
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


def effects_of(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, asked: Sequence[Metric], options: Options, *, level: float
) -> dict[str, Floats]:
    """Return by how much clusters divide the effective rows of each metric's interval, infinite for a single cluster.

    Metrics whose intervals cannot allow for clusters are not among them; those of whole score vectors are NaN, for
    `vector_effects` to replace.

    Parameters
    ----------
    table : Table
        The opened table.
    rows : narwhals.LazyFrame
        Its clean rows.
    groups : Groups
        Its segments.
    asked : sequence of Metric
        The metrics.
    options : Options
        What the user has set.
    level : float
        Confidence level of the intervals, for few clusters.
    """
    asked, tail = [metric for metric in asked if metric.interval is not None], (1.0 - level) / 2.0
    summed = {metric.name: metric for metric in asked if metric.reads == "sums"}
    by_rate = [metric.name for metric in asked if metric.name in _BY_RATE]
    if by_rate:
        summed.setdefault("rate", METRICS["rate"])
    found = _sum_effects(table, rows, groups, list(summed.values()), options, tail) if summed else {}
    found |= dict.fromkeys(by_rate, found["rate"])
    by_score = [metric.name for metric in asked if metric.name in _BY_SCORE]
    if by_score:
        found |= _score_effects(table, rows, groups, by_score, options, tail)
    several = [metric for metric in asked if metric.reads == "vectors" and clusterable(metric)]
    return found | {metric.name: np.full(len(groups), np.nan) for metric in several}


def _sum_effects(
    table: Table,
    rows: nw.LazyFrame[Any],
    groups: Groups,
    metrics: Sequence[Metric],
    options: Options,
    tail: float,
) -> dict[str, Floats]:
    """Return the effects of functions of sums, by the delta method."""
    own: dict[str, Term] = {name: term for metric in metrics for name, term in metric.own_terms.items()}
    terms = {name: None for metric in metrics for name in metric.terms}
    for metric in metrics:
        own |= products(("w", *metric.terms), metric.own_terms)
    wanted = ("wy", *terms, *(name for name in own if "*" in name))
    apart = read_apart(table, groups, wanted, own=own, clip=options.clip, rows=rows)
    pairs = apart.pairs(apart.segment, len(groups))
    positive, weight = pairs.total(apart.sums["wy"]), pairs.total(apart.sums["w"])
    lone = np.minimum(positive, weight - positive) <= _ROUNDING * weight
    few = few_clusters(pairs.effective(), tail)
    return {
        metric.name: _few(_effect_of_sums(metric, pairs, apart.sums, options), pairs, few)
        if metric.name in _OF_SCORES
        else _few(_effect_of_sums(metric, pairs, apart.sums, options), pairs, few, lone)
        for metric in metrics
    }


def _effect_of_sums(metric: Metric, pairs: Pairs, sums: Mapping[str, Floats], options: Options) -> Floats:
    names = ("w", *metric.terms)
    totals = {name: pairs.total(sums[name]) for name in names}
    slope = {name: np.nan_to_num(of, posinf=0.0, neginf=0.0) for name, of in _slopes(metric, totals, options).items()}
    each = {name: of[pairs.unit] for name, of in slope.items()}
    squared = {name: sums[name] for name in products(names, {})}
    parts: Floats = np.sum([each[name] * sums[name] for name in names], axis=0)
    size = squared_parts(
        {name: np.abs(of) for name, of in each.items()}, {name: np.abs(of) for name, of in squared.items()}
    )
    return pairs.effect(parts, squared_parts(each, squared), pairs.total(size))


def _slopes(metric: Metric, totals: Mapping[str, Floats], options: Options) -> dict[str, Floats]:
    def value(sums: Mapping[str, Floats]) -> Floats:
        return metric.value(Cells(starts=np.arange(len(sums["w"])), sums=sums, options=options))

    return slopes(value, totals, tuple(totals))


def _few(effect: Floats, pairs: Pairs, few: Floats, lone: Bools | None = None) -> Floats:
    """Return effects that allow for few clusters too.

    Where one outcome is all there is, the outcomes say nothing of what clusters share, and it may be all.
    """
    if lone is not None:
        effect = np.where(lone, np.maximum(effect, pairs.alike()), effect)
    return effect * few


def _score_effects(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, names: Sequence[str], options: Options, tail: float
) -> dict[str, Floats]:
    """Return the effects of what is a sum over rows once all scores of a segment are known."""
    raw = "_cf_z" if table.has_logits else "_cf_p"
    used = used_rows(table, rows, [*table.group_columns, "_cf_cluster", *dict.fromkeys(("_cf_p", raw)), "_cf_y"])
    present, segment = np.unique(segment_codes(used, table, groups), return_inverse=True)
    weight = used["_cf_w"].to_numpy() if table.weighted else np.ones(len(used))
    of = _Rows(
        segment=segment,
        segments=len(present),
        cluster=cluster_ranks(used["_cf_cluster"]),
        label=used["_cf_y"].to_numpy(),
        weight=weight,
        squared=squared_weights(table, weight),
        counts_rows=table.roles.counts_rows,
    )
    made: dict[str, Floats] = {}
    if "auc" in names:
        made["auc"] = of.area(used[raw].to_numpy(), tail)
    lines = [name for name in names if name != "auc"]
    if lines:
        made |= of.lines(used["_cf_p"].to_numpy(), lines, options.floor, tail)
    found = {name: np.full(len(groups), np.inf) for name in made}
    for name, effect in made.items():
        found[name][present] = effect
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """The rows of segments that have some."""

    segment: Ints
    segments: int
    cluster: Ints
    label: Floats
    weight: Floats
    squared: Floats
    counts_rows: bool

    def pairs(self) -> tuple[Pairs, Ints]:
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
        total, squares = (np.bincount(of_row, values, len(pairs.unit)) for values in (parts, single))
        return pairs.effect(total.astype(np.float64), squares.astype(np.float64), scale)

    def total(self, values: Floats) -> Floats:
        return np.bincount(self.segment, values, self.segments).astype(np.float64)

    def area(self, score: Floats, tail: float) -> Floats:
        """Return the effect of the area under the ROC curve, its clusters those of the class with fewer."""
        pairs, of_row = self.pairs()
        parts, size = area_parts(Units.of_rows(self.segment, self.weight), score, self.label)
        effective = []
        for chosen in (self.label, 1.0 - self.label):
            sums = (np.bincount(of_row, chosen * values, len(pairs.unit)) for values in (self.weight, self.squared))
            effective.append(pairs.effective(*(values.astype(np.float64) for values in sums)))
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


def vector_effects(sample: Scored, metrics: Sequence[Metric], *, level: float, counts_rows: bool) -> dict[str, Floats]:
    """Return the effects of means over whole score vectors, of the segments of a sample."""
    vectors = sample.vectors
    assert vectors.cluster is not None  # noqa: S101  for the type checker: nobody asks otherwise
    rows = _Rows(
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
        if not clusterable(metric) or metric.interval is None:
            continue
        with np.errstate(invalid="ignore"):
            values = metric.value(single)
            parts = share * (values - vectors.mean(values)[vectors.segment])
        size = rows.total((share * np.nan_to_num(values, posinf=0.0)) ** 2 * (vectors.squared / vectors.weight**2))
        found[metric.name] = _few(rows.effect(pairs, of_row, parts, size), pairs, few, lone)
    return found


def inflated(sample: Sample, effect: Floats, *, own: Sequence[str] = ()) -> Sample:
    """Return a sample whose variances are larger by a factor for each segment: the effect of clusters.

    `own` are sums of squares that only one metric has.
    """
    if isinstance(sample, Tallied):
        tally = sample.tally
        by = tally.spread(effect)
        wide = replace(tally, squared=tally.squared * by, squared_positive=tally.squared_positive * by)
        return Tallied(tally=wide, is_logit=sample.is_logit, options=sample.options)
    if isinstance(sample, Scored):
        vectors = sample.vectors
        return replace(sample, vectors=replace(vectors, squared=vectors.squared * effect[vectors.segment]))
    assert isinstance(sample, Cells)  # noqa: S101  for the type checker: no other sample is made here
    by = np.repeat(effect, sizes_of(sample.starts, len(sample.sums["w"])))
    sums = {
        name: values * by if name.startswith("w2") or name in own else values for name, values in sample.sums.items()
    }
    return Cells(starts=sample.starts, sums=sums, options=sample.options)
