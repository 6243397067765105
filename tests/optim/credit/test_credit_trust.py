"""The weight of a critic is learned from outcomes."""

from __future__ import annotations

import dataclasses
import math
import random
from functools import cache

import msgspec
import pytest
from learning_fakes import click, decided

from benchmarks.support.vote_game import VoteGame, play
from swarm_ui import CollabGraph
from swarm_ui.action import Abstain
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.nodes.models.scripted.scripted_model import ScriptedModel
from swarm_ui.optim.collector import Collector, GraphRollout
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.optim.credit.assigners.mixture import TrustedCritic
from swarm_ui.optim.credit.trust import CriticTrust, TrustConfig, round_means
from swarm_ui.optim.preferences.pairs import PairConfig
from swarm_ui.optim.rollout_supervisor import Critics, RolloutSupervisor
from swarm_ui.stats import over_seeds
from swarm_ui.trace.records import Episode, StepRecord


def draw(
    slope: float, n: int, seed: int = 0, rounds: int = 1
) -> tuple[list[list[float | None]], list[float | None]]:
    """Scores of which the last round's say something about the outcome, as ``slope`` has it."""
    rng = random.Random(seed)
    scores: list[list[float | None]] = [[rng.random() for _ in range(rounds)] for _ in range(n)]
    outcomes: list[float | None] = []
    for row in scores:
        last = row[-1]
        assert last is not None
        outcomes.append(float(rng.random() < 0.5 + slope * (last - 0.5)))
    return scores, outcomes


def test_the_weight_is_the_lower_bound_of_the_correlation() -> None:
    trust = CriticTrust(TrustConfig(confidence=1.0))
    scores: list[list[float | None]] = [[0.0], [0.0], [1.0], [1.0], [1.0], [0.0]]
    trust.learn(scores, [0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    r = 1 / 3  # of six episodes, four agree
    assert trust.rounds[0].correlation == pytest.approx(r)
    assert trust.weight(0) == 0.0  # five degrees of freedom say nothing
    for _ in range(200):
        trust.learn(scores, [0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    known = trust.rounds[0].freedom
    assert known == pytest.approx(5 / (1 - 0.9), rel=1e-6)
    expected = math.tanh(math.atanh(r) - 1.0 / math.sqrt(known - 2))
    assert trust.weight(0) == pytest.approx(expected)
    assert 0.1 < expected < r


def test_no_evidence_no_trust_and_each_round_has_its_own() -> None:
    trust = CriticTrust()
    assert trust.weight(0) == trust.weight(5) == 0.0
    trust.learn(*draw(0.8, 300, rounds=2))
    assert trust.weight(0) < 0.1 < 0.3 < trust.weight(1)
    assert trust.weight(2) == 0.0


def test_a_critic_that_prefers_what_is_wrong_ends_at_zero() -> None:
    trust, turning = CriticTrust(), CriticTrust(TrustConfig(inverted=True))
    for batch in range(10):
        for one in (trust, turning):
            one.learn(*draw(-0.8, 50, seed=batch))
        assert trust.weight(0) == 0.0
    assert turning.weight(0) < -0.2


def test_an_unrelated_critic_is_rarely_trusted() -> None:
    weights = []
    for seed in range(200):
        trust = CriticTrust()
        trust.learn(*draw(0.0, 60, seed=seed))
        weights.append(trust.weight(0))
    assert sum(w > 0 for w in weights) <= 20  # 5 % expected
    assert sum(weights) / len(weights) < 0.01


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
    blind, fair = CriticTrust(), CriticTrust()
    blind.learn(scores, outcomes)
    fair.learn(scores, outcomes, groups)
    assert blind.weight(0) > 0.5
    assert fair.weight(0) < 0.1
    single = CriticTrust()
    single.learn(scores, outcomes, [f"{k}" for k in range(400)])
    assert single.weight(0) == 0.0 and single.rounds[0].freedom == 0.0


def test_trust_is_lost_when_the_critic_stops_predicting() -> None:
    trust = CriticTrust(TrustConfig(memory=0.5))
    trust.learn(*draw(1.0, 200))
    assert trust.weight(0) > 0.4
    for seed in range(8):
        trust.learn(*draw(0.0, 200, seed=seed + 1))
    assert trust.weight(0) < 0.1
    trust.learn(*draw(1.0, 200))
    for _ in range(60):  # nothing but failures: no evidence either way, and the old one fades
        trust.learn([[0.5]] * 20, [0.0] * 20)
    assert trust.weight(0) == 0.0


def test_a_prior_is_trusted_until_outcomes_speak() -> None:
    trust = CriticTrust(TrustConfig(prior=(0.6, 50.0)))
    start = trust.weight(0)
    assert start == pytest.approx(math.tanh(math.atanh(0.6) - 1.645 / math.sqrt(48)))
    for seed in range(30):
        trust.learn(*draw(-1.0, 50, seed=seed))
    assert trust.weight(0) == 0.0


def test_masked_and_unscored_episodes_are_left_out() -> None:
    scores, outcomes = draw(0.9, 100)
    plain, holes = CriticTrust(), CriticTrust()
    plain.learn(scores, outcomes)
    holes.learn([*scores, [None], [1.0], []], [*outcomes, 1.0, None, 1.0])
    assert holes.state_dict() == plain.state_dict()
    with pytest.raises(ConfigError, match="1 episodes with scores, 2 outcomes"):
        plain.learn([[1.0]], [1.0, 0.0])


def test_state_survives_a_save() -> None:
    trust, other = CriticTrust(), CriticTrust()
    trust.learn(*draw(0.8, 100, rounds=3))
    other.load_state_dict(trust.state_dict())
    assert other.state_dict() == trust.state_dict()
    assert [other.weight(r) for r in range(3)] == [trust.weight(r) for r in range(3)]
    for wrong in ({}, {"rounds": 3}, {"rounds": [{"freedom": "x"}]}):
        with pytest.raises(ConfigError, match="cannot read this state"):
            other.load_state_dict(wrong)


@pytest.mark.parametrize("settings", [{"memory": 1.5}, {"confidence": -1.0}, {"prior": (1.0, 3.0)}])
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="critic trust"):
        TrustConfig(**settings)  # type: ignore[arg-type]


def lived(score: float | None, success: bool | None, task: str = "t") -> Episode:
    trace = decided([[click(0), click(1)], [click(0), None]])
    credit = ((score, 0.5), (score, None)) if success is not None else None
    fault = Failure(kind="environment", message="x") if success is None else None
    return Episode(
        environment="e", task=task, seed=0, success=success, fault=fault,
        steps=(StepRecord(trace=trace, executed=trace.action, credit=credit),),
    )  # fmt: skip


async def test_settling_learns_and_mixes_with_the_outcome() -> None:
    rng = random.Random(1)
    batch = [lived(s, bool(rng.random() < 0.1 + 0.8 * s)) for s in [0.0, 1.0] * 60]
    batch += [lived(None, None), lived(None, True)]
    assert round_means(batch[1]) == [0.75, 1.0] and round_means(batch[-2]) == []
    critic = TrustedCritic()
    settled = await critic.settle(batch)
    w0, w1 = critic.trust.weight(0), critic.trust.weight(1)
    assert 0.4 < w0 < 0.9 and 0.4 < w1 < 0.9
    for before, after in zip(batch[:-2], settled, strict=False):
        assert before.success is not None
        y, (record,) = float(before.success), before.steps
        assert record.credit is not None and record.credit[0][0] is not None
        s = record.credit[0][0]
        assert after.steps[0].credit == (
            (pytest.approx(w0 * s + (1 - w0) * y), pytest.approx(w0 * 0.5 + (1 - w0) * y)),
            (pytest.approx(w1 * s + (1 - w1) * y), y),
        )
    assert settled[-2].steps[0].credit == ((None, None), (None, None))
    assert settled[-1].steps[0].credit == ((1.0, pytest.approx(w0 * 0.5 + 1 - w0)), (1.0, 1.0))
    again = TrustedCritic()
    again.trust.load_state_dict(critic.trust.state_dict())
    assert await again.mixed(batch[0]) == settled[0]


async def test_settled_credit_says_whose_it_is_and_how_much_the_critic_weighed() -> None:
    (plain,) = lived(1.0, True).steps
    record = msgspec.structs.replace(plain, credit_source="critic x", rationale=("good", ""))
    spoken = msgspec.structs.replace(lived(1.0, True), steps=(record,))
    critic = TrustedCritic()
    (settled,) = (await critic.mixed(spoken)).steps
    assert settled.credit_source == "critic x, weighed against outcome"
    assert settled.rationale == (
        f"good (weight {critic.trust.weight(0):.2f})",
        f"(weight {critic.trust.weight(1):.2f})",
    )
    (bare,) = (await critic.mixed(lived(1.0, True))).steps
    assert bare.rationale == ("the episode was solved",) * 2


async def test_an_untrusted_critic_leaves_the_outcome_alone() -> None:
    batch = [lived(s, s < 0.5) for s in [0.0, 1.0] * 20]
    for episode, before in zip(await TrustedCritic().settle(batch), batch, strict=True):
        y = float(before.success or 0)
        assert episode.steps[0].credit == ((y, y), (y, y))


async def test_abstentions_get_the_credit_that_they_get_without_a_critic() -> None:
    quiet = decided([[click(1), None]], said={"agent_1:0": Abstain().json()})
    trace = msgspec.structs.replace(
        quiet, messages=(quiet.messages[0], msgspec.structs.replace(quiet.messages[1], error=None))
    )
    step = StepRecord(trace=trace, executed=trace.action, credit=((0.0, None),))
    episode = Episode(environment="e", task="t", seed=0, success=True, steps=(step,))
    config = TeamConfig(critic_trust="learned", pairs=PairConfig(abstentions=0.5))
    graph = CollabGraph.collaborative(2, 1, model=ScriptedModel([]))
    critic = ScriptedCritic(PhoneEnvironment)
    rollout = GraphRollout((), None, [episode], RolloutSupervisor(None), 0)
    for given in (Critics(), Critics(critic)):
        collector = Collector(graph, PhoneEnvironment, lambda *_: [], config, given)
        (settled,) = await collector.settle([rollout])
        assert settled.episodes[0].steps[0].credit == ((1.0, 1.0),)


GAME = VoteGame(screens=3, batches=15, episodes=32)
SEEDS = range(20)


@cache
def outcome_alone(seed: int) -> float:
    return play(GAME, "outcome", seed).utility


@pytest.mark.parametrize(
    "errors",
    [
        {"flip": 0.3},
        {"anti": True},
        pytest.param({"flip": 0.1}, marks=pytest.mark.slow),
        pytest.param({"flip": 0.3, "fresh": True}, marks=pytest.mark.slow),
    ],
)
def test_a_bad_critic_costs_nothing_once_its_weight_is_learned(errors: dict[str, float]) -> None:
    """Errors that are the same each time are the hard case: trusted blindly, they ruin it."""
    game = dataclasses.replace(GAME, **errors)  # type: ignore[arg-type]
    without = [outcome_alone(s) for s in SEEDS]
    learned = [play(game, "learned", s).utility for s in SEEDS]
    difference = over_seeds([a - b for a, b in zip(learned, without, strict=True)])
    assert difference is not None
    assert difference.high >= 0.0, difference  # not worse by more than the interval
    assert difference.mean > -0.005, difference
    if not game.fresh:
        blind = [play(game, "critic", s).utility for s in range(5)]
        assert sum(blind) / 5 < sum(without) / 20 - 0.1


def test_a_good_critic_is_trusted_and_helps() -> None:
    game = VoteGame(screens=4, batches=8, episodes=40)
    runs = [play(game, "learned", s) for s in range(10)]
    without = [play(game, "outcome", s).utility for s in range(10)]
    gain = over_seeds([r.utility - u for r, u in zip(runs, without, strict=True)])
    assert gain is not None and gain.low > 0.0, gain
    assert max(runs[0].weights) > 0.3
