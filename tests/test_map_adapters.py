"""Maps where other code expects something of its own: a classifier, or a polars expression."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import calframe
from calframe._errors import ArgumentError, ScoreError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 2))
Y = (RNG.random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
MODEL = LogisticRegression(C=1e-3).fit(X, Y)


def test_a_wrapped_classifier_gives_what_the_map_gives() -> None:
    scores = pl.DataFrame({"p": MODEL.predict_proba(X)[:, 1], "y": Y})
    found = calframe.fit(scores, label="y", score="p", method="platt")
    wrapped = found.wrap(MODEL)
    proba = wrapped.predict_proba(X)
    expected = found.apply(scores)["p_calibrated"].to_numpy()
    np.testing.assert_allclose(proba, np.column_stack([1 - expected, expected]), rtol=1e-14)
    assert wrapped.classes_.tolist() == [0, 1]
    assert wrapped.predict(X).tolist() == (expected > 0.5).astype(int).tolist()


def test_a_wrapped_classifier_of_three_classes_and_one_with_segments() -> None:
    label = np.digitize(X[:, 0] + RNG.normal(size=600), [-0.5, 0.5])
    model = LogisticRegression(C=1e-2).fit(X, label)
    columns = {f"p{i}": values for i, values in enumerate(model.predict_proba(X).T)}
    found = calframe.fit(
        pl.DataFrame(columns | {"y": label}), label="y", score={i: f"p{i}" for i in range(3)}, method="temperature"
    )
    proba = found.wrap(model).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
    assert found.wrap(model).predict(X).tolist() == model.predict(X).tolist()  # a temperature changes no order

    frame = pd.DataFrame(X, columns=["a", "b"]).assign(g=np.where(X[:, 1] > 0, "x", "z"))

    class OfFrame:
        classes_ = MODEL.classes_

        def predict_proba(self, frame: pd.DataFrame) -> Any:
            return MODEL.predict_proba(frame[["a", "b"]].to_numpy())

    scores = frame.assign(p=OfFrame().predict_proba(frame)[:, 1], y=Y)
    by_segment = calframe.fit(scores, label="y", score="p", by="g", method="platt", pooling="none")
    found_proba = by_segment.wrap(OfFrame()).predict_proba(frame)[:, 1]
    np.testing.assert_allclose(found_proba, by_segment.apply(scores)["p_calibrated"], rtol=1e-14)
    with pytest.raises(ArgumentError, match="segments by g"):
        by_segment.wrap(MODEL).predict_proba(X)
    with pytest.raises(ArgumentError, match="2 classes"):
        by_segment.wrap(model).predict_proba(X)


def test_an_expression_applies_a_map_to_any_column() -> None:
    rows = pl.DataFrame({"p": MODEL.predict_proba(X)[:, 1], "y": Y, "g": np.where(X[:, 1] > 0, "x", "z")})
    found = calframe.fit(rows, label="y", score="p", by="g", method="platt", pooling="none")
    expected = found.apply(rows)["p_calibrated"]
    other = rows.rename({"p": "q"})
    for frame in (other, other.lazy()):
        out = frame.with_columns(pl.col("q").calib.apply(found)).lazy().collect()
        assert out["q"].to_list() == expected.to_list()
    assert rows.select(found.to_expr().alias("c"))["c"].to_list() == expected.to_list()
    with pytest.raises(ArgumentError, match="CalibrationMap"):
        pl.col("q").calib.apply("beta")
    with pytest.raises((ScoreError, pl.exceptions.ComputeError), match="between 0 and 1"):
        other.select((pl.col("q") + 1).calib.apply(found))
