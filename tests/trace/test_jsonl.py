"""The format of trace files: what is written is what is read, in one way, as documented."""

from __future__ import annotations

import errno
import json
import math
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from graph_fakes import BLANK, SCREEN, HashModel
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import (
    Action,
    CollabGraph,
    Episode,
    StepRecord,
    TraceError,
    read_jsonl,
    write_jsonl,
)
from swarm_ui.environment import Step
from swarm_ui.errors import EnvironmentFault
from swarm_ui.model import Completion
from swarm_ui.trace.jsonl import append_jsonl, iter_jsonl

ACTIONS = [
    Action(action_type="click", index=3, target="Ünï"),
    Action(action_type="click", x=0, y=-1),
    Action(action_type="input_text", index=0, text='"\\\u2028\x00🙂', clear_text=False),
    Action(action_type="status", goal_status="infeasible"),
    Action(action_type="scroll", direction="down"),
    Action(action_type="open_app", app_name="Uhr"),
]
OWN: dict[Any, st.SearchStrategy[Any]] = {
    Action: st.sampled_from(ACTIONS),
    str: st.text(max_size=8),
    int: st.integers(0, 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bytes: st.binary(max_size=8),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, with all fields of a record filled."""
    if kind in OWN:
        return OWN[kind]
    args = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return st.one_of([values(each) for each in args])
    if get_origin(kind) is Literal:
        return st.sampled_from(args)
    if get_origin(kind) is tuple and args[-1] is Ellipsis:
        return st.lists(values(args[0]), max_size=2).map(tuple)
    if get_origin(kind) is tuple:
        return st.tuples(*map(values, args))
    if get_origin(kind) is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=3)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return st.from_type(kind)
    known = {"notes", "geometry"}
    fields = {f.name: values(f.type) for f in msgspec.structs.fields(kind) if f.name not in known}
    OWN[kind] = st.builds(kind, **fields)
    return OWN[kind]


@settings(max_examples=25)
@given(st.lists(values(Episode), max_size=3))
def test_what_is_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, episodes: list[Episode]
) -> None:
    path = tmp_path_factory.mktemp("records") / "e.jsonl"
    write_jsonl(path, episodes)
    assert read_jsonl(path) == episodes
    for line in path.read_bytes().split(b"\n")[:-1]:
        json.loads(line, parse_constant=pytest.fail)


def test_a_text_that_json_cannot_hold_is_refused_and_leaves_the_file_as_it_was(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.jsonl"
    good = Episode(environment="e", task="t", seed=0)
    write_jsonl(path, [good])
    before = path.read_bytes()
    for write in (write_jsonl, append_jsonl):
        with pytest.raises(TraceError, match=r"t\.jsonl: episode 2 cannot be written.*replace it"):
            write(path, [good, msgspec.structs.replace(good, task="ok \ud83d")])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]


def test_numbers_that_json_cannot_hold_come_from_no_model_and_no_environment() -> None:
    for wrong in (math.nan, math.inf, -math.inf):
        assert Completion(text="x", prompt="p", logprob=wrong).logprob is None
        with pytest.raises(EnvironmentFault, match="expected a finite number"):
            Step(observation=BLANK, reward=wrong)


# -- files ------------------------------------------------------------------------------------


def played(seed: int) -> Episode:
    graph = CollabGraph.collaborative(model=HashModel(), views="shuffle", seed=seed)
    trace = graph.run_sync(SCREEN, seed=seed, run_id=f"r{seed}")
    step = StepRecord(trace=trace, executed=Action(action_type="wait"), credit=((None, 0.0, 1.0),))
    return Episode(environment="e", task="tâche", seed=seed, steps=(step,), success=seed % 2 == 0)


@pytest.mark.parametrize("cut", [1, 2, 500])
def test_a_cut_off_line_is_told_and_stays(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    first, second, third = (played(seed) for seed in range(3))
    append_jsonl(path, [first, second])
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(TraceError, match=r"a\.jsonl, line 2: cut off"):
        read_jsonl(path)
    assert list(iter_jsonl(path, whole=False)) == [first]
    before = path.read_bytes()
    with pytest.raises(TraceError, match="the last line has no end"):
        append_jsonl(path, [third])
    assert path.read_bytes() == before


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 900), st.booleans())
def test_a_disk_that_is_full_after_any_byte_leaves_whole_records(room: int, stuck: bool) -> None:
    """``stuck``: nor can a part of a line be removed from it."""
    write, episodes = os.write, [Episode(environment="e", task="tâche", seed=k) for k in range(12)]

    def writing(descriptor: int, data: Any) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = write(descriptor, data[: min(room, 97)])
        room -= taken
        return taken

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path, counted = Path(folder) / "e.jsonl", 0
        patch.setattr(os, "write", writing)
        if stuck:
            patch.setattr(os, "ftruncate", failing)
        with suppress(OSError):
            for each in episodes:
                append_jsonl(path, [each])
                counted += 1
        assert list(iter_jsonl(path, whole=False)) == episodes[:counted]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"version":2,"episode":{}}\n', "line 1: version 2; this release reads version 1"),
        (b'{"episode":{}}\n', "line 1: version None"),
        (b'{"version":1,"episode":{}}\n', "line 1: not an episode"),
        (b"hello\n", "line 1: not an episode"),
        (b"\xff\xfe\n", "line 1: not an episode"),
    ],
)
def test_other_versions_and_other_files_are_refused(
    tmp_path: Path, line: bytes, words: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line)
    with pytest.raises(TraceError, match=words):
        read_jsonl(path)
