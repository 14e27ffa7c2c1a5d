"""What a report claims is true for its numbers, on tables of every kind."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest

from calframe._report import _sentences, _titles
from calframe._report._findings import Findings
from calframe._report._result import result
from tests._report_cases import TABLES, found_in

Row = dict[str, Any]
NUMBER = r"(\d+(?:\.\d+)?)"


@pytest.fixture(params=TABLES, ids=str)
def found(request: pytest.FixtureRequest) -> Findings:
    return found_in(request.param)


@pytest.fixture
def numbers(found: Findings) -> dict[str, Any]:
    return result(found)


# What the numbers say, worked out from the intervals alone


def verdict(row: Row, *, tolerance: float, alpha: float) -> str:
    low, high = row["simultaneous_low"], row["simultaneous_high"]
    if row["pvalue"] is None:
        return "few"
    if low > tolerance:
        return "over"
    if high < -tolerance:
        return "under"
    if -tolerance <= low and high <= tolerance:
        return "within"
    return "lean" if row["pvalue_adjusted"] < alpha else "unsure"


def verdicts(numbers: dict[str, Any]) -> list[str]:
    limits = {"tolerance": numbers["tolerance"], "alpha": numbers["alpha"]}
    return [verdict(row, **limits) for row in numbers["segments"]]


def overall(numbers: dict[str, Any]) -> str:
    return verdict(numbers["overall"], tolerance=numbers["tolerance"], alpha=numbers["alpha"])


def is_size(text: str, gap: float) -> bool:
    """Tell whether a text is the size of a gap in points: whole, or with one decimal below 2."""
    off = abs(float(text) - 100 * abs(gap))
    return off <= (0.0500001 if "." in text else 0.5000001)


def named(name: str, numbers: dict[str, Any]) -> Row:
    [row] = [row for row in numbers["segments"] if f"{row['column']} {row['segment']}" == name]
    return row


def high(row_or_gap: float) -> str:
    return "high" if row_or_gap > 0 else "low"


# Headline


def test_headline_is_true(numbers: dict[str, Any]) -> None:
    rest = check_average(numbers["headline"], numbers)
    rest = check_curve(rest, numbers)
    rest = check_gaps(rest, numbers)
    check_since(rest, numbers)


def check_average(text: str, numbers: dict[str, Any]) -> str:
    """Check the first clause and return what follows it."""
    row, kind = numbers["overall"], overall(numbers)
    patterns = {
        "within": "On average the scores are within tolerance",
        "few": "There are too few rows to judge even the average",
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
    assert row["ece"] - row["ece_expected"] > numbers["tolerance"]
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
        return text[counted.end() :]
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
    more = re.match(r" and (\d+) other segments have clear gaps too| \(and (\d+) more\)", text)
    assert len(clear) == (1 + int(more[1] or more[2]) if more else 1)
    return text[more.end() :] if more else text


def check_since(text: str, numbers: dict[str, Any]) -> None:
    if text == ".":
        assert numbers["since"] is None
        return
    found = re.fullmatch(rf", and since (.+) the scores as a whole run {NUMBER} points (high|low)\.", text)
    assert found, text
    periods = numbers["periods"]
    first = [period["label"] for period in periods].index(found[1])
    run = periods[first:]
    assert first > 0
    signs = {1 if period["simultaneous_low"] > 0 else -1 if period["simultaneous_high"] < 0 else 0 for period in run}
    assert signs == {1 if found[3] == "high" else -1}
    assert not all(period["simultaneous_low"] > 0 for period in periods)
    if numbers["columns"]["weight"] is None:  # with weights the rows of a period do not tell its share
        during, before = mean_gap(run), mean_gap(periods[:first])
        assert is_size(found[2], during)
        assert abs(during) > numbers["tolerance"]
        assert (during - before) * during > 0


def mean_gap(periods: list[Row]) -> float:
    gaps = sum(period["n"] * period["gap"] for period in periods)
    return float(gaps / sum(period["n"] for period in periods))


def test_headline_has_35_words_at_most(numbers: dict[str, Any]) -> None:
    assert len(numbers["headline"].split()) <= 35


# Verdict, tiles, actions


def test_verdict_is_within_tolerance_only_if_all_of_it_is(found: Findings, numbers: dict[str, Any]) -> None:
    kinds = {*verdicts(numbers), overall(numbers)}
    off = bool(kinds & {"over", "under"}) or numbers["since"] is not None or found.curve_off
    expected = "action needed" if off else "watch" if "lean" in kinds else "undecided"
    assert numbers["verdict"] == (expected if kinds != {"within"} or off else "within tolerance")


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
        expected = [kinds.count(kind) for kind in ("within", "lean", "unsure", "few")]
        clear = kinds.count("over") + kinds.count("under")
        assert counted == expected
        assert third.big == f"{clear} of {len(kinds) - kinds.count('few')}"
        assert sum(counted) + clear == len(numbers["segments"])
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
    if numbers["since"] is None:
        assert last.small == f"{'' if off else 'not '}clearly off zero {corrected}"
    else:
        assert off
        before = re.fullmatch(rf"before {re.escape(numbers['since'])}: (.+) pp", last.small)
        assert before
        assert found.course is not None
        assert found.course.since is not None
        assert float(before[1].replace("−", "-")) == pytest.approx(100 * found.course.since.before, abs=0.0500001)


def test_actions_are_five_at_most_and_claim_what_the_numbers_say(found: Findings, numbers: dict[str, Any]) -> None:
    actions = _sentences.actions(found)
    kinds = verdicts(numbers)
    assert 1 <= len(actions) <= 5
    whats = [action.what for action in actions]
    if "Nothing to do now." in whats:
        assert {*kinds, overall(numbers)} == {"within"}
        assert numbers["since"] is None
        assert len(actions) == 1
    for action in actions:
        single = re.fullmatch(
            r"(Recalibrate|Watch) (group .+?|other .+?)( before its scores are used again)?\.", action.what
        )
        if single:
            row = named(single[2], numbers)
            kind = verdict(row, tolerance=numbers["tolerance"], alpha=numbers["alpha"])
            assert kind in ({"over", "under"} if single[1] == "Recalibrate" else {"lean"})
            check_people(action.why, row)
        if action.what == "Recalibrate the scores as a whole.":
            assert overall(numbers) in {"over", "under"} or found.curve_off
        if action.what == "Do not report these as fine:":
            extra = int(overall(numbers) in {"unsure", "few"})
            assert listed(action.why) == kinds.count("unsure") + kinds.count("few") + extra
        clear = kinds.count("over") + kinds.count("under")
        if action.what == "Recalibrate these too:":
            assert overall(numbers) not in {"over", "under"}
            assert listed(action.why) == clear - (0 if found.curve_off else 1)
            assert listed(action.why) > 1
        if action.what == "Look at these by themselves:":
            assert overall(numbers) in {"over", "under"}
            assert listed(action.why) == clear > 1
        if action.what == "Watch these:":
            assert listed(action.why) == kinds.count("lean")


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


# Titles


def test_forest_title_is_true(found: Findings, numbers: dict[str, Any]) -> None:
    for one in found.groupings:
        rows = [row for row in numbers["segments"] if row["column"] == one.column]
        kinds = [verdict(row, tolerance=numbers["tolerance"], alpha=numbers["alpha"]) for row in rows]
        clear = [row for row, kind in zip(rows, kinds, strict=True) if kind in {"over", "under"}]
        title = _titles.forest_title(one)
        if most := re.match(r"(\d+) of (\d+) segments have a clear gap; of these (.+) mis-states the most", title):
            assert (int(most[1]), int(most[2])) == (len(clear), len(rows))
            largest = max(abs(row["net"]) for row in clear)
            assert named(most[3], numbers) in clear
            assert abs(named(most[3], numbers)["net"]) == pytest.approx(largest, rel=1e-12)
        elif alone := re.match(r"(.+) is the one segment with a clear gap: ", title):
            assert clear == [named(alone[1], numbers)]
        elif title.startswith("Every segment"):
            assert set(kinds) == {"within"}
        else:
            assert not clear
            if title == f"No segment of {one.column} has a clear gap, and none can be cleared yet":
                assert "within" not in kinds
                continue
            counts = re.fullmatch(
                r"No segment of \w+ has a clear gap; (\d+) of (\d+) within tolerance, the others? cannot be cleared yet",
                title,
            )
            assert counts, title
            assert (int(counts[1]), int(counts[2])) == (kinds.count("within"), len(rows))
            assert ("the other cannot" in title) is (len(rows) - kinds.count("within") == 1)


def test_heat_title_is_true(found: Findings) -> None:
    for one in found.groupings:
        title = _titles.heat_title(one, alpha=found.alpha)
        shown = one.heat.filter("shown")
        if widest := re.match(rf"The widest clear gap of \w+ (.+) is at scores of (.+): {NUMBER} pp too (\w+)", title):
            assert one.segments["verdict"][0] in {"over", "under"}
            assert one.segments["segment"][0] == widest[1]
            mine = shown.filter((pl.col("segment") == widest[1]) & pl.col("clear"))
            row = mine.row(int(mine["gap"].abs().arg_max() or 0), named=True)
            assert (row["range"], high(row["gap"])) == (widest[2], widest[4])
            assert is_size(widest[3], row["gap"])
        elif counted := re.match(
            rf"(\d+) of (\d+) cells? stands? out, where chance alone gives (?:(less than one)|about {NUMBER})", title
        ):
            assert (int(counted[1]), int(counted[2])) == (shown.filter("clear").height, shown.height)
            expected = found.alpha * shown.height
            assert expected < 1 if counted[3] else float(counted[4]) == pytest.approx(expected, abs=0.5)
            assert counted[4] != "0"
        else:
            assert shown.is_empty()


def test_panels_title_is_true(found: Findings) -> None:
    for one in found.groupings:
        drawn_names = one.segments["segment"].to_list()[:12]
        few = set(one.segments.filter(pl.col("verdict") == "few")["segment"])
        out: dict[str, int] = {}
        for row in one.curves.iter_rows(named=True):
            if row["segment"] in drawn_names and row["segment"] not in few:
                outside = not row["band_low"] <= row["rate"] <= row["band_high"]
                out[row["segment"]] = out.get(row["segment"], 0) + outside
        title = _titles.panels_title(one, drawn_names, alpha=found.alpha)
        if most := re.search(r"no other segment here in (?:more than (\d+)|any)", title):
            assert max(k for name, k in out.items() if name != drawn_names[0]) == int(most[1] or 0) < out[drawn_names[0]]
        if own := re.match(r"\w+ (.+) is outside its band in (\d+) of", title):
            assert out[own[1]] == int(own[2])
        if some := re.search(r"(\d+) of (\d+) segments? here ha(?:s|ve) bins outside", title):
            assert (int(some[1]), int(some[2])) == (sum(k > 0 for k in out.values()), len(out))


def test_curve_title_is_true(found: Findings) -> None:
    title = _titles.curve_title(found.curve, name="All rows together")
    outside = found.curve.filter(~pl.col("rate").is_between("band_low", "band_high"))
    if counted := re.match(r"All rows together: (\d+) of (\d+) bins? lies? outside the band", title):
        assert (int(counted[1]), int(counted[2])) == (outside.height, found.curve.height)
        assert outside.height > 0
    elif "right scores would put" in title:
        assert outside.is_empty()
        assert ("the one bin" in title) is (found.curve.height == 1)
        assert not found.curve.is_empty()
    else:
        assert title == "All rows together: there are none to draw a curve of"
        assert found.curve.is_empty()


def test_course_title_is_true(found: Findings, numbers: dict[str, Any]) -> None:
    if found.course is None:
        return
    title = _titles.course_title(found.course)
    marked = [
        period
        for period in numbers["periods"]
        if period["verdict"] != "few" and (period["simultaneous_low"] > 0 or period["simultaneous_high"] < 0)
    ]
    assert title.startswith("Since") is (numbers["since"] is not None)
    if counted := re.match(r"(\d+) of (\d+) periods? stands? out, (.+?) (?:the most )?with (.+?) pp", title):
        assert (int(counted[1]), int(counted[2])) == (len(marked), len(numbers["periods"]))
        largest = max(marked, key=lambda period: abs(period["gap"]))
        assert counted[3] == largest["label"]
        assert float(counted[4].replace("−", "-")) == pytest.approx(100 * largest["gap"], abs=0.0500001)
    elif numbers["since"] is None:
        assert title in {f"None of {len(numbers['periods'])} periods stands out", "There is only one period"}
        assert not marked
