"""What sentences about patterns say is true, and how results print."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from statsmodels.stats.proportion import proportion_confint

from calframe._diagnose import diagnose
from tests._diagnoses import PATTERNS, SHOWN, counts, found, only
from tests._tables import approx


def _claimed(sentence: str) -> list[float]:
    """Return the numbers of a sentence."""
    text = sentence.replace("\N{MINUS SIGN}", "-").replace(",", "")
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


TURNED = "Higher scores come true less often (reversed), which no map that keeps their order repairs"
NUMBER = r"[\N{MINUS SIGN}+]?[\d,.]+"
SPAN = rf"({NUMBER}) pp \(({NUMBER}) to ({NUMBER})\)"


def said_gap(sentence: str) -> list[float] | None:
    """Return the gap and its interval that a sentence says, in points; None where it says none."""
    signed = re.search(rf"mean score less rate is {SPAN}", sentence)
    sized = re.search(rf"says too (much|little) by {SPAN}", sentence)
    if signed is not None:
        return _claimed(" ".join(signed.groups()))
    if sized is None:
        return None
    value, low, high = _claimed(" ".join(sized.groups()[1:]))
    return [value, low, high] if sized[1] == "much" else [-value, -high, -low]


def check_sentence(row: dict[str, Any], p: Any, y: Any, *, alpha: float = 0.05, tolerance: float = 0.03) -> None:
    """Assert that a pattern and its sentence are true for the rows, counted anew."""
    pattern, said, n = row["pattern"], row["sentence"], len(p)
    positive = int(np.sum(y))
    assert pattern in PATTERNS
    if said.startswith("Can't tell yet from"):
        expected = [np.sum(p), n - np.sum(p)]
        assert n < 100 or min(max(positive, expected[0]), max(n - positive, expected[1])) < 10 + 1e-6
        assert (pattern, row["map"], _claimed(said)) == ("not decided", None, [n, 100, 10])
        return
    low, high = proportion_confint(positive, n, alpha=alpha, method="wilson")
    ends = np.array([np.mean(p) - np.mean(y), np.mean(p) - high, np.mean(p) - low])
    adjusted = [row[f"pvalue_{name}_adjusted"] for name in ("line", "curve", "extreme")]
    assert pattern in ("none found", "collapse") or min(one for one in adjusted if one is not None) <= alpha
    shown = said_gap(said)
    assert shown is not None or (ends[1] <= 0 <= ends[2])  # a gap that is sure is told
    if shown is not None:
        assert shown == pytest.approx(100 * ends, abs=0.051)
        assert f"{n:,} rows" in said
    is_clear = ends[1] > tolerance or ends[2] < -tolerance
    if pattern not in ("none found", "within tolerance", "collapse", "not decided"):
        turned = said.startswith(TURNED)  # which comes before all else
        assert is_clear <= (". Scores average " in said if turned else said.startswith("Scores average "))
    check_pattern(row, p, y, ends, tolerance)


def check_pattern(row: dict[str, Any], p: Any, y: Any, ends: Any, tolerance: float) -> None:
    pattern, said = row["pattern"], row["sentence"]
    if pattern in ("none found", "within tolerance"):
        assert row["map"] is None
        assert ("ruled out" in said) == (ends[1] < -tolerance or ends[2] > tolerance)
    elif pattern.startswith("says"):
        check_level(row, p, y, ends)
    elif pattern.endswith("-confident") and row["slope"] is not None:
        side = (row["slope_high"] < 1, row["slope_low"] > 1)
        assert side == (pattern == "over-confident", pattern == "under-confident")
        slope = re.search(rf"slope ({NUMBER}) \(({NUMBER}) to ({NUMBER})\)", said)
        assert slope is not None
        shown = [row["slope"], row["slope_low"], row["slope_high"]]
        assert _claimed(" ".join(slope.groups())) == pytest.approx(shown, abs=0.0051)
    elif pattern == "collapse":
        inside = (p >= row["band_low"]) & (p <= row["band_high"])
        assert np.mean(inside) >= 0.9 - 1e-9
        assert min(y[inside].sum(), (1 - y)[inside].sum()) >= 10
        assert _claimed(said)[0] == pytest.approx(100 * np.mean(inside), abs=0.101)
        assert f"{100 * np.mean(y[inside]):,.1f}% of these" in said
    elif pattern == "extreme":
        there = (p <= 0.01 + 1e-12) | (p >= 0.99 - 1e-12)
        error = np.where(p <= 0.5, y, 1 - y)[there].mean()
        assert np.mean(there) >= 0.25
        assert error - np.minimum(p, 1 - p)[there].mean() >= tolerance - 1e-12
        assert f"{100 * error:,.1f}% (" in said
    elif pattern == "crossing":
        for name, sign in (("over", 1), ("under", -1)):
            part = (p >= row[f"{name}_from"]) & (p <= row[f"{name}_to"])
            off = sign * np.mean(p[part] - y[part])
            assert min(sign * row[f"{name}_gap_low"], sign * row[f"{name}_gap_high"]) > 0  # on both sides
            assert f"by {100 * off:,.1f} pp (" in said
            assert f"({int(part.sum()):,} row" in said


def check_level(row: dict[str, Any], p: Any, y: Any, ends: Any) -> None:
    said, sign = row["sentence"], 1 if row["pattern"].endswith("much") else -1
    assert min(sign * ends) > 0
    at = said.find("Scores average ")
    if at < 0:  # the order is reversed, and the gap not clear
        assert said.startswith(f"{TURNED}, in ")
        return
    assert _claimed(said[at:])[:3] == pytest.approx([100 * np.mean(p), 100 * np.mean(y), len(p)], abs=0.101)


@st.composite
def tables(draw: Any) -> tuple[Any, Any]:
    """Draw scores and labels: ties, extremes, narrow bands, one class, few rows and many."""
    n = draw(st.sampled_from([1, 7, 99, 100, 150, 400, 3_000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread, mean = draw(st.sampled_from([0.0, 0.05, 1.0, 3.0, 30.0])), draw(st.sampled_from([-5.0, -1.0, 0.0, 2.0]))
    z = rng.normal(mean, spread, n)
    p = special.expit(z)
    if draw(st.booleans()):
        p = np.round(p, draw(st.sampled_from([0, 1, 2])))
    bend = draw(st.sampled_from(["right", "shift", "slope", "wave", "all", "none", "reverse"]))
    chance = {
        "right": p,
        "shift": special.expit(z - 1.0),
        "slope": special.expit(0.4 * z),
        "wave": special.expit(z + 2.0 * np.sin(2.0 * z)),
        "all": np.ones(n),
        "none": np.zeros(n),
        "reverse": 1.0 - p,
    }[bend]
    return p, (rng.random(n) < chance).astype(int)


@given(tables())
@settings(max_examples=150, deadline=None)
def test_sentences_are_true(table: tuple[Any, Any]) -> None:
    p, y = table
    result = found({"p": p, "y": y}, n_resamples=100)
    (row,) = result.table.to_dicts()
    check_sentence(row, p, y)
    assert all(len(line) <= 80 for line in repr(result).splitlines())
    json.dumps(result.to_dict(), allow_nan=False)


@given(tables())
@settings(max_examples=30, deadline=None)
def test_values_lie_where_they_can(table: tuple[Any, Any]) -> None:
    p, y = table
    (row,) = found({"p": p, "y": y}, n_resamples=50).table.to_dicts()
    for name in ("rate", "band_share", "extreme_share", "band_rate"):
        assert 0.0 <= row[name] <= 1.0
    for name in ("gap", "over_gap", "under_gap"):
        assert row[f"{name}_low"] - 1e-12 <= row[name] <= row[f"{name}_high"] + 1e-12
    assert row["band_low"] <= row["band_high"]
    for name in ("line", "curve", "extreme"):
        plain, after = row[f"pvalue_{name}"], row[f"pvalue_{name}_adjusted"]
        assert after is None or plain - 1e-12 <= after <= 1.0


@pytest.mark.parametrize("pattern", list(SHOWN))
def test_sentences_of_the_tables_that_show_patterns(pattern: str) -> None:
    columns = SHOWN[pattern][0]
    check_sentence(only(columns), np.array(columns["p"]), np.array(columns["y"]))


def test_sentences_in_words() -> None:
    assert only(SHOWN["says too much"][0])["sentence"] == (
        "Scores average 60.0%, and 38.7% of 300 rows come true: says too much by 21.3 pp (15.7 to 26.7)."
    )
    # 110 of 300 happen at 0.633 on average, 40 of 100 of the extreme ones do not; Wilson's intervals
    gap_low, gap_high = (100 * (0.633 - end) for end in proportion_confint(150, 300, method="wilson")[::-1])
    low, high = (100 * end for end in proportion_confint(40, 100, method="wilson"))
    assert only(SHOWN["extreme"][0])["sentence"] == (
        f"Scores average 63.3%, and 50.0% of 300 rows come true: says too much by 13.3 pp ({gap_low:.1f} to "
        f"{gap_high:.1f}); 33.3% of 300 rows have scores up to 0.01 or from 0.99 on; 40.0% ({low:.1f} to {high:.1f}) "
        "of these are wrong, where the scores say 0.1%."
    )
    assert only(SHOWN["crossing"][0])["sentence"].startswith("Scores of 0.8 (100 rows) say too much by 30.0 ")


def test_a_clear_gap_comes_before_the_slope_and_a_small_one_after_it() -> None:
    # log-odds of rates are -0.6 + 0.45 of those of scores: a line that crosses the diagonal among them
    clear = only(counts((0.1, 170, 830), (0.5, 354, 646), (0.9, 596, 404)))
    assert clear["pattern"] == "over-confident"
    assert clear["sentence"].startswith(
        "Scores average 50.0%, and 37.3% of 3,000 rows come true: says too much by 12.7"
    )
    assert "; they also lie too far apart, slope " in clear["sentence"]
    small = only(counts((0.1, 280, 720), (0.5, 480, 520), (0.9, 660, 340)))
    low, high = (50 - 100 * end for end in proportion_confint(1420, 3000, method="wilson")[::-1])
    assert small["sentence"].startswith("Scores lie too far apart in 3,000 rows: slope ")
    assert small["sentence"].endswith(f"; mean score less rate is +2.7 pp (+{low:.1f} to +{high:.1f}).")


def test_reversed_scores_are_called_so_before_all_else() -> None:
    # logits of rates are minus those of scores: slope -1; 5 % more positives than that in the second table
    row = only(counts((0.2, 800, 200), (0.5, 500, 500), (0.8, 200, 800)))
    assert (row["pattern"], row["map"], row["slope"]) == ("over-confident", None, approx(-1.0))
    assert row["sentence"].startswith(f"{TURNED}, in 3,000 rows: slope \N{MINUS SIGN}1.00 (")
    clear = only(counts((0.2, 400, 600), (0.5, 200, 800), (0.8, 50, 950)))
    assert clear["sentence"].startswith(f"{TURNED}: slope ")
    assert ". Scores average 50.0%, and 21.7% of 3,000 rows come true: says too much by " in clear["sentence"]
    separated = only(counts((0.3, 100, 0), (0.7, 0, 100)))
    assert separated["sentence"].startswith(TURNED)
    right = only(counts((0.3, 0, 100), (0.7, 100, 0)))
    assert "reversed" not in right["sentence"]


def test_reversed_segments_are_listed_as_such() -> None:
    turned, right = (counts((0.2, k, 200 - k), (0.8, 200 - k, k)) for k in (160, 40))
    both = {name: turned[name] + right[name] for name in turned} | {"g": ["a"] * 400 + ["b"] * 400}
    said = repr(found(both, by="g"))
    assert "1 over-confident (reversed)" in said
    assert said.count("none: reversed") == 1


@pytest.mark.parametrize(("more", "why"), [(9, "once all tests are counted"), (7, "by the test of level and slope")])
def test_a_gap_that_is_off_by_itself_and_not_found_is_said_to_be_so(more: int, why: str) -> None:
    # 60, 75 and 90 of 150 were right; 27, or 21, more are 2.6, or 2.0, standard deviations of 10.5: by chi-square of 2
    # degrees of freedom 0.036 (0.07 of the two tests that can be made), or 0.13
    row = only(counts(*((p / 10, 15 * p + more, 150 - 15 * p - more) for p in (4, 5, 6))))
    ends = proportion_confint(225 + 3 * more, 450, method="wilson")
    assert (ends[0] > 0.5, row["pattern"]) == (True, "none found")
    assert row["sentence"].endswith(
        f"is not ruled out. By itself that is likely off, but it is not found {why}: adjusted p "
        f"{row['pvalue_line_adjusted']:.3f}."
    )
    assert "By itself" not in only(counts((0.4, 90, 135), (0.6, 135, 90)))["sentence"]


def test_noise_on_one_side_is_no_crossing() -> None:
    # scores of 0.8 say too much by 35 points, those of 0.2 too little by 4 of 100 rows, which is chance
    row = only(counts((0.2, 24, 76), (0.4, 40, 60), (0.6, 60, 40), (0.8, 45, 55)))
    assert row["pvalue_curve_adjusted"] <= 0.05
    assert (row["over_gap_low"] > 0.03, row["under_gap"]) == (True, approx(-0.04))
    assert row["pattern"] != "crossing"


def test_printed_segments_say_who_and_what_to_do() -> None:
    parts = [pl.DataFrame(columns).with_columns(g=pl.lit(name)) for name, (columns, _) in SHOWN.items()]
    result = diagnose(pl.concat(parts), label="y", score="p", by="g")
    lines = repr(result).splitlines()
    assert lines[0] == f"<Diagnosis: {result.n:,} rows; .table, .to_dict()>"
    (over,) = (line for line in lines if line.startswith("  over-confident "))
    assert over.split() == ["over-confident", "over-confident", "0.0", "300", "temperature"]
    assert lines[-1].split()[:2] == ["none", "found"]  # the worst come first
    assert lines[1].startswith("  1 ")
    assert " ".join(line.strip() for line in lines[1:6]).count("; what each shows is a sentence in .table") == 1
    assert all(len(line) <= 80 for line in lines)
    twice = pl.DataFrame(SHOWN["none found"][0]).with_columns(q="p")
    assert repr(diagnose(twice, label="y", score=["p", "q"])).startswith("<Diagnosis: 300 rows, 2 models; ")


def test_nothing_found_is_not_shown_to_be_fine() -> None:
    # Wilson: 150 of 300 leave a gap of 5.6 points open, 15,000 of 30,000 one of 0.6
    few, many = (counts((0.2, k, 4 * k), (0.5, 5 * k // 2, 5 * k // 2), (0.8, 4 * k, k)) for k in (20, 2_000))
    frame = pl.concat(
        [pl.DataFrame(columns).with_columns(g=pl.lit(name)) for name, columns in (("a", few), ("b", few), ("c", many))]
    )
    result = diagnose(frame, label="y", score="p", by="g")
    assert repr(result).splitlines()[1:3] == [
        "  2 none found (±3 pp not ruled out), 1 none found (within ±3 pp); what each",
        "  shows is a sentence in .table",
    ]
    assert result.table["pattern"].to_list() == ["none found"] * 3
    assert ["not ruled out" in said for said in result.table["sentence"]] == [True, True, False]
    wide = diagnose(frame, label="y", score="p", by="g", tolerance=0.1)
    assert "  3 none found (within ±10 pp)" in repr(wide)


def test_models_are_counted_and_classes_are_not() -> None:
    table = pl.DataFrame(SHOWN["none found"][0]).with_columns(r=1 - pl.col("p"), g=pl.Series(["a", "b"] * 150))
    for by in (None, "g"):
        for score in ({0: "r", 1: "p"}, ["p"], "p"):
            assert repr(diagnose(table, label="y", score=score, by=by)).startswith("<Diagnosis: 300 rows; ")
    pair = diagnose(table, label="y", score={0: "r", 1: "p"})
    assert "<caption>What is the matter with the classes r, p</caption>" in pair._repr_html_()
    three = table.select("y", p0="r", p1=pl.col("p") / 2, p2=pl.col("p") / 2)
    result = diagnose(three, label="y", score={0: "p0", 1: "p1", 2: "p2"}, notion="confidence")
    assert repr(result).startswith("<Diagnosis: 300 rows; ")
    assert result.to_dict()["scores"] == ["p0", "p1", "p2"]


def test_many_segments_are_drawn_often_enough_to_be_found() -> None:
    # 40 segments, far off and with few positives, so that labels are drawn: 1,000 draws could reject none of 120 tests
    few = counts((0.05, 0, 100), (0.2, 2, 198), (0.4, 8, 92))
    many = {name: values * 40 for name, values in few.items()} | {"g": np.repeat(np.arange(40), 400).tolist()}
    assert set(found(many, by="g").table["pattern"]) == {"says too much"}
    table = found(many, by="g", n_resamples=100).table
    assert set(table["pattern"]) == {"not decided"}
    assert "100 draws cannot reject among 120 comparisons" in table["note"][0]


def test_names_that_polars_reads_as_patterns() -> None:
    for name in ("*", "^.*$"):
        columns = {**SHOWN["none found"][0], name: ["a", "b"] * 150}
        assert "none found" in found(columns, by=name)._repr_html_()
