"""``train``: a team learns from its own rollouts."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from swarm_ui.cli import exits, flags
from swarm_ui.cli.outcome import Stopped, begun, environment_shown, loaded, run_words, stoppable
from swarm_ui.cli.output import Output, facts_table, table
from swarm_ui.errors import LearningError
from swarm_ui.experiment import Run
from swarm_ui.experiment import train as train_run
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.learner_processes import (
    EndedByLauncher,
    follow_training,
    join_processes,
    leading,
    placed,
)
from swarm_ui.experiment.loading import expect_read, load
from swarm_ui.experiment.models import describe_model
from swarm_ui.experiment.place import describe_place
from swarm_ui.experiment.playing import check_code
from swarm_ui.experiment.teams import agent_names, team_size

if TYPE_CHECKING:
    from swarm_ui.optim.distributed import Processes
    from swarm_ui.optim.metrics import Metrics

_UNREAD = ("eval.", "synthesize.", "finetune.", "place.concurrency")
"""Settings that are for other commands; episodes at once are ``train.concurrency``."""


@flags.command(
    flags.ENVIRONMENT,
    flags.option("iterations", int, "N", "number of iterations of rollouts and updates",
                 setting="train.iterations"),
    flags.option("rollouts", int, "N", "episodes in each iteration", setting="train.episodes"),
    flags.option("method", str, "NAME", "rft, dpo, ipo, grpo or gspo",
                 setting="train.update.method",
                 complete=flags.one_of("rft", "dpo", "ipo", "grpo", "gspo")),
    flags.option("loss", str, "NAME", "a loss of your own, module:name of a function of (model, "
                 "batch) (default: that of the method)", setting="train.loss"),
    flags.option("learn_edges", str, "HOW", "redraw (new random edges in each iteration), fixed or "
                 "learned (default: redraw; fixed if --edges is given)", setting="train.edges",
                 complete=flags.one_of("redraw", "fixed", "learned")),
    flags.option("critic", str, "NAME", "who assigns credit: scripted (knows the simulated task), "
                 "llm, learned, outcome, or module:name; default: scripted where the environment "
                 "has one, else outcome", setting="critic.kind",
                 complete=flags.one_of("scripted", "llm", "learned", "outcome")),
    flags.option("seed", int, "N", "equal seeds give equal runs", setting="train.seed"),
    flags.MODEL, flags.ADAPTERS, flags.AGENTS, flags.ROUNDS, flags.EDGES,
    flags.ON, flags.OUT, *flags.ENDING,
    defaults={"train.iterations": 5, "train.episodes": 128, "train.update.method": "rft",
              "train.seed": 0, "model.name": "base", "team.agents": 4, "team.rounds": 3,
              "team.edges": "random"},
)  # fmt: skip
def train(arguments: flags.Arguments) -> int:
    """Train a team by rollouts, credit assignment, and updates of the adapters and edges.

    Training can be interrupted at any time and resumed from a checkpoint.
    Several processes share the updates if accelerate launch starts them.
    Example: [bold]swarm-ui train phone --iterations 2 --rollouts 24 team.temperature=1.0[/]
    """
    processes = join_processes()
    if processes is not None and processes.rank:
        return exits.OK if follow_training(processes) else exits.LEARNING
    with leading(processes):
        return _train(arguments, processes)


def _train(arguments: flags.Arguments, processes: Processes | None) -> int:
    """The command in its first process."""
    expect_read(arguments.overrides, _UNREAD, "train")
    output, old, out = arguments.output, arguments["resume"], arguments["out"]
    run: Run | None = None
    if old is not None:
        arguments.expect_none("config", "out")
        run = Run.open(old, arguments.in_environment(), command="train", trust=arguments["trust"])
        config = run.config
    else:
        config = load(arguments["config"], arguments.in_environment(), learning=True)
    place = placed(config.model, processes)
    if arguments["dry_run"]:
        return _show_plan(run, config, arguments, 1 if processes is None else processes.size)
    new = run is None
    run = begun(config, out, "train") if run is None else run

    def learn() -> Sequence[Metrics]:
        if processes is not None:  # the others load the model while this one loads its own
            processes.send(config.model_dump_json().encode())
        names = agent_names(config.team.filled(learning=True).agents)
        model = loaded(place, output, names)
        return train_run(
            run, model=model, show=output.progress, warn=output.warn, processes=processes
        )

    from swarm_ui.optim.distributed import LostProcess

    again = run.words("train")
    try:
        history = stoppable(run, again, learn, new=new, named=out is not None)
    except LostProcess as error:
        if not run.path.exists():  # it was new, and nothing was saved
            raise
        raise Stopped(run.path, shlex.join(again), error) from error
    except Stopped as stop:
        if isinstance(stop.cause, EndedByLauncher):
            stop.cause = LearningError(
                "the launcher ended this process, as it does when another process of the training "
                "has ended"
            )
        raise
    return _show_training(run, output, history)


def _show_training(run: Run, output: Output, history: Sequence[Metrics]) -> int:
    """Show the metrics of each iteration; returns the exit code."""
    config = run.config
    made = table(
        f"{team_size(config.team.filled(learning=True))} on {config.env.name}",
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

        output.say(f"report: {run_report(run.path)}")
    shown = ("iteration", "episodes", "masked", "success", "credit", "pairs", "cpu_seconds")
    rows = [{name: at[name] for name in shown} for at in history]
    found = {"run": str(run.path), "adapters": str(run.adapters), "iterations": rows}
    edges_moved = any(at.get("edges_moved") for at in history)
    if not history or edges_moved or any(not at["nothing_learned"] for at in history):
        output.command("next", *run.words("eval"))
        return output.done(**found)
    reason = history[-1]["nothing_learned"]
    output.warn(f"nothing was learned: {reason}. Then train in a new folder")
    output.command("to see the episodes", "swarm-ui", "view", str(run.path))
    broken = all(at["masked"] == at["episodes"] for at in history)
    return output.done(exits.ENVIRONMENT if broken else exits.LEARNING, reason=reason, **found)


def _show_plan(run: Run | None, config: Config, arguments: flags.Arguments, processes: int) -> int:
    from swarm_ui.experiment.roles import describe_credit

    if run is None:  # a dry run of a run that has begun makes no model
        asyncio.run(check_code(config, learning=True))
    learning, team = config.train, config.team.filled(learning=True)
    update, default = learning.update, "by the size of the model"
    steps = default if update.steps is None else str(update.steps)
    rate = default if update.lr is None else f"{update.lr:g}"
    told = f"{update.method}, steps of an adapter: {steps}, rate: {rate}"
    if learning.shared_iterations:
        told += f"; one for all in the first {learning.shared_iterations} iterations"
    part = f"{processes}; each computes at most {-(-update.batch_size // processes)} examples of a"
    facts = {
        "environment": environment_shown(config.env),
        "model": describe_model(config.model),
        "start": config.model.adapters or "new adapters",
        "team": team_size(team),
        "iterations": f"{learning.iterations} of {learning.episodes} episodes",
        "update": told,
        **({"processes": f"{part} batch"} if processes > 1 else {}),
        "adapters": ", ".join(agent_names(team.agents)),
        "edges": learning.edges,
        "credit": describe_credit(config),
        **({"teacher": config.critic.teacher} if config.critic.teacher != "none" else {}),
        "place": describe_place(config),
        "out": run_words(run, arguments["out"]),
    }
    arguments.output.show(facts_table("would be trained, nothing is written", facts.items()))
    return arguments.output.done(dry_run=True, **facts)
