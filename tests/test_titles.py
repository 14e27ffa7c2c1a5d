"""Titles, captions and notes of figures, in full, for findings made by hand."""

from __future__ import annotations

import polars as pl
import pytest

from calframe._report import _captions as captions
from calframe._report import _titles as titles
from calframe._segments import Grouping
from tests._findings import bins, cell, course, findings, grouping, numbers, run

WEST = numbers("over", name="West", gap=0.077, rate=0.217, n=3566)
COAST = numbers("under", name="Coast", gap=-0.046, n=2918)
SOUTH = numbers("unsure", name="South", gap=0.02, n=726)
FINE = numbers("within", name="Fine", gap=0.003)
ISLANDS = numbers("few", name="Islands", gap=0.2, n=66)
PORT = numbers("few", name="Port", gap=0.2, n=500, rate=0.004)


# Forest plot


def test_forest_names_the_one_clear_gap() -> None:
    found = titles.forest_title(grouping("area", WEST, SOUTH, FINE))
    assert found == "area West is the one segment with a clear gap: 29.4% said, 21.7% happened"


def test_forest_counts_clear_gaps_and_names_the_one_that_mis_states_the_most_rows() -> None:
    found = titles.forest_title(grouping("area", WEST, COAST, FINE))
    assert found == (
        "2 of 3 segments have a clear gap; of these area West misstates the most rows: 29.4% said, 21.7% happened"
    )


def test_forest_names_the_most_rows_mis_stated_of_the_clear_gaps_alone() -> None:
    # Large: 100,000 × 2 pp = 2,000 rows misstated within the tolerance; West: 275
    large = numbers("within", name="Large", gap=0.02, n=100_000)
    assert titles.forest_title(grouping("area", WEST, COAST, large)) == (
        "2 of 3 segments have a clear gap; of these area West misstates the most rows: 29.4% said, 21.7% happened"
    )


def test_forest_clears_every_segment_only_if_each_is_within_tolerance() -> None:
    found = titles.forest_title(grouping("area", FINE, numbers(name="Else")))
    assert found == "Every segment of area is within tolerance"


@pytest.mark.parametrize(
    ("segments", "title"),
    [
        (
            (SOUTH, FINE, ISLANDS),
            "No segment of area has a clear gap; 1 of 3 within tolerance, the others cannot be cleared yet",
        ),
        ((SOUTH, ISLANDS), "No segment of area has a clear gap, and none can be cleared yet"),
        (
            (numbers("leans_over", name="East", gap=0.03), FINE),
            "No segment of area has a clear gap; 1 of 2 within tolerance, the other cannot be cleared yet",
        ),
    ],
)
def test_forest_never_takes_undecided_for_fine(segments: tuple[dict[str, object], ...], title: str) -> None:
    assert titles.forest_title(grouping("area", *segments)) == title


# Heatmap

TWENTY = [cell("Fine", f"{i}–{i + 1}%", 0.01, clear=i < 2) for i in range(20)]


def test_heat_says_where_the_worst_segment_is_off() -> None:
    heat = [cell("West", "0–40%", 0.031, clear=True), cell("West", "40–100%", 0.12, clear=True)]
    found = titles.heat_title(grouping("area", WEST, FINE, heat=heat), alpha=0.05)
    assert found == "area West is itself furthest off at scores of 40–100%: 12 pp too high"
    heat = [cell("Coast", "0–40%", -0.031, clear=True), cell("Coast", "40–100%", -0.012, clear=True)]
    found = titles.heat_title(grouping("area", COAST, heat=heat), alpha=0.05)
    assert found == "area Coast is itself furthest off at scores of 0–40%: 3 pp too low"


def test_heat_compares_clear_gaps_alone() -> None:
    heat = [cell("West", "0–40%", 0.05, clear=True), cell("West", "40–100%", 0.15, n=60)]
    found = titles.heat_title(grouping("area", WEST, heat=heat), alpha=0.05)
    assert found == "In bold cells area West is itself furthest off at scores of 0–40%: 5 pp too high"


def test_heat_leaves_out_cells_that_show_no_number() -> None:
    heat = [cell("West", "0–40%", 0.05, clear=True), cell("West", "40–100%", 0.4, n=20)]
    found = titles.heat_title(grouping("area", WEST, heat=heat), alpha=0.05)
    assert found == "area West is itself furthest off at scores of 0–40%: 5 pp too high"


@pytest.mark.parametrize(
    ("alpha", "title"),
    [
        (0.05, "2 of 20 cells stand out, where chance alone gives about 1"),
        (0.1, "2 of 20 cells stand out, where chance alone gives about 2"),
    ],
)
def test_heat_without_a_clear_gap_sets_its_cells_beside_chance(alpha: float, title: str) -> None:
    assert titles.heat_title(grouping("area", FINE, heat=TWENTY), alpha=alpha) == title


def test_heat_speaks_of_one_cell_in_the_singular() -> None:
    [one] = [cell("Fine", "0–100%", 0.04, clear=True)]
    found = titles.heat_title(grouping("area", FINE, heat=[one]), alpha=0.05)
    assert found == "1 of 1 cell stands out, where chance alone gives less than one"


@pytest.mark.parametrize(
    ("cells", "chance"),
    [(4, "less than one"), (9, "less than one"), (10, "about 1"), (11, "about 1"), (20, "about 1")],
)
def test_heat_gives_chance_more_than_nothing(cells: int, chance: str) -> None:
    # 4 cells at 5 % are 0.2 of a cell: rare, not impossible
    found = titles.heat_title(grouping("area", FINE, heat=TWENTY[:cells]), alpha=0.05)
    assert found == f"2 of {cells} cells stand out, where chance alone gives {chance}"


# Reliability diagram


@pytest.mark.parametrize(
    ("out", "title"),
    [
        (0, "All rows together: all 10 bins lie where right scores would put them"),
        (
            1,
            (
                "All rows together: 1 of 10 bins lies outside the band, where chance alone gives about 1; it is off by "
                "5 pp at scores around 5.0%"
            ),
        ),
        (
            4,
            (
                "All rows together: 4 of 10 bins lie outside the band, where chance alone gives about 1; the furthest "
                "is off by 5 pp at scores around 5.0%"
            ),
        ),
    ],
)
def test_curve_counts_the_bins_outside_the_band(out: int, title: str) -> None:
    assert titles.curve_title(pl.DataFrame(bins("", out=out, of=10)), name="All rows together", alpha=0.05) == title


def test_curve_of_no_rows_claims_nothing() -> None:
    empty = pl.DataFrame(bins("", out=0, of=1)).clear()
    found = titles.curve_title(empty, name="All rows together", alpha=0.05)
    assert found == "All rows together: there are none to draw a curve of"


def test_curve_speaks_of_one_bin_in_the_singular() -> None:
    found = titles.curve_title(pl.DataFrame(bins("", out=0, of=1)), name="All rows together", alpha=0.05)
    assert found == "All rows together: the one bin lies where right scores would put it"
    found = titles.curve_title(pl.DataFrame(bins("", out=1, of=1)), name="All rows together", alpha=0.05)
    assert found == (
        "All rows together: 1 of 1 bin lies outside the band, where chance alone gives less than one; it is off by 5 "
        "pp at scores around 50.0%"
    )


# Small multiples


def panels(*out: int, worst: dict[str, object] = WEST) -> Grouping:
    names = [str(worst["segment"]), "b", "c", "d"][: len(out)]
    segments = [worst, *(numbers(name=name) for name in names[1:])]
    curves = [row for name, k in zip(names, out, strict=True) for row in bins(name, out=k, of=15)]
    return grouping("area", *segments, curves=curves)


@pytest.mark.parametrize(
    ("out", "title"),
    [
        # By chance: 5 % of 3 x 15 = 2.25 bins, and of 15 = 0.75.
        (
            (11, 1, 0, 2),
            "11 of 15 bins; 3 other segments here: 3 of 45 bins lie outside their bands, where chance alone gives 2",
        ),
        (
            (8, 8),
            "8 of 15 bins; 1 other segment here: 8 of 15 bins lie outside their bands, where chance alone gives 1",
        ),
        ((3,), "3 of 15 bins"),
    ],
)
def test_panels_set_the_worst_segment_beside_the_others(out: tuple[int, ...], title: str) -> None:
    shown = panels(*out)
    found = titles.panels_title(shown, shown.segments["segment"].to_list(), alpha=0.05)
    assert found.replace("gives about", "gives") == f"area West is outside its band in {title}"


def test_panels_speak_of_the_drawn_segments_alone() -> None:
    shown = panels(5, 1, 9)
    assert titles.panels_title(shown, ["West", "b"], alpha=0.05) == (
        "area West is outside its band in 5 of 15 bins; 1 other segment here: 1 of 15 bins lies outside their bands, "
        "where chance alone gives about 1"
    )


def test_panels_without_a_clear_gap_are_set_beside_chance() -> None:
    shown = panels(0, 1, worst=SOUTH)
    assert titles.panels_title(shown, ["South", "b"], alpha=0.05) == (
        "2 segments here: 1 of 30 bins lies outside their bands, where chance alone gives about 2"
    )
    assert titles.panels_title(panels(2, 1, worst=SOUTH), ["South", "b"], alpha=0.1) == (
        "2 segments here: 3 of 30 bins lie outside their bands, where chance alone gives about 3"
    )


def test_panels_of_segments_that_are_all_too_small() -> None:
    shown = grouping("area", ISLANDS, curves=bins("Islands", out=1, of=1))
    assert titles.panels_title(shown, ["Islands"], alpha=0.05) == "No segment has rows enough for a curve"


# Course over time


def test_course_says_since_when() -> None:
    months = (("Apr 2026", 0.001, "in"), ("May 2026", 0.05, "over"))
    found = titles.course_title(course(*months, since=run("May 2026", before=0.001, during=0.05)), tolerance=0.03)
    assert found == "Since May 2026 the scores have run about 5 pp too high"
    found = titles.course_title(course(*months, since=run("May 2026", before=0.001, during=-0.05)), tolerance=0.03)
    assert found == "Since May 2026 the scores have run about 5 pp too low"


@pytest.mark.parametrize(
    ("periods", "title"),
    [
        ((("Apr 2026", 0.001, "in"), ("May 2026", 0.002, "in")), "No judged period is clearly off: 2 undecided"),
        ((("Apr 2026", 0.001, "in"),), "No judged period is clearly off: 1 undecided"),
        (
            (("Apr 2026", 0.02, "leans_over"), ("May 2026", 0.02, "within"), ("Jun 2026", 0.02, "leans_over")),
            "No judged period is clearly off: 1 within tolerance and 2 leaning",
        ),
        (
            (("Mar 2026", 0.05, "over"), ("Apr 2026", -0.061, "under"), ("May 2026", 0.001, "in")),
            "2 of 3 judged periods are clearly off, Apr 2026 the most with −6.1 pp; no new shift that lasts to the end",
        ),
        (
            (("Mar 2026", 0.05, "over"), ("Apr 2026", 0.01, "in"), ("May 2026", 0.001, "in")),
            "1 of 3 judged periods is clearly off, Mar 2026 with +5.0 pp; no new shift that lasts to the end",
        ),
    ],
)
def test_course_counts_the_periods_that_are_clearly_off(
    periods: tuple[tuple[str, float, str], ...], title: str
) -> None:
    assert titles.course_title(course(*periods), tolerance=0.03) == title


def test_course_without_a_period_to_judge() -> None:
    found = titles.course_title(course(("Apr 2026", 0.1, "in"), few=("Apr 2026",)), tolerance=0.03)
    assert found == "The one period has too few rows to be judged (100 needed)"
    two = ("Apr 2026", 0.1, "in"), ("May 2026", 0.1, "in")
    found = titles.course_title(course(*two, few=("Apr 2026", "May 2026")), tolerance=0.03)
    assert found == "None of 2 periods has the 100 rows needed to be judged; a longer period may have them (every 1q)"
    found = titles.course_title(course(*two, few=("May 2026",)), tolerance=0.03)
    assert found == "No judged period is clearly off: 1 undecided"


def test_course_does_not_deny_a_change_that_lasted() -> None:
    # Eight points too high up to June, right from then on: a lasting change beyond the tolerance, for the better.
    better = course(*((f"{i} 2026", 0.08, "over") for i in range(6)), *((f"{i} 2026", 0.0, "in") for i in range(6, 12)))
    found = titles.course_title(better, tolerance=0.03)
    assert found.startswith("6 of 12 judged periods are clearly off, 0 2026 the most with +8.0 pp")
    assert "no lasting change" not in found


# Captions and method


def test_forest_caption_names_level_comparisons_and_tolerance() -> None:
    one = grouping("area", WEST, FINE, ISLANDS)
    found = captions.forest_caption(findings(one, alpha=0.1, tolerance=0.025), one)
    assert found == (
        "Each row is a segment of area, worst first. Dot: gap between what the scores said and what happened. Thick "
        "line: 90% interval; thin line: the same, widened for 2 comparisons; an arrowhead: it goes on "
        "beyond the axis. Grey zone: the ±2.5 pp tolerance."
    )


def test_heat_caption_says_what_the_colours_mean() -> None:
    assert captions.heat_caption(grouping("area", FINE)) == (
        "Gap in percentage points for each segment of area and score range. Orange: the scores say more than happens; "
        "blue: they say less. Strong and bold: the cell's own interval excludes zero. ‘·’: fewer than 50 rows, gap "
        "not shown; blank: no rows at all. A range holds its lower end, not its upper one."
    )


def test_curve_caption_counts_rows_and_bins() -> None:
    assert captions.curve_caption(findings()) == (
        "10,000 rows in 15 bins of about equal size. Dots on the dashed line would be perfect; the strip below "
        "enlarges how far off each is."
    )


@pytest.mark.parametrize(
    ("ece", "reading"),
    [(0.010, "the reading is within chance"), (0.020, "it is more than chance alone would show")],
)
def test_the_ece_is_read_beside_chance(ece: float, reading: str) -> None:
    aside = dict(captions.curve_aside(findings(overall=numbers(ece=ece))))
    assert aside["Error in one number"] == (
        f"ECE {100 * ece:.1f} pp. Right scores would still show about 0.8 pp with these rows (95th percentile 1.1 "
        f"pp): {reading}."
    )


def test_without_rows_there_is_no_error_to_read() -> None:
    empty = numbers("few", gap=None, n=0, ece=None)
    assert dict(captions.curve_aside(findings(overall=empty)))["Error in one number"] == "There are no rows to measure."


def test_curve_note_says_where_the_axes_end() -> None:
    assert captions.curve_note(findings()) is None
    assert captions.curve_note(findings(limit=0.05)) == "Axes end at 5.0%, above nearly all scores."


def test_panels_caption() -> None:
    assert captions.panels_caption(grouping("area", FINE)) == (
        "One panel per segment of area, worst first; up is ‘happens more often than said’. Grey line: all rows "
        "together. Coloured dot: outside the band. Bins are fewer where there are fewer rows."
    )


def test_course_caption_names_unit_level_and_comparisons() -> None:
    when = course(("Apr 2026", 0.0, "in"), ("May 2026", 0.0, "in"), undated=1)
    assert captions.course_caption(findings(course=when), when) == (
        "Gap per month, all rows. Thick line: 95% interval; thin line: the same, widened for 2 judged periods. Orange "
        "(too high) or blue (too low): the thin line of a judged period leaves out 0, also where the gap is within "
        "tolerance. Where there is room, a full triangle: clearly off, the thin line lies wholly beyond the grey zone; "
        "an open one: leaning, it reaches out of the zone, and by its adjusted p-value the gap is not 0. Grey zone: "
        "the ±3 pp tolerance."
    )
    none = course(("Apr 2026", 0.0, "in"), few=("Apr 2026",))
    assert captions.course_caption(findings(course=none), none) == (
        "Gap per month, all rows. Thick line: 95% interval; thin line: the same, widened. No period has rows enough to "
        "be judged, so that none is marked. Grey zone: the ±3 pp tolerance."
    )
    assert captions.undated_note(when) == "1 row without a date is not here."


@pytest.mark.parametrize(
    ("total", "note"),
    [
        (20, ""),
        (43, "23 more segments are not drawn; they are"),
        (21, "1 more segment is not drawn; it is"),
    ],
)
def test_left_out_note_counts_what_is_not_drawn(total: int, note: str) -> None:
    where = " among the numbers behind this chart on screen and in the report's data." if note else ""
    assert captions.left_out_note(total, 20, kept=43) == note + where


def test_left_out_note_says_where_the_table_ends() -> None:
    found = captions.left_out_note(612, 36, kept=500)
    assert found == (
        "576 more segments are not drawn; the numbers behind this chart on screen are those of the first 500 of all "
        "612, and the report's data holds all of them."
    )


def test_earlier_note_says_that_the_latest_periods_are_kept() -> None:
    one, many, cut = (captions.earlier_note(total, 60, kept=500) for total in (61, 500, 501))
    where = "among the numbers behind this chart on screen and in the report's data."
    assert one == f"1 earlier period is not drawn; it is {where}"
    assert many == f"440 earlier periods are not drawn; they are {where}"
    assert "; the numbers behind this chart on screen are those of the latest 500 of all 501, and" in cut


def test_undrawn_note_does_not_send_to_a_table_that_holds_only_what_is_drawn() -> None:
    one = grouping("area", WEST, COAST, FINE)
    assert captions.undrawn_note(one, 3, kept=3) == ""
    assert captions.undrawn_note(one, 1, kept=3) == (
        "2 more segments are neither drawn nor among the numbers behind this chart; their gaps are among the numbers "
        "behind the chart of gaps on screen and in the report's data."
    )
    assert captions.undrawn_note(one, 2, kept=2) == (
        "1 more segment is neither drawn nor among the numbers behind this chart; its gap is in the report's data."
    )
