"""What is played: environments, a scripted model with a delay, jobs, and digests of episodes."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

import msgspec

from benchmarks.miniwob import TASKS
from benchmarks.scaling.latencies import Latencies
from swarm_ui.environments.phone import PhoneEnvironment, jobs
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.prompts import as_chat, transcript
from swarm_ui.rollout import GraphPolicy, Job, MakeEnvironment, PerWorker, Rollouts
from swarm_ui.trace.records import Episode

World = Literal["phone", "miniwob"]
WORLDS: tuple[World, ...] = ("phone", "miniwob")
DECISIONS = {"phone": 5, "miniwob": 4}
"""The most decisions of an episode; on the phone every episode has as many."""
_CLICKED = frozenset(role for _, role in TASKS.values())
_TIMES = frozenset({"started", "ended", "seconds"})


class PacedModel:
    """A :class:`~swarm_ui.model.ChatModel` that waits, then clicks an element.

    Delay and element depend only on the run id of the decision. The trace is as long as that of a
    language model. It can be sent to other processes and keeps no requests.
    """

    name = "scripted"

    def __init__(self, latencies: Latencies, roles: frozenset[str] = frozenset()) -> None:
        """``roles``: click only on elements of these roles; empty: on any."""
        self._latencies, self._roles = latencies, roles

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return list(await asyncio.gather(*map(self._one, requests)))

    async def close(self) -> None:
        """Does nothing: there are no resources."""

    async def _one(self, request: Request) -> Completion:
        assert request.decision is not None
        await asyncio.sleep(self._latencies.of(request.run))
        shown = request.decision.observation.elements
        offered = [e for e in shown if not self._roles or e.role in self._roles] or shown
        index = offered[zlib.crc32(request.run.encode()) % len(offered)].index if offered else 0
        text, prompt = f'{{"action_type": "click", "index": {index}}}', transcript(as_chat(request))
        usage = Usage(prompt_tokens=len(prompt.split()), completion_tokens=4)
        return Completion(text=text, prompt=prompt, usage=usage, model=self.name)


def policy(world: World, latencies: Latencies) -> GraphPolicy:
    """One agent with a scripted model: a decision is one call."""
    roles = _CLICKED if world == "miniwob" else frozenset()
    return GraphPolicy(CollabGraph.solo(PacedModel(latencies, roles)), name="scripted")


def work(world: World, count: int) -> list[Job]:
    """``count`` jobs. Those of one web page are in a row, so that few pages are loaded."""
    if world == "phone":
        return jobs("parameters", count, seed=0)
    each = -(-count // len(TASKS))
    return [(task, seed) for task in TASKS for seed in range(each)][:count]


def environments(world: World) -> MakeEnvironment | PerWorker[MakeEnvironment]:
    """Makes environments: phones, or pages of one browser in each process."""
    return PhoneEnvironment if world == "phone" else PerWorker(pages)


@asynccontextmanager
async def pages() -> AsyncIterator[MakeEnvironment]:
    """A browser; makes environments on pages of it."""
    from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment

    async with MiniWobBrowser(pages=1) as browser:
        yield lambda: MiniWobEnvironment(browser.open_page)


def _running(rollouts: Rollouts) -> int:
    return sum(getattr(each, "pid", None) is not None for each in rollouts.workers)


async def all_started(rollouts: Rollouts, workers: int, world: World) -> None:
    """Play until so many workers are running."""
    jobs = itertools.cycle(work(world, 8))
    waiting = itertools.takewhile(lambda _: _running(rollouts) < workers, jobs)
    acting = policy(world, Latencies.constant(0.01))
    async with aclosing(rollouts.stream(acting, waiting, max_steps=1)) as episodes:
        async for _, episode in episodes:
            if episode.fault is not None:
                raise RuntimeError(f"an episode failed: {episode.fault}")


def digest(episode: Episode) -> str:
    """Hash of the fields of an episode, times left out; equal for equal episodes."""
    return hashlib.sha256(json.dumps(_timeless(episode), sort_keys=True).encode()).hexdigest()


def _timeless(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = [name for name in value.__struct_fields__ if name not in _TIMES]
        return {name: _timeless(getattr(value, name)) for name in fields}
    if isinstance(value, dict):
        return {name: _timeless(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_timeless(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


class Tally:
    """Counts the episodes of streams, and compares them with those of the first stream.

    The streams of one tally play the same jobs.
    """

    def __init__(self, count: int) -> None:
        """``count``: number of jobs."""
        self.lost = self.twice = 0
        self.equal = True
        self._count = count
        self._reference: dict[int, str] | None = None

    def add(self, played: Sequence[tuple[int, Episode]]) -> None:
        """The episodes of a whole stream, with the numbers of their jobs."""
        found: dict[int, str] = {}
        for number, episode in played:
            self.twice += number in found
            if episode.fault is None:
                found[number] = digest(episode)
        self.lost += self._count - len(found)
        if self._reference is None:
            self._reference = found
        self.equal &= all(self._reference.get(n) == told for n, told in found.items())

    def add_counts(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.lost += other.lost
        self.twice += other.twice
        self.equal &= other.equal
