"""Runs a graph: every call starts as soon as its own inputs are available.

There is no barrier between nodes, levels or rounds: a slow branch delays only its successors. A run
has one flat log, in which every call has a message and a record under its id; calls inside a call
have ids with a prefix (``team:1/agent_0:0``). A call is not made if the memo has one with the same
id that heard the same messages. So replays, resumed runs and resampling are runs with a memo and
edits. Except for timings, a trace does not depend on the order in which answers arrive.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from types import MappingProxyType
from typing import TypedDict

from swarm_ui.agent_view import View, identity
from swarm_ui.engine import telemetry
from swarm_ui.engine.events import Aborted, Finished, OnEvent, Skipped, Voted
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.plan import count_spent, plan_of
from swarm_ui.engine.record import Unanswered, first_failure, node_error, succeeded
from swarm_ui.engine.scheduler import Scheduler
from swarm_ui.engine.session import UNCHANGED, Edits, Session
from swarm_ui.errors import ConfigError, Failure, NodeError, RunFailed, RunPaused, SwarmError
from swarm_ui.graph.check import function_name
from swarm_ui.graph.convert import to_json
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Message
from swarm_ui.model import Decision
from swarm_ui.node import NodeContext, NodeReply, Source, Until, derive
from swarm_ui.observation import Observation
from swarm_ui.storage.journal import Head, Journal
from swarm_ui.trace.records import Call, Trace, hear


class RunOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`~swarm_ui.graph.graph.CollabGraph.run`."""

    seed: int
    run_id: str
    edge_logprob: float | None
    limits: Limits | None
    cached: Trace | None
    journal: Journal | None
    on_event: OnEvent | None


async def run(
    graph: Dag,
    observation: Observation,
    *,
    seed: int = 0,
    run_id: str = "",
    edge_logprob: float | None = None,
    limits: Limits | None = None,
    cached: Trace | None = None,
    journal: Journal | None = None,
    on_event: OnEvent | None = None,
    edits: Edits = UNCHANGED,
) -> Trace:
    """Run a graph once on a screen; see :meth:`swarm_ui.graph.graph.CollabGraph.run`.

    ``edits``: changes to make to the run in ``cached``.
    """
    if not isinstance(observation, Observation):
        hint = "; give the screen that its reset() returns" if hasattr(observation, "reset") else ""
        raise ConfigError(
            "a graph runs on an Observation, or on a string as the goal without a screen, "
            f"got an object of type {type(observation).__name__}{hint}"
        )
    memo = {} if cached is None else _memo_of(cached, seed, observation)
    kept: Mapping[str, Call] = {}
    if journal is not None:
        head = Head(run=run_id, seed=seed, graph=to_json(graph), observation=observation)
        kept = journal.open(head)
        memo |= _to_keep(kept)
    try:
        count_spent(graph, run_id, seed, kept)
        session = Session(
            run_id, limits or Limits(),
            on_event=on_event, journal=journal, stored=kept, memo=memo, edits=edits,
        )  # fmt: skip
        frame = Frame(session, graph, observation, seed)
        await _finished(frame, graph, edge_logprob)
        if journal is not None:
            journal.finish(run_id)
    finally:
        if journal is not None:
            journal.close(run_id)
    trace = frame.trace(edge_logprob)
    if on_event is not None:
        on_event(Finished(run=run_id, trace=trace))
    return trace


async def _finished(frame: Frame, graph: Dag, edge_logprob: float | None) -> None:
    """Make every call, in a span."""
    session = frame.session
    with telemetry.span(
        "invoke_workflow", graph.name, run=session.run, seed=frame.seed, rounds=graph.rounds
    ):
        session.traceparent = telemetry.traceparent()
        try:
            session.hold(frame.plan.leases)
            await frame.finish()
            frame.conclude()
        except BaseException as error:  # re-raised: listeners hear how the run ended
            if isinstance(error, SwarmError):
                error.partial = frame.trace(edge_logprob)
            if session.on_event is not None:
                told, at = Failure.of(error), session.clock() - session.start
                session.on_event(Aborted(run=session.run, error=told, at=at))
            raise
        finally:
            session.close()


async def trace_of(running: Awaitable[Trace]) -> Trace:
    """The trace of a run, also if no node of it succeeded."""
    try:
        return await running
    except RunFailed as failed:
        trace: Trace = failed.partial
        return trace


def _memo_of(trace: Trace, seed: int, observation: Observation) -> dict[str, Call]:
    if trace.seed == seed and trace.observation == observation:
        return trace.recorded()
    what, told = "screen", ""
    if trace.seed != seed:
        what, told = "seed", f": {trace.seed} instead of {seed}"
    raise ConfigError(
        f"the given trace '{trace.run}' was made with another {what}{told}; "
        f"run with the trace's own {what}, or without it"
    )


def _to_keep(past: Mapping[str, Call]) -> Mapping[str, Call]:
    """The calls of a stored run that are not made again: all, except those that failed if no node
    succeeded, because such a run raised. What a later step heard stays, such as a tool's error."""
    if any(map(succeeded, past.values())):
        return past
    heard = {id for call in past.values() if call.step is not None for id in call.heard}
    return {
        id: call
        for id, call in past.items()
        if call.error is None or (call.step is not None and id in heard)
    }


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
    ) -> None:
        """
        Args:
            around: for a nested graph, the messages that its first nodes receive from outside.
            path: prefix of its node names, such as ``"team/"``.
            prefix: prefix of its message ids, such as ``"team:1/"``.
        """
        self.plan = plan = plan_of(graph)
        self.session, self.seed = session, seed
        self._graph, self._observation = graph, observation
        self._around, self._path, self._prefix = tuple(around), path, prefix
        self._said: list[Message | None] = [None] * plan.size
        #: whether calls may be taken from the memo
        self._memo = bool(session.memo)
        self._gaps = bool(plan.conditions or session.edits.without)
        #: calls that wait for a person, and those that depend on them
        self.waiting: set[int] = set()

    async def finish(self) -> None:
        """Make every call. No task is left running when this returns or raises.

        If a question is open, ``waiting`` is not empty afterwards. With ``until``, a round begins
        when the one before is complete, so that the result does not depend on the order in which
        answers arrive. What comes after the last round is the same as in a graph with only so many
        rounds.
        """
        graph, until = self._graph, self._graph.until
        if until is None:
            await self._part(range(self.plan.size))
            return
        team, newest = self.plan.team, dict[str, Message]()
        for round in range(graph.rounds):
            first, stop = round * team, (round + 1) * team
            await self._part(range(first, stop))
            if self.waiting:
                return
            for k in range(first, stop):
                message = self._said[k]
                if message is not None:
                    newest[self.plan.names[k]] = message
            if round < graph.rounds - 1 and self._over(until, newest, round):
                self.plan = plan_of(graph, round)
                self._said[stop:] = [None] * (self.plan.size - stop)
                break
        await self._part(range(stop, self.plan.size))

    async def _part(self, part: range) -> None:
        """Make the calls of some consecutive numbers, once all calls before them are made."""
        plan = self.plan
        waiting: Sequence[int] = plan.waiting
        if len(part) < plan.size:
            waiting = [
                sum(j in part for j in inputs) if k in part else _APART
                for k, inputs in enumerate(plan.inputs)
            ]
        if part:
            await Scheduler(self._make, part, waiting, plan.successors).finish()

    def _over(self, until: Until, newest: dict[str, Message], round: int) -> bool:
        try:
            return bool(until(MappingProxyType(newest)))
        except Exception as failure:
            told = (
                f"until: '{function_name(until)}' of graph '{self._path}{self._graph.name}' failed "
                f"after round {round}: {Failure.of(failure)}"
            )
            log, run = self.session.log, self.session.run
            for message in newest.values():  # it may have read the message of a failed node
                if message.error is not None:
                    told = f"{message.error}; {told}"
                    raise node_error(NodeError, told, log[message.id], run) from failure
            raise ConfigError(
                f"{told}. It gets the newest message of each agent that has answered: "
                f"{', '.join(newest)}"
            ) from failure

    def conclude(self) -> None:
        """Report the result of the outermost graph.

        Raises:
            RunPaused: a question is open.
            RunFailed: no node succeeded and at least one failed.
        """
        session = self.session
        if self.waiting:
            questions = sorted(session.questions.values(), key=lambda q: (q.round, q.id))
            raise RunPaused(session.run, tuple(questions))
        if not any(map(succeeded, session.log.values())):  # nearly always the first
            first = first_failure(session.collected(self.plan.ids)[0])
            if first is not None:
                told = f"no node of the run succeeded; the first failure: {first.error}"
                cause = session.raised.get(first.id)
                raise node_error(RunFailed, told, first, session.run) from cause
        if session.on_event is not None:
            answer = self.answer()
            action = None if answer is None else answer.action
            session.on_event(Voted(run=session.run, ballot=self.ballot(), action=action))

    # -- one call -----------------------------------------------------------------------------

    async def _make(self, k: int) -> None:
        """Make one call and record it, or take it from the memo, or skip it."""
        if self.waiting and not self.waiting.isdisjoint(self.plan.inputs[k]):
            self.waiting.add(k)
            return
        plan, session, said = self.plan, self.session, self._said
        id = self._prefix + plan.ids[k]
        broken: Exception | None = None
        if self._gaps:
            try:
                passing = self._passing(k, id)
            except Exception as failure:  # a failure of the listener
                passing, broken = [], failure
            if passing is None:
                return
            inbox = passing
        else:
            inbox = [said[j] for j in plan.inputs[k]]  # type: ignore[misc]
        if self._around and plan.open[k]:
            inbox.extend(self._around)
        bound = plan.bounds[k]
        if self._memo and broken is None:
            said[k] = session.recalled(id, inbox, bound.composite)
            if said[k] is not None:
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
        whole = not (self._gaps or self._around or self._prefix)
        heard = plan.heard[k] if whole else tuple([message.id for message in inbox])
        call = session.traced_call if session.traced else session.call
        try:
            said[k] = (await call(plan.nodes[k], inbox, context, heard, bound, broken)).message
        except Unanswered:
            self.waiting.add(k)

    def _passing(self, k: int, id: str) -> list[Message] | None:
        """The messages that the edges carry to a call, or ``None`` if the call is skipped."""
        plan, session = self.plan, self.session
        without = session.edits.without
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
            if session.on_event is not None:
                node, round = self._path + plan.names[k], plan.rounds[k]
                session.on_event(Skipped(run=session.run, id=id, node=node, round=round))
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
        view = identity(screen) if call.order is None else View(screen, call.order)
        around = {m.id: m for m in self._around}
        heard = tuple(
            hear(around[id] if id in around else log[id].message, view, listener=call.node)
            for id in call.heard
        )
        decision = Decision(
            observation=view.observation,
            heard=heard,
            partial=view.partial,
            dropped=call.completion.dropped if call.completion else None,
        )
        return Source(node, call, view, decision)

    def answer(self) -> Message | None:
        """The output's message; ``None`` if it has not answered or was skipped."""
        return self._said[self.plan.final]

    def ballot(self) -> dict[str, float]:
        """Weight of each proposal, if the output has voted."""
        answer = self.answer()
        return {} if answer is None else self.session.log[answer.id].ballot or {}

    def trace(self, edge_logprob: float | None) -> Trace:
        """The trace of the run so far."""
        calls, skipped = self.session.collected(self.plan.ids)
        answer, graph = self.answer(), self._graph
        rounds = self.plan.rounds[-1] + 1
        late = graph.delays
        return Trace(
            run=self.session.run,
            seed=self.seed,
            observation=self._observation,
            agents=graph.agents,
            rounds=rounds,
            ended_by=function_name(graph.until) if graph.until and rounds < graph.rounds else "",
            edges=graph.communication_edges,
            delays=tuple([late.get(e, 0) for e in graph.communication_edges]) if late else (),
            edge_logprob=edge_logprob,
            calls=tuple(calls),
            skipped=tuple(skipped),
            ballot=self.ballot(),
            output_id="" if answer is None else answer.id,
            action=None if answer is None else answer.action,
            traceparent=self.session.traceparent if self.waiting else "",
        )

    async def run_inside(
        self, graph: Dag, inbox: Sequence[Message], context: NodeContext, name: str
    ) -> NodeReply:
        """Run a graph inside a call; see :meth:`swarm_ui.node.NodeContext.run`."""
        session = self.session
        around = f"{context.message_id}/{name}" if name else context.message_id
        if name:
            seed = derive(context.run_seed, around)
        else:
            seed = derive(context.run_seed, context.node, context.round)
        path, prefix = f"{context.node}/", f"{around}/"
        frame = Frame(session, graph, context.observation, seed, inbox, path, prefix)
        if context.observation is not self._observation:  # which depends on the inbox, for items
            memo = session.memo
            frame._memo = all(m.id in memo and memo[m.id].message == m for m in inbox)
        outer, inside = session.inside.setdefault(context.message_id, []), list[str]()
        if name:  # a step of that name may be recalled with the calls inside it
            session.inside[around] = inside
            if around not in outer:
                outer.append(around)
        else:
            inside = outer
        before = len(inside)
        inside += [prefix + id for id in frame.plan.ids]
        session.hold(frame.plan.leases)
        async with session.bounds.without_slot(context.message_id):
            try:
                await frame.finish()
            finally:  # the rounds may have ended early
                inside[before : before + len(plan_of(graph).ids)] = [
                    prefix + id for id in frame.plan.ids
                ]
        if frame.waiting:
            raise Unanswered(context.message_id)
        answer = frame.answer()
        if answer is None:
            where = around if name else context.node
            return NodeReply(error=f"nothing reached the output '{graph.output}' of '{where}'")
        return NodeReply.like(session.log[answer.id])
