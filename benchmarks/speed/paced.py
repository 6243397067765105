"""A scripted model with a delay, jobs for it, and digests of the episodes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from benchmarks.speed.worlds import CLICKS_ON
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environments.phone import PhoneEnvironment, tasks
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.prompts import as_chat, transcript
from swarm_ui.rollout import GraphPolicy, Job, MakeEnvironment
from swarm_ui.trace.records import Episode

DECISIONS = {"phone": 5, "miniwob": 4}
"""The most decisions of an episode; on the phone every episode has as many."""
_RECORD = Path(__file__).with_name("latencies.json")
_TIMES = frozenset({"started", "ended", "seconds"})


@dataclass(frozen=True, slots=True)
class Latencies:
    """A distribution of latencies in seconds, as evenly spaced quantiles."""

    seconds: tuple[float, ...]

    @classmethod
    def recorded(cls, mean: float) -> Latencies:
        """Recorded latencies of SmolLM2, scaled to ``mean`` seconds."""
        seconds = json.loads(_RECORD.read_text(encoding="utf-8"))["seconds"]
        return cls(tuple(value * mean / fmean(seconds) for value in seconds))

    def of(self, run: str) -> float:
        """The latency of the decision with that run id; equal ids have equal latencies."""
        return self.seconds[zlib.crc32(run.encode()) % len(self.seconds)]


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


def policy(world: str, latencies: Latencies) -> GraphPolicy:
    """One agent with a scripted model: a decision is one call."""
    roles = frozenset(CLICKS_ON.values()) if world == "miniwob" else frozenset[str]()
    return GraphPolicy(CollabGraph.solo(PacedModel(latencies, roles)), name="scripted")


def work(world: str, count: int) -> list[Job]:
    """``count`` jobs. Those of one web page are in a row, so that few pages are loaded."""
    if world == "phone":
        return PhoneEnvironment.test_jobs(count, tasks=tasks("train"))
    each = -(-count // len(CLICKS_ON))
    return [(task, seed) for task in CLICKS_ON for seed in range(each)][:count]


@asynccontextmanager
async def pages() -> AsyncIterator[MakeEnvironment]:
    """A browser; makes environments on pages of it."""
    from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment

    async with MiniWobBrowser(pages=1) as browser:
        yield lambda: MiniWobEnvironment(browser.open_page)


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
    """Counts the episodes of streams of the same jobs, and compares them with the first stream."""

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
