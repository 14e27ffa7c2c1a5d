"""Segments made by hand that the tests of the report's words share."""

from __future__ import annotations

from tests._findings import course, findings, grouping, numbers, run

OVERALL = {
    "within": numbers("within", gap=0.004),
    "over": numbers("over", gap=0.051),
    "under": numbers("under", gap=-0.051),
    "leans_over": numbers("leans_over", gap=0.031, adjusted=0.001),
    "leans_under": numbers("leans_under", gap=-0.012, adjusted=0.04),
    "unsure": numbers("unsure", gap=0.025),
    "few": numbers("few", gap=0.1, n=66),
    "crooked": numbers("leans_over", gap=0.025, ece=0.052),
}
AVERAGE = {
    "within": "On average the scores are within tolerance",
    "over": "On average the scores run 5 percentage points too high",
    "under": "On average the scores run 5 percentage points too low",
    "leans_over": "On average the scores lean 3 percentage points high",
    "leans_under": "On average the scores lean 1.2 percentage points low",
    "unsure": "Whether the scores are off on average cannot be told yet",
    "few": "There are too few rows to judge even the average",
}
WEST = numbers("over", name="West", gap=0.077, rate=0.217, n=3566)
COAST = numbers("under", name="Coast", gap=-0.046, n=2918)
NORTH = numbers("over", name="North", gap=0.061, n=1000)
EAST = numbers("leans_over", name="East", gap=0.026, adjusted=0.012, wide=0.014)
SOUTH = numbers("unsure", name="South", gap=0.02, n=726, needed=6721.3)
HILLS = numbers("unsure", name="Hills", gap=0.029, n=800)
ISLANDS = numbers("few", name="Islands", gap=0.2, n=66)
PORT = numbers("few", name="Port", gap=0.2, n=500, rate=0.004)
FINE = numbers("within", name="Fine", gap=0.003, wide=0.012)
MONTHS = (
    ("Mar 2026", 0.004, "in"),
    ("Apr 2026", -0.004, "in"),
    ("May 2026", 0.05, "over"),
    ("Jun 2026", 0.049, "over"),
)
RISEN = course(*MONTHS, since=run("May 2026", before=0.001, during=0.0495, moved=5, judged=6))
EVERYTHING = findings(
    grouping("area", WEST, COAST, NORTH, EAST, SOUTH, ISLANDS), overall=OVERALL["over"], course=RISEN, missing=5000
)
