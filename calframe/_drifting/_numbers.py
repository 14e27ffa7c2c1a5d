"""The numbers of each period: its gap and Brier score, and how far its scores and its gap lie from the reference's."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from calframe._binning import BinChoice, Bins
from calframe._drifting._days import judge_sums
from calframe._drifting._reading import Reading
from calframe._kernels import _binned, _debiased, _null
from calframe._kernels._binned import ratio, run_starts, segment_sum, spread
from calframe._kernels._corrections import adjusted
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._tally import Tally
from calframe._testing._gathering import gathered
from calframe._testing._rates import ScoreSums
from calframe._testing._shares import ClusterParts
from calframe._testing._tails import binomial_pvalue
from calframe._typing import Bools, Floats, Ints
from calframe._verdicts import Judged, Rules

BINNED = ("ece", "ece_expected", "brier", "reliability", "resolution", "uncertainty", "within_bin")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Options:
    """What a user may set about the numbers.

    Attributes
    ----------
    bins : BinChoice
        Bins of ece and of the parts of the Brier score.
    psi_bins : Bins or int
        Edges of the bins of the stability index, or how many of about equal weight the reference makes.
    psi_floor : float or None
        The share that stands for an empty bin.
    rules : Rules
        What gaps are judged by.
    """

    bins: BinChoice
    psi_bins: Bins | int
    psi_floor: float | None
    rules: Rules


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lines:
    """The lines of the table: a period of a series each.

    Attributes
    ----------
    reading : Reading
        The table they are of.
    series, period : ndarray of int64
        What each line is of.
    of_group : ndarray of int64
        The line of each group; -1 for one without a date.
    tally : Tally
        The scores of the lines that have rows.
    filled : ndarray of int64
        Those lines.
    sums : ScoreSums
        What all lines add up to.
    """

    reading: Reading
    series: Ints
    period: Ints
    of_group: Ints
    tally: Tally
    filled: Ints
    sums: ScoreSums

    @classmethod
    def of_reading(cls, reading: Reading, rules: Rules) -> Lines:
        """Gather groups into lines, whose intervals hold together over those of a model."""
        count = max(len(reading.days.periods.starts), 1)
        dated = reading.days.periods.index >= 0
        code = reading.days.series * count + reading.days.periods.index
        known, line = np.unique(code[dated], return_inverse=True)
        of_group = np.full(len(code), -1)
        of_group[dated] = line
        target = of_group[reading.present]
        tally, filled = gathered(reading.tally, np.flatnonzero(target >= 0), target[target >= 0])
        series = known // count
        return cls(
            reading=reading,
            series=series,
            period=known % count,
            of_group=of_group,
            tally=tally,
            filled=filled,
            sums=reading.days.added(of_group, reading.model[series], rules),
        )

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.series)

    @property
    def model(self) -> Ints:
        """The model of each line."""
        return self.reading.model[self.series]

    @property
    def narrow(self) -> Bools:
        """Whether each score of the tally is a float32 number."""
        return self.tally.spread(self.reading.narrow[self.series[self.filled]])

    def parts(self, source: Ints, sample: Ints) -> ClusterParts | None:
        """Return the rows by cluster of samples, of lines by their place among those with rows; None without clusters.

        `source` and `sample` are pairs; a line may be in several samples.
        """
        clusters = self.reading.clusters
        if clusters is None:
            return None
        place = np.full(len(self) + 1, -1)  # the last is that of groups without a line
        place[self.filled] = np.arange(len(self.filled))
        return clusters.parts(source, sample, place[self.of_group])

    def counts(self, values: Ints) -> Ints:
        """Sum counts of groups over the lines."""
        known = self.of_group >= 0
        summed = np.bincount(self.of_group[known], weights=values[known], minlength=len(self))
        return np.rint(summed).astype(np.int64)

    def spread(self, values: Floats, lines: Ints | None = None) -> Floats:
        """Return values of some lines (by default those with rows) among all, NaN elsewhere."""
        out = np.full(len(self), np.nan)
        out[self.filled if lines is None else lines] = values
        return out


def judged_lines(lines: Lines, options: Options) -> Judged:
    """Judge the gaps of the lines, those of each model together."""
    parts = []
    for model in range(len(lines.reading.days.models)):
        mine = lines.model == model
        parts.append((mine, judge_sums(lines.sums.at(mine), options.rules)))
    return joined(parts, len(lines))


def joined(parts: list[tuple[Bools, Judged]], count: int) -> Judged:
    """Return verdicts of several sets of lines in the order of the lines."""
    arrays: dict[str, Any] = {}
    for name in (field.name for field in fields(Judged)):
        first = np.asarray(getattr(parts[0][1], name))
        out = np.full(count, None, dtype=object) if name == "verdict" else np.zeros(count, dtype=first.dtype)
        for mine, part in parts:
            out[mine] = getattr(part, name)
        arrays[name] = tuple(out) if name == "verdict" else out
    return Judged(**arrays)


def binned_columns(lines: Lines, options: Options) -> dict[str, Floats]:
    """Return ece and what chance makes of it, and the Brier score with its parts, of the lines with rows."""
    if not len(lines.filled):
        return dict.fromkeys(BINNED, np.zeros(0))
    sums, starts = _cells(lines, options.bins)
    murphy = _debiased.murphy(sums["w"], sums["wp"], sums["wy"], segment_sum(sums["square"], starts), starts)
    weight = segment_sum(sums["w"], starts)
    of_line = lines.sums.at(lines.filled)
    effect = ratio(of_line.plain_rows, of_line.rows)  # of the gap of a line, for that of each bin
    spreads = sums["w2_variance"] * spread(np.maximum(np.nan_to_num(effect), 1.0), starts, len(sums["w"]))
    chance = _null.chance_gap(sums["w"], sums["wp"], sums["variance"], spreads)
    return {
        "ece": _binned.expected_error(sums["w"], sums["wp"], sums["wy"], starts),
        "ece_expected": segment_sum(chance, starts) / weight,
        "brier": segment_sum(sums["square"], starts) / weight,
        "reliability": murphy.reliability,
        "resolution": murphy.resolution,
        "uncertainty": murphy.uncertainty,
        "within_bin": murphy.within_bin,
    }


def _cells(lines: Lines, choice: BinChoice) -> tuple[dict[str, Floats], Ints]:
    tally = lines.tally
    if choice.fixed is None:
        made = equal_mass(tally, choice.quantiles)
        return made.sums, made.starts
    first = run_starts(found_bins(choice.fixed, tally.score, lines.narrow), tally.starts)
    spread = tally.score * (1.0 - tally.score)
    terms = {
        "w": tally.weight,
        "wp": tally.weight * tally.score,
        "wy": tally.positive,
        "variance": tally.weight * spread,
        "w2_variance": tally.squared * spread,
        "square": tally.weight * tally.score**2 + tally.positive * (1.0 - 2.0 * tally.score),
    }
    return {name: segment_sum(values, first) for name, values in terms.items()}, np.searchsorted(first, tally.starts)


def found_bins(bins: Bins, score: Floats, narrow: Bools) -> Ints:
    """Return the bins of scores, some of which may be float32; the outermost bins are open."""
    found = bins.find(score, narrow=False)
    if narrow.any():
        found = np.where(narrow, bins.find(score, narrow=True), found)
    return found


def zero_pvalue(lines: Lines) -> Floats:
    """Return the p-value of a gap of 0 of each line with rows, also of those with too few to be judged.

    It is the test behind the verdicts. NaN where weights differ and are worth hardly a row.
    """
    sums = lines.sums.at(lines.filled)
    pvalue = binomial_pvalue(sums.rate, sums.mean_score, sums.rows)
    return lines.spread(np.where(sums.outweighed, np.nan, pvalue))


def corrected(lines: Lines, pvalue: Floats, options: Options) -> Floats:
    """Adjust p-values for the number of lines of their model."""
    out = np.full(len(lines), np.nan)
    for model in range(len(lines.reading.days.models)):
        mine = lines.model == model
        out[mine] = adjusted(pvalue[mine], options.rules.correction)
    return out
