"""How often `calframe.test` rejects anything in a family of segments whose scores are all right, at a nominal 5 %.

    python tests/simulations/families.py [--tables 400] [--seed 1] [--calls gap ecce] > tests/simulations/families.csv

Each line is a test, a correction and a kind of scores (those of sizes.py): so many tables, each of so many segments of
`n` rows, and the share of tables with a rejected segment, with its Monte Carlo standard error. The hypotheses of a test
are families of their own. The correction "max" is that of drawn statistics alone. The file has 400 tables of 64
segments of the tests with a closed law and of resampled ECE (this with a second seed, too), 200 of other drawn tests
and 100 of smECE; and of 1,000 segments of scores from Beta(2, 2) 100, or 60 of those that take long.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script, from anywhere

import numpy as np

import calframe
from tests.simulations.sizes import CALLS, KINDS, UNWEIGHTED, table

FAMILIES = ((64, 200), (1000, 100))  # segments, and rows of each
DRAWN = ("corp", "resampling")
SLOW, LARGE = ("resampling smece",), 100  # not run where segments are so many
EXEMPT = ("hosmer_lemeshow internal",)
COLUMNS = ("test", "hypothesis", "correction", "kind", "segments", "n", "seed", "tables", "share", "standard_error")


def corrections(name: str) -> tuple[str, ...]:
    """Return the corrections that hold the chance of one false rejection."""
    return ("holm", "max") if name.startswith(DRAWN) else ("holm",)


def lines(name: str, kind: str, segments: int, n: int, *, tables: int, seed: int) -> Iterator[dict[str, Any]]:
    """Give a line for each correction and hypothesis."""
    for correction in corrections(name):
        rng = np.random.default_rng([seed, KINDS.index(kind), segments, list(CALLS).index(name)])
        any_rejected: dict[str, list[bool]] = {}
        for _ in range(tables):
            found = calframe.test(
                table(kind, "right", n, segments, rng),
                label="y",
                score="p",
                by="run",
                weight="w" if kind == "weighted" else None,
                correction=correction,
                rng=rng,
                **CALLS[name],
            ).table
            for (hypothesis,), rows in found.group_by("hypothesis", maintain_order=True):
                any_rejected.setdefault(str(hypothesis), []).append(bool(rows["reject"].any()))
        for hypothesis, each in any_rejected.items():
            share = float(np.mean(each))
            yield {
                "test": name,
                "hypothesis": hypothesis,
                "correction": correction,
                "kind": kind,
                "segments": segments,
                "n": n,
                "seed": seed,
                "tables": tables,
                "share": round(share, 4),
                "standard_error": round(float(np.sqrt(share * (1.0 - share) / tables)), 4),
            }


def main() -> None:
    """Run the simulation and write its result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", nargs="*", default=[name for name in CALLS if name not in EXEMPT])
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--segments", nargs="*", type=int, default=[segments for segments, _ in FAMILIES])
    asked = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for segments, n in FAMILIES:
        for kind in asked.kinds:
            for name in asked.calls:
                refused = (kind == "weighted" and name in UNWEIGHTED) or (segments >= LARGE and name in SLOW)
                if segments in asked.segments and not refused:
                    writer.writerows(lines(name, kind, segments, n, tables=asked.tables, seed=asked.seed))
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
