"""`calframe report`: the HTML report, its verdict and its segments in the terminal."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from calframe._cli import _options as given
from calframe._cli._files import STDIN, reading
from calframe._cli._input import open_input, warn_many_values
from calframe._cli._output import PAGE_SUFFIXES, check_target, file_size
from calframe._cli._terminal import emit, waiting
from calframe._cli._text import label_value
from calframe._cli._typed import refuse_idle
from calframe._verb_report import Report
from calframe._verb_report import report as compute

_PAGE = Path("report.html")
_STDOUT = Path("-")

_EVERY = click.option(
    "--every",
    type=click.Choice(["1d", "1w", "1mo", "1q", "1y"]),
    help="Length of a period: day, week, month, quarter or year. A period needs 100 rows to be judged. Default: the "
    "longest that gives at least six periods; a longer one that gives at least two where most would have fewer rows.",
)
_METRIC = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Further metric of each segment; repeat it for more, or say `all`. It stands with its interval among the "
    "numbers of the page and in --json, and no verdict uses it. Default: no more than the page has.",
)
_TITLE = click.option("--title", metavar="TEXT", help="Title of the page. Default: the name of the file.")
_OUTPUT = given.output_file(
    f"the page to this file (.html). Default: {_PAGE}, or no page when only --json is asked for."
)
_JSON = given.json_output("the numbers")
_OPEN = click.option("--open", "open_page", is_flag=True, help="Open the page in the browser when it is written.")


@click.command("report", short_help="Write an HTML report: what is wrong, where, since when.")
@given.options(
    *(given.FILES, given.LABEL, given.ONE_SCORE, given.BY, given.WEIGHT, given.CLUSTER, given.TIME, _EVERY, given.ZONE),
    *(given.TOLERANCE, given.ALPHA, _METRIC, _TITLE, given.POSITIVE, given.LINK, given.INVALID, given.WEIGHT_KIND),
    *(_OUTPUT, _JSON, _OPEN),
)
def report(
    *, files: tuple[str, ...], output: Path | None, json_output: Path | None, open_page: bool, **arguments: Any
) -> None:
    """Write an HTML report of FILE: what is wrong with the scores, where, and since when.

    The verdict and the segments, worst first (by verdict, then by rows times gap), are printed too. That verdict may be
    graver than the one of `calframe audit`, as it also judges the range of the scores and, with --time, the course.
    FILE is Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs
    make one table, and `-` reads CSV from standard input. Only the columns named here are read.

    Example: calframe report preds.parquet --label late --score p --by carrier --time date -o report.html
    """
    refuse_idle(dict.fromkeys(("every", "time_zone"), arguments["time"] is not None), "--time, the column of dates")
    page = _PAGE if output is None and (json_output is None or open_page) else output
    _check_targets(page, json_output, files)
    result = _reported(files, **arguments)
    _print(result, as_json=json_output == _STDOUT, tolerance=arguments["tolerance"], alpha=arguments["alpha"])
    for path in (page, json_output):
        if path not in (None, _STDOUT):
            _save(result, path)
    if open_page and page is not None and not webbrowser.open(page.resolve().as_uri()):
        click.echo(f"Note: found no browser to open {page} with.", err=True)


def _check_targets(page: Path | None, json_output: Path | None, files: Sequence[str]) -> None:
    if page is not None:
        check_target(page, suffixes=PAGE_SUFFIXES, sources=files, option="--output")
    if json_output is not None and json_output != _STDOUT:
        check_target(json_output, suffixes=(".json",), sources=files, option="--json")


def _reported(
    files: tuple[str, ...], *, score: str, by: tuple[str, ...], positive: str | None, title: str | None, **others: Any
) -> Report:
    roles = {name: others[name] for name in ("label", "weight", "cluster", "time")}
    metrics = others.pop("metrics")
    with reading(files), waiting("Computing the report"):
        table = open_input(files, scores=[score], by=by, **roles)
        warn_many_values(table, by)
        value = label_value(table, label=roles["label"], text=positive)
        return compute(
            table,
            score=score,
            by=list(by) or None,
            metrics=given.read_metrics(metrics),
            positive=value,
            title=title or _named_after(files),
            **others,
        )


def _named_after(files: Sequence[str]) -> str:
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return ("Standard input" if files[0] == STDIN else Path(files[0]).name) + more


def _print(result: Report, *, as_json: bool, tolerance: float, alpha: float) -> None:
    from calframe._cli._views import report_view  # noqa: PLC0415  rich is for results, not for --help

    if as_json:
        emit(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    else:
        emit(report_view(result, tolerance=tolerance, alpha=alpha))


def _save(result: Report, path: Path) -> None:
    with waiting(f"Writing {path}"):
        written = result.save(path)
    click.echo(f"Wrote {written} ({file_size(written)}).", err=True)
