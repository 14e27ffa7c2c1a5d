"""The group of commands, and the one place where errors become a line on stderr and an exit status."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence

import click

from calframe._cli._apply import apply
from calframe._cli._audit import audit
from calframe._cli._check import check
from calframe._cli._compare import compare
from calframe._cli._curve import curve
from calframe._cli._demo import demo
from calframe._cli._drift import drift
from calframe._cli._fit import fit
from calframe._cli._inference import test
from calframe._cli._metrics import metrics
from calframe._cli._report import report
from calframe._cli._typed import check_typed
from calframe._cli._words import as_options
from calframe._errors import CalframeError, CalframeWarning
from calframe._version import __version__

_COULD_NOT_RUN = 2
_INTERRUPTED = 130  # what shells give a command that Ctrl-C ended


class _Commands(click.Group):
    """Commands in the order of their use, that do not let the last of several values win where an option takes one."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click names it
        """Return the commands in the order in which they were added."""
        return [*self.commands]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was typed, its options looked through."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            check_typed(click.Context(command, info_name=name, parent=ctx), rest)
        return name, command, rest


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 fine, 1 a limit of `check` is broken, 2 could not run. The result goes to stdout, notes and "
    "errors to stderr.",
)
@click.version_option(__version__, "--version", prog_name="calframe", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Tell whether predicted probabilities can be believed: where, for whom, since when.

    A table of predictions has one row per prediction: a column with what happened (the label), a column with the
    predicted probability (the score), and columns that make segments. Start with `calframe demo`.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(_COULD_NOT_RUN)


for _command in (demo, report, audit, drift, check, metrics, curve, test, compare, fit, apply):
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments
        What stands after `calframe`; None reads the process's own.

    Returns
    -------
    int
        0 when it ran, 1 when a limit of `check` is broken, 2 when it could not run (bad path, column, value or usage),
        130 when it was interrupted.
    """
    _survive_narrow_encodings()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalframeWarning)
        status, problem = _ended(arguments)
    for warning in {str(warning.message): warning for warning in caught}.values():
        _show(warning)
    if problem:
        click.echo(f"Error: {problem}", err=True)
    return status


def _ended(arguments: Sequence[str] | None) -> tuple[int, str]:
    """Run the command; a fault of calframe's own must not end with the status of a broken limit."""
    try:
        return _run(arguments)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  a panic of polars is no Exception
        traceback.print_exc()
        return _COULD_NOT_RUN, ""


def _run(arguments: Sequence[str] | None) -> tuple[int, str]:
    try:
        status = cli.main(arguments, prog_name="calframe", standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "calframe"
        return _COULD_NOT_RUN, f"{error.format_message()}\nTry '{path} --help'."
    except click.ClickException as error:
        return _COULD_NOT_RUN, error.format_message()
    except click.Abort:
        return _INTERRUPTED, ""
    except CalframeError as error:
        return _COULD_NOT_RUN, as_options(str(error))
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        return _COULD_NOT_RUN, f"cannot use{where or ' a file'}: {error.strerror or error}."
    return int(status or 0), ""


def _survive_narrow_encodings() -> None:
    """Print `?` for a letter that the terminal has no code for, rather than stop."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _show(warning: warnings.WarningMessage) -> None:
    if issubclass(warning.category, CalframeWarning):
        click.echo(f"Note: {as_options(str(warning.message))}", err=True)
    else:
        text = warnings.formatwarning(warning.message, warning.category, warning.filename, warning.lineno)
        click.echo(text, err=True, nl=False)
