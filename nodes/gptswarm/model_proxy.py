"""Replaces the language model of an operation during one call."""

from __future__ import annotations

import asyncio
from typing import Any

from swarm_ui.errors import ConfigError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, ChatModel, Completion, Request
from swarm_ui.node import NodeContext, NodeReply, derive

# The defaults of swarm.llm.llm.LLM.
MAX_TOKENS = 1000
TEMPERATURE = 0.2


class CallUsage:
    """The prompts and the usage of the operations of one call."""

    def __init__(self, context: NodeContext) -> None:
        self.loop = asyncio.get_running_loop()
        self.seed = context.seed
        self.requests = 0
        self.prompts: list[str] = []
        self.completions: list[Completion] = []

    def reply(self, content: str, error: str | None = None) -> NodeReply:
        """The reply of the node, with the prompts joined. Usage is only known for models of
        this library."""
        done = self.completions
        return NodeReply(
            content=content,
            error=error,
            prompt="\n\n".join(self.prompts),
            usage=sum((completion.usage for completion in done), Usage()),
            adapter=done[-1].adapter if done else None,
            logprob=done[0].logprob if len(done) == 1 else None,
            seed=self.seed,
        )


class ModelProxy:
    """Replaces an operation's ``llm`` during one call, and records its usage.

    If our ``model`` is given, it answers; otherwise the operation's own model does. Both are
    awaited on the caller's event loop, so that only one thread writes to GPTSwarm's process-wide
    counters.
    """

    def __init__(
        self, llm: Any, usage: CallUsage, model: ChatModel | None, adapter: str | None
    ) -> None:
        self._llm, self._usage, self._model, self._adapter = llm, usage, model, adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)

    async def agen(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        work = self._answer(messages, *args, **kwargs)
        if _running_loop() is self._usage.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._usage.loop))

    def gen(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if self._model is None:
            self._usage.prompts.append(_text(messages))
            return self._llm.gen(messages, *args, **kwargs)
        if _running_loop() is self._usage.loop:
            raise ConfigError(
                "a GPTSwarm operation calls its model with gen(), which would block the event loop "
                "for ever; pass blocking=True to the node that runs the operation"
            )
        work = self._generate(self._model, messages, *args, **kwargs)
        return asyncio.run_coroutine_threadsafe(work, self._usage.loop).result()

    async def _answer(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if self._model is not None:
            return await self._generate(self._model, messages, *args, **kwargs)
        self._usage.prompts.append(_text(messages))
        return await self._llm.agen(messages, *args, **kwargs)

    async def _generate(
        self,
        model: ChatModel,
        messages: Any,
        max_tokens: int | None = None,
        temperature: float | None = None,
        num_comps: int | None = None,
    ) -> str | list[str]:
        samples, usage = num_comps or 1, self._usage
        requests = [
            Request(
                chat=_chat(messages),
                adapter=self._adapter,
                temperature=TEMPERATURE if temperature is None else temperature,
                max_tokens=max_tokens or MAX_TOKENS,
                seed=derive(usage.seed, "gptswarm", usage.requests + k),
            )
            for k in range(samples)
        ]
        usage.requests += samples
        completions = await model.generate(requests)
        usage.completions += completions
        usage.prompts += [completion.prompt for completion in completions]
        texts = [completion.text for completion in completions]
        return texts[0] if samples == 1 else texts


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _chat(messages: Any) -> tuple[ChatMessage, ...]:
    """Convert GPTSwarm's messages to this library's; a string is a message of the user."""
    if isinstance(messages, str):
        return (ChatMessage("user", messages),)
    # Some of GPTSwarm's prompt sets return None, if they have no prompt for an operation.
    return tuple(ChatMessage(message.role, message.content or "") for message in messages)


def _text(messages: Any) -> str:
    """A prompt for the trace."""
    if isinstance(messages, str):
        return messages
    return "\n\n".join(f"{message.role}: {message.content}" for message in messages)
