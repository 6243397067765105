"""Reads the contents of a report from a run's folder, and lists what the folder lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, SwarmError, TraceError
from swarm_ui.report.contents import (
    Curve,
    CurvePoint,
    EdgeFrame,
    EdgeHistory,
    Episodes,
    EpisodeSet,
    Estimate,
    HeatMap,
    ReportData,
    ReportTable,
    Series,
    credit_map,
)
from swarm_ui.report.totals import RunTotals, filled_columns
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.reader import open_jsonl
from swarm_ui.trace.records import Episode

_MOST_MAPS = 6

Line = dict[str, Any]


def gathered(run: Path) -> ReportData:
    """The report of a run's folder. No episode is played again.

    Args:
        run: the folder. Any of its parts (settings, measurements, episodes, edges) may be missing
            or damaged, which the report then mentions.

    Raises:
        ConfigError: there is no such folder.
    """
    if not run.is_dir():
        raise ConfigError(f"no run to report at '{run}': there is no such directory")
    missing: list[str] = []
    sets, lines = _sets(run, missing), _metrics(run, missing)
    tested, measures = _results(run, missing)
    totals = tested or RunTotals.of_episodes(sets)
    found = (totals.success(), measures, totals.cost(), _training(lines))
    tables = [table for table in found if table]
    family = totals.families()
    history = _history(lines, missing)
    credit = _credit(lines) or _played(sets)
    if not any(part.episodes for part in sets):
        missing.append("Episodes: there is no trace file with episodes in traces/.")
    if not credit:
        missing.append("Credit: no message was scored, or the run does not say how.")
    curves = _curves(lines)
    if not curves:
        missing.append("Learning curves: the run has no measurements of iterations.")
    return ReportData(
        title=run.resolve().name,
        summary=_summary(totals),
        facts=_facts(run, missing),
        tables=tuple(tables),
        curves=curves,
        heat_maps=tuple(([family] if family else []) + credit),
        edge_histories=history,
        sets=sets,
        missing=tuple(missing),
        failures=totals.failures,
    )


def learning_curves(run: Path) -> tuple[Curve, ...]:
    """The learning curves of a run's folder; none if it has no measurements that can be read."""
    return _curves(_metrics(run, []))


def filled(data: ReportData, run: Path) -> ReportData:
    """``data``, completed with the contents of the run's folder.

    Texts, tables, graphs and pictures of ``data`` are kept. Tables of success and cost from the
    folder are added only if ``data`` has no such tables. Curves and heat maps of the folder replace
    those of ``data`` with the same title, because they have intervals.
    """
    if not (run / "config.json").is_file():
        return data  # The folder holds no run.
    found = gathered(run)
    curves = {curve.title: curve for curve in (*data.curves, *found.curves)}
    maps = {drawn.title: drawn for drawn in (*data.heat_maps, *found.heat_maps)}
    covered: tuple[str, ...] = ("Success",) if data.tables else ()
    if any(table.title.startswith("Cost") for table in data.tables):
        covered = ("Success", "Cost of tested", "Cost of kept")
    tables = [table for table in found.tables if not table.title.startswith(covered)]
    return msgspec.structs.replace(
        data,
        facts=data.facts or found.facts,
        tables=(*data.tables, *tables),
        curves=tuple(curves.values()),
        heat_maps=tuple(maps.values()),
        edge_histories=data.edge_histories or found.edge_histories,
        sets=data.sets or found.sets,
        missing=(*data.missing, *found.missing),
        failures=data.failures or found.failures,
    )


def _read(path: Path, count: int) -> Iterator[Episode]:
    """The first episodes of a trace file, one at a time."""
    with open_jsonl(path) as file:
        for k in range(count):
            yield file[k].load()


def _sets(run: Path, missing: list[str]) -> tuple[EpisodeSet, ...]:
    """The episodes of every trace file, up to the first line that cannot be read."""
    found = []
    for path in sorted((run / "traces").glob("*.jsonl"), key=_testing_first):
        count = 0
        try:
            with open_jsonl(path) as file:
                for k in range(len(file)):
                    file[k].load()
                    count += 1
        except (TraceError, ValueError) as error:
            missing.append(f"Episodes of {path.name} after the first {count}: {_line(error)}")
        if count:
            episodes = Episodes(partial(_read, path, count), count)
            place = f"traces/{path.name}"
            found.append(EpisodeSet(name=path.stem, episodes=episodes, file=place))
    return tuple(found)


def _testing_first(path: Path) -> tuple[bool, str]:
    return path.name.startswith("train"), path.name


def _results(run: Path, missing: list[str]) -> tuple[RunTotals | None, ReportTable | None]:
    """The totals of all tested episodes, kept or not, and the measures of the benchmark itself."""
    path = run / "results.json"
    if not path.is_file():
        return None, None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return RunTotals.of_results(document), _measures(document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        missing.append(f"Results: results.json cannot be read ({_line(error)}).")
        return None, None


def _measures(results: Line) -> ReportTable | None:
    plans = (*(results.get("plans") or ()), *(results.get("arms") or ()))
    measured = [plan for plan in plans if plan.get("measures")]
    found: dict[str, dict[str, Estimate]] = {}
    for plan in measured:
        column = found[plan["name"]] = {}
        for m in plan["measures"]:
            estimate = Estimate(value=m["value"], low=m["low"], high=m["high"], count=m["tasks"])
            column[m["name"]] = estimate
    names = dict.fromkeys(name for column in found.values() for name in column)
    if not names:
        return None
    return ReportTable(
        title="Measures of the benchmark, %",
        columns=("measure", *found),
        rows=tuple((name, *(column.get(name) for column in found.values())) for name in names),
        note="95 % intervals: bootstrap over tasks; n: tasks.",
    )


def _metrics(run: Path, missing: list[str]) -> list[Line]:
    try:
        return list(RunDirectory(run).metrics())
    except (SwarmError, OSError) as error:
        missing.append(f"Measurements: {_line(error)}")
        return []


def _facts(run: Path, missing: list[str]) -> tuple[tuple[str, str], ...]:
    try:
        document = json.loads((run / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        missing.append(f"Settings: config.json cannot be read ({_line(error)}).")
        return ()
    if not isinstance(document, dict):
        missing.append("Settings: config.json holds no settings.")
        return ()
    facts = [(k, str(document[k])) for k in ("name", "created") if k in document]
    for key, name in (("config", "settings"), ("packages", "packages")):
        if isinstance(document.get(key), dict):
            facts += _settings(document[key], name)
    if "python" in document:
        facts.append(("machine", f"Python {document['python']}, {document.get('platform', '')}"))
    return tuple(facts)


def _settings(values: Line, name: str) -> list[tuple[str, str]]:
    """The settings on one line, and a further line for each section. Unset ones are left out."""
    said = {k: v for k, v in values.items() if v not in (None, "", [], {}, False)}
    plain = ", ".join(f"{k} {_described(v)}" for k, v in said.items() if not isinstance(v, dict))
    facts = [(name, plain)] if plain else []
    for section, inner in said.items():
        if isinstance(inner, dict):
            facts += [(part, line) for part, line in _settings(inner, section) if line]
    return facts


def _described(value: object) -> str:
    if value is True:
        return "yes"
    return " ".join(map(_described, value)) if isinstance(value, list) else str(value)


def _summary(totals: RunTotals) -> str:
    outcomes = [v for tasks in totals.outcomes.values() for kept in tasks.values() for v in kept]
    masked = sum(cost.masked for cost in totals.costs.values())
    which = "kept" if totals.kept else "tested"
    said = f"{sum(v == 1.0 for v in outcomes)} of {len(outcomes)} {which} episodes were solved."
    return said + (f" {masked} more were masked by faults." if masked else "")


def _iterations(lines: Sequence[Line]) -> list[Line]:
    """One metrics line for each iteration.

    A resumed run may have written several lines for an iteration; the last one is used."""
    found = {
        line["iteration"]: line
        for line in lines
        if line.get("kind", "iteration") == "iteration" and _number(line.get("iteration"))
    }
    return [found[k] for k in sorted(found)]


def _curves(lines: Sequence[Line]) -> tuple[Curve, ...]:
    from swarm_ui.stats import wilson

    success, credit, losses = [], [], []
    for line in _iterations(lines):
        x = float(line["iteration"]) + 1
        if _number(line.get("success")):
            value, low, high = float(line["success"]), None, None
            counted = int(line.get("episodes") or 0) - int(line.get("masked") or 0)
            if counted > 0:
                solved = round(value * counted)
                rate = wilson([1.0] * solved + [0.0] * (counted - solved))
                low, high = (rate.low, rate.high) if rate else (None, None)
            success.append(CurvePoint(x, value, low, high))
        if _number(line.get("credit")):
            credit.append(CurvePoint(x, float(line["credit"])))
        updates = [u["loss"] for u in line.get("updates") or () if _number(u.get("loss"))]
        if updates:
            losses.append(CurvePoint(x, sum(updates) / len(updates)))
    shares = [("success of rollouts", success), ("mean credit", credit)]
    note = (
        "Band: 95 % Wilson interval of the success of the iteration's episodes. Sampled and, with "
        "a critic, guided: not comparable with a test."
    )
    return tuple(
        curve
        for curve in (
            _curve("Rollouts", "share", shares, note),
            _curve("Loss", "loss", [("mean over adapters", losses)], "After the last step."),
        )
        if curve.series
    )


def _curve(title: str, y: str, lines: list[tuple[str, list[CurvePoint]]], note: str) -> Curve:
    series = tuple(Series(name=name, points=tuple(points)) for name, points in lines if points)
    return Curve(title=title, x_label="iteration", y_label=y, series=series, note=note)


def _training(lines: Sequence[Line]) -> ReportTable | None:
    work = {line.get("iteration"): line for line in lines if line.get("kind") == "rollouts"}
    names = ("decisions", "calls", "prompt_tokens", "completion_tokens")
    seconds = ("rollout_seconds", "update_seconds", "cpu_seconds")
    rows = []
    for line in _iterations(lines):
        spent = work.get(line["iteration"], {})
        cells = [int(spent[k]) if _number(spent.get(k)) else None for k in names]
        times = [round(float(line[k]), 1) if _number(line.get(k)) else None for k in seconds]
        rows.append((str(int(line["iteration"]) + 1), *cells, *times))
    if not any(cell is not None for row in rows for cell in row[1:]):
        return None
    columns = ("iteration", "decisions", "calls", "prompt tokens", "completion tokens",
               "seconds of rollouts", "seconds of updates", "CPU-seconds")  # fmt: skip
    return filled_columns(ReportTable(title="Cost of training", columns=columns, rows=tuple(rows)))


def _credit(lines: Sequence[Line]) -> list[HeatMap]:
    """Mean credit by round and agent for the first, the last and some other iterations."""
    found = {line["iteration"]: line for line in lines if line.get("kind") == "credit"}
    order = sorted(found)
    step = max(1, -(-len(order) // _MOST_MAPS))
    shown = sorted({*order[::step], *order[-1:]})
    return [
        HeatMap(
            title=f"Mean credit in iteration {k + 1}",
            rows=tuple(f"round {r}" for r in range(len(found[k]["values"]))),
            columns=tuple(found[k]["agents"]),
            values=tuple(tuple(row) for row in found[k]["values"]),
        )
        for k in shown
    ]


def _played(sets: Sequence[EpisodeSet]) -> list[HeatMap]:
    maps = (credit_map(part.episodes, title=f"Mean credit, {part.name}") for part in sets)
    first = next((found for found in maps if found is not None), None)
    return [] if first is None else [first]


def _history(lines: Sequence[Line], missing: list[str]) -> tuple[EdgeHistory, ...]:
    """The learned edge probabilities, or how many of the drawn graphs had each edge."""
    done = _iterations(lines)
    agents = {name for line in lines if line.get("kind") == "credit" for name in line["agents"]}
    learned = [line for line in done if line.get("edge_probabilities")]
    if learned:
        frames = [
            _frame(line, [(*key.split(">", 1), p) for key, p in line["edge_probabilities"].items()])
            for line in learned
        ]
        return (_edges("Learned edge probabilities", frames, agents, "After each iteration."),)
    drawn = [line for line in done if line.get("graphs")]
    if drawn:
        frames = [_frame(line, _shares(line["graphs"])) for line in drawn]
        note = "Edges were not learned: share of the iteration's graphs that had each edge."
        return (_edges("Edges of the graphs that were played", frames, agents, note),)
    missing.append("Edges over iterations: the run has no measurements of edges.")
    return ()


def _shares(graphs: Sequence[Line]) -> list[tuple[str, str, float]]:
    counts: dict[tuple[str, str], int] = {}
    for graph in graphs:
        for sender, listener in graph.get("edges") or ():
            counts[sender, listener] = counts.get((sender, listener), 0) + 1
    return [(a, b, n / len(graphs)) for (a, b), n in sorted(counts.items())]


def _frame(line: Line, edges: Sequence[Any]) -> EdgeFrame:
    return EdgeFrame(label=f"iteration {int(line['iteration']) + 1}", edges=tuple(edges))


def _edges(title: str, frames: list[EdgeFrame], agents: set[str], note: str) -> EdgeHistory:
    names = {*agents, *(name for frame in frames for edge in frame.edges for name in edge[:2])}
    return EdgeHistory(title=title, nodes=tuple(sorted(names)), frames=tuple(frames), note=note)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
