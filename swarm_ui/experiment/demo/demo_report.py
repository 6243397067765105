"""The table, the report and the plots of a run of the demo."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich import box
from rich.table import Table

from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.reporting import with_screenshots
from swarm_ui.experiment.results import Results, Row
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.split_facts.need_of_a_team import NOTE, TITLE, NeedRow
from swarm_ui.experiment.teams import agent_names
from swarm_ui.report import (
    Arm,
    Arms,
    Curve,
    CurvePoint,
    Estimate,
    GraphDrawing,
    Headline,
    Picture,
    ReportData,
    ReportTable,
    Series,
    write_report,
)
from swarm_ui.report.estimates import interval
from swarm_ui.report.run_reader import gathered
from swarm_ui.stats import Interval
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode
from swarm_ui.viz.plots import plot_credit, plot_edges, plot_success

CURVE_SPLIT = "validation"
"""This split is for the learning curve, not for the table."""
_INTERVALS = (
    "95 % intervals: bootstrap over tasks and their episodes; differences: on the same "
    "episodes, clustered by task, {mark} if 0 is outside."
)
_SHOWN = 14
"""Episodes in the viewer: a failed and a solved one of each arm."""


def write_demo_report(
    run: RunDirectory,
    settings: Settings,
    results: Results,
    display: ProgressDisplay,
    need: Sequence[NeedRow] = (),
) -> Path:
    """Print the tables, write report and plots; returns the report's path.

    ``need``: the rows of a second table, about where a team is needed.
    """
    results.save(run.path)
    metrics = [line for line in run.metrics() if line.get("kind") == "iteration"]
    learning = _learning_curve(results)
    names = tuple(agent_names(settings.agents))
    speed = _speed_line(results)
    tested = {arm.label: arm.edges for arm in results.arms if arm.edges}
    headline, arms = _first_split(results)
    data = ReportData(
        title="A team of agents "
        + ("at work" if settings.given_model and not settings.trains_model else "learns"),
        # The headline tells the first finding.
        summary=" ".join([*_findings(results)[headline is not None :], speed]).strip(),
        labels=results.labels,
        headline=headline,
        arms=arms,
        tables=(*_report_tables(results), *need_in_report(need)),
        curves=(*learning, *_critic_weights(metrics)),
        graphs=tuple(GraphDrawing(title=t, nodes=names, edges=e) for t, e in tested.items()),
        pictures=tuple(_plots(run, learning, metrics)),
        episodes=tuple(map(with_screenshots, _episodes(run, results))),
    )
    path = write_report(run.path, data)
    display.say(_terminal_table(results))
    if need:
        display.say()
        display.say(need_in_terminal(need))
    if speed:
        display.say(speed)
    display.say()
    return path


def _findings(results: Results) -> list[str]:
    """One sentence for each split: by how much the last policy is better than the base agent."""
    parts = []
    for split, rows in _grouped(results):
        rated = [(row, row.to_base) for row in rows if row.to_base is not None]
        for row, gap in rated[-1:]:
            where = results.splits.get(split, split)
            shown = interval(Estimate.of(gap, difference=True))
            text = f"{where}: {row.label}, {shown} points against base."
            parts.append(text[0].upper() + text[1:])
    return parts


def _first_split(results: Results) -> tuple[Headline | None, Arms | None]:
    """Success of the last policy on the first split, and of all policies beside it."""
    for split, rows in _grouped(results):
        rated = [(row, value) for row in rows if (value := _rate(row.success)) is not None]
        if not rated:
            continue
        row, value = rated[-1]
        where = results.splits.get(split, split)
        gain = _difference(row.to_base)
        headline = Headline(label=f"Success: {row.label}", value=value, where=where, gain=gain,
                            against="base, greedy" if gain else "")  # fmt: skip
        arms = tuple(Arm(name=r.label, value=v, chosen=r is row) for r, v in rated)
        return headline, Arms(title=where, arms=arms) if len(arms) > 1 else None
    return None, None


def _learning_curve(results: Results) -> list[Curve]:
    points = [
        CurvePoint(float(arm.arm.rpartition("-")[2]), s.mean, s.low, s.high)
        for arm in results.arms
        if arm.split == CURVE_SPLIT and (s := arm.success) is not None
    ]
    if not points:
        return []
    drawn = Curve(
        title="Success of one agent, greedy, on tuning episodes",
        x_label="iterations of stage 2",
        y_label="success, %",
        percent=True,
        series=(Series(name="agent_0", points=tuple(sorted(points, key=lambda p: p.x))),),
        note="Known templates with parameters of neither training nor test.",
    )
    return [drawn]


def _critic_weights(metrics: Sequence[dict[str, Any]]) -> list[Curve]:
    found = [(m["iteration"] + 1, m["critic_weights"]) for m in metrics if m.get("critic_weights")]
    by_round = zip(*(weights for _, weights in found), strict=True)
    series = tuple(
        Series(
            name=f"round {k}",
            points=tuple(map(CurvePoint, (at for at, _ in found), weights)),
        )
        for k, weights in enumerate(by_round, start=1)
    )
    drawn = Curve(
        title="How well the critic's scores predict outcomes",
        x_label="iteration",
        y_label="weight",
        series=series,
        note="The weight of the critic beside the outcome; used where its trust is learned.",
    )
    return [drawn] if any(p.y for line in series for p in line.points) else []


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
    if not metrics:
        return []
    from swarm_ui.optim.metrics import edge_probabilities  # a training has torch

    learned = edge_probabilities(metrics[-1])
    if not learned:
        return []
    plot_edges(learned, run.plots / "edges.png")
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


def _terminal_table(results: Results) -> Table:
    """All splits in one table, with 95 % intervals."""
    figures = ("success % [95 %]", "minus base", "minus trained greedy", "calls", "n")
    table = _table("Success on test episodes", _caption(results), "policy", figures)
    for split, rows in _grouped(results):
        table.add_section()
        table.add_row(results.splits.get(split, split), style="bold")
        for row in rows:
            table.add_row(
                f"  {row.label}",
                "–" if row.success is None else row.success.percent(),
                _gap(row.to_base),
                _gap(row.to_trained),
                f"{row.calls_per_decision:.1f}",
                _count(row),
                style="" if row.arm.startswith("base") else "cyan",
            )
    return table


def _table(title: str, caption: str, first: str, figures: Sequence[str]) -> Table:
    """An empty table for the terminal. Its columns after the first hold numbers."""
    table = Table(
        first,
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in figures:
        table.add_column(column, justify="right")
    return table


def need_in_terminal(need: Sequence[NeedRow]) -> Table:
    """The table about where a team is needed."""
    table = _table(TITLE, NOTE, "edges", ("success % [95 %]", "tokens an episode", "n"))
    for row in need:
        count = str(row.success.n)
        table.add_row(f"  {row.label}", row.success.percent(), f"{row.tokens:,.0f}", count)
    return table


def need_in_report(need: Sequence[NeedRow]) -> tuple[ReportTable, ...]:
    """The table about where a team is needed, for the report; no table if there are no rows."""
    if not need:
        return ()
    rows = tuple((row.label, Estimate.of(row.success), round(row.tokens)) for row in need)
    columns = ("edges", "success %", "tokens an episode")
    return (ReportTable(title=TITLE, columns=columns, rows=rows, note=NOTE),)


def _report_tables(results: Results) -> tuple[ReportTable, ...]:
    """One table for each split."""
    columns = ("policy", "success %", "minus base greedy", "minus trained greedy",
               "calls a decision", "masked")  # fmt: skip
    return tuple(
        ReportTable(
            title=results.splits.get(split, split),
            columns=columns,
            rows=tuple(
                (
                    row.label,
                    _rate(row.success),
                    _difference(row.to_base),
                    _difference(row.to_trained),
                    round(row.calls_per_decision, 2),
                    row.masked,
                )
                for row in rows
            ),
            note=_intervals(results),
        )
        for split, rows in _grouped(results)
    )


def _grouped(results: Results) -> list[tuple[str, list[Row]]]:
    """Rows by split, without those of the learning curve."""
    rows = results.rows()
    order = list(results.splits) or list(dict.fromkeys(row.split for row in rows))
    pairs = [(s, [row for row in rows if row.split == s]) for s in order if s != CURVE_SPLIT]
    return [(split, found) for split, found in pairs if found]


def _speed_line(results: Results) -> str:
    """Tokens per second and the model's share of the time, in rollouts."""
    work = results.rollouts
    if work is None or not work.seconds:
        return ""
    return (
        f"Rollouts of stage 2: {work.calls} calls, {work.tokens_per_second:.0f} tokens/s, "
        f"{100 * work.model_share:.0f} % of the wall time inside the model."
    )


def _rate(success: Interval | None) -> Estimate | None:
    return None if success is None else Estimate.of(success)


def _difference(gap: Interval | None) -> Estimate | None:
    """A paired difference. The number of episodes is left out, because the table shows it beside
    the success."""
    return None if gap is None else replace(Estimate.of(gap, difference=True), count=None)


def _caption(results: Results) -> str:
    """The note of the terminal's table."""
    labels = "; ".join(results.labels) + "." if results.labels else ""
    first = _INTERVALS.format(mark="*")
    return " ".join(filter(None, [first, labels, *results.notes]))


def _intervals(results: Results) -> str:
    """The note below the report's tables. It omits the labels, because the report shows them at its
    head."""
    return " ".join([_INTERVALS.format(mark="bold"), *results.notes])


def _gap(interval: Interval | None) -> str:
    if interval is None:
        return "–"
    return interval.percent(signed=True) + ("*" if interval.excludes_zero else " ")


def _count(row: Row) -> str:
    n = 0 if row.success is None else row.success.n
    return f"{n} ({row.masked} masked)" if row.masked else str(n)
