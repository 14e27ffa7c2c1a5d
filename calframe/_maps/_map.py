"""The result of a fit: a calibration map, which is data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals.stable.v2 as nw
import polars as pl

from calframe._errors import ArgumentError, CalframeError
from calframe._maps._forms import Form, from_record, to_record
from calframe._maps._integrity import check_parts
from calframe._maps._rows import map_table
from calframe._maps._segments import Segments
from calframe._results import json_ready, like
from calframe._typing import Link

if TYPE_CHECKING:
    from calframe._charts import Drawing

Json: TypeAlias = dict[str, Any]

SCHEMA = "calframe.calibration_map"
SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CalibrationMap:
    """A calibration map: what it does to each segment, as a small table that can be read, saved and applied anywhere.

    Attributes
    ----------
    method : str
        How it was fitted.
    options : dict
        The arguments of that fit.
    label : str
        The label column of the rows it was fitted on.
    scores : tuple of str
        The score column, or one a class.
    classes : tuple
        The classes; empty where the score is that of the positive class.
    vector : bool
        Whether one column holds the probabilities of all classes.
    by : tuple of str
        The segment columns.
    pooling : {"none", "partial", "complete"}
        What was done, which may differ from what was asked: see `notes`.
    link : {"probability", "logit"}
        What the scores are.
    floor : float
        How far from 0 a probability stays in a logarithm.
    n, n_missing, n_invalid : int
        Rows used, and rows left out.
    low, high : float or None
        The lowest and highest score of the rows used, as probabilities, of several classes the largest of a row; None
        where it is not known.
    notes : tuple of str
        What is to be said of the whole fit.
    mark : str
        A checksum of the rows that it was fitted on.
    """

    method: str
    options: Json
    label: str
    scores: tuple[str, ...]
    classes: tuple[Any, ...]
    vector: bool
    by: tuple[str, ...]
    pooling: str
    link: Link
    floor: float
    n: int
    n_missing: int
    n_invalid: int
    low: float | None = None
    high: float | None = None
    notes: tuple[str, ...]
    mark: str
    form: Form = field(repr=False)
    segments: Segments = field(repr=False)
    _native: Any = field(default=None, repr=False)

    @property
    def table(self) -> Any:
        """One row per segment and parameter or knot, in the library of the table that the map was fitted on.

        Columns: the segment columns (all null for the pooled map, which unseen and null segments take), ``n`` (rows
        fitted on), ``class`` for one-vs-rest maps, ``parameter`` (its name, or "knot"), ``x`` (the score of a knot),
        ``value``, ``sd`` (its standard error, or the standard deviation that partial pooling leaves) and ``note``.
        """
        table = map_table(self.form, self.segments, self.classes, n=self.n)
        return table if self._native is None else like(table, self._native)

    def apply(self, data: Any, *, name: str = "p_calibrated") -> Any:
        """Return a table with the calibrated column added; see `calframe.apply`."""
        from calframe._maps._applying import applied  # noqa: PLC0415  a map is applied by what knows all forms

        return applied(data, self, name=name)

    def to_expr(self, *, score: pl.Expr | None = None) -> pl.Expr:
        """Return the calibrated probability as a polars expression on the columns that the map was fitted on.

        Parameters
        ----------
        score : polars.Expr, optional
            The scores; by default the column of those that the map was fitted on.

        Examples
        --------
        Of the scores 0.9 and 0.1 three of four were right, so the temperature is 2:

        >>> import polars as pl
        >>> import calframe
        >>> rows = pl.DataFrame({"p": [0.9] * 4 + [0.1] * 4, "y": [1, 1, 1, 0, 1, 0, 0, 0]})
        >>> found = calframe.fit(rows, label="y", score="p", method="temperature")
        >>> rows.select(calibrated=found.to_expr())["calibrated"].unique().sort().round(12).to_list()
        [0.25, 0.75]
        """
        from calframe._maps._applying import column  # noqa: PLC0415

        if self.classes:
            msg = f"a map of {len(self.classes)} classes has no single column; use .apply(data), or .to_sql()."
            raise ArgumentError(msg)
        found = column(self, name="p", score=score).struct.field("p")
        return found if score is None else found.alias(score.meta.output_name())

    def wrap(self, classifier: Any) -> Any:
        """Return a classifier whose probabilities go through this map, for code that expects `predict_proba`.

        Parameters
        ----------
        classifier : object
            A fitted classifier with `predict_proba` and `classes_`, as those of scikit-learn, whose probabilities the
            map was fitted on: those of the second class, or of all of them.

        Returns
        -------
        object
            With ``predict_proba(X)``, ``predict(X)`` and ``classes_``. If the map has segments, X is a frame with their
            columns.
        """
        from calframe._maps._wrapped import MappedClassifier  # noqa: PLC0415

        return MappedClassifier(classifier=classifier, map=self)

    def to_sql(self, dialect: str = "duckdb", *, table: str = "t", name: str = "p_calibrated") -> str:
        """Return one SELECT that keeps every column and adds the calibrated one.

        Parameters
        ----------
        dialect : str, default "duckdb"
            A dialect of sqlglot, such as "duckdb", "postgres", "spark", "bigquery" or "snowflake".
        table : str, default "t"
            The table it reads.
        name : str, default "p_calibrated"
            The column it adds.
        """
        from calframe._maps._sql import select  # noqa: PLC0415  the SQL generator loads only when asked for

        return select(self, dialect, table=table, name=name)

    def to_dict(self) -> Json:
        """Return the map as JSON-ready data with a schema and its version; floats keep every digit."""
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "method": self.method,
            "options": json_ready(self.options),
            "label": self.label,
            "scores": list(self.scores),
            "classes": [_plain_class(name) for name in self.classes],
            "vector": self.vector,
            "by": list(self.by),
            "pooling": self.pooling,
            "link": self.link,
            "floor": self.floor,
            "n": self.n,
            "n_missing": self.n_missing,
            "n_invalid": self.n_invalid,
            "low": self.low,
            "high": self.high,
            "notes": list(self.notes),
            "mark": self.mark,
            "segments": self.segments.to_record(),
            "form": to_record(self.form),
        }

    def save(self, path: str | Path) -> Path:
        """Write the map as JSON, to be read by `calframe.load_map`, and return the path."""
        target = Path(path)
        target.write_text(json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        return target

    def summary(self) -> Any:
        """Return what the map does to each segment, in words.

        Returns
        -------
        frame
            One row for the pooled map, which unseen and null segments take (all segment columns null), then one per
            segment, in the library of the table that the map was fitted on: the segment columns, ``n`` (rows fitted
            on), ``largest_change`` (of a score over the fitted range, with its sign: above 0 the map raises it),
            ``summary`` (the words) and ``note`` (what is to be said of the fit, as in ``.table``).

        Notes
        -----
        A map is looked at along 101 even steps of its fitted range, from the lowest to the highest score of the
        segment. Changes below 0.005 are none; nor are those below a twentieth of the highest score, where all are
        below 0.1, or of what the lowest lacks to 1, where all are above 0.9. If no change is left, it "leaves scores
        nearly as they are". If all calibrated values lie within as little, it "gives all scores nearly the same".
        Otherwise it "raises" or "lowers scores" ("all" where every change counts); raises small ones and lowers large
        ones, which "pulls scores towards the middle" if the change turns between 0.4 and 0.6; the other way round,
        which "pushes scores away from the middle"; or raises and lowers them by turns. Stretches that together have at
        most a tenth of all changes are passed over ("mostly"). The scores written out are at a tenth, half and nine
        tenths of the fitted range, or 0.1, 0.5 and 0.9 if those are at most a tenth of the range away.

        Of several classes the words are about the largest probability, the other classes sharing the rest evenly: on
        average over the classes, and if they differ by as much as counts, from the class that is left with least to
        that with most. The fitted range is that of the largest probability, of one-vs-rest maps all that is possible.

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> score, late = [0.2] * 10 + [0.8] * 10, [1] + [0] * 9 + [1] * 9 + [0]
        >>> table = pl.DataFrame({"late": late, "p": score})
        >>> found = calframe.fit(table, label="late", score="p", method="temperature")
        >>> found.summary()["summary"][0]
        'pushes scores away from the middle: 0.26 -> 0.16, 0.5 -> 0.5, 0.74 -> 0.84'
        """
        from calframe._maps._summary import summary_table  # noqa: PLC0415  words are made by what applies maps

        table = summary_table(self)
        return table if self._native is None else like(table, self._native)

    def plot(self, *, width: int = 540) -> Drawing:
        """Draw calibrated against given probabilities: the pooled map, and one line per segment.

        The eight segments of most rows that have a map of their own are coloured, the next 60 thin and grey.
        Lines are faint and dashed beyond the scores that the map was fitted on. A Venn-Abers map has its intervals as
        a band. Of several classes the largest probability is drawn, the other classes sharing the rest evenly: one
        line per class, or per segment the mean over the classes.

        Parameters
        ----------
        width : int, default 540
            Width of the chart in pixels.

        Returns
        -------
        altair.LayerChart
            In a light theme of fixed colours. Nothing global is changed. ``chart.save("map.svg")`` and ``.png`` need
            nothing from the network; for a page that does not either, ``chart.save("map.html", inline=True)``.
        """
        from calframe._maps._plotted import plotted  # noqa: PLC0415  altair loads only when a chart is asked for

        return plotted(self, width=width)

    def __repr__(self) -> str:
        """Say what the map is in a line of at most 80 characters."""
        from calframe._maps._summary import line  # noqa: PLC0415

        return line(self)

    def _repr_html_(self) -> str:
        from calframe._maps._summary import card  # noqa: PLC0415

        return card(self)


def load_map(path: str | Path) -> CalibrationMap:
    """Read a calibration map that `CalibrationMap.save` wrote.

    Parameters
    ----------
    path : str or Path
        The JSON file.

    Raises
    ------
    CalframeError
        If the file holds no map, or one of a version that this calframe does not know.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        msg = f"{str(path)!r} is no calibration map: it is not JSON ({error})."
        raise CalframeError(msg) from error
    return map_of(record, source=str(path))


def map_of(record: Any, *, source: str) -> CalibrationMap:
    """Return the map of a record that `CalibrationMap.to_dict` made."""
    if not isinstance(record, Mapping) or record.get("schema") != SCHEMA:
        msg = f"{source!r} is no calibration map: it has no schema {SCHEMA!r}. Maps are written by .save(path)."
        raise CalframeError(msg)
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        msg = (
            f"{source!r} is a calibration map of version {version!r}; this calframe reads version {SCHEMA_VERSION}. "
            "Update calframe, or fit and save the map anew."
        )
        raise CalframeError(msg)
    try:
        return _made(record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, pl.exceptions.PolarsError) as error:
        msg = f"{source!r} is a damaged calibration map ({type(error).__name__}: {error}); fit and save it anew."
        raise CalframeError(msg) from error


def _made(record: Mapping[str, Any]) -> CalibrationMap:
    form, segments = from_record(record["form"]), Segments.from_record(record["segments"])
    check_parts(form, segments, len(record["classes"]))
    return CalibrationMap(
        method=record["method"],
        options=record["options"],
        label=record["label"],
        scores=tuple(record["scores"]),
        classes=tuple(record["classes"]),
        vector=record["vector"],
        by=tuple(record["by"]),
        pooling=record["pooling"],
        link=record["link"],
        floor=record["floor"],
        n=record["n"],
        n_missing=record["n_missing"],
        n_invalid=record["n_invalid"],
        low=record["low"],
        high=record["high"],
        notes=tuple(record["notes"]),
        mark=record["mark"],
        form=form,
        segments=segments,
    )


def _plain_class(name: Any) -> Any:
    item = getattr(name, "item", None)
    return item() if callable(item) else name


def head_of(data: Any) -> Any:
    """Return an empty frame of the user's library, so that tables come back in it; None for lazy and remote ones."""
    frame = nw.from_native(data)
    return frame.head(0).to_native() if isinstance(frame, nw.DataFrame) else None
