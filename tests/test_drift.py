"""`drift`: the numbers of each period, days, and what comes out or is refused."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import Any

import polars as pl
import pytest

import calframe
from calframe._drifting._panels import panels
from calframe._errors import ArgumentError, CalframeError, ColumnClashError, EmptyTableError, ScoreError, SegmentError
from tests._drift_tables import COMPARED, METRICS, followed, months, table_of
from tests._tables import Maker, approx, rows


# ---------------------------------------------------------------- numbers of a period
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by": "g"},
        {"by": "g", "score": ["p", "q"]},
        {"weight": "w"},
        {"weight": "w", "weight_kind": "frequency", "by": "g"},
        {"strategy": "quantile", "bins": 4},
    ],
    ids=["plain", "segments", "models", "weights", "counts", "quantiles"],
)
def test_each_period_has_the_metrics_of_its_rows(options: dict[str, Any]) -> None:
    table = table_of()
    found = followed(table, **options).table
    keys = [*(["g"] if "by" in options else []), "period"]
    plain = {name: value for name, value in options.items() if name != "by"}
    expected = calframe.metrics(
        table.with_columns(period="t"),
        **{"label": "y", "score": "p", "by": keys, "metrics": [*METRICS, "within_bin"], **plain},
    )
    order = [*keys[:-1], *(["model"] if "model" in expected.columns else []), "period"]
    expected = expected.sort(order, nulls_last=True)
    assert found.select(order).equals(expected.select(order))
    for name in ("n", "n_missing", *METRICS, "within_bin"):
        assert found[name].to_list() == approx(expected[name].to_list(), rel=1e-9), name


def test_a_period_has_the_interval_of_its_gap() -> None:
    found = followed(table_of()).table
    expected = calframe.metrics(table_of(), label="y", score="p", by="t", metrics="gap", confidence_level=0.95)
    for name in ("gap_low", "gap_high"):
        assert found[name].to_list() == approx(expected[name].to_list(), rel=1e-12)


def test_every_library_gives_the_same(make: Maker) -> None:
    columns = {name: table_of()[name].to_list() for name in ("y", "p", "w", "t", "g")}
    options: dict[str, Any] = {"by": "g", "weight": "w", "reference": "rolling"}
    expected, found = followed(pl.DataFrame(columns), **options), followed(make(columns), **options)
    for name, dated in (("table", "period"), ("parts", "period"), ("monitor", "time")):
        mine, theirs = rows(getattr(expected, name)), rows(getattr(found, name))
        for one in (mine, theirs):
            one[dated] = [value.date() if isinstance(value, dt.datetime) else value for value in one[dated]]
        assert list(mine) == list(theirs)
        for column in mine:
            assert theirs[column] == approx(mine[column], rel=1e-9), column
        kind = pl.DataFrame if make.lazy else make.result
        assert type(getattr(found, name)) is kind
    assert (found.n, found.headline) == (expected.n, expected.headline)


def test_the_order_of_rows_does_not_matter() -> None:
    table = table_of()
    one, other = followed(table, by="g"), followed(table.sample(fraction=1.0, shuffle=True, seed=3), by="g")
    for name in ("table", "parts", "monitor", "course"):
        mine, theirs = rows(getattr(one, name)), rows(getattr(other, name))
        assert {column: approx(values, rel=1e-9) for column, values in mine.items()} == theirs


def test_counts_say_what_was_left_out() -> None:
    columns: dict[str, Any] = {
        "y": [1, 0, None, 1, 0, 1],
        "p": [0.5, 0.4, 0.3, None, 0.2, 1.5],
        "t": [*months(3), *months(2), None],
    }
    found = followed(pl.DataFrame(columns), invalid="drop")
    assert found.table.select("period", "n", "n_missing", "n_invalid").rows() == [
        (months(3)[0], 1, 1, 0),
        (months(3)[1], 2, 0, 0),
        (months(3)[2], 0, 1, 0),
    ]
    assert (found.n, found.n_missing, found.n_invalid, found.n_undated) == (3, 2, 1, 0)
    assert found.table["note"][2] == "no usable rows"
    undated = followed(pl.DataFrame({**columns, "p": [0.5] * 6}))
    assert (undated.n, undated.n_undated, undated.table["n"].sum()) == (5, 1, 4)
    assert "1 row without a time" in repr(undated)


# ---------------------------------------------------------------- days
SPRING = [dt.datetime(2024, 3, *day, tzinfo=dt.UTC) for day in ((30, 22, 30), (30, 23, 30), (31, 21, 30), (31, 22, 30))]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Paris", {"2024-03-30": 1, "2024-03-31": 2, "2024-04-01": 1}),  # UTC+1, then UTC+2 from 01:00 UTC
        (None, {"2024-03-30": 2, "2024-03-31": 2}),
    ],
)
def test_days_are_local_where_clocks_change(make: Maker, zone: str | None, expected: dict[str, int]) -> None:
    # https://github.com/pola-rs/polars/issues/15966
    if make.library == "duckdb":
        pytest.skip("DuckDB keeps the zone in its connection")
    data = make({"y": [1, 0, 1, 0], "p": [0.6, 0.4, 0.7, 0.2], "t": SPRING})
    found = followed(data, every="1d", time_zone=zone)
    assert {line["period"]: line["n"] for line in found.to_dict()["table"]} == expected
    assert found.time_zone == (zone or "UTC")


def test_times_without_a_zone_are_wall_time(make: Maker) -> None:
    wall = [time.replace(tzinfo=None) for time in SPRING]
    found = followed(make({"y": [1, 0, 1, 0], "p": [0.6, 0.4, 0.7, 0.2], "t": wall}), every="1d")
    assert [line["n"] for line in found.to_dict()["table"]] == [2, 2]
    assert found.time_zone is None


@pytest.mark.parametrize(("every", "starts"), [("1mo", 6), ("1q", 2), ("1y", 1), ("1w", 6), ("1d", 6)])
def test_periods_have_the_length_asked_for(every: Any, starts: int) -> None:
    assert len(followed(table_of(), every=every).table) == starts


# ---------------------------------------------------------------- what comes out, and what does not go in
def test_the_result_can_be_shown_and_stored() -> None:
    found = followed(table_of(off=0.3, late=4, n=3000), by="g", score=["p", "q"])
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (stored["kind"], stored["schema_version"], stored["scores"]) == ("drift", 1, ["p", "q"])
    assert len(stored["table"]) == len(found.table)
    assert stored["convention"]["psi_floor"] == 1e-4
    assert found._repr_html_().startswith(
        "<table><caption>All rows together: since May 2024 scores of &#x27;p&#x27; run"
    )
    assert all(len(line) <= 80 for line in repr(found).splitlines())


@pytest.mark.parametrize(
    "columns",
    [
        {"y": [None] * 3, "p": [0.1, 0.2, 0.3], "t": months(3)},
        {"y": [1, 0, 1], "p": [0.1, 0.2, 0.3], "t": [None] * 3},
        {"y": [1, 1, 1], "p": [1.0, 1.0, 1.0], "t": months(3)},
        {"y": [0, 0, 0], "p": [1.0, 0.0, 0.0], "t": months(3)},
        {"y": [1], "p": [0.3], "t": months(1)},
    ],
    ids=["no labels", "no times", "all one", "all wrong", "one row"],
)
def test_poor_tables_give_nulls_and_notes(columns: dict[str, Any]) -> None:
    kinds = {"y": pl.Int64, "p": pl.Float64, "t": pl.Date}
    table = pl.DataFrame(columns, schema=kinds)
    for options in ({}, {"reference": "rolling"}, {"weight": "w"}):
        found = followed(table.with_columns(w=pl.lit(2.0)), **options)
        assert found.headline in {
            'None of 3 periods has the 100 rows needed to be judged; a longer period may have them (every="1q").',
            "The one period has too few rows to be judged (100 needed).",
            "There is no period to be judged.",
        }
        assert "0 of 0" not in repr(found) + found._repr_html_()
        json.dumps(found.to_dict(), allow_nan=False)
        assert "<table>" in found._repr_html_()
        assert panels(found._shown(), model=None, segments=True)
        assert found.table.filter(pl.col("gap").is_null() & pl.col("note").is_null()).height == 0
        assert found.table.filter(pl.col("psi").is_null() & pl.col("note").is_null()).height == 0


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"time": None}, ArgumentError, "drift needs time="),
        ({"time": "y"}, SegmentError, "must be a date or datetime"),
        ({"every": "2mo"}, ArgumentError, "every='2mo' is not known"),
        ({"reference": "Jan 2030"}, ArgumentError, "names no period of the table; got 'Jan 2030'"),
        ({"reference": ("2024-01-01",)}, ArgumentError, "names no period of the table"),
        ({"reference": 3}, ArgumentError, "names no period of the table; got 3"),
        ({"reference": "2030-01"}, ArgumentError, "names no period of the table; got '2030-01'"),
        ({"window": 2}, ArgumentError, "window=2 is the number of periods behind reference='rolling'"),
        ({"run_length": math.inf}, ArgumentError, "run_length is a number of batches above 1"),
        (
            {"reference": "rolling", "window": 0},
            ArgumentError,
            "window must be a whole number of 1 or more; got 0",
        ),
        ({"by": "t"}, ArgumentError, "by= names the time column 't'"),
        ({"by": "psi"}, ColumnClashError, "'psi' has the name of a result column"),
        ({"psi_bins": 0}, ArgumentError, "^psi_bins must be a number from 1"),
        ({"psi_bins": "auto"}, ArgumentError, "^psi_bins must be a number of bins or a list of edges; got 'auto'"),
        ({"reference": table_of().drop("p")}, CalframeError, "^the second table, reference=: "),
        ({"reference": table_of().clear()}, EmptyTableError, "^the second table, reference=: the table has no rows"),
        ({"psi_bins": 20_000}, ArgumentError, "psi_bins must be a number from 1 to 10,000"),
        ({"psi_floor": 0.0}, ArgumentError, "psi_floor is the share that stands for an empty bin"),
        ({"run_length": 1}, ArgumentError, "run_length is a number of batches above 1"),
        ({"batch": "hour"}, ArgumentError, "batch must be one of 'day', 'time'"),
        ({"correction": "sidak"}, ArgumentError, "correction must be one of"),
        ({"alpha": 0.7}, ArgumentError, "alpha must lie between 1e-09 and 0.5"),
        ({"tolerance": 3}, ArgumentError, "tolerance is a gap between 0 and 1"),
        ({"clip": 0.7}, ArgumentError, "clip must lie between"),
        ({"time_zone": "Paris"}, ArgumentError, "time_zone must be the name of a zone"),
        ({"score": {"a": "p", "b": "q", "c": "w"}}, ArgumentError, "drift follows one probability"),
        ({"score": "w"}, ScoreError, r"scores must lie in \[0, 1\]"),
    ],
)
def test_wrong_input_gets_one_clear_error(options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        followed(table_of().with_columns(psi=pl.lit(1)), **options)


def test_a_time_column_may_have_the_name_of_a_result_column() -> None:
    table = table_of().rename({"t": "period"})
    assert followed(table, time="period").table.equals(followed(table_of()).table)
    assert followed(table_of().rename({"t": "n"}), time="n").monitor.equals(followed(table_of()).monitor)


@pytest.mark.parametrize("far", [632_401_862_400_000, 2**62])
def test_days_beyond_the_calendar_are_counted_in_the_error(far: int) -> None:
    # milliseconds after 1970: year 22010, and beyond all years that polars counts
    times = pl.Series([far] * 3 + [1_704_067_200_000] * 5).cast(pl.Datetime("ms"))
    table = pl.DataFrame({"y": [0, 1] * 4, "p": 0.5, "t": times})
    with pytest.raises(SegmentError, match="time column 't' must hold days of the years 1 to 9999; 3 rows lie outside"):
        followed(table)


def test_weights_that_are_all_equal_are_none() -> None:
    table = table_of(n=6000)
    plain, weighted = followed(table).table, followed(table.with_columns(w=7.5), weight="w").table
    for name in (*COMPARED, "gap_pvalue"):
        assert weighted[name].to_list() == approx(plain[name].to_list(), rel=1e-9), name


def test_edges_that_do_not_cover_the_scores_are_an_error_as_in_metrics() -> None:
    # 0.75 lies outside of 0 to 0.5: three rows of five
    table = pl.DataFrame({"y": [0, 1, 0, 1, 1], "p": [0.25, 0.25, 0.75, 0.75, 0.75], "t": months(5)})
    with pytest.raises(ScoreError) as known:
        calframe.metrics(table, label="y", score="p", bins=[0, 0.5])
    with pytest.raises(ScoreError, match="3 rows") as found:
        followed(table, bins=[0, 0.5])
    assert str(found.value) == str(known.value)
    assert followed(table, bins=[0, 0.5, 1]).n == 5
    left = followed(table, bins=[0, 0.5], invalid="drop")
    assert (left.n, left.n_invalid) == (2, 3)


@pytest.mark.parametrize(("every", "apart"), [("1d", 3), ("1w", 20), ("1mo", 40), ("1q", 120), ("1y", 400), (None, 3)])
@pytest.mark.parametrize("last", [dt.date(9999, 12, 31), dt.datetime.combine(dt.date.max, dt.time(23))])
def test_the_last_day_there_is_can_be_drawn(every: Any, apart: int, last: dt.date) -> None:
    first = last - dt.timedelta(days=apart)
    table = pl.DataFrame({"y": [0, 1] * 100, "p": 0.5, "t": [first, last] * 100})
    found = followed(table, every=every)
    assert found.course.height == 2
    assert found.plot().to_dict()
    assert found.course["label"][1] in followed(table, every=every, reference=last.year).reference_periods
