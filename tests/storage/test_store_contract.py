"""What every store does alike: keeps calls word for word, and one run by one writer."""

from __future__ import annotations

import asyncio
import datetime
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from graph_fakes import BLANK, SCREEN
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_child import OPEN, Stores

from swarm_ui import Action, Call, CollabGraph, ConfigError, Message, Observation
from swarm_ui.errors import Failure
from swarm_ui.graph.convert import to_json
from swarm_ui.storage.line_store import LineJournal
from swarm_ui.storage.protocol import Head, RecordedCall
from swarm_ui.storage.write_batches import Batches

ROOT = Path(__file__).resolve().parents[2]
GRAPH = '{"version":1,"name":"team","nodes":[],"edges":[],"output":"a","rounds":1}'


@pytest.fixture(params=list(OPEN))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    with OPEN[request.param](tmp_path / "store") as opened:
        yield opened


def again(store: Stores) -> Stores:
    """Another store object on the same files."""
    where = store._path
    return type(store)(where, fsync=False)


def head(run: str, **other: Any) -> Head:
    return Head(run=run, **{"seed": 1, "graph": GRAPH, "observation": BLANK, **other})


def said(id: str, content: str = "", **other: Any) -> RecordedCall:
    name, _, round = id.rpartition(":")
    message = Message(id=id, sender=name, round=int(round), content=content)
    return message, Call(message=id, node=name, round=int(round), reply=content, **other)


def write(
    store: Stores, head: Head, *calls: RecordedCall, finish: bool = False
) -> dict[str, RecordedCall]:
    """Open a run, write calls; what was in it before."""

    async def use() -> dict[str, RecordedCall]:
        journal = await store.open(head)
        try:
            for message, call in calls:
                await journal.write(message, call)
            if finish:
                await journal.finish()
            return dict(journal.past)
        finally:
            journal.close()

    return asyncio.run(use())


def plain(value: object) -> object:
    """Something that is equal for equal records, ``nan`` and half characters too."""
    if isinstance(value, msgspec.Struct):
        return [plain(getattr(value, field)) for field in value.__struct_fields__]
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return repr(value)


texts = st.text(st.characters(exclude_categories=()))  # lone surrogates too
failures = st.builds(Failure, kind=st.just("model"), message=texts)
numbers = st.none() | st.floats()
actions = st.none() | st.builds(
    Action,
    action_type=st.just("input_text"),
    index=st.integers(0, 9),
    text=texts,
    target=st.none() | texts,
)
ballots = st.none() | st.dictionaries(texts, st.floats())


@st.composite
def calls(draw: st.DrawFn) -> RecordedCall:
    id = f"{draw(st.sampled_from('abc'))}:{draw(st.integers(0, 3))}"
    message, call = said(id, draw(texts), prompt=draw(texts), error=draw(st.none() | failures))
    return (
        msgspec.structs.replace(message, action=draw(actions), logprob=draw(numbers)),
        msgspec.structs.replace(call, logprob=draw(numbers), ballot=draw(ballots)),
    )


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=texts.filter(bool),
    goal=texts,
    png=st.none() | st.binary(),
    first=st.lists(calls(), max_size=4),
    then=st.lists(calls(), max_size=4),
)
def test_what_is_read_is_what_was_written(
    store: Stores,
    name: str,
    goal: str,
    png: bytes | None,
    first: list[RecordedCall],
    then: list[RecordedCall],
) -> None:
    it = head(name, observation=Observation(goal=goal, elements=(), png=png))
    expected: dict[str, RecordedCall] = {}
    for spoken in (*first, *then):  # the later of two counts, and stands where it was written
        expected.pop(spoken[0].id, None)
        expected[spoken[0].id] = spoken
    try:
        assert write(store, it, *first) == {}
        write(store, it, *then)
        past = write(store, it)
        assert plain(list(past.values())) == plain(list(expected.values()))
        record = store.read(name)
        assert plain(record.calls) == plain(tuple(expected.values()))
        assert record.head == it and not record.finished
        assert [run.name for run in store.runs()] == [name]
        assert store.runs()[0].calls == len(first) + len(then)
    finally:
        store.delete(name)
    assert store.runs() == []


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(texts.filter(bool), min_size=2, max_size=5, unique=True))
def test_runs_of_other_names_are_other_runs(store: Stores, names: list[str]) -> None:
    for name in names:
        assert write(store, head(name), said("a:0", name)) == {}
    for name in names:
        assert store.read(name).calls == (said("a:0", name),)
        store.delete(name)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/", "..", "a/b", "A", "con", "x" * 5000, "\0", "\n", "é" * 300]
)
def test_a_name_leads_nowhere_else(store: Stores, name: str, tmp_path: Path) -> None:
    write(store, head(name), said("a:0"))
    write(store, head(name.lower()), said("b:0"))
    assert {each.name for each in tmp_path.iterdir()} <= {
        "store", "store-wal", "store-shm", "store-locks"
    }  # fmt: skip
    assert store.read(name).head.run == name


def test_a_megabyte_and_a_picture(store: Stores) -> None:
    screen = Observation(goal="g", elements=SCREEN.elements, png=os.urandom(1 << 20))
    content = "line\r\n\u2028\x00\x85" * 150_000
    it = head("big", observation=screen)
    write(store, it, said("a:0", content), said("b:0", "\ud83d\ude00 in two halves"))
    assert write(store, it) == {
        "a:0": said("a:0", content), "b:0": said("b:0", "\ud83d\ude00 in two halves")
    }  # fmt: skip


def test_what_cannot_be_read_again_is_not_written(store: Stores) -> None:
    message, call = said("a:0")
    for wrong in (
        msgspec.structs.replace(message, content=7),
        msgspec.structs.replace(message, usage=object()),
    ):
        with pytest.raises(ConfigError, match=r"what node 'a' answered \(a:0\) cannot be kept"):
            write(store, head("r"), (wrong, call))
    with pytest.raises(ConfigError, match="run 'q' cannot be kept in a store"):
        write(store, head("q", observation={"goal": object()}))
    assert write(store, head("r")) == {}
    assert [run.name for run in store.runs()] == ["r"]


def test_the_list_says_how_far_each_run_is(store: Stores) -> None:
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    write(store, head("one"), said("a:0"), said("b:0"), finish=True)
    write(store, head("two"), said("a:0"))
    write(store, head("none"))
    runs = {run.name: run for run in store.runs()}
    assert list(runs) == ["one", "two", "none"]
    assert [(run.calls, run.finished) for run in runs.values()] == [
        (2, True),
        (1, False),
        (0, False),
    ]
    for run in runs.values():
        assert before < run.begun and run.written >= run.begun - datetime.timedelta(seconds=1)
    assert store.read("one").finished
    write(store, head("one"), finish=True)
    assert store.runs()[0].finished
    write(store, head("one"), said("b:0", "made again"))  # so the end is no longer the end
    assert (store.runs()[0].calls, store.runs()[0].finished) == (3, False)
    assert store.read("one").calls == (said("a:0"), said("b:0", "made again"))


def test_another_run_of_the_same_name_is_refused(store: Stores) -> None:
    graph = CollabGraph([Named(n) for n in "ab"], [("a", "b")])
    it = head("r", graph=to_json(graph), observation=SCREEN)
    write(store, it, said("a:0"))
    longer = to_json(CollabGraph([Named(n) for n in "abc"], [("a", "b"), ("b", "c")]))
    flat = msgspec.structs.replace(SCREEN, elements=())
    for change, words in (
        ({"seed": 2}, "the run 'r' in .* was started with the seed 1 instead of 2"),
        ({"graph": longer}, r"another graph \(nodes with nothing more instead of c \(Named\); "
         r"edges with nothing more instead of b -> c; output 'b' instead of 'c'\)"),
        ({"observation": BLANK}, r"another screen \(the goal 'open settings' instead of ''\)"),
        ({"observation": flat}, r"another screen \(other elements\)"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=words) as raised:
            write(store, msgspec.structs.replace(it, **change))
        assert str(raised.value).endswith("choose another name, or call delete('r')")
    loose = msgspec.structs.replace(SCREEN, elements=list(SCREEN.elements))
    assert list(write(store, msgspec.structs.replace(it, observation=loose))) == ["a:0"]


class Named:
    def __init__(self, id: str) -> None:
        self.id = id

    async def __call__(self, inbox: object, context: object) -> Message:
        raise NotImplementedError


async def test_a_run_is_open_once(store: Stores) -> None:
    journal = await store.open(head("r"))
    with again(store) as other:
        for one in (store, other):
            with pytest.raises(ConfigError, match=r"the run 'r' in .* is open, here or in another"):
                await one.open(head("r"))
            with pytest.raises(ConfigError, match="is open"):
                one.delete("r")
        (await other.open(head("q"))).close()
        await journal.write(*said("a:0"))  # refusing others has not given it free
        assert other.read("r").calls == (said("a:0"),)
        journal.close()
        (await other.open(head("r"))).close()
        other.delete("r")
    assert [run.name for run in store.runs()] == ["q"]


HOLD = """
import asyncio, sys
from pathlib import Path
from store_child import OPEN
from test_store_contract import head, said
async def hold():
    journal = await OPEN[sys.argv[1]](Path(sys.argv[2])).open(head("r"))
    await journal.write(*said("a:0"))
    print("held", flush=True)
    await asyncio.sleep(600)
asyncio.run(hold())
"""


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
async def test_a_run_is_open_in_one_process_until_that_is_dead(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "store"
    paths = os.pathsep.join(
        [str(ROOT), str(ROOT / "tests" / "support"), str(ROOT / "tests" / "storage")]
    )
    with OPEN[kind](path) as store, subprocess.Popen(
        [sys.executable, "-c", HOLD, kind, str(path)],
        env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            with pytest.raises(ConfigError, match="a killed process holds no lock"):
                await store.open(head("r"))
            (await store.open(head("q"))).close()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        journal = await store.open(head("r"))
        assert dict(journal.past) == {"a:0": said("a:0")}
        journal.close()


def test_a_run_without_a_name_and_one_that_is_not_there(store: Stores) -> None:
    with pytest.raises(ConfigError, match="needs a unique name"):
        write(store, head(""))
    with pytest.raises(ConfigError, match=r"there is no run 'r' in .*; runs\(\) lists"):
        store.read("r")
    with pytest.raises(ConfigError, match="there is no run 'r'"):
        store.delete("r")
    assert store.runs() == []


async def test_a_closed_store_is_refused(store: Stores) -> None:
    journal = await store.open(head("r"))
    await journal.write(*said("a:0"))
    store.close()
    with pytest.raises(ConfigError, match="is closed"):
        await journal.write(*said("b:0"))
    journal.close()
    with pytest.raises(ConfigError, match="is closed"):
        await store.open(head("r"))
    assert store.read("r").calls == (said("a:0"),)
    store.close()


async def test_writes_that_are_cancelled_are_whole_or_not_there(store: Stores) -> None:
    pairs = [said(f"a:{k}", "x" * 1000) for k in range(50)]
    journal = await store.open(head("r"))
    tasks = [asyncio.create_task(journal.write(*pair)) for pair in pairs]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    journal.close()
    found = store.read("r").calls
    assert found == tuple(pairs[: len(found)])


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
async def test_closing_waits_for_what_is_being_written(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = Batches._settle

    def slowly(batches: Any, batch: Any) -> None:
        time.sleep(0.05)
        settle(batches, batch)

    with OPEN[kind](tmp_path / "store") as store:
        journal = await store.open(head("r"))
        monkeypatch.setattr(Batches, "_settle", slowly)
        tasks = [asyncio.create_task(journal.write(*said(f"a:{k}"))) for k in range(2)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        journal.close()
        assert [message.id for message, _ in store.read("r").calls] == ["a:0", "a:1"]
        (await store.open(head("r"))).close()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_opening_that_is_cancelled_leaves_nothing_open(
    store: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_up = store._take_up

    def slowly(head: Head) -> LineJournal:
        journal = take_up(head)
        time.sleep(0.02)
        return journal

    monkeypatch.setattr(store, "_take_up", slowly)
    for turns in range(20):
        opening = asyncio.create_task(store.open(head("r")))
        await asyncio.sleep(turns / 5000)
        opening.cancel()
        await asyncio.wait([opening])
        if not opening.cancelled():  # on a busy machine
            opening.result().close()
        (await store.open(head("r"))).close()


def test_numbers_that_json_has_no_word_for(store: Stores) -> None:
    message, call = said("a:0")
    message = msgspec.structs.replace(message, logprob=-math.inf)
    call = msgspec.structs.replace(call, ballot={"null": math.inf, "\\inf": 0.5})
    write(store, head("r"), (message, call))
    assert store.read("r").calls == ((message, call),)
