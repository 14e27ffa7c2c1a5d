"""The binary maps that are linear in known features, their designs, and rows for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, log_expit, logit

from calframe._fitting._beta import beta
from calframe._fitting._fitted import Parameters
from calframe._fitting._linear import platt, smoothed, temperature
from calframe._kernels._tally import Tally
from calframe._typing import Floats


@dataclass(frozen=True)
class Map:
    """A map as its linear predictor: columns of the design, coefficients, and which of these may not be negative."""

    fit: Callable[..., Parameters]
    columns: Callable[[Tally], list[Floats]]
    coefficients: Callable[[Floats], Floats]
    bounded: tuple[bool, ...]

    def design(self, tally: Tally) -> Floats:
        return np.column_stack(self.columns(tally))

    def theta(self, fitted: Parameters) -> Floats:
        return np.array([self.coefficients(values) for values in fitted.values.T]).T


def logits(tally: Tally) -> Floats:
    return np.log(np.maximum(tally.score, 1e-12)) - np.log(np.maximum(1 - tally.score, 1e-12))


def pair(tally: Tally) -> list[Floats]:
    return [np.log(np.maximum(tally.score, 1e-12)), -np.log(np.maximum(1 - tally.score, 1e-12))]


def doubled(tally: Tally) -> list[Floats]:
    """Return ``ln 2p`` and ``-ln 2(1 - p)``."""
    log, log_rest = pair(tally)
    return [log + np.log(2), log_rest - np.log(2)]


MAPS = {
    "platt": Map(platt, lambda t: [logits(t), np.ones(len(t.score))], lambda v: v, (True, False)),
    "raw": Map(
        lambda t, **more: platt(t, on="score", **more),
        lambda t: [t.score, np.ones(len(t.score))],
        lambda v: v,
        (True, False),
    ),
    "temperature": Map(temperature, lambda t: [logits(t)], lambda v: 1 / v, (True,)),
    "abm": Map(beta, lambda t: [*pair(t), np.ones(len(t.score))], lambda v: v, (True, True, False)),
    "am": Map(
        lambda t, **more: beta(t, parameters="am", **more),
        lambda t: [logits(t), np.ones(len(t.score))],
        lambda v: v[[0, 2]],
        (True, False),
    ),
    "ab": Map(lambda t, **more: beta(t, parameters="ab", **more), doubled, lambda v: v[:2], (True, True)),
}


def counts(score: Any, weight: Any, positive: Any) -> Tally:
    return Tally.of_counts(np.array([0]), *(np.array(v, dtype=float) for v in (score, weight, positive)))


def rows_of(seed: int, *, segments: int = 12, rows: int = 60) -> tuple[Floats, Floats, Floats, Floats]:
    """Make rows of segments, calibrated, flatter, steeper, or reversed; some of few rows, some without a fit."""
    rng = np.random.default_rng(seed)
    segment = np.sort(rng.integers(0, segments, rows * segments))
    segment = segment[rng.random(len(segment)) < (0.05 + 0.95 * (segment % 3 > 0))]
    score = rng.beta(0.5, 0.5, len(segment))
    score = np.where(segment % 2, np.round(score, 1), score)
    slope = np.array([1.0, 0.2, 2.0, -1.0])[segment % 4]
    label = rng.random(len(segment)) < expit(
        slope * logit(np.clip(score, 0.01, 0.99)) + rng.normal(0, 1, segments)[segment]
    )
    return segment, score, label.astype(float), rng.choice([0.5, 1.0, 2.0, 3.0], len(segment))


def tiny_rows(seed: int, *, segments: int = 60) -> tuple[Floats, Floats, Floats]:
    """Make segments of 1 to 8 rows whose scores are few or exactly 0 and 1: most have no fit of their own."""
    rng = np.random.default_rng(seed)
    segment = np.repeat(np.arange(segments), rng.integers(1, 9, segments))
    choices = np.array([[0.0, 0.1, 0.5, 0.9, 1.0], [0.2, 0.3, 0.5, 0.6, 0.9], [0.0, 0.0, 1.0, 1.0, 0.5]])
    score = choices[segment % 3, rng.integers(0, 5, len(segment))]
    score[segment % 5 == 0] = 0.5
    chance = np.where(segment % 4 == 3, 1 - score, score)
    return segment, score, (rng.random(len(segment)) < chance).astype(float)


def slices(tally: Tally) -> list[slice]:
    return [slice(a, a + n) for a, n in zip(tally.starts, tally.sizes, strict=True)]


def losses(kind: str, tally: Tally, values: Floats, *, smoothing: Any = False) -> Floats:
    """Return the log loss of some coefficients, summed over each segment."""
    positive, negative = smoothed(tally, smoothing=smoothing)
    design = MAPS[kind].design(tally)
    odds = np.concatenate([design[cut] @ values[:, g] for g, cut in enumerate(slices(tally))])
    return tally.total(-positive * log_expit(odds) - negative * log_expit(-odds))


def reference_maps(folder: Path, metric: str, source: str) -> Iterator[tuple[dict[str, Any], Floats, Floats]]:
    """Give the binary maps of a source, each with the scores and labels that it was fitted to."""
    tiny = json.loads((folder / "reference" / "tiny.json").read_text(encoding="utf-8"))
    for line in (folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        name = entry["table"].split(" (")[0]
        path = folder / "data" / f"{name}.parquet"
        if (
            not entry["id"].startswith("cal|")
            or entry["metric"] != metric
            or isinstance(entry["args"]["grid"][0], list)
        ):
            continue
        if not entry["source"].startswith(source) or not (path.exists() or name.removeprefix("tiny:") in tiny):
            continue
        if path.exists():
            frame = pd.read_parquet(path)
        else:
            frame = pd.DataFrame({k: v for k, v in tiny[name[5:]].items() if isinstance(v, list)})
        frame = frame.query(entry["where"]) if entry["where"] else frame
        frame = frame.dropna(subset=[entry["score"], "y"])
        frame = frame[frame[entry["score"]].between(0, 1)]
        rows = frame.iloc[:: 2 if path.exists() else 1]  # every second row of a table, all of a tiny one
        yield entry, rows[entry["score"]].to_numpy(dtype=np.float64), rows["y"].to_numpy(dtype=np.float64)
