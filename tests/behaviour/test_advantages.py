"""Published advantages reach the policy gradient as their papers define them: numbers by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import msgspec
import pytest
from learning_fakes import TinyAgent, TinyModel, click, decided, screen

from swarm_ui import (
    Action,
    CollabGraph,
    ConfigError,
    Episode,
    Failure,
    Observation,
    Step,
    StepRecord,
    credited,
    read_jsonl,
    write_jsonl,
)
from swarm_ui.optim import (
    MALT,
    DrMAS,
    GiGPO,
    ProgressAttribution,
    TeamConfig,
    TeamTrainer,
    UpdateConfig,
    scored_replies,
)

LABELS = ("a", "b", "c", "d", "e")


def step(*row: Action | None, goal: str = "start", executed: Action | None = None) -> StepRecord:
    trace = decided([row], observation=screen(LABELS, goal=goal))
    return StepRecord(trace=trace, executed=executed or row[0])


def episode(success: bool | None, *steps: StepRecord, seed: int = 0) -> Episode:
    fault = Failure(kind="environment", message="x") if success is None else None
    return Episode(environment="e", task="t", seed=seed, steps=steps, success=success, fault=fault)


def with_credit(critic: Any, episodes: Sequence[Episode]) -> list[Episode]:
    found = asyncio.run(critic(episodes))
    return [credited(e, credit) for e, credit in zip(episodes, found, strict=True)]


def learned(critic: Any, *episodes: Episode) -> list[tuple[str, float]]:
    """Agent and advantage of each reply that the policy gradient learns from."""
    return [(r.node, r.advantage) for r in scored_replies(with_credit(critic, episodes))]


def near(*expected: tuple[str, float]) -> list[Any]:
    return [(agent, pytest.approx(value, abs=1e-4)) for agent, value in expected]


SOLVED = episode(True, step(click(0)), step(click(1), goal="two"), seed=1)
FAILED = episode(False, step(click(1)), seed=2)


def test_gigpo_is_the_sum_of_the_episode_and_the_step_advantage() -> None:
    """Equation 3 plus the weighted equation 7 of the paper (arXiv 2505.10978), F_norm = std.

    The outcomes 1 and 0 of the two episodes are +1 and -1. On the first screen the returns are the
    discounted outcomes, 0.5 and 0, which are +1 and -1. The second screen occurs once: 0.
    """
    found = learned(GiGPO(discount=0.5), SOLVED, FAILED)
    assert found == near(("agent_0", 2.0), ("agent_0", 1.0), ("agent_0", -2.0))
    assert learned(GiGPO(discount=0.5, weight=0.5), SOLVED, FAILED) == near(
        ("agent_0", 1.5), ("agent_0", 1.0), ("agent_0", -1.5)
    )


def test_gigpo_is_not_bounded_by_one_where_success_is_rare() -> None:
    """One of 17 attempts succeeds: mean 1/17, deviation 4/17, so +4 and -1/4, once for the episode
    and once for the step."""
    attempts = [episode(k == 0, step(click(k % 2)), seed=k) for k in range(17)]
    found = learned(GiGPO(), *attempts)
    assert found == near(("agent_0", 8.0), *[("agent_0", -0.5)] * 16)


def test_dr_mas_uses_mean_and_deviation_of_each_agents_own_messages() -> None:
    """Equation 5 of the paper (arXiv 2602.08847): each step of an agent counts its outcome once.

    agent_0 speaks in 1 solved and 3 failed steps: mean 1/4, variance 3/16. agent_1 speaks in
    1 solved and 1 failed step: mean 1/2, deviation 1/2.
    """
    silent = {"agent_1:0": "rate limit"}
    rest = [
        msgspec.structs.replace(
            step(click(1), goal=goal),
            trace=decided([[click(1), None]], observation=screen(LABELS, goal=goal), errors=silent),
        )
        for goal in ("two", "three")
    ]
    solved = episode(True, step(click(0), click(1)), seed=1)
    failed = episode(False, step(click(1), click(0)), *rest, seed=2)
    high = 0.75 / (3 / 16) ** 0.5
    assert learned(DrMAS(), solved, failed) == near(
        ("agent_0", high),
        ("agent_1", 1.0),
        ("agent_0", -high / 3),
        ("agent_1", -1.0),
        ("agent_0", -high / 3),
        ("agent_0", -high / 3),
    )


def test_contributions_of_spa_rl_are_in_standard_deviations() -> None:
    """SPA-RL (arXiv 2505.20732) gives rewards; the baseline here is the mean of the batch."""
    batch = [
        episode(k % 3 == 0, step(click(k % 3), goal=f"goal {k}"), seed=k) for k in range(9)
    ]  # fmt: skip
    found = [value for _, value in learned(ProgressAttribution(), *batch)]
    assert len(found) == 9
    assert (fmean(found), pstdev(found)) == (pytest.approx(0.0), pytest.approx(1.0))
    assert max(found) > 1.0


def test_a_tree_value_of_malt_is_no_advantage_and_is_compared_with_its_group() -> None:
    """MALT (arXiv 2412.01928) trains on preferences, from values. On the screen the values are
    1, 1/2 and 1/2: mean 2/3, deviation sqrt(1/18)."""
    attempts = [
        episode(True, step(click(0)), seed=1),
        episode(True, step(click(1)), seed=2),
        episode(False, step(click(1)), seed=3),
    ]
    low = -(18**0.5) / 6
    assert learned(MALT(), *attempts) == near(
        ("agent_0", -2 * low), ("agent_0", low), ("agent_0", low)
    )


@pytest.mark.parametrize("kind", [GiGPO, DrMAS, ProgressAttribution])
def test_what_is_unscored_or_masked_is_not_learned(kind: Any) -> None:
    masked = episode(None, step(click(0)), seed=3)
    other = episode(False, step(click(1), None), seed=2)
    found = with_credit(kind(), [SOLVED, other, masked])
    assert found[2].steps[0].credit == ((None,),)
    trained = scored_replies(found)
    assert trained == scored_replies(found[:2])
    assert [r.node for r in trained] == ["agent_0"] * 3  # nobody compares with agent_1's words
    (other_step,) = found[1].steps
    assert other_step.credit and (other_step.credit[0][1] is None) == (kind is not DrMAS)


def test_a_file_keeps_the_advantages_and_an_older_one_is_read(tmp_path: Path) -> None:
    found = with_credit(GiGPO(), [SOLVED, FAILED])
    write_jsonl(tmp_path / "new.jsonl", found)
    back = [each for each in read_jsonl(tmp_path / "new.jsonl") if isinstance(each, Episode)]
    assert back == found and scored_replies(back) == scored_replies(found)
    plain = [
        msgspec.structs.replace(
            each, steps=tuple(msgspec.structs.replace(s, credit=((c,),)) for s in each.steps)
        )
        for each, c in ((SOLVED, 1.0), (FAILED, 0.0))
    ]
    write_jsonl(tmp_path / "old.jsonl", plain)
    assert "advantages" not in (tmp_path / "old.jsonl").read_text()
    read = [each for each in read_jsonl(tmp_path / "old.jsonl") if isinstance(each, Episode)]
    assert [r.advantage for r in scored_replies(read)] == pytest.approx([1.0, -1.0], abs=1e-4)


class Fated:
    """Even seeds succeed after two steps, odd ones fail after one, whatever is done."""

    name = "fated"
    tasks = ("go",)

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.good, self.taken = seed % 2 == 0, 0
        return self.look()

    def look(self) -> Observation:
        return screen(LABELS, goal=f"step {self.taken}")

    async def step(self, action: Action) -> Step:
        self.taken += 1
        over = not self.good or self.taken == 2
        reward = float(self.good and over)
        return Step(observation=self.look(), reward=reward, terminated=over)

    async def close(self) -> None: ...


def trained(critic: Any, on_episodes: Any = lambda *_: None) -> float | None:
    """The loss of one step of the policy gradient on the four replies of three episodes."""
    model = TinyModel()
    team = CollabGraph.collaborative(
        1, 1, model=TinyAgent(model), edges=[], adapters=["agent_0"], temperature=1.0
    )
    config = TeamConfig(
        iterations=1, shared_iterations=0, episodes=3, edges="fixed", rank=4,
        update=UpdateConfig(method="grpo", steps=1, batch_size=4),
    )  # fmt: skip
    jobs = [("go", 0), ("go", 1), ("go", 3)]
    trainer = TeamTrainer(team, Fated, lambda *_, **__: jobs, config=config, critic=critic)
    trainer.on_episodes = on_episodes
    (metrics,) = asyncio.run(trainer.run()).history
    return float(metrics["loss/agent_0"])


def test_the_loss_of_a_training_is_computed_from_the_published_advantages() -> None:
    """At the first step all ratios are 1 and the divergence is 0, so the loss is the negative mean
    of the advantages. Outcomes and first returns are +r, -r/2 and -r/2, so these are 2r, r, -r and
    -r."""
    assert trained(GiGPO()) == pytest.approx(-(2**0.5) / 4, abs=1e-4)


# -- values of messages -----------------------------------------------------------------------


def row(*expected: float | None) -> object:
    return pytest.approx(expected, abs=1e-4)


async def values(critic: Any, *episodes: Episode) -> list[list[object]]:
    """``[episodes][steps]``, the row of each decision."""
    found = await critic(episodes)
    assert all(credit.source == critic.name for credit in found)
    return [[matrix[0] for matrix in credit.values] for credit in found]


@pytest.mark.parametrize("kind", [DrMAS, GiGPO, MALT, ProgressAttribution])
async def test_every_critic_keeps_the_contract(kind: type[Any]) -> None:
    """Shapes, range, masked episodes, and no dependence on the order of the episodes."""
    batch = [
        episode(True, step(click(0), click(1)), step(click(1), None, goal="two"), seed=1),
        episode(False, step(click(1), click(0)), seed=2),
        episode(None, step(click(0), click(1)), seed=3),
    ]
    critic = kind()
    found = await critic(batch)
    assert [c.shape for c in found] == [(2, 1, 2), (1, 1, 2), (1, 1, 2)]
    assert [c.signed for c in found] == [True, True, False] and found[2].scored == 0
    turned = await critic(batch[::-1])
    for ours, theirs in zip(found, turned[::-1], strict=True):
        for one, other in zip(ours.values, theirs.values, strict=True):
            assert other[0] == pytest.approx(one[0])
    assert await critic([]) == []


async def test_state_wise_advantages_compare_equal_screens_and_outcomes() -> None:
    solved = episode(True, step(click(0), click(1)), step(click(1), click(2), goal="two"), seed=1)
    failed = episode(False, step(click(1), click(2)), seed=2)
    found = await values(GiGPO(discount=0.5), solved, failed)
    # Outcome: +1 and -1. On the first screen the returns 0.5 and 0 are +1 and -1. The second
    # screen occurs once: 0.
    assert found[0][0] == row(2 / 3, -1 / 2)  # agent_1 proposed what the other attempt did
    assert found[0][1] == row(1 / 2, None)  # nobody tried its action there
    assert found[1][0] == row(-2 / 3, None)
    alone = await values(GiGPO(weight=0.0), solved, failed)
    assert alone[0][0] == row(1 / 2, 0.0)
    for wrong in ({"discount": 0.0}, {"discount": 1.1}, {"weight": -1.0}):
        with pytest.raises(ConfigError, match="GiGPO"):
            GiGPO(**wrong)


async def test_a_tree_node_has_the_success_rate_of_the_attempts_through_it() -> None:
    attempts = [
        episode(True, step(click(0), click(3)), step(click(1), click(4), goal="two"), seed=1),
        episode(False, step(click(0), click(4)), step(click(2), click(1), goal="two"), seed=2),
        episode(True, step(click(3), click(0)), seed=3),
    ]
    found = await values(MALT(), *attempts)
    assert found[0] == [row(0.0, 1.0), row(1.0, None)]
    assert found[1] == [row(0.0, None), row(-1.0, 1.0)]
    assert found[2] == [row(1.0, 0.0)]


async def test_starts_that_differ_are_not_compared() -> None:
    one = episode(True, step(click(0), goal="one"), seed=1)
    other = episode(False, step(click(1), goal="other"), seed=2)
    for kind in (DrMAS, GiGPO):
        assert await values(kind(), one, other) == [[row(0.0)], [row(0.0)]]
    assert await values(MALT(), one, other) == [[row(1.0)], [row(-1.0)]]
