"""Kernel and loess curves: rates are probabilities, also where the smoothers are strained."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

import calframe
from tests._tables import approx

HARD: dict[str, tuple[list[int], list[float]]] = {
    "a step": ([int(i > 50) for i in range(100)], [i / 99 for i in range(100)]),
    "a step among ties": ([0] * 30 + [1] * 30, [0.2] * 10 + [0.4] * 20 + [0.5] * 10 + [0.9] * 20),
    "a peak": ([int(40 <= i < 60) for i in range(100)], [i / 99 for i in range(100)]),
    "one class": ([1] * 20, [i / 19 for i in range(20)]),
    "certain and wrong": ([1, 0, 1, 0], [0.0, 1.0, 0.0, 1.0]),
    "nearly equal scores": ([0, 1, 0, 1, 1], [0.1, 0.5, math.nextafter(0.5, 1), 0.5 + 1e-13, 0.9]),
}


def drawn(columns: dict[str, Any], **arguments: Any) -> dict[str, list[Any]]:
    return calframe.curve(pl.DataFrame(columns), label="y", score="p", **arguments).table.to_dict(as_series=False)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("method", ["kernel", "loess"])
def test_a_smooth_rate_is_a_probability_within_its_interval(method: str, weight: str | None, strategy: str) -> None:
    parts = [(name, y, p) for name, (label, score) in HARD.items() for y, p in zip(label, score, strict=True)]
    columns = dict(zip("gyp", zip(*parts, strict=True), strict=True)) | {
        "w": [(0.3, 2.0, 1.0)[i % 3] for i in range(len(parts))]
    }
    table = drawn(columns, by="g", method=method, weight=weight, strategy=strategy)
    assert set(table["g"]) == set(HARD)
    for low, rate, high in zip(table["rate_low"], table["rate"], table["rate_high"], strict=True):
        assert 0.0 <= low <= rate <= high <= 1.0
    assert table["gap"] == approx([a - b for a, b in zip(table["mean_score"], table["rate"], strict=True)])


def test_local_quadratics_beyond_0_and_1_are_cut_off() -> None:
    # next to a step from all 0 to all 1 every quadratic swings below the one and above the other
    label, score = HARD["a step"]
    table = drawn({"y": label, "p": score}, method="loess")
    assert {0.0, 1.0} <= set(table["rate"])


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("method", ["kernel", "loess"])
def test_the_smooth_curve_of_one_score_is_its_rate(method: str, strategy: str) -> None:
    # (.1 + .1 + .1) / 3 comes out above .1, where there would be no score to smooth
    table = drawn({"y": [0, 1, 0], "p": [0.1] * 3}, method=method, strategy=strategy)
    assert table["mean_score"] == [0.1]
    assert table["rate"] == approx([1 / 3])
