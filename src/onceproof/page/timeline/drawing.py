"""The story of a trial as an interactive plot."""

import html
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go

from onceproof.model.anomaly import Witness
from onceproof.model.promise import meaning
from onceproof.model.timeline import Return
from onceproof.page.timeline import bands
from onceproof.page.timeline.bands import Band
from onceproof.page.timeline.marks import group, stagger
from onceproof.page.timeline.moments import WITNESSES
from onceproof.page.timeline.story import Story

# Okabe and Ito's palette, which colour-blind people can distinguish; each with a pattern or a symbol.
ORANGE, SKY, GREEN, BLUE, RED, PURPLE = "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7"
STATES = {  # colour, pattern, words
    "CREATED": ("#9a9a9a", ".", "starting"),
    "REBALANCING": (ORANGE, "/", "REBALANCING"),
    "RUNNING": (GREEN, "", "RUNNING"),
    "PENDING_SHUTDOWN": (SKY, "\\", "PENDING_SHUTDOWN"),
    "PENDING_ERROR": (RED, "-", "PENDING_ERROR"),
    "ERROR": (RED, "x", "ERROR"),
    "NOT_RUNNING": ("#9a9a9a", "|", "NOT_RUNNING"),
    bands.KILLED: ("", "x", "dead (killed)"),  # as dark as the text
    bands.FROZEN: (PURPLE, ".", "standing still (SIGSTOP)"),
}
SYMBOLS = {
    "out": "triangle-up",
    "in": "triangle-down",
    "start": "triangle-right",
    "kill": "x",
    "fault": "hexagram",
    "crash": "x-thin-open",
    "exception": "star",
    "quota": "diamond",
    "topic": "square",
    "seen": "circle-open",
}
LINES = {"rangemode": "tozero", "tickformat": ",d", "fixedrange": False}  # axes of numbers can be zoomed, too
UNUSED = ["select2d", "lasso2d", "autoScale2d"]
FAILURES = {"kill", "fault", "crash", "exception"}
ANOMALY_LOOK = (("diamond", RED), ("circle", PURPLE), ("square", ORANGE), ("star", BLUE), ("hexagon", GREEN))


@dataclass
class _Panel:
    """A strip of the picture: its y axis, and its height in pixels."""

    title: str
    pixels: float
    axis: dict[str, Any] = field(default_factory=dict)
    id: str = ""


class Drawing:
    """One figure in the making."""

    def __init__(self, story: Story, counts: Mapping[str, int], dark: bool) -> None:
        self._story, self._counts, self._dark = story, counts, dark
        self._ink = "#e4e4e7" if dark else "#27272a"
        self._faint = "rgba(160,160,160,0.28)" if dark else "rgba(90,90,90,0.18)"
        self._plot = go.Figure(layout_template="none")
        self._panels: list[_Panel] = []
        self._lines: list[tuple[int, str]] = []  # down through all panels: time, colour

    def figure(self) -> go.Figure:
        """All panels from the top down."""
        self._draw_phases()
        self._draw_marks()
        self._draw_records()
        self._draw_instances()
        if self._story.tasks:
            self._draw_tasks()
        if self._story.idle:
            self._draw_idle()
        if self._story.moments:
            self._draw_anomalies()
        self._lay_out()
        return self._plot

    # Times, for the axis and for people.

    def _x(self, t: int) -> float:
        return round((t - self._story.begin) / 1000, 3)

    def _when(self, t: int) -> str:
        clock = datetime.fromtimestamp(t / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        return f"{self._x(t):.2f} s ({clock} UTC)"

    def _span(self, band: Band) -> str:
        return f"from {self._when(band.begin)}<br>to {self._when(band.end)}: {(band.end - band.begin) / 1000:.2f} s"

    # Panels.

    def _panel(self, title: str, pixels: float, **axis: Any) -> str:
        number = len(self._panels) + 1
        panel = _Panel(title, pixels, axis, "y" if number == 1 else f"y{number}")
        self._panels.append(panel)
        return panel.id

    def _rows_panel(self, title: str, labels: Sequence[str], pixels: float, **axis: Any) -> str:
        return self._panel(
            title,
            pixels * len(labels),
            tickvals=list(range(len(labels))),
            ticktext=list(labels),
            range=[len(labels) - 0.5, -0.5],
            showgrid=False,
            **axis,
        )

    def _bars(self, axis: str, rows: Sequence[int], shown: Sequence[Band], hover: Sequence[str], **look: Any) -> None:
        """One trace of bands; they are clipped by their ends, whatever their row."""
        self._plot.add_bar(
            orientation="h",
            y=list(rows),
            base=[self._x(band.begin) for band in shown],
            x=[round((band.end - band.begin) / 1000, 3) for band in shown],
            yaxis=axis,
            hovertext=list(hover),
            hovertemplate="%{hovertext}<extra></extra>",
            **{
                "width": 0.84,
                "textangle": 0,
                "constraintext": "inside",
                "insidetextanchor": "middle",
                "textposition": "inside",
                **look,
            },
        )

    def _draw_phases(self) -> None:
        axis = self._panel("", 22, range=[-0.5, 0.5], tickvals=[0], ticktext=["<b>phase</b>"], showgrid=False)
        shown = self._story.phases
        self._bars(
            axis,
            [0] * len(shown),
            shown,
            [f"<b>{_plain(band.kind)}</b><br>{self._span(band)}" for band in shown],
            width=1,
            text=[_plain(band.kind) for band in shown],
            textfont={"size": 11, "color": self._ink},
            marker={
                "color": [self._faint if n % 2 == 0 else "rgba(128,128,128,0.06)" for n in range(len(shown))],
                "line": {"width": 0},
            },
            showlegend=False,
        )
        for number, band in enumerate(shown):
            if number % 2 == 0:
                look = {"layer": "below", "line": {"width": 0}, "fillcolor": "rgba(128,128,128,0.08)"}
                self._shape("rect", band.begin, band.end, yref="paper", y0=0, y1=1, **look)

    def _draw_marks(self) -> None:
        shown = group(self._story.marks, (self._story.end - self._story.begin) // 100)
        placed = stagger(shown, self._story.begin, self._story.end)
        levels = 1 + max((level for level, _ in placed), default=0)
        axis = self._panel("", 17 * levels + 4, range=[levels - 0.4, -0.6], tickvals=[], showgrid=False)
        self._plot.add_scatter(
            x=[self._x(mark.t) for mark in shown],
            y=[level for level, _ in placed],
            yaxis=axis,
            mode="markers+text",
            text=[
                "" if not side else f" {_plain(mark.label)}" if side == "right" else f"{_plain(mark.label)} "
                for mark, (_, side) in zip(shown, placed, strict=True)
            ],
            textposition=[f"middle {side or 'right'}" for _, side in placed],
            textfont={"size": 12, "color": self._ink},
            cliponaxis=False,
            marker={
                "symbol": [SYMBOLS[mark.kind] for mark in shown],
                "size": 10,
                "color": [RED if mark.kind in FAILURES else self._ink for mark in shown],
                "line": {"width": 1.5, "color": [RED if mark.kind in FAILURES else self._ink for mark in shown]},
            },
            hovertext=[f"<b>{_plain(mark.label)}</b><br>{self._when(mark.t)}<br>{wrap(mark.text)}" for mark in shown],
            hovertemplate="%{hovertext}<extra></extra>",
            name="what was done, what failed",
            showlegend=False,
        )
        for mark, (level, _) in zip(shown, placed, strict=True):
            look = {"layer": "below", "opacity": 0.5, "line": {"color": self._ink, "width": 1}}
            self._shape("line", mark.t, mark.t, yref=axis, y0=level, y1=levels - 0.4, **look)
            self._lines.append((mark.t, RED if mark.kind in FAILURES else self._ink))

    def _draw_records(self) -> None:
        points = self._story.flow
        killed = any(band.kind == bands.KILLED for band in self._story.instances)
        axis = self._panel("records so far", 170, nticks=5, **LINES)
        self._series(
            axis,
            "produced",
            [(point.t, point.produced) for point in points],
            "%{y:,} records produced",
            mode="lines",
            line={"color": SKY if self._dark else BLUE, "dash": "dash", "width": 2.5, "shape": "hv"},
        )
        self._series(
            axis,
            "processed" + (", less what came again after a kill" if killed else ""),
            [(point.t, point.processed) for point in points],
            "%{y:,} records processed",
            mode="lines",
            line={"color": GREEN, "width": 2.5, "shape": "hv"},
        )
        self._series(
            axis,
            "drained: all is committed",
            self._story.drained,
            "All %{y:,} records are processed and committed",
            mode="markers",
            marker={"symbol": "circle-open-dot", "size": 13, "color": self._ink, "line": {"width": 2}},
        )
        axis = self._panel("lag: produced and not yet processed", 75, nticks=3, **LINES)
        self._series(
            axis,
            "lag",
            [(point.t, point.lag) for point in points],
            "%{y:,} records produced and not yet processed",
            mode="lines",
            fill="tozeroy",
            fillcolor="rgba(213,94,0,0.25)",
            line={"color": RED, "width": 1.5, "shape": "hv"},
        )
        self._series(
            axis,
            "not yet committed",
            self._story.lags,
            "%{y:,} records produced and not yet committed",
            mode="markers",
            marker={"symbol": "cross-thin-open", "size": 6, "color": self._ink, "line": {"width": 1}},
        )

    def _series(self, axis: str, name: str, points: Sequence[tuple[int, int]], words: str, **look: Any) -> None:
        """One trace of (time, records); none without points."""
        if points:
            self._plot.add_scatter(
                x=[self._x(t) for t, _ in points],
                y=[records for _, records in points],
                yaxis=axis,
                name=name,
                customdata=[self._when(t) for t, _ in points],
                hovertemplate=f"{words}<br>%{{customdata}}<extra></extra>",
                **look,
            )

    def _shape(self, kind: str, begin: int, end: int, **look: Any) -> None:
        self._plot.add_shape(type=kind, xref="x", x0=self._x(begin), x1=self._x(end), **look)

    def _draw_instances(self) -> None:
        names = sorted({band.row[0] for band in self._story.instances}, key=bands.natural)
        row = {name: number for number, name in enumerate(names)}
        axis = self._rows_panel("instances", [_plain(name) for name in names], 26)
        several = len({band.release for band in self._story.instances if band.release}) > 1
        for state, (color, pattern, words) in STATES.items():
            shown = [band for band in self._story.instances if band.kind == state]
            if shown:
                self._bars(
                    axis,
                    [row[band.row[0]] for band in shown],
                    shown,
                    [
                        f"<b>{_plain(band.row[0])}</b> {words}"
                        + (f", Kafka Streams {band.release}" if band.release else "")
                        + f"<br>{self._span(band)}"
                        for band in shown
                    ],
                    text=[_state_text(words, band, several) for band in shown],
                    textfont={"size": 11, "color": "white" if state == bands.KILLED and not self._dark else "black"},
                    marker=_hatch(color or self._ink, pattern, self._ink if color else RED),
                    name=words,
                )

    def _draw_tasks(self) -> None:
        rows = list(dict.fromkeys(band.row for band in self._story.tasks))
        number_of = {row: number for number, row in enumerate(rows)}
        labels = [f"<b>{_plain(task)}</b>  {_plain(instance)} · {_plain(thread)}" for task, instance, thread in rows]
        left_out = f" ({self._story.left_out} other tasks left out)" if self._story.left_out else ""
        axis = self._rows_panel(f"tasks, by the thread that held them{left_out}", labels, 26)
        active = SKY if self._dark else BLUE
        for kind in ("active", "standby"):
            shown = [band for band in self._story.tasks if band.kind == kind]
            if not shown:
                continue
            self._bars(
                axis,
                [number_of[band.row] for band in shown],
                shown,
                [self._task_hover(band) for band in shown],
                text=[f"{band.records:,}" if band.records else "" for band in shown],
                textfont={"size": 11, "color": "black" if self._dark else "white"},
                marker={"color": active, "line": {"color": active, "width": 1}}
                if kind == "active"
                else {
                    "pattern": {"shape": "/", "fgcolor": active, "bgcolor": "rgba(86,180,233,0.15)", "size": 7},
                    "color": "rgba(86,180,233,0.15)",
                    "line": {"color": active, "width": 1},
                },
                name={"active": "active (with records processed)", "standby": "standby"}[kind],
            )
        for number in [n for n, row in enumerate(rows) if n and row[0] != rows[n - 1][0]]:
            at, look = number - 0.5, {"layer": "below", "line": {"color": self._faint, "width": 1}}
            self._shape("line", self._story.begin, self._story.end, yref=axis, y0=at, y1=at, **look)
        for row, r in self._story.returns:
            self._frame(axis, number_of[row], r)

    def _task_hover(self, band: Band) -> str:
        task, instance, thread = map(_plain, band.row)
        processed = f"<br>{band.records:,} of its records processed" if band.kind == "active" else ""
        return f"Task <b>{task}</b> {band.kind} on {instance} · {thread}{processed}<br>{self._span(band)}"

    def _frame(self, axis: str, row: int, r: Return) -> None:
        """Around the time that a task was away from a thread to which it came back."""
        look = {"line": {"color": RED, "width": 3}}
        self._shape("rect", r.left, r.back, yref=axis, y0=row - 0.46, y1=row + 0.46, **look)
        wide = (r.back - r.left) / (self._story.end - self._story.begin) > 0.25
        self._plot.add_annotation(
            x=self._x((r.left + r.back) // 2),
            xref="x",
            y=row,
            yref=axis,
            showarrow=False,
            borderpad=1,
            text=f"recycled: {r.elsewhere:,} records elsewhere" if wide else f"↩ {r.elsewhere:,}",
            hovertext=f"Task {_plain(r.task)} was active here, then standby, then active again: {r.elsewhere:,} of its "
            f"records were processed by other threads meanwhile, {r.after:,} here after its return.",
            font={"color": "black", "size": 12},
            bgcolor=ORANGE,
        )

    def _draw_idle(self) -> None:
        shown = self._story.idle
        axis = self._rows_panel("the longest time in which records waited", [_plain(b.row[0]) for b in shown], 20)
        self._bars(
            axis,
            range(len(shown)),
            shown,
            [f"Records of <b>{_plain(b.row[0])}</b> waited, and none was committed<br>{self._span(b)}" for b in shown],
            text=[f"{(band.end - band.begin) / 1000:.1f} s" for band in shown],
            textfont={"size": 11, "color": "black"},
            marker=_hatch(ORANGE, "/", self._ink),
            name="records waited",
        )

    def _draw_anomalies(self) -> None:
        kinds = list(dict.fromkeys(moment.witness.anomaly for moment in self._story.moments))
        labels = [f"{self._counts[kind]:,} {_plain(kind)}" if kind in self._counts else _plain(kind) for kind in kinds]
        some = any(self._counts.get(kind, 0) > WITNESSES for kind in kinds)
        first = f" (the first {WITNESSES} of each)" if some else ""
        axis = self._rows_panel(f"anomalies, at the moment they arose{first}", labels, 23)
        for row, kind in enumerate(kinds):
            at: dict[int, list[Witness]] = defaultdict(list)
            for moment in self._story.moments:
                if moment.witness.anomaly == kind:
                    at[moment.t].append(moment.witness)
            symbol, color = ANOMALY_LOOK[row % len(ANOMALY_LOOK)]
            self._plot.add_scatter(
                x=[self._x(t) for t in at],
                y=[row] * len(at),
                yaxis=axis,
                mode="markers",
                name=_plain(kind),
                showlegend=False,
                cliponaxis=False,
                marker={"symbol": symbol, "size": 14, "color": color, "line": {"color": self._ink, "width": 1}},
                hovertext=[_anomaly_hover(kind, seen, self._when(t)) for t, seen in at.items()],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        self._lines.append((min(moment.t for moment in self._story.moments), RED))

    def _lay_out(self) -> None:
        """Give each panel its place, from the top down."""
        gaps = [26 if panel.title else 2 for panel in self._panels]
        inner = sum(panel.pixels for panel in self._panels) + sum(gaps)
        top = inner
        ends = self._x(self._story.end)
        for panel, gap in zip(self._panels, gaps, strict=True):
            top -= gap
            layout = {
                "domain": [max(0.0, (top - panel.pixels) / inner), top / inner],
                "anchor": "x",
                "fixedrange": True,
                "zeroline": False,
                "gridcolor": self._faint,
                "ticks": "",
                "automargin": True,
                **panel.axis,
            }
            self._plot.update_layout({f"yaxis{panel.id[1:]}": layout})
            if panel.title:
                self._plot.add_annotation(
                    text=f"<b>{panel.title}</b>",
                    xref="paper",
                    yref="paper",
                    x=0,
                    y=top / inner,
                    yshift=1,
                    xanchor="left",
                    yanchor="bottom",
                    showarrow=False,
                    font={"size": 12},
                )
            top -= panel.pixels
        below_marks = self._plot.layout["yaxis2"].domain[0]
        for t, color in self._lines:
            look = {"layer": "below", "opacity": 0.8, "line": {"color": color, "width": 1, "dash": "dot"}}
            self._shape("line", t, t, yref="paper", y0=0, y1=below_marks, **look)
        margin = {"l": 20, "r": 24, "t": 34, "b": 116}
        self._plot.update_layout(
            height=inner + margin["t"] + margin["b"],
            margin=margin,
            barmode="overlay",
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            font={"family": "system-ui, sans-serif", "size": 12, "color": self._ink},
            uniformtext={"minsize": 11, "mode": "hide"},
            hovermode="closest",
            hoverlabel={"align": "left", "namelength": -1},
            dragmode="zoom",
            modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#808080", "activecolor": self._ink, "remove": UNUSED},
            xaxis={
                "title": {"text": "seconds since the trial began"},
                "range": [0, ends],
                "minallowed": 0,
                "maxallowed": ends,
                "anchor": "free",
                "position": 0,
                "gridcolor": self._faint,
                "zeroline": False,
                "ticks": "outside",
            },
            legend={
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": -58 / inner,
                "yanchor": "top",
            },
        )


def _state_text(words: str, band: Band, several: bool) -> str:
    """The state; if instances run on several releases, instead of RUNNING the release."""
    return band.release if several and band.release and band.kind == "RUNNING" else words


def _hatch(color: str, pattern: str, ink: str) -> dict[str, object]:
    return {
        "color": color,
        "line": {"color": color, "width": 1},
        "pattern": {"shape": pattern, "fgcolor": ink, "fgopacity": 0.35, "size": 7, "fillmode": "overlay"},
    }


def _anomaly_hover(kind: str, seen: Sequence[Witness], when: str) -> str:
    lines = [f"<b>{_plain(kind)}</b>: {meaning(kind)}", when]
    for witness in seen[:3]:
        key = "" if witness.key is None else f", key {witness.key}"
        line = f"{' '.join(witness.offsets)}{key}: expected {witness.expected}, observed {witness.observed}"
        lines.append(wrap(line))
    if len(seen) > 3:
        lines.append(f"and {len(seen) - 3} more at this moment")
    return "<br>".join(lines)


def wrap(text: str) -> str:
    """In lines that a hover label can show."""
    return "<br>".join(_plain(part) for line in text.splitlines() for part in textwrap.wrap(line, 90))


def _plain(text: str) -> str:
    """So that what others wrote (a message, a name) is not read as HTML."""
    return html.escape(text, quote=False)
