"""Days, weeks, months, quarters and years; where a day begins; and the same periods from every library."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calframe
from calframe import ArgumentError, CalframeError
from calframe._charts._theme import WIDE
from calframe._drifting._course import Course, courses
from calframe._drifting._days import read_days
from calframe._periods import periods_of
from calframe._roles import Roles
from calframe._verdicts import Rules
from tests._findings import gathered
from tests._tables import Maker

UTC = dt.UTC
# The clocks of Paris go forward on 31 March 2024, 01:00 UTC: from UTC+1 to UTC+2.
SPRING = [
    dt.datetime(2024, 3, 30, 22, 30, tzinfo=UTC),
    dt.datetime(2024, 3, 30, 23, 30, tzinfo=UTC),
    dt.datetime(2024, 3, 31, 21, 30, tzinfo=UTC),
    dt.datetime(2024, 3, 31, 22, 30, tzinfo=UTC),
]
ROWS = {"y": [1, 0, 1, 0], "p": [0.6, 0.4, 0.7, 0.2]}


def wall(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)  # no zone: what a clock on the wall shows


def number(day: dt.date) -> int:
    return day.year * 10_000 + day.month * 100 + day.day


def course_of(data: Any, *, every: Any = None, **roles: Any) -> Course:
    chosen = Roles.from_arguments(**{"label": "y", "score": "p", "time": "t", **roles})
    [found] = courses(read_days(data, chosen, every=every, engine=None), Rules(tolerance=0.03, alpha=0.05))
    return found


def counts(found: Course) -> dict[str, int]:
    return dict(found.table.select(pl.col("period").cast(pl.String), "n").iter_rows())


@pytest.mark.parametrize(
    ("every", "starts", "labels"),
    [
        ("1d", ["2023-12-31", "2024-01-01", "2024-02-29", "2024-04-01"], None),
        ("1w", ["2023-12-25", "2024-01-01", "2024-02-26", "2024-04-01"], None),  # 1 January 2024 is a Monday
        (
            "1mo",
            ["2023-12-01", "2024-01-01", "2024-02-01", "2024-04-01"],
            ["Dec 2023", "Jan 2024", "Feb 2024", "Apr 2024"],
        ),
        ("1q", ["2023-10-01", "2024-01-01", "2024-04-01"], ["Q4 2023", "Q1 2024", "Q2 2024"]),
        ("1y", ["2023-01-01", "2024-01-01"], ["2023", "2024"]),
    ],
)
def test_days_roll_up(every: Any, starts: list[str], labels: list[str] | None) -> None:
    found = periods_of([20231231, 20240101, 20240229, 20240401], every=every)
    assert [start.isoformat() for start in found.starts] == starts
    assert list(found.labels) == (labels or starts)
    assert found.every == every


def test_each_day_finds_its_period_and_a_missing_one_none() -> None:
    found = periods_of([20240401, None, 20240101, 20240131], every="1mo")
    assert found.index.tolist() == [1, -1, 0, 0]


@pytest.mark.parametrize("start", [dt.date(1999, 12, 30), dt.date(2024, 2, 27), dt.date(1969, 7, 1)])
def test_units_agree_with_pandas(start: dt.date) -> None:
    days = [start + dt.timedelta(days=i) for i in range(0, 800, 3)]
    for every, code in (("1w", "W-SUN"), ("1mo", "M"), ("1q", "Q"), ("1y", "Y")):  # pandas: a week is named by its end
        found = periods_of([number(day) for day in days], every=every)
        expected = pd.PeriodIndex(pd.to_datetime(days), freq=code).start_time
        assert [found.starts[i] for i in found.index] == [stamp.date() for stamp in expected]


@pytest.mark.parametrize(
    ("days", "every"),
    [
        ([dt.date(2010 + i, 6, 1) for i in range(6)], "1y"),
        ([dt.date(2010 + i, 6, 1) for i in range(5)], "1d"),  # five of anything: the days themselves
        ([dt.date(2020 + i // 4, 1 + i % 4 * 3, 1) for i in range(8)], "1q"),
        ([dt.date(2024, 1 + i, 1) for i in range(6)], "1mo"),
        ([dt.date(2024, 1, 1) + dt.timedelta(weeks=i) for i in range(6)], "1w"),
        ([dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(20)], "1d"),
        ([dt.date(2024, 1, 1)], "1d"),
    ],
)
def test_the_longest_unit_with_six_periods_is_chosen(days: list[dt.date], every: str) -> None:
    assert periods_of([number(day) for day in days]).every == every


def test_no_days_make_no_periods() -> None:
    found = periods_of([None, None])
    assert (found.starts, found.index.tolist()) == ((), [-1, -1])


@pytest.mark.parametrize("every", ["1h", "month", "1m", 1])
@pytest.mark.parametrize("time", ["t", None])
def test_an_unknown_unit_is_refused(every: Any, time: str | None) -> None:
    table = pl.DataFrame({**ROWS, "t": SPRING})
    with pytest.raises(ArgumentError, match=r"every.* must be one of '1d', '1mo', '1q', '1w', '1y'"):
        calframe.report(table, label="y", score="p", time=time, every=every)


# Where a day begins


def moments(make: Maker, *, zone: str | None = "UTC") -> Any:
    if make.library == "duckdb" and zone not in (None, "UTC"):
        pytest.skip("DuckDB keeps the zone in the connection")
    utc = pl.Series(SPRING)
    column = utc.dt.convert_time_zone(zone) if zone else utc.dt.replace_time_zone(None)
    return make({**ROWS, "t": column.to_list()})


def test_days_of_paris_over_the_change_of_clocks(make: Maker) -> None:
    data = moments(make)
    if make.library == "duckdb":
        with pytest.raises(CalframeError, match="DuckDB"):
            course_of(data, time_zone="Europe/Paris", every="1d")
        return
    found = course_of(data, time_zone="Europe/Paris", every="1d")
    assert counts(found) == {"2024-03-30": 1, "2024-03-31": 2, "2024-04-01": 1}
    assert found.zone == "Europe/Paris"


def test_days_of_utc(make: Maker) -> None:
    if make.library == "duckdb":
        with pytest.raises(CalframeError, match="DuckDB"):
            course_of(moments(make), time_zone="UTC", every="1d")
        return
    found = course_of(moments(make), time_zone="UTC", every="1d")
    assert counts(found) == {"2024-03-30": 2, "2024-03-31": 2}


def test_a_column_with_a_zone_has_its_own_days(make: Maker) -> None:
    found = course_of(moments(make, zone="Europe/Paris"), every="1d")
    assert counts(found) == {"2024-03-30": 1, "2024-03-31": 2, "2024-04-01": 1}
    assert found.zone == "Europe/Paris"


def test_a_column_without_a_zone_is_wall_time(make: Maker) -> None:
    found = course_of(moments(make, zone=None), every="1d")
    assert counts(found) == {"2024-03-30": 2, "2024-03-31": 2}
    assert found.zone is None


def test_a_column_without_a_zone_is_read_as_utc_where_a_zone_is_asked_for(make: Maker) -> None:
    if make.library == "duckdb":
        pytest.skip("DuckDB keeps the zone in the connection")
    found = course_of(moments(make, zone=None), time_zone="Europe/Paris", every="1d")
    assert counts(found) == {"2024-03-30": 1, "2024-03-31": 2, "2024-04-01": 1}


def test_the_day_of_a_reader_in_paris_is_in_axis_caption_and_method() -> None:
    table = pl.DataFrame(
        {
            "t": [dt.datetime(2024, 3, 31, 22, 30, tzinfo=UTC), dt.datetime(2024, 4, 1, 10, tzinfo=UTC)],
            "y": [1, 0],
            "p": [0.6, 0.4],
        }
    )
    found = calframe.report(table, label="y", score="p", time="t", time_zone="Europe/Paris", every="1d")
    assert [period["label"] for period in found.to_dict()["periods"]] == ["2024-04-01"]
    figure = found._page().figures()["course"]
    assert "Days are those of Europe/Paris." in figure.sub
    assert "days as in Europe/Paris" in dict(found._page().method)["Over time"]
    assert "temporal" not in str(figure.draw(WIDE).to_dict())
    assert "2024-04-01" in found.to_html()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("zone", ["Europe/Pariss", "", "CEST"])
def test_an_unknown_zone_is_an_error_of_ours(kind: str, zone: str) -> None:
    data = Maker(kind)({**ROWS, "t": SPRING})
    with pytest.raises(ArgumentError, match=f"time_zone.*{zone}"):
        calframe.report(data, label="y", score="p", time="t", time_zone=zone)


@pytest.mark.parametrize("kind", ["pandas[pyarrow]", "polars", "polars[lazy]", "pyarrow", "duckdb"])
def test_a_zone_for_plain_dates_is_an_error_of_ours(kind: str) -> None:
    data = Maker(kind)({**ROWS, "t": [moment.date() for moment in SPRING]})
    with pytest.raises(CalframeError, match="time_zone"):
        calframe.report(data, label="y", score="p", time="t", time_zone="Europe/Paris")


@pytest.mark.parametrize(("name", "value"), [("time_zone", "Europe/Paris"), ("every", "1mo")])
def test_what_needs_a_time_column_is_an_error_without_one(name: str, value: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name}.*time="):
        calframe.report(pl.DataFrame(ROWS), label="y", score="p", **{name: value})


# Missing dates, kinds of columns


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_rows_without_a_date_are_counted_and_in_no_period(make: Maker, kind: str) -> None:
    if kind == "date" and make.library in {"pandas", "pandas[nullable]"}:
        pytest.skip("NumPy has no dates")
    days: list[Any] = [wall("2024-01-01"), wall("2024-01-02"), None, wall("2024-01-02")]
    if kind == "date":
        days = [day and day.date() for day in days]
    found = course_of(make({**ROWS, "t": days}), every="1d")
    assert counts(found) == {"2024-01-01": 1, "2024-01-02": 2}
    assert found.undated == 1


def test_rows_without_a_date_are_counted_within_segments(make: Maker) -> None:
    days = [wall("2024-01-01"), None, None, wall("2024-01-02")]
    found = course_of(make({**ROWS, "t": days, "s": ["a", "a", "b", "b"]}), every="1d", by="s")
    assert counts(found) == {"2024-01-01": 1, "2024-01-02": 1}
    assert found.undated == 2


def test_without_any_date_there_is_no_course_and_the_method_says_so() -> None:
    table = pl.DataFrame({**ROWS, "t": [None] * 4}, schema_overrides={"t": pl.Date})
    found = gathered(table, time="t")
    assert found.course is None
    report = calframe.report(table, label="y", score="p", time="t")
    assert "course" not in report._page().figures()
    assert dict(report._page().method)["Over time"] == "No row has a date in t, so nothing is said about when."


@pytest.mark.parametrize("values", [["2024-01-01"] * 4, [20240101] * 4])
def test_a_time_column_that_is_no_date_is_an_error_of_ours(make: Maker, values: list[Any]) -> None:
    with pytest.raises(CalframeError, match=r"time column 't' .*must be a date or datetime"):
        course_of(make({**ROWS, "t": values}))


def test_old_and_far_dates(make: Maker) -> None:
    days = [wall("1931-05-01"), wall("1969-12-31"), wall("1970-01-01"), wall("2199-01-01")]
    assert list(counts(course_of(make({**ROWS, "t": days}), every="1y"))) == [
        "1931-01-01",
        "1969-01-01",
        "1970-01-01",
        "2199-01-01",
    ]


def test_periods_hold_the_sums_of_their_rows(make: Maker) -> None:
    rng = np.random.default_rng(4)
    n = 600
    days = [wall("2024-01-01") + dt.timedelta(days=int(i)) for i in rng.integers(0, 240, n)]
    columns = {
        "y": rng.integers(0, 2, n).tolist(),
        "p": rng.random(n).tolist(),
        "w": rng.uniform(0.5, 2.0, n).tolist(),
        "t": days,
        "s": rng.choice(["a", "b"], n).tolist(),
    }
    found = course_of(make(columns), by="s", weight="w", every="1mo")
    for row in found.table.iter_rows(named=True):
        mine = [day.replace(day=1).date() == row["period"] for day in days]
        weight, score, label = (np.array(columns[name])[mine] for name in ("w", "p", "y"))
        assert row["n"] == sum(mine)
        assert row["mean_score"] == pytest.approx(np.average(score, weights=weight), rel=1e-12)
        assert row["rate"] == pytest.approx(np.average(label, weights=weight), rel=1e-12)
        assert row["gap"] == pytest.approx(row["mean_score"] - row["rate"], abs=1e-12)


def test_a_length_not_asked_for_has_periods_that_can_be_judged() -> None:
    # six months of 40 rows: two quarters of 120; six of 20: two quarters of 60, and one year, which is no course
    for rows, labels in ((40, ("Q1 2024", "Q2 2024")), (100, None), (20, ("Q1 2024", "Q2 2024"))):
        table = pl.DataFrame(
            {"y": [0, 1] * (3 * rows), "p": 0.5, "t": [dt.date(2024, 1 + i // rows, 1) for i in range(6 * rows)]}
        )
        found = course_of(table)
        assert found.every == ("1q" if labels else "1mo")
        assert labels is None or tuple(found.table["label"]) == labels
    assert course_of(table, every="1mo").every == "1mo"
