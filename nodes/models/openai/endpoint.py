"""One OpenAI-compatible endpoint: connection slots, rate limits, budget and retries."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import openai

from swarm_ui.budget import Price, likely_tokens
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.model import Dropped
from swarm_ui.nodes.models.openai.admission import Admission
from swarm_ui.nodes.models.openai.failures import (
    AttemptFailure,
    RequestRejected,
    attempt_failure,
)
from swarm_ui.nodes.models.openai.replies import (
    ChatReply,
    check_length,
    limit_body,
    read_chat,
    read_response,
    written,
)
from swarm_ui.nodes.models.openai.request_body import with_plausible_usage
from swarm_ui.nodes.models.openai.secrets import (
    basic_credentials,
    is_address,
    redacted,
    secrets_of,
    without_credentials,
)
from swarm_ui.nodes.models.openai.settings import RateLimits, RetryPolicy

OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 5.0
_SHOWN_OF_FAILURE = 400


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One chat request, ready to be sent."""

    body: Mapping[str, object]
    """Keyword arguments of openai's ``chat.completions.create``."""
    most: Usage
    """Maximum number of tokens that it may use, reserved in the budget while it is in flight."""
    prompt: str
    model: str
    """The served name that is requested."""
    price: Price | None = None
    dropped: Dropped | None = None
    """The parts of the decision that the prompt leaves out."""
    longest: int | None = None
    """The limit of tokens of all its replies together that is sent; ``None``: none is sent."""


class ServedModel(NamedTuple):
    """A model or an adapter in the list of an endpoint."""

    name: str
    root: str | None = None
    """The folder of its weights, if the server reports it."""
    parent: str | None = None
    """For an adapter: the model that it belongs to."""


def _served_model(card: object) -> ServedModel:
    name, *rest = (getattr(card, field, None) for field in ("id", "root", "parent"))
    if not isinstance(name, str):
        raise TypeError("expected a model with a name, got one without")
    root, parent = (text if isinstance(text, str) else None for text in rest)
    return ServedModel(name, root, parent)


@dataclass(slots=True)
class _Admitted:
    """A request that may be sent now, and its usage. The usage is ``None`` if it is unknown, as
    after a reply that was cut off; then the whole reservation counts as used."""

    client: openai.AsyncOpenAI
    used: Usage | None = None


class _Connection:
    """The client, the slots and the admission. All of them belong to one event loop."""

    def __init__(self, url: str, key: str, limits: RateLimits, timeout: float) -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        # No compression, so that a small body cannot become a large one. The password is sent as
        # httpx would send it, but is not part of the address, which httpx writes to its log.
        headers = {"Accept-Encoding": "identity"}
        if parts.username or parts.password:
            headers["Authorization"] = f"Basic {basic_credentials(url)}"
        self.client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=urlunsplit((parts.scheme, host, parts.path, "", "")),
            default_query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            max_retries=0,
            timeout=openai.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
            default_headers=headers,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [limit_body]}),
        )
        self.closing = self._closing()
        self.slots = asyncio.Semaphore(limits.concurrency)
        self.admission: Admission | None = None
        """Made for the first chat request."""

    async def _closing(self) -> AsyncGenerator[None]:
        """A generator that closes the client when it is closed. The event loop closes it, as all
        started generators, before it ends; afterwards the sockets could not be closed."""
        try:
            yield
        finally:
            if self.admission is not None:
                self.admission.close()
            await self.client.close()


class Endpoint:
    """Sends chat requests and keeps the counters. Each event loop has separate connections."""

    def __init__(
        self,
        model: str,
        url: str,
        *,
        key: str | None,
        key_env: str,
        limits: RateLimits,
        retry: RetryPolicy,
        admission: Callable[[], Admission],
    ) -> None:
        """``admission``: creates the object that gives permits to the calls of one event loop."""
        shown = without_credentials(url)
        if not is_address(url):
            raise ConfigError(
                f"OpenAIModel: expected a base_url such as http://localhost:8000/v1, got '{shown}'"
                ". In a password, write %2F for '/', %3F for '?' and %23 for '#'"
            )
        self.where = f"model '{model}' at {shown}"
        self.calls = 0
        self.retries = 0
        self.seconds_waiting = 0.0
        self.cost = 0.0
        self.url, self._given_key, self.key_env = url, key, key_env
        self._key_name = f"the variable {key_env}" if key is None else "api_key"
        self._limits, self.retry, self.admission = limits, retry, admission
        self.key_elsewhere = False
        """Whether the key was an argument in the process that sent this endpoint here."""
        self._connections: dict[asyncio.AbstractEventLoop, _Connection] = {}

    @property
    def key_given(self) -> bool:
        """Whether the key was given as an argument, in this process or in the one that sent this
        endpoint."""
        return self._given_key is not None or self.key_elsewhere

    async def replies(self, call: ChatCall, *, stream: bool) -> AsyncGenerator[str | ChatReply]:
        """Make one chat completion, with as many attempts as allowed; the whole reply comes last.

        With ``stream``, the pieces of the reply come before it. If a reply breaks off after some
        pieces, the next attempt gives no pieces, only the whole reply.

        Raises:
            BudgetExceeded: an attempt could exceed the budget; it was not sent.
            ModelUnavailable: no attempt succeeded; a later one may.
            RequestRejected: the endpoint rejected the request with an HTTP status.
            ModelError: it failed for another reason, and a retry would not help.
        """
        shown = 0
        """The attempt whose pieces were given; 0: none so far."""
        for attempt in itertools.count(1):
            try:
                async with aclosing(self._attempt(call, stream=stream)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            shown = shown or attempt
                        if not isinstance(piece, str) or shown == attempt:
                            yield piece
                return
            except Exception as error:
                failure = attempt_failure(error, self._key_name)
                if failure is None:
                    raise
            await self._pause(attempt, failure)

    async def served(self, seconds: float) -> tuple[str, ...] | None:
        """The names of the models in :meth:`listed`; ``None`` if the endpoint keeps no list."""
        models = await self.listed(seconds)
        return None if models is None else tuple([model.name for model in models])

    async def listed(self, seconds: float) -> tuple[ServedModel, ...] | None:
        """The models served, requested once; ``None`` if the endpoint keeps no list. Raises
        ``ModelError`` if no list arrives within ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                page = await (await self._connected()).client.models.list()
            return tuple([_served_model(model) for model in page.data])
        except openai.NotFoundError:
            return None
        except (AttributeError, TypeError) as error:  # the client does not validate replies
            got = f"a reply that is not a list of models ({error})"
            failure = AttemptFailure(got, "check that the address ends in /v1", retryable=True)
        except Exception as error:
            found = attempt_failure(error, self._key_name)
            if found is None:
                raise
            failure = found
        raise self.error("the endpoint did not list its models", "a list of models", failure)

    async def post(self, route: str, body: Mapping[str, object], what: str) -> str:
        """The answer of another route of the server, with as many attempts as allowed.

        Args:
            route: relative to the address, such as ``"/load_lora_adapter"``; or, with a leading
                ``"//"``, relative to the root of the server, without ``/v1``.
            body: sent as JSON.
            what: a description of the request, for the error.

        Raises:
            ModelUnavailable: no attempt succeeded; a later one may.
            RequestRejected: the server rejected it with an HTTP status.
        """
        for attempt in itertools.count(1):
            try:
                client = (await self._connected()).client
                base = str(client.base_url).rstrip("/")
                root = base.removesuffix("/v1") if route.startswith("//") else base
                address = f"{root}/{route.lstrip('/')}"
                async with asyncio.timeout(self.retry.timeout):
                    return await client.post(address, cast_to=str, body=dict(body))
            except Exception as error:
                failure = attempt_failure(error, self._key_name)
                if failure is None:
                    raise
            await self._pause(attempt, failure, what)
        raise AssertionError("the last attempt raises")

    def error(self, what: str, expected: str, failure: AttemptFailure) -> ModelError:
        """The error for a failure, on one line, without secrets even if the server echoed them."""
        got = self._redacted(failure.got)
        if len(got) > _SHOWN_OF_FAILURE:
            got = f"{got[:_SHOWN_OF_FAILURE]}…"
        text = f"{self.where}: {what}; expected {expected}, got {got}. To do: {failure.advice}"
        if failure.retryable:
            return ModelUnavailable(text)
        if failure.status is None:
            return ModelError(text)
        return RequestRejected(text, failure.status, failure.field, failure.unsupported)

    async def close(self) -> None:
        """Close the connections of this event loop; those of others close with their loops."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.closing.aclose()

    async def _attempt(self, call: ChatCall, *, stream: bool) -> AsyncGenerator[str | ChatReply]:
        timeout, asked = self.retry.timeout, call.most.prompt_tokens
        async with self._admitted(call) as admitted:
            create = admitted.client.chat.completions.create
            try:
                if stream:
                    async with asyncio.timeout(timeout):
                        response = await create(**call.body, stream=True)  # type: ignore[call-overload]
                    read = read_response(response, timeout, call.longest)
                    async with response, aclosing(read) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, ChatReply):
                                piece = with_plausible_usage(piece, asked, call.longest)
                                admitted.used = piece.usage
                            yield piece
                else:
                    async with asyncio.timeout(timeout):
                        reply = read_chat(await create(**call.body))  # type: ignore[call-overload]
                    check_length(sum(map(written, reply.answers)), call.longest)
                    reply = with_plausible_usage(reply, asked, call.longest)
                    admitted.used = reply.usage
                    yield reply
            except Exception as error:
                failure = attempt_failure(error, self._key_name)
                if failure is not None and failure.unbilled:
                    admitted.used = Usage()
                raise

    @asynccontextmanager
    async def _admitted(self, call: ChatCall) -> AsyncGenerator[_Admitted]:
        """Wait for a slot and the rate limits, reserve the budget; settle both afterwards."""
        connection = await self._connected()
        started = time.monotonic()
        self._check_size(likely_tokens(call.most))
        if connection.admission is None:
            connection.admission = self.admission()
        admission = connection.admission
        async with connection.slots:
            permit = await admission.acquire(call.most, call.price, self.where)
            self.seconds_waiting += time.monotonic() - started
            self.calls += 1
            admitted = _Admitted(connection.client)
            try:
                yield admitted
            finally:
                self.cost += admission.settle(permit, admitted.used)

    def _check_size(self, tokens: int) -> None:
        limit = self._limits.tokens_per_minute
        if limit is not None and tokens > limit:
            raise ModelError(
                f"{self.where}: expected requests that fit into tokens_per_minute={limit}, got one "
                f"that may need {tokens} tokens. Lower its max_tokens or raise tokens_per_minute"
            )

    async def _pause(
        self, attempt: int, failure: AttemptFailure, wanted: str = "a chat completion"
    ) -> None:
        """Wait before the next attempt, with jitter, so that agents do not retry all at once.
        Raises ``ModelError`` if no other attempt is allowed."""
        policy, wait = self.retry, failure.retry_after
        if not failure.retryable or attempt > policy.retries or (wait or 0.0) > policy.max_wait:
            told = f", told to wait {wait:g} s" if wait else ""
            tries = "1 attempt" if attempt == 1 else f"{attempt} attempts"
            raise self.error(f"no answer after {tries}{told}", wanted, failure)
        if wait is not None:
            wait += policy.jitter.uniform(0.0, policy.backoff)
        else:
            wait = min(policy.max_wait, policy.backoff * 2.0 ** (attempt - 1))
            wait *= policy.jitter.uniform(0.5, 1.0)
        self.retries += 1
        self.seconds_waiting += wait
        await asyncio.sleep(wait)

    def _redacted(self, text: str) -> str:
        """A text of the server without the key, the password and the query."""
        return redacted(text, [self._key(), *secrets_of(self.url)])

    def _key(self) -> str:
        given = os.environ.get(self.key_env, "") if self._given_key is None else self._given_key
        return given.strip()

    async def _connected(self) -> _Connection:
        """The connection of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            for other in list(self._connections):  # in place: other threads add theirs
                if other.is_closed():
                    self._connections.pop(other, None)
            key = self._key()
            if not key and self.key_elsewhere:
                raise ConfigError(
                    f"{self.where}: expected a key in the environment variable {self.key_env} of "
                    "this worker, got none; api_key was given as an argument, and a key is never "
                    f"sent to workers. Set {self.key_env} on every machine, and leave api_key out"
                )
            if not key and self.url == OPENAI_URL:
                raise ModelError(
                    f"{self.where}: expected a key in the environment variable {self.key_env}, "
                    "got none. Set it, or give the base_url of an endpoint that needs no key"
                )
            if not all("!" <= letter <= "~" for letter in key):
                raise ModelError(
                    f"{self.where}: expected a key of printable ASCII characters in "
                    f"{self._key_name}, got one with spaces, line breaks or other characters. "
                    "Set it again"
                )
            made = _Connection(self.url, key, self._limits, self.retry.timeout)
            self._connections[loop] = made
            await anext(made.closing)
        return self._connections[loop]
