"""How ``run`` and ``eval`` end: table, report, exit code; and what a dry run says."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rich.text import Text

from swarm_ui.cli import exits, models, playing, teams, worlds
from swarm_ui.cli.comparing import compared, comparison_table
from swarm_ui.cli.output import Output, table
from swarm_ui.cli.playing import Work
from swarm_ui.cli.results import Results, machine, measures_table, results_table
from swarm_ui.errors import Failure
from swarm_ui.storage.run_directory import RunDirectory


def end(
    work: Work, run: RunDirectory, results: Results, out: Output, against: Path | None = None
) -> int:
    """Show what came of a run; returns the exit code."""
    config = work.config
    out.show(results_table(results))
    measures = measures_table(results)
    if measures is not None:
        out.show(measures)
    document: dict[str, object] = {"run": str(run.path), **machine(results)}
    if against is not None:
        rows = compared(run.path, against)
        out.show(comparison_table(rows, str(run.path), str(against)))
        document["against"] = [row.plain() for row in rows]
    faults = [fault for plan in results.plans for fault in plan.faults]
    for fault in dict.fromkeys(faults):
        out.warn(f"masked, not counted as failed: {fault}")
    if config.run.report:
        from swarm_ui.cli.reporting import report

        path = report(run, results)
        document["report"] = str(path)
        out.say(Text(f"report: {path}", overflow="fold"))
    out.say(Text(f"next: swarm-ui view {run.path}", overflow="fold"))
    code = _code(work, results, faults)
    out.record({"ok": code == exits.OK, "exit": code, **document})
    return code


def planned(work: Work, out: Output, run: RunDirectory | None = None) -> None:
    """Say what would be played, or what is left of ``run``."""
    config = work.config
    plans = []
    for split in work.splits:
        plans += asyncio.run(_plans(work, split))
    made = table("would be played, nothing is written", ["setting", "value"])
    made.columns[1].justify = "left"
    facts = {
        "environment": config.environment.name,
        "model": models.described(config.model),
        "team": teams.sized(config.team),
        "edges": ", ".join(f"{a}>{b}" for a, b in teams.edges_of(config.team)) or "none",
        "out": str(run.path) if run is not None else config.run.out or "runs/<date>-…",
        **{f"episodes: {plan.name}": str(len(plan.jobs)) for plan in plans},
    }
    if run is not None:
        done = sum(len(playing.counted_of(run, plan)) for plan in plans)
        facts["of these done"] = str(done)
    for name, value in facts.items():
        made.add_row(name, value)
    for task, seed in plans[0].jobs[:3]:
        made.add_row("such as", f"{task}, seed {seed}")
    out.show(made)
    out.record({"ok": True, "exit": exits.OK, "dry_run": True, **facts})


async def _plans(work: Work, split: str) -> list[playing.Plan]:
    part = Work(work.config, (split,), work.seeds, work.command)
    async with worlds.opened(playing.section(work, split, work.seeds[0])) as world:
        return await playing.plans_of(part, world)


def _code(work: Work, results: Results, faults: list[str]) -> int:
    counted = [value for value in results.outcomes if value is not None]
    if not counted:
        if not faults:
            return exits.ENVIRONMENT
        return exits.code_of(Failure.read(faults[0], "environment"))
    share = sum(counted) / len(counted)
    floor = work.config.run.fail_under
    if floor is not None:
        return exits.OK if share >= floor else exits.NOT_GOOD
    if work.command == "run" and len(results.outcomes) == 1:
        return exits.OK if share == 1.0 else exits.NOT_GOOD
    return exits.OK
