"""The words of a report on tables of every kind: readable, and none that may not be used."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from calframe import audit
from calframe._report import _actions, _build, _captions, _method, _sentences, _titles
from calframe._report._findings import Findings
from calframe._report._result import result
from tests._findings import cell, findings, grouping
from tests._findings import numbers as segment
from tests._report_cases import TABLES, found_in


@pytest.fixture(params=TABLES, ids=str)
def found(request: pytest.FixtureRequest) -> Findings:
    return found_in(request.param)


@pytest.fixture
def numbers(found: Findings) -> dict[str, Any]:
    return result(found)


def texts(found: Findings) -> Iterator[str]:
    """Go through every sentence of a report, without its charts and tables."""
    head = _sentences.headline(found)
    yield from (head.lead, head.word)
    for tile in _sentences.tiles(found):
        yield from (tile.name, tile.big, tile.small)
    for action in _actions.actions(found):
        yield from (action.what, action.why)
    yield _titles.curve_title(found.curve, name="All rows together", alpha=found.alpha)
    yield _captions.curve_caption(found)
    yield from (text for pair in _captions.curve_aside(found) for text in pair)
    for one in found.groupings:
        yield _titles.forest_title(one)
        yield _titles.heat_title(one, alpha=found.alpha)
        yield _titles.panels_title(one, one.segments["segment"].to_list()[:12], alpha=found.alpha)
        yield from (_captions.forest_caption(found, one), _captions.heat_caption(one), _captions.panels_caption(one))
    if found.course is not None:
        yield from (
            _titles.course_title(found.course, tolerance=found.tolerance),
            _captions.course_caption(found, found.course),
        )
    yield from (text for pair in _method.method(found) for text in pair)


FORBIDDEN = re.compile(
    r"\b(unbiased|compliant|passed the audit|well[- ]calibrated|significant\w*|proves?|no bias found)\b", re.IGNORECASE
)
UNREADABLE = re.compile(r"\bnan\b|\bNone\b(?! of \d)|\binf(inity)?\b|[+−-]0(\.0+)?(?![\d.,])|(?<![\w–])-\d")


def test_words_are_those_that_may_be_used(found: Findings) -> None:
    for text in texts(found):
        assert not FORBIDDEN.search(text), text
        assert not UNREADABLE.search(text), text
        assert text.strip() == text
        assert "  " not in text


def test_singular_and_plural(found: Findings) -> None:
    wrong = re.compile(r"\b1 (rows|segments|bins|periods|cells|positives|looks|comparisons)\b(?! of)")
    for text in texts(found):
        assert not re.search(r"(?<![\d,.])" + wrong.pattern, text), text


def test_numbers_hold_no_nan(numbers: dict[str, Any]) -> None:
    def walk(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from walk(item)
        else:
            yield value

    assert all(math.isfinite(value) for value in walk(numbers) if isinstance(value, float))


PAGES = ["no score at all", "one row", "all ones", "forty segments, all undecided", *range(4)]


@pytest.mark.parametrize("case", PAGES, ids=str)
def test_a_page_is_made_of_every_table(case: str | int) -> None:
    page = _build.page(found_in(case), call="calframe.report(data)")
    for figure in page.figures().values():
        for text in (figure.title, figure.sub, figure.note or "", *(one for row in figure.table.rows for one in row)):
            assert not UNREADABLE.search(text.replace("–", "")), text
            assert not FORBIDDEN.search(text)


def test_a_heatmap_without_a_number_or_of_one_segment_is_left_out() -> None:
    shown, hidden = ([cell(name, "0–100%", 0.1, n=n) for name in ("West", "East")] for n in (50, 49))
    both = [segment("over", name=name, gap=0.1) for name in ("West", "East")]
    for segments, cells, there in ((both, shown, True), (both, hidden, False), (both[:1], shown[:1], False)):
        page = _build.page(findings(grouping("area", *segments, heat=cells)), call="")
        assert ("heat-0" in page.figures()) is there


def test_an_audit_says_what_its_marks_mean_and_what_it_does_not_draw() -> None:
    # 24 segments, of which the drawing holds the worst 4; 12 of them wide of the tolerance, 12 right on 5,000 rows
    names = [f"s{i:02d}" for i in range(24)]
    label = [int(i < (2500 if name < "s12" else 1500)) for name in names for i in range(5000)]
    rows = pl.DataFrame({"a": [name for name in names for _ in range(5000)], "y": label}).with_columns(p=0.5)
    found = audit(rows, label="y", score="p", by="a", ecce=False)
    caption = " ".join(found.plot(most=4).to_dict()["title"]["text"])
    assert "Thick line: 95% interval; thin line: the same, widened for 24 comparisons" in caption
    assert caption.endswith("20 more segments, 12 of them within tolerance, are in .table.")
    assert "reference group" in " ".join(
        audit(rows, label="y", score="p", by="a", ecce=False, reference="s00").plot().to_dict()["title"]["text"]
    )
