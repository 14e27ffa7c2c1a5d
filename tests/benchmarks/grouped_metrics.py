"""Ratios of the default metrics, 1 M rows x 1,000 segments, to what one would write instead. Run it alone.

    python tests/benchmarks/grouped_metrics.py [--rows 1000000] [--segments 1000] [--rounds 15]

One run measures everything in turn, round after round, and prints medians of the ratio within a round with their
quartiles, so that a slow moment of the machine falls on both sides. The peers that take seconds run fewer rounds.

- hand-written: the same sums in lazy polars, with the same edges and the same missing rule, nothing else
- groupby.apply: pandas with scikit-learn, for rate, mean score, Brier score, log loss and ECE
- fairlearn: MetricFrame of the same five
- roofline: NumPy adding up the same bytes once, one thread
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy: peers' BLAS threads would spin

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
from fairlearn.metrics import MetricFrame
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import calframe

BINS = 15
SLOW_ROUNDS = 3


def table(rows: int, segments: int) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    score = 1 / (1 + np.exp(-rng.normal(-1.0, 1.3, rows)))
    names = np.array([f"segment {i:05d}" for i in range(segments)])
    return pl.DataFrame(
        {
            "segment": names[rng.integers(0, segments, rows)],
            "y": (rng.random(rows) < score).astype(np.int8),
            "p": score,
        }
    )


def by_hand(frame: pl.DataFrame) -> pl.DataFrame:
    """The sums alone: rows, missing rows, positives, scores, squares, log loss and variance by segment and bin."""
    score, label = pl.col("p"), pl.col("y")
    ok = score.is_not_null() & score.is_not_nan() & label.is_not_null()
    p, y = pl.when("ok").then(score).otherwise(0.0), pl.when("ok").then(label).otherwise(0)
    rows = frame.lazy().with_columns(ok=ok).select("segment", "ok", p=p.cast(pl.Float64), y=y.cast(pl.Float64))
    rows = rows.with_columns(
        bin=(pl.col("p") * BINS).floor().clip(0, BINS - 1).cast(pl.Int32),
        square=(pl.col("p") - pl.col("y")) ** 2,
        surprise=-pl.when(pl.col("y") == 1).then(pl.col("p")).otherwise(1 - pl.col("p")).log(),
        variance=pl.col("p") * (1 - pl.col("p")),
        n=pl.col("ok").cast(pl.Float64),
    )
    sums = pl.col("n", "y", "p", "square", "surprise", "variance").sum()
    return rows.group_by("segment", "bin").agg(pl.len(), sums).collect()


def ece(label: np.ndarray, score: np.ndarray) -> float:
    rate, mean = calibration_curve(label, score, n_bins=BINS)
    rows = np.histogram(score, bins=BINS, range=(0, 1))[0]
    return float(np.abs(rate - mean) @ rows[rows > 0] / len(score))


def safe_log_loss(label: np.ndarray, score: np.ndarray) -> float:
    return float(log_loss(label, score, labels=[0, 1]))


def apply_by_group(frame: pd.DataFrame) -> pd.DataFrame:
    def one(group: pd.DataFrame) -> pd.Series:
        label, score = group["y"].to_numpy(), group["p"].to_numpy()
        return pd.Series(
            {
                "rate": label.mean(),
                "mean_score": score.mean(),
                "brier": brier_score_loss(label, score),
                "log_loss": safe_log_loss(label, score),
                "ece": ece(label, score),
            }
        )

    return frame.groupby("segment")[["y", "p"]].apply(one)


def fairlearn_frame(frame: pd.DataFrame) -> pd.DataFrame:
    metrics = {
        "rate": lambda y, _: y.mean(),
        "mean_score": lambda _, p: p.mean(),
        "brier": brier_score_loss,
        "log_loss": safe_log_loss,
        "ece": lambda y, p: ece(np.asarray(y), np.asarray(p)),
    }
    return MetricFrame(
        metrics=metrics, y_true=frame["y"], y_pred=frame["p"], sensitive_features=frame["segment"]
    ).by_group


def roofline(frame: pl.DataFrame) -> float:
    label, score = frame["y"].to_numpy(), frame["p"].to_numpy()
    return float(score.sum() + label.sum(dtype=np.int64))


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def spread(values: list[float]) -> str:
    low, middle, high = (
        statistics.quantiles(values, n=4) if len(values) > 2 else (min(values), statistics.median(values), max(values))
    )
    return f"{middle:8.2f}  (quartiles {low:.2f} to {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--segments", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    polars_frame = table(chosen.rows, chosen.segments)
    pandas_frame = pd.DataFrame({name: polars_frame[name].to_list() for name in polars_frame.columns}).astype(
        {"y": "int8"}
    )
    fast: dict[str, Callable[[], object]] = {
        "calframe, polars": lambda: calframe.metrics(polars_frame, label="y", score="p", by="segment"),
        "calframe, pandas": lambda: calframe.metrics(pandas_frame, label="y", score="p", by="segment"),
        "hand-written": lambda: by_hand(polars_frame),
        "roofline": lambda: roofline(polars_frame),
    }
    slow: dict[str, Callable[[], object]] = {
        "groupby.apply": lambda: apply_by_group(pandas_frame),
        "fairlearn": lambda: fairlearn_frame(pandas_frame),
    }
    for function in fast.values():
        function()
        function()
    quick = [{name: seconds(function) for name, function in fast.items()} for _ in range(chosen.rounds)]
    long = []
    for _ in range(SLOW_ROUNDS):
        times = {name: seconds(function) for name, function in slow.items()}
        for function in fast.values():  # what the slow ones pushed out of the caches comes back first
            function()
        long.append(times | {name: seconds(function) for name, function in fast.items()})

    print(f"{chosen.rows:,} rows, {chosen.segments:,} segments, {chosen.rounds} rounds ({SLOW_ROUNDS} with slow peers)")
    for name in fast:
        print(f"  {name:<18}{1e3 * statistics.median(r[name] for r in quick):9.1f} ms")
    for name in slow:
        print(f"  {name:<18}{1e3 * statistics.median(r[name] for r in long):9.1f} ms")
    print("ratios of times within a round")
    pairs = [
        ("calframe, polars", "hand-written", quick),
        ("calframe, polars", "roofline", quick),
        ("groupby.apply", "calframe, polars", long),
        ("groupby.apply", "calframe, pandas", long),
        ("fairlearn", "calframe, polars", long),
        ("fairlearn", "calframe, pandas", long),
    ]
    for above, below, rounds in pairs:
        print(f"  {above + ' / ' + below:<36}{spread([r[above] / r[below] for r in rounds])}")


if __name__ == "__main__":
    main()
