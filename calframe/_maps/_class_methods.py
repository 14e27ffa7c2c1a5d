"""The methods of maps of whole score vectors, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from calframe._fitting import _dirichlet, _pooled_temperature, _softmax, _structured
from calframe._fitting._fitted import Outcome
from calframe._kernels._vectors import Vectors
from calframe._maps._fit_options import FitOptions, Kind
from calframe._maps._forms import Softmax
from calframe._typing import Floats, Ints

FitVectors: TypeAlias = Callable[[Vectors, FitOptions], tuple[Softmax, Ints]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMethod:
    """A method of maps of score vectors.

    Attributes
    ----------
    name : str
        Its name.
    fit : callable
        Vectors and the options to the maps of their segments, and the `Outcome` of each; every map has values.
    options : tuple of str
        The arguments that it takes besides those of every method.
    fewest : callable, optional
        The number of classes and the options to the fewest rows that a segment must have.
    without : str
        What the map of rows without a finite fit is.
    pool : callable, optional
        As `fit`, with partial pooling; None where there is none.
    """

    name: str
    fit: FitVectors
    options: tuple[str, ...] = ()
    fewest: Callable[[int, FitOptions], int] = lambda _classes, _options: 1
    without: str = "a tiny ridge towards the identity makes the map finite"
    pool: FitVectors | None = None

    def fit_own(self, vectors: Vectors, options: FitOptions) -> tuple[Softmax, Ints]:
        """Return the maps of segments; those with too few rows, by their outcome, have none of their own."""
        enough = vectors.sizes >= self.fewest(vectors.classes, options)
        found, outcome = self.fit(vectors.only(enough), options) if enough.any() else (None, np.zeros(0, np.int64))
        outcomes = np.full(len(vectors), Outcome.FEW, dtype=np.int64)
        outcomes[enough] = outcome
        if found is None:
            return identity(vectors.classes, len(vectors)), outcomes
        place = np.zeros(len(vectors), dtype=np.int64)
        place[enough] = np.arange(int(enough.sum()))
        return found.only(place), outcomes


def identity(classes: int, maps: int) -> Softmax:
    """Return maps that leave every vector as it is."""
    return Softmax(weight=np.tile(np.eye(classes), (maps, 1, 1)), shift=np.zeros((maps, classes)))


def of_temperature(temperature: Floats, errors: Floats, classes: int) -> Softmax:
    """Return the maps of some temperatures, which have these errors."""
    weight = np.eye(classes)[None] / temperature[:, None, None]
    return Softmax(weight=weight, shift=np.zeros((len(temperature), classes)), temperature=temperature, errors=errors)


def _identity(vectors: Vectors, _: FitOptions) -> tuple[Softmax, Ints]:
    return identity(vectors.classes, len(vectors)), np.zeros(len(vectors), dtype=np.int64)


def _temperature(vectors: Vectors, options: FitOptions) -> tuple[Softmax, Ints]:
    found = _softmax.temperature(vectors, floor=options.floor, smoothing=options.target_smoothing)
    values = np.where(np.isnan(found.values[0]), 1.0, found.values[0])
    information = found.information[0, 0]
    known = (found.outcome == Outcome.FINE) & (information > 0.0)
    variance = np.divide(1.0, information, out=np.full(len(values), np.nan), where=known)
    return of_temperature(values, np.sqrt(variance), vectors.classes), found.outcome


def _pool_temperature(vectors: Vectors, options: FitOptions) -> tuple[Softmax, Ints]:
    found = _pooled_temperature.pooled_temperature(vectors, floor=options.floor, smoothing=options.target_smoothing)
    inverse = np.where(np.isnan(found.values[0]), 1.0, found.values[0])
    return of_temperature(1.0 / inverse, found.standard_deviation[0] / inverse**2, vectors.classes), found.outcome


def _full(vectors: Vectors, options: FitOptions, *, kind: Kind) -> tuple[Softmax, Ints]:
    solve = _softmax.vector if kind == "vector" else _softmax.matrix
    return _of_maps(solve(vectors, floor=options.floor, smoothing=options.target_smoothing))


def _dirichlet_maps(vectors: Vectors, options: FitOptions) -> tuple[Softmax, Ints]:
    found = _dirichlet.dirichlet(
        vectors,
        off_diagonal=options.off_diagonal,
        intercept=options.intercept,
        normalised=options.normalised,
        reference_row=options.reference_row,
        floor=options.floor,
        smoothing=options.target_smoothing,
    )
    return _of_maps(found)


def _structured_maps(vectors: Vectors, options: FitOptions) -> tuple[Softmax, Ints]:
    found = _structured.structured(vectors, kind=options.kind, floor=options.floor)
    maps, outcome = _of_maps(found.maps)
    form = Softmax(weight=maps.weight, shift=maps.shift, cooling=found.temperature, uniform=found.uniform)
    return form, outcome


def _of_maps(found: _softmax.SoftmaxMaps) -> tuple[Softmax, Ints]:
    return Softmax(weight=found.slopes, shift=found.intercepts), found.outcome


def _fewest(classes: int, options: FitOptions, *, kind: Kind) -> int:
    return _softmax.n_parameters(kind, classes) if options.off_diagonal == 0.0 else 1


CLASS_METHODS: Mapping[str, ClassMethod] = {
    method.name: method
    for method in (
        ClassMethod(name="identity", fit=_identity),
        ClassMethod(
            name="temperature",
            fit=_temperature,
            options=("target_smoothing",),
            without="scores are left as they are",
            pool=_pool_temperature,
        ),
        ClassMethod(
            name="vector",
            fit=partial(_full, kind="vector"),
            options=("target_smoothing",),
            fewest=partial(_fewest, kind="vector"),
        ),
        ClassMethod(
            name="matrix",
            fit=partial(_full, kind="matrix"),
            options=("target_smoothing",),
            fewest=partial(_fewest, kind="matrix"),
        ),
        ClassMethod(
            name="dirichlet",
            fit=_dirichlet_maps,
            options=("off_diagonal", "intercept", "normalised", "reference_row", "target_smoothing"),
            fewest=partial(_fewest, kind="matrix"),
        ),
        ClassMethod(name="structured", fit=_structured_maps, options=("kind",)),
    )
}
