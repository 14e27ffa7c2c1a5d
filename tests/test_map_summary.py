"""What a map does, in words: the rules one by one, on maps whose values are worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._errors import ColumnClashError
from calframe._maps import _traces
from calframe._maps._forms import Linear, OneVersusRest
from tests._map_examples import logistic, map_of, softmax, through
from tests._markup import Document
from tests._tables import Maker, rows

LONG = "a column with a name that nobody would want to read twice in one line"
MIDDLE = "pulls scores towards the middle: 0.1 -> 0.25, 0.5 -> 0.5, 0.9 -> 0.75"  # odds 1/9 become 1/3


def said(form: Any, **arguments: Any) -> str:
    (words,) = map_of(form, **arguments).summary()["summary"]
    return words


# One map


@pytest.mark.parametrize(
    ("slope", "intercept", "words"),
    [
        # odds doubled: 1/9 to 2/9, 1 to 2, 9 to 18
        (1.0, math.log(2), "raises scores: 0.1 -> 0.18, 0.5 -> 0.67, 0.9 -> 0.947"),
        (1.0, -math.log(2), "lowers scores: 0.1 -> 0.053, 0.5 -> 0.33, 0.9 -> 0.82"),
        (0.5, 0.0, MIDDLE),
        # odds squared: 1/81 and 81
        (2.0, 0.0, "pushes scores away from the middle: 0.1 -> 0.012, 0.5 -> 0.5, 0.9 -> 0.988"),
        # logit / 2 + logit(0.2) / 2 leaves 0.2: odds sqrt(1/9 / 4) = 1/6, 1/2, sqrt(9 / 4) = 3/2
        (
            0.5,
            math.log(0.25) / 2,
            "raises scores below 0.2 and lowers those above: 0.1 -> 0.14, 0.5 -> 0.33, 0.9 -> 0.6",
        ),
        # 2 logit - logit(0.2) leaves 0.2: odds 4/81, 4, 324
        (2.0, math.log(4), "lowers scores below 0.2 and raises those above: 0.1 -> 0.047, 0.5 -> 0.8, 0.9 -> 0.9969"),
        (1.0, 0.0, "leaves scores nearly as they are"),  # the logits of 0 and 1 are held
        (0.0, math.log(3 / 7), "gives all scores nearly the same, 0.3"),
        # the largest change is tanh(c / 4), at the logit -c / 2: 0.005 where c = 4 atanh(0.005) = 0.0200002
        (1.0, 0.0199, "leaves scores nearly as they are"),
        (1.0, 0.0201, "raises scores: 0.1 -> 0.1, 0.5 -> 0.51, 0.9 -> 0.902"),
    ],
)
def test_what_a_logistic_map_does(slope: float, intercept: float, words: str) -> None:
    assert said(logistic((slope, intercept))) == words


def test_the_identity_leaves_scores_as_they_are() -> None:
    nothing = np.zeros((0, 1))
    assert said(Linear(features=(), names=(), values=nothing, errors=nothing)) == "leaves scores as they are"


@pytest.mark.parametrize(
    ("points", "words"),
    [
        # changes +0.1, -0.1, then from +0.1 to 0: at 0.9 it is 0.76 + 24/34 of 0.24
        (
            ((0, 0.1), (0.33, 0.43), (0.33, 0.23), (0.66, 0.56), (0.66, 0.76), (1, 1)),
            "raises and lowers scores by turns: 0.1 -> 0.2, 0.5 -> 0.4, 0.9 -> 0.929",
        ),
        # +0.1 below 0.6, -0.1 above but for +0.02 at the end: 0.1 of 9 is minor
        (
            ((0, 0.1), (0.6, 0.7), (0.6, 0.5), (0.95, 0.85), (0.95, 0.97), (1, 1.02)),
            "mostly pulls scores towards the middle: 0.1 -> 0.2, 0.5 -> 0.6, 0.9 -> 0.8",
        ),
        # nothing between 0.2 and 0.8: the change turns where it is 0 first
        (
            ((0, 0.1), (0.2, 0.2), (0.8, 0.8), (1, 0.9)),
            "raises scores below 0.2 and lowers those above: 0.1 -> 0.15, 0.5 -> 0.5, 0.9 -> 0.85",
        ),
    ],
)
def test_what_a_broken_line_does(points: Any, words: str) -> None:
    assert said(through(*((x, min(y, 1.0)) for x, y in points))) == words


def test_a_change_that_counts_everywhere_is_one_of_all_scores() -> None:
    # 0.3 + 0.7 p up to p = 0.8, where a tenth is 0.08 and 0.5 is further from the half than that
    form = through((0.0, 0.3), (1.0, 1.0))
    assert said(form, high=0.8) == "raises all scores: 0.1 -> 0.37, 0.4 -> 0.58, 0.72 -> 0.8"
    assert said(form).startswith("raises scores: 0.1 -> 0.37")


@pytest.mark.parametrize(
    ("low", "high", "scores"),
    [
        (0.0, 1.0, [0.1, 0.5, 0.9]),
        (0.03, 0.88, [0.1, 0.5, 0.8]),  # 0.115, 0.455, 0.795: the last is further than 0.085 from 0.9
        (0.0, 0.04, [0.004, 0.02, 0.036]),
        (0.9, 0.99, [0.909, 0.945, 0.981]),
        (0.3, 0.3, [0.3]),
        (0.5, 1.0, [0.55, 0.75, 0.9]),
    ],
)
def test_the_scores_written_out_lie_in_the_fitted_range(low: float, high: float, scores: list[float]) -> None:
    words = said(logistic((1.0, 2.0)), low=low, high=high)
    assert [float(pair.split(" -> ")[0]) for pair in words.split(": ")[1].split(", ")] == scores


def test_small_scores_have_small_changes() -> None:
    # odds up by a tenth: at most 0.0004 of scores up to 0.004, and a twentieth of these is 0.0002
    form = logistic((1.0, math.log(1.1)))
    assert said(form, low=0.0, high=0.004).startswith("raises scores: 0.0004 -> 0.00044")
    assert said(form, low=0.996, high=1.0).startswith("raises scores: 0.9964 -> 0.9967")
    assert said(logistic((1.0, math.log(1.04))), low=0.0, high=0.004) == "leaves scores nearly as they are"


def test_no_probability_is_written_as_one_that_it_is_not() -> None:
    assert said(logistic((1.0, 20.0))).endswith("0.9 -> > 0.999999")
    assert said(logistic((1.0, -20.0))).startswith("lowers scores: 0.1 -> < 0.000001")
    assert said(through((0.0, 0.0), (1.0, 0.0))) == "gives all scores nearly the same, 0"


def test_the_largest_change_has_its_sign() -> None:
    table = map_of(through((0.0, 0.1), (1.0, 0.7))).summary()
    assert table["largest_change"].to_list() == pytest.approx([-0.3])


def test_logits_read_as_the_probabilities_they_stand_for() -> None:
    assert said(logistic((0.5, 0.0)), link="logit") == MIDDLE


# Segments


def segmented() -> calframe.CalibrationMap:
    notes = (None, "held at a bound", "only one class: takes the pooled map", "no usable rows: takes the pooled map")
    segments = {
        "west": (1, 0.0, 1.0),
        "east": (2, 0.0, 1.0),
        "few": (0, 0.0, 1.0),
        "none": (0, math.nan, math.nan),
    }
    form = logistic((1.0, math.log(2)), (0.5, 0.0), (1.0, -math.log(2)))
    return map_of(form, segments=segments, notes=notes)


def test_each_segment_has_a_row_after_the_pooled_map() -> None:
    table = segmented().summary()
    assert table.columns == ["g", "n", "largest_change", "summary", "note"]
    assert table["g"].to_list() == [None, "west", "east", "few", "none"]
    assert table["n"].to_list() == [1000, 40, 30, 20, 10]
    starts = ["raises scores", "pulls scores", "lowers scores"]
    assert [words[:13].rstrip() for words in table["summary"][:3]] == [start[:13].rstrip() for start in starts]
    assert table["summary"][3:].to_list() == [
        "takes the pooled map: only one class",
        "takes the pooled map: no usable rows",
    ]
    assert table["note"].to_list() == [None, *segmented().segments.note]
    # what happens to the rows of a segment that takes the pooled map is known, too
    assert table["largest_change"][3] == table["largest_change"][0]
    assert table["largest_change"][4] is None


def test_notes_of_the_whole_fit_stand_beside_the_pooled_map() -> None:
    found = map_of(logistic((1.0, 0.0)), notes=(), low=None, high=None)
    assert found.summary()["note"].to_list() == [None]
    table = {"y": [0, 1] * 4, "p": [0.25, 0.75] * 4, "g": list("aabbccdd")}
    few = calframe.fit(pl.DataFrame(table), label="y", score="p", by="g", method="isotonic")
    (note,) = few.summary()["note"]
    assert note == "; ".join(few.notes)
    assert "5 segments" in note


def test_blocks_of_segments_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = segmented().summary()
    monkeypatch.setattr(_traces, "_MOST_NUMBERS", 7)
    assert segmented().summary().equals(whole)


def test_a_map_with_a_segment_without_rows_is_saved(tmp_path: Any) -> None:
    found = segmented()
    assert calframe.load_map(found.save(tmp_path / "map.json")).summary().equals(found.summary())


def test_the_summary_comes_in_the_library_of_the_table(make: Maker) -> None:
    # 0.2 came true in 1 of 10 cases and 0.8 in 9: odds squared, and twice as many logits as 1/4 and 4
    score, late = [0.2] * 10 + [0.8] * 10, [1] + [0] * 9 + [1] * 9 + [0]
    columns = {"y": late * 2, "p": score * 2, "g": ["a"] * 20 + ["b"] * 20}
    table = calframe.fit(make(columns), label="y", score="p", by="g", method="isotonic", pooling="none").summary()
    assert isinstance(table, make.result) or (make.lazy and isinstance(table, pl.DataFrame))
    found = rows(table)
    assert found["g"] == [None, "a", "b"]
    assert set(found["summary"]) == {"pushes scores away from the middle: 0.26 -> 0.18, 0.5 -> 0.5, 0.74 -> 0.82"}


def test_two_score_columns_are_those_of_the_second_class() -> None:
    late = [1] + [0] * 9 + [1] * 9 + [0]
    p = pl.Series("p", [0.2] * 10 + [0.8] * 10)
    table = pl.DataFrame({"y": late, "p": p, "q": 1 - p, "v": [[1 - each, each] for each in p]})
    table = table.with_columns(s=pl.struct(no="q", yes="p"), w=pl.col("y").replace_strict({0: "no", 1: "yes"}))
    one = calframe.fit(table, label="y", score="p", method="isotonic").summary()
    several: list[dict[str, Any]] = [
        {"label": "y", "score": {0: "q", 1: "p"}},
        {"label": "y", "score": "v", "classes": [0, 1]},
        {"label": "w", "score": "s", "classes": ["no", "yes"]},
    ]
    for arguments in several:
        assert calframe.fit(table, method="isotonic", **arguments).summary().equals(one)


@pytest.mark.parametrize("name", ["n", "note", "value", "parameter", "summary", "largest_change"])
def test_a_segment_column_may_not_be_called_like_a_column_of_the_tables(name: str) -> None:
    table = pl.DataFrame({"y": [0, 1], "p": [0.1, 0.9], name: ["a", "b"]})
    with pytest.raises(ColumnClashError, match=f"segment column '{name}' has the name of a result column"):
        calframe.fit(table, label="y", score="p", by=name)


# Several classes


def test_a_temperature_is_named() -> None:
    # of three classes, at T = 2: sqrt(p) / (sqrt(p) + 2 sqrt((1 - p) / 2)); the range from 1/3 to 1 has 0.4 at a tenth
    form = softmax(np.eye(3) / 2, [0, 0, 0], temperature=2.0)
    assert said(form) == "temperature 2 lowers largest probabilities: 0.4 -> 0.37, 0.67 -> 0.5, 0.9 -> 0.68"


def test_classes_that_gain_and_lose_are_named() -> None:
    # class a has its odds doubled, 9 to 18; the others share 0.1, and a third class then has 0.9 / (0.9 + 0.05 + 0.1)
    form = softmax(np.eye(3), [math.log(2), 0, 0])
    assert said(form).endswith("0.9 of class 'b' -> 0.86, of 'a' -> 0.947")
    assert said(softmax(np.eye(3), [0, 0, 0])).startswith("leaves largest probabilities")


def test_one_versus_rest_maps_are_looked_at_over_all_that_is_possible() -> None:
    # each class has half its probability and a quarter: (p / 2 + 1/4) / (1 / 2 + 3/4) of three
    half = through((0.0, 0.25), (1.0, 0.75))
    words = said(OneVersusRest(classes=(half, half, half)), low=None, high=None)
    assert words == "lowers largest probabilities: 0.4 -> 0.36, 0.67 -> 0.47, 0.9 -> 0.56"


@pytest.mark.parametrize("link", ["probability", "logit"])
def test_vectors_in_one_column(link: Any) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.dirichlet(np.ones(3), 300)
    labels = [int(rng.choice(3, p=vector)) for vector in vectors]
    given = np.log(vectors) if link == "logit" else vectors
    spread = pl.DataFrame({"y": labels, "v": given.tolist()}).with_columns(
        pl.col("v").list.get(i).alias(f"p{i}") for i in range(3)
    )
    one = calframe.fit(spread, label="y", score="v", classes=[0, 1, 2], method="vector", link=link)
    columns = {i: f"p{i}" for i in range(3)}
    other = calframe.fit(spread, label="y", score=columns, method="vector", link=link)
    assert one.summary().equals(other.summary())
    # the largest probability of any row
    assert (one.low, one.high) == pytest.approx((vectors.max(axis=1).min(), vectors.max()))


# In a line, and in a notebook


@pytest.mark.parametrize(
    ("by", "shown"),
    [
        ((), "<CalibrationMap: platt, from 1,000 rows; .table, .apply(data), .save(path)>"),
        (("g",), "<CalibrationMap: platt by g: 4 segments, from 1,000 rows; .summary()>"),
    ],
)
def test_a_map_in_a_line(by: Any, shown: str) -> None:
    assert repr(segmented() if by else map_of(logistic((1.0, 0.0)))) == shown


@pytest.mark.parametrize("name", [LONG, "駅" * 60, "a\nb" * 40])
def test_a_line_has_at_most_80_columns(name: str) -> None:
    keys = {name: list("aabbccddee"), "y": [0, 1] * 5, "p": [0.2, 0.6] * 5}
    found = calframe.fit(pl.DataFrame(keys), label="y", score="p", by=name, method="isotonic", pooling="none")
    shown = repr(found)
    assert shown.startswith("<CalibrationMap: isotonic by ")
    assert shown.endswith("…: 5 segments, from 10 rows>")
    assert len(shown) + shown.count("駅") <= 80
    assert shown.isprintable()


def test_a_card_holds_the_first_segments() -> None:
    names = {f"<b>{i}": (1, 0.0, 1.0) for i in range(30)}
    page = Document(map_of(logistic((1.0, 0.0), (0.5, 0.0)), segments=names)._repr_html_())
    assert [tag for tag, _ in page.elements].count("tr") == 21
    assert page.words[0] == (
        "Calibration map of p: platt by g: 30 segments, from 1,000 rows; 11 more segments in .summary()"
    )
    assert {"(pooled)", "<b>0", MIDDLE} <= set(page.words)
    assert page.open == []


def test_a_card_of_one_map_has_one_row() -> None:
    page = Document(map_of(through((0.0, 0.1), (1.0, 0.7)))._repr_html_())
    words = "raises scores below 0.25 and lowers those above: 0.1 -> 0.16, 0.5 -> 0.4, 0.9 -> 0.64"
    assert page.words == [
        "Calibration map of p: platt, from 1,000 rows",
        *("n", "largest_change", "summary", "note"),
        *("1000", "-0.3", words, "–"),
    ]
