"""The headline of an audit: one sentence, each part of it by a rule that the numbers bear out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calframe._verdicts import CLEAR, LEANS
from calframe._words._numbers import plural, short, whole_points

Row = Mapping[str, Any]

_ROUNDING = 1e-9  # gaps that differ by less are the same


def headline(
    overall: Row, segments: Sequence[Row], search: Row | None, *, alpha: float, spoken: Mapping[str, str]
) -> str:
    """Say how the scores are off on average, which segments have a clear gap, and where the curve is off.

    Parameters
    ----------
    overall : mapping
        All rows as one segment: `n`, `gap`, `verdict`.
    segments : sequence of mapping
        The segments, worst first, with `segment`, `gap`, `net` and `verdict`.
    search : mapping or None
        The largest cumulative error of all segments: its `segment`, and `pvalue`.
    alpha : float
        Error rate.
    spoken : mapping of str to str
        What a reader calls each segment.
    """
    return average(overall) + _gaps(overall, segments, spoken) + _curve(search, alpha, spoken) + "."


def average(overall: Row) -> str:
    """Say how the scores are off on average."""
    verdict, gap = overall["verdict"], overall["gap"]
    if overall["n"] == 0:
        return "There is no row that can be used"
    if verdict == "few":
        return "There are too few rows to judge even the average"
    if verdict == "unsure":
        return "Whether the scores are off on average cannot be told yet"
    if verdict == "within":
        return "On average the scores are within tolerance"
    size, way = whole_points(gap), "high" if gap > 0 else "low"
    if verdict in LEANS:
        return f"On average the scores lean {size} percentage points {way}"
    return f"On average the scores run {size} percentage points too {way}"


def is_beyond_chance(search: Row | None, alpha: float) -> bool:
    """Tell whether along the scores of a segment labels wander further off than chance lets them anywhere."""
    return search is not None and search["pvalue"] is not None and bool(search["pvalue"] <= alpha)


def _gaps(overall: Row, segments: Sequence[Row], spoken: Mapping[str, str]) -> str:
    if overall["n"] == 0 or not segments:
        return ""
    clear = [row for row in segments if row["verdict"] in CLEAR]
    if clear:
        mild = overall["verdict"] in {"within", "unsure", "few"}
        return (", but " if mild else "; ") + _clear(clear, spoken)
    still_open = sum(row["verdict"] != "within" for row in segments)
    if still_open:
        return f"; no segment has a clear gap, but {still_open:,} of {len(segments):,} cannot be cleared yet"
    if overall["verdict"] == "within":
        return ", and so is every segment"
    return "; the gap of every segment is within tolerance"


def _clear(clear: Sequence[Row], spoken: Mapping[str, str]) -> str:
    worst = clear[0]
    off = f"{'overstated' if worst['gap'] > 0 else 'understated'} by {whole_points(worst['gap'])} percentage points"
    name = short(spoken[worst["segment"]])
    if len(clear) == 1:
        return f"{name} is {off}"
    if any(abs(row["gap"]) > abs(worst["gap"]) + _ROUNDING for row in clear):  # it is not the one furthest off
        return f"{len(clear):,} segments have clear gaps; of these {name} misstates the most rows ({off})"
    rest = plural(len(clear) - 1, "other segment")
    return f"{name} is {off} and {rest} {'has a clear gap' if len(clear) == 2 else 'have clear gaps'} too"


def _curve(search: Row | None, alpha: float, spoken: Mapping[str, str]) -> str:
    if search is None or not is_beyond_chance(search, alpha):
        return ""
    return f"; along the scores of {short(spoken[search['segment']])} the gaps are more than chance"
