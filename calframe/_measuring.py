"""Groups, tallies and vectors to the columns of a result: every metric, segment by segment, in few passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import BinChoice
from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import Column
from calframe._effects._metrics import effects_of
from calframe._effects._rows import vector_effects
from calframe._effects._samples import inflated
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._logistic import rows_at_ends
from calframe._kernels._tally import Tally
from calframe._notes import Notes, at_ends
from calframe._reading import Matrix, by_width, read_matrix, read_tallies
from calframe._registry import Cells, Metric, Options, Reads, Sample, Scored, Tallied, Term
from calframe._table import Table
from calframe._typing import Bools, Floats, Ints

_ROUNDING = 1e-12  # ends of intervals are off by less


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a table.

    Attributes
    ----------
    asked : tuple of Metric
        The metrics, in order.
    level : float or None
        The confidence level of intervals.
    clustered : bool
        Whether these allow for clusters of rows.
    options : Options
        What the user has set.
    choice : BinChoice
        How bins are made.
    """

    asked: tuple[Metric, ...]
    level: float | None
    options: Options
    choice: BinChoice
    clustered: bool = False

    def reading(self, *kinds: Reads) -> list[Metric]:
        """Return the metrics that read one of these."""
        return [metric for metric in self.asked if metric.reads in kinds]

    @property
    def equal_mass(self) -> bool:
        """Whether some metric needs bins of equal weight."""
        return self.choice.fixed is None and any(metric.reads == "bins" for metric in self.asked)

    @property
    def needs_rows(self) -> bool:
        """Whether sums over bins that are known beforehand are not enough."""
        return self.equal_mass or self.clustered or bool(self.reading("tally", "ranks", "vectors"))

    def summed(self) -> list[Metric]:
        """Return the metrics that one aggregate by segment and bin serves."""
        return self.reading("sums") if self.choice.fixed is None else self.reading("sums", "bins")

    def terms(self) -> tuple[str, ...]:
        """Return the row terms of that aggregate."""
        terms: dict[str, None] = {}
        for metric in self.summed():
            terms |= dict.fromkeys(metric.terms)
            if self.level is not None and metric.interval is not None:
                terms |= dict.fromkeys(metric.interval_terms)
        return tuple(terms)

    def own_terms(self) -> dict[str, Term]:
        """Return the row terms that do not ship with the package."""
        return {name: term for metric in self.asked for name, term in metric.own_terms.items()}

    def columns(self) -> list[str]:
        """Return the names of the columns of the result, metrics and intervals in the order asked."""
        ends = [""] if self.level is None else ["", "_low", "_high"]
        return [f"{metric.name}{end}" for metric in self.asked for end in ends]


@dataclass(slots=True, kw_only=True)
class Measured:
    """The values found, one a segment.

    Attributes
    ----------
    values : dict of str to ndarray
        Metrics and the ends of their intervals by column name; NaN where undefined.
    remarks : list of (ndarray of int64, str)
        What is to be said of some segments.
    impossible : int
        Rows that were seen to give what happened the probability 0.
    effects : dict of str to ndarray, or None
        By metric, what clusters divide the effective rows of its interval by; those without an entry have no interval.
        None where rows are independent.
    """

    values: dict[str, Floats]
    remarks: list[tuple[Ints, Callable[[int], str]]] = field(default_factory=list)
    impossible: int = 0
    effects: dict[str, Floats] | None = None

    def put(self, request: Request, metrics: Sequence[Metric], segments: Ints | slice, sample: Sample) -> None:
        """Write what some metrics say of a sample of some segments."""
        for metric in metrics:
            self.values[metric.name][segments] = metric.value(sample)
            if request.level is not None and metric.interval is not None:
                value = self.values[metric.name][segments]
                low, high = _tidy(value, *self._ends(metric, segments, sample, request.level), metric)
                self.values[f"{metric.name}_low"][segments] = low
                self.values[f"{metric.name}_high"][segments] = high

    def _ends(self, metric: Metric, segments: Ints | slice, sample: Sample, level: float) -> tuple[Floats, Floats]:
        """Return the interval of a metric; NaN where clusters leave none."""
        assert metric.interval is not None  # noqa: S101  for the type checker: the caller has looked
        if self.effects is None:
            return metric.interval(sample, level)
        effect = self.effects.get(metric.name)
        if effect is None:
            unknown = np.full_like(self.values[metric.name][segments], np.nan)
            return unknown, unknown
        known, own = np.isfinite(effect[segments]), [name for name in metric.interval_terms if name in metric.own_terms]
        wide = inflated(sample, np.where(known, effect[segments], 1.0), own=own)
        low, high = metric.interval(wide, level)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _tidy(value: Floats, low: Floats, high: Floats, metric: Metric) -> tuple[Floats, Floats]:
    """Return the ends of an interval within the range of the metric, a value that rounding put outside inside.

    What has no value has no interval.
    """
    unknown = np.isnan(value)
    low, high = np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)
    room = _ROUNDING * np.maximum(np.abs(value), 1.0)
    with np.errstate(invalid="ignore"):
        low = np.where((low > value) & (low - value <= room), value, low)
        high = np.where((high < value) & (value - high <= room), value, high)
    return np.maximum(low, metric.low), np.minimum(high, metric.high)


def cells_of(table: Table, request: Request, rows: nw.LazyFrame[Any] | None = None) -> nw.LazyFrame[Any]:
    """Return the aggregate that a request needs, from the table itself or from clean rows that have been read."""
    bins = request.choice.fixed if any(metric.reads == "bins" for metric in request.asked) else None
    return cells_plan(table, request.terms(), bins=bins, clip=request.options.clip, own=request.own_terms(), rows=rows)


def measured_cells(table: Table, cells: nw.DataFrame[Any], request: Request) -> tuple[Groups, Measured]:
    """Return the segments of a table, and what its sums say of them."""
    groups = read_groups(table, cells, request.terms())
    found = Measured(values={name: np.full(len(groups), np.nan) for name in request.columns()})
    _put_sums(found, request, groups)
    return groups, found


def _put_sums(found: Measured, request: Request, groups: Groups) -> None:
    sample = Cells(starts=groups.cells.starts, sums=groups.cells.sums, options=request.options)
    found.put(request, request.summed(), slice(None), sample)
    if "impossible" in sample.sums:
        found.impossible = int(sample.sums["impossible"].sum())


def measured_rows(table: Table, rows: nw.LazyFrame[Any], request: Request) -> tuple[Groups, Measured]:
    """Return the segments of a table, and all that its rows say of them."""
    groups = read_groups(table, table.collect(cells_of(table, request, rows)), request.terms())
    found = Measured(values={name: np.full(len(groups), np.nan) for name in request.columns()})
    if request.clustered and request.level is not None:
        found.effects = effects_of(table, rows, groups, request.asked, request.options, level=request.level)
    _put_sums(found, request, groups)
    _put_tallies(found, request, table, rows, groups)
    if request.reading("vectors"):
        for narrow, some in by_width(table, rows):
            matrix = read_matrix(table, some, groups)
            _put_vectors(found, request, matrix, narrow=narrow, counts_rows=table.roles.counts_rows)
    return groups, found


def _put_tallies(found: Measured, request: Request, table: Table, rows: nw.LazyFrame[Any], groups: Groups) -> None:
    ranks = request.reading("ranks")
    by_tally = request.reading("tally") + ([] if table.has_logits else ranks)
    if by_tally or request.equal_mass:
        for segments, tally in read_tallies(table, rows, groups):
            found.put(request, by_tally, segments, Tallied(tally=tally, options=request.options))
            _say_ends(found, request, segments, tally)
            if request.equal_mass:
                _put_equal_mass(found, request, segments, tally)
    if table.has_logits and ranks:
        for segments, tally in read_tallies(table, rows, groups, by_logit=True):
            found.put(request, ranks, segments, Tallied(tally=tally, is_logit=True, options=request.options))


def notes(groups: Groups, found: Measured, request: Request, *, counts_rows: bool) -> list[str | None]:
    """Say per segment what is missing or undefined; None where there is nothing to say.

    Weights that do not count rows are importances.
    """
    made = Notes.of_counts(groups.n, groups.n_zero)
    for segments, text in found.remarks:
        for place, i in enumerate(segments):
            made.parts[i].append(text(place))
    for said, where in _gaps_of(found, request):
        made.add(said, where & (groups.n > 0))
    if not counts_rows:
        counting = [metric.name for metric in request.asked if metric.counts_rows]
        made.add_scale(counting, groups.cells.total("w"), groups.n)
    return made.lines()


def _gaps_of(found: Measured, request: Request) -> list[tuple[str, Any]]:
    """Say of each metric where it is undefined, and which metrics have no interval."""
    values = {metric.name: np.isnan(found.values[metric.name]) for metric in request.asked}
    said = [(f"{metric.name}: {metric.undefined}", values[metric.name]) for metric in request.asked if metric.undefined]
    without = [metric.name for metric in request.asked if request.level is not None and metric.interval is None]
    if without:
        said.append((f"no interval for {', '.join(without)}", np.ones_like(values[without[0]])))
    with_ends = [metric for metric in request.asked if request.level is not None and metric.interval is not None]
    return [*said, *_missing_ends(found, with_ends, values)]


def _missing_ends(
    found: Measured, metrics: Sequence[Metric], undefined: Mapping[str, Bools]
) -> Iterator[tuple[str, Bools]]:
    """Say which metrics that are defined have no interval, and what it takes."""
    effects = found.effects
    apart = [metric.name for metric in metrics if effects is not None and metric.name not in effects]
    if apart:
        yield (
            f"no interval for {', '.join(apart)}: rows are in clusters",
            ~np.all([undefined[m] for m in apart], axis=0),
        )
    for metric in (metric for metric in metrics if metric.name not in apart):
        missing = np.isnan(found.values[f"{metric.name}_low"]) & ~undefined[metric.name]
        needs = metric.interval_needs if effects is None else "more clusters"
        yield f"no interval for {metric.name}: it needs {needs}", missing


def result_columns(found: Measured, request: Request) -> Mapping[str, Column]:
    """Return the values in the order asked."""
    return {name: found.values[name] for name in request.columns()}


def _say_ends(found: Measured, request: Request, segments: Ints, tally: Tally) -> None:
    """Say where rows with a score of 0 or 1 have most say in a fit to logits."""
    fits = [found.values[metric.name][segments] for metric in request.asked if metric.logarithms]
    if not fits:
        return
    floor = request.options.floor
    rows = rows_at_ends(tally, floor) * ~np.isnan(fits).all(axis=0)
    there = np.flatnonzero(rows)
    found.remarks.append((segments[there], lambda i: at_ends(int(rows[there[i]]), floor)))


def _put_equal_mass(found: Measured, request: Request, segments: Ints, tally: Tally) -> None:
    bins = equal_mass(tally, request.choice.quantiles)
    sample = Cells(starts=bins.starts, sums=bins.sums, options=request.options)
    found.put(request, request.reading("bins"), segments, sample)
    filled = bins.sizes
    fewer = np.flatnonzero(filled < bins.asked)
    if len(fewer):
        counts = [(filled[i], bins.asked[i]) for i in fewer]
        found.remarks.append((segments[fewer], lambda i: f"{counts[i][0]} of {counts[i][1]} bins have rows"))


def _put_vectors(found: Measured, request: Request, matrix: Matrix, *, narrow: bool, counts_rows: bool) -> None:
    if not len(matrix.segments):
        return
    fixed = request.choice.fixed
    sample = Scored(
        vectors=matrix.vectors,
        bin_of=request.choice.finder(narrow=narrow),
        n_bins=0 if fixed is None else fixed.count,
        quantiles=request.choice.quantiles,
        posterior=matrix.posterior,
        surprise=matrix.surprise,
        options=request.options,
    )
    if found.effects is not None and request.level is not None:
        effects = vector_effects(sample, request.reading("vectors"), level=request.level, counts_rows=counts_rows)
        for name, effect in effects.items():
            found.effects[name][matrix.segments] = effect
    found.put(request, request.reading("vectors"), matrix.segments, sample)
    impossible = matrix.vectors.happened() <= 0.0 if matrix.surprise is None else np.isinf(matrix.surprise)
    found.impossible = max(found.impossible, int(impossible.sum()))  # of one column the sums have counted them already
