"""The references of lines: their scores, gathered from other lines or read from a second table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calframe._drifting._clusters import clustered
from calframe._drifting._numbers import Lines
from calframe._drifting._reading import Second
from calframe._drifting._reference import Reference
from calframe._kernels._tally import Tally
from calframe._testing._gathering import gathered
from calframe._testing._rates import ScoreSums
from calframe._testing._shares import ClusterParts
from calframe._typing import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class References:
    """What lines are compared with.

    Attributes
    ----------
    tally : Tally
        The scores of the references.
    parts : ClusterParts or None
        Their rows by cluster, where rows are not independent.
    of : ndarray of int64
        The reference of each line with rows; -1 for none.
    inside : ndarray of bool
        Whether each of these lines is part of its reference.
    owner : ndarray of int64 or None
        The series that each reference is for; None for rolling ones.
    """

    tally: Tally
    parts: ClusterParts | None
    of: Ints
    inside: Bools
    owner: Ints | None

    def sums(self, alpha: float) -> ScoreSums:
        """Return what they add up to, for intervals each of which has the level 1 - alpha."""
        return clustered(ScoreSums.of_tally(self.tally), self.parts, alpha / 2.0)

    def over(self, number: Ints, count: int, alpha: float) -> ScoreSums:
        """Return what they add up to by the number of what each belongs to, such as a model."""
        parts = None if self.parts is None else replace(self.parts, sample=number[self.parts.sample])
        return clustered(ScoreSums.of_tally(self.tally).added(number, count), parts, alpha / 2.0)


def references(lines: Lines, reference: Reference, second: Second | None) -> References:
    """Find the reference of each line."""
    series, period = lines.series[lines.filled], lines.period[lines.filled]
    none = np.zeros(len(series), dtype=np.bool_)
    if reference.kind == "rolling":
        return _rolling(lines, reference.window, none)
    if second is None:
        inside = reference.periods[period] if len(period) else none
        source, target = np.flatnonzero(inside), series[inside]
        tally, owner, parts = _gathered(lines, source, target)
    else:
        inside, tally, owner, parts = none, second.tally, second.series, second.parts
    place = np.full(int(max(series.max(initial=-1), owner.max(initial=-1))) + 1, -1)
    place[owner] = np.arange(len(owner))
    return References(tally=tally, parts=parts, of=np.where(inside, -1, place[series]), inside=inside, owner=owner)


def _rolling(lines: Lines, window: int, inside: Bools) -> References:
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
    tally, numbers, parts = _gathered(lines, np.concatenate(sources), np.concatenate(targets))
    of = np.full(len(series), -1)
    of[numbers] = np.arange(len(numbers))
    return References(tally=tally, parts=parts, of=of, inside=inside, owner=None)


def _gathered(lines: Lines, source: Ints, target: Ints) -> tuple[Tally, Ints, ClusterParts | None]:
    """Return lines gathered by number: their scores, the numbers, and their rows by cluster."""
    tally, numbers = gathered(lines.tally, source, target)
    return tally, numbers, lines.parts(source, np.searchsorted(numbers, target))
