"""`calframe check`: which limits are broken, by which numbers, and what the exit status says."""

import math
from pathlib import Path

import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from calframe._cli import main
from tests._commands import failure
from tests._gates import FEW, LEAN, OVER, RIGHT, ROLES, UNDER, UNSURE, broken, gate, months, rows

GAP = ["--by", "seg", "--max-gap", "0.03"]
ALL = "(all rows)"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


# exit status


@pytest.mark.parametrize(
    ("segments", "options", "status", "found"),
    [
        ({"a": RIGHT}, [], 0, []),
        ({"a": RIGHT, "b": OVER}, [], 1, [("max-gap", ALL), ("max-gap", "seg=b")]),  # together 45 %: a gap of 5 points
        ({"a": OVER, "b": UNDER}, [], 1, [("max-gap", "seg=a"), ("max-gap", "seg=b")]),  # together 50 %
        ({"a": RIGHT, "b": LEAN}, [], 0, []),
        ({"a": RIGHT, "b": LEAN}, ["--fail-on", "lean"], 1, [("max-gap", "seg=b")]),
        ({"a": RIGHT, "b": LEAN}, ["--fail-on", "undecided"], 1, [("max-gap", "seg=b")]),
        ({"a": RIGHT, "b": LEAN}, ["--strict"], 1, [("max-gap", "seg=b")]),
        ({"a": RIGHT, "b": UNSURE}, [], 0, []),
        ({"a": RIGHT, "b": UNSURE}, ["--fail-on", "lean"], 0, []),
        ({"a": RIGHT, "b": UNSURE}, ["--fail-on", "undecided"], 1, [("max-gap", "seg=b")]),
        ({"a": RIGHT, "b": UNSURE}, ["--strict"], 1, [("max-gap", "seg=b")]),
        ({"a": RIGHT, "b": FEW}, [], 0, []),
        ({"a": RIGHT, "b": FEW}, ["--strict"], 0, []),  # it is not judged
        ({"a": RIGHT, "b": FEW}, ["--fail-on", "undecided"], 1, [("max-gap", "seg=b")]),  # nor is it known to hold
        ({"a": FEW}, ["--fail-on", "lean", "--strict"], 0, []),
    ],
)
def test_the_limit_of_the_gap(
    segments: dict[str, tuple[int, int]],
    options: list[str],
    status: int,
    found: list[tuple[str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    got = gate(capsys, rows(**segments), *GAP, *options)
    assert (got[0], broken(got[1])) == (status, found)
    assert got[1]["gate"]["tripped"] is (status == 1)


@pytest.mark.parametrize(
    ("pair", "options", "status"),
    [
        (OVER, ["--max-ece", "0.02"], 1),  # one bin: the error is the gap, 0.1
        (RIGHT, ["--max-ece", "0.02"], 0),
        (RIGHT, ["--max-ece", "0.02", "--strict"], 0),  # at most about 0.01
        (UNSURE, ["--max-ece", "0.02"], 0),
        (UNSURE, ["--max-ece", "0.02", "--strict"], 1),  # up to about 0.07
        (UNSURE, ["--max-ece", "0.02", "--fail-on", "undecided"], 1),
        (RIGHT, ["--max", "rate=0.4"], 1),
        (RIGHT, ["--max", "rate=0.505"], 0),
        (RIGHT, ["--max", "rate=0.505", "--strict"], 1),
        (RIGHT, ["--max", "rate=0.52", "--strict"], 0),
        (RIGHT, ["--min", "rate=0.6"], 1),
        (RIGHT, ["--min", "rate=0.495"], 0),
        (RIGHT, ["--min", "rate=0.495", "--strict"], 1),
        (RIGHT, ["--min", "rate=0.48", "--strict"], 0),
        (RIGHT, ["--min", "gap=-0.02", "--max", "gap=0.02", "--strict"], 0),
        (FEW, ["--max", "rate=0.1", "--strict"], 0),
    ],
)
def test_limits_of_metrics(
    pair: tuple[int, int], options: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(capsys, rows(a=pair), *options)[0] == status


@pytest.mark.parametrize(("limit", "options", "status"), [("0.7", [], 0), ("0.8", [], 1), ("0.75", ["--strict"], 1)])
def test_the_limit_of_the_ranking(
    limit: str, options: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    # a quarter of 10,000 rows at 0.25 are positive and three of 10,000 at 0.75:
    # auc = 0.75 * 0.75 + (0.75 * 0.25 + 0.25 * 0.75) / 2 = 0.75
    table = pl.DataFrame(
        {"y": [1] * 2500 + [0] * 7500 + [1] * 7500 + [0] * 2500, "p": [0.25] * 10_000 + [0.75] * 10_000}
    )
    got, found = gate(capsys, table, "--min", f"auc={limit}", *options)
    assert got == status
    [one] = found["segments"][0]["findings"]
    assert one["observed"] == 0.75


@pytest.mark.parametrize(
    ("counts", "options", "status", "found"),
    [
        ((RIGHT, RIGHT), [], 0, []),
        ((RIGHT, OVER), [], 1, ["over"]),
        ((RIGHT, UNDER), [], 1, ["under"]),
        ((OVER, OVER), [], 0, []),  # the gap is what it was
        ((OVER, RIGHT), [], 1, ["under"]),
        ((RIGHT, LEAN), [], 0, []),
        ((RIGHT, LEAN), ["--fail-on", "lean"], 1, ["leans_over"]),
        ((RIGHT, UNSURE), [], 0, []),
        ((RIGHT, UNSURE), ["--strict"], 1, ["unsure"]),
        ((UNSURE, RIGHT), ["--strict"], 1, ["unsure"]),  # the reference is as vague
        ((RIGHT, FEW), ["--strict"], 0, []),
        ((RIGHT, FEW), ["--fail-on", "undecided"], 1, ["few"]),
    ],
)
def test_the_limit_of_drift(
    counts: tuple[tuple[int, int], ...],
    options: list[str],
    status: int,
    found: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    got = gate(capsys, months(*counts), "--max-drift", "0.03", "--time", "day", *options)
    assert (got[0], [one["verdict"] for one in got[1]["gate"]["rules"]]) == (status, found)
    assert [one["period"] for one in got[1]["gate"]["rules"]] == ["2024-02-01"] * len(found)


def test_a_limit_may_be_broken_in_one_period_of_one_segment(capsys: pytest.CaptureFixture[str]) -> None:
    moved = months(RIGHT, RIGHT, OVER).with_columns(seg=pl.lit("moved"))
    still = months(OVER, OVER, OVER).with_columns(seg=pl.lit("still"))
    asked = ["--max-drift", "0.06", "--time", "day", "--by", "seg", "--reference", "first"]
    status, found = gate(capsys, pl.concat([moved, still]), *asked)
    assert status == 1
    assert [(one["segment"], one["period"]) for one in found["gate"]["rules"]] == [("seg=moved", "2024-03-01")]


@pytest.mark.parametrize("reference", ["2024-01-01..2024-02-29", "2024-01-31 .. 2024-02-01"])
def test_the_reference_is_named(reference: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--max-drift", "0.06", "--time", "day", "--reference", reference]
    # the gap of January and February together is 5 points, so that March has moved by 5
    [one] = gate(capsys, months(RIGHT, OVER, OVER), *asked)[1]["segments"][0]["findings"]
    assert (one["period"], one["observed"]) == ("2024-03-01", pytest.approx(0.05))


# numbers


def test_gaps_hold_together_over_all_segments(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(a=RIGHT, b=LEAN, c=UNSURE, d=FEW)
    _, found = gate(capsys, table, *GAP, "--alpha", "0.1")
    level = 0.9 ** (1 / 4)  # Šidák: three segments and all rows are judged, one is too small
    counts = {"seg=a": RIGHT, "seg=b": LEAN, "seg=c": UNSURE, ALL: (20_250, 9_825)}
    seen = {one["segment"]: one["findings"][0] for one in found["segments"]}
    assert set(seen) == {*counts, "seg=d"}
    for segment, (n, positives) in counts.items():
        exact = stats.binomtest(positives, n).proportion_ci(level, method="exact")
        assert seen[segment]["observed"] == pytest.approx(0.5 - positives / n, abs=1e-12)
        assert seen[segment]["interval"] == pytest.approx([0.5 - exact.high, 0.5 - exact.low], abs=1e-9)
    assert (seen["seg=d"]["observed"], seen["seg=d"]["interval"], seen["seg=d"]["n"]) == (None, None, 50)


def test_metrics_hold_together_over_all_segments(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = gate(capsys, rows(a=RIGHT, b=LEAN, d=FEW), "--by", "seg", "--min", "rate=0.48")
    seen = {one["segment"]: one["findings"][0]["interval"] for one in found["segments"]}
    for segment, (n, positives) in {"seg=a": RIGHT, "seg=b": LEAN, ALL: (20_050, 9_725)}.items():
        expected = proportion_confint(positives, n, alpha=1 - 0.95 ** (1 / 3), method="wilson")
        assert seen[segment] == pytest.approx(expected, abs=1e-12)
    assert seen["seg=d"] is None


def test_the_interval_of_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    # Two periods are judged: the reference and the one after it. The ends of the interval of a difference lie as far
    # from it as those of both values together (Zou, Huang and Zhang 2009), here of Clopper and Pearson's intervals.
    found = gate(capsys, months((2_000, 900), (1_000, 300)), "--max-drift", "0.03", "--time", "day")[1]
    [one] = found["segments"][0]["findings"]
    alpha = 1 - 0.95**0.5
    low, high = proportion_confint(900, 2_000, alpha, "beta")  # a gap of scores 0.5 is a rate turned around
    low_later, high_later = proportion_confint(300, 1_000, alpha, "beta")
    below, above = math.hypot(0.45 - low, high_later - 0.3), math.hypot(high - 0.45, 0.3 - low_later)
    assert one["observed"] == pytest.approx(0.15)
    assert one["interval"] == pytest.approx([0.15 - below, 0.15 + above], abs=1e-9)


def test_weights_and_the_level_reach_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(a=(1_000, 500), b=(1_000, 400)).with_columns(w=pl.when(pl.col("y") == 1).then(3.0).otherwise(1.0))
    found = gate(capsys, table, *GAP, "--weight", "w")[1]
    seen = {one["segment"]: one["findings"][0]["observed"] for one in found["segments"]}
    # weighted rates 3/4 and 1200 / 1800
    assert seen["seg=a"] == pytest.approx(-0.25)
    assert seen["seg=b"] == pytest.approx(0.5 - 2 / 3)
    wide, narrow = (gate(capsys, table, *GAP, "--alpha", alpha)[1] for alpha in ("0.01", "0.2"))
    ends = [found["segments"][0]["findings"][0]["interval"] for found in (wide, narrow)]
    assert ends[0][0] < ends[1][0] < ends[1][1] < ends[0][1]


# segments


def test_each_column_makes_segments_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(a=(400, 200), b=(400, 200)).with_columns(
        year=pl.Series([2013.0, None] * 400), old=pl.Series([True, False] * 400)
    )
    found = gate(capsys, table, "--by", "seg", "--by", "year", "--by", "old", "--max-gap", "0.2", "--max-ece", "0.3")[1]
    assert {one["segment"] for one in found["segments"]} == {
        *(ALL, "seg=a", "seg=b", "year=2013", "year=(missing)", "old=true", "old=false")
    }
    assert {(one["column"], one["value"]) for one in found["segments"]} > {(None, None), ("year", None)}
    assert all(len(one["findings"]) == 2 for one in found["segments"])


def test_a_segment_column_may_be_called_anything(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["low", "change", "column", "value", "*", "^.*$"]  # the last two are patterns to polars
    table = months(OVER, RIGHT).with_columns(*(pl.lit(place).alias(name) for place, name in enumerate(names)))
    by = [part for name in names for part in ("--by", name)]
    asked = [*by, "--max-drift", "0.03", "--time", "day", "--max-ece", "0.2"]
    status, found = gate(capsys, table.drop("seg"), *asked)
    assert status == 1
    assert {one["segment"] for one in found["segments"]} == {
        *(ALL, *(f"{name}={place}" for place, name in enumerate(names)))
    }


def test_a_segment_may_be_called_anything(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(**{"(all rows)": OVER, "x\n::error::y": OVER, "": OVER, "</td>|": OVER, "\x1b[31m": OVER})
    table.write_parquet("preds.parquet")
    assert main(["check", "preds.parquet", *ROLES, *GAP]) == 1
    lines = capsys.readouterr().out.splitlines()
    names = {line.split("  ")[0] for line in lines if "Over-predicts" in line}
    assert names == {ALL, "seg=(all rows)", "seg=x\\n::error::y", "seg=(empty)", "seg=</td>|", "seg=\\x1b[31m"}
    assert not any(line.startswith("::") for line in lines)


def test_what_is_missing_is_not_what_is_called_missing(capsys: pytest.CaptureFixture[str]) -> None:
    table = pl.concat([months(RIGHT, RIGHT).with_columns(seg=pl.lit("(missing)")), months(RIGHT, OVER)])
    table = table.with_columns(seg=pl.when(pl.col("seg") == "a").then(None).otherwise("seg"))
    found = gate(capsys, table, *GAP, "--max-drift", "0.06", "--time", "day")[1]
    assert {one["segment"]: one["value"] for one in found["segments"]} == {
        ALL: None,
        "seg=(missing)": "(missing)",
        "seg=(missing) 2": None,
    }
    assert ("max-drift", "seg=(missing) 2") in broken(found)
    assert main(["check", "preds.parquet", *ROLES, "--max-drift", "0.06", "--time", "day", "--by", "seg"]) == 1
    assert "\nseg=(missing) 2, Feb 2024   +10.0  " in capsys.readouterr().out  # as `drift` calls periods


# what cannot run


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "there is nothing to check: give a limit, such as --max-gap 0.03"),
        (["--max-gap", "3"], "3.0 is not in the range 0<x<1"),
        (["--max-ece", "0"], "0.0 is not in the range 0<x<1"),
        (["--max-gap", "x"], "'x' is not a valid float range"),
        (["--max-drift", "0.03"], "--max-drift needs --time"),
        (["--max-drift", "0.03", "--time", "t"], "no column 't' for"),
        (["--max-drift", "0.03", "--time", "day", "--reference", "rolling"], "compares with a fixed reference"),
        (["--max-drift", "0.03", "--time", "day", "--reference", "May 2030"], "--reference"),
        (["--max-drift", "0.03", "--time", "day", "--reference", "2024-01-01"], "so --max-drift cannot be checked."),
        (["--max", "brier"], "'brier' has no number behind the sign; write METRIC=VALUE"),
        (["--max", "brier=nan"], "'brier=nan' has no number behind the sign"),
        (["--max", "brie=0.2"], "'brie' is no metric with an interval; write METRIC=VALUE, such as brier=0.2. Did you"),
        (["--min", "roc=0.2"], "'roc' is no metric with an interval; write METRIC=VALUE, such as auc=0.7."),
        (["--max", "mce=0.2"], "'mce' has no interval, so no limit can be checked"),
        (["--max", "epistemic_loss=0.2"], "'epistemic_loss' has no interval"),
        (["--max", "brier=0.2", "--max", "brier=0.3"], "it limits 'brier' twice"),
        (["--max-gap", "0.03", "--by", "nope"], "no column 'nope' for --by"),
        (["--max-gap", "0.03", "--by", "p"], "is a float column"),
        (["--max-gap", "0.03", "--by", "n"], "segment column 'n' has the name of a result column"),
        (["--max-gap", "0.03", "--by", "seg", "--by", "seg"], "--by names column 'seg' twice"),
        (["--max-gap", "0.03", "--time", "day"], "--time does nothing without --max-drift; add that, or leave it out"),
        (
            ["--max-ece", "0.1", "--every", "1w", "--time-zone", "UTC", "--reference", "first"],
            "--every, --time-zone and --reference do nothing without --max-drift; add that, or leave them out",
        ),
        (["--max-gap", "0.03", "--every", "1mo"], "--every does nothing"),  # the default, too
        (["--max-gap", "0.03", "--bins", "10"], "--bins does nothing without a limit on a binned metric"),
        (["--min", "auc=0.6", "--strategy", "quantile"], "--strategy does nothing without a limit on a binned metric"),
        (["--max-gap", "0.03", "--seed", "3"], "--seed does nothing without --max smece=VALUE"),
        (["--max-ece", "0.03", "--resamples", "50"], "--resamples does nothing without --max smece=VALUE"),
        (["--max-ece", "0.03", "--fail-on", "lean"], "--fail-on lean is about gaps, and no limit here is"),
        (["--max-gap", "0.03", "--weight-kind", "frequency"], "--weight-kind says what --weight means; add that"),
        (["--max-gap", "0.03", "--alpha", "0.5"], "0.5 is not in the range 0<x<0.5"),
        (["--max-gap", "0.03", "--json", "-", "--format", "github"], "--json - prints JSON alone"),
        (["--max-gap", "0.03", "--json", "gate.txt"], "it must be one of .json"),
        (["--max-gap", "0.03", "--json", "nowhere/gate.json"], "there is no folder 'nowhere'"),
        (["--max-gap", "0.03", "--fail-on", "never"], "'never' is not one of 'gap', 'lean', 'undecided'"),
        (["--max-gap", "0.03", "--positive", "x"], "column 'y' holds numbers, and 'x' is none of them"),
        (["--max-ece", "0.03", "--bins", "0,0.2"], "outside the bin edges"),
    ],
)
def test_what_cannot_run_is_status_2(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    months(UNSURE).with_columns(n=1).write_csv("preds.csv")
    assert words in failure(capsys, "check", "preds.csv", *ROLES, *options)


def test_missing_files_and_empty_tables_are_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no file 'none.csv'" in failure(capsys, "check", "none.csv", *ROLES, "--max-gap", "0.03")
    Path("preds.csv").write_text("y,p\n1,\n,0.5\n", encoding="utf-8")
    assert "no row has a label and a score that can be used" in failure(
        capsys, "check", "preds.csv", *ROLES, "--max-gap", "0.03"
    )
    Path("preds.csv").write_text("y,p\n1,1.5\n", encoding="utf-8")
    assert "runs from 1.5 to 1.5" in failure(capsys, "check", "preds.csv", *ROLES, "--max-gap", "0.03")


@pytest.mark.parametrize("fault", [RuntimeError, pl.exceptions.PanicException])
def test_a_fault_of_its_own_is_no_broken_limit(
    fault: type[BaseException], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        msg = "a fault"
        raise fault(msg)

    rows(a=RIGHT).write_parquet("preds.parquet")
    monkeypatch.setattr("calframe._gate._found.audit", fail)
    assert main(["check", "preds.parquet", *ROLES, "--max-gap", "0.03"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Traceback")
    assert err.rstrip().endswith("a fault")


def test_a_note_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    table = rows(a=(200, 100)).with_columns(p=pl.when(pl.int_range(pl.len()) == 0).then(0.0).otherwise(0.5))
    table.write_parquet("preds.parquet")
    assert main(["check", "preds.parquet", *ROLES, "--by", "seg", "--max", "log_loss=1"]) == 1
    assert capsys.readouterr().err.count("Note: log_loss is infinite") == 1
