"""Lines against their reference: scores, gaps, and what the change of gap and Brier score is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calframe._binning import Bins
from calframe._drifting._numbers import Lines, Options, found_bins
from calframe._drifting._reference import Reference
from calframe._kernels._intervals import recovered_interval, sidak_level
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._notes import Notes
from calframe._testing._change import Parts, change_parts
from calframe._testing._distances import (
    LEAST_EXPECTED,
    Pairs,
    bin_weights,
    kolmogorov_smirnov,
    smirnov_pvalue,
    stability_expected,
    stability_index,
    stability_pvalue,
    wasserstein,
)
from calframe._testing._gathering import gathered
from calframe._testing._rates import LEAST_EVENTS, LEAST_ROWS, ScoreSums, change_pvalue
from calframe._typing import Bools, Floats, Ints, RateInterval
from calframe._verdicts import Judged, gap_interval

NO_REFERENCE = "no rows in the reference"
IN_REFERENCE = "part of the reference"
FEW_EVENTS = f"fewer than {LEAST_EVENTS:g} expected positives or negatives: gaps are not compared"
OUTWEIGHED = f"weights are worth fewer than {LEAST_ROWS:g} rows: no p-value of gap 0"
NO_LAW = "no p-value of ks and psi: the distance of weighted rows has no known law"
FEW_IN_BINS = f"fewer than {LEAST_EXPECTED:g} rows expected in a bin: no p-value of psi"
_ROUNDING = 1e-9  # what sums of equal weights are off by, relatively
COMPARED = (
    *("psi", "psi_expected", "psi_pvalue", "psi_empty_bins", "wasserstein", "ks", "ks_pvalue", "ks_exact"),
    *("gap_change", "gap_change_low", "gap_change_high", "gap_change_simultaneous_low"),
    *("gap_change_simultaneous_high", "gap_change_pvalue"),
)


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
    owner : ndarray of int64 or None
        The series that each reference is for; None for a rolling one.
    """

    lines: Ints
    inside: Ints
    pairs: Pairs
    bins: Ints
    reference_bins: Ints
    count: int
    owner: Ints | None


def compared(lines: Lines, reference: Reference, second: tuple[Tally, Ints] | None, options: Options) -> Comparison:
    """Find the reference of each line, and freeze its bins."""
    tally, of, inside, owner = _references(lines, reference, second)
    known = of >= 0
    pairs = Pairs.of_tallies(lines.tally.only(known) if known.any() else _none(lines.tally), tally, of[known])
    chosen = options.psi_bins
    if isinstance(chosen, Bins):
        series = lines.series[lines.filled[known]]
        narrow = lines.reading.narrow
        of_series = np.zeros(len(tally), dtype=np.int64)
        of_series[pairs.of] = series
        narrow_ones = tally.spread(narrow[of_series]) if len(tally) else np.zeros(0, np.bool_)
        frozen = found_bins(chosen, tally.score, narrow_ones)
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
        owner=owner,
    )


def _no_cells() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _none(tally: Tally) -> Tally:
    return gathered(tally, _no_cells(), _no_cells())[0]


def _references(
    lines: Lines, reference: Reference, second: tuple[Tally, Ints] | None
) -> tuple[Tally, Ints, Bools, Ints | None]:
    """Return the references, that of each line with rows (-1 for none), which lines are part of theirs, and owners."""
    series, period = lines.series[lines.filled], lines.period[lines.filled]
    none = np.zeros(len(series), dtype=np.bool_)
    if reference.kind == "rolling":
        return (*_rolling(lines, reference.window), none, None)
    if second is None:
        inside = reference.periods[period] if len(period) else none
        tally, numbers = gathered(lines.tally, np.flatnonzero(inside), series[inside])
    else:
        inside, (tally, numbers) = none, second
    place = np.full(int(max(series.max(initial=-1), numbers.max(initial=-1))) + 1, -1)
    place[numbers] = np.arange(len(numbers))
    return tally, np.where(inside, -1, place[series]), inside, numbers


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


def comparison_columns(lines: Lines, found: Comparison, options: Options, judged: Judged) -> dict[str, Floats]:
    """Return the distances of scores and gaps from the reference, with intervals, and the p-values of both."""
    pairs = found.pairs
    if not len(found.lines):
        return {name: np.full(len(lines), np.nan) for name in COMPARED}
    counted = _counted(pairs, lines)
    distance = kolmogorov_smirnov(pairs)
    unknown = np.full(len(distance), np.nan)
    ks_pvalue, exact = (unknown, unknown) if counted is None else smirnov_pvalue(counted, distance)
    sums = ScoreSums.of_tally(pairs.current), ScoreSums.of_tally(pairs.reference).at(pairs.of)
    values = (
        *_stability(found, sums, options, has_law=counted is not None),
        wasserstein(pairs),
        distance,
        ks_pvalue,
        exact.astype(np.float64),
        sums[0].gap - sums[1].gap,
        *_change_interval(*sums, level=1.0 - options.rules.alpha),
        *_simultaneous(lines, found, sums, options, judged),
        change_pvalue(*sums)[0],
    )
    return {name: lines.spread(value, found.lines) for name, value in zip(COMPARED, values, strict=True)}


def _simultaneous(
    lines: Lines, found: Comparison, sums: tuple[ScoreSums, ScoreSums], options: Options, judged: Judged
) -> tuple[Floats, Floats]:
    """Return exact intervals of the changes of gaps that hold together, as those of the gaps do."""
    low, high = (np.full(len(found.lines), np.nan) for _ in range(2))
    for model in range(len(lines.reading.days.models)):
        mine = np.flatnonzero(lines.model[found.lines] == model)
        level = sidak_level(1.0 - options.rules.alpha, max(int(judged.enough[lines.model == model].sum()), 1))
        pair = (each.at(mine) for each in sums)
        low[mine], high[mine] = _change_interval(*pair, level=level, method="clopper_pearson")
    return low, high


def _change_interval(
    one: ScoreSums, other: ScoreSums, *, level: float, method: RateInterval = "wilson"
) -> tuple[Floats, Floats]:
    own, its = (
        gap_interval(each.rate, each.mean_score, each.rows, level=level, method=method) for each in (one, other)
    )
    return recovered_interval(one.gap, own, other.gap, its)


def _counted(pairs: Pairs, lines: Lines) -> Pairs | None:
    """Return the samples with counts of rows as weights; None where importance weights differ: they have no law."""
    table = lines.reading.table
    if not table.weighted or table.roles.weight_kind == "frequency":
        return pairs
    both = (pairs.current, pairs.reference)
    each = pairs.current.weight[0] / pairs.current.rows[0]
    if not all(_weighs(tally, each) for tally in both):
        return None
    current, reference = (_by_rows(tally) for tally in both)
    return replace(pairs, current=current, reference=reference)


def _weighs(tally: Tally, each: float) -> bool:
    """Tell whether every row has this weight."""
    same = [np.allclose(tally.weight, each * tally.rows, rtol=_ROUNDING, atol=0.0)]
    return all([*same, np.allclose(tally.squared, each**2 * tally.rows, rtol=_ROUNDING, atol=0.0)])


def _by_rows(tally: Tally) -> Tally:
    return replace(tally, weight=tally.rows, squared=tally.rows)


def _stability(
    found: Comparison, sums: tuple[ScoreSums, ScoreSums], options: Options, *, has_law: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the stability index, what chance makes of it, its p-value, and the bins that are empty in one of both."""
    pairs = found.pairs
    weights = (
        bin_weights(pairs.reference, found.reference_bins, found.count)[pairs.of],
        bin_weights(pairs.current, found.bins, found.count),
    )
    index = stability_index(*weights, floor=options.psi_floor)
    together, rows = weights[0] + weights[1], (sums[1].rows, sums[0].rows)
    filled = together > 0.0
    bins = filled.sum(axis=1).astype(np.float64)
    least = np.where(filled, together, np.inf).min(axis=1) / together.sum(axis=1) * np.minimum(*rows)
    known = has_law & (least >= LEAST_EXPECTED) & (bins > 1.0)
    pvalue = np.where(known, stability_pvalue(index, *rows, np.maximum(bins, 2.0)), np.nan)
    empty = ((weights[0] == 0.0) != (weights[1] == 0.0)).sum(axis=1).astype(np.float64)
    return index, stability_expected(*rows, bins), pvalue, empty


def parts_of(found: Comparison) -> tuple[Parts, Parts] | None:
    """Return what the changes of gap and Brier score of the compared lines are made of; None where there are none."""
    if not len(found.lines):
        return None
    pairs = found.pairs
    return change_parts(pairs.current, found.bins, pairs.reference, found.reference_bins, pairs.of, found.count)


def notes(lines: Lines, found: Comparison, columns: dict[str, Floats]) -> list[str | None]:
    """Say what is missing in a line, and why."""
    groups = lines.reading.groups
    made = Notes.of_counts(lines.counts(groups.n), lines.counts(groups.n_zero))
    filled, compared_, inside = (
        np.isin(np.arange(len(lines)), one) for one in (lines.filled, found.lines, found.inside)
    )
    without_law = compared_ & np.isnan(columns["ks_pvalue"])
    few_in_bins = compared_ & ~without_law & np.isnan(columns["psi_pvalue"])
    empty = np.nan_to_num(columns["psi_empty_bins"])
    for where, words in (
        (inside, IN_REFERENCE),
        (filled & ~compared_ & ~inside, NO_REFERENCE),
        (compared_ & np.isnan(columns["gap_change_pvalue"]), FEW_EVENTS),
        (without_law, NO_LAW),
        (few_in_bins & (columns["psi_expected"] > 0.0), FEW_IN_BINS),
        (filled & np.isnan(columns["gap_pvalue"]), OUTWEIGHED),
    ):
        made.add(words, where)
    for line in np.flatnonzero(empty):
        bins = int(empty[line])
        made.parts[line].append(f"{bins} bin{'' if bins == 1 else 's'} of psi empty in one of both")
    return made.lines()
