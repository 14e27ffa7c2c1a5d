"""Tables for reports, and a report that several tests look at."""

from __future__ import annotations

import datetime as dt
from functools import cache

import numpy as np
import polars as pl

import calframe
from calframe import Report

ROLES = {"label": "y", "score": "p"}
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "{{7*7}} ${7*7} {% raw %}",
    "\"quotes\" 'both' `kinds` \\",
    "日本語の区域" * 8,
    "🙂" * 30,
    "two\nlines\tand a tab\x07\x1b[31m",
    "a_name_without_any_space_" * 4,
]


def eight(n: int = 4000, *, seed: int = 0, names: list[str] | None = None) -> pl.DataFrame:
    """Return rows of eight segments over twelve months, the first segment ten points too high."""
    rng = np.random.default_rng(seed)
    place = np.arange(n) % 8
    score = rng.beta(2.0, 4.0, n)
    happens = np.clip(score - np.where(place == 0, 0.15, 0.0), 0.0, 1.0)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 366, n)]
    names = names or [f"s{i}" for i in range(8)]
    labels = (rng.random(n) < happens).astype(int)
    return pl.DataFrame({"y": labels, "p": score, "group": [names[i] for i in place], "day": days})


@cache
def full() -> Report:
    return calframe.report(eight(), by="group", time="day", **ROLES)
