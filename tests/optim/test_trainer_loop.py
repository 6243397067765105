"""The team trainer: it learns, and every setting does what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld, Contrary, TinyAgent, TinyModel, button_team
from learning_run import CONFIG, run, sample_jobs, trainer
from same_run import equal, weights

from swarm_ui import CollabGraph
from swarm_ui.errors import ConfigError
from swarm_ui.nodes import ScriptedModel
from swarm_ui.optim import ScriptedCritic, TeamTrainer, Trust
from swarm_ui.rollout import GraphPolicy, rollout_many
from swarm_ui.trace.records import Episode

SHORT = replace(CONFIG, iterations=1, edges="redraw", graphs=1)


def success(model: TinyModel) -> float:
    """Unguided, on episodes not trained on."""
    jobs = [("press", 20_000 + k) for k in range(80)]
    policy = GraphPolicy(button_team(model))
    episodes = asyncio.run(rollout_many(ButtonWorld, policy, jobs))
    return sum(bool(e.success) for e in episodes) / len(episodes)


def sources(metrics: dict[str, Any]) -> set[str]:
    return {name.removeprefix("sources/") for name in metrics if name.startswith("sources/")}


def seen(**other: Any) -> tuple[Any, list[Sequence[Episode]]]:
    """A run's result, and the episodes of each iteration."""
    episodes: list[Sequence[Episode]] = []
    result = run(TinyModel(), None, on_episodes=lambda _, e: episodes.append(e), **other)
    return result, episodes


@pytest.fixture(scope="module")
def untrained() -> float:
    """Success before any training."""
    return success(TinyModel([f"agent_{k}" for k in range(3)]))


@pytest.mark.parametrize(
    "method", ["dpo", *(pytest.param(m, marks=pytest.mark.slow) for m in ("rft", "grpo", "gspo"))]
)
def test_the_team_learns(method: str, untrained: float) -> None:
    model = TinyModel()
    config = replace(
        CONFIG, edges="redraw", graphs=1, episodes=32,
        update=replace(CONFIG.update, method=method, steps=40),
    )  # fmt: skip
    result = run(model, None, config=config)
    assert success(model) > untrained + 0.3
    assert [m["shared"] for m in result.history] == [True, False, False]
    trained = [[k for k in m if k.startswith("loss/")] for m in result.history]
    assert [len(adapters) for adapters in trained] == [1, 3, 3]
    assert all(m["credit_source"] == "scripted critic" for m in result.history)


def test_learned_edges_are_compared_on_the_same_episodes_and_move() -> None:
    result, episodes = seen(config=replace(CONFIG, iterations=1, graphs=4, episodes=64))
    jobs = [(e.task, e.seed) for e in episodes[0]]
    assert jobs[:16] == jobs[16:32] == jobs[32:48] == jobs[48:]
    assert len(result.history[0]["graphs"]) == 4
    (metrics,) = result.history
    assert metrics["edges_moved"] > 0
    assert len([name for name in metrics if name.startswith("edge/")]) == 6


def test_faults_are_masked_and_learning_goes_on() -> None:
    config = replace(SHORT, edges="learned", graphs=2)
    everything = frozenset(range(10_000))
    model = TinyModel()
    dead = trainer(model, config=config, make_environment=lambda: ButtonWorld(everything))
    with pytest.warns(UserWarning, match="broke in all 16 episodes"):
        (metrics,) = asyncio.run(dead.run()).history
    assert (metrics["masked"], metrics["success"], metrics["credit"]) == (16, None, None)
    assert (metrics["pairs"], metrics["steps"], metrics["edges_moved"]) == (0, 0, 0.0)
    assert set(model.versions.values()) == {0}

    even = frozenset(range(0, 10_000, 2))
    half = trainer(TinyModel(), config=SHORT, make_environment=lambda: ButtonWorld(even))
    (metrics,) = asyncio.run(half.run()).history
    assert 0 < metrics["masked"] < 16
    assert metrics["success"] is not None
    assert metrics["pairs"] > 0


def test_without_a_critic_the_outcome_is_everybodys_credit() -> None:
    result, episodes = seen(config=SHORT, critic=None)
    metrics = result.history[0]
    assert metrics["credit_source"] == "outcome"
    assert metrics["guided"] == 0.0
    assert metrics["credit"] is not None
    for episode in episodes[0]:
        for step in episode.steps:
            assert step.credit is not None
            assert {v for row in step.credit for v in row} == {float(bool(episode.success))}
    # Everybody succeeded or everybody failed, so no message of a colleague's is an opposite.
    assert sources(metrics) <= {"own > adversary", "own > nothing"}


def test_the_outcome_can_be_the_credit_while_a_judge_guides() -> None:
    """The variant "w/o CR" changes the credit alone, if a judge is given."""
    config = replace(SHORT, guide=1.0)
    judge = ScriptedCritic(ButtonWorld)
    judged = run(TinyModel(), None, config=config, critic=None, judge=judge, adversary=None)
    assert judged.history[0]["credit_source"] == "outcome"
    assert (judged.history[0]["guided"] or 0) > 0
    with pytest.raises(ConfigError, match="guide would not be used"):
        run(TinyModel(), None, config=config, critic=None)


def test_what_cannot_be_trained_is_refused() -> None:
    scripted: Any = ScriptedModel(lambda request: "")
    made: Any = ButtonWorld()
    for model, world, told in (
        (scripted, ButtonWorld, r"adapters can be trained.*got ScriptedModel"),
        (TinyAgent(TinyModel()), made, "write ButtonWorld instead"),
    ):
        team = CollabGraph.collaborative(2, 1, model=model)
        with pytest.raises(ConfigError, match=told):
            TeamTrainer(team, world, sample_jobs)
    with pytest.raises(ConfigError, match="write ButtonWorld instead"):
        ScriptedCritic(made)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dpo", "rft"])
def test_a_critic_without_weight_is_learning_without_a_critic(method: Any) -> None:
    update = replace(CONFIG.update, method=method)
    config = replace(CONFIG, edges="redraw", iterations=2, update=update)

    def trained(critic: Any) -> tuple[list[torch.Tensor], Sequence[dict[str, Any]]]:
        model = TinyModel()
        history = run(model, None, config=config, critic=critic).history
        return weights(model), history

    without, _ = trained(None)
    distrusted, history = trained(Trust(Contrary(ButtonWorld)))
    assert [m["critic_weights"] for m in history] == [[0.0, 0.0]] * 2
    assert {m["guided"] for m in history} == {0.0}
    assert equal(distrusted, without)
    blind, history = trained(Contrary(ButtonWorld))
    assert not equal(blind, without) and history[0]["critic_weights"] is None
