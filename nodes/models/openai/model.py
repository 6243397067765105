"""A model behind an OpenAI-compatible endpoint: OpenAI, vLLM, SGLang, llama.cpp, Ollama…"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Literal

import msgspec

from swarm_ui.budget import Budget, Price, check_prices
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Decision, Request
from swarm_ui.nodes.models.openai.endpoint import OPENAI_URL, Ask, Endpoint
from swarm_ui.nodes.models.openai.rate_limits import RateLimits
from swarm_ui.nodes.models.openai.replies import ChatReply, Failure, Refused
from swarm_ui.nodes.models.openai.request_body import (
    completions,
    messages,
    prompt_tokens,
    schema_format,
    usage_of,
)
from swarm_ui.nodes.models.openai.served_adapters import ServedNames
from swarm_ui.prompts import as_chat, decision_chat, transcript, with_picture, with_schema

_CHECK_SECONDS = 5.0
_UNABLE = frozenset({400, 404, 422, 501})
"""How servers say that they do not know a field of the request."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a model has used up so far."""

    calls: int = 0
    """Requests sent, retries included."""
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds_waiting: float = 0.0
    """Summed over calls: waiting for a slot, the rate limits or the next attempt."""
    cost: float | None = None
    """Money, in the currency of ``prices``; ``None`` if the model has no price. A call whose
    usage is not known (cut off, timed out, given up) counts with the most it may have used."""


class OpenAIModel:
    """A model on an OpenAI-compatible endpoint, which can also stream and sample.

    It is a :class:`~swarm_ui.model.ChatModel`, a :class:`~swarm_ui.model.StreamingModel`, a
    :class:`~swarm_ui.model.SamplingModel` and a :class:`~swarm_ui.model.VersionedModel`. One
    object serves one event loop at a time (``close`` it before it goes to another), and all
    agents that share it share its limits and its budget. The key is never part of a message, a
    repr or a trace.

    Args:
        model: name the endpoint serves.
        base_url: address up to ``/v1``; else ``OPENAI_BASE_URL``; else OpenAI's.
        api_key: the key; ``None``: it is read from the environment when the first request is sent.
        api_key_env: environment variable with the key; a given ``base_url`` works without.
        rate_limit: requests that may be sent in ``period`` seconds; ``None``: no limit.
        tokens_per_minute: tokens that requests may use in any minute, a sixth of it at once and
            the rest evenly, first come, first served; ``None``: no limit. A request counts with
            the most it may use until it is answered, then with what it did use.
        concurrency: requests on their way at the same time.
        timeout: seconds for one attempt, from sending to the last byte; of a stream, to each
            next piece.
        retries: attempts after the first, for 408, 409, 425, 429, 5xx, timeouts, broken
            connections and malformed replies.
        backoff: seconds before the first retry, doubled each time and jittered; what the server
            asks for (``Retry-After``) goes first.
        longest_wait: seconds; a server that asks for more is not waited for.
        max_calls, max_tokens_total, max_cost: the budget, in requests sent, in tokens and in
            money. A request that could cross it is not sent. Tokens of a prompt are guessed
            beforehand (:func:`~swarm_ui.budget.guess_tokens`). Where a server does not count, and
            where a call was cut off, timed out or given up, the guess and ``max_tokens`` count.
        prices: what models cost, by served name; an adapter without an own price costs what
            ``model`` does.
        adapter_names: served name of each adapter, read at every call; ``None``: an adapter is
            served under its own name, as vLLM does.
        extra_body: more fields of the request body, such as ``chat_template_kwargs``.
        logprobs: ask for token probabilities, to fill ``Completion.logprob``.
        vision: the model can see: the screenshot of a decision, if there is one, goes with it.
        token_field: the name the endpoint wants for the limit of tokens.
        render: how a decision becomes a chat.
        jitter: randomness of the waits between attempts; it never changes an answer.

    Raises:
        ConfigError: an argument is out of range, or ``max_cost`` is set without a price.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        rate_limit: int | None = None,
        period: float = 1.0,
        tokens_per_minute: int | None = None,
        concurrency: int = 16,
        timeout: float = 60.0,
        retries: int = 4,
        backoff: float = 0.5,
        longest_wait: float = 60.0,
        max_calls: int | None = None,
        max_tokens_total: int | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, Price] | None = None,
        adapter_names: Mapping[str, str] | None = None,
        extra_body: Mapping[str, object] | None = None,
        logprobs: bool = False,
        vision: bool = False,
        token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        render: Callable[[Decision], tuple[ChatMessage, ...]] = decision_chat,
        jitter: random.Random | None = None,
    ) -> None:
        limits = RateLimits(
            rate_limit=rate_limit,
            period=period,
            tokens_per_minute=tokens_per_minute,
            concurrency=concurrency,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
            longest_wait=longest_wait,
        )
        _check_texts(model, api_key, api_key_env, extra_body)
        self.name = model
        self._prices = check_prices(prices, model, max_cost)
        self._endpoint = Endpoint(
            model,
            base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL,
            key=api_key,
            key_env=api_key_env,
            limits=limits,
            budget=Budget(max_calls, max_tokens_total, max_cost),
            rng=jitter or random.Random(),
        )
        self._adapters = ServedNames(model, adapter_names, self._endpoint.where)
        self._extra_body = dict(extra_body or {})
        self._logprobs, self._vision = logprobs, vision
        self._token_field = token_field
        self._render = render
        self._usage = Usage()
        self._unable: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"OpenAIModel({self._endpoint.where})"

    @property
    def adapter_names(self) -> Mapping[str, str] | None:
        """Served name of each adapter, as given."""
        return self._adapters.names

    @property
    def leased(self) -> frozenset[str]:
        """Served names that runs hold on to; do not unload them from the server yet."""
        return self._adapters.leased

    @property
    def spent(self) -> Spent:
        """Counters so far."""
        return Spent(
            calls=self._endpoint.budget.calls,
            retries=self._endpoint.retried,
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens,
            seconds_waiting=self._endpoint.waited,
            cost=self._endpoint.budget.cost if self.name in self._prices else None,
        )

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Send all requests concurrently; one completion each, in order.

        A server that cannot hold its reply to a request's ``json_schema`` gets the schema in the
        words of the prompt instead, now and from then on. The reply is not changed or checked.

        Raises:
            BudgetExceeded: a request could cross the budget; it was not sent.
            ModelError: one request failed for good; the others are cancelled.
        """
        tasks = [asyncio.ensure_future(self._complete(request)) for request in requests]
        try:
            return [samples[0] for samples in await asyncio.gather(*tasks)]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def sample(self, request: Request, n: int) -> list[Completion]:
        """``n`` samples of one request, in one call where the server knows ``n``.

        The tokens of the prompt count in the first sample only. Samples that the server does not
        give are asked for one by one, each paying the prompt, with the seeds that follow the
        request's.

        Raises:
            ConfigError: ``n`` is not positive.
            BudgetExceeded, ModelError: as :meth:`generate`.
        """
        if n < 1:
            raise ConfigError(f"{self._endpoint.where}: n must be >= 1, got {n}")
        if n == 1 or "n" in self._unable:
            return await self._one_by_one(request, range(n))
        try:
            first = await self._complete(request, n)
        except Refused as refusal:
            if refusal.status not in _UNABLE:
                raise
            first = []
        rest = await self._one_by_one(request, range(len(first), n))
        if not first:
            self._unable |= {"n"}
        return [*first, *rest]

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        """Pieces of the reply as they come, then the whole completion.

        Close the iterator (``contextlib.aclosing``) to stop early: the call is cancelled, and
        counts with the most it may have used.

        Raises:
            BudgetExceeded: it could cross the budget; it was not sent.
            ModelError: it failed for good before a piece came, or broke off after some.
        """
        unable, refused = self._unable, None
        while True:
            ask = self._ask(request, 1, unable, stream=True)
            try:
                async with aclosing(self._endpoint.stream(ask)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            yield piece
                        else:
                            self._unable |= unable
                            yield self._completions(request, ask, piece)[0]
                return
            except Refused as refusal:
                refused = refused or refusal
                field = _blamed(refusal, ask)
            if field is None:
                raise refused
            unable |= {field}

    def lease(self, adapter: str) -> str:
        """The served name of an adapter at this moment; requests may name it until released.

        Raises:
            ModelError: there is no such adapter.
        """
        return self._adapters.lease(adapter)

    def release(self, version: str) -> None:
        """Give back what :meth:`lease` returned. Raises ``ModelError`` if it is not leased."""
        self._adapters.release(version)

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

    async def _one_by_one(self, request: Request, samples: range) -> list[Completion]:
        """Samples by their numbers, each with a seed of its own."""
        return await self.generate(
            [msgspec.structs.replace(request, seed=request.seed + k) for k in samples]
        )

    async def _complete(self, request: Request, n: int = 1) -> list[Completion]:
        """One to ``n`` completions, in one call; fields the server refuses are left out."""
        unable, refused = self._unable, None
        while True:
            ask = self._ask(request, n, unable)
            try:
                reply = await self._endpoint.chat(ask)
            except Refused as refusal:
                refused = refused or refusal
                field = _blamed(refusal, ask)
            else:
                self._unable |= unable
                return self._completions(request, ask, reply._replace(answers=reply.answers[:n]))
            if field is None:
                raise refused
            unable |= {field}

    def _completions(self, request: Request, ask: Ask, reply: ChatReply) -> list[Completion]:
        usage = usage_of(reply, ask.most)
        self._usage += usage
        adapter = None if request.adapter is None else ask.model
        return completions(reply, usage, prompt=ask.prompt, model=ask.model, adapter=adapter)

    def _ask(
        self, request: Request, n: int, unable: frozenset[str], *, stream: bool = False
    ) -> Ask:
        """The request as it is sent, without the fields that the server does not know."""
        chat = self._chat(request, in_words="response_format" in unable)
        prompt = transcript(chat)
        served = self._adapters.find(request.adapter)
        body: dict[str, object] = {
            "model": served,
            "messages": messages(chat),
            "temperature": request.temperature,
            "seed": request.seed,
            self._token_field: request.max_tokens,
        }
        if n > 1:
            body["n"] = n
        if self._logprobs:
            body["logprobs"] = True
        if stream and "stream_options" not in unable:
            body["stream_options"] = {"include_usage": True}
        if request.json_schema is not None and "response_format" not in unable:
            body["response_format"] = schema_format(request.json_schema, self._endpoint.where)
        if self._extra_body:
            body["extra_body"] = self._extra_body
        most = Usage(
            prompt_tokens=prompt_tokens(chat, prompt), completion_tokens=n * request.max_tokens
        )
        price = self._prices.get(served) or self._prices.get(self.name)
        return Ask(body, most, prompt, served, price)

    def _chat(self, request: Request, *, in_words: bool) -> tuple[ChatMessage, ...]:
        chat = as_chat(request, self._render)
        png = None if request.decision is None else request.decision.observation.png
        if self._vision and png is not None:
            chat = with_picture(chat, png)
        elif not self._vision and any(turn.images for turn in chat):
            raise ModelError(
                f"{self._endpoint.where}: expected a request without pictures, got one with. "
                "Set vision=True if this model can see"
            )
        if in_words and request.json_schema is not None:
            chat = with_schema(chat, request.json_schema)
        return chat


def _blamed(refusal: Refused, ask: Ask) -> str | None:
    """The field of a request to try without, after a refusal; ``None`` if there is none."""
    if refusal.status not in _UNABLE:
        return None
    if "stream_options" in ask.body and "stream_options" in str(refusal):
        return "stream_options"
    return "response_format" if "response_format" in ask.body else None


def _check_texts(
    model: str, key: str | None, key_env: str, extra_body: Mapping[str, object] | None
) -> None:
    """Raises ``ConfigError`` before anything is sent; never shows the key."""
    if not model.strip():
        raise ConfigError("OpenAIModel: model must be the name of a served model, got an empty one")
    if not key_env.strip():
        raise ConfigError("OpenAIModel: api_key_env must name a variable, got an empty name")
    if key is not None and not key.strip():
        raise ConfigError(
            "OpenAIModel: api_key is empty; leave it out to read the key from the environment"
        )
    try:
        json.dumps(dict(extra_body or {}))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"OpenAIModel: extra_body must be JSON: {error}") from None
