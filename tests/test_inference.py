"""The verb `test`: statistics and p-values against their definitions and peers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

import calframe
from calframe._kernels._corrections import adjusted
from calframe._kernels._tally import Tally
from calframe._testing._exact import count_pvalue
from calframe._testing._found import Found
from calframe._testing._largest import adjusted_by_largest
from tests._inference import CLASSES, class_table, drawn, one
from tests._rank_definitions import cumulative

DATA = Path(__file__).parent / "data"


# --- sums over rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, "w"])
def test_spiegelhalter_is_its_formula(weight: str | None) -> None:
    data = drawn(300, power=1.4)
    top = bottom = 0.0
    for y, s, w in zip(data["y"], data["p"], data["w"] if weight else [1.0] * 300, strict=True):
        top += w * (y - s) * (1.0 - 2.0 * s)
        bottom += w**2 * (1.0 - 2.0 * s) ** 2 * s * (1.0 - s)
    z = top / math.sqrt(bottom)
    found = one(data, method="spiegelhalter", weight=weight)
    assert found["statistic"] == pytest.approx(z, rel=1e-10)
    assert found["pvalue"] == pytest.approx(2.0 * stats.norm.sf(abs(z)), rel=1e-9)
    assert (found["law"], found["df"], found["pvalue_se"]) == ("normal", None, None)


@pytest.mark.parametrize("weight", [None, "w"])
def test_gap_of_many_rows_is_normal(weight: str | None) -> None:
    data = drawn(300, power=1.2)
    weights = data["w"] if weight else pl.Series([1.0] * 300)
    off = math.fsum(w * (s - y) for y, s, w in zip(data["y"], data["p"], weights, strict=True))
    z = off / math.sqrt(math.fsum(w**2 * s * (1.0 - s) for s, w in zip(data["p"], weights, strict=True)))
    found = one(data, method="gap", weight=weight)
    assert found["statistic"] == pytest.approx(z, rel=1e-10)
    assert found["pvalue"] == pytest.approx(2.0 * stats.norm.sf(abs(z)), rel=1e-9)


def test_exact_p_value_of_a_count_is_that_of_all_outcomes() -> None:
    scores = [Fraction(1, 16), Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)]
    scores += [Fraction(1, 2), Fraction(3, 4), Fraction(15, 16)]
    mass = [Fraction()] * (len(scores) + 1)
    for outcome in itertools.product([0, 1], repeat=len(scores)):
        mass[sum(outcome)] += math.prod(s if y else 1 - s for s, y in zip(scores, outcome, strict=True))
    cells = sorted(set(scores))
    rows = np.array([float(scores.count(s)) for s in cells])
    for count in range(len(scores) + 1):
        expected = min(1, 2 * min(sum(mass[: count + 1]), sum(mass[count:])))
        positive = np.zeros(len(cells))
        for cell, most in enumerate(rows):  # which rows they are makes no difference
            positive[cell] = min(most, count - positive.sum())
        tally = Tally.of_counts(np.array([0]), np.array([float(s) for s in cells]), rows, positive)
        assert count_pvalue(tally)[0] == pytest.approx(float(expected), rel=1e-12)


def test_gap_of_few_events_is_exact() -> None:
    # 40 rows of 1/32, 6 positive: the normal law says 3.5e-5; worked out in fractions
    chance = Fraction(1, 32)
    upper = sum(math.comb(40, k) * chance**k * (1 - chance) ** (40 - k) for k in range(6, 41))
    found = one(pl.DataFrame({"y": [1] * 6 + [0] * 34, "p": [1 / 32] * 40}), method="gap")
    assert found["law"] == "exact"
    assert found["pvalue"] == pytest.approx(float(2 * upper), rel=1e-10)
    assert found["pvalue_se"] is None
    assert found["reject"]


# --- counts in groups ------------------------------------------------------------------------------------------------


def by_loop(data: pl.DataFrame, edges: np.ndarray) -> tuple[float, int]:
    """Return Hosmer and Lemeshow's statistic between right-closed edges, and the number of groups with rows."""
    label, score = data["y"].to_numpy(), data["p"].to_numpy()
    total, groups = 0.0, 0
    for i in range(len(edges) - 1):
        inside = (score > edges[i]) & (score <= edges[i + 1]) if i else score <= edges[1]
        if inside.any():
            n, expected, observed = inside.sum(), score[inside].sum(), label[inside].sum()
            total += (observed - expected) ** 2 / (expected * (1.0 - expected / n))
            groups += 1
    return total, groups


@pytest.mark.parametrize("digits", [None, 1])  # with one digit, scores tie across quantiles
@pytest.mark.parametrize("bins", [5, 10])
@pytest.mark.parametrize(("df", "less"), [("external", 0), ("internal", 2)])
def test_hosmer_lemeshow_groups_lie_between_quantiles(digits: int | None, bins: int, df: str, less: int) -> None:
    data = drawn(400, seed=3, power=1.2, digits=digits).filter(pl.col("p").is_between(0.05, 0.95))
    edges = np.unique(np.quantile(data["p"].to_numpy(), np.linspace(0, 1, bins + 1)))
    statistic, groups = by_loop(data, edges)
    found = one(data, method="hosmer_lemeshow", bins=bins, df=df)
    assert found["statistic"] == pytest.approx(statistic, rel=1e-10)
    assert (found["n_groups"], found["df"]) == (groups, groups - less)
    assert found["pvalue"] == pytest.approx(stats.chi2.sf(statistic, groups - less), rel=1e-9)
    assert found["law"] == "chi2"


def test_hosmer_lemeshow_groups_of_equal_width_and_of_edges() -> None:
    data = drawn(500, seed=5).filter(pl.col("p").is_between(0.1, 0.9))
    for arguments, edges in (
        ({"bins": 10, "strategy": "uniform"}, np.arange(11) / 10),
        ({"bins": [0.0, 0.3, 0.5, 1.0]}, np.array([0.0, 0.3, 0.5, 1.0])),
    ):
        statistic, groups = by_loop(data, edges)
        found = one(data, method="hosmer_lemeshow", **arguments)
        assert found["statistic"] == pytest.approx(statistic, rel=1e-10)
        assert found["n_groups"] == groups


def test_equal_width_groups_of_float32_scores_end_where_a_person_expects() -> None:
    data = pl.DataFrame({"p": [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9] * 10, "y": [0, 0, 0, 1, 0, 1, 1, 1] * 10})
    wide = one(data, method="hosmer_lemeshow", strategy="uniform")
    narrow = one(data.with_columns(pl.col("p").cast(pl.Float32)), method="hosmer_lemeshow", strategy="uniform")
    assert narrow["n_groups"] == wide["n_groups"] == 8
    assert narrow["statistic"] == pytest.approx(wide["statistic"], rel=1e-6)


def test_hosmer_lemeshow_of_two_tied_scores() -> None:
    # https://github.com/easystats/performance/issues/578: 1 / 2.1 + 1 / 2.4, chi-square of 2
    data = pl.DataFrame({"y": [1] * 4 + [0] * 6 + [1] * 5 + [0] * 5, "p": [0.3] * 10 + [0.6] * 10})
    found = one(data, method="hosmer_lemeshow")
    assert found["statistic"] == pytest.approx(0.892857142857, abs=1e-12)
    assert found["pvalue"] == pytest.approx(0.639909466372, abs=1e-12)
    assert (found["n_groups"], found["df"]) == (2, 2)
    assert "2 groups instead of 10" in found["note"]


def test_hosmer_lemeshow_groups_do_not_wrap_around() -> None:
    # https://github.com/easonfg/cali_tutorial/issues/1: groups .1 .2 .3 | .4 .5 | .6 .7, whose expected and observed
    # positives are .6 and 0, .9 and 1, 1.3 and 2
    data = pl.DataFrame({"y": [0, 0, 0, 1, 0, 1, 1], "p": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]})
    expected = 0.36 / (0.6 * 0.8) + 0.01 / (0.9 * 0.55) + 0.49 / (1.3 * 0.35)
    found = one(data, method="hosmer_lemeshow", bins=3)
    assert found["statistic"] == pytest.approx(expected, rel=1e-12)
    assert found["reject"] is None


@pytest.fixture
def toy() -> pl.DataFrame:
    return pl.read_csv(DATA / "seed_toy30.csv")


TOY = {1: "p1", 2: "p2", 3: "p3"}


def test_multinomial_hosmer_lemeshow_of_the_survey(toy: pl.DataFrame) -> None:
    # Silva Filho et al. (2023): C = 25.3, 6 df, p = .0003; all digits from its recipe
    found = one(toy, score=TOY, method="hosmer_lemeshow", bins=5, df="internal")
    assert found["statistic"] == pytest.approx(25.300429147356, abs=1e-11)
    assert found["df"] == 6
    assert found["pvalue"] == pytest.approx(0.000300369026, abs=1e-12)
    assert "small expected counts" in found["note"]
    # against scores of a model fitted elsewhere, 5 groups of 2 free classes
    outside = one(toy, score=TOY, method="hosmer_lemeshow", bins=5)
    assert outside["statistic"] == found["statistic"]
    assert outside["law"] == "resampled"
    assert outside["pvalue"] < 0.05


@pytest.mark.parametrize(("inequality", "expected"), [(">", 0.0110), (">=", 0.0122)])
def test_resampling_of_the_survey(toy: pl.DataFrame, inequality: str, expected: float) -> None:
    # its p-value of the classwise error, from 100,000 draws; ties with the error seen have probability .0012
    found = one(
        toy, score=TOY, statistic="classwise_ece", bins=5, closed="right", n_resamples=4000, inequality=inequality
    )
    assert abs(found["pvalue"] - expected) < 3.0 * math.sqrt(expected / 4000)
    assert found["pvalue_se"] == pytest.approx(math.sqrt(found["pvalue"] * (1 - found["pvalue"]) / 4000))


def test_fifty_positives_of_a_hundredth_are_never_of_p_value_zero() -> None:
    # https://github.com/scikit-learn-contrib/MAPIE/issues/984: no draw has 50 positives, so p = (1 + 0) / (1 + 99)
    data = pl.DataFrame({"y": [1] * 50, "p": [0.01] * 50})
    for seed in range(3):
        assert one(data, n_resamples=99, rng=seed)["pvalue"] == 0.01
        assert one(data, n_resamples=99, rng=seed, inequality=">")["pvalue"] == 0.0


# --- cumulative differences ------------------------------------------------------------------------------------------


def range_law(x: float) -> float:
    """Return the chance that the range of Brownian motion on [0, 1] is below x (REFERENCE d.4, Feller 1951)."""
    terms = ((k + 0.5) ** 2 * math.pi**2 for k in range(60))
    return math.fsum((8.0 / x**2 + 2.0 / t) * math.exp(-2.0 * t / x**2) for t in terms)


def largest_law(x: float) -> float:
    """Return the chance that Brownian motion on [0, 1] stays within x."""
    return math.fsum(
        2 / math.pi * (-1) ** k / (k + 0.5) * math.exp(-((k + 0.5) ** 2) * math.pi**2 / (2 * x**2)) for k in range(60)
    )


@pytest.mark.parametrize("power", [1.0, 1.15])
def test_ecce_and_ks_are_range_and_largest_value_of_brownian_motion(power: float) -> None:
    data = drawn(600, seed=1, power=power)
    path = cumulative(list(zip(data["y"], data["p"], strict=True)))
    sigma = math.sqrt(math.fsum(s * (1.0 - s) for s in data["p"])) / 600
    for method, far, law in (
        ("ecce", float(max(path) - min(path)), range_law),
        ("ks", float(max(map(abs, path))), largest_law),
    ):
        found = one(data, method=method)
        assert found["statistic"] == pytest.approx(far / sigma, rel=1e-9)
        assert found["pvalue"] == pytest.approx(1.0 - law(far / sigma), abs=1e-10)
        assert found["law"] == "brownian"


def test_weighted_ecce_and_ks() -> None:
    data = drawn(600, seed=2, power=1.1).sort("p")
    path, total = [0.0], float(data["w"].sum())
    for y, s, w in zip(data["y"], data["p"], data["w"], strict=True):
        path.append(path[-1] + w * (y - s) / total)
    sigma = math.sqrt(math.fsum(w**2 * s * (1.0 - s) for s, w in zip(data["p"], data["w"], strict=True))) / total
    found = {method: one(data, method=method, weight="w")["statistic"] for method in ("ecce", "ks")}
    assert found["ecce"] == pytest.approx((max(path) - min(path)) / sigma, rel=1e-9)
    assert found["ks"] == pytest.approx(max(map(abs, path)) / sigma, rel=1e-9)


# --- likelihood ratios -----------------------------------------------------------------------------------------------


def test_cox_is_likelihood_ratios_of_statsmodels() -> None:
    data = drawn(500, seed=4, power=1.3)
    label, score = data["y"].to_numpy(), data["p"].to_numpy()
    z = np.log(score) - np.log1p(-score)
    fixed = float(np.sum(label * np.log(score) + (1 - label) * np.log1p(-score)))
    level = sm.GLM(label, np.ones((500, 1)), family=sm.families.Binomial(), offset=z).fit(tol=1e-14).llf
    free = sm.Logit(label, sm.add_constant(z)).fit(disp=0, tol=1e-12).llf
    table = calframe.test(data, label="y", score="p", method="cox").table
    found = {row["hypothesis"]: row for row in table.iter_rows(named=True)}
    expected = {
        "joint": (2 * (free - fixed), 2),
        "intercept": (2 * (level - fixed), 1),
        "slope": (2 * (free - level), 1),
    }
    assert list(found) == list(expected)
    for name, (ratio, df) in expected.items():
        assert found[name]["statistic"] == pytest.approx(ratio, abs=1e-8)
        assert found[name]["pvalue"] == pytest.approx(stats.chi2.sf(ratio, df), rel=1e-7)
        assert (found[name]["df"], found[name]["law"]) == (df, "chi2")
    joint, intercept, slope = (found[name]["statistic"] for name in expected)
    assert joint == pytest.approx(intercept + slope, rel=1e-9)


# --- CORP and kernels ------------------------------------------------------------------------------------------------


def test_corp_tests_the_miscalibration_of_metrics() -> None:
    data = drawn(200, power=1.6)
    found = one(data, method="corp", n_resamples=199)
    assert found["statistic"] == calframe.metrics(data, label="y", score="p", metrics=["mcb"])["mcb"][0]
    assert (found["law"], found["reject"]) == ("resampled", True)


def kernel_terms(data: pl.DataFrame) -> np.ndarray:
    """Return h of every pair of rows: exp(-|p - p'|_1 / median) times the product of the residuals."""
    vectors = data.select("p0", "p1", "p2").to_numpy()
    residual = np.eye(3)[data["y"].to_numpy()] - vectors
    n = len(data)
    far = np.array(
        [[sum(abs(a - b) for a, b in zip(vectors[i], vectors[j], strict=True)) for j in range(n)] for i in range(n)]
    )
    width = float(np.median([far[i, j] for i in range(n) for j in range(i)]))
    return np.array([[math.exp(-far[i, j] / width) * residual[i] @ residual[j] for j in range(n)] for i in range(n)])


def test_kernel_is_the_skce_of_metrics_and_its_bound() -> None:
    data = class_table(60, seed=8)
    h, n = kernel_terms(data), 60
    unbiased = sum(h[i, j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    found = one(data, score=CLASSES, method="kernel", n_resamples=200)
    assert found["statistic"] == pytest.approx(unbiased, abs=1e-12)
    assert found["statistic"] == pytest.approx(
        calframe.metrics(data, label="y", score=CLASSES, metrics=["skce"])["skce"][0], abs=1e-14
    )
    # Widmann et al. (2019): exp(-floor(n / 2) (SKCE / B)^2 / 2), with B twice the largest value of the kernel
    bound = one(data, score=CLASSES, method="kernel", kernel_law="distribution_free")
    assert bound["pvalue"] == pytest.approx(math.exp(-(n // 2) * (max(unbiased, 0.0) / 2.0) ** 2 / 2.0), rel=1e-12)
    assert bound["law"] == "bound"


def test_asymptotic_law_of_the_kernel_is_the_bootstrap_of_its_limit() -> None:
    data = class_table(50, seed=1)
    h, n, many = kernel_terms(data), 50, 2000
    off = h - np.diag(np.diag(h))
    seen = n / (n - 1) * off.sum() / (n * (n - 1)) - h.sum() / n**2
    rng, above = np.random.default_rng(5), 0
    for _ in range(many):
        c = rng.multinomial(n, [1 / n] * n)
        # REFERENCE d.9: T' = n^-2 sum_i C_i sum_j ((n / (n - 1)) (C_j - delta_ij) - 2) h_ij
        times = n / (n - 1) * (c[None, :] - np.eye(n)) - 2.0
        above += (c[:, None] * times * h).sum() / n**2 >= seen
    expected = above / many
    found = one(data, score=CLASSES, method="kernel", kernel_law="asymptotic", n_resamples=many)
    assert abs(found["pvalue"] - expected) < 3.0 * math.sqrt(2.0 * expected * (1.0 - expected) / many)
    assert found["law"] == "asymptotic"


@pytest.mark.parametrize(("n", "law"), [(2101, "resampled"), (81, "block")])
def test_normal_law_of_the_kernel_is_that_of_pairs(n: int, law: Any) -> None:
    data = class_table(n, seed=2)
    found = one(data, score=CLASSES, method="kernel", kernel_law=law)
    # two rows in turn in the order of default_rng(0).permutation(n); the bandwidth is the median of the first 1,000
    order = np.random.default_rng(0).permutation(n)
    rows = data.select("p0", "p1", "p2").to_numpy()[order]
    residual = np.eye(3)[data["y"].to_numpy()[order]] - rows
    near = rows[:1000]
    far = np.abs(near[:, None, :] - near[None, :, :]).sum(axis=2)
    width = np.median(far[np.triu_indices(len(near), 1)])
    h = [math.exp(-np.abs(a - b).sum() / width) * float(r @ s) for a, b, r, s in _in_turn(rows, residual)]
    z = np.mean(h) / (np.std(h, ddof=1) / math.sqrt(len(h)))
    assert len(h) == n // 2
    assert found["statistic"] == pytest.approx(np.mean(h), abs=1e-13)
    assert found["pvalue"] == pytest.approx(stats.norm.sf(z), rel=1e-8)
    assert found["law"] == "normal"
    assert found["note"] == (None if law == "block" else "more than 2,000 rows: pairs within blocks")


def _in_turn(rows: np.ndarray, residual: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    last = len(rows) // 2 * 2
    return list(zip(rows[:last:2], rows[1:last:2], residual[:last:2], residual[1:last:2], strict=True))


# --- corrections -----------------------------------------------------------------------------------------------------

PEERS = {"holm": "holm", "bonferroni": "bonferroni", "benjamini_hochberg": "fdr_bh", "benjamini_yekutieli": "fdr_by"}


@pytest.mark.parametrize("correction", PEERS)
def test_corrections_are_those_of_statsmodels(correction: Any) -> None:
    rng = np.random.default_rng(1)
    for pvalue in (rng.random(20) ** 3, np.array([0.03]), np.array([0.01, 0.01, 0.5, 1.0]), np.zeros(3)):
        expected = multipletests(pvalue, method=PEERS[correction])[1]
        assert adjusted(pvalue, correction) == pytest.approx(expected, rel=1e-12)
    gaps = np.array([0.01, np.nan, 0.04, np.nan, 0.03])
    found = adjusted(gaps, correction)
    assert np.isnan(found[[1, 3]]).all()
    assert found[[0, 2, 4]] == pytest.approx(multipletests(gaps[[0, 2, 4]], method=PEERS[correction])[1])


def test_correction_is_over_the_segments_of_each_method() -> None:
    data = drawn(600, power=1.3)
    table = calframe.test(data, label="y", score="p", by="g", method=["spiegelhalter", "gap"]).table
    for _, part in table.group_by("method"):
        assert part["pvalue_adjusted"].to_list() == pytest.approx(multipletests(part["pvalue"], method="holm")[1])
        assert part["reject"].to_list() == [p <= 0.05 for p in part["pvalue_adjusted"]]


@pytest.mark.parametrize("side", ["greater", "less", "two-sided"])
def test_largest_statistic_of_all_segments(side: Any) -> None:
    rng = np.random.default_rng(2)
    draws = rng.gamma(2.0, [1.0, 10.0, 0.1, 3.0], size=(50, 4))
    draws[:, 3] = 1.0  # no draw of the last varies
    seen = np.array([9.0, 1.0, 0.2, 1.0])
    least = np.array([0.02, 0.9, 0.5, 1.0])
    found = Found.of_draws(seen, least, np.zeros(4), floor=1 / 51)
    object.__setattr__(found, "draws", draws)
    turn = {"greater": lambda x: x, "less": lambda x: -x, "two-sided": abs}[side]
    every = np.vstack([draws, seen])

    def far(row: Any) -> list[float]:
        return [turn((float(row[i]) - every[:, i].mean()) / every[:, i].std()) for i in range(3)]

    largest = [max(far(row)) for row in draws]
    expected = [max((1 + sum(m >= own for m in largest)) / 51, p) for own, p in zip(far(seen), least, strict=False)]
    assert adjusted_by_largest(found, side=side) == pytest.approx([*expected, 1.0])
