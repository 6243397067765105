"""A person in the loop: some actions need a confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments.wrappers.action_rules import (
    DELETION,
    PAYMENT,
    SENDING,
    Rule,
    first_match,
)
from swarm_ui.environments.wrappers.wrapper import RefusalWrapper
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An action to confirm, and the reason for the question."""

    action: Action
    screen: Observation
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.screen.goal}\n{self.action} ({self.rule}: {self.why})"


Ask = Callable[[Question], Awaitable[bool]]


class Confirm(RefusalWrapper):
    """Asks before actions that match a rule. Without a confirmation the step is lost.

    Args:
        env: the environment.
        ask: returns true to allow the action. If it raises, the action is not done.
        rules: the actions to ask about; ``None``: all.
        timeout: seconds to wait for an answer before the action is refused; ``None``: no limit.
    """

    def __init__(
        self,
        env: Environment,
        ask: Ask,
        *,
        rules: Sequence[Rule] | None = (PAYMENT, DELETION, SENDING),
        timeout: float | None = 60.0,
    ) -> None:
        super().__init__(env)
        if timeout is not None and timeout <= 0:
            raise ConfigError(f"Confirm: 'timeout' must be > 0 seconds, got {timeout}")
        self._ask = ask
        self._rules = None if rules is None else tuple(rules)
        self._timeout = timeout

    async def objection(self, action: Action, screen: Observation) -> str:
        rule, why = "every action", "all actions are asked about"
        if self._rules is not None:
            match = first_match(self._rules, action, screen)
            if match is None:
                return ""
            rule, why = match
        question = Question(action=action, screen=screen, rule=rule, why=why)
        try:
            async with asyncio.timeout(self._timeout) as limit:
                allowed = await self._ask(question)
        except TimeoutError:
            if not limit.expired():  # raised by ``ask`` itself
                raise
            return f"not confirmed ({rule}): no answer in {self._timeout:g} s; nothing was done"
        return "" if allowed is True else f"not confirmed ({rule}): refused; nothing was done"
