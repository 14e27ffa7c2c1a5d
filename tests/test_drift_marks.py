"""The marks of `drift` and its alarms: each says what the verdict says, and what it is about."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path

import polars as pl
import pytest

from calframe._cli import main
from calframe._drifting._panels import panels
from tests._chart_examples import drawing, written
from tests._commands import ROLES, write_csv
from tests._drift_tables import exact, followed, notes, titles

STEADY = (2000, 0.5)


def test_a_period_has_the_sign_of_its_verdict() -> None:
    # 20,000 rows a period, half widths of one point: clearly off either way; leaning with 3 points; 2 points within 3
    found = followed(exact(*((20_000, rate) for rate in (0.4, 0.6, 0.47, 0.53, 0.48, 0.5)), (60, 0.1)))
    [(_, _, drawn)] = panels(found._shown(), model=None, segments=False)
    assert found.course["verdict"].to_list() == [
        *("over", "under", "leans_over", "leans_under", "within", "within", "few"),
    ]
    assert drawn["tag"].to_list() == ["▲ +10.0", "▼ −10.0", "△ +3.0", "▽ −3.0", "", "", ""]
    assert drawn["state"].to_list() == ["over", "under", "over", "under", "over", "in", "in"]
    assert "also where the gap is within tolerance" in notes(found)
    [(_, _, parted)] = panels(found._shown(), model=None, segments=True)
    assert parted["tag"].equals(drawn["tag"])
    assert {"▲", "△", "▽", "▼", "+10.0", "−3.0"} <= set(written(drawing(found.plot())))


def test_an_alarm_by_a_single_row_that_could_not_be_is_told() -> None:
    table = exact((200, 0.5), (200, 0.5), (200, 0.5))
    row = pl.int_range(pl.len()) == 399  # of February, with label 0
    surely = table.with_columns(p=pl.when(row).then(1.0).otherwise("p"))
    once = followed(surely)
    assert once.monitor["log_e_value"].to_list()[1:] == [float("inf")] * 2
    words = "infinite evidence: a row with score 0 or 1 was wrong"
    said = f"monitor: alarm since 2024-02-01 ({words}; clip= takes such scores as nearly certain)"
    assert said in re.sub(r"\s+", " ", repr(once))
    assert said in once._repr_html_()
    assert f"Dashed line: the alarm of the monitor, {words}." in notes(once)
    assert '"alarm": "monitor: 2024-02-01, infinite evidence"' in json.dumps(once.plot().to_dict())
    assert "infinite" not in repr(followed(surely, clip=1e-3))
    # ten points too high over 6,000 rows: an alarm by many rows; the impossible one comes later
    many = followed(
        exact((6000, 0.4), (200, 0.5)).with_columns(p=pl.when(pl.int_range(pl.len()) > 6198).then(1.0).otherwise("p"))
    )
    assert many.monitor["log_e_value"].is_infinite().to_list() == [False, True]
    assert "monitor: alarm since 2024-01-01" in repr(many)
    assert "infinite" not in repr(many)
    both = pl.concat(
        [
            surely.with_columns(g=1),
            exact((200, 0.5), (200, 0.3)).with_columns(g=2),
        ],
        how="vertical_relaxed",
    )
    found = re.sub(r"\s+", " ", repr(followed(both, by="g")))
    assert f"alarm in 2 of 2 series, the first since 2024-02-01 (in 1 of them {words}; clip=" in found


def test_the_command_names_its_own_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_csv("y,p,t\n1,0.5,2024-01-01\n0,1.0,2024-02-01\n0,0.5,2024-03-01\n")
    assert main(["drift", file, *ROLES, "--time", "t"]) == 0
    out = capsys.readouterr().out
    assert " ".join(out.split()).startswith(
        "None of 3 periods has the 100 rows needed to be judged; a longer period may have them (--every 1q). "
    )
    assert max(map(len, out.splitlines())) <= 80
    assert (
        "monitor: alarm since 2024-02-01 (infinite evidence: a row with score 0 or 1 was wrong; --clip takes such "
        "scores as nearly certain)"
    ) in " ".join(out.split())


def test_nothing_is_counted_of_nothing() -> None:
    found = followed(exact((4, 0.5), (4, 0.5), (4, 0.5), (4, 0.5)))
    assert (
        found.headline
        == 'None of 4 periods has the 100 rows needed to be judged; a longer period may have them (every="1q").'
    )
    assert "no gap could be tested against that of Jan 2024 to Feb 2024" in repr(found)
    assert not re.search(r"\b0 of 0\b|\b0 judged", repr(found) + found._repr_html_() + notes(found))
    apart = followed(
        exact((10, 0.5), (20_000, 0.5), (20_000, 0.5)).with_columns(
            q=pl.when(pl.col("t") < dt.date(2024, 2, 1)).then("p")
        ),
        score=["p", "q"],
    )
    assert apart.headline == (
        "Scores of 'p': all 2 judged periods are within tolerance (±3 pp). Scores of 'q': none of 3 periods has the "
        '100 rows needed to be judged; a longer period may have them (every="1q").'
    )


def test_the_reference_has_dark_bars_whatever_it_is_called() -> None:
    table = exact(*[STEADY] * 4)
    for asked, months_of_it in (
        ("Feb 2024", ["Feb 2024"]),
        (("2024-02", "2024-03"), ["Feb 2024", "Mar 2024"]),
        ("rolling", []),
    ):
        found = followed(table, reference=asked)
        assert list(found.reference_periods) == found.to_dict()["reference_periods"] == months_of_it
        [(_, note, drawn)] = panels(found._shown(), model=None, segments=False)
        assert drawn.filter("reference")["label"].to_list() == months_of_it
        assert ("Dark bars" in note) is bool(months_of_it)


def test_models_without_a_period_are_drawn() -> None:
    table = exact(STEADY).with_columns(q=pl.col("p"), t=pl.lit(None, dtype=pl.Date))
    assert titles(followed(table, score=["p", "q"])) == ["Gap of p", "Gap of q"]
