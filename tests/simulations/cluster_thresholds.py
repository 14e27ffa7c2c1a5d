"""How often the threshold that `selective` chooses with `cluster=` fails on new rows. Run it alone.

    python tests/simulations/cluster_thresholds.py [--replicates 400] [--seed 1] [--output FILE.csv]

As `thresholds.py`, of rows in clusters that share their luck: ``copies`` are one row each, in confidence and luck; rows
that are ``alike`` have the luck of their cluster with a chance of sqrt(0.3), so that two of them share it with a chance
of 0.3; of ``spoilt`` clusters, 3 in 100, every row is wrong. Each row alone is right with the true chance of its world.
A line has the world, how luck is shared, the number of clusters and their rows, the target, the share of samples whose
threshold fails with its Monte Carlo standard error, the same without `cluster=` ("plain"), the share of samples with a
threshold, and the mean share of rows that it answers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, get_args

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
import polars as pl
from numpy.typing import NDArray

from calframe._selective import selective
from tests.simulations.thresholds import LEVEL, TARGETS, WORLDS, World, fails, run

Floats = NDArray[np.float64]
Sharing = Literal["copies", "alike", "spoilt"]

CLUSTERS = (30, 300, 1000)
SIZES = (2, 5, 20)
NAMES = ("calibrated", "cliff", "just below 0.9", "one score")
RESULTS = Path(__file__).with_name("cluster_thresholds.csv")
_ALIKE = 0.3  # the chance that two rows of a cluster share their luck
_SPOILT = 0.03  # of the clusters
_ROWS_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    world: str
    sharing: str
    clusters: int
    size: int
    target: float
    failures: float
    standard_error: float
    plain_failures: float
    share_with: float
    mean_coverage: float


def draw(
    world: World, sharing: Sharing, clusters: int, size: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return confidences, and whether each row is right, cluster after cluster."""
    if sharing == "copies":
        confidence, right = world.draw(clusters, rng)
        return np.repeat(confidence, size), np.repeat(right, size)
    confidence, _ = world.draw(clusters * size, rng)
    luck = rng.random(clusters * size)
    if sharing == "spoilt":
        good = np.repeat(rng.random(clusters) >= _SPOILT, size)
        return confidence, good & (luck < world.right(confidence) / (1.0 - _SPOILT))
    together = rng.random(clusters * size) < np.sqrt(_ALIKE)
    luck = np.where(together, np.repeat(rng.random(clusters), size), luck)
    return confidence, luck < world.right(confidence)


def simulate(
    world: World, sharing: Sharing, clusters: int, size: int, *, replicates: int, seed: int
) -> dict[float, dict[str, Floats]]:
    """Return for each target what became of each sample: failed, plain_failed, held (0 or 1) and coverage."""
    rng = np.random.default_rng([seed, get_args(Sharing).index(sharing), clusters, size])
    at_once = max(1, _ROWS_AT_ONCE // (clusters * size))
    parts: dict[float, list[dict[str, Floats]]] = {target: [] for target in TARGETS}
    for start in range(0, replicates, at_once):
        samples = min(at_once, replicates - start)
        confidence, right = draw(world, sharing, clusters * samples, size, rng)
        cluster = np.repeat(np.arange(clusters * samples), size)
        frame = pl.DataFrame({"right": right, "p": confidence, "c": cluster, "sample": cluster // clusters})
        found, plain = (
            selective(
                frame,
                label="right",
                score="p",
                by="sample",
                notion="correctness",
                target_accuracy=TARGETS,
                confidence_level=LEVEL,
                points=2,
                cluster=column,
            ).targets
            for column in ("c", None)
        )
        for target in TARGETS:
            chosen, other = (table.filter(pl.col("target_accuracy") == target) for table in (found, plain))
            parts[target].append(
                {
                    "failed": fails(world, chosen["threshold"], target),
                    "plain_failed": fails(world, other["threshold"], target),
                    "held": chosen["threshold"].is_not_null().cast(pl.Float64).to_numpy(),
                    "coverage": chosen["coverage"].fill_null(0.0).to_numpy(),
                }
            )
    return {
        target: {name: np.concatenate([part[name] for part in some]) for name in some[0]}
        for target, some in parts.items()
    }


def possible(world: World, sharing: Sharing) -> bool:
    """Tell whether enough rows can be wrong for clusters to be spoilt."""
    return sharing != "spoilt" or float(world.right(np.linspace(0.5, 1.0, 101)).max()) <= 1.0 - _SPOILT


def lines(*, replicates: int, seed: int) -> Iterator[Line]:
    """Give a line for each world, way to share, number and size of clusters, and target."""
    for name, sharing, clusters, size in product(NAMES, get_args(Sharing), CLUSTERS, SIZES):
        if not possible(WORLDS[name], sharing):
            continue
        outcome = simulate(WORLDS[name], sharing, clusters, size, replicates=replicates, seed=seed)
        for target, found in outcome.items():
            share = float(found["failed"].mean())
            yield Line(
                world=name,
                sharing=sharing,
                clusters=clusters,
                size=size,
                target=target,
                failures=share,
                standard_error=round(float(np.sqrt(share * (1.0 - share) / replicates)), 6),
                plain_failures=float(found["plain_failed"].mean()),
                share_with=float(found["held"].mean()),
                mean_coverage=round(float(found["coverage"].mean()), 4),
            )


if __name__ == "__main__":
    run(__doc__, Line, lines, replicates=400, results=RESULTS)
