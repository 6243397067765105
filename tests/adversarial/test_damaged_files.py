"""Files that were damaged or forged: a typed error that names the place, and no file is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_fakes import SCREEN, HashModel

from swarm_ui import (
    CollabGraph,
    ConfigError,
    Episode,
    Journal,
    Trace,
    TraceError,
    read_jsonl,
    write_jsonl,
)
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import append_jsonl, iter_jsonl

DEEP = b"[" * 100_000 + b"]" * 100_000
LONG = b"1" * 5_000
GRAPH = CollabGraph.collaborative(2, 2, model=HashModel(), seed=1)
NASTY = [DEEP, LONG, b"-" + LONG, b"1e999", b"NaN", b'"\\ud800"', b"\xff\xfe", b"{", b""]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# -- journals -----------------------------------------------------------------------------------


def stored(folder: Path) -> Path:
    path = folder / "runs.jsonl"
    GRAPH.run_sync(SCREEN, run_id="r", journal=Journal(path))
    return path


@pytest.mark.parametrize("junk", NASTY)
@pytest.mark.parametrize("place", [0, 1, -1])
def test_junk_in_a_journal(tmp_path: Path, junk: bytes, place: int) -> None:
    path = stored(tmp_path)
    lines = path.read_bytes().splitlines()
    lines[place] = junk
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = files(tmp_path)
    for use in (
        lambda: Journal(path).read("r"),
        lambda: GRAPH.run_sync(SCREEN, run_id="r", journal=Journal(path)),
    ):
        with pytest.raises(TraceError):
            use()
    assert files(tmp_path) == before


# -- traces -----------------------------------------------------------------------------------


def traces(folder: Path) -> Path:
    path = folder / "t.jsonl"
    write_jsonl(path, [GRAPH.run_sync(SCREEN, run_id=f"r{k}", seed=k) for k in range(3)])
    return path


def reading(path: Path, kind: type[Any]) -> list[Callable[[], object]]:
    return [lambda: read_jsonl(path, kind), lambda: list(iter_jsonl(path, kind))]


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
