"""A model behind an OpenAI-compatible endpoint: OpenAI, vLLM, SGLang, llama.cpp, Ollama…"""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Decision, Request
from swarm_ui.nodes.models.openai import request_body
from swarm_ui.nodes.models.openai.admission import Admission, LocalAdmission
from swarm_ui.nodes.models.openai.endpoint import OPENAI_URL, ChatCall, Endpoint, ServedModel
from swarm_ui.nodes.models.openai.failures import (
    OPTIONAL,
    AttemptFailure,
    RequestRejected,
    rejected_field,
)
from swarm_ui.nodes.models.openai.hot_loading import LIST_SECONDS, HotAdapters, tokenized
from swarm_ui.nodes.models.openai.replies import ChatReply
from swarm_ui.nodes.models.openai.sending import SentModel, sent_admission, sent_url
from swarm_ui.nodes.models.openai.served_adapters import (
    ServedAdapters,
    adapter_version,
    served_name,
)
from swarm_ui.nodes.models.openai.settings import (
    ChatOptions,
    RateLimits,
    RetryPolicy,
)
from swarm_ui.prompts import (
    as_chat,
    format_named,
    shortened,
    transcript,
    with_picture,
    with_schema,
)

_CHECK_SECONDS = 5.0


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Total usage of a model."""

    calls: int = 0
    """Requests sent, retries included."""
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds_waiting: float = 0.0
    """Summed over calls: time spent waiting for a slot, the rate limits or the next attempt."""
    cost: float | None = None
    """Money, in the currency of the prices; ``None`` if neither the model nor an adapter that was
    asked has a price. A call whose usage is unknown (cut off, timed out, cancelled) counts with its
    limit of tokens, or, without one, with ``Request.reply_tokens``."""


class OpenAIModel:
    """A model on an OpenAI-compatible endpoint.

    It is a :class:`~swarm_ui.model.ChatModel`, a :class:`~swarm_ui.model.StreamingModel`, a
    :class:`~swarm_ui.model.SamplingModel` and a :class:`~swarm_ui.model.VersionedModel`. It has
    connections and rate limits for each event loop. All agents that share it share its budget. The
    key is never part of a message, a repr or a trace. It can be sent to other processes, which read
    the key from their own environment (:mod:`swarm_ui.nodes.models.openai.sending`).

    Args:
        model: name of the model on the endpoint.
        base_url: address up to ``/v1``; the default is ``OPENAI_BASE_URL``, then OpenAI's.
        api_key: the key; ``None``: it is read from the environment when the first request is sent.
        api_key_env: environment variable with the key. With a ``base_url``, a key is optional.
        limits: requests and tokens that may be sent.
        retry: timeouts and retries.
        budget: limits of calls, tokens and money, and the prices of models. A request that could
            exceed it is not sent. A prompt may have as many tokens as bytes
            (:func:`~swarm_ui.budget.most_tokens`), until its usage is known. An adapter without a
            price of its own has the price of ``model``. Several models can share one budget.
        options: fields of the request.
        adapter_names: served name or version of each adapter, read when a run starts and for each
            request outside a run; ``None``: an adapter is served under its own name, as in vLLM.

    Raises:
        ConfigError: a name or the key is empty, or the budget limits money and has no price for
            the model.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        limits: RateLimits | None = None,
        retry: RetryPolicy | None = None,
        budget: Budget | None = None,
        options: ChatOptions | None = None,
        adapter_names: Mapping[str, str] | None = None,
    ) -> None:
        for wanted, given in (
            ("model must be the name of a served model", model),
            ("api_key_env must name an environment variable", api_key_env),
            ("api_key must be a key (leave it out to read it from the environment)", api_key),
        ):
            if given is not None and not given.strip():
                raise ConfigError(f"OpenAIModel: {wanted}, got an empty text")
        limits, retry, budget = limits or RateLimits(), retry or RetryPolicy(), budget or Budget()
        self._options = options or ChatOptions()
        budget.check_price(model)
        self.name = model
        self._prices = budget.prices
        self._endpoint = Endpoint(
            model,
            base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL,
            key=api_key,
            key_env=api_key_env,
            limits=limits,
            retry=retry,
            admission=partial(LocalAdmission, limits, budget),
        )
        self.limits, self.budget = limits, budget
        self._adapters = ServedAdapters(model, adapter_names, self._endpoint.where)
        self._hot = HotAdapters(self._endpoint)
        self._usage = Usage()
        self._priced = model in self._prices
        self._unsupported: frozenset[str] = frozenset()
        """Fields of a request that the server has rejected. Each schema is a field of its own
        (:func:`~.request_body.schema_field`)."""
        self._counts_tokens = not (
            limits.tokens_per_minute is budget.max_tokens is budget.max_cost is None
        )
        """Whether a reply without a limit could exceed a rate or a budget."""

    def __repr__(self) -> str:
        return f"OpenAIModel({self._endpoint.where})"

    def __getstate__(self) -> SentModel:
        """The settings that are sent to another process, without secrets; see
        :mod:`swarm_ui.nodes.models.openai.sending`."""
        endpoint, names = self._endpoint, self.adapter_names
        return SentModel(
            model=self.name,
            url=sent_url(endpoint.url, self.name),
            key_env=endpoint.key_env,
            key_given=endpoint.key_given,
            limits=self.limits,
            retry=endpoint.retry,
            prices=self._prices,
            options=self._options,
            adapter_names=None if names is None else dict(names),
            loaded=dict(self._hot.loaded),
            unsupported=self._unsupported,
            counts_tokens=self._counts_tokens,
            admission=sent_admission(endpoint.admission, self.limits, endpoint.where),
        )

    def __setstate__(self, sent: SentModel) -> None:
        OpenAIModel.__init__(self, **sent.arguments())
        self._endpoint.key_elsewhere = sent.key_given
        self._hot.know(sent.loaded)
        self._unsupported, self._counts_tokens = sent.unsupported, sent.counts_tokens
        if sent.admission is not None:
            self._endpoint.admission = sent.admission

    def admit_by(self, admission: Callable[[], Admission]) -> None:
        """Replace the model's limits on requests.

        ``admission``: creates the :class:`Admission` of one event loop; it is sent with the model
        to other processes. Call this before the first chat request.
        """
        self._endpoint.admission = admission

    @property
    def adapter_names(self) -> Mapping[str, str] | None:
        """Served name of each adapter, as given."""
        return self._adapters.names

    @property
    def limited(self) -> bool:
        """Whether a rate or a budget limits the calls."""
        return self.budget.limited or self.limits.counted

    @property
    def leased(self) -> frozenset[str]:
        """Served names that runs are using; do not unload them from the server yet."""
        return self._adapters.leased

    @property
    def spent(self) -> UsageTotals:
        """Total usage of this model."""
        return UsageTotals(
            calls=self._endpoint.calls,
            retries=self._endpoint.retries,
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens,
            seconds_waiting=self._endpoint.seconds_waiting,
            cost=self._endpoint.cost if self._priced else None,
        )

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Send all requests concurrently; one completion each, in order.

        If a server rejects a request's ``json_schema`` or ``tools``, they are written into the
        prompt instead, now and in later requests with this schema or with tools. The reply is not
        checked. Another chosen field that it does not support is left out then, with a warning.

        Raises:
            BudgetExceeded: a request could exceed the budget; it was not sent.
            ModelError: one request failed and cannot be retried; the others are cancelled.
        """
        found = await together([self._complete(request) for request in requests])
        return [samples[0] for samples in found]

    async def sample(self, request: Request, n: int) -> list[Completion]:
        """``n`` samples of one request, in one call if the server supports ``n``.

        The tokens of the prompt count in the first sample only. Samples that the server does not
        return are requested one by one. Each of these requests is charged for the prompt, and their
        seeds follow the seed of the request.

        Raises:
            ConfigError: ``n`` is not positive.
            BudgetExceeded, ModelError: as :meth:`generate`.
        """
        if n < 1:
            raise ConfigError(f"{self._endpoint.where}: n must be >= 1, got {n}")
        if n == 1 or "n" in self._unsupported:
            return await self._one_by_one(request, range(n))
        try:
            first = await self._complete(request, n)
        except RequestRejected as rejection:
            if not rejection.about_fields:
                raise
            first = []
        rest = await self._one_by_one(request, range(len(first), n))
        if not first:
            self._unsupported |= {"n"}
        return [*first, *rest]

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        """Pieces of the reply as they arrive, then the whole completion.

        Close the iterator (``contextlib.aclosing``) to stop early: the call is cancelled, and
        counts with the most it may have used. A reply that breaks off is requested again, as
        :meth:`generate` does; no pieces of the new reply come, and the completion has its text.

        Raises:
            BudgetExceeded: it could exceed the budget; it was not sent.
            ModelError: it failed and cannot be retried.
        """
        async with aclosing(self._replies(request, 1, stream=True)) as pieces:
            async for piece in pieces:
                yield piece if isinstance(piece, str) else piece[0]

    def lease(self, adapter: str) -> str:
        """Return the current served name of an adapter, which requests may use until
        :meth:`release`. Raises ``ModelError`` if there is no such adapter."""
        return self._adapters.lease(adapter)

    def release(self, version: str) -> None:
        """Give back what :meth:`lease` returned. Raises ``ModelError`` if it is not leased."""
        self._adapters.release(version)

    async def load_version(self, version: str, folder: Path) -> None:
        """Load a version of an adapter on the server (vLLM, see its how-to guide).

        Requests name it as ``"agent_2@7"``; its name on the server is ``agent_2-v7``. It is loaded
        again if the server was restarted since.

        Args:
            version: name and number, such as ``"agent_2@7"``. Never use one for other weights.
            folder: the adapter as peft writes it, at a path that the server can read. It must stay
                there until the version is unloaded.

        Raises:
            ModelUnavailable: the server does not answer.
            ModelError: the server refuses the adapter, or cannot load adapters while it runs.
        """
        await self._hot.load(version, folder)

    async def unload_version(self, version: str) -> None:
        """Remove a version from the server; no error if it is not there. Raises
        ``ModelUnavailable`` if the server does not answer."""
        await self._hot.unload(version)

    def know_loaded(self, other: OpenAIModel) -> None:
        """Use the versions that ``other`` knows, which is a copy of the client that loads them.
        This client loads no version, not even a lost one. A version that the server has lost raises
        ``ModelUnavailable``.
        """
        self._hot.know(other._hot.loaded)
        self._hot.elsewhere = True

    async def tokens(self, chat: Sequence[ChatMessage]) -> list[int]:
        """The tokens of a chat as the server's model reads them (vLLM only). Raises ``ModelError``
        if the server does not answer, or has no such route."""
        messages: list[dict[str, object]] = [
            {"role": turn.role, "content": turn.content} for turn in chat
        ]
        return await tokenized(self._endpoint, self.name, messages)

    async def served(self) -> tuple[ServedModel, ...]:
        """Ask once what is served; empty if the endpoint keeps no list. Raises ``ModelError`` if
        there is no answer, or the key is refused."""
        return await self._endpoint.listed(LIST_SECONDS) or ()

    async def check(self) -> tuple[str, ...]:
        """Ask once, quickly, which models are served; empty if the endpoint keeps no list. Raises
        ``ModelError`` if there is no answer, the key is refused, or the model is not served."""
        served = await self._endpoint.served(_CHECK_SECONDS)
        # Ollama lists a model with the tag "latest", and accepts the name without it.
        if served is None or self.name in served or f"{self.name}:latest" in served:
            return served or ()
        names = ", ".join(served[:8]) + (", …" if len(served) > 8 else "")
        failure = AttemptFailure(
            f"these models: {names or 'none'}", "use one of these names", False
        )
        raise self._endpoint.error("the model is not served", f"'{self.name}'", failure)

    async def close(self) -> None:
        """Close the connections of this event loop; a later call opens new ones."""
        await self._endpoint.close()

    async def _one_by_one(self, request: Request, samples: range) -> list[Completion]:
        """Samples by their numbers, each with its own seed."""
        return await self.generate(
            [msgspec.structs.replace(request, seed=request.seed + k) for k in samples]
        )

    async def _complete(self, request: Request, n: int = 1) -> list[Completion]:
        """One to ``n`` completions, in one call."""
        async with aclosing(self._replies(request, n, stream=False)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, str):
                    return piece
        raise AssertionError("the endpoint returned without a reply")

    async def _replies(
        self, request: Request, n: int, *, stream: bool
    ) -> AsyncGenerator[str | list[Completion]]:
        """Pieces of the reply, then its completions, without fields that the server rejects."""
        unsupported, restored = self._unsupported, False
        refused: dict[str, RequestRejected] = {}
        guess: RequestRejected | None = None
        while True:
            call = self._call(request, n, unsupported, stream=stream)
            try:
                async with aclosing(self._endpoint.replies(call, stream=stream)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            yield piece
                        else:
                            self._leave_out(refused)
                            reply = piece._replace(answers=piece.answers[:n])
                            yield self._completions(request, call, reply)
                return
            except RequestRejected as rejection:
                if rejection.status == 404 and call.model in self._hot and not restored:
                    restored = True  # the server was restarted and has no adapters now
                    await self._hot.restore(call.model)
                    continue
                # Without a limit, a reply could exceed the budget.
                needed = (self._options.token_field,) if self._counts_tokens else ()
                failed, field = rejection, rejected_field(rejection, call.body, needed)
            if field is None:
                raise guess or failed
            if field == "response_format":
                if failed.field != field:
                    guess = failed  # the next attempt shows whether the schema is the reason
                field = request_body.schema_field(request)
            refused[field] = failed
            unsupported |= {field}

    def _leave_out(self, refused: Mapping[str, RequestRejected]) -> None:
        """Omit fields from now on, because a request without them was answered."""
        for field, rejection in refused.items():
            if field in OPTIONAL and field not in self._unsupported:
                warnings.warn(f"{rejection}; it is left out from now on", stacklevel=2)
        self._unsupported |= frozenset(refused)

    def _completions(self, request: Request, call: ChatCall, reply: ChatReply) -> list[Completion]:
        usage = request_body.usage_of(reply, call.most.prompt_tokens, call.longest)
        self._usage += usage
        shares = request_body.shares(usage, reply.answers)
        return [
            Completion(
                text=answer.text,
                prompt=call.prompt,
                usage=share,
                logprob=answer.logprob,
                model=reply.model or call.model,
                adapter=None if request.adapter is None else self._version(call.model),
                prompt_format="json" if request.decision is None else self._options.prompt_format,
                dropped=call.dropped,
                calls=answer.calls,
            )
            for answer, share in zip(reply.answers, shares, strict=True)
        ]

    def _call(
        self, request: Request, n: int, unsupported: frozenset[str], *, stream: bool
    ) -> ChatCall:
        options = self._options
        decision, chat = self._chat(request, unsupported)
        offered = request.tools if self._offers(request, unsupported) else ()
        prompt = transcript(chat, offered)
        served = self._served(request.adapter)
        body: dict[str, object] = {"model": served, "messages": request_body.messages(chat)}
        limit = request.reply_tokens if self._counts_tokens else request.max_tokens
        chosen = request_body.chosen_fields(request, options, limit, n, stream=stream)
        body |= {name: value for name, value in chosen.items() if name not in unsupported}
        schema = request.json_schema
        if schema is not None and request_body.schema_field(request) not in unsupported:
            body["response_format"] = request_body.schema_format(schema, self._endpoint.where)
        if offered:
            body["tools"] = request_body.tools(offered, self._endpoint.where)
        extra = {**self._hot.extra_fields(served), **options.extra_body}
        if request.pattern is not None:
            extra["structured_outputs"] = {"regex": request.pattern}
        if extra:
            body["extra_body"] = extra
        asked = request_body.most_prompt_tokens(chat, prompt, request.json_schema or "")
        most = Usage(prompt_tokens=asked, completion_tokens=n * request.reply_tokens)
        longest = most.completion_tokens if options.token_field in body else None
        price = self._prices.get(served) or self._prices.get(self.name)
        self._priced = self._priced or price is not None
        dropped = None if decision is None else decision.dropped
        return ChatCall(body, most, prompt, served, price, dropped, longest)

    def _served(self, adapter: str | None) -> str:
        """The served name of an adapter, of a version, or of the base model."""
        if adapter is not None and served_name(adapter) in self._hot:
            return served_name(adapter)
        found = self._adapters.find(adapter)
        return served_name(found) if served_name(found) in self._hot else found

    def _version(self, served: str) -> str:
        """The adapter with a served name, as traces show it. An adapter that is served under its
        own name has no version, even if the name is one such as ``phone-v2``."""
        own = self.adapter_names is None and served not in self._hot
        return served if own else adapter_version(served)

    def _offers(self, request: Request, unsupported: frozenset[str]) -> bool:
        """Whether the tools of a request are sent in a separate field instead of the text."""
        own = self._options.tools == "api" and "tools" not in unsupported
        return bool(request.tools) and own and request.decision is None

    def _chat(
        self, request: Request, unsupported: frozenset[str]
    ) -> tuple[Decision | None, tuple[ChatMessage, ...]]:
        """The chat of a request, and its decision without the parts that the chat omits."""
        schema_in_prompt = request_body.schema_field(request) in unsupported
        form = format_named(self._options.prompt_format)
        render = self._options.render or form.chat
        complete = partial(self._completed, request, schema_in_prompt=schema_in_prompt)
        decision, limit = request.decision, self._options.prompt_tokens
        bare = request
        if self._offers(request, unsupported):
            bare = msgspec.structs.replace(request, tools=())
        chat = complete(as_chat(bare, render))
        if decision is None or limit is None:
            return decision, chat
        return shortened(decision, limit, render, complete, _tokens)

    def _completed(
        self, request: Request, chat: tuple[ChatMessage, ...], *, schema_in_prompt: bool
    ) -> tuple[ChatMessage, ...]:
        """The chat with the screenshot, and with the schema if it has to be in the text."""
        png = None if request.decision is None else request.decision.observation.png
        if self._options.vision and png is not None:
            chat = with_picture(chat, png)
        elif not self._options.vision and any(turn.images for turn in chat):
            raise ModelError(
                f"{self._endpoint.where}: expected a request without images, got one with images. "
                "Set ChatOptions(vision=True) if this model accepts images"
            )
        if schema_in_prompt and request.json_schema is not None:
            chat = with_schema(chat, request.json_schema)
        return chat


def _tokens(chat: tuple[ChatMessage, ...]) -> int:
    return request_body.prompt_tokens(chat, transcript(chat))
