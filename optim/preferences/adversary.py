"""Who writes the wrong answers: plausible actions that preference pairs reject.

After CollabUIAgents (arXiv 2502.14496): for an action judged right, an adversarial agent supplies
the negative of the same context by rejection sampling. An adversary may write, by accident,
another right action; :func:`negative` keeps only what a grader marks low.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.model import ChatModel, Decision, Request
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.judging_prompts import adversary_chat

Grade = Callable[[Action], float | Awaitable[float | None] | None]


class Adversary(Protocol):
    """Writes a plausible wrong action."""

    @property
    def name(self) -> str: ...

    async def oppose(self, decision: Decision, good: Action, *, seed: int) -> Action | None:
        """An action that a careless agent might take instead of ``good``; ``None`` if none came.

        It is another act than ``good`` and possible on the screen, but may be right by accident.

        Args:
            decision: the context; ``good`` and the result are in its own indices.
            good: an action that is right here.
            seed: equal arguments give equal answers where the adversary draws at random.
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
    """Rejection sampling: the first proposal that the grader marks low, else ``None``.

    Args:
        adversary: who proposes.
        decision: context of the pair, in the agent's own view.
        good: the action judged right, in the same view.
        grade: sync or async; gets a proposal in the decision's own indices (map it with the
            view's ``to_screen`` for graders of the screen). ``None`` = cannot tell: not kept.
        seed: seeds all attempts.
        below: kept if the grade is lower.
        attempts: proposals to ask for. Each different one is graded once.
    """
    rng = random.Random(seed)
    tried = {good.key}
    for _ in range(attempts):
        proposal = await adversary.oppose(decision, good, seed=rng.getrandbits(31))
        if proposal is None or proposal.key in tried:
            continue
        tried.add(proposal.key)
        mark = grade(proposal)
        if inspect.isawaitable(mark):
            mark = await mark
        if mark is not None and mark < below:
            return proposal
    return None


class LLMAdversary:
    """Asks a language model for a mistake; keeps it only if the screen allows it."""

    def __init__(
        self,
        model: ChatModel,
        *,
        temperature: float = 0.8,
        max_tokens: int = 256,
        attempts: int = 2,
    ) -> None:
        """``attempts`` calls at most are made for one proposal."""
        self._model = model
        self._temperature, self._max_tokens, self._attempts = temperature, max_tokens, attempts

    @property
    def name(self) -> str:
        return f"LLM adversary ({self._model.name})"

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
    """Whether the action is possible on the screen: it points at an element that is there, works
    and, for ``input_text``, can be typed into. Bare coordinates never fit."""
    if action.x is not None:
        return False
    if action.index is None:
        return True
    element = observation.element(action.index)
    if element is None or not element.enabled:
        return False
    return element.editable if action.action_type == "input_text" else True


def with_label(action: Action, observation: Observation) -> Action:
    """The action with the label of the element it points at as its target, so that a negative
    cannot be told by a label that does not match."""
    element = observation.element(action.index)
    target = element.label or None if element is not None else None
    return msgspec.structs.replace(action, target=target)
