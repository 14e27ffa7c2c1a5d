"""Parts of the log loss from logits whose probabilities round to 0 or 1: against arithmetic with 600 digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calframe._errors import CalframeWarning, ScoreError
from calframe._kernels._isotonic import corp, corp_log
from calframe._kernels._losses import loss_parts_by_score
from tests._class_tables import SCORE, found
from tests._exact_fits import Cell, exact, tally_of
from tests._tables import Maker, approx, measure, refuses, rows

PARTS = ("mcb", "dsc", "unc", "mcb_log", "dsc_log", "unc_log")
BY_SCORE = ("calibration_loss", "refinement_loss", "calibration_loss_log", "refinement_loss_log")
NAMES = [*PARTS, *BY_SCORE]
IDENTITIES = ["log_loss", *(name for name in NAMES if name.endswith("_log"))]


def chance(logits: Sequence[float], place: int) -> Fraction:
    """Return the softmax at a place, with 600 digits; the exponential of -inf is 0."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 600, 10**6, -(10**6)
        powers = [Decimal(logit).exp() if logit > -math.inf else Decimal(0) for logit in logits]
        return Fraction(powers[place]) / sum(map(Fraction, powers), Fraction())


def exactly(cells: Sequence[Cell]) -> dict[str, float]:
    """Return the parts of cells of (logit, weight, positives)."""
    of_logits: list[Any] = [(chance([0.0, z], 1), w, k) for z, w, k in cells]
    return exact(of_logits)


def minus_log(share: Fraction) -> float:
    """Return minus the logarithm of a share, however near it is to 0 or 1."""
    with localcontext() as context:
        context.prec = 600
        return float(Decimal(share.denominator).ln() - Decimal(share.numerator).ln())


def adds_up(values: dict[str, list[Any]]) -> None:
    """Assert both splits of the log loss."""
    for i, whole in enumerate(values["log_loss"]):
        part = {name: column[i] for name, column in values.items()}
        assert part["mcb_log"] - part["dsc_log"] + part["unc_log"] == approx(whole)
        assert part["calibration_loss_log"] + part["refinement_loss_log"] == approx(whole)


LOGITS = st.one_of(st.sampled_from([-800.0, -745.0, -40.0, 0.0, 36.5, 40.0, 709.0, 800.0]), st.floats(-60, 60))
COUNTS = st.tuples(st.integers(1, 4), st.integers(0, 4)).map(lambda pair: (float(pair[0]), float(min(pair))))


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(LOGITS, COUNTS, min_size=1, max_size=8))
def test_the_parts_are_those_of_exact_arithmetic(table: dict[float, tuple[float, float]]) -> None:
    cells = [(z, *table[z]) for z in sorted(table)]
    tally, expected = tally_of(cells), exactly(cells)
    by_score = loss_parts_by_score(tally, is_logit=True)
    splits = {"": corp(tally, is_logit=True), "_log": corp_log(tally, is_logit=True)}
    of = {name + log: getattr(parts, name)[0] for log, parts in splits.items() for name in ("mcb", "dsc", "unc")}
    of |= {name: getattr(by_score, name)[0] for name in BY_SCORE}
    for name, value in of.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-11, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("logit", [30.0, 40.0, 300.0])
def test_a_small_loss_keeps_its_digits(logit: float) -> None:
    # all right and all as sure: each part is ln(1 + exp(-z)), and nothing is left to refinement
    tally = tally_of([(-logit, 1.0, 0.0), (logit, 1.0, 1.0)])
    for value in (corp_log(tally, is_logit=True).mcb, loss_parts_by_score(tally, is_logit=True).calibration_loss_log):
        np.testing.assert_allclose(value, [math.log1p(math.exp(-logit))], rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_both_splits_are_finite_where_the_log_loss_is(make: Maker, *, weighted: bool) -> None:
    table = {"y": [1, 0, 1, 0, 0, 1], "p": [3.0, -2.0, 0.0, 40.0, 800.0, 800.0], "w": [1.0, 2.0, 1.0, 0.5, 1.0, 3.0]}
    weight = table["w"] if weighted else [1.0] * 6
    cells = [(-2.0, weight[1], 0.0), (0.0, weight[2], weight[2]), (3.0, weight[0], weight[0]), (40.0, weight[3], 0.0)]
    cells.append((800.0, weight[4] + weight[5], weight[5]))
    given_weight = {"weight": "w"} if weighted else {}
    values = rows(measure(make, table, link="logit", metrics=["log_loss", *NAMES], **given_weight))
    expected = exactly(cells)
    assert values["log_loss"] == [approx(expected["loss_log"])]
    assert {name: values[name] for name in NAMES} == {name: [approx(expected[name])] for name in NAMES}
    adds_up(values)


def test_logits_are_told_apart_where_their_probabilities_are_not(make: Maker) -> None:
    # both probabilities round to 1; the rates 0 and 1 of the logits leave nothing to refinement, and are in order
    table = {"y": [0, 1], "p": [50.0, 60.0]}
    values = rows(measure(make, table, link="logit", metrics=["log_loss", *NAMES]))
    assert (values["refinement_loss_log"], values["refinement_loss"]) == ([0.0], [0.0])
    assert (values["dsc_log"], values["dsc"]) == ([approx(math.log(2))], [0.25])
    assert values["mcb_log"] == [approx(25.0)]


def test_infinite_logits_are_infinite_where_they_are_wrong(make: Maker) -> None:
    right = rows(measure(make, {"y": [1, 0], "p": [math.inf, -math.inf]}, link="logit", metrics=IDENTITIES))
    assert (right["mcb_log"], right["calibration_loss_log"]) == ([0.0], [0.0])
    adds_up(right)
    with pytest.warns(CalframeWarning, match=r"log_loss is infinite: 1 row .*mcb_log, calibration_loss_log are, too"):
        wrong = rows(measure(make, {"y": [0, 0], "p": [math.inf, -800.0]}, link="logit", metrics=IDENTITIES))
    assert (wrong["mcb_log"], wrong["calibration_loss_log"]) == ([math.inf], [math.inf])


# ---------------------------------------------------------------- several classes
# far apart, tied at the top, a class ruled out, all the rest ruled out, and two close ones far above the third
VECTORS = [
    (800.0, 0.0, 1.0),
    (5.0, 5.0, -700.0),
    (-math.inf, 1.0, 800.0),
    (-math.inf, 0.0, -math.inf),
    (900.0, 899.0, -900.0),
    (0.5, -0.25, 1.0),
]
HAPPENED = ["b", "c", "b", "b", "c", "a"]
TABLE = {"y": HAPPENED, **dict(zip(SCORE.values(), map(list, zip(*VECTORS, strict=True)), strict=True))}


def test_each_class_has_its_exact_log_loss(make: Maker) -> None:
    values = found(make(TABLE), link="logit", notion="classwise", metrics=IDENTITIES)
    expected = []
    for place, name in enumerate(SCORE):
        shares = [chance(vector, place) for vector in VECTORS]
        shares = [share if true == name else 1 - share for share, true in zip(shares, HAPPENED, strict=True)]
        expected.append(approx(math.fsum(map(minus_log, shares)) / len(VECTORS)))
    assert values["log_loss"] == expected
    adds_up(values)


def test_the_largest_score_has_its_exact_log_loss(make: Maker) -> None:
    values = found(make(TABLE), link="logit", notion="confidence", metrics=IDENTITIES)
    largest = [max(range(3), key=lambda place: vector[place]) for vector in VECTORS]
    shares = [chance(vector, place) for vector, place in zip(VECTORS, largest, strict=True)]
    right = [true == "abc"[place] for true, place in zip(HAPPENED, largest, strict=True)]
    shares = [share if hit else 1 - share for share, hit in zip(shares, right, strict=True)]
    assert values["log_loss"] == [approx(math.fsum(map(minus_log, shares)) / len(VECTORS))]
    adds_up(values)


def test_of_one_column_the_largest_score_has_it_too(make: Maker) -> None:
    # |z| and whether its sign was right: ln(1 + exp(-800)) is nothing, and a wrong 40 costs 40
    table = {"y": [0, 0, 1], "p": [-800.0, 40.0, -3.0]}
    values = rows(measure(make, table, link="logit", notion="confidence", metrics=IDENTITIES))
    assert values["log_loss"] == [approx((40 + 3 + math.log1p(math.exp(-3))) / 3)]
    adds_up(values)


def test_whole_vectors_split_their_log_loss(make: Maker) -> None:
    # of two rows of (800, 0, 0) a and b happened: the losses are 0 and 800, and the frequencies leave ln 2
    table = {"y": ["a", "b", "c"], "pa": [800.0, 800.0, 1.0], "pb": [0.0, 0.0, 1.0], "pc": [0.0, 0.0, 1.0]}
    names = ["log_loss", "calibration_loss_log", "refinement_loss_log"]
    values = found(make(table), link="logit", metrics=names)
    both = 800 - 2 * math.log(2)
    assert values["log_loss"] == [approx((800 + math.log(3)) / 3)]
    assert values["calibration_loss_log"] == [approx((both + math.log(3)) / 3)]
    assert values["refinement_loss_log"] == [approx(2 * math.log(2) / 3)]


# ---------------------------------------------------------------- the largest logits
@pytest.mark.parametrize("logit", [1e50, -1e50])
def test_the_largest_logits_have_finite_losses_and_intervals(make: Maker, logit: float) -> None:
    table = {"y": [1, 0, 1], "p": [logit, logit, 0.0]}
    names = ["log_loss", "mcb_log", "mean_score"]
    values = rows(measure(make, table, link="logit", metrics=names, confidence_level=0.9))
    assert values["log_loss"] == [approx(1e50 / 3)]
    assert values["mean_score"] == [approx((0.5 + 2 * (logit > 0)) / 3)]
    assert math.isfinite(values["log_loss_high"][0])


@pytest.mark.parametrize("logit", [1e308, -1e51])
def test_larger_ones_are_refused(make: Maker, logit: float) -> None:
    table = {"y": [1, 0], "p": [logit, 0.0]}
    match = r"logits must lie within ±1e\+50, or be infinite, .*; column 'p' has 1 row beyond, .*invalid='drop'"
    refuses(make, table, ScoreError, match, reads=True, link="logit")
    values = rows(measure(make, table, link="logit", invalid="drop", metrics=["log_loss", "mcb_log"]))
    assert (values["n_invalid"], values["log_loss"]) == ([1], [approx(math.log(2))])
