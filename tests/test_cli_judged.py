"""`calframe audit` and `calframe drift`: options reach the functions, tables say what matters."""

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest

import calframe
from calframe._cli import main
from tests._commands import ROLES, TABLE, failure, give_stdin, write_csv
from tests._gates import FEW, LEAN, OVER, RIGHT, UNDER, UNSURE, months, rows, steady
from tests._tables import approx


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def many(n: int = 1800) -> pl.DataFrame:
    """Return rows with two models, weights, days and segments; scores say too much in the end."""
    place = pl.int_range(n, eager=True)
    score = 0.02 + ((place * 37) % 101) / 105
    return pl.DataFrame(
        {
            "y": ((place * 61) % 103 < pl.Series([100.0] * (n // 2) + [60.0] * (n - n // 2)) * score).cast(pl.Int8),
            "p": score,
            "q": (0.8 * score).round(2),
            "w": 1.0 + place % 3,
            "seg": ["a", "b", None] * (n // 3),
            "age": 20 + (place * 7) % 50,
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=i // 10) for i in range(n)],
        }
    )


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def same(found: object, expected: object) -> None:
    """Assert that two results are the same but for rounding."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            same(found[name], value)
    elif isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        assert found == approx(expected)


# audit


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--by", "age", "--depth", "1", "--numeric-bins", "3"], {"by": ["seg", "age"], "depth": 1, "numeric_bins": 3}),
        (["--by", "age"], {"by": ["seg", "age"]}),
        (["--reference", "seg=a"], {"reference": {"seg": "a"}}),
        (["--tolerance", "0.2", "--alpha", "0.2"], {"tolerance": 0.2, "alpha": 0.2}),
        (["--correction", "none", "--min-rows", "900"], {"correction": "none", "min_rows": 900}),
        (["--no-ecce"], {"ecce": False}),
        (["--cluster", "age"], {"cluster": "age"}),
        (["--seed", "3", "--resamples", "40"], {"rng": 3, "n_resamples": 40}),
        (["--weight", "w", "--weight-kind", "frequency"], {"weight": "w", "weight_kind": "frequency"}),
    ],
)
def test_options_are_the_arguments_of_audit(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_parquet("preds.parquet")
    out = printed(capsys, "audit", "preds.parquet", *ROLES, "--by", "seg", *options, "--format", "json")
    same(json.loads(out), calframe.audit(many(), **{"label": "y", "score": "p", "by": "seg", **arguments}).to_dict())


def test_the_reference_has_the_type_of_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    many().with_columns(age=pl.col("age") % 3).write_csv("preds.csv")
    asked = [*ROLES, "--by", "seg", "--by", "age", "--reference", "age=1", "--reference", "seg=b"]
    found = json.loads(printed(capsys, "audit", "preds.csv", *asked, "--format", "json"))
    assert found["convention"]["reference"] == {"age": 1, "seg": "b"}


def test_the_segments_of_an_audit_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(a=OVER, b=UNDER, c=LEAN, d=UNSURE, e=FEW, f=RIGHT)
    table.write_csv("preds.csv")
    lines = printed(capsys, "audit", "preds.csv", *ROLES, "--by", "seg").splitlines()
    assert lines[0].startswith("▲ Action needed: ")
    assert max(map(len, lines)) <= 80
    start = next(place for place, line in enumerate(lines) if line.startswith("segment"))
    shown = [[cell.strip() for cell in line.split("  ") if cell] for line in lines[start : start + 7]]
    assert [row[0] for row in shown] == ["segment", *(f"seg={name}" for name in "abcdfe")]
    assert [row[1] for row in shown] == ["gap", "+10.0", "−10.0", "+3.0", "0.0", "0.0", "–"]
    assert [row[-1] for row in shown[1:]] == [
        *("▲ Over-predicts", "▼ Under-predicts", "△ Leans over"),
        *("○ Can't tell yet", "● Within tolerance", "– Too few rows"),
    ]
    assert "Largest difference of gaps by seg: 20.0 pp" in " ".join(lines)
    assert "tolerance 3.0 pp" in " ".join(lines)
    assert "worst first: by verdict, then rows times gap." in " ".join(lines)


def test_the_reference_is_compared_with_in_a_table_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    rows(a=RIGHT, b=OVER, e=FEW).write_csv("preds.csv")
    asked = ["audit", "preds.csv", *ROLES, "--by", "seg"]
    plain = printed(capsys, *asked)
    assert "Compared with" not in plain
    verdicts, compared, _ = printed(capsys, *asked, "--reference", "seg=a").split("\n\n")[1:]
    assert verdicts in plain  # they stay against the label
    assert max(map(len, compared.splitlines())) <= 80
    assert compared.startswith("Compared with seg=a: ")
    assert "each interval is of its segment by itself, p is adjusted over all of them" in compared.replace("\n", " ")
    shown = {line.split("  ")[0]: line.split() for line in compared.splitlines() if line.startswith("seg=")}
    # gaps of 10 and 0 points; all rows of the reference are its own, and too few rows are not told
    assert shown["seg=b"][1] == "+10.0"
    assert shown["seg=b"][-2:] == ["<", "0.001"]
    assert float(shown["seg=b"][2]) < 10 < float(shown["seg=b"][4])
    assert shown["seg=a"][1:] == shown["seg=e"][1:] == ["–", "–", "–"]


@pytest.mark.parametrize(("counts", "word"), [({"a": RIGHT}, "● Within tolerance: "), ({"a": UNSURE}, "○ Undecided: ")])
def test_what_an_audit_says_first(
    counts: dict[str, tuple[int, int]], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows(**counts).write_csv("preds.csv")
    assert printed(capsys, "audit", "preds.csv", *ROLES, "--by", "seg").startswith(word)


def test_many_segments_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    rows(**{f"s{place:02}": FEW for place in range(33)}).write_csv("preds.csv")
    out = printed(capsys, "audit", "preds.csv", *ROLES, "--by", "seg")
    assert "\nand 3 more, further down that order\n" in out


# drift


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--by", "seg"], {"by": ["seg"]}),
        (["--score", "q"], {"score": ["p", "q"]}),
        (["--every", "auto"], {"every": None}),
        (["--every", "1w", "--reference", "first"], {"every": "1w", "reference": "first"}),
        (
            ["--every", "1w", "--reference", "rolling", "--window", "2"],
            {"every": "1w", "reference": "rolling", "window": 2},
        ),
        (["--reference", "Feb 2024"], {"reference": "Feb 2024"}),
        (["--reference", "2024-01-05..2024-03-01"], {"reference": ("2024-01-05", "2024-03-01")}),
        (
            ["--tolerance", "0.2", "--alpha", "0.2", "--correction", "none"],
            {"tolerance": 0.2, "alpha": 0.2, "correction": "none"},
        ),
        (
            ["--batch", "day", "--run-length", "500", "--clip", "0.05"],
            {"batch": "day", "run_length": 500.0, "clip": 0.05},
        ),
        (["--psi-bins", "5", "--psi-floor", "0.01"], {"psi_bins": 5, "psi_floor": 0.01}),
        (["--bins", "4", "--strategy", "quantile"], {"bins": 4, "strategy": "quantile"}),
        (["--bins", "4", "--closed", "right"], {"bins": 4, "closed": "right"}),
        (["--weight", "w", "--weight-kind", "frequency"], {"weight": "w", "weight_kind": "frequency"}),
        (["--time-zone", "Europe/Paris"], {"time_zone": "Europe/Paris"}),
    ],
)
def test_options_are_the_arguments_of_drift(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    table = many()
    if "--time-zone" in options:
        table = table.with_columns(day=pl.col("day").cast(pl.Datetime("us")).dt.offset_by("23h"))
    table.write_parquet("preds.parquet")
    out = printed(capsys, "drift", "preds.parquet", *ROLES, "--time", "day", *options, "--format", "json")
    same(json.loads(out), calframe.drift(table, **{"label": "y", "score": "p", "time": "day", **arguments}).to_dict())


@pytest.mark.parametrize("time", [[], ["--time", "day"]])
def test_a_second_table_is_the_reference(time: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    many().write_csv("preds.csv")
    before = many().filter(pl.col("day") < dt.date(2024, 3, 1))
    before.write_parquet("before.parquet")
    asked = ["preds.csv", *ROLES, "--reference-file", "before.parquet", *time]
    found = json.loads(printed(capsys, "drift", *asked, "--format", "json"))
    expected = calframe.drift(many(), label="y", score="p", reference=before, time="day" if time else None)
    same(found, expected.to_dict())
    lines = printed(capsys, "drift", *asked).splitlines()
    assert ("compare with the reference table" in " ".join(lines)) is True
    assert any(line.startswith("all rows  ") for line in lines) is not bool(time)


def test_the_periods_of_a_series(capsys: pytest.CaptureFixture[str]) -> None:
    months(RIGHT, RIGHT, OVER).write_csv("preds.csv")
    lines = printed(
        capsys, "drift", "preds.csv", *ROLES, "--time", "day", "--reference", "2024-01-01..2024-02-01"
    ).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Since Mar 2024 scores run 10.0 pp too high")
    start = next(place for place, line in enumerate(lines) if line.startswith("period"))
    shown = [[cell.strip() for cell in line.split("  ") if cell] for line in lines[start + 1 : start + 4]]
    assert [[row[0], row[1], row[2], row[3], *row[5:]] for row in shown] == [
        ["Jan 2024", "10,000", "50.0%", "0.0", "–", "–", "–", "● within"],
        ["Feb 2024", "10,000", "50.0%", "0.0", "–", "–", "–", "● within"],
        ["Mar 2024", "10,000", "40.0%", "+10.0", "< 0.001", "0.000", "0.000", "▲ over"],  # one bin: nothing can move
    ]
    assert lines[start + 4] == "monitor: alarm since 2024-03-10"
    assert "p adjusted and PSI compare with Jan 2024 to Feb 2024" in " ".join(lines)


def test_a_segment_column_may_be_called_anything(capsys: pytest.CaptureFixture[str]) -> None:
    table = months(RIGHT, OVER).rename({"seg": "base"}).with_columns(test=1, change=2, column=3, value=4, alarmed=5)
    table.write_parquet("preds.parquet")
    names = ["base", "test", "change", "column", "value", "alarmed"]
    by = [part for name in names for part in ("--by", name)]
    for command, options in (
        ("test", ["--method", "gap"]),
        ("drift", ["--time", "day"]),
        ("audit", ["--depth", "1"]),
        ("compare", ["--score", "value"]),
    ):
        roles = ["--label", "y", "--score", "p", *options]
        if command == "compare":
            table.with_columns(value=pl.col("p") / 2).write_parquet("preds.parquet")
            roles, by = (
                [*roles, "--metric", "gap"],
                ["--by", "base", "--by", "test", "--by", "change", "--by", "column"],
            )
        assert "Error" not in printed(capsys, command, "preds.parquet", *roles, *by)


def test_series_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    moved = months(RIGHT, OVER).with_columns(seg=pl.lit("moved"))
    still = months(RIGHT, RIGHT).with_columns(seg=pl.lit(None, dtype=pl.String))
    pl.concat([moved, still]).with_columns(q=0.45).write_parquet("preds.parquet")
    out = printed(capsys, "drift", "preds.parquet", *ROLES, "--score", "q", "--time", "day", "--by", "seg")
    parts = {part.split("\n")[0]: part for part in out.split("\n\n")}
    assert {name for name in parts if "rows" in name} >= {
        "seg moved, model p, 20,000 rows",
        "seg (missing), model p, 20,000 rows",
        "seg moved, model q, 20,000 rows",
    }
    assert "monitor: alarm since 2024-02-10" in parts["seg moved, model p, 20,000 rows"]
    assert "monitor: no alarm in 2 batches" in parts["seg (missing), model p, 20,000 rows"]


def test_rows_left_out_of_drift_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv("y,p,t\n1,0.5,2024-01-01\n0,0.5,2024-02-01\n,0.5,2024-02-01\n0,1.5,2024-02-01\n1,0.5,\n")
    out = printed(capsys, "drift", file, *ROLES, "--time", "t", "--invalid", "drop").replace("\n", " ")
    assert "Rows without a time, in no period: 1. Rows left out: 1 with something missing, 1 out of range." in out


# both

ASKED = [("audit", ["--by", "seg"]), ("drift", ["--time", "day"])]


@pytest.mark.parametrize(("command", "options"), ASKED)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "md"])
def test_results_are_written_as_they_are_printed(
    command: str, options: list[str], suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_parquet("preds.parquet")
    asked = ["preds.parquet", *ROLES, *options]
    assert main([command, *asked, "-o", f"out.{suffix}"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Wrote out.{suffix} (")
    assert {path.name for path in Path().iterdir()} == {f"out.{suffix}", "preds.parquet"}
    if suffix == "parquet":
        verb = getattr(calframe, command)
        by = {"by": "seg"} if command == "audit" else {"time": "day"}
        expected = verb(many(), label="y", score="p", **by).table
        assert pl.read_parquet("out.parquet").columns == expected.columns
        same(pl.read_parquet("out.parquet").to_dicts(), expected.to_dicts())
    else:
        written = Path(f"out.{suffix}").read_text(encoding="utf-8")
        assert steady(written) == steady(printed(capsys, command, *asked, "--format", suffix))


@pytest.mark.parametrize(("command", "options"), ASKED)
@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")])
def test_charts_are_drawn(
    command: str, options: list[str], suffix: str, start: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_parquet("preds.parquet")
    assert main([command, "preds.parquet", *ROLES, *options, "-o", f"out.{suffix}"]) == 0
    assert capsys.readouterr().out == ""
    assert Path(f"out.{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize(("command", "options"), ASKED)
def test_standard_input_is_read(
    command: str, options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give_stdin(monkeypatch, many().write_csv().encode())
    piped = printed(capsys, command, "-", *ROLES, *options)
    many().write_csv("preds.csv")
    assert piped == printed(capsys, command, "preds.csv", *ROLES, *options)


def test_hostile_names_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["[red]x[/red]", "two\nlines", "\x1b[31m", "", None, "x" * 60]
    months((600, 300), (600, 300)).with_columns(seg=pl.Series(names * 200)).write_parquet("preds.parquet")
    out = printed(capsys, "audit", "preds.parquet", *ROLES, "--by", "seg")
    out += printed(capsys, "drift", "preds.parquet", *ROLES, "--by", "seg", "--time", "day")
    assert "\x1b" not in out
    assert "two\nlines" not in out
    for name in (
        "seg=[red]x[/red]",
        "seg=two",
        "seg=(missing)",
        "seg [red]x[/red], 200 rows",
        "seg two\\nlines, 200 rows",
    ):
        assert name in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["audit", *ROLES], "Missing option '--by'"),
        (["audit", "--label", "y", "--by", "seg"], "Missing option '--score'"),
        (["audit", *ROLES, "--by", "nope"], "no column 'nope' for --by"),
        (
            ["audit", *ROLES, "--by", "seg", "--reference", "a"],
            "'a' is not a segment column and its value, such as seg=",
        ),
        (
            ["audit", *ROLES, "--by", "seg", "--reference", "seg=z"],
            "reference value 'z' does not occur in column 'seg'",
        ),
        (["audit", *ROLES, "--by", "seg", "--max-segments", "1"], "--max-segments 1"),
        (["audit", *ROLES, "--by", "seg", "--no-ecce", "--seed", "3"], "--seed does nothing without the look along"),
        (["audit", *ROLES, "--by", "seg", "--cluster", "t", "--resamples", "50"], "--resamples does nothing without"),
        (["audit", *ROLES, "--by", "seg", "--depth", "0"], "0 is not in the range x>=1"),
        (["audit", *ROLES, "--by", "seg", "--min-rows", "2"], "2 is not in the range x>=5"),
        (["audit", *ROLES, "--by", "seg", "--tolerance", "3"], "tolerance is a gap between 0 and 1"),
        (
            ["audit", *ROLES, "--by", "seg", "-o", "out.pdf"],
            "it must be one of .csv .parquet .json .md .svg .png .html",
        ),
        (["audit", *ROLES, "--by", "seg", "-o", "preds.csv"], "is also read; write to another file"),
        (["drift", "--label", "y", "--time", "t"], "Missing option '--score'"),
        (["drift", *ROLES], "Missing option '--time', the column of dates, or '--reference-file'"),
        (["drift", *ROLES, "--time", "nope"], "no column 'nope' for"),
        (["drift", *ROLES, "--time", "seg"], "column 'seg' holds 'a', which is no ISO date or time"),
        (["drift", *ROLES, "--time", "t", "--reference", "May 1990"], "--reference"),
        (
            ["drift", *ROLES, "--time", "t", "--reference", "first", "--reference-file", "x.csv"],
            "leave one of them out",
        ),
        (["drift", *ROLES, "--reference-file", "x.csv"], "no file 'x.csv'"),
        (["drift", *ROLES, "--time", "t", "--psi-bins", "0"], "0 is not in the range x>=1"),
        (["drift", *ROLES, "--time", "t", "--psi-floor", "2"], "psi-floor is the share"),
        (["drift", *ROLES, "--time", "t", "--run-length", "0"], "run-length is a number of batches above 1"),
        (["drift", *ROLES, "--time", "t", "--time-zone", "Paris"], "--time-zone"),
        (
            ["drift", *ROLES, "--time", "t", "-o", "out.pdf"],
            "it must be one of .csv .parquet .json .md .svg .png .html",
        ),
        (["drift", *ROLES, "--reference-file", "ref.csv", "-o", "ref.csv"], "is also read; write to another file"),
    ],
)
def test_what_cannot_run_says_why(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *rest = arguments
    write_csv(TABLE, "ref.csv")
    assert words in failure(capsys, command, write_csv(TABLE), *rest)
    assert sorted(path.name for path in Path().iterdir()) == ["preds.csv", "ref.csv"]


def test_standard_input_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert "standard input can be read once" in failure(capsys, "drift", "-", *ROLES, "--reference-file", "-")


def test_the_demo_table(capsys: pytest.CaptureFixture[str]) -> None:
    calframe.demo_table().write_parquet("demo.parquet")
    roles = ["demo.parquet", "--label", "y", "--score", "p_gbm"]
    out = printed(capsys, "audit", *roles, "--by", "origin", "--by", "carrier")
    assert out.startswith("▲ Action needed: ")
    assert max(map(len, out.splitlines())) <= 80
    out = printed(capsys, "drift", *roles, "--time", "date", "--by", "origin")
    assert out.count("monitor: alarm since 2013-07-") == 3
    assert max(map(len, out.splitlines())) <= 80
