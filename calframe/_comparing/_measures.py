"""Any measure of two models on common rows: as it is, with an interval, and when rows are exchanged or resampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from calframe._binning import BinChoice
from calframe._comparing._layouts import Laying, Layout
from calframe._comparing._pairs import Pairs
from calframe._comparing._vectors import VectorLayout
from calframe._kernels._delta import slopes
from calframe._registry import Cells, Metric, Options, Sample
from calframe._testing._paired import (
    Estimate,
    Exceedances,
    correlation_of,
    difference_of_intervals,
)
from calframe._typing import Floats

Values: TypeAlias = dict[str, Floats]
_MIDDLE = 1e-6  # the level of an interval that is a point: the median-unbiased estimate, in a test inverted
FOR_CORRELATION = 200  # resamples
_SAME = 1e-9  # relative distance of numbers that are equal but for rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measuring:
    """Metrics that read the same sample, of both models.

    Attributes
    ----------
    pairs : Pairs
        The common rows.
    metrics : tuple of Metric
        The metrics.
    layout : Layout or VectorLayout
        What they read.
    """

    pairs: Pairs
    metrics: tuple[Metric, ...]
    layout: Layout | VectorLayout

    def values(self, sample: Sample) -> Values:
        """Return the metrics, one line a table."""
        return {metric.name: metric.value(sample).reshape(-1, self.pairs.units.segments) for metric in self.metrics}

    def pvalues(self, seen: Values, resamples: int, rng: np.random.Generator, *, done: Callable[[int], None]) -> Values:
        """Return how often a difference is as large as that `seen` where the models change places, unit by unit.

        `done` is told of each number of draws.
        """
        counts = {name: Exceedances(value) for name, value in seen.items()}
        for samples in self.layout.exchanged(resamples, rng):
            first, second = map(self.values, samples)
            for name, count in counts.items():
                with np.errstate(invalid="ignore"):
                    count.add(second[name] - first[name])
            done(len(next(iter(first.values()))))
        return {name: count.pvalue for name, count in counts.items()}

    def correlations(self, resamples: int, rng: np.random.Generator) -> Values:
        """Return how the values of both models go together when units are drawn with replacement."""
        drawn: dict[str, tuple[list[Floats], list[Floats]]] = {metric.name: ([], []) for metric in self.metrics}
        for samples in self.layout.resampled(resamples, rng):
            for side, sample in enumerate(samples):
                for name, value in self.values(sample).items():
                    drawn[name][side].append(np.where(np.isfinite(value), value, np.nan))
        return {name: correlation_of((np.vstack(a), np.vstack(b))) for name, (a, b) in drawn.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """Intervals of one metric: of the difference, and of how far both models together are beyond a target."""

    low: Floats
    high: Floats
    beyond: tuple[Floats, Floats]


def intervals(metric: Metric, samples: Sequence[Sample], correlation: Floats, *, level: float, target: float) -> Ends:
    """Return intervals of the difference of a metric from those of each model.

    Their middles are median-unbiased.
    """
    first, second = (_estimate(metric, sample, level) for sample in samples)
    bound = 0.0 if metric.direction in {"lower", "higher"} else -np.inf  # corrected values may lie below what they mean
    low, high = difference_of_intervals(first, second, correlation, bound=bound)
    together = difference_of_intervals(_shifted(first, target).negative(), _shifted(second, target), -correlation)
    return Ends(low=low, high=high, beyond=together)


def _shifted(estimate: Estimate, by: float) -> Estimate:
    return Estimate(value=estimate.value - by, low=estimate.low - by, high=estimate.high - by)


def _estimate(metric: Metric, sample: Sample, level: float) -> Estimate:
    assert metric.interval is not None  # noqa: S101  for the type checker: the caller has looked
    low, high = metric.interval(sample, level)
    with np.errstate(invalid="ignore"):
        middle = np.mean(metric.interval(sample, _MIDDLE), axis=0)
    low, high = np.maximum(low, metric.low), np.minimum(high, metric.high)
    value = np.where(np.isnan(metric.value(sample)), np.nan, np.clip(middle, low, high))
    return Estimate(value=value, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """A metric as a sum over rows, as far as small changes go.

    Attributes
    ----------
    values : (ndarray, ndarray)
        The metric of the first and of the second model, per segment.
    parts : (ndarray, ndarray)
        What each row adds to it; those of a segment add up to 0.
    """

    values: tuple[Floats, Floats]
    parts: tuple[Floats, Floats]


def linear(metric: Metric, terms: Mapping[str, Floats], options: Options, pairs: Pairs) -> Linear:
    """Return the parts of rows in a function of sums: exactly where it is a mean of rows, else by its slopes.

    A metric is such a mean where the weighted mean of its values on single rows is its value on all of them.
    """
    units, rows = pairs.units, len(pairs.label)
    each = Cells(starts=np.arange(2 * rows), sums=terms, options=options)
    single = metric.value(each)
    halves = (slice(rows), slice(rows, 2 * rows))
    sums = [{name: units.total(term[half]) for name, term in terms.items()} for half in halves]
    values = [_of_sums(metric, options, one) for one in sums]
    with np.errstate(invalid="ignore"):
        means = [units.mean(single[half]) for half in halves]
    total = units.total(units.weight)[units.segment]
    if np.allclose(means, values, rtol=_SAME, atol=_SAME**1.5):
        with np.errstate(invalid="ignore"):
            parts = [
                units.weight * (single[half] - value[units.segment]) / total
                for half, value in zip(halves, means, strict=True)
            ]
    else:
        used = ("w", *metric.terms)
        found = [slopes(partial(_of_sums, metric, options), one, used) for one in sums]
        parts = [
            np.sum([slope[units.segment] * terms[name][half] for name, slope in of.items()], axis=0)
            for of, half in zip(found, halves, strict=True)
        ]
    return Linear(values=(values[0], values[1]), parts=(parts[0], parts[1]))


def _of_sums(metric: Metric, options: Options, sums: Mapping[str, Floats]) -> Floats:
    return metric.value(Cells(starts=np.arange(len(sums["w"])), sums=sums, options=options))


def measurings(
    pairs: Pairs, metrics: Sequence[Metric], terms: Mapping[str, Floats], choice: BinChoice, options: Options
) -> Iterator[Measuring]:
    """Give the metrics that are no means of rows, those that read the same sample together."""
    lay_out = Laying(pairs=pairs, terms=terms, choice=choice, options=options)
    fixed = choice.fixed is not None
    kinds: dict[str, Callable[[], Layout | VectorLayout]] = {
        "sums": lay_out.sums,
        "bins": lay_out.bins if fixed else lay_out.equal_mass,
        "tally": lambda: lay_out.tally(pairs.score),
        "ranks": lambda: lay_out.tally(pairs.logit, is_logit=pairs.table.has_logits),
        "vectors": lambda: VectorLayout.of_pairs(pairs, choice, options),
    }
    for kind, made in kinds.items():
        some = tuple(metric for metric in metrics if metric.reads == kind)
        if some:
            yield Measuring(pairs=pairs, metrics=some, layout=made())
