"""What becomes of each value of the reference: the lines for several classes, weights, groups and worked examples."""

from __future__ import annotations

import numpy as np
import polars as pl

import calframe
from tests._reference_binary import (
    BINARY,
    CORP,
    CORP_LOG,
    DEFINITION,
    EW,
    ORDER,
    RANKING,
    convention,
    fixed,
    near_the_ends,
)
from tests._reference_cases import (
    Arguments,
    Array,
    Case,
    Line,
    by_group,
    discrete,
    linspace,
    midpoints,
    of,
)

CONF = {"notion": "confidence"}
CLASSWISE = {"notion": "classwise"}
CONF_EW = r"conf_(?P<name>ece|mce|rmsce)(?P<bins>\d+)"
CLASSWISE_EW = r"(?P<name>classwise_(ece|mce))(?P<bins>\d+)"
PLAIN_MEAN = "the plain mean over predicted classes, however rare"


def on_edges(scores: Array, bins: int) -> bool:
    return bool(np.any(np.abs(scores * bins - np.round(scores * bins)) < 1e-9))


def group_values(case: Case, metric: str, **arguments: object) -> list[float]:
    """Return a metric of the groups, in the order of their names as text."""
    found = case.ask([metric], arguments)
    names = [" / ".join(map(str, row)) for row in found.select(case.groups).rows()]
    return [value for _, value in sorted(zip(names, found[metric].to_list(), strict=True))]


def right(case: Case) -> Arguments:
    return {"bins": case.bins, "closed": "right"}


def normalised(case: Case) -> pl.DataFrame:
    """Return the table with scores that sum to 1: their last digits part some equal scores."""
    names = list(case.score.values())
    scores = case.table.select(names).cast(pl.Float64).to_numpy()
    scores = scores / scores.sum(axis=1, keepdims=True)
    return case.table.with_columns(pl.Series(name, scores[:, place]) for place, name in enumerate(names))


def in_float32(case: Case) -> pl.DataFrame:
    return case.table.cast(dict.fromkeys(case.score.values(), pl.Float32))


def pooled(case: Case, arguments: Arguments) -> list[float]:
    """Return the ece of a table with one row for each row and class."""
    each = [case.table.select(y=pl.col("y") == label, p=name) for label, name in case.score.items()]
    found = calframe.metrics(pl.concat(each), label="y", score="p", metrics=["ece"], **arguments)
    return found["ece"].to_list()


def pooled_scores(case: Case) -> Array:
    return case.table.select(case.score.values()).cast(pl.Float64).to_numpy().ravel()


def accumulated(case: Case) -> Arguments:
    return {name: value for name, value in of("pycalib.confidence", case.bins).items() if name != "notion"}


def times_classes(case: Case, found: list[float]) -> list[float]:
    return [found[0] * len(case.score)]


SEVERAL = [
    Line(kind="multi", metric="accuracy|brier_sum|log_loss_unclipped|aurc", source=DEFINITION, verdict="checked"),
    Line(kind="multi", metric=r"(conf|classwise)_(ece|mce)\d+", source=DEFINITION, verdict="checked"),
    Line(kind="multi", metric="(?P<name>accuracy)", source="scikit-learn"),
    Line(kind="multi", metric="(?P<name>brier)_(sum|half)", source="scikit-learn"),
    Line(kind="multi", metric="(?P<name>log_loss)(_clip_eps)?", arguments=lambda _: of("scikit-learn.classes")),
    Line(kind="multi", metric="(?P<name>brier)_mean", after=lambda case, found: [found[0] / len(case.score)]),
    Line(
        kind="multi",
        metric="(?P<name>auc)_ovr",
        arguments=fixed(**CLASSWISE),
        table=normalised,
        after=lambda _, found: [sum(found) / len(found)],
    ),
    # the largest score
    Line(kind="multi", metric=CONF_EW, source="calzone", arguments=convention("calzone.confidence")),
    Line(kind="multi", metric=CONF_EW, source="netcal", arguments=convention("netcal.confidence")),
    Line(
        kind="multi",
        metric=CONF_EW,
        source="pycalib",
        arguments=convention("pycalib.confidence"),
        unless=lambda case: case.bins == 15 and on_edges(case.confidence, 15),
        why="it loses rows on edges",
    ),
    Line(
        kind="multi",
        metric=CONF_EW,
        source="torchmetrics",
        arguments=convention("torchmetrics.confidence"),
        table=in_float32,
        tolerance=1e-4,
    ),
    Line(
        kind="multi", metric=CONF_EW, source="uncertainty", arguments=convention("uncertainty-calibration.confidence")
    ),
    Line(kind="multi", metric=f"{CONF_EW}_left", arguments=lambda case: {**CONF, **linspace(case.bins, "left")}),
    Line(
        kind="multi",
        metric=r"conf_(?P<name>ece)_em(?P<bins>\d+)",
        arguments=lambda case: {**CONF, **midpoints(case.confidence, case.bins)},
    ),
    Line(
        kind="multi",
        metric="toplabel_ce_l2_debiased",
        names="ece_debiased",
        arguments=lambda case: {**CONF, **discrete(case.confidence)},
    ),
    Line(kind="multi", metric="conf_smece", verdict="not offered", why="relplot halves mass at 1"),
    Line(kind="multi", metric="selective_cov_acc_area", verdict="not offered", why=ORDER),
    Line(kind="multi", metric="aurc_trapezoid", verdict="not offered", why="a trapezoid sum, not the mean"),
    # each class, and all of them
    Line(kind="multi", metric=CLASSWISE_EW, source="mapie", arguments=convention("mapie.classwise")),
    Line(kind="multi", metric=CLASSWISE_EW, source="pycalib", arguments=convention("pycalib.classwise")),
    Line(
        kind="multi",
        metric=r"classwise_l1(?P<bins>\d+)",
        names="classwise_ece",
        arguments=convention("uncertainty-calibration.classwise"),
    ),
    Line(kind="multi", metric=f"{CLASSWISE_EW}_left", arguments=lambda case: linspace(case.bins, "left")),
    Line(
        kind="multi",
        metric=r"class_(?P<name>ece)(?P<bins>\d+)",
        arguments=lambda case: {**CLASSWISE, **right(case)},
    ),
    Line(kind="multi", metric=f"sum_{CLASSWISE_EW}", arguments=right, after=times_classes),
    Line(kind="multi", metric=r"simplex_ece(?P<bins>\d+)", names="full_ece", arguments=convention("pycalib.full")),
    Line(kind="multi", metric=r"(?P<name>toplabel_ece)(?P<bins>\d+)", source=DEFINITION, arguments=right),
    Line(kind="multi", metric=r"toplabel_ece\d+_unweighted", verdict="not offered", why=PLAIN_MEAN),
    Line(kind="multi", metric=r"toplabel_ece\d+", source="mapie", verdict="not offered", why=PLAIN_MEAN),
    Line(
        kind="multi",
        metric=r"flattened_ece(?P<bins>\d+)",
        source=DEFINITION,
        own=lambda case: pooled(case, right(case)),
    ),
    Line(
        kind="multi",
        metric=r"flattened_ece(?P<bins>\d+)",
        source="pycalib",
        own=lambda case: pooled(case, accumulated(case)),
        unless=lambda case: case.bins == 15 and on_edges(pooled_scores(case), 15),
        why="it loses rows on edges",
    ),
    Line(kind="multi", metric="marginal_ce_l2_debiased", verdict="not offered", why="edges of its own for each class"),
    Line(kind="multi", metric="probmetrics_all", verdict="not offered", why="float32 inside"),
    Line(kind="multi", metric="pECE_classwise5|hl_multinomial_.*", verdict="test"),
]

OTHERS = [
    Line(kind="wgt", metric="brier|(ece|mce)_ew10_.*|ecce_tiegrouped|corp_brier", source=DEFINITION, verdict="checked"),
    Line(kind="wgt", metric="auc|log_loss", verdict="checked"),
    Line(kind="wgt", metric="(?P<name>brier)", source="scikit-learn"),
    Line(kind="wgt", metric=EW, source="mcgrad", arguments=convention("mcgrad")),
    Line(kind="wgt", metric="corp_brier", source="model-diagnostics", names=CORP),
    Line(kind="wgt", metric="corp_logloss", names=CORP_LOG),
    Line(kind="wgt", metric="bias", names="gap", pick=(0,)),
    Line(kind="wgt", metric="cox(_hc)?", names="intercept slope", pick=(0, 1)),
    Line(kind="wgt", metric="ecce", verdict="not offered", why=ORDER),
    Line(kind="wgt", metric="ecce_sigma", verdict="test"),
    Line(kind="wgt", metric="average_precision", verdict="not offered", why=RANKING),
    Line(
        kind="grp",
        metric="by_group_(n|base_rate|mean_score|brier|log_loss|auc|ece10_right|mce10_right)",
        verdict="checked",
    ),
    Line(
        kind="grp",
        metric="by_group_bias",
        own=lambda case: group_values(case, "gap"),
        want=lambda value: [found[0] for found in by_group(value)],
    ),
    Line(
        kind="grp",
        metric="by_group_smece",
        own=lambda case: group_values(case, "smece"),
        want=by_group,
        tolerance=2e-3,
        unless=lambda case: near_the_ends(case.p, 0.0),
        why="relplot halves mass at 0 and 1",
    ),
    Line(kind="grp", metric="by_group_spiegelhalter_adjusted|multicalibration_error", verdict="test"),
    Line(kind="ci", metric="ci_(wilson|beta|jeffreys)", verdict="checked"),
    Line(kind="ci", metric="ci_(agresti_coull|normal)", verdict="not offered", why="wilson covers better"),
    Line(kind="psi", metric=".*", verdict="drift"),
    Line(kind="pair", metric=".*", verdict="compare"),
    # the survey's worked example: exact values, of which it prints roundings
    Line(kind="seed", metric="(classwise|conf)_(ece|mce)5", verdict="checked"),
    Line(kind="seed", metric="(brier|log_loss)(_(calibration|refinement)_loss)?", verdict="checked"),
    Line(
        kind="seed",
        metric="(binary|class)_(?P<name>ece|mce)5_class(?P<of>[123])",
        own=lambda case: [
            case.numbers(case.found["name"], {**CLASSWISE, "bins": 5, "closed": "right"})[int(case.found["of"]) - 1]
        ],
        tolerance=6e-3,
    ),
    Line(
        kind="seed",
        metric="brier_(?P<name>(epistemic|irreducible)_loss)",
        arguments=fixed(posterior=["q1", "q2", "q3"]),
    ),
    Line(
        kind="seed",
        metric="log_loss_(epistemic|irreducible)_loss",
        own=lambda case: case.numbers(
            f"{case.entry['metric'].removeprefix('log_loss_')}_log", {"posterior": ["q1", "q2", "q3"]}
        ),
    ),
    Line(kind="seed", metric="hl_multinomial.*|resampling.*", verdict="test"),
]

LINES = [*BINARY, *SEVERAL, *OTHERS]
