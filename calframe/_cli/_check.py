"""`calframe check`: a gate for pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import polars as pl
from polars import selectors as cs

from calframe._cli import _options as given
from calframe._cli._check_data import annotation_lines, append_summary, json_text
from calframe._cli._check_rules import read_limits, rules_of
from calframe._cli._files import digest, reading
from calframe._cli._input import open_input, warn_many_values
from calframe._cli._output import check_target, put_text
from calframe._cli._terminal import emit, waiting
from calframe._cli._text import label_value
from calframe._cli._typed import refuse_idle
from calframe._gate._rules import Gate, Rule
from calframe._metrics import metrics

if TYPE_CHECKING:
    from calframe._gate._found import Found, Request

_STDOUT = Path("-")
_TRIPPED = 1
_DRAWN = "smece"  # the metric whose interval is drawn
_CLIPPED = "log_loss"  # the metric that can be infinite
_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


def _limit(name: str, metavar: str, says: str) -> given.Decorator:
    """Make the option of a limit of its own."""
    return click.option(name, type=_SHARE, metavar=metavar, help=f"{says} Default: no limit.")


def _bound(name: str, to: str, which: str) -> given.Decorator:
    """Make the option of a limit of any metric."""
    says = f"{which}; repeat it for more. Default: no limit."
    return click.option(name, to, multiple=True, metavar="METRIC=VALUE", callback=read_limits, help=says)


_MAX_GAP = _limit(
    "--max-gap", "GAP", "Largest gap, either way, between mean score and observed rate; 0.03 is 3 percentage points."
)
_MAX_ECE = _limit(
    "--max-ece",
    "ERROR",
    "Largest expected calibration error, chance taken out: broken where the lower end of its interval is above.",
)
_MAX_DRIFT = _limit(
    "--max-drift",
    "GAP",
    "Furthest that the gap of any period outside the reference may have moved from that of the reference, either way; "
    "needs --time.",
)
_MAX = _bound("--max", "most", "Largest value of any metric with an interval, such as brier=0.2")
_MIN = _bound("--min", "least", "Smallest value of any metric with an interval, such as auc=0.7")
_TIME = click.option(
    "--time",
    metavar="COLUMN",
    help="Column of dates or times (as text: 2013-12-31, 2013-12-31T08:00), needed by --max-drift and for it alone. "
    "Default: no --max-drift.",
)
_STRICT = click.option(
    "--strict",
    is_flag=True,
    help="Hold only where intervals lie wholly within their limits: one that reaches over fails, too.",
)
_FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice(["gap", "lean", "undecided"]),
    default="gap",
    show_default=True,
    help="What fails: an interval wholly beyond its limit (gap); one that reaches across its limit, too, where the "
    "adjusted p-value of a gap of 0 is at most --alpha, though the gap may lie within the limit (lean); or everything "
    "that is not known to hold, segments of too few rows included (undecided).",
)
_ALPHA = given.alpha(
    "Accepted chance of any false alarm, for each rule over all segments together.",
    kind=click.FloatRange(0, 0.5, min_open=True, max_open=True),
)
_BY = click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help=f"Column that makes segments, {given.EACH_VALUE}; repeat it for more, each by itself as in `report`. All rows "
    "together are always checked. Default: no segments.",
)
_JSON = given.json_output("the verdict, also when a check fails,")
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "github"]),
    default="table",
    show_default=True,
    help="How to print: for a person, or as ::error:: lines of a GitHub workflow, with a summary of the step.",
)


@click.command("check", short_help="Gate a pipeline: exit status 1 if a check fails.")
@given.options(
    *(given.FILES, given.LABEL, given.ONE_SCORE, _BY, given.WEIGHT, given.CLUSTER, _MAX_GAP, _MAX_ECE, _MAX, _MIN),
    _MAX_DRIFT,
    *(_TIME, given.PERIOD, given.ZONE, given.REFERENCE, _STRICT, _FAIL_ON, _ALPHA),
    *(given.bins("15", says="Default: 15."), given.STRATEGY, given.CLOSED, given.RESAMPLES, given.SEED),
    *(given.CLIP, given.POSITIVE, given.LINK, given.INVALID, given.WEIGHT_KIND, _JSON, _FORMAT),
)
@click.pass_context
def check(
    context: click.Context, /, *, files: tuple[str, ...], json_output: Path | None, form: str, **arguments: Any
) -> None:
    """Check limits in FILE, segment by segment: exit status 0 if none fails, 1 if one does, 2 if it could not run.

    A limit is broken where the interval of a value lies wholly beyond it, so that chance seldom breaks one; what is not
    decided does not fail unless you ask for that, but is said. There is no limit unless you give one. A segment is
    judged if it has 100 rows, with 10 positives and 10 negatives, seen or expected. Checks are shown worst first: by
    verdict, then by rows times the size of the gap, of its change, or of how far a metric is beyond its limit. FILE is
    Parquet, CSV, TSV, Arrow/Feather, NDJSON or JSON, told by its suffix; several files of one format and globs make one
    table, and `-` reads CSV from standard input. Only the columns named here are read.

    Example: calframe check preds.parquet --label late --score p --by carrier --max-gap 0.03 --min auc=0.7
    """
    rules = rules_of(**{name: arguments.pop(name) for name in ("max_gap", "max_ece", "max_drift", "most", "least")})
    _check(rules, arguments)
    _check_json(json_output, form, files)
    modes = {name: arguments.pop(name) for name in ("fail_on", "strict")}
    found, rows = _computed(files, rules, **arguments)
    gate = Gate.of(found.findings, **modes)
    options = {"alpha": arguments["alpha"], **modes, "cluster": arguments["cluster"]}
    text = json_text(gate, options=options, rows=rows) if json_output is not None else ""
    if json_output not in (None, _STDOUT):
        put_text(json_output, text)
        click.echo(f"Wrote {json_output}.", err=True)
    as_json = text if json_output == _STDOUT else None
    _print(gate, arguments["alpha"], arguments["cluster"], form=form, as_json=as_json)
    context.exit(_TRIPPED if gate.tripped else 0)


def _check(rules: Sequence[Rule], arguments: dict[str, Any]) -> None:
    """Refuse options that do not go together, and those that nothing reads: a limit may be believed to hold."""
    drifts = any(rule.kind == "drift" for rule in rules)
    binned = any(rule.kind in {"max", "min"} and rule.is_binned for rule in rules)
    drawn = any(rule.metric == _DRAWN for rule in rules)
    clipped = any(rule.metric == _CLIPPED for rule in rules)
    leans = any(rule.kind in {"gap", "drift"} for rule in rules)
    needs = {
        "--max-drift": dict.fromkeys(("time", "every", "time_zone", "reference"), drifts),
        "a limit on a binned metric, such as --max-ece": dict.fromkeys(("bins", "strategy", "closed"), binned),
        f"--max {_DRAWN}=VALUE": dict.fromkeys(("resamples", "seed"), drawn),
        f"--max {_CLIPPED}=VALUE": {"clip": clipped},
    }
    for unless, needed in needs.items():
        refuse_idle(needed, unless)
    msg = ""
    if drifts and arguments["time"] is None:
        msg = "--max-drift needs --time, the column of dates."
    elif arguments["fail_on"] == "lean" and not leans:
        msg = "--fail-on lean is about gaps, and no limit here is: add --max-gap or --max-drift, or see --strict."
    elif drifts and arguments["reference"] == "rolling":
        msg = (
            "--max-drift compares with a fixed reference, and 'rolling' is none; name periods, or see `calframe drift`."
        )
    if msg:
        raise click.UsageError(msg, click.get_current_context())


def _check_json(json_output: Path | None, form: str, files: Sequence[str]) -> None:
    """Refuse JSON that cannot be written."""
    if json_output == _STDOUT and form == "github":
        msg = "--json - prints JSON alone; write it to a file, or leave --format github out."
        raise click.UsageError(msg, click.get_current_context())
    if json_output is not None and json_output != _STDOUT:
        check_target(json_output, suffixes=(".json",), sources=files, option="--json")


def _computed(files: tuple[str, ...], rules: Sequence[Rule], **arguments: Any) -> tuple[Found, dict[str, Any]]:
    from calframe._gate._found import found_by  # noqa: PLC0415  --help need not load it

    with reading(files), waiting("Checking"):
        request = _request(files, **arguments)
        found = found_by(rules, request)
        rows = request.table.select(pl.len()).collect().item()
    counts = {"rows": rows, "n": found.n, "n_missing": found.n_missing, "n_invalid": found.n_invalid}
    return found, {**counts, "sha256": digest(files)}


def _request(
    files: tuple[str, ...],
    *,
    label: str,
    score: str,
    by: tuple[str, ...],
    weight: str | None,
    cluster: str | None,
    positive: str | None,
    **others: Any,
) -> Request:
    from calframe._gate._found import Request  # noqa: PLC0415  as above

    bins = given.read_bins(others["bins"])
    table = open_input(files, label=label, scores=[score], by=by, weight=weight, cluster=cluster, time=others["time"])
    warn_many_values(table, by)
    roles = {"label": label, "score": score, "weight": weight, "cluster": cluster}
    roles["positive"] = label_value(table, label=label, text=positive)
    roles |= {name: others[name] for name in ("link", "invalid", "weight_kind")}
    return Request(
        table=_as_names(table, by, roles),
        by=list(by),
        alpha=others["alpha"],
        roles=roles,
        binning={"bins": bins, "strategy": others["strategy"], "closed": others["closed"]},
        drawing={"n_resamples": others["resamples"], "rng": others["seed"]},
        clip=others["clip"],
        timing={
            **{name: others[name] for name in ("time", "every", "time_zone")},
            "reference": given.read_reference(others["reference"]),
        },
    )


def _as_names(table: pl.LazyFrame, by: Sequence[str], roles: dict[str, Any]) -> pl.LazyFrame:
    """Return the table with the values of segment columns as text, so that each of them is a segment."""
    if not by:
        return table
    plain = {name: value for name, value in roles.items() if name != "cluster"}
    plan = metrics(table, by=list(by), metrics="rate", **plain)  # says what is wrong with names and kinds of columns
    kinds = table.collect_schema()
    floats = [name for name in by if kinds[name].is_float()]
    if not all(_is_whole(table, name) for name in floats):
        plan.collect()
    table = table.with_columns(cs.by_name(*floats).fill_nan(None).cast(pl.Int64))
    return table.with_columns(cs.by_name(*by).cast(pl.String))


def _is_whole(table: pl.LazyFrame, name: str) -> bool:
    """Tell whether a float column holds whole numbers, as one of whole numbers with gaps does."""
    value = cs.by_name(name).fill_nan(None)
    return bool(table.select(((value == value.floor()) & value.is_finite()).all()).collect().item())


def _print(gate: Gate, alpha: float, cluster: str | None, *, form: str, as_json: str | None) -> None:
    from calframe._cli._check_view import check_view, verdict_lines  # noqa: PLC0415  rich is for tables, not for --help

    lines = "".join(f"{line}\n" for line in verdict_lines(gate))
    if as_json is not None:
        emit(as_json)
        click.echo(lines, err=True, nl=False)
    elif form == "github":
        emit(lines.replace("##[", "## [") + "".join(f"{line}\n" for line in annotation_lines(gate)))
        append_summary(gate, alpha=alpha)
    else:
        emit(check_view(gate, alpha=alpha, cluster=cluster))
