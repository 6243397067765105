"""The stream of samples for the base agent: invented screens, demonstrations, and messages.

Level 1 asks for positions, states and values of elements; level 2 has instructions on invented web
pages and devices; level 3 has steps of an environment's expert.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from demos.base_agent import clicking, filling
from demos.base_agent.devices import device_sample
from demos.base_agent.screens import (
    DEVICE_ACTIONS,
    PAGE_ACTIONS,
    ActionSample,
    QuestionSample,
    Screen,
    WordSampler,
    distractors,
    observe,
    to_sample,
)
from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.observation import Observation
from swarm_ui.optim.preferences import PreferencePair
from swarm_ui.optim.stage1 import expert_of
from swarm_ui.prompts import format_named

Family = Callable[[WordSampler], Screen]

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
"""Families of page instructions and their weights, which are our defaults."""

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
    """An endless, seeded stream of samples;
    a :class:`~demos.base_agent.screens.SampleSource`."""

    def __init__(
        self, seed: int, known: Sequence[str], mix: Mix, demonstrations: Sequence[ActionSample] = ()
    ) -> None:
        """
        Args:
            seed: equal seeds give equal streams.
            known: ordinary words to mix into invented screens.
            mix: shares.
            demonstrations: a fixed pool that is sampled with replacement.
        """
        self.rng = random.Random(seed)
        self.mix = mix
        self._known = tuple(known)
        self._demonstrations = demonstrations

    def draw(self, questions: float | None = None) -> ActionSample | QuestionSample:
        """The next sample; ``questions`` overrides the share of level 1."""
        mix, rng = self.mix, self.rng
        if rng.random() < (mix.questions if questions is None else questions):
            return question_sample(rng, self._known)
        shares = (mix.pages, mix.devices, mix.demonstrations if self._demonstrations else 0.0)
        source = rng.choices(("page", "device", "demonstration"), shares)[0]
        with_share = mix.invented_with_messages
        if source == "demonstration":
            sample = rng.choice(self._demonstrations)
            with_share = mix.demonstrations_with_messages
        elif source == "device":
            sample = device_sample(WordSampler(rng, self._known))
        else:
            sample = self.page(WordSampler(rng, self._known))
        return with_messages(sample, rng, COLLEAGUES) if rng.random() < with_share else sample

    def page(self, words: WordSampler, family: Family | None = None) -> ActionSample:
        """A sample on an invented page; by default of a random family."""
        chosen = family or self.rng.choices(list(PAGE_FAMILIES), list(PAGE_FAMILIES.values()))[0]
        return to_sample(chosen(words), self.rng)


def question_sample(
    rng: random.Random, known: tuple[str, ...], questions: int = 6
) -> QuestionSample:
    """A sample of questions: position, state and content of elements, by label."""
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


SCREENS = Mix(questions=0.0, demonstrations=0.0)
"""Shares of a stream that has only invented pages and devices, without demonstrations of real
tasks."""


def rehearsal_for(model: Any, share: float) -> Callable[[int, random.Random], Sequence[Any]]:
    """Draws samples on invented screens as pairs without a rejected side, in the prompt format of a
    model or of its adapters, so that they are this share of an update."""
    start = next(iter(model.adapters), None)  # an adapter may have a format of its own
    form = format_named(model.format_of(start) or "json")

    def draw(count: int, rng: random.Random) -> Sequence[PreferencePair]:
        stream = Stream(rng.getrandbits(31), KNOWN_WORDS, SCREENS)
        pairs: list[PreferencePair] = []
        while len(pairs) < round(share / (1.0 - share) * count):
            sample = stream.draw(questions=0.0)
            assert isinstance(sample, ActionSample) and isinstance(sample.action, Action)
            pairs.append(
                PreferencePair(
                    node="",
                    decision=sample.decision,
                    chosen=sample.action,
                    rejected=None,
                    source="rehearsal",
                    chosen_text=form.write(sample.action, sample.decision.observation),
                    prompt_format=form.name,
                )
            )
        return pairs

    return draw


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
