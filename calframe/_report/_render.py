"""The page and the notebook card as HTML: templates in, text out, nothing computed here."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from calframe._charts._theme import DARK, LIGHT, NARROW, WIDE
from calframe._report._escape import csv_link, script_json
from calframe._report._page import Page, TextTable
from calframe._report._svg import to_svg

_MARKER = "calframe-templates.txt"  # other packages may leave a folder called templates beside ours
_NUMBER_STARTS = frozenset("0123456789+-−<>±–·.")
_UID_LENGTH = 8  # hexadecimal digits: enough to tell the cards of one notebook apart


def render_page(page: Page) -> str:
    """Write the full report page as one HTML file that loads nothing and works without script.

    Parameters
    ----------
    page
        Everything the page says. Ids of sections and figures must be unique and hold no space.

    Returns
    -------
    str
        The document.

    Raises
    ------
    FileNotFoundError
        If the templates are neither in the installed package nor beside the source.
    RuntimeError
        If a chart cannot be drawn with the installed versions.
    """
    script = _asset("report.js")
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            page=page,
            policy=_policy(script),
            style=_asset("report.css"),
            script=script,
            light=_tokens(LIGHT),
            dark=_tokens(DARK),
        )
    )


def render_card(page: Page) -> str:
    """Write what a notebook cell shows: verdict, first chart, first actions; no script, one scoped style.

    Parameters
    ----------
    page
        Everything the full page would say.

    Returns
    -------
    str
        One ``<div>``.

    Raises
    ------
    FileNotFoundError
        If the templates are neither in the installed package nor beside the source.
    RuntimeError
        If the chart cannot be drawn with the installed versions.
    """
    first = next(iter(page.figures().values()), None)
    digest = hashlib.sha256(f"{page.title}{script_json(page.result)}".encode()).hexdigest()
    return (
        _environment()
        .get_template("card.html.j2")
        .render(
            page=page,
            figure=first,
            uid=f"calframe-{digest[:_UID_LENGTH]}",
            style=_asset("card.css"),
            light=_tokens(LIGHT),
            dark=_tokens(DARK),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,  # select_autoescape() does not know names that end in .html.j2
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"wide": WIDE, "narrow": NARROW}
    environment.filters |= {
        "svg": to_svg,
        "csv_link": csv_link,
        "script_json": script_json,
        "text_columns": _text_columns,
    }
    return environment


def _source(name: str) -> str | None:
    template = _templates().joinpath(name)
    return template.read_text(encoding="utf-8") if template.is_file() else None


@cache
def _asset(name: str) -> Markup:
    """Read CSS or script as it is: ours, and no template (``{#`` means something else in CSS)."""
    return Markup(_templates().joinpath(name).read_text(encoding="utf-8"))  # noqa: S704  no data in it


@cache
def _templates() -> Traversable:
    """Return the folder of the templates: in the package once installed, else beside the source."""
    places: tuple[Traversable, ...] = (files("calframe") / "_templates", Path(__file__).parents[2] / "templates")
    for place in places:
        if place.joinpath(_MARKER).is_file():
            return place
    message = (
        f"expected the report's templates in {' or '.join(map(str, places))}, found neither. "
        "Reinstall calframe from a wheel, or run it from a full checkout."
    )
    raise FileNotFoundError(message)


def _policy(script: str) -> str:
    """Let the page run this one script and reach nothing, even if a name got through as markup."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _tokens(palette: Mapping[str, str]) -> Markup:
    text = "".join(f"--cf-{name}:{colour};" for name, colour in palette.items())
    return Markup(text)  # noqa: S704  our own colours


def _text_columns(table: TextTable) -> frozenset[int]:
    """Return the positions of the columns that hold words, so that they are set flush left."""
    wordy = (
        sum(cell[:1] not in _NUMBER_STARTS for cell in cells) * 2 > len(cells)
        for cells in zip(*table.rows, strict=True)
    )
    return frozenset(position for position, is_text in enumerate(wordy) if is_text)
