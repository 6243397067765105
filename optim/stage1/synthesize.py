"""Stage 1's data from walks in any environment, with any models.

After CollabUIAgents (arXiv 2502.14496), the section on agentic fine-tuning.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.model import ChatModel
from swarm_ui.optim.credit.critic import made_by
from swarm_ui.optim.stage1.corpus import CallLog, Corpus, Header, Totals, totals
from swarm_ui.optim.stage1.roles import ModelRole, Role
from swarm_ui.optim.stage1.samples import CorpusConfig, HeldOut, Job, WalkResult
from swarm_ui.optim.stage1.templates import ScriptedRole
from swarm_ui.optim.stage1.walk import Roles, Walk
from swarm_ui.rollout import LocalWorker, Rollouts
from swarm_ui.trace.records import Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The model, or another object, for each role.

    One model may play all three: ``Models(agent=model, adversary=model, critic=model)``.
    """

    agent: ChatModel | Role
    adversary: ChatModel | Role
    critic: ChatModel | Role | None
    """``None``: nothing is judged, and nothing is dropped for being wrong."""

    @staticmethod
    def scripted() -> Models:
        """Roles without a language model, for environments that are
        :class:`~swarm_ui.environment.Graded`, such as the embedded phone."""
        role = ScriptedRole()  # the critic knows what the agent wrote
        return Models(agent=role, adversary=role, critic=role)


async def synthesize(
    make_environment: Callable[[], Environment | Awaitable[Environment]],
    models: Models,
    jobs: Sequence[Job],
    folder: Path,
    *,
    held_out: HeldOut,
    config: CorpusConfig | None = None,
    budget: Budget | None = None,
    parallel: int = 1,
    report: Callable[[int, int, WalkResult], None] = lambda done, total, walk: None,
) -> Totals:
    """Make a corpus, or continue an interrupted one.

    Returns the contents of the corpus, and counts of what was dropped.

    Args:
        make_environment: makes an environment; called once for each of ``parallel`` walks.
        models: the models, or objects, that write and judge.
        jobs: (task, seed) of the walks, stored in this order; finished ones are not repeated.
        folder: the folder of the corpus.
        held_out: test and validation splits; ``HeldOut()`` if there are none.
        config: settings.
        budget: of all calls to models for this folder, including earlier ones.
        parallel: number of walks at the same time.
        report: called after each walk with the number of walks done, that of all, and the walk.

    Raises:
        ConfigError: a job has a held-out task, or the folder was made with other settings. No walk
            was made.
        BudgetExceeded, ModelError: no budget, or no reply. Finished walks are kept.
    """
    first = [await made_by(make_environment)]

    async def make() -> Environment:
        made: Environment = first.pop() if first else await made_by(make_environment)
        return made

    try:
        header = _checked_header(first[0], models, jobs, held_out, config or CorpusConfig())
        with (
            closing(Corpus(folder, header)) as corpus,
            closing(CallLog(folder / "calls.jsonl", budget or Budget())) as log,
        ):
            todo, number = corpus.unfinished(jobs), len(set(jobs))
            number -= len(todo)
            async with Rollouts([LocalWorker(make, slots=parallel)]) as rollouts:
                walks = _walks(rollouts, _roles(models, header.config, log), header, todo)
                async with aclosing(walks):
                    async for walk in walks:
                        stored, number = corpus.add(walk), number + 1
                        report(number, len(set(jobs)), stored)
    finally:
        for environment in first:
            await environment.close()
    return totals(folder)


def _checked_header(
    environment: Environment,
    models: Models,
    jobs: Sequence[Job],
    held_out: HeldOut,
    config: CorpusConfig,
) -> Header:
    name, known = environment.name, set(environment.tasks)
    for task in {task for task, _ in jobs} - known:
        raise ConfigError(f"synthesize: {name} has no task {task!r}")
    held_out.check(name, jobs, "synthesize")
    return Header(
        environment=name,
        agent=models.agent.name,
        adversary=models.adversary.name,
        critic="" if models.critic is None else models.critic.name,
        config=config,
        held_out=held_out,
    )


async def _walks(
    rollouts: Rollouts, roles: Roles, header: Header, jobs: list[Job]
) -> AsyncGenerator[WalkResult, None]:
    """Walks in the order of the jobs, whatever the order in which they end."""

    async def attempt(environment: Environment, task: str, seed: int) -> Episode:
        played = Episode(environment=environment.name, task=task, seed=seed)
        walk = Walk(environment, roles, header.config, (task, seed))
        try:
            done = await walk.run()
        except EnvironmentFault as error:
            return msgspec.structs.replace(played, fault=Failure.of(error))
        return msgspec.structs.replace(played, success=done.success, notes=(done,))

    waiting: dict[int, WalkResult] = {}
    following = 0
    async with aclosing(rollouts.play(attempt, jobs)) as episodes:
        async for number, episode in episodes:
            fault = str(episode.fault)
            broken = WalkResult(
                task=episode.task, seed=episode.seed, success=None, steps=0, fault=fault
            )
            waiting[number] = episode.notes[0] if episode.notes else broken
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def _roles(models: Models, config: CorpusConfig, log: CallLog) -> Roles:
    def played(role: str) -> Any:
        given = getattr(models, role)
        if isinstance(given, ChatModel):
            return ModelRole(given, role, config, log)
        return given

    return Roles(played("agent"), played("adversary"), played("critic"))
