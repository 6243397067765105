"""An environment in another process."""

from __future__ import annotations

import asyncio
import time

import pytest

from swarm_ui import Action, Element
from swarm_ui.engine.tasks import within
from swarm_ui.environments import Done, Episodic, ProcessEnvironment, contract_report
from swarm_ui.errors import ConfigError


class Lamp(Episodic):
    """Press the button as often as the level says."""

    tasks = ("light",)

    def __init__(self, level: int) -> None:
        if level < 1:
            raise ConfigError(f"Lamp: 'level' must be at least 1, got {level}")
        self._level = level

    def begin(self, task: str, rng: object) -> str:
        self._left = self._level
        return "light the lamp"

    def screen(self) -> list[Element]:
        print("noise on the output")
        return [Element.button("switch"), Element.line(f"{self._left} left")]

    def act(self, action: Action, element: Element) -> Done | None:
        self._left -= 1
        return None if self._left else Done(reward=1.0)


def lamp(level: int = 1) -> ProcessEnvironment:
    return ProcessEnvironment(f"{__name__}:Lamp", {"level": level}, name="lamp")


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process finds this module."""
    monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0])


async def test_it_is_the_environment_that_the_function_makes_there() -> None:
    env = lamp(level=2)
    screen = await env.reset(task="light", seed=1)
    assert (env.name, env.tasks, screen.goal) == ("lamp", ("light",), "light the lamp")
    press = Action(action_type="click", index=0)
    assert not (await env.step(press)).ended
    assert (await env.step(press)).reward == 1.0
    await env.close()
    report = await contract_report(lamp, tasks=["light"], seeds=(0,))
    assert report.ok, report


async def test_mistakes_in_its_arguments_are_the_callers() -> None:
    for _ in range(2):
        with pytest.raises(ConfigError, match="at least 1"):
            await lamp(level=0).start()


async def test_time_in_which_the_event_loop_is_blocked_does_not_count() -> None:
    async def answer() -> str:
        await asyncio.sleep(0.01)
        return "here"

    waiting = asyncio.create_task(within(0.2, answer()))
    await asyncio.sleep(0)
    time.sleep(0.5)  # as the forward pass of a model
    assert await waiting == "here"
    with pytest.raises(TimeoutError):
        await within(0.05, asyncio.sleep(5))
