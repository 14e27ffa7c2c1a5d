"""`calframe curve`: the reliability curve as a table or a chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calframe._cli import _options as given
from calframe._cli._files import reading
from calframe._cli._found import check_given, give, output_option
from calframe._cli._input import check_scores, open_input, score_argument
from calframe._cli._terminal import waiting
from calframe._cli._text import label_value
from calframe._curve import Curve
from calframe._curve import curve as compute

_METHOD = click.option(
    "--method",
    type=click.Choice(["binned", "isotonic", "kernel", "loess"]),
    default="binned",
    show_default=True,
    help="How the curve is made: means within bins (binned), the best steps that never fall (isotonic, also called "
    "CORP), or a smooth curve by the kernel of the metric smece (kernel) or by that of ici (loess).",
)
_NOTION = given.notion("Default: the column of scores itself; three classes or more need one of them.")
_BINS = given.bins(None, says="Default: 15; 100 points for kernel and loess, isotonic steps take none.")
_LEVEL = given.confidence_level(
    "Level of the intervals and of the ranges of right scores, between 0 and 1, each point by itself."
)
_INTERVAL = given.interval("a binned or kernel rate. Default: wilson.")


@click.command("curve", short_help="Compute or draw the reliability curve.")
@given.options(
    *(given.FILES, given.LABEL, given.SCORE, given.CLASS, given.BY, given.WEIGHT, given.CLUSTER, _METHOD, _NOTION),
    *(_BINS, given.STRATEGY, given.CLOSED, _LEVEL, _INTERVAL, given.RESAMPLES, given.SEED, given.POSITIVE),
    *(given.LINK, given.INVALID, given.WEIGHT_KIND, output_option("the curve", drawn=True), given.FORMAT),
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
    check_given(output, form, files, drawn=True)
    found = _computed(files, **arguments)
    from calframe._cli._curve_view import curve_view  # noqa: PLC0415  rich is for tables, not for --help

    give(found, curve_view, output=output, form=form)


def _computed(files: tuple[str, ...], *, positive: str | None, **arguments: Any) -> Curve:
    label, score, classes, by, weight = (arguments.pop(name) for name in ("label", "score", "classes", "by", "weight"))
    bins, scores = arguments.pop("bins"), [*score, *classes.values()]
    with reading(files), waiting("Computing the curve"):
        table = open_input(files, label=label, scores=scores, by=by, weight=weight, cluster=arguments["cluster"])
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
