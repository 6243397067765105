"""Runs that go on: what was written is not asked again, and the trace is as if nothing happened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from graph_fakes import BLANK, Sleeper, timeless
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_child import OPEN, Stores
from store_graph import SCREEN, Log, Waiter, layered

from swarm_ui import (
    BudgetExceeded,
    CollabGraph,
    Limits,
    Message,
    NodeContext,
    NodeReply,
    Trace,
)
from swarm_ui.engine.executor import nested


@pytest.fixture(params=list(OPEN))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with OPEN[request.param](tmp_path / "store") as opened:
        yield opened


class Counting:
    """Ids of the calls that were started; spends a budget of so many."""

    def __init__(self, budget: int | None = None) -> None:
        self.started: list[str] = []
        self.budget = budget

    def __call__(self, what: str, id: str, heard: Sequence[str]) -> None:
        if what == "start":
            if self.budget is not None and len(self.started) >= self.budget:
                raise BudgetExceeded("that was it")
            self.started.append(id)


def same_bytes(one: Trace, other: Trace) -> bool:
    return msgspec.json.encode(one) == msgspec.json.encode(other)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 99), budgets=st.lists(st.integers(0, 40), max_size=4))
def test_stopped_anywhere_it_makes_each_call_that_was_written_once(
    store: Stores, seed: int, budgets: list[int]
) -> None:
    wait = 0.0002
    undisturbed = layered(seed, wait=wait).run_sync(SCREEN, seed=seed, run_id="r")
    written: set[str] = set()
    for budget in budgets:
        log = Counting(budget)
        try:
            layered(seed, log, wait=wait).run_sync(SCREEN, seed=seed, run_id="r", store=store)
            break
        except BudgetExceeded as error:
            assert not written & set(log.started)
            before, written = written, {message.id for message, _ in store.read("r").calls}
            assert before <= written
            assert error.partial is not None
            assert written >= {call.message for call in error.partial.calls if not inside(call)}
    kept = store.read("r").calls if written else ()
    log = Counting()
    trace = layered(seed, log, wait=wait).run_sync(SCREEN, seed=seed, run_id="r", store=store)
    assert not written & set(log.started)
    assert timeless(trace) == timeless(undisturbed)
    found = {call.message: (trace.message(call.message), call) for call in trace.calls}
    for message, call in kept:  # times and all
        assert found[message.id] == (message, call)
    store.delete("r")


def inside(call: object) -> bool:
    return "/" in getattr(call, "message", "")


def test_a_finished_run_makes_no_call_and_gives_the_same_trace(store: Stores) -> None:
    trace = layered(7, wait=0).run_sync(SCREEN, seed=7, run_id="r", store=store)
    listed = store.runs()
    assert listed[0].finished and trace.skipped and any(call.error for call in trace.calls)
    assert any(call.rescued for call in trace.calls)
    for _ in range(2):
        log = Counting()
        again = layered(7, log, wait=0).run_sync(SCREEN, seed=7, run_id="r", store=store)
        assert log.started == []
        assert again == trace and same_bytes(again, trace)
    assert [(run.calls, run.finished) for run in store.runs()] == [(listed[0].calls, True)]


def test_the_store_has_every_call_of_the_trace(store: Stores) -> None:
    trace = layered(5, wait=0).run_sync(SCREEN, seed=5, run_id="r", store=store)
    record = store.read("r")
    assert {m.id: (m, c) for m, c in record.calls} == {
        call.message: (trace.message(call.message), call) for call in trace.calls
    }
    assert record.finished and record.head.observation == SCREEN and record.head.seed == 5


def test_without_a_store_it_is_the_same_trace(store: Stores) -> None:
    kept = layered(6, wait=0).run_sync(SCREEN, seed=6, run_id="r", store=store)
    assert timeless(kept) == timeless(layered(6, wait=0).run_sync(SCREEN, seed=6, run_id="r"))


async def test_a_replay_of_a_resumed_run_asks_nobody_and_writes_nothing(store: Stores) -> None:
    with pytest.raises(BudgetExceeded):
        await layered(8, Counting(20), wait=0).run(SCREEN, seed=8, run_id="r", store=store)
    trace = await layered(8, wait=0).run(SCREEN, seed=8, run_id="r", store=store)
    calls = store.runs()[0].calls
    log = Counting()
    assert await layered(8, log, wait=0).replay(trace) == trace
    changed = await layered(8, log, wait=0).replay(trace, messages={"n0_0:0": "else"})
    assert changed != trace and log.started
    assert store.runs()[0].calls == calls


async def test_calls_of_a_given_trace_are_kept_too(store: Stores) -> None:
    trace = await layered(4, wait=0).run(SCREEN, seed=4, run_id="r")
    log = Counting()
    first = await layered(4, log, wait=0).run(SCREEN, seed=4, run_id="r", cached=trace, store=store)
    second = await layered(4, log, wait=0).run(SCREEN, seed=4, run_id="r", store=store)
    assert first == second == trace and log.started == []


# -- graphs in graphs that failed -------------------------------------------------------------


def troubled(log: Log, *, fallback: object = None) -> CollabGraph:
    """A nested graph that is too slow, or (with a fallback, and ``abort``) fails."""
    inner = CollabGraph(
        [Waiter("quick", log, 0), Waiter("bad", log, 60 if fallback is None else 0, fails=True)],
        [("quick", "bad")],
        name="inner",
    )
    if fallback is None:
        inner.timeout = 0.05  # type: ignore[attr-defined]
    graph = CollabGraph([inner, Waiter("end", log, 0)], [("inner", "end")])
    return graph if fallback is None else graph.with_fallback("inner", fallback)  # type: ignore


def test_a_nested_graph_that_was_too_slow_stays_a_tombstone(store: Stores) -> None:
    log = Counting()
    trace = troubled(log).run_sync(BLANK, run_id="r", store=store)
    assert log.started == ["inner:0/quick:0", "inner:0/bad:0", "end:0"]
    assert trace.message("inner:0").error == "no answer within 0.05 s"
    log = Counting()
    again = troubled(log).run_sync(BLANK, run_id="r", store=store)
    assert log.started == [] and same_bytes(again, trace)


@pytest.mark.parametrize("kind", ["graph by node", "graph by graph", "node by graph"])
def test_what_a_fallback_rescued_is_not_tried_again(store: Stores, kind: str) -> None:
    def graph(log: Log) -> CollabGraph:
        single = Waiter("stand_in", log, 0)
        parts = [single, Waiter("late", log, 0.02), Waiter("say", log, 0)]
        other = CollabGraph(parts, [("late", "say"), ("stand_in", "say")], name="other")
        graph = troubled(log, fallback=single if kind == "graph by node" else other)
        if kind == "node by graph":
            return graph.with_node(Waiter("inner", log, 0, fails=True))
        return graph

    abort = Limits(on_failure="abort")
    trace = graph(Counting()).run_sync(BLANK, run_id="r", store=store, limits=abort)
    assert next(call for call in trace.calls if call.node == "inner").rescued
    assert len(trace.calls) == (2 if kind == "graph by node" else 5)
    log = Counting()
    again = graph(log).run_sync(BLANK, run_id="r", store=store, limits=abort)
    assert log.started == [] and same_bytes(again, trace)


class Wrapper:
    """A node that runs a graph of its own and brings what was said there."""

    id = "wrapper"

    def __init__(self, graph: CollabGraph, fails: bool = False) -> None:
        self.graph, self.fails = graph, fails

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        reply = await nested(self.graph, inbox, context)
        if self.fails:
            raise ValueError("not good enough")
        return reply


@pytest.mark.parametrize("fails", [False, True])
def test_a_node_that_brings_others_calls_brings_them_in_the_same_order(
    store: Stores, fails: bool
) -> None:
    def graph(log: Log) -> CollabGraph:
        late_first = [Waiter("z", log, 0.02), Waiter("y", log, 0), Waiter("x", log, 0)]
        inner = CollabGraph(late_first, [("z", "x"), ("y", "x")])
        return CollabGraph([Wrapper(inner, fails), Waiter("end", log, 0)], [("wrapper", "end")])

    trace = graph(Counting()).run_sync(BLANK, run_id="r", store=store)
    assert len(trace.calls) == (2 if fails else 5)
    log = Counting()
    again = graph(log).run_sync(BLANK, run_id="r", store=store)
    assert log.started == [] and same_bytes(again, trace)


# -- many at once -----------------------------------------------------------------------------


async def test_a_hundred_runs_of_one_graph_at_once(store: Stores) -> None:
    graph = CollabGraph(
        [Waiter(n, wait=0.001) for n in "abcd"], [("a", "c"), ("b", "c"), ("c", "d")]
    )
    traces = await asyncio.gather(
        *[graph.run(BLANK, seed=k, run_id=f"run {k}", store=store) for k in range(100)]
    )
    for k, trace in enumerate(traces):
        assert timeless(trace) == timeless(await graph.run(BLANK, seed=k, run_id=f"run {k}"))
    listed = store.runs()
    assert {run.name for run in listed} == {f"run {k}" for k in range(100)}
    assert all(run.finished and run.calls == 4 for run in listed)
    again = await asyncio.gather(
        *[graph.run(BLANK, seed=k, run_id=f"run {k}", store=store) for k in range(100)]
    )
    assert again == traces


async def test_cancelled_it_goes_on_where_it_was(store: Stores) -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b", 30)], [("a", "b")])
    task = asyncio.create_task(graph.run(BLANK, run_id="r", store=store))
    while not store.runs() or not store.runs()[0].calls:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [message.id for message, _ in store.read("r").calls] == ["a:0"]
    quick = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")])
    assert (await quick.run(BLANK, run_id="r", store=store)).message("b:0").content == "b(a)"
