"""A language model as critic, which judges the proposals of all agents in one call per round.

After CollabUIAgents (arXiv 2502.14496): the critic sees goal, history, screen and the complete
replies of the agents, but not the next screen or the outcome. The paper does not say how scores
become the 0/1 of the reward matrix; the threshold is our default.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import MutableMapping, Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.budget import Budget, most_tokens, total
from swarm_ui.credit import CreditTable
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.json_text import encodable, objects
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, ChatModel, Request
from swarm_ui.optim.credit.judging_prompts import critic_chat
from swarm_ui.prompts import transcript
from swarm_ui.trace.records import Trace

_AGAIN = (
    "No scores could be read from that. Reply again: a short rationale, then on the last line one "
    "JSON object that maps every agent's name to a number from 0 to 1."
)
_AS_OBJECT = (
    'Write all of it as one JSON object: {"rationale": "<the paragraph>", "scores": <the object '
    "that maps every agent's name to its score>}"
)

Output = tuple[str, str, Action | None]


class Verdict(msgspec.Struct, frozen=True):
    """A critic's reply; each score is in [0, 1], or ``None``."""

    scores: dict[str, float | None]
    rationale: str

    @property
    def empty(self) -> bool:
        return all(score is None for score in self.scores.values())


class LLMCritic:
    """A :class:`~swarm_ui.credit.CreditAssigner` that asks a language model."""

    def __init__(
        self,
        model: ChatModel,
        *,
        threshold: float | None = 0.5,
        max_tokens: int = 512,
        cache: MutableMapping[str, str] | None = None,
        schema: bool = False,
        budget: Budget | None = None,
    ) -> None:
        """
        Args:
            model: gives the scores. A model in this process is greedy; an endpoint uses its own
                temperature.
            threshold: a score above it becomes 1.0, one below it 0.0, and one equal to it
                ("cannot tell") ``None``. ``None`` keeps the scores as they are.
            max_tokens: the maximum length of a reply.
            cache: readable replies by model, settings and exact prompt. Give one to share it, also
                among critics with different models, or to store it.
            schema: send a JSON schema that names every agent, for servers with structured output.
            budget: a budget for the critic only, in addition to the model's own; may be shared.

        Raises:
            ConfigError: the threshold is not in [0, 1].
        """
        if threshold is not None and not 0.0 <= threshold <= 1.0:
            raise ConfigError(f"LLMCritic: threshold must be in [0, 1] or None, got {threshold}")
        self.name = f"LLM critic ({model.name})"
        self._model, self._threshold, self._max_tokens = model, threshold, max_tokens
        self._cache: MutableMapping[str, str] = {} if cache is None else cache
        self._schema, self._budget = schema, budget or Budget()
        self._asking: dict[str, asyncio.Event] = {}
        self.calls = 0
        """Calls to the model so far, without replies from the cache."""

    async def assign(self, trace: Trace, state: object | None = None) -> CreditTable:
        """Credit for every message; ``None`` for agents that failed or that the critic left out.

        After an unreadable reply the model is asked once more. If that reply is unreadable too,
        the round is unscored.

        Raises:
            ModelError: the model cannot answer.
            BudgetExceeded: the budget does not allow the call; nothing was sent.
        """
        verdicts = await together([self._round(trace, r) for r in range(trace.rounds)])
        return CreditTable(
            values=tuple(
                tuple(self._bit(verdict.scores.get(agent)) for agent in trace.agents)
                for verdict in verdicts
            ),
            source=self.name,
            rationale=tuple(verdict.rationale for verdict in verdicts),
        )

    async def _round(self, trace: Trace, round: int) -> Verdict:
        outputs = outputs_of(trace, round)
        if not outputs:
            return Verdict({}, "there is no reply to judge")
        agents = [agent for agent, _, _ in outputs]
        chat = critic_chat(trace.observation, outputs)
        if self._schema:
            told = ChatMessage("user", f"{chat[-1].content}\n\n{_AS_OBJECT}")
            chat = (*chat[:-1], told)
        asked = [self._model.name, self._max_tokens, self._schema, transcript(chat)]
        return await self._once(json.dumps(asked), chat, agents)

    async def _once(self, key: str, chat: tuple[ChatMessage, ...], agents: list[str]) -> Verdict:
        """The verdict from the cache, or from a call. Equal concurrent questions make one call."""
        while key not in self._cache:
            if key in self._asking:
                await self._asking[key].wait()
                continue
            self._asking[key] = asyncio.Event()
            try:
                return await self._asked(key, chat, agents)
            finally:
                self._asking.pop(key).set()
        return read_verdict(self._cache[key], agents)

    async def _asked(self, key: str, chat: tuple[ChatMessage, ...], agents: list[str]) -> Verdict:
        for attempt in range(2):
            reply = await self._ask(chat, agents, seed=attempt)
            verdict = read_verdict(reply, agents)
            if not verdict.empty:
                self._cache[key] = reply
                break
            chat += (ChatMessage("assistant", reply), ChatMessage("user", _AGAIN))
        return verdict

    async def _ask(self, chat: tuple[ChatMessage, ...], agents: list[str], seed: int) -> str:
        request = Request(
            chat=chat,
            max_tokens=self._max_tokens,
            seed=seed,
            json_schema=verdict_schema(agents) if self._schema else None,
        )
        prompt = most_tokens(transcript(chat))
        most = Usage(prompt_tokens=prompt, completion_tokens=self._max_tokens)
        hold, used = self._budget.reserve(most, self.name), None
        self.calls += 1
        try:
            (completion,) = await self._model.generate([request])
            # A model that reports no usage counts with all that was reserved.
            used = completion.usage if total(completion.usage) else None
        finally:
            self._budget.settle(hold, used)
        return completion.text

    def _bit(self, score: float | None) -> float | None:
        if score is None or self._threshold is None:
            return score
        if score == self._threshold:
            return None
        return 1.0 if score > self._threshold else 0.0


def outputs_of(trace: Trace, round: int) -> list[Output]:
    """The replies of a round: agent, text, and proposal in the screen's indices.

    Agents without a reply are left out, because a failed call is not a wrong answer.
    """
    said = {m.sender: m for m in trace.messages if m.round == round}
    return [
        (agent, m.content, m.action)
        for agent in trace.agents
        if (m := said.get(agent)) is not None and (m.content.strip() or m.action is not None)
    ]


def verdict_schema(agents: Sequence[str]) -> str:
    """JSON schema of a verdict. The rationale comes first, so that it is written before scores."""
    scores = _closed({agent: {"type": "number", "minimum": 0, "maximum": 1} for agent in agents})
    return json.dumps(_closed({"rationale": {"type": "string"}, "scores": scores}))


def _closed(properties: dict[str, object]) -> dict[str, object]:
    """The schema of an object with exactly these properties."""
    required = list(properties)
    kind = {"type": "object", "properties": properties}
    return {**kind, "required": required, "additionalProperties": False}


def read_verdict(reply: str, agents: Sequence[str]) -> Verdict:
    """The verdict in a critic's reply, which need not have the requested form.

    The last JSON object that names an agent is read. It may be ``{"scores": {...}}`` or contain
    ``{"agent": {"score": 1}}``. A value that is not a number in [0, 1] becomes ``None``, and the
    rationale names it.
    """
    wanted = {_plain(agent): agent for agent in agents}
    scores: dict[str, float | None] = dict.fromkeys(agents)
    for found in reversed(list(objects(reply))):
        inner = found.value.get("scores", found.value)
        given = inner if isinstance(inner, dict) else found.value
        named = {wanted[_plain(k)]: v for k, v in given.items() if _plain(str(k)) in wanted}
        if not named:
            continue
        for agent, value in named.items():
            scores[agent] = _score(value)
        odd = ", ".join(f"{a}: {str(v)[:40]!r}" for a, v in named.items() if scores[a] is None)
        inside = found.value.get("rationale")
        before = inside if isinstance(inside, str) else reply[: found.start]
        text = " ".join(before.split()).removeprefix("Rationale:").strip()
        told = f"{text} [not a score in 0..1: {odd}]".strip() if odd else text
        return Verdict(scores, encodable(told))
    return Verdict(scores, f"[no scores in the reply: {' '.join(reply.split())[:200]!r}]")


def _score(value: object) -> float | None:
    if isinstance(value, dict):
        value = value.get("score")
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= 1 else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-]+", "", name).casefold()
