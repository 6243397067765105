"""The stream of stage 1: what share of each level, and which families."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swarm_ui.optim.stage1.synthesis import clicking, filling
from swarm_ui.optim.stage1.synthesis.demonstrations import overhear
from swarm_ui.optim.stage1.synthesis.devices import device_lesson
from swarm_ui.optim.stage1.synthesis.questions import Quiz, quiz
from swarm_ui.optim.stage1.synthesis.random_words import Bag
from swarm_ui.optim.stage1.synthesis.scene import Lesson, Scene, stage

Family = Callable[[Bag], Scene]

PAGE_FAMILIES: dict[Family, float] = {
    clicking.labelled: 2.5,
    clicking.of_kind: 0.8,
    clicking.nth: 1.5,
    clicking.sequence: 2.0,
    clicking.selection: 3.0,
    clicking.similar: 0.5,
    clicking.path: 1.0,
    clicking.grouped: 2.0,
    clicking.reveal: 2.0,
    clicking.expand_and_submit: 0.4,
    filling.one_field: 1.5,
    filling.several_fields: 4.0,
    filling.same_text: 0.7,
    filling.look_up: 1.5,
    filling.look_up_each: 1.0,
    filling.look_up_click: 1.0,
    filling.search_then_open: 0.7,
}
"""Families of page instructions and their weights; a documented default of ours."""

COLLEAGUES = ("agent_0", "agent_1", "agent_2", "agent_3")


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of the stream; they need not sum to one."""

    questions: float = 0.08
    pages: float = 0.52
    devices: float = 0.15
    demonstrations: float = 0.25
    overheard_lessons: float = 0.15
    """Share of invented lessons that carry colleagues' messages."""
    overheard_steps: float = 0.4
    """Share of demonstrated steps that carry colleagues' messages."""


class Stream:
    """An endless, seeded stream of lessons and quizzes."""

    def __init__(
        self, seed: int, known: Sequence[str], mix: Mix, demonstrations: Sequence[Lesson] = ()
    ) -> None:
        """``demonstrations`` is a fixed pool, drawn from with replacement."""
        self.rng = random.Random(seed)
        self.mix = mix
        self._known = tuple(known)
        self._pool = demonstrations
        self._families = list(PAGE_FAMILIES)
        self._weights = list(PAGE_FAMILIES.values())

    def draw(self, questions: float | None = None) -> Lesson | Quiz:
        """The next sample; ``questions`` overrides the share of level 1."""
        mix, rng = self.mix, self.rng
        if rng.random() < (mix.questions if questions is None else questions):
            return quiz(rng, self._known)
        shares = (mix.pages, mix.devices, mix.demonstrations if self._pool else 0.0)
        level = rng.choices(("page", "device", "step"), shares)[0]
        if level == "step":
            return self._overheard(rng.choice(self._pool), mix.overheard_steps)
        bag = Bag(rng, self._known)
        if level == "device":
            return self._overheard(device_lesson(bag), mix.overheard_lessons)
        return self._overheard(self.page(bag), mix.overheard_lessons)

    def page(self, bag: Bag, family: Family | None = None) -> Lesson:
        """A lesson on an invented page."""
        chosen = family or self.rng.choices(self._families, self._weights)[0]
        return stage(chosen(bag), self.rng)

    def _overheard(self, lesson: Lesson, share: float) -> Lesson:
        return overhear(lesson, self.rng, COLLEAGUES) if self.rng.random() < share else lesson
