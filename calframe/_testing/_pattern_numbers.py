"""The numbers behind patterns of scores that are wrong: gap, line, fifths, the fullest band, and extreme scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._binned import effective_rows, last_cells, ratio, run_starts, segment_max, segment_sum
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._intervals import sidak_level
from calframe._kernels._logistic import (
    CitlFit,
    CoxFit,
    Status,
    citl_fit,
    citl_interval,
    cox_fit,
    cox_interval,
    logit,
    rows_at_ends,
)
from calframe._kernels._ranked import quantile_bins
from calframe._kernels._tally import Tally
from calframe._testing._clustered_curvature import clustered_curve_test, clustered_line_test
from calframe._testing._clusters import Clustered
from calframe._testing._curvature import chances, curve_test, line_test
from calframe._testing._draws import Drawing
from calframe._testing._pattern_clusters import (
    extreme_test,
    left_of_extremes,
    left_of_gap,
    left_of_parts,
    line_effects,
    rate_ends,
    widened,
)
from calframe._testing._patterns import EXTREME_SHARE, Rules, Values
from calframe._testing._rates import ScoreSums, rate_pvalue
from calframe._testing._summed import Sums
from calframe._testing._sums import Factor
from calframe._typing import Bools, Floats

BAND = float(np.log(1.5))  # its width: no two odds in it differ by more than this factor
PARTS = 5  # of equal weight, in which scores are held against what happened
MIDDLE = 0.05  # of the rows below, and above, the part in which a line has to cross the diagonal
_WIDEST = 1000.0  # more than the range of all logits
_ROUNDING = 1e-9
_EDGE = 1e-15  # what rounding leaves of one less the edge of extreme scores


def measured(
    tally: Tally, rules: Rules, drawing: Drawing, *, narrow: bool = False, clusters: Clustered | None = None
) -> Values:
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
    clusters : Clustered, optional
        The rows of the tally, where they share the luck of their clusters.
    """
    level = 1.0 - rules.alpha
    sums = Sums.of_tally(tally)
    of_gap = None if clusters is None else left_of_gap(clusters, sums.mean_score)
    low, high = rate_ends(sums.rate, sums.rows, of_gap, level=level)
    values: Values = {
        "rate": sums.rate,
        "mean_score": sums.mean_score,
        "rows": sums.rows if of_gap is None else sums.rows / widened(of_gap, sums.rate, level=level),
        "gap": sums.gap,
        "gap_low": sums.mean_score - high,
        "gap_high": sums.mean_score - low,
    }
    values |= _line(tally, rules, drawing, level, clusters) | _parts(tally, level, clusters) | _band(tally)
    return values | _extremes(tally, rules, drawing, level, clusters, narrow=narrow)


def _line(tally: Tally, rules: Rules, drawing: Drawing, level: float, clusters: Clustered | None) -> Values:
    """Return the calibration line with intervals, the tests of it, and where it crosses the diagonal."""
    fit, large = cox_fit(tally, floor=rules.floor), citl_fit(tally, floor=rules.floor)
    ends = _line_ends(tally, rules, level, fit, large, clusters)
    fine = fit.status == Status.FINE
    fitted = ~(np.isnan(fit.slope) & np.isnan(large.citl))
    values = {"at_ends": np.asarray(rows_at_ends(tally, rules.floor) * fitted, dtype=np.float64)}
    values |= {"status": fit.status.astype(np.float64), "intercept": fit.intercept, "slope": fit.slope}
    low, high = ends.pop("citl")
    values |= {"citl": large.citl, "citl_low": low, "citl_high": high}
    for name, (low, high) in ends.items():
        values |= {f"{name}_low": np.where(fine, low, np.nan), f"{name}_high": np.where(fine, high, np.nan)}
    first, last = (_quantile(tally, share) for share in (MIDDLE, 1.0 - MIDDLE))
    above = [fit.intercept + (fit.slope - 1.0) * logit(end, rules.floor) for end in (first, last)]
    crosses = (above[0] * above[1] < 0.0) | (fit.status == Status.SEPARABLE)
    values |= {"line_crosses": crosses.astype(np.float64), "slope_side": _side(tally, fit.slope, fit.status)}
    if clusters is None:
        tests = line_test(tally, drawing, floor=rules.floor), curve_test(tally, fit, drawing, floor=rules.floor)
    else:
        tests = (
            clustered_line_test(clusters, drawing, floor=rules.floor),
            clustered_curve_test(clusters, fit, drawing, floor=rules.floor),
        )
    for name, found in zip(("line", "curve"), tests, strict=True):
        values |= {f"pvalue_{name}": found.pvalue, f"least_{name}": found.least, f"floor_{name}": found.floor}
    return values | {"beyond_line": _beyond(tally, chances(tally, fit, floor=rules.floor))}


def _line_ends(
    tally: Tally, rules: Rules, level: float, fit: CoxFit, large: CitlFit, clusters: Clustered | None
) -> dict[str, tuple[Floats, Floats]]:
    """Return the intervals of intercept, slope and calibration-in-the-large."""
    if clusters is not None:
        wider = line_effects(clusters, fit, large, level=level, floor=rules.floor)
        fit = replace(
            fit,
            intercept_variance=fit.intercept_variance * wider["intercept"],
            slope_variance=fit.slope_variance * wider["slope"],
        )
        large = replace(large, variance=large.variance * wider["citl"])
        tally = replace(tally, squared=tally.squared * tally.spread(wider["citl"]))
    return {**cox_interval(fit, level=level), "citl": citl_interval(tally, large, level=level, floor=rules.floor)}


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


def _parts(tally: Tally, level: float, clusters: Clustered | None) -> Values:
    """Return the fifths of the scores that most surely say too much, and too little, with simultaneous intervals."""
    parts = equal_mass(tally, PARTS)
    sums = parts.sums
    score, rate = sums["wp"] / sums["w"], sums["wy"] / sums["w"]
    of_parts = None if clusters is None else left_of_parts(clusters, sums["n"], score)
    low, high = rate_ends(rate, effective_rows(sums["w"], sums["w2"]), of_parts, level=sidak_level(level, PARTS))
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


def _extremes(
    tally: Tally, rules: Rules, drawing: Drawing, level: float, clusters: Clustered | None, *, narrow: bool
) -> Values:
    """Return how many scores are extreme, how often they are wrong, and how often they say they are."""
    ends = np.array([rules.extreme, 1.0 - rules.extreme])
    below, above = ends.astype(np.float32).astype(np.float64) if narrow else ends
    low, high = tally.score <= below + _EDGE, tally.score >= above - _EDGE
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
    if clusters is None:
        of_error, tested = None, _extreme_test(sums, many)
    else:
        sides = _sides(below, above)
        of_error, tested = left_of_extremes(clusters, sides), extreme_test(clusters, sides, many, drawing)
    ends_of = rate_ends(error, sums.rows, of_error, level=level)
    return {
        "extreme_n": sums.n,
        "extreme_share": share,
        "extreme_expected": ratio(sums.score, sums.weight),
        "extreme_error": error,
        "extreme_error_low": ends_of[0],
        "extreme_error_high": ends_of[1],
        **tested,
    }


def _extreme_test(sums: ScoreSums, many: Bools) -> Values:
    """Return what is to be said of the errors of extreme scores where there are many of them, of independent rows."""
    pvalue, nothing = np.full(len(many), np.nan), np.zeros(len(many))
    if many.any():
        pvalue[many] = rate_pvalue(sums.at(np.flatnonzero(many)))
    return {"pvalue_extreme": pvalue, "least_extreme": pvalue, "floor_extreme": nothing, "few_clusters": nothing}


def _sides(below: float, above: float) -> Factor:
    """Return which scores are extreme: 1 low ones, whose positives are wrong, -1 high ones, and 0 the others."""

    def sides(score: Floats) -> Floats:
        return np.where(score <= below + _EDGE, 1.0, np.where(score >= above - _EDGE, -1.0, 0.0))

    return sides
