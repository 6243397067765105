"""Stage 1's data, synthesised by walking any environment with any models.

After CollabUIAgents (arXiv 2502.14496), the section on agentic fine-tuning.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager
from pathlib import Path

from swarm_ui.budget import Budget, Price
from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.model import ChatModel
from swarm_ui.optim.stage1.corpus.call_log import CallLog, LoggedModel
from swarm_ui.optim.stage1.corpus.corpus_config import CorpusConfig
from swarm_ui.optim.stage1.corpus.corpus_store import Corpus, Entry, Head, Totals, totals
from swarm_ui.optim.stage1.corpus.held_out import HeldOut
from swarm_ui.optim.stage1.corpus.llm_roles import LLMAgent, LLMJudge, LLMOpponent
from swarm_ui.optim.stage1.corpus.roles import Models
from swarm_ui.optim.stage1.corpus.samples import Job, Walked
from swarm_ui.optim.stage1.corpus.walk import Broken, Cast, Walk
from swarm_ui.rollout.pool import EnvironmentPool, Lap
from swarm_ui.trace.records import Episode

Report = Callable[[int, int, Entry], None]
"""``(walks done, walks in all, the one just kept)``."""


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
    """Make a corpus, or go on with one that was interrupted.

    Walks are kept in the order of ``jobs``. With deterministic models, a synthesis that was killed
    any number of times gives the same bytes as one that was not, and no call is made twice.

    Args:
        make_environment: makes the world to walk in, once for each of ``parallel`` places.
        models: who writes and judges.
        jobs: (task, seed) pairs to walk; those done already are not walked again.
        folder: where the corpus is, or will be.
        held_out: test and validation splits. ``HeldOut()`` says that there are none.
        config: settings.
        budget: of the calls to models of all sessions with this folder together. The models may
            have budgets of their own beside it.
        prices: by name of model, for a budget in money.
        parallel: walks at the same time.
        report: called after each walk.

    Returns:
        what is in the corpus now, and what was dropped.

    Raises:
        ConfigError: a job is of a held-out task, or the folder was made with other settings.
            Nothing has been walked then.
        BudgetExceeded: the budget is used up. What was walked is kept; go on with a larger one.
        ModelError: a model cannot answer. The same.
    """
    settings = config or CorpusConfig()
    first = [await _made(make_environment)]

    async def make() -> Environment:
        return first.pop() if first else await _made(make_environment)

    try:
        name = first[0].name
        _check_jobs(first[0], jobs)
        held_out.check(name, jobs, "synthesize")
        head = _head(name, models, settings, held_out)
        with _opened(folder, head, budget, prices) as (corpus, log):
            cast = _cast(models, settings, log)
            await _grow(corpus, EnvironmentPool(make, parallel), cast, jobs, head, report)
    finally:
        for environment in first:
            await environment.close()
    return totals(folder)


async def _grow(
    corpus: Corpus,
    pool: EnvironmentPool,
    cast: Cast,
    jobs: Sequence[Job],
    head: Head,
    report: Report | None,
) -> None:
    todo = corpus.left(list(jobs))
    of = len(set(jobs))
    done = of - len(todo)
    walks = _walks(pool, cast, head.config, head.held_out, todo)
    async with pool, aclosing(walks) as stream:
        async for walked in stream:
            entry = corpus.add(walked)
            done += 1
            if report is not None:
                report(done, of, entry)


def _head(name: str, models: Models, config: CorpusConfig, held_out: HeldOut) -> Head:
    return Head(
        environment=name,
        agent=models.agent.name,
        adversary=models.adversary.name,
        critic="" if models.critic is None else models.critic.name,
        config=config,
        held_out=held_out,
    )


@contextmanager
def _opened(
    folder: Path, head: Head, budget: Budget | None, prices: Mapping[str, Price] | None
) -> Iterator[tuple[Corpus, CallLog]]:
    with closing(Corpus(folder, head)) as corpus:
        path = folder / "calls.jsonl"
        with closing(CallLog(path, budget=budget, prices=prices)) as log:
            yield corpus, log


async def _walks(
    pool: EnvironmentPool,
    cast: Cast,
    config: CorpusConfig,
    held_out: HeldOut,
    jobs: list[Job],
) -> AsyncGenerator[Walked, None]:
    """Walks in the order of the jobs, whichever ends first."""
    ended: dict[Job, Walked] = {}

    async def attempt(environment: Environment, task: str, seed: int, lap: Lap) -> Episode:
        fault: Failure | None = None
        try:
            walked = await Walk(environment, cast, config, held_out, task, seed).run()
        except (EnvironmentFault, Broken) as error:
            fault = Failure(kind="environment", message=str(error))
            steps = error.steps if isinstance(error, Broken) else 0
            walked = Walked(task=task, seed=seed, success=None, steps=steps, fault=str(error))
        ended[task, seed] = walked
        return Episode(
            environment=environment.name, task=task, seed=seed, success=walked.success, fault=fault
        )

    waiting: dict[int, Walked] = {}
    place = 0
    async with aclosing(pool.episodes(attempt, jobs, actor=cast.agent.name)) as episodes:
        async for number, episode in episodes:
            job = (episode.task, episode.seed)
            fault = None if episode.fault is None else str(episode.fault)
            none = Walked(task=job[0], seed=job[1], success=None, steps=0, fault=fault)
            waiting[number] = ended.pop(job, none)
            while place in waiting:
                yield waiting.pop(place)
                place += 1


def _cast(models: Models, config: CorpusConfig, log: CallLog) -> Cast:
    agent, adversary, critic = models.agent, models.adversary, models.critic
    return Cast(
        LLMAgent(LoggedModel(agent, "agent", log), config)
        if isinstance(agent, ChatModel)
        else agent,
        LLMOpponent(LoggedModel(adversary, "adversary", log), config)
        if isinstance(adversary, ChatModel)
        else adversary,
        LLMJudge(LoggedModel(critic, "critic", log), config)
        if isinstance(critic, ChatModel)
        else critic,
    )


async def _made(make: Callable[[], Environment | Awaitable[Environment]]) -> Environment:
    made = make()
    return await made if isinstance(made, Awaitable) else made


def _check_jobs(environment: Environment, jobs: Sequence[Job]) -> None:
    known = set(environment.tasks)
    for task, _ in jobs:
        if task not in known:
            raise ConfigError(f"synthesize: {environment.name} has no task {task!r}")
