"""A node that raises what is no ``Exception`` ends its run; nothing waits for it for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
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

Kind = type[BaseException]
LIMITS = (Limits(), Limits(timeout=9))


class Odd(BaseException):
    """Of somebody else's library."""


class Raises:
    def __init__(self, id: str, kind: Kind, seconds: float = 0.0) -> None:
        self.id, self.kind, self.seconds = id, kind, seconds

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        raise self.kind("out")


def nested(kind: Kind, seconds: float) -> CollabGraph:
    """Among others, in a graph inside a graph."""
    others = [Sleeper(f"n{k}", 1.0 + k) for k in range(5)]
    nodes = [*others[:2], Raises("a", kind, seconds), *others[2:], Sleeper("end", 1)]
    inner = CollabGraph(nodes, [(n.id, "end") for n in nodes[:-1]], rounds=3)
    return CollabGraph([inner.named("team"), Sleeper("b")], [("team", "b")])


def fallback(kind: Kind, seconds: float) -> CollabGraph:
    broken = Sleeper("a", 1, fails=ValueError("no"))
    node = Fallback(broken, Raises("second", kind, seconds))
    return CollabGraph([node, Sleeper("b")], [("a", "b")])


def condition(kind: Kind, seconds: float) -> CollabGraph:
    def when(message: Message) -> bool:
        raise kind("out")

    return CollabGraph([Sleeper("a", seconds), Sleeper("b")], [("a", "b")], when={("a", "b"): when})


@pytest.mark.parametrize("kind", [Odd, pytest.fail.Exception, GeneratorExit, KeyboardInterrupt])
@pytest.mark.parametrize("make", [nested, fallback, condition])
def test_the_run_ends_with_it(kind: Kind, make: Callable[[Kind, float], CollabGraph]) -> None:
    for seconds in (0.0, 2.5):
        for limits in LIMITS:
            with pytest.raises(kind, match="out"):  # a deadlock would be a RuntimeError
                in_virtual_time(make(kind, seconds).run(BLANK, limits=limits))


@pytest.mark.parametrize("kind", [Odd, GeneratorExit])
def test_a_run_in_a_journal_can_go_on(kind: Kind, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs.jsonl")
    for _ in range(2):  # the run is not left open
        with pytest.raises(kind):
            CollabGraph([Raises("a", kind)]).run_sync(BLANK, run_id="r", journal=journal)
        assert journal.read("r").calls == {}


async def play(make: Any, graph: CollabGraph) -> None:
    jobs = [("contacts-add", seed) for seed in range(5)]
    async with asyncio.timeout(20):
        await rollout_many(make, GraphPolicy(graph), jobs, concurrency=2)


@pytest.mark.parametrize("kind", [Odd, SystemExit, KeyboardInterrupt])
def test_no_episode_is_lost_in_silence(kind: Kind) -> None:
    class Breaks(PhoneEnvironment):
        async def step(self, action: Action) -> Step:
            raise kind("out")

    waits = CollabGraph.solo(FixedModel({None: '{"action_type":"wait"}'}))
    for make, graph in ((Breaks, waits), (PhoneEnvironment, CollabGraph([Raises("a", kind)]))):
        with pytest.raises(kind, match="out"):
            asyncio.run(play(make, graph))


async def test_a_node_that_cancels_by_itself_ends_the_stream() -> None:
    graph = CollabGraph([Raises("a", asyncio.CancelledError)])
    with pytest.raises(asyncio.CancelledError):
        await play(PhoneEnvironment, graph)
