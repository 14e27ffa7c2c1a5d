"""Tables in the terminal: aligned, cut to its width, coloured only for a person who wants it."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import calframe
from calframe._cli import _terminal as terminal
from calframe._cli import main
from calframe._cli._notes import note_lines
from tests._commands import ASKED, ROLES, ROWS, in_a_terminal, result, write_csv


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


LONG = ["x" * 100 + "a", "x" * 100 + "b"]  # they differ in their last letter


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["metrics", *arguments]) == 0
    return capsys.readouterr().out


def test_the_table_is_aligned_and_says_what_is_undefined(capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv("y,p,seg\n1,0.5,a\n0,0.5,a\n0,0.25,b\n,0.25,b\n")
    asked = ["--metric", "gap", "--metric", "brier_skill"]
    assert printed(capsys, file, *ROLES, "--by", "seg", *asked).splitlines() == [
        "             n_          brier_",
        "seg  n  missing     gap   skill",
        "a    2        0  0.0000  0.0000",
        "b    1        1  0.2500       –",
        "",
        "b: brier_skill: only one class",
    ]


@pytest.mark.parametrize("form", [[], ["--format", "md"], ["-o", "out.md"]])
def test_a_binned_error_for_reading_never_stands_alone(form: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_csv("preds.csv")
    assert main(["metrics", "preds.csv", *ROLES, "--metric", "mce", "--metric", "ece", *form]) == 0
    out = capsys.readouterr().out or Path("out.md").read_text(encoding="utf-8")
    assert "expected" in out


def test_numbers_for_a_program_are_those_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_csv("preds.csv")
    [row] = result(capsys, "preds.csv", *ROLES, "--metric", "mce")
    assert list(row) == ["n", "n_missing", "mce", "note"]


def test_names_come_out_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["[red]x[/red]", ":smile:", "two\nlines", "\x1b[31m", "", None, "(missing)", "東" * 50, *LONG]
    pl.DataFrame({"y": [0] * 10, "p": [0.5] * 10, "seg": names}).write_parquet("preds.parquet")
    out = printed(capsys, "preds.parquet", *ROLES, "--by", "seg", "--metric", "rate")
    shown = {re.split(r"  +", line)[0] for line in out.splitlines()[1:]}
    cut = {name for name in shown if "…" in name}
    assert {name[-1] for name in cut} == {"a", "b", "東"}
    assert max(map(len, out.splitlines())) == 80  # what no terminal limits is a page wide
    assert shown - cut == {
        *("[red]x[/red]", ":smile:", "two\\nlines", "\\x1b[31m", "(empty)", "(missing)", "(missing) 2")
    }


def test_names_share_what_room_there_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = pl.DataFrame({"y": [0] * 4, "p": [0.5] * 4, "seg": [*LONG, *LONG], "other": list("uvwx")})
    table.write_parquet("preds.parquet")
    asked = ["preds.parquet", *ROLES, "--by", "seg", "--by", "other", "--metric", "rate"]
    for edge, room in ((200, 101), (80, 62), (40, 24)):  # there are 18 cells beside it, and 24 are the least
        in_a_terminal(monkeypatch, edge)
        lines = printed(capsys, *asked).splitlines()
        names = [line.split()[0] for line in lines if line.startswith("x")]
        assert len(set(names)) == 2
        assert {name[-1] for name in names} == {"a", "b"}
        assert {len(name) for name in names} == {room}


def test_a_note_says_its_metric_once() -> None:
    notes = ["no interval for ece_expected", "no interval for auc: it needs more rows"]
    table = pl.DataFrame({"metric": ["ece_expected", "auc", "brier"], "note": [*notes, None]})
    assert note_lines(table, ["metric"]) == "\nece_expected: no interval\nauc: no interval: it needs more rows\n"


def test_what_does_not_fit_goes_below(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    names = list("abcdefghijkl")
    pl.DataFrame({"y": [0, 1] * 12, "p": [0.25, 0.5] * 12, "seg": names * 2}).write_csv("preds.csv")
    arguments = ["preds.csv", *ROLES, "--by", "seg", "--confidence-level", "0.9"]
    in_a_terminal(monkeypatch, 80)
    lines = printed(capsys, *arguments).splitlines()
    assert max(map(len, lines)) <= 80
    firsts = [line.split()[0] for line in lines if line and line.split()[0] in names]
    assert firsts == names * (len(firsts) // 12)
    assert len(firsts) >= 36
    heads = [line.split() for line in lines if line.startswith("seg")]
    assert all(head[i] != "interval" for head in heads for i in (0, 1))  # beside its metric, never alone


def test_many_metrics_stand_below_each_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ROWS.write_csv("preds.csv")
    arguments = ["preds.csv", *ROLES, "--metric", "all", "--clip", "0.01", "--confidence-level", "0.95"]
    for by, head in ([], "metric value interval"), (["--by", "seg"], "seg a interval b interval"):
        in_a_terminal(monkeypatch, 100 if by else 80)
        lines = printed(capsys, *arguments, *by).splitlines()
        assert max(map(len, lines)) <= (100 if by else 80)
        assert lines[0].split() == head.split()
        assert {"auc", "smece", "ece_expected", "skce"} < {line.split()[0] for line in lines if line}
    rows = {line.split()[0]: re.split("  +", line)[1:] for line in lines if line}
    assert rows["gap"][0::2] == ["0.0000", "0.2500"]  # as in RESULT
    assert rows["brier"][0::2] == ["0.0625", "0.6250"]
    assert re.fullmatch(r"0\.\d{4} to 0\.\d{4}", rows["rate"][1])
    assert len(rows["ece_expected"]) == 2  # it has no interval


@pytest.mark.parametrize(
    ("watched", "variables", "coloured"),
    [(True, {}, True), (True, {"NO_COLOR": "1"}, False), (False, {"FORCE_COLOR": "1"}, False)],
)
def test_escape_codes_only_for_a_person_who_wants_them(
    watched: bool,  # noqa: FBT001
    variables: dict[str, str],
    coloured: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: watched)
    ROWS.write_csv("preds.csv")
    assert ("\x1b[" in printed(capsys, "preds.csv", *ASKED)) is coloured


@pytest.mark.parametrize(("watched", "ci", "shown"), [(True, "", True), (False, "", False), (True, "1", False)])
def test_progress_shows_while_a_person_watches(
    watched: bool,  # noqa: FBT001
    ci: str,
    shown: bool,  # noqa: FBT001
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)
    monkeypatch.setattr(terminal, "_PATIENCE", 0.0)
    with terminal.waiting("Counting sheep"):
        time.sleep(0.3)
    out, err = capsys.readouterr()
    assert ("Counting sheep" in err) is shown
    assert out == ""


def test_quick_work_shows_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with terminal.waiting("Counting sheep"):
        pass
    assert capsys.readouterr().err == ""


def run(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    """Start the command in a process of its own, from the same package."""
    environment = {**os.environ, "PYTHONPATH": str(Path(calframe.__file__).parents[1]), **variables}
    command = [sys.executable, "-m", "calframe", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def test_a_reader_that_leaves_is_no_error() -> None:
    rows = 20_000  # far more text than a pipe holds
    pl.DataFrame({"y": [0] * rows, "p": [0.5] * rows, "seg": range(rows)}).write_parquet("preds.parquet")
    process = run("metrics", "preds.parquet", *ASKED, "--format", "csv")
    assert process.stdout.readline() == b"seg,n,n_missing,gap,brier,note\n"
    process.stdout.close()
    assert (process.wait(), process.stderr.read()) == (0, b"")
    process.stderr.close()


def test_a_terminal_without_unicode_gets_ascii() -> None:
    write_csv("y,p,seg\n0,0.5,Zürich\n0,0.5," + "x" * 90 + "\n")
    process = run(*("metrics", "preds.csv", *ROLES, "--by", "seg"), PYTHONIOENCODING="ascii")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"Z?rich" in out
    assert b"x~x" in out
