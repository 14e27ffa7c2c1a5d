"""The run of tests over the segments of a table: each reads what it needs, bins, scores, vectors or clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calframe._cells import Groups, cells_plan, read_groups
from calframe._hypotheses import Plan, check_plan
from calframe._kernels._binned import effective_rows, segment_sum, spread
from calframe._kernels._equal_mass import equal_mass
from calframe._kernels._tally import Tally
from calframe._kernels._vectors import Vectors
from calframe._notes import of_ends
from calframe._nulls import BIN_TERMS, by_bins
from calframe._reading import by_width, read_clusters, read_matrix, read_rows, read_tallies
from calframe._registry import Cells, Scored
from calframe._table import Table
from calframe._testing._clusters import Clustered, clustered, clustered_sum
from calframe._testing._draws import Drawing, equal_weights, unweighted
from calframe._testing._found import Found
from calframe._testing._group_rows import GroupRows
from calframe._testing._groups import Groups as TestGroups
from calframe._testing._groups import hosmer_lemeshow, rough_law
from calframe._testing._kernel import kernel
from calframe._testing._largest import adjusted_by_largest
from calframe._testing._multinomial import multinomial_hosmer_lemeshow
from calframe._testing._regressions import HYPOTHESES, clustered_cox, cox
from calframe._testing._sums import Factor, brier_factor, gap, gap_factor, spiegelhalter, sum_ratio
from calframe._testing._walk import kolmogorov_smirnov, kuiper, largest_ratio, range_ratio
from calframe._typing import Bools, Floats, Ints

Read: TypeAlias = Literal["bins", "scores", "logits", "vectors"]
Results: TypeAlias = dict[tuple[str, str], Found]
Judged: TypeAlias = dict[tuple[str, str], tuple[Floats, Found]]

CALIBRATED = "calibrated"
_FEW_WEIGHTED = 1_000  # effective rows of unequal weight below which each label is drawn by itself
_MOST_DRAWN = 100_000  # rows, however little they are worth


def found_by(table: Table, plan: Plan, *, engine: Any) -> tuple[Groups, Results, GroupRows]:
    """Run tests on every segment of a table; with the groups of Hosmer and Lemeshow, where that is one of them."""
    check_plan(table, plan)
    rows = read_rows(table, engine=engine)
    if table.cluster is None:
        return _independent(table, rows, plan, plan.methods)
    whole = tuple(method for method in plan.methods if _reads(method, plan, table) == "vectors")
    rest = tuple(method for method in plan.methods if method not in whole)
    parts = [_independent(table, rows, plan, whole)] if whole else []  # whole vectors carry their clusters along
    parts += [_clustered(table, rows, plan, rest)] if rest else []
    found = {key: one for _, part, _ in parts for key, one in part.items()}
    listed = GroupRows.joined([(np.arange(len(groups)), one) for groups, _, one in parts])
    return parts[0][0], dict(sorted(found.items(), key=lambda item: plan.methods.index(item[0][0]))), listed


def _clustered(
    table: Table, rows: nw.LazyFrame[Any], plan: Plan, methods: tuple[str, ...]
) -> tuple[Groups, Results, GroupRows]:
    groups = read_groups(table, table.collect(cells_plan(table, (), bins=None, rows=rows)), ())
    gathered = _Gathered(segments=len(groups))
    drawings = {method: plan.drawing(method, segments=len(groups)) for method in methods}
    for narrow, some in by_width(table, rows):
        segments, clusters = read_clusters(table, some, groups)
        here = plan.of_width(narrow=narrow)
        for method in methods if len(segments) else ():
            drawing = drawings[method].part(_share(groups, segments))
            gathered.put(method, segments, _of_clusters(method, clusters, here, drawing))
        for segments, tally in read_tallies(table, some, groups) if "hosmer_lemeshow" in methods else ():
            gathered.list_groups(segments, here.group_rows(tally))
    return groups, gathered.results(methods), gathered.listed()


def _independent(
    table: Table, rows: nw.LazyFrame[Any], plan: Plan, asked: tuple[str, ...]
) -> tuple[Groups, Results, GroupRows]:
    reads = {method: _reads(method, plan, table) for method in asked}
    fixed = plan.choice.fixed if "bins" in reads.values() else None
    drawn = table.weighted and reads.get("resampling") in ("bins", "scores")
    terms = BIN_TERMS if fixed is not None else ("w2",) if drawn else ()
    groups = read_groups(table, table.collect(cells_plan(table, terms, bins=fixed, rows=rows)), terms)
    gathered = _Gathered(segments=len(groups))
    drawings = {method: plan.drawing(method, segments=len(groups)) for method in asked}
    uneven = _uneven(table, groups) if drawn else np.zeros(len(groups), dtype=np.bool_)
    if uneven.any():
        _of_rows(gathered, table, rows, groups, plan, drawings["resampling"], only=uneven)
    if fixed is not None:
        _of_bins(gathered, groups, plan, drawings["resampling"], counts=_is_counted(table), but=uneven)
    for is_logit in (False, True):
        methods = [method for method in asked if reads[method] == ("logits" if is_logit else "scores")]
        if methods:
            _of_scores(gathered, table, rows, groups, plan, drawings, methods, is_logit=is_logit, but=uneven)
    methods = [method for method in asked if reads[method] == "vectors"]
    for segments, vectors, sample in _samples(table, rows, groups, plan) if methods else ():
        for method in methods:
            drawing = drawings[method].part(_share(groups, segments))
            gathered.put(method, segments, _of_vectors(method, sample, plan, drawing))
        if "hosmer_lemeshow" in methods:
            gathered.list_groups(segments, plan.vector_group_rows(vectors))
    return groups, gathered.results(asked), gathered.listed()


def _of_scores(
    gathered: _Gathered,
    table: Table,
    rows: nw.LazyFrame[Any],
    groups: Groups,
    plan: Plan,
    drawings: Mapping[str, Drawing],
    methods: Sequence[str],
    *,
    is_logit: bool,
    but: Bools,
) -> None:
    """Test by distinct scores; by resampling not the segments `but`."""
    for narrow, some in by_width(table, rows):
        here = plan.of_width(narrow=narrow)
        for segments, tally in read_tallies(table, some, groups, by_logit=is_logit):
            for method in methods:
                left = ~(but[segments] & (method == "resampling"))
                if left.any():
                    drawing = drawings[method].part(_share(groups, segments[left]))
                    found = _of_tally(method, _counted(table, tally.only(left)), here, drawing, is_logit=is_logit)
                    gathered.put(method, segments[left], found)
            if "hosmer_lemeshow" in methods:
                gathered.list_groups(segments, here.group_rows(tally))


def _share(groups: Groups, segments: Ints) -> float:
    """Return which share of all rows some segments hold."""
    return float(groups.n[segments].sum() / groups.n.sum())


def _reads(method: str, plan: Plan, table: Table) -> Read:
    """Return what a method reads: sums over bins, distinct scores or logits, or whole vectors."""
    if table.view == "vectors" or method == "kernel":
        return "vectors"
    if method != "resampling":
        return "scores"
    if plan.metric.reads == "vectors":
        return "vectors"
    weighted = table.weighted and not table.roles.counts_rows
    if plan.choice.fixed is not None and by_bins(plan.metric, weighted=weighted):
        return "bins"
    return "logits" if plan.metric.reads == "ranks" and table.has_logits else "scores"


def _samples(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, plan: Plan
) -> Iterator[tuple[Ints, Vectors, Scored]]:
    """Give the vectors of a table, those of float64 and those of float32 scores, and the numbers of their segments.

    First as they were read, then as they are tested: rows that stand for several are repeated.
    """
    fixed = plan.choice.fixed
    for narrow, some in by_width(table, rows):
        matrix = read_matrix(table, some, groups)
        if len(matrix.segments):
            yield (
                matrix.segments,
                matrix.vectors,
                Scored(
                    vectors=_each(matrix.vectors) if _is_counted(table) else matrix.vectors,
                    bin_of=plan.choice.finder(narrow=narrow),
                    n_bins=0 if fixed is None else fixed.count,
                    quantiles=plan.choice.quantiles,
                    options=plan.options,
                ),
            )


class _Gathered:
    """Results of segments that come in parts."""

    def __init__(self, *, segments: int) -> None:
        self._segments = segments
        self._parts: dict[tuple[str, str], list[tuple[Ints, Found]]] = {}
        self._listed: list[tuple[Ints, GroupRows]] = []

    def put(self, method: str, segments: Ints, found: Mapping[str, Found]) -> None:
        """Keep what a method says of some segments."""
        for hypothesis, one in found.items():
            self._parts.setdefault((method, hypothesis), []).append((segments, one))

    def list_groups(self, segments: Ints, groups: GroupRows) -> None:
        """Keep the groups of some segments."""
        self._listed.append((segments, groups))

    def listed(self) -> GroupRows:
        """Return the groups that were kept of all segments."""
        return GroupRows.joined(self._listed)

    def results(self, methods: tuple[str, ...]) -> Results:
        """Return what each test says of all segments, in the order asked."""
        asked = [(method, one) for method in methods for one in (HYPOTHESES if method == "cox" else (CALIBRATED,))]
        return {key: self._whole(self._parts.get(key, [])) for key in asked}

    def _whole(self, parts: list[tuple[Ints, Found]]) -> Found:
        nothing = np.full(self._segments, np.nan)
        whole = Found.of_law(nothing.copy(), nothing.copy(), "")
        draws = [one.draws for _, one in parts if one.draws is not None]
        kept = np.full((len(draws[0]), self._segments), np.nan) if draws else None
        for segments, one in parts:
            for field in fields(Found):
                if field.name != "draws":
                    getattr(whole, field.name)[segments] = getattr(one, field.name)
            if kept is not None and one.draws is not None:
                kept[:, segments] = one.draws
        return replace(whole, draws=kept)


def _uneven(table: Table, groups: Groups) -> Bools:
    """Return where weights differ that are worth so few rows that sums of them follow no law that is known."""
    weight, squared = groups.cells.total("w"), groups.cells.total("w2")
    few = (groups.n > 0) & (groups.n <= _MOST_DRAWN) & (effective_rows(weight, squared) < _FEW_WEIGHTED)
    return few & (not _is_counted(table)) & ~equal_weights(groups.n.astype(np.float64), weight, squared)


def _of_rows(
    gathered: _Gathered,
    table: Table,
    rows: nw.LazyFrame[Any],
    groups: Groups,
    plan: Plan,
    drawing: Drawing,
    *,
    only: Bools,
) -> None:
    """Test some segments by drawing the label of each row by itself."""
    for narrow, some in by_width(table, rows):
        segments, each = read_clusters(table, some, groups, only=only)
        if len(segments):
            here = plan.of_width(narrow=narrow)
            null = here.null("resampling", drawing.part(_share(groups, segments)))
            gathered.put("resampling", segments, {CALIBRATED: null.of_rows(each, here.bins_of)})


def _of_bins(gathered: _Gathered, groups: Groups, plan: Plan, drawing: Drawing, *, counts: bool, but: Bools) -> None:
    weight, starts = groups.cells.sums["w"], groups.cells.starts
    used = np.flatnonzero((segment_sum(weight, starts) > 0.0) & ~but)
    drawing = drawing.part(_share(groups, used)) if but.any() else drawing
    keep = (weight > 0.0) & spread(~but, starts, len(weight))
    if len(used):
        before = np.concatenate([[0], np.cumsum(keep)])
        sums = {name: values[keep] for name, values in groups.cells.sums.items()}
        starts = before[groups.cells.starts[used]]
        cells = Cells(starts=starts, sums=sums if counts else _unweighted(sums, starts))
        gathered.put("resampling", used, {CALIBRATED: plan.null("resampling", drawing).of_bins(cells)})


def _unweighted(sums: Mapping[str, Floats], starts: Ints) -> Mapping[str, Floats]:
    """Return sums over bins without weights in the segments whose rows all weigh the same."""
    rows, weight, squared = (segment_sum(sums[name], starts) for name in ("n", "w", "w2"))
    alike = equal_weights(rows, weight, squared)
    if not alike.any() or np.array_equal(rows, weight):
        return sums
    each = spread(np.where(alike, weight / rows, 1.0), starts, len(sums["n"]))
    here = spread(alike, starts, len(sums["n"]))
    powers = {"w": 1, "wp": 1, "wy": 1, "variance": 1, "w2": 2, "w2_variance": 2}
    plain = {name: sums[name] / each**power for name, power in powers.items()}
    whole = {name: np.where(here, np.rint(plain[name]), plain[name]) for name in ("w", "wy", "w2")}
    return {**sums, **plain, **whole}


def _counted(table: Table, tally: Tally) -> Tally:
    """Return a tally whose rows are counted as often as weights say; equal weights that are importances say nothing."""
    if not table.weighted:
        return tally
    return replace(tally, rows=tally.weight) if _is_counted(table) else unweighted(tally)


def _is_counted(table: Table) -> bool:
    return table.roles.counts_rows


def _each(vectors: Vectors) -> Vectors:
    """Return rows as often as their weights say: their classes are drawn one by one."""
    times = vectors.weight.astype(np.int64)
    row = np.repeat(np.arange(len(times)), times)
    one = np.ones(len(row))
    return replace(
        vectors,
        starts=(np.cumsum(times) - times)[vectors.starts],
        scores=np.asfortranarray(vectors.scores[row]),
        label=vectors.label[row],
        weight=one,
        squared=one,
        cluster=None if vectors.cluster is None else vectors.cluster[row],
    )


def _of_tally(method: str, tally: Tally, plan: Plan, drawing: Drawing, *, is_logit: bool) -> dict[str, Found]:
    if method == "cox":
        return cox(tally, drawing, floor=plan.options.floor)
    if method == "hosmer_lemeshow":
        asked = plan.groups.fixed.count if plan.groups.fixed is not None else plan.groups.quantiles
        return {CALIBRATED: hosmer_lemeshow(tally, plan.groups_of, df=plan.df, asked=asked, drawing=drawing)}
    if method in _PLAIN:
        return {CALIBRATED: _PLAIN[method](tally, drawing)}
    null = plan.null(method, drawing)
    if by_bins(null.metric, weighted=not np.array_equal(tally.weight, tally.squared)):
        return {CALIBRATED: null.of_bins(_mass_cells(tally, plan.choice.quantiles))}
    return {CALIBRATED: null.of_tally(tally, plan.bins_of, is_logit=is_logit)}


_PLAIN: Mapping[str, Callable[[Tally, Drawing], Found]] = {
    "spiegelhalter": spiegelhalter,
    "gap": gap,
    "ecce": kuiper,
    "ks": kolmogorov_smirnov,
}


def _of_clusters(method: str, rows: Clustered, plan: Plan, drawing: Drawing) -> dict[str, Found]:
    if method in _SUMS:
        factor = _SUMS[method]
        return {CALIBRATED: clustered_sum(rows, factor, partial(sum_ratio, factor=factor), drawing)}
    if method in ("ecce", "ks"):
        ratio = range_ratio if method == "ecce" else largest_ratio
        return {CALIBRATED: clustered(rows, ratio, side="greater", drawing=drawing)}
    if method == "cox":
        return clustered_cox(rows, drawing, floor=plan.options.floor)
    if method == "hosmer_lemeshow":
        found = clustered(rows, lambda tally: _group_sums(tally, plan).statistic(), side="greater", drawing=drawing)
        return {CALIBRATED: replace(found, groups=_group_sums(rows.tally, plan).counts().astype(np.float64))}
    return {CALIBRATED: plan.null(method, drawing).of_clusters(rows, plan.bins_of)}


def _group_sums(tally: Tally, plan: Plan) -> TestGroups:
    return TestGroups.of(tally, plan.groups_of(tally))


_SUMS: Mapping[str, Factor] = {"spiegelhalter": brier_factor, "gap": gap_factor}


def _mass_cells(tally: Tally, quantiles: int | None) -> Cells:
    bins = equal_mass(tally, quantiles)
    return Cells(starts=bins.starts, sums=bins.sums)


def _of_vectors(method: str, sample: Scored, plan: Plan, drawing: Drawing) -> dict[str, Found]:
    if method == "kernel":
        return {CALIBRATED: kernel(sample.vectors, law=plan.kernel_law, drawing=drawing)}
    if method == "hosmer_lemeshow":
        count, bin_of = plan.vector_groups
        found = multinomial_hosmer_lemeshow(sample.vectors, count=count, df=plan.df, drawing=drawing, bin_of=bin_of)
        return {CALIBRATED: found}
    return {CALIBRATED: plan.null(method, drawing).of_vectors(sample)}


def judged(found: Results, plan: Plan) -> tuple[Judged, tuple[str, ...]]:
    """Return each test with its adjusted p-values, and what is to be said of all together."""
    out: Judged = {}
    notes: dict[str, None] = {}
    for (method, hypothesis), one in found.items():
        if plan.correction == "max":
            values, noted = adjusted_by_largest(one, side=plan.side_of(method)), one
        else:
            values, noted = one.adjusted(plan.correction, plan.alpha)
        said = noted.beyond_reach(plan.correction, plan.alpha, draws=plan.n_resamples)
        ends = of_ends(one.at_ends, plan.options.floor)
        notes |= dict.fromkeys(filter(None, (said and said[1], rough_law(noted), ends)))
        out[method, hypothesis] = values, noted if said is None else noted.undecided(*said)
    return out, tuple(notes)
