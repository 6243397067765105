"""Samples of level 3 of stage 1: steps of an environment's expert, and messages of other agents
about them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.action import Abstain, Action
from swarm_ui.environment import Environment, Graded, Step
from swarm_ui.errors import ConfigError
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.synthesis.screens import ActionSample


async def demonstrate(
    environment: Environment, *, task: str, seed: int, rng: random.Random, stray: float = 0.12
) -> list[ActionSample]:
    """The expert's actions in one task.

    With probability ``stray`` a random action is executed instead of the expert's, so that the
    next sample shows how to return.

    Raises:
        ConfigError: the environment has no expert.
    """
    expert = expert_of(environment)
    screen = await environment.reset(task=task, seed=seed)
    samples = []
    while True:
        correct = expert.expert()
        samples.append(ActionSample(Decision(observation=screen), correct, level=3))
        step = await step_or_stray(environment, screen, correct, rng, stray)
        if step.ended:
            return samples
        screen = step.observation


def expert_of(environment: Environment) -> Graded:
    """The environment as one with an expert. Raises ``ConfigError`` if it has none."""
    if not isinstance(environment, Graded):
        raise ConfigError(
            f"demonstrations and scripted roles need an environment with expert() and grade(); "
            f"{environment.name} has none. Use language models for the roles"
        )
    return environment


async def step_or_stray(
    environment: Environment, screen: Observation, action: Action, rng: random.Random, stray: float
) -> Step:
    """Execute the action, or with probability ``stray`` a random one that ends no task."""
    if action.action_type != "status" and rng.random() < stray:
        action = random_action(screen, rng) or action
    return await environment.step(action)


def random_action(screen: Observation, rng: random.Random) -> Action | None:
    """A random action that does not end the task; ``None`` on an empty screen."""
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


def with_messages(
    sample: ActionSample, rng: random.Random, colleagues: Sequence[str]
) -> ActionSample:
    """The sample with messages of colleagues in its context, correct or wrong.

    In half of the samples all errors are the same, because agents that share a base model make the
    same errors. The target remains the correct action, so the agent learns which messages to trust.
    """
    screen, answer = sample.decision.observation, sample.action
    assert not isinstance(answer, Abstain)  # only window samples abstain, and they have messages
    trust = rng.choice((0.25, 0.45, 0.65, 0.85))
    shared = random_action(screen, rng) if rng.random() < 0.5 else None
    heard = []
    senders = rng.sample(list(colleagues), rng.randint(0, min(3, len(colleagues))))
    own = rng.random() < 0.45 or not senders
    for sender in (["me"] if own else []) + senders:
        correct = rng.random() < trust
        action = answer if correct else (shared or random_action(screen, rng))
        if action is not None:
            own_message = sender == "me"
            heard.append(Heard(sender=sender, round=0, content="", action=action, own=own_message))
    return ActionSample(Decision(observation=screen, heard=tuple(heard)), answer, sample.level)
