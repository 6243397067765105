"""A graph that is run once for every item of the messages that a node receives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Self

from swarm_ui.errors import GraphError, ReplyError
from swarm_ui.graph.check import GraphNode, check_name, function_name
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Message

Over = Callable[[Message], Iterable[str]]
"""The items of a message. Called again in every replay, so it must depend only on the message."""

Gather = Callable[[Sequence[Message]], str]
"""The content of the answer, from the last messages of the runs, in the order of the items."""


def json_items(message: Message) -> list[str]:
    """The entries of a message whose content is a JSON array; each as text.

    Raises:
        ReplyError: the content is not a JSON array.
    """
    try:
        found = json.loads(message.content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise ReplyError(
            f"message '{message.id}' has no items: expected a JSON array, got "
            f"{message.content[:60]!r}; set over= to a function that gives the items of a message"
        )
    return [e if isinstance(e, str) else json.dumps(e, ensure_ascii=False) for e in found]


def json_array(messages: Sequence[Message]) -> str:
    """The contents as a JSON array; ``null`` for a failed run."""
    said = [message.content if message.error is None else None for message in messages]
    return json.dumps(said, ensure_ascii=False)


class MappedGraph(GraphNode):
    """A graph that is run once for every item, and the functions for its items and results.

    :class:`~swarm_ui.nodes.map_node.MapNode` is the node that runs it.
    """

    def __init__(
        self,
        id: str,
        graph: Dag,
        over: Over = json_items,
        gather: Gather = json_array,
        most: int = 100,
    ) -> None:
        """
        Args:
            id: name of the node.
            graph: the graph to run for each item.
            over: gives the items of a message; default: the entries of a JSON array.
            gather: makes the content of the answer from the results; default: a JSON array of
                contents.
            most: maximum number of items; with more the call fails.

        Raises:
            GraphError: ``graph`` is not a graph, or another argument is unusable.
        """
        check_name(id)
        if not isinstance(graph, Dag):
            raise GraphError(
                f"map_node('{id}'): expected a graph, got a {type(graph).__name__}; "
                "CollabGraph([node]) makes one of a node"
            )
        for what, function in (("over", over), ("gather", gather)):
            if not callable(function):
                raise GraphError(
                    f"map_node('{id}'): {what} must be a function, got a {type(function).__name__}"
                )
        if most < 1:
            raise GraphError(f"map_node('{id}'): most must be at least 1, got {most}")
        self.id, self.graph, self.nodes = id, graph, graph.nodes
        self.over, self.gather, self.most = over, gather, most

    def with_graph(self, graph: Dag) -> Self:
        """The same node with another graph."""
        return type(self)(self.id, graph, self.over, self.gather, self.most)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}('{self.id}': {self.graph!r} over '{function_name(self.over)}')"


def inner_graph(node: object) -> Dag | None:
    """The graph that a node runs; ``None`` for a node that runs none."""
    if isinstance(node, Dag):
        return node
    return node.graph if isinstance(node, MappedGraph) else None
