"""What `drift` says and draws: the headline is true, every period has its place."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calframe._drifting._drawn import course_rows
from calframe._drifting._panels import panels
from calframe._errors import ArgumentError, EmptyTableError
from calframe._words._numbers import points
from tests._drift_tables import exact, followed, months, notes, table_of, titles
from tests._tables import Maker

# ---------------------------------------------------------------- the headline
STEADY, HIGH = (2000, 0.5), (2000, 0.44)


@pytest.mark.parametrize(
    ("periods", "label"),
    [
        ([*[STEADY] * 6, HIGH, HIGH], "Jul 2024"),
        ([*[STEADY] * 6, (2000, 0.56), (2000, 0.57)], "Jul 2024"),
        ([*[STEADY] * 4, HIGH, HIGH, (60, 0.5)], "May 2024"),  # a period that has just begun does not end a run
        ([*[STEADY] * 6, HIGH, (2000, 0.57)], "Aug 2024"),  # a run is one way
        ([STEADY] * 8, None),
        ([*[STEADY] * 5, HIGH, HIGH, STEADY], None),  # it did not last
        ([HIGH] * 8, None),  # off all the time, so not since anything
        ([*[STEADY] * 6, (2000, 0.465), (2000, 0.465)], None),  # marked, but not clearly beyond the tolerance
        ([*[STEADY] * 7, (60, 0.1)], None),  # too few rows to judge the last period
        ([*[(300, 0.443)] * 6, *[(5000, 0.44)] * 3], None),  # always there; first periods are too small to show it
        ([*[(300, 0.43)] * 6, *[(5000, 0.38)] * 3], "Jul 2024"),  # from 7 points to 12
    ],
)
def test_only_an_unbroken_run_to_the_end_is_named(periods: list[tuple[int, float]], label: str | None) -> None:
    found = followed(exact(*periods))
    assert (found.since[0].label if found.since else None) == label
    assert (found.headline or "").startswith("Since") is (label is not None)


def test_a_run_behind_periods_that_are_not_judged_may_have_begun_in_them() -> None:
    # Eighty rows a month at a rate of 0.9 cannot be judged. Before them 2,000 right rows a month: 0.0 pp, as all rows
    # before October are not: -6 x 80 x 0.4 / 6480 = -3.0 pp. October's gap is 0.5 - 0.8 = -30.0 pp.
    found = followed(exact(*[STEADY] * 3, *[(80, 0.9)] * 6, (2000, 0.8), groups=2), by="g")
    assert found.headline == (
        "All rows together: since Oct 2024 or earlier scores run 30.0 pp too low on average (0.0 pp before); the 6 "
        "periods before Oct 2024 have too few rows to be judged and are in neither average; 2 of 2 segments moved "
        "that way."
    )
    assert found.since[0].unjudged == 6
    one = followed(exact(*[STEADY] * 3, (80, 0.9), (2000, 0.8), (60, 0.9), (2000, 0.8))).headline
    # of 4,060 rows since: (4000 x 0.3 + 60 x 0.4) / 4060 = 30.1 pp; a period within the run goes on with it
    assert one == (
        "Since May 2024 or earlier scores run 30.1 pp too low on average (0.0 pp before); the period before May 2024 "
        "has too few rows to be judged and is in neither average."
    )
    # few rows further back, with a judged period in between, are "before": (-40 x 80) / 4080 = -0.8 pp
    early = followed(exact(STEADY, (80, 0.9), STEADY, (2000, 0.8))).headline
    assert early == "Since Apr 2024 scores run 30.0 pp too low on average (−0.8 pp before)."


def test_segments_are_counted_and_the_worst_is_named() -> None:
    # a: 30 points too high in February; b: right throughout
    off, right = (
        exact(STEADY, (2000, 0.2)).with_columns(g=pl.lit("a")),
        exact(STEADY, STEADY).with_columns(g=pl.lit("b")),
    )
    found = followed(pl.concat([off, right]), by="g")
    said = "A period is clearly off in 1 of 2 segments; the worst is g a in Feb 2024 (+30.0 pp)."
    assert found.about_segments == said
    assert said in " ".join(repr(found).split())
    assert said in found._repr_html_()
    assert followed(right, by="g").about_segments == "No period is clearly off or leans in any of 1 segment."
    assert followed(right).about_segments is None


def test_the_sentence_has_both_gaps_and_the_segments_that_moved() -> None:
    found = followed(exact(*[STEADY] * 6, HIGH, HIGH, groups=4), by="g")
    assert found.headline == (
        "All rows together: since Jul 2024 scores run 6.0 pp too high on average (0.0 pp before); 4 of 4 segments "
        "moved that way."
    )
    moved = exact(*[STEADY] * 6, HIGH, HIGH).with_columns(q=pl.col("p") - 0.16)
    assert followed(moved, score=["p", "q"]).headline == (
        "Since Jul 2024 scores of 'p' run 6.0 pp too high on average (0.0 pp before). Scores of 'q' ran clearly too "
        "low from Jan 2024 to Aug 2024 (8 of 8 judged periods, Jan 2024 the most with −16.0 pp); the latest judged "
        "period, Aug 2024, is clearly too low (−10.0 pp)."
    )


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (
            (0.5, 0.5, 0.3, 0.31, 0.5, 0.5),
            (
                "Scores ran clearly too high from Mar 2024 to Apr 2024 (2 of 6 judged periods, Mar 2024 the most with "
                "+20.0 pp); the latest judged period, Jun 2024, is within tolerance (0.0 pp)."
            ),
        ),
        (
            (0.5, 0.4, 0.5, 0.4, 0.6, 0.4, 0.515),
            (
                "Scores ran clearly too high 3 times, first in Feb 2024 and last in Jun 2024 (3 of 7 judged periods, "
                "Feb 2024 the most with +10.0 pp) and too low in May 2024 (1 of 7 judged periods, −10.0 pp); the "
                "latest judged period, Jul 2024, is within tolerance (−1.5 pp)."
            ),
        ),
        (
            (0.4, 0.4),
            (
                "Scores ran clearly too high from Jan 2024 to Feb 2024 (2 of 2 judged periods, Jan 2024 the most with "
                "+10.0 pp); the latest judged period, Feb 2024, is clearly too high (+10.0 pp)."
            ),
        ),
        ((0.5, 0.5, 0.49), "All 3 judged periods are within tolerance (±3 pp)."),
        ((0.5, 0.47), "No judged period is clearly off: 1 within tolerance and 1 leaning."),
    ],
)
def test_a_shift_that_did_not_last_has_its_dates_its_way_and_its_size(rates: tuple[float, ...], said: str) -> None:
    # 20,000 rows a period: half widths of about one point
    assert followed(exact(*((20_000, rate) for rate in rates))).headline == said


def test_a_run_ends_where_years_have_no_rows() -> None:
    rows = exact((800, 0.5), (800, 0.3), (800, 0.3), (800, 0.5))
    later = pl.when(pl.col("t") >= dt.date(2024, 3, 1)).then(pl.col("t").dt.offset_by("3y")).otherwise("t")
    apart = followed(rows.with_columns(t=later), every="1mo").headline
    assert "in Feb 2024 and in Mar 2027 (2 of 4 judged periods" in apart
    assert "from Feb 2024 to Mar 2024 (2 of 4 judged periods" in followed(rows, every="1mo").headline


def test_a_reference_that_is_itself_off_is_named() -> None:
    # 4,000 rows at 0.5, 1,880 positives: 3 points too high, 2.6 standard errors of 0.79 points above 0.4 and below 6
    found = followed(exact((4000, 0.47), STEADY, STEADY))
    assert found.about_reference == "The reference, Jan 2024, is itself off by +3.0 pp."
    assert found.about_reference in repr(found)
    assert found.reference_gap.select("n", "verdict").rows() == [(4000, "leans_over")]
    far = followed(exact((4000, 0.4), STEADY, STEADY, groups=2), by="g", score=["p"])
    assert far.about_reference == "For 'p' the reference, Jan 2024, is itself clearly off by +10.0 pp."
    assert followed(exact(STEADY, STEADY)).about_reference is None
    table = exact((4000, 0.4)).drop("t")
    assert followed(exact(STEADY, STEADY), reference=table).reference_gap["gap"].to_list() == pytest.approx([0.1])
    assert followed(exact(STEADY, STEADY), reference="rolling").reference_gap.is_empty()


def test_the_alarm_has_a_day_or_a_minute() -> None:
    days = exact((200, 0.5), (200, 0.3))
    assert "monitor: alarm since 2024-02-01" in repr(followed(days))
    assert "monitor: alarm since 2024-02-01" in repr(followed(days.with_columns(pl.col("t").cast(pl.Datetime))))
    times = days.with_columns(pl.col("t").cast(pl.Datetime) + pl.duration(minutes=90))
    assert "monitor: alarm since 2024-02-01 01:30" in repr(followed(times))
    paris = followed(times, time_zone="Europe/Paris")  # an hour ahead of UTC, which plain times are then taken as
    assert "monitor: alarm since 2024-02-01 02:30" in repr(paris)
    by_day = times.to_pandas().assign(t=lambda frame: frame["t"].dt.tz_localize("Europe/Paris"))
    assert "monitor: alarm since 2024-02-01\n" in f"{followed(by_day, batch='day')}\n"
    two = pl.concat([days.with_columns(g=1), exact((200, 0.5), (200, 0.5)).with_columns(g=2)], how="vertical_relaxed")
    assert "monitor: alarm in 1 of 2 series, the first since 2024-02-01" in repr(followed(two, by="g"))


def test_rows_of_several_models_are_counted_once() -> None:
    found = followed(exact(STEADY, STEADY).with_columns(q=pl.when(pl.int_range(4000) > 9).then("p")), score=["p", "q"])
    assert (found.n, found.n_missing) == (4000, 0)
    assert "2 periods from 4,000 rows" in repr(found)


# ---------------------------------------------------------------- what is drawn and shown
def gone(*lost: str) -> pl.DataFrame:
    return exact(*[STEADY] * 4).filter(~pl.col("t").cast(pl.String).str.slice(0, 7).is_in(lost))


def test_a_period_without_rows_has_its_place_and_is_counted() -> None:
    found = followed(gone("2024-02", "2024-03"))
    assert (found.n_empty, found.to_dict()["n_empty"]) == (2, 2)
    assert "2 periods have no rows" in repr(found)
    assert "2 periods have no rows." in panels(found._shown(), model=None, segments=False)[0][1]
    drawn = course_rows(found.course, every=found.every)
    assert drawn["label"].to_list() == ["Jan 2024", "Feb 2024", "Mar 2024", "Apr 2024"]
    assert drawn["gap"].is_null().to_list() == [False, True, True, False]  # where there is none the line is broken
    assert drawn["description"].to_list()[1] == "Feb 2024: no rows"
    assert followed(gone()).n_empty == 0


def test_a_long_time_without_rows_takes_little_room() -> None:
    days = pl.DataFrame(
        {"t": [dt.date(2020, 1, 1), dt.date(2024, 1, 1), dt.date(2024, 1, 2)], "p": 0.5, "y": [0, 1, 0]}
    )
    found = followed(days.with_columns(p=0.5), every="1d")
    assert found.n_empty == (dt.date(2024, 1, 1) - dt.date(2020, 1, 1)).days - 1
    drawn = course_rows(found.course, every="1d")["label"].to_list()
    assert drawn == ["2020-01-01", "2020-01-02", "2024-01-01", "2024-01-02"]


def test_the_words_of_a_period_are_the_gap_its_interval_and_its_rows() -> None:
    # Wilson at 880 of 2,000: 0.4184 to 0.4619 (statsmodels.stats.proportion.proportion_confint)
    [words] = course_rows(followed(exact(HIGH)).course, every="1mo")["description"].to_list()
    assert words == "Jan 2024: +6.0 pp, +3.8 to +8.2, 2,000 rows"


def test_the_chart_names_the_model_and_says_what_is_together() -> None:
    table = exact(*[STEADY] * 4, (2000, 0.3), HIGH, groups=2).with_columns(q=pl.col("p"))
    found = followed(table, score=["p", "q"], by="g")
    assert titles(found) == ["Gap of p, all segments together", "Gap of q, all segments together"]
    assert titles(found, model="q") == ["Gap of q, all segments together"]
    assert titles(found, segments=True) == ["Gap of p, g 0", "Gap of q, g 0", "Gap of p, g 1", "Gap of q, g 1"]
    assert titles(found, model="q", segments=True) == ["Gap of q, g 0", "Gap of q, g 1"]
    assert titles(followed(table)) == ["Gap of p"]
    spec = json.dumps(found.plot(model="q").to_dict())
    for words in ("Gap of q, all segments together", "Dark bars: the reference, Jan 2024 to Feb 2024.", "Jun 2024"):
        assert words in spec
    assert '"alarm": "monitor of g 0, the first of 2: 2024-05-01"' in spec  # the same rate in both, so at once
    assert "Dashed line: the alarm of the monitor of g 0; of 2 monitors, one a segment, 2 sounded." in notes(found)
    assert '"alarm": "monitor: 2024-05-01"' in json.dumps(found.plot(model="q", segments=True).to_dict())
    many = panels(
        followed(table.with_columns(g=pl.int_range(pl.len()) % 15), by="g")._shown(), model=None, segments=True
    )
    assert len(many) == 12
    assert "3 more series are not drawn." in many[0][1]
    with pytest.raises(ArgumentError, match="model must be one of 'p', 'q'"):
        found.plot(model="r")
    with pytest.raises(ArgumentError, match="width must be a number of pixels"):
        found.plot(width=3)


def test_a_notebook_shows_what_a_terminal_does() -> None:
    html = followed(exact(STEADY, STEADY, HIGH, groups=2), by="g")._repr_html_()
    heads = re.findall("<th>(.*?)</th>", html)
    assert heads == ["g", "period", "rows", "rate", "gap", "95% widened", "adj. p", "PSI", "chance", "verdict"]
    assert "<td>Mar 2024</td><td>1,000</td>" in html
    assert html.index("<caption>") < html.index("monitor: ") < html.index("PSI: how far") < html.index("</caption>")


@pytest.mark.parametrize(("name", "library"), [("*", "polars"), ("^.*$", "pandas"), ("rows", "pyarrow")])
def test_a_segment_column_may_have_any_name(name: str, library: str) -> None:
    columns = exact(STEADY, HIGH, groups=2).rename({"g": name}).to_dict(as_series=False)
    found = followed(Maker(library)(columns), by=name)
    assert "1,000" in found._repr_html_()
    assert repr(found)
    assert found.to_dict()["by"] == [name]
    assert len(titles(found, segments=True)) == 2


@st.composite
def courses(draw: st.DrawFn) -> pl.DataFrame:
    """Return tables of a few months, some without rows, of one class, without labels, tiny or large."""
    parts = []
    for month in months(draw(st.integers(1, 7))):
        n = draw(st.sampled_from([0, 1, 7, 150, 150, 1000, 3000]))
        score = draw(st.sampled_from([0.0, 0.02, 0.4, 0.5, 1.0]))
        rate = draw(st.sampled_from([0.0, 0.02, 0.3, 0.4, 0.5, 1.0]))
        label = pl.Series([int(i < round(n * rate)) for i in range(n)], dtype=pl.Int64)
        parts.append(
            pl.DataFrame(
                {"y": label if draw(st.integers(0, 9)) else pl.Series([None] * n, dtype=pl.Int64)}
            ).with_columns(p=pl.lit(score), t=pl.lit(month))
        )
    return pl.concat(parts)


@settings(deadline=None, max_examples=60)
@given(courses(), st.sampled_from([0.001, 0.03, 0.2]))
def test_the_headline_is_true(table: pl.DataFrame, tolerance: float) -> None:
    if not len(table):
        with pytest.raises(EmptyTableError, match="no rows"):
            followed(table)
        return
    found = followed(table, tolerance=tolerance)
    json.dumps(found.to_dict(), allow_nan=False)
    assert all(len(line) <= 80 for line in repr(found).splitlines())
    judged = found.course.filter(pl.col("verdict") != "few")
    if judged.is_empty():
        none = 'None of {} periods has the 100 rows needed to be judged; a longer period may have them (every="1q").'
        assert found.headline in {
            none.format(found.course.height),
            "The one period has too few rows to be judged (100 needed).",
            "There is no period to be judged.",
        }
        return
    said = re.fullmatch(
        r"Since (.+?)(?: or earlier)? scores run ([\d.]+) pp too (high|low) on average \(([+−]?[\d.]+) pp before\)"
        r"(?:; the (?:(\d+) periods|period) before \1 ha(?:s|ve) too few rows to be judged and .+)?\.",
        (found.headline or "").replace("\n", " "),
    )
    if said is None:
        told(found.headline or "", judged.rows(named=True), tolerance)
        return
    start = found.course.filter(label=said[1])["period"][0]
    state = "over" if said[3] == "high" else "under"
    run, before = judged.filter(pl.col("period") >= start), judged.filter(pl.col("period") < start)
    assert set(run["state"]) == {state}  # every judged period from there to the end
    assert len(before) > 0
    unknown = found.course.filter(pl.col("period").is_between(before["period"][-1], start, closed="none")).height
    assert found.since[0].unjudged == unknown
    assert ("or earlier" in (found.headline or "")) is (unknown > 0)
    sides = [table.drop_nulls().filter(s) for s in (pl.col("t") >= start, pl.col("t") <= before["period"][-1])]
    gaps = [100 * float((side["p"] - side["y"]).mean()) for side in sides]  # type: ignore[arg-type]
    assert gaps[0] == pytest.approx(float(said[2]) * (1 if state == "over" else -1), abs=0.0501)
    assert gaps[1] == pytest.approx(float(said[4].replace("−", "-")), abs=0.0501)
    assert abs(gaps[0]) > 100 * tolerance
    assert (gaps[0] - gaps[1]) * gaps[0] > 0  # it moved away from zero
    last = before.tail(1).row(0, named=True)
    gone = (run["period"][0] - last["period"]).days > 93
    assert last["state"] != state or gone  # the run does not begin earlier


PART = re.compile(
    r"too (high|low) (.+?) \((\d+) of (\d+) judged periods?, (?:([^()]+?) the most with )?([+−][\d.]+) pp\)"
)
END = re.compile(r"; the latest judged period, (.+?), (.+?) \(([+−]?[\d.]+) pp\)(; since when is not clear)?\.")


def told(headline: str, judged: list[dict[str, Any]], tolerance: float) -> None:
    """Check a headline without a run to the end against the widened intervals of the judged periods."""
    off = {
        "high": [one for one in judged if one["simultaneous_low"] > tolerance],
        "low": [one for one in judged if one["simultaneous_high"] < -tolerance],
    }
    if not headline.startswith("Scores ran clearly"):
        assert not off["high"]
        assert not off["low"]
        within = sum(-tolerance <= one["simultaneous_low"] <= one["simultaneous_high"] <= tolerance for one in judged)
        assert "judged period" in headline
        assert ("No " not in headline) is (within == len(judged))
        return
    parts = PART.findall(headline)
    assert {part[0] for part in parts} == {way for way, found in off.items() if found}
    for way, when, count, total, most, size in parts:
        assert (int(count), int(total)) == (len(off[way]), len(judged))
        furthest = max(off[way], key=lambda one: abs(one["gap"]))
        assert most in {"", furthest["label"]}
        assert points(furthest["gap"]) == f"{size} pp"
        ends = re.findall(r"(?:in|from|to) (\w+ \d{4})", when)
        assert (ends[0], ends[-1]) == (off[way][0]["label"], off[way][-1]["label"])
        if "times" not in when:
            labels = [one["label"] for one in judged]
            runs = re.findall(r"(?:in|from) (\w+ \d{4})(?: to (\w+ \d{4}))?", when)
            inside = [labels[labels.index(first) : labels.index(last or first) + 1] for first, last in runs]
            assert [label for run in inside for label in run] == [one["label"] for one in off[way]]
    end = END.search(headline)
    assert end is not None
    last = judged[-1]
    assert (end[1], f"{end[3]} pp") == (last["label"], points(last["gap"]))
    assert (end[2] == "is clearly too high") is (last in off["high"])
    assert (end[2] == "is clearly too low") is (last in off["low"])


def test_right_scores_are_hardly_ever_said_to_be_off() -> None:
    found = [followed(table_of(seed, n=3000, periods=12)).headline or "" for seed in range(60)]
    assert len([one for one in found if not one.startswith("No judged period is clearly off")]) <= 1
