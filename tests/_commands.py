"""What the tests of the command line share: a small table, its results by hand, and commands run to their end."""

import io
import json
import sys
from pathlib import Path

import polars as pl
import pytest

from calframe._cli import main

# By hand: a has rate 1/2, mean score 1/2, brier (1/16 + 1/16) / 2; b has rate 1/2, mean score 3/4, brier (1/4 + 1) / 2.
ROWS = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.75, 0.25, 0.5, 1.0], "seg": ["a", "a", "b", "b"]})
RESULT = [
    {"seg": "a", "n": 2, "n_missing": 0, "gap": 0.0, "brier": 0.0625, "note": None},
    {"seg": "b", "n": 2, "n_missing": 0, "gap": 0.25, "brier": 0.625, "note": None},
]
ROLES = ["--label", "y", "--score", "p"]
ASKED = [*ROLES, "--by", "seg", "--metric", "gap", "--metric", "brier"]
TABLE = "y,p,w,seg,t\n1,0.5,1,a,2013-12-31\n0,0.25,2,b,2013-12-30\n"


def give_stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def write_csv(text: str, name: str = "preds.csv") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    """Run `calframe metrics … --format json` and return its rows."""
    status = main(["metrics", *arguments, "--format", "json"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    return json.loads(out)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that cannot run and return what it says: two lines at most, on stderr alone."""
    status = main(arguments)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") <= 2
    assert "Traceback" not in err
    return err


def in_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Let standard output be a terminal without colours, so many columns wide."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
