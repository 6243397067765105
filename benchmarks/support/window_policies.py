"""Controls for teams whose agents each see a window of a long screen."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from benchmarks.support.controls import ChangedInbox
from swarm_ui import CollabGraph, Observation, Trace
from swarm_ui.agent_view import windows
from swarm_ui.engine.run import trace_of
from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.model import ChatModel
from swarm_ui.node import NodeContext, derive
from swarm_ui.rollout import Decide
from swarm_ui.trace.records import Episode


class SlidingWindowPolicy:
    """One agent that sees a window of the screen, and moves to the next one when it abstains.

    It starts at the top, stays in a window in which it acted, and returns to the top after the
    last window. An abstention costs a step. No information is kept between windows.
    """

    name = "scroller"

    def __init__(
        self,
        model: ChatModel,
        *,
        parts: int = 4,
        adapters: Sequence[str | None] | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """``adapters``: the name of the LoRA adapter for each of the ``parts`` windows."""
        self._graphs = [
            CollabGraph.solo(model, adapter=own, view=window, max_tokens=max_tokens)
            for window, own in zip(windows(parts), adapters or [None] * parts, strict=True)
        ]

    def begin(self, *, task: str, seed: int) -> Decide:
        """See :class:`swarm_ui.Policy`."""
        at = 0

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            nonlocal at
            graph = self._graphs[at]
            trace = await trace_of(graph.run(observation, seed=seed, run_id=run))
            if f"{graph.output}:0" in trace.passed:
                at = (at + 1) % len(self._graphs)
            return trace

        return decide


@dataclass(frozen=True, slots=True)
class RecordedMessages:
    """Replaces each message by one that another agent sent in some recorded decision.

    Number, length and kind of the messages stay as they are, but they say nothing about the screen.
    The draws depend on the seed, the run and the message only.
    """

    sent: Mapping[str, tuple[Message, ...]]
    """The recorded messages, by sender."""
    seed: int = 0

    @classmethod
    def of(cls, episodes: Iterable[Episode], *, seed: int = 0) -> RecordedMessages:
        """The messages of the agents in these episodes, failures left out.

        Raises:
            ConfigError: they are messages of fewer than two agents.
        """
        sent: dict[str, list[Message]] = {}
        for trace in (step.trace for episode in episodes for step in episode.steps):
            for message in trace.messages:
                if message.sender in trace.agents and message.error is None:
                    sent.setdefault(message.sender, []).append(message)
        if len(sent) < 2:
            raise ConfigError(
                "shuffled messages: the recorded episodes hold messages of "
                f"{len(sent)} agents; expected at least 2"
            )
        return cls({name: tuple(own) for name, own in sorted(sent.items())}, seed)

    def __call__(self, message: Message, context: NodeContext) -> Message:
        rng = random.Random(derive(self.seed, context.run_id, context.node, message.id))
        other = rng.choice(self.sent[rng.choice([s for s in self.sent if s != message.sender])])
        return msgspec.structs.replace(
            message,
            content=other.content,
            action=other.action,
            error=None,
            prompt_format=other.prompt_format,
            abstains=other.abstains,
        )


def shuffled(graph: CollabGraph, messages: RecordedMessages) -> CollabGraph:
    """The team in which every message is replaced by a recorded one of another agent.

    It is for tests with a majority vote: the agents are wrapped, so a probability vote cannot ask
    their models, and they cannot be trained.
    """
    for name in graph.agents:
        graph = graph.with_node(ChangedInbox(graph.nodes[name], messages), name=name)
    return graph
