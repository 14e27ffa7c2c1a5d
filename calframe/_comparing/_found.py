"""What is found of two models, metric by metric, and the table of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from calframe._binning import BinChoice
from calframe._closing import Column, closed_frame
from calframe._comparing._layouts import inflated
from calframe._comparing._measures import Ends, Linear, Measuring, intervals, linear, measurings
from calframe._comparing._pairs import Pairs
from calframe._kernels._corrections import Correction, adjusted
from calframe._registry import Metric, Options, Sample, Term
from calframe._testing._delong import FEW_OF_CLASS, area_difference
from calframe._testing._paired import (
    FEW_ALIKE,
    FEW_UNITS,
    matched_interval,
    paired,
)
from calframe._typing import Bools, Floats

TARGETS = {"zero": 0.0, "one": 1.0}
_T, _DELONG, _EXCHANGE = "t", "delong", "exchange"
_ROUNDING = 1e-12  # of a difference that does not vary: its standard error is what arithmetic leaves of 0
_FEWEST = 5.0  # effective units of a class, below which nothing is known of the spread of an area


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What is found of one metric, one value a segment.

    Attributes
    ----------
    metric : Metric
        The metric.
    first, second : ndarray
        Its values.
    low, high, pvalue : ndarray
        The interval of second minus first, and the p-value that they are equal.
    law : ndarray of str
        Where the p-value comes from.
    beyond : (ndarray, ndarray)
        Of a metric that is best at a value: interval of how far both models together lie beyond it.
    remarks : tuple of (str, ndarray of bool)
        What is to be said of some segments.
    """

    metric: Metric
    first: Floats
    second: Floats
    low: Floats
    high: Floats
    pvalue: Floats
    law: Any
    beyond: tuple[Floats, Floats] | None = None
    remarks: tuple[tuple[str, Bools], ...] = ()

    @property
    def difference(self) -> Floats:
        """Second minus first; between two infinite values there is none."""
        with np.errstate(invalid="ignore"):
            return self.second - self.first

    def better(self, pvalue: Floats, alpha: float) -> Floats:
        """Return 1 where the second model is clearly better, -1 where the first is, 0 elsewhere."""
        with np.errstate(invalid="ignore"):
            above = (self.low > 0.0) & (self.difference > 0.0)
            below = (self.high < 0.0) & (self.difference < 0.0)
            side = np.where(pvalue <= alpha, above.astype(np.float64) - below, 0.0)
        if self.metric.direction in TARGETS:
            return -side * self._side_of_target()
        return side * {"higher": 1.0, "lower": -1.0}.get(self.metric.direction, 0.0)

    def _side_of_target(self) -> Floats:
        """Return the side of the target that both models together clearly lie on; 0 where that is not clear."""
        if self.beyond is None:
            return np.zeros(len(self.first))
        with np.errstate(invalid="ignore"):
            return np.where(self.beyond[0] > 0.0, 1.0, np.where(self.beyond[1] < 0.0, -1.0, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparing:
    """How two models are compared.

    Attributes
    ----------
    pairs : Pairs
        The common rows.
    choice : BinChoice
        How scores are binned.
    options : Options
        What the user has set.
    level : float
        Confidence level of the intervals.
    """

    pairs: Pairs
    choice: BinChoice
    options: Options
    level: float

    def all_of(self, asked: Sequence[Metric]) -> list[Found]:
        """Return what is found of each metric, in order."""
        terms = self._terms(asked)
        found = {metric.name: self._sum(metric, terms) for metric in asked if metric.reads == "sums"}
        found |= {metric.name: self._area(metric) for metric in asked if metric.name == "auc"}
        rest = [metric for metric in asked if metric.name not in found]
        for measuring in measurings(self.pairs, rest, terms, self.choice, self.options):
            found |= self._measured(measuring)
        return [_within_range(found[metric.name]) for metric in asked]

    def _terms(self, asked: Sequence[Metric]) -> dict[str, Floats]:
        summed = [metric for metric in asked if metric.reads in {"sums", "bins"}]
        if not summed:
            return {}
        names = {name: None for metric in summed for name in ("w2", *metric.terms, *metric.interval_terms)}
        own: dict[str, Term] = {name: term for metric in summed for name, term in metric.own_terms.items()}
        return self.pairs.terms(tuple(names), own, clip=self.options.clip)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.options.seed)

    def _sum(self, metric: Metric, terms: Mapping[str, Floats]) -> Found:
        """Compare a function of sums over rows: by Student's t, or exchanges where few units tell."""
        units = self.pairs.units
        line = linear(metric, terms, self.options, self.pairs)
        first, second = line.values
        with np.errstate(invalid="ignore"):
            change, value = line.parts[1] - line.parts[0], second - first
        endless = np.isinf(first) | np.isinf(second)
        change = np.where(np.isfinite(change), change, 0.0)
        found = paired(units, value, change, level=self.level)
        carried = change + units.weight * np.where(endless, 0.0, value / units.total(units.weight))[units.segment]
        few = units.telling(carried) < (FEW_ALIKE if metric.name == "accuracy" else FEW_UNITS)
        with np.errstate(invalid="ignore"):
            few |= ~(found.error > _ROUNDING * np.abs(value))  # all differ by the same
        pvalue = self._with_exchanges(metric, terms, found.pvalue, value, few & ~endless)
        low, high = matched_interval(found, level=self.level) if metric.name == "accuracy" else (found.low, found.high)
        low, high, pvalue = (np.where(endless, np.nan, each) for each in (low, high, pvalue))
        undefined = np.isnan(first) | np.isnan(second)
        return Found(
            metric=metric,
            first=first,
            second=second,
            low=low,
            high=high,
            pvalue=pvalue,
            law=np.where(few, _EXCHANGE, _T),
            beyond=self._beyond(metric, line),
            remarks=(
                *([(f"{metric.name}: {metric.undefined}", undefined)] if metric.undefined else []),
                (f"no interval for {metric.name}: it needs more rows", np.isnan(low) & ~endless & ~undefined),
                (f"{metric.name}: infinite, so nothing is known of the difference; clip= makes it finite", endless),
            ),
        )

    def _beyond(self, metric: Metric, line: Linear) -> tuple[Floats, Floats] | None:
        """Return the interval of how far both models together lie beyond the best value; None where there is none."""
        if metric.direction not in TARGETS:
            return None
        value = line.values[0] + line.values[1] - 2.0 * TARGETS[metric.direction]
        parts = line.parts[0] + line.parts[1]
        found = paired(self.pairs.units, value, np.where(np.isfinite(parts), parts, 0.0), level=self.level)
        return found.low, found.high

    def _with_exchanges(
        self, metric: Metric, terms: Mapping[str, Floats], pvalue: Floats, value: Floats, few: Bools
    ) -> Floats:
        """Return p-values, of some segments those of exchanged models."""
        if not few.any():
            return pvalue
        rows = np.tile(few[self.pairs.units.segment], 2)
        some = {name: values[rows] for name, values in terms.items()}
        (measuring,) = measurings(self.pairs.only(few), [metric], some, self.choice, self.options)
        out = pvalue.copy()
        found = measuring.pvalues({metric.name: value[few]}, self.options.n_resamples, self._rng())
        out[few] = found[metric.name]
        return out

    def _area(self, metric: Metric) -> Found:
        pairs = self.pairs
        area = area_difference(pairs.units, pairs.logit, pairs.label, level=self.level)
        few = (area.fewest < FEW_OF_CLASS) | ~(area.error > 0.0)
        pvalue = self._with_exchanges(metric, {}, area.pvalue, area.second - area.first, few)
        undefined = np.isnan(area.first)
        unknown = (area.fewest < _FEWEST) & ~undefined
        return Found(
            metric=metric,
            first=area.first,
            second=area.second,
            low=np.where(unknown, np.nan, area.low),
            high=np.where(unknown, np.nan, area.high),
            pvalue=pvalue,
            law=np.where(few, _EXCHANGE, _DELONG),
            remarks=(
                (f"{metric.name}: {metric.undefined}", undefined),
                (f"no interval for {metric.name}: it needs {_FEWEST:g} rows of either class", unknown),
            ),
        )

    def _measured(self, measuring: Measuring) -> dict[str, Found]:
        """Compare anything else: by exchanges, with an interval from those of each model."""
        samples = measuring.layout.seen()
        first, second = map(measuring.values, samples)
        first, second = ({name: value[0] for name, value in side.items()} for side in (first, second))
        with np.errstate(invalid="ignore"):
            seen = {name: second[name] - value for name, value in first.items()}
        pvalues = measuring.pvalues(seen, self.options.n_resamples, self._rng())
        ends = self._ends(measuring, samples)
        found = {}
        for metric in measuring.metrics:
            name = metric.name
            nothing = np.full(len(seen[name]), np.nan)
            end = ends.get(name, Ends(low=nothing, high=nothing, beyond=(nothing, nothing)))
            undefined = np.isnan(first[name]) | np.isnan(second[name])
            found[name] = Found(
                metric=metric,
                first=first[name],
                second=second[name],
                low=end.low,
                high=end.high,
                pvalue=pvalues[name],
                law=np.full(len(nothing), _EXCHANGE),
                beyond=end.beyond,
                remarks=self._remarks(metric, undefined, np.isnan(end.low)),
            )
        return found

    def _ends(self, measuring: Measuring, samples: tuple[Sample, Sample]) -> dict[str, Ends]:
        """Return the intervals of those metrics that have one."""
        some = tuple(metric for metric in measuring.metrics if metric.interval is not None)
        if not some:
            return {}
        correlation = replace(measuring, metrics=some).correlations(self.options.n_resamples, self._rng())
        effect = self._cluster_effect()
        wide = inflated(samples[0], effect), inflated(samples[1], effect)
        found = {}
        for metric in some:
            target = TARGETS.get(metric.direction, 0.0)
            ends = intervals(metric, wide, correlation[metric.name], level=self.level, target=target)
            unknown = self._few_of_class(metric)
            low, high = (np.where(unknown, np.nan, end) for end in (ends.low, ends.high))
            found[metric.name] = replace(ends, low=low, high=high)
        return found

    def _few_of_class(self, metric: Metric) -> Bools:
        """Return where a class has too few rows for an interval of a metric of scores in order."""
        units, positive = self.pairs.units, self.pairs.label == 1.0
        fewest = np.minimum(units.effective(positive), units.effective(~positive))
        few: Bools = ~(fewest >= _FEWEST) & (metric.reads != "bins")
        return few

    def _remarks(self, metric: Metric, undefined: Bools, without: Bools) -> tuple[tuple[str, Bools], ...]:
        said = [(f"{metric.name}: {metric.undefined}", undefined)] if metric.undefined else []
        no = f"no interval for {metric.name}"
        if metric.interval is None:
            return (*said, (f"{no}: none is known to be honest", ~undefined))
        without, few = without & ~undefined, self._few_of_class(metric)
        return (
            *said,
            (f"{no}: it needs {_FEWEST:g} rows of either class", without & few),
            (f"{no}: it needs {metric.interval_needs}", without & ~few),
        )

    def _cluster_effect(self) -> Floats:
        """Return by how much clusters may raise variances: as if all rows of one were alike."""
        units = self.pairs.units
        return units.squares(units.weight) / units.total(self.pairs.squared)


def _within_range(found: Found) -> Found:
    """Return what is found with its interval cut where no difference can be."""
    span = found.metric.high - found.metric.low
    return replace(found, low=np.maximum(found.low, -span), high=np.minimum(found.high, span))


def table_of(
    pairs: Pairs,
    asked: Sequence[Metric],
    found: Sequence[Found],
    *,
    models: tuple[str, str],
    correction: Correction,
    alpha: float,
) -> Any:
    """Return one row per segment and metric, in the library of the table that was read."""
    segments, metrics = len(pairs.n), len(asked)

    def flat(name: str) -> Floats:
        if not found:
            return np.full(segments * metrics, np.nan)
        return np.stack([pairs.scatter(getattr(one, name)) for one in found], axis=1).ravel()

    pvalue = flat("pvalue")
    corrected = adjusted(pvalue, correction)
    names: list[str | None] = [metric.name for metric in asked]
    columns: dict[str, Column] = {"metric": names * segments}
    columns |= {name: np.repeat(values, metrics) for name, values in _counts(pairs).items()}
    columns |= {name: flat(name) for name in ("first", "second", "difference", "low", "high")}
    columns |= {"pvalue": pvalue, "pvalue_adjusted": corrected}
    columns |= _words(pairs, found, corrected.reshape(segments, metrics), np.isnan(pvalue), models=models, alpha=alpha)
    segment = np.repeat(np.arange(segments), metrics)
    return closed_frame(pairs.table, pairs.groups, columns, segment=segment).to_native()


def _counts(pairs: Pairs) -> dict[str, Any]:
    counts = {"n": pairs.n, "n_missing": pairs.n_missing}
    if pairs.table.roles.invalid == "drop":
        counts["n_invalid"] = pairs.n_invalid
    return {**counts, "weight_sum": pairs.weight_sum} if pairs.table.weighted else counts


def _words(
    pairs: Pairs,
    found: Sequence[Found],
    corrected: Floats,
    unknown: Bools,
    *,
    models: tuple[str, str],
    alpha: float,
) -> dict[str, list[str | None]]:
    """Return the columns of text: the better model, the law and the note."""
    segments, metrics = corrected.shape
    better: list[list[str | None]] = [[None] * metrics for _ in range(segments)]
    law: list[list[str | None]] = [[None] * metrics for _ in range(segments)]
    notes: list[list[list[str]]] = [[[] for _ in range(metrics)] for _ in range(segments)]
    for i, zero in enumerate(pairs.n_zero):
        said = ["no usable rows"] if pairs.n[i] == 0 else []
        said += [f"{zero} row{'s' if zero > 1 else ''} of weight 0 left out"] if zero else []
        for note in notes[i]:
            note.extend(said)
    first, second = models
    for j, one in enumerate(found):
        sides = one.better(corrected[pairs.present, j], alpha)
        for i, side, rule in zip(pairs.present, sides, one.law, strict=True):
            better[i][j] = second if side > 0 else first if side < 0 else None
            law[i][j] = str(rule)
        for text, where in one.remarks:
            for i in pairs.present[where]:
                notes[i][j].append(text)
    return {
        "better": [name for row in better for name in row],
        "law": [None if gone else name for name, gone in zip(chain.from_iterable(law), unknown, strict=True)],
        "note": ["; ".join(note) or None for row in notes for note in row],
    }
