"""What a package must bring along: its table, its templates, its licence, its command."""

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import polars as pl
import pytest

from calframe._demo import demo_table, write_demo_table
from calframe._version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FLIGHTS = ROOT / "calframe" / "_data" / "flights.parquet"


def test_the_project_says_what_it_is() -> None:
    project = PROJECT["project"]
    assert (project["name"], project["license"], project["requires-python"]) == ("calframe", "BSD-3-Clause", ">=3.11")
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence.startswith("BSD 3-Clause License\n")
    assert "The calframe developers" in licence
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_engines_are_no_dependencies() -> None:
    required = {entry.split(">")[0] for entry in PROJECT["project"]["dependencies"]}
    assert required.isdisjoint({"duckdb", "pyarrow", "pyspark", "dask", "ibis-framework", "scikit-learn"})


def test_the_wheel_takes_the_templates_along() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"templates": "calframe/_templates"}
    sdist = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert {"/calframe", "/templates", "/tests", "/examples", "/LICENSE"} <= set(sdist["include"])
    assert (ROOT / "templates" / "calframe-templates.txt").is_file()  # by which the templates are found
    assert (ROOT / "calframe" / "py.typed").is_file()


def test_the_demo_table_is_small_and_whole() -> None:
    assert FLIGHTS.stat().st_size <= 300_000
    table = demo_table()
    assert dict(table.schema) == {
        "carrier": pl.String(),
        "origin": pl.String(),
        "date": pl.Date(),
        "y": pl.Int8(),
        "p_gbm": pl.Float64(),
    }
    assert table.height == 60_000
    assert table.null_count().sum_horizontal().item() == 0
    assert table["p_gbm"].is_between(0, 1).all()
    assert set(table["y"]) == {0, 1}


def test_the_demo_table_keeps_the_rare_carriers() -> None:
    # the counts of the table's source, see calframe/_data/README.md
    rows = dict(demo_table()["carrier"].value_counts().iter_rows())
    assert (len(rows), rows["HA"], rows["OO"]) == (16, 53, 11)


def test_the_demo_table_can_be_made_again(tmp_path: Path) -> None:
    shuffled = demo_table().sample(fraction=1.0, shuffle=True, seed=0)
    flights = shuffled.with_columns(pl.col("date").cast(pl.Datetime), seats=pl.lit(180))
    write_demo_table(flights, path=tmp_path / "flights.parquet")
    made = pl.read_parquet(tmp_path / "flights.parquet")
    assert made.schema == demo_table().schema
    keys = ["date", "origin", "carrier"]
    assert made.select(keys).equals(demo_table().select(keys))
    assert made.sort(made.columns).equals(demo_table().sort(made.columns))


def test_the_readme_commands_can_be_found() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    for marker in ("<!-- ci:test -->", "<!-- ci:demo -->"):
        assert lines.count(marker) == 1
        assert lines[lines.index(marker) + 1].startswith("```")


@pytest.mark.parametrize("arguments", [["--version"], ["metrics", "--help"]])
def test_the_module_runs_as_a_command(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "calframe", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stderr == ""
    assert done.stdout.startswith(
        f"calframe {__version__}" if arguments == ["--version"] else "Usage: calframe metrics"
    )


def test_the_entry_point_is_the_same_command() -> None:
    assert PROJECT["project"]["scripts"] == {"calframe": "calframe._cli:main"}
    from calframe._cli import main

    for point in entry_points(group="console_scripts", name="calframe"):
        assert point.load() is main
