"""Use an installed wheel as a user would, far from any checkout, and look into what was built.

    python check_wheel.py WHEEL SDIST

The environment holds the wheel and what it depends on, nothing else.
"""
# ruff: noqa: INP001, S101, S603

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tarfile
import zipfile
from importlib.resources import files
from pathlib import Path

import pandas as pd

import calframe

TEMPLATES = ("calframe-templates.txt", "report.html.j2", "report.css", "report.js")
ZIPPED = """
import sys
sys.path.insert(0, sys.argv[1])
import calframe
from calframe._demo import demo_table
assert sys.argv[1] in calframe.__file__, calframe.__file__
report = calframe.report(demo_table().head(2000), label="y", score="p_gbm", by="carrier")
assert report.to_html().startswith("<!doctype html>"), report.to_html()[:80]
"""


def main(wheel: Path, sdist: Path) -> None:
    """Run every check; the first that does not hold ends in a traceback."""
    with zipfile.ZipFile(wheel) as archive, tarfile.open(sdist) as source:
        inside_wheel, inside_sdist = archive.namelist(), source.getnames()
    for name in TEMPLATES:
        assert f"calframe/_templates/{name}" in inside_wheel, name
        assert any(path.endswith(f"/templates/{name}") for path in inside_sdist), name
    for name in ("calframe/py.typed", "calframe/_data/flights.parquet", "calframe/_data/README.md"):
        assert name in inside_wheel, name
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in inside_wheel)
    assert not [path for path in inside_wheel if path.startswith(("tests", "templates", "examples"))]
    for part in ("tests/", "examples/", "LICENSE", "CHANGELOG.md", "README.md"):
        assert any(f"/{part}" in path for path in inside_sdist), part
    use_pandas()
    subprocess.run([sys.executable, "-I", "-c", ZIPPED, str(wheel)], check=True)


def use_pandas() -> None:
    """Compute and report from a pandas frame with string keys, without pyarrow or any engine at hand."""
    for optional in ("pyarrow", "duckdb", "sklearn"):
        assert importlib.util.find_spec(optional) is None, f"{optional} is not a dependency, yet it came along"
    home = Path(str(files("calframe")))
    assert home.is_relative_to(sys.prefix), home
    assert (home / "_templates" / TEMPLATES[0]).is_file()
    assert not (home.parent / "templates").exists()
    rows = 400
    table = pd.DataFrame({"y": [0, 1] * rows, "p": [0.4, 0.6] * rows, "region": ["North", "South"] * rows})
    result = calframe.metrics(table, label="y", score="p", by="region", metrics=["rate", "gap"])
    assert isinstance(result, pd.DataFrame)
    assert result["region"].tolist() == ["North", "South"]
    assert result["rate"].tolist() == [0.0, 1.0]
    page = calframe.report(table, label="y", score="p", by="region").save(Path("pandas.html"))
    assert "North" in page.read_text(encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
