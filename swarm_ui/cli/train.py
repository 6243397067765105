"""``train``: a team learns from its own rollouts."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from swarm_ui.cli import exits, flags
from swarm_ui.cli.outcome import Stopped, begun, loaded, show_plan, stoppable
from swarm_ui.cli.output import Output, shown, table
from swarm_ui.experiment import Run
from swarm_ui.experiment import train as train_run
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.learner_processes import follow_training, join_processes, leading, placed
from swarm_ui.experiment.loading import expect_read, load
from swarm_ui.experiment.mistakes import critic_kind
from swarm_ui.experiment.playing import check_code
from swarm_ui.experiment.teams import agent_names, team_size

if TYPE_CHECKING:
    from swarm_ui.optim.distributed import Processes
    from swarm_ui.optim.metrics import Metrics

_UNREAD = ("eval.", "synthesize.", "finetune.", "place.concurrency")
"""Settings that are for other commands; episodes at once are ``train.concurrency``."""


@flags.command(
    flags.ENVIRONMENT,
    flags.option("iterations", int, "N", "of all (default: 5)", setting="train.iterations"),
    flags.option("rollouts", int, "N", "episodes of each (default: 128)", setting="train.episodes"),
    flags.option("method", str, "NAME", "rft (the default), dpo, ipo, grpo or gspo",
                 setting="train.update.method",
                 complete=flags.one_of("rft", "dpo", "ipo", "grpo", "gspo")),
    flags.option("loss", str, "NAME", "module:name of a function of (model, batch) (default: that "
                 "of the method)", setting="train.loss"),
    flags.option("learn_edges", str, "HOW", "redraw (each iteration), fixed or learned (default: "
                 "redraw; fixed if --edges is given)", setting="train.edges",
                 complete=flags.one_of("redraw", "fixed", "learned")),
    flags.option("critic", str, "NAME", "scripted (knows the simulated task), llm, learned, "
                 "outcome, or module:name (default: scripted, or else outcome)",
                 setting="critic.kind",
                 complete=flags.one_of("scripted", "llm", "learned", "outcome")),
    flags.option("seed", int, "N", "equal seeds give equal runs (default: 0)",
                 setting="train.seed"),
    flags.MODEL, flags.ADAPTERS, flags.AGENTS, flags.ROUNDS, flags.EDGES,
    flags.ON, flags.OUT, *flags.ENDING,
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
    return _show_training(run, output, history)


def _show_training(run: Run, output: Output, history: Sequence[Metrics]) -> int:
    """Show the metrics of each iteration; returns the exit code."""
    config = run.config
    rows = [
        (at["iteration"] + 1, at["episodes"], shown(at["success"], times=100),
         shown(at["credit"], 3), at["pairs"], at["masked"], at["cpu_seconds"])
        for at in history
    ]  # fmt: skip
    output.show(table(
        f"{team_size(config.team.filled(learning=True))} on {config.env.name}",
        ["iteration", "episodes", "success %", "credit", "pairs", "masked", "CPU s"], rows,
        caption="Rollouts are sampled and, with a critic, guided: not comparable with a test.",
    ))  # fmt: skip
    if config.run.report:
        from swarm_ui.experiment.reporting import run_report

        output.say(f"report: {run_report(run.path)}")
    names = ("iteration", "episodes", "masked", "success", "credit", "pairs", "cpu_seconds")
    kept = [{name: at[name] for name in names} for at in history]
    found = {"run": str(run.path), "adapters": str(run.adapters), "iterations": kept}
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
    if run is None:  # a dry run of a run that has begun makes no model
        asyncio.run(check_code(config, learning=True))
    learning, team, asked = config.train, config.team.filled(learning=True), config.critic.model
    update, default = learning.update, "by the size of the model"
    steps = default if update.steps is None else str(update.steps)
    rate = default if update.lr is None else f"{update.lr:g}"
    told = f"{update.method}, steps of an adapter: {steps}, rate: {rate}"
    if learning.shared_iterations:
        told += f"; one for all in the first {learning.shared_iterations} iterations"
    part = f"{processes}; each computes at most {-(-update.batch_size // processes)} examples of a"
    return show_plan(
        arguments, run, config, team,
        start=config.model.adapters or "new adapters",
        iterations=f"{learning.iterations} of {learning.episodes} episodes", update=told,
        processes=f"{part} batch" if processes > 1 else "",
        adapters=", ".join(agent_names(team.agents)), edges=learning.edges,
        credit=f"{critic_kind(config)} {asked.name if asked else config.critic.folder}".rstrip(),
        teacher=config.critic.teacher,
    )  # fmt: skip
