"""Running graphs: dataflow, concurrency, failures. Time is virtual throughout."""

from __future__ import annotations

import asyncio
import gc
import random
import signal
import threading
from collections.abc import Sequence
from contextlib import closing
from contextvars import ContextVar
from itertools import pairwise

import msgspec
import pytest
from graph_fakes import BLANK, SCREEN, HashModel, Sleeper, in_virtual_time, timeless
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import (
    BudgetExceeded,
    CollabGraph,
    ConfigError,
    Limits,
    Message,
    ModelError,
    NodeContext,
    NodeError,
    NodeReply,
    Request,
    RunFailed,
    Trace,
)
from swarm_ui.errors import Failure
from swarm_ui.topology import random_dag


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 4))
def test_every_call_starts_when_its_own_inputs_are_there(seed: int, size: int, rounds: int) -> None:
    """Ends of all calls are those of the critical path: no barrier anywhere."""
    rng = random.Random(seed)
    names = [f"n{k}" for k in range(size)]
    seconds = {name: float(rng.randint(1, 50)) for name in names}
    edges = random_dag(names, 0.4, rng)
    graph = CollabGraph([Sleeper(n, seconds[n]) for n in names], edges, names[0], rounds)
    trace = in_virtual_time(graph.run(BLANK))

    calls = {call.id: call for call in trace.calls}
    for call in trace.calls:
        inputs = max((calls[id].ended for id in call.heard), default=0.0)
        assert call.started == inputs
        assert call.ended == inputs + seconds[call.node]
    expected = {
        f"{name}:{r}": ((f"{name}:{r - 1}",) if r else ())
        + tuple(f"{a}:{r}" for a, b in edges if b == name)
        for r in range(rounds)
        for name in names
    }
    assert {id: call.heard for id, call in calls.items()} == expected


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))
def test_the_trace_does_not_depend_on_the_order_of_answers(
    seed: int, delays: int, agents: int, rounds: int
) -> None:
    def slowly(request: Request) -> float:
        return random.Random(f"{delays} {request.seed}").random()

    def played(model: HashModel) -> bytes:
        graph = CollabGraph.collaborative(
            agents, rounds, model=model, seed=seed, views="shuffle", vote_scope="all"
        )
        return timeless(in_virtual_time(graph.run(SCREEN, seed=seed, run_id="r")))

    assert played(HashModel()) == played(HashModel(slowly))


# -- failures ---------------------------------------------------------------------------------


def diamond(bad: Sleeper) -> CollabGraph:
    nodes = [Sleeper("a"), bad, Sleeper("good"), Sleeper("end")]
    edges = [("a", bad.id), ("a", "good"), (bad.id, "end"), ("good", "end")]
    return CollabGraph(nodes, edges)


def test_a_failed_node_leaves_a_tombstone_that_is_heard_and_recorded() -> None:
    trace = in_virtual_time(diamond(Sleeper("bad", fails=ModelError("no such server"))).run(BLANK))
    reason = "ModelError: no such server"
    assert trace.message("bad:0").error == reason
    assert trace.message("end:0").content == f"end([{reason}],good)"
    failure = Failure(kind="model", message="no such server", node="bad", error="ModelError")
    assert {c.node: c.error for c in trace.calls} == {
        "a": None, "bad": failure, "good": None, "end": None
    }  # fmt: skip
    assert str(failure) == reason


@pytest.mark.parametrize(
    ("bad", "kind"),
    [(Sleeper("bad", fails=ValueError("x")), "node"), (Sleeper("bad", 99), "timeout")],
)
def test_abort_raises_an_error_that_names_node_round_and_run(bad: Sleeper, kind: str) -> None:
    limits = Limits(timeout=5, on_failure="abort")
    with pytest.raises(NodeError, match="node 'bad', round 0, run r7") as caught:
        in_virtual_time(diamond(bad).run(BLANK, run_id="r7", limits=limits))
    assert (caught.value.node, caught.value.round, caught.value.run) == ("bad", 0, "r7")
    assert caught.value.kind == kind
    assert isinstance(caught.value.__cause__, Exception)


@pytest.mark.parametrize("error", [ConfigError("no key"), BudgetExceeded("10 calls")])
def test_what_the_user_must_hear_of_is_never_a_tombstone(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        in_virtual_time(diamond(Sleeper("bad", fails=error)).run(BLANK))


def test_an_answer_of_the_wrong_kind_is_a_failure_of_that_node() -> None:
    class Wrong:
        id = "wrong"

        async def __call__(self, inbox: object, context: object) -> NodeReply:
            return 7  # type: ignore[return-value]

    with pytest.raises(RunFailed) as failed:
        in_virtual_time(CollabGraph([Wrong()]).run(BLANK))
    told = failed.value.partial.messages[0].error or ""
    assert "expected a NodeReply, got a int" in told and "function_node" in told


def test_long_chains_need_no_deep_stack() -> None:
    names = [f"n{k}" for k in range(5000)]
    graph = CollabGraph([Sleeper(n) for n in names], list(pairwise(names)))
    assert len(in_virtual_time(graph.run(BLANK)).messages) == 5000


# -- nesting, notebooks --------------------------------------------------------------------------


def test_a_graph_stands_in_another_and_its_calls_are_in_the_same_trace() -> None:
    inner = CollabGraph([Sleeper("x", 1), Sleeper("y", 1)], [("x", "y")], rounds=2, name="inner")
    outer = CollabGraph([Sleeper("a"), inner, Sleeper("z")], [("a", "inner"), ("inner", "z")])
    trace = in_virtual_time(outer.run(BLANK))
    heard = {call.id: call.heard for call in trace.calls}
    assert list(heard) == [
        "a:0", "inner:0", "inner:0/x:0", "inner:0/y:0", "inner:0/x:1", "inner:0/y:1", "z:0"
    ]  # fmt: skip
    assert heard["inner:0/x:0"] == ("a:0",)
    assert heard["inner:0/x:1"] == ("inner:0/x:0", "a:0")
    assert heard["inner:0/y:1"] == ("inner:0/y:0", "inner:0/x:1")
    assert trace.message("inner:0").content == trace.message("inner:0/y:1").content
    assert trace.message("inner:0/y:1").sender == "inner/y"
    assert trace.agents == ("a", "inner", "z")


def test_a_nested_team_decides_and_its_context_can_be_rebuilt() -> None:
    model = HashModel()
    team = CollabGraph.collaborative(agents=3, rounds=2, model=model, views="shuffle", seed=4)
    trace = CollabGraph([team], rounds=2).run_sync(SCREEN, seed=3)
    assert trace.action is not None
    asked = {msgspec.json.encode(request.decision) for request in model.requests}
    inside = [call for call in trace.calls if "/agent" in call.node]
    assert len(inside) == 12
    assert {msgspec.json.encode(trace.decision(call)) for call in inside} == asked


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> Trace:
        return CollabGraph([Sleeper("a")]).run_sync("hello")

    assert asyncio.run(notebook()).messages[0].content == "a()"


def test_an_interrupt_in_a_notebook_cancels_the_run() -> None:
    log: list[str] = []
    place: ContextVar[str] = ContextVar("place", default="nowhere")

    class Slow:
        id = "slow"

        async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
            log.append(place.get())
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                log.append("cancelled")
                raise
            return NodeReply()

    async def cell() -> None:
        place.set("notebook")
        CollabGraph([Slow()]).run_sync(BLANK)

    loop = asyncio.new_event_loop()  # like a notebook's: asyncio.run would handle the signal
    # As in a new process: neither handlers nor garbage of earlier tests take the interrupt.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.collect()
    try:
        with closing(loop), pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        signal.signal(signal.SIGINT, before)
    assert log == ["notebook", "cancelled"]
