"""Stage 1's data from walks in any environment, with any models.

After CollabUIAgents (arXiv 2502.14496), the section on agentic fine-tuning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from pathlib import Path

import msgspec

from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.optim.credit.critic import made_by
from swarm_ui.optim.stage1.corpus import Corpus, Header, Totals
from swarm_ui.optim.stage1.samples import CorpusConfig, HeldOut, WalkResult
from swarm_ui.optim.stage1.walk import Models, Walk
from swarm_ui.rollout import Attempt, Job, LocalWorker, Rollouts
from swarm_ui.trace.records import Episode


async def synthesize(
    make_environment: Callable[[], Environment | Awaitable[Environment]],
    models: Models,
    jobs: Sequence[Job],
    folder: Path,
    *,
    held_out: HeldOut,
    config: CorpusConfig | None = None,
    parallel: int = 1,
    report: Callable[[int, int, WalkResult], None] = lambda done, total, walk: None,
) -> Totals:
    """Make a corpus, or continue an interrupted one.

    Returns the contents of the corpus, and counts of what was dropped.

    Args:
        make_environment: makes an environment: one to look at, and one for each of ``parallel``
            walks.
        models: the models, or scripts, that write and judge.
        jobs: (task, seed) of the walks, stored in this order; finished ones are not repeated.
        held_out: test and validation splits; ``HeldOut()`` if there are none.
        parallel: number of walks at the same time.
        report: called after each walk with the number of walks done, that of all, and the walk.

    Raises:
        ConfigError: a job has a held-out task, or the folder was made with other settings. No walk
            was made.
        BudgetExceeded, ModelError: no budget, or no reply. Finished walks are kept.
    """
    environment = await made_by(make_environment)
    try:
        for task in {task for task, _ in jobs} - set(environment.tasks):
            raise ConfigError(f"synthesize: {environment.name} has no task {task!r}")
    finally:
        await environment.close()
    held_out.check(environment.name, jobs, "synthesize")
    header = Header(
        environment=environment.name, agent=models.agent.name, adversary=models.adversary.name,
        critic="" if models.critic is None else models.critic.name,
        config=config or CorpusConfig(), held_out=held_out,
    )  # fmt: skip
    with closing(Corpus(folder, header)) as corpus:
        todo, total = corpus.unfinished(jobs), len(set(jobs))
        ended, stored = dict[int, WalkResult](), 0
        async with (
            Rollouts([LocalWorker(make_environment, slots=parallel)]) as rollouts,
            aclosing(rollouts.play(_walks(models, header.config), todo)) as episodes,
        ):
            async for number, episode in episodes:
                ended[number] = _result_of(episode)
                while stored in ended:  # in the order of the jobs, whichever ends first
                    walk = corpus.add(ended.pop(stored))
                    stored += 1
                    report(total - len(todo) + stored, total, walk)
        return corpus.totals()


def _walks(models: Models, config: CorpusConfig) -> Attempt:
    """Plays a walk as an episode, whose only note is its result."""

    async def walk(environment: Environment, /, *, task: str, seed: int) -> Episode:
        played = Episode(environment=environment.name, task=task, seed=seed)
        try:
            done = await Walk(environment, models, config, (task, seed)).run()
        except EnvironmentFault as error:
            return msgspec.structs.replace(played, fault=Failure.of(error))
        return msgspec.structs.replace(played, success=done.success, notes=(done,))

    return walk


def _result_of(episode: Episode) -> WalkResult:
    task, seed, fault = episode.task, episode.seed, str(episode.fault)
    failed = WalkResult(task=task, seed=seed, success=None, steps=0, fault=fault)
    result: WalkResult = episode.notes[0] if episode.notes else failed
    return result
