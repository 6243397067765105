"""One contract over all environments, and a checker that notices when it is broken."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from miniwob_browser import needs_browser

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.check import check_environment
from swarm_ui.environments.miniwob import REFERENCE_TASKS, MiniWobBrowser
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.observation import Observation

Make = Callable[[], Environment]

ENVIRONMENTS = [
    pytest.param(PhoneEnvironment, None, (0, 20_000_000), id="phone"),
    pytest.param(
        lambda: PhoneEnvironment(screenshots=True), ("notes-create",), (3,), id="phone-screenshots"
    ),
]
"""(make, tasks or None for all, seeds) of every environment the contract is checked on."""


@pytest.mark.parametrize(("make", "tasks", "seeds"), ENVIRONMENTS)
async def test_environment_keeps_the_contract(
    make: Make, tasks: tuple[str, ...] | None, seeds: tuple[int, ...]
) -> None:
    await check_environment(make, tasks=tasks, seeds=seeds)


@pytest.mark.browser
@needs_browser()
async def test_miniwob_keeps_the_contract() -> None:
    async with MiniWobBrowser(pages=2) as browser:
        made = iter(browser.environments)
        await check_environment(lambda: next(made), tasks=REFERENCE_TASKS[::4], seeds=(3,))


class Restless(PhoneEnvironment):
    """Resets to something else every time."""

    resets = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.resets += 1
        return await super().reset(task=task, seed=seed + self.resets)


class Gapped(PhoneEnvironment):
    """Numbers elements from 1."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        screen = await super().reset(task=task, seed=seed)
        moved = [msgspec.structs.replace(e, index=e.index + 1) for e in screen.elements]
        return msgspec.structs.replace(screen, elements=tuple(moved))


class Strict(PhoneEnvironment):
    """Ends the episode at the first action that makes no sense."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return msgspec.structs.replace(step, terminated=bool(step.note))


class Generous(PhoneEnvironment):
    """Rewards every end."""

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return msgspec.structs.replace(step, reward=1.0 if step.ended else 0.0)


class Endless(PhoneEnvironment):
    """Goes on for ever."""

    async def step(self, action: Action) -> Step:
        self._steps = 0
        return await super().step(action)


class Forgetful(PhoneEnvironment):
    """Leads back to the beginning, whatever was put aside."""

    def restore(self, state: object) -> Observation:
        super().restore(state)
        return self.begin("open-app", 5)


class Blind(PhoneEnvironment):
    """Grades everything right."""

    def grade(self, action: Action) -> float:
        return 1.0


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (Restless, "different screens"),
        (Gapped, "has index 1"),
        (Strict, "ends the episode"),
        (Generous, "reward 1.0 for doing nothing"),
        (Endless, "not truncated"),
        (Forgetful, "restore does not give"),
        (Blind, "declaring success at once is graded right"),
    ],
)
async def test_checker_notices_a_broken_contract(broken: Make, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        await check_environment(broken, tasks=("notes-create",), seeds=(0,))
