"""Tables over time, drawn from right scores or with gaps that are known exactly, and `drift` on them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import polars as pl

from calframe._drift import drift
from calframe._drifting._panels import panels
from calframe._drifting._result import Drift

METRICS = ("rate", "mean_score", "gap", "ece", "ece_expected", "brier", "reliability", "resolution", "uncertainty")
COMPARED = (
    "psi",
    "psi_expected",
    "psi_pvalue",
    "wasserstein",
    "ks",
    "ks_pvalue",
    "gap_change",
    "gap_change_low",
    "gap_change_pvalue",
)


def months(count: int, *, year: int = 2024) -> list[dt.date]:
    return [dt.date(year + i // 12, i % 12 + 1, 1) for i in range(count)]


def table_of(seed: int = 0, *, n: int = 600, periods: int = 6, off: float = 0.0, late: int = 6) -> pl.DataFrame:
    """Return rows drawn from right scores, `off` too high from period `late` on."""
    rng = np.random.default_rng(seed)
    score, month = np.round(rng.uniform(0.05, 0.95, n), 2), rng.integers(0, periods, n)
    label = rng.random(n) < score - np.where(month >= late, off, 0.0)
    return pl.DataFrame(
        {
            "y": label.astype(np.int64),
            "p": score,
            "q": np.round(score**2, 3),
            "w": rng.integers(1, 5, n),
            "t": [months(periods)[i] for i in month],
            "g": [("a", "b", None)[i] for i in rng.integers(0, 3, n)],
        }
    )


def exact(*periods: tuple[int, float], score: float = 0.5, groups: int = 1) -> pl.DataFrame:
    """Return one month after the other, each with so many rows of one score and this rate exactly."""
    parts = [
        pl.DataFrame({"y": [int(i < round(n * rate)) for i in range(n)]}).with_columns(t=pl.lit(month))
        for (n, rate), month in zip(periods, months(len(periods)), strict=True)
    ]
    return pl.concat(parts).with_columns(p=pl.lit(score), g=pl.int_range(pl.len()) % groups)


def followed(data: Any, **options: Any) -> Drift:
    return drift(data, **{"label": "y", "score": "p", "time": "t", **options})


def titles(found: Drift, *, model: str | None = None, segments: bool = False) -> list[str]:
    return [title for title, _, _ in panels(found._shown(), model=model, segments=segments)]


def notes(found: Drift) -> str:
    return "\n".join(note for _, note, _ in panels(found._shown(), model=None, segments=False))
