"""Errors without the part of chance, and the parts of the Brier score: exact arithmetic and reference values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calframe._kernels._debiased import Murphy, debiased_error, murphy, murphy_corrected
from calframe._typing import Floats
from tests._tallied import reference_entries

Cell = tuple[int, float, int, float]  # bin, score, label, weight
CELL = st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.125, 0.3, 0.5, 1.0]), st.integers(0, 1), st.integers(1, 3))
ROWS = st.lists(CELL, min_size=1, max_size=14)
SEGMENTS = st.lists(ROWS, min_size=1, max_size=3)
BINS = 4
properties = settings(max_examples=80, derandomize=True, deadline=None)


def sums(segments: Sequence[Sequence[Cell]], *, bins: int = BINS) -> dict[str, Floats]:
    """Sums over the bins of each segment; bins without rows stay, with weight 0."""
    out = {name: np.zeros(len(segments) * bins) for name in ("weight", "score_sum", "label_sum", "squared")}
    losses = np.zeros(len(segments))
    for k, rows in enumerate(segments):
        for which, score, label, weight in rows:
            terms = (weight, weight * score, weight * label, weight**2)
            for name, term in zip(out, terms, strict=True):
                out[name][k * bins + which] += term
            losses[k] += weight * (score - label) ** 2
    return {**out, "square_loss": losses, "starts": np.arange(len(segments)) * bins}


def debiased(segments: Sequence[Sequence[Cell]], *, counts: bool) -> Floats:
    s = sums(segments)
    squared = s["weight"] if counts else s["squared"]
    return debiased_error(s["weight"], s["score_sum"], s["label_sum"], squared, s["starts"])


def parts(segments: Sequence[Sequence[Cell]], *, corrected: bool, counts: bool = True) -> Murphy:
    s = sums(segments)
    plain = (s["weight"], s["score_sum"], s["label_sum"])
    if not corrected:
        return murphy(*plain, s["square_loss"], s["starts"])
    return murphy_corrected(*plain, s["weight"] if counts else s["squared"], s["square_loss"], s["starts"])


def exact(rows: Sequence[Cell], *, counts: bool) -> dict[str, Fraction | None]:
    """All parts of one segment from their definitions; None where a variance has no row to spare."""
    table = [(b, Fraction(s), y, Fraction(w)) for b, s, y, w in rows]
    total = sum(w for *_, w in table)
    rate = sum(w * y for _, _, y, w in table) / total
    names = ("reliability", "resolution", "correction", "debiased", "within")
    found: dict[str, Fraction | None] = dict.fromkeys(names, Fraction(0))
    for which in {b for b, *_ in table}:
        bin_ = [row for row in table if row[0] == which]
        n = sum(w for *_, w in bin_)
        score = sum(w * s for _, s, _, w in bin_) / n
        label = sum(w * y for _, _, y, w in bin_) / n
        size = n if counts else n**2 / sum(w * w for *_, w in bin_)
        chance = label * (1 - label) / (size - 1) if size >= 2 else 0
        found["reliability"] += n / total * (score - label) ** 2
        found["resolution"] += n / total * (label - rate) ** 2
        found["correction"] += n / total * chance
        found["debiased"] += n / total * ((score - label) ** 2 - chance) if size >= 2 else 0
        # variance of the scores within the bin, less twice their covariance with the label
        found["within"] += sum(w * ((s - score) ** 2 - 2 * (s - score) * (y - label)) for _, s, y, w in bin_) / total
    size = total if counts else total**2 / sum(w * w for *_, w in table)
    found["uncertainty"] = rate * (1 - rate)
    found["spare"] = rate * (1 - rate) / (size - 1) if size >= 2 else None
    found["brier"] = sum(w * (s - y) ** 2 for _, s, y, w in table) / total
    return found


@properties
@given(segments=SEGMENTS, counts=st.booleans())
def test_debiased_error_by_its_definition(segments: list[list[Cell]], *, counts: bool) -> None:
    squares = [exact(rows, counts=counts)["debiased"] for rows in segments]
    found = debiased(segments, counts=counts)
    np.testing.assert_allclose(found**2, [max(float(each), 0.0) for each in squares], rtol=1e-12, atol=1e-15)


@properties
@given(SEGMENTS)
def test_weight_2_is_the_row_twice(segments: list[list[Cell]]) -> None:
    repeated = [[(b, s, y, 1) for b, s, y, w in rows for _ in range(w)] for rows in segments]
    squares = [debiased(each, counts=True) ** 2 for each in (segments, repeated)]
    np.testing.assert_allclose(*squares, rtol=1e-12, atol=1e-15)
    for corrected in (False, True):
        here, there = (parts(each, corrected=corrected) for each in (segments, repeated))
        for name in ("reliability", "resolution", "uncertainty", "within_bin"):
            np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-12, atol=1e-15)


def test_debiased_error_of_a_known_table() -> None:
    # uncertainty-calibration 0.1.4 and calibre 0.14, fifteen bins of 16 rows with edges between values
    score = np.array([(37 * i) % 101 / 100 for i in range(240)])
    noise = np.array([((53 * i + 11) % 97) / 97 for i in range(240)])
    label = noise < 0.9 * score**1.4 + 0.05
    groups = np.array_split(np.sort(score), 15)
    edges = [(left[-1] + right[0]) / 2 for left, right in itertools.pairwise(groups)]
    which = np.searchsorted(edges, score)
    n, of_scores, of_labels = (np.bincount(which, each) for each in (np.ones(240), score, label))
    found = debiased_error(n, of_scores, of_labels, n, np.array([0]))
    assert found[0] == pytest.approx(0.0985277086, abs=5e-11)
    assert found[0] ** 2 == pytest.approx(0.0097077094, abs=5e-11)


def test_debiased_error_of_small_bins_is_0() -> None:
    assert debiased([[(0, 0.3, 1, 1)], [(0, 0.3, 1, 1), (1, 0.5, 0, 1)]], counts=True).tolist() == [0.0, 0.0]
    # two rows of weights 0.7 and 1.3, alike, count as two: the gap is 0.7
    alike = [(0, 0.3, 1, 0.7), (0, 0.3, 1, 1.3)]
    assert debiased([alike], counts=True)[0] == pytest.approx(0.7)


@properties
@given(segments=SEGMENTS, counts=st.booleans())
def test_murphy_by_its_definition(segments: list[list[Cell]], *, counts: bool) -> None:
    expected = [exact(rows, counts=counts) for rows in segments]
    plain, fair = parts(segments, corrected=False), parts(segments, corrected=True, counts=counts)
    for k, each in enumerate(expected):
        found = [plain.reliability[k], plain.resolution[k], plain.uncertainty[k], plain.within_bin[k]]
        names = ("reliability", "resolution", "uncertainty", "within")
        assert found == pytest.approx([float(each[name]) for name in names], rel=1e-12, abs=1e-15)
        assert found[0] - found[1] + found[2] + found[3] == pytest.approx(float(each["brier"]), rel=1e-14, abs=1e-15)
        found = [fair.reliability[k], fair.resolution[k], fair.uncertainty[k]]
        if each["spare"] is None:
            assert all(map(math.isnan, found))
            continue
        wanted = (
            each["reliability"] - each["correction"],
            each["resolution"] - each["correction"] + each["spare"],
            each["uncertainty"] + each["spare"],
        )
        assert found == pytest.approx([float(value) for value in wanted], rel=1e-12, abs=1e-15)
        total = found[0] - found[1] + found[2] + fair.within_bin[k]
        assert total == pytest.approx(float(each["brier"]), rel=1e-13, abs=1e-15)


def test_the_correction_takes_the_bias_off() -> None:
    # all samples of 2 + 3 rows from two bins of known rates, with their chances: means are the truth
    rates, scores, sizes = (0.2, 0.7), (0.3, 0.5), (2, 3)
    samples, chances = [], []
    for number in range(2 ** sum(sizes)):
        labels = [number >> k & 1 for k in range(sum(sizes))]
        where = [0] * sizes[0] + [1] * sizes[1]
        samples.append([(b, scores[b], y, 1) for b, y in zip(where, labels, strict=True)])
        chances.append(math.prod(rates[b] if y else 1 - rates[b] for b, y in zip(where, labels, strict=True)))
    fair, plain = (parts(samples, corrected=corrected) for corrected in (True, False))
    truth = sum(n * (s - r) ** 2 for n, s, r in zip(sizes, scores, rates, strict=True)) / 5
    assert np.array(chances) @ fair.reliability == pytest.approx(truth, rel=1e-12)
    assert np.array(chances) @ plain.reliability > truth + 0.05


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_shares_know_no_unit(scale: float) -> None:
    rows = [(0, 0.3, 1, 1.0), (0, 0.1, 0, 2.5), (2, 0.5, 1, 0.7), (2, 0.5, 0, 1.1), (2, 1.0, 1, 1.0)]
    moved = [(b, s, y, w * scale) for b, s, y, w in rows]
    np.testing.assert_allclose(debiased([moved], counts=False), debiased([rows], counts=False), rtol=1e-12)
    for corrected in (False, True):
        here, there = (parts([each], corrected=corrected, counts=False) for each in (moved, rows))
        assert here.reliability == pytest.approx(there.reliability, rel=1e-12)
        assert here.resolution == pytest.approx(there.resolution, rel=1e-12)
        assert here.within_bin == pytest.approx(there.within_bin, rel=1e-12)


def test_a_segment_without_weight_is_unknown() -> None:
    nothing = np.zeros(2)
    assert np.isnan(debiased_error(nothing, nothing, nothing, nothing, np.array([0]))).all()
    found = murphy_corrected(nothing, nothing, nothing, nothing, np.zeros(1), np.array([0]))
    assert np.isnan([found.reliability, found.resolution, found.uncertainty, found.within_bin]).all()


def in_ten(score: Floats, label: Floats, edges: Floats) -> list[Floats]:
    which = np.clip(np.searchsorted(edges, score, side="left") - 1, 0, 9)  # right-closed, the first bin on both sides
    return [np.bincount(which, each, 10) for each in (np.ones_like(score), score, label)]


def test_murphy_of_the_reference(reference_folder: Path) -> None:
    entries = list(reference_entries(reference_folder, "bin", "murphy_ew10"))  # exact arithmetic
    assert len(entries) >= 25
    edges = np.array([k / 10 for k in range(11)])
    for entry, (score, label, _) in entries:
        loss = np.array([np.sum((score - label) ** 2)])
        found = murphy(*in_ten(score, label, edges), loss, np.array([0]))
        value = np.ravel([found.reliability, found.resolution, found.uncertainty, found.within_bin])
        *three, variance, covariance = entry["value"]
        expected = [*three, variance - 2 * covariance]
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-14, err_msg=entry["id"])


def test_corrected_murphy_of_the_reference(reference_folder: Path) -> None:
    # SpecsVerification takes the same share of the correction off all three parts: all of it, unless a part would then
    # be negative or the uncertainty above 1/4
    full = 0
    edges = np.linspace(0, 1, 11)
    for entry, (score, label, _) in reference_entries(reference_folder, "bin", "brier_decomp10_corrected"):
        n, of_scores, of_labels = in_ten(score, label, edges)
        loss, starts = np.array([np.sum((score - label) ** 2)]), np.array([0])
        plain = murphy(n, of_scores, of_labels, loss, starts)
        fair = murphy_corrected(n, of_scores, of_labels, n, loss, starts)
        names = ("reliability", "resolution", "uncertainty")
        before, after = (np.array([getattr(each, name)[0] for name in names]) for each in (plain, fair))
        shares = (np.array(entry["value"][:3]) - before)[np.abs(after - before) > 1e-12]
        shares /= (after - before)[np.abs(after - before) > 1e-12]
        if not shares.size:
            continue
        np.testing.assert_allclose(shares, shares[0], rtol=0, atol=1e-7, err_msg=entry["id"])
        inside = after[0] >= 0 and after[1] >= 0 and after[2] <= 0.25
        assert (shares[0] > 1 - 1e-9) == inside, entry["id"]
        if inside:
            np.testing.assert_allclose(after, entry["value"][:3], rtol=1e-9, atol=1e-12, err_msg=entry["id"])
            full += 1
    assert full >= 12
