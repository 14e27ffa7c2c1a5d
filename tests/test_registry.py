"""Row terms: each is 0 on a row that is not used, and what its name says on one that is."""

import math

import narwhals.stable.v2 as nw
import polars as pl
import pytest

from calframe._registry import Row
from calframe._terms import TERMS

# A used row with score 3/4, label 1, weight 2 and true probability 1/2, and one that is not used: all zeros.
ROWS = pl.DataFrame({"n": [1.0, 0.0], "p": [0.75, 0.0], "y": [1.0, 0.0], "w": [2.0, 0.0], "q": [0.5, 0.0]})
LOG_2 = math.log(2)
# By hand, unweighted; with weight 2 twice that, and four times where the weight is squared.
PLAIN = {
    "w2": 1.0,
    "wy": 1.0,
    "wp": 0.75,
    "square": 0.0625,
    "w2_square": 0.0625,
    "w2_residual": 0.25,
    "w2_score": 0.75,
    "fourth": 0.00390625,
    "variance": 0.1875,
    "w2_variance": 0.1875,
    "centred": 0.25,
    "centred_square": 0.0625,
    "centred_cube": 0.015625,
    "centred_fourth": 0.00390625,
    "right": 1.0,
    "surprise": 0.5,  # as given below
    "surprise_square": 0.25,
    "impossible": 0.0,
    "positive_square": 0.0625,
    "positive_fourth": 0.00390625,
    "true_variance": 0.25,
    "true_square": 0.25,
    "true_fourth": 0.0625,
    "true_surprise": LOG_2,
    "true_surprise_square": LOG_2**2,
    "true_impossible": 0.0,
    "gain_square": (0.0625 - 0.25) ** 2,
    "gain_log_square": (0.5 - LOG_2) ** 2,
}
SQUARED = {"w2", "w2_square", "w2_residual", "w2_score", "w2_variance"}


def row(*, weighted: bool) -> Row:
    chance = nw.when(nw.col("y") == 1.0).then(nw.col("p")).otherwise(1.0 - nw.col("p"))
    return Row(
        used=nw.col("n"),
        score=nw.col("p"),
        label=nw.col("y"),
        chance=chance,
        possible=chance > 0.0,
        surprise=nw.col("n") * 0.5,
        weight=nw.col("w") if weighted else None,
        frequency=False,
        posterior=nw.col("q"),
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("term", TERMS)
def test_terms(term: str, *, weighted: bool) -> None:
    found = nw.from_native(ROWS).select(x=TERMS[term](row(weighted=weighted))).get_column("x").to_list()
    factor = (4.0 if term in SQUARED else 2.0) if weighted else 1.0
    unused = found[1] if weighted or term != "w2" else 0.0  # unweighted, the number of used rows stands for w2
    assert (found[0], unused) == (pytest.approx(PLAIN[term] * factor, rel=1e-15), 0.0)


def test_a_row_that_happened_against_all_odds() -> None:
    impossible = ROWS.with_columns(p=pl.lit(0.0), q=pl.lit(0.0))
    for term in ("impossible", "true_impossible"):
        found = nw.from_native(impossible).select(x=TERMS[term](row(weighted=True))).get_column("x").to_list()
        assert found == [1.0, 0.0]
