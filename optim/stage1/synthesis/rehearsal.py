"""Samples of stage 1 that are repeated during stage 2, so that less is forgotten."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from swarm_ui.action import Action
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.stage1.synthesis.curriculum import Mix, Stream
from swarm_ui.optim.stage1.synthesis.screens import ActionSample

SCREENS = Mix(questions=0.0, demonstrations=0.0)
"""Only invented pages and devices, without demonstrations of real tasks."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Samples on invented screens; for ``TeamTrainer(rehearse=...)``."""

    known: tuple[str, ...]
    """Words that the agents' tokenizer has tokens for."""
    mix: Mix = SCREENS

    def __call__(self, count: int, rng: random.Random) -> Sequence[PreferencePair]:
        """``count`` pairs without a rejected side; equal ``rng`` states give equal pairs."""
        stream = Stream(rng.getrandbits(31), self.known, self.mix)
        pairs: list[PreferencePair] = []
        while len(pairs) < count:
            sample = stream.draw(questions=0.0)
            if isinstance(sample, ActionSample) and isinstance(sample.action, Action):
                pairs.append(
                    PreferencePair(
                        node="", decision=sample.decision, chosen=sample.action, rejected=None,
                        source="rehearsal",
                    )
                )  # fmt: skip
        return pairs
