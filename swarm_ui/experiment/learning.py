"""Trains the team of a run: its adapters, and its edges if they are learned."""

from __future__ import annotations

import dataclasses
import random
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from swarm_ui.experiment.acting import open_training_place
from swarm_ui.experiment.benchmarks import opened
from swarm_ui.experiment.loggers import Log, opened_log
from swarm_ui.experiment.mistakes import mistakes
from swarm_ui.experiment.model_settings import SettingsError
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.plugins import function_of
from swarm_ui.experiment.progress import ProgressDisplay, recorded_progress
from swarm_ui.experiment.run import Run, wait_for
from swarm_ui.experiment.stored import running
from swarm_ui.experiment.teams import agent_names, arm_of
from swarm_ui.rollout import Job
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.credit import Critic
    from swarm_ui.optim.distributed import Processes
    from swarm_ui.optim.losses import Loss
    from swarm_ui.optim.metrics import Metrics


def train(
    run: Run,
    *,
    critic: Critic | None = None,
    loss: Loss | None = None,
    model: Any = None,
    show: ProgressDisplay | None = None,
    warn: Callable[[str], None] = warnings.warn,
    processes: Processes | None = None,
) -> Sequence[Metrics]:
    """Train the team of a run, or continue where its training stopped.

    Args:
        run: gets ``adapters/``, ``edges/``, checkpoints, ``metrics.jsonl`` and a sample of the
            episodes.
        critic: instead of the one that ``[critic]`` names.
        loss: a function of (model, batch), instead of ``[train] loss`` or ``update.method``.
        model: the model, already loaded with :func:`load_in_process`; ``None``: it is loaded here.
        show: shows the progress; ``None``: nobody.
        warn: called with one line when something needs attention and the run continues.
        processes: those that share the updates; ``None``: this one alone.

    Returns:
        The metrics of all iterations.

    Raises:
        ConfigError: a setting is wrong, or another process works on the run.
        LearningError: training cannot continue.
    """
    found = [f"{'.'.join(name)}: {text}" for name, text in mistakes(run.config, learning=True)]
    if found:
        raise SettingsError("; ".join(found))
    run.folder = RunDirectory.open_existing(run.path)
    show = show or ProgressDisplay(quiet=True, announce=False)
    team = run.config.team.filled(learning=True)
    with running(run.folder), recorded_progress(show, run.path, warn):
        learner = model or load_in_process(run.config.model, agent_names(team.agents))  # type: ignore[arg-type]
        settings = run.logged_settings() | {"train": dataclasses.asdict(run.config.train)}
        with opened_log(run.config.run.log, run.path, settings, warn) as log:
            work = _trained(run, learner, show, warn, processes, log, critic, loss)
            return wait_for(work)


async def _trained(
    run: Run,
    learner: Any,
    show: ProgressDisplay,
    warn: Callable[[str], None],
    processes: Processes | None,
    log: Log,
    critic: Critic | None,
    loss: Loss | None,
) -> Sequence[Metrics]:
    from swarm_ui.experiment.roles import open_critics
    from swarm_ui.experiment.training.stage2 import TrainingEnvironment, train_graph
    from swarm_ui.optim.edges.distribution import EdgeDistribution

    config, settings = run.config, run.config.train
    env, team, split = config.env, config.team.filled(learning=True), config.env.training_split()
    if loss is None and config.train.loss:
        loss = function_of("losses", config.train.loss)
    try:
        async with (
            opened(env, split) as environment,
            open_training_place(config, learner, run.path, environment, warn) as playing,
        ):
            tasks = await env.task_names(split, environment)

            def sample_jobs(count: int, /, *, seed: int) -> list[Job]:
                return env.training_jobs(tasks, count, random.Random(seed))

            graph = arm_of(team, agent_names(team.agents)).graph(playing.acting)
            # An emulator plays one episode at a time, whatever the settings say.
            most = environment.max_concurrency or settings.concurrency
            settings = dataclasses.replace(settings, concurrency=min(settings.concurrency, most))
            roles = open_critics(config, playing.judging, playing.in_workers, run.folder)
            edges = None
            if settings.edges != "fixed":
                edges = EdgeDistribution(graph, density=team.density)
            async with roles as found:
                place = TrainingEnvironment(
                    playing.environments, sample_jobs, critic or found.critic,
                    settings.concurrency, found.judge, found.adversary, found.teacher,
                    edges=edges, max_steps=env.max_steps, loss=loss,
                )  # fmt: skip
                with show.bar("training", settings.iterations) as bar:
                    result = await train_graph(
                        run.folder, graph, place, settings, bar, log=log, warn=warn,
                        processes=processes,
                    )  # fmt: skip
        run.folder.set_status({"stage": "trained"})
        return result.history
    finally:
        await learner.close()
