"""The state of one run of a graph: its messages, calls and skipped calls so far."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from swarm_ui.agent_view import View, identity
from swarm_ui.engine.call_record import (
    called,
    first_failure,
    is_step,
    message_of,
    node_error,
    succeeded,
    until_error,
)
from swarm_ui.engine.events import CallFinished, CallStarted, Failed, Skipped, Voted, traceparent_of
from swarm_ui.engine.node_call import (
    Answer,
    Expired,
    FailedBefore,
    ask,
    both,
    reason_of,
    tombstone,
)
from swarm_ui.engine.run_context import RunContext, Unanswered
from swarm_ui.engine.schedule import schedule_of
from swarm_ui.engine.scheduler import Scheduler, run_part
from swarm_ui.errors import (
    FOR_THE_USER,
    Failure,
    NodeError,
    NodeTimeout,
    RunFailed,
    RunPaused,
)
from swarm_ui.graph.check import function_name
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.mapped_graph import inner_graph
from swarm_ui.message import Message
from swarm_ui.model import Decision
from swarm_ui.node import NodeContext, NodeReply, Source, Until
from swarm_ui.observation import Observation
from swarm_ui.storage.protocol import hears_the_same
from swarm_ui.trace.records import Call, Trace, hear


class RunState:
    """The state of one run. Call numbers are those of the graph's plan."""

    __slots__ = (
        "_around", "_calls", "_clock", "_gaps", "_graph", "_inner", "_number", "_observation",
        "_path", "_plan", "_prefix", "_rounds", "_said", "_seed", "_session", "_start", "skipped",
        "waiting",
    )  # fmt: skip

    def __init__(
        self,
        graph: Dag,
        observation: Observation,
        seed: int,
        session: RunContext,
        around: Sequence[Message] = (),
        path: str = "",
        prefix: str = "",
    ) -> None:
        """
        Args:
            around: for a nested graph, the messages that its first nodes receive from outside.
            path: prefix of its node names, such as ``"team/"``.
            prefix: prefix of its message ids, such as ``"team:1/"``.
        """
        plan = schedule_of(graph)
        self._graph, self._plan, self._observation = graph, plan, observation
        self._seed, self._session = seed, session
        self._around, self._path, self._prefix = tuple(around), path, prefix
        self._said: list[Message | None] = [None] * plan.size
        self._calls: list[Call | None] = [None] * plan.size
        self._gaps = plan.conditional or bool(session.edits.without)
        self._inner: dict[int, tuple[tuple[Message, Call], ...]] = {}
        self.skipped: dict[int, tuple[str, ...]] = {}
        #: calls that wait for a person, and those that depend on them
        self.waiting: set[int] = set()
        self._number: dict[str, int] | None = None
        self._rounds = graph.rounds
        self._clock, self._start = session.clock, session.start

    async def finish(self) -> None:
        """Make every call. No task is left running when this returns or raises.

        Raises:
            NodeError, ConfigError, BudgetExceeded: the failure that ended the run early.
            RunPaused: a question is open. Only the outermost graph raises it; a nested graph with
                an open question is ``waiting``.
            RunFailed: no node succeeded and at least one failed. Only the outermost graph raises
                it; a nested one answers with the error of its output.
        """
        if self._graph.until is None:
            await Scheduler(self._make, self._plan.waiting, self._plan.successors).finish()
        else:
            await self._round_by_round(self._graph.until)
        if self.waiting:
            if not self._prefix:
                open_ones = sorted(self._session.questions.values(), key=lambda q: (q.round, q.id))
                raise RunPaused(self._session.run, tuple(open_ones))
            return
        if self._prefix:
            return
        self._check_success()
        if self._session.on_event is not None:
            answer = self.answer()
            action = None if answer is None else answer.action
            self._session.on_event(
                Voted(run=self._session.run, ballot=self.ballot(), action=action)
            )

    def _check_success(self) -> None:
        """Raise ``RunFailed`` if no node succeeded and at least one failed."""
        for message, call in zip(self._said, self._calls, strict=True):
            if message is not None and call is not None and succeeded(message, call):
                return  # nearly always the first call, so this check takes no time
        if (first := first_failure(self.recorded_calls())) is not None:
            told = f"no node of the run succeeded; the first failure: {first.error}"
            cause = self._session.raised.get(first.message)
            raise node_error(RunFailed, told, first, self._session.run) from cause

    # -- rounds that may end early --------------------------------------------------------------

    async def _round_by_round(self, until: Until) -> None:
        """Make every call, but no further round once ``until`` holds.

        A round begins when the one before is complete, so that the result does not depend on the
        order in which answers arrive. What comes after the last round is the same as in a graph
        with only so many rounds.
        """
        team, newest = self._plan.team, dict[str, Message]()
        for round in range(self._graph.rounds):
            first, stop = round * team, (round + 1) * team
            await run_part(self._make, self._plan, range(first, stop))
            if self.waiting:
                return
            for k in range(first, stop):
                message = self._said[k]
                if message is not None:
                    newest[self._plan.names[k]] = message
            if round < self._graph.rounds - 1 and self._over(until, newest, round):
                self._end_after(round)
                break
        await run_part(self._make, self._plan, range(stop, self._plan.size))

    def _over(self, until: Until, newest: dict[str, Message], round: int) -> bool:
        try:
            return bool(until(MappingProxyType(newest)))
        except Exception as failure:
            told = (
                f"until: '{function_name(until)}' of graph '{self._path}{self._graph.name}' failed "
                f"after round {round}: {Failure.of(failure)}"
            )
            calls = filter(None, self._calls)
            raise until_error(told, newest, calls, self._session.run) from failure

    def _end_after(self, round: int) -> None:
        """Make ``round`` the last round, and go on with the calls that follow the last round."""
        self._plan = plan = schedule_of(self._graph, round)
        done = (round + 1) * plan.team
        self._said[done:] = [None] * (plan.size - done)
        self._calls[done:] = [None] * (plan.size - done)
        self._rounds, self._number = round + 1, None

    # -- one call -----------------------------------------------------------------------------

    async def _make(self, k: int, task: asyncio.Task[None]) -> None:
        """Make one call and record it, or take it from the record, or skip it."""
        if self.waiting and not self.waiting.isdisjoint(self._plan.inputs[k]):
            self.waiting.add(k)
            return
        plan, session = self._plan, self._session
        started = self._clock() - self._start
        id = self._prefix + plan.ids[k]
        error: Failure | None = None
        inbox: list[Message] | None
        if self._gaps:
            inbox, error = self._checked_inbox(k, id)
            if inbox is None:
                return
        else:
            inbox = [self._said[j] for j in plan.inputs[k]]  # type: ignore[misc]
        if self._around and plan.open[k]:
            inbox.extend(self._around)
        if not session.past or not self._recorded(k, id, inbox):
            context = self._context(k, id)
            if session.on_event is not None:
                heard = tuple([m.id for m in inbox])
                self._tell(CallStarted, k, id, heard=heard, at=started)
            answer: Answer | None = None
            if error is not None:
                answer = tombstone(error)
            elif session.edits.messages and id in session.edits.messages:
                answer = session.edits.messages[id], None, None
            if answer is None:
                try:
                    if session.past:
                        self._fail_as_before(id, inbox)
                        self._separate(k, context, fallback=False)
                    reply = await ask(plan.nodes[k], plan, k, inbox, context, task)
                    answer = reply, None, None
                except Unanswered as question:
                    self._wait(k, context, question)
                    return
                except Exception as failure:
                    answer = await self._rescue(k, inbox, context, task, failure)
            if answer is None:
                return
            self._keep(k, inbox, context, answer, started)
        if session.journal is not None:
            await self._write(k)

    def _checked_inbox(self, k: int, id: str) -> tuple[list[Message] | None, Failure | None]:
        """The inbox of a call in a graph with conditions, or ``None`` if the call is skipped; and
        why a condition failed."""
        try:
            return self._passing(k, id), None
        except Exception as failure:
            return [], self._failed(k, id, failure)

    def _context(self, k: int, id: str) -> NodeContext:
        plan, own = self._plan, self._plan.own[k]
        return NodeContext(
            self._observation,
            self._path + plan.names[k],
            plan.rounds[k],
            self._graph.rounds,
            id,
            self._seed,
            self._said[own] if own >= 0 else None,
            self._session,
            self,
        )

    async def _write(self, k: int) -> None:
        """Write a call to the store before its message is delivered, unless already written."""
        message, call = self._said[k], self._calls[k]
        assert message is not None and call is not None
        # A nested graph has written its calls itself. Calls that a plain node returned are written
        # here, before its own.
        inner = () if self._plan.nested[k] else self._inner.get(k, ())
        for pair in (*inner, (message, call)):
            await self._session.keep(*pair)

    async def _rescue(
        self,
        k: int,
        inbox: list[Message],
        context: NodeContext,
        task: asyncio.Task[None],
        failure: Exception,
    ) -> Answer | None:
        """The answer of the fallback after a failure, or a tombstone if no fallback answers.

        ``None`` if the fallback asks a person.
        """
        fallback, id = self._plan.fallbacks[k], context.message_id
        if fallback is None or isinstance(failure, FOR_THE_USER):
            return tombstone(self._failed(k, id, failure))
        reason = reason_of(failure, context.node)
        self._tell(Failed, k, id, error=reason)
        self._separate(k, context, fallback=True)
        try:
            reply = await ask(fallback, self._plan, k, inbox, context, task)
        except Unanswered as question:
            self._wait(k, context, question)
            return None
        except Exception as second:
            return tombstone(both(reason, self._failed(k, id, second)))
        return reply, None, reason

    def _wait(self, k: int, context: NodeContext, question: Unanswered) -> None:
        """Mark a call as waiting for a person, and keep the calls that were made inside it."""
        self.waiting.add(k)
        self._inner[k] = (*(context.inner or ()), *question.inner)

    def _passing(self, k: int, id: str) -> list[Message] | None:
        """The messages that the edges carry to a call, or ``None`` if the call is skipped."""
        plan, without = self._plan, self._session.edits.without
        if id in without:
            return None
        inbox: list[Message] = []
        conditions = plan.conditions[k] or (None,) * len(plan.inputs[k])
        closed = arrived = False
        for j, condition in zip(plan.inputs[k], conditions, strict=True):
            message = self._said[j]
            if message is not None and (condition is None or condition(message)):
                inbox.append(message)
                arrived = arrived or j != plan.own[k]
            elif j != plan.own[k] and self._prefix + plan.ids[j] not in without:
                closed = True
        if closed and not arrived:
            self.skipped[k] = (id,)
            self._tell(Skipped, k, id)
            return None
        return inbox

    def _recorded(self, k: int, id: str, inbox: list[Message]) -> bool:
        """Take a call from the record if its inbox is the recorded one. Returns whether it was
        taken."""
        past, edits = self._session.past, self._session.edits
        found = past.get(id)
        if found is None or id in edits.again or id in edits.messages:
            return False
        if id in self._session.around_edits and not self._plan.nested[k]:
            return False  # made again; the calls inside that hear the same are not
        message, call = found
        if not hears_the_same(call, inbox, past):
            return False
        if self._by_graph(k, call):
            return False  # entered again, to collect the messages and skipped calls inside
        self._said[k], self._calls[k] = message, call
        inside = self._session.inside.get(id, ())
        if inside:  # the steps of a node belong to it also if it failed
            failed = call.error is not None or call.rescued is not None
            own = [pair for pair in inside if not failed or is_step(pair[1], id)]
            self._inner[k] = tuple(own)
        return True

    def _by_graph(self, k: int, call: Call) -> bool:
        """Whether a graph gave the answer of a call: its node, or its fallback."""
        if call.rescued is not None:
            return inner_graph(self._plan.fallbacks[k]) is not None
        return self._plan.nested[k] and call.error is None

    def _fail_as_before(self, id: str, inbox: list[Message]) -> None:
        """Raise if this call failed in the record, and its fallback answered.

        Then only the fallback is asked again. A call is made again if it is edited, or a step of
        it.
        """
        past, edits = self._session.past, self._session.edits
        found = past.get(id)
        if found is None or found[1].rescued is None or id in edits.again:
            return
        edited = (past[e][1] for e in (*edits.messages, *edits.without, *edits.again) if e in past)
        if not any(is_step(call, id) for call in edited) and hears_the_same(found[1], inbox, past):
            raise FailedBefore(found[1].rescued)

    def _separate(self, k: int, context: NodeContext, *, fallback: bool) -> None:
        """Keep the calls inside a graph apart from those inside its fallback.

        Calls inside the two have equal ids if nodes have equal names, and only those of one are
        recorded: of the graph that answered. The other one makes all its calls.
        """
        plan, found = self._plan, self._session.past.get(context.message_id)
        first, second = inner_graph(plan.nodes[k]), inner_graph(plan.fallbacks[k])
        context.session = self._session
        if first is not None and second is not None and first.nodes.keys() & second.nodes.keys():
            rescued = found is not None and found[1].rescued is not None
            if rescued != fallback:
                context.session = self._session.without_record()

    def _failed(self, k: int, id: str, failure: Exception) -> Failure:
        """The reason for the failure, for the tombstone; raises if the run must end."""
        name = self._path + self._plan.names[k]
        reason = reason_of(failure, name)
        self._tell(Failed, k, id, error=reason)
        abort = self._session.limits.on_failure == "abort"
        if isinstance(failure, FOR_THE_USER) or (abort and isinstance(failure, NodeError)):
            raise failure
        if not abort:
            self._session.raised[id] = failure
            return reason
        kind = NodeTimeout if isinstance(failure, Expired) else NodeError
        error = kind(str(reason), node=name, round=self._plan.rounds[k], run=self._session.run)
        error.kind = reason.kind
        raise error from failure

    def _keep(
        self,
        k: int,
        inbox: list[Message],
        context: NodeContext,
        answer: Answer,
        started: float,
    ) -> None:
        """Record an answer as a message and a call."""
        reply, error, rescued = answer
        if context.inner:
            self._inner[k] = tuple(context.inner)
        if type(reply) is NodeReply:
            if reply.inner:
                self._inner[k] = (*self._inner.get(k, ()), *reply.inner)
            if reply.skipped:
                self.skipped[k] = reply.skipped
        message = message_of(reply, context)
        whole = not self._gaps and not self._around and not self._prefix
        heard = self._plan.heard[k] if whole else tuple([m.id for m in inbox])
        times = (started, self._clock() - self._start)
        call = called(reply, message, heard, times, error, rescued)
        if (self._plan.nested[k] or rescued is not None) and self._by_graph(k, call):
            message, call = self._unchanged(message, call, inbox)
        self._said[k], self._calls[k] = message, call
        if self._session.on_event is not None:
            self._session.on_event(CallFinished(run=self._session.run, message=message, call=call))

    def _unchanged(
        self, message: Message, call: Call, inbox: list[Message]
    ) -> tuple[Message, Call]:
        """The recorded message and call, if a graph gave the same answer again.

        A graph is always entered again, but its recorded calls are not made again.
        """
        found = self._session.past.get(message.id)
        if found is None or found[0] != message:
            return message, call
        return found if hears_the_same(found[1], inbox, self._session.past) else (message, call)

    def _tell(
        self, kind: type[CallStarted | Failed | Skipped], k: int, id: str, **more: Any
    ) -> None:
        """Report an event of a call."""
        if self._session.on_event is not None:
            name, round = self._path + self._plan.names[k], self._plan.rounds[k]
            self._session.on_event(
                kind(run=self._session.run, id=id, node=name, round=round, **more)
            )

    # -- messages and the trace ---------------------------------------------------------------

    def source(self, message: Message) -> Source:
        """The origin of a message; see :meth:`swarm_ui.node.NodeContext.source`."""
        if self._number is None:
            self._number = {self._prefix + id: k for k, id in enumerate(self._plan.ids)}
        k = self._number[message.id]
        call = self._calls[k]
        if call is None:
            raise KeyError(message.id)
        screen = self._observation
        view = identity(screen) if call.order is None else View(screen, call.order)
        known = {m.id: m for m in self._around}
        known |= {m.id: m for j in self._plan.inputs[k] if (m := self._said[j]) is not None}
        heard = tuple(hear(known[id], view, listener=call.node) for id in call.heard)
        node = self._plan.nodes[k]
        fallback = self._plan.fallbacks[k]
        if call.rescued is not None and fallback is not None:
            node = fallback
        decision = Decision(
            observation=view.observation, heard=heard, partial=view.partial, dropped=call.dropped
        )
        return Source(node, call, view, decision)

    def recorded_calls(self) -> list[tuple[Message, Call]]:
        """All messages with their calls, by call number; those inside a nested graph after it."""
        pairs: list[tuple[Message, Call]] = []
        for k, (message, call) in enumerate(zip(self._said, self._calls, strict=True)):
            if message is not None and call is not None:
                pairs.append((message, call))
            pairs.extend(self._inner.get(k, ()))
        return pairs

    def answer(self) -> Message | None:
        """The output's message; ``None`` if it has not answered or was skipped."""
        return self._said[self._plan.final]

    def ballot(self) -> dict[str, float]:
        """Weight of each proposal, if the output has voted."""
        call = self._calls[self._plan.final]
        return {} if call is None or call.ballot is None else call.ballot

    def skipped_ids(self) -> tuple[str, ...]:
        """Ids of the skipped calls, by call number."""
        return tuple([id for k in sorted(self.skipped) for id in self.skipped[k]])

    def trace(self, edge_logprob: float | None) -> Trace:
        """The trace of the run so far."""
        pairs = self.recorded_calls()
        answer = self.answer()
        graph = self._graph
        early = graph.until is not None and self._rounds < graph.rounds
        return Trace(
            run=self._session.run,
            seed=self._seed,
            observation=self._observation,
            agents=graph.agents,
            rounds=self._rounds,
            ended_by=function_name(graph.until) if early else "",
            edges=graph.communication_edges,
            delays=tuple([graph.delays.get(e, 0) for e in graph.communication_edges])
            if graph.delays
            else (),
            edge_logprob=edge_logprob,
            messages=tuple([message for message, _ in pairs]),
            calls=tuple([call for _, call in pairs]),
            skipped=self.skipped_ids(),
            ballot=self.ballot(),
            output_id="" if answer is None else answer.id,
            action=None if answer is None else answer.action,
            traceparent=traceparent_of(self._session.on_event) if self.waiting else "",
        )
