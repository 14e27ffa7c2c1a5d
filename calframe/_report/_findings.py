"""Everything a report knows, as data: the sentences, the figures and the JSON all read this."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import polars as pl

from calframe._charts._names import told_apart
from calframe._drifting._course import Course
from calframe._roles import Roles
from calframe._segments import ChanceError, Grouping
from calframe._typing import VerdictName
from calframe._verdicts import CLEAR, LEANS
from calframe._words._lines import distinct

_NAME, _BRIEF = 40, 28  # columns of a segment's name in sentences, and in the headline
FAR = 0.001  # of the p-value of the ECE of all rows, where the curve is called off

State: TypeAlias = Literal["action needed", "watch", "undecided", "within tolerance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment as a sentence needs it: the column it belongs to, its row of numbers, and what it is called.

    `name` is that of a sentence, and `brief` that of the headline; in each no two segments of a column are the same.
    """

    column: str
    row: dict[str, Any]
    name: str
    brief: str

    @property
    def verdict(self) -> VerdictName:
        """The verdict."""
        found: VerdictName = self.row["verdict"]
        return found


def segments_of(grouping: Grouping) -> list[Segment]:
    """Return the segments of a grouping, worst first."""
    whole = tuple(grouping.segments["segment"])
    rows = grouping.segments.iter_rows(named=True)
    called = zip(rows, _called(whole, _NAME), _called(whole, _BRIEF), strict=True)
    return [Segment(column=grouping.column, row=row, name=name, brief=brief) for row, name, brief in called]


@lru_cache(maxsize=16)  # a report asks for the same few over and over
def _called(names: tuple[str, ...], width: int) -> tuple[str, ...]:
    """Return names for sentences: at most so many columns, in one line; blanks alone are "(blank)"."""
    flat = [" ".join(name.split()) or "(blank)" for name in names]
    return tuple(distinct(told_apart(flat), width))


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The findings of a report.

    Attributes
    ----------
    title : str
        Title of the report.
    roles : Roles
        The columns it is about.
    tolerance, alpha : float
        As given.
    overall : dict
        All rows as one segment.
    chance : ChanceError
        The ECE that right scores would show.
    curve, histogram : polars.DataFrame
        Reliability curve and histogram of all rows.
    limit : float
        Upper end of score axes.
    groupings : tuple of Grouping
        One per segment column.
    comparisons : int
        Segments with rows enough to be judged, over all groupings.
    course : Course or None
        The course over time.
    counts : dict of str to int
        ``rows``, ``used``, ``missing``, ``invalid``, ``zero_weight``.
    fingerprint : str
        A hash of the counts in every cell.
    extras : tuple of str
        Further metrics of the segments that were asked for.
    """

    title: str
    roles: Roles
    tolerance: float
    alpha: float
    overall: dict[str, Any]
    chance: ChanceError
    curve: pl.DataFrame
    histogram: pl.DataFrame
    limit: float
    groupings: tuple[Grouping, ...]
    comparisons: int
    course: Course | None
    counts: dict[str, int]
    fingerprint: str
    extras: tuple[str, ...] = ()

    def segments(self) -> Iterator[Segment]:
        """Go through the segments of all groupings, each grouping worst first."""
        for grouping in self.groupings:
            yield from segments_of(grouping)

    def with_verdict(self, *names: VerdictName) -> list[Segment]:
        """Return the segments with one of these verdicts, those with the most rows misstated first."""
        found = [segment for segment in self.segments() if segment.verdict in names]
        return sorted(found, key=lambda segment: -abs(segment.row["net"] or 0.0))

    @property
    def curve_off(self) -> bool:
        """Whether the scores are off over their range, right as their mean may be: far beyond chance and tolerance."""
        if self.overall["verdict"] == "few":
            return False
        return self.chance.pvalue <= FAR and self._far_off(self.overall)

    @property
    def crooked(self) -> list[Segment]:
        """Segments judged whose scores are off over their range, right as their mean may be, the surest first.

        Their cumulative error is beyond chance after the search over all segments, and their ECE beyond what chance,
        and their gap, make of it by more than the tolerance.
        """
        found = [
            segment
            for segment in self.segments()
            if segment.verdict not in CLEAR | {"few"}
            and segment.row.get("ecce_pvalue_adjusted") is not None
            and segment.row["ecce_pvalue_adjusted"] <= self.alpha
            and self._far_off(segment.row)
        ]
        return sorted(found, key=lambda segment: (segment.row["ecce_pvalue_adjusted"], -segment.row["ecce"]))

    def _far_off(self, row: dict[str, Any]) -> bool:
        """Tell whether the ECE is more than chance and a shift of all scores make it, by more than the tolerance."""
        return bool(row["ece"] - max(row["ece_expected"], abs(row["gap"])) > self.tolerance)

    @property
    def state(self) -> State:
        """The verdict on the table as a whole."""
        verdicts = {segment.verdict for segment in self.segments()} | {self.overall["verdict"]}
        if verdicts & CLEAR or self.curve_off or (self.course is not None and self.course.since is not None):
            return "action needed"
        if verdicts & LEANS or self.crooked:
            return "watch"
        return "undecided" if verdicts & {"unsure", "few"} else "within tolerance"

    @property
    def open(self) -> int:
        """How many segments are neither clear nor within tolerance."""
        return sum(segment.verdict not in CLEAR | {"within"} for segment in self.segments())
