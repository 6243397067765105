"""The phone's tasks can be done, cannot be had for nothing, and the solver knows the way back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.solver import UNREACHABLE
from swarm_ui.environments.phone.templates import CORE, TEMPLATES
from swarm_ui.observation import Observation

SEEDS = (*range(20), *range(10_000_000, 10_000_005), *range(20_000_000, 20_000_005))
FEW = (0, 1, 2, 10_000_000, 20_000_000)
MANY = (*range(25), *range(10_000_000, 10_000_010), *range(20_000_000, 20_000_015))
"""50 seeds, of all three splits."""
COMPLETE = Action(action_type="status", goal_status="complete")
INFEASIBLE = Action(action_type="status", goal_status="infeasible")


def solve(phone: PhoneEnvironment) -> tuple[Step, int]:
    """Let the expert finish; returns the last step and how many it took."""
    for done in range(1, UNREACHABLE):
        step = at_once(phone.step(phone.expert()))
        if step.ended:
            return step, done
    raise AssertionError("the expert does not finish")


def steps_taken(task: str, seeds: tuple[int, ...]) -> list[int]:
    """Steps before the declaration, in every episode; all succeed."""
    phone = PhoneEnvironment()
    taken = []
    for seed in seeds:
        at_once(phone.reset(task=task, seed=seed))
        expected = phone.distance()
        last, done = solve(phone)
        assert last.reward == 1.0, (seed, last.observation.goal)
        assert done == expected
        taken.append(done - 1)
    return taken


@pytest.mark.parametrize("task", CORE)
def test_solver_solves_every_core_template_within_the_declared_steps(task: str) -> None:
    taken = steps_taken(task, SEEDS)
    assert max(taken) == CORE[task].steps
    assert CORE[task].budget >= 2 * max(taken) + 3


@pytest.mark.soak
@pytest.mark.parametrize("task", TEMPLATES)
def test_solver_solves_every_template_for_50_seeds(task: str) -> None:
    taken = steps_taken(task, MANY)
    assert len(taken) == 50
    assert max(taken) == TEMPLATES[task].steps


@pytest.mark.parametrize("task", TEMPLATES)
def test_nothing_is_won_by_declaring_at_once(task: str) -> None:
    phone = PhoneEnvironment()
    for seed in SEEDS if task in CORE else FEW:
        at_once(phone.reset(task=task, seed=seed))
        infeasible = phone.assign(task, seed).goal.infeasible
        assert at_once(phone.step(COMPLETE)).reward == 0.0
        at_once(phone.reset(task=task, seed=seed))
        assert at_once(phone.step(INFEASIBLE)).reward == float(infeasible)


def random_action(rng: random.Random, screen: Observation) -> Action:
    chance = rng.random()
    index = rng.randrange(len(screen.elements))
    if chance < 0.6:
        return Action(action_type="click", index=index)
    if chance < 0.8:
        fields = [element.index for element in screen.elements if element.editable]
        words = ["garden tea", "", screen.goal.split()[-1]]
        at = rng.choice(fields) if fields else index
        return Action(action_type="input_text", index=at, text=rng.choice(words))
    if chance < 0.85:
        return Action(action_type="navigate_back")
    if chance < 0.9:
        return Action(action_type="navigate_home")
    if chance < 0.95:
        return Action(action_type="scroll", direction=rng.choice(("up", "down")))
    return Action(action_type="answer", text="tea")


def test_solver_recovers_from_wherever_random_actions_lead() -> None:
    rng = random.Random(5)
    phone = PhoneEnvironment()
    names = list(CORE)
    wandered = 0
    for episode in range(4 * len(names)):
        task = names[episode % len(names)]
        screen = at_once(phone.reset(task=task, seed=rng.randrange(10**7)))
        budget = TEMPLATES[task].budget
        for _ in range(rng.randrange(budget)):
            before = phone.distance()
            action = random_action(rng, screen)
            good = phone.grade(action)
            step = at_once(phone.step(action))
            if step.ended:
                break
            screen = step.observation
            assert (phone.distance() < before) == (good == 1.0), (task, action)
            assert phone.distance() < UNREACHABLE, (task, screen.history)
            assert phone.grade(phone.expert()) == 1.0
            wandered += 1
    assert wandered > 500


@given(
    task=st.sampled_from(sorted(TEMPLATES)),
    seed=st.integers(0, 29_999_999),
    moves=st.lists(
        st.tuples(
            st.sampled_from(
                ["click", "long_press", "double_tap", "input_text", "select", "scroll", "swipe",
                 "navigate_home", "navigate_back", "keyboard_enter", "wait", "answer", "open_app"]
            ),
            st.integers(0, 15),
            st.text(max_size=8),
            st.booleans(),
        ),
        max_size=25,
    ),
)  # fmt: skip
def test_no_sequence_of_actions_breaks_the_phone(
    task: str, seed: int, moves: list[tuple[str, int, str, bool]]
) -> None:
    phone = PhoneEnvironment()
    at_once(phone.reset(task=task, seed=seed))
    for kind, number, text, flag in moves:
        step = at_once(phone.step(any_action(kind, number, text, flag)))
        assert step.fault is None
        assert len({e.index for e in step.observation.elements}) == len(step.observation.elements)
        assert step.reward == 0.0
        if step.ended:
            return
        assert phone.distance() < UNREACHABLE


def any_action(kind: str, number: int, text: str, flag: bool) -> Action:
    fields: dict[str, object] = {"action_type": kind}
    if kind in ("click", "long_press", "double_tap", "input_text", "select"):
        fields |= {"x": number * 36, "y": number * 80} if flag else {"index": number}
    if kind in ("input_text", "select", "answer"):
        fields["text"] = text
    if kind in ("scroll", "swipe"):
        fields["direction"] = "down" if flag else "left"
    if kind == "open_app":
        fields["app_name"] = text or "notes"
    return Action(**fields)  # type: ignore[arg-type]
