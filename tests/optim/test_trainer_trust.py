"""The trainer weighs its critic against outcomes, and forgets nothing of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld, Contrary, TinyModel
from learning_run import CONFIG, run
from same_run import equal, weights

from swarm_ui.optim import Trust
from swarm_ui.optim.metrics import Metrics

PLAIN = replace(CONFIG, edges="redraw", graphs=2, episodes=32)


def trained(**other: Any) -> tuple[list[torch.Tensor], tuple[Metrics, ...]]:
    """Weights and history of a run."""
    model = TinyModel()
    history = run(model, None, **other).history
    return weights(model), history


@pytest.mark.parametrize("method", ["dpo", pytest.param("rft", marks=pytest.mark.slow)])
def test_a_critic_without_weight_is_learning_without_a_critic(method: Any) -> None:
    update = replace(PLAIN.update, method=method)
    config = replace(PLAIN, update=update, iterations=2, episodes=16)
    without, _ = trained(config=config, critic=None)
    distrusted, history = trained(config=config, critic=Trust(Contrary(ButtonWorld)))
    assert [m["critic_weights"] for m in history] == [[0.0, 0.0]] * 2
    assert {m["guided"] for m in history} == {0.0}
    assert equal(distrusted, without)
    blind, history = trained(config=config, critic=Contrary(ButtonWorld))
    assert not equal(blind, without) and history[0]["critic_weights"] is None
