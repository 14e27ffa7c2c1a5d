"""Segment columns of every type: each value its own row, missing last, back in the type they came in."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calframe
from calframe._errors import ArgumentError, CalframeWarning, ColumnClashError, SegmentError
from tests._tables import LIBRARIES, Maker, approx, column, measure, refuses, rows, types

FOUR = {"y": [1, 0, 1, 0], "p": [0.5, 0.5, 0.5, 0.5]}
UTC = dt.UTC


def counts(frame: Any, key: str = "g") -> dict[Any, int]:
    """Return the rows of each segment."""
    found = rows(frame)
    return dict(zip(found[key], found["n"], strict=True))


def by_key(make: Maker, keys: Any) -> Any:
    return measure(make, {**FOUR, "g": keys}, by="g", metrics="rate")


KEYS = [
    ("text", ["b", "a", None, "b"], {"a": 1, "b": 2, None: 1}),
    ("text that spells missing", ["nan", None, "None", ""], {"": 1, "None": 1, "nan": 1, None: 1}),
    ("case and accents", ["é", "a", "z", "A"], {"A": 1, "a": 1, "z": 1, "é": 1}),
    ("bool", [True, False, True, True], {False: 1, True: 3}),
    ("bool with a gap", [True, False, None, True], {False: 1, True: 2, None: 1}),
    ("integers", [10, 9, 10, -1], {-1: 1, 9: 1, 10: 2}),
    ("integers with a gap", [2, 1, None, 2], {1: 1, 2: 2, None: 1}),
    ("whole floats", [2.0, 1.0, math.nan, 2.0], {1: 1, 2: 2, None: 1}),
    ("NaN and null", [math.nan, None, 1.0, 1.0], {1: 2, None: 2}),
    ("zero of either sign", [0.0, -0.0, 1.0, None], {0: 2, 1: 1, None: 1}),
    ("single precision", np.array([1, 2, np.nan, 1], "float32"), {1: 2, 2: 1, None: 1}),
    ("bytes", np.array([1, 2, 1, 255], "uint8"), {1: 2, 2: 1, 255: 1}),
    ("identifiers", np.arange(10**17, 10**17 + 4), {10**17 + k: 1 for k in range(4)}),
    ("long identifiers", np.arange(4, dtype="uint64") + 2**63, {2**63 + k: 1 for k in range(4)}),
    (
        "times",
        [dt.datetime(2026, 1, 2, 3), dt.datetime(2026, 1, 1), None, dt.datetime(2026, 1, 2, 3)],  # noqa: DTZ001  naive on purpose
        {dt.datetime(2026, 1, 1): 1, dt.datetime(2026, 1, 2, 3): 2, None: 1},  # noqa: DTZ001
    ),
    (
        "times with a zone",
        [dt.datetime(2026, 1, 2, tzinfo=UTC), dt.datetime(2026, 1, 1, tzinfo=UTC), None, None],
        {dt.datetime(2026, 1, 1, tzinfo=UTC): 1, dt.datetime(2026, 1, 2, tzinfo=UTC): 1, None: 2},
    ),
    ("nothing", [None] * 4, {None: 4}),
]


@pytest.mark.parametrize(("keys", "expected"), [case[1:] for case in KEYS], ids=[case[0] for case in KEYS])
def test_a_segment_a_value(make: Maker, keys: Any, expected: dict[Any, int]) -> None:
    found = counts(by_key(make, keys))
    assert list(found.items()) == list(expected.items())


def test_dates(make: Maker) -> None:
    # databases hand pandas its dates as objects
    first, second = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
    found = counts(by_key(make, [second, first, None, second]))
    assert [(key and str(key)[:10], n) for key, n in found.items()] == [
        ("2026-01-01", 1),
        ("2026-01-02", 2),
        (None, 1),
    ]


def test_integers_that_pandas_made_floats_come_back_as_integers(make: Maker) -> None:
    found = by_key(make, [2, 1, None, 2])
    assert types(found)["g"] == nw.Int64
    if make.library == "pandas":
        assert str(found["g"].dtype) == "Int64"


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ([1.5, 2.0, math.nan, 2.0], r"segment column 'g' is a float column with 1 row that .* such as 1\.5"),
        ([1.5, 2.5, None, 2.0], r"segment column 'g' is a float column with 2 rows that .* such as 1\.5"),
        ([math.inf, 2.0, 1.0, 1.0], r"segment column 'g' is a float column with 1 row that .* such as inf"),
        ([1e300, 2.0, 1.0, 1.0], r"segment column 'g' is a float column with 1 row that .* such as 1e\+300"),
        (np.array([0.1, 1, 2, 3], "float32"), r"segment column 'g' is a float column with 1 row that .* such as 0\.1"),
    ],
)
def test_other_floats_are_refused(make: Maker, keys: Any, match: str) -> None:
    refuses(make, {**FOUR, "g": keys}, SegmentError, f"{match}.*cast it to text", reads=True, by="g")


def test_several_keys_are_pairs_not_joined_text(make: Maker) -> None:
    # https://github.com/fairlearn/fairlearn/pull/763
    long = "a" * 60
    table = {**FOUR, "g": ["a_b", "a", long, long], "h": ["c", "b_c", "x", "y"]}
    found = rows(measure(make, table, by=["g", "h"], metrics="rate"))
    pairs = list(zip(found["g"], found["h"], found["n"], strict=True))
    assert pairs == [("a", "b_c", 1), ("a_b", "c", 1), (long, "x", 1), (long, "y", 1)]


def test_missing_keys_sort_last_at_every_level(make: Maker) -> None:
    table = {**FOUR, "g": [None, "a", None, "a"], "h": [None, None, 1, 2]}
    found = rows(measure(make, table, by=("g", "h"), metrics="rate"))
    assert list(zip(found["g"], found["h"], strict=True)) == [("a", 2), ("a", None), (None, 1), (None, None)]


def test_keys_come_in_the_order_asked(make: Maker) -> None:
    table = {"g": ["a"], "h": [1], "y": [1], "p": [0.5]}
    assert list(rows(measure(make, table, by=["h", "g"], metrics="rate")))[:2] == ["h", "g"]


def test_no_key_and_an_empty_list_are_the_whole_table(make: Maker) -> None:
    assert rows(measure(make, FOUR, by=[])) == rows(measure(make, FOUR))


def test_the_label_may_be_a_key(make: Maker) -> None:
    found = rows(measure(make, FOUR, by="y", metrics="rate"))
    assert (found["y"], found["rate"]) == ([0, 1], [0.0, 1.0])


NAMES = [
    "seg.a",
    "seg[b]",
    "seg:Q",
    "it's",
    'say "hi"',
    "a\\b",
    "a`b",
    "new\nline",
    "tab\t",
    "🎯",
    " ",
    "x" * 60,
    "100%",
    "%s",
    "{0}",
    "a,b;c--d",
    "index",
    "null",
    "select",
    "_cf_n",
    "_cf_k0",
    "</script><script>alert(1)</script>",
    "*",
    "$",
    "^p$",
    "^.*$",
]


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_any_name(make: Maker, name: str) -> None:
    keys = {"y": [1, 0, 1], "p": [0.75, 0.25, 0.25], name: ["u", "v", "u"]}
    assert counts(measure(make, keys, by=name, metrics="rate"), name) == {"u": 2, "v": 1}
    scores = {"y": [1, 0, 1], "p": [0.0, 0.0, 0.0], name: [0.75, 0.25, 0.25]}
    found = rows(calframe.metrics(make(scores), label="y", score=[name, "p"], metrics="mean_score"))
    assert (found["model"], found["mean_score"]) == ([name, "p"], [approx(1.25 / 3), 0.0])
    labels = {"p": [0.75, 0.25, 0.25], "y": [0, 0, 0], name: [1, 0, 1]}
    assert column(measure(make, labels, label=name, metrics="rate"), "rate") == [approx(2 / 3)]


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "duckdb"])  # which renames it
def test_a_column_without_a_name(library: str) -> None:
    assert counts(measure(Maker(library), {**FOUR, "": ["u", "v", "u", "u"]}, by="", metrics="rate"), "") == {
        "u": 3,
        "v": 1,
    }


@pytest.mark.parametrize(
    "name", ["n", "n_missing", "n_invalid", "weight_sum", "model", "class", "note", "brier", "ece_low"]
)
def test_a_key_named_like_a_result_is_refused(make: Maker, name: str) -> None:
    match = rf"segment column '{name}' has the name of a result column; rename it, for example to '{name}_'"
    refuses(make, {**FOUR, name: ["a"] * 4}, ColumnClashError, match, reads=False, by=name)


def test_a_result_name_that_is_not_used_is_free(make: Maker) -> None:
    assert column(measure(make, {**FOUR, "n": ["x"] * 4, "BRIER": [1] * 4}, metrics="rate"), "n") == [4]


@pytest.mark.parametrize(
    ("by", "match"),
    [
        (["g", "g"], r"by= names column 'g' twice"),
        ([None], r"by= takes the name of a column .* got NoneType"),
        (3, r"by= takes the name of a column .* got int"),
    ],
)
def test_by_that_is_not(by: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        measure(Maker("polars"), {**FOUR, "g": ["a"] * 4}, by=by)


# ---------------------------------------------------------------- categories: one library, one type each
def categories(values: list[Any], declared: list[Any]) -> dict[str, Any]:
    """Return a table with a categorical key in every form that libraries have."""
    frame = pd.DataFrame({**FOUR, "g": pd.Categorical(values, categories=declared)})
    plain = pl.DataFrame({**FOUR, "g": values})
    text = [None if value is None else str(value) for value in values]
    enum = pl.Series("g", text, dtype=pl.Enum([str(value) for value in declared]))
    cells = ",".join(f"(1, 0.5, {'NULL' if value is None else repr(value)})" for value in text)
    listed = ",".join(repr(str(value)) for value in declared)
    return {
        "pandas": frame,
        "polars enum": plain.with_columns(enum),
        "polars lazy enum": plain.with_columns(enum).lazy(),
        "polars categorical": plain.with_columns(pl.Series("g", text, dtype=pl.Categorical)),
        "pyarrow dictionary": pa.table({**FOUR, "g": pa.array(text).dictionary_encode()}),
        "pandas with a pyarrow dictionary": pd.DataFrame(FOUR).assign(
            g=pd.array(text, dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
        ),
        "duckdb enum": duckdb.connect().sql(
            f"select * from (values {cells}) t(y, p, c), lateral (select c::enum({listed}) as g)"  # noqa: S608
        ),
    }


FORMS = list(categories(["a"] * 4, ["a"]))


def text_counts(frame: Any) -> dict[Any, int]:
    found = calframe.metrics(frame, label="y", score="p", by="g", metrics="rate")
    found = found.collect() if isinstance(found, pl.LazyFrame) else found
    assert types(found)["g"] == nw.String
    return counts(found)


@pytest.mark.parametrize("form", FORMS)
def test_categories_come_back_as_text_in_lexical_order(form: str) -> None:
    frame = categories(["lo", "hi", None, "lo"], ["lo", "hi"])[form]
    assert list(text_counts(frame).items()) == [("hi", 1), ("lo", 2), (None, 1)]


@pytest.mark.parametrize("form", FORMS)
def test_categories_of_numbers_come_back_as_text(form: str) -> None:
    frame = categories([10, 2, None, 1], [2, 10, 1])[form]
    assert list(text_counts(frame)) == ["1", "10", "2", None]


@pytest.mark.parametrize("form", ["pandas", "polars enum", "polars lazy enum", "duckdb enum"])
def test_declared_categories_without_rows_are_named_once(form: str) -> None:
    # https://github.com/JobCollins/fairness_pipeline_dev_toolkit/issues/29
    frame = categories(["a", "a", "b", "b"], ["z", "a", "b", "q"])[form]
    with pytest.warns(CalframeWarning, match=r"'g' declares categories that no row has: 'z', 'q'") as caught:
        found = text_counts(frame)
    assert found == {"a": 2, "b": 2}
    assert len(caught) == 1


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("library", ["pyarrow", "pandas[pyarrow]"])
def test_values_of_a_dictionary_without_rows_are_named(library: str, parts: int) -> None:
    codes = pa.array([1, 2, None, 1], type=pa.int8())
    part = pa.DictionaryArray.from_arrays(codes, ["z", "b", "a"])
    table = pa.table({"y": [1, 0] * 2 * parts, "p": [0.5] * 4 * parts, "g": pa.chunked_array([part] * parts)})
    frame = table if library == "pyarrow" else table.to_pandas(types_mapper=pd.ArrowDtype)
    with pytest.warns(CalframeWarning, match=r"'g' declares categories that no row has: 'z'; they") as caught:
        found = text_counts(frame)
    assert found == {"a": parts, "b": 2 * parts, None: parts}
    assert len(caught) == 1


def test_categories_that_read_the_same_are_told_apart_or_refused() -> None:
    frame = pd.DataFrame({**FOUR, "g": pd.Categorical([1, "1", 1, "1"])})
    with pytest.raises(SegmentError, match="'g'"):
        calframe.metrics(frame, label="y", score="p", by="g")


# ---------------------------------------------------------------- types that one library has
PANDAS_KEYS = [
    (pd.array(["a", "b", None, "a"], dtype="string[pyarrow]"), {"a": 2, "b": 1, None: 1}),
    (pd.array(["a", "b", None, "a"], dtype="string[python]"), {"a": 2, "b": 1, None: 1}),
    (pd.array(["a", "b", None, "a"], dtype="str"), {"a": 2, "b": 1, None: 1}),
    (np.array(["a", "b", None, math.nan], dtype=object), {"a": 1, "b": 1, None: 2}),
    (np.array(["a", pd.NA, None, "a"], dtype=object), {"a": 2, None: 2}),
    (np.array([True, None, False, True], dtype=object), {False: 1, True: 2, None: 1}),
    (np.array([2, None, 1, 2], dtype=object), {1: 1, 2: 2, None: 1}),
    (pd.array([1, 2, None, 1], dtype="Float64"), {1: 2, 2: 1, None: 1}),
    (pd.array([0, 1, 0, 2], dtype="Float64") / pd.array([0, 1, 0, 1], dtype="Float64"), {1: 1, 2: 1, None: 2}),
    (pd.cut([1, 2, 1, 3], [0, 1, 2, 3]), {"(0, 1]": 2, "(1, 2]": 1, "(2, 3]": 1}),
]


@pytest.mark.parametrize(("keys", "expected"), PANDAS_KEYS)
def test_keys_that_only_pandas_has(keys: Any, expected: dict[Any, int]) -> None:
    frame = pd.DataFrame(FOUR).assign(g=keys)
    assert list(counts(calframe.metrics(frame, label="y", score="p", by="g")).items()) == list(expected.items())


def test_a_time_zone_comes_back() -> None:
    keys = pd.to_datetime(["2026-01-01", "2026-01-02", None, "2026-01-01"]).tz_localize("Europe/Paris")
    found = calframe.metrics(pd.DataFrame(FOUR).assign(g=keys), label="y", score="p", by="g")
    assert found["g"].dtype == keys.dtype


@pytest.mark.parametrize(
    "keys",
    [np.array([1, "1", None, 2.5], dtype=object), pd.arrays.IntervalArray.from_breaks(range(5))],
    ids=["mixed", "interval"],
)
def test_keys_that_make_no_segments_in_pandas(keys: Any) -> None:
    with pytest.raises(SegmentError, match=r"segment column 'g'.*Cast it first"):
        calframe.metrics(pd.DataFrame(FOUR).assign(g=keys), label="y", score="p", by="g")


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.string()])
def test_text_of_every_arrow_layout(kind: Any) -> None:
    table = pa.table({**FOUR, "g": pa.array(["b", "a", None, "b"], kind)})
    assert counts(calframe.metrics(table, label="y", score="p", by="g")) == {"a": 1, "b": 2, None: 1}


def test_keys_wider_than_int64() -> None:
    frame = pl.DataFrame({**FOUR, "g": pl.Series([2**64 - 1, 2**64 - 2, None, 1], dtype=pl.UInt64)})
    assert list(counts(calframe.metrics(frame, label="y", score="p", by="g"))) == [1, 2**64 - 2, 2**64 - 1, None]


@pytest.mark.parametrize("keys", [[[1], [2], [1], [2]], [{"a": 1}] * 4], ids=["list", "struct"])
@pytest.mark.parametrize("library", ["pandas[pyarrow]", "polars", "polars[lazy]", "pyarrow", "duckdb"])
def test_nested_keys_are_refused(library: str, keys: Any) -> None:
    match = r"segment column 'g' holds values of type .*Cast it first"
    refuses(Maker(library), {**FOUR, "g": keys}, SegmentError, match, reads=False, by="g")


def test_an_interval_of_time_in_duckdb_is_refused_in_words() -> None:
    relation = duckdb.connect().sql("select 1 as y, 0.5 as p, interval '1 day' as g")
    with pytest.raises(SegmentError, match="'g'"):
        calframe.metrics(relation, label="y", score="p", by="g")
