"""The recipe of the included agents: samples, training, and what a small budget teaches."""

from __future__ import annotations

import asyncio

import pytest
import torch

from demos.base_agent.environment import InventedScreens
from demos.base_agent.pages import FAMILIES, Family
from demos.base_agent.screens import ActionSample, Words, to_sample
from demos.base_agent.stream import Mix, Stream
from demos.base_agent.training import Progress, Stage1Config, pad, reply_loss, train
from swarm_ui.action import Action
from swarm_ui.errors import ConfigError, EnvironmentFault, LearningError
from swarm_ui.model import Request
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer


def exact(model: LocalModel, lessons: list[ActionSample]) -> float:
    asked = [Request(decision=lesson.decision) for lesson in lessons]
    done = asyncio.run(model.generate(asked))
    hits = [c.text == lesson.action.json() for c, lesson in zip(done, lessons, strict=True)]
    return sum(hits) / len(hits)


@pytest.mark.slow
def test_training_learns_to_act_on_screens_it_has_not_seen() -> None:
    mix = Mix(questions=0.1, pages=0.0, devices=1.0, demonstrations=0.0, invented_with_messages=0.0)
    model = LocalModel.untrained(ScreenTokenizer(), width=48, layers=2, heads=4, seed=0)
    unseen = Stream(999, mix)
    lessons = [unseen.draw(questions=0.0) for _ in range(100)]
    assert all(isinstance(lesson, ActionSample) for lesson in lessons)
    before = exact(model, lessons)  # type: ignore[arg-type]
    told: list[Progress] = []
    end = train(
        model,
        Stream(0, mix),
        Stage1Config(steps=200, tokens_per_batch=1500, learning_rate=6e-3),
        report=told.append,
    )
    after = exact(model, lessons)  # type: ignore[arg-type]
    assert before < 0.2
    assert after > before + 0.25
    assert end.step == 200
    assert [p.step for p in told] == list(range(50, 201, 50))
    assert end.loss < told[0].loss / 2


@pytest.mark.parametrize("wrong", ["loss", "gradient"])
def test_what_is_no_number_changes_no_weight(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    model = LocalModel.untrained(ScreenTokenizer(), width=16, layers=1, heads=2, seed=0)
    before = [p.detach().clone() for p in model.network.parameters()]

    def broken(network: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        loss = 0.0 * reply_loss(network, ids, mask)
        # The root has an infinite slope at 0, and 0 times infinity is not a number.
        return loss * float("nan") if wrong == "loss" else loss.sqrt() + 1.0

    monkeypatch.setattr("demos.base_agent.training.reply_loss", broken)
    with pytest.raises(LearningError, match=r"norm nan at step 1 of 9;.* Lower learning_rate"):
        train(model, Stream(0, Mix()), Stage1Config(steps=9))
    assert all(torch.equal(a, b) for a, b in zip(before, model.network.parameters(), strict=True))


def test_the_loss_counts_marked_tokens_only() -> None:
    model = LocalModel.untrained(ScreenTokenizer(), width=16, layers=1, heads=2, seed=0)
    ids, mask = pad([([5, 6, 7, 8], [0, 0, 1, 1]), ([5, 6, 7], [0, 0, 1])], model.pad_id)
    logits = model.network(input_ids=ids).logits.log_softmax(-1)
    by_hand = -(logits[0, 1, 7] + logits[0, 2, 8] + logits[1, 1, 7]) / 3
    assert reply_loss(model.network, ids, mask).item() == pytest.approx(by_hand.item(), abs=1e-5)


@pytest.mark.parametrize("family", list(FAMILIES), ids=lambda family: family.__name__)
def test_every_step_of_a_page_is_possible(family: Family) -> None:
    for seed in range(40):
        screen = family(Words(seed))
        assert screen.goal and not set("{}[]") & set(screen.goal)
        for at in range(len(screen.plan)):
            sample = to_sample(family(Words(seed)), at)
            assert sample.action.index is not None
            assert sample.decision.observation.element(sample.action.index) is not None


async def test_invented_screens_are_solved_by_their_expert_alone() -> None:
    one, other = InventedScreens(), InventedScreens()
    for task in one.tasks:
        for seed in range(5):
            screen = await one.reset(task=task, seed=seed)
            assert screen == await other.reset(task=task, seed=seed)
            before = one.snapshot()
            assert one.grade(one.expert()) == 1.0 and one.grade(Action(action_type="wait")) == 0.0
            step = await one.step(one.expert())
            assert step.terminated and step.reward == 1.0
            with pytest.raises(EnvironmentFault):
                one.expert()
            assert one.restore(before) == screen
    with pytest.raises(ConfigError):
        await one.reset(task="posters", seed=0)
