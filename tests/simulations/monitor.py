"""How often the monitor of `calframe.drift` sounds without a reason, and how soon with one. Run it alone.

    python tests/simulations/monitor.py [--runs 1000] [--seed 1] [--worlds rare ...] [--output FILE.csv]

In each run ten thousand rows come in a thousand batches of ten, and the monitor is looked at after every batch. A line
of the result has the world that scores come from and what is true of labels, the runs, the share in which the e-value
reached 20 (alpha = 0.05) at any look, with its Monte Carlo standard error, the median number of rows until then (after
the change, where there is one; infinite where less than half of the runs get there), and both of the e-detector at
1,000. Alarms before the change count as alarms, not in the median. With ``--worlds`` the lines of these worlds replace
those in the file.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
from numpy.typing import NDArray

from calframe._kernels._tally import Tally
from calframe._testing._monitor import wealth

RESULTS = Path(__file__).with_name("monitor.csv")
LOOKS, ROWS = 1_000, 10
ALARM, DETECTOR = 20.0, 1_000.0
_AT_ONCE = 100  # runs that are worked on together

Floats = NDArray[np.float64]
Truth = Callable[[Floats], Floats]


def logit(chance: Floats) -> Floats:
    """Return the logit."""
    return np.log(chance) - np.log1p(-chance)


def expit(value: Floats) -> Floats:
    """Return the chance of a logit."""
    return 1.0 / (1.0 + np.exp(-value))


WORLDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "balanced": lambda rng, shape: rng.beta(2.0, 2.0, shape),
    "rare": lambda rng, shape: rng.uniform(0.002, 0.02, shape),
    "rare_equal": lambda rng, shape: np.full(shape, 0.002) + 0.0 * rng.random(shape),
    "skewed": lambda rng, shape: rng.beta(0.5, 24.5, shape).clip(1e-6, 1.0 - 1e-6),
    "six_tied": lambda rng, shape: rng.choice([0.0, 0.1, 0.3, 0.5, 0.9, 1.0], shape),
    "weighted": lambda rng, shape: rng.beta(2.0, 2.0, shape),
}
TRUTHS: dict[str, Truth] = {
    "calibrated": lambda score: score,
    "shift 0.2": lambda score: expit(logit(score) + 0.2),
    "shift 0.5": lambda score: expit(logit(score) + 0.5),
    "slope +0.5": lambda score: expit(1.5 * logit(score)),
    "slope -0.3": lambda score: expit(0.7 * logit(score)),
    "one bin of five +0.8": lambda score: np.where((score >= 0.2) & (score < 0.4), expit(logit(score) + 0.8), score),
}
LATE = "shift 0.3 from row 5000"
CASES = [
    *((world, "calibrated") for world in WORLDS),
    *(("balanced", truth) for truth in TRUTHS if truth != "calibrated"),
    ("balanced", LATE),
    ("rare", "shift 0.5"),
    ("weighted", "shift 0.5"),
]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    world: str
    truth: str
    runs: int
    alarm: float
    standard_error: float
    median_rows: float
    detector_alarm: float
    detector_median_rows: float


def simulate(world: str, truth: str, *, runs: int, seed: int) -> Line:
    """Return the line of one world and truth."""
    rng = np.random.default_rng([seed, CASES.index((world, truth))])
    changed = LOOKS // 2 if truth == LATE else 0
    hits = [first_looks(rng, world, truth, min(_AT_ONCE, runs - done)) for done in range(0, runs, _AT_ONCE)]
    alarm, detector = (np.concatenate(each) for each in zip(*hits, strict=True))
    share = float((alarm <= LOOKS).mean())
    return Line(
        world=world,
        truth=truth,
        runs=runs,
        alarm=share,
        standard_error=round(float(np.sqrt(share * (1.0 - share) / runs)), 4),
        median_rows=median_rows(alarm, changed),
        detector_alarm=float((detector <= LOOKS).mean()),
        detector_median_rows=median_rows(detector, changed),
    )


def first_looks(rng: np.random.Generator, world: str, truth: str, runs: int) -> tuple[Floats, Floats]:
    """Return the look at which each run first sounds, of e-value and e-detector; one more than there are for none."""
    score = np.sort(WORLDS[world](rng, (runs, LOOKS, ROWS)), axis=2)
    chance = (
        np.where(np.arange(LOOKS)[:, None] < LOOKS // 2, score, expit(logit(score) + 0.3))
        if truth == LATE
        else (TRUTHS[truth](score))
    )
    label = (rng.random(score.shape) < chance).astype(np.float64)
    weight = rng.integers(1, 4, score.shape).astype(np.float64) if world == "weighted" else np.ones(score.shape)
    batches = Tally(
        starts=np.arange(0, score.size, ROWS),
        score=score.ravel(),
        rows=np.ones(score.size),
        weight=weight.ravel(),
        positive=(weight * label).ravel(),
        squared=(weight**2).ravel(),
        squared_positive=(weight**2 * label).ravel(),
    )
    found = wealth(batches, np.arange(0, runs * LOOKS, LOOKS), scale=1.0 / weight.max())
    return tuple(
        first_above(log.reshape(runs, LOOKS), threshold)
        for log, threshold in zip(found, (ALARM, DETECTOR), strict=True)
    )


def first_above(log: Floats, threshold: float) -> Floats:
    """Return the first look, from 1, at which each run reaches a threshold."""
    reached = log >= np.log(threshold)
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, LOOKS + 1.0)


def median_rows(look: Floats, changed: int) -> float:
    """Return the median number of rows after the change, of the runs that did not sound before it."""
    after = look[look > changed]
    return float(np.median(np.where(after <= LOOKS, (after - changed) * ROWS, np.inf))) if len(after) else np.inf


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", nargs="*", choices=list(WORLDS), default=None)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args(arguments)
    worlds = chosen.worlds or list(WORLDS)
    kept = {}
    if chosen.worlds and chosen.output.exists():
        with chosen.output.open(encoding="utf-8", newline="") as file:
            kept = {(row["world"], row["truth"]): row for row in csv.DictReader(file)}
    for case in CASES:
        if case[0] in worlds:
            kept[case] = {
                name: str(value) for name, value in asdict(simulate(*case, runs=chosen.runs, seed=chosen.seed)).items()
            }
            print(kept[case], flush=True)  # noqa: T201
    with chosen.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[case] for case in CASES if case in kept)


if __name__ == "__main__":
    main()
