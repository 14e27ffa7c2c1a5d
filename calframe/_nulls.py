"""Measures under right scores: labels drawn anew at the cost of cells, and what a measure makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from calframe._kernels import _special as special
from calframe._kernels._binned import chunk_bounds, run_starts, segment_sum, sizes_of, spread, starts_of
from calframe._kernels._null import cell_law
from calframe._kernels._tally import Tally
from calframe._registry import Cells, Metric, Options, Row, Scored, Tallied, Term
from calframe._terms import TERMS
from calframe._testing._clusters import Clustered, clustered, clustered_sum
from calframe._testing._draws import MOST, Drawing, Drawn, Side, Statistic, drawn_statistics, lots, positives, staged
from calframe._testing._found import FEW_ROWS, Found
from calframe._testing._luck import Luck
from calframe._testing._multinomial import in_order
from calframe._testing._sums import Factor, brier_factor, gap_factor, log_loss_factor, of_sum, sum_ratio
from calframe._typing import Bools, Floats, Ints

_OF_BINS = ("ece", "mce", "rmsce", "ace", "ece_debiased", "ece_sweep", "reliability", "reliability_corrected")
_OF_SCORES = ("smece", "ecce_r", "ecce_mad", "ici", "e50", "e90", "emax", "mcb", "mcb_log")
_OF_CLASSES = ("confidence_ece", "confidence_mce", "classwise_ece", "classwise_mce", "toplabel_ece", "full_ece", "skce")
UPWARD = frozenset({*_OF_BINS, *_OF_SCORES, *_OF_CLASSES, "calibration_loss", "calibration_loss_log"})
DOWNWARD = frozenset({"auc", "accuracy"})
WITHOUT_LABEL = frozenset({"w2", "wp", "variance", "w2_variance", "centred", "centred_square", "centred_cube"}) | {
    "centred_fourth"
}
CLOSED: Mapping[str, Factor] = {"brier": brier_factor, "log_loss": log_loss_factor, "gap": gap_factor}
D = TypeVar("D", Tally, Clustered)
BIN_TERMS = ("wp", "wy", "w2", "variance", "w2_variance")


def side_of(metric: Metric) -> Side:
    """Return which values of a measure are evidence against the scores.

    Errors of calibration only grow where scores are wrong, auc and accuracy fall; all else, measures of users among it,
    may do either: the Brier score of an under-confident model lies below that of right scores.
    """
    if metric.name in UPWARD:
        return "greater"
    if metric.name in DOWNWARD:
        return "less"
    return "two-sided"


def uses_label(metric: Metric) -> bool:
    """Return whether a measure depends on what happened; sums that do not are the same in every draw."""
    return metric.reads not in ("sums", "bins") or not set(metric.terms) <= WITHOUT_LABEL


def by_bins(metric: Metric, *, weighted: bool) -> bool:
    """Return whether the positives of bins are all that a measure takes of the labels.

    The largest gap is that of the smallest bin, where with weights the first two moments do not make the law.
    """
    known = metric.reads == "bins" and set(metric.terms) <= WITHOUT_LABEL | {"wy"}
    return known and not (weighted and metric.name == "mce")


@dataclass(frozen=True, slots=True, kw_only=True)
class Null:
    """How a measure is held against right scores.

    Attributes
    ----------
    metric : Metric
        The measure.
    options : Options
        What the user has set about it.
    side : {"greater", "less", "two-sided"}
        Which values are evidence.
    drawing : Drawing
        How labels are drawn.
    keep : bool
        Whether draws are kept, for a correction over segments.
    """

    metric: Metric
    options: Options
    side: Side
    drawing: Drawing
    keep: bool = False

    def of_bins(self, cells: Cells) -> Found:
        """Return what drawing the positives of bins says; sums of `BIN_TERMS` are there."""
        sums = {name: cells.sums[name] for name in ("w", *BIN_TERMS)}
        seen = self.metric.value(replace(cells, options=self.options))

        def draws(where: Bools, how: Drawing) -> Drawn:
            keep = spread(where, cells.starts, len(sums["w"]))
            some = {name: values[keep] for name, values in sums.items()}
            return self._bin_draws(starts_of(sizes_of(cells.starts, len(keep))[where]), some, how)

        return self._counted(seen, draws)

    def of_tally(self, tally: Tally, bins: Callable[[Tally], Ints], *, is_logit: bool = False) -> Found:
        """Return what drawing the positives of distinct scores says.

        Parameters
        ----------
        tally : Tally
            Distinct scores, or their logits.
        bins : callable
            From a tally to the bin of each cell.
        is_logit : bool
            Whether the tally is of logits.
        """
        statistic = self.statistic(bins, is_logit=is_logit)

        def drawn(tally: Tally, drawing: Drawing) -> Drawn:
            chance = special.expit(tally.score) if is_logit else None
            return drawn_statistics(tally, statistic, drawing, chance=chance)

        return self._of_sample(tally, tally, statistic, drawn)

    def of_vectors(self, sample: Scored) -> Found:
        """Return what drawing the classes of rows says."""
        if self.metric.name != "skce":  # of many rows, blocks of neighbours, which must not be alike
            sample = replace(sample, vectors=in_order(sample.vectors))

        def draws(where: Bools, how: Drawing) -> Drawn:
            return self._class_draws(replace(sample, vectors=sample.vectors.only(where)), how)

        return self._counted(self.metric.value(sample), draws)

    def of_rows(self, rows: Clustered, bins: Callable[[Tally], Ints]) -> Found:
        """Return what drawing the label of each row says, whatever its weight; rows are independent."""
        statistic = self.statistic(bins)
        return self._of_sample(rows.tally, rows, statistic, lambda rows, drawing: rows.drawn(statistic, drawing))

    def _of_sample(self, tally: Tally, sample: D, statistic: Statistic, drawn: Callable[[D, Drawing], Drawn]) -> Found:
        """Return what draws from a sample say, or, of a sum over many rows, its moments."""
        seen = statistic(tally)

        def counted(how: Null, some: D, seen: Floats) -> Found:
            return how._counted(seen, lambda where, drawing: drawn(some.only(where), drawing))

        if not self.is_closed:
            return counted(self, sample, seen)
        found = of_sum(tally, CLOSED[self.metric.name], replace(self.drawing, done=None))
        few = tally.total(tally.rows) < FEW_ROWS
        if few.any():
            how = replace(self, drawing=self.drawing.part(float(few.mean())))
            found.put(few, counted(how, sample.only(few), seen[few]), but=("statistic",))
        return replace(found, statistic=np.where(np.isnan(found.statistic) & ~few, np.nan, seen))

    def _counted(self, seen: Floats, draws: Callable[[Bools, Drawing], Drawn]) -> Found:
        kept = np.full((self.drawing.n_resamples if self.keep else 0, len(seen)), np.nan)
        told = partial(_keeping, draws, kept) if self.keep else draws
        pvalue, error = staged(seen, told, side=self.side, drawing=self.drawing)
        found = Found.of_draws(seen, pvalue, error, floor=self.drawing.least(self.side))
        return replace(found, draws=kept) if self.keep else found

    def _bin_draws(self, first_cells: Ints, whole: Mapping[str, Floats], drawing: Drawing) -> Drawn:
        """Give the measure of drawn bins, some segments and draws at a time."""
        law = cell_law(whole["w"], whole["wp"], whole["variance"], whole["w2_variance"])
        many, cells = drawing.n_resamples, len(whole["w"])
        sizes = sizes_of(first_cells, cells)
        for first, last in chunk_bounds(first_cells, cells, max(MOST // many, 1)):
            begin, end = int(first_cells[first]), int(first_cells[last - 1] + sizes[last - 1])
            sums = {name: values[begin:end] for name, values in whole.items() if name != "wy"}
            part = law.part(begin, end)
            starts, width = first_cells[first:last] - begin, end - begin
            for lot in lots(width, many):
                drawn = positives(part, sums["w"], lot, drawing.rng).ravel()
                tiled = {name: np.tile(values, lot) for name, values in sums.items()}
                sample = Cells(
                    starts=(starts + width * np.arange(lot)[:, None]).ravel(),
                    sums=tiled | {"wy": drawn},
                    options=self.options,
                )
                yield slice(first, last), self.metric.value(sample).reshape(lot, last - first)
                if drawing.done is not None:
                    drawing.done(lot * width / (cells * many))

    def _class_draws(self, sample: Scored, drawing: Drawing) -> Drawn:
        """Give the measure of vectors whose classes are drawn from them, draw by draw."""
        vectors = sample.vectors
        luck = Luck.of(vectors)
        for _ in range(drawing.n_resamples):
            drawn = replace(vectors, label=luck.classes(drawing.rng))
            yield slice(0, len(vectors)), self.metric.value(replace(sample, vectors=drawn))[None, :]
            if drawing.done is not None:
                drawing.done(1.0 / drawing.n_resamples)

    @property
    def is_closed(self) -> bool:
        """Whether the measure is a sum over rows whose moments are known."""
        plain = self.side == "two-sided" and self.options.clip is None and not self.keep
        return plain and self.metric.name in CLOSED

    def of_clusters(self, rows: Clustered, bins: Callable[[Tally], Ints]) -> Found:
        """Return what drawing labels cluster by cluster says."""
        statistic = self.statistic(bins)
        if not self.is_closed:
            return clustered(rows, statistic, side=self.side, drawing=self.drawing)
        factor = CLOSED[self.metric.name]
        found = clustered_sum(rows, factor, partial(sum_ratio, factor=factor), self.drawing)
        return replace(found, statistic=np.where(np.isnan(found.pvalue), np.nan, statistic(rows.tally)))

    def statistic(self, bins: Callable[[Tally], Ints], *, is_logit: bool = False) -> Callable[[Tally], Floats]:
        """Return the measure as a function of a tally."""
        if self.metric.reads in ("tally", "ranks"):
            return lambda part: self.metric.value(Tallied(tally=part, is_logit=is_logit, options=self.options))
        return lambda part: self.metric.value(
            replace(_cells_of(part, self.metric, bins(part), clip=self.options.clip), options=self.options)
        )


def _keeping(draws: Callable[[Bools, Drawing], Drawn], kept: Floats, where: Bools, drawing: Drawing) -> Drawn:
    """Give the same draws, and write them down."""
    row: dict[int, int] = {}
    for here, drawn in draws(where, drawing):
        begin = row.get(here.start, 0)
        kept[begin : begin + len(drawn), here] = drawn
        row[here.start] = begin + len(drawn)
        yield here, drawn


def term_values(metric: Metric, score: Floats, *, clip: float | None) -> dict[str, tuple[Floats, Floats, int]]:
    """Return the row terms of a measure at scores: without and with the event, and the power of the weight in them."""
    rows = pl.DataFrame({"p": np.tile(score, 2), "y": np.repeat([0.0, 1.0], len(score))})
    known: Mapping[str, Term] = {**TERMS, **metric.own_terms}
    found = {}
    for name in metric.terms:
        once, twice = (_evaluated(known[name], rows, weight=weight, clip=clip) for weight in (1.0, 2.0))
        there = np.flatnonzero(once)
        power = round(float(np.log2(twice[there[0]] / once[there[0]]))) if len(there) else 1
        found[name] = (once[: len(score)], once[len(score) :], power)
    return found


def _evaluated(term: Term, rows: pl.DataFrame, *, weight: float, clip: float | None) -> Floats:
    score, label = nw.col("p"), nw.col("y")
    bounded = score if clip is None else score.clip(clip, 1.0 - clip)
    chance = nw.when(label == 1.0).then(bounded).otherwise(1.0 - bounded)
    possible = chance > 0.0
    row = Row(
        used=score * 0.0 + 1.0,
        score=score,
        label=label,
        chance=chance,
        possible=possible,
        surprise=nw.when(possible).then(chance).otherwise(1.0).log() * -1.0,
        weight=score * 0.0 + weight,
        frequency=False,
    )
    values = nw.from_native(rows).select(term(row).cast(nw.Float64).alias("t")).get_column("t").to_numpy()
    return np.asarray(values, dtype=np.float64)


def _cells_of(tally: Tally, metric: Metric, bins: Ints, *, clip: float | None) -> Cells:
    """Return the sums over bins that a measure reads, from distinct scores."""
    first = run_starts(bins, tally.starts)
    amounts = (
        (tally.rows, tally.rows * tally.positive / tally.weight),
        (tally.weight, tally.positive),
        (tally.squared, tally.squared_positive),
    )
    sums = {"n": segment_sum(tally.rows, first), "w": segment_sum(tally.weight, first)}
    for name, (without, event, power) in term_values(metric, tally.score, clip=clip).items():
        total, positive = amounts[power]
        sums[name] = segment_sum(without * (total - positive) + event * positive, first)
    return Cells(starts=np.searchsorted(first, tally.starts), sums=sums)
