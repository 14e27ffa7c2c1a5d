"""Words for a degree of belief, on a scale that the user may replace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

from calframe._answers._vocabulary import WRONG, words_of

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
    "much confidence": 0.8,
    "lot of confidence": 0.8,
    "strong confidence": 0.8,
    "neither likely nor unlikely": 0.5,
}
_STRONG = "very|highly|extremely|really|super|incredibly|exceptionally|strongly|most|overwhelmingly|exceedingly"
_FULL = "absolutely|dead|completely|totally|fully|entirely|wholly|perfectly|utterly"
_WEAK = "fairly|pretty|quite|rather|somewhat|reasonably|moderately|relatively|mostly|slightly|mildly|kind of|sort of"
_ALMOST = "almost|all but|pretty much|nearly|virtually|practically|near|close to"
_WEAKENED = "fairly"
_NOT_AT_ALL, _NOT_VERY = 0.05, 0.2  # of likely and confident
_NOT_SURE = 0.4  # the "uncertain" of the scale
_AT_ALL = ("at all", "whatsoever", "in the slightest", "in the least", "remotely")
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
_DEGREE = rf"(?:(?:{_STRONG}|{_WEAK}) )?(?:{_STEP})"
_STEP_FIRST = re.compile(rf"\b({_DEGREE}(?: to {_DEGREE})?) (?:(?:degree|level) of )?(?:{_NOUN}|chance)\b")
_STEPS_JOINED = re.compile(rf"\b({_STEP})(?:-| ?/ ?| ?- ?to ?- ?)({_STEP})\b")
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
_IS_WRONG = re.compile(rf" (?:(?:to be|that it is|that i am) )?(?:{WRONG})\b")
_WRONG = re.compile(rf"\b(?:{WRONG}|false|untrue|error|not (?:the )?(?:right|correct|true))\b(?!-)")
_LABEL = "confidence "
_SIGHT = 100  # letters on either side of a phrase that have a say in what it means
_NEGATOR = r"not|cannot be|never|hardly|scarcely|barely|nowhere near|nowhere close to|far from|by no means"
_MUCH = "at all|so|too|that|all that|exactly|particularly|especially|remotely|overly|entirely|even"
_LINKING = (  # what may stand between a negation and its word
    r"feel|feeling|felt|seem|seems|appear|appears|sound|sounds|look|looks|looking|call|calling|consider|find|say|be|"
    r"is|being|to|it|this|that|them|as|me|i|am"
)
_OPEN_NEGATION = re.compile(  # one whose reach is not clear
    r"\b(?:not(?! (?:only|just|to mention)\b)|never|cannot|nobody|no one|nothing|none|nowhere|neither|hardly|"
    r"scarcely)\b(?!.*\b(?:but|and|because|since|although|though|however|yet|so|or|instead|rather)\b)"
)


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
        much = rf"(?P<much>(?:(?:{_MUCH}) )*)"
        negated = rf"(?P<not>\b(?:{_NEGATOR})\b (?P<linked>(?:(?:{_LINKING}) ){{,4}}){much})?"
        modified = rf"(?P<modifier>(?:{_MODIFIER}) )?"
        after = r"(?P<after> not\b(?! only)| at all\b| whatsoever\b| in the (?:slightest|least)\b)?"
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


class _Phrase(NamedTuple):
    """A phrase in a clause, or a range of two.

    Attributes
    ----------
    start, end : int
        Where it stands.
    phrase : str
        The entry of the scale, the first one of a range.
    is_degree : bool
        Whether words around it make it a degree of belief, whatever it is by itself.
    degree : float or None
        What it says.
    value : float or None
        What it says of being right; None where that is not clear.
    """

    start: int
    end: int
    phrase: str
    is_degree: bool
    degree: float | None
    value: float | None


def said(text: str, scale: Scale) -> Said | None:
    """Return what the words of a plain text say of a confidence; None where they say nothing.

    Examples
    --------
    >>> scale = Scale.of(WORDS)
    >>> said("i am almost certain", scale), said("confidence: low", scale), said("paris", scale)
    (Said(value=0.95, labelled=False), Said(value=0.2, labelled=True), None)
    >>> said("confidence: medium to high", scale), said("nobody here is sure", scale)
    (Said(value=0.65, labelled=True), Said(value=None, labelled=False))
    """
    text = _CHANCE_IS.sub(r"\1 chance", _QUESTION.sub("", _INTERJECTION.sub("", text)))
    text = _LABELLED.sub(_LABEL, _STEPS_JOINED.sub(r"\1 to \2", text))
    text = _STEP_FIRST.sub(rf"{_LABEL}\1", text)
    ranks: dict[int, set[float | None]] = {}
    for clause in re.split(r"[\n;.!?,()|]", text):
        alone, sure = len(clause) * 2 > len(text), False
        for found in _phrases(clause, scale):
            rank = _rank(clause, found, alone=alone)
            if rank:  # "I am sure it is unlikely" speaks of two things
                ranks.setdefault(2 if sure and rank == 1 else rank, set()).add(found.value)
                sure = sure or (rank == 2 and found.value == 1.0)
    if not ranks:
        return None
    best = max(ranks)
    values = ranks[best]
    return Said(values.pop() if len(values) == 1 else None, best == 3)


def _phrases(clause: str, scale: Scale) -> list[_Phrase]:
    """Return the phrases of a clause, those of a range as one; of what a negation may reach no value is known."""
    found: list[_Phrase] = []
    for match in scale.pattern.finditer(clause):
        last = found[-1] if found else None
        degree = _degree(match, scale.values)
        if last is not None and _is_range(clause, last, match):
            middle = None if last.degree is None or degree is None else (last.degree + degree) / 2.0
            found[-1] = last._replace(end=match.end(), is_degree=True, value=middle)
            continue
        value = _of_right(clause, match, degree)
        before = clause[max(match.start() - _SIGHT, last.end if last else 0) : match.start()]
        if not match["not"] and _OPEN_NEGATION.search(before):
            value = None
        is_degree = bool(match["modifier"] or match["linked"])
        found.append(_Phrase(match.start(), match.end(), match["phrase"], is_degree, degree, value))
    return found


def _is_range(clause: str, first: _Phrase, second: re.Match[str]) -> bool:
    """Tell whether two phrases are the ends of a range: "medium to high", "between possible and probable"."""
    between = clause[first.end : second.start()]
    if between == " and ":
        return clause[max(first.start - _SIGHT, 0) : first.start].endswith("between ")
    return between == " to " and second["not"] is None


def _rank(clause: str, found: _Phrase, *, alone: bool) -> int:
    """Return how directly a phrase speaks of a confidence: 3 labelled, 2 an opinion, 1 a likelihood, 0 not at all."""
    before = clause[max(found.start - _SIGHT, 0) : found.start].split()
    after = _IS_WRONG.sub("", clause[found.end : found.end + _SIGHT]).split()
    last, following = before[-1] if before else "", after[0].strip(":") if after else ""
    phrase = found.phrase
    if last == _LABEL.strip():
        return 3
    if last in _NO_DEGREE or (phrase in _STEP.split("|") and (before or after)):
        return 0
    bare = not (before or after) and alone
    if phrase in _ONLY_ALONE:
        return int(bare)
    if phrase in _STATES and not (bare or found.is_degree or _is_state(phrase, last, following)):
        return 0
    return 2 if phrase.startswith(_OPINIONS) else 1


def _is_state(phrase: str, last: str, following: str) -> bool:
    """Tell whether a word such as sure says what somebody is: "I am sure that", but not "a sure sign"."""
    return last in (_SELF if phrase == "positive" else _BE) and following in _FOLLOWED


def _of_right(clause: str, found: re.Match[str], degree: float | None) -> float | None:
    """Return the probability of being right: "probably wrong" is turned around."""
    if degree is not None and _IS_WRONG.match(clause, found.end()):
        return 1.0 - degree
    end = found.end()
    other = _WRONG.search(clause, end, end + _SIGHT) or _TO_OTHER.match(clause, end)
    return None if other else degree


def _degree(found: re.Match[str], values: Mapping[str, float]) -> float | None:
    """Return the probability of a phrase with what modifies it."""
    phrase, modifier = found["phrase"], (found["modifier"] or "").strip()
    value = values.get(f"{modifier} {phrase}".strip())
    if value is None:
        value = _modified(values[phrase], modifier)
    after = (found["after"] or "").strip()
    if found["not"]:
        stated = values.get(f"not {phrase}")
        return stated if stated is not None else _negated(values[phrase], modifier, f"{found['much'] or ''}{after}")
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
    if value == 0.0:  # of "not impossible" nobody can tell
        return None
    if value <= 0.5:
        return _modified(1.0 - value, _WEAKENED)
    if any(word in much for word in _AT_ALL) or ("even" in much and modifier in _WEAK.split("|")):
        return _NOT_AT_ALL
    if value == 1.0:
        return _NOT_SURE
    return _NOT_VERY if modifier or much else 1.0 - value
