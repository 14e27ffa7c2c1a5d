"""Lines against their reference: scores, gaps, and what the change of gap and Brier score is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calframe._binning import Bins
from calframe._drifting._numbers import Lines, Options, found_bins
from calframe._drifting._references import References
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
from calframe._testing._shares import (
    MOST_BINS,
    ClusterParts,
    ShareScatter,
    clustered_pvalue,
    clustered_stability,
    share_scatter,
)
from calframe._typing import Floats, Ints, RateInterval
from calframe._verdicts import Judged, gap_interval

NO_REFERENCE = "no rows in the reference"
IN_REFERENCE = "part of the reference"
FEW_EVENTS = f"fewer than {LEAST_EVENTS:g} expected positives or negatives: gaps are not compared"
OUTWEIGHED = f"are worth fewer than {LEAST_ROWS:g} rows: no p-value of gap 0"
NO_LAW = "no p-value of ks and psi: the distance of weighted rows has no known law"
MANY_BINS = f"no p-value of ks and psi: with clusters their laws need at most {MOST_BINS} psi_bins"
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
    references : References
        All references.
    parts : ClusterParts or None
        The rows of the lines by cluster, where rows are not independent.
    """

    lines: Ints
    inside: Ints
    pairs: Pairs
    bins: Ints
    reference_bins: Ints
    count: int
    references: References
    parts: ClusterParts | None

    @property
    def too_many_bins(self) -> bool:
        """Whether rows are in clusters, and bins too many for their covariances."""
        return self.parts is not None and self.count > MOST_BINS

    def shares(self, alpha: float) -> tuple[ShareScatter, ShareScatter] | None:
        """Return how the scores of the references and of the lines scatter over bins; None without clusters."""
        if self.parts is None or self.references.parts is None or self.too_many_bins:
            return None
        pairs, tail = self.pairs, alpha / 2.0
        own = share_scatter(self.parts, pairs.current, self.bins, self.count, tail=tail)
        its = share_scatter(self.references.parts, pairs.reference, self.reference_bins, self.count, tail=tail)
        return its.at(pairs.of), own


def compared(lines: Lines, references: References, options: Options) -> Comparison:
    """Compare each line with its reference, whose bins are frozen."""
    tally, known = references.tally, references.of >= 0
    pairs = Pairs.of_tallies(
        lines.tally.only(known) if known.any() else _none(lines.tally), tally, references.of[known]
    )
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
        inside=lines.filled[references.inside],
        pairs=pairs,
        bins=bins,
        reference_bins=frozen,
        count=count,
        references=references,
        parts=lines.parts(np.flatnonzero(known), np.arange(int(known.sum()))),
    )


def _no_cells() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _none(tally: Tally) -> Tally:
    return gathered(tally, _no_cells(), _no_cells())[0]


def comparison_columns(lines: Lines, found: Comparison, options: Options, judged: Judged) -> dict[str, Floats]:
    """Return the distances of scores and gaps from the reference, with intervals, and the p-values of both."""
    pairs = found.pairs
    if not len(found.lines):
        return {name: np.full(len(lines), np.nan) for name in COMPARED}
    counted = None if found.too_many_bins else _counted(pairs, lines)
    distance = kolmogorov_smirnov(pairs)
    unknown = np.full(len(distance), np.nan)
    shares = found.shares(options.rules.alpha)
    most = None if shares is None else (shares[1].largest(), shares[0].largest())
    ks_pvalue, exact = (unknown, unknown) if counted is None else smirnov_pvalue(counted, distance, most)
    sums = lines.sums.at(found.lines), found.references.sums(options.rules.alpha).at(pairs.of)
    values = (
        *_stability(found, (sums[1].plain_rows, sums[0].plain_rows), shares, options, has_law=counted is not None),
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
    found: Comparison,
    rows: tuple[Floats, Floats],
    shares: tuple[ShareScatter, ShareScatter] | None,
    options: Options,
    *,
    has_law: bool,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the stability index, what chance makes of it, its p-value, and the bins that are empty in one of both."""
    pairs = found.pairs
    weights = (
        bin_weights(pairs.reference, found.reference_bins, found.count)[pairs.of],
        bin_weights(pairs.current, found.bins, found.count),
    )
    index = stability_index(*weights, floor=options.psi_floor)
    together = weights[0] + weights[1]
    filled, pooled = together > 0.0, together / together.sum(axis=1, keepdims=True)
    bins = filled.sum(axis=1).astype(np.float64)
    if shares is None:
        expected = stability_expected(*rows, bins)
        pvalue = stability_pvalue(index, *rows, np.maximum(bins, 2.0))
    else:
        rows = rows[0] / shares[0].effect(), rows[1] / shares[1].effect()
        expected, df = clustered_stability(pooled, *shares)
        pvalue = clustered_pvalue(index, expected, df)
        expected = np.where(np.minimum(*rows) > _ROUNDING, expected, np.nan)  # a single cluster tells nothing
    least = np.where(filled, pooled, np.inf).min(axis=1) * np.minimum(*rows)
    known = has_law & (least >= LEAST_EXPECTED) & (bins > 1.0)
    empty = ((weights[0] == 0.0) != (weights[1] == 0.0)).sum(axis=1).astype(np.float64)
    return index, expected, np.where(known, pvalue, np.nan), empty


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
        (without_law, MANY_BINS if found.too_many_bins else NO_LAW),
        (few_in_bins & (columns["psi_expected"] > 0.0), FEW_IN_BINS),
        (filled & np.isnan(columns["gap_pvalue"]), f"{_unequal(lines)} {OUTWEIGHED}"),
    ):
        made.add(words, where)
    for line in np.flatnonzero(empty):
        bins = int(empty[line])
        made.parts[line].append(f"{bins} bin{'' if bins == 1 else 's'} of psi empty in one of both")
    return made.lines()


def _unequal(lines: Lines) -> str:
    """Say what makes rows worth fewer."""
    table = lines.reading.table
    what = [word for word, there in (("weights", table.weighted), ("clusters", table.cluster is not None)) if there]
    return " and ".join(what)
