"""The test of Fagerland, Hosmer and Bofin: observed and expected counts of every class in groups of like scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from calframe._kernels._vectors import Vectors
from calframe._testing._draws import Drawing, Drawn, staged
from calframe._testing._found import FAR, Found
from calframe._testing._groups import ENOUGH, LEAST, SMALL, Df, are_small, of_groups
from calframe._testing._luck import Luck
from calframe._typing import Bools, Floats, Ints

_DIGITS = 12  # to which scores are rounded, so that sums of parts tie where they should


def multinomial_hosmer_lemeshow(
    vectors: Vectors, *, count: int, df: Df, drawing: Drawing, bin_of: Callable[[Floats], Ints] | None = None
) -> Found:
    """Test that the counts of every class in groups of like scores are what the scores expect.

    Rows are grouped by ``1 - p`` of the first class, rounded to 12 digits, between its unique type-7 quantiles,
    right-closed, or by given bins. ``C = sum (O - E)^2 / E`` over groups and classes, 0 where both are 0. Degrees of
    freedom are ``(groups - 2)(classes - 1)`` for the rows of the fit itself ("internal"), else
    ``groups (classes - 1)``.

    Parameters
    ----------
    vectors : Vectors
        Rows that count once, or as often as their weight says.
    count : int
        Groups asked for.
    df : {"external", "internal"}
        Degrees of freedom.
    drawing : Drawing
        How labels are drawn where expected counts are small; with "internal" they are not. Of rows in clusters they
        always are: no law is known.
    bin_of : callable, optional
        From ``1 - p`` to the group of each row; by default groups are those of quantiles.

    References
    ----------
    Fagerland, M. W., Hosmer, D. W. and Bofin, A. M. (2008). Multinomial goodness-of-fit tests for logistic regression
    models. Statistics in Medicine 27, 4238-4253. https://doi.org/10.1002/sim.3202
    """
    vectors = in_order(vectors)
    group = _groups(vectors, count, bin_of)
    counts = vectors.total(_first_of(vectors, group)).astype(np.int64)
    seen, least, low = _compared(vectors, group, vectors.label)
    small = are_small(least < LEAST, low, counts * vectors.classes)
    found = of_groups(seen, counts, small, df=df, asked=count, several=vectors.classes - 1)
    found = found.of_many(vectors.total(vectors.weight))

    def redraw(where: Bools) -> tuple[Floats, Floats]:
        asked = vectors.only(where)

        def draws(some: Bools, how: Drawing) -> Drawn:
            part = asked.only(some)
            own, luck = _groups(part, count, bin_of), Luck.of(part)
            for _ in range(how.n_resamples):
                yield slice(None), _compared(part, own, luck.classes(how.rng))[0][None, :]

        return staged(seen[where], draws, side="greater", drawing=drawing)

    if vectors.cluster is not None:
        pvalue, error = redraw(np.ones(len(vectors), dtype=np.bool_))
        found = Found.of_draws(seen, pvalue, error, floor=drawing.least("greater"))
        return replace(found, groups=counts.astype(np.float64))
    if df == "internal":
        return found
    floor, some = drawing.least("greater"), ~small & (least < ENOUGH)  # of which only the far tail is doubtful
    found = found.settled(small, redraw, floor=floor)
    return found.settled(some, redraw, floor=floor, below=FAR, above=drawing.beyond_doubt)


def in_order(vectors: Vectors) -> Vectors:
    """Return the rows of each segment in the order of their scores: draws must not depend on that of the table."""
    order = np.lexsort((vectors.label, vectors.weight, *vectors.scores.T, vectors.segment))
    return replace(
        vectors,
        scores=np.asfortranarray(vectors.scores[order]),
        **{name: getattr(vectors, name)[order] for name in ("label", "weight", "squared")},
        cluster=None if vectors.cluster is None else vectors.cluster[order],
    )


def places(
    vectors: Vectors, count: int, bin_of: Callable[[Floats], Ints] | None
) -> Iterator[tuple[slice, Ints, Floats]]:
    """Give for each segment its rows, between which edges each of them lies, counted from 0, and those of quantiles."""
    score = np.round(1.0 - vectors.scores[:, 0], _DIGITS)
    for first, size in zip(vectors.starts, vectors.sizes, strict=True):
        here = slice(first, first + size)
        rows = score[here]
        if np.any(vectors.weight[here] != 1.0):  # counts of rows
            rows = np.repeat(rows, vectors.weight[here].astype(np.int64))
        edges = np.unique(np.quantile(rows, np.linspace(0.0, 1.0, count + 1)))
        place = np.maximum(np.searchsorted(edges, score[here], side="left") - 1, 0)
        yield here, place if bin_of is None else bin_of(score[here]), edges


def _groups(vectors: Vectors, count: int, bin_of: Callable[[Floats], Ints] | None) -> Ints:
    """Return the group of each row, counted from 0 within its segment; groups without rows have no number."""
    out = np.zeros(len(vectors.label), dtype=np.int64)
    for here, place, _ in places(vectors, count, bin_of):
        out[here] = np.unique(place, return_inverse=True)[1]
    return out


def _first_of(vectors: Vectors, group: Ints) -> Floats:
    """Mark one row of each group of each segment."""
    key = vectors.segment * (group.max() + 1) + group
    marked = np.zeros(len(group))
    marked[np.unique(key, return_index=True)[1]] = 1.0
    return marked


def _compared(vectors: Vectors, group: Ints, label: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the statistic of each segment, its least expected count, and how many are below 5."""
    many, width = vectors.classes, int(group.max()) + 1
    cell = vectors.segment * width + group
    size = len(vectors) * width
    expected = np.column_stack(
        [np.bincount(cell, weights=vectors.weight * vectors.scores[:, j], minlength=size) for j in range(many)]
    )
    observed = np.bincount(cell * many + label, weights=vectors.weight, minlength=size * many).reshape(size, many)
    there = np.bincount(cell, minlength=size) > 0
    off = observed - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(np.abs(off) <= 1e-12 * np.maximum(observed + expected, 1e-300), 0.0, off**2 / expected)
    shape = (len(vectors), width * many)
    known = np.where(there[:, None], expected, np.inf)
    return (
        parts.reshape(shape).sum(axis=1),
        known.reshape(shape).min(axis=1),
        (known < SMALL).reshape(shape).sum(axis=1).astype(np.float64),
    )
