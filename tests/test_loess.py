"""Loess, lowess and the ICI family against R, statsmodels, scikit-misc, and row by row from the definition."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicHermiteSpline
from statsmodels.nonparametric.smoothers_lowess import lowess as lowess_of_statsmodels

from calframe._kernels import _ici
from calframe._kernels._ici import ici, loess_direct, lowess
from calframe._kernels._loess import loess, loess_curve
from calframe._kernels._tally import Tally
from calframe._typing import Floats

SMOOTHERS = {"loess": loess, "loess_direct": loess_direct, "lowess": lowess}
SUMS = ("rows", "weight", "positive", "squared", "squared_positive")


def tally_of(score: Any, label: Any, weight: Any = None, segment: Any = None) -> Tally:
    """The tally of rows, segments in ascending order."""
    score = np.asarray(score, float)
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, float)
    segment = np.zeros(len(score)) if segment is None else np.asarray(segment, float)
    cells, inverse = np.unique(np.stack([segment, score], axis=1), axis=0, return_inverse=True)
    inverse, label = inverse.ravel(), np.asarray(label, float)
    sums = [np.bincount(inverse, v) for v in (weight**0, weight, weight * label, weight**2, weight**2 * label)]
    starts = np.flatnonzero(np.diff(cells[:, 0], prepend=-1))
    return Tally(starts=starts, score=cells[:, 1], **dict(zip(SUMS, sums, strict=True)))


def counts(score: Any, rows: Any, positive: Any) -> Tally:
    """The tally of one segment."""
    return Tally.of_counts(np.array([0]), *(np.asarray(column, float) for column in (score, rows, positive)))


# ---------------------------------------------------------------- the definition, row by row
def local_fit(x: Floats, y: Floats, at: float) -> tuple[float, float]:
    """Value and slope of the local quadratic with span 0.75, by the pseudo-inverse of the weighted rows."""
    far = np.abs(x - at)
    radius = np.sort(far)[int(0.75 * len(x) + 1e-5) - 1]
    inside = far < radius * (1 - 1e-9)
    root = np.sqrt((1 - (far[inside] / radius) ** 3) ** 3)
    design = root[:, None] * np.vander(x[inside] - at, 3, increasing=True)
    length = np.sqrt((design**2).sum(axis=0))
    length[length == 0] = 1
    coefficients = np.linalg.pinv(design / length, rcond=2.2e-14) @ (root * y[inside]) / length
    return float(coefficients[0]), float(coefficients[1])


def vertices_of(x: Floats) -> Floats:
    """The vertices of the k-d tree of sorted scores: cells of over 0.15 n rows are cut at the middle row."""
    margin = 0.005 * (x[-1] - x[0])
    ends = (x[0] - margin, x[-1] + margin)
    found, cells = set(ends), [(0, len(x) - 1, *ends)]
    for low, high, left, right in cells:
        if high - low + 1 <= int(len(x) * (0.75 * 0.2)):
            continue
        middle = (low + high + 2) // 2 - 1
        # the nearest row that differs from the next one, upwards first, until the upper end is met
        steps = sorted(range(-len(x), len(x)), key=lambda step: (abs(step), -step))
        for place in (middle + step for step in steps):
            if place >= high or place < low:
                break
            if x[place] != x[place + 1]:
                middle = place
                break
        cut = x[middle]
        if cut not in (left, right):
            found.add(cut)
            cells += [(low, middle, left, cut), (middle + 1, high, cut, right)]
    return np.array(sorted(found))


def loess_by_rows(x: Floats, y: Floats, at: Floats) -> Floats:
    order = np.argsort(x)
    vertices = vertices_of(x[order])
    value, slope = np.transpose([local_fit(x, y, v) for v in vertices])
    fitted: Floats = CubicHermiteSpline(vertices, value, slope)(at)
    return fitted


def summary(gap: Floats) -> list[float]:
    return [gap.mean(), *np.quantile(gap, [0.5, 0.9]), gap.max()]


@pytest.mark.parametrize(("rows", "decimals"), [(12, 9), (53, 9), (200, 9), (60, 1), (101, 1), (331, 2), (400, 1)])
@pytest.mark.parametrize("shape", [(2, 3), (0.4, 0.4), (0.5, 3)])
def test_loess_row_by_row(rows: int, decimals: int, shape: tuple[float, float]) -> None:
    rng = np.random.default_rng(rows)
    score = np.round(rng.beta(*shape, rows), decimals)
    # a score that holds three quarters of the rows leaves a neighbourhood of no width: not defined row by row
    assert np.unique(score, return_counts=True)[1].max() < 0.74 * rows
    label = (rng.random(rows) < score**1.3).astype(float)
    tally = tally_of(score, label)
    np.testing.assert_allclose(loess(tally), loess_by_rows(score, label, tally.score), atol=1e-10)
    direct = [local_fit(score, label, at)[0] for at in tally.score]
    np.testing.assert_allclose(loess_direct(tally), direct, atol=1e-10)
    gap = np.abs(score - loess_by_rows(score, label, score))
    np.testing.assert_allclose(np.ravel(ici(tally, "loess")), summary(gap), atol=1e-10)


def test_a_parabola_and_a_line_are_kept() -> None:
    # a quadratic fit of a quadratic is exact, whatever the weights; so is the cubic between two of them
    score = np.linspace(0.02, 0.98, 60) ** 1.7
    weight = 0.1 + np.random.default_rng(3).random(60)
    parabola, line = score**2 / 2 + 0.1, 0.3 * score + 0.2
    np.testing.assert_allclose(loess(tally_of(score, parabola, weight)), parabola, rtol=1e-12)
    np.testing.assert_allclose(loess_direct(tally_of(score, parabola, weight)), parabola, rtol=1e-12)
    np.testing.assert_allclose(lowess(tally_of(score, line, weight)), line, rtol=1e-12)


# ---------------------------------------------------------------- peers
def small_table() -> tuple[Floats, Floats]:
    """Scores and labels of 240 rows that other packages were run on."""
    i = np.arange(240)
    score, u = ((37 * i) % 101) / 100, ((53 * i + 11) % 97) / 97
    return score, (u < 0.9 * score**1.4 + 0.05).astype(float)


def test_ici_of_r() -> None:
    # R: stats::loess(y ~ p)
    expected = [0.07427529, 0.07707662, 0.1328227, 0.142111]
    np.testing.assert_allclose(np.ravel(ici(tally_of(*small_table()), "loess")), expected, rtol=4e-7)
    # R: rms::val.prob, Eavg, E50, E90, Emax
    expected = [0.07717711, 0.07740959, 0.10091270, 0.11226368]
    np.testing.assert_allclose(np.ravel(ici(tally_of(*small_table()), "lowess")), expected, atol=5e-9)


# scikit-misc 0.5.3 (the Fortran that R runs): interpolated and direct. In all but the last, neighbourhoods have too few
# different scores for a quadratic, and R warns that it uses the pseudo-inverse.
OF_SCIKIT_MISC = [
    ("0.1 0.5 0.875", "1 8 6", "1 3 5", "0.999913460361 0.375 0.833333333333", "1 0.375 0.833333333333"),
    ("0.25 0.4 0.46 0.64", "5 5 40 5", "5 4 22 3", "1 0.8 0.55 0.395855820091", "1 0.8 0.55 0.6"),
    (
        "0.5 0.6 0.7 0.8 0.85 0.9 0.95 1",
        "3 5 11 20 14 31 17 9",
        "2 2 6 13 10 21 15 9",
        "0.62109294623 0.48999739129 0.541645619 0.66225996414 0.71428571429 0.67741935484 0.8333015979 1.02451070092",
        "0.62085530684 0.48999739129 0.541645619 0.66225996414 0.71428571429 0.67741935484 0.8333015979 1.02488836992",
    ),
]


@pytest.mark.parametrize("columns", OF_SCIKIT_MISC)
def test_loess_of_few_scores(columns: tuple[str, ...]) -> None:
    score, rows, positive, interpolated, direct = (np.array(column.split(), float) for column in columns)
    tally = counts(score, rows, positive)
    np.testing.assert_allclose(loess(tally), interpolated, atol=2e-11)
    np.testing.assert_allclose(loess_direct(tally), direct, atol=2e-11)


@pytest.mark.parametrize(("rows", "decimals"), [(7, 9), (60, 9), (500, 9), (300, 2), (150, 1)])
@pytest.mark.parametrize("span", [2 / 3, 0.4])
def test_lowess_of_statsmodels(rows: int, decimals: int, span: float) -> None:
    rng = np.random.default_rng(rows)
    score = np.round(rng.beta(2, 3, rows), decimals)
    label = (rng.random(rows) < score).astype(float)
    tally = tally_of(score, label)
    for delta in (0.01 * np.ptp(score), 0.0):
        expected = lowess_of_statsmodels(label, score, frac=span, it=0, delta=delta, return_sorted=False)
        found = lowess(tally, span=span, delta=delta)[np.searchsorted(tally.score, score)]
        np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_array_equal(lowess(tally, span=span), lowess(tally, span=span, delta=0.01 * np.ptp(score)))


def test_lowess_of_scores_too_close_for_a_slope() -> None:
    # 21 of 32 rows around 0.5002 lie within 0.0003 of it, so the kernel is 1, (26/27)^3, (19/27)^3; and as they spread
    # over less than a thousandth of the range, there is a mean and no line
    tally = counts([0, 0.4998, 0.4999, 0.5, 0.5001, 0.5002, 1], [1, 6, 6, 6, 6, 6, 1], [0, 1, 2, 3, 4, 6, 1])
    kernel = np.array([(19 / 27) ** 3, (26 / 27) ** 3, 1])
    assert lowess(tally, delta=0.0)[5] == pytest.approx(kernel @ [3 / 6, 4 / 6, 6 / 6] / kernel.sum(), rel=1e-8)


# ---------------------------------------------------------------- reference values
def reference_rows(folder: Path, metric: str) -> list[dict[str, Any]]:
    lines = (folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["metric"] == metric and row["value"] is not None]


def reference_tally(folder: Path, row: dict[str, Any]) -> Tally:
    if row["table"].startswith("tiny:"):
        tiny = json.loads((folder / "reference" / "tiny.json").read_text(encoding="utf-8"))
        table = tiny[row["table"].removeprefix("tiny:")]
        return tally_of(table["p"], table["y"])
    frame = pl.read_parquet(folder / "data" / f"{row['table']}.parquet")
    if row["where"]:
        column, value = row["where"].split("==")
        frame = frame.filter(pl.col(column).cast(pl.String) == value.strip("'"))
    frame = frame.select(row["score"], row["label"]).drop_nulls()
    return tally_of(frame[row["score"]].to_numpy(), frame[row["label"]].to_numpy())


def test_reference_loess(reference_folder: Path) -> None:
    rows = reference_rows(reference_folder, "ici_loess")
    assert len(rows) == 16
    for row in rows:
        found = np.ravel(ici(reference_tally(reference_folder, row), "loess"))
        np.testing.assert_allclose(found, row["value"], atol=1e-11, err_msg=row["id"])


def test_reference_lowess(reference_folder: Path) -> None:
    # rms::val.prob cannot take one row, and gives no Emax for it
    rows = [row for row in reference_rows(reference_folder, "val_prob") if row["table"] != "tiny:one"]
    assert len(rows) > 20
    for row in rows:
        mean, _, e90, emax = np.ravel(ici(reference_tally(reference_folder, row), "lowess"))
        np.testing.assert_allclose([emax, e90, mean], row["value"][13:16], atol=1e-11, err_msg=row["id"])


# ---------------------------------------------------------------- weights
def fractional(scale: float) -> Tally:
    rng = np.random.default_rng(5)
    score = np.round(rng.beta(2, 2, 150), 2)
    return tally_of(score, rng.random(150) < score, (1 + rng.integers(0, 9, 150)) / 7 * scale)


@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_fractional_weights_are_many_copies(smoother: Any) -> None:
    # the rule for shares is that for rows with so many copies of them that no rounding down is left
    copies = 7 * 20 * 2**20
    many = fractional(1.0)
    whole = tally_of(many.score, many.positive / many.weight, np.rint(many.weight * copies))
    for found, expected in zip(ici(many, smoother), ici(whole, smoother), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("scale", [1e-100, 0.003, 1 / 3, 1e100])
def test_the_scale_of_weights_does_not_matter(smoother: Any, scale: float) -> None:
    for found, expected in zip(ici(fractional(scale), smoother), ici(fractional(1.0), smoother), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_scales_of_weights_side_by_side(smoother: Any) -> None:
    parts = [fractional(1e100), fractional(1e-100), tally_of(*small_table()), fractional(1.0)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("score", *SUMS)}
    together = Tally(starts=np.cumsum([0, *(len(part.score) for part in parts[:-1])]), **columns)
    alone = [np.ravel(ici(part, smoother)) for part in parts]
    np.testing.assert_allclose(np.transpose(ici(together, smoother)), alone, rtol=1e-9)


@pytest.mark.parametrize("weights", [[1, 1, 1, 1, 1], [3, 1, 2, 5, 4], [1, 9, 1, 1, 8]])
@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_quantiles_are_type_7(smoother: Any, weights: list[int]) -> None:
    tally = tally_of([0.1, 0.3, 0.4, 0.7, 0.9], [0, 1, 0.5, 1, 0.2], weights)
    gap = np.repeat(np.abs(tally.score - SMOOTHERS[smoother](tally)), weights)
    np.testing.assert_allclose(np.ravel(ici(tally, smoother)), summary(gap), rtol=1e-13)


def test_quantiles_of_shares() -> None:
    # the curve of labels that are all 0 is 0, so the gaps are the scores, with shares 0.3, 0.6 and 0.1 of the weight:
    # its half is within the second; nine tenths are reached exactly there, so e90 = 0.9 * 0.2 + 0.1 * 0.4
    tally = tally_of([0.1, 0.2, 0.4], [0, 0, 0], [0.15, 0.3, 0.05])
    np.testing.assert_allclose(np.ravel(ici(tally, "lowess")), [0.19, 0.2, 0.22, 0.4], rtol=1e-9)


# ---------------------------------------------------------------- any table
@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[float]]:
    """Rows of a segment: tied scores, scores at and next to the ends, one class, whole and other weights."""
    some = st.one_of(
        st.sampled_from([0.0, 1.0, 5e-324, 1e-17, 2e-17, 0.5, np.nextafter(0.5, 1), 1 - 2**-53]),
        st.integers(0, 10).map(lambda tenths: tenths / 10),
        st.floats(0, 1),
    )
    score = draw(st.lists(some, min_size=1, max_size=25))
    n = len(score)
    label = draw(st.one_of(st.just([1] * n), st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    weights = st.integers(1, 3) if draw(st.booleans()) else st.floats(1e-3, 10)
    return {"score": score, "label": label, "weight": draw(st.lists(weights, min_size=n, max_size=n))}


@settings(max_examples=60, deadline=None)
@given(st.lists(tables(), min_size=2, max_size=4))
def test_segments_do_not_meet(parts: list[dict[str, list[float]]]) -> None:
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    segment = np.repeat(np.arange(len(parts)), [len(part["score"]) for part in parts])
    together = tally_of(**rows, segment=segment)
    for smoother in SMOOTHERS:
        alone = np.concatenate([ici(tally_of(**part), smoother) for part in parts]).reshape(len(parts), 4)
        found = np.transpose(ici(together, smoother))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, alone, rtol=1e-6, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 24))
@example({"score": [0.9], "label": [1], "weight": [1.0]}, 0)
@example({"score": [0.0, 5e-324, 1.0], "label": [1, 1, 1], "weight": [1.0, 1.0, 1.0]}, 0)
def test_a_weight_may_be_split(table: dict[str, list[float]], which: int) -> None:
    which %= len(table["score"])
    split = {name: [*values, values[which]] for name, values in table.items()}
    double = {name: list(values) for name, values in table.items()}
    double["weight"][which] *= 2
    for smoother in SMOOTHERS:
        found, expected = np.ravel(ici(tally_of(**split), smoother)), np.ravel(ici(tally_of(**double), smoother))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    segment, score = rng.integers(0, 40, 3000), rng.random(3000)
    tally = tally_of(score, rng.random(3000) < score, segment=segment)
    whole = {smoother: ici(tally, smoother) for smoother in SMOOTHERS}
    monkeypatch.setattr(
        Tally, "chunks", lambda self: [(first, self.part(first, first + 8)) for first in range(0, 40, 8)]
    )
    for smoother, expected in whole.items():
        np.testing.assert_allclose(np.stack(ici(tally, smoother)), np.stack(expected), rtol=1e-12)


# ---------------------------------------------------------------- too little to smooth
@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("weight", [1.0, 2.0, 0.3])
def test_one_score(smoother: Any, weight: float) -> None:
    # nothing to smooth: the rate is 1/4, the score 0.7
    tally = tally_of([0.7] * 4, [1, 0, 0, 0], [weight] * 4)
    np.testing.assert_allclose(np.ravel(ici(tally, smoother)), [0.45] * 4, rtol=1e-12)


@pytest.mark.parametrize("smoother", SMOOTHERS)
@pytest.mark.parametrize("score", [[0.2, 0.8], [0.2, 0.5, 0.8], [0.5, np.nextafter(0.5, 1)], [0.0, 1e-17]])
def test_two_or_three_scores_keep_their_rates(smoother: Any, score: list[float]) -> None:
    # ties of at least a third of the rows: each is a neighbourhood of its own, or shares one that fits it exactly
    tally = counts(score, [4] * len(score), [1, 2, 4][: len(score)])
    np.testing.assert_allclose(SMOOTHERS[smoother](tally), tally.positive / 4, atol=1e-7)


@pytest.mark.parametrize("smoother", ["loess", "loess_direct"])
def test_scores_too_close_to_square_are_one(smoother: Any) -> None:
    # 3 of 8 rows are positive; the distance of the scores squared is 0 as a number
    tally = counts([0.0, 5e-324], [4, 4], [1, 2])
    np.testing.assert_allclose(SMOOTHERS[smoother](tally), [0.375, 0.375], rtol=1e-12)


@pytest.mark.parametrize("smoother", ["loess", "loess_direct"])
def test_nearly_all_rows_at_one_score(smoother: Any) -> None:
    # the neighbourhood of 0.9 has no width, that of the vertex above it has all its rows on the boundary
    tally = counts([0.3, 0.6, 0.9], [3, 5, 92], [1, 2, 69])
    assert SMOOTHERS[smoother](tally)[-1] == pytest.approx(0.75, abs=1e-12)


@pytest.mark.parametrize("smoother", SMOOTHERS)
def test_the_unit_of_scores_does_not_matter(smoother: Any) -> None:
    # as percentages all distances are exact; as decimals those of 0.2, 0.3 and 0.4 differ in the last digit
    rows, positive = [12, 3, 17, 24, 4, 1], [7, 1, 9, 10, 2, 1]
    percent = np.array([11, 14, 20, 30, 40, 48])
    found, expected = (SMOOTHERS[smoother](counts(score, rows, positive)) for score in (percent / 100, percent))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


# ---------------------------------------------------------------- large segments
def test_merged_scores_stay_close(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 2, 4000)
    tally = tally_of(score, rng.random(4000) < score**1.3)
    exact = loess_direct(tally)
    monkeypatch.setattr(_ici, "_DIRECT", 1024)
    merged = loess_direct(tally)
    assert 0 < np.abs(merged - exact).max() < 5e-4


# ---------------------------------------------------------------- the curve
def test_the_curve_is_the_fit() -> None:
    tally = tally_of(*small_table())
    value, _, _, _ = loess_curve(tally, tally.score, level=0.9)
    np.testing.assert_allclose(value, loess(tally), rtol=1e-12)
    at = np.array([-0.01, 0.0, 0.123, 0.5, 1.0, 1.01, np.nan])
    value, error, low, high = loess_curve(tally, at, level=0.9)
    assert np.isnan([value, error, low, high]).tolist() == [[True, False, False, False, False, True, True]] * 4
    np.testing.assert_allclose(value[1:5], loess_by_rows(*small_table(), at[1:5]), atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_the_curve(*, weighted: bool) -> None:
    # by its definition: the curve of each label alone gives what that label weighs in the curve
    rng = np.random.default_rng(8)
    score = np.round(rng.beta(2, 2, 80), 2)
    label = (rng.random(80) < score).astype(float)
    weight = rng.integers(1, 4, 80).astype(float) if weighted else np.ones(80)
    at = np.array([score.min(), 0.3, 0.45, 0.777, score.max()])
    x, y = np.repeat(score, weight.astype(int)), np.repeat(label, weight.astype(int))
    own = np.repeat(np.arange(80), weight.astype(int))
    rate = np.clip(loess_by_rows(x, y, score), 0, 1)
    share = np.stack([loess_by_rows(x, (own == row).astype(float), at) for row in range(80)])
    expected = np.sqrt((share**2 * (rate * (1 - rate))[:, None]).sum(axis=0))
    value, error, low, high = loess_curve(tally_of(score, label, weight), at, level=0.95)
    np.testing.assert_allclose(error, expected, rtol=1e-9)
    np.testing.assert_allclose([value - low, high - value], [1.959963984540054 * error] * 2, rtol=1e-9)
