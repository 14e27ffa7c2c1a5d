"""How often `calframe.test` rejects any of many segments whose scores are right: the family-wise error at 5 %.

    python tests/simulations/families.py [--tables 200] [--seed 1] > tests/simulations/families.csv

Each line is a test with a correction on `tables` tables of equal segments (a fifth of them at 1,000 segments), the
share of tables with a rejection anywhere and its Monte Carlo standard error. "smallest" is the share with a p-value of
0.05 or less that was not adjusted, which is what looking at the worst segment comes to. Kinds of scores are those of
sizes.py.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np

import calframe
from tests.simulations.sizes import CALLS, KINDS, UNWEIGHTED, table

SHAPES = ((64, 200), (1000, 100))
TESTS = ("spiegelhalter", "hosmer_lemeshow", "ecce", "ks", "cox", "gap", "corp", "resampling ece")
COLUMNS = ("test", "correction", "kind", "segments", "n", "tables", "rejected", "error", "smallest")


def lines(kind: str, segments: int, n: int, *, tables: int, seed: int) -> Iterator[dict]:
    """Give a line for each test and correction."""
    weight = "w" if kind == "weighted" else None
    for name in TESTS:
        if weight is not None and name in UNWEIGHTED:
            continue
        for correction in ("holm", "max") if name in ("corp", "resampling ece") else ("holm",):
            rng = np.random.default_rng([seed, KINDS.index(kind), segments])
            rejected = smallest = 0
            for _ in range(tables):
                data = table(kind, "right", n, segments, rng)
                found = calframe.test(
                    data, label="y", score="p", by="run", weight=weight, correction=correction, **CALLS[name]
                ).table
                rejected += bool(found["reject"].fill_null(value=False).any())
                smallest += bool((found["pvalue"].fill_null(1.0) <= 0.05).any())
            share = rejected / tables
            yield {
                "test": name,
                "correction": correction,
                "kind": kind,
                "segments": segments,
                "n": n,
                "tables": tables,
                "rejected": round(share, 4),
                "error": round(float(np.sqrt(share * (1.0 - share) / tables)), 4),
                "smallest": round(smallest / tables, 4),
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for count, rows in SHAPES:
        for each in KINDS:
            many = arguments.tables if count < 1000 else arguments.tables // 5
            for line in lines(each, count, rows, tables=many, seed=arguments.seed):
                writer.writerow(line)
                sys.stdout.flush()
