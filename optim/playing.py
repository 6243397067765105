"""The episodes of an iteration: one graph or several, with patience for models.

A language model may not be reachable for a while. An episode in which a call got no answer gives
no information about the team. Such episodes are played again from the start when the model
answers. Task and seed determine an episode, so the result is the same as without the interruption.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from swarm_ui.engine.scheduler import together
from swarm_ui.errors import Failure, FailureKind, ModelError, ModelUnavailable
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.node import derive
from swarm_ui.optim.config import POLICY_GRADIENT, TeamConfig
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.guidance import Guidance
from swarm_ui.optim.preferences import preference_pairs, scored_replies
from swarm_ui.optim.update import Examples
from swarm_ui.rollout import GraphPolicy, Job, MakeEnvironment, Rollouts, rollout_many
from swarm_ui.trace.records import Episode

Play = Callable[[Sequence[Job]], Awaitable[list[Episode]]]
"""Plays jobs; gives their episodes in the same order."""
T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts, doubled each time."""
_BY_A_MODEL: tuple[FailureKind, ...] = ("model", "node", "timeout")


@dataclass
class GraphRollout:
    """The episodes that are played with one graph."""

    team: CollabGraph
    sample: EdgeSample | None
    """``None``: the edges were not drawn."""
    jobs: Sequence[Job]
    guidance: Guidance
    episodes: list[Episode] = field(default_factory=list)
    again: int = 0
    """Episodes that were played again because a model could not be reached."""


async def play_graphs(
    graphs: Sequence[GraphRollout],
    environments: MakeEnvironment | Rollouts,
    *,
    publisher: Any = None,
    concurrency: int,
    max_steps: int | None,
    patience: float,
    on_progress: Callable[[int, int], None],
    on_wait: Callable[[str], None],
) -> None:
    """Play the episodes of all graphs at once, and keep them in the graphs.

    Args:
        graphs: they share the places of concurrent episodes equally.
        environments: see :func:`swarm_ui.rollout.rollout_many`.
        publisher: its method ``prepare``, if it has one, delivers adapters to where episodes are
            played, each time before some are.
        concurrency: maximum number of episodes at the same time, of all graphs together.
        max_steps: see :func:`swarm_ui.rollout.rollout_many`.
        patience, on_wait: see :func:`play_with_retries`.
        on_progress: called with (episodes done, all episodes).
    """
    done, total = [0] * len(graphs), sum(len(graph.jobs) for graph in graphs)
    places = max(1, concurrency // len(graphs))
    open_rollouts = isinstance(environments, Rollouts)
    free = asyncio.Semaphore(len(graphs) if open_rollouts else concurrency // places)

    async def play_one(number: int, graph: GraphRollout) -> None:
        def count(finished: int, *_: object) -> None:
            done[number] = finished
            on_progress(sum(done), total)

        async def play(some: Sequence[Job]) -> list[Episode]:
            if hasattr(publisher, "prepare"):
                try:
                    await publisher.prepare()
                except ModelUnavailable as error:
                    return [_unplayed(job, error) for job in some]
            return await rollout_many(
                environments,
                GraphPolicy(graph.team, name="training team"),
                some,
                concurrency=places,
                progress=count if some is graph.jobs else None,
                intervention=graph.guidance,
                max_steps=max_steps,
            )

        async with free:
            graph.episodes, graph.again = await play_with_retries(
                play, graph.jobs, patience=patience, on_wait=on_wait
            )

    await together([play_one(k, graph) for k, graph in enumerate(graphs)])


def examples_of(
    graphs: Sequence[GraphRollout], config: TeamConfig, iteration: int, staleness: int
) -> Examples:
    """Preference pairs of the episodes, or scored replies for a policy gradient. Each records how
    many updates older the weights were that played its episode."""
    if config.update.method in POLICY_GRADIENT:
        replies = scored_replies([e for graph in graphs for e in graph.episodes])
        return [replace(reply, staleness=staleness) for reply in replies]
    rng = random.Random(derive(config.seed, "pairs", iteration))
    pairs = [
        pair
        for graph in graphs
        for pair in preference_pairs(graph.episodes, config=config.pairs, rng=rng)
    ]
    return [replace(pair, staleness=staleness) for pair in pairs]


class Played(NamedTuple):
    """The episodes in the order of the jobs, and how many were played ``again``."""

    episodes: list[Episode]
    again: int


async def play_with_retries(
    play: Play, jobs: Sequence[Job], *, patience: float, on_wait: Callable[[str], None]
) -> Played:
    """Play jobs, and play those again in which a model could not be reached.

    While the model is unreachable, one episode is tried from time to time. ``on_wait`` gets a text
    when the waiting begins.

    Raises:
        ModelUnavailable: the model did not answer within ``patience`` seconds since the first
            failure or its last answer.
        ModelError: all episodes were masked, and a model failed for a reason other than being
            unreachable.
    """
    clock = asyncio.get_running_loop().time
    episodes = await play(jobs)
    waiting = [k for k, episode in enumerate(episodes) if unanswered(episode)]
    lost, began, pause = len(waiting), clock(), FIRST_PAUSE
    if waiting:
        on_wait(
            f"{lost} of {len(jobs)} episodes wait for a model that cannot be reached "
            f"(at most {patience:g} s): {unanswered(episodes[waiting[0]])}"
        )
    while waiting:
        left = patience - (clock() - began)
        if left <= 0:
            why = unanswered(episodes[waiting[0]])
            raise ModelUnavailable(
                f"{len(waiting)} of {len(jobs)} episodes were left unanswered for {patience:g} s; "
                f"expected a model that answers, got: {why.message if why else ''}"
            )
        await asyncio.sleep(min(pause, left))
        pause = min(LONGEST_PAUSE, 2.0 * pause)
        for some in (waiting[:1], waiting[1:]):
            for k, episode in zip(some, await play([jobs[k] for k in some]), strict=True):
                episodes[k] = episode
            missed = sum(unanswered(episodes[k]) is not None for k in some)
            if missed < len(some):  # the model has answered, if only some
                began, pause = clock(), FIRST_PAUSE
            if missed:
                break
        waiting = [k for k in waiting if unanswered(episodes[k])]
    _check_some(episodes)
    return Played(episodes, lost)


async def answered(
    call: Callable[[], Awaitable[T]], *, patience: float, on_wait: Callable[[str], None]
) -> T:
    """The result of a call, which is repeated while a model cannot be reached. Raises
    ``ModelUnavailable`` after ``patience`` seconds."""
    clock = asyncio.get_running_loop().time
    began, pause = clock(), FIRST_PAUSE
    while True:
        try:
            return await call()
        except ModelUnavailable as error:
            left = patience - (clock() - began)
            if left <= 0:
                raise
            on_wait(f"the credit waits for a model (at most {left:.0f} s): {error}")
            await asyncio.sleep(min(pause, left))
            pause = min(LONGEST_PAUSE, 2.0 * pause)


def unanswered(episode: Episode) -> Failure | None:
    """The first failure in an episode that was caused by an unreachable model; ``None``: there is
    none. A failure after which a fallback answered is not counted."""
    said = [episode.fault]
    said += [call.error for record in episode.steps for call in record.trace.calls]
    return next((each for each in said if each is not None and each.kind == "unavailable"), None)


def _unplayed(job: Job, error: ModelUnavailable) -> Episode:
    """A masked episode for a job that could not begin, because its model could not be reached."""
    return Episode(environment="", task=job[0], seed=job[1], fault=Failure.of(error))


def _check_some(episodes: Sequence[Episode]) -> None:
    """Raise ``ModelError`` if all episodes are masked and a failure of a model is the reason."""
    faults = [episode.fault for episode in episodes]
    ours = [fault for fault in faults if fault is not None and fault.kind in _BY_A_MODEL]
    if None not in faults and ours:
        raise ModelError(
            f"all {len(episodes)} episodes were lost to faults; expected models that answer, got: "
            f"{ours[0]}"
        )
