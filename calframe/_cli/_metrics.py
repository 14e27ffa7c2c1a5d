"""`calframe metrics`: per-segment numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from calframe._cli import _options as given
from calframe._cli._files import reading
from calframe._cli._input import check_scores, open_input, score_argument
from calframe._cli._output import TABLE_SUFFIXES, check_output, table_text, write_table
from calframe._cli._terminal import emit, waiting
from calframe._cli._text import label_value
from calframe._metrics import metrics as compute

_FOR_READING = ("table", "md")
_BINNED = frozenset({"ece", "mce", "rmsce", "ace", "ece_sweep"})

_METRIC = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to compute; repeat it for more, or say `all` (an unknown name lists them all). A binned error "
    "(ece, mce, rmsce, ace, ece_sweep) in a table for reading brings ece and ece_expected along: right scores do not "
    "show 0 either. "
    "Default: rate, mean_score, gap, brier, log_loss, ece, ece_expected; of three classes or more accuracy, brier, "
    "log_loss, confidence_ece, classwise_ece.",
)
_NOTION = given.notion("Default: all scores of a row together.")
_POSTERIOR = click.option(
    "--posterior",
    multiple=True,
    metavar="COLUMN",
    help="Column of the true probability, known in simulations, for epistemic_loss and irreducible_loss; with --class "
    "one for each class, in their order. Default: not known.",
)
_LEVEL = given.confidence_level(
    "Add intervals (<metric>_low, <metric>_high) of this level, between 0 and 1, such as 0.95. Default: no intervals.",
    default=None,
)
_INTERVAL = given.interval("the rate, with --confidence-level. Default: wilson.")
_OUTPUT = given.output_file(
    f"the table, unrounded, to this file, by its suffix: {' '.join(TABLE_SUFFIXES)}. Default: print it."
)


@click.command("metrics", short_help="Compute calibration metrics per segment.")
@given.options(
    *(given.FILES, given.LABEL, given.SCORE, given.CLASS, given.BY, given.WEIGHT, given.CLUSTER, _METRIC, _NOTION),
    *(given.bins("15", says="Default: 15."), given.STRATEGY, given.CLOSED, _LEVEL, _INTERVAL, given.RESAMPLES),
    *(given.SEED, given.SMOOTHER, given.CLIP, given.FLOOR, _POSTERIOR, given.POSITIVE, given.LINK, given.INVALID),
    *(given.WEIGHT_KIND, _OUTPUT, given.FORMAT),
)
def metrics(*, files: tuple[str, ...], output: Path | None, form: str | None, **arguments: Any) -> None:
    """Compute calibration metrics per segment of FILE.

    FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs
    make one table, and `-` reads CSV from standard input. Only the columns named here are read.

    Example: calframe metrics preds.parquet --label late --score p --by carrier --metric gap --metric ece
    """
    check_scores(arguments["score"], arguments["classes"], arguments["notion"])
    if output is not None:
        check_output(output, form, files, suffixes=TABLE_SUFFIXES)
    if (form or (output and output.suffix) or "table").lstrip(".").lower() in _FOR_READING:
        arguments["metrics"] = _beside_chance(arguments["metrics"])
    table = _computed(files, **arguments)
    keys = [*arguments["by"], *(name for name in ("model", "class") if name in table.columns)]
    if output is not None:
        write_table(table, output, keys=keys)
        click.echo(f"Wrote {output} ({table.height:,} row{'' if table.height == 1 else 's'}).", err=True)
    elif form in (None, "table"):
        _print(table, keys)
    else:
        emit(table_text(table, form=str(form), keys=keys))


def _computed(files: tuple[str, ...], *, positive: str | None, **arguments: Any) -> pl.DataFrame:
    label, score, classes, by, weight = (arguments.pop(name) for name in ("label", "score", "classes", "by", "weight"))
    posterior, bins, names = (arguments.pop(name) for name in ("posterior", "bins", "metrics"))
    columns = [*score, *classes.values(), *posterior]
    with reading(files), waiting("Computing metrics"):
        table = open_input(files, label=label, scores=columns, by=by, weight=weight, cluster=arguments["cluster"])
        plan: pl.LazyFrame = compute(
            table,
            label=label,
            score=score_argument(table, label=label, scores=score, classes=classes),
            by=list(by) or None,
            weight=weight,
            metrics=given.read_metrics(names),
            posterior=list(posterior) or None,
            bins=given.read_bins(bins),
            n_resamples=arguments.pop("resamples"),
            rng=arguments.pop("seed"),
            positive=label_value(table, label=label, text=positive),
            **arguments,
        )
        return plan.collect()


def _beside_chance(names: tuple[str, ...]) -> tuple[str, ...]:
    """Never show a binned error alone: right scores have one too, so the expected one stands in the table."""
    pair = ("ece", "ece_expected") if given.ALL not in names and _BINNED.intersection(names) else ()
    return (*names, *(name for name in pair if name not in names))


def _print(table: pl.DataFrame, keys: Sequence[str]) -> None:
    from calframe._cli._metrics_view import metrics_view  # noqa: PLC0415  rich is for tables, not for --help

    emit(metrics_view(table, keys=keys))
