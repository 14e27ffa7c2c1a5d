"""pandas frames of every shape: numbers of every type in every role, and the frame left as it was."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

import calframe
from calframe._errors import CalframeError, LabelError, ScoreError, WeightError
from tests._tables import approx, arrow, objects, rows

FOUR = {"y": [1, 0, 1, 0], "p": [0.5, 0.5, 0.5, 0.5]}
LARGE = 2**53  # from here on not every integer is a float
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


# ---------------------------------------------------------------- labels, scores and weights of every type
NUMBERS = [
    *(np.array([1, 0, 0, 1], kind) for kind in (*INTEGERS, "float16", "float32", "float64", "bool")),
    *(pd.array([1, 0, None, 1], dtype=kind) for kind in ("Int8", "UInt64", "Float32", "Float64")),
    pd.array([True, False, None, True], dtype="boolean"),
    *(arrow([1, 0, None, 1], kind) for kind in (pa.int8(), pa.uint64(), pa.float32(), pa.float64())),
    arrow([True, False, None, True], pa.bool_()),
    arrow([Decimal(1), Decimal(0), None, Decimal(1)], pa.decimal128(5, 2)),
    objects(Decimal(1), Decimal(0), Decimal("NaN"), Decimal(1)),
    objects(1, 0, None, 1),
    objects(1.0, 0, math.nan, 1),
    objects(1, 0, pd.NA, 1),
    objects(*[True, False, None, True]),
]


def name_of(values: Any) -> str:
    return f"{values.dtype} {values[2]!r}"


@pytest.mark.parametrize("values", NUMBERS, ids=name_of)
def test_numbers_of_every_type_in_every_role(values: Any) -> None:
    # rows 1, 2 and 4, with row 3 too where it is not missing; label and score alike, the weight 1 or nothing
    frame = pd.DataFrame({"y": values, "p": values, "w": values, "one": [1, 1, 1, 1], "half": [0.5] * 4})
    before = frame.copy(deep=True)
    whole = not pd.isna(values[2])
    for roles in ({"label": "y", "score": "half"}, {"label": "one", "score": "p"}, {"label": "y", "score": "p"}):
        found = rows(calframe.metrics(frame, metrics=["rate", "mean_score", "brier"], **roles))
        assert (found["n"], found["n_missing"]) == ([3 + whole], [1 - whole])
        ones = 2 / (3 + whole)
        rate = ones if roles["label"] == "y" else 1.0
        assert found["rate"] == approx([rate])
        assert found["mean_score"] == approx([ones if roles["score"] == "p" else 0.5])
    assert found["brier"] == [0.0]
    found = rows(calframe.metrics(frame, label="one", score="half", weight="w", metrics="rate"))
    assert (found["n"], found["n_missing"], found["weight_sum"]) == ([2], [1 - whole], [2.0])
    assert_frame_equal(frame, before)


@pytest.mark.parametrize("role", ["label", "score", "weight"])
@pytest.mark.parametrize(
    "values",
    [
        objects(1, "0", None, 1),
        objects(1, Fraction(1, 2), None, 1),
        objects([1], [0], None, [1]),
        np.array([1, 0, 0, 1], complex),
        pd.to_timedelta([1, 0, None, 1], unit="D"),
        pd.period_range("2026-01", periods=4, freq="M"),
    ],
    ids=["text among numbers", "fractions", "lists", "complex", "timedelta", "period"],
)
def test_what_is_no_number_is_refused_in_words(values: Any, role: str) -> None:
    columns = {"label": "y", "score": "p", "weight": "w"}
    frame = pd.DataFrame({"y": [1, 0, 1, 0], "p": [0.5] * 4, "w": [1.0] * 4}).assign(**{columns[role]: values})
    error = {"label": LabelError, "score": ScoreError, "weight": WeightError}[role]
    with pytest.raises(error, match=f"{role} column '{columns[role]}'"):
        calframe.metrics(frame, **columns)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (pd.Categorical(["yes", "no", None, "yes"]), "yes"),
        (pd.Categorical([1, 0, None, 1]), 1),
        (pd.array(["yes", "no", None, "yes"], dtype="string[python]"), "yes"),
        (pd.array(["yes", "no", None, "yes"], dtype="string[pyarrow]"), "yes"),
        (arrow(["yes", "no", None, "yes"], pa.dictionary(pa.int8(), pa.string())), "yes"),
        (objects("yes", "no", math.nan, "yes"), "yes"),
    ],
)
def test_labels_that_are_text(labels: Any, positive: Any) -> None:
    frame = pd.DataFrame({"y": labels, "p": [0.5] * 4})
    found = rows(calframe.metrics(frame, label="y", score="p", positive=positive, metrics="rate"))
    assert (found["n"], found["n_missing"], found["rate"]) == ([3], [1], approx([2 / 3]))


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float[pyarrow]"])
@pytest.mark.parametrize(("closed", "counts"), [("left", [1, 2]), ("right", [2, 1])])
def test_single_precision_meets_its_edges_nullable_or_not(dtype: str, closed: Any, counts: list[int]) -> None:
    # the float32 nearest .7 lies below the float64 nearest .7; both are on the edge between bins 6 and 7 of ten
    frame = pd.DataFrame({"y": [1, 0, 1], "p": pd.Series([0.65, 0.7, 0.75]).astype(dtype)})
    found = calframe.curve(frame, label="y", score="p", bins=10, closed=closed).table
    assert (found["bin"].tolist(), found["n"].tolist()) == ([6, 7], counts)


def test_models_of_two_widths_keep_their_own_edges() -> None:
    table = {"y": [1, 0, 1], "single": pd.array([0.3, 0.6, 0.29], dtype="Float32"), "double": [0.3, 0.6, 0.29]}
    found = calframe.curve(pd.DataFrame(table), label="y", score=["single", "double"], bins=10).table
    assert found["bin"].tolist() == [2, 3, 6] * 2


# ---------------------------------------------------------------- shapes of the frame
INDEXES = {
    "duplicates": pd.Index([3, 3, 0, 3]),
    "levels": pd.MultiIndex.from_tuples([(0, "a"), (0, "a"), (1, "b"), (1, "c")], names=["y", "g"]),
    "named like a column": pd.Index(list("yppy"), name="g"),
    "times": pd.DatetimeIndex(["2026-01-01", None, "2026-01-01", "2026-01-03"]),
    "backwards": pd.RangeIndex(3, -1, -1),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_the_index_plays_no_part(kind: str) -> None:
    frame = pd.DataFrame({"y": [1, 0, 1, 1], "p": [0.25, 0.5, 0.5, 1.0], "g": ["b", "a", "b", None]})
    frame.index = INDEXES[kind]
    before = frame.copy(deep=True)
    found = calframe.metrics(frame, label="y", score="p", by="g", metrics=["rate", "mean_score"])
    assert_frame_equal(frame, before)
    assert found.index.equals(pd.RangeIndex(3))
    assert found["rate"].tolist() == [0.0, 1.0, 1.0]
    assert found["mean_score"].tolist() == [0.5, 0.375, 1.0]


def wide() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    block = pd.DataFrame(rng.random((60, 3)), columns=["p", "q", "w"])
    return block.assign(y=rng.integers(0, 2, 60), g=rng.integers(0, 3, 60))


VIEWS = {
    "every other row": lambda frame: frame.iloc[::2],
    "backwards": lambda frame: frame.iloc[::-1],
    "rows by mask": lambda frame: frame[frame["g"] > 0],
    "a slice": lambda frame: frame.iloc[10:40],
    "columns of one block": lambda frame: frame[["q", "y", "g", "p", "w"]],
    "transposed twice": lambda frame: frame.T.T.astype({"y": "int64", "g": "int64"}),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_is_measured_as_its_copy_and_never_written_to(kind: str) -> None:
    parent = wide()
    before = parent.copy(deep=True)
    arguments: dict[str, Any] = {"label": "y", "score": ["p", "q"], "by": "g", "weight": "w", "metrics": "all"}
    found = calframe.metrics(VIEWS[kind](parent), **arguments)
    again = calframe.metrics(VIEWS[kind](before.copy(deep=True)).reset_index(drop=True), **arguments)
    assert_frame_equal(found, again)
    assert_frame_equal(parent, before)


def test_columns_that_cannot_be_written_to() -> None:
    scores = np.array([0.25, 0.75, 0.5, 0.5])
    scores.flags.writeable = False
    frame = pd.DataFrame({"p": scores, "y": [1, 0, 1, 0]}, copy=False)
    assert calframe.metrics(frame, label="y", score="p")["mean_score"].tolist() == [0.5]


def test_a_result_shares_no_memory_with_the_table() -> None:
    frame = pd.DataFrame(FOUR).assign(g=[1, 2, 3, 4])
    before = frame.copy(deep=True)
    found = calframe.metrics(frame, label="y", score="p", by="g")
    found["g"] = found["g"] * 10
    found.loc[0, "rate"] = -1.0
    assert_frame_equal(frame, before)


def test_a_large_frame_is_left_as_it_was() -> None:
    n = 100_000
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"y": rng.random(n) < 0.3, "p": rng.random(n).astype("float32")})
    frame["g"] = pd.array(rng.integers(0, 300, n) + LARGE, dtype="Int64")
    frame["h"] = pd.Categorical.from_codes(rng.integers(-1, 3, n), list("abc"))
    frame.loc[::500, "p"] = np.nan
    before = frame.copy(deep=True)
    found = calframe.metrics(frame, label="y", score="p", by=["g", "h"], metrics=["rate", "ece"])
    assert_frame_equal(frame, before)
    assert found["n"].sum() == n - 200
    assert found["n_missing"].sum() == 200
    wanted = frame[frame["p"].notna()].groupby(["g", "h"], dropna=False, observed=True)["y"].mean()
    assert found["rate"].tolist() == approx(wanted.tolist())  # pandas itself, whose missing keys are last too


def test_what_is_not_used_is_not_looked_at() -> None:
    frame = pd.DataFrame(FOUR).assign(other=objects({}, [], set(), object()), Y=1, P=2)
    assert calframe.metrics(frame, label="y", score="p")["n"].tolist() == [4]


class Scored(pd.DataFrame):
    """A frame of a class of its own."""

    @property
    def _constructor(self) -> type[Scored]:
        return Scored


def test_a_subclass_is_a_frame() -> None:
    assert calframe.metrics(Scored(FOUR), label="y", score="p")["n"].tolist() == [4]


@pytest.mark.parametrize("by", [None, "g"])
def test_an_empty_frame_says_so(by: str | None) -> None:
    frame = pd.DataFrame(FOUR).assign(g=pd.Categorical(["a", "a", "b", "b"])).iloc[:0]
    with pytest.raises(CalframeError, match="the table has no rows"):
        calframe.metrics(frame, label="y", score="p", by=by)
    with pytest.raises(CalframeError, match="the table has no rows"):
        calframe.metrics(pd.DataFrame({"y": [], "p": [], "g": []}), label="y", score="p", by=by)


@pytest.mark.parametrize("key", ["y", "w"])
def test_a_column_may_be_key_and_number_at_once(key: str) -> None:
    frame = pd.DataFrame({**FOUR, "w": [2, 1, 1, 2]})
    found = calframe.metrics(frame, label="y", score="p", weight="w", by=key)
    assert found[key].tolist() == sorted(set(frame[key]))
    assert found["n"].tolist() == [2, 2]
