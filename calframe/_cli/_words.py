"""Messages of the functions, in the words of the command line."""

from __future__ import annotations

import re
import shlex

_ARGUMENTS = (
    *("label", "score", "by", "weight", "weight_kind", "positive", "link", "invalid", "time", "time_zone", "every"),
    *("bins", "strategy", "closed", "clip", "floor", "smoother", "posterior", "notion", "method"),
    *("interval", "confidence_level", "tolerance", "alpha", "title"),
)
_ARGUMENT = re.compile(rf"(?<!['\"\w])({'|'.join(_ARGUMENTS)})=(?:'([^']*)'|(\w[\w.+-]*\b))?")


def as_options(text: str) -> str:
    """Write `link='logit'` as `--link logit`, so that a message can be followed as it stands.

    Parameters
    ----------
    text
        A message of the library.

    Returns
    -------
    str
        The same message with keyword arguments written as options; quoted names stay as they are.

    Examples
    --------
    >>> as_options("Logits? Pass link='logit'.")
    'Logits? Pass --link logit.'
    >>> as_options("no column 'label=1' for label=")
    "no column 'label=1' for --label"
    """
    return _ARGUMENT.sub(_as_option, text)


def _as_option(match: re.Match[str]) -> str:
    option = f"--{match[1].replace('_', '-')}"
    value = match[2] if match[2] is not None else match[3]
    return option if value is None else f"{option} {shlex.quote(value)}"
