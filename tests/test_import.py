"""`import calframe`, each time in a fresh process: light, quiet, repeatable, and `.calib` is there."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def fresh(code: str) -> str:
    """Run code in a new process with warnings as errors and return what it printed, on stdout and stderr."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("heavy", ["scipy", "altair", "jinja2", "vl_convert", "click", "rich", "sqlglot"])
def test_import_does_not_load(heavy: str) -> None:
    assert fresh(f"import sys, calframe; print([name for name in sys.modules if name.split('.')[0] == {heavy!r}])") == (
        "[]\n"
    )


def test_import_is_quiet() -> None:
    assert fresh("import calframe") == ""


def test_import_again_is_quiet_and_registers_once() -> None:
    code = """
import importlib
import calframe
import polars as pl
before = pl.DataFrame.calib
importlib.reload(calframe)
importlib.reload(calframe._namespaces)
calframe._namespaces.register()
print(pl.DataFrame.calib is before)
"""
    assert fresh(code) == "True\n"


@pytest.mark.parametrize("frame", ["pd.DataFrame", "pl.DataFrame", "pl.LazyFrame"])
def test_import_registers_the_namespace(frame: str) -> None:
    code = f"""
import pandas as pd, polars as pl
assert not hasattr({frame}, "calib")
import calframe
table = {frame}({{"y": [1, 0], "p": [0.5, 0.5]}})
print(sorted(name for name in dir(table.calib) if not name.startswith("_")))
"""
    verbs = "answer_confidence apply audit compare cross_fit curve decide diagnose drift fit metrics parse_confidence"
    verbs += " report selective shift_prior test validate"
    assert fresh(code) == f"{verbs.split()}\n"


def test_every_public_name_is_there_and_sorted() -> None:
    code = """
import calframe
names = calframe.__all__
assert [name for name in names if not hasattr(calframe, name)] == []
print(names == sorted(names))
"""
    assert fresh(code) == "True\n"


def test_import_changes_no_setting_of_others() -> None:
    code = """
import locale, logging, warnings
import pandas as pd, polars as pl
def settings():
    return list(warnings.filters), pd.options.display.max_rows, pl.Config.state(), logging.root.handlers[:]
before = settings()
import calframe
print(settings() == before)
"""
    assert fresh(code) == "True\n"
