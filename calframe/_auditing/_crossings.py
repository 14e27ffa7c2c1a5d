"""Segments of one column and of several: all of them are sums of the same finest crossings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from calframe._cells import Groups
from calframe._closing import closed_frame, keys_as_text, unique_names
from calframe._errors import SegmentError
from calframe._results import to_polars
from calframe._table import Table
from calframe._typing import Floats, Ints

_DENSE = 4  # places counted directly, per crossing; above it the crossings are sorted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """The values of one segment column.

    Attributes
    ----------
    column : str
        Its name.
    codes : ndarray of int64, shape (n_crossings,)
        The value of each finest crossing, counted from 0; of a column read by itself those of its own.
    names : tuple of str
        Each value as text; a missing one is "(missing)".
    values : polars.Series
        The values in the type of the table, bands by their names; it has no name of the user's, which polars might
        take for a pattern.
    """

    column: str
    codes: Ints
    names: tuple[str, ...]
    values: pl.Series


def read_levels(table: Table, groups: Groups, bands: Mapping[str, tuple[str, ...]]) -> tuple[list[Levels], Groups]:
    """Return the values of each segment column, and groups that hold a row for each of them."""
    keys = groups.keys.select(*table.group_columns).to_polars()
    coded = [_coded(keys[key.alias]) for key in table.keys]
    first = [_first(codes) for codes in coded]
    few = replace(groups, keys=groups.keys[np.concatenate(first).tolist()])
    whole = replace(table, keys=tuple(key for key in table.keys if key.name not in bands))
    typed = to_polars(closed_frame(whole, few, {"_cf_row": np.arange(len(few.keys))}).to_native())
    levels, start = [], 0
    for key, codes, rows in zip(table.keys, coded, first, strict=True):
        here = slice(start, start + len(rows))
        start += len(rows)
        if key.name in bands:
            named = [
                None if place is None else bands[key.name][int(place)] for place in keys[key.alias][rows].to_list()
            ]
            values = pl.Series(named, dtype=pl.String)
            texts: Sequence[str | None] = named
        else:
            values, texts = typed[key.name].alias(key.alias)[here], list(keys_as_text(table, few, key))[here]
            values = values.cast(pl.String) if values.dtype == pl.Null else values
        levels.append(Levels(column=key.name, codes=codes, names=unique_names(texts), values=values))
    return levels, few


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossings:
    """All segments: the values of each column, and the crossings of several.

    Attributes
    ----------
    families : tuple of tuple of int
        The columns crossed, by their place; the segments of a family share no row.
    segment : tuple of ndarray of int64, each of shape (n_crossings,)
        Per family the segment of each finest crossing, counted on over all families; -1 where it is in none of them.
    starts : ndarray of int64
        The first segment of each family.
    codes : ndarray of int64, shape (n_segments, n_columns)
        The value of each column, -1 where the column is not part of the segment.
    """

    families: tuple[tuple[int, ...], ...]
    segment: tuple[Ints, ...]
    starts: Ints
    codes: Ints

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.codes)

    def total(self, values: Floats | Ints) -> Floats:
        """Return sums over each segment of what each finest crossing holds."""
        weights = np.asarray(values, dtype=np.float64)
        ends = np.append(self.starts[1:], len(self))
        parts = []
        for segment, first, last in zip(self.segment, self.starts, ends, strict=True):
            inside = slice(None) if segment.min() >= 0 else segment >= 0
            parts.append(np.bincount(segment[inside] - first, weights=weights[inside], minlength=last - first))
        return np.concatenate(parts)


def crossed(levels: Sequence[Levels], *, depth: int, most: int) -> Crossings:
    """Return all segments of one column and of up to `depth` columns crossed that have a row."""
    known: dict[tuple[int, ...], tuple[Ints, int]] = {}
    segments, codes, starts, total = [], [], [], 0
    for size in range(1, depth + 1):
        for family in combinations(range(len(levels)), size):
            before, _ = known.get(family[:-1], (np.zeros(len(levels[0].codes), dtype=np.int64), 1))
            last = levels[family[-1]]
            place, count = _compressed(before * len(last.names) + last.codes)
            known[family] = place, count
            starts.append(total)
            segments.append(place + total)
            total += count
            if total > most:
                raise SegmentError(_too_many(total, most, levels, size))
            codes.append(_codes_of(place, levels, family))
    return Crossings(
        families=tuple(known),
        segment=tuple(segments),
        starts=np.array(starts, dtype=np.int64),
        codes=np.concatenate(codes),
    )


def side_by_side(levels: Sequence[Levels], *, most: int) -> Crossings:
    """Return the segments of each column by itself, where each was read by itself, one after the other."""
    counts = [len(level.names) for level in levels]
    if sum(counts) > most:
        raise SegmentError(_too_many(sum(counts), most, levels, 1))
    starts = np.cumsum([0, *counts[:-1]])
    codes = np.full((sum(counts), len(levels)), -1, dtype=np.int64)
    segments, read = [], np.cumsum([0, *(len(level.codes) for level in levels)])
    for j, (level, start) in enumerate(zip(levels, starts, strict=True)):
        segment = np.full(read[-1], -1, dtype=np.int64)
        segment[read[j] : read[j + 1]] = start + level.codes
        codes[start : start + counts[j], j] = np.arange(counts[j])
        segments.append(segment)
    return Crossings(
        families=tuple((j,) for j in range(len(levels))), segment=tuple(segments), starts=starts, codes=codes
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """What segments are called: of columns region and age, for example, with the values West and [18, 35).

    Attributes
    ----------
    segment, columns : list of str
        Such as "region=West & age=[18, 35)" and "region & age".
    spoken : dict of str to str
        What a reader calls each `segment`, such as "region West, age [18, 35)".
    """

    segment: list[str]
    columns: list[str]
    spoken: dict[str, str]


def segment_names(crossings: Crossings, levels: Sequence[Levels]) -> Names:
    """Return what the segments are called."""
    ends = np.append(crossings.starts[1:], len(crossings))
    made = Names(segment=[], columns=[], spoken={})
    for family, first, last in zip(crossings.families, crossings.starts, ends, strict=True):
        columns = [levels[j].column for j in family]
        made.columns.extend([" & ".join(columns)] * int(last - first))
        for codes in crossings.codes[first:last]:
            values = [levels[j].names[codes[j]] for j in family]
            name = " & ".join(f"{column}={value}" for column, value in zip(columns, values, strict=True))
            made.segment.append(name)
            made.spoken[name] = ", ".join(f"{column} {value}" for column, value in zip(columns, values, strict=True))
    return made


def key_columns(crossings: Crossings, levels: Sequence[Levels]) -> dict[str, pl.Series]:
    """Return the value of each segment column; null where the column is not part, and where the value is missing."""
    columns = {}
    for j, level in enumerate(levels):
        code = crossings.codes[:, j]
        padded = pl.concat([level.values, pl.Series([None], dtype=level.values.dtype)])
        columns[level.column] = padded.gather(np.where(code < 0, len(level.values), code))
    return columns


def _coded(column: pl.Series) -> Ints:
    """Return the place of each value among the sorted distinct ones; a null is the last."""
    values = column.unique().sort(nulls_last=True).alias("_cf_value")
    known = values.to_frame().lazy().with_row_index("_cf_code")
    found = column.alias("_cf_value").to_frame().lazy()
    found = found.join(known, on="_cf_value", how="left", nulls_equal=True, maintain_order="left")
    codes: Ints = found.select(pl.col("_cf_code").cast(pl.Int64)).collect().to_series().to_numpy()
    return codes


def _first(codes: Ints) -> Ints:
    """Return where each code first stands."""
    first = np.zeros(codes.max() + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def _compressed(codes: Ints) -> tuple[Ints, int]:
    """Return codes without gaps, and how many there are."""
    highest = int(codes.max())
    if highest >= _DENSE * len(codes) + 1024:
        present, place = np.unique(codes, return_inverse=True)
        return place.astype(np.int64), len(present)
    seen = np.bincount(codes, minlength=highest + 1) > 0
    return (np.cumsum(seen) - 1)[codes], int(seen.sum())


def _codes_of(place: Ints, levels: Sequence[Levels], family: tuple[int, ...]) -> Ints:
    first = _first(place)
    codes = np.full((len(first), len(levels)), -1, dtype=np.int64)
    for j in family:
        codes[:, j] = levels[j].codes[first]
    return codes


def _too_many(total: int, most: int, levels: Sequence[Levels], depth: int) -> str:
    sizes = ", ".join(f"{level.column!r} {len(level.names):,}" for level in levels)
    return (
        f"the segments are {total:,} and more at depth {depth}, above max_segments={most:,}; distinct values: {sizes}. "
        "Put them into fewer groups, lower depth=, or raise max_segments=."
    )
