"""Dirichlet calibration with off-diagonal and intercept regularisation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calframe._fitting._dirichlet import dirichlet
from calframe._fitting._fitted import Outcome
from calframe._fitting._log_scores import apply_softmax
from calframe._fitting._multinomial import normal_form, projected
from calframe._fitting._softmax import RIDGE, TooFewRowsError, matrix
from calframe._kernels._vectors import Vectors
from calframe._typing import Floats
from tests._softmax_maps import alone, calibrated, least, losses, shuffled, simulated, steepness, twice
from tests._vector_rows import vectors_of


def penalty(theta: Floats, off_diagonal: float, intercept: float, *, reference_row: bool = False) -> float:
    """Return the penalty of W and b side by side, as written in dirichletcal."""
    theta = theta - theta[-1] if reference_row else theta
    slopes = theta[:, :-1]
    outside = float((slopes**2).sum() - (np.diag(slopes) ** 2).sum())
    return off_diagonal * outside + intercept * float((theta[:, -1] ** 2).sum())


def objective_of(vectors: Vectors, **options: Any) -> Any:
    classes = vectors.classes

    def objective(u: Floats) -> float:
        theta = u.reshape(classes, classes + 1)
        return losses(vectors, theta[:, :-1], theta[:, -1]) + penalty(theta, **options)

    return objective


def found_of(fit: Any, number: int = 0) -> Floats:
    return np.column_stack([fit.slopes[number], fit.intercepts[number]])


@pytest.mark.parametrize("reference_row", [False, True])
@pytest.mark.parametrize(("off_diagonal", "intercept"), [(1e-3, 1e-3), (0.1, 0.0), (1.0, 5.0)])
def test_least_objective(off_diagonal: float, intercept: float, reference_row: bool) -> None:  # noqa: FBT001
    vectors = simulated(1)
    options = {"off_diagonal": off_diagonal, "intercept": intercept, "reference_row": reference_row}
    fit = dirichlet(vectors, **options)
    objective = objective_of(vectors, **options)
    assert steepness(objective, found_of(fit).ravel()) < 1e-8
    assert objective(found_of(fit).ravel()) <= objective(np.eye(3, 4).ravel())
    assert fit.converged.all()
    assert fit.outcome.tolist() == [Outcome.FINE]


def test_the_normalised_form_divides_by_the_numbers_of_terms() -> None:
    vectors = simulated(2, classes=4)
    plain = dirichlet(vectors, off_diagonal=0.02 / 12, intercept=0.3 / 4)
    normalised = dirichlet(vectors, off_diagonal=0.02, intercept=0.3, normalised=True)
    np.testing.assert_allclose(normalised.slopes, plain.slopes, atol=1e-10)
    np.testing.assert_allclose(normalised.intercepts, plain.intercepts, atol=1e-10)


def test_no_penalty_is_matrix_scaling_and_a_hard_one_a_diagonal() -> None:
    vectors = simulated(3)
    np.testing.assert_allclose(dirichlet(vectors).slopes, matrix(vectors).slopes, atol=1e-10)
    fit = dirichlet(vectors, off_diagonal=1e6, intercept=1e6)
    found = least(lambda u: losses(vectors, np.diag(u), np.zeros(3)), np.ones(3))
    np.testing.assert_allclose(fit.slopes[0], np.diag(found.x), atol=1e-5)


def test_what_is_calibrated_stays() -> None:
    fit = dirichlet(calibrated(1), off_diagonal=0.01, intercept=0.01)
    np.testing.assert_allclose(found_of(fit), np.eye(3, 4), atol=1e-10)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), strength=st.sampled_from([1e-4, 1e-2, 1.0]), classes=st.integers(2, 4))
def test_weighted_rows_in_any_order(seed: int, strength: float, classes: int) -> None:
    vectors = simulated(seed, rows=240, classes=classes, segments=2)
    options = {"off_diagonal": strength, "intercept": strength}
    fit = dirichlet(vectors, **options)
    order = np.random.default_rng(seed).permutation(classes)
    turned = dirichlet(shuffled(vectors, order), **options)
    np.testing.assert_allclose(turned.slopes, fit.slopes[:, order][:, :, order], atol=1e-8)
    np.testing.assert_allclose(dirichlet(twice(vectors), **options).slopes, fit.slopes, atol=1e-8)
    for number in range(2):
        np.testing.assert_allclose(
            dirichlet(alone(vectors, number), **options).slopes[0], fit.slopes[number], atol=1e-9
        )
        found = found_of(fit, number)
        np.testing.assert_allclose(projected(found), found, atol=1e-12)  # the form that results have


def test_separable_rows_leave_the_diagonal_open() -> None:
    vectors = simulated(4, rows=40)
    sure = vectors_of(vectors.scores, vectors.scores.argmax(axis=1))
    fit = dirichlet(sure, off_diagonal=0.1, intercept=0.1)
    assert fit.outcome.tolist() == [Outcome.SEPARABLE]
    assert fit.converged.all()
    objective = objective_of(sure, off_diagonal=0.1, intercept=0.1)
    found, unit = found_of(fit).ravel(), np.eye(3, 4).ravel()

    def ridged(u: Floats) -> float:
        u = normal_form(u.reshape(3, 4)).ravel()  # of equal maps the one that results have
        return objective(u) + RIDGE * float(((u - unit) ** 2).sum())

    assert steepness(ridged, found) < 1e-8
    assert objective(1.5 * found) < objective(found) < objective(unit)  # on and on


def test_more_parameters_than_rows_need_a_penalty() -> None:
    few = simulated(5, rows=7)
    with pytest.raises(TooFewRowsError, match="8 parameters, and segment 0 has 7 rows"):
        dirichlet(few, intercept=0.1)
    assert dirichlet(few, off_diagonal=0.1).converged.all()


@pytest.mark.parametrize("table", ["cifar10_vgg16", "probably_species"])
def test_maps_of_dirichletcal(reference_folder: Path, table: str) -> None:
    # dirichletcal 0.5.3, fitted on the first 3000 of every second row
    frame = pd.read_parquet(reference_folder / "data" / f"{table}.parquet").iloc[::2].head(3000)
    columns = [name for name in frame.columns if name.startswith("p_")]
    label = [columns.index(f"p_{value}") for value in frame["y"]]
    vectors = vectors_of(frame[columns].to_numpy(), label)
    seen = 0
    for line in (reference_folder / "reference" / "reference.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        parts = re.fullmatch(r"dirichlet_odir_l([\d.]+)_m([\d.]+)_ref([01])", entry["metric"])
        if entry["table"] != table or parts is None:
            continue
        fit = dirichlet(vectors, off_diagonal=float(parts[1]), intercept=float(parts[2]), reference_row=parts[3] == "1")
        grid = np.array(entry["args"]["grid"])
        found = apply_softmax(grid, fit.slopes, fit.intercepts, np.zeros(len(grid), int))
        inside = grid.min(axis=1) > 1e-12  # it floors zeros at 2.2e-308 there
        np.testing.assert_allclose(found[inside], np.array(entry["value"]["grid"])[inside], atol=1e-8)
        seen += 1
    assert seen == 4
