"""`calframe curve`: the reliability curve as a table or a chart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from calframe._cli import _options as given
from calframe._cli._files import reading
from calframe._cli._input import check_scores, open_input, score_argument
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
from calframe._cli._text import label_value
from calframe._curve import Curve
from calframe._curve import curve as compute
from calframe._results import to_polars

_SUFFIXES = (*TABLE_SUFFIXES, *CHART_SUFFIXES)

_METHOD = click.option(
    "--method",
    type=click.Choice(["binned", "isotonic", "kernel", "loess"]),
    default="binned",
    show_default=True,
    help="How the curve is made: means within bins, the best non-decreasing steps (CORP), or smooth as smece smooths "
    "(kernel) or as ici does (loess).",
)
_NOTION = given.notion("Default: the column of scores itself; three classes or more need one of them.")
_BINS = given.bins(None, says="Default: 15; 100 points for kernel and loess, isotonic steps take none.")
_LEVEL = click.option(
    "--confidence-level",
    type=float,
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="Level of the intervals and of the ranges of right scores, between 0 and 1, each point by itself.",
)
_INTERVAL = click.option(
    "--interval",
    type=click.Choice(["wilson", "clopper_pearson", "jeffreys"]),
    help="Kind of interval of a binned or kernel rate. Default: wilson.",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the curve to this file, by its suffix: as a table, unrounded "
    f"({' '.join(TABLE_SUFFIXES)}; .json says how it was made, too), or as a chart ({' '.join(CHART_SUFFIXES)}). "
    "Default: print the table.",
)


@click.command("curve", short_help="Compute or draw the reliability curve.")
@given.options(
    *(given.FILES, given.LABEL, given.SCORE, given.CLASS, given.BY, given.WEIGHT, _METHOD, _NOTION),
    *(
        _BINS,
        given.STRATEGY,
        given.CLOSED,
        _LEVEL,
        _INTERVAL,
        given.RESAMPLES,
        given.SEED,
        given.POSITIVE,
        given.LINK,
        given.INVALID,
        given.WEIGHT_KIND,
    ),
    *(_OUTPUT, given.FORMAT),
)
def curve(*, files: tuple[str, ...], output: Path | None, form: str | None, **arguments: Any) -> None:
    """Compute the reliability curve of FILE: how often it happens where the scores say about the same.

    Each point says its mean score, the rate with an interval, and the range in which the rate of right scores would
    lie. A chart shows one curve with its gaps, or several over each other. FILE is Parquet, CSV, TSV, Arrow/Feather,
    NDJSON or JSON, told by its suffix; several files of one format and globs make one table, and `-` reads CSV from
    standard input. Only the columns named here are read.

    Example: calframe curve preds.parquet --label late --score p --method isotonic -o curve.svg
    """
    check_scores(arguments["score"], arguments["classes"], arguments["notion"])
    if output is not None:
        check_output(output, form, files, suffixes=_SUFFIXES)
    found = _computed(files, **arguments)
    if output is None:
        emit(_text(found, form or "table"))
        return
    _save(found, output)
    click.echo(f"Wrote {output} ({file_size(output)}).", err=True)


def _computed(files: tuple[str, ...], *, positive: str | None, **arguments: Any) -> Curve:
    label, score, classes, by, weight = (arguments.pop(name) for name in ("label", "score", "classes", "by", "weight"))
    bins = arguments.pop("bins")
    with reading(files), waiting("Computing the curve"):
        table = open_input(files, label=label, scores=[*score, *classes.values()], by=by, weight=weight)
        return compute(
            table,
            label=label,
            score=score_argument(table, label=label, scores=score, classes=classes),
            by=list(by) or None,
            weight=weight,
            bins=None if bins is None else given.read_bins(bins),
            n_resamples=arguments.pop("resamples"),
            rng=arguments.pop("seed"),
            positive=label_value(table, label=label, text=positive),
            **arguments,
        )


def _text(found: Curve, form: str) -> str:
    if form == "json":
        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if form != "table":
        return table_text(to_polars(found.table), form=form)
    from calframe._cli._curve_view import curve_view  # noqa: PLC0415  rich is for tables, not for --help

    return curve_view(found)


def _save(found: Curve, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in CHART_SUFFIXES:
        from calframe._cli._drawing import write_chart  # noqa: PLC0415  loads what only charts need

        with waiting(f"Drawing {path}"):
            write_chart(found.plot(), path)
    elif suffix == ".json":
        put_text(path, _text(found, "json"))
    else:
        write_table(to_polars(found.table), path)
