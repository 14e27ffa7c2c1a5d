"""Independent reference values: 30 peers and exact rational arithmetic, on every kind of table."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LEAST = 1300  # values that CONTRACT gives a call for


@pytest.mark.parametrize("frame", ["polars"])  # the other kinds are held to it by the tests of metrics
def test_metrics_agree_with_the_reference(reference_folder: Path, frame: str) -> None:
    script = reference_folder / "check" / "reference.py"
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(script), "--part", "metrics", "--frame", frame],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )
    said = re.search(r"reference values: (\d+) right, (\d+) wrong", done.stdout)
    assert said is not None, done.stderr
    assert (int(said[2]), done.returncode) == (0, 0), done.stdout
    assert int(said[1]) >= LEAST
