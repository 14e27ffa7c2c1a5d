"""The delta method: what small changes of sums do to a function of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from calframe._kernels._binned import ratio
from calframe._typing import Floats

Function: TypeAlias = Callable[[Mapping[str, Floats]], Floats]

_STEP = 1e-6  # relative, of the differences that stand for derivatives


def slopes(value: Function, sums: Mapping[str, Floats], names: Sequence[str]) -> dict[str, Floats]:
    """Return the derivative of a function of sums by each of those named.

    Parameters
    ----------
    value : callable
        From sums by name, one value a segment, to the function; one that does not change when all are doubled.
    sums : mapping of str to ndarray
        The sums, ``w`` (the weight) among them.
    names : sequence of str
        Those by which it is differentiated.

    Examples
    --------
    >>> mean = lambda sums: sums["wy"] / sums["w"]
    >>> found = slopes(mean, {"w": np.array([4.0]), "wy": np.array([1.0])}, ("w", "wy"))
    >>> {name: slope.round(6) for name, slope in found.items()}
    {'w': array([-0.0625]), 'wy': array([0.25])}
    """
    found = {}
    for name in names:
        step = np.maximum(np.abs(sums[name]), sums["w"]) * _STEP
        up, down = ({**sums, name: sums[name] + sign * step} for sign in (1.0, -1.0))
        with np.errstate(invalid="ignore"):
            found[name] = ratio(value(up) - value(down), 2.0 * step)
    return found


def squared_parts(slope: Mapping[str, Floats], products: Mapping[str, Floats]) -> Floats:
    """Return the sum over rows of ``(sum_a g_a x_ia)^2``, from slopes ``g`` and sums ``a*b`` of the products of terms.

    Examples
    --------
    Rows of 1 and 3 in ``x``, both with weight 1: ``(2 + 1)^2 + (2 + 3)^2``.

    >>> products = {"w*w": np.array([2.0]), "w*x": np.array([4.0]), "x*x": np.array([10.0])}
    >>> squared_parts({"w": np.array([2.0]), "x": np.array([1.0])}, products)
    array([34.])
    """
    names = list(slope)
    parts = [
        (1.0 if a == b else 2.0) * slope[a] * slope[b] * products[f"{a}*{b}"]
        for i, a in enumerate(names)
        for b in names[i:]
    ]
    found: Floats = np.sum(parts, axis=0)
    return found
