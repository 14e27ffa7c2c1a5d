"""What a report claims is true for its numbers, on tables of every kind."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest

from calframe._report import _actions, _sentences
from calframe._report._findings import Findings
from calframe._report._result import result
from tests._claims import NUMBER, Row, high, is_size, named, overall, verdict, verdicts
from tests._report_cases import TABLES, found_in


@pytest.fixture(params=TABLES, ids=str)
def found(request: pytest.FixtureRequest) -> Findings:
    return found_in(request.param)


@pytest.fixture
def numbers(found: Findings) -> dict[str, Any]:
    return result(found)


# Headline


def test_headline_is_true(numbers: dict[str, Any]) -> None:
    rest = check_average(numbers["headline"], numbers)
    rest = check_curve(rest, numbers)
    rest = check_gaps(rest, numbers)
    rest = check_crooked(rest, numbers)
    check_since(rest, numbers)


def check_average(text: str, numbers: dict[str, Any]) -> str:
    """Check the first clause and return what follows it."""
    row, kind = numbers["overall"], overall(numbers) if numbers["counts"]["used"] else "nothing"
    patterns = {
        "within": "On average the scores are within tolerance",
        "few": "There are too few rows to judge even the average",
        "nothing": "There is no row that can be used",
        "unsure": "Whether the scores are off on average cannot be told yet",
        "lean": f"On average the scores lean {NUMBER} percentage points (high|low)",
        "over": f"On average the scores run {NUMBER} percentage points too (high|low)",
    }
    found = re.match(patterns["over" if kind == "under" else kind], text)
    assert found, f"{kind}: {text}"
    if found.groups():
        assert is_size(found[1], row["gap"])
        assert found[2] == high(row["gap"])
    return text[found.end() :]


def check_curve(text: str, numbers: dict[str, Any]) -> str:
    row = numbers["overall"]
    found = re.match(rf", but over their range they are off by {NUMBER} pp(?: \(chance alone: {NUMBER}\))?", text)
    if not found:
        return text
    assert float(found[1]) == pytest.approx(100 * row["ece"], abs=0.0500001)
    if found[2]:
        assert float(found[2]) == pytest.approx(100 * row["ece_expected"], abs=0.0500001)
    assert is_curve_off(numbers)
    assert row["ece"] > row["ece_expected_high"]
    return text[found.end() :]


def check_gaps(text: str, numbers: dict[str, Any]) -> str:
    kinds = verdicts(numbers)
    clear = [row for row, kind in zip(numbers["segments"], kinds, strict=True) if kind in {"over", "under"}]
    if clear:
        return check_clear(text, clear, numbers)
    found = re.match(
        r"(?:\. No segment has a clear gap, but|;) (\d+) of (\d+)(?: segments?)? cannot be cleared yet", text
    )
    if found:
        assert (int(found[1]), int(found[2])) == (len(kinds) - kinds.count("within"), len(kinds))
        assert int(found[1]) > 0
        return text[found.end() :]
    found = re.match("(, and so is every segment|; the gap of every segment is within tolerance)", text)
    if found:
        assert set(kinds) == {"within"}
        return text[found.end() :]
    assert not kinds, text
    return text


def check_clear(text: str, clear: list[Row], numbers: dict[str, Any]) -> str:
    counted = re.match(r"(?:, but |; )(\d+) segments? ha(?:s a|ve) clear gaps?", text)
    if counted:
        assert int(counted[1]) == len(clear)
        return check_most_rows(text[counted.end() :], clear, numbers)
    found = re.match(rf"(?:, but |; )(.+?) is (over|under)stated by {NUMBER} percentage points", text)
    assert found, text
    worst = named(found[1], numbers)
    assert worst in clear
    assert all(abs(row["net"]) <= abs(worst["net"]) * (1 + 1e-12) for row in clear)
    assert (found[2] == "over") == (worst["gap"] > 0)
    assert is_size(found[3], worst["gap"])
    text = text[found.end() :]
    second = re.match(rf" and (.+?) (over|under)stated by {NUMBER}", text)
    if second:
        other = named(second[1], numbers)
        assert len(clear) == 2
        assert other in clear
        assert (second[2] == "over") == (other["gap"] > 0)
        assert is_size(second[3], other["gap"])
        return text[second.end() :]
    more = re.match(r" and (\d+) other segments have clear gaps too| \(and (\d+) segments? more\)", text)
    assert len(clear) == (1 + int(more[1] or more[2]) if more else 1)
    assert all(abs(row["gap"]) <= abs(worst["gap"]) for row in clear)  # else it says that rows make it the worst
    return text[more.end() :] if more else text


def check_most_rows(text: str, clear: list[Row], numbers: dict[str, Any]) -> str:
    found = re.match(
        rf"; of these (.+?) misstates the most rows(?: \((over|under)stated by {NUMBER} percentage points\))?", text
    )
    if not found:
        return text
    worst = named(found[1], numbers)
    assert all(abs(row["net"]) <= abs(worst["net"]) * (1 + 1e-12) for row in clear)
    assert any(abs(row["gap"]) > abs(worst["gap"]) for row in clear)
    if found[2]:
        assert (found[2] == "over") == (worst["gap"] > 0)
        assert is_size(found[3], worst["gap"])
    return text[found.end() :]


def check_crooked(text: str, numbers: dict[str, Any]) -> str:
    crooked = crooked_rows(numbers)
    found = re.match(r"; over their range the scores of (?:(\d+) segments?|(.+?)) are off", text)
    if not found:
        assert not crooked or is_curve_off(numbers)
        return text
    if found[1]:
        assert int(found[1]) == len(crooked)
    else:
        assert [named(found[2], numbers)] == crooked
    return text[found.end() :]


def is_curve_off(numbers: dict[str, Any]) -> bool:
    row = numbers["overall"]
    return row["ece_pvalue"] <= 0.001 and is_far_off(row, numbers)


def is_far_off(row: Row, numbers: dict[str, Any]) -> bool:
    """Tell whether the ECE is more than chance, and a shift of all scores, make it."""
    return row["ece"] - max(row["ece_expected"], abs(row["gap"])) > numbers["tolerance"]


def crooked_rows(numbers: dict[str, Any]) -> list[Row]:
    """Return the segments off over their range: judged, no clear gap, beyond chance and tolerance."""
    return [
        row
        for row, kind in zip(numbers["segments"], verdicts(numbers), strict=True)
        if kind not in {"over", "under", "few"}
        and row["ecce_pvalue_adjusted"] < numbers["alpha"]
        and is_far_off(row, numbers)
    ]


def check_since(text: str, numbers: dict[str, Any]) -> None:
    if text == ".":
        assert numbers["since"] is None
        return
    found = re.fullmatch(
        r", (and|but) since (.+?)( or earlier)? (?:the scores as a whole|scores overall) have run "
        rf"{NUMBER} percentage points (high|low)\.",
        text,
    )
    assert found, text
    assert (found[1] == "but") == all_well(numbers)
    periods = numbers["periods"]
    first = [period["label"] for period in periods].index(found[2])
    run = [period for period in periods[first:] if period["verdict"] != "few"]
    assert first > 0
    assert run[0]["label"] == found[2]
    signs = {1 if period["simultaneous_low"] > 0 else -1 if period["simultaneous_high"] < 0 else 0 for period in run}
    assert signs == {1 if found[5] == "high" else -1}
    last = max(i for i in range(first) if periods[i]["verdict"] != "few")
    assert numbers["since_unjudged"] == first - last - 1
    assert bool(found[3]) is (numbers["since_unjudged"] > 0)
    if numbers["columns"]["weight"] is None:  # with weights the rows of a period do not tell its share
        during, before = mean_gap(periods[first:]), mean_gap(periods[: last + 1])
        assert is_size(found[4], during)
        assert abs(during) > numbers["tolerance"]
        assert (during - before) * during > 0


def all_well(numbers: dict[str, Any]) -> bool:
    """Tell whether nothing bad is said of the segments, or, without any, of the average."""
    if numbers["segments"]:
        return set(verdicts(numbers)) == {"within"}
    return overall(numbers) in {"within", "unsure", "few"} and "over their range" not in numbers["headline"]


def mean_gap(periods: list[Row]) -> float:
    told = [period for period in periods if period["gap"] is not None]  # not where there are hardly rows
    return float(sum(period["n"] * period["gap"] for period in told) / sum(period["n"] for period in told))


def test_headline_has_35_words_at_most(numbers: dict[str, Any]) -> None:
    assert len(numbers["headline"].split()) <= 35


# Verdict, tiles, actions


def test_verdict_is_within_tolerance_only_if_all_of_it_is(found: Findings, numbers: dict[str, Any]) -> None:
    kinds = {*verdicts(numbers), overall(numbers)}
    off = bool(kinds & {"over", "under"}) or numbers["since"] is not None or found.curve_off
    mild = "lean" in kinds or bool(crooked_rows(numbers))
    calm = "within tolerance" if kinds == {"within"} else "undecided"
    assert numbers["verdict"] == ("action needed" if off else "watch" if mild else calm)


def test_tiles_count_up(found: Findings, numbers: dict[str, Any]) -> None:
    gap, error, third, last = _sentences.tiles(found)
    kinds = verdicts(numbers)
    inside = re.search("(inside|beyond|not clearly inside) the", gap.small)
    assert inside
    assert inside[1] == {"within": "inside", "over": "beyond", "under": "beyond"}.get(
        overall(numbers), "not clearly inside"
    )
    if kinds:
        counted = [int(number) for number in re.findall(r"\d+", third.small)]
        clear, few = kinds.count("over") + kinds.count("under"), kinds.count("few")
        judged = len(kinds) - few
        rest = [kinds.count(kind) for kind in ("within", "lean", "unsure")]
        assert third.big == f"{clear} of {judged}"
        assert counted == [*(rest if clear < judged else []), *([few] if few else [])]
        assert third.small.startswith("the rest: ") is (clear < judged)
        assert (" more too small to judge" in third.small) is (judged > 0 and few > 0)
    if numbers["overall"]["ece"] is not None:
        assert float(error.big.split()[0]) == pytest.approx(100 * numbers["overall"]["ece"], abs=0.0500001)
    if numbers["periods"] is None:
        assert last.big == f"{numbers['counts']['used']:,}"
        return
    final = numbers["periods"][-1]
    assert last.name == f"Latest period, {final['label']}"
    off = final["verdict"] != "few" and (final["simultaneous_low"] > 0 or final["simultaneous_high"] < 0)
    looks = sum(period["verdict"] != "few" for period in numbers["periods"])
    corrected = f"after correction for {looks} look{'' if looks == 1 else 's'}"
    if numbers["since"] is None and final["verdict"] == "few":
        assert last.small == f"too few rows to judge ({final['n']} row{'' if final['n'] == 1 else 's'})"
    elif numbers["since"] is None:
        assert last.small == f"{'' if off else 'not '}clearly off zero {corrected}"
    else:
        before = re.fullmatch(rf"before {re.escape(numbers['since'])}: (.+) pp", last.small)
        assert before
        assert found.course is not None
        assert found.course.since is not None
        assert float(before[1].replace("−", "-")) == pytest.approx(100 * found.course.since.before, abs=0.0500001)


def test_actions_are_five_at_most_and_none_only_where_all_is_within(found: Findings, numbers: dict[str, Any]) -> None:
    actions = _actions.actions(found)
    assert 1 <= len(actions) <= 5
    if "Nothing to do now." not in [action.what for action in actions]:
        return
    assert len(actions) == 1
    assert {*verdicts(numbers), overall(numbers)} == {"within"}
    assert numbers["since"] is None
    outside = found.curve.filter(~pl.col("rate").is_between("band_low", "band_high")).height
    said = re.search(r"(\d+) bins? of the curve below lies? outside the band", actions[0].why)
    assert (int(said[1]) if said else 0) == outside


def test_actions_about_one_segment_claim_what_its_numbers_say(found: Findings, numbers: dict[str, Any]) -> None:
    for action in _actions.actions(found):
        single = re.fullmatch(
            r"(Recalibrate|Watch) (group .+?|other .+?)( before its scores are used again)?\.", action.what
        )
        if single:
            row = named(single[2], numbers)
            kind = verdict(row, tolerance=numbers["tolerance"], alpha=numbers["alpha"])
            assert kind in ({"over", "under"} if single[1] == "Recalibrate" else {"lean"})
            check_people(action.why, row)


def test_actions_about_several_segments_name_or_count_them_all(found: Findings, numbers: dict[str, Any]) -> None:
    kinds = verdicts(numbers)
    clear = kinds.count("over") + kinds.count("under")
    for action in _actions.actions(found):
        if action.what.startswith("Look at the gap over time"):
            check_passing(action.why, overall(numbers), numbers)
        if action.what == "Recalibrate the scores as a whole.":
            assert overall(numbers) in {"over", "under"} or found.curve_off
        if action.what.endswith("as fine:"):
            extra = int(overall(numbers) in {"unsure", "few"})
            assert listed(action.why) == kinds.count("unsure") + kinds.count("few") + extra
        if action.what == "Recalibrate these too:":
            assert overall(numbers) not in {"over", "under"}
            assert listed(action.why) == clear - (0 if found.curve_off else 1)
            assert listed(action.why) > 1
        if action.what == "Look at these by themselves:":
            assert overall(numbers) in {"over", "under"}
            whole = numbers["overall"]["gap"]
            differ = [
                row
                for row, kind in zip(numbers["segments"], kinds, strict=True)
                if kind in {"over", "under"} and (row["simultaneous_low"] > whole or row["simultaneous_high"] < whole)
            ]
            assert listed(action.why) == len(differ) > 1
        if action.what == "Watch these:":
            assert listed(action.why) == kinds.count("lean")


def check_passing(why: str, kind: str, numbers: dict[str, Any]) -> None:
    assert kind in {"over", "under"}
    judged = [period for period in numbers["periods"] if period["verdict"] != "few"]
    found = re.search(r"(\d+) of (\d+) judged periods? (?:is|are) clearly off this way, (.+?)(?: the most)? \(", why)
    assert found
    off = [period for period in judged if period["verdict"] == kind]
    assert (int(found[1]), int(found[2])) == (len(off), len(judged))
    assert found[3] == max(off, key=lambda period: abs(period["gap"]))["label"]
    assert f"the latest, {judged[-1]['label']}, is" in why
    assert ("is within tolerance (" in why) is (judged[-1]["verdict"] == "within")


def check_people(why: str, row: Row) -> None:
    """Check sentences such as "of 3,566 rows, 1,048 positives were predicted and 774 happened"."""
    found = re.search(r"of ([\d,]+) rows?, ([\d,]+) positives were predicted and ([\d,]+) happened", why)
    if found:
        n, predicted, happened = (int(number.replace(",", "")) for number in found.groups())
        assert n == row["n"]
        assert abs(predicted - row["mean_score"] * n) <= 0.5000001
        assert happened == round(row["positives"])


def listed(why: str) -> int:
    """Count what an enumeration names: each name carries a parenthesis, and the rest are counted."""
    more = re.search(r" and (\d+) more", why)
    return len(re.findall(r"\((?!missing)[^)]*\)", why)) + (int(more[1]) if more else 0)


def test_rows_add_up(numbers: dict[str, Any]) -> None:
    counts = numbers["counts"]
    assert counts["rows"] == counts["used"] + counts["missing"] + counts["invalid"] + counts["zero_weight"]
    for column in numbers["columns"]["by"]:
        assert sum(row["n"] for row in numbers["segments"] if row["column"] == column) == counts["used"]
    if numbers["periods"] is not None:
        assert sum(period["n"] for period in numbers["periods"]) <= counts["used"]
