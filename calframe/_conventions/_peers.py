"""The conventions of each package, and the numbers that none gives."""

from __future__ import annotations

import sys

from calframe._conventions._convention import Convention
from calframe._conventions._edges import (
    ACCUMULATED,
    DIVISION,
    EXACT,
    LINSPACE,
    ONE_APART,
    ONE_LESS,
    STRETCHED,
    TORCH,
    TORCH_FLOAT32,
)

_CONFIDENCE = ("notion", "confidence")
_EPSILON = ("clip", sys.float_info.epsilon)  # how far scikit-learn keeps scores of float64 from 0 and 1
_RECORDED = "values recorded from it"
_FLOAT32 = "Scores of float32 are binned and clipped in float32 there; cast them to float64 first."
_GAPS = (
    "Rounding leaves gaps between its intervals and lets others overlap: a row whose confidence lies exactly on an "
    "edge, with 15 bins on k / 15, may be in no bin or in two there. Here it is in one."
)
_MERGES = (
    "The parts are NaN there where the lowest or highest score has weight 0 or lies within 2.2e-16 of another score, "
    "because scikit-learn's isotonic regression merges such scores."
)
_SINGLE = (
    "It computes in float32: cast the columns of scores to float32 first. Its sums lose digits, so with thousands of "
    "rows only about four agree."
)
_PROCESSOR = (
    "The last bit of torch.linspace depends on the processor. Where a score lies exactly on an edge, pass "
    "bins=[*torch.linspace(0, 1, bins + 1).tolist(), 2.0] from that machine, in the type of the scores."
)
_QUANTILES = "Quantile bins depend on the rows: pass the edges that it finds as bins=."

PEERS = (
    Convention(
        name="calibre",
        reproduces="expected_, maximum_ and root_mean_squared_calibration_error",
        version="0.14.0",
        metrics=("ece", "mce", "rmsce"),
        edges=LINSPACE,
        default_bins=10,
        tested=_RECORDED,
        notes=("With fewer rows than bins it uses as many bins as rows: pass that number.",),
    ),
    Convention(
        name="calzone",
        reproduces="calculate_ece_mce of reliability_diagram(class_to_plot=1)",
        version="0.1.0",
        metrics=("ece", "mce"),
        edges=LINSPACE,
        closed="right",
        default_bins=10,
        notes=("It drops rows whose score is exactly 0. Filter them out to get its number.", _QUANTILES),
    ),
    Convention(
        name="calzone.confidence",
        reproduces="calculate_ece_mce of reliability_diagram(class_to_plot=None)",
        version="0.1.0",
        metrics=("ece", "mce"),
        edges=LINSPACE,
        closed="right",
        default_bins=10,
        options=(_CONFIDENCE,),
        several_classes=True,
    ),
    Convention(
        name="mapie",
        reproduces="expected_calibration_error(split_strategy='uniform') of one column of scores",
        version="1.6.0",
        metrics=("ece",),
        edges=ONE_LESS,
        closed="right",
        default_bins=50,
        notes=("Its num_bins counts edges, not bins.", "Its other two split strategies depend on the rows."),
    ),
    Convention(
        name="mapie.classwise",
        reproduces="expected_calibration_error(split_strategy='uniform', classwise=True)",
        version="1.6.0",
        metrics=("classwise_ece",),
        edges=ONE_LESS,
        closed="right",
        default_bins=50,
        several_classes=True,
        notes=("Its num_bins counts edges, not bins.",),
    ),
    Convention(
        name="mapie.confidence",
        reproduces="expected_calibration_error(split_strategy='uniform') of a matrix, y_true saying what was right",
        version="1.6.0",
        metrics=("ece",),
        edges=ONE_LESS,
        closed="right",
        default_bins=50,
        options=(_CONFIDENCE,),
        several_classes=True,
        notes=("Its num_bins counts edges, not bins.",),
    ),
    Convention(
        name="mcgrad",
        reproduces="expected_calibration_error and calibration_ratio",
        version="0.1.5",
        metrics=("ece", "ratio"),
        edges=LINSPACE,
        default_bins=40,
        tested=_RECORDED,
        notes=("Its MCE is the multicalibration error, not the maximum calibration error.",),
    ),
    Convention(
        name="model-diagnostics",
        reproduces="the mean of compute_bias, and decompose with SquaredError",
        version="1.5.0",
        metrics=("gap", "brier", "mcb", "dsc", "unc"),
        notes=(_MERGES,),
    ),
    Convention(
        name="model-diagnostics.log",
        reproduces="decompose with LogLoss",
        version="1.5.0",
        metrics=("log_loss", "mcb_log", "dsc_log", "unc_log"),
        notes=(_MERGES,),
    ),
    Convention(
        name="netcal",
        reproduces="ECE, MCE and ACE of one column of scores",
        version="1.4.0",
        metrics=("ece", "mce", "ace"),
        edges=LINSPACE,
        default_bins=10,
        tested=_RECORDED,
        notes=("It moves scores of 0 and 1 inwards by 2.2e-16, which shows from the 16th digit on.", _QUANTILES),
    ),
    Convention(
        name="netcal.confidence",
        reproduces="ECE, MCE and ACE of a matrix of scores",
        version="1.4.0",
        metrics=("ece", "mce", "ace"),
        edges=LINSPACE,
        default_bins=10,
        options=(_CONFIDENCE,),
        several_classes=True,
        tested=_RECORDED,
    ),
    Convention(
        name="polarbearings",
        reproduces="expected_ and maximum_calibration_error, brier_score and log_loss",
        version="0.3.0",
        metrics=("ece", "mce", "brier", "log_loss"),
        edges=EXACT,
        closed="right",
        default_bins=10,
        options=(("clip", 1e-15),),
        notes=(_QUANTILES,),
    ),
    Convention(
        name="pycalib",
        reproduces="binary_ECE and binary_MCE",
        version="0.1.0.dev6",
        metrics=("ece", "mce"),
        edges=STRETCHED,
        default_bins=15,
        notes=("A score on an edge k / bins falls into the lower bin, because the edges are stretched by 1e-8.",),
    ),
    Convention(
        name="pycalib.classwise",
        reproduces="classwise_ECE and classwise_MCE",
        version="0.1.0.dev6",
        metrics=("classwise_ece", "classwise_mce"),
        edges=STRETCHED,
        default_bins=15,
        several_classes=True,
        notes=("Its brier_score is the mean over the classes: brier divided by their number.",),
    ),
    Convention(
        name="pycalib.confidence",
        reproduces="conf_ECE and conf_MCE",
        version="0.1.0.dev6",
        metrics=("ece", "mce"),
        edges=ACCUMULATED,
        closed="right",
        default_bins=15,
        options=(_CONFIDENCE,),
        several_classes=True,
        notes=(_GAPS, "With some numbers of bins, such as 14, it has no bin for a confidence of 1. Here there is one."),
    ),
    Convention(
        name="pycalib.full",
        reproduces="full_ECE",
        version="0.1.0.dev6",
        metrics=("full_ece",),
        edges=ONE_APART,
        default_bins=15,
        several_classes=True,
    ),
    Convention(
        name="reliabilitydiag",
        reproduces="miscalibration, discrimination, uncertainty and mean score of summary() in R",
        version="of its README",
        metrics=("mcb", "dsc", "unc", "brier"),
        tested="values of its documentation, and of R's isoreg",
    ),
    Convention(
        name="relplot",
        reproduces="binnedECE",
        version="1.0.3",
        metrics=("ece",),
        edges=DIVISION,
        default_bins=10,
        notes=("A score of 0.3 falls into the bin below 0.3 there: 0.3 / 0.1 is 2.9999999999999996.",),
    ),
    Convention(
        name="rms",
        reproduces="Eavg, E90, Emax and Brier of val.prob in R",
        version="6.5.0",
        metrics=("ici", "e90", "emax", "brier"),
        options=(("smoother", "lowess"),),
        tested=_RECORDED,
        notes=("Its slope and intercept leave out scores of 0 and 1, which calframe keeps at floor=.",),
    ),
    Convention(
        name="scikit-learn",
        reproduces="gaps of calibration_curve(strategy='uniform'), brier_score_loss, log_loss, roc_auc_score",
        version="1.9.1",
        metrics=("ece", "mce", "ace", "brier", "log_loss", "auc"),
        edges=LINSPACE,
        closed="right",
        default_bins=5,
        options=(_EPSILON,),
        notes=(
            "It has no calibration error of its own: ece weighs the gaps of its curve by the rows of each bin.",
            _QUANTILES,
            _FLOAT32,
        ),
    ),
    Convention(
        name="scikit-learn.classes",
        reproduces="accuracy_score, brier_score_loss(scale_by_half=False), log_loss",
        version="1.9.1",
        metrics=("accuracy", "brier", "log_loss"),
        options=(_EPSILON,),
        several_classes=True,
        notes=(_FLOAT32,),
    ),
    Convention(
        name="SpecsVerification",
        reproduces="REL, RES and UNC of BrierDecomp in R",
        version="0.5-3",
        metrics=("reliability", "resolution", "uncertainty"),
        edges=LINSPACE,
        closed="right",
        default_bins=10,
        tested=_RECORDED,
        notes=("With bias.corrected=TRUE it sets what is negative to 0; calframe's corrected forms do not.",),
    ),
    Convention(
        name="torchmetrics",
        reproduces="binary_calibration_error with norm 'l1', 'l2' and 'max'",
        version="1.9.0",
        metrics=("ece", "rmsce", "mce"),
        edges=TORCH,
        default_bins=15,
        tested=_RECORDED,
        notes=("For scores of float64.", _PROCESSOR),
    ),
    Convention(
        name="torchmetrics.confidence",
        reproduces="multiclass_calibration_error with norm 'l1', 'l2' and 'max'",
        version="1.9.0",
        metrics=("ece", "rmsce", "mce"),
        edges=TORCH_FLOAT32,
        default_bins=15,
        options=(_CONFIDENCE,),
        several_classes=True,
        tested=_RECORDED,
        notes=(_SINGLE, _PROCESSOR),
    ),
    Convention(
        name="uncertainty-calibration",
        reproduces="get_ece, and lower_bound_scaling_ce(binning_scheme=get_equal_prob_bins) plain and debiased",
        version="0.1.4",
        metrics=("ece", "rmsce", "ece_debiased"),
        edges=EXACT,
        closed="right",
        default_bins=15,
    ),
    Convention(
        name="uncertainty-calibration.classwise",
        reproduces="get_ece(mode='marginal')",
        version="0.1.4",
        metrics=("classwise_ece",),
        edges=EXACT,
        closed="right",
        default_bins=15,
        several_classes=True,
    ),
    Convention(
        name="uncertainty-calibration.confidence",
        reproduces="the same functions with mode='top-label' on a matrix of scores",
        version="0.1.4",
        metrics=("ece", "rmsce", "ece_debiased"),
        edges=EXACT,
        closed="right",
        default_bins=15,
        options=(_CONFIDENCE,),
        several_classes=True,
        notes=("What it calls 'top-label' does not condition on the label: it is the confidence notion.",),
    ),
)

NOT_OFFERED = {
    "calzone.quantile": "its edges are quantiles of the rows, and it drops the rows of the lowest score",
    "mapie.toplabel": "it is the plain mean over predicted classes; toplabel_ece weighs each class by its rows",
    "mcgrad.adaptive": "its edges are quantiles of the rows, rounded to three digits",
    "mcgrad.ecce": "it changes with the order of rows of equal score; ecce_r looks at distinct scores only",
    "netcal.quantile": "its edges are quantiles of the rows, and equal scores are an error there",
    "probmetrics": "it computes in float32, its ECE over 15 bins is that of 'torchmetrics.confidence'",
    "pycalib.flattened": "ECE(ece_full=True) pools the classes; make one row of each score and class, and ask for ece",
    "relplot.smooth": "smECE halves rows at 0 and 1 and steps its bandwidth; elsewhere smece agrees to 0.002",
    "torch-uncertainty": "its AURC is a trapezoid sum; aurc is the plain mean over the number of rows kept",
    "uncertainty-calibration.quantile": "its edges lie halfway between equal parts of the sorted rows",
}
