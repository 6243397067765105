"""Level 1: questions about an invented screen, several for each screen."""

from __future__ import annotations

import random

from swarm_ui.model import Decision
from swarm_ui.optim.stage1.synthesis.pages import distractors
from swarm_ui.optim.stage1.synthesis.random_words import WordSampler
from swarm_ui.optim.stage1.synthesis.screens import (
    DEVICE_ACTIONS,
    PAGE_ACTIONS,
    QuestionSample,
    Screen,
    observe,
)


def question_sample(
    rng: random.Random, known: tuple[str, ...], questions: int = 6
) -> QuestionSample:
    """Where is the element with this label? Is it on? What does it contain?"""
    words = WordSampler(rng, known)
    widgets = distractors(words, rng.randint(3, 10))
    goal, title = words.phrase(), words.word()
    actions = rng.choice((PAGE_ACTIONS, DEVICE_ACTIONS))
    observation = observe(Screen(goal, widgets, [], title, actions=actions), ())
    named = [e for e in observation.elements if e.label]
    asked: list[tuple[str, int]] = []
    for _ in range(questions if named else 0):
        element = rng.choice(named)
        kind = "where"
        if rng.random() < 0.3:
            kind = "value" if element.value else "state" if element.checked is not None else kind
        asked.append((kind, element.index))
    return QuestionSample(Decision(observation=observation), tuple(asked))
