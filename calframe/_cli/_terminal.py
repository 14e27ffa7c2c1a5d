"""The terminal: what it can show, and a sign of life while someone watches."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calframe._cli._cells import to_ascii

PAGE = 80  # columns that text keeps within, whatever the terminal has
NO_EDGE = 100_000  # columns of a pipe or a file
_PATIENCE = 0.5  # seconds of work before a sign of life


def emit(text: str) -> None:
    """Print a result to stdout; a reader that has gone away (`| head`) is no error.

    Parameters
    ----------
    text
        What to print, with its line breaks.
    """
    try:
        sys.stdout.write(text if _speaks_unicode() else to_ascii(text))
        sys.stdout.flush()
    except BrokenPipeError:
        _print_nowhere()


def emit_bytes(part: bytes) -> bool:
    """Print data to stdout as it is, whatever the terminal speaks.

    Parameters
    ----------
    part
        What to print.

    Returns
    -------
    bool
        False if the reader has gone away, so that no more is needed.
    """
    try:
        sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _print_nowhere()
        return False
    return True


def _print_nowhere() -> None:
    """Let Python flush stdout at its end without another error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def takes_style() -> bool:
    """Return whether stdout is a terminal whose user takes bold and colour.

    Asked of the stream: `FORCE_COLOR` in a build log makes no terminal of it.
    """
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width() -> int:
    """Return the columns of the terminal; a pipe or a file has no edge."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else NO_EDGE


@contextmanager
def waiting(text: str) -> Iterator[Callable[[float], None] | None]:
    """Show that work goes on, on stderr, when it takes long and a person is watching.

    Parameters
    ----------
    text
        What is being done.

    Yields
    ------
    callable or None
        Takes the share of the work that is done, to be shown beside the text; None where nobody is watching.
    """
    if not sys.stderr.isatty() or os.environ.get("CI"):
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  costs 40 ms, which nobody waits for in a pipe

    status = Console(stderr=True, force_terminal=True, markup=False).status(text)
    timer = threading.Timer(_PATIENCE, status.start)
    timer.start()
    try:
        yield lambda share: status.update(f"{text}: {share:.0%}")
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def _speaks_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "ascii").lower().startswith("utf")
