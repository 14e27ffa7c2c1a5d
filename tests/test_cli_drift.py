"""`calframe drift`: what a person reads of scores that have moved."""

import datetime as dt
import math
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

from calframe._cli import main
from tests._commands import ROLES, in_a_terminal


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def moved_scores(*shares: float, n: int = 3_000) -> pl.DataFrame:
    """Return a month for each share, that of the rows with score 0.75; all others have 0.25."""
    parts = []
    for month, share in enumerate(shares, start=1):
        high = round(n * share)
        parts.append(
            pl.DataFrame({"y": [0, 1] * (n // 2), "p": [0.75] * high + [0.25] * (n - high)}).with_columns(
                day=pl.lit(dt.date(2024, month, 10))
            )
        )
    return pl.concat(parts)


def test_each_psi_stands_beside_what_chance_makes_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    moved_scores(0.5, 0.52, 0.56).write_csv("preds.csv")
    asked = ["drift", "preds.csv", *ROLES, "--time", "day", "--reference", "first"]
    out = printed(capsys, *asked)
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    [_, feb, mar] = (line.split("  ") for line in lines if " 2024  " in line)
    # two bins: psi = sum of (c - r) ln(c / r); by chance (2 - 1) (1 / 3000 + 1 / 3000) of it, times chi-squared
    small, large = (sum((c - 0.5) * math.log(c / 0.5) for c in (share, 1 - share)) for share in (0.52, 0.56))
    assert stats.chi2.sf(small * 1500, 1) > 0.05 > 2 * stats.chi2.sf(large * 1500, 1)
    assert [cell.strip() for cell in feb if cell][-3:-1] == [f"{small:.3f}", "0.001"]
    assert [cell.strip() for cell in mar if cell][-3:-1] == [f"{large:.3f}*", "0.001"]
    assert "* p of the PSI, adjusted, at most 0.05." in " ".join(lines)
    assert "*" not in printed(capsys, *asked, "--alpha", "1e-9").split("\n\n")[1]


def test_no_mark_stands_where_the_psi_has_no_law(capsys: pytest.CaptureFixture[str]) -> None:
    moved_scores(0.5, 0.6).with_columns(w=pl.int_range(pl.len()) % 2 + 1.0).write_csv("preds.csv")
    out = printed(capsys, "drift", "preds.csv", *ROLES, "--time", "day", "--reference", "first", "--weight", "w")
    assert "*" not in out.split("\n\n")[1]
    assert "1 of 1 has no p (weights, or too few rows in a bin)." in out.replace("\n", " ")


@pytest.mark.parametrize("edge", [60, 80, 120])
def test_the_rate_gives_way_where_a_line_is_full(
    edge: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved_scores(0.5, 0.9, n=30_000).write_csv("preds.csv")
    in_a_terminal(monkeypatch, edge)
    lines = printed(capsys, "drift", "preds.csv", *ROLES, "--time", "day", "--reference", "first", "--every", "1w")
    table = [line for line in lines.split("\n\n") if "\nperiod" in line or line.startswith("period")]
    heads = [line for part in table for line in part.splitlines() if line.startswith("period")]
    assert max(len(line) for part in table for line in part.splitlines()) <= edge
    assert ("rate" in " ".join(heads)) is (edge != 80)
    assert len(heads) == (2 if edge == 60 else 1)
