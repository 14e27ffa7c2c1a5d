"""What a reader with a browser, a phone, a keyboard or no script gets."""

from __future__ import annotations

import pytest

from tests.browser.conftest import LONG, luminance

pytestmark = pytest.mark.browser

MARKS = "[role=graphics-symbol][aria-label]:not(g)"
COLOURS = """() => ['body', 'h1', '.card', '#verdict h2'].map(s => {
    const style = getComputedStyle(document.querySelector(s));
    return [style.backgroundColor, style.color];
})"""
SHOWN = """() => [...document.querySelectorAll('figure')]
    .map(f => [...f.querySelectorAll('svg')].filter(s => s.checkVisibility()).length)"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach(d => { d.open = true; })"
# Text that sticks out of the box around it, wherever that box neither scrolls by itself nor is a drawing.
SPILLING = """() => [...document.querySelectorAll('header *, main *, footer')]
    .filter(e => !e.matches(':has(> .plot)') && !e.closest('.scroll, .skip, .plot, caption'))
    .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.tagName + ': ' + e.textContent.slice(0, 40))"""
# Tables that scroll sideways though no name in them is very long.
TOO_WIDE = """long => [...document.querySelectorAll('.scroll')]
    .filter(s => s.scrollWidth > s.clientWidth && !s.textContent.includes(long))
    .map(s => s.closest('figure').id)"""
SCALES = """() => [...document.querySelectorAll('.narrow svg')]
    .map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)"""
LEFTMOST = """marks => {
    const left = mark => mark.getBoundingClientRect().left;
    const mark = marks.reduce((best, next) => left(next) < left(best) ? next : best);
    mark.scrollIntoView({ block: 'center' });
    const box = mark.getBoundingClientRect();
    return [box.left, (box.top + box.bottom) / 2, mark.getAttribute('aria-label')];
}"""
INJECT = """() => {
    const script = document.createElement('script');
    script.textContent = 'window.injected = true';
    document.body.append(script);
    return Boolean(window.injected);
}"""


def test_page_opens_offline_and_asks_for_nothing(visit):
    seen = visit()
    seen.page.evaluate(OPEN_ALL)
    seen.page.mouse.wheel(0, 3000)
    assert seen.errors == []
    assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []


def test_page_may_reach_nothing_even_if_it_tried(visit):
    seen = visit()
    fetched = "() => fetch('https://example.invalid/').then(() => 'reached', () => 'refused')"
    assert seen.page.evaluate(fetched) == "refused"
    assert seen.page.evaluate(INJECT) is False
    assert all(any(directive in error for error in seen.errors) for directive in ("connect-src", "script-src"))


@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_page_never_scrolls_sideways(visit, width):
    seen = visit(width=width)
    seen.page.evaluate(OPEN_ALL)
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.page.evaluate(SPILLING) == []


def test_tables_fit_a_wide_page(visit):
    page = visit().page
    page.evaluate(OPEN_ALL)
    assert page.locator(".scroll").count() == page.locator("figure").count()
    assert page.evaluate(TOO_WIDE, LONG) == []


@pytest.mark.parametrize(("width", "shown"), [(1280, ".wide"), (390, ".narrow")])
def test_each_figure_shows_the_drawing_made_for_the_width(visit, width, shown):
    page = visit(width=width).page
    hidden = {".wide": ".narrow", ".narrow": ".wide"}[shown]
    assert set(page.evaluate(SHOWN)) <= {1}
    assert page.locator(f"{hidden} svg:visible").count() == 0
    assert page.locator(f"{shown} svg:visible").count() == page.locator("figure").count()


def test_text_of_a_phone_drawing_is_not_shrunk(visit):
    assert all(0.95 <= scale <= 1.3 for scale in visit(width=390).page.evaluate(SCALES))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_follows_the_theme_of_the_system(visit, scheme):
    for ground, ink in visit(color_scheme=scheme).page.evaluate(COLOURS):
        paint = luminance(ink)
        assert paint < 0.05 if scheme == "light" else paint > 0.7
        if ground != "rgba(0, 0, 0, 0)":
            assert luminance(ground) > 0.9 if scheme == "light" else luminance(ground) < 0.02


def test_theme_button_goes_from_auto_to_dark_to_light_and_back(visit):
    page = visit(color_scheme="light").page
    button = page.locator("#theme")
    steps = []
    for _ in range(4):
        steps.append((button.inner_text(), luminance(page.evaluate(COLOURS)[0][0]) < 0.02))
        button.click()
    assert steps == [("Theme: auto", False), ("Theme: dark", True), ("Theme: light", False), ("Theme: auto", False)]


def test_light_can_be_chosen_on_a_dark_system(visit):
    page = visit(color_scheme="dark").page
    page.locator("#theme").click()
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text() == "Theme: light"
    assert luminance(page.evaluate(COLOURS)[0][0]) > 0.9


def test_arrow_keys_read_the_marks_and_escape_closes(visit):
    page = visit().page
    tip = page.locator("#tip")
    for drawing in page.locator(".plot svg:visible").all():
        labels = drawing.locator(MARKS).evaluate_all("marks => marks.map(m => m.getAttribute('aria-label'))")
        page.keyboard.press("Tab")
        drawing.focus()
        assert tip.inner_text() == "Arrow keys read the marks, Esc closes."
        for key, expected in (
            ("ArrowRight", labels[0]),
            ("ArrowDown", labels[1 % len(labels)]),
            ("ArrowLeft", labels[0]),
            ("ArrowUp", labels[-1]),
        ):
            page.keyboard.press(key)
            assert tip.text_content() == expected
        assert drawing.locator(".on").count() == 1
        page.keyboard.press("Escape")
        assert "on" not in (tip.get_attribute("class") or "")
        assert drawing.locator(".on").count() == 0


def test_pointer_reads_the_mark_it_is_near_to_and_the_words_stay_on_the_screen(visit):
    page = visit(width=390, height=700, reduced_motion="reduce").page
    for drawing in page.locator(".plot svg:visible").all():
        left, middle, label = drawing.locator(MARKS).evaluate_all(LEFTMOST)
        page.mouse.move(left - 4, middle)
        tip = page.locator("#tip")
        assert tip.text_content() == label
        around = tip.bounding_box()
        assert around["x"] >= 0
        assert around["x"] + around["width"] <= 390
        page.mouse.move(1, 1)
        assert "on" not in (tip.get_attribute("class") or "")


def test_first_stop_of_the_keyboard_skips_to_the_verdict(visit):
    page = visit().page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#verdict"


def test_focus_is_seen_on_everything_that_takes_it(visit):
    page = visit().page
    stops = page.locator("a:visible, button:visible, summary:visible, svg[tabindex]:visible").count()
    unseen = []
    for _ in range(stops):
        page.keyboard.press("Tab")
        style = page.evaluate(
            "(() => { const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]; })()"
        )
        if style != ["solid", "3px"]:
            unseen.append(page.evaluate("document.activeElement.outerHTML.slice(0, 80)"))
    assert stops > 4
    assert unseen == []


def test_without_script_every_chart_and_number_is_there(visit):
    page = visit(java_script_enabled=False).page
    figures = page.locator("figure").count()
    assert page.locator("figure .wide svg:visible").count() == figures
    assert page.locator("details").count() == figures
    assert page.locator(".tools:visible").count() == 0
    assert page.locator("#verdict h2").is_visible()


def test_download_gives_the_table_of_the_figure(visit):
    page = visit(accept_downloads=True).page
    page.evaluate(OPEN_ALL)
    for link in page.locator("a[download]").all():
        with page.expect_download() as started:
            link.click()
        assert started.value.suggested_filename == link.get_attribute("download")
        assert started.value.path().read_text(encoding="utf-8").count("\n") >= 1


def test_names_are_shown_and_never_run(visit):
    seen = visit()
    seen.page.evaluate(OPEN_ALL)
    seen.page.wait_for_timeout(100)
    assert seen.dialogs == []
    assert seen.errors == []
    assert seen.page.evaluate("document.images.length") == 0
    assert seen.page.evaluate("document.scripts.length") == 2
    assert "49" not in seen.page.locator("h1").inner_text()


def test_forced_colours_leave_the_charts_readable(visit):
    page = visit(forced_colors="active", color_scheme="dark").page
    fills = page.evaluate("() => [...document.querySelectorAll('.wide svg text')].map(t => getComputedStyle(t).fill)")
    assert all(luminance(fill) > 0.9 for fill in fills)


def test_reduced_motion_is_kept(visit):
    page = visit(reduced_motion="reduce").page
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert page.evaluate("getComputedStyle(document.getElementById('tip')).transitionDuration") == "0s"
