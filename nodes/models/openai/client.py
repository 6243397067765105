"""One OpenAI-compatible endpoint: its address and key, a connection of each event loop, and the
errors of its failures."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import openai
from asyncio_throttle.throttler import Throttler

from swarm_ui.addresses import is_address, redacted, without_credentials
from swarm_ui.engine.tasks import within
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.nodes.models.openai import failures
from swarm_ui.nodes.models.openai.options import RateLimits
from swarm_ui.nodes.models.openai.wire import limit_body

T = TypeVar("T")
OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 5.0
_SHOWN_OF_FAILURE = 400


class Connection(NamedTuple):
    """The client, the slots and the rate of one event loop."""

    client: openai.AsyncOpenAI
    slots: asyncio.Semaphore
    rate: AbstractAsyncContextManager[None]
    held: AsyncGenerator[None]
    """Closes the client when it is closed. The event loop closes it, as all started generators,
    before it ends; afterwards the sockets could not be closed."""


class Endpoint:
    """One address; for the arguments see :class:`~swarm_ui.nodes.OpenAIModel`."""

    def __init__(
        self, model: str, url: str | None, key_env: str, limits: RateLimits, retries: int,
        timeout: float,
    ) -> None:  # fmt: skip
        self._url = url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        self._key_env, self._limits, self._retries, self._timeout = (
            key_env,
            limits,
            retries,
            timeout,
        )
        self._open: dict[asyncio.AbstractEventLoop, Connection] = {}
        shown = without_credentials(self._url)
        self.where = f"model '{model}' at {shown}"
        """The model and its address, without secrets."""
        if not is_address(self._url) or shown != self._url.rstrip("/"):
            raise ConfigError(
                "OpenAIModel: expected a base_url such as http://localhost:8000/v1, without a "
                f"password or a query, which would be shown in messages, got '{shown}'. Put a key "
                f"into the environment variable {key_env}"
            )

    def __getstate__(self) -> dict[str, Any]:
        """The fields without the connections, which hold the key."""
        return vars(self) | {"_open": {}}

    async def connected(self) -> Connection:
        """The connection of the running event loop. Raises ``ModelError`` if the key is needed and
        not there, or cannot be sent."""
        loop, limits = asyncio.get_running_loop(), self._limits
        if loop in self._open:
            return self._open[loop]
        for other in list(self._open):  # in place: other threads add theirs
            if other.is_closed():
                self._open.pop(other, None)
        bounded: dict[str, list[Any]] = {"response": [partial(limit_body, self._timeout)]}
        client = openai.AsyncOpenAI(
            api_key=self._key(),
            base_url=self._url,
            max_retries=0,
            timeout=openai.Timeout(None, connect=min(_CONNECT_SECONDS, self._timeout)),
            # No compression, so that a small body cannot become a large one.
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultAsyncHttpxClient(event_hooks=bounded),
        )
        rate: AbstractAsyncContextManager[None] = nullcontext()
        if limits.requests is not None:
            rate = Throttler(limits.requests, limits.period)
        slots, held = asyncio.Semaphore(limits.concurrency), _held(client)
        made = self._open[loop] = Connection(client, slots, rate, held)
        await anext(held)
        return made

    async def close(self) -> None:
        """Close the connection of this event loop; those of others close with their loops."""
        if (connection := self._open.pop(asyncio.get_running_loop(), None)) is not None:
            await connection.held.aclose()

    def _key(self) -> str:
        key = os.environ.get(self._key_env, "").strip()
        if not (key or self._url != OPENAI_URL) or not all("!" <= letter <= "~" for letter in key):
            got = "one with spaces, line breaks or other characters" if key else "none"
            raise ModelError(
                f"{self.where}: expected a key in the environment variable {self._key_env}, of "
                f"printable ASCII characters, got {got}. Set it on every machine that asks, or "
                "give the base_url of an endpoint that needs no key"
            )
        return key or "none"

    async def ask(
        self, route: str, body: Mapping[str, object] | None, wanted: str, kind: type[T], *,
        seconds: float | None = None,
    ) -> T:  # fmt: skip
        """The answer of another route than chats, such as ``"load_lora_adapter"``; with a leading
        ``"//"``, it is relative to the root of the server, without ``/v1``. ``body`` is sent as
        JSON; ``None``: a GET request. ``wanted`` describes the answer in errors; ``kind`` is its
        type, ``str`` for words. ``seconds``: the time of one attempt; ``None``: the openai client
        repeats it, within the timeout. Raises ``ModelUnavailable`` or ``RequestRejected``."""
        client = (await self.connected()).client
        base = str(client.base_url).rstrip("/")
        url = f"{base.removesuffix('/v1') if route.startswith('//') else base}/{route.lstrip('/')}"
        options: Any = {"max_retries": 0 if seconds else self._retries}
        try:
            if body is None:
                asked = client.get(url, cast_to=str, options=options)
            else:
                asked = client.post(url, cast_to=str, body=dict(body), options=options)
            text: Any = await within(seconds or self._timeout, asked)
            return text if kind is str else msgspec.json.decode(text, type=kind)
        except Exception as error:
            failed = self.failure(error, wanted)
        raise failed  # outside of the block, so that no traceback shows the words of the server

    def failure(self, error: Exception, wanted: str, attempts: int = 1) -> Exception:
        """The error for a failure of the last attempt: ``ModelUnavailable`` if another may succeed,
        ``RequestRejected`` if not; itself if the endpoint did not cause it."""
        explained = failures.explained(error, self._key_env)
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

    def _redacted(self, text: str) -> str:
        return redacted(text, [os.environ.get(self._key_env, "").strip()])


async def _held(client: openai.AsyncOpenAI) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await client.close()
