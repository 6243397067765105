"""Long trace files are read where they are looked at, and nowhere else."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from graph_fakes import SCREEN, HashModel

from swarm_ui import (
    CollabGraph,
    Episode,
    StepRecord,
    Trace,
    TraceError,
    read_jsonl,
    repair_jsonl,
    write_jsonl,
)
from swarm_ui.trace.reader import OpenEpisode, open_jsonl

STEPS = 10_000


def decision() -> Trace:
    trace = CollabGraph.solo(HashModel()).run_sync(SCREEN, run_id="r")
    # Without the fake's long prompts, so that ten thousand of them are made quickly.
    calls = tuple(msgspec.structs.replace(c, prompt=c.prompt[:200]) for c in trace.calls)
    return msgspec.structs.replace(trace, calls=calls)


@pytest.fixture(scope="module")
def all_steps() -> tuple[StepRecord, ...]:
    trace = decision()
    return tuple(
        StepRecord(trace=msgspec.structs.replace(trace, seed=i), reward=float(i))
        for i in range(STEPS)
    )


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory, all_steps: tuple[StepRecord, ...]) -> Path:
    """Ten thousand steps in one episode."""
    path = tmp_path_factory.mktemp("long") / "one.jsonl"
    write_jsonl(path, [Episode(environment="e", task="t", seed=0, steps=all_steps, success=True)])
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, all_steps: tuple[StepRecord, ...]) -> Path:
    """Ten thousand steps in a hundred episodes."""
    path = tmp_path_factory.mktemp("many") / "hundred.jsonl"
    write_jsonl(
        path,
        (
            Episode(environment="e", task=f"t{k}", seed=k, steps=all_steps[k * 100 : k * 100 + 100])
            for k in range(100)
        ),
    )
    return path


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory, all_steps: tuple[StepRecord, ...]) -> Path:
    """Ten thousand decisions, a line each."""
    path = tmp_path_factory.mktemp("flat") / "traces.jsonl"
    write_jsonl(path, (step.trace for step in all_steps))
    return path


def peak(read: Callable[[], object]) -> int:
    """Bytes of Python memory at the highest point of a reading."""
    gc.collect()
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_one_step_of_a_long_episode_costs_a_fraction_of_the_whole(
    long: Path, all_steps: Sequence[StepRecord]
) -> None:
    def one() -> None:
        with open_jsonl(long) as file:
            episode = file[0]
            assert (len(file), len(episode.steps), episode.success) == (1, STEPS, True)
            assert episode.steps[9000] == all_steps[9000]

    def each() -> None:
        with open_jsonl(long) as file:
            assert sum(step.reward for step in file[0].steps) == sum(range(STEPS))

    whole = peak(lambda: read_jsonl(long))
    assert peak(one) < whole / 50
    assert peak(each) < whole / 50


@pytest.mark.slow
def test_one_step_of_many_episodes_costs_a_fraction_of_the_whole(
    many: Path, all_steps: Sequence[StepRecord]
) -> None:
    def one() -> None:
        with open_jsonl(many) as file:
            assert file[90].steps[0] == all_steps[9000]

    def each() -> None:
        with open_jsonl(many) as file:
            assert sum(len(step.trace.calls) for e in file for step in e.steps) == STEPS

    whole = peak(lambda: read_jsonl(many))
    assert peak(one) < whole / 200
    assert peak(each) < whole / 200


@pytest.mark.slow
def test_one_decision_costs_a_fraction_of_the_whole(
    flat: Path, all_steps: Sequence[StepRecord]
) -> None:
    def one() -> None:
        with open_jsonl(flat, Trace) as file:
            assert file[9000] == all_steps[9000].trace

    assert peak(one) < peak(lambda: read_jsonl(flat, Trace)) / 200


@pytest.fixture
def small(tmp_path: Path, all_steps: tuple[StepRecord, ...]) -> Path:
    path = tmp_path / "small.jsonl"
    write_jsonl(
        path,
        [
            Episode(environment="e", task=f"t{k}", seed=k, steps=all_steps[: k + 1])
            for k in range(4)
        ],
    )
    return path


def test_a_file_is_a_sequence_of_what_reading_it_gives(small: Path) -> None:
    whole = read_jsonl(small)
    with open_jsonl(small) as file:
        assert file[2].task == "t2"  # before the last line was found
        assert len(file) == 4
        assert [episode.load() for episode in file] == whole
        assert [episode.load() for episode in reversed(file)] == whole[::-1]
        assert [episode.load() for episode in file[1:3]] == whole[1:3]
        assert file[-1].load() == whole[-1]
        for outside in (4, -5):
            with pytest.raises(IndexError, match="has 4 lines"):
                file[outside]
        steps = file[3].steps
        assert tuple(steps) == whole[3].steps
        assert steps[1:] == list(whole[3].steps[1:]) and steps[-1] == whole[3].steps[-1]
        assert steps.index(whole[3].steps[2]) == 2
        with pytest.raises(IndexError):
            steps[4]


def test_an_open_episode_has_all_fields_of_an_episode() -> None:
    assert OpenEpisode.__struct_fields__ == Episode.__struct_fields__


def test_what_was_taken_from_a_file_outlives_it(small: Path) -> None:
    with open_jsonl(small) as file:
        episode = file[1]
    with pytest.raises(ValueError, match=r"small\.jsonl was closed"):
        file[0]
    with pytest.raises(ValueError, match=r"small\.jsonl was closed"):
        len(file)
    file.close()
    assert episode.load() == read_jsonl(small)[1]


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    write_jsonl(path, [])
    with open_jsonl(path) as file:
        assert len(file) == 0 and list(file) == []
        with pytest.raises(IndexError):
            file[0]


def test_only_what_is_looked_at_is_decoded(small: Path) -> None:
    """A wrong value later in a line, or a wrong line later in a file, does not matter before."""
    lines = small.read_bytes().splitlines(keepends=True)
    at = lines[3].rindex(b'"seed":')
    broken = lines[3][:at] + b'"seed":"?",' + lines[3][lines[3].index(b",", at) + 1 :]
    small.write_bytes(b"".join([*lines[:2], b"nonsense\n", broken]))
    with open_jsonl(small) as file:
        assert file[0].task == "t0" and file[1].task == "t1"
        with pytest.raises(TraceError, match=r"small\.jsonl, line 3: not an episode"):
            file[2]
        episode = file[3]
        assert episode.steps[0].trace.seed == 0
        where = r"small\.jsonl, line 4, step 3: not a step: Expected `int`, got `str`"
        with pytest.raises(TraceError, match=where):
            episode.steps[3]
        with pytest.raises(TraceError, match=where):
            episode.steps[-1]
        with pytest.raises(TraceError, match=where):
            episode.load()


def test_faults_are_told_as_when_reading_the_whole(small: Path, tmp_path: Path) -> None:
    data = small.read_bytes()
    small.write_bytes(data[:-3])
    with open_jsonl(small) as file:
        assert len(file) == 4 and file[2].task == "t2"
        with pytest.raises(TraceError, match=r"line 4: cut off after \d+ bytes; repair_jsonl"):
            file[3]
        with pytest.raises(TraceError, match="line 4: cut off"):
            list(file)
    repair_jsonl(small)
    with open_jsonl(small) as file:
        assert len(file) == 3
    small.write_bytes(data.replace(b'"version":1', b'"version":2', 1))
    with (
        open_jsonl(small) as file,
        pytest.raises(TraceError, match="line 1: version 2; this release reads version 1"),
    ):
        file[0]
    with (
        open_jsonl(small, Trace) as traces,
        pytest.raises(TraceError, match="line 2: not a trace but an episode"),
    ):
        traces[1]
    with pytest.raises(TraceError, match="cannot be opened"):
        open_jsonl(tmp_path / "none.jsonl")


def test_episodes_appended_later_are_not_seen(small: Path) -> None:
    with open_jsonl(small) as file:
        with small.open("ab") as more:
            more.write(small.read_bytes())
        assert len(file) == 4
    with open_jsonl(small) as file:
        assert len(file) == 8
