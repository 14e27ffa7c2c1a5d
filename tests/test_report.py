"""The report as an object: what it holds, how it is kept, shown and printed, and what it leaves alone."""

from __future__ import annotations

import datetime as dt
import json
import re
import webbrowser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.cells import cell_len

import calframe
from calframe import ArgumentError, Report
from tests._reports import HOSTILE, ROLES, eight, full
from tests._tables import Maker, rows

# Verdict


@pytest.mark.parametrize(
    ("positives", "n", "verdict", "ok"),
    [
        (6000, 10_000, "action needed", False),  # 10 points too low
        (5300, 10_000, "watch", None),  # Wilson: 2.0 to 4.0 points
        (52, 100, "undecided", None),
        (5000, 10_000, "within tolerance", True),
    ],
)
def test_a_verdict_is_one_of_four_and_ok_where_it_is_decided(
    positives: int, n: int, verdict: str, *, ok: bool | None
) -> None:
    table = pl.DataFrame({"y": [1] * positives + [0] * (n - positives), "p": [0.5] * n})
    found = calframe.report(table, **ROLES)
    assert (found.verdict, found.ok) == (verdict, ok)
    assert found.to_dict()["verdict"] == verdict


def test_a_report_is_neither_true_nor_false() -> None:
    with pytest.raises(TypeError, match=r"neither true nor false; use \.ok"):
        bool(full())


def test_a_report_equals_itself_alone_and_can_be_a_key() -> None:
    other = calframe.report(eight(), by="group", time="day", **ROLES)
    assert full() == full()
    assert full() != other
    assert len({full(), full(), other}) == 2


# Files


@pytest.mark.parametrize("name", ["report.html", "Report.HTML"])
@pytest.mark.parametrize("kind", [str, Path])
def test_the_page_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type) -> None:
    monkeypatch.setattr(Report, "to_html", lambda _: "<p>日本語</p>\n")
    path = full().save(kind(tmp_path / name))
    assert path == tmp_path / name
    assert path.read_text(encoding="utf-8") == "<p>日本語</p>\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_findings_are_saved_as_json(tmp_path: Path) -> None:
    path = full().save(tmp_path / "findings.json")
    assert json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail) == full().to_dict()


@pytest.mark.parametrize("name", ["report", "report.pdf", "report.html.txt", ".html"])
def test_another_suffix_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"a report is saved as \.html or \.json; got '.*{re.escape(name)}'"):
        full().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"there is no folder '.*nowhere' to save the report in; make it first"):
        full().save(tmp_path / "nowhere" / "findings.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["write_text", "replace"])
def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "findings.json"
    path.write_text("as it was", encoding="utf-8")

    def breaks(self: Path, *_: Any, **__: Any) -> None:
        self.touch()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, step, breaks)
        with pytest.raises(OSError, match="No space left"):
            full().save(path)
    assert path.read_text(encoding="utf-8") == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("opens", [True, False])
def test_show_opens_a_browser_or_says_where_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, opens: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda url: asked.append(url) or opens)
    monkeypatch.setattr(Report, "to_html", lambda _: "<p>page</p>")
    full().show()
    [path] = tmp_path.iterdir()
    assert asked == [path.as_uri()]
    assert path.read_text(encoding="utf-8") == "<p>page</p>"
    assert capsys.readouterr().out == ("" if opens else f"No browser was found; the report is {path}\n")


# Data


def test_the_dictionary_is_json_without_nan() -> None:
    found = full().to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert (found["schema_version"], found["kind"]) == (1, "report")
    assert found["columns"] == {"label": "y", "score": "p", "by": ["group"], "weight": None, "time": "day"}
    assert found["convention"] == {
        "classes": None,
        "posterior": None,
        "positive": None,
        "link": "probability",
        "invalid": "raise",
        "weight": None,
        "weight_kind": None,
        "time_zone": None,
        "ece_bins": 15,
        "closed": "left",
        "interval": "wilson",
    }
    assert found["counts"] == {"rows": 4000, "used": 4000, "missing": 0, "invalid": 0, "zero_weight": 0}
    assert found["comparisons"] == 8
    assert len(found["segments"]) == 8
    assert [period["label"] for period in found["periods"]][::11] == ["Jan 2024", "Dec 2024"]
    assert found["every"] == "1mo"
    assert found["headline"] == full().headline


def test_the_dictionary_holds_the_table() -> None:
    found, table = full().to_dict(), rows(full().table)
    listed = [{"column": ""} | found["overall"], *found["segments"]]
    for name, values in table.items():
        told = [row[name] for row in listed]
        # written with ten digits, which is half a unit of the tenth at most
        assert told == [pytest.approx(value, rel=5.01e-10) if isinstance(value, float) else value for value in values]


@pytest.mark.parametrize("library", ["pandas", "polars", "polars[lazy]", "pyarrow"])
def test_the_same_table_gives_the_same_dictionary(library: str) -> None:
    # whatever the number of threads that add up its rows
    columns = eight(50_000).to_dict(as_series=False)
    data = Maker(library)({name: columns[name] for name in ("y", "p", "group")})
    found = {json.dumps(calframe.report(data, by="group", **ROLES).to_dict()) for _ in range(6)}
    assert len(found) == 1


def test_a_report_of_nothing_is_json_too() -> None:
    table = pl.DataFrame({"y": [None, 1], "p": [0.5, None], "s": ["a", "b"]}, schema_overrides={"y": pl.Int64})
    found = calframe.report(table, by="s", **ROLES).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["overall"]["gap"] is None
    assert found["counts"]["missing"] == 2


def test_a_changed_dictionary_changes_no_report() -> None:
    found = full().to_dict()
    expected = json.dumps(found)
    found["segments"][0]["gap"] = 99.0
    found["overall"].clear()
    found["counts"]["rows"] = -1
    found["columns"]["by"].append("other")
    found["periods"].clear()
    assert json.dumps(full().to_dict()) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"by": ["group", "it's"], "tolerance": 0.02, "alpha": 0.1, "time": "day", "every": "1q"},
        {"weight": 'say "hi"\\', "title": "</script>", "weight_kind": "frequency", "by": "it's"},
        {"label": "answer", "positive": "no", "invalid": "drop"},
    ],
    ids=["roles alone", "groupings and time", "hostile names", "positive"],
)
def test_the_call_makes_the_report_again(arguments: dict[str, Any]) -> None:
    n = pl.int_range(pl.len())
    data = eight(800).with_columns(
        (n % 3).alias('say "hi"\\'),
        (n % 2).cast(pl.String).alias("it's"),
        pl.when(pl.col("y") == 1).then(pl.lit("no")).otherwise(pl.lit("yes")).alias("answer"),
    )
    found = calframe.report(data, **{**ROLES, **arguments})
    call, _, saved = found.call.rpartition(".save(")
    assert saved == '"report.html")'
    again = eval(call, {"calframe": calframe, "data": data})  # noqa: S307  a call that we wrote
    assert again.to_dict() == found.to_dict()
    assert again.call == found.call


def test_a_call_names_what_was_asked_for_alone() -> None:
    found = calframe.report(eight(80), label="y", score="p", by=["group"], tolerance=0.03, engine="streaming")
    assert found.call == "calframe.report(data, label='y', score='p', by=['group']).save(\"report.html\")"


# Text


def check_width(text: str) -> None:
    for line in text.splitlines():
        assert cell_len(line) <= 80, line
        assert line.isprintable()


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_the_text_fits_on_a_terminal(name: str) -> None:
    # One clear gap, whose name is in the sentence too.
    names = [name, *(f"{name}{i}" for i in range(7))]
    found = calframe.report(eight(names=names), by="group", **ROLES)
    assert found.verdict == "action needed"
    text = repr(found)
    check_width(text)
    assert text.startswith("<Report: action needed>\n")
    assert text.count("Over-predicts") == 1
    assert len(text.splitlines()) >= 1 + 1 + 8 + 1


def test_the_text_of_long_column_names_fits_too() -> None:
    for name in HOSTILE:
        table = eight().rename({"group": name})
        check_width(repr(calframe.report(table, by=name, **ROLES)))


def test_the_text_lists_segments_worst_first_and_counts_the_rest() -> None:
    table = eight(25 * 120).with_columns(group=pl.int_range(pl.len()) % 25)
    found = calframe.report(table, by="group", **ROLES)
    lines = repr(found).splitlines()
    segments = [line for line in lines if line.startswith("  group ")]
    assert [line.split()[1] for line in segments] == found.table["segment"].to_list()[1:21]
    assert lines[-2:] == ["  and 5 more in .table", ".show(), .save(path), .to_dict(), .table"]


def test_printing_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Report, "_page", lambda _: pytest.fail("a page was made"))
    repr(full())
    full().to_dict()


# What is left alone


def test_the_input_is_never_changed(make: Maker) -> None:
    columns = eight(80).to_dict(as_series=False) | {"group": ["a", None] * 40}
    columns["day"] = [dt.datetime.combine(day, dt.time()) for day in columns["day"]]
    data = make(columns)
    before = rows(data) if make.library != "duckdb" else rows(data.to_arrow_table())
    calframe.report(data, by="group", time="day", **ROLES).to_dict()
    after = rows(data) if make.library != "duckdb" else rows(data.to_arrow_table())
    assert after == before
    assert list(after) == list(columns)


@pytest.mark.parametrize("score", [["p"], ["p", "q"], None, 3])
def test_a_report_is_about_one_score(score: Any) -> None:
    with pytest.raises(ArgumentError, match=r"a report is about one column of .*; got .*one report for each model"):
        calframe.report(eight(80), label="y", score=score)
