"""Statements that decline to say how confident they are."""

from __future__ import annotations

import re

_NOTHING = (
    r"n ?/ ?a|na|none|null|nan|nil|unknown|unclear|undetermined|undefined|no answer|no idea|no clue|no comment|"
    r"not applicable|not available|not specified|not provided|not given|refused?|declined?|skip|pass|tbd|\?+|-+|\.{2,}"
)
_SAY = (
    r"say|tell|determine|provide|give|assign|estimate|answer|assess|quantify|know|express|predict|judge|rate|comment|"
    r"confirm|verify|offer|guess|compute|calculate|state|put|speculate|evaluate|help|assist|form|make"
)
_REFUSAL = re.compile(
    rf"\b(?:cannot|could not|unable to|not able to|not possible to|impossible to|hard to|difficult to|no way to|"
    rf"refuse to|decline to|will not|would not|not going to|rather not|prefer not to|unwilling to)"
    rf"(?: \w+ly)? (?:{_SAY})\b"
    r"|\b(?:impossible|hard|difficult|no way) to be (?:\w+ly )?(?:sure|certain)\b"
    r"|\bcannot be (?:determined|known|answered|estimated|quantified|said|assessed|verified|given)\b"
    r"|\bdo(?:es)? not (?:\w+ )?know\b"
    r"|\b(?:do|does) not (?:\w+ )?have (?!.*\bdoubt)"
    r"|\bas an? (?:ai|(?:large )?language model|artificial|assistant)\b"
    r"|\bi am (?:just |only )?an? (?:ai|language model)\b"
    r"|\b(?:no (?:\w+ ){,3}|not )(?:given|provided|stated|specified|available|applicable)\b"
    r"|\bno (?:idea|clue|opinion)\b|\b(?:not enough|insufficient|lack of) (?:information|data|context|evidence)\b"
    r"|\b(?:rather|prefer) not\b|\bi (?:must |have to )?(?:refuse|decline)\b|\bapologi[sz]e\b|\bi am sorry\b"
)
_EMPTY = re.compile(
    rf"\W*(?:(?:confidence|certainty|probability|likelihood)(?: level| score)?\s*[:=|-]+\s*)?(?:{_NOTHING})\s*[.!]*\s*"
)
_LABELLED = re.compile(
    rf"\b(?:confidence|certainty|probability|likelihood)(?: level| score)?\s*[:=|]+\s*(?:{_NOTHING})(?![\w/])"
)


def refuses(text: str) -> bool:
    """Tell whether a plain text declines to state a confidence.

    Examples
    --------
    >>> refuses("n/a"), refuses("as an ai, i cannot say"), refuses("paris")
    (True, True, False)
    """
    return bool(_EMPTY.fullmatch(text) or _LABELLED.search(text) or _REFUSAL.search(text))
