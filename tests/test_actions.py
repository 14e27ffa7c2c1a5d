"""What to do: every line of it, in full, for findings made by hand."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from calframe._report._actions import actions
from calframe._report._findings import Findings
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
    [action] = actions(findings(grouping("area", WEST)))
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
        ("within", "Their mean is within tolerance, but"),
        ("leans_over", "Whatever their mean,"),
        ("unsure", "Whatever their mean,"),
    ],
)
def test_a_crooked_curve_asks_for_recalibration_of_the_whole(verdict: str, mean: str) -> None:
    action = actions(findings(overall=OVERALL[verdict] | {"ece": 0.062}))[0]
    assert action == Action(
        what="Recalibrate the scores as a whole.",
        why=(
            f"{mean} their curve is off: ECE 6.2 pp, where right scores would show 0.8 pp by chance. The reliability "
            "diagram shows where they say too much and where too little."
        ),
    )


def test_with_weights_shares_are_named_in_place_of_people() -> None:
    [action] = actions(findings(grouping("area", COAST), weight="w"))
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
    more = [numbers("over", name=f"S{i}", gap=0.1, n=100 * (10 - i)) for i in range(7)]
    found = actions(findings(grouping("area", WEST, COAST, *more), overall=OVERALL["over"]))
    assert found == (
        WHOLE,
        Action(
            what="Look at these by themselves:",
            why=(
                "area West (+7.7 pp), area Coast (−4.6 pp), area S0 (+10.0 pp), area S1 (+10.0 pp), area S2 (+10.0 "
                "pp) and 4 more differ clearly from the whole, which is off by +5.1 pp."
            ),
        ),
    )


@pytest.mark.parametrize(
    ("gap", "asked"),
    [
        (0.070, False),  # widened interval 5.0 to 9.0: the 5.1 pp of the whole are in it
        (0.072, True),  # 5.2 to 9.2
        (0.051, False),
        (0.032, False),  # 1.2 to 5.2
        (0.030, True),  # 1.0 to 5.0: less off than the whole, and clearly so
        (-0.046, True),  # the other way
    ],
)
def test_a_segment_that_is_off_as_the_whole_is_has_no_line_of_its_own(
    gap: float,
    asked: bool,  # noqa: FBT001
) -> None:
    one = numbers("over" if gap > 0 else "under", name="One", gap=gap)
    found = asked_for(findings(grouping("area", one), overall=OVERALL["over"]))
    assert found[0] == WHOLE.what
    assert found[1:] == (["Recalibrate area One before its scores are used again."] if asked else [])


def asked_for(found: Findings) -> list[str]:
    return [action.what for action in actions(found)]


def over_months(*periods: tuple[str, float, str], few: tuple[str, ...] = ()) -> Action:
    """Return the first action for a whole that is 5.1 pp too high over periods of (label, gap, verdict)."""
    when = course(*((label, gap, "in") for label, gap, _ in periods), few=few)
    verdicts = ["few" if label in few else verdict for label, _, verdict in periods]
    when = replace(when, table=when.table.with_columns(verdict=pl.Series(verdicts)))
    return actions(findings(overall=OVERALL["over"], course=when))[0]


JAN, FEB, MAR = ("Jan 2026", 0.002, "within"), ("Feb 2026", 0.08, "over"), ("Mar 2026", 0.11, "over")
APR, OTHER_WAY = ("Apr 2026", -0.0001, "within"), ("Apr 2026", -0.06, "under")


@pytest.mark.parametrize(
    ("periods", "said"),
    [
        (
            (JAN, FEB, MAR, APR),
            (
                "But the gap comes and goes: scores ran clearly too high from Feb 2026 to Mar 2026 (2 of 4 judged "
                "periods, Mar 2026 the most with +11.0 pp); the latest judged period, Apr 2026, is within tolerance "
                "(−0.01 pp)."
            ),
        ),
        (
            (FEB, APR),
            (
                "But the gap has gone: scores ran clearly too high in Feb 2026 (1 of 2 judged periods, +8.0 pp); the "
                "latest judged period, Apr 2026, is within tolerance (−0.01 pp)."
            ),
        ),
        (
            (FEB, MAR, OTHER_WAY),
            (
                "But the gap has gone: scores ran clearly too high from Feb 2026 to Mar 2026 (2 of 3 judged periods, "
                "Mar 2026 the most with +11.0 pp); the latest judged period, Apr 2026, is clearly too low (−6.0 pp)."
            ),
        ),
    ],
)
def test_a_gap_of_the_whole_that_does_not_last_is_looked_at_first(
    periods: tuple[tuple[str, float, str], ...], said: str
) -> None:
    assert over_months(*periods) == Action(
        what="Look at the gap over time before you recalibrate the scores as a whole.", why=f"{WHOLE.why} {said}"
    )


@pytest.mark.parametrize(
    "periods",
    [
        (JAN, FEB, MAR),  # off to the end
        (JAN, APR),  # no period is clearly off
        (FEB, ("Apr 2026", 0.02, "unsure")),  # the latest is not cleared
        (FEB, ("Apr 2026", 0.04, "leans_over")),
    ],
)
def test_a_gap_of_the_whole_is_recalibrated_where_no_period_clears_it(
    periods: tuple[tuple[str, float, str], ...],
) -> None:
    assert over_months(*periods) == WHOLE


def test_a_period_with_too_few_rows_neither_clears_nor_keeps_a_gap() -> None:
    begun = ("May 2026", 0.2, "few")
    assert over_months(JAN, FEB, MAR, APR, begun, few=("May 2026",)) == over_months(JAN, FEB, MAR, APR)
    assert over_months(JAN, FEB, MAR, ("May 2026", 0.0, "few"), few=("May 2026",)) == WHOLE


def test_one_clear_gap_beside_a_clear_whole_has_a_line_of_its_own() -> None:
    found = actions(findings(grouping("area", WEST, FINE), overall=OVERALL["over"]))
    assert found[0] == WHOLE
    assert [action.what for action in found[1:]] == ["Recalibrate area West before its scores are used again."]


def test_two_clear_gaps_have_a_line_each() -> None:
    found = actions(findings(grouping("area", WEST, COAST)))
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
    found = actions(findings(grouping("area", WEST, COAST, NORTH)))
    assert [action.what for action in found] == [
        "Recalibrate area West before its scores are used again.",
        "Recalibrate these too:",
    ]
    assert found[1].why == "area Coast (−4.6 pp) and area North (+6.1 pp) have clear gaps."


def test_clear_gaps_under_a_crooked_whole_are_recalibrated_too() -> None:
    crooked = OVERALL["within"] | {"ece": 0.062}
    found = actions(findings(grouping("area", WEST, COAST), overall=crooked))
    assert [action.what for action in found] == ["Recalibrate the scores as a whole.", "Recalibrate these too:"]
    assert found[1].why == "area West (+7.7 pp) and area Coast (−4.6 pp) have clear gaps."


ENOUGH = "with enough rows before and after"


@pytest.mark.parametrize(
    ("shift", "why"),
    [
        (run("May 2026", before=0.001, during=0.0495), "The gap moved from +0.1 pp to +5.0 pp."),
        (
            run("May 2026", before=0.001, during=0.0495, moved=1, judged=2),
            f"The gap moved from +0.1 pp to +5.0 pp, and it clearly rose in 1 of 2 segments {ENOUGH}.",
        ),
        (
            run("May 2026", before=-0.011, during=-0.062, moved=5, judged=6),
            (
                "The gap moved from −1.1 pp to −6.2 pp, and it clearly fell in 5 of 6 segments with enough rows before "
                "and after, so the cause is not one segment."
            ),
        ),
        (
            run("May 2026", before=-0.011, during=-0.062, moved=3, judged=6),
            f"The gap moved from −1.1 pp to −6.2 pp, and it clearly fell in 3 of 6 segments {ENOUGH}.",
        ),
        (
            run("May 2026", before=-0.011, during=-0.062, moved=2, judged=2),
            f"The gap moved from −1.1 pp to −6.2 pp, and it clearly fell in 2 of 2 segments {ENOUGH}.",
        ),
    ],
)
def test_a_shift_asks_what_changed(shift: object, why: str) -> None:
    [action] = actions(findings(course=course(*MONTHS, since=shift)))
    assert action == Action(what="Find out what changed in May 2026.", why=why)


def test_one_lean_is_watched_with_its_numbers() -> None:
    [action] = actions(findings(grouping("area", EAST)))
    assert action == Action(
        what="Watch area East.",
        why=(
            "It leans over by 2.6 pp, more than chance explains (adjusted p 0.012), but may still be inside the ±3 pp "
            "tolerance (widened interval +1.2 to +4.0)."
        ),
    )


def test_a_lean_of_the_whole_is_watched_where_no_segment_leans() -> None:
    found = actions(findings(overall=OVERALL["leans_under"]))
    assert found == (
        Action(
            what="Watch the scores as a whole.",
            why=(
                "They lean under by 1.2 pp, more than chance explains (adjusted p 0.040), but may still be inside the "
                "±3 pp tolerance (widened interval −3.2 to +0.8)."
            ),
        ),
    )


def test_several_leans_share_a_line() -> None:
    low = numbers("leans_under", name="Low", gap=-0.021, n=9000)
    [action] = actions(findings(grouping("area", EAST, low)))
    assert action == Action(
        what="Watch these:",
        why=(
            "area East (+2.6 pp) and area Low (−2.1 pp) lean further than chance would take them, but may still be "
            "inside the tolerance."
        ),
    )


def test_the_undecided_are_not_reported_as_fine() -> None:
    [action] = actions(findings(grouping("area", SOUTH, HILLS, ISLANDS, PORT)))
    # by rows misstated: 500 × 20 pp = 100; 800 × 2.9 pp = 23; 726 × 2 pp = 15; 66 × 20 pp = 13
    assert action == Action(
        what="Do not report these as fine:",
        why=(
            "area Port (500 rows, at least 10 of each outcome needed, seen or expected), area Hills (800 rows, more "
            "than 10 times as many needed), area South (726 rows, about 6,800 needed) and area Islands (66 rows, at "
            "least 100 needed) cannot be judged either way yet."
        ),
    )


def test_one_that_is_undecided_is_not_reported_as_fine() -> None:
    [action] = actions(findings(grouping("area", SOUTH)))
    assert action == Action(
        what="Do not report this as fine:",
        why="area South (726 rows, about 6,800 needed) cannot be judged either way yet.",
    )


def test_the_undecided_are_named_up_to_five_and_the_whole_first() -> None:
    many = [numbers("unsure", name=f"S{i}", gap=0.01, n=1000 - i, needed=2000.0) for i in range(6)]
    [action] = actions(findings(grouping("area", *many), overall=OVERALL["unsure"]))
    assert action.why == (
        "all rows together (10,000 rows, more than 10 times as many needed), area S0 (1,000 rows, about 2,000 needed), "
        "area S1 (999 rows, about 2,000 needed), area S2 (998 rows, about 2,000 needed), area S3 (997 rows, about "
        "2,000 needed) and 2 more cannot be judged either way yet."
    )


@pytest.mark.parametrize(("missing", "asked"), [(500, False), (527, True)])
def test_many_missing_rows_deserve_a_line(missing: int, asked: bool) -> None:  # noqa: FBT001
    found = actions(findings(missing=missing))  # 5 % of all rows is 526.3
    line = Action(
        what="Find out why 527 rows have no label or score.",
        why=("They are 5.0% of the table and in no number here; if what is missing differs, so may the verdict."),
    )
    assert (line in found) is asked


def test_one_missing_row_is_one_row() -> None:
    [action] = actions(findings(overall=numbers(n=9, gap=0.0), missing=1))
    assert action == Action(
        what="Find out why 1 row has no label or score.",
        why="It is 10.0% of the table and in no number here; if what is missing differs, so may the verdict.",
    )
    [action] = actions(findings(overall=numbers(n=9, gap=0.0), missing=1, weight="w"))
    assert action.what == "Find out why 1 row has no label, score or weight."


def test_nothing_to_do_is_said_only_where_there_is_nothing() -> None:
    assert actions(findings(grouping("area", FINE))) == (
        Action(
            what="Nothing to do now.",
            why="All that could be judged is within ±3 pp. Judge again when new outcomes are in.",
        ),
    )
    assert actions(findings()) == (
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
    [action] = actions(replace(findings(grouping("area", FINE)), curve=curve))
    assert action.why == f"All that could be judged is within ±3 pp. Judge again when new outcomes are in.{said}"


def test_a_shift_behind_periods_that_are_not_judged_may_have_begun_in_them() -> None:
    shift = run("May 2026", before=-0.011, during=-0.062, unjudged=2)
    [action] = actions(findings(course=course(*MONTHS, since=shift)))
    assert action == Action(
        what="Find out what changed in May 2026 or earlier.",
        why="The gap moved from −1.1 pp to −6.2 pp; the 2 periods before May 2026 have too few rows to be judged and "
        "are in neither average.",
    )


def test_there_are_five_lines_at_most() -> None:
    # A third of the rows has no score, which would be the sixth line.
    assert [action.what for action in actions(EVERYTHING)] == [
        "Recalibrate the scores as a whole.",
        "Look at these by themselves:",
        "Find out what changed in May 2026.",
        "Watch area East.",
        "Do not report these as fine:",
    ]


def test_a_weighted_segment_is_not_asked_for_outcomes_that_it_has() -> None:
    # 2,500 positives, but uneven weights: too few effective rows to be judged, which is another reason.
    uneven = numbers("few", name="Uneven", n=5000, rate=0.5)
    [action] = actions(findings(grouping("area", uneven), weight="w"))
    assert action.why == "area Uneven (5,000 rows, too few once weighted) cannot be judged either way yet."


def test_names_are_flat_and_cut() -> None:
    name = "Île-de-France\n\t and everything that belongs to it, at length"
    [action] = actions(findings(grouping("area", numbers("over", name=name, gap=0.05))))
    assert action.what == (
        "Recalibrate area Île-de-France and ev…gs to it, at length before its scores are used again."
    )
