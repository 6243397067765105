"""The trainer weighs its critic against outcomes, and forgets nothing of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld, Contrary, TinyModel
from learning_run import CONFIG, run

from swarm_ui.errors import ConfigError
from swarm_ui.optim import Outcome, ScriptedCritic, Trust
from swarm_ui.optim.metrics import Metrics

PLAIN = replace(CONFIG, edges="redraw", graphs=2, episodes=32)


def flipped() -> ScriptedCritic:
    return Contrary(ButtonWorld, 0.03)


def trusted() -> Trust:
    """A critic that predicted the outcome of 4 in 5 earlier episodes."""
    critic = Trust(flipped())
    pairs = [(1.0, 1.0)] * 24 + [(0.0, 0.0)] * 24 + [(1.0, 0.0), (0.0, 1.0)] * 6
    critic.learn([[score] * 2 for score, _ in pairs], [end for _, end in pairs], ["t"] * 60)
    return critic


def turned() -> ScriptedCritic:
    return Contrary(ButtonWorld)


def trained(**other: Any) -> tuple[list[torch.Tensor], tuple[Metrics, ...]]:
    """Weights and history of a run."""
    model = TinyModel()
    history = run(model, None, **other).history
    return [p.detach() for n in model.adapters for p in model.adapter_parameters(n)], history


def equal(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("method", ["dpo", pytest.param("rft", marks=pytest.mark.slow)])
def test_a_critic_without_weight_is_learning_without_a_critic(method: Any) -> None:
    update = replace(PLAIN.update, method=method)
    config = replace(PLAIN, update=update, iterations=2, episodes=16)
    without, _ = trained(config=config, critic=None)
    distrusted, history = trained(config=config, critic=Trust(turned()))
    assert [m["critic_weights"] for m in history] == [[0.0, 0.0]] * 2
    assert {m["guided"] for m in history} == {0.0}
    assert equal(distrusted, without)
    blind, history = trained(config=config, critic=turned())
    assert not equal(blind, without) and history[0]["critic_weights"] is None


@pytest.mark.slow
def test_a_resumed_run_trusts_as_the_whole_one_does(tmp_path: Path) -> None:
    config = replace(PLAIN, edges="learned", edge_credit=0.1)
    whole, folder = TinyModel(), tmp_path / "run"
    expected = run(whole, folder, config=config, critic=trusted())
    shutil.rmtree(folder / "checkpoints" / "iteration-0003")
    model = TinyModel()
    result = run(model, folder, resume=True, config=config, critic=trusted())
    ours = [m["critic_weights"] for m in result.history]
    assert ours == [m["critic_weights"] for m in expected.history]
    assert len({tuple(weights) for weights in ours}) == 3
    assert torch.equal(result.edges.logits, expected.edges.logits)
    for name in whole.adapters:
        assert equal(model.adapter_parameters(name), whole.adapter_parameters(name))


def test_edges_also_learn_from_the_credit_of_what_they_carried() -> None:
    plain = run(TinyModel(), None, config=replace(CONFIG, iterations=2))
    credited = run(TinyModel(), None, config=replace(CONFIG, iterations=2, edge_credit=0.1))
    assert not torch.equal(plain.edges.logits, credited.edges.logits)


@pytest.mark.parametrize("critic", [None, Outcome()])
def test_credit_of_edges_is_refused_without_a_critic(critic: Any) -> None:
    with pytest.raises(ConfigError, match="edge_credit would not be used"):
        run(TinyModel(), None, config=replace(CONFIG, iterations=1, edge_credit=0.1),
            critic=critic)  # fmt: skip
