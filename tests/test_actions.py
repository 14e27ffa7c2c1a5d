"""What to do: every line of it, in full, for findings made by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from calframe._report import _sentences as sentences
from calframe._report._page import Action
from tests._findings import bins, course, findings, grouping, numbers, run
from tests._segments_by_hand import (
    COAST,
    EAST,
    EVERYTHING,
    FINE,
    HILLS,
    ISLANDS,
    MONTHS,
    NORTH,
    OVERALL,
    PORT,
    SOUTH,
    WEST,
)


def test_a_clear_gap_asks_for_recalibration_and_counts_people() -> None:
    [action] = sentences.actions(findings(grouping("area", WEST)))
    # 3,566 × 0.294 = 1,048.4 predicted; 3,566 × 0.217 = 773.8 happened
    assert action == Action(
        what="Recalibrate area West before its scores are used again.",
        why=(
            "The scores overstate by 7.7 pp (95% CI +6.7 to +8.7): of 3,566 rows, 1,048 positives were predicted and "
            "774 happened."
        ),
    )


@pytest.mark.parametrize(
    ("verdict", "mean"),
    [
        ("within", "Their mean is within tolerance"),
        ("leans_over", "Whatever their mean"),
        ("unsure", "Whatever their mean"),
    ],
)
def test_a_crooked_curve_asks_for_recalibration_of_the_whole(verdict: str, mean: str) -> None:
    action = sentences.actions(findings(overall=OVERALL[verdict] | {"ece": 0.052}))[0]
    assert action == Action(
        what="Recalibrate the scores as a whole.",
        why=(
            f"{mean}, their curve is off: ECE 5.2 pp, where right scores would show 0.8 pp by chance. The reliability "
            "diagram shows where they say too much and where too little."
        ),
    )


def test_with_weights_shares_are_named_in_place_of_people() -> None:
    [action] = sentences.actions(findings(grouping("area", COAST), weight="w"))
    assert action == Action(
        what="Recalibrate area Coast before its scores are used again.",
        why=(
            "The scores understate by 4.6 pp (95% CI −5.6 to −3.6): 25.4% said, 30.0% happened, by weight, over 2,918 "
            "rows."
        ),
    )


WHOLE = Action(
    what="Recalibrate the scores as a whole.",
    # 10,000 × 0.351 = 3,510 predicted; 10,000 × 0.3 = 3,000 happened
    why=(
        "The scores overstate by 5.1 pp (95% CI +4.1 to +6.1): of 10,000 rows, 3,510 positives were predicted and "
        "3,000 happened."
    ),
)


def test_the_whole_comes_first_and_its_segments_share_a_line() -> None:
    more = [numbers("over", name=f"S{i}", gap=0.05, n=100 * (20 - i)) for i in range(7)]
    found = sentences.actions(findings(grouping("area", WEST, COAST, *more), overall=OVERALL["over"]))
    assert found == (
        WHOLE,
        Action(
            what="Look at these by themselves:",
            why=(
                "area West (+7.7 pp), area Coast (−4.6 pp), area S0 (+5.0 pp), area S1 (+5.0 pp), area S2 (+5.0 pp) "
                "and 4 more have clear gaps of their own."
            ),
        ),
    )


def test_one_clear_gap_beside_a_clear_whole_has_a_line_of_its_own() -> None:
    found = sentences.actions(findings(grouping("area", WEST, FINE), overall=OVERALL["over"]))
    assert found[0] == WHOLE
    assert [action.what for action in found[1:]] == ["Recalibrate area West before its scores are used again."]


def test_two_clear_gaps_have_a_line_each() -> None:
    found = sentences.actions(findings(grouping("area", WEST, COAST)))
    assert [action.what for action in found] == [
        "Recalibrate area West before its scores are used again.",
        "Recalibrate area Coast before its scores are used again.",
    ]
    # 2,918 × 0.254 = 741.2 predicted; 2,918 × 0.3 = 875.4 happened
    assert found[1].why == (
        "The scores understate by 4.6 pp (95% CI −5.6 to −3.6): of 2,918 rows, 741 positives were predicted and 875 "
        "happened."
    )


def test_from_the_second_on_clear_gaps_share_a_line() -> None:
    found = sentences.actions(findings(grouping("area", WEST, COAST, NORTH)))
    assert [action.what for action in found] == [
        "Recalibrate area West before its scores are used again.",
        "Recalibrate these too:",
    ]
    assert found[1].why == "area Coast (−4.6 pp) and area North (+6.1 pp) have clear gaps of their own."


def test_clear_gaps_under_a_crooked_whole_are_recalibrated_too() -> None:
    crooked = OVERALL["within"] | {"ece": 0.052}
    found = sentences.actions(findings(grouping("area", WEST, COAST), overall=crooked))
    assert [action.what for action in found] == ["Recalibrate the scores as a whole.", "Recalibrate these too:"]
    assert found[1].why == "area West (+7.7 pp) and area Coast (−4.6 pp) have clear gaps of their own."


@pytest.mark.parametrize(
    ("shift", "why"),
    [
        (run("May 2026", before=0.001, during=0.0495), "The gap moved from +0.1 pp to +5.0 pp."),
        (
            run("May 2026", before=0.001, during=0.0495, moved=1, judged=2),
            "The gap moved from +0.1 pp to +5.0 pp, and it clearly rose in 1 of 2 segments.",
        ),
        (
            run("May 2026", before=-0.011, during=-0.062, moved=5, judged=6),
            (
                "The gap moved from −1.1 pp to −6.2 pp, and it clearly fell in 5 of 6 segments, so the cause is not "
                "one segment."
            ),
        ),
        (
            run("May 2026", before=-0.011, during=-0.062, moved=3, judged=6),
            "The gap moved from −1.1 pp to −6.2 pp, and it clearly fell in 3 of 6 segments.",
        ),
        (
            run("May 2026", before=-0.011, during=-0.062, moved=2, judged=2),
            "The gap moved from −1.1 pp to −6.2 pp, and it clearly fell in 2 of 2 segments.",
        ),
    ],
)
def test_a_shift_asks_what_changed(shift: object, why: str) -> None:
    [action] = sentences.actions(findings(course=course(*MONTHS, since=shift)))
    assert action == Action(what="Find out what changed in May 2026.", why=why)


def test_one_lean_is_watched_with_its_numbers() -> None:
    [action] = sentences.actions(findings(grouping("area", EAST)))
    assert action == Action(
        what="Watch area East.",
        why=(
            "It leans over by 2.6 pp, more than chance would do (adjusted p 0.012), but it may still be inside the ±3 "
            "pp tolerance (widened interval +1.2 to +4.0)."
        ),
    )


def test_a_lean_of_the_whole_is_watched_where_no_segment_leans() -> None:
    found = sentences.actions(findings(overall=OVERALL["leans_under"]))
    assert found == (
        Action(
            what="Watch the scores as a whole.",
            why=(
                "It leans under by 1.2 pp, more than chance would do (adjusted p 0.040), but it may still be inside "
                "the ±3 pp tolerance (widened interval −3.2 to +0.8)."
            ),
        ),
    )


def test_several_leans_share_a_line() -> None:
    low = numbers("leans_under", name="Low", gap=-0.021, n=9000)
    [action] = sentences.actions(findings(grouping("area", EAST, low)))
    assert action == Action(
        what="Watch these:",
        why=(
            "area East (+2.6 pp) and area Low (−2.1 pp) lean further than chance would take them, but may still be "
            "inside the tolerance."
        ),
    )


def test_the_undecided_are_not_reported_as_fine() -> None:
    [action] = sentences.actions(findings(grouping("area", SOUTH, HILLS, ISLANDS, PORT)))
    # by rows mis-stated: 500 × 20 pp = 100; 800 × 2.9 pp = 23; 726 × 2 pp = 15; 66 × 20 pp = 13
    assert action == Action(
        what="Do not report these as fine:",
        why=(
            "area Port (500 rows, at least 10 of each outcome needed), area Hills (800 rows), area South (726 rows, "
            "about 6,800 needed) and area Islands (66 rows, at least 100 needed) cannot be judged either way yet."
        ),
    )


def test_the_undecided_are_named_up_to_five_and_the_whole_first() -> None:
    many = [numbers("unsure", name=f"S{i}", gap=0.01, n=1000 - i) for i in range(6)]
    [action] = sentences.actions(findings(grouping("area", *many), overall=OVERALL["unsure"]))
    assert action.why == (
        "all rows together (10,000 rows), area S0 (1,000 rows), area S1 (999 rows), area S2 (998 rows), area S3 (997 "
        "rows) and 2 more cannot be judged either way yet."
    )


@pytest.mark.parametrize(("missing", "asked"), [(500, False), (527, True)])
def test_many_missing_rows_deserve_a_line(missing: int, asked: bool) -> None:  # noqa: FBT001
    found = sentences.actions(findings(missing=missing))  # 5 % of all rows is 526.3
    line = Action(
        what="Find out why 527 rows have no label or score.",
        why=("They are 5.0% of the table and in no number here; if what is missing differs, so may the verdict."),
    )
    assert (line in found) is asked


def test_one_missing_row_is_one_row() -> None:
    [action] = sentences.actions(findings(overall=numbers(n=9, gap=0.0), missing=1))
    assert action == Action(
        what="Find out why 1 row has no label or score.",
        why="It is 10.0% of the table and in no number here; if what is missing differs, so may the verdict.",
    )
    [action] = sentences.actions(findings(overall=numbers(n=9, gap=0.0), missing=1, weight="w"))
    assert action.what == "Find out why 1 row has no label, score or weight."


def test_nothing_to_do_is_said_only_where_there_is_nothing() -> None:
    assert sentences.actions(findings(grouping("area", FINE))) == (
        Action(
            what="Nothing to do now.",
            why="All that could be judged is within ±3 pp. Judge again when new outcomes are in.",
        ),
    )
    assert sentences.actions(findings()) == (
        Action(
            what="Nothing to do now.",
            why=(
                "All that could be judged is within ±3 pp. Judge again when new outcomes are in. No segment column was "
                "given, so nothing is said about parts of the table."
            ),
        ),
    )


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (1, " 1 bin of the curve below lies outside the band all the same."),
        (2, " 2 bins of the curve below lie outside the band all the same."),
    ],
)
def test_bins_outside_the_band_are_named_even_if_nothing_is_to_be_done(out: int, said: str) -> None:
    curve = pl.DataFrame(bins("All rows", out=out, of=15)).drop("segment")
    [action] = sentences.actions(replace(findings(grouping("area", FINE)), curve=curve))
    assert action.why == f"All that could be judged is within ±3 pp. Judge again when new outcomes are in.{said}"


def test_there_are_five_lines_at_most() -> None:
    # A third of the rows has no score, which would be the sixth line.
    assert [action.what for action in sentences.actions(EVERYTHING)] == [
        "Recalibrate the scores as a whole.",
        "Look at these by themselves:",
        "Find out what changed in May 2026.",
        "Watch area East.",
        "Do not report these as fine:",
    ]


def test_a_weighted_segment_is_not_asked_for_outcomes_that_it_has() -> None:
    # 2,500 positives, but uneven weights: too few effective rows to be judged, which is another reason.
    uneven = numbers("few", name="Uneven", n=5000, rate=0.5)
    [action] = sentences.actions(findings(grouping("area", uneven), weight="w"))
    assert action.why == "area Uneven (5,000 rows, too few once weighted) cannot be judged either way yet."


def test_names_are_flat_and_cut() -> None:
    name = "Île-de-France\n\t and everything that belongs to it, at length"
    [action] = sentences.actions(findings(grouping("area", numbers("over", name=name, gap=0.05))))
    assert action.what == (
        "Recalibrate area Île-de-France and everything that belon… before its scores are used again."
    )
