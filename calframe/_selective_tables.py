"""The tables behind `selective`: coverage-accuracy curves, one row a segment, and thresholds for target accuracies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import Column, closed_frame, count_columns
from calframe._kernels import _special as special
from calframe._kernels._binned import ratio
from calframe._kernels._cluster_sums import ClusterSums, ends_left
from calframe._kernels._intervals import rate_interval
from calframe._kernels._selective import aurc, confidence_tally, confidences, excess_aurc
from calframe._kernels._tally import Tally
from calframe._measures import METRICS
from calframe._notes import NO_ROWS, Notes
from calframe._reading import by_width, read_rows, read_with_clusters
from calframe._table import Table
from calframe._testing._cluster_rows import ClusterRows
from calframe._testing._thresholds import Answered, certified, rows_needed
from calframe._typing import Bools, Floats, Ints, RateInterval
from calframe._words._numbers import plural

_DECIMALS = 15  # finer ones are what floating point leaves of 1 - s
Confidence: TypeAlias = Literal["confidence", "correctness"]
Points: TypeAlias = tuple[Ints, dict[str, Any]]

_VALUES = ("accuracy", "aurc", "eaurc", "confident_share", "confident_errors", "confident_error_rate")
_POINTS = ("threshold", "coverage", "n", "weight_sum", "accuracy", "risk", "accuracy_low", "accuracy_high")
_CHOSEN = ("threshold", "coverage", "accuracy", "accuracy_low")
SELECTIVE_COLUMNS = frozenset({*_VALUES, *_POINTS, "target_accuracy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a table.

    Attributes
    ----------
    notion : {"confidence", "correctness"}
        What the confidence is.
    targets : tuple of float
        Target accuracies.
    level : float
        Confidence level.
    confident_at : float
        From which confidence a wrong row is a confident error.
    points : int
        About how many thresholds of a curve are kept.
    interval : {"wilson", "clopper_pearson", "jeffreys"}
        The interval of an accuracy.
    """

    notion: Confidence
    targets: tuple[float, ...]
    level: float
    confident_at: float
    points: int
    interval: RateInterval


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The segments of a table, and what is said of them, in the user's library."""

    groups: Groups
    curves: Any
    summary: Any
    targets: Any


def selective_tables(table: Table, asked: Asked, *, engine: Any) -> Tables:
    """Return the tables of an opened table of predictions."""
    rows = read_rows(table, engine=engine)
    groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
    values = {name: np.full(len(groups), np.nan) for name in _VALUES}
    chosen = _Chosen.nothing(groups, asked)
    parts: list[Points] = []
    for segments, sample in _samples(table, rows, groups, asked):
        for name, found in sample.values(asked).items():
            values[name][segments] = found
        chosen.put(segments, sample, asked, frequency=table.roles.counts_rows)
        parts.append(sample.points(segments, asked))
    segment, curves = _joined(parts, weighted=table.weighted)
    note: Column = _notes(groups, values, asked, counts_rows=table.roles.counts_rows)
    summary: dict[str, Column] = {**count_columns(table, groups), **values, "note": note}
    each = np.repeat(np.arange(len(groups)), len(asked.targets))
    return Tables(
        groups=groups,
        curves=closed_frame(table, groups, curves, segment=segment).to_native(),
        summary=closed_frame(table, groups, summary).to_native(),
        targets=closed_frame(table, groups, chosen.columns(asked), segment=each).to_native(),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sample:
    """Some segments with rows: the tally of their confidences, what is answered, and how the scores are held.

    `clusters`: what clusters of rows share in each cell of what is answered, where rows have them.
    """

    tally: Tally
    answered: Answered
    clusters: ClusterSums | None
    is_logit: bool
    narrow: bool

    def shown(self, confidence: Floats) -> Floats:
        """Return confidences as probabilities."""
        return np.asarray(special.expit(confidence)) if self.is_logit else confidence

    def values(self, asked: Asked) -> dict[str, Floats]:
        """Return the values of the summary."""
        tally = self.tally
        confidence = self.shown(tally.score)
        if self.narrow:  # so that 0.9 falls where a person expects
            sure = confidence.astype(np.float32) >= np.float32(asked.confident_at)
        else:
            sure = np.round(confidence, _DECIMALS) >= asked.confident_at  # 1 - 0.07 is 0.93 then
        total = tally.total(tally.weight)
        confident = tally.total(np.where(sure, tally.weight, 0.0))
        wrong = tally.total(np.where(sure, tally.negative, 0.0))
        found = (
            tally.total(tally.positive) / total,
            aurc(tally),
            excess_aurc(tally),
            confident / total,
            wrong / total,
            ratio(wrong, confident),
        )
        return dict(zip(_VALUES, found, strict=True))

    def points(self, segments: Ints, asked: Asked) -> Points:
        """Return the segment and the columns of each point of the curves."""
        answered = self.answered
        cells = answered.spoken(asked.points)
        accuracy = answered.accuracy[cells]
        low, high = self._interval(cells, asked)
        columns = (
            self.shown(answered.confidence[cells]),
            answered.coverage[cells],
            _whole(answered.rows[cells]),
            answered.weight[cells],
            accuracy,
            (answered.weight[cells] - answered.right[cells]) / answered.weight[cells],
            low,
            high,
        )
        return segments[answered.segment[cells]], dict(zip(_POINTS, columns, strict=True))

    def _interval(self, cells: Ints, asked: Asked) -> tuple[Floats, Floats]:
        """Return the interval of the accuracy from each of some cells up."""
        accuracy, rows = self.answered.accuracy[cells], self.answered.effective[cells]
        clusters = None if self.clusters is None else self.clusters.each(lambda values: values[cells])
        return ends_left(partial(rate_interval, accuracy, method=asked.interval), rows, clusters, level=asked.level)


def _samples(table: Table, rows: nw.LazyFrame[Any], groups: Groups, asked: Asked) -> Iterator[tuple[Ints, _Sample]]:
    """Give the confidences of a table in chunks of whole segments, with the numbers of those segments."""
    by_logit = table.has_logits and table.view != "confidence"  # of several classes metrics, too, takes probabilities
    turned = table.view != "confidence" and asked.notion == "confidence"
    for narrow, some in by_width(table, rows):
        for segments, scores, rows_of in read_with_clusters(table, some, groups, by_logit=by_logit):
            tally = confidence_tally(scores, is_logit=by_logit) if turned else scores
            yield (
                segments,
                _Sample(
                    tally=tally,
                    answered=Answered.of_tally(tally),
                    clusters=None if rows_of is None else _shared(rows_of, turned=turned, is_logit=by_logit),
                    is_logit=by_logit,
                    narrow=narrow,
                ),
            )


def _shared(rows: ClusterRows, *, turned: bool, is_logit: bool) -> ClusterSums:
    """Return what clusters share of being right from each confidence up."""
    if not turned:
        return rows.answered(rows.score, rows.label)
    confidence, yes = confidences(rows.score, is_logit=is_logit)
    return rows.answered(confidence, np.where(yes, rows.label, 1.0 - rows.label))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Chosen:
    """Thresholds for target accuracies: a row a segment, a column a target.

    Attributes
    ----------
    values : dict of str to ndarray of shape (n_segments, n_targets)
        What is said of each; NaN where no threshold holds.
    n : ndarray of int64
        Rows answered; 0 where no threshold holds.
    notes : list of str or None
        Why none does, target after target of each segment.
    """

    values: dict[str, Floats]
    n: Ints
    notes: list[str | None]

    @classmethod
    def nothing(cls, groups: Groups, asked: Asked) -> _Chosen:
        """Start with segments that have no rows."""
        shape = (len(groups), len(asked.targets))
        return cls(
            values={name: np.full(shape, np.nan) for name in _CHOSEN},
            n=np.zeros(shape, dtype=np.int64),
            notes=[NO_ROWS] * (shape[0] * shape[1]),
        )

    def put(self, segments: Ints, sample: _Sample, asked: Asked, *, frequency: bool) -> None:
        """Choose thresholds for some segments."""
        answered = sample.answered
        rows, right, known = answered.counted(frequency=frequency)
        for place, target in enumerate(asked.targets):
            chosen = certified(answered, rows, right, target=target, level=asked.level, clusters=sample.clusters)
            cell = np.where(known, chosen.cell, -1)
            held, at = cell >= 0, np.maximum(cell, 0)
            columns = sample.shown(answered.confidence[at]), answered.coverage[at], answered.accuracy[at], chosen.low
            for name, values in zip(_CHOSEN, columns, strict=True):
                self.values[name][segments, place] = np.where(held, values, np.nan)
            self.n[segments, place] = np.where(held, _whole(answered.rows[at]), 0)
            reasons = _reasons(target, asked.level, "row" if sample.clusters is None else "cluster")
            self._explain(segments, place, reasons, held=held, known=known, able=chosen.starts > 0)

    def _explain(
        self, segments: Ints, place: int, reasons: Sequence[str], *, held: Bools, known: Bools, able: Bools
    ) -> None:
        """Say where there is no threshold, and why."""
        reason = np.select([~known, ~able], [0, 1], 2).tolist()
        for segment, why, fine in zip(segments.tolist(), reason, held.tolist(), strict=True):
            self.notes[segment * self.n.shape[1] + place] = None if fine else reasons[why]

    def columns(self, asked: Asked) -> dict[str, Column]:
        """Return the columns, target after target of each segment."""
        flat = {name: values.ravel() for name, values in self.values.items()}
        return {
            "target_accuracy": np.tile(np.array(asked.targets, dtype=np.float64), len(self.n)),
            "threshold": flat["threshold"],
            "coverage": flat["coverage"],
            "n": self.n.ravel(),
            "accuracy": flat["accuracy"],
            "accuracy_low": flat["accuracy_low"],
            "note": self.notes,
        }


def _reasons(target: float, level: float, unit: str) -> tuple[str, str, str]:
    """Return why there may be no threshold: it cannot be tested, too little is there, or nothing is shown."""
    least = plural(rows_needed(target, level), unit)
    return (
        "no test of a threshold with importance weights that differ",
        f"too few {unit}s: it takes {least}, all of them right, to show an accuracy of {target:g}",
        f"no threshold is shown to have an accuracy of {target:g}",
    )


def _joined(parts: list[Points], *, weighted: bool) -> tuple[Ints, dict[str, Column]]:
    """Return the points of all curves, segment after segment."""
    nothing = np.zeros(0)
    empty: Points = np.zeros(0, dtype=np.int64), dict.fromkeys(_POINTS, nothing) | {"n": _whole(nothing)}
    parts = parts or [empty]
    segment = np.concatenate([owner for owner, _ in parts])
    order = np.argsort(segment, kind="stable")
    names = [name for name in _POINTS if weighted or name != "weight_sum"]
    return segment[order], {name: np.concatenate([points[name] for _, points in parts])[order] for name in names}


def _notes(groups: Groups, values: dict[str, Floats], asked: Asked, *, counts_rows: bool) -> list[str | None]:
    """Say per segment what is missing; None where there is nothing to say."""
    made = Notes.of_counts(groups.n, groups.n_zero)
    without = np.isnan(values["confident_error_rate"]) & (groups.n > 0)
    made.add(f"confident_error_rate: no row is as confident as {asked.confident_at:g}", without)
    if not counts_rows:
        counting = [name for name in values if name in METRICS and METRICS[name].counts_rows]
        made.add_scale(counting, groups.cells.total("w"), groups.n)
    return made.lines()


def _whole(values: Floats) -> Ints:
    return np.rint(values).astype(np.int64)
