"""Bins: each score in the bin that its definition names, on its edges too, from every library."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pytest

import calframe
from calframe._binning import Bins
from calframe._errors import ArgumentError, ScoreError
from tests._definitions import bin_of, defined, edges_of
from tests._tables import Maker, approx, column, measure, refuses, value

COUNTS = range(1, 101)
DTYPES = ["float64", "float32"]


def edge_scores(edges: list[float], dtype: str) -> Any:
    """Return every edge and its two neighbours in the column's type, those outside [0, 1] brought back to it."""
    at = np.array(edges, dtype=dtype)
    below, above = np.nextafter(at, at.dtype.type(-1)), np.nextafter(at, at.dtype.type(2))
    return np.clip(np.concatenate([below, at, above]), 0, 1)


def test_edges_are_the_nearest_numbers_to_their_fractions() -> None:
    for count in COUNTS:
        bins = Bins.of_count(count, closed="left")
        assert bins.edges == tuple(float(Fraction(k, count)) for k in range(count + 1))


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("library", ["polars", "polars[lazy]", "pyarrow", "duckdb"])  # pandas tables run on polars
def test_scores_on_and_beside_every_edge(library: str, dtype: str, closed: Any) -> None:
    make, single = Maker(library), dtype == "float32"
    scores, wanted = {}, {}
    for count in COUNTS:
        edges = edges_of(count, single=single)
        some = edge_scores(edges, dtype)
        scores[f"p{count}"] = np.resize(some, 3 * 101)  # one length for all: the first ones again
        wanted[f"b{count}"] = [bin_of(float(score), edges, closed=closed) for score in scores[f"p{count}"]]
    index = {
        f"b{count}": Bins.of_count(count, closed=closed).index(nw.col(f"p{count}").cast(nw.Float64), narrow=single)
        for count in COUNTS
    }
    frame = nw.from_native(make({"row": np.arange(303), **scores})).lazy().select("row", **index)
    found = (frame.collect("polars") if make.library == "duckdb" else frame.collect()).sort("row")
    wrong = [count for count in COUNTS if found.get_column(f"b{count}").to_list() != wanted[f"b{count}"]]
    assert wrong == []


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [5, 10, 15, 20, 49, 100])
def test_errors_of_scores_on_and_beside_edges(make: Maker, count: int, dtype: str, closed: str) -> None:
    edges = edges_of(count, single=dtype == "float32")
    scores = edge_scores(edges, dtype)
    labels = np.random.default_rng(count).integers(0, 2, len(scores))
    found = measure(make, {"y": labels, "p": scores}, metrics=["ece", "mce"], bins=count, closed=closed)
    rows = [(int(y), float(p), 1.0) for y, p in zip(labels, scores, strict=True)]
    for metric in ("ece", "mce"):
        assert column(found, metric) == approx([defined(metric, rows, edges=edges, closed=closed)])


def test_models_of_two_widths_keep_their_own_edges(make: Maker) -> None:
    # 0.3 and 0.6 in float32 lie on the edges of ten bins once these are rounded to float32 too, as in float64
    table = {"y": [1, 0, 1], "single": np.array([0.3, 0.6, 0.29], "float32"), "double": [0.3, 0.6, 0.29]}
    found = calframe.metrics(make(table), label="y", score=["single", "double"], metrics="mce", bins=10)
    # alone in bin 3, 6 and 2: gaps .7, .6 and .71; were 0.3 and 0.29 together, the largest would be .705
    assert column(found, "mce") == pytest.approx([0.71, 0.71], rel=1e-7)


def test_a_score_of_three_tenths_is_where_a_person_expects_it(make: Maker) -> None:
    # https://github.com/numpy/numpy/issues/20610: linspace puts the edge just above 0.3, 0.6 and 0.7
    scores = [k / 100 for k in range(100)]
    left = [bin_of(p, edges_of(10), closed="left") for p in scores]
    assert [left.count(b) for b in range(10)] == [10] * 10
    right = [bin_of(p, edges_of(10), closed="right") for p in scores]
    assert [right.count(b) for b in range(10)] == [11, *[10] * 8, 9]
    # one positive a bin at its lowest score: then ece is sum |sum p - 1| / 100, by exact fractions
    table = {"y": [int(k % 10 == 0) for k in range(100)], "p": scores}
    exact = sum(abs(sum(Fraction(10 * b + k, 100) for k in range(10)) - 1) for b in range(10)) / 100
    assert value(make, table, "ece", bins=10) == approx(float(exact))


@pytest.mark.parametrize("form", [list, tuple, np.array], ids=["list", "tuple", "array"])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_given_edges(make: Maker, form: Any, closed: str) -> None:
    edges = [0.0, 0.1, 0.3, 0.7, 1.0]
    scores = np.unique(edge_scores(edges, "float64"))
    labels = np.arange(len(scores)) % 2
    rows = [(int(y), float(p), 1.0) for y, p in zip(labels, scores, strict=True)]
    found = measure(make, {"y": labels, "p": scores}, metrics=["ece", "ace"], bins=form(edges), closed=closed)
    for metric in ("ece", "ace"):
        assert column(found, metric) == approx([defined(metric, rows, edges=edges, closed=closed)])


def test_given_edges_meet_scores_in_single_precision(make: Maker) -> None:
    # the float32 nearest 0.7 is below the float64 nearest 0.7; both mean seven tenths
    table = {"y": [1, 0], "p": np.array([0.7, 0.75], "float32")}
    assert value(make, table, "ece", bins=[0, 0.7, 1]) == pytest.approx(abs(0.7 + 0.75 - 1) / 2, rel=1e-6)
    assert value(make, table, "mce", bins=[0, 0.7, 1], closed="right") == pytest.approx(0.75, rel=1e-6)
    assert value(make, table, "ece", bins=[0.7, 1]) == pytest.approx(0.225, rel=1e-6)  # not outside


def test_edges_may_be_whole_numbers(make: Maker) -> None:
    assert value(make, {"y": [1, 0], "p": [0.25, 0.5]}, "ece", bins=range(2)) == 0.125


def test_edges_beyond_the_scores_are_no_error(make: Maker) -> None:
    # bins [-1, .5) and [.5, 2]: gaps |.25 - 1| and |.5 - 0|
    assert value(make, {"y": [1, 0], "p": [0.25, 0.5]}, "ece", bins=[-1, 0.5, 2]) == (0.75 + 0.5) / 2


@pytest.mark.parametrize(
    ("bins", "match"),
    [
        ([0, 0.5], r"score column 'p' has 2 rows outside the bin edges 0 to 0\.5, from 0\.6 to 0\.9\. Give edges"),
        ([0.3, 1], r"score column 'p' has 1 row outside the bin edges 0\.3 to 1, from 0\.2"),
        ([0.3, 0.6], r"score column 'p' has 2 rows outside the bin edges 0\.3 to 0\.6, from 0\.2 to 0\.9"),
    ],
)
def test_scores_outside_the_edges_are_counted(make: Maker, bins: list[float], match: str) -> None:
    table = {"y": [1, 0, 1, 0, 1], "p": [0.9, 0.2, 0.6, 0.4, None]}
    refuses(make, table, ScoreError, match, reads=True, bins=bins)


def test_scores_outside_the_edges_can_be_left_out(make: Maker) -> None:
    table = {"y": [1, 0, 1, 0], "p": [0.9, 0.2, 0.6, 0.4]}
    found = measure(make, table, metrics="ece", bins=[0, 0.5], invalid="drop")
    assert (column(found, "n"), column(found, "n_invalid")) == ([2], [2])
    assert column(found, "ece") == approx([0.3])


def test_edges_do_not_matter_where_no_bins_are_asked_for(make: Maker) -> None:
    assert value(make, {"y": [1], "p": [0.9]}, "brier", bins=[0, 0.5]) == approx(0.01)


def test_one_bin_is_the_gap(make: Maker) -> None:
    table = {"y": [1, 0, 1], "p": [0.0, 0.5, 1.0]}
    assert value(make, table, "ece", bins=1) == abs(value(make, table, "gap"))


def test_more_bins_than_rows(make: Maker) -> None:
    table = {"y": [1, 0, 1], "p": [0.0, 0.3, 1.0]}
    assert value(make, table, "ece", bins=100_000) == approx(1.3 / 3)


def test_more_than_a_thousand_given_edges(make: Maker) -> None:
    # some engines nest a term in the next one, and give up at some depth
    edges = [k / 1500 for k in range(1501)]
    table = {"y": [1, 0, 1, 0], "p": [0.0, 0.3, 0.30001, 1.0]}  # .3 and .30001 share a bin
    assert value(make, table, "ece", bins=edges) == approx((1 + abs(0.60001 - 1) + 1) / 4)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_a_numpy_integer_is_a_number_of_bins(kind: Any) -> None:
    table = {"y": [1, 0], "p": [0.3, 0.6]}
    assert value(Maker("polars"), table, "ece", bins=kind(10)) == approx((0.7 + 0.6) / 2)


@pytest.mark.parametrize(
    ("bins", "match"),
    [
        (0, r"bins must be a number from 1 to 100,000; got 0"),
        (-3, r"bins must be a number from 1 to 100,000; got -3"),
        (100_001, r"bins must be a number from 1 to 100,000; got 100001"),
        (10**400, r"bins must be a number from 1 to 100,000; got more"),
        (2.5, r"bins must be a number of bins or a list of edges; got 2\.5"),
        (True, r"bins must be a number of bins or a list of edges; got True"),
        (None, r"bins must be a number of bins or a list of edges; got None"),
        ("ten", r"bins must be a number of bins, a list of edges, or 'auto'; got 'ten'"),
        ([], r"two or more finite, strictly ascending numbers; got \[\]"),
        ([0.5], r"two or more finite, strictly ascending numbers; got \[0\.5\]"),
        ([1, 0], r"two or more finite, strictly ascending numbers; got \[1\.0, 0\.0\]"),
        ([0, 0.5, 0.5, 1], r"strictly ascending"),
        ([0, float("nan"), 1], r"finite"),
        ([0, float("inf")], r"finite"),
        ([0, 10**400], r"bins"),
        (["a", "b"], r"bins"),
        ([0, None, 1], r"bins"),
        (np.array([[0, 0.5, 1]]), r"bins"),
    ],
)
def test_bins_that_are_not(bins: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        measure(Maker("polars"), {"y": [1], "p": [0.5]}, bins=bins)


def test_the_definition_used_here_is_itself_right() -> None:
    # a bin holds a score if and only if the score lies between its edges
    for count in (3, 10, 49):
        edges = edges_of(count)
        for score in edge_scores(edges, "float64").tolist():
            low, high = list(pairwise(edges))[bin_of(score, edges, closed="left")]
            assert low <= score < high or score == high == 1.0
            low, high = list(pairwise(edges))[bin_of(score, edges, closed="right")]
            assert low < score <= high or score == low == 0.0
    assert (bisect_right([0.0, 0.5, 1.0], 0.5), bisect_left([0.0, 0.5, 1.0], 0.5)) == (2, 1)
