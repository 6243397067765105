"""A scripted player of MiniWoB++ pages: it finds elements by what they are called, and acts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from swarm_ui.action import Action, ActionType
from swarm_ui.environment import Step
from swarm_ui.environments.miniwob import MiniWobEnvironment
from swarm_ui.observation import Element, Observation

Place = Element | tuple[float, float]


class Player:
    """Plays one episode; sees what an agent sees, and nothing else."""

    def __init__(self, env: MiniWobEnvironment, screen: Observation) -> None:
        self._env = env
        self.screen = screen
        self.step: Step | None = None
        """The last one."""
        self.actions: list[Action] = []
        self.screens: list[Observation] = []
        """What was on the screen before each action."""

    @property
    def goal(self) -> str:
        return self.screen.goal

    @property
    def ended(self) -> bool:
        return self.step is not None and self.step.ended

    async def do(self, kind: ActionType, **fields: Any) -> Observation:
        """One act, which must be possible."""
        action = Action(action_type=kind, **fields)
        self.actions.append(action)
        self.screens.append(self.screen)
        self.step = await self._env.step(action)
        assert self.step.note == "", (action, self.step.note, self.screen.elements)
        self.screen = self.step.observation
        return self.screen

    async def click(self, label: str, role: str | None = None) -> Observation:
        """Click on the first element which is called so."""
        return await self.do("click", index=self.find(label, role).index)

    async def submit(self) -> None:
        await self.click("Submit")

    async def click_at(self, place: Place, kind: ActionType = "click") -> Observation:
        """Click with the mouse."""
        x, y = centre(place)
        return await self.do(kind, x=round(x), y=round(y))

    async def hover(self, place: Place) -> Observation:
        return await self.click_at(place, "long_press")

    async def fill(self, field: Element, text: str) -> Observation:
        return await self.do("input_text", index=field.index, text=text)

    async def key(self, name: str, times: int = 1) -> Observation:
        for _ in range(times):
            await self.do("keyboard_enter", keycode=f"KEYCODE_{name}")
        return self.screen

    async def drag(self, start: Place, end: Place) -> Observation:
        """From element to element, or between points of the screen."""
        fields: dict[str, int] = {}
        if isinstance(start, Element):
            fields["index"] = start.index
        else:
            fields |= {"x": round(start[0]), "y": round(start[1])}
        if isinstance(end, Element):
            fields["to_index"] = end.index
        else:
            fields |= {"to_x": round(end[0]), "to_y": round(end[1])}
        return await self.do("swipe", **fields)

    def find(self, label: str, role: str | None = None) -> Element:
        """The first element which is called so."""
        found = [e for e in self.screen.elements if e.label == label and role in (None, e.role)]
        assert found, (label, role, self.goal, self.screen.elements)
        return found[0]

    def has(self, label: str, role: str | None = None) -> bool:
        return any(e.label == label and role in (None, e.role) for e in self.screen.elements)

    def all(self, *roles: str) -> list[Element]:
        return [e for e in self.screen.elements if e.role in roles]

    def after(self, label: str, wanted: str) -> Element:
        """The first element called ``wanted`` behind the one called ``label``."""
        start = self.find(label).index
        return next(e for e in self.screen.elements[start:] if e.label == wanted)

    def shapes(self, *words: str) -> list[Element]:
        """Drawn things whose colour or form is among the words, or all."""
        found = self.all("shape")
        return [e for e in found if set(words) <= set(e.label.split())] if words else found

    def quoted(self) -> list[str]:
        """What stands in double quotes in the goal."""
        return re.findall(r'"(.*?)"', self.goal)

    def match(self, pattern: str) -> Sequence[str]:
        """The groups of a pattern in the goal."""
        found = re.search(pattern, self.goal)
        assert found is not None, (pattern, self.goal)
        return found.groups()


def centre(place: Place) -> tuple[float, float]:
    if isinstance(place, tuple):
        return place
    assert place.bounds is not None
    left, top, right, bottom = place.bounds
    return (left + right) / 2, (top + bottom) / 2


def bounds(element: Element) -> tuple[int, int, int, int]:
    assert element.bounds is not None
    return element.bounds
