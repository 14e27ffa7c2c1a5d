"""Pages opened in headless Chromium with no network; whatever goes wrong in them is written down."""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._report._page import Page
from calframe._report._render import render_page
from tests._page_example import SEGMENTS, empty_page, example_page

# CALFRAME_CHROMIUM: the browser to use, where it is not on the path under one of these names.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
LONG = "a_name_without_any_space_" * 3
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "{{7*7}} ${7*7}",
    "\"quotes\" 'both' `kinds` \\",
    "Île-de-France – 日本語 🙂",
    "</title></style><svg onload=alert(3)>" + LONG,
)


class Report(NamedTuple):
    """A page to check, and what to call it in the list of tests."""

    name: str
    html: str


def _table(n: int, *, segments: int, seed: int = 0) -> dict[str, Any]:
    """Draw rows of segments whose scores are right, but for the first, which is ten points too high."""
    rng = np.random.default_rng(seed)
    place = np.arange(n) % segments
    score = rng.beta(2.0, 4.0, n)
    chance = np.clip(score - np.where(place == 0, 0.1, 0.0), 0.0, 1.0)
    return {"y": (rng.random(n) < chance).astype(int), "p": score, "segment": [f"s{i}" for i in place]}


def _days(n: int) -> list[dt.date]:
    return [dt.date(2024, 1, 1) + dt.timedelta(days=i % 360) for i in range(n)]


def _made(columns: dict[str, Any], **roles: Any) -> str:
    return calframe.report(pl.DataFrame(columns), **{"label": "y", "score": "p", **roles}).to_html()


def _with_hostile_names() -> str:
    columns = _table(6000, segments=len(HOSTILE))
    columns = {
        "<b>y</b>": columns["y"],
        "p {{7*7}}": columns["p"],
        "</script><i>": [HOSTILE[int(name[1:])] for name in columns["segment"]],
        LONG: ['"a"', "'b'\n\\"] * 3000,
    }
    title = "</title><script>alert(4)</script>"
    roles = {"label": "<b>y</b>", "score": "p {{7*7}}", "by": ["</script><i>", LONG], "title": title}
    return calframe.report(pl.DataFrame(columns), **roles).to_html()


def _with_long_names() -> str:
    columns = _table(40_000, segments=40)
    long = [f"Department of Something Quite Long and Regional Affairs, Office no. {s[1:]}" for s in columns["segment"]]
    return _made({**columns, "segment": long}, by="segment")


def _rare() -> str:
    rng = np.random.default_rng(3)
    score = rng.beta(1.0, 400.0, 40_000)
    columns = {"y": (rng.random(40_000) < score).astype(int), "p": score, "segment": ["a", "b"] * 20_000}
    return _made(columns, by="segment", tolerance=0.001)


def _hostile() -> Page:
    """Build a page whose names try to get out of their place, and short: a figure would fit on its first sheet."""
    page = example_page(
        segments=HOSTILE, title="</title><script>alert(4)</script>", call="</pre><img src=x onerror=alert(5)>"
    )
    return replace(page, tiles=(), actions=page.actions[:1])


# Every check of this folder runs on every page named here; add a page by adding a line.
REPORTS: dict[str, Callable[[], str]] = {
    "example": lambda: render_page(example_page()),
    "empty": lambda: render_page(empty_page()),
    "long": lambda: render_page(example_page(segments=(LONG, *SEGMENTS[1:]), title=LONG, call=LONG * 2)),
    "hostile": lambda: render_page(_hostile()),
    "hostile names": _with_hostile_names,
    "one segment": lambda: _made(_table(2000, segments=1), by="segment"),
    "eight segments over time": lambda: _made(
        _table(16_000, segments=8) | {"day": _days(16_000)}, by="segment", time="day"
    ),
    "forty long names": _with_long_names,
    "weights": lambda: _made(_table(6000, segments=3) | {"w": [0.5, 1.0, 2.5] * 2000}, by="segment", weight="w"),
    "tiny probabilities": _rare,
    "no segments": lambda: _made(_table(3000, segments=1)),
    "all undecided": lambda: _made(_table(450, segments=3, seed=4), by="segment"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """An open page, and what it did that a page must not do."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@pytest.fixture(scope="session", params=list(REPORTS))
def report(request: pytest.FixtureRequest) -> Report:
    """Yield the name and the HTML of each page to check."""
    return Report(request.param, REPORTS[request.param]())


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Start one Chromium for all checks, or skip them and say what is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install calframe[browser])")
    path = os.environ.get("CALFRAME_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("needs Chromium on the path, or its place in CALFRAME_CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any, report: Report, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    """Open the page of the check; options are those of a browser context (colour scheme, script on or off)."""
    path = tmp_path / "report.html"
    path.write_text(report.html, encoding="utf-8")
    contexts = []

    def open_page(*, width: int = 1280, height: int = 900, **options: Any) -> Visit:
        context = chromium.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        contexts.append(context)
        seen = Visit(page=context.new_page())
        seen.page.on("console", lambda message: seen.errors.append(message.text))
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
        seen.page.goto(path.as_uri())
        return seen

    yield open_page
    for context in contexts:
        context.close()


def luminance(colour: str) -> float:
    """Return the relative luminance of ``rgb(r, g, b)``, 0 black to 1 white (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
