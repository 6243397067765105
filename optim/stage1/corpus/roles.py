"""The roles that make a corpus: a UI agent, an adversary, a critic, and an optional walker.

Each may be any :class:`~swarm_ui.model.ChatModel`, or an object of one of these protocols, such as
the classes of :mod:`swarm_ui.optim.stage1.corpus.scripted_roles`, which need no language model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.rollout import Policy


class Reply(NamedTuple):
    """A reply, and the short hash of its prompt (empty for a role without prompts)."""

    text: str
    prompt: str = ""


class Item(NamedTuple):
    """A question or instruction with its answer."""

    asked: str
    answer: str
    kind: str = ""


class Items(NamedTuple):
    """The questions or instructions that a UI agent wrote about a screen."""

    items: list[Item]
    malformed: int = 0
    """Number of parts of the reply that could not be parsed."""
    prompt: str = ""


class WalkState(NamedTuple):
    """The state of the environment at one step of a walk."""

    environment: Environment
    observation: Observation
    snapshot: object | None
    """``None`` if the environment has no snapshots."""


class UIAgent(Protocol):
    """Acts in the environment, and writes about its screens."""

    @property
    def name(self) -> str: ...

    async def act(
        self, state: WalkState, decision: Decision, *, seed: int, temperature: float
    ) -> Reply:
        """A reason and an action, in the indices of the decision's screen."""
        ...

    async def questions(self, state: WalkState, *, seed: int) -> Items:
        """Questions about the screen, of the kinds ``"screen"`` and ``"element"``."""
        ...

    async def instructions(self, state: WalkState, *, seed: int) -> Items:
        """Instructions of one step; each answer is a reason and an action."""
        ...


class Walker(Protocol):
    """Chooses the actions of a walk, so that the corpus has the screens that a trained model
    reaches.
    """

    @property
    def name(self) -> str: ...

    async def walk(self, decision: Decision, *, seed: int) -> Action | None:
        """The next action; ``None`` if the reply cannot be read."""
        ...


class Adversary(Protocol):
    """Writes plausible wrong replies."""

    @property
    def name(self) -> str: ...

    async def oppose(self, state: WalkState, good: Action, *, seed: int) -> Reply | None:
        """A reason with an action other than ``good``; ``None`` if there is none."""
        ...


class Judge(Protocol):
    """The role of the critic. It gives scores in [0, 1], or ``None`` if it cannot judge."""

    @property
    def name(self) -> str: ...

    async def score_answers(self, state: WalkState, items: Sequence[Item]) -> list[float | None]:
        """Scores of questions, or instructions, with their answers."""
        ...

    async def score_actions(
        self, state: WalkState, replies: Sequence[str], *, seed: int
    ) -> list[float | None]:
        """Scores of replies to the screen's own goal."""
        ...


@dataclass(frozen=True, slots=True)
class Roles:
    """The objects that play the three roles of a synthesis: UI agent, adversary and critic."""

    agent: UIAgent
    adversary: Adversary
    critic: Judge | None
    walker: Walker | None = None
    """``None``: the agent's own actions are executed."""
    team: Policy | None = None
    """Plays the walks instead of the other roles."""


def expert_of(environment: Environment) -> Graded:
    """The environment as one with an expert. Raises ``ConfigError`` if it has none."""
    if not isinstance(environment, Graded):
        raise ConfigError(
            f"demonstrations and scripted roles need an environment with expert() and grade(); "
            f"{environment.name} has none. Use language models for the roles"
        )
    return environment
