"""Which column plays which part, read from the arguments every verb shares."""

from __future__ import annotations

import difflib
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from calframe._errors import ArgumentError
from calframe._options import check_choice
from calframe._typing import Invalid, Link, Names, Score

WeightKind: TypeAlias = Literal["importance", "frequency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The roles of a prediction table, checked as far as the arguments alone allow.

    Attributes
    ----------
    label, weight, time : str or None
        Columns of the outcome, the row weight and the time.
    scores : tuple of str
        Score columns, one a model; `several` says whether they were given as a list.
    by : tuple of str
        Segment columns.
    classes : tuple
        The classes, where scores are class probabilities: one column a class, or one column of vectors.
    vector : bool
        Whether one column holds the probabilities of all classes.
    posterior : tuple of str
        Columns of the true probabilities: one of the positive class, or one a class.
    positive : object
        The label value that counts as positive; None where the label itself tells.
    link, invalid, weight_kind, time_zone
        As the arguments of the same names.
    cluster : str, optional
        The column that tells rows apart that are not independent.
    """

    label: str
    scores: tuple[str, ...]
    several: bool
    classes: tuple[Any, ...]
    vector: bool
    posterior: tuple[str, ...]
    by: tuple[str, ...]
    weight: str | None
    time: str | None
    time_zone: str | None
    positive: Any
    link: Link
    invalid: Invalid
    weight_kind: WeightKind
    cluster: str | None = None

    @classmethod
    def from_arguments(
        cls,
        *,
        label: str,
        score: Score,
        by: Names | None = None,
        weight: str | None = None,
        time: str | None = None,
        time_zone: str | None = None,
        positive: Any = None,
        link: Link = "probability",
        invalid: Invalid = "raise",
        weight_kind: WeightKind = "importance",
        classes: Sequence[Any] | None = None,
        posterior: Score | None = None,
        cluster: str | None = None,
    ) -> Self:
        """Check the arguments and gather them."""
        check_choice("link", link, get_args(Link))
        check_choice("invalid", invalid, get_args(Invalid))
        check_choice("weight_kind", weight_kind, get_args(WeightKind))
        named = _classes(score, classes)
        _check_positive(positive, named)
        roles = cls(
            label=_name("label", label),
            scores=_score_names(score),
            several=not isinstance(score, str | Mapping),
            classes=named,
            vector=bool(named) and isinstance(score, str),
            posterior=_posterior(posterior, named),
            by=_names("by", by) if by is not None else (),
            weight=None if weight is None else _name("weight", weight),
            time=None if time is None else _name("time", time),
            time_zone=time_zone.key if isinstance(time_zone, zoneinfo.ZoneInfo) else time_zone,
            positive=positive,
            link=link,
            invalid=invalid,
            weight_kind=weight_kind,
            cluster=None if cluster is None else _name("cluster", cluster),
        )
        roles._check_overlap()
        _check_zone(roles.time_zone, roles.time)
        return roles

    def convention(self) -> dict[str, Any]:
        """Return how the columns are read, as results state it."""
        return {
            "positive": self.positive,
            "link": self.link,
            "invalid": self.invalid,
            "weight": self.weight,
            "weight_kind": None if self.weight is None else self.weight_kind,
            "time_zone": self.time_zone,
            "classes": list(self.classes) or None,
            "posterior": list(self.posterior) or None,
            **({} if self.cluster is None else {"cluster": self.cluster}),
        }

    @property
    def counts_rows(self) -> bool:
        """Whether there are weights, and each says how many rows its row stands for."""
        return self.weight is not None and self.weight_kind == "frequency"

    @property
    def multiclass(self) -> bool:
        """Whether there are three classes or more; a table of two is a binary table of the second."""
        return len(self.classes) > 2

    @property
    def keyed(self) -> tuple[str, ...]:
        """The columns whose values tell rows apart: the segments and the clusters."""
        return self.by if self.cluster is None or self.cluster in self.by else (*self.by, self.cluster)

    def columns(self) -> dict[str, str]:
        """Return every column used, each with the role it is asked for first."""
        asked: list[tuple[str | None, str]] = [
            (self.label, "label"),
            *((score, "score") for score in self.scores),
            *((name, "posterior") for name in self.posterior),
            *((key, "by") for key in self.by),
            (self.weight, "weight"),
            (self.time, "time"),
            (self.cluster, "cluster"),
        ]
        used: dict[str, str] = {}
        for column, role in asked:
            if column is not None:
                used.setdefault(column, role)
        return used

    def _check_overlap(self) -> None:
        for score in self.scores:
            if score in (self.label, self.weight):
                msg = (
                    f"score={score!r} is also the {'label' if score == self.label else 'weight'} column; name two "
                    "different columns."
                )
                raise ArgumentError(msg)
        if self.weight is not None and self.weight == self.label:
            msg = f"weight={self.weight!r} is also the label column; name two different columns."
            raise ArgumentError(msg)


def _check_zone(zone: Any, time: str | None) -> None:
    if zone is None:
        return
    if time is None:
        msg = f"time_zone={zone!r} needs time=, the column whose days it cuts."
        raise ArgumentError(msg)
    known = zoneinfo.available_timezones()
    if not isinstance(zone, str) or zone not in known:
        near = difflib.get_close_matches(str(zone), known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        msg = f"time_zone must be the name of a zone, such as 'Europe/Paris'; got {zone!r}.{hint}"
        raise ArgumentError(msg)


def _name(role: str, value: object) -> str:
    if isinstance(value, str):
        return value
    msg = (
        f"{role}= takes the name of a column (a str); got {type(value).__name__}. "
        "Put the values into a column of the table and give its name: rows are never matched by position."
    )
    raise ArgumentError(msg)


def _names(role: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        return (_name(role, value),)
    names = tuple(_name(role, name) for name in value)
    for name in names:
        if names.count(name) > 1:
            msg = f"{role}= names column {name!r} twice; name each column once."
            raise ArgumentError(msg)
    return names


def _score_names(value: object) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        names = tuple(_name("score", name) for name in value.values())
        if len(set(names)) < len(names):
            msg = f"score= gives two classes one column ({list(names)}); each class has its own."
            raise ArgumentError(msg)
        return names
    if isinstance(value, Sequence) and any(isinstance(name, Mapping) for name in value):
        msg = "score= takes one mapping of classes; for several models of several classes call once for each."
        raise ArgumentError(msg)
    names = _names("score", value)
    if not names:
        msg = "score= is an empty list; name at least one score column."
        raise ArgumentError(msg)
    return names


def _classes(score: object, classes: object) -> tuple[Any, ...]:
    """Return the classes of a mapping, or of a column of vectors; none of other scores."""
    if isinstance(score, Mapping):
        if classes is not None:
            msg = "classes= goes with one column of vectors; a mapping of score= names its classes already."
            raise ArgumentError(msg)
        named = tuple(score)
    elif classes is None:
        return ()
    elif not isinstance(score, str) or isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        msg = (
            "classes= is the list of classes of one score column that holds vectors, in their order; "
            f"got score={score!r}, classes={classes!r}."
        )
        raise ArgumentError(msg)
    else:
        named = tuple(classes)
    if len(named) < 2:
        msg = f"score= names {len(named)} class; there are two or more. For one column of probabilities give its name."
        raise ArgumentError(msg)
    return named


def _check_positive(positive: object, classes: tuple[Any, ...]) -> None:
    if positive is not None and classes:
        msg = (
            f"positive={positive!r} is for one column of probabilities; of two classes the second is the positive one, "
            "so name them in that order and leave positive= out."
        )
        raise ArgumentError(msg)


def _posterior(value: object, classes: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the columns of the true probabilities, in the order of the classes."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        if set(value) != set(classes):
            msg = f"posterior= names the classes {list(value)}, score= {list(classes)}; name the same ones."
            raise ArgumentError(msg)
        return tuple(_name("posterior", value[name]) for name in classes)
    names = _names("posterior", value)
    wanted = len(classes) or 1
    if len(names) != wanted:
        msg = f"posterior= must name {wanted} column{'s' if wanted > 1 else ''}, one a class; got {list(names)}."
        raise ArgumentError(msg)
    return names
