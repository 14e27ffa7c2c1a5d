"""The rules of a gate, what became of them in each segment, and whether the gate trips."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from calframe._measures import known_metrics
from calframe._typing import VerdictName
from calframe._verdicts import CLEAR, LEANS, RANK, WORDS

Kind: TypeAlias = Literal["gap", "drift", "max", "min"]
FailOn: TypeAlias = Literal["gap", "lean", "undecided"]

ALL_ROWS = "(all rows)"

_LIMITED: Mapping[VerdictName, tuple[str, str]] = {
    **WORDS,
    "over": ("▲", "Above the limit"),
    "under": ("▼", "Below the limit"),
    "within": ("●", "Within the limit"),
}
_GAP: Mapping[VerdictName, tuple[str, str]] = {  # a lean is about 0, and says nothing of the limit
    **_LIMITED,
    **{name: WORDS[name] for name in CLEAR},
    "leans_over": ("△", "Off, limit unclear"),
    "leans_under": ("▽", "Off, limit unclear"),
}
_MOVED: Mapping[VerdictName, tuple[str, str]] = {
    **_LIMITED,
    "over": ("▲", "Gap rose"),
    "under": ("▼", "Gap fell"),
    "leans_over": ("△", "Moved, limit unclear"),
    "leans_under": ("▽", "Moved, limit unclear"),
}
_WORDS: Mapping[Kind, Mapping[VerdictName, tuple[str, str]]] = {
    "gap": _GAP,
    "drift": _MOVED,
    "max": _LIMITED,
    "min": _LIMITED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One limit.

    Attributes
    ----------
    name : str
        How it is called, such as `max-gap` or `min auc`.
    kind : {"gap", "drift", "max", "min"}
        What it limits: a gap either way, the change of a gap either way, or a metric to one side.
    metric : str
        The metric.
    limit : float
        The limit.
    """

    name: str
    kind: Kind
    metric: str
    limit: float

    @property
    def is_binned(self) -> bool:
        """Whether the bins of the scores have a say in the metric."""
        return self.metric.endswith("_ece") or known_metrics(several_classes=False)[self.metric].reads == "bins"

    @property
    def text(self) -> str:
        """The rule and its limit, such as `max-gap 0.03`."""
        return f"{self.name} {self.limit:g}"

    def verdict(self, low: float | None, high: float | None) -> VerdictName:
        """Return on which side of the limit an interval lies."""
        if low is None or high is None:
            return "unsure"
        if self.kind == "min":
            low, high, limit = -high, -low, -self.limit
        else:
            limit = self.limit
        if low > limit:
            return "under" if self.kind == "min" else "over"
        return "within" if high <= limit else "unsure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found in a segment.

    Attributes
    ----------
    rule : Rule
        The rule.
    segment : str
        Name of the segment, such as `region=West`, or `(all rows)`.
    column, value : str or None
        Its column and value; None for all rows, the value also where it is missing.
    period, called : str or None
        The first day of the period, of a rule about drift, and what the period is called.
    n, n_missing : int
        Rows used, and rows with something missing.
    observed, low, high : float or None
        The value with its interval, which holds over all segments together; None where there are too few rows.
    verdict : str
        One of the verdicts of segments.
    """

    rule: Rule
    segment: str
    column: str | None
    value: str | None
    period: str | None = None
    called: str | None = None
    n: int
    n_missing: int
    observed: float | None
    low: float | None
    high: float | None
    verdict: VerdictName

    @property
    def place(self) -> str:
        """The segment, and the period if there is one."""
        return self.segment if self.called is None else f"{self.segment}, {self.called}"

    @property
    def words(self) -> tuple[str, str]:
        """Symbol and words of the verdict."""
        return _WORDS[self.rule.kind][self.verdict]

    @property
    def excess(self) -> float:
        """How many rows times the gap or its change, or times how far a metric is beyond its limit, for the order."""
        if self.observed is None:
            return -math.inf
        if self.rule.kind in {"gap", "drift"}:
            return self.n * abs(self.observed)
        away = self.observed - self.rule.limit
        return self.n * (-away if self.rule.kind == "min" else away)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """All findings, worst first.

    Attributes
    ----------
    findings, failing, undecided : tuple of Finding
        All of them, those that the gate fails on, beyond their limits or not, and those that neither do nor hold.
    """

    findings: tuple[Finding, ...]
    failing: tuple[Finding, ...]
    undecided: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Sequence[Finding], *, fail_on: FailOn, strict: bool) -> Gate:
        """Sort findings into those that fail, those that are not decided, and the rest.

        Parameters
        ----------
        findings
            In any order.
        fail_on
            What fails besides an interval beyond its limit.
        strict
            Whether an interval that reaches over its limit fails, too.
        """
        fails: set[str] = {*CLEAR}
        if strict or fail_on != "gap":
            fails |= LEANS
        if strict or fail_on == "undecided":
            fails |= {"unsure"}
        if fail_on == "undecided":
            fails |= {"few"}
        worst = sorted(findings, key=lambda one: (one.verdict not in fails, RANK[one.verdict], -one.excess))
        failing = tuple(one for one in worst if one.verdict in fails)
        rest = [one for one in worst if one.verdict not in fails and one.verdict != "within"]
        return cls(findings=tuple(worst), failing=failing, undecided=tuple(rest))

    @property
    def tripped(self) -> bool:
        """Whether anything fails."""
        return bool(self.failing)

    def by_rule(self) -> list[tuple[Rule, list[Finding]]]:
        """Return the findings of each rule, worst first, the rule with the worst of them first."""
        rules: dict[Rule, list[Finding]] = {}
        for one in self.findings:
            rules.setdefault(one.rule, []).append(one)
        return [*rules.items()]
