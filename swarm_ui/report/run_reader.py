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
    Episodes,
    EpisodeSet,
    Estimate,
    HeatMap,
    ReportData,
    ReportTable,
    credit_map,
)
from swarm_ui.report.totals import RunTotals
from swarm_ui.report.training_metrics import (
    credit_maps,
    curves,
    edge_history,
    last_rollouts,
    readable,
    training_cost,
)
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import open_jsonl
from swarm_ui.trace.records import Episode

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
    found = (totals.success(), measures, totals.cost(), training_cost(lines))
    tables = [table for table in found if table]
    families = totals.families()
    history = edge_history(lines, missing)
    credit = credit_maps(lines) or _played(sets)
    if not any(part.episodes for part in sets):
        missing.append("Episodes: there is no trace file with episodes in traces/.")
    if not credit:
        missing.append("Credit: no message was scored, or the run does not say how.")
    drawn = curves(lines)
    if not drawn:
        missing.append("Learning curves: the run has no measurements of iterations.")
    return ReportData(
        title=run.resolve().name,
        summary=_summary(totals),
        facts=_facts(run, missing),
        headline=totals.headline() or last_rollouts(lines),
        arms=totals.arms(),
        tables=tuple(tables),
        curves=drawn,
        heat_maps=(*families, *credit),
        edge_histories=history,
        sets=sets,
        missing=tuple(missing),
        failures=totals.failed(),
    )


def learning_curves(run: Path) -> tuple[Curve, ...]:
    """The learning curves of a run's folder; none if it has no measurements that can be read."""
    return curves(_metrics(run, []))


def filled(data: ReportData, run: Path) -> ReportData:
    """``data``, completed with the contents of the run's folder.

    Texts, tables, graphs and pictures of ``data`` are kept. Tables of success and cost from the
    folder are added only if ``data`` has no such tables. Curves and heat maps of the folder replace
    those of ``data`` with the same title, because the folder's curves have intervals.
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
        headline=data.headline or found.headline,
        arms=data.arms or found.arms,
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
            yield file[k]


def _sets(run: Path, missing: list[str]) -> tuple[EpisodeSet, ...]:
    """The episodes of every trace file, up to the first line that cannot be read."""
    found = []
    for path in sorted((run / "traces").glob("*.jsonl"), key=_testing_first):
        count = 0
        try:
            with open_jsonl(path) as file:
                for k in range(len(file)):
                    file[k]
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
    measured = [plan for plan in results.get("arms") or () if plan.get("measures")]
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
        return readable(RunDirectory(run).metrics(), missing)
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
    # ``False`` is compared by identity, because it equals 0, which is a setting.
    given = {k: v for k, v in values.items() if v is not None and v is not False}
    said = {k: v for k, v in given.items() if v not in ("", [], {})}
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


def _played(sets: Sequence[EpisodeSet]) -> list[HeatMap]:
    maps = (credit_map(part.episodes, title=f"Mean credit, {part.name}") for part in sets)
    first = next((found for found in maps if found is not None), None)
    return [] if first is None else [first]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
