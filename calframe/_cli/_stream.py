"""A lazy table streamed to a file or to stdout, so that it need not fit into memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import polars as pl

from calframe._cli._output import put
from calframe._cli._terminal import emit_bytes
from calframe._errors import CalframeError, ScoreError

_SINKS: Mapping[str, Callable[..., Any]] = {
    ".parquet": pl.LazyFrame.sink_parquet,
    ".csv": pl.LazyFrame.sink_csv,
    ".tsv": partial(pl.LazyFrame.sink_csv, separator="\t"),
    ".arrow": pl.LazyFrame.sink_ipc,
    ".feather": pl.LazyFrame.sink_ipc,
    ".ipc": pl.LazyFrame.sink_ipc,
    ".ndjson": pl.LazyFrame.sink_ndjson,
    ".jsonl": pl.LazyFrame.sink_ndjson,
}
STREAM_SUFFIXES = tuple(_SINKS)
TEXT_SUFFIXES = (".csv", ".tsv")

_JSON_SUFFIXES = (".ndjson", ".jsonl")
_NO_TEXT = (pl.List, pl.Array, pl.Struct, pl.Duration, pl.Binary, pl.Object)  # what polars cannot write as CSV,
_NO_JSON = (pl.Binary, pl.Object)  # and as JSON
_NO_ROOM = re.compile(r"\(os error (27|28|112|122)\)")  # file too large, disk full, also on Windows, quota


def check_writable(schema: Mapping[str, Any], suffix: str) -> None:
    """Refuse columns that a format has no way to write, before any work is done.

    Parameters
    ----------
    schema
        The columns with their polars types.
    suffix
        One of `STREAM_SUFFIXES`.

    Raises
    ------
    click.ClickException
        If there is one.
    """
    unable = _NO_TEXT if suffix in TEXT_SUFFIXES else _NO_JSON if suffix in _JSON_SUFFIXES else ()
    for name, dtype in schema.items():
        if isinstance(dtype, unable):
            form, other = suffix.removeprefix(".").upper(), ".parquet or .arrow"
            msg = f"column {name!r} has type {dtype}, which {form} cannot hold; write to a file that ends in {other}."
            raise click.ClickException(msg)


def stream_to(plan: pl.LazyFrame, path: Path) -> None:
    """Write a lazy table to a file while it is read, whole or not at all.

    Parameters
    ----------
    plan
        The table.
    path
        A path with one of `STREAM_SUFFIXES`.

    Raises
    ------
    click.ClickException
        If there is no room for it; polars would speak of reading.
    """
    sink = _SINKS[path.suffix.lower()]
    try:
        with plain_errors():
            put(path, lambda part: sink(plan, part, engine="streaming"))
    except (pl.exceptions.PolarsError, OSError) as error:
        if not _NO_ROOM.search(str(error)):
            raise
        msg = f"cannot write {str(path)!r}: the disk is full, or your share of it."
        raise click.ClickException(msg) from error


def stream_out(plan: pl.LazyFrame) -> bool:
    """Print a lazy table as CSV while it is read.

    Parameters
    ----------
    plan
        The table.

    Returns
    -------
    bool
        Whether all of it was taken; a reader may go away before.
    """
    head = pl.DataFrame(schema=plan.collect_schema()).write_csv().encode()
    taken = [emit_bytes(head)]

    def has_gone(batch: pl.DataFrame) -> bool:
        taken.append(emit_bytes(batch.write_csv(include_header=False).encode()))
        return not taken[-1]

    if taken[0]:
        with plain_errors():
            plan.sink_batches(has_gone, engine="streaming")
    return all(taken)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Drop what polars adds to errors that are raised inside a plan, the expression, and say what was counted."""
    try:
        yield
    except CalframeError as error:
        text = str(error).partition("\n\n")[0]
        more = " Rows are counted in a part of the table." if isinstance(error, ScoreError) else ""
        raise type(error)(text + more) from error
