"""Stage 1's data from walks in any environment, with any models.

After CollabUIAgents (arXiv 2502.14496), the section on agentic fine-tuning.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from pathlib import Path

from swarm_ui.budget import Budget, Price
from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.model import ChatModel
from swarm_ui.optim.stage1.corpus.call_log import CallLog, LoggedModel
from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.llm_roles import LLMAdversary, LLMAgent, LLMJudge, ModelWalker
from swarm_ui.optim.stage1.corpus.roles import Adversary, Judge, Roles, UIAgent, Walker
from swarm_ui.optim.stage1.corpus.samples import HeldOut, Job, WalkResult
from swarm_ui.optim.stage1.corpus.scripted_roles import (
    ScriptedAgent,
    ScriptedJudge,
    ScriptedOpponent,
)
from swarm_ui.optim.stage1.corpus.store import Corpus, Header, JournalEntry, Totals, totals
from swarm_ui.optim.stage1.corpus.team_walk import TeamWalk
from swarm_ui.optim.stage1.corpus.walk import Walk, WalkFault
from swarm_ui.rollout import LocalWorker, Policy, Rollouts
from swarm_ui.trace.records import Episode

Report = Callable[[int, int, JournalEntry], None]
"""``(walks done, all walks, the last one)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The model, or another object, for each role.

    One model may play all three: ``Models(agent=model, adversary=model, critic=model)``.
    """

    agent: ChatModel | UIAgent
    adversary: ChatModel | Adversary
    critic: ChatModel | Judge | None
    """``None``: nothing is judged, and nothing is dropped for being wrong."""
    walker: ChatModel | Walker | None = None
    """A trained model that chooses the way, so that the corpus has the screens that it meets; the
    replies are the agent's. ``None``: the agent's own actions are executed.

    The idea is DAgger's (Ross, Gordon and Bagnell, AISTATS 2011)."""
    walker_adapter: str | None = None
    """Name of the adapter that the walker answers with; ``None``: the base model."""
    team: Policy | None = None
    """A team that plays the walks, for environments in which no agent sees enough. The samples,
    all of level 3, are the prompts and replies of its agents; the other roles are not used. The
    prompts must be transcripts (:func:`swarm_ui.prompts.transcript`), as those of all models here
    are."""

    @staticmethod
    def scripted() -> Models:
        """Roles without a language model, for environments that are
        :class:`~swarm_ui.environment.Graded`, such as the embedded phone."""
        return Models(agent=ScriptedAgent(), adversary=ScriptedOpponent(), critic=ScriptedJudge())


async def synthesize(
    make_environment: Callable[[], Environment | Awaitable[Environment]],
    models: Models,
    jobs: Sequence[Job],
    folder: Path,
    *,
    held_out: HeldOut,
    config: CorpusConfig | None = None,
    budget: Budget | None = None,
    prices: Mapping[str, Price] | None = None,
    parallel: int = 1,
    report: Report | None = None,
) -> Totals:
    """Make a corpus, or continue an interrupted one.

    Walks are stored in the sequence of ``jobs``. With deterministic models, a synthesis that was
    killed any number of times writes the same bytes as an uninterrupted one, and no call is
    repeated.

    Args:
        make_environment: makes an environment; called once for each of ``parallel`` walks.
        models: the models, or objects, that write and judge.
        jobs: (task, seed) pairs, one for each walk; finished walks are not repeated.
        folder: the folder of the corpus.
        held_out: test and validation splits; ``HeldOut()`` if there are none.
        config: settings.
        budget: the budget of all model calls for this folder, also in repetitions. The models may
            have their own budgets too.
        prices: the price of each model by name, for a budget in money.
        parallel: number of walks at the same time.
        report: called after each walk.

    Returns:
        the contents of the corpus, and the dropped samples.

    Raises:
        ConfigError: a job has a held-out task, or the folder was made with other settings. No walk
            was made.
        BudgetExceeded: the budget is used up. Finished walks are kept; continue with a larger one.
        ModelError: a model failed. Finished walks are kept.
    """
    settings = config or CorpusConfig()
    first = [await _made(make_environment)]

    async def make() -> Environment:
        return first.pop() if first else await _made(make_environment)

    try:
        header = _checked_header(first[0], models, jobs, held_out, settings)
        with closing(Corpus(folder, header)) as corpus:
            log = CallLog(folder / "calls.jsonl", budget=budget, prices=prices)
            with closing(log):
                roles = _roles(models, settings, log)
                rollouts = Rollouts([LocalWorker(make, slots=parallel)])
                await _grow(corpus, rollouts, roles, jobs, report)
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
    for task, _ in jobs:
        if task not in known:
            raise ConfigError(f"synthesize: {name} has no task {task!r}")
    held_out.check(name, jobs, "synthesize")
    if models.walker is not None and models.critic is None:
        raise ConfigError(
            "synthesize: a walker may choose wrong actions, so a critic must judge which replies "
            "are right, and there is none; name a critic, or leave the walker out"
        )
    if models.team is not None:
        if 3 not in config.levels:
            raise ConfigError(
                "synthesize: the walks of a team give samples of level 3 only, and 'levels' is "
                f"{config.levels}; add 3 to 'levels'"
            )
        if config.stray:
            raise ConfigError(
                "synthesize: the walks of a team have no random actions, and 'stray' is "
                f"{config.stray}; set stray=0"
            )
        return Header(
            environment=name, agent=models.team.name, adversary="", critic="",
            config=config, held_out=held_out,
        )  # fmt: skip
    return Header(
        environment=name,
        agent=models.agent.name,
        adversary=models.adversary.name,
        critic="" if models.critic is None else models.critic.name,
        walker="" if models.walker is None else models.walker.name,
        config=config,
        held_out=held_out,
    )


async def _grow(
    corpus: Corpus, rollouts: Rollouts, roles: Roles, jobs: Sequence[Job], report: Report | None
) -> None:
    todo = corpus.unfinished(jobs)
    count = len(set(jobs))
    done = count - len(todo)
    async with rollouts, aclosing(_walks(rollouts, roles, corpus.header, todo)) as walks:
        async for walked in walks:
            entry = corpus.add(walked)
            done += 1
            if report is not None:
                report(done, count, entry)


async def _walks(
    rollouts: Rollouts, roles: Roles, header: Header, jobs: list[Job]
) -> AsyncGenerator[WalkResult, None]:
    """Walks in the order of the jobs, whatever the order in which they end."""
    ended: dict[Job, WalkResult] = {}

    async def attempt(environment: Environment, task: str, seed: int) -> Episode:
        fault: Failure | None = None
        try:
            about = (environment, header.config, header.held_out, task, seed)
            walk = Walk(*about, roles) if roles.team is None else TeamWalk(*about, roles.team)
            walked = await walk.run()
        except (EnvironmentFault, WalkFault) as error:
            fault = Failure(kind="environment", message=str(error))
            steps = error.steps if isinstance(error, WalkFault) else 0
            walked = WalkResult(task=task, seed=seed, success=None, steps=steps, fault=str(error))
        ended[task, seed] = walked
        return Episode(
            environment=environment.name, task=task, seed=seed, success=walked.success, fault=fault
        )

    waiting: dict[int, WalkResult] = {}
    following = 0
    async with aclosing(rollouts.play(attempt, jobs)) as episodes:
        async for number, episode in episodes:
            task, seed = episode.task, episode.seed
            fault = None if episode.fault is None else str(episode.fault)
            none = WalkResult(task=task, seed=seed, success=None, steps=0, fault=fault)
            waiting[number] = ended.pop((task, seed), none)
            while following in waiting:
                yield waiting.pop(following)
                following += 1


def _roles(models: Models, config: CorpusConfig, log: CallLog) -> Roles:
    agent, adversary, critic = models.agent, models.adversary, models.critic
    if isinstance(agent, ChatModel):
        agent = LLMAgent(LoggedModel(agent, "agent", log), config)
    if isinstance(adversary, ChatModel):
        adversary = LLMAdversary(LoggedModel(adversary, "adversary", log), config)
    if isinstance(critic, ChatModel):
        critic = LLMJudge(LoggedModel(critic, "critic", log), config)
    walker = models.walker
    if isinstance(walker, ChatModel):
        logged = LoggedModel(walker, "walker", log)
        walker = ModelWalker(logged, models.walker_adapter, config)
    return Roles(agent, adversary, critic, walker, models.team)


async def _made(make: Callable[[], Environment | Awaitable[Environment]]) -> Environment:
    made = make()
    return await made if isinstance(made, Awaitable) else made
