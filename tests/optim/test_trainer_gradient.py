"""Policy gradient on the agents' own replies: groups, losses against closed forms, learning."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
import torch
from learning_fakes import TinyModel, click, decided, graded, screen

from swarm_ui.errors import ConfigError, Failure
from swarm_ui.model import Decision
from swarm_ui.optim.preferences.advantages import ScoredReply, scored_replies
from swarm_ui.optim.update.adapter_trainer import AdapterTrainer, UpdateConfig
from swarm_ui.optim.update.batches import pad
from swarm_ui.optim.update.losses import divergence, policy_gradient_loss
from swarm_ui.trace.records import Episode, StepRecord

WORDS = ["Save", "Back", "Help", "Open", "Send", "Find"]
SETTINGS = UpdateConfig(method="pg", steps=60, batch_size=8, lr=5e-2, beta=0.01)


def episode(
    *steps: StepRecord, success: bool | None = True, fault: Failure | None = None
) -> Episode:
    return Episode(environment="e", task="t", seed=0, steps=steps, success=success, fault=fault)


# -- what is learned from -----------------------------------------------------------------------


def test_replies_are_compared_with_what_was_said_on_the_same_screen() -> None:
    trace = decided([[click(0), click(1)], [click(0), click(2)]])
    replies = scored_replies([episode(graded(trace, [[1.0, 0.0], [1.0, 0.0]]))])
    assert [(r.node, r.reply, r.advantage) for r in replies] == [
        ("agent_0", click(0), pytest.approx(1.0, abs=1e-4)),
        ("agent_1", click(1), pytest.approx(-1.0, abs=1e-4)),
        ("agent_0", click(0), pytest.approx(1.0, abs=1e-4)),
        ("agent_1", click(2), pytest.approx(-1.0, abs=1e-4)),
    ]
    assert replies[0].decision == trace.decision(trace.calls[0])


def test_who_all_agree_teaches_nothing() -> None:
    trace = decided([[click(0), click(0)]])
    assert scored_replies([episode(graded(trace, [[1.0, 1.0]]))]) == []
    other = decided([[click(1), click(1)]])
    both = [
        episode(graded(trace, [[1.0, 1.0]])),
        episode(graded(other, [[0.0, 0.0]])),
    ]
    signs = [math.copysign(1, r.advantage) for r in scored_replies(both)]
    assert signs == [1, 1, -1, -1]  # the same screen, met twice


def test_replies_are_in_the_agents_own_indices() -> None:
    trace = decided(
        [[click(0, "Save"), click(1, "Back")]], orders={"agent_1": (2, 0, 1)}
    )  # fmt: skip
    (_, shuffled) = scored_replies([episode(graded(trace, [[1.0, 0.0]]))])
    assert shuffled.reply == click(2, "Back")


def test_a_reply_about_a_hidden_element_is_learned_too() -> None:
    """A message named the element, which comes after the two that the agent sees."""
    relayed = decided([[click(0), click(0)]], orders={"agent_1": (1, 2)})
    wrong = decided([[click(1), click(1)]])
    steps = [graded(relayed, [[1.0, 1.0]]), graded(wrong, [[0.0, 0.0]])]
    found = scored_replies([episode(step) for step in steps])
    assert [reply.node for reply in found] == ["agent_0", "agent_1"] * 2
    assert found[1].reply == click(2)


def test_what_is_unscored_or_masked_is_left_out() -> None:
    step = graded(decided([[click(0), click(1), click(2)]]), [[1.0, None, 0.0]])
    assert [r.node for r in scored_replies([episode(step)])] == ["agent_0", "agent_2"]
    assert (
        scored_replies(
            [episode(step, success=None, fault=Failure(kind="environment", message="browser died"))]
        )
        == []
    )


def test_an_unreadable_reply_is_learned_only_by_models_that_can_say_it() -> None:
    step = graded(decided([[click(0), None]]), [[1.0, 0.0]])
    good, bad = scored_replies([episode(step)])
    assert (good.text, bad.reply, bad.text) == (click(0).json(), None, "words")
    model = TinyModel(["one"])  # like the embedded agent, it says actions only
    assert AdapterTrainer(model, SETTINGS).fit("one", [good, bad], random.Random(0)).pairs == 1


# -- losses -------------------------------------------------------------------------------------


def test_loss_is_the_clipped_ratio_times_the_advantage() -> None:
    policy, old = torch.tensor([-2.0, -2.0, -8.0]), torch.tensor([-4.0, -4.0, -4.0])
    advantage, tokens = torch.tensor([1.0, -1.0, 2.0]), torch.tensor([2.0, 2.0, 4.0])
    e = math.exp(1.0)  # ratios by length: e, e and 1 / e
    by_hand = [min(e, 1.2), -e, 2 * math.exp(-1.0)]
    loss = policy_gradient_loss(policy, old, advantage, tokens, clip=0.2)
    assert loss.item() == pytest.approx(-sum(by_hand) / 3)


def test_gradient_is_that_of_the_likelihood_at_the_old_policy_and_ends_at_the_clip() -> None:
    old = torch.tensor([-3.0, -3.0])
    tokens = torch.tensor([3.0, 3.0])
    policy = old.clone().requires_grad_()
    policy_gradient_loss(policy, old, torch.tensor([2.0, -1.0]), tokens, clip=0.2).backward()
    assert policy.grad is not None
    assert policy.grad.tolist() == pytest.approx([-2.0 / 3 / 2, 1.0 / 3 / 2])
    far = (old + 3.0).requires_grad_()
    policy_gradient_loss(far, old, torch.tensor([2.0, 2.0]), tokens, clip=0.2).backward()
    assert far.grad is not None and far.grad.tolist() == [0.0, 0.0]


def test_divergence_is_zero_at_the_reference_and_positive_elsewhere() -> None:
    here, tokens = torch.tensor([-4.0, -2.0]), torch.tensor([4.0, 2.0])
    assert divergence(here, here, tokens).item() == 0.0
    away = divergence(here, here + torch.tensor([4.0, -2.0]), tokens)
    assert away.item() == pytest.approx((math.e - 2 + math.exp(-1.0)) / 2)


# -- training -----------------------------------------------------------------------------------


def replies(count: int = 24) -> list[ScoredReply]:
    """For each goal one button earns an advantage, and another the opposite."""
    found = []
    for k in range(count):
        goal = f"goal-{k % 6} " * 4 + f"number-{k}"
        decision = Decision(observation=screen(["x"], goal=goal))
        for shift, advantage in ((0, 1.0), (1, -1.0)):
            reply = click((k + shift) % 6, WORDS[(k + shift) % 6])
            found.append(
                ScoredReply(node="agent_0", decision=decision, reply=reply, advantage=advantage)
            )
    return found


def share_right(model: TinyModel, lesson: list[ScoredReply]) -> float:
    """Share of goals for which what earned more is also more probable."""
    with torch.no_grad(), model.activate("one"):
        rows = [model.encode(r.decision, r.reply.json()) for r in lesson]
        sums, _ = model.forward_logprobs(*pad(rows, 0))
    return float((sums[0::2] > sums[1::2]).float().mean())


@pytest.mark.parametrize("reference", ["start", "base"])
def test_training_says_more_of_what_earned_more(reference: str) -> None:
    model = TinyModel(["one", "two"])
    lesson = replies()
    before = share_right(model, lesson)
    config = replace(SETTINGS, reference=reference)
    stats = AdapterTrainer(model, config).fit("one", lesson, random.Random(0))
    assert share_right(model, lesson) >= 0.9 > before + 0.1
    assert (stats.pairs, stats.steps, stats.accuracy) == (48, 60, None)
    assert model.versions == {"one": 1, "two": 0}


def test_no_advantage_moves_nothing_but_the_pull_to_the_reference() -> None:
    flat = [replace_advantage(r, 0.0) for r in replies()]
    model = TinyModel(["one"])
    before = model.adapter_parameters("one")[1].clone()
    AdapterTrainer(model, SETTINGS).fit("one", flat, random.Random(0))
    assert torch.equal(before, model.adapter_parameters("one")[1])


def replace_advantage(reply: ScoredReply, advantage: float) -> ScoredReply:
    return ScoredReply(
        node=reply.node, decision=reply.decision, reply=reply.reply, advantage=advantage
    )


def test_a_method_refuses_the_other_kind_of_example() -> None:
    with pytest.raises(ConfigError, match="'dpo' learns from PreferencePair, got ScoredReply"):
        trainer = AdapterTrainer(TinyModel(["one"]), UpdateConfig(method="dpo"))
        trainer.fit("one", replies(), random.Random(0))


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_the_clip_is_checked(clip: float) -> None:
    with pytest.raises(ConfigError, match="clip"):
        UpdateConfig(clip=clip)
