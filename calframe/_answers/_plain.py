"""Text as the rules read it: lower case, plain characters, no markup, numbers in digits."""

from __future__ import annotations

import re
import unicodedata

from calframe._answers._spelling import spelt

WORD = "w"  # stands after a number that was written in words
_CONFUSED = str.maketrans(
    {"٪": "%", "٫": ".", "—": ";", "⁄": "/", "→": ":", "⇒": ":", "@": " ", "¤": " ", "_": " "}
    | dict.fromkeys("−–‒‐‑", "-")
    | dict.fromkeys("’‘", "'")
    | dict.fromkeys("≈∼≃", "~")
)
_SPOKEN: tuple[tuple[str, str], ...] = (  # said or typed in passing
    (r"\bper-cent", "percent"),
    (r"(?<=[\d%]) up to\b", " to"),
    (r"\bup to\b", "at most"),
    (r"(?<=\d)\.(?= ?%)", ""),
    (r"\banything but\b", "hardly"),
    (r"(?<=[\d%])[ -]?ish\b|(?<=percent)[ -]?ish\b", ""),
    (r"(?<=\d%)(?=[a-z]{2})", " "),  # 85%sure
    (r"(?<=\d)\+(?= ?(?:%|per ?cent))", ""),
    (r"(?<=\d)(?=(?:per ?cents?|pct)\b)", " "),
    (r"\b(?:tbh|imh?o|lol|lmao|ngl|fwiw|afaik|iirc|btw|(?:ha){2,}|tho|honestly|i mean|to be (?:fair|honest))\b", ""),
    (r"^\s*%\s*(\d[\d.,]*)\s*$", r"\1%"),
    (r"\boutta\b", "out of"),
    (r"(?<=\d) ?\((confidence|certainty|probability|likelihood|confident|certain|sure)\)", r" \1"),
    (r"\b(confidence|certainty|probability|likelihood) ?\((that|of being) ([^()\n]{,60})\)", r"\1 \2 \3"),
    (r"\b(high|low|medium|moderate)-(?=(?:confidence|certainty|probability|likelihood)\b)", r"\1 "),
    (r"\b(kind|sort)a\b", r"\1 of"),
    (r"\bput (?=[\d.]+ ?% on\b)", "put a chance of "),
    (r"^\W*(?:\+ ?/ ?-|±) ?(?=[5-9]\d|100)", ""),  # less is a margin of error
    (r"(?m)^q\d{1,3}[.:)] *", ""),
    (r"\brisk (?=of (?:error|being wrong|a mistake)\b)", "chance "),
    (r"\bhalf a (?=per ?cent)", "0.5 "),
    (r"\bhalf and half\b", "50/50"),
)
_MARKUP: tuple[tuple[str, str], ...] = (
    (r"https?://\S+|(?<![\w-])[\w-]+\.(?:com|org|net|edu|gov|io)\b\S*", "link"),
    (r"</?(?:b|i|u|p|br|em|strong|span|div|code|li)\b[^<>]*>", " "),
    (r"\[[\s\d.,%+-]{,99},\s[\s\d.,%+-]{,99}\]", " ¤ "),  # a list of numbers is not one
    (r"\\(?:approx|sim)\b", "~"),
    (r"\bp ?[<>]", "p value"),
    # a cell behind others, Paris|0.9
    (r"(?m)^(?!.*(?:confidence|certainty|probability|likelihood))([^|\t\n]+)[|\t][ \t]*(?=[\d.]+ ?%?$)", r"\1, "),
    (r'(?<!top )\bp(?:\d| (?:true|correct|right|yes))?"? ?[:=~]', "probability: "),  # also P1, P2 beside guesses G1, G2
    (r"\b(confidence|certainty|probability|likelihood)(?=(?:score|level|value|percent|rating)\b)", r"\1 "),
    (r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2"),
    (r"\\(?=[%$])", ""),
    (r"\\[a-z]+|\\.", " "),
    (r"\$([^$\n]*)\$(?!\d)", r" \1 "),
    (r"</[^<>]*>", "\n"),
    (r"<([a-z][a-z _-]*)>", r"\1: "),
    (r"[=-]>", ": "),
    (r"(?<![a-z])'|'(?![a-z])", " "),
    (r'[*`"{}\[\]“”«»]|#+(?= )', " "),
    (r"\bp\((?:wrong|incorrect|mistaken|error|mistake)\)", "probability of error"),
    (r"\bp\((?:true|correct|yes|right|i know|answer)\)", "probability"),
    (r"\(\s*\)", " "),
    (r"(?m)^[ \t>+-]*\(?\d{1,2}[.)][ \t]+(?=[^\d\s%])", ""),  # the number of a list
    (r"(?m)^[ \t]*[-+>][ \t]+", ""),
)
_CONTRACTED: tuple[tuple[str, str], ...] = (
    (r"\bcan'?t\b|\bcan not\b", "cannot"),
    (r"\bwon'?t\b", "will not"),
    (r"\b(do|does|did|is|are|was|could|would|should|have|has)n'?t\b", r"\1 not"),
    (r"\bi'?m\b", "i am"),
    (r"\b(i|we|you|they)'d\b", r"\1 would"),
    (r"\b(i|we|you|they)'ve\b", r"\1 have"),
    (r"\b(we|you|they)'re\b", r"\1 are"),
    (r"\b(it|that|there|he|she|what)'s\b", r"\1 is"),
    (r"'ll\b", " will"),
    (r"\blet's\b", "let us"),
    (r"\bdo not (?:think|believe) (?:that )?((?:it|this|that|he|she|they) (?:is|are))\b", r"think \1 not"),
)
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10}
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_UNITS = [*_SMALL.split(), "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_TIMES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_VALUES = {word: value for value, word in enumerate(_UNITS)} | {word: 10 * i for i, word in enumerate(_TENS, 2)}
_UNIT, _TEN, _MANY = ("|".join(words) for words in (_UNITS, _TENS, _TIMES))
_DIGIT = "|".join(_UNITS[:10])
_NUMBER = re.compile(
    rf"\b(?:(?P<tens>{_TEN})(?:[ -](?P<ones>{_DIGIT}))?|(?P<unit>{_UNIT})|an?(?= (?:{_MANY})\b)"
    rf"|(?=point (?:{_DIGIT})\b)|(?=hundred (?:per ?cent|pct|%)))(?:-?ish\b)?"
    rf"(?: ?(?P<times>{_MANY}))?(?: ?point(?P<point>(?:[ -](?:{_DIGIT}))+))?\b"
)
_LARGE = re.compile(rf"(?<![\w.,])(\d+(?:\.\d+)?) ({_MANY})\b")
_PART = re.compile(rf"\b(?:(one|two|three|four|five|six|seven|eight|nine|an?)[ -]({'|'.join(_PARTS)})s?|half)\b")
_PARTS_RANGE = re.compile(r"\b([1-9])/([1-9])( and | to )([1-9])/([1-9])\b")
_SPACES, _RUN = re.compile(r"[^\S\n]+"), re.compile(r"([^\w\s])\1{3,}")
_CELLS = r"[^|\n]*\|[^\n]*"
_TABLE = re.compile(rf"(?m)^({_CELLS})\n[ \t|:]*-[-:| \t]*$((?:\n{_CELLS})+)")
_RULES = [(re.compile(pattern), new) for rules in (_SPOKEN, _MARKUP, _CONTRACTED) for pattern, new in rules]


def plain(text: str) -> str:
    r"""Return a text without markup, in lower case, with its numbers in digits.

    Examples
    --------
    >>> plain("**Confidence:** I'm ninety-five per cent sure"), plain("８５\\%")
    ('confidence: i am 95w% sure', '85%')
    """
    text = spelt(unicodedata.normalize("NFKC", text).lower().translate(_CONFUSED))
    if not text.isascii():
        text = "".join(char if char.isascii() else _ascii(char) for char in text)
    text = _TABLE.sub(_rows, _RUN.sub(r"\1\1\1", text))
    for pattern, new in _RULES:
        text = pattern.sub(new, text)
    text = re.sub(r"\bfifty[ -]fifty\b", "50/50", _SPACES.sub(" ", text))
    text = _PART.sub(lambda found: f"{_VALUES.get(found[1], 1)}/{_PARTS.get(found[2], 2)}", text)
    text = _PARTS_RANGE.sub(
        lambda found: f"{int(found[1]) / int(found[2])}{found[3]}{int(found[4]) / int(found[5])}", text
    )
    text = _LARGE.sub(_multiplied, _NUMBER.sub(_digits, text))
    text = re.sub(rf"\b(\d+){WORD}? and 1/2\b", r"\1.5", text)
    text = re.sub(r"(?<=[\dw])-(in|to|out[- ]of)-(?=\d)", lambda found: f" {found[1].replace('-', ' ')} ", text)
    return re.sub(r"[ -]{0,3}\bper ?cent(?:age)?s?\b|[ ]?\bpct\b\.?", "%", text).strip()


def _rows(found: re.Match[str]) -> str:
    """Return a table as lines, each a value behind the head of its column."""
    head, *rows = (line.strip().strip("|").split("|") for line in [found[1], *found[2].strip().splitlines()])
    return "\n".join(f"{name.strip()}: {cell.strip()}" for row in rows for name, cell in zip(head, row, strict=False))


def _ascii(char: str) -> str:
    """Return the digit that a character of another script stands for, or the character."""
    digit = unicodedata.decimal(char, None)
    return char if digit is None else str(digit)


def _multiplied(found: re.Match[str]) -> str:
    """Return a number as 3.2 million in digits."""
    return f"{float(found[1]) * _TIMES[found[2]]:.0f}"


def _digits(found: re.Match[str]) -> str:
    """Return a number in words as digits."""
    words = [word for word in (found["tens"], found["ones"], found["unit"]) if word]
    whole = sum(_VALUES[word] for word in words) if words else int(found["point"] is None)
    whole *= _TIMES.get(found["times"] or "", 1)
    after = "".join(str(_VALUES[word]) for word in re.split("[ -]", found["point"] or "") if word)
    return f"{whole}.{after}{WORD}" if after else f"{whole}{WORD}"
