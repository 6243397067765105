"""Files that were damaged or forged: a typed error that names the place, and no file is touched."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_fakes import SCREEN, HashModel, timeless

from swarm_ui import (
    CollabGraph,
    ConfigError,
    DirectoryStore,
    Episode,
    SQLiteStore,
    SwarmError,
    Trace,
    TraceError,
    append_jsonl,
    iter_jsonl,
    open_jsonl,
    read_jsonl,
    write_jsonl,
)
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.storage.run_lines import check_sum

DEEP = b"[" * 100_000 + b"]" * 100_000
LONG = b"1" * 5_000
GRAPH = CollabGraph.collaborative(2, 2, model=HashModel(), seed=1)
NASTY = [DEEP, LONG, b"-" + LONG, b"1e999", b"NaN", b'"\\ud800"', b"\xff\xfe", b"{", b""]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# -- stores -----------------------------------------------------------------------------------


def stored(folder: Path) -> Path:
    with DirectoryStore(folder) as store:
        GRAPH.run_sync(SCREEN, run_id="r", store=store)
    (path,) = folder.glob("*.jsonl")
    return path


def test_every_line_has_a_checksum_and_any_changed_byte_is_found(tmp_path: Path) -> None:
    path = stored(tmp_path)
    data = path.read_bytes()
    assert all(b',"crc":"' in line[-18:] for line in data.splitlines())
    draw = random.Random(0)
    found = 0
    with DirectoryStore(tmp_path) as store:
        expected = store.read("r")
        for at in draw.sample(range(len(data)), 1500):
            changed = bytearray(data)
            changed[at] ^= 1 << draw.randrange(8)
            path.write_bytes(changed)
            try:
                same = store.read("r") == expected
                # Only the name of the checksum's field may change without a trace.
                assert same or b"\n" in (data[at : at + 1], changed[at : at + 1]), at
            except (TraceError, ConfigError) as error:
                found += 1
                assert str(path) in str(error) or "no run" in str(error)
            assert path.read_bytes() == changed
    assert found > 1300


def test_files_without_checksums_are_read_and_continued(tmp_path: Path) -> None:
    path = stored(tmp_path)
    whole = path.read_bytes().splitlines()
    old = [line[: line.rindex(b',"crc"')] + b"}" for line in whole]
    path.write_bytes(b"\n".join(old[:3]) + b"\n")
    with DirectoryStore(tmp_path) as store:
        assert len(store.read("r").calls) == 2
        trace = GRAPH.run_sync(SCREEN, run_id="r", store=store)
        assert timeless(trace) == timeless(GRAPH.run_sync(SCREEN, run_id="r"))
        assert store.read("r").finished
    lines = path.read_bytes().splitlines()
    assert lines[:3] == old[:3] and all(b'"crc"' in line for line in lines[3:])
    for line in lines:
        check_sum(line)


@pytest.mark.parametrize("junk", NASTY)
@pytest.mark.parametrize("place", [0, 1, -1])
def test_junk_in_a_run_of_a_folder(tmp_path: Path, junk: bytes, place: int) -> None:
    path = stored(tmp_path)
    lines = path.read_bytes().splitlines()
    lines[place] = junk
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = files(tmp_path)
    with DirectoryStore(tmp_path) as store:
        for use in (
            lambda: store.read("r"),
            lambda: GRAPH.run_sync(SCREEN, run_id="r", store=store),
            *([store.runs] if place == 0 else []),
        ):
            with pytest.raises(TraceError):
                use()
    assert files(tmp_path) == before


CHANGES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a blob for a line": ("UPDATE lines SET line = ? WHERE place = 2", (b"\x00\xff",)),
    "a number for a line": ("UPDATE lines SET line = ? WHERE place = 2", (7,)),
    "no UTF-8 in a line": ("UPDATE lines SET line = CAST(? AS TEXT) WHERE place = 2", (b"\xff",)),
    "deep": ("UPDATE lines SET line = ? WHERE place = 2", (DEEP.decode(),)),
    "long": ("UPDATE lines SET line = ? WHERE place = 2", (LONG.decode(),)),
    "a blob for a head": ("UPDATE runs SET head = ?", (b"\x00\xff",)),
    "a deep head": ("UPDATE runs SET head = ?", (DEEP.decode(),)),
    "a number for a head": ("UPDATE runs SET head = ?", (7,)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_junk_in_a_run_of_a_database(tmp_path: Path, change: tuple[str, tuple[Any, ...]]) -> None:
    path = tmp_path / "runs.db"
    with SQLiteStore(path) as store:
        GRAPH.run_sync(SCREEN, run_id="r", store=store)
    with sqlite3.connect(path) as db:
        db.execute(*change)
    db.close()
    before = path.read_bytes()
    with SQLiteStore(path) as store:
        for use in (
            lambda: store.read("r"),
            lambda: GRAPH.run_sync(SCREEN, run_id="r", store=store),
        ):
            with pytest.raises(TraceError, match=r"runs\.db, run 'r', line"):
                use()
        assert store.runs()[0].name == "r"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    ["UPDATE runs SET begun = 'x'", "UPDATE runs SET begun = 1e300",
     "UPDATE runs SET name = x'ff'", "UPDATE lines SET at = 'x'"],
)  # fmt: skip
def test_a_damaged_list_of_runs(tmp_path: Path, change: str) -> None:
    with SQLiteStore(tmp_path / "runs.db") as store:
        GRAPH.run_sync(SCREEN, run_id="r", store=store)
        store._db.execute(change)
        with pytest.raises(TraceError, match="its list of runs is damaged"):
            store.runs()


def test_a_blob_with_the_right_bytes_is_a_line(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "runs.db") as store:
        GRAPH.run_sync(SCREEN, run_id="r", store=store)
        expected = store.read("r")
        store._db.execute("UPDATE lines SET line = CAST(line AS BLOB)")
        assert store.read("r") == expected


@pytest.mark.parametrize("end", [0, 1, 50, 1000, 4096, 5000, 8191])
def test_a_truncated_database(tmp_path: Path, end: int) -> None:
    path = tmp_path / "runs.db"
    with SQLiteStore(path) as store:
        GRAPH.run_sync(SCREEN, run_id="r", store=store)
    path.write_bytes(path.read_bytes()[:end])
    before = path.read_bytes()
    try:
        with SQLiteStore(path) as store:
            store.runs()
            store.read("r")
    except SwarmError:
        assert path.read_bytes() == before or end <= 1
    else:
        raise AssertionError("a truncated database was read")


# -- traces -----------------------------------------------------------------------------------


def traces(folder: Path) -> Path:
    path = folder / "t.jsonl"
    write_jsonl(path, [GRAPH.run_sync(SCREEN, run_id=f"r{k}", seed=k) for k in range(3)])
    return path


def reading(path: Path, kind: type[Any]) -> list[Callable[[], object]]:
    def opened() -> object:
        with open_jsonl(path, kind) as file:
            records = [file[k] for k in range(len(file))]
            return [list(r.steps) if isinstance(r, Episode) else r for r in records]

    return [lambda: read_jsonl(path, kind), lambda: list(iter_jsonl(path, kind)), opened]


@pytest.mark.parametrize("junk", NASTY)
@pytest.mark.parametrize("kind", [Trace, Episode])
@pytest.mark.parametrize(
    "around",
    [b"%b", b'{"version":1,"trace":%b}', b'{"version":%b,"episode":{}}',
     b'{"version":1,"episode":{"environment":"e","task":"t","seed":%b}}',
     b'{"version":1,"episode":{"environment":"e","task":"t","seed":1,"steps":[%b]}}'],
)  # fmt: skip
def test_junk_in_a_trace_file(tmp_path: Path, junk: bytes, kind: Any, around: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(around.replace(b"%b", junk) + b"\n")
    empty = (
        around == b'{"version":1,"episode":{"environment":"e","task":"t","seed":1,"steps":[%b]}}'
    )
    for read in reading(path, kind):
        if empty and junk == b"" and kind is Episode:
            read()
            continue
        with pytest.raises(TraceError):
            read()
    assert path.read_bytes() == around.replace(b"%b", junk) + b"\n"


def test_cut_off_at_any_byte(tmp_path: Path) -> None:
    path = traces(tmp_path)
    data = path.read_bytes()
    for end in [*range(1, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:end])
        whole = data[:end].count(b"\n")
        if data[:end].endswith(b"\n"):
            assert len(read_jsonl(path, Trace)) == whole
            continue
        for read in reading(path, Trace):
            with pytest.raises(TraceError, match=rf"line {whole + 1}: "):
                read()
        with pytest.raises(TraceError, match="cut off"):
            append_jsonl(path, [])
        assert path.read_bytes() == data[:end]


def test_what_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", tmp_path / "a" / "b"):
        for kind in (Trace, Episode):
            for read in reading(path, kind):
                with pytest.raises(TraceError, match="cannot be opened"):
                    read()


# -- run folders and graphs -------------------------------------------------------------------


@pytest.mark.parametrize("junk", [b'{"run_version":' + each + b"}" for each in NASTY] + NASTY)
def test_junk_in_a_run_folder(tmp_path: Path, junk: bytes) -> None:
    run = RunDirectory.create(tmp_path / "run", config={})
    run.log({"kind": "iteration"})
    for name, read in (
        ("status.json", run.status),
        ("metrics.jsonl", run.metrics),
        ("config.json", lambda: RunDirectory.open_existing(run.path)),
    ):
        (run.path / name).write_bytes(junk + b"\n")
        before = files(tmp_path)
        if name == "metrics.jsonl" and junk == b"":
            assert read() == []
            continue
        if junk.startswith(b'{"run_version":"') and name != "config.json":
            continue  # a lone surrogate is read as it is
        with pytest.raises((ConfigError, TraceError)) as raised:
            read()
        assert name in str(raised.value) or "has version" in str(raised.value)
        assert files(tmp_path) == before


def test_a_run_whose_graph_is_junk_is_another_run(tmp_path: Path) -> None:
    path = stored(tmp_path)
    lines = path.read_bytes().splitlines()
    head = lines[0][: lines[0].rindex(b',"crc"')] + b"}"
    begin = head.index(b'"graph":"') + 9
    end = head.index(b'","observation"')
    path.write_bytes(b"\n".join([head[:begin] + b"[[[" + head[end:], *lines[1:]]) + b"\n")
    with DirectoryStore(tmp_path) as store, pytest.raises(ConfigError, match="cannot be read"):
        GRAPH.run_sync(SCREEN, run_id="r", store=store)
