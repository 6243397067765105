"""The episodes of an iteration, with patience for models.

An episode in which a call got no answer says nothing about the team, and is played again from the
start when the model answers. Task and seed determine an episode, so the result is the same as
without the interruption.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarm_ui.credit import Credit, Critic
from swarm_ui.engine.tasks import together
from swarm_ui.errors import Failure, ModelError, ModelUnavailable
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.optim.credit.critic import credit_of
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.guidance import Guidance
from swarm_ui.rollout import GraphPolicy, Job, MakeEnvironment, Rollouts, rollout_many
from swarm_ui.trace.records import Episode

Place = tuple[int, int]
"""The number of a graph, and of one of its jobs."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts, doubled each time."""


@dataclass
class GraphRollout:
    """The episodes that are played with one graph; ``sample`` is ``None`` if it was not drawn."""

    team: CollabGraph
    sample: EdgeSample | None
    jobs: Sequence[Job]
    guidance: Guidance
    episodes: list[Episode] = field(default_factory=list)


class Patience:
    """Waits for a model that cannot be reached, for a number of seconds since its last answer."""

    def __init__(self, seconds: float, tell: Callable[[str], object]) -> None:
        """``tell`` gets a text when the waiting begins."""
        self._seconds, self._tell = seconds, tell
        self.answered()

    def answered(self) -> None:
        """The model answers again."""
        self._began: float | None = None
        self._pause = FIRST_PAUSE

    async def wait(self, what: str, error: ModelUnavailable | Failure) -> None:
        """Sleep until the next attempt. Raises ``ModelUnavailable`` when all seconds are over."""
        now = asyncio.get_running_loop().time()
        if self._began is None:
            self._began = now
            self._tell(f"{what} wait for a model that cannot be reached "
                       f"(at most {self._seconds:g} s): {error}")  # fmt: skip
        left = self._seconds - (now - self._began)
        if left <= 0:
            raise ModelUnavailable(
                f"{what} were left unanswered for {self._seconds:g} s; expected a model that "
                f"answers, got: {error}"
            )
        await asyncio.sleep(min(self._pause, left))
        self._pause = min(LONGEST_PAUSE, 2.0 * self._pause)


async def play_graphs(
    graphs: Sequence[GraphRollout],
    environments: MakeEnvironment | Rollouts,
    patience: Patience,
    *,
    publisher: Any = None,
    concurrency: int = 64,
    max_steps: int | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Play the episodes of all graphs at once, and keep them in the graphs; returns how many were
    played again. The graphs share the places of ``concurrency`` episodes equally.

    Before some are played, the method ``prepare`` of the ``publisher``, if it has one, delivers the
    adapters. ``on_progress`` is called with (episodes done, all episodes). For the others see
    :func:`swarm_ui.rollout.rollout_many`. Raises ``ModelUnavailable`` when the patience is over,
    and ``ModelError`` if a model failed in all episodes, and waiting does not help.
    """
    todo = [(at, k) for at, graph in enumerate(graphs) for k in range(len(graph.jobs))]
    total, again, found, done = len(todo), set[Place](), dict[Place, Episode](), [0] * len(graphs)
    each = max(1, concurrency // len(graphs))
    here = not isinstance(environments, Rollouts)
    free = asyncio.Semaphore(concurrency // each if here else len(graphs))

    async def play(at: int, mine: list[Place]) -> None:
        def count(finished: int, *_: object) -> None:
            done[at] = finished
            if not again:
                on_progress(sum(done), total)

        graph, jobs = graphs[at], [graphs[at].jobs[k] for _, k in mine]
        async with free:
            episodes = await rollout_many(
                environments, GraphPolicy(graph.team, name="training team"), jobs,
                concurrency=each, progress=count, intervention=graph.guidance, max_steps=max_steps,
            )  # fmt: skip
        found.update(zip(mine, episodes, strict=True))

    while todo:
        missed, why = todo, await _undelivered(publisher)
        if why is None:
            shares = [[place for place in todo if place[0] == at] for at in range(len(graphs))]
            await together([play(at, mine) for at, mine in enumerate(shares) if mine])
            missed = [place for place in todo if unanswered(found[place])]
            if len(missed) < len(todo):  # the model has answered, if only some
                patience.answered()
        if missed:
            reason = why or unanswered(found[missed[0]])
            assert reason is not None
            await patience.wait(f"{len(missed)} of {total} episodes", reason)
        again.update(missed)
        todo = missed
    for at, graph in enumerate(graphs):
        graph.episodes = [found[at, k] for k in range(len(graph.jobs))]
    _expect_some([episode.fault for episode in found.values()])
    return len(again)


def _expect_some(faults: Sequence[Failure | None]) -> None:
    """Raise ``ModelError`` if every episode has a fault, and models or nodes caused some."""
    ours = [f for f in faults if f is not None and f.kind in ("model", "node", "timeout")]
    if None not in faults and ours:
        raise ModelError(
            f"all {len(faults)} episodes were lost to faults; expected models that answer, got: "
            f"{ours[0]}"
        )


async def _undelivered(publisher: Any) -> ModelUnavailable | None:
    """Deliver the adapters; the error if the place where they are needed cannot be reached."""
    try:
        if hasattr(publisher, "prepare"):
            await publisher.prepare()
    except ModelUnavailable as error:
        return error
    return None


async def patient_credit(
    critic: Critic, episodes: Sequence[Episode], patience: Patience
) -> list[Credit]:
    """The credit of episodes, which is asked for again while a model cannot be reached."""
    while True:
        try:
            return await credit_of(critic, episodes)
        except ModelUnavailable as error:
            await patience.wait("the episodes that need credit", error)


def unanswered(episode: Episode) -> Failure | None:
    """The first failure in an episode that an unreachable model caused, if any. One after which a
    fallback answered is not counted."""
    said = [episode.fault]
    said += [call.error for record in episode.steps for call in record.trace.calls]
    return next((each for each in said if each is not None and each.kind == "unavailable"), None)
