"""The course over time of `report` and `drift`: which periods are marked, and when a shift to the end is named."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._drifting._course import Course, _moved, courses
from calframe._drifting._days import read_days
from calframe._roles import Roles
from calframe._verdicts import Rules
from tests._findings import drawn, gathered
from tests._tables import approx

RULES = Rules(tolerance=0.03, alpha=0.05)


def exact(*periods: tuple[int, float], score: float = 0.5, segments: int = 0) -> pl.DataFrame:
    """Return periods of (rows, rate): labels are dealt out, not drawn, so that the gap of each is known."""
    frames = []
    for i, (n, rate) in enumerate(periods):
        positives = round(n * rate)
        frame = pl.DataFrame(
            {
                "y": [1] * positives + [0] * (n - positives),
                "p": [score] * n,
                "day": [dt.date(2024 + i // 12, 1 + i % 12, 10)] * n,
            }
        )
        frames.append(frame.sample(fraction=1.0, shuffle=True, seed=i))
    table = pl.concat(frames)
    return table.with_columns(group=pl.int_range(pl.len()) % segments) if segments else table


def course_of(table: pl.DataFrame, **roles: Any) -> Course:
    chosen = Roles.from_arguments(label="y", score="p", time="day", **roles)
    [found] = courses(read_days(table, chosen, every="1mo", engine=None), RULES)
    return found


STEADY = (2000, 0.5)
HIGH = (2000, 0.44)  # scores 6 points too high


def test_a_run_to_the_end_is_named_from_its_first_period() -> None:
    found = course_of(exact(*[STEADY] * 6, HIGH, HIGH))
    assert found.table["state"].to_list() == ["in"] * 6 + ["over"] * 2
    assert found.since is not None
    assert found.since.label == "Jul 2024"
    assert (found.since.before, found.since.during) == pytest.approx((0.0, 0.06), abs=1e-12)


def test_a_run_downwards_is_named_too() -> None:
    found = course_of(exact(*[STEADY] * 6, (2000, 0.56), (2000, 0.57)))
    assert found.table["state"].to_list() == ["in"] * 6 + ["under"] * 2
    assert found.since is not None
    assert found.since.during == pytest.approx(-0.065, abs=1e-12)


@pytest.mark.parametrize(
    "periods",
    [
        [STEADY] * 8,
        [*[STEADY] * 5, HIGH, HIGH, STEADY],  # it did not last
        [HIGH] * 8,  # off all the time, so not since anything
        [*[STEADY] * 6, (2000, 0.465), (2000, 0.465)],  # marked, but not clearly beyond the tolerance
        [*[STEADY] * 7, (60, 0.1)],  # too few rows to judge the last period
        [*[STEADY] * 5, HIGH, (60, 0.1), STEADY],
    ],
    ids=["steady", "over again", "always", "inside the tolerance", "few rows", "over again after few rows"],
)
def test_no_shift_is_named_without_a_clear_run_to_the_end(periods: list[tuple[int, float]]) -> None:
    assert course_of(exact(*periods)).since is None


def test_a_period_that_has_just_begun_does_not_end_a_run() -> None:
    found = course_of(exact(*[STEADY] * 4, HIGH, HIGH, (60, 0.5)))
    assert found.table["verdict"].to_list()[-1] == "few"
    assert found.since is not None
    assert found.since.label == "May 2024"
    # of 4,060 rows: 4,000 six points too high, 60 right
    assert (found.since.before, found.since.during) == pytest.approx((0.0, 240 / 4060), abs=1e-12)


@pytest.mark.parametrize(("months", "label"), [([5, 8], "May 2024"), ([5, 9], "Sep 2024"), ([4, 6, 9], "Apr 2024")])
def test_a_long_time_without_rows_ends_a_run(months: list[int], label: str) -> None:
    # Ten points too high in these months, right in January to March, nothing in between: a run goes on over three
    # times the longest month at most, which is 93 days.
    table = exact(*[STEADY] * 3, *[(2000, 0.4)] * 6)
    found = course_of(table.filter(pl.col("day").dt.month().is_in([1, 2, 3, *months])))
    assert found.since is not None
    assert found.since.label == label


def test_a_period_in_which_nothing_happens_is_news() -> None:
    found = course_of(exact(*[(2000, 0.1)] * 6, (400, 0.0), (400, 0.0), score=0.1))
    assert found.table["verdict"].to_list()[6:] == ["over", "over"]
    assert found.since is not None
    assert found.since.label == "Jul 2024"


def test_a_run_is_one_way() -> None:
    found = course_of(exact(*[STEADY] * 6, HIGH, (2000, 0.57)))
    assert found.table["state"].to_list() == ["in"] * 6 + ["over", "under"]
    assert found.since is not None
    assert found.since.label == "Aug 2024"
    assert found.since.during == pytest.approx(-0.07, abs=1e-12)


def test_a_gap_that_was_always_there_has_no_beginning() -> None:
    # Six points too high throughout; the first periods have too few rows to show it.
    found = course_of(exact(*[(300, 0.443)] * 6, *[(5000, 0.44)] * 3))
    assert found.table["state"].to_list() == ["in"] * 6 + ["over"] * 3
    assert found.since is None


@pytest.mark.parametrize(
    ("rate", "named"),
    [
        (0.41, False),  # from 7 points to 9: clearly off before, and hardly more since
        (0.38, True),  # from 7 points to 12
        (0.46, False),  # from 7 points to 4: better, so not off since then
    ],
)
def test_a_gap_that_was_there_must_have_grown_by_more_than_the_tolerance(rate: float, named: bool) -> None:  # noqa: FBT001
    # 300 rows are too few to mark 7 points (Šidák's half width for nine periods is 7.9), 1,800 together are not.
    found = course_of(exact(*[(300, 0.43)] * 6, *[(5000, rate)] * 3))
    assert found.table["state"].to_list() == ["in"] * 6 + ["over"] * 3
    assert (found.since is not None) is named
    if found.since is not None:
        assert (found.since.before, found.since.during) == pytest.approx((0.07, 0.12), abs=1e-12)


def test_a_steady_gap_is_seldom_said_to_have_begun() -> None:
    # Periods with 700 rows and a gap of 6 points: some are marked, some are not, and nothing ever changed.
    named = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = course_of(drawn(rng, rng.uniform(0.2, 0.8, 12 * 700), off=0.06, periods=12))
        named += found.since is not None
    assert named <= 7  # scipy.stats.binom.ppf(0.99, 60, 0.05) = 7


def test_a_drift_in_the_last_two_of_twelve_periods_is_found() -> None:
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 12 * 1000
        off = np.where(np.arange(n) % 12 >= 10, 0.1, 0.0)
        found = course_of(drawn(rng, rng.uniform(0.2, 0.8, n), off=off, periods=12))
        hits += found.since is not None and found.since.label == "Nov 2024"
    assert hits >= 17


def test_marks_hold_over_all_periods_together() -> None:
    found = course_of(exact(*[STEADY] * 6, (2000, 0.475), (2000, 0.46)))
    # Wilson's half width at 2,000 rows: 2.19 points alone, 3.04 at Šidák's level for eight
    assert found.comparisons == 8
    assert found.table["state"].to_list() == ["in"] * 7 + ["over"]
    assert found.table["gap_low"][6] > 0


def test_periods_with_few_rows_are_shown_but_not_judged() -> None:
    found = course_of(exact(*[STEADY] * 3, (99, 0.1), (100, 0.5), (4, 0.5)))
    assert found.comparisons == 4
    assert found.table["verdict"].to_list()[3:] == ["few", "unsure", "few"]
    assert found.table["state"].to_list() == ["in"] * 6
    assert found.table["n"].to_list() == [2000, 2000, 2000, 99, 100, 4]
    assert found.table["gap"].to_list()[3:5] == pytest.approx([0.5 - 10 / 99, 0.0], abs=1e-12)


def test_in_a_report_nothing_but_its_rows_is_told_of_a_period_with_hardly_a_row() -> None:
    found = gathered(exact(*[STEADY] * 3, (4, 0.5), (5, 0.4)), time="day", every="1mo").course
    assert found is not None
    assert found.table["gap"].is_null().to_list() == [False] * 3 + [True, False]
    assert found.table["rate"].is_null().to_list() == [False] * 3 + [True, False]


def test_segments_that_moved_the_same_way_are_counted() -> None:
    # Of four segments one fell, from 6 points too high to right; the others rose from 2 too low to 8 too high.
    fell = exact(*[(500, 0.44)] * 6, *[(500, 0.5)] * 2).with_columns(group=pl.lit("fell"))
    rose = exact(*[(1500, 0.52)] * 6, *[(1500, 0.42)] * 2).with_columns(group=pl.int_range(pl.len()) % 3)
    table = pl.concat([fell, rose.with_columns(pl.col("group").cast(pl.String))])
    found = course_of(table, by="group")
    assert found.since is not None
    assert found.since.label == "Jul 2024"
    assert (found.since.moved, found.since.judged) == (3, 4)


def test_a_segment_that_moved_as_chance_would_have_it_is_not_counted() -> None:
    # Its gap rose by one point, from 3,000 rows to 1,000: 0.6 standard deviations.
    still = exact(*[(500, 0.5)] * 6, *[(500, 0.49)] * 2).with_columns(group=pl.lit("still"))
    rose = exact(*[(1500, 0.5)] * 6, *[(1500, 0.42)] * 2).with_columns(
        group=(pl.int_range(pl.len()) % 3).cast(pl.String)
    )
    found = course_of(pl.concat([still, rose]), by="group")
    assert found.since is not None
    assert (found.since.moved, found.since.judged) == (3, 4)


def test_a_segment_is_counted_only_if_the_choice_of_the_period_does_not_explain_it() -> None:
    # Its gap rose by 4.5 points, from 3,000 rows to 1,000: z = 0.045 / sqrt(0.25 (1 / 3000 + 1 / 1000)) = 2.46,
    # p = 0.014, and 0.097 as the least of seven p-values, for the run could have begun with any period but the first.
    some = exact(*[(500, 0.5)] * 6, *[(500, 0.455)] * 2).with_columns(group=pl.lit("some"))
    rose = exact(*[(1500, 0.5)] * 6, *[(1500, 0.42)] * 2).with_columns(
        group=(pl.int_range(pl.len()) % 3).cast(pl.String)
    )
    found = course_of(pl.concat([some, rose]), by="group")
    assert found.since is not None
    assert (found.since.moved, found.since.judged) == (3, 4)


def test_of_many_segments_hardly_one_moves_by_chance() -> None:
    # 200 segments of right scores: by raw p-values below 5 % about five move up, by adjusted ones one in twenty tables.
    rng = np.random.default_rng(3)
    table = drawn(rng, rng.uniform(0.2, 0.8, 200 * 600), segments=200, periods=3)
    days = read_days(
        table, Roles.from_arguments(label="y", score="p", time="day", by="group"), every="1mo", engine=None
    )
    part = (days.periods.index >= 2).astype(np.int64)
    moved = {name: _moved(days, part, replace(RULES, correction=name), splits=1, up=True) for name in ("none", "holm")}
    assert moved["none"][0] >= 2
    assert moved["holm"] == (0, 200)


def test_every_segment_that_moved_with_the_rest_is_counted() -> None:
    found = course_of(exact(*[STEADY] * 6, (2000, 0.42), (2000, 0.42), segments=4), by="group")
    assert found.since is not None
    assert (found.since.moved, found.since.judged) == (4, 4)


def test_segments_without_rows_on_both_sides_are_not_counted() -> None:
    table = exact(*[STEADY] * 6, HIGH, HIGH, segments=4)
    late = pl.col("day") >= dt.date(2024, 7, 1)
    found = course_of(table.filter(~late | (pl.col("group") < 3)), by="group")
    assert found.since is not None
    assert found.since.judged == 3
    alone = course_of(table).since
    assert alone is not None
    assert (alone.moved, alone.judged) == (0, 0)


def test_a_missing_segment_is_a_segment() -> None:
    table = exact(*[STEADY] * 6, HIGH, HIGH, segments=4)
    table = table.with_columns(group=pl.when(pl.col("group") > 1).then("group"))
    found = course_of(table, by="group")
    assert found.since is not None
    assert (found.since.moved, found.since.judged) == (3, 3)
    assert found.table["n"].sum() == table.height


def test_the_course_is_that_of_all_rows_whatever_the_segments() -> None:
    rng = np.random.default_rng(8)
    table = drawn(rng, rng.random(4000), segments=7, periods=9)
    assert (
        course_of(table, by="group")
        .table.select("n", "period", "state", "verdict")
        .equals(course_of(table).table.select("n", "period", "state", "verdict"))
    )


def test_without_time_there_is_no_course() -> None:
    rng = np.random.default_rng(8)
    assert gathered(drawn(rng, rng.random(400), periods=2)).course is None


@pytest.mark.parametrize("roles", [{}, {"by": "group"}, {"by": "group", "weight": "w"}], ids=["plain", "by", "weight"])
@pytest.mark.parametrize("seed", range(4))
def test_report_and_drift_tell_one_course(seed: int, roles: dict[str, Any]) -> None:
    # The report sums rows up where they are; drift sums them from the scores that it has sorted.
    rng = np.random.default_rng(seed)
    n = 9 * 600
    off = np.where(np.arange(n) % 9 >= 7, 0.12, 0.0)
    table = drawn(rng, rng.uniform(0.2, 0.8, n), off=off, segments=4, periods=9)
    table = table.with_columns(w=pl.Series(rng.uniform(0.5, 2.0, n)), day=pl.when(pl.int_range(n) % 97 > 0).then("day"))
    told = gathered(table, time="day", **roles).course
    found = calframe.drift(table, label="y", score="p", time="day", every=None, **roles)
    assert told is not None
    assert told.since is not None
    assert (told.every, told.zone, told.undated) == (found.every, found.time_zone, found.n_undated)
    course = found.course.drop("model").with_columns(pl.col("period").cast(pl.String))
    for name in course.columns:
        assert told.table[name].to_list() == approx(course[name].to_list(), rel=1e-9), name
    [since] = found.since
    assert (told.since.label, told.since.moved, told.since.judged) == (since.label, since.moved, since.judged)
    assert (told.since.before, told.since.during) == pytest.approx((since.before, since.during), rel=1e-9)


def test_of_several_models_each_has_its_course() -> None:
    first, second = exact(*[STEADY] * 6, HIGH, HIGH), exact(*[STEADY] * 6, HIGH, HIGH, score=0.45)
    table = first.with_columns(q=second["p"])
    found = calframe.drift(table, label="y", score=["p", "q"], time="day")
    assert found.course["model"].to_list() == ["p"] * 8 + ["q"] * 8
    for name in ("p", "q"):
        alone = course_of(table.drop("p", "q").with_columns(p=table[name]))
        mine = found.course.filter(pl.col("model") == name)
        assert mine["state"].to_list() == alone.table["state"].to_list()
        assert mine["gap"].to_list() == approx(alone.table["gap"].to_list(), rel=1e-9)
    assert [since.model for since in found.since] == ["p"]
