"""What the titles of figures claim is true for their numbers, on tables of every kind."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest

from calframe._report import _titles
from calframe._report._findings import Findings
from calframe._report._result import result
from calframe._words._numbers import percent
from tests._claims import NUMBER, high, is_size, named, verdict
from tests._report_cases import TABLES, found_in


@pytest.fixture(params=TABLES, ids=str)
def found(request: pytest.FixtureRequest) -> Findings:
    return found_in(request.param)


@pytest.fixture
def numbers(found: Findings) -> dict[str, Any]:
    return result(found)


def test_forest_title_is_true(found: Findings, numbers: dict[str, Any]) -> None:
    for one in found.groupings:
        rows = [row for row in numbers["segments"] if row["column"] == one.column]
        kinds = [verdict(row, tolerance=numbers["tolerance"], alpha=numbers["alpha"]) for row in rows]
        clear = [row for row, kind in zip(rows, kinds, strict=True) if kind in {"over", "under"}]
        title = _titles.forest_title(one)
        if most := re.match(r"(\d+) of (\d+) segments have a clear gap; of these (.+) misstates the most", title):
            assert (int(most[1]), int(most[2])) == (len(clear), len(rows))
            largest = max(abs(row["net"]) for row in clear)
            assert named(most[3], numbers) in clear
            assert abs(named(most[3], numbers)["net"]) == pytest.approx(largest, rel=1e-12)
        elif alone := re.match(r"(.+) is the one segment with a clear gap: ", title):
            assert clear == [named(alone[1], numbers)]
        elif title.startswith("Every segment"):
            assert set(kinds) == {"within"}
        else:
            assert not clear
            if title == f"No segment of {one.column} has a clear gap, and none can be cleared yet":
                assert "within" not in kinds
                continue
            counts = re.fullmatch(
                r"No segment of \w+ has a clear gap; "
                r"(\d+) of (\d+) within tolerance, the others? cannot be cleared yet",
                title,
            )
            assert counts, title
            assert (int(counts[1]), int(counts[2])) == (kinds.count("within"), len(rows))
            assert ("the other cannot" in title) is (len(rows) - kinds.count("within") == 1)


def test_heat_title_is_true(found: Findings) -> None:
    for one in found.groupings:
        title = _titles.heat_title(one, alpha=found.alpha)
        shown = one.heat.filter("shown")
        if widest := re.match(
            rf"(In bold cells )?\w+ (.+) is itself furthest off at scores of (.+): {NUMBER} pp too (\w+)", title
        ):
            assert one.segments["verdict"][0] in {"over", "under"}
            assert one.segments["segment"][0] == widest[2]
            mine = shown.filter(pl.col("segment") == widest[2])
            bold = mine.filter(pl.col("clear"))
            row = bold.row(int(bold["gap"].abs().arg_max() or 0), named=True)
            assert (row["range"], high(row["gap"])) == (widest[3], widest[5])
            assert is_size(widest[4], row["gap"])
            assert bool(widest[1]) is bool((mine["gap"].abs() > abs(row["gap"])).any())
        elif counted := re.match(
            rf"(\d+) of (\d+) cells? stands? out, where chance alone gives (?:(less than one)|about {NUMBER})", title
        ):
            assert (int(counted[1]), int(counted[2])) == (shown.filter("clear").height, shown.height)
            expected = found.alpha * shown.height
            assert expected < 1 if counted[3] else float(counted[4]) == pytest.approx(expected, abs=0.5)
            assert counted[4] != "0"
        else:
            assert shown.is_empty()


def test_panels_title_is_true(found: Findings) -> None:
    for one in found.groupings:
        drawn_names = one.segments["segment"].to_list()[:12]
        few = set(one.segments.filter(pl.col("verdict") == "few")["segment"])
        out: dict[str, int] = {}
        for row in one.curves.iter_rows(named=True):
            if row["segment"] in drawn_names and row["segment"] not in few:
                outside = not row["band_low"] <= row["rate"] <= row["band_high"]
                out[row["segment"]] = out.get(row["segment"], 0) + outside
        title = _titles.panels_title(one, drawn_names, alpha=found.alpha)
        if own := re.match(r"\w+ (.+) is outside its band in (\d+) of", title):
            assert out.pop(own[1]) == int(own[2])
        if counted := re.search(r"(\d+) (?:other )?segments? here: (\d+) of (\d+) bins? lies? outside", title):
            bins = one.curves.filter(pl.col("segment").is_in(list(out))).height
            assert [int(number) for number in counted.groups()] == [len(out), sum(out.values()), bins]


def test_curve_title_is_true(found: Findings) -> None:
    title = _titles.curve_title(found.curve, name="All rows together", alpha=found.alpha)
    outside = found.curve.filter(~pl.col("rate").is_between("band_low", "band_high"))
    if counted := re.match(r"All rows together: (\d+) of (\d+) bins? lies? outside the band", title):
        assert (int(counted[1]), int(counted[2])) == (outside.height, found.curve.height)
        assert outside.height > 0
        furthest = re.search(rf"is off by {NUMBER} pp at scores around (.+)$", title)
        assert furthest
        most = outside.row(int(outside["gap"].abs().arg_max() or 0), named=True)
        assert is_size(furthest[1], most["gap"])
        assert furthest[2] == percent(most["mean_score"])
    elif "right scores would put" in title:
        assert outside.is_empty()
        assert ("the one bin" in title) is (found.curve.height == 1)
        assert not found.curve.is_empty()
    else:
        assert title == "All rows together: there are none to draw a curve of"
        assert found.curve.is_empty()


def test_course_title_is_true(found: Findings, numbers: dict[str, Any]) -> None:
    if found.course is None:
        return
    zone = found.tolerance
    title = _titles.course_title(found.course, tolerance=zone)
    judged = [period for period in numbers["periods"] if period["verdict"] != "few"]
    clear = [one for one in judged if one["simultaneous_low"] > zone or one["simultaneous_high"] < -zone]
    assert title.startswith("Since") is (numbers["since"] is not None)
    if counted := re.match(
        r"(\d+) of (\d+) judged periods? (?:is|are) clearly off, (.+?) (?:the most )?with (.+?) pp", title
    ):
        assert (int(counted[1]), int(counted[2])) == (len(clear), len(judged))
        largest = max(clear, key=lambda period: abs(period["gap"]))
        assert counted[3] == largest["label"]
        assert float(counted[4].replace("−", "-")) == pytest.approx(100 * largest["gap"], abs=0.0500001)
    elif numbers["since"] is None:
        assert not clear
        inside = sum(-zone <= one["simultaneous_low"] <= one["simultaneous_high"] <= zone for one in judged)
        if not judged:
            assert re.match("The one|None of|There is no", title)
        elif inside == len(judged):
            assert title.endswith(f"within tolerance (±{100 * zone:g} pp)")
        else:
            counts = re.findall(r"(\d+) (within tolerance|leaning|undecided)", title)
            assert title.startswith("No judged period is clearly off: ")
            assert sum(int(count) for count, _ in counts) == len(judged)
            assert {what: int(count) for count, what in counts}.get("within tolerance", 0) == inside
