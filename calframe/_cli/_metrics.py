"""`calframe metrics`: per-segment numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from calframe._cli import _options as given
from calframe._cli._files import reading
from calframe._cli._input import open_input
from calframe._cli._output import TABLE_SUFFIXES, check_target, table_text, write_table
from calframe._cli._terminal import emit, waiting
from calframe._cli._text import positive_value
from calframe._metrics import metrics as compute

_FOR_READING = ("table", "md")
_BINNED = frozenset({"ece", "mce", "rmsce", "ace"})

_SCORE = click.option(
    "--score",
    required=True,
    multiple=True,
    metavar="COLUMN",
    help="Column of predicted probabilities, from 0 to 1; repeat it to compare models side by side.",
)
_METRIC = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to compute; repeat it for more, or say `all`. A binned error (ece, mce, rmsce, ace) in a table for "
    "reading brings ece and ece_expected along: right scores do not show 0 either. "
    "Default: rate, mean_score, gap, brier, log_loss, ece, ece_expected.",
)
_BINS = click.option(
    "--bins",
    default="15",
    show_default=True,
    metavar="NUMBER|EDGES",
    help="Number of equally wide bins of the score, or their edges with commas: 0,0.1,0.5,1.",
)
_CLOSED = click.option(
    "--closed",
    type=click.Choice(["left", "right"]),
    default="left",
    show_default=True,
    help="Which side of a bin belongs to it: a score on an edge goes up with left, down with right.",
)
_LEVEL = click.option(
    "--confidence-level",
    type=float,
    metavar="LEVEL",
    help="Add intervals (<metric>_low, <metric>_high) of this level, between 0 and 1, such as 0.95. Default: none.",
)
_INTERVAL = click.option(
    "--interval",
    type=click.Choice(["wilson", "clopper_pearson", "jeffreys"]),
    help="Kind of interval of the rate. Default: the best for each metric, wilson for the rate.",
)
_CLIP = click.option(
    "--clip",
    type=float,
    metavar="PROBABILITY",
    help="Keep scores this far from 0 and 1 in the log loss, such as 1e-15. Default: as they are; it can be infinite.",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Write the table, unrounded, to this file, by its suffix: {' '.join(TABLE_SUFFIXES)}. Default: print it.",
)
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "md"]),
    help="How to print the table: rounded (table, md) or with every digit (csv, json). Default: table.",
)


@click.command("metrics", short_help="Compute calibration metrics per segment.")
@given.options(
    *(given.FILES, given.LABEL, _SCORE, given.BY, given.WEIGHT, _METRIC, _BINS, _CLOSED, _LEVEL, _INTERVAL, _CLIP),
    *(given.POSITIVE, given.LINK, given.INVALID, given.WEIGHT_KIND, _OUTPUT, _FORMAT),
)
def metrics(*, files: tuple[str, ...], output: Path | None, form: str | None, **arguments: Any) -> None:
    """Compute calibration metrics per segment of FILE.

    FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs
    make one table, and `-` reads CSV from standard input. Only the columns named here are read.

    Example: calframe metrics preds.parquet --label late --score p --by carrier --metric gap --metric ece
    """
    if output is not None:
        _check_output(output, form, files)
    if (form or (output and output.suffix) or "table").lstrip(".").lower() in _FOR_READING:
        arguments["metrics"] = _beside_chance(arguments["metrics"])
    table = _computed(files, **arguments)
    if output is not None:
        write_table(table, output)
        click.echo(f"Wrote {output} ({table.height:,} row{'s' if table.height > 1 else ''}).", err=True)
    elif form in (None, "table"):
        _print(table, arguments)
    else:
        emit(table_text(table, form=str(form)))


def _check_output(output: Path, form: str | None, files: Sequence[str]) -> None:
    if form is not None:
        msg = "--format is for printing; with --output the suffix says the format. Leave one of them out."
        raise click.UsageError(msg)
    check_target(output, suffixes=TABLE_SUFFIXES, sources=files, option="--output")


def _computed(files: tuple[str, ...], *, positive: str | None, **arguments: Any) -> pl.DataFrame:
    label, score, by, weight = (arguments.pop(name) for name in ("label", "score", "by", "weight"))
    with reading(files), waiting("Computing metrics"):
        table = open_input(files, label=label, scores=score, by=by, weight=weight)
        arguments["positive"] = positive_value(table, label=label, text=positive)
        arguments["metrics"] = _asked(arguments["metrics"])
        arguments["bins"] = _bins(arguments["bins"])
        scores = score[0] if len(score) == 1 else list(score)
        plan: pl.LazyFrame = compute(table, label=label, score=scores, by=list(by) or None, weight=weight, **arguments)
        return plan.collect()


def _beside_chance(names: tuple[str, ...]) -> tuple[str, ...]:
    """Never show a binned error alone: right scores have one too, so the expected one stands in the table."""
    pair = ("ece", "ece_expected") if _BINNED.intersection(names) else ()
    return (*names, *(name for name in pair if name not in names))


def _asked(names: tuple[str, ...]) -> list[str] | str | None:
    return "all" if names == ("all",) else list(names) or None


def _bins(text: str) -> int | list[float]:
    try:
        return [float(edge) for edge in text.split(",")] if "," in text else int(text)
    except ValueError:
        msg = f"{text!r} is neither a whole number nor edges with commas, such as 0,0.1,0.5,1."
        raise click.BadParameter(msg, param_hint="'--bins'") from None


def _print(table: pl.DataFrame, arguments: dict[str, Any]) -> None:
    from calframe._cli._views import metrics_view  # noqa: PLC0415  rich is for tables, not for --help

    models = ["model"] if len(arguments["score"]) > 1 else []
    emit(metrics_view(table, keys=[*arguments["by"], *models]))
