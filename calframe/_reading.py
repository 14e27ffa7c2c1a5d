"""Rows or sums to arrays: the tallies and score vectors of a table, segment after segment.

In memory the clean rows are sorted once and tallied exactly. On a remote engine an aggregate by segment and score does
it; where that would give more cells than are worth fetching, scores are first gathered on a fine grid of logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from calframe._cells import Groups
from calframe._classes import class_column, posterior_column
from calframe._columns import WHOLE_NUMBERS
from calframe._errors import warn
from calframe._kernels._binned import starts_of
from calframe._kernels._building import by_segment, tallies, tally_of_rows, tally_of_sums
from calframe._kernels._lookup import Lookup
from calframe._kernels._tally import Tally
from calframe._kernels._vectors import Vectors
from calframe._rows import clean_rows
from calframe._table import Table, model_alias
from calframe._testing._cluster_rows import ClusterRows
from calframe._testing._clusters import Clustered
from calframe._typing import Bools, Floats, Ints

MOST_CELLS = 5_000_000  # distinct scores fetched from a remote engine
GRID = 2**14  # cells of the logit grid that stands in for more
_WIDEST = 30.0  # logits beyond it share the outermost cells
_SUMS = ("rows", "weight", "positive", "squared", "squared_positive", "moment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The score vectors of a table, in segment order.

    Attributes
    ----------
    vectors : Vectors
        The vectors of the segments that have rows.
    segments : ndarray of int64
        The numbers of those segments.
    posterior : ndarray or None
        The true class probabilities of the same rows.
    surprise : ndarray or None
        Their log loss, where it was taken from logits.
    """

    vectors: Vectors
    segments: Ints
    posterior: Floats | None
    surprise: Floats | None


def read_rows(table: Table, *, engine: Any = None) -> nw.LazyFrame[Any]:
    """Return the clean rows of a table: read once into memory, or left on a remote engine."""
    rows, _ = clean_rows(table)
    return table.collect(rows, engine=engine).lazy() if table.in_memory else rows


def read_tallies(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, *, by_logit: bool = False
) -> Iterator[tuple[Ints, Tally]]:
    """Give the tallies of a table in chunks of whole segments, with the numbers of those segments.

    Parameters
    ----------
    table : Table
        The opened table.
    rows : narwhals.LazyFrame
        Its clean rows.
    groups : Groups
        Its segments.
    by_logit : bool
        Tell scores apart by their logits, which rounding has not joined yet; they are the scores of the tally then.
    """
    score = "_cf_z" if by_logit else "_cf_p"
    if not table.in_memory:
        segments, tally = _remote_tally(table, rows, groups, score)
        if len(tally):
            yield segments, tally
        return
    used = used_rows(table, rows, [*table.group_columns, score, "_cf_y"])
    weight = used["_cf_w"].to_numpy() if table.weighted else None
    yield from tallies(
        segment_codes(used, table, groups),
        used[score].to_numpy(),
        used["_cf_y"].to_numpy(),
        segments=len(groups),
        weight=weight,
        squared=None if weight is None else squared_weights(table, weight),
        sort=polars_sort,
    )


def read_matrix(table: Table, rows: nw.LazyFrame[Any], groups: Groups) -> Matrix:
    """Return the score vectors of a table; on a remote engine this fetches the rows."""
    several = table.view == "vectors"
    names = [class_column(i) for i in range(len(table.roles.classes))] if several else ["_cf_p"]
    true = [posterior_column(i) for i in range(len(table.roles.posterior))] if several else []
    loss = ["_cf_loss"] if several and table.roles.link == "logit" else []
    inner = ["_cf_cluster"] if table.cluster is not None else []
    used = used_rows(table, rows, [*table.group_columns, *names, *true, *loss, *inner, "_cf_y"])
    codes = segment_codes(used, table, groups)
    order = by_segment(codes, len(groups))
    in_order = len(groups) == 1 or bool(np.all(order[1:] > order[:-1]))

    def taken(columns: Sequence[str]) -> Any:
        matrix = used.select(columns).to_numpy(order="fortran")
        return matrix if in_order else np.asfortranarray(matrix[order])

    sizes = np.bincount(codes, minlength=len(groups))
    present = np.flatnonzero(sizes)
    weight = taken(["_cf_w"])[:, 0] if table.weighted else np.ones(len(codes))
    scores, label, posterior = taken(names), taken(["_cf_y"])[:, 0], taken(true) if true else None
    if not several:  # a positive class, then the other one: the first wins ties, so 0.5 says positive
        scores, label = np.asfortranarray(np.hstack([scores, 1.0 - scores])), 1.0 - label
    vectors = Vectors(
        starts=starts_of(sizes)[present],
        scores=scores,
        label=label.astype(np.int64),
        weight=weight,
        squared=squared_weights(table, weight),
        cluster=_clusters(used[inner[0]])[... if in_order else order] if inner else None,
    )
    surprise = taken(loss)[:, 0] if loss else None
    return Matrix(vectors=vectors, segments=present, posterior=posterior, surprise=surprise)


def read_clusters(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, *, only: Bools | None = None
) -> tuple[Ints, Clustered]:
    """Return the rows of a table (or of some of its segments) in their clusters, and the segments that have rows.

    A row whose cluster is null is a cluster of its own; so is each row of a table without clusters.
    """
    names = ["_cf_cluster"] if table.cluster is not None else []
    used = used_rows(table, rows, [*table.group_columns, *names, "_cf_p", "_cf_y"])
    codes = segment_codes(used, table, groups)
    if only is not None:
        used, codes = used.filter(pl.Series(only[codes])), codes[only[codes]]
    present, segment = np.unique(codes, return_inverse=True)
    cluster = _clusters(used[names[0]]) if names else -1 - np.arange(len(used))
    return present, Clustered.of(
        np.asarray(segment, dtype=np.int64),
        cluster,
        used["_cf_p"].to_numpy(),
        used["_cf_y"].to_numpy(),
        used["_cf_w"].to_numpy() if table.weighted else np.ones(len(used)),
        counts=table.roles.counts_rows,
    )


def read_with_clusters(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups, *, by_logit: bool = False
) -> Iterator[tuple[Ints, Tally, ClusterRows | None]]:
    """Give the tallies of `read_tallies`; of a table with clusters all at once, and with its rows.

    A cluster that spans segments is one in each of them. From a remote engine this fetches the rows then.
    """
    if table.cluster is None:
        for segments, tally in read_tallies(table, rows, groups, by_logit=by_logit):
            yield segments, tally, None
        return
    score = "_cf_z" if by_logit else "_cf_p"
    used = used_rows(table, rows, [*table.group_columns, "_cf_cluster", score, "_cf_y"])
    codes, label = segment_codes(used, table, groups), used["_cf_y"].to_numpy()
    scores = used[score].to_numpy()
    weight = used["_cf_w"].to_numpy() if table.weighted else np.ones(len(used))
    weights = {"weight": weight, "squared": squared_weights(table, weight)} if table.weighted else {}
    tally, segments = tally_of_rows(codes, scores, label, segments=len(groups), **weights)
    if len(segments):
        number = _clusters(used["_cf_cluster"])
        yield segments, tally, ClusterRows.of(codes, number, scores, label, weight, counts=table.roles.counts_rows)


def read_clustered(
    table: Table, rows: nw.LazyFrame[Any], groups: Groups
) -> Iterator[tuple[Ints, Tally, Clustered | None]]:
    """Give the tallies of `read_tallies`; of a table with clusters all at once, from `read_clusters`."""
    if table.cluster is None:
        for segments, tally in read_tallies(table, rows, groups):
            yield segments, tally, None
        return
    segments, found = read_clusters(table, rows, groups)
    if len(segments):
        yield segments, found.tally, found


def _clusters(values: pl.Series) -> Ints:
    """Return the number of each row's cluster; below 0, and of its own, where there is none."""
    ranks = cluster_ranks(values)
    return np.where(ranks == 0, -1 - np.arange(len(ranks)), ranks)


def cluster_ranks(clusters: pl.Series) -> Ints:
    """Return a number for each value of a column, 0 where there is none."""
    found: Ints = clusters.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    return found


def by_width(table: Table, rows: nw.LazyFrame[Any]) -> Iterator[tuple[bool, nw.LazyFrame[Any]]]:
    """Give the rows with float64 scores and those with float32 scores, where models differ in that."""
    if len(set(table.narrow)) == 1:
        yield table.narrow[0], rows
        return
    for narrow in (False, True):
        names = [model_alias(i) for i, found in enumerate(table.narrow) if found == narrow]
        yield narrow, rows.filter(nw.col("_cf_model").is_in(names))


def polars_sort(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return many numbers in ascending order, several times faster than NumPy."""
    return pl.Series(keys).sort().to_numpy()


def segment_codes(rows: pl.DataFrame, table: Table, groups: Groups) -> Ints:
    """Return the number of each row's segment."""
    if not table.group_columns:
        return np.broadcast_to(np.int64(0), len(rows))
    keys = groups.keys.select(*table.group_columns).to_polars()
    if len(table.group_columns) == 1 and rows[table.group_columns[0]].dtype in WHOLE_NUMBERS:
        known, values = (frame[table.group_columns[0]] for frame in (keys, rows))
        if not values.null_count():
            return Lookup.of(known.drop_nulls().cast(pl.Int64).to_numpy())(values.to_numpy()) - 1
    keys = keys.with_row_index("_cf_code")
    found = rows.lazy().select(table.group_columns)
    found = found.join(keys.lazy(), on=table.group_columns, how="left", nulls_equal=True, maintain_order="left")
    codes: Ints = found.select(pl.col("_cf_code").cast(pl.Int64)).collect().to_series().to_numpy()
    return codes


def used_rows(table: Table, rows: nw.LazyFrame[Any], names: Sequence[str]) -> pl.DataFrame:
    """Return the columns of the rows that are used, as polars holds them."""
    wanted = [*names, "_cf_w"] if table.weighted else list(names)
    found = table.collect(rows.filter(nw.col("_cf_n") == 1.0).select(*wanted))
    return found.to_polars()


def squared_weights(table: Table, weight: Floats) -> Floats:
    """Return the squares of weights as variances need them: the weights themselves where they count rows."""
    return weight if table.roles.weight_kind == "frequency" or not table.weighted else weight * weight


def _remote_tally(table: Table, rows: nw.LazyFrame[Any], groups: Groups, score: str) -> tuple[Ints, Tally]:
    rows = rows.filter(nw.col("_cf_n") == 1.0).with_columns(_cf_cell=nw.col(score))
    on_grid = int(groups.n.sum()) > MOST_CELLS and _distinct(table, rows) > MOST_CELLS
    if on_grid:
        rows = rows.with_columns(_cf_cell=_grid_cell(nw.col(score), is_logit=score == "_cf_z"))
    found = table.collect(_sums(rows, table, score)).to_polars()
    sums = {name: found[f"_cf_{name}"].cast(pl.Float64).to_numpy() for name in _SUMS}
    mean = sums.pop("moment") / sums["weight"]
    value = mean if on_grid else found["_cf_cell"].to_numpy()
    tally, segments = tally_of_sums(segment_codes(found, table, groups), value, sums)
    if on_grid:
        _warn_grid(tally)
    return segments, tally


def _distinct(table: Table, rows: nw.LazyFrame[Any]) -> int:
    """Return how many cells the tally of rows has."""
    cells = rows.select(*table.group_columns, "_cf_cell").unique().select(nw.len().alias("k"))
    return int(table.collect(cells).get_column("k").to_list()[0])


def _sums(rows: nw.LazyFrame[Any], table: Table, score: str) -> nw.LazyFrame[Any]:
    """Return the aggregate by segment and cell."""
    used, label = nw.col("_cf_n"), nw.col("_cf_y")
    weight = nw.col("_cf_w") if table.weighted else used
    squared = weight if table.roles.weight_kind == "frequency" or not table.weighted else weight * weight
    terms = {
        "rows": used,
        "weight": weight,
        "positive": weight * label,
        "squared": squared,
        "squared_positive": squared * label,
        "moment": weight * nw.col(score),
    }
    rows = rows.with_columns(**{f"_cf_{name}": term for name, term in terms.items()})
    return rows.group_by(*table.group_columns, "_cf_cell").agg(nw.col(f"_cf_{name}").sum() for name in _SUMS)


def _grid_cell(value: nw.Expr, *, is_logit: bool) -> nw.Expr:
    """Return the grid cell of a score, as the logit in its middle; certain scores have cells of their own."""
    if is_logit:
        logit = value
    else:
        inside = (value > 0.0) & (value < 1.0)
        share = nw.when(inside).then(value).otherwise(0.5)
        certain = nw.when(value >= 1.0).then(float("inf")).otherwise(float("-inf"))
        logit = nw.when(inside).then((share / (1.0 - share)).log()).otherwise(certain)
    step = 2.0 * _WIDEST / GRID
    cell = ((logit.clip(-_WIDEST, _WIDEST) + _WIDEST) / step).floor() * step - _WIDEST
    return nw.when(logit.abs() < float("inf")).then(cell).otherwise(logit)


def _warn_grid(tally: Tally) -> None:
    """Say that scores were gathered on a grid, and by how much that can move a number."""
    total, positive = tally.total(tally.weight), tally.total(tally.positive)
    negative = tally.negative
    pairs = positive * (total - positive)
    tied = tally.total(tally.positive * negative) / np.where(pairs > 0, 2.0 * pairs, np.inf)
    inside = np.maximum.reduceat(np.maximum(tally.positive, negative), tally.starts) / total
    warn(
        f"more than {MOST_CELLS:,} distinct scores: they were gathered on a grid of {GRID:,} logits. This moves auc by "
        f"at most {tied.max():.2g} and ecce_r and ecce_mad by at most {2 * inside.max():.2g}. Every other measure of "
        "distinct scores is that of the grid: isotonic fits and smooth curves hardly differ, but calibration_loss and "
        "refinement_loss, which are about equal scores, do."
    )
