"""A model behind an OpenAI-compatible endpoint: OpenAI, vLLM, SGLang, llama.cpp, Ollama…"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Decision, Request
from swarm_ui.nodes.openai_endpoint import OPENAI_URL, Endpoint, Limits
from swarm_ui.nodes.openai_wire import Failure
from swarm_ui.prompts import as_chat, decision_chat, transcript

_CHECK_SECONDS = 5.0


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a model has used up so far."""

    calls: int = 0
    """Requests sent, retries included."""
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds_waiting: float = 0.0
    """Summed over calls: waiting for a slot, the rate limit or the next attempt."""


class OpenAIModel:
    """A :class:`~swarm_ui.model.ChatModel` on an OpenAI-compatible endpoint.

    One object serves one event loop at a time (``close`` it before it goes to another), and all
    agents that share it share its limits. The key is read from the environment when a request is
    sent and is never part of a message, a repr or a trace.

    Args:
        model: name the endpoint serves.
        base_url: address up to ``/v1``; else ``OPENAI_BASE_URL``; else OpenAI's.
        api_key_env: environment variable with the key; a given ``base_url`` works without.
        rate_limit: requests that may be sent in ``period`` seconds; ``None``: no limit.
        concurrency: requests on their way at the same time.
        timeout: seconds for one attempt, from sending to the last byte.
        retries: attempts after the first, for 408, 409, 425, 429, 5xx, timeouts, broken
            connections and malformed replies.
        backoff: seconds before the first retry, doubled each time and jittered; what the server
            asks for (``Retry-After``) goes first.
        longest_wait: seconds; a server that asks for more is not waited for.
        max_calls, max_tokens_total: the budget, in requests sent and in tokens. A request that
            could cross it is not sent. Tokens of a prompt are guessed beforehand, three
            characters each; where a server does not count, the guess and ``max_tokens`` count.
        adapter_names: served name of each adapter, read at every call; ``None``: an adapter is
            served under its own name, as vLLM does.
        extra_body: more fields of the request body, such as ``chat_template_kwargs``.
        logprobs: ask for token probabilities, to fill ``Completion.logprob``.
        token_field: the name the endpoint wants for the limit of tokens.
        render: how a decision becomes a chat.
        jitter: randomness of the waits between attempts; it never changes an answer.

    Raises:
        ConfigError: an argument is out of range.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key_env: str = "OPENAI_API_KEY",
        rate_limit: int | None = None,
        period: float = 1.0,
        concurrency: int = 16,
        timeout: float = 60.0,
        retries: int = 4,
        backoff: float = 0.5,
        longest_wait: float = 60.0,
        max_calls: int | None = None,
        max_tokens_total: int | None = None,
        adapter_names: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
        logprobs: bool = False,
        token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        render: Callable[[Decision], tuple[ChatMessage, ...]] = decision_chat,
        jitter: random.Random | None = None,
    ) -> None:
        limits = Limits(
            rate_limit=rate_limit,
            period=period,
            concurrency=concurrency,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
            longest_wait=longest_wait,
        )
        self.name = model
        self.adapter_names = adapter_names
        self._endpoint = Endpoint(
            model,
            base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL,
            api_key_env,
            limits,
            Budget(max_calls, max_tokens_total),
            jitter or random.Random(),
        )
        self._extra_body = dict(extra_body or {})
        self._logprobs = logprobs
        self._token_field = token_field
        self._render = render
        self._usage = Usage()

    def __repr__(self) -> str:
        return f"OpenAIModel({self._endpoint.where})"

    @property
    def spent(self) -> Spent:
        """Counters so far."""
        return Spent(
            calls=self._endpoint.budget.calls,
            retries=self._endpoint.retried,
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens,
            seconds_waiting=self._endpoint.waited,
        )

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Send all requests concurrently; one completion each, in order.

        Raises:
            BudgetExceeded: a request could cross the budget; it was not sent.
            ModelError: one request failed for good; the others are cancelled.
        """
        tasks = [asyncio.ensure_future(self._complete(request)) for request in requests]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def check(self) -> tuple[str, ...]:
        """Ask once, quickly, which models are served; empty if the endpoint keeps no list.

        Raises:
            ModelError: nobody answers there, the key is refused, or the model is not served.
        """
        served = await self._endpoint.served(_CHECK_SECONDS)
        if served is None or self.name in served:
            return served or ()
        names = ", ".join(served[:8]) + (", …" if len(served) > 8 else "")
        problem = Failure(f"a list of: {names or 'nothing'}", "name one of them", again=False)
        raise self._endpoint.error("the model is not served", f"'{self.name}'", problem)

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        await self._endpoint.close()

    async def _complete(self, request: Request) -> Completion:
        chat = as_chat(request, self._render)
        served = self._served(request.adapter)
        prompt = transcript(chat)
        most = request.max_tokens + (len(prompt) + 2) // 3
        reply = await self._endpoint.chat(self._body(request, chat, served), most)
        usage = reply.usage or Usage()
        self._usage += usage
        return Completion(
            text=reply.text,
            prompt=prompt,
            usage=usage,
            logprob=reply.logprob,
            model=reply.model or served,
            adapter=served if request.adapter is not None else None,
        )

    def _body(
        self, request: Request, chat: Sequence[ChatMessage], served: str
    ) -> dict[str, object]:
        body: dict[str, object] = {
            "model": served,
            "messages": [{"role": turn.role, "content": turn.content} for turn in chat],
            "temperature": request.temperature,
            "seed": request.seed,
            self._token_field: request.max_tokens,
        }
        if self._logprobs:
            body["logprobs"] = True
        if request.json_schema is not None:
            schema = json.loads(request.json_schema)
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": schema, "strict": True},
            }
        if self._extra_body:
            body["extra_body"] = self._extra_body
        return body

    def _served(self, adapter: str | None) -> str:
        if adapter is None:
            return self.name
        if self.adapter_names is None:
            return adapter
        if adapter not in self.adapter_names:
            known = ", ".join(self.adapter_names) or "none"
            raise ModelError(
                f"{self._endpoint.where}: expected an adapter out of: {known}; got '{adapter}'. "
                "Load it on the server and add its served name to adapter_names"
            )
        return self.adapter_names[adapter]
