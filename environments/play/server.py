"""A very small web server for one page and one person on this machine.

It listens on the loopback address alone. Whoever asks must know the random token in the page's
address and name this server as the host, so that neither other users of the machine nor pages of
other sites can play along. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from types import TracebackType
from typing import Any, Self

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError, SwarmError

LARGEST = 65_536
"""Bytes of a request."""
_HOST = "127.0.0.1"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    body: bytes
    last: bool
    """Nothing more will be answered."""


class Posted(msgspec.Struct, frozen=True):
    """What the page sends."""

    turn: int
    action: Action | None = None


Ask = Callable[[str, int | None, Action | None], Coroutine[Any, Any, Answer]]


class Server:
    """Serves while the block is open; ``ask`` is called on the loop, ``over`` after the last
    answer was sent."""

    def __init__(
        self, ask: Ask, loop: asyncio.AbstractEventLoop, over: Callable[[], None], port: int
    ) -> None:
        self._token = secrets.token_urlsafe(24)
        self._ask, self._loop, self._over = ask, loop, over
        self._page, self._policy = _page()
        try:
            self._server = ThreadingHTTPServer((_HOST, port), partial(_Handler, self))
        except OSError as error:
            raise ConfigError(f"cannot serve on port {port}: {error.strerror}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=partial(self._server.serve_forever, poll_interval=0.05), name="play", daemon=True
        )

    @property
    def address(self) -> str:
        return f"http://{self.host}/{self._token}/"

    @property
    def host(self) -> str:
        return f"{_HOST}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def place(self, path: str) -> str | None:
        """What is asked for, if the token is right."""
        token, _, rest = path.removeprefix("/").partition("/")
        right = hmac.compare_digest(token.encode(), self._token.encode())
        return rest if right else None

    @property
    def page(self) -> tuple[bytes, str]:
        """The page, and what a browser may do for it."""
        return self._page, self._policy

    def ask(self, what: str, turn: int | None, action: Action | None) -> Answer:
        return asyncio.run_coroutine_threadsafe(self._ask(what, turn, action), self._loop).result()

    def finish(self) -> None:
        self._loop.call_soon_threadsafe(self._over)


class _Handler(BaseHTTPRequestHandler):
    timeout = 30
    server_version = "swarm-ui"
    sys_version = ""

    def __init__(self, owner: Server, *args: Any, **options: Any) -> None:
        self._owner = owner
        super().__init__(*args, **options)

    def do_GET(self) -> None:
        place = self._allowed()
        if place == "":
            page, policy = self._owner.page
            self._send(HTTPStatus.OK, page, "text/html; charset=utf-8", policy)
        elif place == "state":
            self._answer("look", None, None)
        elif place is not None:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        place = self._allowed()
        if place is None:
            return
        if place not in ("act", "undo", "leave"):
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        length = self.headers.get("Content-Length", "")
        if kind != "application/json" or not length.isdecimal() or int(length) > LARGEST:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        try:
            posted = msgspec.json.decode(self.rfile.read(int(length)), type=Posted)
        except (msgspec.DecodeError, ValueError) as error:
            body = msgspec.json.encode({"error": str(error)})
            self._send(HTTPStatus.BAD_REQUEST, body, "application/json")
            return
        self._answer(place, posted.turn, posted.action)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: requests hold the token."""

    def _allowed(self) -> str | None:
        """What is asked for, if this page of ours asks; else the request is refused."""
        host = self._owner.host
        place = self._owner.place(self.path)
        ours = (None, f"http://{host}")
        if place is None or self.headers.get("Host") != host:
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        if self.headers.get("Origin") not in ours:
            self._refuse(HTTPStatus.FORBIDDEN)
            return None
        return place

    def _answer(self, what: str, turn: int | None, action: Action | None) -> None:
        try:
            answer = self._owner.ask(what, turn, action)
        except SwarmError as error:
            body = msgspec.json.encode({"error": str(error)})
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, body, "application/json")
            return
        self._send(HTTPStatus(answer.status), answer.body, "application/json")
        if answer.last:
            self._owner.finish()

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


def _page() -> tuple[bytes, str]:
    """The page with its style and script inside, and a policy that allows just these."""
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
