"""Runs a graph once for every item of the messages that a node receives."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.engine.run_context import RunContext, Unanswered
from swarm_ui.engine.run_state import RunState
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ReplyError
from swarm_ui.graph.mapped_graph import MappedGraph
from swarm_ui.json_text import encodable
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply, derive
from swarm_ui.storage.protocol import RecordedCall
from swarm_ui.trace.records import Call


async def run_items(node: MappedGraph, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
    """The answer of a mapped graph.

    Raises:
        ReplyError: there are more items than the node allows.
        Exception: what ``over`` or ``gather`` raises.
    """
    items = await _items(node, inbox, context)
    states = await together([_run(node, context, message) for message, _ in items])
    inner: list[RecordedCall] = []
    for pair, state in zip(items, states, strict=True):
        inner += [pair, *state.recorded_calls()]
    if any(state.waiting for state in states):
        raise Unanswered(context.message_id, inner)
    skipped: list[str] = []
    answers: list[Message] = []
    for pair, state in zip(items, states, strict=True):
        skipped += state.skipped_ids()
        answers.append(state.answer() or _unanswered(node, pair[0]))
    failed, error = [m.error for m in answers if m.error is not None], None
    if failed and len(failed) == len(answers):
        error = f"all {len(failed)} runs failed; the first: {failed[0]}"
    return NodeReply(
        content=node.gather(answers),
        error=error,
        inner=tuple(inner),
        skipped=tuple(skipped),
    )


async def _items(
    node: MappedGraph, inbox: Sequence[Message], context: NodeContext
) -> list[RecordedCall]:
    """A message and a call for every item, in order, with the changes of a replay to messages."""
    session, found = context.session, list[RecordedCall]()
    senders = [m for m in inbox if m.sender != context.node]
    for message in senders:
        if message.error is not None:
            raise RuntimeError(f"no items: message '{message.id}' is a failure: {message.error}")
    texts = [(message, text) for message in senders for text in node.over(message)]
    if len(texts) > node.most:
        raise ReplyError(
            f"'{context.node}' got {len(texts)} items and runs at most {node.most}; raise most="
        )
    for k, (source, text) in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"over= returned a {type(text).__name__} as item {k}; expected a str")
        id = f"{context.message_id}/item:{k}"
        if id in session.edits.without:
            continue
        message = Message(id=id, sender=f"{context.node}/item", round=k, content=encodable(text))
        message = session.edits.messages.get(id, message)
        call = Call(message=id, node=message.sender, round=k, heard=(source.id,))
        found.append(await _kept(session, (message, call)))
    return found


async def _kept(session: RunContext, pair: RecordedCall) -> RecordedCall:
    """The recorded item if it equals ``pair``; else ``pair``, which is written to the store."""
    before = session.past.get(pair[0].id)
    if before is not None and before[0] == pair[0] and before[1].heard == pair[1].heard:
        return before
    await session.keep(*pair)
    return pair


async def _run(node: MappedGraph, context: NodeContext, item: Message) -> RunState:
    state = RunState(
        node.graph,
        context.observation,
        derive(context.run_seed, item.id),
        context.session,
        around=(item,),
        path=context.node + "/",
        prefix=item.id + "/",
    )
    await state.finish()
    return state


def _unanswered(node: MappedGraph, item: Message) -> Message:
    nobody = f"nothing reached the output '{node.graph.output}' for '{item.id}'"
    return Message(id=item.id, sender=item.sender, round=item.round, content="", error=nobody)
