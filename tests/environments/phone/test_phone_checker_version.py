"""The version of the success check stays with every verdict."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from graph_fakes import FixedModel

from swarm_ui import Action, CollabGraph, GraphPolicy, read_jsonl, write_jsonl
from swarm_ui.environment import checker_version
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.goal import CHECKER
from swarm_ui.environments.wrappers import Recorder, StepLimit
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.comparing import compare_runs
from swarm_ui.rollout import rollout

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
    old = msgspec.structs.replace(episode, checker=1)
    for name, found in (("a", old), ("b", old), ("c", episode)):
        write_jsonl(tmp_path / f"{name}.jsonl", [found])
    assert compare_runs(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(ConfigError):  # verdicts of two versions of the check
        compare_runs(tmp_path / "a.jsonl", tmp_path / "c.jsonl")
