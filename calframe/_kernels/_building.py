"""Rows to tallies: sort each segment by score, and count equal scores once.

Without weights a row is one integer: the bits of a score in [0, 1] keep its order, and one bit is left for the label.
Sorting such numbers in place is faster than sorting rows by two columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._binned import changes, run_starts, sizes_of, starts_of
from calframe._kernels._tally import CHUNK, Tally
from calframe._typing import Floats, Ints

Keys: TypeAlias = NDArray[np.uint64]
Sort: TypeAlias = Callable[[Keys], Keys]

_SHORT = 2**16  # codes below it are sorted by radix
_FEW_ROWS = 48  # segments smaller than this are not worth a call of sort each
_MANY_EQUAL = 4  # rows a distinct score
_MANY_ROWS = 2**11  # segments larger than this are sorted by the function that is handed in


def tallies(
    codes: Ints,
    score: Floats,
    label: Floats,
    *,
    segments: int,
    weight: Floats | None = None,
    squared: Floats | None = None,
    chunk: int = CHUNK,
    sort: Sort = np.sort,
) -> Iterator[tuple[Ints, Tally]]:
    """Give the tallies of whole segments, about `chunk` rows at a time, with the numbers of their segments.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        The segment of each row, 0 to ``segments - 1``. Segments without rows are in no tally.
    score : ndarray of float64
        Scores in [0, 1]; with weights any finite numbers, or infinite ones.
    label : ndarray of float64
        0 or 1.
    segments : int
        The number of segments.
    weight, squared : ndarray of float64, optional
        Positive weights, and what variances sum in their place (by default their squares).
    chunk : int
        Rows that are worked on at a time; a larger segment stays whole.
    sort : callable
        Returns many numbers in ascending order. Some libraries do that faster than NumPy.

    Examples
    --------
    >>> rows = (np.array([1, 0, 1, 1]), np.array([0.5, 0.1, 0.5, 0.2]), np.array([1.0, 0.0, 0.0, 0.0]))
    >>> for segment, tally in tallies(*rows, segments=2):
    ...     print(segment, tally.starts, tally.score, tally.weight, tally.positive)
    [0 1] [0 1] [0.1 0.2 0.5] [1. 1. 2.] [0. 0. 1.]
    """
    if len(codes) == 0:
        return
    order = None if segments == 1 else _by_code(codes, segments)
    counts = np.array([len(codes)]) if order is None else np.bincount(codes, minlength=segments)
    if weight is None and _in_unit_interval(score):
        packed = _packed(score, label)
        keys = packed if order is None else packed[order]
        for present, sizes, cut in _chunks(counts, chunk):
            yield present, _of_keys(keys[cut], sizes, sort)
        return
    weight = np.ones_like(score) if weight is None else weight
    squared = weight * weight if squared is None else squared
    for present, sizes, cut in _chunks(counts, chunk):
        rows = cut if order is None else order[cut]
        yield present, _of_rows(sizes, score[rows], label[rows], weight[rows], squared[rows])


def tally_of_rows(
    codes: Ints,
    score: Floats,
    label: Floats,
    *,
    segments: int,
    weight: Floats | None = None,
    squared: Floats | None = None,
) -> tuple[Tally, Ints]:
    """Return one tally of all rows, and the numbers of the segments that have any; arguments as in `tallies`."""
    rows = max(len(codes), 1)
    found = list(tallies(codes, score, label, segments=segments, weight=weight, squared=squared, chunk=rows))
    if not found:
        nothing = np.zeros(0)
        return Tally.of_counts(np.zeros(0, dtype=np.int64), nothing, nothing, nothing), np.zeros(0, dtype=np.int64)
    return Tally.joined([tally for _, tally in found]), np.concatenate([present for present, _ in found])


def as_one(tally: Tally, *, sort: Sort = np.sort) -> Tally:
    """Return the tally of all segments as a single one.

    Parameters
    ----------
    tally : Tally
        The segments.
    sort : callable
        As in `tallies`.

    Examples
    --------
    >>> two = Tally.of_counts(np.array([0, 2]), np.array([0.2, 0.8, 0.8]), np.ones(3), np.array([0.0, 1.0, 1.0]))
    >>> one = as_one(two)
    >>> one.score, one.positive
    (array([0.2, 0.8]), array([0., 2.]))
    """
    if len(tally) == 1:
        return tally
    rows = tally.rows
    is_plain = tally.squared is rows and _in_unit_interval(tally.score)
    if is_plain and rows.sum() < _MANY_EQUAL * len(rows):  # to sort rows again is faster than to sort cells
        keys = _packed_again(tally)
        return _of_keys(keys, np.array([len(keys)]), sort)
    order = np.argsort(tally.score, kind="stable")
    score = tally.score[order]
    first = np.flatnonzero(changes(score))
    sums = tally.sums(lambda values: np.add.reduceat(values[order], first))
    return Tally(starts=np.zeros(1, dtype=np.int64), score=score[first], **sums)


def tally_of_sums(codes: Ints, score: Floats, sums: Mapping[str, Floats]) -> tuple[Tally, Ints]:
    """Return the tally of sums that are already one a segment and score, and the numbers of the segments it holds.

    Parameters
    ----------
    codes, score : ndarray
        The segment and the score of each sum, each pair once, in any order.
    sums : mapping of str to ndarray
        ``rows``, ``weight``, ``positive``, ``squared`` and ``squared_positive``.
    """
    order = np.lexsort((score, codes))
    codes = codes[order]
    starts = np.flatnonzero(changes(codes)) if len(codes) else np.zeros(0, dtype=np.int64)
    sorted_sums = {name: values[order] for name, values in sums.items()}
    return Tally(starts=starts, score=score[order] + 0.0, **sorted_sums), codes[starts]


def by_segment(codes: Ints, segments: int) -> Ints:
    """Return the order that puts rows of a segment together, segment after segment, each in its first order."""
    return np.arange(len(codes)) if segments == 1 else _by_code(codes, segments)


def _by_code(codes: Ints, segments: int) -> Ints:
    if segments <= _SHORT:
        return np.argsort(codes.astype(np.uint16), kind="stable")
    first = np.argsort((codes & (_SHORT - 1)).astype(np.uint16), kind="stable")
    return first[np.argsort((codes[first] >> 16).astype(np.uint16), kind="stable")]


def _in_unit_interval(score: Floats) -> bool:
    return bool(score.min() >= 0.0 and score.max() <= 1.0)


def _packed(score: Floats, label: Floats) -> Keys:
    """Return rows as numbers: the bits of the score (62 of them up to 1.0; -0.0 made 0.0), then the label."""
    keys = (score + 0.0).view(np.uint64)
    keys <<= np.uint64(1)
    keys |= label.astype(np.uint64)
    return keys


def _packed_again(tally: Tally) -> Keys:
    """Return the rows of a tally without weights as numbers, as `_packed` makes them."""
    negative = (tally.rows - tally.positive).astype(np.int64)
    keys = tally.score.view(np.uint64) << np.uint64(1)
    if (tally.rows == 1.0).all():
        return keys | tally.positive.astype(np.uint64)
    return np.concatenate([np.repeat(keys, negative), np.repeat(keys | np.uint64(1), tally.positive.astype(np.int64))])


def _chunks(counts: Ints, chunk: int) -> Iterator[tuple[Ints, Ints, slice]]:
    """Give the segments with rows in chunks, the rows of each, and where the chunk lies."""
    present = np.flatnonzero(counts)
    sizes = counts[present]
    ends = np.cumsum(sizes)
    first = 0
    while first < len(present):
        begin = int(ends[first] - sizes[first])
        last = int(np.searchsorted(ends, begin + chunk, side="right"))
        last = min(max(last, first + 1), first + _SHORT)
        yield present[first:last], sizes[first:last], slice(begin, int(ends[last - 1]))
        first = last


def _of_keys(keys: Keys, sizes: Ints, sort: Sort) -> Tally:
    starts = starts_of(sizes)
    if len(keys) >= _FEW_ROWS * len(sizes):
        for begin, end in zip(starts.tolist(), (starts + sizes).tolist(), strict=True):
            if end - begin > _MANY_ROWS:
                keys[begin:end] = sort(keys[begin:end])
            else:
                keys[begin:end].sort()
    else:
        order, segment = np.argsort(keys), np.repeat(np.arange(len(sizes)), sizes)
        keys[:] = keys[order[np.argsort(segment[order].astype(np.uint16), kind="stable")]]
    score = keys >> np.uint64(1)
    new = np.empty(len(keys), dtype=np.bool_)
    np.not_equal(score[1:], score[:-1], out=new[1:])
    new[starts] = True
    labels = (keys & np.uint64(1)).astype(np.float64)
    if new.all():
        return Tally.of_counts(starts, score.view(np.float64), np.ones(len(keys)), labels)
    cells = np.flatnonzero(new)
    rows = sizes_of(cells, len(keys)).astype(np.float64)
    return Tally.of_counts(
        np.searchsorted(cells, starts), score[cells].view(np.float64), rows, np.add.reduceat(labels, cells)
    )


def _of_rows(sizes: Ints, score: Floats, label: Floats, weight: Floats, squared: Floats) -> Tally:
    segment = np.repeat(np.arange(len(sizes)), sizes)
    score = score + 0.0
    order = np.argsort(score)
    if len(sizes) > 1:
        order = order[np.argsort(segment[order].astype(np.uint16), kind="stable")]
    score, label, weight, squared = score[order], label[order], weight[order], squared[order]
    first = starts_of(sizes)
    cells = run_starts(score, first)
    sums = [np.add.reduceat(values, cells) for values in (weight, weight * label, squared, squared * label)]
    return Tally(
        starts=np.searchsorted(cells, first),
        score=score[cells],
        rows=sizes_of(cells, len(score)).astype(np.float64),
        weight=sums[0],
        positive=sums[1],
        squared=sums[2],
        squared_positive=sums[3],
    )
