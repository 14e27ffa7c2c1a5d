"""How often the tests of `calframe.drift` reject right scores, and how often wrong ones. Run it alone.

    python tests/simulations/gaps.py [--runs 2000] [--seed 1] [--scores balanced ...] [--output FILE.csv]

Many periods of `n` rows are compared with references of 600 rows each. A line of the result has the kind of scores, the
rows of a period, whether rows have weights, by how much the labels of the period are rarer than its scores say, and of
three tests the share of p-values below 0.05 among those that are given, and the share that is given: the gap is 0 (by
the variance that the scores say; `drift` prints the exact Binomial test, which is more cautious), the gap is that of
the reference, the scores have the law of those of the reference (with scores squared where labels are rarer). The
reference has right scores. With ``--scores`` the lines of these kinds replace those in the file.
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

from calframe._kernels._building import tally_of_rows
from calframe._kernels._tally import Tally
from calframe._testing._distances import Pairs, kolmogorov_smirnov, smirnov_pvalue
from calframe._testing._rates import ScoreSums, change_pvalue, rate_pvalue

RESULTS = Path(__file__).with_name("gaps.csv")
SIZES, REFERENCE, ALPHA = (50, 200, 2_000), 600, 0.05
_ROWS_AT_ONCE = 1_000_000

Floats = NDArray[np.float64]

SCORES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "balanced": lambda rng, n: rng.uniform(0.1, 0.9, n),
    "rare": lambda rng, n: rng.beta(0.5, 24.5, n),
    "six_tied": lambda rng, n: rng.choice([0.05, 0.1, 0.3, 0.5, 0.7, 0.9], n),
}
OFF = {"balanced": 0.1, "rare": 0.01, "six_tied": 0.1}
CASES = [
    (scores, n, weighted, off)
    for scores in SCORES
    for n in SIZES
    for weighted in (False, True)
    for off in (0.0, OFF[scores])
]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the result."""

    scores: str
    n: int
    weighted: bool
    off: float
    runs: int
    zero: float
    zero_given: float
    change: float
    change_given: float
    ks: float
    ks_given: float


def simulate(scores: str, n: int, weighted: bool, off: float, *, runs: int, seed: int) -> Line:  # noqa: FBT001
    """Return the line of one case."""
    rng = np.random.default_rng([seed, CASES.index((scores, n, weighted, off))])
    at_once = max(1, _ROWS_AT_ONCE // (n + REFERENCE))
    found = [pvalues(rng, scores, n, weighted, off, min(at_once, runs - done)) for done in range(0, runs, at_once)]
    zero, change, ks = (np.concatenate(each) for each in zip(*found, strict=True))
    shares = {}
    for name, pvalue in (("zero", zero), ("change", change), ("ks", ks)):
        given = ~np.isnan(pvalue)
        shares[name] = round(float((pvalue[given] < ALPHA).mean()), 4) if given.any() else 0.0
        shares[f"{name}_given"] = round(float(given.mean()), 4)
    return Line(scores=scores, n=n, weighted=weighted, off=off, runs=runs, **shares)


def pvalues(
    rng: np.random.Generator,
    scores: str,
    n: int,
    weighted: bool,  # noqa: FBT001
    off: float,
    runs: int,
) -> tuple[Floats, Floats, Floats]:
    """Return the p-values of the three tests in some runs."""
    current = drawn(rng, SCORES[scores](rng, runs * n), off, runs, weighted=weighted)
    reference = drawn(rng, SCORES[scores](rng, runs * REFERENCE), 0.0, runs, weighted=weighted)
    of = np.arange(runs)
    change = change_pvalue(ScoreSums.of_tally(current), ScoreSums.of_tally(reference))[0]
    ks = np.full(runs, np.nan)
    if not weighted:
        moved = SCORES[scores](rng, runs * n)
        moved = drawn(rng, moved**2 if off else moved, 0.0, runs, weighted=False)
        pairs = Pairs.of_tallies(moved, reference, of)
        ks = smirnov_pvalue(pairs, kolmogorov_smirnov(pairs))[0]
    return rate_pvalue(ScoreSums.of_tally(current)), change, ks


def drawn(rng: np.random.Generator, score: Floats, off: float, runs: int, *, weighted: bool) -> Tally:
    """Return the tally of as many samples as runs, labels drawn from their scores less `off`."""
    label = (rng.random(len(score)) < np.maximum(score - off, 0.0)).astype(np.float64)
    weight = rng.integers(1, 6, len(score)).astype(np.float64) if weighted else None
    code = np.repeat(np.arange(runs), len(score) // runs)
    return tally_of_rows(code, score, label, segments=runs, weight=weight)[0]


def read(path: Path = RESULTS) -> dict[tuple[str, int, bool, float], Line]:
    """Return the lines of a result by their case."""
    with path.open(encoding="utf-8", newline="") as file:
        found = [
            Line(
                scores=row["scores"],
                n=int(row["n"]),
                weighted=row["weighted"] == "True",
                runs=int(row["runs"]),
                **{name: float(row[name]) for name in row if name not in {"scores", "n", "weighted", "runs"}},
            )
            for row in csv.DictReader(file)
        ]
    return {(line.scores, line.n, line.weighted, line.off): line for line in found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate and write the file."""
    parser = argparse.ArgumentParser(description="Size and power of the tests of drift.")
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scores", nargs="+", choices=list(SCORES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    lines = read(options.output) if options.scores and options.output.exists() else {}
    for case in CASES:
        if case[0] in (options.scores or SCORES):
            lines[case] = simulate(*case, runs=options.runs, seed=options.seed)
            sys.stderr.write(f"{lines[case]}\n")
    with options.output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(lines[case]) for case in CASES if case in lines)


if __name__ == "__main__":
    main()
