"""What comes out of the printer: light, A4, the verdict and the actions on the first sheet."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.conftest import luminance

pytestmark = pytest.mark.browser

A4 = (595, 842)  # points
SHEET_WIDTH = 703  # pixels between the side margins: (210 − 2 × 12) mm at 96 per inch
SHEET_HEIGHT = 1016  # pixels between the margins: (297 − 13 − 15) mm at 96 per inch
PRINT = {"prefer_css_page_size": True, "print_background": True}
HEIGHTS = "() => [...document.querySelectorAll('figure, #todo')].map(e => [e.id, e.getBoundingClientRect().height])"


@pytest.fixture
def sheets(visit, tmp_path: Path) -> Path:
    """Print the page, as read on a dark system, to a PDF file."""
    path = tmp_path / "report.pdf"
    visit(color_scheme="dark").page.pdf(path=path, **PRINT)
    return path


def poppler(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"needs {tool} (poppler) to read the PDF")
    return found


def text_of(path: Path, *, page: int) -> str:
    command = [poppler("pdftotext"), "-f", str(page), "-l", str(page), str(path), "-"]
    return " ".join(
        subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8").stdout.split()
    )


def test_sheets_are_a4(sheets):
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", sheets.read_bytes())
    assert boxes
    assert {(round(float(width)), round(float(height))) for width, height in boxes} == {A4}


def test_first_sheet_holds_the_verdict_and_all_actions_and_no_figure(sheets, visit):
    page = visit().page
    lead, actions = (page.locator(where).all_inner_texts() for where in ("#verdict h2", "#todo li b"))
    findings = page.locator("h3[id]").all_inner_texts()
    first = text_of(sheets, page=1).replace(" ", "")  # long names are cut into lines
    assert [text for text in lead + actions if "".join(text.split()) not in first] == []
    assert [text for text in findings if "".join(text.split()) in first] == []


def test_dark_page_prints_light(sheets):
    command = [poppler("pdftoppm"), "-r", "20", "-f", "1", "-l", "1", "-gray", str(sheets)]
    picture = subprocess.run(command, check=True, capture_output=True).stdout
    pixels = picture.split(b"\n255\n", 1)[1]
    assert sum(pixels) / len(pixels) > 225  # of 255: black on white, with some grey


def test_printed_colours_are_light_whatever_was_chosen(visit):
    page = visit(color_scheme="dark").page
    page.locator("#theme").click()
    page.emulate_media(media="print", color_scheme="dark")
    ground, ink = page.evaluate(
        "(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; })()"
    )
    assert luminance(ground) == 1
    assert luminance(ink) < 0.05


def test_every_figure_fits_on_a_sheet_so_none_is_cut(visit):
    page = visit(width=SHEET_WIDTH, height=SHEET_HEIGHT).page
    page.emulate_media(media="print")
    heights = dict(page.evaluate(HEIGHTS))
    assert {name for name, height in heights.items() if height > SHEET_HEIGHT} == set()
    assert set(page.locator("figure").evaluate_all("figures => figures.map(f => getComputedStyle(f).breakInside)")) <= {
        "avoid"
    }
    bottom = page.evaluate(
        "Math.max(...[...document.querySelectorAll('#verdict, #todo')].map(e => e.getBoundingClientRect().bottom))"
    )
    assert bottom <= SHEET_HEIGHT


def test_print_shows_the_wide_drawing_and_only_open_tables(visit):
    page = visit(width=SHEET_WIDTH).page
    if page.locator("details").count():
        page.locator("summary").first.click()
    page.emulate_media(media="print")
    assert page.locator(".narrow svg:visible").count() == 0
    assert page.locator(".wide svg:visible").count() == page.locator("figure").count()
    assert page.locator("table:visible").count() == min(1, page.locator("details").count())
    assert page.locator("summary:visible, .bar:visible, .skip:visible, #tip:visible").count() == 0


def test_whole_names_are_on_paper_only(visit, report):
    page = visit().page
    assert page.locator(".paper:visible").count() == 0
    page.emulate_media(media="print")
    names = page.locator(".paper li:visible").all_inner_texts()
    if report.name == "forty long names":
        assert len(names) == 36  # as many as the chart draws
        assert "Department of Something Quite Long and Regional Affairs, Office no. 0" in names
    if report.name == "eight segments over time":  # s0 to s7 are cut nowhere
        assert names == []


def test_lines_to_sign_are_on_paper_only(visit):
    page = visit().page
    assert not page.locator(".sign").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".sign span:visible").all_inner_texts() == ["Checked by", "Date"]
