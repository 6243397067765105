"""``swarm-ui train``: a team learns from its own rollouts."""

from __future__ import annotations

import asyncio

from rich.text import Text

from swarm_ui.cli import exits, flags
from swarm_ui.cli.commands.outcome import Stopped, load_model
from swarm_ui.cli.output import Output, table
from swarm_ui.experiment import runs
from swarm_ui.experiment.models import describe_model
from swarm_ui.experiment.teams import team_size


@flags.command(
    flags.ENVIRONMENT, flags.TASK, flags.SUITE, flags.TRAINING_MAX_STEPS, flags.DATA,
    *flags.TRAINING, flags.MODEL, flags.ADAPTERS, *flags.TEAM, flags.CONFIG, flags.SET, flags.OUT,
    *flags.ENDING,
)  # fmt: skip
def train(arguments: flags.Arguments) -> int:
    """Train a team by rollouts, credit assignment, and updates of the adapters and edges.

    Training can be interrupted at any time and resumed from a checkpoint.
    Example: [bold]swarm-ui train phone --iterations 2 --rollouts 24[/]
    """
    output = arguments.output
    if arguments["resume"] is not None:
        more = [*arguments.given("config"), *([] if arguments["critic"] else ["--no-critic"])]
        overrides = arguments.draft(file=False)
        training = runs.resume_training(arguments["resume"], overrides, more)
    else:
        config = runs.check_training_config(arguments.draft())
        training = runs.TrainingRun(config, arguments["critic"])
    if arguments["dry_run"]:
        return _show_plan(training, output)
    if training.directory is None:
        training = runs.begin_training(training)
    return _train(training, output)


def _train(training: runs.TrainingRun, output: Output) -> int:
    """Train, and show each iteration."""
    run, config = training.directory, training.config
    assert run is not None
    try:
        model = load_model(config, output)
        history = asyncio.run(runs.train_run(training, model, output.progress, output.warn))
    except KeyboardInterrupt as error:
        raise Stopped(run.path, f"swarm-ui train --resume {run.path}", error) from None
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

        output.say(Text(f"report: {training_report(run)}", overflow="fold"))
    output.say(Text(f"next: {runs.evaluation_command(training)}", overflow="fold"))
    rows = [{"iteration": at.iteration, "episodes": at.episodes, "masked": at.masked,
             "success": at.success, "credit": at.credit, "pairs": sum(at.pairs.values()),
             "cpu_seconds": at.cpu_seconds} for at in history]  # fmt: skip
    output.record({"ok": True, "exit": exits.OK, "run": str(run.path),
                   "adapters": str(run.adapters), "iterations": rows})  # fmt: skip
    return exits.OK


def _show_plan(training: runs.TrainingRun, output: Output) -> int:
    config, run = training.config, training.directory
    learning = runs.trainer_config(config)
    facts = {
        "environment": config.environment.name,
        "model": describe_model(config.model),
        "team": team_size(config.team),
        "iterations": f"{learning.iterations} of {learning.episodes} episodes",
        "update": f"{learning.update.method}, {learning.update.steps} steps an adapter",
        "edges": learning.edges,
        "credit": "scripted critic" if runs.critic_of(training) else "outcome of the episode",
        "out": str(run.path) if run is not None else config.run.out or "runs/<date>-…",
    }
    made = table("would be trained, nothing is written", ["setting", "value"])
    made.columns[1].justify = "left"
    for name, value in facts.items():
        made.add_row(name, value)
    output.show(made)
    output.record({"ok": True, "exit": exits.OK, "dry_run": True, **facts})
    return exits.OK
