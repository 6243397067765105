"""A small client for the Chrome DevTools Protocol: one socket, many pages (flat sessions)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from swarm_ui.errors import EnvironmentFault, MissingExtra

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

CALL_TIMEOUT = 20.0
"""Seconds a browser may take to answer."""

Reply = dict[str, Any]
Listener = Callable[[str, Reply], None]


class Connection:
    """The browser's socket. A call that cannot be answered raises :class:`EnvironmentFault`."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._next = 0
        self._waiting: dict[int, tuple[str, asyncio.Future[Reply]]] = {}
        self._listeners: dict[str, Listener] = {}
        self._lost: str | None = None
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, url: str) -> Connection:
        """Connect to the DevTools address a browser printed."""
        try:
            from websockets.asyncio.client import connect
        except ImportError as error:
            raise MissingExtra("web", "MiniWoB++", "websockets") from error
        try:
            return cls(await connect(url, max_size=None, compression=None, proxy=None))
        except OSError as error:
            raise EnvironmentFault(f"cannot connect to the browser at {url}: {error}") from error

    @property
    def lost(self) -> bool:
        return self._lost is not None

    def listen(self, session: str, listener: Listener) -> None:
        """Hand ``session``'s events to ``listener(method, params)``; once per session."""
        self._listeners[session] = listener

    def forget(self, session: str, reason: str) -> None:
        """Stop listening to a session; calls that still wait for it fail with ``reason``."""
        self._listeners.pop(session, None)
        for owner, future in self._waiting.values():
            if owner == session and not future.done():
                future.set_exception(EnvironmentFault(reason))

    def post(self, method: str, session: str = "", **params: object) -> asyncio.Task[Reply]:
        """Call without waiting; a failure is left to whoever waits for the page."""
        task = asyncio.create_task(self.call(method, session, **params))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def call(self, method: str, session: str = "", **params: object) -> Reply:
        """Send one command and return its result.

        Raises:
            EnvironmentFault: the browser is gone, refuses, or does not answer in time.
        """
        if self._lost is not None:
            raise EnvironmentFault(f"{method}: {self._lost}")
        self._next += 1
        number = self._next
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (session, future)
        message: Reply = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        try:
            await self._socket.send(json.dumps(message))
            reply = await asyncio.wait_for(future, CALL_TIMEOUT)
        except TimeoutError as error:
            raise EnvironmentFault(f"{method}: no answer in {CALL_TIMEOUT:.0f} s") from error
        except OSError as error:
            raise EnvironmentFault(f"{method}: {error}") from error
        finally:
            self._waiting.pop(number, None)
        if "error" in reply:
            raise EnvironmentFault(f"{method}: the browser says {reply['error']}")
        result: Reply = reply["result"]
        return result

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        reason = "the connection to the browser was closed"
        try:
            async for text in self._socket:
                self._receive(json.loads(text))
        except ConnectionClosed as error:
            reason = f"the browser is gone ({error})"
        finally:
            self._lost = reason
            for _, future in self._waiting.values():
                if not future.done():
                    future.set_exception(EnvironmentFault(reason))

    def _receive(self, message: Reply) -> None:
        if "id" in message:
            _, future = self._waiting.get(message["id"], ("", None))
            if future is not None and not future.done():
                future.set_result(message)
            return
        listener = self._listeners.get(message.get("sessionId", ""))
        if listener is not None:
            listener(message["method"], message.get("params", {}))
