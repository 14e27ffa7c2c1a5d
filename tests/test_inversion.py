"""Intervals of binned errors: against enumeration, scipy's laws and Wilson's interval, and what must not matter."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from calframe._kernels import _inversion
from calframe._kernels._bin_laws import Bins, Law, folded_law, spread_law, square_law
from calframe._kernels._inversion import (
    absolute_error_interval,
    reliability_interval,
    resolution_interval,
    root_mean_square_interval,
)

ONE = np.array([0])
LAWS = {
    folded_law: lambda rates, share, centre: np.abs(rates - centre) @ share,
    square_law: lambda rates, share, centre: (rates - centre) ** 2 @ share,
    spread_law: lambda rates, share, _: (rates - (rates @ share)[:, None]) ** 2 @ share,
}


def bins_of(rows, centre, *, share=None, rate=None):
    rows, centre = np.array(rows, dtype=float), np.array(centre, dtype=float)
    share = rows / rows.sum() if share is None else np.array(share, dtype=float)
    return Bins(
        starts=ONE,
        sizes=np.array([len(rows)]),
        share=share,
        rate=centre if rate is None else np.array(rate, dtype=float),
        centre=centre,
        rows=rows,
        total=np.array([np.inf]),
    )


def enumerated(law, bins, rate):
    """Return mean, variance and third cumulant over all outcomes of the Binomial counts of each bin."""
    counts = np.array(list(product(*(range(int(n) + 1) for n in bins.rows))))
    chance = stats.binom.pmf(counts, bins.rows, rate).prod(axis=1)
    values = LAWS[law](counts / bins.rows, bins.share, bins.centre)
    mean = chance @ values
    return mean, chance @ (values - mean) ** 2, chance @ (values - mean) ** 3


# ---------------------------------------------------------------- the laws
@pytest.mark.parametrize(
    ("rows", "centre", "rate"),
    [
        ([2, 3, 4], [0.1, 0.5, 0.8], [0.2, 0.5, 0.6]),
        ([1, 5, 2], [0.02, 0.3, 0.97], [0.0, 0.9, 1.0]),
        ([7], [0.4], [0.55]),
        ([6, 6], [0.0, 1.0], [0.1, 0.95]),
    ],
)
@pytest.mark.parametrize("share", [None, "equal"])
def test_cumulants_are_those_of_all_outcomes(rows, centre, rate, share) -> None:
    bins = bins_of(rows, centre, share=None if share is None else np.full(len(rows), 1 / len(rows)))
    for law in (folded_law, square_law):
        found = law(bins, np.array(rate))
        assert [float(part[0]) for part in found[:3]] == pytest.approx(enumerated(law, bins, rate), rel=1e-9, abs=1e-14)
    mean, variance, _ = enumerated(spread_law, bins, rate)
    found = spread_law(bins, np.array(rate))
    assert (found.mean[0], found.variance[0]) == pytest.approx((mean, variance), rel=1e-9, abs=1e-14)


def test_the_value_of_a_law_is_the_error_of_the_rates() -> None:
    bins, rate = bins_of([30, 10, 60], [0.1, 0.5, 0.8]), np.array([0.2, 0.5, 0.6])
    for law, error in LAWS.items():
        assert law(bins, rate).value == pytest.approx(error(rate[None], bins.share, bins.centre))


def test_large_bins_are_folded_normal() -> None:
    bins, rate = bins_of([4_000, 900], [0.5, 0.3]), np.array([0.507, 0.3])
    scale = np.sqrt(rate * (1 - rate) / bins.rows)
    folded = [stats.foldnorm(abs(x) / s, scale=s) for x, s in zip(rate - bins.centre, scale, strict=True)]
    found = folded_law(bins, rate)
    assert found.mean[0] == pytest.approx(bins.share @ [f.mean() for f in folded])
    assert found.variance[0] == pytest.approx(bins.share**2 @ [f.var() for f in folded])
    third = [float(f.stats("s")) * f.std() ** 3 for f in folded]
    assert found.third[0] == pytest.approx(bins.share**3 @ third)


def test_the_spread_of_normal_errors_is_a_quadratic_form() -> None:
    # Cumulants of y'My, y ~ N(rate, V): 2 tr(MVMV) + 4 r'MVMr, 8 tr(MVMVMV) + 24 r'MVMVMr
    bins, rate = bins_of([2e6, 1e6, 5e6], [0.4] * 3), np.array([0.40, 0.41, 0.39])
    form = np.diag(bins.share) - np.outer(bins.share, bins.share)
    noise = np.diag(rate * (1 - rate) / bins.rows)
    step = form @ noise
    found = spread_law(bins, rate)
    assert found.mean[0] == pytest.approx(rate @ form @ rate + np.trace(step))
    two = 2 * np.trace(step @ step) + 4 * rate @ step @ form @ rate
    assert found.variance[0] == pytest.approx(two, rel=1e-5)  # Binomial counts of a million rows are not quite normal
    assert found.third[0] == pytest.approx(
        8 * np.trace(step @ step @ step) + 24 * rate @ step @ step @ form @ rate, rel=1e-5
    )


@pytest.mark.parametrize("skew", [-1.3, -0.2, 0.0, 0.4, 1.0, 2.5])
@pytest.mark.parametrize("share", [0.005, 0.05, 0.5, 0.95])
def test_quantiles_are_those_of_pearson_iii(skew: float, share: float) -> None:
    law = Law(np.array([0.3]), np.array([0.04]), np.array([skew * 0.2**3]), np.array([0.0]))
    expected = stats.pearson3(skew, loc=0.3, scale=0.2).ppf(share)
    assert _inversion._quantile(law, share)[0] == pytest.approx(expected, abs=1e-4)


# ---------------------------------------------------------------- the intervals
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("rate", [0.36, 0.45, 0.22])
def test_one_large_bin_has_the_ends_of_wilson(rate: float, level: float) -> None:
    rows = np.array([4_000.0])
    wilson = proportion_confint(4_000 * rate, 4_000, alpha=1 - level, method="wilson")
    expected = sorted(abs(end - 0.3) for end in wilson)
    found = np.array(absolute_error_interval(rows, 0.3 * rows, rate * rows, rows, ONE, level=level))[:, 0]
    assert found == pytest.approx(expected, abs=3e-4)
    square = np.array(root_mean_square_interval(rows, 0.3 * rows, rate * rows, rows, ONE, level=level))[:, 0]
    assert square == pytest.approx(expected, abs=1.5e-3)


@pytest.mark.parametrize("gap", [0.002, 0.005, 0.02])
def test_equal_bins_have_the_ends_of_the_noncentral_chi_squared_law(gap: float) -> None:
    # Twelve bins of 50,000 rows near 1/2: Q / v is noncentral chi-squared with 12 degrees of freedom
    rows = np.full(12, 50_000.0)
    sign = np.tile([1.0, -1.0], 6)
    low, high = reliability_interval(rows, 0.5 * rows, (0.5 + sign * gap) * rows, rows, ONE, level=0.9)
    unit = 0.25 / rows[0] / 12
    seen = gap**2 / unit
    grid = np.linspace(0, 4 * seen + 60, 400_001)
    above = stats.ncx2.sf(seen, 12, np.maximum(grid, 1e-12))
    lowest = 0.0 if above[0] > 0.05 else grid[np.searchsorted(above, 0.05)]
    assert low[0] == pytest.approx(lowest * unit, rel=0.02, abs=1e-12)
    if seen > 12:  # below the chance level the upper end is that of a sample at it
        assert high[0] == pytest.approx(grid[np.searchsorted(above, 0.95)] * unit, rel=0.02)


def test_the_lower_end_is_0_just_where_no_error_is_not_rejected() -> None:
    rng = np.random.default_rng(5)
    rows = np.array([40.0, 90.0, 60.0, 25.0])
    centre = np.array([0.1, 0.35, 0.6, 0.9])
    null = np.abs(rng.binomial(rows.astype(int), centre, (200_000, 4)) / rows - centre) @ rows / rows.sum()
    count = rng.binomial(rows.astype(int), centre * 0.92, (300, 4)).astype(float)
    seen = np.abs(count / rows - centre) @ rows / rows.sum()
    pvalue = 1 - np.searchsorted(np.sort(null), seen - 1e-12) / len(null)
    weight = np.tile(rows, 300)
    low, _ = absolute_error_interval(
        weight, weight * np.tile(centre, 300), count.ravel(), weight, np.arange(300) * 4, level=0.9
    )
    clear = np.abs(pvalue - 0.05) > 0.01
    assert clear.sum() > 250
    assert 20 < (low == 0).sum() < 280
    assert ((low == 0) == (pvalue > 0.05))[clear].all()


def test_a_resolution_of_equal_rates_is_a_chi_squared_test() -> None:
    # Two bins: the test of equal rates is that of a 2 x 2 table
    rows = np.array([600.0, 400.0])
    for hits in ([180, 120], [180, 146], [180, 150], [180, 170]):
        low, high = resolution_interval(rows, np.array(hits, dtype=float), rows, ONE, level=0.9)
        table = np.array([hits, rows - hits])
        rejected = stats.chi2_contingency(table, correction=False).pvalue < 0.05
        assert (low[0] > 0) == rejected
        assert low[0] <= high[0]


def test_certain_scores() -> None:
    rows = np.array([50.0])
    right = absolute_error_interval(rows, rows, rows, rows, ONE, level=0.9)
    assert right[0][0] == 0.0
    assert 0.01 < right[1][0] < 1 - 0.05 ** (1 / 50) + 0.02  # one-sided exact limit of 0 of 50, and not nothing
    wrong = absolute_error_interval(rows, rows, 0 * rows, rows, ONE, level=0.9)
    assert wrong[0][0] > 0.9
    assert wrong[1][0] == pytest.approx(1.0)
    one_wrong = absolute_error_interval(rows, 0 * rows, np.array([1.0]), rows, ONE, level=0.9)
    assert 0 < one_wrong[0][0] < 0.02 < one_wrong[1][0]


def test_what_is_below_the_chance_level_claims_as_much_as_what_is_on_it() -> None:
    rows, score = np.array([100.0, 100.0]), np.array([0.3, 0.6])
    perfect = absolute_error_interval(rows, score * rows, score * rows, rows, ONE, level=0.9)
    off = np.array([2.0, -2.0])
    near = absolute_error_interval(rows, score * rows, score * rows + off, rows, ONE, level=0.9)
    assert perfect[0][0] == near[0][0] == 0.0
    assert perfect[1][0] == pytest.approx(near[1][0], rel=0.1)
    assert perfect[1][0] > 0.05


def test_no_weight_is_no_interval() -> None:
    weight = np.array([0.0, 0.0, 5.0, 0.0, 0.0])
    starts = np.array([0, 2, 4])
    label = np.array([0.0, 0.0, 2.0, 0.0, 0.0])
    for low, high in (
        absolute_error_interval(weight, 0.5 * weight, label, weight, starts, level=0.9),
        root_mean_square_interval(weight, 0.5 * weight, label, weight, starts, level=0.9),
    ):
        assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, False, True]
    low, high = resolution_interval(weight, label, weight, starts, level=0.9)
    assert np.isnan(low).all()  # one bin says nothing of the spread between bins
    assert np.isnan(high).all()


# ---------------------------------------------------------------- what must not matter
@st.composite
def tables(draw):
    """Return segments of bins: weight, score, label and squared sums, and where segments start."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = rng.integers(0 if draw(st.booleans()) else 1, draw(st.sampled_from([3, 40, 3_000])), sum(sizes))
    centre = rng.choice([0.0, 0.03, 0.2, 0.5, 0.77, 1.0], sum(sizes))
    label = rng.binomial(rows, np.clip(centre + rng.normal(0, 0.1, sum(sizes)), 0, 1))
    weight = rows.astype(float)
    return weight, centre * weight, label.astype(float), weight, np.cumsum([0, *sizes[:-1]])


def all_intervals(weight, score, label, squared, starts, *, level=0.9):
    """Return the ends of every kind of interval, stacked."""
    equal = (weight > 0).astype(float)
    return np.array(
        [
            *absolute_error_interval(weight, score, label, squared, starts, level=level),
            *absolute_error_interval(weight, score, label, squared, starts, level=level, shares=equal),
            *root_mean_square_interval(weight, score, label, squared, starts, level=level),
            *resolution_interval(weight, label, squared, starts, level=level),
        ]
    )


@given(tables())
@settings(max_examples=30, deadline=None)
def test_ends_are_in_order_and_in_range(table) -> None:
    found = all_intervals(*table)
    low, high = found[::2], found[1::2]
    assert (np.isnan(low) == np.isnan(high)).all()
    known = ~np.isnan(low)
    assert (low[known] >= 0).all()
    assert (low[known] <= high[known]).all()
    assert (high[known] <= 1).all()


@given(tables(), st.sampled_from([1e-100, 1e-3, 7.0, 1e100]))
@settings(max_examples=15, deadline=None)
def test_the_scale_of_weights_does_not_matter(table, scale: float) -> None:
    weight, score, label, squared, starts = table
    scaled = all_intervals(weight * scale, score * scale, label * scale, squared * scale * scale, starts)
    assert scaled == pytest.approx(all_intervals(*table), rel=1e-6, abs=1e-9, nan_ok=True)


@given(tables())
@settings(max_examples=8, deadline=None)
def test_segments_alone_and_in_chunks_are_as_all_together(table) -> None:
    weight, score, label, squared, starts = table
    together = all_intervals(*table)
    ends = np.append(starts[1:], len(weight))
    for i, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        cut = slice(begin, end)
        alone = all_intervals(weight[cut], score[cut], label[cut], squared[cut], ONE)
        assert alone[:, 0] == pytest.approx(together[:, i], rel=1e-9, abs=1e-15, nan_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_inversion, "_CHUNK", 4)
        assert all_intervals(*table) == pytest.approx(together, rel=1e-9, abs=1e-15, nan_ok=True)


@given(tables(), st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_the_order_of_bins_and_empty_bins_do_not_matter(table, seed: int) -> None:
    weight, score, label, squared, starts = table
    rng = np.random.default_rng(seed)
    ends = np.append(starts[1:], len(weight))
    parts = [np.append(rng.permutation(np.arange(a, b)), -1) for a, b in zip(starts, ends, strict=True)]
    order = np.concatenate(parts)
    moved = [np.append(values, 0.0)[order] for values in (weight, score, label, squared)]
    other = all_intervals(*moved, np.cumsum([0, *(len(part) for part in parts[:-1])]))
    assert other == pytest.approx(all_intervals(*table), rel=1e-6, abs=1e-9, nan_ok=True)


def test_calling_the_other_class_positive_does_not_matter() -> None:
    rng = np.random.default_rng(8)
    rows = rng.integers(1, 300, 60).astype(float)
    centre = rng.uniform(0.01, 0.99, 60)
    label = rng.binomial(rows.astype(int), centre).astype(float)
    starts = np.arange(0, 60, 6)
    one = all_intervals(rows, centre * rows, label, rows, starts)
    other = all_intervals(rows, (1 - centre) * rows, rows - label, rows, starts)
    assert other == pytest.approx(one, rel=1e-6, abs=1e-9)


def test_fewer_effective_rows_are_less_sure() -> None:
    rows = np.array([300.0, 500.0])
    label = np.array([60.0, 300.0])
    plain = absolute_error_interval(rows, 0.4 * rows, label, rows, ONE, level=0.9)
    weighted = absolute_error_interval(rows, 0.4 * rows, label, 3 * rows, ONE, level=0.9)
    assert weighted[0][0] < plain[0][0]
    assert weighted[1][0] > plain[1][0]


def test_a_higher_level_holds_a_lower_one() -> None:
    rng = np.random.default_rng(2)
    rows = rng.integers(20, 300, 200).astype(float)
    centre = rng.uniform(0.05, 0.95, 200)
    label = rng.binomial(rows.astype(int), np.clip(centre + 0.05, 0, 1)).astype(float)
    starts = np.arange(0, 200, 10)
    inner = all_intervals(rows, centre * rows, label, rows, starts, level=0.8)
    outer = all_intervals(rows, centre * rows, label, rows, starts, level=0.95)
    assert (outer[::2] <= inner[::2] + 1e-12).all()
    assert (outer[1::2] >= inner[1::2] - 1e-12).all()
