"""What calframe adds to importing polars and pandas, and what `calframe --help` costs beyond it.

    python tests/benchmarks/import_time.py

Medians of fresh processes, taken in turn, with bytecode compiled first.
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
COMMANDS = {
    "polars and pandas": ["-c", "import polars, pandas"],
    "and calframe": ["-c", "import polars, pandas, calframe"],
    "calframe --help": ["-m", "calframe", "--help"],
}
LIMITS = {"and calframe": 60, "calframe --help": 150}  # ms beyond polars and pandas


def main() -> int:
    """Measure, print one line a command, and return 1 if a limit is broken."""
    compileall.compile_dir(str(PACKAGE), quiet=1)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            seconds[name].append(elapsed([sys.executable, *command], environment))
    measured = {name: values[1:] for name, values in seconds.items()}  # the first round warms the disk
    medians = {name: statistics.median(values) * 1000 for name, values in measured.items()}
    base = medians["polars and pandas"]
    print(f"{'polars and pandas':<20}{base:7.0f} ms")
    for name, limit in LIMITS.items():
        added = medians[name] - base
        verdict = "kept" if added <= limit else "BROKEN"
        print(f"{name:<20}{medians[name]:7.0f} ms  {added:+5.0f} ms, limit {limit}: {verdict}")
    return int(any(medians[name] - base > limit for name, limit in LIMITS.items()))


def elapsed(command: list[str], environment: dict[str, str]) -> float:
    """Return the seconds that a process takes from start to end."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, env=environment, cwd=PACKAGE.parent, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
