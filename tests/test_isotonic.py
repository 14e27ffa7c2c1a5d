"""Isotonic fits and their CORP parts: against exact arithmetic, scikit-learn, R and printed values."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from calframe._kernels._isotonic import Blocks, blocks, corp, corp_log
from calframe._kernels._losses import loss_parts_by_score
from calframe._kernels._tally import Tally
from calframe._typing import Floats
from tests._exact_fits import Cell, cells_of, exact, max_min, pooled, tally_of

BY_SCORE = ("calibration_loss", "refinement_loss", "calibration_loss_log", "refinement_loss_log")
FEW = settings(max_examples=60, deadline=None)


def parts_of(tally: Tally, *, fit: Blocks | None = None) -> dict[str, Floats]:
    """Return the CORP parts of the Brier score and, with ``_log``, of the log loss."""
    both = {"": corp(tally, fit=fit), "_log": corp_log(tally, fit=fit)}
    return {name + log: getattr(parts, name) for log, parts in both.items() for name in ("mcb", "dsc", "unc")}


def check_parts(tally: Tally, segments: Sequence[Sequence[Cell]], *, rtol: float = 1e-11, atol: float = 1e-14) -> None:
    by_score = loss_parts_by_score(tally)
    found = parts_of(tally) | {name: getattr(by_score, name) for name in BY_SCORE}
    expected = [exact(cells) for cells in segments]
    for name, values in found.items():
        np.testing.assert_allclose(values, [each[name] for each in expected], rtol=rtol, atol=atol, err_msg=name)
        assert (values >= 0).all()
    for log in ("", "_log"):
        whole = [each["loss" + log] for each in expected]
        of_fit = found["mcb" + log] - found["dsc" + log] + found["unc" + log]
        of_score = found["calibration_loss" + log] + found["refinement_loss" + log]
        for sums in (of_fit, of_score):
            np.testing.assert_allclose(sums, whole, rtol=1e-13, atol=1e-15)


def check_blocks(fit: Blocks, segments: Sequence[Sequence[Cell]]) -> None:
    expected = [pooled(cells) for cells in segments]
    offsets = np.cumsum([0] + [len(cells) for cells in segments])
    ends = [*fit.starts.tolist(), len(fit.value)]
    assert [b - a for a, b in pairwise(ends)] == [len(each) for each in expected]
    flat = [(i + at, j + at, w, k) for each, at in zip(expected, offsets, strict=False) for i, j, w, k in each]
    assert fit.first_cell.tolist() == [each[0] for each in flat]
    assert fit.last_cell.tolist() == [each[1] for each in flat]
    np.testing.assert_allclose(fit.value, [float(k / w) for _, _, w, k in flat], rtol=1e-14)
    np.testing.assert_allclose(fit.weight, [float(w) for _, _, w, _ in flat], rtol=1e-14)


SCORES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1), st.integers(1, 40).map(lambda i: i * 1e-17))
COUNTS = st.tuples(st.integers(1, 6), st.integers(0, 6)).map(lambda pair: (float(pair[0]), float(min(pair))))
SHARES = st.tuples(st.floats(0.01, 10), st.sampled_from([0.0, 0.2, 0.5, 1.0])).map(lambda p: (p[0], p[0] * p[1]))


@st.composite
def tables(draw: st.DrawFn, counts: Any = COUNTS) -> list[Cell]:
    scores = draw(st.lists(SCORES, min_size=1, max_size=12, unique_by=lambda s: s + 0.0))
    return [(s + 0.0, *draw(counts)) for s in sorted(scores)]


# ---------------------------------------------------------------- blocks
@FEW
@given(tables())
def test_the_fit_is_its_closed_form(cells: list[Cell]) -> None:
    fit = blocks(tally_of(cells))
    np.testing.assert_allclose(fit.spread(fit.value), [float(v) for v in max_min(cells)], rtol=1e-15)


@FEW
@given(st.lists(tables(), min_size=1, max_size=6))
def test_blocks_of_several_segments(segments: list[list[Cell]]) -> None:
    tally = tally_of(*segments)
    fit = blocks(tally)
    check_blocks(fit, segments)
    np.testing.assert_array_equal(fit.low_score, tally.score[fit.first_cell])
    np.testing.assert_array_equal(fit.high_score, tally.score[fit.last_cell])
    np.testing.assert_array_equal(fit.total(fit.rows), tally.sizes)
    same = np.repeat(np.arange(len(tally)), np.diff([*fit.starts, len(fit.value)]))
    assert (np.diff(fit.value)[np.diff(same) == 0] > 0).all()


def random_table(rng: np.random.Generator, kind: int) -> list[Cell]:
    n = int(rng.integers(1, 40))
    score = np.sort(rng.choice(10_000, n, replace=False)) / 9_999
    if kind == 0:  # counts: many ties
        weight = rng.integers(1, 5, n).astype(float)
        return list(zip(score, weight, np.floor(weight * rng.random(n) * 1.3).clip(0, weight), strict=True))
    if kind == 1:  # single rows
        return list(zip(score, np.ones(n), (rng.random(n) < np.arange(n) / n).astype(float), strict=True))
    scale = 10.0 ** rng.uniform(-100, 100, 1 if kind == 2 else n)  # weights of one scale, then of all scales
    weight = rng.random(n) * scale
    return list(zip(score, weight, weight * rng.random(n) ** 3, strict=True))


def test_exact_fits_wherever_the_segment_stands() -> None:
    rng = np.random.default_rng(3)
    segments = [random_table(rng, kind % 4) for kind in range(120)]
    lower, upper = (999_999.0, 499_999.0), (1_000_001.0, 500_000.0)  # rates 1e-12 apart
    segments += [[(0.1, *lower), (0.2, *upper)], [(0.1, *upper), (0.2, *lower)]]  # two blocks, and one
    alone = tally_of(*segments)
    check_blocks(blocks(alone), segments)
    check_parts(alone, segments)
    before = 2**18  # segments that stand before them
    tally = Tally(
        starts=np.concatenate([np.arange(before), alone.starts + before]),
        **{
            name: np.concatenate([np.ones(before), getattr(alone, name)])
            for name in ("score", "rows", "weight", "positive", "squared", "squared_positive")
        },
    )
    fit, there = blocks(alone), blocks(tally)
    parts, parts_there = parts_of(alone, fit=fit), parts_of(tally, fit=there)
    np.testing.assert_array_equal(there.first_cell[before:], fit.first_cell + before)
    for name in ("value", "weight", "positive", "low_score", "high_score", "rows"):
        np.testing.assert_array_equal(getattr(there, name)[before:], getattr(fit, name))
    for name, values in parts.items():
        np.testing.assert_array_equal(parts_there[name][before:], values)


@pytest.mark.parametrize("rows", [(5.0, 1.0, 6.0), (0.5, 0.1, 0.6)])
def test_equal_rates_are_one_block(rows: tuple[float, ...]) -> None:
    # the first two pool to 5/6, which the third has already; rounding on the way there must not part them
    positive = (rows[0], 0.0, rows[0])
    fit = blocks(tally_of(list(zip((0.2, 0.4, 0.6), rows, positive, strict=True)), [(0.0, 3.0, 1.0)]))
    assert fit.first_cell.tolist() == [0, 3]
    np.testing.assert_allclose(fit.value, [5 / 6, 1 / 3], rtol=1e-15)


def test_chunks_and_weights_change_nothing() -> None:
    rng = np.random.default_rng(4)
    segments = [random_table(rng, kind % 2) for kind in range(300)]
    tally = tally_of(*segments)
    whole, chunked = parts_of(tally), [parts_of(part) for _, part in tally.chunks(50)]
    twice, light, heavy = (
        parts_of(tally_of(*([(s, w * f, k * f) for s, w, k in cells] for cells in segments)))
        for f in (2.0, 1e-100, 1e100)
    )
    assert len(chunked) > 20
    for name, value in whole.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in chunked]), value)
        np.testing.assert_array_equal(twice[name], value)  # every row twice
        np.testing.assert_allclose(light[name], value, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(heavy[name], value, rtol=1e-12, atol=1e-15)


def test_one_long_segment_exactly_and_as_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    score = np.arange(1, 20_001) / 20_001  # far enough apart for scikit-learn, which pools what is 2.2e-16 apart
    label = (rng.random(20_000) < score).astype(float)
    cells = list(zip(score, np.ones(20_000), label, strict=True))
    check_blocks(blocks(tally_of(cells)), [cells])
    weight = rng.random(20_000)
    fit = blocks(tally_of(list(zip(score, weight, weight * label, strict=True))))
    theirs = IsotonicRegression().fit_transform(score, label, sample_weight=weight)
    np.testing.assert_allclose(fit.spread(fit.value), theirs, rtol=0, atol=1e-12)


def test_refitting_a_fit_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    fit = blocks(tally_of(*(random_table(rng, kind % 2) for kind in range(100))))
    tally = Tally.of_counts(fit.starts, fit.value, fit.weight, fit.positive)
    again, parts = blocks(tally), parts_of(tally)
    np.testing.assert_array_equal(again.value, fit.value)
    assert not parts["mcb"].any()
    assert not parts["mcb_log"].any()


# ---------------------------------------------------------------- parts
@FEW
@given(st.lists(st.one_of(tables(), tables(SHARES)), min_size=1, max_size=5))
def test_parts_by_definition(segments: list[list[Cell]]) -> None:
    check_parts(tally_of(*segments), segments)


def test_small_miscalibration_keeps_its_digits() -> None:
    # the losses are about .2 and their difference about 1e-19, less than the last digit of either
    cells = [((i + 0.5) / 10 * (1 + 1e-9 * (-1) ** i), 20.0 * (i + 1), (2.0 * i + 1) * (i + 1)) for i in range(10)]
    found, expected = parts_of(tally_of(cells)), exact(cells)
    for name in ("mcb", "mcb_log"):
        assert 0 < expected[name] < 1e-17
        assert found[name][0] == pytest.approx(expected[name], rel=1e-6, abs=0)


CERTAIN = {
    "a score of 0 with a positive": ([(0.0, 2, 1), (0.5, 2, 1)], True),
    "a score of 1 with a negative": ([(0.5, 2, 1), (1.0, 2, 1)], True),
    "both": ([(0.0, 1, 1), (1.0, 1, 0)], True),
    "certain and right": ([(0.0, 2, 0), (1.0, 3, 3)], False),
    "zeros that are right, the rest wrong": ([(0.0, 2, 0), (0.9, 3, 0)], False),
    "smallest score with a positive": ([(5e-324, 2, 1), (0.5, 2, 1)], False),
    "largest score below 1 with a negative": ([(0.5, 2, 1), (1 - 2**-53, 2, 1)], False),
    "one row": ([(0.3, 1, 1)], False),
    "one class": ([(0.1, 1, 0), (0.2, 3, 0)], False),
}


@pytest.mark.parametrize(("cells", "infinite"), CERTAIN.values(), ids=CERTAIN)
def test_certain_scores(cells: list[Cell], *, infinite: bool) -> None:
    check_parts(tally_of(cells), [cells])
    assert math.isinf(corp_log(tally_of(cells)).mcb[0]) == infinite


def test_weights_that_vanish_beside_others() -> None:
    # a negative too light to be seen in a rate of 1, which then must not contradict it; and the reverse
    for cells in (
        [(0.4, 1e-100, 0.0), (0.6, 1e100, 1e100)],
        [(0.4, 1e100, 1e100), (0.6, 1e-100, 0.0)],
        [(0.4, 1e100, 0.0), (0.6, 1e-100, 1e-100)],
    ):
        check_parts(tally_of(cells), [cells])


# ---------------------------------------------------------------- printed values
PRINTED = 6e-11  # ten digits


def golden() -> pd.DataFrame:
    """The 240 rows of the printed values: an arithmetic pattern."""
    i = np.arange(240)
    p, u = (37 * i) % 101 / 100, (53 * i + 11) % 97 / 97
    return pd.DataFrame({"p": p, "y": (u < 0.9 * p**1.4 + 0.05).astype(int), "w": 1 + 0.5 * (i % 3)})


def test_printed_values_of_model_diagnostics_calibre_and_reliabilitydiag() -> None:
    table = golden()
    plain, weighted = (corp(tally_of(cells_of(table.p, table.y, w))) for w in (None, table.w))
    assert plain.mcb[0] - plain.dsc[0] + plain.unc[0] == pytest.approx(0.1627458333, abs=PRINTED)
    assert (plain.mcb[0], plain.dsc[0]) == pytest.approx((0.0203263005, 0.1013131061), abs=PRINTED)
    assert weighted.mcb[0] - weighted.dsc[0] + weighted.unc[0] == pytest.approx(0.1641226389, abs=PRINTED)
    assert (weighted.mcb[0], weighted.dsc[0]) == pytest.approx((0.0202889872, 0.0998989872), abs=PRINTED)
    assert (plain.unc[0], weighted.unc[0]) == pytest.approx((0.2437326389, 0.2437326389), abs=PRINTED)
    smallest = np.finfo(float).eps  # calibre clips scores by it before it takes logarithms
    log = corp_log(tally_of(cells_of(table.p.clip(smallest, 1 - smallest), table.y)))
    expected = (0.0772005835, 0.2723623015, 0.6805595529)
    assert (log.mcb[0], log.dsc[0], log.unc[0]) == pytest.approx(expected, abs=PRINTED)


COMPARED = {"corp_brier", "corp_logloss", "isoreg_corp_brier", "murphy_distinct"}
TABLES = ("niamey2016", "probably_segment", "fte_games", "compas", "nycflights_late", "calzone", "tiny")


@cache
def reference_table(folder: Path, name: str) -> pd.DataFrame:
    if name.startswith("tiny:"):
        columns = json.loads((folder / "reference/tiny.json").read_text())[name.removeprefix("tiny:")]
        return pd.DataFrame({key: values for key, values in columns.items() if key != "note"})
    return pd.read_parquet(folder / "data" / f"{name}.parquet")


@cache
def reference_parts(folder: Path, table: str, where: str | None, score: str, weight: str | None) -> dict[str, float]:
    rows = reference_table(folder, table)
    rows = rows.query(where) if where else rows
    rows = rows.dropna(subset=[score, "y"])
    tally = tally_of(cells_of(rows[score], rows["y"], rows[weight] if weight else None))
    by_score = loss_parts_by_score(tally)
    found = {name: float(values[0]) for name, values in parts_of(tally).items()}
    return found | {name: float(getattr(by_score, name)[0]) for name in BY_SCORE}


@pytest.mark.parametrize("name", TABLES)
def test_reference_values(reference_folder: Path, name: str) -> None:
    lines = (reference_folder / "reference/reference.jsonl").read_text().splitlines()
    checked = 0
    for entry in map(json.loads, lines):
        if not entry["table"].startswith(name) or entry["metric"] not in COMPARED or "error" in entry:
            continue
        table, where = entry["table"].split(" ")[0], None if entry["id"].startswith("wgt") else entry["where"]
        parts = reference_parts(reference_folder, table, where, entry["score"], entry["args"].get("weight"))
        log = "_log" if entry["metric"] == "corp_logloss" else ""
        mcb, dsc, unc = (parts[part + log] for part in ("mcb", "dsc", "unc"))
        found = [mcb, dsc, unc, mcb - dsc + unc]
        if entry["metric"] == "murphy_distinct":
            found = [parts["calibration_loss"], unc - parts["refinement_loss"], unc]
        for mine, theirs in zip(found, entry["value"], strict=True):
            if theirs is not None:  # the peer failed there
                assert mine == pytest.approx(float(theirs), rel=0, abs=entry["tolerance"]), entry["id"]
        checked += 1
    assert checked >= 9
