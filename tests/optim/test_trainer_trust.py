"""The trainer weighs its critic against outcomes, and forgets nothing of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning_fakes import ButtonWorld, TinyModel
from learning_run import CONFIG, run

from swarm_ui.errors import ConfigError
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.credit.assigners.critic import NoisyCritic, ScriptedCritic
from swarm_ui.optim.credit.trust import TrustConfig
from swarm_ui.optim.metrics import IterationMetrics
from swarm_ui.optim.update.checkpoint import Checkpoints
from swarm_ui.trace.records import Episode

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


def test_credit_is_the_mixture_and_both_modes_report_the_weight() -> None:
    played: list[list[Episode]] = []

    def keep(iteration: int, episodes: Sequence[Episode]) -> None:
        played.append(list(episodes))

    config = replace(LEARNED, iterations=1)
    prior = replace(config, trust=TrustConfig(prior=(0.6, 50.0)))
    _, history = trained(config=prior, callbacks=Callbacks(on_episodes=keep))
    weights = history[0].critic_weights
    assert weights is not None and all(0.3 < w < 0.9 for w in weights)
    assert history[0].credit_source == ("scripted critic, 3 % flipped and outcome, weight learned")
    for episode in played[0]:
        outcome = float(bool(episode.success))
        for step in episode.steps:
            assert step.credit is not None
            for weight, row in zip(weights, step.credit, strict=True):
                mixed = [(1 - weight) * outcome, (1 - weight) * outcome + weight]
                assert all(v == pytest.approx(mixed[v > sum(mixed) / 2]) for v in row)
    played.clear()
    full_trust = replace(config, critic_trust="full")
    _, full = trained(config=full_trust, callbacks=Callbacks(on_episodes=keep))
    assert full[0].critic_weights is not None
    said = {v for e in played[0] for s in e.steps for row in s.credit or () for v in row}
    assert said == {0.0, 1.0}


@pytest.mark.slow
def test_guidance_obeys_the_trust() -> None:
    config = replace(LEARNED, iterations=1, guide=1.0)
    _, none = trained(config=config)
    _, some = trained(config=replace(config, trust=TrustConfig(prior=(0.6, 50.0))))
    _, full = trained(config=replace(config, critic_trust="full"))
    assert none[0].guided == 0.0  # nothing is known before the first episode
    assert none[0].guided < (some[0].guided or 0.0) < (full[0].guided or 0.0)


@pytest.mark.slow
def test_a_resumed_run_trusts_as_the_whole_one_does(tmp_path: Path) -> None:
    trust = TrustConfig(prior=(0.5, 20.0))
    config = replace(LEARNED, edges="learned", edge_credit=True, trust=trust)
    whole, folder = TinyModel(), tmp_path / "run"
    expected = run(whole, folder, config=config)
    shutil.rmtree(folder / "checkpoints" / "iteration-0003")
    model = TinyModel()
    result = run(model, folder, resume=True, config=config)
    ours = [m.critic_weights for m in result.history]
    assert ours == [m.critic_weights for m in expected.history]
    assert len(set(ours)) == 3
    assert torch.equal(result.edges.logits, expected.edges.logits)
    for name in whole.adapters:
        assert equal(model.adapter_parameters(name), whole.adapter_parameters(name))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [tuple(line["critic_weights"]) for line in lines] == ours
    with pytest.raises(ConfigError, match="critic_trust: 'learned' then, 'full' now"):
        run(TinyModel(), folder, resume=True, config=replace(config, critic_trust="full"))


def older(folder: Path) -> None:
    """Take out of a run's newest checkpoint and metrics what older versions did not write."""
    store = Checkpoints(folder / "checkpoints")
    found = store.latest(pytest.fail)
    assert found is not None
    state = json.loads((found.folder / "state.json").read_text())
    del state["trust"]
    for name in ("critic_trust", "trust", "edge_credit"):
        del state["config"][name]
    for line in state["history"]:
        del line["critic_weights"]

    def write(place: Path) -> None:
        for path in found.folder.rglob("*"):
            if path.is_file() and path.name not in ("state.json", "manifest.json"):
                copy = place / path.relative_to(found.folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(path.read_bytes())
        (place / "state.json").write_text(json.dumps(state))

    store.save(found.iteration, write)


def test_a_checkpoint_from_before_the_trust_is_taken_up(tmp_path: Path) -> None:
    config = replace(CONFIG, iterations=2)
    run(TinyModel(), tmp_path, config=config)
    older(tmp_path)
    result = run(TinyModel(), tmp_path, resume=True, config=replace(config, iterations=3))
    assert [m.critic_weights is None for m in result.history] == [True, True, False]
    with pytest.raises(ConfigError, match="critic_trust: 'full' then, 'learned' now"):
        run(TinyModel(), tmp_path, resume=True, config=replace(config, critic_trust="learned"))


def test_edges_also_learn_from_the_credit_of_what_they_carried() -> None:
    plain = run(TinyModel(), None, config=replace(CONFIG, iterations=2))
    credited = run(TinyModel(), None, config=replace(CONFIG, iterations=2, edge_credit=True))
    assert not torch.equal(plain.edges.logits, credited.edges.logits)


@pytest.mark.parametrize("setting", [{"edge_credit": True}, {"critic_trust": "learned"}])
def test_what_needs_a_critic_is_refused_without_one(setting: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="would not be used, because no critic"):
        run(TinyModel(), None, config=replace(CONFIG, iterations=1, **setting), critic=None)
