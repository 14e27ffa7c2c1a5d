"""Words for a confidence that were misspelt, mostly by one letter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from calframe._answers._vocabulary import words_of

_VOWELS = "aeiouy"
_WORDS = words_of(
    "absolutely almost certain certainly certainty chance completely confidence confident definitely doubtful "
    "extremely fairly highly impossible improbable likelihood likely moderate percent possible possibly pretty "
    "probability probable probably uncertain unlikely"
)
_OFTEN = {"probly": "probably", "prolly": "probably", "definetly": "definitely", "defo": "definitely"}
_OWN = {"petty", "fairy", "curtain"}  # words of their own
_LONG = re.compile(r"\b[a-z]{4,}\b")


def _slips(word: str) -> Iterator[str]:
    """Give a word with a letter left out, doubled or a pair swapped, or with another vowel."""
    for i, letter in enumerate(word):
        start, end = word[:i], word[i + 1 :]
        yield start + end
        yield start + letter + letter + end
        if end:
            yield start + end[0] + letter + end[1:]
        if letter in _VOWELS:
            yield from (start + vowel + end for vowel in _VOWELS)


_RIGHT = (
    _OFTEN
    | {slip: word for word in _WORDS for slip in _slips(word) if slip not in _OWN}
    | {word: word for word in _WORDS}
)


def spelt(text: str) -> str:
    """Return a text in lower case with the words for a confidence spelt right.

    Examples
    --------
    >>> spelt("probaly, i am 85 percnt confidant")
    'probably, i am 85 percent confident'
    """
    return _LONG.sub(lambda found: _RIGHT.get(found[0], found[0]), text)
