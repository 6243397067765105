"""The cells of the learning benchmark: test graphs, arms, and the control that imitates."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from pathlib import Path

import pytest
import torch

from benchmarks.studies.learning import study as study_module
from benchmarks.studies.learning.arms import base_graph_arms, copies_vote, graph_arms
from benchmarks.studies.learning.imitation import Shown, add_adapters
from benchmarks.studies.learning.study import Study
from benchmarks.studies.learning.variants import BY_NAME
from swarm_ui.environments.phone import PhoneEnvironment, draw_jobs, tasks
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.environments import phone
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import rollout_arm, trained_arms
from swarm_ui.experiment.training.stage2 import (
    TrainedTeam,
    fixed_graph,
    team_config,
    unseen_graphs,
)
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.optim import Guidance
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.report.results import ArmResult, Results
from swarm_ui.rollout import GraphPolicy, Intervene, rollout_many
from swarm_ui.storage.run_directory import RunDirectory

SETTINGS = Settings(seed=1)


def test_unseen_graphs_differ_from_each_other_and_from_those_seen() -> None:
    first = unseen_graphs(SETTINGS, set(), 1)[0]
    more = unseen_graphs(SETTINGS, {frozenset(first)}, 3)
    assert len({frozenset(edges) for edges in [first, *more]}) == 4
    # An older run was tested on the first unseen graph: it stays the first of three.
    assert unseen_graphs(SETTINGS, set(), 3)[0] == first
    two = dataclasses.replace(SETTINGS, agents=2)
    assert len(unseen_graphs(two, set(), 5)) == 2


def test_a_team_is_tested_on_several_graphs() -> None:
    own = fixed_graph(SETTINGS)
    team = trained_arms(SETTINGS, own, "x")[-1]
    trained = TrainedTeam((), own, "unseen DAG")
    redrawn = graph_arms(team, SETTINGS, trained, 3)
    assert [arm.name for arm in redrawn] == ["trained-team", "trained-team-2", "trained-team-3"]
    assert len({frozenset(arm.edges) for arm in redrawn}) == 3
    assert all(frozenset(arm.edges) != frozenset(own) for arm in redrawn)
    fixed = graph_arms(team, dataclasses.replace(SETTINGS, edges="fixed"), trained, 3)
    assert [arm.edges for arm in fixed[:3]] == [arm.edges for arm in redrawn]
    assert (fixed[3].name, fixed[3].edges) == ("trained-team-own", own)
    learned = graph_arms(team, dataclasses.replace(SETTINGS, edges="learned"), trained, 3)
    assert learned == [team]


def test_the_base_team_is_tested_on_several_graphs_and_the_first_is_the_demos() -> None:
    arms = base_graph_arms(Settings(), 3)
    assert [arm.name for arm in arms] == ["base-team", "base-team-2", "base-team-3"]
    assert arms[0] == base_graph_arms(Settings(), 1)[0]
    assert base_graph_arms(Settings(), 0) == []


def test_one_agent_has_the_calls_and_the_steps_of_the_team() -> None:
    team = BY_NAME["rft"].settings(Settings(), 1)
    alone = BY_NAME["single_agent"].settings(Settings(), 1)
    assert alone.episodes * alone.agents * alone.rounds == team.episodes * team.agents * team.rounds
    assert copies_vote(4).calls == trained_arms(team, (), "x")[1].calls == 4
    model = LocalModel.load(BASE_AGENT)
    config, other = team_config(team, 1), team_config(alone, 1)
    each = config.filled(model).update.steps
    assert each is not None and other.update.steps == team.agents * each
    assert config.update.method == other.update.method == "rft"


def test_adapters_of_the_imitation_follow_from_the_seed() -> None:
    def weights(seed: int) -> list[torch.Tensor]:
        model = LocalModel.load(BASE_AGENT)
        torch.manual_seed(random.randrange(1000))
        add_adapters(model, ["agent_0"], team_config(dataclasses.replace(SETTINGS, seed=seed), 1))
        return [p.detach().clone() for p in model.adapter_parameters("agent_0")]

    first, again, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def played(model: LocalModel, intervention: Intervene) -> list[str]:
    """The executed actions of four untrained agents on a DAG."""
    arm = dataclasses.replace(rollout_arm(SETTINGS, fixed_graph(SETTINGS)), trained=False)
    policy, jobs = GraphPolicy(arm.graph(model)), draw_jobs(tasks("train"), 2, 0)
    episodes = asyncio.run(
        rollout_many(PhoneEnvironment, policy, jobs, concurrency=4, intervention=intervention)
    )
    return [s.executed.json() for e in episodes for s in e.steps if s.executed is not None]


def test_the_imitation_has_the_guidance_of_the_other_variants() -> None:
    model, critic = LocalModel.load(BASE_AGENT), phone.scripted_critic(SETTINGS)
    shown = Shown(critic, 0.7, 5, supervisor_seed=9)
    actions = played(model, shown)
    assert actions == played(model, Guidance(critic, None, guide=0.7, seed=9))
    assert len(shown.pairs) == 12 * len(actions)  # four agents, three rounds


def test_the_imitation_has_the_errors_of_the_critic() -> None:
    model = LocalModel.load(BASE_AGENT)
    right, wrong = (
        Shown(ScriptedCritic(PhoneEnvironment, flips=flips), 0.0, 5, supervisor_seed=9)
        for flips in (0.0, 1.0)
    )
    assert played(model, right) == played(model, wrong)  # no guidance: the same screens
    for ours, theirs in zip(right.pairs, wrong.pairs, strict=True):
        assert ours.chosen.key != theirs.chosen.key


@pytest.fixture
def without_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: object, **__: object) -> None:
        raise AssertionError("a finished cell was repeated")

    monkeypatch.setattr(study_module, "train_team", train)
    monkeypatch.setattr(study_module, "make_base_agent", train)


@pytest.mark.usefixtures("without_training")
def test_a_restored_cell_is_not_repeated_and_cannot_be_tested_on_more(tmp_path: Path) -> None:
    """Restored: the results are there, the adapters are not."""
    arms = {"rft-1": ["trained-greedy", "trained-vote", "trained-team"],
            "stage1_rft-1": ["stage1-greedy", "stage1-vote"]}  # fmt: skip
    for name, tested in arms.items():
        RunDirectory.create(tmp_path / name, name=name, config={})
        found = [ArmResult(split=split, arm=arm, outcomes=(1.0,), jobs=(("a", 1),))
                 for split in ("parameters", "apps") for arm in tested]  # fmt: skip
        Results(arms=found, training_cpu_seconds=12.0).save(tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}

    def study(graphs: int) -> Study:
        return Study(tmp_path, BASE_AGENT, Settings(), ProgressDisplay(), graphs=graphs)

    assert study(1).trained(1, BY_NAME["rft"]) == 12.0
    study(1).more_stage_one(1, BY_NAME["rft"], 12.0)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    with pytest.raises(ConfigError, match=r"rft-1' was restored .* trained-team-2 on parameters"):
        study(2).trained(1, BY_NAME["rft"])
