"""Runs of the demo in ``replay`` and ``export``, and what ``replay --out`` writes in ``view``."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest
from cli_world import WRONG, Shell, shell  # noqa: F401

from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.settings import Settings, plain
from swarm_ui.experiment.teams import Arm, agent_names, rollout_arm
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes.agent import AgentNode
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.rollout import GraphPolicy, rollout_many
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Episode

SETTINGS = Settings(agents=3, rounds=2)
EDGES = (("agent_0", "agent_1"), ("agent_0", "agent_2"), ("agent_1", "agent_2"))
WAIT = '{"action_type": "wait"}'


def played(arm: Arm) -> list[Episode]:
    model = ScriptedModel(lambda request: WAIT)
    jobs = [("contacts-add", 7)]
    return asyncio.run(rollout_many(PhoneEnvironment, arm.policy(model), jobs, max_steps=2))


@pytest.fixture
def demo(shell: Shell) -> Path:  # noqa: F811
    """A run as the demo writes it: a team in training and after, and one agent last."""
    run = RunDirectory.create(shell.folder / "demo", name="phone", config=plain(SETTINGS))
    run.write_episodes("train-000", played(rollout_arm(SETTINGS, EDGES[:1])))
    run.write_episodes("parameters-trained-team", played(rollout_arm(SETTINGS, EDGES)))
    alone = played(Arm(name="trained-greedy", label="one", trained=True))
    run.write_episodes("web-trained-greedy", alone)
    for name in agent_names(3):
        (run.adapters / name).mkdir()
        (run.adapters / name / "adapter_config.json").write_text("{}", encoding="utf-8")
    return run.path


def test_decisions_of_a_demos_run_are_replayed(shell: Shell, demo: Path) -> None:  # noqa: F811
    for episode, messages in ((1, 7), (2, 7), (3, 1)):  # with the vote
        done = shell(f"replay demo -e {episode} -s 2 --json")
        assert done.code == 0, done.err
        assert done.json["same"] is True and done.json["asked"] == 0
        assert len(done.json["messages"]) == messages
    file = shell("replay demo/traces/train-000.jsonl --json")
    assert file.json["same"] is True


def test_a_change_in_a_demos_run_asks_those_who_hear_it(shell: Shell, demo: Path) -> None:  # noqa: F811
    (shell.folder / "wrong.txt").write_text(WRONG + "\n", encoding="utf-8")
    done = shell("replay demo/traces/train-000.jsonl --model script:wrong.txt --json")
    assert done.code == 0, done.err
    assert done.json["asked"] == 6 and "off" in done.json["after"]


def test_exports_of_a_demos_run_are_of_the_team(shell: Shell, demo: Path) -> None:  # noqa: F811
    drawn = shell("export demo mermaid")
    assert drawn.code == 0 and "agent_2" in drawn.out and "n1 --> n2" in drawn.out
    edges = json.loads(shell("export demo edges").out)
    assert edges["agents"] == agent_names(3)
    assert {tuple(edge) for edge in edges["edges"]} == set(EDGES)


def test_what_replay_writes_can_be_viewed_and_replayed(shell: Shell, demo: Path) -> None:  # noqa: F811
    assert shell("replay demo --out new.jsonl").code == 0
    seen = shell("view new.jsonl --no-open --json")
    assert seen.code == 0, seen.err
    page = Path(seen.json["report"]).read_text(encoding="utf-8")
    assert "decisions without their episodes" in page
    again = shell("replay new.jsonl team.agents=3 team.rounds=2 --json")
    assert again.code == 0 and again.json["same"] is True, again.err


def test_a_run_of_another_program_needs_the_settings_of_its_team(shell: Shell) -> None:  # noqa: F811
    run = RunDirectory.create(shell.folder / "mine", config={"rounds": 2})
    run.write_episodes("episodes", played(Arm(name="", label="one")))
    done = shell("replay mine")
    assert done.code == 2 and "give the team's settings with --config FILE" in done.err
    assert shell("replay mine team.agents=1 --json").json["same"] is True


def test_the_edges_that_a_demo_learned_are_exported_as_learned(shell: Shell) -> None:  # noqa: F811
    pytest.importorskip("torch")
    from swarm_ui.optim.edges.distribution import EdgeDistribution

    settings = dataclasses.replace(SETTINGS, edges="learned")
    run = RunDirectory.create(shell.folder / "demo", name="phone", config=plain(settings))
    learned = EdgeDistribution.from_probabilities({EDGES[0]: 0.9, EDGES[1]: 0.2, EDGES[2]: 0.8})
    learned.save(run.edges / "distribution.safetensors")
    edges = json.loads(shell("export demo edges").out)
    assert edges["learned"] is True and edges["edges"] == [list(EDGES[0]), list(EDGES[2])]


def test_a_team_with_names_of_its_own_is_drawn(shell: Shell) -> None:  # noqa: F811
    model = ScriptedModel(lambda request: WAIT)
    team = CollabGraph.chain([AgentNode("planner", model), AgentNode("clicker", model)])
    jobs = [("contacts-add", 7)]
    run = RunDirectory.create(shell.folder / "mine", config={})
    policy = GraphPolicy(team)
    run.write_episodes("one", asyncio.run(rollout_many(PhoneEnvironment, policy, jobs)))
    drawn = shell("export mine mermaid")
    assert drawn.code == 0, drawn.err
    assert 'n0["planner"]' in drawn.out and "n0 --> n1" in drawn.out
