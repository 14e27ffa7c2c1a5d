"""Special functions, loaded at first use: importing the package must not load SciPy."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special  # noqa: PLC0415  the point of this module

    return getattr(special, name)
