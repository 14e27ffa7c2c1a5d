"""Messages of the functions, in the words of the command line."""

from __future__ import annotations

import re
import shlex

_ARGUMENTS = (
    *("label", "score", "by", "weight", "weight_kind", "positive", "link", "invalid", "time", "time_zone", "every"),
    *("bins", "strategy", "closed", "clip", "floor", "smoother", "posterior", "notion", "method"),
    *("interval", "confidence_level", "tolerance", "alpha", "title", "metrics", "n_resamples", "rng"),
    *("pooling", "parameters", "interpolation", "epsilon", "target_smoothing", "off_diagonal", "intercept", "name"),
    *("cluster", "statistic", "df", "alternative", "kernel_law", "inequality", "correction", "reference", "window"),
    *("psi_bins", "psi_floor", "batch", "run_length", "depth", "min_rows", "numeric_bins", "max_segments", "max_drift"),
)
_OPTIONS = {"metrics": "metric", "n_resamples": "resamples", "rng": "seed"}  # where they are not called the same
_ROLES = ("label", "score", "by", "weight", "time", "cluster")  # of columns, of which messages speak by these names
_NAMES = "|".join(_ARGUMENTS)
_ARGUMENT = re.compile(rf"(?<!['\"\w])({_NAMES})=(?:'([^']*)'|(\w[\w.+-]*\b)|\[((?:'[^']*'(?:, )?)+)\])?")
_SUBJECT = re.compile(rf"^(?!(?:{'|'.join(_ROLES)}) )({_NAMES})(?= (?:must|is) )")


def as_options(text: str) -> str:
    """Write `link='logit'` as `--link logit`, so that a message can be followed as it stands.

    Parameters
    ----------
    text
        A message of the library.

    Returns
    -------
    str
        The same message with keyword arguments written as options, lists as repeated ones; quoted names stay as they
        are.

    Examples
    --------
    >>> as_options("Logits? Pass link='logit'.")
    'Logits? Pass --link logit.'
    >>> as_options("no column 'label=1' for label=")
    "no column 'label=1' for --label"
    >>> as_options("Did you mean by=['city', 'year']?")
    'Did you mean --by city --by year?'
    >>> as_options("n_resamples must be a whole number.")
    '--resamples must be a whole number.'
    """
    return _ARGUMENT.sub(_as_option, _SUBJECT.sub(_option, text))


def _option(match: re.Match[str]) -> str:
    return f"--{_OPTIONS.get(match[1], match[1].replace('_', '-'))}"


def _as_option(match: re.Match[str]) -> str:
    _, quoted, plain, listed = match.groups()
    values = re.findall(r"'([^']*)'", listed or "") or [text for text in (quoted, plain) if text is not None]
    return " ".join(f"{_option(match)} {shlex.quote(text)}" for text in values) or _option(match)
