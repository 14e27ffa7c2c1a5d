"""Forms: what a map does to a score, with the parameters of each of its curves in flat arrays.

A map has one curve or many; the first is the pooled one, and each row is told by a code which one it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from calframe._kernels._binned import ranges, sizes_of, starts_of
from calframe._maps._json import Reader, chosen, each, floats, number, optional, required, texts, whole, wholes
from calframe._typing import Floats, Ints

Feature: TypeAlias = Literal["logit", "score", "log", "log_rest", "curve", "one"]
Side: TypeAlias = Literal["left", "right"]
Scale: TypeAlias = Literal["share", "logit"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Flat:
    """Curves through points, those of one after those of another.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_curves,)
        The first point of each curve; every curve has one.
    x, y : ndarray of float64
        The points, ascending in x.
    """

    starts: Ints
    x: Floats
    y: Floats

    def __len__(self) -> int:
        """Return the number of curves."""
        return len(self.starts)

    @property
    def sizes(self) -> Ints:
        """The number of points of each curve."""
        return sizes_of(self.starts, len(self.x))

    def only(self, keep: Ints) -> Self:
        """Return some of the curves, in the order given."""
        sizes = self.sizes[keep]
        at = ranges(self.starts[keep], sizes)
        return replace(self, starts=starts_of(sizes), **{name: values[at] for name, values in self._columns().items()})

    def and_also(self, other: Self) -> Self:
        """Return these curves and those of another."""
        more = other._columns()
        both = {name: np.append(values, more[name]) for name, values in self._columns().items()}
        return replace(self, starts=np.append(self.starts, other.starts + len(self.x)), **both)

    def _columns(self) -> dict[str, Floats]:
        """Return what there is one of for each point."""
        return {"x": self.x, "y": self.y}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points(_Flat):
    """Curves of straight lines between points, constant outside them. Two points at one x are a step.

    Attributes
    ----------
    side : {"right", "left"}
        On which side of a step its own x lies: "right" takes the later point.
    scale : {"share", "logit"}
        What x is: probabilities, or the logits of a map that reads logits.
    """

    side: Side = "right"
    scale: Scale = "share"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linear:
    """Curves ``P = expit(sum_j c_j feature_j)``; without features ``P`` is the score itself.

    Attributes
    ----------
    features : tuple of str
        logit is ``ln p - ln(1 - p)``, score the score as it is, log ``ln p``, log_rest ``-ln(1 - p)``, curve the
        logit of what `base` has there, one the constant.
    names : tuple of str
        How the parameters are called; "temperature" is 1 / c.
    values : ndarray of shape (n_parameters, n_curves)
        The parameters.
    errors : ndarray of shape (n_parameters, n_curves)
        Their standard errors, or the standard deviations that partial pooling leaves; NaN where there is none.
    base : Points, optional
        One curve of probabilities, for the feature of that name.
    epsilon : float
        ``P`` is clipped to ``[epsilon, 1 - epsilon]``.
    """

    features: tuple[Feature, ...]
    names: tuple[str, ...]
    values: Floats
    errors: Floats
    base: Points | None = None
    epsilon: float = 0.0

    def __len__(self) -> int:
        """Return the number of curves."""
        return int(self.values.shape[1])

    def coefficients(self) -> Floats:
        """Return the c_j of each curve."""
        return 1.0 / self.values if self.names == ("temperature",) else self.values

    def only(self, keep: Ints) -> Self:
        """Return some of the curves, in the order given."""
        return self._with(self.values[:, keep], self.errors[:, keep])

    def and_also(self, other: Self) -> Self:
        """Return these curves and those of another."""
        return self._with(np.hstack([self.values, other.values]), np.hstack([self.errors, other.errors]))

    def _with(self, values: Floats, errors: Floats) -> Self:
        return replace(self, values=values, errors=errors)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spline(_Flat):
    """Curves ``P = expit(f(logit))`` with a natural cubic spline f, straight outside its knots, of which it has two.

    Attributes
    ----------
    bend : ndarray of float64
        The second derivative of f at each knot.
    """

    bend: Floats

    def _columns(self) -> dict[str, Floats]:
        return {"x": self.x, "y": self.y, "bend": self.bend}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """Two steps of each score, ``low`` and ``high``, and what lies between: ``P = high / (1 - low + high)``."""

    low: Points
    high: Points

    def __len__(self) -> int:
        """Return the number of curves."""
        return len(self.low)

    def only(self, keep: Ints) -> Self:
        """Return some of the curves, in the order given."""
        return type(self)(low=self.low.only(keep), high=self.high.only(keep))

    def and_also(self, other: Self) -> Self:
        """Return these curves and those of another."""
        return type(self)(low=self.low.and_also(other.low), high=self.high.and_also(other.high))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Softmax:
    """Maps ``P = softmax(W ln q + b)`` of K classes; q is p, or ``(1 - u) softmax(ln p / c) + u / K``.

    Attributes
    ----------
    weight : ndarray of shape (n_maps, n_classes, n_classes)
        W.
    shift : ndarray of shape (n_maps, n_classes)
        b.
    temperature : ndarray of shape (n_maps,), optional
        T, where ``W = 1 / T`` on the diagonal is all there is.
    cooling, uniform : ndarray of shape (n_maps,), optional
        c and u.
    errors : ndarray of shape (n_maps,), optional
        The standard errors of T, or the standard deviations that partial pooling leaves; NaN where there is none.
    """

    weight: Floats
    shift: Floats
    temperature: Floats | None = None
    cooling: Floats | None = None
    uniform: Floats | None = None
    errors: Floats | None = None

    def __len__(self) -> int:
        """Return the number of maps."""
        return len(self.weight)

    @property
    def is_identity(self) -> bool:
        """Whether every map leaves its vectors as they are."""
        plain = self.temperature is None and self.cooling is None and not self.shift.any()
        return plain and bool((self.weight == np.eye(self.weight.shape[1])).all())

    def only(self, keep: Ints) -> Self:
        """Return some of the maps, in the order given."""
        parts = {name: getattr(self, name) for name in _PARTS}
        kept: dict[str, Any] = {name: None if values is None else values[keep] for name, values in parts.items()}
        return type(self)(**kept)

    def and_also(self, other: Self) -> Self:
        """Return these maps and those of another."""
        both: dict[str, Any] = {name: _after(getattr(self, name), getattr(other, name)) for name in _PARTS}
        return type(self)(**both)


_PARTS = ("weight", "shift", "temperature", "cooling", "uniform", "errors")


def _after(values: Floats | None, more: Floats | None) -> Floats | None:
    return None if values is None or more is None else np.concatenate([values, more])


Curve: TypeAlias = Points | Linear | Spline | Pair


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneVersusRest:
    """A binary map for each class, whose values are divided by their sum; if all are 0 the classes are equal."""

    classes: tuple[Curve, ...]

    def __len__(self) -> int:
        """Return the number of maps."""
        return len(self.classes[0])

    def only(self, keep: Ints) -> Self:
        """Return some of the maps, in the order given."""
        return type(self)(classes=tuple(one.only(keep) for one in self.classes))

    def and_also(self, other: Self) -> Self:
        """Return these maps and those of another."""
        pairs: Any = zip(self.classes, other.classes, strict=True)
        return type(self)(classes=tuple(one.and_also(more) for one, more in pairs))


Form: TypeAlias = Curve | Softmax | OneVersusRest

_KINDS: dict[str, type[Any]] = {
    "points": Points,
    "linear": Linear,
    "spline": Spline,
    "pair": Pair,
    "softmax": Softmax,
    "one_versus_rest": OneVersusRest,
}


def to_record(form: Form) -> dict[str, Any]:
    """Return a form as JSON-ready data; floats keep every digit, NaN is null."""
    kind = next(name for name, made in _KINDS.items() if isinstance(form, made))
    size = {"curves": len(form)} if isinstance(form, Linear) else {}  # which tables without rows do not tell
    return {"form": kind} | size | {part.name: _plain(getattr(form, part.name)) for part in fields(form)}


def from_record(record: Any, field: str = "form", *, kinds: Collection[str] = tuple(_KINDS)) -> Form:
    """Return the form of a record that `to_record` made; `field` is what errors call it."""
    kind = _KINDS[chosen(required(record, "form", field), f"{field}.form", kinds)]
    parts = {
        part.name: _reader(part)(required(record, part.name, field), f"{field}.{part.name}") for part in fields(kind)
    }
    if kind is Linear:
        parts |= _sized(parts, whole(required(record, "curves", field), f"{field}.curves"), field)
    form: Form = kind(**parts)
    return form


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        plain = value.astype(object)
        plain[value != value] = None  # NaN  # noqa: PLR0124
        return plain.tolist()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Points | Linear | Spline | Pair):
        return to_record(value)
    return value


def _sized(parts: dict[str, Any], size: int, field: str) -> dict[str, Any]:
    """Return the tables of linear curves, with a column for each curve also where they have no rows."""
    tables = {name: parts[name] for name in ("values", "errors")}
    tables |= {name: table.reshape(0, max(size, 1)) for name, table in tables.items() if table.shape == (0,)}
    if size != tables["values"].shape[-1]:
        msg = f"{field}.curves must be the number of curves in {field}.values; it is {size}"
        raise ValueError(msg)
    return tables


def _reader(part: Field[Any]) -> Reader:
    return _READERS.get(part.name, optional(floats) if part.default is None else floats)


def _one_of(*kinds: str) -> Reader:
    return lambda value, field: from_record(value, field, kinds=kinds)


_READERS: Mapping[str, Reader] = {
    "starts": wholes,
    "side": lambda value, field: chosen(value, field, get_args(Side)),
    "scale": lambda value, field: chosen(value, field, get_args(Scale)),
    "features": texts,
    "names": texts,
    "base": optional(_one_of("points")),
    "epsilon": number,
    "low": _one_of("points"),
    "high": _one_of("points"),
    "classes": each(_one_of("points", "linear", "spline", "pair")),
}  # the others are arrays
