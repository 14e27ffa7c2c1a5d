"""`calframe apply`: calibrated scores beside what was there, batch by batch, from any format to any other."""

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import calframe
from calframe._cli import main
from tests._commands import failure, give_stdin, write_csv

ROOT = Path(__file__).parents[1]
MAP = ["--map", "maps.json"]
# By hand: with two bins, what scores below 0.5 say happens in 1 of 4, what the others say in 3 of 4
TAUGHT = pl.DataFrame({"y": [0, 0, 0, 1, 1, 1, 1, 0], "p": [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]})
NEW = pl.DataFrame({"id": ["007", "1e5", "a,b"], "p": [0.25, 0.5, 1.0], "n": [1, None, 3]})
FOUND = [0.25, 0.75, 0.75]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    calframe.fit(TAUGHT, label="y", score="p", method="histogram", bins=2).save("maps.json")


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command and return what it says on stderr; it prints nothing."""
    assert main(["apply", *arguments]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    return err


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["apply", *arguments]) == 0
    return capsys.readouterr().out


def folder() -> set[str]:
    return {path.name for path in Path().iterdir()}


def read_records(path: str) -> pl.DataFrame:
    return pl.DataFrame([json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()])


READERS: dict[str, Callable[[str], pl.DataFrame]] = {
    "out.parquet": pl.read_parquet,
    "out.csv": lambda path: pl.read_csv(path, schema_overrides={"id": pl.String}),
    "OUT.CSV": lambda path: pl.read_csv(path, schema_overrides={"id": pl.String}),
    "out.tsv": lambda path: pl.read_csv(path, separator="\t", schema_overrides={"id": pl.String}),
    "out.arrow": pl.read_ipc,
    "out.feather": pl.read_ipc,
    "out.ipc": pl.read_ipc,
    "out.ndjson": read_records,
    "out.jsonl": read_records,
}


# what is written


@pytest.mark.parametrize("source", ["new.parquet", "new.csv", "new.tsv", "new.arrow", "new.ndjson", "new.json"])
@pytest.mark.parametrize("name", READERS)
def test_every_format_gives_the_same_table(source: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    writers: dict[str, Any] = {
        "parquet": NEW.write_parquet,
        "csv": NEW.write_csv,
        "tsv": lambda path: NEW.write_csv(path, separator="\t"),
        "arrow": NEW.write_ipc,
        "ndjson": NEW.write_ndjson,
        "json": NEW.write_json,
    }
    writers[source.split(".")[1]](source)
    note, wrote = written(capsys, source, *MAP, "-o", name).splitlines()
    assert note == "Note: 1 row has a score out of the range that the map was fitted on (1 above it)."
    assert wrote.startswith(f"Wrote {name} (3 rows, ")
    assert READERS[name](name).to_dicts() == NEW.with_columns(p_calibrated=pl.Series(FOUND)).to_dicts()
    assert folder() == {source, "maps.json", name}  # nothing half-written is left


def test_fields_of_csv_are_copied_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    # by one row the 10,001st, long after polars would have settled on a type
    rows = [*["007,0.50,1,1.10,x"] * 10_000, '008,1,NA,,"a ""b"", c"', "9, 2.5e-1 ,1e5,z,"]
    write_csv("code,p,late,other,text\n" + "\n".join(rows) + "\n", "new.csv")
    lines = printed(capsys, "new.csv", *MAP).splitlines()
    assert lines[:2] == ["code,p,late,other,text,p_calibrated", "007,0.50,1,1.10,x,0.75"]
    assert lines[-2:] == ['008,1,NA,,"a ""b"", c",0.75', "9, 2.5e-1 ,1e5,z,,0.25"]
    assert len(lines) == 10_003


def test_fields_of_csv_become_numbers_only_where_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    write_csv("code,whole,part,p,date\n007,1,0.5,0.25,2020-01-01\n10,,1,1,2020-01-02\n", "new.csv")
    written(capsys, "new.csv", *MAP, "-o", "out.parquet")
    assert pl.read_parquet("out.parquet").to_dict(as_series=False) == {
        "code": ["007", "10"],
        "whole": [1, None],
        "part": [0.5, 1.0],
        "p": [0.25, 1.0],
        "date": ["2020-01-01", "2020-01-02"],
        "p_calibrated": [0.25, 0.75],
    }


def test_stdout_is_csv_and_standard_input_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give_stdin(monkeypatch, NEW.write_csv().encode())
    expected = 'id,p,n,p_calibrated\n007,0.25,1,0.25\n1e5,0.5,,0.75\n"a,b",1.0,3,0.75\n'
    assert printed(capsys, "-", *MAP) == expected
    NEW.write_parquet("new.parquet")
    assert printed(capsys, "new.parquet", *MAP) == expected
    NEW.clear().write_parquet("new.parquet")
    assert printed(capsys, "new.parquet", *MAP) == "id,p,n,p_calibrated\n"


def test_a_table_without_rows_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    NEW.clear().write_parquet("new.parquet")
    assert written(capsys, "new.parquet", *MAP, "-o", "out.parquet").startswith("Wrote out.parquet (0 rows, ")
    found = pl.read_parquet("out.parquet")
    assert found.schema == {**NEW.schema, "p_calibrated": pl.Float64}
    assert found.height == 0


def test_globs_and_several_files_make_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    NEW.head(2).write_parquet("part1.parquet")
    NEW.tail(1).write_parquet("part2.parquet")
    for files in (["part*.parquet"], ["part1.parquet", "part2.parquet"]):
        written(capsys, *files, *MAP, "-o", "out.parquet")
        assert pl.read_parquet("out.parquet")["p_calibrated"].to_list() == FOUND


@pytest.mark.parametrize(
    ("method", "classes"),
    [
        (method, False)
        for method in ("identity", "platt", "temperature", "beta", "isotonic", "histogram", "spline", "venn_abers")
    ]
    + [(method, True) for method in ("temperature", "matrix", "structured", "ovr_isotonic")],
)
@pytest.mark.parametrize("by", [None, "seg", ["seg", "day"]])
def test_every_map_is_applied_as_the_function_does(
    method: str,
    classes: bool,  # noqa: FBT001
    by: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = pl.int_range(900, eager=True)
    parts = pl.DataFrame({f"p{i}": 1 + (place * step) % 17 for i, step in enumerate((3, 5, 7))})
    table = parts.select(pl.all() / pl.sum_horizontal(pl.all())).with_columns(
        y=(place * 29) % (3 if classes else 2),
        p=(1 + (place * 37) % 99) / 101,
        seg=pl.Series([*"abcdef"] * 150),
        day=pl.date(2020, 1, 1) + pl.duration(days=place % 2),
    )
    score: Any = {i: f"p{i}" for i in range(3)} if classes else "p"
    the_map = calframe.fit(table, label="y", score=score, method=method, by=by)
    the_map.save("maps.json")
    table = table.with_columns(seg=pl.when(place > 3).then("seg")).sample(fraction=1.0, shuffle=True, seed=1)
    table.write_parquet("new.parquet")
    written(capsys, "new.parquet", *MAP, "--name", "q", "-o", "out.parquet")
    expected = the_map.apply(table, name="q")
    found = pl.read_parquet("out.parquet")
    assert found.columns == expected.columns
    assert found.equals(expected)


def test_columns_keep_their_names_whatever_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    names = {"p": "^p.*$", "y": "*"}
    calframe.fit(TAUGHT.rename(names), label="*", score="^p.*$", method="histogram", bins=2).save("maps.json")
    TAUGHT.rename(names).write_csv("new.csv")
    lines = printed(capsys, "new.csv", *MAP).splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("*,^p.*$,p_calibrated", "0,0.1,0.25", "0,0.9,0.75")


# segments


def segmented(values: list[Any]) -> None:
    """Save a map of segments: a score of 0.5 came true in 3 of 4 cases of the first, in 1 of 4 of the second."""
    table = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0, 0, 1], "p": [0.5] * 8, "g": values * 4})
    the_map = calframe.fit(table, label="y", score="p", by="g", method="histogram", bins=1, pooling="none")
    the_map.save("maps.json")


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        (["a", "b"], ["a", "b"]),
        (["10", "9"], ["10", "9"]),  # all of them look like numbers, and are none
        (["007", "10"], ["007", "10"]),
        ([10, 9], ["10", "9.0"]),
        ([True, False], ["TRUE", "false"]),
        ([dt.date(2020, 1, 1), dt.date(2020, 1, 2)], ["2020-01-01", "2020-01-02"]),
        ([dt.datetime(2020, 1, 1, 8), dt.datetime(2020, 1, 2)], ["2020-01-01 08:00", "2020-01-02"]),  # noqa: DTZ001
        (
            [dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC), dt.datetime(2020, 1, 2, tzinfo=dt.UTC)],
            ["2020-01-01T09:00+01:00", "2020-01-02T00:00Z"],
        ),
        ([dt.time(8), dt.time(9)], ["08:00:00", "09:00:00"]),
    ],
)
@pytest.mark.parametrize("name", ["out.csv", "out.ndjson"])
def test_segments_of_text_files_are_those_of_the_map(
    values: list[Any], fields: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    segmented(values)
    write_csv(f"p,g\n0.5,{fields[0]}\n0.5,{fields[1]}\n0.5,\n", "new.csv")
    said = written(capsys, "new.csv", *MAP, "-o", name)
    assert READERS[name](name)["p_calibrated"].to_list() == [0.75, 0.25, 0.5]
    assert said.startswith("Note: 1 row belongs to no segment of the map; it takes the pooled one.\nWrote out.")


def test_rows_without_a_score_or_a_segment_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    segmented(["a", "b"])
    table = {"p": [0.5, 0.5, 0.5, None, float("nan")], "g": ["a", "c", None, "b", "b"]}
    pl.DataFrame(table).write_parquet("new.parquet")
    assert written(capsys, "new.parquet", *MAP, "-o", "out.parquet").splitlines()[:2] == [
        "Note: 2 rows have no score, so they have no calibrated one.",
        "Note: 2 rows belong to no segment of the map; they take the pooled one.",
    ]
    assert pl.read_parquet("out.parquet")["p_calibrated"].to_list() == [0.75, 0.5, 0.5, None, None]
    assert main(["apply", "new.parquet", *MAP]) == 0
    assert capsys.readouterr().err.startswith("Note: 2 rows have no score, so they have no calibrated one.\nNote: 2 ro")


# streams


def long_table(rows: int = 600_000) -> pl.DataFrame:
    place = pl.int_range(rows, eager=True)
    return pl.DataFrame({"id": place, "p": (place * 37 % 1009) / 1009, "g": (place % 40).cast(pl.String)})


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow", "out.ndjson"])
@pytest.mark.parametrize("source", ["new.parquet", "new.csv"])
def test_rows_pass_in_batches_and_in_order(
    source: str, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = long_table()
    taught = table.head(4000).with_columns(y=pl.col("id") * 7 % 11 % 2)
    the_map = calframe.fit(taught, label="y", score="p", by="g", method="isotonic")
    the_map.save("maps.json")
    if source == "new.csv":
        table.write_csv(source)
    else:
        table.write_parquet(source, row_group_size=50_000)
    passed: list[Any] = []
    monkeypatch.setattr("calframe._cli._apply._say", lambda counts, _output: passed.append(counts))
    written(capsys, source, *MAP, "-o", name)
    assert sum(passed[0].rows) == table.height
    assert max(passed[0].rows) <= table.height // 3  # never the whole column at once
    found = pl.read_ndjson(name) if name == "out.ndjson" else READERS[name](name)
    assert found["id"].cast(pl.Int64).to_list() == table["id"].to_list()
    assert (found["p_calibrated"] - the_map.apply(table)["p_calibrated"]).abs().max() == 0.0


def test_stdout_keeps_the_order_of_many_batches(capsys: pytest.CaptureFixture[str]) -> None:
    long_table().write_parquet("new.parquet", row_group_size=50_000)
    lines = printed(capsys, "new.parquet", *MAP).splitlines()
    assert [int(line.split(",")[0]) for line in lines[1:]] == list(range(600_000))


@pytest.mark.skipif(os.name == "nt", reason="no pipes of this kind")
def test_a_reader_that_goes_away_is_no_error() -> None:
    long_table().write_parquet("new.parquet", row_group_size=50_000)
    command = [sys.executable, "-m", "calframe", "apply", "new.parquet", *MAP]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"id,p,g,p_calibrated\n"
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, b"")


def test_text_is_utf8_whatever_the_terminal_speaks() -> None:
    pl.DataFrame({"p": [0.25], "city": ["Zürich – 東京"]}).write_parquet("new.parquet")
    command = [sys.executable, "-m", "calframe", "apply", "new.parquet", *MAP]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, check=True, capture_output=True, env=environment)
    assert done.stdout.decode("utf-8") == "p,city,p_calibrated\n0.25,Zürich – 東京,0.25\n"


# errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["new.parquet"], "Missing option '--map'"),
        (["new.parquet", "--map", "nowhere.json"], "File 'nowhere.json' does not exist"),
        (["new.parquet", "--map", "new.csv"], "'new.csv' is no calibration map: it is not JSON"),
        (["new.parquet", "--map", "other.json"], "'other.json' is no calibration map: it has no schema"),
        (["new.parquet", "--map", "later.json"], "is a calibration map of version 99"),
        (["nowhere.parquet", *MAP], "no file 'nowhere.parquet'"),
        (["new.parquet", *MAP, "-o", "out.json"], "it must be one of .parquet .csv .tsv .arrow .feather .ipc .ndjson"),
        (["new.parquet", *MAP, "-o", "nowhere/out.csv"], "there is no folder 'nowhere'"),
        (["new.parquet", *MAP, "-o", "."], "is a folder; name a file in it"),
        (["new.csv", *MAP, "-o", "./new.csv"], "is also read; write to another file"),
        (["n*.csv", *MAP, "-o", "new.csv"], "is also read; write to another file"),
        (["new.csv", "--map", "maps.ndjson", "-o", "maps.ndjson"], "is also read; write to another file"),
        (["new.parquet", *MAP, "--name", "id"], "has a column 'id' already; pass another --name, or drop that column"),
        (["named.parquet", *MAP], "no column 'p', which the map takes as its score. Did you mean 'P'?"),
        (["twins.csv", *MAP], "two columns are called 'x'; rename one of them in the file"),
        (["words.csv", *MAP], "column 'p' should hold numbers; it has 2 other values, the first of them '50%'"),
        (["latin.csv", *MAP], "Save it as UTF-8 first"),
        (["percent.parquet", *MAP], "scores must lie in [0, 1]: column 'p' runs from"),
        (
            ["percent.parquet", *MAP, "-o", "out.parquet"],
            "outside. The map was fitted on probabilities: give it those of",
        ),
        (["percent.parquet", *MAP, "-o", "out.ndjson"], "same model. Rows are counted in a part of the table.\n"),
        (["negative.parquet", *MAP, "-o", "out.csv"], "column 'p' runs from -0.5 to"),
        (["broken.parquet", *MAP, "-o", "out.csv"], "cannot read 'broken.parquet'"),
        (
            ["lists.parquet", *MAP],
            "column 'v' has type List(Float64), which CSV cannot hold; write to a file that ends",
        ),
        (["lists.parquet", *MAP, "-o", "out.tsv"], "which TSV cannot hold"),
        (["bytes.parquet", *MAP, "-o", "out.ndjson"], "column 'v' has type Binary, which NDJSON cannot hold"),
    ],
)
def test_what_cannot_run_says_why_and_writes_nothing(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    NEW.write_parquet("new.parquet")
    NEW.write_csv("new.csv")
    NEW.rename({"p": "P"}).write_parquet("named.parquet")
    late = pl.concat([NEW.select("p")] * 100_000)  # the wrong score comes last
    pl.concat([late, pl.DataFrame({"p": [50.0]})]).write_parquet("percent.parquet", row_group_size=50_000)
    pl.concat([late, pl.DataFrame({"p": [-0.5]})]).write_parquet("negative.parquet", row_group_size=50_000)
    NEW.with_columns(v=pl.concat_list("p")).write_parquet("lists.parquet")
    NEW.with_columns(v=pl.lit(b"\xff")).write_parquet("bytes.parquet")
    long_table().write_parquet("broken.parquet", row_group_size=50_000)
    content = bytearray(Path("broken.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 20_000] = b"\xff" * 20_000
    Path("broken.parquet").write_bytes(content)
    write_csv("p,x,x\n0.5,1,2\n", "twins.csv")
    write_csv("p\n0.5\n50%\nx\n", "words.csv")
    Path("latin.csv").write_bytes("city,p\nZürich,0.5\n".encode("latin-1"))
    write_csv("{}", "other.json")
    saved = Path("maps.json").read_text(encoding="utf-8")
    write_csv(saved, "maps.ndjson")
    write_csv(saved.replace('"schema_version": 1', '"schema_version": 99'), "later.json")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert words in failure(capsys, "apply", *arguments)
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize(
    ("values", "table", "words"),
    [
        (["a", "b"], {"p": [0.5]}, "no column 'g', which the map takes as a segment; the table has 'p'."),
        (
            [1, 2],
            {"p": [0.5], "g": ["1"]},
            "segment column 'g' has type String, and the map was fitted on numbers (Int64)",
        ),
    ],
)
def test_segments_that_the_map_cannot_know(
    values: list[Any], table: dict[str, list[Any]], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    segmented(values)
    pl.DataFrame(table).write_parquet("new.parquet")
    assert words in failure(capsys, "apply", "new.parquet", *MAP)


def test_segments_of_another_type_in_text(capsys: pytest.CaptureFixture[str]) -> None:
    segmented([1, 2])
    file = write_csv("p,g\n0.5,1\n0.5,one\n", "new.csv")
    assert (
        "column 'g' should hold whole numbers, as the map has them; it has 1 other value, the first of them 'one'"
        in (failure(capsys, "apply", file, *MAP))
    )


@pytest.mark.skipif(os.name == "nt", reason="no limits of this kind")
@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow", "out.ndjson"])
def test_a_full_disk_is_told_from_a_broken_file(name: str) -> None:
    long_table().write_parquet("new.parquet", row_group_size=50_000)
    before = folder()
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)); "
        "from calframe._cli import main; "
        f"sys.exit(main(['apply', 'new.parquet', '--map', 'maps.json', '-o', {name!r}]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)
    said = f"Error: cannot write '{name}': the disk is full, or your share of it.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert folder() == before  # nothing half-written is left


def test_help_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
