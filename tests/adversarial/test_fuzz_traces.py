"""Fuzzing of the trace reader: any bytes give a record or a ``TraceError``, in both readers alike.

Each example draws edits of a valid line and tries every one alone and all up to each. What is read
can be written and read again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from graph_fakes import SCREEN, FixedModel, HashModel, click
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from swarm_ui import CollabGraph, Episode, StepRecord, Trace, TraceError, read_jsonl
from swarm_ui.errors import Failure
from swarm_ui.nodes import MajorityVote
from swarm_ui.trace.jsonl import decode_line, write_jsonl

EDITS = 8
QUICK, SLOW = 100, 25_600
NASTY = [
    b"", b"null", b"true", b"0", b"-0.0", b"-1", b"1e999", b"1e-999", b"NaN", b"1" * 400,
    b"1" * 5000, b'""', b'"\\ud83d"', b'"\\u0000"', b'"x"', b"[]", b"[[]]", b"{}", b"[" * 3000,
    b'{"a":' * 3000, b'"' + b"\\" * 99, b",", b":", b"}", b"]", b'{"version":1}', b"\xff",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b" " * 500, b'"error":"ModelError: x",', b'"kind":"reply",',
    b'"' + b"'a': " * 2000 + b'"',
]  # fmt: skip


def valid() -> list[bytes]:
    """Lines with every field of the format that a run can fill."""
    team = CollabGraph.collaborative(2, 2, model=HashModel(), views="shuffle", seed=1)
    trace = team.run_sync(SCREEN, run_id="r")
    solo = CollabGraph.solo(FixedModel({None: click(1)}))
    outer = CollabGraph([solo.named("inner"), MajorityVote()]).run_sync(SCREEN, run_id="q")
    failure = Failure(kind="unavailable", message="503", node="a", error="ModelUnavailable")
    calls = (msgspec.structs.replace(trace.calls[0], error=failure), *trace.calls[1:])
    broken = msgspec.structs.replace(trace, calls=calls, edge_logprob=-1.5)
    steps = (StepRecord(trace=broken, reward=1.0, credit=((0.5, None),)), StepRecord(trace=outer))
    episode = Episode(environment="e", task="t", seed=7, steps=steps, fault=failure)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        write_jsonl(path, [trace, outer, episode])
        return path.read_bytes().splitlines()


LINES = valid()


class Edit(NamedTuple):
    kind: int
    at: float
    """Where, as a share of the line."""
    length: int
    data: bytes

    def apply(self, line: bytes) -> bytes:
        at = int(self.at * len(line))
        if self.kind == 0:  # overwrite
            return line[:at] + self.data + line[at + len(self.data) :]
        if self.kind == 1:  # insert
            return line[:at] + self.data + line[at:]
        if self.kind == 2:  # cut out
            return line[:at] + line[at + self.length :]
        if self.kind == 3:  # repeat a part elsewhere
            return line[:at] + line[at : at + self.length] * 2 + line[at + self.length :]
        return replaced(line, at, self.data)


def replaced(line: bytes, at: int, data: bytes) -> bytes:
    """Another value for the first field after a position."""
    begin = line.find(b'":', at) + 2
    if begin < 2:
        return line + data
    end = begin
    depth = 0
    while end < len(line) and (depth or line[end] not in b",}]"):
        depth += (line[end] in b"{[") - (line[end] in b"}]")
        end += 1
    return line[:begin] + data + line[end:]


edits = st.builds(
    Edit,
    st.integers(0, 6),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 200),
    st.sampled_from(NASTY) | st.binary(min_size=1, max_size=6),
)


def eager(line: bytes, kind: Any) -> Any:
    return decode_line(msgspec.json.Decoder(kind), line, kind, "here")


def outcome(read: Any) -> Any:
    """The record, or ``None`` after a typed error; anything else that is raised is a bug."""
    try:
        return read()
    except TraceError as error:
        assert 0 < len(str(error)) < 1000  # it must not quote the file at any length
        return None


def check(lines: list[bytes], path: Path) -> int:
    """Both readers agree on every line, and what they read can be written; how many were read."""
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    read = 0
    for kind in (Trace, Episode):
        found = [outcome(lambda line=line, kind=kind: eager(line + b"\n", kind)) for line in lines]
        whole = [one for one in found if one is not None]
        everything = outcome(lambda kind=kind: read_jsonl(path, kind))
        assert everything == (whole if len(whole) == len(lines) else None)
        for one in whole:
            read += 1
            assert msgspec.json.decode(msgspec.json.encode(one), type=kind) == one
    assert path.read_bytes() == b"".join(line + b"\n" for line in lines)
    return read


def fuzz(examples: int, path: Path) -> tuple[int, int]:
    """How many inputs were tried, and how many were read as a record."""
    tried = read = 0

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.sampled_from(LINES), st.lists(edits, min_size=EDITS, max_size=EDITS))
    def run(line: bytes, chosen: list[Edit]) -> None:
        nonlocal tried, read
        inputs = [edit.apply(line) for edit in chosen]
        for edit in chosen:
            line = edit.apply(line)
            inputs.append(line)
        inputs = [each.replace(b"\n", b" ") for each in inputs]
        read += check(inputs, path)
        tried += len(inputs)

    run()
    return tried, read


def test_valid_lines_are_read(tmp_path: Path) -> None:
    assert check(LINES, tmp_path / "t.jsonl") == len(LINES)


def test_any_bytes_are_a_record_or_a_typed_error(tmp_path: Path) -> None:
    tried, read = fuzz(QUICK, tmp_path / "t.jsonl")
    assert tried >= 16 * QUICK * 0.9 and read > 0


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_400_000_inputs(tmp_path: Path) -> None:
    tried, read = fuzz(SLOW, tmp_path / "t.jsonl")
    print(f"trace reader: {tried} inputs, {read} read as records")
    assert tried >= 400_000
