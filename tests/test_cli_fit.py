"""`calframe fit`: a map in a file, and a few lines about it."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import calframe
from calframe._cli import main
from tests._commands import ROLES, TABLE, failure, give_stdin, write_csv

OUT = ["-o", "maps.json"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def many(n: int = 600) -> pl.DataFrame:
    """Return rows with ties, weights, six segments and one of a single class."""
    place = pl.int_range(n, eager=True)
    score = (1 + (place * 37) % 99) / 101
    table = pl.DataFrame(
        {
            "y": ((place * 61) % 103 < 103 * score**1.5).cast(pl.Int8),
            "p": score,
            "logit": (score / (1 - score)).log(),
            "w": 1.0 + place % 3,
            "seg": [*"abcdef"] * (n // 6),
        }
    )
    return pl.concat([table, table.head(4).with_columns(y=pl.lit(1, pl.Int8), seg=pl.lit("lone"))])


def classes() -> pl.DataFrame:
    """Return rows of three classes whose scores add up to 1."""
    place = pl.int_range(300, eager=True)
    parts = pl.DataFrame({f"p{i}": 1 + (place * step) % 17 for i, step in enumerate((3, 5, 7))})
    shares = parts.select(pl.all() / pl.sum_horizontal(pl.all()))
    return shares.with_columns(y=(place * 29) % 3)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Run the command and return what it prints; stderr says where the map is."""
    assert main(["fit", *arguments, *OUT]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(r"Wrote maps\.json \([\d.]+ [kM]B\)\.\n", err)
    return out.splitlines()


def saved() -> dict:
    return json.loads(Path("maps.json").read_text(encoding="utf-8"))


# what is fitted


def test_a_temperature_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    # 0.2 came true in 1 of 10, 0.8 in 9 of 10: T = ln(4) / ln(9), the only one that gives 0.1 and 0.9
    rows = ["1,0.2", *["0,0.2"] * 9, *["1,0.8"] * 9, "0,0.8"]
    file = write_csv("y,p\n" + "\n".join(rows) + "\n")
    assert printed(capsys, file, *ROLES, "--method", "temperature") == [
        "temperature map of p, fitted to 20 rows.",
        "One map for all rows, without segments.",
    ]
    found = calframe.load_map("maps.json").apply(pl.DataFrame({"p": [0.2, 0.5, 0.8]}))
    assert found["p_calibrated"].to_list() == pytest.approx([0.1, 0.5, 0.9], abs=1e-9)
    assert {path.name for path in Path().iterdir()} == {"preds.csv", "maps.json"}  # nothing half-written is left


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--by", "seg"], {"by": ["seg"]}),
        (["--by", "seg", "--pooling", "none"], {"by": ["seg"], "pooling": "none"}),
        (["--by", "seg", "--pooling", "complete"], {"by": ["seg"], "pooling": "complete"}),
        (["--parameters", "ab"], {"parameters": "ab"}),
        (["--target-smoothing", "platt"], {"target_smoothing": True}),
        (["--target-smoothing", "0.1"], {"target_smoothing": 0.1}),
        (["--method", "isotonic", "--interpolation", "step"], {"method": "isotonic", "interpolation": "step"}),
        (["--method", "isotonic", "--epsilon", "0.01"], {"method": "isotonic", "epsilon": 0.01}),
        (["--method", "histogram", "--bins", "4"], {"method": "histogram", "bins": 4}),
        (["--method", "histogram", "--bins", "0,0.3,1"], {"method": "histogram", "bins": [0.0, 0.3, 1.0]}),
        (
            ["--method", "histogram", "--strategy", "quantile", "--closed", "right"],
            {"method": "histogram", "strategy": "quantile", "closed": "right"},
        ),
        (["--weight", "w", "--weight-kind", "frequency"], {"weight": "w", "weight_kind": "frequency"}),
        (["--positive", "0"], {"positive": 0}),
        (["--score", "logit", "--link", "logit"], {"score": "logit", "link": "logit"}),
    ],
)
def test_options_are_the_arguments_of_the_function(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_parquet("preds.parquet")
    roles = ["--label", "y"] if "--score" in options else ROLES
    printed(capsys, "preds.parquet", *roles, *options)
    assert saved() == calframe.fit(many(), **{"label": "y", "score": "p", **arguments}).to_dict()
    if arguments:
        assert saved()["form"] != calframe.fit(many(), label="y", score="p").to_dict()["form"] or "complete" in options


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--method", "temperature"], {"method": "temperature"}),
        (
            ["--method", "dirichlet", "--off-diagonal", "0.1", "--intercept", "0.2"],
            {"method": "dirichlet", "off_diagonal": 0.1, "intercept": 0.2},
        ),
        (["--method", "ovr_isotonic"], {"method": "ovr_isotonic"}),
    ],
)
def test_classes_have_a_column_each(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    classes().write_csv("preds.csv")
    named = [part for i in range(3) for part in ("--class", f"{i}=p{i}")]
    lines = printed(capsys, "preds.csv", "--label", "y", *named, *options)
    assert lines[0] == f"{arguments['method']} map of p0, p1, p2, fitted to 300 rows."
    score = {i: f"p{i}" for i in range(3)}
    assert saved() == calframe.fit(pl.read_csv("preds.csv"), label="y", score=score, **arguments).to_dict()


def test_standard_input_is_csv(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, many().write_csv().encode())
    printed(capsys, "-", *ROLES, "--by", "seg")
    assert saved() == calframe.fit(many(), label="y", score="p", by="seg").to_dict()


# what is said


def test_segments_without_a_map_of_their_own_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    many().write_parquet("preds.parquet")
    assert printed(capsys, "preds.parquet", *ROLES, "--by", "seg", "--pooling", "none", "--method", "platt") == [
        "platt map of p, fitted to 604 rows.",
        "7 segments by seg, each fitted by itself (pooling: none); 1 of them takes the",
        "pooled map.",
        "lone – only one class: takes the pooled map.",
    ]


def test_many_segments_with_one_note_are_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{i:02d}" for i in range(1, 9)]
    table = pl.DataFrame({"y": [0, 1, *[1] * 8], "p": [0.25, 0.75, *[0.5] * 8], "seg": [*"xx", *names]})
    table.with_columns(long=pl.lit("\x1b[31m" + "x" * 40)).write_parquet("preds.parquet")
    lines = printed(capsys, "preds.parquet", *ROLES, "--by", "seg", "--by", "long", "--pooling", "none")
    said = " ".join(lines)
    name = "\\x1b[31m" + "x" * 8 + "…" + "x" * 15
    assert "9 segments by seg and long, each fitted by itself (pooling: none); 9 of them take the pooled map." in said
    listed = "; ".join(f"{segment}, {name}" for segment in names[:5])
    assert f"{listed} and 3 more – only one class: takes the pooled map." in said
    assert max(map(len, lines)) <= 80


def test_too_few_segments_to_pool(capsys: pytest.CaptureFixture[str]) -> None:
    many().filter(pl.col("seg").is_in(["a", "b"])).write_parquet("preds.parquet")
    assert printed(capsys, "preds.parquet", *ROLES, "--by", "seg")[1:] == [
        "One map for all rows, whatever their seg (pooling: complete).",
        "Note: partial pooling needs 5 segments or more; 2 segments have rows, so all",
        "take the pooled map.",
    ]


def test_rows_left_out_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    many().write_csv("preds.csv")
    with Path("preds.csv").open("a", encoding="utf-8") as file:
        file.write("1,,0,1,a\n0,1.5,0,1,a\n")
    lines = printed(capsys, "preds.csv", *ROLES, "--invalid", "drop")
    assert lines[0] == "beta map of p, fitted to 604 rows (left out: 1 with something missing, 1 out of"
    assert lines[1] == "range)."


# errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "y", *OUT], "Missing option '--score', or '--class' for each of several classes"),
        ([*ROLES], "Missing option '-o' / '--output'"),
        ([*ROLES, "--class", "a=p", "--class", "b=w", *OUT], "leave one of them out"),
        ([*ROLES, "--score", "w", *OUT], "fit takes the scores of one model; --score names 2"),
        (["--label", "y", "--score", "q", *OUT], "no column 'q' for --score"),
        ([*ROLES, "--method", "isotone", *OUT], "--method isotone is not known. Did you mean 'isotonic'?"),
        ([*ROLES, "--method", "matrix", *OUT], "--method must be one of 'beta', 'histogram'"),
        ([*ROLES, "--pooling", "some", *OUT], "'some' is not one of 'none', 'partial', 'complete'"),
        ([*ROLES, "--method", "spline", "--pooling", "partial", *OUT], "--method spline has no partial pooling"),
        ([*ROLES, "--epsilon", "0.1", *OUT], "--epsilon goes with --method isotonic, not with beta; leave it out"),
        ([*ROLES, "--bins", "15", *OUT], "--bins goes with --method histogram, not with beta"),  # its default, too
        (
            [*ROLES, "--method", "identity", "--target-smoothing", "platt", *OUT],
            "goes with --method platt, beta, temperature, spline, vector, matrix or dirichlet, not with identity",
        ),
        ([*ROLES, "--method", "ovr_platt", "--parameters", "ab", *OUT], "--parameters goes with --method beta"),
        ([*ROLES, "--method", "isotonic", "--epsilon", "0.5", *OUT], "0.5 is not in the range 0.0<x<0.5"),
        ([*ROLES, "--target-smoothing", "1", *OUT], "'1' is neither `platt` nor a share between 0 and 1"),
        ([*ROLES, "--target-smoothing", "some", *OUT], "'some' is neither `platt` nor a share between 0 and 1"),
        ([*ROLES, "--off-diagonal", "-1", *OUT], "-1.0 is not in the range x>=0.0"),
        ([*ROLES, "-o", "maps.csv"], "it must be one of .json"),
        ([*ROLES, "-o", "nowhere/maps.json"], "there is no folder 'nowhere'"),
    ],
)
def test_what_cannot_run_says_why(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in failure(capsys, "fit", write_csv(TABLE), *arguments)
    assert [path.name for path in Path().iterdir()] == ["preds.csv"]


def test_a_table_is_not_overwritten_by_its_map(capsys: pytest.CaptureFixture[str]) -> None:
    many().write_json("preds.json")
    before = Path("preds.json").read_bytes()
    assert "is also read; write to another file" in failure(capsys, "fit", "preds.json", *ROLES, "-o", "./preds.json")
    assert Path("preds.json").read_bytes() == before


def test_help_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
