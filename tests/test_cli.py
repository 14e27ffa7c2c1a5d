"""The command line: options that reach the functions, errors that teach, tables that fit the terminal."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import click
import polars as pl
import pytest

import calframe
from calframe._cli import _terminal as terminal
from calframe._cli import main
from calframe._cli._main import cli
from calframe._cli._words import as_options
from calframe._version import __version__
from tests._commands import ASKED, ROLES, ROWS, TABLE, failure, result, write_csv


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


# options


def test_options_reach_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_parquet("preds.parquet")
    # 0.5 and 0.25 are edges: closed to the right there are bins {0.25}, {0.5}, {0.75}, {1}
    rows = result(
        capsys, "preds.parquet", *ROLES, "--metric", "mce", "--bins", "0,0.25,0.5,0.75,1", "--closed", "right"
    )
    assert rows[0]["mce"] == 1.0
    rows = result(capsys, "preds.parquet", *ROLES, "--metric", "mce", "--bins", "1")
    assert rows[0]["mce"] == 0.125  # one bin: |0.625 - 0.5|


def test_several_scores_are_models(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.with_columns(q=1 - pl.col("p")).write_csv("preds.csv")
    rows = result(capsys, "preds.csv", *ROLES, "--score", "q", "--metric", "mean_score")
    assert [(row["model"], row["mean_score"]) for row in rows] == [("p", 0.625), ("q", 0.375)]


def test_intervals_stand_beside_their_metric(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_csv("preds.csv")
    [row] = result(capsys, "preds.csv", *ROLES, "--metric", "rate", "--confidence-level", "0.95")
    # by statsmodels' proportion_confint of 2 in 4, Wilson's method
    assert (row["rate_low"], row["rate_high"]) == pytest.approx((0.1500389891521495, 0.8499610108478506), rel=1e-12)


def test_every_metric_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_csv("preds.csv")
    [row] = result(capsys, "preds.csv", *ROLES, "--metric", "all", "--clip", "0.01")
    assert {"rate", "ece", "ece_expected", "sharpness"} < set(row)


# errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "Y", "--score", "p"], "Did you mean 'y'?"),
        (["--label", "late", "--score", "p"], "no column 'late' for --label; the table has 'y', 'p', 'w', 'seg', 't'"),
        (["--label", "y", "--score", "q"], "no column 'q' for --score"),
        ([*ROLES, "--by", "nope"], "no column 'nope' for --by"),
        ([*ROLES, "--weight", "nope"], "no column 'nope' for --weight"),
        (["--label", "w", "--score", "p"], "which is neither bool nor 0/1 nor -1/+1; say which value is positive"),
        (["--label", "seg", "--score", "p"], "for example --positive b."),
        (["--label", "w", "--score", "p", "--positive", "x"], "column 'w' holds numbers, and 'x' is none of them"),
        (["--label", "y", "--score", "w"], "outside, from 1 to 2. Correct those rows"),
        ([*ROLES, "--by", "p"], "is a float column"),
        ([*ROLES, "--metric", "brie"], "Did you mean 'brier'?"),
        ([*ROLES, "--bins", "many"], "'many' is neither a whole number nor edges with commas"),
        ([*ROLES, "--bins", "0.2,0.4"], "outside the bin edges"),
        ([*ROLES, "--confidence-level", "95"], "For 95 percent pass 0.95"),
        ([*ROLES, "--clip", "1"], "clip must lie between 2e-16 and 0.5"),
        ([*ROLES, "--closed", "both"], "'both' is not one of 'left', 'right'"),
        ([*ROLES, "--by", "seg", "--by", "seg"], "--by names column 'seg' twice"),
        (["--label", "y"], "Missing option '--score'"),
        ([*ROLES, "--colour"], "No such option"),
    ],
)
def test_what_cannot_run_says_why(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in failure(capsys, "metrics", write_csv(TABLE), *arguments)


def test_negative_weights_and_many_labels(capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv("y,p,w\na,0.5,-1\nb,0.5,1\nc,0.5,1\n")
    assert "has 3 values ('a', 'b', 'c')" in failure(capsys, "metrics", file, *ROLES, "--positive", "a")
    file = write_csv("y,p,w\n1,0.5,-1\n0,0.5,1\n")
    assert "the lowest -1" in failure(capsys, "metrics", file, *ROLES, "--weight", "w")


def test_usage_errors_point_to_the_help_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert failure(capsys, "metrics", "x.csv", "--label", "y").endswith("\nTry 'calframe metrics --help'.\n")
    assert failure(capsys, "metrix").endswith("\nTry 'calframe --help'.\n")


def test_no_command_shows_the_help_and_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert "Usage: calframe [OPTIONS] [COMMAND]" in err


def test_a_gap_in_the_log_loss_is_a_note_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv("y,p\n1,0\n0,0.5\n")
    assert main(["metrics", file, *ROLES, "--metric", "log_loss", "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out == "n,n_missing,log_loss,note\n2,0,inf,\n"
    assert err.startswith("Note: log_loss is infinite: 1 row gives probability 0 to what happened. Pass --clip")
    assert main(["metrics", file, *ROLES, "--metric", "log_loss", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["log_loss"] == "Infinity"  # JSON has no such number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass link='logit'.", "pass --link logit."),
        ("no column 'y' for label=; the table", "no column 'y' for --label; the table"),
        ("for example clip=1e-15) for", "for example --clip 1e-15) for"),
        ("positive='on time'.", "--positive 'on time'."),
        ("column 'label=x' has", "column 'label=x' has"),
        ("table=1 is no option", "table=1 is no option"),
    ],
)
def test_messages_speak_of_options(text: str, expected: str) -> None:
    assert as_options(text) == expected


# output


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.json", "OUT.CSV"])
def test_output_keeps_every_digit(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.with_columns(p=pl.col("p") / 3).write_parquet("preds.parquet")
    assert main(["metrics", "preds.parquet", *ASKED, "-o", name]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"Wrote {name} (2 rows).\n")
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "json": pl.read_json}[name.lower().split(".")[1]]
    assert read(name)["gap"].to_list() == pytest.approx([1 / 6 - 1 / 2, 1 / 4 - 1 / 2], rel=1e-14)
    assert {path.name for path in Path().iterdir()} == {name, "preds.parquet"}  # nothing half-written is left


def test_markdown_escapes_names(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.with_columns(seg=pl.lit("a|b <c>")).write_parquet("preds.parquet")
    assert main(["metrics", "preds.parquet", *ASKED, "--format", "md"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "| seg | n | n_missing | gap | brier | note |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        "| a\\|b &lt;c> | 4 | 0 | 0.1250 | 0.3438 | – |",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "out.xlsx"], "the suffix says the format, and it must be one of .csv .parquet .json .md"),
        (["-o", "out"], "the suffix says the format"),
        (["-o", "."], "is a folder; name a file in it"),
        (["-o", "nowhere/out.csv"], "there is no folder 'nowhere'"),
        (["-o", "./preds.csv"], "is also read; write to another file"),
        (["p*.csv", "-o", "preds.csv"], "is also read; write to another file"),
        (["-o", "out.csv", "--format", "csv"], "Leave one of them out"),
    ],
)
def test_output_that_cannot_be_written(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in failure(capsys, "metrics", write_csv(TABLE), *ROLES, *arguments)
    assert [path.name for path in Path().iterdir()] == ["preds.csv"]
    assert Path("preds.csv").read_text(encoding="utf-8") == TABLE


# terminal


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
    names = ["[red]x[/red]", ":smile:", "two\nlines", "\x1b[31m", "", None, "東" * 30, "x" * 60]
    pl.DataFrame({"y": [0] * 8, "p": [0.5] * 8, "seg": names}).write_parquet("preds.parquet")
    out = printed(capsys, "preds.parquet", *ROLES, "--by", "seg", "--metric", "rate")
    shown = {re.split(r"  +", line)[0] for line in out.splitlines()[1:]}
    assert shown == {
        *("[red]x[/red]", ":smile:", "two\\nlines", "\\x1b[31m", "(empty)", "(missing)"),
        *("東" * 11 + "…", "x" * 23 + "…"),
    }


def test_what_does_not_fit_goes_below(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ROWS.write_csv("preds.csv")
    arguments = ["preds.csv", *ROLES, "--by", "seg", "--metric", "all", "--clip", "0.01"]
    whole = printed(capsys, *arguments)
    assert len(whole.splitlines()) == 4
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    narrow = printed(capsys, *arguments)
    assert max(map(len, narrow.splitlines())) <= 80
    assert sorted(set(narrow.split()) - {"a", "b", "seg"}) == sorted(set(whole.split()) - {"a", "b", "seg"})
    assert [line.split()[0] for line in narrow.splitlines() if line.startswith(("a ", "b "))] == ["a", "b", "a", "b"]


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
    write_csv("y,p,seg\n0,0.5,Zürich\n0,0.5," + "x" * 40 + "\n")
    process = run(*("metrics", "preds.csv", *ROLES, "--by", "seg"), PYTHONIOENCODING="ascii")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"Z?rich" in out
    assert b"x" * 23 + b"~" in out


# help


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"calframe {__version__}\n"


@pytest.mark.parametrize("command", cli.commands.values(), ids=cli.commands)
def test_every_option_says_its_meaning_and_default(command: click.Command) -> None:
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert options
    for option in options:
        assert option.help, option.name
        assert option.help.endswith("."), option.name
        known = option.required or option.is_flag or option.show_default or "Default:" in option.help
        assert known or option.name == "json_output", f"{option.name} does not say its default"


@pytest.mark.parametrize("command", ["metrics", "report", "demo"])
def test_help_fits_a_terminal(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
