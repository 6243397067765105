"""Functions that block, in threads of their own."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Sequence

import pytest

from swarm_ui import CollabGraph, Limits, Message, NodeContext, RunFailed
from swarm_ui.nodes import function_node

GOAL: contextvars.ContextVar[str] = contextvars.ContextVar("goal")


def test_nodes_that_wait_for_each_other_in_threads_both_finish() -> None:
    barrier = threading.Barrier(2, timeout=10)

    @function_node(thread=True)
    def left(inbox: Sequence[Message], context: NodeContext) -> str:
        barrier.wait()
        return f"{threading.current_thread().name} {GOAL.get()}"

    @function_node(thread=True, id="other")
    def right(inbox: Sequence[Message], context: NodeContext) -> None:
        barrier.wait()

    GOAL.set("seen")
    trace = CollabGraph([left, right], output="other").run_sync("go")
    assert trace.message("left:0").content == "swarm-ui left seen"
    assert trace.message("other:0").content == ""


@pytest.mark.parametrize("raised", [ValueError("no"), StopIteration("no")])
def test_what_it_raises_is_the_failure_of_the_node(raised: Exception) -> None:
    @function_node(thread=True)
    def fail(inbox: Sequence[Message], context: NodeContext) -> str:
        raise raised

    with pytest.raises(RunFailed) as failed:
        CollabGraph([fail]).run_sync("go")
    assert failed.value.kind == "node"


def test_neither_a_deadline_nor_the_end_of_the_run_waits_for_the_function() -> None:
    free, ended = threading.Event(), threading.Event()

    @function_node(thread=True)
    def stuck(inbox: Sequence[Message], context: NodeContext) -> str:
        free.wait(30)
        ended.set()
        return "too late"

    started = time.monotonic()
    with pytest.raises(RunFailed) as failed:
        CollabGraph([stuck]).run_sync("go", limits=Limits(timeout=0.05))
    assert time.monotonic() - started < 15
    assert failed.value.kind == "timeout"
    assert not ended.is_set()
    free.set()
    assert ended.wait(10)  # it goes on to its end, and nobody hears what it returns
