"""Patterns of scores that are wrong: the rules that name one by the numbers of a segment, and the map that fits it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._corrections import Correction
from calframe._kernels._logistic import Status
from calframe._testing._found import adjusted_surely, reach
from calframe._testing._rates import rarer_events
from calframe._testing._summed import reaches
from calframe._typing import Bools, Floats

Pattern: TypeAlias = Literal[
    "none found",
    "within tolerance",
    "says too much",
    "says too little",
    "over-confident",
    "under-confident",
    "crossing",
    "collapse",
    "extreme",
    "not decided",
]
Values: TypeAlias = dict[str, Floats]

EXTREME_SHARE = 0.25  # of the rows, from which on extreme scores are a cluster
COLLAPSE_SHARE = 0.9  # of the rows within the narrow band
TESTS = ("line", "curve", "extreme")
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides.

    Attributes
    ----------
    alpha : float
        Level of tests, over all segments together; intervals are at ``1 - alpha``, each by itself.
    tolerance : float
        The error of a score that does not matter.
    extreme : float
        Scores up to it, and from one less it on, are extreme.
    correction : str
        How p-values are adjusted.
    min_rows, min_events : float
        Effective rows, and rows of each outcome (seen or expected), below which nothing is decided.
    floor : float
        The least score that enters a logit.
    """

    alpha: float
    tolerance: float
    extreme: float
    correction: Correction
    min_rows: float
    min_events: float
    floor: float = 1e-12


def adjust(values: Values, rules: Rules) -> Values:
    """Return adjusted p-values of all tests, over all segments together, and where no draw could make one reject."""
    few = ~enough(values, rules)
    plain, sure = (
        np.where(np.tile(few, len(TESTS)), np.nan, np.concatenate([values[f"{kind}_{name}"] for name in TESTS]))
        for kind in ("pvalue", "least")
    )
    found = adjusted_surely(plain, sure, rules.correction, rules.alpha)
    floor = np.concatenate([values[f"floor_{name}"] for name in TESTS])
    never = (floor > 0.0) & (plain <= rules.alpha) & (reach(sure, floor, rules.correction) > rules.alpha)
    parts = zip(TESTS, found.reshape(len(TESTS), -1), strict=True)
    adjusted: Values = {f"pvalue_{name}_adjusted": part for name, part in parts}
    lost = np.asarray(never.reshape(len(TESTS), -1).any(axis=0), dtype=np.float64)
    return adjusted | {"beyond_reach": lost}


def enough(values: Mapping[str, Floats], rules: Rules) -> Bools:
    """Return where there are rows enough, and of both outcomes, seen or expected."""
    rows, rate, score = values["rows"], values["rate"], values["mean_score"]
    rarer = rarer_events(rows, rate, score)
    return np.asarray(reaches(rows, rules.min_rows) & reaches(rarer, rules.min_events))


def patterns(values: Mapping[str, Floats], rules: Rules) -> NDArray[np.object_]:
    """Return the pattern of each segment: the first of the rules that holds, in the order of the code."""
    with np.errstate(invalid="ignore"):
        conditions = _conditions(values, rules)
    found = np.full(len(values["rows"]), "not decided", dtype=object)
    for pattern, where in reversed(conditions):
        found[where] = pattern
    return found


def _conditions(v: Mapping[str, Floats], rules: Rules) -> list[tuple[Pattern, Bools]]:
    line, curve, certain = (v[f"pvalue_{name}_adjusted"] <= rules.alpha for name in TESTS)
    gap_sure = level_off(v)
    small = within(v, rules.tolerance) & (v["over_gap"] < rules.tolerance) & (v["under_gap"] > -rules.tolerance)
    much = (v["over_gap"] >= rules.tolerance) & (v["over_gap_low"] > 0.0)
    little = (v["under_gap"] <= -rules.tolerance) & (v["under_gap_high"] < 0.0)
    bent = curve & (v["beyond_line"] >= rules.tolerance)
    tilted = line & sloped(v) & ((v["line_crosses"] > 0.0) | ~gap_sure)
    shifted = line | bent | certain
    return [
        ("not decided", ~enough(v, rules)),
        ("extreme", extreme(v, rules)),
        ("collapse", collapsed(v, rules)),
        ("none found", ~(line | curve | certain) & (v["beyond_reach"] == 0.0)),
        ("within tolerance", small),
        ("crossing", bent & much & little),
        ("over-confident", tilted & (v["slope_side"] < 0.0)),
        ("under-confident", tilted & (v["slope_side"] > 0.0)),
        ("says too much", shifted & (v["gap_low"] > 0.0)),
        ("says too little", shifted & (v["gap_high"] < 0.0)),
    ]


def maps(
    values: Mapping[str, Floats], named: NDArray[np.object_], rules: Rules, *, confidence: bool, several: bool
) -> NDArray[np.object_]:
    """Return the method of `calframe.fit` that fits each pattern; None where there is nothing it could repair.

    Parameters
    ----------
    values : mapping of str to ndarray
        The numbers, with adjusted p-values.
    named : ndarray of str
        The patterns.
    rules : Rules
        What decides.
    confidence : bool
        Whether scores are the largest ones of their rows.
    several : bool
        Whether there are more than two classes.
    """
    v = values
    with np.errstate(invalid="ignore"):
        bent = v["pvalue_curve_adjusted"] <= rules.alpha
        level = (v["intercept_low"] > 0.0) | (v["intercept_high"] < 0.0)
        timid = (v["slope_low"] > 1.0) | level_off(v)
    steps = np.full(len(named), "ovr_isotonic" if several else "isotonic", dtype=object)
    line = np.where(bent, "beta", "platt").astype(object)
    turn = np.where(bent, "beta", np.where(level, "platt", "temperature")).astype(object)
    if confidence:
        line = turn = np.full(len(named), "temperature", dtype=object)
    elif (separable := v["status"] == Status.SEPARABLE).any():
        line, turn = (np.where(separable, "isotonic", one) for one in (line, turn))
    found = np.full(len(named), None, dtype=object)
    kinds = {"says too much": line, "says too little": line, "over-confident": turn, "under-confident": turn}
    for pattern, fitting in {**kinds, "crossing": steps, "extreme": steps, "collapse": line}.items():
        where = (named == pattern) & (timid | (pattern != "collapse"))
        found[where] = fitting[where]
    found[reversed_order(v)] = None
    return found


def level_off(v: Mapping[str, Floats]) -> Bools:
    """Return where the interval of the gap leaves out 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray((v["gap_low"] > 0.0) | (v["gap_high"] < 0.0))


def reversed_order(v: Mapping[str, Floats]) -> Bools:
    """Return where higher scores come true less often, which no map that keeps their order repairs."""
    with np.errstate(invalid="ignore"):
        separated = (v["status"] == Status.SEPARABLE) & (v["slope_side"] < 0.0)
        return np.asarray((v["slope_high"] < 0.0) | separated)


def within(values: Mapping[str, Floats], tolerance: float) -> Bools:
    """Return where the interval of the gap lies inside the tolerance."""
    with np.errstate(invalid="ignore"):
        inside = (values["gap_low"] >= -tolerance) & (values["gap_high"] <= tolerance)
    return np.asarray(inside)


def extreme(v: Mapping[str, Floats], rules: Rules) -> Bools:
    """Return where many scores are extreme, and wrong too often by more than the tolerance."""
    with np.errstate(invalid="ignore"):
        wrong = v["extreme_error"] - v["extreme_expected"] >= rules.tolerance
        many = v["extreme_share"] >= EXTREME_SHARE
        return np.asarray(many & wrong & (v["pvalue_extreme_adjusted"] <= rules.alpha))


def collapsed(v: Mapping[str, Floats], rules: Rules) -> Bools:
    """Return where most scores lie within a narrow band, although outcomes in it vary."""
    with np.errstate(invalid="ignore"):
        rarer = np.minimum(v["band_rate"], 1.0 - v["band_rate"]) * v["band_share"] * v["rows"]
        return np.asarray((v["band_share"] >= COLLAPSE_SHARE - _ROUNDING) & reaches(rarer, rules.min_events))


def sloped(v: Mapping[str, Floats]) -> Bools:
    """Return where the slope is not 1, by its interval, or because scores separate the outcomes."""
    with np.errstate(invalid="ignore"):
        return np.asarray((v["slope_low"] > 1.0) | (v["slope_high"] < 1.0) | (v["status"] == Status.SEPARABLE))
