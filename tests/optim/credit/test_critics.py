"""Credit of an episode, what a critic may return, and the critics that need no model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from learning_fakes import ButtonWorld, click, decided, screen

from swarm_ui import (
    CollabGraph,
    ConfigError,
    Credit,
    Episode,
    Failure,
    GraphPolicy,
    LearningError,
    Message,
    NodeContext,
    NodeReply,
    Observation,
    StepRecord,
    Trace,
)
from swarm_ui.optim import Outcome, ScriptedCritic
from swarm_ui.optim.credit.critic import credit_of
from swarm_ui.optim.credit.groups import fitted
from swarm_ui.rollout import rollout


def episode(*steps: StepRecord, success: bool | None = True) -> Episode:
    fault = Failure(kind="environment", message="x") if success is None else None
    return Episode(environment="e", task="t", seed=0, steps=steps, success=success, fault=fault)


def spoken() -> Trace:
    """A right and a wrong proposal, words without an action, and a node that failed."""
    return decided([[click(0), click(1), None, None]], errors={"agent_3:0": "TimeoutError: 5 s"})


class Votes:
    """Agents that click fixed buttons."""

    def __init__(self, id: str, index: int) -> None:
        self.id, self.index = id, index

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        return NodeReply(content="so", action=click(self.index))


def played(world: Any, *clicks: int, seed: int = 3) -> Episode:
    """An episode in which the first agent decides."""
    agents = [Votes(f"agent_{k}", index) for k, index in enumerate(clicks)]
    team = CollabGraph(agents, output="agent_0")
    return asyncio.run(rollout(world, GraphPolicy(team, name="p"), task="press", seed=seed))


def right_button(seed: int = 3) -> int:
    world = ButtonWorld()
    asyncio.run(world.reset(task="press", seed=seed))
    index = world.expert().index
    assert index is not None
    return index


# -- the record -------------------------------------------------------------------------------


def test_each_proposal_is_scored_and_only_what_can_be_wrong_is_wrong() -> None:
    def score(message: Message, trace: Trace) -> float | None:
        assert message.action is not None and trace.observation.goal
        return None if message.action.index == 1 else 0.75

    one = episode(StepRecord(trace=spoken()), StepRecord(trace=decided([[click(1)] * 4])))
    credit = Credit.each(one, score, source="mine")
    assert credit.values == (((0.75, None, 0.0, None),), ((None,) * 4,))
    assert (credit.shape, credit.scored, credit.source) == ((2, 1, 4), 2, "mine")
    masked = Credit.each(episode(StepRecord(trace=spoken()), success=None), score)
    assert masked.shape == (1, 1, 4) and masked.scored == 0
    assert Credit.each(episode(), score).shape == (0, 0, 0)


class Returns:
    def __init__(self, found: Any) -> None:
        self.found = found

    async def __call__(self, episodes: Sequence[Episode]) -> Any:
        return self.found


ONE = Credit(values=(((1.0,),),))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"agent_0": 1.0}, "one Credit"),
        ([ONE, ONE], "one Credit"),
        ([Credit(values=(((1.0, 1.0),),))], "(rounds, agents)"),
        ([Credit(values=(((-0.5,),),))], "[0, 1]"),
        ([Credit(values=(((float("nan"),),),))], "got nan"),
        ([Credit(values=(((-2.0,),),), signed=True)], "[-1, 1]"),
    ],
)
async def test_a_critic_that_returns_something_else_is_named(found: Any, told: str) -> None:
    with pytest.raises(LearningError) as raised:
        await credit_of(Returns(found), [episode(StepRecord(trace=decided([[click(0)]])))])
    assert "'Returns'" in str(raised.value) and told in str(raised.value)


# -- outcome and recorded credit --------------------------------------------------------------


@pytest.mark.parametrize("success", [True, False])
async def test_the_outcome_is_the_same_for_everyone_who_spoke(success: bool) -> None:
    one = episode(StepRecord(trace=spoken()), success=success)
    (credit,) = await Outcome()([one])
    value = float(success)
    assert credit.values == (((value, value, value, None),),)
    masked = episode(StepRecord(trace=spoken()), success=None)
    assert [c.scored for c in await Outcome()([masked, one])] == [0, 3]


# -- the scripted critic ----------------------------------------------------------------------


def test_every_decision_is_graded_in_its_own_state() -> None:
    right = right_button()
    one = played(ButtonWorld(), right, (right + 1) % 4)
    assert one.success and len(one.steps) == 2
    critic = ScriptedCritic(ButtonWorld)
    (credit,) = asyncio.run(critic([one]))
    assert credit.values == (((1.0, 0.0),),) * 2
    assert credit.source == critic.name == "scripted critic"
    again = msgspec.json.decode(msgspec.json.encode(one), type=Episode)  # as from a file
    assert asyncio.run(critic([again])) == [credit]


def test_a_replay_that_shows_other_screens_is_an_error_that_says_where() -> None:
    class Other(ButtonWorld):
        def _look(self) -> Observation:
            return screen(goal=f"other {self.taken}")

    one = played(ButtonWorld(), 0)
    with pytest.raises(ConfigError, match=r"press/3.*another screen at step 0"):
        asyncio.run(ScriptedCritic(Other)([one]))


def test_an_environment_that_fails_in_the_replay_leaves_the_episode_unscored() -> None:
    one = played(ButtonWorld(), 0)
    assert len(one.steps) > 1
    (credit,) = asyncio.run(ScriptedCritic(lambda: ButtonWorld(frozenset({3})))([one]))
    assert credit.scored == 0 and "black" in credit.rationale[0][0]


# -- critics that compare episodes ------------------------------------------------------------


def test_contributions_add_up_to_the_outcome_up_to_the_penalty() -> None:
    # One feature: w minimises (2 w - 1)^2 + r w^2, so w = 2 / (4 + r).
    assert fitted([[("a",), ("a",)]], [1.0], 1.0) == {"a": pytest.approx(0.4)}
    two = fitted([[("a",), ("b",)], [("b",)]], [1.0, 0.0], 1e-9)
    assert two == {"a": pytest.approx(1.0), "b": pytest.approx(0.0, abs=1e-6)}
    assert fitted([], [], 1.0) == {}
