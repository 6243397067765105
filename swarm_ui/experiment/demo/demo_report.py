"""The report and the plots of a run of the demo."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swarm_ui.experiment.demo.demo_tables import (
    CURVE_SPLIT,
    grouped,
    report_tables,
    speed_line,
    terminal_table,
)
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.reporting import with_screenshots
from swarm_ui.experiment.results import Results
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import agent_names
from swarm_ui.optim.plots import plot_credit, plot_edges, plot_success
from swarm_ui.report import (
    Curve,
    CurvePoint,
    GraphDrawing,
    Picture,
    ReportData,
    Series,
    write_report,
)
from swarm_ui.report.run_reader import gathered
from swarm_ui.stats import Interval
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode

_SHOWN = 14
"""Episodes in the viewer: a failed and a solved one of each arm."""


def write_demo_report(
    run: RunDirectory, settings: Settings, results: Results, display: ProgressDisplay
) -> Path:
    """Print the table, write report and plots; returns the report's path."""
    results.save(run.path)
    metrics = [line for line in run.metrics() if line.get("kind") == "iteration"]
    learning = _learning_curve(results)
    names = tuple(agent_names(settings.agents))
    tested = {arm.label: arm.edges for arm in results.arms if arm.edges}
    data = ReportData(
        title="A team of agents " + ("at work" if settings.over_endpoint else "learns"),
        summary=" ".join([*_findings(results), speed_line(results)]).strip(),
        labels=results.labels,
        tables=report_tables(results),
        curves=(*learning, *_critic_weights(metrics)),
        graphs=tuple(GraphDrawing(title=t, nodes=names, edges=e) for t, e in tested.items()),
        pictures=tuple(_plots(run, learning, metrics)),
        episodes=tuple(with_screenshots(_episodes(run, results))),
    )
    path = write_report(run.path, data)
    display.say(terminal_table(results))
    if speed_line(results):
        display.say(speed_line(results))
    display.say()
    return path


def _findings(results: Results) -> list[str]:
    """A sentence for each split."""
    parts = []
    for split, rows in grouped(results):
        rated = [(row, row.to_base) for row in rows if row.to_base is not None]
        for row, gap in rated[-1:]:
            where = results.splits.get(split, split)
            text = f"{where}: {row.label}, {gap.percent(signed=True)} points against base."
            parts.append(text[0].upper() + text[1:])
    return parts


def _learning_curve(results: Results) -> list[Curve]:
    points = [
        CurvePoint(float(arm.arm.rpartition("-")[2]), s.mean, s.low, s.high)
        for arm in results.arms
        if arm.split == CURVE_SPLIT and (s := arm.success) is not None
    ]
    if not points:
        return []
    points.sort(key=lambda point: point.x)
    return [
        Curve(
            title="Success of one agent, greedy, on tuning episodes",
            x_label="iterations of stage 2",
            y_label="success",
            series=(Series(name="agent_0", points=tuple(points)),),
            note="Known templates with parameters of neither training nor test.",
        )
    ]


def _critic_weights(metrics: Sequence[dict[str, Any]]) -> list[Curve]:
    lines = [line for line in metrics if line.get("critic_weights")]
    rounds = max((len(line["critic_weights"]) for line in lines), default=0)
    if not rounds:
        return []
    series = [
        Series(
            name=f"round {k + 1}",
            points=tuple(CurvePoint(li["iteration"] + 1, li["critic_weights"][k]) for li in lines),
        )
        for k in range(rounds)
    ]
    note = "The weight of the critic beside the outcome; used where its trust is learned."
    return [
        Curve(
            title="How well the critic's scores predict outcomes",
            x_label="iteration",
            y_label="weight",
            series=tuple(series),
            note=note,
        )
    ]


def _plots(
    run: RunDirectory, learning: Sequence[Curve], metrics: Sequence[dict[str, Any]]
) -> list[Picture]:
    """PNG files in ``plots/``, where matplotlib is installed; learned edges are reported too."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    found = gathered(run.path)
    curves = {"rollouts": found.curves[:1] if metrics else (), "learning": learning}
    for name, drawn in curves.items():
        lines = {
            series.name: [Interval(mean=p.y, low=p.low or 0.0, high=p.high or 0.0, n=0)
                          for p in series.points]
            for curve in drawn
            for series in curve.series[:1]
        }  # fmt: skip
        if lines:
            plot_success(lines, run.plots / f"{name}.png")
    credit = [m for m in found.heat_maps if m.title.startswith("Mean credit")]
    for k, m in enumerate(credit[:1] + credit[1:][-1:]):
        plot_credit(m.values, m.columns, run.plots / f"credit-{k}.png", title=m.title)
    learned = metrics[-1].get("edge_probabilities") if metrics else None
    if not learned:
        return []
    pairs = {(a, b): p for a, _, b, p in ((*key.partition(">"), p) for key, p in learned.items())}
    plot_edges(pairs, run.plots / "edges.png")
    return [Picture(title="Learned edge probabilities", png=run.plots / "edges.png")]


def _episodes(run: RunDirectory, results: Results) -> list[Episode]:
    """A failed and a solved episode of every arm for the viewer; trained arms come first."""
    chosen: list[Episode] = []
    for arm in sorted(results.arms, key=lambda arm: not arm.arm.startswith("trained")):
        name = f"{arm.split}-{arm.arm}"
        if arm.split != CURVE_SPLIT and (run.traces / f"{name}.jsonl").exists():
            kept = run.episodes(name)
            chosen += [e for e in kept if not e.success][:1] + [e for e in kept if e.success][:1]
    return chosen[:_SHOWN]
