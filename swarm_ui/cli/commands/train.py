"""``swarm-ui train``: a team learns from its own rollouts."""

from __future__ import annotations

import asyncio
from typing import Any

from swarm_ui.cli import flags
from swarm_ui.cli.live_page import live_page
from swarm_ui.cli.outcome import begun, environment_shown, load_model, stoppable
from swarm_ui.cli.output import Output, facts_table, table
from swarm_ui.experiment import runs
from swarm_ui.experiment.models import describe_model, learned_adapters
from swarm_ui.experiment.teams import team_size
from swarm_ui.experiment.training.roles import describe_credit


@flags.command(
    flags.ENVIRONMENT, flags.TASK, flags.SUITE, flags.TRAINING_MAX_STEPS, flags.DATA, flags.WRAP,
    *flags.TRAINING, flags.LEARNER, *flags.TEAM, flags.OUT, flags.LOG,
    flags.ON, flags.WORKERS,
    *flags.ENDING,
    defaults={f"team.{name}": value for name, value in runs.TRAINING_TEAM.items()},
)  # fmt: skip
def train(arguments: flags.Arguments) -> int:
    """Train a team by rollouts, credit assignment, and updates of the adapters and edges.

    Training can be interrupted at any time and resumed from a checkpoint.
    Example: [bold]swarm-ui train phone --iterations 2 --rollouts 24[/]
    """
    output = arguments.output
    if arguments["resume"] is not None:
        more = [*arguments.given("config"), *(["--no-critic"] if arguments["no_critic"] else [])]
        overrides, trusted = arguments.draft(file=False), arguments["trust"]
        run = runs.resume(arguments["resume"], "train", overrides, more, trusted=trusted)
    else:
        draft = arguments.draft()
        if arguments["no_critic"]:  # the name of earlier versions
            draft.put(("critic", "kind"), "outcome", "--no-critic")
        run = runs.Run(runs.check_training_config(draft), "train")
    if arguments["dry_run"]:
        return _show_plan(run, output)
    new = run.directory is None
    run = begun(run)
    with live_page(run.folder, output, wanted=arguments["watch"]):
        return _train(run, output, new=new)


def _train(run: runs.Run, output: Output, *, new: bool) -> int:
    """Train, and show each iteration."""
    config, folder = run.config, run.folder

    def learn() -> Any:
        model = load_model(config, output, learned_adapters(config))
        return asyncio.run(runs.train_run(run, model, output.progress, output.warn))

    history = stoppable(run, learn, new=new)
    made = table(
        f"{team_size(config.team)} on {config.environment.name}",
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
    if config.run.report:
        from swarm_ui.experiment.reporting import training_report

        output.say(f"report: {training_report(folder)}")
    output.say(f"next: {runs.evaluation_command(run)}")
    rows = [{"iteration": at.iteration, "episodes": at.episodes, "masked": at.masked,
             "success": at.success, "credit": at.credit, "pairs": sum(at.pairs.values()),
             "cpu_seconds": at.cpu_seconds} for at in history]  # fmt: skip
    return output.done(run=str(folder.path), adapters=str(folder.adapters), iterations=rows)


def _show_plan(run: runs.Run, output: Output) -> int:
    from swarm_ui.experiment.training.plan import training_facts

    config, folder = run.config, run.directory
    if folder is None:  # a dry run of a run that has begun makes no model
        asyncio.run(runs.check_code(run))
    learning = runs.trainer_config(config)
    facts = {
        "environment": environment_shown(config.environment),
        "model": describe_model(config.model),
        "start": config.model.adapters or "new adapters",
        "team": team_size(config.team),
        "iterations": f"{learning.iterations} of {learning.episodes} episodes",
        **training_facts(config, learning),
        "edges": learning.edges,
        "credit": describe_credit(config),
        "place": config.run.on or "local",
        **({"staleness": f"{learning.staleness} update"} if learning.staleness else {}),
        "out": str(folder.path) if folder is not None else config.run.out or "runs/<date>-…",
    }
    output.show(facts_table("would be trained, nothing is written", facts.items()))
    return output.done(dry_run=True, **facts)
