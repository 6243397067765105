"""A model behind an OpenAI-compatible endpoint: OpenAI, vLLM, SGLang, llama.cpp, Ollama…"""

from __future__ import annotations

import asyncio
import hashlib
import warnings
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import openai

from swarm_ui.budget import Budget
from swarm_ui.engine.tasks import together, within
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Completion, Request
from swarm_ui.nodes.models.openai import failures, wire
from swarm_ui.nodes.models.openai.client import Connection, Endpoint
from swarm_ui.nodes.models.openai.options import ChatOptions, RateLimits

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
    vLLM. All agents that share it share its limits and its budget. The key is in no message, repr
    or trace, and other processes read it from their own environment.

    Args:
        model: name of the model on the endpoint.
        base_url: address up to ``/v1``; the default is ``OPENAI_BASE_URL``, then OpenAI's.
        api_key_env: environment variable with the key, which is read when the first request is
            sent. With a ``base_url``, a key is optional.
        limits: requests that may be sent.
        budget: limits of calls, tokens and money, and the prices of models; several models can
            share it. A request that could exceed it is not sent. An adapter without a price of its
            own has the price of ``model``.
        options: fields of the request.
        max_retries: attempts after the first, at HTTP 408, 409, 429 and 5xx, broken connections,
            timeouts and malformed replies. The pause before each is what the server asks for
            (``Retry-After``, up to two minutes), else half a second, doubled each time.
        timeout: seconds for one attempt; of a stream, to the next data.

    Raises:
        ConfigError: a value is out of range, or there is no price for a budget of money.
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
        self.loaded: dict[str, str] = {}
        """The served name of each version that was loaded by :meth:`load_version`."""
        self._options, self._retries, self._timeout = options or ChatOptions(), max_retries, timeout
        self._endpoint = Endpoint(model, base_url, api_key_env, self.limits, max_retries, timeout)
        self._refused: set[str] = set()
        """Fields that the server has refused, by :func:`wire.refusal`."""
        self._counts_tokens = not (self.budget.max_tokens is self.budget.max_cost is None)
        """Whether a reply without a limit could exceed the budget."""

    def __repr__(self) -> str:
        return f"OpenAIModel({self._endpoint.where})"

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
        """Send all requests concurrently; one completion each, in order. Schemas and tools that the
        server rejects are from then on written into the prompt, and other fields left out.

        Raises:
            BudgetExceeded: a request could exceed the budget; it was not sent.
            ModelError: one request failed and cannot be retried; the others are cancelled.
        """
        return await together([self._completed(request) for request in requests])

    async def _completed(self, request: Request) -> Completion:
        [done] = [part async for part in self._reply(request, stream=False)]
        assert isinstance(done, Completion)
        return done

    def stream(self, request: Request) -> AsyncGenerator[str | Completion]:
        """Pieces of the reply as they arrive, then the whole completion.

        Close the iterator (``contextlib.aclosing``) to stop early: the call is cancelled, and
        counts with the most it may have used. A reply that breaks off is requested again; no pieces
        of the new one come, but the completion has its text. Errors: see :meth:`generate`.
        """
        return self._reply(request, stream=True)

    async def _reply(self, request: Request, *, stream: bool) -> AsyncGenerator[str | Completion]:
        """Pieces of a reply, if it is streamed, and its completion. A request is sent again if it
        may succeed later, or without a field that the server refuses."""
        connection, served = await self._endpoint.connected(), request.adapter or self.name
        attempts, spoke = 1, False
        async with connection.slots:
            while True:
                sent = wire.Exchange(
                    request, self.loaded.get(served, served), self._options, self._refused,
                    limited=self._counts_tokens, stream=stream,
                )  # fmt: skip
                silent = spoke
                try:
                    async with aclosing(self._attempt(connection, request, sent)) as parts:
                        async for part in parts:
                            if not silent or isinstance(part, Completion):
                                spoke = True
                                yield part
                    return
                except Exception as error:
                    failed = self._endpoint.failure(error, "a chat completion", attempts)
                    pause = failures.pause(error, attempts)
                # Outside of the block, so that no traceback shows the words of the server.
                if isinstance(failed, failures.RequestRejected):
                    self._leave_out(request, sent.body, failed)
                elif isinstance(failed, ModelUnavailable) and attempts <= self._retries:
                    attempts += 1
                    await asyncio.sleep(pause)
                else:
                    raise failed

    async def _attempt(
        self, connection: Connection, request: Request, sent: wire.Exchange
    ) -> AsyncGenerator[str | Completion]:
        """Send a request once; its part of the budget is reserved until the reply has ended."""
        prices = self.budget.prices
        price = prices.get(request.adapter or self.name, prices.get(self.name))
        async with connection.rate:
            hold = self.budget.reserve(sent.most, self._endpoint.where, price)
        used: Usage | None = None  # unknown: what was reserved counts
        try:
            create: Any = connection.client.chat.completions.create
            reply = await within(self._timeout, create(**sent.body))
            if isinstance(reply, openai.AsyncStream):
                async with reply:
                    async for chunk in reply:
                        if text := sent.add(chunk):
                            yield text
            else:
                sent.add(reply)
            completion = sent.completion()
            used = sent.usage
        except openai.APIError as error:
            if failures.is_free(error):
                used = Usage()
            raise
        finally:
            self.budget.settle(hold, used)
        yield completion

    def _leave_out(
        self, request: Request, body: Mapping[str, object], rejection: failures.RequestRejected
    ) -> None:
        """Remember the field that was refused; raise the rejection if it is about something else,
        or a limit that the budget needs."""
        if rejection.status == 404 and request.adapter in self.loaded:
            raise AdapterLost(f"{rejection}; load '{request.adapter}' again")
        field = rejection.field(body)
        if field is None or (self._counts_tokens and field == self._options.token_field):
            raise rejection
        if field in failures.CHOSEN and field not in self._refused:
            warnings.warn(f"{rejection}; it is left out from now on", stacklevel=2)
        self._refused.add(wire.refusal(field, request))

    # -- the server ---------------------------------------------------------------------------

    async def tokens(self, chat: Sequence[ChatMessage]) -> list[int]:
        """The tokens of a chat as the server's model reads them (vLLM only). Raises ``ModelError``
        if the server does not answer, or has no such route."""
        turns = list(map(wire.message, chat))
        body = {"model": self.name, "messages": turns, "add_generation_prompt": True}
        wanted = "the tokens of a chat"
        return (await self._endpoint.ask("//tokenize", body, wanted, _Answer)).tokens

    async def served(self) -> tuple[ServedModel, ...]:
        """Ask once what is served; empty if the endpoint keeps no list. Raises ``ModelError`` if
        there is no answer within half a minute, or the key is refused."""
        ask, wanted = self._endpoint.ask, "a list of models"
        try:
            return (await ask("models", None, wanted, _Answer, seconds=_LIST_SECONDS)).data
        except failures.RequestRejected as rejection:
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

    async def load_version(self, version: str, folder: Path) -> None:
        """Load a version of an adapter on the server (vLLM, see its how-to guide). Its name there
        contains a hash of its weights, because servers keep cached prompts under the name. A server
        that was restarted has lost it; then requests raise ``ModelUnavailable`` until it is loaded
        again.

        Args:
            version: what requests name, such as ``"agent_2@7"``.
            folder: the adapter as peft writes it, at a path that the server can read.

        Raises:
            ModelUnavailable: the server does not answer.
            ModelError: the server refuses the adapter, or cannot load adapters while it runs.
        """
        folder = folder.resolve()
        name = self.loaded.get(version) or f"{version}-{_digest(folder)}"
        body = {"lora_name": name, "lora_path": str(folder)}
        try:
            await self._endpoint.ask("load_lora_adapter", body, f"to load '{name}'", str)
        except failures.RequestRejected as rejection:
            if rejection.status == 404:  # also for a folder that it cannot read, and says so
                raise ModelError(f"{rejection}; {_NO_ROUTE}") from rejection
            if name not in {model.name for model in await self.served()}:
                raise
        self.loaded[version] = name

    async def unload_version(self, version: str) -> None:
        """Remove a version from the server; no error if it is not there. Raises
        ``ModelUnavailable`` if the server does not answer."""
        body = {"lora_name": self.loaded.pop(version, version)}
        try:
            await self._endpoint.ask("unload_lora_adapter", body, f"to unload '{version}'", str)
        except failures.RequestRejected as rejection:
            if rejection.status != 404:  # a restarted server has forgotten it
                raise


def _digest(folder: Path) -> str:
    """A hash of the weights in a folder; for a folder on another machine, a hash of its path."""
    file = folder / "adapter_model.safetensors"
    content = file.read_bytes() if file.is_file() else str(folder).encode()
    return hashlib.sha256(content).hexdigest()[:16]
