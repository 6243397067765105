"""Between a decision and its execution: negatives and guidance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from learning_fakes import ButtonWorld, click, decided

from swarm_ui.action import Action
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.optim import Guidance, ScriptedCritic
from swarm_ui.optim.adversary import ScriptedTeacher


class Opposing:
    """Proposes what it was given, one after the other."""

    name = "opposing"

    def __init__(self, *actions: Action) -> None:
        self.actions = list(actions)
        self.asked: list[Action] = []

    async def oppose(self, decision: Decision, good: Action, *, seed: int) -> Action | None:
        self.asked.append(good)
        return self.actions.pop(0) if self.actions else None


async def world() -> tuple[ButtonWorld, int, list[int]]:
    """A world, the index of its right button, and the others."""
    made = ButtonWorld()
    await made.reset(task="press", seed=3)
    right = made.expert().index
    assert right is not None
    return made, right, [k for k in range(4) if k != right]


class Judged(NamedTuple):
    guidance: Any
    negatives: list[Any]
    shown: list[Any]


async def judged(
    rows: list[list[Action | None]], environment: ButtonWorld, **settings: Any
) -> Judged:
    look = environment.restore(environment.snapshot())
    trace = decided(rows, observation=look, run="press/3/0")
    settings.setdefault("judge", ScriptedCritic(ButtonWorld))
    found = await Guidance(**settings)(0, trace, environment)
    negatives, shown = (None if found is None else found.note) or ([], [])
    return Judged(found, negatives, shown)


async def test_guidance_replaces_only_a_wrong_vote() -> None:
    environment, right, wrong = await world()
    bad, good = click(wrong[0]), click(right)
    for rows, expected in (
        ([[bad, good]], good),  # the trace's decision is the first agent's
        ([[good, bad]], None),
        ([[bad, bad]], None),
        ([[None, good]], good),
    ):
        guidance = (await judged(rows, environment, guide=1.0)).guidance
        assert guidance.execute == expected
        guidance = (await judged(rows, environment, guide=0.0)).guidance
        assert guidance.execute is None


async def test_a_negative_that_is_right_by_accident_is_not_kept() -> None:
    environment, right, wrong = await world()
    adversary = Opposing(click(right), click(wrong[1]))
    found = await judged([[click(right)]], environment, adversary=adversary)
    (negative,) = found.negatives
    assert (negative.action.index, negative.credit) == (wrong[1], 0.0)
    assert adversary.asked == [click(right)] * 2

    found = await judged([[click(right)]], environment, adversary=Opposing())
    assert found.negatives == []


async def test_without_a_critic_negatives_are_taken_unseen_and_nothing_is_guided() -> None:
    environment, right, wrong = await world()
    found = await judged(
        [[click(wrong[0])]], environment, judge=None, adversary=Opposing(click(right)), guide=1.0
    )
    assert found.guidance.execute is None and found.guidance.credit is None
    assert [n.action.index for n in found.negatives] == [right]


async def test_the_teacher_shows_a_right_action_only_where_no_agent_has_one() -> None:
    environment, right, wrong = await world()
    bad, good = click(wrong[0]), click(right)
    scripted = ScriptedTeacher(ButtonWorld)
    for rows, shown in (([[bad, bad]], [right]), ([[bad, good]], []), ([[None, bad]], [right])):
        found = await judged(rows, environment, teacher=scripted)
        assert [(s.action.index, s.credit) for s in found.shown] == [(k, 1.0) for k in shown]
        assert found.negatives == [] and found.guidance.execute is None
    guided = await judged([[bad]], environment, teacher=scripted, guide=1.0)
    assert guided.guidance.execute.key == good.key


class Lenient:
    """Finds everything right."""

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        return [1.0] * len(actions)


async def test_negatives_are_graded_only_if_wanted() -> None:
    environment, right, wrong = await world()
    for graded, kept in ((True, []), (False, [wrong[1]])):
        adversary = Opposing(click(wrong[1]))
        found = await judged(
            [[click(right)]], environment, judge=Lenient(), adversary=adversary,
            grade_negatives=graded,
        )  # fmt: skip
        assert [n.action.index for n in found.negatives] == kept
        assert adversary.asked[0] == click(right)
