"""Do a task by hand in a browser, on a page that a small server shows to this machine only.

The server listens on the loopback address. A request must have the random token of the page's
address and name this server as the host, so that other users of the machine and pages of other
sites are refused. Nothing is loaded from other servers.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import hashlib
import hmac
import html
import os
import secrets
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any, Self

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
        env: the environment, preferably with screenshots; not closed here. Actions can be undone
            if it is restorable.
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
    try:
        with _Server(session) as server:
            show(server.address)
            await server.over.wait()
        if server.failure is not None:
            raise server.failure
    finally:
        if not session.ended:
            session.leave()
    return session.episode


class _Posted(msgspec.Struct, frozen=True):
    """What the page asks for."""

    turn: int | None = None
    """Number of the screen that the page shows."""
    action: Action | None = None


class _Server(ThreadingHTTPServer):
    """Serves a session inside a ``with`` block, on the running event loop."""

    daemon_threads = True

    def __init__(self, session: PlaySession) -> None:
        self._session, self._one_at_a_time = session, asyncio.Lock()
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        self.failure: Exception | None = None
        """An error, after which the game cannot go on."""
        self.token = secrets.token_urlsafe(24)
        self.page, self.policy = _page()
        super().__init__((_HOST, 0), _Handler)
        self.host = f"{_HOST}:{self.server_address[1]}"
        self.address = f"http://{self.host}/{self.token}/"
        serve = partial(self.serve_forever, poll_interval=0.05)
        self._thread = threading.Thread(target=serve, name="play", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error of a page that was closed before it got its answer; report all
        others."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    async def answer(self, place: str, posted: _Posted) -> tuple[int, bytes]:
        """Handle a request, and return the status and the state as JSON. 409: the page showed an
        older screen. 500: an error, which the caller of the game gets too."""
        session = self._session
        async with self._one_at_a_time:
            stale = posted.turn is not None and posted.turn != session.turn
            try:
                if not stale and not session.ended:
                    if place == "act" and posted.action is not None:
                        await session.act(posted.action)
                    elif place == "undo":
                        session.undo()
                    elif place == "leave":
                        session.leave()
                return 409 if stale else 200, msgspec.json.encode(session.shown())
            except Exception as error:  # raised to the caller, once the page has its answer
                self.failure = self.failure or error
                kind = "" if isinstance(error, SwarmError) else f"{type(error).__name__}: "
                told = f"The task has ended with an error: {kind}{error}"
                return 500, msgspec.json.encode({"error": told.encode(errors="replace").decode()})

    def answered(self) -> None:
        """An answer was sent, or could not be sent; after the last one the game is over."""
        if self._session.ended or self.failure is not None:
            self.loop.call_soon_threadsafe(self.over.set)


class _Handler(BaseHTTPRequestHandler):
    timeout = 30
    server_version = "swarm-ui"
    sys_version = ""
    server: _Server

    def do_GET(self) -> None:
        place = self._allowed()
        if place == "":
            kind = "text/html; charset=utf-8"
            self._send(HTTPStatus.OK, self.server.page, kind, self.server.policy)
        elif place == "state":
            self._answer(place, _Posted())
        elif place is not None:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        place = self._allowed()
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        length = self.headers.get("Content-Length", "")
        if place is None:
            return
        if place not in ("act", "undo", "leave"):
            self._refuse(HTTPStatus.NOT_FOUND)
        elif kind != "application/json" or not length.isdecimal() or int(length) > LARGEST:
            self._refuse(HTTPStatus.BAD_REQUEST)
        else:
            try:
                posted = msgspec.json.decode(self.rfile.read(int(length)), type=_Posted)
            except (msgspec.DecodeError, ValueError) as error:
                body = msgspec.json.encode({"error": str(error)})
                self._send(HTTPStatus.BAD_REQUEST, body, "application/json")
            else:
                self._answer(place, posted)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because requests contain the token."""

    def _allowed(self) -> str | None:
        """The path of a request of our own page; any other request is refused."""
        host = self.server.host
        token, _, place = self.path.removeprefix("/").partition("/")
        known = hmac.compare_digest(token.encode(), self.server.token.encode())
        if not known or self.headers.get("Host") != host:
            self._refuse(HTTPStatus.NOT_FOUND)
        elif self.headers.get("Origin") not in (None, f"http://{host}"):
            self._refuse(HTTPStatus.FORBIDDEN)
        else:
            return place
        return None

    def _answer(self, place: str, posted: _Posted) -> None:
        asked = self.server.answer(place, posted)
        status, body = asyncio.run_coroutine_threadsafe(asked, self.server.loop).result()
        try:
            self._send(HTTPStatus(status), body, "application/json")
        finally:  # also if the page was closed meanwhile
            self.server.answered()

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, status.phrase.encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str = "") -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", policy or "default-src 'none'"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


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
