"""The results of ``learning.py`` as tables for a terminal or a page, and as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

SPLITS = {"parameters": "new_parameters", "templates": "new_templates", "apps": "new_apps"}
"""Names of the splits: as the study has them, and as the JSON object has them."""
LABELS = {
    "untrained": "random weights",
    "base_x1": "base agent",
    "base_guard": "base agent with loop guard",
    "base_shuffled": "base agent, one shuffled call",
    "base_clones": "base ×4, vote of clones",
    "base_x4": "base ×4, views + probability vote",
    "base_team": "base ×4, views + probability vote, DAG",
    "full": "full method: DPO, critic, redrawn edges",
    "rft": "RFT instead of DPO",
    "without_cr": "without credit re-assignment",
    "without_edge_update": "without edge update (one DAG)",
    "independent_voters": "independent voters, no talk",
    "learned_edges": "learned edges",
    "critic_imitation": "imitation of the critic's choice",
    "without_rehearsal": "without rehearsal",
    "single_agent": "one agent, as many calls",
    "critic_swap": "critic with 20 % errors",
    "more_stage1": "more stage 1 ×4, equal CPU time",
}
_ARMS = {"": "team on a DAG", "_vote": "vote, no edges", "_greedy": "one agent"}
_ALONE = {
    "untrained": "_greedy", "base_x1": "_greedy", "base_guard": "_greedy",
    "base_shuffled": "_greedy", "base_clones": "_vote", "base_x4": "_vote",
    "independent_voters": "_vote", "single_agent": "_greedy", "more_stage1": "_vote",
}  # fmt: skip
"""Rows without a team on a DAG, with the arm of each."""
_MARKS = (("", "o", 0.0), ("_vote", "s", 0.22), ("_greedy", "^", -0.22))
"""Marker of an arm in the picture, and its distance above the row."""
_NOTE = "The phone is simulated and its critic scripted: not AndroidWorld scores."
_COSTS = ("cpu_s", "iteration_s", "peak_mb")
Line = dict[str, Any]


def show(data: dict[str, Any], console: Console) -> None:
    """Two tables for each split: success of each arm, and the full method minus every other."""
    for split in SPLITS.values():
        for title, columns, lines in _tables(data, split):
            table = Table(title=f"simulated phone, {split.replace('_', ' ')}: {title}")
            for number, column in enumerate(columns):
                table.add_column(column, justify="right" if number else "left")
            for line in lines:
                table.add_row(*line)
            console.print(table)
    if (pages := _web(data)) is not None:
        console.print(pages)
    console.print(_NOTE)


def _web(data: dict[str, Any]) -> Table | None:
    """Results after further training on real pages; one agent, greedy."""
    rows = [line for line in data["rows"] if line["split"].startswith("web")]
    if not rows:
        return None
    table = Table(title="real MiniWoB++ pages: success, % [95 %, over tasks]")
    for column in ("policy", "pages", "success", "each seed", "tasks"):
        table.add_column(column, justify="left" if column in ("policy", "pages") else "right")
    for line in rows:
        table.add_row(
            line["name"], line["split"], _percent(line["success"], line["low"], line["high"]),
            " ".join(f"{100 * v:.1f}" for v in line["by_seed"]), str(line["tasks"]),
        )  # fmt: skip
    return table


def markdown(data: dict[str, Any]) -> str:
    """The same tables as Markdown."""
    parts: list[str] = []
    for split in SPLITS.values():
        for title, columns, lines in _tables(data, split):
            parts += [f"**{split.replace('_', ' ').capitalize()}: {title}**", ""]
            parts += [f"| {' | '.join(columns)} |", "| --- |" + " ---: |" * (len(columns) - 1)]
            parts += [f"| {' | '.join(line)} |" for line in lines]
            parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _tables(data: dict[str, Any], split: str) -> list[tuple[str, list[str], list[list[str]]]]:
    rows = {line["name"]: line for line in data["rows"] if line["split"] == split}
    others = [line for line in data["comparisons"] if line["split"] == split]
    return [
        (
            "success, % [95 %]",
            [
                "policy",
                *_ARMS.values(),
                "vote minus one agent",
                "over base ×4",
                "CPU s",
                "s/iteration",
                "peak MB",
            ],
            [_row(rows, name) for name in LABELS if name in rows],
        ),
        (
            "the full method (team on a DAG) minus the other, points [95 %]",
            ["other", "difference", "each seed"],
            [_other(line) for line in others],
        ),
    ]


def _row(rows: dict[str, Line], name: str) -> list[str]:
    main = rows[name]
    arms = {suffix: rows.get(name + suffix) for suffix in _ARMS}
    if name in _ALONE:
        arms = {suffix: main if suffix == _ALONE[name] else arms[suffix] for suffix in _ARMS}
        arms[""] = None
    gap = "–"
    if "over_base_x4" in main:
        gap = _percent(main["over_base_x4"], main["beats_base_x4_low"], main["over_high"], "+")
    vote = main if _ALONE.get(name) == "_vote" else rows.get(name + "_vote", {})
    own = "–"
    if "over_own_agent" in vote:
        own = _percent(vote["over_own_agent"], vote["over_own_low"], vote["over_own_high"], "+")
    return [
        LABELS[name],
        *("–" if a is None else _percent(a["success"], a["low"], a["high"]) for a in arms.values()),
        own,
        gap,
        *(f"{main[k]:.0f}" if main.get(k) else "–" for k in _COSTS),
    ]


def _other(line: Line) -> list[str]:
    return [
        label(line["other"]), _percent(line["gap"], line["low"], line["high"], "+"),
        " ".join(f"{100 * v:+.1f}" for v in line["each_seed"]),
    ]  # fmt: skip


def label(name: str) -> str:
    """The readable name of a row."""
    for suffix, arm in reversed(_ARMS.items()):
        known = name.removesuffix(suffix)
        if known in LABELS and name.endswith(suffix):
            return LABELS[known] + ("" if known in _ALONE and not suffix else f": {arm}")
    return name


def _percent(value: float, low: float, high: float, sign: str = "") -> str:
    return f"{100 * value:{sign}.1f} [{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"


def picture(data: dict[str, Any], path: Path) -> None:
    """Success with its interval, a panel for each split; needs matplotlib (extra ``train``)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = {line["name"] for line in data["rows"]} - {"untrained"}  # far below the others
    names = [name for name in LABELS if name in shown]
    figure = Figure(figsize=(11, 0.36 * len(names) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(SPLITS), sharey=True)
    for axes, split in zip(panels, SPLITS.values(), strict=True):
        of = _finder(data["rows"], split)
        for height, name in enumerate(reversed(names)):
            for suffix, mark, shift in (
                ("", "o", 0.0),
                ("_vote", "s", 0.22),
                ("_greedy", "^", -0.22),
            ):
                line = of(name + suffix)
                if line is not None:
                    _mark(axes, line, height + shift, mark, main=not suffix)
        axes.set_yticks(range(len(names)), [LABELS[n] for n in reversed(names)])
        axes.set(title=split.replace("_", " "), xlabel="success, %")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    figure.suptitle(
        "circle: team (or the agent alone); square: vote without edges; triangle: one of its "
        "agents; bars: 95 %, over episodes. Simulated phone, scripted critic",
        fontsize=9,
    )
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _finder(rows: Sequence[Line], split: str) -> Callable[[str], Line | None]:
    found = {line["name"]: line for line in rows if line["split"] == split}
    return found.get


def _mark(axes: Any, line: Line, height: float, mark: str, *, main: bool) -> None:
    ink = "#b3541e" if line["name"].startswith("full") else "#33658a" if main else "#8a9ba8"
    axes.plot(
        [100 * line["low"], 100 * line["high"]], [height, height], color=ink,
        linewidth=1.6 if main else 0.9, solid_capstyle="round",
    )  # fmt: skip
    axes.plot(100 * line["success"], height, mark, color=ink, markersize=5.5 if main else 3.5)
