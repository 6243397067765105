"""Training of a critic: a tiny language model learns which button is right."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
import torch
from learning_fakes import BUTTONS, click, screen

from benchmarks.studies.critic.tiny_model import write_tiny_model
from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.nodes import CausalModel
from swarm_ui.optim.credit.judged import JudgedReply, JudgedScreen
from swarm_ui.optim.credit.learned import (
    CriticCard,
    CriticConfig,
    CriticProgress,
    LearnedCritic,
    Scaling,
    TrainableJudge,
    learned_critic,
    save_critic,
    train_critic,
)

CONFIG = CriticConfig(learning_rate=5e-3, epochs=20.0, tokens_per_batch=800, rank=8, most=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


def screens(count: int = 24) -> list[JudgedScreen]:
    """The right reply is to save, wherever the button is."""
    found = []
    for k in range(count):
        labels = list(BUTTONS)
        random.Random(k).shuffle(labels)
        replies = tuple(
            JudgedReply(action=click(n), kind="own", right=label == "Save")
            for n, label in enumerate(labels)
        )
        found.append(JudgedScreen(step=0, observation=screen(labels), replies=replies))
    return found


def trained(
    folder: Path, config: CriticConfig = CONFIG
) -> tuple[CausalModel, list[CriticProgress]]:
    model = CausalModel.from_pretrained(folder)
    assert isinstance(model, TrainableJudge)
    told: list[CriticProgress] = []
    last = train_critic(model, "critic", screens(), config, report=told.append, every=5)
    assert told[-1] == last
    return model, told


def scores(critic: LearnedCritic) -> list[float]:
    async def ask() -> list[float]:
        found = []
        for shown in screens():
            found += await critic.scores(shown.observation, [r.action for r in shown.replies])
        return found

    return asyncio.run(ask())


def test_it_learns_and_comes_back_from_its_folder(folder: Path, tmp_path: Path) -> None:
    model, told = trained(folder)
    assert told[0].loss > 0.4
    assert told[-1].loss < 0.8 * told[0].loss
    assert told[-1].share == 1.0
    card = CriticCard(base_model="tiny", scaling=Scaling(slope=1.5))
    save_critic(model, "critic", card, tmp_path / "critic")
    ours = scores(LearnedCritic(model, card=card))
    right = [r.right for shown in screens() for r in shown.replies]
    good = [score for score, label in zip(ours, right, strict=True) if label]
    bad = [score for score, label in zip(ours, right, strict=True) if not label]
    assert sum(good) / len(good) > sum(bad) / len(bad) + 0.2
    fresh = CausalModel.from_pretrained(folder)
    assert scores(learned_critic(fresh, tmp_path / "critic")) == pytest.approx(ours, abs=1e-4)
    with pytest.raises(ConfigError, match="it exists; choose another folder"):
        save_critic(model, "critic", card, tmp_path / "critic")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["critic"]


def test_equal_seeds_give_equal_weights(folder: Path) -> None:
    short = CriticConfig(epochs=0.5, tokens_per_batch=800, learning_rate=1e-2)
    weights = []
    for _ in range(2):
        model, _ = trained(folder, short)
        weights.append(torch.cat([p.flatten() for p in model.adapter_parameters("critic")]))
    assert torch.equal(*weights)
    assert weights[0].abs().sum() > 0


def test_a_base_in_bfloat16_is_trained_in_its_own_precision_and_left_as_it_was(
    folder: Path,
) -> None:
    model = CausalModel.from_pretrained(folder, dtype=torch.bfloat16)
    before = {key: weight.clone() for key, weight in model.base_weights().items()}
    short = CriticConfig(epochs=0.3, tokens_per_batch=800, learning_rate=1e-2, rank=2)
    last = train_critic(model, "critic", screens(8), short)
    assert last.step > 0 and last.loss < 1.0
    assert all(p.dtype == torch.float32 for p in model.adapter_parameters("critic"))
    after = model.base_weights()
    assert all(torch.equal(after[key], weight) for key, weight in before.items())
    assert all(0.0 < score < 1.0 for score in scores(LearnedCritic(model)))


@pytest.mark.slow
def test_it_ends_when_its_time_is_over(folder: Path) -> None:
    _, told = trained(folder, CriticConfig(epochs=1e4, minutes=0.02))
    assert told[-1].share == 1.0
    assert told[-1].seconds < 30


def test_one_label_alone_teaches_nothing(folder: Path) -> None:
    only = [
        JudgedScreen(step=0, observation=screen(), replies=(shown.replies[0],))
        for shown in screens()
        if not shown.replies[0].right
    ]
    model = CausalModel.from_pretrained(folder)
    with pytest.raises(ConfigError, match="no right and wrong replies"):
        train_critic(model, "critic", only)
    assert model.adapters == ()


def test_a_loss_that_is_not_a_number_leaves_the_weights(folder: Path) -> None:
    model = CausalModel.from_pretrained(folder)
    model.add_adapter("critic", rank=2)
    with torch.no_grad():
        model.adapter_parameters("critic")[0].fill_(torch.nan)
    with pytest.raises(LearningError, match="the loss is nan at step 1"):
        train_critic(model, "critic", screens(4), CriticConfig(rank=2))
