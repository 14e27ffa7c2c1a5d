"""From a table of the caller to rows a drawing can hold."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import altair as alt
import polars as pl
import polars.selectors as cs

from calframe._words._lines import distinct

Columns: TypeAlias = Mapping[str, type[pl.DataType]]

# A control character in a text stops the SVG writer, and with it the process; each has a visible picture in Unicode.
_CONTROLS: Final = [chr(code) for code in range(0x20)] + ["\x7f", "\ufffe", "\uffff"]
_PICTURES: Final = [chr(0x2400 + code) for code in range(0x20)] + ["\u2421", "\ufffd", "\ufffd"]
_FIGURES: Final = 6  # significant figures of a position: a thousandth of a pixel
_EM: Final = 0.56  # width of most letters
_FEWEST: Final = 6  # columns of a cut name


def tidy(table: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """Keep the columns a chart reads, in their types, with nothing a drawing cannot hold.

    NaN and infinities become null; control characters become their pictures (U+2400 and on).
    """
    return table.select(pl.col(name).cast(dtype) for name, dtype in columns.items()).with_columns(
        pl.when(cs.float().is_finite()).then(cs.float()),
        cs.string().str.replace_many(_CONTROLS, _PICTURES),
    )


def texts(values: Sequence[str]) -> list[str]:
    """Return texts as `tidy` writes them, so that an order given beside a table fits the table."""
    return tidy(pl.DataFrame({"text": list(values)}), {"text": pl.String})["text"].to_list()


def inline(table: pl.DataFrame, *columns: str) -> alt.InlineData:
    """Return columns of a table as data inside the specification, independent of any global data transformer."""
    rounded = table.select(columns).with_columns(cs.float().round_sig_figs(_FIGURES))
    return alt.InlineData(values=rounded.to_dicts())


def single() -> alt.InlineData:
    """Return data of one row, for a mark that is drawn once."""
    return alt.InlineData(values=[{"once": 1}])


def text_width(values: Sequence[str], *, size: float = 12) -> float:
    """Estimate the width in pixels of the longest text, on the generous side, at a font size."""
    return max((sum(_em(sign) for sign in text) for text in values), default=0.0) * size


def fitted_names(names: Sequence[str], room: float, *, size: float = 12) -> list[str]:
    """Return names that take at most so many pixels, cut so that those that differ still do.

    The drawing's own cut would take the same end off all, and go through the middle of an emoji, and fail.
    """
    if text_width(names, size=size) <= room:
        return list(names)
    width = max(_FEWEST, int(room / (_EM * size)))
    while (taken := text_width(found := distinct(names, width), size=size)) > room and width > _FEWEST:
        width = max(_FEWEST, min(width - 1, int(width * room / taken) + 1))
    return found


def _em(sign: str) -> float:
    """Return the width of one character in ems."""
    if unicodedata.combining(sign):
        return 0.0
    if unicodedata.east_asian_width(sign) in "WF":
        return 1.0
    return 0.7 if sign.isupper() or sign in "%@mw→−" else _EM
