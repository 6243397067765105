"""Two connections to a Chromium: pipes, and a web socket on systems without such pipes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from swarm_ui.errors import EnvironmentFault, MissingExtra

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

GONE = "the browser is gone"

Receive = Callable[[bytes | str], None]
Lost = Callable[[str], None]


class Transport(Protocol):
    """Carries messages. Each received message is passed to ``receive``; ``lost`` is called once,
    with the reason, when the connection has ended."""

    async def send(self, message: bytes) -> None:
        """Send a message. Raises ``OSError`` if the browser is gone."""
        ...

    async def close(self) -> None: ...


class Pipe(asyncio.Protocol):
    """The pipes of a browser started with ``--remote-debugging-pipe``; zero bytes end messages.

    They cost half as much as a web socket and open no port, and the browser ends when its pipe is
    closed.
    """

    def __init__(self, receive: Receive, lost: Lost) -> None:
        self._receive = receive
        self._lost = lost
        self._parts: list[bytes] = []
        self._writes: asyncio.WriteTransport | None = None
        self._reads: asyncio.BaseTransport | None = None

    @classmethod
    async def open(cls, reads: int, writes: int, receive: Receive, lost: Lost) -> Pipe:
        """Use our ends (file descriptors) of the two pipes."""
        loop = asyncio.get_running_loop()
        pipe = cls(receive, lost)
        read, write = os.fdopen(reads, "rb", 0), os.fdopen(writes, "wb", 0)
        pipe._reads, _ = await loop.connect_read_pipe(lambda: pipe, read)
        pipe._writes, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, write)
        return pipe

    async def send(self, message: bytes) -> None:
        if self._writes is None or self._writes.is_closing():
            raise BrokenPipeError(GONE)
        self._writes.write(message + b"\0")

    async def close(self) -> None:
        for transport in (self._writes, self._reads):
            if transport is not None:
                transport.close()
        await asyncio.sleep(0)  # the loop closes them in its next iteration

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        for end in whole:
            message = b"".join((*self._parts, end))
            self._parts.clear()
            self._receive(message)
        if rest:
            self._parts.append(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(GONE if exc is None else f"{GONE} ({exc})")


class Socket:
    """The web socket of a browser started with ``--remote-debugging-port``."""

    def __init__(self, socket: ClientConnection, receive: Receive, lost: Lost) -> None:
        self._socket = socket
        self._reader = asyncio.create_task(self._read(receive, lost))

    @classmethod
    async def open(cls, url: str, receive: Receive, lost: Lost) -> Socket:
        """Connect to the DevTools address that a browser printed."""
        try:
            from websockets.asyncio.client import connect
        except ImportError as error:
            raise MissingExtra("web", "MiniWoB++", "websockets") from error
        try:
            socket = await connect(url, max_size=None, compression=None, proxy=None)
        except OSError as error:
            raise EnvironmentFault(f"cannot connect to the browser at {url}: {error}") from error
        return cls(socket, receive, lost)

    async def send(self, message: bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(message, text=True)
        except ConnectionClosed as error:
            raise BrokenPipeError(f"{GONE} ({error})") from error

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._socket.close()

    async def _read(self, receive: Receive, lost: Lost) -> None:
        from websockets.exceptions import ConnectionClosed

        reason = GONE
        try:
            async for message in self._socket:
                receive(message)
        except ConnectionClosed as error:
            reason = f"{GONE} ({error})"
        finally:
            lost(reason)
