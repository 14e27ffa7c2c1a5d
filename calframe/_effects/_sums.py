"""Design effects of functions of sums, by the delta method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._cells import Groups
from calframe._effects._apart import read_apart
from calframe._kernels._clusters import Pairs, few_clusters
from calframe._kernels._delta import slopes, squared_parts
from calframe._registry import Cells, Metric, Options, Term
from calframe._table import Table
from calframe._terms import products
from calframe._typing import Bools, Floats

_OF_SCORES = frozenset({"mean_score", "sharpness"})  # alone: their intervals do not ask which outcomes were seen
_ROUNDING = 1e-12  # of a sum of weights, relatively


def effects_of_sums(
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
    return widths(metrics, pairs, apart.sums, options, tail)


def widths(
    metrics: Sequence[Metric], pairs: Pairs, sums: Mapping[str, Floats], options: Options, tail: float
) -> dict[str, Floats]:
    """Return the effects of functions of sums from those of each pair, ``wy`` and the products of terms among them."""
    positive, weight = pairs.total(sums["wy"]), pairs.total(sums["w"])
    lone = np.minimum(positive, weight - positive) <= _ROUNDING * weight
    few, found = few_clusters(pairs.effective(), tail), {}
    for metric in metrics:
        effect = _effect_of_sums(metric, pairs, sums, options)
        found[metric.name] = widened(effect, pairs, few, None if metric.name in _OF_SCORES else lone)
    return found


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


def widened(effect: Floats, pairs: Pairs, few: Floats, lone: Bools | None) -> Floats:
    """Return effects that allow for few clusters too.

    Where one outcome is all there is, the outcomes say nothing of what clusters share, and it may be all.
    """
    if lone is not None:
        effect = np.where(lone, np.maximum(effect, pairs.alike()), effect)
    return effect * few
