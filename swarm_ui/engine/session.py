"""One run: its log, the memo of recorded calls, edits, limits, and the calls of nodes and steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from swarm_ui.engine import telemetry
from swarm_ui.engine.bounds import Bounds, Expired, around
from swarm_ui.engine.events import CallFinished, CallStarted, Failed, OnEvent
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.plan import Lease, lease
from swarm_ui.engine.record import (
    Recalled,
    Unanswered,
    call_of,
    hears_the_same,
    reason_of,
)
from swarm_ui.errors import FOR_THE_USER, ConfigError, Failure, NodeError, NodeTimeout
from swarm_ui.message import Message, Question
from swarm_ui.model import ChatModel, Request
from swarm_ui.node import Answer, NodeContext, NodeReply, derive, parts_of
from swarm_ui.trace.records import Call

if TYPE_CHECKING:
    from swarm_ui.storage.journal import Journal

Rewrite = Callable[[Request], Request]


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a recorded run, by message id."""

    messages: Mapping[str, Message] = {}
    """Messages that replace those of the nodes."""
    without: frozenset[str] = frozenset()
    """Messages that are not delivered."""
    again: frozenset[str] = frozenset()
    """Calls to make again, although their inbox is the recorded one."""
    samples: Mapping[str, int] = {}
    """Number of the sample of each call. Sample 0 has the seed of the original call; the others
    have different seeds."""
    rewrites: Mapping[str, Rewrite] = {}
    """Functions that change a call's request to its model."""
    answers: Mapping[str, str] = {}
    """Answers of people to the questions of nodes, by message id or by the node's name."""


UNCHANGED = Edits()


class Calls(Protocol):
    """Calls inside a run in order: a frame of :mod:`swarm_ui.engine.run`."""

    def ids(self) -> Iterable[str]: ...


class Session:
    """One run. Belongs to one event loop."""

    __slots__ = (
        "_around_edits", "_held", "_memo_inside", "_pins", "bounds", "clock", "edits",
        "inside", "journal", "limits", "log", "memo", "on_event",
        "questions", "raised", "run", "skipped", "start", "stored", "traceparent", "tracer",
    )  # fmt: skip

    def __init__(
        self,
        run: str,
        limits: Limits,
        *,
        on_event: OnEvent | None,
        journal: Journal | None,
        stored: Mapping[str, Call],
        memo: Mapping[str, Call],
        edits: Edits,
    ) -> None:
        """
        Args:
            on_event: called with every event.
            journal: keeps every call.
            stored: the calls that the journal has already.
            memo: recorded calls. A call that hears the same is not made again.
            edits: changes to the recorded run.
        """
        self.run, self.limits, self.on_event = run, limits, on_event
        #: makes spans, in a program that uses OpenTelemetry
        self.tracer = telemetry.tracer()
        #: W3C trace context of the run's span
        self.traceparent = ""
        self.journal, self.stored, self.memo, self.edits = journal, stored, memo, edits
        #: every call, by the id of its message
        self.log: dict[str, Call] = {}
        #: for a call, its steps by id, and the graphs that it ran
        self.inside: dict[str, list[str | Calls]] = {}
        self.skipped: set[str] = set()
        #: exceptions of the calls that failed, by message id
        self.raised: dict[str, Exception] = {}
        #: open questions of the run, by message id
        self.questions: dict[str, Question] = {}
        self._memo_inside = _inside(memo)
        #: ids of calls inside of which something is edited
        self._around_edits = frozenset(
            each for id in (*edits.messages, *edits.without, *edits.again) for each in around(id)
        )
        self.bounds = Bounds(limits)
        self.clock, self.start = self.bounds.clock, self.bounds.start
        self._pins: dict[tuple[int, str], str] = {}
        self._held = ExitStack()

    def hold(self, leases: Sequence[Lease]) -> None:
        """Pin the present versions of adapters until the run is over."""
        for model, adapter in leases:
            if (id(model), adapter) not in self._pins:
                version = lease(model, adapter)
                self._held.callback(model.release, version)
                self._pins[id(model), adapter] = version

    def close(self) -> None:
        """Release what the run holds."""
        self.bounds.stop()
        self.raised.clear()  # their frames refer to the session
        self._held.close()

    # -- calls --------------------------------------------------------------------------------

    def recalled(self, id: str, inbox: Sequence[Message], composite: bool) -> Message | None:
        """Take a call from the memo, with all calls inside it, if it hears the same messages.

        A node with nodes inside is called again, unless it failed; its recorded calls are not made
        again.
        """
        edits, found = self.edits, self.memo.get(id)
        if found is None or id in edits.again or id in edits.messages:
            return None
        if id in self._around_edits or (composite and found.error is None):
            return None  # made again; the steps inside that hear the same are not
        if not hears_the_same(found, inbox, self.memo):
            return None
        self._add(found)
        inside = self._memo_inside.get(id)
        if inside is not None:
            self.inside[id] = list(inside)
            for each in inside:
                self._add(self.memo[each])
        return found.message

    async def call(
        self,
        node: Answer,
        inbox: Sequence[Message],
        context: NodeContext,
        heard: tuple[str, ...],
        task: asyncio.Task[None],
        seconds: float | None,
        composite: bool,
        closes: bool,
        broken: Exception | None,
    ) -> Message:
        """Call a node of a graph, and record the call. A failure becomes a tombstone, or is raised.

        Args:
            heard: ids of the inbox.
            task, seconds, composite, closes: see :meth:`Bounds.answer`.
            broken: why the call fails before the node is called.

        Raises:
            Unanswered: the node asked a person.
            NodeError, ConfigError, BudgetExceeded: the run must end.
        """
        started = self.clock() - self.start
        if self.on_event is not None:
            self._tell(CallStarted, context, heard=heard, at=started)
        error: Failure | None = None
        reply: NodeReply | Message | None = None
        if self.edits.messages:
            reply = self.edits.messages.get(context.message_id)
        try:
            if broken is not None:
                raise broken
            if reply is None:
                reply = await self.bounds.answer(
                    node, inbox, context, task, seconds, composite, closes
                )
                if type(reply) is not NodeReply and not isinstance(reply, Message):
                    raise _not_a_reply(reply)
        except Unanswered:
            raise
        except Exception as failure:
            error = self._failed(context, failure)
            reply = NodeReply(error=str(error))
        call = call_of(reply, context, heard, started, self.clock() - self.start, error)
        return self._finished(call, inbox if composite else None).message

    async def traced_call(
        self, node: Answer, inbox: Sequence[Message], context: NodeContext, *rest: Any
    ) -> Message:
        """:meth:`call` as a span."""
        assert self.tracer is not None
        ids = {"id": context.message_id, "round": context.round, "heard": rest[0]}
        with telemetry.span(self.tracer, "invoke_agent", context.node, **ids) as span:
            message = await self.call(node, inbox, context, *rest)
            telemetry.describe(span, self.log[message.id])
        return message

    async def step(
        self,
        context: NodeContext,
        name: str,
        heard: Sequence[Message],
        answer: Answer,
        *,
        number: int | None = None,
        arguments: str = "",
        tolerant: bool = False,
        limited: bool = False,
        **kind: str,
    ) -> Call:
        """Make a step inside a call; see :meth:`swarm_ui.node.NodeContext.step`."""
        steps = self.inside.setdefault(context.message_id, [])
        if number is None:
            number = sum(isinstance(part, str) for part in steps)
        inside = self._inside_of(context, name, number)
        steps.append(inside.message_id)
        found = self._recalled_step(inside, context, heard, answer, arguments)
        if found is not None:
            if found.error is not None and not tolerant:
                raise Recalled(found.error)
            return found
        made = self._made_step(inside, heard, answer, arguments, tolerant, limited, kind)
        if self.tracer is None or not (kind or limited):
            return await made
        operation = "chat" if "model" in kind else "execute_tool" if kind else "invoke_agent"
        what = next(iter(kind.values()), inside.node)
        ids = {"id": inside.message_id, "round": number, "heard": tuple([m.id for m in heard])}
        with telemetry.span(self.tracer, operation, what, **ids) as span:
            call = await made
            telemetry.describe(span, call)
        return call

    async def _made_step(
        self,
        inside: NodeContext,
        heard: Sequence[Message],
        answer: Answer,
        arguments: str,
        tolerant: bool,
        limited: bool,
        kind: Mapping[str, str],
    ) -> Call:
        """Make a step that is not taken from the memo, and record it."""
        composite, ids = bool(parts_of(answer)), tuple([message.id for message in heard])
        started = self.clock() - self.start
        self._tell(CallStarted, inside, heard=ids, at=started, **kind)
        failed: BaseException | None = None
        failure: Failure | None = None
        reply: NodeReply | Message | None = self.edits.messages.get(inside.message_id)
        try:
            if reply is None and limited:
                task, seconds = asyncio.current_task(), getattr(answer, "timeout", None)
                assert task is not None
                reply = await self.bounds.answer(answer, heard, inside, task, seconds, composite)
            elif reply is None:
                reply = await answer(heard, inside)
            if not isinstance(reply, NodeReply | Message):
                raise _not_a_reply(reply)
        except Unanswered:
            raise
        except (Exception, asyncio.CancelledError) as error:  # recorded, then raised
            failed, failure = error, reason_of(error, inside.node)
            self._tell(Failed, inside, error=failure)
            if isinstance(error, FOR_THE_USER):
                raise  # not recorded: a resumed run makes the step again
            reply = NodeReply(error=str(failure))
        call = call_of(reply, inside, ids, started, self.clock() - self.start, failure)
        call = msgspec.structs.replace(call, arguments=arguments, step=inside.round)
        stopped = isinstance(failed, asyncio.CancelledError)
        call = self._finished(call, heard if composite else None, keep=not stopped)
        if failed is not None and (stopped or not tolerant):
            raise failed
        return call

    def _inside_of(self, outer: NodeContext, name: str, number: int) -> NodeContext:
        """The context of a step."""
        id = f"{outer.message_id}/{name}:{number}"
        if id in self.edits.without:
            raise ConfigError(
                f"the call '{id}' is part of the work of '{outer.node}', so its message cannot be "
                "left out; replace it (messages={...}), or make the call again"
            )
        return msgspec.structs.replace(
            outer,
            node=f"{outer.node}/{name}",
            round=number,
            message_id=id,
            run_seed=derive(outer.seed, "inner"),
            own=None,
        )

    def _recalled_step(
        self,
        inside: NodeContext,
        outer: NodeContext,
        heard: Sequence[Message],
        answer: Answer,
        arguments: str,
    ) -> Call | None:
        id = inside.message_id
        found = self.memo.get(id)
        if found is None or outer.message_id in self.edits.again or found.arguments != arguments:
            return None
        if found.error is not None and found.error.kind == "cancelled":
            return None
        return None if self.recalled(id, heard, bool(parts_of(answer))) is None else found

    def _finished(self, call: Call, around: Sequence[Message] | None, *, keep: bool = True) -> Call:
        """Put a call into the log, and report it.

        ``around``: the inbox of a node with nodes inside. If these gave the recorded answer again,
        the call is the recorded one.
        """
        if around is not None and self.memo:
            found = self.memo.get(call.id)
            if found is not None and found.message == call.message:
                call = found if hears_the_same(found, around, self.memo) else call
        self._add(call, keep=keep)
        if self.on_event is not None:
            self.on_event(CallFinished(run=self.run, call=call))
        return call

    def _failed(self, context: NodeContext, failure: Exception) -> Failure:
        """The reason for the failure, for the tombstone; raises if the run must end."""
        reason = reason_of(failure, context.node)
        if self.on_event is not None:
            self._tell(Failed, context, error=reason)
        abort = self.limits.on_failure == "abort"
        if isinstance(failure, FOR_THE_USER) or (abort and isinstance(failure, NodeError)):
            raise failure
        if not abort:
            self.raised[context.message_id] = failure
            return reason
        kind = NodeTimeout if isinstance(failure, Expired) else NodeError
        error = kind(str(reason), node=context.node, round=context.round, run=self.run)
        error.kind = reason.kind
        raise error from failure

    def _add(self, call: Call, *, keep: bool = True) -> None:
        """Put a call into the log, and into the journal if that does not have it."""
        id = call.message.id
        self.log[id] = call
        if self.journal is not None and keep and self.stored.get(id) is not call:
            calls: list[Call] = []
            if id in self.inside:
                self._collect((id,), calls, [])
            self.journal.write(self.run, call, tuple([each.id for each in calls[1:]]))

    def _tell(self, kind: type[CallStarted | Failed], context: NodeContext, **more: Any) -> None:
        """Report an event of a call."""
        if self.on_event is not None:
            id, node, round = context.message_id, context.node, context.round
            self.on_event(kind(run=self.run, id=id, node=node, round=round, **more))

    # -- people and models --------------------------------------------------------------------

    async def ask(self, question: Question) -> str:
        """The answer to a question.

        Raises:
            Unanswered: there is none yet; the question is kept, and written to the journal.
        """
        answers = self.edits.answers
        answer = answers.get(question.id, answers.get(question.node))
        if answer is not None:
            return answer
        question = msgspec.structs.replace(question, traceparent=self.traceparent)
        self.questions[question.id] = question
        if self.journal is not None:
            self.journal.ask(self.run, question)
        raise Unanswered(question.id)

    def pinned(self, model: ChatModel, request: Request) -> Request:
        """The request, naming the version its adapter had when the run began."""
        if request.adapter is None or not self._pins:
            return request
        version = self._pins.get((id(model), request.adapter))
        if version is None:
            return request
        return msgspec.structs.replace(request, adapter=version)

    def rewritten(self, id: str, request: Request) -> Request:
        """The request of a call, with the edit made to it."""
        rewrite = self.edits.rewrites.get(id)
        return request if rewrite is None else rewrite(request)

    # -- the log in order ---------------------------------------------------------------------

    def collected(self, calls: Calls) -> tuple[list[Call], list[str]]:
        """All calls, by number, those inside a call after it; and the ids of skipped calls, in the
        same order."""
        made: list[Call] = []
        skipped: list[str] = []
        if not self.inside and not self.skipped:
            return [self.log[id] for id in calls.ids() if id in self.log], []
        self._collect(calls.ids(), made, skipped)
        return made, skipped

    def _collect(self, ids: Iterable[str], made: list[Call], skipped: list[str]) -> None:
        for id in ids:
            if id in self.log:
                made.append(self.log[id])
            elif id in self.skipped:
                skipped.append(id)
            for part in self.inside.get(id, ()):
                self._collect((part,) if isinstance(part, str) else part.ids(), made, skipped)


def _inside(memo: Mapping[str, Call]) -> dict[str, list[str]]:
    """Ids of the calls made inside each recorded call."""
    found: dict[str, list[str]] = {}
    for id in memo:
        for each in around(id):
            found.setdefault(each, []).append(id)
    return found


def _not_a_reply(found: object) -> TypeError:
    return TypeError(f"answered with a {type(found).__name__}, not a NodeReply")
