"""A table of results as CSV, JSON, Markdown or Parquet, to a file or as text."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from calframe._cli._cells import NULL, name_text, number_text
from calframe._cli._files import is_source
from calframe._results import records

TABLE_SUFFIXES = (".csv", ".parquet", ".json", ".md")
PAGE_SUFFIXES = (".html", ".json")

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


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write a table in the format of the path's suffix, whole or not at all.

    Parameters
    ----------
    table
        The result, unrounded.
    path
        A path with one of `TABLE_SUFFIXES`.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.suffix.lower() == ".parquet":
            table.write_parquet(part)
        else:
            part.write_text(table_text(table, form=path.suffix.lower().removeprefix(".")), encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def table_text(table: pl.DataFrame, *, form: str) -> str:
    """Write a table as text.

    Parameters
    ----------
    table
        The result, unrounded.
    form
        `"csv"` and `"json"` keep every digit; `"md"` rounds for reading. JSON has no infinity: there it is
        the text `Infinity`.

    Returns
    -------
    str
        The text, with a line break at its end.
    """
    if form == "csv":
        return table.write_csv()
    if form == "json":
        return json.dumps(records(table), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return _markdown(table)


def _markdown(table: pl.DataFrame) -> str:
    rule = ["---:" if kind.is_numeric() else "---" for kind in table.dtypes]
    columns = [[_cell(value, column) for value in column] for column in table]
    rows = [[_escaped(name_text(name)) for name in table.columns], rule, *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(value: Any, column: pl.Series) -> str:
    if column.dtype.is_numeric():
        return str(value) if isinstance(value, int) else number_text(value)
    return NULL if value is None and column.name == "note" else _escaped(name_text(value))


def _escaped(text: str) -> str:
    marked = "".join(f"\\{char}" if char in _MARKUP else char for char in text)
    return marked.replace("&", "&amp;").replace("<", "&lt;")


def file_size(path: Path) -> str:
    """Return the size of a file as people say it, such as `0.49 MB`."""
    size = path.stat().st_size
    return f"{size / 1e6:.2f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
