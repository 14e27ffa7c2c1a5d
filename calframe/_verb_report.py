"""The verb `report` and its result. Charts and templates load when a report is asked for, not on import."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calframe._errors import ArgumentError
from calframe._measures import chosen_metrics
from calframe._periods import Every, check_every
from calframe._results import like, to_polars
from calframe._roles import Roles, WeightKind
from calframe._typing import Invalid, Json, Link, Names
from calframe._verdicts import check_tolerance

if TYPE_CHECKING:
    from calframe._report._findings import Findings
    from calframe._report._page import Page

_SUFFIXES = (".html", ".json")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """A calibration report.

    Attributes
    ----------
    table : frame
        One row per segment, worst first within its grouping, the whole table before them (``column`` empty):
        ``column``, ``segment`` (text), counts, ``rate``, ``mean_score``, ``gap`` with its own and with simultaneous
        intervals, raw and adjusted p-value, ``verdict``, ``net`` (rows misstated), ``rows_needed``, ``brier``,
        ``log_loss``, ``ece``, ``ece_expected``; with `by` also what `audit` says of segments: ``gap_shrunken``,
        ``gap_to_rest``, ``ecce`` with their errors and p-values, ``note``. In the
        library of the input, polars where that was lazy.
    verdict : str
        ``"action needed"`` (a clear gap of all rows or a segment, a clear gap since some period, or scores of all rows
        that are off over their range: ECE beyond chance at p of at most .001, and beyond chance and gap by more than
        the tolerance), ``"watch"`` (a lean, or scores of a segment that are off over their range), ``"undecided"`` or
        ``"within tolerance"``. `audit` measures no ECE, so that errors along the scores are "watch" to it.
    headline : str
        The verdict as a sentence.
    findings : object
        The numbers that page and JSON are made from.
    call : str
        The call that makes the report again.
    """

    table: Any
    verdict: str
    headline: str
    findings: Findings
    call: str

    @property
    def ok(self) -> bool | None:
        """True if all is within tolerance, False if something is clearly off, None in between (watch, undecided)."""
        return {"action needed": False, "within tolerance": True}.get(self.verdict)

    def to_html(self) -> str:
        """Return the whole page: one file, which loads nothing and holds no row of the table."""
        from calframe._report._render import render_page  # noqa: PLC0415  jinja2 loads only when a page is asked for

        return render_page(self._page())

    def to_dict(self) -> Json:
        """Return the findings as JSON-ready data with a schema version."""
        from calframe._report._result import result  # noqa: PLC0415

        return result(self.findings)

    def save(self, path: str | Path) -> Path:
        """Write the report and return its path.

        Parameters
        ----------
        path : str or Path
            Where to; ``.html`` for the page, ``.json`` for the findings.

        Raises
        ------
        ArgumentError
            If the suffix is another one, or the folder is not there.
        """
        target = Path(path)
        if target.suffix.lower() not in _SUFFIXES:
            msg = f"a report is saved as {' or '.join(_SUFFIXES)}; got {str(path)!r}."
            raise ArgumentError(msg)
        if not target.parent.is_dir():
            msg = f"there is no folder {str(target.parent)!r} to save the report in; make it first."
            raise ArgumentError(msg)
        as_page = target.suffix.lower() == ".html"
        text = self.to_html() if as_page else json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1)
        unfinished = target.with_name(f".{target.name}.part")
        try:
            unfinished.write_text(text, encoding="utf-8")
            return unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)

    def show(self) -> None:
        """Open the page in a browser; where there is none, say where the file is."""
        import tempfile  # noqa: PLC0415
        import webbrowser  # noqa: PLC0415

        with tempfile.NamedTemporaryFile(prefix="calframe-", suffix=".html", delete=False) as file:
            path = self.save(file.name)
        if not webbrowser.open(path.as_uri()):
            print(f"No browser was found; the report is {path}")  # noqa: T201  asked for by the caller

    def __repr__(self) -> str:
        """Return verdict, sentence and segments as text, within 80 columns."""
        from calframe._report._text import report_text  # noqa: PLC0415

        roles = self.findings.roles.convention()
        return report_text(to_polars(self.table), verdict=self.verdict, headline=self.headline, roles=roles)

    def __bool__(self) -> bool:
        """Refuse: "not ok" and "not decided" are two things."""
        msg = "a report is neither true nor false; use .ok, which is None where nothing is decided."
        raise TypeError(msg)

    def _repr_html_(self) -> str:
        from calframe._report._render import render_card  # noqa: PLC0415

        return render_card(self._page())

    def _page(self) -> Page:
        from calframe._report._build import page  # noqa: PLC0415  altair loads only when charts are asked for

        return page(self.findings, call=self.call)


def report(
    data: Any,
    *,
    label: str,
    score: str,
    by: Names | None = None,
    weight: str | None = None,
    cluster: str | None = None,
    time: str | None = None,
    time_zone: str | None = None,
    every: Every | None = None,
    tolerance: float = 0.03,
    alpha: float = 0.05,
    metrics: Names | None = None,
    title: str | None = None,
    positive: Any = None,
    link: Link = "probability",
    invalid: Invalid = "raise",
    weight_kind: WeightKind = "importance",
    engine: Any = None,
) -> Report:
    """Say in one page whether the scores can be believed: where not, since when, and what to do.

    Each segment gets a three-way verdict against a tolerance that you set beforehand: a clear gap, within tolerance, or
    not decided. The queries run at once, on the table's own engine; only sums reach Python, and no row of the table
    reaches the page.

    Parameters
    ----------
    data : table
        See `metrics`.
    label, weight, positive, link, invalid, weight_kind, engine
        See `metrics`.
    score : str
        Column of the probability of the positive class. Of a model of several classes take one: its probability, with
        a 0/1 label of whether it happened. For all of them together `metrics` and `curve` have ``notion=``.
    by : str or list of str, optional
        Segment columns. Each is a grouping of its own; intervals and p-values hold over the segments of all of them.
    cluster : str, optional
        The column that tells apart what is independent, such as persons or days: rows of one value share their luck,
        a null is a cluster of its own. Intervals, tests and verdicts then go by clusters, as those of `audit` and
        `drift` do; in curves, heatmaps and the ECE of right scores the design effect of the gap of a segment goes for
        all its ranges of scores, and errors along the scores of single segments are not looked for.
    time : str, optional
        Date or datetime column, for the course over time.
    time_zone : str, optional
        Zone in which local days begin, such as ``"Europe/Paris"``; by default that of the column. A column without
        a zone holds wall time, which is taken as it is; with `time_zone` it is read as UTC.
    every : {"1d", "1w", "1mo", "1q", "1y"}, optional
        Length of a period; by default the longest that gives at least six. Where most of these would have
        fewer than the 100 rows that a period needs to be judged, a longer one that gives at least two.
    tolerance : float, default 0.03
        The gap, as a fraction, that does not matter either way.
    alpha : float, default 0.05
        Error rate over all segments together; intervals have level 1 - alpha.
    metrics : str or list of str, optional
        Further metrics of each segment (see `metrics`), your own ones too. They stand with their intervals, each by
        itself at level 1 - alpha, in ``.table``, ``.to_dict()`` and among the numbers of the page; verdicts do not use
        them. On a remote engine those of distinct scores are summed up by score.
    title : str, optional
        Title of the page.

    Returns
    -------
    Report
        With ``.save(path)``, ``.show()``, ``.to_html()``, ``.to_dict()``, ``.table``, ``.verdict`` and ``.ok``.

    Raises
    ------
    CalframeError
        As `metrics`.

    References
    ----------
    Šidák, Z. (1967). Rectangular confidence regions for the means of multivariate normal distributions. Journal of
    the American Statistical Association 62, 626-633. https://doi.org/10.1080/01621459.1967.10482935

    Examples
    --------
    >>> import polars as pl
    >>> import calframe
    >>> rain = pl.DataFrame({"rain": [1, 0, 0, 0] * 500, "p": [0.4] * 2000, "city": ["Oslo", "Rome"] * 1000})
    >>> found = calframe.report(rain, label="rain", score="p", by="city", tolerance=0.05)
    >>> found.verdict, found.ok
    ('action needed', False)
    """
    given = dict(locals())
    check_tolerance(tolerance, alpha)
    check_every(every, time)
    extras = () if metrics is None else chosen_metrics(metrics)
    roles = Roles.from_arguments(
        label=label,
        score=_one_score(score),
        by=by,
        weight=weight,
        cluster=cluster,
        time=time,
        time_zone=time_zone,
        positive=positive,
        link=link,
        invalid=invalid,
        weight_kind=weight_kind,
    )
    from calframe._report._gather import gather  # noqa: PLC0415  the report's modules load when one is made
    from calframe._report._result import segment_frame  # noqa: PLC0415
    from calframe._report._sentences import lead  # noqa: PLC0415

    findings = gather(
        data,
        roles,
        every=every,
        tolerance=tolerance,
        alpha=alpha,
        title=title if title is not None else f"Scores of {score}",
        engine=engine,
        extras=extras,
    )
    return Report(
        table=like(segment_frame(findings), data),
        verdict=findings.state,
        headline=lead(findings),
        findings=findings,
        call=f'calframe.report(data, {_asked(given)}).save("report.html")',
    )


def _asked(given: dict[str, Any]) -> str:
    """Return the arguments that differ from their defaults, as code."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(report).parameters.items()}
    shown = [name for name in defaults if name not in {"data", "engine"}]
    differs = [name for name in shown if given[name] is not defaults[name] and given[name] != defaults[name]]
    plain = {name: getattr(given[name], "item", lambda name=name: given[name])() for name in differs}  # NumPy scalars
    return ", ".join(f"{name}={value!r}" for name, value in plain.items())


def _one_score(score: object) -> str:
    if isinstance(score, str):
        return score
    what = f"a report is about one column of probabilities of a positive class; got score={score!r}."
    if isinstance(score, Mapping):
        what += (
            " For several classes make a 0/1 column for one class, or for whether the likeliest class happened, and "
            "report on its probability; calframe.metrics and calframe.curve take all classes at once."
        )
    else:
        what += " Make one report for each model."
    raise ArgumentError(what)
