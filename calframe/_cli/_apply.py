"""`calframe apply`: a table with calibrated scores, streamed from file to file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click
import narwhals.stable.v2 as nw
import polars as pl

from calframe._cli import _options as given
from calframe._cli._files import open_table, reading
from calframe._cli._output import check_target, file_size
from calframe._cli._stream import (
    STREAM_SUFFIXES,
    TEXT_SUFFIXES,
    check_writable,
    plain_errors,
    stream_out,
    stream_to,
)
from calframe._cli._terminal import waiting
from calframe._cli._text import check_twins, typed, typed_as
from calframe._columns import exact_column
from calframe._maps._applying import Batches
from calframe._maps._inputs import check_scores, score_matrix
from calframe._maps._map import CalibrationMap
from calframe._maps._reach import FLAGS, Reach
from calframe._maps._saved import load_map

_STDOUT = ".csv"  # what is printed
_MADE = "_cf_made"

_MAP = click.option(
    "--map",
    "map_file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The map, as `calframe fit` wrote it (.json).",
)
_NAME = click.option(
    "--name",
    default="p_calibrated",
    show_default=True,
    metavar="COLUMN",
    help="Name of the new column. With several classes there is one a class, NAME_CLASS; venn_abers adds NAME_low and "
    "NAME_high.",
)
_OUTPUT = given.output_file(
    f"the table to this file, by its suffix: {' '.join(STREAM_SUFFIXES)}. Default: print it as CSV."
)


@dataclass(slots=True)
class _Counts:
    """What passed through a map, batch by batch; batches may come from several threads."""

    rows: list[int] = field(default_factory=list)
    found: list[tuple[int, ...]] = field(default_factory=list)

    def add(self, flags: pl.DataFrame) -> None:
        """Count the rows of a batch."""
        self.rows.append(flags.height)
        self.found.append(flags.select(pl.col(FLAGS).sum()).row(0))

    def totals(self) -> tuple[int, ...]:
        """Return the counts of all batches, in the order of `FLAGS`."""
        return tuple(map(sum, zip(*self.found, strict=True))) or (0,) * len(FLAGS)


@click.command("apply", short_help="Add calibrated scores to a table, whatever its size.")
@given.options(given.FILES, _MAP, _NAME, _OUTPUT)
def apply(*, files: tuple[str, ...], map_file: Path, name: str, output: Path | None) -> None:
    """Add the calibrated scores that a map makes of the scores in FILE.

    Every row and column stays as it is and where it is; columns are added at the end. The table is written while it is
    read, so it may be larger than memory. Rows whose segment the map has not seen, or is missing, take the pooled map;
    rows without a score get no calibrated one.

    FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs
    make one table, and `-` reads CSV from standard input (this and JSON are read whole). From CSV to CSV, fields are
    copied as they are written; from CSV to another format, a column becomes numbers where all of its values are plainly
    written ones, and text otherwise (007 stays 007).

    Example: calframe apply new.parquet --map maps.json -o calibrated.parquet
    """
    if output is not None:
        check_target(output, suffixes=STREAM_SUFFIXES, sources=[*files, str(map_file)], option="--output")
    the_map = load_map(map_file)
    suffix = _STDOUT if output is None else output.suffix.lower()
    counts = _Counts()
    with reading(files), waiting("Applying the map"):
        table, written = _opened(files, the_map, keep_text=suffix in TEXT_SUFFIXES)
        plan = _applied(table, written, the_map, name, counts)
        check_writable(plan.collect_schema(), suffix)
        if output is None:
            _check_scores(table, the_map)
            if not stream_out(plan):
                return
        else:
            stream_to(plan, output)
    _say(counts, output)


def _opened(files: tuple[str, ...], the_map: CalibrationMap, *, keep_text: bool) -> tuple[pl.LazyFrame, dict[str, str]]:
    """Return the table with the types that the map needs, and with `keep_text` where the text of these columns is."""
    table, is_text = open_table(files, as_text=None)
    if not is_text:
        return table, {}
    columns = table.collect_schema().names()
    check_twins(columns, columns)
    types = dict.fromkeys(the_map.scores, pl.Float64()) | {key.name: key.dtype for key in the_map.segments.keys}
    if not keep_text:
        table = typed(table, {column: "by" for column in columns if column not in types})
        return typed_as(table, types), {}
    written = {column: f"_cf_written_{i}" for i, column in enumerate(columns) if column in types}
    table = table.with_columns(exact_column(column).alias(alias) for column, alias in written.items())
    return typed_as(table, types), written


def _applied(
    table: pl.LazyFrame, written: Mapping[str, str], the_map: CalibrationMap, name: str, counts: _Counts
) -> pl.LazyFrame:
    """Return a table with the new columns, made batch by batch: the lookups of a map do not stream by themselves."""
    schema = table.collect_schema()
    new = {
        column: dtype
        for column, dtype in the_map.apply(pl.DataFrame(schema=schema), name=name).schema.items()
        if column not in schema
    }
    batches, reach = Batches.of(the_map), Reach.of(the_map)

    def calibrated(batch: pl.Series) -> pl.Series:
        rows = batch.struct.unnest()
        found = batches.made(rows, name=name)
        counts.add(reach.flags(rows, score_matrix(the_map, rows)))
        return found.to_struct()

    used = pl.struct(*map(exact_column, dict.fromkeys([*the_map.by, *the_map.scores])))
    column = used.map_batches(calibrated, return_dtype=pl.Struct(new), is_elementwise=True)
    old = [exact_column(written.get(one, one)).alias(one) for one in schema if one not in written.values()]
    return table.select(*old, column.alias(_MADE)).unnest(_MADE)


def _check_scores(table: pl.LazyFrame, the_map: CalibrationMap) -> None:
    """Raise before the first row is printed, not after some of them, if the map cannot take a score."""

    def checked(batch: pl.Series) -> pl.Series:
        rows = batch.struct.unnest()
        check_scores(the_map, score_matrix(the_map, rows), nw.from_native(rows).schema)
        return batch.is_null()

    scores = pl.struct(*map(exact_column, the_map.scores)).alias(_MADE)
    column = scores.map_batches(checked, return_dtype=pl.Boolean, is_elementwise=True)
    with plain_errors():
        table.select(column.any()).collect(engine="streaming")


def _say(counts: _Counts, output: Path | None) -> None:
    rows, (unseen, unscored, below, above) = sum(counts.rows), counts.totals()
    if unscored:
        has, it = ("row has", "it has") if unscored == 1 else ("rows have", "they have")
        click.echo(f"Note: {unscored:,} {has} no score, so {it} no calibrated one.", err=True)
    if unseen:
        belongs, it = ("row belongs", "it takes") if unseen == 1 else ("rows belong", "they take")
        click.echo(f"Note: {unseen:,} {belongs} to no segment of the map; {it} the pooled one.", err=True)
    if below + above:
        has = "row has a score" if below + above == 1 else "rows have scores"
        where = " and ".join(f"{count:,} {side}" for count, side in ((below, "below"), (above, "above")) if count)
        click.echo(f"Note: {below + above:,} {has} out of the range that the map was fitted on ({where} it).", err=True)
    if output is not None:
        click.echo(f"Wrote {output} ({rows:,} row{'' if rows == 1 else 's'}, {file_size(output)}).", err=True)
