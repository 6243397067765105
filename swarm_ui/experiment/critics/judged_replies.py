"""The team that makes the replies for a critic's training, and the files that hold them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from swarm_ui.experiment.progress import Bar
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.model import ChatModel
from swarm_ui.optim.credit.judged import JudgedEpisode, JudgedFile, JudgedHead, Purpose
from swarm_ui.rollout import GraphPolicy, Job

_TRAINING_TEMPERATURES = (0.0, 0.8, 1.2, 1.6)
"""Temperatures of the agents: one is greedy, the others make more independent mistakes."""
_TEST_TEMPERATURES = (0.0, 0.5, 0.6, 0.8)
"""The paper's temperatures, with a greedy first agent."""
AGENTS = len(_TEST_TEMPERATURES)


def temperatures(purpose: Purpose) -> tuple[float, ...]:
    """The temperature of each agent of the team whose replies are judged."""
    return _TRAINING_TEMPERATURES if purpose == "train" else _TEST_TEMPERATURES


def judged_team(
    model: ChatModel, purpose: Purpose, adapters: Sequence[str | None] | None = None
) -> GraphPolicy:
    """The team whose replies are judged: four agents, one round, each with its own element order.

    ``adapters``: one for each agent; ``None``: the model without adapters.
    """
    graph = CollabGraph.collaborative(
        AGENTS,
        1,
        model=model,
        temperature=temperatures(purpose),
        views="shuffle",
        adapters=adapters,
    )
    return GraphPolicy(graph, name="base team")


@contextmanager
def continued(
    path: Path, head: JudgedHead, jobs: Sequence[Job]
) -> Iterator[tuple[JudgedFile, list[Job]]]:
    """Create or reopen a file of judged episodes; return it with the jobs that it lacks.

    Raises:
        ConfigError: the file was begun with another header, or cannot be read or written.
    """
    file = JudgedFile(path, head)
    try:
        yield file, [job for job in jobs if job not in file.done]
    finally:
        file.close()


async def keep(file: JudgedFile, episodes: AsyncIterator[JudgedEpisode], bar: Bar) -> None:
    """Add episodes to a file as they end. Raises ``ConfigError`` if it cannot be written."""
    done = 0
    async for episode in episodes:
        file.add(episode)
        done += 1
        bar.update(done)
