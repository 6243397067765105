"""The window agent: the base agent, trained further to see part of a long screen and to abstain.

The correct reply of an agent is: a correct action that its window shows; otherwise a correct action
that a colleague proposed; otherwise to abstain. Colleagues make errors, and some are always wrong,
so an agent learns which messages to trust. The recipe and its shares come from our own experiments.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from benchmarks.support.long_phone import LongPhone
from demos.base_agent.screens import DONE, ActionSample, QuestionSample, SampleSource
from demos.base_agent.stream import COLLEAGUES, Mix, Stream, random_action, step_or_stray
from demos.base_agent.training import Stage1Config, train
from swarm_ui.action import Abstain, Action
from swarm_ui.agent_view import View, Window, windowed
from swarm_ui.environment import Environment, Graded
from swarm_ui.environments.phone import TRAIN_SEEDS, tasks
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.message import Message
from swarm_ui.model import Decision
from swarm_ui.nodes import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import PASS
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1 import expert_of
from swarm_ui.trace.records import hear

MEMORY = 1
"""Number of past actions in the observations of long screens."""
NEW = (
    "contacts-add-email", "messages-send-two", "clock-alarm-label", "recipes-write", "music-create",
)  # fmt: skip
"""Forms of new templates and new apps, of which no training of any agent here saw an episode."""
_TRIES = 4


@dataclass(frozen=True, slots=True)
class LabelledScreen:
    """A screen of a task, and all actions that are known to be correct on it."""

    observation: Observation
    correct: tuple[Action, ...]
    """Correct actions, in the indices of the screen, from top to bottom."""
    named: frozenset[int]
    """Elements whose label occurs in the goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMix:
    """Settings for drawing window samples. The defaults are not from a paper."""

    agents: int = 4
    copies: tuple[tuple[int, float], ...] = ((1, 0.5), (2, 0.3), (4, 0.2))
    """Number of windows that show each element, with weights. If it equals ``agents``, each window
    is the whole screen."""
    densities: tuple[float, ...] = (0.0, 0.5, 0.5, 1.0)
    """Densities of the edges between the agents."""
    errors: tuple[float, ...] = (0.0, 0.08, 0.2)
    """Share of wrong messages."""
    broken: float = 0.3
    """Share of samples in which one colleague is always wrong."""
    passes: float = 0.25
    """Share of the samples with the answer to abstain that are kept; with all of them an agent
    learns to abstain always."""
    ends: float = 0.35
    """Share of the samples with the answer to end the task that are kept."""
    share: float = 0.85
    """Share of window samples in the whole stream."""


async def labelled_screens(
    environment: Environment, *, task: str, seed: int, rng: random.Random, stray: float = 0.12
) -> list[LabelledScreen]:
    """The screens of one task done by the expert.

    With probability ``stray`` a random action is executed instead of the expert's.

    Raises:
        ConfigError: the environment has no expert.
    """
    expert = expert_of(environment)
    screen = await environment.reset(task=task, seed=seed)
    found: list[LabelledScreen] = []
    while True:
        correct = await _correct_actions(environment, expert, screen)
        found.append(LabelledScreen(screen, correct, _named(screen)))
        step = await step_or_stray(environment, screen, rng.choice(correct), rng, stray)
        if step.ended:
            return found
        screen = step.observation


async def _correct_actions(
    environment: Environment, graded: Graded, screen: Observation
) -> tuple[Action, ...]:
    """The expert's action, and its later actions on this screen that are already correct now.

    For example, the fields of a form may be filled, and boxes checked, in any order.
    """
    state = graded.snapshot()
    plan = [graded.expert()]
    while plan[-1].action_type != "status":
        step = await environment.step(plan[-1])
        if step.ended or _labels(step.observation) != _labels(screen):
            break
        plan.append(graded.expert())
    graded.restore(state)
    correct = {a.key: a for a in plan if a is plan[0] or graded.grade(a) == 1.0}
    return tuple(sorted(correct.values(), key=lambda a: -1 if a.index is None else a.index))


def _labels(screen: Observation) -> tuple[str, list[str]]:
    return screen.app, [element.label for element in screen.elements]


def _named(screen: Observation) -> frozenset[int]:
    goal = screen.goal.casefold()
    labels = [(e.index, e.label.casefold()) for e in screen.elements if e.label]
    return frozenset(i for i, label in labels if re.search(rf"\b{re.escape(label)}(?!\w)", goal))


class WindowStream:
    """Window samples from a pool of screens, mixed with the samples of another source."""

    def __init__(
        self,
        seed: int,
        pool: Sequence[LabelledScreen],
        others: SampleSource,
        mix: WindowMix | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self._pool, self._others = pool, others
        self.mix = mix or WindowMix()

    def draw(self, questions: float | None = None) -> ActionSample | QuestionSample:
        """The next sample; ``questions`` is passed on to the other source."""
        if self.rng.random() >= self.mix.share:
            return self._others.draw(questions)
        while True:
            sample = window_sample(self.rng.choice(self._pool), self.rng, self.mix)
            if self.rng.random() < self._keep_probability(sample.action):
                return sample

    def _keep_probability(self, action: Action | Abstain) -> float:
        if isinstance(action, Abstain):
            return self.mix.passes
        return self.mix.ends if action.action_type == "status" else 1.0


def window_sample(screen: LabelledScreen, rng: random.Random, mix: WindowMix) -> ActionSample:
    """The view and the inbox of one agent of a simulated team, and its correct reply."""
    n = mix.agents
    copies, weights = zip(*mix.copies, strict=True)
    chosen = rng.choices(copies, weights)[0]
    names = [f"agent_{k}" for k in range(n)]
    edges = random_dag(names, rng.choice(mix.densities), rng)
    error, broken = rng.choice(mix.errors), rng.randrange(n) if rng.random() < mix.broken else -1
    wanted, said = rng.randrange(n), dict[str, Message]()
    for k in _speakers(wanted, names, edges):
        view = windowed(screen.observation, Window(part=k, parts=n, copies=chosen))
        inbox = [said[a] for a, b in edges if b == names[k]]
        correct = _target(screen, view, [m.action for m in inbox if m.action is not None])
        if k == wanted:
            return _sample(view, inbox, correct)
        wrong = k == broken or rng.random() < error
        said[names[k]] = _message(names[k], _wrong(screen, view, rng) if wrong else correct)
    raise AssertionError("the wanted agent must be among the speakers, but was not reached")


def _speakers(wanted: int, names: Sequence[str], edges: Sequence[Edge]) -> list[int]:
    """The agents whose messages the wanted agent depends on, in order, and that agent last."""
    needed, order = [wanted], list[int]()
    while needed:
        here = needed.pop()
        order = [k for k in order if k != here] + [here]
        needed += [names.index(a) for a, b in edges if b == names[here]]
    return order[::-1]


def _target(screen: LabelledScreen, view: View, heard: Iterable[Action]) -> Action | Abstain:
    """The correct reply to this view and these messages, in the indices of the screen."""
    for action in screen.correct:
        if _evident(screen, action, view):
            return action
    correct = {action.key: action for action in screen.correct}
    for action in heard:
        if action.key in correct:
            return correct[action.key]
    return Abstain()


def _evident(screen: LabelledScreen, action: Action, view: View) -> bool:
    """Whether the action follows from the view alone, without messages."""
    if action.index is not None:
        return action.index in view.order
    if action.action_type == "status":  # without named elements, the history must be enough
        return not screen.named or not screen.named.isdisjoint(view.order)
    if action.action_type == "answer":
        seen = view.observation
        texts = [f"{e.label} {e.value or ''}" for e in seen.elements]
        texts += [past.label for past in seen.history]
        return any((action.text or "").casefold() in text.casefold() for text in texts)
    return True


def _wrong(screen: LabelledScreen, view: View, rng: random.Random) -> Action | Abstain:
    """A wrong action in this view, or nothing if none is found."""
    correct = {action.key for action in screen.correct}
    for _ in range(_TRIES):
        shown = DONE.act if rng.random() < 0.1 else random_action(view.observation, rng)
        action = None if shown is None else view.to_screen(shown)
        if action is not None and action.key not in correct:
            return action
    return Abstain()


def _message(sender: str, said: Action | Abstain) -> Message:
    action = None if isinstance(said, Abstain) else said
    return Message(id=f"{sender}:0", sender=sender, round=0, content=said.json(), action=action)


def _sample(view: View, inbox: Sequence[Message], correct: Action | Abstain) -> ActionSample:
    heard = tuple(hear(message, view, listener="") for message in inbox)
    decision = Decision(observation=view.observation, heard=heard, partial=view.partial)
    if isinstance(correct, Abstain):
        return ActionSample(decision, correct, level=3)
    shown = view.from_screen_with_hidden(correct)
    assert shown is not None  # every element of the screen has a number in the view
    return ActionSample(decision, shown, level=3)


def long_phone() -> LongPhone:
    """The phone with long screens that all parts of the study use."""
    return LongPhone(memory=MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAgentConfig:
    """All settings of the window agent."""

    episodes: int = 40
    """Simulated episodes of each training template from which samples are drawn."""
    stage1: Stage1Config = field(
        default_factory=lambda: Stage1Config(steps=6_000, learning_rate=3e-3, questions_first=0.0)
    )
    windows: WindowMix = field(default_factory=WindowMix)
    seed: int = 0

    @classmethod
    def of(cls, steps: int, seed: int = 0) -> WindowAgentConfig:
        """The defaults with this number of training steps."""
        default = cls(seed=seed)
        return replace(default, stage1=replace(default.stage1, steps=steps))


def window_agent(config: WindowAgentConfig, folder: Path) -> LocalModel:
    """The window agent in a folder, which is trained from the base agent if it is not there."""
    if not folder.exists():
        torch.manual_seed(config.seed)
        learner = LocalModel.load().with_words([PASS, *COLLEAGUES], seed=config.seed)
        others = Stream(config.seed, KNOWN_WORDS, Mix(demonstrations=0.0))
        train(learner, WindowStream(config.seed, pool(config), others, config.windows),
              config.stage1)  # fmt: skip
        part = folder.with_name(f"{folder.name}.part")
        learner.save(part)
        part.rename(folder)
    return LocalModel.load(folder)


def pool(config: WindowAgentConfig) -> list[LabelledScreen]:
    """Labelled screens of the training templates with training parameters."""

    async def show() -> list[LabelledScreen]:
        environment, rng = long_phone(), random.Random(config.seed)
        found: list[LabelledScreen] = []
        for task in tasks("train"):
            for _ in range(config.episodes):
                seed = rng.choice(TRAIN_SEEDS)
                found += await labelled_screens(environment, task=task, seed=seed, rng=rng)
        return found

    return asyncio.run(show())
