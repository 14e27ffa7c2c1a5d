"""Paths, globs and standard input, opened as one lazy table."""

from __future__ import annotations

import difflib
import glob
import hashlib
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import polars as pl
from narwhals.exceptions import NarwhalsError

STDIN = "-"
_SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "json",
}
_TEXT_KINDS = ("csv", "tsv")
_PACKED = (".gz", ".zst")
_PACKED_KINDS = (*_TEXT_KINDS, "ndjson")  # the formats that polars unpacks while it reads
_SEPARATORS = {"\t": "tab", ";": "semicolon (;)", "|": "bar (|)", ",": "comma"}
_GLOB = frozenset("*?[")
_FOR_TYPES = 10_000  # rows that decide the types of the columns without a role
_PART = 1 << 20  # bytes read at once
_ARROW_FILE = b"ARROW1"  # the other kind of Arrow data, a stream, starts without it
_HINTS = {
    "invalid utf-8": "Save it as UTF-8 first.",
    "more fields than defined": "A row has more fields than the first line names: is there an unquoted comma?",
}


@contextmanager
def reading(sources: Sequence[str]) -> Iterator[None]:
    """Turn what polars says about a broken file into one line that names the file.

    Parameters
    ----------
    sources
        The paths as given on the command line.

    Raises
    ------
    click.ClickException
        In place of every error of polars and narwhals.
    """
    try:
        yield
    except (pl.exceptions.PolarsError, NarwhalsError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        hint = next((hint for part, hint in _HINTS.items() if part in lines[0]), "")
        names = ", ".join("standard input" if source == STDIN else repr(source) for source in sources)
        msg = f"cannot read {names}: {lines[0].rstrip('.')}. {hint}".rstrip()
        raise click.ClickException(msg) from error


def open_table(sources: Sequence[str], *, as_text: Sequence[str] | None) -> tuple[pl.LazyFrame, bool]:
    """Open files of one format as one lazy table.

    Parameters
    ----------
    sources
        Paths or globs, or `-` alone for CSV on standard input.
    as_text
        Columns that text formats hand over as they are written; their types follow from all of their values, not from
        the first few. None stands for every column.

    Returns
    -------
    tuple of (polars.LazyFrame, bool)
        The table, and whether it came from a text format (CSV, TSV).

    Raises
    ------
    click.ClickException
        If a path does not exist or is a folder, a glob matches nothing, a suffix is unknown, or formats differ.
    """
    if STDIN in sources:
        return _open_stdin(sources, as_text), True
    paths = [path for source in sources for path in _expand(source)]
    kinds = {path: _kind(path) for path in paths}
    if len(set(kinds.values())) > 1:
        first, other = next((paths[0], path) for path in paths if kinds[path] != kinds[paths[0]])
        msg = f"{first!s} and {other!s} have different formats; give files of one format."
        raise click.ClickException(msg)
    kind = kinds[paths[0]]
    return _scan(paths, kind, as_text), kind in _TEXT_KINDS


def is_source(path: Path, sources: Sequence[str]) -> bool:
    """Return whether a command that reads `sources` reads this file.

    Parameters
    ----------
    path
        A file, which need not exist.
    sources
        Paths or globs, or `-`.

    Returns
    -------
    bool
        True also where the same file goes by another name.
    """
    read = [other for source in sources for other in (source, *glob.glob(source, recursive=True))]  # noqa: PTH207
    return path.exists() and any(Path(other).exists() and path.samefile(other) for other in read)


def digest(sources: Sequence[str]) -> str | None:
    """Return the SHA-256 of files, one after the other as they are read; None for standard input.

    Parameters
    ----------
    sources
        Paths or globs, or `-`.

    Returns
    -------
    str or None
        In hexadecimal.
    """
    if STDIN in sources:
        return None
    found = hashlib.sha256()
    for path in (path for source in sources for path in _expand(source)):
        with path.open("rb") as file:
            while part := file.read(_PART):
                found.update(part)
    return found.hexdigest()


def _open_stdin(sources: Sequence[str], as_text: Sequence[str] | None) -> pl.LazyFrame:
    if len(sources) > 1:
        msg = "'-' reads standard input and stands alone; drop the other files."
        raise click.ClickException(msg)
    content = sys.stdin.buffer.read()
    if not content.strip():
        msg = "standard input is empty; it should hold CSV with a line of column names."
        raise click.ClickException(msg)
    return _scan_text(io.BytesIO(content), ",", as_text)


def _expand(source: str) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        msg = f"{source!r} is a folder; name its files, for example '{path / '*.parquet'}' in quotes."
        raise click.ClickException(msg)
    if path.exists():
        return [path]
    if _GLOB.isdisjoint(source):
        raise click.ClickException(_no_file(path))
    found = map(Path, glob.glob(source, recursive=True))  # noqa: PTH207
    matches = sorted(match for match in found if not match.is_dir())
    if not matches:
        msg = f"no file matches {source!r}."
        raise click.ClickException(msg)
    return matches


def _no_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"no file {str(path)!r}: there is no folder {str(path.parent)!r}."
    near = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1, cutoff=0.7)
    return f"no file {str(path)!r}." + (f" Did you mean {str(path.parent / near[0])!r}?" if near else "")


def _kind(path: Path) -> str:
    suffix, packed = path.suffix.lower(), path.suffix.lower() in _PACKED
    if packed:
        suffix = path.with_suffix("").suffix.lower()
    kind = _SUFFIXES.get(suffix)
    if kind is None or (packed and kind not in _PACKED_KINDS):
        known = " ".join(_SUFFIXES)
        msg = f"cannot tell the format of {str(path)!r} from its suffix; known are {known}, and .csv.gz and the like."
        raise click.ClickException(msg)
    return kind


def _scan(paths: list[Path], kind: str, as_text: Sequence[str] | None) -> pl.LazyFrame:
    if kind == "parquet":
        return pl.scan_parquet(paths, glob=False)
    if kind in _TEXT_KINDS:
        return _scan_text(paths, "\t" if kind == "tsv" else ",", as_text)
    if kind == "ndjson":
        return pl.scan_ndjson([glob.escape(str(path)) for path in paths], infer_schema_length=None)
    scan = _scan_ipc if kind == "ipc" else _scan_json
    return pl.concat([scan(path) for path in paths], how="vertical_relaxed")


def _scan_text(source: list[Path] | io.BytesIO, separator: str, as_text: Sequence[str] | None) -> pl.LazyFrame:
    table = pl.scan_csv(
        source,
        separator=separator,
        schema_overrides=dict.fromkeys(as_text or (), pl.String),
        infer_schema_length=0 if as_text is None else _FOR_TYPES,  # no row makes every column text
        glob=False,
    )
    _check_separator(table.collect_schema().names(), separator)
    return table


def _check_separator(names: Sequence[str], separator: str) -> None:
    """Raise if all names are one, in which another separator stands."""
    signs = [sign for sign in _SEPARATORS if len(names) == 1 and sign != separator and sign in names[0]]
    if signs:
        looks, is_read = (_SEPARATORS[sign] for sign in (signs[0], separator))
        mend = "Save it with commas, as .csv, or with tabs, as .tsv."
        msg = f"the first line, {names[0]!r}, has no {is_read} in it: the separator looks like a {looks}. {mend}"
        raise click.ClickException(msg)


def _scan_ipc(path: Path) -> pl.LazyFrame:
    with path.open("rb") as file:
        is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
    return pl.scan_ipc(path, glob=False) if is_file else pl.read_ipc_stream(path).lazy()


def _scan_json(path: Path) -> pl.LazyFrame:
    return pl.read_json(path, infer_schema_length=None).lazy()
