"""The README runs: its Python examples print what it shows, and its commands take the options it gives."""

import doctest
import re
import shutil
from pathlib import Path

import pytest

from calframe._cli import main

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ calframe (.+)$", TEXT, flags=re.MULTILINE)


def python_examples() -> str:
    return "\n".join(re.findall(r"```pycon\n(.*?)```", TEXT, flags=re.DOTALL))


def test_python_examples_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(python_examples(), {}, "README.md", str(README), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert len(test.examples) >= 15
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_commands_run_as_shown_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(README.parent / "calframe" / "_data", tmp_path / "calframe" / "_data")
    for command in COMMANDS:
        assert main(command.split()) == 0, command


def test_there_are_commands_and_five_examples() -> None:
    assert len(COMMANDS) >= 2
    assert len(re.findall(r"^\*\*\d\. ", TEXT, flags=re.MULTILINE)) == 5


@pytest.mark.parametrize("marker", ["ci:demo", "ci:test"])
def test_both_commands_make_their_own_environment(marker: str) -> None:
    (command,) = re.findall(rf"<!-- {marker} -->\n```sh\n(.+)\n```", TEXT)
    assert command.startswith("python3 -m venv ")
