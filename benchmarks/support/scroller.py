"""One agent that moves a window over the screen: a control for teams with a window for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from swarm_ui.agent_view import windows
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.run import trace_of
from swarm_ui.errors import ConfigError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.observation import Observation
from swarm_ui.rollout import Decide
from swarm_ui.trace.records import Trace


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
            prompt_format=note.prompt_format, abstains=note.abstains,
        )  # fmt: skip


def _with_notes(graph: CollabGraph, notes: Iterable[Message]) -> CollabGraph:
    for k, message in enumerate(notes):
        graph = graph.with_node(_Note(f"note_{k}", message), heard_by=[graph.output])
    return graph


def _elements(observation: Observation) -> object:
    """The elements of a screen, without the contents of their fields."""
    return observation.app, [(element.role, element.label) for element in observation.elements]
