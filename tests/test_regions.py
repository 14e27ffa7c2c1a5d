"""Regions around isotonic curves: against laws enumerated exactly, the binomial law, and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from calframe._kernels import _regions
from calframe._kernels._isotonic import blocks
from calframe._kernels._regions import confidence_region, consistency_region
from calframe._kernels._tally import Tally
from tests._exact_fits import Cell, pooled

Region = Callable[..., tuple[np.ndarray, np.ndarray]]
BOTH = pytest.mark.parametrize("region", [consistency_region, confidence_region])
Law = dict[float, float]


def counts_of(*segments: Sequence[Cell]) -> Tally:
    """Make the tally of rows without weights: score, rows, positives."""
    sizes = np.array([len(cells) for cells in segments])
    score, rows, positive = (np.array([float(cell[i]) for cells in segments for cell in cells]) for i in range(3))
    return Tally.of_counts(np.cumsum(sizes) - sizes, score, rows, positive)


def simulated(rng: np.random.Generator, n_segments: int, n: int, rate: Callable[[np.ndarray], np.ndarray]) -> Tally:
    """Draw segments of rows with distinct uniform scores."""
    score = np.sort(rng.random((n_segments, n)), axis=1).ravel()
    label = (rng.random(len(score)) < rate(score)).astype(float)
    return Tally.of_counts(np.arange(n_segments) * n, score, np.ones_like(score), label)


# ---------------------------------------------------------------- enumeration
def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in compositions(total - first, parts - 1):
            yield (first, *others)


def refitted(score: Sequence[float], weight: Sequence[float], positive: Sequence[float]) -> list[float | None]:
    """Fit the drawn scores, interpolate between them; None beyond them unless only one was drawn."""
    cells = [cell for cell in zip(score, weight, positive, strict=True) if cell[1]]
    fits = [k / w for first, last, w, k in pooled(cells) for _ in range(first, last + 1)]
    if len(cells) == 1:
        return [float(fits[0])] * len(score)
    at = [Fraction(cell[0]) for cell in cells]
    out: list[float | None] = []
    for each in map(Fraction, score):
        inside = [i for i in range(len(at) - 1) if at[i] <= each <= at[i + 1]]
        i = inside[0] if inside else None
        share = None if i is None else (each - at[i]) / (at[i + 1] - at[i])
        out.append(None if i is None or share is None else float(fits[i] + share * (fits[i + 1] - fits[i])))
    return out


def laws(score: Sequence[float], rows: Sequence[int], chance: Sequence[float], unit: Sequence[float]) -> list[Law]:
    """The law of the fit at each score over all draws of rows and labels, given that it reaches the score."""
    found: list[Law] = [{} for _ in score]
    n, shares = sum(rows), [count / sum(rows) for count in rows]
    for drawn in compositions(n, len(rows)):
        first = float(stats.multinomial.pmf(drawn, n, shares))
        for hits in product(*(range(count + 1) for count in drawn)):
            prob = first * math.prod(
                float(stats.binom.pmf(k, c, p)) for k, c, p in zip(hits, drawn, chance, strict=True)
            )
            weight = [c * u for c, u in zip(drawn, unit, strict=True)]
            fits = refitted(score, weight, [k * u for k, u in zip(hits, unit, strict=True)])
            for law, value in zip(found, fits, strict=True):
                if value is not None:
                    law[round(value, 12)] = law.get(round(value, 12), 0.0) + prob
    return [{value: prob / sum(law.values()) for value, prob in sorted(law.items())} for law in found]


def between(law: Law, share: float, slack: float = 0.012) -> tuple[float, float]:
    """Return the quantiles a little below and above: those of 20,000 draws lie between, six standard errors away."""
    values, total = list(law), np.cumsum(list(law.values()))
    at = np.minimum(np.searchsorted(total, [share - slack, share + slack]), len(values) - 1)
    return values[at[0]], values[at[1]]


ENUMERATED: dict[str, tuple[Region, list[int], list[float], list[float]]] = {
    # rows, positives, weight of a row at each score
    "consistency": (consistency_region, [1, 2, 1], [0, 1, 1], [1, 1, 1]),
    "consistency, weighted": (consistency_region, [2, 1, 2], [0, 1, 1], [1, 5, 2]),
    "confidence": (confidence_region, [2, 1, 2], [1, 0, 1], [1, 1, 1]),
    "confidence, weighted": (confidence_region, [2, 2, 1], [1, 1, 0], [2, 1, 4]),
}


@pytest.mark.parametrize("case", ENUMERATED)
def test_quantiles_of_the_enumerated_law(case: str) -> None:
    region, rows, positive, unit = ENUMERATED[case]
    score = [0.2, 0.5, 0.9]
    weight, hits = (np.multiply(counts, unit).astype(float) for counts in (rows, positive))
    fits = [
        float(k / w)
        for first, last, w, k in pooled(list(zip(score, weight, hits, strict=True)))
        for _ in range(first, last + 1)
    ]
    expected = laws(score, rows, score if region is consistency_region else fits, unit)
    tally = replace(
        counts_of(list(zip(score, rows, positive, strict=True))),
        weight=weight,
        positive=hits,
        squared=weight * unit,
        squared_positive=hits * unit,
    )
    settled = 0
    for level in (0.5, 0.7, 0.8, 0.9):
        ends = region(tally, level=level, n_resamples=20_000, rng=np.random.default_rng(7))
        for end, share in zip(ends, ((1 - level) / 2, (1 + level) / 2), strict=True):
            for value, law in zip(end, expected, strict=True):
                low, high = between(law, share)
                assert low - 1e-9 <= value <= high + 1e-9
                settled += low == high
    assert settled >= 15  # of 24 quantiles, so many leave no room at all


def test_one_score_has_the_binomial_law() -> None:
    level = 0.9
    low, high = consistency_region(
        counts_of([(0.3, 400, 100)]), level=level, n_resamples=20_000, rng=np.random.default_rng(0)
    )
    ends = stats.binom.ppf([0.045, 0.055, 0.945, 0.955], 400, 0.3) / 400  # six standard errors on either side
    assert ends[0] <= low[0] <= ends[1]
    assert ends[2] <= high[0] <= ends[3]


def test_weights_that_differ_at_a_score_widen_it_by_their_variance() -> None:
    weight = np.random.default_rng(1).lognormal(size=20_000)
    total, squared = weight.sum(keepdims=True), (weight**2).sum(keepdims=True)
    one = np.ones(1)
    tally = Tally(
        starts=np.array([0]),
        score=0.3 * one,
        rows=20_000 * one,
        weight=total,
        positive=0.3 * total,
        squared=squared,
        squared_positive=0.3 * squared,
    )
    low, high = consistency_region(tally, level=0.9, n_resamples=4_000, rng=np.random.default_rng(0))
    spread = math.sqrt(0.3 * 0.7 * squared[0]) / total[0]  # of sum w y / sum w
    assert (high - low)[0] / 2 == pytest.approx(stats.norm.ppf(0.95) * spread, rel=0.06)


# ---------------------------------------------------------------- what may not matter
@BOTH
def test_neighbours_chunks_and_the_size_of_weights_do_not_matter(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    segments = []
    for n in rng.integers(1, 9, 40):
        rows = rng.integers(1, 6, n)
        segments.append(list(zip(np.sort(rng.random(n)), rows, rng.binomial(rows, 0.4), strict=True)))
    tally = counts_of(*segments)
    options: Any = {"level": 0.8, "n_resamples": 50}
    whole = region(tally, **options, rng=np.random.default_rng(3))
    stream = np.random.default_rng(3)
    chunks = [region(part, **options, rng=stream) for _, part in tally.chunks(20)]
    np.testing.assert_array_equal(np.concatenate([chunk[0] for chunk in chunks]), whole[0])
    np.testing.assert_array_equal(np.concatenate([chunk[1] for chunk in chunks]), whole[1])
    others = region(counts_of([(0.7, 9, 4)], *segments[1:]), **options, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(np.stack(others)[:, 1:], np.stack(whole)[:, len(segments[0]) :])
    scaled = replace(
        tally,
        weight=tally.weight * 2.0**300,
        positive=tally.positive * 2.0**300,
        squared=tally.squared * 2.0**600,
        squared_positive=tally.squared_positive * 2.0**600,
    )
    monkeypatch.setattr(_regions, "_BATCH", 500)  # several batches, none of which cuts a segment short
    np.testing.assert_array_equal(region(scaled, **options, rng=np.random.default_rng(3)), whole)


def test_many_scores_are_resampled_as_fewer() -> None:
    tally = simulated(np.random.default_rng(4), 2, 3_000, lambda score: score)
    options: Any = {"level": 0.9, "n_resamples": 100}
    fine = consistency_region(tally, **options, most_scores=3_000, rng=np.random.default_rng(5))
    coarse = consistency_region(tally, **options, most_scores=150, rng=np.random.default_rng(5))
    for low, high in (fine, coarse):
        assert low.shape == high.shape == tally.score.shape
        inner = (tally.score > 0.02) & (tally.score < 0.98)
        assert (low <= tally.score)[inner].all()
        assert (high >= tally.score)[inner].all()
        assert (low >= 0).all()
        assert (high <= 1).all()
    width = [np.mean(high - low) for low, high in (fine, coarse)]
    assert width[1] == pytest.approx(width[0], rel=0.06)
    assert np.abs(np.subtract(fine, coarse)).mean() < 0.15 * width[0]  # the noise of 100 resamples


# ---------------------------------------------------------------- ends
def test_where_the_fit_is_certain_the_ends_are_interpolated() -> None:
    # fits 0, 0, 0, .6, 1, 1: only the outermost scores and .8 have ends of their own
    score, rows, positive = [0.1, 0.2, 0.4, 0.8, 0.9, 1.0], [50] * 6, [0, 0, 0, 30, 50, 50]
    low, high = confidence_region(
        counts_of(list(zip(score, rows, positive, strict=True))),
        level=0.9,
        n_resamples=200,
        rng=np.random.default_rng(0),
    )
    assert (low[0], high[0], low[5], high[5]) == (0, 0, 1, 1)
    assert 0.4 < low[3] < 0.6 < high[3] < 0.8
    for end in (low, high):
        np.testing.assert_allclose(end[[1, 2]], end[3] * np.array([1 / 7, 3 / 7]), rtol=1e-12)
        np.testing.assert_allclose(end[4], (end[3] + 1) / 2, rtol=1e-12)


@BOTH
def test_one_row_and_one_class(region: Region) -> None:
    tally = counts_of([(0.0, 1, 0)], [(0.2, 3, 0), (0.6, 2, 0)], [(1.0, 4, 4)], [(0.4, 1, 1)])
    low, high = region(tally, level=0.9, n_resamples=200, rng=np.random.default_rng(0))
    if region is confidence_region:
        assert low.tolist() == high.tolist() == [0, 0, 0, 1, 1]
    else:
        assert low.tolist() == [0, 0, 0, 1, 0]
        assert (high[0], high[3], high[4]) == (0, 1, 1)
        assert 0 < high[1] <= high[2] <= 1


def test_a_score_that_no_resample_reaches_has_the_whole_range() -> None:
    tally = counts_of([(0.1, 1, 0), (0.5, 10_000, 5_000), (0.6, 10_000, 6_000), (0.9, 1, 1)])
    reached = 0
    for seed in range(20):
        low, high = consistency_region(tally, level=0.9, n_resamples=1, rng=np.random.default_rng(seed))
        ends = np.stack([low, high])[:, [0, 3]]
        open_ends = (ends == [[0], [1]]).all(axis=0)
        reached += int((~open_ends).sum())
        assert (open_ends | (ends[0] == ends[1])).all()
        assert (low[1], low[2]) == (high[1], high[2])
    assert 10 < reached < 40  # each is drawn with probability 1 - 1/e


# ---------------------------------------------------------------- coverage
@pytest.mark.parametrize(("n", "most"), [(100, 0.945), (400, 0.93)])
def test_consistency_regions_hold_the_fits_of_right_scores(n: int, most: float) -> None:
    tally = simulated(np.random.default_rng(6), 120, n, lambda score: score)
    low, high = consistency_region(tally, level=0.9, n_resamples=100, rng=np.random.default_rng(7))
    fit = blocks(tally)
    value = fit.spread(fit.value)
    share = ((low <= value + 1e-12) & (value <= high + 1e-12)).reshape(120, n).mean(axis=1)
    error = share.std(ddof=1) / math.sqrt(120)
    assert error < 0.008
    assert 0.9 - 3 * error <= share.mean() <= most  # somewhat more than the level in small samples, where fits are few


def test_consistency_regions_show_wrong_scores() -> None:
    tally = simulated(np.random.default_rng(8), 10, 1_000, lambda score: score**2)
    low, _ = consistency_region(tally, level=0.9, n_resamples=100, rng=np.random.default_rng(9))
    fit = blocks(tally)
    value = fit.spread(fit.value)
    middle = (tally.score > 0.3) & (tally.score < 0.7)
    assert (value < low)[middle].mean() > 0.95


def test_confidence_regions_hold_the_rate_inside() -> None:
    tally = simulated(np.random.default_rng(10), 60, 400, lambda score: 0.2 + 0.6 * score)
    low, high = confidence_region(tally, level=0.9, n_resamples=100, rng=np.random.default_rng(11))
    truth = 0.2 + 0.6 * tally.score
    share = ((low <= truth) & (truth <= high)).reshape(60, 400)[:, 40:360].mean(axis=1)
    error = share.std(ddof=1) / math.sqrt(60)
    assert error < 0.015
    assert share.mean() >= 0.9 - 3 * error
    assert np.mean(high - low) < 0.3
