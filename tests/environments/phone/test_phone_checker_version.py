"""The version of the success check stays with every verdict."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from graph_fakes import FixedModel

from swarm_ui import Action, CollabGraph, GraphPolicy, read_jsonl, write_jsonl
from swarm_ui.environment import checker_version
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.environment import CHECKER
from swarm_ui.environments.wrappers import Recorder, StepLimit
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.comparing import compare_runs
from swarm_ui.rollout.episodes import rollout
from swarm_ui.trace.reader import open_jsonl
from swarm_ui.trace.records import Episode

OLD = Path(__file__).parents[2] / "storage" / "data" / "run-0.1" / "traces" / "parameters.jsonl"
COMPLETE = Action(action_type="status", goal_status="complete")


async def test_an_episode_keeps_the_version_through_wrappers_and_files(tmp_path: Path) -> None:
    assert CHECKER == 2
    path = tmp_path / "recorded.jsonl"
    phone = Recorder(StepLimit(PhoneEnvironment(), 50), path)
    assert checker_version(phone) == CHECKER
    policy = GraphPolicy(CollabGraph.solo(FixedModel({None: COMPLETE.json()})))
    episode = await rollout(phone, policy, task="notes-create", seed=1)
    assert episode.checker == CHECKER
    await phone.close()
    write_jsonl(tmp_path / "played.jsonl", [episode])
    for name in ("recorded.jsonl", "played.jsonl"):
        assert [e.checker for e in read_jsonl(tmp_path / name)] == [CHECKER]
        with open_jsonl(tmp_path / name) as opened:
            assert opened[0].load().checker == CHECKER


def test_episodes_from_before_count_as_version_1() -> None:
    (old,) = read_jsonl(OLD)
    assert isinstance(old, Episode)
    assert old.checker == 1
    assert b"checker" not in msgspec.json.encode(old)


def test_verdicts_of_two_versions_are_not_compared(tmp_path: Path) -> None:
    (old,) = read_jsonl(OLD)
    for name, checker in (("a", 1), ("b", 1), ("c", CHECKER)):
        write_jsonl(tmp_path / f"{name}.jsonl", [msgspec.structs.replace(old, checker=checker)])
    assert compare_runs(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(ConfigError, match="version of the success check"):
        compare_runs(tmp_path / "a.jsonl", tmp_path / "c.jsonl")
