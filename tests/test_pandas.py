"""pandas tables of every kind: keys back in the type they came in, and the frame left as it was."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

import calframe
from calframe._errors import SegmentError
from tests._tables import arrow, objects, rows

FOUR = {"y": [1, 0, 1, 0], "p": [0.5, 0.5, 0.5, 0.5]}
LARGE = 2**53  # from here on not every integer is a float
FIRST, SECOND = dt.date(2026, 1, 1), dt.date(2026, 1, 2)


def measured(keys: Any) -> pd.DataFrame:
    """Return the segments of four rows, after a look that the frame has stayed the same."""
    frame = pd.DataFrame(FOUR).assign(g=keys)
    before = frame.copy(deep=True)
    found = calframe.metrics(frame, label="y", score="p", by="g", metrics="rate")
    assert_frame_equal(frame, before)
    assert found["n"].sum() == 4
    return found


def counted(found: pd.DataFrame) -> dict[Any, int]:
    plain = rows(found)
    return dict(zip(plain["g"], plain["n"], strict=True))


# ---------------------------------------------------------------- keys come back in their type
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("kind", INTEGERS)
def test_whole_numbers_of_every_width(kind: str) -> None:
    plain = measured(np.array([2, 1, 2, 100], kind))
    assert (plain["g"].dtype, plain["g"].tolist(), plain["n"].tolist()) == (kind, [1, 2, 100], [1, 2, 1])
    nullable = kind.replace("int", "Int").replace("u", "U")
    for dtype in (nullable, f"{kind}[pyarrow]"):
        found = measured(pd.array([2, 1, None, 2], dtype=dtype))
        assert str(found["g"].dtype) == dtype
        assert counted(found) == {1: 1, 2: 2, None: 1}


@pytest.mark.parametrize(
    "keys",
    [
        np.array([LARGE + 1, LARGE, LARGE + 1, LARGE + 2]),
        pd.array([LARGE + 1, LARGE, LARGE + 1, LARGE + 2], dtype="Int64"),
        arrow([LARGE + 1, LARGE, LARGE + 1, LARGE + 2], pa.int64()),
        np.array([LARGE + 1, LARGE, LARGE + 1, LARGE + 2], "uint64"),
        objects(LARGE + 1, LARGE, LARGE + 1, LARGE + 2),
    ],
    ids=["int64", "Int64", "arrow", "uint64", "object"],
)
def test_numbers_that_no_float_tells_apart(keys: Any) -> None:
    assert counted(measured(keys)) == {LARGE: 1, LARGE + 1: 2, LARGE + 2: 1}


@pytest.mark.parametrize(
    "keys",
    [
        pd.array([LARGE + 1, LARGE, None, LARGE + 1], dtype="Int64"),
        pd.array([LARGE + 1, LARGE, None, LARGE + 1], dtype="UInt64"),
        arrow([LARGE + 1, LARGE, None, LARGE + 1], pa.int64()),
        objects(LARGE + 1, LARGE, None, LARGE + 1),
        objects(LARGE + 1, LARGE, math.nan, LARGE + 1),
        objects(LARGE + 1, LARGE, pd.NA, LARGE + 1),
    ],
    ids=["Int64", "UInt64", "arrow", "None among objects", "NaN among objects", "NA among objects"],
)
def test_numbers_that_no_float_tells_apart_beside_a_gap(keys: Any) -> None:
    found = measured(keys)
    assert counted(found) == {LARGE: 1, LARGE + 1: 2, None: 1}
    assert str(found["g"].dtype) in {"Int64", "UInt64", "int64[pyarrow]"}


@pytest.mark.parametrize("dtype", ["uint64", "UInt64", "uint64[pyarrow]"])
def test_the_longest_numbers(dtype: str) -> None:
    found = measured(pd.array([2**64 - 1, 2**64 - 2, 2**63, 2**64 - 1], dtype=dtype))
    assert str(found["g"].dtype) == dtype
    assert counted(found) == {2**63: 1, 2**64 - 2: 1, 2**64 - 1: 2}


@pytest.mark.parametrize("gap", [None, math.nan, pd.NA], ids=["None", "NaN", "NA"])
@pytest.mark.parametrize("kind", ["boolean", "bool[pyarrow]", "object"])
def test_bools_with_a_gap(kind: str, gap: Any) -> None:
    keys = pd.Series(objects(*[True, False, gap, True])).astype(kind)
    found = measured(keys)
    assert counted(found) == {False: 1, True: 2, None: 1}
    assert str(found["g"].dtype) == ("boolean" if kind == "object" else kind)


TEXT = [
    "str",
    "string[python]",
    "string[pyarrow]",
    pd.StringDtype("python", na_value=math.nan),
    pd.StringDtype("pyarrow", na_value=math.nan),
    pd.ArrowDtype(pa.string()),
    pd.ArrowDtype(pa.large_string()),
]


@pytest.mark.parametrize("dtype", TEXT, ids=repr)
def test_text_of_every_kind(dtype: Any) -> None:
    keys = pd.array(["b", "a", None, "b"], dtype=dtype)
    found = measured(keys)
    assert found["g"].dtype == keys.dtype
    assert counted(found) == {"a": 1, "b": 2, None: 1}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (objects("b", "a", None, math.nan), {"a": 1, "b": 1, None: 2}),
        (objects("a", pd.NA, None, "a"), {"a": 2, None: 2}),
        (objects("nan", "None", "<NA>", ""), {"": 1, "<NA>": 1, "None": 1, "nan": 1}),
        (objects("a\0", "a", "a\0x", "a"), {"a": 2, "a\0": 1, "a\0x": 1}),
        (objects("1", "10", "2", "1"), {"1": 2, "10": 1, "2": 1}),
        (objects(None, None, None, None), {None: 4}),
        (objects(pd.NaT, None, pd.NaT, None), {None: 4}),
    ],
)
def test_text_among_objects(keys: Any, expected: dict[Any, int]) -> None:
    assert list(counted(measured(keys)).items()) == list(expected.items())


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (pd.Categorical(["lo", "hi", None, "lo"], categories=["lo", "hi"], ordered=True), ["hi", "lo", None]),
        (pd.Categorical([10, 2, None, 1]), ["1", "10", "2", None]),
        (pd.Categorical([1.5, 2.0, None, 1.5]), ["1.5", "2.0", None]),
        (pd.Categorical([True, False, None, True]), ["False", "True", None]),
        (pd.Categorical(objects(SECOND, FIRST, None, SECOND)), ["2026-01-01", "2026-01-02", None]),
        (pd.cut([1, 2, math.nan, 3], [0, 1, 2, 3]), ["(0, 1]", "(1, 2]", "(2, 3]", None]),
        (arrow(["b", "a", None, "b"], pa.dictionary(pa.int8(), pa.string())), ["a", "b", None]),
    ],
    ids=["ordered", "integers", "floats", "bools", "dates", "intervals", "arrow"],
)
def test_categories_come_back_as_text(keys: Any, expected: list[Any]) -> None:
    found = measured(keys)
    assert rows(found)["g"] == expected
    assert pd.api.types.is_string_dtype(found["g"].dtype)


TIMES = pd.to_datetime(["2026-01-02", "2026-01-01", None, "2026-01-02"])


# Names of zones hold an underline, digits, a hyphen or an offset too, not letters alone.
ZONES = [None, "UTC", "Europe/Paris", "America/New_York", "Etc/GMT+5", "America/Port-au-Prince", "+05:30"]


@pytest.mark.parametrize(
    ("zone", "unit"), [*((zone, "us") for zone in ZONES), (None, "s"), (None, "ms"), (None, "ns"), ("Asia/Tokyo", "ns")]
)
def test_times_keep_their_unit_and_zone(zone: str | None, unit: Any) -> None:
    keys = (TIMES if zone is None else TIMES.tz_localize(zone)).as_unit(unit)
    found = measured(keys)
    assert found["g"].dtype == keys.dtype
    assert found["g"].tolist()[:2] == [keys[1], keys[0]]
    assert (found["g"].isna().tolist(), found["n"].tolist()) == ([False, False, True], [1, 2, 1])


def test_the_hour_that_comes_twice_is_two_times() -> None:
    keys = pd.to_datetime(["2026-10-25 00:30", "2026-10-25 01:30"] * 2, utc=True).tz_convert("Europe/Paris")
    assert len(set(keys.tz_localize(None))) == 1
    assert measured(keys)["n"].tolist() == [2, 2]


NOON, NIGHT = dt.time(12), dt.time(0)
TWO_KINDS = [
    (objects(SECOND, FIRST, None, SECOND), FIRST, SECOND),
    (objects(NOON, NIGHT, None, NOON), NIGHT, NOON),
    (objects(Decimal("1.50"), Decimal("0.1"), None, Decimal("1.5")), Decimal("0.1"), Decimal("1.5")),
    (objects(Decimal(2), Decimal(1), Decimal("NaN"), Decimal(2)), Decimal(1), Decimal(2)),
    (arrow([SECOND, FIRST, None, SECOND], pa.date32()), FIRST, SECOND),
    (arrow([NOON, NIGHT, None, NOON], pa.time64("us")), NIGHT, NOON),
    (arrow([Decimal(2), Decimal(1), None, Decimal(2)], pa.decimal128(5, 2)), Decimal(1), Decimal(2)),
    (arrow([TIMES[0], TIMES[1], None, TIMES[0]], pa.timestamp("ms")), TIMES[1], TIMES[0]),
    (arrow([TIMES[0], TIMES[1], None, TIMES[0]], pa.timestamp("us", "Asia/Tokyo")), None, None),
]


@pytest.mark.parametrize(("keys", "first", "second"), TWO_KINDS)
def test_dates_times_and_decimals(keys: Any, first: Any, second: Any) -> None:
    found = measured(keys)
    assert found["g"].dtype == keys.dtype
    assert (found["g"].isna().tolist(), found["n"].tolist()) == ([False, False, True], [1, 2, 1])
    if first is not None:
        assert found["g"].tolist()[:2] == [first, second]


def test_times_of_one_kind_among_objects_are_times() -> None:
    found = measured(objects(TIMES[0].to_pydatetime(), TIMES[1].to_pydatetime(), None, TIMES[0].to_pydatetime()))
    assert counted(found) == {TIMES[1].to_pydatetime(): 1, TIMES[0].to_pydatetime(): 2, None: 1}


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "Float32", "Float64", "float[pyarrow]", "double[pyarrow]"]
)
def test_whole_floats_are_integers(dtype: str) -> None:
    found = measured(pd.Series([2.0, -0.0, math.nan, 2.0]).astype(dtype))
    assert str(found["g"].dtype) == "Int64"
    assert counted(found) == {0: 1, 2: 2, None: 1}


def test_floats_are_whole_up_to_where_all_integers_are_floats() -> None:
    assert counted(measured([float(LARGE), LARGE - 1.0, math.nan, 3.0])) == {3: 1, LARGE - 1: 1, LARGE: 1, None: 1}
    with pytest.raises(SegmentError, match="segment column 'g' is a float column with 1 row"):
        measured([LARGE + 2.0, 1.0, 2.0, 3.0])


REFUSED = {
    "period": pd.period_range("2026-01", periods=4, freq="M"),
    "interval": pd.arrays.IntervalArray.from_breaks(range(5)),
    "timedelta": pd.to_timedelta([1, 2, None, 1], unit="D"),
    "complex": np.array([1j, 2, 3, 1j]),
    "sparse": pd.arrays.SparseArray([1, 0, 0, 1]),
    "numbers and text": objects(1, "1", None, 2.5),
    "bools and numbers": objects(*[True, 1, None, 0]),
    "tuples": objects((1, 2), (1, 2), None, (2, 3)),
    "lists": objects([1], [2], None, [1]),
    "bytes": objects(b"a", b"b", None, b"a"),
    "binary": arrow([b"a", b"b", None, b"a"], pa.binary()),
    "times of two zones": objects(
        pd.Timestamp("2026-01-01", tz="UTC"), pd.Timestamp("2026-01-01", tz="Asia/Tokyo"), None, None
    ),
    "dates and times": objects(FIRST, dt.datetime(2026, 1, 1, 12), None, SECOND),  # noqa: DTZ001  naive on purpose
    "halves": objects(1, 2.5, None, 1),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_keys_that_make_no_segments(kind: str) -> None:
    with pytest.raises(SegmentError, match="segment column 'g'"):
        measured(REFUSED[kind])


def test_several_keys_of_different_types_come_back_in_theirs() -> None:
    frame = pd.DataFrame(FOUR).assign(
        a=pd.array([2, None, 2, None], dtype="UInt8"),
        b=pd.Categorical(["x", "x", "z", "x"], categories=["z", "x"]),
        c=objects(SECOND, FIRST, SECOND, FIRST),
    )
    found = calframe.metrics(frame, label="y", score="p", by=["a", "b", "c"], metrics="rate")
    assert [str(found[name].dtype) for name in "abc"] == ["UInt8", "str", "object"]
    plain = rows(found)
    segments = list(zip(plain["a"], plain["b"], plain["c"], plain["n"], plain["rate"], strict=True))
    assert segments == [(2, "x", SECOND, 1, 1.0), (2, "z", SECOND, 1, 1.0), (None, "x", FIRST, 2, 0.0)]


def test_a_curve_has_its_keys_in_their_type() -> None:
    frame = pd.DataFrame(FOUR).assign(g=pd.array([1, None, 1, None], dtype="Int16"), p=[0.1, 0.1, 0.9, 0.1])
    found = calframe.curve(frame, label="y", score="p", by="g", bins=2).table
    assert str(found["g"].dtype) == "Int16"
    plain = rows(found)
    assert list(zip(plain["g"], plain["bin"], plain["n"], strict=True)) == [(1, 0, 1), (1, 1, 1), (None, 0, 2)]
