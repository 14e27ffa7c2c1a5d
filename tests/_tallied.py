"""Rows counted by hand into a tally, and rows of the reference tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from calframe._kernels._tally import Tally
from calframe._typing import Floats

Row = tuple[float, int, float]  # score, label, weight


def rows_of(score: Sequence[float], label: Sequence[int], weight: Sequence[float] | None = None) -> list[Row]:
    weights = [1.0] * len(score) if weight is None else weight
    return [(float(s), int(y), float(w)) for s, y, w in zip(score, label, weights, strict=True) if w > 0]


def tallied(*segments: Sequence[Row], counts: bool = False) -> Tally:
    """Return the tally of some segments; with `counts`, weights are numbers of rows in variances, too."""
    starts: list[int] = []
    cells: list[list[float]] = []
    for rows in segments:
        starts.append(len(cells))
        found: dict[float, list[float]] = {}
        for score, label, weight in rows:
            square = weight if counts else weight**2
            terms = [1, weight, weight * label, square, square * label]
            found[score] = [a + b for a, b in zip(found.get(score, [0.0] * 5), terms, strict=True)]
        cells += [[score, *found[score]] for score in sorted(found)]
    table = np.array(cells, dtype=np.float64).reshape(len(cells), 6).T
    score, n, weight, positive, squared, squared_positive = table
    return Tally(
        starts=np.array(starts, dtype=np.int64),
        score=score,
        rows=n,
        weight=weight,
        positive=positive,
        squared=squared,
        squared_positive=squared_positive,
    )


def twice(rows: Sequence[Row]) -> list[Row]:
    """Return rows of whole weights, each as often as its weight says."""
    return [(s, y, 1.0) for s, y, w in rows for _ in range(int(w))]


def tally_of_columns(score: Floats, label: Floats, weight: Floats) -> Tally:
    """Return the tally of one segment that is too long for `tallied`."""
    cells, at = np.unique(score, return_inverse=True)
    terms = (np.ones_like(weight), weight, weight * label, weight**2, weight**2 * label)
    n, total, positive, squared, squared_positive = (np.bincount(at, term) for term in terms)
    return Tally(
        starts=np.array([0]),
        score=cells,
        rows=n,
        weight=total,
        positive=positive,
        squared=squared,
        squared_positive=squared_positive,
    )


def reference_entries(
    folder: Path, kind: str, metric: str
) -> Iterator[tuple[dict[str, Any], tuple[Floats, Floats, Floats]]]:
    """Give the reference values of one metric, each with the scores, labels and weights it was computed from."""
    tiny = json.loads((folder / "reference" / "tiny.json").read_text(encoding="utf-8"))
    for line in (folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if not entry["id"].startswith(f"{kind}|") or entry["metric"] != metric or entry.get("error"):
            continue
        frame = _table(folder, tiny, entry)
        if frame is None:
            continue
        used = frame.dropna(subset=[entry["score"], "y"])
        used = used[(used[entry["score"]] >= 0) & (used[entry["score"]] <= 1)]
        weight = used[entry["args"].get("weight", "w")] if kind == "wgt" else pd.Series(1.0, used.index)
        used = used[weight > 0]
        columns = (used[entry["score"]], used["y"], weight[weight > 0])
        score, label, weights = (column.to_numpy(dtype=np.float64) for column in columns)
        yield entry, (score, label, weights)


def _table(folder: Path, tiny: dict[str, Any], entry: dict[str, Any]) -> pd.DataFrame | None:
    name = entry["table"].split(" (")[0]
    path = folder / "data" / f"{name}.parquet"
    if name.startswith("tiny:"):
        columns = tiny.get(name[5:])
        frame = columns and pd.DataFrame({key: value for key, value in columns.items() if isinstance(value, list)})
    else:
        frame = pd.read_parquet(path) if path.exists() else None
    return frame.query(entry["where"]) if frame is not None and entry["where"] else frame
