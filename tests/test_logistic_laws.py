"""What holds of every logistic calibration fit, and its intervals."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from calframe._kernels import _newton
from calframe._kernels._logistic import (
    CoxFit,
    Status,
    citl_fit,
    citl_interval,
    cox_fit,
    cox_interval,
    logit,
    wald_interval,
)
from calframe._kernels._tally import Tally
from calframe._typing import Floats
from tests._regressions import rows_of, same, tally_of


# ---------------------------------------------------------------- properties
def tables(lowest: int, highest: int) -> st.SearchStrategy[list[Any]]:
    """Return segments of rows: tenths of the score, label, weight."""
    row = st.tuples(st.integers(lowest, highest), st.booleans(), st.integers(1, 4))
    return st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=6)


SEGMENTS = tables(0, 10)
INNER = tables(1, 9)  # a fit that hangs on the last digits of certain scores is not the same to 9 digits elsewhere


def of(segments: list[Any]) -> tuple[list[int], Floats, Floats, Floats]:
    rows = [(g, *row) for g, segment in enumerate(segments) for row in segment]
    segment, score, label, weight = zip(*rows, strict=True)
    return list(segment), np.array(score) / 10, np.array(label, float), np.array(weight, float)


@settings(max_examples=30, deadline=None)
@given(segments=SEGMENTS)
def test_several_segments_at_once_are_each_alone(segments: list[Any]) -> None:
    segment, score, label, weight = of(segments)
    for w in (None, weight):
        tally = tally_of(segment, score, label, w)
        for fit in (cox_fit, citl_fit):
            together = fit(tally)
            alone = [fit(tally.part(g, g + 1)) for g in range(len(tally))]
            joined = {f.name: np.concatenate([getattr(a, f.name) for a in alone]) for f in fields(together)}
            same(together, type(together)(**joined))


@settings(max_examples=30, deadline=None)
@given(segments=SEGMENTS)
def test_weight_two_is_the_row_twice(segments: list[Any]) -> None:
    segment, score, label, weight = of(segments)
    times = weight.astype(int)
    once = tally_of(segment, score, label, weight, frequency=True)
    often = tally_of(np.repeat(segment, times), np.repeat(score, times), np.repeat(label, times))
    importance = tally_of(segment, score, label, weight)
    for fit in (cox_fit, citl_fit):
        same(fit(once), fit(often))
        name = "slope" if fit is cox_fit else "citl"  # the value is that, the variance is not
        np.testing.assert_allclose(getattr(fit(importance), name), getattr(fit(often), name), rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(segments=INNER, power=st.integers(-100, 100))
def test_the_scale_of_weights_does_not_matter(segments: list[Any], power: int) -> None:
    segment, score, label, weight = of(segments)
    weight[0] *= 1.5
    for fit in (cox_fit, citl_fit):
        same(fit(tally_of(segment, score, label, weight * 10.0**power)), fit(tally_of(segment, score, label, weight)))


@settings(max_examples=30, deadline=None)
@given(segments=INNER)
def test_the_other_class_mirrors_the_intercept(segments: list[Any]) -> None:
    segment, score, label, weight = of(segments)
    here, there = tally_of(segment, score, label, weight), tally_of(segment, 1 - score, 1 - label, weight)
    fit, mirrored = cox_fit(here), cox_fit(there)
    np.testing.assert_allclose(mirrored.slope, fit.slope, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(mirrored.intercept, -fit.intercept, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(citl_fit(there).citl, -citl_fit(here).citl, rtol=1e-8, atol=1e-8)
    (low, high), (other_low, other_high) = (citl_interval(t, citl_fit(t), level=0.9) for t in (here, there))
    np.testing.assert_allclose(other_low, -high, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(other_high, -low, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    segment, score, label = rows_of(1)
    weight = np.random.default_rng(1).random(len(score)) + 0.5
    tally = tally_of(segment, score, label, weight)
    whole, large = cox_fit(tally), citl_fit(tally)
    monkeypatch.setattr(_newton, "_BLOCK", block)
    same(cox_fit(tally), whole)
    same(citl_fit(tally), large)
    for first, part in tally.chunks(150):
        here = slice(first, first + len(part))
        same(cox_fit(part), CoxFit(**{f.name: getattr(whole, f.name)[here] for f in fields(whole)}))


# ---------------------------------------------------------------- intervals
def test_wald_interval_by_hand() -> None:
    low, high = wald_interval(np.array([1.0, np.nan, 1.0]), np.array([4.0, np.nan, np.nan]), level=0.95)
    assert low.tolist() == pytest.approx([1 - 2 * 1.959963984540054, -math.inf, -math.inf])
    assert high.tolist() == pytest.approx([1 + 2 * 1.959963984540054, math.inf, math.inf])


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 20, 5000])
def test_one_class_at_one_score_is_clopper_and_pearson(n: int, level: float) -> None:
    score = 0.3
    for positives in (0, n):
        tally = Tally.of_counts(np.array([0]), np.array([score]), np.array([float(n)]), np.array([float(positives)]))
        low, high = citl_interval(tally, citl_fit(tally), level=level)
        tail, z = (1 - level) / 2, math.log(score / (1 - score))
        chance = expit(np.array([low[0], high[0]]) + z)
        exact = (
            [0, stats.beta.ppf(1 - tail, 1, n)] if positives == 0 else [stats.beta.ppf(tail, n, 1), 1]
        )  # Clopper-Pearson
        np.testing.assert_allclose(chance, exact, rtol=1e-9)


def test_one_class_at_several_scores_by_its_definition() -> None:
    rng = np.random.default_rng(5)
    segment, score, weight = np.repeat(np.arange(30), 25), rng.random(750), rng.lognormal(0, 1, 750)
    score[:50] = np.tile([0.0, 1.0], 25)
    label = (segment % 2).astype(float)
    tally = tally_of(segment, score, label, weight)
    low, high = citl_interval(tally, citl_fit(tally), level=0.9)
    for g in range(30):
        here = segment == g
        side, z = (1.0, -1.0)[g % 2], logit(score[here])
        w = weight[here] * weight[here].sum() / (weight[here] ** 2).sum()

        def missed(a: float, side: float = side, z: Floats = z, w: Floats = w) -> float:
            return float((w * np.log(expit(-side * (a + z)))).sum() - math.log(0.05))

        end = brentq(missed, -35, 35, xtol=1e-13)
        assert (high if g % 2 == 0 else low)[g] == pytest.approx(end, abs=1e-9)
        assert (low if g % 2 == 0 else high)[g] == -side * math.inf


def simulated(case: str, n: int, rng: np.random.Generator) -> tuple[Tally, float, float]:
    """Return 400 segments of n rows, and the true intercept and slope."""
    intercept, slope = {"shift": (0.5, 1.0), "slope": (0.0, 1.5)}.get(case, (0.0, 1.0))
    runs, distinct = 400, min(n, 500)
    score = rng.beta(2, 3, (runs, distinct)) if case != "rare" else expit(rng.normal(-4.5, 1, (runs, distinct)))
    score = np.sort(np.round(score, 1) if case == "ties" else score, axis=1)
    count = rng.multinomial(n - distinct, np.full(distinct, 1 / distinct), runs) + 1.0
    chance = score if case == "ties" else expit(intercept + slope * logit(score))
    positive = rng.binomial(count.astype(int), chance).astype(float)
    new = np.hstack([np.ones((runs, 1), bool), np.diff(score, axis=1) != 0])
    cells = np.flatnonzero(new)
    rows, hits = (np.add.reduceat(v.ravel(), cells) for v in (count, positive))
    starts = np.cumsum(new.sum(axis=1)) - new.sum(axis=1)
    return Tally.of_counts(starts, score.ravel()[cells], rows, hits), intercept, slope


@pytest.mark.parametrize("case", ["calibrated", "shift", "slope", "rare", "ties"])
def test_intervals_cover(case: str) -> None:
    rng = np.random.default_rng(20)
    found = []
    for n in (200, 2000, 20_000):
        tally, intercept, slope = simulated(case, n, rng)
        fit, ends = cox_fit(tally), cox_interval(cox_fit(tally), level=0.9)
        for (low, high), truth in ((ends["intercept"], intercept), (ends["slope"], slope)):
            found.append(((low <= truth) & (truth <= high))[fit.status == Status.FINE].mean())
        if slope == 1.0:  # else the truth depends on the scores
            large = citl_fit(tally)
            low, high = citl_interval(tally, large, level=0.9)
            inside = (low <= intercept) & (intercept <= high)
            found.extend([inside.mean(), inside[large.status == Status.FINE].mean()])
    assert min(found) >= 0.85
    assert np.mean(found) >= 0.88
