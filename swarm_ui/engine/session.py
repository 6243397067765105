"""One run: its log, the memo of recorded calls, edits, limits, and the calls of nodes and steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from math import inf
from operator import attrgetter
from typing import Any

import msgspec

from swarm_ui.engine import telemetry
from swarm_ui.engine.limits import Deadlines, Limits
from swarm_ui.engine.memo import Memo
from swarm_ui.engine.plan import Versions
from swarm_ui.errors import FOR_THE_USER, ConfigError, Failure, NodeError
from swarm_ui.events import CallFinished, CallStarted, OnEvent
from swarm_ui.json_text import encodable
from swarm_ui.message import Message, Question
from swarm_ui.model import Completion, Generation
from swarm_ui.node import Answer, Known, NodeContext, NodeReply, Unanswered
from swarm_ui.storage.journal import Journal
from swarm_ui.trace.records import Call

_NO_REPLY = NodeReply()
_ID = attrgetter("id")


class Session:
    """One run. Belongs to one event loop."""

    def __init__(
        self,
        run: str,
        limits: Limits,
        memo: Memo,
        versions: Versions,
        on_event: OnEvent | None,
        journal: Journal | None,
    ) -> None:
        self.run, self.memo, self.versions, self.on_event = run, memo, versions, on_event
        self._journal, self._abort = journal, limits.on_failure == "abort"
        #: every call, by the id of its message
        self.log: dict[str, Call] = {}
        #: for a call, the ids of the calls inside it that may be made, in order
        self.inside: dict[str, list[str]] = {}
        self.skipped: set[str] = set()
        #: exceptions of the calls that failed, by message id
        self.raised: dict[str, Exception] = {}
        #: open questions of the run, by message id
        self.questions: dict[str, Question] = {}
        self._most = limits.timeout or inf
        self._deadlines = Deadlines()
        self._traced = telemetry.tracer() is not None
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        self._steps: dict[str, int] = {}

    def close(self) -> None:
        """Release what the run holds."""
        self._deadlines.stop()
        self.raised.clear()  # their frames refer to the session

    def recalled(self, id: str, inbox: Sequence[Message], composite: bool) -> Call | None:
        """Take a call from the memo, with all calls inside it, if it hears the same messages."""
        found = self.memo.find(id, inbox, composite)
        if found is None:
            return None
        self._add(found)
        for each in self.memo.inside.get(id, ()):
            self.inside.setdefault(id, []).append(each.id)
            self._add(each)
        return found

    async def call(
        self,
        node: Answer | Exception,
        inbox: Sequence[Message],
        context: NodeContext,
        seconds: float | None,
        composite: bool,
        arguments: str | None = None,
        kind: tuple[str, str] | None = None,
    ) -> Call:
        """Call a node, or make a step inside a call, and record it. A failure becomes a tombstone.

        Args:
            node: or why the call fails before it is asked.
            seconds: its own time limit; ``None``: that of the run.
            composite: it has nodes inside.
            arguments: those of a step; ``None``: it is the call of a node.
            kind: operation and name of its span; ``None``: those of a node.

        Raises:
            Unanswered: the node asked a person.
            NodeError, ConfigError, BudgetExceeded: the run must end.
        """
        id, started = context.message_id, self._clock() - self._start
        heard = tuple(map(_ID, inbox))
        if self.on_event is not None:
            at: Any = {"run": self.run, "id": id, "node": context.node, "round": context.round}
            self.on_event(CallStarted(**at, heard=heard, at=started))
        error: Failure | None = None
        try:
            reply: NodeReply | Message | None = self.memo.messages.get(id)
            if isinstance(node, Exception):
                raise node
            if reply is None and self._traced:
                with telemetry.span(*(kind or ("invoke_agent", context.node)), id=id):
                    reply = await self._answer(node, inbox, context, seconds)
            elif reply is None:
                reply = await self._answer(node, inbox, context, seconds)
            if type(reply) is not NodeReply and not isinstance(reply, Message):
                raise TypeError(f"answered with a {type(reply).__name__}, not a NodeReply")
        except Unanswered:
            raise
        except Exception as failure:
            error = self._failed(context, failure, abort=self._abort and arguments is None)
            reply = NodeReply(error=str(error))
        call = self._record(reply, context, heard, started, error, arguments)
        if composite:
            call = self.memo.kept(call, inbox)
        self._add(call)
        if self.on_event is not None:
            self.on_event(CallFinished(run=self.run, call=call))
        return call

    def _answer(
        self, node: Answer, inbox: Sequence[Message], context: NodeContext, seconds: float | None
    ) -> Awaitable[NodeReply | Message]:
        most = self._most if seconds is None else seconds
        answer = node(inbox, context)
        return answer if most == inf else self._deadlines.within(most, answer)

    def next_step(self, outer: NodeContext, name: str, number: int | None) -> int:
        """The number of a step inside a call, which gets a place in the trace."""
        made = self._steps.get(outer.message_id, 0)
        number = made if number is None else number
        id = f"{outer.message_id}/{name}:{number}"
        if id in self.memo.without:
            raise ConfigError(
                f"the call '{id}' is part of the work of '{outer.node}', so its message cannot be "
                "left out; replace it (messages={...}), or make the call again"
            )
        self._steps[outer.message_id] = made + 1
        self.inside.setdefault(outer.message_id, []).append(id)
        return number

    def _failed(self, context: NodeContext, failure: Exception, *, abort: bool) -> Failure:
        """The reason for a failure, for the tombstone; raises if the run must end."""
        if isinstance(failure, FOR_THE_USER) or (abort and isinstance(failure, NodeError)):
            raise failure
        if isinstance(failure, Known):
            reason = msgspec.structs.replace(failure.failure, node=context.node)
        else:
            reason = Failure.of(failure, node=context.node)
        if abort:
            raise NodeError(
                str(reason), node=context.node, round=context.round, run=self.run, kind=reason.kind
            ) from failure
        self.raised[context.message_id] = failure
        return reason

    def _record(
        self,
        reply: NodeReply | Message,
        context: NodeContext,
        heard: tuple[str, ...],
        started: float,
        error: Failure | None,
        arguments: str | None,
    ) -> Call:
        """The record of a call. Its message has the id, sender and round of the call, regardless of
        the reply."""
        made = reply if isinstance(reply, NodeReply) else _NO_REPLY
        message = Message(
            id=context.message_id,
            sender=context.node,
            round=context.round,
            content=encodable(reply.content),
            action=reply.action,
            error=reply.error if reply.error is None else encodable(reply.error),
            prompt_format=(made.completion or reply).prompt_format,
            abstains=reply.abstains,
        )
        return Call(
            message=message,
            completion=None if made.completion is None else _generation(made.completion),
            heard=heard,
            order=made.order,
            temperature=made.temperature,
            seed=made.seed,
            ballot=made.ballot,
            started=started,
            ended=self._clock() - self._start,
            error=error,
            arguments=arguments or "",
            step=None if arguments is None else context.round,
        )

    def _add(self, call: Call) -> None:
        """Put a call into the log, and into the journal if that does not have it."""
        id = call.message.id
        self.log[id] = call
        if self._journal is not None:
            inside = self.collected(self.inside.get(id, ()))[0]
            self._journal.write(self.run, call, tuple([each.id for each in inside]))

    def collected(self, ids: Iterable[str]) -> tuple[list[Call], list[str]]:
        """The calls of these ids that were made, those inside a call after it; and the ids of
        skipped calls, in the same order."""
        if not self.inside and not self.skipped:
            return [self.log[id] for id in ids if id in self.log], []
        made: list[Call] = []
        skipped: list[str] = []
        waiting = [*ids][::-1]
        while waiting:
            id = waiting.pop()
            if id in self.log:
                made.append(self.log[id])
            elif id in self.skipped:
                skipped.append(id)
            waiting += reversed(self.inside.get(id, ()))
        return made, skipped

    def ask(self, question: Question) -> None:
        """Keep a question that waits for a person, also in the journal."""
        self.questions[question.id] = question
        if self._journal is not None:
            self._journal.write(self.run, question)


def _generation(completion: Completion) -> Generation:
    """How a reply was made, without the reply, which the message holds."""
    found = msgspec.convert(completion, Generation, from_attributes=True)
    prompt, model = encodable(found.prompt), encodable(found.model)
    return msgspec.structs.replace(found, prompt=prompt, model=model)
