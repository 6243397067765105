"""Teachers, which show a right action where no agent proposed one.

RFT and preference pairs learn only from right actions that an agent proposed. On screens of apps
that are new to all agents there are few of them, so a team learns little there. A teacher fills
this gap, as in DAgger (Ross et al., AISTATS 2011): it acts on the screens that the team itself
reaches. It is our addition to CollabUIAgents. Tests have no teacher.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from swarm_ui.action import Action
from swarm_ui.environment import Graded, check_factory
from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatModel, Decision, Request
from swarm_ui.optim.preferences.adversary import fits, with_label
from swarm_ui.prompts import format_named


class Teacher(Protocol):
    """Shows an action that is right in a state."""

    @property
    def name(self) -> str: ...

    async def show(self, decision: Decision, state: object | None, *, seed: int) -> Action | None:
        """An action for this decision; ``None`` if the teacher knows none.

        The judge of single actions grades it, and only right actions are used.

        Args:
            decision: the whole screen; the result is in the indices of this screen.
            state: a snapshot of the environment at this decision; ``None`` if it makes none.
            seed: the seed of a teacher that draws at random; equal arguments give equal answers.
        """
        ...


class ScriptedTeacher:
    """Shows the action of the solver of a simulated environment."""

    name = "scripted teacher"

    def __init__(self, make_environment: Callable[[], Graded]) -> None:
        """``make_environment``: makes an environment that can restore the given snapshots. It is
        called once, when first needed."""
        check_factory(make_environment)
        self._make_environment = make_environment
        self._environment: Graded | None = None

    async def show(self, decision: Decision, state: object | None, *, seed: int) -> Action | None:
        """See :class:`Teacher`. Raises ``ConfigError`` without a snapshot."""
        if state is None:
            raise ConfigError(
                f"{self.name}: no snapshot of the environment; it needs an environment with "
                "snapshot() and restore(). Use a language model as the teacher instead"
            )
        if self._environment is None:
            self._environment = self._make_environment()
        self._environment.restore(state)
        return self._environment.expert()


class LLMTeacher:
    """Asks a language model to act, such as one that is larger than the agents' own."""

    def __init__(
        self, model: ChatModel, *, temperature: float | None = None, max_tokens: int = 256
    ) -> None:
        self.name, self._model = f"LLM teacher ({model.name})", model
        self._temperature, self._max_tokens = temperature, max_tokens

    async def show(self, decision: Decision, state: object | None, *, seed: int) -> Action | None:
        """See :class:`Teacher`. Raises ``ModelError`` if the model cannot answer."""
        request = Request(
            decision=decision,
            temperature=self._temperature,
            max_tokens=self._max_tokens,
            seed=seed,
        )
        (completion,) = await self._model.generate([request])
        screen = decision.observation
        action = format_named(completion.prompt_format).parse(completion.text, screen)
        if not isinstance(action, Action) or not fits(action, screen):
            return None
        return with_label(action, screen)
