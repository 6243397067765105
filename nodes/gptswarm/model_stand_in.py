"""The language model as an operation sees it during one call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from swarm_ui.errors import ConfigError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, ChatModel, Completion, Request
from swarm_ui.node import NodeContext, NodeReply, derive

# What swarm.llm.llm.LLM takes where an operation says nothing.
MAX_TOKENS = 1000
TEMPERATURE = 0.2


class Ledger:
    """What the operations of one call asked their models, and what it cost."""

    __slots__ = ("_completions", "asked", "home", "prompts", "seed")

    def __init__(self, context: NodeContext) -> None:
        self.home = asyncio.get_running_loop()
        self.seed = context.seed
        self.asked = 0
        self.prompts: list[str] = []
        self._completions: list[Completion] = []

    def note(self, completions: Sequence[Completion]) -> None:
        self._completions.extend(completions)
        self.prompts.extend(completion.prompt for completion in completions)

    def reply(self, content: str, error: str | None = None) -> NodeReply:
        """The answer with all that is known about how it came to be.

        Several prompts are written one under the other. Usage is known of our models only.
        """
        spoken = self._completions
        return NodeReply(
            content=content,
            error=error,
            prompt="\n\n".join(self.prompts),
            usage=sum((completion.usage for completion in spoken), Usage()),
            adapter=spoken[-1].adapter if spoken else None,
            logprob=spoken[0].logprob if len(spoken) == 1 else None,
            seed=self.seed,
        )


class Asked:
    """Stands in for an operation's ``llm`` and keeps the ledger.

    With a ``model`` of ours, that one answers; else the operation's own does. Either is awaited on
    the caller's event loop, so that GPTSwarm's process-wide counters have one writer.
    """

    def __init__(
        self, llm: Any, ledger: Ledger, model: ChatModel | None, adapter: str | None
    ) -> None:
        self._llm, self._ledger, self._model, self._adapter = llm, ledger, model, adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    async def agen(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        work = self._answer(messages, *args, **kwargs)
        if _running_loop() is self._ledger.home:
            return await work
        return await asyncio.wrap_future(_handed_to(self._ledger.home, work))

    def gen(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if self._model is None:
            self._ledger.prompts.append(_text(messages))
            return self._llm.gen(messages, *args, **kwargs)
        if _running_loop() is self._ledger.home:
            raise ConfigError(
                "a GPTSwarm operation asks its model with gen(), which would hold the event loop "
                "for ever; wrap it with blocking=True"
            )
        work = self._generate(self._model, messages, *args, **kwargs)
        return _handed_to(self._ledger.home, work).result()

    async def _answer(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if self._model is not None:
            return await self._generate(self._model, messages, *args, **kwargs)
        self._ledger.prompts.append(_text(messages))
        return await self._llm.agen(messages, *args, **kwargs)

    async def _generate(
        self,
        model: ChatModel,
        messages: Any,
        max_tokens: int | None = None,
        temperature: float | None = None,
        num_comps: int | None = None,
    ) -> str | list[str]:
        samples, ledger = num_comps or 1, self._ledger
        requests = [
            Request(
                chat=_chat(messages),
                adapter=self._adapter,
                temperature=TEMPERATURE if temperature is None else temperature,
                max_tokens=max_tokens or MAX_TOKENS,
                seed=derive(ledger.seed, "gptswarm", ledger.asked + k),
            )
            for k in range(samples)
        ]
        ledger.asked += samples
        completions = await model.generate(requests)
        ledger.note(completions)
        texts = [completion.text for completion in completions]
        return texts[0] if samples == 1 else texts


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _handed_to(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(work, loop)


def _chat(messages: Any) -> tuple[ChatMessage, ...]:
    """GPTSwarm's messages as ours; a string is what the user says."""
    if isinstance(messages, str):
        return (ChatMessage("user", messages),)
    # Some of GPTSwarm's prompt sets have no prompt for an operation, and give None.
    return tuple(ChatMessage(message.role, message.content or "") for message in messages)


def _text(messages: Any) -> str:
    """A prompt for the trace."""
    if isinstance(messages, str):
        return messages
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)
