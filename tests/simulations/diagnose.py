"""How often `diagnose` finds a pattern in right scores, and how often it finds the one that is there.

    python tests/simulations/diagnose.py [--replicates 1000] [--seed 1] [--kind right patterns] [--output FILE.csv]

A line of the result has the kind, the world, the rows of a table, how many tables (segments) stand under one
correction, the pattern, the share of families (kind "right": with any pattern found, where none is there) or of
tables (kind "patterns": with that pattern), how many these were, and the Monte Carlo standard error of the share.
Lines of the kinds asked for replace those in the file, which has 200 replicates.

Scores are ``expit(z)`` with normal z, or six values; in worlds of the second kind positives have another chance than
their score says.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calframe._kernels._building import tallies
from calframe._kernels._tally import Tally
from calframe._testing._draws import Drawing
from calframe._testing._pattern_numbers import measured
from calframe._testing._patterns import Rules, Values, adjust, patterns

Floats = NDArray[np.float64]
World = tuple[Callable[[np.random.Generator, int], Floats], Callable[[Floats], Floats], bool]

RESULTS = Path(__file__).with_name("diagnose.csv")
RULES = Rules(alpha=0.05, tolerance=0.03, extreme=0.01, correction="holm", min_rows=100, min_events=10)
STRICT = Rules(alpha=0.05, tolerance=0.001, extreme=0.01, correction="holm", min_rows=100, min_events=10)
SIZES, FAMILIES = (100, 500, 5_000), (1, 10)
FOUND_IN = (500, 2_000, 10_000)
NOTHING = ("none found", "not decided", "collapse")  # collapse is said of scores, right or wrong
_RESAMPLES = 1_000
_ROWS_AT_ONCE = 1_000_000


def _normal(mean: float, spread: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: rng.normal(mean, spread, n)


def _six(rng: np.random.Generator, n: int) -> Floats:
    z: Floats = special.logit(rng.choice([0.05, 0.2, 0.4, 0.6, 0.8, 0.95], n))
    return z


def _same(z: Floats) -> Floats:
    return z


RIGHT: dict[str, World] = {
    "balanced": (_normal(0.0, 1.5), _same, False),
    "two percent": (_normal(-4.4, 1.0), _same, False),
    "six scores": (_six, _same, False),
    "certain": (_normal(0.0, 6.0), _same, False),
    "weights": (_normal(0.0, 1.5), _same, True),
    "two percent, weights": (_normal(-4.4, 1.0), _same, True),
}
WRONG: dict[str, tuple[str, World]] = {
    "a shift of 0.8": ("says too much", (_normal(0.5, 1.0), lambda z: z - 0.8, False)),
    "a shift of -0.8": ("says too little", (_normal(-0.5, 1.0), lambda z: z + 0.8, False)),
    "slope 0.5": ("over-confident", (_normal(0.0, 2.0), lambda z: 0.5 * z, False)),
    "slope 2": ("under-confident", (_normal(0.0, 0.8), lambda z: 2.0 * z, False)),
    "over, under, over": ("crossing", (_normal(0.0, 1.5), lambda z: z - 1.2 * np.sin(2.0 * z), False)),
    "bent": ("crossing", (_normal(0.0, 1.5), lambda z: 0.6 * z**2 - 1.2, False)),
    "all near a half": ("collapse", (_normal(0.0, 0.05), lambda z: 20.0 * z, False)),
    "one score": ("collapse", (_normal(0.0, 0.0), _same, False)),
    "near 1 whatever happens": ("extreme", (_normal(6.0, 1.0), lambda z: np.full_like(z, 1.0), False)),
    "near 0 and 1": ("extreme", (_normal(0.0, 8.0), lambda z: np.clip(z, -1.5, 1.5), False)),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    kind: str
    world: str
    n: int
    segments: int
    pattern: str
    share: float
    families: int
    standard_error: float


def numbers(world: World, n: int, many: int, rng: np.random.Generator, rules: Rules) -> Values:
    """Return the numbers of many tables of a world."""
    scores, truth, weighted = world
    z = scores(rng, n * many)
    label = (rng.random(n * many) < special.expit(truth(z))).astype(np.float64)
    weight = rng.exponential(size=n * many) if weighted else None
    parts = tallies(
        np.repeat(np.arange(many), n),
        special.expit(z),
        label,
        segments=many,
        weight=weight,
        squared=None if weight is None else weight**2,
        sort=np.sort,
    )
    tally = Tally.joined([part for _, part in parts])
    return measured(tally, rules, Drawing(n_resamples=_RESAMPLES, rng=rng))


def named(values: Values, rules: Rules) -> NDArray[np.object_]:
    """Return the patterns of tables that stand under one correction."""
    return patterns(values | adjust(values, rules), rules)


def _lots(n: int, many: int) -> Iterator[int]:
    at_once = max(_ROWS_AT_ONCE // n, 1)
    for begin in range(0, many, at_once):
        yield min(at_once, many - begin)


def gathered(world: World, n: int, many: int, rng: np.random.Generator, rules: Rules) -> Values:
    """Return the numbers of any many tables, some at a time."""
    parts = [numbers(world, n, lot, rng, rules) for lot in _lots(n, many)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def share_found(values: Values, segments: int, rules: Rules) -> tuple[float, int]:
    """Return the share of families of tables with a pattern found, and how many there were."""
    many = len(values["rows"]) // segments
    any_ = [
        not set(named({name: column[i * segments : (i + 1) * segments] for name, column in values.items()}, rules))
        <= set(NOTHING)
        for i in range(many)
    ]
    return float(np.mean(any_)), many


def _line(kind: str, world: str, n: int, segments: int, pattern: str, share: float, families: int) -> Line:
    error = float(np.sqrt(share * (1.0 - share) / families))
    return Line(kind, world, n, segments, pattern, round(share, 4), families, round(error, 4))


def right_lines(replicates: int, rng: np.random.Generator) -> Iterator[Line]:
    """Give how often a pattern is found in right scores; with a tolerance that hides nothing."""
    for name, world in RIGHT.items():
        for n in SIZES:
            values = gathered(world, n, replicates, rng, STRICT)
            for segments in FAMILIES:
                yield _line("right", name, n, segments, "any", *share_found(values, segments, STRICT))


def pattern_lines(replicates: int, rng: np.random.Generator) -> Iterator[Line]:
    """Give how often each pattern is found where it is there."""
    for name, (pattern, world) in WRONG.items():
        for n in FOUND_IN:
            values = gathered(world, n, replicates, rng, RULES)
            seen = [
                named({key: column[i : i + 1] for key, column in values.items()}, RULES)[0] for i in range(replicates)
            ]
            share = float(np.mean([one == pattern for one in seen]))
            yield _line("patterns", name, n, 1, pattern, share, replicates)


KINDS: dict[str, Callable[[int, np.random.Generator], Iterator[Line]]] = {
    "right": right_lines,
    "patterns": pattern_lines,
}


def main() -> None:
    """Run the simulation and write its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    kept = []
    if asked.output.exists():
        with asked.output.open(encoding="utf-8") as file:
            kept = [row for row in csv.DictReader(file) if row["kind"] not in asked.kind]
    made = []
    for kind in asked.kind:
        for line in KINDS[kind](asked.replicates, np.random.default_rng(asked.seed)):
            print(*asdict(line).values())  # noqa: T201
            made.append(asdict(line))
    with asked.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *made])


if __name__ == "__main__":
    main()
