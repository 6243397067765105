"""Level 1: questions about an invented screen, several to a screen."""

from __future__ import annotations

import random
from dataclasses import dataclass

from swarm_ui.model import Decision
from swarm_ui.optim.stage1.synthesis.pages import clutter
from swarm_ui.optim.stage1.synthesis.random_words import Bag
from swarm_ui.optim.stage1.synthesis.scene import DEVICE_ACTIONS, PAGE_ACTIONS, Scene, observe


@dataclass(frozen=True, slots=True)
class Quiz:
    """A screen and questions about it: ``("where" | "state" | "value", element index)``."""

    decision: Decision
    questions: tuple[tuple[str, int], ...]


def quiz(rng: random.Random, known: tuple[str, ...], questions: int = 6) -> Quiz:
    """Where is the element with this label? Is it on? What does it hold?"""
    bag = Bag(rng, known)
    drafts = clutter(bag, rng.randint(3, 10))
    scene = Scene(
        goal=bag.phrase(),
        drafts=drafts,
        plan=[],
        title=bag.word(),
        actions=rng.choice((PAGE_ACTIONS, DEVICE_ACTIONS)),
    )
    screen = observe(scene, ())
    named = [e for e in screen.elements if e.label]
    asked: list[tuple[str, int]] = []
    for _ in range(questions if named else 0):
        element = rng.choice(named)
        kind = "where"
        if rng.random() < 0.3:
            kind = "value" if element.value else "state" if element.checked is not None else kind
        asked.append((kind, element.index))
    return Quiz(decision=Decision(observation=screen), questions=tuple(asked))
