"""The weight of a critic is learned from outcomes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec
import pytest
from learning_fakes import click, decided

from swarm_ui import Credit, Episode, Failure, StepRecord
from swarm_ui.optim import Outcome, Trust
from swarm_ui.optim.credit.critic import credit_of
from swarm_ui.optim.credit.trust import CONFIDENCE


def trust_of() -> Trust:
    return Trust(Outcome())


def learn(trust: Trust, scores: list[list[float | None]], outcomes: list[float | None]) -> None:
    """Learn from episodes of one task."""
    trust.learn(scores, outcomes, [""] * len(scores))


def test_the_weight_is_the_lower_bound_of_the_correlation() -> None:
    trust = trust_of()
    scores: list[list[float | None]] = [[0.0], [0.0], [1.0], [1.0], [1.0], [0.0]]
    learn(trust, scores, [0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    r = 1 / 3  # of six episodes, four agree
    assert trust.weight(0) == 0.0  # five degrees of freedom say nothing
    for _ in range(200):
        learn(trust, scores, [0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    known = trust.rounds[0][0]
    assert known == pytest.approx(5 / (1 - 0.9), rel=1e-6)
    expected = math.tanh(math.atanh(r) - CONFIDENCE / math.sqrt(known - 2))
    assert trust.weight(0) == pytest.approx(max(0.0, expected))


def test_a_critic_that_only_knows_which_tasks_are_hard_earns_nothing() -> None:
    rng = random.Random(0)
    scores: list[list[float | None]] = []
    outcomes: list[float | None] = []
    groups = []
    for k in range(400):
        hard = k % 2 == 0
        groups.append("hard" if hard else "easy")
        scores.append([0.2 * rng.random() + (0.0 if hard else 0.8)])
        outcomes.append(float(rng.random() < (0.1 if hard else 0.9)))
    blind, fair = trust_of(), trust_of()
    learn(blind, scores, outcomes)
    fair.learn(scores, outcomes, groups)
    assert blind.weight(0) > 0.5
    assert fair.weight(0) < 0.1
    single = trust_of()
    single.learn(scores, outcomes, [f"{k}" for k in range(400)])
    assert single.weight(0) == 0.0 and single.rounds[0][0] == 0.0


class Says:
    """A critic that gives the same credit to every agent of a round."""

    def __init__(self, scores: dict[int, float | None]) -> None:
        self.scores = scores

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        return [self.credit(episode) for episode in episodes]

    def credit(self, episode: Episode) -> Credit:
        score = self.scores[episode.seed]
        values: list[dict[str, float | None]] = [
            {"agent_0:0": score, "agent_1:0": 0.5, "agent_0:1": score}
        ]
        found = Credit.of(episode, values, source="critic x")
        return msgspec.structs.replace(found, rationale=(("because", "because"),))


def lived(seed: int, success: bool | None, task: str = "t") -> Episode:
    trace = decided([[click(0), click(1)], [click(0), None]])
    fault = Failure(kind="environment", message="x") if success is None else None
    return Episode(
        environment="e", task=task, seed=seed, success=success, fault=fault,
        steps=(StepRecord(trace=trace, executed=trace.action),),
    )  # fmt: skip


async def test_it_learns_and_mixes_with_the_outcome() -> None:
    rng = random.Random(1)
    scores: dict[int, float | None] = dict(enumerate([0.0, 1.0] * 60))
    batch = [lived(k, bool(rng.random() < 0.1 + 0.8 * (s or 0))) for k, s in scores.items()]
    scores |= {120: 0.3, 121: None}
    batch += [lived(120, None), lived(121, True)]
    critic = Trust(Says(scores))
    *settled, masked, quiet = await credit_of(critic, batch)
    w0, w1 = critic.weight(0), critic.weight(1)
    assert 0.4 < w0 < 0.9 and 0.4 < w1 < 0.9
    for before, after in zip(batch, settled, strict=False):
        y, s = float(before.success or 0), scores[before.seed] or 0.0
        assert after.values[0] == (
            (pytest.approx(w0 * s + (1 - w0) * y), pytest.approx(w0 * 0.5 + (1 - w0) * y)),
            (pytest.approx(w1 * s + (1 - w1) * y), y),
        )
    assert masked.scored == 0
    assert quiet.values[0] == ((1.0, pytest.approx(w0 * 0.5 + 1 - w0)), (1.0, 1.0))
    assert settled[0].source == "critic x, weighed against outcome"
    assert settled[0].rationale == (("because", "because"),)
