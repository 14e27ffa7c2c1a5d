"""A result object printed, drawn or written, as the options say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from calframe._cli import _options as given
from calframe._cli._output import (
    CHART_SUFFIXES,
    TABLE_SUFFIXES,
    check_output,
    file_size,
    put_text,
    table_text,
    write_table,
)
from calframe._cli._terminal import emit, waiting
from calframe._results import to_polars
from calframe._typing import Json


class Found(Protocol):
    """What every result object has."""

    @property
    def table(self) -> Any:
        """The table, in the library of the input."""

    @property
    def by(self) -> tuple[str, ...]:
        """The segment columns."""

    def to_dict(self) -> Json:
        """Return it as JSON-ready data."""


def output_option(what: str, *, drawn: bool = False) -> given.Decorator:
    """Make the option `--output` of a command that gives a result object.

    Parameters
    ----------
    what
        What is written, for the help.
    drawn
        Whether it can be drawn, too.

    Returns
    -------
    callable
        The decorator.
    """
    chart = f", or as a chart ({' '.join(CHART_SUFFIXES)})" if drawn else ""
    return given.output_file(
        f"{what} to this file, by its suffix: as a table, unrounded ({' '.join(TABLE_SUFFIXES)}; .json says how it was "
        f"made, too){chart}. Default: print the table."
    )


def check_given(output: Path | None, form: str | None, files: Sequence[str], *, drawn: bool = False) -> None:
    """Refuse an `--output` that cannot be written, before any work is done.

    Parameters
    ----------
    output, form, files
        What was typed.
    drawn
        Whether the result can be drawn.
    """
    if output is not None:
        check_output(output, form, files, suffixes=(*TABLE_SUFFIXES, *(CHART_SUFFIXES if drawn else ())))


def give(
    found: Found,
    view: Callable[[Any], str],
    *,
    output: Path | None,
    form: str | None,
    keys: Sequence[str] | None = None,
) -> None:
    """Print a result, or write it.

    Parameters
    ----------
    found
        The result object.
    view
        Lays it out for reading.
    output, form
        What was typed.
    keys
        Columns in which null is a segment of its own. Default: the segment columns.
    """
    keys = found.by if keys is None else keys
    if output is None:
        emit(_text(found, form, keys) if form not in (None, "table") else view(found))
        return
    _save(found, output, keys)
    click.echo(f"Wrote {output} ({file_size(output)}).", err=True)


def _text(found: Found, form: str | None, keys: Sequence[str]) -> str:
    if form == "json":
        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return table_text(to_polars(found.table), form=str(form), keys=keys)


def _save(found: Any, path: Path, keys: Sequence[str]) -> None:
    suffix = path.suffix.lower()
    if suffix in CHART_SUFFIXES:
        from calframe._cli._drawing import write_chart  # noqa: PLC0415  loads what only charts need

        with waiting(f"Drawing {path}"):
            write_chart(found.plot(), path)
    elif suffix == ".json":
        put_text(path, _text(found, "json", keys))
    else:
        write_table(to_polars(found.table), path, keys=keys)
