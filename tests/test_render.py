"""The page and the card, by parsing what they are made of."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from calframe._charts._theme import DARK, LIGHT
from calframe._report import _render
from calframe._report._escape import finite
from calframe._report._page import Page
from calframe._report._render import render_card, render_page
from calframe._report._svg import to_svg
from tests._markup import Document
from tests._page_example import SEGMENTS, empty_page, example_page, small_chart

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "{{7*7}} ${7*7} {% raw %}",
    "\"quotes\" 'both' `kinds` \\",
    "Île-de-France – 日本語 🙂",
    "</style></title><svg onload=alert(3)>" + "x" * 60,
)
PAGES = {
    "example": example_page(),
    "empty": empty_page(),
    "hostile": example_page(
        segments=HOSTILE, title="</title><script>alert(4)</script>", call="</pre><script>alert(5)</script>"
    ),
}


@pytest.fixture(scope="module", params=sorted(PAGES))
def page(request: pytest.FixtureRequest) -> Page:
    return PAGES[request.param]


@pytest.fixture(scope="module")
def html(page: Page) -> str:
    return render_page(page)


@pytest.fixture(scope="module")
def document(html: str) -> Document:
    return Document(html)


# The page


def test_page_closes_every_element(document):
    assert document.open == []


def test_ids_are_unique(document):
    ids = document.values("id")
    assert len(ids) == len(set(ids))


def test_every_reference_inside_the_page_has_its_target(document):
    ids = set(document.values("id"))
    wanted = {name for names in document.values("aria-labelledby") for name in names.split()}
    wanted |= {link[1:] for link in document.values("href") if link.startswith("#")}
    wanted |= {
        name
        for _, attributes in document.elements
        for value in attributes.values()
        for name in re.findall(r"url\(#([^)]+)\)", value)
    }
    assert wanted <= ids


def test_headings_start_at_one_and_skip_no_level(document):
    levels = [int(tag[1]) for tag, _ in document.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_page_names_no_address_outside_itself(html, document):
    assert "http" not in html.replace("http-equiv", "")
    assert all(link.startswith(("#", "data:")) for link in document.values("href"))
    assert document.values("src") == []


def test_no_element_of_the_page_has_an_event_handler(document):
    assert [name for _, attributes in document.elements for name in attributes if name.startswith("on")] == []


def test_policy_allows_the_one_script_there_is(document):
    policy = next(
        attributes["content"]
        for tag, attributes in document.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    code = [text for attributes, text in document.scripts if "type" not in attributes]
    digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
    assert len(code) == 1
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy


def test_result_is_in_the_page_as_json(page, document):
    islands = [text for attributes, text in document.scripts if attributes.get("id") == "calframe-result"]
    assert json.loads(islands[0]) == finite(page.result)


def test_page_holds_everything_that_was_said(page, document):
    said = [page.title, page.meta, page.headline.word, page.headline.lead, page.call, page.provenance]
    said += [text for tile in page.tiles for text in (tile.name, tile.big, tile.small)]
    said += [text for action in page.actions for text in (action.what, action.why)]
    said += [text for pair in page.method for text in pair]
    said += [section.name for section in page.sections] + [section.link for section in page.sections]
    for figure in page.figures().values():
        said += [figure.title, figure.sub, figure.note or "", *(text for pair in figure.aside for text in pair)]
        said += [*figure.table.columns, *(cell for row in figure.table.rows for cell in row)]
    assert [text for text in said if " ".join(text.split()) not in document.text] == []


def test_figures_carry_two_drawings_labelled_with_the_finding(page, document):
    drawings = [attributes for tag, attributes in document.elements if tag == "svg"]
    titles = [figure.title for figure in page.figures().values() for _ in ("wide", "narrow")]
    assert [drawing["aria-label"] for drawing in drawings] == titles
    assert all((drawing["role"], drawing["tabindex"]) == ("graphics-document", "0") for drawing in drawings)


def test_csv_is_a_download_inside_the_page(page, document):
    links = [attributes for tag, attributes in document.elements if tag == "a" and "download" in attributes]
    files = {link["download"]: unquote(link["href"].removeprefix("data:text/csv;charset=utf-8,")) for link in links}
    assert files == {f"{figure.id}.csv": figure.table.csv for figure in page.figures().values()}


def test_parts_come_in_the_order_of_reading():
    document = Document(render_page(example_page()))
    sections = [attributes["id"] for tag, attributes in document.elements if tag == "section"]
    assert sections == ["verdict", "todo", "where", "time", "method", "reproduce"]


def test_verdict_is_one_card_with_pill_sentence_and_tiles():
    html = _render._environment().get_template("parts/verdict.html.j2").render(page=example_page())
    assert "\n".join(line.strip() for line in html.splitlines()[:8]) == (
        '<section id="verdict" class="card over" aria-labelledby="h-verdict">\n'
        '<p class="pill"><span aria-hidden="true">▲</span> Action needed</p>\n'
        '<h2 id="h-verdict">On average the scores are within tolerance, but West is overstated by '
        "8 percentage points, and since May 2026 scores overall have run 5 percentage points high.</h2>\n"
        "<dl>\n"
        '<div class="ok">\n'
        "<dt>Overall gap, said − happened</dt>\n"
        '<dd class="big">+1.2 pp</dd>\n'
        '<dd class="small">95% CI +0.7 to +1.7; inside the ±3 pp tolerance</dd>'
    )


def test_page_without_actions_has_no_link_to_them():
    assert "#todo" not in Document(render_page(empty_page())).values("href")


def test_words_in_a_table_stand_left_and_numbers_right():
    html = render_page(example_page())
    assert '<td class="l">▲ Over-predicts</td>' in html
    assert '<th scope="col" class="l">verdict</th>' in html
    assert "<td>+7.7 pp</td>" in html


def test_same_page_gives_the_same_bytes_whatever_was_drawn_before():
    first = render_page(example_page())
    to_svg(small_chart(clip=True), uid="between", label="")
    assert render_page(example_page()) == first


def test_both_themes_are_in_the_page_and_dark_is_for_screens_only():
    html = render_page(empty_page())
    light, dark = (f"--cf-ink:{palette['ink']};" for palette in (LIGHT, DARK))
    assert html.index(light) < html.index(dark)
    assert all("@media screen" in line for line in html.splitlines() if dark in line)


# The card


def test_card_is_one_closed_element_without_script(page):
    document = Document(render_card(page))
    tags = [tag for tag, _ in document.elements]
    assert document.open == []
    assert "script" not in tags
    assert tags[0] == "div"
    assert document.elements[0][1]["class"] == f"calframe-card {page.headline.tone}"
    assert [name for _, attributes in document.elements for name in attributes if name.startswith("on")] == []


def test_card_styles_nothing_but_itself():
    css = re.search(r"<style>(.*)</style>", render_card(example_page()), re.DOTALL)
    selectors = [rule.split("{")[0].strip() for rule in css[1].split("}") if rule.strip()]
    assert [selector for selector in selectors if ".calframe-card" not in selector] == []


def test_card_holds_the_first_chart_and_three_actions():
    page = example_page()
    document = Document(render_card(page))
    assert [attributes["aria-label"] for tag, attributes in document.elements if tag == "svg"] == [
        page.sections[0].figures[0].title
    ]
    assert [action.what in document.text for action in page.actions] == [True, True, True, False]
    assert 'report.save("report.html")' in document.text


def test_cards_of_two_reports_share_no_id():
    first, second = (set(Document(render_card(example_page(title=title))).values("id")) for title in ("a", "b"))
    assert first
    assert not first & second


@pytest.mark.parametrize(
    "selector",
    ["[data-jp-theme-light=false]", ".vscode-dark", ".vscode-high-contrast", ".dark", "[data-theme=dark]"],
)
def test_card_turns_dark_where_notebooks_say_so(selector):
    rule = next(line for line in render_card(empty_page()).splitlines() if DARK["ink"] in line)
    assert selector in rule


# Templates


@pytest.fixture
def _fresh_loader():
    caches = (_render._templates, _render._asset, _render._environment)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("_fresh_loader")
def test_templates_are_read_from_a_zipped_wheel(tmp_path, monkeypatch):
    archive = tmp_path / "calframe.zip"
    source = _render._templates()
    with zipfile.ZipFile(archive, "w") as bundle:
        for path in Path(str(source)).rglob("*.*"):
            bundle.write(path, f"calframe/_templates/{path.relative_to(str(source))}")
    expected = render_page(example_page())
    for cached in (_render._templates, _render._asset, _render._environment):
        cached.cache_clear()
    monkeypatch.setattr(_render, "files", lambda package: zipfile.Path(archive) / package)
    assert render_page(example_page()) == expected
    assert str(_render._templates()).startswith(str(archive))


@pytest.mark.usefixtures("_fresh_loader")
def test_a_folder_of_templates_without_our_marker_is_not_ours(tmp_path, monkeypatch):
    (tmp_path / "templates").mkdir()
    monkeypatch.setattr(_render, "files", lambda _: tmp_path)
    monkeypatch.setattr(_render, "__file__", str(tmp_path / "calframe" / "_report" / "_render.py"))
    with pytest.raises(
        FileNotFoundError, match=r"expected the report's templates in .*found neither\. Reinstall calframe"
    ):
        render_page(empty_page())


def template_files() -> list[Path]:
    return [path for path in Path(str(_render._templates())).rglob("*.*") if path.is_file()]


def test_templates_name_no_column_of_the_user():
    # "region" and "month" are names a user's column may have; the page speaks of segments and periods.
    named = [
        path.name
        for path in template_files()
        if re.search("region|month", path.read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    assert named == []


@pytest.mark.parametrize(("name", "limit"), [("report.css", 10_400), ("report.js", 4_000), ("card.css", 2_000)])
def test_style_and_behaviour_stay_small(name, limit):
    assert len(_render._asset(name).encode()) < limit


def test_script_cannot_end_its_own_element():
    script = _render._asset("report.js")
    assert "</script" not in script
    assert "<!--" not in script


def test_segment_names_of_the_example_reach_the_marks():
    labels = Document(render_page(example_page())).values("aria-label")
    assert all(any(label.startswith(f"{name}: gap") for label in labels) for name in SEGMENTS)
