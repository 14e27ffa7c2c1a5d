"""Numbers as words: minus is U+2212, nothing rounds to all or nothing, zero has no sign."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calframe._words import _numbers as words

SHARES = st.floats(0.0, 1.0)
GAPS = st.floats(-1.0, 1.0)
SIGNED = re.compile(r"(0\.0|[+−](?!0\.0*$)\d+\.\d+)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0773, "+7.7 pp"),
        (-0.026, "−2.6 pp"),
        (0.0005, "+0.1 pp"),
        (0.0004, "+0.04 pp"),
        (-0.0004, "−0.04 pp"),
        (0.00031, "+0.03 pp"),
        (0.00005, "+0.01 pp"),
        (0.00004, "0.0 pp"),
        (-0.00004, "0.0 pp"),
        (0.0, "0.0 pp"),
        (-0.0, "0.0 pp"),
        (1.0, "+100.0 pp"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_points(value: float | None, text: str) -> None:
    assert words.points(value) == text


def test_points_without_sign_or_unit() -> None:
    assert words.points(-0.0123, sign=False) == "1.2 pp"
    assert words.points(-0.0123, unit=False) == "−1.2"


@given(GAPS)
def test_points_are_signed_once_and_near(value: float) -> None:
    text = words.points(value, unit=False)
    assert SIGNED.fullmatch(text)
    rounding = 0.0500001 if abs(value) >= 0.0005 else 0.0050001
    assert float(text.replace("−", "-")) == pytest.approx(100 * value, abs=rounding)


@given(st.floats(0.00005, 0.0005, exclude_max=True))
def test_tiny_points_are_more_than_nothing(value: float) -> None:
    assert re.fullmatch(r"0\.0[1-5]", words.points(value, sign=False, unit=False))


@pytest.mark.parametrize(
    ("value", "text"), [(0.03, "±3 pp"), (0.025, "±2.5 pp"), (0.0001, "±0.01 pp"), (0.1, "±10 pp"), (0.07, "±7 pp")]
)
def test_tolerance(value: float, text: str) -> None:
    assert words.tolerance(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0773, "8"),
        (-0.0773, "8"),
        (0.02, "2"),
        (0.0196, "2"),
        (0.0194, "1.9"),
        (-0.012, "1.2"),
        (0.0099, "1.0"),
        (-0.0004, "0.04"),
    ],
)
def test_whole_points(value: float, text: str) -> None:
    assert words.whole_points(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.2937, "29.4%"),
        (0.0, "0.0%"),
        (0.0004, "0.04%"),
        (0.0001, "0.01%"),
        (1e-7, "< 0.01%"),
        (1e-300, "< 0.01%"),
        (0.9999, "> 99.9%"),
        (1.0, "100.0%"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_percent(value: float | None, text: str) -> None:
    assert words.percent(value) == text


@given(SHARES)
def test_percent_is_all_or_nothing_only_where_it_is(share: float) -> None:
    text = words.percent(share)
    assert (text == "0.0%") == (share == 0)
    assert (text == "100.0%") == (share == 1)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((-0.048, -0.004), "−4.8 to −0.4"),
        ((-0.0001, 0.02), "−0.01 to +2.0"),
        ((None, 0.1), "–"),
        ((0.1, None), "–"),
        ((math.nan, math.nan), "–"),
    ],
)
def test_interval(ends: tuple[float | None, float | None], text: str) -> None:
    assert words.interval(*ends) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (3566, "3,566"), (1048.4, "1,048"), (12_345_678, "12,345,678")])
def test_count(value: float, text: str) -> None:
    assert words.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(276.4, "+276"), (-0.2, "0"), (0.2, "0"), (-1200, "−1,200"), (0.0, "0"), (None, "–"), (-0.6, "−1")],
)
def test_signed_count(value: float | None, text: str) -> None:
    assert words.signed_count(value) == text


@given(st.floats(-1e9, 1e9))
def test_signed_count_signs_nothing_that_is_zero(value: float) -> None:
    assert re.fullmatch(r"0|[+−][1-9][\d,]*", words.signed_count(value))


@pytest.mark.parametrize(("value", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1000, "1,000 rows")])
def test_rows(value: float, text: str) -> None:
    assert words.rows(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(6721.3, "6,800"), (104, "110"), (100, "100"), (7, "7"), (7.2, "8"), (1001, "1,100")]
)
def test_rounded_up(value: float, text: str) -> None:
    assert words.rounded_up(value) == text


@given(st.floats(1.0, 1e12))
def test_rounded_up_is_never_less_and_never_a_tenth_more(value: float) -> None:
    number = float(words.rounded_up(value).replace(",", ""))
    assert value * (1 - 1e-12) <= number <= max(1.1 * value, value + 1) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0421, "0.042"),
        (0.0009, "< 0.001"),
        (0.0, "< 0.001"),
        (1e-300, "< 0.001"),
        (0.001, "0.001"),
        (0.9996, "> 0.999"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_pvalue(value: float | None, text: str) -> None:
    assert words.pvalue(value) == text


@given(SHARES)
def test_pvalue_never_says_that_a_chance_is_zero_or_one(value: float) -> None:
    assert re.fullmatch(r"< 0\.001|> 0\.999|0\.\d{3}", words.pvalue(value))
    assert words.pvalue(value) != "0.000"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("West", "West"),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 39 + "…"),
        ("a\n b\t\tc", "a b c"),
    ],
)
def test_short(name: str, text: str) -> None:
    assert words.short(name) == text


def test_a_blank_name_is_still_something_to_read() -> None:
    assert words.short("   ").strip()


@given(st.text())
def test_short_is_one_line_of_40_characters_at_most(name: str) -> None:
    text = words.short(name)
    assert len(text) <= 40
    assert not set(text) & set("\n\r\t")


@pytest.mark.parametrize(("parts", "text"), [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c")])
def test_listed(parts: str, text: str) -> None:
    assert words.listed(list(parts)) == text
