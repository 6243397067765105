"""One OpenAI-compatible endpoint: its connections, its limits, and how attempts are repeated.

A reply that breaks off while it is read is requested again, too, which the openai client does not
do. So all attempts are repeated here, and each waits for the rate limit and reserves its part of
the budget.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import openai
from asyncio_throttle.throttler import Throttler

from swarm_ui.addresses import is_address, redacted, without_credentials
from swarm_ui.budget import Budget, Price
from swarm_ui.engine.tasks import within
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai import failures
from swarm_ui.nodes.models.openai.options import RateLimits
from swarm_ui.nodes.models.openai.wire import ChatReply, limit_body, read_reply

T = TypeVar("T")
OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 5.0
_SHOWN_OF_FAILURE = 400


class ChatCall(NamedTuple):
    """One chat."""

    body: Mapping[str, Any]
    """The arguments of openai's ``chat.completions.create``."""
    most: Usage
    """The most tokens that an attempt may use."""
    longest: int | None
    """The limit of tokens of the reply that is sent; ``None``: none is sent."""
    price: Price | None


class _Connection:
    """The client, the slots and the rate of one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        limits = endpoint.limits
        bounded: dict[str, list[Any]] = {"response": [partial(limit_body, endpoint.timeout)]}
        self.client = openai.AsyncOpenAI(
            api_key=endpoint.checked_key() or "none",
            base_url=endpoint.url,
            max_retries=0,
            timeout=openai.Timeout(None, connect=min(_CONNECT_SECONDS, endpoint.timeout)),
            # No compression, so that a small body cannot become a large one.
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultAsyncHttpxClient(event_hooks=bounded),
        )
        self.slots = asyncio.Semaphore(limits.concurrency)
        self.rate: AbstractAsyncContextManager[None] = nullcontext()
        if limits.requests is not None:
            self.rate = Throttler(limits.requests, limits.period)
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
    """Sends requests to one address; for the fields see :class:`~swarm_ui.nodes.OpenAIModel`."""

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
        connection, spoke = await self._connected(), False

        def piece(text: str) -> None:
            nonlocal spoke
            spoke = True
            if said is not None:
                said(text)

        async def attempt() -> ChatReply:
            async with connection.rate:
                hold = self.budget.reserve(call.most, self.where, call.price)
            used: Usage | None = None  # unknown: what was reserved counts
            create: Any = connection.client.chat.completions.create
            try:
                if said is None:
                    whole = _once(await within(self.timeout, create(**call.body)))
                    reply = await read_reply(whole, call.longest, piece)
                else:
                    give = _ignored if spoke else piece
                    async with await within(self.timeout, create(**call.body, stream=True)) as some:
                        reply = await read_reply(some, call.longest, give)
                used = reply.usage
                return reply
            except openai.APIError as error:
                if failures.is_free(error):
                    used = Usage()
                raise
            finally:
                self.budget.settle(hold, used)

        async with connection.slots:
            return await self._tried(attempt, "a chat completion", self.max_retries)

    async def ask(
        self,
        route: str,
        body: Mapping[str, object] | None,
        wanted: str,
        kind: type[T],
        *,
        seconds: float | None = None,
    ) -> T:
        """The answer of another route of the server, such as ``"load_lora_adapter"``; with a
        leading ``"//"``, it is relative to the root of the server, without ``/v1``. ``body`` is
        sent as JSON; ``None``: a GET request. ``wanted`` describes the answer in errors; ``kind``
        is its type, ``str`` for words. ``seconds``: make one attempt, of this time. Raises
        ``ModelError`` as :meth:`chat` does."""
        client = (await self._connected()).client
        base = str(client.base_url).rstrip("/")
        url = f"{base.removesuffix('/v1') if route.startswith('//') else base}/{route.lstrip('/')}"

        async def attempt() -> T:
            if body is None:
                asked = client.get(url, cast_to=str)
            else:
                asked = client.post(url, cast_to=str, body=dict(body))
            text: Any = await within(seconds or self.timeout, asked)
            return text if kind is str else msgspec.json.decode(text, type=kind)

        return await self._tried(attempt, wanted, 0 if seconds else self.max_retries)

    async def _tried(self, attempt: Callable[[], Awaitable[T]], wanted: str, retries: int) -> T:
        """What an attempt returns; it is repeated if it may succeed later."""
        number = 0
        while True:
            number += 1
            try:
                return await attempt()
            except Exception as error:
                failed = self._failure(error, wanted, number)
                pause = failures.pause(error, number)
            # Outside of the block, so that no traceback shows the words of the server.
            if not isinstance(failed, ModelUnavailable) or number > retries:
                raise failed
            await asyncio.sleep(pause)

    def _failure(self, error: Exception, wanted: str, attempts: int) -> Exception:
        """The error for a failure of the last attempt; itself if the endpoint did not cause it."""
        explained = failures.explained(error, self.key_env)
        if explained is None:
            return error
        tries = f" after {attempts} attempts" if attempts > 1 else ""
        text = self.error(f"no answer{tries}", wanted, *explained)
        if isinstance(error, openai.APIStatusError) and not failures.is_passing(error):
            told = self._redacted(failures.told(error))
            return failures.RequestRejected(text, error.status_code, told)
        return ModelUnavailable(text)

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

    def _redacted(self, text: str) -> str:
        return redacted(text, [os.environ.get(self.key_env, "").strip()])

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
        key = os.environ.get(self.key_env, "").strip()
        if not (key or self.url != OPENAI_URL) or not all("!" <= letter <= "~" for letter in key):
            got = "one with spaces, line breaks or other characters" if key else "none"
            raise ModelError(
                f"{self.where}: expected a key in the environment variable {self.key_env}, of "
                f"printable ASCII characters, got {got}. Set it on every machine that asks, or "
                "give the base_url of an endpoint that needs no key"
            )
        return key


async def _once(chat: Any) -> AsyncIterator[Any]:
    yield chat


def _ignored(text: str) -> None:
    """Takes the pieces of a reply of which an earlier attempt gave some."""
