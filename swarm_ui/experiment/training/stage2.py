"""Training of a team (stage 2), and the files it saves in the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from swarm_ui.credit import Critic, Judge
from swarm_ui.experiment.progress import Bar
from swarm_ui.experiment.teams import LEARNED_EDGES
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.optim.adversary import Adversary, ScriptedAdversary, Teacher
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.distributed import Processes
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.losses import Loss
from swarm_ui.optim.trainer import SampleJobs, TeamResult, TeamTrainer
from swarm_ui.optim.update import Rehearse
from swarm_ui.report import credit_map
from swarm_ui.report.results import Cost
from swarm_ui.rollout import MakeEnvironment, Rollouts
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode

_UPDATE_SHARE = 0.5
"""Share of an iteration that the progress bar shows after the rollouts."""
_KEPT_FAILED, _KEPT_SOLVED = 4, 2
"""Number of complete episodes kept per iteration."""


class TrainingEnvironment(NamedTuple):
    """What a team is trained with: environments, episodes, critic, judge, adversary, teacher."""

    make_environment: MakeEnvironment | Rollouts
    """Makes environments in this process, or the open rollouts of other processes."""
    sample_jobs: SampleJobs
    critic: Critic | None
    """``None``: the outcome is the credit of every agent."""
    concurrency: int
    judge: Judge | None = None
    """Judge of single actions; ``None``: the critic."""
    adversary: Adversary | None = ScriptedAdversary()
    """Author of wrong actions; ``None``: only real mistakes become rejected replies."""
    teacher: Teacher | None = None
    """Shows a right action where no agent proposed one; ``None``: nobody does."""
    rehearse: Rehearse | None = None
    """Draws earlier examples for each update, such as lessons of stage 1."""
    edges: EdgeDistribution | None = None
    """The distribution that graphs are drawn from; ``None``: that of the trainer."""
    max_steps: int | None = None
    """Maximum number of steps of an episode; ``None``: the limit of the environment."""
    loss: Loss | None = None
    """A function of (model, batch); ``None``: that of the method."""


async def train_graph(
    run: RunDirectory,
    graph: CollabGraph,
    environment: TrainingEnvironment,
    config: TeamConfig,
    bar: Bar,
    *,
    log: Callable[[Mapping[str, float]], object] | None = None,
    warn: Callable[[str], None] | None = None,
    processes: Processes | None = None,
) -> TeamResult:
    """Start or continue the training of a team. It can be interrupted at any time (checkpoints).

    Args:
        run: stores checkpoints, metrics, a sample of the episodes, adapters and edges.
        graph: the team in rollouts, whose agents ask the model that is trained, or one that
            answers with its adapters.
        bar: counts iterations.
        log: called with the numbers of each iteration.
        warn: called with warnings; ``None``: they are printed above the bar.
        processes: share the updates; ``None``: this process makes them alone.
    """
    trainer = TeamTrainer(
        graph,
        environment.make_environment,
        environment.sample_jobs,
        critic=environment.critic,
        judge=environment.judge,
        adversary=environment.adversary,
        teacher=environment.teacher,
        edges=environment.edges,
        config=config,
        folder=run.path,
    )
    recorder = _Recorder(run, bar, config.iterations)
    trainer.rehearse, trainer.max_steps = environment.rehearse, environment.max_steps
    trainer.log, trainer.warn = log, warn or bar.say
    trainer.on_progress, trainer.on_episodes = recorder.progress, recorder.episodes
    trainer.loss = environment.loss
    result = await trainer.run(resume=True, processes=processes)
    trainer.model.save_adapters(run.adapters)
    result.edges.save(run.path / LEARNED_EDGES)
    return result


def update_facts(settings: TeamConfig, processes: int = 1) -> dict[str, str]:
    """A description of the update, for a dry run; nothing is loaded.

    ``processes``: the number of processes that share every batch.
    """
    update, default = settings.update, "by the size of the model"
    steps = default if update.steps is None else f"{update.steps}"
    rate = default if update.lr is None else f"{update.lr:g}"
    told = f"{update.method}, steps of an adapter: {steps}, rate: {rate}"
    if settings.shared_iterations:
        told += f"; one for all in the first {settings.shared_iterations} iterations"
    facts = {"update": told}
    if processes > 1:
        size = update.batch_size
        facts["processes"] = (
            f"{processes}; the first one plays, each computes at most {-(-size // processes)} of "
            f"{size} examples of a batch"
        )
    return facts


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
