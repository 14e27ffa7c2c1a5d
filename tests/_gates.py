"""Tables whose verdict at a limit of 3 points is known, and the gate run over them."""

import datetime as dt
import json
import re

import polars as pl
import pytest

from calframe._cli import main

# Rows and positives of segments whose scores are all 0.5. With n rows the interval of a gap reaches about
# 1.4 / sqrt(n) to either side: 1.4 points at 10,000 rows, 10 points at 200.
RIGHT = (10_000, 5_000)  # gap 0: within 3 points
OVER = (10_000, 4_000)  # gap +10: beyond
UNDER = (10_000, 6_000)  # gap -10
LEAN = (10_000, 4_700)  # gap +3: about the limit, and not 0
UNSURE = (200, 100)  # gap 0, give or take 10
FEW = (50, 25)  # not judged
ROLES = ["--label", "y", "--score", "p"]


def rows(**segments: tuple[int, int]) -> pl.DataFrame:
    """Return a table of segments by name, a column `seg`."""
    parts = [
        pl.DataFrame({"y": [1] * positives + [0] * (n - positives), "p": [0.5] * n, "seg": [name] * n})
        for name, (n, positives) in segments.items()
    ]
    return pl.concat(parts)


def months(*counts: tuple[int, int]) -> pl.DataFrame:
    """Return a table with a column `day`, a month for each pair of rows and positives, from January 2024."""
    parts = [
        rows(a=pair).with_columns(day=pl.lit(dt.date(2024, month, 10))) for month, pair in enumerate(counts, start=1)
    ]
    return pl.concat(parts)


def gate(capsys: pytest.CaptureFixture[str], table: pl.DataFrame, *options: str) -> tuple[int, dict]:
    """Run `calframe check … --json -` and return its exit status and what it printed."""
    table.write_parquet("preds.parquet")
    status = main(["check", "preds.parquet", *ROLES, *options, "--json", "-"])
    out, err = capsys.readouterr()
    found = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert err.startswith(
        "● Holds" if not found["gate"]["tripped"] and not found["gate"]["undecided"] else tuple("▲▼△▽○–")
    )
    return status, found


def broken(found: dict) -> list[tuple[str, str]]:
    """Return rule and segment of what is broken."""
    return [(one["rule"], one["segment"]) for one in found["gate"]["rules"]]


def steady(text: str) -> str:
    """Return text with numbers of ten digits: the last ones of a sum change with the order of adding."""
    return re.sub(r"\d+\.\d{10,}(e-\d+)?", lambda number: f"{float(number[0]):.10g}", text)
