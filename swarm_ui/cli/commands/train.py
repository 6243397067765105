"""``swarm-ui train``: a team learns from its own rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.cli import exits, flags
from swarm_ui.cli.outcome import Stopped, begun, environment_shown, load_model, stoppable
from swarm_ui.cli.output import Output, facts_table, table
from swarm_ui.errors import LearningError
from swarm_ui.experiment import runs
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.models import describe_model, learned_adapters
from swarm_ui.experiment.progress import recorded_progress
from swarm_ui.experiment.teams import team_size
from swarm_ui.experiment.training.learner_processes import (
    EndedByLauncher,
    follow_training,
    join_processes,
    leading,
    placed,
    tell_model,
)
from swarm_ui.experiment.training.roles import describe_credit, describe_teacher

if TYPE_CHECKING:
    from swarm_ui.optim.distributed import Processes
    from swarm_ui.optim.metrics import Metrics


@flags.command(
    flags.ENVIRONMENT, flags.TASK, *flags.INVENTED,
    flags.MAX_STEPS, flags.DATA, flags.WRAP,
    *flags.TRAINING, flags.LEARNER, *flags.TEAM, flags.OUT, flags.LOG,
    flags.ON, flags.WORKERS, flags.MODEL_ACTORS,
    *flags.ENDING,
    defaults={f"team.{name}": value for name, value in runs.TRAINING_TEAM.items()},
)  # fmt: skip
def train(arguments: flags.Arguments) -> int:
    """Train a team by rollouts, credit assignment, and updates of the adapters and edges.

    Training can be interrupted at any time and resumed from a checkpoint.
    Several processes share the updates if accelerate launch starts them.
    Example: [bold]swarm-ui train phone --iterations 2 --rollouts 24[/]
    """
    processes = join_processes()
    if processes is not None and processes.rank:
        return exits.OK if follow_training(processes) else exits.LEARNING
    with leading(processes):
        return _train(arguments, processes)


def _train(arguments: flags.Arguments, processes: Processes | None) -> int:
    """The command in its first process."""
    output = arguments.output
    if arguments["resume"] is not None:
        more = arguments.given("config")
        overrides, trusted = arguments.draft(*flags.TRAINED, file=False), arguments["trust"]
        run = runs.resume(arguments["resume"], "train", overrides, more, trusted=trusted)
    else:
        draft = arguments.draft(*flags.TRAINED)
        run = runs.Run(runs.check_training_config(draft), "train")
    if processes is not None:
        placed(run.config.model, processes)
    if arguments["dry_run"]:
        return _show_plan(run, output, 1 if processes is None else processes.size)
    new = run.directory is None
    run = begun(run)
    with recorded_progress(output.progress, run.folder.path, output.warn):
        history = _learn(run, output, processes, new=new)
    return _show_training(run, output, history)


def _learn(
    run: runs.Run, output: Output, processes: Processes | None, *, new: bool
) -> Sequence[Metrics]:
    """Train; returns the metrics of all iterations."""
    config = run.config

    def learn() -> Any:
        model = _load(config, output, processes)
        training = runs.train_run(run, model, output.progress, output.warn, processes)
        return asyncio.run(training)

    from swarm_ui.optim.distributed import LostProcess

    try:
        history: Sequence[Metrics] = stoppable(run, learn, new=new)
    except LostProcess as error:
        if not run.folder.path.exists():  # it was new, and nothing was saved
            raise
        raise Stopped(run.folder.path, run.resume_command, error) from error
    except Stopped as stop:
        if isinstance(stop.cause, EndedByLauncher):
            cause = LearningError(
                "the launcher ended this process, as it does when another process of the training "
                "has ended"
            )
            raise Stopped(stop.run, stop.resume, cause) from stop
        raise
    return history


def _load(config: Config, output: Output, processes: Processes | None) -> Any:
    """The model that is trained, loaded by all processes at the same time."""
    learned = learned_adapters(config)
    if processes is not None:
        tell_model(processes, config, learned, runs.trainer_config(config).rank)
        config = msgspec.structs.replace(config, model=placed(config.model, processes))
    return load_model(config, output, learned)


def _show_training(run: runs.Run, output: Output, history: Sequence[Metrics]) -> int:
    """Show the metrics of each iteration; returns the exit code."""
    config, folder = run.config, run.folder
    made = table(
        f"{team_size(config.team)} on {config.environment.name}",
        ["iteration", "episodes", "success %", "credit", "pairs", "masked", "CPU s"],
        caption="Rollouts are sampled and, with a critic, guided: not comparable with a test.",
    )
    for at in history:
        made.add_row(
            str(at["iteration"] + 1),
            str(at["episodes"]),
            "–" if at["success"] is None else f"{100 * at['success']:.1f}",
            "–" if at["credit"] is None else f"{at['credit']:.3f}",
            str(at["pairs"]),
            str(at["masked"]),
            f"{at['cpu_seconds']:.1f}",
        )
    output.show(made)
    if config.run.report:
        from swarm_ui.experiment.reporting import run_report

        output.say(f"report: {run_report(folder.path)}")
    shown = ("iteration", "episodes", "masked", "success", "credit", "pairs", "cpu_seconds")
    rows = [{name: at[name] for name in shown} for at in history]
    found = {"run": str(folder.path), "adapters": str(folder.adapters), "iterations": rows}
    edges_moved = any(at.get("edges_moved") for at in history)
    if not history or edges_moved or any(not at["nothing_learned"] for at in history):
        output.command("next", "swarm-ui", "eval", *flags.words(runs.evaluation_settings(run)))
        return output.done(**found)
    reason = history[-1]["nothing_learned"]
    output.warn(f"nothing was learned: {reason}. Then train in a new folder")
    output.command("to see the episodes", "swarm-ui", "view", str(folder.path))
    broken = all(at["masked"] == at["episodes"] for at in history)
    code = exits.ENVIRONMENT if broken else exits.LEARNING
    output.record({"ok": False, "exit": code, "reason": reason, **found})
    return code


def _show_plan(run: runs.Run, output: Output, processes: int) -> int:
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
        **training_facts(config, learning, processes),
        "edges": learning.edges,
        "credit": describe_credit(config),
        **({"teacher": describe_teacher(config)} if config.critic.teacher != "none" else {}),
        "place": config.run.on or "local",
        **({"rollouts": "beside the update"} if learning.overlap else {}),
        "out": str(folder.path) if folder is not None else config.run.out or "runs/<date>-…",
    }
    output.show(facts_table("would be trained, nothing is written", facts.items()))
    return output.done(dry_run=True, **facts)
