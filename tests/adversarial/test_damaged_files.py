"""Files that were damaged or forged: a typed error that names the place, and no file is touched."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from damage import Edit, damaged, edits
from graph_fakes import SCREEN, FixedModel, HashModel, click
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarm_ui import (
    CollabGraph,
    ConfigError,
    Episode,
    Journal,
    StepRecord,
    Trace,
    TraceError,
    read_jsonl,
    write_jsonl,
)
from swarm_ui.errors import Failure
from swarm_ui.nodes import MajorityVote
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl

GRAPH = CollabGraph.collaborative(2, 2, model=HashModel(), views="shuffle", seed=1)
LONG = b"1" * 5_000
NASTY = [b"[" * 100_000 + b"]" * 100_000, LONG, b"-" + LONG, b"1e999", b"NaN", b'"\\ud800"',
         b"\xff\xfe", b"{", b""]  # fmt: skip
PARTS = [
    *NASTY[1:], b"null", b"true", b"-0.0", b"1e-999", b'"x"', b'"\\u0000"', b"[]", b"[[]]", b"{}",
    b"[" * 3000, b'{"a":' * 3000, b'"' + b"\\" * 99, b",", b":", b"}", b"]", b'{"version":1}',
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"error":"ModelError: x",', b'"kind":"reply",',
]  # fmt: skip


def episode(trace: Trace) -> Episode:
    return Episode(environment="e", task="t", seed=trace.seed, steps=(StepRecord(trace=trace),))


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# -- journals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("junk", NASTY)
@pytest.mark.parametrize("place", [0, 1, -1])
def test_junk_in_a_journal(tmp_path: Path, junk: bytes, place: int) -> None:
    path = tmp_path / "runs.jsonl"
    GRAPH.run_sync(SCREEN, run_id="r", journal=Journal(path))
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


def test_cut_off_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_jsonl(path, [episode(GRAPH.run_sync(SCREEN, seed=k)) for k in range(3)])
    data = path.read_bytes()
    for end in [*range(1, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:end])
        whole = data[:end].count(b"\n")
        if data[:end].endswith(b"\n"):
            assert len(read_jsonl(path)) == whole
            continue
        with pytest.raises(TraceError, match=rf"line {whole + 1}: "):
            read_jsonl(path)
        assert path.read_bytes() == data[:end]
        assert len(list(iter_jsonl(path, whole=False))) == whole


def test_what_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", tmp_path / "a" / "b"):
        with pytest.raises(TraceError, match="cannot be opened"):
            read_jsonl(path)


def every_field(path: Path) -> list[bytes]:
    """Lines with every field of the format that a run can fill."""
    trace = GRAPH.run_sync(SCREEN, run_id="r")
    solo = CollabGraph.solo(FixedModel({None: click(1)}))
    outer = CollabGraph([solo.named("inner"), MajorityVote()]).run_sync(SCREEN, run_id="q")
    failure = Failure(kind="unavailable", message="503", node="a", error="ModelUnavailable")
    calls = (msgspec.structs.replace(trace.calls[0], error=failure), *trace.calls[1:])
    broken = msgspec.structs.replace(trace, calls=calls)
    steps = (StepRecord(trace=broken, reward=1.0, credit=((0.5, None),)), StepRecord(trace=outer))
    full = Episode(environment="e", task="t", seed=7, steps=steps, fault=failure)
    write_jsonl(path, [episode(trace), episode(outer), full])
    return path.read_bytes().splitlines()


def expect_a_record_or_an_error(path: Path, line: bytes) -> bool:
    """What is read can be written; whether it was read. Anything else that is raised is a bug."""
    path.write_bytes(line.replace(b"\n", b" ") + b"\n")
    try:
        (found,) = read_jsonl(path)
    except TraceError as error:
        assert 0 < len(str(error)) < 1000  # it must not quote the file at any length
        return False
    assert msgspec.json.decode(msgspec.json.encode(found), type=Episode) == found
    return True


@pytest.mark.parametrize("examples", [100, pytest.param(200_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(3000)
def test_any_bytes_are_a_record_or_a_typed_error(tmp_path: Path, examples: int) -> None:
    path = tmp_path / "t.jsonl"
    lines, seen = every_field(path), set[bool]()
    assert all(expect_a_record_or_an_error(path, line) for line in lines)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(lines), edits(PARTS, most=4))
    def run(line: bytes, changes: list[Edit]) -> None:
        for change in changes:
            seen.add(expect_a_record_or_an_error(path, change.apply(line)))
        seen.add(expect_a_record_or_an_error(path, damaged(line, changes)))

    run()
    assert seen == {True, False}


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
