"""Lines against their reference: scores, gaps, and what the change of gap and Brier score is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calframe._binning import Bins
from calframe._drifting._numbers import Lines, Options, found_bins
from calframe._drifting._reference import Reference
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._testing._change import Parts, change_parts
from calframe._testing._distances import (
    Pairs,
    bin_weights,
    kolmogorov_smirnov,
    smirnov_pvalue,
    stability_index,
    wasserstein,
)
from calframe._testing._gathering import gathered
from calframe._testing._rates import LEAST_EVENTS, LEAST_ROWS, change_pvalue
from calframe._typing import Bools, Floats, Ints

NO_ROWS = "no rows used"
NO_REFERENCE = "no rows in the reference"
IN_REFERENCE = "part of the reference"
FEW_EVENTS = f"fewer than {LEAST_EVENTS:g} expected positives or negatives: gaps are not compared"
OUTWEIGHED = f"weights are worth fewer than {LEAST_ROWS:g} rows: no p-value of gap 0"
NO_LAW = "no p-value of ks: the distance of weighted rows has no known law"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Lines and what they are compared with.

    Attributes
    ----------
    lines : ndarray of int64
        The lines that are compared.
    inside : ndarray of int64
        The lines that belong to their reference themselves.
    pairs : Pairs
        Their scores and those of the references.
    bins, reference_bins : ndarray of int64
        The bins of the stability index.
    count : int
        The number of these bins.
    """

    lines: Ints
    inside: Ints
    pairs: Pairs
    bins: Ints
    reference_bins: Ints
    count: int


def compared(lines: Lines, reference: Reference, second: tuple[Tally, Ints] | None, options: Options) -> Comparison:
    """Find the reference of each line, and freeze its bins."""
    tally, of, inside = _references(lines, reference, second)
    known = of >= 0
    pairs = Pairs.of_tallies(lines.tally.only(known) if known.any() else _none(lines.tally), tally, of[known])
    chosen = options.psi_bins
    if isinstance(chosen, Bins):
        series = lines.series[lines.filled[known]]
        narrow = lines.reading.narrow
        owner = np.zeros(len(tally), dtype=np.int64)
        owner[pairs.of] = series
        frozen = found_bins(chosen, tally.score, tally.spread(narrow[owner]) if len(tally) else np.zeros(0, np.bool_))
        bins = found_bins(chosen, pairs.current.score, pairs.current.spread(narrow[series]))
        count = chosen.count
    else:
        frozen = quantile_bins(tally.weight, tally.starts, np.full(len(tally), chosen)) if len(tally) else _no_cells()
        bins, count = pairs.bins(frozen) if known.any() else _no_cells(), chosen
    return Comparison(
        lines=lines.filled[known],
        inside=lines.filled[inside],
        pairs=pairs,
        bins=bins,
        reference_bins=frozen,
        count=count,
    )


def _no_cells() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _none(tally: Tally) -> Tally:
    return gathered(tally, _no_cells(), _no_cells())[0]


def _references(lines: Lines, reference: Reference, second: tuple[Tally, Ints] | None) -> tuple[Tally, Ints, Bools]:
    """Return the references, that of each line with rows (-1 for none), and which lines are part of theirs."""
    series, period = lines.series[lines.filled], lines.period[lines.filled]
    none = np.zeros(len(series), dtype=np.bool_)
    if reference.kind == "rolling":
        return (*_rolling(lines, reference.window), none)
    if second is None:
        inside = reference.periods[period] if len(period) else none
        tally, numbers = gathered(lines.tally, np.flatnonzero(inside), series[inside])
    else:
        inside, (tally, numbers) = none, second
    place = np.full(int(max(series.max(initial=-1), numbers.max(initial=-1))) + 1, -1)
    place[numbers] = np.arange(len(numbers))
    return tally, np.where(inside, -1, place[series]), inside


def _rolling(lines: Lines, window: int) -> tuple[Tally, Ints]:
    """Gather for each line the lines of its series in the periods before."""
    series, period = lines.series[lines.filled], lines.period[lines.filled]
    count = max(len(lines.reading.days.periods.starts), 1)
    place = np.full(((series.max(initial=0) + 1), count), -1)
    place[series, period] = np.arange(len(series))
    sources, targets = [], []
    for back in range(1, min(window, count) + 1):
        before = np.where(period >= back, place[series, np.maximum(period - back, 0)], -1)
        sources.append(before[before >= 0])
        targets.append(np.flatnonzero(before >= 0))
    tally, numbers = gathered(lines.tally, np.concatenate(sources), np.concatenate(targets))
    of = np.full(len(series), -1)
    of[numbers] = np.arange(len(numbers))
    return tally, of


def comparison_columns(lines: Lines, found: Comparison, options: Options) -> dict[str, Floats]:
    """Return the distances of scores and gaps from the reference, and the p-values of both."""
    pairs = found.pairs
    names = ("psi", "psi_empty_bins", "wasserstein", "ks", "ks_pvalue", "ks_exact", "gap_change", "pvalue")
    if not len(found.lines):
        return {name: np.full(len(lines), np.nan) for name in names}
    weights = (
        bin_weights(pairs.reference, found.reference_bins, found.count)[pairs.of],
        bin_weights(pairs.current, found.bins, found.count),
    )
    distance = kolmogorov_smirnov(pairs)
    without_law = lines.reading.table.weighted and lines.reading.table.roles.weight_kind == "importance"
    unknown = np.full(len(distance), np.nan)
    ks_pvalue, exact = (unknown, unknown) if without_law else smirnov_pvalue(pairs, distance)
    values = (
        stability_index(*weights, floor=options.psi_floor),
        ((weights[0] == 0.0) != (weights[1] == 0.0)).sum(axis=1).astype(np.float64),
        wasserstein(pairs),
        distance,
        ks_pvalue,
        exact.astype(np.float64),
        _gap(pairs.current) - _gap(pairs.reference)[pairs.of],
        change_pvalue(pairs.current, pairs.reference, pairs.of)[0],
    )
    return {name: lines.spread(value, found.lines) for name, value in zip(names, values, strict=True)}


def _gap(tally: Tally) -> Floats:
    return tally.total(tally.weight * tally.score - tally.positive) / tally.total(tally.weight)


def parts_of(found: Comparison) -> tuple[Parts, Parts] | None:
    """Return what the changes of gap and Brier score of the compared lines are made of; None where there are none."""
    if not len(found.lines):
        return None
    pairs = found.pairs
    return change_parts(pairs.current, found.bins, pairs.reference, found.reference_bins, pairs.of, found.count)


def notes(lines: Lines, found: Comparison, columns: dict[str, Floats]) -> list[str | None]:
    """Say what is missing in a line, and why."""
    said: list[list[str]] = [[] for _ in range(len(lines))]
    filled, compared_, inside = (
        np.isin(np.arange(len(lines)), one) for one in (lines.filled, found.lines, found.inside)
    )
    without_law = compared_ & np.isnan(columns["ks_pvalue"])
    empty = np.nan_to_num(columns["psi_empty_bins"])
    for where, words in (
        (~filled, NO_ROWS),
        (inside, IN_REFERENCE),
        (filled & ~compared_ & ~inside, NO_REFERENCE),
        (compared_ & np.isnan(columns["pvalue"]), FEW_EVENTS),
        (without_law, NO_LAW),
        (filled & np.isnan(columns["gap_pvalue"]), OUTWEIGHED),
    ):
        for line in np.flatnonzero(where):
            said[line].append(words)
    for line in np.flatnonzero(empty):
        bins = int(empty[line])
        said[line].append(f"{bins} bin{'' if bins == 1 else 's'} of psi empty in one of both")
    return ["; ".join(words) or None for words in said]
