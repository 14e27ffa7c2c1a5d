"""Three-way verdicts: a clear gap, within tolerance, or not decided; never "not significant, so fine"."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from calframe._errors import ArgumentError
from calframe._kernels._corrections import adjusted
from calframe._kernels._intervals import normal_quantile, rate_interval, score_test, sidak_level
from calframe._options import is_real
from calframe._typing import Bools, Floats, VerdictName

MIN_ROWS = 100  # effective rows, and
MIN_EVENTS = 10  # effective positives and negatives, below which nothing is judged
SHOWN_ROWS = 5  # below which nothing but the number of rows is told: more would tell of single rows
_ROUNDING = 1e-6  # ten events must not become fewer by arithmetic
FURTHEST = 10.0  # rows needed are named up to this many times what there is

WORDS: dict[VerdictName, tuple[str, str]] = {
    "over": ("▲", "Over-predicts"),
    "under": ("▼", "Under-predicts"),
    "leans_over": ("△", "Leans over"),
    "leans_under": ("▽", "Leans under"),
    "within": ("●", "Within tolerance"),
    "unsure": ("○", "Can't tell yet"),
    "few": ("–", "Too few rows"),
}
"""Symbol and words of each verdict; the symbol says what the colour says."""

RANK: dict[VerdictName, int] = {
    "over": 0,
    "under": 0,
    "leans_over": 1,
    "leans_under": 1,
    "unsure": 2,
    "within": 3,
    "few": 4,
}
CLEAR: frozenset[VerdictName] = frozenset({"over", "under"})
LEANS: frozenset[VerdictName] = frozenset({"leans_over", "leans_under"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Gaps of segments and what can be said of them; arrays with one value a segment.

    Attributes
    ----------
    gap, low, high : ndarray
        Mean score minus rate, and its own interval.
    sim_low, sim_high : ndarray
        Ends of intervals that hold together over all judged segments (Šidák).
    pvalue, pvalue_adjusted : ndarray
        Two-sided score test of gap 0, which the interval inverts, raw and by Holm; NaN where not judged.
    judged : ndarray of bool
        Whether there are rows enough.
    rows_needed : ndarray
        Rows at which an undecided segment would be decided if its gap stays; NaN where that is far off.
    verdict : tuple of str
        The verdict of each segment.
    """

    gap: Floats
    low: Floats
    high: Floats
    sim_low: Floats
    sim_high: Floats
    pvalue: Floats
    pvalue_adjusted: Floats
    judged: Bools
    rows_needed: Floats
    verdict: tuple[VerdictName, ...]

    @property
    def comparisons(self) -> int:
        """The number of segments judged."""
        return int(self.judged.sum())

    def part(self, start: int, stop: int) -> Self:
        """Return the segments from `start` up to `stop`."""
        return type(self)(**{field.name: getattr(self, field.name)[start:stop] for field in fields(self)})


def check_tolerance(tolerance: float, alpha: float) -> None:
    """Raise unless tolerance and alpha are usable."""
    if not (is_real(tolerance) and 0.0 < tolerance < 1.0):
        msg = f"tolerance is a gap between 0 and 1, for example 0.03 for 3 percentage points; got {tolerance!r}."
        raise ArgumentError(msg)
    if not (is_real(alpha) and 0.0 < alpha < 0.5):
        msg = f"alpha must lie between 0 and 0.5, for example 0.05; got {alpha!r}."
        raise ArgumentError(msg)


def judge(
    *,
    rate: Floats,
    score: Floats,
    n: Floats,
    rows: Floats,
    tolerance: float,
    alpha: float,
    min_events: float = MIN_EVENTS,
) -> Judged:
    """Judge gaps against a tolerance, over all segments at once.

    Parameters
    ----------
    rate, score : ndarray
        Observed rate and mean score of each segment.
    n, rows : ndarray
        Effective rows ``(sum w)^2 / sum w^2``, and rows.
    tolerance : float
        The gap, either way, that does not matter.
    alpha : float
        Error rate over all segments together.
    min_events : float, default 10
        Effective positives, and negatives, that a segment must have to be judged.

    Notes
    -----
    The interval of a gap mirrors the Wilson interval of the rate, with the scores held fixed; it is widened for
    all judged segments by Šidák's level. Whole interval beyond the tolerance: a clear gap. Whole interval inside:
    within tolerance. An adjusted p-value below alpha otherwise: a lean. Anything else is not decided.
    """
    least = min_events - _ROUNDING
    enough = (n >= MIN_ROWS - _ROUNDING) & (n * rate >= least) & (n * (1.0 - rate) >= least)
    together = sidak_level(1.0 - alpha, int(enough.sum()))
    low, high = _gap_interval(rate, score, n, 1.0 - alpha)
    sim_low, sim_high = _gap_interval(rate, score, n, together)
    raw = np.where(enough, score_test(rate, score, np.where(enough, n, 1.0)), np.nan)
    corrected = adjusted(raw, "holm")
    verdict = tuple(
        _verdict(*ends, tolerance=tolerance, alpha=alpha) if known else "few"
        for known, *ends in zip(enough, sim_low, sim_high, corrected, strict=True)
    )
    return Judged(
        gap=score - rate,
        low=low,
        high=high,
        sim_low=sim_low,
        sim_high=sim_high,
        pvalue=raw,
        pvalue_adjusted=corrected,
        judged=enough,
        rows_needed=_rows_needed(rate, score, n, rows, tolerance=tolerance, level=together, verdict=verdict),
        verdict=verdict,
    )


def worst_first(verdict: tuple[VerdictName, ...], net: Floats) -> list[int]:
    """Return the order of segments: by kind of verdict, then by the number of rows misstated."""
    size = np.round(np.nan_to_num(np.abs(net)), 6)  # equal segments stay in their order
    return sorted(range(len(verdict)), key=lambda i: (RANK[verdict[i]], -size[i]))


def _verdict(low: float, high: float, pvalue: float, *, tolerance: float, alpha: float) -> VerdictName:
    if low > tolerance:
        return "over"
    if high < -tolerance:
        return "under"
    if -tolerance <= low and high <= tolerance:
        return "within"
    if pvalue < alpha:
        return "leans_over" if low + high > 0 else "leans_under"
    return "unsure"


def _gap_interval(rate: Floats, score: Floats, n: Floats, level: float) -> tuple[Floats, Floats]:
    low, high = rate_interval(rate, n, level=level)
    return score - high, score - low


def _rows_needed(
    rate: Floats,
    score: Floats,
    n: Floats,
    rows: Floats,
    *,
    tolerance: float,
    level: float,
    verdict: tuple[VerdictName, ...],
) -> Floats:
    """Return rows at which the widened interval would lie on one side of the tolerance, if the gap stays as it is."""
    distance = np.abs(tolerance - np.abs(score - rate))
    spread = rate * (1.0 - rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = normal_quantile(level) ** 2 * spread / distance**2 * (rows / n)
    undecided = np.array([name in {"unsure", "leans_over", "leans_under"} for name in verdict], dtype=np.bool_)
    return np.where(undecided & (needed > rows) & (needed <= FURTHEST * rows), needed, np.nan)
