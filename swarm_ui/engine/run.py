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
from typing import Any, TypedDict

from swarm_ui.engine import telemetry
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.memo import Memo, succeeded, to_keep
from swarm_ui.engine.plan import count_spent, plan_of, same_versions
from swarm_ui.engine.session import Session
from swarm_ui.engine.tasks import in_order
from swarm_ui.errors import ConfigError, Failure, NodeError, RunFailed, RunPaused, SwarmError
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
            frame = Frame(session, graph, observation, seed)
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
            path, prefix: of its node names (``"team/"``) and message ids (``"team:1/"``).
        """
        self.session, self.seed, self.plan = session, seed, plan_of(graph)
        self._graph, self._observation, self._around = graph, observation, tuple(around)
        self._path, self._prefix = path, prefix
        #: ids of its calls, in the order of the trace
        self._order = session.inside.setdefault(prefix[:-1], [])
        self._said: list[Message | None] = [None] * len(self.plan.calls)
        #: whether calls may be taken from the memo
        self.recalls = bool(session.memo.calls)
        self._gaps = bool(graph.when or session.memo.without)
        #: whether a call waits for a person
        self.paused = False

    async def finish(self) -> None:
        """Make every call, except those that depend on an open question. No task is left running
        when this returns or raises.

        With ``until``, a round begins when the one before is complete, so that the result does not
        depend on the order in which answers arrive. What comes after the last round is the same as
        in a graph with only so many rounds.
        """
        versions, graph, until = self.session.versions, self._graph, self._graph.until
        for (model, adapter), lease in self.plan.leases.items():
            if (model, adapter) not in versions:
                versions[model, adapter] = lease[0], lease[0].lease(adapter)
        done, team = 0, len(graph.agents)
        for round in range(graph.rounds):
            if until is None:
                break
            await self._part(done, done := done + team)
            if self.paused:
                return
            if round < graph.rounds - 1 and self._over(until, done, round):
                self.plan = plan_of(graph, round)
                self._said[done:] = [None] * (len(self.plan.calls) - done)
                break
        await self._part(done, len(self.plan.calls))

    async def _part(self, start: int, stop: int) -> None:
        """Make the calls of some consecutive numbers, once all calls before them are made."""
        calls, prefix = self.plan.calls, self._prefix
        self._order += [prefix + call.id for call in calls[start:stop]]
        missing = [sum(j >= start for j in c.inputs) if start else len(c.inputs) for c in calls]
        if start < stop:
            await in_order(self._make, range(start, stop), missing, self.plan.successors)

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
                    told, call = f"{message.error}; {told}", self.session.log[message.id]
                    raise self._node_error(NodeError, told, call) from failure
            raise ConfigError(told) from failure

    def conclude(self) -> None:
        """Raise if the outermost graph has no result: a question is open, or no node succeeded and
        at least one failed."""
        session = self.session
        if self.paused:
            questions = sorted(session.questions.values(), key=lambda q: (q.round, q.id))
            raise RunPaused(session.run, tuple(questions))
        if any(map(succeeded, session.log.values())):  # nearly always the first
            return
        for id in session.order(self._order):
            call = session.log.get(id)
            if call is not None and call.error is not None:
                told = f"no node of the run succeeded; the first failure: {call.error}"
                raise self._node_error(RunFailed, told, call) from session.raised.get(id)

    def _node_error(self, kind: type[NodeError], told: str, call: Call) -> NodeError:
        """The error of a run that a node's failure ends, of the failure's kind."""
        why = call.error.kind if call.error else "reply" if call.completion else "node"
        return kind(told, node=call.node, round=call.round, run=self.session.run, kind=why)

    # -- one call -----------------------------------------------------------------------------

    async def _make(self, k: int) -> bool:
        """Make one call, or skip it. False if it waits for a person."""
        call, session, said = self.plan.calls[k], self.session, self._said
        id, node = self._prefix + call.id, call.node
        inbox: list[Any] | None
        try:
            inbox = self._passing(k, id) if self._gaps else [said[j] for j in call.inputs]
        except Exception as failure:  # of a condition: a failure of the listener
            inbox, node = [], _failing(failure)
        if inbox is None:
            return True
        if self._around and call.first:
            inbox.extend(self._around)
        context = NodeContext(
            self._observation,
            self._path + call.name,
            call.round,
            self._graph.rounds,
            id,
            self.seed,
            said[call.own] if call.own >= 0 else None,
            self,
        )
        try:
            made = await session.call(node, inbox, context, call.seconds, call.composite)
        except Unanswered:
            self.paused = True
            return False
        said[k] = made.message
        return True

    def _passing(self, k: int, id: str) -> list[Message] | None:
        """The messages that the edges carry to a call, or ``None`` if the call is skipped."""
        calls, without = self.plan.calls, self.session.memo.without
        if id in without:
            return None
        call, inbox = calls[k], list[Message]()
        closed = arrived = False
        for j, condition in zip(call.inputs, call.conditions, strict=True):
            message = self._said[j]
            if message is not None and (condition is None or condition(message)):
                inbox.append(message)
                arrived = arrived or j != call.own
            elif j != call.own and self._prefix + calls[j].id not in without:
                closed = True
        if closed and not arrived:
            self.session.skipped.add(id)
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

    def trace(self) -> Trace:
        """The trace of the run so far."""
        session, ids = self.session, list(self.session.order(self._order))
        graph, edges = self._graph, self._graph.communication_edges
        answer = self._said[self.plan.final]
        rounds, late = self.plan.calls[-1].round + 1, graph.delays
        decided = None if answer is None else session.log[answer.id]
        return Trace(
            run=session.run,
            seed=self.seed,
            observation=self._observation,
            agents=graph.agents,
            rounds=rounds,
            ended_by=function_name(graph.until) if graph.until and rounds < graph.rounds else "",
            edges=edges,
            delays=tuple([late.get(edge, 0) for edge in edges]) if late else (),
            calls=tuple([session.log[id] for id in ids if id in session.log]),
            skipped=tuple([id for id in ids if id in session.skipped]),
            ballot=(decided and decided.ballot) or {},
            output_id="" if decided is None else decided.id,
            action=None if decided is None else decided.message.action,
        )

    async def run_inside(
        self, graph: Dag, inbox: Sequence[Message], context: NodeContext, name: str
    ) -> NodeReply:
        """Run a graph inside a call; see :meth:`swarm_ui.node.NodeContext.run`."""
        session, around = self.session, context.message_id
        seed = derive(context.run_seed, context.node, context.round)
        if name:
            places, around = session.inside.setdefault(around, []), f"{around}/{name}"
            seed = derive(context.run_seed, around)
            if around not in places:  # as a step of that name, perhaps recalled with its calls
                places.append(around)
            session.inside[around] = []
        frame = Frame(
            session, graph, context.observation, seed, inbox, f"{context.node}/", f"{around}/"
        )
        same = context.observation is self._observation  # else it depends on the inbox
        frame.recalls = self.recalls and (same or session.memo.knows(inbox))
        await frame.finish()
        if frame.paused:
            raise Unanswered(context.message_id)
        answer = frame._said[frame.plan.final]
        if answer is None:
            where = around if name else context.node
            return NodeReply(error=f"nothing reached the output '{graph.output}' of '{where}'")
        return NodeReply.like(session.log[answer.id])


def _failing(failure: Exception) -> Answer:
    async def answer(inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        raise failure

    return answer
