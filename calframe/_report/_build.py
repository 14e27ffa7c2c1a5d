"""From findings to a page: the words and the charts for them."""

from __future__ import annotations

from calframe._report import _figures as figures
from calframe._report import _method as how
from calframe._report import _sentences as sentences
from calframe._report._actions import actions
from calframe._report._findings import Findings
from calframe._report._page import Page, Section
from calframe._report._result import result
from calframe._segments import Grouping
from calframe._version import __version__
from calframe._words._numbers import percent, plural, rows, short
from calframe._words._numbers import tolerance as tolerance_text


def page(findings: Findings, *, call: str) -> Page:
    """Return the page: headline, tiles, what to do, sections, method."""
    return Page(
        title=findings.title,
        meta=_meta(findings),
        headline=sentences.headline(findings),
        tiles=sentences.tiles(findings),
        actions=actions(findings),
        sections=_sections(findings),
        method=how.method(findings),
        call=call,
        provenance=how.provenance(findings),
        version=__version__,
        result=result(findings),
    )


def _sections(findings: Findings) -> tuple[Section, ...]:
    where = [
        figure(findings, one, number=i)
        for i, one in enumerate(findings.groupings)
        for figure in (figures.forest_figure, *([figures.heat_figure] if _has_heat(one) else []))
    ]
    sure = [
        figures.reliability_figure(findings),
        *(
            figures.panels_figure(findings, one, number=i)
            for i, one in enumerate(findings.groupings)
            if one.segments.height > 1  # a panel of all rows stands above already
        ),
    ]
    time = [figures.course_figure(findings, findings.course)] if findings.course is not None else []
    named = (
        ("where", "Where the scores are off", "Where", where),
        ("sure", "How sure is that", "How sure", sure),
        ("time", "Over time", "Over time", time),
    )
    return tuple(
        Section(id=id_, name=name, link=link, figures=tuple(found)) for id_, name, link, found in named if found
    )


def _has_heat(grouping: Grouping) -> bool:
    """Tell whether a heatmap says something: of a single segment the curve does, and without numbers it is empty."""
    return grouping.segments.height > 1 and bool(grouping.heat["shown"].any())


def _meta(findings: Findings) -> str:
    parts = [f"{rows(findings.counts['used'])} used"]
    missing = findings.counts["missing"]
    if missing:
        parts.append(f"{rows(missing)} with something missing ({percent(missing / findings.counts['rows'])})")
    parts += [f"{plural(one.segments.height, 'segment')} of {short(one.column)}" for one in findings.groupings]
    if findings.course is not None:
        labels = findings.course.table["label"]
        parts.append(f"{labels[0]} to {labels[-1]}" if len(labels) > 1 else str(labels[0]))
    roles = findings.roles
    parts.append(f"score column {short(roles.scores[0])}, label column {short(roles.label)}")
    if roles.weight is not None:
        parts.append(f"weighted by {short(roles.weight)}")
    if roles.cluster is not None:
        parts.append(f"clusters of {short(roles.cluster)}")
    parts.append(f"tolerance {tolerance_text(findings.tolerance)}")
    return " · ".join(parts)
