"""A client for the Chrome DevTools Protocol: one connection, many pages (flat sessions)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from swarm_ui.environments.miniwob.cdp_transport import Transport
from swarm_ui.errors import EnvironmentFault

CALL_TIMEOUT = 20.0
"""Seconds a browser may take to answer."""

Reply = dict[str, Any]
Listener = Callable[[str, Reply], None]
T = TypeVar("T")


class Rejected(EnvironmentFault):
    """The browser rejected a command, such as one on a removed element."""


class Unanswered(EnvironmentFault):
    """The browser did not answer in time."""


class Connection:
    """A connection to one browser. A call that fails raises :class:`EnvironmentFault`."""

    def __init__(self) -> None:
        self._transport: Transport | None = None
        self._next = 0
        self._waiting: dict[int, tuple[str, asyncio.Future[Reply]]] = {}
        self._listeners: dict[str, Listener] = {}
        self._lost: str | None = None

    def use(self, transport: Transport) -> None:
        """Set the transport, which calls :meth:`receive` and :meth:`lose`."""
        self._transport = transport

    @property
    def lost(self) -> bool:
        return self._lost is not None

    def listen(self, session: str, listener: Listener) -> None:
        """Pass the events of a session to ``listener(method, params)``."""
        self._listeners[session] = listener

    def forget(self, session: str, reason: str) -> None:
        """Stop listening to a session; its pending calls fail with ``reason``."""
        self._listeners.pop(session, None)
        for owner, future in self._waiting.values():
            if owner == session and not future.done():
                future.set_exception(EnvironmentFault(reason))

    def post(self, method: str, session: str = "", **params: object) -> asyncio.Task[Reply]:
        """Call without waiting for the answer; a failure is ignored."""
        task = asyncio.create_task(self.call(method, session, **params))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def call(self, method: str, session: str = "", **params: object) -> Reply:
        """Send one command and return its result.

        Raises:
            Rejected: the browser answers with an error.
            Unanswered: it does not answer in ``CALL_TIMEOUT`` seconds.
            EnvironmentFault: it has ended.
        """
        if self._lost is not None or self._transport is None:
            raise EnvironmentFault(f"{method}: {self._lost or 'not connected'}")
        self._next += 1
        number = self._next
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        late = loop.call_later(CALL_TIMEOUT, _give_up, future)
        self._waiting[number] = (session, future)
        message: Reply = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        try:
            await self._transport.send(msgspec.json.encode(message))
            reply = await future
        except TimeoutError as error:
            raise Unanswered(f"{method}: no answer in {CALL_TIMEOUT:.0f} s") from error
        except OSError as error:
            raise EnvironmentFault(f"{method}: {error}") from error
        finally:
            late.cancel()
            self._waiting.pop(number, None)
        if "error" in reply:
            raise Rejected(f"{method}: the browser answered {reply['error']}")
        result: Reply = reply["result"]
        return result

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()
        self.lose("the connection to the browser was closed")

    def lose(self, reason: str) -> None:
        """End the connection: pending and later calls fail with ``reason``."""
        if self._lost is not None:
            return
        self._lost = reason
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(EnvironmentFault(reason))

    def receive(self, data: bytes | str) -> None:
        """Handle a message from the browser."""
        message: Reply = decoded(data, dict)
        if "id" in message:
            _, future = self._waiting.get(message["id"], ("", None))
            if future is not None and not future.done():
                future.set_result(message)
            return
        listener = self._listeners.get(message.get("sessionId", ""))
        if listener is not None:
            listener(message["method"], message.get("params", {}))


def decoded(data: bytes | str, kind: type[T]) -> T:
    """Decode JSON of the browser. A lone surrogate (half of an emoji that a page cut off), which
    msgspec does not accept, becomes U+FFFD.

    Raises:
        ValueError: it is not JSON of this kind.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except ValueError:  # also raised for bytes that are not UTF-8
        text = data if isinstance(data, str) else data.decode(errors="replace")
        halves = json.dumps(json.loads(text), ensure_ascii=False)
        whole = halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return msgspec.json.decode(whole, type=kind)


def _give_up(future: asyncio.Future[Reply]) -> None:
    """Time out a call; ``asyncio.wait_for`` would be slow for two calls per step."""
    if not future.done():
        future.set_exception(TimeoutError())
