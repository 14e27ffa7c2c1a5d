"""`answer_confidence`: log-probabilities of tokens and options, and sampled answers, as one confidence per answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import softmax

from calframe import ArgumentError, CalframeWarning, ColumnClashError, ColumnNotFoundError, ScoreError
from calframe._answers._agreement import normal
from calframe._confidence import answer_confidence
from tests._tables import Maker, approx, rows

LIBRARIES = ("pandas", "pandas[pyarrow]", "polars", "polars[lazy]", "pyarrow")
HALF, QUARTER = math.log(0.5), math.log(0.25)
TOKENS = [[HALF, HALF], [QUARTER], [HALF, QUARTER, 0.0], [-math.inf, HALF], None, [], [HALF, None], [math.nan]]
BLANK = [None] * 4
# by hand: products, geometric means and first probabilities of 1/2 and 1/4
EXPECTED = {
    "sum": [1 / 4, 1 / 4, 1 / 8, 0.0, *BLANK],
    "mean": [1 / 2, 1 / 4, 1 / 2, 0.0, *BLANK],
    "first": [1 / 2, 1 / 4, 1 / 2, 0.0, None, None, 1 / 2, None],
}
COUNTS = {
    "sum": "no confidence in 4 of 8 rows: 1 missing, 1 empty list, 2 null or NaN in the list",
    "mean": "no confidence in 4 of 8 rows: 1 missing, 1 empty list, 2 null or NaN in the list",
    "first": "no confidence in 3 of 8 rows: 1 missing, 1 empty list, 1 null or NaN in the list",
}


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest) -> Maker:
    """A maker of tables that hold lists."""
    return Maker(request.param)


def found(data: Any, **arguments: Any) -> dict[str, list[Any]]:
    """Return the new columns."""
    names = set(data.collect_schema().names()) if isinstance(data, pl.LazyFrame) else columns_of(data)
    return {name: values for name, values in rows(answer_confidence(data, **arguments)).items() if name not in names}


def columns_of(data: Any) -> set[str]:
    return set(data.column_names if isinstance(data, pa.Table) else data.columns)


@pytest.mark.parametrize("method", EXPECTED)
def test_tokens(make: Maker, method: str) -> None:
    with pytest.warns(CalframeWarning, match=COUNTS[method]):
        values = found(make({"lp": TOKENS}), column="lp", method=method)
    assert values == {"confidence": approx(EXPECTED[method])}


def test_the_default_is_the_probability_of_the_whole_answer() -> None:
    assert found(pl.DataFrame({"lp": TOKENS[:3]}), column="lp") == {"confidence": approx([1 / 4, 1 / 4, 1 / 8])}


def test_tables_come_back_as_they_were(make: Maker) -> None:
    out = answer_confidence(make({"id": [3, 1], "lp": [[HALF], [QUARTER]]}), column="lp", name="p")
    assert isinstance(out, make.result)
    assert rows(out)["id"] == [3, 1]
    assert rows(out)["p"] == approx([0.5, 0.25])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([np.array([HALF, HALF]), np.array([QUARTER])], index=[7, 3]),
        pd.Series([(HALF, HALF), (QUARTER,)]),
        pd.Series([[HALF, HALF], [QUARTER]], dtype=pd.ArrowDtype(pa.large_list(pa.float32()))),
        pl.Series([[HALF, HALF], [QUARTER]], dtype=pl.List(pl.Float32)),
    ],
    ids=["arrays", "tuples", "arrow float32", "polars float32"],
)
def test_lists_of_any_kind(column: Any) -> None:
    data = (pl if isinstance(column, pl.Series) else pd).DataFrame({"lp": column})
    out = answer_confidence(data, column="lp")
    assert rows(out)["confidence"] == approx([0.25, 0.25], rel=1e-6)
    if isinstance(out, pd.DataFrame):
        assert out.index.tolist() == column.index.tolist()


def test_arrays_of_one_length_and_whole_numbers() -> None:
    fixed = pl.DataFrame({"lp": [[HALF, HALF], [QUARTER, 0.0]]}, schema={"lp": pl.Array(pl.Float64, 2)})
    assert found(fixed, column="lp") == {"confidence": approx([0.25, 0.25])}
    assert found(pl.DataFrame({"lp": [[0, -1]]}), column="lp") == {"confidence": approx([math.exp(-1)])}


def test_another_base() -> None:
    bits = pl.DataFrame({"lp": [[-1.0, -2.0]]})
    assert found(bits, column="lp", base=2) == {"confidence": approx([1 / 8])}
    assert found(bits, column="lp", base=2, method="mean") == {"confidence": approx([2**-1.5])}


def test_what_rounding_leaves_above_zero_is_one() -> None:
    assert found(pl.DataFrame({"lp": [[1e-7], [-0.0]]}), column="lp") == {"confidence": [1.0, 1.0]}


def test_probabilities_are_refused_or_dropped(make: Maker) -> None:
    data = make({"lp": [[0.9, 0.8], [HALF]]})
    message = r"column 'lp' has 0\.9, with 1 row above 0\. Probabilities\? Take their natural logarithm"
    with pytest.raises(ScoreError, match=message):
        rows(answer_confidence(data, column="lp"))
    with pytest.warns(CalframeWarning, match="1 of 2 rows: 1 with a log-probability above 0"):
        assert found(data, column="lp", invalid="drop") == {"confidence": approx([None, 0.5])}


def test_a_lazy_table_stays_lazy_and_is_checked_at_the_end() -> None:
    plan = answer_confidence(pl.LazyFrame({"lp": [[0.5]]}), column="lp")
    assert plan.collect_schema() == {"lp": pl.List(pl.Float64), "confidence": pl.Float64}
    with pytest.raises(ScoreError, match=r"has 0\.5"):
        plan.collect()


def test_nothing_to_read() -> None:
    assert found(pl.DataFrame({"lp": [None, None]}), column="lp") == {"confidence": [None, None]}
    empty = pl.DataFrame({"lp": pl.Series([], dtype=pl.List(pl.Float64))})
    for method in EXPECTED:
        assert found(empty, column="lp", method=method) == {"confidence": []}
    with pytest.warns(CalframeWarning, match="2 empty list"):
        assert found(pd.DataFrame({"lp": [[], []]}), column="lp") == {"confidence": [None, None]}


LETTERS = {"A": [-0.5, -3.0, -1.0, -1.0], "B": [-1.5, -1.0, -1.0, -2.0], "C": [-4.0, -2.0, -5.0, -math.inf]}
SHARES = softmax(np.column_stack(list(LETTERS.values())), axis=1)


def test_the_most_probable_option(make: Maker) -> None:
    data = make(LETTERS)
    values = found(data, method="choice", options=["A", "B", "C"], each=True)
    assert values["confidence"] == approx(SHARES.max(axis=1).tolist())
    assert values["confidence_answer"] == ["A", "B", "A", "A"]  # the first of equal ones
    for place, letter in enumerate("ABC"):
        assert values[f"confidence_{letter}"] == approx(SHARES[:, place].tolist())
    assert list(values) == ["confidence", "confidence_answer", "confidence_A", "confidence_B", "confidence_C"]


def test_the_option_chosen(make: Maker) -> None:
    data = make({**LETTERS, "said": ["B", "C", "D", None]})
    with pytest.warns(CalframeWarning, match="2 of 4 rows: 2 with a choice that is no option"):
        values = found(data, method="choice", options={"A": "A", "B": "B", "C": "C"}, chosen="said")
    assert values == {"confidence": approx([SHARES[0, 1], SHARES[1, 2], None, None])}


def test_a_choice_may_stand_in_any_column() -> None:
    data = pl.DataFrame({"A": [HALF], "B": [HALF], "said": pl.Series(["B"], dtype=pl.Categorical)})
    assert found(data, method="choice", options=["A", "B"], chosen="said") == {"confidence": approx([0.5])}
    with pytest.warns(CalframeWarning, match="1 with a choice that is no option"):
        assert found(data, method="choice", options=["A", "B"], chosen="A") == {"confidence": [None]}


def test_options_in_one_column(make: Maker) -> None:
    lists = [list(row) for row in zip(*LETTERS.values(), strict=True)]
    structs = [dict(zip("ABC", row, strict=True)) for row in lists]
    for held in (lists, structs):
        values = found(make({"lp": held}), method="choice", column="lp", options=["A", "B", "C"])
        assert values["confidence"] == approx(SHARES.max(axis=1).tolist())
        assert values["confidence_answer"] == ["A", "B", "A", "A"]


def test_options_that_cannot_be_weighed() -> None:
    data = pl.DataFrame({"A": [None, math.nan, -math.inf, -1.0, 0.5], "B": [-1.0, -1.0, -math.inf, -math.inf, -1.0]})
    message = "4 of 5 rows: 2 with an option without .*, 1 with a log-probability above 0, 1 with every option imposs"
    with pytest.warns(CalframeWarning, match=message):
        values = found(data, method="choice", options=["A", "B"], invalid="drop", each=True)
    assert values["confidence"] == [None, None, None, 1.0, None]
    assert values["confidence_answer"] == [None, None, None, "A", None]
    assert values["confidence_B"] == [None, None, None, 0.0, None]
    with pytest.raises(ScoreError, match=r"option 'A' has 0\.5, with 1 row above 0"):
        answer_confidence(data, method="choice", options=["A", "B"])


def test_logits_of_another_base_and_shift() -> None:
    data = pl.DataFrame({"A": [-1.0], "B": [-3.0]})  # in bits: 1/2 and 1/8, so 4 to 1
    assert found(data, method="choice", options=["A", "B"], base=2)["confidence"] == approx([0.8])


SAMPLES = [
    ["Paris", "paris.", "**Paris**", "Lyon"],  # 3 of 4
    ["b", "a", "A", "B"],  # 2 of 4 each: the first sampled
    ["x", None, ""],  # null and empty texts are no samples
    [],
    None,
    [None],
]


def test_samples_that_agree(make: Maker) -> None:
    counts = "no confidence in 3 of 6 rows: 1 missing, 1 empty list, 1 list of nulls or empty texts"
    with pytest.warns(CalframeWarning, match=counts):
        values = found(make({"said": SAMPLES}), column="said", method="agreement")
    assert values["confidence"] == [0.75, 0.5, 1.0, None, None, None]
    assert values["confidence_answer"] == ["Paris", "b", "x", None, None, None]


def test_the_share_of_an_answer(make: Maker) -> None:
    data = make({"said": SAMPLES[:3], "final": ["lyon", "c", None]})
    with pytest.warns(CalframeWarning, match="1 of 3 rows: 1 missing answer"):
        values = found(data, column="said", method="agreement", answer="final")
    assert values == {"confidence": [0.25, 0.0, None]}


def test_smoothing_makes_shares_that_sum_to_one() -> None:
    said = {"said": [["a", "a", "a", "b"]] * 3, "final": ["a", "b", "unseen"]}
    values = found(pl.DataFrame(said), column="said", method="agreement", answer="final", smoothing=1)
    assert values["confidence"] == approx([4 / 7, 2 / 7, 1 / 7])  # (3 + 1, 1 + 1, 0 + 1) of 4 + 3
    top = found(pl.DataFrame(said), column="said", method="agreement", smoothing=1)
    assert top["confidence"] == approx([4 / 7] * 3)


def test_answers_as_they_are() -> None:
    data = pl.DataFrame({"said": [["Paris", "paris"]]})
    assert found(data, column="said", method="agreement", normalize=False)["confidence"] == [0.5]
    assert found(data, column="said", method="agreement")["confidence"] == [1.0]


def test_one_row_per_sample(make: Maker) -> None:
    data = make({
        "question": [1, 2, 1, 1, None, None, 2],
        "said": ["Paris", "b", "PARIS", "Lyon", "x", "x ", None],
    })  # fmt: skip
    values = found(data, column="said", method="agreement", by="question")
    assert values == {"confidence": approx([2 / 3, 1.0, 2 / 3, 1 / 3, 1.0, 1.0, None])}


def test_rows_per_sample_and_lists_agree() -> None:
    lists = pl.DataFrame({"question": [1, 2], "said": [["a", "b", "a"], ["c", "d", "d"]]})
    top = found(lists, column="said", method="agreement", smoothing=0.5)["confidence"]
    long = answer_confidence(lists.explode("said"), column="said", method="agreement", by=["question"], smoothing=0.5)
    assert long.group_by("question", maintain_order=True).agg(pl.col("confidence").max())["confidence"].to_list() == top


def test_numbers_are_answers_too() -> None:
    assert found(pl.DataFrame({"said": [[42, 42, 7]]}), column="said", method="agreement") == {
        "confidence": approx([2 / 3]),
        "confidence_answer": ["42"],
    }


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("  Paris. ", "paris"),
        ("“New   York”", "new york"),
        ("$5", "$5"),
        ("-5", "-5"),
        (".5", ".5"),
        ("50%", "50%"),
        ("(B)", "b"),
        ("ﬁre", "fire"),
        ("...", ""),
    ],
)
def test_the_form_in_which_answers_are_compared(text: str, right: str) -> None:
    assert normal(text) == right


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"method": "median"}, ArgumentError, "method must be one of|is not known"),
        ({"column": None}, ArgumentError, "column= names the column that holds the lists of log-probabilities"),
        ({"column": None, "method": "agreement"}, ArgumentError, "that holds the sampled answers"),
        ({"column": "lq"}, ColumnNotFoundError, "no column 'lq' for column=; the table has 'lp'"),
        ({"name": "id"}, ColumnClashError, "has a column 'id' already"),
        ({"column": "id"}, ScoreError, "column 'id' has type Int64; it must hold a list of log-probabilities"),
        ({"column": "said"}, ScoreError, "holds lists of String; they must be lists of numbers"),
        ({"column": "id", "method": "agreement"}, ScoreError, "one row per sample need by="),
        ({"base": 1}, ArgumentError, "base must be the base of the logarithm, above 1, for example 2; got 1"),
        ({"smoothing": 1}, ArgumentError, "smoothing= is for method='agreement'; the method is 'sum'"),
        ({"by": "id"}, ArgumentError, "by= is for method='agreement'"),
        ({"options": ["A", "B"]}, ArgumentError, "options= is for method='choice'"),
        ({"method": "agreement", "base": 2}, ArgumentError, "base= is for method='sum' or 'mean' or 'first' or"),
        ({"method": "agreement", "smoothing": -1}, ArgumentError, "smoothing must be a number of 0 or more"),
        ({"method": "agreement", "by": "id", "answer": "id"}, ArgumentError, "leave one of them out"),
        ({"method": "choice"}, ArgumentError, r"options= lists the names of two or more options.*got None"),
        ({"method": "choice", "options": "AB"}, ArgumentError, "got 'AB'"),
        ({"method": "choice", "options": ["A", "B", "A"], "column": "lp"}, ArgumentError, "names 'A' twice"),
        ({"method": "choice", "options": ["A", "B"], "column": None}, ColumnNotFoundError, "'A' for options="),
        ({"method": "choice", "options": ["A", "B"]}, ScoreError, "a list of 1 values, and options= names 2"),
        ({"method": "choice", "options": ["A", "B"], "column": "held"}, ScoreError, "no field 'B' for options="),
        (
            {"method": "choice", "options": ["id", "word"], "column": None},
            ScoreError,
            "'word' has type String; it must",
        ),
        ({"invalid": "keep"}, ArgumentError, "invalid must be one of"),
    ],
)
def test_what_cannot_be_read(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    table = pl.DataFrame({"lp": [[HALF]], "said": [["a"]], "id": [1], "held": [{"A": -1.0}], "word": ["a"]})
    for data in (table, table.lazy()):
        with pytest.raises(error, match=match):
            rows(answer_confidence(data, **{"column": "lp", **arguments}))


@pytest.mark.parametrize("gap", [None, math.nan, pd.NA])
def test_cells_of_pandas_are_lists_whatever_is_missing(gap: Any) -> None:
    # as Parquet gives them back: arrays beside missing rows, in either order
    for cells in ([np.array([HALF]), gap], [gap, np.array([HALF])], [[HALF], gap]):
        table = pd.DataFrame({"lp": pd.Series(cells, dtype=object)})
        assert answer_confidence(table, column="lp")["confidence"].dropna().tolist() == approx([0.5])
    inner = pd.DataFrame({"lp": pd.Series([[HALF], [HALF, gap]], dtype=object)})
    with pytest.warns(CalframeWarning, match="1 of 2 rows: 1 null or NaN in the list"):
        assert answer_confidence(inner, column="lp")["confidence"].dropna().tolist() == approx([0.5])
    for cell in (np.zeros((2, 2)), np.array(-1.0)):
        with pytest.raises(ScoreError, match=r"column 'lp' has an array of . dimensions in a cell"):
            answer_confidence(pd.DataFrame({"lp": pd.Series([cell], dtype=object)}), column="lp")


def test_columns_of_lists_are_no_texts() -> None:
    data = pl.DataFrame({"A": [-1.0], "B": [-2.0], "l": [["a"]], "q": [1]})
    with pytest.raises(ScoreError, match=r"chosen= takes a column of texts, one a row; column 'l' has type List"):
        answer_confidence(data, method="choice", options=["A", "B"], chosen="l")
    with pytest.raises(ScoreError, match=r"column= takes a column of texts"):
        answer_confidence(data, column="l", method="agreement", by="q")
    with pytest.raises(ArgumentError, match="each must be True or False; got 'no'"):
        answer_confidence(data, method="choice", options=["A", "B"], each="no")  # type: ignore[arg-type]
