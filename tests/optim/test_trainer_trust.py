"""The trainer weighs its critic against outcomes, and forgets nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld, TinyModel
from learning_run import CONFIG, run

from swarm_ui.optim.credit.assigners.critic import NoisyCritic, ScriptedCritic
from swarm_ui.optim.metrics import IterationMetrics

LEARNED = replace(CONFIG, edges="redraw", graphs=2, episodes=32, critic_trust="learned")


def turned() -> NoisyCritic:
    return NoisyCritic(ScriptedCritic(ButtonWorld), anti=True)


def trained(**other: Any) -> tuple[list[torch.Tensor], tuple[IterationMetrics, ...]]:
    """Weights and history of a run."""
    model = TinyModel()
    history = run(model, None, **other).history
    return [p.detach() for n in model.adapters for p in model.adapter_parameters(n)], history


def equal(ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("method", ["dpo", pytest.param("rft", marks=pytest.mark.slow)])
def test_a_critic_without_weight_is_learning_without_a_critic(method: Any) -> None:
    update = replace(CONFIG.update, method=method)
    config = replace(LEARNED, update=update, iterations=2, episodes=16)
    without, _ = trained(config=replace(config, critic_trust="full"), critic=None)
    distrusted, history = trained(config=config, critic=turned())
    assert {m.critic_weights for m in history} == {(0.0, 0.0)}
    assert {m.guided for m in history} == {0.0}
    assert equal(distrusted, without)
    blind, _ = trained(config=replace(config, critic_trust="full"), critic=turned())
    assert not equal(blind, without)


def test_edges_also_learn_from_the_credit_of_what_they_carried() -> None:
    plain = run(TinyModel(), None, config=replace(CONFIG, iterations=2))
    credited = run(TinyModel(), None, config=replace(CONFIG, iterations=2, edge_credit=0.1))
    assert not torch.equal(plain.edges.logits, credited.edges.logits)
