"""The roles as language models."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.json_text import objects
from swarm_ui.model import ChatMessage, ChatModel, Decision, Request
from swarm_ui.optim.adversary import adversary_chat
from swarm_ui.optim.credit.llm import critic_chat, read_verdict
from swarm_ui.optim.stage1.corpus.config import CorpusConfig
from swarm_ui.optim.stage1.corpus.prompts import instructions_chat, judging_chat, questions_chat
from swarm_ui.optim.stage1.corpus.quality import canonical
from swarm_ui.optim.stage1.corpus.roles import Item, Items, Reply, WalkState
from swarm_ui.optim.stage1.corpus.samples import short_hash
from swarm_ui.prompts import decision_chat, format_named

Chat = tuple[ChatMessage, ...]


class _LLMRole:
    """Sends one request at a time. Every method raises ``ModelError`` if the model fails."""

    def __init__(self, model: ChatModel, config: CorpusConfig) -> None:
        self.name, self._model, self._config = model.name, model, config

    async def _ask(self, chat: Chat, *, seed: int, temperature: float, divisor: int = 1) -> Reply:
        """The reply, of at most ``max_tokens // divisor`` tokens."""
        request = Request(
            chat=chat,
            temperature=temperature,
            max_tokens=self._config.max_tokens // divisor,
            seed=seed % 2**31,
        )
        (completion,) = await self._model.generate([request])
        return Reply(completion.text, short_hash(completion.prompt))


class LLMAgent(_LLMRole):
    """A language model as :class:`~swarm_ui.optim.stage1.corpus.roles.UIAgent`."""

    async def act(
        self, state: WalkState, decision: Decision, *, seed: int, temperature: float
    ) -> Reply:
        chat = decision_chat(decision)
        return await self._ask(chat, seed=seed, temperature=temperature, divisor=4)

    async def questions(self, state: WalkState, *, seed: int) -> Items:
        chat = questions_chat(state.observation, self._config.questions)
        return await self._items(chat, seed, _question)

    async def instructions(self, state: WalkState, *, seed: int) -> Items:
        chat = instructions_chat(state.observation, self._config.instructions)
        return await self._items(chat, seed, _instruction)

    async def _items(
        self, chat: Chat, seed: int, parse: Callable[[dict[str, object]], Item | None]
    ) -> Items:
        reply = await self._ask(chat, seed=seed, temperature=self._config.temperature)
        parsed = [parse(found) for found in _json_objects(reply.text)]
        items = [item for item in parsed if item is not None]
        malformed = len(parsed) - len(items)
        return Items(items, malformed if items else max(1, malformed), reply.prompt)


class ModelWalker:
    """A trained model as :class:`~swarm_ui.optim.stage1.corpus.roles.Walker`."""

    def __init__(self, model: ChatModel, adapter: str | None, config: CorpusConfig) -> None:
        """``adapter``: name of the adapter to answer with; ``None``: the base model."""
        self.name = model.name
        self._model, self._adapter, self._config = model, adapter, config

    async def walk(self, decision: Decision, *, seed: int) -> Action | None:
        request = Request(
            decision=decision,
            adapter=self._adapter,
            max_tokens=self._config.max_tokens // 4,
            seed=seed % 2**31,
        )
        (completion,) = await self._model.generate([request])
        form = format_named(completion.prompt_format)
        action = form.parse(completion.text, decision.observation)
        return action if isinstance(action, Action) else None


class LLMAdversary(_LLMRole):
    """A language model as :class:`~swarm_ui.optim.stage1.corpus.roles.Adversary`."""

    async def oppose(self, state: WalkState, good: Action, *, seed: int) -> Reply | None:
        chat = adversary_chat(Decision(observation=state.observation), good)
        temperature = self._config.temperature
        return await self._ask(chat, seed=seed, temperature=temperature, divisor=4)


class LLMJudge(_LLMRole):
    """A language model as :class:`~swarm_ui.optim.stage1.corpus.roles.Judge`.

    If a verdict cannot be parsed, it is requested once more. If that fails too, the items get no
    score.
    """

    async def score_answers(self, state: WalkState, items: Sequence[Item]) -> list[float | None]:
        names = [f"item_{k}" for k in range(len(items))]
        pairs = [(item.asked, item.answer) for item in items]
        return await self._scores(judging_chat(state.observation, pairs, names), names)

    async def score_actions(
        self, state: WalkState, replies: Sequence[str], *, seed: int
    ) -> list[float | None]:
        """One request for all replies, in random order, so that positions give no information."""
        order = list(range(len(replies)))
        random.Random(seed).shuffle(order)
        names = [f"agent_{k}" for k in range(len(replies))]
        outputs = []
        for name, k in zip(names, order, strict=True):
            read = canonical(replies[k], state.observation)
            outputs.append((name, replies[k], None if isinstance(read, str) else read[1]))
        scores = await self._scores(critic_chat(state.observation, outputs), names)
        return [scores[order.index(k)] for k in range(len(replies))]

    async def _scores(self, chat: Chat, names: list[str]) -> list[float | None]:
        for attempt in range(2):
            reply = await self._ask(chat, seed=attempt, temperature=0.0)
            verdict = read_verdict(reply.text, names)
            if not verdict.empty:
                return [verdict.scores[name] for name in names]
        return [None] * len(names)


def _question(found: dict[str, object]) -> Item | None:
    asked, answer = found.get("question"), found.get("answer")
    if not isinstance(asked, str) or not isinstance(answer, str):
        return None
    return Item(asked, answer, "element" if found.get("kind") == "element" else "screen")


def _instruction(found: dict[str, object]) -> Item | None:
    asked, reason, action = (found.get(key) for key in ("instruction", "reason", "action"))
    if not (isinstance(asked, str) and isinstance(reason, str) and isinstance(action, dict)):
        return None
    return Item(asked, f"Reason: {reason}\nAction: {msgspec.json.encode(action).decode()}")


def _json_objects(text: str) -> Iterator[dict[str, object]]:
    """The JSON objects of a reply; if an object contains lists of objects, these instead."""
    for found in objects(text):
        lists = [value for value in found.value.values() if isinstance(value, list)]
        inner = [entry for value in lists for entry in value if isinstance(entry, dict)]
        yield from inner or [found.value]
