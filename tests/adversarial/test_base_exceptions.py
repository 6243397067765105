"""A node that raises what is no ``Exception`` ends its run; nothing waits for it for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from graph_fakes import BLANK, FixedModel, Sleeper, in_virtual_time

from swarm_ui import (
    Action,
    CollabGraph,
    GraphPolicy,
    Journal,
    Limits,
    Message,
    NodeContext,
    NodeReply,
    Step,
    rollout_many,
)
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.nodes import Fallback


class Odd(BaseException):
    """Of somebody else's library."""


OUTCOME = pytest.fail.Exception
KINDS: list[type[BaseException]] = [Odd, OUTCOME, GeneratorExit, SystemExit, KeyboardInterrupt]


class Raises:
    def __init__(self, id: str, kind: type[BaseException], seconds: float = 0.0) -> None:
        self.id, self.kind, self.seconds = id, kind, seconds

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        raise self.kind("out")


def first(kind: type[BaseException], seconds: float) -> CollabGraph:
    return CollabGraph([Raises("a", kind, seconds), Sleeper("b")], [("a", "b")])


def among(kind: type[BaseException], seconds: float) -> CollabGraph:
    others = [Sleeper(f"n{k}", 1.0 + k) for k in range(5)]
    nodes = [*others[:2], Raises("a", kind, seconds), *others[2:], Sleeper("end", 1)]
    return CollabGraph(nodes, [(n.id, "end") for n in nodes[:-1]], rounds=3)


def nested(kind: type[BaseException], seconds: float) -> CollabGraph:
    return CollabGraph([among(kind, seconds).named("team"), Sleeper("b")], [("team", "b")])


def fallback(kind: type[BaseException], seconds: float) -> CollabGraph:
    broken = Sleeper("a", 1, fails=ValueError("no"))
    node = Fallback(broken, Raises("second", kind, seconds))
    return CollabGraph([node, Sleeper("b")], [("a", "b")])


def condition(kind: type[BaseException], seconds: float) -> CollabGraph:
    def when(message: Message) -> bool:
        raise kind("out")

    return CollabGraph([Sleeper("a", seconds), Sleeper("b")], [("a", "b")], when={("a", "b"): when})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seconds", [0.0, 2.5])
@pytest.mark.parametrize("make", [first, among, nested, fallback, condition])
@pytest.mark.parametrize("limits", [Limits(), Limits(timeout=9, run_timeout=99, concurrency=2)])
def test_the_run_ends_with_it(
    kind: type[BaseException],
    seconds: float,
    make: Callable[[type[BaseException], float], CollabGraph],
    limits: Limits,
) -> None:
    with pytest.raises(kind, match="out"):  # a deadlock would be a RuntimeError
        in_virtual_time(make(kind, seconds).run(BLANK, limits=limits))


@pytest.mark.parametrize("kind", [Odd, GeneratorExit])
def test_a_run_in_a_journal_can_go_on(kind: type[BaseException], tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs.jsonl")
    for _ in range(2):  # the run is not left open
        with pytest.raises(kind):
            first(kind, 0).run_sync(BLANK, run_id="r", journal=journal)
        assert journal.read("r").calls == {}


class Breaks(PhoneEnvironment):
    kind: type[BaseException] = Odd

    async def step(self, action: Action) -> Step:
        raise self.kind("out")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["node", "environment"])
def test_no_episode_is_lost_in_silence(kind: type[BaseException], where: str) -> None:
    class World(Breaks):
        pass

    World.kind = kind
    graph = CollabGraph.solo(FixedModel({None: '{"action_type":"wait"}'}))
    if where == "node":
        graph = CollabGraph([Raises("a", kind)])
    jobs = [("contacts-add", seed) for seed in range(5)]
    make = PhoneEnvironment if where == "node" else World
    with pytest.raises(kind, match="out"):
        asyncio.run(within(rollout_many(make, GraphPolicy(graph), jobs, concurrency=2)))


async def within(doing: Coroutine[Any, Any, Any]) -> Any:
    async with asyncio.timeout(20):
        return await doing


class Cancels:
    id = "a"

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        raise asyncio.CancelledError


async def test_a_node_that_cancels_by_itself_ends_the_stream() -> None:
    policy = GraphPolicy(CollabGraph([Cancels()]))
    jobs = [("contacts-add", seed) for seed in range(5)]
    with pytest.raises(asyncio.CancelledError):
        await within(rollout_many(PhoneEnvironment, policy, jobs, concurrency=2))
