"""How far a table lies within what a map was fitted on: rows of unseen segments, without a score, and out of range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from calframe._columns import exact_column
from calframe._maps._applying import Batches, one_score, polars_rows
from calframe._maps._forms import OneVersusRest, Softmax
from calframe._maps._inputs import check_names, shares_of
from calframe._maps._map import CalibrationMap, head_of
from calframe._maps._segments import Finder
from calframe._maps._values import expit
from calframe._results import like
from calframe._source import opened
from calframe._typing import Floats

FLAGS = ("_cf_unseen", "_cf_missing", "_cf_below", "_cf_above")
COUNTS = ("n_missing", "n_below", "n_above")
_UNSEEN = "no segment of the map: takes the pooled map"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reach:
    """The range of scores that each segment's curve was fitted on.

    Attributes
    ----------
    map : CalibrationMap
        The map.
    finder : Finder
        Finds the number of a row's segment, from 1; 0 where the map has none.
    low, high : ndarray of shape (n_segments + 1,)
        The ends, first those of all rows, which segments without a curve of their own have as well; NaN where they
        are not known.
    """

    map: CalibrationMap
    finder: Finder
    low: Floats
    high: Floats

    @classmethod
    def of(cls, the_map: CalibrationMap) -> Self:
        """Return the reach of a map."""
        segments = the_map.segments
        low, high = (np.nan if end is None else end for end in (the_map.low, the_map.high))
        return cls(
            map=the_map,
            finder=segments.finder(segments.numbers),
            low=np.append(low, np.where(segments.curve > 0, segments.low, low)),
            high=np.append(high, np.where(segments.curve > 0, segments.high, high)),
        )

    def flags(self, rows: pl.DataFrame, scores: Floats) -> pl.DataFrame:
        """Return which rows are of an unseen segment, without a score, or out of range; `FLAGS` names the columns."""
        number = self.finder.codes(rows)
        share = _share(self.map, scores)
        unseen = number == 0 if self.map.by else np.zeros(len(number), dtype=bool)
        found = (unseen, np.isnan(share), share < self.low[number], share > self.high[number])
        return pl.DataFrame(dict(zip(FLAGS, found, strict=True)))


def reach_table(data: Any, the_map: CalibrationMap) -> Any:
    """Return the counts of a table, segment by segment, in the library of the table."""
    check_names(the_map, (), opened(data).collect_schema().names())
    rows, narrow = polars_rows(data, the_map)
    keys = [exact_column(name) for name in the_map.by]
    flags = Reach.of(the_map).flags(rows, Batches.of(the_map).scores(rows, narrow=narrow))
    found = pl.concat([rows.select(keys), flags], how="horizontal")
    sums = [pl.len().cast(pl.Int64).alias("n"), pl.col(FLAGS).sum().cast(pl.Int64)]
    table = found.group_by(keys).agg(sums).sort(keys, nulls_last=True) if keys else found.select(sums)
    counts = [pl.col(flag).alias(name) for flag, name in zip(FLAGS[1:], COUNTS, strict=True)]
    note = pl.when(pl.col(FLAGS[0]) > 0).then(pl.lit(_UNSEEN)).alias("note")
    table = table.select(*keys, "n", *counts, note)
    native = head_of(data)
    return table if native is None else like(table, native)


def _share(the_map: CalibrationMap, scores: Floats) -> Floats:
    """Return the probability of the positive class, of several classes the largest of a row."""
    if isinstance(the_map.form, Softmax | OneVersusRest):
        return np.asarray(shares_of(the_map, scores).max(axis=1))
    return expit(one_score(the_map, scores)) if the_map.link == "logit" else one_score(the_map, scores)
