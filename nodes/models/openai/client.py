"""One OpenAI-compatible endpoint: its connections, and errors that say what to do.

The openai client repeats failed attempts and waits as long as the server asks. Below it, an http
client of our own lets each attempt wait for the rate limits and reserve its part of the budget.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec
import openai

from swarm_ui.addresses import (
    basic_credentials,
    is_address,
    redacted,
    secrets_of,
    without_credentials,
)
from swarm_ui.budget import Price
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.limits import Admission, Permit
from swarm_ui.nodes.models.openai.wire import (
    ChatReply,
    MalformedReply,
    limit_body,
    plausible_usage,
    read_chat,
    read_stream,
)

OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
"""Seconds before a reply that broke off is requested again, as in the openai client."""
_SHOWN_OF_FAILURE = 400
_NEVER_CONNECTED = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
_QUOTA_USED_UP = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_CHECK_ENDPOINT = "check that this is an OpenAI-compatible endpoint"
_TOKENS = "of an agent ([team] max_tokens), or the field's name (token_field, [model] token_field)"
OPTIONAL = {
    "temperature": "temperature= of an agent ([team] temperature)",
    "seed": "ChatOptions(send_seed=) ([model] send_seed)",
    "max_tokens": f"max_tokens= {_TOKENS}",
    "max_completion_tokens": f"max_tokens= {_TOKENS}",
    "logprobs": "ChatOptions(logprobs=)",
}
"""Fields of a request that are sent only if they were chosen, and the settings that choose them."""
_REPLACED = {
    "stream_options": re.compile("stream_options"),
    "tools": re.compile("tool", re.IGNORECASE),
    "response_format": re.compile("response_format|schema|grammar", re.IGNORECASE),
}
"""Fields that a request can do without, and how a server names them in a rejection."""
_NOT_SUPPORTED = re.compile(
    r"(\bnot|n't)\b.{0,20}(support|accept|allow|permit)|unsupported|unknown|unrecogni[sz]ed|"
    r"unexpected",
    re.IGNORECASE,
)


class RequestRejected(ModelError):
    """The endpoint rejected a request with an HTTP status, and would reject it again."""

    def __init__(self, message: str, status: int, told: str = "") -> None:
        """``told``: the words of the server."""
        super().__init__(message)
        self.status, self.told = status, told

    def field(self, body: Mapping[str, object], needed: Collection[str] = ()) -> str | None:
        """The field of a request that the server does not know, or of which it accepts only the
        default; ``None`` if it was rejected for another reason. ``needed``: must be sent."""
        if self.status not in (400, 404, 422):
            return None
        for field in OPTIONAL:
            if field in body and field not in needed and re.search(rf"\b{field}\b", self.told):
                return field if _NOT_SUPPORTED.search(self.told) else None
        return next((f for f, words in _REPLACED.items() if f in body and words.search(self.told)),
                    None)  # fmt: skip


class ServedModel(NamedTuple):
    """A model or an adapter in the list of an endpoint."""

    name: str
    root: str | None = None
    """The folder of its weights, if the server reports it."""
    parent: str | None = None
    """For an adapter: the model that it belongs to."""


class ChatCall:
    """One chat, and the attempts at it. Each is admitted before it is sent, and settled."""

    timeout = 60.0
    """Seconds for one attempt; of a stream, to each next piece."""

    def __init__(self, where: str, most: Usage, longest: int | None, price: Price | None) -> None:
        """
        Args:
            where: the model, for errors.
            most: the most tokens that an attempt may use.
            longest: the limit of tokens of the reply that is sent; ``None``: none is sent.
            price: the price of the model, if known.
        """
        self.where, self.most, self.longest, self.price = where, most, longest, price
        self.attempts = 0
        self.cost = 0.0
        self.admission: Admission | None = None
        self._permit: Permit | None = None

    async def begin(self) -> None:
        """Wait until an attempt may be sent."""
        assert self.admission is not None
        self._permit = await self.admission.acquire(self.most, self.price, self.where)
        self.attempts += 1

    @property
    def under_way(self) -> bool:
        """Whether an attempt is not settled: its reply is being read."""
        return self._permit is not None

    def end(self, used: Usage | None) -> None:
        """Settle the attempt under way, if any. ``used``: as in :class:`Permit`."""
        if self._permit is not None:
            self.cost += self._permit.settle(used)
            self._permit = None


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Total usage of a model."""

    calls: int = 0
    """Requests sent, retries included."""
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """Money, in the currency of the prices; ``None`` if neither the model nor an adapter that was
    asked has a price. A call whose usage is unknown (cut off, timed out, cancelled) counts with its
    limit of tokens, or, without one, with ``Request.reply_tokens``."""

    def plus(self, call: ChatCall, usage: Usage) -> UsageTotals:
        """These totals and those of one call."""
        return UsageTotals(
            calls=self.calls + call.attempts,
            retries=self.retries + max(0, call.attempts - 1),
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            cost=self.cost if call.price is None else (self.cost or 0.0) + call.cost,
        )


_CALL: ContextVar[ChatCall | None] = ContextVar("call", default=None)
"""The chat that is being sent."""


class _AdmittedHttp(openai.DefaultAsyncHttpxClient):
    """Sends each attempt of a chat when it is admitted. An attempt that the server refused, or that
    reached no server, costs nothing."""

    async def send(self, request: Any, **options: Any) -> Any:
        call = _CALL.get()
        if call is None:  # not a chat
            return await super().send(request, **options)
        await call.begin()
        try:
            async with asyncio.timeout(call.timeout):
                response = await super().send(request, **options)
        except TimeoutError:  # it arrives too slowly
            raise
        except Exception as error:
            call.end(Usage() if type(error).__name__ in _NEVER_CONNECTED else None)
            raise
        if response.is_error:
            call.end(Usage())
        return response


class _Connection:
    """The client, the slots and the admission. All of them belong to one event loop."""

    def __init__(self, endpoint: Endpoint, key: str) -> None:
        parts, timeout = urlsplit(endpoint.url), endpoint.timeout
        host = parts.netloc.rpartition("@")[2]
        # No compression, so that a small body cannot become a large one. The password is sent as
        # httpx would send it, but is not part of the address, which httpx writes to its log.
        headers = {"Accept-Encoding": "identity"}
        if parts.username or parts.password:
            headers["Authorization"] = f"Basic {basic_credentials(endpoint.url)}"
        self.client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=urlunsplit((parts.scheme, host, parts.path, "", "")),
            default_query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            max_retries=endpoint.max_retries,
            timeout=openai.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
            default_headers=headers,
            http_client=_AdmittedHttp(event_hooks={"response": [limit_body]}),
        )
        self.slots = asyncio.Semaphore(endpoint.concurrency)
        self.admission: Admission | None = None
        """Made for the first chat."""
        self.closing = self._closing()

    async def _closing(self) -> AsyncGenerator[None]:
        """A generator that closes the client when it is closed. The event loop closes it, as all
        started generators, before it ends; afterwards the sockets could not be closed."""
        try:
            yield
        finally:
            await self.client.close()


class Endpoint:
    """Sends chats to one address. Each event loop has separate connections."""

    def __init__(
        self,
        model: str,
        url: str,
        *,
        key: str | None,
        key_env: str,
        concurrency: int,
        max_retries: int,
        timeout: float,
        admission: Callable[[], Admission],
    ) -> None:
        """For the arguments see :class:`~swarm_ui.nodes.OpenAIModel`. ``admission``: creates the
        object that gives permits to the calls of one event loop."""
        shown = without_credentials(url)
        if not is_address(url):
            raise ConfigError(
                f"OpenAIModel: expected a base_url such as http://localhost:8000/v1, got '{shown}'"
                ". In a password, write %2F for '/', %3F for '?' and %23 for '#'"
            )
        self.where = f"model '{model}' at {shown}"
        self.url, self._given_key, self.key_env = url, key, key_env
        self.concurrency, self.max_retries, self.timeout = concurrency, max_retries, timeout
        self.admission = admission
        self.key_elsewhere = False
        """Whether the key was an argument in the process that sent this endpoint here."""
        self._connections: dict[asyncio.AbstractEventLoop, _Connection] = {}

    @property
    def key_given(self) -> bool:
        """Whether the key was given as an argument, in this process or in the one that sent this
        endpoint."""
        return self._given_key is not None or self.key_elsewhere

    async def replies(
        self, body: Mapping[str, Any], call: ChatCall, *, stream: bool
    ) -> AsyncGenerator[str | ChatReply]:
        """Make one chat completion; the whole reply comes last.

        With ``stream``, the pieces of the reply come before it. If a reply breaks off after some
        pieces, the next attempt gives no pieces, only the whole reply.

        Raises:
            BudgetExceeded: an attempt could exceed the budget; it was not sent.
            ModelUnavailable: no attempt succeeded; a later one may.
            RequestRejected: the endpoint rejected the request.
        """
        connection = await self._connected()
        if connection.admission is None:
            connection.admission = self.admission()
        call.admission, call.timeout = connection.admission, self.timeout
        shown = 0
        """The attempt whose pieces were given; 0: none so far."""
        async with connection.slots:
            while True:
                try:
                    async with aclosing(self._attempts(connection, body, call, stream)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, str):
                                shown = shown or call.attempts
                            if not isinstance(piece, str) or shown == call.attempts:
                                yield piece
                    return
                except Exception as error:
                    broken_off = call.under_way
                    failed = self._failure(error, "a chat completion", call.attempts)
                    if failed is None:
                        raise
                finally:
                    call.end(None)
                # Outside of the block, so that no traceback shows the words of the server.
                if not broken_off or call.attempts > self.max_retries:
                    raise failed
                await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (call.attempts - 1)))

    async def _attempts(
        self, connection: _Connection, body: Mapping[str, Any], call: ChatCall, stream: bool
    ) -> AsyncGenerator[str | ChatReply]:
        """One reply, after as many attempts as are left until one is answered."""
        client = connection.client.with_options(max_retries=self.max_retries - call.attempts)
        longest = call.longest

        def settled(reply: ChatReply) -> ChatReply:
            usage = plausible_usage(reply, call.most.prompt_tokens, longest)
            call.end(usage)
            return reply._replace(usage=usage)

        token = _CALL.set(call)
        try:
            create: Any = client.chat.completions.create
            response = await create(**body, **({"stream": True} if stream else {}))
        finally:
            _CALL.reset(token)
        if not stream:
            yield settled(read_chat(response, longest))
            return
        async with response, aclosing(read_stream(response, self.timeout, longest)) as pieces:
            async for piece in pieces:
                yield piece if isinstance(piece, str) else settled(piece)

    async def served(self, seconds: float) -> tuple[ServedModel, ...] | None:
        """The models served, requested once; ``None`` if the endpoint keeps no list. Raises
        ``ModelError`` if no list arrives within ``seconds``."""
        client = (await self._connected()).client
        try:
            page = await client.with_options(max_retries=0, timeout=seconds).models.list()
            return tuple([_served_model(model) for model in page.data])
        except openai.NotFoundError:
            return None
        except (AttributeError, TypeError) as error:  # the client does not validate replies
            broken = MalformedReply(f"a reply that is not a list of models ({error})")
            failed = self._failure(broken, "a list of models")
        except Exception as error:
            failed = self._failure(error, "a list of models")
            if failed is None:
                raise
        assert failed is not None
        raise failed

    async def post(self, route: str, body: Mapping[str, object], wanted: str) -> str:
        """The answer of another route of the server.

        Args:
            route: relative to the address, such as ``"/load_lora_adapter"``; or, with a leading
                ``"//"``, relative to the root of the server, without ``/v1``.
            body: sent as JSON.
            wanted: a description of the request, for the error.

        Raises:
            ModelUnavailable: no attempt succeeded; a later one may.
            RequestRejected: the server rejected it.
        """
        client = (await self._connected()).client
        base = str(client.base_url).rstrip("/")
        root = base.removesuffix("/v1") if route.startswith("//") else base
        try:
            return await client.post(f"{root}/{route.lstrip('/')}", cast_to=str, body=dict(body))
        except Exception as error:
            failed = self._failure(error, wanted)
            if failed is None:
                raise
        raise failed

    def error(self, what: str, expected: str, got: str, advice: str) -> str:
        """The text of an error, on one line, without secrets even if the server echoed them."""
        got = redacted(got, [self._key(), *secrets_of(self.url)])
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
        key = f"the variable {self.key_env}" if self._given_key is None else "api_key"
        explained = _explained(error, key)
        if explained is None:
            return None
        tries = {0: "", 1: " after 1 attempt"}.get(attempts, f" after {attempts} attempts")
        text = self.error(f"no answer{tries}", wanted, *explained)
        if not isinstance(error, openai.APIStatusError):
            return ModelUnavailable(text)
        status = error.status_code
        if (status in (408, 409, 429) or status >= 500) and error.code not in _QUOTA_USED_UP:
            return ModelUnavailable(text)
        secrets = [self._key(), *secrets_of(self.url)]
        return RequestRejected(text, status, redacted(_told(error), secrets))

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
            made = _Connection(self, self._checked_key())
            self._connections[loop] = made
            await anext(made.closing)
        return self._connections[loop]

    def _checked_key(self) -> str:
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
                f"{self.where}: expected a key of printable ASCII characters in {self.key_env}, "
                "got one with spaces, line breaks or other characters. Set it again"
            )
        return key


def _served_model(card: object) -> ServedModel:
    name, *rest = (getattr(card, field, None) for field in ("id", "root", "parent"))
    if not isinstance(name, str):
        raise TypeError("expected a model with a name, got one without")
    root, parent = (text if isinstance(text, str) else None for text in rest)
    return ServedModel(name, root, parent)


def _told(error: openai.APIStatusError) -> str:
    """The words of a server, with the field that it names."""
    return " ".join(f"{error.param or ''} {error.message}".split())


def _explained(error: Exception, key: str) -> tuple[str, str] | None:
    """What an attempt got, and what to do; ``None`` if the error does not come from the endpoint.
    ``key``: the source of the key."""
    if isinstance(error, openai.APIStatusError):
        return f"HTTP {error.status_code} ({' '.join(error.message.split())})", _advice(error, key)
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return "no reply in time", "raise timeout, or lower concurrency"
    transport = type(error).__module__.startswith("httpx")  # openai before 3, inside of a stream
    if isinstance(error, openai.APIConnectionError) or transport:
        cause = error if transport else error.__cause__
        kind = "no" if type(cause).__name__ in _NEVER_CONNECTED else "a broken"
        got = f"{kind} connection ({type(cause).__name__}: {cause})"
        return got, "check that the server runs at this address"
    if isinstance(error, MalformedReply):
        return str(error), _CHECK_ENDPOINT
    if isinstance(error, ValueError | RecursionError):  # no JSON, invalid UTF-8, deep nesting
        return f"a reply that is not valid JSON ({error})", _CHECK_ENDPOINT
    if isinstance(error, openai.APIError):
        return f"an error in the middle of the stream ({error.message})", "check the endpoint's log"
    return None


def _advice(error: openai.APIStatusError, key: str) -> str:
    status, told = error.status_code, _told(error)
    named = next((field for field in OPTIONAL if re.search(rf"\b{field}\b", told)), None)
    if error.code in _QUOTA_USED_UP:
        return "check the account's quota and billing"
    if status == 429:
        return "lower the rate limit or the concurrency"
    if status in (401, 403):
        return f"put a valid key into {key}"
    if named is not None and status in (400, 422):
        return f"change or leave out '{named}', which is set by {OPTIONAL[named]}"
    if status == 404:
        return "check the model name and that the address ends in /v1"
    return "see the endpoint's log"
