"""Every independent reference value that no call of its own is stated for: reproduced here, or named with the reason.

The script beside the values compares those for which the interface names a call; a table of lines says of the others
which arguments reproduce them, what the peer does otherwise, or which verb they come with. Values of maps (ids that
begin with "cal|") are of the verbs that fit and apply them.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests._reference_cases import Entry, Line, checker, entries
from tests._reference_lines import LINES

VERDICTS = {"checked", "reproduced", "not offered", "test", "compare", "drift"}


def params(*verdicts: str) -> list[pytest.param]:
    chosen = [(place, line) for place, line in enumerate(LINES) if not verdicts or line.verdict in verdicts]
    return [pytest.param(line, id=f"{place}-{line.kind}-{line.source or 'any'}") for place, line in chosen]


@cache
def covered(folder: Path) -> dict[int, list[Entry]]:
    """Return the values under each line."""
    found = defaultdict(list)
    for entry in entries(folder):
        for place, line in enumerate(LINES):
            if line.covers(entry):
                found[place].append(entry)
    return found


def values(folder: Path, line: Line) -> list[Entry]:
    """Return the values under a line, without those where the peer failed."""
    under = covered(folder)[LINES.index(line)]
    return [entry for entry in under if not entry.get("error") and entry["value"] is not None]


def test_every_value_falls_under_one_line(reference_folder: Path) -> None:
    lines = {entry["id"]: [line for line in LINES if line.covers(entry)] for entry in entries(reference_folder)}
    assert [name for name, under in lines.items() if len(under) != 1] == []
    assert len(lines) > 5900


@pytest.mark.parametrize("line", params())
def test_every_line_covers_a_value(reference_folder: Path, line: Line) -> None:
    under = values(reference_folder, line)
    assert under
    if line.unless:  # and what it excepts is there, but not all there is
        excepted = [line.unless(line.case(entry, reference_folder)) for entry in under]
        assert any(excepted)
        assert not all(excepted)


@pytest.mark.parametrize("line", params())
def test_every_line_says_why(line: Line) -> None:
    assert line.verdict in VERDICTS
    assert bool(line.why) == (line.verdict == "not offered" or line.unless is not None)


@pytest.mark.parametrize("line", params("reproduced"))
def test_reproduced_values(reference_folder: Path, line: Line) -> None:
    wrong = []
    for entry in values(reference_folder, line):
        case = line.case(entry, reference_folder)
        if not (line.unless and line.unless(case)) and not line.agrees(case):
            wrong.append((entry["id"], line.expected(entry), line.got(case)))
    assert wrong == []


@pytest.mark.filterwarnings("ignore")  # the script meets infinite losses
@pytest.mark.parametrize("line", params("checked"))
def test_checked_values_have_a_call(reference_folder: Path, line: Line) -> None:
    script = checker(reference_folder)
    first: dict[str, Entry] = {}
    for entry in sorted(values(reference_folder, line), key=lambda entry: not entry["table"].startswith("tiny")):
        first.setdefault(entry["metric"], entry)
    assert [metric for metric, entry in first.items() if script.PARTS["metrics"](entry) is None] == []
