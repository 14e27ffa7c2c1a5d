"""`parse_confidence`: statements of confidence read as probabilities, on a table of statements answered by hand."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calframe import ArgumentError, CalframeError, CalframeWarning, ColumnClashError, ColumnNotFoundError, ScoreError
from calframe import _confidence as verbs
from calframe._answers._statements import UNREAD, read
from calframe._answers._words import WORDS, Scale
from calframe._confidence import parse_confidence
from tests import _statements
from tests import _tables as tables
from tests._tables import Maker, approx, arrow, objects, rows

LIBRARIES = tuple(library for library in tables.LIBRARIES if library != "duckdb")
SCALE = Scale.of(WORDS)
WAYS = {"percent", "decimal", "fraction", "range", "words", *UNREAD}
LISTS = ("SEEN", "KEPT_ASIDE", "SECOND", "THIRD", "FOURTH", "NEGATED", "OPPOSED", "OPPOSED_MORE")
MESSY = ["I am 85% sure", None, "362880", "100%", "five out of ten"]
MESSY_VALUES = [0.85, None, None, 1.0, 0.5]
MESSY_WAYS = ["percent", "missing", "out of range", "percent", "fraction"]


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest) -> Maker:
    """A maker of tables in memory, or of lazy polars."""
    return Maker(request.param)


def value_of(text: str, top: float = 1.0) -> float | None:
    return read(text, SCALE, top).value


@pytest.mark.parametrize("name", LISTS)
def test_statements_are_read_as_by_hand(name: str) -> None:
    statements: list[_statements.Statement] = getattr(_statements, name)
    found = {text: value_of(text) for text, _ in statements}
    wrong = {text: (found[text], right) for text, right in statements if found[text] != approx(right)}
    assert wrong == {}


@pytest.mark.parametrize("name", ["JUDGED", "JUDGED_ANEW"])
def test_statements_are_read_as_judged(name: str) -> None:
    statements: list[_statements.Judged] = getattr(_statements, name)
    assert len(statements) > 350
    found = {text: value_of(text) for text, _ in statements}
    wrong = {text: (found[text], right) for text, right in statements if not agrees(found[text], right)}
    assert wrong == {}


def agrees(value: float | None, right: float | tuple[float, float] | None) -> bool:
    if isinstance(right, tuple):
        low, high = right
        return value is not None and low <= value <= high
    return bool(value == approx(right))


def test_the_statements_are_many_and_differ() -> None:
    texts = [text for name in LISTS for text, _ in getattr(_statements, name)]
    assert len(texts) > 900
    assert max(Counter(texts).values()) <= 2  # a few were written down twice


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("85%", "percent"),
        ("Confidence: 85", "percent"),
        (".7", "decimal"),
        ("7/10", "fraction"),
        ("3 to 1 odds", "fraction"),
        ("70-80%", "range"),
        ("almost certain", "words"),
        ("N/A", "refusal"),
        ("I can't say", "refusal"),
        ("Paris", "none"),
        ("Born in 1987", "none"),
        ("1987", "out of range"),
        ("", "none"),
        ("150% sure", "out of range"),
        ("362880", "out of range"),
        ("42", "out of range"),
        ("A is 80% likely and B is 30% likely", "ambiguous"),
        ("very likely or very unlikely", "ambiguous"),
        ("Confidence: 8", "ambiguous"),
        ("I'd say there's no 90% chance", "ambiguous"),
        ("It is wrong to say I am 90% sure", "ambiguous"),
        ("I am not 90% sure", "none"),
    ],
)
def test_the_way_is_told(text: str, way: str) -> None:
    assert read(text, SCALE, 1.0).how == way


@pytest.mark.parametrize(
    ("text", "top", "right"),
    [
        ("85", 100.0, 0.85),
        ("0.85", 100.0, 0.0085),
        ("85%", 100.0, 0.85),
        ("7", 10.0, 0.7),
        ("Confidence: 7", 10.0, 0.7),
        ("11", 10.0, None),
        ("8 on a scale of 1 to 5", 100.0, None),
        ("4 on a scale of 1 to 5", 100.0, 0.8),
        ("362880", 100.0, None),
    ],
)
def test_numbers_without_a_unit_are_of_the_scale(text: str, top: float, right: float | None) -> None:
    assert value_of(text, top) == approx(right)


def test_words_follow_the_stated_rules() -> None:
    for phrase, value in WORDS.items():
        assert value_of(phrase) == value, phrase
    # "very" halves the distance to the end, "fairly" that to 0.5, "not" is one minus it
    assert value_of("very likely") == approx(1 - (1 - 0.7) / 2)
    assert value_of("very unlikely") == approx(0.2 / 2)
    assert value_of("fairly likely") == approx((0.7 + 0.5) / 2)
    assert value_of("not likely") == approx(1 - 0.7)


HARMLESS = [statement for statement in _statements.SEEN if statement[1] is not None]


@pytest.mark.parametrize("change", [str.upper, lambda text: f"  {text}\n", lambda text: f"**{text}**"])
def test_case_space_and_markup_change_nothing(change: Any) -> None:
    wrong = {text: value_of(change(text)) for text, right in HARMLESS if value_of(change(text)) != approx(right)}
    assert wrong == {}


@given(st.text(max_size=200) | st.text("0123456789.,%/-: \naeinort()", max_size=60))
def test_no_text_raises(text: str) -> None:
    check(text)


PIECES = (
    "confidence sure certain not very likely between and to or out_of in of scale odds against a one ninety "
    'hundred point half probability wrong I_am answer ¤ 1 0.5 85 % / : - . , ( ) \n { } " \\% $ ± e9 1e400 0'
)


@given(st.lists(st.sampled_from(PIECES.split(" ")), max_size=14), st.sampled_from([" ", ""]))
def test_no_statement_raises(pieces: list[str], between: str) -> None:
    check(between.join(pieces).replace("_", " "))


def check(text: str) -> None:
    for top in (1.0, 10.0, 100.0):
        found = read(text, SCALE, top)
        assert found.how in WAYS
        assert (found.value is None) == (found.how in UNREAD)
        assert found.value is None or 0.0 <= found.value <= 1.0


def parsed(make: Maker, columns: Any, **arguments: Any) -> Any:
    """Return a parsed table, collected if lazy."""
    found = parse_confidence(make(columns), **{"column": "said", **arguments})
    return found.collect() if isinstance(found, pl.LazyFrame) else found


def test_every_library_gets_its_own_back(make: Maker) -> None:
    if make.library == "duckdb":
        with pytest.raises(
            ArgumentError, match=r"got DuckDBPyRelation\. Convert it first: a DuckDB relation with \.pl"
        ):
            parsed(make, {"said": MESSY})
        return
    with pytest.warns(CalframeWarning, match="no confidence in 2 of 5 rows: 1 missing, 1 out of range"):
        found = parsed(make, {"id": [5, 4, 3, 2, 1], "said": MESSY})
    assert isinstance(found, pl.DataFrame if make.lazy else make.result)
    assert rows(found) == {
        "id": [5, 4, 3, 2, 1],
        "said": MESSY,
        "confidence": MESSY_VALUES,
        "confidence_read": MESSY_WAYS,
    }


def test_columns_of_numbers(make: Maker) -> None:
    with pytest.warns(CalframeWarning, match="1 missing, 2 out of range"):
        found = parsed(make, {"said": [0.85, None, 362880.0, 1.0, -0.1]})
    assert rows(found)["confidence"] == [0.85, None, None, 1.0, None]
    ways = ["decimal", "missing", "out of range", "decimal", "out of range"]
    assert rows(found)["confidence_read"] == ways
    assert rows(parsed(make, {"said": [85, 0, 100]}, scale=100))["confidence"] == [0.85, 0.0, 1.0]


def test_mixed_objects_keep_index_and_input() -> None:
    values = objects(None, 362880, "100%", "five out of ten", np.float64(0.85), float("nan"), pd.NA, np.True_, ["x"])
    data = pd.DataFrame({"said": values}, index=[9, 8, 7, 6, 5, 4, 3, 2, 2])
    before = data.copy(deep=True)
    with pytest.warns(CalframeWarning, match="no confidence in 6 of 9 rows: 3 missing, 2 none, 1 out of range"):
        found = parse_confidence(data, column="said", name="p")
    assert rows(found)["p"] == [None, None, 1.0, 0.5, 0.85, None, None, None, None]
    assert found.index.tolist() == data.index.tolist()
    assert found.columns.tolist() == ["said", "p", "p_read"]
    pd.testing.assert_frame_equal(data, before)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["85%", None, "85%"], dtype="category"),
        arrow(["85%", None, "85%"], pa.dictionary(pa.int32(), pa.string())),
        pl.Series(["85%", None, "85%"], dtype=pl.Categorical),
        pl.Series(["85%", None, "85%"], dtype=pl.Enum(["85%"])),
        pl.Series(["85%", None, "85%"], dtype=pl.Object),
    ],
    ids=["pandas category", "arrow dictionary", "polars Categorical", "polars Enum", "polars Object"],
)
def test_other_columns_of_text(column: Any) -> None:
    table = (pl if isinstance(column, pl.Series) else pd).DataFrame({"said": column})
    assert rows(parse_confidence(table, column="said"))["confidence"] == [0.85, None, 0.85]


def test_nulls_alone_and_no_rows() -> None:
    blank = parse_confidence(pl.DataFrame({"said": [None, None]}), column="said")
    assert blank.schema == {"said": pl.Null, "confidence": pl.Float64, "confidence_read": pl.String}
    assert blank["confidence_read"].to_list() == ["missing", "missing"]
    empty = parse_confidence(pl.DataFrame({"said": pl.Series([], dtype=pl.String)}), column="said")
    assert empty.schema == {"said": pl.String, "confidence": pl.Float64, "confidence_read": pl.String}
    assert parse_confidence(pd.DataFrame({"said": objects()}), column="said")["confidence"].dtype == "float64"
    assert parse_confidence(pa.table({"said": pa.nulls(2)}), column="said")["confidence"].to_pylist() == [None, None]


def test_a_lazy_table_is_read_when_collected() -> None:
    plan = parse_confidence(pl.LazyFrame({"said": MESSY}), column="said")
    assert isinstance(plan, pl.LazyFrame)
    assert plan.collect_schema() == {"said": pl.String, "confidence": pl.Float64, "confidence_read": pl.String}
    with pytest.warns(CalframeWarning, match="2 of 5 rows"):
        assert plan.collect(engine="streaming")["confidence"].to_list() == MESSY_VALUES


def test_texts_without_a_table() -> None:
    assert rows(parse_confidence(["85%", "1/2"])) == {
        "statement": ["85%", "1/2"],
        "confidence": [0.85, 0.5],
        "confidence_read": ["percent", "fraction"],
    }
    series = pd.Series(["85%"], index=[7], name="said")
    found = parse_confidence(series)
    assert found.index.tolist() == [7]
    assert found.columns.tolist() == ["said", "confidence", "confidence_read"]
    assert parse_confidence(pl.Series(["85%"])).columns == ["statement", "confidence", "confidence_read"]
    named = parse_confidence(pl.Series("confidence", ["85%"]))  # the name of the new column is free for it
    assert named.columns == ["statement", "confidence", "confidence_read"]
    with pytest.raises(CalframeError, match="pandas or polars DataFrame"):
        parse_confidence("85% sure")


@pytest.mark.parametrize(("texts", "hint"), [(["90", "0.7"], "scale=100"), (["7", "0.7"], "scale=100"), ([90], "100")])
def test_numbers_of_another_scale_are_told(texts: list[Any], hint: str) -> None:
    with pytest.warns(CalframeWarning, match=rf"1 out of range\. Numbers out of 100\? Pass .*{hint}"):
        parse_confidence(texts)
    with pytest.warns(CalframeWarning, match=r"1 out of range\.$"):
        parse_confidence(["362880", "0.7"])


@pytest.mark.parametrize(
    ("statements", "count", "example"),
    [
        (["85", "0.7", "1"], "1 row", "'0.7'"),
        ([85, 0.7, 1, 0.25], "2 rows", "'0.7'"),
        (["I'm .7 sure", "90% sure"], "1 row", '"I\'m .7 sure"'),
        (pl.Series([0.7, 85.0]), "1 row", "0.7"),
    ],
)
def test_probabilities_among_percentages_are_told(statements: Any, count: str, example: str) -> None:
    match = rf"took numbers below 1 in {count}, for example {re.escape(example)}, as out of 100.*Parse.*scale=1"
    with pytest.warns(CalframeWarning, match=match):
        found = parse_confidence(statements, scale=100)
    assert any(value == approx(0.007) for value in found["confidence"])  # 0.7 of 100, as asked for


@pytest.mark.parametrize(
    "statements",
    [["85", "1"], ["0.5%", "85"], ["0.7", "0.8"], ["0.7", "likely"], [85, 0, 1], ["0.7 on a scale of 0 to 1", "85"]],
)
def test_percentages_alone_are_not_warned_of(statements: list[Any], recwarn: pytest.WarningsRecorder) -> None:
    parse_confidence(statements, scale=100)
    assert len(recwarn) == 0


def test_the_docstring_has_the_default_scale() -> None:
    notes = " ".join((parse_confidence.__doc__ or "").split()).split("Words count where no number does.")[1]
    lists = re.findall(r"\(((?:[a-z -]+ [\d.]+(?:, )?){2,})\)", notes.split("What is not on the scale")[0])
    told = [entry.rsplit(" ", 1) for entry in ", ".join(lists).split(", ")]
    assert len(told) > 30
    assert {phrase: float(value) for phrase, value in told} == {phrase: WORDS[phrase] for phrase, _ in told}


REPEATED = (
    *(
        "1|",
        "- ",
        "- - ",
        "1-",
        "1-2-",
        "e-",
        "-a",
        " ",
        "\t",
        "\n",
        "_",
        "1 ",
        "99 ",
        "5 %",
        "one ",
        "1/2 ",
        "50% ",
        "[1,",
    ),
    *(
        "likely or unlikely ",
        "sure ",
        "likelly ",
        "maybe ",
        "almost certain ",
        "|1\n",
        "a|b\n-|-\n",
        "not ",
        "na\n",
        "$",
    ),
    *("0=", "(0=", "\\frac{", "<a", "is ?", "no ", "do not have ", "confidence: ", "odds of 3 to 1 "),
    *(
        "sure i am ",
        "not say ",
        "i am wrong with ",
        "85%sure ",
        "1% my answer is just ",
        "9% not sure ",
        "no 9% chance ",
    ),
    *("a-", "1,", "0.5 ", "between 1 and ", "[1, ", "(1"),
)


@pytest.mark.parametrize("part", REPEATED)
def test_no_text_takes_long(part: str) -> None:
    value_of("sure")  # what is made once is made
    start = time.process_time()
    value_of((part * 20_000)[:20_000] + "x")
    assert time.process_time() - start < 0.2


def test_of_a_long_text_the_end_is_read() -> None:
    assert value_of("x " * 50_000 + "I am 85% sure") == 0.85


def test_each_distinct_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def counting(text: str, *arguments: Any) -> Any:
        seen.append(text)
        return read(text, *arguments)

    monkeypatch.setattr(verbs, "read", counting)
    found = parse_confidence(pl.DataFrame({"said": ["85%", "7/10", None] * 100_000}), column="said")
    assert sorted(seen) == ["7/10", "85%"]
    assert found["confidence"].to_list() == [0.85, 0.7, None] * 100_000


def test_a_scale_of_ones_own() -> None:
    words = {"Green": 0.9, "red": 0.1, "very red": 0.01}
    with pytest.warns(CalframeWarning, match="1 none"):
        found = parse_confidence(["green", "It is RED.", "very red", "likely", "not green", "85%"], words=words)
    assert found["confidence"].to_list() == approx([0.9, 0.1, 0.01, None, 0.1, 0.85])


def test_nothing_is_warned_of_where_everything_was_read(recwarn: pytest.WarningsRecorder) -> None:
    parse_confidence(["85%", None])
    assert len(recwarn) == 0


def test_columns_with_odd_names() -> None:
    for name in ("*", "^.*$", "said what?", "_cf_made2"):
        found = parse_confidence(pl.LazyFrame({"other": ["x"], name: ["85%"]}), column=name).collect()
        assert found.row(0) == ("x", "85%", 0.85, "percent")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"column": "sed"}, ColumnNotFoundError, "no column 'sed' for column=; the table has 'said'"),
        ({"column": None}, ArgumentError, "column= names the column that holds the statements"),
        ({"column": 3}, ArgumentError, "column= takes the name of a column; got 3"),
        ({"name": "id"}, ColumnClashError, "has a column 'id' already"),
        ({"name": "x"}, ColumnClashError, "has a column 'x_read' already"),
        ({"name": ""}, ArgumentError, "name= takes the name of the new column; got ''"),
        ({"scale": 0}, ArgumentError, "scale must be what full confidence is in numbers without a unit"),
        ({"scale": "percent"}, ArgumentError, "got 'percent'"),
        ({"words": {"likely": 70}}, ArgumentError, r"words must map phrases to probabilities.*got {'likely': 70}"),
        (
            {"words": {"a.*": 0.4}},
            ArgumentError,
            r"or they would never be read; got {'a\.\*': 0\.4}",
        ),
        ({"words": {"50%": 0.1}}, ArgumentError, r"got {'50%': 0\.1}"),
        ({"words": {"likely": True}}, ArgumentError, r"got {'likely': True}"),
        ({"words": ["likely"]}, ArgumentError, r"got \['likely'\]"),
        ({"column": "day"}, ScoreError, "column 'day' has type Date; statements of confidence are texts or numbers"),
    ],
)
def test_what_cannot_be_parsed(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    table = pl.DataFrame({"said": ["85%"], "id": [1], "x_read": [1], "day": [dt.date(2026, 1, 1)]})
    for data in (table, table.lazy()):
        with pytest.raises(error, match=match):
            parse_confidence(data, **{"column": "said", **arguments})


def test_other_objects_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"data must be a pandas or polars DataFrame.*got dict"):
        parse_confidence({"said": ["85%"]}, column="said")
