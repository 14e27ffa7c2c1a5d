"""Worked examples of others: the survey's tables, a tutorial's, and tables that tell the notions apart."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

from calframe._errors import CalframeWarning
from tests._class_tables import DATA, SCORE, found, same
from tests._tables import Maker, approx, measure, rows, value

SURVEY: dict[str, Any] = {"score": {1: "p1", 2: "p2", 3: "p3"}, "bins": 5, "closed": "right"}


def survey_table(make: Maker, name: str) -> Any:
    return make(pl.read_csv(DATA / name).to_dict(as_series=False))


# ---------------------------------------------------------------- the survey
def test_the_thirty_rows_of_the_survey(make: Maker) -> None:
    # Silva Filho et al. 2023, https://arxiv.org/abs/2112.10327: the exact fractions of its table, which the authors'
    # slides print with gaps rounded to two decimals (.1787, .2117, .3, .48). Rows 7, 8, 14, 15 and 27 are ties.
    data = survey_table(make, "seed_toy30.csv")
    exact = {
        "accuracy": Fraction(13, 30),
        "brier": Fraction(1597, 2250),
        "confidence_ece": Fraction(19, 90),
        "confidence_mce": Fraction(3, 10),
        "classwise_ece": Fraction(482, 2700),
        "classwise_mce": Fraction(17, 35),
    }
    same(found(data, metrics=list(exact), **SURVEY), {name: [float(value)] for name, value in exact.items()})


def test_the_three_classes_of_the_survey(make: Maker) -> None:
    data = survey_table(make, "seed_toy30.csv")
    values = found(data, notion="classwise", metrics=["ece", "mce"], **SURVEY)
    assert values["class"] == [1, 2, 3]
    same(values, {"ece": [169 / 900, 131 / 900, 182 / 900]})
    assert values["mce"][0] == max(values["mce"]) == approx(17 / 35)
    same(found(data, notion="confidence", metrics=["ece", "mce"], **SURVEY), {"ece": [19 / 90], "mce": [0.3]})


def test_the_impossible_rows_of_the_survey(make: Maker) -> None:
    # rows 12 and 21 give what happened no chance; scikit-learn clips at the epsilon of float64
    data = survey_table(make, "seed_toy30.csv")
    with pytest.warns(CalframeWarning, match="2 rows give probability 0"):
        assert found(data, metrics="log_loss", **SURVEY)["log_loss"] == [math.inf]
    same(found(data, metrics="log_loss", clip=2.0**-52, **SURVEY), {"log_loss": [3.347761563688164]})


def test_the_ten_rows_of_the_survey(make: Maker) -> None:
    # The two decompositions of its table 2; the exact values follow from a table that gives the printed ones
    values = found(
        survey_table(make, "seed_toy10_reconstructed.csv"),
        posterior={1: "q1", 2: "q2", 3: "q3"},
        metrics="all",
        **SURVEY,
    )
    same(values, {"brier": [0.708], "calibration_loss": [0.191 + 1 / 3000], "refinement_loss": [0.516 + 2 / 3000]})
    same(values, {"epistemic_loss": [0.258], "irreducible_loss": [0.45]})
    logs = {"log_loss": 1.124122, "calibration_loss_log": 0.292345, "refinement_loss_log": 0.831777}
    logs |= {"epistemic_loss_log": 0.483300, "irreducible_loss_log": 0.640822}
    assert {name: round(values[name][0], 6) for name in logs} == logs


# ---------------------------------------------------------------- a tutorial
CONFIDENCES = [0.55, 0.50, 0.65, 0.60, 0.75, 0.70, 0.85, 0.80, 0.95, 0.90]
RIGHT = [1, 0, 1, 1, 1, 0, 1, 0, 1, 1]


@pytest.mark.parametrize("bins", [[0.5, 0.6, 0.7, 0.8, 0.9, 1.0], 10], ids=["five bins from .5", "ten bins"])
def test_ten_confidences_of_a_tutorial(make: Maker, bins: Any) -> None:
    # Ten samples in five bins of .1 from .5 on: 1, 2, 1, 1 and 2 of two are right; by its own table
    # .2 (.025 + .375 + .225 + .325 + .075) = .205, and the largest gap is |1 - .625|
    values = rows(
        measure(make, {"y": RIGHT, "p": CONFIDENCES}, metrics=["rate", "mean_score", "ece", "mce"], bins=bins)
    )
    same(values, {"rate": [0.7], "mean_score": [0.725], "ece": [0.205], "mce": [0.375]})


def test_ten_confidences_as_the_scores_of_two_classes(make: Maker) -> None:
    # the same classifier of sentiment with its two scores; it says positive in every second row, and at one half too
    says = ["negative", "positive"] * 5
    other = {"positive": "negative", "negative": "positive"}
    table = {"y": [said if right else other[said] for said, right in zip(says, RIGHT, strict=True)]}
    for name in ("negative", "positive"):
        table[name] = [sure if said == name else 1 - sure for sure, said in zip(CONFIDENCES, says, strict=True)]
    score = {name: name for name in ("negative", "positive")}
    values = found(make(table), score=score, notion="confidence", metrics=["rate", "ece", "mce"], bins=10)
    same(values, {"rate": [0.7], "ece": [0.205], "mce": [0.375]})
    assert found(make(table), score=score, metrics="accuracy")["accuracy"] == [0.7]


# ---------------------------------------------------------------- notions apart
def forty_rows() -> dict[str, list[Any]]:
    """Return four vectors of ten rows each, with the numbers of each class among them.

    Class a has score .4 in the first two, where 7 + 1 of 20 are a; class b has score .6 in the second and the last,
    where 9 + 3 of 20 are b; and so on: every score of every class is right over the rows that have it.
    """
    vectors = [(0.4, 0.3, 0.3), (0.4, 0.6, 0.0), (0.3, 0.3, 0.4), (0.3, 0.6, 0.1)]
    counts = [(7, 0, 3), (1, 9, 0), (0, 6, 4), (6, 3, 1)]
    table: dict[str, list[Any]] = {"y": [], "pa": [], "pb": [], "pc": []}
    for vector, count in zip(vectors, counts, strict=True):
        for label, times in zip("abc", count, strict=True):
            table["y"] += [label] * times
        for column, score in zip(SCORE.values(), vector, strict=True):
            table[column] += [score] * 10
    return table


def test_classes_may_be_calibrated_and_confidence_not(make: Maker) -> None:
    # The survey's section 2.3 says so of forty rows; these are ours. Of the 20 rows whose largest score is .4
    # (the first vector says a, the third says c) 7 + 4 are right, of those of .6 9 + 3: |.4 - 11/20| / 2.
    data = make(forty_rows())
    names = ["classwise_ece", "classwise_mce", "confidence_ece", "confidence_mce"]
    values = found(data, metrics=names, bins=10)
    same(values, {"classwise_ece": [0.0], "classwise_mce": [0.0], "confidence_ece": [0.075], "confidence_mce": [0.15]})
    classes = found(data, notion="classwise", metrics=["ece", "gap"], bins=10)
    same(classes, {"ece": [0.0] * 3, "gap": [0.0] * 3})


def test_calibration_that_has_learnt_nothing(make: Maker) -> None:
    # three of ten happened, and each row says .3
    table = {"y": [1] * 3 + [0] * 7, "p": [0.3] * 10}
    nothing = ["ece", "mce", "mcb", "dsc", "resolution", "brier_skill", "sharpness"]
    values = rows(measure(make, table, metrics=[*nothing, "auc", "brier", "unc"]))
    same(values, {name: [0.0] for name in nothing} | {"auc": [0.5], "brier": [0.21], "unc": [0.21]})


@pytest.mark.parametrize(("bins", "ece"), [(1, 0.0), (2, 0.25), (4, 0.65), (10, 0.65)])
def test_the_error_grows_with_the_number_of_bins(make: Maker, bins: int, ece: float) -> None:
    # one bin: mean .5, rate 1/2. Halves: .25 and .75 against 1/2. From quarters on each row is alone: .9, .4, .4, .9
    assert value(make, {"y": [1, 0, 1, 0], "p": [0.1, 0.4, 0.6, 0.9]}, "ece", bins=bins) == approx(ece)


# ---------------------------------------------------------------- what others ran into
def test_a_brier_score_above_one_is_a_sum_over_the_classes(make: Maker) -> None:
    # https://github.com/EleutherAI/lm-evaluation-harness/pull/1924: (1 + 0 + 1 + .25 + .0625 + .0625) / 2
    table = {"y": ["c", "a"], "pa": [1.0, 0.5], "pb": [0.0, 0.25], "pc": [0.0, 0.25]}
    same(found(make(table), metrics="brier"), {"brier": [1.1875]})
