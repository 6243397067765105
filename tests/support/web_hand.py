"""A hand on web pages: acts by label, and keeps the last observation."""

from __future__ import annotations

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.web import WebBrowser, WebEnvironment
from swarm_ui.observation import Observation


class Hand:
    """Does actions by label, and keeps the last observation."""

    def __init__(self, env: WebEnvironment, screen: Observation) -> None:
        self.env, self.screen = env, screen

    @property
    def labels(self) -> list[str]:
        return [element.label for element in self.screen.elements]

    def value(self, label: str) -> str | None:
        return next(e.value for e in self.screen.elements if e.label == label)

    async def do(self, label: str, kind: str = "click", text: str | None = None) -> Step:
        index = self.labels.index(label)
        return await self.act(Action(action_type=kind, index=index, text=text))  # type: ignore[arg-type]

    async def act(self, action: Action) -> Step:
        step = await self.env.step(action)
        self.screen = step.observation
        return step


async def begin(browser: WebBrowser, url: str, reward: object = None, **more: object) -> Hand:
    judge = reward or (lambda visit: True)
    env = WebEnvironment(url, "do it", reward=judge, browser=browser, **more)  # type: ignore[arg-type]
    return Hand(env, await env.reset(task="do it", seed=0))
