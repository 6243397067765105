"""Trains the team of a run: its adapters, and its edges if they are learned."""

from __future__ import annotations

import dataclasses
import random
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from swarm_ui.experiment.benchmarks import opened
from swarm_ui.experiment.loggers import Log, opened_log
from swarm_ui.experiment.mistakes import mistakes
from swarm_ui.experiment.model_settings import SettingsError
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.place import open_training_place
from swarm_ui.experiment.plugins import function_of
from swarm_ui.experiment.progress import Bar, ProgressDisplay, recorded_progress
from swarm_ui.experiment.run import Run, wait_for
from swarm_ui.experiment.stored import running
from swarm_ui.experiment.teams import LEARNED_EDGES, agent_names, graph_of
from swarm_ui.report import credit_map
from swarm_ui.report.results import Cost
from swarm_ui.rollout import Job
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.credit import Critic
    from swarm_ui.optim.distributed import Processes
    from swarm_ui.optim.losses import Loss
    from swarm_ui.optim.metrics import Metrics

_UPDATE_SHARE = 0.5
"""Share of an iteration that the progress bar shows after the rollouts."""
_KEPT_FAILED, _KEPT_SOLVED = 4, 2
"""Number of complete episodes kept per iteration."""


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
    config = run.config
    if found := [f"{name}: {text}" for name, text in mistakes(config, learning=True)]:
        raise SettingsError("; ".join(found))
    run.folder = RunDirectory.open_existing(run.path)
    show = show or ProgressDisplay(quiet=True)
    names = agent_names(config.team.filled(learning=True).agents)
    if loss is None and config.train.loss:
        loss = function_of("losses", config.train.loss)
    with running(run.folder), recorded_progress(show, run.path, warn):
        learner = model or load_in_process(config.model, names)  # type: ignore[arg-type]
        settings = run.logged_settings() | {"train": dataclasses.asdict(config.train)}
        with (
            opened_log(config.run.log, run.path, settings, warn) as log,
            show.bar("training", config.train.iterations) as bar,
        ):
            return wait_for(_trained(run, learner, bar, critic, loss, log, warn, processes))


async def _trained(
    run: Run,
    learner: Any,
    bar: Bar,
    critic: Critic | None,
    loss: Loss | None,
    log: Log,
    warn: Callable[[str], None],
    processes: Processes | None,
) -> Sequence[Metrics]:
    from swarm_ui.experiment.roles import open_critics
    from swarm_ui.optim.edges.distribution import EdgeDistribution
    from swarm_ui.optim.trainer import TeamTrainer

    config, settings = run.config, run.config.train
    env, team, split = config.env, config.team.filled(learning=True), config.env.training_split()
    try:
        async with (
            opened(env, split) as environment,
            open_training_place(config, learner, run.path, environment, warn) as playing,
            open_critics(config, playing.judging, run.folder) as roles,
        ):
            tasks = await env.task_names(split, environment)

            def sample_jobs(count: int, /, *, seed: int) -> list[Job]:
                return env.training_jobs(tasks, count, random.Random(seed))

            graph = graph_of(team, playing.acting, agent_names(team.agents))
            # An emulator plays one episode at a time, whatever the settings say.
            most = environment.max_concurrency or settings.concurrency
            edges = None
            if settings.edges != "fixed":
                edges = EdgeDistribution(graph, density=team.density)
            roles = roles if critic is None else roles._replace(critic=critic)
            trainer = TeamTrainer(
                graph, playing.environments, sample_jobs, edges=edges, folder=run.path,
                config=dataclasses.replace(settings, concurrency=min(settings.concurrency, most)),
                **roles._asdict(),
            )  # fmt: skip
            recorder = _Recorder(run.folder, bar, settings.iterations)
            trainer.max_steps, trainer.loss, trainer.log, trainer.warn = (
                env.max_steps, loss, log, warn,
            )  # fmt: skip
            trainer.on_progress, trainer.on_episodes = recorder.progress, recorder.episodes
            result = await trainer.run(resume=True, processes=processes)
            trainer.model.save_adapters(run.adapters)
            result.edges.save(run.path / LEARNED_EDGES)
        run.folder.set_status({"stage": "trained"})
        return result.history
    finally:
        await learner.close()


class _Recorder:
    """A listener of the trainer: updates the bar, and saves samples and costs."""

    def __init__(self, run: RunDirectory, bar: Bar, iterations: int) -> None:
        self._run, self._bar, self._iterations = run, bar, iterations
        self._first: int | None = None

    def progress(self, iteration: int, what: str, done: int, total: int) -> None:
        note, share = f"iteration {iteration + 1} of {self._iterations}", done / max(1, total)
        if what == "rollout":
            at, note = _UPDATE_SHARE * share, f"{note}: episode {done}/{total}"
        elif what == "update":
            at = _UPDATE_SHARE + (1.0 - _UPDATE_SHARE) * share
            note = f"{note}: training, adapter {min(done + 1, total)}/{total}"
        else:
            at, note = 1.0, f"{note} done"
        first = self._first = iteration if self._first is None else self._first
        played, left = iteration + at - first, self._iterations - iteration - at
        # The time of an update is not known before the first one has ended.
        known = self._bar.seconds * left / played if played >= 1 else None
        self._bar.update(iteration + at, note, left=known)

    def episodes(self, iteration: int, episodes: Sequence[Episode]) -> None:
        cost = Cost.of_episodes(episodes)
        line = {name: getattr(cost, name) for name in Cost.__struct_fields__ if name != "seconds"}
        self._run.log({"kind": "rollouts", "iteration": iteration, **line})
        found = credit_map(tuple(episodes))
        if found is not None:
            self._run.log({"kind": "credit", "iteration": iteration, "agents": found.columns,
                           "values": found.values})  # fmt: skip
        failed = [e for e in episodes if not e.success][:_KEPT_FAILED]
        solved = [e for e in episodes if e.success][:_KEPT_SOLVED]
        self._run.write_episodes(f"train-{iteration:03d}", [*failed, *solved])
