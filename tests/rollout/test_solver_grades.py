"""What the environment's own solver says is recorded, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from graph_fakes import timeless
from small_world import Notebook

from swarm_ui import Action, CollabGraph, Completion, Environment, GraphPolicy, Request
from swarm_ui.credit import SOLVER_CREDIT
from swarm_ui.errors import EnvironmentFault
from swarm_ui.rollout import Intervene, rollout, solver_grades
from swarm_ui.trace.records import Episode

SAVE = '{"action_type":"click","index":0}'
DELETE = '{"action_type":"click","index":1}'
REPLIES = (DELETE, "I would rather not", DELETE, SAVE)


class Reader:
    """Says one reply after the other."""

    name = "reader"

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies = iter(replies)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return [Completion(text=next(self.replies), prompt="p") for _ in requests]

    async def close(self) -> None: ...


def played(
    world: Environment, replies: Sequence[str] = REPLIES, intervention: Intervene | None = None
) -> Episode:
    graph = CollabGraph.solo(model=Reader(replies))
    policy = GraphPolicy(graph, name="solo")
    return asyncio.run(rollout(world, policy, task="write", seed=1, intervention=intervention))


def test_grades_are_recorded_and_nothing_else_changes() -> None:
    graded = played(Notebook(), intervention=solver_grades)
    plain = played(Notebook())
    assert [s.credit for s in graded.steps] == [((0.0,),)] * 4
    assert {s.credit_source for s in graded.steps} == {SOLVER_CREDIT}
    for seen, other in zip(graded.steps, plain.steps, strict=True):
        assert timeless(seen.trace) == timeless(other.trace)
        bare = msgspec.structs.replace(seen, trace=other.trace, credit=None, credit_source="")
        assert bare == other


class Broken(Notebook):
    """Its solver fails."""

    def grade(self, action: Action) -> float:
        raise EnvironmentFault("the solver is broken")


def test_a_solver_that_fails_masks_no_episode() -> None:
    episode = played(Broken(), intervention=solver_grades)
    assert episode.success is False
    assert episode.steps[0].rationale == ("not graded: the solver is broken",)
