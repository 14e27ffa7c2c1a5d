"""The command line: options that reach the functions, errors that teach, files that keep every digit."""

import datetime as dt
import json
from pathlib import Path

import click
import polars as pl
import pytest
from scipy import stats

import calframe
from calframe._cli import main
from calframe._cli._main import cli
from calframe._cli._words import as_options
from calframe._version import __version__
from tests._class_tables import HALVES, HALVES_FOUND
from tests._commands import ASKED, ROLES, ROWS, TABLE, failure, result, write_csv
from tests._tables import approx


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


def test_clusters_reach_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    # Four copies of the rows, each a cluster: statsmodels' proportion_confint of Wilson with 3 / (t / z)^2 of 4 rows
    pl.concat([ROWS.with_row_index("who")] * 4).write_csv("preds.csv")
    asked = ["preds.csv", *ROLES, "--metric", "rate", "--cluster", "who"]
    [row] = result(capsys, *asked, "--confidence-level", "0.95")
    assert row["rate"] == 0.5
    half = 0.5 * (1 + 3 / (stats.t.ppf(0.975, 3) ** 2)) ** -0.5  # z / (2 sqrt(n + z^2)) of a half, n = 3 z^2 / t^2
    assert (row["rate_low"], row["rate_high"]) == pytest.approx((0.5 - half, 0.5 + half), rel=1e-9)
    assert "--cluster who needs --confidence-level, for example 0.95" in failure(capsys, "metrics", *asked)


def test_every_metric_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    ROWS.with_columns(p=0.9 * pl.col("p")).write_csv("preds.csv")
    [row] = result(capsys, "preds.csv", *ROLES, "--metric", "all")
    assert {"rate", "ece", "ece_expected", "sharpness"} < set(row)


def halves(label: list[object]) -> str:
    """Write the four rows of three classes whose results are worked by hand."""
    names = dict(zip("abc", label, strict=True))
    table = {**HALVES, "y": [names[value] for value in HALVES["y"]]}
    pl.DataFrame(table).write_csv("classes.csv")
    return "classes.csv"


@pytest.mark.parametrize("names", [["a", "b", "c"], [0, 1, 2], [0.5, 1.5, 2.5], ["a b", "'c'", "Ü"]])
def test_classes_have_a_column_each(names: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    classes = [part for name, column in zip(names, "abc", strict=True) for part in ("--class", f"{name}=p{column}")]
    asked = [part for name in HALVES_FOUND for part in ("--metric", name)]
    [row] = result(capsys, halves(names), "--label", "y", *classes, *asked, "--bins", "4")
    assert {name: row[name] for name in HALVES_FOUND} == pytest.approx(HALVES_FOUND)


def test_classes_against_the_rest_are_rows(capsys: pytest.CaptureFixture[str]) -> None:
    classes = ["--class", "0=pa", "--class", "1=pb", "--class", "2=pc", "--bins", "4", "--notion", "classwise"]
    rows = result(capsys, halves([0, 1, 2]), "--label", "y", *classes, "--metric", "ece")
    # by hand, rows times gaps in a quarter of the rows: 3/12 and 1/2, 3/4 and 1/2, 2/4 and 0
    assert [(row["class"], row["ece"]) for row in rows] == [
        (0, pytest.approx(3 / 16)),
        (1, pytest.approx(5 / 16)),
        (2, pytest.approx(1 / 8)),
    ]


def test_true_probabilities_come_in_the_order_of_the_classes(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"y": ["a", "b"], "pa": [0.5, 0.5], "pb": [0.5, 0.5], "qa": [1.0, 0.0], "qb": [0.0, 1.0]}).write_csv(
        "preds.csv"
    )
    asked = ["--class", "b=pb", "--class", "a=pa", "--metric", "irreducible_loss"]
    [row] = result(capsys, "preds.csv", "--label", "y", *asked, "--posterior", "qb", "--posterior", "qa")
    assert row["irreducible_loss"] == 0.0  # the true probabilities leave nothing open
    [row] = result(capsys, "preds.csv", "--label", "y", *asked, "--posterior", "qa", "--posterior", "qb")
    assert row["irreducible_loss"] == 1.0  # and the wrong way round everything


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--bins", "auto"], {"bins": "auto"}),
        (["--bins", "5", "--strategy", "quantile"], {"bins": 5, "strategy": "quantile"}),
        (["--smoother", "lowess"], {"smoother": "lowess"}),
        (["--floor", "0.2"], {"floor": 0.2}),
        (["--notion", "confidence"], {"notion": "confidence"}),
        (["--confidence-level", "0.9"], {"confidence_level": 0.9}),
    ],
)
def test_options_are_the_arguments_of_the_function(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pl.DataFrame({"y": [0, 0, 1, 0, 1, 1] * 20, "p": [(i * 37 % 101) / 101 for i in range(120)]})
    rows.write_parquet("preds.parquet")
    asked = ["ece", "ace", "ici", "slope", "aurc"]
    [row] = result(capsys, "preds.parquet", *ROLES, *options, *(part for name in asked for part in ("--metric", name)))
    expected, usual = (
        calframe.metrics(rows, label="y", score="p", metrics=asked, **more).row(0, named=True)
        for more in (arguments, {})
    )
    assert row == {name: approx(value) for name, value in expected.items()}
    assert row != {name: approx(value) for name, value in usual.items()}


def test_seed_and_resamples_are_handed_on(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pl.DataFrame({"y": [0, 0, 1, 0, 1, 1] * 20, "p": [(i * 37 % 101) / 101 for i in range(120)]})
    rows.write_parquet("preds.parquet")
    drawn = {"metrics": ["smece"], "confidence_level": 0.9}  # the metric whose interval is drawn
    options = ["--metric", "smece", "--confidence-level", "0.9", "--seed", "7", "--resamples", "200"]
    [row] = result(capsys, "preds.parquet", *ROLES, *options)
    found, *others = (
        calframe.metrics(rows, label="y", score="p", **drawn, **more).row(0, named=True)
        for more in ({"rng": 7, "n_resamples": 200}, {"rng": 8, "n_resamples": 200}, {"rng": 7, "n_resamples": 300})
    )
    assert row == {name: approx(value) for name, value in found.items()}
    assert all(row != {name: approx(value) for name, value in other.items()} for other in others)


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
        (["--label", "y", "--score", "w"], "runs from 1 to 2, with"),
        ([*ROLES, "--by", "p"], "is a float column"),
        ([*ROLES, "--metric", "brie"], "--metric brie is not known. Did you mean 'brier'?"),
        ([*ROLES, "--metric", "roc"], "--metric roc is not known. Did you mean 'auc'? It must be one of"),
        ([*ROLES, "--metric", "gap,ece"], "--metric gap,ece is not known. Did you mean --metric gap --metric ece?"),
        ([*ROLES, "--metric", "gap", "--metric", "gap"], "--metric names 'gap' twice"),
        ([*ROLES, "--by", "seg, t"], "no column 'seg, t' for --by. Did you mean --by seg --by t?"),
        (["--label", "y", "--score", "p,w"], "no column 'p,w' for --score. Did you mean --score p --score w?"),
        ([*ROLES, "--bins", "many"], "'many' is neither a whole number nor `auto` nor edges with commas"),
        ([*ROLES, "--bins", "0.2,0.4"], "outside the bin edges"),
        ([*ROLES, "--confidence-level", "95"], "For 95 percent pass 0.95"),
        ([*ROLES, "--clip", "1"], "--clip must lie between 2e-16 and 0.5"),
        ([*ROLES, "--closed", "both"], "'both' is not one of 'left', 'right'"),
        ([*ROLES, "--by", "seg", "--by", "seg"], "--by names column 'seg' twice"),
        (["--label", "y"], "Missing option '--score', or '--class' for each of several classes"),
        ([*ROLES, "--class", "a=p", "--class", "b=w"], "leave one of them out"),
        (["--label", "y", "--class", "a"], "'a' is not a class and its column, such as cat=p_cat"),
        (["--label", "y", "--class", "a=p"], "'a=p' is the only class; name them all"),
        (["--label", "y", "--class", "a=p", "--class", "a=w"], "class 'a' or column 'w' is named twice"),
        (["--label", "y", "--class", "a=p", "--class", "b=p"], "class 'b' or column 'p' is named twice"),
        (["--label", "y", "--class", "a=p", "--class", "b=w"], "column 'y' holds numbers, and 'a' is none of them"),
        (["--label", "y", "--class", "0=p", "--class", "1=q"], "no column 'q' for --score"),
        ([*ROLES, "--notion", "classwise"], "--notion classwise needs the classes: name each with --class"),
        ([*ROLES, "--notion", "top"], "'top' is not one of 'confidence', 'classwise'"),
        ([*ROLES, "--metric", "epistemic_loss"], "needs the true probabilities: pass --posterior"),
        ([*ROLES, "--bins", "0,0.5,1", "--strategy", "quantile"], "--strategy quantile takes a number of bins"),
        ([*ROLES, "--resamples", "5"], "5 is not in the range 20<=x<=1000000"),
        ([*ROLES, "--seed", "-1"], "-1 is not in the range x>=0"),
        ([*ROLES, "--floor", "1"], "floor must lie between 2.3e-308 and 0.5"),
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
        ("pass notion='classwise', for", "pass --notion classwise, for"),
        ("pass posterior=, the columns", "pass --posterior, the columns"),
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


def test_markdown_has_one_style_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    table = pl.DataFrame({"y": [0, 1] * 600, "p": [0.5] * 1200, "year": [2013] * 1200, "w": [1234.5] * 1200})
    table.write_parquet("preds.parquet")
    asked = ["--by", "year", "--weight", "w", "--metric", "gap", "--format", "md"]
    assert main(["metrics", "preds.parquet", *ROLES, *asked]) == 0
    assert capsys.readouterr().out.splitlines()[2] == "| 2013 | 1200 | 0 | 1481400.0000 | 0.0000 | – |"  # 1200 x 1234.5


@pytest.mark.parametrize("command", ["audit", "drift", "test"])
def test_markdown_has_no_pvalue_of_zero_and_whole_counts(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    days = [dt.date(2024, 1, 1), dt.date(2024, 2, 1)] * 1000
    table = pl.DataFrame({"y": [0, 1] * 1000, "p": [0.9] * 2000, "seg": [None, None, "a", "b"] * 500, "day": days})
    table.write_parquet("preds.parquet")
    asked = ["--time", "day"] if command == "drift" else ["--by", "seg"]
    asked += ["--method", "hosmer_lemeshow"] if command == "test" else []
    assert main([command, "preds.parquet", *ROLES, *asked, "--format", "md"]) == 0
    head, _, *lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    for name in head:
        cells = {row[name] for row in rows} - {"–"}
        if "pvalue" in name and not name.endswith("_se"):
            assert "0.0000" not in cells
        if name in {"psi_empty_bins", "n_groups", "df", "rows_needed"}:
            assert all(cell.isdigit() for cell in cells)
        assert "(missing)" not in cells or (command, name) == ("test", "seg")  # elsewhere null is not a segment
    assert any("&lt; 0.001" in row.values() for row in rows)


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
        assert known or "Needed, unless" in option.help, f"{option.name} does not say its default"
        told = "Default: none" not in option.help or option.name == "reference_file"  # that there is no second table
        assert told, f"{option.name} does not say what happens without it"


@pytest.mark.parametrize("command", cli.commands.values(), ids=cli.commands)
def test_no_value_of_an_option_is_dropped(command: click.Command, capsys: pytest.CaptureFixture[str]) -> None:
    options = [option for option in command.params if isinstance(option, click.Option) and not option.is_flag]
    for option in options:
        name = option.opts[-1]
        said = f"Error: {name} takes one value and is given 2 times; leave one, or run the command once for each.\n"
        assert main([str(command.name), "preds.csv", name, "1", f"{name}=1"]) == 2
        assert (said in capsys.readouterr().err) is not option.multiple


@pytest.mark.parametrize("command", cli.commands)
def test_help_fits_a_terminal(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
