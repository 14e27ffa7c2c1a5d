"""Patterns of scores that are wrong: the numbers of each segment, and the rules that name a pattern by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._binned import effective_rows, last_cells, ratio, run_starts, segment_max, segment_sum
from calframe._kernels._corrections import Correction
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._intervals import rate_interval, sidak_level
from calframe._kernels._logistic import Status, citl_fit, citl_interval, cox_fit, cox_interval, logit, rows_at_ends
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._testing._curvature import chances, curve_test, line_test
from calframe._testing._draws import Drawing
from calframe._testing._found import adjusted_surely, reach
from calframe._testing._rates import ScoreSums, rarer_events, rate_pvalue
from calframe._testing._summed import Sums, reaches
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
BAND = float(np.log(1.5))  # its width: no two odds in it differ by more than this factor
PARTS = 5  # of equal weight, in which scores are held against what happened
MIDDLE = 0.05  # of the rows below, and above, the part in which a line has to cross the diagonal
TESTS = ("line", "curve", "extreme")
_WIDEST = 1000.0  # more than the range of all logits
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


def measured(tally: Tally, rules: Rules, drawing: Drawing, *, narrow: bool = False) -> Values:
    """Return the numbers behind patterns, one value a segment; NaN where they are not defined.

    Parameters
    ----------
    tally : Tally
        Distinct scores, as probabilities.
    rules : Rules
        What decides.
    drawing : Drawing
        How labels are drawn where a law for many rows is doubtful.
    narrow : bool
        Whether scores are float32, so that the edge of extreme scores is, too.
    """
    level = 1.0 - rules.alpha
    sums = Sums.of_tally(tally)
    low, high = rate_interval(sums.rate, sums.rows, level=level)
    values: Values = {
        "rate": sums.rate,
        "mean_score": sums.mean_score,
        "rows": sums.rows,
        "gap": sums.gap,
        "gap_low": sums.mean_score - high,
        "gap_high": sums.mean_score - low,
    }
    values |= _line(tally, rules, drawing, level) | _parts(tally, level) | _band(tally)
    return values | _extremes(tally, rules, level, narrow=narrow)


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


def _line(tally: Tally, rules: Rules, drawing: Drawing, level: float) -> Values:
    """Return the calibration line with intervals, the tests of it, and where it crosses the diagonal."""
    fit, large = cox_fit(tally, floor=rules.floor), citl_fit(tally, floor=rules.floor)
    ends = cox_interval(fit, level=level)
    fine = fit.status == Status.FINE
    fitted = ~(np.isnan(fit.slope) & np.isnan(large.citl))
    values = {"at_ends": np.asarray(rows_at_ends(tally, rules.floor) * fitted, dtype=np.float64)}
    values |= {"status": fit.status.astype(np.float64), "intercept": fit.intercept, "slope": fit.slope}
    for name, (low, high) in ends.items():
        values |= {f"{name}_low": np.where(fine, low, np.nan), f"{name}_high": np.where(fine, high, np.nan)}
    low, high = citl_interval(tally, large, level=level, floor=rules.floor)
    values |= {"citl": large.citl, "citl_low": low, "citl_high": high}
    first, last = (_quantile(tally, share) for share in (MIDDLE, 1.0 - MIDDLE))
    above = [fit.intercept + (fit.slope - 1.0) * logit(end, rules.floor) for end in (first, last)]
    crosses = (above[0] * above[1] < 0.0) | (fit.status == Status.SEPARABLE)
    values |= {"line_crosses": crosses.astype(np.float64), "slope_side": _side(tally, fit.slope, fit.status)}
    for name, found in (
        ("line", line_test(tally, drawing, floor=rules.floor)),
        ("curve", curve_test(tally, fit, drawing, floor=rules.floor)),
    ):
        values |= {f"pvalue_{name}": found.pvalue, f"least_{name}": found.least, f"floor_{name}": found.floor}
    return values | {"beyond_line": _beyond(tally, chances(tally, fit, floor=rules.floor))}


def _side(tally: Tally, slope: Floats, status: NDArray[np.int64]) -> Floats:
    """Return the sign of slope - 1; where scores separate the outcomes, whether positives have the higher ones."""
    negative = tally.negative
    means = [ratio(tally.total(part * tally.score), tally.total(part)) for part in (tally.positive, negative)]
    return np.where(status == Status.SEPARABLE, np.sign(means[0] - means[1]), np.sign(slope - 1.0))


def _quantile(tally: Tally, share: float) -> Floats:
    """Return the score with that share of the weight at it or below."""
    place = tally.running(tally.weight) / tally.spread(tally.total(tally.weight))
    key = tally.segment + np.clip(place, 0.0, 1.0)
    found = np.searchsorted(key, np.arange(len(tally)) + share - _ROUNDING)
    score: Floats = tally.score[np.clip(found, tally.starts, last_cells(tally.starts, len(tally.score)))]
    return score


def _parts(tally: Tally, level: float) -> Values:
    """Return the fifths of the scores that most surely say too much, and too little, with simultaneous intervals."""
    parts = equal_mass(tally, PARTS)
    sums = parts.sums
    score, rate = sums["wp"] / sums["w"], sums["wy"] / sums["w"]
    low, high = rate_interval(rate, effective_rows(sums["w"], sums["w2"]), level=sidak_level(level, PARTS))
    low, high = score - high, score - low
    values: Values = {}
    for name, sure in (("over", low), ("under", -high)):
        best = segment_max(sure, parts.starts)
        at = np.flatnonzero(sure == best[parts.segment])
        place = at[np.searchsorted(parts.segment[at], np.arange(len(tally)))]
        values |= {
            f"{name}_from": parts.lower[place],
            f"{name}_to": parts.upper[place],
            f"{name}_n": sums["n"][place],
            f"{name}_gap": (score - rate)[place],
            f"{name}_gap_low": low[place],
            f"{name}_gap_high": high[place],
        }
    return values


def _beyond(tally: Tally, chance: Floats) -> Floats:
    """Return the largest gap of a fifth of the rows that the calibration line leaves."""
    bins = quantile_bins(tally.weight, tally.starts, np.full(len(tally), PARTS))
    first = run_starts(bins, tally.starts)
    off = np.abs(segment_sum(tally.weight * chance - tally.positive, first)) / segment_sum(tally.weight, first)
    return segment_max(off, np.searchsorted(first, tally.starts))


def _band(tally: Tally) -> Values:
    """Return the band of odds within a factor of 1.5 that holds most weight, its share of it, and its rate."""
    key = tally.segment * _WIDEST + logit(tally.score)
    stop = np.searchsorted(key, key + BAND + _ROUNDING, side="right") - 1
    weight, positive = (
        tally.running(cells)[stop] - tally.running(cells) + cells for cells in (tally.weight, tally.positive)
    )
    total = tally.total(tally.weight)
    at = np.flatnonzero(weight >= tally.spread(segment_max(weight, tally.starts)) * (1.0 - _ROUNDING))
    place = at[np.searchsorted(tally.segment[at], np.arange(len(tally)))]
    return {
        "n_scores": tally.sizes.astype(np.float64),
        "band_low": tally.score[place],
        "band_high": tally.score[stop[place]],
        "band_share": np.minimum(weight[place] / total, 1.0),
        "band_rate": np.clip(positive[place] / weight[place], 0.0, 1.0),
    }


def _extremes(tally: Tally, rules: Rules, level: float, *, narrow: bool) -> Values:
    """Return how many scores are extreme, how often they are wrong, and how often they say they are."""
    ends = np.array([rules.extreme, 1.0 - rules.extreme])
    below, above = ends.astype(np.float32).astype(np.float64) if narrow else ends
    low, high = tally.score <= below + 1e-15, tally.score >= above - 1e-15
    there = (low | high).astype(np.float64)
    wrong = there * np.where(low, tally.positive, tally.negative)
    chance = np.where(low, tally.score, 1.0 - tally.score)
    sums = ScoreSums.of_tally(
        replace(
            tally,  # of extreme scores alone, which count how sure they are; sums need no order of scores
            score=chance,
            positive=wrong,
            **{name: getattr(tally, name) * there for name in ("rows", "weight", "squared")},
        )
    )
    share, error = sums.weight / tally.total(tally.weight), ratio(sums.label, sums.weight)
    many = share >= EXTREME_SHARE
    pvalue = np.full(len(tally), np.nan)
    if many.any():
        pvalue[many] = rate_pvalue(sums.at(np.flatnonzero(many)))
    ends_of = rate_interval(error, sums.rows, level=level)
    return {
        "extreme_n": sums.n,
        "extreme_share": share,
        "extreme_expected": ratio(sums.score, sums.weight),
        "extreme_error": error,
        "extreme_error_low": ends_of[0],
        "extreme_error_high": ends_of[1],
        "pvalue_extreme": pvalue,
        "least_extreme": pvalue,
        "floor_extreme": np.zeros(len(tally)),
    }
