"""A model behind an OpenAI-compatible endpoint: OpenAI, vLLM, SGLang, llama.cpp, Ollama…"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.addresses import without_credentials
from swarm_ui.budget import Budget
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Decision, Request
from swarm_ui.nodes.models.openai import wire
from swarm_ui.nodes.models.openai.client import (
    OPENAI_URL,
    OPTIONAL,
    ChatCall,
    Endpoint,
    RequestRejected,
    ServedModel,
    UsageTotals,
)
from swarm_ui.nodes.models.openai.limits import Admission, LocalAdmission
from swarm_ui.nodes.models.openai.options import ChatOptions, RateLimits
from swarm_ui.prompts import (
    as_chat,
    format_named,
    shortened,
    transcript,
    with_picture,
    with_schema,
)

_CHECK_SECONDS, _LIST_SECONDS = 5.0, 30.0
"""Seconds to wait for the list of models. A server that is busy with a batch answers late."""
_URL_VARIABLE = "OPENAI_BASE_URL"
_NO_ROUTE = "start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora"


class AdapterLost(ModelUnavailable):
    """The server does not have a version that was loaded on it, for example after a restart."""


class OpenAIModel:
    """A model on an OpenAI-compatible endpoint.

    It is a :class:`~swarm_ui.model.ChatModel`, a :class:`~swarm_ui.model.StreamingModel` and a
    :class:`~swarm_ui.model.VersionedModel`. It has connections and rate limits for each event loop.
    All agents that share it share its budget. The key is never part of a message, a repr or a
    trace, and is not sent to other processes, which read it from their own environment.

    Args:
        model: name of the model on the endpoint.
        base_url: address up to ``/v1``; the default is ``OPENAI_BASE_URL``, then OpenAI's.
        api_key: the key; ``None``: it is read from the environment when the first request is sent.
        api_key_env: environment variable with the key. With a ``base_url``, a key is optional.
        limits: requests and tokens that may be sent.
        budget: limits of calls, tokens and money, and the prices of models. A request that could
            exceed it is not sent. A prompt may have as many tokens as bytes
            (:func:`~swarm_ui.budget.most_tokens`), until its usage is known. An adapter without a
            price of its own has the price of ``model``. Several models can share one budget.
        options: fields of the request.
        adapter_names: served name or version of each adapter, read when a run starts and for each
            request outside a run; ``None``: an adapter is served under its own name, as in vLLM.
        max_retries: attempts after the first, at HTTP 408, 409, 429 and 5xx, broken connections,
            timeouts and malformed replies. The openai client waits as long as the server asks
            (``Retry-After``, up to two minutes), else half a second, doubled each time.
        timeout: seconds for one attempt; of a stream, to each next piece.

    Raises:
        ConfigError: a value is out of range, a name or the key is empty, or the budget limits money
            and has no price for the model.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        limits: RateLimits | None = None,
        budget: Budget | None = None,
        options: ChatOptions | None = None,
        adapter_names: Mapping[str, str] | None = None,
        max_retries: int = 4,
        timeout: float = 60.0,
    ) -> None:
        for wanted, given in (
            ("model must be the name of a served model", model),
            ("api_key_env must name an environment variable", api_key_env),
            ("api_key must be a key (leave it out to read it from the environment)", api_key),
        ):
            if given is not None and not given.strip():
                raise ConfigError(f"OpenAIModel: {wanted}, got an empty text")
        if not max_retries >= 0 or not timeout > 0:
            raise ConfigError(
                f"OpenAIModel: expected max_retries >= 0 and timeout > 0 seconds, got {max_retries}"
                f" and {timeout}"
            )
        self.name, self.adapter_names = model, adapter_names
        self.limits, self.budget = limits or RateLimits(), budget or Budget()
        self.budget.check_price(model)
        self._options = options or ChatOptions()
        self._endpoint = Endpoint(
            model,
            base_url or os.environ.get(_URL_VARIABLE) or OPENAI_URL,
            key=api_key,
            key_env=api_key_env,
            concurrency=self.limits.concurrency,
            max_retries=max_retries,
            timeout=timeout,
            admission=partial(LocalAdmission, self.limits, self.budget),
        )
        self.spent = UsageTotals()
        """Total usage of this model."""
        self._leases: Counter[str] = Counter()
        self._loaded: dict[str, str] = {}
        self._refused: frozenset[str] = frozenset()
        """Fields that the server has refused. Each schema is a field of its own."""
        self._counts_tokens = not (
            self.limits.tokens_per_minute is self.budget.max_tokens is self.budget.max_cost is None
        )
        """Whether a reply without a limit could exceed a rate or a budget."""

    def __repr__(self) -> str:
        return f"OpenAIModel({self._endpoint.where})"

    # -- other processes ----------------------------------------------------------------------

    def admit_by(self, admission: Callable[[], Admission]) -> None:
        """Replace the model's limits on requests.

        ``admission``: creates the :class:`Admission` of one event loop; it is sent with the model
        to other processes. Call this before the first chat request.
        """
        self._endpoint.admission = admission

    @property
    def limited(self) -> bool:
        """Whether a rate or a budget limits the calls."""
        return self.budget.limited or self.limits.counted

    def __getstate__(self) -> dict[str, Any]:
        """The settings, without secrets. Raises ``ConfigError`` if each process would count only
        its own calls, or would not know the address."""
        endpoint, admission = self._endpoint, self._endpoint.admission
        own = isinstance(admission, partial) and admission.func is LocalAdmission
        if own and self.limited:
            raise ConfigError(
                f"{endpoint.where}: it has a rate limit or a budget, and each copy in another "
                "process would count only its own calls. Let one process keep the limits for "
                "all: limits = share_limits(model), from swarm_ui.nodes.models.acting"
            )
        shown = without_credentials(endpoint.url) == endpoint.url.rstrip("/")
        if not shown and endpoint.url != os.environ.get(_URL_VARIABLE):
            raise ConfigError(
                f"{endpoint.where}: its base_url contains a password or a query, which is never "
                f"sent to workers. Put the whole address into {_URL_VARIABLE} in the environment "
                "of every worker and of this process, and leave base_url out"
            )
        settings = {
            "model": self.name, "base_url": endpoint.url if shown else None,
            "api_key_env": endpoint.key_env, "limits": self.limits,
            "budget": Budget(prices=self.budget.prices), "options": self._options,
            "adapter_names": None if self.adapter_names is None else dict(self.adapter_names),
            "max_retries": endpoint.max_retries, "timeout": endpoint.timeout,
        }  # fmt: skip
        known = {"_loaded": dict(self._loaded), "_refused": self._refused,
                 "_counts_tokens": self._counts_tokens}  # fmt: skip
        return {"settings": settings, "known": known, "admission": None if own else admission,
                "key_given": endpoint.key_given}  # fmt: skip

    def __setstate__(self, sent: dict[str, Any]) -> None:
        settings = sent["settings"]
        if settings["base_url"] is None and not os.environ.get(_URL_VARIABLE):
            raise ConfigError(
                f"model '{settings['model']}': its address contains a password, which is never "
                f"sent to workers; set {_URL_VARIABLE} in the environment of every worker"
            )
        OpenAIModel.__init__(self, **settings)
        self._endpoint.key_elsewhere = sent["key_given"]
        vars(self).update(sent["known"])
        if sent["admission"] is not None:
            self._endpoint.admission = sent["admission"]

    # -- requests -----------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Send all requests concurrently; one completion each, in order.

        If a server rejects a request's ``json_schema`` or ``tools``, they are written into the
        prompt instead, now and in later requests with this schema or with tools. The reply is not
        checked. Another chosen field that it does not support is left out then, with a warning.

        Raises:
            BudgetExceeded: a request could exceed the budget; it was not sent.
            ModelError: one request failed and cannot be retried; the others are cancelled.
        """
        return await together([self._complete(request) for request in requests])

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        """Pieces of the reply as they arrive, then the whole completion.

        Close the iterator (``contextlib.aclosing``) to stop early: the call is cancelled, and
        counts with the most it may have used. A reply that breaks off is requested again, as
        :meth:`generate` does; no pieces of the new reply come, and the completion has its text.

        Raises:
            BudgetExceeded: it could exceed the budget; it was not sent.
            ModelError: it failed and cannot be retried.
        """
        async with aclosing(self._replies(request, stream=True)) as pieces:
            async for piece in pieces:
                yield piece

    async def tokens(self, chat: Sequence[ChatMessage]) -> list[int]:
        """The tokens of a chat as the server's model reads them (vLLM only). Raises ``ModelError``
        if the server does not answer, or has no such route."""
        turns = [{"role": turn.role, "content": turn.content} for turn in chat]
        body = {"model": self.name, "messages": turns, "add_generation_prompt": True}
        text = await self._endpoint.post("//tokenize", body, "the tokens of a chat")
        with suppress(msgspec.DecodeError, KeyError, TypeError, ValueError):
            return [int(token) for token in msgspec.json.decode(text)["tokens"]]
        where = self._endpoint.where
        raise ModelError(f"{where}: expected the tokens of a chat, got {text[:80]!r}")

    async def served(self) -> tuple[ServedModel, ...]:
        """Ask once what is served; empty if the endpoint keeps no list. Raises ``ModelError`` if
        there is no answer, or the key is refused."""
        return await self._endpoint.served(_LIST_SECONDS) or ()

    async def check(self) -> tuple[str, ...]:
        """Ask once, quickly, which models are served; empty if the endpoint keeps no list. Raises
        ``ModelError`` if there is no answer, the key is refused, or the model is not served."""
        served = await self._endpoint.served(_CHECK_SECONDS)
        names = [model.name for model in served or ()]
        # Ollama lists a model with the tag "latest", and accepts the name without it.
        if served is None or self.name in names or f"{self.name}:latest" in names:
            return tuple(names)
        got = f"these models: {', '.join(names[:8]) or 'none'}{', …' if len(names) > 8 else ''}"
        what, advice = "the model is not served", "use one of these names"
        raise ModelError(self._endpoint.error(what, f"'{self.name}'", got, advice))

    async def close(self) -> None:
        """Close the connections of this event loop; a later call opens new ones."""
        await self._endpoint.close()

    # -- adapters -----------------------------------------------------------------------------

    @property
    def leased(self) -> frozenset[str]:
        """Names of adapters that runs are using; do not unload them from the server yet."""
        return frozenset(+self._leases)

    def lease(self, adapter: str) -> str:
        """Return the current version or served name of an adapter, which requests may use until
        :meth:`release`. Raises ``ModelError`` if there is no such adapter."""
        version = self._find(adapter)
        self._leases[version] += 1
        return version

    def release(self, version: str) -> None:
        """Give back what :meth:`lease` returned. Raises ``ModelError`` if it is not leased."""
        if not self._leases[version]:
            raise ModelError(
                f"'{version}' is not leased; release what lease() returned, and only once"
            )
        self._leases[version] -= 1

    @property
    def loaded(self) -> Mapping[str, str]:
        """The served name of each version that was loaded by :meth:`load_version`."""
        return self._loaded

    def know_loaded(self, other: OpenAIModel) -> None:
        """Use also the versions that ``other`` knows, a copy of a client that loads them."""
        self._loaded |= other._loaded

    async def load_version(self, version: str, folder: Path) -> None:
        """Load a version of an adapter on the server (vLLM, see its how-to guide).

        Requests name it as ``"agent_2@7"``. Its name on the server contains a hash of its weights,
        because servers keep cached prompts under the name. A server that was restarted has lost it;
        then requests raise ``ModelUnavailable`` until it is loaded again.

        Args:
            version: name and number, such as ``"agent_2@7"``.
            folder: the adapter as peft writes it, at a path that the server can read.

        Raises:
            ModelUnavailable: the server does not answer.
            ModelError: the server refuses the adapter, or cannot load adapters while it runs.
        """
        folder = folder.resolve()
        name = self._loaded.get(version) or f"{version}-{_digest(folder)}"
        body = {"lora_name": name, "lora_path": str(folder)}
        try:
            await self._endpoint.post("load_lora_adapter", body, f"to load '{name}'")
        except RequestRejected as rejection:
            if rejection.status == 404:  # also for a folder that it cannot read, and says so
                raise ModelError(f"{rejection}; {_NO_ROUTE}") from rejection
            if name not in {model.name for model in await self.served()}:
                raise
        self._loaded[version] = name

    async def unload_version(self, version: str) -> None:
        """Remove a version from the server; no error if it is not there. Raises
        ``ModelUnavailable`` if the server does not answer."""
        name = self._loaded.pop(version, version)
        try:
            body = {"lora_name": name}
            await self._endpoint.post("unload_lora_adapter", body, f"to unload '{name}'")
        except RequestRejected as rejection:
            if rejection.status != 404:  # a restarted server has forgotten it
                raise

    def _find(self, adapter: str) -> str:
        """The version or the served name of an adapter; each of them is returned unchanged."""
        names = self.adapter_names
        if names is None or adapter in self._loaded or self._leases[adapter]:
            return adapter
        if adapter in names or adapter in names.values():
            return names.get(adapter, adapter)
        raise ModelError(
            f"{self._endpoint.where}: expected one of the adapters: {', '.join(names) or 'none'}; "
            f"got '{adapter}'. Load it on the server and add its served name to adapter_names"
        )

    # -- one request --------------------------------------------------------------------------

    async def _complete(self, request: Request) -> Completion:
        async with aclosing(self._replies(request, stream=False)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise AssertionError("the endpoint returned without a reply")

    async def _replies(self, request: Request, *, stream: bool) -> AsyncGenerator[str | Completion]:
        """Pieces of the reply, then its completion, without fields that the server refuses."""
        refused: dict[str, RequestRejected] = {}
        while True:
            without = self._refused | frozenset(refused)
            decision, chat = self._chat(request, without)
            adapter = None if request.adapter is None else self._find(request.adapter)
            body, call = self._call(request, chat, adapter, without, stream=stream)
            usage = Usage()
            try:
                async with aclosing(self._endpoint.replies(body, call, stream=stream)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            yield piece
                            continue
                        self._leave_out(refused)
                        usage = piece.usage or wire.guessed_usage(
                            piece, call.most.prompt_tokens, call.longest
                        )
                        yield Completion(
                            text=piece.text,
                            prompt=transcript(chat, self._offered(request, without)),
                            usage=usage,
                            logprob=piece.logprob,
                            model=piece.model or str(body["model"]),
                            adapter=adapter,
                            prompt_format="json"
                            if decision is None
                            else self._options.prompt_format,
                            dropped=None if decision is None else decision.dropped,
                            calls=piece.calls,
                        )
                return
            except RequestRejected as rejection:
                if rejection.status == 404 and adapter in self._loaded:
                    raise AdapterLost(f"{rejection}; load '{adapter}' again") from None
                # Without a limit, a reply could exceed the budget.
                needed = (self._options.token_field,) if self._counts_tokens else ()
                field = rejection.field(body, needed)
                if field is None:
                    raise
                refused[_key(field, request)] = rejection
            finally:
                self.spent = self.spent.plus(call, usage)

    def _leave_out(self, refused: Mapping[str, RequestRejected]) -> None:
        """Omit fields from now on, because a request without them was answered."""
        for field, rejection in refused.items():
            if field in OPTIONAL and field not in self._refused:
                warnings.warn(f"{rejection}; it is left out from now on", stacklevel=2)
        self._refused |= frozenset(refused)

    def _call(
        self,
        request: Request,
        chat: tuple[ChatMessage, ...],
        adapter: str | None,
        without: frozenset[str],
        *,
        stream: bool,
    ) -> tuple[dict[str, Any], ChatCall]:
        """The arguments of openai's ``chat.completions.create``, and what it may use."""
        options, where = self._options, self._endpoint.where
        served = self.name if adapter is None else self._loaded.get(adapter, adapter)
        limit = request.reply_tokens if self._counts_tokens else request.max_tokens
        chosen = wire.chosen_fields(request, options, limit, stream=stream)
        body: dict[str, Any] = {"model": served, "messages": wire.messages(chat)}
        body |= {name: value for name, value in chosen.items() if name not in without}
        schema = request.json_schema
        if schema is not None and _key("response_format", request) not in without:
            body["response_format"] = wire.schema_format(schema, where)
        offered = self._offered(request, without)
        if offered:
            body["tools"] = wire.tools(offered, where)
        extra = dict(options.extra_body)
        if request.pattern is not None:
            extra["structured_outputs"] = {"regex": request.pattern}
        if extra:
            body["extra_body"] = extra
        asked = wire.most_prompt_tokens(chat, transcript(chat, offered), schema or "")
        most = Usage(prompt_tokens=asked, completion_tokens=request.reply_tokens)
        longest = most.completion_tokens if options.token_field in body else None
        prices = self.budget.prices
        price = prices.get(served) or prices.get(request.adapter or "") or prices.get(self.name)
        return body, ChatCall(where, most, longest, price)

    def _offered(self, request: Request, without: frozenset[str]) -> Sequence[Any]:
        """The tools that are sent in a separate field instead of the text."""
        own = self._options.tools == "api" and "tools" not in without and request.decision is None
        return request.tools if own else ()

    def _chat(
        self, request: Request, without: frozenset[str]
    ) -> tuple[Decision | None, tuple[ChatMessage, ...]]:
        """The chat of a request, and its decision without the parts that the chat omits."""
        render = self._options.render or format_named(self._options.prompt_format).chat
        worded = _key("response_format", request) in without
        complete = partial(self._completed, request, worded=worded)
        decision, limit = request.decision, self._options.prompt_tokens
        bare = request
        if self._offered(request, without):
            bare = msgspec.structs.replace(request, tools=())
        chat = complete(as_chat(bare, render))
        if decision is None or limit is None:
            return decision, chat
        return shortened(decision, limit, render, complete, _tokens)

    def _completed(
        self, request: Request, chat: tuple[ChatMessage, ...], *, worded: bool
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
        if worded and request.json_schema is not None:
            chat = with_schema(chat, request.json_schema)
        return chat


def _digest(folder: Path) -> str:
    """A hash of the weights in a folder; for a folder on another machine, a hash of its path."""
    file = folder / "adapter_model.safetensors"
    content = file.read_bytes() if file.is_file() else str(folder).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _key(field: str, request: Request) -> str:
    """The name under which a refusal is remembered: a server may accept another schema."""
    return f"{field} {request.json_schema}" if field == "response_format" else field


def _tokens(chat: tuple[ChatMessage, ...]) -> int:
    return wire.prompt_tokens(chat, transcript(chat))
