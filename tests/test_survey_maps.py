"""What a survey says of calibration maps, as far as it holds, on its own test cases: draws repeated, with margins.

Silva Filho et al. (2023), https://doi.org/10.1007/s10994-023-06336-7, sections 5.2 to 5.4. The truth of each row is
known, so that errors are distances to it; a claim holds if it does by more than three standard errors of the draws.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import calframe

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(Path(__file__).parents[1] / "examples")
    survey_cases, which_map = (importlib.import_module(name) for name in ("survey_cases", "which_map"))

DRAWS, ROWS, JUDGED = 12, 4000, 2000
BY = ["draw", "case"]
SMALL = 150
CLASS_MAPS = ("none", "temperature", "vector", "matrix", "dirichlet, penalised")


def by_draw(cases: pl.DataFrame) -> pl.DataFrame:
    return cases.with_columns(draw=pl.int_range(pl.len()) % DRAWS)


@pytest.fixture(scope="module")
def two() -> pl.DataFrame:
    rng = np.random.default_rng(10)
    maps = which_map.fitted(by_draw(survey_cases.two_classes(ROWS * DRAWS, rng)), which_map.MAPS, by=BY)
    test = by_draw(survey_cases.two_classes(JUDGED * DRAWS, rng))
    return which_map.judged(maps, test, which_map.BINARY, by=BY)


@pytest.fixture(scope="module")
def three() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    known = {name: which_map.CLASS_MAPS[name] for name in CLASS_MAPS}
    maps = which_map.fitted(by_draw(survey_cases.three_classes(ROWS * DRAWS, rng)), known, by=BY)
    return which_map.judged(maps, by_draw(survey_cases.three_classes(JUDGED * DRAWS, rng)), ["epistemic_loss"], by=BY)


@pytest.fixture(scope="module")
def few_classes() -> pl.DataFrame:
    found = which_map.small_sets(survey_cases.three_classes, CLASS_MAPS, [SMALL], 60, seed=12)
    return found.with_columns(case=pl.lit("few"))


def of(table: pl.DataFrame, case: str, name: str, column: str = "epistemic_loss") -> np.ndarray:
    found = table.filter(case=case, map=name).sort("draw")[column].to_numpy()
    assert len(found) >= DRAWS
    return found


def surely_positive(values: np.ndarray) -> bool:
    return bool(values.mean() > 3.0 * values.std(ddof=1) / np.sqrt(len(values)))


# ---------------------------------------------------------------- the data
@pytest.mark.parametrize("variance", [True, False])
def test_true_probabilities_are_those_of_the_mixtures(*, variance: bool) -> None:
    x, _, truth = survey_cases.drawn("123", 200, np.random.default_rng(0), variance=variance)
    density = [
        np.mean([norm.pdf(x, mean, np.sqrt(second) if variance else second) for mean, second in parts], axis=0)
        for parts in survey_cases.MIXTURES.values()
    ]
    np.testing.assert_allclose(np.exp(truth), density / np.sum(density, axis=0), atol=1e-12)


def test_rows_are_drawn_from_the_mixtures() -> None:
    x, label, truth = survey_cases.drawn("123", 60_000, np.random.default_rng(1))
    for name, parts in survey_cases.MIXTURES.items():
        own = x[label == name]
        means, variances = np.array(parts).T
        variance = variances.mean() + means.var()  # of a mixture of equal parts
        assert abs(own.mean() - means.mean()) < 4.0 * np.sqrt(variance / len(own))
        assert own.var() == pytest.approx(variance, rel=0.04)
        assert abs(len(own) / len(x) - 1 / 3) < 4.0 * np.sqrt(2 / 9 / len(x))
    assert np.abs(np.exp(truth).sum(axis=0) - 1.0).max() < 1e-12


def expected_slope(*, variance: bool) -> float:
    """The slope with the least expected log loss, by integration on a grid."""
    x = np.linspace(-400.0, 400.0, 8001) * (1.0 if variance else 15.0)
    one, other = (
        np.mean([norm.pdf(x, mean, np.sqrt(second) if variance else second) for mean, second in parts], axis=0)
        for parts in (survey_cases.MIXTURES["1"], survey_cases.MIXTURES["2"])
    )
    unit = x.std()

    def loss(theta: np.ndarray) -> float:
        z = theta[0] * x / unit + theta[1]
        return float((one * np.logaddexp(0.0, -z) + other * np.logaddexp(0.0, z)).sum() / (one + other).sum())

    return float(minimize(loss, [0.1, 0.0], method="BFGS", options={"gtol": 1e-9}).x[0] / unit)


@pytest.mark.filterwarnings("ignore:Desired error not necessarily achieved")
def test_only_as_variances_is_one_model_under_confident_and_one_over_confident() -> None:
    under, over = survey_cases.UNDER_CONFIDENT, survey_cases.OVER_CONFIDENT
    as_variance, as_scale = expected_slope(variance=True), expected_slope(variance=False)
    assert 2.0 * under < as_variance < 0.6 * over
    assert as_scale < 0.01 * under
    for seed in range(3):
        for variance, expected in ((True, as_variance), (False, as_scale)):
            slope, error = which_map.best_slope(np.random.default_rng(seed), variance=variance)
            assert abs(slope - expected) < 4.0 * error


# ---------------------------------------------------------------- one score a row
def test_binning_trades_calibration_loss_for_grouping_loss() -> None:
    rng = np.random.default_rng(20)
    cases = [by_draw(survey_cases.two_classes(rows * DRAWS, rng)) for rows in (ROWS, JUDGED)]
    rows = which_map.fitted(cases[0], {"map": {"method": "histogram", "bins": 10}}, by=BY)["map"].apply(cases[1])
    true_rate = pl.col("q").mean().over("case", "draw", "p_calibrated")  # of rows that the map cannot tell apart
    parts = {
        "before": pl.col("p") - pl.col("q"),
        "calibration": pl.col("p_calibrated") - true_rate,
        "grouping": true_rate - pl.col("q"),
    }
    found = rows.with_columns(**{name: part.pow(2) for name, part in parts.items()}).group_by("case", "draw").mean()
    for case in ("under-confident", "over-confident"):
        before, calibration, grouping = (found.filter(case=case).sort("draw")[name].to_numpy() for name in parts)
        assert surely_positive(0.05 * before - calibration)
        assert surely_positive(grouping - 3.0 * calibration)  # before, no row was taken for another


def test_isotonic_repairs_what_is_monotone_and_not_what_is_not(two: pl.DataFrame) -> None:
    for case in ("under-confident", "over-confident"):
        assert surely_positive(0.1 * of(two, case, "none") - of(two, case, "isotonic"))
    left = of(two, "not monotone", "isotonic")
    assert surely_positive(left - 0.3 * of(two, "not monotone", "none"))
    assert surely_positive(left - 3.0 * of(two, "not monotone", "histogram of 50 bins"))


def test_isotonic_needs_more_rows_than_beta() -> None:
    found = which_map.small_sets(survey_cases.two_classes, ["none", "beta", "isotonic"], [30, 3000], 80, seed=13)
    few, many = (found.filter(rows=rows).with_columns(case=pl.lit("few")) for rows in (30, 3000))
    assert surely_positive(of(few, "few", "isotonic") - of(few, "few", "beta"))
    assert surely_positive(of(many, "few", "beta") - of(many, "few", "isotonic"))


def test_isotonic_reaches_the_ends_unless_it_is_clipped(two: pl.DataFrame) -> None:
    assert np.isinf(of(two, "over-confident", "isotonic", "log_loss")).any()
    clipped, raw = (of(two, "over-confident", name, "log_loss") for name in ("isotonic, clipped", "none"))
    assert surely_positive(raw - clipped)


def test_platt_on_the_score_repairs_under_confidence_only(two: pl.DataFrame) -> None:
    over, under = (of(two, case, "platt on the score", "left") for case in ("over-confident", "under-confident"))
    assert surely_positive(over - 0.5)
    assert surely_positive(0.35 - under)


def test_platt_on_the_score_makes_the_ends_of_the_over_confident_model_worse() -> None:
    rng = np.random.default_rng(14)
    cases = [by_draw(survey_cases.two_classes(rows * DRAWS, rng)) for rows in (ROWS, JUDGED)]
    cases = [each.filter(case="over-confident") for each in cases]
    found = which_map.fitted(cases[0], {"map": {"method": "platt", "on": "score"}}, by=["draw"])["map"]
    ends = found.apply(cases[1]).filter((pl.col("p") < 0.05) | (pl.col("p") > 0.98))
    wrong = [
        ends.group_by("draw").agg((pl.col(score) - pl.col("q")).pow(2).mean()).sort("draw")[score].to_numpy()
        for score in ("p", "p_calibrated")
    ]
    assert surely_positive(wrong[1] - 2.0 * wrong[0])


def test_platt_on_the_logit_undoes_both_slopes_alike(two: pl.DataFrame) -> None:
    # both scores are expit(a x), so that the maps differ by a factor of the slope, and not in what they give
    over, under = (of(two, case, "platt on the logit") for case in ("over-confident", "under-confident"))
    np.testing.assert_allclose(over, under, atol=1e-8)
    assert surely_positive(0.3 - of(two, "over-confident", "platt on the logit", "left"))


def test_beta_leaves_a_calibrated_model_alone_and_platt_on_the_score_does_not(two: pl.DataFrame) -> None:
    beta, score = (of(two, "calibrated", name) for name in ("beta", "platt on the score"))
    cost = of(two, "calibrated", "beta", "log_loss") - of(two, "calibrated", "none", "log_loss")
    expected = 3 / (2 * ROWS)  # of three parameters, by the theory of maximum likelihood (Wilks)
    assert abs(cost.mean() - expected) < 3.0 * cost.std(ddof=1) / np.sqrt(DRAWS)
    assert surely_positive(0.05 * of(two, "over-confident", "none") - beta)
    assert surely_positive(score - beta)


def test_these_errors_need_a_map_more_flexible_than_beta(two: pl.DataFrame) -> None:
    for case in ("under-confident", "over-confident"):
        for name in ("isotonic", "spline"):
            assert surely_positive(of(two, case, "beta") - 2.0 * of(two, case, name))


# ---------------------------------------------------------------- several classes
def test_a_temperature_corrects_all_classes_alike(three: pl.DataFrame) -> None:
    for case in ("over-confident", "under-confident"):
        assert surely_positive(0.02 - of(three, case, "temperature", "left"))
    for case in ("class 3 favoured", "classes mixed"):
        assert surely_positive(of(three, case, "temperature", "left") - 0.4)
    assert surely_positive(0.1 - of(three, "class 3 favoured", "vector", "left"))
    assert surely_positive(of(three, "classes mixed", "vector") - of(three, "classes mixed", "matrix"))


@pytest.mark.parametrize(("case", "temperature"), [("over-confident", 2.0), ("under-confident", 0.4)])
def test_the_temperature_is_what_logits_were_multiplied_by(case: str, temperature: float) -> None:
    table = survey_cases.three_classes(20_000, np.random.default_rng(15)).filter(case=case)
    found = calframe.fit(
        table, label="y", score={k: f"p_{k}" for k in survey_cases.CLASSES}, method="temperature"
    ).table.row(0, named=True)
    assert found["value"] == pytest.approx(temperature, rel=0.04)  # its standard error is about 1 %


def test_dirichlet_leaves_a_calibrated_model_alone(three: pl.DataFrame) -> None:
    assert surely_positive(0.1 * of(three, "over-confident", "none") - of(three, "calibrated", "dirichlet, penalised"))


def test_small_calibration_sets_are_overfitted_and_penalties_hold_that_back(few_classes: pl.DataFrame) -> None:
    temperature, vector, matrix, held = (of(few_classes, "few", name) for name in CLASS_MAPS[1:])
    assert surely_positive(vector - 2.0 * temperature)
    assert surely_positive(matrix - vector)
    assert surely_positive(matrix - held)
    assert surely_positive(held - temperature)


@pytest.mark.parametrize("method", ["temperature", "vector", "matrix", "dirichlet", "structured", "ovr_beta"])
def test_a_segment_has_the_map_that_it_has_alone(method: str) -> None:
    table = survey_cases.three_classes(300, np.random.default_rng(16))
    roles = {"label": "y", "score": {k: f"p_{k}" for k in survey_cases.CLASSES}, "method": method}
    together = calframe.fit(table, **roles, by="case", pooling="none").apply(table)
    for (case,), rows in table.group_by("case"):
        alone = calframe.fit(rows, **roles).apply(rows)
        for name in ("p_calibrated_1", "p_calibrated_2", "p_calibrated_3"):
            np.testing.assert_allclose(together.filter(case=case)[name], alone[name], rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- the example as a whole
def test_the_example_says_which_claims_hold() -> None:
    rng = np.random.default_rng(17)
    maps = which_map.fitted(survey_cases.two_classes(8000, rng), which_map.MAPS)
    class_maps = which_map.fitted(survey_cases.three_classes(8000, rng), which_map.CLASS_MAPS)
    test = survey_cases.two_classes(20_000, rng)
    results = which_map.Results(
        two=which_map.judged(maps, test, which_map.BINARY),
        three=which_map.judged(class_maps, survey_cases.three_classes(4000, rng), which_map.SEVERAL),
        test=test,
        maps=maps,
        few=which_map.small_sets(survey_cases.two_classes, which_map.SMALL_MAPS, (30, 3000), 30, seed=18),
        few_classes=which_map.small_sets(survey_cases.three_classes, which_map.SMALL_CLASS_MAPS, (SMALL,), 40, seed=19),
    )
    claims = which_map.checked(results, rng)
    assert [claim.says for claim in claims if not claim.holds] == [
        "its sigmoid pushes probabilities away from the centre",
        "Platt scaling of the logit, as the survey advises for probabilities, cannot repair it",
    ]
    assert len(claims) == 15
    lines = {row["line"] for row in which_map.drawing(results).to_dict()["datasets"].popitem()[1]}
    assert {"true rate", "isotonic", "beta"} < lines
