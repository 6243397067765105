"""One OpenAI-compatible endpoint: slots, rate limits, budget and retries around each request."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import openai

from swarm_ui.budget import Budget, Price, total
from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.event_stream import read_stream, read_whole
from swarm_ui.nodes.models.openai.rate_limits import Line, RateLimits
from swarm_ui.nodes.models.openai.replies import (
    ChatReply,
    Failure,
    Malformed,
    Refused,
    failure,
    passing,
    read_chat,
    read_models,
    without_credentials,
)

OPENAI_URL = "https://api.openai.com/v1"
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Ask:
    """One chat request, ready to be sent."""

    body: Mapping[str, object]
    """Keyword arguments of openai's ``chat.completions.create``."""
    most: Usage
    """The most it may use, held of the budget while it is on its way."""
    prompt: str
    model: str
    """Name that is asked for."""
    price: Price | None = None


@dataclass(slots=True)
class _Turn:
    """A request that may be sent now."""

    client: openai.AsyncOpenAI
    used: Usage | None = None
    """What it used, as far as is known. A server that does not count, a reply that was cut off
    and a call that was given up may have used all that was held."""


class Endpoint:
    """Sends chat requests and keeps the counters. Serves one event loop until it is closed."""

    def __init__(
        self,
        model: str,
        url: str,
        *,
        key: str | None,
        key_env: str,
        limits: RateLimits,
        budget: Budget,
        rng: random.Random,
    ) -> None:
        parts = urlsplit(url)
        shown = without_credentials(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"OpenAIModel: expected a base_url such as http://localhost:8000/v1, got '{shown}'"
            )
        self.where = f"model '{model}' at {shown}"
        self.budget = budget
        self.retried = 0
        self.waited = 0.0
        self._url, self._given_key, self._key_env = url, key, key_env
        self._key_name = f"the variable {key_env}" if key is None else "api_key"
        self._limits, self._rng = limits, rng
        self._line: Line | None = None

    async def chat(self, ask: Ask) -> ChatReply:
        """One chat completion, with as many attempts as allowed.

        Raises:
            BudgetExceeded: an attempt could cross the budget; it was not sent.
            ModelUnavailable: no attempt succeeded; a later one may.
            Refused: the endpoint said no for good, with an HTTP status.
            ModelError: it failed for good in another way.
        """
        for attempt in itertools.count(1):
            outcome = await self._attempt(ask)
            if isinstance(outcome, ChatReply):
                return outcome
            await self._pause(attempt, outcome)
        raise AssertionError  # never reached: a pause after the last attempt raises

    async def stream(self, ask: Ask) -> AsyncGenerator[str | ChatReply]:
        """Pieces of one chat completion, then the whole. Tried again until something came.

        Raises:
            BudgetExceeded, Refused, ModelError: as :meth:`chat`.
        """
        for attempt in itertools.count(1):
            came: list[str] = []
            try:
                async with aclosing(self._stream_once(ask)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            came.append(piece)
                        yield piece
                return
            except Exception as error:
                if not passing(error):
                    raise
                problem = failure(error, self._key_name)
            if came:
                text = "".join(came)
                end = self._shown(text)[-_SHOWN:]  # cut last: half a secret is not recognised
                raise self.error(
                    f"the stream broke off after {len(text)} characters that end in {end!r}",
                    "the rest of the reply",
                    problem,
                )
            await self._pause(attempt, problem)

    async def served(self, seconds: float) -> tuple[str, ...] | None:
        """Names of the models served, asked once; ``None`` if the endpoint keeps no list.

        Raises:
            ModelError: no list came within ``seconds``.
        """
        try:
            async with asyncio.timeout(seconds):
                reply = await self._connected().client.models.with_raw_response.list()
            return read_models(reply.content)
        except openai.NotFoundError:
            return None
        except (openai.OpenAIError, TimeoutError, Malformed) as error:
            problem = failure(error, self._key_name)
        raise self.error("the endpoint does not answer as it should", "a list of models", problem)

    def error(self, what: str, expected: str, problem: Failure) -> ModelError:
        """One line about a failure, without secrets even if the server echoed them."""
        got = self._shown(problem.got)
        text = f"{self.where}: {what}; expected {expected}, got {got}. To do: {problem.advice}"
        if problem.again:
            return ModelUnavailable(text)
        return ModelError(text) if problem.status is None else Refused(text, problem.status)

    async def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.client.close()

    async def _attempt(self, ask: Ask) -> ChatReply | Failure:
        async with self._turn(ask) as turn:
            try:
                async with asyncio.timeout(self._limits.timeout):
                    create = turn.client.chat.completions.with_raw_response.create
                    raw = await create(**ask.body)  # type: ignore[call-overload]
                reply = read_chat(raw.content)
            except (openai.OpenAIError, TimeoutError, Malformed) as error:
                problem = failure(error, self._key_name)
                turn.used = Usage() if problem.unpaid else None
                return problem
            turn.used = reply.usage
            return reply

    async def _stream_once(self, ask: Ask) -> AsyncGenerator[str | ChatReply]:
        """One attempt. Raises what :func:`passing` knows, and passes on what it does not."""
        patience = self._limits.timeout
        async with self._turn(ask) as turn:
            try:
                create = turn.client.chat.completions.with_streaming_response.create
                opening = create(**ask.body, stream=True)  # type: ignore[call-overload]
                async with asyncio.timeout(patience):
                    response = await opening.__aenter__()
                try:
                    kind = response.headers.get("content-type", "")
                    read = read_whole if kind.startswith("application/json") else read_stream
                    async with aclosing(read(response, patience)) as pieces:
                        async for piece in pieces:
                            if isinstance(piece, ChatReply):
                                turn.used = piece.usage
                            yield piece
                finally:
                    await opening.__aexit__(None, None, None)
            except Exception as error:
                if passing(error) and failure(error, self._key_name).unpaid:
                    turn.used = Usage()
                raise

    @asynccontextmanager
    async def _turn(self, ask: Ask) -> AsyncGenerator[_Turn]:
        """Wait for a slot and the rate limits, hold the budget; settle afterwards."""
        line = self._connected()
        before = time.monotonic()
        tokens = total(ask.most)
        self._check_size(tokens)
        async with line.slots:
            grant = None if line.tokens is None else await line.tokens.acquire(tokens)
            turn = _Turn(line.client, Usage())
            try:
                async with line.throttle:
                    self.waited += time.monotonic() - before
                hold = self.budget.reserve(ask.most, self.where, ask.price)
                turn.used = None
                try:
                    yield turn
                finally:
                    self.budget.settle(hold, turn.used)
            finally:
                if line.tokens is not None and grant is not None:
                    used = tokens if turn.used is None else total(turn.used)
                    line.tokens.correct(grant, used)

    def _check_size(self, tokens: int) -> None:
        limit = self._limits.tokens_per_minute
        if limit is not None and tokens > limit:
            raise ModelError(
                f"{self.where}: expected requests that fit into tokens_per_minute={limit}, got one "
                f"that may need {tokens} tokens. Lower its max_tokens or raise tokens_per_minute"
            )

    async def _pause(self, attempt: int, failed: Failure) -> None:
        """Wait before the next attempt, jittered, so that agents do not come back as one.

        Raises:
            ModelError: there shall be no other attempt.
        """
        limits, asked = self._limits, failed.wait or 0.0
        if not failed.again or attempt > limits.retries or asked > limits.longest_wait:
            told = f", told to wait {asked:g} s" if asked else ""
            tries = "1 attempt" if attempt == 1 else f"{attempt} attempts"
            raise self.error(f"no answer after {tries}{told}", "a chat completion", failed)
        if failed.wait is not None:
            wait = failed.wait + self._rng.uniform(0.0, limits.backoff)
        else:
            wait = min(limits.longest_wait, limits.backoff * 2.0 ** (attempt - 1))
            wait *= self._rng.uniform(0.5, 1.0)
        self.retried += 1
        self.waited += wait
        await asyncio.sleep(wait)

    def _shown(self, text: str) -> str:
        """What a server said, without secrets."""
        for secret in (self._key(), urlsplit(self._url).password):
            if secret:
                text = text.replace(secret, "[secret]")
        return text

    def _key(self) -> str:
        given = os.environ.get(self._key_env, "") if self._given_key is None else self._given_key
        return given.strip()

    def _connected(self) -> Line:
        if self._line is None:
            key = self._key()
            if not key and self._url == OPENAI_URL:
                raise ModelError(
                    f"{self.where}: expected a key in the environment variable {self._key_env}, "
                    "got none. Set it, or give the base_url of an endpoint that needs no key"
                )
            if not all("!" <= letter <= "~" for letter in key):
                raise ModelError(
                    f"{self.where}: expected a key of plain letters, digits and signs in "
                    f"{self._key_name}, got one with spaces, line breaks or other letters. "
                    "Set it again"
                )
            self._line = Line(self._url, key, self._limits)
        return self._line
