"""The phone's tasks can be done, cannot be had for nothing, and no user breaks the phone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.action import Action
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.solver import UNREACHABLE
from swarm_ui.environments.phone.templates import CORE, TEMPLATES

SEEDS = (*range(20), *range(10_000_000, 10_000_005), *range(20_000_000, 20_000_005))
FEW = (0, 1, 2, 10_000_000, 20_000_000)
COMPLETE = Action(action_type="status", goal_status="complete")
INFEASIBLE = Action(action_type="status", goal_status="infeasible")


@pytest.mark.parametrize("task", CORE)
def test_solver_solves_every_core_template_within_the_declared_steps(task: str) -> None:
    phone, taken = PhoneEnvironment(), []
    for seed in SEEDS:
        at_once(phone.reset(task=task, seed=seed))
        taken.append(phone.distance() - 1)
        for _ in range(taken[-1] + 1):
            step = at_once(phone.step(phone.expert()))
        assert step.terminated and step.reward == 1.0, (seed, step.observation.goal)
    assert max(taken) == CORE[task].steps


@pytest.mark.parametrize("task", TEMPLATES)
def test_nothing_is_won_by_declaring_at_once(task: str) -> None:
    phone = PhoneEnvironment()
    for seed in SEEDS if task in CORE else FEW:
        at_once(phone.reset(task=task, seed=seed))
        infeasible = phone.assign(task, seed).goal.infeasible
        assert at_once(phone.step(COMPLETE)).reward == 0.0
        at_once(phone.reset(task=task, seed=seed))
        assert at_once(phone.step(INFEASIBLE)).reward == float(infeasible)


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
