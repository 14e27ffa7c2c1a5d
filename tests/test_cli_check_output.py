"""`calframe check`: what a person, a program and GitHub are told."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import calframe
from calframe._cli import main
from tests._gates import FEW, LEAN, OVER, RIGHT, ROLES, UNDER, UNSURE, gate, rows

GAP = ["--by", "seg", "--max-gap", "0.03"]
ALL = "(all rows)"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


# what is printed


def test_a_person_reads_one_line_and_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows(a=OVER, b=UNDER, c=LEAN, d=UNSURE, e=FEW, f=RIGHT).write_csv("preds.csv")
    assert main(["check", "preds.csv", *ROLES, *GAP]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].startswith("▲ Broken: 2 of 7 checks. Most rows misstated: max-gap 0.03 at seg=a: +10.0 pp")
    assert max(map(len, lines)) <= 80
    assert " ".join(lines[-2:]) == (
        "off, limit unclear: the adjusted p-value is at most 0.05, the gap may still be within the limit, and the "
        "cautious interval may touch 0"
    )
    table = [line.split("  ") for line in lines[lines.index("") + 3 : -2]]
    assert lines[lines.index("") + 3].endswith("rows  verdict")
    shown = {row[0]: row[-1] for row in table[1:]}
    assert shown == {
        "seg=a": "▲ Over-predicts",
        "seg=b": "▼ Under-predicts",
        "seg=c": "△ Off, limit unclear",
        ALL: "● Within the limit",
        "seg=d": "○ Can't tell yet",
        "seg=f": "● Within the limit",
        "seg=e": "– Too few rows",
    }
    assert [row[0] for row in table[1:]] == ["seg=a", "seg=b", "seg=c", "seg=d", ALL, "seg=f", "seg=e"]


@pytest.mark.parametrize(
    ("segments", "start"),
    [
        ({"a": RIGHT}, "● Holds: all 2 checks lie within their limits."),
        (
            {"a": RIGHT, "b": UNSURE},
            "○ Can't tell yet: 1 of 3 checks undecided, none broken. First: max-gap 0.03 at seg=b",
        ),
        ({"a": FEW}, "○ Can't tell yet: 2 of 2 checks undecided, none broken. First: max-gap 0.03 at"),
    ],
)
def test_what_is_undecided_is_always_said(
    segments: dict[str, tuple[int, int]], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows(**segments).write_csv("preds.csv")
    assert main(["check", "preds.csv", *ROLES, *GAP]) == 0
    assert capsys.readouterr().out.replace("\n", " ").startswith(start)
    assert main(["check", "preds.csv", *ROLES, *GAP, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["gate"]["tripped"] is False
    assert err.startswith(start)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    rows(a=OVER).write_csv("preds.csv")
    command = [sys.executable, "-m", "calframe", "check", "preds.csv", *ROLES, "--max-gap", "0.03"]
    environment = {"PYTHONPATH": str(Path(calframe.__file__).parents[1]), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    start = b"^ Broken: 1 of 1 check. Most rows misstated: max-gap 0.03 at (all rows): +10.0 pp"
    assert done.stdout.replace(b"\n", b" ").startswith(start)


@pytest.mark.parametrize(
    ("segments", "options", "start"),
    [
        (
            {"a": LEAN, "f": RIGHT},
            ["--fail-on", "lean"],
            "△ Fails: 1 of 3 checks (1 leaning but maybe within the limit). Most rows misstated: max-gap 0.03 at seg=a",
        ),
        (
            {"a": OVER, "b": UNDER, "c": LEAN, "d": UNSURE, "e": FEW},
            ["--fail-on", "lean"],
            "▲ Fails: 3 of 6 checks (2 beyond the limit, 1 leaning but maybe within the limit). Most rows misstated: ",
        ),
        (
            {"a": OVER, "b": UNDER, "c": LEAN, "d": UNSURE, "e": FEW},
            ["--fail-on", "undecided"],
            "▲ Fails: 5 of 6 checks (2 beyond the limit, 1 leaning but maybe within the limit, 1 undecided, 1 of too",
        ),
        ({"a": OVER, "b": UNDER}, ["--strict"], "▲ Broken: 2 of 3 checks. Most rows misstated: "),
        (
            {"d": UNSURE, "f": RIGHT},
            ["--strict"],
            "○ Fails: 1 of 3 checks (1 undecided). First: max-gap 0.03 at seg=d",
        ),
    ],
)
def test_only_what_lies_beyond_a_limit_is_called_broken(
    segments: dict[str, tuple[int, int]], options: list[str], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows(**segments).write_csv("preds.csv")
    assert main(["check", "preds.csv", *ROLES, *GAP, *options]) == 1
    assert capsys.readouterr().out.replace("\n", " ").startswith(start)
    assert main(["check", "preds.csv", *ROLES, *GAP, *options, "--json", "-"]) == 1
    out, err = capsys.readouterr()
    assert err.startswith(start)
    beyond = {one["segment"] for one in json.loads(out)["gate"]["rules"] if one["verdict"] in {"over", "under"}}
    assert beyond == {f"seg={name}" for name, pair in segments.items() if pair in (OVER, UNDER)}


def test_the_first_is_that_of_most_rows_misstated_and_the_help_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    # 10,000 rows 10 points off are 1,000 rows misstated, 400 rows 25 points off are 100
    rows(small=(400, 100), large=OVER).write_csv("preds.csv")
    assert main(["check", "preds.csv", *ROLES, *GAP]) == 1
    out = capsys.readouterr().out.replace("\n", " ")
    assert "Most rows misstated: max-gap 0.03 at (all rows): +10.6 pp" in out  # and those of both are 1,100
    assert "worst first: by verdict, then rows times gap" in out
    assert out.index("seg=large") < out.index("seg=small")
    assert main(["check", "--help"]) == 0
    assert "Checks are shown worst first: by verdict, then by rows times" in " ".join(capsys.readouterr().out.split())


# JSON and GitHub


def test_json_says_all(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(a=OVER, b=UNSURE).with_columns(y=pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise("y"))
    status, found = gate(capsys, table, *GAP, "--max-ece", "0.02")
    assert status == 1
    assert list(found) == ["schema", "gate", "segments", "versions", "input"]
    assert found["schema"] == "calframe.check/1"
    assert found["versions"]["calframe"] == calframe.__version__
    counts = {name: found["input"][name] for name in ("rows", "n", "n_missing", "n_invalid")}
    assert counts == {"rows": 10_200, "n": 10_199, "n_missing": 1, "n_invalid": 0}
    digest = subprocess.run(["sha256sum", "preds.parquet"], capture_output=True, check=True, text=True).stdout
    assert found["input"]["sha256"] == digest.split()[0]
    one = next(one for one in found["gate"]["rules"] if (one["rule"], one["segment"]) == ("max-gap", "seg=a"))
    assert (one["limit"], one["verdict"]) == (0.03, "over")
    assert one["observed"] == pytest.approx(0.5 - 3_999 / 9_999)
    assert one["interval"][0] < one["observed"] < one["interval"][1]
    assert [one["segment"] for one in found["gate"]["undecided"]] == ["seg=b", "seg=b"]


def test_json_is_written_also_when_the_gate_trips(capsys: pytest.CaptureFixture[str]) -> None:
    rows(a=OVER).write_csv("preds.csv")
    assert main(["check", "preds.csv", *ROLES, "--max-gap", "0.03", "--json", "gate.json"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("▲ Broken")
    assert err == "Wrote gate.json.\n"
    assert json.loads(Path("gate.json").read_text(encoding="utf-8"))["gate"]["tripped"] is True
    assert {path.name for path in Path().iterdir()} == {"preds.csv", "gate.json"}


def test_infinite_values_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    table = pl.DataFrame({"y": [0, 1] * 100, "p": [0.5] * 199 + [0.0]})
    table.write_parquet("preds.parquet")
    assert main(["check", "preds.parquet", *ROLES, "--max", "log_loss=1", "--json", "-"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["gate"]["rules"][0]["observed"] == "Infinity"
    assert "log_loss is infinite" in err


def test_github_gets_errors_and_a_summary(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    Path("summary.md").write_text("before\n", encoding="utf-8")
    rows(**{"50%|": OVER, "x\n##[error]": UNDER, "z": UNSURE}).write_parquet("preds.parquet")
    assert main(["check", "preds.parquet", *ROLES, *GAP, "--format", "github"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    commands = [line for line in out.splitlines() if line.startswith("::")]
    assert [line.split(": ")[0] for line in commands] == [
        "::error title=max-gap::max-gap 0.03 at seg=50%25|",
        "::error title=max-gap::max-gap 0.03 at seg=x\\n## [error]",
        "::warning title=undecided::○ Can't tell yet",
    ]
    assert "##[" not in out
    assert out.startswith("▲ Broken: 2 of 4 checks. Most rows misstated: ")
    summary = Path("summary.md").read_text(encoding="utf-8")
    assert summary.startswith("before\n### calframe check\n\n▲ Broken: 2 of 4 checks.")
    assert "\n| seg=50%\\| | +10.0 | " in summary
    assert summary.count("\n| ---") == 1


def test_github_is_told_that_a_lean_may_lie_within_the_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    rows(a=LEAN, f=RIGHT).write_parquet("preds.parquet")
    assert main(["check", "preds.parquet", *ROLES, *GAP, "--fail-on", "lean", "--format", "github"]) == 1
    [error] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error")]
    assert error.endswith("10,000 rows, off, limit unclear")
    assert "\noff, limit unclear: the adjusted p-value is at most 0.05" in Path("summary.md").read_text(
        encoding="utf-8"
    )


def test_github_without_a_summary_and_with_many_errors(capsys: pytest.CaptureFixture[str]) -> None:
    rows(**{f"s{place:02}": OVER for place in range(14)}).write_parquet("preds.parquet")
    assert main(["check", "preds.parquet", *ROLES, *GAP, "--format", "github"]) == 1
    assert capsys.readouterr().out.count("::error ") == 10  # as many as GitHub shows
    rows(a=RIGHT).write_parquet("preds.parquet")
    assert main(["check", "preds.parquet", *ROLES, *GAP, "--format", "github"]) == 0
    assert capsys.readouterr().out == "● Holds: all 2 checks lie within their limits.\n"


def test_the_demo_table(capsys: pytest.CaptureFixture[str]) -> None:
    table = calframe.demo_table()
    table.write_parquet("demo.parquet")
    asked = ["check", "demo.parquet", "--label", "y", "--score", "p_gbm", "--by", "origin", "--by", "carrier"]
    assert main([*asked, "--max-gap", "0.03", "--max-ece", "0.02", "--max-drift", "0.05", "--time", "date"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("▲ Broken: ")
    assert main([*asked, "--max-gap", "0.4"]) == 0
    capsys.readouterr()
