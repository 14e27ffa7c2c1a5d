"""Text that is safe where it stands: JSON inside a script element, a table inside a link."""

from __future__ import annotations

import json
import math
from urllib.parse import quote

from markupsafe import Markup

_IN_SCRIPT = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_PLAIN_IN_LINK = "/,:;()=+-._~!*$@"  # legal in a URI as they are; quoting them would only make the page larger


def finite(value: object) -> object:
    """Return the same nest of dicts and lists with null where a number is not finite.

    JSON has no NaN and no Infinity, yet charts made from polars frames and open scale domains hold them.

    Parameters
    ----------
    value
        Anything ``json.dumps`` takes.

    Returns
    -------
    object
        A copy that ``json.dumps(allow_nan=False)`` takes as well.

    Examples
    --------
    >>> finite({"gap": float("nan"), "bins": (0.5, float("inf"))})
    {'gap': None, 'bins': [0.5, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def strict_json(value: object) -> str:
    """Write compact JSON that every parser reads: no NaN, no Infinity.

    Parameters
    ----------
    value
        Dicts, lists, text, numbers, None; not-finite numbers become null.

    Returns
    -------
    str
        The JSON text.

    Examples
    --------
    >>> strict_json({"ece": 0.5, "slope": float("nan")})
    '{"ece":0.5,"slope":null}'
    """
    return json.dumps(finite(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def script_json(value: object) -> Markup:
    r"""Write JSON that cannot end the script element it stands in.

    Parameters
    ----------
    value
        As for `strict_json`.

    Returns
    -------
    Markup
        JSON whose ``<``, ``>``, ``&``, U+2028 and U+2029 are escaped, so nothing in it is read as HTML.

    Examples
    --------
    >>> print(script_json("</script>"))
    "\u003c/script\u003e"
    """
    return Markup(strict_json(value).translate(_IN_SCRIPT))  # noqa: S704  escaped in the line itself


def csv_link(text: str) -> str:
    """Turn the text of a CSV file into a ``data:`` address to download it from.

    Parameters
    ----------
    text
        The whole file, header line included.

    Returns
    -------
    str
        The address; the page needs no server and no script for the download.

    Examples
    --------
    >>> csv_link("segment,n")
    'data:text/csv;charset=utf-8,segment,n'
    """
    return "data:text/csv;charset=utf-8," + quote(text, safe=_PLAIN_IN_LINK)
