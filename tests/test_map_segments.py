"""Segments of maps: keys of every type find their rows in every library, and nothing else does.

The map is a histogram of one bin: the calibrated score of a segment is its rate of positives, which is counted by hand.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calframe
from tests._fitted_maps import collected
from tests._tables import LIBRARIES, approx, objects

RATE = {"first": 1 / 4, "second": 3 / 4, "all": 6 / 10}  # of 4 rows each, and with the two rows without a key
BERLIN = ZoneInfo("Europe/Berlin")
ODD = 'it\'s "é"; DROP TABLE t; --\\ {0} %s\n'

# The two keys that the map knows, one that it does not, and their type.
KEYS: dict[str, tuple[list[Any], Any]] = {
    "text": (["a", "b", "c"], pl.String),
    "odd text": ([ODD, "", "É"], pl.String),
    "numbers as text": (["1", "01", "1.0"], pl.String),
    "categorical": (["a", "b", "c"], pl.Categorical),
    "enum": (["a", "b", "c"], pl.Enum(["c", "b", "a"])),
    "bool": ([True, False, None], pl.Boolean),
    "int8": ([-128, 127, 0], pl.Int8),
    "int16": ([-(2**15), 2**15 - 1, 0], pl.Int16),
    "int32": ([-(2**31), 2**31 - 1, 0], pl.Int32),
    "int64": ([-(2**63), 2**63 - 1, 0], pl.Int64),
    "int64 beyond floats": ([2**53, 2**53 + 1, 2**53 + 2], pl.Int64),
    "uint8": ([0, 255, 1], pl.UInt8),
    "uint16": ([0, 2**16 - 1, 1], pl.UInt16),
    "uint32": ([0, 2**32 - 1, 1], pl.UInt32),
    "uint64": ([2**63 - 1, 2**64 - 1, 2**63], pl.UInt64),
    "whole floats": ([1.0, -2.0, 3.0], pl.Float64),
    "narrow floats": ([1.0, -2.0, 3.0], pl.Float32),
    "date": ([dt.date(2024, 2, 29), dt.date(1900, 1, 1), dt.date(2024, 3, 1)], pl.Date),
    "datetime": ([dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(1900, 1, 1), dt.datetime(2024, 2, 29)], pl.Datetime("us")),  # noqa: DTZ001, E501
    "datetime with a zone": (
        [dt.datetime(2024, 7, 1, 12, tzinfo=BERLIN), dt.datetime(2024, 1, 1, tzinfo=BERLIN), dt.datetime(2024, 7, 1, tzinfo=BERLIN)],  # noqa: E501
        pl.Datetime("us", "Europe/Berlin"),
    ),
    "time": ([dt.time(1, 2, 3), dt.time(0), dt.time(23, 59, 59, 999999)], pl.Time),
    "decimal": ([decimal.Decimal("1.10"), decimal.Decimal("-2.25"), decimal.Decimal("1.11")], pl.Decimal(10, 2)),
}  # fmt: skip


def keyed(library: str, values: list[Any], dtype: Any, **columns: Any) -> Any:
    """Return a table of a library with segments k."""
    return table_of(library, pl.DataFrame({"k": pl.Series("k", values, dtype=dtype), **columns}))


def table_of(library: str, frame: pl.DataFrame) -> Any:
    """Return a polars table in another library, its types kept."""
    makers = {
        "polars": lambda: frame,
        "polars[lazy]": frame.lazy,
        "pyarrow": frame.to_arrow,
        "duckdb": lambda: relation_of(frame),
        "pandas[pyarrow]": lambda: frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype),
        "pandas[nullable]": lambda: pandas_of(frame).convert_dtypes(),
        "pandas": lambda: pandas_of(frame),
    }
    return makers[library]()


def relation_of(frame: pl.DataFrame) -> duckdb.DuckDBPyRelation:
    table = frame.to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_time(field.type):  # DuckDB's own type of times has microseconds
            table = table.set_column(place, field.name, table.column(place).cast(pa.time64("us")))
    return duckdb.connect().from_arrow(table)


def pandas_of(frame: pl.DataFrame) -> pd.DataFrame:
    """Return a pandas frame: dates as objects, and whole numbers with gaps, which would become floats, as nullable."""
    made = frame.to_pandas()
    for name, dtype in frame.schema.items():
        if dtype == pl.Date:
            made[name] = objects(*frame[name])
        elif dtype.is_integer() and frame[name].null_count():
            made[name] = pd.array(frame[name].to_list(), dtype=f"{'U' if dtype.is_unsigned_integer() else ''}Int64")
    return made


def train(library: str, kind: str) -> calframe.CalibrationMap:
    (first, second, _), dtype = KEYS[kind]
    values = [first] * 4 + [second] * 4 + [None] * 2
    table = keyed(library, values, dtype, y=[0, 0, 0, 1, 1, 1, 1, 0, 1, 1], p=[0.5] * 10)
    return fitted(table)


def fitted(table: Any, by: Any = "k") -> calframe.CalibrationMap:
    return calframe.fit(table, label="y", score="p", by=by, method="histogram", bins=1, pooling="none")


def rates(table: Any, found: calframe.CalibrationMap) -> list[Any]:
    return collected(calframe.apply(table, found))["p_calibrated"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_find_their_rows(library: str, kind: str, tmp_path: Path) -> None:
    (first, second, other), dtype = KEYS[kind]
    fresh = keyed(library, [second, first, other, None, second], dtype, p=[0.5] * 5)
    want = approx([RATE["second"], RATE["first"], RATE["all"], RATE["all"], RATE["second"]])
    for home in ("polars", library):  # fitted elsewhere, and on the same kind of table
        found = train(home, kind)
        assert rates(fresh, found) == want
        assert rates(fresh, calframe.load_map(found.save(tmp_path / "map.json"))) == want


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KEYS)
def test_tables_of_a_map_have_its_keys(library: str, kind: str) -> None:
    found = train(library, kind)
    for table in (found.table, found.summary()):
        told = dict(zip(collected(table)["k"], collected(table)["n"], strict=True))
        assert sorted(told.values()) == [4, 4, 10]
        assert told[None] == 10


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KEYS)
def test_a_map_fitted_on_one_library_serves_another(library: str, kind: str) -> None:
    (first, second, other), dtype = KEYS[kind]
    fresh = pl.DataFrame({"k": pl.Series([other, second, None, first], dtype=dtype), "p": [0.5] * 4})
    want = [RATE["all"], RATE["second"], RATE["all"], RATE["first"]]
    assert rates(fresh, train(library, kind)) == approx(want)


@pytest.mark.parametrize("kind", KEYS)
def test_sql_finds_the_same_keys(kind: str) -> None:
    (first, second, other), dtype = KEYS[kind]
    fresh = pl.DataFrame({"k": pl.Series([other, second, None, first], dtype=dtype), "p": [0.5] * 4}).with_row_index()
    connection = duckdb.connect()
    connection.register("t", fresh.to_arrow())
    out = connection.sql(f"SELECT p_calibrated FROM ({train('polars', kind).to_sql()}) ORDER BY index").fetchall()  # noqa: S608
    assert [value for (value,) in out] == approx([RATE["all"], RATE["second"], RATE["all"], RATE["first"]])


PANDAS: dict[str, Any] = {
    "object": lambda values: pd.Series(values, dtype=object),
    "string": lambda values: pd.Series(values, dtype="string"),
    "str": lambda values: pd.Series(values, dtype="str"),
    "category": lambda values: pd.Series(values, dtype="category"),
}


@pytest.mark.parametrize("kind", PANDAS)
def test_text_of_pandas(kind: str) -> None:
    table = pd.DataFrame({"k": PANDAS[kind](["b", "a", "c", None]), "p": 0.5})
    assert rates(table, train("polars", "text")) == approx([RATE["second"], RATE["first"], RATE["all"], RATE["all"]])


@pytest.mark.parametrize("dtype", ["Int64", "Int8", "int64", "float64", "object", "UInt16", "Float32"])
def test_whole_numbers_of_pandas(dtype: str) -> None:
    (first, second, _), _ = KEYS["whole floats"]
    found = train("polars", "whole floats")
    values = [first, second] if dtype != "UInt16" else [first]
    table = pd.DataFrame({"k": pd.Series([int(v) for v in values], dtype=dtype), "p": 0.5})
    assert rates(table, found) == approx([RATE["first"], RATE["second"]][: len(values)])


def test_whole_numbers_with_gaps_of_pandas() -> None:
    table = pd.DataFrame({"k": [1.0, np.nan, -2.0, 1.5], "p": 0.5})
    want = [RATE["first"], RATE["all"], RATE["second"], RATE["all"]]
    assert rates(table, train("polars", "whole floats")) == approx(want)


def test_categories_that_are_numbers_are_text() -> None:
    table = pd.DataFrame({"k": pd.Categorical([1, 1, 1, 1, 2, 2, 2, 2, None, None]), "p": 0.5})
    found = fitted(table.assign(y=[0, 0, 0, 1, 1, 1, 1, 0, 1, 1]))
    assert rates(table.iloc[[0, 4, 8]], found) == approx([RATE["first"], RATE["second"], RATE["all"]])


def test_times_of_pandas() -> None:
    found = train("polars", "datetime")
    for unit in ("s", "ms", "us", "ns"):
        times = pd.Series(pd.to_datetime(["1900-01-01", "2024-02-29", None])).astype(f"datetime64[{unit}]")
        assert rates(pd.DataFrame({"k": times, "p": 0.5}), found) == approx([RATE["second"], RATE["all"], RATE["all"]])


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_of_another_unit_are_equal_or_not(unit: Any) -> None:
    (first, second, _), _ = KEYS["datetime"]  # the first has microseconds
    times = pl.Series([first, second], dtype=pl.Datetime(unit))
    want = [RATE["all"] if unit == "ms" else RATE["first"], RATE["second"]]
    assert rates(pl.DataFrame({"k": times, "p": [0.5] * 2}), train("polars", "datetime")) == approx(want)


def test_a_nanosecond_later_is_another_time() -> None:
    (first, *_), _ = KEYS["datetime"]
    times = pl.Series([first, first], dtype=pl.Datetime("ns")).to_physical() + pl.Series([0, 1])
    table = pl.DataFrame({"k": times.cast(pl.Datetime("ns")), "p": [0.5] * 2})
    assert rates(table, train("polars", "datetime")) == approx([RATE["first"], RATE["all"]])


def test_one_moment_in_two_zones_is_one_key() -> None:
    (first, second, _), _ = KEYS["datetime with a zone"]
    times = pl.Series([first, second]).cast(pl.Datetime("us", "America/New_York"))
    found = train("polars", "datetime with a zone")
    assert rates(pl.DataFrame({"k": times, "p": [0.5] * 2}), found) == approx([RATE["first"], RATE["second"]])


def test_fractions_are_not_whole_numbers() -> None:
    found = train("polars", "int8")  # keys -128 and 127
    table = pl.DataFrame({"k": [127.0, 127.5, -128.0, float("nan"), float("inf"), -0.0, None], "p": [0.5] * 7})
    want = [RATE["second"], RATE["all"], RATE["first"], *[RATE["all"]] * 4]
    assert rates(table, found) == approx(want)
    assert rates(duckdb.connect().from_arrow(table.to_arrow()), found) == approx(want)


def test_zero_has_no_sign() -> None:
    table = pl.DataFrame({"k": [0.0] * 4 + [1.0] * 4, "p": [0.5] * 8, "y": [0, 0, 0, 1, 1, 1, 1, 0]})
    assert rates(pl.DataFrame({"k": [-0.0, 1.0], "p": [0.5, 0.5]}), fitted(table)) == approx([0.25, 0.75])


def test_keys_out_of_reach_of_a_type_do_not_wrap() -> None:
    table = pl.DataFrame({"k": [300] * 4 + [44] * 4, "p": [0.5] * 8, "y": [0, 0, 0, 1, 1, 1, 1, 0]})
    fresh = pl.DataFrame({"k": pl.Series([44, 255], dtype=pl.UInt8), "p": [0.5, 0.5]})  # 300 is 44 modulo 256
    assert rates(fresh, fitted(table)) == approx([0.75, 0.5])


def test_a_column_of_nulls_takes_the_pooled_map() -> None:
    for kind in KEYS:
        for column in (pl.Series([None, None]), pl.Series([None, None], dtype=KEYS[kind][1])):
            assert rates(pl.DataFrame({"k": column, "p": [0.5, 0.5]}), train("polars", kind)) == approx([0.6, 0.6])


NAMES = ["^a.*$", "*", "two words", 'a "quoted" name', "semi;colon", "it's", "é", "{brace}", "a.b", "select", "_cf"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns_are_never_patterns_nor_sql(library: str, name: str, tmp_path: Path) -> None:
    score = f"{name} score"
    columns = {"alpha": [1, 2, 3], name: ["a", "b", "c"], score: [0.5, 0.5, 0.5]}
    known = pl.DataFrame({name: ["a"] * 4 + ["b"] * 4, score: [0.5] * 8, "y": [0, 0, 0, 1, 1, 1, 1, 0]})
    for home in ("polars", library):
        table = table_of(home, known)
        made = calframe.fit(table, label="y", score=score, by=name, method="histogram", bins=1, pooling="none")
        assert list(dict.fromkeys(collected(made.table)[name])) == [None, "a", "b"]
        for found in (made, calframe.load_map(made.save(tmp_path / "map.json"))):
            out = collected(calframe.apply(table_of(library, pl.DataFrame(columns)), found, name=f"{name} new"))
            assert out == {**columns, f"{name} new": approx([0.25, 0.75, 0.5])}


@pytest.mark.parametrize("name", NAMES)
def test_words_and_lines_know_such_names(name: str) -> None:
    known = pl.DataFrame({name: ["a"] * 4 + ["b"] * 4, "p": [0.5] * 8, "y": [0, 0, 0, 1, 1, 1, 1, 0]})
    found = fitted(known, name)
    assert collected(found.summary())[name][1:] == ["a", "b"]
    drawn = {value for data in found.plot().to_dict()["datasets"].values() for row in data for value in row.values()}
    assert {"a", "b"} <= drawn


def test_several_columns_are_one_key(make: Any) -> None:
    # all pairs of two letters and two numbers but one; the rate of each is told by its place
    pairs = [("a", 1), ("a", 2), ("b", 1)]
    rows = [(g, h, int(i > place)) for place, (g, h) in enumerate(pairs) for i in range(4)]
    g, h, y = zip(*rows, strict=True)
    found = fitted(pl.DataFrame({"g": g, "h": h, "y": y, "p": [0.5] * 12}), by=["g", "h"])
    fresh = {"h": [1, 2, 1, 2, None, 1], "g": ["b", "a", "a", "b", "a", None], "p": [0.5] * 6}
    assert rates(make(fresh), found) == approx([1 / 4, 2 / 4, 3 / 4, 0.5, 0.5, 0.5])


def test_the_order_of_segment_columns_does_not_matter() -> None:
    table = pl.DataFrame(
        {"g": ["a", "a", "b", "b"] * 2, "h": [1, 2] * 4, "y": [0, 1, 1, 0, 0, 1, 1, 1], "p": [0.5] * 8}
    )
    assert rates(table, fitted(table, ["g", "h"])) == rates(table, fitted(table, ["h", "g"]))


@functools.cache
def crossed() -> tuple[calframe.CalibrationMap, pl.DataFrame]:
    """Return a map of 2000 segments of three columns of 2000 values each: 8e9 combinations."""
    number = np.arange(2000)
    keys = {"a": number, "b": (number * 7) % 2000, "c": [f"c{i}" for i in (number * 13) % 2000]}
    once = pl.DataFrame(keys | {"p": np.full(2000, 0.5)})
    return fitted(with_labels(once, "a"), ["a", "b", "c"]), once


def with_labels(once: pl.DataFrame, key: str) -> pl.DataFrame:
    """Return each row three times, with one positive, or with two where its key is odd."""
    return pl.concat([once.with_columns(y=pl.lit(y) if y < 2 else (pl.col(key) % 2).cast(pl.Int32)) for y in range(3)])


def test_more_combinations_than_a_table_holds(make: Any) -> None:
    found, once = crossed()
    assert rates(make(once.to_dict(as_series=False)), found) == approx([1 / 3, 2 / 3] * 1000)


def test_combinations_that_were_not_seen_take_the_pooled_map() -> None:
    found, once = crossed()
    shifted = once.with_columns(c=pl.col("c").shift(1))
    assert rates(shifted, found) == approx([0.5] * 2000)


def test_ten_columns_of_many_values() -> None:
    # 1000 ** 10 combinations are more than a whole number of 64 bits holds
    number = np.arange(1000)
    names = [f"k{i}" for i in range(10)]
    once = pl.DataFrame({name: (number * (2 * i + 1)) % 1000 for i, name in enumerate(names)} | {"p": [0.5] * 1000})
    assert rates(once, fitted(with_labels(once, "k0"), names)) == approx([1 / 3, 2 / 3] * 500)


def test_keys_far_apart_are_found() -> None:
    table = pl.DataFrame({"k": [-(2**62)] * 4 + [2**62] * 4, "p": [0.5] * 8, "y": [0, 0, 0, 1, 1, 1, 1, 0]})
    fresh = pl.DataFrame({"k": [2**62, -(2**62), 0, 2**63 - 1, -(2**63)], "p": [0.5] * 5})
    assert rates(fresh, fitted(table)) == approx([0.75, 0.25, 0.5, 0.5, 0.5])


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_kept_in_the_file_as_they_are(kind: str, tmp_path: Path) -> None:
    found = train("polars", kind)
    again = calframe.load_map(found.save(tmp_path / "map.json"))
    (key,), (read,) = found.segments.keys, again.segments.keys
    assert read.to_list() == key.to_list()
    assert read.dtype.base_type() == key.dtype.base_type()
    assert json.loads((tmp_path / "map.json").read_text(encoding="utf-8"))["segments"]["keys"][0]["name"] == "k"


def test_the_segments_are_told_in_the_table(make: Any) -> None:
    data = make({"k": ["b", "a", "a", "a", None], "p": [0.5] * 5, "y": [1, 0, 1, 1, 1]})
    table = collected(fitted(data).table)
    told = dict(zip(table["k"], zip(table["n"], table["value"], table["note"], strict=True), strict=True))
    assert told[None] == (5, approx(4 / 5), "all rows together: only one score")
    assert told["a"] == (3, approx(2 / 3), "only one score")
    assert told["b"] == (1, None, "only one class: takes the pooled map")
    assert list(told) == [None, "a", "b"]
