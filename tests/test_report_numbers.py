"""The numbers of a report are those of `metrics`, in every library, and its score grid has the edges it should have."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._errors import ArgumentError
from calframe._measures import _own
from calframe._roles import Roles
from calframe._segments import Part, read_part
from tests._definitions import edges_of
from tests._findings import gathered
from tests._grid import FINE, GRID, cells, near_edges
from tests._tables import Maker, approx, rows

POLARS = Maker("polars")


def table_of(seed: int, n: int = 4000) -> dict[str, Any]:
    """Return rows with ties, edges, missing values, weights and two groupings, one of them with a missing segment."""
    rng = np.random.default_rng(seed)
    score = rng.choice(np.concatenate([near_edges()[1:-1], np.round(rng.random(900), 2)]), n)
    score = np.clip(score, 0.001, 0.999)
    columns: dict[str, Any] = {
        "y": (rng.random(n) < 0.9 * score).astype(int).tolist(),
        "p": score.tolist(),
        "w": rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.02, 0.3, 0.38, 0.3]).tolist(),
        "area": rng.choice(["North", "South", "East", "tiny"], n, p=[0.5, 0.3, 0.19, 0.01]).tolist(),
        "shift": rng.integers(1, 4, n).tolist(),
    }
    for name, share in (("y", 0.01), ("p", 0.02), ("shift", 0.05)):
        columns[name] = [
            None if gone else value for gone, value in zip(rng.random(n) < share, columns[name], strict=True)
        ]
    return columns


# The table


METRICS = ("rate", "mean_score", "gap", "brier", "log_loss", "ece", "ece_expected")


@pytest.mark.parametrize("weight", [None, "w"])
def test_segments_have_the_numbers_of_metrics(make: Maker, weight: str | None) -> None:
    columns = table_of(1)
    roles = {"label": "y", "score": "p", "weight": weight}
    found = rows(calframe.report(make(columns), by=["area", "shift"], **roles).table)
    whole = calframe.metrics(make(columns), metrics=METRICS, confidence_level=0.95, **roles)
    compare(found, "", ["All rows"], rows(whole), weighted=weight is not None)
    for by in ("area", "shift"):
        measured = rows(calframe.metrics(make(columns), by=by, metrics=METRICS, confidence_level=0.95, **roles))
        names = ["(missing)" if key is None else str(int(key) if by == "shift" else key) for key in measured[by]]
        compare(found, by, names, measured, weighted=weight is not None)


def compare(
    found: dict[str, list[Any]], column: str, names: list[str], measured: dict[str, list[Any]], *, weighted: bool
) -> None:
    mine = {name: i for i, (of, name) in enumerate(zip(found["column"], found["segment"], strict=True)) if of == column}
    assert sorted(mine) == sorted(names)
    order = [mine[name] for name in names]
    for metric in (*METRICS, "gap_low", "gap_high"):
        assert [found[metric][i] for i in order] == approx(measured[metric]), (column, metric)
    for count in ("n", "n_missing"):
        assert [found[count][i] for i in order] == measured[count]
    weights = measured["weight_sum"] if weighted else measured["n"]
    assert [found["weight_sum"][i] for i in order] == approx([float(w) for w in weights])
    for i, weight, rate, gap in zip(order, weights, measured["rate"], measured["gap"], strict=True):
        assert found["n"][i] >= 5
        assert found["positives"][i] == pytest.approx(weight * rate, rel=1e-12)
        assert found["net"][i] == pytest.approx(found["n"][i] * gap, rel=1e-9, abs=1e-9)


COLUMNS = {
    "column": str, "segment": str, "n": int, "n_missing": int, "n_invalid": int, "weight_sum": float,
    "positives": float, "rate": float, "mean_score": float, "gap": float, "gap_low": float, "gap_high": float,
    "simultaneous_low": float, "simultaneous_high": float, "pvalue": float, "pvalue_adjusted": float, "verdict": str,
    "net": float, "rows_needed": float, "brier": float, "log_loss": float, "ece": float, "ece_expected": float,
}  # fmt: skip
AUDITED = {
    "gap_shrunken": float, "gap_shrunken_sd": float, "gap_to_rest": float, "gap_to_rest_low": float,
    "gap_to_rest_high": float, "pvalue_to_rest": float, "pvalue_to_rest_adjusted": float, "ecce": float,
    "ecce_pvalue": float, "ecce_pvalue_adjusted": float, "note": str,
}  # fmt: skip
KINDS = {"String": str, "Int64": int, "Float64": float}


def kinds(table: Any) -> dict[str, type]:
    import narwhals.stable.v2 as nw

    return {name: KINDS[str(kind)] for name, kind in nw.from_native(table).collect_schema().items()}


def test_the_table_is_of_the_library_of_the_input(make: Maker) -> None:
    found = calframe.report(make(table_of(2)), label="y", score="p", by="area").table
    assert isinstance(found, pl.DataFrame if make.lazy else make.result)
    assert kinds(found) == COLUMNS | AUDITED


@pytest.mark.parametrize(
    ("label", "score"),
    [([1, 0, 1, 0], [0.9, 0.8, 0.1, 0.2]), ([None] * 4, [0.9, 0.8, 0.1, 0.2]), ([1, 1, 1, 1], [1.0] * 4)],
    ids=["too few to judge", "nothing to measure", "one class"],
)
def test_columns_keep_their_types_where_they_hold_no_value(make: Maker, label: list[Any], score: list[float]) -> None:
    found = calframe.report(make({"y": label, "p": score, "s": ["a", "a", "b", "b"]}), label="y", score="p", by="s")
    assert kinds(found.table) == COLUMNS | AUDITED
    assert rows(found.table)["pvalue"] == [None] * 3


def test_the_segments_are_those_of_an_audit() -> None:
    data, by = pl.DataFrame(table_of(3)), ["area", "shift"]
    arguments = {"label": "y", "score": "p", "by": by, "weight": "w"}
    found = calframe.report(data, **arguments).table.filter(pl.col("column") != "")
    audit = calframe.audit(data, depth=1, numeric_bins=None, **arguments).table
    joined = found.with_columns(segment=pl.format("{}={}", "column", "segment")).join(audit, on="segment")
    assert joined.height == found.height == audit.height
    for name in ("n", "gap", "gap_low", "simultaneous_high", "pvalue_adjusted", "verdict", *AUDITED):
        assert joined[name].to_list() == approx(joined[f"{name}_right"].to_list()), name


def test_the_error_of_all_rows_is_tested_as_by_the_verb() -> None:
    data = pl.DataFrame(table_of(5))
    found = calframe.report(data, label="y", score="p").to_dict()["overall"]
    row = calframe.test(data, label="y", score="p").table.row(0, named=True)
    assert found["ece"] == pytest.approx(row["statistic"], rel=1e-9)
    assert found["ece_pvalue"] == pytest.approx(row["pvalue"], rel=1e-9)


def test_every_library_finds_the_same(make: Maker) -> None:
    columns = table_of(3)
    arguments = {"label": "y", "score": "p", "by": ["area", "shift"], "weight": "w"}
    found, expected = (calframe.report(m(columns), **arguments) for m in (make, POLARS))
    assert rows(found.table) == {name: approx(values) for name, values in rows(expected.table).items()}
    assert found.findings.fingerprint == expected.findings.fingerprint
    assert (found.verdict, found.headline) == (expected.verdict, expected.headline)


def test_rows_in_another_order_find_the_same() -> None:
    table = pl.DataFrame(table_of(4))
    one, two = (
        calframe.report(t, label="y", score="p", by=["area", "shift"])
        for t in (table, table.sample(fraction=1.0, shuffle=True, seed=0))
    )
    assert one.findings.fingerprint == two.findings.fingerprint
    assert rows(one.table) == {name: approx(values) for name, values in rows(two.table).items()}


@pytest.mark.parametrize(
    ("column", "value"), [("p", 0.5015625), ("s", "b"), ("p", None)], ids=["score bin", "segment", "missing"]
)
def test_the_fingerprint_is_that_of_the_counts(column: str, value: Any) -> None:
    columns: dict[str, list[Any]] = {"y": [0, 1] * 50, "p": [0.5] * 100, "s": ["a", "b"] * 50}
    one = gathered(pl.DataFrame(columns), by="s").fingerprint
    columns[column] = [value, *columns[column][1:]]
    assert gathered(pl.DataFrame(columns), by="s").fingerprint != one


@pytest.mark.parametrize(("n", "told"), [(1, False), (4, False), (5, True)])
def test_of_hardly_a_row_nothing_but_its_number_is_told(make: Maker, n: int, told: bool) -> None:  # noqa: FBT001
    columns = {"y": [0, 1] * 50, "p": [0.5] * 100, "s": ["rest"] * (100 - n) + ["small"] * n}
    found = calframe.report(make(columns), by="s", label="y", score="p")
    table = rows(found.table)
    place = table["segment"].index("small")
    kept = {name: values[place] for name, values in table.items() if values[place] is not None}
    assert ({"gap", "rate", "mean_score", "brier", "ece", "weight_sum"} <= set(kept)) is told
    assert kept["n"] == n
    if not told:
        assert set(kept) == {"column", "segment", "n", "n_missing", "n_invalid", "verdict", "note"}
        assert found.findings.groupings[0].curves.filter(pl.col("segment") == "small").is_empty()


def test_an_infinite_log_loss_is_infinite() -> None:
    table = pl.DataFrame({"y": [1, 0, 1, 1, 1], "p": [0.0, 0.5, 0.5, 0.5, 0.5]})
    found = calframe.report(table, label="y", score="p")
    assert found.table["log_loss"].to_list() == [float("inf")]
    assert found.to_dict()["overall"]["log_loss"] == "Infinity"


# Further metrics


def test_further_metrics_stand_on_the_page_with_and_without_segments() -> None:
    # scores of positives .8, .3 and of negatives .1, .6: 3 of 4 pairs are in order; brier (.01 + .36 + .04 + .49) / 4
    table = pl.DataFrame({"y": [0, 0, 1, 1] * 50, "p": [0.1, 0.6, 0.8, 0.3] * 50, "g": ["a"] * 100 + ["b"] * 100})
    for by in (None, "g"):
        found = calframe.report(table, label="y", score="p", by=by, metrics=["auc", "brier"])
        low, high = found.table["auc_low"][0], found.table["auc_high"][0]
        page = found.to_html()
        assert f"With 95% intervals: auc 0.75 ({low:.4g} to {high:.4g}); brier 0.225 (" in page
        assert page.count('<th scope="col">auc</th>') == (by is not None)
    assert "Further metrics" not in calframe.report(table, label="y", score="p").to_html()


@pytest.mark.parametrize("name", ["net", "segment", "column", "positives"])
def test_a_metric_named_like_a_column_of_reports_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_own, "_OWN", {})
    calframe.register_metric(name, lambda row: row.score, summary="mean score")
    table = pl.DataFrame({"y": [0, 1] * 50, "p": [0.5] * 100, "g": ["a", "b"] * 50})
    for by in (None, "g"):
        with pytest.raises(ArgumentError, match=f"metric '{name}' has the name of a column that every report has; reg"):
            calframe.report(table, label="y", score="p", by=by, metrics=["auc", name])


# The grid


def part_of(columns: dict[str, Any], make: Maker = POLARS, **roles: Any) -> Part:
    chosen = Roles.from_arguments(**{"label": "y", "score": "p", **roles})
    return read_part(make(columns), chosen, engine=None)


def test_every_edge_of_the_grid_belongs_to_the_bin_above(make: Maker) -> None:
    scores = near_edges()
    part = part_of({"y": [0, 1] + [0] * (len(scores) - 2), "p": scores}, make)
    expected = cells(scores.tolist(), [0] * len(scores))
    assert part.bin.tolist() == list(expected)
    assert part.cells.sums["n"].tolist() == [float(cell[0]) for cell in expected.values()]


def test_edges_are_rounded_where_scores_are_of_single_precision(make: Maker) -> None:
    edges = np.array(GRID, dtype=np.float32)
    low, high = (np.nextafter(edges, np.float32(end)) for end in (0.0, 1.0))
    scores = np.concatenate([edges, low, high])
    part = part_of({"y": np.arange(len(scores)) % 2, "p": scores}, make)
    expected = cells(scores.tolist(), [0] * len(scores), [float(edge) for edge in edges])
    assert part.bin.tolist() == list(expected)
    assert part.cells.sums["n"].tolist() == [float(cell[0]) for cell in expected.values()]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_fifteen_bins_of_the_grid_are_those_of_metrics(kind: type) -> None:
    rng = np.random.default_rng(5)
    scores = near_edges().astype(kind)
    table = pl.DataFrame({"y": (rng.random(len(scores)) < 0.4).astype(int), "p": scores})
    found = calframe.report(table, label="y", score="p").table
    measured = calframe.metrics(table, label="y", score="p", metrics=["ece", "ece_expected"], bins=15)
    assert found["ece"][0] == pytest.approx(measured["ece"][0], rel=1e-12)
    assert found["ece_expected"][0] == pytest.approx(measured["ece_expected"][0], rel=1e-12)


def test_edges_of_the_package_and_of_the_tests_are_the_same_numbers() -> None:
    assert edges_of(FINE) == GRID
    assert [GRID[64 * k] for k in range(16)] == edges_of(15)
