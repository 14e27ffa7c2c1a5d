"""Numbers in a plain text: what each could say of a confidence, before it is known whether it does."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from calframe._answers._plain import WORD

MARK, OTHER = "@", "¤"  # what stands in the text for a number that could be a confidence, and for one that cannot
_NUM = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+[.,]\d+|\d+|\.\d+)(?:e[-+]?\d+)?" + WORD + "?"
_SIGN = r"(?:(?<![\d%)a-z])-)?"
_LEFT = r"(?<![\w$€£¥#./+°])(?<!\d[,:])"
_RIGHT = r"(?![\w°]| ?[€£¥₹]|[.,/:-]\d|%\w)"
_SCALES = {1.0, 4.0, 5.0, 7.0, 10.0, 100.0}  # tops of scales that people name
_WHOLES = {
    1.0,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    7.0,
    8.0,
    9.0,
    10.0,
    12.0,
    20.0,
    50.0,
    100.0,
    1000.0,
}  # of a fraction that stands alone
_NEAR = 0.2  # "70 or 80 percent" is a range, "30 or 70 percent" is none
_COUNT = r"(?:(?:times|chances?) )?"
_OUT_OF, _IN = rf"(?:/|{_COUNT}\bout of\b(?: an?\b| every)?)", rf"(?:\b{_COUNT}in\b(?: every)?|\bof\b)"
_SPREAD = r"(?:±|\+ ?/ ?-|plus or minus|give or take)"
_NAMED = "answer|question|option|step|part|item|candidate|choice|guess|number|no|q|case|page|chapter"
_FORMS = re.compile(
    rf"(?P<date>{_LEFT}\d+(?P<between_parts>[/.-])\d+(?P=between_parts)\d+\b)"
    rf"|(?P<time>{_LEFT}\d{{1,2}}:\d\d\b)"
    rf"|(?P<name>\b(?:{_NAMED})\.? ?#?\d+(?![\w.,%/-]|:\d|\s*(?:%|out of|times|in \d))"
    r"|\b(?:ch|eq|fig|sec|ver|vol)s?\. ?\d[\d.]*(?!\s*%))"
    rf"|(?P<spread>{_SPREAD}\s*{_NUM}\s*%?)"
    rf"|(?P<top>(?:\bon )?\b(?:a |the )?scale (?:of|out of|from|up to) {_NUM}(?!\s*(?:-|to\b|\d)){_RIGHT}"
    rf"|(?:\bon )?\b(?:a |the )?{_NUM}[ -]point scale\b"
    rf"|\(0%? ?(?:=|is|means|:)[^()]{{,99}}\)|(?<![\d{WORD}] )(?<!times )\bout of {_NUM}{_RIGHT})"
    rf"|(?P<range>(?P<either>\beither )?(?P<between>\b(?:between|from) )?{_LEFT}"
    rf"(?P<low>{_SIGN}{_NUM})\s*(?P<low_unit>%?)\s*(?P<join>-|~|(?<=\d):(?=\d)|\bto\b|\band\b|\bor\b)\s*~?"
    rf"(?P<high>{_NUM})\s*(?P<high_unit>%|(?:/|\bout of\b)\s*{_NUM})?{_RIGHT})"
    rf"|(?P<fraction>{_LEFT}(?P<part>{_SIGN}{_NUM})\s*(?:{_OUT_OF}|{_IN})\s*(?P<whole>{_NUM})(?!\s*%){_RIGHT})"
    rf"|(?P<percent>{_LEFT}(?P<hundredths>{_SIGN}{_NUM})\s*(?:{_SPREAD}\s*{_NUM}\s*)?%+(?!\w))"
    rf"|(?P<number>{_LEFT}{_SIGN}{_NUM}{_RIGHT})"
    r"|(?P<junk>(?:[$€£¥#+/.-]|\b[a-z]+){,6}\d\S*)"
)
_BET = re.compile(r"\b(?:bet|wager)(?: \w+)? (?=\d+w? ?(?:to|:|-) ?\d+)")
_ANCHOR = r"\d+(?=w?%? (?:is|=|means|being|meaning|represents|indicates)\b)"
_ANCHORS = re.compile(rf"[(,]? ?\b(?:where|with) {_ANCHOR}[^,.;\n()]*(?:(?:,| and|, and) {_ANCHOR}[^,.;\n()]*)?[),]?")
_IN_PERCENT = re.compile(r"\((?:in |as )?(?:a )?%\)|,? (?:in|as a) %(?=:)")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a statement.

    Attributes
    ----------
    value : float
        The probability that it says if it is one; of a number without a unit the number itself.
    form : str
        "percent", "fraction", "range" or "decimal", the last for a number without a unit.
    needs_word : bool
        Whether it is a confidence only if bound to a word for one: a whole number in words ("the one"), or 70-80.
    """

    value: float
    form: str
    needs_word: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """A text with its numbers taken out.

    Attributes
    ----------
    text : str
        The text with a mark in the place of each number.
    quantities : list of Quantity
        The numbers that could be a confidence, in the order of their marks.
    top : float or None
        The top of the scale that the text names, as in "on a scale of 1 to 10".
    """

    text: str
    quantities: list[Quantity]
    top: float | None


def counted(text: str) -> Counted:
    """Return a plain text with its numbers taken out.

    Examples
    --------
    >>> counted("70-80% sure, in 1987").text
    '@ sure, in @'
    >>> counted("8 on a scale of 1 to 10").top
    10.0
    """
    text = _BET.sub("odds ", text)
    odds = re.search(r"\bodds\b", text) is not None
    is_scale = not odds or "scale" in text  # else "1 to 4" are the odds
    against = odds and re.search(r"\bagainst\b", text) is not None
    quantities: list[Quantity] = []
    tops: list[float] = []

    def taken(found: re.Match[str]) -> str:
        if found.lastgroup == "spread":
            return " "
        if found["top"]:
            tops.append(_last(found["top"]))
            return " "
        if found["range"] and is_scale and _is_scale(found):
            tops.append(_value(found["high"]))
            return " "
        made = _quantity(found, odds=odds, against=against)
        if made is None:
            return OTHER
        quantities.append(made)
        return MARK

    def anchored(found: re.Match[str]) -> str:
        tops.append(max(_value(number) for number in re.findall(_ANCHOR, found[0])))
        return " "

    text = _ANCHORS.sub(anchored, text)
    text, percents = _IN_PERCENT.subn(" ", text)
    tops += [100.0] * bool(percents)
    text = _FORMS.sub(taken, text)
    text = re.sub(r"\b(?:on|using|with) (?:a |the )?scale(?: of| from)?(?= |$)|\(\s*(?:scale|from)?\s*\)", " ", text)
    return Counted(text, quantities, tops[-1] if tops else None)


def _quantity(found: re.Match[str], *, odds: bool, against: bool) -> Quantity | None:
    """Return what a match could say, or None where it can say nothing of a confidence."""
    if found["range"]:
        return _range(found, odds=odds, against=against)
    if found["fraction"]:
        return _fraction(found)
    if found["time"]:
        share, rest = map(float, found["time"].split(":"))
        return Quantity(share / 100.0, "fraction") if share + rest == 100.0 else None  # 50:50 is no time
    if found["percent"]:
        return Quantity(_value(found["hundredths"]) / 100.0, "percent")
    if found["number"]:
        worded = found["number"].endswith(WORD) and "." not in found["number"]
        return Quantity(_value(found["number"]), "decimal", worded)
    return None


def _range(found: re.Match[str], *, odds: bool, against: bool) -> Quantity | None:
    low, high, unit, join = _value(found["low"]), _value(found["high"]), found["high_unit"] or "", found["join"]
    if odds and not unit and low + high > 0.0 and join in {":", "-", "to"}:
        return Quantity((high if against else low) / (low + high), "fraction")
    if low + high == 100.0 and not unit and join == "-":  # 50-50, 60-40
        return Quantity(low / 100.0, "fraction")
    if found["low_unit"] and not unit and join == "or" and math.isclose(low, 100.0 * high):  # 70% or 0.7
        return Quantity(high, "percent")
    if join == ":" or found["either"] or (join == "and" and not found["between"]):
        return _several(found)
    if not unit and not (0.0 <= low <= 1.0 and high <= 1.0):
        between = 1.0 < low < high <= 100.0 and join != "or"
        return Quantity((low + high) / 200.0, "range", needs_word=True) if between else None
    top = 100.0 if unit == "%" else _value(unit.lstrip("/outf ")) if unit else 1.0
    return _middle(found, *(end / top if top else math.inf for end in (low, high)))


def _middle(found: re.Match[str], low: float, high: float) -> Quantity | None:
    """Return the midpoint of a range; what is not within 0 and 1 is out of range."""
    if found["join"] == "or" and abs(high - low) > _NEAR:
        return _several(found)
    if low > 1.0 >= high and found["join"] == "-":  # an answer and its confidence, 1066 - 95%
        return Quantity(high, "percent")
    inside = min(low, high) >= 0.0 and max(low, high) <= 1.0
    return Quantity((low + high) / 2.0 if inside else math.inf, "range")


def _several(found: re.Match[str]) -> Quantity | None:
    """Return a value that no reading takes, for two numbers that are no range; none where they have no unit."""
    return Quantity(math.nan, "range") if found["high_unit"] or "." in found["low"] else None


def _fraction(found: re.Match[str]) -> Quantity | None:
    part, whole = _value(found["part"]), _value(found["whole"])
    if whole == 0.0:
        return None
    if part + whole == 100.0 and part > 10.0 and whole > 10.0:  # 50/50, 60/40
        return Quantity(part / 100.0, "fraction")
    return Quantity(part / whole, "fraction", needs_word="/" in found[0] and whole not in _WHOLES)


def _is_scale(found: re.Match[str]) -> bool:
    """Tell whether a range is the scale itself: 0 to 1, 1-10, 0% to 100%."""
    low, high = _value(found["low"]), _value(found["high"])
    if found["join"] not in {"-", "to", "and"} or high not in _SCALES or low not in {0.0, 1.0} or low == high:
        return False
    unit = found["high_unit"] or ""
    return not unit or (unit == "%" and low == 0.0 and high == 100.0)


def _last(text: str) -> float:
    return _value(re.findall(_NUM, text)[-1])


def _value(text: str) -> float:
    """Return a number: a comma before three digits divides thousands, unless nothing but 0 stands before it."""
    text = text.rstrip(WORD)
    if re.fullmatch(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", text):
        return float(text.replace(",", ""))
    return float(text.replace(",", ".", 1).replace(",", ""))
