"""The episodes of an iteration: one graph or several, with patience for models.

A language model may not be reachable for a while. An episode in which a call got no answer gives
no information about the team. Such episodes are played again from the start when the model
answers. Task and seed determine an episode, so the result is the same as without the interruption.
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

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two attempts, doubled each time."""


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
    *,
    publisher: Any,
    concurrency: int,
    max_steps: int | None,
    patience: Callable[[], Patience],
    on_progress: Callable[[int, int], None],
) -> None:
    """Play the episodes of all graphs at once, and keep them in the graphs.

    Args:
        graphs: they share the places of concurrent episodes equally.
        environments: see :func:`swarm_ui.rollout.rollout_many`.
        publisher: its method ``prepare``, if it has one, delivers adapters to where episodes are
            played, each time before some are.
        concurrency: maximum number of episodes at the same time, of all graphs together.
        max_steps: see :func:`swarm_ui.rollout.rollout_many`.
        patience: makes the patience of one graph.
        on_progress: called with (episodes done, all episodes).

    Raises:
        ModelUnavailable: the patience of a graph is over.
        ModelError: a model failed in all episodes of a graph, and waiting does not help.
    """
    done, total = [0] * len(graphs), sum(len(graph.jobs) for graph in graphs)
    places = max(1, concurrency // len(graphs))
    open_rollouts = isinstance(environments, Rollouts)
    free = asyncio.Semaphore(len(graphs) if open_rollouts else concurrency // places)

    async def play(number: int, graph: GraphRollout, jobs: Sequence[Job]) -> list[Episode]:
        def count(finished: int, *_: object) -> None:
            done[number] = finished
            on_progress(sum(done), total)

        try:
            if hasattr(publisher, "prepare"):
                await publisher.prepare()
        except ModelUnavailable as error:  # masked episodes for jobs that could not begin
            lost = Failure.of(error)
            return [Episode(environment="", task=t, seed=s, fault=lost) for t, s in jobs]
        return await rollout_many(
            environments,
            GraphPolicy(graph.team, name="training team"),
            jobs,
            concurrency=places,
            progress=count if jobs is graph.jobs else None,
            intervention=graph.guidance,
            max_steps=max_steps,
        )

    async def whole(number: int, graph: GraphRollout) -> None:
        async with free:
            graph.episodes = await play(number, graph, graph.jobs)
            await _completed(graph, lambda jobs: play(number, graph, jobs), patience())

    await together([whole(k, graph) for k, graph in enumerate(graphs)])


async def _completed(
    graph: GraphRollout, play: Callable[[Sequence[Job]], Any], patience: Patience
) -> None:
    """Play again what a model did not answer. While it cannot be reached, one episode is tried."""
    waiting = [k for k, episode in enumerate(graph.episodes) if unanswered(episode)]
    graph.again = len(waiting)
    while waiting:
        why = unanswered(graph.episodes[waiting[0]])
        assert why is not None
        await patience.wait(f"{len(waiting)} of {len(graph.jobs)} episodes", why)
        for some in filter(None, (waiting[:1], waiting[1:])):
            found = await play([graph.jobs[k] for k in some])
            for k, episode in zip(some, found, strict=True):
                graph.episodes[k] = episode
            missed = [k for k in some if unanswered(graph.episodes[k])]
            if len(missed) < len(some):  # the model has answered, if only some
                patience.answered()
            if missed:
                break
        waiting = [k for k in waiting if unanswered(graph.episodes[k])]
    faults = [episode.fault for episode in graph.episodes]
    ours = [f for f in faults if f is not None and f.kind in ("model", "node", "timeout")]
    if None not in faults and ours:
        raise ModelError(
            f"all {len(faults)} episodes were lost to faults; expected models that answer, got: "
            f"{ours[0]}"
        )


async def credit_with_retries(
    critic: Critic, episodes: Sequence[Episode], patience: Patience
) -> list[Credit]:
    """The credit of episodes, which is asked for again while a model cannot be reached."""
    while True:
        try:
            return await credit_of(critic, episodes)
        except ModelUnavailable as error:
            await patience.wait("the episodes that need credit", error)


def unanswered(episode: Episode) -> Failure | None:
    """The first failure in an episode that was caused by an unreachable model; ``None``: there is
    none. A failure after which a fallback answered is not counted."""
    said = [episode.fault]
    said += [call.error for record in episode.steps for call in record.trace.calls]
    return next((each for each in said if each is not None and each.kind == "unavailable"), None)
