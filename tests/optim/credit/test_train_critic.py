"""Training of a critic with trl: a tiny language model learns which button is right."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from learning_fakes import BUTTONS, ButtonWorld, TinyModel, button_team, click, screen

pytest.importorskip("trl")

from tiny_causal import write_tiny_model

from swarm_ui.nodes import CausalModel
from swarm_ui.optim import Guidance, Outcome, ScriptedAdversary, ScriptedCritic
from swarm_ui.optim.credit.learned import (
    TRAINING,
    LabelledReply,
    calibrated,
    labelled_replies,
    learned_critic,
    read_card,
    train_critic,
)
from swarm_ui.rollout import rollout_many

CONFIG = msgspec.structs.replace(TRAINING, learning_rate=1e-2, epochs=8.0, batch_size=8, rank=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


def replies(count: int = 16, first: int = 0) -> list[LabelledReply]:
    """The right reply is to save, wherever the button is."""
    found = []
    for k in range(first, first + count):
        labels = list(BUTTONS)
        random.Random(k).shuffle(labels)
        found += [
            LabelledReply(
                task=f"t{k % 4}", seed=k, step=0, source="agent", observation=screen(labels),
                action=click(n), right=label == "Save",
            )
            for n, label in enumerate(labels)
        ]  # fmt: skip
    return found


async def test_it_learns_is_measured_on_held_out_replies_and_comes_back_from_its_folder(
    folder: Path, tmp_path: Path
) -> None:
    told: list[float] = []
    out = tmp_path / "critic"
    made = train_critic(
        folder, replies(), out, config=CONFIG, report=lambda step, steps, loss: told.append(loss)
    )
    assert made.steps == len(told) == 32 and told[-1] < told[0]
    critic = learned_critic(CausalModel.from_pretrained(folder), out)
    held_out = replies(8, first=100)
    figures = await calibrated(critic, held_out, out)
    assert figures["auc"].mean > 0.7
    assert read_card(out) == critic.card
    assert critic.card.replies == 32 and critic.card.validation["auc"] == figures["auc"].mean
    fresh = learned_critic(CausalModel.from_pretrained(folder), out)
    first = held_out[0]
    ours = await critic.grade(first.observation, [first.action])
    assert await fresh.grade(first.observation, [first.action]) == pytest.approx(ours, abs=1e-4)


async def test_labels_are_the_credit_of_proposals_and_of_what_the_adversary_wrote() -> None:
    team = button_team(TinyModel([f"agent_{k}" for k in range(3)]))
    jobs = [("press", k) for k in range(6)]
    judge = ScriptedCritic(ButtonWorld)
    guidance = Guidance(judge, ScriptedAdversary())
    episodes = await rollout_many(ButtonWorld, team, jobs, intervention=guidance)
    credit = await judge(episodes)
    found = labelled_replies(episodes, credit)
    assert {reply.source for reply in found} == {"agent", "adversary"}
    for reply in found:
        labels = [e.label for e in reply.observation.elements]
        assert reply.action.index is None or reply.right == (
            labels[reply.action.index] == reply.observation.goal.split()[0]
        )
    places = [(reply.task, reply.seed, reply.step, reply.action.key) for reply in found]
    assert len(places) == len(set(places))
    by_outcome = labelled_replies(episodes, await Outcome()(episodes))
    solved = {(e.task, e.seed): e.success for e in episodes}
    assert all(r.right == solved[r.task, r.seed] for r in by_outcome if r.source == "agent")
