"""The page of a report: small, the same for the same table, loads nothing, holds no row, and every name is text."""

from __future__ import annotations

import datetime as dt
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert

import calframe
from calframe._charts._theme import NARROW, WIDE
from calframe._report import _figures as figures
from calframe._report._page import Page
from calframe._report._render import render_page
from tests._findings import course, findings, grouping, numbers
from tests._markup import Document
from tests._reports import ROLES, eight, full
from tests._segments_by_hand import FINE, WEST
from tests._tables import Maker


@cache
def full_page() -> str:
    return full().to_html()


def specs(page: Page, *, widths: tuple[int, ...] = (WIDE, NARROW)) -> Iterator[dict[str, Any]]:
    """Go through the specifications of every chart of a page."""
    for figure in page.figures().values():
        yield from (figure.draw(width).to_dict() for width in widths)


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Go through everything that is no container, with the keys that lead to it."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from walk(item, path)
    else:
        yield path, value


def data_rows(spec: Any) -> list[list[dict[str, Any]]]:
    """Return every table of rows in a chart."""
    if isinstance(spec, list):
        return [table for item in spec for table in data_rows(item)]
    if not isinstance(spec, dict):
        return []
    own = [spec["values"]] if isinstance(spec.get("values"), list) else []
    own += list(spec.get("datasets", {}).values())
    tables = [table for table in own if table and isinstance(table[0], dict)]
    inner = [item for key, item in spec.items() if key not in {"values", "datasets"}]
    return tables + data_rows(inner)


# The page


def test_the_page_is_small_and_loads_nothing() -> None:
    page = full_page()
    assert len(page.encode()) <= 600_000
    assert full().to_dict()["periods"]
    assert "http" not in page.replace("http-equiv", "")
    assert not re.search(r"//[a-z0-9-]+\.[a-z]{2,}/", re.sub(r"/\*.*?\*/", "", page))


def test_hundred_times_the_rows_make_the_same_page() -> None:
    # https://github.com/evidentlyai/evidently/issues/2
    rng = np.random.default_rng(0)
    columns = {"y": [1, 0, 1, 0], "p": [0.8, 0.3, 0.6, 0.4], "segment": ["a", "a", "b", "b"]}
    small = pl.concat([pl.DataFrame(columns)] * 500)
    n = 15 * 120  # from there on a curve has all its 15 bins
    large = pl.DataFrame({"y": rng.integers(0, 2, n), "p": rng.random(n)})
    for table, by in ((small, "segment"), (large, None)):
        one, many = (calframe.report(t, by=by, **ROLES) for t in (table, pl.concat([table] * 100)))
        assert many.to_dict()["counts"]["rows"] == 100 * one.to_dict()["counts"]["rows"]
        assert len(many.to_html()) <= 1.05 * len(one.to_html())


def test_the_page_holds_no_row_of_the_table() -> None:
    rng = np.random.default_rng(5)
    n = 600
    table = pl.DataFrame(
        {
            "y": rng.integers(0, 2, n),
            "p": rng.random(n),
            "w": rng.uniform(1.0, 2.0, n),
            "group": rng.choice(["a", "b"], n),
            "day": [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 500_000, n)],  # noqa: DTZ001
            "name": [f"person-{i:05d}" for i in rng.permutation(n)],
        }
    )
    page = calframe.report(table, by="group", time="day", weight="w", **ROLES).to_html()
    assert "person-" not in page
    for name in ("p", "w"):
        assert not [value for value in table[name] if f"{value:.8f}" in page or repr(value) in page]
    assert not [day for day in table["day"] if day.isoformat() in page or f"{day:%Y-%m-%d %H:%M}" in page]


def test_many_rows_are_no_trouble_for_altair() -> None:
    # https://github.com/vega/altair/issues/2382
    found = calframe.report(pl.DataFrame({"y": [1, 0] * 10_000, "p": [0.7, 0.3] * 10_000}), **ROLES)
    page = found._page()
    counts = [len(table) for spec in specs(page) for table in data_rows(spec)]
    assert counts
    assert max(counts) <= 5000
    assert "20,000 rows" in Document(render_page(page)).text


def altair_options() -> list[Any]:
    plugins = (alt.data_transformers, alt.renderers, alt.theme)
    return [(p.active, dict(p.options)) for p in plugins]


def test_the_options_of_altair_stay_as_they_are() -> None:
    before = altair_options()
    found = calframe.report(eight(), **ROLES)
    found._repr_html_()
    assert altair_options() == before
    with alt.data_transformers.enable("default", max_rows=7), alt.theme.enable("dark"):
        chosen = altair_options()
        assert chosen != before
        found._repr_html_()  # with more bins than rows are allowed here
        assert altair_options() == chosen


def test_region_and_month_are_named_where_columns_are_called_so() -> None:
    spoken = spoken_words(full_page())
    assert "jan" in spoken  # twelve months, which are called periods; "month" says how long one is
    assert not spoken & {"region", "regions", "months", "area", "people", "customer"}
    table = eight(400).rename({"group": "region", "p": "month"})
    named = spoken_words(calframe.report(table, label="y", score="month", by="region").to_html())
    assert {"region", "month"} <= named


def spoken_words(page: str) -> set[str]:
    """Return the words that a reader sees or hears."""
    document = Document(page)
    heard = [text for name in ("title", "aria-label", "alt", "download") for text in document.values(name)]
    return set(re.findall(r"[a-z]+", " ".join([document.text, *heard]).lower()))


def test_the_same_table_makes_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    # In another process, with other hashes, in another zone and after another chart.
    script = (
        "import sys, calframe; from tests._reports import ROLES, eight; "
        "found = calframe.report(eight(400), by='group', **ROLES); "
        "sys.stdout.buffer.write(found.to_html().encode())"
    )
    epoch = {"SOURCE_DATE_EPOCH": "1700000000"}
    environment = os.environ | epoch | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", script]
    folder = Path(__file__).parents[1]
    there = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True).stdout.decode()
    for name, value in epoch.items():
        monkeypatch.setenv(name, value)
    found = calframe.report(eight(400), by="group", **ROLES)
    assert found.to_html() == there
    assert "Made 2023-11-14 22:13 UTC" in there  # date -u -d @1700000000
    assert str(folder) not in there


def test_the_time_is_that_of_the_making() -> None:
    page = full_page()
    made = re.search(r"Made (\d{4}-\d\d-\d\d \d\d:\d\d) UTC with calframe", page)
    assert made
    then = dt.datetime.strptime(made[1], "%Y-%m-%d %H:%M").replace(tzinfo=dt.UTC)
    assert dt.timedelta(0) <= dt.datetime.now(dt.UTC) - then < dt.timedelta(minutes=10)


def test_the_card_is_a_fragment_without_script() -> None:
    card = full()._repr_html_()
    document = Document(card)
    assert {tag for tag, _ in document.elements} & {"html", "head", "body", "script"} == set()
    assert document.open == []
    assert full().headline in document.text
    assert "http" not in card


# Names


NAMES = ["seg.a", "seg[b]", "seg:Q", "it's", 'say "hi"', "a\\b"]


def test_columns_of_any_name_have_charts_with_data_and_are_called_by_it() -> None:
    # https://github.com/vega/altair/issues/3599: 4 rows, each 100 times
    columns = {"y": [1, 0, 1, 0] * 100, "p": [0.8, 0.3, 0.6, 0.4] * 100} | {name: ["u", "v"] * 200 for name in NAMES}
    found = calframe.report(pl.DataFrame(columns), by=NAMES, **ROLES)
    page = found._page()
    figures = page.figures()
    assert len(figures) == 3 * len(NAMES) + 1
    for i, name in enumerate(NAMES):
        for kind in ("forest", "heat", "panels"):
            figure = figures[f"{kind}-{i}"]
            assert name in f"{figure.title} {figure.sub}"
            assert figure.table.columns[0] == name
            assert len(figure.table.rows) >= 2
    for spec in specs(page, widths=(WIDE,)):
        assert max(map(len, data_rows(spec))) >= 2
        fields = {value for path, value in walk(spec) if path[-1] in {"field", "groupby"} and isinstance(value, str)}
        assert fields
        assert not [field for field in fields if not re.fullmatch("[a-z_]+", field)]


EXPRESSIONS = {"expr", "signal", "test", "update", "filter", "calculate", "labelExpr", "events"}


def test_no_expression_holds_a_value_of_the_table() -> None:
    # https://github.com/vega/vega/issues/3018
    evil = "') || alert(1) || ('"
    columns = {"y": [1, 0, 1, 0], "p": [0.8, 0.3, 0.6, 0.4], "segment": [evil, "b", "b", "b"]}
    page = calframe.report(pl.concat([pl.DataFrame(columns)] * 120), by="segment", **ROLES)._page()
    checked = 0
    for spec in specs(page):
        for source in (spec, vl_convert.vegalite_to_vega(spec)):
            for path, value in walk(source):
                if isinstance(value, str) and set(path) & EXPRESSIONS and not {"values", "datasets"} & set(path):
                    checked += 1
                    assert "alert(1)" not in value, path
    assert checked > 100
    document = Document(render_page(page))
    assert evil in document.text
    scripts = [script for attributes, script in document.scripts if attributes.get("type") != "application/json"]
    assert len(scripts) == 1
    assert "alert(1)" not in scripts[0]


@pytest.mark.parametrize("title", ["</title><script>alert(1)</script>", "{{7*7}}", "日本語 🙂", ""])
def test_a_title_is_text(title: str) -> None:
    found = calframe.report(eight(80), title=title, **ROLES)
    assert found.to_dict()["title"] == title
    page = found.to_html()
    assert "<script>alert" not in page
    assert title in Document(page).text


def test_a_report_is_called_by_its_score_column() -> None:
    assert full().to_dict()["title"] == "Scores of p"


# Time


UTC = dt.UTC


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars[lazy]", "pyarrow"])
@pytest.mark.parametrize(
    ("zone", "counts"),
    [
        ("Europe/Paris", {"2024-03-30": 1, "2024-03-31": 2, "2024-04-01": 1}),
        ("UTC", {"2024-03-30": 2, "2024-03-31": 2}),
    ],
)
def test_days_are_local_over_the_change_of_clocks(kind: str, zone: str, counts: dict[str, int]) -> None:
    # https://github.com/pola-rs/polars/issues/15966
    moments = [dt.datetime(2024, 3, 30, 22, 30, tzinfo=UTC) + dt.timedelta(hours=h) for h in (0, 1, 23, 24)]
    table = Maker(kind)({"y": [1, 0, 1, 0], "p": [0.6, 0.4, 0.7, 0.2], "t": moments})
    found = calframe.report(table, time="t", time_zone=zone, every="1d", **ROLES).to_dict()
    assert {period["period"]: period["n"] for period in found["periods"]} == counts


def test_no_day_moves_in_the_browser_of_the_reader() -> None:
    # https://github.com/vega/altair/pull/1053
    moments = [dt.datetime(2024, 3, 31, 22, 30, tzinfo=UTC), dt.datetime(2024, 4, 1, 10, 0, tzinfo=UTC)]
    table = pl.DataFrame({"t": moments, "y": [1, 0], "p": [0.6, 0.4]})
    found = calframe.report(table, time="t", time_zone="Europe/Paris", every="1d", **ROLES)
    assert [period["label"] for period in found.to_dict()["periods"]] == ["2024-04-01"]
    page = found._page()
    assert not [path for spec in specs(page) for path, value in walk(spec) if value in {"temporal", "time"}]
    document = Document(render_page(page))
    assert "2024-04-01" in document.text
    assert "2024-03-31" not in document.text
    assert "Days are those of Europe/Paris." in document.text


def test_numbers_in_the_page_are_finite() -> None:
    for spec in specs(calframe.report(pl.DataFrame({"y": [1, 0], "p": [0.0, 1.0]}), **ROLES)._page()):
        assert all(math.isfinite(value) for _, value in walk(spec) if isinstance(value, float))


def test_table_of_gaps_begins_with_what_a_phone_shows() -> None:
    table = figures.forest_figure(findings(one := grouping("area", WEST, FINE)), one, number=0).table
    assert table.columns[:4] == ("area", "gap", "verdict", "rows")
    assert [row[:4] for row in table.rows] == [
        ("West", "+7.7 pp", "▲ Over-predicts", "3,566"),
        ("Fine", "+0.3 pp", "● Within tolerance", "10,000"),
    ]


def test_long_table_of_periods_keeps_the_latest() -> None:
    when = course(*((f"day {i}", 0.0, "in") for i in range(1, 613)))
    figure = figures.course_figure(findings(course=when), when)
    table = figure.table
    assert table.rows[0] == ("… 112 earlier rows", "", "", "", "", "")
    assert [row[0] for row in table.rows[1:]] == [f"day {i}" for i in range(113, 613)]
    assert table.csv.splitlines()[1:3] == ["… 112 earlier rows,,,,,", 'day 113,"1,000",30.0%,30.0%,0.0 pp,-2.0 to +2.0']
    assert figure.note == (
        "552 earlier periods are not drawn; the numbers behind this chart on screen are those of the latest 500 of all "
        "612, and the report's data holds all of them."
    )


def test_long_table_of_segments_keeps_the_worst() -> None:
    one = grouping("area", *(numbers(name=f"s{i}") for i in range(1, 502)))
    rows = figures.forest_figure(findings(one), one, number=0).table.rows
    assert [row[0] for row in rows] == [*(f"s{i}" for i in range(1, 501)), "… 1 more row"]
