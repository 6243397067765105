"""One OpenAI-compatible endpoint and its connections.

The openai client repeats failed attempts and waits as long as the server asks. Below it, an http
client of our own lets each attempt wait for the rate limits and reserve its part of the budget.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec
import openai
from asyncio_throttle.throttler import Throttler

from swarm_ui.addresses import is_address, redacted, without_credentials
from swarm_ui.budget import Budget, Hold, Price
from swarm_ui.engine.tasks import within
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai import failures
from swarm_ui.nodes.models.openai.failures import NEVER_CONNECTED, RequestRejected
from swarm_ui.nodes.models.openai.options import RateLimits
from swarm_ui.nodes.models.openai.wire import ChatReply, limit_body, read_chat, read_stream

T = TypeVar("T")
OPENAI_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
_CONNECT_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
"""Seconds before a reply that broke off is requested again, as in the openai client."""
_SHOWN_OF_FAILURE = 400


@dataclass
class ChatCall:
    """One chat, and the attempts at it. Each reserves its part of the budget before it is sent, and
    settles it afterwards."""

    where: str
    """The model, for errors."""
    body: Mapping[str, Any]
    """The arguments of openai's ``chat.completions.create``."""
    most: Usage
    """The most tokens that an attempt may use."""
    longest: int | None
    """The limit of tokens of the reply that is sent; ``None``: none is sent."""
    price: Price | None
    attempts: int = 0
    streamed: bool = False
    """Whether pieces of its reply were given."""
    hold: Hold | None = None
    """That of the attempt under way, whose reply is being read."""


_CALL: ContextVar[ChatCall | None] = ContextVar("call", default=None)
"""The chat that is being sent."""


class _AdmittedHttp(openai.DefaultAsyncHttpxClient):
    """Sends each attempt of a chat within the limits. An attempt that the server refused costs
    nothing, nor does one that reached no server, which a hook of httpx would not see."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(event_hooks={"response": [partial(limit_body, endpoint.timeout)]})
        self._endpoint, limits = endpoint, endpoint.limits
        self._rate: AbstractAsyncContextManager[None] = nullcontext()
        if limits.requests is not None:
            self._rate = Throttler(limits.requests, limits.period)

    async def send(self, request: Any, **options: Any) -> Any:
        call, endpoint = _CALL.get(), self._endpoint
        if call is None:  # not a chat
            return await within(endpoint.timeout, super().send(request, **options))
        async with self._rate:
            call.hold = endpoint.budget.reserve(call.most, call.where, call.price)
        call.attempts += 1
        try:
            response = await within(endpoint.timeout, super().send(request, **options))
        except TimeoutError:  # ours, which the openai client does not repeat: see replies()
            raise
        except Exception as error:
            endpoint.settle(call, Usage() if type(error).__name__ in NEVER_CONNECTED else None)
            raise
        if response.is_error:
            endpoint.settle(call, Usage())
        return response


class _Connection:
    """The client and the slots of one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.client = openai.AsyncOpenAI(
            api_key=endpoint.checked_key() or "none",
            base_url=endpoint.url,
            max_retries=endpoint.max_retries,
            timeout=openai.Timeout(None, connect=min(_CONNECT_SECONDS, endpoint.timeout)),
            # No compression, so that a small body cannot become a large one.
            default_headers={"Accept-Encoding": "identity"},
            http_client=_AdmittedHttp(endpoint),
        )
        self.slots = asyncio.Semaphore(endpoint.limits.concurrency)
        self.closing = self._closing()

    async def _closing(self) -> AsyncGenerator[None]:
        """A generator that closes the client when it is closed. The event loop closes it, as all
        started generators, before it ends; afterwards the sockets could not be closed."""
        try:
            yield
        finally:
            await self.client.close()


@dataclass(eq=False)
class Endpoint:
    """Sends chats to one address; for the fields see :class:`~swarm_ui.nodes.OpenAIModel`."""

    model: str
    url: str
    key_env: str
    limits: RateLimits
    budget: Budget
    max_retries: int
    timeout: float
    _connections: dict[asyncio.AbstractEventLoop, _Connection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shown = without_credentials(self.url)
        if not is_address(self.url) or shown != self.url.rstrip("/"):
            raise ConfigError(
                "OpenAIModel: expected a base_url such as http://localhost:8000/v1, without a "
                f"password or a query, which would be shown in messages, got '{shown}'. Put a key "
                f"into the environment variable {self.key_env}"
            )

    @property
    def where(self) -> str:
        """The model and its address, without secrets."""
        return f"model '{self.model}' at {without_credentials(self.url)}"

    def __getstate__(self) -> dict[str, Any]:
        """The fields without the connections, which hold the key."""
        return vars(self) | {"_connections": {}}

    async def chat(self, call: ChatCall, said: Callable[[str], object] | None) -> ChatReply:
        """Make one chat completion. With ``said``, it is streamed, and ``said`` is called with each
        piece of its text. If it breaks off after some pieces, the next attempt gives no pieces.

        Raises:
            BudgetExceeded: an attempt could exceed the budget; it was not sent.
            ModelUnavailable: no attempt succeeded; a later one may.
            RequestRejected: the endpoint rejected the request.
        """
        connection = await self._connected()
        async with connection.slots:
            while True:
                try:
                    return await self._attempt(connection, call, said)
                except Exception as error:
                    broken_off = call.hold is not None
                    failed = self._failure(error, "a chat completion", call.attempts)
                    if failed is None:
                        raise
                finally:
                    self.settle(call, None)
                # Outside of the block, so that no traceback shows the words of the server.
                if not broken_off or call.attempts > self.max_retries:
                    raise failed
                await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (call.attempts - 1)))

    async def _attempt(
        self, connection: _Connection, call: ChatCall, said: Callable[[str], object] | None
    ) -> ChatReply:
        """One reply, after as many attempts as are left until one is answered."""
        client = connection.client.with_options(max_retries=self.max_retries - call.attempts)
        token = _CALL.set(call)
        try:
            create: Any = client.chat.completions.create
            response = await create(**call.body, **({} if said is None else {"stream": True}))
        finally:
            _CALL.reset(token)
        if said is None:
            reply = read_chat(response, call.longest)
        else:
            silent = call.streamed

            def piece(text: str) -> None:
                call.streamed = True
                if not silent:
                    said(text)

            async with response:
                reply = await read_stream(response, call.longest, piece)
        self.settle(call, reply.usage)
        return reply

    def settle(self, call: ChatCall, used: Usage | None) -> None:
        """End the attempt under way, if any; see :meth:`swarm_ui.budget.Budget.settle`."""
        if call.hold is not None:
            self.budget.settle(call.hold, used)
            call.hold = None

    async def ask(
        self,
        route: str,
        body: Mapping[str, object] | None,
        wanted: str,
        kind: type[T],
        **options: Any,
    ) -> T:
        """The answer of another route of the server, such as ``"load_lora_adapter"``; with a
        leading ``"//"``, it is relative to the root of the server, without ``/v1``. ``body`` is
        sent as JSON; ``None``: a GET request. ``wanted`` describes the answer in errors; ``kind``
        is its type, ``str`` for words. Raises ``ModelError`` as :meth:`chat` does."""
        client = (await self._connected()).client.with_options(**options)
        base = str(client.base_url).rstrip("/")
        url = f"{base.removesuffix('/v1') if route.startswith('//') else base}/{route.lstrip('/')}"
        try:
            if body is None:
                text = await client.get(url, cast_to=str)
            else:
                text = await client.post(url, cast_to=str, body=dict(body))
            return text if kind is str else msgspec.json.decode(text, type=kind)  # type: ignore[return-value]
        except Exception as error:
            failed = self._failure(error, wanted)
            if failed is None:
                raise
        raise failed

    def error(self, what: str, expected: str, got: str, advice: str) -> str:
        """The text of an error, on one line, without secrets even if the server echoed them."""
        got = self._redacted(got)
        if len(got) > _SHOWN_OF_FAILURE:
            got = f"{got[:_SHOWN_OF_FAILURE]}…"
        return f"{self.where}: {what}; expected {expected}, got {got}. To do: {advice}"

    async def close(self) -> None:
        """Close the connections of this event loop; those of others close with their loops."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.closing.aclose()

    def _failure(self, error: Exception, wanted: str, attempts: int = 0) -> ModelError | None:
        """The error for a failure of the last attempt; ``None`` if the endpoint did not cause it.
        ``attempts``: how many were made; 0: not counted."""
        explained = failures.explained(error, self.key_env)
        if explained is None:
            return None
        tries = f" after {attempts} attempt{'s' * (attempts > 1)}" if attempts else ""
        text = self.error(f"no answer{tries}", wanted, *explained)
        if isinstance(error, openai.APIStatusError) and not failures.is_passing(error):
            return RequestRejected(text, error.status_code, self._redacted(failures.told(error)))
        return ModelUnavailable(text)

    def _redacted(self, text: str) -> str:
        return redacted(text, [self._key()])

    def _key(self) -> str:
        return os.environ.get(self.key_env, "").strip()

    async def _connected(self) -> _Connection:
        """The connection of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            for other in list(self._connections):  # in place: other threads add theirs
                if other.is_closed():
                    self._connections.pop(other, None)
            made = self._connections[loop] = _Connection(self)
            await anext(made.closing)
        return self._connections[loop]

    def checked_key(self) -> str:
        """The key. Raises ``ModelError`` if it is needed and not there, or cannot be sent."""
        key = self._key()
        where = f"{self.where}: expected a key in the environment variable {self.key_env}"
        if not key and self.url == OPENAI_URL:
            raise ModelError(
                f"{where}, got none. Set it on every machine that asks, or give the base_url of "
                "an endpoint that needs no key"
            )
        if not all("!" <= letter <= "~" for letter in key):
            raise ModelError(
                f"{where} of printable ASCII characters, got one with spaces, line breaks or other "
                "characters. Set it again"
            )
        return key
