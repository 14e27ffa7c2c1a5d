"""The bins, bars, bands and cells that a report draws, worked out one by one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from tests._definitions import bin_of
from tests._findings import gathered
from tests._grid import GRID, cells, near_edges
from tests._tables import Maker, approx

# Curves: bins of about equal size


def curve_by_hand(scores: Sequence[float], labels: Sequence[int]) -> list[tuple[int, float, float]]:
    """Return (rows, mean score, rate) of the bins floor(M (rows before + half a cell) / total), each cell whole."""
    count = min(max(len(scores) // 120, 3), 15)
    bins: dict[int, list[Fraction]] = {}
    before = Fraction()
    for n, score, label in cells(scores, labels).values():
        place = int(count * (before + n / 2) / len(scores))
        total = bins.get(place, [Fraction()] * 3)
        bins[place] = [total[0] + n, total[1] + score, total[2] + label]
        before += n
    return [(int(n), float(score / n), float(label / n)) for n, score, label in bins.values()]


SHAPES = {
    "continuous": lambda rng, n: rng.random(n),
    "tenths": lambda rng, n: np.round(rng.random(n), 1),
    "two heaps": lambda rng, n: np.where(rng.random(n) < 0.7, 0.2, rng.random(n)),
    "edges": lambda rng, n: rng.choice(near_edges(), n),
    "tiny": lambda rng, n: rng.random(n) ** 4 / 50,
    "equal": lambda _, n: np.full(n, 0.3),
}


@pytest.mark.parametrize("n", [7, 361, 1000, 5000])
@pytest.mark.parametrize("shape", SHAPES)
def test_curves_have_bins_of_about_equal_size(shape: str, n: int) -> None:
    rng = np.random.default_rng(n)
    scores = SHAPES[shape](rng, n)
    labels = (rng.random(n) < scores).astype(int)
    found = gathered(pl.DataFrame({"y": labels, "p": scores})).curve
    expected = curve_by_hand(scores.tolist(), labels.tolist())
    assert found["n"].to_list() == [n for n, _, _ in expected]
    assert found["mean_score"].to_list() == approx([score for _, score, _ in expected])
    assert found["rate"].to_list() == approx([rate for _, _, rate in expected])


@pytest.mark.parametrize("shape", ["tenths", "two heaps", "edges", "equal"])
def test_equal_scores_are_never_split(shape: str) -> None:
    rng = np.random.default_rng(11)
    scores = SHAPES[shape](rng, 3000)
    table = pl.DataFrame({"y": rng.integers(0, 2, 3000), "p": scores, "s": rng.choice(["a", "b"], 3000)})
    found = gathered(table, by="s")
    curves = [(found.curve, table)] + [
        (found.groupings[0].curves.filter(pl.col("segment") == name), table.filter(pl.col("s") == name))
        for name in ("a", "b")
    ]
    for curve, part in curves:
        ends = np.cumsum(part["p"].value_counts().sort("p")["count"].to_numpy())
        assert set(np.cumsum(curve["n"].to_numpy())) <= set(ends)


def test_doubling_every_row_changes_no_curve_but_its_counts() -> None:
    rng = np.random.default_rng(12)
    table = pl.DataFrame({"y": rng.integers(0, 2, 4000), "p": rng.choice(near_edges(), 4000), "w": [2.0] * 4000})
    heavy, twice = gathered(table, weight="w").curve, gathered(pl.concat([table, table])).curve
    assert heavy["n"].to_list() == [n // 2 for n in twice["n"]]
    for name in ("mean_score", "rate", "gap"):
        assert heavy[name].to_list() == approx(twice[name].to_list())


@pytest.mark.parametrize("score", [0.003, 0.02, 0.3, 0.5, 0.7, 0.98, 0.999])
@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_bands_are_the_central_part_of_the_binomial(score: float, alpha: float) -> None:
    # One score a bin: ten bins of 400 rows; the rate of right scores is Binomial(400, score) / 400.
    others = [0.1 * k + 0.05 for k in range(10)]
    scores = np.repeat(sorted([score, *others[:9]]), 400)
    labels = (np.random.default_rng(1).random(4000) < scores).astype(int)
    curve = gathered(pl.DataFrame({"y": labels, "p": scores}), alpha=alpha).curve
    assert curve["n"].to_list() == [400] * 10
    for row in curve.iter_rows(named=True):
        mean = row["mean_score"]
        ends = stats.binom.ppf([alpha / 2, 1 - alpha / 2], 400, mean) / 400
        assert (row["band_low"], row["band_high"]) == pytest.approx(tuple(ends), abs=1e-11)
        low, high = proportion_confint(400 * row["rate"], 400, alpha=alpha, method="wilson")
        assert (row["rate_low"], row["rate_high"]) == pytest.approx((low, high), abs=1e-12)
        outside = "over" if row["rate"] < row["band_low"] else "under" if row["rate"] > row["band_high"] else "in"
        assert row["state"] == outside


def test_bands_of_unequal_scores_are_within_a_row_of_the_exact_law() -> None:
    rng = np.random.default_rng(13)
    scores = np.sort(rng.beta(0.8, 1.6, 1500))
    curve = gathered(pl.DataFrame({"y": (rng.random(1500) < scores).astype(int), "p": scores})).curve
    ends = np.cumsum([0, *curve["n"]])
    for (first, last), row in zip(pairwise(ends), curve.iter_rows(named=True), strict=True):
        law = np.ones(1)  # of the positives of the bin: its Bernoulli laws one after the other
        for score in scores[first:last]:
            law = np.convolve(law, [1.0 - score, score])
        cumulated = np.cumsum(law)
        low, high = (int(np.searchsorted(cumulated, share)) for share in (0.025, 0.975))
        assert row["band_low"] * row["n"] == pytest.approx(low, abs=1.001)
        assert row["band_high"] * row["n"] == pytest.approx(high, abs=1.001)


# Histogram and axes


LIMITS = [0.025, 0.05, 0.1, 0.2, 1.0]


def limit_by_hand(scores: Sequence[float], labels: Sequence[int]) -> float:
    """Return the first limit above the rates of the curve and the fine bin of the 99.5th percentile of the scores."""
    ordered = sorted(scores)
    nearly_all = ordered[-(-995 * len(ordered) // 1000) - 1]
    upper = GRID[bin_of(nearly_all, GRID, closed="left") + 1]
    highest = max(rate for _, _, rate in curve_by_hand(scores, labels))
    return next(limit for limit in LIMITS if max(upper, highest) <= limit)


@pytest.mark.parametrize("top", [0.02, 0.025, 0.04, 0.09, 0.1, 0.15, 0.21, 0.5, 1.0])
def test_histogram_counts_rows_bar_by_bar(make: Maker, top: float) -> None:
    rng = np.random.default_rng(int(1000 * top))
    scores = np.concatenate([rng.uniform(0.0, top, 2900), rng.choice([e for e in near_edges() if e <= top], 100)])
    labels = (rng.random(3000) < 0.2 * scores).astype(int)
    found = gathered(make({"y": labels, "p": scores}))
    limit = limit_by_hand(scores.tolist(), labels.tolist())
    assert found.limit == limit
    edges = [float(Fraction(str(limit)) * k / 24) for k in range(25)]
    expected = [0] * 24
    for score in scores.tolist():
        expected[min(bin_of(score, GRID, closed="left") // round(40 * limit), 23)] += 1
    assert found.histogram["n"].to_list() == expected
    assert sum(expected) == 3000
    assert found.histogram["lower"].to_list() == approx(edges[:-1])
    assert found.histogram["upper"].to_list() == approx(edges[1:])


@pytest.mark.parametrize(("top", "limit"), [(0.02, 0.025), (1.0, 1.0)])
def test_histogram_of_uniform_scores_is_flat_up_to_chance(top: float, limit: float) -> None:
    n = 24_000
    scores = np.random.default_rng(3).uniform(0.0, top, n)
    found = gathered(pl.DataFrame({"y": [0] * (n - 1) + [1], "p": scores}))
    assert found.limit == limit
    histogram = found.histogram
    width = limit / 24
    for lower, upper, count in histogram.iter_rows():
        inside = max(min(upper, top) - lower, 0.0) / width
        low, high = stats.binom.ppf([1e-6, 1 - 1e-6], n, inside * width / top)
        assert low <= count <= high


def test_the_last_bar_holds_the_rest() -> None:
    table = pl.DataFrame({"y": [1] * 9 + [0] * 991, "p": [0.01] * 995 + [0.9] * 5})
    found = gathered(table)
    assert found.limit == 0.025
    assert found.histogram["n"].to_list()[-1] == 5
    assert found.histogram["n"].sum() == 1000


# Heatmap


def ranges_by_hand(scores: Sequence[float]) -> list[int]:
    """Return the first fine bin of each of eight ranges of about equal size, each cell whole."""
    firsts, before = {}, Fraction()
    for place, (n, _, _) in cells(scores, [0] * len(scores)).items():
        firsts.setdefault(int(8 * (before + n / 2) / len(scores)), place)
        before += n
    return list(firsts.values())


def test_heatmap_cells_hold_the_rows_of_their_range() -> None:
    rng = np.random.default_rng(21)
    scores = np.where(rng.random(4000) < 0.2, 0.35, rng.beta(1.2, 2.5, 4000))
    names = rng.choice(["a", "b", "small"], 4000, p=[0.6, 0.38, 0.02])
    labels = (rng.random(4000) < np.where(names == "a", scores, 0.7 * scores)).astype(int)
    [found] = gathered(pl.DataFrame({"y": labels, "p": scores, "s": names}), by="s").groupings
    starts = [GRID[first] for first in ranges_by_hand(scores.tolist())]
    place = np.array([bisect_left(starts, np.nextafter(score, 2.0)) - 1 for score in scores])
    assert len(found.ranges) == len(starts)
    assert [float(text.split("–")[0]) for text in found.ranges] == pytest.approx(
        [100 * start for start in starts], abs=0.0500001
    )
    heat = {(row["segment"], row["range"]): row for row in found.heat.iter_rows(named=True)}
    for name in ("a", "b", "small"):
        for i, text in enumerate(found.ranges):
            mine = (names == name) & (place == i)
            if not mine.any():
                assert (name, text) not in heat
                continue
            row, n = heat[name, text], int(mine.sum())
            score, rate = scores[mine].mean(), labels[mine].mean()
            assert row["n"] == n
            assert row["gap"] == pytest.approx(score - rate, abs=1e-12)
            assert row["shown"] is (n >= 50)
            pvalue = 2 * stats.norm.sf(abs(score - rate) / np.sqrt(score * (1 - score) / n))
            assert row["clear"] is (n >= 50 and bool(pvalue < 0.05))
    assert any(row["clear"] for row in heat.values())
