"""What result objects share: JSON that every parser reads, tables in the user's library, text that stays text."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import decimal
import json
import math
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calframe
from calframe._results import SCHEMA_VERSION, html_table, json_ready, like, records, to_polars
from tests._markup import Document
from tests._tables import LIBRARIES, Maker, rows

TABLE = pl.DataFrame(
    {
        "g": ["a", None],
        "n": [2, 0],
        "gap": [0.25, None],
        "shown": [True, False],
        "none": pl.Series([None, None], dtype=pl.Float64),
    }
)


# JSON


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (-0.0, 0.0),
        (np.float64(0.1), 0.1),
        (True, True),
        (None, None),
        ("</script>", "</script>"),
        (dt.date(2026, 1, 31), "2026-01-31"),
        (dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "2026-01-31T12:00:00+00:00"),
        (dt.time(12, 30), "12:30:00"),
        (dt.timedelta(hours=1), "1:00:00"),
        (decimal.Decimal("0.10"), "0.10"),
        ((1, math.nan), [1, None]),
        ({"a": {1: [math.inf]}}, {"a": {"1": ["Infinity"]}}),
    ],
)
def test_every_value_has_its_json(value: Any, expected: Any) -> None:
    found = json_ready(value)
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint64, np.float32, np.bool_])
def test_numpy_values_are_numbers(kind: Callable[[int], Any]) -> None:
    found = json_ready(kind(1))
    assert found == 1
    assert json.loads(json.dumps(found)) == 1


NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(NESTED)
def test_anything_nested_is_strict_json_and_is_left_as_it_was(value: Any) -> None:
    before = repr(value)
    found = json_ready(value)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert json_ready(found) == found
    assert repr(value) == before


# Tables


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name not in {"polars[lazy]", "duckdb"}])
def test_a_table_goes_to_a_library_and_back(library: str) -> None:
    native = Maker(library)({"y": [1, 0]})
    found = like(TABLE, native)
    assert isinstance(found, Maker(library).result)
    assert rows(found) == rows(TABLE)
    back = to_polars(found)
    assert rows(back) == rows(TABLE)
    assert back.schema == TABLE.schema


@pytest.mark.parametrize("library", [name for name in LIBRARIES if name not in {"polars[lazy]", "duckdb"}])
def test_whole_numbers_and_bools_may_be_missing(library: str) -> None:
    table = pl.DataFrame(
        {"k": pl.Series([None, 1, 2**62 + 1], dtype=pl.Int64), "b": [None, True, False], "n": [1, 2, 3]}
    )
    found = like(table, Maker(library)({"y": [1, 0]}))
    assert rows(found) == rows(table)
    assert to_polars(found).equals(table)


@pytest.mark.parametrize("library", ["polars", "polars[lazy]", "duckdb"])
def test_what_is_lazy_or_elsewhere_gets_polars(library: str) -> None:
    assert like(TABLE, Maker(library)({"y": [1, 0]})) is TABLE


@pytest.mark.parametrize("library", ["pandas", "pandas[nullable]", "pandas[pyarrow]", "polars", "pyarrow"])
def test_a_table_without_rows_keeps_its_columns(library: str) -> None:
    found = like(TABLE.clear(), Maker(library)({"y": [1, 0]}))
    assert list(rows(found)) == TABLE.columns
    assert set(map(len, rows(found).values())) == {0}
    assert to_polars(found).columns == TABLE.columns


def test_nan_of_pandas_is_null() -> None:
    found = to_polars(pd.DataFrame({"gap": [0.5, math.nan], "n": [1, 2], "g": ["a", None]}))
    assert found["gap"].to_list() == [0.5, None]
    assert found.schema == {"gap": pl.Float64, "n": pl.Int64, "g": pl.String}


@pytest.mark.parametrize("table", [TABLE, TABLE.to_pandas(), pa.Table.from_pylist(TABLE.to_dicts())])
def test_records_are_json_of_every_row(table: Any) -> None:
    assert records(table) == [
        {"g": "a", "n": 2, "gap": 0.25, "shown": True, "none": None},
        {"g": None, "n": 0, "gap": None, "shown": False, "none": None},
    ]


# HTML


def test_a_fragment_holds_the_cells_as_text() -> None:
    evil = "<img src=x onerror=alert(1)> & \"q\" 'q'"
    table = pl.DataFrame({evil: [evil], "gap": [0.123456], "n": [1_234_567], "none": [None]})
    document = Document(html_table(table, caption=evil))
    assert {tag for tag, _ in document.elements} == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert document.words == [evil, evil, "gap", "n", "none", evil, "0.1235", "1234567", "–"]
    assert document.open == []


@pytest.mark.parametrize(("height", "shown", "more"), [(0, 0, ""), (20, 20, ""), (21, 20, "1 more row in .table")])
def test_long_tables_are_cut_and_say_so(height: int, shown: int, more: str) -> None:
    document = Document(html_table(pl.DataFrame({"n": list(range(height))}), caption="c"))
    assert sum(tag == "td" for tag, _ in document.elements) == shown
    assert document.text.endswith(more)
    assert ("more" in document.text) is bool(more)


def test_thousands_of_rows_are_counted_with_a_comma() -> None:
    document = Document(html_table(pl.DataFrame({"n": list(range(5020))}), caption="c"))
    assert document.text.endswith("5,000 more rows in .table")


# Every result object


ROWS = {"y": [1, 0, 1, 0] * 60, "p": [0.8, 0.3, 0.6, 0.4] * 60, "g": ["a", "a", "b", "b"] * 60}


@cache
def result(verb: str) -> Any:
    return getattr(calframe, verb)(pl.DataFrame(ROWS), label="y", score="p", by="g")


every_result = pytest.mark.parametrize("verb", ["curve", "report"])


@every_result
def test_a_result_is_frozen_and_takes_no_new_attribute(verb: str) -> None:
    found = result(verb)
    assert dataclasses.is_dataclass(found)
    for field in dataclasses.fields(found):
        with pytest.raises(dataclasses.FrozenInstanceError, match=field.name):
            setattr(found, field.name, None)
    with pytest.raises((AttributeError, TypeError), match=r"other|super\("):  # which of them, CPython decides
        found.other = 1
    assert not hasattr(found, "__dict__")


@every_result
def test_a_result_is_made_by_names_alone(verb: str) -> None:
    found = result(verb)
    with pytest.raises(TypeError, match="positional argument"):
        type(found)(found.table)


@every_result
def test_every_attribute_is_in_the_docstring(verb: str) -> None:
    found = result(verb)
    described = type(found).__doc__ or ""
    listed = described.partition("Attributes\n    ----------\n")[2]
    names = [name.strip() for line in listed.splitlines() if " : " in line for name in line.split(" : ")[0].split(",")]
    assert names == [field.name for field in dataclasses.fields(found)]


@every_result
def test_a_result_tells_itself_apart(verb: str) -> None:
    found = result(verb)
    other = copy.copy(found)
    assert found == found  # noqa: PLR0124
    assert found != other
    assert hash(found) != hash(other)


@every_result
def test_a_result_has_what_every_result_has(verb: str) -> None:
    found = result(verb)
    assert isinstance(found.table, pl.DataFrame)
    data = found.to_dict()
    assert data["schema_version"] == SCHEMA_VERSION == 1
    assert data["kind"] == verb
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert max(map(len, repr(found).splitlines())) <= 80
    assert Document(found._repr_html_()).open == []


@every_result
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])  # noqa: S301
def test_a_result_is_copied_and_pickled(verb: str, way: Callable[[Any], Any]) -> None:
    found = result(verb)
    again = way(found)
    assert again.to_dict() == found.to_dict()
    assert repr(again) == repr(found)


@every_result
def test_a_changed_dictionary_changes_no_result(verb: str) -> None:
    found = result(verb)
    before = json.dumps(found.to_dict())
    found.to_dict().clear()
    data = found.to_dict()
    for value in data.values():
        if isinstance(value, list | dict):
            value.clear()
    assert json.dumps(found.to_dict()) == before
