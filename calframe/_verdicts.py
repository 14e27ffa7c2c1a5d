"""Three-way verdicts: a clear gap, within tolerance, or not decided; never "not significant, so fine"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from calframe._errors import ArgumentError
from calframe._kernels._corrections import Correction, adjusted
from calframe._kernels._intervals import rate_interval, sidak_level
from calframe._options import check_alpha, is_real
from calframe._testing._rates import rarer_events
from calframe._testing._summed import reaches
from calframe._testing._tails import binomial_pvalue
from calframe._typing import Bools, Floats, RateInterval, VerdictName

MIN_ROWS = 100  # effective rows, and
MIN_EVENTS = 10  # effective positives and negatives, seen or expected, below which nothing is judged
SHOWN_ROWS = 5  # below which nothing but the number of rows is told: more would tell of single rows
FURTHEST = 10.0  # rows needed are named up to this many times what there is
_HALVINGS = 14  # of that range, which leaves 0.02 %

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


def lean_note(
    verdicts: Iterable[VerdictName],
    alpha: float,
    *,
    word: str = "leans",
    what: str = "the gap",
    limit: str = "tolerance",
) -> str | None:
    """Return what a lean is, where there is one: the p-value and the interval beside it may disagree about 0.

    Examples
    --------
    >>> lean_note(["over", "leans_over"], 0.05).split(", ")[:2]
    ['leans: the adjusted p-value is at most 0.05', 'the gap may still be within the tolerance']
    """
    if LEANS.isdisjoint(verdicts):
        return None
    return (
        f"{word}: the adjusted p-value is at most {alpha:g}, {what} may still be within the {limit}, and the "
        "cautious interval may touch 0"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What gaps are judged by: as the arguments of a verb say.

    Attributes
    ----------
    tolerance, alpha, correction, min_rows
        As in `judge`.
    """

    tolerance: float
    alpha: float
    correction: Correction = "holm"
    min_rows: float = MIN_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Gaps of segments and what can be said of them; arrays with one value a segment.

    Attributes
    ----------
    gap, low, high : ndarray
        Mean score minus rate, and its own interval.
    sim_low, sim_high : ndarray
        Ends of exact intervals that hold together over all segments with rows enough (Šidák).
    pvalue, pvalue_adjusted : ndarray
        Two-sided binomial test of the mean score, exact for equal scores and cautious for others, which those intervals
        invert, raw and adjusted; NaN where not judged.
    enough : ndarray of bool
        Whether there are rows enough, which says how many segments are compared.
    judged : ndarray of bool
        Whether there are events enough, too.
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
    enough: Bools
    judged: Bools
    rows_needed: Floats
    verdict: tuple[VerdictName, ...]

    @property
    def comparisons(self) -> int:
        """The number of segments compared."""
        return int(self.enough.sum())


def check_tolerance(tolerance: float, alpha: float) -> None:
    """Raise unless tolerance and alpha are usable."""
    if not (is_real(tolerance) and 0.0 < tolerance < 1.0):
        msg = f"tolerance is a gap between 0 and 1, for example 0.03 for 3 percentage points; got {tolerance!r}."
        raise ArgumentError(msg)
    check_alpha(alpha)


def judge(
    *,
    rate: Floats,
    score: Floats,
    n: Floats,
    rows: Floats,
    tolerance: float,
    alpha: float,
    size: Floats | None = None,
    units: Floats | None = None,
    correction: Correction = "holm",
    min_rows: float = MIN_ROWS,
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
    size : ndarray, optional
        What `min_rows` and the number of comparisons go by, where labels have a say in the effective rows.
    units : ndarray, optional
        Clusters of rows that are not independent: so many must hold the fewest events, too.
    correction : str, default "holm"
        How p-values are adjusted.
    min_rows, min_events : float, default 100 and 10
        Effective rows, and effective positives and negatives, seen or expected by the scores, that a segment must
        have to be judged.

    Notes
    -----
    The interval of a gap mirrors the interval of the rate, with the scores held fixed: Wilson's by itself, and that of
    Clopper and Pearson, which is exact, at Šidák's level for the verdict. Far out in the tails, where many segments are
    compared, Wilson's interval and the score test err on rare events. Segments with rows enough but too few events
    count as compared: a number of comparisons that the labels have a say in would not hold the level.

    Whole interval beyond the tolerance: a clear gap. Whole interval inside: within tolerance. An adjusted p-value of at
    most alpha otherwise: a lean. Anything else is not decided.
    """
    enough = reaches(n if size is None else size, min_rows)
    surely = n if units is None else np.minimum(n, units)
    judged = enough & reaches(n, min_rows) & reaches(rarer_events(surely, rate, score), min_events)
    together = sidak_level(1.0 - alpha, int(enough.sum()))
    low, high = gap_interval(rate, score, n, level=1.0 - alpha)
    sim_low, sim_high = gap_interval(rate, score, n, level=together, method="clopper_pearson")
    raw = np.where(enough, binomial_pvalue(rate, score, n), np.nan)
    corrected = adjusted(raw, correction)
    verdict = tuple(
        verdict_of(*found, tolerance=tolerance, alpha=alpha) if known else "few"
        for known, *found in zip(judged, score - rate, sim_low, sim_high, corrected, strict=True)
    )
    return Judged(
        gap=score - rate,
        low=low,
        high=high,
        sim_low=sim_low,
        sim_high=sim_high,
        pvalue=np.where(judged, raw, np.nan),
        pvalue_adjusted=np.where(judged, corrected, np.nan),
        enough=enough,
        judged=judged,
        rows_needed=_rows_needed(rate, score, n, rows, tolerance=tolerance, level=together, verdict=verdict),
        verdict=verdict,
    )


def worst_first(verdict: Sequence[VerdictName], net: Floats) -> list[int]:
    """Return the order of segments: by kind of verdict, then by the number of rows misstated."""
    size = np.round(np.nan_to_num(np.abs(net)), 6)  # equal segments stay in their order
    return sorted(range(len(verdict)), key=lambda i: (RANK[verdict[i]], -size[i]))


def verdict_of(gap: float, low: float, high: float, pvalue: float, *, tolerance: float, alpha: float) -> VerdictName:
    """Return the verdict on a gap, or on a change of one, with rows enough.

    Parameters
    ----------
    gap, low, high : float
        It and its interval; NaN where unknown.
    pvalue : float
        Adjusted p-value of 0; NaN where unknown.
    tolerance, alpha : float
        As in `judge`.

    Examples
    --------
    >>> verdict_of(0.05, 0.04, 0.06, 0.0, tolerance=0.03, alpha=0.05)
    'over'
    >>> verdict_of(-0.03, -0.05, -0.01, 0.001, tolerance=0.03, alpha=0.05)
    'leans_under'
    """
    if low > tolerance:
        return "over"
    if high < -tolerance:
        return "under"
    if -tolerance <= low and high <= tolerance:
        return "within"
    if pvalue <= alpha:
        return "leans_over" if gap > 0 else "leans_under"
    return "unsure"


def gap_interval(
    rate: Floats, score: Floats, n: Floats, *, level: float, method: RateInterval = "wilson"
) -> tuple[Floats, Floats]:
    """Return the interval of a gap: that of the rate mirrored, scores held fixed."""
    low, high = rate_interval(rate, n, level=level, method=method)
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
    names = {"unsure"} | LEANS
    at = np.array([i for i, name in enumerate(verdict) if name in names], dtype=np.intp)
    at = at[_decided(rate[at], score[at], FURTHEST * n[at], tolerance=tolerance, level=level)]
    least, most = np.ones(at.size), np.full(at.size, FURTHEST)
    for _ in range(_HALVINGS):
        middle = np.sqrt(least * most)
        done = _decided(rate[at], score[at], middle * n[at], tolerance=tolerance, level=level)
        least, most = np.where(done, least, middle), np.where(done, middle, most)
    needed = np.full(rate.shape, np.nan)
    needed[at] = most * rows[at]
    return needed


def _decided(rate: Floats, score: Floats, n: Floats, *, tolerance: float, level: float) -> Bools:
    low, high = gap_interval(rate, score, n, level=level, method="clopper_pearson")
    return (low > tolerance) | (high < -tolerance) | ((low >= -tolerance) & (high <= tolerance))
