"""A node that answers in place of another one that fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swarm_ui.graph.check import named
from swarm_ui.message import Message
from swarm_ui.node import Node, NodeContext, NodeReply, Scope, parts_of, scope_of


class Fallback:
    """Asks one node, and a second one if the first fails: it raises, its time is over, or it is a
    graph without an answer.

    The failure stays in the trace: with ``Fallback(ada, grace)``, the calls ``ada:0/ada:0`` (which
    failed), ``ada:0/grace:1`` and ``ada:0``, which has the answer. An unusable reply of a model is
    an answer. If both fail, the node fails as the second did. A resumed run asks only the second.

    Raises:
        GraphError: both nodes have the same name.

    Examples:
        ``graph.with_node(Fallback(large, small), name="writer")``
    """

    def __init__(self, first: Node, second: Node, *, id: str = "") -> None:
        """``id``: the name of the node; default: that of ``first``."""
        members = named([first, second])
        self.id = id or first.id
        self.nodes: Mapping[str, Node] = members

    @property
    def scope(self) -> Scope | None:
        """That of the first node: a vote with a fallback is a vote."""
        return scope_of(next(iter(self.nodes.values())))

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        (name, first), (other, second) = self.nodes.items()
        call = await context.step(name, inbox, first, tolerant=True)
        if call.error is not None or (call.message.error is not None and parts_of(first)):
            call = await context.step(other, inbox, second)
        return NodeReply.like(call)

    def __repr__(self) -> str:
        return f"Fallback({', '.join(map(repr, self.nodes.values()))})"
