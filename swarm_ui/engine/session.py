"""One run: its log, and the calls of nodes and steps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
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

_ID = attrgetter("id")
_NO_REPLY = (
    "expected a NodeReply, got a {}; return NodeReply(content=...), or make the node with "
    "function_node"
)


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
        self._journal, self._limits = journal, limits
        #: every call, by the id of its message
        self.log: dict[str, Call] = {}
        #: for a call, the ids of the calls inside it that may be made, in order
        self.inside: dict[str, list[str]] = {}
        self.skipped: set[str] = set()
        #: exceptions of the calls that failed, by message id
        self.raised: dict[str, Exception] = {}
        #: open questions of the run, by message id
        self.questions: dict[str, Question] = {}
        self._most, self._deadlines = limits.timeout or inf, Deadlines()
        self._traced = telemetry.tracer() is not None
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()

    def close(self) -> None:
        """Release what the run holds."""
        self._deadlines.stop()
        self.raised.clear()  # their frames refer to the session

    async def call(
        self,
        node: Answer,
        inbox: Sequence[Message],
        context: NodeContext,
        seconds: float | None,
        composite: bool,
        arguments: str | None = None,
        span: tuple[str, str] | None = None,
    ) -> Call:
        """Call a node, or make a step inside a call, and record it; or take it from the memo, with
        all calls inside it, if it hears the same messages. A failure becomes a tombstone.

        Args:
            seconds: its own time limit; ``None``: that of the run.
            composite: it has nodes inside.
            arguments: those of a step; ``None``: it is the call of a node.
            span: operation and name of its span; ``None``: those of a node.

        Raises:
            Unanswered: the node asked a person.
            NodeError, ConfigError, BudgetExceeded: the run must end.
        """
        id, memo, error = context.message_id, self.memo, None
        if context.frame.recalls:
            found = memo.find(id, inbox, composite, arguments or "")
            if found is not None:
                return self._recalled(found)
        started, heard = self._clock() - self._start, tuple(map(_ID, inbox))
        if self.on_event is not None:
            at: Any = {"run": self.run, "id": id, "node": context.node, "round": context.round}
            self.on_event(CallStarted(**at, heard=heard, at=started))
        try:
            reply = memo.replies.get(id)
            if reply is None:
                most, answer = self._most if seconds is None else seconds, node(inbox, context)
                if most != inf:
                    answer = self._deadlines.within(most, answer)
                if self._traced:
                    with telemetry.span(*(span or ("invoke_agent", context.node)), id=id):
                        reply = await answer
                else:
                    reply = await answer
                if not isinstance(reply, NodeReply):
                    raise TypeError(_NO_REPLY.format(type(reply).__name__))
        except Unanswered:
            raise
        except Exception as failure:
            error = self._failed(context, failure, step=arguments is not None)
            reply = NodeReply(error=str(error))
        ended = self._clock() - self._start
        call = _record(reply, context, heard, started, ended, error, arguments)
        past = memo.calls.get(id) if composite else None
        if past is not None and (past.message, past.heard) == (call.message, heard):
            call = past  # its calls inside were not made again
        self._add(call)
        if self.on_event is not None:
            self.on_event(CallFinished(run=self.run, call=call))
        return call

    def _recalled(self, call: Call) -> Call:
        """Take a call from the memo, with all calls inside it."""
        inside = self.memo.inside.get(call.id, [])
        self.inside.setdefault(call.id, []).extend(map(_ID, inside))
        for each in (*inside, call):
            self._add(each)
        return call

    def _failed(self, context: NodeContext, failure: Exception, *, step: bool) -> Failure:
        """The reason for a failure, for the tombstone; raises if the run must end."""
        abort = self._limits.on_failure == "abort" and not step
        if isinstance(failure, FOR_THE_USER) or (abort and isinstance(failure, NodeError)):
            raise failure
        reason = failure.failure if isinstance(failure, Known) else Failure.of(failure)
        if abort:
            where: Any = {"node": context.node, "round": context.round, "run": self.run}
            raise NodeError(str(reason), **where, kind=reason.kind) from failure
        self.raised[context.message_id] = failure
        return msgspec.structs.replace(reason, node=context.node)

    def next_step(self, outer: NodeContext, name: str, number: int | None) -> int:
        """The number of a step inside a call, which gets a place in the trace."""
        places = self.inside.setdefault(outer.message_id, [])
        number = len(places) if number is None else number
        id = f"{outer.message_id}/{name}:{number}"
        if id in self.memo.without:
            raise ConfigError(
                f"the call '{id}' is part of the work of '{outer.node}', so its message cannot be "
                "left out; replace it (messages={...}), or make the call again"
            )
        places.append(id)
        return number

    def _add(self, call: Call) -> None:
        """Put a call into the log, and into the journal if that does not have it."""
        self.log[call.id] = call
        if self._journal is not None:
            inside = [id for id in self.order(self.inside.get(call.id, ())) if id in self.log]
            self._journal.write(self.run, call, tuple(inside))

    def order(self, ids: Iterable[str]) -> Iterator[str]:
        """These ids in the order of the trace: those inside a call after it."""
        for id in ids:
            yield id
            if id in self.inside:
                yield from self.order(self.inside[id])

    def ask(self, question: Question) -> None:
        """Keep a question that waits for a person, also in the journal."""
        self.questions[question.id] = question
        if self._journal is not None:
            self._journal.write(self.run, question)


def _record(
    reply: NodeReply,
    context: NodeContext,
    heard: tuple[str, ...],
    started: float,
    ended: float,
    error: Failure | None,
    arguments: str | None,
) -> Call:
    """The record of a call. Its message has the id, sender and round of the call."""
    done = reply.completion
    message = Message(
        id=context.message_id,
        sender=context.node,
        round=context.round,
        content=encodable(reply.content),
        action=reply.action,
        error=None if reply.error is None else encodable(reply.error),
        prompt_format=(done or reply).prompt_format,
        abstains=reply.abstains,
    )
    return Call(
        message=message,
        completion=None if done is None else _generation(done),
        heard=heard,
        order=reply.order,
        temperature=reply.temperature,
        seed=reply.seed,
        ballot=reply.ballot,
        started=started,
        ended=ended,
        error=error,
        arguments=arguments or "",
        step=None if arguments is None else context.round,
    )


def _generation(completion: Completion) -> Generation:
    """How a reply was made, without the reply, which the message holds."""
    found = msgspec.convert(completion, Generation, from_attributes=True)
    prompt, model = encodable(found.prompt), encodable(found.model)
    return msgspec.structs.replace(found, prompt=prompt, model=model)
