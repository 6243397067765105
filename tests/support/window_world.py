"""A long page, and agents that see a window of it."""

from __future__ import annotations

from swarm_ui import Action, Element, Observation, Request
from swarm_ui.action import Abstain
from swarm_ui.environment import Step
from swarm_ui.nodes.models.scripted import ScriptedModel

PASS = Abstain().json()
NAMES = tuple(f"agent_{k}" for k in range(4))


def long_screen(count: int) -> Observation:
    elements = tuple(Element(index=i, role="button", text=f"button {i}") for i in range(count))
    return Observation(goal="press the right one", elements=elements)


def tap(index: int, target: str | None = None) -> Action:
    return Action(action_type="click", index=index, target=target)


class SeesOrPasses(ScriptedModel):
    """Proposes the wanted buttons it sees, the first of them; else what it heard; else passes."""

    def __init__(self, *wanted: int) -> None:
        super().__init__(self.say)
        self.wanted = [f"button {k}" for k in wanted]

    def say(self, request: Request) -> str:
        assert request.decision is not None
        for element in request.decision.observation.elements:
            if element.text in self.wanted:
                return tap(element.index, element.text).json()
        heard = [h.action for h in request.decision.heard if h.action is not None]
        return heard[0].json() if heard else PASS


class Page:
    """A world of one long page; pressing button 13 is what it is about."""

    name = "page"
    tasks = ("press",)

    def __init__(self, budget: int) -> None:
        self._left = budget
        self.done: list[Action] = []

    async def reset(self, *, task: str, seed: int) -> Observation:
        return long_screen(16)

    async def step(self, action: Action) -> Step:
        self.done.append(action)
        self._left -= 1
        hit = action.index == 13
        return Step(
            observation=long_screen(16), reward=float(hit), terminated=hit, truncated=self._left < 1
        )

    async def close(self) -> None: ...
