"""What commands advise can be followed: every option that one names is an option of its own."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import polars as pl
import pytest

from calframe._cli import main
from calframe._cli._main import cli
from calframe._cli._words import _ARGUMENTS
from tests._commands import failure

_OPTION = re.compile(r"--[a-z][a-z-]*[a-z]")
_ARGUMENT = re.compile(rf"(?<!['\"\w])(?:{'|'.join(_ARGUMENTS)})=")  # of a function, which nobody can type here
_CLASSES = ["--class", "x=px", "--class", "y=py", "--class", "z=pz"]
_SEVERAL = ["--label", "c", *_CLASSES]
_ONE = ["--label", "y", "--score", "p"]
_NEEDED = {  # what a command must be given besides label and scores
    "report": ["--json", "-"],
    "audit": ["--by", "seg", "--no-ecce"],
    "drift": ["--time", "day"],
    "check": ["--max-gap", "0.1", "--max", "log_loss=0.7", "--min", "auc=0.1"],
    "compare": ["--score", "q", "--resamples", "20"],
    "fit": ["-o", "map.json"],
    "test": ["--resamples", "20"],
}
_COMMANDS = ["report", "audit", "drift", "check", "metrics", "curve", "test", "compare", "fit"]
_BAD = {  # columns that ask for advice
    "fine": {},
    "certain": {"p": pl.col("p").round(), "q": pl.col("q").round()},
    "logits": {"p": 3 * (pl.col("p") / (1 - pl.col("p"))).log()},
    "outside": {"p": pl.when(pl.int_range(pl.len()) < 3).then(1.5).otherwise("p")},
    "three labels": {"y": pl.int_range(pl.len()) % 3},
    "named labels": {"y": pl.when(pl.col("y") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))},
    "weights": {"w": pl.when(pl.int_range(pl.len()) < 3).then(-1.0).otherwise("w")},
    "no sums": {"px": pl.lit(0.9)},
}
_ASKED = [
    *([], ["--weight", "w"], ["--weight", "w", "--weight-kind", "frequency"], ["--by", "id"], ["--by", "p"]),
    *(["--by", "id", "--max-segments", "10"], ["--by", "id", "--max-segments", "250"], ["--bins", "0.2,0.3"]),
    *(["--metric", "epistemic_loss"], ["--metric", "gap"], ["--metric", "nope"], ["--metric", "log_loss"]),
    *(["--statistic", "epistemic_loss"], ["--statistic", "gap"], ["--statistic", "skce"], ["--method", "cox"]),
    *(["--positive", "5"], ["--reference", "nope"], ["--window", "2"], ["--correction", "max", "--cluster", "seg"]),
    *(["--max", "epistemic_loss=1"], ["--max-drift", "0.1"], ["--notion", "classwise"], ["--clip", "2"]),
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def options(command: str) -> set[str]:
    """Return the options of a command, `--help` included."""
    return {"--help", *(name for one in cli.commands[command].params for name in one.opts if name.startswith("--"))}


def table(n: int = 120) -> pl.DataFrame:
    """Return rows whose scores are neither all right nor certain."""
    place = pl.int_range(n, eager=True)
    share = (place * 37) % 100 / 100
    return pl.DataFrame(
        {
            "y": ((place * 61) % 103 < 100 * share).cast(pl.Int64),
            "p": 0.05 + 0.9 * share,
            "q": 0.1 + 0.8 * share,
            "w": pl.repeat(1.0, n, eager=True),
            "seg": ["a", "b"] * (n // 2),
            "id": [f"i{one}" for one in range(n)],
            "c": ["x", "y", "z"] * (n // 3),
            **{name: pl.repeat(value, n, eager=True) for name, value in (("px", 0.2), ("py", 0.3), ("pz", 0.5))},
        }
    ).with_columns(day=pl.date(2024, 1 + pl.int_range(pl.len()) // 40, 10))


def asked(command: str) -> Iterator[tuple[str, list[str]]]:
    """Return tables and arguments: every table as it is, and every option on the table in which all is right."""
    several = [_SEVERAL] if "--class" in options(command) else []
    for roles in (_ONE, *several):
        for name in _BAD:
            weight = ["--weight", "w"] if name == "weights" else []
            yield name, [*roles, *weight]
        for more in _ASKED:
            if options(command) >= {one for one in more if one.startswith("--")}:
                yield "fine", [*roles, *more]


@pytest.mark.parametrize("command", _COMMANDS)
def test_an_option_that_is_advised_can_be_typed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, columns in _BAD.items():
        table().with_columns(**columns).write_parquet(f"{name}.parquet")
    for name, arguments in asked(command):
        main([command, f"{name}.parquet", *arguments, *_NEEDED.get(command, [])])
        said = "".join(capsys.readouterr())
        assert set(_OPTION.findall(said)) <= options(command), (name, arguments, said)
        assert command == "report" or not _ARGUMENT.search(said), (name, arguments, said)  # its JSON has the call
        assert "Traceback" not in said


@pytest.mark.parametrize("command", cli.commands)
def test_help_names_options_of_its_command_alone(command: str) -> None:
    text = cli.commands[command].get_help(click.Context(cli.commands[command], info_name=command))
    assert set(_OPTION.findall(text)) == options(command)


def test_what_to_do_about_an_infinite_log_loss_can_be_done_in_a_gate(capsys: pytest.CaptureFixture[str]) -> None:
    # 99 rows at 1 and one at 0, all positive: the log loss is -ln(0.001) / 100 = 0.069
    pl.DataFrame({"y": [1] * 99 + [1] + [0] * 100, "p": [1.0] * 99 + [0.0] * 101}).write_parquet("preds.parquet")
    asked = ["check", "preds.parquet", *_ONE, "--max", "log_loss=0.7"]
    assert main(asked) == 1
    assert "Pass --clip (for example --clip 1e-15)" in capsys.readouterr().err
    assert main([*asked, "--clip", "0.001"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "0.0355" in out  # -(ln 0.001 + 199 ln 0.999) / 200
    msg = "--clip does nothing without --max log_loss=VALUE"
    assert msg in failure(capsys, "check", "preds.parquet", *_ONE, "--max-gap", "0.1", "--clip", "0.001")


def test_a_note_of_a_comparison_names_its_metric_once_and_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    table().with_columns(**_BAD["certain"]).write_parquet("preds.parquet")
    assert main(["compare", "preds.parquet", *_ONE, "--score", "q", "--metric", "log_loss", "--metric", "brier"]) == 0
    out = capsys.readouterr().out
    assert "\nlog_loss: infinite, so nothing is known of the difference (--clip makes it finite)\n" in out
    assert out.count("log_loss:") == 1


@pytest.mark.parametrize("command", ["check", "report"])
@pytest.mark.parametrize(("column", "values"), [("age", 60), ("tens", None), ("id", None)])
def test_numbers_that_make_many_segments_are_noted(
    command: str, column: str, values: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table().with_columns(age=pl.int_range(pl.len()) % 60, tens=pl.int_range(pl.len()) % 50)
    rows.write_csv("preds.csv")
    needed = ["--max-gap", "0.5"] if command == "check" else ["--json", "page.json"]
    assert main([command, "preds.csv", *_ONE, "--by", column, *needed]) == 0
    err = capsys.readouterr().err
    note = f"Note: segment column 'age' has {values} values, each a segment of its own; cut it into bands first."
    assert (note in err) is (values is not None)
    assert err.count("Note") == int(values is not None)
