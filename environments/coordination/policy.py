"""The team for a coordination problem: one agent for each name, in synchronous rounds over the
given network.

Two neighbours are joined by two edges with a delay of one round, one in each direction, and there
are no other edges between agents. So all calls of a round are independent of each other, and a
message of round r reaches all neighbours of its sender in round r + 1, and nobody else. This is the
LOCAL model of distributed computing. Messages are passed between rounds, so there is one more round
than passes. The answers of the last round count.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

from swarm_ui.action import Action
from swarm_ui.agent_view import Pane
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environments.benchmark import Benchmark, MakeAgent, Opened
from swarm_ui.environments.coordination.environment import CoordinationEnvironment, written
from swarm_ui.environments.coordination.problem import LARGE, SMALL, draw_problem, task_names
from swarm_ui.environments.recorded.scores import Column, measured
from swarm_ui.errors import ModelError
from swarm_ui.message import Message
from swarm_ui.node import Node, NodeContext, NodeReply, Scope
from swarm_ui.rollout import GraphPolicy, Policy
from swarm_ui.stats import Measure
from swarm_ui.trace.records import Episode

ANSWERS = "answers"
"""Name of the node that gathers the answers."""


@dataclass(frozen=True, slots=True)
class GatherAnswers:
    """A closing node: the answers of the last round, one line for each
    agent, as one action.

    An agent without an ``answer`` has no line. If a call failed for a reason outside of the agents,
    such as an endpoint that does not respond, the team has no decision and the episode is masked:
    every message may matter to the others.
    """

    id: str = ANSWERS

    @property
    def scope(self) -> Scope:
        return "all"

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        for message in inbox:
            if message.error is None:
                continue
            failure = context.source(message).call.error
            if failure is not None and not failure.by_model:
                raise ModelError(
                    f"agent '{message.sender}' failed in round {message.round}, and its messages "
                    f"may matter to all others: {failure}"
                )
        last = max((message.round for message in inbox), default=0)
        said = {m.sender: m.action for m in inbox if m.round == last and m.action is not None}
        texts = {n: a.text or "" for n, a in said.items() if a.action_type == "answer"}
        action = Action(action_type="answer", text=written(texts))
        return NodeReply(content=action.json(), action=action)


class CoordinationPolicy(GraphPolicy):
    """One agent for each name of a task, in synchronous rounds over its network.

    The task determines the names, the edges and the number of rounds, so the team differs from
    episode to episode. Its output is the answers of all agents.

    Args:
        make_agent: makes an agent, such as ``lambda name, view: AgentNode(name, model,
            view=view)``; called for every name in every episode.
        name: for tables.
    """

    def __init__(self, make_agent: MakeAgent, *, name: str = "one agent for each name") -> None:
        self.make_agent = make_agent
        super().__init__(self._of_task, name=name)

    def _of_task(self, task: str, seed: int) -> CollabGraph:
        problem = draw_problem(task, seed)
        nodes: dict[str, Node] = {n: self.make_agent(n, Pane(name=n)) for n in problem.names}
        edges = [(sender, n) for n, heard in problem.neighbours.items() for sender in heard]
        return CollabGraph(
            {**nodes, ANSWERS: GatherAnswers()},
            edges,
            ANSWERS,
            problem.rounds,
            "coordination",
            delays=dict.fromkeys(edges, 1),
        )


class Coordination(Benchmark):
    """Coordination on networks, after AgentsNet."""

    label: ClassVar[str] = (
        "After AgentsNet, on networks of our own: scores are not comparable with published ones"
    )
    splits: ClassVar[tuple[str, ...]] = ("small", "large", "validation")
    trains_on: ClassVar[str | None] = None
    evenly: ClassVar[bool] = True

    name: Literal["coordination"] = "coordination"

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        yield Opened(CoordinationEnvironment, score=_measures)

    def known_tasks(self) -> Sequence[str]:
        return task_names()

    def split_tasks(self, split: str) -> Sequence[str]:
        return task_names(LARGE if split == "large" else SMALL)

    def test_split(self) -> str:
        """``small`` or ``large``; empty: the tasks are of both."""
        large = frozenset(task_names(LARGE))
        if self.tasks and all(task in large for task in self.tasks):
            return "large"
        return "" if any(task in large for task in self.tasks) else "small"

    def team(self, make_agent: MakeAgent, name: str) -> Policy:
        return CoordinationPolicy(make_agent, name=name)


def _measures(episodes: Sequence[Episode]) -> tuple[Measure, ...]:
    """The mean score. Episodes with a fault are left out."""
    scores = [(e.task, [{"score": e.steps[-1].reward}]) for e in episodes if e.success is not None]
    return measured([Column("score", "score", "score")], scores)
