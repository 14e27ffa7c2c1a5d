"""The command line: files in, the public functions, text and files out."""

from __future__ import annotations

from calframe._cli._main import main

__all__ = ["main"]
