"""Samples of all three levels from walks through an environment with an expert."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.synthesis.demonstrations import expert_of, step_or_stray
from swarm_ui.optim.stage1.synthesis.instructions import COMPLETE, instruction
from swarm_ui.optim.stage1.synthesis.questions import questions
from swarm_ui.optim.stage1.synthesis.screen_words import means
from swarm_ui.optim.stage1.synthesis.screens import ActionSample


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkMix:
    """Frequencies of the samples on each screen of a walk."""

    instructions: float = 0.25
    """Mean number of level-2 samples for each of level 3, at most 1."""
    questions: float = 0.1
    """Mean number of level-1 samples for each of level 3, at most 1."""
    stray: float = 0.12
    """Share of steps at which a random action replaces the expert's."""
    followed: float = 0.5
    """Share of the instructions that are followed, if that does not end the task: the next sample
    has the same instruction and says that it is complete. The walk continues from there."""


async def sample_walks(
    environment: Environment,
    jobs: Iterable[tuple[str, int]],
    rng: random.Random,
    mix: WalkMix | None = None,
) -> AsyncIterator[ActionSample]:
    """Level 3 samples of every step of the expert, with others of level 1 and 2 among them.

    Args:
        environment: one with an expert.
        jobs: tasks and seeds; each is one walk.
        rng: draws everything that is random; equal states give equal samples.
        mix: shares; ``None``: the defaults.

    Raises:
        ConfigError: the environment has no expert.
    """
    mix = mix or WalkMix()
    expert = expert_of(environment)
    for task, seed in jobs:
        screen = await environment.reset(task=task, seed=seed)
        while True:
            correct = expert.expert()
            yield ActionSample(Decision(observation=screen), correct, level=3)
            if rng.random() < mix.questions and (asked := questions(screen, rng)):
                yield rng.choice(asked)
            told = instruction(screen, rng) if rng.random() < mix.instructions else None
            if told is not None:
                yield told
            action = _last_act(told) if rng.random() < mix.followed else None
            if told is not None and action is not None:
                step = await environment.step(action)
                if not step.ended:
                    yield _followed(told, step.observation)
            else:
                step = await step_or_stray(environment, screen, correct, rng, mix.stray)
            if step.ended:
                break
            screen = step.observation


def _last_act(told: ActionSample | None) -> Action | None:
    """The action after which an instruction is complete, or ``None`` if more may be needed.

    An instruction that only names a purpose, such as "get rid of this", may need a confirmation.
    """
    if told is None or not isinstance(told.action, Action) or told.action == COMPLETE:
        return None
    screen = told.decision.observation
    element = screen.element(told.action.index)
    if element is None or element.label.casefold() in screen.goal.casefold():
        return told.action
    return None if means(element) else told.action


def _followed(told: ActionSample, screen: Observation) -> ActionSample:
    """The sample after an instruction was followed: nothing is left to do."""
    before = told.decision.observation
    history = screen.history[-1:]
    shown = replace(screen, goal=before.goal, history=history)
    return ActionSample(Decision(observation=shown), COMPLETE, level=2)
