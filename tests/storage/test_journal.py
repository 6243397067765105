"""Runs in a journal: what was written is never made again, whatever stops a process."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from forked import Child
from graph_fakes import BLANK, Sleeper, timeless
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_graph import SCREEN, Log, Waiter, layered

from swarm_ui import (
    Action,
    BudgetExceeded,
    CollabGraph,
    ConfigError,
    Journal,
    Message,
    NodeContext,
    NodeReply,
    Trace,
    TraceError,
)
from swarm_ui.model import Completion
from swarm_ui.nodes import Fallback, Map, function_node


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "runs.jsonl")


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


# -- runs that go on --------------------------------------------------------------------------


@settings(max_examples=12)
@given(seed=st.integers(0, 99), budgets=st.lists(st.integers(0, 40), max_size=4))
def test_stopped_anywhere_it_makes_each_call_that_was_written_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, budgets: list[int]
) -> None:
    journal = Journal(tmp_path_factory.mktemp("runs") / "runs.jsonl")
    undisturbed = layered(seed, wait=0.0002).run_sync(SCREEN, seed=seed, run_id="r")
    written: set[str] = set()
    for budget in budgets:
        log = Counting(budget)
        try:
            layered(seed, log, wait=0.0002).run_sync(SCREEN, seed=seed, run_id="r", journal=journal)
            break
        except BudgetExceeded as error:
            assert not written & set(log.started)
            before, written = written, set(journal.read("r").calls)
            assert before <= written and error.partial is not None
    kept = journal.read("r").calls if written else {}
    log = Counting()
    graph = layered(seed, log, wait=0.0002)
    trace = graph.run_sync(SCREEN, seed=seed, run_id="r", journal=journal)
    assert not written & set(log.started)
    assert timeless(trace) == timeless(undisturbed)
    assert trace.recorded().items() >= kept.items()  # times and all


def test_a_finished_run_makes_no_call_and_gives_the_same_trace(journal: Journal) -> None:
    trace = layered(7, wait=0).run_sync(SCREEN, seed=7, run_id="r", journal=journal)
    assert trace.skipped and any(call.error for call in trace.calls)
    size = journal.path.stat().st_size
    for each in (journal, Journal(journal.path)):
        log = Counting()
        again = layered(7, log, wait=0).run_sync(SCREEN, seed=7, run_id="r", journal=each)
        assert log.started == [] and again == trace
    assert journal.path.stat().st_size == size
    record = journal.read("r")
    assert record.finished and record.head.observation == SCREEN and record.head.seed == 7
    assert record.calls == trace.recorded()


class Wrapper:
    """A plain node that runs a graph inside its call."""

    id = "wrapper"

    def __init__(self, graph: CollabGraph, fails: bool = False) -> None:
        self.graph, self.fails = graph, fails

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        reply = await context.run(self.graph, inbox)
        if self.fails:
            raise ValueError("not good enough")
        return reply


def graphs_inside(log: Log) -> dict[str, CollabGraph]:
    late = [Waiter("z", log, 0.02), Waiter("y", log, 0), Waiter("x", log, 0)]
    inner = CollabGraph(late, [("z", "x"), ("y", "x")], name="inner")
    slow = CollabGraph([Waiter("quick", log, 0), Waiter("bad", log, 60)], [("quick", "bad")])
    slow = slow.named("wrapper")
    slow.timeout = 0.05  # type: ignore[attr-defined]
    single = Waiter("single", log, 0)
    broken = Waiter("inner", log, 0, fails=True)

    @function_node(id="wrapper")
    def items(inbox: Sequence[Message], context: NodeContext) -> str:
        return '["a", "b"]'

    both = {
        "wrapper": Wrapper(inner),
        "wrapper that fails": Wrapper(inner, fails=True),
        "graph that is too slow": slow,
        "fallback by a node": Fallback(slow, single),
        "fallback by a graph": Fallback(broken, inner.named("other"), id="wrapper"),
    }
    found = {
        name: CollabGraph([node, Waiter("end", log, 0)], [("wrapper", "end")])
        for name, node in both.items()
    }
    return {**found, "map": CollabGraph([items]) >> Map("map", inner) >> Waiter("end", log, 0)}


@pytest.mark.parametrize("kind", list(graphs_inside(Counting())))
def test_calls_inside_a_call_are_kept_and_come_in_the_same_order(
    journal: Journal, kind: str
) -> None:
    trace = graphs_inside(Counting())[kind].run_sync(BLANK, run_id="r", journal=journal)
    assert any("/" in call.id for call in trace.calls)
    late = any(call.error and call.error.kind == "timeout" for call in trace.calls)
    assert late == (kind in ("graph that is too slow", "fallback by a node"))
    log = Counting()
    again = graphs_inside(log)[kind].run_sync(BLANK, run_id="r", journal=journal)
    assert log.started == [] and again == trace


async def test_a_hundred_runs_at_once_in_one_file(journal: Journal) -> None:
    waiters = [Waiter(n, wait=0.001) for n in "abcd"]
    graph = CollabGraph(waiters, [("a", "c"), ("b", "c"), ("c", "d")])

    async def play(k: int) -> Trace:
        return await graph.run(BLANK, seed=k, run_id=f"run {k}", journal=journal)

    traces = await asyncio.gather(*map(play, range(100)))
    assert [timeless(t) for t in traces] == [
        timeless(await graph.run(BLANK, seed=k, run_id=f"run {k}")) for k in range(100)
    ]
    records = Journal(journal.path).runs()
    assert {record.head.run for record in records} == {f"run {k}" for k in range(100)}
    assert all(record.finished and len(record.calls) == 4 for record in records)
    assert await asyncio.gather(*map(play, range(100))) == traces


# -- what is refused --------------------------------------------------------------------------


def test_another_run_of_the_same_name_is_refused(journal: Journal) -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")])
    graph.run_sync(BLANK, run_id="r", journal=journal)
    size = journal.path.stat().st_size
    with pytest.raises(ConfigError, match="another seed"):
        graph.run_sync(BLANK, run_id="r", seed=1, journal=journal)
    with pytest.raises(ConfigError, match="another screen"):
        graph.run_sync("else", run_id="r", journal=journal)
    with pytest.raises(ConfigError, match="another graph"):
        graph.without_node("a").run_sync(BLANK, run_id="r", journal=Journal(journal.path))
    with pytest.raises(ConfigError, match="run_id"):
        graph.run_sync(BLANK, journal=journal)
    assert journal.path.stat().st_size == size
    with pytest.raises(ConfigError, match="no run 's'"):
        journal.read("s")
    with pytest.raises(ConfigError, match="no journal"):
        Journal(journal.path.with_name("none.jsonl")).runs()


async def test_a_file_is_open_in_one_place(journal: Journal) -> None:
    graph = CollabGraph([Sleeper("a", 30)])
    task = asyncio.create_task(graph.run(BLANK, run_id="r", journal=journal))
    await asyncio.sleep(0.01)
    for other in (journal, Journal(journal.path)):
        with pytest.raises(ConfigError, match="is open"):
            await graph.run(BLANK, run_id="r", journal=other)
    out, told = journal.path.with_name("out"), journal.path.with_name("errors")
    assert recording(journal.path, 3, out.with_suffix(".log"), out, told).wait() == 1
    assert "is open" in told.read_text() and not out.exists()
    task.cancel()
    await asyncio.wait([task])
    quick = CollabGraph([Sleeper("a")])
    assert (await quick.run(BLANK, run_id="r", journal=Journal(journal.path))).output == "a()"


@pytest.mark.parametrize("junk", [b"x", b"my notes\n", b"\x00\xff", b"[]\n", b'{"a":1}\n'])
def test_a_file_of_something_else_is_left_alone(journal: Journal, junk: bytes) -> None:
    journal.path.write_bytes(junk)
    with pytest.raises(TraceError):
        CollabGraph([Sleeper("a")]).run_sync(BLANK, run_id="r", journal=journal)
    with pytest.raises(TraceError):
        journal.runs()
    assert journal.path.read_bytes() == junk


def test_damage_is_named_with_its_line(journal: Journal) -> None:
    CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")]).run_sync(
        BLANK, run_id="r", journal=journal
    )
    lines = journal.path.read_bytes().splitlines(keepends=True)
    for junk in (b"junk\n", b'{"run":"r","said":"call"}\n', lines[1].replace(b'"r"', b'"other"')):
        journal.path.write_bytes(b"".join([lines[0], junk, *lines[2:]]))
        with pytest.raises(TraceError, match="line 2"):
            Journal(journal.path).runs()


# -- disks, processes and words ---------------------------------------------------------------


def test_cut_off_at_any_byte_it_goes_on_with_the_whole_lines(journal: Journal) -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")])
    trace = graph.run_sync(BLANK, run_id="r", journal=journal)
    data = journal.path.read_bytes()
    for end in range(len(data)):
        journal.path.write_bytes(data[:end])
        again = graph.run_sync(BLANK, run_id="r", journal=Journal(journal.path))
        assert timeless(again) == timeless(trace)
        lines = journal.path.read_bytes().splitlines()
        kinds = [list(json.loads(line))[1] for line in lines]
        assert kinds == ["head", "call", "call", "finished"]


def test_a_full_disk_ends_the_run_and_with_room_it_goes_on(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = os.write, 20_000

    def full(descriptor: int, data: bytes) -> int:
        nonlocal left
        if left <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= len(data)
        return write(descriptor, data[: max(1, left)])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(ConfigError, match="No space left"):
            layered(3, wait=0).run_sync(BLANK, seed=3, run_id="r", journal=journal)
    written = set(journal.read("r").calls)
    log = Counting()
    trace = layered(3, log, wait=0).run_sync(BLANK, seed=3, run_id="r", journal=journal)
    assert written and not written & set(log.started)
    assert timeless(trace) == timeless(layered(3, wait=0).run_sync(BLANK, seed=3, run_id="r"))


def test_whatever_a_model_says_can_be_kept(journal: Journal) -> None:
    class Odd:
        id = "odd"
        calls = 0

        async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
            self.calls += 1
            half = Action(action_type="input_text", index=0, text="half a smile \ud83d")
            said = Completion(text="x", prompt="p\ud83d", logprob=-float("inf"))
            return NodeReply(content="a\n\x00\ud83db", action=half, completion=said)

    node = Odd()
    graph = CollabGraph([node, Sleeper("end")], [("odd", "end")])
    trace = graph.run_sync(SCREEN, run_id="r\n/../\u2028", journal=journal)
    again = graph.run_sync(SCREEN, run_id="r\n/../\u2028", journal=Journal(journal.path))
    assert node.calls == 1 and again.messages[1:] == trace.messages[1:]
    assert again.messages[0].content == trace.messages[0].content
    assert trace.calls[0].completion is not None and trace.calls[0].completion.logprob is None


# -- kill -9 ----------------------------------------------------------------------------------


def told(log: Path) -> list[tuple[str, str, list[str]]]:
    """What the nodes of one process wrote; a line that was cut off by the kill had no effect."""
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    return [tuple(json.loads(line)) for line in lines]


def recording(path: Path, seed: int, log: Path, out: Path, stderr: Path | None = None) -> Child:
    """A process that runs the layered graph of a seed with the journal, tells ``log`` what its
    nodes do, and writes the trace to ``out``."""

    def work() -> None:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def tell(what: str, id: str, heard: Sequence[str]) -> None:
            os.write(handle, json.dumps([what, id, list(heard)]).encode() + b"\n")

        tell("begin", "", [])
        graph, journal = layered(seed, tell), Journal(path)
        trace = graph.run_sync(SCREEN, seed=seed, run_id=f"run/{seed}", journal=journal)
        beside = out.with_suffix(".part")
        beside.write_bytes(msgspec.json.encode(trace))
        beside.rename(out)

    return Child(work, stderr)


def test_killed_at_random_moments_it_loses_and_repeats_nothing(journal: Journal) -> None:
    """After each kill all written calls are there, word for word; none of them starts again; and
    all that a started call hears is written."""
    rng, kills, seed, folder = random.Random(7), 0, 0, journal.path.parent
    while kills < 8:
        seed += 1
        out, written = folder / f"{seed}.json", {}
        while not out.exists():
            log = folder / f"{seed}.{kills}.log"
            child = recording(journal.path, seed, log, out)
            lines, until = rng.randrange(0, 40), time.monotonic() + 60
            while len(told(log)) < lines and not out.exists():
                assert time.monotonic() < until
                time.sleep(0.0005)
            time.sleep(rng.uniform(0, 0.008))
            ended = child.kill()
            assert ended in (0, -signal.SIGKILL)
            runs = Journal(journal.path).runs() if journal.path.exists() else []
            now = {id: p for r in runs if r.head.run == f"run/{seed}" for id, p in r.calls.items()}
            assert {id: now.get(id) for id in written} == written, "something was lost"
            for what, id, heard in told(log):
                assert what != "start" or id not in written, "done twice"
                assert what != "start" or set(heard) <= set(now), f"{id} ran ahead"
            written, kills = now, kills + (ended != 0)
        trace = msgspec.json.decode(out.read_bytes(), type=Trace)
        undisturbed = layered(seed, wait=0).run_sync(SCREEN, seed=seed, run_id=f"run/{seed}")
        assert timeless(trace) == timeless(undisturbed)
