"""Whether a number speaks of being right or of being wrong, by the words around it."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from calframe._answers._vocabulary import FILLERS, WRONG, words_of

Sense: TypeAlias = Literal["right", "wrong", "unclear"]

_NEAR = 14  # words that are looked at
_THING = "answer|choice|conclusion|estimate|guess|prediction|reasoning|reply|response|result|solution"
_ANSWER = rf"(?:my|our|the|this|that) (?:(?:above|final|first|given|own) )?(?:{_THING})"
_SURELY = (
    "absolutely|actually|all|also|certainly|clearly|completely|definitely|entirely|indeed|in fact|just|now|quite|"
    "really|simply|still|totally|very"
)
_PERHAPS = "a bit|likely|maybe|mostly|partially|partly|perhaps|possibly|probably|slightly|somewhat"
_VERB = (
    "am|are|is|was|were|be|being|(?:has|have) been|(?:will|would) be|(?:got|have|had) (?:it|this|that)|made"
    "|(?P<may>(?:can|could|may|might) be)"
)
_TRUE = r"(?:a |the )?(?:accurate|correct|right(?! now))"
_NOT_RIGHT = rf"(?:{WRONG}|in error|inaccurate|not {_TRUE})"
_NOT_TRUE = r"(?:false|untrue|not true)"
_NAMED = rf"(?: (?:{_THING}|one|option))?"
_OF_SUBJECT = re.compile(
    rf"(?:(?:about|in|of|on|that) )?(?P<subject>i|we|it|this|that|(?P<answer>{_ANSWER})) "
    rf"(?:cannot (?:possibly )?be {_TRUE}|(?:{_VERB}) (?:(?:{_SURELY}|(?P<perhaps>{_PERHAPS})) )*"
    rf"(?:(?:(?:an?|the) )?(?:(?P<untrue>{_NOT_TRUE})|{_NOT_RIGHT}){_NAMED}|an? (?:error|mistake)))\b ?(?P<next>\S*)"
)
_DIRECT = re.compile(rf"(?:(?:of being|to be|being) )?(?:(?P<untrue>{_NOT_TRUE})|{_NOT_RIGHT})\b ?(?P<next>\S*)")
_ENDS = words_of("is : = |")  # between "confidence that it is wrong" and its number
_OPENS = ({""} | FILLERS) - _ENDS - words_of("to that for when if")  # what may follow "it is wrong": not "to lie"
_NOT_SURE_OF = {""} | words_of("about i if it my of that the this whether")
_SAY = "believe|call|claim|claiming|conclude|mean|pretend|said|say|saying|state|suggest|suggesting|think"
_SO_FAR = "a|about|an|anywhere|around|close|completely|even|exactly|fully|near|quite|really|roughly|the|to"
_DENIED = re.compile(
    rf"\b(?:(?:(?:{WRONG}|{_NOT_TRUE}|not {_TRUE}|lying|an? (?:lie|mistake)) (?:to (?:{_SAY})|that|if i said)"
    rf"|(?:cannot|hardly|never|not) (?:{_SAY})|i doubt)(?: (?:it|this|that))?"
    r"(?: (?:i|it|there|this|that) (?:am|is|was))?"
    rf"|\bi doubt)(?: (?:{_SO_FAR}))*$"
)
_WITH = re.compile(rf"\b(?:i|it|this|{_ANSWER}) (?:am|is) {_NOT_RIGHT} with(?: (?:{_SO_FAR}))*$")


def joined(*senses: Sense) -> Sense:
    """Return the sense of one thing said of another: to be unsure of being wrong is unclear.

    Examples
    --------
    >>> joined("right", "wrong"), joined("wrong", "wrong")
    ('wrong', 'unclear')
    """
    if "unclear" in senses or senses.count("wrong") > 1:
        return "unclear"
    return "wrong" if "wrong" in senses else "right"


def sense_of(words: list[str]) -> Sense:
    """Return the sense of what one is sure of, from the words behind sure; of another thing than the answer "right".

    Of "it is false" nobody can tell whether it is the answer or says that the answer is wrong.

    Examples
    --------
    >>> sense_of("that i am wrong".split()), sense_of("it is not paris".split()), sense_of("it is false".split())
    ('wrong', 'right', 'unclear')
    """
    text = " ".join(words[:_NEAR])
    found = _OF_SUBJECT.match(text)
    if found:
        is_own = found["subject"] in {"i", "we"} or found["subject"].startswith(("my ", "our "))
        if not (is_own or found["answer"] or found["next"] in _OPENS | _ENDS):
            return "right"
        return "unclear" if found["may"] or found["perhaps"] or (found["untrue"] and not is_own) else "wrong"
    found = _DIRECT.match(text)
    if found is None or found["next"] not in _OPENS:
        return "right"
    return "unclear" if found["untrue"] else "wrong"


def sense_of_not(words: list[str]) -> Sense:
    """Return the sense of a number before "not sure" from the words behind: clear in "20% not sure that it is".

    Examples
    --------
    >>> sense_of_not([]), sense_of_not(["about", "it"]), sense_of_not(["though"])
    ('wrong', 'wrong', 'unclear')
    """
    return joined("wrong" if [*words, ""][0] in _NOT_SURE_OF else "unclear", sense_of(words))


def sense_before(words: list[str]) -> Sense:
    """Return the sense that the words before a number give it: "wrong to say that I am", "I am wrong with".

    Examples
    --------
    >>> sense_before("it is wrong to say i am".split()), sense_before("i am wrong with".split())
    ('unclear', 'wrong')
    """
    text = " ".join(words[-_NEAR:])
    if _DENIED.search(text):
        return "unclear"
    return "wrong" if _WITH.search(text) else "right"
