"""Which two models are compared: two columns, or two mappings of classes to columns; and by which metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from calframe._errors import ArgumentError
from calframe._measures import chosen_metrics, known_metrics
from calframe._registry import Metric
from calframe._roles import Roles
from calframe._table import View, view_of
from calframe._typing import Names

_USUAL = ("brier", "log_loss", "auc", "ece")
_USUAL_OF_CLASSES = ("brier", "log_loss", "accuracy", "confidence_ece")
_SLOW = "skce"  # pairs of rows, in every draw: minutes, which only who names it waits for
_UNNAMED = ("first", "second")
_HOW = "such as score={'old': {'cat': 'p_cat', 'dog': 'p_dog'}, 'new': {'cat': 'q_cat', 'dog': 'q_dog'}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Two models of one table.

    Attributes
    ----------
    names : (str, str)
        What they are called.
    roles : (Roles, Roles)
        The columns that each of them reads.
    stated : tuple of Roles
        The same as they were given: what is wrong with a column is said of these.
    view : {"score", "second", "vectors"}
        What a row of each is: a score, that of the second of two classes, or those of all classes.
    """

    names: tuple[str, str]
    roles: tuple[Roles, Roles]
    stated: tuple[Roles, ...]
    view: View

    @classmethod
    def from_arguments(cls, score: Any, classes: Sequence[Any] | None, **arguments: Any) -> Self:
        """Read ``score=`` and ``classes=``; the other arguments are those of `Roles`."""
        names, parts = _two(score, classes)
        if parts is None and classes is None:
            both = Roles.from_arguments(score=score, **arguments)
            first, second = (replace(both, scores=(name,), several=False) for name in both.scores)
            return cls(names=(first.scores[0], second.scores[0]), roles=(first, second), stated=(both,), view="score")
        first, second = (Roles.from_arguments(score=part, classes=classes, **arguments) for part in parts or score)
        if first.scores == second.scores:
            msg = f"score= names the same column for both models ({list(first.scores)}); name two different models."
            raise ArgumentError(msg)
        return cls(
            names=names or (first.scores[0], second.scores[0]),
            roles=(first, second),
            stated=(first, second),
            view=view_of(first, None),
        )

    def convention(self) -> dict[str, Any]:
        """Return how the columns are read, as results state it."""
        found = self.roles[0].convention()
        if not self.roles[0].classes or self.roles[0].vector:
            return found
        return {**found, "columns": {name: list(own.scores) for name, own in zip(self.names, self.roles, strict=True)}}

    def chosen(self, metrics: Names | None) -> tuple[Metric, ...]:
        """Return the metrics asked for, of those that need no true probabilities."""
        several = self.view == "vectors"
        known = known_metrics(several_classes=several)
        if metrics is None:
            metrics = _USUAL_OF_CLASSES if several else _USUAL
        if isinstance(metrics, str):
            every = [name for name, metric in known.items() if not metric.posterior and name != _SLOW]
            metrics = every if metrics == "all" else [metrics]
        if several:
            _check_of_classes(metrics)
        return chosen_metrics(metrics, several_classes=several)


def _check_of_classes(metrics: Any) -> None:
    """Refuse metrics of one column of scores."""
    binary = known_metrics(several_classes=False).keys() - known_metrics(several_classes=True).keys()
    for name in metrics if isinstance(metrics, Sequence) else ():
        if isinstance(name, str) and name in binary:
            msg = (
                f"metric {name!r} is about one column of scores, and these models have several classes. Compare them "
                "class by class: score= as a list of the two columns of a class, and a binary label of it."
            )
            raise ArgumentError(msg)


def _two(score: Any, classes: Any) -> tuple[tuple[str, str] | None, Sequence[Mapping[Any, Any]] | None]:
    """Return the names and the mappings of two models of several classes; None and None where they are columns."""
    if isinstance(score, Mapping):
        _check_mapping(score)
        names = tuple(score)
        return (names[0], names[1]), _same_classes(names, tuple(score.values()))
    listed = isinstance(score, Sequence) and not isinstance(score, str)
    if listed and any(isinstance(model, Mapping) for model in score):
        _check_models(dict(enumerate(score, 1)))
        return _UNNAMED, _same_classes(_UNNAMED, score)
    if (isinstance(score, str) or listed or classes is not None) and not (listed and len(score) == 2):
        many = len(score) if listed else 1
        held = "columns of class probabilities" if classes is not None else "columns"
        msg = (
            f"compare takes score= as a list of two {held}, the first and the second model; got {many}: {score!r}. "
            "For more models call once for each pair."
        )
        raise ArgumentError(msg)
    return None, None


def _check_mapping(score: Mapping[Any, Any]) -> None:
    """Raise unless a mapping holds two named models."""
    if not any(isinstance(model, Mapping) for model in score.values()):
        msg = (
            "compare takes score= as a list of two columns of probabilities of the positive class; got a mapping, "
            f"which is one model of several classes. For two such models give each a name, {_HOW}."
        )
        raise ArgumentError(msg)
    wrong = [name for name in score if not isinstance(name, str)]
    if wrong:
        msg = f"score= must name models by a text; got {wrong[0]!r}. Name both, {_HOW}."
        raise ArgumentError(msg)
    _check_models(score)


def _check_models(models: Mapping[Any, Any]) -> None:
    """Raise unless there are two models, each a mapping of classes to columns."""
    for name, model in models.items():
        if not isinstance(model, Mapping):
            msg = (
                f"score= must give each model of several classes as a mapping of classes to columns; model {name!r} is "
                f"{model!r}. Name the column of each class, {_HOW}."
            )
            raise ArgumentError(msg)
    if len(models) != 2:
        msg = (
            f"compare takes two models of several classes; score= holds {len(models)}. Give two, {_HOW}, and for more "
            "call once for each pair."
        )
        raise ArgumentError(msg)


def _same_classes(names: Sequence[str], models: Sequence[Mapping[Any, Any]]) -> Sequence[Mapping[Any, Any]]:
    """Return the mappings of both models with their classes in the order of the first, or say which differ."""
    first, second = models
    alone = [[name for name in one if name not in other] for one, other in ((first, second), (second, first))]
    if any(alone):
        said = [f"only {names[i]!r} has {', '.join(map(repr, found))}" for i, found in enumerate(alone) if found]
        msg = f"both models must name the same classes; {' and '.join(said)}. Give each class a column of either model."
        raise ArgumentError(msg)
    return first, {name: second[name] for name in first}
