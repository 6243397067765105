"""Level 3: steps of successful trajectories in an environment that knows how to do its tasks."""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.action import Abstain, Action
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.synthesis.scene import Lesson


async def walk(
    environment: Environment, *, task: str, seed: int, rng: random.Random, stray: float = 0.12
) -> list[Lesson]:
    """One task done by the expert; with probability ``stray`` a step is a random click instead,
    and the next lesson shows the way back.

    Raises:
        ConfigError: the environment has no expert.
    """
    if not isinstance(environment, Graded):
        raise ConfigError(
            f"demonstrations need an environment with an expert; {environment.name} has none"
        )
    screen = await environment.reset(task=task, seed=seed)
    lessons = []
    while True:
        right = environment.expert()
        lessons.append(Lesson(Decision(observation=screen), right, level=3))
        action = right
        if right.action_type != "status" and rng.random() < stray:
            action = wrong_action(screen, rng) or right
        step = await environment.step(action)
        if step.ended:
            return lessons
        screen = step.observation


def wrong_action(screen: Observation, rng: random.Random) -> Action | None:
    """A random act on the screen that does not end the task."""
    if not screen.elements:
        return None
    element = rng.choice(screen.elements)
    if element.editable and rng.random() < 0.6:
        text = rng.choice(screen.goal.split() or ["x"])
        return Action(
            action_type="input_text", target=element.label, index=element.index, text=text
        )
    if rng.random() < 0.1:
        return Action(action_type="navigate_back")
    return Action(action_type="click", target=element.label, index=element.index)


def overhear(lesson: Lesson, rng: random.Random, colleagues: Sequence[str]) -> Lesson:
    """The lesson with messages of colleagues in its context, right or wrong.

    Errors are correlated half of the time, as they are among agents that share a base model; the
    target stays the right action, so what is learned is when to believe what one hears.
    """
    screen, answer = lesson.decision.observation, lesson.action
    assert not isinstance(
        answer, Abstain
    )  # only window lessons pass, and they have messages already
    trust = rng.choice((0.25, 0.45, 0.65, 0.85))
    shared = wrong_action(screen, rng) if rng.random() < 0.5 else None
    heard = []
    speakers = rng.sample(list(colleagues), rng.randint(0, min(3, len(colleagues))))
    own = rng.random() < 0.45 or not speakers
    for sender in (["me"] if own else []) + speakers:
        right = rng.random() < trust
        action = answer if right else (shared or wrong_action(screen, rng))
        if action is not None:
            heard.append(
                Heard(sender=sender, round=0, content="", action=action, own=sender == "me")
            )
    decision = Decision(observation=screen, heard=tuple(heard))
    return Lesson(decision, answer, lesson.level)
