"""A world of one page that can be put aside and knows its task: what many tests stand on."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Element, Observation, Past

WORDS = ("milk", "bread", "apples", "tea")
BUDGET = 6
SAVE, DELETE, PAY, FIELD = 0, 1, 2, 3


class Notebook:
    """Type the word the goal names into the field, then press “Save”. Six actions at most."""

    elements_extra: tuple[Element, ...] = ()

    def __init__(self) -> None:
        self.closed = 0
        self.seen: list[Action] = []
        """Every action that reached the world."""
        self.running = False
        self.word = self.text = ""
        self.saved = False
        self.focus: int | None = None
        self.history: tuple[Past, ...] = ()

    @property
    def name(self) -> str:
        return "notebook"

    @property
    def tasks(self) -> Sequence[str]:
        return ("write", "write-again")

    async def reset(self, *, task: str, seed: int) -> Observation:
        if task not in self.tasks:
            raise ConfigError(f"notebook: no task {task!r}")
        self.word = WORDS[(seed + len(task)) % len(WORDS)]
        self.text, self.saved, self.focus, self.history = "", False, None, ()
        self.running = True
        return self.look()

    def buttons(self) -> tuple[Element, ...]:
        labels = ("Save", "Delete note", "Pay now")
        return tuple(
            Element(
                index=i,
                role="button",
                text=label,
                focused=self.focus == i,
                bounds=(10, 60 * i, 110, 60 * i + 50),
            )
            for i, label in enumerate(labels)
        )

    def look(self) -> Observation:
        field = Element(
            index=FIELD,
            role="field",
            text="Note",
            value=self.text,
            editable=True,
            focused=self.focus == FIELD,
            bounds=(10, 180, 110, 230),
        )
        return Observation(
            goal=f"Write “{self.word}” and save it",
            app="notes",
            elements=(*self.buttons(), field, *self.elements_extra),
            history=self.history,
            actions=("click", "input_text", "keyboard_enter", "wait", "status"),
        )

    async def step(self, action: Action) -> Step:
        if not self.running:
            raise EnvironmentFault("notebook: no episode is running; call reset first")
        self.seen.append(action)
        screen = self.look()
        element = screen.element(action.index)
        if action.x is not None and action.y is not None:
            element = next((e for e in screen.elements if inside(e, action.x, action.y)), None)
        role, label = (element.role, element.label) if element else ("", "")
        self.history = (*self.history, Past(action=action, role=role, label=label))
        note, over = self.act(action, element)
        truncated = not over and len(self.history) >= BUDGET
        self.running = not (over or truncated)
        return Step(
            observation=self.look(),
            reward=1.0 if over and self.saved and self.text == self.word else 0.0,
            terminated=over,
            truncated=truncated,
            note=note,
        )

    def act(self, action: Action, element: Element | None) -> tuple[str, bool]:
        """What to say, and whether the episode is over."""
        kind = action.action_type
        if kind == "status":
            return "", True
        if kind == "wait":
            return "", False
        if kind == "keyboard_enter":
            element = self.look().element(self.focus)
            kind = "click"
        if element is None:
            return f"no element {action.index}", False
        self.focus = element.index
        if kind == "click" and element.index == SAVE:
            self.saved = True
            return "", True
        if kind == "input_text" and element.editable:
            self.text = action.text or ""
            return "", False
        return "nothing happened", False

    async def close(self) -> None:
        self.running = False
        self.closed += 1

    def snapshot(self) -> object:
        return (self.running, self.word, self.text, self.saved, self.focus, self.history)

    def restore(self, state: object) -> Observation:
        assert isinstance(state, tuple)
        self.running, self.word, self.text, self.saved, self.focus, self.history = state
        return self.look()

    def expert(self) -> Action:
        if self.text == self.word:
            return Action(action_type="click", index=SAVE, target="Save")
        return Action(action_type="input_text", index=FIELD, text=self.word, target="Note")

    def grade(self, action: Action) -> float:
        return 1.0 if action.key == self.expert().key else 0.0


def inside(element: Element, x: int, y: int) -> bool:
    left, top, right, bottom = element.bounds or (0, 0, 0, 0)
    return left <= x < right and top <= y < bottom


class Bare:
    """The same world, which can neither be put aside nor grade."""

    def __init__(self) -> None:
        self.inner = Notebook()

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def tasks(self) -> Sequence[str]:
        return self.inner.tasks

    async def reset(self, *, task: str, seed: int) -> Observation:
        return await self.inner.reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        return await self.inner.step(action)

    async def close(self) -> None:
        await self.inner.close()


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
        return await super().reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        screen = self.running()
        if not self._breaks("step"):
            return await super().step(action)
        self.present = None
        if self._tell:
            return Step(observation=screen, fault=f"{self.name}: injected fault in step")
        raise EnvironmentFault(f"{self.name}: injected fault in step")
