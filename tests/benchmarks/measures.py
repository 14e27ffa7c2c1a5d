"""Ratios of the measures of distinct scores, and of several classes, to their peers. Run it alone.

    python tests/benchmarks/measures.py [--rounds 7] [--large]

One run measures everything in turn, round after round, and prints medians of the ratio within a round with their
quartiles, so that a slow moment of the machine falls on both sides. Everything runs once beforehand.

- order: auc, mcb, dsc, unc, ecce_r, ecce_mad and smece of a table, tally included, against a polars sort of the same
  three columns by (segment, score): 1 M rows in 1,000 and in 20,000 segments, with --large 10 M rows in 1,000
- smooth: smece of 1 M rows in one segment against relplot.smECE on the same arrays
- classes: classwise_ece of 100,000 rows and 100 classes against a loop of torchmetrics' binary error over the classes,
  where torch is installed; else against the same loop with its arithmetic in NumPy
- roofline: NumPy adding up the score column once, one thread
- memory: the most that a call holds beyond its table (Linux only)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy: peers' BLAS threads would spin

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import calframe

BINS = 15
ORDERED = ["auc", "mcb", "dsc", "unc", "ecce_r", "ecce_mad", "smece"]


def table(rows: int, segments: int) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    score = rng.beta(2, 3, rows)
    label = (rng.random(rows) < score).astype(np.int8)
    return pl.DataFrame({"g": rng.integers(0, segments, rows).astype(np.int32), "p": score, "y": label})


def class_table(rows: int, classes: int) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    logits = rng.normal(0.0, 2.0, (rows, classes))
    scores = np.exp(logits)
    scores /= scores.sum(axis=1, keepdims=True)
    label = (scores.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    return pl.DataFrame({f"p{i}": scores[:, i] for i in range(classes)} | {"y": label})


def binary_error(label: np.ndarray, score: np.ndarray) -> float:
    """The binary calibration error of torchmetrics (norm l1), its steps in NumPy."""
    place = np.searchsorted(np.linspace(0, 1, BINS + 1), score, side="right") - 1
    count, total, right = (np.bincount(place, v, BINS + 1) for v in (np.ones_like(score), score, label))
    filled = np.where(count > 0, count, 1.0)
    return float(np.sum(np.abs(total / filled - right / filled) * count / count.sum()))


def loop_over_classes(frame: pl.DataFrame) -> Callable[[], float]:
    names = [name for name in frame.columns if name != "y"]
    label = frame["y"].to_numpy()
    columns = [frame[name].to_numpy() for name in names]
    try:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error
    except ImportError:
        print("torch is not installed: its steps in NumPy stand for torchmetrics")
        return lambda: float(np.mean([binary_error((label == i).astype(float), c) for i, c in enumerate(columns)]))
    torch.set_num_threads(1)
    scores, target = [torch.from_numpy(column) for column in columns], torch.from_numpy(label)
    return lambda: float(
        np.mean([float(binary_calibration_error(c, (target == i).long(), BINS)) for i, c in enumerate(scores)])
    )


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def peak(function: Callable[[], object]) -> float:
    """Return the most memory held during a call beyond what was held before, in MB; NaN where it is not known."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forgets earlier peaks
        before = _held("VmRSS")
        function()
        return _held("VmHWM") - before
    except OSError:
        return float("nan")


def _held(kind: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(kind))


def compare(name: str, ours: Callable[[], object], peer: Callable[[], object], rounds: int, *, turned: bool) -> None:
    """Print ours against the peer, or with `turned` the peer against ours."""
    ours(), peer()
    pairs = [(seconds(ours), seconds(peer)) for _ in range(rounds)]
    ratios = [peer_time / our_time if turned else our_time / peer_time for our_time, peer_time in pairs]
    quartiles = statistics.quantiles(ratios, n=4)
    medians = [1000 * statistics.median(times) for times in zip(*pairs, strict=True)]
    print(
        f"{name}: {statistics.median(ratios):.2f} (quartiles {quartiles[0]:.2f} to {quartiles[2]:.2f}); "
        f"ours {medians[0]:.0f} ms, peer {medians[1]:.0f} ms"
    )


def order(rows: int, segments: int, rounds: int) -> None:
    frame = table(rows, segments)

    def measure() -> object:
        return calframe.metrics(frame, label="y", score="p", by="g", metrics=ORDERED)

    held = peak(measure)
    print(f"  memory beyond the table {held:.0f} MB, {held / (rows * 24 / 2**20):.1f} x its columns as float64")
    compare(
        f"order, {rows:,} rows x {segments:,} segments, times a polars sort",
        measure,
        lambda: frame.lazy().sort("g", "p").collect(),
        rounds,
        turned=False,
    )
    score = frame["p"].to_numpy()
    print(f"  roofline, one pass over the scores: {1000 * min(seconds(score.sum) for _ in range(5)):.1f} ms")


def smooth(rounds: int) -> None:
    try:
        from relplot import smECE
    except ImportError:
        print("relplot is not installed: smece is not compared")
        return
    frame = table(1_000_000, 1)
    score, label = frame["p"].to_numpy(), frame["y"].to_numpy().astype(np.float64)
    compare(
        "smece, 1,000,000 rows, relplot against ours",
        lambda: calframe.metrics(frame, label="y", score="p", metrics=["smece"]),
        lambda: smECE(score, label),
        rounds,
        turned=True,
    )


def classes(rounds: int) -> None:
    frame = class_table(100_000, 100)
    mapping = {i: f"p{i}" for i in range(100)}
    compare(
        "classwise_ece, 100,000 rows x 100 classes, loop of binary errors against ours",
        lambda: calframe.metrics(frame, label="y", score=mapping, metrics=["classwise_ece"]),
        loop_over_classes(frame),
        rounds,
        turned=True,
    )
    start = time.perf_counter()
    held = peak(lambda: calframe.metrics(frame, label="y", score=mapping, metrics="all"))
    took = time.perf_counter() - start
    table_size = frame.estimated_size() / 2**20
    print(
        f"  all metrics of it: {took:.1f} s; memory beyond the table {held:.0f} MB, the table has {table_size:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--large", action="store_true", help="10 million rows, too")
    arguments = parser.parse_args()
    if arguments.large:
        order(10_000_000, 1_000, min(arguments.rounds, 5))
    order(1_000_000, 1_000, arguments.rounds)
    order(1_000_000, 20_000, arguments.rounds)
    smooth(arguments.rounds)
    classes(arguments.rounds)


if __name__ == "__main__":
    main()
