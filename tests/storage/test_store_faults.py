"""Full disks, files that were cut off or damaged, and files of something else."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_fakes import BLANK, Sleeper, timeless
from store_child import OPEN
from store_graph import Waiter, layered

from swarm_ui import CollabGraph, ConfigError, Message, SwarmError, TraceError
from swarm_ui.nodes import map_node
from swarm_ui.storage import DirectoryStore, SQLiteStore

GRAPH = CollabGraph([Waiter(n, wait=0) for n in "abc"], [("a", "b"), ("a", "c"), ("b", "c")])


def only(folder: Path) -> Path:
    (file,) = folder.glob("*.jsonl")
    return file


def full_after(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """The disk takes so many calls, and half of the next."""
    write, left = os.write, [calls]

    def writing(descriptor: int, data: Any) -> int:
        if bytes(data[:10]) == b'{"message"':
            left[0] -= 1
            if left[0] < 0:
                write(descriptor, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", writing)


@pytest.mark.parametrize("fsync", [True, False])
@pytest.mark.parametrize("stuck", [True, False])
def test_a_full_disk_ends_the_run_and_with_room_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool, stuck: bool
) -> None:
    expected = GRAPH.run_sync(BLANK, run_id="r")
    with DirectoryStore(tmp_path, fsync=fsync) as store:
        with monkeypatch.context() as patch:
            full_after(patch, 1)
            if stuck:  # not even taking the half away works
                patch.setattr(os, "ftruncate", failing(errno.EIO))
            with pytest.raises(ConfigError, match=r"No space left.* written before is safe") as e:
                GRAPH.run_sync(BLANK, run_id="r", store=store)
        assert str(only(tmp_path)) in str(e.value) and e.value.partial is not None
        assert only(tmp_path).read_bytes().endswith(b"\n") is not stuck
        assert [message.id for message, _ in store.read("r").calls] == ["a:0"]
        assert timeless(GRAPH.run_sync(BLANK, run_id="r", store=store)) == timeless(expected)


def failing(number: int) -> Callable[..., Any]:
    def fail(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_disk_that_does_not_keep_its_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DirectoryStore(tmp_path) as store:

        async def use() -> None:
            with pytest.raises(BaseException, match="Input/output error"):
                await GRAPH.run(BLANK, run_id="r", store=store)

        GRAPH.run_sync(BLANK, run_id="q", store=store)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing(errno.EIO))
            asyncio.run(use())
        assert [run.name for run in store.runs()] == ["q"]  # the new one has not even begun
        assert GRAPH.run_sync(BLANK, run_id="r", store=store).action is not None


@pytest.mark.parametrize("kind", list(OPEN))
def test_a_full_disk_is_no_tombstone_of_a_nested_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    outer = CollabGraph([GRAPH.named("inner"), Sleeper("end")], [("inner", "end")])
    with OPEN[kind](tmp_path / "store") as store:
        if isinstance(store, SQLiteStore):
            GRAPH.run_sync(BLANK, run_id="q", store=store)
            when = "WHEN new.line LIKE '%b:0%' BEGIN SELECT RAISE(FAIL, 'full'); END"
            store._db.execute(f"CREATE TEMP TRIGGER full BEFORE INSERT ON main.lines {when}")
        else:
            full_after(monkeypatch, 1)
        with pytest.raises(ConfigError, match="What was written before is safe"):
            outer.run_sync(BLANK, run_id="r", store=store)
        assert [message.id for message, _ in store.read("r").calls] == ["inner:0/a:0"]


def test_a_full_database_ends_the_run_and_with_room_it_goes_on(tmp_path: Path) -> None:
    graph, path = layered(3, wait=0), tmp_path / "runs.db"
    with SQLiteStore(path) as store:
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(ConfigError, match=r"database or disk is full.* continues from there"):
            graph.run_sync("g", run_id="r", store=store)
        kept = store.read("r").calls
        assert 0 < len(kept) < 40 and store.runs()[0].calls == len(kept)
    with SQLiteStore(path) as store:
        trace = graph.run_sync("g", run_id="r", store=store)
    assert timeless(trace) == timeless(graph.run_sync("g", run_id="r"))


class Forgetful:
    """A store of somebody else's, whose journal fails in its own way."""

    def __init__(self, part: str = "") -> None:
        """``part``: of the ids of messages that it does not keep."""
        self.part, self.past = part, dict[str, Any]()

    async def open(self, head: object) -> Forgetful:
        return self

    async def write(self, message: Message, call: object) -> None:
        if self.part in message.id:
            raise KeyError("where was I")

    async def ask(self, question: object) -> None: ...

    async def finish(self) -> None: ...

    def close(self) -> None: ...


def test_another_store_that_fails_ends_the_run_too() -> None:
    outer = CollabGraph([GRAPH.named("inner"), Sleeper("end")], [("inner", "end")])
    with pytest.raises(ConfigError, match="the store did not keep 'inner:0/a:0': KeyError"):
        outer.run_sync(BLANK, run_id="r", store=Forgetful())  # type: ignore[arg-type]


def test_a_store_that_does_not_keep_an_item_ends_the_run() -> None:
    node = map_node("each", GRAPH.named("inner"), over=lambda message: [message.content])
    outer = CollabGraph([Sleeper("start"), node], [("start", "each")])
    with pytest.raises(ConfigError, match="the store did not keep 'each:0/item:0': KeyError"):
        outer.run_sync(BLANK, run_id="r", store=Forgetful("/item:"))  # type: ignore[arg-type]


# -- cut off and damaged ----------------------------------------------------------------------


def test_cut_off_at_any_byte_it_goes_on_with_the_whole_lines(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path, fsync=False) as store:
        expected = GRAPH.run_sync(BLANK, run_id="r", store=store)
        file = only(tmp_path)
        data = file.read_bytes()
        ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == b"\n"]
        near = {end + step for end in ends for step in (-2, -1, 0, 1)}
        for cut in sorted({*range(0, len(data), 23), *near} - {len(data) + 1}):
            file.write_bytes(data[:cut])
            whole = sum(end <= cut for end in ends)
            listed = store.runs()
            assert len(listed) == (whole > 0)
            assert not listed or listed[0].calls == min(whole - 1, 3)
            assert timeless(GRAPH.run_sync(BLANK, run_id="r", store=store)) == timeless(expected)
            assert len(store.read("r").calls) == 3 and store.read("r").finished


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda lines: [lines[0], b"{}", *lines[1:]],
            "line 2: not a call of a run: .*field `message`",
        ),
        (lambda lines: [*lines[:2], b"\xff\xfe", *lines[2:]], "line 3: not a call of a run"),
        (lambda lines: [*lines, b""], "line 6: not a call of a run"),
        (lambda lines: [lines[0], lines[1][:-9], *lines[2:]], "line 2: not a call of a run"),
        (
            lambda lines: lines[1:],
            "line 1: not the head of a run: (.*)`swarm_ui_run`(.*) from a copy",
        ),
        (lambda lines: [b'{"swarm_ui_run":2}', *lines], "line 1: a run of version 2; this release"),
    ],
)
def test_damage_is_named_with_file_and_line(
    tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]], words: str
) -> None:
    with DirectoryStore(tmp_path) as store:
        GRAPH.run_sync(BLANK, run_id="r", store=store)
        file = only(tmp_path)
        changed = b"\n".join(damage(file.read_bytes().splitlines())) + b"\n"
        file.write_bytes(changed)
        for use in (
            lambda: GRAPH.run_sync(BLANK, run_id="r", store=store),
            lambda: store.read("r"),
        ):
            with pytest.raises(TraceError, match=words) as raised:
                use()
            assert str(raised.value).startswith(str(file))
        assert file.read_bytes() == changed  # nothing was taken away
        store.delete("r")


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    with DirectoryStore(tmp_path) as store:
        GRAPH.run_sync(BLANK, run_id="r", store=store)
        only(tmp_path).write_bytes(b"my shopping list")
        with pytest.raises(TraceError, match="not the file of a run; move it to another folder"):
            GRAPH.run_sync(BLANK, run_id="r", store=store)
        assert only(tmp_path).read_bytes() == b"my shopping list"
    with pytest.raises(ConfigError, match="cannot create the store"):
        DirectoryStore(only(tmp_path))


def test_a_database_that_is_none_or_another(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"my shopping list" * 100)
    with pytest.raises(TraceError, match="file is not a database"):
        SQLiteStore(path)
    path.unlink()
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE shopping (item TEXT)")
    with pytest.raises(
        TraceError, match="this SQLite database was not created by swarm-ui; choose another path"
    ):
        SQLiteStore(path)
    other.close()
    with pytest.raises(SwarmError, match="unable to open database file"):
        SQLiteStore(tmp_path / "missing" / "x.db")
    path.unlink()
    with SQLiteStore(path) as store:
        GRAPH.run_sync(BLANK, run_id="r", store=store)
        store._db.execute("UPDATE lines SET line = '{}' WHERE place = 2")
        for use in (
            lambda: GRAPH.run_sync(BLANK, run_id="r", store=store),
            lambda: store.read("r"),
        ):
            with pytest.raises(TraceError, match=r"x\.db, run 'r', line 3: not a call of a run"):
                use()
        store._db.execute("PRAGMA user_version = 2")
    with pytest.raises(TraceError, match="a store of version 2; this release reads 1"):
        SQLiteStore(path)


# -- how it is written ------------------------------------------------------------------------


@pytest.mark.parametrize("fsync", [True, False])
def test_calls_that_end_together_share_a_sync_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fsync: bool
) -> None:
    synced: list[int] = []
    first = threading.Event()
    sync = os.fsync

    def syncing(descriptor: int) -> None:
        synced.append(threading.get_ident())
        if len(synced) == 3:  # head, folder, and the first call: the other 99 are on their way
            first.wait(10)
        sync(descriptor)

    class Last(Sleeper):
        async def __call__(self, *what: Any) -> Any:
            asyncio.get_running_loop().call_later(0.05, first.set)
            return await super().__call__(*what)

    monkeypatch.setattr(os, "fsync", syncing)
    graph = CollabGraph([*[Sleeper(f"n{k}", 1e-6) for k in range(99)], Last("last", 1e-6)],
                        output="last")  # fmt: skip
    with DirectoryStore(tmp_path, fsync=fsync) as store:
        trace = graph.run_sync(BLANK, run_id="r", store=store)
    assert len(trace.calls) == 100
    if fsync:
        assert 4 <= len(synced) < 20 and threading.get_ident() not in synced
    else:
        assert synced == []


def test_with_sync_no_listener_starts_before_the_disk_has_what_it_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync = os.fsync

    def syncing(descriptor: int) -> None:
        sync(descriptor)
        order.append("sync")

    monkeypatch.setattr(os, "fsync", syncing)
    chain = CollabGraph(
        [Waiter(n, lambda what, id, heard: order.append(f"{what} {id}"), 0) for n in "ab"],
        [("a", "b")],
    )
    with DirectoryStore(tmp_path) as store:
        chain.run_sync(BLANK, run_id="r", store=store)
    assert order == ["sync", "sync", "start a:0", "end a:0", "sync",
                     "start b:0", "end b:0", "sync", "sync"]  # fmt: skip
