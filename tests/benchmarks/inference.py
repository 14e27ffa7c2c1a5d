"""Ratios of `calframe.test` and `calframe.audit` to drawing every label, and to measuring. Run it alone.

    python tests/benchmarks/inference.py [--rounds 7] [--rows 10000000]

As in ``tests/benchmarks/measures.py``, one run measures everything in turn and prints medians of the ratio within a
round with their quartiles.

- rows: the resampling test of the ECE with 1,000 resamples of 10 M rows in one segment, against drawing every label
  1,000 times, timed on 10 draws and scaled up; goal 300
- segments: the same of 1 M rows in 1,000 segments, against 100 grouped calls of `calframe.metrics`; goal at most 1
- audit: five segment columns at depth 2 of 1 M rows, without and with errors along the scores, against one grouped call
  of `calframe.metrics`; goals at most 20 and 60
- memory: the most that the latter test holds beyond its table (Linux only)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy, as in measures.py

import argparse
import statistics
import sys
from pathlib import Path

import numpy as np
import polars as pl

import calframe

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.benchmarks.measures import BINS, compare, peak, seconds, table

RESAMPLES, TIMED = 1_000, 10
FASTER, CALLS = 300, 100  # the goals
VALUES = (3, 5, 8, 10, 4)  # of the segment columns of an audit


def tested(frame: pl.DataFrame, by: str | None) -> object:
    return calframe.test(frame, label="y", score="p", by=by, bins=BINS, n_resamples=RESAMPLES)


def drawn_rows(score: np.ndarray) -> None:
    """Draw every label anew some times, and take the ECE of each draw."""
    rng = np.random.default_rng(1)
    place = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    total = np.bincount(place, score, BINS)
    for _ in range(TIMED):
        label = rng.random(len(score)) < score
        float(np.abs(np.bincount(place, label, BINS) - total).sum()) / len(score)


def rows(count: int, rounds: int) -> None:
    frame = table(count, 1)
    score = frame["p"].to_numpy()
    tested(frame, None), drawn_rows(score)
    pairs = [(seconds(lambda: tested(frame, None)), seconds(lambda: drawn_rows(score))) for _ in range(rounds)]
    ratios = [RESAMPLES / TIMED * peer / ours for ours, peer in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4) if rounds > 1 else ratios * 3
    ours, peer = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(
        f"rows, {count:,} in one segment, drawing every label against ours: {middle:.0f} (quartiles {low:.0f} to "
        f"{high:.0f}); ours {1000 * ours:.0f} ms, peer {RESAMPLES / TIMED * peer:.0f} s; goal {FASTER} or more"
    )


def segments(count: int, rounds: int) -> None:
    frame = table(count, 1_000)
    held = peak(lambda: tested(frame, "g"))

    def measured() -> None:
        for _ in range(CALLS):
            calframe.metrics(frame, label="y", score="p", by="g")

    compare(
        f"segments, {count:,} rows x 1,000 segments, times {CALLS} grouped calls of metrics",
        lambda: tested(frame, "g"),
        measured,
        max(rounds, 2),
        turned=False,
    )
    print("  goal 1 or less")
    print(f"  memory beyond the table {held:.0f} MB; the table has {frame.estimated_size() / 2**20:.0f} MB")


def audits(count: int, rounds: int) -> None:
    frame, rng = table(count, 1), np.random.default_rng(2)
    columns = {f"c{i}": pl.Series(rng.integers(0, k, count)).cast(pl.String) for i, k in enumerate(VALUES)}
    frame = frame.with_columns(**columns)
    for ecce, goal in ((False, 20), (True, 60)):
        compare(
            f"audit, {count:,} rows, {len(VALUES)} columns, {'with' if ecce else 'without'} ECCE, times a metrics call",
            lambda ecce=ecce: calframe.audit(frame, label="y", score="p", by=list(columns), ecce=ecce),
            lambda: calframe.metrics(frame, label="y", score="p", by="c3"),
            max(rounds, 2),
            turned=False,
        )
        print(f"  goal {goal} or less")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", type=int, default=10_000_000)
    arguments = parser.parse_args()
    rows(arguments.rows, arguments.rounds)
    segments(arguments.rows // 10, arguments.rounds)
    audits(arguments.rows // 10, arguments.rounds)


if __name__ == "__main__":
    main()
