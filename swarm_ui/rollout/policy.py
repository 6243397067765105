"""Policies, which turn a screen into a decision with its trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Any, Protocol

from swarm_ui.agent_view import windows
from swarm_ui.deprecation import renamed_names
from swarm_ui.engine.events import OnEvent
from swarm_ui.engine.executor import trace_of
from swarm_ui.engine.limits import Limits
from swarm_ui.errors import ConfigError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Trace

Decide = Callable[[Observation, int, str], Coroutine[Any, Any, Trace]]
"""``(observation, seed, run) -> Trace``: one decision."""

Draw = Callable[[str, int], tuple[CollabGraph, float | None]]
"""``(task, seed) -> (graph, log-probability of its edges)``: the team for one episode."""


class Policy(Protocol):
    """Acts in episodes; one policy serves any number of them at the same time."""

    @property
    def name(self) -> str:
        """Name for tables, such as ``"base greedy"`` or ``"trained team"``."""
        ...

    def begin(self, *, task: str, seed: int) -> Decide:
        """Makes the decisions of one episode, and holds the state of the episode."""
        ...


def check_policy(policy: object) -> None:
    """Raise ``ConfigError`` for something that is not a policy, such as a graph."""
    if not hasattr(policy, "begin"):
        kind = type(policy).__name__
        hint = f"; write GraphPolicy({'graph' if isinstance(policy, CollabGraph) else '...'})"
        raise ConfigError(f"expected a policy, got an object of type {kind}{hint}")


class GraphPolicy:
    """A team decides: the same graph in all episodes, or one drawn for each."""

    def __init__(
        self,
        graph: CollabGraph | Draw,
        *,
        name: str | None = None,
        limits: Limits | None = None,
        listen: Callable[[], OnEvent] | None = None,
    ) -> None:
        """
        Args:
            graph: a graph, or a function that draws one for an episode.
            name: the policy's name in tables; by default that of the graph.
            limits: the limits of each decision.
            listen: makes the listener of each decision, such as
                :class:`~swarm_ui.engine.telemetry.Spans`.
        """
        if not callable(graph):  # a graph is callable too, as a node of another graph
            raise ConfigError(
                "GraphPolicy: expected a CollabGraph, or a function (task, seed) that draws one, "
                f"got an object of type {type(graph).__name__}"
            )
        self._graph = graph
        self._limits, self._listen = limits, listen
        self.name = name or (graph.name if isinstance(graph, CollabGraph) else "drawn team")

    def begin(self, *, task: str, seed: int) -> Decide:
        source = self._graph
        graph, logprob = (source, None) if isinstance(source, CollabGraph) else source(task, seed)

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            return await graph.run(
                observation, seed=seed, run_id=run, edge_logprob=logprob, limits=self._limits,
                on_event=None if self._listen is None else self._listen(),
            )  # fmt: skip

        return decide


class LoopEscapePolicy:
    """Uses one policy, and a second one on screens that occurred earlier in the episode.

    If the first is a greedy agent and the second the same agent with a shuffled view, a step costs
    one call. It is a control for teams, because part of the gain of a vote is only the escape from
    loops.
    """

    def __init__(
        self,
        usual: CollabGraph,
        stuck: CollabGraph,
        *,
        name: str = "loop guard",
        limits: Limits | None = None,
    ) -> None:
        self._usual, self._stuck = usual, stuck
        self.name, self._limits = name, limits

    @classmethod
    def greedy(
        cls, model: ChatModel, *, adapter: str | None = None, max_tokens: int | None = None
    ) -> LoopEscapePolicy:
        """One greedy agent that uses a shuffled view when a screen occurs again."""
        usual = CollabGraph.solo(model, adapter=adapter, max_tokens=max_tokens)
        stuck = CollabGraph.solo(model, adapter=adapter, max_tokens=max_tokens, view="shuffle")
        return cls(usual, stuck, name="greedy, loop guard")

    def begin(self, *, task: str, seed: int) -> Decide:
        seen: set[tuple[object, ...]] = set()

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            key = observation.screen_key()
            graph = self._stuck if key in seen else self._usual
            seen.add(key)
            return await graph.run(observation, seed=seed, run_id=run, limits=self._limits)

        return decide


class SlidingWindowPolicy:
    """One agent that sees a window of the screen, and moves to the next one when it abstains.

    It starts at the top, stays in a window in which it acted, and returns to the top after the
    last window. An abstention costs a step. It is the control for a team of agents with one window
    each. With ``notes`` it receives its own last messages of the same screen, as the agents of a
    team receive those of others. Without notes, no information is kept between windows.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        parts: int = 4,
        notes: int = 0,
        adapter: str | Sequence[str | None] | None = None,
        max_tokens: int | None = None,
        name: str = "scroller",
        limits: Limits | None = None,
    ) -> None:
        """
        Args:
            model: the agent's model.
            parts: windows of a screen.
            notes: maximum number of its own messages in its next prompt. A note is a node of the
                decision's graph, ``note_0`` the oldest. Notes of a screen with other elements are
                dropped.
            adapter: name of the LoRA adapter, or one for each window.
            max_tokens: limit of a reply.
            name: for tables.
            limits: the limits of each decision.

        Raises:
            ConfigError: ``notes`` is negative, or there is not one adapter for each window.
        """
        adapters = [adapter] * parts if adapter is None or isinstance(adapter, str) else adapter
        if notes < 0 or len(adapters) != parts:
            raise ConfigError(
                f"scroller: expected notes >= 0 and an adapter for each of {parts} windows, got "
                f"{notes} and {len(adapters)}"
            )
        self._graphs = [
            CollabGraph.solo(model, adapter=own, view=window, max_tokens=max_tokens)
            for window, own in zip(windows(parts), adapters, strict=True)
        ]
        self._notes = notes
        self.name, self._limits = name, limits

    def begin(self, *, task: str, seed: int) -> Decide:
        at = 0
        screen: object = None
        kept: deque[Message] = deque(maxlen=self._notes)

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            nonlocal at, screen
            if self._notes and screen != (screen := _elements(observation)):
                kept.clear()
            graph = _with_notes(self._graphs[at], kept)
            trace = await trace_of(
                graph.run(observation, seed=seed, run_id=run, limits=self._limits)
            )
            said = trace.message(f"{graph.output}:0")
            kept.append(said)
            if said.id in trace.passed:
                at = (at + 1) % len(self._graphs)
            return trace

        return decide


@dataclass(frozen=True, slots=True)
class _Note:
    """A node that repeats a message of an earlier decision."""

    id: str
    message: Message

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        note = self.message
        return NodeReply(
            content=note.content, action=note.action, error=note.error,
            prompt_format=note.prompt_format,
        )  # fmt: skip


def _with_notes(graph: CollabGraph, notes: Iterable[Message]) -> CollabGraph:
    for k, message in enumerate(notes):
        graph = graph.with_node(_Note(f"note_{k}", message), heard_by=[graph.output])
    return graph


def _elements(observation: Observation) -> object:
    """The elements of a screen, without the contents of their fields."""
    return observation.app, [(element.role, element.label) for element in observation.elements]


class Cascade:
    """Asks one agent, and the rest of the team only when it is unsure.

    The first agent's answer is reused in the run of the team, so no call is made twice, and the
    decisions of the team are exactly those without the cascade.
    """

    def __init__(
        self,
        team: CollabGraph,
        *,
        threshold: float = 0.9,
        first: str | None = None,
        name: str = "cascade",
        limits: Limits | None = None,
    ) -> None:
        """
        Args:
            team: its first agent must receive from no other agent in the first round.
            threshold: the team is called if the first agent's proposal is less probable than this.
            first: the agent called first; ``None``: the first without incoming edges.
        """
        alone = [agent for agent in team.agents if agent in team.sources]
        self._first = alone[0] if first is None else first
        if self._first not in alone:
            raise ConfigError(
                f"a cascade starts with an agent without incoming edges ({', '.join(alone)}), "
                f"not '{self._first}'"
            )
        self._team, self._threshold = team, threshold
        fallbacks = {name: f for name, f in team.fallbacks.items() if name == self._first}
        members = {self._first: team.nodes[self._first]}
        self._solo = CollabGraph(members, name="solo", fallbacks=fallbacks)
        self.name, self._limits = name, limits

    def begin(self, *, task: str, seed: int) -> Decide:
        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            alone = await trace_of(
                self._solo.run(observation, seed=seed, run_id=run, limits=self._limits)
            )
            logprob = alone.messages[0].logprob
            sure = logprob is not None and exp(logprob) >= self._threshold
            if sure and alone.action is not None:
                return alone
            return await self._team.run(
                observation, seed=seed, run_id=run, limits=self._limits, cached=alone
            )

        return decide


if not TYPE_CHECKING:  # type checkers know only the present names
    __getattr__ = renamed_names(__name__)
