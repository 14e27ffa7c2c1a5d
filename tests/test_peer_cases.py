"""Examples from the test suites of other packages: reproduced through public calls, or named with the reason."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe import ScoreError
from tests._reference_cases import between, linspace, midpoints, of

Inputs = dict[str, Any]


def table(inputs: Inputs) -> pl.DataFrame:
    if "P" in inputs:
        scores = {f"p{c}": column for c, column in enumerate(map(list, zip(*inputs["P"], strict=True)))}
    else:
        scores = {"p": inputs["p"]}
    weight = {"w": inputs["w"]} if inputs.get("w") else {}
    return pl.DataFrame({"y": inputs["y"], **scores, **weight}, strict=False)


def score(inputs: Inputs) -> Any:
    """Return the column of scores, or the mapping of classes in the order of the columns."""
    if "P" not in inputs:
        return "p"
    count = len(inputs["P"][0])
    known = sorted(set(inputs["y"])) if isinstance(inputs["y"][0], str) else range(count)
    return {label: f"p{c}" for c, label in zip(range(count), known, strict=True)}


def metrics(names: str, inputs: Inputs, **arguments: Any) -> list[float]:
    weight = {"weight": "w"} if inputs.get("w") else {}
    found = calframe.metrics(
        table(inputs), label="y", score=score(inputs), metrics=names.split(), **{**weight, **arguments}
    )
    return [value for name in names.split() for value in found[name].to_list()]


def convention(name: str, metric: str, key: str) -> Callable[[Inputs], list[float]]:
    """Return the metric that a convention gives, with the number of bins that the example names."""

    def found(inputs: Inputs) -> list[float]:
        return metrics(metric, inputs, **of(name, inputs.get(key)))

    return found


def asked(names: str, **arguments: Any) -> Callable[[Inputs], list[float]]:
    return lambda inputs: metrics(names, inputs, **arguments)


def curve(inputs: Inputs) -> list[list[float]]:
    positive = {"positive": inputs["pos_label"]} if "pos_label" in inputs else {}
    found = calframe.curve(table(inputs), label="y", score="p", **linspace(inputs["n_bins"]), **positive).table
    found = found.filter(pl.col("n") > 0)
    return [found["rate"].to_list(), found["mean_score"].to_list()]


def torch_norm(inputs: Inputs) -> list[float]:
    name = "torchmetrics.confidence" if "P" in inputs else "torchmetrics"
    metric = {"l1": "ece", "l2": "rmsce", "max": "mce"}[inputs["norm"]]
    return convention(name, metric, "n_bins")(inputs)


def equal_mass(inputs: Inputs) -> list[float]:
    return metrics("ece", inputs, **midpoints(np.array(inputs["p"]), inputs["num_bins"]))


def of_confidence(inputs: Inputs) -> Inputs:
    """The largest scores, and whether their classes happened: of rows that do not sum to 1, too."""
    scores = np.array(inputs["P"])
    happened = (scores.argmax(axis=1) == inputs["y"]).astype(int)
    return {**{key: value for key, value in inputs.items() if key != "P"}, "p": scores.max(axis=1), "y": happened}


def between_scores(inputs: Inputs) -> dict[str, Any]:
    scores = np.unique(inputs.get("P", inputs.get("p")))
    return between([0.0, *(scores[:-1] + scores[1:]) / 2, 1.0])


def of_each_class(inputs: Inputs) -> list[float]:
    """The mean over classes of the power of their errors, then its root; errors over single scores."""
    name = {1: "ece", 2: "rmsce"}[inputs["power"]]
    errors = metrics(name, inputs, notion="classwise", **between_scores(inputs))
    return [float(np.mean(np.power(errors, inputs["power"])) ** (1 / inputs["power"]))]


def selective(inputs: Inputs) -> list[float]:
    """Only the order of the confidences counts, so they are moved to where 1 is predicted."""
    moved = {"p": [0.5 + confidence / 2 for confidence in inputs["confidence"]], "y": inputs["correct"]}
    return [1 - metrics("aurc", moved)[0]]


def against_entropy(inputs: Inputs) -> list[float]:
    loss, entropy = metrics("log_loss unc_log", inputs)
    return [loss / entropy]


def bin_numbers(inputs: Inputs) -> list[int]:
    found = pl.DataFrame({"p": inputs["p"]}, schema={"p": pl.Float64}).select(
        pl.col("p").calib.bin(inputs["n_bins"], closed="right") + 1  # type: ignore[attr-defined]
    )
    return found["p"].to_list()


def refused(inputs: Inputs) -> str:
    with pytest.raises(ScoreError, match="column 'p'"):
        metrics("brier", inputs)
    return "error"


def finite_with_clip(inputs: Inputs) -> str:
    with pytest.warns(calframe.CalframeWarning, match="log_loss is infinite: 2 rows"):
        assert metrics("log_loss", inputs) == [math.inf]
    return "finite" if math.isfinite(metrics("log_loss", inputs, clip=2.0**-52)[0]) else "infinite"


def weights_are_repetitions(inputs: Inputs) -> str:
    names = "ece log_loss ratio auc brier slope mcb aurc smece"
    repeated = {key: np.repeat(inputs[key], inputs["w"]).tolist() for key in ("p", "y")}
    same = metrics(names, inputs, bins=40) == pytest.approx(metrics(names, repeated, bins=40), rel=1e-9)
    return "metric(weights) == metric(rows repeated w times)" if same else "differ"


@dataclass(frozen=True)
class Rule:
    """Examples by their ids; what gives their numbers, or why nothing does."""

    pattern: str
    give: Callable[[Inputs], Any] | None = None
    why: str = ""
    first: int | None = None  # how many of the expected values


FIT = "comes with fit"
TEST = "comes with test"
RIGHT_CLOSED = convention("uncertainty-calibration", "ece", "num_bins")
RULES = [
    Rule("scikit-learn.*test_calibration_curve::0", curve),
    Rule("scikit-learn.*test_calibration_curve::2", refused),
    Rule("scikit-learn.*test_calibration_curve_pos_label.*", lambda inputs: curve(inputs)[0]),
    Rule("scikit-learn.*test_log_loss::.*", asked("log_loss")),
    Rule("scikit-learn.*test_log_loss_eps.*", finite_with_clip),
    Rule("scikit-learn.*test_brier_score_loss.*", asked("brier")),
    Rule("scikit-learn.*isotonic.*", why=f"{FIT}; the outcomes are not 0 and 1"),
    Rule(".*test_1d_ece_em.*", equal_mass),
    Rule(".*test_ece::.*", lambda inputs: RIGHT_CLOSED(of_confidence(inputs))),
    Rule(".*test_missing_classes_ece.*", convention("uncertainty-calibration.confidence", "ece", "num_bins")),
    Rule(".*test_missing_class_binary_ece.*", RIGHT_CLOSED),
    Rule(".*test_get_binary_ce.*", lambda inputs: metrics("rmsce", inputs, **between_scores(inputs))),
    Rule(".*test_get_three_label_ce::(48|50)", of_each_class),
    Rule(".*test_get_three_label_ce::52", why="there is no error of the third power"),
    Rule(".*test_three_label_top_ce_lower_bound.*", lambda inputs: equal_mass(of_confidence(inputs))),
    Rule(".*test_get_equal_bins.*", why="its equal parts are not calframe's, and edges alone are no result"),
    Rule(".*test_selective_stats.*", selective, first=1),
    Rule(".*test_ecce_gives_expected_result.*", asked("ecce_r")),
    Rule(".*test_ecce_sigma_.*", why=TEST),
    Rule(".*test_proportional_expected_calibration_error.*", why="an error relative to the score is not offered"),
    Rule(".*test_calibration_ratio::92", asked("ratio")),
    Rule(".*test_calibration_ratio::94", why="without positives the ratio is null, not infinite"),
    Rule(".*test_normalized_entropy.*", against_entropy),
    Rule(".*(kuiper|kolmogorov_smirnov)_(cdf|statistic).*|.*test_spiegelhalter_statistic.*", why=TEST),
    Rule(".*test_weighted_score_metric.*", weights_are_repetitions),
    Rule(".*test_(multiplicative|additive)_adjustment.*", why="maps by one factor or offset are not offered"),
    Rule("mapie.*cumulative_differences.*", why="the sums are no result; their range and largest are ecce_r, ecce_mad"),
    Rule("torchmetrics.*", torch_norm),
    Rule("pycalib.*binary_(ECE|ece).*", convention("pycalib", "ece", "bins")),
    Rule("pycalib.*binary_MCE.*", convention("pycalib", "mce", "bins")),
    Rule("pycalib.*test_classwise_ece.*", convention("pycalib.classwise", "classwise_ece", "bins")),
    Rule("pycalib.*test_conf_mce.*", lambda inputs: convention("pycalib", "mce", "bins")(of_confidence(inputs))),
    Rule("pycalib.*test_brier_score.*", asked("brier")),
    Rule("model-diagnostics.*test_decompose_with_numbers.*", asked("mcb dsc unc brier")),
    Rule("R reliabilitydiag.*", asked("mcb dsc unc brier")),
    Rule("model-diagnostics.*test_compute_bias.*", why="the outcomes are not 0 and 1"),
    Rule("google.*test_binary_classification.*", asked("confidence_ece", bins=10)),
    Rule("google.*GeneralCalibrationError.*", why="its adaptive bins over both classes are not offered"),
    Rule("(probmetrics|dirichletcal).*|R probably::_snaps/cal-estimate.*", why=FIT),
    Rule("relplot.*", asked("smece")),
    Rule("CalibrationErrors.jl.*", bin_numbers),
    Rule(r"R probably::\*_snaps.*", why="rules of another interface"),
]


@pytest.fixture
def cases(reference_folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        reference_folder.joinpath("reference", "peer_cases.json").read_text(encoding="utf-8")
    )
    for case in found:
        if "table" in case["inputs"] and case["inputs"]["table"].startswith("niamey"):
            frame = pl.read_parquet(reference_folder / "data" / f"{case['inputs']['table']}.parquet")
            case["inputs"] = {"y": frame["y"].to_list(), "p": frame[case["inputs"]["score"]].to_list()}
    return found


def test_every_case_falls_under_one_rule(cases: list[dict[str, Any]]) -> None:
    under = {case["id"]: [rule for rule in RULES if re.fullmatch(rule.pattern, case["id"])] for case in cases}
    assert {name: len(rules) for name, rules in under.items() if len(rules) != 1} == {}
    assert [rule.pattern for rule in RULES if not any(rule in rules for rules in under.values())] == []
    assert all(bool(rule.give) != bool(rule.why) for rule in RULES)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.give], ids=lambda rule: rule.pattern)
def test_examples_of_other_packages(cases: list[dict[str, Any]], rule: Rule) -> None:
    assert rule.give is not None
    for case in cases:
        if re.fullmatch(rule.pattern, case["id"]):
            got, wanted = rule.give(case["inputs"]), case["expected"]
            if isinstance(wanted, str) and wanted != "inf":
                assert got == wanted, case["id"]
                continue
            wanted = float(wanted) if isinstance(wanted, str) else wanted
            wanted = wanted[: rule.first] if isinstance(wanted, list) else [wanted]
            tolerance = max(case["tolerance"], 1e-12)
            assert np.ravel(got).tolist() == pytest.approx(np.ravel(wanted).tolist(), rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("total", [0.95, 1.05, 1.2])
def test_scores_of_a_row_that_do_not_sum_to_1_are_refused(total: float) -> None:
    scores = {"y": [0, 1], "P": [[0.5 * total, 0.3 * total, 0.2 * total], [0.2, 0.5, 0.3]]}
    with pytest.raises(ScoreError, match="add up to 1"):
        metrics("confidence_ece", scores)
