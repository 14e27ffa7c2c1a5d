"""How often tests reject right scores at a nominal 5 %, and wrong ones: the size and the power of `calframe.test`.

    python tests/simulations/sizes.py [--runs 2000] > tests/simulations/sizes.csv

Each line is a test on tables of one kind: `runs` tables, all segments of one table and tested without a correction,
the share of p-values of 0.05 or less with its Monte Carlo standard error, and the share that decided nothing. Kinds:
scores from Beta(2, 2); Beta(0.4, 20), 2 % positives; six tied scores; Beta(2, 2) with weights from 1 to 10. Truths:
right scores; the logit shifted by 0.5; the logit times 1.5. In the file, wrong scores of 2,000 rows are those of
Beta(2, 2) alone, and Spiegelhalter's test and the Brier score of weighted ones have 2,000 tables (`--runs 8000`).
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator

import numpy as np
import polars as pl

import calframe

CALLS = {
    **{
        name: {"method": name}
        for name in ("spiegelhalter", "hosmer_lemeshow", "ecce", "ks", "cox", "gap", "corp", "kernel")
    },
    "hosmer_lemeshow internal": {"method": "hosmer_lemeshow", "df": "internal"},
    **{f"resampling {name}": {"method": "resampling", "statistic": name} for name in ("ece", "mce", "brier", "smece")},
}
KINDS = ("even", "rare", "tied", "weighted")
TRUTHS = ("right", "shifted", "steeper")
SLOW, LARGE = ("resampling smece",), 1000  # not run where tables are so large
UNWEIGHTED = ("hosmer_lemeshow", "hosmer_lemeshow internal", "cox", "kernel")
COLUMNS = ("test", "hypothesis", "kind", "truth", "n", "runs", "rejected", "error", "undecided")


def scores(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "rare":
        return np.clip(rng.beta(0.4, 20.0, size), 1e-6, 1.0)
    if kind == "tied":
        return rng.choice([0.1, 0.2, 0.4, 0.5, 0.7, 0.9], size)
    return rng.beta(2.0, 2.0, size)


def table(kind: str, truth: str, n: int, runs: int, rng: np.random.Generator) -> pl.DataFrame:
    score = scores(kind, n * runs, rng)
    logit = np.log(score) - np.log1p(-score)
    moved = {"right": logit, "shifted": logit + 0.5, "steeper": 1.5 * logit}[truth]
    label = rng.random(n * runs) < 1.0 / (1.0 + np.exp(-moved))
    weight = rng.uniform(1.0, 10.0, n * runs) if kind == "weighted" else np.ones(n * runs)
    run = np.repeat(np.arange(runs), n)
    return pl.DataFrame({"run": run, "p": score, "y": label.astype(np.int8), "w": weight})


def lines(kind: str, truth: str, n: int, *, runs: int, seed: int, calls: tuple[str, ...]) -> Iterator[dict]:
    """Give a line for each test and hypothesis."""
    rng = np.random.default_rng([seed, KINDS.index(kind), TRUTHS.index(truth), n])
    data = table(kind, truth, n, runs, rng)
    weight = "w" if kind == "weighted" else None
    for name in calls:
        if (weight is not None and name in UNWEIGHTED) or (n >= LARGE and name in SLOW):
            continue
        found = calframe.test(
            data,
            label="y",
            score="p",
            by="run",
            weight=weight,
            correction="none",
            n_resamples=199,
            rng=seed,
            **CALLS[name],
        ).table
        for (hypothesis,), rows in found.group_by("hypothesis", maintain_order=True):
            share = float((rows["reject"].fill_null(value=False)).mean())
            yield {
                "test": name,
                "hypothesis": hypothesis,
                "kind": kind,
                "truth": truth,
                "n": n,
                "runs": runs,
                "rejected": round(share, 4),
                "error": round(float(np.sqrt(share * (1.0 - share) / runs)), 4),
                "undecided": round(float(rows["reject"].is_null().mean()), 4),
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--calls", nargs="*", default=list(CALLS))
    parser.add_argument("--truths", nargs="*", default=list(TRUTHS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--sizes", nargs="*", type=int, default=[50, 200, 2000])
    arguments = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for size in arguments.sizes:
        many = arguments.runs if size < LARGE else arguments.runs // 4
        for each in arguments.kinds:
            for world in arguments.truths:
                writer.writerows(lines(each, world, size, runs=many, seed=1, calls=tuple(arguments.calls)))
                sys.stdout.flush()
