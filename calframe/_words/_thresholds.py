"""Thresholds in words, never lower than they are."""

from __future__ import annotations

import struct
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

_FIGURES = 4


def threshold(value: float) -> str:
    """Return a threshold in four figures, rounded up: from a lower one on, nothing was shown.

    It has more figures where four would make it 1. A float32 number is itself where it is the nearest one to the text.

    Examples
    --------
    >>> threshold(0.890828), threshold(0.2), threshold(1 / 3), threshold(0.99999912)
    ('0.8909', '0.2', '0.3334', '0.9999992')
    """
    exact, figures = Decimal(value), _FIGURES
    short = Decimal(repr(value))
    while True:
        unit = Decimal(1).scaleb(short.adjusted() - figures + 1)
        nearest = short.quantize(unit, rounding=ROUND_HALF_EVEN)
        same = _narrow(float(nearest)) == value
        found = nearest if same else short.quantize(unit, rounding=ROUND_CEILING)
        if found < 1 or exact >= 1:
            return f"{float(found):.{figures}g}"
        figures += 1


def _narrow(value: float) -> float:
    """Return the nearest float32."""
    number: float = struct.unpack("f", struct.pack("f", value))[0]
    return number
