"""Conventions of other packages: the arguments of `metrics` that give the numbers they give."""

from __future__ import annotations

from calframe._conventions._convention import Conventions
from calframe._conventions._peers import NOT_OFFERED, PEERS

conventions = Conventions(PEERS, NOT_OFFERED)

__all__ = ["conventions"]
