"""One OpenAI-compatible endpoint: slots, rate limit, budget and retries around each request."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from urllib.parse import urlsplit

import openai
from asyncio_throttle.throttler import Throttler

from swarm_ui.budget import Budget
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Usage
from swarm_ui.nodes.openai_wire import (
    ChatReply,
    Failure,
    Malformed,
    failure,
    read_chat,
    read_models,
    without_credentials,
)

OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_SECONDS = 5.0


class Limits:
    """How hard an endpoint may be pressed. Raises ``ConfigError`` if out of range."""

    def __init__(
        self,
        *,
        rate_limit: int | None,
        period: float,
        concurrency: int,
        timeout: float,
        retries: int,
        backoff: float,
        longest_wait: float,
    ) -> None:
        least = {"rate_limit": 1, "concurrency": 1, "retries": 0, "backoff": 0, "longest_wait": 0}
        given = {
            "rate_limit": rate_limit,
            "concurrency": concurrency,
            "retries": retries,
            "backoff": backoff,
            "longest_wait": longest_wait,
        }
        for name, value in given.items():
            if value is not None and value < least[name]:
                raise ConfigError(f"OpenAIModel: {name} must be >= {least[name]}, got {value}")
        for name, seconds in (("period", period), ("timeout", timeout)):
            if not seconds > 0:
                raise ConfigError(f"OpenAIModel: {name} must be > 0 seconds, got {seconds}")
        self.rate_limit, self.period = rate_limit, period
        self.concurrency, self.timeout = concurrency, timeout
        self.retries, self.backoff, self.longest_wait = retries, backoff, longest_wait


class Endpoint:
    """Sends chat requests and keeps the counters. Serves one event loop until it is closed."""

    def __init__(
        self, model: str, url: str, key_env: str, limits: Limits, budget: Budget, rng: random.Random
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
        self._url, self._key_env = url, key_env
        self._limits, self._rng = limits, rng
        self._line: _Line | None = None

    async def chat(self, body: Mapping[str, object], tokens: int) -> ChatReply:
        """One chat completion, with as many attempts as allowed.

        Args:
            body: keyword arguments of openai's ``chat.completions.create``.
            tokens: the most it may use, held of the budget while it is on its way.

        Raises:
            BudgetExceeded: an attempt could cross the budget; it was not sent.
            ModelError: no attempt succeeded.
        """
        attempt = 0
        while True:
            outcome = await self._attempt(body, tokens)
            if isinstance(outcome, ChatReply):
                return outcome
            wait = self._pause(attempt, outcome)
            attempt += 1
            asked = outcome.wait or 0.0
            if not outcome.again or attempt > self._limits.retries:
                break
            if asked > self._limits.longest_wait:
                break
            self.retried += 1
            self.waited += wait
            await asyncio.sleep(wait)
        told = f", told to wait {asked:g} s" if asked else ""
        tries = "1 attempt" if attempt == 1 else f"{attempt} attempts"
        raise self.error(f"no answer after {tries}{told}", "a chat completion", outcome)

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
            problem = failure(error, self._key_env)
        raise self.error("the endpoint does not answer as it should", "a list of models", problem)

    def error(self, what: str, expected: str, problem: Failure) -> ModelError:
        """One line about a failure, without secrets even if the server echoed them."""
        got = problem.got
        for secret in (_key(self._key_env), urlsplit(self._url).password):
            if secret:
                got = got.replace(secret, "[secret]")
        return ModelError(
            f"{self.where}: {what}; expected {expected}, got {got}. To do: {problem.advice}"
        )

    async def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.client.close()

    async def _attempt(self, body: Mapping[str, object], tokens: int) -> ChatReply | Failure:
        line = self._connected()
        before = time.monotonic()
        async with line.slots:
            async with line.throttle:
                self.waited += time.monotonic() - before
            self.budget.reserve(tokens, self.where)
            used = 0
            try:
                async with asyncio.timeout(self._limits.timeout):
                    create = line.client.chat.completions.with_raw_response.create
                    raw = await create(**body)  # type: ignore[call-overload]
                reply = read_chat(raw.content)
                # A server that does not count may have used all that was held.
                used = tokens if reply.usage is None else _total(reply.usage)
            except (openai.OpenAIError, TimeoutError, Malformed) as error:
                return failure(error, self._key_env)
            finally:
                self.budget.settle(tokens, used)
        return reply

    def _pause(self, attempt: int, failed: Failure) -> float:
        """Seconds until the next attempt: jittered, so that agents do not come back as one."""
        if failed.wait is not None:
            return failed.wait + self._rng.uniform(0.0, self._limits.backoff)
        wait = min(self._limits.longest_wait, self._limits.backoff * 2.0**attempt)
        return wait * self._rng.uniform(0.5, 1.0)

    def _connected(self) -> _Line:
        if self._line is None:
            key = _key(self._key_env)
            if not key and self._url == OPENAI_URL:
                raise ModelError(
                    f"{self.where}: expected a key in the environment variable {self._key_env}, "
                    "got none. Set it, or give the base_url of an endpoint that needs no key"
                )
            if not all("!" <= letter <= "~" for letter in key):
                raise ModelError(
                    f"{self.where}: expected a key of plain letters, digits and signs in the "
                    f"environment variable {self._key_env}, got one with spaces, line breaks or "
                    "other letters. Set it again"
                )
            limits = self._limits
            client = openai.AsyncOpenAI(
                api_key=key or "none",
                base_url=self._url,
                max_retries=0,
                timeout=openai.Timeout(
                    limits.timeout, connect=min(_CONNECT_SECONDS, limits.timeout)
                ),
            )
            self._line = _Line(client, limits)
        return self._line


class _Line:
    """What is tied to one event loop: the client, the slots and the rate limit."""

    def __init__(self, client: openai.AsyncOpenAI, limits: Limits) -> None:
        self.client = client
        self.slots = asyncio.Semaphore(limits.concurrency)
        self.throttle: AbstractAsyncContextManager[None] = nullcontext()
        if limits.rate_limit is not None:
            self.throttle = Throttler(limits.rate_limit, limits.period)


def _key(name: str) -> str:
    return os.environ.get(name, "").strip()


def _total(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
