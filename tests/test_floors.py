"""Imports go down: a module uses lower floors only, and each library has its own rooms."""

import ast
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "calframe"

# One line a floor, from the ground up. A folder is one room: its modules may import each other.
FLOORS = [
    {"_nearest"},
    {"_errors", "_typing", "_version", "_demo"},
    {"_kernels", "_options", "_words", "_notes"},
    {
        "_charts",
        "_roles",
        "_label",
        "_classes",
        "_binning",
        "_registry",
        "_conventions",
        "_fitting",
        "_testing",
        "_answers",
    },
    {"_columns", "_terms"},
    {"_pandas", "_measures"},
    {"_source"},
    {"_table"},
    {"_rows"},
    {"_class_faults"},
    {"_faults"},
    {"_cells"},
    {"_reading", "_closing", "_results"},
    {"_effects"},
    {"_measuring", "_curve_tables", "_maps", "_nulls", "_selective_tables", "_decide_tables", "_diagnose_tables"},
    {"_hypotheses"},
    {"_tested"},
    {"_tested_tables", "_metrics", "_curve", "_register", "_expr", "_verdicts", "_periods", "_fit", "_apply"},
    {"_comparing", "_auditing", "_drifting"},
    {"_inference", "_compare", "_audit", "_drift", "_selective", "_decide", "_diagnose", "_confidence"},
    {"_folds", "_prior", "_gate"},
    {"_out_of_fold"},
    {"_cross_fit", "_candidates", "_gains"},
    {"_validate"},
    {"_segments"},
    {"_extras"},
    {"_report"},
    {"_verb_report"},
    {"_namespaces", "_cli"},
    {"__init__"},
    {"__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# Third parties, and the rooms that may use them; a library without a line may not be imported at all.
TABLES = set(FLOOR) - {"_kernels", "_fitting", "_testing", "_words"}
LIBRARIES = {
    "scipy": {"_kernels", "_fitting", "_testing"},
    "numpy": set(FLOOR) - {"_charts", "_namespaces", "_cli"},
    "narwhals": TABLES,
    "pandas": TABLES,
    "polars": TABLES,
    "altair": {"_charts", "_curve", "_report", "_selective", "_decide", "_drift", "_drifting", "_audit", "_compare"},
    "vl_convert": {"_report"},
    "jinja2": {"_report"},
    "markupsafe": {"_report"},
    "sqlglot": {"_maps"},
    "sklearn": {"_maps"},  # inside a function that only scikit-learn calls
    "click": {"_cli"},
    "rich": {"_cli"},
}


def problems(room: str, source: str) -> list[str]:
    """Return the imports of a module, also those inside functions, that its floor forbids."""
    imported = [name for node in ast.walk(ast.parse(source)) for name in names(node)]
    return [name for name in imported if not allowed(room, name)]


def names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def allowed(room: str, name: str) -> bool:
    library, *inside = name.split(".")
    if library == "calframe":
        target = inside[0] if inside and inside[0].startswith("_") else "__init__"
        return target == room or FLOOR.get(target, len(FLOORS)) < FLOOR[room]
    return library in sys.stdlib_module_names or room in LIBRARIES.get(library, ())


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_from_lower_floors_only(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert room in FLOOR, f"give {room} a floor in FLOORS"
    assert problems(room, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("_kernels", "from calframe._charts import forest"),
        ("_kernels", "import polars as pl"),
        ("_table", "def late():\n    from calframe._metrics import metrics"),
        ("_report", "import calframe"),
        ("_report", "from calframe import metrics"),
        ("_metrics", "from jinja2 import Environment"),
        ("_cells", "from scipy import stats"),
        ("_cli", "import requests"),
        ("_cli", "from calframe._not_in_the_table import x"),
    ],
)
def test_an_import_that_goes_up_is_found(room: str, source: str) -> None:
    assert len(problems(room, source)) == 1


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("_kernels", "import numpy as np\nfrom calframe._kernels._binned import segment_sum"),
        ("_cli", "import json\nfrom calframe._cli import _options\nfrom calframe._report import report"),
        ("__main__", "from calframe import metrics"),
    ],
)
def test_an_import_that_goes_down_passes(room: str, source: str) -> None:
    assert problems(room, source) == []
