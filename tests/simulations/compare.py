"""How often `compare` finds a difference where there is none, and how often its intervals hold the true one.

    python tests/simulations/compare.py [--replicates 1000] [--seed 1] [--kind size coverage] [--output FILE.csv]

Many samples are drawn from each world and stand as segments in one table, so that one call of `calframe.compare` does
them all. A line of the result has the kind ("size": the share of p-values of at most 0.05 with exchangeable models;
"coverage": the share of 90 % intervals that hold the true difference), the metric, the world, the rows of a sample, the
true difference, that share with its Monte Carlo standard error, the median length of the intervals, and the share of
samples without a p-value or an interval, which do not count otherwise. Lines of the kinds asked for replace those in
the file.

Two models see half of what there is to know each: with z1, z2 and e normal, a positive has the chance
``expit(c + z1 + z2)``; the first model knows z1, the second z2, and a calibrated score is the chance given that. Other
models distort such a score by a shift or a slope of its logit. True values are those of a fine grid.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

import calframe
from calframe._compare import compare

Floats = NDArray[np.float64]
RESULTS = Path(__file__).with_name("compare.csv")
LEVEL, ALPHA, BINS = 0.9, 0.05, 10
SIZES = {"size": (50, 200, 2_000), "coverage": (200, 2_000)}
SIZE_METRICS = ("brier", "log_loss", "accuracy", "gap", "auc", "ece", "smece", "mcb", "slope")
COVERAGE_METRICS = (
    *("brier", "log_loss", "accuracy", "gap", "ratio", "brier_skill", "sharpness", "auc", "slope", "intercept", "citl"),
    *("ece", "rmsce", "ace", "reliability", "resolution", "smece", "ecce_r", "ecce_mad", "aurc", "eaurc"),
)
_ROWS_AT_ONCE = 20_000
_POPULATION = 1e9  # rows; some measures count weights as rows
_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(80)
_SHARES = _SHARES / _SHARES.sum()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    kind: str
    metric: str
    world: str
    n: int
    true_difference: float
    share: float
    standard_error: float
    median_width: float
    share_without: float


@dataclass(frozen=True, slots=True)
class World:
    """Two models: how common positives are, and how the logits of calibrated scores are distorted."""

    centre: float = -0.4
    shifts: tuple[float, float] = (0.0, 0.0)
    slopes: tuple[float, float] = (1.0, 1.0)
    same: bool = False  # both models know z1
    digits: int | None = None
    weighted: bool = False

    def scores(self, z1: Floats, z2: Floats) -> tuple[Floats, Floats]:
        """Return the scores of both models."""
        known = (z1, z1 if self.same else z2)
        found = [
            special.expit(b * special.logit(self.chance(z)) + a)
            for z, a, b in zip(known, self.shifts, self.slopes, strict=True)
        ]
        if self.digits is not None:
            found = [np.round(score, self.digits) for score in found]
        return found[0], found[1]

    def draw(self, rows: int, rng: np.random.Generator) -> pl.DataFrame:
        """Return a table of so many rows."""
        z1, z2 = rng.normal(size=(2, rows))
        label = (rng.random(rows) < special.expit(self.centre + z1 + z2)).astype(np.int64)
        first, second = self.scores(z1, z2)
        weight = rng.integers(1, 6, rows) if self.weighted else np.ones(rows)
        return pl.DataFrame({"y": label, "a": first, "b": second, "w": weight.astype(np.float64)})

    def chance(self, known: Floats) -> Floats:
        """Return the chance of a positive given one of z1 and z2, interpolated between exact values."""
        grid = np.linspace(-7.0, 7.0, 2_001)
        exact = special.expit(self.centre + grid[:, None] + _NODES) @ _SHARES
        return np.interp(known, grid, exact)


WORLDS = {
    "balanced": World(centre=0.0),
    "rare": World(centre=-4.65),  # 2 % positives
    "tied": World(centre=0.0, digits=1),
    "weighted": World(centre=0.0, weighted=True),
    "shifted alike": World(shifts=(0.6, 0.6)),
    "calibrated": World(),
    "second shifted": World(shifts=(0.0, 0.4)),
    "second steep": World(slopes=(1.0, 2.0)),
    "first steep": World(slopes=(2.0, 1.0)),
    "same, shifted": World(shifts=(0.0, 0.4), same=True),
    "nearly the same": World(shifts=(0.5, 0.5), slopes=(1.0, 1.05), same=True),
    "opposite shifts": World(shifts=(0.6, -0.6)),
    "rare, shifted": World(centre=-4.65, shifts=(0.0, 0.4)),
}
EQUAL = ("balanced", "rare", "tied", "weighted", "shifted alike")
UNEQUAL = (
    "calibrated",
    "shifted alike",
    "second shifted",
    "second steep",
    "first steep",
    "same, shifted",
    "nearly the same",
    "opposite shifts",
    "rare, shifted",
)


def true_values(world: World, metrics: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return the value of each metric for both models: that of the population, as a weighted table of a fine grid.

    The tests check what `calframe.metrics` makes of that table against closed forms.
    """
    tables = [population(world, side) for side in (0, 1)]
    names = list(metrics)
    found = [
        calframe.metrics(table, label="y", score="p", weight="w", metrics=names, bins=BINS).row(0, named=True)
        for table in tables
    ]
    return {name: (found[0][name], found[1][name]) for name in names}


def population(world: World, side: int) -> pl.DataFrame:
    """Return the scores of one model with the weight of positives and negatives at each."""
    edge = np.linspace(-6.5, 6.5, 6_501)
    middle, share = (edge[1:] + edge[:-1]) / 2.0, np.diff(special.ndtr(edge))
    share = share / share.sum() * _POPULATION
    chance, score = world.chance(middle), world.scores(middle, middle)[side]
    return pl.concat(
        [
            pl.DataFrame({"y": np.full(len(score), label), "p": score, "w": weight})
            for label, weight in ((1, share * chance), (0, share * (1.0 - chance)))
        ]
    )


def simulate(
    kind: str, name: str, n: int, *, replicates: int, seed: int, metrics: Iterable[str] | None = None
) -> Iterator[Line]:
    """Give a line for each metric in one world, from so many samples of `n` rows."""
    world = WORLDS[name]
    asked = tuple(metrics) if metrics is not None else SIZE_METRICS if kind == "size" else COVERAGE_METRICS
    rng = np.random.default_rng([seed, n, list(WORLDS).index(name)])
    at_once = max(1, _ROWS_AT_ONCE // n)
    parts = []
    for start in range(0, replicates, at_once):
        samples = min(at_once, replicates - start)
        table = world.draw(n * samples, rng).with_columns(sample=pl.Series(np.repeat(np.arange(samples), n)))
        found = compare(
            table,
            label="y",
            score=["a", "b"],
            by="sample",
            weight="w" if world.weighted else None,
            metrics=list(asked),
            bins=BINS,
            confidence_level=LEVEL,
            correction="none",
            n_resamples=499 if kind == "size" else 100,
            rng=int(rng.integers(2**31)),
        )
        parts.append(found.table)
    table = pl.concat(parts)
    truth = dict.fromkeys(asked, (0.0, 0.0)) if kind == "size" else true_values(world, asked)
    for metric in asked:
        yield _line(kind, metric, name, n, table.filter(pl.col("metric") == metric), truth[metric])


def _line(kind: str, metric: str, world: str, n: int, table: pl.DataFrame, truth: tuple[float, float]) -> Line:
    low, high, pvalue = (table[name].fill_null(np.nan).to_numpy() for name in ("low", "high", "pvalue"))
    true = truth[1] - truth[0]
    there = ~np.isnan(pvalue if kind == "size" else low)
    hit = pvalue <= ALPHA if kind == "size" else (low <= true + 1e-12) & (true - 1e-12 <= high)
    share = float(hit[there].mean()) if there.any() else np.nan
    width = (high - low)[~np.isnan(low)]
    return Line(
        kind=kind,
        metric=metric,
        world=world,
        n=n,
        true_difference=float(f"{true:.5g}"),
        share=round(share, 4),
        standard_error=round(float(np.sqrt(share * (1.0 - share) / max(there.sum(), 1))), 4),
        median_width=float(f"{np.median(width) if len(width) else np.nan:.4g}"),
        share_without=round(float(1.0 - there.mean()), 4),
    )


def read(path: Path = RESULTS) -> list[Line]:
    """Return the lines of a result."""
    kinds: dict[str, Callable[[str], object]] = {"str": str, "int": int, "float": float}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Line(**{field.name: kinds[str(field.type)](row[field.name]) for field in fields(Line)})  # type: ignore[arg-type]
            for row in csv.DictReader(file)
        ]


def write(lines: Iterable[Line], path: Path = RESULTS) -> None:
    """Write the lines of a result."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


def main() -> None:
    """Run the simulation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", nargs="+", default=["size", "coverage"], choices=["size", "coverage"])
    parser.add_argument("--metrics", nargs="+")
    parser.add_argument("--worlds", nargs="+")
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    made: list[Line] = []
    for kind in given.kind:
        worlds = given.worlds or (EQUAL if kind == "size" else UNEQUAL)
        for name in worlds:
            for n in given.sizes or SIZES[kind]:
                found = simulate(kind, name, n, replicates=given.replicates, seed=given.seed, metrics=given.metrics)
                made.extend(found)
                sys.stderr.write(f"{kind} {name} {n}\n")
    done = {(line.kind, line.metric, line.world, line.n) for line in made}
    before = read(given.output) if given.output.exists() else []
    write([*(line for line in before if (line.kind, line.metric, line.world, line.n) not in done), *made], given.output)


if __name__ == "__main__":
    main()
