"""Stage-1 lessons again, beside what stage 2 teaches, so that it does not wash them out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from swarm_ui.action import Action
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.stage1.synthesis.curriculum import Mix, Stream
from swarm_ui.optim.stage1.synthesis.questions import Quiz

SCREENS = Mix(questions=0.0, demonstrations=0.0)
"""Invented pages and devices alone: no demonstration of a real task."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Lessons on invented screens; for ``TeamTrainer(rehearse=...)``."""

    known: tuple[str, ...]
    """Words that the agents have symbols for."""
    mix: Mix = SCREENS

    def __call__(self, count: int, rng: random.Random) -> Sequence[PreferencePair]:
        """``count`` examples without a rejected side; equal ``rng`` states give equal ones."""
        stream = Stream(rng.getrandbits(31), self.known, self.mix)
        examples: list[PreferencePair] = []
        while len(examples) < count:
            lesson = stream.draw(questions=0.0)
            if not isinstance(lesson, Quiz) and isinstance(lesson.action, Action):
                examples.append(
                    PreferencePair(
                        node="", decision=lesson.decision, chosen=lesson.action, rejected=None,
                        source="rehearsal",
                    )
                )  # fmt: skip
        return examples
