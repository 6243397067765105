"""The adapter versions of an episode, while newer ones come into use."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from small_world import Notebook

from swarm_ui import CollabGraph, GraphPolicy
from swarm_ui.engine.plan import same_versions
from swarm_ui.errors import ModelError
from swarm_ui.model import Completion, Request
from swarm_ui.rollout import rollout

REPLY = '{"action_type": "wait"}'


class Versions:
    """A model whose adapter gets a new version after every few calls."""

    name = "versions"

    def __init__(self, calls: int) -> None:
        self.calls, self.asked = calls, 0
        self.leased: Counter[str] = Counter()

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.asked += len(requests)
        return [Completion(text=REPLY, prompt="", adapter=r.adapter) for r in requests]

    def lease(self, adapter: str) -> str:
        version = adapter if "@" in adapter else f"{adapter}@{self.asked // self.calls}"
        self.leased[version] += 1
        return version

    def release(self, version: str) -> None:
        if not self.leased[version]:
            raise ModelError(f"{version} is not leased")
        self.leased[version] -= 1

    async def close(self) -> None:
        pass


def team(model: Versions) -> CollabGraph:
    return CollabGraph.collaborative(2, 1, model=model, adapters=["a", "b"], edges=[])


async def test_an_episode_keeps_the_versions_that_it_began_with() -> None:
    model = Versions(calls=2)  # a new version after every decision
    world = Notebook()
    policy, task = GraphPolicy(team(model)), world.tasks[0]
    first = await rollout(world, policy, task=task, seed=0, max_steps=3)
    asked = [{c.adapter for c in step.trace.calls if c.adapter} for step in first.steps]
    assert asked == [{"a@0", "b@0"}] * 3
    second = await rollout(world, policy, task=task, seed=0, max_steps=1)
    assert {c.adapter for c in second.steps[0].trace.calls if c.adapter} == {"a@3", "b@3"}
    assert +model.leased == Counter()


async def test_versions_are_released_if_an_episode_is_cancelled() -> None:
    model = Versions(calls=1)

    async def play() -> None:
        with same_versions():
            await team(model).run("save")
            await asyncio.Event().wait()

    task = asyncio.create_task(play())
    while model.asked < 2:
        await asyncio.sleep(0)
    for _ in range(9):
        await asyncio.sleep(0)
    assert model.leased["a@0"] == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert +model.leased == Counter()
