"""The coverage of a search over time, as an interactive plot.

Above, marks and pairs that were reached; below, each trial in the row of its scenario, as what it showed.
"""

import html

import plotly.graph_objects as go

from onceproof.campaigns.search.log import Purpose
from onceproof.page.exploring import FAILED, FOUND, GREEN, IDLE, KNOWN, SearchView, state_of
from onceproof.page.timeline import drawing

LOOKS = {
    FOUND: {"symbol": "x", "size": 12, "color": drawing.RED},
    KNOWN: {"symbol": "diamond", "size": 10, "color": drawing.ORANGE},
    GREEN: {"symbol": "circle", "size": 7, "color": drawing.GREEN},
    IDLE: {"symbol": "circle-open", "size": 7, "color": "#9a9a9a"},
    FAILED: {"symbol": "x-thin-open", "size": 8, "color": drawing.PURPLE},
}
ABOVE, ROW, TITLES = 220, 24, 30  # pixels


def figure(search: SearchView, *, dark: bool = False) -> go.Figure:
    """Draw it; `dark` is what the page is."""
    ink = "#e4e4e7" if dark else "#27272a"
    faint = "rgba(160,160,160,0.28)" if dark else "rgba(90,90,90,0.18)"
    plot = go.Figure(layout_template="none")
    _draw_coverage(plot, search, drawing.SKY if dark else drawing.BLUE)
    names = sorted({line.schedule.scenario for line in search.lines})
    _draw_trials(plot, search, {name: number for number, name in enumerate(names)})
    rows = ROW * max(1, len(names))
    inner = ABOVE + TITLES + rows
    minutes = search.lines[-1].at / 60 if search.lines else 1
    margin = {"l": 20, "r": 24, "t": 34, "b": 92}
    axis = {"anchor": "x", "zeroline": False, "gridcolor": faint, "ticks": "", "automargin": True}
    plot.update_layout(
        height=inner + margin["t"] + margin["b"],
        margin=margin,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12, "color": ink},
        hovermode="closest",
        hoverlabel={"align": "left", "namelength": -1},
        dragmode="zoom",
        modebar={
            "bgcolor": "rgba(0,0,0,0)",
            "color": "#808080",
            "activecolor": ink,
            "remove": drawing.UNUSED,
        },
        xaxis={
            "title": {"text": "minutes of searching"},
            "range": [0, minutes * 1.01],
            "minallowed": 0,
            "anchor": "free",
            "position": 0,
            "gridcolor": faint,
            "zeroline": False,
            "ticks": "outside",
        },
        yaxis={**axis, **drawing.LINES, "nticks": 6, "domain": [1 - ABOVE / inner, 1]},
        yaxis2={
            **axis,
            "domain": [0, rows / inner],
            "tickvals": list(range(len(names))),
            "ticktext": [html.escape(name, quote=False) for name in names],
            "range": [max(1, len(names)) - 0.5, -0.5],
            "showgrid": False,
            "fixedrange": True,
        },
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": -52 / inner, "yanchor": "top"},
    )
    for title, y in (("marks and pairs reached", 1.0), ("trials, by scenario", rows / inner)):
        place = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "yanchor": "bottom"}
        plot.add_annotation(text=f"<b>{title}</b>", y=y, yshift=2, showarrow=False, font={"size": 12}, **place)
    return plot


def _draw_coverage(plot: go.Figure, search: SearchView, color: str) -> None:
    so_far, points = 0, []
    for line in search.lines:
        so_far += line.gained
        points.append((line.at / 60, so_far, f"trial {line.number}: {line.gained:,} new"))
    plot.add_scatter(
        x=[0.0, *(x for x, _, _ in points)],
        y=[0, *(y for _, y, _ in points)],
        customdata=["", *(text for _, _, text in points)],
        yaxis="y",
        mode="lines",
        line={"color": color, "width": 2.5, "shape": "hv"},
        name="marks and pairs",
        showlegend=False,
        hovertemplate="%{y:,} after %{x:.1f} minutes<br>%{customdata}<extra></extra>",
    )


def _draw_trials(plot: go.Figure, search: SearchView, rows: dict[str, int]) -> None:
    for state, look in LOOKS.items():
        shown = [line for line in search.lines if state_of(line) == state]
        if shown:
            plot.add_scatter(
                x=[line.at / 60 for line in shown],
                y=[rows[line.schedule.scenario] for line in shown],
                yaxis="y2",
                mode="markers",
                name=state,
                marker={**look, "line": {"width": 1.5, "color": look["color"]}},
                cliponaxis=False,
                hovertext=[
                    f"<b>trial {line.number}</b>"
                    + (f", {line.purpose} of finding {line.finding}" if line.purpose is not Purpose.SEARCH else "")
                    + f"<br>{drawing.wrap(line.schedule.summary)}<br>{drawing.wrap(line.said)}"
                    for line in shown
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
