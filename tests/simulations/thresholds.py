"""How often the threshold that `selective` chooses for a target accuracy fails on new rows. Run it alone.

    python tests/simulations/thresholds.py [--replicates 1000] [--seed 1] [--output FILE.csv]

Many samples are drawn from each world and stand as segments in one table, so that one call of `calframe.selective`
chooses all their thresholds. A line of the result has the world, the rows of a sample, the target, the share of samples
whose chosen threshold has a true accuracy below the target (samples without a threshold do not fail) with its Monte
Carlo standard error, the same of the lowest threshold whose accuracy in the sample reaches the target ("naive"), the
share of samples with a threshold, and the mean share of rows that it answers. True accuracies are exact: the integral
of the world's true chance from the threshold up.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
import polars as pl
from numpy.typing import NDArray

from calframe._selective import selective

Floats = NDArray[np.float64]

LEVEL = 0.95
SIZES = (100, 500, 5000)
TARGETS = (0.8, 0.9)
RESULTS = Path(__file__).with_name("thresholds.csv")
_ROWS_AT_ONCE = 1_000_000
_ROUNDING = 1e-9  # a true accuracy that is lower by less is the target


@dataclass(frozen=True, slots=True)
class World:
    """Confidences, evenly spread over (1/2, 1] or at a few values, and how often rows are right there.

    Attributes
    ----------
    right : callable
        The true chance that a row of a confidence is right.
    ties : tuple of float
        The values, equally likely; empty where confidences are spread.
    """

    right: Callable[[Floats], Floats]
    ties: tuple[float, ...] = ()

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        """Return confidences, and whether each row is right."""
        confidence = rng.choice(self.ties, rows) if self.ties else 1.0 - rng.random(rows) / 2.0
        return confidence, rng.random(rows) < self.right(confidence)

    def accuracy(self, threshold: Floats) -> Floats:
        """Return the true accuracy of rows with a confidence of at least each threshold."""
        if self.ties:
            values = np.array(self.ties)
            above = values >= threshold[:, None]
            return (above * self.right(values)).sum(axis=1) / above.sum(axis=1)
        # midpoints of a fine grid in (threshold, 1): the chances are smooth but for a few steps
        at = threshold[:, None] + (1.0 - threshold[:, None]) * (np.arange(2000) + 0.5) / 2000
        return np.asarray(self.right(at).mean(axis=1))


WORLDS: dict[str, World] = {
    "calibrated": World(lambda c: c),
    "overconfident": World(lambda c: 0.5 + 0.7 * (c - 0.5)),
    "underconfident": World(lambda c: np.minimum(0.8 + 0.5 * (c - 0.5), 1.0)),
    "just below 0.9": World(lambda c: np.full_like(c, 0.899)),
    "just below 0.8": World(lambda c: np.full_like(c, 0.799)),
    "weak": World(lambda c: np.full_like(c, 0.6)),
    "cliff": World(lambda c: np.where(c > 0.9, 0.95, np.where(c > 0.8, 0.84, 0.6))),
    "confidently wrong": World(lambda c: np.where(c > 0.95, 0.75, np.where(c > 0.7, 0.95, 0.7))),
    "less sure, more right": World(lambda c: 1.35 - 0.6 * c),
    "six scores": World(lambda c: 0.97 * c, ties=(0.55, 0.65, 0.75, 0.85, 0.95, 1.0)),
    "one score": World(lambda c: np.full_like(c, 0.895), ties=(0.9,)),
    "two scores": World(lambda c: np.where(c > 0.8, 0.91, 0.88), ties=(0.7, 0.9)),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    world: str
    n: int
    target: float
    failures: float
    standard_error: float
    naive_failures: float
    share_with: float
    mean_coverage: float


def simulate(world: World, n: int, *, replicates: int, seed: int) -> dict[float, dict[str, Floats]]:
    """Return for each target what became of each sample: failed, naive_failed, held (0 or 1) and coverage."""
    rng = np.random.default_rng([seed, n])
    at_once = max(1, _ROWS_AT_ONCE // n)
    parts: dict[float, list[dict[str, Floats]]] = {target: [] for target in TARGETS}
    for start in range(0, replicates, at_once):
        samples = min(at_once, replicates - start)
        confidence, right = world.draw(n * samples, rng)
        frame = pl.DataFrame({"right": right, "p": confidence, "sample": np.repeat(np.arange(samples), n)})
        found = selective(
            frame,
            label="right",
            score="p",
            by="sample",
            notion="correctness",
            target_accuracy=TARGETS,
            confidence_level=LEVEL,
            points=max(n, 2),
        )
        for target in TARGETS:
            chosen = found.targets.filter(pl.col("target_accuracy") == target)
            reached = found.table.filter(pl.col("accuracy") >= target).group_by("sample").agg(pl.col("threshold").min())
            naive = chosen.select("sample").join(reached, on="sample", how="left", maintain_order="left")
            parts[target].append(
                {
                    "failed": fails(world, chosen["threshold"], target),
                    "naive_failed": fails(world, naive["threshold"], target),
                    "held": chosen["threshold"].is_not_null().cast(pl.Float64).to_numpy(),
                    "coverage": chosen["coverage"].fill_null(0.0).to_numpy(),
                }
            )
    return {
        target: {name: np.concatenate([part[name] for part in some]) for name in some[0]}
        for target, some in parts.items()
    }


def lines(*, replicates: int, seed: int, sizes: Sequence[int] = SIZES) -> Iterator[Line]:
    """Give a line for each world, size and target."""
    for name, world in WORLDS.items():
        for n in sizes:
            for target, found in simulate(world, n, replicates=replicates, seed=seed).items():
                share = float(found["failed"].mean())
                yield Line(
                    world=name,
                    n=n,
                    target=target,
                    failures=share,
                    standard_error=float(np.sqrt(share * (1.0 - share) / replicates)),
                    naive_failures=float(found["naive_failed"].mean()),
                    share_with=float(found["held"].mean()),
                    mean_coverage=round(float(found["coverage"].mean()), 4),
                )


def fails(world: World, thresholds: pl.Series, target: float) -> Floats:
    """Return 1 where there is a threshold and its true accuracy is below the target."""
    failed = np.zeros(len(thresholds))
    there = thresholds.is_not_null().to_numpy()
    failed[there] = world.accuracy(thresholds.drop_nulls().to_numpy()) < target - _ROUNDING
    return failed


def run(
    description: str | None, kind: type[Any], lines: Callable[..., Iterator[Any]], *, replicates: int, results: Path
) -> None:
    """Read the command line of a simulation, run it, and write its lines, which are of one kind, as they come."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=replicates)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=results)
    given = parser.parse_args()
    with given.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(kind)], lineterminator="\n")
        writer.writeheader()
        for line in lines(replicates=given.replicates, seed=given.seed):
            writer.writerow(asdict(line))
            file.flush()


if __name__ == "__main__":
    run(__doc__, Line, lines, replicates=1000, results=RESULTS)
