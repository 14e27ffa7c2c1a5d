"""The table of a comparison: one row per segment and metric."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from calframe._closing import Column, closed_frame
from calframe._comparing._found import EXCHANGE, INFINITE, Found
from calframe._comparing._pairs import Pairs
from calframe._kernels._corrections import Correction, adjusted
from calframe._notes import Notes
from calframe._registry import Metric
from calframe._testing._found import reach, too_few_draws
from calframe._typing import Bools, Floats


def table_of(
    pairs: Pairs,
    asked: Sequence[Metric],
    found: Sequence[Found],
    *,
    models: tuple[str, str],
    correction: Correction,
    alpha: float,
    draws: tuple[int, int],
) -> tuple[Any, tuple[str, ...]]:
    """Return one row per segment and metric, in the library of the table that was read, and what to say of them all.

    Where an exchange of models decides, but not even its least p-value could, the note says so; `draws` are those of
    every metric and segment, and of those with small p-values.
    """
    segments, metrics = len(pairs.n), len(asked)

    def flat(name: str) -> Floats:
        if not found:
            return np.full(segments * metrics, np.nan)
        return np.stack([pairs.scatter(getattr(one, name)) for one in found], axis=1).ravel()

    pvalue = flat("pvalue")
    corrected = adjusted(pvalue, correction)
    words = _words(pairs, found, corrected.reshape(segments, metrics), np.isnan(pvalue), models=models, alpha=alpha)
    drawn = np.array([law == EXCHANGE for law in words["law"]])
    never = drawn & ~(reach(pvalue, drawn / (1.0 + (draws[1] or draws[0])), correction) <= alpha)
    said = too_few_draws(draws[0], int((~np.isnan(pvalue)).sum()), correction, alpha)
    words["note"] = [
        "; ".join(filter(None, (note, said if far else None))) or None
        for note, far in zip(words["note"], never, strict=True)
    ]
    names: list[str | None] = [metric.name for metric in asked]
    columns: dict[str, Column] = {"metric": names * segments}
    columns |= {name: np.repeat(values, metrics) for name, values in _counts(pairs).items()}
    columns |= {name: flat(name) for name in ("first", "second", "difference", "low", "high")}
    columns |= {"pvalue": pvalue, "pvalue_adjusted": corrected}
    segment = np.repeat(np.arange(segments), metrics)
    frame = closed_frame(pairs.table, pairs.groups, columns | words, segment=segment)
    notes = [*_notes(found), *([said] if said and never.any() else [])]
    return frame.to_native(), tuple(notes)


def _notes(found: Sequence[Found]) -> list[str]:
    """Return what is to be said of metrics, for all rows together."""
    notes = [f"log_loss: {INFINITE}" for one in found if one.metric.name == "log_loss" and one.endless.any()]
    alike = [one.metric.name for one in found if one.alike]
    if alike:
        are = "interval is" if len(alike) == 1 else "intervals are"
        notes.append(f"{', '.join(alike)}: {are} as wide as if all rows of a cluster were alike")
    return notes


def _counts(pairs: Pairs) -> dict[str, Any]:
    counts = {"n": pairs.n, "n_missing": pairs.n_missing}
    if pairs.table.roles.invalid == "drop":
        counts["n_invalid"] = pairs.n_invalid
    return {**counts, "weight_sum": pairs.weight_sum} if pairs.table.weighted else counts


def _words(
    pairs: Pairs,
    found: Sequence[Found],
    corrected: Floats,
    unknown: Bools,
    *,
    models: tuple[str, str],
    alpha: float,
) -> dict[str, list[str | None]]:
    """Return the columns of text: the better model, the law and the note."""
    segments, metrics = corrected.shape
    better: list[list[str | None]] = [[None] * metrics for _ in range(segments)]
    law: list[list[str | None]] = [[None] * metrics for _ in range(segments)]
    notes = [Notes.of_counts(pairs.n, pairs.n_zero) for _ in range(metrics)]
    first, second = models
    for j, one in enumerate(found):
        sides = one.better(corrected[pairs.present, j], alpha)
        for i, side, rule in zip(pairs.present, sides, one.law, strict=True):
            better[i][j] = second if side > 0 else first if side < 0 else None
            law[i][j] = str(rule)
        for text, where in one.remarks:
            for i in pairs.present[where]:
                notes[j].parts[i].append(text)
        if one.metric.counts_rows and not pairs.table.roles.counts_rows:
            notes[j].add_scale([one.metric.name], pairs.weight_sum, pairs.n)
    return {
        "better": [name for row in better for name in row],
        "law": [None if gone else name for name, gone in zip(chain.from_iterable(law), unknown, strict=True)],
        "note": list(chain.from_iterable(zip(*(one.lines() for one in notes), strict=True))),
    }
