"""`calframe audit`: every segment and every crossing of segments, judged together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calframe._cli import _options as given
from calframe._cli._files import reading
from calframe._cli._found import check_given, give, output_option
from calframe._cli._input import open_input
from calframe._cli._terminal import waiting
from calframe._cli._text import label_value
from calframe._cli._typed import refuse_idle

if TYPE_CHECKING:
    import polars as pl

    from calframe._audit import Audit

_BY = click.option(
    "--by",
    multiple=True,
    required=True,
    metavar="COLUMN",
    help="Column that makes segments, one a value (numbers of more than ten values: bands, see --numeric-bins); repeat "
    "it for more.",
)
_DEPTH = click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="NUMBER",
    help="Most segment columns that are crossed with each other.",
)
_REFERENCE = click.option(
    "--reference",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Group that the gaps of segments are compared with: the rows with this value; repeat it for the rows that "
    "have all of them. The verdicts stay against the label: only the comparison changes (a table of its own; in "
    "files gap_to_reference and pvalue_to_reference). Default: each segment is compared with all other rows.",
)
_MIN_ROWS = click.option(
    "--min-rows",
    type=click.IntRange(min=5),
    default=100,
    show_default=True,
    metavar="NUMBER",
    help="Fewest rows of a segment that is judged; it needs ten positives and ten negatives, too, seen or expected.",
)
_NUMERIC_BINS = click.option(
    "--numeric-bins",
    type=click.IntRange(min=2),
    default=4,
    show_default=True,
    metavar="NUMBER",
    help="Bands of about equal numbers of rows that a numeric segment column of more than ten values is cut into.",
)
_MAX_SEGMENTS = click.option(
    "--max-segments",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="NUMBER",
    help="More segments than this are an error.",
)
_NO_ECCE = click.option(
    "--no-ecce",
    is_flag=True,
    help="Do not look along the scores for errors that cancel in the mean (by ecce, the cumulative error); faster.",
)
_RESAMPLES = given.resamples("How often labels are drawn for the p-values of errors along the scores.")


@click.command("audit", short_help="Judge every segment and crossing, worst first.")
@given.options(
    *(given.FILES, given.LABEL, given.ONE_SCORE, _BY, given.WEIGHT, given.CLUSTER, given.TOLERANCE, given.ALPHA),
    *(
        given.correction(),
        _DEPTH,
        _REFERENCE,
        _MIN_ROWS,
        _NUMERIC_BINS,
        _MAX_SEGMENTS,
        _NO_ECCE,
        _RESAMPLES,
        given.SEED,
    ),
    *(given.POSITIVE, given.LINK, given.INVALID, given.WEIGHT_KIND),
    *(output_option("the segments", drawn=True), given.FORMAT),
)
def audit(*, files: tuple[str, ...], output: Path | None, form: str | None, **arguments: Any) -> None:
    """Judge every segment of FILE and every crossing of segments at once, worst first.

    Which are off, which are within tolerance, and of which it cannot be told yet: one answer that holds over all of
    them. Worst first is by verdict, then by rows times gap: the rows misstated. The verdict of `calframe report` may be
    graver, as that also judges the range of the scores and the course over time. FILE is Parquet, CSV, TSV,
    Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs make one table, and `-`
    reads CSV from standard input. Only the columns named here are read.

    Example: calframe audit preds.parquet --label late --score p --by carrier --by origin --tolerance 0.05
    """
    draws = not arguments["no_ecce"] and arguments["cluster"] is None
    refuse_idle(
        dict.fromkeys(("resamples", "seed"), draws), "the look along the scores, which --no-ecce and --cluster skip"
    )
    check_given(output, form, files, drawn=True)
    found = _computed(files, **arguments)
    from calframe._cli._audit_view import audit_view  # noqa: PLC0415  rich is for tables, not for --help

    give(found, audit_view, output=output, form=form, keys=())


def _computed(files: tuple[str, ...], *, positive: str | None, no_ecce: bool, **arguments: Any) -> Audit:
    from calframe._audit import audit as compute  # noqa: PLC0415  --help need not load it

    label, score, by, weight = (arguments.pop(name) for name in ("label", "score", "by", "weight"))
    with reading(files), waiting("Judging segments"):
        table = open_input(files, label=label, scores=[score], by=by, weight=weight, cluster=arguments["cluster"])
        return compute(
            table,
            label=label,
            score=score,
            by=list(by),
            weight=weight,
            reference=_group(table, arguments.pop("reference"), by),
            ecce=not no_ecce,
            n_resamples=arguments.pop("resamples"),
            rng=arguments.pop("seed"),
            positive=label_value(table, label=label, text=positive),
            **arguments,
        )


def _group(table: pl.LazyFrame, texts: tuple[str, ...], by: tuple[str, ...]) -> dict[str, Any] | None:
    """Read `COLUMN=VALUE`; the value gets the type of the column."""
    group: dict[str, Any] = {}
    for text in texts:
        column = next((name for name in by if text.startswith(f"{name}=")), None)
        if column is None:
            msg = f"{text!r} is not a segment column and its value, such as {by[0]}=North."
            raise click.BadParameter(msg, param_hint="'--reference'")
        value = text.removeprefix(f"{column}=")
        group[column] = label_value(table, label=column, text=value, option="--reference")
    return group or None
