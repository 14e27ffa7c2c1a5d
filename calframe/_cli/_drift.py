"""`calframe drift`: calibration over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calframe._cli import _options as given
from calframe._cli._files import STDIN, reading
from calframe._cli._found import check_given, give, output_option
from calframe._cli._input import open_input
from calframe._cli._terminal import waiting
from calframe._cli._text import label_value

if TYPE_CHECKING:
    from calframe._drifting._result import Drift

_REFERENCE = click.option(
    "--reference",
    metavar="PERIOD",
    help="Periods that the others are compared with: `first`, `rolling` (those just before), a name (Jan 2024), a date "
    "in it, a month (2024-01), a year, or two of these with .. between (2024-01..2024-06). Default: the first third of "
    "the periods.",
)
_REFERENCE_FILE = click.option(
    "--reference-file",
    metavar="FILE",
    help="A second table with the same columns, which all periods are compared with; --time may be left out then. "
    "Default: none.",
)
_TIME = click.option(
    "--time",
    metavar="COLUMN",
    help="Column of dates or times (as text: 2013-12-31, 2013-12-31T08:00) that is cut into periods. Needed, unless "
    "--reference-file is given.",
)
_WINDOW = click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Periods behind a rolling reference; only with `--reference rolling`. Default: 3.",
)
_ALPHA = given.alpha("Error rate over all periods and segments together, of intervals, p-values and the monitor.")
_BATCH = click.option(
    "--batch",
    type=click.Choice(["time", "day"]),
    default="time",
    show_default=True,
    help="After what the monitor is looked at: rows of the same time, or of the same day.",
)
_PSI_BINS = click.option(
    "--psi-bins",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="NUMBER",
    help="Bins of the PSI, made of equal weight by the reference.",
)
_PSI_FLOOR = click.option(
    "--psi-floor",
    type=float,
    default=1e-4,
    show_default=True,
    metavar="SHARE",
    help="Share that stands for that of an empty bin in the PSI.",
)
_CLIP = click.option(
    "--clip",
    type=float,
    metavar="PROBABILITY",
    help="Keep scores this far from 0 and 1 in the monitor, such as 1e-6. Default: as they are; a label that its score "
    "said could not be is infinite evidence.",
)
_RUN_LENGTH = click.option(
    "--run-length",
    type=float,
    default=10_000,
    show_default=True,
    metavar="BATCHES",
    help="Batches between false alarms of the monitor's detector of late changes, on average at least.",
)


@click.command("drift", short_help="Follow calibration over time.")
@given.options(
    *(given.FILES, given.LABEL, given.SCORES, _TIME, given.PERIOD, given.ZONE, _REFERENCE, _REFERENCE_FILE),
    *(_WINDOW, given.BY, given.WEIGHT, given.CLUSTER, given.TOLERANCE, _ALPHA, given.correction(), _BATCH),
    *(_RUN_LENGTH, _CLIP, given.bins("15", says="Default: 15."), given.STRATEGY, given.CLOSED, _PSI_BINS, _PSI_FLOOR),
    *(given.POSITIVE, given.LINK, given.INVALID, given.WEIGHT_KIND, output_option("the periods", drawn=True)),
    given.FORMAT,
)
def drift(*, files: tuple[str, ...], output: Path | None, form: str | None, **arguments: Any) -> None:
    """Follow calibration over time in FILE: where it changed, and whether to be alarmed.

    Each period is compared with a reference; a monitor that may be looked at whenever says when it would have sounded.
    FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs
    make one table, and `-` reads CSV from standard input. Only the columns named here are read.

    Example: calframe drift preds.parquet --label late --score p --time date --every 1w -o drift.svg
    """
    _check(files, arguments)
    check_given(output, form, [*files, *filter(None, [arguments["reference_file"]])], drawn=True)
    found = _computed(files, **arguments)
    from calframe._cli._drift_view import drift_view  # noqa: PLC0415  rich is for tables, not for --help

    give(found, drift_view, output=output, form=form)


def _check(files: tuple[str, ...], arguments: dict[str, Any]) -> None:
    """Refuse a command without scores, time or a reference of one kind."""
    msg, second = "", arguments["reference_file"]
    if not arguments["score"]:
        msg = "Missing option '--score'."
    elif second is not None and arguments["reference"] is not None:
        msg = "--reference names periods of FILE, --reference-file a second table; leave one of them out."
    elif second is None and arguments["time"] is None:
        msg = "Missing option '--time', the column of dates, or '--reference-file', a table to compare with."
    elif second == STDIN and STDIN in files:
        msg = "standard input can be read once: give FILE or --reference-file a name."
    if msg:
        raise click.UsageError(msg, click.get_current_context())


def _computed(files: tuple[str, ...], *, positive: str | None, reference_file: str | None, **arguments: Any) -> Drift:
    from calframe._drift import drift as compute  # noqa: PLC0415  --help need not load it

    label, score, by, weight = (arguments.pop(name) for name in ("label", "score", "by", "weight"))
    roles: dict[str, Any] = {"label": label, "scores": score, "by": by, "weight": weight}
    roles["cluster"] = arguments["cluster"]
    bins = given.read_bins(arguments.pop("bins"))
    reference: Any = given.read_reference(arguments.pop("reference"))
    second = () if reference_file is None else (reference_file,)
    with reading((*files, *second)), waiting("Following the scores"):
        table = open_input(files, **roles, time=arguments["time"])
        if second:
            reference = open_input(second, **roles)
        return compute(
            table,
            label=label,
            score=score[0] if len(score) == 1 else list(score),
            by=list(by) or None,
            weight=weight,
            bins=bins,
            reference=reference,
            positive=label_value(table, label=label, text=positive),
            **arguments,
        )
