"""``swarm-ui train``: a team learns from its own rollouts."""

from __future__ import annotations

import asyncio

from rich.text import Text

from swarm_ui.cli import exits, flags
from swarm_ui.cli.output import Output, table
from swarm_ui.cli.playing import Stopped


def train(
    env: flags.Environment = None,
    task: flags.Task = None,
    suite: flags.Suite = None,
    max_steps: flags.MaxSteps = None,
    data: flags.Data = None,
    iterations: flags.Iterations = None,
    rollouts: flags.Rollouts = None,
    method: flags.Method = None,
    learn_edges: flags.LearnEdges = None,
    critic: flags.Critic = True,
    seed: flags.TrainSeed = None,
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
    given = {
        "env": env, "task": task, "suite": suite, "train_max_steps": max_steps, "data": data,
        "iterations": iterations, "rollouts": rollouts, "method": method,
        "learn_edges": learn_edges, "train_seed": seed, "model": model, "adapters": adapters,
        "agents": agents, "rounds": rounds, "edges": edges, "views": views, "vote": vote,
        "temperature": temperature, "out": out,
    }  # fmt: skip
    if resume is not None:
        fixed = {"--config": config is not None, "--no-critic": not critic}
        more = [name for name, value in fixed.items() if value]
        job = training.taken_up(resume, flags.draft(None, settings, **given), more)
        chosen, critic = job.config, job.critic
    else:
        chosen = training.settled(flags.draft(config, settings, **given))
        job = None
    if dry_run:
        return _planned(training.facts(chosen, critic, job), output)
    job = job or training.begun(chosen, critic)
    return _end(job, output)


def _end(job: object, output: Output) -> int:
    """Train, and show each iteration."""
    from swarm_ui.cli import models, teams, training

    assert isinstance(job, training.Training)
    try:
        model = models.loaded_early(job.config.model, output)
        history = asyncio.run(training.train(job, model, output))
    except KeyboardInterrupt as error:
        resume = f"swarm-ui train --resume {job.run.path}"
        raise Stopped(job.run.path, resume, error) from None
    made = table(
        f"{teams.sized(job.config.team)} on {job.config.environment.name}",
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
        from swarm_ui.cli.reporting import training_report

        output.say(Text(f"report: {training_report(job.run)}", overflow="fold"))
    output.say(Text(f"next: {training.following(job)}", overflow="fold"))
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
