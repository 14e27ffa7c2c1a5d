"""`calframe test` and `calframe compare`: options reach the functions, tables say what matters."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest

import calframe
from calframe._cli import _terminal as terminal
from calframe._cli import main
from tests._class_tables import HALVES
from tests._commands import ROLES, TABLE, failure, give_stdin, write_csv
from tests._gates import steady
from tests._tables import approx

TWO = [*ROLES, "--score", "q"]
CLASSES = ["--class", "a=pa", "--class", "b=pb", "--class", "c=pc"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def many(n: int = 600) -> pl.DataFrame:
    """Return rows with ties, two models, weights, persons and segments; the first model says too much."""
    place = pl.int_range(n, eager=True)
    score = 0.02 + ((place * 37) % 101) / 105
    return pl.DataFrame(
        {
            "y": ((place * 61) % 103 < 60 * score).cast(pl.Int8),
            "p": score,
            "q": (0.6 * score).round(2),
            "w": 1.0 + place % 3,
            "who": place // 4,
            "seg": ["a", "b", None] * (n // 3),
        }
    )


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def same(found: dict, expected: dict) -> None:
    """Assert that two results are the same but for rounding."""
    assert {**found, "table": None} == {**expected, "table": None}
    assert found["table"] == [{name: approx(value) for name, value in row.items()} for row in expected["table"]]


# test


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--by", "seg"], {"by": ["seg"]}),
        (["--method", "cox", "--method", "spiegelhalter"], {"method": ["cox", "spiegelhalter"]}),
        (["--method", "hosmer_lemeshow", "--bins", "5"], {"method": "hosmer_lemeshow", "bins": 5}),
        (["--method", "hosmer_lemeshow", "--df", "internal"], {"method": "hosmer_lemeshow", "df": "internal"}),
        (
            ["--method", "hosmer_lemeshow", "--strategy", "uniform"],
            {"method": "hosmer_lemeshow", "strategy": "uniform"},
        ),
        (["--statistic", "brier", "--alternative", "less"], {"statistic": "brier", "alternative": "less"}),
        (["--bins", "4", "--strategy", "quantile"], {"bins": 4, "strategy": "quantile"}),
        (["--bins", "0,0.5,1", "--closed", "right"], {"bins": [0.0, 0.5, 1.0], "closed": "right"}),
        (["--seed", "3", "--resamples", "40"], {"rng": 3, "n_resamples": 40}),
        (["--inequality", ">"], {"inequality": ">"}),
        (["--by", "seg", "--correction", "max"], {"by": "seg", "correction": "max"}),
        (
            ["--by", "seg", "--correction", "bonferroni", "--alpha", "0.2"],
            {"by": "seg", "correction": "bonferroni", "alpha": 0.2},
        ),
        (["--method", "kernel", "--kernel-law", "block"], {"method": "kernel", "kernel_law": "block"}),
        (["--weight", "w", "--weight-kind", "frequency"], {"weight": "w", "weight_kind": "frequency"}),
        (["--method", "gap", "--cluster", "who"], {"method": "gap", "cluster": "who"}),
        (["--score", "q"], {"score": ["p", "q"]}),
        (["--statistic", "slope", "--floor", "0.05"], {"statistic": "slope", "floor": 0.05}),
        (
            ["--statistic", "ici", "--smoother", "lowess", "--resamples", "20"],
            {"statistic": "ici", "smoother": "lowess", "n_resamples": 20},
        ),
        (["--statistic", "log_loss", "--clip", "0.05"], {"statistic": "log_loss", "clip": 0.05}),
    ],
)
def test_options_are_the_arguments_of_test(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_parquet("preds.parquet")
    found = json.loads(printed(capsys, "test", "preds.parquet", *ROLES, *options, "--format", "json"))
    same(found, calframe.test(many(), **{"label": "y", "score": "p", **arguments}).to_dict())


def test_the_table_of_tests(capsys: pytest.CaptureFixture[str]) -> None:
    # Spiegelhalter by hand: of 100 rows at 0.25 all are positive; sum of (y - p)(1 - 2p) over its deviation
    # sqrt(sum (1 - 2p)^2 p (1 - p)) is 37.5 / sqrt(100 * 0.25 * 0.1875) = 17.3205
    table = pl.DataFrame({"y": [1] * 100 + [1] * 50 + [0] * 150, "p": [0.25] * 300, "seg": ["a"] * 100 + ["b"] * 200})
    table.write_csv("preds.csv")
    lines = printed(capsys, "test", "preds.csv", *ROLES, "--by", "seg", "--method", "spiegelhalter").splitlines()
    assert [line.split() for line in lines[0:3]] == [
        ["seg", "test", "rows", "statistic", "p", "adj.", "p", "verdict", "law"],
        ["a", "spiegelhalter", "100", "17.3205", "<", "0.001", "<", "0.001", "rejected", lines[1].split()[-1]],
        ["b", "spiegelhalter", "200", "0.0000", "1.000", "1.000", "not", "rejected", lines[2].split()[-1]],
    ]
    assert lines[-2].startswith("rejected: right scores would hardly show this")


def test_the_hypotheses_of_cox_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    many().write_parquet("preds.parquet")
    lines = printed(capsys, "test", "preds.parquet", *ROLES, "--method", "cox").splitlines()
    assert [line.split("  ")[0] for line in lines[:4]] == ["test", "cox: joint", "cox: intercept", "cox: slope"]


def test_notes_and_rows_left_out_of_tests(capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv("y,p,seg\n1,0.5,a\n0,0.5,a\n,0.5,a\n0,1.5,a\n,,b\n")
    asked = ["--by", "seg", "--invalid", "drop", "--method", "gap", "--method", "cox"]
    out = printed(capsys, "test", file, *ROLES, *asked)
    assert "Rows left out: 2 with something missing, 1 out of range." in out.replace("\n", " ")
    assert "\nb, gap" in out


@pytest.mark.parametrize("names", [["a", "b", "c"], [1, 2, 3]])
def test_classes_are_tested_together(names: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    labels = dict(zip("abc", names, strict=True))
    pl.DataFrame({**HALVES, "y": [labels[value] for value in HALVES["y"]]}).write_csv("preds.csv")
    classes = [part for name, column in zip(names, "abc", strict=True) for part in ("--class", f"{name}=p{column}")]
    found = json.loads(printed(capsys, "test", "preds.csv", "--label", "y", *classes, "--format", "json"))
    score = dict(zip("abc", ["pa", "pb", "pc"], strict=True))
    expected = calframe.test(pl.DataFrame(HALVES), label="y", score=score).to_dict()
    expected["convention"]["classes"] = found["convention"]["classes"]
    same(found, expected)
    assert found["convention"]["statistic"] == "classwise_ece"


def test_hostile_names_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["[red]x[/red]", "two\nlines", "\x1b[31m", "", None, "x" * 60]
    table = pl.DataFrame({"y": [0, 1] * 6, "p": [0.5] * 12, "q": [0.4] * 12, "seg": names * 2})
    table.write_parquet("preds.parquet")
    expected = {"[red]x[/red]", "two\\nlines", "\\x1b[31m", "(empty)", "(missing)"}
    for command, roles in (("test", ROLES), ("compare", [*TWO, "--metric", "brier"])):
        lines = printed(capsys, command, "preds.parquet", *roles, "--by", "seg").splitlines()
        cut = {name for line in lines[1:7] if "…" in (name := line.split("  ")[0])}
        assert {line.split("  ")[0] for line in lines[1:7]} - cut == expected
        assert [set(name) for name in cut] == [{"x", "…"}]  # as much of the longest as there is room for


# compare


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--by", "seg"], {"by": "seg"}),
        (["--metric", "gap", "--metric", "slope", "--floor", "0.05"], {"metrics": ["gap", "slope"], "floor": 0.05}),
        (["--metric", "ece", "--bins", "4", "--closed", "right"], {"metrics": "ece", "bins": 4, "closed": "right"}),
        (
            ["--metric", "ece", "--bins", "4", "--strategy", "quantile"],
            {"metrics": "ece", "bins": 4, "strategy": "quantile"},
        ),
        (["--metric", "ece", "--seed", "3", "--resamples", "40"], {"metrics": "ece", "rng": 3, "n_resamples": 40}),
        (["--metric", "log_loss", "--clip", "0.05"], {"metrics": "log_loss", "clip": 0.05}),
        (
            ["--metric", "ici", "--smoother", "lowess", "--resamples", "20"],
            {"metrics": "ici", "smoother": "lowess", "n_resamples": 20},
        ),
        (["--metric", "brier", "--cluster", "who"], {"metrics": "brier", "cluster": "who"}),
        (
            ["--metric", "brier", "--weight", "w", "--weight-kind", "frequency"],
            {"metrics": "brier", "weight": "w", "weight_kind": "frequency"},
        ),
        (["--confidence-level", "0.8", "--alpha", "0.2"], {"confidence_level": 0.8, "alpha": 0.2}),
        (["--correction", "none"], {"correction": "none"}),
    ],
)
def test_options_are_the_arguments_of_compare(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_parquet("preds.parquet")
    found = json.loads(printed(capsys, "compare", "preds.parquet", *TWO, *options, "--format", "json"))
    same(found, calframe.compare(many(), label="y", score=["p", "q"], **arguments).to_dict())


def test_classes_that_are_named_twice_are_two_models(capsys: pytest.CaptureFixture[str]) -> None:
    # by hand: the first is 0.5, 0.3, 0.2 away from certainty, the second 0.2, 0.1, 0.1
    pl.DataFrame({"y": ["a", "c"] * 30, "p": [0.5, 0.2] * 30, "q": [0.3] * 60, "r": [0.2, 0.5] * 30}).with_columns(
        s=pl.Series([0.8, 0.1] * 30), t=pl.Series([0.1] * 60), u=pl.Series([0.1, 0.8] * 30)
    ).write_csv("preds.csv")
    named = [f"--class={name}={column}" for name, column in zip("abcabc", "pqrstu", strict=True)]
    found = json.loads(printed(capsys, "compare", "preds.csv", "--label", "y", *named, "--format", "json"))
    assert (found["first"], found["second"], found["convention"]["classes"]) == ("first", "second", ["a", "b", "c"])
    assert found["convention"]["columns"] == {"first": ["p", "q", "r"], "second": ["s", "t", "u"]}
    assert found["metrics"] == ["brier", "log_loss", "accuracy", "confidence_ece"]
    assert [found["table"][0][side] for side in ("first", "second")] == pytest.approx([0.38, 0.06])


def test_the_table_of_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    # by hand: 0.5 has a Brier score of 0.25 whatever happens; of q the first segment's is 0.01, the second's 0.81
    table = pl.DataFrame({"y": [1] * 400, "p": [0.5] * 400, "q": [0.9, 0.1] * 200, "seg": ["a", "b"] * 200})
    pl.concat([table, table.head(1).with_columns(q=None)]).write_csv("preds.csv")
    lines = printed(capsys, "compare", "preds.csv", *TWO, "--by", "seg", "--metric", "brier").splitlines()
    assert lines[0].split() == ["seg", "metric", "good", "p", "q", "difference", "interval", "adj.", "p", "better"]
    assert [line.split()[0:6] + line.split()[-1:] for line in lines[1:3]] == [
        ["a", "brier", "lower", "0.2500", "0.0100", "−0.2400", "q"],
        ["b", "brier", "lower", "0.2500", "0.8100", "0.5600", "p"],
    ]
    said = " ".join(lines)
    assert "difference: q minus p, on 400 rows that have both" in said
    assert "Rows left out: 1 with something missing." in said


def test_models_of_long_names_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"probability_from_the_large_model_v{i}" for i in (1, 2)]
    many().rename(dict(zip("pq", names, strict=True))).write_parquet("preds.parquet")
    scores = [part for name in names for part in ("--score", name)]
    asked = ["compare", "preds.parquet", "--label", "y", *scores, "--metric", "brier", "--metric", "gap"]
    lines = printed(capsys, *asked).splitlines()
    first, second = (next(word for word in lines[0].split() if word.endswith(end)) for end in ("v1", "v2"))
    assert [line.split()[1] for line in lines[1:3]] == ["lower", "0"]
    assert lines[1].split()[-1] == second != first  # p says too much, q is right
    assert main([*asked, "-o", "out.svg"]) == 0
    assert f"{names[1][-8:]} better" in Path("out.svg").read_text(encoding="utf-8")


# both


@pytest.mark.parametrize(("command", "roles"), [("test", ROLES), ("compare", [*TWO, "--metric", "brier"])])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "md"])
def test_results_are_written_as_they_are_printed(
    command: str, roles: list[str], suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    many().write_csv("preds.csv")
    assert main([command, "preds.csv", *roles, "-o", f"out.{suffix}"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Wrote out.{suffix} (")
    assert {path.name for path in Path().iterdir()} == {f"out.{suffix}", "preds.csv"}
    rows = json.loads(printed(capsys, command, "preds.csv", *roles, "--format", "json"))["table"]
    if suffix == "parquet":
        assert pl.read_parquet("out.parquet").to_dicts() == [
            {name: approx(x) for name, x in row.items()} for row in rows
        ]
    else:
        written = Path(f"out.{suffix}").read_text(encoding="utf-8")
        assert steady(written) == steady(printed(capsys, command, "preds.csv", *roles, "--format", suffix))


@pytest.mark.parametrize(("command", "roles"), [("test", ROLES), ("compare", [*TWO, "--metric", "brier"])])
def test_standard_input_is_read(
    command: str, roles: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give_stdin(monkeypatch, many().write_csv().encode())
    piped = printed(capsys, command, "-", *roles)
    many().write_csv("preds.csv")
    assert piped == printed(capsys, command, "preds.csv", *roles)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["test", "--label", "y"], "Missing option '--score', or '--class' for each of several classes"),
        (["test", *ROLES, *CLASSES], "leave one of them out"),
        (["test", *ROLES, "--method", "hl"], "'hl' is not one of 'resampling', 'spiegelhalter'"),
        (["test", *ROLES, "--statistic", "sharpness"], "--statistic sharpness does not depend on the labels"),
        (["test", *ROLES, "--statistic", "eec"], "--statistic eec is not known; near it are 'ece'"),
        (["test", *ROLES, "--correction", "max", "--method", "cox"], "--correction max"),
        (["test", *ROLES, "--alpha", "5"], "alpha must lie between 1e-09 and 0.5"),
        (["test", *ROLES, "--resamples", "5"], "5 is not in the range 20<=x<=1000000"),
        (["test", *ROLES, "--bins", "many"], "'many' is neither a whole number nor `auto` nor edges with commas"),
        (["test", *ROLES, "--cluster", "nope"], "no column 'nope' for --cluster"),
        (["test", *ROLES, "--by", "nope"], "no column 'nope' for --by"),
        (["test", *ROLES, "--method", "cox", "--weight", "w"], "or pass --weight-kind frequency if"),
        (["test", *ROLES, "-o", "out.svg"], "it must be one of .csv .parquet .json .md"),
        (["test", *ROLES, "-o", "preds.csv"], "is also read; write to another file"),
        (["test", *ROLES, "-o", "out.csv", "--format", "csv"], "Leave one of them out"),
        (["compare", "--label", "y"], "Missing option '--score'"),
        (["compare", *ROLES], "two columns are compared, and --score names 1; give it twice"),
        (["compare", *TWO, "--score", "r"], "two columns are compared, and --score names 3"),
        (["compare", *TWO], "no column 'q' for --score"),
        (["compare", *ROLES, "--score", "p"], "--score names column 'p' twice"),
        (["compare", *ROLES, *CLASSES], "leave one of them out"),
        (["compare", "--label", "y", *CLASSES], "name each class again for the second"),
        (
            [
                "compare",
                "--label",
                "y",
                "--class",
                "0=p",
                "--class",
                "1=w",
                "--class",
                "2=t",
                "--class",
                "1=p",
                "--class",
                "0=w",
            ],
            "has 2",
        ),
        (["compare", "--label", "y", *CLASSES, "--class", "a=p", "--class", "a=w"], "'a' or column 'w' is named twice"),
        (["compare", *ROLES, "--score", "w", "--metric", "brie"], "--metric brie is not known. Did you mean 'brier'?"),
        (["compare", *ROLES, "--score", "w", "--confidence-level", "95"], "confidence-level must lie between 0 and 1"),
        (["compare", *ROLES, "--score", "w", "--cluster", "nope"], "no column 'nope' for --cluster"),
        (["compare", *ROLES, "--score", "w", "-o", "out.xls"], "it must be one of .csv .parquet .json .md"),
    ],
)
def test_what_cannot_run_says_why(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *rest = arguments
    assert words in failure(capsys, command, write_csv(TABLE), *rest)
    assert [path.name for path in Path().iterdir()] == ["preds.csv"]


# progress


def test_draws_tell_a_person_how_far_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with terminal.waiting("Testing") as progress:
        progress(0.25)
    assert capsys.readouterr().err == ""  # too quick to be shown
    monkeypatch.setattr(terminal, "_PATIENCE", 0.0)
    many().write_parquet("preds.parquet")
    assert main(["test", "preds.parquet", *ROLES, "--statistic", "ici", "--resamples", "200"]) == 0
    assert "Testing: 100%" in capsys.readouterr().err
    assert main(["compare", "preds.parquet", *TWO, "--metric", "ici", "--resamples", "200"]) == 0
    assert "Comparing: 100%" in capsys.readouterr().err


def test_nobody_is_told_where_nobody_watches() -> None:
    with terminal.waiting("Testing") as progress:
        assert progress is None


# the demo table


def test_the_demo_table(capsys: pytest.CaptureFixture[str]) -> None:
    table = calframe.demo_table().with_columns(p_less=0.8 * pl.col("p_gbm"))
    table.write_parquet("demo.parquet")
    roles = ["demo.parquet", "--label", "y", "--score", "p_gbm", "--by", "origin"]
    lines = printed(capsys, "test", *roles, "--method", "resampling", "--method", "gap").splitlines()
    assert sum("  rejected  " in line for line in lines) == 6
    lines = printed(capsys, "compare", *roles, "--score", "p_less").splitlines()
    assert [line.split()[-1] for line in lines[1:5]] == ["p_less", "p_less", "clear", "p_less"]  # the order is the same
