"""The three roles, played by language models behind the one seam."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.json_text import objects
from swarm_ui.model import ChatMessage, ChatModel, Decision, Request
from swarm_ui.optim.credit.assigners.llm_critic import read_verdict
from swarm_ui.optim.credit.judging_prompts import adversary_chat, critic_chat
from swarm_ui.optim.stage1.corpus.corpus_config import CorpusConfig
from swarm_ui.optim.stage1.corpus.corpus_prompts import asking_chat, inventing_chat, judging_chat
from swarm_ui.optim.stage1.corpus.quality import canonical
from swarm_ui.optim.stage1.corpus.roles import Item, Said, Scene, Written
from swarm_ui.optim.stage1.corpus.samples import short_hash
from swarm_ui.prompts import decision_chat


class _Asking:
    """Asks a model one thing at a time."""

    def __init__(self, model: ChatModel, config: CorpusConfig) -> None:
        self._model, self._config = model, config

    @property
    def name(self) -> str:
        return self._model.name

    async def _ask(
        self, chat: tuple[ChatMessage, ...], *, seed: int = 0, temperature: float, share: int = 1
    ) -> Said:
        request = Request(
            chat=chat,
            temperature=temperature,
            max_tokens=self._config.max_tokens // share,
            seed=seed % 2**31,
        )
        (completion,) = await self._model.generate([request])
        return Said(completion.text, short_hash(completion.prompt))


class LLMAgent(_Asking):
    """A language model as UI agent; an :class:`~swarm_ui.optim.stage1.corpus.roles.UIAgent`."""

    async def act(self, scene: Scene, decision: Decision, *, seed: int, temperature: float) -> Said:
        """Reads what agents read when they act. Raises ``ModelError`` if it cannot answer."""
        chat = decision_chat(decision)
        return await self._ask(chat, seed=seed, temperature=temperature, share=4)

    async def questions(self, scene: Scene, *, seed: int) -> Written:
        """Raises ``ModelError`` if it cannot answer."""
        chat = asking_chat(scene.observation, self._config.questions)
        said = await self._ask(chat, seed=seed, temperature=self._config.temperature)
        items, malformed = [], 0
        for found in _values(said.text):
            asked, answer, kind = (found.get(key) for key in ("question", "answer", "kind"))
            if isinstance(asked, str) and isinstance(answer, str):
                items.append(Item(asked, answer, "element" if kind == "element" else "screen"))
            else:
                malformed += 1
        return Written(items, malformed if items else max(1, malformed), said.prompt)

    async def instructions(self, scene: Scene, *, seed: int) -> Written:
        """Raises ``ModelError`` if it cannot answer."""
        chat = inventing_chat(scene.observation, self._config.instructions)
        said = await self._ask(chat, seed=seed, temperature=self._config.temperature)
        items, malformed = [], 0
        for found in _values(said.text):
            asked, reason, action = (found.get(key) for key in ("instruction", "reason", "action"))
            if isinstance(asked, str) and isinstance(reason, str) and isinstance(action, dict):
                written = msgspec.json.encode(action).decode()
                items.append(Item(asked, f"Reason: {reason}\nAction: {written}"))
            else:
                malformed += 1
        return Written(items, malformed if items else max(1, malformed), said.prompt)


class LLMOpponent(_Asking):
    """A language model as adversary; an :class:`~swarm_ui.optim.stage1.corpus.roles.Opponent`."""

    async def oppose(self, scene: Scene, good: Action, *, seed: int) -> Said | None:
        """Raises ``ModelError`` if it cannot answer."""
        chat = adversary_chat(Decision(observation=scene.observation), good)
        temperature = self._config.temperature
        return await self._ask(chat, seed=seed, temperature=temperature, share=4)


class LLMJudge(_Asking):
    """A language model as critic; a :class:`~swarm_ui.optim.stage1.corpus.roles.Judge`.

    What cannot be read is asked for once more, then left without a score.
    """

    async def answers(self, scene: Scene, items: Sequence[Item]) -> list[float | None]:
        """One call for all. Raises ``ModelError`` if it cannot answer."""
        names = [f"item_{k}" for k in range(len(items))]
        pairs = [(item.asked, item.answer) for item in items]
        return await self._scores(judging_chat(scene.observation, pairs, names), names)

    async def acts(self, scene: Scene, replies: Sequence[str], *, seed: int) -> list[float | None]:
        """One call for all, in a random order, so that no place tells which is which."""
        order = list(range(len(replies)))
        random.Random(seed).shuffle(order)
        names = [f"agent_{k}" for k in range(len(replies))]
        outputs = []
        for name, place in zip(names, order, strict=True):
            read = canonical(replies[place], scene.observation)
            outputs.append((name, replies[place], None if isinstance(read, str) else read[1]))
        scores = await self._scores(critic_chat(scene.observation, outputs), names)
        return [scores[order.index(place)] for place in range(len(replies))]

    async def _scores(self, chat: tuple[ChatMessage, ...], names: list[str]) -> list[float | None]:
        for attempt in range(2):
            said = await self._ask(chat, seed=attempt, temperature=0.0)
            verdict = read_verdict(said.text, names)
            if not verdict.empty:
                return [verdict.scores[name] for name in names]
        return [None] * len(names)


def _values(text: str) -> Iterator[dict[str, object]]:
    """The objects of a reply, also where they stand in a list inside one."""
    for found in objects(text):
        lists = [value for value in found.value.values() if isinstance(value, list)]
        inner = [entry for value in lists for entry in value if isinstance(entry, dict)]
        yield from inner or [found.value]
