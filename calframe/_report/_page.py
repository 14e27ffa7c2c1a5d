"""What the page shows, typed: the templates read this and compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calframe._typing import Json, Tone

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The verdict card: a pill (symbol and word) and one sentence."""

    tone: Tone
    symbol: str
    word: str
    lead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One number under the verdict, with the small line that puts it in proportion."""

    name: str
    big: str
    small: str
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One line of "What to do": the imperative, then the evidence."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """The numbers behind a chart, as text, and the same as CSV."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    csv: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A finding as a sentence, how to read it, the chart for a width in pixels, its numbers, and names for paper."""

    id: str
    title: str
    sub: str
    draw: Callable[[int], alt.TopLevelMixin]
    table: TextTable
    note: str | None = None
    aside: tuple[tuple[str, str], ...] = ()
    paper: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, its short name in the section links, and its figures."""

    id: str
    name: str
    link: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything a report page holds."""

    title: str
    meta: str
    headline: Headline
    tiles: tuple[Tile, ...]
    actions: tuple[Action, ...]
    sections: tuple[Section, ...]
    method: tuple[tuple[str, str], ...]
    call: str
    provenance: str
    version: str
    result: Json

    def figures(self) -> dict[str, Any]:
        """Return every figure of the page by its id."""
        return {figure.id: figure for section in self.sections for figure in section.figures}
