"""The report and the plots of a run."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swarm_ui.experiment.demo.tables import (
    CURVE_SPLIT,
    grouped,
    report_tables,
    speed_line,
    terminal_table,
)
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.reporting import with_screenshots
from swarm_ui.experiment.results import Results
from swarm_ui.experiment.settings import Settings, plain
from swarm_ui.optim.plots import plot_credit, plot_edges, plot_success
from swarm_ui.report import (
    Curve,
    CurvePoint,
    GraphDrawing,
    HeatMap,
    Picture,
    ReportData,
    Series,
    credit_map,
    write_report,
)
from swarm_ui.stats import Interval, wilson
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode

_SHOWN_PER_ARM = 2
_SHOWN = 14


def write_demo_report(
    run: RunDirectory, settings: Settings, results: Results, display: ProgressDisplay
) -> Path:
    """Print the table, write report and plots; returns the report's path."""
    results.save(run.path)
    metrics = run.metrics()
    curves = _curves(results, metrics)
    credit = _credit(run, results, metrics)
    data = ReportData(
        title="A team of agents " + ("at work" if settings.over_endpoint else "learns"),
        summary=summary(results),
        labels=results.labels,
        facts=_facts(run, settings, results),
        tables=report_tables(results),
        curves=tuple(curves),
        heat_maps=tuple(credit),
        graphs=tuple(_graphs(run, settings, results)),
        pictures=tuple(_plots(run, curves, credit, metrics)),
        episodes=tuple(with_screenshots(_episodes(run, results))),
    )
    path = write_report(run.path, data)
    display.say(terminal_table(results))
    if speed_line(results):
        display.say(speed_line(results))
    display.say()
    return path


def summary(results: Results) -> str:
    """What was found, in a sentence a split."""
    parts = []
    for split, rows in grouped(results):
        rated = [(row, row.to_base) for row in rows if row.to_base is not None]
        for row, gap in rated[-1:]:
            where = results.splits.get(split, split)
            parts.append(f"{where}: {row.label}, {gap.percent(signed=True)} points against base.")
    return " ".join(part[0].upper() + part[1:] for part in parts)


def _facts(run: RunDirectory, settings: Settings, results: Results) -> tuple[tuple[str, str], ...]:
    document = json.loads((run.path / "config.json").read_text(encoding="utf-8"))
    shown = {k: v for k, v in plain(settings).items() if v not in (None, [], "")}
    facts = [("settings", ", ".join(f"{k}={v}" for k, v in shown.items()))]
    facts += [("packages", ", ".join(f"{k} {v}" for k, v in document["packages"].items()))]
    facts += [("machine", f"Python {document['python']}, {document['platform']}, "
               f"{document['cpus']} cores")]  # fmt: skip
    if results.training_cpu_seconds:
        facts.append(("stage 2", f"{results.training_cpu_seconds:.0f} CPU-seconds"))
    if speed_line(results):
        facts.append(("speed", speed_line(results)))
    return tuple(facts)


def _curves(results: Results, metrics: Sequence[dict[str, Any]]) -> list[Curve]:
    curves = []
    points = []
    for arm in results.arms:
        if arm.split == CURVE_SPLIT and arm.success is not None:
            s = arm.success
            points.append(CurvePoint(float(arm.arm.rpartition("-")[2]), s.mean, s.low, s.high))
    if points:
        points.sort(key=lambda point: point.x)
        curves.append(
            Curve(
                title="Success of one agent, greedy, on tuning episodes",
                x_label="iterations of stage 2",
                y_label="success",
                series=(Series(name="agent_0", points=tuple(points)),),
                note="Known templates with parameters of neither training nor test.",
            )
        )
    done = [line for line in metrics if line.get("kind") == "iteration"]
    rolled = [
        Series(
            name=name,
            points=tuple(
                CurvePoint(line["iteration"] + 1, line[key])
                for line in done
                if line.get(key) is not None
            ),
        )
        for name, key in (("success of rollouts", "success"), ("mean credit", "credit"))
    ]
    if done:
        curves.append(
            Curve(
                title="Rollouts",
                x_label="iteration",
                y_label="share",
                series=tuple(rolled),
                note="Sampled and, with a critic, guided: not comparable with a test.",
            )
        )
    weighed = [line for line in done if line.get("critic_weights")]
    if weighed:
        curves.append(_trust(weighed))
    return curves


def _trust(lines: Sequence[dict[str, Any]]) -> Curve:
    rounds = max(len(line["critic_weights"]) for line in lines)
    return Curve(
        title="What the critic's scores say of outcomes",
        x_label="iteration",
        y_label="weight",
        series=tuple(
            Series(
                name=f"round {k + 1}",
                points=tuple(
                    CurvePoint(line["iteration"] + 1, line["critic_weights"][k]) for line in lines
                ),
            )
            for k in range(rounds)
        ),
        note="The weight a critic earns beside the outcome; used where its trust is learned.",
    )


def _credit(
    run: RunDirectory, results: Results, metrics: Sequence[dict[str, Any]]
) -> list[HeatMap]:
    """Mean credit by round and agent, in the first and last iteration; or of what was played."""
    lines = {line["iteration"]: line for line in metrics if line.get("kind") == "credit"}
    maps = [
        HeatMap(
            title=f"Mean credit in iteration {line['iteration'] + 1}",
            rows=tuple(f"round {r + 1}" for r in range(len(line["values"]))),
            columns=tuple(line["agents"]),
            values=tuple(tuple(row) for row in line["values"]),
        )
        for k, line in sorted(lines.items())
        if k in (min(lines), max(lines))
    ]
    if maps:
        return maps
    kept = [e for arm in results.arms for e in _kept(run, f"{arm.split}-{arm.arm}")]
    found = credit_map(tuple(kept))
    return [] if found is None else [found]


def _graphs(run: RunDirectory, settings: Settings, results: Results) -> list[GraphDrawing]:
    names = tuple(f"agent_{k}" for k in range(settings.agents))
    drawings = []
    path = run.edges / "edges.json"
    if path.exists():
        for k, played in enumerate(json.loads(path.read_text(encoding="utf-8"))["iterations"]):
            for g, edges in enumerate(played):
                which = f", graph {g + 1}" if len(played) > 1 else ""
                pairs = tuple((a, b) for a, b in edges)
                drawings.append(
                    GraphDrawing(title=f"Iteration {k + 1}{which}", nodes=names, edges=pairs)
                )
    tested = {arm.label: arm.edges for arm in results.arms if arm.edges}
    drawings += [GraphDrawing(title=t, nodes=names, edges=e) for t, e in tested.items()]
    return drawings


def _plots(
    run: RunDirectory,
    curves: Sequence[Curve],
    credit: Sequence[HeatMap],
    metrics: Sequence[dict[str, Any]],
) -> list[Picture]:
    """PNG files in ``plots/``, where matplotlib is installed; learned edges are reported too."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    iterations = [line for line in metrics if line.get("kind") == "iteration"]
    if iterations:
        rates = [_rate(line) for line in iterations]
        plot_success({"rollouts (guided)": rates}, run.plots / "rollouts.png")
    for curve in curves[:1]:
        if curve.series[0].name == "agent_0":
            values = [Interval(mean=p.y, low=p.low or 0.0, high=p.high or 0.0, n=0)
                      for p in curve.series[0].points]  # fmt: skip
            plot_success({"agent_0, greedy": values}, run.plots / "learning.png")
    for k, found in enumerate(credit):
        path = run.plots / f"credit-{k}.png"
        plot_credit(found.values, found.columns, path, title=found.title)
    learned = iterations[-1].get("edge_probabilities") if iterations else None
    if not learned:
        return []
    pairs = {(a, b): p for a, _, b, p in ((*key.partition(">"), p) for key, p in learned.items())}
    plot_edges(pairs, run.plots / "edges.png")
    return [Picture(title="Learned edge probabilities", png=run.plots / "edges.png")]


def _rate(line: dict[str, Any]) -> Interval | None:
    counted = line["episodes"] - line["masked"]
    if line["success"] is None or not counted:
        return None
    solved = round(line["success"] * counted)
    return wilson([1.0] * solved + [0.0] * (counted - solved))


def _episodes(run: RunDirectory, results: Results) -> list[Episode]:
    """A few of every arm for the viewer, of the trained ones first."""
    chosen: list[Episode] = []
    for arm in sorted(results.arms, key=lambda arm: not arm.arm.startswith("trained")):
        if arm.split != CURVE_SPLIT:
            kept = _kept(run, f"{arm.split}-{arm.arm}")
            failed = [e for e in kept if not e.success]
            solved = [e for e in kept if e.success]
            chosen += [*failed[:1], *solved[:1]][:_SHOWN_PER_ARM]
    return chosen[:_SHOWN]


def _kept(run: RunDirectory, name: str) -> list[Episode]:
    return run.episodes(name) if (run.traces / f"{name}.jsonl").exists() else []
