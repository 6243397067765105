"""A model behind an OpenAI-compatible endpoint: OpenAI, vLLM, SGLang, llama.cpp, Ollama…"""

from __future__ import annotations

import asyncio
import hashlib
import os
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.budget import Budget, guess_tokens
from swarm_ui.engine.tasks import together
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Decision, Request
from swarm_ui.nodes.models.openai import wire
from swarm_ui.nodes.models.openai.client import OPENAI_URL, ChatCall, Endpoint
from swarm_ui.nodes.models.openai.failures import OPTIONAL, RequestRejected
from swarm_ui.nodes.models.openai.options import ChatOptions, RateLimits
from swarm_ui.prompts import (
    as_chat,
    format_named,
    shortened,
    transcript,
    with_picture,
    with_schema,
)

_LIST_SECONDS = 30.0
"""Seconds to wait for the list of models. A server that is busy with a batch answers late."""
_NO_ROUTE = "start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True and --enable-lora"


class AdapterLost(ModelUnavailable):
    """The server does not have a version that was loaded on it, for example after a restart."""


class ServedModel(msgspec.Struct, frozen=True, rename={"name": "id"}):
    """A model or an adapter in the list of an endpoint."""

    name: str
    root: str | None = None
    """The folder of its weights, if the server reports it."""
    parent: str | None = None
    """For an adapter: the model that it belongs to."""


class _Answer(msgspec.Struct):
    data: tuple[ServedModel, ...] = ()
    tokens: list[int] = []


class OpenAIModel:
    """A model on an OpenAI-compatible endpoint.

    It is a :class:`~swarm_ui.model.StreamingModel`. An adapter is served under its own name, as in
    vLLM. All agents that share it share its limits and its budget, which counts what was used. The
    key is never part of a message, a repr or a trace, and is not sent to other processes, which
    read it from their environment.

    Args:
        model: name of the model on the endpoint.
        base_url: address up to ``/v1``; the default is ``OPENAI_BASE_URL``, then OpenAI's.
        api_key_env: environment variable with the key, which is read when the first request is
            sent. With a ``base_url``, a key is optional.
        limits: requests that may be sent.
        budget: limits of calls, tokens and money, and the prices of models. A request that could
            exceed it is not sent. A prompt may have as many tokens as bytes
            (:func:`~swarm_ui.budget.most_tokens`), until its usage is known. An adapter without a
            price of its own has the price of ``model``. Several models can share one budget.
        options: fields of the request.
        max_retries: attempts after the first, at HTTP 408, 409, 429 and 5xx, broken connections,
            timeouts and malformed replies. The pause before each is what the server asks for
            (``Retry-After``, up to two minutes), else half a second, doubled each time.
        timeout: seconds for one attempt; of a stream, to the next data.

    Raises:
        ConfigError: a value is out of range, a name is empty, or the budget limits money
            and has no price for the model.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key_env: str = "OPENAI_API_KEY",
        limits: RateLimits | None = None,
        budget: Budget | None = None,
        options: ChatOptions | None = None,
        max_retries: int = 4,
        timeout: float = 60.0,
    ) -> None:
        if not (model.strip() and api_key_env.strip() and max_retries >= 0 and timeout > 0):
            raise ConfigError(
                "OpenAIModel: expected names, max_retries >= 0 and timeout > 0 seconds, got model "
                f"'{model}', api_key_env '{api_key_env}', {max_retries} and {timeout}"
            )
        self.name = model
        self.limits, self.budget = limits or RateLimits(), budget or Budget()
        self.budget.check_price(model)
        self._options = options or ChatOptions()
        url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        self._endpoint = Endpoint(
            model, url, api_key_env, self.limits, self.budget, max_retries, timeout
        )
        self._loaded: dict[str, str] = {}
        self._refused: set[str] = set()
        """Fields that the server has refused. Each schema is a field of its own."""
        self._counts_tokens = not (self.budget.max_tokens is self.budget.max_cost is None)
        """Whether a reply without a limit could exceed the budget."""

    def __repr__(self) -> str:
        return f"OpenAIModel({self._endpoint.where})"

    # -- other processes ----------------------------------------------------------------------

    @property
    def limited(self) -> bool:
        """Whether a rate or a budget limits the calls."""
        return self.budget.limited or self.limits.requests is not None

    def __getstate__(self) -> dict[str, Any]:
        """The settings, without secrets. Raises ``ConfigError`` if each process would count only
        its own calls."""
        if self.limited:
            raise ConfigError(
                f"{self._endpoint.where}: each copy in another process would count its rate limit "
                "or budget for itself. Let one actor make the model, and ask for all: hold_model("
                "partial(OpenAIModel, ...)), from swarm_ui.nodes"
            )
        return dict(vars(self))

    # -- requests -----------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Send all requests concurrently; one completion each, in order.

        A ``json_schema`` or ``tools`` that the server rejects are from then on written into the
        prompt; the reply is not checked. Another field that it does not support is left out, with a
        warning.

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
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        asked = asyncio.create_task(self._complete(request, pieces.put_nowait))
        asked.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            yield await asked
        finally:
            asked.cancel()
            await asyncio.wait([asked])

    async def tokens(self, chat: Sequence[ChatMessage]) -> list[int]:
        """The tokens of a chat as the server's model reads them (vLLM only). Raises ``ModelError``
        if the server does not answer, or has no such route."""
        turns = list(map(wire.message, chat))
        body = {"model": self.name, "messages": turns, "add_generation_prompt": True}
        return (
            await self._endpoint.ask("//tokenize", body, "the tokens of a chat", _Answer)
        ).tokens

    async def served(self) -> tuple[ServedModel, ...]:
        """Ask once what is served; empty if the endpoint keeps no list. Raises ``ModelError`` if
        there is no answer within half a minute, or the key is refused."""
        ask, wanted = self._endpoint.ask, "a list of models"
        try:
            return (await ask("models", None, wanted, _Answer, seconds=_LIST_SECONDS)).data
        except RequestRejected as rejection:
            if rejection.status == 404:
                return ()
            raise

    async def check(self) -> tuple[str, ...]:
        """The names that are served (see :meth:`served`). Raises ``ModelError`` also if the model
        is not among them."""
        names = [model.name for model in await self.served()]
        # Ollama lists a model with the tag "latest", and accepts the name without it.
        if not names or self.name in names or f"{self.name}:latest" in names:
            return tuple(names)
        got, advice = f"these models: {', '.join(names)}", "use one of these names"
        what = "the model is not served"
        raise ModelError(self._endpoint.error(what, f"'{self.name}'", got, advice))

    async def close(self) -> None:
        """Close the connections of this event loop; a later call opens new ones."""
        await self._endpoint.close()

    # -- adapters -----------------------------------------------------------------------------

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
            await self._endpoint.ask("load_lora_adapter", body, f"to load '{name}'", str)
        except RequestRejected as rejection:
            if rejection.status == 404:  # also for a folder that it cannot read, and says so
                raise ModelError(f"{rejection}; {_NO_ROUTE}") from rejection
            if name not in {model.name for model in await self.served()}:
                raise
        self._loaded[version] = name

    async def unload_version(self, version: str) -> None:
        """Remove a version from the server; no error if it is not there. Raises
        ``ModelUnavailable`` if the server does not answer."""
        body = {"lora_name": self._loaded.pop(version, version)}
        try:
            await self._endpoint.ask("unload_lora_adapter", body, f"to unload '{version}'", str)
        except RequestRejected as rejection:
            if rejection.status != 404:  # a restarted server has forgotten it
                raise

    # -- one request --------------------------------------------------------------------------

    async def _complete(
        self, request: Request, said: Callable[[str], object] | None = None
    ) -> Completion:
        """The completion, requested without fields that the server refuses. ``said``: called with
        pieces of its text as they arrive."""
        while True:
            call, prompt, decision = self._prepared(request, stream=said is not None)
            try:
                reply = await self._endpoint.chat(call, said)
                break
            except RequestRejected as rejection:
                if rejection.status == 404 and request.adapter in self._loaded:
                    raise AdapterLost(f"{rejection}; load '{request.adapter}' again") from None
                # Without a limit, a reply could exceed the budget.
                needed = (self._options.token_field,) if self._counts_tokens else ()
                field = rejection.field(call.body, needed)
                if field is None:
                    raise
                if field in OPTIONAL and field not in self._refused:
                    warnings.warn(f"{rejection}; it is left out from now on", stacklevel=2)
                self._refused.add(_key(field, request))
        return Completion(
            text=reply.text,
            prompt=prompt,
            usage=reply.usage or _guessed(reply, call),
            logprob=reply.logprob,
            model=reply.model or call.body["model"],
            adapter=request.adapter,
            prompt_format=self._options.prompt_format if decision else "json",
            dropped=decision.dropped if decision else None,
            calls=reply.calls,
        )

    def _prepared(self, request: Request, *, stream: bool) -> tuple[ChatCall, str, Decision | None]:
        """A request as it is sent; its prompt; and its decision without the parts that the prompt
        omits."""
        options, where, limited = self._options, self._endpoint.where, self._counts_tokens
        by_field = "tools" not in self._refused and request.decision is None
        tools, schema = request.tools if by_field else (), request.json_schema
        worded = _key("response_format", request) in self._refused
        decision, chat = self._chat(request, with_tools=not by_field, worded=worded)
        prompt = transcript(chat, tools)
        chosen: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed if options.send_seed else None,
            options.token_field: request.reply_tokens if limited else request.max_tokens,
            "logprobs": options.logprobs or None,
            "stream_options": {"include_usage": True} if stream else None,
            "tools": [wire.tool(spec, where) for spec in tools] or None,
        }
        if schema is not None and not worded:
            chosen["response_format"] = wire.schema_format(schema, where)
        served = request.adapter or self.name
        served = self._loaded.get(served, served)
        body: dict[str, Any] = {"model": served, "messages": [wire.message(turn) for turn in chat]}
        body |= {k: v for k, v in chosen.items() if v is not None and k not in self._refused}
        extra = dict(options.extra_body)
        if request.pattern is not None:
            extra["structured_outputs"] = {"regex": request.pattern}
        most = Usage(
            prompt_tokens=wire.most_prompt_tokens(chat, prompt, schema or ""),
            completion_tokens=request.reply_tokens,
        )
        longest = most.completion_tokens if options.token_field in body else None
        prices = self.budget.prices
        price = prices.get(served) or prices.get(request.adapter or "") or prices.get(self.name)
        return ChatCall(body | {"extra_body": extra}, most, longest, price), prompt, decision

    def _chat(
        self, request: Request, *, with_tools: bool, worded: bool
    ) -> tuple[Decision | None, tuple[ChatMessage, ...]]:
        """The chat of a request, with its tools and its schema if they have to be in the text; and
        its decision without the parts that the chat omits."""
        decision, most = request.decision, self._options.prompt_tokens
        png = None if decision is None else decision.observation.png

        def complete(chat: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...]:
            if self._options.vision and png is not None:
                chat = with_picture(chat, png)
            if worded and request.json_schema is not None:
                chat = with_schema(chat, request.json_schema)
            return chat

        render = format_named(self._options.prompt_format).chat
        if decision is not None and most is not None:
            return shortened(decision, most, lambda d: complete(render(d)), wire.prompt_tokens)
        bare = request if with_tools else msgspec.structs.replace(request, tools=())
        chat = complete(as_chat(bare, render))
        if not self._options.vision and any(turn.images for turn in chat):
            raise ModelError(
                f"{self._endpoint.where}: expected a request without images, got one with images. "
                "Set ChatOptions(vision=True) if this model accepts images"
            )
        return decision, chat


def _digest(folder: Path) -> str:
    """A hash of the weights in a folder; for a folder on another machine, a hash of its path."""
    file = folder / "adapter_model.safetensors"
    content = file.read_bytes() if file.is_file() else str(folder).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _guessed(reply: wire.ChatReply, call: ChatCall) -> Usage:
    """An estimate of the usage, for a server that does not report it."""
    written = guess_tokens(reply.text + "".join(each.arguments for each in reply.calls))
    prompt = -(-call.most.prompt_tokens // 3)  # a third of the most
    most = written if call.longest is None else call.longest
    return Usage(prompt_tokens=prompt, completion_tokens=min(written, most))


def _key(field: str, request: Request) -> str:
    """The name under which a refusal is remembered: a server may accept another schema."""
    return f"{field} {request.json_schema}" if field == "response_format" else field
