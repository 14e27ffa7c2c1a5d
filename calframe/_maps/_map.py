"""The result of a fit: a calibration map, which is data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals.stable.v2 as nw
import polars as pl

from calframe._errors import ArgumentError
from calframe._maps._forms import Form, Pair
from calframe._maps._integrity import check_map
from calframe._maps._rows import map_table
from calframe._maps._segments import Segments
from calframe._options import check_width
from calframe._results import like
from calframe._typing import Link

if TYPE_CHECKING:
    from calframe._charts import Drawing

Json: TypeAlias = dict[str, Any]


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
    positive : object
        The label value that counts as positive; None where classes are named, or where it is not known.
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
    positive: Any = None
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

    def __post_init__(self) -> None:
        check_map(self)

    @property
    def table(self) -> Any:
        """One row per segment and parameter or knot, in the library of the table that the map was fitted on.

        Columns: the segment columns (all null for the pooled map, which unseen and null segments take), ``n`` (rows
        fitted on), ``class`` for one-vs-rest maps, ``parameter`` (its name, "knot" or "logit knot"), ``x`` (the score
        of a knot, or its logit), ``value``, ``sd`` (its standard error, or the standard deviation that partial pooling
        leaves) and ``note``. Where one map serves all rows there are no segment columns.
        """
        table = map_table(self.form, self.segments, self.classes, n=self.n, note="; ".join(self.notes) or None)
        return table if self._native is None else like(table, self._native)

    def apply(self, data: Any, *, name: str = "p_calibrated") -> Any:
        """Return a table with the calibrated column added; see `calframe.apply`."""
        from calframe._maps._applying import applied  # noqa: PLC0415  a map is applied by what knows all forms

        return applied(data, self, name=name)

    def reach(self, data: Any) -> Any:
        """Count how far a table lies within what the map was fitted on.

        Beyond the lowest and highest score of its rows a map is held or continued by its formula, and a segment that
        it has not seen takes the pooled map: such rows are calibrated, but no data stand behind it.

        Parameters
        ----------
        data : table
            As `apply` takes it; a lazy table is collected.

        Returns
        -------
        frame
            One row per segment of the table, in its library: the segment columns, ``n`` (rows), ``n_missing`` (without
            a score), ``n_below`` and ``n_above`` (with a score below or above those that the segment's map was fitted
            on, of several classes the largest of a row; 0 for one-vs-rest maps, where that is not known), and ``note``.

        Examples
        --------
        >>> import polars as pl
        >>> import calframe
        >>> rows = pl.DataFrame({"p": [0.2, 0.4, 0.6], "y": [0, 1, 1]})
        >>> found = calframe.fit(rows, label="y", score="p", method="isotonic")
        >>> new = pl.DataFrame({"p": [0.05, 0.4, 0.99, None]})
        >>> found.reach(new).select("n", "n_missing", "n_below", "n_above").row(0)
        (4, 1, 1, 1)
        """
        from calframe._maps._reach import reach_table  # noqa: PLC0415  it reads tables as what applies maps does

        return reach_table(data, self)

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
        found = column(self, name="p", score=score)
        if isinstance(self.form, Pair):  # which adds the ends of its intervals, too
            found = found.struct.field("p")
        return found if score is None else found.alias(score.meta.output_name())

    def wrap(self, classifier: Any, *, positive: Any = None) -> Any:
        """Return a classifier whose probabilities go through this map, for code that expects `predict_proba`.

        Parameters
        ----------
        classifier : object
            A fitted classifier with `predict_proba` and `classes_`, as those of scikit-learn, whose probabilities the
            map was fitted on: those of the positive class, or of all classes. Classes are matched by their values, in
            whatever order; 0, 0.0 and False are the same one. A map of logits takes those of the probabilities.
        positive : object, optional
            The class whose probability a map of one score was fitted on; by default `.positive`. To be given where the
            label of the fit had other values than `classes_`.

        Returns
        -------
        object
            With ``predict_proba(X)``, ``predict(X)``, ``score(X, y)`` and ``classes_``, those of the classifier. If the
            map has segments, X is a frame with their columns; the classifier gets X without those that it was not
            fitted with, by its ``feature_names_in_`` or else by the number ``n_features_in_``. The tools of
            scikit-learn take it as a classifier that is fitted: ``fit`` and ``clone`` give it back as it is.

        Raises
        ------
        ArgumentError
            If the classifier is not fitted, or its classes are not those of the map.
        """
        from calframe._maps._wrapped import MappedClassifier  # noqa: PLC0415

        return MappedClassifier(classifier=classifier, map=self, positive=positive)

    def to_sql(self, dialect: str = "duckdb", *, table: str = "t", name: str = "p_calibrated") -> str:
        """Return one SELECT that keeps every column and adds the calibrated one.

        A missing score gives NULL; so does one outside [0, 1], but in DuckDB it is an error when rows are fetched, also
        those that `apply` gives of a relation.

        Parameters
        ----------
        dialect : str, default "duckdb"
            "duckdb", "postgres", "sqlite" (with its math functions), "mysql" (8), "tsql" (SQL Server 2022), "oracle",
            "snowflake", "bigquery", "spark", "databricks", "trino", "presto", "athena"; for binary maps other than
            Venn-Abers also "redshift" and "clickhouse".
        table : str, default "t"
            The table it reads.
        name : str, default "p_calibrated"
            The column it adds, or what several begin with. Names are quoted: to Snowflake ``p`` is not ``P``.
        """
        from calframe._maps._sql import select  # noqa: PLC0415  the SQL generator loads only when asked for

        return select(self, dialect, table=table, name=name)

    def to_dict(self) -> Json:
        """Return the map as JSON-ready data with a schema and its version; floats keep every digit."""
        from calframe._maps._saved import record_of  # noqa: PLC0415  what reads maps makes them, too

        return record_of(self)

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
        most a tenth of all changes are passed over ("mostly"), and one of two stretches if it has a hundredth. The
        scores written out are at a tenth, half and nine tenths of the fitted range, or 0.1, 0.5 and 0.9 if those are
        at most a tenth of the range away.

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
            Width of the chart in pixels, from 200 to 4,000.

        Returns
        -------
        altair.LayerChart
            In a light theme of fixed colours. Nothing global is changed. ``chart.save("map.svg")`` and ``.png`` need
            nothing from the network; a page does, unless it is saved with ``chart.save("map.html", inline=True)``.
        """
        from calframe._maps._plotted import plotted  # noqa: PLC0415  altair loads only when a chart is asked for

        check_width(width)
        return plotted(self, width=width)

    def __repr__(self) -> str:
        """Say what the map is in a line of at most 80 characters."""
        from calframe._maps._summary import line  # noqa: PLC0415

        return line(self)

    def _repr_html_(self) -> str:
        from calframe._maps._summary import card  # noqa: PLC0415

        return card(self)


def head_of(data: Any) -> Any:
    """Return an empty frame of the user's library, so that tables come back in it; None for lazy and remote ones."""
    frame = nw.from_native(data)
    return frame.head(0).to_native() if isinstance(frame, nw.DataFrame) else None
