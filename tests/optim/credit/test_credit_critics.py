"""Scripted and outcome credit."""

from __future__ import annotations

import pytest
from learning_fakes import click, decided, screen

from swarm_ui.action import Action
from swarm_ui.credit import CreditAssigner
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit, ScriptedCritic
from swarm_ui.trace.records import Episode, StepRecord


class OneRightButton:
    """The state is the index of the right button."""

    def __init__(self) -> None:
        self.right = -1
        self.restored: list[object] = []
        self.graded: list[Action] = []

    def restore(self, state: object) -> Observation:
        assert isinstance(state, int)
        self.right = state
        self.restored.append(state)
        return screen()

    def grade(self, action: Action) -> float:
        self.graded.append(action)
        return float(action.index == self.right)


async def test_each_distinct_proposal_is_graded_once_and_remembered() -> None:
    world = OneRightButton()
    critic: CreditAssigner = ScriptedCritic(lambda: world)
    trace = decided([[click(0), click(1), click(0)], [click(1), click(1), click(2)]])
    table = await critic.assign(trace, 1)
    assert table.values == ((0.0, 1.0, 0.0), (1.0, 1.0, 0.0))
    assert table.source == critic.name == "scripted critic"
    assert len(world.graded) == 3
    assert await critic.assign(trace, 1) == table
    assert len(world.graded) == 3
    assert world.restored == [1]
    other = decided([[click(0), click(1), click(0)], [click(1), click(1), click(2)]], run="other")
    assert (await critic.assign(other, 0)).values == ((1.0, 0.0, 1.0), (0.0, 0.0, 0.0))


async def test_a_run_without_a_name_is_graded_afresh() -> None:
    critic = ScriptedCritic(OneRightButton)
    trace = decided([[click(0)]], run="")
    assert (await critic.assign(trace, 0)).values == ((1.0,),)
    assert (await critic.assign(trace, 1)).values == ((0.0,),)


async def test_words_without_an_action_are_wrong_but_a_failed_node_is_unscored() -> None:
    trace = decided([[click(0), None, None]], errors={"agent_2:0": "TimeoutError: 5 s"})
    table = await ScriptedCritic(OneRightButton).assign(trace, 0)
    assert table.values == ((1.0, 0.0, None),)
    assert table.rationale == ("agent_0: nearer to success; agent_1: no valid action",)
    (turned,) = (await ScriptedCritic(OneRightButton, flips=1.0).assign(trace, 0)).rationale
    assert turned == "agent_0: nearer to success, inverted; agent_1: no valid action"


async def test_flips_have_their_share_and_stay_the_same() -> None:
    critic = ScriptedCritic(OneRightButton, flips=0.25, seed=3)
    again = ScriptedCritic(OneRightButton, flips=0.25, seed=3)
    assert critic.name == "scripted critic, 25 % flipped"
    wrong = 0
    for k in range(400):
        trace = decided([[click(0)]], observation=screen(goal=f"goal {k}"))
        verdict = (await critic.assign(trace, 0)).values
        assert verdict == (await critic.assign(trace, 0)).values
        assert verdict == (await again.assign(trace, 0)).values
        wrong += verdict == ((0.0,),)
    assert 70 <= wrong <= 130  # 100 expected, standard deviation 8.7


async def test_the_same_screen_later_in_the_episode_repeats_the_error() -> None:
    from swarm_ui.observation import Past

    critic = ScriptedCritic(OneRightButton, flips=0.5)
    for k in range(20):
        first = screen(goal=f"goal {k}")
        later = Observation(
            goal=first.goal, elements=first.elements, history=(Past(action=click(2)),)
        )
        tables = [
            await critic.assign(decided([[click(0)]], observation=seen), 0)
            for seen in (first, later)
        ]
        assert tables[0] == tables[1]


async def test_without_a_snapshot_it_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="snapshot"):
        await ScriptedCritic(OneRightButton).assign(decided([[click(0)]]), None)
    with pytest.raises(ConfigError, match="flips"):
        ScriptedCritic(OneRightButton, flips=1.5)


@pytest.mark.parametrize(("success", "value"), [(True, 1.0), (False, 0.0)])
def test_outcome_credit_is_the_same_for_everyone_who_spoke(success: bool, value: float) -> None:
    trace = decided([[click(0), None, None]], errors={"agent_2:0": "TimeoutError: 5 s"})
    episode = Episode(
        environment="e", task="t", seed=0, steps=(StepRecord(trace=trace),), success=success
    )
    (record,) = OutcomeCredit().credit(episode).steps
    assert record.credit == ((value, value, None),)
    assert record.credit_source == "outcome"
    assert record.rationale == (f"the episode was {'' if success else 'not '}solved",)


def test_a_masked_episode_gets_no_outcome_credit() -> None:
    step = StepRecord(trace=decided([[click(0)]]))
    masked = Episode(
        environment="e",
        task="t",
        seed=0,
        steps=(step,),
        success=None,
        fault=Failure(kind="environment", message="x"),
    )
    assert OutcomeCredit().credit(masked).steps[0].credit is None
