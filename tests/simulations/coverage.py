"""How often the intervals hold the true value, and how long they are. Run it alone.

    python tests/simulations/coverage.py [--replicates 2000] [--seed 1] [--metrics ece ...] [--output FILE.csv]

Many samples are drawn from each world (`_worlds.py`) and stand as segments in one table, so that one call of
`calframe.metrics` gives all their intervals. A line of the result has the metric, the rows of a sample, the world, the
true value (a mean, where it depends on the sample), the share of intervals that hold it with its Monte Carlo standard
error, their median length, and the share of samples without an interval, which do not count otherwise.
With ``--metrics`` the lines of these metrics replace those in the file, and the others stay as they are.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
import polars as pl

import calframe
from calframe._measures import METRICS
from tests.simulations._true_values import TRUE_VALUES, TRUE_VALUES_OF_SAMPLES
from tests.simulations._worlds import BINS, TRUTHS, WORLDS, Floats, World, bin_of, population

LEVEL = 0.9
SIZES = (200, 2_000, 20_000)
RESULTS = Path(__file__).with_name("coverage.csv")
_ROWS_AT_ONCE = 2_000_000
_ROUNDING = 1e-12  # an end that differs by less from the truth holds it


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    metric: str
    n: int
    scores: str
    truth: str
    true_value: float
    coverage: float
    standard_error: float
    median_width: float
    share_without: float


def all_metrics() -> tuple[str, ...]:
    """Return the metrics that have both an interval and a true value."""
    return tuple(name for name in (*TRUE_VALUES, *TRUE_VALUES_OF_SAMPLES) if METRICS[name].interval is not None)


def simulate(
    world: World, n: int, *, replicates: int, seed: int, metrics: Iterable[str] | None = None
) -> Iterator[Line]:
    """Give a line for each metric in one world, from so many samples of `n` rows."""
    names = tuple(metrics) if metrics is not None else all_metrics()
    rng = np.random.default_rng([seed, n, WORLDS.index(world)])
    at_once = max(1, _ROWS_AT_ONCE // n)
    true_values = {name: TRUE_VALUES[name](population(world)) for name in names if name in TRUE_VALUES}
    ends: dict[str, list[tuple[Floats, Floats, Floats]]] = {name: [] for name in names}
    for start in range(0, replicates, at_once):
        samples = min(at_once, replicates - start)
        score, label = world.draw(n * samples, rng)
        seen = np.bincount(bin_of(score) + BINS * np.repeat(np.arange(samples), n), minlength=BINS * samples) > 0
        for name, (low, high) in intervals(score, label, samples, names).items():
            if name in true_values:
                truth = np.full(samples, true_values[name])
            else:
                truth = TRUE_VALUES_OF_SAMPLES[name](population(world), seen.reshape(samples, BINS))
            ends[name].append((low, high, truth))
    for name in names:
        yield _line(name, world, n, *(np.concatenate(values) for values in zip(*ends[name], strict=True)))


def intervals(score: Floats, label: Floats, samples: int, names: Sequence[str]) -> dict[str, tuple[Floats, Floats]]:
    """Return the intervals of equally large samples that follow each other."""
    table = pl.DataFrame({"sample": np.repeat(np.arange(samples), len(score) // samples), "p": score, "y": label})
    arguments = {"by": "sample", "metrics": list(names), "bins": BINS, "confidence_level": LEVEL}
    found = calframe.metrics(table, label="y", score="p", **arguments)
    ends = {name: (found[f"{name}_low"], found[f"{name}_high"]) for name in names}
    return {name: (_floats(low), _floats(high)) for name, (low, high) in ends.items()}


def _floats(column: pl.Series) -> Floats:
    return column.fill_null(np.nan).to_numpy()


def _line(name: str, world: World, n: int, low: Floats, high: Floats, truth: Floats) -> Line:
    there = ~(np.isnan(low) | np.isnan(high))
    slack = _ROUNDING * np.maximum(1.0, np.abs(truth))
    holds = ((low <= truth + slack) & (truth - slack <= high))[there]
    coverage = float(holds.mean()) if there.any() else np.nan
    return Line(
        metric=name,
        n=n,
        scores=world.scores,
        truth=world.truth,
        true_value=float(f"{truth.mean():.6g}"),
        coverage=round(coverage, 4),
        standard_error=round(float(np.sqrt(coverage * (1 - coverage) / max(there.sum(), 1))), 4),
        median_width=float(f"{np.median((high - low)[there]) if there.any() else np.nan:.4g}"),
        share_without=round(float(1 - there.mean()), 4),
    )


def read(path: Path = RESULTS) -> list[Line]:
    """Return the lines of a result."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Line(**{field.name: _KINDS[field.name](row[field.name]) for field in fields(Line)})
            for row in csv.DictReader(file)
        ]


_KINDS = {"metric": str, "n": int, "scores": str, "truth": str} | dict.fromkeys(
    ("true_value", "coverage", "standard_error", "median_width", "share_without"), float
)


def write(lines: Iterable[Line], path: Path) -> None:
    """Write lines, by metric, scores, truth and rows."""
    order = {name: i for i, name in enumerate((*TRUE_VALUES, *TRUE_VALUES_OF_SAMPLES))}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        for line in sorted(lines, key=lambda line: (order[line.metric], line.scores, TRUTHS.index(line.truth), line.n)):
            writer.writerow(asdict(line))


def main() -> None:
    """Simulate every world and size."""
    parser = argparse.ArgumentParser(description="Coverage of the intervals at nominal 90 %.")
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--metrics", nargs="+", choices=all_metrics())
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines = []
    for world in WORLDS:
        for n in SIZES:
            lines += simulate(world, n, replicates=options.replicates, seed=options.seed, metrics=options.metrics)
            sys.stderr.write(f"{world.scores} {world.truth} {n}\n")
    if options.metrics is not None and options.output.exists():
        lines += [line for line in read(options.output) if line.metric not in options.metrics]
    write(lines, options.output)


if __name__ == "__main__":
    main()
