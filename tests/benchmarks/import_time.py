"""What `import calframe` adds to importing polars and pandas, and what `calframe --help` costs beyond it.

    python tests/benchmarks/import_time.py

Medians and quartiles over fresh processes, with bytecode compiled first. The import is timed inside each process, after
polars and pandas; the command as a whole process, less one that only imports polars and pandas, in turn.
"""

from __future__ import annotations

import compileall
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 20
PACKAGE = Path(__file__).parents[2] / "calframe"
IMPORT = "import time, polars, pandas; t = time.perf_counter(); import calframe; print(time.perf_counter() - t)"
IMPORT_LIMIT, HELP_LIMIT = 60, 150  # ms
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> int:
    """Measure, print a line each, and return 1 if a limit is broken."""
    compileall.compile_dir(str(PACKAGE), quiet=1)
    added, help_ = [], []
    for _ in range(ROUNDS + 1):
        added.append(float(output("-c", IMPORT)))
        help_.append(elapsed("-m", "calframe", "--help") - elapsed("-c", "import polars, pandas"))
    kept = [
        shown("import calframe", added[1:], IMPORT_LIMIT),  # the first round warms the disk
        shown("calframe --help", help_[1:], HELP_LIMIT),
    ]
    return int(not all(kept))


def shown(name: str, seconds: list[float], limit: int) -> bool:
    """Print median and quartiles in milliseconds; return whether the median keeps the limit."""
    low, middle, high = (1e3 * value for value in statistics.quantiles(seconds, n=4))
    kept = middle <= limit
    verdict = "kept" if kept else "BROKEN"
    print(f"{name:<18}{middle:+6.0f} ms (quartiles {low:.0f} to {high:.0f}), limit {limit}: {verdict}")
    return kept


def output(*command: str) -> str:
    """Return what a fresh process prints."""
    run = subprocess.run(
        [sys.executable, *command], check=True, env=ENVIRONMENT, cwd=PACKAGE.parent, capture_output=True
    )
    return run.stdout.decode()


def elapsed(*command: str) -> float:
    """Return the seconds that a fresh process takes from start to end."""
    begin = time.perf_counter()
    output(*command)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
