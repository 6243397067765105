"""Runs a graph: every call starts as soon as its own inputs are available.

There is no barrier between nodes, levels or rounds: a slow branch delays only its successors.
A run keeps all its state in one object, so one graph serves any number of concurrent runs.
Except for timings, a trace does not depend on the order in which answers arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, TypedDict, TypeVar

from swarm_ui.engine.call_record import succeeded
from swarm_ui.engine.events import Aborted, Finished, OnEvent
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.run_context import UNCHANGED, Edits, Lease, RunContext, Unanswered
from swarm_ui.engine.run_state import RunState
from swarm_ui.engine.schedule import count_spent, schedule_of
from swarm_ui.errors import ConfigError, Failure, RunFailed, SwarmError
from swarm_ui.graph.convert import to_json
from swarm_ui.graph.dag import Dag
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply, derive
from swarm_ui.observation import Observation
from swarm_ui.storage.protocol import Head, RecordedCall, Store
from swarm_ui.trace.records import Trace

T = TypeVar("T")


class RunOptions(TypedDict, total=False):
    """The keyword arguments of :func:`execute` that all methods that run a graph accept."""

    seed: int
    run_id: str
    edge_logprob: float | None
    limits: Limits | None
    cached: Trace | None
    store: Store | None
    on_event: OnEvent | None


async def execute(
    graph: Dag,
    observation: Observation,
    *,
    seed: int = 0,
    run_id: str = "",
    edge_logprob: float | None = None,
    limits: Limits | None = None,
    cached: Trace | None = None,
    store: Store | None = None,
    on_event: OnEvent | None = None,
    edits: Edits = UNCHANGED,
) -> Trace:
    """Run a graph once on a screen.

    Args:
        graph: the nodes and the edges between them.
        observation: the screen.
        seed: seed of every random choice in the run; equal seeds and answers give equal traces.
        run_id: name of the run, for the trace, for errors and for the store.
        edge_logprob: log-probability (nats) of the graph's edges, if they were sampled.
        limits: time, concurrency, failure policy.
        cached: a trace; its calls are reused as long as they receive the same messages.
        store: saves every call when it has finished; a run that is already in it is continued.
        on_event: called with every event of the run.
        edits: changes to make to the run in ``cached``.

    Raises:
        NodeError: a node failed and the policy is ``abort``.
        RunFailed: no node succeeded and at least one failed; under any policy but ``abort``, which
            raises earlier. Its ``partial`` is the complete trace.
        RunPaused: a node asked a person, and there is no answer in ``edits``.
        ConfigError, BudgetExceeded: under any policy. Like every
            :class:`~swarm_ui.errors.SwarmError`, it has the trace so far as ``partial``.
    """
    _check(observation, limits)
    past = {} if cached is None else _given(cached, seed, observation)
    journal = None
    if store is not None:
        head = Head(run=run_id, seed=seed, graph=to_json(graph), observation=observation)
        journal = await store.open(head)
        past |= _to_keep(journal.past)
    count_spent(graph, run_id, seed, {} if journal is None else journal.past)
    try:
        session = RunContext(
            run_id, limits or Limits(), on_event=on_event, journal=journal, past=past, edits=edits
        )
        current = RunState(graph, observation, seed, session)
        await _finish(current, session, schedule_of(graph).leases, edge_logprob)
    finally:
        if journal is not None:
            journal.close()
    trace = current.trace(edge_logprob)
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


async def _finish(
    current: RunState, session: RunContext, leases: Sequence[Lease], edge_logprob: float | None
) -> None:
    """Make every call of a run, report its end, and release its resources."""
    held = ExitStack()
    try:
        held = session.lease(leases)
        await current.finish()
        if session.journal is not None:
            await session.journal.finish()
    except BaseException as error:  # re-raised: listeners hear how the run ended
        if isinstance(error, SwarmError):
            error.partial = current.trace(edge_logprob)
        if session.on_event is not None:
            at = session.clock() - session.start
            session.on_event(Aborted(run=session.run, error=Failure.of(error), at=at))
        raise
    finally:
        session.deadlines.stop()
        session.raised.clear()  # their frames refer to the session
        held.close()


def _check(observation: object, limits: object) -> None:
    if not isinstance(observation, Observation):
        hint = "; give the screen that its reset() returns" if hasattr(observation, "reset") else ""
        raise ConfigError(
            "a graph runs on an Observation, or on a string as the goal without a screen, "
            f"got an object of type {type(observation).__name__}{hint}"
        )
    if limits is not None and not isinstance(limits, Limits):
        raise ConfigError(
            f"limits: expected Limits(...), such as Limits(timeout=60), got {limits!r}"
        )


def _given(trace: Trace, seed: int, observation: Observation) -> dict[str, RecordedCall]:
    if trace.seed == seed and trace.observation == observation:
        return recorded(trace)
    what, told = "screen", ""
    if trace.seed != seed:
        what, told = "seed", f": {trace.seed} instead of {seed}"
    raise ConfigError(
        f"the given trace '{trace.run}' was made with another {what}{told}; "
        f"run with the trace's own {what}, or without it"
    )


def _to_keep(past: Mapping[str, RecordedCall]) -> Mapping[str, RecordedCall]:
    """The calls of a stored run that are not made again: all, except those of failed nodes if no
    node succeeded, because such a run raised. The steps of a node stay."""
    if any(succeeded(*pair) for pair in past.values()):
        return past
    return {
        id: pair for id, pair in past.items() if pair[1].error is None or pair[1].step is not None
    }


def recorded(trace: Trace) -> dict[str, RecordedCall]:
    """The calls of a trace with their messages, by message id."""
    messages: Mapping[str, Message] = {message.id: message for message in trace.messages}
    return {call.message: (messages[call.message], call) for call in trace.calls}


async def nested(graph: Dag, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
    """Run a graph as a node of another: its first nodes get the inbox, its output node answers.

    The names inside are prefixed with the name of the outer node (``"team/agent_0"``, message ids
    ``"team:1/agent_0:0"``), so that one trace holds every call.
    """
    inner = RunState(
        graph,
        context.observation,
        derive(context.run_seed, context.node, context.round),
        context.session,
        around=inbox,
        path=context.node + "/",
        prefix=context.message_id + "/",
    )
    await inner.finish()
    if inner.waiting:
        raise Unanswered(context.message_id, inner.recorded_calls())
    answer, ballot = inner.answer(), inner.ballot()
    calls, skipped = tuple(inner.recorded_calls()), inner.skipped_ids()
    if answer is None:
        nobody = f"nothing reached the output '{graph.output}' of '{context.node}'"
        return NodeReply(error=nobody, inner=calls, skipped=skipped)
    return NodeReply(
        content=answer.content,
        action=answer.action,
        error=answer.error,
        logprob=answer.logprob,
        ballot=ballot or None,
        inner=calls,
        skipped=skipped,
    )


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code.

    Inside a running event loop (a notebook) it runs in a thread with a separate loop, and with a
    copy of the context variables. An interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # run below, so that errors of the run do not have this one as their context
    else:
        return _run_in_thread(coroutine)
    return asyncio.run(coroutine)


def _run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    begun: Future[Callable[[], object]] = Future()
    done: Future[T] = Future()

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        begun.set_result(partial(loop.call_soon_threadsafe, task.cancel))
        return await coroutine

    def run() -> None:
        try:
            done.set_result(asyncio.run(main()))
        except BaseException as error:  # raised by the caller
            done.set_exception(error)

    # A pool would not wait for a thread whose start was interrupted.
    thread = Thread(target=copy_context().run, args=(run,))
    try:
        thread.start()
        return done.result()
    except KeyboardInterrupt:
        with suppress(RuntimeError):  # the loop is closed: the run has just ended
            begun.result()()
        raise
    finally:
        thread.join()
