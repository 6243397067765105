"""``swarm-ui train``: a team learns from its own rollouts."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from swarm_ui.cli import exits, flags, playing
from swarm_ui.cli.config import checked
from swarm_ui.cli.output import Output, table
from swarm_ui.cli.playing import Stopped

_TEAM = {"agents": 4, "rounds": 3, "temperature": 0.8, "views": "shuffle"}
"""What holds for a team that learns, where nothing else is said."""


def train(
    env: flags.Environment = None,
    task: Annotated[list[str] | None, typer.Option("--task", metavar="NAME", help="only this one; "
                    "repeatable", rich_help_panel=flags.WHERE)] = None,
    suite: flags.Suite = None,
    iterations: Annotated[int | None, typer.Option(help="of rollouts and updates",
                                                   rich_help_panel="Learning")] = None,
    rollouts: Annotated[int | None, typer.Option(help="episodes in each iteration",
                                                 rich_help_panel="Learning")] = None,
    method: Annotated[str | None, typer.Option(help="rft, dpo, ipo or pg",
                                               rich_help_panel="Learning")] = None,
    learn_edges: Annotated[str | None, typer.Option(help="redraw, fixed or learned",
                                                    rich_help_panel="Learning")] = None,
    critic: Annotated[bool, typer.Option("--critic/--no-critic", help="the phone's scripted critic "
                      "gives credit; else the outcome does", rich_help_panel="Learning")] = True,
    model: flags.Model = None,
    adapters: flags.Adapters = None,
    agents: flags.Agents = None,
    rounds: flags.Rounds = None,
    edges: flags.Edges = None,
    views: flags.Views = None,
    vote: flags.Vote = None,
    temperature: flags.Temperature = None,
    config: flags.ConfigFile = None,
    settings: flags.Set = None,
    out: flags.Out = None,
    resume: flags.Resume = None,
    dry_run: flags.DryRun = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:  # fmt: skip
    """Train a team: roll out, give credit, update each agent's adapter and the edges, repeat.

    Checkpoints make it safe to stop at any moment.
    Example: [bold]swarm-ui train phone --iterations 2 --rollouts 24[/]
    """
    from swarm_ui.cli import training

    output = Output(machine=json, quiet=quiet)
    if resume is not None:
        job = training.taken_up(resume)
    else:
        draft = flags.draft(
            config, settings, env=env, task=task, suite=suite, iterations=iterations,
            rollouts=rollouts, method=method, learn_edges=learn_edges, model=model,
            adapters=adapters, agents=agents, rounds=rounds, edges=edges, views=views, vote=vote,
            temperature=temperature, out=out,
        )  # fmt: skip
        for name, value in _TEAM.items():
            if ("team", name) not in draft.places:
                draft.put(("team", name), value, f"[team] {name}")
        chosen = checked(draft, train=True)
        playing.check(chosen)
        if dry_run:
            return _planned(training.facts(chosen, critic), output)
        job = training.begun(chosen, critic)
    return _end(job, output)


def _end(job: object, output: Output) -> int:
    """Train, and show each iteration."""
    from swarm_ui.cli import training

    assert isinstance(job, training.Training)
    try:
        history = asyncio.run(training.train(job, output))
    except KeyboardInterrupt as error:
        resume = f"swarm-ui train --resume {job.run.path}"
        raise Stopped(job.run.path, resume, error) from None
    made = table(
        f"{job.config.team.agents} agents on {job.config.environment.name}",
        ["iteration", "episodes", "success %", "credit", "pairs", "masked", "CPU s"],
        caption="Rollouts are sampled and, with a critic, guided: not comparable with a test.",
    )
    for at in history:
        made.add_row(
            str(at.iteration + 1),
            str(at.episodes),
            "–" if at.success is None else f"{100 * at.success:.1f}",
            "–" if at.credit is None else f"{at.credit:.3f}",
            str(sum(at.pairs.values())),
            str(at.masked),
            f"{at.cpu_seconds:.1f}",
        )
    output.show(made)
    if job.config.run.report:
        from swarm_ui.report import write_report

        output.say(Text(f"report: {write_report(job.run.path)}", overflow="fold"))
    team = job.config.team
    told = (
        f"next: swarm-ui eval {job.config.environment.name} --adapters {job.run.adapters} "
        f"--agents {team.agents} --rounds {team.rounds} --views {team.views}"
    )
    output.say(Text(told, overflow="fold"))
    rows = [{"iteration": at.iteration, "episodes": at.episodes, "masked": at.masked,
             "success": at.success, "credit": at.credit, "pairs": sum(at.pairs.values()),
             "cpu_seconds": at.cpu_seconds} for at in history]  # fmt: skip
    output.record({"ok": True, "exit": exits.OK, "run": str(job.run.path),
                   "adapters": str(job.run.adapters), "iterations": rows})  # fmt: skip
    return exits.OK


def _planned(facts: dict[str, str], output: Output) -> int:
    made = table("would be trained, nothing is written", ["setting", "value"])
    made.columns[1].justify = "left"
    for name, value in facts.items():
        made.add_row(name, value)
    output.show(made)
    output.record({"ok": True, "exit": exits.OK, "dry_run": True, **facts})
    return exits.OK
