"""Shares of the work, added up for the person who watches."""

from __future__ import annotations

from collections.abc import Callable


def summed(show: Callable[[float], None] | None) -> Callable[[float], None] | None:
    """Return what adds up shares of the work as they come, and shows how much of it is done.

    Examples
    --------
    >>> told = summed(print)
    >>> told(0.25), told(0.5)
    0.25
    0.75
    (None, None)
    """
    if show is None:
        return None
    done = 0.0

    def told(share: float) -> None:
        nonlocal done
        done = min(done + share, 1.0)
        show(done)

    return told
