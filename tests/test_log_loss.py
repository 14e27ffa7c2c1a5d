"""Log loss at its ends: infinite where it is, exact from logits, clipped only when asked."""

from __future__ import annotations

import math

import polars as pl
import pytest

import calframe
from calframe._errors import CalframeWarning
from tests._tables import Maker, approx, column, measure, rows, value


def test_log_loss_is_infinite_where_it_is_with_one_warning(make: Maker) -> None:
    table = {"y": [1, 1, 0, 0], "p": [0.0, 0.5, 1.0, 0.5], "g": ["a", "b", "c", "c"]}
    with pytest.warns(CalframeWarning, match=r"log_loss is infinite: 2 rows give probability 0") as caught:
        found = measure(make, table, by="g", metrics="log_loss")
    assert column(found, "log_loss") == [math.inf, approx(math.log(2)), math.inf]
    assert len(caught) == 1
    assert "clip=1e-15" in str(caught[0].message)


def test_a_warning_points_at_the_line_that_asked(make: Maker) -> None:
    with pytest.warns(CalframeWarning, match=r"1 row gives probability 0") as caught:
        rows(calframe.metrics(make({"y": [1], "p": [0.0]}), label="y", score="p", metrics="log_loss"))
    assert caught[0].filename.endswith(("test_log_loss.py", "_tables.py"))


def test_a_clip_keeps_log_loss_finite_and_nothing_else(make: Maker) -> None:
    found = rows(measure(make, {"y": [1, 0], "p": [0.0, 0.5]}, metrics=["log_loss", "brier"], clip=0.25))
    assert found["log_loss"] == [approx((math.log(4) + math.log(2)) / 2)]
    assert found["brier"] == [(1 + 0.25) / 2]


def test_certain_and_right_costs_nothing(make: Maker) -> None:
    assert value(make, {"y": [1, 0], "p": [1.0, 0.0]}, "log_loss") == 0.0


@pytest.mark.parametrize("logit", [800.0, 30.0, 1.0])
def test_logits_lose_no_log_loss(make: Maker, logit: float) -> None:
    # -ln(sigmoid(-x)) = x + ln(1 + exp(-x)); at 800 the probability itself has long rounded to 0
    table = {"y": [0, 1], "p": [logit, -logit]}
    found = rows(measure(make, table, link="logit", metrics=["log_loss", "brier", "mean_score"]))
    share = 1 / (1 + math.exp(-logit))
    assert found["log_loss"] == [approx(logit + math.log1p(math.exp(-logit)))]
    assert found["brier"] == [approx(share**2)]
    assert found["mean_score"] == [0.5]


def test_infinite_logits_are_certain_scores(make: Maker) -> None:
    right = {"y": [1, 0], "p": [math.inf, -math.inf]}
    assert value(make, right, "log_loss", link="logit") == 0.0
    wrong = {"y": [0, 1], "p": [math.inf, -math.inf]}
    assert value(make, wrong, "brier", link="logit") == 1.0
    with pytest.warns(CalframeWarning, match=r"log_loss is infinite: 2 rows"):
        assert value(make, wrong, "log_loss", link="logit") == math.inf
    assert value(make, wrong, "log_loss", link="logit", clip=0.25) == approx(math.log(4))


def test_missing_logits_are_missing(make: Maker) -> None:
    found = rows(measure(make, {"y": [1, 0, 1], "p": [None, math.nan, 0.0]}, link="logit", metrics="log_loss"))
    assert (found["n"], found["n_missing"]) == ([1], [2])
    assert found["log_loss"] == [approx(math.log(2))]


def test_a_row_is_counted_once_however_many_metrics_see_it() -> None:
    table = pl.DataFrame({"y": [1, 0, 1], "p": [0.0, 0.2, 0.9]})
    with pytest.warns(CalframeWarning, match=r"log_loss is infinite: 1 row gives probability 0"):
        calframe.metrics(table, label="y", score="p", metrics=["log_loss", "confidence_ece"])
