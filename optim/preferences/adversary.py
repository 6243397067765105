"""Adversaries, which write plausible wrong actions for preference pairs to reject.

After CollabUIAgents (arXiv 2502.14496): for an action judged right, an adversarial agent writes
the negative of the same context, by rejection sampling. An adversary may write another right
action by accident, so :func:`negative` keeps only actions with a low grade.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.model import ChatModel, Decision, Request
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.judging_prompts import adversary_chat

Grade = Callable[[Action], Awaitable[float | None]]
"""Computes the grade of a proposal in the indices of the decision's screen; ``None``: unknown."""


class Adversary(Protocol):
    """Writes a plausible wrong action."""

    @property
    def name(self) -> str: ...

    async def oppose(self, decision: Decision, good: Action, *, seed: int) -> Action | None:
        """An action that a careless agent might take instead of ``good``; ``None`` if there is
        none.

        It differs from ``good`` and is possible on the screen, but may also be right.

        Args:
            decision: the context; ``good`` and the result are in the indices of its screen.
            good: an action that is right here.
            seed: the seed of an adversary that draws at random; equal arguments give equal answers.
        """
        ...


async def negative(
    adversary: Adversary,
    decision: Decision,
    good: Action,
    grade: Grade,
    *,
    seed: int,
    below: float = 0.5,
    attempts: int = 4,
) -> Action | None:
    """Rejection sampling: the first of ``attempts`` proposals whose grade is less than ``below``.

    ``good`` (the action judged right) and the result are in the indices of the decision's screen.
    Each different proposal is graded once; one of unknown grade is not kept.
    """
    rng = random.Random(seed)
    tried = {good.key}
    for _ in range(attempts):
        proposal = await adversary.oppose(decision, good, seed=rng.getrandbits(31))
        if proposal is None or proposal.key in tried:
            continue
        tried.add(proposal.key)
        mark = await grade(proposal)
        if mark is not None and mark < below:
            return proposal
    return None


class LLMAdversary:
    """Asks a language model for a mistake, and keeps it only if it is possible on the screen."""

    def __init__(
        self,
        model: ChatModel,
        *,
        temperature: float | None = 0.8,
        max_tokens: int = 256,
        attempts: int = 2,
    ) -> None:
        """At most ``attempts`` calls are made for one proposal."""
        self.name, self._model = f"LLM adversary ({model.name})", model
        self._temperature, self._max_tokens, self._attempts = temperature, max_tokens, attempts

    async def oppose(self, decision: Decision, good: Action, *, seed: int) -> Action | None:
        """See :class:`Adversary`. Raises ``ModelError`` if the model cannot answer."""
        chat = adversary_chat(decision, good)
        rng = random.Random(seed)
        for _ in range(self._attempts):
            request = Request(
                chat=chat,
                temperature=self._temperature,
                max_tokens=self._max_tokens,
                seed=rng.getrandbits(31),
            )
            (completion,) = await self._model.generate([request])
            action = parse_action(completion.text)
            if isinstance(action, Unparsed) or action.key == good.key:
                continue
            if fits(action, decision.observation):
                return with_label(action, decision.observation)
        return None


def fits(action: Action, observation: Observation) -> bool:
    """Whether the action is possible on the screen.

    Its element must exist and be enabled, and be editable for ``input_text``. An action with
    coordinates never fits.
    """
    if action.x is not None or action.index is None:
        return action.x is None
    element = observation.element(action.index)
    if element is None or not element.enabled:
        return False
    return element.editable or action.action_type != "input_text"


def with_label(action: Action, observation: Observation) -> Action:
    """The action with the label of its element as its target, so that a missing or different
    label does not mark it as wrong."""
    element = observation.element(action.index)
    target = element.label or None if element is not None else None
    return msgspec.structs.replace(action, target=target)
