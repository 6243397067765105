"""The three who make a corpus: a UI agent, an adversary and a critic.

Each may be any :class:`~swarm_ui.model.ChatModel`, or an object of one of these protocols, such as
those of :mod:`swarm_ui.optim.stage1.corpus.scripted_roles`, which know the world instead of a
language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.model import ChatModel, Decision
from swarm_ui.observation import Observation


class Said(NamedTuple):
    """A reply, and the short hash of the prompt it answers (empty: none was read)."""

    text: str
    prompt: str = ""


class Item(NamedTuple):
    """A question or instruction with its answer."""

    asked: str
    answer: str
    kind: str = ""


class Written(NamedTuple):
    """What a UI agent wrote about a screen."""

    items: list[Item]
    malformed: int = 0
    """Pieces of the reply that could not be read."""
    prompt: str = ""


class Scene(NamedTuple):
    """A step of a walk, which may be taken up again."""

    environment: Environment
    observation: Observation
    state: object | None
    """Snapshot of the environment; ``None`` where it can make none."""


class UIAgent(Protocol):
    """Walks, and writes about what it sees."""

    @property
    def name(self) -> str: ...

    async def act(self, scene: Scene, decision: Decision, *, seed: int, temperature: float) -> Said:
        """A reason and an action, in the decision's own indices."""
        ...

    async def questions(self, scene: Scene, *, seed: int) -> Written:
        """Questions about the screen, of the kinds ``"screen"`` and ``"element"``."""
        ...

    async def instructions(self, scene: Scene, *, seed: int) -> Written:
        """Instructions of one step; each answer is a reason and an action."""
        ...


class Opponent(Protocol):
    """The adversary: writes plausible wrong replies."""

    @property
    def name(self) -> str: ...

    async def oppose(self, scene: Scene, good: Action, *, seed: int) -> Said | None:
        """A reason and another action than ``good``; ``None`` if nothing came."""
        ...


class Judge(Protocol):
    """The critic: scores in [0, 1], ``None`` where it cannot say."""

    @property
    def name(self) -> str: ...

    async def answers(self, scene: Scene, items: Sequence[Item]) -> list[float | None]:
        """Of questions, or instructions, and their answers."""
        ...

    async def acts(self, scene: Scene, replies: Sequence[str], *, seed: int) -> list[float | None]:
        """Of replies to the screen's own goal."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Who makes a corpus.

    One model may play all parts: ``Models(agent=model, adversary=model, critic=model)``.
    """

    agent: ChatModel | UIAgent
    adversary: ChatModel | Opponent
    critic: ChatModel | Judge | None
    """``None``: nothing is judged, and nothing is dropped for being wrong."""

    @staticmethod
    def scripted() -> Models:
        """No language model at all: for environments that know how to do their tasks
        (:class:`~swarm_ui.environment.Graded`), such as the embedded phone."""
        from swarm_ui.optim.stage1.corpus.scripted_roles import Expert, Grader, Mistaken

        return Models(agent=Expert(), adversary=Mistaken(), critic=Grader())
