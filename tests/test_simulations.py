"""What the committed simulations of tests found: 5 % of right scores rejected and no more, and wrong ones found."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "simulations"
EXEMPT = {"hosmer_lemeshow internal"}  # rejects 8 to 19 % of right scores by construction


def lines(name: str) -> list[dict[str, Any]]:
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def most(runs: str) -> float:
    """Return 5 % and two Monte Carlo errors."""
    return 0.05 + 2.0 * math.sqrt(0.05 * 0.95 / float(runs))


def test_right_scores_are_rejected_in_five_percent_of_tables_at_most() -> None:
    right = [line for line in lines("sizes.csv") if line["truth"] == "right"]
    assert {line["kind"] for line in right} == {"even", "rare", "tied", "weighted"}
    assert {line["n"] for line in right} == {"50", "200", "2000"}
    for line in right:
        limit = 0.19 if line["test"] in EXEMPT else most(line["runs"])
        assert float(line["rejected"]) <= limit, line


def test_wrong_scores_are_found() -> None:
    # 2,000 rows of Beta(2, 2): a shift of 0.5 on the logit is ten standard errors, a slope of 1.5 eight
    blind = {
        "shifted": {"spiegelhalter", "resampling brier", "slope"},
        "steeper": {"gap", "intercept", "resampling mce"},  # of few rows a bin, the largest gap sees less
    }
    for line in lines("sizes.csv"):
        if (line["kind"], line["n"]) == ("even", "2000") and line["truth"] in blind:
            unseen = blind[line["truth"]] & {line["test"], line["hypothesis"]}
            assert unseen or float(line["rejected"]) >= 0.95, line


def test_right_scores_in_clusters_are_called_off_in_five_percent_of_tables_at_most() -> None:
    found = [line for line in lines("audit.csv") if line["part"] == "clusters"]
    assert len(found) == 54
    for line in found:
        assert float(line["share"]) <= most(line["replicates"]), line


def test_in_families_of_right_segments_anything_is_rejected_in_five_percent_at_most() -> None:
    found = lines("families.csv")
    drawn = {"corp", "resampling ece", "resampling mce", "resampling brier", "resampling smece"}
    closed = {"spiegelhalter", "hosmer_lemeshow", "ecce", "ks", "cox", "gap", "kernel"}
    assert {line["test"] for line in found if line["segments"] == "64"} == drawn | closed
    assert {line["test"] for line in found if line["correction"] == "max"} == drawn
    assert {line["test"] for line in found if line["segments"] == "1000"} >= closed - {"kernel"}
    for line in found:
        assert float(line["share"]) <= most(line["tables"]), line


def test_diagnose_finds_patterns_that_are_there_and_in_right_scores_five_percent_at_most() -> None:
    found = lines("diagnose.csv")
    assert len(found) == 66
    for line in found:
        if line["kind"] == "right":
            assert float(line["share"]) <= most(line["families"]), line
        else:
            assert float(line["share"]) >= 0.95, line


def test_in_periods_of_right_scores_in_clusters_five_percent_are_called_off_at_most() -> None:
    found = lines("drift_clusters.csv")
    assert len(found) == 16
    for line in found:
        shares = [float(line[name]) for name in ("gap", "change", "psi", "ks", "clear", "since", "alarm")]
        if line["clustered"] == "True":
            assert max(shares) <= most(line["tables"]), line
    plain = [float(line["gap"]) for line in found if line["clustered"] == "False" and line["world"] == "copies"]
    assert min(plain) > 0.5  # what `cluster` is for
