"""The stream of samples for the base agent: invented screens, demonstrations, and messages.

Level 1 asks for positions, states and values of elements; level 2 has instructions on invented web
pages and devices; level 3 has steps of an environment's expert.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from demos.base_agent import pages
from demos.base_agent.devices import device_sample
from demos.base_agent.screens import (
    DEVICE_ACTIONS,
    PAGE_ACTIONS,
    ActionSample,
    QuestionSample,
    Screen,
    Words,
    observe,
    to_sample,
)
from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.optim.preferences import PreferencePair
from swarm_ui.optim.stage1 import expert_of
from swarm_ui.prompts import format_named

COLLEAGUES = ("agent_0", "agent_1", "agent_2", "agent_3")


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of the stream; they need not sum to one."""

    questions: float = 0.08
    pages: float = 0.52
    devices: float = 0.15
    demonstrations: float = 0.25
    invented_with_messages: float = 0.15
    """Share of the samples on invented screens that contain messages of colleagues."""
    demonstrations_with_messages: float = 0.4
    """Share of the demonstrations that contain messages of colleagues."""


class Stream:
    """An endless stream of samples; equal seeds give equal streams."""

    def __init__(self, seed: int, mix: Mix, demonstrations: Sequence[ActionSample] = ()) -> None:
        """``demonstrations``: a fixed pool that is sampled with replacement."""
        self.rng, self.mix, self._demonstrations = random.Random(seed), mix, demonstrations

    def draw(self, questions: float | None = None) -> ActionSample | QuestionSample:
        """The next sample; ``questions`` overrides the share of level 1."""
        mix, rng = self.mix, self.rng
        words = Words(rng.getrandbits(31))
        if rng.random() < (mix.questions if questions is None else questions):
            return question_sample(words)
        shares = (mix.pages, mix.devices, mix.demonstrations if self._demonstrations else 0.0)
        source = rng.choices(("page", "device", "demonstration"), shares)[0]
        with_share = mix.invented_with_messages
        if source == "demonstration":
            sample = rng.choice(self._demonstrations)
            with_share = mix.demonstrations_with_messages
        else:
            sample = device_sample(words) if source == "device" else page_sample(words)
        return with_messages(sample, rng) if rng.random() < with_share else sample


def page_sample(words: Words) -> ActionSample:
    """A random step of a random instruction on an invented page."""
    families = pages.FAMILIES
    screen = words.choices(list(families), list(families.values()))[0](words)
    return to_sample(screen, words.randrange(len(screen.plan)))


def question_sample(words: Words, questions: int = 6) -> QuestionSample:
    """A sample of questions: position, state and content of elements, by label."""
    actions = words.choice((PAGE_ACTIONS, DEVICE_ACTIONS))
    screen = Screen(words.phrase(), words.others(10, least=3), [], words.word(), actions=actions)
    observation = observe(screen, ())
    named = [e for e in observation.elements if e.label]
    asked: list[tuple[str, int]] = []
    for _ in range(questions if named else 0):
        element, kind = words.choice(named), "where"
        if words.chance(0.3):
            kind = "value" if element.value else "state" if element.checked is not None else kind
        asked.append((kind, element.index))
    return QuestionSample(Decision(observation=observation), tuple(asked))


def rehearsal_for(model: Any, share: float) -> Callable[[int, random.Random], Sequence[Any]]:
    """Draws samples on invented screens as pairs without a rejected side, in the prompt format of a
    model or of its adapters, so that they are this share of an update."""
    start = next(iter(model.adapters), None)  # an adapter may have a format of its own
    form = format_named(model.format_of(start) or "json")
    screens = Mix(questions=0.0, demonstrations=0.0)

    def draw(count: int, rng: random.Random) -> Sequence[PreferencePair]:
        stream, pairs = Stream(rng.getrandbits(31), screens), list[PreferencePair]()
        for _ in range(round(share / (1.0 - share) * count)):
            sample = stream.draw(questions=0.0)
            assert isinstance(sample, ActionSample)
            pairs.append(
                PreferencePair(
                    node="", decision=sample.decision, chosen=sample.action, rejected=None,
                    source="rehearsal", prompt_format=form.name,
                    chosen_text=form.write(sample.action, sample.decision.observation),
                )
            )  # fmt: skip
        return pairs

    return draw


async def demonstrate(
    environment: Environment, *, task: str, seed: int, rng: random.Random, stray: float = 0.12
) -> list[ActionSample]:
    """The expert's actions in one task. With probability ``stray`` a random action is executed
    instead, so that the next sample shows how to return. Raises ``ConfigError`` without an expert.
    """
    expert = expert_of(environment)
    screen = await environment.reset(task=task, seed=seed)
    samples = []
    while True:
        action = expert.expert()
        samples.append(ActionSample(Decision(observation=screen), action, level=3))
        if action.action_type != "status" and rng.random() < stray:
            action = random_action(screen, rng) or action
        step = await environment.step(action)
        if step.ended:
            return samples
        screen = step.observation


def random_action(screen: Observation, rng: random.Random) -> Action | None:
    """A random action that does not end the task; ``None`` on an empty screen."""
    if not screen.elements:
        return None
    element = rng.choice(screen.elements)
    label, index = element.label, element.index
    if element.editable and rng.random() < 0.6:
        text = rng.choice(screen.goal.split() or ["x"])
        return Action(action_type="input_text", target=label, index=index, text=text)
    if rng.random() < 0.1:
        return Action(action_type="navigate_back")
    return Action(action_type="click", target=label, index=index)


def with_messages(sample: ActionSample, rng: random.Random) -> ActionSample:
    """The sample with messages of colleagues in its context, correct or wrong.

    In half of the samples all errors are the same, because agents that share a base model make the
    same errors. The target remains the correct action, so the agent learns which messages to trust.
    """
    screen, trust = sample.decision.observation, rng.choice((0.25, 0.45, 0.65, 0.85))
    shared = random_action(screen, rng) if rng.random() < 0.5 else None
    senders = rng.sample(COLLEAGUES, rng.randint(0, 3))
    own = ["me"] if rng.random() < 0.45 or not senders else []
    said = {
        sender: sample.action if rng.random() < trust else shared or random_action(screen, rng)
        for sender in [*own, *senders]
    }
    heard = [Heard(sender=sender, round=0, content="", action=action, own=sender == "me")
             for sender, action in said.items() if action is not None]  # fmt: skip
    return replace(sample, decision=Decision(observation=screen, heard=tuple(heard)))
