"""What is found of two models, metric by metric, and the table of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calframe._binning import BinChoice
from calframe._comparing._measures import FOR_CORRELATION, Ends, Linear, Measuring, intervals, linear, measurings
from calframe._comparing._pairs import Pairs
from calframe._comparing._vectors import as_sums, row_terms
from calframe._effects._samples import inflated
from calframe._registry import Metric, Options, Sample, Term
from calframe._testing._delong import FEW_OF_CLASS, area_difference
from calframe._testing._draws import SMALL
from calframe._testing._paired import (
    FEW_ALIKE,
    FEW_UNITS,
    matched_interval,
    paired,
)
from calframe._typing import Bools, Floats

TARGETS = {"zero": 0.0, "one": 1.0}
_T, _DELONG, EXCHANGE = "t", "delong", "exchange"
INFINITE = "infinite, so nothing is known of the difference (clip= makes it finite)"
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
    alike : bool
        Whether its intervals are as wide as if all rows of a cluster were alike.
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
    alike: bool = False

    @property
    def endless(self) -> Bools:
        """Whether either value is infinite; of metrics of the user's own only the user can tell."""
        return (np.isinf(self.first) | np.isinf(self.second)) & (not self.metric.own_terms)

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

    def mirrored(self, where: Bools) -> Self:
        """Return the same with the models the other way round in some segments."""
        first, second = np.where(where, (self.second, self.first), (self.first, self.second))
        low, high = np.where(where, (0.0 - self.high, 0.0 - self.low), (self.low, self.high))
        return replace(self, first=first, second=second, low=low, high=high)

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
    further : int
        How often the models change places again where the first p-value is small, as `calframe._testing._draws.staged`
        does; 0 for never.
    done : callable, optional
        Told after each chunk of draws which share of the work that was.
    """

    pairs: Pairs
    choice: BinChoice
    options: Options
    level: float
    further: int = 0
    done: Callable[[float], None] | None = None

    def all_of(self, asked: Sequence[Metric]) -> list[Found]:
        """Return what is found of each metric, in order."""
        terms = self._terms(asked)
        if self.pairs.table.view == "vectors":
            asked = [as_sums(metric) for metric in asked]
        found = {metric.name: self._sum(metric, terms) for metric in asked if metric.reads == "sums"}
        found |= {metric.name: self._area(metric) for metric in asked if metric.name == "auc"}
        rest = [metric for metric in asked if metric.name not in found]
        for measuring in measurings(self.pairs, rest, terms, self.choice, self.options):
            part = replace(self, done=_share_of(self.done, len(measuring.metrics) / len(rest)))
            found |= part._measured(measuring, terms)  # noqa: SLF001  the same, telling of its share
        return [_within_range(found[metric.name]).mirrored(self.pairs.turned) for metric in asked]

    def _terms(self, asked: Sequence[Metric]) -> dict[str, Floats]:
        if self.pairs.table.view == "vectors":
            return row_terms(self.pairs, asked, self.options)
        summed = [metric for metric in asked if metric.reads in {"sums", "bins"}]
        if not summed:
            return {}
        names = {name: None for metric in summed for name in ("w2", *metric.terms, *metric.interval_terms)}
        own: dict[str, Term] = {name: term for metric in summed for name, term in metric.own_terms.items()}
        terms = self.pairs.terms(tuple(names), own, clip=self.options.clip)
        return terms if self.pairs.table.weighted else terms | {"n": terms["w"], "w2": terms["w"]}

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
            law=np.where(few, EXCHANGE, _T),
            beyond=self._beyond(metric, line),
            remarks=(
                *([(f"{metric.name}: {metric.undefined}", undefined)] if metric.undefined else []),
                (f"no interval for {metric.name}: it needs more rows", np.isnan(low) & ~endless & ~undefined),
                (f"{metric.name}: {INFINITE}", endless),
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
        quiet = replace(self, done=None)
        found = quiet._exchanged([metric], terms, {metric.name: value}, few)  # noqa: SLF001  the same, but for progress
        return np.where(few, found[metric.name], pvalue)

    def _exchanged(
        self, metrics: Sequence[Metric], terms: Mapping[str, Floats], seen: Mapping[str, Floats], where: Bools
    ) -> dict[str, Floats]:
        """Return the p-values of exchanged models in some segments, by few draws, or by many where these matter."""
        found = self._drawn(metrics, terms, seen, where, self.options.n_resamples, self._rng())
        if not self.further:
            return found
        again = [metric for metric in metrics if (found[metric.name] <= SMALL).any()]
        if not again:
            self._told(self.further)
            return found
        small = np.any([found[metric.name] <= SMALL for metric in again], axis=0)
        rng = np.random.default_rng([self.options.seed, 1])
        many = self._drawn(again, terms, seen, small, self.further, rng)
        return found | {name: np.where(found[name] <= SMALL, value, found[name]) for name, value in many.items()}

    def _drawn(
        self,
        metrics: Sequence[Metric],
        terms: Mapping[str, Floats],
        seen: Mapping[str, Floats],
        where: Bools,
        draws: int,
        rng: np.random.Generator,
    ) -> dict[str, Floats]:
        """Return p-values of exchanged models in some segments, NaN in all others."""
        (measuring,) = measurings(
            self.pairs.only(where), metrics, self._needed(metrics, terms, where), self.choice, self.options
        )
        asked = {metric.name: seen[metric.name][where] for metric in metrics}
        out = {name: np.full(len(where), np.nan) for name in asked}
        for name, value in measuring.pvalues(asked, draws, rng, done=self._told).items():
            out[name][where] = value
        return out

    def _needed(self, metrics: Sequence[Metric], terms: Mapping[str, Floats], where: Bools) -> dict[str, Floats]:
        """Return the terms that the values of some metrics are made of, of the rows of some segments."""
        names = {"n", "w", "w2"}.union(*(metric.terms for metric in metrics))
        rows = np.tile(where[self.pairs.units.segment], 2)
        whole = {id(values): values for name, values in terms.items() if name in names}
        some = {key: values if where.all() else values[rows] for key, values in whole.items()}
        return {name: some[id(values)] for name, values in terms.items() if name in names}

    def _told(self, draws: int) -> None:
        """Tell of some draws, of all that one kind of metric takes."""
        if self.done is not None:
            self.done(draws / (self.options.n_resamples + self.further + FOR_CORRELATION))

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
            law=np.where(few, EXCHANGE, _DELONG),
            remarks=(
                (f"{metric.name}: {metric.undefined}", undefined),
                (f"no interval for {metric.name}: it needs {_FEWEST:g} rows of either class", unknown),
            ),
        )

    def _measured(self, measuring: Measuring, terms: Mapping[str, Floats]) -> dict[str, Found]:
        """Compare anything else: by exchanges, with an interval from those of each model."""
        samples = measuring.layout.seen()
        first, second = map(measuring.values, samples)
        first, second = ({name: value[0] for name, value in side.items()} for side in (first, second))
        with np.errstate(invalid="ignore"):
            seen = {name: second[name] - value for name, value in first.items()}
        every = np.ones(len(self.pairs.present), dtype=np.bool_)
        pvalues = self._exchanged(measuring.metrics, terms, seen, every)
        ends = self._ends(measuring, samples, terms)
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
                law=np.full(len(nothing), EXCHANGE),
                beyond=end.beyond,
                remarks=self._remarks(metric, undefined, np.isnan(end.low)),
                alike=self.pairs.table.cluster is not None and bool((~np.isnan(end.low)).any()),
            )
        return found

    def _ends(
        self, measuring: Measuring, samples: tuple[Sample, Sample], terms: Mapping[str, Floats]
    ) -> dict[str, Ends]:
        """Return the intervals of those metrics that have one."""
        some = tuple(metric for metric in measuring.metrics if metric.interval is not None)
        if not some:
            self._told(FOR_CORRELATION)
            return {}
        draws, every = min(self.options.n_resamples, FOR_CORRELATION), np.ones(len(self.pairs.present), dtype=np.bool_)
        (drawn,) = measurings(self.pairs, some, self._needed(some, terms, every), self.choice, self.options)
        correlation = drawn.correlations(draws, self._rng())
        self._told(FOR_CORRELATION)
        effect = self._cluster_effect()
        wide = inflated(samples[0], effect), inflated(samples[1], effect)
        found = {}
        for metric in some:
            target = TARGETS.get(metric.direction, 0.0)
            ends = intervals(metric, wide, correlation[metric.name], level=self.level, target=target)
            unknown = self._few_of_class(metric) | self._in_blocks(metric)
            low, high = (np.where(unknown, np.nan, end) for end in (ends.low, ends.high))
            found[metric.name] = replace(ends, low=low, high=high)
        return found

    def _few_of_class(self, metric: Metric) -> Bools:
        """Return where a class has too few rows for an interval of a metric of scores in order."""
        units, positive = self.pairs.units, self.pairs.label == 1.0
        fewest = np.minimum(units.effective(positive), units.effective(~positive))
        few: Bools = ~(fewest >= _FEWEST) & (metric.reads in {"tally", "ranks"})
        return few

    def _in_blocks(self, metric: Metric) -> Bools:
        """Return where the interval of a metric is from blocks of rows, and clusters cross them."""
        crossed = self.pairs.units.sizes < np.bincount(self.pairs.units.segment)
        return crossed & (metric.name == "skce")

    def _remarks(self, metric: Metric, undefined: Bools, without: Bools) -> tuple[tuple[str, Bools], ...]:
        said = [(f"{metric.name}: {metric.undefined}", undefined)] if metric.undefined else []
        no = f"no interval for {metric.name}"
        if metric.interval is None:
            return (*said, (f"{no}: none is known to be honest", ~undefined))
        without, few, blocks = without & ~undefined, self._few_of_class(metric), self._in_blocks(metric)
        return (
            *said,
            (f"{no}: it needs {_FEWEST:g} rows of either class", without & few),
            (f"{no}: it needs independent rows", without & blocks),
            (f"{no}: it needs {metric.interval_needs}", without & ~few & ~blocks),
        )

    def _cluster_effect(self) -> Floats:
        """Return by how much clusters may raise variances: as if all rows of one were alike."""
        units = self.pairs.units
        return units.squares(units.weight) / units.total(self.pairs.squared)


def _share_of(done: Callable[[float], None] | None, share: float) -> Callable[[float], None] | None:
    return None if done is None else lambda of_it: done(share * of_it)


def _within_range(found: Found) -> Found:
    """Return what is found with its interval cut where no difference can be."""
    span = found.metric.high - found.metric.low
    return replace(found, low=np.maximum(found.low, -span), high=np.minimum(found.high, span))
