"""A limit on tokens per minute, which are granted evenly and in the order of arrival.

asyncio-throttle, which limits requests, counts each call as one and cannot weight calls by tokens.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

_BURST = 1 / 6
"""Share of a period's tokens that may be used at once. This is our default."""
_INSTANT = 1e-6
"""Shorter waits, in seconds, count as none, so that rounding errors cannot repeat a wait."""


@dataclass(slots=True)
class Grant:
    """Tokens that were granted to a request."""

    tokens: int
    at: float
    recent: bool = True


class TokenMeter:
    """Computes when tokens may be granted. It has no clock: the caller gives the time.

    There are two rules: tokens are granted at the rate ``limit / period`` with a small burst, and
    no window of one period holds more than ``limit``.
    """

    def __init__(self, limit: int, period: float = 60.0) -> None:
        self.limit, self.period = limit, period
        self._rate = limit / period
        self._burst = limit * _BURST
        self._level = self._burst
        self._at = 0.0
        self._recent: deque[Grant] = deque()
        self._spent = 0

    def wait(self, now: float, tokens: int) -> float:
        """Seconds until ``tokens`` (at most the limit) may be granted; 0 means now.

        A request for more tokens than the burst is granted when the whole burst is free. The excess
        delays the next requests.
        """
        self._advance(now)
        pace = (min(tokens, self._burst) - self._level) / self._rate
        window = 0.0
        excess = self._spent + tokens - self.limit
        for grant in self._recent:
            if excess <= 0:
                break
            excess -= grant.tokens
            window = grant.at + self.period - now
        longest = max(pace, window)
        return longest if longest > _INSTANT else 0.0

    def take(self, now: float, tokens: int) -> Grant:
        """Grant tokens at once."""
        self._advance(now)
        grant = Grant(tokens, now)
        self._level -= tokens
        self._recent.append(grant)
        self._spent += tokens
        return grant

    def correct(self, grant: Grant, used: int) -> None:
        """Set how many tokens of a grant were used."""
        back = grant.tokens - used
        self._level = min(self._burst, self._level + back)
        if grant.recent:
            self._spent -= back
        grant.tokens = used

    def _advance(self, now: float) -> None:
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        while self._recent and now - self._recent[0].at >= self.period - _INSTANT:
            old = self._recent.popleft()
            old.recent = False
            self._spent -= old.tokens


class TokenThrottle:
    """Makes coroutines of one event loop wait for their tokens, first come, first served."""

    def __init__(self, limit: int, period: float = 60.0) -> None:
        self._meter = TokenMeter(limit, period)
        self._waiting: deque[tuple[int, asyncio.Future[Grant]]] = deque()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, tokens: int) -> Grant:
        """Wait until ``tokens`` may be used. Call :meth:`correct` afterwards."""
        future: asyncio.Future[Grant] = self._loop.create_future()
        self._waiting.append((tokens, future))
        self._serve()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.correct(future.result(), 0)
            else:
                self._serve()
            raise

    def correct(self, grant: Grant, used: int) -> None:
        """Replace the estimate by the tokens that were used; waiting calls get the rest."""
        self._meter.correct(grant, used)
        self._serve()

    def _serve(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            tokens, future = self._waiting[0]
            if not future.done():
                now = self._loop.time()
                seconds = self._meter.wait(now, tokens)
                if seconds > 0:
                    self._timer = self._loop.call_later(seconds, self._serve)
                    return
                future.set_result(self._meter.take(now, tokens))
            self._waiting.popleft()
