"""How often `calframe.drift` finds something in right scores whose labels share their luck, by cluster and without.

    python tests/simulations/drift_clusters.py [--tables 400] [--seed 2] > tests/simulations/drift_clusters.csv

Each line is a world and whether `cluster` was given: so many tables of six months, and the share of them in which any
period is found off or changed at a nominal 5 %, with the largest Monte Carlo standard error. Labels are 1 where a
normal number, correlated within clusters, is below the quantile of the score: each by itself has the chance that its
score says. Scores of a cluster lie near each other, too.

====================  ==================================================================================================
column                share of tables with
====================  ==================================================================================================
gap, change           an adjusted p-value of `gap_pvalue`, of `gap_change_pvalue`, of at most 0.05
psi, ks               the same of `psi_pvalue`, `ks_pvalue`
clear                 a clear verdict, `over` or `under`, at a tolerance of 0.001
since                 a headline that names a period since when scores are off
alarm                 an alarm of the monitor
====================  ==================================================================================================
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
import polars as pl
from scipy.special import expit, ndtri

import calframe

MONTHS = [dt.date(2024, month, 1) for month in range(1, 7)]
_DAYS = 28


@dataclass(frozen=True, slots=True)
class World:
    """Where the clusters of rows lie: the cluster and the day, counted from 0, of each row."""

    rows: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    correlation: float


def _copies(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 150 clusters a month, each of five rows of a day."""
    cluster = np.repeat(np.arange(900), 5)
    return cluster, np.repeat((np.arange(900) // 150) * _DAYS + rng.integers(0, _DAYS, 900), 5)


def _persons(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return 300 persons, each with fifteen rows on any day of all months."""
    cluster = np.repeat(np.arange(300), 15)
    return cluster, rng.integers(0, 6 * _DAYS, len(cluster))


def _days(_: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return days that are clusters, of 25 rows each."""
    day = np.repeat(np.arange(6 * _DAYS), 25)
    return day, day


def _unequal(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return clusters of a day each of very unequal size, one to forty rows."""
    sizes = np.ceil(40.0 * rng.random(1200) ** 4).astype(np.int64)
    return np.repeat(np.arange(1200), sizes), np.repeat(rng.integers(0, 6 * _DAYS, 1200), sizes)


WORLDS = {
    "copies": World(_copies, 1.0),
    "persons": World(_persons, 0.3),
    "days": World(_days, 0.1),
    "unequal": World(_unequal, 0.4),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    world: str
    rate: str
    clustered: bool
    seed: int
    tables: int
    gap: float
    change: float
    psi: float
    ks: float
    clear: float
    since: float
    alarm: float
    standard_error: float


def table(world: World, rng: np.random.Generator, *, rare: bool = False) -> pl.DataFrame:
    """Draw a table of right scores."""
    cluster, day = world.rows(rng)
    own = world.correlation
    centre = rng.normal(-3.0 if rare else 0.0, 0.7, int(cluster.max()) + 1)[cluster]
    score = expit(centre + (0.0 if own == 1.0 else rng.normal(0.0, 0.7, len(cluster))))
    luck = np.sqrt(own) * rng.normal(size=int(cluster.max()) + 1)[cluster]
    luck = luck + np.sqrt(1.0 - own) * rng.normal(size=len(cluster))
    dates = [MONTHS[place // _DAYS] + dt.timedelta(days=int(place % _DAYS)) for place in day.tolist()]
    return pl.DataFrame({"y": (luck < ndtri(score)).astype(int), "p": score.round(3), "id": cluster, "day": dates})


def found(drawn: pl.DataFrame, *, cluster: str | None) -> list[bool]:
    """Return what is found in a table, in the order of the columns."""
    result = calframe.drift(drawn, label="y", score="p", time="day", cluster=cluster, tolerance=0.001, batch="day")
    lines = result.table
    names = ("gap_pvalue", "gap_change_pvalue", "psi_pvalue", "ks_pvalue")
    small = [bool((lines[f"{name}_adjusted"] <= 0.05).any()) for name in names]
    clear = bool(lines["verdict"].is_in(["over", "under"]).any())
    return [*small, clear, bool(result.since), bool(result.monitor["alarm"].any())]


def simulated(name: str, tables: int, seed: int, *, rare: bool) -> list[Line]:
    """Return the lines of a world."""
    rng = np.random.default_rng([seed, list(WORLDS).index(name), int(rare)])
    drawn = [table(WORLDS[name], rng, rare=rare) for _ in range(tables)]
    lines = []
    for cluster in ("id", None):
        shares = np.mean([found(one, cluster=cluster) for one in drawn], axis=0)
        error = float(np.sqrt(shares * (1.0 - shares) / tables).max())
        rounded = [round(float(share), 4) for share in shares]
        lines.append(
            Line(name, "rare" if rare else "even", cluster is not None, seed, tables, *rounded, round(error, 4))
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, and print the lines as they come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--worlds", nargs="*", default=[*WORLDS])
    chosen = parser.parse_args(arguments)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow([field.name for field in fields(Line)])
    for name in chosen.worlds:
        for rare in (False, True):
            out.writerows([astuple(line) for line in simulated(name, chosen.tables, chosen.seed, rare=rare)])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
