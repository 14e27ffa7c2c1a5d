"""One statement of confidence in words or numbers, read as a probability."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from calframe._answers._plain import plain
from calframe._answers._quantities import MARK, Quantity, counted
from calframe._answers._refusals import refuses
from calframe._answers._senses import Sense, joined, sense_before, sense_of, sense_of_not
from calframe._answers._vocabulary import (
    CHANCES,
    COMPARED,
    CUES,
    DOUBT_NOUNS,
    DOUBTS,
    EVENTS,
    FILLERS,
    LABELS,
    LIKELY,
    LINKS,
    NEGATIONS,
    NO_DOUBT,
    OPINION_NOUNS,
    OPINION_STATES,
    SOFT,
    UNRELATED,
    VAGUE,
    WRONG,
)
from calframe._answers._words import Scale, said

Reading: TypeAlias = Literal[
    "percent", "decimal", "fraction", "range", "words", "missing", "refusal", "none", "out of range", "ambiguous"
]
UNREAD: tuple[Reading, ...] = ("missing", "refusal", "none", "out of range", "ambiguous")


class Read(NamedTuple):
    """A statement read: its probability, None where it has none, and how it was read or why not."""

    value: float | None
    how: Reading


_WRONG = re.compile(
    r"\b(?:(?:i am|i might be|i could be|it is|this is|that is|answer is|of being|being|be) "
    rf"(?:{WRONG}|false|not (?:right|correct|true))|of error|error)\b"
)
_SENTENCE = re.compile(r"[\n;!?]+|\.(?=\s|$)|\.{2,}")
_CLAUSE = re.compile(r"[,()]|\b(?:but|because|since)\b|(?<=[@¤]):(?=\s)|\s-{1,2}\s|:(?=\s*i\s)")
_WORD = re.compile(r"[a-z][a-z']*|[¤@:=|]")
_TIGHT = FILLERS - {"that", "it"}  # what may stand between a label and its number
LONGEST = 4_000  # letters of a statement that are read, the last ones: what is longer ends with the confidence
_REACH = 50  # words around a number that are looked at
_CLOSE = 6  # words before a number that a negation of it is looked for in: "cannot be said with 100%"
_TOP_SHARE = 10.0  # a labelled number above it and up to 100, "confidence: 85", is a percentage


def read(text: str, scale: Scale, top: float) -> Read:
    """Return the probability that a statement says, and how it was read.

    Parameters
    ----------
    text : str
        The statement.
    scale : Scale
        What words mean.
    top : float
        What full confidence is in numbers without a unit.

    Examples
    --------
    >>> from calframe._answers._words import WORDS
    >>> read("Answer: 42. Confidence: 85%", Scale.of(WORDS), 1.0)
    Read(value=0.85, how='percent')
    """
    text = plain(_end_of(text))
    found = counted(text)
    number, level = _of_numbers(found.text, found.quantities, found.top, top)
    if number.value is not None or (level > 0 and number.how == "ambiguous"):
        return number
    words = said(found.text, scale)
    if words is not None and words.labelled:
        return _of_words(words.value)
    if level > 1:
        return number
    if refuses(text):
        return Read(None, "refusal")
    return number if words is None else _of_words(words.value)


def _end_of(text: str) -> str:
    """Return the end of a text that is too long, from where no number or word is cut."""
    if len(text) <= LONGEST:
        return text
    end = text[-LONGEST:]
    return re.sub(r"^[\w.,%-]*", "", end)


def faults(words: Mapping[str, float]) -> dict[str, float]:
    """Return the entries of a scale that are no phrase with a probability, or a phrase that would never be read."""
    return {phrase: value for phrase, value in words.items() if not _is_entry(phrase, value)}


def _is_entry(phrase: Any, value: Any) -> bool:
    is_share = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0
    return is_share and isinstance(phrase, str) and read(phrase, Scale.of({phrase: 1.0}), 1.0) == Read(1.0, "words")


def _of_words(value: float | None) -> Read:
    return Read(value, "ambiguous" if value is None else "words")


def _of_numbers(text: str, quantities: list[Quantity], named_top: float | None, top: float) -> tuple[Read, int]:
    """Return what the numbers of a text say, those that are said to be a confidence before others, and their level."""
    levels: dict[int, list[Read]] = {}
    unit = named_top or (top if top != 1.0 else None)
    places = list(_places(text, iter(quantities)))
    for i, (quantity, place) in enumerate(zip(quantities, places, strict=True)):
        if (
            place.level
            and place.sense != "unclear"
            and not (quantity.needs_word and place.level == 1 and named_top is None)
        ):
            found = _probability(quantity, place.level, unit)
            value = 1.0 - found.value if place.sense == "wrong" and found.value is not None else found.value
            if not (i == 0 and quantity.form == "decimal" and found.how == "out of range" and _is_answer(places)):
                levels.setdefault(place.level, []).append(Read(value, found.how))
    if not levels:
        unclear = any(place.level and place.sense == "unclear" for place in places)
        return (Read(None, "ambiguous"), 1) if unclear else (Read(None, "none"), 0)
    level = max(levels)
    return _agreed(levels[level], strict=level == 1), level


def _is_answer(places: list[_Place]) -> bool:
    """Tell whether the first of two numbers that stand alone may be the answer, as in "1987 (70%)"."""
    return len(places) == 2 and places[0].level == places[1].level == 1 and places[0].clause != places[1].clause


def _agreed(reads: list[Read], *, strict: bool) -> Read:
    """Return the one value of several readings; numbers that are no probability count only where nothing is stated."""
    good = [one for one in reads if one.value is not None]
    if not good:
        return Read(None, reads[0].how)
    if len({round(one.value, 9) for one in good if one.value is not None}) > 1 or (strict and len(good) < len(reads)):
        return Read(None, "ambiguous")
    return good[0]


def _probability(quantity: Quantity, level: int, top: float | None) -> Read:
    value, form = quantity.value, quantity.form
    if math.isnan(value):
        return Read(None, "ambiguous")
    if form == "decimal" and top is not None:
        value, form = value / top, "decimal" if top == 1.0 else "fraction" if top != 100.0 else "percent"
    elif form == "decimal" and level > 1 and 1.0 < value <= 100.0:
        if value <= _TOP_SHARE:
            return Read(None, "ambiguous")
        value, form = value / 100.0, "percent"
    if not 0.0 <= value <= 1.0:
        return Read(None, "out of range")
    return Read(value, form)  # type: ignore[arg-type]


class _Place(NamedTuple):
    """Where a number stands.

    Attributes
    ----------
    level : int
        How directly it is said to be a confidence: 3 is bound to a word such as sure or confidence, 2 to one such as
        chance, 1 alone in its clause, 0 none.
    sense : {"right", "wrong", "unclear"}
        Whether it speaks of being right or wrong.
    clause : int
        The number of its clause.
    """

    level: int
    sense: Sense
    clause: int


def _places(text: str, quantities: Iterator[Quantity]) -> Iterator[_Place]:
    """Give for each number where it stands."""
    parts = [part for sentence in _SENTENCE.split(text) for part in _CLAUSE.split(sentence)]
    for number, part in enumerate(parts):
        words = _WORD.findall(part)
        is_bare = all(word in FILLERS or word in CUES or word == MARK for word in words)
        clause = _Clause(words, frozenset(words), is_bare, _WRONG.search(part) is not None, set())
        for here, word in enumerate(words):
            if word == MARK:
                yield _Place(*clause.level(next(quantities), here), number)


@dataclass(frozen=True, slots=True)
class _Clause:
    """A part of a sentence: its words, whether numbers stand alone in it or are of being wrong, and the words used."""

    words: list[str]
    held: frozenset[str]
    is_bare: bool
    is_opposite: bool
    used: set[int]

    def level(self, quantity: Quantity, here: int) -> tuple[int, Sense]:
        """Return the level of the number at a place, and whether it speaks of being right or wrong."""
        before = _since_mark(self.words[max(here - _REACH, 0) : here])
        after = self.words[here + 1 : here + _REACH]
        if _is_negated(quantity, before) or UNRELATED & {*before[-4:], *after[:3]}:
            return 0, "right"
        level, sense = self._level_around(quantity, here, after)
        told = sense_before(before)
        return level, told if sense == "right" or told == "unclear" else sense

    def _level_around(self, quantity: Quantity, here: int, after: list[str]) -> tuple[int, Sense]:
        """Return the level of a number by the word next to it, and else by what stands before it."""
        place = next((here + 1 + i for i, word in enumerate(after[:5]) if word not in LINKS), len(self.words))
        nearest, following = [*self.words[place : place + 2], "", ""][:2]
        if nearest in CUES and following not in LABELS:
            self.used.add(place)
            level, sense = self._bound(nearest, self.words[place + 1 : place + _REACH], is_after=True)
            is_denied = self.words[max(here - 1, 0) : here] == ["no"] and nearest in OPINION_NOUNS | CHANCES
            return level, "unclear" if is_denied else sense  # "no 90% chance"
        if nearest == "not" and following in OPINION_STATES | LIKELY - CHANCES:
            self.used.add(place + 1)
            return 3 if following in OPINION_STATES else 2, sense_of_not(self.words[place + 2 : place + _REACH])
        if _is_amount(quantity, after) and not self._is_labelled(here):
            return 0, "right"
        return self._level_before(quantity, here)

    def _is_labelled(self, here: int) -> bool:
        """Tell whether a word such as confidence stands right before a number."""
        last = next((word for word in self.words[max(here - 6, 0) : here][::-1] if word not in _TIGHT), "")
        return last in OPINION_NOUNS

    def _is_cue(self, place: int) -> bool:
        """Tell whether a word speaks of a confidence; the doubt of "no doubt" and "without a doubt" does not."""
        is_no_doubt = self.words[place] in DOUBT_NOUNS and NO_DOUBT & {*self.words[max(place - 2, 0) : place]}
        return self.words[place] in CUES and not is_no_doubt

    def _level_before(self, quantity: Quantity, here: int) -> tuple[int, Sense]:
        """Return the level of a number by what stands before it: the last word for a confidence without a number."""
        places = [i for i in range(max(here - _REACH, 0), here) if self._is_cue(i) and i not in self.used]
        place = places[-1] if places else -1
        cue, between = (self.words[place], set(self.words[place + 1 : here])) if places else ("", set())
        is_tight = between <= _TIGHT
        if cue in OPINION_NOUNS | CHANCES | DOUBT_NOUNS or (cue in OPINION_STATES and is_tight):
            if is_tight or quantity.form != "decimal" or 0.0 <= quantity.value <= 1.0:
                self.used.add(place)
                return self._bound(
                    cue, self.words[place + 1 : here], self.words[here + 1 : here + _REACH], is_after=False
                )
            return 0, "right"
        if not self.is_bare or (quantity.form == "decimal" and VAGUE & self.held):
            return 0, "right"
        return 1, "wrong" if self.is_opposite and EVENTS & self.held else sense_of(self.words[here + 1 : here + _REACH])

    def _bound(self, cue: str, *behind: list[str], is_after: bool) -> tuple[int, Sense]:
        """Return the level of a number bound to a word, and its sense by that word and by those behind it."""
        sense = joined(*map(sense_of, behind))
        if cue in OPINION_NOUNS | OPINION_STATES:
            return 3, sense
        is_doubt = cue in (DOUBTS if is_after else DOUBT_NOUNS)
        return 2, joined("wrong" if is_doubt else "right", "wrong" if self.is_opposite else sense)


def _since_mark(words: list[str]) -> list[str]:
    """Return the words after the last number."""
    return words[len(words) - words[::-1].index(MARK) :] if MARK in words else words


def _is_negated(quantity: Quantity, before: list[str]) -> bool:
    """Tell whether it is said that the number is not the confidence: "not 100%", "less than 100%"."""
    last = [word for word in before[-_CLOSE:] if word not in SOFT][-2:]
    if last and (last[-1] in NEGATIONS or (last[-1] == "with" and NEGATIONS & {*before[-_CLOSE:]})):
        return True
    return quantity.value == 1.0 and last in (["less", "than"], ["under"], ["short", "of"], ["far", "from"])


def _is_amount(quantity: Quantity, after: list[str]) -> bool:
    """Tell whether what follows a number is what it counts: "3 apples", "20% of voters"."""
    if not after or after[0] == MARK:
        return False
    if after[0] in COMPARED:
        return after[1:2] != ["or"]
    if after[0] == "of":
        return not EVENTS & set(after[:4])
    return quantity.form in {"decimal", "fraction"} and after[0] not in FILLERS | CUES
