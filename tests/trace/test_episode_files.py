"""Episodes on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from graph_fakes import SCREEN, HashModel

from swarm_ui import (
    Action,
    CollabGraph,
    Episode,
    StepRecord,
    TraceError,
    append_jsonl,
    iter_jsonl,
    read_jsonl,
    repair_jsonl,
    write_jsonl,
)


def episode(seed: int) -> Episode:
    graph = CollabGraph.collaborative(model=HashModel(), views="shuffle", seed=seed)
    trace = graph.run_sync(SCREEN, seed=seed, run_id=f"r{seed}")
    step = StepRecord(trace=trace, executed=Action(action_type="wait"), credit=((None, 0.0, 1.0),))
    return Episode(environment="e", task="tâche", seed=seed, steps=(step,), success=seed % 2 == 0)


def test_what_is_read_is_what_was_written_and_bytes_are_stable(tmp_path: Path) -> None:
    path, again = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    episodes = [episode(seed) for seed in range(3)]
    write_jsonl(path, episodes)
    assert read_jsonl(path) == episodes
    write_jsonl(again, read_jsonl(path))
    assert again.read_bytes() == path.read_bytes()
    assert path.read_text().count("\n") == 3
    assert {p.name for p in tmp_path.iterdir()} == {"a.jsonl", "b.jsonl"}
    assert all(line.startswith('{"version":1,') for line in path.read_text().splitlines())


def test_appending_continues_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    episodes = [episode(seed) for seed in range(3)]
    append_jsonl(path, episodes[:1])
    append_jsonl(path, episodes[1:])
    assert read_jsonl(path) == episodes == list(iter_jsonl(path))


def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [episode(0)])
    before = path.read_bytes()

    def broken() -> object:
        yield episode(1)
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError):
        write_jsonl(path, broken())  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("cut", [1, 2, 500])
def test_a_cut_off_file_says_which_line_and_can_be_repaired(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    first, second, third = (episode(seed) for seed in range(3))
    write_jsonl(path, [first, second])
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    with pytest.raises(TraceError, match=r"a\.jsonl, line 2: cut off"):
        read_jsonl(path)
    assert list(iter_jsonl(path, whole=False)) == [first]
    with pytest.raises(TraceError, match="repair_jsonl"):
        append_jsonl(path, [third])
    assert repair_jsonl(path) == len(data.splitlines(keepends=True)[1]) - cut
    append_jsonl(path, [third])
    assert read_jsonl(path) == [first, third]
    assert repair_jsonl(path) == 0


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


def test_a_missing_file_is_a_trace_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be opened"):
        read_jsonl(tmp_path / "none.jsonl")
