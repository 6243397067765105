"""A small web server for one page and one person on this machine.

It listens on the loopback address only. A request must have the random token of the page's address
and name this server as the host, so that other users of the machine and pages of other sites are
refused. Nothing is loaded from other servers.
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
from collections.abc import Callable, Coroutine
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any, Self

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError

LARGEST = 65_536
"""Maximum size of a request in bytes."""
_HOST = "127.0.0.1"


class Posted(msgspec.Struct, frozen=True):
    """What the page asks for."""

    turn: int | None = None
    """Number of the screen that the page shows."""
    action: Action | None = None


class Answer(msgspec.Struct, frozen=True):
    """What the page is told."""

    status: int
    body: bytes
    last: bool
    """Whether the session has ended."""


Ask = Callable[[str, Posted], Coroutine[Any, Any, Answer]]
"""``(act, undo, leave or state, what was posted) -> answer``."""


class Server(ThreadingHTTPServer):
    """Serves requests inside a ``with`` block.

    Args:
        ask: answers a request; runs on ``loop``, and must not raise.
        loop: the event loop of the session.
        over: called on ``loop`` after the last answer was sent, or could not be sent.
        port: the port to serve on; 0: any free port.
    """

    daemon_threads = True

    def __init__(
        self, ask: Ask, loop: asyncio.AbstractEventLoop, over: Callable[[], None], port: int
    ) -> None:
        self.ask, self.loop, self.over = ask, loop, over
        self.token = secrets.token_urlsafe(24)
        self.page, self.policy = _page()
        try:
            super().__init__((_HOST, port), _Handler)
        except OSError as error:
            raise ConfigError(f"cannot serve on port {port}: {error.strerror}") from error
        self.host = f"{_HOST}:{self.server_address[1]}"
        self.address = f"http://{self.host}/{self.token}/"
        self._thread = threading.Thread(
            target=partial(self.serve_forever, poll_interval=0.05), name="play", daemon=True
        )

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


class _Handler(BaseHTTPRequestHandler):
    timeout = 30
    server_version = "swarm-ui"
    sys_version = ""
    server: Server

    def do_GET(self) -> None:
        place = self._allowed()
        if place == "":
            kind = "text/html; charset=utf-8"
            self._send(HTTPStatus.OK, self.server.page, kind, self.server.policy)
        elif place == "state":
            self._answer(place, Posted())
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
                posted = msgspec.json.decode(self.rfile.read(int(length)), type=Posted)
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

    def _answer(self, place: str, posted: Posted) -> None:
        server = self.server
        asked = server.ask(place, posted)
        answer = asyncio.run_coroutine_threadsafe(asked, server.loop).result()
        try:
            self._send(HTTPStatus(answer.status), answer.body, "application/json")
        finally:  # also if the page was closed meanwhile
            if answer.last:
                server.loop.call_soon_threadsafe(server.over)

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, status.phrase.encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy or "default-src 'none'")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


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


def _page() -> tuple[bytes, str]:
    """The page with its style and script, and a policy that allows only these."""
    folder = resources.files(__package__)
    style, script, page = (
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js", "page.html")
    )
    page = page.replace("/*style*/", style).replace("/*script*/", script)
    policy = (
        f"default-src 'none'; img-src data:; connect-src 'self'; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page.encode(), policy


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
