"""The verdict of a gate for programs: JSON, and what GitHub shows beside a run."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from calframe._cli._output import escaped
from calframe._gate._rules import Finding, Gate
from calframe._results import json_ready
from calframe._version import __version__

SCHEMA = "calframe.check/1"

_ANNOTATIONS = 10  # as many of a kind as GitHub shows of a step
_MARKDOWN_ROWS = 50  # of each rule
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}  # first the sign that escapes


def json_text(gate: Gate, *, options: Mapping[str, Any], rows: Mapping[str, Any]) -> str:
    """Write a gate as JSON.

    Parameters
    ----------
    gate
        What was found.
    options
        Level and modes, as they were given.
    rows
        What is to be said of the input.

    Returns
    -------
    str
        JSON without NaN or infinities, with a line break at its end. `gate.rules` are the checks that fail, of which
        the verdict of those beyond their limits is `over` or `under`, `gate.undecided` those that neither fail nor
        hold, `segments` everything; all worst first.
    """
    libraries = {name: version(name) for name in ("polars", "numpy")}
    data = {
        "schema": SCHEMA,
        "gate": {
            "tripped": gate.tripped,
            "rules": [_record(one) for one in gate.failing],
            "undecided": [_record(one) for one in gate.undecided],
            **options,
        },
        "segments": _segments(gate),
        "versions": {"calframe": __version__, **libraries, "python": platform.python_version()},
        "input": dict(rows),
    }
    return json.dumps(json_ready(data), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _record(one: Finding) -> dict[str, Any]:
    period = {} if one.period is None else {"period": one.period}
    ends = None if one.low is None else [one.low, one.high]
    found = {"observed": one.observed, "interval": ends, "limit": one.rule.limit, "verdict": one.verdict}
    return {"rule": one.rule.name, "segment": one.segment, **period, **found, "n": one.n, "n_missing": one.n_missing}


def _segments(gate: Gate) -> list[dict[str, Any]]:
    """Return each segment once, in the order of the worst that was found there."""
    segments: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    for one in gate.findings:
        about = {"segment": one.segment, "column": one.column, "value": one.value}
        found = segments.setdefault((one.column, one.value), {**about, "findings": []})
        found["findings"].append({name: value for name, value in _record(one).items() if name != "segment"})
    return list(segments.values())


def annotation_lines(gate: Gate) -> Iterator[str]:
    """Return lines that GitHub shows beside a run: an error for each check that fails, a warning for what is undecided.

    Parameters
    ----------
    gate
        What was found.

    Yields
    ------
    str
        Lines without line breaks.
    """
    from calframe._cli._check_view import described, verdict_lines  # noqa: PLC0415  rich is for tables, not for --help

    for one in gate.failing[:_ANNOTATIONS]:
        yield f"::error title={_escaped(one.rule.name)}::{_escaped(described(one))}"
    if gate.undecided:
        yield f"::warning title=undecided::{_escaped(verdict_lines(gate)[-1])}"


def append_summary(gate: Gate, *, alpha: float) -> None:
    """Append a gate as Markdown to the summary of a step, where GitHub says where that is.

    Parameters
    ----------
    gate
        What was found.
    alpha
        Chance of any false alarm of a rule.
    """
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(_markdown(gate, alpha=alpha))


def _markdown(gate: Gate, *, alpha: float) -> str:
    from calframe._cli._check_view import cells_of, leanings, meaning, verdict_lines  # noqa: PLC0415  as above

    parts = ["### calframe check", *map(escaped, verdict_lines(gate))]
    for rule, found in gate.by_rule():
        head = "| segment | value | interval | rows | verdict |\n| --- | ---: | ---: | ---: | --- |\n"
        rows = [f"| {' | '.join(map(escaped, cells))} |\n" for cells in cells_of(found[:_MARKDOWN_ROWS])]
        more = len(found) - len(rows)
        parts.append(escaped(meaning(rule, alpha)))
        said = [f"\nand {more:,} more\n"] if more else []
        said += [f"\n{escaped(line)}\n" for line in leanings(found, alpha)]
        parts.append(head + "".join([*rows, *said]))
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    """Return text that ends neither a line nor a message: see GitHub's workflow commands."""
    for sign, code in _ESCAPES.items():
        text = text.replace(sign, code)
    return text.replace("##[", "## [")
