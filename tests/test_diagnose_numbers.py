"""The tests and numbers behind patterns, by their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special, stats
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.stats.proportion import proportion_confint

import calframe
from calframe._diagnose import diagnose
from calframe._kernels._logistic import cox_fit
from calframe._kernels._tally import Tally
from calframe._testing._curvature import curve_test, line_test
from calframe._testing._draws import Drawing
from tests._diagnoses import POLARS, SHOWN, counts, drawn, found, only
from tests._tables import Maker, approx, rows


def tallied(z: Any, y: Any, w: Any = None) -> Tally:
    """Return a tally of rows of distinct scores."""
    order = np.argsort(z)
    p, y = special.expit(z)[order], np.asarray(y, dtype=float)[order]
    w = np.ones(len(p)) if w is None else np.asarray(w)[order]
    starts = np.array([0])
    parts = {"weight": w, "positive": w * y, "squared": w * w, "squared_positive": w * w * y}
    return Tally(starts=starts, score=p, rows=np.ones(len(p)), **parts)


@pytest.mark.parametrize("weighted", [False, True])
def test_line_by_matrices(*, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    z = rng.uniform(-2.0, 2.0, 2_000)
    y, w = (
        rng.random(2_000) < special.expit(0.9 * z + 0.1),
        rng.uniform(0.5, 1.5, 2_000) if weighted else np.ones(2_000),
    )
    result = line_test(tallied(z, y, w), Drawing(n_resamples=20, rng=rng), floor=1e-12)
    x, p = np.column_stack([np.ones_like(z), z]), special.expit(z)
    score, spread = x.T @ (w * (y - p)), (x * (w**2 * p * (1 - p))[:, None]).T @ x
    statistic = score @ np.linalg.solve(spread, score)  # U' V^-1 U, whatever the basis
    assert result.statistic.tolist() == approx([statistic])
    assert result.pvalue.tolist() == approx([stats.chi2.sf(statistic, 2)])


def test_curvature_is_the_score_test_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    z = rng.uniform(-2.0, 2.0, 2_000)
    y = (rng.random(2_000) < special.expit(0.5 * z + 0.15 * z**2)).astype(float)
    tally = tallied(z, y)
    result = curve_test(tally, cox_fit(tally), Drawing(n_resamples=20, rng=rng), floor=1e-12)
    model = GLM(y, np.column_stack([np.ones_like(z), z]), family=Binomial())
    fit = model.fit()
    information = (fit.fittedvalues * (1 - fit.fittedvalues))[np.argsort(z)]
    place = np.empty_like(z)
    place[np.argsort(z)] = (2 * information.cumsum() - information) / information.sum() - 1
    bends = np.column_stack([special.eval_legendre(k, place) for k in (2, 3)])
    statistic, pvalue, df = model.score_test(fit.params, exog_extra=bends)
    assert (result.statistic.tolist(), result.df.tolist()) == (approx([float(np.squeeze(statistic))], rel=1e-6), [df])
    assert result.pvalue.tolist() == approx([float(np.squeeze(pvalue))], rel=1e-6)


def test_curvature_needs_three_scores() -> None:
    rng = np.random.default_rng(0)
    for scores, df in ((2, np.nan), (3, 1.0), (4, 2.0), (9, 2.0)):
        many = np.full(scores, 400.0)
        tally = Tally.of_counts(np.array([0]), np.linspace(0.2, 0.8, scores), many, np.linspace(100, 300, scores))
        result = curve_test(tally, cox_fit(tally), Drawing(n_resamples=20, rng=rng), floor=1e-12)
        np.testing.assert_array_equal(result.df, [df])


@pytest.mark.parametrize("weight", [None, "w"])
def test_gap_and_line_are_those_of_metrics(make: Maker, weight: str | None) -> None:
    columns = drawn()
    arguments: dict[str, Any] = {"score": ["p", "q"], "by": "g", "weight": weight}
    result = rows(found(columns, make, **arguments).table)
    names = ["gap", "slope", "intercept", "citl"]
    peer = rows(calframe.metrics(POLARS(columns), label="y", metrics=names, confidence_level=0.95, **arguments))
    for name in ("g", "model", "n", "n_missing"):
        assert result[name] == peer[name]
    for name in names:
        for end in ("", "_low", "_high"):
            assert result[name + end] == approx(peer[name + end])


@pytest.mark.parametrize("weight", [None, "w"])
def test_shares_row_by_row(weight: str | None) -> None:
    columns = drawn()
    row = only(columns, weight=weight, extreme=0.1)
    p, y = np.array(columns["p"]), np.array(columns["y"])
    w = np.ones(len(p)) if weight is None else np.array(columns["w"])
    there = (p <= 0.1) | (p >= 0.9)
    wrong, said = np.where(p <= 0.1, y, 1 - y), np.minimum(p, 1 - p)
    assert row["extreme_n"] == there.sum()
    assert row["extreme_share"] == approx(w[there].sum() / w.sum())
    error = np.average(wrong[there], weights=w[there])
    assert (row["extreme_error"], row["extreme_expected"]) == (
        approx(error),
        approx(np.average(said[there], weights=w[there])),
    )
    effective = w[there].sum() ** 2 / (w[there] ** 2).sum()
    low, high = proportion_confint(error * effective, effective, method="wilson")
    assert (row["extreme_error_low"], row["extreme_error_high"]) == (approx(low), approx(high))
    z = special.logit(np.clip(p, 1e-12, 1 - 1e-12))
    shares = {s: w[(z >= s) & (z <= s + np.log(1.5) + 1e-9)].sum() / w.sum() for s in np.unique(z)}
    assert row["band_share"] == approx(max(shares.values()))
    inside = (p >= row["band_low"]) & (p <= row["band_high"])
    assert (w[inside].sum() / w.sum(), np.average(y[inside], weights=w[inside])) == (
        approx(row["band_share"]),
        approx(row["band_rate"]),
    )
    for side, sign in (("over", 1), ("under", -1)):
        part = (p >= row[f"{side}_from"]) & (p <= row[f"{side}_to"])
        assert row[f"{side}_n"] == part.sum()
        assert row[f"{side}_gap"] == approx(np.average(p[part] - y[part], weights=w[part]))
        assert row[f"{side}_gap_low"] <= row[f"{side}_gap"] <= row[f"{side}_gap_high"], sign


def test_fifths_by_hand() -> None:
    # five scores of 100 rows each: the third says most too much, the fifth most too little
    row = only(counts((0.1, 10, 90), (0.3, 25, 75), (0.5, 30, 70), (0.7, 75, 25), (0.8, 95, 5)))
    assert (row["over_from"], row["over_to"], row["over_n"]) == (0.5, 0.5, 100)
    assert (row["under_from"], row["under_to"], row["under_n"]) == (0.8, 0.8, 100)
    assert (row["over_gap"], row["under_gap"]) == (approx(0.2), approx(-0.15))
    level = 0.95**0.2  # Sidak
    low, high = proportion_confint(30, 100, alpha=1 - level, method="wilson")
    assert (row["over_gap_low"], row["over_gap_high"]) == (approx(0.5 - high), approx(0.5 - low))


def test_adjusted_over_all_tests_of_all_segments() -> None:
    parts = [
        pl.DataFrame(SHOWN[name][0]).with_columns(g=pl.lit(name)) for name in ("none found", "extreme", "crossing")
    ]
    table = diagnose(pl.concat(parts), label="y", score="p", by="g", correction="bonferroni").table
    names = ["pvalue_line", "pvalue_curve", "pvalue_extreme"]
    plain = table.select(names).to_numpy()
    many = np.isfinite(plain).sum()
    after = table.select(f"{name}_adjusted" for name in names).to_numpy()
    known = np.isfinite(plain) & (after <= 0.05)
    assert known.any()
    assert after[known].tolist() == approx(np.minimum(many * plain[known], 1).tolist())


def test_the_order_of_rows_does_not_matter() -> None:
    frame = pl.DataFrame(drawn())
    arguments: dict[str, Any] = {"label": "y", "score": "p", "by": "g", "weight": "w"}
    one, other = (diagnose(each, **arguments) for each in (frame, frame.sample(fraction=1.0, shuffle=True, seed=1)))
    assert rows(one.table) == {name: approx(values) for name, values in rows(other.table).items()}


def test_weight_2_is_the_row_twice() -> None:
    frame = pl.DataFrame(drawn())
    twice = frame.select(pl.all().repeat_by("k")).explode(pl.all(), empty_as_null=True)
    one = rows(found(frame.to_dict(as_series=False), weight="k", weight_kind="frequency").table)
    other = rows(diagnose(twice, label="y", score="p").table)
    same = [name for name in other if not name.endswith("n") and name not in ("n_missing", "sentence", "note")]
    assert {name: one[name] for name in same} == {name: approx(other[name]) for name in same}


def test_importance_weights_of_one_size_change_nothing() -> None:
    columns = drawn()
    plain, weighted = only(columns), only({**columns, "w": [3.0] * len(columns["y"])}, weight="w")
    assert {name: weighted[name] for name in plain} == {name: approx(value) for name, value in plain.items()}
