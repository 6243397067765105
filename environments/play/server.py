"""Do a task by hand in a browser, on a page that a small server shows to this machine only.

The server listens on the loopback address. A request must have the random token of the page's
address and name this server as the host, so that other users of the machine and pages of other
sites are refused. Nothing is loaded from other servers.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import hashlib
import hmac
import html
import os
import secrets
import tempfile
import webbrowser
from collections.abc import Callable
from email import message_from_bytes
from http import HTTPStatus
from importlib import resources
from pathlib import Path

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.errors import SwarmError
from swarm_ui.trace.jsonl import Anywhere
from swarm_ui.trace.records import Episode

LARGEST = 65_536
"""Maximum size of a request in bytes."""
_HOST = "127.0.0.1"
_PATIENCE = 30.0
"""Seconds in which a request must arrive."""


def open_privately(address: str) -> bool:
    """Open an address in a browser without showing it in the list of processes; returns whether a
    browser started.

    Other users of the machine can read the command lines of programs, including the browser's. So
    the browser gets a file that only this user can read, and that redirects to the address.
    """
    handle, name = tempfile.mkstemp(prefix="swarm-ui-", suffix=".html")  # readable by its owner
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        target = html.escape(address)
        file.write(f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">open')
    return webbrowser.open(Path(name).as_uri())


async def play_in_browser(
    env: Environment,
    task: str,
    seed: int = 0,
    *,
    path: Anywhere | None = None,
    show: Callable[[str], object] = open_privately,
) -> Episode | None:
    """Let a person do a task on a page that shows the screenshot, or the boxes of the elements.

    The page is served to this machine only, under a secret address, until the task has ended. It
    loads nothing from other servers.

    Args:
        env: the environment, preferably with screenshots; not closed here.
        task, seed: the task and the seed of the episode.
        path: JSON lines file to append the episode to.
        show: called with the address of the page; by default, it opens the page in a browser.

    Returns:
        the episode, or ``None`` if nothing was done. ``success`` is ``None`` if the person gave up.

    Raises:
        Exception: what the environment raises, after the page was told. The actions before it are
            recorded as an episode that was given up.
    """
    session = PlaySession(env, path)
    await session.begin(task, seed)
    page = _Page(session)
    try:
        server = await asyncio.start_server(page.serve, _HOST, 0, limit=LARGEST)
        try:
            page.host = "{}:{}".format(*server.sockets[0].getsockname())
            show(f"http://{page.host}/{page.token}/")
            await page.over
        finally:
            server.close()
            page.close()
    finally:
        if not session.ended:
            session.leave()
    return session.episode


class _Posted(msgspec.Struct, frozen=True):
    """What the page asks for."""

    turn: int | None = None
    """Number of the screen that the page shows."""
    action: Action | None = None


Reply = tuple[int, str, bytes]
"""Status, type and content of an answer."""


class _Page:
    """Answers the requests of the page of a session."""

    def __init__(self, session: PlaySession) -> None:
        self._session, self._one_at_a_time = session, asyncio.Lock()
        self._content, self._policy = _page()
        self._serving: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None
        """An error, after which the game cannot go on."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.token, self.host = secrets.token_urlsafe(24), ""

    def close(self) -> None:
        """End the connections that wait for a request."""
        for task in self._serving:
            task.cancel()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request. After the last answer, even if it could not be sent, the game is
        over."""
        task = asyncio.current_task()
        assert task is not None  # one serves each connection
        self._serving.add(task)
        gone = (OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError)
        try:
            with contextlib.suppress(*gone):  # such as a page that was closed
                status, kind, content = await self._reply(reader)
                headers = (
                    f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
                    "Server: swarm-ui",
                    "Connection: close",
                    f"Content-Type: {kind}",
                    f"Content-Length: {len(content)}",
                    f"Content-Security-Policy: {self._policy}",
                    "X-Content-Type-Options: nosniff",
                    "Referrer-Policy: no-referrer",
                    "Cache-Control: no-store",
                )
                writer.write("\r\n".join((*headers, "", "")).encode() + content)
                await writer.drain()
        finally:
            self._serving.discard(task)
            writer.close()
            if not self.over.done():
                if self._failure is not None:
                    self.over.set_exception(self._failure)
                elif self._session.ended:
                    self.over.set_result(None)

    async def _reply(self, reader: asyncio.StreamReader) -> Reply:
        """The answer to a request: only those of our own page are not refused."""
        async with asyncio.timeout(_PATIENCE):
            request, _, told = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
        headers = message_from_bytes(told)
        method, path, _ = request.decode("latin-1").split(" ")
        token, _, place = path.removeprefix("/").partition("/")
        known = hmac.compare_digest(token.encode(), self.token.encode())
        if not known or headers["Host"] != self.host:
            return _refused(404)
        if headers["Origin"] not in (None, f"http://{self.host}"):
            return _refused(403)
        if (method, place) == ("GET", ""):
            return 200, "text/html; charset=utf-8", self._content
        if (method, place) == ("GET", "state"):
            return await self._answer(place, _Posted())
        if method not in ("GET", "POST"):
            return _refused(501)
        if method == "GET" or place not in ("act", "leave"):
            return _refused(404)
        kind = headers.get_content_type() if "Content-Type" in headers else ""
        length = headers.get("Content-Length", "")
        if kind != "application/json" or not length.isdecimal() or int(length) > LARGEST:
            return _refused(400)
        async with asyncio.timeout(_PATIENCE):
            body = await reader.readexactly(int(length))
        try:
            posted = msgspec.json.decode(body, type=_Posted)
        except (msgspec.DecodeError, ValueError) as error:
            return _told(400, {"error": str(error)})
        return await self._answer(place, posted)

    async def _answer(self, place: str, posted: _Posted) -> Reply:
        """Do what the page asks for, and tell the state. 409: the page showed an older screen.
        500: an error, which the caller of the game gets too."""
        session = self._session
        async with self._one_at_a_time:
            stale = posted.turn is not None and posted.turn != session.turn
            try:
                if not stale and not session.ended:
                    if place == "act" and posted.action is not None:
                        await session.act(posted.action)
                    elif place == "leave":
                        session.leave()
                return _told(409 if stale else 200, session.shown())
            except Exception as error:  # raised to the caller, once the page has its answer
                self._failure = self._failure or error
                kind = "" if isinstance(error, SwarmError) else f"{type(error).__name__}: "
                told = f"The task has ended with an error: {kind}{error}"
                return _told(500, {"error": told.encode(errors="replace").decode()})


def _told(status: int, content: object) -> Reply:
    return status, "application/json", msgspec.json.encode(content)


def _refused(status: int) -> Reply:
    return status, "text/plain; charset=utf-8", HTTPStatus(status).phrase.encode()


def _page() -> tuple[bytes, str]:
    """The page with its style and script, and a policy that allows only these."""
    folder = resources.files(__package__)
    names = ("page.css", "page.js", "page.html")
    style, script, page = (folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    page = page.replace("/*style*/", style).replace("/*script*/", script)
    policy = (
        f"default-src 'none'; img-src data:; connect-src 'self'; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page.encode(), policy


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
