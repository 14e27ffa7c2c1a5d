"""What becomes of the reference values of one column of scores: a table of patterns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl

import calframe
from tests._reference_cases import (
    Arguments,
    Array,
    Case,
    Line,
    between,
    discrete,
    linspace,
    midpoints,
    of,
    quantiles,
)

DEFINITION = "definition"
EW = r"(?P<name>ece|mce|ace|rmsce)_ew(?P<bins>\d+)"
EM = r"(?P<name>ece|mce)_em(?P<bins>\d+)"
MURPHY, CORP, CORP_LOG = "reliability resolution uncertainty", "mcb dsc unc brier", "mcb_log dsc_log unc_log log_loss"
RANKING = "a measure of ranking alone; auc is there"
ORDER = "the peer takes equal scores in the order of the rows"
MANY = 100  # edges: more take long


def convention(name: str) -> Callable[[Case], Arguments]:
    return lambda case: of(name, case.bins)


def width(peer: str) -> Line:
    """Return the line of a package's errors over bins of equal width, for one column of scores."""
    return Line(kind="bin", metric=EW, source=peer, arguments=convention(peer), everywhere=True)


def fixed(**arguments: object) -> Callable[[Case], Arguments]:
    return lambda _: arguments


def positive(case: Case) -> pl.DataFrame:
    return case.table.filter(pl.col(case.entry["score"]) > 0)


def above_the_least(case: Case) -> pl.DataFrame:
    return case.table.filter(pl.col(case.entry["score"]) > case.p.min())


def displayed(case: Case) -> Arguments:
    """Lower edges as pandas shows its quantile intervals: rounded to three digits."""
    lower = pd.qcut(case.p, case.bins, duplicates="drop").categories.left.tolist()
    return between([*(lower or [0.0]), 1 + 1e-7], "left")


def quantiles_within(case: Case) -> Arguments:
    inner = np.quantile(case.p, np.linspace(0, 1, case.bins + 1))[1:-1]
    return between([0.0, *inner, 1.0], "left")


def percentiles(p: Array) -> Arguments:
    """Edges at deciles, as scikit-learn: the outer ones play no part, and the last digit is not that of quantiles."""
    inner = np.percentile(p, np.linspace(0, 1, 11) * 100)[1:-1]
    return between([p.min() - 1, *inner, p.max()])


def curve(case: Case, arguments: Arguments) -> list[float]:
    found = calframe.curve(case.table, label="y", score=case.entry["score"], **arguments).table.filter(pl.col("n") > 0)
    return [*found["rate"], *found["mean_score"]]


def ties(scores: Array) -> bool:
    return len(np.unique(scores)) < len(scores)


def many_scores(case: Case) -> bool:
    return len(np.unique(case.p)) > MANY


def separable(case: Case) -> bool:
    y = case.table["y"].to_numpy()
    return bool(y.min() == y.max() or case.p[y == 0].max() < case.p[y == 1].min())


def near_the_ends(scores: Array, width: float) -> bool:
    """Whether it matters that relplot halves mass at 0 and 1, and cuts its kernel."""
    return bool(scores.min() < 1e-3 or scores.max() > 1 - 1e-3 or width > 0.15)


BINARY = [
    Line(kind="bin", metric="n|base_rate|mean_score", verdict="checked"),
    Line(kind="bin", metric="brier|auc|log_loss_(unclipped|clip1e-15)", verdict="checked"),
    Line(kind="bin", metric="(ece|mce|ace|rmsce)_ew.*_km", verdict="checked"),
    Line(kind="bin", metric="corp_(brier|logloss)", source=DEFINITION, verdict="checked"),
    Line(kind="bin", metric="murphy_(distinct|ew10)|ecce_tiegrouped|aurc|smece_exact", verdict="checked"),
    Line(kind="bin", metric="auc_delong|ici_loess", verdict="checked"),
    Line(kind="bin", metric="calibration_in_the_large|cox", source="statsmodels", verdict="checked"),
    # bins of equal width
    Line(kind="bin", metric=EW, source="calzone", arguments=convention("calzone"), table=positive),
    width("mapie"),
    width("mcgrad"),
    width("netcal"),
    width("pycalib"),
    width("relplot"),
    width("torchmetrics"),
    width("uncertainty-calibration"),
    Line(kind="bin", metric=f"{EW}_left_linspace", arguments=lambda case: linspace(case.bins, "left"), everywhere=True),
    Line(kind="bin", metric=f"{EW}_right_linspace", arguments=lambda case: linspace(case.bins), everywhere=True),
    Line(
        kind="bin",
        metric="calibration_curve_uniform10",
        own=lambda case: curve(case, linspace(10)),
        want=lambda value: [*value[0], *value[1]],
    ),
    # bins of equal mass, with the edges that the peer finds
    Line(kind="bin", metric=EM, source="netcal", arguments=quantiles_within),
    Line(kind="bin", metric=EM, source="mcgrad", arguments=displayed),
    Line(kind="bin", metric=EM, source="uncertainty", arguments=lambda case: midpoints(case.p, case.bins)),
    Line(
        kind="bin",
        metric=EM,
        source="calzone",
        arguments=lambda case: quantiles(case.p, case.bins),
        table=above_the_least,
    ),
    Line(kind="bin", metric=f"{EM}_qcut", arguments=lambda case: quantiles(case.p, case.bins)),
    Line(kind="bin", metric=f"{EM}_arraysplit", verdict="not offered", why="it parts equal scores"),
    Line(
        kind="bin",
        metric="calibration_curve_quantile10",
        own=lambda case: curve(case, percentiles(case.p)),
        want=lambda value: [*value[0], *value[1]],
    ),
    Line(
        kind="bin",
        metric="ece_distinct",
        names="ece",
        arguments=lambda case: between([-1.0, *case.p]),
        unless=many_scores,
        why="one bin for each score: so many edges take long",
    ),
    Line(kind="bin", metric="ce_l1_em15", names="ece", arguments=lambda case: midpoints(case.p, 15)),
    Line(kind="bin", metric="ce_l2_em15", names="rmsce", arguments=lambda case: midpoints(case.p, 15)),
    Line(kind="bin", metric="ce_l2_em15_debiased", names="ece_debiased", arguments=lambda case: midpoints(case.p, 15)),
    Line(
        kind="bin",
        metric="ce_l2_auto_debiased",
        names="ece_debiased",
        arguments=lambda case: discrete(case.p),
        unless=lambda case: len(discrete(case.p)["bins"]) > MANY,
        why="one bin for each score: so many edges take long",
    ),
    # scores and their parts
    Line(kind="bin", metric="(?P<name>log_loss)(_clip_eps)?", arguments=fixed(clip=2.0**-52)),
    Line(kind="bin", metric="corp_brier", source="model-diagnostics", names=CORP),
    Line(kind="bin", metric="corp_logloss", source="model-diagnostics", names=CORP_LOG),
    Line(kind="bin", metric="isoreg_corp_brier", names=CORP),
    Line(
        kind="bin",
        metric="brier_decomp10",
        names=MURPHY,
        arguments=lambda _: of("SpecsVerification", 10),
        pick=(0, 1, 2),
    ),
    Line(kind="bin", metric="brier_decomp10_corrected", verdict="not offered", why="what is negative becomes 0 there"),
    Line(kind="bin", metric="murphy_ew10_linspace", names=MURPHY, arguments=lambda _: linspace(10)),
    Line(kind="bin", metric="bias", names="gap", pick=(0,)),
    Line(kind="bin", metric="average_precision", verdict="not offered", why=RANKING),
    Line(
        kind="bin",
        metric="ecce",
        names="ecce_r",
        unless=lambda case: ties(case.p),
        why=ORDER,
    ),
    Line(
        kind="bin",
        metric="selective_cov_acc_area",
        names="aurc",
        pick=(0,),
        after=lambda _, found: [1 - found[0]],
        unless=lambda case: ties(case.confidence),
        why=ORDER,
    ),
    # lines and smooth curves
    Line(kind="bin", metric="cox_glm", names="intercept slope", pick=(0, 1)),
    Line(
        kind="bin",
        metric="cox",
        source="calzone",
        names="slope intercept",
        arguments=fixed(floor=1e-7),
        unless=separable,
        why="there is no maximum: the value is where the peer's steps ended",
    ),
    Line(
        kind="bin",
        metric="val_prob",
        names="brier emax e90 ici",
        arguments=fixed(smoother="lowess"),
        pick=(10, 13, 14, 15),
        unless=lambda case: len(case.p) == 1,
        why="one row has no curve",
    ),
    Line(kind="bin", metric="ici_(cox|lowess)", verdict="not offered", why="distances from another smoother's curve"),
    Line(
        kind="bin",
        metric="smece",
        names="smece",
        pick=(0,),
        tolerance=2e-3,
        unless=lambda case: near_the_ends(case.p, case.entry["value"][1]),
        why="relplot halves mass at 0 and 1, and cuts its kernel",
    ),
    Line(kind="bin", metric=r"smece_sigma0\.05", verdict="not offered", why="the bandwidth is found, not given"),
    # other verbs
    Line(kind="bin", metric="ecce_(sigma|pvalue)|(ks|kuiper)_(stat|pvalue)|spiegelhalter.*", verdict="test"),
    Line(kind="bin", metric="hl_.*|cox_lr_tests|giviti_test", verdict="test"),
]
