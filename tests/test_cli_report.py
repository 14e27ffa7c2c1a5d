"""`calframe report` and `calframe demo`: the page written, the verdict and the segments printed, worst first."""

import datetime as dt
import json
import re
import sys
from pathlib import Path

import polars as pl
import pytest

from calframe._cli import main

ROLES = ["--label", "y", "--score", "p"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _empty_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no charts where a test is about the command."""
    monkeypatch.setattr("calframe._verb_report.Report.to_html", lambda _: "<!doctype html>")


def segment(name: str | None, *, rows: int, rate: float, score: float) -> pl.DataFrame:
    positives = round(rows * rate)
    return pl.DataFrame(
        {"y": [1] * positives + [0] * (rows - positives), "p": [score] * rows, "seg": [name] * rows},
        schema={"y": pl.Int64, "p": pl.Float64, "seg": pl.String},
    )


def preds(*more: pl.DataFrame) -> pl.DataFrame:
    return pl.concat(
        [
            segment("tiny", rows=20, rate=0.5, score=0.9),
            segment("right", rows=20_000, rate=0.5, score=0.5),
            segment("high", rows=1000, rate=0.2, score=0.4),
            segment(None, rows=2000, rate=0.6, score=0.4),
            *more,
        ]
    )


@pytest.fixture
def file() -> str:
    preds().write_parquet("preds.parquet")
    return "preds.parquet"


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_the_segments_are_printed_worst_first(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file, *ROLES, "--by", "seg", "--json", "numbers.json"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    start = next(i for i, line in enumerate(lines) if line.startswith("seg "))
    assert lines[start].split() == ["seg", "gap", "95%", "widened", "rows", "verdict"]
    shown = [(line[:9].strip(), line.split("  ")[-1]) for line in lines[start + 1 : start + 5]]
    # by |n × gap|: 2000 × 0.2 and 1000 × 0.2; then what is fine, then what has too few rows
    assert shown == [
        ("(missing)", "▼ Under-predicts"),
        ("high", "▲ Over-predicts"),
        ("right", "● Within tolerance"),
        ("tiny", "– Too few rows"),
    ]
    assert "+20.0 pp" in lines[start + 2]
    assert "−20.0 pp" in lines[start + 1]
    assert "pp" not in lines[start + 4]
    assert lines[-2:] == [
        "gap: mean score minus observed rate; tolerance 3.0 pp; the intervals hold",
        "together over 3 judged segments.",
    ]
    assert err.startswith("Wrote numbers.json (")
    assert names() == {file, "numbers.json"}  # no page was asked for


def test_the_first_lines_are_the_verdict(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file, *ROLES, "--by", "seg", "--json", "numbers.json"]) == 0
    verdict = capsys.readouterr().out.split("\n\n")[0]
    assert verdict.startswith("▲ Action needed: ")
    numbers = json.loads(Path("numbers.json").read_text(encoding="utf-8"))
    assert numbers["schema_version"] == 1


def test_one_table_gets_a_page_a_json_file_and_the_name_of_the_file(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", file, *ROLES, "-o", "page.html", "--json", "numbers.json"]) == 0
    out, err = capsys.readouterr()
    assert "All rows" in out
    assert [line.split(" (")[0] for line in err.splitlines()] == ["Wrote page.html", "Wrote numbers.json"]
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>preds.parquet" in page
    assert names() == {file, "page.html", "numbers.json"}


@pytest.mark.usefixtures("_empty_page")
def test_without_an_output_the_page_is_report_html(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file, *ROLES]) == 0
    assert capsys.readouterr().err.startswith("Wrote report.html (")
    assert names() == {file, "report.html"}


def test_json_to_stdout_is_json_and_nothing_else(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file, *ROLES, "--by", "seg", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["schema_version"] == 1
    assert err == ""
    assert names() == {file}


def test_further_metrics_stand_beside_the_segments(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--metric", "auc", "--metric", "accuracy"]
    assert main(["report", file, *ROLES, "--by", "seg", *asked, "--json", "-"]) == 0
    segments = {row["segment"]: row for row in json.loads(capsys.readouterr().out)["segments"]}
    # all scores of a segment are equal, so none stands before another; 0.4 predicts none, and 1 in 5 happened
    assert {row["auc"] for row in segments.values()} == {0.5}
    assert segments["high"]["accuracy"] == 0.8
    assert segments["high"]["accuracy_low"] < 0.8 < segments["high"]["accuracy_high"]


@pytest.mark.usefixtures("_empty_page")
def test_the_browser_opens_the_page(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or len(opened) == 1)
    assert main(["report", file, *ROLES, "-o", "page.html", "--open"]) == 0
    assert opened == [Path("page.html").resolve().as_uri()]
    assert "Note" not in capsys.readouterr().err
    assert main(["report", file, *ROLES, "-o", "page.html", "--open"]) == 0
    assert capsys.readouterr().err.endswith("Note: found no browser to open page.html with.\n")


MONTHS = [dt.date(2025, month, 15) for month in range(1, 13)]


@pytest.mark.parametrize(
    "written",
    [
        "%Y-%m-%d",
        "%Y-%m",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S.%f",
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%d %H:%M:%S+00:00",
        "%Y-%m-%dT%H:%M-0500",
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_times_written_as_text(written: str, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    months = pl.concat(
        segment(dt.datetime.combine(month, dt.time(12)).strftime(written), rows=200, rate=0.5, score=0.5)
        for month in MONTHS
    )
    name = f"preds.{suffix}"
    (months.write_csv if suffix == "csv" else months.write_parquet)(name)
    assert main(["report", name, *ROLES, "--time", "seg", "--every", "1mo", "--json", "-"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert [period["period"] for period in numbers["periods"]] == [f"2025-{month:02}-01" for month in range(1, 13)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metric", "brie"], "Did you mean 'brier'?"),
        (["--time", "seg"], "column 'seg' holds 'tiny', which is no ISO date or time; write 2013-12-31"),
        (["--time", "when"], "no column 'when' for --time"),
        (["--time", "p"], "time column 'p' has type Float64"),
        (["--tolerance", "3"], "tolerance is a gap between 0 and 1, for example 0.03"),
        (["--alpha", "0.9"], "alpha must lie between 1e-09 and 0.5"),
        (["--every", "1h"], "'1h' is not one of '1d', '1w', '1mo', '1q', '1y'"),
        (["--by", "segg"], "Did you mean 'seg'?"),
        (["-o", "page.pdf"], "it must be one of .html .json"),
        (["-o", "nowhere/page.html"], "there is no folder 'nowhere'"),
        (["--json", "numbers.txt"], "Invalid value for '--json'"),
        (["--json", "preds.parquet"], "it must be one of .json"),
    ],
)
def test_what_cannot_run_says_why(
    file: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", file, *ROLES, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert err.count("\n") <= 2
    assert words in err
    assert names() == {file}


def test_an_input_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    preds().write_json("preds.json")
    before = Path("preds.json").read_bytes()
    assert main(["report", "preds.json", *ROLES, "--json", "./preds.json"]) == 2
    assert "is also read; write to another file" in capsys.readouterr().err
    assert Path("preds.json").read_bytes() == before


def test_long_names_are_cut_and_many_segments_counted(capsys: pytest.CaptureFixture[str]) -> None:
    more = [segment(f"{'x' * 60} {i:02}", rows=200, rate=0.5, score=0.5) for i in range(30)]
    preds(*more).write_parquet("preds.parquet")
    assert main(["report", "preds.parquet", *ROLES, "--by", "seg", "--json", "numbers.json"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert len(set(re.findall(r"^x+….*? \d\d ", out, re.MULTILINE))) == 18  # 20 less the two that are off
    assert "\nand 14 more, further down that order\n" in out  # 34 segments, 20 of them printed


def test_a_terminal_without_unicode_gets_ascii(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    sys.stdout.reconfigure(encoding="ascii")
    assert main(["report", file, *ROLES, "--by", "seg", "--json", "numbers.json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert "^ Over-predicts" in out
    assert "-20.0 pp" in out
    assert "?" not in out


def test_the_demo_says_what_it_found_and_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    verdict, wrote = out.splitlines()
    # mean(p_gbm) - mean(y) = 0.3175 - 0.2247, by polars
    assert verdict.startswith("▲ Action needed: On average the scores run 9 percentage points too high")
    assert wrote.startswith("Wrote calframe_demo.html (")
    assert wrote.endswith(" from 60,000 flights; open it in a browser.")
    page = Path("calframe_demo.html").read_text(encoding="utf-8")
    assert "Late flights from New York, July to December 2013" in page


@pytest.mark.usefixtures("_empty_page")
@pytest.mark.parametrize(
    ("where", "written"),
    [("folder", "folder/calframe_demo.html"), ("mine.html", "mine.html"), (".", "calframe_demo.html")],
)
def test_the_demo_goes_where_it_is_told(where: str, written: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder").mkdir()
    assert main(["demo", "-o", where]) == 0
    assert f"\nWrote {written} (" in capsys.readouterr().out
    assert Path(written).is_file()


def test_the_demo_needs_a_place_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", "nowhere/page.html"]) == 2
    assert "there is no folder 'nowhere'" in capsys.readouterr().err
