"""A world of one page that can be put aside and knows its task: what many tests stand on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.base import Acted, Done, Stateful
from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Element, Observation

WORDS = ("milk", "bread", "apples", "tea")
SAVE, DELETE, PAY, FIELD = 0, 1, 2, 3


class Note(NamedTuple):
    word: str
    """What is to be written."""
    text: str = ""
    focus: int | None = None


class Notebook(Stateful):
    """Type the word the goal names into the field, then press “Save”. Six actions at most."""

    tasks: Sequence[str] = ("write", "write-again")
    budget = 6
    actions = ("click", "input_text", "keyboard_enter", "wait", "status")
    elements_extra: tuple[Element, ...] = ()
    state: Note

    def __init__(self) -> None:
        self.closed = 0
        self.seen: list[Action] = []
        """Every action that reached the world."""

    @property
    def name(self) -> str:
        return "notebook"

    def begin(self, task: str, rng: random.Random) -> str:
        self.state = Note(WORDS[(self.seed + len(task)) % len(WORDS)])
        return f"Write “{self.state.word}” and save it"

    def screen(self) -> Observation:
        labels, focus = ("Save", "Delete note", "Pay now", "Note"), self.state.focus
        elements = [
            Element(
                index=i, role="button" if i < FIELD else "field", text=label, focused=focus == i,
                value=self.state.text if i == FIELD else None, editable=i == FIELD,
                bounds=(10, 60 * i, 110, 60 * i + 50),
            )
            for i, label in enumerate(labels)
        ]  # fmt: skip
        return Observation(goal="", app="notes", elements=(*elements, *self.elements_extra))

    async def step(self, action: Action) -> Step:
        self.seen += [action] if self.progress else []
        return await super().step(action)

    def act(self, action: Action, element: Element | None) -> Acted:
        kind = action.action_type
        if kind == "status":
            return Done(reward=0.0)
        if kind == "wait":
            return None
        index = self.state.focus if kind == "keyboard_enter" else element.index if element else None
        self.state = self.state._replace(focus=index)
        if kind != "input_text" and index == SAVE:
            return Done(reward=float(self.state.text == self.state.word))
        if kind == "input_text":
            self.state = self.state._replace(text=action.text or "")
            return None
        return "nothing happened"

    async def close(self) -> None:
        await super().close()
        self.closed += 1

    def expert(self) -> Action:
        if self.state.text == self.state.word:
            return Action(action_type="click", index=SAVE, target="Save")
        return Action(action_type="input_text", index=FIELD, text=self.state.word, target="Note")

    def grade(self, action: Action) -> float:
        return 1.0 if action.key == self.expert().key else 0.0


class Bare:
    """The same world, which can neither be put aside nor grade."""

    def __init__(self) -> None:
        self.inner = Notebook()
        self.name, self.tasks = self.inner.name, self.inner.tasks
        self.reset, self.step, self.close = self.inner.reset, self.inner.step, self.inner.close


class Faulty(Wrapper):
    """Raises a fault, or tells it in the step, at given calls counted from 0."""

    def __init__(
        self, env: Environment, *, reset: int = -1, step: int = -1, tell: bool = False
    ) -> None:
        super().__init__(env)
        self._at, self._tell = {"reset": reset, "step": step}, tell

    def _breaks(self, place: str) -> bool:
        self._at[place] -= 1
        return self._at[place] == -1

    async def reset(self, *, task: str, seed: int) -> Observation:
        if self._breaks("reset"):
            raise EnvironmentFault(f"{self.name}: injected fault in reset")
        self._screen = await super().reset(task=task, seed=seed)
        return self._screen

    async def step(self, action: Action) -> Step:
        if not self._breaks("step"):
            step = await super().step(action)
            self._screen = step.observation
            return step
        if self._tell:
            return Step(observation=self._screen, fault=f"{self.name}: injected fault in step")
        raise EnvironmentFault(f"{self.name}: injected fault in step")
