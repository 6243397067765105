"""The stream of samples for the base agent: the share of each level, and the page families."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from swarm_ui.action import Action
from swarm_ui.model import Decision
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.stage1.synthesis import clicking, filling
from swarm_ui.optim.stage1.synthesis.demonstrations import with_messages
from swarm_ui.optim.stage1.synthesis.devices import device_sample
from swarm_ui.optim.stage1.synthesis.pages import distractors
from swarm_ui.optim.stage1.synthesis.random_words import WordSampler
from swarm_ui.optim.stage1.synthesis.screens import (
    DEVICE_ACTIONS,
    PAGE_ACTIONS,
    ActionSample,
    QuestionSample,
    Screen,
    observe,
    to_sample,
)

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
    a :class:`~swarm_ui.optim.stage1.synthesis.screens.SampleSource`."""

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


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Draws samples on invented screens, for ``TeamTrainer(rehearse=...)``."""

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
                decision, chosen = sample.decision, sample.action
                pairs.append(PreferencePair(node="", decision=decision, chosen=chosen,
                                            rejected=None, source="rehearsal"))  # fmt: skip
        return pairs
