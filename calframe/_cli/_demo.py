"""`calframe demo`: the full report of the table that ships with the package."""

from __future__ import annotations

from pathlib import Path

import click

from calframe._cli._output import check_target, file_size
from calframe._cli._terminal import emit, waiting
from calframe._demo import demo_table
from calframe._verb_report import report

_PAGE = "calframe_demo.html"
_TITLE = "Late flights from New York, July to December 2013"


@click.command("demo", short_help="Write a full report of real flights into this folder.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="FOLDER|FILE",
    help=f"Where to write the page: a folder, which gets {_PAGE}, or a .html file. Default: this folder.",
)
def demo(*, output: Path) -> None:
    """Write a full report of a small real table, to see what calframe does.

    The table ships with calframe: 60,000 flights from New York in the second half of 2013, and the probability of
    arriving over 15 minutes late as a model trained on the first half saw it. Segments are carriers and airports of
    departure.
    """
    from calframe._cli._views import headline  # noqa: PLC0415  rich is for results, not for --help

    page = output / _PAGE if output.is_dir() else output
    check_target(page, suffixes=(".html",), sources=(), option="--output")
    table = demo_table()
    with waiting("Writing the demo report"):
        result = report(table, label="y", score="p_gbm", by=["carrier", "origin"], time="date", title=_TITLE)
        written = result.save(page)
    source = f"from {table.height:,} flights"
    emit(f"{headline(result)}\nWrote {written} ({file_size(written)}) {source}; open it in a browser.\n")
