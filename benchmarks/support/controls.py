"""Controls for studies of messages: agents that receive none, or those of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from swarm_ui.environments.coordination import CoordinationPolicy, Problem, message_graph
from swarm_ui.environments.coordination.policy import MakeAgent
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.message import Message
from swarm_ui.node import Node, NodeContext, NodeReply, derive

Delivery = Literal["sent", "muted", "shuffled"]
"""The messages that agents receive. ``sent``: those that were sent to them. ``muted``: only their
own. ``shuffled``: for each sent message, a message of another agent under the name of the sender.
The last two are controls."""
Exchange = Callable[[Message, NodeContext], Message]
"""``(message, context of the receiver) -> message``: what is received instead of a message."""


@dataclass(frozen=True, slots=True)
class ChangedInbox:
    """A node whose inbox differs from the messages that were sent to it.

    Its own messages are not changed. The prompt in the trace is exact; the trace's list of the
    messages that a call received names those that were sent.
    """

    node: Node
    exchange: Exchange

    @property
    def id(self) -> str:
        return self.node.id

    @property
    def timeout(self) -> float | None:
        """The time limit of the node, in seconds."""
        return getattr(self.node, "timeout", None)

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply | Message:
        received = [
            message if message.sender == context.node else self.exchange(message, context)
            for message in inbox
        ]
        return await self.node(received, context)


@dataclass(frozen=True, slots=True)
class _OtherName:
    """Delivers each message under the name of another sender."""

    names: Mapping[str, str]
    """The name under which the messages of each sender are received."""

    def __call__(self, message: Message, context: NodeContext) -> Message:
        return msgspec.structs.replace(message, sender=self.names[message.sender])


class ControlledPolicy(CoordinationPolicy):
    """The team for a coordination problem, with another delivery of messages."""

    def __init__(self, make_agent: MakeAgent, *, name: str = "", delivery: Delivery) -> None:
        super().__init__(make_agent, name=name)
        self._delivery = delivery

    def graph(self, problem: Problem, seed: int) -> CollabGraph:
        if self._delivery == "sent":
            return super().graph(problem, seed)
        if self._delivery == "muted":
            return message_graph(problem, self.make_agent, {})
        rng = random.Random(derive(seed, "shuffled"))
        senders: dict[str, Sequence[str]] = {}
        for name, near in problem.neighbours.items():
            senders[name] = rng.sample([n for n in problem.names if n != name], len(near))
        graph = message_graph(problem, self.make_agent, senders)
        for name, near in problem.neighbours.items():
            names = _OtherName(dict(zip(senders[name], near, strict=True)))
            graph = graph.with_node(ChangedInbox(graph.nodes[name], names), name=name)
        return graph
