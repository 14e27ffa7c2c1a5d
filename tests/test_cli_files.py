"""Files of every format give the same numbers; a file that cannot be read gives one clear line and status 2."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests._commands import ASKED, RESULT, ROLES, ROWS, TABLE, failure, give_stdin, result, write_csv


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def write_stream(path: str) -> None:
    ROWS.write_ipc_stream(path)


def write_records(path: str) -> None:
    Path(path).write_text(json.dumps(ROWS.to_dicts()))


WRITERS = {
    "preds.parquet": ROWS.write_parquet,
    "preds.csv": ROWS.write_csv,
    "PREDS.CSV": ROWS.write_csv,
    "preds.tsv": lambda path: ROWS.write_csv(path, separator="\t"),
    "preds.csv.gz": lambda path: ROWS.write_csv(path, compression="gzip"),
    "preds.arrow": ROWS.write_ipc,
    "preds.feather": ROWS.write_ipc,
    "preds.ipc": write_stream,
    "preds.ndjson": ROWS.write_ndjson,
    "preds.jsonl": ROWS.write_ndjson,
    "preds.json": write_records,
    "a [1] b*.ndjson": ROWS.write_ndjson,
    "a [1] b*.csv": ROWS.write_csv,
    "a [1] b*.parquet": ROWS.write_parquet,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_numbers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    WRITERS[name](name)
    assert result(capsys, name, *ASKED) == RESULT


def test_standard_input_is_csv(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, ROWS.write_csv().encode())
    assert result(capsys, "-", *ASKED) == RESULT


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow", "ndjson", "json"])
def test_globs_and_several_files_make_one_table(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    write = {
        "parquet": pl.DataFrame.write_parquet,
        "csv": pl.DataFrame.write_csv,
        "arrow": pl.DataFrame.write_ipc,
        "ndjson": pl.DataFrame.write_ndjson,
        "json": pl.DataFrame.write_json,
    }[suffix]
    write(ROWS.head(2), f"part1.{suffix}")
    write(ROWS.tail(2), f"part2.{suffix}")
    assert result(capsys, f"part*.{suffix}", *ASKED) == RESULT
    assert result(capsys, f"part1.{suffix}", f"part2.{suffix}", *ASKED) == RESULT


def test_only_the_named_columns_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    # `other` looks like numbers at first and is none later: reading it would fail
    lines = ["y,p,other", *["1,0.5,1"] * 20_000, "0,0.5,x"]
    file = write_csv("\n".join(lines))
    assert result(capsys, file, *ROLES, "--metric", "mean_score")[0]["mean_score"] == 0.5


def test_scores_are_numbers_however_late_their_decimals_come(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["y,p", *["1,1"] * 20_000, "0,0.5"]
    file = write_csv("\n".join(lines))
    [row] = result(capsys, file, *ROLES, "--metric", "mean_score")
    assert row["mean_score"] == pytest.approx(20_000.5 / 20_001, rel=1e-15)


def test_json_numbers_are_not_cut_to_the_type_of_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"y": 1, "p": 1}] * 200 + [{"y": 0, "p": 0.5}]
    Path("preds.json").write_text(json.dumps(rows))
    Path("preds.ndjson").write_text("\n".join(map(json.dumps, rows)))
    expected = pytest.approx(200.5 / 201, rel=1e-15)
    assert [row["mean_score"] for row in result(capsys, "preds.json", *ROLES, "--metric", "mean_score")] == [expected]
    assert [row["mean_score"] for row in result(capsys, "preds.ndjson", *ROLES, "--metric", "mean_score")] == [expected]


@pytest.mark.parametrize("missing", ["", "NA", "N/A", "<NA>", "NaN", "nan", "NULL", "null", '" "'])
def test_missing_fields_of_text_files_are_counted(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv(f"y,p,w\n1,0.5,1\n{missing},0.5,1\n1,{missing},1\n1,0.5,{missing}\n0,1,1\n")
    [row] = result(capsys, file, *ROLES, "--weight", "w", "--metric", "rate")
    assert (row["n"], row["n_missing"], row["rate"]) == (2, 3, 0.5)


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        (["10", "9"], [9, 10]),  # numbers sort as numbers
        (["007", "10"], ["007", "10"]),  # codes keep their zeros
        (["1e5", "1"], ["1", "1e5"]),
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        (["NA", "ZW"], ["NA", "ZW"]),  # Namibia is no gap in the data
        (["2.0", "1.0"], [1, 2]),  # as pandas writes whole numbers with a gap
        (["true", "false"], ["false", "true"]),
        (["x", ""], ["x", None]),  # an empty field is a missing segment, last
    ],
)
def test_segments_of_text_files_keep_their_meaning(
    values: list[str], keys: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_csv("y,p,seg\n" + "".join(f"{i},0.5,{value}\n" for i, value in enumerate(values)))
    rows = result(capsys, file, *ROLES, "--by", "seg", "--metric", "rate")
    assert [row["seg"] for row in rows] == keys


@pytest.mark.parametrize(
    ("yes", "no", "positive"),
    [
        ("1", "0", None),
        ("1", "-1", None),
        ("1.0", "0.0", None),
        ("true", "false", None),
        ("TRUE", "FALSE", None),  # R
        ("True", "False", None),  # Python
        ("late", "on time", "late"),
        (" late", "on time", "late"),
        ("2", "1", "2"),
        ("0", "1", "0"),
        ("false", "true", "false"),
        ("2.0", "1.0", "2"),
    ],
)
def test_labels_of_text_files(yes: str, no: str, positive: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv(f"y,p\n{yes},0.5\n{yes},0.5\n{yes},0.5\n{no},0.5\n")
    option = [] if positive is None else ["--positive", positive]
    assert result(capsys, file, *ROLES, *option, "--metric", "rate")[0]["rate"] == 0.75


@pytest.mark.parametrize(
    ("labels", "positive"),
    [([2, 1], "2"), ([2.5, 1.0], "2.5"), ([False, True], "False"), (["b", "a"], "b"), ([0, 1], "0")],
)
def test_positive_is_read_in_the_type_of_the_label(
    labels: list[object], positive: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"y": [*labels, labels[0], labels[0]], "p": [0.5] * 4}).write_parquet("preds.parquet")
    [row] = result(capsys, "preds.parquet", *ROLES, "--positive", positive, "--metric", "rate")
    assert row["rate"] == 0.75


def test_a_column_may_be_segment_and_weight(capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv("y,p,w\n1,0.5,2\n0,0.5,1\n0,0.5,1\n")
    rows = result(capsys, file, *ROLES, "--by", "w", "--weight", "w", "--metric", "rate")
    assert [(row["w"], row["n"], row["weight_sum"], row["rate"]) for row in rows] == [
        (1, 2, 2.0, 0.0),
        (2, 1, 2.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.csv"], "no file 'nowhere.csv'"),
        (["pred.csv"], "Did you mean 'preds.csv'?"),
        (["folder/x.csv"], "there is no folder 'folder'"),
        (["."], "is a folder; name its files, for example '*.parquet' in quotes"),
        (["x*.parquet"], "no file matches 'x*.parquet'"),
        (["preds.txt"], "cannot tell the format of 'preds.txt' from its suffix"),
        (["preds.parquet.gz"], "cannot tell the format of 'preds.parquet.gz'"),
        (["preds"], "cannot tell the format of 'preds'"),
        (["preds.csv", "junk.parquet"], "preds.csv and junk.parquet have different formats"),
        (["preds.csv", "-"], "'-' reads standard input and stands alone"),
        (["junk.parquet"], "cannot read 'junk.parquet': parquet"),
        (["junk.arrow"], "cannot read 'junk.arrow'"),
        (["junk.json"], "cannot read 'junk.json'"),
        (["junk.ndjson"], "cannot read 'junk.ndjson'"),
        (["empty.csv"], "cannot read 'empty.csv': empty CSV"),
        (["ragged.csv"], "is there an unquoted comma?"),
        (["latin.csv"], "Save it as UTF-8 first"),
        (["headed.csv"], "has no rows"),
        (["twins.csv"], "two columns are called 'p'"),
        (["european.csv"], "'y;p;seg', has no comma in it: the separator looks like a semicolon (;)"),
        (["european.csv", "european.csv"], "the separator looks like a semicolon (;)"),
        (
            ["tabs.csv"],
            "has no comma in it: the separator looks like a tab. Save it with commas, as .csv, or with tabs",
        ),
        (["commas.tsv"], "has no tab in it: the separator looks like a comma"),
        (["words.csv"], "column 'p' should hold numbers; it has 2 other values, the first of them '50%'"),
    ],
)
def test_files_that_cannot_be_read(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(TABLE)
    for name in ("preds.txt", "preds", "preds.parquet.gz", "junk.parquet", "junk.arrow", "junk.json", "junk.ndjson"):
        write_csv('{"y": ', name)
    write_csv("", "empty.csv")
    write_csv("y,p\n", "headed.csv")
    write_csv("y,p\n1,0.5\n1,0,5\n", "ragged.csv")
    write_csv("y,p,p\n1,0.5,0.25\n", "twins.csv")
    write_csv("y,p\n1,0.5\n1,50%\n0,x\n", "words.csv")
    write_csv("y;p;seg\n1;0,5;a\n0;0,25;b\n", "european.csv")
    write_csv("y\tp\n1\t0.5\n", "tabs.csv")
    write_csv("y,p\n1,0.5\n", "commas.tsv")
    Path("latin.csv").write_bytes("y,p\nZürich,1\n".encode("latin-1"))
    assert words in failure(capsys, "metrics", *arguments, *ROLES)


def test_a_file_broken_in_the_middle(capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"y": [0, 1] * 5000, "p": [i % 97 / 97 for i in range(10_000)]}).write_parquet("preds.parquet")
    content = Path("preds.parquet").read_bytes()
    Path("preds.parquet").write_bytes(content[:20] + b"\xff" * 400 + content[420:])
    assert "cannot read 'preds.parquet'" in failure(capsys, "metrics", "preds.parquet", *ROLES)


def test_empty_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    give_stdin(monkeypatch, b"\n")
    assert "standard input is empty" in failure(capsys, "metrics", "-", *ROLES)
