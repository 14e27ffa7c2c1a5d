"""A page made by hand: six segments, three charts, every optional part present."""

from __future__ import annotations

import altair as alt

from calframe._report._page import Action, Figure, Headline, Page, Section, TextTable, Tile

SEGMENTS = ("West", "Coast", "Capital", "Highlands", "North", "Islands")
GAPS = (7.7, -2.6, -1.7, 0.4, 1.5, 3.2)
WIDTHS = (1.2, 1.6, 1.9, 4.0, 1.4, 9.0)
TOKENS = ("over", "under", "none", "none", "ok", "none")
ROWS = (3566, 2918, 3129, 726, 5270, 66)
PERIODS = ("2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06")
DRIFT = (0.8, -0.4, 0.6, 0.2, 5.0, 4.9)
CALL = """cf.report(df, label="y", score="p", by="area",
          time="scored_at", tolerance=0.03).save("report.html")"""
BANDS = ("0–10%", "10–20%", "20–40%", "40–100%")


def example_page(
    *,
    segments: tuple[str, ...] = SEGMENTS,
    title: str = "credit-default-v7",
    call: str = CALL,
) -> Page:
    """Build the page; the names of the segments and the title are the caller's, as in real tables."""
    worst = segments[0]
    sections = (
        Section(
            id="where",
            name="Where the scores are off",
            link="Where",
            figures=(_forest_figure(segments), _heat_figure(segments)),
        ),
        Section(id="time", name="Over time", link="Over time", figures=(_drift_figure(),)),
    )
    return Page(
        title=title,
        meta="24,000 predictions · 6 areas · 2026-01 to 2026-06 · score column p, outcome column y · tolerance ±3 pp",
        headline=Headline(
            tone="over",
            symbol="▲",
            word="Action needed",
            lead=f"On average the scores are within tolerance, but {worst} is overstated by "
            "8 percentage points, and since May 2026 scores overall have run 5 percentage points high.",
        ),
        tiles=(
            Tile(
                name="Overall gap, said − happened",
                big="+1.2 pp",
                small="95% CI +0.7 to +1.7; inside the ±3 pp tolerance",
                tone="ok",
            ),
            Tile(
                name="Calibration error (ECE)",
                big="1.4 pp",
                small="a perfect model would show 0.8 by chance",
                tone="ok",
            ),
            Tile(
                name="Segments with a clear gap",
                big="1 of 5",
                small="1 within tolerance, 1 leaning, 2 undecided, 1 too small",
                tone="over",
            ),
            Tile(name="Latest period, Jun 2026", big="+4.9 pp", small="before May 2026: +0.4 pp", tone="over"),
        ),
        actions=(
            Action(
                what=f"Recalibrate {worst} before its scores are used again.",
                why="They overstate by 7.7 pp (95% CI +6.5 to +8.9): of 3,566 people, 1,048 positives were "
                "predicted and 772 happened. A map per area brings the held-out error from 7.7 to 1.1 pp.",
            ),
            Action(
                what="Find out what changed in May 2026.",
                why="The gap moved from +0.4 to +5.0 pp in 5 of 5 areas, so the cause is not one area.",
            ),
            Action(
                what=f"Watch {segments[1]}.",
                why="It leans under by 2.6 pp (adjusted p 0.004), and may still be inside ±3 pp.",
            ),
            Action(
                what="Do not report these as fine:",
                why=f"{segments[2]} (3,129 rows), {segments[5]} (66 rows) cannot be judged yet.",
            ),
        ),
        sections=sections,
        method=(
            ("Gap", "Mean predicted probability minus observed rate. Positive: over-predicts."),
            ("Verdicts", "Three-way: clear gap, within tolerance, undecided, from the interval’s place against ±3 pp."),
            ("Several segments at once", "p-values by Holm, thin intervals by Bonferroni over the 5 segments judged."),
            ("Small segments", "Under 100 rows or 10 positives or negatives: listed, never judged."),
            ("Band", "Simulated outcomes with the model’s own scores, per bin, 2.5th to 97.5th percentile."),
            ("What this cannot show", "Calibration says nothing about who was scored, or whether the outcome is fair."),
        ),
        call=call,
        provenance="Input: 24,000 rows, sha256 4233327feca73d74… of (y, p, area). Made 2026-07-01 09:00 UTC "
        "with calframe 0.1.0. This file holds no row of the input and loads nothing from the network.",
        version="0.1.0",
        result={
            "schema": "calframe.report/1",
            "segments": [{"segment": name, "gap": gap} for name, gap in zip(segments, GAPS, strict=True)],
        },
    )


def empty_page() -> Page:
    """Build the least a page can hold: a headline, and nothing that is optional."""
    return Page(
        title="empty",
        meta="0 predictions",
        headline=Headline(tone="none", symbol="○", word="Nothing found", lead="There are too few rows to judge."),
        tiles=(),
        actions=(),
        sections=(),
        method=(),
        call="cf.report(df)",
        provenance="Input: 0 rows.",
        version="0.1.0",
        result={"segments": [], "gap": float("nan")},
    )


def small_chart(*, label: str = "a mark", clip: bool = False, height: float = 1.0) -> alt.Chart:
    """Draw two points, the second named by the caller; one number is an infinity, as in open scales."""
    data = [
        {"x": 1 / 3, "y": 2 / 3, "d": "first"},
        {"x": 2 / 3, "y": height, "d": label},
        {"x": float("inf"), "y": 0, "d": "never"},
    ]
    return (
        alt.Chart(alt.Data(values=data), width=200, height=120)
        .mark_point(color="var(--cf-over)", clip=clip)
        .encode(x="x:Q", y="y:Q", description="d:N")
    )


def _signed(value: float, *, digits: int = 1) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _configured(chart: alt.LayerChart) -> alt.LayerChart:
    muted, rule = "var(--cf-muted)", "var(--cf-rule)"
    return chart.configure(background="transparent", padding=4, view=alt.ViewConfig(stroke=None)).configure_axis(
        labelColor=muted, titleColor=muted, gridColor=rule, domain=False, tickSize=0, labelFontSize=12, labelLimit=110
    )


def _forest(segments: tuple[str, ...], *, width: int) -> alt.LayerChart:
    rows = [
        {
            "s": f"{place}|{name}",
            "g": gap,
            "lo": gap - half,
            "hi": gap + half,
            "c": token,
            "d": f"{name}: gap {_signed(gap)} pp (95% CI {_signed(gap - half)} to {_signed(gap + half)}), "
            f"{count:,} rows.",
        }
        for place, (name, gap, half, token, count) in enumerate(zip(segments, GAPS, WIDTHS, TOKENS, ROWS, strict=True))
    ]
    colour = alt.Color(
        "c:N",
        legend=None,
        scale=alt.Scale(
            domain=["over", "under", "ok", "none"],
            range=[f"var(--cf-{token})" for token in ("over", "under", "ok", "none")],
        ),
    )
    y = alt.Y("s:N", sort=None, title=None, axis=alt.Axis(labelExpr="split(datum.label, '|')[1]", grid=False))
    base = alt.Chart(alt.Data(values=rows), width=width - 130, height=34 * len(rows)).encode(y=y, color=colour)
    zone = (
        alt.Chart(alt.Data(values=[{"a": -3, "b": 3}]))
        .mark_rect(color="var(--cf-tol)", aria=False)
        .encode(x="a:Q", x2="b:Q")
    )
    line = base.mark_rule(strokeWidth=4, opacity=0.5, aria=False, clip=True).encode(x="lo:Q", x2="hi:Q")
    dot = base.mark_point(filled=True, size=95, opacity=1).encode(
        x=alt.X("g:Q", title="gap: said − happened, pp", scale=alt.Scale(domain=[-8, 10])), description="d:N"
    )
    return _configured(alt.layer(zone, line, dot))


def _forest_figure(segments: tuple[str, ...]) -> Figure:
    rows = tuple(
        (name, f"{count:,}", f"{_signed(gap)} pp", "▲ Over-predicts" if gap > 3.2 else "○ Can’t tell yet")
        for name, count, gap in zip(segments, ROWS, GAPS, strict=True)
    )
    quoted = [name.replace('"', '""') for name in segments]
    lines = [f'"{name}",{count},{gap}' for name, count, gap in zip(quoted, ROWS, GAPS, strict=True)]
    return Figure(
        id="forest",
        title=f"{segments[0]} is the one segment with a clear gap: it says 29.4%, 21.6% happens",
        sub="Each row is a segment, worst first. Dot: gap between what the scores said and what happened. "
        "Line: 95% interval. Grey zone: the ±3 pp tolerance set for this report.",
        draw=lambda width: _forest(segments, width=width),
        note="A verdict needs the whole line outside the grey zone or inside it. All else is undecided, not fine.",
        table=TextTable(
            columns=("segment", "rows", "gap", "verdict"),
            rows=rows,
            csv="segment,n,gap\n" + "\n".join(lines) + "\n",
        ),
    )


def _heat(segments: tuple[str, ...], *, width: int) -> alt.LayerChart:
    cells = [
        {
            "s": f"{place}|{name}",
            "b": band,
            "t": _signed(gap * (step + 1) / 2, digits=0),
            "k": f"var(--cf-d{min(6, max(0, 3 + round(gap * (step + 1) / 4)))})",
            "d": f"{name}, scores {band}: gap {_signed(gap * (step + 1) / 2)} pp",
        }
        for place, (name, gap) in enumerate(zip(segments, GAPS, strict=True))
        for step, band in enumerate(BANDS)
    ]
    y = alt.Y("s:N", sort=None, title=None, axis=alt.Axis(labelExpr="split(datum.label, '|')[1]"))
    base = alt.Chart(alt.Data(values=cells), width=width - 130, height=32 * len(segments)).encode(
        x=alt.X("b:O", sort=None, title="Said (predicted probability)", axis=alt.Axis(labelAngle=0)), y=y
    )
    cell = base.mark_rect(cornerRadius=3, stroke="var(--cf-card)", strokeWidth=2).encode(
        color=alt.Color("k:N", scale=None), description="d:N"
    )
    return _configured(
        alt.layer(cell, base.mark_text(aria=False, color="var(--cf-dt1)", fontSize=13).encode(text="t:N"))
    )


def _heat_figure(segments: tuple[str, ...]) -> Figure:
    rows = tuple(
        (name, band, _signed(gap * (step + 1) / 2))
        for name, gap in zip(segments, GAPS, strict=True)
        for step, band in enumerate(BANDS)
    )
    return Figure(
        id="heatmap",
        title=f"In {segments[0]} the gap is widest for scores of 40–100%: 15 pp too high",
        sub="Gap in percentage points for each segment and score range.",
        draw=lambda width: _heat(segments, width=width),
        table=TextTable(columns=("segment", "score range", "gap"), rows=rows, csv="segment,score range,gap\n"),
    )


def _drift(*, width: int) -> alt.LayerChart:
    rows = [
        {"t": period, "g": gap, "lo": gap - 1.4, "hi": gap + 1.4, "d": f"{period}: gap {_signed(gap)} pp, 4,000 rows"}
        for period, gap in zip(PERIODS, DRIFT, strict=True)
    ]
    base = alt.Chart(alt.Data(values=rows), width=width - 70, height=230).encode(
        x=alt.X("t:O", title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=False))
    )
    bar = base.mark_rule(aria=False, color="var(--cf-ok)").encode(y=alt.Y("lo:Q", title="gap, pp"), y2="hi:Q")
    dot = base.mark_point(filled=True, size=90, opacity=1, color="var(--cf-ok)").encode(y="g:Q", description="d:N")
    return _configured(alt.layer(bar, dot))


def _drift_figure() -> Figure:
    return Figure(
        id="drift",
        title="Since May 2026 the scores run about 5 pp too high",
        sub="Gap per period, all segments, with its 95% interval.",
        draw=lambda width: _drift(width=min(width, 540)),
        aside=(
            ("Line on a dot", "95% interval for the gap in that period."),
            (
                "Error in one number",
                "ECE 1.4 pp. A perfectly calibrated model with these scores would still show about 0.8 pp.",
            ),
        ),
        table=TextTable(
            columns=("period", "gap"),
            rows=tuple((period, f"{_signed(gap)} pp") for period, gap in zip(PERIODS, DRIFT, strict=True)),
            csv="period,gap\n" + "".join(f"{period},{gap}\n" for period, gap in zip(PERIODS, DRIFT, strict=True)),
        ),
    )
