"""A classifier with a calibration map behind it, for code that expects `predict_proba`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from calframe._errors import ArgumentError
from calframe._maps._applying import new_columns
from calframe._maps._map import CalibrationMap
from calframe._source import opened
from calframe._typing import Floats


@dataclass(frozen=True, kw_only=True)
class MappedClassifier:
    """A fitted classifier whose probabilities go through a calibration map.

    Attributes
    ----------
    classifier : object
        A fitted classifier with `predict_proba` and `classes_`, as those of scikit-learn.
    map : CalibrationMap
        A map that was fitted on its probabilities: those of the second class, or of all classes.
    """

    classifier: Any
    map: CalibrationMap

    @property
    def classes_(self) -> Any:
        """The classes, in the order of the columns of `predict_proba`."""
        return self.classifier.classes_

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803  scikit-learn's name
        """Return the calibrated probabilities, shape (n_rows, n_classes).

        Parameters
        ----------
        X : array or frame
            What the classifier takes; a frame with the segment columns where the map has segments.
        """
        raw = np.asarray(self.classifier.predict_proba(X), dtype=np.float64)
        wanted = len(self.map.classes) or 2
        if raw.ndim != 2 or raw.shape[1] != wanted:
            shape = "x".join(map(str, raw.shape))
            msg = f"the map is for {wanted} classes, and predict_proba gives an array of shape {shape}."
            raise ArgumentError(msg)
        scores = dict(zip(self.map.scores, raw[:, -len(self.map.scores) :].T, strict=True))
        frame = pl.DataFrame(scores | self._keys(X))
        out = self.map.apply(frame, name=_FREE).select(new_columns(self.map, _FREE)[: max(len(self.map.classes), 1)])
        found = out.to_numpy()
        return found if found.shape[1] > 1 else np.hstack([1.0 - found[:, :1], found[:, :1]])

    def predict(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Return the class of the largest calibrated probability of each row, of equal ones the first."""
        return np.asarray(self.classes_)[self.predict_proba(X).argmax(axis=1)]

    def _keys(self, X: Any) -> dict[str, Any]:  # noqa: N803  scikit-learn's name
        if not self.map.by:
            return {}
        try:
            frame = opened(X)
        except ArgumentError as error:
            msg = f"the map has segments by {', '.join(self.map.by)}; pass X as a frame with these columns."
            raise ArgumentError(msg) from error
        return {name: frame.get_column(name).to_list() for name in self.map.by}


_FREE = "_cf_mapped"
