"""Calls that a node makes inside one call of its own, such as the turns of a conversation.

They are recorded like the calls of a nested graph: the first turn of ``writer`` is the call
``writer:0/model:0`` of the node ``writer/model``, and a tool that it calls then is
``writer:0/search:1``. Each has its events, and is written to the run's store as soon as it is made.
A recorded call that receives the same messages is not made again. So a run that is continued after
a crash repeats no finished call of a tool, and a replay repeats only calls that receive other
messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from swarm_ui.engine.call_record import called, message_of
from swarm_ui.engine.events import CallFinished, CallStarted, Failed
from swarm_ui.errors import FOR_THE_USER, ConfigError, Failure
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply, derive
from swarm_ui.storage.protocol import hears_the_same
from swarm_ui.trace.records import Call

Answer = Callable[[NodeContext], Awaitable[NodeReply]]
"""Makes an inner call; its context has the name, round, id and seed of that call."""


class InnerCalls:
    """The calls inside one call, numbered in the order in which they are made.

    Args:
        context: the context of the outer call; its ``inner`` holds the recorded calls.
    """

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        if context.inner is None:
            context.inner = []
        self._made = context.inner

    async def make(
        self,
        name: str,
        heard: Sequence[Message],
        answer: Answer,
        *,
        model: str = "",
        arguments: str = "",
        tolerant: bool = False,
    ) -> Message:
        """Make the next call, or take it from the record.

        Args:
            name: the name of the model or tool; the recorded node is ``"<outer node>/<name>"``.
            heard: messages that the call depends on.
            answer: makes the call.
            model: for a turn, the name of the model that is asked; empty: a tool is called.
            arguments: the arguments of a tool call.
            tolerant: convert an exception to a message with an error, as for a node that failed,
                instead of raising it.

        Raises:
            ConfigError, BudgetExceeded: also if ``tolerant``.
            Exception: whatever ``answer`` raises, after it was recorded.
        """
        inside = self._inside(name)
        recorded = self._recorded(inside, heard, arguments, tolerant)
        if recorded is not None:
            self._made.append(recorded)
            return recorded[0]
        session = inside.session
        started = session.clock() - session.start
        ids = tuple([message.id for message in heard])
        asked = {"model": model} if model else {"tool": name}
        self._tell(CallStarted, inside, heard=ids, at=started, **asked)
        failed: BaseException | None = None
        reply: NodeReply | Message | None = session.edits.messages.get(inside.message_id)
        try:
            if reply is None:
                reply = await answer(inside)
        except (Exception, asyncio.CancelledError) as error:  # recorded, then raised
            failed = error
        failure = None if failed is None else Failure.of(failed, node=inside.node)
        if failure is not None:
            reply = NodeReply(error=str(failure))
            self._tell(Failed, inside, error=failure)
        assert reply is not None
        message, ended = message_of(reply, inside), session.clock() - session.start
        call = called(reply, message, ids, (started, ended), failure, None)
        call = msgspec.structs.replace(call, arguments=arguments, step=inside.round)
        self._made.append((message, call))
        if session.on_event is not None:
            session.on_event(CallFinished(run=session.run, message=message, call=call))
        if isinstance(failed, asyncio.CancelledError):
            raise failed
        await session.keep(message, call)
        session.written.add(message.id)
        if failed is not None and not (tolerant and not isinstance(failed, FOR_THE_USER)):
            raise failed
        return message

    def _inside(self, name: str) -> NodeContext:
        """The context of the next call."""
        outer, number = self._context, len(self._made)
        id = f"{outer.message_id}/{name}:{number}"
        if id in outer.session.edits.without:
            raise ConfigError(
                f"the call '{id}' is part of the conversation of '{outer.node}', so its message "
                "cannot be left out; replace it (messages={...}), or make the call again"
            )
        return msgspec.structs.replace(
            outer,
            node=f"{outer.node}/{name}",
            round=number,
            message_id=id,
            run_seed=derive(outer.seed, "inner"),
            own=None,
            inner=None,
        )

    def _recorded(
        self, inside: NodeContext, heard: Sequence[Message], arguments: str, tolerant: bool
    ) -> tuple[Message, Call] | None:
        """The recorded message and call, if this call is the same."""
        session, id = inside.session, inside.message_id
        outer, edits = self._context.message_id, session.edits
        found = session.past.get(id)
        if found is None or id in edits.messages or not edits.again.isdisjoint((id, outer)):
            return None
        call = found[1]
        if call.error is not None and (not tolerant or call.error.kind == "cancelled"):
            return None
        same = call.arguments == arguments and hears_the_same(call, heard, session.past)
        return found if same else None

    @staticmethod
    def _tell(kind: type[CallStarted | Failed], inside: NodeContext, **more: Any) -> None:
        """Report an event of a call."""
        session = inside.session
        if session.on_event is not None:
            id, name, round = inside.message_id, inside.node, inside.round
            session.on_event(kind(run=session.run, id=id, node=name, round=round, **more))
