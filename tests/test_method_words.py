"""The method section of a report, in words, for findings made by hand."""

from __future__ import annotations

from dataclasses import replace

from calframe._report import _method as method
from tests._findings import course, findings, grouping, numbers

WEST = numbers("over", name="West", gap=0.077, rate=0.217, n=3566)
FINE = numbers("within", name="Fine", gap=0.003)
ISLANDS = numbers("few", name="Islands", gap=0.2, n=66)
PORT = numbers("few", name="Port", gap=0.2, n=500, rate=0.004)


def test_method_names_tolerance_alpha_and_comparisons() -> None:
    paragraphs = dict(method.method(findings(grouping("area", WEST, FINE, PORT, ISLANDS), tolerance=0.02, alpha=0.1)))
    assert list(paragraphs) == [
        "Gap",
        "Intervals and tests",
        "Several segments at once",
        "Verdicts",
        "Small segments",
        "Calibration error and chance",
        "Rows",
        "Over time",
        "What this cannot show",
    ]
    assert "The 90% interval of a gap mirrors the Wilson interval" in paragraphs["Intervals and tests"]
    assert "for verdicts it mirrors that of Clopper and Pearson" in paragraphs["Intervals and tests"]
    assert "all 3 segments of all groupings that have rows enough (Šidák)" in paragraphs["Several segments at once"]
    assert "lies beyond ±2 pp" in paragraphs["Verdicts"]
    assert "adjusted p-value is at most 0.1" in paragraphs["Verdicts"]
    assert paragraphs["Over time"] == "No time column was given, so nothing is said about when."


def test_method_counts_rows_and_names_categories_without_rows() -> None:
    found = findings(grouping("area", WEST, empty=("Moon", "Mars")), missing=12, weight="w")
    assert dict(method.method(found))["Rows"] == (
        "10,012 rows read, 10,000 used, 12 without label, score or weight, 0 of weight 0. Missing segment values are a "
        "segment of their own. Rows are weighted by w; intervals and verdicts count (sum w)² / sum w² rows. "
        "Declared categories without rows: area: Moon, Mars."
    )


def test_method_says_how_weights_count_and_what_scores_hold() -> None:
    found = findings(grouping("area", WEST), weight="w")
    found = replace(found, roles=replace(found.roles, weight_kind="frequency", link="logit"))
    assert dict(method.method(found))["Rows"].endswith(
        " Rows are weighted by w; intervals and verdicts count sum w rows. Scores are logits, turned into "
        "probabilities."
    )


def test_method_says_in_which_zone_days_begin() -> None:
    found = findings(course=course(("Apr 2026", 0.0, "in")))
    assert dict(method.method(found))["Over time"].startswith("Periods of one month, days as in the column itself.")
