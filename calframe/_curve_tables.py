"""The tables behind reliability curves: binned, isotonic, kernel and loess, all in the same columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calframe._binning import BinChoice, Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import Column, closed_frame
from calframe._effects._bins import effects_in_cells, effects_in_rows
from calframe._kernels._binned import effective_rows, run_starts
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._intervals import normal_quantile, rate_interval
from calframe._kernels._isotonic import blocks
from calframe._kernels._kernel_curve import kernel_means
from calframe._kernels._loess import loess_curve
from calframe._kernels._null import central_part
from calframe._kernels._regions import confidence_region, consistency_region
from calframe._kernels._tally import Tally
from calframe._reading import by_width, read_rows, read_tallies
from calframe._table import Table
from calframe._typing import Floats, Ints, RateInterval

CurveMethod: TypeAlias = Literal["binned", "isotonic", "kernel", "loess"]
Points: TypeAlias = dict[str, Any]

_TERMS = ("wp", "wy", "w2", "variance", "w2_variance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How a curve is drawn.

    Attributes
    ----------
    method : {"binned", "isotonic", "kernel", "loess"}
        The method.
    choice : BinChoice
        Its bins.
    level : float
        Confidence level of intervals and band.
    interval : {"wilson", "clopper_pearson", "jeffreys"}
        The interval of a rate.
    n_resamples, seed : int
        How often isotonic regions resample, and with which seed.
    narrow : bool
        Whether the scores are float32.
    """

    method: CurveMethod
    choice: BinChoice
    level: float
    interval: RateInterval
    n_resamples: int
    seed: int
    narrow: bool = False


def curve_table(table: Table, drawn: Drawn, *, engine: Any) -> tuple[Groups, Any]:
    """Return the segments of a table and the points of their curves, in the user's library."""
    fixed = drawn.choice.fixed
    if drawn.method == "binned" and fixed is not None:
        rows = None if table.cluster is None else read_rows(table, engine=engine)  # once, for two aggregates
        plan = cells_plan(table, _TERMS, bins=fixed, rows=rows)
        groups = read_groups(table, table.collect(plan, engine=engine), _TERMS)
        segment, points = _of_cells(table, rows, groups, fixed, drawn)
    else:
        rows = read_rows(table, engine=engine)
        groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
        segment, points = (_of_equal_mass if drawn.method == "binned" else _of_tallies)(table, rows, groups, drawn)
    if not table.weighted:
        del points["weight_sum"]
    columns: dict[str, Column] = {name: points[name] for name in points}
    return groups, closed_frame(table, groups, columns, segment=segment).to_native()


def bin_columns(
    sums: dict[str, Floats], *, level: float, interval: RateInterval, effects: Mapping[str, Floats] | None = None
) -> dict[str, Column]:
    """Return what a curve says of each bin, from its sums.

    Parameters
    ----------
    sums : dict of str to ndarray
        Sums ``w``, ``wp``, ``wy``, ``w2``, ``variance`` and ``w2_variance`` of non-empty bins.
    level : float
        Confidence level of interval and band.
    interval : {"wilson", "clopper_pearson", "jeffreys"}
        Interval of the rate.
    effects : mapping of str to ndarray, optional
        By what clusters of rows divide the effective rows of each bin: ``rate`` those of the interval, ``gap`` those of
        the band. One cluster (infinity) leaves neither.
    """
    if effects is not None:
        return _clustered_columns(sums, effects, level=level, interval=interval)
    weight, score, rate = sums["w"], sums["wp"] / sums["w"], sums["wy"] / sums["w"]
    low, high = rate_interval(rate, effective_rows(weight, sums["w2"]), level=level, method=interval)
    band = central_part(weight, sums["wp"], sums["variance"], sums["w2_variance"], level=level)
    return _curve_columns(score, rate, (low, high), band)


def _clustered_columns(
    sums: dict[str, Floats], effects: Mapping[str, Floats], *, level: float, interval: RateInterval
) -> dict[str, Column]:
    """Return the same where clusters take effective rows away; the band is that of one row at least."""
    known = np.isfinite(effects["rate"]) & np.isfinite(effects["gap"])
    most = effective_rows(sums["w"], sums["w2"])
    rate = np.where(known, effects["rate"], 1.0)
    band = np.where(known, np.minimum(effects["gap"], np.maximum(most, 1.0)), 1.0)
    wide = sums | {"w2": sums["w2"] * rate, "w2_variance": sums["w2_variance"] * band}
    columns = bin_columns(wide, level=level, interval=interval)
    ends = ("rate_low", "rate_high", "band_low", "band_high")
    return columns | {name: np.where(known, np.asarray(columns[name]), np.nan) for name in ends}


def _curve_columns(
    score: Floats, rate: Floats, ends: tuple[Floats, Floats], band: tuple[Floats, Floats]
) -> dict[str, Column]:
    return {
        "mean_score": score,
        "rate": rate,
        "gap": score - rate,
        "rate_low": ends[0],
        "rate_high": ends[1],
        "band_low": band[0],
        "band_high": band[1],
    }


def _of_cells(
    table: Table, rows: nw.LazyFrame[Any] | None, groups: Groups, bins: Bins, drawn: Drawn
) -> tuple[Ints, Points]:
    """Return the segment and the columns of each non-empty bin between known edges."""
    filled = np.flatnonzero(groups.cells.sums["n"] > 0)
    sums = {name: values[filled] for name, values in groups.cells.sums.items()}
    index = groups.bin[filled]
    points = _placed(index, bins.lower()[index], bins.upper()[index], sums)
    effects = None
    if rows is not None and len(filled):
        effects = effects_in_cells(table, rows, groups, filled, bins, level=drawn.level)
    points |= bin_columns(sums, level=drawn.level, interval=drawn.interval, effects=effects)
    return np.searchsorted(groups.cells.starts, filled, side="right") - 1, points


def _placed(index: Ints, lower: Floats, upper: Floats, sums: dict[str, Floats]) -> Points:
    n: Ints = np.rint(sums["n"]).astype(np.int64)
    return {"bin": index, "lower": lower, "upper": upper, "n": n, "weight_sum": sums["w"]}


def _of_tallies(table: Table, rows: nw.LazyFrame[Any], groups: Groups, drawn: Drawn) -> tuple[Ints, Points]:
    """Return the segment and the columns of each point of curves through distinct scores."""
    parts: list[tuple[Ints, Points]] = []
    for narrow, some in by_width(table, rows):
        for segments, tally in read_tallies(table, some, groups):
            owner, points = _METHODS[drawn.method](tally, replace(drawn, narrow=narrow))
            parts.append((segments[owner], points))
    return _joined(parts) if parts else _no_points()


def _joined(parts: Sequence[tuple[Ints, dict[str, Any]]]) -> tuple[Ints, dict[str, Any]]:
    """Return the columns of all parts in the order of the segments."""
    owner = np.concatenate([owner for owner, _ in parts])
    order = np.argsort(owner, kind="stable")
    return owner[order], {name: np.concatenate([of[name] for _, of in parts])[order] for name in parts[0][1]}


def _no_points() -> tuple[Ints, Points]:
    nothing, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
    names = ("lower", "upper", "weight_sum", *_curve_columns(nothing, nothing, (nothing,) * 2, (nothing,) * 2))
    return whole, {"bin": whole, "n": whole} | dict.fromkeys(names, nothing)


def _of_equal_mass(table: Table, rows: nw.LazyFrame[Any], groups: Groups, drawn: Drawn) -> tuple[Ints, Points]:
    """Return the segment and the columns of each bin of about equal weight."""
    parts: list[tuple[Ints, dict[str, Any]]] = []
    for segments, tally in read_tallies(table, rows, groups):
        bins = equal_mass(tally, drawn.choice.quantiles)
        parts.append((segments[bins.segment], _placed(bins.bin, bins.lower, bins.upper, bins.sums) | bins.sums))
    if not parts:
        return _no_points()
    owner, sums = _joined(parts)
    points, effects = {name: sums.pop(name) for name in ("bin", "lower", "upper", "weight_sum")}, None
    points["n"] = np.rint(sums["n"]).astype(np.int64)
    if table.cluster is not None:
        find = partial(_bin_of_rows, owner, points["lower"])
        effects = effects_in_rows(table, rows, groups, find, len(owner), level=drawn.level)
    return owner, points | bin_columns(sums, level=drawn.level, interval=drawn.interval, effects=effects)


def _bin_of_rows(segment: Ints, lower: Floats, own: Ints, score: Floats) -> Ints:
    """Return the bin of each row: the last one of its segment that begins at its score or below.

    Examples
    --------
    >>> _bin_of_rows(np.array([0, 0, 1]), np.array([0.1, 0.5, 0.2]), np.array([1, 0, 0]), np.array([0.7, 0.5, 0.4]))
    array([2, 1, 0])
    """
    is_row = np.repeat([False, True], [len(lower), len(score)])
    order = np.lexsort((is_row, np.append(lower, score), np.append(segment, own)))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.cumsum(~is_row[order]) - 1
    return found[len(lower) :]


def _isotonic_points(tally: Tally, drawn: Drawn) -> tuple[Ints, Points]:
    """Return the steps of the isotonic fits; regions are those at its mean score (the next score above it)."""
    fit = blocks(tally)
    first, sizes = fit.first_cell, fit.last_cell - fit.first_cell + 1
    owner = np.searchsorted(fit.starts, np.arange(len(first)), side="right") - 1
    moment = np.add.reduceat(tally.weight * tally.score, first)
    mean = moment / fit.weight
    before = np.add.reduceat((tally.score < np.repeat(mean, sizes)).astype(np.int64), first)
    middle = np.minimum(first + before, fit.last_cell)
    ends = []
    for region in (confidence_region, consistency_region):
        found = [np.concatenate(side) for side in zip(*_by_segment(region, tally, drawn), strict=True)]
        ends.append((found[0][middle], found[1][middle]))
    number = np.arange(len(first)) - fit.starts[owner]
    points = _placed(number, fit.low_score, fit.high_score, {"n": fit.rows, "w": fit.weight})
    return owner, points | _curve_columns(mean, fit.value, ends[0], ends[1])


def _by_segment(region: Any, tally: Tally, drawn: Drawn) -> Iterator[tuple[Floats, Floats]]:
    """Give the region of each segment; all start from the seed, so that none depends on which other ones there are."""
    for i in range(len(tally)):
        rng = np.random.default_rng(drawn.seed)
        yield region(tally.part(i, i + 1), level=drawn.level, n_resamples=drawn.n_resamples, rng=rng)


def _smooth_points(tally: Tally, drawn: Drawn) -> tuple[Ints, Points]:
    """Return points of smooth curves, at the mean scores of bins."""
    owner, points, at = _points_in_bins(tally, drawn)
    means = kernel_means(tally, owner, at)
    effective = effective_rows(means.weight, means.squared)
    ends = rate_interval(np.clip(means.rate, 0.0, 1.0), effective, level=drawn.level, method=drawn.interval)
    half = normal_quantile(drawn.level) * np.sqrt(means.squared_variance) / means.weight
    band = np.clip(means.score - half, 0.0, 1.0), np.clip(means.score + half, 0.0, 1.0)
    return owner, points | _curve_columns(at, means.rate, ends, band)


def _loess_points(tally: Tally, drawn: Drawn) -> tuple[Ints, Points]:
    owner, points, at = _points_in_bins(tally, drawn)
    right = replace(tally, positive=tally.weight * tally.score)
    found = np.empty((4, len(at)))
    bounds = np.searchsorted(owner, np.arange(len(tally) + 1))
    for i in range(len(tally)):  # every segment has vertices of its own
        here, part = slice(bounds[i], bounds[i + 1]), tally.part(i, i + 1)
        value, _error, low, high = loess_curve(part, at[here], level=drawn.level)
        _value, error, _low, _high = loess_curve(right.part(i, i + 1), at[here], level=drawn.level)
        found[:, here] = value, low, high, error
    half = normal_quantile(drawn.level) * found[3]
    rate, low, high = np.clip(found[:3], 0.0, 1.0)
    band = np.clip(at - half, 0.0, 1.0), np.clip(at + half, 0.0, 1.0)
    return owner, points | _curve_columns(at, rate, (low, high), band)


def _points_in_bins(tally: Tally, drawn: Drawn) -> tuple[Ints, Points, Floats]:
    """Return segment, place and mean score of each non-empty bin, the mean among its scores whatever rounding does."""
    fixed = drawn.choice.fixed
    if fixed is None:
        bins = equal_mass(tally, drawn.choice.quantiles)
        points = _placed(bins.bin, bins.lower, bins.upper, bins.sums)
        return bins.segment, points, np.clip(bins.sums["wp"] / bins.sums["w"], bins.lower, bins.upper)
    index = fixed.find(tally.score, narrow=drawn.narrow)
    first = run_starts(index, tally.starts)
    merged, index = tally.merged(first), index[first]
    points = _placed(index, fixed.lower()[index], fixed.upper()[index], {"n": merged.rows, "w": merged.weight})
    return merged.segment, points, merged.score


_METHODS = {
    "isotonic": _isotonic_points,
    "kernel": _smooth_points,
    "loess": _loess_points,
}
