"""Maps made by hand, with what they are called and the scores they were fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from calframe import CalibrationMap
from calframe._maps._forms import Form, Linear, OneVersusRest, Points, Softmax
from calframe._maps._segments import Segments


def logistic(*parameters: tuple[float, float]) -> Linear:
    """Return maps of logits, each a slope and an intercept."""
    values = np.array(parameters, dtype=float).T
    errors = np.full_like(values, np.nan)
    return Linear(features=("logit", "one"), names=("slope", "intercept"), values=values, errors=errors)


def through(*points: tuple[float, float]) -> Points:
    """Return a map of straight lines between points."""
    x, y = np.array(points).T
    return Points(starts=np.zeros(1, dtype=np.int64), x=x, y=y)


def softmax(weight: Any, shift: Any, *, temperature: float | None = None) -> Softmax:
    """Return a map of score vectors."""
    cooled = None if temperature is None else np.array([temperature])
    return Softmax(weight=np.array([weight], dtype=float), shift=np.array([shift], dtype=float), temperature=cooled)


def map_of(
    form: Form,
    *,
    segments: dict[Any, tuple[int, float, float]] | None = None,
    notes: Sequence[str | None] = (),
    low: float | None = 0.0,
    high: float | None = 1.0,
    **columns: Any,
) -> CalibrationMap:
    """Return a map whose segments, by the column "g", are each called by a key: its curve, lowest and highest score."""
    whole = Segments.none()
    if segments:
        curve, lows, highs = (np.array(column) for column in zip(*segments.values(), strict=True))
        whole = Segments(
            keys=(pl.Series("g", list(segments)),),
            curve=curve.astype(np.int64),
            n=np.arange(len(segments), 0, -1) * 10,
            low=lows,
            high=highs,
            note=tuple(notes) or (None,) * len(segments),
        )
    several = isinstance(form, Softmax | OneVersusRest)
    names = "abc" if several else ""
    given = {"method": "platt", "by": whole.by, "notes": (), "link": "probability", "n": 1000} | columns
    return CalibrationMap(
        options={},
        label="y",
        scores=tuple(f"p_{name}" for name in names) or ("p",),
        classes=tuple(names),
        vector=False,
        pooling="none",
        floor=1e-12,
        n_missing=0,
        n_invalid=0,
        low=low,
        high=high,
        mark="",
        form=form,
        segments=whole,
        **given,
    )
