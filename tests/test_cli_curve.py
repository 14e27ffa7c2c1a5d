"""`calframe curve`: the curve printed, written as a table, or drawn."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import calframe
from calframe._cli import main
from tests._class_tables import HALVES
from tests._commands import ROLES, TABLE, failure, in_a_terminal, write_csv
from tests._tables import approx

# Two bins by hand: at 0.25 nothing happens, at 0.75 one of two
ROWS = pl.DataFrame({"y": [0, 0, 1, 0], "p": [0.25, 0.25, 0.75, 0.75], "seg": ["a", "b", "a", "b"]})
CLASSES = ["--class", "a=pa", "--class", "b=pb", "--class", "c=pc"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["curve", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def many(n: int = 300) -> pl.DataFrame:
    """Return rows with ties, two models, weights and segments; the first model says too much."""
    place = pl.int_range(n, eager=True)
    score = ((place * 37) % 101) / 101
    return pl.DataFrame(
        {
            "y": ((place * 61) % 103 < 60 * score).cast(pl.Int8),
            "p": score,
            "q": (0.8 * score).round(1),
            "w": 1.0 + place % 3,
            "seg": ["a", "b", None] * (n // 3),
        }
    )


# printed


def test_the_table_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_csv("preds.csv")
    # Wilson's interval of 0 in 2 and 1 in 2, by statsmodels' proportion_confint; of two rows with 0.25 none is positive
    # with chance 0.5625 and both are with 0.0625, either more than 0.025, so that both belong to the middle 95 percent
    assert printed(capsys, "preds.csv", *ROLES, "--bins", "2").splitlines()[:5] == [
        "4 rows",
        "                       mean                    95%           right scores",
        "scores         rows   score    rate       interval     gap     would show",
        "0.0000–0.5000     2  0.2500  0.0000  0.0000–0.6576  0.2500  0.0000–1.0000",
        "0.5000–1.0000     2  0.7500  0.5000  0.0945–0.9055  0.2500  0.0000–1.0000",
    ]


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--bins", "4"], {"bins": 4}),
        (["--bins", "0,0.25,1"], {"bins": [0.0, 0.25, 1.0]}),
        (["--bins", "auto"], {"bins": "auto"}),
        (["--bins", "5", "--strategy", "quantile"], {"bins": 5, "strategy": "quantile"}),
        (["--closed", "right"], {"closed": "right"}),
        (["--confidence-level", "0.8", "--interval", "jeffreys"], {"confidence_level": 0.8, "interval": "jeffreys"}),
        (["--weight", "w", "--weight-kind", "frequency"], {"weight": "w", "weight_kind": "frequency"}),
        (["--notion", "confidence"], {"notion": "confidence"}),
        (["--method", "kernel", "--by", "seg"], {"method": "kernel", "by": ["seg"]}),
        (["--method", "loess", "--score", "q"], {"method": "loess", "score": ["p", "q"]}),
        (
            ["--method", "isotonic", "--seed", "3", "--resamples", "40"],
            {"method": "isotonic", "rng": 3, "n_resamples": 40},
        ),
        (["--method", "isotonic", "--resamples", "40"], {"method": "isotonic", "n_resamples": 40}),
    ],
)
def test_options_are_the_arguments_of_the_function(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_parquet("preds.parquet")
    found = json.loads(printed(capsys, "preds.parquet", *ROLES, *options, "--format", "json"))
    expected = calframe.curve(many(), **{"label": "y", "score": "p", **arguments}).to_dict()
    assert {**found, "table": None} == {**expected, "table": None}
    assert found["table"] == [{name: approx(value) for name, value in row.items()} for row in expected["table"]]


def test_seeds_part_the_regions_of_isotonic_curves(capsys: pytest.CaptureFixture[str]) -> None:
    many().write_parquet("preds.parquet")
    asked = ["preds.parquet", *ROLES, "--method", "isotonic", "--resamples", "40", "--format", "csv"]
    one, same, other = (printed(capsys, *asked, "--seed", seed) for seed in ("1", "1", "2"))
    assert one == same
    assert one != other


@pytest.mark.parametrize("names", [["a", "b", "c"], [1, 2, 3]])
def test_classes_are_curves(names: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    labels = dict(zip("abc", names, strict=True))
    pl.DataFrame({**HALVES, "y": [labels[value] for value in HALVES["y"]]}).write_csv("preds.csv")
    classes = [part for name, column in zip(names, "abc", strict=True) for part in ("--class", f"{name}=p{column}")]
    out = printed(capsys, "preds.csv", "--label", "y", *classes, "--notion", "classwise", "--bins", "4")
    headings = [f"class {name}, 4 rows" for name in names]
    assert [line for line in out.splitlines() if line.startswith("class")] == headings
    # by hand: class a has scores 1/4 three times, once positive, and 1/2 once, positive
    assert re.search(r"\n0\.2500–0\.5000 +3 +0\.2500 +0\.3333 .* −0\.0833 ", out)
    out = printed(capsys, "preds.csv", "--label", "y", *classes, "--notion", "confidence", "--bins", "4")
    # and the largest scores are all 1/2, three of them right
    assert re.search(r"^4 rows\n.*\n.*\n0\.5000–0\.7500 +4 +0\.5000 +0\.7500 ", out)


@pytest.mark.parametrize("method", ["binned", "isotonic", "kernel", "loess"])
def test_every_curve_has_a_table_that_fits_the_terminal(
    method: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    many().with_columns(seg=pl.col("seg").replace("a", "x" * 60)).write_parquet("preds.parquet")
    in_a_terminal(monkeypatch, 80)
    asked = ["preds.parquet", *ROLES, "--score", "q", "--by", "seg", "--method", method, "--resamples", "40"]
    out = printed(capsys, *asked, *([] if method == "isotonic" else ["--bins", "5"]))
    assert max(map(len, out.splitlines())) <= 80
    headings = [line for line in out.splitlines() if line.endswith(", 100 rows")]
    names = ["b", "x" * 12 + "…" + "x" * 11, "(missing)"]
    assert headings == [f"seg {name}, model {model}, 100 rows" for name in names for model in "pq"]
    assert "▲" in out.split("\n\n")[0]


def test_signs_stand_where_the_rate_is_out_of_range(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(0.1, 60, 200), (0.5, 100, 200), (0.9, 100, 200)]  # too many, right, too few positives
    table = pl.concat([pl.DataFrame({"y": [1] * k + [0] * (n - k), "p": [score] * n}) for score, k, n in rows])
    table.write_csv("preds.csv")
    lines = printed(capsys, "preds.csv", *ROLES, "--bins", "5").splitlines()
    assert [line[-1] for line in lines if line.startswith("0")] == ["▼", lines[4][-1], "▲"]
    assert lines[4][-1].isdigit()


def test_rows_left_out_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv("y,p\n1,0.5\n0,1.5\n,0.5\n0,\n")
    out = printed(capsys, file, *ROLES, "--invalid", "drop")
    assert out.startswith("1 row\n")
    assert "Rows left out: 2 with something missing, 1 out of range." in out.replace("\n", " ")


def test_a_table_without_a_usable_row_has_no_points(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, write_csv("y,p\n,0.5\n"), *ROLES).startswith("0 rows\n")


# written


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "OUT.CSV"])
def test_a_table_keeps_every_digit(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    many().write_parquet("preds.parquet")
    assert main(["curve", "preds.parquet", *ROLES, "--by", "seg", "-o", name]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"Wrote {name} \(\d+ kB\)\.\n", err)
    read = pl.read_parquet if name.endswith("parquet") else pl.read_csv
    expected = calframe.curve(many(), label="y", score="p", by="seg").table
    assert read(name).to_dicts() == [
        {column: approx(value) for column, value in row.items()} for row in expected.to_dicts()
    ]
    assert {path.name for path in Path().iterdir()} == {name, "preds.parquet"}


def test_json_and_markdown_are_written_as_they_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.write_csv("preds.csv")
    for form in ("json", "md"):
        assert main(["curve", "preds.csv", *ROLES, "-o", f"out.{form}"]) == 0
        capsys.readouterr()
        assert Path(f"out.{form}").read_text(encoding="utf-8") == printed(capsys, "preds.csv", *ROLES, "--format", form)
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["kind"] == "curve"


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")])
@pytest.mark.parametrize("options", [["--method", "isotonic", "--resamples", "40"], ["--by", "seg"]])
def test_charts_are_drawn(suffix: str, start: bytes, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    many().write_parquet("preds.parquet")
    name = f"curve.{suffix}"
    assert main(["curve", "preds.parquet", *ROLES, *options, "-o", name]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"Wrote {name} \([\d.]+ [kM]B\)\.\n", err)
    assert Path(name).read_bytes().startswith(start)
    assert {path.name for path in Path().iterdir()} == {name, "preds.parquet"}


def test_names_cannot_end_the_script_of_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    ROWS.with_columns(seg=pl.lit(evil)).write_parquet("preds.parquet")
    assert main(["curve", "preds.parquet", *ROLES, "--by", "seg", "-o", "curve.html"]) == 0
    page = Path("curve.html").read_text(encoding="utf-8")
    assert "onerror=alert(1)" in page
    assert evil not in page
    assert not re.search("<(script|link)[^>]+(src|href)=", page)
    capsys.readouterr()


# errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "y"], "Missing option '--score', or '--class' for each of several classes"),
        ([*ROLES, *CLASSES], "leave one of them out"),
        ([*ROLES, "--notion", "classwise"], "--notion classwise needs the classes: name each with --class"),
        ([*ROLES, "--method", "spline"], "'spline' is not one of 'binned', 'isotonic', 'kernel', 'loess'"),
        ([*ROLES, "--bins", "many"], "'many' is neither a whole number nor `auto` nor edges with commas"),
        ([*ROLES, "--confidence-level", "95"], "For 95 percent pass 0.95"),
        ([*ROLES, "--resamples", "5"], "5 is not in the range 20<=x<=1000000"),
        (["--label", "Y", "--score", "p"], "Did you mean 'y'?"),
        ([*ROLES, "-o", "out.pdf"], "it must be one of .csv .parquet .json .md .svg .png .html"),
        ([*ROLES, "-o", "nowhere/out.svg"], "there is no folder 'nowhere'"),
        ([*ROLES, "-o", "preds.csv"], "is also read; write to another file"),
        ([*ROLES, "-o", "out.svg", "--format", "csv"], "Leave one of them out"),
    ],
)
def test_what_cannot_run_says_why(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in failure(capsys, "curve", write_csv(TABLE), *arguments)
    assert [path.name for path in Path().iterdir()] == ["preds.csv"]


def test_three_classes_need_a_notion(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame(HALVES).write_csv("preds.csv")
    said = failure(capsys, "curve", "preds.csv", "--label", "y", *CLASSES)
    assert "a curve of several classes needs --notion: 'confidence' for the largest score" in said


def test_clusters_reach_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    data = many().with_columns(who=pl.int_range(300) // 5)
    data.write_parquet("preds.parquet")
    found = json.loads(printed(capsys, "preds.parquet", *ROLES, "--cluster", "who", "--bins", "3", "--format", "json"))
    assert found == calframe.curve(data, label="y", score="p", cluster="who", bins=3).to_dict()
    assert found["convention"]["cluster"] == "who"
    asked = ["preds.parquet", *ROLES, "--cluster", "who", "--method", "kernel"]
    assert "--cluster is not used with --method kernel" in failure(capsys, "curve", *asked)
