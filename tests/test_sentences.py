"""Every sentence of a report, in full, for findings made by hand."""

from __future__ import annotations

import pytest

from calframe._report import _sentences as sentences
from calframe._report._findings import Findings
from calframe._report._page import Tile
from calframe._typing import Tone
from tests._findings import course, findings, grouping, numbers, run
from tests._segments_by_hand import AVERAGE, COAST, EAST, FINE, ISLANDS, MONTHS, NORTH, OVERALL, RISEN, SOUTH, WEST


def lead(found: Findings) -> str:
    return sentences.headline(found).lead


@pytest.mark.parametrize("verdict", list(AVERAGE))
def test_headline_begins_with_the_average(verdict: str) -> None:
    found = findings(overall=OVERALL[verdict])
    assert lead(found) == AVERAGE[verdict] + "."


def test_headline_says_that_there_is_nothing_to_judge() -> None:
    nothing = numbers("few", gap=None, n=0, ece=None)
    assert lead(findings(overall=nothing)) == "There is no row that can be used."


@pytest.mark.parametrize(
    ("verdict", "joined"),
    [("within", ", but "), ("unsure", ", but "), ("few", ", but "), ("over", "; "), ("leans_under", "; ")],
)
def test_headline_names_the_one_clear_gap(verdict: str, joined: str) -> None:
    found = findings(grouping("area", WEST, SOUTH, FINE), overall=OVERALL[verdict])
    assert lead(found) == f"{AVERAGE[verdict]}{joined}area West is overstated by 8 percentage points."


def test_headline_names_two_clear_gaps_the_one_with_more_rows_mis_stated_first() -> None:
    # 3,566 × 7.7 pp = 275 rows against 2,918 × 4.6 pp = 134
    found = findings(grouping("area", COAST, FINE), grouping("shift", WEST))
    assert lead(found) == (
        "On average the scores are within tolerance, but shift West is overstated by 8 percentage points and area "
        "Coast understated by 5."
    )


def test_headline_counts_further_clear_gaps() -> None:
    found = findings(grouping("area", WEST, COAST, NORTH, FINE))
    assert lead(found) == (
        "On average the scores are within tolerance, but area West is overstated by 8 percentage points and 2 other "
        "segments have clear gaps too."
    )


def test_headline_says_by_what_a_segment_is_the_worst_where_another_is_further_off() -> None:
    # 1,000 rows × 6.1 pp = 61 and 300 × 12 pp = 36 against 2,918 × 4.6 pp = 134
    small = numbers("over", name="Small", gap=0.12, n=300)
    found = findings(grouping("area", COAST, NORTH, small))
    assert lead(found) == (
        "On average the scores are within tolerance, but 3 segments have clear gaps; of these area Coast misstates "
        "the most rows (understated by 5 percentage points)."
    )
    # Both of two are named with their sizes, so that nothing is hidden.
    assert lead(findings(grouping("area", COAST, NORTH))) == (
        "On average the scores are within tolerance, but area Coast is understated by 5 percentage points and area "
        "North overstated by 6."
    )
    # In full it would have more than 35 words.
    assert lead(findings(grouping("area", COAST, NORTH, small), overall=OVERALL["over"], course=RISEN)) == (
        f"{AVERAGE['over']}; 3 segments have clear gaps; of these area Coast misstates the most rows, and since May "
        "2026 scores overall have run 5 percentage points high."
    )


@pytest.mark.parametrize("verdict", ["within", "unsure", "over"])
def test_headline_counts_what_cannot_be_cleared(verdict: str) -> None:
    found = findings(grouping("area", EAST, SOUTH, FINE, ISLANDS), overall=OVERALL[verdict])
    assert lead(found) == AVERAGE[verdict] + ". No segment has a clear gap, but 3 of 4 cannot be cleared yet."


def test_headline_clears_every_segment_only_if_each_is_within_tolerance() -> None:
    every = grouping("area", FINE, numbers(name="Else"))
    assert lead(findings(every)) == "On average the scores are within tolerance, and so is every segment."
    found = findings(every, overall=OVERALL["unsure"])
    assert lead(found) == AVERAGE["unsure"] + "; the gap of every segment is within tolerance."


@pytest.mark.parametrize(("during", "way"), [(0.0495, "high"), (-0.0495, "low")])
def test_headline_ends_with_since_when(during: float, way: str) -> None:
    shifted = course(*MONTHS, since=run("May 2026", before=0.001, during=during))
    found = findings(course=shifted)
    assert lead(found) == (
        "On average the scores are within tolerance, but since May 2026 the scores as a whole have run 5 percentage "
        f"points {way}."
    )


@pytest.mark.parametrize(
    ("segments", "verdict", "ece", "joined"),
    [
        ((), "within", 0.012, "but"),
        ((), "unsure", 0.012, "but"),
        ((), "over", 0.012, "and"),
        ((), "leans_over", 0.012, "and"),
        ((), "within", 0.052, "and"),  # the curve is off
        ((FINE,), "within", 0.012, "but"),
        ((FINE,), "over", 0.012, "but"),  # "; the gap of every segment is within tolerance, but since"
        ((FINE,), "within", 0.052, "but"),
        ((FINE, SOUTH), "within", 0.012, "and"),  # "but 1 of 2 cannot be cleared yet, and since"
        ((WEST, FINE), "within", 0.012, "and"),  # "but area West is overstated, and since"
    ],
)
def test_since_when_is_set_against_good_news_and_added_to_bad(
    segments: tuple[dict[str, object], ...], verdict: str, ece: float, joined: str
) -> None:
    groupings = [grouping("area", *segments)] if segments else []
    text = lead(findings(*groupings, overall=OVERALL[verdict] | {"ece": ece}, course=RISEN))
    assert f", {joined} since May 2026 " in text


@pytest.mark.parametrize(
    ("segments", "clause"),
    [
        ((WEST, COAST), " (and 1 segment more)"),
        ((WEST, COAST, NORTH), " (and 2 segments more)"),
    ],
)
def test_headline_names_the_worst_alone_where_words_run_out(
    segments: tuple[dict[str, object], ...], clause: str
) -> None:
    # In full it would have 39 words with "area Coast understated by 5", or more.
    assert lead(findings(grouping("area", *segments), overall=OVERALL["over"], course=RISEN)) == (
        f"{AVERAGE['over']}; area West is overstated by 8 percentage points{clause}, and since May 2026 scores "
        "overall have run 5 percentage points high."
    )


def test_headline_counts_the_clear_gaps_where_names_are_too_long() -> None:
    names = [numbers("over", name=f"one two three {i}", gap=0.08) for i in (4, 5)]
    found = findings(grouping("five six seven eight", *names), overall=OVERALL["over"], course=RISEN)
    assert lead(found) == (
        f"{AVERAGE['over']}; 2 segments have clear gaps, and since May 2026 scores overall have run 5 percentage "
        "points high."
    )
    alone = findings(grouping("five six seven eight", names[0]), overall=OVERALL["over"], course=RISEN)
    assert len(lead(alone).split()) <= 35


def test_headline_counts_what_cannot_be_cleared_in_fewer_words_where_words_run_out() -> None:
    found = findings(grouping("area", EAST, SOUTH, FINE, ISLANDS), overall=OVERALL["unsure"], course=RISEN)
    assert lead(found) == (
        f"{AVERAGE['unsure']}; 3 of 4 segments cannot be cleared yet, and since May 2026 scores overall have run 5 "
        "percentage points high."
    )


def test_headline_says_nothing_of_time_where_nothing_lasts() -> None:
    assert lead(findings(course=course(*MONTHS))) == "On average the scores are within tolerance."


@pytest.mark.parametrize("verdict", ["within", "leans_over", "leans_under", "unsure"])
def test_headline_sees_a_crooked_curve_under_a_right_mean(verdict: str) -> None:
    crooked = OVERALL[verdict] | {"ece": 0.062}
    assert lead(findings(overall=crooked)) == (
        f"{AVERAGE[verdict]}, but over their range they are off by 6.2 pp (chance alone: 0.8)."
    )
    assert lead(findings(grouping("area", WEST), overall=crooked)) == (
        f"{AVERAGE[verdict]}, but over their range they are off by 6.2 pp (chance alone: 0.8); area West is overstated "
        "by 8 percentage points."
    )
    assert lead(findings(grouping("area", FINE), overall=crooked)) == (
        f"{AVERAGE[verdict]}, but over their range they are off by 6.2 pp (chance alone: 0.8); the gap of every "
        "segment is within tolerance."
    )


@pytest.mark.parametrize(
    ("ece", "chance", "highest", "off"),
    [
        (0.052, 0.008, 0.014, True),
        (0.037, 0.008, 0.014, False),  # 2.9 pp beyond chance: less than the tolerance
        (0.139, 0.1, 0.138, True),  # 3.9 pp, more than chance does once in a thousand times
        (0.137, 0.1, 0.138, False),  # 3.7 pp: chance might do that
    ],
)
def test_a_curve_is_off_only_far_beyond_chance_and_tolerance(
    ece: float,
    chance: float,
    highest: float,
    off: bool,  # noqa: FBT001
) -> None:
    found = findings(overall=numbers(ece=ece), chance=(chance, 0.9 * highest, highest))
    assert found.curve_off is off
    assert found.state == ("action needed" if off else "within tolerance")


@pytest.mark.parametrize("overall", list(OVERALL.values()), ids=list(OVERALL))
@pytest.mark.parametrize("segments", [(WEST,), (WEST, COAST), (WEST, COAST, NORTH), (EAST, SOUTH), (FINE,)])
def test_headline_has_35_words_at_most(overall: dict[str, object], segments: tuple[dict[str, object], ...]) -> None:
    found = findings(grouping("area", *segments), overall=overall, course=RISEN)
    assert len(lead(found).split()) <= 35


def test_headline_has_35_words_at_most_where_names_are_sentences() -> None:
    name = "a b c d e f g h i j k l m n o p q r s t"  # 39 characters, 20 words
    segments = [numbers("over", name=f"{name}{i}", gap=0.08) for i in (1, 2)]
    assert len(lead(findings(grouping(name, *segments))).split()) <= 35


def test_headline_never_gives_a_clear_gap_the_size_of_nothing() -> None:
    # Rare events: 0.02 % said, 0.06 % happened, judged against a tolerance of 0.01 percentage points.
    rare = numbers("under", gap=-0.0004, rate=0.0006, n=1_000_000, half=0.00005, wide=0.00005)
    found = findings(overall=rare, tolerance=0.0001)
    assert lead(found) == "On average the scores run 0.04 percentage points too low."


@pytest.mark.parametrize(
    ("found", "pill"),
    [
        (findings(grouping("area", WEST)), ("over", "▲", "Action needed")),
        (findings(overall=OVERALL["under"]), ("over", "▲", "Action needed")),
        (findings(course=RISEN), ("over", "▲", "Action needed")),
        (findings(grouping("area", EAST, SOUTH)), ("ok", "△", "Watch")),
        (findings(grouping("area", SOUTH, FINE, ISLANDS)), ("none", "○", "Nothing found, 2 undecided")),
        (findings(overall=OVERALL["unsure"]), ("none", "○", "Nothing found, 1 undecided")),
        (findings(overall=OVERALL["few"]), ("none", "○", "Nothing found, 1 undecided")),
        (findings(grouping("area", FINE)), ("ok", "●", "Within tolerance")),
        (findings(), ("ok", "●", "Within tolerance")),
    ],
)
def test_pill_is_the_verdict_on_the_whole(found: Findings, pill: tuple[str, str, str]) -> None:
    head = sentences.headline(found)
    assert (head.tone, head.symbol, head.word) == pill


@pytest.mark.parametrize(
    ("overall", "big", "small", "tone"),
    [
        (OVERALL["within"], "+0.4 pp", "95% CI −0.6 to +1.4; inside the ±3 pp tolerance", "ok"),
        (OVERALL["over"], "+5.1 pp", "95% CI +4.1 to +6.1; beyond the ±3 pp tolerance", "over"),
        (OVERALL["under"], "−5.1 pp", "95% CI −6.1 to −4.1; beyond the ±3 pp tolerance", "under"),
        (OVERALL["leans_over"], "+3.1 pp", "95% CI +2.1 to +4.1; not clearly inside the ±3 pp tolerance", "ok"),
        (OVERALL["unsure"], "+2.5 pp", "95% CI +1.5 to +3.5; not clearly inside the ±3 pp tolerance", "ok"),
    ],
)
def test_first_tile_is_the_gap_of_all_rows(overall: dict[str, object], big: str, small: str, tone: str) -> None:
    tile = sentences.tiles(findings(overall=overall))[0]
    assert tile == Tile(name="Overall gap, said − happened", big=big, small=small, tone=tone)


def test_intervals_are_named_by_their_level() -> None:
    tile = sentences.tiles(findings(alpha=0.1))[0]
    assert tile.small == "90% CI −1.0 to +1.0; inside the ±3 pp tolerance"


def test_second_tile_is_the_ece_beside_chance() -> None:
    tile = sentences.tiles(findings())[1]
    assert tile == Tile(
        name="Calibration error (ECE)",
        big="1.2 pp",
        small="right scores would show 0.8 pp by chance, at most 1.1 pp in 19 of 20 cases",
        tone="ok",
    )
    assert sentences.tiles(findings(overall=numbers(ece=0.052)))[1].tone == "over"


def test_third_tile_counts_the_segments_of_all_groupings() -> None:
    found = findings(grouping("area", WEST, EAST, SOUTH, FINE, ISLANDS), grouping("shift", COAST, FINE))
    assert sentences.tiles(found)[2] == Tile(
        name="Segments with a clear gap",
        big="2 of 6",
        small="the rest: 2 within tolerance, 1 leaning, 1 undecided; 1 more too small to judge",
        tone="over",
    )
    assert sentences.tiles(findings(grouping("area", FINE)))[2] == Tile(
        name="Segments with a clear gap",
        big="0 of 1",
        small="the rest: 1 within tolerance, 0 leaning, 0 undecided",
        tone="ok",
    )


@pytest.mark.parametrize(
    ("segments", "big", "small"),
    [
        ((WEST, COAST), "2 of 2", "every segment has one"),
        ((WEST, COAST, ISLANDS), "2 of 2", "1 more too small to judge"),
        ((ISLANDS,), "0 of 0", "1 too small to judge"),
    ],
)
def test_third_tile_leaves_out_what_there_is_not(segments: tuple[dict[str, object], ...], big: str, small: str) -> None:
    tile = sentences.tiles(findings(grouping("area", *segments)))[2]
    assert (tile.big, tile.small) == (big, small)


def test_third_tile_without_segments_says_what_was_said_and_what_happened() -> None:
    overall = numbers("over", gap=0.077, rate=0.2, n=1000)
    assert sentences.tiles(findings(overall=overall))[2] == Tile(
        name="Said → happened", big="27.7% → 20.0%", small="1,000 rows, of which 200 were positive", tone="ok"
    )
    assert sentences.tiles(findings(overall=overall, weight="w"))[2].small == "1,000 rows"


def test_fourth_tile_counts_rows_where_there_is_no_time() -> None:
    found = findings(overall=numbers(n=24_000, n_missing=12), missing=12)
    assert sentences.tiles(found)[3] == Tile(
        name="Rows used", big="24,000", small="12 more without label or score", tone="ok"
    )
    found = findings(overall=numbers(n=24_000, n_missing=12), missing=12, weight="w")
    assert sentences.tiles(found)[3].small == "12 more without label, score or weight"


@pytest.mark.parametrize(("during", "big", "tone"), [(0.0495, "+4.9 pp", "over"), (-0.0495, "−4.9 pp", "under")])
def test_fourth_tile_sets_the_latest_period_beside_the_time_before(during: float, big: str, tone: str) -> None:
    last = ("Jun 2026", 0.049 if during > 0 else -0.049, "over" if during > 0 else "under")
    shifted = course(*MONTHS[:2], last, since=run("Jun 2026", before=-0.001, during=during))
    assert sentences.tiles(findings(course=shifted))[3] == Tile(
        name="Latest period, Jun 2026", big=big, small="before Jun 2026: −0.1 pp", tone=tone
    )


@pytest.mark.parametrize(
    ("gap", "state", "big", "small", "tone"),
    [
        (0.004, "in", "+0.4 pp", "not clearly off zero after correction for 2 looks", "ok"),
        (0.02, "over", "+2.0 pp", "clearly off zero after correction for 2 looks", "ok"),  # the tolerance is 3 pp
        # Off zero, though not clearly by more than the tolerance: no shift is named.
        (0.035, "over", "+3.5 pp", "clearly off zero after correction for 2 looks", "over"),
        (-0.035, "under", "−3.5 pp", "clearly off zero after correction for 2 looks", "under"),
    ],
)
def test_fourth_tile_sets_the_latest_period_beside_zero_where_no_shift_is_named(
    gap: float, state: str, big: str, small: str, tone: Tone
) -> None:
    found = findings(course=course(("May 2026", 0.05, "over"), ("Jun 2026", gap, state)))
    assert sentences.tiles(found)[3] == Tile(name="Latest period, Jun 2026", big=big, small=small, tone=tone)


def test_fourth_tile_judges_no_period_with_too_few_rows() -> None:
    found = findings(course=course(("May 2026", 0.05, "over"), ("Jun 2026", 0.2, "in"), few=("Jun 2026",)))
    assert sentences.tiles(found)[3] == Tile(
        name="Latest period, Jun 2026", big="+20.0 pp", small="too few rows to judge (60 rows)", tone="ok"
    )


def test_fourth_tile_speaks_of_one_look_in_the_singular() -> None:
    found = findings(course=course(("Jun 2026", 0.004, "in")))
    assert sentences.tiles(found)[3].small == "not clearly off zero after correction for 1 look"
