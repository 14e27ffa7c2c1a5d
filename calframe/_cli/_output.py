"""A table of results as CSV, JSON, Markdown or Parquet, to a file or as text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from calframe._cli._cells import NULL, name_text, number_text, pvalue_text
from calframe._cli._files import is_source
from calframe._results import records

TABLE_SUFFIXES = (".csv", ".parquet", ".json", ".md")
CHART_SUFFIXES = (".svg", ".png", ".html")
PAGE_SUFFIXES = (".html", ".json")

_COUNTS = frozenset({"df", "n_groups", "psi_empty_bins", "rows_needed"})  # of which some may not be known
_PVALUES = ("pvalue", "pvalue_adjusted")
_MARKUP = frozenset("\\|[]`*")  # what Markdown would act on


def check_target(path: Path, *, suffixes: Sequence[str], sources: Sequence[str], option: str) -> None:
    """Refuse a path that cannot be written, before any work is done.

    Parameters
    ----------
    path
        Where the result should go.
    suffixes
        The suffixes the command can write.
    sources
        The files the command reads, which it must not overwrite.
    option
        The option the path came from, for the message.

    Raises
    ------
    click.BadParameter
        If the suffix is unknown, the folder is missing, or the path is a folder or one of the sources.
    """
    problem = None
    if path.is_dir():
        problem = f"{str(path)!r} is a folder; name a file in it."
    elif path.suffix.lower() not in suffixes:
        problem = f"cannot write {str(path)!r}: the suffix says the format, and it must be one of {' '.join(suffixes)}."
    elif not path.parent.is_dir():
        problem = f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}."
    elif is_source(path, sources):
        problem = f"{str(path)!r} is also read; write to another file."
    if problem:
        raise click.BadParameter(problem, param_hint=f"'{option}'")


def check_output(path: Path, form: str | None, sources: Sequence[str], *, suffixes: Sequence[str]) -> None:
    """Refuse an `--output` that cannot be written, or that goes with `--format`.

    Parameters
    ----------
    path, sources, suffixes
        As for `check_target`.
    form
        What `--format` says.

    Raises
    ------
    click.UsageError
        Before any work is done.
    """
    if form is not None:
        msg = "--format is for printing; with --output the suffix says the format. Leave one of them out."
        raise click.UsageError(msg)
    check_target(path, suffixes=suffixes, sources=sources, option="--output")


def write_table(table: pl.DataFrame, path: Path, *, keys: Sequence[str] = ()) -> None:
    """Write a table in the format of the path's suffix, whole or not at all.

    Parameters
    ----------
    table
        The result, unrounded.
    path
        A path with one of `TABLE_SUFFIXES`.
    keys
        As for `table_text`.
    """
    if path.suffix.lower() == ".parquet":
        put(path, table.write_parquet)
    else:
        put_text(path, table_text(table, form=path.suffix.lower().removeprefix("."), keys=keys))


def put_text(path: Path, text: str) -> None:
    """Write text to a file, whole or not at all.

    Parameters
    ----------
    path
        The file.
    text
        What it will hold, in UTF-8.
    """
    put(path, lambda part: part.write_text(text, encoding="utf-8"))


def put(path: Path, write: Callable[[Path], object]) -> None:
    """Let a function write a file, whole or not at all.

    Parameters
    ----------
    path
        The file.
    write
        Writes to the path it is given, which takes the place of the file when it is done.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def table_text(table: pl.DataFrame, *, form: str, keys: Sequence[str] = ()) -> str:
    """Write a table as text.

    Parameters
    ----------
    table
        The result, unrounded.
    form
        `"csv"` and `"json"` keep every digit; `"md"` rounds for reading. JSON has no infinity: there it is
        the text `Infinity`.
    keys
        Columns in which null is a segment of its own, and not a value that is not known.

    Returns
    -------
    str
        The text, with a line break at its end.
    """
    if form == "csv":
        return table.write_csv()
    if form == "json":
        return json.dumps(records(table), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return _markdown(table, keys)


def _markdown(table: pl.DataFrame, keys: Sequence[str]) -> str:
    from calframe._cli._names import names_of  # noqa: PLC0415  rich is for results, not for --help

    rule = ["---:" if kind.is_numeric() else "---" for kind in table.dtypes]
    columns = [
        [escaped(name) for name in names_of(column)] if column.name in keys else [_cell(one, column) for one in column]
        for column in table
    ]
    rows = [[escaped(name_text(name)) for name in table.columns], rule, *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(value: Any, column: pl.Series) -> str:
    if value is None:
        return NULL
    if column.name.endswith(_PVALUES) or column.name.startswith("pvalue_to_"):
        return escaped(pvalue_text(value))
    if column.name in _COUNTS and math.isfinite(value):
        value = round(value)
    return number_text(value).replace(",", "") if column.dtype.is_numeric() else escaped(name_text(value))


def escaped(text: str) -> str:
    """Return text on which Markdown does not act."""
    marked = "".join(f"\\{char}" if char in _MARKUP else char for char in text)
    return marked.replace("&", "&amp;").replace("<", "&lt;")


def file_size(path: Path) -> str:
    """Return the size of a file as people say it, such as `0.49 MB`."""
    size = path.stat().st_size
    return f"{size / 1e6:.2f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
