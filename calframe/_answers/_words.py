"""Words for a degree of belief, on a scale that the user may replace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from calframe._answers._vocabulary import words_of

WORDS: Mapping[str, float] = {
    # medians of Fagen-Ulmschneider's survey, the phrases that Tian et al., 2023, offer
    "highly likely": 0.9,
    "very good chance": 0.8,
    "we believe": 0.75,
    "probable": 0.7,
    "probably": 0.7,
    "likely": 0.7,
    "better than even": 0.6,
    "about even": 0.5,
    "probably not": 0.25,
    "unlikely": 0.2,
    "little chance": 0.1,
    "chances are slight": 0.1,
    "improbable": 0.1,
    "highly unlikely": 0.05,
    "almost no chance": 0.02,
    "doubt": 0.2,
    "almost certain": 0.95,
    # from Kent, 1964
    "certain": 1.0,
    "certainly": 1.0,
    "impossible": 0.0,
    # after Lichtenstein and Newman, 1967
    "uncertain": 0.4,
    "possible": 0.37,
    # the same in other words
    "highly probable": 0.9,
    "more likely than not": 0.6,
    "even chance": 0.5,
    "even odds": 0.5,
    "doubtful": 0.2,
    "sure": 1.0,
    "positive": 1.0,
    "near certainty": 0.95,
    "virtual certainty": 0.95,
    "full confidence": 1.0,
    "complete confidence": 1.0,
    "complete certainty": 1.0,
    "absolute certainty": 1.0,
    "convinced": 1.0,
    "definitely": 1.0,
    "undoubtedly": 1.0,
    "no doubt": 1.0,
    "without a doubt": 1.0,
    "without doubt": 1.0,
    "without any doubt": 1.0,
    "beyond doubt": 1.0,
    "beyond a doubt": 1.0,
    "beyond any doubt": 1.0,
    "beyond reasonable doubt": 0.95,
    "beyond a reasonable doubt": 0.95,
    "for sure": 1.0,
    "for certain": 1.0,
    "not possible": 0.0,
    "no chance": 0.0,
    "slim chance": 0.1,
    "slight chance": 0.1,
    "small chance": 0.1,
    "remote chance": 0.1,
    "long shot": 0.1,
    "fat chance": 0.02,
    "good chance": 0.7,
    "strong chance": 0.8,
    "slim to none": 0.02,
    "in all likelihood": 0.85,
    "in all probability": 0.85,
    "little doubt": 0.9,
    "no way": 0.0,
    "less likely than not": 0.4,
    "as likely as not": 0.5,
    "coin flip": 0.5,
    "coin toss": 0.5,
    "toss-up": 0.5,
    "toss up": 0.5,
    "unsure": 0.4,
    "possibly": 0.37,
    "maybe": 0.37,
    "perhaps": 0.37,
    # calframe's own: confidence in five steps, "very" and "not" make the outer ones
    "high": 0.8,
    "confident": 0.8,
    "medium": 0.5,
    "moderate": 0.5,
    "average": 0.5,
    "low": 0.2,
    "med": 0.5,
    "very possible": 0.6,
    "highly possible": 0.6,
    "little confidence": 0.2,
    "absolutely not": 0.0,
    "no confidence": 0.0,
}
_STRONG = "very|highly|extremely|really|super|incredibly|exceptionally|strongly|most|overwhelmingly|exceedingly"
_FULL = "absolutely|dead|completely|totally|fully|entirely|wholly|perfectly|utterly"
_WEAK = "fairly|pretty|quite|rather|somewhat|reasonably|moderately|relatively|mostly|slightly|mildly|kind of|sort of"
_ALMOST = "almost|all but|pretty much|nearly|virtually|practically|near|close to"
_WEAKENED = "fairly"
_NOT_AT_ALL, _NOT_VERY = 0.05, 0.2  # of likely and confident
_NOT_SURE = 0.4  # the "uncertain" of the scale
_ALMOST_SURE, _ALMOST_NEVER = 0.95, 0.02
_TO_OTHER = re.compile(r" ?(?:to|or|/) ?(?:very )?(?:high|low|medium|moderate)\b")
_NOUN = "confidence|certainty|probability|likelihood"
_STEP = "high|low|medium|med|moderate|average"
_STATED = "sure|certain|confident|likely|probable|possible|unlikely|uncertain|unsure|doubtful|impossible"
_MODIFIER = f"{_STRONG}|{_FULL}|{_WEAK}|{_ALMOST}"
_LABELLED = re.compile(
    rf"\b(?:{_NOUN})\b(?: (?:level|score|rating|estimate|in [a-z ]{{1,30}}?))? *(?::|=|-|\||is|as|\?)+ *"
    rf"(?=(?:not |{_MODIFIER}| )*(?:{_STEP}|{_STATED})\b)"
)
_STEP_FIRST = re.compile(rf"\b((?:(?:{_STRONG}|{_WEAK}) )?(?:{_STEP})) (?:(?:degree|level) of )?(?:{_NOUN}|chance)\b")
_BE = {"am", "is", "are", "be", "being", "feel", "feeling", "i", "remain", "seems", "seem", "level"}
_SELF = {"am", "feel", "i"}
_STATES = {"sure", "certain", "positive", "confident", "convinced", "possible", "average"}
_OPINIONS = ("sure", "certain", "confident", "convinced", "positive", "confidence")
_EITHER_WAY = {"maybe", "perhaps", "possibly"}
_ONLY_ALONE = _EITHER_WAY | {"no way", "absolutely not"}
_FOLLOWED = words_of("that of about it this in the and or but if on with enough because since") | {""}
_NO_DEGREE = {"how", "as", "less", "more", "equally", "make", "making", "too", "if"}
_CHANCE_IS = re.compile(
    r"\b(?:chances?|odds) (?:is|are|seems?|looks?) "
    r"((?:very |quite |pretty )?(?:good|even|high|low|small|slim|remote|strong))\b"
)
_INTERJECTION = re.compile(r"^\W{,5}(?:sure|certainly|absolutely|definitely|of course)(?: thing)?[,!.:;]\s*(?=\w)")
_QUESTION = re.compile(r"(?:^|(?<=[.!?;\n]))\W{,5}(?:is|are|was|do|does|how|what|which|why|can|will)\b[^.!?;\n]*\?")
_IS_WRONG = re.compile(r" (?:(?:to be|that it is|that i am) )?(?:wrong|incorrect|mistaken)\b")
_WRONG = re.compile(r"\b(?:wrong|incorrect|mistaken|false|error)\b")
_LABEL = "confidence "


@dataclass(frozen=True, slots=True)
class Scale:
    """Phrases with their probabilities, and what finds them.

    Attributes
    ----------
    values : mapping of str to float
        The probability of each phrase, in lower case.
    pattern : re.Pattern
        A phrase with what modifies it.
    """

    values: Mapping[str, float]
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Self:
        """Return the scale of phrases."""
        values = {" ".join(phrase.lower().split()): float(value) for phrase, value in values.items()}
        phrases = "|".join(re.escape(phrase) for phrase in sorted(values, key=len, reverse=True)) or r"(?!)"
        much = r"(?P<much>(?:at all|so|too|that|all that|exactly|particularly|especially|remotely|overly|entirely) )?"
        negated = rf"(?P<not>\b(?:not|cannot be|never|hardly|scarcely|far from|anything but)\b {much})?"
        modified = rf"(?P<modifier>(?:{_MODIFIER}) )?"
        after = r"(?P<after> not\b(?! only)| at all\b)?"
        phrase = rf"(?<![\w@-])(?P<phrase>{phrases})(?:ly|s)?(?![\w-])"
        return cls(values, re.compile(negated + modified + phrase + after))


@lru_cache(maxsize=8)
def scale_of(items: tuple[tuple[str, float], ...]) -> Scale:
    """Return the scale of phrases and their probabilities."""
    return Scale.of(dict(items))


@dataclass(frozen=True, slots=True)
class Said:
    """What the words of a statement say.

    Attributes
    ----------
    value : float or None
        The probability; None where words contradict one another.
    labelled : bool
        Whether it stands where a confidence is asked for, as in "confidence: low".
    """

    value: float | None
    labelled: bool


def said(text: str, scale: Scale) -> Said | None:
    """Return what the words of a plain text say of a confidence; None where they say nothing.

    Examples
    --------
    >>> scale = Scale.of(WORDS)
    >>> said("i am almost certain", scale), said("confidence: low", scale), said("paris", scale)
    (Said(value=0.95, labelled=False), Said(value=0.2, labelled=True), None)
    """
    text = _CHANCE_IS.sub(r"\1 chance", _QUESTION.sub("", _INTERJECTION.sub("", text)))
    text = _STEP_FIRST.sub(rf"{_LABEL}\1", _LABELLED.sub(_LABEL, text))
    ranks: dict[int, set[float | None]] = {}
    for clause in re.split(r"[\n;.!?,()|]", text):
        alone = len(clause) * 2 > len(text)
        for found in scale.pattern.finditer(clause):
            rank = _rank(clause, found, alone=alone)
            if rank:
                ranks.setdefault(rank, set()).add(_of_right(clause, found, scale.values))
    if not ranks:
        return None
    best = max(ranks)
    values = ranks[best]
    return Said(values.pop() if len(values) == 1 else None, best == 3)


def _rank(clause: str, found: re.Match[str], *, alone: bool) -> int:
    """Return how directly a phrase speaks of a confidence: 3 labelled, 2 an opinion, 1 a likelihood, 0 not at all."""
    before, after = clause[: found.start()].split(), _IS_WRONG.sub("", clause[found.end() :]).split()
    last, following = before[-1] if before else "", after[0].strip(":") if after else ""
    phrase = found["phrase"]
    if last == _LABEL.strip():
        return 3
    if last in _NO_DEGREE or (phrase in _STEP.split("|") and (before or after)):
        return 0
    bare = not (before or after) and alone
    if phrase in _ONLY_ALONE:
        return int(bare)
    if phrase in _STATES and not (bare or found["modifier"] or _is_state(phrase, last, following)):
        return 0
    return 2 if phrase.startswith(_OPINIONS) else 1


def _is_state(phrase: str, last: str, following: str) -> bool:
    """Tell whether a word such as sure says what somebody is: "I am sure that", but not "a sure sign"."""
    return last in (_SELF if phrase == "positive" else _BE) and following in _FOLLOWED


def _of_right(clause: str, found: re.Match[str], values: Mapping[str, float]) -> float | None:
    """Return the probability of being right: "probably wrong" is turned around."""
    value = _degree(found, values)
    if value is not None and _IS_WRONG.match(clause, found.end()):
        return 1.0 - value
    other = _WRONG.search(clause, found.end()) or _TO_OTHER.match(clause, found.end())
    return None if other else value


def _degree(found: re.Match[str], values: Mapping[str, float]) -> float | None:
    """Return the probability of a phrase with what modifies it."""
    phrase, modifier = found["phrase"], (found["modifier"] or "").strip()
    value = values.get(f"{modifier} {phrase}".strip())
    if value is None:
        value = _modified(values[phrase], modifier)
    after = (found["after"] or "").strip()
    if found["not"]:
        stated = values.get(f"not {phrase}")
        return stated if stated is not None else _negated(values[phrase], modifier, found["much"] or after)
    return 1.0 - value if after == "not" and phrase not in _EITHER_WAY else value


def _modified(value: float, modifier: str) -> float:
    """Return a probability moved by a word: "very" halves the distance to its end, "fairly" that to 0.5."""
    if modifier in _ALMOST.split("|"):
        return {1.0: _ALMOST_SURE, 0.0: _ALMOST_NEVER}.get(value, value)
    if modifier in _WEAK.split("|"):
        return (value + 0.5) / 2.0
    end = float(value > 0.5)
    if modifier in _FULL.split("|"):
        return 1.0 if end else value / 2.0
    return (value + end) / 2.0 if modifier and value != 0.5 else value


def _negated(value: float, modifier: str, much: str) -> float | None:
    """Return the probability of what is said not to hold: "not unlikely" is less than likely."""
    if value <= 0.5:  # of "not impossible" and "not average" nobody can tell
        return _modified(1.0 - value, _WEAKENED) if 0.0 < value < 0.5 else None
    at_all = much.strip() == "at all"
    if value == 1.0:
        return _NOT_SURE / 2.0 if at_all else _NOT_SURE
    if at_all:
        return _NOT_AT_ALL
    return _NOT_VERY if modifier or much else 1.0 - value


def faults(words: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the entries of a scale that are no phrase with a probability."""
    return [
        (phrase, value)
        for phrase, value in words.items()
        if not (isinstance(phrase, str) and phrase.strip() and isinstance(value, int | float) and 0.0 <= value <= 1.0)
    ]
