"""A node that runs a graph once for every item of the messages it receives."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from swarm_ui.engine.tasks import together
from swarm_ui.errors import GraphError, ReplyError
from swarm_ui.graph.check import check_name
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Message
from swarm_ui.node import Node, NodeContext, NodeReply, Unanswered

Over = Callable[[Message], Sequence[str]]


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


class Map:
    """Runs a graph once for every item, all at the same time within the limits of the run.

    The items are those of all messages that the node receives from others, in the order of the
    inbox. An item is the goal of its run, and the first nodes of the graph receive it as a message.
    The answer is a JSON array of the results in the order of the items, ``null`` for a failed run.
    It fails if a received message is a failure, or if all runs fail.

    The trace holds a message for every item, ``"summaries:0/item:2"``, and those of its run,
    ``"summaries:0/item:2/writer:0"``. In a replay, items can be changed or left out by their id.

    Examples:
        ``CollabGraph([planner]) >> Map("summaries", CollabGraph([writer]))``
    """

    def __init__(self, id: str, graph: Dag, *, over: Over = json_items, most: int = 100) -> None:
        """
        Args:
            id: name of the node.
            graph: the graph to run, once for each item.
            over: gives the items of a message as texts; default: the entries of a JSON array. It is
                called again in every replay, so it must depend only on the message.
            most: maximum number of items; with more the call fails.
        """
        check_name(id)
        if not isinstance(graph, Dag):
            raise GraphError(
                f"Map('{id}'): expected a graph, got a {type(graph).__name__}; "
                "CollabGraph([node]) makes one of a node"
            )
        self.id, self.graph, self.over, self.most = id, graph, over, most

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes of the graph."""
        return self.graph.nodes

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        items = await self._items(inbox, context)
        found = await together([self._run(item, context) for item in items])
        answers = [answer for answer in found if answer is not None]
        if len(answers) < len(found):
            raise Unanswered(context.message_id)
        failed, error = [each.error for each in answers if each.error is not None], None
        if failed and len(failed) == len(answers):
            error = f"all {len(failed)} runs failed; the first: {failed[0]}"
        said = [each.content if each.error is None else None for each in answers]
        return NodeReply(content=json.dumps(said, ensure_ascii=False), error=error)

    async def _items(self, inbox: Sequence[Message], context: NodeContext) -> list[Message]:
        """A message for every item, in order, with the changes of a replay."""
        senders = [m for m in inbox if m.sender != context.node]
        for message in senders:
            if message.error is not None:
                raise RuntimeError(f"no items: message '{message.id}' failed: {message.error}")
        texts = [(message, text) for message in senders for text in self.over(message)]
        if len(texts) > self.most:
            raise ReplyError(
                f"'{context.node}' got {len(texts)} items and runs at most {self.most}; raise most="
            )
        return [
            (await context.step("item", [source], partial(_say, text), number=k)).message
            for k, (source, text) in enumerate(texts)
            if not context.left_out(f"{context.message_id}/item:{k}")
        ]

    async def _run(self, item: Message, context: NodeContext) -> NodeReply | None:
        """The answer for an item; ``None`` if its run waits for a person, and the others go on."""
        observation = msgspec.structs.replace(context.observation, goal=item.content)
        inside = msgspec.structs.replace(context, observation=observation)
        try:
            return await inside.run(self.graph, [item], f"item:{item.round}")
        except Unanswered:
            return None

    def __repr__(self) -> str:
        return f"Map('{self.id}', {self.graph!r})"


async def _say(text: str, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
    return NodeReply(content=text)
