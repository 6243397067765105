"""The phone with long screens, built so that a window of one does not tell enough."""

from __future__ import annotations

import random
from zlib import crc32

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.phone.state import Device, Widget
from swarm_ui.environments.phone.view import ROWS, View, element_of, title, widgets
from swarm_ui.observation import Observation, Role

LONG = (12, 20)
"""Least and most elements of a long screen, unless the app shows more."""
_WORDS = """
terms privacy news cart rewards feedback subscribe advert offers careers press partners legal
cookies licence community forum tips tutorial upgrade premium invite rating survey banner trending
nearby stories highlights sponsored support language region accessibility imprint donate affiliates
coupons events gifts
"""
FILLERS = tuple(_WORDS.split())
"""Labels of elements that open nothing; those that the app uses are left out."""
_LEAST_FILLERS = 2
_ROLES: tuple[Role, ...] = ("button", "item", "link")


class LongPhone(PhoneEnvironment):
    """The same apps and tasks on screens of 12 to 20 elements in page order, most of them without
    effect, so that an agent that sees only a window of the screen lacks information."""

    def __init__(
        self, *, memory: int | None = None, patience: int = 1, screenshots: bool = False
    ) -> None:
        """
        Args:
            memory: number of last actions that an observation lists, without waits; ``None``: all
                actions.
            patience: factor on the budget of the template.
            screenshots: add a picture, of the top of the screen, to every observation.
        """
        super().__init__(screenshots=screenshots)
        self._memory, self._patience = memory, patience

    @property
    def name(self) -> str:
        return "phone (simulated, long screens)"

    def begin(self, task: str, rng: random.Random) -> str:
        goal = super().begin(task, rng)
        self.budget *= self._patience
        return goal

    async def reset(self, *, task: str, seed: int) -> Observation:
        return self._remembered(await super().reset(task=task, seed=seed))

    async def step(self, action: Action) -> Step:
        step = await super().step(action)
        return replace(step, observation=self._remembered(step.observation))

    def restore(self, state: object) -> Observation:
        return self._remembered(super().restore(state))

    def _view(self, device: Device, salt: int) -> View:
        return long_view(device, salt)

    def _remembered(self, screen: Observation) -> Observation:
        """The screen with the past actions that it lists."""
        if self._memory is None:
            return screen
        acts = [past for past in screen.history if past.action.action_type != "wait"]
        return replace(screen, history=tuple(acts[-self._memory :]) if self._memory else ())


def long_view(device: Device, salt: int) -> View:
    """The screen in page order, made long with elements that have no effect.

    The number, choice and position of these elements depend only on the episode, the screen and
    the number of its widgets, so elements do not move while a form is filled in.
    """
    shown = widgets(device)
    if device.toast:
        shown.append(Widget("label", device.toast))
    screen = device.screen
    rng = random.Random(crc32(repr(screen).encode() if screen else b"home", salt))
    count = max(rng.randint(*LONG), len(shown) + _LEAST_FILLERS)
    texts = rng.sample(FILLERS, len(FILLERS))
    roles = rng.choices(_ROLES, k=len(FILLERS))
    places = set(rng.sample(range(count), count)[: len(shown)])
    taken = {widget.text for widget in shown}
    fillers = [Widget(r, t) for r, t in zip(roles, texts, strict=True) if t not in taken]
    every = [*shown, *fillers[: count - len(shown)]]
    own, others = iter(range(len(shown))), iter(range(len(shown), count))
    order = tuple([next(own if place in places else others) for place in range(count)])
    elements = tuple([element_of(index, every[at], ROWS[index]) for index, at in enumerate(order)])
    return View(title(device), every, order, elements)
