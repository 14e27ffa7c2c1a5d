"""Maps in files: what is read gives the very same numbers, and what is no map is refused."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import calframe
from calframe._errors import ArgumentError, CalframeError
from tests._fitted_maps import BINARY, SEGMENTS, SEVERAL, binary_map, class_map, fresh

LINKS = ("probability", "logit")


def same(found: calframe.CalibrationMap, again: calframe.CalibrationMap, table: pl.DataFrame) -> None:
    """Assert that two maps give the same bits, and say the same of themselves."""
    first, second = calframe.apply(table, found), calframe.apply(table, again)
    assert first.columns == second.columns
    for name in first.columns[table.width :]:
        assert first[name].to_numpy().tobytes() == second[name].to_numpy().tobytes()
    assert found.to_dict() == again.to_dict()
    assert found.table.equals(again.table)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("by", SEGMENTS, ids=["whole", "g", "g and h"])
def test_a_map_of_a_file_gives_the_same_bits(by: tuple[str, ...], link: str, tmp_path: Path) -> None:
    for several, cases, made in ((False, BINARY, binary_map), (True, SEVERAL, class_map)):
        table = pl.DataFrame(fresh(several=several, link=link), strict=False)
        for case in cases:
            found = made(case, by, link)
            same(found, calframe.load_map(found.save(tmp_path / "map.json")), table)


def test_a_second_save_writes_the_same_file(tmp_path: Path) -> None:
    for found in (binary_map("spline", ("g", "h")), class_map("ovr_venn_abers", ("g",))):
        first = found.save(tmp_path / "first.json").read_bytes()
        assert calframe.load_map(tmp_path / "first.json").save(tmp_path / "second.json").read_bytes() == first


def test_another_process_gives_the_same_bits(tmp_path: Path) -> None:
    table = pl.DataFrame(fresh(several=False), strict=False)
    table.write_parquet(tmp_path / "table.parquet")
    cases = ("platt", "isotonic", "spline", "venn_abers")
    for case in cases:
        binary_map(case, ("g", "h")).save(tmp_path / f"{case}.json")
    program = (
        "import sys, polars, calframe\n"
        "table = polars.read_parquet('table.parquet')\n"
        "for case in sys.argv[1:]:\n"
        "    found = calframe.apply(table, calframe.load_map(f'{case}.json'))\n"
        "    print(*[None if value is None else value.hex() for value in found['p_calibrated']])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *cases], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    for case, line in zip(cases, done.stdout.splitlines(), strict=True):
        values = calframe.apply(table, binary_map(case, ("g", "h")))["p_calibrated"]
        assert line.split() == ["None" if value is None else value.hex() for value in values]


def test_the_file_is_plain_json(tmp_path: Path) -> None:
    def refuse(name: str) -> None:
        msg = f"{name} is no JSON"
        raise AssertionError(msg)

    for found in [*(binary_map(case, ("g",)) for case in BINARY), *(class_map(case, ("g",)) for case in SEVERAL)]:
        text = found.save(tmp_path / "map.json").read_text(encoding="utf-8")
        record = json.loads(text, parse_constant=refuse)
        assert record["schema"] == "calframe.calibration_map"
        assert record["schema_version"] == 1
        assert text.endswith("\n")


def test_a_segment_without_a_usable_row_is_written_too(tmp_path: Path) -> None:
    # all scores of segment b are missing, so that it has neither a lowest nor a highest one
    table = pl.DataFrame({"g": ["a", "a", "a", "b"], "y": [0, 1, 0, 1], "p": [0.2, 0.6, 0.7, None]})
    for method in ("platt", "isotonic", "histogram", "venn_abers"):
        found = calframe.fit(table, label="y", score="p", by="g", method=method, pooling="none")
        record = json.loads(found.save(tmp_path / "map.json").read_text(encoding="utf-8"))
        assert record["segments"]["low"] == [0.2, None]
        same(found, calframe.load_map(tmp_path / "map.json"), table)


def test_infinite_scores_are_written_too(tmp_path: Path) -> None:
    table = pl.DataFrame({"y": [0, 1, 0, 1, 1], "z": [-math.inf, -1.0, 0.5, 2.0, math.inf]})
    for method in ("platt", "beta", "temperature", "isotonic", "spline", "venn_abers", "identity"):
        found = calframe.fit(table, label="y", score="z", link="logit", method=method)
        same(found, calframe.load_map(found.save(tmp_path / "map.json")), table)


def test_numbers_of_every_size_are_kept(tmp_path: Path) -> None:
    table = pl.DataFrame({"y": [0, 0, 1, 0, 1, 1], "p": [5e-324, 1e-300, 0.1, math.nextafter(0.1, 1), 0.3, 1 - 2**-53]})
    found = calframe.fit(table, label="y", score="p", method="isotonic")
    again = calframe.load_map(found.save(tmp_path / "map.json"))
    assert again.form.x.tobytes() == found.form.x.tobytes()
    same(found, again, table)


def test_a_map_of_vectors_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([1, 2, 3], 60)
    table = pl.DataFrame({"p": shares.tolist(), "y": rng.integers(0, 3, 60)})
    found = calframe.fit(table, label="y", score="p", classes=[0, 1, 2], method="vector")
    same(found, calframe.load_map(found.save(tmp_path / "map.json")), table)


# ------------------------------------------------------------------ maps of few or odd rows
FEWEST = {"vector": 5, "matrix": 8, "dirichlet": 8}  # free ones: a number added to all classes changes nothing
ODD_LABELS = {
    "one class": lambda p: np.ones(len(p), dtype=int),
    "one class of a segment": lambda p: np.where(np.arange(len(p)) % 5 == 0, 0, (p > p.mean()).astype(int)),
    "separable": lambda p: (p > np.median(p)).astype(int),
    "turned round": lambda p: (p < np.median(p)).astype(int),
    "by turns": lambda p: np.arange(len(p)) // 5 % 2,
}
ODD_SCORES = {
    "spread": lambda rows: np.linspace(0.01, 0.99, rows),
    "constant": lambda rows: np.full(rows, 0.3),
    "zeros and ones": lambda rows: (np.arange(rows) // 3 % 2).astype(float),
    "neighbours": lambda rows: np.where(np.arange(rows) % 2 == 0, 0.5, math.nextafter(0.5, 1)),
    "tiny": lambda rows: np.where(np.arange(rows) % 3 == 0, 5e-324, 1e-300),
}


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("case", BINARY)
def test_a_map_of_odd_rows_is_read_again(case: str, by: str | None, rows: int, tmp_path: Path) -> None:
    options = BINARY[case] if by or "pooling" not in BINARY[case] else BINARY[case] | {"pooling": "none"}
    for scores in ODD_SCORES.values():
        p = scores(rows)
        for labels in ODD_LABELS.values():
            table = pl.DataFrame({"p": p, "y": labels(p), "g": [f"g{i % 5}" for i in range(rows)]})
            found = calframe.fit(table, label="y", score="p", by=by, positive=1, **options)
            assert calframe.load_map(found.save(tmp_path / "map.json")).to_dict() == found.to_dict()
            assert calframe.apply(table, found)["p_calibrated"].is_between(0.0, 1.0).all()


@pytest.mark.parametrize("rows", [1, 5, 60])
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("case", SEVERAL)
def test_a_map_of_odd_rows_of_classes_is_read_again(case: str, by: str | None, rows: int, tmp_path: Path) -> None:
    shares = {"spread": np.random.default_rng(3).dirichlet([1, 2, 3], rows), "ends": np.eye(3)[np.arange(rows) % 3]}
    shares["constant"] = np.tile([0.2, 0.3, 0.5], (rows, 1))
    for p in shares.values():
        labels = {"one": np.zeros(rows, dtype=int), "two": np.arange(rows) // 5 % 2, "largest": p.argmax(axis=1)}
        labels["another"] = (p.argmax(axis=1) + 1) % 3
        for y in labels.values():
            table = pl.DataFrame({f"p_{name}": p[:, i] for i, name in enumerate("abc")})
            table = table.with_columns(
                y=pl.Series(["abc"[i] for i in y]), g=pl.Series([f"g{i % 5}" for i in range(rows)])
            )
            given: dict[str, Any] = {"label": "y", "score": {name: f"p_{name}" for name in "abc"}, "by": by}
            if rows < FEWEST.get(case, 1):
                with pytest.raises(ArgumentError, match=rf"{FEWEST[case]} parameters, and the table {rows} rows"):
                    calframe.fit(table, **given, **SEVERAL[case])
                continue
            found = calframe.fit(table, **given, **SEVERAL[case])
            assert calframe.load_map(found.save(tmp_path / "map.json")).to_dict() == found.to_dict()
            made = calframe.apply(table, found).select(pl.col("^p_calibrated_.*$")).to_numpy()
            assert ((made >= 0.0) & (made <= 1.0)).all()


# ------------------------------------------------------------------ what is no map
def saved(tmp_path: Path, change: Callable[[dict[str, Any]], object], found: Any = None) -> Path:
    """Return the file of a map after a change of its record."""
    found = binary_map("platt", ("g",)) if found is None else found
    record = json.loads(found.save(tmp_path / "map.json").read_text(encoding="utf-8"))
    change(record)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


@pytest.mark.parametrize("text", ["", "{", "p,y\n0.1,1\n", "NaN,", "[" * 100_000, "1" * 10_000], ids=range(6))
def test_what_is_no_json_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CalframeError, match=r"map\.json' is no calibration map: it is not JSON"):
        calframe.load_map(path)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    found = binary_map("platt", ("g",))
    text = found.save(tmp_path / "map.json").read_text(encoding="utf-8")
    (tmp_path / "marked.json").write_text(text, encoding="utf-8-sig")
    assert calframe.load_map(tmp_path / "marked.json").to_dict() == found.to_dict()


def test_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.parquet"
    path.write_bytes(b"PAR1\xff\xfe\x00")
    with pytest.raises(CalframeError, match=r"map\.parquet' is no calibration map: it is not JSON"):
        calframe.load_map(path)


@pytest.mark.parametrize("record", [None, 1, "text", [], {}, {"schema": "another"}, {"schema": None}])
def test_another_schema_is_refused(record: Any, tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(CalframeError, match=r"has no schema 'calframe\.calibration_map'. Maps are written by \.save"):
        calframe.load_map(path)


@pytest.mark.parametrize("version", [0, 2, "1", None, [1], True, 1.0])
def test_an_unknown_version_is_refused(version: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, lambda record: record.update(schema_version=version))
    with pytest.raises(CalframeError, match=re.escape(f"of version {version!r}; this calframe reads version 1")):
        calframe.load_map(path)


def damages() -> dict[str, tuple[Any, Callable[[dict[str, Any]], object]]]:
    """Return what may have become of a file, each with the map that it is of."""

    def at(*path: Any, value: Any) -> Callable[[dict[str, Any]], object]:
        def change(record: dict[str, Any]) -> None:
            *inside, last = path
            for step in inside:
                record = record[step]
            record[last] = value

        return change

    platt, steps = binary_map("platt", ("g",)), binary_map("isotonic", ("g",))
    spline, pair = binary_map("spline", ("g",)), binary_map("venn_abers", ("g",))
    pooled, classes = binary_map("isotonic, pooled", ("g",)), class_map("matrix", ("g",))
    parts = class_map("ovr_platt", ("g",))
    return {
        "no form": (platt, lambda record: record.pop("form")),
        "no segments": (platt, lambda record: record.pop("segments")),
        "an unknown form": (platt, at("form", "form", value="forest")),
        "a form that is a list": (platt, at("form", value=[])),
        "a parameter less": (platt, lambda record: record["form"]["values"].pop()),
        "a parameter of one curve less": (platt, lambda record: record["form"]["values"][0].pop()),
        "a parameter that is text": (platt, at("form", "values", 0, 0, value="steep")),
        "a parameter that is null": (platt, at("form", "values", 0, 0, value=None)),
        "an unknown feature": (platt, at("form", "features", 0, value="cosine")),
        "a feature less": (platt, at("form", "features", value=["logit"])),
        "a curve that does not exist": (platt, at("segments", "curve", 0, value=99)),
        "a negative curve": (platt, at("segments", "curve", 0, value=-1)),
        "a segment without rows": (platt, lambda record: record["segments"]["n"].pop()),
        "a segment without a note": (platt, lambda record: record["segments"]["note"].pop()),
        "a key less": (platt, lambda record: record["segments"]["keys"][0]["values"].pop()),
        "a key that is null": (platt, at("segments", "keys", 0, "values", 0, value=None)),
        "an unknown type of keys": (platt, at("segments", "keys", 0, "type", value="Series")),
        "keys of another type": (platt, at("segments", "keys", 0, "type", value="Int64")),
        "no curve": (platt, at("form", "values", value=[[], []])),
        "a score that is no list": (platt, at("scores", value=7)),
        "points out of order": (steps, lambda record: record["form"]["x"].reverse()),
        "a point less": (steps, lambda record: record["form"]["y"].pop()),
        "a point that is null": (steps, at("form", "y", 0, value=None)),
        "a start beyond the end": (steps, at("form", "starts", 1, value=10**6)),
        "a first start that is not 0": (steps, at("form", "starts", 0, value=1)),
        "starts out of order": (steps, lambda record: record["form"]["starts"].reverse()),
        "an unknown side": (steps, at("form", "side", value="middle")),
        "knots out of order": (spline, lambda record: record["form"]["x"].reverse()),
        "a bend less": (spline, lambda record: record["form"]["bend"].pop()),
        "one side of a pair": (pair, lambda record: record["form"].pop("low")),
        "sides of unequal numbers": (pair, at("form", "low", "starts", value=[0])),
        "no base curve": (pooled, at("form", "base", value=None)),
        "a matrix that is not square": (classes, lambda record: record["form"]["weight"][0].pop()),
        "a class less": (classes, lambda record: record["classes"].pop()),
        "an intercept less": (classes, lambda record: record["form"]["shift"].pop()),
        "a part of a mixture": (classes, lambda record: record["form"].update(cooling=[1.0] * 7)),
        "a part for each class but one": (parts, lambda record: record["form"]["classes"].pop()),
        "parts of unequal numbers": (parts, at("form", "classes", 0, "values", value=[[1.0], [0.0]])),
        "classes of one score": (platt, at("classes", value=["a", "b", "c"])),
    }


@pytest.mark.parametrize("damage", damages())
def test_a_damaged_file_is_refused(damage: str, tmp_path: Path) -> None:
    found, change = damages()[damage]
    with pytest.raises(CalframeError, match=r"(?s)changed\.json' is a damaged calibration map \(.+\); fit and save"):
        calframe.load_map(saved(tmp_path, change, found))


def test_a_missing_file_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
        calframe.load_map(tmp_path / "nothing.json")
