"""A node that runs a graph once for every item of the messages it receives."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.engine.fan_out import run_items
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.mapped_graph import Gather, MappedGraph, Over, json_array, json_items
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply

__all__ = ["MapNode", "map_node"]


class MapNode(MappedGraph):
    """Runs a graph once for every item, all at the same time within the limits of the run.

    The items are those of all messages that the node receives from others, in the order of the
    inbox. The first nodes of the graph receive the item as a message. The answer holds the results
    in the order of the items. It fails if a received message is a failure, or if all runs fail.

    The trace holds a message for every item, ``"summaries:0/item:2"``, and those of its run,
    ``"summaries:0/item:2/writer:0"``. In a replay, items can be changed or left out by their id.
    """

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        return await run_items(self, inbox, context)


def map_node(
    id: str,
    graph: Dag,
    *,
    over: Over = json_items,
    gather: Gather = json_array,
    most: int = 100,
) -> MapNode:
    """A node that runs a graph once for every item.

    Args:
        id: name of the node.
        graph: the graph to run, once for each item.
        over: gives the items of a message as texts; default: the entries of a JSON array. It is
            called again in every replay, so it must depend only on the message.
        gather: makes the content of the answer from the last messages of the runs, in the order of
            the items; default: a JSON array of their contents, ``null`` for a failed run.
        most: maximum number of items; with more the call fails.

    Raises:
        GraphError: an argument is unusable.

    Examples:
        ``graph.with_node(map_node("summaries", worker, over=lines), hears=["planner"])``
    """
    return MapNode(id, graph, over, gather, most)
