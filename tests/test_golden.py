"""Numbers that many packages give for one table of 240 rows, each with the arguments that give it here.

The table: for i = 0..239 the score is (37 i mod 101) / 100, the label is 1 where (53 i + 11 mod 97) / 97 is below
0.9 score^1.4 + 0.05, the weight is 1 + (i mod 3) / 2, and the segment is a, b or c by (i // 7) mod 3. Every score is a
hundredth, so one in ten lies on an edge of ten bins, and rules for edges show in the second digit.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calframe
from calframe import conventions

I = np.arange(240)  # noqa: E741  as in the definition
P = 37 * I % 101 / 100
U = (53 * I + 11) % 97 / 97
Y = (U < 0.9 * P**1.4 + 0.05).astype(int)
TABLE = pl.DataFrame({"p": P, "y": Y, "w": 1 + 0.5 * (I % 3), "g": np.array(list("abc"))[I // 7 % 3]})

LINSPACE = np.linspace(0, 1, 11).tolist()
RIGHT, RIGHT15, RIGHT40 = ({"bins": bins, "closed": "right"} for bins in (10, 15, 40))
LEFT, LEFT15, LEFT40 = ({"bins": bins, "closed": "left"} for bins in (10, 15, 40))


def quantiles(bins: int) -> dict[str, Any]:
    """Edges at type-7 quantiles, as polarbearings, scikit-learn and R's hoslem.test."""
    return {"bins": np.unique(np.quantile(P, np.linspace(0, 1, bins + 1))).tolist(), "closed": "right"}


def midpoints(bins: int) -> dict[str, Any]:
    """Edges halfway between the parts of the sorted scores, as uncertainty-calibration."""
    split = np.array_split(np.sort(P), bins)
    inner = [(low[-1] + high[0]) / 2 for low, high in pairwise(split)]
    return {"bins": sorted({0.0, *inner, 1.0}), "closed": "right"}


def cuts(bins: int) -> dict[str, Any]:
    """Edges after the first score whose cumulative share reaches j / bins, as calibre."""
    scores, counts = np.unique(P, return_counts=True)
    reached = np.searchsorted(np.cumsum(counts) * bins, 240 * np.arange(1, bins))
    return {"bins": [-1.0, *np.unique(scores[reached]).tolist(), 1.0], "closed": "right"}


def displayed(bins: int) -> dict[str, Any]:
    """Lower edges as the intervals of pandas.qcut show them, rounded, as mcgrad."""
    lower = pd.qcut(P, bins, duplicates="drop").categories.left.tolist()
    return {"bins": [*lower, 1 + 1e-7], "closed": "left"}


def of(name: str, bins: int | None = None) -> dict[str, Any]:
    return {key: value for key, value in conventions[name](bins).items() if key != "metrics"}


def numbers(metrics: str, arguments: dict[str, Any], table: pl.DataFrame = TABLE) -> list[float]:
    """Return the metrics asked for, one after the other; of each, all segments."""
    found = calframe.metrics(table, label="y", score="p", metrics=metrics.split(), **arguments)
    return [value for name in metrics.split() for value in found[name].to_list()]


def digits(*values: str) -> Any:
    """Return what equals the values as printed, to the last digit."""
    places = min(len(value.partition(".")[2]) for value in values)
    return pytest.approx([float(value) for value in values], rel=0, abs=0.51 * 10.0**-places)


W, G = {"weight": "w"}, {"by": "g"}
MURPHY = "reliability resolution uncertainty"
CORP = "brier mcb dsc unc"

# ------------------------------------------------------------------ what calframe gives with these arguments
# (who, metrics, arguments, values as printed)
EQUAL: list[tuple[str, str, dict[str, Any], tuple[str, ...]]] = [
    ("curve of scikit-learn, right-closed", "ece", RIGHT, (".0971666667",)),
    ("scikit-learn", "ece", of("scikit-learn", 10), (".0971666667",)),
    ("pycalib", "ece mce", of("pycalib", 10), (".0971666667", ".2652173913")),
    ("polarbearings", "ece mce", of("polarbearings", 10), (".0971666667", ".2652173913")),
    ("mapie with num_bins=11", "ece", of("mapie", 11), (".0971666667",)),
    ("polarbearings, weights", "ece", {**RIGHT, **W}, (".0970138889",)),
    ("polarbearings, segments", "ece", {**RIGHT, **G}, (".0921428571", ".1200000000", ".1187012987")),
    ("polarbearings, 40 bins", "ece", RIGHT40, (".1120833333",)),
    ("polarbearings, quantiles", "ece", quantiles(10), (".0971666667",)),
    ("polarbearings", "brier log_loss", {}, (".1627458333", ".4853978350")),
    ("polarbearings, weights", "brier", W, (".1641226389",)),
    ("calibre", "ece mce rmsce", of("calibre", 10), (".0938333333", ".2652173913", ".1166979168")),
    ("netcal", "ece mce ace", of("netcal", 10), (".0938333333", ".2652173913", ".0930786174")),
    ("relplot", "ece", of("relplot", 10), (".0938333333",)),
    ("driftkit, fairscope: linspace, left-closed", "ece", {"bins": LINSPACE}, (".0938333333",)),
    ("pycalib, 15 bins", "ece", of("pycalib", 15), (".1136666667",)),
    ("uncertainty-calibration, 15 bins", "ece", of("uncertainty-calibration", 15), (".1136666667",)),
    ("scikit-learn, 15 bins", "ece", of("scikit-learn", 15), (".1136666667",)),
    ("calibre, 15 bins", "ece", of("calibre", 15), (".1103333333",)),
    ("relplot, 15 bins", "ece", of("relplot", 15), (".1103333333",)),
    ("torchmetrics, 15 bins", "ece rmsce", of("torchmetrics", 15), (".1103333333", ".1345466674")),
    ("mcgrad, 40 bins", "ece", of("mcgrad", 40), (".1203333333",)),
    ("mcgrad, 40 quantile bins, rounded", "ece", displayed(40), (".1232500000",)),
    ("pycalib, confidence", "ece", of("pycalib.confidence", 10), (".0729166667",)),
    ("calzone, confidence", "ece", of("calzone.confidence", 10), (".0729166667",)),
    ("pycalib, confidence, 14 bins", "ece", of("pycalib.confidence", 14), (".0663333333",)),
    ("exact edges, confidence, 15 bins", "confidence_ece", RIGHT15, (".0897500000",)),
    ("pycalib, classwise, 15 bins", "classwise_ece", of("pycalib.classwise", 15), (".1120000000",)),
    ("pycalib, full, 15 bins", "full_ece", of("pycalib.full", 15), (".2240000000",)),
    ("uncertainty-calibration, equal mass", "ece", midpoints(15), (".1121666667",)),
    ("calibre, plugin, equal mass", "rmsce", cuts(15), (".1387048995",)),
    ("calibre, uncertainty-calibration, debiased, equal mass", "ece_debiased", cuts(15), (".0985277086",)),
    ("calibre, the bins its sweep ends with", "ece rmsce", cuts(5), (".0780000000", ".0816299038")),
    ("model-diagnostics, calibre, R", CORP, {}, (".1627458333", ".0203263005", ".1013131061", ".2437326389")),
    ("model-diagnostics, weights", CORP, W, (".1641226389", ".0202889872", ".0998989872", ".2437326389")),
    (
        "calibre, log loss",
        "log_loss mcb_log dsc_log unc_log",
        {},
        (".4853978350", ".0772005835", ".2723623015", ".6805595529"),
    ),
    ("driftkit", MURPHY, {"bins": LINSPACE}, (".0136184038", ".0929131911", ".2437326389")),
    ("distinct scores", "ecce_r", {}, (".0801250000",)),
    ("distinct scores, weights", "ecce_r", W, (".0794583333",)),
    ("clip 1e-6", "slope intercept", {"floor": 1e-6}, ("1.0933342916", "-.4988511064")),
    ("calzone: clip 1e-7", "slope intercept", {"floor": 1e-7}, ("1.0933337597", "-.4988509994")),
    ("R: rms, to the digits that its steps reach", "slope intercept", {}, ("1.09333370", "-.49885099")),
    ("R: glm with offset, clip 1e-6", "citl", {"floor": 1e-6}, ("-.4766472",)),
    ("R: rms", "ici e50 e90 emax", {"smoother": "lowess"}, (".07717711", ".07740959", ".10091270", ".11226368")),
    ("R: loess", "ici", {}, (".07427529",)),
    ("R: loess", "e50", {}, (".07707662",)),
    ("R: loess", "e90", {}, (".1328227",)),
    ("R: loess", "emax", {}, (".142111",)),
    ("model-diagnostics", "gap", {}, (".078",)),
    (
        "exact edges, left-closed",
        "ece mce ace rmsce",
        LEFT,
        (".1008333333", ".2086956522", ".1019863434", ".1189886584"),
    ),
    ("exact edges, left-closed, 15 bins", "ece", LEFT15, (".1103333333",)),
    ("exact edges, left-closed, 40 bins", "ece", LEFT40, (".1211666667",)),
    ("exact edges, left-closed", MURPHY, LEFT, (".0141583008", ".0945484369", ".2437326389")),
    # torchmetrics 1.9.0 itself; its edges at 0.6 and 0.7 are not those of numpy.linspace
    ("torchmetrics", "ece rmsce mce", of("torchmetrics", 10), (".0916666667", ".1076332925", ".2086956522")),
]


@pytest.mark.parametrize(("who", "metrics", "arguments", "values"), EQUAL, ids=[f"{row[0]}: {row[1]}" for row in EQUAL])
def test_rows_that_arguments_reproduce(
    who: str, metrics: str, arguments: dict[str, Any], values: tuple[str, ...]
) -> None:
    assert numbers(metrics, arguments) == digits(*values), who


def test_a_row_that_a_filter_reproduces() -> None:
    # calzone, which drops the three rows of score 0
    assert numbers("ece", of("calzone", 10), TABLE.filter(pl.col("p") > 0)) == digits(".0983966245")


def test_segments_of_model_diagnostics() -> None:
    gap = numbers("gap", G)
    assert gap[0] == pytest.approx(0.035, abs=1e-12)
    assert gap[1:] == digits(".1144304", ".0875325")


def test_intervals_of_the_line() -> None:
    # calzone, clip 1e-7, level 95 %
    found = calframe.metrics(
        TABLE, label="y", score="p", metrics=["slope", "intercept"], floor=1e-7, confidence_level=0.95
    )
    assert found.select("slope_low", "slope_high").row(0) == digits(".79604465", "1.39062287")
    assert found.select("intercept_low", "intercept_high").row(0) == digits("-.82923207", "-.16846993")


# ------------------------------------------------------------------ what calframe does not give, and why
DIFFERENT: list[tuple[str, str, dict[str, Any], str]] = [
    ("linspace edges: the score 0.3 lies below 0.30000000000000004", "ece", LEFT, ".0938333333"),
    ("linspace edges, 40 bins", "ece", LEFT40, ".1203333333"),
    ("linspace edges", "ace", LEFT, ".0930786174"),
    ("linspace edges", "rmsce", LEFT, ".1166979168"),
    ("linspace edges", "mce", LEFT, ".2652173913"),
    ("linspace edges", "reliability", LEFT, ".0136184038"),
    ("linspace edges", "resolution", LEFT, ".0929131911"),
    ("linspace edges are not the edges of torch: 0.6 and 0.7", "ece", of("torchmetrics", 10), ".0938333333"),
    ("calzone drops three rows of score 0", "ece", of("calzone", 10), ".0983966245"),
    ("pycalib loses confidences on k / 15", "ece", of("pycalib.confidence", 15), ".0822500000"),
    ("quantile edges of polarbearings cut elsewhere", "ece", {"bins": 10, "strategy": "quantile"}, ".0971666667"),
    ("mcgrad rounds its quantile edges", "ece", {"bins": 40, "strategy": "quantile"}, ".1232500000"),
    ("uncertainty-calibration splits the sorted rows", "ece", {"bins": 15, "strategy": "quantile"}, ".1121666667"),
    ("calibre cuts after a score", "rmsce", {"bins": 15, "strategy": "quantile"}, ".1387048995"),
    ("both cut after a score", "ece_debiased", {"bins": 15, "strategy": "quantile"}, ".0985277086"),
    ("calibre sweeps over its own bins", "ece_sweep", {}, ".0780000000"),
    ("calibre's sweep is of the second power", "ece_sweep", {}, ".0816299038"),
    ("relplot halves mass at 0 and 1, and bisects ten times", "smece", {}, ".0791356645"),
    ("mcgrad takes equal scores in the order of the rows", "ecce_r", {}, ".0804166667"),
    ("mcgrad takes equal scores in the order of the rows", "ecce_r", W, ".0797500000"),
    ("three packages clip logits elsewhere: 1e-6", "slope", {}, "1.0933342916"),
    ("three packages clip logits elsewhere: 1e-7", "slope", {}, "1.0933337597"),
    ("the clip shows in the intercept: 1e-6", "intercept", {}, "-.4988511064"),
    ("calzone smooths over half of the rows", "ici", {"smoother": "lowess"}, ".0766342206"),
    ("kernel of bandwidth 1, not of the median distance", "skce", {}, ".0078659308"),
]


@pytest.mark.parametrize(
    ("why", "metrics", "arguments", "value"), DIFFERENT, ids=[f"{r[0]} ({r[1]})" for r in DIFFERENT]
)
def test_rows_that_are_not_reproduced(why: str, metrics: str, arguments: dict[str, Any], value: str) -> None:
    assert numbers(metrics, arguments) != digits(value), why


def test_smoothed_error_is_near_that_of_relplot() -> None:
    assert numbers("smece", {}) == pytest.approx([0.0791356645], abs=2e-3)
