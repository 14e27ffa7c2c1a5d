"""Ratios of calibration maps, fitted and applied, to their peers. Run it alone.

    python tests/benchmarks/maps.py [--rounds 5]

One run measures everything in turn, round after round, and prints medians of the ratio within a round with their
quartiles. Everything runs once beforehand. Peers are timed on a sample of the segments, and their time is scaled up.

- segments: 2 M rows in 20,000 segments (100 rows each). The fits from the tally, and `calframe.fit` as a whole, against
  loops of scikit-learn's LogisticRegression(C=inf), betacal (where it is installed; else its steps with scikit-learn),
  and IsotonicRegression; partial pooling against one maximum-likelihood pass
- apply: a per-segment Platt map on 10 M rows with coded segments against ``pl.col("p").exp()``
- classes: temperature of 100,000 rows and 100 classes against scikit-learn's; Dirichlet with ODIR of 100,000 x 10
- memory: the most that a call holds beyond its table (Linux only)
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy: peers' BLAS threads would spin

import argparse
import statistics
import warnings
from collections.abc import Callable

import numpy as np
import polars as pl
from measures import class_table, compare, peak, seconds, table

import calframe
from calframe._fitting._beta import beta
from calframe._fitting._linear import platt
from calframe._fitting._pooling import pooled
from calframe._fitting._steps import isotonic
from calframe._kernels._building import tallies
from calframe._kernels._logistic import logit
from calframe._kernels._newton import Regression, maximum_likelihood
from calframe._kernels._tally import Tally

ROWS, SEGMENTS, SAMPLE = 2_000_000, 20_000, 200


def tally_of(frame: pl.DataFrame) -> Tally:
    columns = (frame[name].to_numpy() for name in ("g", "p", "y"))
    codes, score, label = columns
    parts = tallies(codes.astype(np.int64), score, label.astype(np.float64), segments=SEGMENTS)
    return Tally.joined([tally for _, tally in parts])


def against_loop(name: str, ours: Callable[[], object], one: Callable[[int], object], rounds: int) -> None:
    """Print how many times faster ours is than a loop over all segments, timed on some of them."""
    ours(), one(0)
    ratios, times = [], []
    for _ in range(rounds):
        mine = seconds(ours)
        theirs = seconds(lambda: [one(i) for i in range(SAMPLE)]) * SEGMENTS / SAMPLE
        ratios.append(theirs / mine)
        times.append(mine)
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{name}: {middle:.0f} x (quartiles {low:.0f} to {high:.0f}); ours {1000 * statistics.median(times):.0f} ms")


def segments(rounds: int) -> None:
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    frame = table(ROWS, SEGMENTS)
    tally = tally_of(frame)
    z = logit(tally.score)
    bounds = np.append(tally.starts, len(z))
    cut = [slice(bounds[i], bounds[i + 1]) for i in range(SAMPLE)]

    def regression(i: int) -> object:
        return LogisticRegression(C=np.inf).fit(z[cut[i], None], tally.positive[cut[i]])

    def steps(i: int) -> object:
        return IsotonicRegression(out_of_bounds="clip").fit(tally.score[cut[i]], tally.positive[cut[i]])

    def curve(i: int) -> object:
        return beta_peer(tally.score[cut[i]], tally.positive[cut[i]])

    beta_peer = _betacal()
    against_loop("platt, from the tally", lambda: platt(tally), regression, rounds)
    against_loop("platt, calframe.fit from rows", lambda: _fit(frame, "platt"), regression, rounds)
    against_loop("beta, from the tally", lambda: beta(tally), curve, rounds)
    against_loop("beta, calframe.fit from rows", lambda: _fit(frame, "beta"), curve, rounds)
    against_loop("isotonic, from the tally", lambda: isotonic(tally), steps, rounds)
    against_loop("isotonic, calframe.fit from rows", lambda: _fit(frame, "isotonic"), steps, rounds)
    rows = Regression(
        starts=tally.starts, positive=tally.positive, negative=tally.weight - tally.positive, features=(z, None)
    )
    compare(
        "partial pooling, times one maximum-likelihood pass",
        lambda: pooled(rows, lower=np.array([0.0, -np.inf])),
        lambda: maximum_likelihood(rows),
        rounds,
        turned=False,
    )
    held = peak(lambda: _fit(frame, "platt", pooling="partial"))
    print(f"memory of a partially pooled fit: {held:.0f} MB, {held / (ROWS * 24 / 2**20):.1f} x the columns as float64")


def _fit(frame: pl.DataFrame, method: str, pooling: str = "none") -> object:
    return calframe.fit(frame, label="y", score="p", by="g", method=method, pooling=pooling)


def _betacal() -> Callable[[np.ndarray, np.ndarray], object]:
    try:
        from betacal import BetaCalibration
    except ImportError:
        from sklearn.linear_model import LogisticRegression

        print("betacal is not installed: its first logistic regression stands for it")

        def fit(score: np.ndarray, label: np.ndarray) -> object:
            features = np.column_stack([np.log(score), -np.log1p(-score)])
            return LogisticRegression(C=99999999999).fit(features, label)

        return fit
    return lambda score, label: BetaCalibration(parameters="abm").fit(score[:, None], label)


def apply(rounds: int) -> None:
    frame = table(10_000_000, SEGMENTS)
    found = calframe.fit(frame.head(ROWS), label="y", score="p", by="g", method="platt", pooling="none")
    compare(
        "applying a per-segment platt map, 10 M rows, times pl.col('p').exp()",
        lambda: frame.lazy().select(found.to_expr()).collect(),
        lambda: frame.lazy().select(pl.col("p").exp()).collect(),
        rounds,
        turned=False,
    )


def classes(rounds: int) -> None:
    from sklearn.calibration import _TemperatureScaling

    frame = class_table(100_000, 100)
    names = {i: f"p{i}" for i in range(100)}
    logits = np.log(frame.select(names.values()).to_numpy())
    label = frame["y"].to_numpy()
    compare(
        "temperature of 100,000 x 100 classes, times faster than scikit-learn",
        lambda: calframe.fit(frame, label="y", score=names, method="temperature"),
        lambda: _TemperatureScaling().fit(logits, label),
        rounds,
        turned=True,
    )
    held = peak(lambda: calframe.fit(frame, label="y", score=names, method="temperature"))
    print(f"  memory beyond the table {held:.0f} MB, {held / (100_000 * 101 * 8 / 2**20):.1f} x its columns as float64")
    small = class_table(100_000, 10)
    ten = {i: f"p{i}" for i in range(10)}
    times = [
        seconds(
            lambda: calframe.fit(small, label="y", score=ten, method="dirichlet", off_diagonal=0.01, intercept=0.01)
        )
        for _ in range(rounds)
    ]
    print(f"dirichlet with ODIR, 100,000 x 10: {statistics.median(times):.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    segments(arguments.rounds)
    apply(arguments.rounds)
    classes(max(arguments.rounds // 2, 2))
