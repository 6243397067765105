"""Runs a graph: every call starts as soon as its own inputs are available.

There is no barrier between nodes, levels or rounds: a slow branch delays only its successors. A run
has one flat log, in which every call has a message and a record under its id; calls inside a call
have ids with a prefix (``team:1/agent_0:0``). A call is not made if the memo has one with the same
id that heard the same messages. So replays, resumed runs and resampling are runs with a memo and
edits. Except for timings, a trace does not depend on the order in which answers arrive.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from types import MappingProxyType
from typing import TypedDict

from swarm_ui.engine import telemetry
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.memo import Memo, succeeded, to_keep
from swarm_ui.engine.plan import count_spent, plan_of, same_versions
from swarm_ui.engine.session import Session
from swarm_ui.engine.tasks import in_order
from swarm_ui.errors import (
    ConfigError,
    Failure,
    FailureKind,
    NodeError,
    RunFailed,
    RunPaused,
    SwarmError,
)
from swarm_ui.events import Finished, OnEvent
from swarm_ui.graph.check import function_name
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Message
from swarm_ui.node import Answer, NodeContext, NodeReply, Source, Unanswered, Until, derive
from swarm_ui.observation import Observation
from swarm_ui.storage.journal import Head, Journal
from swarm_ui.trace.records import Call, Trace, context_of

_NOTHING = Memo({})


class RunOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`~swarm_ui.collab_graph.CollabGraph.run`."""

    seed: int
    run_id: str
    limits: Limits | None
    journal: Journal | None
    on_event: OnEvent | None


async def run(
    graph: Dag,
    observation: Observation,
    *,
    seed: int = 0,
    run_id: str = "",
    limits: Limits | None = None,
    journal: Journal | None = None,
    on_event: OnEvent | None = None,
    memo: Memo | None = None,
) -> Trace:
    """Run a graph once on a screen; see :meth:`swarm_ui.collab_graph.CollabGraph.run`.

    ``memo``: of a run with this seed and screen.
    """
    if not isinstance(observation, Observation):
        hint = "; give the screen that its reset() returns" if hasattr(observation, "reset") else ""
        raise ConfigError(
            "a graph runs on an Observation, or on a string as the goal without a screen, "
            f"got an object of type {type(observation).__name__}{hint}"
        )
    memo, stored = memo or _NOTHING, dict[str, Call]()
    if journal is not None:
        head = Head(run=run_id, seed=seed, graph=graph.to_json(), observation=observation)
        stored = journal.open(head)
        memo = Memo(to_keep(stored), answers=memo.answers)
    try:
        count_spent(graph, run_id, seed, stored)
        with same_versions() as versions, telemetry.span("invoke_workflow", graph.name, run=run_id):
            session = Session(run_id, limits or Limits(), memo, versions, on_event, journal)
            frame = Frame(session, graph, observation, seed, order=[])
            try:
                await frame.finish()
                frame.conclude()
            except SwarmError as error:
                error.partial = frame.trace()
                raise
            finally:
                session.close()
        if journal is not None:
            journal.write(run_id, None)
    finally:
        if journal is not None:
            journal.close(run_id)
    trace = frame.trace()
    if on_event is not None:
        on_event(Finished(run=run_id, trace=trace))
    return trace


async def trace_of(running: Awaitable[Trace]) -> Trace:
    """The trace of a run, also if no node of it succeeded."""
    try:
        return await running
    except RunFailed as failed:
        trace: Trace = failed.partial
        return trace


_APART = 1 << 30  # more inputs than a call can have: it never gets ready


class Frame:
    """A graph in a run: the run's own graph, or one inside a call. Calls have the plan's numbers.

    It is what a :class:`~swarm_ui.node.NodeContext` knows of the engine.
    """

    def __init__(
        self,
        session: Session,
        graph: Dag,
        observation: Observation,
        seed: int,
        around: Sequence[Message] = (),
        path: str = "",
        prefix: str = "",
        *,
        order: list[str],
    ) -> None:
        """
        Args:
            around: for a nested graph, the messages that its first nodes receive from outside.
            path, prefix: of its node names (``"team/"``) and message ids (``"team:1/"``).
            order: gets the ids of its calls, in the order of the trace.
        """
        self.plan = plan = plan_of(graph)
        self.session, self.seed = session, seed
        self._graph, self._observation, self._around = graph, observation, tuple(around)
        self._path, self._prefix, self._order = path, prefix, order
        self._said: list[Message | None] = [None] * plan.size
        #: whether calls may be taken from the memo
        self._memo = bool(session.memo.calls)
        self._gaps = bool(plan.conditions or session.memo.without)
        #: calls that wait for a person, and those that depend on them
        self.waiting: set[int] = set()

    async def finish(self) -> None:
        """Make every call. No task is left running when this returns or raises.

        If a question is open, ``waiting`` is not empty afterwards. With ``until``, a round begins
        when the one before is complete, so that the result does not depend on the order in which
        answers arrive. What comes after the last round is the same as in a graph with only so many
        rounds.
        """
        versions = self.session.versions
        for model, adapter in self.plan.leases:
            if (id(model), adapter) not in versions:
                versions[id(model), adapter] = model, model.lease(adapter)
        graph, until, team, done = self._graph, self._graph.until, len(self._graph.agents), 0
        if until is not None:
            for round in range(graph.rounds):
                await self._part(range(done, done + team))
                done += team
                if self.waiting:
                    return
                if round < graph.rounds - 1 and self._over(until, done, round):
                    self.plan = plan_of(graph, round)
                    self._said[done:] = [None] * (self.plan.size - done)
                    break
        await self._part(range(done, self.plan.size))

    async def _part(self, part: range) -> None:
        """Make the calls of some consecutive numbers, once all calls before them are made."""
        plan = self.plan
        waiting: Sequence[int] = plan.waiting
        if len(part) < plan.size:
            waiting = [
                sum(j in part for j in inputs) if k in part else _APART
                for k, inputs in enumerate(plan.inputs)
            ]
        ids, prefix = plan.ids[part.start : part.stop], self._prefix
        self._order += [prefix + id for id in ids] if prefix else ids
        if part:
            await in_order(self._make, part, waiting, plan.successors)

    def _over(self, until: Until, done: int, round: int) -> bool:
        """Whether the rounds end, given the newest message of each agent."""
        said = [message for message in self._said[:done] if message is not None]
        newest = {message.sender.removeprefix(self._path): message for message in said}
        try:
            return bool(until(MappingProxyType(newest)))
        except Exception as failure:
            told = (
                f"until: '{function_name(until)}' of graph '{self._path}{self._graph.name}' failed "
                f"after round {round}: {Failure.of(failure)}. It gets the newest message of each "
                f"agent that has answered: {', '.join(newest)}"
            )
            for message in newest.values():  # it may have read the message of a failed node
                if message.error is not None:
                    call = self.session.log[message.id]
                    raise self._node_error(NodeError, f"{message.error}; {told}", call) from failure
            raise ConfigError(told) from failure

    def conclude(self) -> None:
        """Raise if the outermost graph has no result: a question is open, or no node succeeded and
        at least one failed."""
        session = self.session
        if self.waiting:
            questions = sorted(session.questions.values(), key=lambda q: (q.round, q.id))
            raise RunPaused(session.run, tuple(questions))
        if any(map(succeeded, session.log.values())):  # nearly always the first
            return
        for call in session.collected(self._order)[0]:
            if call.error is not None:
                told = f"no node of the run succeeded; the first failure: {call.error}"
                raise self._node_error(RunFailed, told, call) from session.raised.get(call.id)

    def _node_error(self, kind: type[NodeError], told: str, call: Call) -> NodeError:
        """The error of a run that a node's failure ends, of the failure's kind."""
        why: FailureKind = "node" if call.completion is None else "reply"
        why = why if call.error is None else call.error.kind
        return kind(told, node=call.node, round=call.round, run=self.session.run, kind=why)

    # -- one call -----------------------------------------------------------------------------

    async def _make(self, k: int) -> None:
        """Make one call and record it, or take it from the memo, or skip it."""
        if self.waiting and not self.waiting.isdisjoint(self.plan.inputs[k]):
            self.waiting.add(k)
            return
        plan, session, said = self.plan, self.session, self._said
        id = self._prefix + plan.ids[k]
        node: Answer | Exception = plan.nodes[k]
        if self._gaps:
            try:
                passing = self._passing(k, id)
            except Exception as failure:  # a failure of the listener
                passing, node = [], failure
            if passing is None:
                return
            inbox = passing
        else:
            inbox = [said[j] for j in plan.inputs[k]]  # type: ignore[misc]
        if self._around and plan.open[k]:
            inbox.extend(self._around)
        composite = plan.composite[k]
        if self._memo and node is plan.nodes[k]:
            found = session.recalled(id, inbox, composite)
            if found is not None:
                said[k] = found.message
                return
        own = plan.own[k]
        context = NodeContext(
            self._observation,
            self._path + plan.names[k],
            plan.rounds[k],
            self._graph.rounds,
            id,
            self.seed,
            said[own] if own >= 0 else None,
            self,
        )
        try:
            said[k] = (await session.call(node, inbox, context, plan.seconds[k], composite)).message
        except Unanswered:
            self.waiting.add(k)

    def _passing(self, k: int, id: str) -> list[Message] | None:
        """The messages that the edges carry to a call, or ``None`` if the call is skipped."""
        plan, session = self.plan, self.session
        without = session.memo.without
        if id in without:
            return None
        inbox: list[Message] = []
        conditions = plan.conditions[k] if plan.conditions else (None,) * len(plan.inputs[k])
        closed = arrived = False
        for j, condition in zip(plan.inputs[k], conditions, strict=True):
            message = self._said[j]
            if message is not None and (condition is None or condition(message)):
                inbox.append(message)
                arrived = arrived or j != plan.own[k]
            elif j != plan.own[k] and self._prefix + plan.ids[j] not in without:
                closed = True
        if closed and not arrived:
            session.skipped.add(id)
            return None
        return inbox

    # -- messages and the trace ---------------------------------------------------------------

    def source(self, message: Message) -> Source:
        """The origin of a message; see :meth:`swarm_ui.node.NodeContext.source`."""
        log, screen = self.session.log, self._observation
        call = log[message.id]
        if not (call.id.startswith(self._prefix) and call.node.startswith(self._path)):
            raise KeyError(message.id)
        node = self._graph.nodes[call.node.removeprefix(self._path)]
        around = {m.id: m for m in self._around}
        heard = [around[id] if id in around else log[id].message for id in call.heard]
        return Source(node, call, *context_of(call, screen, heard))

    def answer(self) -> Message | None:
        """The output's message; ``None`` if it has not answered or was skipped."""
        return self._said[self.plan.final]

    def trace(self) -> Trace:
        """The trace of the run so far."""
        calls, skipped = self.session.collected(self._order)
        answer, graph = self.answer(), self._graph
        rounds, late = self.plan.rounds[-1] + 1, graph.delays
        ballot = None if answer is None else self.session.log[answer.id].ballot
        return Trace(
            run=self.session.run,
            seed=self.seed,
            observation=self._observation,
            agents=graph.agents,
            rounds=rounds,
            ended_by=function_name(graph.until) if graph.until and rounds < graph.rounds else "",
            edges=graph.communication_edges,
            delays=tuple([late.get(e, 0) for e in graph.communication_edges]) if late else (),
            calls=tuple(calls),
            skipped=tuple(skipped),
            ballot=ballot or {},
            output_id="" if answer is None else answer.id,
            action=None if answer is None else answer.action,
        )

    async def run_inside(
        self, graph: Dag, inbox: Sequence[Message], context: NodeContext, name: str
    ) -> NodeReply:
        """Run a graph inside a call; see :meth:`swarm_ui.node.NodeContext.run`."""
        session = self.session
        around = f"{context.message_id}/{name}" if name else context.message_id
        seed = derive(context.run_seed, *((around,) if name else (context.node, context.round)))
        order = session.inside.setdefault(context.message_id, [])
        if name:  # a step of that name may be recalled with the calls inside it
            if around not in order:
                order.append(around)
            order = session.inside[around] = []
        frame = Frame(
            session, graph, context.observation, seed, inbox, f"{context.node}/", f"{around}/",
            order=order,
        )  # fmt: skip
        frame._memo = self._memo
        if frame._memo and context.observation is not self._observation:  # it depends on the inbox
            frame._memo = session.memo.knows(inbox)
        await frame.finish()
        if frame.waiting:
            raise Unanswered(context.message_id)
        answer = frame.answer()
        if answer is None:
            where = around if name else context.node
            return NodeReply(error=f"nothing reached the output '{graph.output}' of '{where}'")
        return NodeReply.like(session.log[answer.id])
