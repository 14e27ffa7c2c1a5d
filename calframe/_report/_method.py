"""How a report was worked out, the call that makes it again, and where it comes from."""

from __future__ import annotations

import datetime as dt
import os
import platform
from importlib.metadata import version

from calframe._periods import PERIOD_WORDS
from calframe._report._findings import Findings
from calframe._report._sentences import needed
from calframe._segments import CURVE_ROWS, ECE_BINS, HEAT_ROWS
from calframe._verdicts import MIN_EVENTS, MIN_ROWS, SHOWN_ROWS
from calframe._version import __version__
from calframe._words._numbers import count, plural, rows, tolerance

_GAP = (
    "Mean score minus observed rate, in percentage points. Positive: the scores say too much. Segments are ranked by "
    "verdict, then by rows times gap, not by Brier score or log loss, which also move with the rate."
)
_SMALL = (
    f"Under {MIN_ROWS} rows, or {MIN_EVENTS} positives or negatives, seen or expected by the scores, a segment is "
    f"listed and never judged (a period needs only the rows); under {SHOWN_ROWS} rows only their number is told. "
    f"Curves have at least {CURVE_ROWS} rows a bin where they can; heatmap cells under {HEAT_ROWS} rows show no number."
)
_CHANCE = (
    f"ECE: mean absolute gap over {ECE_BINS} bins of equal width, closed on the left. Beside it what scores that "
    "are all right would show: the mean in closed form, the rest from labels drawn 1,000 times (calframe.test). Bands: "
    "the central part of the Binomial matched to mean and variance of each bin."
)
_LIMITS = (
    "Calibration says nothing about who was scored, whether the outcome was recorded as it happened, or groups that "
    "are not in the table. It is not a legal finding."
)


def method(findings: Findings) -> tuple[tuple[str, str], ...]:
    """Return the paragraphs of the method."""
    return (
        ("Gap", _GAP),
        ("Intervals and tests", _intervals(findings)),
        ("Several segments at once", _several(findings)),
        ("Verdicts", _verdicts(findings)),
        ("Small segments", _SMALL),
        ("Calibration error and chance", _CHANCE),
        ("Rows", _rows_text(findings)),
        ("Over time", _over_time(findings)),
        ("What this cannot show", _LIMITS),
    )


def provenance(findings: Findings) -> str:
    """Return where the report comes from: counts, fingerprint, versions, time."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("polars", "pandas", "numpy", "altair"))
    return (
        f"{rows(findings.counts['rows'])} read, {count(findings.counts['used'])} used; fingerprint of the counts in "
        f"every cell {findings.fingerprint}. Made {_now():%Y-%m-%d %H:%M} UTC with calframe {__version__}, "
        f"{libraries}, Python {platform.python_version()}. Labels were drawn with seed 0. This file holds no row of "
        "the table and loads nothing from the network."
    )


def _intervals(findings: Findings) -> str:
    return (
        f"The {100 * (1 - findings.alpha):g}% interval of a gap mirrors the Wilson interval of the rate, with the "
        "scores held fixed; for verdicts it mirrors that of Clopper and Pearson, which is exact, and so is the "
        "p-value. They are cautious where the scores of a segment differ widely."
    )


def _several(findings: Findings) -> str:
    if not findings.groupings:
        return "No segment column was given: the table is judged as a whole, and nothing needs correction."
    return (
        f"Widened intervals hold together over all {plural(findings.comparisons, 'segment')} of all groupings that "
        "have rows enough (Šidák); p-values are adjusted by Holm over the same. Cells of the heatmap are not corrected "
        "and carry no verdict."
    )


def _verdicts(findings: Findings) -> str:
    return (
        f"Clear gap: the widened interval lies beyond {tolerance(findings.tolerance)}. Within tolerance: it lies "
        f"inside. Leaning: neither, but the adjusted p-value is at most {findings.alpha:g}; the gap may still be "
        "within the tolerance, and the cautious interval may touch 0. Otherwise undecided: no "
        "evidence of a gap is not evidence of none. Verdicts of segments are about the gap; that on the whole table "
        "also about the curve: it is off where the ECE is beyond that of right scores, and beyond the gap, by more "
        "than the tolerance, and beyond what right scores would show once in a thousand times. Scores of a segment are "
        "off over their range where its ECE is so, too, and its cumulative error (ECCE) beyond "
        f"chance after a search over all segments, at {findings.alpha:g}. Segments are those of "
        "calframe.audit(depth=1)."
    )


def _over_time(findings: Findings) -> str:
    if findings.roles.time is None:
        return "No time column was given, so nothing is said about when."
    if findings.course is None:
        return f"No row has a date in {findings.roles.time}, so nothing is said about when."
    unit, zone = PERIOD_WORDS[findings.course.every], findings.course.zone or "the column itself"
    return (
        f"Periods of one {unit}, days as in {zone}. A shift is named only for an unbroken run of marked "
        "periods to the end whose gap, taken together, lies beyond the tolerance."
    )


def _rows_text(findings: Findings) -> str:
    counts = findings.counts
    parts = [f"{rows(counts['rows'])} read", f"{count(counts['used'])} used"]
    parts.append(f"{count(counts['missing'])} without {needed(findings)}")
    if findings.roles.invalid == "drop":
        parts.append(f"{count(counts['invalid'])} left out as invalid")
    if findings.roles.weight is not None:
        parts.append(f"{count(counts['zero_weight'])} of weight 0")
    text = ", ".join(parts) + ". Missing segment values are a segment of their own."
    if findings.roles.weight is not None:
        rows_used = "sum w" if findings.roles.weight_kind == "frequency" else "(sum w)² / sum w²"
        text += f" Rows are weighted by {findings.roles.weight}; intervals and verdicts count {rows_used} rows."
    if findings.roles.cluster is not None:
        text += f" {_clusters_text(findings)}"
    empty = [f"{grouping.column}: {', '.join(grouping.empty)}" for grouping in findings.groupings if grouping.empty]
    if findings.roles.link == "logit":
        text += " Scores are logits, turned into probabilities."
    return text + (f" Declared categories without rows: {'; '.join(empty)}." if empty else "")


def _clusters_text(findings: Findings) -> str:
    row = findings.overall
    if row["design_effect"] is None:
        return f"Rows of one {findings.roles.cluster} share their luck, and there is a single one: nothing is decided."
    return (
        f"Rows of one {findings.roles.cluster} share their luck: the effective number of clusters is "
        f"{count(row['n_clusters'])}, and the gap of all rows has the interval of so many rows divided by "
        f"{row['design_effect']:.3g}. Intervals, p-values and verdicts count rows like that, segment by segment and "
        "period by period; in curves, heatmaps and the ECE of right scores the divisor of a segment goes for all its "
        "ranges. Cumulative errors of single segments are not looked for."
    )


def _now() -> dt.datetime:
    """Return the time, or the one that SOURCE_DATE_EPOCH sets for reproducible files."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return dt.datetime.fromtimestamp(int(epoch), dt.UTC) if epoch else dt.datetime.now(dt.UTC)
