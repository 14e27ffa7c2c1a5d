"""Segments on a fine score grid: one aggregate per grouping, then verdicts, curves and score ranges from it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from calframe._auditing._gaps import SegmentSums, judged, judged_columns
from calframe._auditing._tables import Audited, AuditOptions, audited
from calframe._binning import Bins
from calframe._cells import Groups, cells_plan, read_groups
from calframe._closing import declared_categories, empty_categories, keys_as_text, unique_names
from calframe._curve_tables import bin_columns
from calframe._drifting._clusters import summed_clusters
from calframe._hypotheses import generator
from calframe._kernels._binned import ranges, segment_sum, sizes_of, spread, starts_of
from calframe._kernels._intervals import score_test
from calframe._kernels._ranked import quantile_bins
from calframe._measures import METRICS
from calframe._nulls import Null
from calframe._registry import Cells, Options
from calframe._roles import Roles
from calframe._table import Table, open_table
from calframe._testing._draws import Drawing
from calframe._typing import Bools, Floats, Ints
from calframe._verdicts import MIN_ROWS, SHOWN_ROWS, Rules, worst_first

ECE_BINS = 15
FINE = 64 * ECE_BINS  # k/960: every 64th edge is exactly an edge of 15 bins
CURVE_ROWS = 120  # rows a bin of a segment's curve should have
HEAT_RANGES = 8
HEAT_ROWS = 50  # below which a cell of the heatmap shows no number
BARS = 24
_DRAWS = 1000  # of all labels, as the verbs `audit` and `test` draw them
_ANY_NUMBER = 2**53
LIMITS = (0.025, 0.05, 0.1, 0.2, 1.0)  # each a whole number of cells a bar
_NEARLY_ALL = 0.995
_SQUARED = ("w2", "w2_variance")
_TERMS = ("wp", "wy", "w2", "variance", "w2_variance", "square", "surprise", "impossible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Segments of one grouping with their sums on a score grid.

    Attributes
    ----------
    names : tuple of str
        The text of each segment, unique.
    cells : Cells
        Sums per cell.
    bin : ndarray of int64
        The bin of each cell.
    n, n_missing, n_invalid, n_zero : ndarray of int64
        Row counts of each segment.
    empty : tuple of str
        Categories that are declared but have no row.
    effect : ndarray or None
        By how much the rows of each segment are worth fewer, where they are in clusters.
    """

    names: tuple[str, ...]
    cells: Cells
    bin: Ints
    n: Ints
    n_missing: Ints
    n_invalid: Ints
    n_zero: Ints
    empty: tuple[str, ...] = ()
    effect: Floats | None = None

    def clustered(self, effect: Floats) -> Part:
        """Return the part with squared weights larger by the design effect of each segment, which goes for its cells.

        So intervals, bands and the ECE of right scores are those of the effective rows that clusters leave.
        """
        effect = np.maximum(np.nan_to_num(effect, nan=1.0), 1.0)
        times = spread(effect, self.cells.starts, len(self.bin))
        sums = {name: values * times if name in _SQUARED else values for name, values in self.cells.sums.items()}
        return replace(self, cells=Cells(starts=self.cells.starts, sums=sums), effect=effect)

    def segment(self) -> Ints:
        """Return the segment of each cell."""
        return spread(np.arange(len(self.names)), self.cells.starts, len(self.bin))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """One grouping, worst segment first.

    Attributes
    ----------
    column : str
        The segment column; empty for the whole table.
    segments : polars.DataFrame
        One row a segment: counts, rate, mean_score, gap with both intervals, p-values, verdict, errors.
    curves : polars.DataFrame
        One row per segment and bin of its reliability curve.
    ranges : tuple of str
        Names of the score ranges of the heatmap, ascending.
    heat : polars.DataFrame
        One row per segment and score range.
    empty : tuple of str
        Declared categories without rows.
    """

    column: str
    segments: pl.DataFrame
    curves: pl.DataFrame
    ranges: tuple[str, ...]
    heat: pl.DataFrame
    empty: tuple[str, ...]


def read_part(data: Any, roles: Roles, *, engine: Any) -> Part:
    """Run the aggregate of one grouping."""
    bins = Bins.of_count(FINE, closed="left")
    table = open_table(data, roles, bins=bins)
    groups = read_groups(table, table.collect(cells_plan(table, _TERMS, bins=bins), engine=engine), _TERMS)
    if not table.keys:
        return _part(groups, ("All rows",), ())
    names = unique_names(list(keys_as_text(table, groups, table.keys[0])))
    return _in_declared_order(_part(groups, names, tuple(empty_categories(table, groups, table.keys[0]))), table)


def whole(part: Part) -> Part:
    """Return all segments of a part as one."""
    present, place = np.unique(part.bin, return_inverse=True)
    sums = {name: _added(place, values) for name, values in part.cells.sums.items()}
    counts = [np.array([counts.sum()]) for counts in (part.n, part.n_missing, part.n_invalid, part.n_zero)]
    return Part(
        names=("All rows",),
        cells=Cells(starts=np.zeros(1, dtype=np.int64), sums=sums),
        bin=present.astype(np.int64),
        n=counts[0],
        n_missing=counts[1],
        n_invalid=counts[2],
        n_zero=counts[3],
    )


def audited_segments(
    parts: Sequence[Part], data: Any, roles: Roles, *, tolerance: float, alpha: float, engine: Any
) -> tuple[list[pl.DataFrame], Audited]:
    """Audit the segments of all groupings together; return the rows of each part in its order, and the audit."""
    options = AuditOptions(
        depth=1,
        reference={},
        tolerance=tolerance,
        alpha=alpha,
        correction="holm",
        min_rows=MIN_ROWS,
        numeric_bins=None,
        max_segments=_ANY_NUMBER,
        ecce=True,
        n_resamples=_DRAWS,
        seed=0,
        keyed=False,
    )
    found = audited(data, roles, options, engine=engine)
    rows = []
    for part, column in zip(parts, roles.by, strict=True):
        own = found.table.filter(pl.col("columns") == column)
        names = pl.DataFrame({"segment": [f"{column}={name}" for name in part.names]})
        rows.append(names.join(own, on="segment", how="left", maintain_order="left"))
    return rows, found


def summed_whole(
    overall: Part, audit: Audited | None, data: Any, roles: Roles, *, alpha: float, engine: Any
) -> SegmentSums:
    """Return the sums of all rows as one segment, with the effective rows that clusters leave; an audit knows these."""
    if audit is not None and roles.cluster is not None:
        return audit.whole
    sums = SegmentSums.of_cells(overall.n, overall.cells.total, frequency=roles.counts_rows)
    if roles.cluster is None:
        return sums
    cells = summed_clusters(open_table(data, replace(roles, by=())), engine=engine)
    return sums.clustered(cells.samples(np.zeros(1, dtype=np.int64), 1).scatter(sums.gap), alpha / 2.0)


def judged_whole(sums: SegmentSums, *, tolerance: float, alpha: float) -> pl.DataFrame:
    """Judge all rows as one segment, alone."""
    found = judged(sums, Rules(tolerance=tolerance, alpha=alpha))
    return pl.DataFrame(
        {
            **sums.told_clusters(),
            **judged_columns(sums, found),
            "pvalue": found.pvalue,
            "pvalue_adjusted": found.pvalue_adjusted,
            "verdict": list(found.verdict),
            "rows_needed": found.rows_needed,
            "net": sums.count * sums.gap,
        }
    )


def grouping(part: Part, rows: pl.DataFrame, overall: Part, *, column: str, alpha: float) -> Grouping:
    """Put together what a report shows of one grouping; `rows` are those of its audit."""
    segments = _segment_table(part, rows)
    order = worst_first(segments["verdict"].to_list(), segments["net"].to_numpy())
    ranges, range_of = score_ranges(overall, HEAT_RANGES)
    return Grouping(
        column=column,
        segments=segments[order],
        curves=curve_table(part, (segments["verdict"] != "few").to_numpy(), level=1.0 - alpha),
        ranges=ranges,
        heat=_heat_table(part, ranges, range_of, alpha=alpha),
        empty=part.empty,
    )


def merge(part: Part, bins: Ints) -> tuple[Cells, Ints, Ints]:
    """Merge neighbouring cells of each segment that share a coarser bin.

    Returns
    -------
    cells, bin, segment
        The coarser cells, their bins and their segments.
    """
    segment = part.segment()
    new = np.flatnonzero((np.diff(segment, prepend=-1) != 0) | (np.diff(bins, prepend=-1) != 0))
    sums = {name: segment_sum(values, new) for name, values in part.cells.sums.items()}
    starts = np.searchsorted(new, part.cells.starts)
    return Cells(starts=starts.astype(np.int64), sums=sums), bins[new], segment[new]


def curve_table(part: Part, enough: Bools, *, level: float) -> pl.DataFrame:
    """Return reliability curves in bins of about equal weight, fewer where a segment has fewer rows, one if too few."""
    worth = part.n if part.effect is None else np.rint(part.n / part.effect).astype(np.int64)
    counts = np.clip(worth // CURVE_ROWS, 3, ECE_BINS)
    counts = np.where(enough, counts, 1)
    cells, _, segment = merge(part, quantile_bins(part.cells.sums["w"], part.cells.starts, counts))
    filled = (cells.sums["n"] > 0) & (part.n[segment] >= SHOWN_ROWS)
    sums = {name: values[filled] for name, values in cells.sums.items()}
    columns = bin_columns(sums, level=level, interval="wilson")
    frame = pl.DataFrame(
        {
            "segment": pl.Series([part.names[i] for i in segment[filled]], dtype=pl.String),
            "n": np.rint(sums["n"]).astype(np.int64),
            **columns,
        }
    )
    below, above = pl.col("rate") < pl.col("band_low"), pl.col("rate") > pl.col("band_high")
    return frame.with_columns(
        state=pl.when(below).then(pl.lit("over")).when(above).then(pl.lit("under")).otherwise(pl.lit("in"))
    )


def histogram(part: Part, *, limit: float) -> pl.DataFrame:
    """Return rows per bar of equal width from 0 to `limit`, for a part of one segment; the last bar holds the rest."""
    width = round(limit * FINE) // BARS  # whole cells, so that no bar gets more than its share
    place = np.minimum(part.bin // width, BARS - 1)
    n = np.bincount(place, weights=part.cells.sums["n"], minlength=BARS)
    edges = np.linspace(0.0, limit, BARS + 1)
    return pl.DataFrame({"lower": edges[:-1], "upper": edges[1:], "n": np.rint(n).astype(np.int64)})


def score_limit(part: Part, curve: pl.DataFrame) -> float:
    """Return the upper end of the axes: 1, or a round number above all rates and nearly all scores, if small."""
    if not part.n.sum() or not curve.height:
        return 1.0
    share = np.cumsum(part.cells.sums["n"]) / part.cells.sums["n"].sum()
    high = (part.bin[np.searchsorted(share, _NEARLY_ALL)] + 1) / FINE
    return next(limit for limit in LIMITS if max(high, *curve["rate"].to_list()) <= limit)


def score_ranges(overall: Part, count: int) -> tuple[tuple[str, ...], Ints]:
    """Return names of score ranges of about equal weight, and the range of each fine bin."""
    bins = quantile_bins(overall.cells.sums["w"], overall.cells.starts, np.array([count]))
    used = np.unique(bins)
    first = overall.bin[np.searchsorted(bins, used)]  # bins ascend with the score
    edges = np.append(first, overall.bin[-1] + 1) / FINE
    return _range_names(edges), np.searchsorted(first, np.arange(FINE), side="right") - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChanceError:
    """The ECE that right scores show: its mean, what it stays under in 95 % of cases, and how often it is as large."""

    mean: float
    high: float
    pvalue: float


def chance_error(part: Part) -> ChanceError:
    """Return the ECE that right scores show on a part of one segment, by the test by resampling."""
    cells = merge(part, part.bin * ECE_BINS // FINE)[0]
    if not cells.sums["w"].sum() > 0:
        return ChanceError(mean=0.0, high=0.0, pvalue=1.0)
    drawing = Drawing(n_resamples=_DRAWS, rng=generator(0, "resampling"))  # as the verb, so that both say the same
    found = Null(metric=METRICS["ece"], options=Options(), side="greater", drawing=drawing, keep=True).of_bins(cells)
    mean = float(METRICS["ece_expected"].value(cells)[0])
    return ChanceError(mean=mean, high=float(np.quantile(np.asarray(found.draws), 0.95)), pvalue=float(found.pvalue[0]))


def fingerprint(parts: list[Part]) -> str:
    """Return a hash of row counts per segment and fine score bin: equal tables give equal ones on every engine."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update("\x1f".join(part.names).encode())
        for values in (part.cells.starts, part.bin, np.rint(part.cells.sums["n"]).astype(np.int64), part.n_missing):
            digest.update(np.ascontiguousarray(values, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def _added(place: Ints, values: Floats) -> Floats:
    return np.asarray(np.bincount(place, weights=values), dtype=np.float64)


def _part(groups: Groups, names: tuple[str, ...], empty: tuple[str, ...]) -> Part:
    return Part(
        names=names,
        cells=groups.cells,
        bin=groups.bin,
        n=groups.n,
        n_missing=groups.n_missing,
        n_invalid=groups.n_invalid,
        n_zero=groups.n_zero,
        empty=empty,
    )


def _in_declared_order(part: Part, table: Table) -> Part:
    """Sort segments as their categories are declared, so that equals keep that order."""
    key = table.keys[0]
    declared = {name: i for i, name in enumerate(declared_categories(table, key))} if key.categorical else {}
    if not declared:
        return part
    order = sorted(range(len(part.names)), key=lambda i: declared.get(part.names[i], len(declared)))
    return _reordered(part, np.array(order, dtype=np.int64))


def _reordered(part: Part, order: Ints) -> Part:
    sizes = sizes_of(part.cells.starts, len(part.bin))
    cells = ranges(part.cells.starts[order], sizes[order])
    return Part(
        names=tuple(part.names[i] for i in order),
        cells=Cells(
            starts=starts_of(sizes[order]), sums={name: values[cells] for name, values in part.cells.sums.items()}
        ),
        bin=part.bin[cells],
        n=part.n[order],
        n_missing=part.n_missing[order],
        n_invalid=part.n_invalid[order],
        n_zero=part.n_zero[order],
        empty=part.empty,
    )


def _segment_table(part: Part, rows: pl.DataFrame) -> pl.DataFrame:
    coarse, _, _ = merge(part, part.bin * ECE_BINS // FINE)
    values = {name: METRICS[name].value(coarse) for name in ("brier", "log_loss", "ece", "ece_expected")}
    counts = {"n": part.n, "n_missing": part.n_missing, "n_invalid": part.n_invalid}
    sums = {"weight_sum": part.cells.total("w"), "positives": part.cells.total("wy")}
    told = rows.select(name for name in rows.columns if name not in {"segment", "depth", "columns", *counts, *sums})
    frame = pl.DataFrame({"segment": part.names, **counts, **sums, **told.to_dict(), **values})
    shown = pl.col("n") >= SHOWN_ROWS  # the numbers of one or two rows would be those rows
    return frame.with_columns(pl.when(shown).then(pl.col(pl.Float64).fill_nan(None)))


def _heat_table(part: Part, ranges: tuple[str, ...], range_of: Ints, *, alpha: float) -> pl.DataFrame:
    cells, where, segment = merge(part, range_of[part.bin])
    sums = cells.sums
    weight = np.where(sums["w"] > 0, sums["w"], np.nan)
    rate, score = sums["wy"] / weight, sums["wp"] / weight
    n = np.where(sums["w2"] > 0, sums["w"] ** 2 / np.where(sums["w2"] > 0, sums["w2"], 1.0), 1.0)
    shown = sums["n"] >= HEAT_ROWS
    frame = pl.DataFrame(
        {
            "segment": [part.names[i] for i in segment],
            "range": [ranges[i] for i in where],
            "n": np.rint(sums["n"]).astype(np.int64),
            "gap": score - rate,
            "shown": shown,
            "clear": shown & (score_test(rate, score, n) <= alpha),
        }
    )
    return frame.filter(pl.col("n") > 0)


def _range_names(edges: Floats) -> tuple[str, ...]:
    """Return ranges as text, with as many decimals as keep them apart."""
    for decimals in (0, 1, 2):
        texts = [f"{edge * 100:.{decimals}f}" for edge in edges]
        if len(set(texts)) == len(texts):
            break
    return tuple(f"{low}–{high}%" for low, high in pairwise(texts))
