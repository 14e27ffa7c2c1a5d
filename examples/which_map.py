"""Which map repairs which error? The test cases of a survey of calibration, and what it says of them.

Silva Filho et al. (2023), Classifier calibration: a survey (https://doi.org/10.1007/s10994-023-06336-7), sections 5.2
to 5.4, on the data of survey_cases.py. Needs scikit-learn, for the network.

`python which_map.py maps.svg` draws what the maps do, too.
"""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl
from survey_cases import CLASSES, OVER_CONFIDENT, UNDER_CONFIDENT, drawn, networks, three_classes, two_classes

import calframe

MAPS: dict[str, dict[str, Any]] = {
    "none": {"method": "identity"},
    "platt on the score": {"method": "platt", "on": "score"},
    "platt on the logit": {"method": "platt"},
    "temperature": {"method": "temperature"},
    "beta": {"method": "beta"},
    "isotonic": {"method": "isotonic"},
    "isotonic, clipped": {"method": "isotonic", "epsilon": 0.001},
    "histogram of 10 bins": {"method": "histogram", "bins": 10},
    "histogram of 50 bins": {"method": "histogram", "bins": 50},
    "spline": {"method": "spline"},
}
CLASS_MAPS: dict[str, dict[str, Any]] = {
    "none": {"method": "identity"},
    "temperature": {"method": "temperature"},
    "vector": {"method": "vector"},
    "matrix": {"method": "matrix"},
    "dirichlet, penalised": {"method": "dirichlet", "off_diagonal": 0.1, "intercept": 0.1},
    "structured": {"method": "structured"},
    "ovr_beta": {"method": "ovr_beta"},
    "ovr_isotonic": {"method": "ovr_isotonic"},
}
BINARY = ("log_loss", "brier", "ece", "ece_expected", "calibration_loss", "epistemic_loss")
SEVERAL = ("log_loss", "brier", "classwise_ece", "confidence_ece", "epistemic_loss")
SMALL_MAPS = ("none", "beta", "isotonic")
SMALL_CLASS_MAPS = tuple(CLASS_MAPS)[:5]
UNIT = 1000.0  # of x where it is taken for a logit: those beyond ±27.6 are floored
UNTOUCHED = 1e-6  # an error so small that no share of it is given


# ---------------------------------------------------------------- fitting and judging
def fitted(table: pl.DataFrame, maps: Mapping[str, dict[str, Any]], by: Sequence[str] = ("case",)) -> dict[str, Any]:
    """Fit each map in each case alone, which is one call a map."""
    score: Any = "p" if "p" in table.columns else {k: f"p_{k}" for k in CLASSES}
    return {
        name: calframe.fit(table, label="y", score=score, by=list(by), pooling="none", **options)
        for name, options in maps.items()
    }


def judged(
    maps: Mapping[str, Any], table: pl.DataFrame, metrics: Sequence[str], by: Sequence[str] = ("case",)
) -> pl.DataFrame:
    """Return the metrics of each map in each case, on rows that it was not fitted on.

    The epistemic loss is what is left of the Brier score when that of the true probabilities is taken off: the error
    that a map could repair. `left` is its share of what there was before.
    """
    several = "p" not in table.columns
    score: Any = {k: f"p_calibrated_{k}" for k in CLASSES} if several else "p_calibrated"
    posterior: Any = {k: f"q_{k}" for k in CLASSES} if several else "q"
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calframe.CalframeWarning)  # an infinite log loss: the table shows it
        for name, found in maps.items():
            rows = found.apply(table)
            judgement = calframe.metrics(
                rows, label="y", score=score, posterior=posterior, by=list(by), metrics=list(metrics)
            )
            results.append(judgement.select(*by, pl.lit(name).alias("map"), *metrics))
    before = results[0].select(*by, before="epistemic_loss")
    share = pl.when(pl.col("before") > UNTOUCHED).then(pl.col("epistemic_loss") / pl.col("before"))
    table = pl.concat(results).join(before, on=list(by), maintain_order="left")
    return table.with_columns(left=share).drop("before")


def small_sets(
    make: Callable[..., pl.DataFrame], maps: Sequence[str], sizes: Sequence[int], draws: int, seed: int
) -> pl.DataFrame:
    """Return the mean error of maps of the over-confident model, fitted on few rows and judged on 500, over draws."""
    rng, tables = np.random.default_rng(seed), []
    known = MAPS if make is two_classes else CLASS_MAPS
    for size in sizes:
        calibration, test = (
            make(rows * draws, rng).filter(case="over-confident").with_columns(draw=np.arange(rows * draws) % draws)
            for rows in (size, 500)
        )
        found = fitted(calibration, {name: known[name] for name in maps}, by=["draw"])
        judgement = judged(found, test.drop("case"), ["epistemic_loss"], by=["draw"])
        tables.append(judgement.drop("left").with_columns(rows=pl.lit(size)))
    return pl.concat(tables)


# ---------------------------------------------------------------- the claims
class Claim(NamedTuple):
    """What the survey says, where, and what was found."""

    section: str
    says: str
    found: str
    holds: bool


class Results(NamedTuple):
    """What the claims are checked on."""

    two: pl.DataFrame
    three: pl.DataFrame
    test: pl.DataFrame
    maps: dict[str, Any]
    few: pl.DataFrame
    few_classes: pl.DataFrame


def value(table: pl.DataFrame, case: str, name: str, column: str = "left") -> float:
    """Return a number of a table of `judged`."""
    return float(table.filter(case=case, map=name)[column].item())


def best_slope(rng: np.random.Generator, *, variance: bool) -> tuple[float, float]:
    """Return the slope of the best logistic model of x, and its standard error."""
    x, label, _ = drawn("12", 100_000, rng, variance=variance)
    table = pl.DataFrame({"y": label == "1", "x": x / UNIT})
    found = calframe.metrics(table, label="y", score="x", link="logit", metrics=["slope", "slope_se"])
    return found["slope"].item() / UNIT, found["slope_se"].item() / UNIT


def the_reading(rng: np.random.Generator) -> Claim:
    """Check that of the two logistic models one is under-confident and one over-confident."""
    (as_variance, error), (as_scale, other) = (best_slope(rng, variance=each) for each in (True, False))
    return Claim(
        "5.2",
        "slope 0.01 is under-confident, slope 0.05 over-confident",
        f"the best slope is {as_variance:.4f} ± {error:.4f} if second arguments are variances; were they standard "
        f"deviations, {as_scale:.6f} ± {other:.6f}, and both over-confident",
        as_scale + 3.0 * other < UNDER_CONFIDENT < as_variance < OVER_CONFIDENT,
    )


def of_binning(results: Results) -> Claim:
    """Check that binning trades one loss for the other."""
    name = "histogram of 10 bins"
    before, after = (value(results.two, "over-confident", one, "epistemic_loss") for one in ("none", name))
    wrong = value(results.two, "over-confident", name, "calibration_loss")
    lost = after - wrong  # a straight model has one score for each x: before, no row is taken for another
    return Claim(
        "5.3",
        "binning trades calibration loss for grouping loss",
        f"over-confident: calibration loss {before:.4f} → {wrong:.4f}, grouping loss 0 → {lost:.4f}",
        wrong < 0.1 * before and lost > wrong,
    )


def of_isotonic(results: Results) -> list[Claim]:
    """Check what is said of isotonic regression."""
    left, finer = (value(results.two, "not monotone", one) for one in ("isotonic", "histogram of 50 bins"))
    others = [value(results.two, case, "isotonic") for case in ("under-confident", "over-confident")]
    infinite, clipped = (value(results.two, "over-confident", f"isotonic{s}", "log_loss") for s in ("", ", clipped"))
    few = results.few.group_by("rows", "map").agg(pl.col("epistemic_loss").mean()).sort("rows")
    rows, beta, steps = (
        few.filter(map=name)[column].to_list()
        for name, column in (("beta", "rows"), ("beta", "epistemic_loss"), ("isotonic", "epistemic_loss"))
    )
    errors = ", ".join(f"{n}: {a:.4f} and {b:.4f}" for n, a, b in zip(rows, beta, steps, strict=True))
    return [
        Claim(
            "5.3",
            "isotonic regression is not the best where the reliability curve is not monotone",
            f"left of the error: {left:.0%}, by 50 bins {finer:.0%}; of monotone ones {others[0]:.1%}, {others[1]:.1%}",
            finer < left and max(others) < 0.1 * left,
        ),
        Claim(
            "5.3",
            "isotonic regression needs more rows than parametric maps",
            f"error of beta and isotonic by rows (over-confident): {errors}",
            steps[0] > beta[0] and steps[-1] < beta[-1],
        ),
        Claim(
            "5.3",
            "isotonic regression reaches 0 and 1 at the ends; clip it",
            f"log loss {infinite:.4f}, clipped to [0.001, 0.999] {clipped:.4f}",
            bool(np.isinf(infinite) and np.isfinite(clipped)),
        ),
    ]


def of_platt(results: Results) -> list[Claim]:
    """Check what is said of Platt scaling, which the survey feeds scores in its tests, and logits in its advice."""
    score, logit = "platt on the score", "platt on the logit"
    under, over, under_z, over_z = (
        value(results.two, case, name) for name in (score, logit) for case in ("under-confident", "over-confident")
    )
    rows = results.maps[score].apply(results.test.filter(case="over-confident"))
    away = (rows["p_calibrated"] - 0.5).abs() > (rows["p"] - 0.5).abs()
    rows = rows.with_columns(tenth=(pl.col("p") * 10.0).floor().cast(pl.Int64))
    before, after = (
        calframe.metrics(rows, label="y", score=one, posterior="q", by="tenth", metrics=["epistemic_loss"])
        for one in ("p", "p_calibrated")
    )
    worse = before.filter(after["epistemic_loss"] > before["epistemic_loss"])
    parts = ", ".join(f"{k / 10:.1f}–{(k + 1) / 10:.1f}" for k in worse["tenth"])
    return [
        Claim(
            "5.3",
            "Platt scaling of the score cannot repair over-confidence",
            f"left of the error: over-confident {over:.0%}, under-confident {under:.0%}",
            over > 0.5 > under,
        ),
        Claim(
            "5.3",
            "its sigmoid pushes probabilities away from the centre",
            f"over-confident: {away.mean():.0%} of rows are moved away from 0.5",
            float(away.mean()) > 0.5,
        ),
        Claim(
            "5.3",
            "it makes the over-confident model worse in parts of the range",
            f"scores {parts or 'nowhere'}, {worse['n'].sum() / len(rows):.0%} of rows",
            len(worse) > 0,
        ),
        Claim(
            "5.3",
            "Platt scaling of the logit, as the survey advises for probabilities, cannot repair it",
            f"left of the error: over-confident {over_z:.0%}, under-confident {under_z:.0%}: one map undoes both",
            over_z > 0.5,
        ),
    ]


def of_beta(results: Results) -> list[Claim]:
    """Check what is said of beta calibration."""
    harm, other, before = (
        value(results.two, case, name, "epistemic_loss")
        for case, name in (("calibrated", "beta"), ("calibrated", "platt on the score"), ("over-confident", "none"))
    )
    beta, spline, steps = (value(results.two, "over-confident", name) for name in ("beta", "spline", "isotonic"))
    return [
        Claim(
            "5.3",
            "beta calibration leaves a calibrated model alone",
            f"error it makes: {harm:.5f} (Platt scaling of the score {other:.5f}; over-confidence was {before:.5f})",
            harm < 0.01 * before < other,
        ),
        Claim(
            "5.3",
            "a severely miscalibrated model may need a more flexible map than beta",
            f"left of over-confidence: beta {beta:.0%}, isotonic {steps:.1%}, spline {spline:.1%}",
            max(steps, spline) < 0.5 * beta,
        ),
    ]


def of_classes(results: Results) -> list[Claim]:
    """Check what is said of maps of several classes."""
    uniform, tilted = (value(results.three, case, "temperature") for case in ("over-confident", "class 3 favoured"))
    harm, before = (
        value(results.three, case, name, "epistemic_loss")
        for case, name in (("calibrated", "dirichlet, penalised"), ("over-confident", "none"))
    )
    few = results.few_classes.group_by("map").agg(pl.col("epistemic_loss").mean())
    raw, one, vector, matrix, held = (few.filter(map=name)["epistemic_loss"].item() for name in SMALL_CLASS_MAPS)
    rows = results.few_classes["rows"][0]
    return [
        Claim(
            "5.4",
            "a temperature (t = 1 being the usual softmax) corrects all classes alike",
            f"left of the error: logits doubled {uniform:.1%}, class 3 favoured {tilted:.0%}",
            uniform < 0.05 and tilted > 0.3,
        ),
        Claim(
            "5.4",
            "Dirichlet calibration can be the identity, and leaves a calibrated model alone",
            f"error it makes: {harm:.5f} (over-confidence was {before:.5f})",
            harm < 0.1 * before,
        ),
        Claim(
            "5.4",
            "vector and matrix scaling and Dirichlet calibration overfit small calibration sets",
            f"error after {rows} rows: vector {vector:.4f}, matrix {matrix:.4f}, temperature {one:.4f}; none {raw:.4f}",
            min(vector, matrix) > 2.0 * one,
        ),
        Claim(
            "5.4",
            "a penalty on Dirichlet calibration (ODIR) holds that back",
            f"error after {rows} rows: penalised {held:.4f}, not {matrix:.4f}",
            held < matrix,
        ),
    ]


# ---------------------------------------------------------------- the whole
def checked(results: Results, rng: np.random.Generator) -> list[Claim]:
    """Return all claims."""
    return [
        the_reading(rng),
        of_binning(results),
        *of_isotonic(results),
        *of_platt(results),
        *of_beta(results),
        *of_classes(results),
    ]


def drawing(results: Results) -> alt.Chart:
    """Draw what some maps make of each score, beside the true rate."""
    rounded = (pl.col("p") * 50.0).floor() / 50.0
    shown = results.test.with_columns(p=rounded + 0.01).group_by("case", "p").agg(pl.col("q").mean(), pl.len())
    shown = shown.filter(pl.col("len") >= 20).sort("case", "p")
    lines = [shown.select("case", "p", pl.lit("true rate").alias("line"), rate="q")]
    for name in ("platt on the score", "platt on the logit", "beta", "isotonic", "histogram of 10 bins"):
        curve = results.maps[name].apply(shown)
        lines.append(curve.select("case", "p", pl.lit(name).alias("line"), rate="p_calibrated"))
    chart: alt.Chart = (
        alt.Chart(pl.concat(lines))
        .mark_line()
        .encode(
            x=alt.X("p:Q", title="Score of the model"),
            y=alt.Y("rate:Q", title="Rate"),
            color=alt.Color("line:N", title=None, sort=None),
            strokeDash=alt.condition("datum.line == 'true rate'", alt.value([4, 3]), alt.value([1, 0])),
        )
        .properties(width=220, height=220)
        .facet(alt.Facet("case:N", title=None), columns=3)
    )
    return chart


def main(path: str | None = None) -> None:
    """Fit on 10,000 rows, judge on others, and print which map repairs which error, and the claims."""
    rng = np.random.default_rng(0)
    of_two, of_three = networks(10_000, rng)
    maps = fitted(two_classes(10_000, rng, of_two), MAPS)
    class_maps = fitted(three_classes(10_000, rng, of_three), CLASS_MAPS)
    test = two_classes(50_000, rng, of_two)
    results = Results(
        two=judged(maps, test, BINARY),
        three=judged(class_maps, three_classes(20_000, rng, of_three), SEVERAL),
        test=test,
        maps=maps,
        few=small_sets(two_classes, SMALL_MAPS, (30, 100, 300, 1000, 3000), 50, seed=1),
        few_classes=small_sets(three_classes, SMALL_CLASS_MAPS, (150,), 100, seed=2),
    )
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=4, tbl_hide_dataframe_shape=True):
        print("Which map repairs which error: `left` is the share of the error that remains.")
        print(results.two.drop("calibration_loss").sort("case", maintain_order=True))
        print(results.three.sort("case", maintain_order=True))
    for claim in checked(results, rng):
        print(f"{'holds   ' if claim.holds else 'does NOT'}  [{claim.section}] {claim.says}: {claim.found}")
    if path is not None:
        drawing(results).save(path)


if __name__ == "__main__":
    main(*sys.argv[1:2])
