"""How far two samples of scores lie apart: against SciPy, values worked out by hand, and the reference values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from calframe._binning import Bins
from calframe._drift import drift
from calframe._kernels._building import tally_of_rows
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._testing._distances import (
    MOST_PAIRS,
    Pairs,
    bin_weights,
    kolmogorov_smirnov,
    smirnov_pvalue,
    stability_expected,
    stability_index,
    stability_pvalue,
    wasserstein,
)
from calframe._testing._gathering import gathered
from calframe._testing._lattice import exceedance
from tests._reference_cases import Array, Entry, binary_table, entries

REFERENCE = [0.2, 0.3, 0.7, 0.8]  # https://github.com/ing-bank/probatus/issues/115
CURRENT = [0.1, 0.2, 0.3, 0.4]


def tally_of(samples: Sequence[Sequence[float] | Array], weights: Sequence[Array] | None = None) -> Tally:
    """Return a tally with one segment a sample."""
    code = np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])
    score = np.concatenate([np.asarray(sample, dtype=np.float64) for sample in samples])
    weight = None if weights is None else np.concatenate(weights)
    return tally_of_rows(code, score, np.zeros(len(score)), segments=len(samples), weight=weight)[0]


def pairs_of(current: Sequence[Any], reference: Sequence[Any], of: Sequence[int] | None = None) -> Pairs:
    places = range(len(current)) if of is None else of
    return Pairs.of_tallies(tally_of(current), tally_of(reference), np.array(places, dtype=np.int64))


def draws(rng: np.random.Generator, *, levels: int | None) -> tuple[list[Array], list[Array], Array]:
    """Return forty samples and four references, of different sizes, rounded to some levels."""
    current = [rng.random(rng.integers(1, 60)) for _ in range(40)]
    reference = [rng.random(rng.integers(1, 120)) ** 1.3 for _ in range(4)]
    if levels is not None:
        current = [np.round(sample * levels) / levels for sample in current]
        reference = [np.round(sample * levels) / levels for sample in reference]
    return current, reference, rng.integers(0, 4, 40)


# ---------------------------------------------------------------- stability index
@pytest.mark.parametrize(
    ("floor", "expected"),
    [
        (1e-4, 0.5 * math.log(2) - 0.4999 * math.log(1e-4 / 0.5)),
        (None, math.inf),
        (0.01, 0.5 * math.log(2) + 0.49 * math.log(50)),
    ],
)
def test_an_empty_bin_counts_with_the_floor(floor: float | None, expected: float) -> None:
    # shares 1/2, 1/2 before and 1, 0 now: (1 - 1/2) ln 2 + (floor - 1/2) ln(floor / (1/2))
    found = stability_index(np.array([2.0, 2.0]), np.array([4.0, 0.0]), floor=floor)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_small_share_is_not_raised_to_the_floor() -> None:
    share = 1e-6
    found = stability_index(np.array([1.0 - share, share]), np.array([0.5, 0.5]))
    expected = (0.5 - (1 - share)) * math.log(0.5 / (1 - share)) + (0.5 - share) * math.log(0.5 / share)
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_bin_that_is_empty_in_both_adds_nothing() -> None:
    both = stability_index(np.array([2.0, 0.0, 2.0]), np.array([1.0, 0.0, 3.0]), floor=None)
    assert both == pytest.approx(stability_index(np.array([2.0, 2.0]), np.array([1.0, 3.0])), rel=1e-15)
    assert stability_index(np.array([3.0, 5.0]), np.array([6.0, 10.0])) == 0.0


@pytest.mark.parametrize(("floor", "expected"), [(1e-4, 4.60431846667), (None, math.inf)])
def test_the_index_of_a_reported_case(floor: float | None, expected: float) -> None:
    # https://github.com/ing-bank/probatus/issues/115, bins [0, .5], (.5, 1]
    before = pl.DataFrame({"y": [0, 0, 1, 1], "p": REFERENCE})
    now = pl.DataFrame({"y": [0, 0, 1, 0], "p": CURRENT})
    options: Any = {"psi_bins": [0.0, 0.5, 1.0], "closed": "right", "psi_floor": floor}
    found = drift(now, label="y", score="p", reference=before, **options).table.row(0, named=True)
    assert found["psi"] == pytest.approx(expected, abs=1e-11)
    assert found["psi_empty_bins"] == 1
    assert "1 bin of psi empty" in found["note"]


def test_bins_are_whole_scores_of_the_reference_and_open_at_the_ends() -> None:
    # the reference in halves: up to 0.4 (three rows), and above (three rows)
    tally = tally_of([[0.2, 0.4, 0.4, 0.6, 0.8, 0.8]])
    frozen = quantile_bins(tally.weight, tally.starts, np.array([2]))
    pairs = Pairs.of_tallies(tally_of([[0.0, 0.39, 0.4, 0.41, 0.5, 1.0]]), tally, np.array([0]))
    assert bin_weights(tally, frozen, 2).tolist() == [[3.0, 3.0]]
    assert pairs.bins(frozen).tolist() == [0, 0, 0, 1, 1, 1]


def test_chance_alone_makes_a_stability_index() -> None:
    # (10 - 1)(1/50 + 1/100) = 0.27 (Yurdakul and Naranjo); of weights 1 to 3, 108^2/252 rows are worth 46.3
    table = pl.DataFrame({"y": [0, 1] * 75, "p": np.linspace(0.01, 0.99, 150), "t": [0] * 100 + [1] * 50})
    table = table.with_columns(t=pl.date(2024, pl.col("t") + 1, 1), w=pl.Series([1, 3] * 27 + [1] * 96))
    found = drift(table, label="y", score="p", time="t", reference="first").table.row(1, named=True)
    assert found["psi_expected"] == pytest.approx(0.27, rel=1e-12)
    assert found["psi_pvalue"] is None  # 5 rows are expected in a bin
    assert "fewer than 25 rows expected in a bin" in found["note"]
    weighted = drift(table, label="y", score="p", time="t", weight="w", reference="first").table.row(1, named=True)
    rows = (27 * 4 + 46) ** 2 / (27 * 10 + 46)
    assert weighted["psi_expected"] == pytest.approx(9 * (1 / rows + 1 / 50), rel=1e-12)
    assert weighted["psi_pvalue"] is None


def test_the_p_value_of_the_index_is_that_of_its_law() -> None:
    table = pl.DataFrame({"p": np.tile(np.linspace(0.05, 0.95, 10), 120)}).with_columns(y=0)
    now = table.filter(pl.int_range(1200) % 3 > 0, pl.int_range(1200) % 20 != 1)
    found = drift(now, label="y", score="p", reference=table).table.row(0, named=True)
    scaled = found["psi"] / (1 / 1200 + 1 / len(now))
    assert found["psi_pvalue"] == pytest.approx(stats.chi2.sf(scaled, 9), rel=1e-9)


@pytest.mark.parametrize("levels", [None, 6])
def test_the_index_of_one_law_is_seldom_surprising(levels: int | None) -> None:
    # 300 rows against 600, bins made from the latter; of 1,500 runs 5 % are rejected, give or take 2 standard errors
    rng, runs = np.random.default_rng(6), 1500
    sizes = (300, 600)
    drawn = [rng.random((runs, n)) if levels is None else rng.integers(0, levels, (runs, n)) / levels for n in sizes]
    tallies = [tally_of(list(sample)) for sample in drawn]
    bins = quantile_bins(tallies[1].weight, tallies[1].starts, np.full(runs, 10))
    pairs = Pairs.of_tallies(*tallies, np.arange(runs))
    weights = bin_weights(tallies[1], bins, 10), bin_weights(tallies[0], pairs.bins(bins), 10)
    filled = ((weights[0] + weights[1]) > 0).sum(axis=1)
    found, rows = stability_index(*weights), (np.full(runs, 600.0), np.full(runs, 300.0))
    assert found.mean() == pytest.approx(stability_expected(*rows, filled).mean(), rel=0.06)
    rejected = (stability_pvalue(found, *rows, filled) < 0.05).mean()
    assert abs(rejected - 0.05) <= 2 * math.sqrt(0.05 * 0.95 / runs)


# ---------------------------------------------------------------- distribution functions
@pytest.mark.parametrize("levels", [None, 6])
def test_distances_agree_with_scipy(levels: int | None) -> None:
    current, reference, of = draws(np.random.default_rng(0), levels=levels)
    pairs = pairs_of(current, reference, of.tolist())
    distance, moved = kolmogorov_smirnov(pairs), wasserstein(pairs)
    for i, sample in enumerate(current):
        assert distance[i] == pytest.approx(stats.ks_2samp(sample, reference[of[i]]).statistic, abs=1e-12)
        assert moved[i] == pytest.approx(stats.wasserstein_distance(sample, reference[of[i]]), abs=1e-12)


def test_distances_of_weighted_scores_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    one, other = np.round(rng.random(50), 1), np.round(rng.random(80), 1)
    weights = rng.random(50) + 0.1, rng.random(80) + 0.1
    pairs = Pairs.of_tallies(tally_of([one], weights[:1]), tally_of([other], weights[1:]), np.array([0]))
    expected = stats.wasserstein_distance(one, other, *weights)
    assert wasserstein(pairs)[0] == pytest.approx(expected, abs=1e-12)
    at = np.linspace(0.0, 1.0, 11)[:, None] + 1e-9
    shares = [((v <= at) * w).sum(axis=1) / w.sum() for v, w in zip((one, other), weights, strict=True)]
    assert kolmogorov_smirnov(pairs)[0] == pytest.approx(np.abs(shares[0] - shares[1]).max(), abs=1e-12)


def test_exact_p_values_without_ties_are_those_of_scipy() -> None:
    current, reference, of = draws(np.random.default_rng(2), levels=None)
    pairs = pairs_of(current, reference, of.tolist())
    pvalue, exact = smirnov_pvalue(pairs, kolmogorov_smirnov(pairs))
    assert exact.all()
    expected = [
        stats.ks_2samp(sample, reference[i], method="exact").pvalue for sample, i in zip(current, of, strict=True)
    ]
    assert pvalue == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0.1, 0.1, 0.1, 0.2], [0.2, 0.5, 0.5]),
        ([0.1, 0.3, 0.3, 0.5], [0.3, 0.5, 0.9, 0.9]),
        ([0.5] * 3, [0.5] * 4),
        ([0.1], [0.2, 0.2, 0.2]),
    ],
)
def test_exact_p_values_count_the_ways_to_deal_tied_scores(one: list[float], other: list[float]) -> None:
    pooled = np.array([*one, *other])

    def distance(first: Array, second: Array) -> float:
        return max(abs((first <= v).mean() - (second <= v).mean()) for v in pooled)

    seen, reached, ways = distance(np.array(one), np.array(other)), 0, 0
    for chosen in combinations(range(len(pooled)), len(one)):
        inside = np.isin(np.arange(len(pooled)), chosen)
        ways += 1
        reached += distance(pooled[inside], pooled[~inside]) >= seen - 1e-12
    pairs = pairs_of([one], [other])
    assert smirnov_pvalue(pairs, kolmogorov_smirnov(pairs))[0][0] == pytest.approx(reached / ways, abs=1e-12)


def test_many_rows_take_the_limit_law_of_scipy() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.random(300), rng.random(400) ** 1.1
    pairs = pairs_of([one], [other])
    pvalue, exact = smirnov_pvalue(pairs, kolmogorov_smirnov(pairs))
    assert len(one) * len(other) > MOST_PAIRS
    assert not exact[0]
    assert pvalue[0] == pytest.approx(stats.ks_2samp(one, other, method="asymp").pvalue, rel=1e-12)


def test_exact_p_values_of_tied_scores_reject_no_more_than_they_should() -> None:
    rng = np.random.default_rng(4)
    levels = [0.05, 0.1, 0.3, 0.5, 0.7, 0.9]
    samples = [rng.choice(levels, (500, n)) for n in (50, 80)]
    pairs = pairs_of(list(samples[0]), list(samples[1]))
    pvalue, exact = smirnov_pvalue(pairs, kolmogorov_smirnov(pairs))
    assert exact.all()
    assert 0.02 <= (pvalue < 0.05).mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 500)


def test_groups_of_ties_must_hold_all_rows() -> None:
    with pytest.raises(ValueError, match="must add up to the rows of both samples"):
        exceedance(np.array([2]), np.array([2]), np.array([1, 2]), np.array([0]), np.array([4]))


def test_a_segment_may_be_gathered_twice_or_not_at_all() -> None:
    tally = tally_of([[0.1, 0.5], [0.5], [0.9]])
    found, number = gathered(tally, np.array([0, 1, 1]), np.array([7, 7, 3]))
    assert number.tolist() == [3, 7]
    assert (found.score.tolist(), found.rows.tolist()) == ([0.5, 0.1, 0.5], [1.0, 1.0, 2.0])
    none, numbers = gathered(tally, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert (len(none), len(numbers)) == (0, 0)


# ---------------------------------------------------------------- reference values
def compared(entry: Entry, folder: Path, **options: Any) -> tuple[dict[str, Any], pl.DataFrame, pl.DataFrame]:
    """Return the line of `drift` for a reference entry, and its two tables."""
    before, now = (
        binary_table((folder, entry["table"], where.strip(), entry["score"]), ())
        for where in entry["where"].split("->")
    )
    found = drift(now, label="y", score=entry["score"], reference=before, closed="right", **options)
    return found.table.row(0, named=True), before, now


def test_all_reference_values_of_drift_are_reproduced(reference_folder: Path) -> None:
    found = [entry for entry in entries(reference_folder) if entry["id"].startswith("psi|")]
    edges = {
        entry["id"].rsplit("|", 2)[0]: entry["args"]["edges"] for entry in found if entry["metric"] == "psi_inputs"
    }
    wrong = {}
    for entry in found:
        got = reference_value(entry, reference_folder, edges[entry["id"].rsplit("|", 2)[0]])
        if np.ravel(got) != pytest.approx(np.ravel(entry["value"]), rel=1e-9, abs=1e-300):
            wrong[entry["id"]] = got
    assert not wrong
    assert {entry["metric"] for entry in found} == {
        *("psi_inputs", "psi_q10", "psi_q10_pvalue", "psi_q10_fe", "psi_w10_fe", "ks_2samp", "wasserstein")
    }


def reference_value(entry: Entry, folder: Path, edges: list[float]) -> Any:
    """Return what a reference entry is about."""
    metric = entry["metric"]
    line, before, now = compared(entry, folder, psi_bins=edges)
    scores = [table[entry["score"]].to_numpy() for table in (before, now)]
    if metric == "psi_inputs":
        bins = Bins.of_edges(edges, closed="right")
        return [np.bincount(bins.find(p, narrow=False), minlength=bins.count) for p in scores]
    if metric == "psi_q10_pvalue":
        rows = [np.array([float(len(p))]) for p in scores]
        return float(stability_pvalue(np.array([line["psi"]]), *rows, np.array([len(edges) - 1]))[0])
    if metric == "psi_w10_fe":
        return compared(entry, folder, psi_bins=np.linspace(scores[0].min(), scores[0].max(), 11).tolist())[0]["psi"]
    if metric == "ks_2samp":
        return [line["ks"], line["ks_pvalue"]]
    return line["wasserstein"] if metric == "wasserstein" else line["psi"]
