"""One convention, and the mapping of them all."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from calframe._conventions._edges import Edges
from calframe._errors import ArgumentError
from calframe._options import check_whole
from calframe._typing import Closed

_WIDTH = 80
_INDENT = 14
_MOST_BINS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """How another package computes a number, as arguments of `metrics`.

    Call it with the number of bins that the package would be called with, or without one for the package's default.
    It returns keyword arguments of `calframe.metrics`: ``metrics``, and where there are bins ``bins``, ``strategy``
    and ``closed``. Where the package's edges are not ``k / bins``, ``bins`` is the list of its edges, so that a score
    on an edge falls where the package puts it.

    Attributes
    ----------
    name : str
        The package, and after a dot the notion where there are several: ``"pycalib.classwise"``.
    reproduces : str
        The functions of the package whose numbers these are, in the order of `metrics`.
    version : str
        The version of the package that the numbers were compared with.
    metrics : tuple of str
        The names of the same numbers in calframe.
    edges : Edges or None
        Where the package puts the edges; None where it has no bins.
    closed : {"left", "right"}
        The side that belongs to a bin.
    default_bins : int or None
        The package's default number of bins.
    options : tuple of (str, value)
        Further arguments of `metrics`.
    several_classes : bool
        Whether it is for tables with a mapping of classes; otherwise for one column of scores.
    tested : str
        What it is compared with.
    notes : tuple of str
        What of the package's number it does not reproduce, and what to do about it.
    """

    name: str
    reproduces: str
    version: str
    metrics: tuple[str, ...]
    edges: Edges | None = None
    closed: Closed = "left"
    default_bins: int | None = None
    options: tuple[tuple[str, Any], ...] = ()
    several_classes: bool = False
    tested: str = "the package itself"
    notes: tuple[str, ...] = ()

    def __call__(self, bins: int | None = None) -> dict[str, Any]:
        """Return keyword arguments of `calframe.metrics`.

        Parameters
        ----------
        bins : int, optional
            The number of bins that the package would be called with; by default the package's own default.

        Returns
        -------
        dict
            A new one at each call, so that it may be changed.

        Raises
        ------
        ArgumentError
            If the number of bins is not a whole number that the package accepts, or the convention has no bins.
        """
        arguments: dict[str, Any] = {"metrics": list(self.metrics), **dict(self.options)}
        if self.edges is None:
            if bins is not None:
                msg = f"the convention {self.name!r} has no bins; leave them out. Got {bins!r}."
                raise ArgumentError(msg)
            return arguments
        placed = self.edges.place(self._count(bins))
        return {**arguments, "bins": placed, "strategy": "uniform", "closed": self.closed}

    def _count(self, bins: Any) -> int:
        least = self.edges.least if self.edges else 1
        count: Any = self.default_bins if bins is None else bins
        check_whole(f"bins of {self.name!r}", count, least, _MOST_BINS)
        return int(count)

    def __repr__(self) -> str:
        return f"<Convention {self.name}: {', '.join(self.metrics)}{self._sides()}>"

    def _sides(self) -> str:
        if self.edges is None:
            return ""
        return " [a, b)" if self.closed == "left" else " (a, b]"

    def __str__(self) -> str:
        kind = "a mapping of classes" if self.several_classes else "one column of scores"
        lines = {
            "reproduces": self.reproduces,
            "for": kind,
            "metrics": ", ".join(self.metrics),
            "bins": self._bins(),
            "also": ", ".join(f"{name}={value!r}" for name, value in self.options),
            "tested with": f"version {self.version}: {self.tested}",
            **{f"note {number}": note for number, note in enumerate(self.notes, start=1)},
        }
        return "\n".join([self.name, *(_paragraph(head, text) for head, text in lines.items() if text)])

    def _bins(self) -> str:
        if self.edges is None:
            return ""
        side = "lower edge" if self.closed == "left" else "upper edge"
        return f"edges {self.edges.text}; the {side} belongs to a bin; {self.default_bins} unless told"


class Conventions(Mapping[str, Convention]):
    """The conventions of other packages, by name: an immutable mapping.

    Answers "which arguments give the number that package X gives, and what of it cannot be had?". Two packages may
    give different errors for the same table only because they put a score of exactly 0.3 into different bins.

    Attributes
    ----------
    not_offered : mapping of str to str
        Numbers of other packages that no convention gives, and why.

    Raises
    ------
    ArgumentError
        For a name that is not there; it names the nearest one, or says why that number is not offered.

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> calframe.conventions["uncertainty-calibration"](10)["closed"]
    'right'
    >>> answers = pl.DataFrame({"right": [1, 0, 0, 1], "p": [1.0, 0.95, 0.3, 0.6]})
    >>> for name in ["netcal", "torchmetrics"]:
    ...     found = calframe.metrics(answers, label="right", score="p", **calframe.conventions[name](10))
    ...     print(name, found["mce"].round(3).item())
    netcal 0.475
    torchmetrics 0.95
    """

    def __init__(self, peers: Sequence[Convention], not_offered: Mapping[str, str]) -> None:
        self._peers = MappingProxyType({convention.name: convention for convention in peers})
        self.not_offered = MappingProxyType(dict(not_offered))

    def __getitem__(self, name: str) -> Convention:
        if name in self:
            return self._peers[name]
        if isinstance(name, str) and name in self.not_offered:
            msg = f"no convention gives {name!r}: {self.not_offered[name]}."
            raise ArgumentError(msg)
        raise ArgumentError.from_choice("convention", name, self._peers)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._peers

    def get(self, name: str, default: Any = None) -> Any:
        """Return a convention, or the default for a name that is not there."""
        return self._peers[name] if name in self else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._peers)

    def __len__(self) -> int:
        return len(self._peers)

    def __repr__(self) -> str:
        packages = sorted({name.split(".")[0] for name in self})
        return f"<{len(self)} conventions of {len(packages)} packages; print() lists them>"

    def __str__(self) -> str:
        width = max(map(len, [*self, *self.not_offered])) + 2
        lines = [f"{name:<{width}}{', '.join(peer.metrics)}" for name, peer in self.items()]
        reasons = [
            textwrap.fill(why, _WIDTH, initial_indent=f"{name:<{width}}", subsequent_indent=" " * width)
            for name, why in self.not_offered.items()
        ]
        return "\n".join([*lines, "", "Not offered:", *reasons])


def _paragraph(head: str, text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=f"  {head:<{_INDENT - 2}}", subsequent_indent=" " * _INDENT)
