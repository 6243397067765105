"""One run: its log, the memo of recorded calls, edits, limits, and the calls of nodes and steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from swarm_ui.engine import telemetry
from swarm_ui.engine.events import CallFinished, CallStarted, Failed, OnEvent
from swarm_ui.engine.limits import Bound, Bounds, Expired, Limits, around
from swarm_ui.engine.plan import Lease, lease
from swarm_ui.engine.record import Recalled, Unanswered, call_of, hears_the_same, reason_of
from swarm_ui.errors import FOR_THE_USER, ConfigError, Failure, NodeError, NodeTimeout
from swarm_ui.message import Message, Question
from swarm_ui.model import ChatModel, Request
from swarm_ui.node import Answer, NodeContext, NodeReply, derive, parts_of
from swarm_ui.trace.records import Call

if TYPE_CHECKING:
    from swarm_ui.storage.journal import Journal


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
    answers: Mapping[str, str] = {}
    """Answers of people to the questions of nodes, by message id or by the node's name."""


UNCHANGED = Edits()


class Step(NamedTuple):
    """A step inside a call: a turn of a conversation, a call of a tool, a part of a fallback."""

    number: int
    arguments: str = ""
    model: str = ""
    """Name of the model that is asked."""
    tool: str = ""
    """Name of the tool that is called."""


class Session:
    """One run. Belongs to one event loop."""

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
        self.run, self.on_event = run, on_event
        self.journal, self.stored, self.memo, self.edits = journal, stored, memo, edits
        self.abort = limits.on_failure == "abort"
        #: every call, by the id of its message
        self.log: dict[str, Call] = {}
        #: for a call, the ids of the calls inside it that may be made, in order
        self.inside: dict[str, list[str]] = {}
        self.skipped: set[str] = set()
        #: exceptions of the calls that failed, by message id
        self.raised: dict[str, Exception] = {}
        #: open questions of the run, by message id
        self.questions: dict[str, Question] = {}
        #: W3C trace context of the run's span
        self.traceparent = ""
        self.bounds = Bounds(limits)
        self.clock, self.start = self.bounds.clock, self.bounds.start
        #: whether calls are spans
        self.traced = telemetry.tracer() is not None
        self._steps: dict[str, int] = {}
        self._memo_inside: dict[str, list[str]] = {}
        for id in memo:
            for each in around(id):
                self._memo_inside.setdefault(each, []).append(id)
        edited = (*edits.messages, *edits.without, *edits.again)
        #: ids of calls inside of which something is edited
        self._around_edits = frozenset(each for id in edited for each in around(id))
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
        bound: Bound | None,
        broken: Exception | None = None,
        step: Step | None = None,
    ) -> Call:
        """Call a node, or make a step inside a call, and record it. A failure becomes a tombstone.

        Args:
            heard: ids of the inbox.
            bound: its limits; ``None``: none but those of the call around it.
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
                if bound is None:
                    reply = await node(inbox, context)
                else:
                    reply = await self.bounds.answer(node, inbox, context, bound)
                if type(reply) is not NodeReply and not isinstance(reply, Message):
                    raise TypeError(f"answered with a {type(reply).__name__}, not a NodeReply")
        except Unanswered:
            raise
        except Exception as failure:
            error = self._failed(context, failure, abort=self.abort and step is None)
            reply = NodeReply(error=str(error))
        call = call_of(reply, context, heard, started, self.clock() - self.start, error)
        if step is not None:
            call = msgspec.structs.replace(call, arguments=step.arguments, step=step.number)
        if self.memo and bound is not None and bound.composite:
            # If the calls inside gave the recorded answer again, the call is the recorded one.
            found = self.memo.get(call.id)
            if found is not None and found.message == call.message:
                call = found if hears_the_same(found, inbox, self.memo) else call
        self._add(call)
        if self.on_event is not None:
            self.on_event(CallFinished(run=self.run, call=call))
        return call

    async def traced_call(
        self, node: Answer, inbox: Sequence[Message], context: NodeContext,
        heard: tuple[str, ...], bound: Bound | None, broken: Exception | None = None,
        step: Step | None = None,
    ) -> Call:  # fmt: skip
        """:meth:`call` as a span."""
        operation, name = "invoke_agent", context.node
        if step is not None and (step.model or step.tool):
            operation, name = ("chat", step.model) if step.model else ("execute_tool", step.tool)
        ids = {"id": context.message_id, "round": context.round, "heard": heard}
        with telemetry.span(operation, name, **ids) as span:
            call = await self.call(node, inbox, context, heard, bound, broken, step)
            if span is not None:
                telemetry.describe(span, call)
        return call

    async def step(
        self,
        outer: NodeContext,
        name: str,
        heard: Sequence[Message],
        answer: Answer,
        *,
        number: int | None,
        arguments: str,
        tolerant: bool,
        limited: bool,
        **kind: str,
    ) -> Call:
        """Make a step inside a call; see :meth:`swarm_ui.node.NodeContext.step`."""
        made = self._steps.get(outer.message_id, 0)
        number = made if number is None else number
        id = f"{outer.message_id}/{name}:{number}"
        if id in self.edits.without:
            raise ConfigError(
                f"the call '{id}' is part of the work of '{outer.node}', so its message cannot be "
                "left out; replace it (messages={...}), or make the call again"
            )
        self._steps[outer.message_id] = made + 1
        self.inside.setdefault(outer.message_id, []).append(id)
        context = msgspec.structs.replace(
            outer,
            node=f"{outer.node}/{name}",
            round=number,
            message_id=id,
            run_seed=derive(outer.seed, "inner"),
            own=None,
        )
        composite = bool(parts_of(answer))
        found = self.memo.get(id)
        same = found is not None and found.arguments == arguments
        if outer.message_id in self.edits.again or not same:
            found = None
        if found is not None and self.recalled(id, heard, composite) is not None:
            if found.error is not None and not tolerant:
                raise Recalled(found.error)
            return found
        seconds = getattr(answer, "timeout", None) if limited else None
        bound = Bound(seconds, composite) if limited or composite else None
        ids = tuple([message.id for message in heard])
        make = self.traced_call if self.traced else self.call
        step = Step(number, arguments, **kind)
        call = await make(answer, heard, context, ids, bound, None, step)
        if id in self.raised and not tolerant:
            raise self.raised[id]
        return call

    def _failed(self, context: NodeContext, failure: Exception, *, abort: bool) -> Failure:
        """The reason for a failure, for the tombstone; raises if the run must end."""
        reason = reason_of(failure, context.node)
        if self.on_event is not None:
            self._tell(Failed, context, error=reason)
        if isinstance(failure, FOR_THE_USER) or (abort and isinstance(failure, NodeError)):
            raise failure
        if not abort:
            self.raised[context.message_id] = failure
            return reason
        kind = NodeTimeout if isinstance(failure, Expired) else NodeError
        error = kind(str(reason), node=context.node, round=context.round, run=self.run)
        error.kind = reason.kind
        raise error from failure

    def _add(self, call: Call) -> None:
        """Put a call into the log, and into the journal if that does not have it."""
        id = call.message.id
        self.log[id] = call
        if self.journal is not None and self.stored.get(id) is not call:
            inside = self.collected(self.inside.get(id, ()))[0]
            self.journal.write(self.run, call, tuple([each.id for each in inside]))

    def _tell(self, kind: type[CallStarted | Failed], context: NodeContext, **more: Any) -> None:
        """Report an event of a call."""
        if self.on_event is not None:
            id, node, round = context.message_id, context.node, context.round
            self.on_event(kind(run=self.run, id=id, node=node, round=round, **more))

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
